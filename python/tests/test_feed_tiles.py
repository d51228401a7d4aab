# SPDX-License-Identifier: Apache-2.0
"""Tiles of slides: one place at several magnifications, each an image that moves as the others."""
import types
from collections.abc import Sequence

import numpy as np
import pytest

import suture as st
import suture.feed
from suture.arrays.volume import Grid
from test_boxes import Recorded

RNG = np.random.default_rng(5)
SLIDES = {name: [RNG.integers(0, 255, (3, 96 // k, 80 // k), dtype=np.uint8) for k in (1, 2)] for name in ("s1", "s2")}


class Level(Recorded):
    axes = "yx"

    @property
    def grid(self):
        return Grid((1, *self.shape[1:]))


class Tiles(Sequence):
    """As the store lists them."""

    mpp = (.5, 1)

    def __init__(self, mpp=(.5, 1)):
        self.mpp = mpp
        self._cases = {name: types.SimpleNamespace(sha256=f"{k:064x}", fingerprint={"stains": name}) for k, name in enumerate(SLIDES)}
        self._tiles = [types.SimpleNamespace(id=f"{name}@{y},{x}", case=name, place=(y, x)) for name in SLIDES for y in (0, 24) for x in (8, 40)]

    def __getitem__(self, i):
        return self._tiles[i]

    def __len__(self):
        return len(self._tiles)

    def labels(self, tile):
        raise st.Error(f"suture: store: case {tile.case!r}: expected a label map, got none")

    def arrays(self, tile):
        return [Level(np.ascontiguousarray(pixels(tile.case, k, tile.place))) for k, _ in enumerate(self.mpp)]


def pixels(name, k, place):
    y, x = (v // (k + 1) for v in place)
    return SLIDES[name][k][:, y:y + 16, x:x + 16]


def feed_of(tiles, pipeline, **settings):
    return st.feed.Feed(tiles, pipeline, **{"batch": 3, "seed": 9, "device": "numpy", "bar": False, **settings})


def test_magnifications_are_images_of_one_place():
    pipeline = st.Pipeline(layout="NHWC", rgb=[st.random_flip(), st.cast("uint8")])
    places = {tile.id: tile for tile in Tiles()}
    seen = []
    with feed_of(Tiles(), pipeline) as feed:
        for batch in feed:
            assert batch["rgb_0.5"].shape[1:] == batch["rgb_1"].shape[1:] == (16, 16, 3) and batch["rgb_1"].flags.c_contiguous
            for name, fine, coarse in zip(batch["id"], batch["rgb_0.5"], batch["rgb_1"]):
                tile = places[name]
                one, other = (np.moveaxis(pixels(tile.case, k, tile.place), 0, -1) for k in (0, 1))
                ways = [(slice(None, None, a), slice(None, None, b)) for a in (1, -1) for b in (1, -1)]
                way, = [w for w in ways if np.array_equal(fine, one[w])]
                assert np.array_equal(coarse, other[way])
                seen.append((name, way))
    assert sorted(name for name, _ in seen) == sorted(places) and len({str(way) for _, way in seen}) > 1


def test_one_magnification_keeps_its_key_and_the_slide_has_the_fits():
    told = []

    def extra(name, case):
        told.append((name, case.slide.fingerprint["stains"], case.tile.id))
        return {"from": (0, 1, 2)}

    pipeline = st.Pipeline(layout="NHWC", rgb=[st.crop_at(size=8, starts=st.per_sample("from")), st.cast("uint8")])
    with feed_of(Tiles((.5,)), pipeline, training=False, extra=extra, batch=8) as feed:
        batch, = feed
    for name, image in zip(batch["id"], batch["rgb"]):
        tile = next(t for t in Tiles() if t.id == name)
        assert np.array_equal(image, np.moveaxis(pixels(tile.case, 0, tile.place), 0, -1)[1:9, 2:10])
    assert set(told) == {(t.id, t.case, t.id) for t in Tiles()}


def test_the_hash_is_of_slides_and_places():
    pipeline = st.Pipeline(rgb=[st.random_flip()])
    states = []
    for change in (lambda t: None, lambda t: None, lambda t: t._tiles.pop(), lambda t: setattr(t._cases["s1"], "sha256", "f" * 64)):
        tiles = Tiles()
        change(tiles)
        states.append(feed_of(tiles, pipeline).state_dict()["cohort"])
    assert states[0] == states[1] and len(set(states)) == 3


def test_what_tiles_do_not_have_is_told():
    with feed_of(Tiles((.5,)), st.Pipeline(rgb=[st.random_flip()], seg=st.labels())) as feed, pytest.raises(st.Error, match="expected a label map, got none"):
        list(feed)
    with feed_of(Tiles((.5,)), st.Pipeline(rgb=[st.random_flip()]), keys={"rgb": "other"}) as feed, pytest.raises(st.Error, match="other: expected one of the images"):
        list(feed)
    with pytest.raises(st.Error, match="one image, or of one for each of 3 magnifications, got 2"):
        feed_of(Tiles((.5, 1, 2)), st.Pipeline(a=[st.random_flip()], b=[st.random_flip()]))
