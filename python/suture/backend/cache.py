# SPDX-License-Identifier: Apache-2.0
"""This module finds, publishes and removes compiled modules in caches, and decides which folders to trust.

A folder holds modules, each named by the SHA-256 of its bytes, and records, each named by the hash of a source. A record
names its module. Both are written under another name, flushed to the disk and renamed, the record last. Whenever a process is
killed, a record therefore is complete and names a module on the disk, or does not exist.
"""
from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import notice
from .compiler import setting
from ..errors import CompileError

_OURS = re.compile(r"[0-9a-f]{40}\.(json|cpp|cu|lock)|[0-9a-f]{64}\.so")  # other files in the folder are left alone
_ROOM = re.compile(r"build\.([0-9a-f]{40})\..+")
_DEFAULT_MEGABYTES = 2000
_POLL = 0.05  # seconds between attempts to take a lock


def _home() -> str | None:
    """Returns the home folder of this user, or None."""
    home = os.environ.get("HOME")
    if home is None:
        home = os.path.expanduser("~")  # from the user database
    return home if os.path.isabs(home) else None


def user_folder() -> Path:
    """Returns the folder that SUTURE_CACHE names, or `suture` in the user's cache folder.

    Raises
    ------
    CompileError
        If SUTURE_CACHE is empty, or it is not set and there is no home folder.
    """
    given = setting("SUTURE_CACHE", "a folder of your own")
    if given:
        return Path(os.path.abspath(given))
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # XDG ignores relative paths
        return Path(base) / "suture"
    home = _home()
    if home is None:
        raise CompileError("suture: there is no home folder to keep compiled modules in; set SUTURE_CACHE to a folder of your own")
    return Path(home) / ".cache/suture"


def _package() -> Path:
    return Path(__file__).resolve().parent.parent


def shared_folders() -> list[Path]:
    """Returns the caches that are read before the user's and never written: those of SUTURE_SHARED_CACHE and the one in the
    package."""
    given = setting("SUTURE_SHARED_CACHE", "one or several folders, joined by " + repr(os.pathsep)) or ""
    return [*(Path(os.path.abspath(p)) for p in given.split(os.pathsep) if p), _package() / "prebuilt"]


def most_bytes() -> int:
    """Returns the size limit of the user's cache in bytes: SUTURE_CACHE_SIZE megabytes, 2000 by default."""
    given = setting("SUTURE_CACHE_SIZE", "megabytes, 2000 for example")
    if given is not None and not re.fullmatch(r"\s*[0-9]{1,12}\s*", given):
        raise CompileError(f"suture: SUTURE_CACHE_SIZE is {given!r}; set it to a whole number of megabytes, 2000 for example")
    return (_DEFAULT_MEGABYTES if given is None else int(given)) * 1_000_000


def _trusted() -> set[int]:
    """Returns the ids of the users whose code runs here anyway: this user, root, and the owner of the package."""
    return {os.getuid(), 0, os.stat(__file__).st_uid}


def _name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _distrust(path: str, state: os.stat_result, parent: bool = False) -> str | None:
    """Returns why a folder or file is not trusted and what to do, or None."""
    if state.st_uid not in _trusted():
        return (f"{path} belongs to {_name(state.st_uid)}, who is neither you, root nor the owner of the package: "
                "copy the cache to a folder of your own")
    # In a folder with the sticky bit, such as /tmp, only its owner can rename or remove a file.
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (parent and state.st_mode & stat.S_ISVTX):
        return f"others may write to {path}: chmod go-w {shlex.quote(path)}"
    return None


def _distrust_folder(folder: str) -> str | None:
    """Checks owners and modes as OpenSSH's StrictModes does, for the folder and those above it up to the home folder or the
    root of the file system. The check also ends at the package's own folder, since whoever may write above it can change the
    package itself. Returns the problem, or None."""
    ends = {os.path.realpath(_home() or "/"), str(_package())}
    at = folder
    while True:
        problem = _distrust(at, os.stat(at), parent=at != folder)
        above = os.path.dirname(at)
        if problem or at in ends or above == at:
            return problem
        at = above


