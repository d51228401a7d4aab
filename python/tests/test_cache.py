# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled modules: what is loaded from it, what is not, and what is left when something goes wrong.

Most tests use a compiler that copies a module that was compiled once, so that they take no time.
"""
import errno
import itertools
import json
import logging
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

import suture as st
from suture.__main__ import main
from suture.backend import cache as folders
from suture.backend import compiler, jit, notice

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOBODY = 65534
PATIENCE = 300  # seconds until a process is given up: machines may be busy, and sanitizers are slow
as_root = pytest.mark.skipif(os.getuid() != 0, reason="files of another user are made by root alone")


def quick(number=0):
    return jit.Source(f"// {number}", f"module {number}")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A module of three lines."""
    made = tmp_path_factory.mktemp("template") / "module.so"
    text = 'extern "C" __attribute__((visibility("default"))) const char* suture_error() { return ""; }\n'
    text += 'static const char content[1 << 16] = {1}; extern "C" const char* suture_content() { return content; }\n'
    subprocess.run([compiler.host_compiler().path, "-shared", "-fPIC", "-x", "c++", "-", "-o", made], input=text, text=True, check=True)
    return made


def write_compiler(path, template, before="", after=""):
    """A compiler that copies the template and appends its source, so that each source makes another module."""
    path.write_text(f"""#!/bin/bash
[ "$1" = --version ] && echo quick && exit
while [ $# -gt 0 ]; do
  [ "$1" = -o ] && out=$2
  case "$1" in */module.cpp) code=$1;; esac
  shift
done
{before}
cat {template} "$code" > "$out" || exit 1
{after}
""")
    path.chmod(0o755)
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch, template):
    """The user's cache, empty, a quick compiler, and nothing said before."""
    monkeypatch.setenv("CXX", str(write_compiler(tmp_path / "cxx", template)))
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SUTURE_CXXFLAGS", "-O0")
    monkeypatch.delenv("SUTURE_SHARED_CACHE", raising=False)
    monkeypatch.setattr(notice, "_said", set())
    monkeypatch.setattr(notice, "FIRST", 3600.)  # the machine may be slow
    monkeypatch.setattr(jit, "_modules", {})
    return tmp_path / "cache"


@pytest.fixture
def said(caplog):
    """What was logged as a warning so far."""
    caplog.set_level(logging.WARNING, "suture")
    return lambda: [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def refused(source=quick()):
    with pytest.raises(st.CompileError) as caught:
        jit.build(source)
    text = str(caught.value)
    assert text.startswith("suture: ") and "\n" not in text
    return text


def files(folder):
    return sorted(f.name for f in folder.iterdir())


def in_a_process(code, first=3600., **settings):
    """Python that knows jit and quick, and tells of what takes `first` seconds."""
    head = f"import sys; sys.path[:0] = [{str(ROOT)!r}]\nfrom suture.backend import jit, notice\nnotice.FIRST = {first}\n" \
           "quick = lambda n=0: jit.Source(f'// {n}', f'module {n}')\n"
    return subprocess.Popen([sys.executable, "-c", head + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)


# What is damaged

DAMAGES = {"cut": lambda f: os.truncate(f, f.stat().st_size // 2), "empty": lambda f: os.truncate(f, 0),
           "changed": lambda f: f.write_bytes(f.read_bytes().replace(b"suture_error", b"suture_terror", 1)[:f.stat().st_size]),
           "missing": lambda f: f.unlink()}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_module_is_compiled_again(cache, said, damage):
    file = jit.build(quick())
    whole = file.read_bytes()
    DAMAGES[damage](file)
    process = in_a_process("jit.load(quick()); print('loaded')")  # not a bus error
    out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "loaded\n")
    assert errors.count("\n") == 1 and str(file) in errors and errors.endswith("it is removed and compiled again\n")
    assert file.read_bytes() == whole
    jit.load(quick())
    assert said() == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"module": "../../evil", "size": 1, "what": "", "used": []}', '{"module": 3}'])
def test_a_damaged_record_is_written_again(cache, said, text):
    file = jit.build(quick())
    record = cache / (jit.key_of(quick()) + ".json")
    whole = record.read_text()
    record.write_text(text)
    assert jit.build(quick()) == file and record.read_text() == whole
    sentence, = said()
    assert sentence.startswith(f"suture: {record} ") and sentence.endswith("it is removed and compiled again")


def test_a_damaged_module_of_a_shared_cache_is_skipped(cache, said, tmp_path, monkeypatch):
    file = jit.build(quick())
    os.truncate(file, 100)
    before = {f: (cache / f).read_bytes() for f in files(cache)}
    monkeypatch.setenv("SUTURE_SHARED_CACHE", str(cache))
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "own"))
    made = jit.build(quick())
    assert made.parent == tmp_path / "own" and {f: (cache / f).read_bytes() for f in files(cache)} == before
    assert jit.build(quick()) == made
    size = len(made.read_bytes())
    assert said() == [f"suture: {file} is damaged: 100 of {size} bytes; it is skipped, so that its chain is compiled in the user's cache"]


