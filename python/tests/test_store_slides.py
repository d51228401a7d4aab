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
import suture.feed  # noqa: E402
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


def macenko_by_numpy(rgb):
    """The method of Macenko et al. 2009 in double: columns hematoxylin and eosin."""
    density = -np.log((rgb.reshape(-1, 3).astype(np.float64) + 1) / 240)
    stained = density[(density >= .15).all(1)]
    plane = np.linalg.eigh(np.cov(stained.T))[1][:, 1:]
    plane *= np.where(plane.sum(0) < 0, -1, 1)
    angles = np.arctan2(*(stained @ plane).T[::-1])
    ends = np.array([plane @ (np.cos(a), np.sin(a)) for a in np.percentile(angles, (1, 99))])
    return ends[np.argsort(-ends[:, 0])].T


def test_stains_are_those_of_the_tissue(slides):
    case = slides["CMU-1-Small-Region"]
    tiles = slides.tiles(size=256, mpp=1, least_tissue=.5)
    pixels = [np.moveaxis(tiles.arrays(tile)[0][...], 0, -1).reshape(-1, 3) for tile in tiles]
    found, expected = np.array(case.fingerprint["stains"].stains), macenko_by_numpy(np.concatenate(pixels))
    assert len(tiles) > 3 and case.fingerprint["stains"].status == "ok"
    apart = np.degrees(np.arccos((found * expected).sum(0) / np.linalg.norm(found, axis=0) / np.linalg.norm(expected, axis=0)))
    between = np.degrees(np.arccos((expected[:, 0] * expected[:, 1]).sum() / np.prod(np.linalg.norm(expected, axis=0))))
    assert apart.max() < 2 and between > 8, (apart, between)  # tiles at the rim of the slide are not whole


def test_a_feed_normalizes_tiles_by_the_stains_of_their_slide(slides):
    tiles = slides.tiles(size=64, mpp=1, least_tissue=.5, per_slide=4)
    assert len(tiles) == 4

    def normalized(fitted):
        pipeline = st.Pipeline(rgb=[st.macenko_normalize(fitted=fitted)])
        with suture.feed.Feed(tiles, pipeline, batch=4, training=False, bar=False) as feed:
            return [np.asarray(batch["rgb"]) for batch in feed]

    stains = slides["CMU-1-Small-Region"].fingerprint["stains"]
    (own,), (given,) = normalized(st.per_sample("stains")), normalized([stains] * 4)
    assert np.array_equal(own, given) and np.isfinite(own).all()
    plain = np.stack([np.asarray(tiles.arrays(tile)[0][...]) for tile in tiles])
    assert np.abs(np.sort(own.mean((1, 2, 3))) - np.sort(plain.mean((1, 2, 3)))).max() > 1  # it did something


def test_a_slide_of_glass_has_no_stains(tmp_path):
    (tmp_path / "in").mkdir()
    tifffile.imwrite(tmp_path / "in/glass.tif", np.full((300, 500, 3), 240, np.uint8), photometric="rgb", resolution=(10000, 10000),
                     resolutionunit="CENTIMETER")
    st.store.build(tmp_path / "in", out=tmp_path / "s")
    assert st.store.open(tmp_path / "s")["glass"].fingerprint["stains"].status == "too_little_tissue"


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
    for given, says in ((dict(step=-1), "step: expected a whole number from 1 on, got -1. None"), (dict(step=0), "step: expected a whole .* got 0"),
                        (dict(per_slide=-1), "per_slide: expected a whole number from 1 on, got -1. None"), (dict(per_slide=0), "per_slide: .* got 0"),
                        (dict(mpp=0), "mpp: expected micrometers a pixel, a number above 0, got 0"), (dict(mpp=(1, -1)), "mpp: expected micrometers"),
                        (dict(mpp=np.nan), "mpp: expected micrometers"), (dict(mpp="1"), "mpp: expected micrometers a pixel, a number above 0, got '1'"),
                        (dict(mpp=("1", 2)), "mpp: .* got '1'"), (dict(mpp=()), r"mpp: .* got \(\)"), (dict(least_tissue=2), "least_tissue: expected a part"),
                        (dict(size=np.array([256, 256])), "size: expected a whole number from 1 on, got array"), (dict(size=True), "size: .* got True")):
        with pytest.raises(st.Error, match=f"suture: store: tiles: {says}"):
            slides.tiles(**{"size": 256, "mpp": .5, **given})
    for given in (dict(size=np.int32(256)), dict(size=np.array(256)), dict(mpp=np.float32(.5)), dict(mpp=np.array([.5])), dict(step=np.int64(256))):
        assert list(slides.tiles(**{"size": 256, "mpp": .5, **given})) == list(slides.tiles(size=256, mpp=.5))


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


