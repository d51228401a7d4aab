# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong is told in one sentence that says what to do, or which operation, sample and value it is about."""
import errno
import os
import pydoc
import re
import stat

import numpy as np
import pytest

import suture as st
from suture.backend import cache as folders
from suture.backend import compiler, jit
from suture.arrays.dlpack import CUDA, capsule_of, dense_strides
from test_jit import little
from test_pipeline import BATCH, MAPS, SCANS, SMALL


def sentence_of(call, kind=st.Error):
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert text.startswith("suture: ")
    assert text.count("\n") == 0
    return text


class Elsewhere:
    """An array that says that it lies on a GPU. Nothing reads it: it is refused before."""

    def __init__(self, array, device=0):
        self.array, self.shape, self.device = array, array.shape, device

    def __dlpack_device__(self):
        return CUDA, self.device

    def __dlpack__(self, **_):
        return capsule_of(self.array.ctypes.data, self.shape, dense_strides(self.shape), self.array.dtype.name, (CUDA, self.device), self)


class OnGpu(str):
    is_cuda = True


def without(key):
    return {k: v for k, v in BATCH.items() if k != key}


@pytest.mark.parametrize("batch, words", [
    # shapes
    ({**BATCH, "image": [s[0, 0] for s in SCANS]}, "image: sample 0 of shape (12, 14) may be read in several ways; say layout="),
    ({**BATCH, "image": np.zeros((3, 8, 8, 8), np.int16)}, "image: an array of shape (3, 8, 8, 8) may be read in several ways"),
    ({**BATCH, "image": [*SCANS[:2], np.zeros((1, 0, 9, 9), np.int16)]}, "sample 2"),
    ({**BATCH, "seg": [m[..., :-1] for m in MAPS]}, "labels: sample 0"),
    ({**BATCH, "seg": MAPS[:2]}, "seg: expected 3 samples, as image has, got 2. Give one for each"),
    ({**BATCH, "image": [*SCANS[:2], st.Volume(SCANS[2][0], axes="zyx")]}, "image: sample 2 is a Volume, the first is not"),
    ({**BATCH, "image": [st.Volume(SCANS[0][0], axes="zyx"), st.Volume(SCANS[1][0], axes="xyz"), SCANS[2]]},
     "image: sample 1 has the axes 'xyz'"),
    # types
    ({**BATCH, "image": [s.astype(np.float64) for s in SCANS]}, "image: images of float64 are not read; float32, float16"),
    ({**BATCH, "image": [s.astype(np.complex64) for s in SCANS]}, "float64, got complex64. Pass a.astype(numpy.float32)"),
    ({**BATCH, "image": [SCANS[0], SCANS[1].astype(np.uint8), SCANS[2]]}, "image: sample 1 is uint8, the first int16"),
    ({**BATCH, "seg": [m.astype(np.float32) + .5 for m in MAPS]}, "seg: sample 0: label "),
    ({**BATCH, "image": [s.tolist() for s in SCANS]}, "image: expected a NumPy array, a torch tensor or an array with __dlpack__, got list. Pass"),
    # devices
    ({**BATCH, "image": [Elsewhere(s) for s in SCANS]}, "seg: on the CPU, image on cuda:0; one batch lies on one"),
    ({**BATCH, "image": [SCANS[0], Elsewhere(SCANS[1]), SCANS[2]]}, "image: sample 1 is on cuda:0, the first on the CPU"),
    ({**BATCH, "image": [Elsewhere(s, i) for i, s in enumerate(SCANS)]}, "image: sample 1 is on cuda:1, the first on cuda:0"),
    # what is missing
    (without("image"), "batch: expected the key 'image', as the pipeline has it, got seg, id. Name the chain and the entry of the batch alike"),
    (without("id"), "0 sample ids for 3 samples; random operations need one persistent id per sample"),
    ({**BATCH, "id": ["a"]}, "1 ids for 3 samples"),
    ({**BATCH, "id": ["a", "b", "a"]}, "samples 0 and 2 have the same id"),
    ({**BATCH, "id": [1.5, 2, 3]}, "1.5 is neither a string nor a whole number"),
    ({**BATCH, "id": [-1, 2, 3]}, "-1 is not in 0 .. 2^64 - 1"),
    ({**BATCH, "id": [OnGpu(), OnGpu(), OnGpu()]}, "ids lie on a GPU and reading them would make it wait; keep them on the host"),
    (SCANS, "the batch is a list, the pipeline has image, seg; give a dict"),
    ({**BATCH, "image": []}, "image: the batch is empty"),
])
def test_batches(batch, words):
    assert words in sentence_of(lambda: SMALL(batch, seed=1))


