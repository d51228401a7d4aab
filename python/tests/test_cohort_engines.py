# SPDX-License-Identifier: Apache-2.0
"""A cohort that several machines make: by a Dask cluster that loses a worker, and by ranks that are killed. The same files."""
import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

nibabel = pytest.importorskip("nibabel")
pytest.importorskip("tensorstore")
CASES = 8


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """Scans of one size with noise, which take their time to compress, and their labels."""
    folder = tmp_path_factory.mktemp("cohort")
    random = np.random.default_rng(1)
    for what in ("scans", "labels"):
        (folder / what).mkdir()
    for k in range(CASES):
        scan = random.normal(0, 300, (80, 72, 64)).astype(np.int16)
        affine = np.diag([.8, .8, 1.5 + k / 10, 1])
        nibabel.save(nibabel.Nifti1Image(scan, affine), folder / "scans" / f"case_{k:03}.nii.gz")
        nibabel.save(nibabel.Nifti1Image((scan > 600).astype(np.uint8), affine), folder / "labels" / f"case_{k:03}.nii.gz")
    return folder


def files_of(store):
    """The hash of every file of a store by its name; locks and work folders, which are empty, are none."""
    return {str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(store.rglob("*")) if path.is_file()}


def environment(root, **more):
    path = os.pathsep.join(p for p in (str(root / "python"), os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path, **more}


def command(root, scans, store, *more, **variables):
    """A process that builds the store, as the user of a shell starts it."""
    line = f'exec "{sys.executable}" -m suture store build scans --labels labels --out "{store}" {" ".join(more)}'
    return subprocess.Popen(["sh", "-c", line], cwd=scans, env=environment(root, **variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def waited_for(condition, seconds=240):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(.01)
    return found


@pytest.fixture(scope="module")
def alone(scans, root_of_checkout):
    """The files of the store that one process makes."""
    ended(command(root_of_checkout, scans, scans / "alone"))
    made = files_of(scans / "alone")
    assert len(made) > 2 * CASES
    return made


@pytest.fixture(scope="module")
def root_of_checkout():
    from conftest import ROOT

    return ROOT


def made_of(store):
    folder = store / ".suture" / "manifests"
    return len(list(folder.glob("*.json"))) if folder.is_dir() else 0


@pytest.mark.long
def test_dask_that_loses_a_worker(scans, alone, root, tmp_path):
    """A scheduler and three worker processes, as a cluster has them; one is killed with cases in its hands."""
    distributed = pytest.importorskip("distributed")
    where = tmp_path / "scheduler.json"
    common = {"env": environment(root, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="60s"), "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
              "cwd": scans}
    cluster = [subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                                 "--scheduler-file", str(where)], **common)]
    try:
        waited_for(where.is_file)
        cluster += [subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(where), "--nthreads", "1",
                                      "--no-nanny", "--no-dashboard", "--name", f"worker-{k}", "--local-directory", str(tmp_path)], **common) for k in range(3)]
        with distributed.Client(scheduler_file=str(where), timeout="120s") as client:
            client.wait_for_workers(3, timeout=240)
            store = scans / "dask"
            build = command(root, scans, store, "--dask", client.scheduler.address)
            # A worker that is at work, once something is made and much is left.
            waited_for(lambda: 1 <= made_of(store))
            busy = waited_for(lambda: next((worker for worker, keys in client.processing().items() if keys), None))
            assert made_of(store) < CASES
            name = client.scheduler_info(n_workers=-1)["workers"][busy]["name"]
            os.kill(cluster[1 + int(str(name)[-1])].pid, signal.SIGKILL)
            out = ended(build)
            assert f"{CASES} built, 0 reused, 0 failed" in out
            assert len(client.scheduler_info(n_workers=-1)["workers"]) == 2
    finally:
        for process in cluster:
            process.kill()
            process.wait()
    assert files_of(store) == alone


@pytest.mark.parametrize("world", [2, pytest.param(3, marks=pytest.mark.long), pytest.param(CASES + 1, marks=pytest.mark.long)])
def test_ranks_of_slurm(scans, alone, root, world):
    """An array of tasks that all write to one folder; rank and world are what Slurm says."""
    store = scans / f"slurm-{world}"
    ranks = [command(root, scans, store, "--rank $SLURM_PROCID --world $SLURM_NTASKS", SLURM_PROCID=str(rank), SLURM_NTASKS=str(world))
             for rank in range(world)]
    for rank in ranks:
        ended(rank)
    assert files_of(store) == alone


@pytest.mark.long
def test_ranks_that_are_killed_at_any_moment(scans, alone, root):
    """Each world is killed at a moment of its own, until one is left to end; the worlds have other sizes."""
    random, store = np.random.default_rng(), scans / "killed"
    for world in (3, 2):
        ranks = [command(root, scans, store, f"--rank {rank} --world {world}") for rank in range(world)]
        before = made_of(store)
        waited_for(lambda: made_of(store) > before or any(rank.poll() is not None for rank in ranks))
        time.sleep(random.uniform(0, .5))
        for rank in ranks:
            rank.kill()
            rank.communicate()
    ended(command(root, scans, store))
    assert files_of(store) == alone
    assert json.loads((store / ".suture" / "cases.json").read_bytes())["cases"].keys() == {f"case_{k:03}" for k in range(CASES)}
