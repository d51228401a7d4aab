# SPDX-License-Identifier: Apache-2.0
"""Training runs: records, metrics beside SciPy's, the same bits twice and after a kill."""
import json
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import suture as st
from suture.__main__ import main
from suture.training.config import Config
from suture.training.metrics import dice, lesions, weighted_kappa

PIPELINE = st.Pipeline(image=[st.window(center=0, width=10), st.crop_by_class(size=8, labels="seg", ratios=[1, 1, 1])], seg=st.labels())
WHOLE = st.Pipeline(image=[st.window(center=0, width=10)])


def config(**changes):
    made = Config("segmentation", "0" * 64, PIPELINE.to_json(), WHOLE.to_json(), ["background", "liver", "lesion"], [8, 8, 8])
    return replace(made, **changes)


def test_a_record_comes_back_as_it_was(tmp_path):
    one = config(lesion=2, val=["a"], results={"losses": [.5]})
    one.save(tmp_path / "run.json")
    assert Config.load(tmp_path / "run.json") == one
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    assert one.pipelines() == (PIPELINE, WHOLE)


@pytest.mark.parametrize("change, says", [
    (dict(epochs=0), "epochs: expected a whole number above 0, got 0"),
    (dict(batch=2.5), "batch: expected a whole number above 0, got 2.5"),
    (dict(window=[8, 8]), "window: expected three whole numbers above 0"),
    (dict(lesion=3), "lesion: expected a class in 1 .. 2, got 3"),
    (dict(task="grade"), "task: expected"), (dict(task="tiles"), "window: expected two whole numbers above 0, got"),
    (dict(learning_rate=0.0), "learning_rate: expected a number above 0"), (dict(learning_rate="fast"), "learning_rate: expected a number"),
    (dict(learning_rate=float("inf")), "learning_rate: expected a number"), (dict(window=5), "window: expected three"),
    (dict(lesion=1.5), "lesion: expected a class")])
def test_settings_are_refused(change, says):
    with pytest.raises(st.Error, match=says):
        config(**change)


TILES = dict(task="tiles", window=[16, 16], tiles={"mpp": 1, "least_tissue": 0}, grades=["few", "many"], bounds=[.3])


@pytest.mark.parametrize("change, says", [
    (dict(window=[8, 16]), "window: expected square tiles"), (dict(tiles={"least_tissue": 0}), "tiles: expected mpp, and no others than"),
    (dict(tiles={"mpp": 1, "color": 2}), "tiles: expected mpp, and no others than"), (dict(bounds=[.5, .3]), "bounds: expected increasing parts"),
    (dict(bounds=[]), "bounds: expected increasing parts"), (dict(bounds=[1.2]), "bounds: expected"), (dict(grades=["one"]), "grades: expected 2 names for 1 bounds")])
def test_settings_of_a_grader_are_refused(change, says):
    assert config(**TILES).task == "tiles"
    with pytest.raises(st.Error, match=f"suture: train: {says}"):
        config(**{**TILES, **change})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "task": "segmentation"}'])
def test_other_files_are_no_record(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(st.Error, match="suture: train: .*run.json"):
        Config.load(tmp_path / "run.json")


def test_an_unknown_member_is_named(tmp_path):
    config().save(tmp_path / "run.json")
    record = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**record, "__class__": "os.system"}))
    with pytest.raises(st.Error, match="__class__"):
        Config.load(tmp_path / "run.json")


def test_dice_by_hand():
    a, b = np.zeros((1, 2, 4), np.uint8), np.zeros((1, 2, 4), np.uint8)
    a[0, 0, :3] = 1
    b[0, 0, 1:] = 1
    assert dice(a, b, 1) == 2 * 2 / 6
    assert dice(a, b, 2) is None
    assert dice(a, np.zeros_like(a), 1) == 0


def test_lesions_beside_scipy():
    ndimage = pytest.importorskip("scipy.ndimage")
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, t = ((ndimage.gaussian_filter(rng.normal(size=(12, 14, 16)), 1.2) > .25).astype(np.uint8) for _ in range(2))
        (pn, np_), (tn, nt) = ndimage.label(p), ndimage.label(t)
        large_p = {k for k in range(1, np_ + 1) if (pn == k).sum() >= 2}
        large_t = {k for k in range(1, nt + 1) if (tn == k).sum() >= 2}
        got = lesions(p, t, 1)
        assert got.true == len(large_t) and got.predicted == len(large_p)
        assert got.found == sum(bool(p[tn == k].any()) for k in large_t)
        assert got.false == sum(not t[pn == k].any() for k in large_p)
        assert got.true > got.found or got.predicted > got.false  # the comparison is about something


