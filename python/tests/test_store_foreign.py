# SPDX-License-Identifier: Apache-2.0
"""Files that others made are read as they are: Zarr v2 and v3, nnU-Net's preprocessed cases, folders of NIfTI files."""
import os
import pickle
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import library
from store_data import DATA, OBLIQUE, phantoms

pytestmark = pytest.mark.store
library("tensorstore")
nibabel = pytest.importorskip("nibabel")
zarr = pytest.importorskip("zarr")

import suture as st  # noqa: E402
import suture.feed  # noqa: E402
import suture.store  # noqa: E402

VOXELS = np.random.default_rng(1).integers(-900, 1200, (2, 30, 28, 26)).astype(np.float32)
LABELS = np.random.default_rng(2).integers(-1, 3, (1, 30, 28, 26)).astype(np.int8)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("codec", ["blosc", "zstd", "plain", "sharded"])
def test_zarr_of_zarr_python(tmp_path, version, codec):
    if version == 2 and codec == "sharded":
        return  # v2 has no shards
    if version == 2:
        import numcodecs

        compressors = {"blosc": numcodecs.Blosc("lz4"), "zstd": numcodecs.Zstd(3), "plain": None}[codec]
    else:
        compressors = {"blosc": zarr.codecs.BloscCodec(), "zstd": zarr.codecs.ZstdCodec(), "plain": None, "sharded": zarr.codecs.ZstdCodec()}[codec]
    data = VOXELS[0].astype(np.int16)
    array = zarr.create_array(str(tmp_path / "one.zarr"), shape=data.shape, dtype=data.dtype, chunks=(8, 8, 8), compressors=compressors,
                              shards=(32, 32, 32) if codec == "sharded" else None, zarr_format=version)
    array[...] = data
    for path in (tmp_path, tmp_path / "one.zarr"):
        case = st.store.open(path)["one"]
        assert case.image.dtype == "int16" and case.labels is None and case.sha256 is None
        assert np.array_equal(case.image[...], data) and np.array_equal(case.image[3:20, 5, -7:], data[3:20, 5, -7:])


def test_ome_zarr_of_ngff_zarr(tmp_path):
    ngff = pytest.importorskip("ngff_zarr")
    data = VOXELS[0].astype(np.int16)
    for version in ("0.4", "0.5"):
        image = ngff.to_ngff_image(data, dims=["z", "y", "x"], scale=dict(z=2.5, y=.8, x=.7), translation=dict(z=1, y=2, x=3),
                                   axes_units={k: "millimeter" for k in "zyx"})
        ngff.to_ngff_zarr(str(tmp_path / f"v{version}.ome.zarr"), ngff.to_multiscales(image, scale_factors=[]), version=version)
    cohort = st.store.open(tmp_path)
    assert list(cohort) == ["v0.4", "v0.5"]
    for case in cohort.values():
        assert np.array_equal(case.image[...], data) and case.image.spacing == pytest.approx(dict(z=2.5, y=.8, x=.7))
        assert case.image.grid.origin == pytest.approx((1, 2, 3))


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_scales_and_units_of_ome_zarr(tmp_path, version):
    """The transformations of a level come first, then those of the whole image, as the specification says."""
    def made(axes, level, whole):
        shutil.rmtree(tmp_path / "i.zarr", ignore_errors=True)
        group = zarr.create_group(str(tmp_path / "i.zarr"), zarr_format=2 if version == "0.4" else 3)
        group.create_array("0", shape=(4, 5, 6), dtype="int16")
        entry = [{"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": level}], **whole}]
        group.attrs.update({"multiscales": entry} if version == "0.4" else {"ome": {"version": version, "multiscales": entry}})
        return st.store.open(tmp_path)["i"].image

    def axes(*units):
        return [{"name": a, "type": "space", **({} if unit is None else {"unit": unit})} for a, unit in zip("zyx", units)]

    level = [{"type": "scale", "scale": [2, 3, 4]}, {"type": "translation", "translation": [1, 0, -1]}]
    whole = {"coordinateTransformations": [{"type": "identity"}, {"type": "scale", "scale": [.5, 2, 1]}, {"type": "translation", "translation": [10, 0, 3]}]}
    image = made(axes("micrometer", None, "inch"), level, whole)
    assert image.grid.spacing == pytest.approx((1e-3, 6, 4 * 25.4)) and image.grid.origin == pytest.approx((10.5e-3, 0, 2 * 25.4))
    for unit in ("pixel", "um", ["millimeter"], 3):
        with pytest.raises(st.Error, match="suture: store: case 'i': expected a unit of OME-Zarr for the axis y, .*millimeter, .* or none, got"):
            made(axes("millimeter", unit, "millimeter"), level, {})
    for step in ({"type": "rotation", "rotation": [1, 2, 3]}, {"type": "scale", "scale": [1, 1]}, {"type": "scale", "path": "scale"}, {}, []):
        with pytest.raises(st.Error, match="suture: store: case 'i': expected multiscales of OME-Zarr"):
            made(axes("millimeter", "millimeter", "millimeter"), level, {"coordinateTransformations": [step]})


