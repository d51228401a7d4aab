# SPDX-License-Identifier: Apache-2.0
"""A small cohort of abdominal CT scans with liver lesions, made from the sample CT and the phantom.

There is no public scan with liver lesions that this repository may carry. So each case is the sample CT (or the phantom),
turned and bent at random by suture itself, with simulated lesions: ellipsoids that are 45 to 75 HU darker than the liver,
with a soft edge. The labels are 0 background, 1 liver, 2 lesion. What a network learns here shows that files, store, feed,
training and evaluation fit together. It says nothing about patients."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import suture as st
from suture.demo import phantom

LIVER_OF_SAMPLE, LIVER_OF_PHANTOM = 5, 1  # TotalSegmentator's number, and the phantom's


def _vary(case: str, scan: st.Volume, organs: st.Volume, liver: int, seed: int) -> tuple[np.ndarray, np.ndarray, st.Volume]:
    """The scan seen through a random affine map and an elastic deformation, cut around its liver."""
    change = st.Pipeline(
        image=[st.random_affine(rotate_deg=8, scale=(.92, 1.08)), st.random_elastic(control_spacing_mm=60, max_displacement_mm=7),
               st.sampling(border="constant", value=-1000), st.cast("int16")],
        seg=st.labels(convert=st.remap(table={liver: 1}, others=0)))
    out = change({"image": [scan], "seg": [organs], "id": [case]}, seed=seed)
    image, seg = out["image"][0], out["seg"][0]
    where = np.argwhere(np.asarray(seg))
    low = np.maximum(where.min(0) - 8, 0)
    high = np.minimum(where.max(0) + 9, seg.array.shape)
    box = tuple(slice(a, b) for a, b in zip(low, high))
    affine = image.affine_ras
    affine[:3, 3] += affine[:3, :3] @ low
    cut = st.Volume(np.ascontiguousarray(np.asarray(image)[box]), axes=image.axes, affine_ras=affine)
    return np.array(cut.array), np.array(np.asarray(seg)[box]), cut


def _add_lesions(image: np.ndarray, seg: np.ndarray, spacing: np.ndarray, rng: np.random.Generator) -> int:
    """Darkens ellipsoids within the liver and labels them 2; returns how many there are."""
    deep = np.argwhere(np.asarray(st.binary_erosion([(seg == 1).astype(np.uint8)], radius=2, layout="ZYX")[0]))
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in seg.shape), indexing="ij"), -1) * spacing
    made = 0
    for _ in range(int(rng.integers(2, 6))):
        center = deep[rng.integers(len(deep))] * spacing
        radii = rng.uniform(7, 15) * rng.uniform(.8, 1.25, 3)
        distance = np.sqrt((((grid - center) / radii) ** 2).sum(-1))
        inside = (distance < 1) & (seg == 1)
        if inside.sum() < 10:
            continue
        dark = rng.uniform(45, 75) * np.clip((1.15 - distance) / .3, 0, 1)
        image -= np.where((distance < 1.15) & (seg > 0), dark, 0).astype(image.dtype)
        seg[inside] = 2
        made += 1
    return made


def make(sample: Path, out: Path, *, scans: int = 6, phantoms: int = 2, seed: int = 7) -> list[str]:
    """Writes out/images/CASE.nii.gz and out/labels/CASE.nii.gz.

    Parameters
    ----------
    sample : Path
        The folder with abdomen_ct.nii.gz and abdomen_ct_labels.nii.gz.
    out : Path
        The folder to write, which may be there.
    scans, phantoms : int
        Cases that are made of the sample CT, and of the phantom.
    seed : int
        Of everything that is drawn.

    Returns
    -------
    list of str
        The names of the cases.
    """
    real = st.Volume.load(sample / "abdomen_ct.nii.gz"), st.Volume.load(sample / "abdomen_ct_labels.nii.gz"), LIVER_OF_SAMPLE
    made = [(f"scan_{k}", *real) for k in range(scans)] + [(f"phantom_{k}", *phantom(), LIVER_OF_PHANTOM) for k in range(phantoms)]
    for folder in ("images", "labels"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for number, (case, scan, organs, liver) in enumerate(made):
        image, seg, where = _vary(case, scan, organs, liver, seed)
        spacing = np.array([where.spacing[name] for name in where.axes])
        _add_lesions(image, seg, spacing, np.random.default_rng([seed, number]))
        for folder, array in (("images", image), ("labels", seg.astype(np.uint8))):
            st.Volume(array, axes=where.axes, grid=where.grid).save(out / folder / f"{case}.nii.gz")
    return [case for case, *_ in made]
