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


FLIPPED = st.Pipeline(image=[st.random_flip(probability=.5)])


@pytest.mark.parametrize("alone", [lambda volume, path: volume, lambda volume, path: path, lambda volume, path: volume.to_nibabel()])
def test_a_volume_alone_is_one_sample_without_ids(alone, tmp_path):
    pytest.importorskip("nibabel")
    volume = st.Volume(np.arange(120, dtype=np.float32).reshape(4, 5, 6), axes="xyz", spacing=2)
    volume.save(tmp_path / "scan.nii")
    image = alone(volume, tmp_path / "scan.nii")
    aug = st.Augment(FLIPPED, seed=1, rank=1, world=2)
    for step in range(3):
        made, = aug({"image": image})["image"]
        expected, = FLIPPED({"image": [volume], "id": [2 * step + 1]}, seed=1, epoch=0)["image"]
        assert np.array_equal(made.array, expected.array) and made.grid == expected.grid


def test_a_batch_without_ids_that_lacks_a_key_is_refused():
    aug = st.Augment(SMALL, seed=1)
    for batch in ({"seg": PLAIN["seg"]}, {}):
        with pytest.raises(st.Error, match="^suture: batch: expected the key 'image', as the pipeline has it, got "):
            aug(batch)
    with pytest.raises(st.Error, match="the batch is a list, the pipeline has image, seg; give a dict"):
        aug(PLAIN["image"])
    assert aug.step == 0


def test_a_short_last_batch_has_ids_of_its_own():
    aug = st.Augment(SMALL, seed=1)
    ids = [aug.places(count, step) for step, count in enumerate((4, 4, 2))]
    assert ids == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    other = st.Augment(SMALL, seed=1)
    other.load_state_dict(aug.state_dict())
    assert other.places(2, 2) == [8, 9]


def test_goes_on_at_a_step_to_the_same_bits():
    aug = st.Augment(SMALL, seed=4)
    aug.set_epoch(2)
    for _ in range(3):
        aug(PLAIN)
    state = json.loads(json.dumps(aug.state_dict()))
    expected = digests(aug(PLAIN))
    other = st.Augment(SMALL, seed=0)
    other.load_state_dict(state)
    assert digests(other(PLAIN)) == expected and state == {"seed": 4, "epoch": 2, "step": 3, "batch": len(PLAIN["image"])}
    again = copy.deepcopy(other)
    other.step = again.step = 3
    assert digests(again(PLAIN)) == digests(pickle.loads(pickle.dumps(other))(PLAIN)) == expected


def test_a_state_of_other_members_is_refused():
    with pytest.raises(st.Error, match=r"expected the members seed, epoch, step and batch, got \[3, 'seed'\]"):
        st.Augment(SMALL, seed=4).load_state_dict({"seed": 4, 3: 1})


@pytest.mark.parametrize("change, words", [
    ({"step": "x"}, "state: step: expected a whole number, got 'x'"), ({"step": None}, "state: step: expected a whole number, got None"),
    ({"step": -1}, "state: step: expected 0 or more, got -1"), ({"batch": 1.5}, "state: batch: expected a whole number, got 1.5"),
    ({"batch": -2}, "state: batch: expected 0 or more, got -2"), ({"epoch": 1 << 32}, "state: epoch: expected 0 .. 2"),
    ({"seed": np.array([1, 2])}, "state: seed: expected a whole number")])
def test_a_state_that_is_refused_changes_nothing(change, words):
    aug = st.Augment(SMALL, seed=4)
    aug.set_epoch(2)
    aug(PLAIN)
    before = aug.state_dict()
    with pytest.raises(st.Error, match=f"suture: Augment: {words}"):
        aug.load_state_dict({"seed": 9, "epoch": 8, "step": 7, "batch": 6, **change})
    assert aug.state_dict() == before


@pytest.mark.parametrize("state", [None, 3, ["seed", "epoch", "step", "batch"]])
def test_a_state_that_is_no_mapping_is_refused(state):
    with pytest.raises(st.Error, match="expected the members seed, epoch, step and batch, got"):
        st.Augment(SMALL, seed=4).load_state_dict(state)


def test_numbers_without_axes_are_whole_numbers():
    for number in (np.int64(3), np.array(3), np.uint8(3)):
        assert st.Augment(SMALL, seed=number).state_dict() == st.Augment(SMALL, seed=3).state_dict()
        assert st.sample_id(number) == 3 and st.sample_id("a", draw=number) == st.sample_id("a", draw=3)