def test_zarr_arrays_of_one_name_are_refused(tmp_path):
    group = zarr.create_group(str(tmp_path / "all.zarr"))
    for name in "abc":
        group.create_group(name).create_array("image", shape=(4, 5, 6), dtype="int16")
    for path, root in ((tmp_path, tmp_path), (tmp_path / "all.zarr", tmp_path / "all.zarr")):
        with pytest.raises(st.Error, match=f"suture: store: case 'image': expected one of this name in {root}, got 3. Rename one of them"):
            st.store.open(path)
    assert list(st.store.open(tmp_path / "all.zarr/b")) == ["image"]


def test_a_store_without_its_hidden_folder_is_refused(tmp_path):
    """OME-Zarr does not record which map is the label map, slope, intercept, or the direction of the grid."""
    folder = phantoms(tmp_path, count=1, shape=(9, 8, 10))
    scan = nibabel.load(folder / "scans/case_00.nii.gz")
    scan.header.set_slope_inter(.5, 3)
    nibabel.save(scan, folder / "scans/case_00.nii.gz")
    store = tmp_path / "s"
    st.store.build(folder / "scans", labels=folder / "labels", out=store, chunk=8)
    shutil.copytree(store, tmp_path / "copy", ignore=shutil.ignore_patterns(".suture"))
    shutil.copytree(store / "case_00", tmp_path / "cases/case_00")
    for path in (tmp_path / "copy", tmp_path / "copy/case_00", tmp_path / "cases", tmp_path / "cases/case_00"):
        with pytest.raises(st.Error, match=r"suture: store: path: expected a store with its hidden folder \.suture, got one without it"):
            st.store.open(path)
    (tmp_path / "above").mkdir()
    shutil.copytree(store, tmp_path / "above/s")
    for path, within in ((store / "case_00", store), (tmp_path / "above", tmp_path / "above/s")):
        with pytest.raises(st.Error, match=f"suture: store: path: expected a store or files of other programs, got .*. Open '{within}'"):
            st.store.open(path)


def test_a_store_beside_other_files_is_left_out(tmp_path):
    scans = phantoms(tmp_path, count=2, shape=(9, 8, 10)) / "scans"
    st.store.build(scans, out=scans / "s", chunk=8)
    before = sorted(scans.rglob("*"))
    assert list(st.store.open(scans)) == ["case_00", "case_01"] and st.store.open(scans)["case_00"].sha256 is None
    assert list(st.store.open(scans / "s")) == ["case_00", "case_01"]
    again = st.store.build(scans, out=tmp_path / "other", chunk=8)
    assert again.built == ["case_00", "case_01"] and sorted(scans.rglob("*")) == before
    group = tmp_path / "group"
    shutil.copytree(scans / "s", group / "s")
    (group / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    with pytest.raises(st.Error, match=f"which only holds a store of suture. Open '{group / 's'}'"):
        st.store.open(group)


def test_a_folder_of_nifti_files(tmp_path):
    source = DATA / "ct/abdomen_ct.nii.gz"
    image = nibabel.load(source)
    (tmp_path / "ct.nii.gz").symlink_to(source)
    scaled = nibabel.Nifti1Image(VOXELS[0].astype(np.int16), OBLIQUE)
    scaled.header.set_slope_inter(.5, 3)
    nibabel.save(scaled, tmp_path / "scaled.nii")
    cohort = st.store.open(tmp_path)
    assert np.array_equal(cohort["ct"].image[10:20, :, 5], np.asarray(image.dataobj).T[10:20, :, 5])
    assert cohort["ct"].image.grid == st.Volume.from_nibabel(image).grid
    assert np.array_equal(cohort["scaled"].image[...], nibabel.load(tmp_path / "scaled.nii").get_fdata().astype(np.float32).T)


def test_a_nifti_file_that_is_cut_short_or_overwritten_while_it_is_open(tmp_path, monkeypatch):
    from suture.store import foreign

    path = tmp_path / "a.nii"
    nibabel.save(nibabel.Nifti1Image(VOXELS[0], OBLIQUE), path)
    whole, image = path.read_bytes(), st.store.open(tmp_path)["a"].image
    first = image[...]
    with open(path, "r+b") as file:  # in place, as cp does
        file.seek(352)
        file.write(bytes(len(whole) - 352))
    assert np.array_equal(image[...], first)
    os.truncate(path, 400)
    script = "import suture as st, suture.store, os, sys; i = st.store.open(sys.argv[1])['a'].image; os.truncate(sys.argv[2], 400); print(float(i[...].sum()))"
    path.write_bytes(whole)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path), str(path)], env=env, capture_output=True, text=True)
    assert run.returncode == 0 and float(run.stdout) == pytest.approx(float(first.sum())), run.stderr
    path.write_bytes(whole)
    image = st.store.open(tmp_path)["a"].image
    monkeypatch.setattr(foreign, "_kept", lambda key, read: read())  # as where many volumes are open
    assert np.array_equal(image[...], first)
    path.write_bytes(whole[:352] + bytes(len(whole) - 352))
    with pytest.raises(st.Error, match="case 'a': expected .*a.nii as it was when the case was opened"):
        image[...]


