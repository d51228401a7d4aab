# SPDX-License-Identifier: Apache-2.0
"""Batches of a cohort: the bits of whole arrays in memory, whatever threads and ranks make them; and what goes wrong."""
import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import suture as st
import suture.feed
from suture.feed import Feed
from suture.feed.loading import told
from suture.feed.order import Order, share
from suture.feed.staging import MemoryShort, Staging, bytes_of, plain, rounded
from test_boxes import Recorded, volume

PIPELINE = st.Pipeline(image=[st.window(center=40, width=400), st.random_affine(rotate_deg=dict(z=20), scale=(.9, 1.1)),
                              st.random_crop(size=8), st.gaussian_noise(sigma=(0, .1), probability=.5)], seg=st.labels())
RNG = np.random.default_rng(23)
SCANS = {f"case_{i:02d}": RNG.integers(-200, 300, (12 + i % 3, 14 + i % 5, 13), dtype=np.int16) for i in range(11)}
MAPS = {name: (a > 100).astype(np.uint8) for name, a in SCANS.items()}
MEMORY = {name: {"image": volume(SCANS[name]), "labels": volume(MAPS[name])} for name in SCANS}


class Case:
    """A case as a store has them."""

    def __init__(self, name):
        self.name, self.fingerprint = name, {}
        self.arrays = {"image": Recorded(SCANS[name]), "labels": Recorded(MAPS[name])}

    def volume(self, member):
        return volume(self.arrays[member])


def lazy():
    return {name: Case(name) for name in SCANS}


def feed_of(cohort=MEMORY, pipeline=PIPELINE, **settings):
    return Feed(cohort, pipeline, **{"batch": 4, "seed": 42, "device": "numpy", "bar": False, "threads": 2, **settings})


def seen(feed, epochs):
    """Of every step the cases and the digests of what came out."""
    found = []
    for epoch in feed.epochs(epochs):
        for batch in epoch:
            found.append(facts(batch))
    return found


def facts(batch):
    return list(zip(batch["id"], [st.digest(a) for a in batch["image"]], [st.digest(a) for a in batch["seg"]]))


def expected(steps, size=11, batch=4, seed=42, training=True, draws=1, **order):
    """The same by the pipeline alone, on whole arrays, one batch after the other."""
    names, made = sorted(SCANS), []
    order = Order(size * draws, batch, seed, **order)
    for step in range(steps):
        places = order.at(step)
        chosen = [names[s // draws] for s in places.samples]
        ids = [st.sample_id(name, draw=int(d) * draws + int(s) % draws) for name, d, s in zip(chosen, places.draws, places.samples)]
        out = PIPELINE({"image": [volume(SCANS[n]) for n in chosen], "seg": [volume(MAPS[n]) for n in chosen]}, seed=seed, epoch=places.epoch,
                       ids=ids, training=training, same_ids=True)
        made.append(list(zip(chosen, [st.digest(a) for a in out["image"]], [st.digest(a) for a in out["seg"]])))
    return made


def threads_left():
    return [t.name for t in threading.enumerate() if t.name.startswith("suture-feed")]


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    gc.collect()
    assert threads_left() == []


# The same bits

@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_batches_are_those_of_the_pipeline(threads):
    with feed_of(threads=threads) as feed:
        assert seen(feed, 2) == expected(6) and len(feed) == 3
    with feed_of(lazy(), threads=threads, steps_per_epoch=5) as feed:
        found = seen(feed, 2)
    assert found == expected(10, steps_per_epoch=5)
    assert len({each[1] for step in found for each in step}) == 40  # no draw comes twice


@pytest.mark.parametrize("world", [1, 2, 3, 5, 8])
def test_ranks_make_the_batch_of_one(world):
    whole = expected(7, steps_per_epoch=7)
    parts = []
    for rank in range(world):
        with feed_of(rank=rank, world=world, steps_per_epoch=7) as feed:
            parts.append(seen(feed, 1))
            assert [len(step) for step in parts[-1]] == [len(share(4, rank, world))] * 7
    assert [[each for part in parts for each in part[step]] for step in range(7)] == whole


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5)])
def test_goes_on_in_the_middle_of_an_epoch_at_another_world(before, after):
    whole = expected(10, steps_per_epoch=5)
    states = []
    for rank in range(before):
        with feed_of(rank=rank, world=before, steps_per_epoch=5) as feed:
            for k, _ in enumerate(next(feed.epochs(2))):
                if k == 2:
                    states.append(feed.state_dict())
                    break
    assert all(state == states[0] and state["step"] == 3 for state in states)
    state = json.loads(json.dumps(states[0]))
    parts = []
    for rank in range(after):
        with feed_of(rank=rank, world=after, steps_per_epoch=5) as feed:
            feed.load_state_dict(state)
            parts.append(seen(feed, 2))
    assert [[each for part in parts for each in part[step]] for step in range(7)] == whole[3:]


