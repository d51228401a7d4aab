# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU, or in the memory of the emulator: the bits of the CPU, on the stream that was asked for."""
import ctypes
import sys

import numpy as np
import pytest

import suture as st
from suture.arrays import cuda
from suture.arrays.cuda import DeviceArray, check, library, synchronize
from suture.backend import jit
from test_expressions import SOFT
from test_pipeline import BATCH, SMALL, displaced

pytestmark = pytest.mark.cuda


class Exporter:
    """A tensor of another library: __dlpack__ and nothing else. Remembers the stream that it was to be ready for."""

    def __init__(self, array, device=0):
        self.held, self.streams = DeviceArray.of(array, device), []

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


class TwoDevices:
    """The runtime of one device as that of two, which share its memory and differ in architecture: device 1 has that of the one
    device, device 0 one that no compiler knows. Remembers where memory was allocated."""

    def __init__(self, runtime):
        self.runtime, self.now, self.allocated = runtime, 0, []

    def __getattr__(self, name):
        return getattr(self.runtime, name)

    def cudaGetDevice(self, at):
        at._obj.value = self.now
        return 0

    def cudaSetDevice(self, device):
        self.now = device
        return 0

    def cudaDeviceGetAttribute(self, at, attribute, device):
        if device.value == 1:
            return self.runtime.cudaDeviceGetAttribute(at, attribute, ctypes.c_int(0))
        at._obj.value = 99
        return 0

    def cudaMalloc(self, *given):
        self.allocated.append(self.now)
        return self.runtime.cudaMalloc(*given)


def test_a_batch_stays_on_its_device(monkeypatch):
    """Whatever device is the current one: its memory, what kernels read, the launches, and what modules are compiled for."""
    torch = sys.modules.get("torch")
    if torch is not None:  # cuda.current asks torch for the device if an earlier test has initialized its CUDA
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    devices, architecture = TwoDevices(library()), cuda.architecture()
    monkeypatch.setattr(cuda, "library", lambda: devices)
    monkeypatch.delenv("SUTURE_CUDA_ARCH", raising=False)
    op, _ = displaced()
    pipeline = st.Pipeline(image=[st.z_score(fitted=st.per_sample("moments")), op])
    scan, moments = BATCH["image"][0], [st.Moments(mean=12.0, standard_deviation=30.0)]
    here = pipeline({"image": [scan], "moments": moments}, epoch=0)["image"]
    with jit.loads() as loaded:
        plan = pipeline.plan({"image": [Exporter(scan, 1)], "moments": moments}, epoch=0)
    launched, run = [], plan._planned["image"].compiled.run
    monkeypatch.setattr(plan._planned["image"].compiled, "run", lambda *given: (launched.append(devices.now), run(*given))[1])
    out = plan.run()["image"]
    assert launched == [1] and devices.now == 0
    assert len(devices.allocated) > 3 and set(devices.allocated) == {1} and out[0].__dlpack_device__()[1] == 1
    with jit.loads() as also_loaded:
        masked = st.fill_holes([Exporter(BATCH["seg"][0], 1)])
    assert [s.target for s in loaded + also_loaded if s.cuda] == [architecture] * 2
    synchronize()
    assert set(devices.allocated) == {1} and masked[0].__dlpack_device__()[1] == 1
    assert np.array_equal(out[0].numpy(), here[0])


def test_what_kernels_read_is_copied_to_the_device():
    op, _ = displaced()
    moments = st.Moments(mean=12.0, standard_deviation=30.0)
    pipeline = st.Pipeline(image=[st.z_score(fitted=st.per_sample("moments")), op], pts=st.points())
    encoded = pipeline.encode("image", "zyx", ["int16"], {"moments": [moments]}, 1)
    read = [m[0] if isinstance(m, tuple) else m for m in encoded.lists]
    assert [type(m).__name__ for m in read] == ["ReadByKernels"] * 2
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


def on_host(made):
    """What came of a function, with the arrays of a GPU as NumPy's."""
    if isinstance(made, (list, tuple)) and not hasattr(made, "_fields"):
        return [on_host(m) for m in made]
    if isinstance(made, st.Volume):
        return made.array.numpy() if hasattr(made.array, "numpy") else made.array
    return made.numpy() if hasattr(made, "numpy") else made


