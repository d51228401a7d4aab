# SPDX-License-Identifier: Apache-2.0
"""This module runs a network on windows of a volume, with mirroring as an option, and merges the outputs."""
from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.dlpack import as_numpy, is_torch, plain_torch
from ..arrays.files import is_image
from ..arrays.lazy import is_source, read_whole
from ..arrays.volume import Volume
from ..backend.plain import call_plain
from ..arguments import check_calls_in
from ..errors import Error
from ..operations.operation import AxisIntegers
from .axes import voxels_zyx
from .patches import sliding_window_grid, window_number


def mirrors(axes: str = "zyx") -> tuple[str, ...]:
    """Lists all combinations of mirrored axes, for `views` of sliding_window.

    Parameters
    ----------
    axes : str
        Names of the axes, each of z, y and x at most once.

    Returns
    -------
    tuple of str
        Axes of each view: "", "z", "y", "x", "zy", ... for "zyx", eight of them.

    Raises
    ------
    Error
        If `axes` has other letters, or one twice.

    Examples
    --------
    >>> st.mirrors("yx")
    ('', 'y', 'x', 'yx')
    """
    if not axes or set(axes) - set("zyx") or len(set(axes)) != len(axes):
        raise Error(f'suture: mirrors: axes {axes!r} are not some of "zyx"')
    return tuple("".join(some) for n in range(len(axes) + 1) for some in itertools.combinations(axes, n))


def _weights(window: int, size: Sequence[int]) -> np.ndarray:
    """Returns the weight of each voxel of a window, the same as in `reassemble`."""
    along, least = [np.zeros(n, np.float32) for n in size], np.zeros(1, np.float32)
    call_plain("window_weights", numbers=[window, *size], results=[*along, least])
    z, y, x = along
    weights: np.ndarray = np.maximum(z[:, None, None] * y[:, None] * x, least[0])
    return weights


def sliding_window(net: Callable[[Any], Any], volume: Any, *, size: AxisIntegers, step: float = 0.5, batch: int = 1,
                   window: str = "gaussian", views: Sequence[str] = ("",), device: Any = None, progress: Any = False) -> Any:
    """Runs a network on windows of a volume and averages its outputs where windows overlap.

    Parameters
    ----------
    net : callable
        The network: maps (window, channel, axes of the volume) to (window, class, the same axes).
    volume : Volume or array
        A Volume with or without channels, or an array (channel, z, y, x) of NumPy or torch, on any device. A Volume of a store, which
        is read box by box, is read as a whole. The volume is padded at the end
        with 0 along axes where it is smaller than a window. Of a Parameter or MetaTensor the network gets plain tensors.
    size : int or one for each axis
        Voxels of a window.
    step : float
        Largest distance of neighboring windows as a share of the window, above 0 and at most 1, as in nnU-Net.
    batch : int
        Number of windows in a call of the network.
    window : {"constant", "gaussian", "nnunet"}
        Weights of the voxels of a window where windows overlap; "gaussian" is MONAI's.
    views : sequence of str
        For each view the axes that windows are mirrored along; outputs are mirrored back and averaged. mirrors("zyx") lists all
        eight, the first of which is the plain view, "".
    device : torch device or str, optional
        Device of the result, for tensors; by default that of the volume, on which the network always runs. With "cpu", outputs of
        the network are copied to the CPU, so that the result may exceed the memory of the GPU.
    progress : bool or callable
        True writes a bar to stderr. A callable gets the number of finished windows and of all, after each batch:
        progress=lambda done, all: bar.update(done).

    Returns
    -------
    Volume or array
        Weighted mean of the outputs, (class, axes) of float32; a Volume for a Volume, of unknown spacing if that has none.

    Raises
    ------
    Error
        If the volume does not have three axes, a parameter is out of its range, or the network changes the shape of windows.

    Examples
    --------
    >>> volume = np.ones((1, 6, 6, 6), np.float32)
    >>> made = st.sliding_window(lambda windows: 2 * windows, volume, size=4, batch=4, views=st.mirrors("x"))
    >>> made.shape, bool(np.allclose(made, 2))
    ((1, 6, 6, 6), True)

    With a network of PyTorch, the result on the CPU:

    >>> with torch.no_grad():     # doctest: +SKIP
    ...     logits = st.sliding_window(net, scan, size=96, batch=4, device="cpu", progress=True)
    """
    what = "suture: sliding_window"
    volume = _volume(volume)
    array, axes = (volume.array, volume.axes) if isinstance(volume, Volume) else (volume, "zyx")
    if len(axes) != 3:
        raise Error(f"{what}: a volume of the axes {axes!r} has no windows of three")
    if is_source(array):  # overlapping windows would read most chunks several times
        array = read_whole(array, axes, what)
    array = plain_torch(array, what) if is_torch(array) else as_numpy(array, what)
    if len(array.shape) == 3 and isinstance(volume, Volume):
        array = array[None]
    if len(array.shape) != 4:
        raise Error(f"{what}: an array of shape {tuple(array.shape)} is not (channel, z, y, x); give a Volume, or add channels")
    kind = window_number(window, what)
    if batch < 1:
        raise Error(f"{what}: batch {batch} is below 1")
    if isinstance(views, str):
        raise Error(f"{what}: views: expected a sequence with the axes of each view, got {views!r}. Pass mirrors({views or 'zyx'!r}), or "
                    f"[{views!r}] for this view alone")
    if not views or any(not isinstance(view, (str, tuple, list)) or set(view) - set("zyx") or len(set(view)) != len(view) for view in views):
        raise Error(f"{what}: views: expected the axes along which each view is mirrored, of 'z', 'y' and 'x', got {views!r}. Pass "
                    "mirrors('zyx')")
    in_zyx = voxels_zyx(size, f"{what}: size", order=axes)
    sizes = [in_zyx["zyx".index(name)] for name in axes]
    extents = [int(n) for n in array.shape[1:]]
    array = _filled(array, [max(n, m) for n, m in zip(extents, sizes)])
    grid = sliding_window_grid([int(n) for n in array.shape[1:]], sizes, step=step)
    if device is not None and not is_torch(array):
        raise Error(f"{what}: device: expected a torch tensor to be put together elsewhere, got {type(array).__name__}. Pass a tensor, or "
                    "leave device out")
    home = _home(array, device)
    weights = _like(_weights(kind, grid.size), home)
    flips = [[2 + axes.index(name) for name in view] for view in views]
    total: Any = None
    every = slice(None)
    covered = _like(np.zeros(grid.image, np.float32), home)
    report = _bar if progress is True else progress or None
    for first in range(0, len(grid), batch):
        places = [tuple(slice(s, s + n) for s, n in zip(grid[p], grid.size)) for p in range(first, min(first + batch, len(grid)))]
        given = _stacked([array[(every,) + place] for place in places])
        seen: Any = 0.0
        for k, flip in enumerate(flips):
            # A network may write to its input, so that each view has memory of its own.
            made = net(_flipped(given, flip) if flip or k + 1 == len(flips) else _copied(given))
            if len(made.shape) != 5 or tuple(made.shape[2:]) != grid.size or len(made) != len(places):
                raise Error(f"{what}: the network makes {tuple(made.shape)} of {tuple(given.shape)}; ({len(places)}, classes, "
                            f"*{grid.size}) is needed")
            seen = seen + _flipped(_float32(made), flip) / len(flips)
        seen = _at(seen, home)
        if total is None:
            total = _like(np.zeros((int(seen.shape[1]), *grid.image), np.float32), home)
        for one, place in zip(seen, places):
            total[(every,) + place] += one * weights
            covered[place] += weights
        if report is not None:
            report(first + len(places), len(grid))
    total /= covered
    total = total[(every,) + tuple(slice(n) for n in extents)]
    return volume.of_array(total) if isinstance(volume, Volume) else total


