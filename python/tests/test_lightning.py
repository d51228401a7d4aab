# SPDX-License-Identifier: Apache-2.0
"""Lightning: training is augmented, everything else is not, and a run goes on from a checkpoint."""
import multiprocessing
import os
import pickle
import types

import numpy as np
import pytest
from conftest import library

pytestmark = pytest.mark.lightning
torch = library("torch")
lightning = library("lightning.pytorch")

import suture as st  # noqa: E402
import suture.lightning  # noqa: E402
import suture.torch  # noqa: E402

SCANS = torch.from_numpy(np.random.default_rng(3).normal(size=(6, 1, 9, 11, 12)).astype(np.float32))
CHAIN = st.Pipeline(image=[st.window(center=0, width=2), st.random_affine(rotate_deg=20), st.random_crop(size=6)])


class Cases(torch.utils.data.Dataset):
    def __len__(self):
        return len(SCANS)

    def __getitem__(self, i):
        return {"image": SCANS[i], "id": f"case {i}"}


class Data(suture.lightning.AugmentedData, lightning.LightningDataModule):
    def __init__(self, ids=True, evaluated=False):
        super().__init__()
        self.augment = suture.torch.Augment(CHAIN, seed=42)
        self.ids, self.evaluated = ids, evaluated

    def _loader(self):
        def collate(items):
            batch = {"image": torch.stack([item["image"] for item in items])}
            return batch | {"id": [item["id"] for item in items]} if self.ids else batch

        return torch.utils.data.DataLoader(Cases(), batch_size=2, collate_fn=collate)

    def train_dataloader(self):
        return self._loader()

    def val_dataloader(self):
        return self._loader()

    def predict_dataloader(self):
        return self._loader()


class Model(lightning.LightningModule):
    """Notes what it is given."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.seen = []

    def training_step(self, batch, index):
        self.seen.append(("train", self.trainer.current_epoch, index, batch["image"].clone()))
        return (batch["image"] * self.weight).mean()

    def validation_step(self, batch, index):
        what = "check" if self.trainer.sanity_checking else "validate"
        self.seen.append((what, self.trainer.current_epoch, index, batch["image"].clone()))

    def predict_step(self, batch, index):
        return batch["image"].clone()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), .1)


def trainer(data, folder, epochs, **settings):
    return lightning.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False,
                             enable_model_summary=False, default_root_dir=folder, num_sanity_val_steps=1,
                             callbacks=[suture.lightning.AugmentState(data.augment)], **settings)


def test_training_is_augmented_and_nothing_else(tmp_path):
    data, model = Data(), Model()
    run = trainer(data, tmp_path, 2, enable_checkpointing=False)
    run.fit(model, data)
    assert [s[:3] for s in model.seen[:1]] == [("check", 0, 0)] and len(model.seen) == 1 + 2 * 6
    for what, epoch, index, image in model.seen:
        whole = SCANS[2 * index:2 * index + 2]
        if what == "train":
            ids = [f"case {2 * index}", f"case {2 * index + 1}"]
            assert torch.equal(image, CHAIN({"image": whole, "id": ids}, seed=42, epoch=epoch)["image"])
        else:
            assert torch.equal(image, whole)
    first, second = ([image for what, e, _, image in model.seen if what == "train" and e == epoch] for epoch in (0, 1))
    assert not any(torch.equal(a, b) for a, b in zip(first, second))
    assert torch.equal(torch.cat(run.predict(model, data)), SCANS)


def test_evaluation_by_the_same_pipeline_draws_nothing(tmp_path):
    data, model = Data(evaluated=True), Model()
    trainer(data, tmp_path, 1, enable_checkpointing=False).fit(model, data)
    for what, _, index, image in model.seen:
        if what != "train":
            whole = {"image": SCANS[2 * index:2 * index + 2]}
            assert torch.equal(image, CHAIN(whole, training=False)["image"])


def test_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path):
    whole, straight = Data(ids=False), Model()
    trainer(whole, tmp_path, 3, enable_checkpointing=False).fit(straight, whole)
    data, model = Data(ids=False), Model()
    run = trainer(data, tmp_path, 1, enable_checkpointing=False)
    run.fit(model, data)
    run.save_checkpoint(tmp_path / "one.ckpt")
    other, resumed = Data(ids=False), Model()
    trainer(other, tmp_path, 3, enable_checkpointing=False).fit(resumed, other, ckpt_path=tmp_path / "one.ckpt")
    assert other.augment.step == 9
    seen = [s for s in (*model.seen, *resumed.seen) if s[0] == "train"]
    expected = [s for s in straight.seen if s[0] == "train"]
    assert len(seen) == len(expected) == 9
    for ours, theirs in zip(seen, expected):
        assert ours[:3] == theirs[:3] and torch.equal(ours[3], theirs[3])


def test_a_rank_that_was_spawned_counts_its_own_steps(monkeypatch):
    """Lightning's ddp_spawn pickles what the parent made, and sets up its callbacks in every rank."""
    aug = pickle.loads(pickle.dumps(suture.torch.Augment(CHAIN, seed=42)))
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "the parent")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(st.Error, match="expected ids in a worker process"):
        aug.plan({"image": SCANS[:2]})
    suture.lightning.AugmentState(aug).setup(types.SimpleNamespace(global_rank=1, world_size=2), None, "fit")
    assert aug.plan({"image": SCANS[:2]}).ids == [2, 3]
