# SPDX-License-Identifier: Apache-2.0
"""One test for several loaders: are samples, batches and bits the same at another number of ranks, and resumed in mid-epoch?

    python python/bench/resume_peers.py [suture litdata streaming monai]

The cohort has 36 samples, the batch of all ranks together 12, so that an epoch has three steps. Samples are shuffled by a seed,
and normal noise is added to them as augmentation. The epoch is run by 1, 2, 3 and 4 ranks, which all divide the batch, and by 5,
which do not. Then 2 ranks stop after the first step, their state goes through JSON, and 1, 2 or 3 ranks go on to the end of the
epoch. Each rank is a process that joins a group of torch.distributed over gloo. What is compared:

    samples   the epoch has the 36 samples, each once
    batches   the batch of every step has the samples of the run of one rank, in any order
    order     and in the same order, rank by rank
    bits      and every sample has the same bits as there, augmentation included

After a resumption the same is asked of the steps that were left, beside the run of 2 ranks that was not stopped.

Every loader is used as its documentation says. LitData and Streaming draw no random numbers for augmentation: the noise comes
from torch's generator, which every process seeds alike, as MONAI's set_determinism does for MONAI. The result goes to
bench/results/resume_peers.json."""
from __future__ import annotations

import importlib
import json
import os
import pathlib
import signal
import socket
import sys
import tempfile
import time
import traceback
from importlib import metadata

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT = ROOT / "bench/results/resume_peers.json"
CASES, BATCH, SEED, SHAPE = 36, 12, 42, (8, 8, 8)
PACKAGES = {"suture": "suture", "litdata": "litdata", "streaming": "mosaicml-streaming", "monai": "monai"}


def scans():
    import numpy as np

    random = np.random.default_rng(3)
    return [random.normal(0, 1, SHAPE).astype(np.float32) for _ in range(CASES)]


# Each loader gives (ids, images) for each step of this rank, and its state where it has one.

def of_suture(folder, rank, world, state):
    import suture as st
    from suture.feed.feed import Feed

    cohort = {f"{k:02}": {"image": st.Volume(scan, axes="zyx", spacing=dict(z=1, y=1, x=1))} for k, scan in enumerate(scans())}
    feed = Feed(cohort, st.Pipeline(image=[st.random_crop(size=8), st.gaussian_noise(sigma=.1)]), batch=BATCH, seed=SEED, threads=1, bar=False)
    if state:
        feed.load_state_dict(state)
    for batch in feed:
        yield [int(k) for k in batch["id"]], batch["image"], feed.state_dict


def noisy(item):
    import torch

    return {"id": item["id"], "image": torch.as_tensor(item["image"]) + .1 * torch.randn(SHAPE)}


def item(k):
    return {"id": k, "image": scans()[k]}


def prepare_litdata(folder):
    import litdata

    litdata.optimize(item, list(range(CASES)), output_dir=str(folder / "litdata"), chunk_size=6, num_workers=1, start_method="fork")


