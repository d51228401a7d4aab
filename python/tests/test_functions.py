# SPDX-License-Identifier: Apache-2.0
"""Fits, masks and what chooses patches, on arrays."""
import json
import re
import subprocess

import numpy as np
import pytest

import suture as st
from suture.functions import fits
from suture.backend import jit
from test_pipeline import BATCH, SMALL

RNG = np.random.default_rng(3)
SCAN = RNG.normal(40, 100, (1, 6, 7, 8)).astype(np.float32)
MASK = (RNG.random((1, 6, 7, 8)) < .4).astype(np.uint8)
TILE = RNG.integers(0, 256, (16, 16, 3), dtype=np.uint8)
SLIDE = st.SlideLayout((st.SlideLevel(1000, 2000), st.SlideLevel(250, 500, 4.)), .25)


def test_moments_are_those_of_numpy_and_go_to_json_and_back():
    mean, = st.fit_moments([SCAN])
    assert mean.mean == pytest.approx(SCAN.mean(dtype=np.float64), rel=1e-12)
    assert mean.standard_deviation == pytest.approx(SCAN.std(dtype=np.float64), rel=1e-9)
    assert (mean.minimum, mean.maximum, mean.tally.count, mean.status) == (SCAN.min(), SCAN.max(), SCAN.size, "ok")
    assert fits.results_from_json(json.loads(json.dumps(mean.to_json()))) == mean
    # The numbers that follow from it are those of the fit itself.
    stated = st.Pipeline(image=[st.z_score(fitted=[st.Moments(mean=mean.mean, standard_deviation=mean.standard_deviation)])])
    fitted = st.Pipeline(image=[st.z_score(fitted=[mean])])
    out = fitted([SCAN])[0]
    assert np.array_equal(out, stated([SCAN])[0])
    assert out.mean() == pytest.approx(0, abs=1e-6) and out.std() == pytest.approx(1, abs=1e-6)
    each = st.Pipeline(image=[st.z_score(fitted=st.per_sample("moments"))])
    assert np.array_equal(each({"image": [SCAN], "moments": [mean]})["image"][0], out)


def test_percentiles_are_those_of_numpy():
    found, = st.fit_percentiles([SCAN], q=(5, 50, 97.5), where=st.above(0))
    assert np.array_equal(found.value, np.percentile(SCAN[SCAN > 0].astype(np.float64), (5, 50, 97.5)))


def test_components_are_numbered_and_measured():
    blobs = np.zeros((1, 4, 5, 6), np.uint8)
    blobs[0, 0, 0, :2] = blobs[0, 2:, 3:, 3:] = 1
    maps, counts = st.label_components([blobs])
    assert counts == [2] and maps[0].dtype == np.int32 and (maps[0][0, 0, 0, :2] == 1).all() and (maps[0] == 2).sum() == 12
    kept, found = st.keep_largest_component([blobs])
    assert np.array_equal(kept[0], (maps[0] == 2)) and found == [st.LargestComponent(False, 12)]


def test_patches_are_chosen_by_class():
    maps = np.zeros((2, 1, 9, 9, 9), np.uint8)
    maps[0, 0, 7, 1, 4] = 1
    chosen = st.select_patches(maps, st.class_balanced_patch(size=dict(z=3, y=3, x=3)), classes=2, ids=["a", "b"], patches=2)
    assert [c.status for c in chosen] == ["chosen", "chosen", "empty", "empty"]
    assert chosen[0].start == (6, 0, 3) and chosen[0].of_class == 1 and chosen[0].voxel == (7 * 9 + 1) * 9 + 4


def test_windows_cover_and_are_put_together():
    grid = st.sliding_window_grid((10, 12, 14), dict(z=4, y=6, x=8), step=.5)
    volume = RNG.normal(size=(2, 10, 12, 14)).astype(np.float32)
    patches = np.stack([volume[:, z:z + 4, y:y + 6, x:x + 8] for z, y, x in (grid[p] for p in range(len(grid)))])
    assert np.allclose(st.reassemble(grid, patches), volume, atol=1e-6)
    with pytest.raises(st.Error, match="is what the grid has"):
        st.reassemble(grid, patches[1:])


def test_tiles_of_a_slide():
    mask = np.zeros((50, 100), np.uint8)
    mask[:, :50] = 1
    tiles = st.grid_tiles(SLIDE, mask, size=256, mpp=.25, least_tissue=.5)
    assert [(t.y, t.x, t.level, t.size) for t in tiles] == [(y, x, 0, 256) for y in (0, 256, 512) for x in (0, 256, 512, 768)]
    assert tiles[0].tissue == 1 and 0 < tiles[3].tissue < 1


