# SPDX-License-Identifier: Apache-2.0
"""Small scans and stores for the tests of suture.store."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "examples/data"
_TURN, _TILT = np.radians(20), np.radians(-12)
OBLIQUE = np.eye(4)  # spacing .7 x .9 x 2.5 mm, turned twice
OBLIQUE[:3, :3] = (np.array([[-np.cos(_TURN), np.sin(_TURN), 0], [np.sin(_TURN), np.cos(_TURN), 0], [0, 0, 1]])
                   @ np.array([[1, 0, 0], [0, np.cos(_TILT), -np.sin(_TILT)], [0, np.sin(_TILT), np.cos(_TILT)]]) @ np.diag([.7, .9, 2.5]))
OBLIQUE[:3, 3] = 40, -20, 7


def real(folder):
    """A CT and an MRI with their label maps, in scans/ and labels/."""
    for name, scan, labels in (("ct", "ct/abdomen_ct", "ct/abdomen_ct_labels"), ("mr", "mri/abdomen_mr", "mri/abdomen_mr_labels")):
        for kind, source in (("scans", scan), ("labels", labels)):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            shutil.copy(DATA / f"{source}.nii.gz", folder / kind / f"{name}.nii.gz")
    return folder


def phantoms(folder, count=6, shape=(20, 18, 16), seed=0):
    """Random scans with label maps, which are quickly made."""
    import nibabel

    random = np.random.default_rng(seed)
    for k in range(count):
        data = random.integers(-1000, 1500, shape).astype(np.int16)
        labels = (data > 900).astype(np.uint8) + (data > 1300)
        for kind, array in (("scans", data), ("labels", labels)):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(array, OBLIQUE), folder / kind / f"case_{k:02d}.nii.gz")
    return folder


def tree(store):
    """The SHA-256 of every file below a folder, by its path."""
    return {str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(store.rglob("*")) if path.is_file()}


def command(*arguments, **given):
    """Runs `suture store` in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run([sys.executable, "-m", "suture", "store", *map(str, arguments)], env=env, text=True, capture_output=True, **given)


def flip(path, at):
    """Changes one byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x5a
    path.write_bytes(bytes(data))
