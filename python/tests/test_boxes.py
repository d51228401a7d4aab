# SPDX-License-Identifier: Apache-2.0
"""Voxels that are read box by box give the bits of whole arrays, and nothing outside of the boxes is looked at."""
import gc
import random

import numpy as np
import pytest

import suture as st
from suture.arrays.batch import Items
from suture.pipeline import class_index
from suture.pipeline.class_index import Classes, ClassIndexHandle, indexes_of

SPACING = dict(z=2.5, y=.8, x=.9)
RNG = np.random.default_rng(11)


class Recorded:
    """A Source that keeps what was read, and hands out memory of which the rest is poison."""

    def __init__(self, array, index=None):
        self.array, self.shape, self.dtype, self.class_index = array, array.shape, array.dtype.name, index
        self.reads = []

    def read(self, low, high, out):
        assert all(0 <= a < b <= n for a, b, n in zip(low, high, self.shape[-len(low):]))
        box = self.array[(..., *(slice(a, b) for a, b in zip(low, high)))]
        assert out.shape == box.shape and out.dtype == self.array.dtype
        out[...] = box
        self.reads.append((tuple(low), tuple(high)))


def volume(array, axes="zyx"):
    return st.Volume(array, axes=axes, spacing={k: v for k, v in SPACING.items() if k in axes})


def turned(zyx, axes):
    """An array (..., z, y, x) with the axes of another order."""
    return np.ascontiguousarray(zyx.swapaxes(-1, -3)) if axes == "xyz" else zyx


SCANS = [RNG.integers(-200, 300, n, dtype=np.int16) for n in ((40, 52, 47), (38, 44, 60), (45, 41, 43))]
MAPS = [((s > 150).astype(np.uint8) + (s > 250)).astype(np.uint8) for s in SCANS]


def batch_of(make, scans=SCANS, maps=MAPS, axes="zyx"):
    return {"image": [volume(make(turned(a, axes)), axes) for a in scans],
            "seg": [volume(make(turned(a, axes)), axes) for a in maps], "id": [f"case {i}" for i in range(len(scans))]}


def random_chain(seed):
    """Geometry, a way of sampling, and values on both sides of it."""
    rng = random.Random(seed)
    ops = [st.window(center=40, width=400)]
    pool = [st.random_affine(rotate_deg=25, scale=(.7, 1.3), shear=.1), st.random_flip(probability=.7), st.random_rot90(),
            st.resample(spacing_mm=1.1), st.orient(x="R", y="A", z="I")]
    ops += rng.sample(pool, rng.randint(1, 3))
    if rng.random() < .5:
        ops.append(st.random_elastic(control_spacing_mm=16, max_displacement_mm=4))
    ops.append(st.random_crop(size=16) if rng.random() < .7 else st.crop_or_pad(size=20))
    ops.append(st.sampling(interpolation=rng.choice(["linear", "nearest", "catmull_rom", "torch_cubic"]),
                           border=rng.choice(["constant", "edge", "reflect", "mirror", "wrap"])))
    return [*ops, st.gaussian_noise(sigma=.05)]


def same(a, b):
    for key in ("image", "seg"):
        lists = [[np.asarray(each) for level in (out[key] if isinstance(out[key], list) else [out[key]]) for each in level] for out in (a, b)]
        for one, other in zip(*lists):
            assert one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)


def check(pipeline, batch, lazy, **settings):
    """Whole arrays, boxes that a run reads, and boxes that are handed over: one result."""
    whole = pipeline.plan(batch, **settings)
    expected = whole.run()
    plan = pipeline.plan(lazy, **settings)
    assert not any(v.array.reads for key in ("image", "seg") for v in lazy[key]), "a plan reads nothing"
    same(expected, plan.run())
    boxes = plan.source_boxes()
    assert boxes == plan.source_boxes("seg") == whole.source_boxes()
    order = lazy["image"][0].axes
    for key in ("image", "seg"):
        for v, (low, high) in zip(lazy[key], boxes):
            permuted = [tuple(dict(zip("zyx", each))[k] for k in order) for each in (low, high)]
            assert v.array.reads == [tuple(permuted)]
    handed = {key: plan.read_boxes(key) for key in ("image", "seg")}
    same(expected, plan.run(boxes=handed))
    same(expected, whole.run(boxes=handed))
    return plan, boxes


