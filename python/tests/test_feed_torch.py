# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch, and the steps of the path of a GPU in their order, with a stream that only notes them."""
import contextlib

import numpy as np
import pytest
from conftest import library

torch = library("torch")

import suture as st  # noqa: E402
from suture.feed import Feed, loading  # noqa: E402
from suture.feed import feed as module  # noqa: E402
from suture.feed.staging import Staging, plain  # noqa: E402
from test_feed import MEMORY, SCANS, PIPELINE, broken, expected, facts, feed_of, seen  # noqa: E402

pytestmark = pytest.mark.torch


def test_tensors_where_torch_is():
    for device in (None, "cpu", torch.device("cpu")):
        with feed_of(device=device) as feed:
            batches = list(feed)
            assert all(isinstance(batch[key], torch.Tensor) for batch in batches for key in ("image", "seg"))
            assert [facts(batch) for batch in batches] == expected(3)
    with feed_of(device="numpy") as feed:
        assert isinstance(next(iter(feed))["image"], np.ndarray)


@pytest.mark.parametrize("device", ["cuda", "cuda:7"])
def test_a_gpu_that_torch_does_not_find_is_refused(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(st.Error, match=f"suture: feed: device: expected one of the 0 GPUs that torch finds, got '{device}'. Pass device=\"cpu\", or"):
        feed_of(device=device)


def test_left_out_samples_and_levels():
    pipeline = st.Pipeline(image=PIPELINE.images["image"], seg=st.labels(levels=[(.5, .5, .5)]))
    with feed_of(broken("case_02"), pipeline, device="cpu", on_error="leave_out", batch=11) as feed:
        batch, = feed
    assert batch["image"].shape == (10, 1, 8, 8, 8) and [tuple(level.shape) for level in batch["seg"]] == [(10, 1, 8, 8, 8), (10, 1, 4, 4, 4)]


class Noted:
    """The calls that a feed makes to torch.cuda, in their order."""

    def __init__(self, monkeypatch):
        self.calls = calls = []

        class Stream:
            cuda_stream = 0

            def __init__(self, device=None):
                pass

            def synchronize(self):
                calls.append("synchronize")

            def wait_event(self, event):
                calls.append("wait_event")

        class Event:
            def record(self, stream):
                calls.append("record")

            def synchronize(self):
                calls.append("event.synchronize")

        def noting(name, call):
            def made(*given, **named):
                calls.append(name)
                return call(*given, **named)
            return made

        monkeypatch.setattr(torch.cuda, "Stream", Stream)
        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: Stream())
        monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: calls.append("record_stream"))
        monkeypatch.setattr(module, "pinned", plain)
        monkeypatch.setattr(Staging, "give", noting("give", Staging.give))
        monkeypatch.setattr(st.Plan, "run", noting("run", st.Plan.run))
        original = loading.as_tensor
        monkeypatch.setattr(loading, "as_tensor", noting("copy", original))


def as_on_a_gpu(**settings):
    feed = feed_of(**settings, device="cpu", threads=1)
    feed._cuda = True
    return feed


def test_the_path_of_a_gpu_in_its_order(monkeypatch):
    noted = Noted(monkeypatch)
    with as_on_a_gpu(batch=11) as feed:
        batch, = feed
    calls = list(noted.calls)
    assert facts(batch) == expected(1, batch=11)[0]
    # Buffers of boxes are given back behind the copies from them; a batch is handed over behind its event.
    assert calls == ["copy"] * 22 + ["run", "synchronize", "give", "record", "event.synchronize", "wait_event", "record_stream", "record_stream"]


def test_the_path_of_a_gpu_has_the_same_bits(monkeypatch):
    Noted(monkeypatch)
    with as_on_a_gpu(steps_per_epoch=5) as feed:
        assert seen(feed, 1) == expected(5, steps_per_epoch=5)
    with as_on_a_gpu(cohort=broken("case_07", "case_01"), on_error="leave_out") as feed:
        assert seen(feed, 1) == [[each for each in step if each[0] not in ("case_07", "case_01")] for step in expected(3)]
    bad = {**MEMORY, "case_06": {"image": MEMORY["case_06"]["image"]}}
    with as_on_a_gpu(cohort=bad, on_error="leave_out") as feed:
        assert seen(feed, 1) == [[each for each in step if each[0] != "case_06"] for step in expected(3)]
    assert len(SCANS) == 11 and Feed is module.Feed


def test_ranks_that_disagree_are_told(monkeypatch):
    import torch.distributed as distributed

    other = {}
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)

    def gather(every, mine):
        every[:] = [mine, {**mine, **other}]

    monkeypatch.setattr(distributed, "all_gather_object", gather)
    feed = feed_of(rank=0, world=2)
    feed.check_ranks()
    other["cohort"] = "0" * 64
    with pytest.raises(st.Error, match="cohort: expected the same on all ranks, got .* on rank 0 and 0000.* on rank 1"):
        feed.check_ranks()