def test_several_draws_of_each_case():
    with feed_of(draws=3) as feed:
        assert seen(feed, 1) == expected(9, draws=3) and len(feed) == 9


def test_an_epoch_that_is_left_early_is_over():
    with feed_of() as feed:
        found = []
        for epoch in feed.epochs(3):
            for batch in epoch:
                found.append(facts(batch))
                if epoch.number == 1:
                    break
    whole = expected(9)
    assert found == [*whole[:4], *whole[6:]]


def test_a_batch_that_runs_together_has_the_same_bits(monkeypatch):
    """As on a GPU, where a batch is one run."""
    monkeypatch.setattr(Feed, "together", lambda self: True)
    with feed_of() as feed:
        assert seen(feed, 1) == expected(3)
    with feed_of({**MEMORY, "case_03": {"image": volume(Broken(SCANS["case_03"])), "labels": volume(MAPS["case_03"])}}, on_error="leave_out") as feed:
        assert seen(feed, 1) == [[each for each in step if each[0] != "case_03"] for step in expected(3)]
        assert list(feed.statistics().left_out) == ["case_03"]


def test_a_pipeline_may_end_with_bfloat16():
    kind = pytest.importorskip("ml_dtypes").bfloat16
    given = [np.full((8, 8, 8), value, np.float32) for value in (1.0, 2.00390625)]  # the second lies between two values of bfloat16
    crop = st.Pipeline(image=[st.random_crop(size=4), st.cast("bfloat16")])
    with feed_of({f"case {k}": {"image": volume(a)} for k, a in enumerate(given)}, crop, batch=2, shuffle=False) as feed:
        batch = next(iter(feed))
    assert batch["image"].dtype == kind and batch["image"].shape == (2, 1, 4, 4, 4)
    assert [{float(v) for v in a.ravel()} for a in batch["image"]] == [{1.0}, {2.0}]


def test_reads_what_is_shown_and_little_of_it():
    cohort = lazy()
    with feed_of(cohort) as feed:
        seen(feed, 1)
    for case in cohort.values():
        for source in case.arrays.values():
            (low, high), = source.reads
            assert (np.subtract(high, low) <= 14).all() and np.prod(np.subtract(high, low)) < source.array.size


def test_samples_of_several_shapes_come_as_lists():
    pipeline = st.Pipeline(image=[st.invert()], seg=st.labels())
    with feed_of(pipeline=pipeline, training=False) as feed:
        batches = list(feed)
    assert [name for batch in batches for name in batch["id"]] == sorted(SCANS)
    for batch in batches:
        for name, image, seg in zip(batch["id"], batch["image"], batch["seg"]):
            assert isinstance(image, st.Volume) and np.array_equal(image.array, -SCANS[name].astype(np.float32)) or np.asarray(image).size
            assert np.array_equal(np.asarray(seg), MAPS[name]) and image.spacing == MEMORY[name]["image"].spacing


# Cases