def test_outputs():
    room = np.zeros((3, 1, 8, 8, 8), np.float32)

    def refused(out):
        return sentence_of(lambda: SMALL(BATCH, seed=1, out={"image": out}))

    assert "image: out: expected the shape (3, 1, 8, 8, 8), got (3, 1, 8, 8, 7). Leave out= away" in refused(room[..., :7])
    assert "image: out: expected float32, got float16. Leave out= away" in refused(room.astype(np.float16))
    assert "image: out: on cuda:0, the batch on the CPU" in refused(Elsewhere(room))
    assert "image: out: the array is read-only" in refused(np.broadcast_to(np.float32(0), room.shape))
    # Not contiguous is as good; what holds an element twice is not.
    expected = SMALL(BATCH, seed=1)["image"]
    apart = np.zeros((8, 8, 8, 1, 3), np.float32).T
    assert not apart.flags["C_CONTIGUOUS"]
    assert np.array_equal(SMALL(BATCH, seed=1, out={"image": apart})["image"], expected)
    twice = np.lib.stride_tricks.as_strided(room, room.shape, (*room.strides[:-1], 0))
    assert "image: sample 0" in refused(twice)
    assert "image: sample 1" in refused(np.lib.stride_tricks.as_strided(room, room.shape, (0, *room.strides[1:])))


@pytest.mark.torch
def test_tensors():
    import torch

    tensors = [torch.tensor(s) for s in SCANS]
    tensors[1].untyped_storage().resize_(0)
    assert "image: the tensor's memory was freed" in sentence_of(lambda: SMALL({**BATCH, "image": tensors}, seed=1))
    for made, words in ((torch.zeros(1, 9, 9, 9, requires_grad=True), "requires gradients and the operations are not differentiable"),
                        (torch.zeros(1, 9, 9, 9).to_sparse(), "has no strides; pass x.to_dense()"),
                        (torch.zeros(1, 9, 9, 9, device="meta"), "expected a tensor on the CPU or on CUDA, got one on meta"),
                        (torch.zeros(1, 9, 9, 9, dtype=torch.complex64), "got torch.complex64. Pass torch.view_as_real(x)")):
        assert words in sentence_of(lambda: SMALL({"image": [made], "seg": [MAPS[0]], "id": [1]}, seed=1))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("SUTURE_CACHE", str(folder))
    return folder