@pytest.mark.torch
def test_tensors_without_axes_are_whole_numbers():
    torch = pytest.importorskip("torch")
    assert st.Augment(SMALL, seed=torch.tensor(3)).seed == 3 and type(st.Augment(SMALL, seed=torch.tensor(3)).seed) is int
    for wrong in (torch.tensor([3, 4]), torch.tensor(.5)):
        with pytest.raises(st.Error, match="suture: Augment: seed: expected a whole number, got tensor"):
            st.Augment(SMALL, seed=wrong)
        with pytest.raises(st.Error, match="suture: sample_id: "):
            st.sample_id(wrong)


def test_resumes_at_step_37():
    aug = st.Augment(SMALL, seed=4, rank=1, world=2)
    seen = [digests(aug(PLAIN)) for _ in range(38)]
    other = st.Augment(SMALL, seed=4, rank=1, world=2)
    other.load_state_dict({"seed": 4, "epoch": 0, "step": 37, "batch": 0})
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


def test_ids_fit_what_a_collate_makes():
    ids = [st.sample_id(key, draw=n) for key in ("a", "case 17", "é", 3) for n in range(40)]
    assert len(set(ids)) == len(ids) and max(ids) < 1 << 63
    assert np.array(ids).dtype == np.int64  # what every collate makes of them
    # SHA-256 of "a" begins with ca978112ca1bbdca; its first 8 bytes, lowest first, without the highest bit.
    assert st.sample_id("a") == 0xCABD1BCA128197CA & (1 << 63) - 1 and st.sample_id(2**64 - 1) == 2**64 - 1
    assert st.sample_id("caf\udce9") != st.sample_id("cafe")  # a name of a file that is no UTF-8
    for draw in (1.5, "1", -1):
        with pytest.raises(st.Error, match="draw"):
            st.sample_id("a", draw=draw)
    pipeline = st.Pipeline(image=[st.gaussian_noise(sigma=1)])
    images = [np.zeros((1, 4, 4, 4), np.float32)] * 2
    with pytest.raises(st.Error, match="id: expected strings or whole numbers, got bytes"):
        pipeline({"image": images, "id": b"ab"}, seed=1, epoch=0)
    one = [pipeline({"image": images[:1], "id": given}, seed=1, epoch=0)["image"] for given in (17, np.int64(17))]
    assert np.array_equal(*map(np.asarray, one))

    def noise(given):
        return np.stack(pipeline({"image": images, "id": given}, seed=1)["image"])

    assert np.array_equal(noise(["a", "b"]), noise(np.array([st.sample_id("a"), st.sample_id("b")])))
    for draw in (-1, 2**64):
        with pytest.raises(st.Error, match=f"sample_id: draw: expected 0 .. 2.64 - 1, got {draw}"):
            st.sample_id("a", draw=draw)


@pytest.mark.torch
def test_ids_are_collated():
    from torch.utils.data import DataLoader

    cases = [{"id": st.sample_id(f"case {i}", draw=n)} for i in range(8) for n in range(2)]
    seen = [int(i) for batch in DataLoader(cases, batch_size=4) for i in batch["id"]]
    assert seen == [case["id"] for case in cases]


def _refused(aug, tell):
    try:
        tell.put(digests(aug(PLAIN)))
    except st.Error as problem:
        tell.put(str(problem))
    tell.put(len(aug(PLAIN, training=False)["image"]))
    tell.put(digests(aug(BATCH)))


def test_workers_do_not_count_for_themselves():
    context = multiprocessing.get_context("fork")
    aug, tell = st.Augment(SMALL, seed=1), context.Queue()
    here = digests(aug(BATCH))
    worker = context.Process(target=_refused, args=(aug, tell), daemon=True)  # as the workers of a DataLoader are
    worker.start()
    said, evaluated, with_ids = (tell.get(timeout=60) for _ in range(3))
    worker.join(60)
    assert said.startswith("suture: Augment: id: expected ids in a worker process, got none") and evaluated == 3
    assert with_ids == here