CALLS = [
    lambda: st.fit_moments([SCAN], where="nonzero"), lambda: st.fit_range([SCAN], where=st.inside([MASK])),
    lambda: st.fit_landmarks([SCAN], q=(1, 50, 99), target=(0, 50, 100)), lambda: st.fit_otsu([SCAN]),
    lambda: st.fit_otsu([SCAN], where=st.labeled([MASK], [1], 2)), lambda: st.fit_sharpness([TILE], layout="HWC"),
    lambda: st.fit_color_moments([TILE], layout="HWC", space="ruderman"), lambda: st.fit_macenko([TILE], layout="HWC"),
    lambda: st.fit_macenko([TILE], layout="HWC", mode="vahadane", together=True, least_pixels=10, alpha=2.),
    lambda: st.fit_histogram([MASK]), lambda: st.body_mask([SCAN]), lambda: st.bounding_box([SCAN]),
    lambda: st.crop_foreground(st.BoundingBox(False, (0, 0, 0), (1, 1, 1)), (6, 7, 8)),
    lambda: st.remove_small_components([MASK], least=2), lambda: st.fill_holes([MASK]), lambda: st.binary_erosion([MASK]),
    lambda: st.binary_dilation([MASK], shape="ball", radius=dict(z=1, y=2, x=2)), lambda: st.binary_opening([MASK]),
    lambda: st.binary_closing([MASK]), lambda: st.gray_erosion([SCAN]), lambda: st.gray_dilation([SCAN], border_value=3.),
    lambda: st.tissue_mask([TILE], layout="HWC"), lambda: st.random_binary_operation([MASK], labels=[1], ids=[1]),
    lambda: st.random_component_removal([MASK], labels=[1], ids=[1]), lambda: st.mask_image([MASK], [SCAN]),
    lambda: st.select_patches([MASK], st.pos_neg_patch(size=2), ids=[1], images=[SCAN]),
    lambda: st.select_patches([MASK], st.oversampled_patch(size=2), ids=[1], classes=2),
    lambda: st.select_patches([MASK], st.weighted_patch(size=2), ids=[1]), lambda: st.count_classes([MASK], classes=2),
    lambda: st.dense_patch_grid((6, 7, 8), 4), lambda: st.average(SCAN[None], MASK, outside=0),
    lambda: st.random_tiles(SLIDE, np.ones((50, 100)), slide_id="s", count=3),
    lambda: st.recipes.nnunet_shape(dict(z=8, y=8, x=8), dict(z=1, y=1, x=1)),
]


class Nothing:
    """A module whose functions do nothing."""

    def function(self, *_):
        return lambda _: 0

    def check(self, status):
        assert status == 0


def test_every_other_function_compiles(monkeypatch, tmp_path):
    """All in one file; nothing is run."""
    sources = []
    monkeypatch.setattr(jit, "load", lambda source: sources.append(source) or Nothing())
    for call in CALLS:
        before = len(sources)
        try:
            call()
        except (IndexError, ValueError):
            pass  # of what was not filled in
        assert len(sources) > before
    includes, bodies = set(), []
    for i, source in enumerate(sources):
        includes |= set(re.findall(r"#include <(.*?)>", source.text))
        body = re.sub(r"#include.*\n|SUTURE_ABI const char\* suture_error.*\n", "", source.text).replace("suture_call", f"call_{i}")
        bodies.append(re.sub(r"SUTURE_ABI_FUNCTION\((.*)\)", rf"auto* const call_{i} = \1::call;", body))
    file = tmp_path / "functions.cpp"
    file.write_text("".join(f"#include <{i}>\n" for i in sorted(includes)) + "\n".join(bodies))
    done = subprocess.run([jit.host_compiler().path, "-std=c++20", "-fsyntax-only", f"-I{jit.include_directory()}", str(file)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


def test_mistakes_get_one_sentence():
    for call, sentence in ((lambda: st.fit_otsu([SCAN], rule="x"), "rule 'x' is neither"),
                           (lambda: st.fill_holes([st.Volume(MASK[0], axes="xyz")], enclosed="slices"), "is not z"),
                           (lambda: st.fit_macenko([TILE], layout="HWC", radius=3), "there is no parameter 'radius'"),
                           (lambda: SMALL({**BATCH, "image": [s.astype(np.int64) for s in BATCH["image"]]}), "images of int64")):
        with pytest.raises(st.Error, match=sentence):
            call()
