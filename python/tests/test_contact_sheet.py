# SPDX-License-Identifier: Apache-2.0
"""What is drawn of a batch: planes where they belong, windows, outlines, and files of it."""
import numpy as np
import pytest

import suture as st


def volume(array, **place):
    return st.Volume(array, axes="zyx", **(place or dict(spacing=dict(z=4, y=1, x=1))))


def test_a_plane_has_the_voxels_of_its_slice_at_its_window():
    image = np.zeros((4, 64, 64), np.int16) - 1000
    image[2] = np.linspace(-160, 240, 64).astype(np.int16)[:, None]
    picture = st.show({"image": [volume(image)]}, size=64).array
    plane = picture[-64 - 4:-4, 4:68, 0].astype(int)  # the first cell, without its title
    rest = np.ones((64, 64), bool)
    rest[28:36, :10] = rest[:12, 28:36] = False  # the letters of the sides
    expected = np.round((np.linspace(-160, 240, 64).astype(np.int16) + 160) / 400 * 255)[:, None] * np.ones(64)
    assert np.abs(plane - expected)[rest].max() <= 1


@pytest.mark.parametrize("flip", [(), (0,), (1,), (2,), (0, 2)])
@pytest.mark.parametrize("axes", ["zyx", "xyz"])
def test_the_same_patient_is_drawn_the_same_however_it_is_stored(flip, axes):
    """Against nibabel's own reorientation of affines: an array is stored in every way and looks alike."""
    nibabel = pytest.importorskip("nibabel")
    image = np.random.default_rng(0).integers(0, 900, (20, 24, 28)).astype(np.int16)  # x, y, z
    stored = nibabel.Nifti1Image(image, np.diag([2.0, 1, 3, 1]))
    turned = stored.as_reoriented(np.array([[k, -1 if k in flip else 1] for k in range(3)]))
    made = st.Volume.from_nibabel(turned)
    assert np.array_equal(st.show({"image": [st.Volume.from_nibabel(stored)]}).array,
                          st.show({"image": [made if axes == "xyz" else made.with_axes("zyx")]}).array)


def test_labels_are_outlined_in_colors_of_their_own():
    seg = np.zeros((1, 32, 32), np.uint8)
    seg[0, 4:12, 4:12], seg[0, 16:28, 16:28] = 1, 2
    batch = {"image": [volume(seg * 0.0, spacing=1)], "seg": [volume(seg, spacing=1)]}
    colors = {tuple(c) for c in st.show(batch, size=32).array[-32 - 17:-17].reshape(-1, 3).tolist()}
    plain = {tuple(c) for c in st.show(batch, labels=[], size=32).array.reshape(-1, 3).tolist()}
    assert len({c for c in colors - plain if len(set(c)) > 1}) == 2


@pytest.mark.parametrize("label", [-1, np.nan])
def test_labels_of_which_none_is_above_0_are_drawn_as_none(label):
    seg = np.zeros((4, 32, 32), np.float32)
    seg[:2] = label
    batch = {"image": [volume(np.arange(4096, dtype=np.float32).reshape(seg.shape))], "seg": [volume(seg)]}
    assert np.array_equal(st.show(batch, size=32).array, st.show(batch, image="image", labels=[], size=32).array)


def test_one_hot_maps_and_stacked_outputs_are_drawn_as_the_pipeline_says():
    rng = np.random.default_rng(1)
    tiles, mask = rng.integers(0, 256, (2, 40, 40, 3), dtype=np.uint8), np.zeros((2, 40, 40), np.uint8)
    mask[:, 8:20, 8:20] = 1
    chain = st.Pipeline(layout="NHWC", rgb=[st.flip(axes=dict(x=True)), st.cast("uint8")], mask=st.labels(convert=st.one_hot(classes=2)))
    out = chain({"rgb": tiles, "mask": mask, "id": ["a", "b"]})
    drawn = st.show(out, size=40).array
    alone = st.show(out, labels=[], size=40).array
    corner = alone[26:26 + 40, 4:44]  # below the title
    assert np.array_equal(corner, np.flip(tiles[0], 1))
    changed = (drawn[26:26 + 40, 4:44] != corner).any(-1)
    rim = np.zeros((40, 40), bool)
    rim[8:20, 20:32] = True
    rim[9:19, 21:31] = False
    assert np.array_equal(changed, rim)


def test_it_is_a_picture_for_notebooks_arrays_and_files(tmp_path):
    sheet = st.show(np.random.default_rng(2).random((3, 1, 8, 9, 10), np.float32), file=tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == sheet._repr_png_()
    assert np.asarray(sheet).dtype == np.uint8 and np.asarray(sheet).shape[2] == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    Image = pytest.importorskip("PIL.Image")
    assert np.array_equal(np.asarray(Image.open(tmp_path / "a.png")), sheet.array)


def test_tensorboard_takes_it(tmp_path):
    boards = pytest.importorskip("torch.utils.tensorboard")
    writer = boards.SummaryWriter(str(tmp_path))
    writer.add_image("batch", st.show(np.zeros((1, 1, 8, 9, 10), np.float32)).array, 0, dataformats="HWC")
    writer.close()


@pytest.mark.parametrize(("given", "settings", "sentence"), [
    ({"id": [1]}, {}, "expected a batch with images, got keys id"),
    (np.zeros((4, 5, 6)), {}, r"batch: expected samples, got one array of shape \(4, 5, 6\)\. Pass Volume\(array, axes=.zyx.\), or \[array\]$"),
    ({"image": np.zeros((1, 1, 4, 4, 4))}, {"image": "ct"}, "expected keys among image, got 'ct'"),
    ({"image": np.zeros((1, 1, 4, 4, 4))}, {"window": (1, 1)}, "window: expected .low, high. with low below high"),
    ({"image": np.zeros((1, 1, 4, 4, 4)), "seg": np.zeros((1, 1, 4, 4, 5), np.uint8)}, {}, "seg: expected the extents"),
    ({"image": np.zeros((1, 4, 4, 4, 3)).reshape(1, 4, 48)}, {}, "Say layout= as in Pipeline"),
    ({"image": np.zeros((1, 1, 4, 4, 4))}, {"file": "a.jpg"}, "expected a name that ends with .png, got 'a.jpg'")])
def test_mistakes(given, settings, sentence):
    with pytest.raises(st.Error, match=sentence):
        st.show(given, **settings)
