# SPDX-License-Identifier: Apache-2.0
"""A Record describes a step, so that it can be run again: pipeline, seed, epoch, ids, draws and digests."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..arrays.digests import digest
from ..arrays.dlpack import voxels_of
from ..arrays.lazy import is_source
from ..arrays.volume import Volume
from ..arrays.whole_file import whole_file
from ..version import __version__

if TYPE_CHECKING:
    from .plan import Plan

FORMAT, VERSION = "suture step", 1


def digests_of(value: Any) -> list[str] | None:
    """Returns the digest of each sample.

    Parameters
    ----------
    value : array, Volume or sequence of arrays
        The samples of a key.

    Returns
    -------
    list of str or None
        Digests as hexadecimal digits; None for label maps with levels, and for samples on a GPU or read box by box.

    Examples
    --------
    >>> from suture.pipeline.record import digests_of
    >>> len(digests_of([np.zeros((1, 4, 4, 4), np.float32)])[0])
    16
    """
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        return None
    each = []
    for sample in [value] if isinstance(value, Volume) else value:
        array = voxels_of(sample)
        if is_source(array) or getattr(array, "is_cuda", False) or hasattr(array, "__cuda_array_interface__"):
            return None
        each.append(f"{digest(array):016x}")
    return each


class Record(dict[str, Any]):
    """A step as a dict of JSON values, from Plan.record.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> scan = np.arange(1728, dtype=np.int16).reshape(1, 12, 12, 12)
    >>> plan = train.plan({"image": [scan], "seg": [(scan > 40).astype(np.uint8)], "id": ["case 17"]}, seed=42)
    >>> record = plan.record(plan.run())
    >>> record["seed"], record["epoch"], list(record["drawn"])
    (42, 0, ['image'])
    """

    def save(self, path: Any) -> None:
        """Writes the record to a file atomically.

        Parameters
        ----------
        path : path
            The file, of JSON.
        """
        text = json.dumps(self, indent=1, allow_nan=False)
        with whole_file(path) as beside:
            Path(beside).write_text(text)


def record_of(plan: Plan, out: Any) -> Record:
    """Records the pipeline, seed, epoch, ids, grids, draws, types, and digests of inputs and outputs.

    Parameters
    ----------
    plan : Plan
        The plan that was run.
    out : Batch or array
        Its result.

    Returns
    -------
    Record
        The step, for `save` and `replay`.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> scan = np.arange(1728, dtype=np.int16).reshape(1, 12, 12, 12)
    >>> plan = train.plan({"image": [scan], "seg": [(scan > 40).astype(np.uint8)], "id": ["case 17"]}, seed=42)
    >>> plan.record(plan.run())["format"]
    'suture step'
    """
    pipeline = plan.pipeline
    results = out if isinstance(out, Mapping) else {next(iter(pipeline.images)): out}
    sources = {}
    for key, items in plan.items.items():
        sources[key] = {"dtype": items.dtype, "layout": items.letters, "channels": items.channels,
                        "grids": [g.to_json() for g in items.grids] if items.grids else None,
                        "digests": digests_of(plan._batch[key])}
    return Record(format=FORMAT, format_version=VERSION, library_version=__version__, pipeline=pipeline.to_json(), seed=plan.seed,
                  epoch=plan.epoch, training=plan.training, ids=plan.ids, sources=sources,
                  outputs=[g.to_json() for g in plan.grids],
                  drawn={key: plan.drawn(key) for key in pipeline.images},
                  digests={key: digests_of(results[key]) for key in plan.items if key in results})
