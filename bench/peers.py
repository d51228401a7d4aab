#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suture beside other libraries on the same GPU in the same run: two turned CT patches with their
labels, and the Macenko normalization of stained tiles. Needs NumPy and, for each peer, what it
is made of; a peer that is missing is named in one line.

    peers.py --out FILE [--seconds N] [--tiny] [--cpu]

suture's part is the program micro/device_work of the bundle, or another (--program), which also
says what the volumes, the maps and the parameters are. Every peer gets the same voxels on the
device, windows, turns, crops, applies the same gamma and leaves float16 patches and uint8 labels;
each is written as a good user of it would in an afternoon: it reads only the box under the patches,
in one batch. FILE gets a line of JSON for each as soon as it is there, with microseconds, the
greatest error of the image against the same arithmetic in double precision, beside suture's own,
and how many labels differ. --cpu runs peers on the CPU, where times mean nothing, and --tiny takes
small extents.
"""
import argparse
import importlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--out", type=pathlib.Path, required=True)
parser.add_argument("--seconds", type=float, default=90)
parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path(__file__).parent / "micro" / "device_work")
parser.add_argument("--tiny", action="store_true")
parser.add_argument("--cpu", action="store_true")
chosen = parser.parse_args()
deadline = time.monotonic() + chosen.seconds
if chosen.cpu:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported


def say(**line):
    with chosen.out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def module(name):
    """A module, or None where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception:  # whatever a broken installation raises
        return None


np, torch = module("numpy"), module("torch")
if np is None or torch is None:
    say(peer="all", left_out="python3 has no " + ("NumPy" if np is None else "PyTorch"))
    sys.exit(0)
device = torch.device("cpu" if chosen.cpu or not torch.cuda.is_available() else "cuda")
emulated = device.type == "cpu"
if emulated and not chosen.cpu:
    say(peer="all", left_out="PyTorch sees no GPU")
    sys.exit(0)


def wait():
    if device.type == "cuda":
        torch.cuda.synchronize()


def microseconds(run):
    """Median of several runs behind a warm one, by events on a GPU; fewer of what takes seconds."""
    run()
    samples, enough = [], time.monotonic() + 5
    while len(samples) < (1 if chosen.tiny else 20) and (not samples or time.monotonic() < enough):
        wait()
        start = time.perf_counter()
        if device.type == "cuda":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            wait()
            samples.append(1e3 * begin.elapsed_time(end))
        else:
            run()
            samples.append(1e6 * (time.perf_counter() - start))
    return statistics.median(samples)


def in_graph(run):
    """The same work as a captured graph, which is launched with one call; itself where there is no GPU."""
    if device.type != "cuda":
        return run
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