# Whatever ends a process

KILLED = "import os\nfor n in range(int(sys.argv[1]) if len(sys.argv) > 1 else 40): jit.load(quick(n))\nprint('loaded')\n"


def check_that_it_works(cache):
    """Every record names a whole module, and a process that needs all of them ends well without a warning."""
    process = in_a_process(KILLED.replace("40", "6"))
    out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, errors) == (0, "loaded\n", "")
    folder = folders.Folder(cache)
    folder.sweep()
    kept = files(cache)
    assert all(f == "lock" or f.endswith((".so", ".json", ".cpp")) for f in kept)
    named = {json.loads((cache / f).read_text())["module"] + ".so" for f in kept if f.endswith(".json")}
    assert named == {f for f in kept if f.endswith(".so")} and len(named) >= 6


@pytest.mark.parametrize("kills", [12, pytest.param(100, marks=pytest.mark.long)])
def test_kills_at_any_moment_leave_a_cache_that_works(cache, template, tmp_path, monkeypatch, kills):
    monkeypatch.setenv("CXX", str(write_compiler(tmp_path / "slow", template, "sleep .02", "sleep .02")))
    random.seed(kills)
    for _ in range(kills):
        process = in_a_process(KILLED)
        while not cache.exists() and process.poll() is None:
            time.sleep(.01)
        time.sleep(random.uniform(0, .4))
        process.kill()
        process.communicate()
    check_that_it_works(cache)


def test_a_killed_process_takes_its_compiler_along(cache, template, tmp_path, monkeypatch):
    running = tmp_path / "running"
    slow = write_compiler(tmp_path / "slow", template, f"echo $$ > {running}.new; mv {running}.new {running}; sleep 100 & wait")
    monkeypatch.setenv("CXX", str(slow))
    process = in_a_process("jit.build(quick())")
    group = waited_for(running)
    process.kill()
    process.communicate()
    assert until(lambda: not alive(group))


def test_an_interrupt_kills_the_compiler_and_leaves_nothing(cache, template, tmp_path, monkeypatch):
    running = tmp_path / "running"
    slow = write_compiler(tmp_path / "slow", template, f"echo $$ > {running}.new; mv {running}.new {running}; sleep 100 & wait")
    monkeypatch.setenv("CXX", str(slow))
    # What a shell runs in the background ignores interrupts, and hands that on.
    process = in_a_process("import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\njit.build(quick())")
    group = waited_for(running)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert "KeyboardInterrupt" in errors and process.returncode != 0
    assert until(lambda: not alive(group)) and files(cache) == []


def waited_for(file):
    assert until(file.exists)
    return int(file.read_text())


def until(is_true):
    end = time.monotonic() + PATIENCE
    while not is_true() and time.monotonic() < end:
        time.sleep(.02)
    return is_true()


