# SPDX-License-Identifier: Apache-2.0
"""docs/hospital.md from DICOM to a run that is made again, on a machine without a network: in a namespace without interfaces."""
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT, library

torch = library("torch")
SimpleITK = pytest.importorskip("SimpleITK")
pydicom = pytest.importorskip("pydicom")
pytest.importorskip("tensorstore")
pytest.importorskip("monai")
pytest.importorskip("suture.training")
ISOLATED = ["unshare", "--map-root-user", "--net"]
pytestmark = [pytest.mark.torch, pytest.mark.long]

# Runs in every Python process: notes each name that is looked up and each address that is connected or sent to, or listened at
# from outside. urllib3 binds a socket to ::1 when it is imported, to see whether there is IPv6; that reaches nobody.
HOOK = """
import os, sys
def note(text):
    with open(os.environ["SUTURE_TEST_CALLS"], "a") as file:
        file.write(text + "\\n")
def watch(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        note(f"{event} {arguments[0]!r}")
    elif event in ("socket.connect", "socket.sendto", "socket.bind") and isinstance(arguments[1], tuple):
        if event != "socket.bind" or arguments[1][0] not in ("::1", "127.0.0.1"):
            note(f"{event} {arguments[1]}")
sys.addaudithook(watch)
note("watched")
"""

# The training run of docs/hospital.md, small.
FIRST = """
import sys
from pathlib import Path
import suture as st
import suture.store
from suture.training.config import Config

cohort = suture.store.open(sys.argv[1])
window = st.window(center=40, width=400)
train = st.Pipeline(image=[window, st.random_affine(rotate_deg=10, probability=.5), st.crop_by_class(size=16, labels="seg", ratios=[1, 1]),
                           st.gaussian_noise(sigma=.02)], seg=st.labels())
config = Config("segmentation", cohort.sha256, train.to_json(), st.Pipeline(image=[window]).to_json(), ["background", "organ"], [16, 16, 16],
                batch=2, steps_per_epoch=3, epochs=2, channels=[4, 8], threads=1, val=["patient_3"])
config.save(Path(sys.argv[2]))
"""


def isolated():
    if shutil.which(ISOLATED[0]) is None:
        return "there is no unshare"
    done = subprocess.run([*ISOLATED, "true"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"network namespaces are not permitted here: {done.stderr.strip()[:100]}"


def series(folder, scan, number):
    """A CT as a scanner writes it: a file a slice, signed values with slope and intercept."""
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

    folder.mkdir(parents=True)
    for k, plane in enumerate(scan):
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID = CTImageStorage, ExplicitVRLittleEndian
        meta.MediaStorageSOPInstanceUID = f"1.2.3.{number}.{k + 1}"
        data = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
        data.SOPClassUID, data.SOPInstanceUID = CTImageStorage, meta.MediaStorageSOPInstanceUID
        data.SeriesInstanceUID, data.StudyInstanceUID, data.FrameOfReferenceUID = f"1.2.3.{number}", f"1.2.4.{number}", f"1.2.5.{number}"
        data.Modality, data.PatientID, data.PatientName, data.InstanceNumber = "CT", f"ID-47{number}", "DOE^JOHN", k + 1
        data.Rows, data.Columns = plane.shape
        data.PixelSpacing, data.SliceThickness = [1.5, 1.5], 2
        data.ImagePositionPatient, data.ImageOrientationPatient = [-30, -30, 2 * k], [1, 0, 0, 0, 1, 0]
        data.SamplesPerPixel, data.PhotometricInterpretation, data.BitsAllocated, data.BitsStored, data.HighBit = 1, "MONOCHROME2", 16, 16, 15
        data.PixelRepresentation, data.RescaleSlope, data.RescaleIntercept = 1, 1, -1024
        data.PixelData = (plane + 1024).astype("<i2").tobytes()
        data.save_as(folder / f"{k:03}.dcm", enforce_file_format=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three series, and the label map of each as a reader draws it: a NIfTI file on the scan's grid."""
    folder, random = tmp_path_factory.mktemp("hospital"), np.random.default_rng(2)
    (folder / "labels").mkdir()
    for number in (1, 2, 3):
        scan = random.normal(-200, 30, (20, 28, 28))
        scan[6:14, 8:20, 8 + number:20] += 260
        series(folder / f"dicom/patient_{number}", np.round(scan).astype(np.int16), number)
        reader = SimpleITK.ImageSeriesReader()
        reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder / f"dicom/patient_{number}")))
        SimpleITK.WriteImage(SimpleITK.Cast(reader.Execute() > -70, SimpleITK.sitkUInt8), str(folder / f"labels/patient_{number}.nii.gz"))
    (folder / "hook").mkdir()
    (folder / "hook/sitecustomize.py").write_text(HOOK)
    (folder / "first.py").write_text(FIRST)
    return folder


