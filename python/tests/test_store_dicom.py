# SPDX-License-Identifier: Apache-2.0
"""DICOM series and enhanced files, written of a real scan: found by what is in them, and what is no volume is refused."""
import pathlib
import shutil

import numpy as np
import pytest
from conftest import library
from store_data import DATA

pytestmark = pytest.mark.store
library("tensorstore")
pydicom = pytest.importorskip("pydicom")
pytest.importorskip("highdicom")
SimpleITK = pytest.importorskip("SimpleITK")

from pydicom.dataset import Dataset, FileMetaDataset  # noqa: E402
from pydicom.uid import CTImageStorage, EnhancedCTImageStorage, ExplicitVRLittleEndian, RLELossless  # noqa: E402

import suture as st  # noqa: E402
import suture.store  # noqa: E402

UID = "1.2.826.0.1.3680043.8.498.1"
TILT = np.radians(9)
ROW, COLUMN = np.array([1, 0, 0.]), np.array([0, np.cos(TILT), np.sin(TILT)])
NORMAL = np.cross(ROW, COLUMN)
SPACING, STEP, ORIGIN = (.8, .9), 2.5, np.array([-40, 12, 300.])


@pytest.fixture(scope="module")
def scan():
    """Hounsfield units, (z, y, x), of a part of a CT."""
    image = SimpleITK.ReadImage(str(DATA / "ct/abdomen_ct.nii.gz"))
    return SimpleITK.GetArrayFromImage(image)[40:52, 20:60, 30:80].astype(np.int16)


def base(series, kind=CTImageStorage):
    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.MediaStorageSOPClassUID, data.file_meta.TransferSyntaxUID = kind, ExplicitVRLittleEndian
    data.SOPClassUID, data.Modality, data.PatientID, data.PatientName = kind, "CT", "P1", "Test^One"
    data.StudyInstanceUID, data.SeriesInstanceUID, data.FrameOfReferenceUID = f"{UID}.1", f"{UID}.{series}", f"{UID}.2"
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 0
    return data


def save(data, path, instance):
    data.SOPInstanceUID = data.file_meta.MediaStorageSOPInstanceUID = f"{UID}.{instance}"
    path.parent.mkdir(parents=True, exist_ok=True)
    data.save_as(path, enforce_file_format=True)


def write_series(folder, scan, series=10, order=None, change=None, slope=1.0, names="IM{}"):
    """Slices as a scanner writes them, in any order and under names that say nothing."""
    for k in range(len(scan)) if order is None else order:
        data = base(series)
        data.Rows, data.Columns = scan.shape[1:]
        data.ImageOrientationPatient = [*ROW, *COLUMN]
        data.ImagePositionPatient = [f"{v:.6f}" for v in ORIGIN + k * STEP * NORMAL]
        data.PixelSpacing, data.RescaleSlope, data.RescaleIntercept = list(SPACING), slope, -1024
        data.PixelData = ((scan[k] + 1024) / slope).round().astype(np.uint16).tobytes()
        if change is not None:
            change(k, data)
        save(data, folder / names.format((k * 7) % len(scan)), f"{series}.{k + 1}")


def expected_affine():
    """From (x, y, z) indices to RAS, of the values above alone."""
    affine = np.eye(4)
    affine[:3, 0], affine[:3, 1], affine[:3, 2], affine[:3, 3] = ROW * SPACING[1], COLUMN * SPACING[0], NORMAL * STEP, ORIGIN
    affine[:2] *= -1
    return affine


def build(folder, **given):
    report = st.store.build(folder, out=folder.with_name(folder.name + ".zarr"), **given)
    return report, (st.store.open(folder.with_name(folder.name + ".zarr")) if report.built else {})