def alive(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("function", ["fsync", "replace", "chmod"])
def test_a_disk_that_is_full_at_any_step(cache, monkeypatch, function):
    """One step after the other fails, until a build needs none of them any more."""
    real = getattr(os, function)
    for step in itertools.count(1):
        calls = itertools.count(1)

        def full(*given, **named):
            if next(calls) == step:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(os, function, full)
            try:
                jit.build(quick(step))
            except st.CompileError as problem:
                assert f"there is no room left in the cache {cache}; free some" in str(problem)
        done = next(calls) <= step  # nothing failed
        jit.load(quick(step))
        assert not list(cache.glob("build.*")) and not list(cache.glob("*.lock"))
        if done:
            break
    assert step > 2


FULL = """
set -e
mount -t tmpfs -o size=32k,mode=700 none {0}
{1} -c "{2}" || true
ls -A {0}
mount -o remount,size=4m {0}
{1} -c "{2}"
"""


@as_root
def test_a_disk_that_is_full(tmp_path, cache):
    """A small one, whose cache works as soon as there is room."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    cache.mkdir(mode=0o700)
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}]; from suture.backend import jit; jit.load(jit.Source('// 0', 'a module')); print('loaded')"
    done = subprocess.run(["unshare", "-m", "sh", "-c", FULL.format(cache, sys.executable, code)], capture_output=True, text=True)
    assert done.stdout == "loaded\n"
    assert "CompileError: suture: there is no room left to compile a module; free some" in done.stderr


def test_the_order_in_which_a_module_reaches_the_disk(cache, monkeypatch):
    """Its bytes before its name, its name before the record's, for a machine that loses its power."""
    steps = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda f: (steps.append(("fsync", os.path.basename(os.readlink(f"/proc/self/fd/{f}")))), sync(f)))
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append(("rename", os.path.basename(b))), replace(a, b)))
    file = jit.build(quick())
    record = jit.key_of(quick()) + ".json"
    steps = [step for step in steps if step[1] in ("module.so", file.name, record, cache.name)]
    assert steps == [("fsync", "module.so"), ("rename", file.name), ("fsync", cache.name), ("fsync", record), ("rename", record),
                     ("fsync", cache.name)]


# Whom a cache trusts

def others_may_write_the_folder(cache):
    cache.chmod(0o777)
    return cache


def a_group_may_write_the_folder(cache):
    cache.chmod(0o770)
    return cache


def others_may_write_above(cache):
    cache.parent.chmod(0o777)
    return cache.parent


def others_may_write_a_module(cache):
    file, = cache.glob("*.so")
    file.chmod(0o757)
    return file


def others_may_write_a_record(cache):
    for file in cache.glob("*.json"):
        file.chmod(0o666)
    return cache


def a_link_leads_to_what_others_may_write(cache):
    file, = cache.glob("*.so")
    elsewhere = cache.parent / "elsewhere"
    elsewhere.mkdir()
    file.rename(elsewhere / file.name)
    file.symlink_to(elsewhere / file.name)
    elsewhere.chmod(0o777)
    return elsewhere


def the_cache_is_a_link_to_what_others_may_write(cache):
    real = cache.parent / "real"
    cache.rename(real)
    cache.symlink_to(real)
    real.chmod(0o777)
    return real


MAY_WRITE = [others_may_write_the_folder, a_group_may_write_the_folder, others_may_write_above, others_may_write_a_module,
             others_may_write_a_record, a_link_leads_to_what_others_may_write, the_cache_is_a_link_to_what_others_may_write]


@pytest.fixture
def room(cache, tmp_path, monkeypatch):
    """A cache with a module, in a folder of its own whose mode may be changed."""
    (tmp_path / "above").mkdir(mode=0o755)
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "above/cache"))
    jit.build(quick())
    return tmp_path / "above/cache"


@pytest.mark.parametrize("open_up", MAY_WRITE)
def test_what_others_may_write_is_not_loaded(room, open_up):
    at = open_up(room)
    sentence = refused()
    assert f"others may write to {at}" in sentence and ": chmod go-w " in sentence and "set SUTURE_CACHE to another folder" in sentence
    # The command that it names mends it.
    command = "chmod " + sentence.partition(": chmod ")[2].partition(",")[0]
    subprocess.run(command, shell=True, check=True)
    jit.load(quick())


@pytest.mark.parametrize("open_up", MAY_WRITE)
def test_nor_from_a_shared_cache(room, said, tmp_path, monkeypatch, open_up):
    at = open_up(room)
    monkeypatch.setenv("SUTURE_SHARED_CACHE", str(room))
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "own"))
    assert jit.build(quick()).parent == jit.build(quick()).parent == tmp_path / "own"
    sentence, = said()
    assert f"suture: nothing is loaded from the shared cache {room.resolve()}: others may write to {at}" in sentence
    assert ": chmod go-w " in sentence


def test_a_folder_with_the_sticky_bit_above_is_fine(room):
    room.parent.chmod(0o1777)
    jit.load(quick())


