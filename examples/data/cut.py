#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the sample volumes of this folder from the files that README.md names.

  cut.py SOURCE   SOURCE holds them as ct/abdomen_ct.nii.gz and so on, the names used here.

A volume keeps its place in space: a crop moves the origin of its affine. Values are kept bit for bit; those of the
abdomen CT, which its authors store in 32 bits, go to 16 (they lie in -1207 .. 3382). Needs nibabel 5 and numpy.
"""
import gzip
import pathlib
import shutil
import sys

import nibabel
import numpy

# File: first voxel and size in file order (i, j, k); None is the whole volume.
volumes = {
    "ct/abdomen_ct.nii.gz": None,
    "ct/abdomen_ct_labels.nii.gz": None,
    "ct/lung_ct.nii.gz": None,
    "ct/lung_ct_mask_fine.nii.gz": None,
    "mri/abdomen_mr.nii.gz": None,
    "mri/abdomen_mr_labels.nii.gz": None,
}
for modality in ("t1", "t1post", "t2", "flair", "lesions"):
    volumes[f"mri/ms19_{modality}.nii.gz"] = ((0, 0, 60), (140, 159, 44))
copied = [
    "histology/CMU-1-Small-Region.svs",
    "histology/breast_a.png",
    "histology/breast_b.png",
    "histology/headneck_tcga.png",
    "histology/tcga_tile.png",
]


def cut(source, target, box):
    image = nibabel.load(source)
    stored = image.dataobj.get_unscaled()
    affine = image.affine.copy()
    if box is not None:
        first, size = box
        stored = stored[tuple(slice(f, f + n) for f, n in zip(first, size))]
        affine[:3, 3] += affine[:3, :3] @ numpy.array(first)
    if stored.dtype == numpy.int32:
        assert stored.min() >= -32768 and stored.max() <= 32767, source
        stored = stored.astype(numpy.int16)
    header = image.header.copy()
    header.extensions.clear()
    header.set_data_dtype(stored.dtype)
    result = nibabel.Nifti1Image(stored, affine, header)
    if box is not None:
        result.set_qform(affine, int(header["qform_code"]))
        result.set_sform(affine, int(header["sform_code"]))
    slope, intercept = image.dataobj.slope, image.dataobj.inter
    raw = bytearray(result.to_bytes())
    # nibabel writes its own scale: put back that of the source, with the values as they were stored.
    raw[112:120] = numpy.array([slope, intercept], "<f4").tobytes()
    begin = int(result.header["vox_offset"]) or 352
    raw[begin : begin + stored.nbytes] = stored.tobytes(order="F")
    with open(target, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(raw)


def main():
    source = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).resolve().parent
    for name in [*volumes, *copied]:
        (here / name).parent.mkdir(exist_ok=True)
        if name in volumes:
            cut(source / name, here / name, volumes[name])
        else:
            shutil.copyfile(source / name, here / name)


if __name__ == "__main__":
    main()