@pytest.mark.parametrize("tile", [None, (256, 256)])  # by tifffile, and by OpenSlide
@pytest.mark.parametrize("dpi", [72, 96, 300, 1200])
def test_a_resolution_that_no_scanner_has_is_none(picture, tile, dpi):
    folder, data = picture
    tifffile.imwrite(folder / "a.tif", data, tile=tile, photometric="rgb", resolution=(dpi, dpi), resolutionunit="INCH")
    told = st.store.build(folder, out=folder.parent / "s").failed["a"]
    microns = f"{25400 / dpi:g}"
    assert f"expected micrometers a pixel in {folder / 'a.tif'}, got {microns} x {microns} along (y, x), those of a screen or of print. Say" in told
    assert "assume_mpp" in told
    assert st.store.build(folder, out=folder.parent / "t", assume_mpp=.5).built == ["a"]
    assert st.store.open(folder.parent / "t")["a"].mpp == (.5,)


@pytest.mark.parametrize("tile", [None, (256, 256)])
def test_a_slide_of_16_bits_is_refused(picture, tile):
    folder, data = picture
    tifffile.imwrite(folder / "a.tif", data.astype(np.uint16) * 257, tile=tile, photometric="rgb", resolution=(20000, 20000), resolutionunit="CENTIMETER")
    assert "expected red, green and blue of 8 bits, got" in st.store.build(folder, out=folder.parent / "s").failed["a"]


@pytest.mark.parametrize("given, says", [
    (dict(assume_mpp=0), "assume_mpp: .* got 0"), (dict(assume_mpp=-1), "assume_mpp: .* got -1"), (dict(assume_mpp=np.nan), "assume_mpp: .* got nan"),
    (dict(assume_mpp="0.5"), "assume_mpp: .* got '0.5'"), (dict(mpp="12"), "mpp: .* got '12'"), (dict(mpp="0.5"), "mpp: .* got '0.5'"),
    (dict(mpp=["1", "2"]), "mpp: .* got '1'"), (dict(mpp=True), "mpp: .* got True"), (dict(mpp=[]), r"mpp: .* got \[\]")])
def test_micrometers_that_are_no_numbers_are_refused(picture, given, says):
    folder, _ = picture
    with pytest.raises(st.Error, match=f"^suture: store: {says}"):
        st.store.build(folder, out=folder.parent / "s", **given)


def test_micrometers_and_chunks_may_be_of_numpy(picture):
    folder, data = picture
    tifffile.imwrite(folder / "a.tif", data, tile=(256, 256), photometric="rgb")
    for given in (dict(mpp=np.array([.5, 1]), chunk=np.int64(32)), dict(mpp=(np.float32(.5), 1), workers=np.int64(1)), dict(mpp=[.5, 1], chunk=32)):
        st.store.build(folder, out=folder.parent / "s", **{"assume_mpp": np.float64(.5), "chunk": 32, **given})
        assert st.store.open(folder.parent / "s")["a"].mpp == (.5, 1)


