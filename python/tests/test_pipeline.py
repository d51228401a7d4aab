# SPDX-License-Identifier: Apache-2.0
"""The voxels that come out: those of the C++ library, in any layout, of any batch."""
import copy
import functools
import json
import multiprocessing
import os
import pickle
import subprocess
import tempfile
import time

import numpy as np
import pytest

import suture as st
from suture.backend import compiler
from suture.pipeline import class_index, geometry

CT = [st.window(center=40, width=400), st.resample(spacing_mm=1), st.random_affine(rotate_deg=15, scale=(.85, 1.25)),
      st.random_crop(size=96), st.random_gamma(range=(.7, 1.5)), st.gaussian_noise(sigma=.02)]
# The pipeline that most tests here run: compiled once for int16 and uint8.
SMALL = st.Pipeline(image=[st.window(center=40, width=400), st.random_affine(rotate_deg=dict(z=20), scale=(.9, 1.1)),
                           st.random_crop(size=8), st.gaussian_noise(sigma=(0, .1), probability=.5)], seg=st.labels())
RNG = np.random.default_rng(7)
SCANS = [RNG.integers(-200, 300, n, dtype=np.int16) for n in ((1, 10, 12, 14), (1, 9, 11, 13), (1, 12, 12, 12))]
MAPS = [(s > 0).astype(np.uint8) for s in SCANS]
BATCH = {"image": SCANS, "seg": MAPS, "id": ["a", "b", "c"]}


