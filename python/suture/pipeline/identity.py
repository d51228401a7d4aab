# SPDX-License-Identifier: Apache-2.0
"""What identifies a draw: a 64-bit id for each sample."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ..errors import Error

_MASK = (1 << 64) - 1


def sample_id(key: str | int, *, draw: int = 0) -> int:
    """The id of a sample of a data set, and of its `draw`-th use in an epoch, where a case is used several times.

    A string gets the first 64 bits of its SHA-256, a whole number from 0 on is the id itself; a draw above 0 gives
    another id of either."""
    if isinstance(key, str):
        plain = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little")
    elif hasattr(key, "__index__") and not isinstance(key, bool):
        plain = key.__index__()
        if not 0 <= plain <= _MASK:
            raise Error(f"suture: sample_id: {plain} is not in 0 .. 2^64 - 1")
    else:
        raise Error(f"suture: sample_id: {key!r} is neither a string nor a whole number")
    if draw < 0:
        raise Error(f"suture: sample_id: draw {draw} is below 0")
    if draw == 0:
        return plain
    text = plain.to_bytes(8, "little") + draw.to_bytes(8, "little")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def _plain(key: Any) -> Any:
    """A number of NumPy's or torch's as Python's."""
    return key.item() if hasattr(key, "item") else key


def ids_of(given: Any, samples: int) -> list[int]:
    """The ids of a batch, out of what the batch has under "id"."""
    if isinstance(given, (str, int)):
        given = [given]
    device = getattr(given, "device", None)
    if getattr(given, "is_cuda", False) or (device is not None and "cuda" in str(device)):
        raise Error("suture: ids lie on a GPU and reading them would make it wait; keep them on the host, as strings say "
                    "(those a move to the GPU leaves alone)")
    keys: Sequence[Any] = given.tolist() if hasattr(given, "tolist") else list(given)
    if len(keys) != samples:
        raise Error(f"suture: {len(keys)} ids for {samples} samples; each needs one")
    if set(map(type, keys)) == {int} and min(keys) >= 0 and max(keys) <= _MASK:
        return list(keys)
    ids = []
    for key in keys:
        if getattr(key, "is_cuda", False):
            raise Error("suture: ids lie on a GPU and reading them would make it wait; keep them on the host")
        known = type(key) is int and 0 <= key <= _MASK
        ids.append(key if known else sample_id(_plain(key)))
    return ids