CHAINS = [pytest.param(seed, marks=[] if seed < 3 else [pytest.mark.long]) for seed in range(8)]


@pytest.mark.parametrize("seed", CHAINS)
def test_random_chains(seed):
    pipeline = st.Pipeline(image=random_chain(seed), seg=st.labels())
    smaller = 0
    for epoch in range(6):
        for training in (True, False):
            for axes in ("zyx", "xyz"):
                settings = dict(seed=seed, epoch=epoch, training=training)
                plan, boxes = check(pipeline, batch_of(lambda a: a, axes=axes), batch_of(Recorded, axes=axes), **settings)
                smaller += sum(np.prod(np.subtract(high, low)) < scan.size for scan, (low, high) in zip(SCANS, boxes))
    assert smaller > 0


CROP = st.Pipeline(image=[st.window(center=40, width=400), st.random_affine(rotate_deg=20), st.random_crop(size=12)], seg=st.labels())


def test_channels_and_two_dimensions():
    images = [np.stack([s, s[::-1]]) for s in SCANS]
    maps = [m[None] for m in MAPS]
    check(CROP, batch_of(lambda a: a, images, maps), batch_of(Recorded, images, maps), seed=4, epoch=0)
    flat = [s[9] for s in SCANS], [m[9] for m in MAPS]
    made = [{"image": [volume(make(a), "yx") for a in flat[0]], "seg": [volume(make(a), "yx") for a in flat[1]], "id": [1, 2, 3]}
            for make in (lambda a: a, Recorded)]
    check(CROP, *made, seed=4, epoch=0)


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "int32"])
def test_labels_of_other_types_are_converted_box_by_box(dtype):
    maps = [m.astype(dtype) for m in MAPS]
    pipeline = st.Pipeline(image=CROP.images["image"], seg=st.labels(dtype="int64"))
    check(pipeline, batch_of(lambda a: a, maps=maps), batch_of(Recorded, maps=maps), seed=5, epoch=0)


def cut(maps, boxes):
    return [m[tuple(slice(a, b) for a, b in zip(*box))] for m, box in zip(maps, boxes)]


@pytest.mark.parametrize("dtype", ["int64", "float64", "float32"])
def test_boxes_have_the_type_of_the_labels(dtype):
    expected = CROP.plan(batch_of(lambda a: a), seed=5, epoch=0).run()
    for make in (lambda a: a, Recorded):
        plan = CROP.plan(batch_of(make, maps=[m.astype(dtype) for m in MAPS]), seed=5, epoch=0)
        for read in (dtype, "int32"):
            boxes = cut([m.astype(read) for m in MAPS], plan.source_boxes())
            out = plan.run(boxes={"image": cut(SCANS, plan.source_boxes()), "seg": boxes})
            assert out["seg"].dtype == np.int32 and np.array_equal(out["seg"], expected["seg"])
            with_first = [(box, low) for box, (low, _) in zip(boxes, plan.source_boxes())]
            assert np.array_equal(plan.run(boxes={"image": cut(SCANS, plan.source_boxes()), "seg": with_first})["seg"], expected["seg"])


def test_boxes_of_labels_that_int32_does_not_hold_are_refused():
    plan = CROP.plan(batch_of(lambda a: a, maps=[m.astype(np.int64) for m in MAPS]), seed=5, epoch=0)
    boxes = cut([m.astype(np.int64) for m in MAPS], plan.source_boxes())
    boxes[1][-1, -1, -1] = 1 << 31
    with pytest.raises(st.Error, match="^suture: seg: sample 1: labels: expected whole numbers of 32 bits, got 2147483648. Renumber them, or pass a soft map as an image$"):
        plan.run(boxes={"seg": boxes})
    plan = CROP.plan(batch_of(lambda a: a), seed=5, epoch=0)
    with pytest.raises(st.Error, match="seg: sample 0: box: expected uint8, got int64"):
        plan.run(boxes={"seg": cut([m.astype(np.int64) for m in MAPS], plan.source_boxes())})


