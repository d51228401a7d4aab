# SPDX-License-Identifier: Apache-2.0
"""Ranks of torchrun get the batches of one process, to the bit: in any number, killed at random and resumed in another number."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

import suture as st
from conftest import library
from suture.feed.order import sample

torch = library("torch")
pytestmark = pytest.mark.torch

from rank_of_training import BATCH, CASES, PIPELINE, SEED, STEPS_PER_EPOCH, cohort, digests  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 20  # four epochs of 35 samples of 11 cases: batches of two passes, and cases twice in an epoch


@pytest.fixture(scope="module")
def expected():
    """What each step has, by the pipeline on whole arrays and the definition of the order, without a feed."""
    cases, steps = cohort(), []
    names = sorted(cases)
    for step in range(STEPS):
        epoch = step // STEPS_PER_EPOCH
        first = epoch * STEPS_PER_EPOCH * BATCH // CASES  # the pass that the epoch begins in
        stream = range(step * BATCH, (step + 1) * BATCH)
        chosen = [names[sample(SEED, place // CASES, place % CASES, CASES)] for place in stream]
        ids = [st.sample_id(name, draw=place // CASES - first) for name, place in zip(chosen, stream)]
        out = PIPELINE({key: [cases[name][key] for name in chosen] for key in ("image", "seg")}, seed=SEED, epoch=epoch, ids=ids)
        steps.append(digests({"id": chosen, **out}))
    assert len({patch for step in steps for _, patch, _ in step}) == STEPS * BATCH  # no draw comes twice
    return steps


def start(folder, world, steps=STEPS):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE.parent), str(HERE))), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    for pid in folder.glob("pid-*"):
        pid.unlink()
    return subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", f"--nproc-per-node={world}",
                             str(HERE / "rank_of_training.py"), str(folder), str(steps)],
                            env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(run):
    out, _ = run.communicate(timeout=540)
    assert run.returncode == 0, out[-4000:]


def lines(folder):
    path = folder / "steps.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def shares(world):
    """By hand: place k of the batch belongs to the rank whose share, from floor(7 r / w) on, holds it."""
    return [BATCH * (rank + 1) // world - BATCH * rank // world for rank in range(world)]


@pytest.mark.parametrize("world", [3, *(pytest.param(world, marks=pytest.mark.long) for world in (1, 2, 5, 8))])
def test_every_world_has_one_list_of_digests(tmp_path, expected, world):
    """A batch of 7 that no world but 1 divides; of 8 ranks one has nothing to do."""
    ended(start(tmp_path, world))
    found = lines(tmp_path)
    assert [line["samples"] for line in found] == expected
    assert all(line["shares"] == shares(world) for line in found)


@pytest.mark.parametrize("before, after", [(2, 3), *(pytest.param(*worlds, marks=pytest.mark.long) for worlds in ((8, 1), (5, 2), (3, 8)))])
def test_another_world_goes_on_in_mid_epoch(tmp_path, expected, before, after):
    """One world ends after 7 steps, in the middle of an epoch, as one that is preempted; another goes on."""
    run = start(tmp_path, before)
    killed = kill_when(tmp_path, run, lambda: len(lines(tmp_path)) >= 7)
    assert killed and run.returncode != 0
    done = json.loads((tmp_path / "state.json").read_text())["step"]
    assert 6 <= done < STEPS
    ended(start(tmp_path, after))
    check(tmp_path, expected)
    assert [line["world"] for line in lines(tmp_path)][-1] == after


@pytest.mark.long
def test_killed_at_random_in_changing_worlds(tmp_path, expected):
    """kill -9 of a random rank after a random time, four times over, each time another world goes on."""
    chance = random.Random()
    kills = 0
    for world in (3, 5, 2, 8):
        run, before = start(tmp_path, world), len(lines(tmp_path))
        steps = chance.randrange(1, 5)
        kills += kill_when(tmp_path, run, lambda: len(lines(tmp_path)) >= min(before + steps, STEPS), chance)
    assert kills >= 2
    ended(start(tmp_path, 1))
    check(tmp_path, expected)


def kill_when(folder, run, condition, chance=None):
    """Kills a rank, and with it the run; whether it came to that."""
    end = time.monotonic() + 540
    while not condition():
        if run.poll() is not None:
            return False
        assert time.monotonic() < end
        time.sleep(.005)
    if chance is not None:
        time.sleep(chance.uniform(0, .05))
    ranks = [int(pid.read_text()) for pid in sorted(folder.glob("pid-*"))]
    try:
        os.kill((chance or random.Random(0)).choice(ranks), signal.SIGKILL)
    except ProcessLookupError:
        run.communicate(timeout=300)
        return False
    run.communicate(timeout=300)  # torchrun ends the other ranks
    return True


def check(folder, expected):
    """Every step is there; one that was made twice, since the run was killed before it was noted, was made alike."""
    text = (folder / "steps.jsonl").read_text()
    found = {}
    for line in text.splitlines():
        line = json.loads(line)
        assert line["samples"] == expected[line["step"]]
        found[line["step"]] = line["samples"]
    assert [found[step] for step in sorted(found)] == expected
