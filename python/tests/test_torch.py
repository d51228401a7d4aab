# SPDX-License-Identifier: Apache-2.0
"""Tensors, loaders and torch.compile."""
import contextlib
import copy
import time

import numpy as np
import pytest
from conftest import library

pytestmark = pytest.mark.torch
torch = library("torch")

import suture as st  # noqa: E402
import suture.torch  # noqa: E402
from test_pipeline import BATCH, MAPS, SCANS, SMALL  # noqa: E402

STACKED = {"image": np.stack([s[:, :9, :11, :12] for s in SCANS]), "seg": np.stack([m[:, :9, :11, :12] for m in MAPS])}


def tensors(batch):
    return {k: torch.from_numpy(v) for k, v in batch.items()}


def test_tensors_get_the_bits_of_arrays():
    here = SMALL({**STACKED, "id": [1, 2, 3]}, seed=1)
    out = SMALL({**tensors(STACKED), "id": [1, 2, 3]}, seed=1)
    assert isinstance(out["image"], torch.Tensor) and np.array_equal(out["image"].numpy(), here["image"])
    assert np.array_equal(out["seg"].numpy(), here["seg"])
    with pytest.raises(st.Error, match="not differentiable; pass x.detach"):
        SMALL({**tensors(STACKED), "image": torch.zeros(3, 1, 9, 11, 12, requires_grad=True), "id": [1, 2, 3]})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("label", [-np.inf, np.inf, np.nan, 1.5])
def test_float_labels_that_no_int32_is_equal_to_are_refused(dtype, label):
    """The int32 that -inf is converted to becomes -inf again as float16."""
    wrong = torch.from_numpy(MAPS[0].copy()).to(getattr(torch, dtype))
    batch = {"image": [torch.from_numpy(SCANS[0])], "seg": [wrong], "id": [1]}
    assert SMALL.plan(batch, seed=1).items["seg"].dtype == "int32"
    wrong[0, 1, 1, 1] = label
    with pytest.raises(st.Error, match=f"^suture: seg: sample 0: labels: expected whole numbers of 32 bits, got {label}. Renumber them, or pass a soft map as an image$"):
        SMALL.plan(batch, seed=1)


class Stream:
    """A stream of torch that a test made up."""

    def __init__(self, number, device=None):
        self.cuda_stream, self.device = number, device


@pytest.fixture
def streams(monkeypatch):
    """whole_labels takes tensors for ones of a GPU, of which it must not read values before the end of the plan. The list has the
    stream of each call of torch that reads them; the current stream of torch is 5."""
    from suture.arrays.dlpack import CUDA, array_of
    from suture.pipeline import whole_labels

    def on_a_gpu(array, what):
        described = array_of(array, what)
        described.device = (CUDA, 0)
        return described

    now, seen = [Stream(5)], []

    @contextlib.contextmanager
    def within(stream):
        now.append(stream)
        yield
        now.pop()

    def watched(call):
        return lambda *given, **named: (seen.append(now[-1].cuda_stream), call(*given, **named))[1]

    monkeypatch.setattr(whole_labels, "array_of", on_a_gpu)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: now[-1])
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device: Stream(0, device))
    monkeypatch.setattr(torch.cuda, "ExternalStream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", within)
    monkeypatch.setattr(torch, "aminmax", watched(torch.aminmax))
    monkeypatch.setattr(torch, "cat", watched(torch.cat))
    return seen


@pytest.mark.parametrize("label", [(1 << 32) + 1, 1 << 31, -(1 << 31) - 1])
def test_int64_labels_of_a_gpu_are_not_cut(streams, label):
    maps = torch.from_numpy(STACKED["seg"]).to(torch.int64)
    maps[0].view(-1)[:2] = torch.tensor([-(1 << 31), (1 << 31) - 1])  # both are represented
    batch = {**tensors(STACKED), "id": [1, 2, 3]}
    expected = SMALL({**batch, "seg": maps.to(torch.int32)}, seed=1, epoch=0)["seg"]
    assert torch.equal(SMALL({**batch, "seg": maps}, seed=1, epoch=0)["seg"], expected)
    maps[2, 0, 8, 10, 11] = label
    with pytest.raises(st.Error, match=f"^suture: seg: sample 2: labels: expected whole numbers of 32 bits, got {label}. Renumber them, or pass a soft map as an image$"):
        SMALL.plan({**batch, "seg": maps}, seed=1)
    with pytest.raises(st.Error, match=f"^suture: seg: sample 2: labels: expected whole numbers of 32 bits, got {label}. Renumber them, or pass a soft map as an image$"):
        SMALL.plan({**batch, "image": list(batch["image"]), "seg": list(maps)}, seed=1)
    assumed = st.Pipeline(image=SMALL.images["image"], seg=st.labels(assume_integral=True))
    assumed.plan({**batch, "seg": maps}, seed=1)
    with pytest.raises(st.Error, match="looking whether they are whole numbers would make it wait"):
        SMALL.plan({**batch, "seg": maps.to(torch.float64)}, seed=1)


