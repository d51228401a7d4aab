# SPDX-License-Identifier: Apache-2.0
"""In MONAI's Compose, and beside its transforms."""
import warnings

import numpy as np
import pytest
from conftest import library

pytestmark = pytest.mark.monai
torch = library("torch")
monai = library("monai")

import suture as st  # noqa: E402
import suture.monai  # noqa: E402

AFFINE = np.array([[0, -.9, 0, 40], [.7, 0, 0, -20], [0, 0, 5, 7], [0, 0, 0, 1.]])
SCAN = np.random.default_rng(5).normal(size=(1, 14, 12, 10)).astype(np.float32)


def item(name="a"):
    from monai.data import MetaTensor

    return {"image": MetaTensor(torch.from_numpy(SCAN), affine=torch.from_numpy(AFFINE)),
            "seg": MetaTensor(torch.from_numpy((SCAN > 0).astype(np.float32)), affine=torch.from_numpy(AFFINE)), "case": name}


def test_the_host_copy_of_a_meta_tensor_is_not_made(monkeypatch):
    """MetaTensor.array is a copy on the host; suture reads the tensor itself, and returns tensors."""
    def refuse(_):
        raise AssertionError("a copy on the host")

    pipeline = st.Pipeline(image=[st.flip(axes=dict(z=True))], seg=st.labels())
    plain = {"image": [torch.from_numpy(SCAN)], "seg": [torch.from_numpy((SCAN > 0).astype(np.int64))]}
    expected = pipeline(plain)
    digests = pipeline.plan(plain).record(expected)
    monkeypatch.setattr(monai.data.MetaTensor, "array", property(refuse))
    batch = {key: [monai.data.MetaTensor(each[0])] for key, each in plain.items()}
    plan = pipeline.plan(batch)
    out = plan.run()
    back = plan.inverse({"image": [monai.data.MetaTensor(SCAN).to(torch.float64)]})["image"]
    again = plan.run({"image": [monai.data.MetaTensor(torch.zeros(SCAN.shape))]})
    assert all(type(out[key][0]) is torch.Tensor and torch.equal(out[key][0], expected[key][0]) for key in plain)
    assert torch.equal(again["image"][0].as_tensor(), expected["image"][0])
    assert isinstance(back[0], torch.Tensor) and back[0].dtype == torch.float64 and torch.equal(back[0].float(), expected["image"][0])
    assert plan.record(out) == digests


def test_all_orientations_are_those_of_orientationd():
    import itertools

    for letters in itertools.product("RL", "AP", "SI"):
        for order in itertools.permutations(range(3)):
            code = "".join(letters[k] for k in order)
            turned = st.Pipeline(image=[st.orient(x=code[0], y=code[1], z=code[2])])
            ours = suture.monai.Augmentd(turned, seed=1, id_key="case")(item())
            theirs = monai.transforms.Orientationd("image", axcodes=code, labels=(("L", "R"), ("P", "A"), ("I", "S")))(item())
            assert torch.equal(ours["image"].as_tensor(), theirs["image"].as_tensor())
            assert np.allclose(ours["image"].affine, theirs["image"].affine)


def test_a_cache_does_not_freeze_draws():
    pipeline = st.Pipeline(image=[st.random_crop(size=4)], seg=st.labels())
    augment = suture.monai.Augmentd(pipeline, seed=1, id_key="case")
    cached = monai.data.CacheDataset([item("a"), item("b")], monai.transforms.Compose([augment]), progress=False)
    first = cached[0]["image"].as_tensor().clone()
    assert torch.equal(first, cached[0]["image"].as_tensor())
    augment.set_epoch(1)
    assert not torch.equal(first, cached[0]["image"].as_tensor())
    batch = suture.monai.ragged_collate([item("a"), item("b")])
    together = augment(batch)
    assert torch.equal(together["image"][0].as_tensor(), cached[0]["image"].as_tensor())
    assert together["seg"][0].dtype == torch.int32


