# SPDX-License-Identifier: Apache-2.0
"""Bad input of stores: one sentence each, the other cases whole, nothing half written."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import library
from store_data import OBLIQUE, ROOT, command, flip, phantoms, tree

pytestmark = pytest.mark.store
library("tensorstore")
nibabel = pytest.importorskip("nibabel")

import suture as st  # noqa: E402
import suture.store  # noqa: E402


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = phantoms(tmp_path_factory.mktemp("made"), count=3)
    report = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=8)
    assert len(report.built) == 3
    return folder


@pytest.fixture
def store(made, tmp_path):
    shutil.copytree(made / "s", tmp_path / "s")
    return tmp_path / "s"


def one_sentence(text, pattern):
    assert text.startswith("suture: store: ") and "\n" not in text and re.search(pattern, text), text


def save(path, data=None, affine=OBLIQUE):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(np.zeros((6, 7, 8), np.int16) if data is None else data, affine), path)


def chunk_of(store, case="case_01", path="0/c/0/0/0", k=4):
    import json

    offset, size, _ = json.loads((store / f".suture/manifests/{case}.json").read_bytes())["files"][path]["chunks"][k]
    return offset, size


# Damage --------------------------------------------------------------------------------------------------------------------------


def damaged_shard(store):
    offset, size = chunk_of(store)
    flip(store / "case_01/0/c/0/0/0", offset + size // 2)


def test_a_chunk_of_another_hash_is_named(store, made):
    damaged_shard(store)
    found = st.store.verify(store, workers=2)
    assert list(found) == ["case_01"]
    one_sentence(found["case_01"], r"chunk \(0, 8, 8\) of 0/c/0/0/0 has not the hash")  # the fifth of 2 x 3 x 3
    told = command("verify", store)
    assert told.returncode == 1 and told.stdout.strip() == found["case_01"]
    careful = st.store.open(store, verify=True)["case_01"].image
    assert np.array_equal(careful[:8, :8, :8], st.store.open(made / "s")["case_01"].image[:8, :8, :8])
    with pytest.raises(st.Error) as problem:
        careful[6:10, 6:10, 6:10]
    one_sentence(str(problem.value), r"case 'case_01'.*chunk \(0, 8, 8\) of 0/c/0/0/0")
    assert list(st.store.open(store).without(found)) == ["case_00", "case_02"]


def test_a_damaged_case_is_made_again(store, made):
    damaged_shard(store)
    (store / "case_00/labels/labels/0/c/0/0/0").unlink()
    (store / "case_02/zarr.json").write_text("{}")
    result = st.store.repair(store, made / "scans", made / "labels")
    assert result.repaired == ["case_00", "case_01", "case_02"] and not result.failed and tree(store) == tree(made / "s")


def test_a_source_that_has_changed_repairs_nothing(store, made, tmp_path):
    damaged_shard(store)
    shutil.copytree(made / "scans", tmp_path / "scans")
    save(tmp_path / "scans/case_01.nii.gz", np.ones((20, 18, 16), np.int16))
    before = tree(store)
    result = st.store.repair(store, tmp_path / "scans", made / "labels")
    one_sentence(result.failed["case_01"], "expected the source to give the manifest .* the source has changed, or the version of suture or of the "
                 "libraries that read and compress it. Run suture store remove for the case, then suture store build")
    assert not result.repaired and tree(store) == before


@pytest.mark.parametrize("another", [False, True])
def test_a_refused_repair_leaves_the_hash_of_the_index(store, made, tmp_path, another):
    path, sound = store / ".suture/manifests/case_01.json", st.store.open(store).sha256
    path.write_bytes(path.read_bytes() + b" ")  # a manifest of another hash, which agrees with the files
    if another:
        flip(store / "case_02/0/c/0/0/0", 40)
    shutil.copytree(made / "scans", tmp_path / "scans")
    save(tmp_path / "scans/case_01.nii.gz", np.ones((20, 18, 16), np.int16))
    result = st.store.repair(store, tmp_path / "scans", made / "labels")
    assert list(result.failed) == ["case_01"] and result.repaired == ["case_02"] * another
    assert st.store.open(store).sha256 == sound
    with pytest.raises(st.Error, match="case 'case_01': expected the manifest"):
        st.store.open(store)["case_01"].image
    one_sentence(st.store.verify(store)["case_01"], "its manifest has not the hash of the index")
    assert st.store.repair(store, made / "scans", made / "labels").repaired == ["case_01"] and tree(store) == tree(made / "s")


def test_a_truncated_chunk(store):
    shard = store / "case_01/0/c/0/0/0"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(st.Error) as problem:
        st.store.open(store)["case_01"].image
    one_sentence(str(problem.value), r"case 'case_01'.*0/c/0/0/0 has \d+ bytes in place of \d+")
    data = shard.read_bytes()
    shard.write_bytes(data + bytes(100))  # of the old length, and no index at its end
    with pytest.raises(st.Error) as problem:
        st.store.open(store)["case_01"].image[...]
    one_sentence(str(problem.value), "case 'case_01': expected readable chunks at")
    one_sentence(st.store.verify(store)["case_01"], "0/c/0/0/0 has not the hash")


def test_a_missing_shard(store):
    (store / "case_01/0/c/0/0/0").unlink()
    with pytest.raises(st.Error) as problem:
        st.store.open(store)["case_01"].image
    one_sentence(str(problem.value), "case 'case_01'.*shard 0/c/0/0/0 is missing")
    assert "shard 0/c/0/0/0 is missing" in st.store.verify(store)["case_01"]


@pytest.mark.parametrize("verify", [False, True])
def test_a_shard_that_goes_while_the_case_is_open(store, verify):
    image = st.store.open(store, verify=verify)["case_01"].image
    assert image[0].any()
    (store / "case_01/0/c/0/0/0").unlink()
    with pytest.raises(st.Error, match="case 'case_01'.*shard 0/c/0/0/0 is missing"):
        image[0]


def test_a_shard_of_zeros_is_not_there_and_one_that_comes_is_refused(tmp_path):
    save(tmp_path / "scans/a.nii.gz")
    st.store.build(tmp_path / "scans", out=tmp_path / "s")
    image, shard = st.store.open(tmp_path / "s")["a"].image, tmp_path / "s/a/0/c/0/0/0"
    assert not shard.exists() and not image[...].any()
    shard.parent.mkdir(parents=True, exist_ok=True)
    shard.write_bytes(b"x")
    with pytest.raises(st.Error, match="case 'a'.*shard 0/c/0/0/0 is not in the manifest"):
        image[0]


@pytest.mark.parametrize("verify", [False, True])
def test_a_case_that_is_made_anew_while_it_is_open(store, made, tmp_path, verify):
    case = st.store.open(store, verify=verify)["case_01"]
    image, before = case.image, case.image[...]
    shutil.copytree(made / "scans", tmp_path / "scans")
    save(tmp_path / "scans/case_01.nii.gz", np.ones((20, 18, 16), np.int16))
    assert st.store.build(tmp_path / "scans", made / "labels", out=store, chunk=8).built == ["case_01"]
    with pytest.raises(st.Error, match="case 'case_01': expected the case that was opened.*made anew meanwhile. Open the store again"):
        image[0]
    assert np.array_equal(st.store.open(store)["case_01"].image[...], np.ones_like(before))


@pytest.mark.parametrize("verify", [False, True])
def test_a_case_that_is_repaired_while_it_is_read(store, monkeypatch, verify):
    from suture.store import arrays

    image = st.store.open(store, verify=verify)["case_01"].image
    want, tensorstore, reads = image[...], arrays._tensorstore(), []

    class Window:
        """It moves the case away for the first read, and brings a copy of it."""

        def array(self, out, context):
            place, away = store / "case_01", store / ".suture/away"
            reads.append(out)
            if len(reads) == 1:
                place.rename(away)
            self.target = tensorstore.array(out, context=context)
            return self

        def write(self, source):
            done = self.target.write(source)
            done.result()
            if len(reads) == 1:
                assert not reads[0].any()  # so tensorstore reads a shard that is gone
                shutil.copytree(store / ".suture/away", store / "case_01")
            return done

    window = Window()
    monkeypatch.setattr(arrays, "_tensorstore", lambda: window)
    assert np.array_equal(image[...], want) and len(reads) == 2


@pytest.mark.parametrize("hashed", [False, True])
def test_a_shard_that_is_overwritten_is_hashed_again(store, hashed):
    image = st.store.open(store, verify=True)["case_01"].image
    if hashed:
        image[...]
    damaged_shard(store)
    with pytest.raises(st.Error, match=r"chunk \(0, 8, 8\) of 0/c/0/0/0 has not the hash"):
        image[...]


def test_a_manifest_that_was_changed(store):
    path = store / ".suture/manifests/case_01.json"
    path.write_bytes(path.read_bytes().replace(b"case_01", b"case_99"))
    one_sentence(st.store.verify(store)["case_01"], "its manifest has not the hash of the index")
    with pytest.raises(st.Error, match="expected the manifest"):
        st.store.open(store)["case_01"].image


def test_what_the_manifest_does_not_name(store):
    (store / "case_01/0/extra").write_text("x")
    one_sentence(st.store.verify(store)["case_01"], "0/extra is not in the manifest")


def test_a_case_that_is_gone(store):
    shutil.rmtree(store / "case_01")
    one_sentence(st.store.verify(store)["case_01"], "is missing")
    assert list(st.store.open(store)) == ["case_00", "case_02"]


def test_a_store_without_manifests(store, made):
    shutil.rmtree(store / ".suture/manifests")
    for use in (st.store.open, st.store.verify, st.store.info, lambda path: st.store.set_split(path, .5), lambda path: st.store.repair(path, made / "scans")):
        with pytest.raises(st.Error) as problem:
            use(store)
        one_sentence(str(problem.value), "expected the manifests of a store in .*manifests, got no such folder. Copy the whole store again")
    assert st.store.build(made / "scans", made / "labels", out=store, chunk=8).built == ["case_00", "case_01", "case_02"]
    assert tree(store) == tree(made / "s")


def test_a_name_in_place_of_names(store):
    with pytest.raises(st.Error, match=r"suture: store: without: names: expected several names, got the string 'case_01'. Pass \['case_01'\]"):
        st.store.open(store).without("case_01")


@pytest.mark.parametrize("key", [None, [0, 2], 1.0, True, np.True_, np.array([1, 2]), (0, [1]), slice(0, 1.5), slice(None, None, 1.0), "a", (..., 0, ...),
                                 (0, np.array([True]))], ids=repr)
def test_indices_that_are_no_whole_numbers(store, key):
    image = st.store.open(store)["case_01"].image
    with pytest.raises(IndexError, match="^suture: store: case 'case_01': index: expected"):
        image[key]


def test_indices_of_numpy(store):
    image = st.store.open(store)["case_01"].image
    voxels = image[...]
    for key in (np.int64(3), np.array(3), slice(np.int32(1), np.array(9), np.uint8(2)), (..., np.int16(-1))):
        assert np.array_equal(image[key], voxels[key])
    with pytest.raises(st.Error, match="case 'case_01': box: expected one of whole numbers within"):
        image.window((0, 0, .5), (4, 4, 4))


def test_a_question_for_a_case_costs_no_search_for_similar_names(monkeypatch):
    import difflib

    from suture.store.cohort import Cohort

    names = [f"case_{i:05d}" for i in range(100_000)]
    cohort, seen = Cohort(pathlib.Path("s"), dict.fromkeys(names), "plain"), []
    with monkeypatch.context() as patch:
        patch.setattr(difflib, "get_close_matches", None)
        assert "case_1234" not in cohort and "case_01234" in cohort and cohort.get("case_1234") is None and cohort.get("x", 3) == 3
    search = difflib.get_close_matches
    monkeypatch.setattr(difflib, "get_close_matches", lambda name, known, *rest: (seen.append(len(known)), search(name, known, *rest))[1])
    for name in ("case_1234", "a", "z", "case_999999"):
        with pytest.raises(KeyError, match=f"expected a case of s, got '{name}'" + ". Nearest are case_" * name.startswith("case")):
            cohort[name]
    assert max(seen) <= 500


@pytest.mark.parametrize("given, slope, got", [(np.float64, 1e300, "1e.300"), (np.float32, 1e38, "1e.40"), (np.int16, 1e37, "1e.39")])
def test_values_that_float32_does_not_hold(tmp_path, given, slope, got):
    data = np.zeros((4, 4, 4), given)
    data[1, 2, 3] = 1 if given is np.float64 else 100
    image = nibabel.Nifti1Image(data, OBLIQUE)
    if given is np.float64:
        image = nibabel.Nifti1Image(data * slope, OBLIQUE)
    else:
        image.header.set_slope_inter(slope, 0)
    (tmp_path / "scans").mkdir()
    nibabel.save(image, tmp_path / "scans/a.nii")
    told = st.store.build(tmp_path / "scans", out=tmp_path / "s").failed["a"]
    one_sentence(told, f"expected values up to 3.4e38, which float32 holds, got {got}")
    if given is np.float64:
        with pytest.raises(st.Error, match=f"expected values up to 3.4e38, which float32 holds, got {got}"):
            st.Volume.load(tmp_path / "scans/a.nii")


def test_infinite_values_stay(tmp_path):
    save(tmp_path / "scans/a.nii.gz", np.where(np.eye(4)[None], np.inf, np.zeros((4, 4, 4))))
    assert st.store.build(tmp_path / "scans", out=tmp_path / "s").built == ["a"]
    assert np.isinf(st.store.open(tmp_path / "s")["a"].image[...]).sum() == 16


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_a_number_of_threads_that_is_none(store, made, workers):
    for use in (lambda: st.store.verify(store, workers=workers), lambda: st.store.repair(store, made / "scans", workers=workers)):
        with pytest.raises(st.Error, match=r"^suture: store: workers: expected a whole number from 1 on, got"):
            use()
    assert not st.store.verify(store, workers=np.int64(2))


def test_a_store_of_another_version(store, made):
    path = store / "zarr.json"
    path.write_bytes(path.read_bytes().replace(b'"store":1', b'"store":2'))
    before = tree(store)
    for use in (lambda: st.store.open(store), lambda: st.store.verify(store), lambda: st.store.build(made / "scans", out=store, chunk=8)):
        with pytest.raises(st.Error) as problem:
            use()
        one_sentence(str(problem.value), "expected a store of version 1, got version 2")
    assert tree(store) == before


# Sources -------------------------------------------------------------------------------------------------------------------------


def test_labels_of_other_extents_or_place(tmp_path):
    moved, turned = OBLIQUE.copy(), OBLIQUE.copy()
    moved[2, 3] += .1
    turned[:3, 0] *= -1
    for name in ("good", "extents", "moved", "turned", "permuted", "soft", "none"):
        save(tmp_path / f"scans/{name}.nii.gz")
    labels = tmp_path / "labels"
    save(labels / "good.nii.gz", np.ones((6, 7, 8), np.float32))
    save(labels / "extents.nii.gz", np.ones((6, 7, 9), np.uint8))
    save(labels / "moved.nii.gz", np.ones((6, 7, 8), np.uint8), moved)
    save(labels / "turned.nii.gz", np.ones((6, 7, 8), np.uint8), turned)
    save(labels / "permuted.nii.gz", np.ones((8, 6, 7), np.uint8), OBLIQUE[:, [2, 0, 1, 3]])
    save(labels / "soft.nii.gz", np.full((6, 7, 8), .5, np.float32))
    report = st.store.build(tmp_path / "scans", labels=labels, out=tmp_path / "s")
    assert report.built == ["good"] and st.store.open(tmp_path / "s")["good"].labels.dtype == "uint8"
    for name, pattern in (("extents", r"labels: expected the extents \(8, 7, 6\) of the image along \(z, y, x\), got \(9, 7, 6\). Resample them"),
                          ("moved", "labels: expected the affine of the image, got one that lies 0.1 mm away at a corner. Resample them"),
                          ("turned", "expected the affine of the image, .* Their axes have other directions: turn them by as_reoriented of nibabel"),
                          ("permuted", "expected the extents .*, got .* Their axes have other directions: turn them"),
                          ("soft", "labels: expected whole numbers"), ("none", "expected one label map of its name in .* got none")):
        one_sentence(report.failed[name], f"case '{name}'.*{pattern}")
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == [".suture", "good", "zarr.json"]
    assert not any((tmp_path / "s/.suture/work").iterdir())


def test_channels_of_mixed_spacings(tmp_path):
    wide = OBLIQUE @ np.diag([1, 1, 2, 1])
    save(tmp_path / "scans/p_0000.nii.gz")
    save(tmp_path / "scans/p_0001.nii.gz", affine=wide)
    report = st.store.build(tmp_path / "scans", out=tmp_path / "s")
    one_sentence(report.failed["p"], r"case 'p': channel p_0001.nii.gz: expected the affine of the image")


def test_files_that_cannot_be_read(tmp_path):
    scans = tmp_path / "scans"
    save(scans / "good.nii.gz")
    save(scans / "cut.nii.gz", np.random.default_rng(1).integers(0, 999, (30, 30, 30)).astype(np.int16))
    (scans / "cut.nii.gz").write_bytes((scans / "cut.nii.gz").read_bytes()[:9000])
    (scans / "text.nii.gz").write_text("no scan")
    (scans / "empty.nii").write_bytes(b"")
    (scans / "text.mha").write_text("no scan")
    (scans / "readme.txt").write_text("no scan")
    save(scans / "five.nii.gz", np.zeros((3, 3, 3, 1, 2), np.int16))
    save(scans / "complex.nii.gz", np.zeros((3, 3, 3), np.complex64))
    os.rename(scans / "text.mha", scans / "itk.mha")
    report = st.store.build(scans, out=tmp_path / "s")
    assert report.built == ["good"] and report.skipped == ["readme.txt"] and sorted(report.failed) == ["complex", "cut", "empty", "five", "itk", "text"]
    for name, sentence in report.failed.items():
        one_sentence(sentence, f"case '{name}': .*expected")


def test_names_that_do_not_serve(tmp_path):
    scans = tmp_path / "scans"
    save(scans / "good.nii.gz")
    save(scans / "a/same.nii.gz")
    save(scans / "b/same.nii")
    save(scans / "__x.nii.gz")
    save(scans / ("n" * 220 + ".nii"))
    os.rename(scans / "__x.nii.gz", os.fsencode(scans) + b"/sc\xe4n.nii.gz")
    save(scans / "__x.nii.gz")
    report = st.store.build(scans, out=tmp_path / "s")
    assert report.built == ["good"] and len(report.failed) == 4
    one_sentence(report.failed["same"], r"case 'same': expected one of this name, got .*a/same.nii.gz and .*b/same.nii")
    one_sentence(report.failed["sc\\xe4n"], "expected a name in UTF-8")
    one_sentence(report.failed["__x"], "which Zarr reserves")
    told = command("build", scans, "--out", tmp_path / "t")
    assert told.returncode == 1 and len([line for line in told.stderr.splitlines() if " expected " in line]) == 4


def test_links_that_loop(tmp_path):
    scans = tmp_path / "scans"
    save(scans / "inner/good.nii.gz")
    os.symlink(scans, scans / "inner/loop")
    os.symlink("self.nii.gz", scans / "self.nii.gz")
    os.symlink("nowhere.nii.gz", scans / "broken.nii.gz")
    os.symlink(scans / "inner", scans / "twice")
    report = st.store.build(scans, out=tmp_path / "s")
    assert report.built == ["good"] and sorted(report.failed) == ["broken.nii.gz", "inner/loop", "self.nii.gz"]
    one_sentence(report.failed["inner/loop"], "a link that leads back to a folder above it")
    one_sentence(report.failed["self.nii.gz"], "Too many levels of symbolic links")


def test_what_is_not_there(tmp_path):
    save(tmp_path / "scans/a.nii.gz")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/letter.txt").write_text("mine")
    for use, pattern in ((lambda: st.store.build(tmp_path / "nowhere", out=tmp_path / "s"), "which is not there"),
                         (lambda: st.store.build(tmp_path / "empty", out=tmp_path / "s"), "expected NIfTI files, DICOM series or slides, got none"),
                         (lambda: st.store.build(tmp_path / "scans", labels=tmp_path / "nowhere", out=tmp_path / "s"), "labels: expected a folder"),
                         (lambda: st.store.build(tmp_path / "scans", out=tmp_path / "other"), "got other files in"),
                         (lambda: st.store.build(tmp_path / "scans", out=tmp_path / "s", chunk=4), "chunk: expected a whole number from 8"),
                         (lambda: st.store.build(tmp_path / "scans", out=tmp_path / "s", profile="big"), 'profile: expected "small" or "fast"'),
                         (lambda: st.store.build(tmp_path / "scans", out=tmp_path / "s", rank=2, world=2), "rank: expected a whole number from 0 to 1, got 2"),
                         (lambda: st.store.build(tmp_path / "scans", out=tmp_path / "s", rank=0, world=0), "world: expected a whole number from 1 on, got 0"),
                         (lambda: st.store.build(tmp_path / "scans", out=tmp_path / "s", rank=0), "rank and world together"),
                         (lambda: st.store.open(tmp_path / "nowhere"), "which is not there"), (lambda: st.store.open(tmp_path / "other"), "got none in"),
                         (lambda: st.store.open(tmp_path / "scans", verify=True), "which has hashes"),
                         (lambda: st.store.open(tmp_path / "scans", io="fast"), "io: expected"),
                         (lambda: st.store.open(tmp_path / "scans").sha256, "sha256: expected a store of suture")):
        with pytest.raises(st.Error) as problem:
            use()
        one_sentence(str(problem.value), pattern)
    assert (tmp_path / "other/letter.txt").read_text() == "mine" and not (tmp_path / "s").exists()


# A disk that is full --------------------------------------------------------------------------------------------------------------

FULL = """
import resource, sys, suture as st, suture.store
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
report = st.store.build(sys.argv[1], out=sys.argv[2], chunk=8)
print(*report.failed.values(), sep="\\n")
"""


def test_a_full_disk(made, tmp_path):
    """Files cannot grow beyond a limit, so that writing ends as on a full disk; afterwards the same command completes the store."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    child = subprocess.run([sys.executable, "-c", FULL, made / "scans", tmp_path / "s", "6000"], env=env, text=True, capture_output=True)
    sentences = child.stdout.strip().split("\n")
    assert child.returncode == 0 and len(sentences) == 3, child.stderr
    for sentence in sentences:
        one_sentence(sentence, "expected room on the disk, got 'File too large'")
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == [".suture", "zarr.json"] and not any((tmp_path / "s/.suture/work").iterdir())
    assert st.store.build(made / "scans", out=tmp_path / "s", chunk=8).built == ["case_00", "case_01", "case_02"]
    st.store.build(made / "scans", out=tmp_path / "t", chunk=8)
    assert tree(tmp_path / "s") == tree(tmp_path / "t")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_full_file_system(made, tmp_path):
    (tmp_path / "small").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path / "small"], capture_output=True).returncode:
        pytest.skip("mounting is not allowed")
    try:
        report = st.store.build(made / "scans", out=tmp_path / "small/s", chunk=8)
        failed = report.failed
        assert failed and all("expected room on the disk, got 'No space left on device'" in sentence for sentence in failed.values())
        assert set(report.built) | set(failed) == {"case_00", "case_01", "case_02"} and not st.store.verify(tmp_path / "small/s")
    finally:
        subprocess.run(["umount", tmp_path / "small"], check=True)