@pytest.mark.parametrize(("stream", "expected"), [(7, 7), (5, 5), (0, 0), (None, 0)])
def test_int64_labels_of_a_gpu_are_read_on_the_stream_of_the_plan(streams, stream, expected):
    """Without a stream that is 0 here, since the images lie on the CPU."""
    maps = torch.from_numpy(STACKED["seg"]).to(torch.int64)
    SMALL.plan({**tensors(STACKED), "seg": maps, "id": [1, 2, 3]}, seed=1, stream=stream)
    assert streams == [expected] * 2  # the extremes of the maps, and what is read of them


@pytest.mark.parametrize(("stream", "expected"), [(7, 7), (5, 5), (0, 0), (None, 0)])
def test_memory_of_a_gpu_belongs_to_the_stream_of_the_plan(streams, monkeypatch, stream, expected):
    """torch reuses memory in the order of the stream on which it was allocated."""
    from types import SimpleNamespace

    from suture.arrays import memory
    from suture.arrays.dlpack import CUDA, array_of
    from suture.pipeline.run import OutputMaker

    def watch(owner, name):
        call = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, **named: (seen.append(torch.cuda.current_stream(None).cuda_stream), call(*given, **named))[1])

    like, seen = array_of(torch.zeros(2), "an array"), []
    like.device = (CUDA, 0)
    watch(torch, "empty")
    watch(torch.Tensor, "clone")
    memory.memory_like(like, 8, stream)
    memory.copy_of(like, "an array", stream)
    monkeypatch.setattr(OutputMaker, "_checked", None)
    maker = OutputMaker(2, stream, True)
    maker._stacked(SimpleNamespace(first=like), "out", "float32", (2, 1), None)
    maker._listed(SimpleNamespace(first=like), "out", "float32", [(1,), (3,)], None)
    assert seen == [expected] * 5 and torch.cuda.current_stream(None).cuda_stream == 5


def test_types_are_converted_on_the_stream_of_the_plan(streams, monkeypatch):
    from suture.arrays.dlpack import CUDA

    plan = SMALL.plan({**tensors(STACKED), "id": [1, 2, 3]}, seed=1, epoch=0, stream=7)
    masks = torch.ones([3, 1, *plan.grids[0].extents], dtype=torch.bool)
    expected = plan.inverse({"seg": masks}, interpolation="nearest")["seg"]
    plan.items["image"].first.device = (CUDA, 0)
    to, seen = torch.Tensor.to, []
    monkeypatch.setattr(torch.Tensor, "to", lambda *given: (seen.append(torch.cuda.current_stream(None).cuda_stream), to(*given))[1])
    back = plan.inverse({"seg": masks}, interpolation="nearest")["seg"]
    assert seen == [7] * 6 and all(torch.equal(a, b) for a, b in zip(back, expected))  # of each sample before and after


def test_boxes_of_int64_on_a_gpu_do_not_make_a_run_wait(streams):
    maps = torch.from_numpy(STACKED["seg"]).to(torch.int64)
    for assume in (False, True):
        pipeline = st.Pipeline(image=SMALL.images["image"], seg=st.labels(assume_integral=assume))
        plan = pipeline.plan({**tensors(STACKED), "seg": maps, "id": [1, 2, 3]}, seed=1, stream=7, epoch=0)
        del streams[:]
        boxes = {"seg": [(each, (0, 0, 0)) for each in maps]}
        if not assume:
            with pytest.raises(st.Error, match=r"^suture: seg: sample 0: box: expected int32 on a GPU, got int64, and looking .* would make the "
                                               r"run wait\. Pass int32, or labels\(assume_integral=True\)$"):
                plan.run(boxes=boxes)
            boxes = {"seg": [(each.to(torch.int32), (0, 0, 0)) for each in maps]}
        assert torch.equal(plan.run(boxes=boxes)["seg"], plan.run()["seg"]) and not streams


@pytest.mark.parametrize("make", [torch.from_numpy, np.asarray])
@pytest.mark.parametrize(("dtype", "label"), [("int64", 1 << 31), ("float32", 1.5)])
def test_a_label_of_a_stacked_array_is_told_with_its_sample(make, dtype, label):
    maps = STACKED["seg"].astype(dtype)
    maps[2, 0, 8, 10, 11] = label
    with pytest.raises(st.Error, match=f"^suture: seg: sample 2: labels: expected whole numbers of 32 bits, got {label}. Renumber them, or pass a soft map as an image$"):
        SMALL.plan({**STACKED, "image": make(STACKED["image"]), "seg": make(maps), "id": [1, 2, 3]}, seed=1)