def alone(files, line, folder):
    """A line of the shell, run where there is no network; what it prints."""
    path = os.pathsep.join((str(files / "hook"), str(ROOT / "python")))
    environment = {**os.environ, "PYTHONPATH": path, "SUTURE_TEST_CALLS": str(files / "calls"), "SUTURE": f"{sys.executable} -m suture", "PYTHON": sys.executable}
    done = subprocess.run([*ISOLATED, "bash", "-ec", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=560)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(isolated() is not None, reason=str(isolated()))
def test_from_dicom_to_a_run_that_is_made_again(files):
    nothing = "import socket\ntry:\n  socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError as e: print(e.errno, socket.if_nameindex())"
    assert json.loads(alone(files, f'$PYTHON -I -c "{nothing}" | cut -d" " -f1', files)) == 101  # ENETUNREACH: not even this machine is reached

    out = alone(files, "$SUTURE store build dicom --labels labels --out cohort.zarr --chunk 32 --workers 2; $SUTURE store verify cohort.zarr", files)
    assert "3 built, 0 reused, 0 failed" in out and "every chunk has the hash of its manifest" in out
    kept = b"".join(path.read_bytes() for path in sorted((files / "cohort.zarr").rglob("*")) if path.is_file())
    assert b"patient_1" in kept and not any(word in kept for word in (b"DOE", b"JOHN", b"ID-47"))  # names of cases, not of people
    out = alone(files, "$PYTHON first.py cohort.zarr plan.json; $SUTURE train --config plan.json --store cohort.zarr --out run_1", files)
    first = json.loads(out.splitlines()[-1])
    assert len(first["losses"]) == 6 and first["different"] == []
    assert (files / "run_1/run.json").is_file() and list((files / "run_1").rglob("*.nii.gz"))

    # Another machine has the DICOM files and run.json, and nothing else; also the cache of compiled kernels is empty.
    other = files / "other"
    other.mkdir()
    shutil.copytree(files / "dicom", other / "dicom")
    shutil.copytree(files / "labels", other / "labels")
    shutil.copy(files / "run_1/run.json", other / "run.json")
    out = alone(files, "mkdir -m 700 cache; export SUTURE_CACHE=$PWD/cache; $SUTURE store build dicom --labels labels --out cohort.zarr --chunk 32; "
                "$SUTURE train --config run.json --store cohort.zarr --out run_2", other)
    again = json.loads(out.splitlines()[-1])
    assert again["same"] is True and again["losses"] == first["losses"] and again["batches"] == first["batches"]
    record = json.loads((files / "run_1/run.json").read_text())
    assert record["cohort"] == json.loads((other / "run_2/run.json").read_text())["cohort"]

    calls = (files / "calls").read_text().splitlines()
    assert calls.count("watched") >= 7 and set(calls) == {"watched"}  # nobody even tried

    # A result that differs is told of.
    record["results"]["losses"][0] += 1e-6
    (other / "changed.json").write_text(json.dumps(record))
    path = os.pathsep.join((str(ROOT / "python"),))
    done = subprocess.run([sys.executable, "-m", "suture", "train", "--config", "changed.json", "--store", "cohort.zarr", "--out", "run_3"], cwd=other,
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=560)
    assert done.returncode == 2 and json.loads(done.stdout.splitlines()[-1])["different"][0] == "losses"
