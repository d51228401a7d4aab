# SPDX-License-Identifier: Apache-2.0
"""Parts of a cohort: by a file, by a fraction of hashed names, or as a fold."""
from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

from ..errors import Error
from . import files

Rule = Union[float, tuple[int, int], str, "os.PathLike[str]", tuple["str | os.PathLike[str]", int]]
_FILE = "split.json"
DEFAULT = .2


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def part_of(names: Sequence[str], part: str, rule: Any) -> list[str]:
    """The names of a part.

    Raises
    ------
    Error
        If there is no such part, it is empty, or the rule is none.
    """
    if isinstance(rule, float) and 0 < rule < 1:
        parts = {"train": [n for n in names if _hash(n) >= rule * 2 ** 64],
                 "val": [n for n in names if _hash(n) < rule * 2 ** 64]}
    elif isinstance(rule, Sequence) and len(rule) == 2 and all(type(v) is int for v in rule):
        fold, count = rule
        if not 0 <= fold < count:
            raise Error(f"suture: store: split: expected a fold in 0 .. {count - 1}, got {fold}")
        ranked = sorted(names, key=lambda n: (_hash(n), n))
        parts = {"train": sorted(n for i, n in enumerate(ranked) if i % count != fold), "val": sorted(ranked[fold::count])}
    else:
        parts = _parts(names, rule, None, "the store") if isinstance(rule, dict) else _of_file(names, rule)
    if part not in parts:
        raise Error(f"suture: store: split: expected one of {', '.join(sorted(parts))}, got {part!r}")
    if not parts[part]:
        raise Error(f"suture: store: split: expected cases in {part!r}, got none of {len(names)}. Take another rule")
    return parts[part]


def _of_file(names: Sequence[str], rule: Any) -> dict[str, list[str]]:
    """Parts as a file has them: {"train": [names], "val": [names]}, or a list of such, of which a fold is chosen."""
    path, fold = (rule[0], rule[1]) if isinstance(rule, (tuple, list)) and len(rule) == 2 else (rule, None)
    if not isinstance(path, (str, os.PathLike)):
        raise Error(f"suture: store: split: expected a fraction between 0 and 1, (fold, folds), or a file of JSON, got {rule!r}")
    try:
        record = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as problem:
        raise Error(f"suture: store: split: expected a file of JSON, got {problem}") from None
    return _parts(names, record, fold, str(path))


def _parts(names: Sequence[str], record: Any, fold: Any, path: str) -> dict[str, list[str]]:
    if isinstance(record, list):
        if type(fold) is not int or not 0 <= fold < len(record):
            raise Error(f"suture: store: split: expected (file, fold) with a fold in 0 .. {len(record) - 1}, got {fold!r} of "
                        f"{path}")
        record = record[fold]
    if not isinstance(record, dict) or not all(isinstance(v, list) and all(isinstance(n, str) for n in v)
                                               for v in record.values()):
        raise Error(f"suture: store: split: expected lists of names by part in {path}, got other JSON")
    known = set(names)
    for part, listed in record.items():
        missing = [n for n in listed if n not in known]
        if missing:
            raise Error(f"suture: store: split: expected cases of the store in {part!r} of {path}, got {missing[0]!r} and "
                        f"{len(missing) - 1} others")
    twice = [n for n in known if sum(n in listed for listed in record.values()) > 1]
    if twice:
        raise Error(f"suture: store: split: expected each case in one part of {path}, got {sorted(twice)[0]!r} in several")
    return {part: sorted(set(listed)) for part, listed in record.items()}


def set_split(path: str | os.PathLike[str], rule: Rule) -> None:
    """Keeps a rule in a store, for those who open a part of it.

    Parameters
    ----------
    path : path
        The store.
    rule : float, (int, int), path or (path, int)
        As in Cohort.split. What a file says is copied into the store.

    Raises
    ------
    Error
        If the rule is none, or names cases that are not there.

    Examples
    --------
    >>> suture.store.set_split("cohort.zarr", (0, 5))  # doctest: +SKIP
    """
    from .index import read_index

    store, names = Path(path), list(read_index(Path(path)))
    if isinstance(rule, float) or (isinstance(rule, Sequence) and not isinstance(rule, str)
                                   and all(type(v) is int for v in rule)):
        part_of(names, "train", rule)
        record: Any = {"rule": rule}
    else:
        record = {"parts": _of_file(names, rule)}
    with files.lock(store, "store"):
        files.write(store, "store", store / files.FOLDER / _FILE, files.json_bytes(record))


def stored(store: Path) -> Any:
    """The rule of a store; a fifth where it has none."""
    path = store / files.FOLDER / _FILE
    if not path.is_file():
        return DEFAULT
    try:
        record = json.loads(path.read_bytes())
        return record["rule"] if "rule" in record else dict(record["parts"])
    except (ValueError, TypeError, KeyError):
        raise Error(f"suture: store: split: expected a rule in {path}, got other text. Set it again") from None