def test_each_level_of_labels_has_its_affine():
    augment = suture.monai.Augmentd(st.Pipeline(image=[], seg=st.labels(levels=(dict(x=.5, y=.5, z=.2),))), seed=1, id_key="case")
    full, level = augment(item())["seg"]
    assert np.allclose(full.affine, AFFINE) and tuple(level.shape) == (1, 7, 6, 2)
    # A voxel of the level covers 2 x 2 x 5 voxels, from the corner of the scan on.
    covers = np.diag([2, 2, 5, 1.])
    covers[:3, 3] = .5, .5, 2
    assert np.allclose(level.affine, AFFINE @ covers)


def test_each_level_of_labels_has_its_affine_in_patches_of_one_size():
    augment = suture.monai.Augmentd(st.Pipeline(image=[st.random_crop(size=4)], seg=st.labels(levels=(.5,))), seed=1, id_key="case")
    made = augment(item())
    full, level = made["seg"]
    assert tuple(level.shape) == (1, 2, 2, 2) and np.allclose(full.affine, made["image"].affine)
    covers = np.diag([2, 2, 2, 1.])
    covers[:3, 3] = .5
    assert np.allclose(level.affine, full.affine @ covers)


def test_draws_that_repeat_without_an_epoch_are_told():
    pipeline = st.Pipeline(image=[st.random_crop(size=4)], seg=st.labels())
    augment = suture.monai.Augmentd(pipeline, seed=1, id_key="case")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for training in (True, False, False):
            augment(item("a"), training=training)
    with pytest.warns(UserWarning, match="its draws repeat. Call set_epoch at the start of each epoch"):
        augment(item("a"))


def test_a_chain_has_the_voxels_of_monais_transforms():
    """Each followed by its neighbor there, all at once here; places in space as well."""
    one = monai.transforms
    theirs = one.Compose([
        one.ScaleIntensityRanged("image", a_min=-1, a_max=2, b_min=0, b_max=4, clip=True),
        one.SpatialPadd(["image", "seg"], (16, 10, 11)), one.CenterSpatialCropd(["image", "seg"], (13, 9, 10)),
        one.Flipd(["image", "seg"], spatial_axis=1), one.Rotate90d(["image", "seg"], k=1, spatial_axes=(0, 1))])(item())
    pipeline = st.Pipeline(image=[st.scale_intensity(a_min=-1, a_max=2, b_min=0, b_max=4, clip=True),
                                  st.pad_to(size=dict(x=16, y=10, z=11)), st.center_crop(size=dict(x=13, y=9, z=10)),
                                  st.flip(axes=dict(y=True)), st.rot90(axes=("x", "y"), quarter_turns=1)], seg=st.labels())
    ours = suture.monai.Augmentd(pipeline, seed=1, id_key="case")(item())
    for key in ("image", "seg"):
        assert ours[key].shape == theirs[key].shape == (1, 9, 13, 10)
        assert np.allclose(ours[key].affine, theirs[key].affine, atol=1e-9)
    assert torch.equal(ours["seg"].as_tensor(), theirs["seg"].as_tensor().to(torch.int32))
    assert torch.allclose(ours["image"].as_tensor(), theirs["image"].as_tensor(), rtol=0, atol=4e-7)


def test_spacing_is_that_of_spacingd():
    ours = suture.monai.Augmentd(st.Pipeline(image=[st.resample(spacing_mm=dict(x=1.1, y=.8, z=3), map="origin_preserving"),
                                                    st.sampling(border="edge")]), seed=1, id_key="case")(item())
    theirs = monai.transforms.Spacingd("image", (1.1, .8, 3), mode="bilinear", padding_mode="border", dtype=np.float64)(item())
    assert ours["image"].shape == theirs["image"].shape and np.allclose(ours["image"].affine, theirs["image"].affine)
    assert torch.allclose(ours["image"].as_tensor(), theirs["image"].as_tensor().float(), rtol=0, atol=2e-5)


EXACT = st.Pipeline(image=[st.random_flip(), st.random_crop(size=dict(x=9, y=8, z=7))], seg=st.labels())