@pytest.fixture(scope="module")
def labeled(tmp_path_factory):
    """A slide of 640 x 512 pixels of 1 micrometer with labels half as fine: a quarter of it 1, a disk of it 2, and a bare one."""
    folder = tmp_path_factory.mktemp("labeled")
    random = np.random.default_rng(1)
    y, x = np.mgrid[:320, :256]
    labels = ((y < 160) & (x < 128)).astype(np.uint8)
    labels[(y - 240) ** 2 + (x - 180) ** 2 < 20 ** 2] = 2
    for name in ("a", "b"):
        pixels = random.integers(0, 255, (640, 512, 3)).astype(np.uint8)
        (folder / "slides").mkdir(exist_ok=True)
        tifffile.imwrite(folder / "slides" / f"{name}.tif", pixels, tile=(256, 256), photometric="rgb", resolution=(10000, 10000),
                         resolutionunit="CENTIMETER")
    (folder / "maps").mkdir()
    tifffile.imwrite(folder / "maps" / "a.tif", labels)
    from PIL import Image

    Image.fromarray(np.zeros((640, 512), np.uint8)).save(folder / "maps" / "b.png")
    return folder, labels


@pytest.fixture(scope="module")
def annotated(labeled):
    folder, _ = labeled
    report = st.store.build(folder / "slides", labels=folder / "maps", out=folder / "s", mpp=(1, 2, 4))
    assert report.built == ["a", "b"] and not report.failed
    assert not st.store.verify(folder / "s")
    return st.store.open(folder / "s", verify=True)


def test_labels_of_slides_lie_on_each_level(annotated, labeled):
    _, labels = labeled
    case = annotated["a"]
    assert np.array_equal(case.labels[...], labels.repeat(2, 0).repeat(2, 1))
    assert np.array_equal(case.label_levels[1][...], labels)
    assert np.array_equal(case.label_levels[2][...], labels[1::2, 1::2])  # a center between two pixels takes the one behind it
    assert [(a.shape, a.grid) for a in case.label_levels] == [(b.shape[1:], b.grid) for b in case.levels]
    assert case.classes == {k: int((labels == k).sum()) for k in range(3)} and annotated["b"].classes == {0: 640 * 512}
    assert np.array_equal(case.volume("labels").array[...], case.labels[...])
    counts = case.label_counts
    assert counts.shape == (3, 80, 64)  # cells of 8 micrometers, 4 pixels of the map
    assert np.array_equal(counts[...], [(labels == k).reshape(80, 4, 64, 4).sum((1, 3)) for k in range(3)])


def test_labels_of_slides_are_ome_zarr(annotated):
    pytest.importorskip("jsonschema")
    from ngff_zarr.validate import validate

    path = annotated.path / "a/labels"
    assert json.loads((path / "zarr.json").read_bytes())["attributes"]["ome"]["labels"] == ["labels", "tissue"]
    validate(json.loads((path / "labels/zarr.json").read_bytes())["attributes"], version="0.5", model="label")


def test_tiles_have_their_labels(annotated, labeled):
    _, labels = labeled
    fine = labels.repeat(2, 0).repeat(2, 1)
    tiles = annotated.tiles(size=64, mpp=(1, 2), least_tissue=0)
    assert len(tiles) > 50
    for tile in tiles:
        (top, left), (bottom, right) = tile.boxes[0].low, tile.boxes[0].high
        own = fine[top:bottom, left:right] if tile.case == "a" else np.zeros((64, 64), np.uint8)
        assert np.array_equal(tiles.labels(tile)[...], own)
        assert tile.labels == pytest.approx([(own == k).mean() for k in range(3 if tile.case == "a" else 1)])  # 64 pixels are 8 cells
    shown = [tiles[k].labels[2] for k in tiles.showing(2)]
    assert shown and min(shown) > 0 and not len(tiles.showing(3))
    every = annotated.tiles(size=64, mpp=1, least_tissue=0, step=48)
    some = annotated.tiles(size=64, mpp=1, least_tissue=0, step=48, least_label=.5)
    assert 0 < len(some.showing(1)) == sum(t.labels[1] >= .5 for t in every if t.case == "a") < len(every.showing(1))


