# SPDX-License-Identifier: Apache-2.0
"""These functions erode and dilate masks and images, and open and close masks."""
from __future__ import annotations

from typing import Any

from ..arguments import check_calls_in
from ..arrays.batch import Items
from ..arrays.dlpack import stream_of
from ..backend.call import IMAGES
from ..errors import Error
from .axes import voxels_zyx
from .mask_runs import check_bool, choice_number, run_on_masks

SHAPES = ("box", "cross", "ball")  # suture::element_shape


def _element(name: str, shape: str, radius: Any) -> list[float]:
    """Returns the numbers of a structuring element."""
    return [choice_number(shape, SHAPES, f"{name}: shape"), *voxels_zyx(radius, f"suture: {name}: radius", "radius")]


def _morphology(name: str, masks: Any, shape: str, radius: Any, border_value: bool, layout: str | None) -> Any:
    return run_on_masks(name, masks, "uint8", [*_element(name, shape, radius), bool(border_value)], layout=layout)[0]


def binary_erosion(masks: Any, *, shape: str = "cross", radius: Any = 1, border_value: bool = False,
                   layout: str | None = None) -> Any:
    """Erodes masks: the result is 1 where every voxel of the structuring element is set.

    Parameters
    ----------
    masks : arrays
        Masks of one channel; a voxel is set where it is not 0.
    shape : {"box", "cross", "ball"}
        Shape of the structuring element: a cross holds |dz| + |dy| + |dx| <= radius, a ball is Euclidean.
    radius : int or axes
        Radius of the element, 0 to 63 voxels: one number, or one by the name of each axis. Only a box may have different radii;
        a cross or ball may have 0 along some axes.
    border_value : bool
        Whether voxels outside the volume count as set.
    layout : str, optional
        Layout of the arrays.

    Returns
    -------
    arrays
        uint8 masks of 0 and 1, of the library and on the device of the masks.

    Raises
    ------
    Error
        If masks have several channels, or the element does not exist.

    Examples
    --------
    >>> mask = np.array([0, 1, 1, 1, 0], np.uint8).reshape(1, 1, 1, 5)
    >>> st.binary_erosion([mask], radius=dict(z=0, y=0, x=1))[0].ravel().tolist()
    [0, 0, 1, 0, 0]
    """
    return _morphology("binary_erosion", masks, shape, radius, border_value, layout)


def binary_dilation(masks: Any, *, shape: str = "cross", radius: Any = 1, border_value: bool = False,
                    layout: str | None = None) -> Any:
    """Dilates masks: the result is 1 where any voxel of the structuring element is set.

    Parameters
    ----------
    masks, shape, radius, border_value, layout
        As in `binary_erosion`.

    Returns
    -------
    arrays
        uint8 masks of 0 and 1, of the library and on the device of the masks.

    Raises
    ------
    Error
        If masks have several channels, or the element does not exist.

    Examples
    --------
    >>> mask = np.array([0, 0, 1, 0, 0], np.uint8).reshape(1, 1, 1, 5)
    >>> st.binary_dilation([mask])[0].ravel().tolist()
    [0, 1, 1, 1, 0]
    """
    return _morphology("binary_dilation", masks, shape, radius, border_value, layout)


def binary_opening(masks: Any, *, shape: str = "cross", radius: Any = 1, border_value: bool = False,
                   layout: str | None = None) -> Any:
    """Opens masks by erosion, then dilation: parts are removed that the structuring element does not fit into.

    Parameters
    ----------
    masks, shape, radius, border_value, layout
        As in `binary_erosion`.

    Returns
    -------
    arrays
        uint8 masks of 0 and 1, of the library and on the device of the masks.

    Raises
    ------
    Error
        If masks have several channels, or the element does not exist.

    Examples
    --------
    >>> mask = np.array([0, 1, 1, 1, 0, 1], np.uint8).reshape(1, 1, 1, 6)
    >>> st.binary_opening([mask], radius=dict(z=0, y=0, x=1))[0].ravel().tolist()
    [0, 1, 1, 1, 0, 0]
    """
    return _morphology("binary_opening", masks, shape, radius, border_value, layout)


