# SPDX-License-Identifier: Apache-2.0
"""Where voxels lie: an oblique, anisotropic phantom beside nibabel, SimpleITK and MONAI, as (z, y, x) and as (x, y, z)."""
import itertools

import numpy as np
import pytest

import suture as st
from test_inference import OBLIQUE, blob

SHAPE = (40, 30, 20)  # x, y, z; 0.7 x 0.9 x 5 mm
PLACED = st.Pipeline(image=[st.orient(x="L", y="P", z="S"), st.resample(spacing_mm=dict(z=2.5, y=1, x=1), map="origin_preserving"),
                            st.sampling(border="edge")])


def both():
    xyz = blob(SHAPE, OBLIQUE)
    return xyz, st.Volume(np.ascontiguousarray(xyz.array.T), axes="zyx", affine_ras=OBLIQUE[:, [2, 1, 0, 3]])


@pytest.mark.thorough
def test_one_place_whatever_the_order_of_the_axes():
    xyz, zyx = both()
    assert xyz.grid == zyx.grid and xyz.spacing == pytest.approx(dict(z=5, y=.9, x=.7))
    a, b = (PLACED({"image": [v]})["image"][0] for v in (xyz, zyx))
    assert a.grid == b.grid and np.array_equal(a.array, b.array.transpose(2, 1, 0))
    # Of every voxel the value that a smooth function has at its place.
    inner = (slice(3, -3),) * 3
    assert np.abs(a.array - blob(a.array.shape, a.affine_ras).array)[inner].max() < .02


def test_affines_are_those_of_nibabel():
    nibabel = pytest.importorskip("nibabel")
    xyz, _ = both()
    image = nibabel.Nifti1Image(xyz.array, OBLIQUE)
    read = st.Volume.from_nibabel(nibabel.Nifti1Image.from_bytes(image.to_bytes()))
    assert np.allclose(read.affine_ras, OBLIQUE, atol=1e-5) and np.array_equal(read.array, xyz.array)
    for code in itertools.islice(orientations(), 0, None, 7):
        turned = st.Pipeline(image=[st.orient(**dict(zip("xyz", code)))]).plan({"image": [read]})
        assert "".join(nibabel.aff2axcodes(turned.grids[0].affine_ras("xyz"))) == "".join(code)
    spaced = nibabel.as_closest_canonical(image)
    ours = st.Pipeline(image=[st.orient(x="R", y="A", z="S")])({"image": [read]})["image"][0]
    assert np.array_equal(ours.array, np.asarray(spaced.dataobj)) and np.allclose(ours.affine_ras, spaced.affine, atol=1e-5)


def orientations():
    for order in itertools.permutations(range(3)):
        for letters in itertools.product("RL", "AP", "SI"):
            yield "".join(letters[k] for k in order)


def test_values_and_places_are_those_of_simpleitk():
    sitk = pytest.importorskip("SimpleITK")
    xyz, zyx = both()
    image = sitk.GetImageFromArray(zyx.array)
    lps = np.diag([-1, -1, 1]) @ OBLIQUE[:3, :3]
    image.SetSpacing((.7, .9, 5.0))
    image.SetDirection((lps / [.7, .9, 5]).ravel().tolist())
    image.SetOrigin((np.diag([-1, -1, 1]) @ OBLIQUE[:3, 3]).tolist())
    read = st.Volume.from_itk(image)
    assert np.allclose(read.affine_ras, zyx.affine_ras, atol=1e-9) and np.array_equal(read.array, zyx.array)
    ours = PLACED({"image": [read]})["image"][0]
    grid = ours.grid
    theirs = sitk.Resample(image, [int(n) for n in grid.extents[::-1]], sitk.Transform(), sitk.sitkLinear, list(grid.origin[::-1]),
                           list(grid.spacing[::-1]), np.array(grid.direction).reshape(3, 3)[::-1, ::-1].ravel().tolist(), -9.0)
    values = sitk.GetArrayFromImage(theirs)
    seen = values > -8  # the rim of ITK is half a voxel narrower
    assert seen.mean() > .8 and np.abs(values - ours.array)[seen].max() < 2e-5


@pytest.mark.monai
def test_values_and_places_are_those_of_monai():
    import monai
    import torch

    xyz, zyx = both()
    image = monai.data.MetaTensor(torch.from_numpy(xyz.array[None]), affine=torch.from_numpy(OBLIQUE))
    placed = monai.transforms.Compose([
        monai.transforms.Orientation(axcodes="LPS", labels=(("L", "R"), ("P", "A"), ("I", "S"))),
        monai.transforms.Spacing(pixdim=(1, 1, 2.5), mode="bilinear", padding_mode="border")])(image)
    for volume in (xyz, zyx):
        ours = PLACED({"image": [volume]})["image"][0]
        array = ours.array if volume.axes == "xyz" else ours.array.T
        assert placed.shape[1:] == array.shape and np.allclose(placed.affine, ours.grid.affine_ras("xyz"), atol=1e-4)
        assert np.abs(placed.numpy()[0] - array).max() < 1e-4


@pytest.mark.parametrize("axes", ["yx", "xy"])
def test_a_scan_that_is_called_a_plane_is_refused(axes):
    """A plane with more channels than RGBA has to name them: a scan of 40 planes looks the same."""
    scan = np.zeros((40, 64, 64), np.int16)
    with pytest.raises(st.Error, match=f"^suture: Volume: axes: expected a plane of at most 4 channels for '{axes}', got shape "
                                       rf"\(40, 64, 64\)\. Say \"zyx\" or \"xyz\" if it is a scan, \"c{axes}\" if it has 40 channels$"):
        st.Volume(scan, axes=axes)
    for made, extents in ((st.Volume(scan, axes="c" + axes), (1, 64, 64)), (st.Volume(scan[:4], axes=axes), (1, 64, 64)),
                          (st.Volume(scan, axes="zyx"), (40, 64, 64))):
        assert made.grid.extents == extents and made.axes in (axes, "zyx")


def test_channels_may_be_named():
    """Then they have to be there, and their number is not doubted."""
    image = np.zeros((40, 20, 21, 3), np.int16)
    with pytest.raises(st.Error, match="seems to have its channels last"):
        st.Volume(image, axes="zyx")
    named, same = st.Volume(image, axes="czyx"), st.Volume(image[:3], axes="zyx")
    assert named.axes == same.axes == "zyx" and named.grid == same.grid
    with pytest.raises(st.Error, match=r"an array of shape \(40, 20, 21\) has not the axes 'zyx', with channels before them"):
        st.Volume(image[..., 0], axes="czyx")
    out = st.Pipeline(image=[st.brightness(offset=1)])({"image": [st.Volume(image[:, :, :, 0], axes="cyx", spacing=1)], "id": ["a"]}, seed=1)
    assert out["image"][0].array.shape[0] == 40