def test_a_label_that_is_no_whole_number_is_told_of_where_it_is_read():
    maps = [m.astype(np.float32) + np.float32(.5) for m in MAPS]
    plan = CROP.plan(batch_of(Recorded, maps=maps), seed=5, epoch=0)
    with pytest.raises(st.Error, match="suture: seg: sample 0: labels: expected whole numbers of 32 bits, got .*. Renumber them, or pass a soft map as an image"):
        plan.run()


def test_levels_of_deep_supervision():
    pipeline = st.Pipeline(image=CROP.images["image"], seg=st.labels(levels=[(.5, .5, .5), (.25, .5, .25)]))
    check(pipeline, batch_of(lambda a: a), batch_of(Recorded), seed=6, epoch=0)


def test_cubic_bspline_says_why_it_reads_all():
    pipeline = st.Pipeline(image=[st.random_crop(size=12), st.sampling(interpolation="cubic_bspline")], seg=st.labels())
    plan, boxes = check(pipeline, batch_of(lambda a: a), batch_of(Recorded), seed=6, epoch=0)
    assert plan.needs_whole_source() == plan.needs_whole_source("seg") == "cubic_bspline computes its coefficients from all voxels"
    assert boxes == [((0, 0, 0), s.shape) for s in SCANS]
    assert CROP.plan(batch_of(Recorded), seed=6, epoch=0).needs_whole_source("seg") == ""


def test_two_images_and_mixed_memory():
    pipeline = st.Pipeline(ct=CROP.images["image"], pet=[st.random_affine(rotate_deg=20), st.random_crop(size=12)], seg=st.labels())
    whole = {"ct": [volume(s) for s in SCANS], "pet": [volume(s[:, :, ::-1]) for s in SCANS], "seg": [volume(m) for m in MAPS], "id": [1, 2, 3]}
    expected = pipeline(whole, seed=3, epoch=0)
    mixed = {**whole, "pet": [volume(Recorded(v.array)) for v in whole["pet"]],
             "seg": [volume(Recorded(MAPS[0])), *whole["seg"][1:]]}
    out = pipeline(mixed, seed=3, epoch=0)
    assert all(np.array_equal(out[k], expected[k]) for k in ("ct", "pet", "seg"))


# What is refused

def test_boxes_that_are_wrong_are_refused():
    batch = batch_of(Recorded)
    plan = CROP.plan(batch, seed=1, epoch=0)
    boxes = {key: plan.read_boxes(key) for key in ("image", "seg")}
    low, high = plan.source_boxes()[1]
    for axis in range(3):
        for side in (0, 1):
            begin = [a + (side == 0 and k == axis) for k, a in enumerate(low)]
            cut = boxes["image"][1][tuple(slice(1, None) if side == 0 and k == axis else slice(None, -1) if k == axis else slice(None)
                                          for k in range(3))]
            image = [boxes["image"][0], (cut, tuple(begin)), boxes["image"][2]]
            with pytest.raises(st.Error, match=r"suture: image: .*input: box: expected to hold .* voxels from .*, got"):
                plan.run(boxes={**boxes, "image": image})
    seg = [boxes["seg"][0], boxes["seg"][1][:-1], boxes["seg"][2]]
    with pytest.raises(st.Error, match="box: expected to hold"):
        plan.run(boxes={**boxes, "seg": seg})
    for place in ((-1, 0, 0), (0, 0, 1 << 40), (1 << 62, 0, 0)):
        with pytest.raises(st.Error, match="box: expected voxels within the extents"):
            plan.run(boxes={**boxes, "image": [(boxes["image"][0], place), *boxes["image"][1:]]})
    larger = [(v.array.array, (0, 0, 0)) for v in batch["image"]]
    same(plan.run(), plan.run(boxes={**boxes, "image": larger}))