class Patches:
    """The work on CT: volumes, maps, and the box of the volumes that the patches read."""

    def __init__(self, folder, facts):
        shape = facts["volume"]
        self.low, self.high, self.gamma = facts["low"], facts["high"], facts["gamma"]
        self.size = facts["patch"]
        self.matrices = np.array(facts["matrices"])  # sample, row, column: output index -> index of the volume
        self.count = len(self.matrices)
        image = np.fromfile(folder / "ct.raw", np.int16).reshape(shape)
        labels = np.fromfile(folder / "ct_labels.raw", np.uint8).reshape(shape)
        corners = np.array(np.meshgrid(*[[0, n - 1] for n in self.size], indexing="ij")).reshape(3, -1)
        places = self.matrices[:, :, :3] @ corners + self.matrices[:, :, 3:]
        start = np.maximum(np.floor(places.min(axis=(0, 2))).astype(int) - 1, 0)
        stop = np.minimum(np.ceil(places.max(axis=(0, 2))).astype(int) + 2, shape)
        box = tuple(slice(a, b) for a, b in zip(start, stop))
        self.shape = tuple(stop - start)
        in_box = self.matrices.copy()
        in_box[:, :, 3] -= start
        self.in_box = in_box
        # As many copies as suture's volumes, so that a cache holds them no more than its.
        def on_device(array):
            return [torch.from_numpy(np.ascontiguousarray(array)).to(device) for _ in range(facts["sets"])]
        batch = (self.count, 1, *self.shape)
        self.images = [t.expand(batch).contiguous() for t in on_device(image[box])]
        self.labels = [t.expand(batch).contiguous() for t in on_device(labels[box])]
        self.made = torch.from_numpy(np.fromfile(folder / "ct_made.raw", np.float16).reshape(self.count, *self.size))
        self.labels_made = torch.from_numpy(
            np.fromfile(folder / "ct_labels_made.raw", np.uint8).reshape(self.count, *self.size))
        self.expected, self.labels_expected, self.near_a_tie = self.in_double()

    def in_double(self):
        """Both patches by the definition, in double precision, and where a label is within 1e-4 voxel of another's."""
        z, y, x = (torch.arange(n, dtype=torch.float64, device=device) for n in self.size)
        images, labels, ties = [], [], []
        for i in range(self.count):
            m = torch.from_numpy(self.in_box[i]).to(device)
            c = [m[k, 0] * z[:, None, None] + m[k, 1] * y[None, :, None] + m[k, 2] * x[None, None, :] + m[k, 3]
                 for k in range(3)]
            values = ((self.images[0][i, 0].to(torch.float64) - self.low) / (self.high - self.low)).clamp(0, 1)

            def read(source, at):
                inside = torch.ones_like(at[0], dtype=torch.bool)
                index = torch.zeros_like(at[0])
                for k in range(3):
                    inside &= (at[k] >= 0) & (at[k] < self.shape[k])
                    index = index * self.shape[k] + at[k].clamp(0, self.shape[k] - 1)
                return torch.where(inside, source.reshape(-1)[index], torch.zeros_like(source.reshape(-1)[:1]))
            base = [torch.floor(v).long() for v in c]
            part = [v - b for v, b in zip(c, base)]
            total = torch.zeros_like(c[0])
            for corner in range(8):
                bits = (corner >> 2 & 1, corner >> 1 & 1, corner & 1)
                weight = torch.ones_like(c[0])
                for k in range(3):
                    weight = weight * (part[k] if bits[k] else 1 - part[k])
                total += weight * read(values, [b + bit for b, bit in zip(base, bits)])
            images.append(total.abs() ** self.gamma)
            labels.append(read(self.labels[0][i, 0], [torch.floor(v + .5).long() for v in c]))
            ties.append(torch.stack([(v - b - .5).abs() < 1e-4 for v, b in zip(c, base)]).any(0))
        return torch.stack(images), torch.stack(labels), torch.stack(ties)

    def errors(self, image, labels):
        found = image.to(device).to(torch.float64).reshape(self.expected.shape)
        wrong = (labels.to(device).reshape(self.labels_expected.shape) != self.labels_expected) & ~self.near_a_tie
        return {"error": float((found - self.expected).abs().max()), "labels_that_differ": int(wrong.sum())}

    def finished(self, x, y):
        """What a peer has turned, with gamma, in the types of a patch."""
        return (x ** self.gamma).to(torch.float16), y.to(torch.uint8)

    def theta(self):
        """The maps as affine_grid wants them: [-1, 1] to [-1, 1], x first, ends of an axis at its outer edges."""
        source, patch = np.array(self.shape, float), np.array(self.size, float)
        scale = self.in_box[:, :, :3] * patch / source[:, None]
        offset = (2 * (self.in_box[:, :, :3] @ ((patch - 1) / 2) + self.in_box[:, :, 3]) + 1) / source - 1
        theta = np.concatenate([scale[:, ::-1, ::-1], offset[:, ::-1, None]], 2)
        return torch.from_numpy(theta.astype(np.float32)).to(device)

    def windowed(self, image):
        return ((image.to(torch.float32) - self.low) * (1 / (self.high - self.low))).clamp(0, 1)

    def report(self, peer, chain, graph):
        """chain(image, labels) gives both patches; every set of volumes takes its turn."""
        def turn():
            return [chain(image, labels) for image, labels in zip(self.images, self.labels)]
        first = chain(self.images[0], self.labels[0])
        run = in_graph(turn) if graph else turn
        say(peer=peer, case="CT", us=microseconds(run) / len(self.images), suture_us=suture["ct"]["us"],
            **self.errors(*first), suture=self.errors(self.made, self.labels_made), emulated=emulated)


