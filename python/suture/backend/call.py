# SPDX-License-Identifier: Apache-2.0
"""Functions of the library that are no chains: a few lines of C++ around each, compiled as chains are."""
from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

from . import jit
from ..arrays.batch import Items, bound_of
from .request import Request
from .encode import CPP_TYPES
from ..arrays.dlpack import device_name, memory_like
from ..errors import Error
from ..pipeline.plan import default_threads


_EXECUTORS = {False: "suture::cpu", True: "suture::cuda"}
_FUNCTION = re.compile(r"suture::abi::[a-z0-9_]+(<[A-Za-z0-9_:<>, ]+>)?")


IMAGES = ("int8", "uint8", "int16", "uint16", "int32", "float16", "bfloat16", "float32", "bool")
LABELS = ("int8", "uint8", "int16", "uint16", "int32", "int64", "bool")


def element_type(items: Items, types: Sequence[str]) -> str:
    """The C++ element type of arrays.

    Parameters
    ----------
    items : Items
        Arrays.
    types : sequence of str
        Names of the element types that are allowed.

    Raises
    ------
    Error
        If the arrays have another type.
    """
    if items.dtype not in types:
        raise Error(f"{items.what}: expected elements of {', '.join(types)}, got {items.dtype}. Convert them first")
    return CPP_TYPES[items.dtype]


def executor_of(cuda: bool) -> str:
    """The C++ type of the executor that a typed function is compiled for: its last template argument."""
    return _EXECUTORS[cuda]


def function_source(header: str, function: str, what: str, cuda: bool = False) -> jit.Source:
    """The module of one typed C++ function, which `call_function` runs.

    Parameters
    ----------
    header : str
        Header that has the function, without its ending: "abi/mask" is abi/mask.hpp, and abi/mask.cuh for a device.
    function : str
        Type expression from closed tables, as in "suture::abi::body_mask<std::int16_t, suture::cpu>". Its
        `call(const suture::abi::request&)` is what runs.
    what : str
        Name of the function, for people.
    cuda : bool
        Whether the function runs on a CUDA device.

    Raises
    ------
    Error
        If `function` is more than a name with template arguments.
    """
    if not _FUNCTION.fullmatch(function):
        raise Error(f"suture: {what}: expected a type of suture::abi with its arguments, got {function!r}")
    return jit.Source(f"#include <suture/{header}.{'cuh' if cuda else 'hpp'}>\nSUTURE_ABI_FUNCTION({function})\n", what, cuda)


def _check_place(made: jit.Source, arrays: Sequence[Items]) -> None:
    """Refuses arrays that lie on different devices, or where the function does not run."""
    for items in arrays:
        if items.first.on_cuda != made.cuda or items.device != arrays[0].device:
            raise Error(f"{items.what} lie on {device_name(items.device)}" + (
                f", {arrays[0].what.removeprefix('suture: ')} on {device_name(arrays[0].device)}: they lie on one"
                if items.device != arrays[0].device else " and are read on the host; pass them there"))


def call_function(made: jit.Source, *, numbers: Sequence[float] = (), lists: Sequence[Any] = (), results: Sequence[Any] = (),
                  inputs: Sequence[Items] = (), changed: Sequence[Items] = (), outputs: Sequence[tuple[bytes, int, int]] = (),
                  samples: int | None = None, ids: Any = None, seed: int = 0, epoch: int = 0, threads: int | None = None,
                  stream: int | None = None) -> None:
    """Runs what `function_source` made, where its arrays lie.

    On a device the function is asked first how much memory it needs. That memory comes from the library of the
    first array.

    Parameters
    ----------
    made : jit.Source
        Module of the function.
    numbers, lists, results
        Numbers in the order in which the function reads them; NumPy arrays that it reads; NumPy arrays that it fills. The
        rows of a two-dimensional array are its elements.
    inputs, changed : sequence of Items
        Arrays that are read, and arrays that are changed where they lie (reader::inout, ahead of reader::output).
    outputs : sequence of bounds
        Arrays that are written, as `output_bound` returns them.
    samples : int, optional
        Number of samples; that of the first array if omitted.
    ids, seed, epoch
        Random numbers depend on these.
    threads : int, optional
        Number of threads on a CPU.
    stream : int, optional
        CUDA stream.

    Raises
    ------
    Error
        If arrays lie on different devices, or the function refuses its arguments.
    """
    arrays = [*changed, *inputs]
    _check_place(made, arrays)
    module = jit.load(made)
    run = module.function("suture_call", ctypes.c_void_p)
    count = samples if samples is not None else (arrays[0].count if arrays else 0)

    def once(workspace: tuple[int, int]) -> None:
        request = Request(numbers=list(numbers), lists=lists, results=results, inputs=[bound_of(i) for i in inputs],
                          outputs=[*(bound_of(i) for i in changed), *outputs], samples=count, ids=ids, seed=seed, epoch=epoch,
                          threads=default_threads() if threads is None else threads, same_ids=True, stream=stream or 0,
                          workspace=workspace)
        module.check(run(request.address))

    if not made.cuda:
        once((0, 0))
        return
    need = ctypes.c_uint64()
    once((ctypes.addressof(need), 0))
    if need.value:
        memory, pointer = memory_like(arrays[0].first, need.value, stream or 0)
        once((pointer, need.value))
        del memory  # it lives until the call is made


