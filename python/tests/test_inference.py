# SPDX-License-Identifier: Apache-2.0
"""Windows and mirrored views of a volume, and the way back to the scan."""
import numpy as np
import pytest

import suture as st
from test_boxes import Recorded
from test_boxes import volume as volume_of

RNG = np.random.default_rng(11)
# A turn by 20 degrees about z and 10 about x: none of its axes is one of the patient's.
OBLIQUE = np.array([[.66, -.31, .3, 40], [.24, .83, -1.2, -20], [0, .16, 4.8, 7], [0, 0, 0, 1.]])
OBLIQUE[:3, :3] = np.linalg.qr(OBLIQUE[:3, :3])[0] * [-.7, -.9, 5]


def blob(shape, affine, axes="xyz"):
    """A smooth value of a place in millimeters, whatever the order of the axes."""
    index = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), -1).reshape(-1, 3)
    mm = index @ affine[:3, :3].T + affine[:3, 3]
    value = np.sin(mm[:, 0] / 9) + np.cos(mm[:, 1] / 11) + np.sin(mm[:, 2] / 23)
    return st.Volume(value.reshape(shape).astype(np.float32), axes=axes, affine_ras=affine)


def test_mirrors_are_all_ways():
    assert st.mirrors("zyx") == ("", "z", "y", "x", "zy", "zx", "yx", "zyx") and st.mirrors("x") == ("", "x")
    with pytest.raises(st.Error, match="mirrors: axes 'q' are not some of"):
        st.mirrors("q")


def test_a_network_that_changes_nothing_returns_the_volume():
    for shape in ((2, 11, 13, 15), (1, 3, 13, 15)):  # the second is thinner than a window
        volume = RNG.normal(size=shape).astype(np.float32)
        for window in ("constant", "gaussian", "nnunet"):
            seen = []
            made = st.sliding_window(lambda x: seen.append(x.shape) or x, volume, size=dict(z=5, y=8, x=7), step=.5, batch=3,
                                     window=window, views=st.mirrors("zyx"))
            assert made.shape == shape and np.abs(made - volume).max() < 1e-6
            assert {s[1:] for s in seen} == {(shape[0], 5, 8, 7)} and max(s[0] for s in seen) == 3


def test_a_volume_that_is_read_box_by_box_is_read_as_a_whole():
    voxels = RNG.normal(size=(5, 6, 7)).astype(np.float32)
    stored = volume_of(Recorded(voxels))
    assert stored.is_lazy
    made = st.sliding_window(lambda x: 2 * x, stored, size=4)
    assert made.axes == "zyx" and made.spacing == stored.spacing
    assert np.array_equal(made.array, st.sliding_window(lambda x: 2 * x, voxels[None], size=4))  # what other tests hold against MONAI


@pytest.mark.thorough
def test_windows_weigh_as_reassemble_does():
    volume = RNG.normal(size=(1, 9, 10, 11)).astype(np.float32)
    size, noise = (4, 6, 8), RNG.normal(size=1000).astype(np.float32)
    grid = st.sliding_window_grid((9, 10, 11), size, step=.5)
    made, count = [], iter(range(1000))

    def net(x):
        made.extend(one * noise[next(count)] for one in x)
        return np.stack(made[-len(x):])

    for window in ("constant", "gaussian", "nnunet"):
        made.clear()
        out = st.sliding_window(net, volume, size=size, batch=2, window=window)
        assert np.allclose(out, st.reassemble(grid, np.stack(made), window=window), atol=1e-6)


def test_each_view_is_mirrored_and_mirrored_back():
    volume = np.zeros((1, 4, 4, 4), np.float32)
    marks = np.zeros((4, 4, 4), np.float32)
    marks[0, 0, 0] = 8

    def net(x):
        return np.broadcast_to(marks, x.shape)

    out = st.sliding_window(net, volume, size=4, views=st.mirrors("zyx"))[0]
    assert np.array_equal(np.argwhere(out), [(z, y, x) for z in (0, 3) for y in (0, 3) for x in (0, 3)]) and out.max() == 1
    scan = st.Volume(volume[0], axes="xyz", affine_ras=OBLIQUE)
    out = st.sliding_window(net, scan, size=4, views=("z",))
    assert isinstance(out, st.Volume) and out.grid == scan.grid and out.array[0, 0, 0, 3] == 8 and out.array.sum() == 8