def test_a_series_is_read_as_simpleitk_reads_it(tmp_path, scan):
    order = np.random.default_rng(1).permutation(len(scan))
    write_series(tmp_path / "in/patient/a", scan, order=order)
    write_series(tmp_path / "in/patient/b", scan[::-1], series=11)
    (tmp_path / "in/patient/a/notes.txt").write_text("no DICOM")
    report, cohort = build(tmp_path / "in")
    assert report.built == ["patient_a", "patient_b"] and not report.failed and report.skipped == ["patient/a/notes.txt"]
    image = cohort["patient_a"].image
    assert image.dtype == "int16" and np.array_equal(image[...], scan)
    reader = SimpleITK.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(tmp_path / "in/patient/a")))
    theirs = reader.Execute()
    assert np.array_equal(SimpleITK.GetArrayFromImage(theirs), image[...])
    for index in ((0, 0, 0), (49, 39, 11)):
        assert np.allclose(cohort["patient_a"].volume().affine_lps @ [*index[::-1], 1], [*theirs.TransformIndexToPhysicalPoint(index), 1], atol=1e-4)
    assert np.allclose(image.affine_ras[:, [2, 1, 0, 3]], expected_affine(), atol=1e-4)


def test_slices_that_say_no_modality_are_an_image(tmp_path, scan):
    def change(k, data):
        del data.Modality

    write_series(tmp_path / "in/a", scan, change=change)
    report, cohort = build(tmp_path / "in")
    assert report.built == ["a"] and np.array_equal(cohort["a"].image[...], scan)


def test_two_series_in_one_folder_are_two_cases(tmp_path, scan):
    write_series(tmp_path / "in", scan, names="A{}")
    write_series(tmp_path / "in", scan[:5], series=11, names="B{}")
    report, cohort = build(tmp_path / "in")
    assert report.built == [f"{UID}.10", f"{UID}.11"] and len(cohort[f"{UID}.11"].image) == 5


def test_an_enhanced_file(tmp_path, scan):
    data = base(20, EnhancedCTImageStorage)
    data.Rows, data.Columns, data.NumberOfFrames = *scan.shape[1:], len(scan)
    shared, measures, orientation, values = Dataset(), Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = list(SPACING), STEP
    orientation.ImageOrientationPatient = [*ROW, *COLUMN]
    values.RescaleSlope, values.RescaleIntercept, values.RescaleType = 1, -1024, "HU"
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence, shared.PixelValueTransformationSequence = [measures], [orientation], [values]
    data.SharedFunctionalGroupsSequence = [shared]
    order = np.random.default_rng(2).permutation(len(scan))
    frames = []
    for k in order:
        frame, place, content = Dataset(), Dataset(), Dataset()
        place.ImagePositionPatient = [f"{v:.6f}" for v in ORIGIN + k * STEP * NORMAL]
        content.DimensionIndexValues = [int(k) + 1]
        frame.PlanePositionSequence, frame.FrameContentSequence = [place], [content]
        frames.append(frame)
    data.PerFrameFunctionalGroupsSequence = frames
    data.PixelData = (scan[order] + 1024).astype(np.uint16).tobytes()
    save(data, tmp_path / "in/one/enhanced", 20)
    frames[3].PlanePositionSequence[0].ImagePositionPatient = [f"{v:.6f}" for v in ORIGIN + 40 * STEP * NORMAL]
    data.SeriesInstanceUID = f"{UID}.21"
    save(data, tmp_path / "in/two/gap", 21)
    report, cohort = build(tmp_path / "in")
    assert report.built == ["one"] and list(report.failed) == ["two"]
    image = cohort["one"].image
    forward = image.affine_ras[:, [2, 1, 0, 3]]
    flipped = not np.allclose(forward[:3, 2], expected_affine()[:3, 2], atol=1e-4)
    voxels, affine = image[...], forward
    if flipped:  # the same voxels at the same places, from the other end
        voxels = voxels[::-1]
        affine = forward.copy()
        affine[:3, 2] *= -1
        affine[:3, 3] += forward[:3, 2] * (len(scan) - 1)
    assert np.array_equal(voxels, scan) and np.allclose(affine, expected_affine(), atol=1e-4)
    assert report.failed["two"].startswith("suture: store: case 'two': expected an enhanced file whose frames are one volume")


def test_a_slope_that_is_no_whole_number_stays_beside_whole_numbers(tmp_path, scan):
    write_series(tmp_path / "in/pet", scan, slope=.25)
    _, cohort = build(tmp_path / "in")
    image = cohort["pet"].image
    assert (image.stored_dtype, image.dtype, image.scaling) == ("int16", "float32", (.25, -1024)) and np.array_equal(image[...], scan)


def missing(folder, scan):
    write_series(folder, scan, order=[0, 1, 2, 3, 6, 7, 8])


