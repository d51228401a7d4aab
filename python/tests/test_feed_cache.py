# SPDX-License-Identifier: Apache-2.0
"""Decoded chunks in the memory that ranks of a machine share: the same bits, bounded, and nothing left behind."""
import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from suture.feed import cache as module
from suture.feed.cache import Cache, CachedSource, counted
from test_boxes import Recorded, volume
from test_feed import MAPS, SCANS, expected, feed_of, seen

RNG = np.random.default_rng(3)


class Chunked(Recorded):
    chunk = (4, 5, 6)


class Case:
    """A case as a store has them: what its voxels are is said by a hash."""

    def __init__(self, name):
        self.name, self.fingerprint, self.sha256 = name, {}, f"{hash(name) & 0xffff:064x}"
        self.arrays = {"image": Chunked(SCANS[name]), "labels": Chunked(MAPS[name])}

    def volume(self, member):
        return volume(self.arrays[member])


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    monkeypatch.setattr(Cache.__init__, "__defaults__", (tmp_path,))
    return tmp_path


def boxes(extents, count):
    for _ in range(count):
        low = [int(RNG.integers(0, n)) for n in extents]
        yield low, [int(RNG.integers(a + 1, n + 1)) for a, n in zip(low, extents)]


@pytest.mark.parametrize("limit", [0, 1000, 40000, 10**9])
@pytest.mark.parametrize("channels", [(), (2,)])
def test_boxes_are_those_of_the_source(root, limit, channels):
    array = RNG.integers(-9, 9, (*channels, 21, 23, 25), dtype=np.int16)
    source = Chunked(array)
    kept = Cache("a", limit)
    cached = CachedSource(source, "key", kept)
    for low, high in boxes((21, 23, 25), 60):
        out = np.full((*channels, *np.subtract(high, low)), 77, np.int16)
        cached.read(low, high, out)
        assert np.array_equal(out, array[(..., *(slice(a, b) for a, b in zip(low, high)))])
        assert kept.used <= limit and stored(kept) == kept.used
    kept.close()
    assert os.listdir(root) == []


def stored(kept):
    return sum(p.stat().st_size for p in kept.folder.iterdir() if p.name != "lock")


def test_what_is_in_it_is_not_read_again(root):
    array = RNG.integers(-9, 9, (20, 20, 24), dtype=np.int16)
    one, other = Chunked(array), Chunked(array)
    first, second = Cache("a", 10**9), Cache("a", 10**9)
    out = np.empty(array.shape, np.int16)
    counted()
    CachedSource(one, "key", first).read((0, 0, 0), array.shape, out)
    assert counted() == (0, 5 * 4 * 4) and len(one.reads) == 80
    CachedSource(other, "key", second).read((0, 0, 0), array.shape, out)
    assert counted() == (80, 0) and other.reads == [] and np.array_equal(out, array) and second.used == 0
    CachedSource(other, "another key", second).read((0, 0, 0), (1, 1, 1), out[:1, :1, :1])
    assert len(other.reads) == 1
    first.close()
    assert os.listdir(root) != []
    second.close()
    assert os.listdir(root) == []


def test_a_feed_has_the_same_bits_and_reads_a_chunk_once(root):
    cohort = {name: Case(name) for name in SCANS}
    with feed_of(cohort, memory="40 MB") as feed:
        assert seen(feed, 4) == expected(12)
        assert 0 < feed.statistics().summary()["hits"] < 1
    for case in cohort.values():
        for source in case.arrays.values():
            assert len(source.reads) == len(set(source.reads))
    assert os.listdir(root) == []
    with feed_of({name: Case(name) for name in SCANS}, memory="40 MB", cache=0) as feed:
        assert seen(feed, 1) == expected(3) and os.listdir(root) == []
    with feed_of({name: Case(name) for name in SCANS}, memory="40 MB", cache=3000, threads=4) as feed:
        assert seen(feed, 4) == expected(12) and feed._cache.used <= 3000
    with pytest.raises(Exception, match="cache: expected less than memory"):
        feed_of({name: Case(name) for name in SCANS}, memory="40 MB", cache="40 MB")


def test_a_full_file_system_ends_it(root, monkeypatch):
    kept = Cache("a", 10**9)
    array = RNG.integers(-9, 9, (20, 20, 24), dtype=np.int16)
    source = Chunked(array)
    full = kept.folder / "full"

    class Full:
        def __getattr__(self, name):
            return getattr(np, name)

        @staticmethod
        def ascontiguousarray(chunk):
            class Failing:
                @staticmethod
                def tofile(file):
                    file.write(b"half")
                    raise OSError(errno.ENOSPC, "No space left on device")

            return Failing if kept.used > 2000 else np.ascontiguousarray(chunk)

    monkeypatch.setattr(module, "np", Full())
    out = np.empty(array.shape, np.int16)
    CachedSource(source, "key", kept).read((0, 0, 0), array.shape, out)
    assert np.array_equal(out, array) and not kept.has_room and kept.used == stored(kept) and not full.exists()
    assert not [p for p in kept.folder.iterdir() if p.name.startswith(".")]
    kept.close()


def test_folders_of_others_are_left_alone(root, monkeypatch):
    mine = Cache("a", 1000).folder
    assert mine is not None and mine.stat().st_mode & 0o777 == 0o700
    name = mine.name
    for trap in ("link", "open"):
        for p in root.iterdir():
            if p.is_symlink():
                p.unlink()
            else:
                for inside in p.iterdir():
                    inside.unlink()
                p.rmdir()
        elsewhere = root / "elsewhere"
        elsewhere.mkdir()
        if trap == "link":
            (root / name).symlink_to(elsewhere)
        else:
            (root / name).mkdir()
            (root / name).chmod(0o777)
        kept = Cache("a", 1000)
        assert kept.folder is None and not kept.has_room and kept.get("x", np.dtype(np.int16), (1,)) is None
        assert os.listdir(elsewhere) == [] and (root / name).exists()
        kept.close()


def test_a_chunk_of_another_size_is_not_taken(root):
    kept = Cache("a", 1000)
    (kept.folder / "key").write_bytes(b"abc")
    assert kept.get("key", np.dtype(np.int16), (2,)) is None
    kept.close()


def test_what_a_killed_process_leaves_is_swept(root):
    program = ("import sys, time; sys.path.insert(0, %r)\nfrom pathlib import Path\nfrom suture.feed.cache import Cache\nimport numpy as np\n"
               "c = Cache('b', 10**6, Path(%r)); c.put('k', np.ones(100)); print('up', flush=True); time.sleep(100)" % (
                   os.path.dirname(os.path.dirname(os.path.abspath(__file__))), str(root)))
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n"
    alive = Cache("a", 1000)
    assert len(os.listdir(root)) == 2  # that of the living is left
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    alive.close()
    assert len(os.listdir(root)) == 1
    Cache("a", 1000).close()
    assert os.listdir(root) == []
