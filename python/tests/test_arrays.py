# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries are read and written where they lie: NumPy, what has DLPack, JAX, CuPy."""
import contextlib
import gc
import pathlib
import subprocess
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import suture as st
from suture.arrays import cuda, dlpack, memory
from suture.pipeline import class_index
from suture.arrays.dlpack import CPU, array_of, capsule_of, dense_strides
from test_pipeline import BATCH, MAPS, SCANS, SMALL

IDS = {"id": BATCH["id"]}
# From here on NumPy itself hands over what may not be written, and bool.
NUMPY_SAYS_READ_ONLY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Foreign:
    """An array of a library that nobody knows: __dlpack__ and a shape, with or without the newer protocol."""

    def __init__(self, array, newer=True):
        self.array, self.shape, self.newer, self.asked = array, array.shape, newer, 0

    def __dlpack_device__(self):
        return CPU, 0

    def __dlpack__(self, **settings):
        self.asked += 1
        if self.newer:
            return self.array.__dlpack__(**settings)
        if settings:
            raise TypeError("unexpected keyword")
        a = self.array
        return capsule_of(a.ctypes.data, a.shape, tuple(s // a.itemsize for s in a.strides), a.dtype.name, (CPU, 0), self)


def bits(out):
    return [[st.digest(np.asarray(s)) for s in out[key]] for key in ("image", "seg")]


EXPECTED = None


def expected():
    global EXPECTED
    EXPECTED = EXPECTED or bits(SMALL(BATCH, seed=1))
    return EXPECTED


@pytest.mark.parametrize("newer", [True, False])
def test_dlpack(newer):
    images = [Foreign(s, newer) for s in SCANS]
    assert bits(SMALL({"image": images, "seg": [Foreign(m, newer) for m in MAPS], **IDS}, seed=1)) == expected()
    assert all(i.asked >= 1 for i in images)
    known = array_of(images[0], "suture")
    assert known.pointer == SCANS[0].ctypes.data and known.shape == SCANS[0].shape and known.dtype == "int16"


class Copies(Foreign):
    """Hands over a copy, which lives as long as what it handed over."""

    copies = 0

    def __dlpack__(self, **settings):
        assert self.asked == 0, "asked twice"
        self.asked += 1
        copy = self.array.copy()
        weakref.finalize(copy, self._gone)
        Copies.copies += 1
        return capsule_of(copy.ctypes.data, copy.shape, dense_strides(copy.shape), copy.dtype.name, (CPU, 0), copy)

    @staticmethod
    def _gone():
        Copies.copies -= 1


def test_what_is_handed_over_is_asked_for_once_and_held():
    plan = SMALL.plan({"image": [Copies(s) for s in SCANS], "seg": [Copies(m) for m in MAPS], **IDS}, seed=1)
    assert Copies.copies == len(SCANS) + len(MAPS)
    assert bits(plan.run()) == expected()
    del plan
    gc.collect()
    assert Copies.copies == 0


def test_what_was_counted_of_a_foreign_array_is_kept(monkeypatch):
    pipeline = st.Pipeline(image=[st.crop_by_class(size=4, labels="seg", ratios=[1, 1])], seg=st.labels())
    batch = {"image": SCANS, "seg": [Foreign(m) for m in MAPS], **IDS}
    counted = []
    count = class_index._made
    class_index._kept.clear()
    monkeypatch.setattr(class_index, "_made", lambda items, samples, *more: counted.extend(samples) or count(items, samples, *more))
    for _ in range(2):
        pipeline(batch, seed=1)
    assert counted == list(range(len(MAPS)))


STILL_HELD = """
import numpy as np
from suture.arrays.dlpack import CPU, capsule_of
class Array:
    def __init__(self): self.values = np.arange(5.0)
    def __dlpack_device__(self): return CPU, 0
    def __dlpack__(self, **_): return capsule_of(self.values.ctypes.data, (5,), (1,), "float64", (CPU, 0), self)
read, unread = np.from_dlpack(Array()), Array().__dlpack__()
assert read[3] == 3
"""


@pytest.mark.parametrize("held", ["import sys; sys.kept = [read, unread]", "l = [read, unread]; l.append(l); del read, unread, l",
                                  "np.core.multiarray.kept = [read, unread]"])
def test_what_is_held_when_the_interpreter_ends_is_left_alone(held):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", STILL_HELD + held], capture_output=True, text=True, cwd=pathlib.Path(__file__).parents[1])
    assert (done.returncode, done.stderr) == (0, "")


def test_strides_offsets_and_read_only_arrays():
    wide = [np.full((1, *(n + 3 for n in s.shape[1:-1]), 2 * s.shape[-1] + 1), 99, s.dtype) for s in SCANS]
    inner = [w[:, 2:-1, 1:-2, 1::2] for w in wide]
    for place, scan in zip(inner, SCANS):
        place[...] = scan
        place.flags.writeable = False
    reversed_maps = [np.ascontiguousarray(m[..., ::-1])[..., ::-1] for m in MAPS]  # a negative stride
    assert reversed_maps[0].strides[-1] == -1
    assert bits(SMALL({"image": inner, "seg": reversed_maps, **IDS}, seed=1)) == expected()
    foreign = [Foreign(place, newer=NUMPY_SAYS_READ_ONLY) for place in inner]
    assert array_of(foreign[0], "suture").readonly == NUMPY_SAYS_READ_ONLY
    assert array_of(foreign[0], "suture").pointer == inner[0].ctypes.data
    assert bits(SMALL({"image": foreign, "seg": MAPS, **IDS}, seed=1)) == expected()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64"])
def test_types_of_dlpack(dtype):
    array = np.zeros((2, 3), dtype)
    known = array_of(Foreign(array, newer=NUMPY_SAYS_READ_ONLY), "suture")
    assert (known.dtype, known.strides, known.library) == (dtype, dense_strides((2, 3)), "test_arrays")


def test_jax():
    jax = pytest.importorskip("jax")
    cpu = jax.devices("cpu")[0]
    images, maps = ([jax.device_put(a, cpu) for a in arrays] for arrays in (SCANS, MAPS))
    out = SMALL({"image": images, "seg": maps, **IDS}, seed=1)
    assert bits(out) == expected()
    back = jax.numpy.from_dlpack(out["image"])
    assert back.shape == (3, 1, 8, 8, 8) and np.array_equal(np.asarray(back), out["image"])


@pytest.mark.cuda
def test_cupy():
    cupy = pytest.importorskip("cupy")
    out = SMALL({"image": [cupy.asarray(s) for s in SCANS], "seg": [cupy.asarray(m) for m in MAPS], **IDS}, seed=1)
    assert isinstance(out["image"], cupy.ndarray)
    assert bits({k: cupy.asnumpy(out[k]) for k in ("image", "seg")}) == expected()


def test_the_stream_of_cupy_is_that_of_the_device_of_the_batch(monkeypatch):
    """A stand-in for CuPy, of which each device has a current stream."""
    now = [0]

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            now.append(self.number)

        def __exit__(self, *_):
            now.pop()

    array = type("ndarray", (), {"__module__": "cupy", "device": Device(1)})()
    cupy = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=70 + now[-1])))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert dlpack.stream_of([array]) == 71 and now == [0]