def test_what_balances_no_tiles_is_told(annotated, slides):
    for given, says in ((dict(ratios=[1, -1]), "ratios: expected a sequence of numbers from 0 on, and one above 0"), (dict(ratios=[0, 0]), "ratios: expected"),
                        (dict(ratios=[float("nan"), 1]), "ratios: expected"), (dict(ratios={1, 3}), r"ratios: expected a sequence .* got \{1, 3\}"),
                        (dict(ratios="13"), "ratios: expected a sequence .* got '13'"), (dict(ratios=["1", "3"]), "ratios: expected a sequence"),
                        (dict(least_label=2), "least_label: expected a part from 0 to 1, got 2")):
        with pytest.raises(st.Error, match=f"suture: store: tiles: {says}"):
            annotated.tiles(size=64, mpp=1, **given)
    with pytest.raises(st.Error, match="case 'CMU-1-Small-Region': expected a label map, by which ratios balances tiles, got none. Build the store"):
        slides.tiles(size=256, mpp=.5, ratios=[1, 1])
    tiles = slides.tiles(size=256, mpp=.5)
    with pytest.raises(st.Error, match="case 'CMU-1-Small-Region': expected a label map, got none. Build the store with labels="):
        tiles.labels(tiles[0])


def test_label_maps_that_do_not_serve(labeled, tmp_path):
    folder, labels = labeled
    maps = tmp_path / "maps"
    maps.mkdir()
    for data, says in ((np.zeros((320, 256, 3), np.uint8), r"labels: expected one channel of whole numbers in .*, got uint8 of shape \(320, 256, 3\)"),
                       (labels.astype(np.float32), "labels: expected one channel of whole numbers"),
                       (labels.astype(np.uint16) * 200, "labels: expected numbers from 0 to 255 in .*, got 400"),
                       (labels.astype(np.int16) - 1, "labels: expected numbers from 0 to 255 in .*, got -1"),
                       (labels[:, :200], "labels: expected the 640 x 512 pixels of the slide, or as many times fewer along both axes, got 320 x 200")):
        tifffile.imwrite(maps / "a.tif", data)
        report = st.store.build(folder / "slides", labels=maps, out=tmp_path / "s")
        import re

        assert re.match(f"suture: store: case 'a': {says}", report.failed["a"]), report.failed["a"]
        assert report.failed["b"].endswith("got none. Name it b.png")
    (maps / "a.tif").write_bytes(b"II*\0cut")
    assert "expected a readable PNG or TIFF at" in st.store.build(folder / "slides", labels=maps, out=tmp_path / "s").failed["a"]
    assert not [path for path in (tmp_path / "s").iterdir() if path.name not in (".suture", "zarr.json")]


def test_a_mask_of_0_and_255_takes_no_memory_for_the_labels_between(labeled, tmp_path):
    import tracemalloc

    from suture.store.slide_labels import per_cell

    folder, labels = labeled
    (tmp_path / "slides").mkdir()
    (tmp_path / "slides/a.tif").symlink_to(folder / "slides/a.tif")
    (tmp_path / "maps").mkdir()
    tifffile.imwrite(tmp_path / "maps/a.tif", np.where(labels == 1, 255, 0).astype(np.uint8))
    assert st.store.build(tmp_path / "slides", labels=tmp_path / "maps", out=tmp_path / "s").built == ["a"]
    cohort = st.store.open(tmp_path / "s", verify=True)
    case = cohort["a"]
    assert case.classes == {0: 320 * 256 - 160 * 128, 255: 160 * 128} and case.label_counts.shape == (256, 80, 64)
    cells = (labels == 1).reshape(80, 4, 64, 4).sum((1, 3))
    assert np.array_equal(case.label_counts[255], cells) and np.array_equal(case.label_counts[0], 16 - cells) and not case.label_counts[1:255].any()
    assert sorted(path.name for path in (tmp_path / "s/a/label_counts/c").iterdir()) == ["0", "255"]
    tile = cohort.tiles(size=64, mpp=1, least_tissue=0)[0]
    assert len(tile.labels) == 256 and tile.labels[255] == 1 and not any(tile.labels[:255])
    mask = np.zeros((2048, 2048), np.uint8)
    mask[700:, 900:] = 255
    tracemalloc.start()
    counts = per_cell(mask, 2.0)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert list(counts) == [0, 255] and counts[255].sum() == 1348 * 1148
    assert most < 256 * 1024 * 1024  # less than a byte for every label and cell