def test_kappa_by_hand():
    assert weighted_kappa(np.diag([3, 4, 5])) == 1
    assert weighted_kappa(np.full((3, 3), 2)) == pytest.approx(0)
    counts = np.array([[4, 0, 1], [0, 3, 0], [0, 1, 1]])
    expected = sum((i - j) ** 2 * counts.sum(1)[i] * counts.sum(0)[j] / 10 for i in range(3) for j in range(3))
    assert weighted_kappa(counts) == pytest.approx(1 - (4 + 1) / expected)
    assert weighted_kappa(np.array([[7, 0], [0, 0]])) is None


def test_no_lesion_is_none():
    empty = np.zeros((4, 4, 4), np.uint8)
    assert lesions(empty, empty, 2).to_json() == {"true": 0, "found": 0, "predicted": 0, "false": 0}


@pytest.mark.parametrize("missing", ["torch", "monai"])
@pytest.mark.parametrize("module", ["run", "segmentation", "tiles"])
def test_a_missing_library_is_named(root, missing, module):
    code = f"import sys; sys.modules[{missing!r}] = None; import suture.training.{module}"
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(root / "python")}, capture_output=True, text=True)
    if missing == "monai":
        pytest.importorskip("torch")
    assert f"Error: suture: train: {missing} is not installed: pip install torch monai nibabel" in run.stderr.splitlines()[-1]


class Cohort(dict):
    """Cases in memory with a hash, as a store has them."""

    sha256 = "0" * 64


class Case:
    def __init__(self, image, labels):
        self.members = {"image": image, "labels": labels}
        self.sha256 = st.digest(np.asarray(image))

    def volume(self, name):
        return self.members[name]


def cohort():
    """Balls in noise, one of them bright."""
    made = Cohort()
    z, y, x = np.mgrid[:20, :22, :24]
    for k in range(4):
        rng = np.random.default_rng(k)
        seg = np.zeros(z.shape, np.uint8)
        for label, radius in ((1, 7), (2, 3)):
            c = rng.uniform(8, 13, 3)
            seg[(z - c[0]) ** 2 + (y - c[1]) ** 2 + (x - c[2]) ** 2 < radius ** 2] = label
        image = (np.array([0, 4, 9])[seg] + rng.normal(0, 1, z.shape)).astype(np.float32)
        spacing = dict(z=2.0, y=1.0, x=1.0)
        made[f"case_{k}"] = Case(st.Volume(image, axes="zyx", spacing=spacing), st.Volume(seg, axes="zyx", spacing=spacing))
    return made


SMALL = dict(batch=2, steps_per_epoch=3, epochs=3, channels=[4, 8], threads=1, val=["case_3"], lesion=2, window=[8, 8, 8])


def trained(folder, made):
    run = made(config(**SMALL), cohort(), folder, say=lambda line: None)
    run.train()
    return run, run.results(run.evaluate())


@pytest.mark.monai
def test_the_same_bits_twice_and_after_a_break(tmp_path):
    pytest.importorskip("monai")
    import nibabel
    from suture.training.segmentation import Run

    class Broken(Run):
        def _step(self, batch):
            if len(self.losses) == 4:
                raise KeyboardInterrupt
            super()._step(batch)

    _, first = trained(tmp_path / "a", Run)
    _, second = trained(tmp_path / "b", Run)
    assert first == second and len(first["losses"]) == 9 and len(set(first["losses"])) == 9
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "c", Broken)
    run, resumed = trained(tmp_path / "c", Run)
    assert resumed == first
    other = Run(config(**{**SMALL, "seed": 43}), cohort(), tmp_path / "d", say=lambda line: None)
    other.train()
    assert other.batches != run.batches
    written = nibabel.load(tmp_path / "c" / "predicted" / "case_3.nii.gz")
    assert written.shape == (24, 22, 20) and np.allclose(written.header.get_zooms(), (1, 1, 2))
    assert np.array_equal(np.asarray(written.dataobj).transpose(2, 1, 0), np.asarray(run.predictions["case_3"]))
    assert set(first["metrics"]["cases"]["case_3"]["dice"]) == {"liver", "lesion"}


@pytest.mark.monai
def test_a_pipeline_may_end_with_bfloat16(tmp_path):
    """Casting a batch to bfloat16 and back rounds its values, so that the network sees those of float32, rounded."""
    pytest.importorskip("monai"), pytest.importorskip("ml_dtypes")
    import torch
    from suture.training.segmentation import Run

    class Rounded(Run):
        def _step(self, batch):
            super()._step({**batch, "image": torch.as_tensor(batch["image"]).bfloat16()})

    cast = st.cast("bfloat16")
    chains = {"pipeline": st.Pipeline(image=[*PIPELINE.images["image"], cast], seg=st.labels()).to_json(),
              "whole": st.Pipeline(image=[*WHOLE.images["image"], cast]).to_json()}
    run = Run(config(**SMALL, **chains), cohort(), tmp_path / "a", say=lambda line: None)
    other = Rounded(config(**SMALL), cohort(), tmp_path / "b", say=lambda line: None)
    run.train()
    other.train()
    assert run.results({}) == other.results({})
    assert set(run.evaluate()["cases"]) == {"case_3"}


