# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU, or in the memory of the emulator: the bits of the CPU, on the stream that was asked for."""
import ctypes

import numpy as np
import pytest

import suture as st
from suture.cuda import DeviceArray, check, library, synchronize
from test_expressions import SOFT
from test_pipeline import BATCH, SMALL, displaced

pytestmark = pytest.mark.cuda


class Exporter:
    """A tensor of another library: __dlpack__ and nothing else. Remembers the stream that it was to be ready for."""

    def __init__(self, array):
        self.held, self.streams = DeviceArray.of(array), []

    @property
    def shape(self):
        return self.held.shape

    def __dlpack_device__(self):
        return self.held.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **_):
        self.streams.append(stream)
        return self.held.__dlpack__()


def test_gives_the_bits_of_the_cpu():
    here = SMALL(BATCH, seed=1)
    images, maps = [Exporter(s) for s in BATCH["image"]], [Exporter(m) for m in BATCH["seg"]]
    out = SMALL({"image": images, "seg": maps, "id": BATCH["id"]}, seed=1)
    synchronize()
    for key in ("image", "seg"):
        assert np.array_equal(out[key].numpy(), here[key])
    assert all(e.streams == [1] for e in images)  # the default stream, as DLPack numbers it


def test_one_batch_lies_on_one_device():
    with pytest.raises(st.Error, match="one batch lies on one"):
        SMALL({"image": [Exporter(s) for s in BATCH["image"]], "seg": BATCH["seg"], "id": BATCH["id"]}, seed=1)


def test_what_kernels_read_is_copied_to_the_device():
    op, _ = displaced()
    moments = st.Moments(mean=12.0, standard_deviation=30.0)
    pipeline = st.Pipeline(image=[st.z_score(fitted=st.per_sample("moments")), op], pts=st.points())
    assert [type(m).__name__ for m, _ in pipeline.encode("image", "zyx", {"moments": [moments]}, 1).lists] == ["ReadByKernels"] * 2
    scan = BATCH["image"][0]
    here = pipeline({"image": [scan], "moments": [moments], "pts": [[]]})["image"][0]
    plan = pipeline.plan({"image": [Exporter(scan)], "moments": [moments], "pts": [[]]})
    with pytest.raises(st.Error, match="control_values of this plan lie on the GPU; plan the batch on the CPU"):
        plan.run()
    plain = st.Pipeline(image=pipeline.images["image"])({"image": [Exporter(scan)], "moments": [moments]})
    synchronize()
    assert np.array_equal(plain["image"][0].numpy(), here)


def test_a_run_synchronizes_nothing():
    """While a stream is captured, whatever would make it wait is refused."""
    here = SMALL(BATCH, seed=1)
    cudart, stream = library(), ctypes.c_void_p()
    check(cudart.cudaStreamCreate(ctypes.byref(stream)), "stream")
    images, maps = [Exporter(s) for s in BATCH["image"]], [Exporter(m) for m in BATCH["seg"]]
    plan = SMALL.plan({"image": images, "seg": maps, "id": BATCH["id"]}, seed=1, stream=stream.value)
    assert all(e.streams == [stream.value] for e in images)
    check(cudart.cudaStreamBeginCapture(stream, 2), "begin")  # relaxed: memory may be allocated
    out = plan.run()
    graph, program = ctypes.c_void_p(), ctypes.c_void_p()
    check(cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)), "end")
    check(cudart.cudaGraphInstantiate(ctypes.byref(program), graph, ctypes.c_ulonglong(0)), "instantiate")
    check(cudart.cudaGraphLaunch(program, stream), "launch")
    synchronize(stream.value)
    for key in ("image", "seg"):
        assert np.array_equal(out[key].numpy(), here[key])


def test_expressions_have_the_bits_of_the_cpu():
    x = np.linspace(-300, 900, 210, dtype=np.float32).reshape(1, 1, 5, 6, 7)
    pipeline = st.Pipeline(image=[SOFT])
    out = pipeline({"image": [Exporter(x[0])]})["image"][0]
    synchronize()
    assert np.array_equal(out.numpy(), pipeline({"image": [x[0]]})["image"][0])