def binary_closing(masks: Any, *, shape: str = "cross", radius: Any = 1, border_value: bool = False,
                   layout: str | None = None) -> Any:
    """Closes masks by dilation, then erosion: gaps are filled that the structuring element does not fit into.

    Both steps take voxels outside the volume as `border_value`: without it set voxels at the border are eroded.

    Parameters
    ----------
    masks, shape, radius, border_value, layout
        As in `binary_erosion`.

    Returns
    -------
    arrays
        uint8 masks of 0 and 1, of the library and on the device of the masks.

    Raises
    ------
    Error
        If masks have several channels, or the element does not exist.

    Examples
    --------
    >>> mask = np.array([0, 1, 1, 0, 1, 1, 0], np.uint8).reshape(1, 1, 1, 7)
    >>> st.binary_closing([mask], radius=dict(z=0, y=0, x=1))[0].ravel().tolist()
    [0, 1, 1, 1, 1, 1, 0]
    """
    return _morphology("binary_closing", masks, shape, radius, border_value, layout)


def _gray(name: str, images: Any, shape: str, radius: Any, border_value: float | None, layout: str | None) -> Any:
    items = Items(images, name, layout, stream_of(images))
    if items.channels != 1:
        raise Error(f"suture: {name}: images have {items.channels} channels; one is needed")
    border = [border_value is not None, 0.0 if border_value is None else border_value]
    check_bool(items, border[1], f"suture: {name}: border_value")
    return run_on_masks(name, items, items.dtype, [*_element(name, shape, radius), *border], layout=layout, types=IMAGES)[0]


def gray_erosion(images: Any, *, shape: str = "cross", radius: Any = 1, border_value: float | None = None,
                 layout: str | None = None) -> Any:
    """Erodes images: each voxel is the least value within the structuring element.

    Parameters
    ----------
    images : arrays
        Images of one channel.
    shape : {"box", "cross", "ball"}
        Shape of the structuring element: a cross holds |dz| + |dy| + |dx| <= radius, a ball is Euclidean.
    radius : int or axes
        Radius of the element, 0 to 63 voxels: one number, or one by the name of each axis. Only a box may have different radii;
        a cross or ball may have 0 along some axes.
    border_value : float, optional
        Value of voxels outside the volume. By default these are ignored.
    layout : str, optional
        Layout of the arrays.

    Returns
    -------
    arrays
        Images of the same element type, library and device.

    Raises
    ------
    Error
        If images have several channels, the element does not exist, or their type does not hold the border value.

    Examples
    --------
    >>> image = np.array([5, 1, 7, 8, 9], np.float32).reshape(1, 1, 1, 5)
    >>> st.gray_erosion([image])[0].ravel().tolist()
    [1.0, 1.0, 1.0, 7.0, 8.0]
    """
    return _gray("gray_erosion", images, shape, radius, border_value, layout)


def gray_dilation(images: Any, *, shape: str = "cross", radius: Any = 1, border_value: float | None = None,
                  layout: str | None = None) -> Any:
    """Dilates images: each voxel is the greatest value within the structuring element.

    Parameters
    ----------
    images, shape, radius, border_value, layout
        As in `gray_erosion`.

    Returns
    -------
    arrays
        Images of the same element type, library and device.

    Raises
    ------
    Error
        If images have several channels, the element does not exist, or their type does not hold the border value.

    Examples
    --------
    >>> image = np.array([5, 1, 7, 8, 9], np.float32).reshape(1, 1, 1, 5)
    >>> st.gray_dilation([image])[0].ravel().tolist()
    [5.0, 7.0, 8.0, 9.0, 9.0]
    """
    return _gray("gray_dilation", images, shape, radius, border_value, layout)


__all__ = ["binary_closing", "binary_dilation", "binary_erosion", "binary_opening", "gray_dilation", "gray_erosion"]
check_calls_in(globals())
