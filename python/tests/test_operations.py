# SPDX-License-Identifier: Apache-2.0
"""Every operation of the C++ library is there, with its fields, and is written as C++ that compiles."""
import copy
import ctypes
import json
import math
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import suture as st
from suture.functions import fits
from suture.backend import jit
from suture.operations import generated as operations
from suture.functions import patches
from suture.backend.encode import Encoder
from suture.backend.request import Request
from suture.operations.kinds import KINDS, Kind
from suture.operations.templates import DTYPES
from suture.operations.operation import Operation, operation_from_json

GRID = st.Grid((4, 5, 6))
MOMENTS = fits.Moments(mean=1.0, standard_deviation=2.0)
RANGE = fits.IntensityRange(low=-1.0, high=2.0)
LANDMARKS = fits.LandmarkMap(source=(0.0, 1.0, 2.0), target=(0.0, 1.0, 3.0))
COLORS = fits.ColorMomentsFit(space="lab", mean=(1.0, 2.0, 3.0), standard_deviation=(1.0, 1.0, 1.0))
# By kind, what a field without a default gets.
FILL = {"float32": 1.5, "extent3": 2, "integer_interval": (1, 2), "holes": [((0, 0, 0), (1, 1, 1))], "grid": GRID,
        "results:moments": [MOMENTS], "results:intensity_range": [RANGE], "results:landmark_map": [LANDMARKS],
        "results:stain_basis": st.per_sample("stains"), "results:color_moments": [COLORS], "float_list": (0.0, 0.5, 1.0),
        "color_target": st.ColorMoments(mean=(1.0, 2.0, 3.0)), "color_table": "crc_lab", "type:color_space": "lab"}
# What is named in tests/operations.txt and is not an operation of a chain: where it is in Python.
OTHERS = {"per_channel": st, "cast": st, "sampling": st}