def test_a_feed_of_files_of_others_goes_on_from_its_state(tmp_path):
    import hashlib

    for k, voxels in enumerate(VOXELS):
        nibabel.save(nibabel.Nifti1Image(voxels, OBLIQUE), tmp_path / f"case_{k}.nii.gz")
    cohort = st.store.open(tmp_path)

    def feed():
        return st.feed.Feed(cohort, st.Pipeline(image=[st.window(center=0, width=2)]), seed=3, device="numpy", threads=1, bar=False)

    with feed() as first:
        state = first.state_dict()
        names = [name for batch in first for name in batch["id"]]
    assert sorted(names) == sorted(cohort) and state["cohort"] == hashlib.sha256("\0".join(sorted(cohort)).encode()).hexdigest()
    with feed() as second:
        second.load_state_dict({**state, "step": 1})
        assert [name for batch in second for name in batch["id"]] == names[1:]


def nnunet_folder(tmp_path, writer, ending):
    folder = tmp_path / "Dataset003_X/nnUNetPlans_3d_fullres"
    folder.mkdir(parents=True)
    plans = {"configurations": {"3d_fullres": {"data_identifier": "nnUNetPlans_3d_fullres", "spacing": [2.0, .75, .5]}}}
    import json

    (folder.parent / "nnUNetPlans.json").write_text(json.dumps(plans))
    properties = {"spacing": [2.5, .8, .8], "shape_before_cropping": (31, 30, 29), "class_locations": {1: np.argwhere(LABELS == 1)[:9]},
                  "bbox_used_for_cropping": [[0, 30], [1, 29], [0, 26]], "sitk_stuff": {"spacing": (.8, .8, 2.5), "score": np.float64(.5)}}
    for name in ("case_a", "case_b"):
        writer.save_case(VOXELS, LABELS, properties, str(folder / name))
    return folder