def organ(extents, spacing):
    image = np.full(extents, -100, np.int16)
    seg = np.zeros(extents, np.uint8)
    inside = np.ones(extents, bool)
    for axis, n in zip(np.ogrid[tuple(slice(n) for n in extents)], extents):
        inside &= (axis > n // 3) & (axis < n * 2 // 3)
    image[inside], seg[inside] = 60, 1
    return st.Volume(image, axes="zyx", spacing=spacing), st.Volume(seg, axes="zyx", spacing=spacing)


@functools.lru_cache(maxsize=None)
def cpp_digests(root):
    """What examples/minimal.cpp prints; SUTURE_MINIMAL is the program, where it is compiled already."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.environ.get("SUTURE_MINIMAL")
        if program is None:
            program = f"{folder}/minimal"
            subprocess.run([compiler.host_compiler().path, "-std=c++20", "-O1", "-march=native", "-mtune=generic", "-fopenmp",
                            f"-I{root}/include", f"{root}/examples/minimal.cpp", "-o", program], check=True)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.rsplit(" ", 1)[1] for line in said]


def example_digests():
    """The same from Python."""
    a, b = organ((60, 256, 256), dict(z=2.5, y=.8, x=.8)), organ((110, 160, 180), dict(z=1.5, y=1, x=1))
    pipeline = st.Pipeline(image=CT, seg=st.labels())
    ours = []
    for epoch in range(3):
        out = pipeline({"image": [a[0], b[0]], "seg": [a[1], b[1]], "id": [0, 1]}, seed=42, epoch=epoch)
        assert out["image"].shape == (2, 1, 96, 96, 96) and out["seg"].dtype == np.uint8
        ours += [f"{st.digest(image):016x}" for image in out["image"]]
    return ours


def test_prints_the_digests_of_the_cpp_example(root):
    ours = example_digests()
    assert ours == cpp_digests(root) and len(set(ours)) == 6


def test_does_not_depend_on_batch_threads_or_layout():
    whole = SMALL(BATCH, seed=1)
    for i in range(3):
        alone = SMALL({k: v[i:i + 1] for k, v in BATCH.items()}, seed=1, threads=1)
        for key in ("image", "seg"):
            assert np.array_equal(alone[key][0], whole[key][i])
    assert isinstance(whole["image"], np.ndarray) and whole["id"] == BATCH["id"]


def test_reads_strided_offset_and_readonly_arrays_where_they_lie():
    expected = SMALL(BATCH, seed=1)
    big = [np.zeros((2, *(2 * n + 3 for n in s.shape[1:])), np.int16) for s in SCANS]
    views = [b[1:, 3::2, 1:-2:2, 2:-1:2] for b in big]
    for view, scan in zip(views, SCANS):
        view[...] = scan
        view.flags.writeable = False
    flipped = [s[:, ::-1].copy()[:, ::-1] for s in MAPS]
    out = SMALL({**BATCH, "image": views, "seg": flipped}, seed=1)
    assert np.array_equal(out["image"], expected["image"]) and np.array_equal(out["seg"], expected["seg"])
    assert out["image"].base is None or out["image"].flags.owndata


@pytest.mark.thorough
def test_the_same_pipeline_works_in_both_orders_of_axes():
    """An anisotropic oblique phantom as zyx and as xyz: the same values at the same physical points."""
    affine = np.array([[.69, .05, .3, -20], [-.06, .88, .4, 31], [-.1, -.2, 4.95, 7], [0, 0, 0, 1.]])
    q, _ = np.linalg.qr(affine[:3, :3])
    affine[:3, :3] = q * np.sign(np.diag(q)) * [.7, .9, 5]
    xyz = RNG.integers(-200, 300, (40, 30, 20), dtype=np.int16)
    one = st.Volume(xyz, axes="xyz", affine_ras=affine)
    other = st.Volume(np.ascontiguousarray(xyz.transpose(2, 1, 0)), axes="zyx", affine_ras=affine[:, [2, 1, 0, 3]])
    assert one.grid == other.grid and np.allclose(other.affine_ras, affine[:, [2, 1, 0, 3]])
    chain = [st.orient(x="L", y="P", z="S"), st.resample(spacing_mm=dict(z=2.5, y=1, x=1)),
             st.random_affine(rotate_deg=dict(z=15, x=3)), st.random_crop(size=dict(z=8, y=16, x=12))]
    pipeline = st.Pipeline(image=chain)
    a = pipeline.plan({"image": [one], "id": [3]}, seed=5)
    b = pipeline.plan({"image": [other], "id": [3]}, seed=5)
    first, second = a.run()["image"], b.run()["image"]
    assert first.shape == (1, 1, 12, 16, 8) and second.shape == (1, 1, 8, 16, 12)
    assert np.array_equal(first.transpose(0, 1, 4, 3, 2), second)
    assert a.grids == b.grids and np.abs(second).max() > 50


@pytest.mark.thorough
def test_a_turn_about_z_stays_axial():
    """Each slice of the output is made of one slice of the input, in either order of the axes."""
    zyx = np.broadcast_to(np.arange(9, dtype=np.float32).reshape(1, 9, 1, 1), (1, 9, 20, 24))
    turn = st.Pipeline(image=[st.random_affine(rotate_deg=dict(z=40)), st.sampling(border="edge")])
    for axes, array in (("zyx", zyx[0]), ("xyz", zyx[0].transpose(2, 1, 0))):
        plan = turn.plan({"image": [st.Volume(array, axes=axes, spacing=dict(z=5, y=.7, x=.7))], "id": [1]}, seed=2)
        out = np.asarray(plan.run()["image"][0])
        assert np.array_equal(out, array)
        turned = plan.drawn()[0][0]["parameters"]["rotate_deg"]
        assert abs(turned[0]) > 1 and turned[1:] == [0, 0]


def test_layouts_of_slides():
    tiles = RNG.integers(0, 256, (2, 9, 10, 3), dtype=np.uint8)
    chain = [st.random_flip(axis_probability=dict(y=.5, x=.5)), st.random_crop(size=(4, 5)), st.channel_normalize()]
    last = st.Pipeline(layout="NHWC", rgb=chain)({"rgb": tiles, "id": [1, 2]}, seed=1)["rgb"]
    first = st.Pipeline(layout="NCHW", rgb=chain)({"rgb": np.ascontiguousarray(tiles.transpose(0, 3, 1, 2)), "id": [1, 2]}, seed=1)["rgb"]
    assert last.shape == (2, 4, 5, 3) and first.shape == (2, 3, 4, 5)
    assert np.array_equal(last.transpose(0, 3, 1, 2), first)


@pytest.mark.thorough
def test_types_follow_from_the_pipeline():
    flip = st.Pipeline(image=[st.flip(axes=dict(x=True))])
    equal = np.zeros((2, 1, 3, 4, 5), np.float32)
    assert isinstance(flip({"image": equal})["image"], list)
    alone = flip({"image": equal[:1]})["image"]
    assert isinstance(alone, list) and len(alone) == 1 and alone[0].shape == (1, 3, 4, 5)
    assert isinstance(flip([equal[0]]), list)
    assert SMALL.fixed_size and not flip.fixed_size


def test_evaluation_draws_nothing_and_does_not_stick():
    drawn = SMALL(BATCH, seed=1)["image"]
    plain = SMALL(BATCH, seed=1, training=False)["image"]
    assert not np.array_equal(drawn, plain)
    assert np.array_equal(plain, SMALL(BATCH, seed=2, training=False)["image"])
    assert np.array_equal(drawn, SMALL(BATCH, seed=1)["image"])


@pytest.mark.thorough
def test_labels_are_converted_and_stored_as_asked():
    geometry = [st.random_crop(size=8)]
    ids = {"id": [1, 2, 3]}
    image = [s.astype(np.float32) for s in SCANS]
    seg = [RNG.integers(0, 4, s.shape, dtype=np.uint8) for s in SCANS]
    plain = st.Pipeline(image=geometry, seg=st.labels())({"image": image, "seg": seg, **ids}, seed=1)["seg"]
    wide = st.Pipeline(image=geometry, seg=st.labels(dtype="int64"))({"image": image, "seg": seg, **ids}, seed=1)["seg"]
    assert wide.dtype == np.int64 and np.array_equal(wide, plain)
    hot = st.Pipeline(image=geometry, seg=st.labels(dtype="float32", convert=st.one_hot(classes=4), levels=(.5,)))(
        {"image": image, "seg": seg, **ids}, seed=1)["seg"]
    assert hot[0].shape == (3, 4, 8, 8, 8) and hot[1].shape == (3, 4, 4, 4, 4)
    assert np.array_equal(hot[0], (plain == np.arange(4).reshape(1, 4, 1, 1, 1)).astype(np.float32))
    assert np.array_equal(hot[1], hot[0][:, :, 1::2, 1::2, 1::2])
    for dtype in (np.float32, np.int64):
        same = st.Pipeline(image=geometry, seg=st.labels(dtype="uint8", convert=st.remap(table={9: 0}, others=None)))
        with pytest.raises(st.Error, match="do not all fit the output"):
            same({"image": image, "seg": [s.astype(dtype) for s in seg], **ids}, seed=1)
        whole = st.Pipeline(image=geometry, seg=st.labels())({"image": image, "seg": [s.astype(dtype) for s in seg], **ids}, seed=1)
        assert whole["seg"].dtype == np.int32 and np.array_equal(whole["seg"], plain)
    with pytest.raises(st.Error, match="seg: sample 0: labels: expected whole numbers of 32 bits, got 1.5"):
        st.Pipeline(image=geometry, seg=st.labels())({"image": image, "seg": [np.full(s.shape, 1.5, np.float32) for s in seg], **ids})
    below = st.Pipeline(image=geometry, seg=st.labels())({"image": image, "seg": [s.astype(np.int64) - 1 for s in seg], **ids}, seed=1)
    assert below["seg"].min() == -1 and np.array_equal(below["seg"], plain.astype(np.int32) - 1)
    flags = st.Pipeline(image=geometry, seg=st.labels())({"image": image, "seg": [s > 1 for s in seg], **ids}, seed=1)["seg"]
    assert flags.dtype == bool and np.array_equal(flags, plain > 1)


def test_images_on_different_grids_are_told_by_their_keys():
    def volume(n, mm):
        return st.Volume(np.ones((n, n, n), np.float32), axes="zyx", spacing=dict(z=mm, y=mm, x=mm))

    chain = [st.window(center=1, width=4)]
    both, ct, pet = st.Pipeline(ct=chain, pet=chain), volume(8, 1.), volume(4, 2.)
    with pytest.raises(st.Error, match=r"^suture: pet: sample 1: expected an output of the extents \(8, 8, 8\), as ct has, got \(4, 4, 4\). "
                                       "Resample pet to the grid of ct before, with resample_to$"):
        both.plan({"ct": [ct, ct], "pet": [volume(8, 2.), pet]})
    moved = st.Pipeline(pet=[st.resample_to(target=ct)])({"pet": [pet]})["pet"]
    assert both({"ct": [ct], "pet": moved})["pet"][0].array.shape == (8, 8, 8)


@pytest.mark.thorough
def test_images_share_geometry_and_have_noise_of_their_own():
    noise = st.gaussian_noise(sigma=1.)
    where = [st.random_crop(size=8)]
    both = st.Pipeline(ct=[*where, noise], pet=[*where, noise])
    scans = [np.broadcast_to(np.arange(s.size, dtype=np.float32).reshape(s.shape), s.shape) for s in SCANS]
    out = both({"ct": scans, "pet": scans, "id": [1, 2, 3]}, seed=1)
    plain = st.Pipeline(ct=where)({"ct": scans, "id": [1, 2, 3]}, seed=1)["ct"]
    a, b = out["ct"] - plain, out["pet"] - plain
    assert abs(a.std() - 1) < .05 and abs(b.std() - 1) < .05
    assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < .1
    assert np.array_equal(out["ct"], st.Pipeline(ct=[*where, noise])({"ct": scans, "id": [1, 2, 3]}, seed=1)["ct"])
    with pytest.raises(st.Error, match="have different geometry"):
        st.Pipeline(ct=where, pet=[st.random_crop(size=9)])


def test_the_same_id_twice_is_taken_where_asked_for():
    noise = st.Pipeline(image=[st.gaussian_noise(sigma=1.)])
    batch = {"image": [np.zeros((1, 4, 5, 6), np.float32)] * 3, "id": ["a", "b", "a"]}
    with pytest.raises(st.Error) as caught:
        noise(batch, seed=1)
    assert str(caught.value) == ("suture: plan: samples 0 and 2 have the same id 'a', so they would get the same "
                                 "draws; give each an id of its own, or set same_ids")
    a, b, c = noise(batch, seed=1, same_ids=True)["image"]
    assert np.array_equal(a, c) and not np.array_equal(a, b)
    d, _, e = noise({**batch, "id": [st.sample_id("a", draw=k) for k in range(3)]}, seed=1)["image"]
    assert np.array_equal(a, d) and not np.array_equal(d, e)
    noise(batch, training=False)


def displaced(**more):
    points = (5, 5, 5)
    values = RNG.uniform(-1.5, 1.5, (3, *points)).astype(np.float32)
    return st.elastic(control_points=points, max_displacement_mm=1.5, locked_borders=0, allow_folding=True,
                      control_values=values.ravel().tolist(), **more), values


@pytest.mark.thorough
def test_control_values_beyond_the_bound_are_refused():
    op, values = displaced()
    batch = {"image": [np.zeros((1, 9, 9, 9), np.float32)]}
    st.Pipeline(image=[op])(batch)
    values[1, 2, 2, 2] = -1.75
    with pytest.raises(st.Error, match="control_values: 1.75 mm along y is more than max_displacement_mm 1.5"):
        st.Pipeline(image=[st.elastic(**{**vars(op), "control_values": values.ravel().tolist()})])(batch)
    st.Pipeline(image=[st.elastic(**{**vars(op), "control_values": values.ravel().tolist(), "max_displacement_mm": dict(z=1.5, y=2, x=1.5)})])(batch)
    with pytest.raises(st.Error, match="elastic: sample 0: control_values are given, which limit_to_safe would change"):
        st.Pipeline(image=[st.elastic(**{**vars(op), "limit_to_safe": True})])(batch)


@pytest.mark.thorough
def test_points_and_boxes_move_along():
    pipeline = st.Pipeline(image=[st.flip(axes=dict(x=True)), st.crop(start=dict(z=1, y=2), size=dict(z=5, y=6, x=14))],
                           boxes=st.boxes(format="xyzxyz"), pts=st.points(format="zyx"))
    scan = np.zeros((1, 10, 12, 14), np.float32)
    out = pipeline({"image": [scan], "pts": [[(3, 4, 0), (3, 4, 13)]], "boxes": [[(0, 2, 1, 3, 5, 4), (0, 0, 0, 1, 1, 1)]]})
    assert np.allclose(out["pts"][0], [(2, 2, 13), (2, 2, 0)])
    moved = out["boxes"][0]
    assert moved.index.tolist() == [0] and np.allclose(moved.boxes, [(11, 0, 0, 14, 3, 3)]) and moved.visible[0] == 1


def test_points_and_boxes_that_a_folding_deformation_does_not_locate_are_told():
    """Displacements along x that fall from 6 to -6 voxels between control points 5 voxels apart fold space there."""
    values = np.zeros((3, 8, 8, 8), np.float32)
    values[2, :, :, :2], values[2, :, :, 2:4] = 6, -6
    fold = st.elastic(control_points=8, max_displacement_mm=6, locked_borders=0, allow_folding=True, control_values=values.ravel().tolist())
    rng = np.random.default_rng(3)
    given = rng.uniform(0, 25, (200, 3))
    far, near = (2., 2., 24., 8., 8., 25.), (2., 2., 2., 20., 20., 12.)
    pipeline = st.Pipeline(image=[fold], pts=st.points(), boxes=st.boxes())
    plan = pipeline.plan({"image": [np.zeros((1, 26, 26, 26), np.float32)], "pts": [given], "boxes": [[far, near]]})
    out = plan.run()
    points, = out["pts"]
    lost = np.isnan(points)
    assert np.array_equal(lost.any(1), lost.all(1)) and 0 < lost.all(1).sum() < 100
    there = ~lost.all(1)
    back, = geometry.points_to_source(plan, [points[there]], st.points())
    assert np.abs(back - given[there]).max() < 1e-5  # what the output reads at a point that is told is the given one
    assert out["boxes"][0].converged.tolist() == [True, False]


@pytest.mark.parametrize("format", ["yxyx", "xyxy"])
def test_boxes_of_two_axes_are_as_thick_as_their_pixels(format):
    """A box of a 2D image is one voxel thick along z, which least_thickness does not look at."""
    given = np.array([(2, 2, 6, 5), (14, 2, 20, 8), (15, 2, 20, 8), (2, 2, 20, 3)], np.float64)
    columns = [format.index(k) + 2 * n for n in (0, 1) for k in "yx"]  # of "yxyx" in the format
    pipeline = st.Pipeline(layout="NHWC", rgb=[st.crop(start=(0, 0), size=(16, 16))], boxes=st.boxes(format=format, least_thickness=2))
    rows = np.empty_like(given)
    rows[:, columns] = given
    moved = pipeline({"rgb": np.zeros((1, 32, 32, 3), np.uint8), "boxes": [rows]})["boxes"][0]
    assert moved.index.tolist() == [0, 1] and moved.boxes[:, columns].tolist() == [[2, 2, 6, 5], [14, 2, 16, 8]]


def test_the_way_back_returns_the_scan():
    chain = [st.random_flip(probability=1), st.rot90(axes=("y", "x")), st.pad_to(size=16)]
    pipeline = st.Pipeline(image=chain)
    volume = st.Volume(SCANS[0].astype(np.float32), axes="zyx", spacing=dict(z=5, y=.7, x=.7))
    plan = pipeline.plan({"image": [volume], "id": ["a"]}, seed=3)
    seen = plan.run()["image"]
    assert isinstance(seen[0], st.Volume)
    back, covered = plan.inverse({"image": seen}, coverage=True)["image"]
    assert back[0].grid == volume.grid and np.array_equal(back[0].array, volume.array)
    assert np.all(covered[0].array == 1)


def test_pipelines_are_copied_pickled_and_written():
    for made in (copy.deepcopy(SMALL), pickle.loads(pickle.dumps(SMALL)),
                 st.Pipeline.from_json(json.loads(json.dumps(SMALL.to_json())))):
        assert made == SMALL
        assert np.array_equal(made(BATCH, seed=1)["image"], SMALL(BATCH, seed=1)["image"])


@pytest.mark.parametrize("change, sentence", [
    (dict(id=["a", "a", "b"]), "samples 0 and 1 have the same id"),
    (dict(id=["a", "b"]), "2 ids for 3 samples"),
    (dict(image=SCANS[:2]), "seg: expected 2 samples, as image has, got 3"),
    (dict(image=[s.astype(np.float64) for s in SCANS]), "uint16 or bool, got float64. Pass a.astype(numpy.float32)"),
    (dict(image=[s.astype(">i2") for s in SCANS]), "expected the byte order of this machine"),
    (dict(image=[s[0] for s in SCANS]), "may be read in several ways; say layout="),
    (dict(image=[s[:, :4] for s in SCANS]), "random_crop: sample 0"),
    (dict(seg=[m[:, 1:] for m in MAPS]), "labels: sample 0"),
    (dict(image=[object()] * 3), "got object. Pass numpy.asarray(a)"),
    (dict(image=[]), "the batch is empty"),
])
def test_mistakes_get_one_sentence(change, sentence):
    with pytest.raises(st.Error) as caught:
        SMALL({**BATCH, **change}, seed=1)
    assert sentence in str(caught.value) and str(caught.value).startswith("suture: ") and "\n" not in str(caught.value)


def test_outputs_may_be_given():
    expected = SMALL(BATCH, seed=1)
    room = np.zeros((3, 1, 8, 8, 16), np.float32)[..., ::2]
    out = SMALL(BATCH, seed=1, out={"image": room})
    assert out["image"] is room and np.array_equal(room, expected["image"])
    with pytest.raises(st.Error, match=r"image: out: expected the shape \(3, 1, 8, 8, 8\), got \(2,"):
        SMALL(BATCH, seed=1, out={"image": room[:2]})
    with pytest.raises(st.Error, match="read-only"):
        room.flags.writeable = False
        SMALL(BATCH, seed=1, out={"image": room})
    with pytest.raises(st.Error, match="overlap"):
        scans = np.zeros((1, 1, 8, 8, 8), np.float32)
        st.Pipeline(image=[st.random_crop(size=8)])({"image": scans, "id": [0]}, out={"image": scans})


def test_crop_by_class_counts_selects_and_crops():
    pipeline = st.Pipeline(image=[st.crop_by_class(size=4, labels="seg", ratios=[0, 0, 1])], seg=st.labels())
    seg = np.zeros((2, 1, 20, 20, 20), np.uint8)
    seg[0, 0, 3, 4, 5] = seg[1, 0, 16, 10, 2] = 2
    image = np.zeros(seg.shape, np.float32)
    for epoch in range(3):
        out = pipeline({"image": image, "seg": seg, "id": [1, 2]}, seed=1, epoch=epoch)
        assert out["seg"].shape == (2, 1, 4, 4, 4) and (out["seg"].reshape(2, -1).max(1) == 2).all()
    middle = pipeline({"image": image, "seg": seg, "id": [1, 2]}, training=False)
    assert middle["seg"].max() == 0


@pytest.fixture
def counted(monkeypatch):
    """The samples of each call that were counted."""
    calls, count = [], class_index._made
    class_index._kept.clear()
    monkeypatch.setattr(class_index, "_made", lambda items, samples, classes: calls.append(samples) or count(items, samples, classes))
    return calls


@pytest.mark.parametrize("rule", [{"ratios": [0, 1]}, {"positive": 1, "negative": 0}])
def test_a_label_map_that_changes_where_it_lies_is_counted_again(rule, counted):
    pipeline = st.Pipeline(image=[st.crop_by_class(size=4, labels="seg", **rule)], seg=st.labels())
    seg = np.zeros((2, 1, 20, 20, 20), np.uint8)
    image = np.zeros(seg.shape, np.float32)
    for at, again in (((3, 4, 5), [[0, 1]]), ((3, 4, 5), []), ((16, 10, 2), [[0]]), (None, [[0]]), ((9, 9, 9), [[0]]), ((9, 9, 9), [])):
        seg[:] = 0
        seg[1, 0, 5, 5, 5] = 1
        if at:
            seg[(0, 0, *at)] = 1
        del counted[:]
        out = pipeline({"image": image, "seg": seg, "id": [1, 2]}, seed=1)["seg"]
        assert out.reshape(2, -1).max(1).tolist() == [int(at is not None), 1] and counted == again


def test_a_map_that_is_refilled_between_its_first_and_last_voxel_is_counted_again():
    """The first and last voxel of class 1 stay; class 2 comes between them."""
    pipeline = st.Pipeline(image=[st.crop_by_class(size=3, labels="seg", ratios=[0, 0, 1])], seg=st.labels())
    image, seg = np.zeros((1, 20, 20, 20), np.int16), np.zeros((1, 20, 20, 20), np.uint8)
    seg[0, 2, 2, 2] = seg[0, 17, 17, 17] = 1
    batch = {"image": [image], "seg": [seg], "id": ["a"]}
    assert pipeline(batch, seed=1)["seg"].max() <= 1
    seg[0, 8:12, 8:12, 8:12] = 2
    assert pipeline(batch, seed=1)["seg"][0, 0, 1, 1, 1] == 2


def test_maps_that_hold_the_same_are_counted_once(counted):
    pipeline = st.Pipeline(image=[st.crop_by_class(size=3, labels="seg", ratios=[0, 1])], seg=st.labels())
    seg = np.random.default_rng(1).integers(0, 2, (1, 9, 9, 9), dtype=np.uint8)
    image = np.zeros(seg.shape, np.float32)
    one = pipeline({"image": [image] * 3, "seg": [seg, seg, seg.copy()], "id": [1, 2, 3]}, seed=1)["seg"]
    pipeline({"image": image[None], "seg": seg[None], "id": [1]}, seed=1)
    assert counted == [[0]]
    other = [np.asfortranarray(seg), seg.astype(np.int8)]  # these have an index of their own
    assert np.array_equal(pipeline({"image": [image] * 2, "seg": [other[0]] * 2, "id": [1, 2]}, seed=1)["seg"], one[:2])
    assert np.array_equal(pipeline({"image": [image], "seg": [other[1]], "id": [1]}, seed=1)["seg"], one[:1])
    assert counted == [[0], [0], [0]]


def centers(rule, convert, seg, count=300):
    """The labels in the middle of many crops of one map, as they are stored; where channels, the set ones."""
    pipeline = st.Pipeline(image=[st.crop_by_class(size=3, labels="seg", **rule)], seg=st.labels(convert=convert))
    image = np.zeros(seg.shape, np.float32)
    out = pipeline({"image": [image] * count, "seg": [seg] * count, "id": list(range(count))}, seed=1)["seg"]
    return out[:, :, 1, 1, 1]


def two_organs():
    """A large organ 2 and a small one 3."""
    seg = np.zeros((1, 16, 16, 16), np.uint8)
    seg[0, 2:14, 2:8, 2:14] = 2
    seg[0, 6:10, 10:13, 6:10] = 3
    return seg


def test_crops_are_chosen_by_the_labels_as_they_are_stored():
    """Half of the crops show the foreground in the middle, within 5 standard deviations of a coin, and not the 5 % that
    organ 3 has of what is labeled."""
    half, seg = {"positive": 1, "negative": 1}, two_organs()
    kidney = st.remap(table={3: 1}, others=0)
    assert abs((centers(half, kidney, seg) == 1).mean() - .5) < 5 * .5 / 300**.5
    assert (centers({**half, "choose": "given"}, kidney, seg) == 1).mean() < .2
    assert (centers({"ratios": [0, 1]}, kidney, seg) == 1).all()
    assert (centers({"ratios": [0, 0, 1]}, st.remap(table={3: 2, 2: 7}), seg) == 2).all()
    sets = st.regions(sets=((3,), (3, 9)))
    assert abs((centers(half, sets, seg).max(1) == 1).mean() - .5) < 5 * .5 / 300**.5
    hot = centers({"ratios": [0, 0, 0, 1]}, st.one_hot(classes=4), seg)
    assert (hot[:, 3] == 1).all()


def test_regions_are_no_classes():
    with pytest.raises(st.Error, match="choose: expected \"given\" with ratios"):
        centers({"ratios": [1, 1]}, st.regions(sets=((2, 3), (3,))), two_organs(), 1)
    assert centers({"ratios": [0, 0, 0, 1], "choose": "given"}, st.regions(sets=((2, 3), (3,))), two_organs(), 5).all()
    with pytest.raises(st.Error, match="choose: .stored. is none of converted, given"):
        st.crop_by_class(size=3, labels="seg", ratios=[1, 1], choose="stored")


@pytest.mark.parametrize("dtype", ["int64", "bool", "float64"])
def test_other_types_go_back_as_they_came(dtype):
    pipeline = st.Pipeline(image=[st.flip(axes=dict(z=True, x=True)), st.crop(start=2, size=6)])
    rng = np.random.default_rng(1)
    scan = rng.normal(size=(1, 1, 9, 10, 11)).astype(np.float32)
    plan = pipeline.plan({"image": scan, "id": [1]}, seed=1)
    seen = (rng.integers(-9, 70000, (1, 1, 6, 6, 6)) % (2 if dtype == "bool" else 1 << 30)).astype(dtype)
    back, = plan.inverse({"image": seen}, interpolation="nearest", outside=0)["image"]
    expected = np.zeros(scan.shape[1:], dtype)
    expected[:, ::-1, :, ::-1][:, 2:8, 2:8, 2:8] = seen[0]
    assert back.dtype == dtype and np.array_equal(back, expected)


def test_labels_that_float32_does_not_hold_do_not_go_back():
    plan = st.Pipeline(image=[st.flip(axes=dict(z=True))]).plan({"image": np.zeros((1, 1, 4, 4, 4), np.float32), "id": [1]}, seed=1)
    for dtype in (np.int32, np.int64):
        with pytest.raises(st.Error, match="inverse: image: expected whole numbers within -16777216 to 16777216"):
            plan.inverse({"image": np.full((1, 1, 4, 4, 4), (1 << 24) + 1, dtype)}, interpolation="nearest")


TURNED = st.Pipeline(image=[st.flip(axes=dict(z=True))], seg=st.labels())


def turned_plan():
    scan = st.Volume(np.arange(24, dtype=np.float32).reshape(2, 3, 4), axes="zyx", spacing=2)
    return TURNED.plan({"image": [scan], "seg": [st.Volume(np.zeros((2, 3, 4), np.uint8), axes="zyx", spacing=2)]}, seed=1)


@pytest.mark.parametrize(("key", "dtype"), [("image", "int64"), ("image", "bool"), ("seg", "int64"), ("seg", "bool"), ("seg", "uint8"), ("seg", "int32")])
def test_labels_do_not_go_back_by_linear_interpolation(key, dtype):
    plan, seen = turned_plan(), np.arange(24).reshape(2, 3, 4).astype(dtype)
    with pytest.raises(st.Error, match=f'^suture: inverse: {key}: interpolation: expected "nearest" for label maps and masks, got "linear" '
                                       f'for {dtype}\\. Pass interpolation="nearest", or probabilities in a float type$'):
        plan.inverse({key: [seen]})
    back, = plan.inverse({key: [seen]}, interpolation="nearest")[key]
    assert back.array.dtype == dtype and np.array_equal(back.array, seen[::-1])


def test_images_and_probabilities_go_back_by_linear_interpolation():
    plan, seen = turned_plan(), np.arange(24).reshape(2, 3, 4)
    for key, dtype in (("image", "uint8"), ("image", "float32"), ("seg", "float32"), ("seg", "float16")):
        assert np.array_equal(plan.inverse({key: [seen.astype(dtype)]})[key][0].array, seen[::-1])


def test_an_interpolation_by_key():
    plan, seen = turned_plan(), np.arange(24).reshape(2, 3, 4)
    given = {"image": [seen.astype(np.float32)], "seg": [seen.astype(np.uint8)]}
    for chosen in ({"seg": "nearest"}, {"seg": "nearest", "image": "linear"}, "nearest"):
        back = plan.inverse(given, interpolation=chosen)
        assert all(np.array_equal(back[key][0].array, seen[::-1]) for key in given)
    scan = [st.Volume(np.zeros((4, 1, 1), np.float32), axes="zyx", spacing=2)]
    half = st.Pipeline(image=[st.resample(spacing_mm=dict(z=4, y=2, x=2))], seg=st.labels()).plan({"image": scan, "seg": scan}, seed=1)
    step = [np.array([0, 8], np.float32).reshape(2, 1, 1)]
    back = half.inverse({"image": step, "seg": step}, interpolation={"seg": "nearest"})
    assert set(np.asarray(back["seg"][0]).ravel()) <= {0, 8} and not set(np.asarray(back["image"][0]).ravel()) <= {0, 8}
    for wrong, words in (({"sge": "nearest"}, "interpolation: expected keys among image, seg, got 'sge'. Name keys of the batch"),
                         ({"seg": "cubic"}, "interpolation: expected \"linear\" or \"nearest\", got 'cubic'. Pass one"), (None, "got None. Pass one")):
        with pytest.raises(st.Error, match=f"^suture: inverse: {words}" if wrong else words):
            plan.inverse(given, interpolation=wrong)


def test_keys_and_samples_that_do_not_go_back():
    plan, scan = turned_plan(), np.zeros((2, 3, 4), np.float32)
    with pytest.raises(st.Error, match="^suture: inverse: expected keys among image, seg, got 'imag'\\. Name the key"):
        plan.inverse({"imag": [scan]})
    for value, got in ((None, "None"), (3, "3"), (np.float32(2), r"(np\.float32\()?2\.0\)?")):
        with pytest.raises(st.Error, match=f"^suture: inverse: image: expected a Volume, or a list or array with each sample, got {got}\\. Pass"):
            plan.inverse({"image": value})
    with pytest.raises(st.Error, match="^suture: inverse: image: expected the axes 'zyx' of the plan, got 'xyz'\\. Pass volume.with_axes"):
        plan.inverse({"image": [st.Volume(np.zeros((2, 3, 4), np.float32), axes="xyz", spacing=2)]})


def test_a_volume_alone_goes_back_as_a_list_of_it():
    plan, seen = turned_plan(), st.Volume(np.arange(24, dtype=np.float32).reshape(2, 3, 4), axes="zyx", spacing=2)
    for back in (plan.inverse({"image": seen})["image"], plan.inverse(seen)):
        assert [v.grid for v in back] == [seen.grid] and np.array_equal(back[0].array, seen.array[::-1])


def test_per_sample_starts():
    pipeline = st.Pipeline(image=[st.crop_at(starts=st.per_sample("starts"), size=2)])
    scan = np.arange(64, dtype=np.float32).reshape(1, 1, 4, 4, 4).repeat(2, 0)
    out = pipeline({"image": scan, "starts": [(0, 0, 0), (2, 1, 0)]})["image"]
    assert out[0, 0, 0, 0, 0] == 0 and out[1, 0, 0, 0, 0] == 36
    with pytest.raises(st.Error, match="the batch has no 'starts'"):
        pipeline({"image": scan})


def _digest_in_worker(queue, batch):
    queue.put([st.digest(v) for v in SMALL(batch, seed=1)["image"]])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_give_the_bits_of_their_parent(method):
    """Also a forked one of a parent whose threads were used."""
    here = [st.digest(v) for v in SMALL(BATCH, seed=1, threads=2)["image"]]
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    workers = [context.Process(target=_digest_in_worker, args=(queue, BATCH)) for _ in range(2)]
    begin = time.monotonic()
    for w in workers:
        w.start()
    results = [queue.get(timeout=60) for _ in workers]
    for w in workers:
        w.join(60)
    assert results == [here, here]
    if method == "fork":
        assert time.monotonic() - begin < 10


def test_recipes_are_those_of_cpp(tmp_path):
    """The types, and with them the operations and what is chosen at compile time."""
    from suture.backend.encode import Encoder, chain_type
    from suture.operations.operation import chain_of

    patch = dict(z=28, y=256, x=256)
    spacing = dict(z=5, y=.7, x=.7)
    starts = [(0, 0, 0)]
    pairs = [(st.recipes.nnunet_chain(patch, spacing_mm=spacing, starts=starts), "suture::nnunet_v2_8({})"),
             (st.recipes.nnunet_chain(patch, spacing_mm=spacing, starts=starts, version="2.3"), "suture::nnunet_v2_3({})"),
             (st.recipes.monai_brats(), "suture::monai_brats()"),
             (st.recipes.monai_colon_training(starts), "suture::monai_colon_training({})"),
             (st.recipes.nnunet_preprocess_ct(st.ct_normalize(lower=0, upper=1, mean=0, standard_deviation=1), spacing_mm=spacing),
              "suture::nnunet_preprocess_ct({}, {})")]
    lines = []
    for chain, cpp in pairs:
        encoder = Encoder("zyx", {}, 1)
        code = chain_type([op.encode(encoder) for op in chain_of(chain)])
        lines.append(f"static_assert(std::is_same_v<{code}, decltype({cpp})>);")
    source = tmp_path / "recipes.cpp"
    headers = ["suture", "abi/request", "recipe/nnunet", "recipe/monai_brats", "recipe/monai_colon"]
    source.write_text("".join(f"#include <suture/{h}.hpp>\n" for h in headers) + "\n".join(lines))
    done = subprocess.run([compiler.host_compiler().path, "-std=c++20", "-fsyntax-only", f"-I{compiler.include_directory()}", str(source)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    shape = st.recipes.nnunet_shape(patch, spacing)
    assert shape["enlarged"]["z"] == 28 and shape["rotation"] == dict(z=180, y=0, x=0)


@pytest.mark.parametrize("layout", ["NCDHW", "NDCHW", "NDHWC", "NHWC", "NCHW"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_results_are_mapped_back_in_their_layout(layout, channels):
    """A flip is undone exactly, wherever the layout has its channels, and also where they are as many as slices."""
    extents = dict(N=2, C=channels, D=4, H=5, W=6)
    given = np.random.default_rng(5).random([extents[k] for k in layout]).astype(np.float32)
    plan = st.Pipeline(layout=layout, image=[st.flip(axes=dict(x=True))]).plan({"image": given})
    seen = plan.run()["image"]
    assert np.array_equal(seen, np.flip(given, layout.index("W")))
    back, covered = plan.inverse({"image": seen}, coverage=True)["image"]
    assert np.array_equal(back, given)
    assert [c.size for c in covered] == [given[0].size // channels] * 2 and np.stack(covered).min() == 1


PLANE = np.random.default_rng(6).random((1, 2, 24, 30)).astype(np.float32)


def of_plane(op, layout="NCHW", plane=PLANE):
    return st.Pipeline(layout=layout, image=[op])({"image": plane, "id": [1]}, seed=1, epoch=0)["image"][0]


@pytest.mark.parametrize(("one", "named"), [
    (st.affine(translate=5), st.affine(translate=dict(y=5, x=5))), (st.affine(rotate_deg=15), st.affine(rotate_deg=dict(z=15))),
    (st.affine(scale=2), st.affine(scale=dict(y=2, x=2))), (st.affine_matrix(translation=3), st.affine_matrix(translation=dict(y=3, x=3))),
    (st.pad(before=2), st.pad(before=dict(y=2, x=2))), (st.pad(after=(1, 2)), st.pad(after=dict(y=1, x=2))),
    (st.crop(start=5, size=10), st.crop(start=dict(y=5, x=5), size=dict(y=10, x=10))),
    (st.random_affine(translate=(10, (-5, 5))), st.random_affine(translate=dict(y=10, x=(-5, 5)))),
    (st.random_affine(scale=((.9, 1.1), (.8, 1.2)), isotropic_scale=False),
     st.random_affine(scale=dict(z=(1, 1), y=(.9, 1.1), x=(.8, 1.2)), isotropic_scale=False)),
    (st.random_affine(scale=((.8, 1.2), (.8, 1.2))), st.random_affine(scale=(.8, 1.2))),
    (st.random_affine(scale=dict(y=(.8, 1.2), x=(.8, 1.2))), st.random_affine(scale=(.8, 1.2))),
], ids=lambda op: repr(op))
def test_one_number_keeps_a_plane_in_its_plane(one, named):
    made = of_plane(one)
    assert np.array_equal(made, of_plane(named)) and (made != 0).mean() > .4


def test_levels_of_a_plane_have_one_scale():
    seg = (PLANE[:, :1] > .5).astype(np.uint8)
    pipeline = st.Pipeline(layout="NCHW", image=[st.identity()], seg=st.labels(levels=(.5, (.5, 1))))
    made = pipeline({"image": PLANE, "seg": seg, "id": [1]}, seed=1, epoch=0)["seg"]
    assert [np.asarray(m).shape for m in made] == [(1, 1, 24, 30), (1, 1, 12, 15), (1, 1, 12, 30)]


@pytest.mark.parametrize(("op", "turned"), [
    (st.affine_matrix(linear=((1, 0, 0), (0, .9, .2), (0, -.1, 1.1)), translation=(2, -3)),
     st.affine_matrix(linear=((1, 0, 0), (0, 1.1, -.1), (0, .2, .9)), translation=(-3, 2))),
    (st.affine(shear=(0, 0, 0, .2, 0, -.1)), st.affine(shear=(0, 0, 0, -.1, 0, .2))),
    (st.crop_at(starts=((0, 3, 5),), size=(8, 6)), st.crop_at(starts=((0, 5, 3),), size=(6, 8))),
], ids=["affine_matrix", "shear", "crop_at"])
def test_values_follow_the_order_of_a_plane(op, turned):
    """Before the two axes of a plane, z is the first, whatever their order."""
    assert np.array_equal(of_plane(turned, "NCWH", PLANE.swapaxes(2, 3)), of_plane(op).swapaxes(1, 2))


def test_values_follow_any_order_of_three_axes():
    scan = np.random.default_rng(7).random((1, 1, 8, 9, 10)).astype(np.float32)
    linear = np.array([(1, .1, .2), (.3, .9, -.1), (0, -.2, 1.1)])
    for layout in ("NCDHW", "NCWHD", "NCHWD", "NCWDH"):
        places = ["DHW".index(k) for k in layout[2:]]
        op = st.affine_matrix(linear=linear[np.ix_(places, places)], translation=tuple(np.array([.5, -1, 2])[places].tolist()))
        expected = of_plane(st.affine_matrix(linear=linear, translation=(.5, -1, 2)), "NCDHW", scan)
        axes = [0, *(1 + k for k in places)]
        assert np.array_equal(of_plane(op, layout, scan.transpose([0, *(1 + k for k in axes)])), expected.transpose(axes))


def test_labels_of_bool_are_0_or_1():
    seg = np.array([0, 1, 5, 200], np.uint8).reshape(1, 1, 1, 4)
    image = np.zeros((1, 1, 1, 4), np.float32)

    def made(role, *chain, seg=seg):
        pipeline = st.Pipeline(image=list(chain), seg=role)
        return pipeline({"image": [image], "seg": [seg], "id": [1]})["seg"][0].view(np.uint8).ravel().tolist()

    assert made(st.labels(dtype="bool")) == [0, 1, 1, 1]
    assert made(st.labels(dtype="bool", convert=st.remap(table={0: 7, 1: 0, 5: 3}))) == [1, 0, 1, 1]
    assert made(st.labels(dtype="bool", convert=st.remap(table={5: 3}, others=0))) == [0, 0, 1, 0]
    assert made(st.labels(dtype="bool"), st.pad(after=dict(x=1)), st.sampling(label_outside=9)) == [0, 1, 1, 1, 1]
    assert made(st.labels(dtype="bool"), seg=seg != 0) == made(st.labels(), seg=seg != 0) == [0, 1, 1, 1]
    with pytest.raises(st.Error, match="sampling: label_outside: expected 0 or 1 for seg, whose labels are bool, got 9"):
        made(st.labels(), st.pad(after=dict(x=1)), st.sampling(label_outside=9), seg=seg != 0)