def listed(root):
    for line in (root / "tests/operations.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, role, _ = (part.strip() for part in line.split("|", 2))
            yield name, role


def example(cls):
    return cls(**{name: FILL[kind] for name, kind in cls._fields if not hasattr(cls, name)})


SOFT_KNEE = pathlib.Path(__file__).parent / "soft_knee.hpp"
EXAMPLES = [example(getattr(st, name)) for name in operations.__all__]


def test_the_table_is_what_the_headers_say(root):
    printed = os.environ.get("SUTURE_DESCRIPTION")  # what a build of the tests has made
    done = subprocess.run([sys.executable, str(root / "python/write_operations.py"), "--check", *(["--description", printed] if printed else [])],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_none_is_missing(root):
    roles = {}
    for name, role in listed(root):
        roles.setdefault(name, set()).add(role)
    in_chains = {name for name, role in roles.items() if role != {"other"}} | {"cast", "sampling"}
    # inverse_of is a plan's way back: Plan.inverse.
    missing = [name for name in sorted(in_chains - {"inverse_of"}) if not hasattr(st, name)]
    assert missing == []
    assert hasattr(st.Plan, "inverse")
    assert len(in_chains) > 85


@pytest.mark.parametrize("op", EXAMPLES, ids=lambda op: op.name)
def test_survives_pickle_json_and_copies(op):
    back = operation_from_json(json.loads(json.dumps(op.to_json())))
    if any(isinstance(v, float) and math.isnan(v) for v in vars(op).values()):
        assert repr(back) == repr(op)
    else:
        assert back == op
        assert pickle.loads(pickle.dumps(op)) == op and copy.deepcopy(op) == op


@pytest.mark.parametrize("op", [*(op for op in EXAMPLES if "..." not in repr(op)), st.value("x"), st.value("where(x > 2, min(x, top), a * x)", top=1e-3, a=-2),
                                st.value_cpp(SOFT_KNEE), st.value_cpp(SOFT_KNEE, knee=1.5)], ids=lambda op: op.name)
def test_the_repr_is_the_call_that_makes_the_operation(op):
    """Unless it shortens long values, as results of fits are."""
    made = eval(repr(op), {name: getattr(st, name) for name in dir(st)} | {"nan": math.nan})
    assert type(made) is type(op) and repr(made) == repr(op)
    assert made == op or "nan" in repr(op)


def test_the_repr_names_a_struct_that_is_not_that_of_the_file(tmp_path):
    file = tmp_path / "curves.hpp"
    file.write_text(SOFT_KNEE.read_text())
    op = st.value_cpp(file, struct="soft_knee", knee=2)
    assert repr(op) == f"value_cpp({str(file)!r}, struct='soft_knee', knee=2.0)" and eval(repr(op), vars(st)) == op


def test_cpp_reads_exactly_what_is_sent():
    """One module that reads every operation, as its type and its request say, and refuses a request with anything left."""
    ops = [*EXAMPLES, st.cast("float16"), st.sampling(interpolation="cubic_bspline", border="edge", labels="majority"),
           st.sampling(border="default_value", rim="centers", value=3), st.sampling(value=math.nan),
           st.per_channel(st.random_gamma(), probability=.5), st.value("where(x > a, 2 * x, x ** 2) + 1", a=3), st.value("x"),
           st.crop_by_class(size=2, labels="seg", ratios=(0, 1)), st.crop_by_class(size=2, labels="seg", positive=1),
           st.crop_by_class(size=2, labels="seg", oversample=.3, classes=3)]
    stains = fits.StainBasis(raw=b"\0" * fits.STAIN_BASIS_BYTES)
    encoders = [[Encoder(order, {"stains": [stains]}, 1) for order in ("zyx", "xyz")] for _ in ops]
    types = [[op.encode(e) for e in both] for op, both in zip(ops, encoders)]
    assert all(len(set(both)) == 1 for both in types)  # the order of axes compiles nothing
    headers = sorted({f"suture/{h}" for both in encoders for e in both for h in e.out.headers} | {"suture/abi/chain.hpp"})
    cases = "\n".join(f"    case {k}: read<{names[0]}>(*r); break;" for k, names in enumerate(types))
    source = jit.Source("".join(f"#include <{h}>\n" for h in headers) + """SUTURE_ABI_MODULE
template <class T> void read(const suture::abi::request& given) {
  suture::abi::reader r(given, "test");
  (void)r.next<T>("");
  r.finish();
}
SUTURE_ABI int suture_read(int which, const suture::abi::request* r) {
  return suture::abi::guarded([&] {
    switch (which) {
""" + cases + """
    }
  });
}
""", "every operation")
    module = jit.load(source)
    read = module.function("suture_read", ctypes.c_int, ctypes.c_void_p)
    for k, both in enumerate(encoders):
        for encoder in both:
            numbers, lists = encoder.out.tables()
            assert np.isfinite(numbers).all() or ops[k].name in ("patch_z_score", "sampling")
            request = Request(numbers=numbers, lists=lists, samples=1)
            module.check(read(k, request.address))
            more = Request(numbers=[*numbers, 0.0], lists=lists, samples=1)
            with pytest.raises(st.Error, match="test: request: expected"):
                module.check(read(k, more.address))


def test_a_field_without_a_kind_is_an_error():
    with pytest.raises(TypeError, match="the fields"):
        type("half_described", (Operation,), {"__annotations__": {"gain": float}, "_fields": ()})
    with pytest.raises(TypeError, match="there is no kind 'float31'"):
        type("of_no_kind", (Operation,), {"__annotations__": {"gain": float}, "_fields": (("gain", "float31"),)})
    with pytest.raises(TypeError, match="there is no kind 'choice:nothing'"):
        type("of_no_choice", (Operation,), {"__annotations__": {"gain": str}, "_fields": (("gain", "choice:nothing"),)})


def test_every_kind_has_a_way_for_everything():
    for name, kind in KINDS.items():
        assert kind.docs or kind.annotation != "Any", name
        for method in ("canonical", "encode", "to_json", "from_json"):
            assert callable(getattr(kind, method)), name
        assert type(kind).canonical is not Kind.canonical, name


@pytest.mark.parametrize("make, sentence", [
    (lambda: st.rot90(axes=("y", "x"), quarter_turns=2**32 + 1), "rot90: quarter_turns: expected a whole number from -2147483648 to"),
    (lambda: st.sampling(label_outside=2**60), "sampling: label_outside: expected a whole number from"),
    (lambda: st.crop(start=2**60, size=1), "crop: start: expected a whole number from -9007199254740992"),
    (lambda: st.brightness(offset=1e300), "brightness: offset: expected a number within float32, got 1e+300"),
    (lambda: st.brightness(offset=math.nan), "brightness: offset: expected a number, got nan"),
    (lambda: st.brightness(offset="1"), "brightness: offset: '1' is not a number"),
    (lambda: st.random_gamma(range=(.5, 1e39)), "random_gamma: range: expected a number within float32"),
    (lambda: st.remap(table={1: 2**31}), "remap: table: expected a whole number from"),
    (lambda: st.value("x * p", p=1e300), "value: parameters: p: expected a number within float32"),
    (lambda: st.regions(sets=[[2**40]]), "regions: sets: expected a whole number from"),
    (lambda: st.per_channel(st.per_channel(st.random_gamma())), "per_channel: operation: expected a random value operation"),
    (lambda: st.orient(x="Q"), "orient: x: 'Q' is none of R, L, A, P, S, I"),
])
def test_numbers_that_do_not_fit_are_refused(make, sentence):
    with pytest.raises(st.Error, match="^suture: ") as caught:
        make()
    assert sentence in str(caught.value)


@pytest.mark.parametrize("make, sentence", [
    (lambda: st.window(center=40, width=400, p=.5), "suture: window: expected a parameter that it has, got 'p'. Here it is probability"),
    (lambda: st.resample(pixdim=1), "suture: resample: expected a parameter that it has, got 'pixdim'. Here it is spacing_mm"),
    (lambda: st.random_affine(scale=.2), "suture: random_affine: scale: 0.2 alone may mean a factor or half a width; "
                                        "give both ends, (low, high)"),
    (lambda: st.window(40, 400), "suture: window: expected no values without a name, got 2. Pass center=..., width=..., low=..., high=..., function=..."),
    (lambda: st.window(center=40), "suture: window: width: expected float, got nothing. Pass width=..."),
    (lambda: st.crop(start=0, size=dict(z=1, q=2)), "suture: crop: size: axis 'q' is none of z, y and x"),
    (lambda: st.random_crop(size=1.5), "suture: random_crop: size: 1.5 is not a whole number"),
    (lambda: st.random_gamma(law="normal"), "suture: random_gamma: law: 'normal' is none of uniform, log_uniform, mixture"),
    (lambda: st.cast("float64"), "suture: cast: 'float64' is none of int8, uint8, int16, uint16, int32, float32, float16, "
                                 "bfloat16"),
])
def test_mistakes_get_one_sentence(make, sentence):
    with pytest.raises(st.Error) as caught:
        make()
    assert str(caught.value) == sentence


def test_the_role_is_the_folder_of_the_header():
    assert {op._role for op in EXAMPLES} == {"geometry", "value", "filter", "stain", "label"}
    assert all(op._header == "" or op._role == op._header.split("/")[1] for op in EXAMPLES)
    assert st.cast._role == st.per_channel._role == "value" and st.sampling._role == "sampling"


def test_lists_are_joined_and_none_is_left_out():
    a, b, c = st.flip(axes=True), st.invert(), st.identity()
    assert a | b | c == (a, b, c) == st.Pipeline(image=[a, None, [b, (c,)]]).images["image"]


def test_everything_else_that_is_named_is_somewhere(root):
    """Fits, masks and what chooses patches are functions of the package."""
    drawn = {"additive_noise", "magnitude_noise", "shot_noise", "crop_from", "class_crop", "box_crop"}
    spaces = {"hed", "hsv", "lab", "ruderman"}
    # A class map and a round of a fit are arguments and parts of functions that are there.
    parts = {"label_classes": patches.count_classes, "foreground_background": patches.count_classes,
             "weight_map": patches.select_patches, "fit_macenko_round": fits.fit_macenko,
             "remapped_classes": st.crop_by_class}
    names = {name for name, role in listed(root) if role == "other"}
    missing = [n for n in sorted(names - drawn - spaces - set(parts) - set(DTYPES) - {"int64"}) if not hasattr(st, n)]
    assert missing == []
    assert isinstance(st.window(center=0, width=1), Operation)


def test_reinhard_takes_a_stated_target():
    """Moments that are those of the target leave colors alone; a target that is lighter makes them lighter."""
    tiles = np.random.default_rng(3).integers(60, 200, (1, 16, 16, 3), np.uint8)
    mean, deviation = (55.0, 5.0, -5.0), (20.0, 9.0, 8.0)
    batch = {"image": tiles, "colors": [st.ColorMomentsFit(space="lab", mean=mean, standard_deviation=deviation)], "id": [1]}

    def moved(*lightness):
        target = st.ColorMoments(mean=(*lightness, *mean[1:]), standard_deviation=deviation)
        chain = [st.reinhard(space="lab", fitted=st.per_sample("colors"), target=target), st.cast("float32")]
        return st.Pipeline(layout="NHWC", image=chain)(batch)["image"]

    np.testing.assert_allclose(moved(mean[0]), tiles, atol=.05)
    assert (moved(mean[0] + 9) > tiles + 9).all()
