# SPDX-License-Identifier: Apache-2.0
"""A step on paper: everything that a plan holds, drawn or not, to be run again and compared."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..arrays.digests import digest
from ..errors import Error
from .plan import Pipeline, Plan

FORMAT, VERSION = "suture step", 1


def _digests(value: Any) -> list[str] | None:
    """Of each sample, or None where they lie on a GPU."""
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        return None
    each = []
    for sample in value:
        array = getattr(sample, "array", sample)
        if getattr(array, "is_cuda", False) or hasattr(array, "__cuda_array_interface__"):
            return None
        each.append(f"{digest(array):016x}")
    return each


class Record(dict[str, Any]):
    """What JSON has of a step."""

    def save(self, path: Any) -> None:
        """Writes it to a file."""
        Path(path).write_text(json.dumps(self, indent=1, allow_nan=False))


def record_of(plan: Plan, out: Any) -> Record:
    """Every parameter, seed, epoch and ids, grids, what was drawn, types, and digests of what went in and came out."""
    from .. import __version__

    pipeline = plan.pipeline
    results = out if isinstance(out, Mapping) else {next(iter(pipeline.images)): out}
    sources = {}
    for key, items in plan.items.items():
        sources[key] = {"dtype": items.dtype, "layout": items.letters, "channels": items.channels,
                        "grids": [g.to_json() for g in items.grids] if items.grids else None,
                        "digests": _digests(plan._batch[key])}
    return Record(format=FORMAT, format_version=VERSION, library_version=__version__, pipeline=pipeline.to_json(), seed=plan.seed,
                  epoch=plan.epoch, training=plan.training, ids=plan.ids, sources=sources,
                  outputs=[g.to_json() for g in plan.grids],
                  drawn={key: plan.drawn(key) for key in pipeline.images},
                  digests={key: _digests(results[key]) for key in plan.items if key in results})


def replay(record: Any, batch: Any, *, verify: bool = False, pipeline: Pipeline | None = None) -> Any:
    """Runs what was recorded, a Record or its file, on a batch.

    verify    also compares: what is drawn, types, and digests of what goes in and comes out; refuses what differs
    pipeline  the one of today, which must be the recorded one to the last parameter
    """
    from .. import __version__

    if isinstance(record, (str, Path)):
        record = json.loads(Path(record).read_text())
    if record.get("format") != FORMAT or record.get("format_version") != VERSION:
        raise Error(f"suture: replay: format {record.get('format')!r} {record.get('format_version')!r} is not {FORMAT!r} {VERSION}")
    if record["library_version"] != __version__:
        raise Error(f"suture: replay: written by version {record['library_version']}, this is {__version__}")
    if pipeline is not None and _plain(pipeline.to_json()) != _plain(record["pipeline"]):
        raise Error("suture: replay: another pipeline: " + _difference(_plain(pipeline.to_json()), _plain(record["pipeline"])))
    recorded = Pipeline.from_json(record["pipeline"]) if pipeline is None else pipeline
    plan = recorded.plan(batch, seed=record["seed"], epoch=record["epoch"], ids=record["ids"], training=record["training"],
                         same_ids=True)
    if verify:
        _same("drawn", {key: plan.drawn(key) for key in recorded.images}, record["drawn"])
        _same("outputs", [g.to_json() for g in plan.grids], record["outputs"])
        for key, source in record["sources"].items():
            _same(f"{key}: dtype", plan.items[key].dtype, source["dtype"])
            _same(f"{key}: digests of what goes in", _digests(plan._batch[key]), source["digests"])
    out = plan.run()
    if verify:
        results = out if isinstance(out, Mapping) else {next(iter(recorded.images)): out}
        for key, digests in record["digests"].items():
            _same(f"{key}: digests of what comes out", _digests(results[key]), digests)
    return out


def _same(what: str, here: Any, there: Any) -> None:
    here, there = _plain(here), _plain(there)
    if here != there:
        raise Error(f"suture: replay: {what}: {_difference(here, there)}")


def _plain(value: Any) -> Any:
    """As JSON gives it back: tuples are lists."""
    return json.loads(json.dumps(value))


def _difference(here: Any, there: Any, path: str = "") -> str:
    """Where two JSON values first differ."""
    if isinstance(here, dict) and isinstance(there, dict) and set(here) == set(there):
        for key in here:
            if here[key] != there[key]:
                return _difference(here[key], there[key], f"{path}.{key}" if path else str(key))
    if isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for i, (a, b) in enumerate(zip(here, there)):
            if a != b:
                return _difference(a, b, f"{path}[{i}]")
    return f"{path or 'it'} is {str(here)[:80]} here and {str(there)[:80]} in the record"
