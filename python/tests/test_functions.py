# SPDX-License-Identifier: Apache-2.0
"""Fits, masks and what chooses patches, on arrays."""
import json
import pathlib
import re
import struct
import subprocess

import numpy as np
import pytest

import suture as st
from suture.backend.call import call_function, function_source
from suture.functions import fits, masks, morphology
from suture.operations import results
from suture.backend import compiler, jit
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


# compute_steps_for_sliding_window of nnU-Net v2, as it stands there.
def nnunet_steps(image, tile, step):
    target = [i * step for i in tile]
    counts = [int(np.ceil((i - k) / j)) + 1 for i, j, k in zip(image, target, tile)]
    steps = []
    for dim in range(len(tile)):
        last = image[dim] - tile[dim]
        actual = last / (counts[dim] - 1) if counts[dim] > 1 else 99999999999
        steps.append([int(np.round(actual * i)) for i in range(counts[dim])])
    return steps


@pytest.mark.parametrize("image, size, step", [((600, 256, 256), (1, 256, 256), .5), ((5000, 8, 8), (1, 8, 8), .1),
                                               ((40, 41, 42), (7, 8, 9), .3), ((3, 3, 3), (1, 1, 1), .01)])
def test_every_window_is_listed_however_many_there_are(image, size, step):
    """Where size * step is below a voxel there are more windows than voxels."""
    grid = st.sliding_window_grid(image, size, step=step)
    assert [list(along) for along in grid.starts] == nnunet_steps(image, size, step)


def test_windows_that_repeat_are_put_together():
    grid = st.sliding_window_grid((5, 4, 4), dict(z=1, y=4, x=4))
    assert len(grid) == 9
    volume = RNG.normal(size=(1, 5, 4, 4)).astype(np.float32)
    made = st.reassemble(grid, np.stack([volume[:, z:z + 1] for z, _, _ in (grid[p] for p in range(len(grid)))]))
    assert np.allclose(made, volume, atol=1e-6)


def test_a_step_of_almost_nothing_is_refused():
    with pytest.raises(st.Error, match="sliding_window_grid: step: expected at most 2.27 patches along an axis"):
        st.sliding_window_grid((600, 8, 8), dict(z=1, y=8, x=8), step=1e-12)


def test_a_grid_of_many_tiles_is_complete():
    """More than the 4096 that were once made room for."""
    slide = st.SlideLayout((st.SlideLevel(7000, 7000),), .5)
    tiles = st.grid_tiles(slide, np.ones((70, 70)), size=70, mpp=.5, least_tissue=1)
    assert [(t.y, t.x) for t in tiles] == [(y, x) for y in range(0, 7000, 70) for x in range(0, 7000, 70)]


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


class Asked(Exception):
    """In place of a module."""