def test_what_is_no_box_is_refused():
    plan = CROP.plan(batch_of(Recorded), seed=1, epoch=0)
    image = plan.read_boxes("image")
    for boxes, words in (([image], "boxes: expected a dict"), ({"mask": image}, "expected keys among image, seg, got 'mask'. Name an image or a label map"),
                         ({"image": image[:2]}, "expected 3 of image, got 2"),
                         ({"image": [a.astype(np.float32) for a in image]}, "expected int16, got float32"),
                         ({"image": [a[None] for a in image]}, "expected the axes 'zyx', got shape")):
        with pytest.raises(st.Error, match=words):
            plan.run(boxes=boxes)
    with pytest.raises(st.Error, match="plan: key: expected one of image, seg"):
        plan.source_boxes("mask")


def test_functions_say_that_voxels_are_needed():
    lazy = volume(Recorded(SCANS[0]))
    assert lazy.is_lazy and np.array_equal(np.asarray(lazy), SCANS[0]) and not volume(SCANS[0]).is_lazy
    with pytest.raises(st.Error, match="expected voxels in memory, got a Volume that is read box by box"):
        st.body_mask([lazy])


def test_a_source_that_fails_is_heard():
    class Broken(Recorded):
        def read(self, low, high, out):
            raise st.Error("suture: store: case_3: image: chunk 4/1/2: expected 4096 bytes, got 17")

    with pytest.raises(st.Error, match="case_3: image: chunk 4/1/2"):
        CROP.plan(batch_of(Broken), seed=1, epoch=0).run()


# crop_by_class, which draws from the labels of the whole map

RULES = {"ratios": dict(ratios=[1, 1, 3]), "foreground": dict(positive=2, negative=1), "oversample": dict(oversample=.5, classes=3)}
CONVERSIONS = {"none": None, "remap": st.remap(table={1: 2, 2: 1}, others=0), "regions": st.regions(sets=[[1, 2], [2]])}


@pytest.mark.parametrize(("rule", "conversion"), [(r, c) for r in RULES for c in CONVERSIONS if c != "regions" or r == "foreground"])
@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_an_index_of_runs_is_that_of_the_map(rule, conversion, dtype):
    """The very index, so the same draws whatever is drawn: also of blobs, single voxels, and one label alone."""
    cases = [*MAPS, np.zeros((3, 4, 5), np.uint8), np.full((2, 2, 2), 2, np.uint8), np.arange(24, dtype=np.uint8).reshape(2, 3, 4) % 4]
    blob = np.zeros((20, 20, 20), np.uint8)
    blob[4:14, 5:16, :] = 1
    cases.append(blob)
    op = st.crop_by_class(size=4, labels="seg", **RULES[rule])
    classes = class_index.classes_of(op, CONVERSIONS[conversion])
    assert isinstance(classes, Classes)
    for axes in ("zyx", "xyz"):
        for map_ in cases:
            plain = [volume(turned(map_, axes), axes)]
            made = indexes_of(Items(plain, "seg", None, None), classes)
            index = st.ClassIndex.of(turned(map_.astype(dtype), axes), axes=axes)
            stored = volume(Recorded(turned(map_, axes), index.to_bytes()), axes)
            drawn = indexes_of(Items([stored], "seg", None, None, True), classes)
            assert all(isinstance(each, ClassIndexHandle) for each in (*made, *drawn)) and not stored.array.reads
            assert voxels_of(made[0], classes.count, map_.shape) == voxels_of(drawn[0], classes.count, map_.shape)
            assert index.counts() == dict(zip(*(a.tolist() for a in np.unique(map_, return_counts=True))))