def test_functions_return_tensors_for_tensors():
    image, seg = torch.from_numpy(BATCH["image"][0]), torch.from_numpy(BATCH["seg"][0])
    grid = st.sliding_window_grid((7, 8, 9), (4, 5, 6))
    patches = torch.arange(len(grid) * 2 * 120).reshape(len(grid), 2, 4, 5, 6) % 101 / 7
    masked = st.mask_image([seg], [image], below=1, value=3.)
    for made, expected in ((st.fill_holes([seg])[0], st.fill_holes([BATCH["seg"][0]])[0]),
                           (masked[0], st.mask_image([BATCH["seg"][0]], [BATCH["image"][0]], below=1, value=3.)[0]),
                           (st.reassemble(grid, patches.transpose(2, 3).contiguous().transpose(2, 3)), st.reassemble(grid, patches.numpy())),
                           (st.average(image[None], seg.float(), outside=0)[0],
                            st.average(BATCH["image"][0][None], BATCH["seg"][0].astype(np.float32), outside=0)[0])):
        assert isinstance(made, torch.Tensor) and np.array_equal(made.numpy(), expected)
    assert np.array_equal(image.numpy(), BATCH["image"][0]), "a copy is masked"


def test_a_tensor_that_is_written_to_is_counted_again():
    pipeline = st.Pipeline(image=[st.crop_by_class(size=4, labels="seg", ratios=[0, 1])], seg=st.labels())
    seg = torch.zeros(1, 1, 20, 20, 20, dtype=torch.uint8)
    for at in ((3, 4, 5), (16, 10, 2)):
        seg.zero_()
        seg[(0, 0, *at)] = 1
        assert pipeline({"image": torch.zeros(seg.shape), "seg": seg, "id": [1]}, seed=1)["seg"].max() == 1


def test_the_operator_passes_opcheck_and_is_compiled_once_for_five_epochs():
    aug = suture.torch.Augment(SMALL, seed=1)
    batch = tensors(STACKED)
    state = aug.state_of(3)
    torch.library.opcheck(torch.ops.suture.augment.default, ([batch["image"]], [batch["seg"]], state, aug._number))
    graphs = []

    def count(module, _):
        graphs.append(module)
        return module.forward

    torch._dynamo.reset()
    step = torch.compile(lambda b, s: aug.run(b, s)["image"] * 2, fullgraph=True, backend=count)
    for epoch in range(5):
        aug.set_epoch(epoch)
        state = aug.state_of(3)
        assert torch.equal(step(batch, state), aug.run(batch, state)["image"] * 2)
    assert len(graphs) == 1


def test_flushed_denormals_change_no_bit():
    expected = SMALL({**tensors(STACKED), "id": [1, 2, 3]}, seed=1)["image"]
    small = tensors(STACKED) | {"id": [1, 2, 3]}
    assert torch.set_flush_denormal(True)
    try:
        flushed = SMALL(small, seed=1)["image"]
        still = (torch.tensor([1e-39]) * 1.0).item() == 0.0
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(flushed, expected) and still


class Cases(torch.utils.data.Dataset):
    """The scans, augmented here where there is an Augment."""

    def __init__(self, augment=None):
        self.augment = augment

    def __len__(self):
        return 3

    def __getitem__(self, i):
        item = {"image": torch.from_numpy(SCANS[i]), "seg": torch.from_numpy(MAPS[i])}
        if self.augment is None:
            return item
        made = self.augment(suture.torch.ragged_collate([item | {"id": f"{i}"}]))
        return {"image": made["image"][0], "seg": made["seg"][0], "id": made["id"][0]}


def loader(cases, method, workers=1, **settings):
    return torch.utils.data.DataLoader(cases, 3, num_workers=workers, multiprocessing_context=method, timeout=120,
                                       collate_fn=suture.torch.ragged_collate, **settings)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loaders_keep_ids_on_the_host(method):
    batch = suture.torch.move(next(iter(loader(suture.torch.with_ids(Cases()), method))), "cpu")
    assert batch["id"] == ["0", "1", "2"]
    out = suture.torch.Augment(SMALL, seed=1)(batch)
    expected = SMALL({**BATCH, "id": batch["id"]}, seed=1)
    assert np.array_equal(out["image"].numpy(), expected["image"])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_that_live_on_get_new_epochs(method):
    aug = suture.torch.Augment(SMALL, seed=1)
    batches = loader(Cases(aug), method, workers=2, persistent_workers=True)
    for epoch in (0, 1):
        aug.set_epoch(epoch)
        out = next(iter(batches))
        expected = SMALL({**BATCH, "id": ["0", "1", "2"]}, seed=1, epoch=epoch)
        assert np.array_equal(torch.stack(out["image"]).numpy(), expected["image"])


