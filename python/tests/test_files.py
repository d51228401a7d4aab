# SPDX-License-Identifier: Apache-2.0
"""Volumes from files and back, against nibabel and SimpleITK, and batches of paths and of their images."""
import copy
import os
import pickle

import numpy as np
import pytest

import suture as st

nibabel, itk, pydicom = (pytest.importorskip(name) for name in ("nibabel", "SimpleITK", "pydicom"))
RNG = np.random.default_rng(5)
TURNED = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
AFFINE = np.eye(4)
AFFINE[:3, :3], AFFINE[:3, 3] = TURNED * [.7, .8, 2.5], (12, -30, 7)
KEEP = st.Pipeline(image=[st.identity()])


def nifti(shape=(7, 9, 5), dtype=np.int16):
    return nibabel.Nifti1Image(RNG.integers(0, 100, shape).astype(dtype), AFFINE, dtype=dtype)


@pytest.mark.parametrize("ending", [".nii", ".nii.gz", ".nrrd", ".mha"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "int64"])
def test_a_file_has_the_voxels_in_their_places(tmp_path, ending, dtype):
    """SimpleITK reads what was written, and says where the last voxel lies."""
    volume = st.Volume.from_nibabel(nifti(dtype=dtype))
    volume.save(tmp_path / f"a{ending}")
    read = itk.ReadImage(str(tmp_path / f"a{ending}"))
    assert np.array_equal(itk.GetArrayFromImage(read), np.asarray(volume.array).transpose(2, 1, 0))
    corner = read.TransformIndexToPhysicalPoint((6, 8, 4))
    assert np.allclose(corner, (AFFINE @ [6, 8, 4, 1])[:3] * [-1, -1, 1], atol=1e-4)
    back = st.Volume.load(tmp_path / f"a{ending}")
    assert str(back.array.dtype) == dtype and np.allclose(back.with_axes("xyz").affine_ras, AFFINE, atol=1e-5)
    assert np.array_equal(back.with_axes("xyz").array, volume.array) and os.listdir(tmp_path) == [f"a{ending}"]


@pytest.mark.parametrize("dtype", [">i2", ">i4", ">f4", ">f8", ">u2"])
def test_voxels_of_files_have_the_byte_order_of_this_machine(tmp_path, dtype):
    """FreeSurfer's files are big-endian, and NIfTI may be."""
    values = RNG.integers(0, 100, (7, 9, 5))
    header = nibabel.Nifti1Header(endianness=">")
    header.set_data_dtype(dtype)
    nibabel.Nifti1Image(values.astype(dtype), AFFINE, header).to_filename(tmp_path / "a.nii")
    paths = [tmp_path / "a.nii"]
    if dtype in (">i2", ">i4", ">f4"):
        nibabel.MGHImage(values.astype(dtype), AFFINE).to_filename(tmp_path / "a.mgz")
        paths.append(tmp_path / "a.mgz")
    for path in paths:
        volume = st.Volume.load(path)
        assert volume.array.dtype.isnative and np.array_equal(volume.array, values)
        assert np.array_equal(KEEP({"image": [path]})["image"][0].array.reshape(values.shape), values)
    stored = st.Volume(values.astype(dtype), axes="xyz", affine_ras=AFFINE)
    for ending in (".nii", ".nrrd"):
        stored.save(tmp_path / f"b{ending}")
        assert np.array_equal(st.Volume.load(tmp_path / f"b{ending}").with_axes("xyz").array, values)
    assert st.digest(stored) == st.digest(values.astype(dtype[1:]))


@pytest.mark.parametrize("convert", ["to_nibabel", "to_itk"])
def test_images_of_both_libraries_come_back_the_same(convert):
    for shape in ((7, 9, 5), (7, 9, 5, 2)):
        volume = st.Volume.from_nibabel(nifti(shape, np.float32))
        back = st.Volume.of(getattr(volume, convert)()).with_axes("xyz")
        assert np.array_equal(back.array, volume.array) and np.allclose(back.affine_ras, AFFINE)
    flat = st.Volume(np.arange(12, dtype=np.uint8).reshape(3, 4), axes="yx", spacing=dict(y=2, x=3))
    made = st.Volume.of(getattr(flat, convert)()).with_axes("zyx")
    assert np.array_equal(made.array, flat.array[None]) and made.spacing == dict(z=1.0, y=2.0, x=3.0)


