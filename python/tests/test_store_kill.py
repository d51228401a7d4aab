# SPDX-License-Identifier: Apache-2.0
"""Builds that are killed: nothing half made is in the store, and going on gives the files of a build that was let alone."""
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from conftest import library
from store_data import ROOT, phantoms, tree

pytestmark = pytest.mark.store
library("tensorstore")
pytest.importorskip("nibabel")

import suture as st  # noqa: E402
import suture.store  # noqa: E402

CHILD = """
import sys, suture as st, suture.store
print("begun", flush=True)
st.store.build(sys.argv[1] + "/scans", labels=sys.argv[1] + "/labels", out=sys.argv[2], chunk=16, workers=int(sys.argv[3]))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = phantoms(tmp_path_factory.mktemp("source"), count=12, shape=(40, 48, 56))
    st.store.build(folder / "scans", labels=folder / "labels", out=folder / "alone.zarr", chunk=16)
    return folder


def killed(source, store, workers, progress, seconds):
    """Starts a build in a session of its own and kills it, workers as well, so long after so many cases are there."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(source), str(store), str(workers)], env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    child.stdout.readline()
    end = time.monotonic() + 120
    while child.poll() is None and time.monotonic() < end and len(list(store.glob("case_*"))) < progress:
        time.sleep(.002)
    time.sleep(seconds)
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
    child.stdout.close()


@pytest.mark.parametrize("workers, seed", [(2, 3), pytest.param(1, 1, marks=pytest.mark.long), pytest.param(1, 2, marks=pytest.mark.long)])
def test_a_killed_build_goes_on(source, tmp_path, workers, seed):
    draw, store = random.Random(seed), tmp_path / "s"
    for progress in sorted(draw.randrange(10) for _ in range(3)):
        killed(source, store, workers, progress, draw.random() * .2)
        if (store / "zarr.json").exists() and list((store / ".suture/manifests").glob("*.json")):
            damaged = st.store.verify(store, cases=[p.name for p in store.glob("case_*")])
            assert not damaged  # what is there is there as a whole
    report = st.store.build(source / "scans", labels=source / "labels", out=store, chunk=16)
    assert not report.failed and len(report.built) + len(report.reused) == 12
    assert tree(store) == tree(source / "alone.zarr")
    assert not any((store / ".suture/work").iterdir()) and not any((store / ".suture/locks").iterdir())


STEPS = """
import os, signal, sys, nibabel, ngff_zarr, suture as st, suture.store

def counted(real):
    def call(*arguments, **given):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **given)
    return call

for name in ("rename", "replace", "fsync", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
for step in range(1, 400):
    child = os.fork()
    if child == 0:
        left = step
        st.store.build(sys.argv[1] + "/scans/case_00.nii.gz", out=f"{sys.argv[2]}/{step}", chunk=16)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        print(step)
        break
"""


def test_killed_at_each_step(source, tmp_path):
    """A process ends at its first call of the system that makes something visible, another one at its second, and so on."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    child = subprocess.run([sys.executable, "-c", STEPS, str(source), str(tmp_path)], env=env, capture_output=True, text=True)
    last = int(child.stdout)
    assert last > 10, child.stderr
    st.store.build(source / "scans/case_00.nii.gz", out=tmp_path / "alone", chunk=16)
    wanted = tree(tmp_path / "alone")
    for step in range(1, last + 1):
        store = tmp_path / str(step)
        if list((store / ".suture/manifests").glob("*")) and (store / "case_00").exists():
            assert not st.store.verify(store, cases=["case_00"])
        report = st.store.build(source / "scans/case_00.nii.gz", out=store, chunk=16)
        assert len(report.built) + len(report.reused) == 1 and tree(store) == wanted, step


def test_a_worker_that_is_killed_loses_no_case(source, tmp_path):
    """One of the processes is killed in the middle; its case is made by another."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(source), str(tmp_path / "s"), "2"], env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    workers = []
    end = time.monotonic() + 120
    while not workers and time.monotonic() < end:
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(child.pid)], capture_output=True, text=True).stdout.split()
        workers = [int(pid) for pid in found] if len(found) == 2 else []
        time.sleep(.01)
    while not list((tmp_path / "s").glob("case_*")) and child.poll() is None:
        time.sleep(.002)
    os.kill(workers[0], signal.SIGKILL)
    child.communicate(timeout=300)
    assert child.returncode == 0 and tree(tmp_path / "s") == tree(source / "alone.zarr")


def test_a_worker_of_dask_that_is_killed_loses_no_case(source, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None,
                                  env={"PYTHONPATH": str(ROOT / "python")}) as cluster, distributed.Client(cluster) as client:
        pid = next(iter(client.run(os.getpid).values()))
        import threading

        def kill():
            while not list((tmp_path / "s").glob("case_*")):
                time.sleep(.002)
            os.kill(pid, signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        report = st.store.build(source / "scans", labels=source / "labels", out=tmp_path / "s", chunk=16, dask=client)
    assert not report.failed and tree(tmp_path / "s") == tree(source / "alone.zarr")