def loaded(names, workers, augment):
    data = monai.data.Dataset([item(name) for name in names], monai.transforms.Compose([augment]))
    return monai.data.DataLoader(data, batch_size=2, num_workers=workers, collate_fn=suture.monai.ragged_collate,
                                 timeout=120 if workers else 0)


def test_workers_draw_what_the_parent_would():
    augment = suture.monai.Augmentd(EXACT, seed=1, id_key="case")
    here, there = (list(loaded("abcd", workers, augment)) for workers in (0, 2))
    for one, other in zip(here, there):
        assert one["case"] == other["case"]
        assert all(torch.equal(a.as_tensor(), b.as_tensor()) for a, b in zip(one["image"], other["image"]))
    assert len({st.digest(image.numpy()) for batch in here for image in batch["image"]}) == 4


def test_invertd_brings_back_what_was_cut_out():
    one = monai.transforms
    augment = suture.monai.Augmentd(EXACT, seed=1, id_key="case")
    turn = one.Orientationd(["image", "seg"], axcodes="RAS", labels=(("L", "R"), ("P", "A"), ("I", "S")))
    before = one.Compose([turn, augment])
    batch = augment(suture.monai.ragged_collate([item("b"), item("c")]))
    together = [before(item("a")), *({key: batch[key][i] for key in ("image", "seg", "case")} for i in range(2))]
    for made, transform in zip(together, (before, augment, augment)):
        assert [op["class"] for op in made["image"].applied_operations][-1] == "Augmentd"
        made["pred"] = made["image"].clone() * 2
        made["mask"] = made["seg"].clone()
        back = one.Invertd(["pred", "mask"], transform, orig_keys=["image", "seg"], nearest_interp=[False, True])(made)
        assert back["pred"].shape == (1, 14, 12, 10) and np.allclose(back["pred"].affine, AFFINE)
        seen = back["pred"].as_tensor() != 0
        assert seen.sum() == 9 * 8 * 7
        assert torch.equal(back["pred"].as_tensor()[seen], 2 * torch.from_numpy(SCAN)[seen])
        assert back["mask"].dtype == torch.int32
        assert torch.equal(back["mask"].as_tensor()[seen], torch.from_numpy(SCAN > 0).int()[seen])


def test_a_patch_that_labels_chose_is_not_brought_back():
    by_class = st.Pipeline(image=[st.crop_by_class(size=6, labels="seg", ratios=[1, 1])], seg=st.labels())
    augment = suture.monai.Augmentd(by_class, seed=1, id_key="case")
    made = augment(item())
    with pytest.raises(st.Error, match="crop_by_class chose its patches by labels, which are not kept"):
        augment.inverse(made)
    back = augment.inverse(augment(item(), training=False))
    assert back["image"].shape == back["seg"].shape == (1, 14, 12, 10)


DEGREES = {"about axis 0": (20., 0, 0), "about axis 1": (0, -35., 0), "about axis 2": (0, 0, 20.), "all three": (20., 10., -15.)}


@pytest.mark.parametrize("degrees", DEGREES.values(), ids=DEGREES)
@pytest.mark.parametrize("axes", ["zyx", "xyz"])
def test_affine_is_that_of_affine_in_either_order_of_axes(axes, degrees):
    """MONAI counts the axes of the array, so the same tuples mean the same for an array in either order."""
    scale, shift, shear = (1.1, .9, 1.2), (1., -2., .5), (0, .2, 0, 0, 0, 0)  # MONAI 1.6 multiplies several shears
    theirs = monai.transforms.Affine(rotate_params=[float(v) for v in np.radians(degrees)], scale_params=scale, translate_params=shift,
                                     shear_params=shear, padding_mode="zeros", image_only=True)(torch.from_numpy(SCAN))[0].numpy()
    pipeline = st.Pipeline(image=[st.affine(rotate_deg=degrees, scale=scale, translate=shift, shear=shear, convention="monai"),
                                  st.sampling()])
    ours = np.asarray(pipeline({"image": [st.Volume(SCAN[0], axes=axes)]})["image"][0].array)
    assert np.abs(ours - theirs).max() < 2e-5 * np.abs(SCAN).max()  # coordinates in float there
    drawn = st.Pipeline(image=[st.random_affine(rotate_deg=tuple((d, d) for d in degrees), scale=tuple((s, s) for s in scale),
                                                isotropic_scale=False, translate=tuple((t, t) for t in shift), convention="monai"),
                               st.sampling()])
    plain = st.Pipeline(image=[st.affine(rotate_deg=degrees, scale=scale, translate=shift, convention="monai"), st.sampling()])
    one, other = (np.asarray(p({"image": [st.Volume(SCAN[0], axes=axes)], "id": [1]}, seed=1)["image"][0].array) for p in (drawn, plain))
    assert np.abs(one - other).max() < 1e-5  # ranges are float, numbers double