def uneven(folder, scan):
    def change(k, data):
        data.ImagePositionPatient = [float(v) for v in ORIGIN + (k + .3 * (k == 5)) * STEP * NORMAL]
    write_series(folder, scan, change=change)


def orientations(folder, scan):
    def change(k, data):
        if k == 6:
            data.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    write_series(folder, scan, change=change)


def slopes(folder, scan):
    def change(k, data):
        data.RescaleSlope = 1 + .01 * k
    write_series(folder, scan, change=change)


def twice(folder, scan):
    def change(k, data):
        if k == 4:
            data.ImagePositionPatient = [f"{v:.6f}" for v in ORIGIN + 3 * STEP * NORMAL]
    write_series(folder, scan, change=change)


def spacings(folder, scan):
    def change(k, data):
        if k == 4:
            data.PixelSpacing = [.8, .8]
    write_series(folder, scan, change=change)


def nowhere(folder, scan):
    def change(k, data):
        if k == 4:
            del data.ImagePositionPatient
    write_series(folder, scan, change=change)


def tilted(folder, scan):
    def change(k, data):
        data.ImagePositionPatient = [f"{v:.6f}" for v in ORIGIN + k * STEP * NORMAL + .8 * k * COLUMN]
    write_series(folder, scan, change=change)


def aside(folder, scan):
    def change(k, data):
        data.ImagePositionPatient = [f"{v:.6f}" for v in ORIGIN + k * STEP * NORMAL + 4 * (k == 4) * ROW]
    write_series(folder, scan, change=change)


def two_tilted(folder, scan):
    def change(k, data):
        data.ImagePositionPatient = [f"{v:.6f}" for v in ORIGIN + k * STEP * NORMAL + k * COLUMN]
    write_series(folder, scan[:2], change=change)


def cut(folder, scan):
    write_series(folder, scan)
    path = folder / "IM0"
    path.write_bytes(path.read_bytes()[:900])


def short(folder, scan):
    def change(k, data):
        if k == 4:
            data.PixelData = data.PixelData[:-100]
    write_series(folder, scan, change=change)


def bare(folder, scan):
    def change(k, data):
        if k == 4:
            del data.PixelData
    write_series(folder, scan, change=change)


def monochrome1(folder, scan):
    def change(k, data):
        data.PhotometricInterpretation = "MONOCHROME1"
    write_series(folder, scan, change=change)


def alone(folder, scan):
    write_series(folder, scan[:1])


@pytest.mark.parametrize("write, pattern", [
    (missing, r"expected slices 2.500 mm apart, got 7.500 mm between IM9 and IM6, as where 2 of them are missing"),
    (uneven, r"expected slices 2.500 mm apart, got 3.250 mm between IM4 and IM11"), (orientations, "expected one orientation, got"),
    (slopes, "expected one slope and intercept, got"), (twice, "expected one slice at a place, got"), (spacings, "expected the pixel spacing"),
    (tilted, "expected slices that lie straight behind each other, got IM5 8.8 mm aside, as a tilted gantry"),
    (aside, "expected slices that lie straight behind each other, got IM4 4 mm aside"),
    (two_tilted, "expected slices that lie straight behind each other, got IM1 1 mm aside"),
    (nowhere, "expected a slice with its place in IM4"), (cut, "expected 4000 bytes of pixels in IM0, got"),
    (short, "expected 4000 bytes of pixels in IM4, got 3900. Copy it again"), (bare, "expected 4000 bytes of pixels in IM4, got 0"),
    (monochrome1, "expected MONOCHROME2, got MONOCHROME1 in IM0, whose values SimpleITK inverts. Convert it to NIfTI first, with dcm2niix"),
    (alone, "expected SliceThickness or SpacingBetweenSlices in IM0, the only slice, got neither")])
def test_what_is_no_volume_is_refused(tmp_path, scan, write, pattern):
    import re

    write(tmp_path / "in/bad", scan)
    write_series(tmp_path / "in/good", scan, series=99)
    report, cohort = build(tmp_path / "in")
    sentence = report.failed["bad"]
    assert report.built == ["good"] and list(cohort) == ["good"]
    assert sentence.startswith("suture: store: case 'bad': ") and "\n" not in sentence and re.search(pattern, sentence), sentence