def test_members_and_values_of_cases():
    pipeline = st.Pipeline(ct=[st.crop_at(size=4, starts=st.per_sample("from"))], seg=st.labels())
    cases = [{"id": name, "scan": volume(SCANS[name]), "seg": volume(MAPS[name]), "from": (i, 1, 2)} for i, name in enumerate(sorted(SCANS)[:3])]
    with feed_of(cases, pipeline, keys={"ct": "scan"}, training=False, batch=2) as feed:
        batches = list(feed)
    for i, name in enumerate(sorted(SCANS)[:3]):
        assert np.array_equal(batches[i // 2]["ct"][i % 2][0], SCANS[name][i:i + 4, 1:5, 2:6])
        assert np.array_equal(batches[i // 2]["seg"][i % 2][0], MAPS[name][i:i + 4, 1:5, 2:6])
    stored = lazy()
    with feed_of(stored, st.Pipeline(image=pipeline.images["ct"], seg=st.labels()), training=False, batch=11,
                 extra=lambda name, case: {"from": (0, len(name) - 7, 0)} if case is stored[name] else {}) as feed:
        batch, = feed
    assert np.array_equal(batch["image"][0, 0], SCANS["case_00"][:4, :4, :4])
    stored["case_05"].fingerprint = {"from": (1, 1, 1)}
    with feed_of(stored, st.Pipeline(image=pipeline.images["ct"], seg=st.labels()), training=False) as feed:
        with pytest.raises(st.Error, match="case 'case_00': feed: from: expected the case to have it"):
            list(feed)


def test_values_of_cases_with_slots():
    """Those of a class, and those of the base of a class without slots."""
    class Slotted:
        __slots__ = ("images", "start", "unset")

        def volume(self, member):
            return self.images[member]

    class Both(Slotted):
        pass

    pipeline = st.Pipeline(image=[st.crop_at(size=4, starts=st.per_sample("start"))], seg=st.labels())
    cohort = {}
    for i, (name, kind) in enumerate({"case_00": Slotted, "case_01": Both}.items()):
        case = cohort[name] = kind()
        case.images, case.start = {"image": volume(SCANS[name]), "labels": volume(MAPS[name])}, (i, 1, 2)
    with feed_of(cohort, pipeline, training=False) as feed:
        batch, = feed
    for i, name in enumerate(cohort):
        assert np.array_equal(batch["image"][i][0], SCANS[name][i:i + 4, 1:5, 2:6])
    with feed_of(cohort, st.Pipeline(image=[st.crop_at(size=4, starts=st.per_sample("unset"))], seg=st.labels()), training=False) as feed:
        with pytest.raises(st.Error, match="feed: unset: expected the case to have it"):
            list(feed)


@pytest.mark.parametrize(("settings", "words"), [
    (dict(cohort={}), "cohort: expected one case or more"), (dict(cohort=5), "cohort: expected a mapping"),
    (dict(cohort={3: {}}), "names of cases that are strings"), (dict(cohort={"a": {}, 3: {}}), "names of cases that are strings, got 3"),
    (dict(cohort=[{"id": "a"}, {"id": "a"}]), "cases of different names"),
    (dict(pipeline="crop"), "pipeline: expected a Pipeline"), (dict(batch=0), "batch: expected a whole number"),
    (dict(seed=-1), "seed: expected a whole number"), (dict(threads=0), "threads: expected a whole number from 1"),
    (dict(memory="4 parsecs"), "memory: expected bytes"), (dict(memory=0), "memory: expected bytes"), (dict(rank=0), "rank= and world= together"),
    (dict(rank=3, world=3), "rank: expected 0 .. 2, got 3"), (dict(on_error="ignore"), "on_error: expected 'raise' or 'leave_out'"),
    (dict(keys={"ct": "image"}), "keys: expected some of image, seg"), (dict(windows=st.sliding_window_grid), "windows: expected none in training"),
    (dict(steps_per_epoch=0), "steps_per_epoch: expected a whole number"), (dict(draws=0), "draws: expected a whole number"),
    (dict(pipeline=st.Pipeline(image=[st.invert()]), training=False, windows=st.sliding_window_grid), "windows: expected a pipeline that crops"),
    (dict(device="tpu9"), "device: ")])
def test_what_does_not_fit_is_told(settings, words):
    with pytest.raises(st.Error, match="suture: (feed|order): .*" + words.split(": ", 1)[-1]):
        feed_of(**settings)


def test_a_scan_of_unknown_spacing_is_not_resampled():
    cohort = {"a": {"image": st.Volume(np.zeros((9, 9, 9), np.int16), axes="zyx")}}
    with pytest.raises(st.Error, match="spacing"):
        next(iter(Feed(cohort, st.Pipeline(image=[st.resample(spacing_mm=2), st.random_crop(size=4)]), seed=1, batch=1)))


@pytest.mark.parametrize("name", ["a", "2", "image", "case"])
def test_a_case_is_named_also_if_its_name_is_in_the_message(name):
    array = np.zeros((2, 2, 2), np.float32)
    for bad, words in ((array, "expected a case with volume.member., or a dict of Volumes, got ndarray. Pass {'image': suture.Volume"),
                       ({"image": array, "labels": array}, "expected a Volume, which says its axes, got ndarray")):
        with feed_of({name: bad}) as feed, pytest.raises(st.Error, match=f"^suture: feed: case '{name}': feed: image: {words}"):
            next(iter(feed))


def test_a_case_that_lacks_something_is_told_with_its_name():
    for bad, words in (({"labels": volume(MAPS["case_00"])}, "image: expected the case to have 'image', got labels"),
                       ({"image": SCANS["case_00"], "labels": volume(MAPS["case_00"])}, "image: expected a Volume"),
                       ({"image": volume(SCANS["case_00"]), "labels": volume(MAPS["case_01"])}, "extents")):
        with feed_of({**MEMORY, "case_04": bad}) as feed, pytest.raises(st.Error, match=f"case 'case_04': .*{words}"):
            seen(feed, 1)


def test_the_environment_says_rank_and_world(monkeypatch, caplog):
    from suture.backend import notice

    monkeypatch.setattr(notice, "_said", set())
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    assert (feed_of().rank, feed_of().world) == (0, 1)
    monkeypatch.setenv("SLURM_PROCID", "2")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    assert (feed_of().rank, feed_of().world) == (2, 4)
    monkeypatch.setenv("SLURM_PROCID", "0")
    with pytest.raises(st.Error, match="suture: feed: rank: expected srun to start the 4 tasks of the Slurm job, got a process"):
        feed_of()  # as in a batch script, where one process would make a fourth
    assert feed_of(rank=0, world=1).world == 1
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "3")
    assert (feed_of().rank, feed_of().world) == (0, 3)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert (feed_of().rank, feed_of().world) == (1, 3) and feed_of(rank=0, world=2).world == 2
    assert not caplog.records
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    assert feed_of(rank=0, world=1).world == 1 and not caplog.records
    assert (feed_of().rank, feed_of().world) == (1, 3)
    assert [record.getMessage() for record in caplog.records] == [
        "suture: feed: this process makes only the share of rank 1 of 3, as RANK and WORLD_SIZE of the environment say. Pass rank=0, world=1 for a "
        "process alone"]
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(st.Error, match="RANK, WORLD_SIZE: expected whole numbers"):
        feed_of()


# What goes wrong

class Broken(Recorded):
    def read(self, low, high, out):
        raise OSError(5, "Input/output error")


def broken(*names):
    return {**MEMORY, **{name: {"image": volume(Broken(SCANS[name])), "labels": volume(MAPS[name])} for name in names}}


def test_an_error_comes_up_in_the_loop_with_the_name_of_the_case():
    step = next(k for k, batch in enumerate(expected(3)) if "case_07" in [each[0] for each in batch])
    with feed_of(broken("case_07")) as feed:
        done = 0
        with pytest.raises(st.Error, match="suture: feed: case 'case_07': OSError: .*Input/output error"):
            for epoch in feed.epochs(1):
                for _ in epoch:
                    done += 1
        assert done == step == feed.state_dict()["step"]
        with pytest.raises(st.Error, match="case_07"):  # again: nothing was passed over
            next(iter(feed))


def test_an_error_names_the_case_whatever_its_name():
    problem = OSError(5, "Input/output error at byte 10")
    assert str(told(problem, "1")) == "suture: feed: case '1': OSError: [Errno 5] Input/output error at byte 10"
    named = st.Error("suture: store: case '1': expected 3 channels, got 1")
    assert told(named, "1") is named


def test_an_epoch_goes_on_with_the_step_of_the_error():
    right = expected(6)
    wrong = next(k for k, step in enumerate(right) if k and "case_05" in [row[0] for row in step])
    attached = []

    class Detached(Recorded):
        def read(self, low, high, out):
            if not attached:
                raise OSError(5, "Input/output error")
            super().read(low, high, out)

    with feed_of({**MEMORY, "case_05": {"image": volume(Detached(SCANS["case_05"])), "labels": volume(MAPS["case_05"])}}) as feed:
        found, epochs = [], feed.epochs(2)
        epoch = next(epochs)
        for _ in range(2):
            with pytest.raises(st.Error, match="case_05"):
                for batch in epoch:
                    found.append(facts(batch))
            assert feed.state_dict()["step"] == wrong == len(found)
        attached.append(True)
        found += [facts(batch) for batch in epoch]
        found += [facts(batch) for epoch in epochs for batch in epoch]
    assert found == right and threads_left() == []


def test_cases_are_left_out_and_counted():
    bad = ("case_01", "case_07", "case_09")
    with feed_of(broken(*bad), on_error="leave_out", threads=3) as feed:
        assert seen(feed, 2) == [[each for each in step if each[0] not in bad] for step in expected(6)]
        assert sorted(feed.statistics().left_out) == list(bad) and "Input/output" in feed.statistics().left_out["case_01"]
        assert feed.statistics().summary()["left_out"] == 3 and "case_07" in str(feed.statistics())


def test_a_batch_of_which_all_are_left_out_is_there_without_samples():
    with feed_of(broken("case_05"), on_error="leave_out", batch=1) as feed:
        sizes = {}
        for batch in feed:
            sizes[tuple(batch["id"])] = batch["image"].shape, batch["seg"].shape, batch["image"].dtype, batch["seg"].dtype
    assert sizes[()] == ((0, 1, 8, 8, 8), (0, 1, 8, 8, 8), np.float32, np.uint8) and len(sizes) == 11


def test_an_empty_share_needs_no_case_in_particular():
    class Closed(dict):
        def __getitem__(self, key):
            raise OSError(5, "Input/output error")

    cohort = {**MEMORY, "case_00": Closed(image=None, labels=None)}
    with feed_of(cohort, on_error="leave_out", batch=1, rank=0, world=2, cache=0) as feed:
        batch = next(iter(feed))
    assert batch["id"] == [] and batch["image"].shape == (0, 1, 8, 8, 8)
    with feed_of(dict.fromkeys(SCANS, Closed(image=None, labels=None)), on_error="leave_out", batch=1, rank=0, world=2, cache=0) as feed:
        with pytest.raises(st.Error, match="suture: feed: case 'case_00': OSError: .*Input/output error"):
            next(iter(feed))


def test_where_nothing_can_be_read_it_does_not_go_on():
    with feed_of(broken(*SCANS), on_error="leave_out") as feed, pytest.raises(st.Error, match="Input/output"):
        seen(feed, 1)


def test_samples_of_several_shapes_in_one_batch_are_told():
    pipeline = st.Pipeline(image=[st.random_crop(size=8)], seg=st.labels())
    small = {**MEMORY, "case_02": {"image": volume(SCANS["case_02"][:4]), "labels": volume(MAPS["case_02"][:4])}}
    with feed_of(small, pipeline) as feed, pytest.raises(st.Error, match="case 'case_02': .*larger than the volume"):
        seen(feed, 1)


@pytest.mark.parametrize("name, first, second", [
    ("batch", dict(batch=4), dict(batch=2)), ("steps_per_epoch", dict(steps_per_epoch=3), dict(steps_per_epoch=4)),
    ("steps_per_epoch", {}, dict(steps_per_epoch=3)), ("last", {}, dict(last="drop")), ("shuffle", {}, dict(shuffle=False)),
    ("size", {}, dict(draws=2)), ("seed", {}, dict(seed=7))])
def test_a_state_of_another_order_is_refused(name, first, second):
    with feed_of(**first) as feed:
        state = json.loads(json.dumps(feed.state_dict()))
    with feed_of(**second) as other:
        before = other.state_dict()
        with pytest.raises(st.Error, match=f"suture: feed: state: {name}: expected .*, as this feed has it, got .*. Make the feed as the run began"):
            other.load_state_dict(state)
        assert other.state_dict() == before
    with feed_of(**first, threads=1, rank=1, world=3) as same:  # what changes no sample is free
        same.load_state_dict(state)


def test_a_state_of_numbers_of_numpy_is_written_as_json():
    with feed_of(batch=np.int64(4), seed=np.uint64(7), steps_per_epoch=np.int32(3), draws=np.int8(2), shuffle=np.True_) as feed:
        state = json.loads(json.dumps(feed.state_dict()))
    with feed_of(batch=4, seed=7, steps_per_epoch=3, draws=2, shuffle=True) as same:
        assert state == same.state_dict()
        same.load_state_dict(state)


def test_an_evaluation_that_was_left_begins_anew():
    names = sorted(SCANS)
    with feed_of(training=False) as feed:
        for batch in feed:
            assert list(batch["id"]) == names[:4]
            break
        with pytest.raises(KeyboardInterrupt):
            for _ in feed:
                raise KeyboardInterrupt
        assert [name for batch in feed for name in batch["id"]] == names
        assert [name for batch in feed for name in batch["id"]] == names
        for _ in feed:
            state = feed.state_dict()
            break
    with feed_of(training=False) as feed:
        feed.load_state_dict(state)
        assert [name for batch in feed for name in batch["id"]] == names[4:]
        feed.load_state_dict(state)
        for left in (1, 0):  # a loop that was left at the step of the state does not begin there again
            for batch in feed:
                assert list(batch["id"]) == (names[4:8] if left else names[:4])
                break


def test_a_state_of_another_cohort_is_refused():
    with feed_of() as feed:
        state = feed.state_dict()
        with pytest.raises(st.Error, match="state: expected that of the cohort"):
            feed.load_state_dict({**state, "cohort": "0" * 64})
        with pytest.raises(st.Error, match="expected seed, step, cohort, order, got seed. Pass what state_dict returned"):
            feed.load_state_dict({"seed": 1})
        with pytest.raises(st.Error, match="expected seed, step, cohort, order, got None. Pass what state_dict returned"):
            feed.load_state_dict(None)
        with pytest.raises(st.Error, match="state: step"):
            feed.load_state_dict({**state, "step": -1})
    other = feed_of({name: MEMORY[name] for name in sorted(MEMORY)[1:]})
    with pytest.raises(st.Error, match="state: expected that of the cohort"):
        other.load_state_dict(state)
    assert feed_of(Hashed(MEMORY)).state_dict()["cohort"] == "ab" * 32  # a store's cohort says its own hash


class Hashed(dict):
    sha256 = "ab" * 32


# Ends

def test_close_leaves_no_thread():
    feed = feed_of(lazy(), threads=4, steps_per_epoch=1000)
    for k, _ in enumerate(feed):
        if k == 3:
            break
    feed.close()
    assert threads_left() == []
    feed.close()
    with pytest.raises(st.Error, match="the feed is closed"):
        next(iter(feed))


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError, GeneratorExit])
def test_what_the_loop_raises_ends_the_threads(problem):
    with pytest.raises(problem):
        with feed_of(threads=4, steps_per_epoch=1000) as feed:
            for _ in feed:
                raise problem
    assert threads_left() == []


def test_a_loop_that_is_left_ends_the_threads():
    for _ in feed_of(threads=4, steps_per_epoch=1000):
        break
    gc.collect()
    assert threads_left() == []


class Slow(Recorded):
    def read(self, low, high, out):
        time.sleep(.05)
        super().read(low, high, out)


def test_an_interrupt_is_heard_while_the_loop_waits():
    cohort = {name: {"image": volume(Slow(SCANS[name])), "labels": volume(MAPS[name])} for name in SCANS}
    with pytest.raises(KeyboardInterrupt):
        with feed_of(cohort, batch=11, threads=1, steps_per_epoch=1000) as feed:
            next(iter(feed))
            threading.Timer(.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            for _ in feed:
                pass
    assert threads_left() == []


def in_child(feed, queue):
    try:
        next(iter(feed))
    except st.Error as problem:
        queue.put(str(problem))
    with feed_of() as own:
        queue.put(seen(own, 1))


def test_a_forked_process_is_told_and_makes_its_own():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with feed_of(threads=3, steps_per_epoch=100) as feed:
        for k, _ in enumerate(feed):
            if k == 2:
                break
        batches = iter(feed)
        next(batches)
        child = context.Process(target=in_child, args=(feed, queue))
        child.start()
        said, made = queue.get(timeout=60), queue.get(timeout=60)
        child.join()
        assert "forked" in said and made == expected(3) and child.exitcode == 0
        next(batches)


def test_the_interpreter_ends_while_threads_are_at_work():
    program = ("import sys, numpy as np; sys.path[:0] = [%r, %r]\nimport test_feed as t\n"
               "f = t.feed_of(threads=4, steps_per_epoch=10000)\nit = iter(f)\nnext(it); next(it)\nprint('end')\n" % (
                   os.path.dirname(__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "end\n" and done.stderr == ""


# Memory

def test_bytes_are_read():
    assert bytes_of("4 GB", "x") == 4 * 10**9 and bytes_of("1.5 GiB", "x") == 3 << 29 and bytes_of(17, "x") == 17 and bytes_of("12", "x") == 12
    for bad in ("", "GB", "4 XB", -1, 0, True, 1.5, None, "-1 GB"):
        with pytest.raises(st.Error, match="expected bytes"):
            bytes_of(bad, "suture: feed: memory")


def test_buffers_are_little_larger_than_asked_for():
    for size in (1, 65536, 65537, 100000, 1 << 20, (1 << 20) + 1, 3 * 10**8 + 7):
        assert size <= rounded(size) <= size + max(size / 4, 65536)


def test_tickets_are_served_in_order_and_never_beyond_the_limit():
    staging = Staging(1 << 20, plain)
    order, guard = [], threading.Lock()
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 500000, 60).tolist()

    def unit(ticket):
        time.sleep(rng.random() * .002)
        if ticket % 7 == 3:
            staging.skip(ticket)
            return
        buffers = staging.grant(ticket, [sizes[ticket]], 0, lambda: 0, "unit")
        with guard:
            order.append(ticket)
        assert staging.used <= staging.limit and buffers[0].size >= sizes[ticket]
        time.sleep(.001)
        staging.give(buffers)

    workers = [threading.Thread(target=unit, args=(k,)) for k in reversed(range(60))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
        assert not worker.is_alive()
    assert order == [k for k in range(60) if k % 7 != 3] and staging.used == 0 and staging.most <= staging.limit


def test_memory_that_cannot_be_had_is_not_counted():
    def make(size):
        if size == rounded(300000):
            raise MemoryError
        return plain(size)

    staging = Staging(1 << 20, make)
    with pytest.raises(MemoryError):
        staging.grant(0, [100000, 300000], 50000, lambda: 0, "unit")
    assert staging.used == 0
    assert len(staging.grant(1, [900000], 0, lambda: 0, "unit")) == 1  # all of the limit is free


def test_a_batch_that_does_not_fit_is_told_of_and_one_that_does_goes_through():
    with feed_of(memory=50000) as feed, pytest.raises(MemoryShort, match="memory: expected at least 1 MB for it and what its batch holds, got 0 MB"):
        seen(feed, 1)
    with feed_of(memory=50000, on_error="leave_out") as feed, pytest.raises(MemoryShort):
        seen(feed, 1)
    with feed_of(memory=200000, threads=8, steps_per_epoch=40) as feed:  # room for a batch and hardly more
        found = []
        for batch in feed:
            found.append(facts(batch))
            assert feed._staging.most <= 200000
        assert found == expected(40, steps_per_epoch=40)


def test_memory_is_bounded_whatever_the_cohort():
    """A cohort of 40 GB in a process that may use 64 MB for boxes and batches."""
    program = """
import resource, sys
sys.path[:0] = [%r, %r]
import numpy as np, suture as st, suture.feed
class Huge:
    shape, dtype, class_index = (400, 512, 512), "int16", None
    def read(self, low, high, out):
        out[...] = low[0]
pipeline = st.Pipeline(image=[st.window(center=40, width=400), st.random_affine(rotate_deg=dict(z=20), scale=(.9, 1.1)),
                              st.random_crop(size=64), st.gaussian_noise(sigma=(0, .1), probability=.5)])
cohort = {str(i): {"image": st.Volume(Huge(), axes="zyx")} for i in range(200)}
with st.feed.Feed(cohort, pipeline, batch=4, seed=1, device="numpy", threads=4, memory="64 MB", bar=False) as feed:
    for k, _ in enumerate(feed):
        if k == 2:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(k, after - before, feed._staging.most)
""" % (os.path.dirname(__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=500)
    steps, grown, most = map(int, done.stdout.split())
    assert steps == 49 and most <= 64 * 10**6 and grown < 80 * 1024  # kB, with the batch that the loop has


# Statistics

def test_statistics_add_up(tmp_path):
    with feed_of(lazy()) as feed:
        asked = time.perf_counter()
        seen(feed, 2)
        took = time.perf_counter() - asked
        statistics = feed.statistics()
    s = statistics.summary()
    assert s["steps"] == 6 and s["samples"] == 22 and [each.step for each in statistics.steps] == list(range(6))
    assert 0 <= s["wait_ms"] <= s["step_ms"] and 0 <= s["waited"] <= 1
    assert sum(each.between for each in statistics.steps) <= took
    assert s["MB"] * 6e6 == pytest.approx(sum(each.times.bytes for each in statistics.steps))
    statistics.save(tmp_path / "feed.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "feed.jsonl").read_text().splitlines()]
    assert len(lines) == 7 and lines[-1]["summary"] == s and sum(line["samples"] for line in lines[:-1]) == 22
    assert os.listdir(tmp_path) == ["feed.jsonl"]
    with pytest.raises(st.Error, match="cannot be written"):
        statistics.save(tmp_path / "nowhere/feed.jsonl")


def test_bytes_are_those_of_the_boxes():
    cohort = lazy()
    with feed_of(cohort) as feed:
        seen(feed, 1)
        read = sum(int(np.prod(np.subtract(high, low))) * source.array.itemsize for case in cohort.values() for source in case.arrays.values()
                   for low, high in source.reads)
        assert sum(step.times.bytes for step in feed.statistics().steps) == read


def test_writers_get_every_step():
    class Writer:
        def __init__(self):
            self.found = {}

        def add_scalar(self, name, value, step):
            self.found.setdefault(name, []).append((step, value))

        def log(self, values, step):
            for name, value in values.items():
                self.add_scalar(name, value, step)

    with feed_of() as feed:
        seen(feed, 1)
        board, run = Writer(), Writer()
        feed.statistics().to_tensorboard(board)
        feed.statistics().to_wandb(run)
    assert board.found == run.found and [step for step, _ in board.found["feed/wait_ms"]] == [0, 1, 2]


def test_a_line_follows_the_steps(capsys):
    with feed_of(bar=True) as feed:
        seen(feed, 1)
    assert "epoch 0 [####################] 3/3" in capsys.readouterr().err
    with feed_of(bar=None) as feed:  # standard error is no terminal here
        seen(feed, 1)
    assert capsys.readouterr().err == ""


# Evaluation

def test_windows_cover_each_case_by_the_path_of_training():
    """What is put together of the windows is the volume that the chain makes without its crop."""
    chain = [st.window(center=40, width=400), st.resample(spacing_mm=dict(z=2, y=1, x=1)), st.random_affine(rotate_deg=15)]
    pipeline = st.Pipeline(image=[*chain, st.random_crop(size=6), st.gaussian_noise(sigma=.1)], seg=st.labels())
    whole = st.Pipeline(image=[*chain, st.gaussian_noise(sigma=.1)], seg=st.labels())
    for axes in ("zyx", "xyz"):
        names = sorted(SCANS)[:3]
        turned = {n: {"image": volume(SCANS[n] if axes == "zyx" else SCANS[n].T, axes), "labels": volume(MAPS[n] if axes == "zyx" else MAPS[n].T, axes)}
                  for n in names}
        with feed_of(turned, pipeline, training=False, windows=st.sliding_window_grid, batch=5) as feed:
            found = {n: [] for n in names}
            for batch in feed:
                for name, start, image in zip(batch["id"], batch["start"], batch["image"]):
                    found[name].append((start, image))
            for name in names:
                grid = feed.window_grid(name)
                assert [start for start, _ in found[name]] == [grid[p] for p in range(len(grid))]
                out = whole({"image": [turned[name]["image"]], "seg": [turned[name]["labels"]], "id": [0]}, training=False)["image"][0]
                expected = out.array if axes == "zyx" else out.array.T
                assert feed.whole(name).grids[0].extents == expected.shape == grid.image
                for (z, y, x), image in found[name]:
                    patch = image[0] if axes == "zyx" else image[0].T
                    assert np.array_equal(patch, expected[z:z + 6, y:y + 6, x:x + 6])


def test_windows_of_a_case_that_is_smaller_are_padded():
    pipeline = st.Pipeline(image=[st.random_crop(size=16)], seg=st.labels())
    with feed_of(pipeline=pipeline, training=False, windows=st.sliding_window_grid, batch=1) as feed:
        batch = next(iter(feed))
    assert batch["image"].shape == (1, 1, 16, 16, 16) and batch["id"] == ["case_00"]


def test_reading_takes_place_in_threads():
    seen_in = set()

    class Named(Recorded):
        def read(self, low, high, out):
            seen_in.add(threading.current_thread().name)
            super().read(low, high, out)

    with feed_of({n: {"image": volume(Named(SCANS[n])), "labels": volume(MAPS[n])} for n in SCANS}, threads=2) as feed:
        seen(feed, 3)
    assert seen_in <= {"suture-feed-0", "suture-feed-1"} and seen_in