def chain_of_torch(p):
    theta, size = p.theta(), (p.count, 1, *p.size)
    functional = torch.nn.functional

    def chain(image, labels):
        grid = functional.affine_grid(theta, size, align_corners=False)
        x = functional.grid_sample(p.windowed(image), grid, "bilinear", "zeros", False)
        y = functional.grid_sample(labels.to(torch.float32), grid, "nearest", "zeros", False)
        return p.finished(x, y)
    return chain


def grid_sample_eager(p):
    p.report(f"PyTorch {torch.__version__}, grid_sample, eager", chain_of_torch(p), False)


def grid_sample_compiled(p):
    p.report(f"PyTorch {torch.__version__}, grid_sample, compiled, in a graph", torch.compile(chain_of_torch(p)), True)


def triton_kernel(p):
    triton, tl = module("triton"), module("triton.language")
    if triton is None or tl is None:
        return "python3 has no Triton"
    if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        return "Triton needs a GPU"
    source = pathlib.Path(__file__).with_name("peers_triton.py")
    sys.path.insert(0, str(source.parent))
    turn = importlib.import_module("peers_triton").turned
    matrices = torch.from_numpy(p.in_box.astype(np.float32)).to(device)

    def chain(image, labels):
        return turn(image, labels, matrices, p.size, p.low, 1 / (p.high - p.low), p.gamma)
    p.report(f"Triton {triton.__version__}, one kernel, in a graph", chain, True)
    return None


def kornia_warp(p):
    kornia = module("kornia")
    if kornia is None:
        return "python3 has no Kornia"
    # It wants the map from the source to the patch, x first, and turns it around itself.
    square = np.tile(np.eye(4), (p.count, 1, 1))
    square[:, :3] = p.in_box
    push = np.linalg.inv(square)[:, :3]
    push = np.concatenate([push[:, ::-1, 2::-1], push[:, ::-1, 3:]], 2)
    push = torch.from_numpy(push.astype(np.float32)).to(device)
    warp = kornia.geometry.transform.warp_affine3d

    def chain(image, labels):
        x = warp(p.windowed(image), push, tuple(p.size))
        y = warp(labels.to(torch.float32), push, tuple(p.size), flags="nearest")
        return p.finished(x, y)
    p.report(f"Kornia {kornia.__version__}, warp_affine3d", chain, False)
    return None


def monai_affine(p):
    monai, layers = module("monai"), module("monai.networks.layers")
    if layers is None:
        return "python3 has no MONAI"
    theta = torch.from_numpy(p.in_box.astype(np.float32)).to(device)
    turn = {mode: layers.AffineTransform(tuple(p.size), mode=mode, align_corners=False)
            for mode in ("bilinear", "nearest")}

    def chain(image, labels):
        x = turn["bilinear"](p.windowed(image), theta)
        y = turn["nearest"](labels.to(torch.float32), theta)
        return p.finished(x, y)
    p.report(f"MONAI {monai.__version__}, AffineTransform", chain, False)
    return None


def batchgenerators(p):
    found = module("batchgeneratorsv2.transforms.spatial.spatial")
    if found is None:
        return "python3 has no batchgeneratorsv2"
    transform = found.SpatialTransform(patch_size=tuple(p.size), patch_center_dist_from_border=0, random_crop=False,
                                       p_elastic_deform=0, p_rotation=1, p_scaling=0, mode_seg="nearest",
                                       border_mode_seg="zeros", padding_mode_image="zeros", align_corners=False)
    # It draws a map and makes a grid of it once for image and labels; here the grid is that of the map that all take.
    theta, size = p.theta(), (p.count, 1, *p.size)

    def chain(image, labels):
        grids = torch.nn.functional.affine_grid(theta, size, align_corners=False)
        x = torch.stack([transform._apply_to_image(p.windowed(v), grid=g) for v, g in zip(image, grids)])
        y = torch.stack([transform._apply_to_segmentation(v.to(torch.int16), grid=g) for v, g in zip(labels, grids)])
        return p.finished(x, y)
    p.report("batchgeneratorsv2, SpatialTransform", chain, False)
    return None


REFERENCE_STAINS = [[0.5626, 0.2159], [0.7201, 0.8012], [0.4062, 0.5581]]
REFERENCE_CONCENTRATIONS = [1.9705, 1.0308]


