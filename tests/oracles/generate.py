#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the results of the cases in this folder with the libraries that the tests compare with.

  generate.py [--check] [FOLDER] [GROUP...]

Every case in GROUP/cases.json says which call it is (op), its arguments (params) and its inputs; this script makes the
call and writes the outputs and the expected values. With --check it writes nothing and says where a result differs from
the stored one. README.md says which versions were used and what this script leaves alone.
"""
import json
import os
import pathlib
import sys

import numpy as np

here = pathlib.Path(__file__).resolve().parent
data_folder = pathlib.Path(os.environ.get("SUTURE_DATA_DIR", here.parent.parent / "examples" / "data"))
operations = {}


class case:
    """One case: its parameters p, its inputs by role, and where results go."""

    def __init__(self, folder, record):
        self.folder, self.record, self.p = folder, record, record["params"]

    def __getitem__(self, role):
        return np.load(self.folder / self.record["inputs"][role])

    def has(self, role):
        return role in self.record.get("inputs", {})


def operation(*names):
    def register(function):
        for name in names:
            operations[name] = function
        return function

    return register


def f8(a):
    return a.astype(np.float64)


# ---------------------------------------------------------------- SciPy


def ties(coordinates, shape):
    """1 where no coordinate comes within 1e-3 of 0, n - 1 or a half-integer."""
    ok = np.ones(coordinates.shape[1:], bool)
    for k, n in enumerate(shape):
        c = coordinates[k]
        near = lambda v: np.abs(c - v) < 1e-3
        ok &= ~(near(0) | near(n - 1) | (np.abs(c - np.floor(c) - 0.5) < 1e-3))
    return ok.astype(np.uint8)


@operation("scipy.ndimage.affine_transform")
def _(c):
    from scipy import ndimage

    x, p = c["x"], c.p
    matrix, offset = np.array(p["matrix"]), np.array(p["offset"])
    y = ndimage.affine_transform(f8(x), matrix, offset, tuple(p["output_shape"]), order=p["order"], mode=p["mode"],
                                 cval=p["cval"])
    index = np.indices(p["output_shape"]).reshape(3, -1)
    at = (matrix @ index + offset[:, None]).reshape(3, *p["output_shape"])
    return {"y": y, "ok": ties(at, x.shape)}


@operation("scipy.ndimage.map_coordinates")
def _(c):
    from scipy import ndimage

    x, p = c["x"], c.p
    if c.has("disp"):
        displacement = f8(c["disp"])
        at = np.indices(x.shape) + displacement
    else:
        at = f8(c["coords"])
    y = ndimage.map_coordinates(f8(x), at, order=p["order"], mode=p["mode"], cval=p["cval"])
    return {"y": y, "ok": ties(at, x.shape)}


@operation("scipy.ndimage.spline_filter")
def _(c):
    from scipy import ndimage

    return {"y": ndimage.spline_filter(f8(c["x"]), order=c.p["order"], mode=c.p["mode"])}


@operation("scipy.ndimage.zoom")
def _(c):
    from scipy import ndimage

    p = c.p
    return {"y": ndimage.zoom(f8(c["x"]), p["zoom"], order=p["order"], mode=p["mode"], grid_mode=p["grid_mode"])}


@operation("scipy.ndimage.gaussian_filter")
def _(c):
    from scipy import ndimage

    p = {k: v for k, v in c.p.items() if k != "alpha"}
    if c.has("noise"):
        return {"disp": np.float32(c.p["alpha"]
                                   * np.stack([ndimage.gaussian_filter(f8(n), **p) for n in c["noise"]]))}
    return {"y": ndimage.gaussian_filter(f8(c["x"]), **p)}


@operation(*(f"scipy.ndimage.{f}" for f in ("gaussian_gradient_magnitude", "gaussian_laplace", "median_filter",
                                            "uniform_filter", "sobel", "minimum_filter", "maximum_filter")))
def _(c):
    from scipy import ndimage

    return {"y": getattr(ndimage, c.record["op"].split(".")[-1])(f8(c["x"]), **c.p)}


@operation("scipy.ndimage.correlate")
def _(c):
    from scipy import ndimage

    return {"y": ndimage.correlate(f8(c["x"]), f8(c["kernel"]), mode=c.p["mode"])}


def structure(spec):
    from scipy import ndimage
    from skimage import morphology

    if isinstance(spec, str):
        return morphology.ball(int(spec[spec.index("(") + 1 : -1]))
    return ndimage.generate_binary_structure(3, {6: 1, 18: 2, 26: 3}[spec])


@operation("scipy.ndimage.label")
def _(c):
    from scipy import ndimage

    y, n = ndimage.label(c["x"], structure(c.p["connectivity"]))
    sizes = sorted(np.bincount(y.ravel())[1:].tolist(), reverse=True)
    return {"y": y, "expected": {"n": n, "sizes_sorted": sizes}}


@operation("scipy.ndimage.label (6-conn) largest")
def _(c):
    from scipy import ndimage

    y, _ = ndimage.label(c["x"])
    return {"y": y == np.argmax(np.bincount(y.ravel())[1:]) + 1}


@operation(*(f"scipy.ndimage.binary_{f}" for f in ("erosion", "dilation", "opening", "closing")))
def _(c):
    from scipy import ndimage

    how = getattr(ndimage, c.record["op"].split(".")[-1])
    return {"y": how(c["x"], structure(c.p["structure"]))}


@operation("scipy.ndimage.binary_fill_holes")
def _(c):
    from scipy import ndimage

    return {"y": ndimage.binary_fill_holes(c["x"])}


@operation("scipy.ndimage.distance_transform_edt")
def _(c):
    from scipy import ndimage

    return {"y": ndimage.distance_transform_edt(c["x"], sampling=c.p["sampling"])}


@operation("scipy.ndimage.find_objects")
def _(c):
    from scipy import ndimage

    box = ndimage.find_objects((c["x"] != 0).astype(int))[0]
    return {"expected": {"bbox": [[s.start, s.stop] for s in box]}}


# ---------------------------------------------------------------- NumPy, pydicom


@operation("numpy.percentile/mean/std (float64)")
def _(c):
    x, q = f8(c["x"]), c.p["q"]
    methods = ("linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased")
    threshold = c.record["expected"]["masked_threshold"]
    inside = x[x > threshold]
    # fmt: off
    return {"y": (x - x.mean()) / x.std(), "expected": {
        "percentiles": {m: np.percentile(x, q, method=m).tolist() for m in methods},
        "min": x.min(), "max": x.max(), "mean": x.mean(), "std0": x.std(), "std1": x.std(ddof=1), "var0": x.var(),
        "median": np.median(x), "mad": np.median(np.abs(x - np.median(x))), "masked_threshold": threshold,
        "masked_count": int(inside.size), "masked_mean": inside.mean(), "masked_std0": inside.std(),
        "masked_percentiles_linear": np.percentile(inside, q).tolist()}}
    # fmt: on


@operation("numpy.histogram")
def _(c):
    counts, edges = np.histogram(f8(c["x"]), bins=c.p["bins"], range=tuple(c.p["range"]))
    return {"counts": counts, "edges": edges}


@operation("pydicom apply_windowing (DICOM PS3.3 C.11.2.1)")
def _(c):
    from pydicom.dataset import Dataset
    from pydicom.pixel_data_handlers.util import apply_windowing

    p, x = c.p, f8(c["x"])
    # pydicom writes the whole range of the stored bits: 8 bits without a rescale are 0 .. 255
    d = Dataset()
    d.PhotometricInterpretation, d.BitsStored, d.PixelRepresentation = "MONOCHROME2", 8, 0
    d.WindowCenter, d.WindowWidth, d.VOILUTFunction = p["center"], p["width"], p["function"]
    return {"y": apply_windowing(x, d)}


# ---------------------------------------------------------------- scikit-image


@operation("skimage.filters.threshold_*")
def _(c):
    from skimage import filters

    x = f8(c["x"])
    # fmt: off
    return {"expected": {
        "otsu256": filters.threshold_otsu(x, 256), "otsu64": filters.threshold_otsu(x, 64),
        "li": filters.threshold_li(x), "yen": filters.threshold_yen(x), "triangle": filters.threshold_triangle(x),
        "isodata": filters.threshold_isodata(x), "mean": filters.threshold_mean(x),
        "multiotsu3": filters.threshold_multiotsu(x, 3).tolist()}}
    # fmt: on


@operation(*(f"skimage.exposure.adjust_{f}" for f in ("gamma", "log", "sigmoid")))
def _(c):
    from skimage import exposure

    return {"y": getattr(exposure, c.record["op"].split(".")[-1])(f8(c["x"]), **c.p)}


@operation("skimage.exposure.rescale_intensity")
def _(c):
    from skimage import exposure

    x = f8(c["x"])
    limits = tuple(np.percentile(x, c.p["in_range_percentiles"]).tolist())
    c.p["in_range"] = list(limits)
    return {"y": exposure.rescale_intensity(x, limits, tuple(c.p["out_range"]))}


@operation("skimage.transform.resize")
def _(c):
    from skimage import transform

    p = dict(c.p)
    return {"y": transform.resize(f8(c["x"]), p.pop("output_shape"), **p)}


@operation("skimage.transform.rotate")
def _(c):
    from skimage import transform

    return {"y": transform.rotate(f8(c["rgb"]), c.p["angle_deg"], order=c.p["order"], mode=c.p["mode"],
                                  preserve_range=True)}


@operation("skimage.filters.threshold_otsu")
def _(c):
    import cv2
    from skimage import color, filters

    rgb = c["rgb"]
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
    # fmt: off
    return {"expected": {
        "gray_otsu": filters.threshold_otsu(color.rgb2gray(rgb)),
        "saturation_otsu": filters.threshold_otsu(color.rgb2hsv(rgb)[..., 1]),
        "u8_gray_cv2": cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)[0]}}
    # fmt: on


@operation(*(f"skimage.color.{f}" for f in ("rgb2hed", "rgb2lab", "rgb2hsv", "rgb2xyz", "rgb2ycbcr", "rgb2gray")))
def _(c):
    from skimage import color

    return {"y": getattr(color, c.record["op"].split(".")[-1])(c["rgb"])}


@operation("skimage.color.hed2rgb")
def _(c):
    from skimage import color

    return {"y": color.hed2rgb(c["hed"])}


@operation("skimage.color.lab2rgb")
def _(c):
    from skimage import color

    return {"y": color.lab2rgb(f8(c["lab"]))}


@operation("skimage.color.separate_stains")
def _(c):
    from skimage import color

    return {"y": color.separate_stains(c["rgb"], np.array(c.p["matrix"]))}


@operation("skimage hed2rgb(rgb2hed(rgb)*alpha+beta)")
def _(c):
    from skimage import color

    return {"y": color.hed2rgb(color.rgb2hed(c["rgb"]) * np.array(c.p["alpha"]) + np.array(c.p["beta"]))}


@operation("skimage.measure.regionprops")
def _(c):
    from skimage import measure

    return {"expected": [{"label": int(r.label), "area": int(r.area), "bbox": list(r.bbox),
                          "centroid": list(r.centroid)} for r in measure.regionprops(c["x"])]}


# ---------------------------------------------------------------- OpenCV


@operation("cv2.resize (float32 input)")
def _(c):
    import cv2

    height, width = c.p["out_hw"]
    return {"y": cv2.resize(c["rgb"].astype(np.float32), (width, height),
                            interpolation=getattr(cv2, "INTER_" + c.p["interpolation"]))}


@operation("cv2.GaussianBlur")
def _(c):
    import cv2

    return {"y": cv2.GaussianBlur(c["rgb"].astype(np.float32), (c.p["ksize"],) * 2, c.p["sigma"],
                                  borderType=getattr(cv2, "BORDER_" + c.p["border"]))}


# ---------------------------------------------------------------- PyTorch, torchvision


@operation(*(f"torchvision.transforms.functional.adjust_{f}" for f in
             ("brightness", "contrast", "saturation", "hue", "gamma", "sharpness")))
def _(c):
    import torch
    import torchvision.transforms.functional as F

    how = getattr(F, c.record["op"].split(".")[-1])
    planes = torch.from_numpy(c["rgb"].transpose(2, 0, 1).copy())
    call = lambda t: how(t, c.p["factor"]).numpy().transpose(1, 2, 0)
    return {"y": call(planes.float() / 255), "y_u8": call(planes)}


@operation("torch.nn.functional.interpolate")
def _(c):
    import torch

    x = torch.from_numpy(c["x"].astype(np.float32))[None, None]
    y = torch.nn.functional.interpolate(x, tuple(c.p["size"]), mode=c.p["mode"], align_corners=c.p["align_corners"])
    return {"y": y[0, 0].numpy()}


def torch_grid(c):
    import torch

    size = c.p["size"]
    theta = torch.tensor(c.p["theta"], dtype=torch.float32)[None]
    return torch.nn.functional.affine_grid(theta, (1, 1, *size), align_corners=c.p["align_corners"])


@operation("torch.nn.functional.affine_grid")
def _(c):
    return {"grid": torch_grid(c)[0].numpy()}


@operation("torch.nn.functional.grid_sample")
def _(c):
    import torch

    x = torch.from_numpy(c["x"].astype(np.float32))
    if "slice_z" in c.p:
        x = x[c.p["slice_z"]]
    y = torch.nn.functional.grid_sample(x[None, None], torch_grid(c), mode=c.p["mode"],
                                        padding_mode=c.p["padding_mode"], align_corners=c.p["align_corners"])
    return {"y": y[0, 0].numpy()}


# ---------------------------------------------------------------- MONAI


def monai_array(y):
    return np.asarray(y)[0]


@operation(*(f"monai.transforms.{f}" for f in
             ("ScaleIntensityRange", "NormalizeIntensity", "ScaleIntensityRangePercentiles", "AdjustContrast",
              "GaussianSmooth", "GaussianSharpen", "GibbsNoise", "KSpaceSpikeNoise", "Zoom", "Rotate")))
def _(c):
    import torch
    import monai.transforms as T

    p = dict(c.p)
    if "loc" in p:
        p["loc"] = tuple(p["loc"])
    x = torch.from_numpy(c["x"].astype(np.float32))[None]
    return {"y": monai_array(getattr(T, c.record["op"].split(".")[-1])(**p)(x))}


@operation("monai.transforms.Affine")
def _(c):
    import torch
    import monai.transforms as T

    y = T.Affine(**c.p, image_only=True)(torch.from_numpy(c["x"].astype(np.float32))[None])
    return {"y": monai_array(y)}


@operation("monai.transforms.RandBiasField._generate_random_field (exp applied)")
def _(c):
    import monai.transforms as T

    field = np.exp(T.RandBiasField()._generate_random_field(tuple(c.p["spatial_shape"]), c.p["degree"],
                                                            tuple(c.p["coeff"])))
    return {"field": field, "y": c["x"] * field}


@operation("monai.data.utils.compute_importance_map")
def _(c):
    from monai.data.utils import compute_importance_map

    return {"y": compute_importance_map(tuple(c.p["patch_size"]), c.p["mode"], c.p["sigma_scale"]).numpy()}


@operation("monai.data.utils.dense_patch_slices")
def _(c):
    from monai.data.utils import dense_patch_slices

    slices = dense_patch_slices(c.p["image_size"], c.p["patch_size"], c.p["scan_interval"])
    return {"expected": [[s.start for s in at] for at in slices]}


@operation("monai.apps.pathology ExtractHEStains / NormalizeHEStains")
def _(c):
    from monai.apps.pathology.transforms.stain.array import ExtractHEStains, NormalizeHEStains

    p = c.p
    stains = ExtractHEStains(tli=p["tli"], alpha=p["alpha"], beta=p["beta"])(c["source"])
    return {"normalized": NormalizeHEStains(tli=p["tli"], alpha=p["alpha"], beta=p["beta"])(c["source"]),
            "expected": {"HE_source": stains.tolist()}}


# ---------------------------------------------------------------- TorchIO


@operation("torchio.BiasField.generate_bias_field")
def _(c):
    import torch
    import torchio

    field = torchio.BiasField.generate_bias_field(torch.zeros(1, *c.p["shape"]), c.p["order"], c.p["coefficients"])
    return {"field": np.asarray(field).reshape(c.p["shape"])}


@operation("torchio.HistogramStandardization")
def _(c):
    import torch
    from torchio.transforms.preprocessing.intensity.histogram_standardization import _normalize

    p = c.p
    x = torch.from_numpy(c["x"])
    y = _normalize(x[None], np.array(p["landmarks"]), mask=(x > 0).numpy()[None], cutoff=tuple(p["cutoff"]))
    return {"y": np.asarray(y)[0]}


# ---------------------------------------------------------------- batchgenerators


@operation("batchgenerators.interpolate_img")
def _(c):
    from batchgenerators.augmentations.utils import interpolate_img

    p, at = c.p, f8(c["coords"])
    is_seg = p.get("is_seg", False)
    x = c["x"] if is_seg else f8(c["x"])
    return {"y": interpolate_img(x, at, p["order"], p["mode"], p["cval"], is_seg), "ok": ties(at, x.shape)}


@operation("batchgenerators: rotate_coords_3d, scale_coords")
def _(c):
    from batchgenerators.augmentations.utils import rotate_coords_3d, scale_coords

    p = c.p
    coords = scale_coords(rotate_coords_3d(f8(c["mesh_elastic"]), p["angle_x"], p["angle_y"], p["angle_z"]),
                          p["scale"])
    return {"coords": coords + np.array(p["center"])[:, None, None, None]}


@operation("batchgenerators.rotate_coords_2d")
def _(c):
    from batchgenerators.augmentations.utils import rotate_coords_2d

    return {"coords": rotate_coords_2d(f8(c["mesh"]), c.p["angle"])}


@operation("batchgenerators.augment_contrast")
def _(c):
    from batchgenerators.augmentations.color_augmentations import augment_contrast

    factor = c.p["factor"]
    return {"y": augment_contrast(c["x"][None].copy(), lambda: factor, c.p["preserve_range"])[0]}


# ---------------------------------------------------------------- nibabel


@operation("nibabel.orientations")
def _(c):
    import nibabel
    from nibabel import orientations as o

    source = o.io_orientation(np.array(c.p["affine"]))
    turn = o.ornt_transform(source, o.axcodes2ornt(c.p["target"]))
    image = nibabel.Nifti1Image(c["x"], np.array(c.p["affine"])).as_reoriented(turn)
    c.p["source"] = "".join(o.aff2axcodes(np.array(c.p["affine"])))
    c.p["new_affine"] = image.affine.tolist()
    return {"y": np.asanyarray(image.dataobj)}


@operation("nibabel.processing.resample_to_output")
def _(c):
    import nibabel
    import nibabel.processing

    p = c.p
    image = nibabel.Nifti1Image(f8(c["x"]), np.array(p["affine"]))
    result = nibabel.processing.resample_to_output(image, p["voxel_sizes"], order=p["order"], mode=p["mode"],
                                                   cval=p["cval"])
    p["new_affine"], p["new_shape"] = result.affine.tolist(), list(result.shape)
    return {"y": result.get_fdata()}


@operation("nibabel.spaces.vox2out_vox")
def _(c):
    from nibabel.spaces import vox2out_vox

    shape, affine = vox2out_vox((tuple(c.p["shape"]), np.array(c.p["affine"])), c.p["voxel_sizes"])
    return {"expected": {"shape": [int(n) for n in shape], "affine": affine.tolist()}}


@operation("nibabel Nifti1Header.set_qform")
def _(c):
    import nibabel

    h = nibabel.Nifti1Header()
    h.set_data_shape((4, 4, 4))
    h.set_qform(np.array(c.p["affine"]), 1)
    return {"expected": {"quatern": [float(h[k]) for k in ("quatern_b", "quatern_c", "quatern_d")],
                         "qoffset": [float(h[k]) for k in ("qoffset_x", "qoffset_y", "qoffset_z")],
                         "pixdim": [float(v) for v in h["pixdim"][:4]], "qform": h.get_qform().tolist()}}


@operation("nibabel + numpy + skimage")
def _(c):
    import nibabel
    from skimage import filters

    image = nibabel.load(data_folder / c.p["file"])
    x = np.asanyarray(image.dataobj)
    # fmt: off
    e = {"shape": list(image.shape), "dtype": str(image.dataobj.dtype), "zooms": [float(z) for z in
         image.header.get_zooms()], "affine": image.affine.tolist(),
         "axcodes": "".join(nibabel.aff2axcodes(image.affine)), "scl_slope": float(image.dataobj.slope),
         "scl_inter": float(image.dataobj.inter), "min": float(x.min()), "max": float(x.max()),
         "mean": float(f8(x).mean()), "std": float(f8(x).std())}
    # fmt: on
    wanted = c.record.get("expected", {})  # of label maps counts, of images percentiles, of masks both
    if "label_counts" in wanted:
        labels, counts = np.unique(x, return_counts=True)
        e["label_counts"] = {str(l): int(n) for l, n in zip(labels, counts)}
    if "percentiles" in wanted:
        q = (0.5, 1, 5, 25, 50, 75, 95, 99, 99.5)
        e["percentiles"] = {f"{k:g}": float(np.percentile(f8(x), k)) for k in q}
        e["otsu256"] = float(filters.threshold_otsu(f8(x), 256))
        positive = f8(x[x > 0])
        e["positive"] = {"count": int(positive.size), "mean": float(positive.mean()), "std": float(positive.std())}
    return {"expected": e}


# ---------------------------------------------------------------- ITK, by way of SimpleITK


def itk_transform(p, c):
    import SimpleITK as sitk

    t = p.get("transform", {"type": "identity"})
    if t["type"] == "identity":
        return sitk.Transform(3, sitk.sitkIdentity)
    if t["type"] == "Euler3DTransform":
        return sitk.Euler3DTransform(t["center"], *t["angles_xyz"], t["translation"])
    if t["type"] == "BSplineTransform":
        spacing, size = np.array(p["spacing"]), np.array(p["size"])
        b = sitk.BSplineTransform(3, t["order"])
        b.SetTransformDomainMeshSize(t["mesh_size"])
        b.SetTransformDomainOrigin(p["origin"])
        b.SetTransformDomainDirection(p["direction"])
        b.SetTransformDomainPhysicalDimensions((spacing * (size - 1)).tolist())
        b.SetParameters(c["coefs"].tolist())
        return b
    a = sitk.AffineTransform(3)
    a.SetMatrix(t["matrix"])
    a.SetCenter(t["center"])
    a.SetTranslation(t["translation"])
    return a


def itk_resampled(c, x):
    import SimpleITK as sitk

    p = c.p
    image = sitk.GetImageFromArray(x)
    image.SetSpacing(p["spacing"])
    image.SetOrigin(p["origin"])
    image.SetDirection(p["direction"])
    how = {"nn": sitk.sitkNearestNeighbor, "linear": sitk.sitkLinear, "bspline": sitk.sitkBSpline,
           "hammingsinc4": sitk.sitkHammingWindowedSinc}[p["interpolator"]]
    transform = itk_transform(p, c)
    y = sitk.Resample(image, p["out_size"], transform, how, p["out_origin"], p["out_spacing"], p["out_direction"],
                      p["default"])
    return image, transform, y


@operation("itk.ResampleImageFilter")
def _(c):
    import SimpleITK as sitk

    _, transform, y = itk_resampled(c, c["x"].astype(np.float32))
    result = {"y": sitk.GetArrayFromImage(y)}
    if "disp" in c.record["outputs"]:
        field = sitk.TransformToDisplacementField(transform, sitk.sitkVectorFloat64, y.GetSize(), y.GetOrigin(),
                                                  y.GetSpacing(), y.GetDirection())
        result["disp"] = sitk.GetArrayFromImage(field)
    return result


@operation("itk.ResampleImageFilter, identity transform, rounded to nearest")
def _(c):
    import SimpleITK as sitk
    import nibabel

    x = np.asanyarray(nibabel.load(data_folder / c.p["file"]).dataobj).transpose(2, 1, 0)
    _, _, y = itk_resampled(c, np.ascontiguousarray(x.astype(np.float32)))
    return {"y": np.rint(sitk.GetArrayFromImage(y))}


# ---------------------------------------------------------------- stains


def torchstain_fit(c, image):
    from torchstain.numpy.normalizers import NumpyMacenkoNormalizer

    n = NumpyMacenkoNormalizer()
    p = c.p
    stains, concentrations, most = n._NumpyMacenkoNormalizer__compute_matrices(image, p["Io"], p["alpha"], p["beta"])
    return n, stains, most


def torchstain_macenko(c, source, target):
    p = c.p
    n, stains, most = torchstain_fit(c, source)
    expected = {"HE_source": stains.tolist(), "maxC_source": most.tolist()}
    if target is not None:
        _, to, to_most = torchstain_fit(c, target)
        expected |= {"HE_target": to.tolist(), "maxC_target": to_most.tolist()}
        n.HERef, n.maxCRef = to, to_most
    density = -np.log((source.reshape(-1, 3).astype(float) + 1) / p["Io"])
    selected = ~np.any(density < p["beta"], axis=1)
    expected["n_selected_source"] = int(selected.sum())
    expected["cov_eigenvalues_source"] = np.linalg.eigvalsh(np.cov(density[selected].T)).tolist()
    normalized, H, E = n.normalize(source, Io=p["Io"], alpha=p["alpha"], beta=p["beta"], stains=True)
    return expected, normalized, H, E


@operation("torchstain.numpy Macenko")
def _(c):
    expected, normalized, H, E = torchstain_macenko(c, c["source"], c["target"])
    return {"expected": expected, "normalized": normalized, "H": H, "E": E}


@operation("torchstain.numpy Macenko, built-in reference")
def _(c):
    return {"normalized": torchstain_macenko(c, c["source"], None)[1]}


@operation("torchstain.numpy Macenko, whole images")
def _(c):
    from PIL import Image

    source, target = (np.array(Image.open(data_folder / c.p[k]).convert("RGB")) for k in ("source", "target"))
    expected, y, _, _ = torchstain_macenko(c, source, target)
    del expected["n_selected_source"], expected["cov_eigenvalues_source"]
    expected["normalized_mean"] = y.reshape(-1, 3).mean(0).tolist()
    expected["normalized_std"] = y.reshape(-1, 3).astype(float).std(0).tolist()
    rows = np.linspace(3, y.shape[0] - 4, 24).astype(int)
    expected["pixels"] = []
    for k, row in enumerate(rows.tolist()):
        x = (11 + 97 * k) % y.shape[1]
        expected["pixels"].append({"y": row, "x": x, "source": source[row, x].tolist(),
                                   "normalized": y[row, x].tolist()})
    return {"expected": expected}


@operation("torchstain.numpy Reinhard")
def _(c):
    from torchstain.numpy.normalizers import NumpyReinhardNormalizer

    n = NumpyReinhardNormalizer(method=c.p["method"])
    n.fit(c["target"])
    return {"normalized": n.normalize(c["source"]),
            "expected": {"target_means": np.ravel(n.target_means).tolist(),
                         "target_stds": np.ravel(n.target_stds).tolist()}}


def tiatoolbox(name):
    """A module of TIAToolbox, without the packages that its stain code has no use for."""
    import importlib
    import types
    from unittest import mock

    for unused in ("numcodecs", "requests", "yaml", "zarr", "filelock", "shapely", "shapely.affinity",
                   "shapely.geometry", "tiatoolbox.annotation", "tiatoolbox.annotation.storage"):
        sys.modules.setdefault(unused, mock.MagicMock())
    if "tiatoolbox.tools" not in sys.modules:
        import tiatoolbox as package

        tools = types.ModuleType("tiatoolbox.tools")
        tools.__path__ = [str(pathlib.Path(package.__file__).parent / "tools")]
        sys.modules["tiatoolbox.tools"] = tools
    return importlib.import_module("tiatoolbox." + name)


@operation("tiatoolbox MacenkoNormalizer", "tiatoolbox ReinhardNormalizer", "tiatoolbox RuifrokNormalizer")
def _(c):
    name = c.record["op"].split()[-1]
    n = getattr(tiatoolbox("tools.stainnorm"), name)()
    expected = {}
    if name == "MacenkoNormalizer":
        n.extractor = tiatoolbox("tools.stainextract").MacenkoExtractor(c.p["luminosity_threshold"],
                                                                        c.p["angular_percentile"])
    n.fit(c["target"])
    normalized = n.transform(c["source"])
    if name != "ReinhardNormalizer":
        expected["maxC_target"] = np.ravel(n.maxC_target).tolist()
    if name == "MacenkoNormalizer":
        for role in ("target", "source"):
            expected[f"stain_matrix_{role}_rows"] = n.extractor.get_stain_matrix(c[role]).tolist()
    return {"normalized": normalized, **({"expected": expected} if expected else {})}


@operation("tiatoolbox VahadaneExtractor (sklearn DictionaryLearning)")
def _(c):
    # Its solver stops after three steps, so that another version of scikit-learn ends elsewhere.
    e = tiatoolbox("tools.stainextract").VahadaneExtractor(c.p["luminosity_threshold"], c.p["regularizer"])
    return {"expected": {f"stain_matrix_{role}_rows": e.get_stain_matrix(c[role]).tolist()
                         for role in ("source", "target")}}


@operation("tiatoolbox get_luminosity_tissue_mask")
def _(c):
    return {"mask": tiatoolbox("utils.misc").get_luminosity_tissue_mask(c["source"].copy(), c.p["threshold"])}


@operation("cucim normalize_colors_pca")
def _(c):
    import importlib.util
    import types

    cupy = types.ModuleType("cupy")
    cupy.__getattr__ = lambda name: getattr(np, name)
    cupy.fuse = lambda *a, **k: (lambda f: f)
    cupy.asnumpy = np.asarray
    sys.modules.setdefault("cupy", cupy)
    # Only this file of cuCIM runs without a GPU: CUCIM_STAIN_NORMALIZER says where it lies.
    spec = importlib.util.spec_from_file_location("stain_normalizer", os.environ["CUCIM_STAIN_NORMALIZER"])
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    p = c.p
    planes = lambda role: np.ascontiguousarray(c[role].transpose(2, 0, 1))
    how = {"source_intensity": p["source_intensity"], "alpha": p["alpha"], "beta": p["beta"]}
    y = m.normalize_colors_pca(planes("source"), ref_stain_coeff=p["ref_stain_coeff"],
                               ref_max_conc=p["ref_max_conc"], **how)
    stains = lambda role: m.stain_extraction_pca(planes(role), **how).tolist()
    return {"normalized": y.transpose(1, 2, 0),
            "expected": {"stain_coeff_source": stains("source"), "stain_coeff_target": stains("target")}}


# ---------------------------------------------------------------- files


@operation("numpy.random.Philox (4x64-10)")
def _(c):
    make = lambda: np.random.Philox(key=int(c.p["key"], 16), counter=int(c.p["counter"], 16))
    count = {k: np.load(c.folder / f).size for k, f in c.record["outputs"].items()}
    return {"raw": make().random_raw(count["raw"]),
            "uniform_double": np.random.Generator(make()).random(count["uniform_double"]),
            "uniform_float": np.random.Generator(make()).random(count["uniform_float"], dtype=np.float32)}


@operation("openslide.read_region")
def _(c):
    import openslide

    p = c.p
    slide = openslide.OpenSlide(str(data_folder / p["slide"]))
    region = slide.read_region((p["x"], p["y"]), p["level"], (p["w"], p["h"]))
    return {"rgb": np.array(region)[..., :3]}


# ---------------------------------------------------------------- running


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def store(file, array, dtype):
    array = np.ascontiguousarray(np.asarray(array).astype(dtype))
    with open(file, "wb") as f:
        np.lib.format.write_array(f, array, version=(1, 0))


def difference(a, b):
    if isinstance(b, dict):
        return max([difference(a[k], v) if k in a else np.inf for k, v in b.items()], default=0)
    if isinstance(b, list):
        return max([difference(x, y) for x, y in zip(a, b)], default=0) if len(a) == len(b) else np.inf
    if isinstance(b, (int, float)) and not isinstance(b, bool):
        return abs(a - b) / max(1e-30, abs(b)) if a != b else 0
    return 0 if a == b else np.inf


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    arguments = [a for a in arguments if a != "--check"]
    folder = here
    if arguments and pathlib.Path(arguments[0]).is_dir() and not (here / arguments[0] / "cases.json").exists():
        folder = pathlib.Path(arguments.pop(0))
    groups = arguments or sorted(p.parent.name for p in folder.glob("*/cases.json"))
    left = {}
    for group in groups:
        path = folder / group / "cases.json"
        document = json.loads(path.read_text())
        for record in document["cases"]:
            how = operations.get(record["op"])
            if how is None:
                left.setdefault(record["op"], []).append(record["name"])
                continue
            try:
                result = how(case(path.parent, record))
            except Exception as error:
                print(f"{group}/{record['name']}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            stored_expected = record.get("expected")
            if "expected" in result:
                e = plain(result["expected"])
                if check:
                    worst = difference(e, stored_expected)
                    if worst > 1e-6:
                        print(f"{group}/{record['name']}: expected values differ by {worst:.2g} of themselves")
                else:
                    record["expected"] = {**stored_expected, **e} if isinstance(stored_expected, dict) else e
            for role, name in record.get("outputs", {}).items():
                if role not in result:
                    print(f"{group}/{record['name']}: no output {role}", file=sys.stderr)
                    continue
                file = path.parent / name
                dtype = np.load(file).dtype
                if not check:
                    store(file, result[role], dtype)
                    continue
                a, b = np.asarray(result[role]).astype(float), np.load(file).astype(float)
                if a.shape != b.shape:
                    print(f"{group}/{record['name']} {role}: shape {a.shape}, stored {b.shape}")
                elif np.abs(a - b).max() > 1e-6 * max(1, np.abs(b).max()):
                    print(f"{group}/{record['name']} {role}: differs by {np.abs(a - b).max():.3g} of "
                          f"{np.abs(b).max():.3g} in {np.count_nonzero(a != b)} of {a.size}")
        if not check:
            path.write_text(json.dumps(document, indent=1) + "\n")
    for op, names in left.items():
        print(f"left alone: {op} ({len(names)})")


if __name__ == "__main__":
    main()
