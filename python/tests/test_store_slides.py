# SPDX-License-Identifier: Apache-2.0
"""Slides: pyramids that hold what OpenSlide reads, tissue masks, and tiles of one place at several magnifications."""
import json

import numpy as np
import pytest
from conftest import library
from store_data import DATA

pytestmark = pytest.mark.store
library("tensorstore")
openslide = pytest.importorskip("openslide")
tifffile = pytest.importorskip("tifffile")

import suture as st  # noqa: E402
import suture.store  # noqa: E402

SLIDE = DATA / "histology/CMU-1-Small-Region.svs"


@pytest.fixture(scope="module")
def slides(tmp_path_factory):
    out = tmp_path_factory.mktemp("slides") / "slides.zarr"
    report = st.store.build(SLIDE, out=out, mpp=(.5, 1, 2))
    assert report.built == ["CMU-1-Small-Region"] and not report.failed
    return st.store.open(out, verify=True)


@pytest.fixture(scope="module")
def pixels():
    slide = openslide.OpenSlide(SLIDE)
    return np.asarray(slide.read_region((0, 0), 0, slide.dimensions))[..., :3]


def test_a_level_of_the_slide_is_kept_as_it_is(slides, pixels):
    case = slides["CMU-1-Small-Region"]
    assert case.mpp == pytest.approx((.499, .998, 1.996)) and case.image.shape == (3, 2967, 2220)
    assert np.array_equal(np.moveaxis(case.image[...], 0, -1), pixels)
    assert case.levels[1].chunk == (3, 512, 512)


def test_coarser_levels_are_means_of_whole_pixels(slides, pixels):
    case = slides["CMU-1-Small-Region"]
    for level, ratio in ((1, 2), (2, 4)):
        height, width = 2967 // ratio, 2220 // ratio
        blocks = pixels[:height * ratio, :width * ratio].reshape(height, ratio, width, ratio, 3).astype(np.float64)
        mean = np.moveaxis(blocks.mean((1, 3)), -1, 0)
        assert case.levels[level].shape == mean.shape and np.abs(case.levels[level][...] - mean).max() <= 1


def test_other_magnifications_are_pillows_whole_picture(tmp_path, pixels):
    """A level is reduced part by part; it is what Pillow makes of the whole."""
    from PIL import Image

    st.store.build(SLIDE, out=tmp_path / "s", mpp=.8)
    level = st.store.open(tmp_path / "s")["CMU-1-Small-Region"].image
    ratio = .8 / .499
    height, width = int(2967 / ratio), int(2220 / ratio)
    whole = Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX, (0, 0, width * ratio, height * ratio))
    away = np.abs(np.moveaxis(level[...], 0, -1).astype(int) - np.asarray(whole))
    assert level.shape == (3, height, width) and (away > 1).mean() < 1e-3  # centers that fall on an edge go to either side


def test_it_is_ome_zarr(slides):
    pytest.importorskip("jsonschema")
    ngff = pytest.importorskip("ngff_zarr")
    from ngff_zarr.validate import validate

    path = slides.path / "CMU-1-Small-Region"
    validate(json.loads((path / "zarr.json").read_bytes())["attributes"], version="0.5", model="image")
    images = ngff.from_ngff_zarr(str(path)).images
    assert [round(i.scale["x"], 6) for i in images] == [.499, .998, 1.996] and images[0].dims == ("c", "y", "x")


def test_tissue_is_what_is_colored(slides, pixels):
    case = slides["CMU-1-Small-Region"]
    mask = case.mask[...]
    chroma = pixels.max(2).astype(int) - pixels.min(2)
    cells = np.array([[c.mean() for c in np.array_split(row, mask.shape[1], axis=1)] for row in np.array_split(chroma, mask.shape[0])])
    assert mask.any() and not mask.all() and cells[mask > 0].mean() > 3 * cells[mask == 0].mean()
    assert case.fingerprint["tissue"] == pytest.approx(mask.mean())


