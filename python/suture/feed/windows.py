# SPDX-License-Identifier: Apache-2.0
"""This module places windows on whole cases, so that evaluation runs the code path of training: a window replaces the crop of the
chain."""
from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ..backend.encode import Encoder
from ..errors import Error
from ..operations.generated import crop_at, pad_to
from ..operations.operation import Operation, per_sample
from ..pipeline.pipeline import Pipeline
from ..pipeline.plan import Plan

if TYPE_CHECKING:
    from .cases import Cases

_CROPS = ("random_crop", "center_crop", "crop_by_class", "crop_at", "crop_or_pad")


class Windows:
    """Places windows on the outputs of a pipeline without its crop.

    Parameters
    ----------
    pipeline : Pipeline
        A training pipeline, whose last operation of geometry is a crop.
    lay : callable
        lay(extents, size) returns a PatchGrid, as sliding_window_grid does.
    """

    KEY: ClassVar[str] = "suture_window"  # key of a batch with the starts of windows

    def __init__(self, pipeline: Pipeline, lay: Callable[..., Any]) -> None:
        self._lay = lay
        chain = next(iter(pipeline.images.values()))
        at = [k for k, op in enumerate(chain) if op.name in _CROPS]
        if not at:
            raise Error("suture: feed: windows: expected a pipeline that crops, whose crop says how large a window is, got one without")
        crop: Any = chain[at[-1]]
        behind = [op.name for op in chain[at[-1] + 1:] if op._role == "geometry"]
        if behind:
            raise Error(f"suture: feed: windows: expected {crop.name} to be the last of the geometry, got {behind[0]} behind it")
        self._size = size = crop.size
        self.chain = self._with(pipeline, (pad_to(size=size),))
        self.pipeline = self._with(pipeline, (pad_to(size=size), crop_at(size=size, starts=per_sample(self.KEY))))
        self._cases: Any = None
        self._grids: list[Any] = []
        self._orders: list[str] = []  # order of the axes of each case
        self._before: list[int] = []  # number of windows before each case

    def _with(self, pipeline: Pipeline, instead: tuple[Operation, ...]) -> Pipeline:
        """Returns the pipeline with its crop replaced."""
        roles = pipeline.roles()
        for key, chain in pipeline.images.items():
            at = max(k for k, op in enumerate(chain) if op.name in _CROPS)
            roles[key] = [*chain[:at], *instead, *chain[at + 1:]]
        return Pipeline(layout=pipeline.layout, **roles)

    def over(self, cases: Cases) -> Windows:
        """Places the windows of all cases, without reading voxels, and returns self."""
        self._cases = cases
        counts = []
        for number in range(len(cases)):
            plan = self._plan(number)
            size = tuple(int(n) for n in Encoder(plan.order, {}, 1).triple(self._size, "size", "suture: feed: windows"))
            grid = self._lay(plan.grids[0].extents, size)
            self._grids.append(grid)
            self._orders.append(plan.order)
            counts.append(len(grid))
        self._before = [0, *itertools.accumulate(counts)]
        return self

    def _plan(self, number: int) -> Plan:
        return self.chain.plan({**self._cases.batch(number), "id": [0]}, seed=0, epoch=0, training=False, threads=1)

    def __len__(self) -> int:
        return self._before[-1]

    def at(self, index: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Returns the number of the case of a window, and its start along (z, y, x) and in the order of the case's axes."""
        number = bisect.bisect_right(self._before, index) - 1
        start = tuple(self._grids[number][index - self._before[number]])
        return number, start, start[::-1] if self._orders[number] == "xyz" else start  # as crop_at reads starts

    def _number(self, name: str) -> int:
        if name not in self._cases.names:
            raise Error(f"suture: feed: expected the name of a case, got {name!r}")
        return int(self._cases.names.index(name))

    def whole(self, name: str) -> Plan:
        """Returns the plan of a case without its crop."""
        return self._plan(self._number(name))

    def grid(self, name: str) -> Any:
        """Returns the grid of the windows of a case."""
        return self._grids[self._number(name)]
