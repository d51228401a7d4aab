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
from .pipeline import _Request, default_threads


def source(body: str, includes: Sequence[str], what: str, cuda: bool = False) -> jit.Source:
    """C++ whose function suture_call runs `body`; r is the request, v its numbers and lists."""
    lines = "".join(f"#include <suture/{i}>\n" for i in sorted({"abi/request.hpp", *includes}))
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
         samples: int | None = None, threads: int | None = None, stream: int = 0) -> None:
    """Runs what `source` made."""
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
                       default_threads() if threads is None else threads, stream or None, None, 0, 1)
    module.check(run(ctypes.addressof(request)))
