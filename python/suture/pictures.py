# SPDX-License-Identifier: Apache-2.0
"""This module draws small pictures of arrays with NumPy alone: gray slices, contact sheets, letters, PNG files."""
from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

# Letters of 5 x 7 pixels: a digit of base 32 for each row. Small letters are drawn as capital ones.
_LETTERS = {
    " ": "0000000", "A": "EHHVHHH", "B": "UHHUHHU", "C": "EHGGGHE", "D": "UHHHHHU", "E": "VGGUGGV", "F": "VGGUGGG", "G": "EHGNHHE",
    "H": "HHHVHHH", "I": "E44444E", "J": "72222IC", "K": "HIKOKIH", "L": "GGGGGGV", "M": "HRLLHHH", "N": "HPLJHHH", "O": "EHHHHHE",
    "P": "UHHUGGG", "Q": "EHHHLID", "R": "UHHUKIH", "S": "FGGE11U", "T": "V444444", "U": "HHHHHHE", "V": "HHHHHA4", "W": "HHHLLLA",
    "X": "HHA4AHH", "Y": "HHA4444", "Z": "V1248GV", "0": "EHJLPHE", "1": "4C4444E", "2": "EH1248V", "3": "V2421HE", "4": "26AIV22",
    "5": "VGU11HE", "6": "68GUHHE", "7": "V124888", "8": "EHHEHHE", "9": "EHHF12C", ".": "00000CC", ",": "0000C48", ":": "0CC0CC0",
    "-": "000E000", "+": "044V440", "/": "11248GG", "(": "2488842", ")": "8422248", "=": "00V0V00", "_": "000000V", "%": "OP248J3",
    "?": "EH12404", "#": "AAVAVAA", "'": "C480000", "*": "04LEL40", "[": "E88888E", "]": "E22222E", "<": "248G842", ">": "8421248"}
LETTER_HEIGHT, LETTER_WIDTH = 7, 6
_INK = np.array((255, 220, 60), np.uint8)
_COLORS = np.array([(230, 60, 50), (60, 180, 75), (70, 120, 255), (255, 200, 40), (180, 70, 220), (60, 210, 220), (245, 130, 40),
                    (240, 90, 190)], np.float32)


def gray(plane: Any, low: float, high: float) -> np.ndarray:
    """Draws a plane (rows, columns) as gray (rows, columns, 3) of uint8: low is black, high white."""
    values = np.asarray(plane, np.float32)
    scaled = np.clip((np.nan_to_num(values) - low) / max(high - low, 1e-6), 0, 1)
    return np.repeat((scaled * 255 + .5).astype(np.uint8)[..., None], 3, -1)


def color_of(label: int) -> np.ndarray:
    """Returns the color of a label, (3,) of uint8. The first eight are from a table; others have spread hues, alternately light and
    dark."""
    if label <= len(_COLORS):
        return np.asarray(_COLORS[label % len(_COLORS)], np.uint8)
    hue = (label * 0.618034) % 1 * 6
    ramp = np.clip([abs(hue - 3) - 1, 2 - abs(hue - 2), 2 - abs(hue - 4)], 0, 1)
    return np.asarray((ramp if label % 2 else .35 + .65 * ramp) * 255, np.uint8)


def text(line: str, ink: Any = _INK) -> np.ndarray:
    """Draws a line of letters on black, (rows, columns, 3) of uint8; letters that cannot be drawn are question marks."""
    made: np.ndarray = np.zeros((LETTER_HEIGHT, max(len(line), 1) * LETTER_WIDTH, 3), np.uint8)
    for k, letter in enumerate(line.upper()):
        for row, digit in enumerate(_LETTERS.get(letter, _LETTERS["?"])):
            bits = int(digit, 32)
            for column in range(5):
                if bits >> (4 - column) & 1:
                    made[row, k * LETTER_WIDTH + column] = ink
    return made


def outlined(picture: np.ndarray, labels: Any) -> np.ndarray:
    """Draws the outlines of labels in colors onto a picture."""
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
    for label in np.unique(a[rim]):
        made[rim & (a == label)] = color_of(int(label))
    return made


def stretched(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resizes a picture by the nearest pixel."""
    rows = np.minimum((np.arange(height) + .5) * picture.shape[0] / height, picture.shape[0] - 1).astype(int)
    columns = np.minimum((np.arange(width) + .5) * picture.shape[1] / width, picture.shape[1] - 1).astype(int)
    made: np.ndarray = picture[rows][:, columns]
    return made


def marked(picture: np.ndarray, left: str = "", top: str = "") -> np.ndarray:
    """Writes the letters of the sides of the patient onto the left and the top of a picture."""
    made: np.ndarray = picture.copy()
    for letter, (row, column) in ((left, (made.shape[0] // 2 - 3, 3)), (top, (3, made.shape[1] // 2 - 2))):
        if letter:
            inked = text(letter)[:made.shape[0] - row, :max(made.shape[1] - column, 0)]
            there = made[row:row + inked.shape[0], column:column + inked.shape[1]]
            np.copyto(there, inked, where=inked.any(-1, keepdims=True))
    return made


def sheet(pictures: Sequence[np.ndarray], columns: int, gap: int = 4) -> np.ndarray:
    """Arranges pictures on black, in rows of `columns`."""
    height, width = max(p.shape[0] for p in pictures), max(p.shape[1] for p in pictures)
    rows = -(-len(pictures) // columns)
    made = np.zeros((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), np.uint8)
    for k, p in enumerate(pictures):
        y = gap + k // columns * (height + gap) + (height - p.shape[0]) // 2
        x = gap + k % columns * (width + gap) + (width - p.shape[1]) // 2
        made[y:y + p.shape[0], x:x + p.shape[1]] = p
    return made


def png(picture: np.ndarray) -> bytes:
    """Encodes a picture (rows, columns, 3) of uint8 as a PNG file."""
    a = np.ascontiguousarray(picture, np.uint8)
    lines = np.concatenate([np.zeros((a.shape[0], 1), np.uint8), a.reshape(a.shape[0], -1)], 1).tobytes()

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">2I5B", a.shape[1], a.shape[0], 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")


def show(picture: np.ndarray) -> None:
    """Shows a picture in a notebook; elsewhere prints its size."""
    try:
        from IPython import display
    except ImportError:
        print(f"a picture of {picture.shape[1]} x {picture.shape[0]}")
        return
    shown: Any = display
    shown.display(shown.Image(png(picture)))
