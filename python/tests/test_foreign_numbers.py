# SPDX-License-Identifier: Apache-2.0
"""Numbers that come as arrays of other libraries: what is read is what they mean, or one sentence."""
import numpy as np
import pytest

import suture as st
from suture.functions.axes import whole_numbers
from suture.pipeline.geometry import _rows


class Two:
    size = 2


ROWS = np.arange(6.0).reshape(2, 3)


def test_masked_points_are_refused():
    masked = np.ma.array(ROWS, mask=ROWS > 4)
    with pytest.raises(st.Error, match="points: expected an array without a mask, got a masked array with 1 masked values"):
        _rows(Two, [ROWS, masked], "suture: points", 3)
    assert np.array_equal(_rows(Two, [ROWS, ROWS.tolist()], "suture: points", 3)[0], np.concatenate([ROWS, ROWS]))


@pytest.mark.torch
def test_points_that_torch_negates_lazily_are_refused():
    torch = pytest.importorskip("torch")
    lazy = torch.imag(torch.conj(torch.complex(torch.zeros(2, 3, dtype=torch.float64), torch.as_tensor(ROWS))))
    assert lazy.is_neg()
    with pytest.raises(st.Error, match="torch negates when it is read"):
        _rows(Two, [ROWS, lazy], "suture: points", 3)


def test_numbers_are_not_cut():
    assert whole_numbers([1, 2.0, np.uint8(3)], "x", np.int32).tolist() == [1, 2, 3]
    for wrong in ([1.5], [1 << 31], ["1"], [True]):
        with pytest.raises(st.Error, match="suture: labeled: labels"):
            whole_numbers(wrong, "suture: labeled: labels", np.int32)


def test_starts_of_a_batch_are_whole_numbers():
    crop = st.Pipeline(image=[st.crop_at(starts=st.per_sample("at"), size=2)])
    with pytest.raises(st.Error, match="starts: 1.5 is not a whole number"):
        crop.plan({"image": np.zeros((1, 1, 4, 4, 4), np.float32), "at": [(0, 1.5, 0)]})


@pytest.mark.parametrize("value", [.25, 256, True])
def test_tissue_is_what_is_not_0(value):
    slide = st.SlideLayout((st.SlideLevel(512, 512),), .5)
    mask = np.full((8, 8), value)
    assert len(st.grid_tiles(slide, mask, size=256, mpp=.5)) == len(st.grid_tiles(slide, np.ones((8, 8), np.uint8), size=256, mpp=.5)) == 4
