# SPDX-License-Identifier: Apache-2.0
"""What a call costs beside the voxels: counted, since a clock would measure the machine."""
import sys

import numpy as np
import pytest

import suture as st
from test_pipeline import SMALL

IMAGES = np.random.default_rng(0).integers(-200, 300, (16, 1, 9, 9, 9), dtype=np.int16)


def batch(form):
    images, maps = IMAGES, (IMAGES > 0).astype(np.uint8)
    if form == "list":
        images, maps = list(images), list(maps)
    if form == "volumes":
        images, maps = ([st.Volume(a, axes="zyx", spacing=1) for a in each] for each in (images, maps))
    return {"image": images, "seg": maps, "id": list(range(16))}


def calls_of(given):
    """How many functions, of Python and of C, a call enters once everything is compiled and kept."""
    for _ in range(2):
        SMALL(given, seed=1)
    entered = []

    def note(frame, event, argument):
        if event in ("call", "c_call"):
            entered.append(event)

    sys.setprofile(note)
    try:
        SMALL(given, seed=1)
    finally:
        sys.setprofile(None)
    return len(entered)


@pytest.mark.parametrize(("form", "most"), [("stacked", 200), ("list", 450), ("volumes", 460)])
def test_a_call_enters_few_functions(form, most):
    assert calls_of(batch(form)) <= most


def test_a_call_enters_the_compiled_code_three_times(monkeypatch):
    given = batch("stacked")
    SMALL(given, seed=1)
    entered = []
    for compiled in SMALL._compiled.values():
        for name in ("plan", "run", "free", "workspace", "drawn", "geometry"):
            called = getattr(compiled, name)
            monkeypatch.setattr(compiled, name, lambda *given, called=called, name=name: (entered.append(name), called(*given))[1])
    SMALL(given, seed=1)
    assert entered == ["plan", "run", "free"]


def test_shapes_of_many_kinds_are_not_kept_for_ever(monkeypatch):
    from suture.arrays import batch as module

    monkeypatch.setattr(module, "_MOST_KEPT", 8)
    for n in range(9, 40):
        SMALL.plan({"image": [IMAGES[0]], "seg": [np.zeros((1, 9, 9, 9), np.uint8)], "id": [1]}, seed=1)
        module.Items([np.zeros((1, 2, 3, n), np.int16)], "image", None, None)
    assert len(module._shapes) <= 8
