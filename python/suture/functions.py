# SPDX-License-Identifier: Apache-2.0
"""Functions of the library that are no chains: a few lines of C++ around each, compiled as chains are."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import jit
from .batch import CBound, Items, bound_of
from .chain import CList, address_of
from .dlpack import array_of, device_name, empty_like_library
from .errors import Error
from .pipeline import _Request, default_threads


def source(body: str, includes: Sequence[str], what: str, cuda: bool = False) -> jit.Source:
    """C++ whose function suture_call runs `body`; r is the request, v its numbers and lists."""
    lines = "".join(f"#include <suture/{i}>\n" for i in sorted({"abi/request.hpp", *includes, *(["exec/cuda/architecture.cuh"] if cuda else [])}))
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
    for items in inputs:
        if items.first.on_cuda != made.cuda or items.device != inputs[0].device:
            raise Error(f"{items.what} lie on {device_name(items.device)}" + (
                f", {inputs[0].what.removeprefix('suture: ')} on {device_name(inputs[0].device)}: they lie on one"
                if items.device != inputs[0].device else " and are read on the host; pass them there"))
    module = jit.load(made)
    run = module.function("suture_call", ctypes.c_void_p)
    values = np.array(list(numbers) or [0.0], np.float64)
    c_lists = (CList * max(len(lists), 1))(*(CList(address_of(m), n) for m, n in lists))
    bounds = [*(bound_of(i) for i in inputs), *outputs]
    arrays = (CBound * max(len(bounds), 1))(*(CBound(*b) for b in bounds))
    all_ids = None if ids is None else np.array(ids, np.uint64)
    count = samples if samples is not None else (inputs[0].count if inputs else 0)
    request = _Request(address_of(values), ctypes.addressof(c_lists), ctypes.addressof(arrays), count, seed,
                       None if all_ids is None else address_of(all_ids), epoch, 0, 0,
                       default_threads() if threads is None else threads, stream or None, workspace[0] or None,
                       workspace[1], 1)
    module.check(run(ctypes.addressof(request)))


# On a device a body says first how many bytes it wants, in the last list, and runs with as many at `memory`.
DEVICE = """const auto stream = static_cast<cudaStream_t>(r.stream);
    auto* const memory = static_cast<std::byte*>(r.workspace);
    const auto enough = [&](std::size_t bytes) {
      *const_cast<std::uint64_t*>(v.s<std::uint64_t>(@).data()) = bytes;
      return r.workspace_bytes >= bytes;
    };
    const auto up = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    // Waits, since what comes back is read by Python.
    const auto copy_to_host = [&](const void* to, const void* from, std::size_t bytes) {
      suture::check_cuda(cudaMemcpyAsync(const_cast<void*>(to), from, bytes, cudaMemcpyDeviceToHost, stream), "copy");
      suture::check_cuda(cudaStreamSynchronize(stream), "copy");
    };
    """


def device_source(body: str, includes: Sequence[str], what: str, lists: int) -> jit.Source:
    """`source` of a body for a device, which has `lists` lists of its own."""
    return source(DEVICE.replace("@", str(lists)) + body, includes, what, True)


def call_on_device(made: jit.Source, *, lists: Sequence[tuple[Any, int]], inputs: Sequence[Items], stream: int, **settings: Any) -> None:
    """Runs what `device_source` made, with memory of the library that the inputs came from."""
    need = np.zeros(1, np.uint64)
    call(made, lists=[*lists, (need, 1)], inputs=inputs, stream=stream, **settings)
    like = inputs[0].first
    memory = empty_like_library(like.library, (int(need[0]),), "uint8", like, "suture: workspace")
    at = array_of(memory, "suture: workspace", stream)
    call(made, lists=[*lists, (need, 1)], inputs=inputs, stream=stream, workspace=(at.pointer, int(need[0])), **settings)
