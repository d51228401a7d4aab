# SPDX-License-Identifier: Apache-2.0
"""Compiles C++ once and keeps it: a shared object by the hash of its source, flags, compiler, processor and headers."""
from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import logging
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import CompileError, Error

log = logging.getLogger("suture")
_HOST_FLAGS = ("-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-fvisibility=hidden")


@lru_cache(maxsize=None)
def include_directory() -> Path:
    """Where the headers are: in the package, or beside it in a checkout."""
    here = Path(__file__).resolve().parent.parent
    for folder in (here / "include", here.parent.parent / "include"):
        if (folder / "suture/suture.hpp").is_file():
            return folder
    raise CompileError("suture: the headers are missing from the package: install it again, pip install --force-reinstall suture")


@lru_cache(maxsize=None)
def header_hash() -> str:
    """Of every header, by name and content."""
    digest = hashlib.sha256()
    root = str(include_directory())
    files = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith((".hpp", ".cuh"))]
    for path in sorted(files):
        with open(path, "rb") as file:
            digest.update(os.path.relpath(path, root).encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()


@lru_cache(maxsize=None)
def instruction_set() -> str:
    """What -march gets on x86-64: SUTURE_MARCH, or the highest level that this processor has. Elsewhere nothing is needed."""
    asked = os.environ.get("SUTURE_MARCH")
    if asked is not None:
        return asked
    if platform.machine() not in ("x86_64", "AMD64"):
        return ""
    flags: set[str] = set()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("flags"):
                flags = set(line.split())
                break
    third = {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
    if flags >= third | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}:
        return "x86-64-v4"
    return "x86-64-v3" if flags >= third else "x86-64"


@dataclass(frozen=True)
class Compiler:
    """A compiler that was found, and what it says it is."""

    path: str
    version: str


def _version(path: str) -> str:
    try:
        out = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except OSError as problem:
        raise CompileError(f"suture: {path} cannot be run: {problem.strerror}; set CXX to a C++20 compiler") from None
    if out.returncode != 0:
        raise CompileError(f"suture: {path} --version failed: {(out.stderr or out.stdout).strip().splitlines()[:1]}")
    return out.stdout.strip()


@lru_cache(maxsize=None)
def _compiler(path: str, changed: int, size: int) -> Compiler:
    return Compiler(path, _version(path))


def _found(path: str) -> Compiler:
    known = os.stat(path)
    return _compiler(path, known.st_mtime_ns, known.st_size)


def host_compiler() -> Compiler:
    """CXX, or else g++, clang++ or c++ of PATH."""
    asked = os.environ.get("CXX")
    for name in [asked] if asked else ["g++", "clang++", "c++"]:
        path = shutil.which(name)
        if path:
            return _found(path)
    if asked:
        raise CompileError(f"suture: CXX is {asked!r}, which is not found; set it to a C++20 compiler, g++ 12 or clang++ 14 or newer")
    raise CompileError("suture: there is no C++ compiler: install one (apt-get install g++, conda install gxx, "
                       "or pip install ziglang and CXX set to a script that calls it), or use a chain that was compiled before")


def cuda_compiler() -> Compiler:
    """NVCC, CUDA_HOME, nvcc of PATH or of the wheels of NVIDIA."""
    places = [os.environ.get("NVCC"), *(os.path.join(os.environ[v], "bin/nvcc") for v in ("CUDA_HOME", "CUDA_PATH")
                                        if v in os.environ), "nvcc"]
    for folder in sys.path:
        places += [os.path.join(folder, f"nvidia/{n}/bin/nvcc") for n in ("cu13", "cuda_nvcc")]
    places.append("/usr/local/cuda/bin/nvcc")
    for name in places:
        path = shutil.which(name) if name else None
        if path:
            return _found(os.path.realpath(path))
    raise CompileError("suture: there is no nvcc for tensors on a GPU: pip install 'suture[cuda]', or set NVCC or CUDA_HOME")


def cuda_architecture() -> str:
    """SUTURE_CUDA_ARCH, such as sm_90, or that of the first device, sm_80 where none says."""
    asked = os.environ.get("SUTURE_CUDA_ARCH")
    if asked:
        return asked
    from ..arrays import cuda

    return cuda.architecture() or "sm_80"


def user_cache() -> Path:
    """SUTURE_CACHE, or suture in the user's cache."""
    if "SUTURE_CACHE" in os.environ:
        return Path(os.environ["SUTURE_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "suture"


def shared_caches() -> list[Path]:
    """Read before the user's and never written: SUTURE_SHARED_CACHE, and what came with the package."""
    given = [Path(p) for p in os.environ.get("SUTURE_SHARED_CACHE", "").split(os.pathsep) if p]
    return [*given, Path(__file__).resolve().parent.parent / "prebuilt"]


def _own(folder: Path) -> Path:
    """The user's own cache, made where it is missing. What others could write to is not loaded from."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except OSError as problem:
        raise CompileError(f"suture: the cache {folder} cannot be made: {problem.strerror}; set SUTURE_CACHE to a folder "
                           "of your own that can be written") from None
    if hasattr(os, "getuid") and state.st_uid != os.getuid():
        raise CompileError(f"suture: the cache {folder} belongs to another user, so nothing is loaded from it; set "
                           "SUTURE_CACHE to a folder of your own")
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CompileError(f"suture: others may write to the cache {folder}, so nothing is loaded from it; "
                           f"chmod 700 {shlex.quote(str(folder))}, or set SUTURE_CACHE to a folder of your own")
    return folder


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """One process at a time; the others wait."""
    import fcntl

    with open(file, "w") as handle, _telling(f"suture: waiting for another process that compiles ({file.name})"):
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _telling(message: str) -> Iterator[None]:
    """One line on a terminal if this takes longer than a second."""
    log.info("%s", message)
    timer = threading.Timer(1.0, lambda: print(message, file=sys.stderr, flush=True))
    if sys.stderr is not None and sys.stderr.isatty():
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@dataclass(frozen=True)
class Source:
    """C++ to be compiled into a shared object."""

    text: str
    what: str  # for people: what it is
    cuda: bool = False


def command_of(source: Source) -> tuple[Compiler, list[str]]:
    """The compiler and its flags, without files."""
    optimize = shlex.split(os.environ.get("SUTURE_CXXFLAGS", "-O3"))
    isa = instruction_set()
    host = [*_HOST_FLAGS, *([f"-march={isa}"] if isa else [])]
    if source.cuda:
        arch = cuda_architecture()
        flags = ["-std=c++20", "-shared", f"-arch={arch}", "-cudart", "none",
                 "-Xcompiler=" + ",".join([*host, *optimize]), *[f for f in optimize if f.startswith("-O")]]
        return cuda_compiler(), flags
    return host_compiler(), ["-std=c++20", *optimize, *host, "-shared"]


@lru_cache(maxsize=None)
def _hash(text: str, flags: str, version: str, headers: str) -> str:
    digest = hashlib.sha256()
    for part in (text, flags, version, headers, platform.machine()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:40]


def key_of(source: Source) -> str:
    """The name of a shared object: whatever could change it is in the hash."""
    compiler, flags = command_of(source)
    return _hash(source.text, "\n".join(flags), compiler.version, header_hash())


def find(source: Source) -> Path | None:
    """Where it was compiled already, in a shared cache or the user's."""
    shared = [folder for folder in shared_caches() if folder.is_dir()]
    if "SUTURE_CXXFLAGS" not in os.environ:  # before a compiler is asked for its version
        made = next(_compiled_by_any(source, shared), None)
        if made:
            return made
    try:
        name = key_of(source) + ".so"
    except CompileError:
        return next(_compiled_by_any(source, shared), None)
    for folder in [*shared, user_cache()]:
        if (folder / name).is_file():
            return (folder if folder in shared else _own(folder)) / name
    return None


def _compiled_by_any(source: Source, folders: list[Path]) -> Iterator[Path]:
    """Whatever compiler and flags made it, since all give the same bits: for this processor, or for AVX2 where it has AVX-512."""
    for folder in folders:
        for target in _targets(source):
            pointer = folder / (source_key(source, target) + ".name")
            if pointer.is_file():
                file = folder / (pointer.read_text().strip() + ".so")
                if file.is_file():
                    yield file


def _targets(source: Source) -> list[str]:
    if source.cuda:
        return [cuda_architecture()]
    here = instruction_set()
    return [here, "x86-64-v3"] if here == "x86-64-v4" else [here]


def source_key(source: Source, target: str) -> str:
    """By source and headers alone, for an instruction set or an architecture."""
    return _hash(source.text, target, "", header_hash())


def build(source: Source) -> Path:
    """The shared object, compiled if it has to be."""
    found = find(source)
    if found:
        return found
    compiler, flags = command_of(source)
    if os.environ.get("SUTURE_JIT") == "never":
        raise CompileError(f"suture: {source.what} is in no cache and SUTURE_JIT is never; compile it ahead: suture build")
    folder = _own(user_cache())
    key = key_of(source)
    file = folder / (key + ".so")
    try:
        with _locked(folder / (key + ".lock")):
            if not file.is_file():
                with _telling(f"suture: compiling {source.what} with {os.path.basename(compiler.path)}; "
                              "this is done once"):
                    _compile(source, compiler, flags, folder, file)
    except OSError as problem:
        raise _disk(problem, folder) from None
    return file


def _disk(problem: OSError, folder: Path) -> CompileError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return CompileError(f"suture: there is no room left in the cache {folder}; free some, or set SUTURE_CACHE to another disk")
    return CompileError(f"suture: the cache {folder} cannot be written: {problem.strerror}; set SUTURE_CACHE to a folder "
                        "that can")


def _compile(source: Source, compiler: Compiler, flags: list[str], folder: Path, file: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix="build.") as room:
        code = Path(room) / ("module.cu" if source.cuda else "module.cpp")
        made = Path(room) / "module.so"
        code.write_text(source.text)
        libraries = ["-Xlinker", "-l:libcudart.so.13"] if source.cuda else []
        if source.cuda:
            libraries = _cuda_libraries(compiler)
        command = [compiler.path, *flags, f"-I{include_directory()}", str(code), "-o", str(made), *libraries]
        log.info("%s", shlex.join(command))
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": room})
        if done.returncode != 0:
            raise CompileError(_failure(source, command, done.stdout + done.stderr))
        os.chmod(made, 0o755)  # whoever may enter the folder
        (folder / (file.stem + (".cu" if source.cuda else ".cpp"))).write_text(source.text)
        pointer = Path(room) / "name"
        pointer.write_text(file.stem)
        os.replace(pointer, folder / (source_key(source, _targets(source)[0]) + ".name"))
        os.replace(made, file)


def _cuda_libraries(compiler: Compiler) -> list[str]:
    """The runtime, by its name: torch has loaded one already, or the loader finds one."""
    root = Path(compiler.path).parent.parent
    for folder in (root / "lib64", root / "lib", root / "targets/x86_64-linux/lib", root.parent / "cuda_runtime/lib"):
        for name in ("libcudart.so.13", "libcudart.so.12"):
            if (folder / name).exists():
                return [f"-L{folder}", "-Xlinker", f"-l:{name}"]
    return ["-Xlinker", "-l:libcudart.so.13"]


def _failure(source: Source, command: list[str], output: str) -> str:
    """The library's own sentence where there is one, or else the first error."""
    if "No space left on device" in output:
        return f"suture: there is no room left to compile {source.what}; free some, or set SUTURE_CACHE to another disk"
    lines = output.splitlines()
    own = next((line for line in lines if "suture: " in line and "error" in line), None)
    first = own or next((line for line in lines if "error" in line), lines[0] if lines else "no message")
    sentence = "suture: " + first.split("suture: ", 1)[1] if own else first.strip()
    return f"{sentence}\nwhile compiling {source.what}: {shlex.join(command)}"


class Module:
    """A loaded shared object and its functions."""

    def __init__(self, file: Path, cuda: bool) -> None:
        if cuda:
            from ..arrays import cuda as runtime

            runtime.library()  # the one that the process has; the module is bound to it by name
        try:
            self.library = ctypes.CDLL(str(file))
        except OSError as problem:
            raise CompileError(f"suture: {file} cannot be loaded: {problem}; remove it and it is compiled again") from None
        self.error = self.library.suture_error
        self.error.restype = ctypes.c_char_p

    def function(self, name: str, *arguments: Any) -> Any:
        found = getattr(self.library, name)
        found.argtypes = list(arguments)
        return found

    def check(self, status: int) -> None:
        """Raises what the last call of this thread said."""
        if status:
            text = self.error().decode(errors="replace")
            raise Error(text) if status == 1 else RuntimeError(text)


_modules: dict[Source, Module] = {}
_guard = threading.Lock()


def _forget_lock() -> None:
    """A child made by fork while another thread compiled would wait for ever."""
    global _guard
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def load(source: Source) -> Module:
    """The module of a source, compiled, loaded, and kept for this process."""
    module = _modules.get(source)
    if module is None:
        with _guard:
            module = _modules.get(source)
            if module is None:
                module = _modules[source] = Module(build(source), source.cuda)
    return module
