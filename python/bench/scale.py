# SPDX-License-Identifier: Apache-2.0
"""What a large cohort costs: measures the parts on this machine, and simulates 100,000 studies, 512 ranks and 64 nodes with them.

    python python/bench/scale.py --measure            measures the parts, then simulates with them
    python python/bench/scale.py                      simulates with the parts that bench/results/scale.json holds
    python python/bench/scale.py --picture FILE.png   draws what was simulated

The result goes to bench/results/scale.json: under "measured" what ran on the machine named there, under "published" what others
measured, with its source, under "assumed" what is a choice, and under "simulated" what follows from these by discrete events."""
from __future__ import annotations

import argparse
import hashlib
import heapq
import json
import os
import pathlib
import platform
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
RESULT = ROOT / "bench/results/scale.json"
STUDIES, RANKS, PAIRS = 100_000, 512, 48_884

PUBLISHED = {
    "nnunet": {"source": "MIC-DKFZ/nnUNet issue 3063: one A100, 3d_fullres, batch 2, 8 CPUs, 8 workers", "step_ms": 130.7, "iteration_ms": 302.4,
               "cpus": 8, "cpu_share": .945, "transforms_ms_per_sample": 1022.9, "augmentation_on_gpu_ms": 13.5, "gpu_share": .399},
}
ASSUMED = {
    "gpus_per_node": 8, "cores_per_node": 64, "batch_per_gpu": 2, "ahead": 8,
    "study_voxels": [512, 512, 300], "study_spread": .6, "brats_voxels": [4, 155, 240, 240],
    "node_mean_time_between_failures_h": 24 * 365, "checkpoint_every_min": 30, "restart_min": 5,
    "slow_read_probability": .001, "slow_read_ms": 1000, "jitter_of_a_step": .02, "seed": 1,
}


# Measured on this machine.

