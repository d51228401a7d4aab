# SPDX-License-Identifier: Apache-2.0
"""nnU-Net's trainer: the patches that it makes, their order, and whole trainings of a small set of real scans."""
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import library

pytestmark = pytest.mark.nnunet
torch = library("torch")
library("nnunetv2")

import suture as st  # noqa: E402
from suture.nnunet import TRAINERS, trainer_folder  # noqa: E402
from suture.nnunet.patches import Cut, Part, Patches, _is_readable_in_place  # noqa: E402

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
NEWER = tuple(int(v) for v in importlib.metadata.version("nnunetv2").split(".")[:2]) >= (2, 8)
RNG = np.random.default_rng(11)
IMAGE = RNG.normal(size=(2, 40, 50, 60)).astype(np.float32)
LABELS = RNG.integers(-1, 3, (1, 40, 50, 60)).astype(np.int8)
PATCH, SCALES = (16, 20, 24), [[1, 1, 1], [.5, .5, .5], [.25, .25, .25]]
STARTS = [(5, 10, 20), (-9, -7, 30), (25, 30, -4), (0, 0, 0)]


@pytest.fixture(scope="module")
def patches():
    return Patches(PATCH, levels=SCALES)


def cuts():
    return [Cut(IMAGE, [LABELS], start) for start in STARTS]


def test_without_chance_patches_are_nnunets_own(patches):
    from acvl_utils.cropping_and_padding.bounding_boxes import crop_and_pad_nd
    from batchgeneratorsv2.transforms.spatial.spatial import SpatialTransform
    from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
    from batchgeneratorsv2.transforms.utils.deep_supervision_downsampling import DownsampleSegForDSTransform
    from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTansform

    images, targets = patches(cuts(), [1, 2, 3, 4], seed=1, epoch=0, training=False)
    stock = ComposeTransforms([
        SpatialTransform(PATCH, patch_center_dist_from_border=0, random_crop=False, p_elastic_deform=0, p_rotation=0, p_scaling=0,
                         bg_style_seg_sampling=False, border_mode_seg="constant", padding_value_seg=-1),
        RemoveLabelTansform(-1, 0), DownsampleSegForDSTransform(SCALES)])
    for j, start in enumerate(STARTS):
        box = [[s, s + n] for s, n in zip(start, patches.enlarged)]
        theirs = stock(image=torch.from_numpy(crop_and_pad_nd(IMAGE, box, 0)).float(),
                       segmentation=torch.from_numpy(crop_and_pad_nd(LABELS, box, -1)).to(torch.int16))
        assert np.array_equal(images[j], theirs["image"].numpy())
        assert len(targets) == len(theirs["segmentation"]) == 3
        for ours, level in zip(targets, theirs["segmentation"]):
            assert ours.dtype == np.int16 and np.array_equal(ours[j], level.numpy())


def test_enlarged_patches_are_nnunets_own():
    from nnunetv2.training.data_augmentation.compute_initial_patch_size import get_patch_size

    for patch, angle, dummy in ((PATCH, 30, False), ((128, 128, 128), 30, False), ((16, 256, 256), 180, True),
                                ((96, 160, 160), 30, False)):
        turn = (-np.deg2rad(angle), np.deg2rad(angle))
        expected = list(get_patch_size(patch, turn, turn, turn, (.85, 1.25)))
        if dummy:
            expected[0] = patch[0]
        assert list(Patches(patch).enlarged) == expected


def test_patches_of_boxes_are_those_of_whole_arrays(patches):
    """A batch whose enlarged patches lie in memory as a whole has the same bits; less is read than that."""
    ids = list(range(40, 44))
    all_of_it, read, held = [], 0, 0

    class Counted:
        def __init__(self, array):
            self.array, self.shape = array, array.shape

        def __getitem__(self, at):
            nonlocal read
            read += self.array[at].size
            return self.array[at]

    image, seg = Counted(IMAGE), Counted(LABELS)
    for epoch in range(12):
        few = patches([Cut(image, [seg], start) for start in STARTS], ids, seed=3, epoch=epoch)
        batch = {"image": [], "seg": [], "starts": [], "id": ids}
        for start in STARTS:
            low = [max(s, 0) for s in start]
            at = (slice(None), *(slice(a, max(s + n, 0)) for a, s, n in zip(low, start, patches.enlarged)))
            batch["image"].append(np.ascontiguousarray(IMAGE[at]))
            batch["seg"].append(LABELS[at].astype(np.int16))
            batch["starts"].append(tuple(s - a for s, a in zip(start, low)))
            held += IMAGE[at].size + LABELS[at].size
        made = patches.pipeline.plan(batch, seed=3, epoch=epoch, threads=1).run()
        assert np.array_equal(few[0], made["image"]) and all(np.array_equal(a, b) for a, b in zip(few[1], made["seg"], strict=True))
        all_of_it.append(few[0])
    assert not any(np.array_equal(a, b) for a, b in zip(all_of_it, all_of_it[1:])) and read < .8 * held