def source(body: str, includes: Sequence[str], what: str, cuda: bool = False) -> jit.Source:
    """C++ whose function suture_call runs `body`; r is the request, v its numbers and lists."""
    lines = "".join(f"#include <suture/{name}>\n" for name in sorted({"abi/request.hpp", *includes}))
    return jit.Source(f"""// A function of suture, compiled for Python.
{lines}
SUTURE_ABI const char* suture_error() {{ return suture::abi::last_error().c_str(); }}
SUTURE_ABI int suture_call(const suture::abi::request* request) {{
  return suture::abi::guarded([&] {{
    namespace abi = suture::abi;
    [[maybe_unused]] const abi::request& r = *request;
    [[maybe_unused]] const abi::numbers v(r);
    {body.strip()}
  }});
}}
""", what, cuda)


def call(made: jit.Source, *, numbers: Sequence[float] = (), lists: Sequence[tuple[Any, int]] = (),
         inputs: Sequence[Items] = (), outputs: Sequence[tuple[bytes, int, int]] = (), seed: int = 0, epoch: int = 0, ids: Any = None,
         samples: int | None = None, threads: int | None = None, stream: int = 0, workspace: tuple[int, int] = (0, 0)) -> None:
    """Runs what `source` made."""
    _check_place(made, inputs)
    module = jit.load(made)
    run = module.function("suture_call", ctypes.c_void_p)
    count = samples if samples is not None else (inputs[0].count if inputs else 0)
    request = Request(numbers=list(numbers), lists=[(m, n) for m, n in lists], inputs=[bound_of(i) for i in inputs], outputs=outputs,
                      samples=count, ids=ids, seed=seed, epoch=epoch, threads=default_threads() if threads is None else threads,
                      stream=stream, workspace=workspace, same_ids=True)
    module.check(run(request.address))


def executor_source(name: str, body: str, cuda: bool, *, host: Sequence[str], device: Sequence[str], start: str = "",
                    result: str = "", workspace: str = "0", table: str = "") -> jit.Source:
    """`source` of a body that finds `exec`, a suture::cpu or a suture::cuda, for call_there.

    host, device   headers, those of the device beside those of the host
    start          C++ before it, whose names the body and the two sizes may use
    result         type of list 0, which the body writes by the name `results`, where the executor writes
    workspace      C++ of the bytes that the executor needs on a device
    table          C++ of the bytes that the body itself needs and finds as `table`, where the executor writes
    """
    if not cuda:
        lines = [start, "const suture::cpu exec{.threads = r.threads};"]
        if result:
            lines.append(f"const std::span<{result}> results(const_cast<{result}*>(v.s<{result}>(0).data()), v.s<{result}>(0).size());")
        if table:
            lines.append(_HOST_TABLE.replace("@", table))
        return source("\n    ".join([*lines, body]), host, name)
    lines = [start, _DEVICE.replace("@result", f"v.s<{result}>(0).size_bytes()" if result else "std::size_t{0}")
             .replace("@memory", table or workspace)]
    if result:
        lines.append(f"const std::span<{result}> results(reinterpret_cast<{result}*>(memory), v.s<{result}>(0).size());")
    if table:
        lines.append("const std::span<std::byte> table = exec.workspace;")
    lines.append(body)
    if result:
        lines.append(_TO_HOST.replace("@", result))
    return source("\n    ".join(lines), [*host, *device, "exec/cuda/architecture.cuh", "exec/cuda/check_cuda.cuh"], name, True)


_HOST_TABLE = """const std::size_t table_bytes = @;
    std::vector<std::byte> memory(table_bytes + 255);
    void* aligned = memory.data();
    std::size_t space = memory.size();
    const std::span<std::byte> table(static_cast<std::byte*>(std::align(256, table_bytes, aligned, space)), table_bytes);"""

# Where there is no memory yet, how much is needed is written to where it would be.
_DEVICE = """const std::size_t kept = (@result + 255) / 256 * 256, need = kept + (@memory);
    if (r.workspace_bytes < need) {
      *static_cast<std::uint64_t*>(r.workspace) = need;
      return;
    }
    auto* const memory = need == 0 ? nullptr : static_cast<std::byte*>(r.workspace);
    const suture::cuda exec{static_cast<cudaStream_t>(r.stream), {memory + kept, need - kept}};"""

# Waits, since results are read by Python.
_TO_HOST = """suture::check_cuda(cudaMemcpyAsync(const_cast<@*>(v.s<@>(0).data()), results.data(), results.size_bytes(),
                                       cudaMemcpyDeviceToHost, exec.stream), "copy");
    suture::check_cuda(cudaStreamSynchronize(exec.stream), "copy");"""


def call_there(made: jit.Source, *, inputs: Sequence[Items], stream: int | None, **settings: Any) -> None:
    """Runs what `executor_source` made where the inputs lie; memory is of the library that they came from."""
    if not made.cuda:
        call(made, inputs=inputs, **settings)
        return
    stream = stream or 0
    need = ctypes.c_uint64()
    call(made, inputs=inputs, stream=stream, workspace=(ctypes.addressof(need), 0), **settings)
    if need.value:
        _memory, pointer = memory_like(inputs[0].first, need.value, stream)  # held until the call is made
        call(made, inputs=inputs, stream=stream, workspace=(pointer, need.value), **settings)