def test_label_maps_as_fine_as_the_slide_are_no_decompression_bombs(tmp_path, monkeypatch):
    from PIL import Image

    from suture.store.slide_labels import label_map

    labels = np.random.default_rng(2).integers(0, 3, (90, 80)).astype(np.uint8)
    Image.fromarray(labels).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 3000)  # Pillow refuses twice as many
    with pytest.raises(Image.DecompressionBombError):
        Image.open(tmp_path / "a.png")
    data, scale = label_map(str(tmp_path / "a.png"), (90, 80), "case")
    assert np.array_equal(data, labels) and scale == 1
    with pytest.raises(st.Error, match="case: labels: expected a readable PNG or TIFF at .*, got 90 x 80 pixels, which are more than the slide has"):
        label_map(str(tmp_path / "a.png"), (45, 40), "case")


def test_a_feed_balances_tiles_by_label(annotated):
    """Each label has its share of every pass, on any number of ranks, and every tile of a label comes before one comes again."""
    from collections import Counter

    tiles = annotated.tiles(size=64, mpp=1, least_tissue=0, ratios=[0, 1, 3])
    shown = [{tiles[k].id for k in tiles.showing(label)} for label in range(3)]
    assert 4 <= len(shown[2]) < len(shown[1]) and not shown[1] & shown[2]
    pipeline = st.Pipeline(layout="NHWC", rgb=[st.random_flip(), st.cast("uint8")], seg=st.labels())

    def run(world, **settings):
        steps = []
        feeds = [st.feed.Feed(tiles, pipeline, batch=8, seed=3, rank=rank, world=world, threads=1, bar=False, device="numpy", **settings)
                 for rank in range(world)]
        for epochs in zip(*(feed.epochs(3) for feed in feeds)):
            for batches in zip(*epochs):
                steps.append([(name, st.digest(rgb), st.digest(seg), int(seg.max())) for batch in batches
                              for name, rgb, seg in zip(batch["id"], batch["rgb"], batch["seg"])])
        for feed in feeds:
            feed.close()
        return steps

    alone = run(1)
    samples = [sample for step in alone for sample in step]
    for turn in range(3):
        of_pass = samples[turn * len(tiles):(turn + 1) * len(tiles)]
        counts = [sum(name in names for name, *_ in of_pass) for names in shown]
        assert counts[1] == round(len(tiles) / 4) and counts[2] == len(tiles) - counts[1]
        assert all(label in (1, 2) for *_, label in of_pass)
    for names in shown[1:]:
        drawn = Counter(name for name, *_ in samples if name in names)
        assert set(drawn) == names and max(drawn.values()) - min(drawn.values()) <= 1
    often = Counter(name for name, *_ in samples[:len(tiles)]).most_common(1)[0][0]
    assert len({digest for name, digest, *_ in samples[:len(tiles)] if name == often}) > 1  # each use of a tile draws anew
    assert run(3) == alone
    with st.feed.Feed(tiles, pipeline, training=False, batch=8, bar=False, device="numpy", threads=1) as feed:
        assert [name for batch in feed for name in batch["id"]] == [tile.id for tile in tiles]  # chance is off
    other = st.feed.Feed(annotated.tiles(size=64, mpp=1, least_tissue=0, ratios=[0, 2, 3]), pipeline, batch=8, seed=3, device="numpy", bar=False)
    with st.feed.Feed(tiles, pipeline, batch=8, seed=3, device="numpy", bar=False) as feed, pytest.raises(st.Error, match="state: balance: expected"):
        other.load_state_dict(feed.state_dict())
    with pytest.raises(st.Error, match="suture: feed: ratios: expected tiles that show label 3, got none of"):
        st.feed.Feed(annotated.tiles(size=64, mpp=1, least_tissue=0, ratios=[1, 1, 1, 1]), pipeline, bar=False)