def voxels_of(index, classes, extents):
    """What the chain draws from an index: places and classes of many samples."""
    count = 24
    op = st.crop_by_class(size=1, labels="seg", **({"ratios": [1] * classes}))
    pipeline = st.Pipeline(image=[op], seg=st.labels())
    batch = {"image": [volume(np.zeros(extents, np.int16))] * count, "seg": [volume(np.zeros(extents, np.uint8))] * count,
             "id": list(range(count))}
    before = class_index.indexes_of
    from suture.pipeline import plan as module

    module.indexes_of = lambda items, classes, threads: [index] * count
    try:
        return pipeline.plan(batch, seed=1, epoch=0).drawn()
    finally:
        module.indexes_of = before


def test_crops_by_class_are_the_same_from_boxes():
    chain = [st.random_affine(rotate_deg=10), st.crop_by_class(size=8, labels="seg", ratios=[1, 1, 3]), st.window(center=40, width=400)]
    pipeline = st.Pipeline(image=chain, seg=st.labels(convert=st.remap(table={2: 1, 1: 2})))
    plain = batch_of(lambda a: a)
    indexed = batch_of(Recorded)
    for v in indexed["seg"]:
        v.array.class_index = st.ClassIndex.of(v.array.array).to_bytes()
    for epoch in range(4):
        for v in (*indexed["image"], *indexed["seg"]):
            v.array.reads.clear()
        check(pipeline, plain, indexed, seed=2, epoch=epoch)


def test_a_map_without_an_index_is_read_once_as_a_whole():
    pipeline = st.Pipeline(image=[st.crop_by_class(size=8, labels="seg", ratios=[1, 1, 3])], seg=st.labels())
    expected = pipeline(batch_of(lambda a: a), seed=2, epoch=0)
    lazy = batch_of(Recorded)
    for _ in range(3):
        same(expected, pipeline.plan(lazy, seed=2, epoch=0).run())
    for v in lazy["seg"]:
        assert v.array.reads.count(((0, 0, 0), v.array.shape)) == 1 and len(v.array.reads) == 4
    before = len(class_index._read)
    del lazy, v
    gc.collect()
    assert len(class_index._read) == before - 3


def test_slabs_join(monkeypatch):
    whole = st.ClassIndex.of(MAPS[0]).to_bytes()
    monkeypatch.setattr(class_index, "_SLAB", 1)
    assert st.ClassIndex.of(MAPS[0]).to_bytes() == whole == st.ClassIndex.from_bytes(whole).to_bytes()


def test_bytes_that_are_no_index_are_refused():
    stored = st.ClassIndex.of(MAPS[0][:3, :4, :5]).to_bytes()
    refused = 0
    for at in range(len(stored)):
        for change in (1, 0x80):
            bad = bytearray(stored)
            bad[at] ^= change
            try:
                made = st.ClassIndex.from_bytes(bytes(bad))
            except st.Error as problem:
                assert str(problem).startswith("suture: crop_by_class: class index: ")
                refused += 1
            else:  # another label, length or place that makes an index too
                assert made.counts() != st.ClassIndex.from_bytes(stored).counts() or made != st.ClassIndex.from_bytes(stored)
    assert refused > len(stored)
    for bad in (b"", stored[:-1], stored + b"\0", stored[:40]):
        with pytest.raises(st.Error, match="class index: expected"):
            st.ClassIndex.from_bytes(bad)
    other = volume(Recorded(MAPS[0], stored))
    pipeline = st.Pipeline(image=[st.crop_by_class(size=8, labels="seg", ratios=[1, 1, 3])], seg=st.labels())
    with pytest.raises(st.Error, match=r"class index: expected one of a map of the extents \(40, 52, 47\), got one of \(3, 4, 5\)"):
        pipeline.plan({"image": [volume(SCANS[0])], "seg": [other], "id": [1]}, seed=1, epoch=0)


def test_maps_that_have_no_index():
    for bad, words in ((np.zeros((2, 3, 4, 5), np.uint8), "label map of one channel"), (np.full((2, 2, 2), .5), "labels: expected whole numbers of 32 bits, got 0.5")):
        with pytest.raises(st.Error, match=words):
            st.ClassIndex.of(bad)
