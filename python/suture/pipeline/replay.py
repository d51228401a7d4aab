# SPDX-License-Identifier: Apache-2.0
"""This module runs a recorded step again and compares the results."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..arguments import check_calls
from ..errors import Error
from ..operations.kinds import members, shown
from ..version import __version__
from .pipeline import Pipeline
from .record import FORMAT, VERSION, digests_of
from .roles import check_keys


@check_calls
def replay(record: Any, batch: Any, *, verify: bool = False, pipeline: Pipeline | None = None) -> Any:
    """Runs a recorded step on a batch.

    Parameters
    ----------
    record : Record, dict or path
        What Plan.record returned, or the file that it was saved to.
    batch : dict, array or list
        The batch of the step.
    verify : bool
        Whether draws, output grids, input types, and digests of inputs and outputs are compared with the record.
    pipeline : Pipeline, optional
        Pipeline to run in place of one made from the record; all its parameters must equal those recorded. Records with a
        value_cpp need it.

    Returns
    -------
    Batch or array
        As Plan.run returns it.

    Raises
    ------
    Error
        If the record cannot be read, is of another version or pipeline, or something differs where `verify` is set.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> scan = np.arange(1728, dtype=np.int16).reshape(1, 12, 12, 12)
    >>> batch = {"image": [scan], "seg": [(scan > 40).astype(np.uint8)], "id": ["case 17"]}
    >>> plan = train.plan(batch, seed=42)
    >>> out = plan.run()
    >>> again = st.replay(plan.record(out), batch, verify=True)
    >>> bool((again["image"] == out["image"]).all())
    True
    """
    if isinstance(record, (str, Path)):
        record = _loaded(record)
    record = _checked(record)
    if pipeline is not None and _plain(pipeline.to_json()) != _plain(record["pipeline"]):
        raise Error("suture: replay: another pipeline: " + _difference(_plain(pipeline.to_json()), _plain(record["pipeline"])))
    recorded = Pipeline.from_json(record["pipeline"]) if pipeline is None else pipeline
    plan = recorded.plan(batch, seed=record["seed"], epoch=record["epoch"], ids=record["ids"], training=record["training"],
                         same_ids=True)
    if verify:
        _same("drawn", {key: plan.drawn(key) for key in recorded.images}, record["drawn"])
        _same("outputs", [g.to_json() for g in plan.grids], record["outputs"])
        for name in ("sources", "digests"):
            check_keys(record[name], plan.items, f"suture: replay: {name}", "Pass the record as it was saved")
        for key, source in record["sources"].items():
            _same(f"{key}: dtype", plan.items[key].dtype, source["dtype"])
            _same(f"{key}: digests of what goes in", digests_of(plan._batch[key]), source["digests"])
    out = plan.run()
    if verify:
        results = out if isinstance(out, Mapping) else {next(iter(recorded.images)): out}
        for key, digests in record["digests"].items():
            _same(f"{key}: digests of what comes out", digests_of(results[key]), digests)
    return out


def _loaded(path: Any) -> Any:
    """Reads the JSON of a file."""
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError, RecursionError) as problem:
        found = str(getattr(problem, "strerror", None) or problem)[:120]
        raise Error(f"suture: replay: {path}: expected a file that a record was saved to, got: {found}. Check the path") from None


def _checked(record: Any) -> Mapping[str, Any]:
    """Returns a record after checking its format, version and members."""
    what = "suture: replay"
    if not isinstance(record, dict):
        raise Error(f"{what}: expected a record, got {shown(record)}")
    if record.get("format") != FORMAT or record.get("format_version") != VERSION:
        raise Error(f"{what}: format {shown(record.get('format'))} {shown(record.get('format_version'))} is not {FORMAT!r} {VERSION}")
    if record.get("library_version") != __version__:
        raise Error(f"{what}: written by version {shown(record.get('library_version'))}, this is {__version__}")
    for name, types in _MEMBERS.items():
        if name not in record:
            raise Error(f"{what}: {name} must be given")
        if type(record[name]) not in types:
            raise Error(f"{what}: {name}: expected {' or '.join(t.__name__ for t in types)}, got {shown(record[name])}")
    unknown = [name for name in record if name not in _MEMBERS]
    if unknown:
        raise Error(f"{what}: a record has no {shown(unknown[0])}")
    for key, source in record["sources"].items():
        members(source, f"{what}: sources: {key}", ["dtype", "layout", "channels", "grids", "digests"])
    return record


_MEMBERS: dict[str, tuple[type, ...]] = {
    "format": (str,), "format_version": (int,), "library_version": (str,), "pipeline": (dict,), "seed": (int,), "epoch": (int,),
    "training": (bool,), "ids": (list, type(None)), "sources": (dict,), "outputs": (list,), "drawn": (dict,), "digests": (dict,)}


def _same(what: str, here: Any, there: Any) -> None:
    here, there = _plain(here), _plain(there)
    if here != there:
        raise Error(f"suture: replay: {what}: {_difference(here, there)}")


def _plain(value: Any) -> Any:
    """Converts a value as writing and reading JSON does: tuples become lists."""
    return json.loads(json.dumps(value))


def _difference(here: Any, there: Any, path: str = "") -> str:
    """Returns the first place where two JSON values differ."""
    if isinstance(here, dict) and isinstance(there, dict) and set(here) == set(there):
        for key in here:
            if here[key] != there[key]:
                return _difference(here[key], there[key], f"{path}.{key}" if path else str(key))
    if isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for i, (a, b) in enumerate(zip(here, there)):
            if a != b:
                return _difference(a, b, f"{path}[{i}]")
    return f"{path or 'it'} is {str(here)[:80]} here and {str(there)[:80]} in the record"
