# SPDX-License-Identifier: Apache-2.0
"""This module has the parts of suture for PyTorch: Augment as one custom operator, ids on the host, and ragged batches."""
from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from .pipeline import augment
from .arguments import check_calls
from .arrays.lazy import as_tensor
from .errors import Error
from .pipeline.pipeline import Pipeline
from .arrays.volume import Volume

_known: dict[int, augment.Augment] = {}
_guard = threading.Lock()


def _register(aug: Augment) -> int:
    """Returns a number for an Augment, since custom operators take no objects. The Augment lives until the process ends."""
    with _guard:
        number = len(_known)
        _known[number] = aug
        return number


@torch.library.custom_op("suture::augment", mutates_args=())
def _run(images: list[torch.Tensor], maps: list[torch.Tensor], state: torch.Tensor, augment_number: int) -> list[torch.Tensor]:
    """Runs one step on stacked images and label maps. `state`, on the host, has seed, epoch, whether it is training, and the ids, so
    that a new epoch does not recompile the program."""
    aug = _known[augment_number]
    pipeline = aug.pipeline
    values = state.tolist()
    batch: dict[str, Any] = dict(zip(pipeline.images, images)) | dict(zip(pipeline.labels, maps))
    ids = [v & ((1 << 64) - 1) for v in values[3:]]
    plan = pipeline.plan(batch, seed=values[0] & ((1 << 64) - 1), epoch=values[1], ids=ids or None, training=bool(values[2]),
                         threads=aug.threads, same_ids=aug.same_ids)
    out = plan.run()
    made: list[torch.Tensor] = []
    for key in (*pipeline.images, *pipeline.labels):
        made.extend(out[key] if isinstance(out[key], list) else [out[key]])
    return made


@_run.register_fake
def _(images: list[torch.Tensor], maps: list[torch.Tensor], state: torch.Tensor, augment_number: int) -> list[torch.Tensor]:
    aug = _known[augment_number]
    pipeline = aug.pipeline
    if not pipeline.fixed_size:
        raise Error("suture: torch.compile needs outputs of one shape: end the geometry with a crop")
    size = fixed_extents(pipeline)
    letters = "nczyx" if pipeline.layout is None else _letters(pipeline.layout)
    made = []

    def shape(count: int, channels: int, extents: Sequence[int]) -> list[int]:
        named = {"n": count, "c": channels, **dict(zip("zyx", extents))}
        return [named[c] for c in letters]

    for key, image in zip(pipeline.images, images):
        channels = image.shape[letters.index("c")]
        made.append(image.new_empty(shape(image.shape[0], channels, size), dtype=getattr(torch, pipeline.output_dtype(key))))
    from .pipeline.roles import level_extents, stored_label

    for role, labels in zip(pipeline.labels.values(), maps):
        dtype = role.dtype or stored_label(str(labels.dtype).removeprefix("torch."))
        lacks = labels.dim() == len(letters) - 1  # label maps may leave the channel axis out
        channels = role.channels(1 if lacks else labels.shape[letters.index("c")])
        for extents in [size, *(level_extents(size, s, "zyx") for s in role.levels)]:
            made.append(labels.new_empty(shape(labels.shape[0], channels, extents), dtype=getattr(torch, dtype)))
    return made


def _letters(layout: str) -> str:
    from .arrays.batch import read_layout

    letters = read_layout(layout)
    return letters if "n" in letters else "n" + letters


