# SPDX-License-Identifier: Apache-2.0
"""This module has the command line: `suture build` compiles ahead of time, `suture info` describes the installation, `suture cache`
removes compiled modules, `suture store` makes and checks stores, and `suture train` repeats a training run."""
from __future__ import annotations

import argparse
import os
import runpy
import signal
import sys
from pathlib import Path

from .version import __version__
from .backend import cache, compiler
from .errors import CompileError, Error
from .pipeline.pipeline import Pipeline
from .store import command as store_command
from .training import command as training_command


def _build(file: str, types: list[str], device: str, order: str) -> int:
    if not Path(file).is_file():
        raise Error(f"suture: build: file: expected a Python file that defines a Pipeline, got {file!r}, which is not there. Check the path")
    wrong = next((t for t in types if "=" not in t), None)
    if wrong is not None:
        raise Error(f"suture: build: types: expected NAME=TYPE, got {wrong!r}. Pass image=int16, say")
    dtypes = dict(t.split("=", 1) for t in types)
    found = {name: value for name, value in runpy.run_path(file).items() if isinstance(value, Pipeline)}
    if not found:
        raise Error(f"suture: {file} defines no Pipeline")
    keys = {key for pipeline in found.values() for key in pipeline.roles()}
    strange = next((key for key in dtypes if key not in keys), None)
    if strange is not None:
        raise Error(f"suture: build: types: expected keys of the pipelines of {file}, {', '.join(sorted(keys))}, got {strange!r}. Check the spelling")
    for name, pipeline in found.items():
        known = {k: v for k, v in dtypes.items() if k in pipeline.roles()}
        pipeline.build(device=device, order=order, **known)
        print(f"{name}: {len(pipeline.images)} compiled for {device}")
    return 0


def _build_recipes(device: str) -> int:
    from .recipes_ahead import run_functions, run_small

    for name, _ in run_small(device):
        print(f"{name}: compiled for {device}", flush=True)
    for name, _ in run_functions(device):
        print(f"{name}: compiled for {device}", flush=True)
    return 0


def _info() -> int:
    print(f"suture {__version__}, headers in {compiler.include_directory()}")
    for what, find in (("C++ compiler", compiler.host_compiler), ("CUDA compiler", compiler.cuda_compiler)):
        try:
            found = find()
            print(f"{what}: {found.path}, {found.version.splitlines()[0]}")
        except CompileError as problem:
            print(f"{what}: none. {problem}")
    print(f"processor: {compiler.instruction_set() or 'no flags needed'}")
    try:
        print(f"cache: {_described(cache.Folder(cache.user_folder()))}; at most {cache.most_bytes() / 1e6:.0f} MB are kept")
    except CompileError as problem:
        print(f"cache: none. {problem}")
    try:
        for path in cache.shared_folders():
            if path.exists():
                print(f"shared cache: {_described(cache.Folder(path, shared=True))}")
    except CompileError as problem:
        print(f"shared cache: none. {problem}")
    from .arrays import cuda

    print(f"GPU: {cuda.architecture() or 'none'}")
    return 0


def _described(folder: cache.Folder) -> str:
    """Returns a line with the path of a cache, the number and size of its modules, and whether it is trusted."""
    if not folder.path.exists():
        return f"{folder.path}, not made yet"
    modules, total = folder.contents()
    problem = folder.distrust()
    return f"{folder.path}, {modules} compiled, {total / 1e6:.1f} MB, " + (f"not trusted: {problem}" if problem else "trusted")


def _cache(what: str) -> int:
    folder = cache.Folder(cache.user_folder())
    if not folder.path.is_dir():
        print(f"{folder.path}: there is no cache yet")
        return 0
    folder.make()  # refuses a folder of another user
    removed = folder.sweep(0 if what == "clear" else None)
    modules, total = folder.contents()
    print(f"{folder.path}: {removed} files removed; {modules} compiled and {total / 1e6:.1f} MB left")
    return 0


def _run(given: argparse.Namespace) -> int:
    if given.command == "store":
        return store_command.run(given)
    if given.command == "train":
        return training_command.run(given)
    if given.command == "info":
        return _info()
    if given.command == "cache":
        return _cache(given.what)
    return _build_recipes(given.device) if given.recipes else _build(given.file, given.types, given.device, given.axes)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    parser = argparse.ArgumentParser(prog="suture", description="Compile ahead, and look at what is found.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="compile every Pipeline that a file of Python defines")
    build.add_argument("file", nargs="?")
    build.add_argument("--recipes", action="store_true", help="the published recipes and common functions, in place of a file; with --device cuda "
                       "the functions are compiled for the CPU as well")
    build.add_argument("types", nargs="*", metavar="KEY=DTYPE", help="element types of the inputs: image=int16 seg=uint8")
    build.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    build.add_argument("--axes", choices=("zyx", "xyz", "yx", "xy"), default="zyx", help="order of the arrays' axes")
    commands.add_parser("info", help="versions, compilers, caches and whether they are trusted, GPU")
    kept = commands.add_parser("cache", help="remove compiled modules from the user's cache")
    kept.add_argument("what", choices=("sweep", "clear"), help="sweep: leftovers and what is beyond SUTURE_CACHE_SIZE; clear: all")
    store_command.add_to(commands)
    training_command.add_to(commands)
    given, left = parser.parse_known_args(arguments)
    if given.command == "build":  # argparse ends its positional arguments at the first option
        given.types += [word for word in left if not word.startswith("-")]
        left = [word for word in left if word.startswith("-")]
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    if given.command == "build" and given.recipes == (given.file is not None):
        parser.error("build takes a file, or --recipes")
    try:
        status = _run(given)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of the output, such as head, wants no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return 128 + signal.SIGPIPE
    except (Error, CompileError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