@pytest.mark.torch
def test_a_loader_whose_batches_have_no_ids_is_told_so():
    import torch
    from torch.utils.data import DataLoader

    import suture.torch

    aug = suture.torch.Augment(st.Pipeline(image=[st.random_crop(size=4)]), seed=7)
    scans = [torch.zeros(1, 8, 8, 8)] * 4

    def collate(items):
        return aug({"image": torch.stack(items)})

    assert len(list(DataLoader(scans, collate_fn=collate))) == 4 and aug.step == 4
    with pytest.raises(st.Error, match="expected ids in a worker process"):
        list(DataLoader(scans, collate_fn=collate, num_workers=2, multiprocessing_context="fork", timeout=60))


def test_an_epoch_that_nobody_names_is_said_once():
    import warnings

    def warned(call):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        return [str(w.message) for w in seen if "epoch" in str(w.message)]

    def fresh(*more):
        return st.Pipeline(image=[st.random_crop(size=4), *more], seg=st.labels())

    pipeline = fresh()
    first, second = ({key: BATCH[key][:1] for key in BATCH}, {key: BATCH[key][1:] for key in BATCH})
    assert not warned(lambda: (pipeline(first), pipeline(second)))
    # The next epoch, in another order; what is said once is not said again.
    assert [w.split(". ")[1] for w in warned(lambda: [pipeline({**BATCH}) for _ in range(3)])] == [
        "Pass epoch=, or use suture.Augment and its set_epoch"]
    for settings in (dict(epoch=0), dict(training=False)):
        pipeline = fresh()
        assert not warned(lambda: [pipeline(BATCH, **settings) for _ in range(3)])
    pipeline = fresh()
    assert not warned(lambda: [pipeline(BATCH, seed=seed) for seed in range(3)])
    plain = st.Pipeline(image=[st.center_crop(size=4)])
    assert not warned(lambda: [plain({"image": BATCH["image"], "id": BATCH["id"]}) for _ in range(3)])
    aug = st.Augment(fresh(), seed=1)
    assert [w.split(". ")[1] for w in warned(lambda: [aug(BATCH) for _ in range(4)])] == ["Call set_epoch at the start of each epoch"]
    aug = st.Augment(fresh(), seed=1)
    aug.set_epoch(0)
    assert not warned(lambda: [aug(BATCH) for _ in range(3)])
    aug = pickle.loads(pickle.dumps(copy.deepcopy(st.Augment(fresh(), seed=1))))  # not set there either
    assert len(warned(lambda: [aug(BATCH) for _ in range(4)])) == 1
    assert not warned(lambda: [st.Augment(fresh(), seed=1)(PLAIN) for _ in range(3)])  # without ids steps are counted


def test_a_step_that_failed_is_not_counted():
    aug = st.Augment(SMALL, seed=1)
    expected = digests(aug(PLAIN))
    other = st.Augment(SMALL, seed=1)
    with pytest.raises(st.Error):
        other({**PLAIN, "seg": PLAIN["seg"][:1]})
    assert other.step == 0 and digests(other(PLAIN)) == expected


def test_eight_threads_count_every_step_once():
    """Each of the steps is made by one thread, whichever, with the bits that it has alone."""
    from concurrent.futures import ThreadPoolExecutor

    alone = st.Augment(SMALL, seed=1, threads=1)
    expected = [digests(alone(PLAIN)) for _ in range(64)]
    assert len(set(expected)) == 64
    together = st.Augment(SMALL, seed=1, threads=1)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: digests(together(PLAIN)), range(64)))
    assert sorted(made) == sorted(expected) and together.step == 64
    with ThreadPoolExecutor(8) as pool:  # by ids
        assert set(pool.map(lambda _: digests(together(BATCH)), range(32))) == {digests(alone(BATCH))}


def test_eight_threads_read_arrays_of_many_shapes():
    """What is kept of shapes, strides and types is shared by threads."""
    from concurrent.futures import ThreadPoolExecutor

    from suture.arrays import batch, dlpack

    def records(n):
        arrays = [np.zeros((1, n % 7 + 1, n % 11 + 1, n % 13 + 1), kind) for kind in (np.int16,) * 2]
        items = batch.Items(arrays, "image", None, None)
        grid = batch.unpack_grids(items.records, 2)[0]
        return items.count, grid.extents, arrays[0].shape[1:]

    kept = batch._MOST_KEPT
    batch._MOST_KEPT = 16  # so that it is emptied all the time
    try:
        with ThreadPoolExecutor(8) as pool:
            for count, extents, shape in pool.map(records, range(4000)):
                assert count == 2 and extents == shape
    finally:
        batch._MOST_KEPT = kept
    assert len(batch._shapes) <= 16 + 8 and len(dlpack._steps) <= 4096 + 8