@pytest.mark.long
@pytest.mark.parametrize("axes", ["zyx", "xyz"])
def test_augmentation_at_test_time_returns_the_scan(axes):
    """Through orientation, windows, all mirrored views and back: each voxel where it was, of an oblique scan too."""
    shape, affine = ((20, 30, 40), OBLIQUE[:, [2, 1, 0, 3]]) if axes == "zyx" else ((40, 30, 20), OBLIQUE)
    scan = blob(shape, affine, axes)
    size, views = dict(z=8, y=16, x=16), st.mirrors("zyx")
    turned = st.Pipeline(image=[st.orient(x="L", y="P", z="S")]).plan({"image": [scan]})
    seen = st.sliding_window(lambda x: x, turned.run()["image"][0], size=size, batch=4, views=views)
    back = turned.inverse({"image": [seen]})["image"][0]
    assert back.grid == scan.grid and np.abs(back.array[0] - scan.array).max() < 4e-6  # of values up to 3
    # At another spacing the values are those between voxels.
    resampled = st.Pipeline(image=[st.orient(x="L", y="P", z="S"), st.resample(spacing_mm=dict(z=2.5, y=1, x=1)),
                                   st.sampling(interpolation="cubic_bspline", border="edge")]).plan({"image": [scan]})
    seen = st.sliding_window(lambda x: x, resampled.run()["image"][0], size=size, batch=4, views=views)
    back, covered = (v[0] for v in resampled.inverse({"image": [seen]}, coverage=True)["image"])
    inner = covered.array > .999
    assert back.grid == scan.grid and inner.mean() > .7 and np.abs(back.array[0] - scan.array)[inner].max() < .03


@pytest.mark.torch
def test_torch_stays_torch():
    import torch

    volume = torch.randn(1, 3, 9, 10, generator=torch.Generator().manual_seed(1))
    out = st.sliding_window(lambda x: torch.cat([x, 2 * x], 1), volume, size=(4, 5, 6), views=st.mirrors("yx"))
    assert isinstance(out, torch.Tensor) and torch.allclose(out, torch.cat([volume, 2 * volume]), atol=1e-6)
    weight = torch.ones(1, requires_grad=True)
    out = st.sliding_window(lambda x: (x * weight).half(), volume, size=(4, 5, 6))
    assert out.dtype == torch.float32 and not out.requires_grad and torch.allclose(out, volume.half().float(), atol=1e-6)


def as_parameter(torch, tensor):
    return torch.nn.Parameter(tensor, requires_grad=False)


def as_meta_tensor(torch, tensor):
    return pytest.importorskip("monai").data.MetaTensor(tensor)


@pytest.mark.torch
@pytest.mark.parametrize("make", [as_parameter, as_meta_tensor])
@pytest.mark.parametrize("in_volume", [False, True])
def test_a_subclass_of_tensors_stays_torch(make, in_volume):
    torch = pytest.importorskip("torch")
    plain, seen = torch.randn(1, 9, 10, 11, generator=torch.Generator().manual_seed(1)), []
    tensor = make(torch, plain)

    def net(windows):
        seen.append(type(windows))
        return make(torch, 2 * windows)  # a network may make what it wants

    out = st.sliding_window(net, st.Volume(tensor, axes="zyx", spacing=1) if in_volume else tensor, size=5, views=st.mirrors("x"))
    out = out.array if in_volume else out
    assert type(out) is torch.Tensor and set(seen) == {torch.Tensor} and torch.allclose(out, 2 * plain, atol=1e-6)


