# SPDX-License-Identifier: Apache-2.0
"""Tensors, loaders and torch.compile."""
import numpy as np
import pytest
from conftest import library

pytestmark = pytest.mark.torch
torch = library("torch", "2.4")

import suture as st  # noqa: E402
import suture.torch  # noqa: E402
from test_pipeline import BATCH, MAPS, SCANS, SMALL  # noqa: E402

STACKED = {"image": np.stack([s[:, :9, :11, :12] for s in SCANS]), "seg": np.stack([m[:, :9, :11, :12] for m in MAPS])}


def tensors(batch):
    return {k: torch.from_numpy(v) for k, v in batch.items()}


def test_tensors_get_the_bits_of_arrays():
    here = SMALL({**STACKED, "id": [1, 2, 3]}, seed=1)
    out = SMALL({**tensors(STACKED), "id": [1, 2, 3]}, seed=1)
    assert isinstance(out["image"], torch.Tensor) and np.array_equal(out["image"].numpy(), here["image"])
    assert np.array_equal(out["seg"].numpy(), here["seg"])
    with pytest.raises(st.Error, match="not differentiable; pass x.detach"):
        SMALL({**tensors(STACKED), "image": torch.zeros(3, 1, 9, 11, 12, requires_grad=True), "id": [1, 2, 3]})


def test_the_operator_passes_opcheck_and_is_compiled_once_for_five_epochs():
    aug = suture.torch.Augment(SMALL, seed=1)
    batch = tensors(STACKED)
    state = aug.state_of(3)
    torch.library.opcheck(torch.ops.suture.augment.default, ([batch["image"]], [batch["seg"]], state, aug._number))
    graphs = []

    def count(module, _):
        graphs.append(module)
        return module.forward

    torch._dynamo.reset()
    step = torch.compile(lambda b, s: aug.run(b, s)["image"] * 2, fullgraph=True, backend=count)
    for epoch in range(5):
        aug.set_epoch(epoch)
        state = aug.state_of(3)
        assert torch.equal(step(batch, state), aug.run(batch, state)["image"] * 2)
    assert len(graphs) == 1


def test_flushed_denormals_change_no_bit():
    expected = SMALL({**tensors(STACKED), "id": [1, 2, 3]}, seed=1)["image"]
    small = tensors(STACKED) | {"id": [1, 2, 3]}
    assert torch.set_flush_denormal(True)
    try:
        flushed = SMALL(small, seed=1)["image"]
        still = (torch.tensor([1e-39]) * 1.0).item() == 0.0
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(flushed, expected) and still


class Cases(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return {"image": torch.from_numpy(SCANS[i]), "seg": torch.from_numpy(MAPS[i])}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loaders_keep_ids_on_the_host(method):
    loader = torch.utils.data.DataLoader(suture.torch.with_ids(Cases()), 3, num_workers=1, multiprocessing_context=method,
                                         collate_fn=suture.torch.ragged_collate)
    batch = suture.torch.move(next(iter(loader)), "cpu")
    assert batch["id"] == ["0", "1", "2"]
    out = suture.torch.Augment(SMALL, seed=1)(batch)
    expected = SMALL({**BATCH, "id": batch["id"]}, seed=1)
    assert np.array_equal(out["image"].numpy(), expected["image"])