def of_litdata(folder, rank, world, state):
    import litdata

    data = litdata.StreamingDataset(str(folder / "litdata"), shuffle=True, seed=SEED, drop_last=False, transform=noisy)
    loader = litdata.StreamingDataLoader(data, batch_size=BATCH // world, num_workers=1)
    if state:
        loader.load_state_dict(state)
    for batch in loader:
        yield batch["id"].tolist(), batch["image"], loader.state_dict


def prepare_streaming(folder):
    from streaming import MDSWriter

    with MDSWriter(out=str(folder / "streaming"), columns={"id": "int", "image": "ndarray:float32:" + ",".join(map(str, SHAPE))}, size_limit=8000) as writer:
        for k in range(CASES):
            writer.write(item(k))


def of_streaming(folder, rank, world, state):
    from streaming import StreamingDataLoader, StreamingDataset

    class Noisy(StreamingDataset):
        def __getitem__(self, at):
            return noisy(super().__getitem__(at))

    data = Noisy(local=str(folder / "streaming"), batch_size=BATCH // world, shuffle=True, shuffle_seed=SEED, num_canonical_nodes=1)
    loader = StreamingDataLoader(data, batch_size=BATCH // world, num_workers=0)
    if state:
        loader.load_state_dict(state)
    for batch in loader:
        yield batch["id"].tolist(), batch["image"], loader.state_dict


def of_monai(folder, rank, world, state):
    import monai
    from torch.utils.data.distributed import DistributedSampler

    monai.utils.set_determinism(SEED)
    transform = monai.transforms.Compose([monai.transforms.EnsureTyped("image"), monai.transforms.RandGaussianNoised("image", prob=1, std=.1)])
    data = monai.data.CacheDataset([item(k) for k in range(CASES)], transform, progress=False)
    loader = monai.data.DataLoader(data, batch_size=BATCH // world, sampler=DistributedSampler(data, num_replicas=world, rank=rank, seed=SEED))
    for batch in loader:
        yield batch["id"].tolist(), batch["image"], None


def rank_of(loader, folder, stop, resume):
    """One rank: writes the ids and the hashes of each of its steps, and its state after the last."""
    import hashlib

    import torch

    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(SEED)
    state = json.loads((folder / "state.json").read_text()) if resume else None
    steps = []
    for ids, images, state_of in globals()[f"of_{loader}"](folder, rank, world, state):
        steps.append([[int(k), hashlib.sha256(torch.as_tensor(image).contiguous().numpy().tobytes()).hexdigest()[:16]] for k, image in zip(ids, images)])
        if len(steps) == stop:
            if rank == 0 and state_of is not None:
                (folder / "state.json").write_text(json.dumps(state_of()))
            break
    (folder / f"rank-{rank}.json").write_text(json.dumps(steps))
    os._exit(0)  # workers of a loader that was left in mid-epoch need not be waited for


def _forked(loader, folder, stop, resume, rank, environment):
    """A rank in a process of its own, forked after the imports, which take longest."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.environ.update(environment)
        told = os.open(folder / f"told-{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(told, 1)
        os.dup2(told, 2)
        rank_of(loader, folder, stop, resume)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def run(loader, folder, world, stop=0, resume=False):
    """The global batches of a run, or one sentence that says why there are none."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for old in folder.glob("rank-*.json"):
        old.unlink()
    common = {**os.environ, "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
              "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    common = {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
              "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [_forked(loader, folder, stop, resume, rank, {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(world)]
    end, left = time.monotonic() + 300, dict(enumerate(ranks))
    failed = {}
    while left and time.monotonic() < end and not failed:
        for rank, pid in list(left.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del left[rank]
                if status:
                    failed[rank] = ((folder / f"told-{rank}").read_text().strip() or f"ended with status {status}").splitlines()[-1]
        time.sleep(.01)
    for rank, pid in left.items():
        failed.setdefault(rank, "did not end within 300 s")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if failed:
        return f"failed: {failed[min(failed)][:200]}"
    parts = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(world)]
    return [[sample for part in parts if step < len(part) for sample in part[step]] for step in range(max(map(len, parts)))]


def compared(found, alone):
    """What holds of some steps beside those of one rank."""
    if isinstance(found, str):
        return {"ran": found}
    ids, known = ([[k for k, _ in step] for step in steps] for steps in (found, alone))
    flat = sorted(k for step in ids for k in step)
    bits = dict(sample for step in alone for sample in step)
    return {"samples": flat == sorted(k for step in known for k in step), "batches": [sorted(step) for step in ids] == [sorted(step) for step in known],
            "order": ids == known, "bits": all(bits.get(k) == value for step in found for k, value in step),
            "missing": len({k for step in known for k in step} - set(flat)), "twice": len(flat) - len(set(flat))}


def test(loader):
    importlib.import_module("torch").set_num_threads(1)
    importlib.import_module("suture.feed.feed" if loader == "suture" else loader)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if f"prepare_{loader}" in globals():
            globals()[f"prepare_{loader}"](folder)
        alone = run(loader, folder, 1)
        if isinstance(alone, str):
            return {"1 rank": {"ran": alone}}
        assert sorted(k for step in alone for k, _ in step) == list(range(CASES))
        out = {"the same again": compared(run(loader, folder, 1), alone)}
        whole = run(loader, folder, 2)
        out["2 ranks"] = compared(whole, alone)
        for world in (3, 4, 5):
            if BATCH % world and loader != "suture":
                out[f"{world} ranks"] = {"ran": "a batch of 12 cannot be said: each rank has a batch size, the same for all"}
            else:
                out[f"{world} ranks"] = compared(run(loader, folder, world), alone)
        for world in (2, 1, 3):
            (folder / "state.json").unlink(missing_ok=True)
            first = run(loader, folder, 2, stop=1)
            name = f"2 ranks, then {world}"
            if isinstance(first, str) or isinstance(whole, str):
                out[name] = {"ran": first if isinstance(first, str) else whole}
            elif not (folder / "state.json").is_file():
                out[name] = {"ran": "there is no state to go on from"}
            else:
                out[name] = compared(run(loader, folder, world, resume=True), whole[1:])
        return out


def main():
    sys.path.insert(0, str(ROOT / "python"))
    for loader in sys.argv[1:] or list(PACKAGES):
        found = {"version": "this checkout" if loader == "suture" else metadata.version(PACKAGES[loader]), **test(loader)}
        print(loader, json.dumps(found, indent=1), flush=True)
        known = {**(json.loads(RESULT.read_text()) if RESULT.is_file() else {}), loader: found}
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
