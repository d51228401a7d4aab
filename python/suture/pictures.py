# SPDX-License-Identifier: Apache-2.0
"""Small pictures of arrays with NumPy alone: gray slices, contact sheets, PNG files, letters for sides of the patient."""
from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

# Rows of five pixels, for the sides that radiologists mark: right, left, anterior, posterior, head, foot.
_LETTERS = {"R": (30, 17, 17, 30, 20, 18, 17), "L": (16, 16, 16, 16, 16, 16, 31), "A": (4, 10, 17, 17, 31, 17, 17),
            "P": (30, 17, 17, 30, 16, 16, 16), "H": (17, 17, 17, 31, 17, 17, 17), "F": (31, 16, 16, 30, 16, 16, 16)}
_COLORS = np.array([(230, 60, 50), (60, 180, 75), (70, 120, 255), (255, 200, 40), (180, 70, 220), (60, 210, 220), (245, 130, 40),
                    (240, 90, 190)], np.float32)


def gray(plane: Any, low: float, high: float) -> np.ndarray:
    """A plane (rows, columns) as gray (rows, columns, 3) of uint8: low is black, high white."""
    values = np.asarray(plane, np.float32)
    scaled = np.clip((np.nan_to_num(values) - low) / max(high - low, 1e-6), 0, 1)
    return np.repeat((scaled * 255 + .5).astype(np.uint8)[..., None], 3, -1)


def outlined(picture: np.ndarray, labels: Any) -> np.ndarray:
    """The picture with the rims of labels in colors."""
    a = np.asarray(labels).astype(np.int64)
    rim = np.zeros(a.shape, bool)
    for axis in (0, 1):
        differs = np.diff(a, axis=axis) != 0
        head = [slice(None)] * 2
        tail = [slice(None)] * 2
        head[axis], tail[axis] = slice(None, -1), slice(1, None)
        rim[tuple(head)] |= differs
        rim[tuple(tail)] |= differs
    rim &= a > 0
    made: np.ndarray = picture.copy()
    made[rim] = _COLORS[a[rim] % len(_COLORS)].astype(np.uint8)
    return made


def stretched(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """Another size, every pixel the nearest."""
    rows = np.minimum((np.arange(height) + .5) * picture.shape[0] / height, picture.shape[0] - 1).astype(int)
    columns = np.minimum((np.arange(width) + .5) * picture.shape[1] / width, picture.shape[1] - 1).astype(int)
    made: np.ndarray = picture[rows][:, columns]
    return made


def marked(picture: np.ndarray, left: str = "", top: str = "") -> np.ndarray:
    """The picture with the letters of the sides of the patient that are on its left and top."""
    made: np.ndarray = picture.copy()
    for letter, (row, column) in ((left, (made.shape[0] // 2 - 3, 3)), (top, (3, made.shape[1] // 2 - 2))):
        for dy, bits in enumerate(_LETTERS.get(letter, ())):
            for dx in range(5):
                if bits >> (4 - dx) & 1 and row + dy < made.shape[0] and column + dx < made.shape[1]:
                    made[row + dy, column + dx] = (255, 220, 60)
    return made


def sheet(pictures: Sequence[np.ndarray], columns: int, gap: int = 4) -> np.ndarray:
    """Pictures beside and below each other on black, in rows of `columns`."""
    height, width = max(p.shape[0] for p in pictures), max(p.shape[1] for p in pictures)
    rows = -(-len(pictures) // columns)
    made = np.zeros((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), np.uint8)
    for k, p in enumerate(pictures):
        y = gap + k // columns * (height + gap) + (height - p.shape[0]) // 2
        x = gap + k % columns * (width + gap) + (width - p.shape[1]) // 2
        made[y:y + p.shape[0], x:x + p.shape[1]] = p
    return made


def png(picture: np.ndarray) -> bytes:
    """A picture (rows, columns, 3) of uint8 as a PNG file."""
    a = np.ascontiguousarray(picture, np.uint8)
    lines = np.concatenate([np.zeros((a.shape[0], 1), np.uint8), a.reshape(a.shape[0], -1)], 1).tobytes()

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">2I5B", a.shape[1], a.shape[0], 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")


def show(picture: np.ndarray) -> None:
    """In a notebook, the picture; elsewhere its size."""
    try:
        from IPython import display
    except ImportError:
        print(f"a picture of {picture.shape[1]} x {picture.shape[0]}")
        return
    shown: Any = display
    shown.display(shown.Image(png(picture)))