@as_root
@pytest.mark.parametrize("which", ["folder", "above", "module"])
def test_what_belongs_to_another_user_is_not_loaded(room, which, said, tmp_path, monkeypatch):
    at = {"folder": room, "above": room.parent, "module": next(room.glob("*.so"))}[which]
    os.chown(at, NOBODY, -1)
    assert f"{at} belongs to nobody, who is neither you, root nor the owner of the package" in refused()
    monkeypatch.setenv("SUTURE_SHARED_CACHE", str(room))
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "own"))
    assert jit.build(quick()).parent == tmp_path / "own"
    sentence, = said()
    assert f"{at} belongs to nobody" in sentence
    # Who owns the package may as well change what it does.
    monkeypatch.setattr(folders, "_trusted", lambda: {0, NOBODY})
    assert jit.build(quick()).parent == room


def test_nothing_is_written_to_the_cache_of_another_user(cache, monkeypatch):
    cache.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert "belongs to another user" in refused()


def test_the_home_folder_ends_the_look_above(room, monkeypatch):
    """As for OpenSSH: who could change what is above a home folder is its administrator."""
    room.parent.parent.chmod(0o777)
    monkeypatch.setenv("HOME", str(room.parent))
    jit.load(quick())
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setattr(jit, "_modules", {})
    assert f"others may write to {room.parent.parent}" in refused()


# What a module was compiled from

def test_files_that_the_compiler_read_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_modules", {})
    room = tmp_path / "a folder of mine # 1"
    room.mkdir()
    (room / "outer.hpp").write_text('#include "inner.hpp"\n')
    source = jit.Source(f'#include "{room}/outer.hpp"\nextern "C" __attribute__((visibility("default"))) int factor() {{ return FACTOR; }}\n'
                        'extern "C" __attribute__((visibility("default"))) const char* suture_error() { return ""; }', "a factor")
    for factor in (2, 5, 7):
        (room / "inner.hpp").write_text(f"#define FACTOR {factor}\n")
        assert jit.load(source).library.factor() == factor
    assert [u.path for u in jit.load(source).entry.used] == [str(room / "inner.hpp"), str(room / "outer.hpp")]
    (room / "inner.hpp").touch()  # of another time and the same content
    monkeypatch.setenv("SUTURE_JIT", "never")
    monkeypatch.setattr(jit, "_modules", {})
    assert jit.load(source).library.factor() == 7
    (room / "inner.hpp").unlink()
    monkeypatch.setattr(jit, "_modules", {})
    assert "a factor is in no cache and SUTURE_JIT is never" in refused(source)