def _processor_ms(call, times):
    """The median of processor milliseconds of a call, which other programs on the machine disturb less than its duration."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        call()
        found.append((time.process_time() - begin) * 1e3)
    return float(np.median(found))


def phantom(shape, seed):
    """A scan with the noise and the smoothness of CT: a body of soft tissue in air, 12 HU of noise, in int16."""
    random = np.random.default_rng(seed)
    out = np.empty(shape, np.int16)
    y, x = np.ogrid[-1:1:shape[1] * 1j, -1:1:shape[2] * 1j]
    body = (y / .7) ** 2 + (x / .85) ** 2 < 1
    for k, z in enumerate(np.linspace(-1, 1, shape[0])):
        organs = 60 * np.sin(5 * z) * np.cos(7 * y) * np.sin(6 * x)
        out[k] = np.where(body, 40 + organs + random.normal(0, 12, shape[1:]), random.normal(-1000, 4, shape[1:]))
    return out


def measure():
    """The parts, by running them."""
    import nibabel

    from suture import store
    from suture.feed.order import Order, samples

    out = {"machine": {"processor": _processor(), "cores": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version(),
                       "note": "processor time, not duration: other programs ran beside this one"}}
    out["permutation_us_per_position"] = {
        str(size): round(_processor_ms(lambda size=size: samples(42, 3, np.arange(min(size, 20_000)), size), 5) / min(size, 20_000) * 1e3, 3)
        for size in (10**3, 10**4, STUDIES, 10**6, 10**9, 2**62)}
    order = Order(STUDIES, 1024, 42)
    out["share_of_a_step_ms"] = {str(world): round(_processor_ms(lambda world=world: order.at(10**6, 3, world), 5), 3) for world in (8, 64, RANKS)}
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        out["manifests"] = _measure_manifests(place / "manifests")
        shape = (176, 224, 224)
        (place / "scans").mkdir()
        scan = phantom(shape, 1)
        nibabel.save(nibabel.Nifti1Image(scan.T, np.diag([.8, .8, 1, 1])), place / "scans/a.nii.gz")
        (place / "first").mkdir()
        nibabel.save(nibabel.Nifti1Image(scan[:16, :16, :16], np.eye(4)), place / "first/a.nii.gz")
        store.build(place / "first", out=place / "first.zarr")  # imports what it needs
        begin = time.process_time()
        store.build(place / "scans", out=place / "store.zarr")
        spent = time.process_time() - begin
        case = store.open(place / "store.zarr")["a"]
        files = [path.stat().st_size for path in (place / "store.zarr/a").rglob("*") if path.is_file()]
        out["build"] = {"core_s_per_gvoxel": round(spent / scan.size * 1e9, 2), "voxels": list(shape), "bytes_stored_per_voxel": round(sum(files) / scan.size, 3),
                        "bytes_source_per_voxel": round((place / "scans/a.nii.gz").stat().st_size / scan.size, 3), "files_a_case": len(files)}
        out["boxes"] = _measure_boxes(case.volume("image").array)
    return out


def _measure_boxes(source):
    random, size, found = np.random.default_rng(0), 160, []
    box = np.empty((size,) * 3, np.int16)
    for _ in range(60):
        low = [int(random.integers(0, n - size + 1)) for n in source.shape[-3:]]
        begin = time.process_time()
        source.read(tuple(low), tuple(a + size for a in low), box)
        found.append((time.process_time() - begin) * 1e3)
    found = np.array(found[10:])
    return {"what": "160^3 int16 at random places, 64^3 chunks in one shard, blosc-zstd, warm", "core_ms": round(float(np.median(found)), 2),
            "mean_core_ms": round(float(found.mean()), 2), "spread": round(float(found.std() / found.mean()), 3),
            "mb_per_core_s": round(box.nbytes / 1e3 / float(np.median(found)), 1)}


def _measure_manifests(place):
    """Files as a store has them for so many cases of 832 chunks (512 x 512 x 800, 64^3) and as many of labels: the time to hash
    them. python/bench/index.py measures the index."""
    found = {}
    chunk = [0, 123456, hashlib.sha256(b"").hexdigest()]
    record = {"suture_store": 1, "files": {name: {"bytes": 1, "sha256": chunk[2], "chunks": [chunk] * 832} for name in ("image/0/c/0", "labels/0/c/0")}}
    size = len(json.dumps(record, separators=(",", ":")))
    place.mkdir()
    number = 500
    for k in range(number):
        (place / f"{k}.json").write_text(json.dumps({**record, "case": str(k)}))
    found["bytes_a_case"] = size
    found["hash_ms_a_case"] = round(_processor_ms(lambda: [hashlib.sha256((place / f"{k}.json").read_bytes()).hexdigest() for k in range(number)], 3) / number, 4)
    return found


def _processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


# Simulated by discrete events.

def train(gpus, cores, work_ms, step_ms, *, nodes=1, batches=400, units=2, ahead=8, spread=.1, slow=0.0, slow_ms=0.0, jitter=.02, seed=1):
    """GPUs that step together, on nodes of so many GPUs and cores each; the cores of a node feed its GPUs.

    Every GPU needs a batch of `units` pieces of work for each step. A core takes the piece that is needed first. Batches are made
    `ahead` steps ahead at most. A step begins when all GPUs have their batch and the step before has ended, and lasts as long as
    the slowest of them.

    Returns
    -------
    float
        The share of time that the GPUs compute.
    """
    random = np.random.default_rng(seed)
    sigma = np.sqrt(np.log(1 + spread**2))
    pools = [[0.0] * cores for _ in range(nodes)]  # when each core of each node is done with what it has
    begun, end, busy = [], 0.0, 0.0
    for step in range(batches):
        work = work_ms / units * np.exp(random.normal(-sigma**2 / 2, sigma, (nodes, gpus * units)))
        work += slow_ms * (random.random(work.shape) < slow)
        may = begun[step - ahead] if step >= ahead else 0.0  # a place in memory is free when the step before has taken its batch
        ready = 0.0
        for free, pieces in zip(pools, work.tolist()):
            for piece in pieces:
                done = max(free[0], may) + piece
                heapq.heapreplace(free, done)
                ready = max(ready, done)
        begin = max(end, ready)
        length = step_ms * (1 + abs(random.normal(0, jitter, nodes * gpus)).max())
        begun.append(begin)
        if step >= batches // 4:  # what the first fill took is no steady state
            busy += length
        else:
            mark = begin + length
        end = begin + length
    return busy / (end - mark)


def train_stock(gpus, cores, work_ms, step_ms, **settings):
    """`train` with processes that each make a whole batch, one a core, and as many finished batches kept as nnU-Net keeps."""
    workers = max(cores // gpus, 1)
    return train(gpus, cores, work_ms, step_ms, **{**settings, "units": 1, "ahead": workers + max(6, workers // 2)})


def cores_needed(kind, gpus, work_ms, step_ms, share, most=1024, **settings):
    """The fewest cores with which the GPUs compute for at least a share of the time; None if `most` do not suffice."""
    low, high = 1, most
    if kind(gpus, most, work_ms, step_ms, **settings) < share:
        return None
    while low < high:
        middle = (low + high) // 2
        if kind(gpus, middle, work_ms, step_ms, **settings) >= share:
            high = middle
        else:
            low = middle + 1
    return low


def build(costs_s, workers, *, shared, mean_time_between_failures_s=None, restart_s=0.0, seed=1):
    """A cohort that workers make, a case at a time; a worker that fails loses the case in its hands and comes back.

    Parameters
    ----------
    shared : bool
        True: workers take the next case from one list, as Dask has it. False: worker r makes the cases r, r + workers, ...

    Returns
    -------
    dict
        The time until the last case, the share of time at work, and cases that were begun more than once.
    """
    random = np.random.default_rng(seed)
    rate = 0 if mean_time_between_failures_s is None else 1 / mean_time_between_failures_s
    again = 0

    def cost(seconds):
        nonlocal again
        total = seconds
        while rate and random.random() < 1 - np.exp(-seconds * rate):
            total += random.random() * seconds + restart_s
            again += 1
        return total

    ends = [0.0] * workers
    if shared:
        heapq.heapify(ends)
        for seconds in costs_s:
            heapq.heappush(ends, heapq.heappop(ends) + cost(seconds))
    else:
        for k, seconds in enumerate(costs_s):
            ends[k % workers] += cost(seconds)
    return {"hours": round(max(ends) / 3600, 3), "share_at_work": round(float(np.sum(costs_s)) / (workers * max(ends)), 3), "begun_again": again}


def simulate(measured):
    """Everything that docs/scale.md says."""
    a, nnunet = ASSUMED, PUBLISHED["nnunet"]
    random = np.random.default_rng(a["seed"])
    step = nnunet["step_ms"]
    box = measured["boxes"]["mean_core_ms"]
    # Labels have half the bytes of the image, and are taken to cost half as much to read. The feed itself adds 5 %.
    feed_ms = a["batch_per_gpu"] * box * 1.5 * 1.05
    stock_ms = nnunet["iteration_ms"] * nnunet["cpus"] * nnunet["cpu_share"]
    common = {"ahead": a["ahead"], "jitter": a["jitter_of_a_step"], "spread": measured["boxes"]["spread"]}
    out = {"core_ms_a_batch": {"feed": round(feed_ms, 1), "stock": round(stock_ms, 1)}}
    out["check_of_the_stock_loader"] = {"simulated_busy_share": round(train_stock(1, 8, stock_ms, step, jitter=a["jitter_of_a_step"]), 3),
                                        "published_busy_share": round(step / nnunet["iteration_ms"], 3)}
    out["cores_for_90_percent"] = {f"{gpus} GPUs": {"feed": cores_needed(train, gpus, feed_ms, step, .9, **common),
                                                   "feed_slow_reads": cores_needed(train, gpus, feed_ms, step, .9, slow=a["slow_read_probability"],
                                                                                  slow_ms=a["slow_read_ms"], **common),
                                                   "stock": cores_needed(train_stock, gpus, stock_ms, step, .9, **common)} for gpus in (1, 2, 4, 8)}
    grid = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
    out["busy_share_of_8_gpus"] = {"cores": grid, "feed": [round(train(8, c, feed_ms, step, **common), 3) for c in grid],
                                   "stock": [round(train_stock(8, c, stock_ms, step, **common), 3) for c in grid]}
    slow = {"slow": a["slow_read_probability"], "slow_ms": a["slow_read_ms"]}
    out["stragglers_busy_share"] = {  # 512 GPUs on 64 nodes with 8 cores a node for the feed, one read in 1000 takes a second
        f"{ahead} ahead": round(train(8, 8, feed_ms, step, nodes=RANKS // 8, batches=120, **{**common, "ahead": ahead}, **slow), 3) for ahead in (1, 2, 4, 8, 16, 32)}
    out["stragglers_busy_share"]["none are slow, 8 ahead"] = round(train(8, 8, feed_ms, step, nodes=RANKS // 8, batches=120, **common), 3)
    out["ranks_busy_share"] = {f"{8 * nodes} ranks": round(train(8, 8, feed_ms, step, nodes=nodes, batches=120, **common, **slow), 3)
                               for nodes in (1, 4, 16, RANKS // 8)}

    voxels = np.prod(a["study_voxels"]) * np.exp(random.normal(-a["study_spread"]**2 / 2, a["study_spread"], STUDIES))
    costs = voxels / 1e9 * measured["build"]["core_s_per_gvoxel"]
    out["cohort"] = {"studies": STUDIES, "core_s_a_study": round(float(costs.mean()), 2), "core_hours": round(float(costs.sum()) / 3600, 1),
                     "stored_tb": round(float(voxels.sum()) * measured["build"]["bytes_stored_per_voxel"] / 1e12, 2),
                     "files": STUDIES * measured["build"]["files_a_case"]}
    for workers in (8, 64, RANKS):
        out["cohort"][f"{workers} workers"] = {
            "by_rank": build(costs, workers, shared=False), "by_dask": build(costs, workers, shared=True),
            "by_dask_losing_workers": build(costs, workers, shared=True, mean_time_between_failures_s=3600, restart_s=60)}
    manifests = measured["manifests"]
    out["index"] = {f"{cases} studies": {"manifests_gb": round(cases * manifests["bytes_a_case"] / 1e9, 2),
                                         "hash_core_s": round(cases * manifests["hash_ms_a_case"] / 1e3, 2)} for cases in (1000, 10_000, STUDIES)}

    brats = np.prod(a["brats_voxels"]) / 1e9 * measured["build"]["core_s_per_gvoxel"] * np.exp(random.normal(-.005, .1, PAIRS))
    out["brats"] = {"pairs": PAIRS, "build_core_s_a_pair": round(float(brats.mean()), 2)}
    per_node, gpus = a["cores_per_node"], a["gpus_per_node"]
    for nodes in (1, 2, 4, 8, 16, 32, 64):
        feeding = train(gpus, per_node, feed_ms * 4, step, nodes=nodes, batches=80, **common, **slow)  # four channels
        stock = train_stock(gpus, per_node, stock_ms, step, nodes=nodes, batches=80, **common, **slow)
        steps = -(-PAIRS // (gpus * nodes * a["batch_per_gpu"]))
        out["brats"][f"{nodes} nodes"] = {"build_h": build(brats, per_node * nodes, shared=True)["hours"], "steps_an_epoch": steps,
                                          "feed_busy_share": round(feeding, 3), "feed_epoch_s": round(steps * step / 1e3 / feeding, 1),
                                          "stock_busy_share": round(stock, 3), "stock_epoch_s": round(steps * step / 1e3 / stock, 1)}
    out["restart"] = _restarts(step, a)
    return out


def _restarts(step_ms, a):
    """What failures cost 64 nodes in a week: steps since the last checkpoint are made again, and nothing is read to find the place."""
    random = np.random.default_rng(a["seed"])
    nodes = RANKS // a["gpus_per_node"]
    week, checkpoint = 7 * 24 * 60, a["checkpoint_every_min"]
    found = {}
    for name, skip_min in (("by the step alone", 0.0), ("by loading again what came before in the epoch", None)):
        lost, failures, runs = 0.0, 0, 200
        for _ in range(runs):
            now = 0.0
            while True:
                now += random.exponential(a["node_mean_time_between_failures_h"] * 60 / nodes)
                if now >= week:
                    break
                failures += 1
                # An epoch of 100,000 studies and 1024 a step has 98 steps; a loader that has no place in it reads half of it again.
                again = skip_min if skip_min is not None else 49 * step_ms / 60e3
                lost += a["restart_min"] + random.uniform(0, checkpoint) + again
        found[name] = {"failures_a_week": round(failures / runs, 2), "lost_share": round(lost / runs / week, 5)}
    return found


def picture(result, path):
    """Share of time that 8 GPUs compute over cores, and hours of a cohort over workers."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    simulated = result["simulated"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    busy = simulated["busy_share_of_8_gpus"]
    for name, what, color in (("feed", "feed", "#1b6ca8"), ("stock", "stock loader", "#c1440e")):
        left.plot(busy["cores"], [100 * v for v in busy[name]], "o-", label=what, color=color)
    left.axhline(90, color="gray", lw=.8, ls="--")
    left.set(xscale="log", xlabel="processor cores for 8 GPUs", ylabel="time that the GPUs compute, %", ylim=(0, 103), title="8 GPUs, steps of 131 ms (simulated)")
    left.set_xticks([1, 2, 4, 8, 16, 32, 64, 128], [1, 2, 4, 8, 16, 32, 64, 128])
    left.minorticks_off()
    left.legend(loc=(.35, .55), fontsize=8)
    nodes = [int(name.split()[0]) for name in simulated["brats"] if name.endswith("nodes")]
    for name, what, color in (("feed_epoch_s", "suture's feed", "#1b6ca8"), ("stock_epoch_s", "stock loader of nnU-Net", "#c1440e")):
        right.plot(nodes, [simulated["brats"][f"{n} nodes"][name] for n in nodes], "o-", label=what, color=color)
    right.set(xscale="log", yscale="log", xlabel="nodes of 8 GPUs and 64 cores", ylabel="seconds an epoch", title="48,884 pairs of four channels (simulated)")
    right.set_xticks(nodes, nodes)
    right.minorticks_off()
    right.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--measure", action="store_true", help="measure the parts on this machine first")
    arguments.add_argument("--picture", help="draw what was simulated")
    given = arguments.parse_args()
    known = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    if given.measure or "measured" not in known:
        known["measured"] = measure()
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(known, indent=1) + "\n")
    result = {"measured": known["measured"], "published": PUBLISHED, "assumed": ASSUMED, "simulated": simulate(known["measured"])}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["simulated"], indent=1))
    if given.picture:
        picture(result, given.picture)


if __name__ == "__main__":
    main()