def same(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return np.array_equal(a, b) and a.dtype == b.dtype if isinstance(a, np.ndarray) else a == b


MASKS = {
    "body_mask": lambda a, s: st.body_mask(a(BATCH["image"]), threshold=-20, opening_radius=1),
    "bounding_box": lambda a, s: st.bounding_box(a(BATCH["image"]), threshold=95),
    "label_components": lambda a, s: st.label_components(a(BATCH["seg"]), connectivity="edges"),
    "keep_largest_component": lambda a, s: st.keep_largest_component(a(BATCH["seg"])),
    "remove_small_components": lambda a, s: st.remove_small_components(a(BATCH["seg"]), least=4),
    "fill_holes": lambda a, s: st.fill_holes(a(BATCH["seg"])),
    "binary_erosion": lambda a, s: st.binary_erosion(a(BATCH["seg"]), border_value=True),
    "binary_dilation": lambda a, s: st.binary_dilation(a(BATCH["seg"]), shape="box", radius=dict(z=1, y=2, x=2)),
    "binary_opening": lambda a, s: st.binary_opening(a(BATCH["seg"])),
    "binary_closing": lambda a, s: st.binary_closing(a(BATCH["seg"])),
    "gray_erosion": lambda a, s: st.gray_erosion(a(BATCH["image"]), shape="box", radius=2),
    "gray_dilation": lambda a, s: st.gray_dilation(a(BATCH["image"]), border_value=3.),
    "tissue_mask": lambda a, s: st.tissue_mask(s(np.concatenate(SLIDE)), layout="NHWC"),
    "random_binary_operation": lambda a, s: st.random_binary_operation(a(BATCH["seg"]), labels=[1], ids=BATCH["id"], probability=1.,
                                                                       label_probability=1., radius=(1, 2)),
    "random_component_removal": lambda a, s: st.random_component_removal(a(BATCH["seg"]), labels=[1], ids=BATCH["id"],
                                                                         probability=1., label_probability=1., largest_share=1.),
    "mask_image": lambda a, s: st.mask_image(a(BATCH["seg"]), a(BATCH["image"]), below=1, value=7.),
    "stacked": lambda a, s: st.mask_image(s(np.stack([BATCH["seg"][0]] * 2)), s(np.stack([BATCH["image"][0]] * 2)), below=1, value=7.),
    "volumes": lambda a, s: st.body_mask([st.Volume(i, axes="zyx") for i in a([b[0] for b in BATCH["image"]])], threshold=0),
    "average": lambda a, s: st.average(s(np.stack([BATCH["image"][0]] * 2)), s(np.stack([BATCH["seg"][0][0]] * 2).astype(np.float32)),
                                       outside=-1),
}


@pytest.mark.parametrize("name", ["body_mask", "mask_image", *(long(n) for n in MASKS if n not in ("body_mask", "mask_image"))])
def test_masks_are_those_of_the_cpu(name):
    here = MASKS[name](list, lambda whole: whole)
    there = MASKS[name](lambda all: [Exporter(a) for a in all], Exporter)
    synchronize()
    assert same(on_host(there), on_host(here))


@pytest.mark.parametrize("covered", [False, long(True)])
def test_volumes_are_put_together_as_on_the_cpu(covered):
    grid = st.sliding_window_grid((7, 8, 9), (4, 5, 6), step=.5)
    made = np.random.default_rng(2).normal(size=(len(grid), 2, 4, 5, 6)).astype(np.float32)
    part = np.random.default_rng(3).integers(0, 2, (len(grid), 4, 5, 6)).astype(np.float32)
    here = st.reassemble(grid, made, coverage=part if covered else None, outside=-1)
    there = st.reassemble(grid, Exporter(made), coverage=Exporter(part) if covered else None, outside=-1)
    synchronize()
    assert np.array_equal(there.numpy(), here)


def test_what_is_changed_in_a_copy_leaves_what_was_given():
    image = Exporter(BATCH["image"][0])
    st.mask_image([Exporter(BATCH["seg"][0])], [image], below=1, value=7.)
    synchronize()
    assert np.array_equal(image.held.numpy(), BATCH["image"][0])


def test_what_is_read_together_lies_on_one_device():
    with pytest.raises(st.Error, match="^suture: inside: masks lie on the CPU, images on cuda:0: they lie on one$"):
        st.fit_moments([Exporter(BATCH["image"][0])], where=st.inside([BATCH["seg"][0]]))
    with pytest.raises(st.Error, match="^suture: mask_image: label maps lie on the CPU, mask_image: images on cuda:0: they lie on one$"):
        st.mask_image([BATCH["seg"][0]], [Exporter(BATCH["image"][0])])
