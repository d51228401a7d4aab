# SPDX-License-Identifier: Apache-2.0
"""A Plan has the drawn parameters of a batch: one geometry for all images, labels, boxes and points, and a C++ plan for each
image."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..arrays.batch import KNOWN, Items, bound_of, first_extents, item_shape, letters_out, read_images, unpack_grids
from ..arrays.cuda import DeviceArray
from ..arrays.dlpack import device_name, stream_of, voxels_of
from ..arrays.lazy import in_order, on_device, read_box
from ..arrays.memory import on_stream
from ..arrays.volume import Grid, Volume
from ..backend.encode import Encoded, ReadByKernels
from ..backend.request import Lists, elements
from ..backend.threads import threads_of
from ..arguments import check_calls
from ..errors import Error
from ..operations.kinds import shown
from . import geometry
from .batch import Batch
from .class_index import classes_of, indexes_of
from .identity import check_draws, ids_of, told
from .record import record_of
from .roles import batch_of, check_keys, labels, level_extents, level_grid
from .run import Output, OutputMaker, Planned
from .whole_labels import Extremes, check_extremes, whole_box, whole_labels

if TYPE_CHECKING:
    from .pipeline import Pipeline


class Plan:
    """The drawn parameters of a batch that was checked, from Pipeline.plan; run() computes its voxels.

    It can be run as often as needed, with the same result, and by several threads at once.

    Parameters
    ----------
    pipeline : Pipeline
        The pipeline of the batch.
    batch, seed, epoch, ids, training, threads, same_ids, stream, device
        As in Pipeline.plan.

    Raises
    ------
    Error
        If the batch does not fit the pipeline, an id is missing, or a parameter is out of its range for a sample.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> scan = np.arange(1728, dtype=np.int16).reshape(1, 12, 12, 12)
    >>> plan = train.plan({"image": [scan], "seg": [(scan > 40).astype(np.uint8)], "id": ["case 17"]}, seed=42)
    >>> plan
    <Plan of 1 sample, seed=42, epoch=0; image: int16, seg: uint8>
    >>> plan.grids[0].extents, plan.shapes("seg")
    ((8, 8, 8), ([[(1, 8, 8, 8)]], 'uint8'))
    >>> plan.run()["image"].shape
    (1, 1, 8, 8, 8)
    """

    def __init__(self, pipeline: Pipeline, batch: Any, seed: int, epoch: int, ids: Any, training: bool,
                 threads: int | None, same_ids: bool, stream: int | None, device: Any = None) -> None:
        self.pipeline, self.training = pipeline, training
        self.seed, self.epoch = check_draws(seed, epoch)
        self.threads = threads_of(threads)
        self._same_ids = same_ids
        self.first_key = next(iter(pipeline.images))
        given, self._bare = batch_of(batch, pipeline.keys, self.first_key)  # _bare: it was an array or list alone
        for key in pipeline.arrays:
            value = given[key]
            if type(value[0] if type(value) in (list, tuple) and value else value) not in KNOWN:
                given = {**given, key: read_images(value)}
        self._batch = given
        self._device = device
        self.stream = stream if stream is not None else stream_of(self._batch[self.first_key], device)
        unchecked: list[Extremes] = []
        self.items = self._read_items(unchecked)
        self._check_alike()
        if pipeline.points and any(role.unit == "mm" for role in pipeline.points.values()):
            geometry.source_grids(self)
        first = self.items[self.first_key]
        self.size, self.order, self.on_cuda = first.count, first.order, first.first.on_cuda
        self._given_ids = ids if ids is not None else self._batch.get("id")
        self.ids = None if self._given_ids is None else ids_of(self._given_ids, self.size)
        self._ids = None if self.ids is None else (ctypes.c_uint64 * self.size)(*self.ids)
        self._grids: list[Grid] | None = None
        self._boxes: dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
        self._planned = {key: self._plan_image(k, key) for k, key in enumerate(pipeline.images)}
        self._check_output_extents()
        if unchecked:
            check_extremes(unchecked, self.stream)

    def _read_items(self, unchecked: list[Extremes]) -> dict[str, Items]:
        """Describes the arrays of images and labels. Label maps whose values are still to be checked go to `unchecked`."""
        layout, batch = self.pipeline.layout, self._batch
        items = {key: Items(batch[key], key, layout, self.stream, True, self._device) for key in self.pipeline.images}
        for key, role in self.pipeline.labels.items():
            whole = whole_labels(batch[key], key, role.assume_integral, unchecked, self.stream)
            items[key] = Items(whole, key, layout, self.stream, True, self._device, one_channel=True)
        if self.pipeline.resamples is not None:
            for key in self.pipeline.images:
                self._check_placed(key)
        return items

    def _check_placed(self, key: str) -> None:
        """Refuses an image of unknown spacing, for pipelines that resample."""
        given = self._batch[key]
        volumes = [given] if isinstance(given, Volume) else given if isinstance(given, (list, tuple)) else []
        i = next((i for i, each in enumerate(volumes) if not getattr(each, "placed", False)), None if volumes else 0)
        if i is not None:
            name = self.pipeline.resamples
            found = "a Volume without one" if i < len(volumes) and isinstance(volumes[i], Volume) else "an array, which has none"
            raise Error(f"suture: {name}: spacing: expected the spacing of {key} in millimeters, got {found} (sample {i}). Pass "
                        "Volume(array, axes=\"zyx\", spacing=dict(z=..., y=..., x=...)) or Volume.load(path)")

    def _check_alike(self) -> None:
        """Checks that all keys have the same number of samples, one device and one order of axes."""
        first = self.items[self.first_key]
        for key, items in self.items.items():
            if items.count != first.count:
                raise Error(f"suture: {key}: expected {first.count} samples, as {self.first_key} has, got {items.count}. Give one for each")
            if items.device != first.device:
                raise Error(f"suture: {key}: on {device_name(items.device)}, {self.first_key} on {device_name(first.device)}; one "
                            "batch lies on one")
            if items.order != first.order:
                raise Error(f"suture: {key}: axes {items.order!r}, {self.first_key} has {first.order!r}")

    def _check_output_extents(self) -> None:
        """Refuses images whose outputs differ in extents from those of the first image, whose grids the batch has."""
        first, *others = self._planned
        raw = self._planned[first].grids.raw
        for key in others:
            if self._planned[key].grids.raw == raw:
                continue
            for i, (grid, own) in enumerate(zip(self.grids, unpack_grids(self._planned[key].grids.raw, self.size))):
                if own.extents != grid.extents:
                    raise Error(f"suture: {key}: sample {i}: expected an output of the extents {grid.extents}, as {first} has, got {own.extents}. "
                                f"Resample {key} to the grid of {first} before, with resample_to")

    def _plan_image(self, k: int, key: str) -> Planned:
        """Makes the C++ plan of image k. The plan of the first image also transforms the label maps."""
        pipeline = self.pipeline
        slots = [self.items[key], *([self.items[n] for n in pipeline.labels] if k == 0 else [])]
        dtypes = [s.dtype for s in slots]
        encoded = pipeline.encode(key, self.order, dtypes, self._batch, self.size, self._indexes if self.training else None)
        compiled = pipeline.compiled(key, encoded, dtypes, self.items[key].device[1] if self.on_cuda else None)
        numbers, lists = encoded.tables()
        if self.on_cuda:
            lists = _on_device(encoded, self.items[key].first.device[1])
        try:
            return Planned.make(compiled, self.size, [self.items, encoded], numbers=numbers, lists=lists,
                                inputs=[bound_of(s) for s in slots], ids=self._ids, image=k, stream=self.stream or 0, **self._settings())
        except Error as problem:
            raise Error(told(str(problem), self.ids, self._given_ids, key, pipeline.layout)) from None

    def _indexes(self, op: Any) -> Sequence[Any]:
        """Returns the class indexes that crop_by_class draws from, for each sample."""
        classes = classes_of(op, self.pipeline.labels[op.labels].convert)
        return indexes_of(self.items[op.labels], classes, self.threads)

    def _settings(self) -> dict[str, Any]:
        return {"seed": self.seed, "epoch": self.epoch, "evaluation": not self.training, "threads": self.threads,
                "same_ids": self._same_ids}

    def __repr__(self) -> str:
        draws = f"seed={self.seed}, epoch={self.epoch}" if self.training else "training=False"
        arrays = ", ".join(f"{key}: {items.dtype}" for key, items in self.items.items())
        return f"<Plan of {self.size} {'sample' if self.size == 1 else 'samples'}, {draws}; {arrays}>"

    @property
    def grids(self) -> list[Grid]:
        """The output grid of each sample."""
        if self._grids is None:
            self._grids = unpack_grids(self._planned[self.first_key].grids.raw, self.size)
        return self._grids

    def source_boxes(self, key: str | None = None) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Returns the box of its source that each sample reads.

        Parameters
        ----------
        key : str, optional
            An image or a label map; the first image by default. A label map has the boxes of the first image.

        Returns
        -------
        list of (low, high)
            The voxels from `low` up to, and without, `high`, both along (z, y, x) whatever the order of the array's axes. Where
            a whole source is needed, the box covers all of it.

        Raises
        ------
        Error
            If the key is no image and no label map.
        """
        image = self._image_of(key)
        known = self._boxes.get(image)
        if known is None:
            made = self._planned[image].source_boxes(self.size)
            low, high = made[:, :3].tolist(), (made[:, :3] + made[:, 3:]).tolist()
            known = self._boxes[image] = [(tuple(a), tuple(b)) for a, b in zip(low, high)]
        return list(known)

    def needs_whole_source(self, key: str | None = None) -> str:
        """Says why samples need their whole source.

        Parameters
        ----------
        key : str, optional
            An image or a label map; the first image by default.

        Returns
        -------
        str
            The reason in one sentence; an empty text where a box is enough.

        Raises
        ------
        Error
            If the key is no image and no label map.
        """
        return self._planned[self._image_of(key)].whole_source()

    def _image_of(self, key: str | None) -> str:
        """Returns the image whose C++ plan computes a key: itself, or the first image for a label map."""
        if key is None:
            return self.first_key
        if key not in self.items:
            raise Error(f"suture: plan: key: expected one of {', '.join(self.items)}, got {shown(key)}")
        return key if key in self.pipeline.images else self.first_key

    def read_boxes(self, key: str) -> list[Any]:
        """Reads the box of each sample of a key that is read box by box, into new memory.

        Parameters
        ----------
        key : str
            An image or a label map.

        Returns
        -------
        list of arrays
            The box of each sample, on the device of the plan.
        """
        items = self.items[key]
        assert items.sources is not None
        made = []
        for i, (source, (low, high)) in enumerate(zip(items.sources, self.source_boxes(key))):
            box = read_box(source, in_order(low, self.order), in_order(high, self.order), f"{items.what}: sample {i}")
            with on_stream(items.first, self.stream):
                made.append(on_device(box, items.first))
        return made

    def _inputs(self, key: str, boxes: Mapping[str, Any]) -> tuple[tuple[bytes, int, int], list[Any]]:
        """Returns the abi::array records of a key for a run, as bound_of does, and the boxes that they point to."""
        items = self.items[key]
        given = boxes.get(key)
        if given is None and items.sources is None:
            return bound_of(items), []
        given = self.read_boxes(key) if given is None else list(given)
        if len(given) != self.size:
            raise Error(f"suture: run: boxes: expected {self.size} of {key}, got {len(given)}")
        role = self.pipeline.labels.get(key) if items.dtype == "int32" else None  # the source of int32 may be int64 or float
        records, kept = [], []
        for i, (each, (low, _)) in enumerate(zip(given, self.source_boxes(key))):
            box, low = each if isinstance(each, tuple) else (each, low)
            voxels = voxels_of(box)
            kept.append(voxels if role is None else whole_box(voxels, key, i, role.assume_integral, self.stream))
            records.append(items.box_record(i, kept[-1], low, self.stream))
        return (b"".join(records), self.size, 0), kept

    @check_calls
    def run(self, out: Any = None, *, boxes: Mapping[str, Any] | None = None, stack: bool = True) -> Any:
        """Computes the voxels.

        Parameters
        ----------
        out : dict of arrays, optional
            Arrays to write to, by key, instead of new ones.
        boxes : dict of lists, optional
            Boxes that the caller has read: by key a list with one for each sample. A box is an array that begins where
            source_boxes(key) says, or a pair of an array and its first voxel along (z, y, x). It has the axes and the type of the
            sample; for label maps of int64 or float it may be int32. Without boxes, the run itself reads those of Volumes that are
            read box by box.
        stack : bool, default True
            Whether outputs are one array if the pipeline gives all samples one shape. Otherwise they are a list, of Volumes for
            Volumes and of arrays for arrays.

        Returns
        -------
        Batch or array
            A dict as the batch was, with `grids`; an array or list alone where the batch was one.

        Raises
        ------
        Error
            If `out` does not fit the outputs, a box lacks voxels that its sample reads, or a source cannot be read.
        """
        pipeline = self.pipeline
        given = self._boxes_given(boxes)
        places = self._outputs_given(out)
        stacked = pipeline.fixed_size and stack
        extents = [first_extents(self._planned[self.first_key].grids)] if stacked else [g.extents for g in self.grids]
        maker = OutputMaker(self.size, self.stream, stacked)
        made: dict[str, Any] = dict(self._batch)
        for k, (key, planned) in enumerate(self._planned.items()):
            items = self.items[key]
            outputs = [maker.make(items, key, pipeline.output_dtype(key), items.channels, extents, places.get(key),
                                  self._output_grids(items, None, stacked))]
            made[key] = outputs[0].value
            if k == 0:
                for name, role in pipeline.labels.items():
                    each = self._label_outputs(maker, name, role, extents, places.get(name))
                    outputs += each
                    made[name] = [one.value for one in each] if role.levels else each[0].value
            inputs, kept = self._run_inputs(k, key, given)
            planned.run(items.first, self.stream, lists=pipeline.levels[k], inputs=inputs, outputs=[o.bound for o in outputs], image=k,
                        samples=self.size, **self._settings())
            del kept  # the boxes had to live until the run was queued
        for name, box in pipeline.boxes.items():
            made[name] = geometry.boxes_to_output(self, self._batch[name], box)
        for name, point in pipeline.points.items():
            made[name] = geometry.points_to_output(self, self._batch[name], point)
        if self._bare:
            return made[self.first_key]
        return Batch.of(made, self._planned[self.first_key].grids, self.size, self.order, pipeline,
                        self.items[self.first_key].placed)

    def shapes(self, key: str) -> tuple[list[list[tuple[int, ...]]], str]:
        """Returns the shapes and the element type of the output of a key, as run(stack=True) makes it.

        Parameters
        ----------
        key : str
            An image or a label map.

        Returns
        -------
        shapes : list of list of tuple
            For the full map and then each level the shape of each sample, without the axis of samples.
        dtype : str
            Name of the element type.
        """
        pipeline, items = self.pipeline, self.items[key]
        role = pipeline.labels.get(key)
        dtype = pipeline.output_dtype(key) if role is None else role.output_dtype(items.dtype)
        channels = items.channels if role is None else role.channels(items.channels)
        letters = letters_out(items.letters, channels, pipeline.fixed_size)
        scales: list[Any] = [None, *(role.levels if role is not None else ())]
        extents = [g.extents for g in self.grids]
        return [[item_shape(e if s is None else level_extents(e, s, self.order), channels, letters) for e in extents] for s in scales], dtype

    def _boxes_given(self, boxes: Mapping[str, Any] | None) -> Mapping[str, Any]:
        if boxes is None:
            return {}
        if not isinstance(boxes, Mapping):
            raise Error(f"suture: run: boxes: expected a dict of lists by key, got {shown(boxes)}")
        check_keys(boxes, self.items, "suture: run: boxes", "Name an image or a label map of the batch")
        return boxes

    def _run_inputs(self, k: int, key: str, boxes: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        """Returns the inputs of image k and its label maps, and the memory that they point to; nothing if the run reads the inputs
        of the plan."""
        keys = [key, *(self.pipeline.labels if k == 0 else ())]
        if not any([n in boxes or self.items[n].sources is not None for n in keys]):
            return [], []
        made = [self._inputs(n, boxes) for n in keys]
        return [bound for bound, _ in made], [kept for _, kept in made]

    def _outputs_given(self, out: Any) -> Mapping[str, Any]:
        """Returns the arrays that outputs are written to, by key, and refuses unknown keys."""
        if out is None:
            return {}
        if not isinstance(out, Mapping):
            return {self.first_key: out}
        check_keys(out, self.items, "suture: out", "Pass arrays to write to, or nothing")
        return out

    def _label_outputs(self, maker: OutputMaker, key: str, role: labels, extents: Sequence[Sequence[int]], place: Any) -> list[Output]:
        """Makes the outputs of a label map: the full map, then each level."""
        items = self.items[key]
        scales: list[Any] = [None, *role.levels]
        places = list(place) if place is not None and role.levels else [place] * len(scales)
        if len(places) != len(scales):
            raise Error(f"suture: {key}: out: expected {len(scales)} arrays, the full map and its levels, got {len(places)}")
        dtype, channels = role.output_dtype(items.dtype), role.channels(items.channels)
        return [maker.make(items, key, dtype, channels, extents if s is None else [level_extents(e, s, self.order) for e in extents],
                           given, self._output_grids(items, s, maker.stacked)) for s, given in zip(scales, places)]

    def _output_grids(self, items: Items, scale: Any, stacked: bool) -> list[Grid] | None:
        """Returns the grids of the output Volumes."""
        if stacked or not items.volumes:
            return None
        return self.grids if scale is None else [level_grid(g, scale, self.order) for g in self.grids]

    def drawn(self, key: str | None = None) -> list[list[dict[str, Any]]]:
        """Returns what the random operations of an image drew.

        Parameters
        ----------
        key : str, optional
            An image; the first one by default.

        Returns
        -------
        list of list of dict
            For each sample a list with a dict for each random operation, of its name and its draws; "not drawn" where it was not
            applied.
        """
        return self._planned[key or self.first_key].drawn()

    @check_calls
    def inverse(self, batch: Any, *, outside: float = 0.0, coverage: bool = False,
                interpolation: Literal["linear", "nearest"] | Mapping[str, Literal["linear", "nearest"]] = "linear") -> Any:
        """Maps results on the output grids, such as probabilities, back to the grids of the batch.

        Parameters
        ----------
        batch : dict of arrays
            Arrays or Volumes by the key of an image or label map, on the output grids; without a dict those of the first image.
        outside : float
            Value of voxels that no output covers.
        coverage : bool
            Whether the coverage of each voxel, 0 to 1, is returned beside it.
        interpolation : {"linear", "nearest"} or dict
            Interpolation, for all keys or by key; "nearest" for label maps and masks. Keys that a dict leaves out are "linear".

        Returns
        -------
        dict
            By key a Volume for each sample, on the grid of its input and without spacing if that has none; arrays if the inputs
            are arrays. With coverage a pair of values and coverages.

        Raises
        ------
        Error
            If a key or an interpolation is unknown, a shape or type does not fit, the geometry cannot be inverted, or bool, int64 or whole numbers of
            a label map would be interpolated linearly.
        """
        return geometry.inverse(self, batch, outside, coverage, interpolation)

    def record(self, out: Any) -> Any:
        """Records the draws and digests of inputs and outputs, for `replay`.

        Parameters
        ----------
        out : Batch or array
            The result of run.

        Returns
        -------
        Record
            A dict of JSON values, with `save`.
        """
        return record_of(self, out)


def _on_device(encoded: Encoded, device: int) -> Lists:
    """Returns the lists of a chain; those that kernels read are copied to a GPU."""
    return Lists([(DeviceArray.of(rows, device), *elements(rows)[1:]) if isinstance(rows, ReadByKernels) else rows for rows in encoded.lists])
