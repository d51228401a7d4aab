# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU, or in the memory of the emulator: the bits of the CPU, on the stream that was asked for."""
import numpy as np
import pytest

import suture as st
from suture.cuda import DeviceArray, synchronize
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