@check_calls
def fixed_extents(pipeline: Pipeline) -> tuple[int, ...]:
    """Returns the output extents of a pipeline of fixed size.

    Parameters
    ----------
    pipeline : Pipeline
        A pipeline whose geometry ends with a crop.

    Returns
    -------
    tuple of int
        Extents along (z, y, x).

    Examples
    --------
    >>> suture.torch.fixed_extents(st.Pipeline(image=[st.random_crop(size=8)]))
    (8, 8, 8)
    """
    from .backend.encode import Encoder

    order = "zyx" if pipeline.layout is None else "".join(c for c in _letters(pipeline.layout) if c in "zyx")
    size: tuple[int, ...] = ()
    for op in next(iter(pipeline.images.values())):
        if op.fixes_size:
            size = Encoder(order, {}, 1).triple(op.size, "size", f"suture: {op.name}")  # type: ignore[attr-defined]
        elif op.name == "pad" and size:
            encoder = Encoder(order, {}, 1)
            before, after = encoder.triple(op.before, "before", "suture: pad"), encoder.triple(op.after, "after", "suture: pad")  # type: ignore[attr-defined]
            size = tuple(n + b + a for n, b, a in zip(size, before, after))
        elif op.name == "permute" and size:
            axes = [Encoder(order, {}, 1).axis(a, "suture: permute") for a in op.order]  # type: ignore[attr-defined]
            size = tuple(size[a] for a in (axes[::-1] if order == "xyz" else axes))
        elif op.name == "rot90" and size and op.quarter_turns % 2:  # type: ignore[attr-defined]
            a, b = (Encoder(order, {}, 1).axis(a, "suture: rot90") for a in op.axes)  # type: ignore[attr-defined]
            size = tuple(size[{a: b, b: a}.get(k, k)] for k in range(3))
        elif op.name == "resize" and size:
            wanted = Encoder(order, {}, 1).triple(op.extents, "extents", "suture: resize")  # type: ignore[attr-defined]
            size = tuple(w or n for w, n in zip(wanted, size))
        elif op.name == "pad_to" and size:
            least = Encoder(order, {}, 1).triple(op.size, "size", "suture: pad_to")  # type: ignore[attr-defined]
            size = tuple(max(n, m) for n, m in zip(size, least))
    return size


@check_calls
class Augment(augment.Augment):
    """An Augment for tensors, on the CPU or on the current stream of a GPU.

    `run` is one custom operator for stacked tensors and a fixed output size, which torch.compile includes without a graph break.

    Parameters
    ----------
    pipeline, seed, rank, world, threads, same_ids
        As in suture.Augment.

    Raises
    ------
    Error
        If `pipeline` is no Pipeline, or the rank is not below `world`.

    Examples
    --------
    >>> import torch
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> aug = suture.torch.Augment(train, seed=42)
    >>> scan = torch.arange(1728, dtype=torch.int16).reshape(1, 1, 12, 12, 12)
    >>> batch = {"image": scan, "seg": (scan > 40).to(torch.uint8), "id": ["case 17"]}
    >>> aug(batch)["image"].shape
    torch.Size([1, 1, 8, 8, 8])
    """

    def __init__(self, pipeline: Pipeline, *, seed: int, rank: int = 0, world: int = 1, threads: int | None = None,
                 same_ids: bool = False) -> None:
        super().__init__(pipeline, seed=seed, rank=rank, world=world, threads=threads, same_ids=same_ids)
        self._number = _register(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._number = _register(self)

    def state_of(self, count: int, *, training: bool = True, ids: Any = None) -> torch.Tensor:
        """Returns the state of the present step, for `run`.

        Parameters
        ----------
        count : int
            Number of samples of the batch.
        training : bool
            Whether random operations draw; if not, they are skipped, and random crops take the center.
        ids : sequence of str or int, optional
            Ids of the samples; without them those of Augment.places.

        Returns
        -------
        torch.Tensor
            Seed, epoch, whether it is training, and the ids, of int64 on the host.
        """
        from .pipeline.identity import ids_of

        numbers: list[int] = []
        if ids is not None:
            numbers = ids_of(ids, count)
        elif training:
            numbers = self.places(count, self.step)
        signed = [v - (1 << 64) if v >= 1 << 63 else v for v in (self.seed, *numbers)]
        return torch.tensor([signed[0], self.epoch, int(training), *signed[1:]], dtype=torch.int64)

    def run(self, batch: Mapping[str, torch.Tensor], state: torch.Tensor) -> dict[str, Any]:
        """Runs a step on stacked tensors, also within a program of torch.compile. The step does not advance.

        Parameters
        ----------
        batch : mapping of torch.Tensor
            Images and label maps by key.
        state : torch.Tensor
            The state of the step, from state_of.

        Returns
        -------
        dict
            The batch with the outputs.
        """
        pipeline = self.pipeline
        outputs = _run([batch[k] for k in pipeline.images], [batch[k] for k in pipeline.labels], state, self._number)
        made: dict[str, Any] = dict(batch)
        at = 0
        for key in pipeline.images:
            made[key] = outputs[at]
            at += 1
        for key, role in pipeline.labels.items():
            count = 1 + len(role.levels)
            made[key] = list(outputs[at:at + count]) if role.levels else outputs[at]
            at += count
        return made


class _WithIds(Dataset[Any]):
    def __init__(self, cases: Any, key: Any) -> None:
        self.cases, self.key = cases, key

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, i: int) -> Any:
        item = dict(self.cases[i])
        if self.key and self.key not in item:
            raise Error(f"suture: with_ids: key: expected one of {', '.join(map(str, item))}, got {self.key!r} (item {i})")
        item["id"] = str(item[self.key]) if self.key else item.get("id", f"{i}")
        return item