def test_workers_made_by_fork_after_a_call_do_not_hang():
    aug = suture.torch.Augment(SMALL, seed=1, threads=4)
    aug({**tensors(STACKED), "id": [1, 2, 3]})
    here = suture.torch.Augment(SMALL, seed=1)
    begin = time.monotonic()
    out = list(loader(Cases(here), "fork", workers=2))
    assert len(out) == 1 and time.monotonic() - begin < 10


@pytest.mark.parametrize("dtype", ["int16", "bfloat16"])
def test_volumes_that_are_read_box_by_box_are_moved_as_a_whole(dtype):
    voxels = np.arange(24).astype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype).reshape(2, 3, 4)

    class Boxes:
        shape, class_index = voxels.shape, None

        def read(self, low, high, out):
            out[...] = voxels[tuple(map(slice, low, high))]

    Boxes.dtype = dtype
    batch = {"image": [st.Volume(Boxes(), axes="zyx", spacing=2.0)], "seg": st.Volume(voxels, axes="zyx"), "id": ["case 17"]}
    moved = suture.torch.move(batch, "cpu")
    for each in (moved["image"][0], moved["seg"]):
        assert not each.is_lazy and each.array.dtype == getattr(torch, dtype) and each.array.tolist() == voxels.astype(int).tolist()
    assert moved["image"][0].spacing == {"z": 2.0, "y": 2.0, "x": 2.0} and moved["id"] == ["case 17"]


def test_ids_of_ranks_are_those_of_the_cases():
    """A case gets the same draws whichever rank has it."""
    cases = suture.torch.with_ids(Cases())
    aug = suture.torch.Augment(SMALL, seed=1)
    alone = dict(zip("012", SMALL({**BATCH, "id": ["0", "1", "2"]}, seed=1)["image"]))
    seen = []
    for rank in range(2):
        sampler = torch.utils.data.distributed.DistributedSampler(cases, num_replicas=2, rank=rank, seed=5)
        for batch in torch.utils.data.DataLoader(cases, 1, sampler=sampler, collate_fn=suture.torch.ragged_collate):
            out = aug(batch)
            seen += batch["id"]
            assert np.array_equal(out["image"][0].numpy(), alone[batch["id"][0]])
    assert len(seen) == 4 and set(seen) == set("012")


def test_goes_on_at_step_37_to_the_same_digest():
    batch = tensors(STACKED)
    aug = suture.torch.Augment(SMALL, seed=9)
    aug.set_epoch(2)
    for _ in range(37):
        aug(batch)
    state = copy.deepcopy(aug.state_dict())
    assert state == {"seed": 9, "epoch": 2, "step": 37, "batch": len(batch["image"])}
    expected = [st.digest(image.numpy()) for image in aug(batch)["image"]]
    other = suture.torch.Augment(SMALL, seed=0)
    other.load_state_dict(state)
    twin = copy.deepcopy(other)
    for each in (other, twin):
        assert [st.digest(image.numpy()) for image in each(batch)["image"]] == expected
    # By the operator too, which is told the step.
    other.load_state_dict(state)
    assert [st.digest(image.numpy()) for image in other.run(batch, other.state_of(3))["image"]] == expected


class Net(torch.nn.Module):
    def __init__(self, augment):
        super().__init__()
        self.augment = augment
        self.layer = torch.nn.Conv3d(1, 2, 3)

    def forward(self, image):
        return self.layer(image)


def test_checkpoints_stay_strict(tmp_path):
    net = Net(suture.torch.Augment(SMALL, seed=1))
    assert set(net.state_dict()) == {"layer.weight", "layer.bias"}
    torch.save(net.state_dict(), tmp_path / "net.pt")
    plain = Net(None)
    plain.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True), strict=True)
    assert torch.equal(copy.deepcopy(net).eval().layer.weight, plain.layer.weight)


def _rank(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(Net(suture.torch.Augment(SMALL, seed=1, rank=rank, world=2)))
    digests = []
    for _ in range(2):
        image = net.module.augment(tensors(STACKED))["image"]
        digests += [st.digest(each.numpy()) for each in image]
        net.zero_grad()
        net(image).square().mean().backward()
    torch.save((digests, [p.grad for p in net.parameters()]), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_ranks_train_on_draws_of_their_own(tmp_path):
    SMALL.build(image="int16", seg="uint8")
    torch.multiprocessing.spawn(_rank, (str(tmp_path),), nprocs=2)
    (first, gradients), (second, others) = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert len({*first, *second}) == 12
    assert all(torch.equal(a, b) for a, b in zip(gradients, others))