def test_no_compiler(cache, tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no C++ compiler: install one (apt-get install g++" in sentence_of(lambda: jit.build(little()), st.CompileError)
    monkeypatch.setattr(compiler.sys, "path", [])
    for variable in ("NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(compiler.shutil, "which", lambda name: None)
    assert "there is no nvcc for tensors on a GPU: pip install 'suture[cuda]'" in sentence_of(compiler.cuda_compiler, st.CompileError)


@pytest.mark.parametrize("variable, advice", [("NVCC", "the path of nvcc"), ("CUDA_HOME", "the folder of a CUDA toolkit"),
                                              ("CUDA_PATH", "the folder of a CUDA toolkit")])
def test_a_wrong_nvcc_is_not_passed_over(variable, advice, tmp_path, monkeypatch):
    for other in ("NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(other, raising=False)
    nvcc = tmp_path / "bin" / "nvcc"  # on PATH
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\necho release 13.0\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(nvcc.parent), prepend=os.pathsep)
    assert compiler.cuda_compiler().path == os.path.realpath(nvcc)
    monkeypatch.setenv(variable, str(tmp_path / "none"))
    text = sentence_of(compiler.cuda_compiler, st.CompileError)
    assert text == f"suture: {variable} is {str(tmp_path / 'none')!r}, where there is no nvcc; unset it, or set it to {advice}"
    monkeypatch.setenv(variable, str(nvcc if variable == "NVCC" else tmp_path))
    assert compiler.cuda_compiler().path == os.path.realpath(nvcc)


def test_a_compiler_that_is_none(cache, tmp_path, monkeypatch):
    broken = tmp_path / "cxx"
    broken.write_text("#!/bin/sh\necho unknown option >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    assert "--version failed: ['unknown option']" in sentence_of(lambda: jit.build(little()), st.CompileError)


def test_a_full_disk(cache, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folders.tempfile, "TemporaryDirectory", full)
    text = sentence_of(lambda: jit.build(little()), st.CompileError)
    assert text == f"suture: there is no room left in the cache {cache}; free some, or set SUTURE_CACHE to another disk"


def test_a_cache_that_cannot_be_written(cache, monkeypatch):
    def read_only(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(folders.tempfile, "TemporaryDirectory", read_only)
    assert sentence_of(lambda: jit.build(little()), st.CompileError) == (
        f"suture: the cache {cache} cannot be written: Read-only file system; set SUTURE_CACHE to a folder that can")
    monkeypatch.undo()
    if os.getuid() != 0:  # whom nothing stops
        cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
        assert "cannot be written: Permission denied" in sentence_of(lambda: jit.build(little(5)), st.CompileError)


def test_windows_and_layouts():
    for call, words in ((lambda: st.Pipeline(), "there is no image; give the chain of one, image=[...]"),
                        (lambda: st.Pipeline([st.invert()]), "by its name in the batch, got [invert()] without one. Pass Pipeline(image=[...])"),
                        (lambda: st.Pipeline(layout="NQ", image=[]), "layout 'NQ' is none"),
                        (lambda: st.Pipeline(image=["flip"]), "expected an operation, got 'flip'"),
                        (lambda: st.Pipeline(image=[st.one_hot(classes=2)]), "one_hot converts labels: image=labels(convert=one_hot(...))"),
                        (lambda: st.Pipeline(image=[st.cast("float16"), st.invert()]), "cast is the last of a chain, behind it is invert"),
                        (lambda: st.Volume(SCANS[0], axes="zyx", spacing=(5, 1, 1)), "differs between axes: name them"),
                        (lambda: st.Volume(SCANS[0], axes="abc"), "axes: expected \"zyx\", \"xyz\", \"yx\" or \"xy\", got 'abc'. Name the axes in the order of"),
                        (lambda: st.Volume(SCANS[0], axes="zyx", spacing=1, affine_ras=np.eye(4)), "give one of spacing, affine_ras"),
                        (lambda: st.labels(convert=st.invert()), "is none of remap, one_hot, regions"),
                        (lambda: st.boxes(format="zzz"), "format 'zzz' is none of")):
        assert words in sentence_of(call)


def test_sentences_name_what_was_given():
    """Ids as the batch has them, the layout that was read, the name that is nearest."""
    large = st.Pipeline(image=[st.random_crop(size=96)])
    batch = {"image": [SCANS[0], SCANS[0]], "id": ["case 17", "case 18"]}
    assert "sample 0 (id 'case 17'): patch" in sentence_of(lambda: large(batch, seed=1))
    for given in (np.int64(7), np.array(7), np.array([7]), (7,)):
        assert "sample 0 (id 7): patch" in sentence_of(lambda: large({"image": [SCANS[0]], "id": given}, seed=1))
    assert "samples 0 and 1 have the same id 'b', so" in sentence_of(lambda: SMALL(
        {"image": [SCANS[0]] * 2, "seg": [MAPS[0]] * 2, "id": np.array(["b", "b"])}, seed=1))
    assert 'per sample: give them as batch["id"], strings or whole numbers' in sentence_of(lambda: large({"image": [SCANS[0]]}, seed=1))
    tiles = st.Pipeline(layout="NHWC", rgb=[st.random_crop(size=(32, 32))])
    assert "Say layout='NCHW'" in sentence_of(lambda: tiles({"rgb": np.zeros((2, 3, 64, 64), np.uint8), "id": [0, 1]}, seed=1))
    assert sentence_of(lambda: tiles({"rgb": np.zeros((2, 30, 64, 3), np.uint8), "id": [0, 1]}, seed=1)).endswith(
        "; rgb is read in the layout 'NHWC'")
    assert "got the class random_flip. Call it, random_flip(...)" in sentence_of(lambda: st.Pipeline(image=[st.random_flip]))
    assert sentence_of(lambda: st.Pipeline(image=[st.random_crop(size=3)], seg=[st.labels()])).endswith("Pass seg=labels()")
    assert "It stands alone: key=labels(...)" in sentence_of(lambda: st.Pipeline(image=[st.random_crop(size=3), st.labels()]))
    assert sentence_of(lambda: st.Pipeline(image=[st.random_crop(size=3)], seg=st.labels)).endswith("Call it, seg=labels()")
    assert "expected one number, or one for each of 3 axes, got (1.0, 1.0)" in sentence_of(
        lambda: st.Volume(SCANS[0], axes="zyx", spacing=(1, 1)))
    with pytest.raises(AttributeError, match="got 'random_rotate9'. Nearest are .*random_rot90"):
        st.random_rotate9
    with pytest.raises(AttributeError, match="Import it: import suture.demo$"):
        st.__getattr__("demo")
    assert "expected keys among image, seg, got 'id'. Pass arrays to write to, or nothing" in sentence_of(
        lambda: SMALL.plan(BATCH, seed=1).run(BATCH))
    assert "plan: epoch: expected a whole number, got '3'" in sentence_of(lambda: st.Augment(SMALL, seed=1).set_epoch("3"))
    assert sentence_of(lambda: st.replay("nowhere.json", BATCH)) == (
        "suture: replay: nowhere.json: expected a file that a record was saved to, got: No such file or directory. Check the path")
    assert repr(SMALL.plan(BATCH, seed=3)).startswith("<Plan of 3 samples, seed=3, epoch=0; image: int16")


@pytest.mark.parametrize(("settings", "words"), [
    (dict(seed=3 + 2**64), f"plan: seed: expected 0 .. 2^64 - 1, got {3 + 2**64}"), (dict(seed=-1), "got -1. Take the remainder"),
    (dict(epoch=2**32), f"plan: epoch: expected 0 .. 2^32 - 1, got {2**32}"), (dict(epoch=-1), "epoch: expected"),
])
def test_draws_are_not_cut_to_those_of_others(settings, words):
    assert words in sentence_of(lambda: SMALL(BATCH, **{"seed": 1, **settings}))


@pytest.mark.parametrize(("settings", "words"), [
    (dict(seed=5 + 2**64), f"seed: expected 0 .. 2^64 - 1, got {5 + 2**64}. Take"), (dict(seed=3.7), "seed: expected a whole number, got 3.7"),
    (dict(epoch=2**32), f"epoch: expected 0 .. 2^32 - 1, got {2**32}. Count"), (dict(epoch="3"), "epoch: expected a whole number, got '3'"),
])
def test_functions_draw_by_the_seed_and_epoch_that_were_given(settings, words):
    slide = st.SlideLayout((st.SlideLevel(512, 512),), mpp=.5)
    calls = {"random_tiles": lambda: st.random_tiles(slide, np.ones((8, 8)), slide_id=1, count=1, **settings),
             "select_patches": lambda: st.select_patches([MAPS[0]], st.pos_neg_patch(size=2), ids=[1], **settings),
             "random_binary_operation": lambda: st.random_binary_operation([MAPS[0]], labels=[1], ids=[1], **settings),
             "random_component_removal": lambda: st.random_component_removal([MAPS[0]], labels=[1], ids=[1], **settings)}
    for name, call in calls.items():
        assert sentence_of(call).startswith(f"suture: {name}: {words}")
    if "seed" in settings:
        assert sentence_of(lambda: st.Augment(SMALL, **settings)).startswith(f"suture: Augment: {words}")
    aug = st.Augment(SMALL, seed=4)
    before = aug.state_dict()
    assert sentence_of(lambda: aug.load_state_dict({**before, **settings})).startswith(f"suture: Augment: state: {words}")
    assert aug.state_dict() == before


class RandFlipd:
    """As an operation of another library is called."""


@pytest.mark.parametrize(("name", "here"), [
    ("RandFlipd", "random_flip"), ("Spacingd", "resample"), ("RandSpatialCropd", "random_crop"), ("RandCropByPosNegLabeld", "crop_by_class"),
    ("ZNormalization", "z_score"), ("RandomElasticDeformation", "random_elastic"), ("ToCanonical", "orient"),
    ("RandomHorizontalFlip", "random_flip"), ("ColorJitter", "random_color_jitter"), ("random_rotate", "random_affine"), ("random_flipp", "random_flip")])
def test_names_of_others_say_what_is_here(name, here):
    with pytest.raises(AttributeError, match=f"got '{name}'. .*{here}"):
        getattr(st, name)


def test_every_name_that_is_offered_is_there():
    from suture.operations.operation import OPERATIONS_ELSEWHERE

    known = {*st.__all__, "dict", "load"}
    for name, here in OPERATIONS_ELSEWHERE.items():
        assert name == name.lower().replace("_", "")
        for called in re.findall(r"\b(\w+)\(", here):
            assert called in known, (name, called)


def test_an_operation_of_another_library_in_a_chain():
    with pytest.raises(st.Error, match=r"image: expected an operation, got .*RandFlipd.*Here it is random_flip"):
        st.Pipeline(image=[RandFlipd()])
    with pytest.raises(st.Error, match=r"got 'random_flip'. Here it is random_flip\(...\)"):
        st.Pipeline(image=["random_flip"])


def test_public_names_and_help():
    assert set(dir(st)) == {*st.__all__, "__version__"}
    text = pydoc.render_doc(st.random_low_resolution, renderer=pydoc.plaintext)
    assert "zoom=(.5, 1)" in text and "probability = 1.0" in text
    assert "__dataclass" not in text and "_kinds" not in text and "{." not in text and "::" not in text


def test_reprs_are_short_and_chains_grow():
    train = st.Pipeline(layout="NHWC", rgb=[st.random_flip(axis_probability=.5), st.window(center=40, width=400)], mask=st.labels(dtype="int64"))
    assert repr(train) == "Pipeline(layout='NHWC', rgb=[random_flip, window], mask=labels(dtype='int64'))"
    assert repr(train.images["rgb"]) == "(random_flip(), window(center=40.0, width=400.0))"
    longer = train + [st.cast("uint8")]
    assert longer == st.Pipeline(layout="NHWC", rgb=[*train.images["rgb"], st.cast("uint8")], mask=st.labels(dtype="int64"))
    assert train + {"rgb": st.cast("uint8")} == longer
    with pytest.raises(st.Error, match="expected images of the pipeline, rgb, got 'mask'"):
        train + {"mask": []}
    plan = train.plan({"rgb": np.zeros((2, 8, 8, 3), np.uint8), "mask": np.zeros((2, 8, 8), np.uint8), "id": [1, 2]}, seed=3)
    assert repr(plan) == "<Plan of 2 samples, seed=3, epoch=0; rgb: uint8, mask: uint8>"
