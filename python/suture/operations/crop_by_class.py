# SPDX-License-Identifier: Apache-2.0
"""This module defines crop_by_class; pipeline/class_index.py makes the class indexes that it draws from."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..backend.encode import Encoder
from ..errors import Error
from .operation import AxisIntegers, Operation, name_mistakes

CHOICES = {"chosen_labels": ("converted", "given")}


@dataclass(frozen=True, kw_only=True)
class crop_by_class(Operation):
    """Crops a box about a random voxel of a class. The voxel is drawn on the label map as given; the box is placed on the output
    grid of the operations before it.

    An index of the voxels of each class is made when a label map is first used. A map on the CPU is recognized by a hash of all its
    voxels, so that an array with new content is indexed again. A torch tensor on a GPU is recognized by its version counter, and
    other arrays on a GPU are indexed each time. Writes that do not advance the counter, such as those through `x.data`, through DLPack
    or by a kernel of another library, are not noticed: pass a copy, x.clone(), after them.

    Parameters
    ----------
    size : int or one for each axis
        Voxels of the box.
    labels : str
        Key of the label map of the pipeline to draw from.
    ratios : sequence of float
        Weights of the classes 0, 1, ...; their number is the number of classes.
    positive, negative : float, optional
        Instead of ratios: weights of foreground and background, 1 by default.
    oversample : float, optional
        Instead of ratios, as in nnU-Net: probability of a box about a voxel of a class above 0. Otherwise, or if there is no
        such voxel, the box is anywhere. It may extend beyond the volume.
    margin : int or one for each axis
        With oversample: voxels by which the volume counts as padded along each axis, on both sides together.
    classes : int
        With oversample: the number of classes, with the background.
    choose : {"converted", "given"}
        Labels to draw by: after labels(convert=...), or as the batch has them. With regions, foreground is every voxel in a region;
        ratios and oversample need "given", since regions may overlap. one_hot changes no label.

    Notes
    -----
    In evaluation the box is in the center of the output grid of the operations before it.

    Raises
    ------
    Error
        If not exactly one rule is given. When a batch is planned, without oversample: if the grid is smaller than the box; a pad_to
        before it makes the grid large enough.

    Examples
    --------
    >>> st.crop_by_class(size=96, labels="seg", ratios=[1, 1, 3])
    crop_by_class(size=96, labels='seg', ratios=(1.0, 1.0, 3.0))
    """

    size: AxisIntegers
    labels: str
    ratios: Sequence[float] = ()
    positive: float | None = None
    negative: float | None = None
    oversample: float | None = None
    margin: AxisIntegers = 0
    classes: int = 0
    choose: Literal["converted", "given"] = "converted"

    _role: ClassVar[str] = "geometry"
    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "patch/crop_by_class.hpp"
    _gives_size: ClassVar[str] = "fixed"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("size", "extent3"), ("labels", "text"), ("ratios", "float_list"), ("positive", "optional_float"), ("negative", "optional_float"),
        ("oversample", "optional_float"), ("margin", "extent3"), ("classes", "int32"), ("choose", "choice:chosen_labels"))

    varies = True

    def __post_init__(self) -> None:
        super().__post_init__()
        rules = [bool(self.ratios), self.positive is not None or self.negative is not None, self.oversample is not None]
        if sum(rules) != 1:
            raise Error("suture: crop_by_class: give one of ratios, positive and negative, oversample")
        if self.oversample is not None and self.classes < 1:
            raise Error("suture: crop_by_class: classes must be given with oversample, how many there are")

    def encode(self, encoder: Encoder) -> str:
        """Appends the number of the rule, the size and parameters of the rule, the class indexes, and no flags that force foreground."""
        what = "suture: crop_by_class"
        encoder.out.headers |= self.headers()
        size = encoder.triple(self.size, "size", what)
        if self.ratios:
            encoder.number(0, *size)
            encoder.rows(np.array(self.ratios, np.float32))
        elif self.oversample is None:
            encoder.number(1, *size, 1 if self.positive is None else self.positive, 1 if self.negative is None else self.negative)
        else:
            encoder.number(2, *size, *encoder.triple(self.margin, "start", what), self.oversample)
        encoder.class_indexes(self)
        encoder.rows(np.zeros(0, np.uint8))
        return "suture::crop_by_class"

    @property
    def by_foreground(self) -> bool:
        """Whether foreground and background are the only classes."""
        return not self.ratios and self.oversample is None

    @property
    def class_count(self) -> int:
        """The number of classes that are counted."""
        return 2 if self.by_foreground else len(self.ratios) or self.classes


name_mistakes(crop_by_class)