def _volume(given: Any) -> Any:
    """Reads paths and images of nibabel and SimpleITK as Volumes; returns anything else as it is."""
    return Volume.of(given) if is_image(given) else given


def _bar(done: int, all_of_them: int) -> None:
    """Draws a progress bar on a line of stderr."""
    width = 40
    full = width * done // all_of_them
    end = "\n" if done == all_of_them else ""
    sys.stderr.write(f"\rwindows [{'#' * full}{'.' * (width - full)}] {done}/{all_of_them}{end}")
    sys.stderr.flush()


def _home(array: Any, device: Any) -> Any:
    """Returns an array whose library and device are those of the result."""
    if device is None:
        return array
    import torch

    return torch.empty(0, device=device)


def _at(array: Any, home: Any) -> Any:
    """Copies the output of a network to the device of the result, if it is another."""
    return array.to(home.device) if is_torch(array) and is_torch(home) else array


def _like(host: np.ndarray, array: Any) -> Any:
    """Converts an array to the library and device of `array`."""
    if not is_torch(array):
        return host
    import torch

    return torch.from_numpy(host).to(array.device)


def _filled(array: Any, extents: Sequence[int]) -> Any:
    missing = [m - int(n) for n, m in zip(array.shape[1:], extents)]
    if not any(missing):
        return array
    if is_torch(array):
        import torch

        return torch.nn.functional.pad(array, [n for k in reversed(missing) for n in (0, k)])
    return np.pad(array, [(0, 0), *((0, k) for k in missing)])


def _stacked(arrays: Sequence[Any]) -> Any:
    if is_torch(arrays[0]):
        import torch

        return torch.stack(list(arrays))
    return np.stack(arrays)


def _float32(array: Any) -> Any:
    """Converts to float32, in which the outputs of a network are summed."""
    what = "suture: sliding_window: result of the network"
    return plain_torch(array, what).detach().float() if is_torch(array) else np.asarray(as_numpy(array, what), np.float32)


def _copied(array: Any) -> Any:
    return array.clone() if is_torch(array) else array.copy()


def _flipped(array: Any, axes: Sequence[int]) -> Any:
    if not axes:
        return array
    return array.flip(list(axes)) if is_torch(array) else np.flip(array, tuple(axes)).copy()


__all__ = ["mirrors", "sliding_window"]

check_calls_in(globals())