def test_affine_in_a_plane_is_that_of_affine():
    x = torch.from_numpy(SCAN[:, :, :, 0].copy())
    theirs = monai.transforms.Affine(rotate_params=.4, padding_mode="zeros", image_only=True)(x)[0].numpy()
    for axes in ("yx", "xy"):
        pipeline = st.Pipeline(image=[st.affine(rotate_deg=dict(z=np.degrees(.4)), convention="monai"), st.sampling()])
        ours = np.asarray(pipeline({"image": [st.Volume(x[0].numpy(), axes=axes)]})["image"][0].array)
        assert np.abs(ours - theirs).max() < 2e-5 * np.abs(SCAN).max()


def oblique(rounded):
    """The affine of an oblique scan: orthogonal to the last bit that double has, or as a file of floats has it."""
    from math import cos, sin

    a, b = .2, -.3
    turn = np.array([[1, 0, 0], [0, cos(a), -sin(a)], [0, sin(a), cos(a)]]) @ np.array([[cos(b), 0, sin(b)], [0, 1, 0], [-sin(b), 0, cos(b)]])
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = turn @ np.diag([.91, .91, 3.]), (-120, -112, -51)
    return affine.astype(np.float32).astype(np.float64) if rounded else affine


PIXDIM = (1.1, .8, 1.5)


def spaced(affine):
    from monai.data import MetaTensor

    theirs = monai.transforms.Spacingd("image", PIXDIM, mode="bilinear", padding_mode="border", dtype=np.float64)(
        {"image": MetaTensor(torch.from_numpy(SCAN), affine=torch.from_numpy(affine))})["image"]
    chain = [st.resample(spacing_mm=dict(zip("xyz", PIXDIM)), map="origin_preserving"), st.sampling(border="edge")]
    ours = st.Pipeline(image=chain)({"image": [st.Volume(SCAN, axes="xyz", affine_ras=affine)]})["image"][0]
    return theirs, ours


def test_spacing_of_an_oblique_scan_is_that_of_spacingd_where_its_affine_is_exact():
    theirs, ours = spaced(oblique(rounded=False))
    assert ours.array.shape == theirs.shape and np.allclose(ours.affine_ras, theirs.affine.numpy(), atol=1e-9)
    assert np.abs(np.asarray(ours) - theirs.numpy()).max() < 2e-5


def test_spacing_of_an_oblique_scan_whose_affine_is_rounded_stands_as_the_page_says():
    """MONAI then lets the middles meet; suture keeps the first voxel where it stands. resample_to takes MONAI's grid."""
    affine = oblique(rounded=True)
    theirs, ours = spaced(affine)
    assert ours.array.shape == theirs.shape
    assert np.allclose(ours.affine_ras[:3, 3], affine[:3, 3], atol=1e-9)
    made, seen = theirs.affine.numpy(), np.array(theirs.shape[1:])
    # The index n / 2 of both grids is one place.
    assert np.allclose(made @ [*(seen / 2), 1], affine @ [*(np.array(SCAN.shape[1:]) / 2), 1], atol=1e-4)
    away = np.linalg.solve(made[:3, :3], ours.affine_ras[:3, 3] - made[:3, 3])
    assert np.abs(away).max() > .1  # voxels
    grid = st.Volume(np.zeros(theirs.shape[1:], np.uint8), axes="xyz", affine_ras=made).grid
    back = st.Pipeline(image=[st.resample_to(target=grid), st.sampling(border="edge")])({"image": [st.Volume(SCAN, axes="xyz", affine_ras=affine)]})
    assert np.abs(np.asarray(back["image"][0]) - theirs.numpy()).max() < 2e-5