@pytest.mark.parametrize("kind", ["Blosc2", "Numpy"])
def test_cases_that_nnunet_preprocessed(tmp_path, kind):
    datasets = pytest.importorskip("nnunetv2.training.dataloading.nnunet_dataset")
    folder = nnunet_folder(tmp_path, getattr(datasets, f"nnUNetDataset{kind}"), kind)
    cohort = st.store.open(folder)
    assert list(cohort) == ["case_a", "case_b"]
    case = cohort["case_a"]
    assert (case.image.dtype, case.labels.dtype) == ("float32", "int8") and case.image.shape == VOXELS.shape
    assert np.array_equal(case.image[...], VOXELS) and np.array_equal(case.labels[...], LABELS)
    assert case.volume().spacing == dict(z=2.0, y=.75, x=.5) and case.fingerprint["spacing"] == [2.5, .8, .8]
    wrong = []

    def read(seed):
        draw = np.random.default_rng(seed)
        for _ in range(20):
            low = [int(draw.integers(0, n - 4)) for n in VOXELS.shape[1:]]
            out = np.empty((2, 4, 4, 4), np.float32)
            case.image.read(low, [v + 4 for v in low], out)
            if not np.array_equal(out, VOXELS[:, low[0]:low[0] + 4, low[1]:low[1] + 4, low[2]:low[2] + 4]):
                wrong.append(low)

    threads = [threading.Thread(target=read, args=(k,)) for k in range(6)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong


def test_the_spacing_after_preprocessing_needs_the_plans(tmp_path):
    datasets = pytest.importorskip("nnunetv2.training.dataloading.nnunet_dataset")
    folder = nnunet_folder(tmp_path, datasets.nnUNetDatasetNumpy, "Numpy")
    (folder.parent / "nnUNetPlans.json").rename(folder.parent / "nnUNetResEncUNetLPlans.json")  # whose folder has the name of the other
    (folder.parent / "dataset.json").write_text('{"labels": {"background": 0}}')
    assert st.store.open(folder)["case_a"].image.grid.spacing == (2.0, .75, .5)
    (folder.parent / "nnUNetResEncUNetLPlans.json").unlink()
    with pytest.raises(st.Error, match="suture: store: case 'case_a': expected nnU-Net's plans of the folder 'nnUNetPlans_3d_fullres' beside it, .*got none. "
                                       "Copy nnUNetPlans.json to"):
        st.store.open(folder)["case_a"].image
    for path in folder.glob("*.pkl"):
        path.unlink()
    assert not st.store.open(folder)["case_a"].volume().placed  # an npz file that says nothing of a spacing


def test_a_configuration_may_inherit_its_spacing(tmp_path, monkeypatch):
    """The folder is found by its path from within too, where it has no name."""
    import json

    datasets = pytest.importorskip("nnunetv2.training.dataloading.nnunet_dataset")
    folder = nnunet_folder(tmp_path, datasets.nnUNetDatasetNumpy, "Numpy")
    plans = {"configurations": {"3d_base": {"data_identifier": "other", "spacing": [2.0, .75, .5]}, "3d_between": {"inherits_from": "3d_base"},
                                "3d_mine": {"inherits_from": "3d_between", "data_identifier": "nnUNetPlans_3d_fullres"}}}
    (folder.parent / "nnUNetPlans.json").write_text(json.dumps(plans))
    assert st.store.open(folder)["case_a"].image.grid.spacing == (2.0, .75, .5)
    monkeypatch.chdir(folder)
    assert st.store.open(".")["case_a"].image.grid.spacing == (2.0, .75, .5)
    plans["configurations"]["3d_base"] = {"inherits_from": "3d_mine"}  # a circle has no spacing
    (folder.parent / "nnUNetPlans.json").write_text(json.dumps(plans))
    with pytest.raises(st.Error, match="expected nnU-Net's plans of the folder"):
        st.store.open(folder)["case_a"].image


def test_a_pickle_runs_no_code(tmp_path):
    datasets = pytest.importorskip("nnunetv2.training.dataloading.nnunet_dataset")
    folder = nnunet_folder(tmp_path, datasets.nnUNetDatasetNumpy, "Numpy")
    (folder.parent / "nnUNetPlans.json").unlink()

    class Harm:
        def __reduce__(self):
            return (open, (str(tmp_path / "harm"), "w"))

    (folder / "case_a.pkl").write_bytes(pickle.dumps({"spacing": Harm()}))
    (folder / "case_b.pkl").write_bytes(b"no pickle")
    for name, part in (("case_a", "which is no number, text or array"), ("case_b", "")):
        with pytest.raises(st.Error, match=f"suture: store: case '{name}': expected nnU-Net's properties in {name}.pkl, got .*{part}"):
            st.store.open(folder)[name].image
    assert not (tmp_path / "harm").exists()


def test_npz_holds_no_objects(tmp_path):
    np.savez(tmp_path / "a.npz", data=np.array([{"x": 1}], object), seg=LABELS)
    with pytest.raises(st.Error, match="suture: store: case 'a': expected 'data' in .*a.npz, got"):
        st.store.open(tmp_path)["a"].image


def test_files_that_are_damaged(tmp_path):
    (tmp_path / "a.b2nd").write_bytes(b"no blosc")
    (tmp_path / "b.npz").write_bytes(b"no zip")
    (tmp_path / "c.nii.gz").write_bytes(b"no gzip")
    array = zarr.create_array(str(tmp_path / "d.zarr"), shape=(8, 8, 8), dtype="int16", chunks=(8, 8, 8), compressors=zarr.codecs.ZstdCodec())
    array[...] = VOXELS[0, :8, :8, :8].astype(np.int16)
    (tmp_path / "d.zarr/c/0/0/0").write_bytes(b"no zstd")
    cohort = st.store.open(tmp_path)
    assert list(cohort) == list("abcd")
    for name in cohort:
        with pytest.raises(st.Error, match=f"suture: store: case '{name}': expected") as problem:
            cohort[name].image[...]
        assert "\n" not in str(problem.value)
