# SPDX-License-Identifier: Apache-2.0
"""This module accesses arrays of other libraries without a copy: those of NumPy and torch by their own interfaces, others by DLPack.
docs/python.md lists the accepted types."""
from __future__ import annotations

import atexit
import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Error

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# Device types of DLPack that are read, and the type that each is treated as: pinned memory as CPU memory, managed memory as CUDA
# memory.
_DEVICES = {CPU: CPU, CUDA_HOST: CPU, CUDA: CUDA, CUDA_MANAGED: CUDA}
_DEVICE_NAMES = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "ROCm's host", 14: "oneAPI", 15: "WebGPU",
                 16: "Hexagon", 17: "MAIA", 18: "Trainium"}
_DLPACK_MAJOR, _READ_ONLY = 1, 1
# Libraries whose arrays are read-only, whatever their exports say.
_IMMUTABLE = ("jax", "jaxlib", "tensorflow")
# Classes of torch whose memory has their values; other subclasses may store or interpret values differently.
_TENSORS = {"torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer", "monai.data.meta_tensor.MetaTensor",
            "torchvision.tv_tensors._image.Image", "torchvision.tv_tensors._mask.Mask", "torchvision.tv_tensors._video.Video"}

_BY_DTYPE: dict[Any, str] = {}
SIZES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2,
         "float32": 4, "float64": 8}
# Names of element types by type code and bits of DLPack.
_CODES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 16): "uint16",
          (2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16", (6, 8): "bool"}
_CODE_OF = {name: code for code, name in _CODES.items()}


class Array:
    """Describes an array by address, shape, strides in elements, type and device, and keeps it alive."""

    __slots__ = ("pointer", "shape", "strides", "dtype", "device", "readonly", "owner", "library")

    def __init__(self, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str,
                 device: tuple[int, int], readonly: bool, owner: Any, library: str) -> None:
        self.pointer, self.shape, self.strides, self.dtype = pointer, shape, strides, dtype
        self.device, self.readonly, self.owner, self.library = device, readonly, owner, library

    @property
    def on_cuda(self) -> bool:
        return self.device[0] == CUDA


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _Type),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", _Deleter), ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _numpy_name(dtype: np.dtype[Any], what: str) -> str:
    name = _BY_DTYPE.get(dtype)
    if name is None:
        if not dtype.isnative:
            raise Error(f"{what}: expected the byte order of this machine, got {dtype.str!r}. Pass "
                        "a.astype(a.dtype.newbyteorder('='))")
        name = dtype.name
        if name not in SIZES:
            raise Error(f"{what}: expected {', '.join(SIZES)}, got {dtype}. Pass a.astype(numpy.float32)")
        _BY_DTYPE[dtype] = name
    return name


