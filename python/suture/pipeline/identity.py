# SPDX-License-Identifier: Apache-2.0
"""A draw is identified by an id of 64 bits for each sample, a seed and an epoch."""
from __future__ import annotations

import hashlib
import re
import reprlib
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ..arguments import check_calls, index_of
from ..errors import Error

_IDS, _HASHES = 1 << 64, 1 << 63  # ends of the ranges of ids and of hashes; an int64 holds a hash


@check_calls
def sample_id(key: str | int, *, draw: int = 0) -> int:
    """Returns the id that the draws of a sample depend on.

    Parameters
    ----------
    key : str or int
        Name or number of the sample. A whole number in 0 .. 2^64 - 1 is the id itself; a string gets the first 63 bits of its
        SHA-256, so that a tensor of int64 holds it.
    draw : int, default 0
        Number of the use, from 0, where a sample is used several times in an epoch. Each has an id of its own.

    Returns
    -------
    int
        The id.

    Raises
    ------
    Error
        If the key is neither a string nor a whole number that fits, or the draw does not fit.

    Examples
    --------
    >>> st.sample_id(17)
    17
    >>> st.sample_id("case 17") == st.sample_id("case 17", draw=1)
    False
    """
    if isinstance(key, str):
        plain = _hashed(key.encode("utf-8", "surrogateescape"))  # names of files may hold bytes that are no UTF-8
    elif not isinstance(key, bool) and (number := index_of(key)) is not None:
        if not 0 <= number < _IDS:
            raise Error(f"suture: sample_id: {number} is not in 0 .. 2^64 - 1")
        plain = number
    else:
        raise Error(f"suture: sample_id: {key!r} is neither a string nor a whole number")
    use = index_of(draw)
    if use is None or not 0 <= use < _IDS:
        raise Error(f"suture: sample_id: draw: expected 0 .. 2^64 - 1, got {draw}. Number the uses of a case from 0 on")
    return _hashed(plain.to_bytes(8, "little") + use.to_bytes(8, "little")) if use else plain


def _hashed(text: bytes) -> int:
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") % _HASHES


class Repeats:
    """Warns once if a sample is used again in the same epoch, so that its draws repeat.

    It compares with the first sample alone, which every pass through a data set uses again.
    """

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None
        self._said = False

    def look(self, seed: int, ids: Sequence[int], way: str) -> None:
        """Looks for the first sample in a batch that was drawn without an epoch. `way` says how to pass one."""
        if self._said:
            return
        if self._first is None:
            self._first = seed, ids[0]
        elif self._first[0] == seed and self._first[1] in ids:
            self._said = True
            warnings.warn(f"suture: epoch: expected another one each time that a sample is used, got none, so its draws repeat. {way}",
                          stacklevel=_frames_to_caller())


def _frames_to_caller() -> int:
    """Returns the `stacklevel` of a warning for the line that called the package."""
    count, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("suture."):
        count, frame = count + 1, frame.f_back
    return count


def _plain(key: Any) -> Any:
    """Converts a number of NumPy or torch to one of Python."""
    return key.item() if hasattr(key, "item") else key


def _listed(given: Any) -> list[Any]:
    """Returns ids that are in no list, such as a single one or an array, as a list."""
    if isinstance(given, (bytes, bytearray)):
        raise Error(f"suture: id: expected strings or whole numbers, got {type(given).__name__}. Decode it")
    if isinstance(given, (str, int)) or getattr(given, "shape", None) == ():
        given = [given]
    device = getattr(given, "device", None)
    if getattr(given, "is_cuda", False) or (device is not None and "cuda" in str(device)):
        raise Error("suture: ids lie on a GPU and reading them would make it wait; keep them on the host, for example as strings, which "
                    "stay there when a batch is moved to the GPU")
    listed: list[Any] = given.tolist() if hasattr(given, "tolist") else list(given)
    return listed


def ids_of(given: Any, samples: int) -> list[int]:
    """Returns the ids of a batch from its entry "id": strings or whole numbers, or an array of those."""
    keys: Sequence[Any] = given if isinstance(given, list) else _listed(given)
    if len(keys) != samples:
        raise Error(f"suture: {len(keys)} ids for {samples} samples; each needs one")
    if set(map(type, keys)) == {int} and min(keys) >= 0 and max(keys) < _IDS:
        return list(keys)
    ids = []
    for key in keys:
        if getattr(key, "is_cuda", False):
            raise Error("suture: ids lie on a GPU and reading them would make it wait; keep them on the host")
        known = type(key) is int and 0 <= key < _IDS
        ids.append(key if known else sample_id(_plain(key)))
    return ids


def check_draws(seed: Any, epoch: Any, what: str = "suture: plan") -> tuple[int, int]:
    """Returns a seed and an epoch as numbers of Python, and refuses those out of range, which would otherwise be truncated."""
    if type(seed) is not int or type(epoch) is not int:
        seed, epoch = whole_number(seed, f"{what}: seed"), whole_number(epoch, f"{what}: epoch")
    if not 0 <= seed < _IDS:
        raise Error(f"{what}: seed: expected 0 .. 2^64 - 1, got {seed}. Take the remainder, seed % 2**64")
    if not 0 <= epoch < 1 << 32:
        raise Error(f"{what}: epoch: expected 0 .. 2^32 - 1, got {epoch}. Count epochs from 0 on")
    return seed, epoch


def whole_number(value: Any, what: str) -> int:
    """Returns a whole number of Python, NumPy or torch as an int, and refuses anything else."""
    number = value if type(value) is int else index_of(value)
    if number is None:
        raise Error(f"{what}: expected a whole number, got {reprlib.repr(value)}. Pass an int")
    return number


def told(message: str, ids: Sequence[int] | None, given: Any, key: str, layout: str | None) -> str:
    """Rewrites an error message of the C++ library for Python: with the ids that the batch has, and advice.

    Parameters
    ----------
    message : str
        The message.
    ids, given : sequence, optional
        The ids as numbers and as the batch has them.
    key, layout : str
        The image of the plan, and the layout that was given for it.

    Returns
    -------
    str
        The message, with "id 'case 17'" in place of the hash of the id.
    """
    if ids is not None:
        names = given if isinstance(given, list) else _listed(given)
        known = {str(i): repr(_plain(name)) for i, name in zip(ids, names)}
        message = re.sub(r"\bid (\d+)", lambda found: "id " + known.get(found[1], found[1]), message)
    if "random operations need one persistent id per sample" in message:
        message += ': give them as batch["id"], strings or whole numbers'
    if layout is not None and "is larger than the volume" in message:
        message += f"; {key} is read in the layout {layout!r}"
    return message
