# SPDX-License-Identifier: Apache-2.0
"""One plan and one pipeline from many threads, and how many threads a call may ask for."""
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import suture as st
from suture.backend.threads import MOST_THREADS, threads_of
from suture.pipeline import class_index

PIPELINE = st.Pipeline(image=[st.brightness(offset=1), st.random_flip(probability=.5)], seg=st.labels())
IMAGES = np.random.default_rng(0).random((4, 1, 24, 32, 32), np.float32)
BATCH = {"image": IMAGES, "seg": (IMAGES > .5).astype(np.uint8), "id": [1, 2, 3, 4]}


@pytest.mark.parametrize("count", [2, 8])
def test_threads_share_a_plan(count):
    plan = PIPELINE.plan(BATCH, seed=3, epoch=0, threads=1)
    want = {key: [x.copy() for x in plan.run()[key]] for key in ("image", "seg")}
    wrong, start = [], threading.Barrier(count)

    def work():
        start.wait()
        try:
            for _ in range(40):
                out = {"image": [np.full((1, 24, 32, 32), -7, np.float32) for _ in range(4)],
                       "seg": [np.full((1, 24, 32, 32), 9, np.uint8) for _ in range(4)]}
                plan.run(out=out)
                wrong.extend(key for key in out if not all(map(np.array_equal, out[key], want[key])))
        except BaseException as problem:
            wrong.append(problem)

    workers = [threading.Thread(target=work) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_threads_share_a_pipeline():
    """Each thread plans batches of its own, the first of which finds nothing made yet."""
    pipeline = st.Pipeline(image=PIPELINE.images["image"], seg=st.labels())
    want = PIPELINE(BATCH, seed=3, epoch=0)
    made, start = [], threading.Barrier(8)

    def work():
        start.wait()
        made.append(pipeline(BATCH, seed=3, epoch=0, threads=1))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(made) == 8
    assert all(np.array_equal(m[key][i], want[key][i]) for m in made for key in ("image", "seg") for i in range(4))


@pytest.mark.parametrize("threads", [100000, MOST_THREADS + 1, -1, 2**32 + 1, 1.5, "2", True])
def test_too_many_threads_are_refused(threads):
    with pytest.raises(st.Error, match=f"suture: threads: expected a whole number from 0, for all, to {MOST_THREADS}, got "):
        PIPELINE(BATCH, seed=3, epoch=0, threads=threads)


def test_as_many_threads_as_are_allowed_run(monkeypatch):
    assert threads_of(MOST_THREADS) == MOST_THREADS and threads_of(0) == 0
    out = PIPELINE(BATCH, seed=3, epoch=0, threads=3)
    assert np.array_equal(out["image"][2], PIPELINE(BATCH, seed=3, epoch=0, threads=1)["image"][2])
    from suture.pipeline import plan

    monkeypatch.setattr(plan, "threads_of", lambda asked: asked)  # C++ has the bound as well
    with pytest.raises(st.Error, match="threads: expected 0, for all, to 1024, got 100000"):
        PIPELINE(BATCH, seed=3, epoch=0, threads=100000)


def test_outputs_of_unknown_keys_are_refused():
    out = [np.zeros((1, 24, 32, 32), np.float32) for _ in range(4)]
    with pytest.raises(st.Error, match="suture: out: expected keys among image, seg, got 'imgae'"):
        PIPELINE(BATCH, seed=3, epoch=0, out={"imgae": out})


@pytest.mark.parametrize("settings, sentence", [({"seed": 1 << 64}, "seed: expected"), ({"seed": -1}, "seed: expected"),
                                                ({"epoch": 1 << 32}, "epoch: expected"), ({"seed": .5}, "seed: expected a whole number"),
                                                ({"seed": "1"}, "seed: expected a whole number"),
                                                ({"seed": np.array([1, 2])}, r"seed: expected a whole number, got array\(\[1, 2\]\). Pass an int"),
                                                ({"epoch": np.array([1])}, "epoch: expected a whole number"),
                                                ({"epoch": np.array([0, 0])}, "epoch: expected a whole number"),
                                                ({"seed": np.array(.5)}, "seed: expected a whole number")])
def test_seeds_and_epochs_that_do_not_fit_are_refused(settings, sentence):
    with pytest.raises(st.Error, match=sentence):
        PIPELINE(BATCH, **{"seed": 1, "epoch": 0, **settings})


def test_threads_share_the_class_indexes_that_are_kept(monkeypatch):
    """More maps than are kept, so that threads forget and find indexes all the time."""
    sources = [SimpleNamespace(class_index=bytes([k]) * 9, shape=(2, 3, 4)) for k in range(16)]
    items = SimpleNamespace(sources=sources, order="zyx", what="suture: seg")
    monkeypatch.setattr(class_index, "MOST_KEPT", 2)
    monkeypatch.setattr(class_index, "_kept", {})
    monkeypatch.setattr(class_index, "_index_from_runs", lambda stored, classes: (stored, (2, 3, 4)))
    wrong, start, interval = [], threading.Barrier(8), sys.getswitchinterval()

    def work():
        start.wait()
        try:
            for k in range(4000):
                i = k * 7 % 16
                if class_index._of_source(items, i, class_index.Classes(2)) != sources[i].class_index:
                    wrong.append(i)
        except BaseException as problem:
            wrong.append(problem)

    workers = [threading.Thread(target=work) for _ in range(8)]
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == [] and len(class_index._kept) == 2
