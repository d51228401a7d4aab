# SPDX-License-Identifier: Apache-2.0
"""A Batch is the result of a run: a dict like the input, with the grids of its samples."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..arrays.batch import unpack_grids
from ..arrays.volume import Grid
from ..errors import Error
from .roles import level_grid

if TYPE_CHECKING:
    from .pipeline import Pipeline


class Batch(dict[str, Any]):
    """The outputs of a pipeline by key, and everything else that the batch had.

    It is a dict. `grids` has the grid of each sample of an image or label map, also where samples are stacked into one array. A
    key whose value is replaced by one of another shape has no grids any more.

    Attributes
    ----------
    images, labels : tuple of str
        Keys of the images and of the label maps.
    layout : str or None
        Layout of arrays, as the pipeline has it.
    placed : bool
        Whether the spacing of the inputs is known.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> scan = st.Volume(np.arange(1728, dtype=np.int16).reshape(12, 12, 12), axes="zyx", spacing=2)
    >>> seg = st.Volume((scan.array > 40).astype(np.uint8), axes="zyx", spacing=2)
    >>> out = train({"image": [scan], "seg": [seg], "id": ["case 17"]}, seed=42)
    >>> out["image"].shape, out.grids["image"][0].spacing
    ((1, 1, 8, 8, 8), (2.0, 2.0, 2.0))
    """

    _source: tuple[Any, int, str, Pipeline] | None = None
    _grids: dict[str, Any] = {}
    images: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    layout: str | None = None
    placed: bool = False

    @staticmethod
    def of(made: dict[str, Any], buffer: Any, count: int, order: str, pipeline: Pipeline, placed: bool) -> Batch:
        """Makes a batch of outputs, whose grids are read from the records of the first image when `grids` is first used.

        Parameters
        ----------
        made : dict
            Outputs by key.
        buffer : bytes
            The abi::array records of the first image.
        count : int
            Number of samples.
        order : str
            Order of the axes of the arrays.
        pipeline : Pipeline
            The pipeline that made the outputs.
        placed : bool
            Whether the spacing of the inputs is known.

        Returns
        -------
        Batch
            The outputs with their grids.
        """
        batch = Batch(made)
        batch._source = buffer, count, order, pipeline
        batch.images, batch.labels, batch.layout, batch.placed = *pipeline.array_keys, pipeline.layout, placed
        return batch

    @property
    def grids(self) -> dict[str, Any]:
        """The grids of the samples by key; for label maps with levels a list for each level, the full map first."""
        if self._source is not None:
            self._grids = _grids_by_key(*self._source)
            self._source = None
        return {key: grids for key, grids in self._grids.items() if key in self and _fits(self[key], grids)}

    def __reduce__(self) -> Any:
        return _remade, (dict(self), self.grids, self.images, self.labels, self.layout, self.placed)

    def __copy__(self) -> Batch:
        return _remade(dict(self), self.grids, self.images, self.labels, self.layout, self.placed)

    def copy(self) -> Batch:
        """Copies the batch, not its arrays.

        Returns
        -------
        Batch
            A batch with the same values and grids.
        """
        return self.__copy__()


def _remade(values: dict[str, Any], grids: dict[str, Any], *known: Any) -> Batch:
    batch = Batch(values)
    batch._grids = grids
    batch.images, batch.labels, batch.layout, batch.placed = known
    return batch


def _grids_by_key(buffer: Any, count: int, order: str, pipeline: Pipeline) -> dict[str, Any]:
    grids = unpack_grids(buffer.raw, count)
    places: dict[str, Any] = {key: grids for key in (*pipeline.images, *pipeline.labels)}
    for key, role in pipeline.labels.items():
        if role.levels:
            places[key] = [grids, *([level_grid(g, s, order) for g in grids] for s in role.levels)]
    return places


def _fits(value: Any, grids: Sequence[Any]) -> bool:
    """Tests whether a value still has the samples of the grids: the same number, with the same number of voxels."""
    if not isinstance(value, (list, tuple)) and len(getattr(value, "shape", ())) == 0:
        return False
    if len(value) != len(grids):
        return False
    if grids and not isinstance(grids[0], Grid):
        return all(_fits(level, places) for level, places in zip(value, grids))
    for sample, grid in zip(value, grids):
        shape = list(getattr(getattr(sample, "array", sample), "shape", ()))
        for n in grid.extents:  # in any order, with channels first or last
            if n in shape:
                shape.remove(n)
            elif n != 1:
                return False
        if len(shape) > 1:
            return False
    return True


def grids_of(batch: Any, key: str) -> list[Grid] | None:
    """Returns the grids of the samples of a key.

    Parameters
    ----------
    batch : mapping
        A Batch, or a batch of Volumes.
    key : str
        The key.

    Returns
    -------
    list of Grid or None
        A grid for each sample; None where they are not known.

    Raises
    ------
    Error
        If the key is missing.

    Examples
    --------
    >>> from suture.pipeline.batch import grids_of
    >>> grids_of({"image": [st.Volume(np.zeros((4, 5, 6)), axes="zyx", spacing=2)]}, "image")[0].extents
    (4, 5, 6)
    """
    if key not in batch:
        raise Error(f"suture: the batch has no {key!r}")
    value = batch[key]
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "grid"):
        return [each.grid for each in value]
    found = batch.grids.get(key) if isinstance(batch, Batch) else None
    if found and not isinstance(found[0], Grid):
        found = found[0]
    return found


__all__ = ["Batch", "grids_of"]
