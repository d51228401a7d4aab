# SPDX-License-Identifier: Apache-2.0
"""A Pipeline has a chain of operations for each image, and the labels, boxes and points that their shared geometry moves."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Never, overload

import numpy as np

from ..arrays.batch import read_layout
from ..backend import compiler, jit
from ..backend.encode import CPP_TYPES, Encoded, Encoder
from ..backend.request import Lists
from ..arguments import check_calls
from ..errors import Error
from ..operations.kinds import members, shown
from ..operations.operation import Operation, chain_of
from ..operations.templates import DTYPES, dtype_name
from .batch import Batch
from .identity import Repeats
from .plan import Plan
from .roles import boxes, labels, points, role_from_json, stored_label
from .run import Compiled, module_text

MOST_LETTERS = 200  # of a key in a record
# Operations that refuse an image of unknown spacing. affine and elastic use the spacing too, and take 1 mm where it is unknown.
IN_MILLIMETERS = ("resample", "resample_to")


@check_calls
class Pipeline:
    """A chain of operations for each image, all with the same geometry, and the role of each other key of a batch.

    Parameters
    ----------
    *given : never
        A chain without a name, which is refused.
    layout : str, optional
        Layout of arrays, where shapes could be read in several ways: "NHWC", "NCHW", "ZYX".
    **roles : list of Operation, labels, boxes or points
        The role of each key of a batch. A list is the chain of an image; labels(...), boxes(...) and points(...) are moved by the
        geometry of the images.

    Raises
    ------
    Error
        If there is no image, chains have different geometry, or an operation may not be at its position in a chain.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> train
    Pipeline(image=[window, random_crop], seg=labels())
    >>> scan = np.arange(1728, dtype=np.int16).reshape(1, 12, 12, 12)
    >>> out = train({"image": [scan], "seg": [(scan > 40).astype(np.uint8)], "id": ["case 17"]}, seed=42, epoch=3)
    >>> out["image"].shape, out["image"].dtype, out["seg"].dtype
    ((1, 1, 8, 8, 8), dtype('float32'), dtype('uint8'))
    """

    def __init__(self, *given: Never, layout: str | None = None, **roles: Any) -> None:
        if given:
            raise Error(f"suture: Pipeline: expected the chain of each image by its name in the batch, got {shown(given[0])} without one. "
                        "Pass Pipeline(image=[...])")
        if layout is not None:
            if not isinstance(layout, str) or len(layout) > 5:
                raise Error(f"suture: Pipeline: layout: expected letters such as \"NHWC\", got {shown(layout)}")
            read_layout(layout)
        self.layout = layout
        self.images: dict[str, tuple[Operation, ...]] = {}
        self.labels: dict[str, labels] = {}
        self.boxes: dict[str, boxes] = {}
        self.points: dict[str, points] = {}
        for key, role in roles.items():
            if isinstance(role, labels):
                self.labels[key] = role
            elif isinstance(role, boxes):
                self.boxes[key] = role
            elif isinstance(role, points):
                self.points[key] = role
            elif role in (labels, boxes, points):
                raise Error(f"suture: Pipeline: {key}: expected {role.__name__}(...), got the class {role.__name__}. Call it, "
                            f"{key}={role.__name__}()")
            elif isinstance(role, str) and get_close_matches(key, ["layout"]):
                raise Error(f"suture: Pipeline: expected a parameter that it has, got {key!r}. Nearest is layout")
            elif role is not None:
                self.images[key] = _chain(key, role)
        self.keys = tuple(self.roles())
        self._check()
        self._compiled: dict[Any, Compiled] = {}
        self._encoded: dict[Any, Encoded] = {}
        self._varying = {key: any(op.varies for op in chain) for key, chain in self.images.items()}
        self.levels = [Lists([np.array([0, *(len(role.levels) for role in self.labels.values())] if k == 0 else [0], np.int64)])
                       for k in range(len(self.images))]  # by image: levels of the image, always 0, and of each label map that moves with it
        self.is_random = any(op._random for chain in self.images.values() for op in chain)
        self._repeats = Repeats()
        self.fixed_size = gives_fixed_size(next(iter(self.images.values())))
        self.array_keys = tuple(self.images), tuple(self.labels)
        self.arrays = (*self.images, *self.labels)
        self.resamples = next((op.name for op in next(iter(self.images.values())) if op.name in IN_MILLIMETERS), None)

    def _check(self) -> None:
        """Refuses chains that cannot run on one batch."""
        if not self.images:
            raise Error("suture: Pipeline: there is no image; give the chain of one, image=[...]")
        first, chain_of_first = next(iter(self.images.items()))
        for key, chain in self.images.items():
            for i, op in enumerate(chain):
                if op._role == "label":
                    raise Error(f"suture: Pipeline: {key}: {op.name} converts labels: {key}=labels(convert={op.name}(...))")
                if op.name == "cast" and i + 1 < len(chain):
                    raise Error(f"suture: Pipeline: {key}: cast is the last of a chain, behind it is {chain[i + 1].name}")
            if geometry_of(chain) != geometry_of(chain_of_first):
                raise Error(f"suture: Pipeline: {key} and {first} have different geometry, and one batch moves through "
                            f"one: {[o.name for o in geometry_of(chain)]} and {[o.name for o in geometry_of(chain_of_first)]}")
        for op in chain_of_first:
            if op.name == "crop_by_class" and op.labels not in self.labels:  # type: ignore[attr-defined]
                raise Error(f"suture: Pipeline: crop_by_class reads {op.labels!r}, "  # type: ignore[attr-defined]
                            "which is no labels(...) of the pipeline")

    # A pipeline is pickled, copied and compared by its layout and its roles.

    def roles(self) -> dict[str, Any]:
        """Returns the role of each key.

        Returns
        -------
        dict
            By key the chain of an image, or its labels, boxes or points.
        """
        return {**self.images, **self.labels, **self.boxes, **self.points}

    def __reduce__(self) -> Any:
        return _remade, (self.layout, self.roles())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and (self.layout, self.roles()) == (other.layout, other.roles())

    def __hash__(self) -> int:
        return hash((self.layout, frozenset(self.images.items())))  # as ==, whatever the order

    def __repr__(self) -> str:
        parts = [f"layout={self.layout!r}"] if self.layout else []
        for key, role in self.roles().items():
            parts.append(f"{key}=[{', '.join(op.name for op in role)}]" if isinstance(role, tuple) else f"{key}={role!r}")
        return f"Pipeline({', '.join(parts)})"

    def __add__(self, more: Any) -> Pipeline:
        """Returns the pipeline with operations appended to every chain, or, by key, to some: p + {"ct": [window(...)]}."""
        added = more if isinstance(more, Mapping) else {key: more for key in self.images}
        for key in added:
            if key not in self.images:
                raise Error(f"suture: Pipeline: +: expected images of the pipeline, {', '.join(self.images)}, got {shown(key)}")
        chains = {key: [*chain, *chain_of(added.get(key))] for key, chain in self.images.items()}
        return Pipeline(layout=self.layout, **{**self.roles(), **chains})

    def plan(self, batch: Any, *, seed: int = 0, epoch: int | None = None, ids: Any = None, training: bool = True,
             threads: int | None = None, same_ids: bool = False, stream: int | None = None, device: Any = None) -> Plan:
        """Draws the random parameters of a batch and checks it; run() of the result computes the voxels.

        Parameters
        ----------
        batch : dict, array or list
            Images, label maps, boxes and points by key, and ids under "id". An array or a list alone is the only image.
        seed : int
            Seed of the draws, in 0 .. 2^64 - 1.
        epoch : int, optional
            Epoch of the draws, 0 by default. Without it, a warning is issued once when a sample is used again, since its draws repeat.
        ids : sequence of str or int, optional
            Ids of the samples, in place of those of batch["id"].
        training : bool
            Whether random operations draw; if not, they are skipped, and random crops take the center.
        threads : int, optional
            Threads of a run; by default all of the processor, and one in worker processes.
        same_ids : bool
            Whether samples may have the same id, and so the same draws.
        stream : int, optional
            CUDA stream, by default the current one of the library of the arrays. Results belong to it, as those that torch makes under
            torch.cuda.stream: another stream has to wait for it, and call Tensor.record_stream.
        device : torch device or str, optional
            Device to which Volumes that are read box by box are brought; without it they become NumPy arrays on the CPU.

        Returns
        -------
        Plan
            The plan of the batch.

        Raises
        ------
        Error
            If the batch does not fit the pipeline, an id is missing, or a parameter is out of its range for a sample.
        """
        made = Plan(self, batch, seed, 0 if epoch is None else epoch, ids, training, threads, same_ids, stream, device)
        if epoch is None and training and made.ids and self.is_random:
            self._repeats.look(made.seed, made.ids, "Pass epoch=, or use suture.Augment and its set_epoch")
        return made

    @overload
    def __call__(self, batch: Mapping[str, Any], *, out: Any = None, stack: bool = True, seed: int = 0, epoch: int | None = None,
                 ids: Any = None, training: bool = True, threads: int | None = None, same_ids: bool = False,
                 stream: int | None = None) -> Batch: ...
    @overload
    def __call__(self, batch: Any, *, out: Any = None, stack: bool = True, seed: int = 0, epoch: int | None = None,
                 ids: Any = None, training: bool = True, threads: int | None = None, same_ids: bool = False,
                 stream: int | None = None) -> Any: ...

    def __call__(self, batch: Any, *, out: Any = None, stack: bool = True, **settings: Any) -> Any:
        """Runs the pipeline on a batch: plan(batch, ...).run(out, stack=stack).

        Parameters
        ----------
        batch : dict, array or list
            As in `plan`.
        out : dict of arrays, optional
            Arrays to write to, by key, instead of new ones.
        stack : bool
            Whether samples of one output shape are returned as one array.
        **settings
            Seed, epoch and other settings of `plan`.

        Returns
        -------
        Batch or array
            As Plan.run returns it.

        Raises
        ------
        Error
            As `plan` and Plan.run.
        """
        return self.plan(batch, **settings).run(out, stack=stack)

    def to_json(self) -> dict[str, Any]:
        """Writes the layout and the roles as plain values.

        Returns
        -------
        dict
            Values of JSON, which from_json reads.
        """
        roles = {key: [op.to_json() for op in role] if isinstance(role, tuple) else role.to_json() for key, role in self.roles().items()}
        return {"layout": self.layout, "roles": roles}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Pipeline:
        """Makes the pipeline that to_json wrote.

        Parameters
        ----------
        record : dict
            Values that to_json returned.

        Returns
        -------
        Pipeline
            The same pipeline.

        Raises
        ------
        Error
            If a member is unknown, missing or of another type. Of a record, only numbers and names from fixed tables become
            C++ code, so that a record cannot bring code of its own.
        """
        made = members(record, "suture: Pipeline", ["layout", "roles"])
        if type(made["roles"]) is not dict:
            raise Error(f"suture: Pipeline: roles: expected an object of chains and labels by key, got {shown(made['roles'])}")
        for key in made["roles"]:
            if type(key) is not str or not key.isprintable() or len(key) > MOST_LETTERS or key in ("layout", "self"):
                raise Error(f"suture: Pipeline: roles: expected keys of at most {MOST_LETTERS} letters, got {shown(key)}")
        return Pipeline(layout=made["layout"], **{key: role_from_json(role, key) for key, role in made["roles"].items()})

    def sources(self, *, device: str = "cpu", order: str = "zyx", **dtypes: str) -> list[jit.Source]:
        """Returns the C++ source that is compiled for each image.

        Parameters
        ----------
        device : {"cpu", "cuda"}
            Device that the source is for.
        order : str
            Order of the axes of the arrays.
        **dtypes : str
            Element type of each input, as in sources(image="int16", seg="uint8"); float32 for images and uint8 for labels by
            default.

        Returns
        -------
        list of Source
            One for each image.
        """
        made = []
        for k, key in enumerate(self.images):
            types = [dtypes.get(key, "float32"), *(dtypes.get(n, "uint8") for n in (self.labels if k == 0 else ()))]
            made.append(self._source(key, self.encode(key, order, types, None, 1), types, device != "cpu"))
        return made

    def build(self, *, device: str = "cpu", order: str = "zyx", **dtypes: str) -> None:
        """Compiles the modules for batches of some types ahead of time.

        Parameters
        ----------
        device : {"cpu", "cuda"}
            Device that the batch will lie on.
        order : str
            Order of the axes of the arrays.
        **dtypes : str or type
            Element type of each input, as in build(image="int16", seg="uint8").

        Raises
        ------
        Error
            If a key is no image or label map of the pipeline, or a type is not read.
        CompileError
            If there is no compiler, or it fails.
        """
        unknown = set(dtypes) - set(self.images) - set(self.labels)
        if unknown:
            raise Error(f"suture: build: {', '.join(sorted(unknown))} are no images or labels of the pipeline")
        for source in self.sources(device=device, order=order,
                                   **{k: dtype_name(v, f"suture: build: {k}", ("int64", "bool")) for k, v in dtypes.items()}):
            jit.build(source)

    def encode(self, key: str, order: str, dtypes: Sequence[str], values: Mapping[str, Any] | None, samples: int,
               indexes: Callable[[Any], Any] | None = None) -> Encoded:
        """Encodes the chain of an image as C++ types, numbers and lists.

        Parameters
        ----------
        key : str
            The image.
        order : str
            Order of the axes of the arrays.
        dtypes : sequence of str
            Element type of the image and, for the first image, of each label map: the module of the first image moves and
            converts the label maps too.
        values : mapping or None
            The batch, for parameters that per_sample names. None encodes before there is a batch: lists of such parameters are
            then empty, and an Error is raised if the C++ type depends on them.
        samples : int
            Number of samples of the batch.
        indexes : callable, optional
            Returns the class indexes, one for each sample, that a crop_by_class draws from; None in evaluation.

        Returns
        -------
        Encoded
            The encoded chain.
        """
        at = (key, order, *dtypes)
        found = self._encoded.get(at)
        if found is not None:
            return found
        encoder = Encoder(order, values, samples, indexes)
        out = encoder.out
        out.types = [op.encode(encoder) for op in self.images[key]]
        for dtype, (name, role) in zip(dtypes[1:], self.labels.items()):
            conversion = role.conversion(dtype)
            if conversion is None and role.output_dtype(dtype) == "bool":
                self._check_label_outside(key, name)
            out.conversions.append("" if conversion is None else conversion.encode(encoder))
        if not self._varying[key]:
            self._encoded[at] = out
        return out

    def _check_label_outside(self, key: str, name: str) -> None:
        """Refuses a label outside the source that is none of bool."""
        for op in self.images[key]:
            outside = getattr(op, "label_outside", 0)
            if outside not in (0, 1):
                raise Error(f"suture: sampling: label_outside: expected 0 or 1 for {name}, whose labels are bool, got {outside}. Pass "
                            f"{name}=labels(dtype=\"uint8\"), or labels of int8 if it is below 0, or another label")

    def output_dtype(self, key: str) -> str:
        """Returns the element type of an output image.

        Parameters
        ----------
        key : str
            The image.

        Returns
        -------
        str
            Name of the type: that of `cast` at the end of the chain, else "float32".
        """
        chain = self.images[key]
        return chain[-1].to if chain and chain[-1].name == "cast" else "float32"  # type: ignore[attr-defined]

    def has_levels(self, key: str) -> bool:
        """Tests whether the output of a key is a list: the full map, then its levels of deep supervision.

        Parameters
        ----------
        key : str
            A key of the pipeline.

        Returns
        -------
        bool
            Whether the key is a label map with levels.
        """
        return key in self.labels and bool(self.labels[key].levels)

    def compiled(self, key: str, encoded: Encoded, dtypes: Sequence[str], device: int | None) -> Compiled:
        """Returns the module of an image for some element types.

        Parameters
        ----------
        key : str
            The image.
        encoded : Encoded
            Its chain, from encode.
        dtypes : sequence of str
            Element types, as for encode.
        device : int or None
            Number of the GPU that the module runs on; None for the CPU.

        Returns
        -------
        Compiled
            The module, which is compiled when it is first used.
        """
        architecture = "" if device is None else compiler.cuda_architecture(device)
        at = (key, *encoded.types, *dtypes, architecture)
        made = self._compiled.get(at)
        if made is None:
            made = self._compiled[at] = Compiled(self._source(key, encoded, dtypes, device is not None, architecture))
        return made

    def _source(self, key: str, encoded: Encoded, dtypes: Sequence[str], cuda: bool, architecture: str = "") -> jit.Source:
        dtype = dtypes[0]
        if dtype not in DTYPES and dtype != "bool":
            raise Error(f"suture: {key}: images of {dtype} are not read; float32, float16, bfloat16, int8 to int32, uint8, "
                        "uint16 and bool are. Pass a.astype(numpy.float32)")
        slots = [f"suture::abi::image_slot<{CPP_TYPES[dtype]}, {CPP_TYPES[self.output_dtype(key)]}>"]
        for dtype, role, conversion in zip(dtypes[1:], self.labels.values(), encoded.conversions):
            stored = stored_label(dtype)
            types = [CPP_TYPES[stored], CPP_TYPES[role.dtype or stored], *([conversion] if conversion else [])]
            slots.append(f"suture::abi::{'level' if role.levels else 'label'}_slot<{', '.join(types)}>")
        return jit.Source(module_text(encoded, slots, cuda), f"{key}: " + " | ".join(op.name for op in self.images[key]), cuda,
                          architecture)


def _chain(key: str, role: Any) -> tuple[Operation, ...]:
    """Reads the chain of an image; errors name its key."""
    if isinstance(role, (list, tuple)) and len(role) == 1 and isinstance(role[0], (labels, boxes, points)):
        raise Error(f"suture: Pipeline: {key}: expected {type(role[0]).__name__}(...) alone, got it in a list. Pass "
                    f"{key}={role[0]!r}")
    try:
        return chain_of(role)
    except Error as problem:
        raise Error(f"suture: Pipeline: {key}: {str(problem).removeprefix('suture: ')}") from None


def _remade(layout: str | None, roles: dict[str, Any]) -> Pipeline:
    return Pipeline(layout=layout, **roles)


def geometry_of(chain: Sequence[Operation]) -> tuple[Operation, ...]:
    """Returns the operations of a chain that move voxels, and its `sampling`."""
    return tuple(op for op in chain if op._role == "geometry" or op.name == "sampling")


def gives_fixed_size(chain: Sequence[Operation]) -> bool:
    """Tests whether outputs have one shape whatever the inputs have; they are then stacked into one array."""
    fixed = False
    for op in geometry_of(chain):
        if op._gives_size != "alike":
            fixed = op.fixes_size
    return fixed
