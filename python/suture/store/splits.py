# SPDX-License-Identifier: Apache-2.0
"""This module splits a cohort by a file, by a fraction of hashed names, or into folds, with all cases of a patient in one part."""
from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from ..arguments import check_calls
from ..errors import Error
from . import files

Rule = Union[float, tuple[int, int], str, "os.PathLike[str]", tuple["str | os.PathLike[str]", int]]
Group = Union[Mapping[str, str], Callable[[str], str], str, "os.PathLike[str]"]
_FILE = "split.json"
DEFAULT = .2  # fraction of "val"


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def groups_of(names: Sequence[str], group: Any) -> dict[str, str]:
    """Returns the group of each case, such as its patient; without groups each case is a group.

    Raises
    ------
    Error
        If a case has no group, or the file of groups cannot be read.
    """
    if group is None:
        return {name: name for name in names}
    what = "suture: store: group"
    if isinstance(group, (str, os.PathLike)):
        try:
            group = json.loads(Path(group).read_bytes())
        except (OSError, ValueError) as problem:
            raise Error(f"{what}: expected a file of JSON, got {problem}") from None
    if isinstance(group, Mapping):
        missing = [name for name in names if name not in group]
        if missing:
            raise Error(f"{what}: expected the patient of each case, got none of {missing[0]!r} and {len(missing) - 1} others. Add "
                        "them, or leave these cases out")
        found = {name: group[name] for name in names}
    elif callable(group):
        found = {name: group(name) for name in names}
    else:
        raise Error(f"{what}: expected {{case: patient}}, a file of it, or a function of the name, got {group!r}")
    strange = next((name for name in names if not isinstance(found[name], str)), None)
    if strange is not None:
        raise Error(f"{what}: expected the name of a patient for case {strange!r}, got {found[strange]!r}. Pass a string")
    return found


def part_of(names: Sequence[str], part: str, rule: Any, group: Any = None, left: Collection[str] = ()) -> list[str]:
    """Returns the names of the cases in a part. All cases of a group are in one part. `left` are the names of cases that are left out,
    which a file may still list.

    Raises
    ------
    Error
        If there is no such part, it is empty, the rule is invalid, or a file has cases of one group in two parts.
    """
    patient = groups_of(names, group)
    if isinstance(rule, float) and 0 < rule < 1:
        parts = {"train": [n for n in names if _hash(patient[n]) >= rule * 2 ** 64],
                 "val": [n for n in names if _hash(patient[n]) < rule * 2 ** 64]}
    elif isinstance(rule, Sequence) and len(rule) == 2 and all(type(v) is int for v in rule):
        fold, count = rule
        if not 0 <= fold < count:
            raise Error(f"suture: store: split: expected a fold in 0 .. {count - 1}, got {fold}")
        held = set(sorted(set(patient.values()), key=lambda n: (_hash(n), n))[fold::count])
        parts = {"train": sorted(n for n in names if patient[n] not in held), "val": sorted(n for n in names if patient[n] in held)}
    else:
        known = [*names, *left]
        parts = _parts(known, rule, None, "the store") if isinstance(rule, dict) else _of_file(known, rule)
        parts = {each: [n for n in listed if n in patient] for each, listed in parts.items()}
        _check_groups(parts, patient)
    if part not in parts:
        raise Error(f"suture: store: split: expected one of {', '.join(sorted(parts))}, got {part!r}")
    if not parts[part]:
        raise Error(f"suture: store: split: expected cases in {part!r}, got none of {len(names)}. Take another rule")
    return parts[part]


def _check_groups(parts: Mapping[str, Sequence[str]], patient: Mapping[str, str]) -> None:
    """Refuses parts that share a group."""
    part_with: dict[str, str] = {}
    for part, names in parts.items():
        for name in names:
            other = part_with.setdefault(patient[name], part)
            if other != part:
                raise Error(f"suture: store: split: expected all cases of a patient in one part, got {patient[name]!r} in {other!r} and, with "
                            f"case {name!r}, in {part!r}. Move the case")