def test_a_window_stands_where_compose_has_it(root):
    """docs/from-monai.md: behind the resampling; to the left of it rims are another picture."""
    one = monai.transforms
    theirs = one.Compose([one.Spacingd("image", (1.1, .8, 3), mode="bilinear", padding_mode="border", dtype=np.float64),
                          one.ScaleIntensityRanged("image", a_min=-1, a_max=2, b_min=0, b_max=1, clip=True)])(item())["image"].numpy()
    window = st.scale_intensity(a_min=-1, a_max=2, b_min=0, b_max=1, clip=True)
    geometry = [st.resample(spacing_mm=dict(x=1.1, y=.8, z=3), map="origin_preserving"), st.sampling(border="edge")]
    scan = st.Volume(SCAN, axes="xyz", affine_ras=AFFINE)
    behind, before = (np.asarray(st.Pipeline(image=chain)({"image": [scan]})["image"][0]) for chain in ([*geometry, window], [window, *geometry]))
    assert np.abs(behind - theirs).max() < 1e-5
    assert np.abs(before - theirs).max() > .05
    page = (root / "docs/from-monai.md").read_text()
    ours = page.split("# suture\n")[1].split("```")[0]
    assert ours.index("*geometry") < ours.index("st.scale_intensity")


def test_labels_halfway_between_two_voxels_are_those_of_monai(root):
    """docs/from-monai.md: with nearest_half_even; every second voxel of y lies halfway, and nearest rounds it up."""
    organs = np.random.default_rng(3).integers(0, 50, (6, 16, 7), dtype=np.uint8)
    affine = np.diag([1.5, 1, 2.5, 1])
    theirs = monai.transforms.Spacing((1.5, 1.5, 2), mode="nearest", dtype=np.float64)(monai.data.MetaTensor(organs[None], affine=affine)).numpy()[0]
    geometry = [st.resample(spacing_mm=dict(x=1.5, y=1.5, z=2), map="origin_preserving")]
    made = []
    for rule in ("nearest_half_even", "nearest"):
        pipeline = st.Pipeline(image=[*geometry, st.sampling(border="edge", labels=rule)], seg=st.labels())
        volume = st.Volume(organs, axes="xyz", affine_ras=affine)
        made.append(np.asarray(pipeline({"image": [volume], "seg": [volume]})["seg"][0].array))
    assert np.array_equal(made[0], theirs) and not np.array_equal(made[1], theirs)
    assert "nearest_half_even" in (root / "docs/from-monai.md").read_text()


def test_validation_has_no_chance_and_a_wrong_key_is_named():
    pipeline = st.Pipeline(image=[st.random_crop(size=4)], seg=st.labels())
    validate = suture.monai.Augmentd(pipeline, seed=1, id_key="case", training=False)
    assert torch.equal(monai.transforms.Compose([validate])(item())["image"].as_tensor(),
                       suture.monai.Augmentd(pipeline, seed=7, id_key="case")(item("b"), training=False)["image"].as_tensor())
    with pytest.raises(st.Error, match="Augmentd: id_key: expected a key of the data, image, seg, case, got 'name'"):
        suture.monai.Augmentd(pipeline, seed=1, id_key="name")(item())
    with pytest.raises(st.Error, match="Augmentd: keys: expected a key of the data, image, case, got 'seg'"):
        suture.monai.Augmentd(pipeline, seed=1, id_key="case")({key: value for key, value in item().items() if key != "seg"})
