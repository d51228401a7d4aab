#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the machine instructions that a GPU executes for one voxel: the way once round the walk of
a kernel, by purpose and by the pipe that executes them. Needs nvcc and nvdisasm (of the CUDA
toolkit, or `pip install nvidia-cuda-nvdisasm`), and no GPU.

    executed.py [--cubin ARCHITECTURE FILE]... [--nvdisasm PROGRAM] [--out FILE] [--check FILE] [--loops]

The kernels are those whose registers and sizes `ctest: codegen` holds down,
tests/codegen/kernels.cu, compiled with -lineinfo, which changes no instruction; a cubin that is at
hand is taken with --cubin. --out stores the counts, which bench/model.py reads; --check compares
with stored ones and fails where one differs by more than 2 %; --loops lists every loop of every
kernel in place of the routes.

A way is not guessed: of all ways round a loop it is the shortest one that loads and stores as often
as the route says and passes through the functions that the route names. A voxel inside its volume
loads eight taps and a label and stores two results; what it skips (borders, a deformation or noise
that is off) makes other ways longer, or loads more. Every instruction on the way counts, also one
whose predicate is false: it is issued all the same. What a thread does once ahead of its walk is
counted apart, by the shortest way to the loop.

The purpose of an instruction follows from the source line it was made from and the functions that
line was inlined into: it is that of the first rule of PURPOSES that fits. Pipes follow from the
name of the instruction.
"""
import argparse
import collections
import heapq
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "tests" / "codegen" / "kernels.cu"

# A route: which kernel (parts of its name, and parts it must not have), what a turn of the loop loads from and stores to
# global memory, functions it passes through, voxels that one turn makes, turns of a walk, and whether the loop is the
# outermost one that fits, not the shortest: one with a loop in it, which is then gone through once.
Route = collections.namedtuple("Route", "kernel without loads stores through voxels turns outermost",
                               defaults=((), 1, 16, False))
CT = ("fused_kernel", "random_elastic", "ELb1ENS0_9path_list")
TURNED = ("fused_kernel", "6windowENS_13random_affineENS_4cast")
ONE, SEVERAL = ("ELb1ENS0_9path_list",), ("ELb0ENS0_9path_list",)
VOTES = ("fused_kernel", "8resample", "4vote") + ONE
POWER = "power_of_fraction"
ROUTES = {
    "CT, turned": Route(CT, ("7regions",), 9, 2, (POWER,)),
    "CT, turned, noise": Route(CT, ("7regions",), 9, 2, (POWER, "gaussian_noise.hpp")),
    "CT, turned, elastic": Route(CT, ("7regions",), 9, 2, (POWER, "displacement_column::at")),
    # The normals of a block are made ahead of its walk, four at a time.
    "CT, noise made ahead": Route(CT, ("7regions",), 0, 0, ("room_for_normals",), 4, 4, True),
    # Where the walk enters another cell of control points, once in 32 voxels and at its beginning.
    "CT, turned, elastic, next cell": Route(CT, ("7regions",), 137, 2, (POWER, "sum_control_plane")),
    "CT, planes, image": Route(CT, ("7regions",), 4, 1, (POWER, "plane_values")),
    # A plane of the source that the voxel before has read already.
    "CT, planes, image, no new plane": Route(CT, ("7regions",), 0, 1, (POWER, "plane_values")),
    "CT, planes, labels": Route(CT, ("7regions",), 1, 1, ("plane_labels",)),
    "window and affine, turned": Route(TURNED + ONE, (), 9, 2, ("column.hpp",)),
    "window and affine, turned, first of several channels": Route(TURNED + SEVERAL, (), 9, 2, ("column.hpp",),
                                                                  outermost=True),
    "window and affine, turned, one more channel": Route(TURNED + SEVERAL, (), 8, 1, ("each_channel",)),
    "resampling with votes, planes, image": Route(VOTES, (), 4, 1, ("plane_values",)),
    "resampling with votes, planes, labels": Route(VOTES, (), 4, 1, ("plane_labels",)),
    "resampling with votes, turned": Route(VOTES, (), 16, 2, ("/column.hpp",)),
    "nnU-Net, turned, before its stages": Route(("fused_kernel", "random_gaussian_blur") + ONE, (), 9, 3,
                                                ("/column.hpp",)),
    "window + cast": Route(("fused_kernel", "6windowENS_4cast"), (), 1, 1, (), 8, 2, True),
}

# What an instruction is for: the first rule that fits one of its frames (end of the path, colon, function).
PURPOSES = (
    ("gamma", r"ops/value/gamma"), ("noise", r"gaussian_noise|shared_normals|/rng/"),
    ("window at the taps", r"ops/value/(window|ramp|clamp)"), ("conversion of the taps", r"storage::load"),
    ("cast", r"ops/value/cast|storage::store"), ("elastic", r"/column\.hpp:.*(displace|control|cell|::at$)"),
    ("label: place, test, address, load", r":pair_evaluator::label|pick_label|sample_label|plane_labels|vote"),
    ("interpolation", r"interpolation\.hpp|lerp"),
    ("taps: test, addresses, loads", r"sampler\.hpp|border\.hpp|plane_values|pair_evaluator::interpolated"),
    ("coordinates", r"coordinate\.hpp|column\.hpp|along_planes"), ("stain", r"ops/stain|color/"),
    ("store and step of the output", r"evaluator\.hpp|walk_pair|numeric"),
    ("loop, tile", r"exec/cuda/"),
)

# Which pipe executes an instruction, by the beginning of its name.
PIPES = (
    ("load", ("LDG", "LD.", "TLD", "TEX")), ("store", ("STG", "ST.", "RED", "ATOM")),
    ("shared", ("LDS", "STS", "ATOMS")), ("local", ("LDL", "STL")), ("shuffle", ("SHFL",)),
    ("constant", ("LDC", "ULDC")),
    ("convert", ("I2F", "F2I", "F2F", "I2I", "FRND", "POPC", "FLO", "MUFU", "UFLO", "UPOPC", "S2R", "S2UR", "CS2R")),
    ("uniform", ("U",)), ("imad", ("IMAD", "IMUL")), ("fma", ("FFMA", "FMUL", "FADD", "HFMA2", "HADD2", "HMUL2")),
    ("double", ("DFMA", "DADD", "DMUL", "DSETP")),
    ("control", ("BRA", "BRX", "BSSY", "BSYNC", "BREAK", "CALL", "RET", "EXIT", "WARPSYNC", "BAR", "NANOSLEEP", "YIELD",
                 "BMOV", "VOTE", "DEPBAR", "ERRBAR", "MEMBAR", "CCTL")),
)


def pipe_of(name):
    if name.startswith("I2FP"):  # of sm_90, which the integer pipe executes
        return "alu"
    for pipe, beginnings in PIPES:
        if name.startswith(beginnings):
            return pipe
    return "alu"


Instruction = collections.namedtuple("Instruction", "name guarded target frames")


def functions_of(path):
    """Where functions begin in a source file: (line, name), by their look."""
    found = []
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return found
    outer = ""
    for number, line in enumerate(text, 1):
        kind = re.match(r"(?:template <.*> *)?(?:struct|class) (\w+)", line)
        if kind:
            outer = kind[1]
        call = re.match(r"\s*(?:template <.*>\s*)?(?:SUTURE_\w+|__device__|inline|static|constexpr|explicit)\b"
                        r".*?([\w~]+|operator\(\))\(", line)
        if call:
            found.append((number, f"{outer}::{call[1]}" if line.startswith(" ") and outer else call[1]))
    return found


class Sources:
    def __init__(self):
        self.known = {}

    def frame(self, path, line):
        """A frame as PURPOSES read it: the end of its path and the function it is in."""
        if path not in self.known:
            self.known[path] = functions_of(path)
        name = ""
        for first, function in self.known[path]:
            if first > line:
                break
            name = function
        return f"{'/'.join(pathlib.PurePath(path).parts[-3:])}:{name}"


def kernels_of(cubin, nvdisasm):
    """name -> (instructions, label -> index), as nvdisasm prints them."""
    text = subprocess.run([nvdisasm, "-c", "-gi", str(cubin)], capture_output=True, text=True, check=True).stdout
    sources, kernels, code, frames, open_frames = Sources(), {}, None, (), False
    for line in text.split("\n"):
        if line.startswith(".text."):
            code, labels = [], {}
            kernels[line[6:].rstrip(":")] = (code, labels)
        elif code is None:
            continue
        elif line.startswith(".L_") and line.endswith(":"):
            labels[line[:-1]] = len(code)
        elif "//## File" in line:
            if not open_frames:
                frames, open_frames = (), True
            place = re.search(r'File "([^"]+)", line (\d+)', line)
            frames += (sources.frame(place[1], int(place[2])),)
        else:
            found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P[T\d]\s+)?([A-Z][\w.]*)\s*(.*?)\s*;", line)
            if not found:
                continue
            open_frames = False
            target = re.search(r"`\((\.L_x_\d+)\)", found[3])
            # A branch may have a second predicate; one without any is always taken.
            guarded = bool(found[1]) or bool(re.match(r"!?U?P\d", found[3]))
            code.append(Instruction(found[2], guarded, target[1] if target else None, frames))
    return kernels


class Way:
    """Blocks of a kernel and the ways through them."""

    def __init__(self, code, labels):
        self.code = code
        starts = {0, *(i for i in labels.values() if i < len(code))}
        for i, op in enumerate(code[:-1]):
            if self.leaves(op):
                starts.add(i + 1)
        self.starts = sorted(starts)
        ends = self.starts[1:] + [len(code)]
        self.blocks = dict(zip(self.starts, ends))
        self.next = {}
        for start, end in self.blocks.items():
            last, to = code[end - 1], []
            if self.leaves(last):
                if last.target in labels:
                    to.append(labels[last.target])
                if last.guarded and end < len(code):
                    to.append(end)
            elif end < len(code):
                to.append(end)
            self.next[start] = [t for t in to if t in self.blocks]

    @staticmethod
    def leaves(op):
        """Whether control may go elsewhere: branches, ends, and the calls of labels that nvcc makes of ends of loops."""
        name = op.name.split(".")[0]
        return name in ("BRA", "EXIT", "RET", "BRX", "JMP") or (name == "CALL" and op.target is not None)

    def loops(self):
        """Beginning and last block of every loop: a branch back."""
        return [(to, start) for start, all_to in self.next.items() for to in all_to if to <= start]

    def shortest(self, first, last, loads, stores, through):
        """Blocks of the shortest way from `first` to the end of `last` with exactly so many loads and stores (None for
        any number), through frames that match; branches back are not taken. None where there is none."""
        patterns = [re.compile(re.escape(t)) for t in through]

        def of_block(start):
            ops = self.code[start:self.blocks[start]]
            kinds = collections.Counter(pipe_of(op.name) for op in ops)
            seen = 0
            for bit, pattern in enumerate(patterns):
                if any(pattern.search(frame) for op in ops for frame in op.frames):
                    seen |= 1 << bit
            return sum(op.name != "NOP" for op in ops), kinds["load"], kinds["store"], seen
        known = {}
        everything = (1 << len(patterns)) - 1
        queue, done = [(0, first, 0, 0, 0, (first,))], set()
        while queue:
            cost, block, l, s, seen, way = heapq.heappop(queue)
            if block not in known:
                known[block] = of_block(block)
            more, more_l, more_s, more_seen = known[block]
            cost, l, s, seen = cost + more, l + more_l, s + more_s, seen | more_seen
            if (loads is not None and l > loads) or (stores is not None and s > stores):
                continue
            if block == last:
                if loads in (None, l) and stores in (None, s) and seen == everything:
                    return way
                continue
            if (block, l, s, seen) in done:
                continue
            done.add((block, l, s, seen))
            for to in self.next[block]:
                if to > block:
                    heapq.heappush(queue, (cost, to, l, s, seen, way + (to,)))
        return None

    def along(self, way):
        return [op for start in way for op in self.code[start:self.blocks[start]] if op.name != "NOP"]


def purpose_of(op):
    for purpose, pattern in PURPOSES:
        if any(re.search(pattern, frame) for frame in op.frames):
            return purpose
    return "other"


def count(kernels, route):
    """Counts of the kernel that a route names."""
    names = [n for n in kernels if all(p in n for p in route.kernel) and not any(p in n for p in route.without)]
    if len(names) != 1:
        raise SystemExit(f"{len(names)} kernels match {' and '.join(route.kernel)}")
    way = Way(*kernels[names[0]])
    best = None
    for head, last in way.loops():
        blocks = way.shortest(head, last, route.loads, route.stores, route.through)
        if blocks and (best is None or (len(way.along(blocks)) > len(way.along(best))) == route.outermost):
            best = blocks
    if best is None:
        raise SystemExit(f"{names[0][:80]}: no way with {route.loads} loads and {route.stores} stores through "
                         f"{route.through}")
    ops = way.along(best)
    to_loop = way.shortest(0, best[0], None, None, ())
    ahead = len(way.along(to_loop[:-1])) if to_loop else 0
    pipes, purposes = collections.Counter(pipe_of(op.name) for op in ops), collections.Counter(map(purpose_of, ops))
    return {"instructions": len(ops), "ahead": ahead, "voxels": route.voxels, "turns": route.turns,
            "pipes": dict(sorted(pipes.items())), "purposes": dict(purposes.most_common())}


def list_loops(kernels):
    """Every loop of every kernel, the longest first: instructions in it, and on the shortest way round it."""
    for name, (code, labels) in kernels.items():
        way = Way(code, labels)
        print(f"{len(code)} {name}")
        for head, last in sorted(way.loops(), key=lambda loop: loop[0] - loop[1]):
            blocks = way.shortest(head, last, None, None, ())
            body = way.code[head:way.blocks[last]]
            if blocks and len(body) > 20:
                ops = way.along(blocks)
                pipes = collections.Counter(pipe_of(op.name) for op in ops)
                print(f"    {len(body)} in the loop, {len(ops)} at least:",
                      ", ".join(f"{k} {v}" for k, v in sorted(pipes.items())))


def find_nvdisasm(given):
    for program in (given, shutil.which("nvdisasm"), "/usr/local/cuda/bin/nvdisasm"):
        if program and pathlib.Path(program).exists():
            return program
    for package in ("nvidia", "triton"):  # both carry one
        try:
            base = pathlib.Path(__import__(package).__path__[0])
        except (ImportError, AttributeError, IndexError):
            continue
        for program in sorted(base.rglob("bin/nvdisasm")):
            return str(program)
    raise SystemExit("nvdisasm is missing: pip install nvidia-cuda-nvdisasm, or name it by --nvdisasm")


def compiled(architecture, folder):
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    cubin = pathlib.Path(folder) / f"{architecture}.cubin"
    subprocess.run([nvcc, "-std=c++20", "-O3", "-lineinfo", f"-I{ROOT / 'include'}", f"-arch={architecture}", "-cubin",
                    str(KERNELS), "-o", str(cubin)], check=True)
    return cubin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cubin", nargs=2, action="append", default=[], metavar=("ARCHITECTURE", "FILE"))
    parser.add_argument("--nvdisasm")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--loops", action="store_true")
    chosen = parser.parse_args()
    nvdisasm = find_nvdisasm(chosen.nvdisasm)
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        cubins = dict(chosen.cubin) or {a: compiled(a, folder) for a in ("sm_80", "sm_90")}
        for architecture, cubin in cubins.items():
            kernels = kernels_of(cubin, nvdisasm)
            if chosen.loops:
                list_loops(kernels)
                continue
            counts[architecture] = {name: count(kernels, route) for name, route in ROUTES.items()}
    for architecture, rows in counts.items():
        for name, row in rows.items():
            print(f"{architecture} {name}: {row['instructions']} for {row['voxels']} voxels, {row['ahead']} ahead")
            print("   ", ", ".join(f"{k} {v}" for k, v in row["purposes"].items()))
            print("   ", ", ".join(f"{k} {v}" for k, v in row["pipes"].items()))
    if chosen.out:
        chosen.out.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    if chosen.check:
        stored = json.loads(chosen.check.read_text(encoding="utf-8"))
        for architecture, rows in counts.items():
            for name, row in rows.items():
                before = stored.get(architecture, {}).get(name, {}).get("instructions", 0)
                if abs(row["instructions"] - before) > max(.02 * before, 1):
                    sys.exit(f"{architecture} {name}: {before} in {chosen.check}; store the counts of today with --out, "
                             "and the tables of bench/model.py in docs/performance.md")


if __name__ == "__main__":
    main()