def test_label_maps_without_a_case_are_listed(tmp_path):
    folder = phantoms(tmp_path, count=2)
    (folder / "labels/case_00.nii.gz").rename(folder / "labels/case_0.nii.gz")
    (folder / "labels/slide.png").touch()
    report = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16)
    assert report.built == ["case_01"] and list(report.failed) == ["case_00"]
    assert report.skipped == [f"{folder}/labels/case_0.nii.gz", f"{folder}/labels/slide.png"]
    (folder / "scans/case_01.nii.gz").write_bytes(b"")  # a case that fails has a label map all the same
    assert st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16).skipped == report.skipped


def test_a_scan_in_place_of_a_label_map_is_told(tmp_path):
    folder = phantoms(tmp_path, count=2)
    (folder / "scans/case_01.nii.gz").rename(folder / "scan.nii.gz")
    (folder / "labels/case_01.nii.gz").rename(folder / "scans/case_01.nii.gz")
    (folder / "scan.nii.gz").rename(folder / "labels/case_01.nii.gz")
    count = len(np.unique(np.asarray(nibabel.load(folder / "labels/case_01.nii.gz").dataobj)))
    sentence = (f"suture: store: case 'case_01': labels: expected at most 1024 different labels, got {count} in {folder}/labels/case_01.nii.gz. The "
                "case is in the store; if its scan and its label map are swapped, name them right and run the same command again")
    for workers in (1, 2):  # also of a case that is there already
        report = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16, workers=workers)
        assert report.doubtful == {"case_01": sentence} and not report.failed
    done = command("build", folder / "scans", "--labels", folder / "labels", "--out", folder / "s", "--chunk", 16)
    assert done.returncode == 0 and sentence in done.stderr.splitlines()
