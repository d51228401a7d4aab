# SPDX-License-Identifier: Apache-2.0
"""What of other libraries' arrays is read, what is refused, and who keeps their memory."""
import copy
import ctypes
import gc
import pickle

import numpy as np
import pytest

import suture as st
from suture.arrays import dlpack
from suture.arrays.batch import Items
from suture.arrays.dlpack import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, array_of, as_numpy, capsule_of

IMAGE = np.random.default_rng(0).normal(size=(1, 3, 4, 5)).astype(np.float32)


def refused(x):
    with pytest.raises(st.Error) as caught:
        array_of(x, "suture: image")
    assert str(caught.value).startswith("suture: image: ")
    return str(caught.value)


# NumPy

class Quantity(np.ndarray):
    """A subclass whose values mean something else, as those with units do."""


MASKED = np.ma.array(IMAGE, mask=IMAGE > 1)


@pytest.mark.parametrize(("array", "words"), [
    (MASKED, f"got a masked array with {(IMAGE > 1).sum()} masked values. Pass a.filled(VALUE)"),
    (np.ma.array(IMAGE, mask=True), f"with {IMAGE.size} masked values"),
    (IMAGE.view(Quantity), "got its subclass test_foreign.Quantity, whose meaning would be dropped. Pass numpy.asarray(a)"),
    (np.asmatrix(IMAGE[0, 0]), "got its subclass numpy.matrix"),
    (IMAGE.astype(">f4" if np.little_endian else "<f4"), "expected the byte order of this machine"),
    (np.zeros(3, [("a", np.float32)]), "got [('a', '<f4')]"),
    (np.zeros(3, [("a", np.float32)])[["a"]], "Pass a.astype(numpy.float32)"),
    (np.array([None, 1]), "got object"),
    (np.array(["1"]), "got <U1"),
    (np.zeros(3, "M8[s]"), "got datetime64[s]"),
    (np.zeros(3, np.uint64), "got uint64"),
    (np.zeros(3, np.longdouble), "got float"),
    (np.zeros(13, np.uint8)[1:].view(np.float32), "at addresses that are multiples of 4"),
    (np.zeros(3, [("a", np.uint8), ("b", np.float32)])["b"], "expected strides of whole elements of float32, got (5,) bytes"),
    ([1.0], "got list. Pass numpy.asarray(a)"),
    (3.0, "got float"),
    (memoryview(b"abc"), "got memoryview"),
])
def test_numpy_refused(array, words):
    assert words in refused(array)


def test_numpy_taken(tmp_path):
    unmasked = np.ma.array(IMAGE)
    assert array_of(unmasked, "suture").pointer == unmasked.data.ctypes.data
    IMAGE.tofile(tmp_path / "image")
    mapped = np.memmap(tmp_path / "image", np.float32, "r", shape=IMAGE.shape)
    known = array_of(mapped, "suture")
    assert known.readonly and known.pointer == mapped.ctypes.data and np.array_equal(as_numpy(mapped, "suture"), IMAGE)
    assert array_of(np.zeros((1, 0, 4, 5)), "suture").shape == (1, 0, 4, 5)


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_refused_alone_is_refused_in_a_list(place):
    for bad, words in ((MASKED, "masked values"), (np.zeros(241, np.uint8)[1:].view(np.float32).reshape(1, 3, 4, 5), "multiples of 4")):
        batch = [IMAGE, IMAGE]
        batch[place] = bad
        with pytest.raises(st.Error, match=words):
            Items(batch, "image", None, None)
        with pytest.raises(st.Error, match=words):
            Items([st.Volume(each[0], axes="zyx") for each in batch], "image", None, None)


def test_masks_are_not_dropped_elsewhere():
    for function in (st.digest, lambda a: np.asarray(st.Volume(a, axes="zyx")), st.tissue_mask):
        with pytest.raises(st.Error, match="masked values"):
            function(MASKED)
    with pytest.raises(st.Error, match="got object"):
        st.digest(np.array([None]))


# DLPack