@check_calls
def with_ids(cases: Any, key: str | None = None) -> Dataset[Any]:
    """Returns a data set whose items have an "id". Strings stay on the host when a batch is moved to a device.

    Parameters
    ----------
    cases : data set or sequence
        Items that are mappings.
    key : str, optional
        Key of the id in an item, which becomes a string. Without it, an item keeps its "id", or gets its position in the data set as a
        string.

    Returns
    -------
    torch.utils.data.Dataset
        The items as dicts with "id".

    Raises
    ------
    Error
        When an item is read that does not have the key.

    Examples
    --------
    >>> suture.torch.with_ids([{"case": 17}, {"case": 18}], key="case")[1]
    {'case': 18, 'id': '18'}
    """
    return _WithIds(cases, key)


@check_calls
def ragged_collate(items: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Makes a batch of lists with one entry for each sample, so that shapes may differ.

    Parameters
    ----------
    items : sequence of mapping
        Items of a data set with the same keys.

    Returns
    -------
    dict
        A list for each key.

    Examples
    --------
    >>> suture.torch.ragged_collate([{"id": "a"}, {"id": "b"}])
    {'id': ['a', 'b']}
    """
    return {key: [item[key] for item in items] for key in items[0]}


@check_calls
def move(batch: Any, device: Any, *, non_blocking: bool = True) -> Any:
    """Moves tensors and Volumes of a batch to a device; everything else, such as ids, is unchanged.

    A Volume that is read box by box, such as one of a store, is read as a whole.

    Parameters
    ----------
    batch : tensor, Volume, or mapping or sequence of those
        The batch.
    device : torch device or str
        The device.
    non_blocking : bool
        Whether the copy from pinned memory is asynchronous.

    Returns
    -------
    as batch
        The batch with its tensors on the device.

    Examples
    --------
    >>> import torch
    >>> moved = suture.torch.move({"image": torch.zeros(1), "id": ["case 17"]}, "cpu")
    >>> moved["id"]
    ['case 17']
    """
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=non_blocking)
    if isinstance(batch, Volume):
        array = batch.array
        if not isinstance(array, torch.Tensor):
            array = as_tensor(np.asarray(batch), str(array.dtype))
        return batch.of_array(array.to(device, non_blocking=non_blocking))
    if isinstance(batch, Mapping):
        return {key: move(value, device, non_blocking=non_blocking) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)) and batch and isinstance(batch[0], (torch.Tensor, Volume)):
        return [move(each, device, non_blocking=non_blocking) for each in batch]
    return batch

