# SPDX-License-Identifier: Apache-2.0
"""In MONAI's Compose, and beside its transforms."""
import numpy as np
import pytest
from conftest import library

pytestmark = pytest.mark.monai
torch = library("torch", "2.4")
monai = library("monai", "1.3")

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
            ours = suture.monai.Augmentd(st.Pipeline(image=[st.orient(x=code[0], y=code[1], z=code[2])]), seed=1, id_key="case")(item())
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