class Exported:
    """Hands over a capsule whose tensor was changed before."""

    def __init__(self, array, device=CPU, change=lambda tensor: None, name=b"dltensor"):
        self.array, self.device, self.change, self.name = array, device, change, name

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, *, max_version=None, stream=None):
        a = self.array
        made = capsule_of(a.ctypes.data, a.shape, tuple(s // a.itemsize for s in a.strides), a.dtype.name, (self.device, 0), a)
        tensor = dlpack._Managed.from_address(dlpack._api.PyCapsule_GetPointer(made, b"dltensor")).tensor
        self.change(tensor)
        return made


def test_dlpack_fields():
    def changed(**fields):
        def change(tensor):
            for name, value in fields.items():
                place, parts = tensor, name.split("__")
                for part in parts[:-1]:
                    place = getattr(place, part)
                setattr(place, parts[-1], value)
        return Exported(IMAGE, change=change)

    assert "4 lanes" in refused(changed(dtype__lanes=4))
    assert "got DLPack code 2 of 8 bits" in refused(changed(dtype__bits=8))
    assert "got DLPack code 5 of 64 bits" in refused(changed(dtype__code=5, dtype__bits=64))
    assert "of 4 bits" in refused(changed(dtype__code=17, dtype__bits=4))  # float4
    assert "names another device than the tensor" in refused(changed(device__type=CUDA))
    assert "has -1 axes" in refused(changed(ndim=-1))
    assert "has 4 axes and no shape" in refused(changed(shape=ctypes.POINTER(ctypes.c_int64)()))
    assert "(1, 3, 4, 5) has no memory" in refused(changed(data=None))
    assert "has no memory" in refused(changed(data=None, byte_offset=16))
    assert "multiples of 4" in refused(changed(byte_offset=2))
    assert array_of(changed(byte_offset=40), "suture").pointer == IMAGE.ctypes.data + 40
    assert array_of(changed(strides=ctypes.POINTER(ctypes.c_int64)()), "suture").strides == (60, 20, 5, 1)
    assert array_of(Exported(np.zeros((2, 0), np.float32), change=lambda t: setattr(t, "data", None)), "suture").pointer == 0

    def negative(tensor):
        tensor.shape[1] = -3

    assert "shape (1, -3, 4, 5)" in refused(Exported(IMAGE, change=negative))


def test_dlpack_devices():
    for kind in (4, 7, 8, 10, 11, 14, 15, 99):
        assert f"(DLPack device {kind}). Pass a copy on the CPU" in refused(Exported(IMAGE, kind))
    assert array_of(Exported(IMAGE, CUDA_HOST), "suture").device == (CPU, 0)
    assert array_of(Exported(IMAGE, CUDA_MANAGED), "suture").device == (CUDA, 0)
    both = Items([IMAGE, Exported(IMAGE, CUDA_HOST)], "image", None, None)  # pinned memory beside other memory of the host
    assert both.device == (CPU, 0)


class Versioned:
    """A capsule of the newer protocol, of any version and flags."""

    def __init__(self, array, major=1, flags=0):
        self.array, (self.shape, self.strides) = array, ((ctypes.c_int64 * 4)(*array.shape), (ctypes.c_int64 * 4)(60, 20, 5, 1))
        tensor = dlpack._Tensor(array.ctypes.data, dlpack._Device(CPU, 0), 4, dlpack._Type(2, 32, 1), self.shape, self.strides, 0)
        self.managed = dlpack._Versioned(major, 0, None, dlpack._Deleter(), flags, tensor)
        self.taken = False

    def __dlpack_device__(self):
        return CPU, 0

    def __dlpack__(self, **_):
        name = b"used_dltensor_versioned" if self.taken else b"dltensor_versioned"
        self.name = ctypes.create_string_buffer(name)
        return dlpack._api.PyCapsule_New(ctypes.addressof(self.managed), ctypes.addressof(self.name), None)


def test_dlpack_versions(monkeypatch):
    monkeypatch.setattr(dlpack._api.PyCapsule_New, "argtypes", [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p])
    assert not array_of(Versioned(IMAGE), "suture").readonly
    assert array_of(Versioned(IMAGE, flags=1), "suture").readonly
    assert "expected DLPack 1, got version 2.0" in refused(Versioned(IMAGE, major=2))
    taken = Versioned(IMAGE)
    taken.taken = True
    assert "a DLPack capsule that nobody has taken yet" in refused(taken)


def test_dlpack_that_is_not_handed_over():
    class Stubborn(Exported):
        def __dlpack__(self, **_):
            raise BufferError("busy")

    assert "Stubborn does not hand over its memory: busy. Pass a copy" in refused(Stubborn(IMAGE))

    class Half:
        def __dlpack__(self, **_):
            raise AssertionError("asked")

    assert "got test_foreign.test_dlpack_that_is_not_handed_over.<locals>.Half" in refused(Half())


# Who keeps the memory

def shifted(scan):
    return st.Pipeline(image=[st.brightness(offset=1)])({"image": scan}, seed=1)["image"]


def test_a_plan_keeps_the_arrays_of_a_list_that_changes():
    batch = [np.full((1, 40, 50, 60), 3, np.float32) for _ in range(4)]
    plan = st.Pipeline(image=[st.brightness(offset=1)]).plan({"image": batch}, seed=1)
    batch.clear()
    gc.collect()
    junk = [np.full((1, 40, 50, 60), 77, np.float32) for _ in range(4)]
    made = plan.run()["image"]
    assert all((a == 4).all() for a in made) and junk[0][0, 0, 0, 0] == 77


def test_an_image_of_simpleitk_may_go():
    sitk = pytest.importorskip("SimpleITK")
    truth = np.random.default_rng(1).integers(0, 9, (40, 50, 60), dtype=np.uint8)

    def image():
        made = sitk.GetImageFromArray(truth)
        made.SetSpacing((1.0, 2.0, 3.0))
        return made

    made = st.Volume.from_itk(image())
    derived = [made, copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made)),
               st.Volume(made.array[:, ::-1, :], axes="zyx", spacing=1), st.Volume(made.array[None], axes="zyx", grid=made.grid)]
    del made
    gc.collect()
    junk = [np.full(truth.shape, 77, truth.dtype) for _ in range(8)]  # what a program allocates next
    for volume in derived:
        seen = volume.array[0] if volume.array.ndim == 4 else volume.array
        assert np.array_equal(seen, truth) or np.array_equal(seen, truth[:, ::-1])
        assert not any(np.shares_memory(seen, j) for j in junk)
    assert derived[3].grid == derived[0].grid and derived[0].spacing == dict(z=3.0, y=2.0, x=1.0)
    kept = image()
    volume = st.Volume.from_itk(kept)
    kept += 1  # SimpleITK may move the voxels here
    assert np.array_equal(volume.array, truth)