def series(folder, places, tilt=0.0):
    for k, z in enumerate(places):
        image = itk.GetImageFromArray(np.full((4, 6), k, np.int16))
        image.SetSpacing((.7, .8))
        image = itk.JoinSeries(image)
        for tag, text in (("0020|000e", "1.2.3"), ("0020|000d", "1.2"), ("0008|0018", f"1.2.3.{k}"), ("0020|0013", str(k)), ("0008|0060", "CT"),
                          ("0020|0032", f"-10\\{20 + tilt * k}\\{z}"), ("0020|0037", "1\\0\\0\\0\\1\\0"), ("0018|0050", "2.5")):
            image.SetMetaData(tag, text)
        writer = itk.ImageFileWriter()
        writer.KeepOriginalImageUIDOn()
        writer.SetFileName(str(folder / f"{9 - k}.dcm"))
        writer.Execute(image)


def test_a_folder_of_dicom_slices_is_a_volume(tmp_path):
    series(tmp_path, [0, 2.5, 5, 7.5])
    volume = st.Volume.load(tmp_path)
    assert volume.axes == "zyx" and np.array_equal(volume.array[:, 0, 0], [0, 1, 2, 3])
    assert np.allclose(volume.grid.spacing, (2.5, .8, .7)) and np.allclose(volume.grid.origin, (0, 20, -10))
    with pytest.raises(st.Error, match="series: expected one of 1.2.3"):
        st.Volume.load(tmp_path, series="4")


@pytest.mark.parametrize(("places", "tilt", "sentence"), [
    ([0, 2.5, 7.5, 10], 0, "expected slices 2.500 mm apart, got 5.000 mm between 8.dcm and 7.dcm"), ([0, 2.5, 5, 7.5], 1, "a tilted gantry")])
def test_slices_that_are_no_grid_are_refused(tmp_path, places, tilt, sentence):
    series(tmp_path, places, tilt)
    with pytest.raises(st.Error, match=sentence):
        st.Volume.load(tmp_path)


def test_a_lone_slice_is_as_thick_as_it_says(tmp_path):
    series(tmp_path, [0])
    data = pydicom.dcmread(tmp_path / "9.dcm")
    data.pop("SpacingBetweenSlices", None)  # GDCM sometimes writes 1
    data.save_as(tmp_path / "9.dcm")
    for path in (tmp_path, tmp_path / "9.dcm"):
        assert st.Volume.load(path).spacing == dict(z=2.5, y=.8, x=.7)


def test_pixels_that_simpleitk_reads_as_others_are_refused(tmp_path):
    series(tmp_path, [0, 2.5, 5])
    path = tmp_path / "8.dcm"
    data = pydicom.dcmread(path)
    whole, data.PixelData = data.PixelData, data.PixelData[:10]
    data.save_as(path)
    for each in (tmp_path, path):
        with pytest.raises(st.Error, match="suture: Volume.load: path: expected 48 bytes of pixels in 8.dcm, got 10. Copy it again from where it came"):
            st.Volume.load(each)
    data.PixelData, data.PhotometricInterpretation = whole, "MONOCHROME1"
    data.save_as(path)
    for each in (tmp_path, path):
        with pytest.raises(st.Error, match="suture: Volume.load: path: expected MONOCHROME2, got MONOCHROME1 in 8.dcm, whose values SimpleITK inverts"):
            st.Volume.load(each)


@pytest.mark.parametrize(("path", "sentence"), [
    ("none.nii", "expected a file or a folder, got .*which is not there"), ("text.nii", "expected an image that nibabel or SimpleITK reads"),
    ("text.nrrd", "expected an image that nibabel or SimpleITK reads"), ("empty", "expected a folder with a DICOM series")])
