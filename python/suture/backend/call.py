# SPDX-License-Identifier: Apache-2.0
"""This module calls the functions of include/suture/abi that are no chains. Like chains, they are compiled for their element
types."""
from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from . import compiler, jit
from ..arrays.batch import Items, bound_of
from .request import Request
from .encode import CPP_TYPES
from ..arrays.cuda import current
from ..arrays.dlpack import device_name
from ..arrays.memory import memory_like
from ..errors import Error
from .threads import threads_of

_EXECUTORS = {False: "suture::cpu", True: "suture::cuda"}
_FUNCTION = re.compile(r"suture::abi::[a-z0-9_]+(<[A-Za-z0-9_:<>, ]+>)?")
IMAGES = ("int8", "uint8", "int16", "uint16", "int32", "float16", "bfloat16", "float32", "bool")
LABELS = ("int8", "uint8", "int16", "uint16", "int32", "int64", "bool")


def element_type(items: Items, types: Sequence[str]) -> str:
    """Returns the C++ element type of arrays.

    Parameters
    ----------
    items : Items
        Arrays.
    types : sequence of str
        Names of the element types that are allowed.

    Returns
    -------
    str
        The type, such as "std::int16_t".

    Raises
    ------
    Error
        If the arrays have another type.
    """
    if items.dtype not in types:
        raise Error(f"{items.what}: expected elements of {', '.join(types)}, got {items.dtype}. Convert them first")
    return CPP_TYPES[items.dtype]


def executor_of(cuda: bool) -> str:
    """Returns the C++ type of the executor, the last template argument of a function."""
    return _EXECUTORS[cuda]


def function_source(header: str, function: str, what: str, cuda: bool = False) -> jit.Source:
    """Returns the source of a module with one C++ function, for `call_function`.

    Parameters
    ----------
    header : str
        Header that has the function, without its ending: "abi/mask" is abi/mask.hpp, and abi/mask.cuh for a device.
    function : str
        C++ function, of names from fixed tables, such as "suture::abi::body_mask<std::int16_t, suture::cpu>". It takes a
        `const suture::abi::request&`.
    what : str
        Name of the function in messages.
    cuda : bool
        Whether the function runs on a CUDA device.

    Returns
    -------
    Source
        The C++ source.

    Raises
    ------
    Error
        If `function` is more than a name with template arguments.
    """
    if not _FUNCTION.fullmatch(function):
        raise Error(f"suture: {what}: expected a function of suture::abi with its arguments, got {function!r}")
    return jit.Source(f"#include <suture/{header}.{'cuh' if cuda else 'hpp'}>\nSUTURE_ABI_FUNCTION({function})\n", what, cuda)


def device_source(made: jit.Source) -> jit.Source:
    """Returns the source of the same function for a CUDA device.

    Parameters
    ----------
    made : Source
        A function of arrays, for the CPU.

    Returns
    -------
    Source
        The C++ source for a device.
    """
    return jit.Source(made.text.replace(".hpp>", ".cuh>").replace(_EXECUTORS[False], _EXECUTORS[True]), made.what, True)


def runs_where_arrays_lie(made: jit.Source) -> bool:
    """Tests whether a function has an executor, and so runs on the device of its arrays; others run only on the CPU."""
    return _EXECUTORS[made.cuda] in made.text


def _check_devices(made: jit.Source, arrays: Sequence[Items]) -> None:
    """Refuses arrays on different devices, or on one where the function does not run."""
    for items in arrays:
        if items.first.on_cuda != made.cuda or items.device != arrays[0].device:
            raise Error(f"{items.what} lie on {device_name(items.device)}" + (
                f", {arrays[0].what.removeprefix('suture: ')} on {device_name(arrays[0].device)}: they lie on one"
                if items.device != arrays[0].device else " and are read on the host; pass them there"))


def _check_counts(arrays: Sequence[Items]) -> None:
    """Refuses arrays of fewer or more samples than the first have. C++ cannot compare them, since one record describes all samples
    of a stacked array."""
    for items in arrays[1:]:
        if items.count != arrays[0].count:
            first = arrays[0].what.rpartition(": ")[2]
            raise Error(f"{items.what}: expected {arrays[0].count} samples, as many as {first}, got {items.count}. Give one for each")


def call_function(made: jit.Source, *, numbers: Sequence[float] = (), lists: Sequence[Any] = (), results: Sequence[Any] = (),
                  inputs: Sequence[Items] = (), changed: Sequence[Items] = (), outputs: Sequence[tuple[bytes, int, int]] = (),
                  samples: int | None = None, ids: Any = None, seed: int = 0, epoch: int = 0, threads: int | None = None,
                  stream: int | None = None) -> None:
    """Runs the function of `function_source` on the device of its arrays.

    On a GPU a first call returns the bytes of workspace that the function needs, which the library of the first array
    allocates.

    Parameters
    ----------
    made : jit.Source
        Module of the function.
    numbers, lists, results
        Numbers in the order in which the function reads them, NumPy arrays that it reads, and NumPy arrays that it writes. The
        elements of a two-dimensional array are its rows.
    inputs, changed : sequence of Items
        Arrays that are read, and arrays that are changed in place, which are passed as the first outputs.
    outputs : sequence of bounds
        Arrays that are written, as `output_bound` returns them.
    samples : int, optional
        Number of samples. If omitted, it is that of the first array, and all arrays must have as many.
    ids, seed, epoch
        Ids of the samples, seed and epoch, which random draws depend on.
    threads : int, optional
        Number of threads on a CPU.
    stream : int, optional
        CUDA stream.

    Raises
    ------
    Error
        If arrays lie on different devices or differ in their number of samples, or the function refuses its arguments.
    """
    arrays = [*changed, *inputs]
    _check_devices(made, arrays)
    if samples is None:
        _check_counts(arrays)
    if made.cuda:  # for the GPU of the arrays, which need not be the current one
        made = replace(made, architecture=compiler.cuda_architecture(arrays[0].first.device[1]))
    module = jit.load(made)
    run = module.function("suture_call", ctypes.c_void_p)
    count = samples if samples is not None else (arrays[0].count if arrays else 0)

    def once(workspace: tuple[int, int]) -> None:
        request = Request(numbers=list(numbers), lists=lists, results=results, inputs=[bound_of(i) for i in inputs],
                          outputs=[*(bound_of(i) for i in changed), *outputs], samples=count, ids=ids, seed=seed, epoch=epoch,
                          threads=threads_of(threads), same_ids=True, stream=stream or 0,
                          workspace=workspace)
        module.check(run(request.address))

    if not made.cuda:
        once((0, 0))
        return
    need = ctypes.c_uint64()
    with current(arrays[0].first.device[1]):
        once((ctypes.addressof(need), 0))
        if need.value:
            memory, pointer = memory_like(arrays[0].first, need.value, stream or 0)
            once((pointer, need.value))
            del memory  # had to live until the call returned
