# SPDX-License-Identifier: Apache-2.0
"""Statistics and masks against NumPy, SciPy, scikit-image and, where they are there, SimpleITK and OpenCV, on random and
degenerate volumes made here and on the slides of a folder.

    python3 statistics_and_masks.py PROGRAM [FOLDER]

PROGRAM is made from statistics_and_masks.cpp; FOLDER holds pictures (.png) and slides (.svs), taken as thumbnails.
Integers, percentiles, thresholds and masks must be the same, moments
within 1e-6. Ends with 77, which ctest reports as skipped, where a library is missing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from scipy import ndimage
    from PIL import Image
    from skimage.color import rgb2lab
    from skimage.filters import threshold_otsu
    from skimage.morphology import ball, disk
except ImportError as missing:
    print(f"skipped: {missing}; name a Python with NumPy, SciPy and scikit-image in SUTURE_PYTHON")
    sys.exit(77)
try:
    import SimpleITK
except ImportError:
    SimpleITK = None

try:
    import cv2
except ImportError:
    cv2 = None

CROSS = ndimage.generate_binary_structure(3, 1)


def volumes():
    """Names, images and masks."""
    random = np.random.default_rng(11)
    shapes = [(1, 1, 1), (1, 15, 16), (2, 17, 63), (5, 9, 64), (3, 8, 65), (7, 16, 127), (1, 1, 300), (40, 1, 1),
              (9, 30, 31)]
    for number, shape in enumerate(shapes):
        smooth = ndimage.gaussian_filter(random.normal(0, 1, shape), 1.2) * 300
        for kind, image in (("int16", smooth.round().astype(np.int16)),
                            ("uint8", np.clip(smooth + 90, 0, 255).astype(np.uint8)),
                            ("float32", smooth.astype(np.float32))):
            density = (0.05, 0.5, 0.9)[number % 3]
            yield f"{kind} {shape}", image, (random.random(shape) < density).astype(np.uint8)
            yield f"{kind} {shape} smooth", image, (smooth > 0).astype(np.uint8)
    shape = (4, 11, 70)
    noise = random.normal(0, 100, shape)
    yield "nothing selected", noise.astype(np.int16), np.zeros(shape, np.uint8)
    yield "everything selected", noise.astype(np.int16), np.ones(shape, np.uint8)
    yield "constant", np.full(shape, -7, np.int16), np.ones(shape, np.uint8)
    yield "extremes", np.where(noise > 0, 32767, -32768).astype(np.int16), np.ones(shape, np.uint8)
    bad = noise.astype(np.float32)
    bad[noise > 120] = np.nan
    bad[noise < -150] = -np.inf
    yield "not finite", bad, (noise > -200).astype(np.uint8)


def expected(image, mask):
    values = image[mask > 0].astype(np.float64)
    values = values[np.isfinite(values)]
    numbers, masks = {}, {}
    numbers["moments"] = ([len(values), values.mean(), values.std(), values.min(), values.max()] if len(values)
                          else [0, 0, 1, 0, 0])
    numbers["percentiles"] = np.percentile(values, [0, 0.5, 25, 50, 99.5, 100]) if len(values) else [0] * 6
    if image.dtype != np.float32:  # the bins of floats are compared elsewhere
        numbers["otsu"] = threshold_otsu(image) if image.min() < image.max() else image.flat[0]
    box = ndimage.find_objects(mask.astype(bool).astype(np.uint8))
    numbers["box"] = ([axis.start for axis in box[0]] + [axis.stop - 1 for axis in box[0]] if box
                      else [0, 0, 0, -1, -1, -1])
    counts = []
    for touching in (1, 2, 3):
        labels, count = ndimage.label(mask, ndimage.generate_binary_structure(3, touching))
        masks[f"labels{touching}"] = labels.astype(np.int32)
        counts.append(count)
    numbers["components"] = counts

    def largest(m):
        labels, count = ndimage.label(m)
        sizes = np.bincount(labels.ravel(), minlength=2)[1:]
        return (labels == sizes.argmax() + 1, sizes.max()) if count else (np.zeros_like(m, bool), 0)

    masks["largest"], numbers["largest"] = largest(mask)
    sizes = np.bincount(masks["labels3"].ravel())
    masks["not_small"] = (sizes >= 5)[masks["labels3"]] & (mask > 0)
    masks["filled"] = ndimage.binary_fill_holes(mask)
    masks["filled_slices"] = np.stack([ndimage.binary_fill_holes(plane) for plane in mask])
    masks["eroded"] = ndimage.binary_erosion(mask, CROSS, border_value=1)
    masks["dilated"] = ndimage.binary_dilation(mask, np.ones((3, 5, 3)))
    masks["opened"] = ndimage.binary_opening(mask, CROSS)
    masks["closed"] = ndimage.binary_closing(mask, ball(2))
    body = largest(ndimage.binary_opening(image > 10, CROSS))[0]
    masks["body"] = np.stack([ndimage.binary_fill_holes(plane) for plane in body])
    if SimpleITK:
        itk = SimpleITK.GetImageFromArray(mask)
        masks["filled of SimpleITK"] = SimpleITK.GetArrayFromImage(SimpleITK.BinaryFillhole(itk, False, 1))
        for touching, full in ((1, False), (3, True)):
            filtered = SimpleITK.ConnectedComponentImageFilter()
            filtered.SetFullyConnected(full)
            filtered.Execute(itk)
            assert filtered.GetObjectCount() == counts[touching - 1], "SciPy and SimpleITK disagree"
    return numbers, masks


def pictures(folder):
    """Names and thumbnails of at most 700 pixels across, and pictures that leave nothing to choose."""
    random = np.random.default_rng(3)
    yield "noise", random.integers(0, 256, (37, 130, 3), np.uint8)
    yield "glass", np.full((20, 65, 3), 243, np.uint8)
    for file in sorted(folder.glob("*")) if folder else []:
        if file.suffix in (".png", ".svs"):
            picture = Image.open(file).convert("RGB")
            picture.thumbnail((700, 700))
            yield file.name, np.array(picture)


def expected_tissue(rgb):
    """Thresholds and masks by name."""
    wide = rgb.astype(np.int64)
    gray = ((9798 * wide[..., 0] + 19235 * wide[..., 1] + 3735 * wide[..., 2] + 16384) >> 15).astype(np.uint8)
    most, least = wide.max(-1), wide.min(-1)
    scale = np.rint(255 * 4096 / np.maximum(most, 1)).astype(np.int64)
    saturation = np.where(most > 0, ((most - least) * scale + 2048) >> 12, 0).astype(np.uint8)
    if cv2:
        assert np.array_equal(gray, cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)), "gray levels are not those of OpenCV"
        assert np.array_equal(saturation, cv2.cvtColor(rgb, cv2.COLOR_RGB2HSV)[..., 1]), "nor the saturations"
    found = {}
    for name, level in (("gray", gray), ("saturation", saturation)):
        if level.min() == level.max():
            found[name] = (level.flat[0], np.zeros(level.shape, bool))
        else:
            t = threshold_otsu(level)
            found[name] = (t, level <= t if name == "gray" else level > t)
    found["luminosity"] = (-1, rgb2lab(rgb)[..., 0] < 80)
    threshold, mask = found["gray"]
    labels, _ = ndimage.label(mask, np.ones((3, 3)))
    large = (np.bincount(labels.ravel()) >= 30)[labels] & mask
    found["cleaned"] = (threshold, ndimage.binary_dilation(large, disk(3)))
    return found


def main():
    program = sys.argv[1]
    slides = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    failures, compared = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case, image, mask in volumes():
            np.save(folder / "image.npy", image)
            np.save(folder / "mask.npy", mask)
            answer = subprocess.run([program, image.dtype.name, folder / "image.npy", folder / "mask.npy",
                                     folder / "result"], check=True, capture_output=True, text=True)
            found = json.loads(answer.stdout)
            numbers, masks = expected(image, mask)
            for key, value in numbers.items():
                ours, theirs = np.array(found[key], float), np.array(value, float)
                scale = np.maximum(np.abs(theirs), np.abs(theirs).max() * 1e-3) if key == "moments" else 0
                if not (np.abs(ours - theirs) <= 1e-6 * scale).all():
                    failures.append(f"{case}: {key} {ours}, expected {theirs}")
                compared += 1
            for key, value in masks.items():
                ours = np.fromfile(folder / f"result.{key.split()[0]}", np.int32 if "labels" in key else np.uint8)
                if not np.array_equal(ours, value.astype(ours.dtype).ravel()):
                    failures.append(f"{case}: {key} differs in {int((ours != value.ravel()).sum())} voxels")
                compared += 1
        for case, rgb in pictures(slides):
            np.save(folder / "picture.npy", rgb)
            answer = subprocess.run([program, "rgb", folder / "picture.npy", folder / "result"], check=True,
                                    capture_output=True, text=True)
            found = json.loads(answer.stdout)
            for key, (threshold, mask) in expected_tissue(rgb).items():
                ours = np.fromfile(folder / f"result.{key}", np.uint8)
                differ = int((ours != mask.ravel()).sum())
                if found[key] != threshold or differ:
                    failures.append(f"{case}: {key}: threshold {found[key]}, expected {threshold}; {differ} pixels differ")
                compared += 1
    print(f"{compared} results compared with NumPy {np.__version__}"
          f"{', SimpleITK' if SimpleITK else ''}{', OpenCV' if cv2 else ''}, {len(failures)} differ")
    print("\n".join(failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
