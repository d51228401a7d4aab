# SPDX-License-Identifier: Apache-2.0
"""Steps, epochs, ranks and resumption; records and their replay."""
import copy
import json
import multiprocessing
import pickle

import numpy as np
import pytest

import suture as st
from test_pipeline import BATCH, SMALL

PLAIN = {k: v for k, v in BATCH.items() if k != "id"}


def digests(out):
    return tuple(st.digest(v) for v in out["image"])


def test_ranks_and_steps_all_differ_without_ids():
    seen = set()
    for rank in range(2):
        aug = st.Augment(SMALL, seed=1, rank=rank, world=2)
        for _ in range(3):
            seen.add(digests(aug(PLAIN)))
    assert len(seen) == 6


def test_goes_on_at_a_step_to_the_same_bits():
    aug = st.Augment(SMALL, seed=4)
    aug.set_epoch(2)
    for _ in range(3):
        aug(PLAIN)
    state = json.loads(json.dumps(aug.state_dict()))
    expected = digests(aug(PLAIN))
    other = st.Augment(SMALL, seed=0)
    other.load_state_dict(state)
    assert digests(other(PLAIN)) == expected and state == {"seed": 4, "epoch": 2, "step": 3}
    again = copy.deepcopy(other)
    other.step = again.step = 3
    assert digests(again(PLAIN)) == digests(pickle.loads(pickle.dumps(other))(PLAIN)) == expected


def test_resumes_at_step_37():
    aug = st.Augment(SMALL, seed=4, rank=1, world=2)
    seen = [digests(aug(PLAIN)) for _ in range(38)]
    other = st.Augment(SMALL, seed=4, rank=1, world=2)
    other.load_state_dict({"seed": 4, "epoch": 0, "step": 37})
    assert digests(other(PLAIN)) == seen[37] and len(set(seen)) == 38


def test_evaluation_does_not_stick_and_counts_no_step():
    aug = st.Augment(SMALL, seed=4)
    a = digests(aug(BATCH, training=False))
    assert aug.step == 0 and digests(aug(BATCH)) != a and aug.step == 1


def _epochs(aug, ask, tell):
    for _ in iter(ask.get, None):
        tell.put(digests(aug(BATCH)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_that_live_on_get_new_epochs(method):
    context = multiprocessing.get_context(method)
    aug = st.Augment(SMALL, seed=1)
    ask, tell = context.Queue(), context.Queue()
    worker = context.Process(target=_epochs, args=(aug, ask, tell))
    worker.start()
    seen = []
    for epoch in (0, 1):
        aug.set_epoch(epoch)
        ask.put("batch")
        seen.append(tell.get(timeout=60))
    ask.put(None)
    worker.join(60)
    assert seen[0] != seen[1]
    for epoch in (0, 1):
        aug.set_epoch(epoch)
        assert digests(aug(BATCH)) == seen[epoch]


def test_a_record_is_replayed_and_what_differs_is_refused(tmp_path):
    plan = SMALL.plan(BATCH, seed=9, epoch=1)
    out = plan.run()
    record = plan.record(out)
    record.save(tmp_path / "step.json")
    again = st.replay(tmp_path / "step.json", BATCH, verify=True)
    assert np.array_equal(again["image"], out["image"])
    assert record["drawn"]["image"][0][0]["name"] == "random_affine" and record["ids"] == plan.ids
    changed = st.Pipeline(image=[st.window(center=41, width=400), *SMALL.images["image"][1:]], seg=st.labels())
    with pytest.raises(st.Error, match=r"another pipeline: roles.image\[0\].center is 41.0 here and 40.0 in the record"):
        st.replay(record, BATCH, verify=True, pipeline=changed)
    other = {**BATCH, "image": [s + 1 for s in BATCH["image"]]}
    with pytest.raises(st.Error, match="image: digests of what goes in"):
        st.replay(record, other, verify=True)
    edited = json.loads(json.dumps(record))
    edited["drawn"]["image"][0][1]["parameters"]["start"][0] += 1
    with pytest.raises(st.Error, match="drawn: image"):
        st.replay(edited, BATCH, verify=True)
