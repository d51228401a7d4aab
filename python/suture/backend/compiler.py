# SPDX-License-Identifier: Apache-2.0
"""This module finds compilers, chooses their flags, and runs them."""
from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from . import notice
from ..errors import CompileError
from ..version import header_folders

_HOST_FLAGS = ("-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-fvisibility=hidden")
# Environment variables that compilers read. Each can change the result.
_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH",
              "CCC_OVERRIDE_OPTIONS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN")


def setting(name: str, advice: str) -> str | None:
    """Returns the value of an environment variable, None if it is not set.

    Raises
    ------
    CompileError
        If the variable is set but empty.
    """
    value = os.environ.get(name)
    if value is not None and not value.strip():
        raise CompileError(f"suture: {name} is set but empty; unset it, or set it to {advice}")
    return value


@lru_cache(maxsize=None)
def include_directory() -> Path:
    """Returns the folder of the headers, in the package or beside it in a checkout."""
    for folder in header_folders():
        if (folder / "suture/suture.hpp").is_file():
            return folder
    raise CompileError("suture: the headers are missing from the package: install it again, pip install --force-reinstall suture")


@lru_cache(maxsize=None)
def header_hash() -> str:
    """Returns a hash of the names and contents of all headers of the library."""
    digest = hashlib.sha256()
    root = str(include_directory())
    files = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith((".hpp", ".cuh"))]
    for path in sorted(files):
        with open(path, "rb", buffering=0) as file:
            digest.update(path[len(root) + 1:].encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()


@lru_cache(maxsize=None)
def instruction_set() -> str:
    """Returns SUTURE_MARCH if it is set, else the highest x86-64 level of this processor, as -march takes it; an empty text on
    other architectures."""
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
    """A compiler that was found, and its version text."""

    path: str
    version: str


def _version(path: str) -> str:
    try:
        out = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    except OSError as problem:
        raise CompileError(f"suture: {path} cannot be run: {problem.strerror}; set CXX to a C++20 compiler") from None
    except subprocess.TimeoutExpired:
        raise CompileError(f"suture: {path} --version gave no answer for a minute; set CXX to a C++20 compiler") from None
    if out.returncode != 0:
        raise CompileError(f"suture: {path} --version failed: {_text(out.stderr or out.stdout).strip().splitlines()[:1]}")
    return _text(out.stdout).strip()


def _text(output: bytes) -> str:
    """Decodes the output of a compiler, in whatever encoding."""
    return output.decode("utf-8", "replace")


@lru_cache(maxsize=None)
def _compiler(path: str, changed: int, size: int) -> Compiler:
    return Compiler(path, _version(path))


def _found(path: str) -> Compiler:
    known = os.stat(path)
    return _compiler(path, known.st_mtime_ns, known.st_size)


def host_compiler() -> Compiler:
    """Returns the compiler that CXX names, or else the first of g++, clang++ and c++ on PATH."""
    asked = setting("CXX", "a C++20 compiler, g++ 12 or clang++ 14 or newer")
    for name in [asked] if asked else ["g++", "clang++", "c++"]:
        path = shutil.which(name)
        if path:
            return _found(path)
    if asked:
        raise CompileError(f"suture: CXX is {asked!r}, which is not found; set it to a C++20 compiler, g++ 12 or clang++ 14 or newer")
    raise CompileError("suture: there is no C++ compiler: install one (apt-get install g++, conda install gxx, "
                       "or pip install ziglang and CXX set to a script that calls it), or use a chain that was compiled before")


def cuda_compiler() -> Compiler:
    """Returns nvcc by NVCC, CUDA_HOME, CUDA_PATH or PATH, from NVIDIA's wheels, or from /usr/local/cuda, in this order."""
    for variable, advice in (("NVCC", "the path of nvcc"), ("CUDA_HOME", "the folder of a CUDA toolkit"),
                             ("CUDA_PATH", "the folder of a CUDA toolkit")):
        asked = setting(variable, advice)
        if asked is not None:
            path = shutil.which(asked if variable == "NVCC" else os.path.join(asked, "bin/nvcc"))
            if not path:
                raise CompileError(f"suture: {variable} is {asked!r}, where there is no nvcc; unset it, or set it to {advice}")
            return _found(os.path.realpath(path))
    places = ["nvcc", *(os.path.join(folder, f"nvidia/{n}/bin/nvcc") for folder in sys.path for n in ("cu13", "cuda_nvcc")),
              "/usr/local/cuda/bin/nvcc"]
    for name in places:
        path = shutil.which(name)
        if path:
            return _found(os.path.realpath(path))
    raise CompileError("suture: there is no nvcc for tensors on a GPU: pip install 'suture[cuda]', or set NVCC or CUDA_HOME")


def cuda_architecture(device: int | None = None) -> str:
    """Returns SUTURE_CUDA_ARCH, such as sm_90, or the architecture of a device, by default of the current one, or sm_80 without a
    device."""
    asked = os.environ.get("SUTURE_CUDA_ARCH")
    if asked:
        return asked
    from ..arrays import cuda

    return cuda.architecture(device) or "sm_80"


def target(cuda: bool) -> str:
    """Returns the instruction set, or the architecture of the current GPU, to compile for."""
    return cuda_architecture() if cuda else instruction_set()


def targets_served(here: str) -> list[str]:
    """Returns the targets whose modules run where those of `here` do: itself, and x86-64-v3 (AVX2) for x86-64-v4 (AVX-512)."""
    return [here, "x86-64-v3"] if here == "x86-64-v4" else [here]


def given_flags() -> list[str] | None:
    """Returns the flags in SUTURE_CXXFLAGS; None if it is not set."""
    given = setting("SUTURE_CXXFLAGS", "flags such as -O2")
    try:
        return None if given is None else shlex.split(given)
    except ValueError as problem:
        raise CompileError(f"suture: SUTURE_CXXFLAGS is {given!r}, which cannot be split into flags: "
                           f"{str(problem).lower()}; close the quotes") from None


def command_for(cuda: bool, architecture: str = "") -> tuple[Compiler, list[str]]:
    """Returns the compiler and its flags, without files. `architecture` is that of the GPU, of the current one if it is empty."""
    optimize = given_flags() or ["-O3"]
    isa = instruction_set()
    host = [*_HOST_FLAGS, *([f"-march={isa}"] if isa else [])]
    if cuda:
        flags = ["-std=c++20", "-shared", f"-arch={architecture or cuda_architecture()}", "-cudart", "none",
                 "-Xcompiler=" + ",".join([*host, *optimize]), *[f for f in optimize if f.startswith("-O")]]
        return cuda_compiler(), flags
    return host_compiler(), ["-std=c++20", *optimize, *host, "-shared"]


def variables() -> str:
    """Returns the environment variables that compilers read, for the key of a module."""
    return "\n".join(f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ)


def _toolkit(compiler: Compiler) -> Path:
    return Path(compiler.path).parent.parent


def _cuda_libraries(compiler: Compiler) -> list[str]:
    """Returns linker flags for the CUDA runtime by its name, so that the one is used that torch has loaded or the loader finds."""
    root = _toolkit(compiler)
    for folder in (root / "lib64", root / "lib", root / "targets/x86_64-linux/lib", root.parent / "cuda_runtime/lib"):
        for name in ("libcudart.so.13", "libcudart.so.12"):
            if (folder / name).exists():
                return [f"-L{folder}", "-Xlinker", f"-l:{name}"]
    return ["-Xlinker", "-l:libcudart.so.13"]


def compile_in(room: Path, text: str, what: str, cuda: bool, architecture: str = "") -> tuple[Path, list[str]]:
    """Compiles C++ in an empty folder.

    Parameters
    ----------
    room
        The empty folder, for all files of the compiler.
    text, what, cuda, architecture
        The C++ source, its name in messages, whether nvcc compiles it, and the GPU's architecture, as for command_for.

    Returns
    -------
    tuple
        The shared object, and the files that the compiler read other than headers of the library and of the system.

    Raises
    ------
    CompileError
        If the compiler fails or is killed.
    """
    compiler, flags = command_for(cuda, architecture)
    code, made, read = room / ("module.cu" if cuda else "module.cpp"), room / "module.so", room / "module.d"
    code.write_text(text, encoding="utf-8")
    command = [compiler.path, *flags, f"-I{include_directory()}", "-MMD", "-MF", str(read), str(code), "-o", str(made),
               *(_cuda_libraries(compiler) if cuda else [])]
    notice.log.info("%s", shlex.join(command))
    status, output = _run(command, what, room)
    if status != 0 or not made.is_file():
        raise CompileError(_failure(what, command, status, output))
    ours = [os.path.realpath(folder) + os.sep for folder in (include_directory(), room, *([_toolkit(compiler)] if cuda else []))]
    files = {os.path.abspath(name) for name in _dependencies(read) if os.path.exists(name)}  # nvcc also lists the names of #line
    return made, sorted(name for name in files if not os.path.realpath(name).startswith(tuple(ours)))


# This script runs its arguments. It kills its process group once stdin ends, because Python has closed it or has ended.
_GUARDED = 'exec 3<&0 </dev/null; (read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec 3<&-; "$@"'


def _run(command: list[str], what: str, room: Path) -> tuple[int, str]:
    """Runs a compiler and returns its exit status and output. The compiler is killed when this process ends, however it ends."""
    name = os.path.basename(command[0])
    wait = notice.Wait()
    guard, alive = os.pipe()
    try:
        process = subprocess.Popen(["/bin/sh", "-c", _GUARDED, "sh", *command], stdin=guard, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**os.environ, "TMPDIR": str(room), "LC_ALL": "C.UTF-8"})
    except BaseException:
        os.close(alive)
        raise
    finally:
        os.close(guard)
    try:
        while True:
            try:
                output, _ = process.communicate(timeout=wait.left())
                return process.returncode, _text(output)
            except subprocess.TimeoutExpired:
                wait.tell(f"suture: compiling {what} with {name}; this is done once",
                          f"suture: {name} is still compiling {what}: {shlex.join(command)}")
    finally:
        os.close(alive)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _dependencies(file: Path) -> list[str]:
    """Returns the files that a depfile of make names, none if the compiler wrote no depfile."""
    try:
        text = file.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return []
    named = text.replace("\\\n", " ").partition(": ")[2].partition("\n")[0]
    return [re.sub(r"\\([ #\\])", r"\1", name).replace("$$", "$") for name in re.findall(r"(?:\\.|\S)+", named)]


def _failure(what: str, command: list[str], status: int, output: str) -> str:
    """Returns the message for a failed compilation: the library's own sentence if the output has one, else the first error."""
    if "No space left on device" in output:
        return f"suture: there is no room left to compile {what}; free some, or set SUTURE_CACHE to another disk"
    killed = re.search(r"Killed signal terminated|unable to execute command: Killed", output)
    number = int(signal.SIGKILL) if killed else status - 128
    if number in {int(known) for known in signal.Signals}:
        advice = "mostly for lack of memory; free some, or compile on a machine that has more: suture build" \
            if number == signal.SIGKILL else "try again, or set CXX to another compiler"
        return (f"suture: {os.path.basename(command[0])} was killed by {signal.Signals(number).name} while compiling {what}, {advice}")
    lines = output.splitlines()
    own = next((line for line in lines if "suture: " in line and "error" in line), None)
    first = own or next((line for line in lines if "error" in line), lines[0] if lines else f"no message, exit status {status}")
    sentence = "suture: " + first.split("suture: ", 1)[1] if own else first.strip()
    return f"{sentence}\nwhile compiling {what}: {shlex.join(command)}"