@pytest.mark.monai
def test_a_training_is_one_process_whatever_the_environment(tmp_path, monkeypatch):
    pytest.importorskip("monai")
    from suture.training.segmentation import Run

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with Run(config(**SMALL), cohort(), tmp_path, say=lambda line: None).feed() as feed:
        assert (feed.rank, feed.world) == (0, 1)


@pytest.mark.monai
def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    pytest.importorskip("monai")
    from suture.training.segmentation import Run

    run, _ = trained(tmp_path, Run)
    saved = run.checkpoint.read_bytes()
    for change, says in ((dict(seed=43), r"seed \(then 42, now 43\)"), (dict(learning_rate=1e-4), r"learning_rate \(then 0.008, now 0.0001\)"),
                         (dict(pipeline=run.whole.to_json()), r"pipeline")):
        other = Run(config(**{**SMALL, **change}), cohort(), tmp_path, say=lambda line: None)
        with pytest.raises(st.Error, match=f"suture: train: .*checkpoint.pt: expected .* same settings, got others: {says}. Name another folder"):
            other.train()
        assert not other.losses and run.checkpoint.read_bytes() == saved
    import torch

    older = {name: value for name, value in torch.load(run.checkpoint, weights_only=True).items() if name not in ("settings", "batches")}
    for made, says in ((older, "expected a checkpoint of this version, got one without batches, settings. Remove it to train anew"),
                       ([1, 2], "expected a checkpoint of this version, got one without batches, feed")):
        torch.save(made, run.checkpoint)
        with pytest.raises(st.Error, match=f"checkpoint.pt: {says}"):
            Run(config(**SMALL), cohort(), tmp_path, say=lambda line: None).train()
    run.checkpoint.write_bytes(saved[:100])
    with pytest.raises(st.Error, match=r"checkpoint.pt: expected a checkpoint, got a file that torch cannot read \(.*\). Remove it"):
        Run(config(**SMALL), cohort(), tmp_path, say=lambda line: None).train()


@pytest.mark.monai
@pytest.mark.parametrize(("before", "same"), [({}, None), ({"batches": "a"}, True), ({"batches": "b"}, False)])
def test_the_command_says_whether_it_compared(tmp_path, monkeypatch, capsys, before, same):
    pytest.importorskip("monai")
    pytest.importorskip("tensorstore")
    import suture.store
    import suture.training.segmentation
    from suture.training import command

    results = {"batches": "a", "weights": "b", "losses": [1.0], "metrics": {}}

    class Run:
        def __init__(self, *given, **more):
            pass

        def train(self):
            pass

        def evaluate(self):
            return {}

        def results(self, metrics):
            return results

    monkeypatch.setattr(suture.training.segmentation, "Run", Run)
    monkeypatch.setattr(suture.store, "open", lambda path: None)
    for name in ("given", "out"):
        (tmp_path / name).mkdir()
    config(results={**results, **before} if before else {}).save(tmp_path / "given/run.json")
    given = SimpleNamespace(config=tmp_path / "given/run.json", store=tmp_path, out=tmp_path / "out", device="cpu")
    assert command.run(given) == (2 if same is False else 0)
    assert json.loads(capsys.readouterr().out)["same"] is same


@pytest.mark.monai
def test_another_store_and_missing_cases_are_refused(tmp_path):
    pytest.importorskip("monai")
    from suture.training.segmentation import Run

    with pytest.raises(st.Error, match="train: cohort: expected the store of hash 1"):
        Run(config(cohort="1" * 64), cohort(), tmp_path)
    with pytest.raises(st.Error, match="train: val: expected cases of the store, got case_9"):
        Run(config(val=["case_9"]), cohort(), tmp_path)


def test_what_differs_is_named():
    from suture.training.command import compare

    before = {"batches": "a", "weights": "b", "losses": [1.0], "metrics": {}}
    assert compare(config(results=before), dict(before)) == []
    assert compare(config(), dict(before)) == []
    changed = replace(config(results=before), versions={"torch": "0"})
    assert compare(changed, {**before, "weights": "c"})[0] == "weights"
    assert any(line.startswith("version of torch: 0 then") for line in compare(changed, {**before, "weights": "c"}))