@dataclass(frozen=True)
class Used:
    """A file that a module was compiled from, besides the headers of the library and of the system."""

    path: str
    changed: int
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str, begin: int) -> Used:
        """Returns the present state of a file. If the file changed since `begin`, its hash is left empty, since the compiler
        may have read other content."""
        state = os.stat(path)
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()
        # Clocks of file systems are coarse: a change within one tick could leave the time as it was.
        known = max(state.st_mtime_ns, state.st_ctime_ns) < begin - 2_000_000_000
        return cls(path, state.st_mtime_ns if known else -1, state.st_size,
                   content if max(state.st_mtime_ns, state.st_ctime_ns) < begin else "")

    def is_same(self) -> bool:
        """Tests whether the file is unchanged: by time and size, and by content if these differ."""
        try:
            state = os.stat(self.path)
            if (state.st_mtime_ns, state.st_size) == (self.changed, self.size):
                return True
            with open(self.path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest() == self.sha256
        except OSError:
            return False


@dataclass(frozen=True)
class Entry:
    """A module that was found complete and trusted."""

    file: Path
    used: tuple[Used, ...]
    shared: bool

    def is_current(self) -> bool:
        """Tests whether all files that it was compiled from are unchanged."""
        return all(each.is_same() for each in self.used)


class _Damaged(Exception):
    """Raised for a damaged record or module, with what is wrong with it."""


class _Distrusted(Exception):
    """Raised for a record or module that is not trusted, with the reason and a remedy."""


@dataclass(frozen=True)
class _Record:
    """The record of a module: the hash that names its file, its size, its name in messages, and the files that it was compiled
    from."""

    module: str
    size: int
    what: str
    used: tuple[Used, ...]

    def text(self) -> str:
        used = [[u.path, u.changed, u.size, u.sha256] for u in self.used]
        return json.dumps({"module": self.module, "size": self.size, "what": self.what, "used": used}, indent=1) + "\n"

    @classmethod
    def read(cls, text: bytes) -> _Record:
        try:
            made = json.loads(text)
            used = tuple(Used(str(path), int(changed), int(size), str(sha)) for path, changed, size, sha in made["used"])
            record = cls(str(made["module"]), int(made["size"]), str(made["what"]), used)
        except (ValueError, KeyError, TypeError):
            raise _Damaged("is no record") from None
        if not re.fullmatch(r"[0-9a-f]{64}", record.module):
            raise _Damaged("names no module")
        return record


class Folder:
    """A folder of modules: the user's own, or one that is only read."""

    def __init__(self, path: Path, shared: bool = False) -> None:
        self.path = Path(os.path.realpath(path))  # resolved once: the path that is checked is the one that is opened
        self.shared = shared

    def distrust(self) -> str | None:
        """Returns why modules of this folder are not loaded, or None."""
        try:
            return _distrust_folder(str(self.path))
        except OSError as problem:
            return f"{self.path} cannot be read: {problem.strerror}"

    def _skip(self, problem: str) -> None:
        """Reports that nothing is loaded from this folder: as an error for the user's own cache, as a warning for a shared
        one."""
        if not self.shared:
            raise CompileError(f"suture: nothing is loaded from the cache {self.path}: {problem}, or set SUTURE_CACHE to another folder "
                               "of your own")
        notice.once(f"suture: nothing is loaded from the shared cache {self.path}: {problem}")

    def find(self, key: str) -> Entry | None:
        """Returns the module of a record if it is complete, trusted and up to date, else None.

        Raises
        ------
        CompileError
            If the folder is the user's own and others may write to it, or it cannot be read.
        """
        if not os.path.isdir(self.path):
            return None
        problem = self.distrust()
        if problem:
            self._skip(problem)
            return None
        name = key + ".json"
        try:
            text = self._read(name)
            if text is None:
                return None
            record = _Record.read(text)
            name = record.module + ".so"
            module = self._read(name)
            if module is None:
                raise _Damaged("is missing")
            if len(module) != record.size or hashlib.sha256(module).hexdigest() != record.module:
                raise _Damaged(f"is damaged: {len(module)} of {record.size} bytes" if len(module) != record.size else
                               "is damaged: its checksum differs")
        except _Damaged as damage:
            self._forget(key, name, str(damage))
            return None
        except _Distrusted as distrust:
            self._skip(str(distrust))
            return None
        except OSError as refused:
            self._skip(f"{self.path / name} cannot be read: {refused.strerror}: chmod -R u+rwX {shlex.quote(str(self.path))}")
            return None
        entry = Entry(self.path / name, record.used, self.shared)
        if not entry.is_current():
            return None
        if not self.shared:
            self._note_use(key)
        return entry

    def _read(self, name: str) -> bytes | None:
        """Reads a file after checking owner and mode of the opened file itself; returns None if there is no file."""
        path = os.path.realpath(self.path / name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        with open(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise _Damaged("is no file")
            folder = os.path.dirname(path)
            problem = _distrust(path, state) or (_distrust_folder(folder) if folder != str(self.path) else None)
            if problem:
                raise _Distrusted(problem)
            return file.read()

    def _forget(self, key: str, name: str, damage: str) -> None:
        if self.shared:
            notice.once(f"suture: {self.path / name} {damage}; it is skipped, so that its chain is compiled in the user's cache")
            return
        notice.log.warning("suture: %s %s; it is removed and compiled again", self.path / name, damage)
        for each in {name, key + ".json"}:
            with contextlib.suppress(OSError):
                os.unlink(self.path / each)

    def _note_use(self, key: str) -> None:
        """Sets the time of a record to now, at most once an hour."""
        path = self.path / (key + ".json")
        with contextlib.suppress(OSError):
            if time.time() - os.stat(path).st_mtime > 3600:
                os.utime(path)

    def make(self) -> None:
        """Creates the folder if it is missing.

        Raises
        ------
        CompileError
            If it cannot be made, belongs to another user, or others may write to it.
        """
        if os.path.lexists(self.path) and not os.path.isdir(self.path):
            raise CompileError(f"suture: the cache {self.path} is no folder; set SUTURE_CACHE to a folder of your own")
        try:
            for folder in (*reversed(self.path.parents), self.path):
                if not folder.exists():
                    folder.mkdir(mode=0o700, exist_ok=True)  # also the folders above, whatever the umask
            owner = self.path.stat().st_uid
        except OSError as problem:
            raise CompileError(f"suture: the cache {self.path} cannot be made: {problem.strerror}; set SUTURE_CACHE to a folder "
                               "of your own that can be written") from None
        if owner != os.getuid():
            raise CompileError(f"suture: the cache {self.path} belongs to another user, {_name(owner)}, so nothing is kept in it; set "
                               "SUTURE_CACHE to a folder of your own")
        problem_here = self.distrust()
        if problem_here:
            self._skip(problem_here)

    @contextlib.contextmanager
    def locked(self, key: str, what: str) -> Iterator[None]:
        """Holds the lock of a source, so that one process compiles it; others wait and log which process they wait for."""
        path = self.path / (key + ".lock")
        wait = notice.Wait()
        while True:
            lock = _try_lock(path)
            if lock is not None:
                break
            holder = _holder(path)
            if holder:
                wait.tell(f"suture: waiting for {holder}", f"suture: still waiting for {holder}")
            time.sleep(_POLL)
        try:
            with contextlib.suppress(OSError):  # on a full disk other processes wait without naming this one
                os.ftruncate(lock, 0)
                os.pwrite(lock, json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "what": what}).encode(), 0)
            yield
        finally:
            _unlock(lock, path)

    @contextlib.contextmanager
    def room(self, key: str) -> Iterator[Path]:
        """Yields an empty folder to compile in. It is removed at the end, or by the next sweep if the process is killed."""
        with tempfile.TemporaryDirectory(dir=self.path, prefix=f"build.{key}.") as room:
            yield Path(room)

    def publish(self, keys: list[str], room: Path, made: Path, source: Path, what: str, used: tuple[Used, ...]) -> Entry:
        """Puts a module into the folder, under each of the keys.

        Parameters
        ----------
        keys
            The names of its records.
        room
            The folder of `made`, in which records are written before they are renamed.
        made, source
            The shared object and its C++ file.
        what, used
            Its name in messages, and the files that it was compiled from.

        Returns
        -------
        Entry
            The module in the folder.
        """
        os.chmod(made, 0o755)  # for anyone who may enter the folder
        with open(made, "rb") as file:
            content = file.read()
            os.fsync(file.fileno())
        record = _Record(hashlib.sha256(content).hexdigest(), len(content), what, used)
        file_name = self.path / (record.module + ".so")
        with self._alone():
            os.replace(made, file_name)
            os.replace(source, self.path / (keys[0] + source.suffix))
            _sync_folder(self.path)
            for key in keys:
                written = room / (key + ".json")
                with open(written, "w") as out:
                    out.write(record.text())
                    out.flush()
                    os.fsync(out.fileno())
                os.chmod(written, 0o644)
                os.replace(written, self.path / (key + ".json"))
            _sync_folder(self.path)
        return Entry(file_name, used, self.shared)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Excludes other processes from publishing and sweeping."""
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def contents(self) -> tuple[int, int]:
        """Returns the number of modules, and the bytes of all files."""
        modules = total = 0
        with contextlib.suppress(OSError), os.scandir(self.path) as files:
            for file in files:
                if _OURS.fullmatch(file.name):
                    with contextlib.suppress(OSError):
                        total += file.stat(follow_symlinks=False).st_size
                        modules += file.name.endswith(".so")
        return modules, total

    def sweep(self, most: int | None = None, keep: Path | None = None) -> int:
        """Removes leftovers of killed processes, and the least recently used modules until the others fit a size.

        Parameters
        ----------
        most
            Bytes that the modules may have afterwards; None: those of SUTURE_CACHE_SIZE.
        keep
            A module that is not removed.

        Returns
        -------
        int
            Number of files that were removed. Modules that a process has loaded remain usable for it.
        """
        most = most_bytes() if most is None else most
        with self._alone():
            removed = self._sweep_rooms_and_locks()
            names = [name for name in os.listdir(self.path) if _OURS.fullmatch(name) and not name.endswith(".lock")]
            sizes: dict[str, int] = {}
            times: dict[str, float] = {}
            for name in names:
                with contextlib.suppress(OSError):
                    state = os.lstat(self.path / name)
                    sizes[name], times[name] = state.st_size, state.st_mtime
            files_of: dict[str, list[str]] = {}
            for name in [name for name in sizes if name.endswith(".json")]:
                with contextlib.suppress(_Damaged, OSError):
                    module = _Record.read((self.path / name).read_bytes()).module + ".so"
                    if module in sizes:
                        files_of.setdefault(module, [module]).extend(
                            n for n in (name, name[:40] + ".cpp", name[:40] + ".cu") if n in sizes)
            known = {name for files in files_of.values() for name in files}
            unused = [name for name in sizes if name not in known]  # a process was killed before it wrote a record
            total = sum(sizes[name] for name in known)
            # A record is newer than its module, and gets a new time when it is used.
            for module in sorted(files_of, key=lambda m: max(times[n] for n in files_of[m])):
                if total <= most:
                    break
                if keep is None or module != keep.name:
                    unused += files_of[module]
                    total -= sum(sizes[name] for name in files_of[module])
            for name in sorted(unused, key=lambda n: not n.endswith(".json")):  # records before their modules
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path / name)
                    removed += 1
        return removed

    def _sweep_rooms_and_locks(self) -> int:
        """Removes folders and locks of compilations that no process works on."""
        removed = 0
        keys = {name[:40] for name in os.listdir(self.path) if _OURS.fullmatch(name) and name.endswith(".lock")}
        rooms = [(match[1], name) for name in os.listdir(self.path) if (match := _ROOM.fullmatch(name))]
        for key in keys | {key for key, _ in rooms}:
            path = self.path / (key + ".lock")
            lock = _try_lock(path)
            if lock is None:
                continue
            try:
                for other, name in rooms:
                    if other == key:
                        shutil.rmtree(self.path / name, ignore_errors=True)
                        removed += 1
            finally:
                _unlock(lock, path)
                removed += key in keys
        return removed


def _try_lock(path: Path) -> int | None:
    """Takes a lock and returns its descriptor, or None while another process has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        here, there = os.fstat(lock), os.stat(path)
        if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
            return lock
    except FileNotFoundError:  # its holder removed it between the two calls
        pass
    except OSError as problem:
        if problem.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            os.close(lock)
            raise
    os.close(lock)
    return None


def _unlock(lock: int, path: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)  # while nobody else can have it
    fcntl.flock(lock, fcntl.LOCK_UN)  # also in children that were forked meanwhile
    os.close(lock)


def _holder(path: Path) -> str | None:
    """Returns a description of the process that holds a lock, or None."""
    try:
        made = json.loads(path.read_bytes())
        where = "" if made["host"] == socket.gethostname() else f" on {made['host']}"
        return f"process {int(made['pid'])}{where}, which compiles {made['what']}"
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot flush folders
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def no_room(problem: OSError, folder: Path) -> CompileError:
    """Returns the error for a cache that cannot be written."""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return CompileError(f"suture: there is no room left in the cache {folder}; free some, or set SUTURE_CACHE to another disk")
    return CompileError(f"suture: the cache {folder} cannot be written: {problem.strerror}; set SUTURE_CACHE to a folder "
                        "that can")


def noexec_mount(folder: Path) -> str | None:
    """Returns the mount point of a folder on a file system mounted noexec; None for other folders."""
    if not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0):
        return None
    at = os.path.realpath(folder)
    while not os.path.ismount(at):
        at = os.path.dirname(at)
    return at