def test_an_old_file_is_not_read_again(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    used = folders.Used.of(str(file), time.time_ns() + 10_000_000_000)
    assert used.changed > 0 and used.is_same()
    os.utime(file, ns=(0, used.changed))
    file.write_text("y")
    os.utime(file, ns=(0, used.changed))
    assert used.is_same()  # time and size are looked at first
    # What changed just before it was compiled is compared by content, and what changed while it was, is of no known content.
    file.write_text("x")
    assert folders.Used.of(str(file), time.time_ns() + 1_000_000_000).is_same()
    assert not folders.Used.of(str(file), 0).is_same()


# What is kept, and how much

def test_leftovers_are_swept(cache):
    jit.build(quick())
    key, other = "0" * 40, "1" * 40
    (cache / f"build.{key}.abc").mkdir()
    (cache / f"build.{key}.abc/module.so").write_text("half")
    (cache / f"{key}.lock").write_text("")
    (cache / f"build.{jit.key_of(quick(1))}.abc").mkdir()  # of the one that is compiled again
    (cache / f"{'2' * 64}.so").write_text("nothing names it")
    (cache / "notes.so").write_text("not ours")
    kept = {f for f in files(cache) if not f.startswith("build.")} - {f"{key}.lock", f"{'2' * 64}.so"}
    folder = folders.Folder(cache)
    with folder.locked(other, "something"), folder.room(other) as room:
        (room / "module.cpp").write_text("int x;")
        jit.build(quick(1))  # sweeps
        assert (room / "module.cpp").exists() and (cache / f"{other}.lock").exists()
    kept |= {f"{jit.key_of(quick(1))}.{end}" for end in ("json", "cpp")} | {jit.build(quick(1)).name}
    kept.add(jit._source_key(quick(1), compiler.target(False)) + ".json")
    assert set(files(cache)) == kept
    jit.load(quick())


def test_the_least_recently_used_modules_go_beyond_a_size(cache, monkeypatch):
    made = [jit.build(quick(n)) for n in range(4)]
    one = sum(f.stat().st_size for f in cache.iterdir()) / 4
    for n, age in ((0, 10), (1, 40), (2, 30), (3, 20)):
        for key in (jit.key_of(quick(n)), jit._source_key(quick(n), compiler.target(False))):
            os.utime(cache / f"{key}.json", (time.time() - age * 86400,) * 2)
        os.utime(made[n], (time.time() - 50 * 86400,) * 2)
        os.utime(cache / f"{jit.key_of(quick(n))}.cpp", (time.time() - 50 * 86400,) * 2)
    jit.build(quick(1))  # which was the oldest
    folders.Folder(cache).sweep(int(2.5 * one))
    assert [f.exists() for f in made] == [True, True, False, False]
    assert len(list(cache.glob("*.json"))) == 4 and len(list(cache.glob("*.cpp"))) == 2
    monkeypatch.setenv("SUTURE_CACHE_SIZE", "0")
    last = jit.build(quick(9))
    assert [f for f in cache.glob("*.so")] == [last]  # what was just compiled stays
    for wrong in ("much", "-1", "1.5"):
        monkeypatch.setenv("SUTURE_CACHE_SIZE", wrong)
        assert f"SUTURE_CACHE_SIZE is {wrong!r}; set it to a whole number of megabytes" in refused(quick(10))


def test_a_module_that_is_swept_before_it_is_loaded_is_compiled_again(cache, monkeypatch):
    real, times = jit.Module, []

    def late(entry, source):
        times.append(entry)
        if len(times) == 1:
            folders.Folder(cache).sweep(0)
        return real(entry, source)

    monkeypatch.setattr(jit, "Module", late)
    assert isinstance(jit.load(quick()), real) and len(times) == 2


def test_the_command_line_clears_and_sweeps(cache, capsys):
    assert main(["cache", "sweep"]) == 0 and "there is no cache yet" in capsys.readouterr().out
    jit.build(quick())
    assert main(["cache", "sweep"]) == 0 and "0 files removed; 1 compiled" in capsys.readouterr().out
    assert main(["info"]) == 0
    assert f"cache: {cache}, 1 compiled, 0.1 MB, trusted; at most 2000 MB are kept\n" in capsys.readouterr().out
    cache.chmod(0o777)
    assert main(["info"]) == 0
    assert f"cache: {cache}, 1 compiled, 0.1 MB, not trusted: others may write to {cache}: chmod go-w" in capsys.readouterr().out
    cache.chmod(0o700)
    assert main(["cache", "clear"]) == 0 and "; 0 compiled and 0.0 MB left" in capsys.readouterr().out
    assert files(cache) == ["lock"]


def test_folders_above_are_made_for_the_user_alone(tmp_path, cache, monkeypatch):
    """Those that a umask of 002 leaves open to the group would not be trusted."""
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "one/two/three"))
    before = os.umask(0o002)
    try:
        jit.load(quick())
    finally:
        os.umask(before)
    assert jit.build(quick()).parent == tmp_path / "one/two/three"
    assert [(tmp_path / f).stat().st_mode & 0o777 for f in ("one", "one/two", "one/two/three")] == [0o700] * 3


# What is told

def test_a_compiler_that_hangs_is_told_of(cache, said, template, tmp_path, monkeypatch):
    monkeypatch.setattr(notice, "FIRST", .2)
    monkeypatch.setattr(notice, "EVERY", .3)
    monkeypatch.setenv("CXX", str(write_compiler(tmp_path / "slow", template, "sleep 1")))
    jit.build(quick())
    first, second, *_ = said()
    assert first == "suture: compiling module 0 with slow; this is done once"
    assert second.startswith(f"suture: slow is still compiling module 0: {tmp_path}/slow -std=c++20 ") and "s)" in second
    assert not any("waiting" in sentence for sentence in said())


def test_a_process_that_waits_says_for_whom(cache, template, tmp_path, monkeypatch):
    """Without a terminal and without logging set up, each process says one line."""
    running, finish = tmp_path / "running", tmp_path / "finish"
    slow = write_compiler(tmp_path / "slow", template, f"touch {running}; while [ ! -e {finish} ]; do sleep .02; done")
    monkeypatch.setenv("CXX", str(slow))
    first = in_a_process("jit.build(quick())", .1)
    assert until(running.exists)
    second = in_a_process("jit.build(quick())", .1)
    assert first.stderr.readline() == "suture: compiling module 0 with slow; this is done once\n"
    assert second.stderr.readline() == f"suture: waiting for process {first.pid}, which compiles module 0\n"
    finish.touch()
    assert first.communicate(timeout=PATIENCE)[1] == second.communicate(timeout=PATIENCE)[1] == ""
    assert (first.returncode, second.returncode) == (0, 0) and not list(cache.glob("*.lock"))