def example(root, out, *options):
    """Runs examples/train, and returns its report, which is the last line."""
    env = {**os.environ, "PYTHONPATH": str(root / "python")}
    run = subprocess.run([sys.executable, str(root / "examples/train/main.py"), "--out", str(out), *options], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.monai
def test_the_example_leaves_what_it_names(root, tmp_path):
    pytest.importorskip("monai")
    pytest.importorskip("tensorstore")
    report = example(root, tmp_path, "--only", "scans", "--epochs", "1", "--steps", "2", "--size", "32", "--threads", "1")
    assert report["same"] and report["runs"] == 2 and len(report["losses"]) == 2
    for name in ("loss.png", "sheet.png", "cohort.zarr/zarr.json", "run_1/run.json", "run_2/checkpoint.pt", "run_1/predicted/scan_4.nii.gz"):
        assert (tmp_path / name).stat().st_size > 0, name
    assert not [path for path in tmp_path.rglob("*unfinished*")]
    env = {**os.environ, "PYTHONPATH": str(root / "python")}
    arguments = ["--config", "run_1/run.json", "--store", "cohort.zarr", "--out", "again"]
    again = subprocess.run([sys.executable, "-m", "suture", "train", *arguments], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0 and json.loads(again.stdout.splitlines()[-1])["same"], again.stdout + again.stderr
    same_place = ["train", "--config", str(tmp_path / "run_1/run.json"), "--store", str(tmp_path / "cohort.zarr"), "--out", str(tmp_path / "run_1")]
    assert main(same_place) == 1


@pytest.mark.monai
def test_the_example_grades_tiles(root, tmp_path):
    for name in ("monai", "tensorstore", "openslide"):
        pytest.importorskip(name)
    import suture.store
    from PIL import Image

    report = example(root, tmp_path, "--only", "tiles", "--tile-epochs", "1", "--tile-steps", "2", "--threads", "1")["tiles"]
    assert report["same"] and report["runs"] == 2 and len(report["losses"]) == 2
    out = tmp_path / "tiles"
    for name in ("loss.png", "sheet.png", "run_1/run.json", "run_2/checkpoint.pt"):
        assert (out / name).stat().st_size > 0, name
    cohort, metrics = suture.store.open(out / "slides.zarr"), report["metrics"]
    assert report["cohort"] == cohort.sha256 and set(metrics["cases"]) == {"breast_a", "breast_b"}
    counts = np.zeros((3, 3), int)
    for name, case in metrics["cases"].items():
        with Image.open(out / "run_1/predicted" / f"{name}.png") as picture:
            labels = np.asarray(picture)
        assert labels.shape == cohort[name].image.shape[1:] and set(np.unique(labels)) <= {0, 1}
        tiles = json.loads((out / "run_1/predicted" / f"{name}.json").read_text())
        assert len(tiles) == case["tiles"] > 10
        truth = cohort[name].labels[...]
        boxes = [(slice(t["y"], t["y"] + 64), slice(t["x"], t["x"] + 64)) for t in tiles]
        parts = [(truth[box] == 1).mean() for box in boxes]
        assert [t["true"] for t in tiles] == [sum(part >= bound for bound in (.12, .3)) for part in parts]
        p, t = (np.stack([array[box] for box in boxes]) for array in (labels, truth))
        assert case["dice"]["nucleus"] == dice(p, t, 1) and case["accuracy"] == np.mean([t["true"] == t["predicted"] for t in tiles])
        np.add.at(counts, tuple(np.array([[t["true"], t["predicted"]] for t in tiles]).T), 1)
    assert metrics["cohort"]["grades"] == counts.tolist() and metrics["cohort"]["kappa"] == weighted_kappa(counts)
    record = Config.load(out / "run_1/run.json")
    assert record.task == "tiles" and record.results["metrics"] == metrics and record.cohort == cohort.sha256
    env = {**os.environ, "PYTHONPATH": str(root / "python")}
    arguments = ["--config", "run_1/run.json", "--store", "slides.zarr", "--out", "again"]
    again = subprocess.run([sys.executable, "-m", "suture", "train", *arguments], env=env, cwd=out, capture_output=True, text=True)
    assert again.returncode == 0 and json.loads(again.stdout.splitlines()[-1])["same"], again.stdout + again.stderr


@pytest.mark.monai
@pytest.mark.long
def test_the_example_learns(root, tmp_path):
    """The default form. Chance gives a kappa of 0, and a network that learned nothing finds hardly any liver or nuclei."""
    for name in ("monai", "tensorstore", "openslide"):
        pytest.importorskip(name)
    report = example(root, tmp_path)
    assert report["same"] and report["tiles"]["same"]
    tiles = report["tiles"]["losses"]
    assert np.mean(tiles[-20:]) < .75 * np.mean(tiles[:20])
    losses = report["losses"]
    assert np.mean(losses[-40:]) < .75 * np.mean(losses[:40])
    assert report["metrics"]["cohort"]["dice"]["liver"] > .7
    metrics = report["tiles"]["metrics"]["cohort"]
    assert metrics["dice"]["nucleus"] > .6 and metrics["kappa"] > .4