def _of_file(names: Sequence[str], rule: Any) -> dict[str, list[str]]:
    """Reads parts from a JSON file: {"train": [names], "val": [names]}, or a list of such objects, one for each fold, of which the rule
    (path, fold) chooses one."""
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
                        f"{len(missing) - 1} others. Build them, or leave them out with Cohort.without")
    twice = [n for n in known if sum(n in listed for listed in record.values()) > 1]
    if twice:
        raise Error(f"suture: store: split: expected each case in one part of {path}, got {sorted(twice)[0]!r} in several")
    return {part: sorted(set(listed)) for part, listed in record.items()}


@check_calls
def set_split(path: str | os.PathLike[str], rule: Rule | None = None, *, group: Group | None = None) -> None:
    """Saves in a store how it is split, for `open` and Cohort.split.

    Parameters
    ----------
    path : path
        The store.
    rule : float, (int, int), path or (path, int), optional
        As in Cohort.split. The contents of a file are copied into the store. None: the rule of the store stays, by default 0.2.
    group : mapping, callable or path, optional
        As in Cohort.split. The groups of the present cases are copied into the store. None: the groups of the store stay. The function
        `lambda name: name` makes each case a patient again.

    Raises
    ------
    Error
        If the rule is invalid or names cases that the store does not have, or the groups of the store lack a case.

    Examples
    --------
    >>> suture.store.set_split("cohort.zarr", (0, 5))  # doctest: +SKIP
    """
    from .index import read_index

    save(Path(path), record_of(list(read_index(Path(path))), *given_or_stored(Path(path), rule, group)))


def given_or_stored(store: Path, rule: Any, group: Any) -> tuple[Any, Any]:
    """Returns a rule and groups, of which None stands for those that the store has."""
    if rule is not None and group is not None:
        return rule, group
    own, known = stored(store)
    return own if rule is None else rule, known if group is None else group


def record_of(names: Sequence[str], rule: Any, group: Any, also: Collection[str] = ()) -> dict[str, Any]:
    """Returns what a store saves of a rule and of groups. `also` are names that a file may list beside those of the cases.

    Raises
    ------
    Error
        If the rule is invalid for these cases.
    """
    if isinstance(rule, float) or (isinstance(rule, Sequence) and not isinstance(rule, str)
                                   and all(type(v) is int for v in rule)):
        part_of(names, "train", rule, group)
        record: dict[str, Any] = {"rule": rule}
    else:
        patient = groups_of(names, group)
        known = [*names, *also]
        record = {"parts": _parts(known, rule, None, "the store") if isinstance(rule, dict) else _of_file(known, rule)}
        _check_groups({part: [n for n in listed if n in patient] for part, listed in record["parts"].items()}, patient)
    if group is not None:
        record["groups"] = groups_of(names, group)
    return record


def save(store: Path, record: Mapping[str, Any]) -> None:
    """Saves the rule and the groups of a store, as record_of returns them."""
    with files.lock(store, "store"):
        files.write(store, "store", store / files.FOLDER / _FILE, files.json_bytes(record))


def leave_out(store: Path, names: Collection[str]) -> None:
    """Removes cases from the parts and the groups of a store."""
    with files.lock(store, "store"):
        rule, groups = stored(store)
        record: dict[str, Any] = {"rule": rule}
        if isinstance(rule, dict):
            record = {"parts": {part: [n for n in listed if n not in names] for part, listed in rule.items()}}
        if groups is not None:
            record["groups"] = {name: group for name, group in groups.items() if name not in names}
        if isinstance(rule, dict) or groups is not None:
            files.write(store, "store", store / files.FOLDER / _FILE, files.json_bytes(record))


def stored(store: Path) -> tuple[Any, dict[str, str] | None]:
    """Returns the rule of a store, DEFAULT if it has none, and its groups, None if it has none."""
    path = store / files.FOLDER / _FILE
    if not path.is_file():
        return DEFAULT, None
    try:
        record = json.loads(path.read_bytes())
        groups = dict(record["groups"]) if "groups" in record else None
        return record["rule"] if "rule" in record else dict(record["parts"]), groups
    except (ValueError, TypeError, KeyError):
        raise Error(f"suture: store: split: expected a rule in {path}, got other text. Set it again, with its groups") from None
