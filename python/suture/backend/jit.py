# SPDX-License-Identifier: Apache-2.0
"""This module turns C++ sources into loaded modules. It finds a module in a cache or compiles it into one, and loads it once."""
from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import cache, compiler, notice
from .cache import Entry, Folder, Used
from .request import VERSION
from ..errors import CompileError, Error


@dataclass(frozen=True)
class Source:
    """C++ to be compiled into a shared object."""

    text: str
    what: str  # its name in messages
    cuda: bool = False


@lru_cache(maxsize=None)
def _hash(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in (*parts, platform.machine()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:40]


def key_of(source: Source) -> str:
    """Returns the name of the cache record of a source: a hash of its text, compiler, flags, environment, machine and all headers."""
    found, flags = compiler.command_for(source.cuda)
    return _hash(source.text, "\n".join(flags), compiler.variables(), found.version, compiler.header_hash())


def _source_key(source: Source, target: str) -> str:
    """Returns the name of a second record of a source, by which shared caches are searched: a hash of source, headers and target alone,
    since results do not depend on the compiler and its flags."""
    return _hash(source.text, target, compiler.header_hash())


def _shared() -> list[Folder]:
    """Returns the shared caches that exist."""
    *given, packaged = [Folder(path, shared=True) for path in cache.shared_folders()]
    for folder in given:
        if not os.path.isdir(folder.path):
            notice.once(f"suture: the shared cache {folder.path} is not there or cannot be entered; it is skipped")
    return [folder for folder in (*given, packaged) if os.path.isdir(folder.path)]


def _find(source: Source, without: frozenset[Path]) -> Entry | None:
    shared = [folder for folder in _shared() if folder.path not in without]
    by_source = [_source_key(source, target) for target in compiler.targets_served(source.cuda)] if shared else []

    def by_any_compiler() -> Entry | None:
        return next((found for folder in shared for key in by_source if (found := folder.find(key))), None)

    if compiler.given_flags() is None:  # first, since it runs no compiler
        found = by_any_compiler()
        if found:
            return found
    try:
        key = key_of(source)
    except CompileError:  # without a compiler
        found = by_any_compiler()
        if found:
            return found
        raise
    return next((found for folder in shared if (found := folder.find(key))), None) or Folder(cache.user_folder()).find(key)


def find(source: Source) -> Path | None:
    """Returns the compiled module of a source from a shared cache or that of the user; None if no cache has it."""
    found = _find(source, frozenset())
    return found.file if found else None


def build(source: Source) -> Path:
    """Returns the module of a source, and compiles it if no cache has it.

    Raises
    ------
    CompileError
        If there is no compiler, it fails, or the cache cannot be used.
    """
    return _build(source).file


def _build(source: Source, without: frozenset[Path] = frozenset()) -> Entry:
    found = _find(source, without)
    if found:
        return found
    if os.environ.get("SUTURE_JIT") == "never":
        raise CompileError(f"suture: {source.what} is in no cache and SUTURE_JIT is never; compile it ahead: suture build")
    cache.most_bytes()  # refuses a wrong setting before the compilation, which may take a minute
    folder = Folder(cache.user_folder())
    folder.make()
    key = key_of(source)
    try:
        with folder.locked(key, source.what):
            found = folder.find(key)
            if found:
                return found
            made = _compile(source, key, folder)
    except OSError as problem:
        raise cache.no_room(problem, folder.path) from None
    try:
        folder.sweep(keep=made.file)
    except OSError as problem:
        notice.once(f"suture: the cache {folder.path} cannot be swept: {problem.strerror}")
    return made


def _compile(source: Source, key: str, folder: Folder) -> Entry:
    begin = time.time_ns()
    with folder.room(key) as room:
        made, files = compiler.compile_in(room, source.text, source.what, source.cuda)
        used = tuple(Used.of(path, begin) for path in files)
        code = room / ("module.cu" if source.cuda else "module.cpp")
        return folder.publish([key, _source_key(source, compiler.target(source.cuda))], room, made, code, source.what, used)


class Module:
    """A loaded shared object and its functions."""

    def __init__(self, entry: Entry, source: Source) -> None:
        self.entry = entry
        if source.cuda:
            from ..arrays import cuda as runtime

            runtime.library()  # loads the CUDA runtime, to which the module is linked by name
        try:
            # The file was checked by its content, whose hash is its name, and only trusted users may change it. A path in /proc/self/fd
            # would not do: the loader returns the library that it loaded under an equal path before.
            self.library = ctypes.CDLL(str(entry.file))
        except OSError as problem:
            raise CompileError(_not_loaded(entry.file, str(problem))) from None
        self._check_version(source)
        self.error = self.library.suture_error
        self.error.restype = ctypes.c_char_p

    def _check_version(self, source: Source) -> None:
        version = getattr(self.library, "suture_version", None)
        expected = re.search(r"\bSUTURE_ABI_[A-Z]+\b", source.text)  # macros that export it
        if version is None and not expected:
            return
        if version is not None:
            version.restype = ctypes.c_uint32
        got = "no version" if version is None else f"version {version()}"
        if got != f"version {VERSION}":
            raise CompileError(f"suture: {source.what}: expected a module for version {VERSION} of the interface, got {got}. "
                               "The headers and the Python files are of two versions: install suture again, "
                               "pip install --force-reinstall suture")

    def function(self, name: str, *arguments: Any) -> Any:
        """Returns a function of the module by its C name and the types of its arguments."""
        found = getattr(self.library, name)
        found.argtypes = list(arguments)
        return found

    def check(self, status: int) -> None:
        """Raises the error of the last call of this thread if `status` is not 0."""
        if status:
            text = self.error().decode(errors="replace")
            raise Error(text) if status == 1 else RuntimeError(text)


def _not_loaded(file: Path, problem: str) -> str:
    mount = cache.noexec_mount(file.parent) if file.exists() else None
    if mount:
        return (f"suture: {file} cannot be loaded, since {mount} is mounted noexec; set SUTURE_CACHE to a folder of your own "
                "on another file system")
    return f"suture: {file} cannot be loaded: {problem}; remove it and it is compiled again"


_modules: dict[Source, Module] = {}
_guard = threading.Lock()


def _forget_lock() -> None:
    """Replaces the lock in a child made by fork, where no thread would release it."""
    global _guard
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


_seen: ContextVar[list[Source] | None] = ContextVar("_seen", default=None)


@contextmanager
def loads() -> Iterator[list[Source]]:
    """Yields a list that collects the sources whose modules are loaded within the block."""
    seen: list[Source] = []
    before = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(before)


def load(source: Source) -> Module:
    """Returns the module of a source, which stays loaded in this process.

    If files that it was compiled from have changed, the module is searched for again.
    """
    if (seen := _seen.get()) is not None:
        seen.append(source)
    module = _modules.get(source)
    if module is None or (module.entry.used and not module.entry.is_current()):
        with _guard:
            module = _modules.get(source)
            if module is None or not module.entry.is_current():
                module = _modules[source] = _load(source)
    return module


def _load(source: Source) -> Module:
    without: frozenset[Path] = frozenset()
    while True:
        entry = _build(source, without)
        try:
            return Module(entry, source)
        except CompileError as problem:
            if entry.shared:
                notice.once(f"{problem}. The shared cache is skipped")
                without |= {entry.file.parent}
            elif not entry.file.exists():  # another process has swept the cache
                continue
            else:
                raise
