# SPDX-License-Identifier: Apache-2.0
"""Metadata of stores that was changed at random: whatever it says, the package's own error comes up, or nothing."""
import copy
import json
import os
import random
import shutil
import time

import numpy as np
import pytest
from conftest import library
from store_data import phantoms

pytestmark = pytest.mark.store
library("tensorstore")

import suture as st  # noqa: E402
import suture.store  # noqa: E402
from suture.store import arrays, index  # noqa: E402

SECONDS = 30 if os.environ.get("SUTURE_TEST_LONG") == "1" else 2
STRANGE = [None, True, 0, -1, 3, 10 ** 30, .5, float("nan"), float("inf"), "", "..", "/etc", "zyx", "a\0b", [], [[]], [0, 0, 0], {}, {"a": 1}, "9" * 40]


def nodes(record, path=()):
    """The places within a record of JSON."""
    yield path
    if isinstance(record, (dict, list)):
        for key in record if isinstance(record, dict) else range(len(record)):
            yield from nodes(record[key], (*path, key))


def changed(text, draw):
    """A text of JSON with a value replaced, moved or left out, or with some bytes changed or cut off."""
    if draw.random() < .2:
        data = bytearray(text)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        return bytes(data[:draw.randrange(len(data))] if draw.random() < .3 else data)
    record = json.loads(text)
    for _ in range(draw.randint(1, 2)):
        places = list(nodes(record))
        path = draw.choice(places)
        value = copy.deepcopy(draw.choice(STRANGE))
        if not path:
            record = value
            break
        above = record
        for key in path[:-1]:
            above = above[key]
        if draw.random() < .3:
            del above[path[-1]]
        else:
            above[path[-1]] = value
        if not isinstance(record, (dict, list)):
            break
    return json.dumps(record).encode()


def read(store, **settings):
    """Looks at everything that a store says, and reads what is small."""
    cohort = st.store.open(store, **settings)
    for name in list(cohort):
        for member in ("image", "labels", "mask", "levels", "label_levels", "label_counts", "mpp", "classes", "fingerprint", "manifest", "attributes"):
            try:
                found = getattr(cohort[name], member, None)
                for array in found if isinstance(found, list) else [found]:
                    if isinstance(array, st.store.LazyArray):
                        assert array.spacing and array.affine_ras.shape == (4, 4)
                        if array.size < 1 << 20:
                            np.asarray(array[...])
            except st.Error:
                continue


def tries(files_of, look, where):
    """Changes one file after another, and looks; what comes up is the package's error, a sentence of its own."""
    seed, refused, done, end = 0, 0, 0, time.monotonic() + SECONDS
    while time.monotonic() < end or done < 20:
        draw = random.Random(seed)
        path = draw.choice(files_of)
        before = path.read_bytes()
        path.write_bytes(changed(before, draw))
        try:
            look(draw)
        except st.Error as problem:
            refused += 1
            assert str(problem).startswith("suture: ") and "\n" not in str(problem).strip(), (seed, path, problem)
        except Exception as problem:
            raise AssertionError(f"seed {seed} of {path.relative_to(where)} gave {type(problem).__name__}: {problem}") from problem
        finally:
            path.write_bytes(before)
        seed, done = seed + 1, done + 1
    assert 0 < refused


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = phantoms(tmp_path_factory.mktemp("fuzz"), count=2, shape=(9, 8, 10))
    st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=8)
    st.store.set_split(folder / "s", (0, 2), group={"case_00": "a", "case_01": "b"})
    return folder / "s"


def test_stores(made):
    files = [made / "zarr.json", made / ".suture/cases.json", made / ".suture/split.json", *sorted((made / ".suture/manifests").iterdir()),
             *sorted((made / "case_00").rglob("zarr.json"))]

    def look(draw):
        if draw.random() < .5:  # a manifest that its index agrees with, and attributes that their manifest agrees with
            sign(made)
        try:
            read(made, verify=draw.random() < .5, split=draw.choice([None, "train", "val"]))
            for each in (st.store.verify, st.store.info):
                each(made)
        finally:
            (made / ".suture/cases.json").write_bytes(right[0])
            (made / ".suture/manifests/case_00.json").write_bytes(right[1])

    right = [(made / ".suture/cases.json").read_bytes(), (made / ".suture/manifests/case_00.json").read_bytes()]
    tries(files, look, made)


def sign(store):
    """Puts the hashes and sizes of the files of a case as they are now into its manifest, and that into the index."""
    import hashlib

    path = store / ".suture/manifests/case_00.json"
    try:
        manifest = json.loads(path.read_bytes())
        for name, record in manifest["files"].items():
            data = (store / "case_00" / name).read_bytes()
            record.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    except Exception:
        return  # the manifest itself is what was changed
    path.write_text(json.dumps(manifest))
    (store / ".suture/cases.json").unlink(missing_ok=True)


def test_files_of_others(made, tmp_path):
    """An image of OME-Zarr without hashes: the case of the store itself, in a folder, without the attributes of suture."""
    for name in ("0", "labels", "zarr.json"):
        source = made / "case_00" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, (tmp_path / "image.zarr").mkdir(exist_ok=True) or tmp_path / "image.zarr" / name)
    group = json.loads((made / "case_00/zarr.json").read_bytes())
    del group["attributes"]["suture"]
    (tmp_path / "image.zarr/zarr.json").write_text(json.dumps(group))
    files = sorted((tmp_path / "image.zarr").rglob("zarr.json"))
    tries(files, lambda draw: read(tmp_path / "image.zarr"), tmp_path)


def test_an_index_of_any_text_is_no_error(made):
    path = made / ".suture/cases.json"
    before = path.read_bytes()
    right = index.hash_of(index.read_index(made))
    try:
        for seed in range(300):
            path.write_bytes(changed(before, random.Random(seed)))
            found = index.read_index(made)
            assert index.hash_of(found) == right or path.read_bytes() == before
    finally:
        path.write_bytes(before)


# Direct reads --------------------------------------------------------------------------------------------------------------------


def reads_directly(path):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="the system has no direct reads")
def test_direct_reads(made):
    """Boxes that begin and end off the blocks of a disk, read past the cache of the system; or one sentence where it cannot be."""
    if not reads_directly(made / "zarr.json"):
        with pytest.raises(st.Error, match=r"suture: store: io: expected a file system with direct reads at .*, got \w+, which refuses them"):
            st.store.open(made, io="direct")
        return
    direct, plain = st.store.open(made, io="direct", verify=True), st.store.open(made, io="plain")
    assert direct.io == "direct" and plain.io == "plain"
    for name in plain:
        for low, high in (((0, 0, 0), plain[name].image.shape), ((1, 2, 3), (7, 5, 4))):
            for member in ("image", "labels"):
                here, there = getattr(direct[name], member), getattr(plain[name], member)
                box = tuple(slice(a, b) for a, b in zip(low, high))
                assert np.array_equal(here[box], there[box]) and here[box].any()


def test_direct_reads_that_are_refused(made, monkeypatch):
    """As tmpfs and some network file systems refuse them."""
    real = os.open

    def refusing(path, flags, *more, **settings):
        if flags & getattr(os, "O_DIRECT", 0):
            raise OSError(22, "Invalid argument")
        return real(path, flags, *more, **settings)

    monkeypatch.setattr(arrays.os, "open", refusing)
    with pytest.raises(st.Error, match=r'io: expected a file system with direct reads at .*, which refuses them \(.*\). Open it with io="auto"'):
        st.store.open(made, io="direct")
    assert len(st.store.open(made, io="auto")) == 2
