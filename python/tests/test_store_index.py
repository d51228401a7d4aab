# SPDX-License-Identifier: Apache-2.0
"""The index of a store of ten thousand cases: opening reads it and no manifest, writing it hashes what is new."""
import hashlib
import json
import os
import time

import numpy as np
import pytest

from suture.store import files, index

CASES = 10_000


def write_manifest(store, name, text):
    path = files.manifests(store) / f"{name}.json"
    path.with_suffix(".new").write_text(text)
    os.replace(path.with_suffix(".new"), path)


def data_set_hash(store):
    """As docs/store.md defines it."""
    lines = [f"{path.stem} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in sorted(files.manifests(store).iterdir())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def later():
    time.sleep(.03)  # the clock of a file system goes in steps of some milliseconds


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    store = tmp_path_factory.mktemp("index") / "s"
    files.manifests(store).mkdir(parents=True)
    for k in range(CASES):
        (store / f"case_{k:05}").mkdir()
        (files.manifests(store) / f"case_{k:05}.json").write_text(f'{{"case": {k:05}, "padding": "{"0" * 400}"}}')
    return store


@pytest.fixture
def hashed(monkeypatch):
    """The names of the manifests that are read."""
    names = []

    class Counted(index.Manifest):
        def __init__(self, store, name):
            names.append(name)
            super().__init__(store, name)

    monkeypatch.setattr(index, "Manifest", Counted)
    return names


def test_only_what_is_new_is_hashed(large, hashed, monkeypatch):
    later()
    assert index.write_index(large) == data_set_hash(large) and len(hashed) == CASES
    later()

    def opened():
        """The index as it is opened, with the manifests that were read for it."""
        hashed.clear()
        found = index.read_index(large)
        return found, list(hashed)

    with monkeypatch.context() as nothing:
        nothing.setattr(os, "listdir", lambda *_: pytest.fail("folders are listed"))
        found, read = opened()
    assert not read and index.hash_of(found) == data_set_hash(large) and len(found) == CASES
    hashed.clear()
    assert index.write_index(large) == data_set_hash(large) and not hashed

    later()
    write_manifest(large, "case_00007", f'{{"case": 7.000, "padding": "{"1" * 400}"}}')  # of the same size, by a build that was ended
    os.utime(files.manifests(large) / "case_00007.json", ns=(1, 1))
    (large / "new").mkdir()
    write_manifest(large, "new", "{}")
    found, read = opened()
    assert read == ["new"] and found["new"] == hashlib.sha256(b"{}").hexdigest()
    hashed.clear()
    assert index.write_index(large) == data_set_hash(large) and sorted(hashed) == ["case_00007", "new"]

    later()
    (large / "new").rmdir()
    found, read = opened()
    assert "new" not in found and not read
    (files.manifests(large) / "new.json").unlink()
    hashed.clear()
    assert index.write_index(large) == data_set_hash(large) and not hashed


def test_an_index_that_is_not_what_was_written_is_made_anew(large, hashed):
    index.write_index(large)
    path, right = large / ".suture/cases.json", data_set_hash(large)
    record = json.loads(path.read_bytes())
    assert record["sha256"] == right and record["cases"]["case_00001"][1] == (files.manifests(large) / "case_00001.json").stat().st_size
    other = {**record["cases"], "case_00001": ["0" * 64, record["cases"]["case_00001"][1]]}
    fewer = {name: value for name, value in record["cases"].items() if name != "case_00001"}
    for text in ("", "[]", "7", json.dumps({**record, "cases": other}), json.dumps({**record, "cases": fewer}), json.dumps({"cases": {"a": 1}}),
                 json.dumps(record)[:-9], "[" * 100_000, json.dumps({name: sha256 for name, (sha256, _) in record["cases"].items()})):
        path.write_text(text)
        assert index.written_index(large) == {}
    hashed.clear()
    assert index.hash_of(index.read_index(large)) == right and len(hashed) == CASES
    assert index.write_index(large) == right and index.hash_of(index.written_index(large)) == right


def test_a_case_that_is_added_while_the_index_is_written_is_found(tmp_path, monkeypatch):
    """As by a rank that dies before it writes the index itself."""
    store = tmp_path / "s"
    files.manifests(store).mkdir(parents=True)

    def add(name):
        write_manifest(store, name, json.dumps({"case": name}))
        (store / name).mkdir()

    def listed_before(store):
        found = cases_of(store)
        add("second")
        later()
        return found

    add("first")
    cases_of = index.cases_of
    with monkeypatch.context() as other:
        other.setattr(index, "cases_of", listed_before)
        index.write_index(store)
    assert list(index.written_index(store)) == ["first"] and list(index.read_index(store)) == ["first", "second"]
    later()
    index.write_index(store)
    with monkeypatch.context() as nothing:
        nothing.setattr(os, "listdir", lambda *_: pytest.fail("folders are listed"))
        assert list(index.read_index(store)) == ["first", "second"]


def test_ranks_that_end_at_once_leave_one_index(tmp_path):
    """Each writes the index when its share is made; the last one knows the cases of all."""
    import threading

    store = tmp_path / "s"
    files.manifests(store).mkdir(parents=True)
    random = np.random.default_rng(0)

    def rank(r):
        for k in range(r, 60, 4):
            (store / f"case_{k:02}").mkdir()
            (files.manifests(store) / f"case_{k:02}.json").write_text(str(random.integers(1 << 60)))
            if k % 5 == 0:
                index.write_index(store)
        index.write_index(store)

    ranks = [threading.Thread(target=rank, args=(r,)) for r in range(4)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    assert index.hash_of(index.written_index(store)) == data_set_hash(store) and len(index.written_index(store)) == 60