def test_what_is_no_image_is_one_sentence(tmp_path, path, sentence):
    (tmp_path / "empty").mkdir()
    for name in ("text.nii", "text.nrrd"):
        (tmp_path / name).write_text("no image")
    with pytest.raises(st.Error, match=sentence) as caught:
        st.Volume.load(tmp_path / path)
    assert "\n" not in str(caught.value)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    volume = st.Volume.from_nibabel(nifti())
    (tmp_path / "a.nii").write_text("what was there")

    def full(self, path, *_):
        open(path, "w").write("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(nibabel.Nifti1Image, "to_filename", full)
    with pytest.raises(st.Error, match="path: expected a file that can be written.*No space left"):
        volume.save(tmp_path / "a.nii")
    assert os.listdir(tmp_path) == ["a.nii"] and (tmp_path / "a.nii").read_text() == "what was there"
    with pytest.raises(st.Error, match="expected a name that ends with .nii.gz, .nii, .nrrd, .mha, got"):
        volume.save(tmp_path / "a.png")


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_written_file_has_the_mode_of_the_umask_which_stays(tmp_path, monkeypatch, umask):
    """The umask is one for all threads of the process, so that to ask for it would let other threads write with another one."""
    from suture.arrays.whole_file import whole_file

    before, asked = os.umask(umask), os.umask
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", None)
            with whole_file(tmp_path / "a.json", ".json") as beside:
                open(beside, "w").write("{}")
                assert beside.endswith(".json") and os.path.dirname(beside) == str(tmp_path)
    finally:
        asked(before)
    assert os.listdir(tmp_path) == ["a.json"] and os.stat(tmp_path / "a.json").st_mode & 0o777 == 0o666 & ~umask


def test_a_batch_takes_paths_and_images(tmp_path):
    stored = [nifti(), nifti()]
    for k, image in enumerate(stored):
        nibabel.save(image, tmp_path / f"{k}.nii.gz")
    expected = [np.asarray(v.array) for v in KEEP({"image": [st.Volume.from_nibabel(image) for image in stored]})["image"]]
    for given in ([str(tmp_path / f"{k}.nii.gz") for k in range(2)], [tmp_path / f"{k}.nii.gz" for k in range(2)], stored):
        out = KEEP({"image": given})["image"]
        assert all(np.array_equal(np.asarray(a.array), b) for a, b in zip(out, expected)) and np.allclose(out[1].affine_ras, AFFINE)
    made = KEEP({"image": [itk.ReadImage(str(tmp_path / f"{k}.nii.gz")) for k in range(2)]})["image"]
    assert all(np.array_equal(np.asarray(a.array).transpose(2, 1, 0), b) for a, b in zip(made, expected))
    assert st.bounding_box(stored[0]) == st.bounding_box([st.Volume.from_nibabel(stored[0])])


CROP = st.Pipeline(image=[st.crop(start=dict(z=1, y=2, x=3), size=dict(z=2, y=3, x=4))], seg=st.labels(levels=(.5,)))


def test_stacked_outputs_have_their_grids():
    """Where the first voxel of a crop lies is the affine times its index."""
    scan = st.Volume.from_nibabel(nifti())
    out = CROP({"image": [scan, scan], "seg": [scan, scan], "id": ["a", "b"]})
    assert isinstance(out, dict) and out["image"].shape == (2, 1, 4, 3, 2) and out["id"] == ["a", "b"]
    assert np.allclose(out.grids["image"][1].affine_ras("xyz")[:, 3], AFFINE @ [3, 2, 1, 1])
    assert [g.extents for g in out.grids["seg"][1]] == [(1, 2, 2)] * 2
    for same in (pickle.loads(pickle.dumps(out)), copy.copy(out), copy.deepcopy(out)):
        assert same.grids == out.grids and set(same) == set(out)
    out["image"] = out["image"][:, :, :2]
    assert "image" not in out.grids and "seg" in out.grids
    volumes = CROP({"image": [scan, scan], "seg": [scan, scan]}, stack=False)["image"]
    assert [type(v) for v in volumes] == [st.Volume] * 2 and np.allclose(volumes[0].affine_ras[:, 3], AFFINE @ [3, 2, 1, 1])
    assert np.array_equal(volumes[0].array, np.asarray(scan.array)[3:7, 2:5, 1:3])


@pytest.mark.torch
def test_batches_collate():
    torch = pytest.importorskip("torch")
    scan = st.Volume.from_nibabel(nifti())
    one = st.Pipeline(image=CROP.images["image"])({"image": [scan], "id": ["a"]})
    made = torch.utils.data.default_collate([one, one])
    assert made["image"].shape == (2, 1, 1, 4, 3, 2) and "image" not in made.grids  # of another shape: they would be stale


RESAMPLED = st.Pipeline(image=[st.resample(spacing_mm=2)])


@pytest.mark.parametrize("given", [np.zeros((1, 1, 4, 5, 6), np.float32), [np.zeros((1, 4, 5, 6), np.float32)],
                                   [st.Volume(np.zeros((4, 5, 6), np.float32), axes="zyx")]])
def test_resampling_needs_a_spacing(given):
    with pytest.raises(st.Error, match="resample: spacing: expected the spacing of image in millimeters, got a"):
        RESAMPLED(given)


def test_an_output_of_unknown_spacing_stays_so():
    made = KEEP([st.Volume(np.zeros((4, 5, 6), np.float32), axes="zyx")])
    with pytest.raises(st.Error, match="a Volume without one"):
        RESAMPLED(made)


@pytest.mark.parametrize(("given", "got"), [(np.zeros((1, 1, 4, 5, 6), np.float32), "arrays, which have none"),
                                            ([np.zeros((1, 4, 5, 6), np.float32)], "arrays, which have none"),
                                            ([st.Volume(np.zeros((4, 5, 6), np.float32), axes="zyx")], "a Volume without one")])
def test_points_in_millimeters_need_a_spacing(given, got):
    pipeline = st.Pipeline(image=[st.identity()], pts=st.points(unit="mm"))
    with pytest.raises(st.Error, match=f"^suture: points: unit: expected the spacing of image for points in millimeters, got {got}\\. Pass Volume"):
        pipeline.plan({"image": given, "pts": [[(1, 2, 3)]]})


def test_points_in_millimeters_move_with_the_scan():
    """A flip along x of six voxels of 3 mm about the center, which lies at -5 + 2.5 * 3 mm."""
    pipeline = st.Pipeline(image=[st.flip(axes=dict(x=True))], pts=st.points(unit="mm"))
    scan = st.Volume(np.zeros((4, 5, 6), np.float32), axes="zyx", spacing=dict(z=1, y=2, x=3), origin=dict(z=7, y=0, x=-5))
    plan = pipeline.plan({"image": [scan], "pts": [[(8, 4, -2)]]})
    index = (8 - 7, 4 / 2, 5 - (-2 + 5) / 3)
    grid = plan.grids[0]
    expected = np.array(grid.direction).reshape(3, 3) @ (np.array(index) * grid.spacing) + grid.origin
    assert np.allclose(plan.run()["pts"][0], [expected])


@pytest.mark.parametrize("spacing", [None, 1])
def test_a_prediction_has_as_unknown_a_spacing_as_its_scan(spacing):
    scan = st.Volume(np.zeros((4, 5, 6), np.float32), axes="zyx", spacing=spacing)
    assert st.sliding_window(lambda x: x, scan, size=4).placed == (spacing is not None)
    back, covered = KEEP.plan([scan]).inverse([scan], coverage=True)
    assert [back[0].placed, covered[0].placed] == [spacing is not None] * 2


@pytest.mark.parametrize(("layout", "shape"), [(None, (2, 40, 64, 64, 3)), ("NHWC", (2, 3, 64, 64)), ("NCHW", (2, 64, 64, 3)), (None, (2, 40, 64, 64, 1))])
@pytest.mark.parametrize("listed", [False, True])
def test_channels_at_the_other_end_are_refused(layout, shape, listed):
    tiles = np.zeros(shape, np.uint8)
    with pytest.raises(st.Error, match="layout: expected samples with the axes .* channels of a few voxels. Say layout="):
        st.Pipeline(layout=layout, image=[st.identity()])({"image": list(tiles) if listed else tiles})


@pytest.mark.parametrize(("layout", "shape"), [("NCDHW", (2, 8, 16, 16, 4)), ("NDHWC", (2, 4, 16, 16, 8))])
def test_a_stated_layout_of_thin_patches_is_read(layout, shape):
    given = RNG.random(shape).astype(np.float32)
    assert np.array_equal(st.Pipeline(layout=layout, image=[st.identity()])({"image": given})["image"], given)


def test_thin_patches_of_many_classes_are_put_together():
    given = RNG.random((2, 8, 16, 16, 4)).astype(np.float32)
    mean, _ = st.average(given, np.ones((2, 16, 16, 4), np.float32), outside=0)
    assert np.allclose(mean, given.mean(0), atol=1e-6)
    grid = st.PatchGrid(image=(16, 16, 8), size=(16, 16, 4), starts=((0,), (0,), (0, 4)))
    assert np.allclose(st.reassemble(grid, given), np.concatenate(list(given), -1), atol=1e-6)


def test_a_volume_with_its_channels_last_is_refused():
    for shape in ((40, 64, 64, 1), (64, 64, 64, 4)):
        with pytest.raises(st.Error, match="seems to have its channels last. Pass numpy.moveaxis"):
            st.Volume(np.zeros(shape, np.uint8), axes="zyx", spacing=1)
    assert st.Volume(np.zeros((4, 64, 64, 64), np.uint8), axes="zyx", spacing=1).array.shape[0] == 4


@pytest.mark.parametrize(("unit", "code", "millimeters"), [("meter", 1, 1000), ("mm", 2, 1), ("micron", 3, .001), ("unknown", 0, 1)])
@pytest.mark.parametrize("kind", ["Nifti1Image", "Nifti2Image"])
def test_units_of_nifti_become_millimeters_as_in_simpleitk(tmp_path, unit, code, millimeters, kind):
    affine = np.diag([-.5, -.25, 2, 1])
    affine[:3, 3] = 3, -4, 5
    image = getattr(nibabel, kind)(np.zeros((4, 5, 6), np.int16), affine)
    image.header.set_xyzt_units(unit, "sec")
    assert int(image.header["xyzt_units"]) == code + 8
    image.to_filename(tmp_path / "a.nii")
    for volume in (st.Volume.load(tmp_path / "a.nii"), st.Volume.from_nibabel(image)):
        assert list(volume.grid.spacing) == pytest.approx([2 * millimeters, .25 * millimeters, .5 * millimeters], rel=1e-6)
        assert list(volume.grid.origin) == pytest.approx([5 * millimeters, 4 * millimeters, -3 * millimeters], rel=1e-6)  # z, y, x
    if kind == "Nifti2Image":  # which SimpleITK does not read
        return
    theirs = itk.ReadImage(str(tmp_path / "a.nii"))
    assert list(theirs.GetSpacing()) == pytest.approx([.5 * millimeters, .25 * millimeters, 2 * millimeters], rel=1e-5)
    assert list(theirs.GetOrigin()) == pytest.approx([-3 * millimeters, 4 * millimeters, 5 * millimeters], rel=1e-5)


def test_a_unit_that_is_none_of_length_is_refused():
    image = nibabel.Nifti1Image(np.zeros((4, 5, 6), np.int16), np.eye(4))
    image.header["xyzt_units"] = 5
    with pytest.raises(st.Error, match="suture: Volume: expected a unit of length in xyzt_units, got 5"):
        st.Volume.from_nibabel(image)