def test_memory_of_cupy_belongs_to_the_stream_of_the_plan(monkeypatch):
    """A stand-in for CuPy, whose current stream has the address 5."""
    now, seen = [5], []

    class Stream:
        def __init__(self, number, device=None):
            self.ptr = number

        def __enter__(self):
            now.append(self.ptr)

        def __exit__(self, *_):
            now.pop()

    cupy = SimpleNamespace(empty=lambda shape, dtype: seen.append(now[-1]),
                           cuda=SimpleNamespace(get_current_stream=lambda: Stream(now[-1]), ExternalStream=Stream, Stream=SimpleNamespace(null=Stream(0))))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(memory, "current", lambda device: contextlib.nullcontext())
    like = dlpack.Array(0, (2,), (1,), "float32", (dlpack.CUDA, 0), False, None, "cupy")
    for stream in (7, 5, 0, None):
        memory.empty_like_library("cupy", (2,), "float32", like, "an array", stream)
    assert seen == [7, 5, 0, 0] and now == [5]


def test_an_array_of_a_device_waits_for_the_stream_that_writes_it(monkeypatch):
    """DLPack: None and 1 are the default stream, 2 is that of the thread, with -1 nothing waits, and 0 is not allowed."""
    calls = []

    class Runtime:
        """A stand-in for the CUDA runtime."""

        def __getattr__(self, name):
            def call(*given):
                if name in ("cudaMalloc", "cudaEventCreateWithFlags"):
                    given[0]._obj.value = 4096
                elif name == "cudaGetDevice":
                    given[0]._obj.value = 0
                if name in ("cudaEventRecord", "cudaStreamWaitEvent", "cudaEventDestroy"):
                    calls.append((name, *[v.value or 0 for v in given if v.value != 4096][:1]))
                return 0

            return call

    monkeypatch.setattr(cuda, "library", Runtime)
    monkeypatch.setattr(cuda, "current", cuda._current)
    waits = lambda producer, consumer: [("cudaEventRecord", producer), ("cudaStreamWaitEvent", consumer), ("cudaEventDestroy",)]  # noqa: E731
    for own, consumers in ((7, {None: 1, 1: 1, 2: 2, 9: 9, 7: 0, -1: 0}), (0, {None: 0, 1: 0, 2: 2, 9: 9, -1: 0})):
        made = cuda.DeviceArray((2,), "float32", 0, own)
        for consumer, waiting in consumers.items():
            del calls[:]
            made.__dlpack__(stream=consumer)
            assert calls == (waits(own, waiting) if waiting else []), (own, consumer)
        for wrong in (0, -2, "1", True):
            with pytest.raises(st.Error, match=f"__dlpack__: stream: expected None, -1 or a CUDA stream above 0, got {wrong!r}. Pass 1 for"):
                made.__dlpack__(stream=wrong)


