# SPDX-License-Identifier: Apache-2.0
"""This module calls the functions that depend on no element type. One compiled module has all of them."""
from __future__ import annotations

import ctypes
from typing import Any

from . import jit
from .request import Request

SOURCE = jit.Source("#include <suture/abi/plain.hpp>\nSUTURE_ABI_PLAIN_MODULE\n", "functions that no element type changes")


def function(name: str) -> Any:
    """Returns the function `name` of the module, which takes the address of a request."""
    return jit.load(SOURCE).function("suture_" + name, ctypes.c_void_p)


def call_plain(name: str, **parts: Any) -> None:
    """Runs a function of the module.

    Parameters
    ----------
    name : str
        One of the names that SUTURE_ABI_PLAIN_MODULE of abi/plain.hpp lists.
    **parts
        Parts of the request, as `Request` takes them.

    Raises
    ------
    Error
        If the function refuses its arguments.
    """
    made = Request(**parts)  # keeps its memory alive during the call
    jit.load(SOURCE).check(function(name)(made.address))
