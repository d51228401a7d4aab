# SPDX-License-Identifier: Apache-2.0
"""suture build RECIPE.py compiles ahead, suture build --recipes what is published; suture info tells what is found."""
from __future__ import annotations

import argparse
import runpy
import sys

from .backend import jit

from . import __version__
from .errors import CompileError, Error
from .pipeline.pipeline import Pipeline


def _build(file: str, types: list[str], device: str, order: str) -> int:
    dtypes = dict(t.split("=", 1) for t in types)
    found = {name: value for name, value in runpy.run_path(file).items() if isinstance(value, Pipeline)}
    if not found:
        raise Error(f"suture: {file} defines no Pipeline")
    for name, pipeline in found.items():
        known = {k: v for k, v in dtypes.items() if k in pipeline.roles()}
        pipeline.build(device=device, order=order, **known)
        print(f"{name}: {len(pipeline.images)} compiled for {device}")
    return 0


def _build_recipes(device: str) -> int:
    from .recipes_ahead import run_small

    for name, _ in run_small(device):
        print(f"{name}: compiled for {device}", flush=True)
    return 0


def _info() -> int:
    print(f"suture {__version__}, headers in {jit.include_directory()}")
    for what, find in (("C++ compiler", jit.host_compiler), ("CUDA compiler", jit.cuda_compiler)):
        try:
            compiler = find()
            print(f"{what}: {compiler.path}, {compiler.version.splitlines()[0]}")
        except CompileError as problem:
            print(f"{what}: none. {problem}")
    print(f"processor: {jit.instruction_set() or 'no flags needed'}")
    cache = jit.user_cache()
    kept = list(cache.glob("*.so")) if cache.is_dir() else []
    print(f"cache: {cache}, {len(kept)} compiled, {sum(f.stat().st_size for f in kept) / 1e6:.1f} MB")
    for folder in jit.shared_caches():
        if folder.is_dir():
            print(f"shared cache: {folder}, {len(list(folder.glob('*.so')))} compiled")
    from .arrays import cuda

    print(f"GPU: {cuda.architecture() or 'none'}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="suture", description="Compile ahead, and look at what is found.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="compile every Pipeline that a file of Python defines")
    build.add_argument("file", nargs="?")
    build.add_argument("--recipes", action="store_true", help="the published recipes, in place of a file")
    build.add_argument("types", nargs="*", metavar="KEY=DTYPE", help="element types of the inputs: image=int16 seg=uint8")
    build.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    build.add_argument("--axes", choices=("zyx", "xyz", "yx", "xy"), default="zyx", help="order of the arrays' axes")
    commands.add_parser("info", help="versions, compilers, cache, GPU")
    given = parser.parse_args(arguments)
    try:
        if given.command == "info":
            return _info()
        if given.recipes == (given.file is not None):
            parser.error("build takes a file, or --recipes")
        return _build_recipes(given.device) if given.recipes else _build(given.file, given.types, given.device, given.axes)
    except (Error, CompileError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
