# SPDX-License-Identifier: Apache-2.0
"""In MONAI's Compose, and beside its transforms."""
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