def test_tiles_show_one_place_at_each_magnification(slides, pixels):
    tiles = slides.tiles(size=256, mpp=(.5, 1, 2), least_tissue=.5)
    assert len(tiles) > 3 and len({tile.id for tile in tiles}) == len(tiles)
    case = slides["CMU-1-Small-Region"]
    for tile in tiles:
        arrays = tiles.arrays(tile)
        assert [a.shape for a in arrays] == [(3, 256, 256)] * 3 and tile.tissue >= .5
        centers = [np.array([a.affine_ras @ [0, 127.5, 127.5, 1] for a in arrays])[:, :3]]
        assert np.ptp(centers[0], axis=0).max() < .0011  # half a pixel of the coarsest, in millimeters
        low, high = tile.boxes[0].low, tile.boxes[0].high
        assert np.array_equal(np.moveaxis(arrays[0][...], 0, -1), pixels[low[0]:high[0], low[1]:high[1]])
        out = np.empty((256, 256, 3), np.uint8)  # as NHWC wants it
        arrays[1].read((0, 0), (256, 256), out.transpose(2, 0, 1))
        box = tile.boxes[1]
        assert np.array_equal(out.transpose(2, 0, 1), case.levels[1][:, box.low[0]:box.high[0], box.low[1]:box.high[1]])
    few = slides.tiles(size=256, mpp=(.5, 1, 2), least_tissue=.5, per_slide=3)
    assert len(few) == 3 and set(few) < set(tiles) and set(few) == set(slides.tiles(size=256, mpp=(.5, 1, 2), per_slide=3))
    assert set(slides.tiles(size=256, mpp=(.5, 1, 2), per_slide=3, seed=1)) != set(few)
    assert len(slides.tiles(size=256, mpp=.5, least_tissue=0)) == (2967 // 256) * (2220 // 256)
    with pytest.raises(st.Error, match="suture: store: tiles: mpp: expected levels of case 'CMU-1-Small-Region', which are of 0.499, 0.998, 1.996"):
        slides.tiles(size=256, mpp=.25)


@pytest.fixture
def picture(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return folder, np.random.default_rng(0).integers(0, 255, (700, 900, 3)).astype(np.uint8)


@pytest.mark.parametrize("tile", [None, (256, 256)])
def test_tiff(picture, tile):
    folder, data = picture
    tifffile.imwrite(folder / "a.tif", data, tile=tile, photometric="rgb", resolution=(20000, 20000), resolutionunit="CENTIMETER")
    assert st.store.build(folder, out=folder.parent / "s").built == ["a"]
    case = st.store.open(folder.parent / "s")["a"]
    assert case.mpp == (.5,) and np.array_equal(np.moveaxis(case.image[...], 0, -1), data)


def test_slides_that_do_not_serve(picture):
    folder, data = picture
    tifffile.imwrite(folder / "bare.tif", data, tile=(256, 256), photometric="rgb")
    tifffile.imwrite(folder / "oblong.tif", data, tile=(256, 256), photometric="rgb", resolution=(20000, 10000), resolutionunit="CENTIMETER")
    tifffile.imwrite(folder / "coarse.tif", data, tile=(256, 256), photometric="rgb", resolution=(5000, 5000), resolutionunit="CENTIMETER")
    tifffile.imwrite(folder / "gray.tif", data[..., 0], resolution=(20000, 20000), resolutionunit="CENTIMETER")
    (folder / "text.svs").write_text("no slide")
    svs = SLIDE.read_bytes()
    (folder / "cut.svs").write_bytes(svs[:len(svs) // 3])
    report = st.store.build(folder, out=folder.parent / "s", mpp=(.5, 1))
    assert not report.built and not list(p for p in (folder.parent / "s").iterdir() if p.name not in (".suture", "zarr.json"))
    for name, pattern in (("bare", "expected micrometers a pixel in .* got none. Say them with assume_mpp"), ("oblong", "expected square pixels"),
                          ("coarse", "expected at least 0.5 micrometers a pixel, got 2"), ("gray", "expected "), ("text", "expected a readable slide"),
                          ("cut", "expected ")):
        import re

        assert re.match(f"suture: store: case '{name}': {pattern}", report.failed[name]), report.failed[name]
    report = st.store.build(folder / "bare.tif", out=folder.parent / "t", mpp=(.5, 1), assume_mpp=.5)
    assert report.built == ["bare"] and st.store.open(folder.parent / "t")["bare"].mpp == (.5, 1)