def test_an_array_without_a_channel_axis_says_how_to_add_it():
    chain = st.Pipeline(layout="NHWC", rgb=[st.random_flip(axis_probability=dict(y=.5, x=.5))], mask=st.labels())
    rgb, mask = np.zeros((2, 8, 8, 3), np.uint8), np.zeros((2, 8, 8), np.uint8)
    with pytest.raises(st.Error, match=r"rgb: layout: expected array with the axes \(N, H, W, C\), as layout 'NHWC' says, got shape "
                                       r"\(2, 8, 8\)\. Add the channel axis, as array\[\.\.\., None\] does"):
        chain({"rgb": rgb[..., 0], "mask": mask, "id": [0, 1]}, seed=1, epoch=0)
    with pytest.raises(st.Error, match=r"\(C, H, W\).*Add the channel axis, as sample\[None\] does"):
        st.fit_moments([mask[0]], layout="CHW")
    with pytest.raises(st.Error, match="Say the layout that it has: letters of N, C, D, H and W"):
        st.fit_moments([np.zeros((2, 2, 2, 2, 2), np.uint8)], layout="HW")


@pytest.mark.parametrize(("layout", "shape"), [("NHWC", (2, 9, 8)), ("NCHW", (2, 9, 8)), (None, (2, 5, 9, 8))])
@pytest.mark.parametrize("listed", [False, True])
def test_masks_may_leave_the_channel_axis_out(layout, shape, listed):
    chain = st.Pipeline(layout=layout, image=[st.flip(axes=dict(y=True))], mask=st.labels(convert=st.one_hot(classes=3)))
    place = 3 if layout == "NHWC" else 1
    mask = np.random.default_rng(0).integers(0, 3, shape, dtype=np.uint8)
    image = np.expand_dims(mask, place)
    out = chain({"image": list(image) if listed else image, "mask": list(mask) if listed else mask})["mask"]
    turned = np.flip(mask, -2)
    assert np.array_equal(np.moveaxis(np.stack(out), place, -1), turned[..., None] == np.arange(3))


def test_an_origin_beside_an_affine_is_refused():
    with pytest.raises(st.Error, match="suture: Volume: origin: expected none beside an affine or a grid"):
        st.Volume(np.zeros((2, 3, 4)), axes="zyx", affine_ras=np.eye(4), origin=dict(z=1))


@pytest.mark.parametrize(("name", "given", "way"), [
    ("spacing", {"z": 1, "q": 2, 3: 1}, "Add y, x and leave out 3, q"), ("spacing", dict(z=2.5, y=.8), "Add x"), ("spacing", {}, "Add z, y, x"),
    ("origin", dict(X=30, z=5), "Add y, x and leave out X"), ("origin", dict(z=5, y=1, x=2, t=0), "Leave out t")])
def test_a_spacing_or_an_origin_of_other_axes_is_refused(name, given, way):
    with pytest.raises(st.Error) as caught:
        st.Volume(np.zeros((2, 3, 4), np.int16), axes="xyz", **{name: given})
    assert str(caught.value) == f"suture: Volume: {name}: expected a number for each of z, y, x, got {given}. {way}"


def test_a_plane_needs_two_axes_and_may_have_three():
    plane = np.zeros((3, 4), np.int16)
    made = st.Volume(plane, axes="yx", spacing=dict(y=2, x=3), origin=dict(z=30, y=-5, x=7)).grid
    assert made.spacing == (1, 2, 3) and made.origin == (30, -5, 7)
    made = st.Volume(plane, axes="xy", spacing=dict(z=5, y=2, x=3), origin=dict(y=-5, x=7)).grid
    assert made.spacing == (5, 2, 3) and made.origin == (0, -5, 7)
    with pytest.raises(st.Error, match=r"^suture: Volume: origin: expected a number for each of y, x, got \{'z': 5\}\. Add y, x$"):
        st.Volume(plane, axes="yx", origin=dict(z=5))
    with pytest.raises(st.Error, match=r"^suture: Volume: origin: expected a dict of numbers by axis, got \(1, 2\)\. Pass dict\(y=\.\.\., x=\.\.\.\)$"):
        st.Volume(plane, axes="yx", origin=(1, 2))


def test_other_voxels_have_as_unknown_a_spacing():
    unknown, known = st.Volume(np.zeros((2, 3, 4)), axes="zyx"), st.Volume(np.zeros((2, 3, 4)), axes="zyx", spacing=2)
    assert not unknown.of_array(unknown.array).placed and known.of_array(known.array).placed