@pytest.mark.parametrize("given, spacing", [(dict(SliceThickness=2), 2), (dict(SliceThickness=2, SpacingBetweenSlices=3), 3)])
def test_a_lone_slice_has_the_spacing_that_dcm2niix_gives_it(tmp_path, scan, given, spacing):
    write_series(tmp_path / "in/a", scan[:1], change=lambda k, data: data.update(given))
    _, cohort = build(tmp_path / "in")
    assert cohort["a"].image.spacing == dict(z=spacing, y=SPACING[0], x=SPACING[1]) and np.array_equal(cohort["a"].image[...], scan[:1])


def test_compressed_slices(tmp_path, scan):
    write_series(tmp_path / "in/a", scan, change=lambda k, data: data.compress(RLELossless))
    report, cohort = build(tmp_path / "in")
    assert report.built == ["a"] and np.array_equal(cohort["a"].image[...], scan)
    assert np.array_equal(st.Volume.load(tmp_path / "in/a").array, scan)
    path = tmp_path / "in/a/IM7"
    path.write_bytes(path.read_bytes()[:-200])
    shutil.rmtree(tmp_path / "in.zarr")
    report, _ = build(tmp_path / "in")
    assert "bytes of pixels in IM7, got 0" in report.failed["a"]


@pytest.mark.parametrize("size", [150, 200, 360, 430, 560, 800])  # within the file meta, before and after Modality and SeriesInstanceUID
def test_an_end_slice_that_is_cut_off_within_its_header(tmp_path, scan, size):
    write_series(tmp_path / "in/bad", scan)
    write_series(tmp_path / "in/good", scan, series=99)
    path = tmp_path / "in/bad/IM0"  # the first slice: without it the others are evenly spaced
    path.write_bytes(path.read_bytes()[:size])
    report, cohort = build(tmp_path / "in")
    assert report.built == ["good"] and list(cohort) == ["good"] and not report.skipped
    assert "bad" in report.failed and all(text.startswith("suture: store: ") and "\n" not in text for text in report.failed.values())
    if size < 700:
        assert "bad/IM0: expected a readable DICOM file, got" in report.failed["bad/IM0"]
        assert "expected all files of its series, but bad/IM0 cannot be read" in report.failed["bad"]


def test_a_cut_slice_of_a_known_series_refuses_no_other_of_its_folder(tmp_path, scan):
    write_series(tmp_path / "in", scan, names="A{}")
    write_series(tmp_path / "in", scan[:5], series=11, names="B{}")
    path = tmp_path / "in/A0"
    path.write_bytes(path.read_bytes()[:560])
    report, _ = build(tmp_path / "in")
    assert report.built == [f"{UID}.11"] and sorted(report.failed) == [f"{UID}.10", "A0"]


def test_folders_that_were_swapped_are_made_again(tmp_path, scan):
    import os

    write_series(tmp_path / "in/a", scan)
    write_series(tmp_path / "in/b", scan[::-1], series=11)
    for path in (tmp_path / "in").glob("*/*"):
        os.utime(path, ns=(10 ** 18, 10 ** 18))
    _, cohort = build(tmp_path / "in")
    assert np.array_equal(cohort["a"].image[...], scan)
    os.rename(tmp_path / "in/a", tmp_path / "in/c")
    os.rename(tmp_path / "in/b", tmp_path / "in/a")
    os.rename(tmp_path / "in/c", tmp_path / "in/b")
    report, cohort = build(tmp_path / "in")
    assert report.built == ["a", "b"] and np.array_equal(cohort["b"].image[...], scan)


def test_files_of_pydicom(tmp_path):
    """Real small files: slices, reports and structures of many makers; each becomes a case or a sentence, and none ends the build."""
    source = pathlib.Path(pydicom.__file__).parent / "data/test_files"
    (tmp_path / "in").mkdir()
    for path in sorted(source.glob("*.dcm")):
        if path.stat().st_size < 300_000:
            shutil.copy(path, tmp_path / "in")
    report, cohort = build(tmp_path / "in")
    assert report.built and all(s.startswith("suture: store: ") and "\n" not in s and "Error" not in s for s in report.failed.values())
    ct = pydicom.dcmread(source / "CT_small.dcm")
    case = cohort[str(ct.SeriesInstanceUID)]
    assert np.array_equal(case.image[0], ct.pixel_array * float(ct.RescaleSlope) + float(ct.RescaleIntercept))