def macenko(xp, tiles, dtype):
    """Tiles of RGB normalized as torchstain does it, with the array library xp: optical density, the plane of the two
    largest eigenvectors, angles at the percentiles 1 and 99, concentrations by least squares, scaled so that
    their 99th percentiles are the reference's."""
    count = tiles.shape[0]
    density = -xp.log((tiles.reshape(count, -1, 3).astype(dtype) + 1) / 240)
    light = xp.any(density < 0.15, axis=2)
    out = xp.empty(tiles.shape, xp.uint8)
    stains, scales = xp.asarray(REFERENCE_STAINS, dtype), xp.asarray(REFERENCE_CONCENTRATIONS, dtype)
    for i in range(count):
        tissue = density[i][~light[i]]
        vectors = xp.linalg.eigh(xp.cov(tissue.T))[1][:, 1:3].astype(dtype)
        plane = tissue @ vectors
        angle = xp.arctan2(plane[:, 1], plane[:, 0])
        ends = xp.percentile(angle, xp.asarray([1.0, 99.0]))
        a, b = (vectors @ xp.stack([xp.cos(e), xp.sin(e)]) for e in ends)
        basis = xp.stack([a, b] if float(a[0]) > float(b[0]) else [b, a], axis=1)
        concentrations = xp.linalg.pinv(basis) @ density[i].T
        concentrations *= (scales / xp.percentile(concentrations, 99, axis=1))[:, None]
        out[i] = xp.clip(240 * xp.exp(-stains @ concentrations), 0, 255).T.reshape(tiles.shape[1:]).astype(xp.uint8)
    return out


def stains(folder, facts):
    side, count = facts["side"], facts["count"]
    tiles = np.fromfile(folder / "tiles.raw", np.uint8).reshape(-1, side, side, 3)
    made = np.fromfile(folder / "tiles_made.raw", np.uint8).reshape(tiles.shape)
    cupy = module("cupy")
    if cupy is None and not chosen.cpu:
        return "python3 has no CuPy"
    expected = macenko(np, tiles, np.float64)

    def errors(result):
        difference = np.abs(result.astype(int) - expected.astype(int))
        return {"levels_that_differ": float((difference > 0).mean()), "error": int(difference.max())}
    all_tiles = np.concatenate([tiles] * (count // len(tiles) + 1))[:count]
    if chosen.cpu:
        first = macenko(np, tiles, np.float32)
        us, peer = microseconds(lambda: macenko(np, all_tiles, np.float32)), f"NumPy {np.__version__}, Macenko, for CuPy"
    else:
        on_device = cupy.asarray(all_tiles)
        first = cupy.asnumpy(macenko(cupy, on_device[:len(tiles)], np.float32))
        us, peer = microseconds(lambda: macenko(cupy, on_device, np.float32)), f"CuPy {cupy.__version__}, Macenko"
    say(peer=peer, case=f"stains, {count} tiles", us=us, suture_us=facts["us"], **errors(first), suture=errors(made),
        emulated=emulated)
    return None


def attempt(name, work):
    if time.monotonic() > deadline - 3:
        say(peer=name, left_out="no time")
        return
    try:
        reason = work()
        if reason:
            say(peer=name, left_out=reason)
    except Exception as problem:  # one peer that fails must not take the others along
        say(peer=name, left_out=f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    program = subprocess.run([chosen.program, folder, *(["--tiny"] if chosen.tiny else [])], capture_output=True,
                             text=True, check=False)
    if program.returncode != 0:
        reason = (program.stderr.strip() or f"exit status {program.returncode}").splitlines()[-1]
        say(peer="all", left_out=f"{chosen.program.name}: {reason}")
        sys.exit(1)
    suture = json.loads(program.stdout)
    say(peer="suture", device=suture["device"], emulated=suture["emulated"], torch=torch.__version__,
        ct_us=suture["ct"]["us"], stains_us=suture["stains"]["us"])
    patches = Patches(folder, suture["ct"])
    attempt("PyTorch, eager", lambda: grid_sample_eager(patches))
    attempt("Triton", lambda: triton_kernel(patches))
    attempt("CuPy", lambda: stains(folder, suture["stains"]))
    attempt("PyTorch, compiled", lambda: grid_sample_compiled(patches))
    attempt("Kornia", lambda: kornia_warp(patches))
    attempt("MONAI", lambda: monai_affine(patches))
    attempt("batchgeneratorsv2", lambda: batchgenerators(patches))