def plain_numpy(x: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    """Returns an array as numpy.ndarray itself, if nothing is lost by that.

    Parameters
    ----------
    x : numpy.ndarray
        An array, a memory map, or a masked array in which nothing is masked.
    what : str
        How messages begin.

    Returns
    -------
    numpy.ndarray
        The same memory.

    Raises
    ------
    Error
        If values are masked, or another subclass gives the memory a meaning that would be lost.
    """
    kind = type(x)
    if kind is np.ndarray or kind is np.memmap:
        return x
    if isinstance(x, np.ma.MaskedArray):
        masked = int(np.count_nonzero(np.ma.getmaskarray(x)))
        if masked:
            raise Error(f"{what}: expected an array without a mask, got a masked array with {masked} masked values. Pass "
                        "a.filled(VALUE)")
        return np.asarray(x)
    raise Error(f"{what}: expected numpy.ndarray, got its subclass {kind.__module__}.{kind.__qualname__}, whose meaning would be "
                "dropped. Pass numpy.asarray(a)")


def check_aligned(pointer: int, name: str, what: str) -> None:
    """Refuses elements that do not begin at a multiple of their size."""
    if pointer % SIZES[name]:
        raise Error(f"{what}: expected {name} at addresses that are multiples of {SIZES[name]}, got {pointer:#x}. Pass a.copy()")


_HOST = (CPU, 0)  # the device of arrays in host memory
_steps: dict[Any, tuple[int, ...]] = {}  # strides in elements, by strides in bytes and element type


def steps_of(strides: tuple[int, ...], name: str, what: str) -> tuple[int, ...]:
    """Returns strides in elements; they are cached, since arrays repeat their strides."""
    size = SIZES[name]
    if any(s % size for s in strides):
        raise Error(f"{what}: expected strides of whole elements of {name}, got {strides} bytes. Pass a.copy()")
    if len(_steps) >= 4096:
        _steps.clear()
    made = _steps[strides, name] = tuple([s // size for s in strides])
    return made


def _data_of(x: np.ndarray[Any, Any]) -> tuple[int, bool]:
    """Returns the address of an array and whether it is read-only. The buffer protocol is tried first, since __array_interface__
    makes a dict and takes three times as long."""
    try:
        return _address(_buffer(x)), False  # type: ignore[arg-type]  # an array is a buffer
    except (TypeError, ValueError, BufferError):  # read-only, strided or empty
        pointer, readonly = x.__array_interface__["data"]
        return pointer, readonly


_address, _buffer = ctypes.addressof, ctypes.c_char.from_buffer


def array_of(x: Any, what: str, stream: int | None = None) -> Array:
    """Describes an array without a copy.

    Parameters
    ----------
    x : numpy.ndarray, torch.Tensor or an object with __dlpack__
        The array. The result keeps it alive.
    what : str
        How messages begin.
    stream : int, optional
        CUDA stream that will read the memory.

    Returns
    -------
    Array
        Its address, shape, strides, type and device.

    Raises
    ------
    Error
        If its memory does not have its values, or has elements of a type that is not read.
    """
    if isinstance(x, np.ndarray):
        if type(x) is not np.ndarray:
            x = plain_numpy(x, what)
        name = _BY_DTYPE.get(x.dtype) or _numpy_name(x.dtype, what)
        at = x.strides, name
        steps = _steps.get(at)
        if steps is None:
            steps = steps_of(x.strides, name, what)
        pointer, readonly = _data_of(x)
        if pointer % SIZES[name]:
            check_aligned(pointer, name, what)
        return Array(pointer, x.shape, steps, name, _HOST, readonly, x, "numpy")
    if is_torch(x):
        return _torch_array(x, what)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise Error(f"{what}: expected a NumPy array, a torch tensor or an array with __dlpack__, got {_class_name(x)}. Pass "
                    "numpy.asarray(a)")
    return _dlpack_array(x, what, stream)


def _class_name(x: Any) -> str:
    kind = type(x)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def alike(arrays: Sequence[Any], known: dict[int, Array], what: str,
          stream: int | None) -> list[tuple[int, tuple[int, ...], tuple[int, ...], str]]:
    """Returns (address, shape, strides, name) of each array. Strides are in bytes if `name` is the element type, in elements
    if it is empty. Arrays of another type or device than the first, known[0], are refused. Arrays of other libraries are
    described once and kept in `known` as long as they are read."""
    first = known[0]
    torch = sys.modules.get("torch")
    tensor, strided = (None, None) if torch is None else (torch.Tensor, torch.strided)
    on_cpu, name, kind = first.device == _HOST, first.dtype, getattr(arrays[0], "dtype", None)
    size = SIZES[name]
    made = []
    for i, x in enumerate(arrays):
        # Plain arrays of NumPy and torch, the usual case, need no Array.
        if type(x) is np.ndarray and x.dtype == kind:
            try:  # _data_of, inlined
                pointer = _address(_buffer(x))  # type: ignore[arg-type]
            except (TypeError, ValueError, BufferError):
                pointer = x.__array_interface__["data"][0]
            if pointer % size:
                check_aligned(pointer, name, what)
            made.append((pointer, x.shape, x.strides, name))
            continue
        elif (type(x) is tensor and x.dtype is kind and x.is_cpu and on_cpu and x.layout is strided and not x.requires_grad
                and not x.is_neg()):
            pointer = x.data_ptr()
            if pointer and not pointer % size:
                made.append((pointer, x.shape, x.stride(), ""))
                continue
        if i not in known:
            known[i] = array_of(x, what, stream)
        a = known[i]
        if a.dtype != name:
            raise Error(f"{what}: sample {i} is {a.dtype}, the first {name}. Convert them to one type, or call for each")
        if a.device != first.device:
            raise Error(f"{what}: sample {i} is on {device_name(a.device)}, the first on {device_name(first.device)}. "
                        "Move all arrays to one device")
        made.append((a.pointer, a.shape, a.strides, ""))
    return made


def device_name(device: tuple[int, int]) -> str:
    """Returns the name of a DLPack device."""
    return f"cuda:{device[1]}" if device[0] == CUDA else "the CPU"


def is_torch(x: Any) -> bool:
    """Tests whether an array is a tensor of torch, or of a subclass."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def voxels_of(x: Any) -> Any:
    """Returns the array of a Volume, and other arrays as they are. MONAI's MetaTensor also has an `array`: a copy on the host."""
    return x if isinstance(x, np.ndarray) or is_torch(x) else getattr(x, "array", x)


def plain_torch(x: Any, what: str) -> Any:
    """Returns a tensor as torch.Tensor itself, and refuses subclasses whose meaning would be lost by that."""
    torch = sys.modules["torch"]
    if type(x) is torch.Tensor:
        return x
    if _class_name(x) not in _TENSORS:
        raise Error(f"{what}: expected torch.Tensor, got its subclass {_class_name(x)}, which may mean other values than its "
                    "memory has. Pass x.as_subclass(torch.Tensor) if it holds them")
    return x.as_subclass(torch.Tensor)


_TORCH: dict[Any, str] = {}


def _torch_array(x: Any, what: str) -> Array:
    torch = sys.modules["torch"]
    if not _TORCH:
        _TORCH.update({getattr(torch, n): n for n in SIZES if hasattr(torch, n)})
    if type(x) is not torch.Tensor:
        plain_torch(x, what)
    if x.is_nested:
        raise Error(f"{what}: expected a tensor of one shape, got a nested one. Pass a list, x.unbind()")
    if x.layout is not torch.strided:
        raise Error(f"{what}: a tensor of the layout {x.layout} has no strides; pass x.to_dense()")
    if x.requires_grad:
        raise Error(f"{what}: the tensor requires gradients and the operations are not differentiable; pass x.detach()")
    name = _TORCH.get(x.dtype)
    if name is None:
        way = "x.dequantize()" if x.is_quantized else "torch.view_as_real(x)" if x.is_complex() else "x.to(torch.float32)"
        raise Error(f"{what}: expected {', '.join(SIZES)}, got {x.dtype}. Pass {way}")
    if x.is_neg():
        raise Error(f"{what}: expected a tensor whose memory has its values, got one that torch negates when it is read. Pass "
                    "x.resolve_neg()")
    device = _HOST
    if not x.is_cpu:
        if not x.is_cuda or torch.version.hip:
            raise Error(f"{what}: expected a tensor on the CPU or on CUDA, got one on {x.device}. "
                        + ("It has no values" if x.is_meta else "Pass x.cpu()"))
        device = (CUDA, x.device.index or 0)
    try:
        pointer = x.data_ptr()
    except RuntimeError:  # a tensor without storage, such as that of a functional transform
        pointer = 0
    if pointer == 0 and x.numel() > 0:
        raise Error(f"{what}: the tensor's memory was freed, or it never had any; pass x.clone()")
    check_aligned(pointer, name, what)
    return Array(pointer, tuple(x.shape), x.stride(), name, device, False, x, "torch")


def _dlpack_array(x: Any, what: str, stream: int | None) -> Array:
    library = type(x).__module__.split(".")[0]
    kind, number = (int(v) for v in x.__dlpack_device__())
    if kind not in _DEVICES:
        raise Error(f"{what}: expected an array on the CPU or on CUDA, got one on {_DEVICE_NAMES.get(kind, 'another device')} "
                    f"(DLPack device {kind}). Pass a copy on the CPU")
    device = (CUDA, number) if _DEVICES[kind] == CUDA else _HOST
    asked: dict[str, Any] = {}
    if kind == CUDA and stream is not None:
        asked["stream"] = stream if stream != 0 else 1
    try:
        try:
            capsule = x.__dlpack__(max_version=(_DLPACK_MAJOR, 0), **asked)
        except TypeError:
            capsule = x.__dlpack__(**asked)
    except BufferError as problem:
        raise Error(f"{what}: {_class_name(x)} does not hand over its memory: {problem}. Pass a copy") from None
    readonly = library in _IMMUTABLE
    # The capsule is not renamed, so its producer still owns it, and it is freed with `owner`.
    if _api.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_api.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
        if versioned.major != _DLPACK_MAJOR:  # another major version has another layout
            raise Error(f"{what}: expected DLPack {_DLPACK_MAJOR}, got version {versioned.major}.{versioned.minor} of "
                        f"{_class_name(x)}. Pass a NumPy array or a torch tensor")
        tensor, readonly = versioned.tensor, readonly or bool(versioned.flags & _READ_ONLY)
    elif _api.PyCapsule_IsValid(capsule, b"dltensor"):
        tensor = _Managed.from_address(_api.PyCapsule_GetPointer(capsule, b"dltensor")).tensor
    else:
        raise Error(f"{what}: expected a DLPack capsule that nobody has taken yet, got {capsule!r} of {_class_name(x)}. Pass a copy")
    return _tensor_array(tensor, what, device, readonly, (x, capsule), library)


def _tensor_array(tensor: _Tensor, what: str, device: tuple[int, int], readonly: bool, owner: Any, library: str) -> Array:
    """Describes a DLTensor after checking each of its fields."""
    code = tensor.dtype.code, tensor.dtype.bits
    if tensor.dtype.lanes != 1 or code not in _CODES:
        raise Error(f"{what}: expected elements of {', '.join(SIZES)}, got DLPack code {code[0]} of {code[1]} bits and "
                    f"{tensor.dtype.lanes} lanes. Pass a.astype(numpy.float32)")
    if _DEVICES.get(tensor.device.type) != device[0]:
        raise Error(f"{what}: __dlpack_device__ names another device than the tensor, {tensor.device.type}. Pass a copy on the CPU")
    rank = tensor.ndim
    if rank < 0 or (rank > 0 and not tensor.shape):
        raise Error(f"{what}: the DLPack tensor has {rank} axes and no shape. Pass a NumPy array")
    shape = tuple(tensor.shape[:rank]) if rank else ()
    if any(n < 0 for n in shape):
        raise Error(f"{what}: the DLPack tensor has the shape {shape}. Pass a NumPy array")
    strides = dense_strides(shape)
    if rank and tensor.strides:
        strides = tuple(tensor.strides[:rank])
    name = _CODES[code]
    pointer = (tensor.data or 0) + tensor.byte_offset if tensor.data else 0
    if pointer == 0 and 0 not in shape:
        raise Error(f"{what}: the DLPack tensor of shape {shape} has no memory. Pass a copy")
    check_aligned(pointer, name, what)
    return Array(pointer, shape, strides, name, device, readonly, owner, library)


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides in elements of a dense array, whose last axis is the fastest."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def stream_of(given: Any, device: Any = None) -> int:
    """Returns the current CUDA stream of the library of arrays or Volumes on the device of the first, or that of torch on a device
    that they will be copied to; 0 on the CPU."""
    first: Any = given[0] if isinstance(given, (list, tuple)) and given else given
    first = voxels_of(first)
    if device is not None and str(device).startswith("cuda"):
        import torch

        return int(torch.cuda.current_stream(device).cuda_stream)
    if getattr(first, "is_cuda", False):
        import torch

        return int(torch.cuda.current_stream(first.device).cuda_stream)
    if type(first).__module__.split(".")[0] == "cupy":
        import cupy

        with first.device:  # each device has a current stream
            return int(cupy.cuda.get_current_stream().ptr)
    return 0


def dense(x: Any, dtype: str | None = None) -> Any:
    """Makes tensors of torch, and arrays on the CPU, dense and of type `dtype`, if that is given. Arrays of other libraries become
    NumPy arrays on the CPU and are returned unchanged on a GPU, for check_dense to examine."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return x.detach().resolve_neg().to(x.dtype if dtype is None else getattr(torch, dtype)).contiguous()
    if hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] != CPU:
        return x
    return np.ascontiguousarray(plain_numpy(x, "suture") if isinstance(x, np.ndarray) else x, dtype)


def as_numpy(x: Any, what: str) -> np.ndarray[Any, Any]:
    """Returns an array of the host as a NumPy array of the same type, without a copy.

    Parameters
    ----------
    x : numpy.ndarray, torch.Tensor or an object with __dlpack__
        An array in host memory.
    what : str
        How messages begin.

    Returns
    -------
    numpy.ndarray
        The same values; those of bfloat16 need ml_dtypes.

    Raises
    ------
    Error
        If its memory does not have its values, or is on a GPU.
    """
    if isinstance(x, np.ndarray):
        return plain_numpy(x, what)
    known = array_of(x, what)
    if known.on_cuda:
        raise Error(f"{what}: expected an array in host memory, got one on {device_name(known.device)}. Pass a copy on the CPU")
    if known.library != "torch":
        return np.from_dlpack(x)
    torch = sys.modules["torch"]
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(bfloat16(what))  # type: ignore[no-any-return]
    return x.numpy()  # type: ignore[no-any-return]


def numbers_of(x: Any, what: str, dtype: Any) -> np.ndarray[Any, Any]:
    """Converts a list of numbers, or an array of the host that as_numpy takes, to a NumPy array of a type."""
    return np.asarray(x if isinstance(x, (list, tuple, int, float)) else as_numpy(x, what), dtype)


def bfloat16(what: str) -> Any:
    """Returns the NumPy type of bfloat16, which the package ml_dtypes has."""
    try:
        import ml_dtypes
    except ImportError:
        raise Error(f"{what}: numpy has no bfloat16; install ml_dtypes, or pass torch tensors") from None
    return ml_dtypes.bfloat16


def is_dense(a: Array) -> bool:
    """Tests whether an array has the strides of dense_strides, except along axes of one element."""
    return all(n == 1 or s == d for n, s, d in zip(a.shape, a.strides, dense_strides(a.shape)))


def check_dense(a: Array, what: str, dtype: str | None = None) -> None:
    """Refuses an array that is not dense, or not of type `dtype` if that is given."""
    if not is_dense(a) or dtype not in (None, a.dtype):
        raise Error(f"{what}: a dense array{f' of {dtype}' if dtype else ''} is needed; this is {a.dtype} of shape {a.shape} and "
                    f"strides {a.strides}")


@dataclass
class _Held:
    """The owner that keeps an exported capsule's memory alive until its consumer is done."""

    managed: _Managed
    shape: Any
    strides: Any
    owner: Any


_held: dict[int, _Held] = {}
_capsules: set[int] = set()  # by their addresses


def _forget(pointer: int) -> None:
    _held.pop(pointer, None)


_release = _Deleter(_forget)

# A capsule that is being destroyed must not be referenced as an object, so these functions take its address.
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_inside = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_set_destructor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(("PyCapsule_SetDestructor", _api))


def _end_unread(capsule: int) -> None:
    """Frees exported memory when a capsule is destroyed that no consumer has taken; a consumer renames the capsule that it takes."""
    _capsules.discard(capsule)
    if _is_capsule(capsule, b"dltensor"):
        _forget(_inside(capsule, b"dltensor"))


_unread = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_end_unread)


def capsule_of(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, device: tuple[int, int],
               owner: Any) -> Any:
    """Makes a DLPack capsule over memory that `owner` keeps alive."""
    n = len(shape)
    c_shape, c_strides = (ctypes.c_int64 * n)(*shape), (ctypes.c_int64 * n)(*strides)
    code, bits = _CODE_OF[dtype]
    managed = _Managed(_Tensor(pointer, _Device(*device), n, _Type(code, bits, 1), c_shape, c_strides, 0), None, _release)
    address = ctypes.addressof(managed)
    _held[address] = _Held(managed, c_shape, c_strides, owner)
    made = _api.PyCapsule_New(address, b"dltensor", ctypes.cast(_unread, ctypes.c_void_p))
    _capsules.add(id(made))
    return made


@atexit.register
def _leave() -> None:
    """Keeps exported memory when the interpreter ends, since deleters cannot call Python any more."""
    for capsule in _capsules:
        _set_destructor(capsule, None)
    for held in _held.values():
        held.managed.deleter = _Deleter()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
