#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the inputs of the cases from the sample images (examples/data). Afterwards run generate.py.

Fields of random numbers (coordinates, noise, displacements, coefficients) and the pairs of stained tiles come from no
sample image; they are kept as they are.
"""
import json
import pathlib

import nibabel
import numpy as np

here = pathlib.Path(__file__).resolve().parent
data = here.parent.parent / "examples" / "data"


def crop(file, first, size):
    """Stored values of a box, (i, j, k) order in, (z, y, x) order out."""
    box = tuple(slice(f, f + n) for f, n in zip(first, size))
    return np.asanyarray(nibabel.load(data / file).dataobj)[box].transpose(2, 1, 0)


def write(name, array):
    with open(here / name, "wb") as f:
        np.lib.format.write_array(f, np.ascontiguousarray(array), version=(1, 0))


def main():
    ct = crop("ct/abdomen_ct.nii.gz", (4, 40, 28), (28, 23, 18)).astype(np.int16)
    for group in ("affine3d", "coords3d", "zoom3d", "filters3d", "elastic"):
        write(f"{group}/x.npy", ct)
    write("torch_grid/x.npy", ct.astype(np.float32))
    write("intensity/x_ct.npy", ct)
    write("intensity/x_unit.npy", np.clip((ct.astype(np.float64) + 160) / 400, 0, 1).astype(np.float32))
    labels = crop("ct/abdomen_ct_labels.nii.gz", (40, 30, 70), (28, 23, 18))
    write("affine3d/labels_o0__x.npy", labels)
    write("elastic/warp_labels__x.npy", labels)

    mr = crop("mri/ms19_t1.nii.gz", (50, 70, 0), (25, 24, 20)).astype(np.float32)
    write("intensity/x_mr.npy", mr)

    write("itk_resample/lung__x.npy", crop("ct/lung_ct.nii.gz", (8, 20, 14), (27, 28, 24)))

    labels = crop("ct/abdomen_ct_labels.nii.gz", (32, 26, 76), (40, 36, 22))
    write("labels/labels.npy", labels)
    write("labels/mask.npy", (labels > 0).astype(np.uint8))
    bone = crop("ct/abdomen_ct.nii.gz", (42, 18, 30), (40, 36, 22)) > 226
    write("labels/bone.npy", bone.astype(np.uint8))

    # NIfTI order (i, j, k); the affine of the box goes into the cases.
    image = nibabel.load(data / "mri/ms19_t2.nii.gz")
    first = np.array((60, 70, 20))
    write("orientation/las__x.npy", image.dataobj.get_unscaled()[60:78, 70:92, 20:32].astype(np.int16))
    affine = image.affine.copy()
    affine[:3, 3] += affine[:3, :3] @ first
    path = here / "orientation/cases.json"
    document = json.loads(path.read_text())
    for c in document["cases"]:
        if c["name"].startswith("las_"):
            c["params"]["affine"] = affine.tolist()
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