@pytest.mark.torch
def test_a_subclass_of_tensors_of_unknown_meaning_is_refused():
    torch = pytest.importorskip("torch")
    kind = type("Other", (torch.Tensor,), {})
    with pytest.raises(st.Error, match="^suture: sliding_window: expected torch.Tensor, got its subclass .*Other, which may mean other values"):
        st.sliding_window(lambda x: x, torch.zeros(1, 9, 9, 9).as_subclass(kind), size=5)


@pytest.mark.parametrize("change, sentence", [
    (dict(window="round"), "window 'round' is none of constant, gaussian, nnunet"), (dict(batch=0), "batch 0 is below 1"),
    (dict(views=("q",)), "views: expected the axes along which each view is mirrored, of 'z', 'y' and 'x', got \\('q',\\). Pass mirrors"),
    (dict(views=("zz",)), "views: expected the axes"), (dict(views=(3,)), "views: expected the axes"), (dict(views=()), "views: expected the axes"),
    (dict(views="zyx"), "views: expected a sequence with the axes of each view, got 'zyx'. Pass mirrors\\('zyx'\\)"),
    (dict(views=""), "views: expected a sequence with the axes of each view, got ''. Pass mirrors\\('zyx'\\)"),
    (dict(volume=np.zeros((4, 4, 4), np.float32)), "is not \\(channel, z, y, x\\)"),
    (dict(net=lambda x: x[..., :2]), "the network makes \\(1, 1, 4, 4, 2\\) of \\(1, 1, 4, 4, 4\\)"), (dict(step=2), "step"),
    (dict(size=dict(z=4)), "does not name y, x"),
])
def test_mistakes_get_one_sentence(change, sentence):
    given = dict(net=lambda x: x, volume=np.zeros((1, 9, 9, 9), np.float32), size=4) | change
    with pytest.raises(st.Error, match=sentence) as caught:
        st.sliding_window(given.pop("net"), given.pop("volume"), **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(1, 6, 6, 6), (1, 1, 6, 6)])
def test_a_network_may_write_to_its_input(shape):
    """Every view is mirrored from the volume, not from what the network left of the view before."""
    volume = RNG.normal(size=shape).astype(np.float32)

    def net(x):
        x += 1
        x *= 3
        return x

    size = dict(z=min(4, shape[1]), y=4, x=4)
    out = st.sliding_window(net, volume, size=size, batch=3, views=("", "z", "", "yx"))
    assert np.allclose(out, 3 * (volume + 1), atol=1e-5)


@pytest.mark.torch
def test_a_torch_network_may_write_to_its_input():
    torch = pytest.importorskip("torch")
    volume = torch.randn(1, 6, 6, 6, generator=torch.Generator().manual_seed(2))
    before = volume.clone()
    out = st.sliding_window(lambda x: x.add_(1).mul_(3), volume, size=4, views=st.mirrors("zyx"))
    assert torch.allclose(out, 3 * (before + 1), atol=1e-5) and torch.equal(volume, before)


def test_progress_is_told_window_by_window(capsys):
    volume = RNG.normal(size=(1, 9, 10, 11)).astype(np.float32)
    told = []
    st.sliding_window(lambda x: x, volume, size=5, batch=4, progress=lambda done, every: told.append((done, every)))
    count = len(st.sliding_window_grid((9, 10, 11), (5, 5, 5)))
    assert told == [(min(done, count), count) for done in range(4, count + 4, 4)]
    st.sliding_window(lambda x: x, volume, size=5, progress=True)
    assert capsys.readouterr().err.endswith(f"{count}/{count}\n")


@pytest.mark.torch
def test_the_result_lies_where_it_is_wanted():
    """Windows of the device "meta", which has no values, and a network whose results have them."""
    torch = pytest.importorskip("torch")
    volume = torch.zeros((1, 9, 10, 11), device="meta")
    made = st.sliding_window(lambda x: torch.ones(x.shape), volume, size=5, device="cpu")
    assert made.device.type == "cpu" and torch.equal(made, torch.ones(1, 9, 10, 11))
    with pytest.raises(st.Error, match="device: expected a torch tensor"):
        st.sliding_window(lambda x: x, np.zeros((1, 9, 10, 11), np.float32), size=5, device="cpu")