# torch

@pytest.mark.torch
def test_torch_refused():
    import torch

    x = torch.from_numpy(IMAGE.copy())
    negated = torch.complex(torch.zeros_like(x), x).conj().imag
    assert negated.is_neg()
    cases = [(negated, "that torch negates when it is read. Pass x.resolve_neg()"),
             (torch.complex(x, x).conj(), "got torch.complex64. Pass torch.view_as_real(x)"),
             (x.to_sparse(), "has no strides; pass x.to_dense()"),
             (torch.nested.nested_tensor([x[0], x[0, :2]]), "got a nested one. Pass a list, x.unbind()"),
             (torch.quantize_per_tensor(x, .1, 0, torch.quint8), "got torch.quint8. Pass x.dequantize()"),
             (x.to("meta"), "got one on meta. It has no values"),
             (x.clone().requires_grad_(), "pass x.detach()"),
             (torch.nn.Parameter(x.clone()), "pass x.detach()"),
             (torch._efficientzerotensor(x.shape), "it never had any; pass x.clone()"),
             (torch.from_numpy(np.zeros(241, np.uint8))[1:].numpy().view(np.float32).reshape(IMAGE.shape), "multiples of 4")]

    class Scaled(torch.Tensor):
        """Means other values than it holds."""

    cases.append((x.as_subclass(Scaled), "Pass x.as_subclass(torch.Tensor) if it holds them"))
    for tensor, words in cases:
        assert words in refused(tensor)
    for batch in ([negated, x], [x, negated]):
        with pytest.raises(st.Error, match="resolve_neg"):
            Items(batch, "image", None, None)
    resolved = st.Pipeline(image=[st.brightness(offset=1)])({"image": [negated.resolve_neg()]}, seed=1)["image"][0]
    assert torch.equal(resolved, 1 - x)


@pytest.mark.torch
def test_torch_taken():
    import torch

    x = torch.from_numpy(IMAGE.copy())
    for tensor in (x, torch.nn.Parameter(x, requires_grad=False), x[..., ::2], x.expand(1, 3, 4, 5), x.permute(0, 3, 2, 1)):
        known = array_of(tensor, "suture")
        assert (known.pointer, known.shape, known.strides) == (tensor.data_ptr(), tuple(tensor.shape), tensor.stride())
    half = x.to(torch.bfloat16)
    assert st.digest(half) == st.digest(half.view(torch.int16).numpy())


@pytest.mark.torch
def test_an_output_that_holds_an_element_twice_is_refused():
    import torch

    with pytest.raises(st.Error, match="image: "):
        st.Pipeline(image=[st.brightness(offset=1), st.center_crop(size=3)])(
            {"image": torch.from_numpy(IMAGE)[None]}, out={"image": torch.zeros(1, 1, 3, 3, 1).expand(1, 1, 3, 3, 3)})


@pytest.mark.monai
def test_a_meta_tensor_is_read():
    import torch
    from monai.data import MetaTensor

    made = array_of(MetaTensor(torch.from_numpy(IMAGE)), "suture")
    assert made.shape == IMAGE.shape and made.library == "torch"


def test_jax_is_never_written():
    jax = pytest.importorskip("jax")
    x = jax.device_put(IMAGE, jax.devices("cpu")[0])
    assert array_of(x, "suture").readonly
    with pytest.raises(st.Error, match="read-only"):
        st.Pipeline(image=[st.brightness(offset=1)])({"image": [IMAGE]}, out={"image": [x]})
    assert np.array_equal(x, IMAGE)