def test_nobody_is_waited_for_who_does_not_compile(cache):
    """A sweep has the lock for a moment, and says nothing in it."""
    cache.mkdir(mode=0o700)
    path = cache / f"{jit.key_of(quick())}.lock"
    lock = folders._try_lock(path)
    process = in_a_process("jit.build(quick())", .1)
    time.sleep(1)
    folders._unlock(lock, path)
    assert "waiting" not in process.communicate(timeout=PATIENCE)[1] and process.returncode == 0


def test_a_shared_cache_that_is_not_there_is_told_of(cache, said, monkeypatch, tmp_path):
    monkeypatch.setenv("SUTURE_SHARED_CACHE", str(tmp_path / "nowhere"))
    jit.build(quick())
    jit.build(quick(1))
    assert said() == [f"suture: the shared cache {tmp_path}/nowhere is not there or cannot be entered; it is skipped"]


# Each in one sentence

@pytest.mark.parametrize("name, advice", [("SUTURE_CACHE", "a folder of your own"), ("SUTURE_SHARED_CACHE", "one or several folders"),
                                          ("CXX", "a C++20 compiler"), ("SUTURE_CXXFLAGS", "flags such as -O2"),
                                          ("SUTURE_CACHE_SIZE", "megabytes")])
@pytest.mark.parametrize("value", ["", " "])
def test_variables_that_are_set_to_nothing(cache, monkeypatch, tmp_path, name, advice, value):
    monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    before = files(tmp_path)
    assert refused().startswith(f"suture: {name} is set but empty; unset it, or set it to {advice}") and files(tmp_path) == before


def test_flags_with_unbalanced_quotes(cache, monkeypatch):
    monkeypatch.setenv("SUTURE_CXXFLAGS", "-DNAME='x")
    assert refused() == ('suture: SUTURE_CXXFLAGS is "-DNAME=\'x", which cannot be split into flags: no closing quotation; '
                         "close the quotes")