def test_arrays_are_read_in_place_or_as_parts_to_the_same_bits(patches, tmp_path, monkeypatch):
    """An array that no pipeline reads as it lies is read as a part: of another class or order, not aligned, of another type."""
    class Other(np.ndarray):
        pass

    def misaligned(array):
        made = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        made[...] = array
        return made

    def on_disk(array):
        np.save(tmp_path / f"{array.dtype}.npy", array)
        return np.load(tmp_path / f"{array.dtype}.npy", mmap_mode="r")

    maps = LABELS.astype(np.int16)
    ids = [1, 2, 3, 4]
    expected = patches(cuts(), ids, seed=1, epoch=0)
    read, parts = Part.read, []
    monkeypatch.setattr(Part, "read", lambda part, *given: (parts.append(part.dtype), read(part, *given))[1])
    for changed, in_place in ((np.array, True), (on_disk, True), (misaligned, False), (np.asfortranarray, False), (lambda a: a.view(Other), False),
                              (lambda a: a.astype(a.dtype.newbyteorder()), False)):
        image, seg = changed(IMAGE), changed(maps)
        for given, in_place_seg in (([Cut(image, [seg], start) for start in STARTS], in_place),
                                    ([Cut(image if j else IMAGE[:, :, ::-1, :][:, :, ::-1, :], [seg if j < 2 else LABELS], start)
                                      for j, start in enumerate(STARTS)], False)):
            del parts[:]
            images, targets = patches(given, ids, seed=1, epoch=0)
            assert (parts.count("float32"), parts.count("int16")) == (0 if in_place else 4, 0 if in_place_seg else 4)
            assert np.array_equal(images, expected[0])
            assert all(np.array_equal(*pair) for pair in zip(targets, expected[1]))


@pytest.mark.parametrize(("shape", "in_place"), [((1, 1, 1 << 14, 1 << 14), False), ((1, 1, 1 << 14, (1 << 14) - 1), True)])
def test_planes_beyond_the_largest_stride_are_not_read_in_place(shape, in_place):
    assert _is_readable_in_place(np.empty(shape, np.uint8), "uint8") == in_place  # whose memory is not touched


