# SPDX-License-Identifier: Apache-2.0
"""This module has the command line of stores: build, verify, repair, remove and info."""
from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Error

if TYPE_CHECKING:
    from .find import Found


def add_to(commands: Any) -> None:
    """Adds `suture store` to the subcommands of the command line."""
    store = commands.add_parser("store", help="make, check and describe stores of scans and slides")
    kinds = store.add_subparsers(dest="what", required=True)
    build = kinds.add_parser("build", help="make a store of NIfTI files, DICOM series or slides, or complete one")
    build.add_argument("source", help="a folder of scans or slides")
    build.add_argument("--labels", help="a folder of label maps with the names of the cases")
    build.add_argument("--out", required=True, help="the store")
    build.add_argument("--chunk", type=int, default=64, help="voxels of a chunk along each axis (64)")
    build.add_argument("--profile", choices=("small", "fast"), default="small", help="codec: zstd (small) or lz4 (fast)")
    build.add_argument("--workers", type=int, default=1, help="processes that make cases (1)")
    build.add_argument("--mpp", type=float, nargs="+", help="micrometers per pixel of each level of slides")
    build.add_argument("--assume-mpp", type=float, help="micrometers per pixel of slides that do not state it")
    build.add_argument("--rank", type=int, help="number of the share of the cases that this process makes, from 0")
    build.add_argument("--world", type=int, help="number of shares")
    build.add_argument("--dask", help="address of a scheduler of Dask, whose workers make the cases")
    build.add_argument("--split", help="cases of \"val\": a fraction, or K/N for fold K of N, from 0; or a JSON file {part: [names]}. Kept in the store")
    build.add_argument("--group", help="a JSON file {case: patient}, to keep all cases of a patient in one part. Kept in the store")
    verify = kinds.add_parser("verify", help="read every byte and compare hashes with the manifests")
    verify.add_argument("store")
    verify.add_argument("--workers", type=int, default=1, help="threads (1)")
    repair = kinds.add_parser("repair", help="make damaged cases again from their source")
    repair.add_argument("store")
    repair.add_argument("--source", required=True)
    repair.add_argument("--labels")
    remove = kinds.add_parser("remove", help="remove cases, such as those of a patient who withdrew")
    remove.add_argument("store")
    remove.add_argument("names", nargs="+", metavar="NAME", help="name of a case")
    info = kinds.add_parser("info", help="describe the contents of a store, its hash and its size")
    info.add_argument("store")
    info.add_argument("--json", action="store_true", help="as JSON")


def run(given: argparse.Namespace) -> int:
    """Runs `suture store` and returns its exit status, 1 if a case failed or is damaged."""
    return {"build": _build, "verify": _verify, "repair": _repair, "remove": _remove, "info": _info}[given.what](given)


def _rule(text: str) -> Any:
    """Reads the rule of --split. A number is the fraction of cases in "val". K/N means that fold K of N, counted from 0, is "val". Any
    other text is the path of a JSON file {part: [names]}."""
    try:
        if "/" in text:
            fold, count = text.split("/")
            return int(fold), int(count)
        return float(text)
    except ValueError:
        return text


def _split(given: argparse.Namespace, found: Found) -> dict[str, Any] | None:
    """Returns what the store will save of --split and --group, for its cases and those of the source; None without them. What one of
    them does not say stays as the store has it.

    Raises
    ------
    Error
        If they do not fit these cases. The files that cannot be used are listed before, since their cases are unknown."""
    from . import files
    from .index import read_index
    from .splits import given_or_stored, record_of

    if not given.split and not given.group:
        return None
    store = Path(given.out)
    present = read_index(store) if files.manifests(store).is_dir() else {}
    try:
        return record_of(sorted({*present, *found.tasks}), *given_or_stored(store, _rule(given.split) if given.split else None, given.group),
                         found.failed)
    except Error:
        for sentence in found.failed.values():
            print(sentence, file=sys.stderr)
        raise


def _build(given: argparse.Namespace) -> int:
    from .build import build_found
    from .splits import save

    record: dict[str, Any] | None = None

    def look(found: Found) -> None:
        nonlocal record
        record = _split(given, found)

    report = build_found(given.source, given.labels, look, out=given.out, chunk=given.chunk, workers=given.workers, mpp=given.mpp,
                         assume_mpp=given.assume_mpp, profile=given.profile, rank=given.rank, world=given.world, dask=given.dask, progress=True)
    for sentence in [*report.failed.values(), *report.doubtful.values()]:
        print(sentence, file=sys.stderr)
    if record is not None:
        save(Path(given.out), record)
    if report.without_source:
        count = len(report.without_source)
        print(f"suture: store: {count} case{'s' * (count > 1)} of {given.out} {'are' if count > 1 else 'is'} not in {given.source}: "
              f"{', '.join(report.without_source)}. They stay in the store; suture store remove {shlex.quote(given.out)} NAME... removes cases",
              file=sys.stderr)
    print(f"{given.out}: {len(report.built)} built, {len(report.reused)} reused, {len(report.failed)} failed, "
          f"{f'{len(report.without_source)} without source, ' if report.without_source else ''}{len(report.skipped)} other files "
          f"left out; sha256 {report.sha256}")
    return 1 if report.failed else 0


def _verify(given: argparse.Namespace) -> int:
    from .care import verify

    damaged = verify(given.store, workers=given.workers)
    for sentence in damaged.values():
        print(sentence)
    if not damaged:
        print(f"{given.store}: every chunk has the hash of its manifest")
    return 1 if damaged else 0


def _repair(given: argparse.Namespace) -> int:
    from .care import repair

    result = repair(given.store, given.source, given.labels)
    for sentence in result.failed.values():
        print(sentence, file=sys.stderr)
    print(f"{given.store}: {len(result.repaired)} made again, {len(result.failed)} failed", *result.repaired)
    return 1 if result.failed else 0


def _remove(given: argparse.Namespace) -> int:
    from .care import remove

    sha256 = remove(given.store, given.names)
    print(f"{given.store}: {len(set(given.names))} removed; sha256 {sha256}")
    return 0


def _info(given: argparse.Namespace) -> int:
    from .care import info

    found = info(given.store)
    if given.json:
        print(json.dumps(found, indent=1))
        return 0
    cases, own = found["cases"], found["settings"]
    print(f"{given.store}: {cases} cases, sha256 {found['sha256']}")
    print(f"size: {found['bytes'] / 1e6:.1f} MB, {found['bytes'] / 1e6 / max(cases, 1):.1f} MB a case; the source has {found['source_bytes'] / 1e6:.1f} MB")
    print(f"chunks: {own['chunk']} voxels along each axis, profile {own['profile']}; files are read by {found['io']}")
    for what, unit in (("spacings", "mm along (z, y, x)"), ("dtypes", "")):
        listed = [f"{value} {unit}".rstrip() + f" ({count})" for value, count in sorted(found[what].items())[:12]]
        print(f"{what}: {', '.join(listed)}")
    if found["labels"]:
        listed = [f"{label} in {count}" for label, count in found["labels"].items()]
        more = [f"and {len(listed) - 64} others: --json lists all"] if len(listed) > 64 else []
        print("labels: " + ", ".join([*listed[:64], *more]))
    return 0
