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


SLIDE = [np.random.default_rng(4).integers(60, 240, (1, 16, 18, 3), dtype=np.uint8) for _ in range(2)]


def long(*values):
    """Each module takes nvcc some ten seconds."""
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.parametrize("fit", [
    lambda images, masks: st.fit_moments(images, where=st.inside(masks)),
    long(lambda images, masks: st.fit_moments(images, ddof=1)),
    long(lambda images, masks: st.fit_percentiles(images, q=[1, 50, 99], where=st.labeled(masks, labels=[1], classes=2))),
    long(lambda images, masks: st.fit_range(images, lower=5, upper=95, where=st.above(-50))),
    long(lambda images, masks: [h.tolist() for h in st.fit_histogram(images)])])
def test_fits_are_those_of_the_cpu(fit):
    images, masks = BATCH["image"], BATCH["seg"]
    assert fit([Exporter(i) for i in images], [Exporter(m) for m in masks]) == fit(images, masks)


@pytest.mark.parametrize("fit", [lambda tiles: st.fit_macenko(tiles, layout="ZYXC"),
                                 long(lambda tiles: st.fit_color_moments(tiles, layout="ZYXC")),
                                 long(lambda tiles: st.fit_sharpness(tiles, layout="ZYXC"))])
def test_fits_of_slides_are_those_of_the_cpu(fit):
    assert fit([Exporter(t) for t in SLIDE]) == fit(SLIDE)


@pytest.mark.parametrize("rule, more", [(st.class_balanced_patch(size=4, ratios=(1, 3)), {"classes": 2}),
                                        long(st.oversampled_patch(size=4, margin=1), {"classes": 2}), long(st.pos_neg_patch(size=4), {}),
                                        long(st.pos_neg_patch(size=4), {"images": True}), long(st.weighted_patch(size=4), {})])
def test_patches_are_those_of_the_cpu(rule, more):
    def chosen(arrays):
        given = {**more, "images": arrays(BATCH["image"])} if "images" in more else more
        return st.select_patches(arrays(BATCH["seg"]), rule, ids=BATCH["id"], patches=3, seed=5, image_threshold=-50, **given)
    assert chosen(lambda all: [Exporter(a) for a in all]) == chosen(list)


def test_classes_are_counted_and_cropped_as_on_the_cpu():
    assert np.array_equal(st.count_classes([Exporter(m) for m in BATCH["seg"]], classes=2), st.count_classes(BATCH["seg"], classes=2))
    pipeline = st.Pipeline(image=[st.crop_by_class(size=4, labels="seg", ratios=[1, 1])], seg=st.labels())
    here = pipeline(BATCH, seed=3)
    there = pipeline({**BATCH, "image": [Exporter(s) for s in BATCH["image"]], "seg": [Exporter(m) for m in BATCH["seg"]]}, seed=3)
    synchronize()
    for key in ("image", "seg"):
        assert np.array_equal(there[key].numpy(), here[key])


def test_what_is_read_together_lies_on_one_device():
    with pytest.raises(st.Error, match="^suture: inside lie on the CPU, images on cuda:0: they lie on one$"):
        st.fit_moments([Exporter(BATCH["image"][0])], where=st.inside([BATCH["seg"][0]]))
    with pytest.raises(st.Error, match="^suture: body_mask: arrays on a GPU are not there yet"):
        st.body_mask([Exporter(BATCH["image"][0])])
