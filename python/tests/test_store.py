# SPDX-License-Identifier: Apache-2.0
"""Stores of scans: what is read back, what other programs read, and the same files however they were made."""
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from conftest import library
from store_data import DATA, OBLIQUE, ROOT, command, phantoms, real, tree

pytestmark = pytest.mark.store
library("tensorstore")
nibabel = pytest.importorskip("nibabel")

import suture as st  # noqa: E402
import suture.feed  # noqa: E402
import suture.store  # noqa: E402
from suture.arrays.lazy import Source  # noqa: E402
from suture.pipeline.class_index import ClassIndex  # noqa: E402
from suture.store import arrays, files  # noqa: E402


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    folder = real(tmp_path_factory.mktemp("real"))
    report = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "cohort.zarr", chunk=32)
    assert report.built == ["ct", "mr"] and not report.failed
    return st.store.open(folder / "cohort.zarr")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Phantoms and the store that one process made of them."""
    folder = phantoms(tmp_path_factory.mktemp("small"))
    report = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "one.zarr", chunk=16)
    assert len(report.built) == 6 and not report.failed
    return folder


def sources(name):
    folder = {"ct": "ct", "mr": "mri"}[name]
    return DATA / folder / f"abdomen_{name}.nii.gz", DATA / folder / f"abdomen_{name}_labels.nii.gz"


@pytest.mark.parametrize("name", ["ct", "mr"])
def test_voxels_are_those_that_nibabel_reads(cohort, name):
    image, labels = (nibabel.load(path) for path in sources(name))
    case = cohort[name]
    assert case.image.dtype == image.get_data_dtype().name and case.image.dtype in ("int16", "uint16")
    assert np.array_equal(case.image[...], np.asarray(image.dataobj).T)
    assert np.array_equal(case.labels[...], np.asarray(labels.dataobj).T)
    assert np.allclose(case.image.affine_ras[:, [2, 1, 0, 3]], image.affine, rtol=0, atol=1e-5)
    assert case.image.grid == st.Volume.from_nibabel(image).grid
    each, counts = np.unique(np.asarray(labels.dataobj), return_counts=True)
    assert case.classes == dict(zip(each.tolist(), counts.tolist()))
    assert ClassIndex.from_bytes(case.labels.class_index) == ClassIndex.of(np.asarray(labels.dataobj).T.astype(np.int32))
    assert ClassIndex.from_bytes(case.labels.class_index).counts() == case.classes


def test_places_are_those_of_simpleitk(cohort):
    SimpleITK = pytest.importorskip("SimpleITK")
    image = SimpleITK.ReadImage(str(sources("ct")[0]))
    case = cohort["ct"]
    assert np.array_equal(case.image[...], SimpleITK.GetArrayFromImage(image))
    affine = case.volume("image").affine_lps
    for index in ((0, 0, 0), (5, 40, 100), (121, 100, 111)):
        assert np.allclose(affine @ [*index[::-1], 1], [*image.TransformIndexToPhysicalPoint(index), 1], atol=1e-4)
    assert case.image.spacing == pytest.approx(dict(zip("xyz", image.GetSpacing())))


def test_boxes_are_read_into_memory_that_is_given(cohort):
    whole = np.asarray(nibabel.load(sources("ct")[0]).dataobj).T
    image = cohort["ct"].image
    assert isinstance(image, Source) and image.class_index is None
    draw = random.Random(3)
    for _ in range(40):
        low = [draw.randrange(n) for n in whole.shape]
        high = [draw.randrange(a, n) + 1 for a, n in zip(low, whole.shape)]
        shape = [b - a for a, b in zip(low, high)]
        around = np.full([2 * n + 1 for n in shape], 77, np.int16)
        out = around[1::2, ::-2, :shape[2]][:shape[0], :shape[1]]
        image.read(low, high, out)
        assert np.array_equal(out, whole[tuple(slice(a, b) for a, b in zip(low, high))])
        out[...] = 77
        assert (around == 77).all()


@pytest.mark.parametrize("key", [np.s_[5], np.s_[..., 3], np.s_[2:50:3, -1], np.s_[-5:, 4:4], np.s_[:, 1:9, ::7], np.s_[111, 100, 121]])
def test_indexing_is_numpys(cohort, key):
    whole = np.asarray(nibabel.load(sources("ct")[0]).dataobj).T
    assert np.array_equal(cohort["ct"].image[key], whole[key])


def test_a_box_that_does_not_fit_is_refused(cohort):
    image = cohort["ct"].image
    for low, high, out in (((0, 0, 0), (113, 1, 1), np.empty((113, 1, 1), np.int16)), ((0, 0, 0), (0, 1, 1), np.empty((0, 1, 1), np.int16)),
                           ((0, 0, 0), (2, 2, 2), np.empty((2, 2, 2), np.int32)), ((0, 0, 0), (2, 2, 2), np.empty((2, 2, 3), np.int16))):
        with pytest.raises(st.Error, match="suture: store: case 'ct': (box|out): expected"):
            image.read(low, high, out)


def test_zarr_python_reads_it(cohort):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(cohort.path, mode="r")
    for name in cohort:
        assert np.array_equal(group[f"{name}/0"][...], np.asarray(nibabel.load(sources(name)[0]).dataobj).T)
        assert np.array_equal(group[f"{name}/labels/labels/0"][...], np.asarray(nibabel.load(sources(name)[1]).dataobj).T)
    assert group["ct/0"].chunks == (32, 32, 32) and group["ct/0"].shards == (128, 128, 128)
    assert len(list((cohort.path / "ct/0/c").rglob("*"))) == 3  # one shard, in two folders


def test_it_is_ome_zarr(cohort):
    pytest.importorskip("ngff_zarr")
    pytest.importorskip("jsonschema")
    from ngff_zarr.validate import validate

    for name in cohort:
        for path, model in ((name, "image"), (f"{name}/labels/labels", "label"), (f"{name}/labels/body", "label"), (f"{name}/labels/labels", "image")):
            attributes = json.loads((cohort.path / path / "zarr.json").read_bytes())["attributes"]
            validate(attributes, version="0.5", model=model)


def test_ngff_zarr_reads_scale_place_and_orientation(cohort):
    ngff = pytest.importorskip("ngff_zarr")
    image = ngff.from_ngff_zarr(str(cohort.path / "ct")).images[0]
    source = nibabel.load(sources("ct")[0])
    assert list(image.dims) == ["z", "y", "x"] and image.scale == pytest.approx(dict(zip("xyz", source.header.get_zooms())))
    origin = source.affine[:3, 3] * [-1, -1, 1]
    assert image.translation == pytest.approx(dict(zip("xyz", origin)), abs=1e-4)
    assert np.array_equal(np.asarray(image.data), np.asarray(source.dataobj).T)
    letters = {"L": "right-to-left", "R": "left-to-right", "P": "anterior-to-posterior", "A": "posterior-to-anterior", "S": "inferior-to-superior",
               "I": "superior-to-inferior"}
    axes = json.loads((cohort.path / "ct/zarr.json").read_bytes())["attributes"]["ome"]["multiscales"][0]["axes"]
    assert [a["orientation"]["value"] for a in axes] == [letters[c] for c in nibabel.aff2axcodes(source.affine)[::-1]]


def test_hashes_are_those_of_other_programs(cohort):
    checksum = pytest.importorskip("zarr_checksum")
    from zarr_checksum.generators import yield_files_local

    lines = b""
    for name, case in cohort.items():
        path = cohort.path / f".suture/manifests/{name}.json"
        assert case.sha256 == subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
        manifest = json.loads(path.read_bytes())
        assert manifest["zarr_checksum"] == str(checksum.compute_zarr_checksum(yield_files_local(cohort.path / name)))
        on_disk = {str(p.relative_to(cohort.path / name)) for p in (cohort.path / name).rglob("*") if p.is_file()}
        assert set(manifest["files"]) == on_disk
        for file, record in manifest["files"].items():
            data = (cohort.path / name / file).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (record["bytes"], record["sha256"])
            for offset, size, sha256 in filter(None, record.get("chunks", ())):
                assert hashlib.sha256(data[offset:offset + size]).hexdigest() == sha256
        chunks = [c for c in manifest["files"]["0/c/0/0/0"]["chunks"] if c]
        assert len(chunks) == int(np.prod([-(-n // 32) for n in case.image.shape]))
        lines += f"{name} {case.sha256}\n".encode()
    assert cohort.sha256 == hashlib.sha256(lines).hexdigest()


def test_statistics_are_numpys_and_nnunets(cohort):
    for name, case in cohort.items():
        image, labels = (np.asarray(nibabel.load(path).dataobj).T for path in sources(name))
        found, = case.fingerprint["intensities"]
        wide = image.astype(np.float64)
        wanted = dict(count=image.size, mean=wide.mean(), std=wide.std(), min=wide.min(), max=wide.max(), median=np.median(wide),
                      percentile_00_5=np.percentile(wide, .5), percentile_99_5=np.percentile(wide, 99.5))
        assert found == pytest.approx(wanted, rel=1e-12)
        extractor = pytest.importorskip("nnunetv2.experiment_planning.dataset_fingerprint.fingerprint_extractor")
        _, (theirs,) = extractor.DatasetFingerprintExtractor.collect_foreground_intensities(labels[None], image[None])
        ours, = case.fingerprint["foreground_intensities"]
        assert {k: ours[k] for k in theirs} == pytest.approx({k: float(v) for k, v in theirs.items()}, rel=1e-6)


def test_the_body_is_where_the_labels_are(cohort):
    case = cohort["ct"]
    mask = case.mask[...]
    step = [round(case.mask.spacing[k] / case.image.spacing[k]) for k in "zyx"]
    labels = case.labels[...][tuple(slice(None, None, k) for k in step)]
    assert mask.shape == labels.shape and (mask[labels > 0] > 0).mean() > .99
    air = case.image[...][tuple(slice(None, None, k) for k in step)] < -900
    assert .2 < mask.mean() < .9 and (mask[air] > 0).mean() < .15  # lungs and bowel hold air within the body


@pytest.mark.parametrize("dtype, slope, intercept, kept", [
    ("int16", None, None, "int16"), ("uint16", 1, -1024, "int16"), ("int16", 2.5, -3, "float32"), ("uint8", 1, 100, "int16"), ("int16", 1, .5, "float32"),
    (">i2", None, None, "int16"), ("uint32", None, None, "int16"), ("int32", None, None, "int32"), ("float32", None, None, "float32"),
    ("float64", None, None, "float32"), ("uint8", None, None, "uint8"), ("float32", 2, 1, "float32")])
def test_types_and_scaling(tmp_path, dtype, slope, intercept, kept):
    draw = np.random.default_rng(4)
    data = draw.integers(0, 200, (7, 6, 5)).astype(dtype)
    if dtype == "int32":
        data[0, 0, 0] = 100000
    image = nibabel.Nifti1Image(data, OBLIQUE)
    if slope is not None:
        image.header.set_slope_inter(slope, intercept)
    nibabel.save(image, tmp_path / "a.nii.gz")
    raw = nibabel.load(tmp_path / "a.nii.gz")
    if slope is not None:  # nibabel divides what it saves: the file's own bytes are set here
        raw_data = np.asarray(raw.dataobj.get_unscaled())
    case = st.store.open(tmp_path / "s", verify=True)["a"] if st.store.build(tmp_path / "a.nii.gz", out=tmp_path / "s").built else None
    assert case.image.dtype == kept
    assert np.array_equal(case.image[...], raw.get_fdata().astype(np.float32).T)
    if kept == "float32" and np.dtype(dtype).kind in "iu":
        assert case.image.stored_dtype == "int16" and case.image.scaling == (slope, intercept)
        assert np.array_equal(st.store.open(tmp_path / "s")["a"].image[2:4, 1:5, 3], raw.get_fdata().astype(np.float32).T[2:4, 1:5, 3])
        stored = np.empty((5, 6, 7), np.int16)
        case.image.read_stored([(0, n) for n in stored.shape], stored)
        assert np.array_equal(stored, raw_data.T)


def test_micrometers_become_millimeters(tmp_path):
    affine = np.diag([500, 250, 2000, 1])
    for name, unit in (("micro", "micron"), ("milli", "mm")):
        (tmp_path / name).mkdir()
        image = nibabel.Nifti1Image(np.ones((4, 5, 6), np.int16), affine)
        image.header.set_xyzt_units(unit)
        nibabel.save(image, tmp_path / name / "a.nii")
        st.store.build(tmp_path / name, out=tmp_path / f"{name}.zarr")
    assert st.store.open(tmp_path / "micro.zarr")["a"].image.spacing == pytest.approx({"z": 2, "y": .25, "x": .5})
    assert st.store.open(tmp_path / "micro")["a"].image.spacing == pytest.approx({"z": 2, "y": .25, "x": .5})
    assert st.store.open(tmp_path / "milli.zarr")["a"].image.spacing == pytest.approx({"z": 2000, "y": 250, "x": 500})
    assert np.allclose(st.store.open(tmp_path / "micro.zarr")["a"].attributes["affine_ras"], np.diag([.5, .25, 2, 1]))


def test_channels_are_those_of_nnunets_names(tmp_path):
    draw = np.random.default_rng(5)
    data = draw.integers(0, 999, (2, 3, 9, 8, 7)).astype(np.int16)
    for case in range(2):
        for channel in range(3):
            nibabel.save(nibabel.Nifti1Image(data[case, channel], OBLIQUE), tmp_path / f"p{case}_{channel:04d}.nii.gz")
    st.store.build(tmp_path, out=tmp_path / "s")
    cohort = st.store.open(tmp_path / "s")
    assert list(cohort) == ["p0", "p1"]
    assert np.array_equal(cohort["p1"].image[...], data[1].transpose(0, 3, 2, 1)) and len(cohort["p1"].fingerprint["intensities"]) == 3
    assert cohort["p1"].volume().spacing == pytest.approx(dict(zip("xyz", nibabel.affines.voxel_sizes(OBLIQUE))))


def test_a_case_that_lacks_a_channel_is_refused_alone(tmp_path):
    image = nibabel.Nifti1Image(np.arange(9 * 8 * 7, dtype=np.int16).reshape(9, 8, 7), OBLIQUE)
    for name in ("p0_0000", "p0_0001", "p0_0002", "p1_0001", "p2_0000", "p2_0001"):
        nibabel.save(image, tmp_path / f"{name}.nii.gz")
    report = st.store.build(tmp_path, out=tmp_path / "s")
    assert report.built == ["p0"] and st.store.open(tmp_path / "s")["p0"].image.shape == (3, 7, 8, 9)
    assert report.failed == {
        "p1": "suture: store: case 'p1': expected 3 channels, as other cases have, got no p1_0000 and 1 others. Add the file, or leave the case out",
        "p2": "suture: store: case 'p2': expected 3 channels, as other cases have, got no p2_0002. Add the file, or leave the case out"}


def test_whole_numbers_do_not_wrap(tmp_path):
    image = nibabel.Nifti1Image(np.full((9, 8, 7), 2 ** 63 + 7, np.uint64), OBLIQUE, dtype=np.uint64)
    image.header.set_slope_inter(1, 5)
    nibabel.save(image, tmp_path / "a.nii")
    found = st.store.build(tmp_path, out=tmp_path / "s").failed["a"]
    assert re.search(f"case 'a': .*a.nii: expected whole numbers that 32 bits hold, got {2 ** 63 + 12} to {2 ** 63 + 12}$", found), found


def test_a_plan_takes_a_case(small):
    cohort = st.store.open(small / "one.zarr")
    pipeline = st.Pipeline(image=[st.window(center=100, width=900), st.cast("float32")], seg=st.labels())
    lazy = {"image": [c.volume("image") for c in cohort.values()], "seg": [c.volume("labels") for c in cohort.values()], "id": list(cohort)}
    whole = {"image": [st.Volume(c.image[...], axes="zyx", grid=c.image.grid) for c in cohort.values()],
             "seg": [st.Volume(c.labels[...], axes="zyx", grid=c.labels.grid) for c in cohort.values()], "id": list(cohort)}
    for ours, theirs in zip(pipeline(lazy, seed=1)["image"], pipeline(whole, seed=1)["image"]):
        assert st.digest(ours) == st.digest(theirs)


# The same files, however they were made ------------------------------------------------------------------------------------------


def test_processes_make_the_same_files(small, capfd):
    report = st.store.build(small / "scans", labels=small / "labels", out=small / "workers.zarr", chunk=16, workers=3)
    assert "Warning" not in capfd.readouterr().err
    assert len(report.built) == 6 and tree(small / "workers.zarr") == tree(small / "one.zarr")
    assert report.sha256 == st.store.open(small / "one.zarr").sha256


def test_ranks_make_the_same_files(small):
    for rank in (1, 0):
        report = st.store.build(small / "scans", labels=small / "labels", out=small / "ranks.zarr", chunk=16, rank=rank, world=2)
        assert len(report.built) == 3
    assert tree(small / "ranks.zarr") == tree(small / "one.zarr")


def test_ranks_at_once_make_the_same_files(small):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    line = [sys.executable, "-m", "suture", "store", "build", small / "scans", "--labels", small / "labels", "--out", small / "at_once.zarr", "--chunk",
            "16", "--world", "2", "--rank"]
    children = [subprocess.Popen([*line, str(rank)], env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for rank in (0, 1, 1)]
    assert [child.wait(300) for child in children] == [0, 0, 0]
    assert tree(small / "at_once.zarr") == tree(small / "one.zarr")


def test_dask_makes_the_same_files(small):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                  env={"PYTHONPATH": str(ROOT / "python")}) as cluster:
        report = st.store.build(small / "scans", labels=small / "labels", out=small / "dask.zarr", chunk=16, dask=cluster.scheduler_address)
    assert len(report.built) == 6 and not report.failed and tree(small / "dask.zarr") == tree(small / "one.zarr")


def test_builds_on_one_cluster_share_no_case(tmp_path):
    """Results of earlier builds stay on the cluster as long as a client holds them; the cases have the same names."""
    distributed = pytest.importorskip("distributed")
    folders = [phantoms(tmp_path / name, count=2, seed=seed) for seed, name in enumerate("ab")]
    held = []

    class Client(distributed.Client):
        def submit(self, *arguments, **given):
            future = super().submit(*arguments, **given)
            held.append(distributed.Future(future.key, self))
            return future

    def built(folder):
        report = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16, dask=client)
        assert not report.failed and list(st.store.open(folder / "s")) == ["case_00", "case_01"]
        for case in ("case_00", "case_01"):
            image = nibabel.load(folder / f"scans/{case}.nii.gz")
            assert np.array_equal(st.store.open(folder / "s")[case].image[...], np.asarray(image.dataobj).T)
        return report.built

    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        for folder in folders:
            assert built(folder) == ["case_00", "case_01"]
        nibabel.save(nibabel.Nifti1Image(np.zeros((20, 18, 16), np.int16), OBLIQUE), folders[0] / "scans/case_01.nii.gz")
        assert built(folders[0]) == ["case_01"] and built(folders[0]) == []
        assert len({future.key for future in held}) == 8
        assert [str(folders[0] / "s") in future.key for future in held] == [True] * 2 + [False] * 2 + [True] * 4


def test_what_is_there_is_used_again(small, tmp_path):
    folder = phantoms(tmp_path, count=3)
    store = folder / "s"
    st.store.build(folder / "scans", labels=folder / "labels", out=store, chunk=16)
    before = tree(store)
    report = st.store.build(folder / "scans", labels=folder / "labels", out=store, chunk=16)
    assert report.reused == ["case_00", "case_01", "case_02"] and not report.built and tree(store) == before
    changed = nibabel.Nifti1Image(np.zeros((20, 18, 16), np.int16), OBLIQUE)
    nibabel.save(changed, folder / "scans/case_01.nii.gz")
    report = st.store.build(folder / "scans", labels=folder / "labels", out=store, chunk=16)
    assert report.built == ["case_01"] and report.reused == ["case_00", "case_02"]
    assert not st.store.open(store)["case_01"].image[...].any() and not st.store.verify(store)
    with pytest.raises(st.Error, match="suture: store: expected the settings that .* was built with"):
        st.store.build(folder / "scans", labels=folder / "labels", out=store, chunk=32)


def test_a_source_that_was_replaced_by_an_older_one_of_its_size_is_made_again(tmp_path):
    scans, store = tmp_path / "scans", tmp_path / "s"
    scans.mkdir()
    volumes = {name: np.full((6, 5, 4), k, np.int16) for k, name in enumerate("abcd")}
    for name, voxels in volumes.items():
        nibabel.save(nibabel.Nifti1Image(voxels, OBLIQUE), (tmp_path if name == "d" else scans) / f"{name}.nii")
    for path in (*scans.iterdir(), tmp_path / "d.nii"):
        os.utime(path, ns=(10 ** 18, 10 ** 18))  # all of one time, long ago

    def made():
        report = st.store.build(scans, out=store)
        cohort = st.store.open(store)
        return report.built, [int(cohort[name].image[0, 0, 0]) for name in cohort]

    assert made() == (["a", "b", "c"], [0, 1, 2])
    os.rename(scans / "a.nii", scans / "x")
    os.rename(scans / "b.nii", scans / "a.nii")
    os.rename(scans / "x", scans / "b.nii")
    assert made() == (["a", "b"], [1, 0, 2])
    os.rename(tmp_path / "d.nii", scans / "c.nii")
    assert made() == (["c"], [1, 0, 3])
    assert made() == ([], [1, 0, 3])


@pytest.mark.parametrize(("header", "data"), [
    ("a.mhd", "ObjectType = Image\nNDims = 3\nDimSize = 4 5 6\nElementType = MET_SHORT\nElementDataFile = a.raw\n"),
    ("a.mhd", "ObjectType = Image\nNDims = 3\nDimSize = 4 5 6\nElementType = MET_SHORT\nElementDataFile = LIST\n" + "".join(f"a{k}.raw\n" for k in range(6))),
    ("a.mhd", "ObjectType = Image\nNDims = 3\nDimSize = 4 5 6\nElementType = MET_SHORT\nElementDataFile = a%d.raw 0 5 1\n"),
    ("a.nhdr", "NRRD0004\ntype: short\ndimension: 3\nsizes: 4 5 6\nspacings: 1 1 1\nencoding: raw\nendian: little\ndata file: a.raw\n")],
    ids=["mhd", "list", "numbered", "nhdr"])
@pytest.mark.parametrize("kind", ["scans", "labels"])
def test_voxels_beside_a_header_are_a_part_of_the_source(tmp_path, header, data, kind):
    pytest.importorskip("SimpleITK")
    voxels = np.arange(120, dtype=np.int16).reshape(6, 5, 4)

    def write(folder, voxels):
        folder.mkdir(exist_ok=True)
        (folder / header).write_text(data)
        if "a.raw" in data:
            voxels.tofile(folder / "a.raw")
        for k, piece in enumerate(voxels if "a.raw" not in data else ()):
            piece.tofile(folder / f"a{k}.raw")

    def made():
        report = st.store.build(tmp_path / "scans", labels=tmp_path / "labels", out=tmp_path / "s")
        case = st.store.open(tmp_path / "s")["a"]
        source = case.attributes["source"]
        return report.built, {"scans": case.image, "labels": case.labels}[kind][...], {r["name"]: r["sha256"] for r in (*source["files"], *source["labels_data"])}

    for name in ("scans", "labels"):
        write(tmp_path / name, voxels)
    built, first, _ = made()
    assert built == ["a"] and np.array_equal(first, voxels) and made()[0] == []
    write(tmp_path / kind, voxels[:, ::-1])
    built, second, hashes = made()
    assert built == ["a"] and np.array_equal(second, voxels[:, ::-1])
    raw = sorted((tmp_path / "scans").glob("*.raw"))
    assert {path.name for path in raw} <= set(hashes) and len(raw) == (1 if "a.raw" in data else 6)


def test_progress_says_rate_and_time_left(small, tmp_path):
    lines = []
    st.store.build(small / "scans", out=tmp_path / "s", progress=lines.append)
    assert lines[-1].startswith("6 of 6 cases, ") and lines[-1].endswith("MB/s, 0 s left")


def test_progress_counts_cases_that_cannot_be_made(tmp_path):
    folder, lines = phantoms(tmp_path, count=3), []
    (folder / "labels/case_01.nii.gz").unlink()
    report = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", progress=lines.append)
    assert len(report.built) == 2 and list(report.failed) == ["case_01"] and lines[-1].startswith("3 of 3 cases, 1 failed, ")


def test_progress_of_a_build_that_resumes_says_no_time_before_it_is_known(tmp_path, monkeypatch):
    folder, lines = phantoms(tmp_path, count=3), []
    (folder / "scans/case_02.nii.gz").rename(folder / "later.nii.gz")
    st.store.build(folder / "scans", out=folder / "s", chunk=16)
    (folder / "later.nii.gz").rename(folder / "scans/case_02.nii.gz")
    clock = itertools.count()  # each line comes a second after the last
    monkeypatch.setattr(sys.modules["suture.store.build"], "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    st.store.build(folder / "scans", out=folder / "s", chunk=16, progress=lines.append)
    assert lines[:2] == ["1 of 3 cases, 0.0 MB/s", "2 of 3 cases, 0.0 MB/s"]
    assert lines[2].startswith("3 of 3 cases, ") and lines[2].endswith("MB/s, 0 s left")
    lines.clear()
    st.store.build(folder / "scans", out=folder / "s", chunk=16, progress=lines.append)
    assert lines == ["1 of 3 cases, 0.0 MB/s", "2 of 3 cases, 0.0 MB/s", "3 of 3 cases, 0.0 MB/s, 0 s left"]


def test_failures_of_others_are_not_taken_for_those_of_the_store(small, tmp_path):
    def show(line):
        raise OSError("the window is closed")

    with pytest.raises(OSError, match="^the window is closed$"):
        st.store.build(small / "scans", out=tmp_path / "s", chunk=16, progress=show)
    (tmp_path / "file").touch()
    with pytest.raises(st.Error, match="^suture: store: expected to write .*file/s, got Not a directory. Free room"):
        st.store.build(small / "scans", out=tmp_path / "file/s", chunk=16)


def test_a_scheduler_of_dask_that_is_not_there(small, tmp_path):
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        with pytest.raises(st.Error, match="^suture: store: dask: expected a scheduler at tcp://127.0.0.1:9, got "):
            st.store.build(small / "scans", out=tmp_path / "s", chunk=16, dask="tcp://127.0.0.1:9")


# Cases that leave ----------------------------------------------------------------------------------------------------------------


def of(folder, *numbers):
    """A store of some of the phantoms of a folder, built as if there were no others."""
    for kind in ("scans", "labels"):
        (folder / f"some/{kind}").mkdir(parents=True)
        for k in numbers:
            shutil.copy2(folder / f"{kind}/case_{k:02d}.nii.gz", folder / f"some/{kind}")
    st.store.build(folder / "some/scans", labels=folder / "some/labels", out=folder / "some.zarr", chunk=16)
    return folder / "some.zarr"


def test_a_build_names_the_cases_whose_source_is_gone(tmp_path):
    folder = phantoms(tmp_path, count=4)
    first = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16)
    assert first.without_source == []
    (folder / "scans/case_02.nii.gz").unlink()
    for share in ({}, {"rank": 0, "world": 2}, {"rank": 1, "world": 2}):
        report = st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16, **share)
        assert report.without_source == ["case_02"] and not report.built and report.sha256 == first.sha256
    done = command("build", folder / "scans", "--labels", folder / "labels", "--out", folder / "s", "--chunk", 16)
    assert done.returncode == 0 and "0 built, 3 reused, 0 failed, 1 without source, 1 other files left out" in done.stdout
    assert f"1 case of {folder}/s is not in {folder}/scans: case_02. " in done.stderr and f"suture store remove {folder}/s NAME..." in done.stderr
    (folder / "scans/case_03.nii.gz").unlink()
    (folder / "scans/case_03.nii.gz").symlink_to("nowhere")  # a failure that is told of by the name of the file
    assert st.store.build(folder / "scans", out=folder / "s", chunk=16).without_source == ["case_02"]


def test_a_removed_case_leaves_no_trace(tmp_path):
    folder = phantoms(tmp_path, count=5)
    rest = of(folder, 0, 2, 3)
    st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16)
    before = st.store.open(folder / "s")
    image = before["case_01"].image
    sha256 = st.store.remove(folder / "s", ["case_01", "case_04"])
    assert sha256 == st.store.open(folder / "s").sha256 == st.store.open(rest).sha256 != before.sha256
    assert tree(folder / "s") == tree(rest) and not st.store.verify(folder / "s") and st.store.info(folder / "s")["cases"] == 3
    with pytest.raises(st.Error, match="case 'case_01': expected its manifest in .*, got none: the case was removed. Open the store again"):
        image[...]
    with pytest.raises(st.Error, match="case 'case_04': expected its manifest, got none. Open the store again if the case was removed"):
        before["case_04"].classes
    done = command("remove", folder / "s", "case_00", "case_02")
    assert done.returncode == 0 and done.stdout == f"{folder}/s: 2 removed; sha256 {st.store.open(folder / 's').sha256}\n"
    assert list(st.store.open(folder / "s")) == ["case_03"]
    st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16)  # it may come back
    assert st.store.open(folder / "s").sha256 == before.sha256


def test_a_feed_goes_on_without_a_removed_case(tmp_path):
    folder, pipeline = phantoms(tmp_path, count=3), st.Pipeline(image=[st.window(center=0, width=1000)])
    st.store.build(folder / "scans", out=folder / "s", chunk=16)
    with suture.feed.Feed(st.store.open(folder / "s"), pipeline, batch=1, shuffle=False) as feed:
        state = feed.state_dict()
    st.store.remove(folder / "s", ["case_01"])
    with suture.feed.Feed(st.store.open(folder / "s"), pipeline, batch=1, shuffle=False) as feed:
        with pytest.raises(st.Error, match="suture: feed: state: expected that of the cohort"):
            feed.load_state_dict(state)
        assert [batch["id"] for batch in feed] == [["case_00"], ["case_02"]]


def test_a_removed_case_leaves_the_split_and_the_groups(tmp_path):
    folder = phantoms(tmp_path, count=4)
    st.store.build(folder / "scans", out=folder / "s", chunk=16)
    (tmp_path / "parts.json").write_text(json.dumps({"train": ["case_00", "case_01"], "val": ["case_02", "case_03"]}))
    st.store.set_split(folder / "s", tmp_path / "parts.json", group={f"case_{k:02d}": f"patient_{k}" for k in range(4)})
    st.store.remove(folder / "s", ["case_01"])
    assert list(st.store.open(folder / "s", split="train")) == ["case_00"]
    assert not [path for path in (folder / "s").rglob("*") if path.is_file() and (b"case_01" in path.read_bytes() or b"patient_1" in path.read_bytes())]
    st.store.set_split(folder / "s", .5)
    st.store.remove(folder / "s", ["case_02"])
    assert json.loads((folder / "s/.suture/split.json").read_text()) == {"rule": .5, "groups": {"case_00": "patient_0", "case_03": "patient_3"}}


def test_a_removal_that_is_wrong_removes_nothing(tmp_path):
    folder = phantoms(tmp_path, count=2)
    st.store.build(folder / "scans", out=folder / "s", chunk=16)
    before = tree(folder / "s")
    for path, names, says in ((folder / "s", ["case_00", "case_1"], r"names: expected cases of .*/s, got 'case_1'. Nearest are case_01, case_00$"),
                              (folder / "s", [".suture"], "names: expected cases of .*, got '.suture'. suture.store.open lists them"),
                              (folder / "s", "case_00", r"names: expected several names, got the string 'case_00'. Pass \['case_00'\]"),
                              (folder / "scans", ["case_00"], "expected a store of suture, got .*scans")):
        with pytest.raises(st.Error, match=says):
            st.store.remove(path, names)
    assert tree(folder / "s") == before and len(list((folder / "scans").iterdir())) == 2
    done = command("remove", folder / "s", "case_7")
    assert done.returncode == 1 and done.stderr.startswith("suture: store: remove: names: expected cases of") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("fails", ["remove", "sync"])
def test_an_interrupted_removal_is_completed_by_the_same_names(tmp_path, monkeypatch, fails):
    folder = phantoms(tmp_path, count=3)
    rest = of(folder, 0, 2)
    st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16)
    real_one = getattr(files, fails)

    def stop(path):
        if path.name in ("old", "s"):  # the files of the case, after they were moved out of the store
            raise KeyboardInterrupt
        real_one(path)

    monkeypatch.setattr(files, fails, stop)
    with pytest.raises(KeyboardInterrupt):
        st.store.remove(folder / "s", ["case_01"])
    monkeypatch.undo()
    assert list(st.store.open(folder / "s")) == ["case_00", "case_02"]
    (folder / "scans/case_01.nii.gz").unlink()
    assert st.store.build(folder / "scans", labels=folder / "labels", out=folder / "s", chunk=16).without_source == ["case_01"]
    st.store.remove(folder / "s", ["case_01"])
    assert tree(folder / "s") == tree(rest)


# Parts ---------------------------------------------------------------------------------------------------------------------------


def test_parts_of_a_cohort(small, tmp_path):
    cohort = st.store.open(small / "one.zarr")
    folds = [cohort.split("val", (k, 3)) for k in range(3)]
    assert sorted(n for fold in folds for n in fold) == list(cohort) and {len(f) for f in folds} == {2}
    for k, fold in enumerate(folds):
        assert sorted([*fold, *cohort.split("train", (k, 3))]) == list(cohort)
    wanted = [n for n in cohort if int.from_bytes(hashlib.sha256(n.encode()).digest()[:8], "big") / 2 ** 64 < .5]
    assert list(cohort.split("val", .5)) == wanted and 0 < len(wanted) < 6
    assert list(folds[0].split("train", (0, 3))) == list(cohort.split("train", (0, 3)))
    (tmp_path / "splits_final.json").write_text(json.dumps([{"train": ["case_00", "case_01"], "val": ["case_05"]}]))
    assert list(st.store.open(small / "one.zarr", split="val", rule=(tmp_path / "splits_final.json", 0))) == ["case_05"]
    hashes = cohort.split("val", (0, 3)).sha256
    assert hashes == hashlib.sha256("".join(f"{n} {cohort[n].sha256}\n" for n in sorted(folds[0])).encode()).hexdigest() != cohort.sha256


def test_a_split_is_kept_in_the_store(tmp_path):
    folder = phantoms(tmp_path, count=3)
    st.store.build(folder / "scans", out=folder / "s")
    before = st.store.open(folder / "s").sha256
    (tmp_path / "parts.json").write_text(json.dumps({"train": ["case_02"], "val": ["case_00", "case_01"]}))
    st.store.set_split(folder / "s", tmp_path / "parts.json")
    (tmp_path / "parts.json").unlink()
    assert list(st.store.open(folder / "s", split="train")) == ["case_02"] and st.store.open(folder / "s").sha256 == before
    st.store.set_split(folder / "s", (1, 3))
    assert len(st.store.open(folder / "s", split="val")) == 1
    for rule, sentence in (((3, 3), "a fold in 0 .. 2"), (1.5, "a fraction between 0 and 1"), (tmp_path / "none.json", "a file of JSON")):
        with pytest.raises(st.Error, match=f"suture: store: split: expected {sentence}"):
            st.store.set_split(folder / "s", rule)
    with pytest.raises(st.Error, match="expected one of train, val, got 'test'"):
        st.store.open(folder / "s", split="test")


def test_a_file_of_splits_may_list_cases_that_are_left_out(small, tmp_path):
    cohort = st.store.open(small / "one.zarr")
    (tmp_path / "parts.json").write_text(json.dumps({"train": ["case_00", "case_01", "case_02"], "val": ["case_03"]}))
    rest = cohort.without(["case_01"])
    assert list(rest.split("train", tmp_path / "parts.json")) == ["case_00", "case_02"]
    assert list(rest.split("train", tmp_path / "parts.json").split("val", tmp_path / "parts.json")) == ["case_03"]
    assert list(rest.without(["case_00"]).split("train", tmp_path / "parts.json", group=lambda name: name)) == ["case_02"]
    shutil.copytree(small / "one.zarr", tmp_path / "s")
    st.store.set_split(tmp_path / "s", tmp_path / "parts.json")
    assert list(st.store.open(tmp_path / "s").without(["case_01"]).split("train")) == ["case_00", "case_02"]
    shutil.rmtree(tmp_path / "s/case_02")
    with pytest.raises(st.Error, match="in 'train' of the store, got 'case_02' and 0 others. Build them, or leave them out with Cohort.without"):
        st.store.open(tmp_path / "s", split="train")
    assert list(st.store.open(tmp_path / "s").without(["case_02"]).split("train")) == ["case_00", "case_01"]


def test_no_patient_is_in_two_parts(small, tmp_path):
    cohort = st.store.open(small / "one.zarr")
    patient = dict(zip(cohort, ("ann", "bob", "ann", "cy", "bob", "ann")))
    for rules in ([(k, 3) for k in range(3)], [(k, 2) for k in range(2)]):
        folds = [cohort.split("val", rule, group=patient) for rule in rules]
        assert sorted(name for fold in folds for name in fold) == list(cohort)
        held = [{patient[name] for name in fold} for fold in folds]
        assert sorted(one for fold in held for one in fold) == ["ann", "bob", "cy"]  # each in one fold
        for rule, fold in zip(rules, folds):
            assert sorted([*fold, *cohort.split("train", rule, group=patient)]) == list(cohort)
    share = {one: int.from_bytes(hashlib.sha256(one.encode()).digest()[:8], "big") / 2 ** 64 for one in patient.values()}
    cut = (min(share.values()) + max(share.values())) / 2
    assert list(cohort.split("val", cut, group=patient)) == [name for name in cohort if share[patient[name]] < cut]
    assert list(cohort.split("val", (0, 2), group=patient.get)) == list(cohort.split("val", (0, 2), group=patient))
    (tmp_path / "patients.json").write_text(json.dumps(patient))
    opened = st.store.open(small / "one.zarr", split="val", rule=(0, 2), group=tmp_path / "patients.json")
    assert list(opened) == list(cohort.split("val", (0, 2), group=patient))
    (tmp_path / "parts.json").write_text(json.dumps({"train": ["case_00", "case_01"], "val": ["case_02", "case_03"]}))
    with pytest.raises(st.Error, match="split: expected all cases of a patient in one part, got 'ann' in 'train' and, with case 'case_02', in 'val'. Move"):
        cohort.split("val", tmp_path / "parts.json", group=patient)
    assert list(cohort.split("val", tmp_path / "parts.json")) == ["case_02", "case_03"]
    for group, says in (({"case_00": "ann"}, "expected the patient of each case, got none of 'case_01' and 4 others"),
                        (dict.fromkeys(cohort, 3), "expected the name of a patient for case 'case_00', got 3"), (7, "expected {case: patient}, a file"),
                        (tmp_path / "none.json", "expected a file of JSON")):
        with pytest.raises(st.Error, match=f"suture: store: group: {says}"):
            cohort.split("val", (0, 2), group=group)


def test_patients_are_kept_in_the_store(tmp_path):
    folder = phantoms(tmp_path, count=4)
    (tmp_path / "patients.json").write_text(json.dumps({"case_00": "a", "case_01": "b", "case_02": "a", "case_03": "b"}))
    built = command("build", folder / "scans", "--out", tmp_path / "s", "--split", "0/2", "--group", tmp_path / "patients.json")
    assert built.returncode == 0, built.stderr
    (tmp_path / "patients.json").unlink()
    parts = {part: list(st.store.open(tmp_path / "s", split=part)) for part in ("train", "val")}
    assert sorted(parts.values()) == [["case_00", "case_02"], ["case_01", "case_03"]]
    cohort = st.store.open(tmp_path / "s")
    assert sorted(list(cohort.split("val", (k, 2))) for k in range(2)) == sorted(parts.values())  # another rule, the same patients
    with pytest.raises(st.Error, match="group: expected the patient of each case, got none of 'case_01' and 0 others"):
        st.store.set_split(tmp_path / "s", (0, 2), group={name: name for name in cohort if name != "case_01"})
    (tmp_path / "s/.suture/split.json").write_text('{"rule": 0.5, "groups": 3}')
    with pytest.raises(st.Error, match="split: expected a rule in .*, got other text. Set it again"):
        st.store.open(tmp_path / "s", split="val")


def test_patients_stay_with_another_rule_and_the_rule_with_other_patients(tmp_path):
    folder, store = phantoms(tmp_path, count=4), tmp_path / "s"
    pairs, others = {"case_00": "a", "case_01": "b", "case_02": "a", "case_03": "b"}, {"case_00": "a", "case_01": "a", "case_02": "b", "case_03": "b"}
    built = command("build", folder / "scans", "--out", store)
    assert built.returncode == 0, built.stderr

    def parts():
        return sorted(list(st.store.open(store, split=part)) for part in ("train", "val"))

    st.store.set_split(store, .5, group=pairs)
    st.store.set_split(store, (0, 2))
    assert parts() == [["case_00", "case_02"], ["case_01", "case_03"]]
    (tmp_path / "others.json").write_text(json.dumps(others))
    for again in (("--group", tmp_path / "others.json"), ("--split", "1/2")):
        assert command("build", folder / "scans", "--out", store, *again).returncode == 0
        assert parts() == [["case_00", "case_01"], ["case_02", "case_03"]]
    (tmp_path / "parts.json").write_text(json.dumps({"train": ["case_00", "case_01"], "val": ["case_02", "case_03"]}))
    st.store.set_split(store, tmp_path / "parts.json")
    with pytest.raises(st.Error, match="expected all cases of a patient in one part"):
        st.store.set_split(store, group=pairs)
    st.store.set_split(store, group=others)
    assert parts() == [["case_00", "case_01"], ["case_02", "case_03"]]
    phantoms(tmp_path, count=5)
    more = command("build", folder / "scans", "--out", store, "--split", "0/2")
    assert more.returncode == 1 and "expected the patient of each case, got none of 'case_04'" in more.stderr
    st.store.set_split(store, (0, 4), group=lambda name: name)
    assert sorted(len(part) for part in parts()) == [1, 3]


# The command line ----------------------------------------------------------------------------------------------------------------


def test_the_command_line(small, tmp_path):
    built = command("build", small / "scans", "--labels", small / "labels", "--out", tmp_path / "s", "--chunk", 16, "--split", "0/3")
    assert built.returncode == 0 and "6 built, 0 reused, 0 failed" in built.stdout and "6 of 6 cases" in built.stderr
    assert len(st.store.open(tmp_path / "s", split="val")) == 2
    told = command("info", tmp_path / "s").stdout
    assert st.store.open(small / "one.zarr").sha256 in told and "MB a case" in told
    assert json.loads(command("info", tmp_path / "s", "--json").stdout)["cases"] == 6
    assert command("verify", tmp_path / "s").returncode == 0
    wrong = command("info", tmp_path / "nowhere")
    assert wrong.returncode == 1 and wrong.stderr.startswith("suture: store: expected a store of suture, got") and wrong.stderr.count("\n") == 1


def test_info_of_an_image_that_was_taken_for_labels_is_short(tmp_path):
    for folder in ("scans", "labels"):
        (tmp_path / folder).mkdir()
        nibabel.save(nibabel.Nifti1Image(np.arange(336, dtype=np.int16).reshape(6, 7, 8), OBLIQUE), tmp_path / folder / "a.nii.gz")
    assert command("build", tmp_path / "scans", "--labels", tmp_path / "labels", "--out", tmp_path / "s").returncode == 0
    told = command("info", tmp_path / "s").stdout
    assert "labels: 0 in 1, 1 in 1," in told and told.endswith(", 63 in 1, and 272 others: --json lists all\n")
    assert len(json.loads(command("info", tmp_path / "s", "--json").stdout)["labels"]) == 336


def test_the_command_line_refuses_a_split_before_it_builds(tmp_path):
    folder = phantoms(tmp_path, count=2)
    (tmp_path / "parts.json").write_text(json.dumps({"train": ["case_00"], "val": ["case_1"]}))
    (tmp_path / "patients.json").write_text(json.dumps({"case_00": "a"}))
    for arguments, says in ((("--split", "part.json"), "split: expected a file of JSON, got"), (("--split", "2/2"), r"a fold in 0 \.\. 1, got 2"),
                            (("--split", tmp_path / "parts.json"), "expected cases of the store in 'val' of .*, got 'case_1' and 0 others"),
                            (("--group", tmp_path / "patients.json"), "expected the patient of each case, got none of 'case_01' and 0 others")):
        done = command("build", folder / "scans", "--out", tmp_path / "s", *arguments)
        assert done.returncode == 1 and re.search(says, done.stderr) and done.stderr.count("\n") == 1, done.stderr
        assert not (tmp_path / "s").exists()
    (folder / "scans/loop.nii.gz").symlink_to("loop.nii.gz")
    done = command("build", folder / "scans", "--out", tmp_path / "s", "--split", tmp_path / "parts.json")
    assert done.returncode == 1 and re.search("loop.nii.gz: expected a readable file.*\n.*got 'case_1' and 0 others", done.stderr), done.stderr


def test_the_command_line_finds_the_files_once(tmp_path, monkeypatch):
    from suture.__main__ import main
    from suture.store import find

    folder, kind, paths = phantoms(tmp_path, count=3), find._kind, []
    monkeypatch.setattr(find, "_kind", lambda path, *others: paths.append(path.name) or kind(path, *others))
    assert main(["store", "build", str(folder / "scans"), "--out", str(tmp_path / "s"), "--split", "0/3"]) == 0
    assert paths == ["case_00.nii.gz", "case_01.nii.gz", "case_02.nii.gz"]
    assert len(st.store.open(tmp_path / "s", split="val")) == 1


def test_the_command_line_keeps_a_split_of_cases_that_fail_or_that_others_make(tmp_path):
    folder = phantoms(tmp_path, count=4)
    (tmp_path / "parts.json").write_text(json.dumps({"train": ["case_00", "case_01", "case_02"], "val": ["case_03"]}))
    whole = (folder / "scans/case_02.nii.gz").read_bytes()
    (folder / "scans/case_02.nii.gz").write_bytes(whole[:200])
    arguments = ("build", folder / "scans", "--out", tmp_path / "s", "--split", tmp_path / "parts.json", "--world", 2, "--rank")
    first = command(*arguments, 0)
    assert first.returncode == 1 and "case 'case_02': expected a readable NIfTI file" in first.stderr and "1 built, 0 reused, 1 failed" in first.stdout
    second = command(*arguments, 1)
    assert second.returncode == 0, second.stderr
    with pytest.raises(st.Error, match="got 'case_02' and 0 others. Build them, or leave them out with Cohort.without"):
        st.store.open(tmp_path / "s", split="train")
    assert list(st.store.open(tmp_path / "s").without(["case_02"]).split("train")) == ["case_00", "case_01"]
    (folder / "scans/case_02.nii.gz").write_bytes(whole)
    assert command(*arguments, 0).returncode == 0
    assert list(st.store.open(tmp_path / "s", split="train")) == ["case_00", "case_01", "case_02"]


def test_info_lists_the_types_of_stored_voxels(tmp_path):
    (tmp_path / "scans").mkdir()
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 5, 6), np.float64), OBLIQUE), tmp_path / "scans/a.nii.gz")
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 5, 6), np.uint8), OBLIQUE), tmp_path / "scans/b.nii.gz")
    st.store.build(tmp_path / "scans", out=tmp_path / "s")
    assert st.store.info(tmp_path / "s")["dtypes"] == {"float32": 1, "uint8": 1}


def test_a_reader_of_the_output_may_leave(small):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run([sys.executable, "-m", "suture", "store", "info", small / "one.zarr"], env=env, stdout=gone, stderr=subprocess.PIPE)
    assert done.returncode == 128 + 13 and done.stderr == b""  # as a shell tells of SIGPIPE


def test_info_reads_each_manifest_once(small, monkeypatch):
    read, paths = Path.read_bytes, []
    monkeypatch.setattr(Path, "read_bytes", lambda path: paths.append(path) or read(path))
    assert st.store.info(small / "one.zarr")["cases"] == 6
    manifests = [path for path in paths if path.parent.name == "manifests"]
    assert len(manifests) == len(set(manifests)) == 6


@pytest.mark.parametrize("dtype, block", [("int16", 1 << 19), ("float32", 1 << 19), ("uint8", 1 << 18)])
def test_a_chunk_is_one_block_of_blosc_as_far_as_a_cache_holds_it(tmp_path, dtype, block):
    data = np.random.default_rng(1).integers(0, 99, (64, 64, 64)).astype(dtype)
    arrays.write(tmp_path, data, names="zyx", chunk=(64, 64, 64), profile="small")
    frame = (tmp_path / "c/0/0/0").read_bytes()
    sizes = [int.from_bytes(frame[k:k + 4], "little") for k in (4, 8)]  # of the chunk and of its blocks, in the header of Blosc
    assert sizes == [data.nbytes, block]


def test_one_import_reads_nothing_else():
    code = "import sys, suture, suture.store; sys.exit(any(m in sys.modules for m in ('tensorstore', 'nibabel', 'SimpleITK', 'ngff_zarr', 'zarr')))"
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT / "python")}).returncode == 0
