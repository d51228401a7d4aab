# SPDX-License-Identifier: Apache-2.0
"""The contact sheet: what it shows lies where a radiologist looks for it."""
import struct
import zlib

import numpy as np
import pytest

import suture as st
from suture import demo, pictures


def decoded(data):
    """A PNG file of plain lines, without the writer's help."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        n, name = struct.unpack(">I4s", data[at:at + 8])
        assert struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0] == zlib.crc32(data[at + 4:at + 8 + n])
        chunks[name] = data[at + 8:at + 8 + n]
        at += 12 + n
    width, height, depth, color = struct.unpack(">2I2B", chunks[b"IHDR"][:10])
    assert (depth, color) == (8, 2) and chunks[b"IEND"] == b""
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_png_files_hold_the_picture():
    picture = np.random.default_rng(0).integers(0, 256, (7, 11, 3), dtype=np.uint8)
    assert np.array_equal(decoded(pictures.png(picture)), picture)
    try:
        import io

        from PIL import Image
    except ImportError:
        return
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(pictures.png(picture)))), picture)


@pytest.mark.parametrize("axes", ["zyx", "xyz"])
def test_the_sides_of_the_patient(axes):
    """The liver is on the left of an axial and a coronal slice, the spine at the bottom and on the right, the head on top."""
    scan, seg = demo.phantom()
    if axes == "xyz":
        scan, seg = (st.Volume(np.ascontiguousarray(v.array.T), axes="xyz", grid=v.grid) for v in (scan, seg))

    def planes(v):
        return demo._of(v.array / 500, None, scan.grid.spacing, 100, axes)

    image = np.where(seg.array == 1, 500, 0).astype(np.int16)
    axial, coronal, _ = (p.min(-1) > 128 for p in planes(st.Volume(image, axes=axes, grid=scan.grid)))
    assert axial[:, :axial.shape[1] // 2].sum() > 20 and axial[:, axial.shape[1] // 2:].sum() < axial.sum() / 4
    assert coronal[:coronal.shape[0] // 2].sum() > coronal.sum() * .7  # towards the head
    image = np.where(seg.array == 5, 500, 0).astype(np.int16)
    axial, _, sagittal = (p.min(-1) > 128 for p in planes(st.Volume(image, axes=axes, grid=scan.grid)))
    assert axial[axial.shape[0] // 2:].sum() > axial.sum() * .9 and sagittal[:, sagittal.shape[1] // 2:].sum() > sagittal.sum() * .9


def test_outlines_are_rims():
    labels = np.zeros((6, 8), np.uint8)
    labels[2:5, 2:6] = 2
    made = pictures.outlined(np.zeros((6, 8, 3), np.uint8), labels).any(-1)
    assert made.sum() == 10 and not made[3, 3:5].any() and (labels[made] == 2).all()


@pytest.mark.long
def test_draws_a_sheet(tmp_path, capsys):
    out = tmp_path / "sheet.png"
    assert demo.main(["--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.count("turned by") == 7
    sheet = decoded(out.read_bytes())
    assert sheet.shape[0] > 800 and sheet.shape[1] > 1200 and (sheet.max(-1) > 0).mean() > .3
    assert len(out.read_bytes()) < 600_000
    again = tmp_path / "again.png"
    assert demo.main(["--out", str(again)]) == 0 and again.read_bytes() == out.read_bytes()


def test_mistakes_get_one_sentence(tmp_path, capsys):
    assert demo.main([str(tmp_path / "none.nii.gz")]) == 1
    assert capsys.readouterr().err == f"suture: demo: there is no file {tmp_path}/none.nii.gz\n"
    (tmp_path / "text.npy").write_text("no array")
    assert demo.main([str(tmp_path / "text.npy")]) == 1
    assert "text.npy cannot be read: " in capsys.readouterr().err