def test_every_other_function_compiles(monkeypatch, tmp_path):
    """All in one file; nothing is run."""
    sources = []

    def load(source):
        sources.append(source)
        raise Asked

    monkeypatch.setattr(jit, "load", load)
    for call in CALLS:
        with pytest.raises(Asked):
            call()
    includes, bodies = set(), []
    for i, source in enumerate(dict.fromkeys(sources)):
        includes |= set(re.findall(r"#include <(.*?)>", source.text))
        body = re.sub(r"#include.*\n|SUTURE_ABI const char\* suture_error.*\n", "", source.text).replace("suture_call", f"call_{i}")
        bodies.append(re.sub(r"SUTURE_ABI_FUNCTION\((.*)\)", rf"void call_{i}(const suture::abi::request& r) {{ \1(r); }}", body))
    file = tmp_path / "functions.cpp"
    file.write_text("".join(f"#include <{i}>\n" for i in sorted(includes)) + "\n".join(bodies))
    done = subprocess.run([compiler.host_compiler().path, "-std=c++20", "-fsyntax-only", f"-I{compiler.include_directory()}", str(file)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


def offsets_of(layout):
    """Bytes of a format, then where each of its values begins."""
    found, at = [struct.calcsize(layout)], 0
    for count, kind in re.findall(r"(\d*)([a-zA-Z])", layout):
        for _ in range(int(count or 1)):
            if kind != "x":
                found.append(at)
            at += struct.calcsize("<" + kind)
    return found


def test_results_are_laid_out_as_their_structs():
    layouts = [results.Moments._format.format, results.IntensityRange._format.format, results.Threshold._format.format,
               results.Percentiles.layout(3), results.LandmarkMap.layout(2), results.LandmarkMap.layout(3),
               results.ColorMomentsFit._format.format, results.Sharpness._format.format,
               f"{results.StainBasis._format.format}{results.STAIN_BASIS_BYTES - results.StainBasis._format.size}x"]
    expected = [offsets_of(layout) for layout in layouts]
    found = [np.zeros(len(e), np.int64) for e in expected]
    header = pathlib.Path(__file__).parent / "result_layouts.hpp"
    call_function(jit.Source(f'#include "{header}"\nSUTURE_ABI_FUNCTION(suture::abi::result_layouts)\n', "layouts of results", False), results=found)
    assert [f.tolist() for f in found] == expected


@pytest.mark.parametrize("header, name, names", [
    ("abi/fit.hpp", "stain_library", fits._MODES), ("fit/histogram.hpp", "otsu_rule", fits._OTSU_RULES),
    ("mask/components.hpp", "connectivity", masks.CONNECTIVITY), ("mask/structuring_element.hpp", "element_shape", morphology.SHAPES),
    ("mask/fill_holes.hpp", "hole_filling", masks._HOLES), ("mask/tissue_mask.hpp", "tissue_rule", masks._TISSUE),
    ("stats/statistics.hpp", "fit_status", results.FIT_STATUS), ("stats/stain_basis.hpp", "stain_status", results.STAIN_STATUS)])
def test_choices_are_the_enumerators_of_their_header(header, name, names):
    text = (compiler.include_directory() / "suture" / header).read_text()
    body = re.sub(r"//.*", "", re.search(rf"enum class {name}\b[^{{]*{{(.*?)}}", text, re.DOTALL)[1])
    assert tuple(re.findall(r"(\w+)(?: = \d+)?\s*(?:,|$)", body.strip())) == tuple(names)


def test_parameters_of_macenko_are_read_in_their_order():
    text = (compiler.include_directory() / "suture/abi/fit.hpp").read_text()
    assert tuple(re.findall(r'change\(settings\.(\w+), "\1"\);', text)) == fits._MACENKO


BASIS = results.StainBasis(bytes(results.STAIN_BASIS_BYTES))
MOMENTS = st.Moments(mean=2.0).to_json()


@pytest.mark.parametrize("record, sentence", [
    ({**BASIS.to_json(), "raw": "00"}, "StainBasis: raw: expected 216 bytes, got 1"),
    ({**BASIS.to_json(), "raw": BASIS.to_json()["raw"] + "00"}, "expected 216 bytes, got 217"),
    ({**BASIS.to_json(), "raw": "zz"}, "StainBasis: raw: expected bytes as hexadecimal digits"),
    ({**BASIS.to_json(), "raw": 12}, "StainBasis: raw: expected a string"),
    ({"result": "StainBasis"}, "StainBasis: expected raw, got none"),
    ({"result": "StainBasis", "raw": (b"\0" * 96 + b"\5" + b"\0" * 119).hex()}, "expected a status below 5, got 5"),
    ({**MOMENTS, "result": "Result"}, "result: expected one of Moments, "), ({**MOMENTS, "result": ["Moments"]}, "expected one of"),
    ("Moments", "expected an object for each result"), ([MOMENTS, 3], "expected an object for each result, got 3"),
    ({**MOMENTS, "median": 1.0}, "Moments: expected members among mean, "), ({**MOMENTS, "mean": "2"}, "Moments: mean: expected a number"),
    ({**MOMENTS, "mean": True}, "expected a number, got True"), ({**MOMENTS, "mean": 10 ** 400}, "a number within float64"),
    ({**MOMENTS, "ddof": 2}, "ddof: expected 0 or 1, got 2"),
    ({**MOMENTS, "status": "fine"}, "status: expected one of ok, constant, empty, stated, not_fitted, got 'fine'"),
    ({**MOMENTS, "tally": {"count": -1}}, "tally: count: expected a whole number"), ({**MOMENTS, "tally": 3}, "tally: expected an object"),
    ({**MOMENTS, "tally": {"counts": 1}}, "tally: expected members among count, "),
    ({"result": "LandmarkMap", "source": [0, 1], "target": [0, 1, 2]}, "2 landmarks for 3 targets"),
    ({"result": "LandmarkMap", "source": list(range(65)), "target": list(range(65))}, "two to 64"),
    ({"result": "LandmarkMap", "source": [0, 1], "target": [0, 1], "slope": [1, 1]}, "slope: expected 1 slopes"),
    ({"result": "ColorMomentsFit", "space": "lab>; system(0); //", "mean": [0, 0, 0], "standard_deviation": [1, 1, 1]},
     "space: expected one of lab, ruderman, hed, hsv"),
    ({"result": "ColorMomentsFit", "space": "lab", "mean": [0, 0], "standard_deviation": [1, 1, 1]}, "mean: expected a list of 3"),
])
def test_results_of_json_are_checked(record, sentence):
    with pytest.raises(st.Error, match=re.escape(sentence)):
        fits.results_from_json(record)


def test_results_go_to_json_and_back():
    all_of_them = [BASIS, st.Moments(mean=1.5, tally=st.Tally(count=3)), st.IntensityRange(low=-1.0, high=2.0), st.Threshold(value=.5),
                   st.Percentiles(value=(1.0, 2.0)), st.LandmarkMap(source=(0.0, 1.0), target=(0.0, 2.0)),
                   st.ColorMomentsFit(space="hed", mean=(1.0, 2.0, 3.0), standard_deviation=(1.0, 1.0, 1.0), resolved=(True, False, True)),
                   st.Sharpness(laplacian_variance=1.0, mean=2.0, standard_deviation=3.0, pixels=4, status="ok")]
    assert fits.results_from_json(json.loads(json.dumps([r.to_json() for r in all_of_them]))) == all_of_them


def test_numbers_that_c_does_not_hold_get_a_sentence():
    with pytest.raises(st.Error, match="suture: Moments: expected numbers that C\\+\\+ holds"):
        st.Moments(mean=1e300).pack()


def test_float_tiles_say_what_white_is():
    light = (TILE / 255).astype(np.float32)
    for fit, parameter in ((st.fit_macenko, "full_scale"), (st.fit_color_moments, "white")):
        with pytest.raises(st.Error, match=rf"{parameter}: expected the value that means white, got none for float32 tiles with values "
                                           rf"in 0 \.\. 1\. Pass {parameter}=1 if"):
            fit([light], layout="HWC")
        said, = fit([light], layout="HWC", **{parameter: 1.0})
        assert said.status == fit([TILE], layout="HWC")[0].status
        wide, = fit([TILE.astype(np.float32)], layout="HWC")  # values up to 255 say themselves what white is
        assert wide.status == said.status


def test_only_a_type_reaches_the_compiler():
    for text in ("suture::abi::fit_moments<float>;", "suture::abi::fit_moments<float, sizeof(int)>", "system", "suture::abi::x<a>\n"):
        with pytest.raises(st.Error, match="expected a function of suture::abi"):
            function_source("abi/fit", text, "a function")


def test_types_that_a_function_does_not_read_are_named():
    with pytest.raises(st.Error, match="suture: images: expected elements of int8, .*, got int64. Convert them first"):
        st.fit_moments([MASK.astype(np.int64)])
    with pytest.raises(st.Error, match="fit_sharpness: tiles: expected elements of uint8, got float32"):
        st.fit_sharpness([TILE.astype(np.float32)], layout="HWC")
    with pytest.raises(st.Error, match="where: expected None, inside"):
        st.fit_macenko([TILE], layout="HWC", where="nonzero")


def test_holes_of_slices_are_filled_whatever_the_order_of_axes():
    """A ring in a slice along z is open along z."""
    ring = np.ones((3, 4, 4), np.uint8)
    ring[:, 1:3, 2] = 0
    for given, filled in ((st.Volume(ring, axes="zyx"), 48), (st.Volume(ring.transpose(2, 1, 0).copy(), axes="xyz"), 48),
                          (st.Volume(ring[0], axes="yx"), 16), (st.Volume(ring[0].T, axes="xy"), 16)):
        assert int(np.asarray(st.fill_holes([given], enclosed="slices")[0].array).sum()) == filled
    across = st.Volume(ring.transpose(1, 0, 2).copy(), axes="zyx")  # the same voxels, whose slices along z have no closed ring
    assert int(np.asarray(st.fill_holes([across], enclosed="slices")[0].array).sum()) == int(ring.sum())


def test_mistakes_get_one_sentence():
    for call, sentence in ((lambda: st.fit_otsu([SCAN], rule="x"), "rule 'x' is neither"),
                           (lambda: st.fit_macenko([TILE], layout="HWC", radius=3), "there is no parameter 'radius'"),
                           (lambda: SMALL({**BATCH, "image": [s.astype(np.int64) for s in BATCH["image"]]}), "images of int64")):
        with pytest.raises(st.Error, match=sentence):
            call()


FOUR = RNG.normal(0, 1, (4, 1, 5, 5, 5)).astype(np.float32)
FOUR_MASKS = np.ones((4, 1, 5, 5, 5), np.uint8)


@pytest.mark.parametrize("call", [
    lambda masks: st.fit_moments(FOUR, where=st.inside(masks)),
    lambda masks: st.fit_moments(FOUR, where=st.labeled(masks, labels=[1], classes=2)),
    lambda masks: st.mask_image(masks, FOUR, below=1),
    lambda masks: st.select_patches(FOUR_MASKS, st.pos_neg_patch(size=3), images=masks, ids=range(4)),
], ids=["inside", "labeled", "mask_image", "select_patches"])
def test_each_sample_has_arrays_of_its_own(call):
    """A stacked array has one record, so that only its number of samples says how far it may be read."""
    five = np.concatenate([FOUR_MASKS, FOUR_MASKS[:1]])
    for others, count in ((FOUR_MASKS[:2], 2), ([FOUR_MASKS[0]], 1), (list(FOUR_MASKS[:3]), 3), (five, 5)):
        with pytest.raises(st.Error, match=rf": expected 4 samples, as many as \w+, got {count}\. Give one for each$"):
            call(others)
    with pytest.raises(st.Error, match=r"\(4, 5, 5\)"):
        call(FOUR_MASKS[:, :, :4])
    assert len(call(FOUR_MASKS)) == 4


def test_results_that_are_stated_have_numbers_of_python():
    stated = st.Moments(mean=np.float32(1.5), standard_deviation=np.float64(2), minimum=np.int16(-3))
    assert json.loads(json.dumps(stated.to_json())) == {**st.Moments(mean=1.5, standard_deviation=2.0, minimum=-3.0).to_json()}
    color = st.ColorMomentsFit(space="lab", mean=np.array([1, 2, 3], np.float32), standard_deviation=(np.float32(1), 1, 1))
    assert json.loads(json.dumps(color.to_json()))["mean"] == [1, 2, 3]
    for call, words in ((lambda: st.Moments(mean="1"), "Moments: mean: expected a number, got '1'"),
                        (lambda: st.Moments(mean=np.zeros(2)), "Moments: mean: expected a number, got array"),
                        (lambda: st.Moments(standard_deviation=-2), "Moments: standard_deviation: expected 0 or more, got -2"),
                        (lambda: st.Moments(standard_deviation=float("nan")), "expected 0 or more, got nan"),
                        (lambda: st.ColorMomentsFit(space="lab", mean=(1, 2, 3), standard_deviation=(1, -1, 1)), "expected 0 or more, got -1"),
                        (lambda: st.dense_patch_grid((8.9, 8, 8), 4), "dense_patch_grid: image: 8.9 is not a whole number"),
                        (lambda: st.sliding_window_grid((8, 8, float("nan")), 4), "sliding_window_grid: image: nan is not a whole number"),
                        (lambda: st.grid_tiles(SLIDE, np.array([[0, 1], [np.nan, 0]])), "grid_tiles: mask: expected numbers, got NaN at (1, 0)")):
        with pytest.raises(st.Error, match=re.escape(words)):
            call()


def test_counts_and_lists_of_results_are_those_of_python():
    stated = st.Moments(tally=st.Tally(count=np.uint64(8), excluded=np.array(2)), ddof=np.int32(1))
    color = st.ColorMomentsFit(space="lab", mean=[1, 2, 3], standard_deviation=np.ones(3), resolved=np.array([True, False, True]))
    tile = st.Sharpness(laplacian_variance=1.0, mean=2.0, standard_deviation=3.0, pixels=np.int64(4), status="ok")
    for made in (stated, color, tile):
        assert fits.results_from_json(json.loads(json.dumps(made.to_json()))) == made
    assert stated.to_json()["tally"] == {"count": 8, "excluded": 2, "undeclared": 0} and color.to_json()["resolved"] == [True, False, True]
    for call, words in ((lambda: st.Tally(count=1.5), "Tally: count: expected a whole number, got 1.5. Pass an int"),
                        (lambda: st.Moments(ddof="1"), "Moments: ddof: expected a whole number, got '1'"),
                        (lambda: st.Percentiles(value=np.float32(3)), "Percentiles: value: expected a list of numbers, got "),
                        (lambda: st.Percentiles(value="12"), "Percentiles: value: expected a list of numbers, got '12'. Pass a tuple"),
                        (lambda: st.ColorMomentsFit(space="lab", mean=(1, 2), standard_deviation=(1, 1, 1)), "mean: expected 3 values, got (1, 2)"),
                        (lambda: st.ColorMomentsFit(space="lab", mean=(1, 2, 3), standard_deviation=(1, 1, 1), resolved=(1, 1, 1)),
                         "ColorMomentsFit: resolved: expected True or False, got 1. Pass a bool")):
        with pytest.raises(st.Error, match=re.escape(words)):
            call()


@pytest.mark.torch
def test_tensors_in_results_become_numbers_of_python():
    torch = pytest.importorskip("torch")
    stated = st.Moments(mean=torch.tensor(1.5), tally=st.Tally(count=torch.tensor(8)))
    color = st.ColorMomentsFit(space="lab", mean=torch.tensor([1.0, 2.0, 3.0]), standard_deviation=[torch.tensor(1.0)] * 3, resolved=torch.ones(3).bool())
    shares = st.Percentiles(value=torch.tensor([1.0, 2.0]))
    for made in (stated, color, shares):
        assert fits.results_from_json(json.loads(json.dumps(made.to_json()))) == made
    assert (stated.mean, stated.tally.count, color.mean, shares.value) == (1.5, 8, (1.0, 2.0, 3.0), (1.0, 2.0))
    with pytest.raises(st.Error, match="Moments: mean: expected a number, got tensor"):
        st.Moments(mean=torch.zeros(2))
    with pytest.raises(st.Error, match="Percentiles: value: expected a list of numbers, got tensor"):
        st.Percentiles(value=torch.tensor(1.0))


def test_images_of_bool_get_values_of_bool():
    on = np.array([[[[False, True, True, False]]]])
    labels = np.array([[[[0, 1, 1, 1]]]], np.uint8)
    assert st.mask_image([labels], [on], below=1, value=1)[0].view(np.uint8).ravel().tolist() == [1, 1, 1, 0]
    assert st.gray_dilation([on], border_value=1)[0].view(np.uint8).ravel().tolist() == [1, 1, 1, 1]
    for call, words in ((lambda: st.mask_image([labels], [on], value=3), "mask_image: value: expected 0 or 1 for images of bool, got 3"),
                        (lambda: st.gray_dilation([on], border_value=2), "gray_dilation: border_value: expected 0 or 1 for images of bool, got 2"),
                        (lambda: st.gray_erosion([on], border_value=.5), "gray_erosion: border_value: expected 0 or 1")):
        with pytest.raises(st.Error, match=words):
            call()