def test_output_in_any_encoding(cache, template, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", str(write_compiler(tmp_path / "latin", template, r"printf '\xfc warning\n' >&2")))
    jit.load(quick())
    monkeypatch.setenv("CXX", str(write_compiler(tmp_path / "wrong", template, r"printf '\xfc: error: no\n' >&2; exit 1")))
    with pytest.raises(st.CompileError, match="\ufffd: error: no\nwhile compiling module 1"):
        jit.build(quick(1))
    odd = tmp_path / "odd"
    odd.write_text("#!/bin/bash\nprintf '\\xfc\\n'; exit 1\n")
    odd.chmod(0o755)
    monkeypatch.setenv("CXX", str(odd))
    assert "odd --version failed: ['\ufffd']" in refused(quick(1))


@pytest.mark.parametrize("dies, name", [("kill -KILL $$", "SIGKILL while compiling module 0, mostly for lack of memory"),
                                        ("echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1", "SIGKILL"),
                                        ("kill -SEGV $$", "SIGSEGV while compiling module 0, try again, or set CXX")])
def test_a_compiler_that_is_killed(cache, template, tmp_path, monkeypatch, dies, name):
    monkeypatch.setenv("CXX", str(write_compiler(tmp_path / "dying", template, dies)))
    assert f"suture: dying was killed by {name}" in refused() and files(cache) == []


def test_a_compiler_that_does_not_answer(cache, monkeypatch):
    def hangs(*_, **__):
        raise subprocess.TimeoutExpired("cxx", 60)

    monkeypatch.setattr(compiler.subprocess, "run", hangs)
    compiler._compiler.cache_clear()
    assert "cxx --version gave no answer for a minute; set CXX to a C++20 compiler" in refused()


def test_no_home(cache, monkeypatch):
    monkeypatch.delenv("SUTURE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    sentence = "suture: there is no home folder to keep compiled modules in; set SUTURE_CACHE to a folder of your own"
    monkeypatch.setenv("HOME", "")
    assert refused() == sentence
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 4711)  # whom the list of users does not have
    assert refused() == sentence


def test_a_cache_that_is_a_file(cache):
    cache.write_text("")
    assert refused() == f"suture: the cache {cache} is no folder; set SUTURE_CACHE to a folder of your own"


AS_NOBODY = """
import os
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    jit.load(quick(int(os.environ["NUMBER"])))
    print("loaded")
except Exception as problem:
    print(type(problem).__name__, problem)
"""


@as_root
def test_a_cache_that_cannot_be_read_or_written(cache, template, monkeypatch):
    """As a user whom permissions stop."""
    import tempfile

    def as_nobody(number):
        return in_a_process(AS_NOBODY, env={**os.environ, "NUMBER": str(number)}).communicate(timeout=PATIENCE)[0].strip()

    with tempfile.TemporaryDirectory() as name:
        room = pathlib.Path(name)
        room.chmod(0o755)
        quick_compiler = room / "cxx"
        copied = room / "template.so"
        copied.write_bytes(template.read_bytes())
        copied.chmod(0o644)
        monkeypatch.setenv("CXX", str(write_compiler(quick_compiler, copied)))
        folder = room / "cache"
        monkeypatch.setenv("SUTURE_CACHE", str(folder))
        folder.mkdir(mode=0o700)
        os.chown(folder, NOBODY, -1)
        if as_nobody(0) != "loaded":
            pytest.skip("other users cannot read the checkout")
        folder.chmod(0o500)  # a home that is read-only
        assert as_nobody(0) == "loaded"
        assert f"CompileError suture: the cache {folder} cannot be written: Permission denied; set SUTURE_CACHE" in as_nobody(1)
        folder.chmod(0o000)
        assert "json cannot be read: Permission denied: chmod -R u+rwX " in as_nobody(0)
        folder.chmod(0o700)
        for file in folder.glob("*.so"):
            file.chmod(0o000)
        assert "so cannot be read: Permission denied: chmod -R u+rwX " in as_nobody(0)
        monkeypatch.setenv("SUTURE_CACHE", str(room / "none"))
        assert f"the cache {room / 'none'} cannot be made: Permission denied; set SUTURE_CACHE" in as_nobody(0)


def test_a_file_system_without_programs(cache, monkeypatch, said, tmp_path):
    class Refusing:
        def __init__(self, path):
            raise OSError("failed to map segment from shared object")

    with monkeypatch.context() as patched:
        patched.setattr(jit.ctypes, "CDLL", Refusing)
        patched.setattr(os, "statvfs", lambda path: type("State", (), {"f_flag": os.ST_NOEXEC}))
        patched.setattr(os.path, "ismount", lambda path: path == str(tmp_path))
        with pytest.raises(st.CompileError, match=rf"\.so cannot be loaded, since {tmp_path} is mounted noexec; set SUTURE_CACHE to"):
            jit.load(quick())
        patched.setattr(os, "statvfs", lambda path: type("State", (), {"f_flag": 0}))
        with pytest.raises(st.CompileError, match=r"\.so cannot be loaded: failed to map segment"):
            jit.load(quick())
    # A shared cache is skipped.
    monkeypatch.setenv("SUTURE_SHARED_CACHE", str(cache))
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "own"))
    real = jit.ctypes.CDLL
    monkeypatch.setattr(jit.ctypes, "CDLL", lambda path: Refusing(path) if path.startswith(str(cache)) else real(path))
    assert jit.load(quick()).entry.file.parent == tmp_path / "own"
    sentence, = said()
    assert sentence.startswith(f"suture: {cache}/") and sentence.endswith(". The shared cache is skipped")


# Versions

@pytest.mark.parametrize("version, macro, words", [
    ("return 3;", True, None), ("return 3;", False, None), (None, False, None),
    ("return 2;", False, "expected a module for version 3 of the interface, got version 2"),
    (None, True, "expected a module for version 3 of the interface, got no version")])
def test_a_module_of_another_version_is_not_called(tmp_path, monkeypatch, version, macro, words):
    monkeypatch.setenv("SUTURE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_modules", {})
    text = 'extern "C" __attribute__((visibility("default"))) const char* suture_error() { return ""; }\n'
    if version:
        text += f'extern "C" __attribute__((visibility("default"))) unsigned suture_version() {{ {version} }}\n'
    if macro:
        text += "#define SUTURE_ABI_FUNCTION(...)\nSUTURE_ABI_FUNCTION(int)\n"
    source = jit.Source(text, "a module")
    if words is None:
        jit.load(source)
    else:
        with pytest.raises(st.CompileError, match=f"suture: a module: {words}.*install suture again"):
            jit.load(source)
