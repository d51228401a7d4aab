# SPDX-License-Identifier: Apache-2.0
"""This module runs the C++ functions of masks on lists of arrays, or on one stacked array."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.batch import Items, output_bound
from ..arrays.dlpack import array_of, stream_of
from ..arrays.memory import copy_of, empty_like_library
from ..arrays.volume import volumes_on
from ..backend.call import IMAGES, call_function, element_type, executor_of, function_source
from ..errors import Error

_VALUES = (*IMAGES, "int64")  # element types of masks
BYTES = ("uint8",)  # `types` of functions of uint8, which have no template argument for the element type


def choice_number(value: str, names: Sequence[str], what: str) -> int:
    """Returns the index of a name among names, and refuses others."""
    if value not in names:
        raise Error(f"suture: {what}: {value!r} is none of {', '.join(names)}")
    return names.index(value)


def check_bool(items: Items, value: float, what: str) -> None:
    """Refuses a value other than 0 and 1 for images of bool, which have no other."""
    if items.dtype == "bool" and value not in (0, 1):
        raise Error(f"{what}: expected 0 or 1 for images of bool, got {value}. Convert them to another type first")


def _outputs(items: Items, dtype: str) -> tuple[Any, tuple[bytes, int, int]]:
    """Allocates arrays of one channel, with the shape, library and device of the inputs. Returns them, and their records as
    output_bound does."""
    letters, like = items.letters, items.first
    plain = []
    for a in [like] if items.stacked else items.arrays:
        shape = list(a.shape)
        if "c" in letters:
            shape[letters.index("c") - len(letters)] = 1
        plain.append(empty_like_library(like.library, tuple(shape), dtype, like, items.what, items.stream))
    bound = output_bound([array_of(p, items.what, items.stream) for p in plain], letters, items.stacked)
    if items.stacked:
        return plain[0], bound
    return _as_given(items, plain), bound


def _as_given(items: Items, arrays: list[Any]) -> list[Any]:
    """Makes Volumes of results if the inputs are Volumes."""
    if items.volumes and items.grids:
        return volumes_on(arrays, items.order, items.grids, items.placed)
    return arrays


def copied(items: Items, name: str, layout: str | None) -> tuple[Any, Items]:
    """Copies images to be changed in place. Returns the copies and their Items."""
    copies = [copy_of(a, items.what, items.stream) for a in ([items.first] if items.stacked else items.arrays)]
    given = copies[0] if items.stacked else _as_given(items, copies)
    return given, Items(given, name, layout, items.stream)


def mask_source(name: str, types: Sequence[str], cuda: bool) -> Any:
    """Returns the source of a module with the function abi::NAME<types..., executor>."""
    return function_source("abi/mask", f"suture::abi::{name}<{', '.join([*types, executor_of(cuda)])}>", name, cuda)


def run_on_masks(name: str, given: Any, out_dtype: str | None, numbers: Sequence[float], *, layout: str | None,
                 result: tuple[Any, int] | None = None, types: Sequence[str] = _VALUES) -> tuple[Any, np.ndarray]:
    """Runs a function of abi/mask.hpp or abi/mask.cuh on images, on the device that they are on.

    out_dtype   element type of the outputs; None: the function writes none
    result      (type, number) of the values that the function returns for each image; None: it returns none
    types       element types that the images may have

    Returns the outputs, of the same library, or None, and an array with a row of values for each image.
    """
    items = given if isinstance(given, Items) else Items(given, name, layout, stream_of(given))
    element = element_type(items, types)
    output, outputs = None, []
    if out_dtype is not None:
        output, bound = _outputs(items, out_dtype)
        outputs.append(bound)
    kind, elements = result or (np.uint8, 0)
    found = np.zeros((items.count, elements), kind)
    call_function(mask_source(name, [] if types is BYTES else [element], items.first.on_cuda), numbers=numbers,
                  results=[found] if result else [], inputs=[items], outputs=outputs, stream=items.stream)
    return output, found