def test_two_dimensional_patches_and_masks_left_for_later():
    flat = Patches((20, 24), levels=[[1, 1], [.5, .5]])
    images, targets = flat([Cut(IMAGE, [LABELS], (7, 3, 2))], [5], seed=1, epoch=0, training=False)
    z, (y, x) = 7, [s + (e - p) // 2 for s, e, p in zip((3, 2), flat.enlarged[1:], (20, 24))]
    assert np.array_equal(images[0], IMAGE[:, z, y:y + 20, x:x + 24]) and targets[1].shape == (1, 1, 10, 12)
    kept = Patches((20, 24), outside=-1)([Cut(IMAGE, [LABELS, LABELS], (7, 3, 2))], [5], seed=1, epoch=0, training=False)[1]
    assert kept[0].shape == (1, 2, 20, 24) and np.array_equal(kept[0][0, 0], LABELS[0, z, y:y + 20, x:x + 24])
    with pytest.raises(st.Error, match="sample 0: the enlarged patch of .* lies outside the image"):
        flat([Cut(IMAGE, [LABELS], (40, 0, 0))], [5], seed=1, epoch=0)


class Scans:
    """What nnU-Net's loader asks of a data set."""

    identifiers = ["a", "b", "c"]

    def load_case(self, key):
        labels = np.roll(LABELS, ord(key), 2)
        places = {k: np.argwhere(labels == k) for k in (1, 2)}
        return np.roll(IMAGE, ord(key), 2), labels, None, {"class_locations": places}


def loader(patches, workers=0, first=0, places=(0, 1), name="training", data=None, transforms=None):
    from types import SimpleNamespace

    from suture.nnunet.loader import Order, SutureLoader

    return SutureLoader(data or Scans(), len(places), patches.enlarged if name == "training" else PATCH, PATCH,
                        SimpleNamespace(all_labels=[0, 1, 2], has_ignore_label=False), order=Order(5, 3, first, places, 2, name),
                        patches=patches if name == "training" else None, oversample=.33, workers=workers, transforms=transforms)


def same(one, other):
    return (one["keys"] == other["keys"] and torch.equal(one["data"], other["data"])
            and all(torch.equal(a, b) for a, b in zip(one["target"], other["target"], strict=True)))


def test_batches_do_not_depend_on_who_reads_them(patches):
    here = loader(patches)
    state = np.random.get_state()[1].copy(), torch.random.get_rng_state()
    alone = [next(here) for _ in range(6)]
    assert np.array_equal(np.random.get_state()[1], state[0]) and torch.equal(torch.random.get_rng_state(), state[1])
    assert alone[0]["data"].shape == (2, 2, *PATCH) and [t.shape[2] for t in alone[0]["target"]] == [16, 8, 4]
    for k in range(6):
        assert not any(same(alone[k], other) for other in alone[:k])
    workers = [loader(patches, workers=2) for _ in range(2)]
    for k, worker in enumerate(workers):
        worker.set_thread_id(k)
    assert all(same(alone[k], next(workers[k % 2])) for k in range(6))
    later = loader(patches, first=3)
    assert all(same(batch, next(later)) for batch in alone[3:])
    ranks = [loader(patches, places=(r,)) for r in range(2)]
    for batch in alone[:3]:
        first, second = (next(rank) for rank in ranks)
        assert batch["keys"] == [*first["keys"], *second["keys"]]
        assert torch.equal(batch["data"], torch.cat([first["data"], second["data"]]))


def test_of_each_batch_the_share_that_nnunet_wants_has_foreground(patches):
    """With half of two samples forced, the second one: its patch has the center that a voxel of a class drew."""
    batches = loader(patches)
    for place, forced in ((0, False), (1, True)):
        assert batches.with_foreground(place) == batches.get_do_oversample(place) == forced
    alone = loader(patches, places=(1,))
    assert alone.with_foreground(1) and not alone.with_foreground(0)


def test_a_cascade_gets_both_maps_and_what_nnunet_does_afterwards():
    from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
    from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTansform
    from batchgeneratorsv2.transforms.nnunet.seg_to_onehot import MoveSegAsOneHotToDataTransform

    class Cascade(Scans):
        def load_case(self, key):
            image, labels, _, properties = super().load_case(key)
            labels = np.maximum(labels, 0)
            return image, labels, labels[0], properties

    after = ComposeTransforms([RemoveLabelTansform(-1, 0), MoveSegAsOneHotToDataTransform(1, [1, 2], True)])
    batch = next(loader(Patches(PATCH, outside=-1), data=Cascade(), transforms=after))
    data, target = batch["data"], batch["target"]
    assert data.shape == (2, 4, *PATCH) and target.shape == (2, 1, *PATCH) and target.dtype == torch.int16
    for k in (1, 2):
        assert torch.equal(data[:, 1 + k] != 0, target[:, 0] == k)


def test_validation_is_nnunets_own_and_comes_in_the_same_order(patches):
    one, other = (loader(patches, name="validation") for _ in range(2))
    pairs = [(next(one), next(other)) for _ in range(3)]
    for a, b in pairs:
        assert a["keys"] == b["keys"] and torch.equal(a["data"], b["data"])
        assert a["data"].shape == (2, 2, *PATCH)
    assert not torch.equal(pairs[0][0]["data"], pairs[1][0]["data"])


def test_validation_and_random_transforms_do_not_depend_on_the_number_of_gpus(patches):
    def noisy(image, segmentation):
        return {"image": image + np.random.normal() + torch.rand(1), "segmentation": segmentation}

    later = Patches(PATCH, outside=-1)
    for make, given in ((loader, dict(patches=patches, name="validation")), (loader, dict(patches=patches, name="validation", transforms=noisy)),
                        (loader, dict(patches=later, transforms=noisy)), (feed, dict(patches=patches, name="validation")),
                        (feed, dict(patches=later, transforms=noisy))):
        one, ranks = make(**given), [make(**given, places=(place,)) for place in range(2)]
        for _ in range(3):
            whole, parts = next(one), [next(rank) for rank in ranks]
            assert whole["keys"] == [key for part in parts for key in part["keys"]]
            assert torch.equal(whole["data"], torch.cat([part["data"] for part in parts]))
            assert not torch.equal(whole["data"][0], whole["data"][1])
    batches, inside = loader(patches, name="validation"), feed(patches, name="validation")
    for _ in range(3):
        a, b = next(batches), next(inside)
        assert a["keys"] == b["keys"] and torch.equal(a["data"], b["data"])


def feed(patches, threads=2, first=0, places=(0, 1), name="training", data=None, transforms=None, store=None):
    from suture.nnunet.feed import PatchFeed

    chooser = loader(patches, 0, first, places, name, data)
    return PatchFeed(chooser, patches, device="cpu", threads=threads, training=name == "training", transforms=transforms, store=store)


def test_threads_of_the_process_make_the_batches_of_workers(patches):
    workers = loader(patches)
    expected = [next(workers) for _ in range(6)]
    state = np.random.get_state()[1].copy()
    for threads in (1, 3):
        with feed(patches, threads) as inside:
            assert all(same(batch, next(inside)) for batch in expected)
    with feed(patches, first=3) as later, feed(patches, places=(1,)) as rank:
        assert all(same(batch, next(later)) for batch in expected[3:])
        for batch in expected[:3]:
            part = next(rank)
            assert part["keys"] == batch["keys"][1:] and torch.equal(part["data"], batch["data"][1:])
    assert np.array_equal(np.random.get_state()[1], state)


def test_a_step_is_from_batch_to_batch_within_an_epoch(patches):
    with feed(patches) as inside:
        batches = inside.order.steps
        for number in range(batches + 1):
            next(inside)
            time.sleep(.5 if number == batches - 1 else .05)  # nnU-Net validates behind an epoch
        steps = inside.statistics().steps
    assert all(step.between >= step.wait + .05 for step in steps[1:batches])
    assert all(step.between < step.wait + .5 for step in (steps[0], steps[batches]))


def test_the_feed_validates_on_patches_as_nnunet_cuts_them(patches):
    from acvl_utils.cropping_and_padding.bounding_boxes import crop_and_pad_nd

    with feed(patches, name="validation") as inside:
        chooser, boxes = loader(patches, name="validation"), []
        for number in range(4):
            batch = next(inside)
            for place in range(2):
                from suture.nnunet.loader import drawing

                with drawing(5, "validation", 2 * number + place):
                    key = str(np.random.choice(chooser.indices))
                    data, labels, _, properties = Scans().load_case(key)
                    low, high = chooser.get_bbox(data.shape[1:], place == 1, properties["class_locations"])
                box = [[a, b] for a, b in zip(low, high)]
                boxes.append(box)
                assert batch["keys"][place] == key
                assert np.array_equal(batch["data"][place].numpy(), crop_and_pad_nd(data, box, 0))
                assert np.array_equal(batch["target"][0][place].numpy(), np.maximum(crop_and_pad_nd(labels, box, -1), 0))
    assert len({str(box) for box in boxes}) > 4


def test_the_feed_does_what_nnunet_does_afterwards_and_reads_stores(patches):
    from types import SimpleNamespace

    from batchgeneratorsv2.transforms.nnunet.seg_to_onehot import MoveSegAsOneHotToDataTransform
    from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
    from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTansform

    class Cascade(Scans):
        def load_case(self, key):
            image, labels, _, properties = super().load_case(key)
            labels = np.maximum(labels, 0)
            return image, labels, labels[0], properties

    later = Patches(PATCH, outside=-1)
    after = ComposeTransforms([RemoveLabelTansform(-1, 0), MoveSegAsOneHotToDataTransform(1, [1, 2], True)])
    expected = next(loader(later, data=Cascade(), transforms=after))
    with feed(later, data=Cascade(), transforms=after) as inside:
        made = next(inside)
    assert torch.equal(made["data"], expected["data"]) and torch.equal(made["target"], expected["target"])
    stored = {}
    for key in Scans.identifiers:
        image, labels, _, _ = Scans().load_case(key)
        stored[key] = SimpleNamespace(image=-image, labels=labels[0])
    with feed(patches, name="validation", store=stored) as inside, feed(patches, name="validation") as files:
        one, other = next(inside), next(files)
        assert torch.equal(one["data"], -other["data"]) and torch.equal(one["target"][0], other["target"][0])
    with pytest.raises(st.Error, match="store: expected the preprocessed cases, got none of b"):
        feed(patches, store={k: v for k, v in stored.items() if k != "b"})
    stored["b"] = stored["a"] = stored["c"] = SimpleNamespace(image=image[:, 1:], labels=labels)
    with feed(patches, store=stored) as inside, pytest.raises(st.Error, match=r"store: expected image of the shape .* of case '[abc]'"):
        next(inside)


# A data set of parts of one scan.

TINY = """
import os
import sys

import numpy as np
import torch
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from suture.nnunet.efficient import nnUNetTrainerSutureEfficient
from suture.nnunet.trainer import nnUNetTrainerSutureDeterministic, nnUNetTrainerSutureFeed


class Short:
    def __init__(self, plans: dict, configuration: str, fold: int, dataset_json: dict, device: torch.device = torch.device("cuda")):
        super().__init__(plans, configuration, fold, dataset_json, device)
        self.num_epochs, self.num_val_iterations_per_epoch = 3, 1
        self.num_iterations_per_epoch = int(os.environ.get("ITERATIONS", "20"))
        self.save_every = 1

    def on_epoch_start(self):
        if str(self.current_epoch) == os.environ.get("STOP_BEFORE"):
            sys.exit("stopped")
        super().on_epoch_start()

    def perform_actual_validation(self, save_probabilities=False):
        self.inference_allowed_mirroring_axes = None  # an eighth of the time
        super().perform_actual_validation(save_probabilities)


class TinyStock(Short, nnUNetTrainer):
    def initialize(self):
        np.random.seed(1)  # without workers all of its draws come from here
        torch.manual_seed(1)
        super().initialize()


class TinyDeterministic(Short, nnUNetTrainerSutureDeterministic):
    pass


class TinyFeed(Short, nnUNetTrainerSutureFeed, nnUNetTrainerSutureDeterministic):
    pass


class TinyEfficient(Short, nnUNetTrainerSutureEfficient):
    patience, least_gain, most_batch = 1, 10, 4
    memory = os.environ.get("MEMORY")

    def perform_actual_validation(self, save_probabilities=False):
        pass
"""


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    """nnU-Net's folders with Dataset001_Abdomen: blocks of the CT with bone and with liver, spleen and kidneys."""
    nibabel = pytest.importorskip("nibabel")
    folder = tmp_path_factory.mktemp("nnunet")
    data = PACKAGE.parent / "examples/data/ct"
    ct, organs = (nibabel.load(data / name) for name in ("abdomen_ct.nii.gz", "abdomen_ct_labels.nii.gz"))
    image, found = np.asanyarray(ct.dataobj), np.asanyarray(organs.dataobj)
    labels = np.zeros(found.shape, np.uint8)
    labels[found > 24] = 1
    labels[np.isin(found, (1, 2, 3, 5))] = 2
    raw = folder / "raw/Dataset001_Abdomen"
    for name in ("imagesTr", "labelsTr"):
        (raw / name).mkdir(parents=True)
    for i, (x, z) in enumerate(((0, 40), (34, 40), (0, 62), (34, 62), (17, 52))):
        at = (slice(x, x + 88), slice(8, 96), slice(z, z + 50))
        for name, array in ((f"imagesTr/case_{i}_0000", image), (f"labelsTr/case_{i}", labels)):
            nibabel.save(nibabel.Nifti1Image(array[at], ct.affine, dtype=array.dtype), raw / f"{name}.nii.gz")
    (raw / "dataset.json").write_text(json.dumps({"channel_names": {"0": "CT"}, "numTraining": 5, "file_ending": ".nii.gz",
                                                  "labels": {"background": 0, "bone": 1, "organs": 2}}))
    (folder / "trainers").mkdir()
    (folder / "trainers/tiny.py").write_text(TINY)
    environment = {**os.environ, "nnUNet_raw": str(folder / "raw"), "nnUNet_preprocessed": str(folder / "preprocessed"),
                   "nnUNet_results": str(folder / "results"), "nnUNet_def_n_proc": "1", "nnUNet_n_proc_DA": "1",
                   "nnUNet_extTrainer": os.pathsep.join((str(trainer_folder()), str(folder / "trainers"))),
                   "PYTHONPATH": os.pathsep.join((str(PACKAGE), str(folder / "trainers"))),
                   "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}  # nnU-Net asks for all cores, which others use too
    run(["-c", "from nnunetv2.experiment_planning.plan_and_preprocess_entrypoints import plan_and_preprocess_entry as run; run()",
         "-d", "1", "-c", "3d_fullres", "-np", "1", "-npfp", "1"], environment)
    plans = folder / "preprocessed/Dataset001_Abdomen/nnUNetPlans.json"
    plan = json.loads(plans.read_text())
    small = plan["configurations"]["3d_fullres"]
    small["patch_size"], small["batch_size"] = [24, 40, 40], 2
    network = small["architecture"]["arch_kwargs"]
    network.update(n_stages=3, features_per_stage=[8, 16, 32], kernel_sizes=[[3] * 3] * 3, strides=[[1] * 3, [2] * 3, [2] * 3],
                   n_conv_per_stage=[2] * 3, n_conv_per_stage_decoder=[2] * 2)
    plans.write_text(json.dumps(plan))
    return folder, environment


def run(arguments, environment, status=0):
    done = subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=1800)
    assert done.returncode == status, done.stdout[-4000:]
    return done.stdout


def train(data_set, trainer, *more, status=0, **changed):
    """A whole nnUNetv2_train, and where its results are."""
    folder, environment = data_set
    if NEWER:
        begin = ["-c", "from nnunetv2.run.run_training import run_training_entry as run; run()"]
    else:
        begin = ["-c", "import sys, tiny; from nnunetv2.training.nnUNetTrainer import nnUNetTrainer as own\n"
                       f"own.{trainer} = tiny.{trainer}\n"
                       "from suture.nnunet.__main__ import main; sys.exit(main(['train', *sys.argv[1:]]))"]
    run([*begin, "1", "3d_fullres", "0", "-tr", trainer, "-device", "cpu", *more], environment | changed, status)
    return folder / f"results/Dataset001_Abdomen/{trainer}__nnUNetPlans__3d_fullres/fold_0"


def weights_of(folder):
    return torch.load(folder / "checkpoint_final.pth", weights_only=False)["network_weights"]


def dice_of(results):
    return json.loads((results / "validation/summary.json").read_text())["mean"]["1"]["Dice"]


def test_a_training_by_threads(data_set):
    """From the first epoch to the validation of whole scans."""
    results = train(data_set, "TinyFeed", ITERATIONS="4")
    assert (results / "checkpoint_final.pth").exists() and 0 <= dice_of(results) <= 1
    assert "threads of this process make batches on cpu" in next(results.glob("training_log*")).read_text()


@pytest.mark.long
def test_whole_trainings_with_it_and_without(data_set, tmp_path):
    """Beside nnU-Net's own trainer. Then once more, interrupted and continued by another number of workers: with the same
    weights."""
    dice = {}
    for trainer in ("TinyStock", "TinyDeterministic"):
        results = train(data_set, trainer, nnUNet_n_proc_DA="2" if trainer == "TinyDeterministic" else "0")
        dice[trainer] = dice_of(results)
    print(f"Dice of bone: nnU-Net's own trainer {dice['TinyStock']:.3f}, with suture {dice['TinyDeterministic']:.3f}")
    assert min(dice.values()) > .1  # of what some steps can teach
    shutil.move(results, tmp_path / "straight")
    train(data_set, "TinyDeterministic", status=1, nnUNet_n_proc_DA="0", STOP_BEFORE="1")
    assert (results / "checkpoint_latest.pth").exists() and not (results / "checkpoint_final.pth").exists()
    train(data_set, "TinyDeterministic", "--c")
    straight, continued = weights_of(tmp_path / "straight"), weights_of(results)
    assert all(torch.equal(straight[name], continued[name]) for name in straight)
    fed = weights_of(train(data_set, "TinyFeed"))
    assert all(torch.equal(straight[name], fed[name]) for name in straight)


def test_the_largest_batch_is_the_last_that_fits():
    from suture.nnunet.efficient import largest

    for limit in range(110, 900, 7):
        tried = []

        def measure(batch):
            tried.append(batch)
            return 100 + 10 * batch  # noqa: B023 - called within this turn
        assert largest(measure, limit, 64) == min((limit - 100) // 10, 64)
        assert max(100 + 10 * batch for batch in tried[2:] or [0]) <= limit  # after two, what is too much is not tried
    assert largest(lambda batch: None if batch > 11 else 5, 10, 64) == 11  # a GPU says so by an error
    assert largest(lambda batch: batch, 100, 6) == 6
    with pytest.raises(st.Error, match="memory: expected enough for a batch of 1"):
        largest(lambda batch: 8, 7, 64)


def test_a_dice_that_stands_still_is_counted_from_its_last_gain():
    from suture.nnunet.efficient import since_best

    assert [since_best(v, .01) for v in ([.5], [.5, .505], [.5, .505, .512], [.5, .4, .3], [.5, .6, .601, .59])] == [0, 1, 0, 2, 2]


def test_epochs_without_a_dice_do_not_end_a_training():
    """A validation in which no class occurs has a Dice of NaN."""
    from suture.nnunet.efficient import since_best, smoothed

    nan = float("nan")
    assert smoothed([.5, 1.0, 0.0]) == pytest.approx([.5, .55, .495])
    assert np.array_equal(smoothed([nan, .5, nan, 1.0]), [nan, .5, .5, .55], equal_nan=True)
    assert [since_best(smoothed(v), .01) for v in ([nan] * 70, [nan, .5], [nan, .5, .5], [nan, .5, nan, 1.0])] == [0, 0, 1, 0]


@pytest.mark.parametrize("asked", [False, True])
def test_steps_on_the_cpu_are_of_bfloat16_where_that_is_asked_for(asked):
    from types import SimpleNamespace

    from suture.nnunet.efficient import nnUNetTrainerSutureEfficient

    with nnUNetTrainerSutureEfficient._precision(SimpleNamespace(bfloat16=asked, device=torch.device("cpu"))):
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype == (torch.bfloat16 if asked else torch.float32)


@pytest.mark.long
def test_an_efficient_training_finds_its_batch_ends_by_itself_and_goes_on(data_set):
    """The batch is found once: a training that goes on has no memory to look for another one, and keeps it."""
    results = train(data_set, "TinyEfficient", status=1, MEMORY="100 GB", STOP_BEFORE="1")
    said = next(results.glob("training_log*")).read_text()
    assert "batch 4 instead of the planned 2, the largest that fits 100.00 GB of memory; learning rate 0.01414 instead of 0.01000; 10 iterations" in said
    before = set(results.glob("training_log*"))
    train(data_set, "TinyEfficient", "--c", MEMORY="1 MB")
    (log,) = set(results.glob("training_log*")) - before
    assert "batch 4 instead of the planned 2" in log.read_text() and "the training ends after 2 epochs of 3" in log.read_text()
    final = torch.load(results / "checkpoint_final.pth", weights_only=False)
    assert final["current_epoch"] == 2 and len(final["logging"]["ema_fg_dice"]) == 2


def test_the_folder_is_printed_and_the_trainers_are_found():
    said = subprocess.run([sys.executable, "-m", "suture.nnunet"], env={**os.environ, "PYTHONPATH": str(PACKAGE)},
                          capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(trainer_folder())
    if NEWER:
        os.environ["nnUNet_extTrainer"] = said.stdout.strip()
        from nnunetv2.utilities.find_objects import recursive_find_trainer_class_by_name

        found = [recursive_find_trainer_class_by_name(name) for name in TRAINERS]
        assert [one.__name__ for one in found] == list(TRAINERS) and all(one.__module__.startswith("suture.nnunet.") for one in found)
