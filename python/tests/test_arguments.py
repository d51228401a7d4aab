# SPDX-License-Identifier: Apache-2.0
"""Calls with an unknown, a missing or an unnamed parameter are refused in one sentence; signatures stay what they are."""
import importlib
import inspect
import io
import pickle
import pydoc

import numpy as np
import pytest

import suture as st
from suture.arguments import check_calls
from test_docstrings import methods, objects

SCAN = np.zeros((40, 64, 64), np.int16)
PIPELINE = st.Pipeline(image=[st.identity()])


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: st.Volume(SCAN), 'Volume: axes: expected {"zyx", "xyz", "yx", "xy"}, got nothing. Pass axes=...'),
    (lambda: st.Volume(SCAN, axis="zyx"), "Volume: expected a parameter that it has, got 'axis'. Nearest is axes"),
    (lambda: st.Volume(SCAN, "zyx"), "Volume: expected 1 value without a name, got 2. Pass axes=..., spacing=..., affine_ras=..., "
                                     "affine_lps=..., origin=..., grid=..."),
    (lambda: st.Volume(SCAN, array=SCAN, axes="zyx"), "Volume: array: expected one value, got two. Leave one out"),
    (lambda: st.Volume([1, 2], axes="yx"), "Volume: array: expected an array, got list. Pass numpy.asarray(...), or read a file with "
                                           "Volume.load(path)"),
    (lambda: st.Volume.load("scan.nii", series_id="1"), "Volume: load: expected a parameter that it has, got 'series_id'. Nearest is series"),
    (lambda: st.Augment(PIPELINE, sed=1), "Augment: expected a parameter that it has, got 'sed'. Nearest is seed"),
    (lambda: st.Augment(PIPELINE), "Augment: seed: expected int, got nothing. Pass seed=..."),
    (lambda: st.Augment(PIPELINE, seed=1)({}, train=False), "Augment: expected a parameter that it has, got 'train'. Nearest is training"),
    (lambda: st.Augment(), "Augment: pipeline: expected Pipeline, got nothing. Pass pipeline=..., seed=..."),
    (lambda: st.Pipeline(image=[st.identity()], layot="NHWC"), "Pipeline: expected a parameter that it has, got 'layot'. Nearest is layout"),
    (lambda: PIPELINE({}, sed=1), "Pipeline: plan: expected a parameter that it has, got 'sed'. Nearest is seed"),
    (lambda: PIPELINE(), "Pipeline: batch: expected dict, array or list, got nothing. Pass batch=..."),
    (lambda: st.boxes(lyout="zyx"), "boxes: expected a parameter that it has, got 'lyout'. It has format, least_visible, least_thickness"),
    (lambda: st.cast("half", 3), "cast: expected 1 value without a name, got 2. Leave the others out"),
    (lambda: st.mirrors("zyx", axes="zyx"), "mirrors: axes: expected one value, got two. Leave one out"),
    (lambda: st.sample_id("a", drw=1), "sample_id: expected a parameter that it has, got 'drw'. Nearest is draw")])
def test_a_call_that_does_not_fit_is_one_sentence(call, sentence):
    with pytest.raises(st.Error) as caught:
        call()
    assert str(caught.value) == f"suture: {sentence}" and caught.value.__cause__ is None and caught.value.__suppress_context__ is False
    assert caught.value.__context__ is None, "a traceback that shows Python's TypeError too"


# Classes whose objects the package makes, and those without a constructor.
MADE_HERE = {"Plan", "ColorMomentsFit", "IntensityRange", "LandmarkMap", "Moments", "Percentiles", "Sharpness", "StainBasis", "Tally",
             "Threshold", "Epoch", "Order", "Statistics", "Box", "Case", "LazyArray", "Repaired", "Report", "Tile", "Tiles"}


def named_alone(made):
    return any(p.kind is p.KEYWORD_ONLY for p in inspect.signature(made).parameters.values())


def public_calls(module):
    """Functions, constructors and methods with parameters that are given by name alone."""
    for name, made in objects(module):
        if inspect.isfunction(made):
            yield name, made
        elif not issubclass(made, BaseException):
            if made.__name__ not in MADE_HERE:
                yield name, made
            yield from ((f"{name}.{method}", vars(made)[method]) for method, given, foreign in methods(made)
                        if not foreign and inspect.isfunction(given) and method in vars(made) and named_alone(given))


@pytest.mark.parametrize(("name", "least"), [
    ("suture", 150), ("suture.recipes", 12), ("suture.feed", 1), pytest.param("suture.store", 8, marks=pytest.mark.store),
    pytest.param("suture.torch", 4, marks=pytest.mark.torch), pytest.param("suture.monai", 2, marks=pytest.mark.monai)])
def test_every_public_call_refuses_what_it_does_not_know(name, least):
    found = {}
    for call, made in public_calls(importlib.import_module(name)):
        if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(made).parameters.values()):
            continue
        try:
            made(no_such_parameter=1)
        except Exception as problem:
            found[call] = f"{type(problem).__name__}: {problem}"
    wrong = {call: said for call, said in found.items() if "got 'no_such_parameter'" not in said}
    assert not wrong and len(found) >= least, (len(found), wrong)


def test_signatures_and_help_are_those_of_the_function():
    assert list(inspect.signature(st.Volume).parameters) == ["array", "axes", "spacing", "affine_ras", "affine_lps", "origin", "grid"]
    assert inspect.signature(st.Augment).parameters["seed"].default is inspect.Parameter.empty
    shown = io.StringIO()
    pydoc.Helper(output=shown).help(st.fit_range)
    assert "fit_range(images: 'Any', *, lower: 'float' = 0.0, upper: 'float' = 100.0" in shown.getvalue()
    for made in (st.fit_range, st.show, st.Volume, st.sample_id):
        assert pickle.loads(pickle.dumps(made)) is made


def test_a_type_error_from_inside_is_left_as_it_is():
    @check_calls
    def outer(x):
        return x + None

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        outer(1)
    assert not isinstance(caught.value, st.Error)
    with pytest.raises(st.Error, match="suture: outer: x: expected a value, got nothing. Pass x=..."):
        outer()


@pytest.mark.parametrize("again", ["call", "plan", "Augment"])
def test_a_warning_shows_the_line_of_the_caller(again):
    """Whatever stands between the call and the warning."""
    random = st.Pipeline(image=[st.random_flip(probability=.5)])
    batch = {"image": np.zeros((1, 1, 2, 3, 4), np.float32), "id": ["a"]}
    augment = st.Augment(random, seed=1)
    call = {"call": lambda b: random(b, seed=1), "plan": lambda b: random.plan(b, seed=1), "Augment": lambda b: augment(b)}[again]
    with pytest.warns(UserWarning, match="its draws repeat") as caught:
        for _ in range(2):
            call(batch)
    assert {warning.filename for warning in caught} == {__file__}
