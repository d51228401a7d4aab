# SPDX-License-Identifier: Apache-2.0
"""Every operation of the C++ library is there, with its fields, and is written as C++ that compiles."""
import copy
import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import suture as st
from suture.functions import fits
from suture.backend import compiler
from suture.operations import generated as operations
from suture.functions import patches
from suture.backend.encode import Encoder
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
        "color_target": st.ColorMoments(mean=(1.0, 2.0, 3.0)), "color_table": "crc_lab"}
# What is named in tests/operations.txt and is not an operation of a chain: where it is in Python.
OTHERS = {"per_channel": st, "cast": st, "sampling": st}


def listed(root):
    for line in (root / "tests/operations.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, role, _ = (part.strip() for part in line.split("|", 2))
            yield name, role


def example(cls):
    given = {name: FILL[kind] for name, kind in cls._fields
             if name and not hasattr(cls, name) and name not in ("",)}
    if "space" in cls.__dataclass_fields__:
        given["space"] = "lab"
    return cls(**given)


EXAMPLES = [example(getattr(st, name)) for name in operations.__all__]


def test_the_table_is_what_the_headers_say(root):
    done = subprocess.run([sys.executable, str(root / "python/write_operations.py"), "--check"], capture_output=True, text=True)
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


def test_compile_with_all_their_fields(tmp_path):
    """One file with every operation, as its numbers come from an array; nothing is run."""
    lines, headers = [], set()
    ops = [op for op in EXAMPLES if "stain_basis" not in repr(op._fields)]
    ops += [st.cast("float16"), st.sampling(interpolation="cubic_bspline", border="edge", labels="majority"),
            st.sampling(border="default_value", rim="centers", value=3),
            st.per_channel(st.random_gamma(), probability=.5)]
    ops += [op for op in EXAMPLES if "stain_basis" in repr(op._fields)]
    for order in ("zyx", "xyz"):
        for i, op in enumerate(ops):
            encoder = Encoder(order, {"stains": [fits.StainBasis(b"\0" * fits.STAIN_BASIS_BYTES)]}, 1)
            lines.append(f"auto {order}{i}([[maybe_unused]] const suture::abi::numbers& v) {{ return {encoder.operation(op)}; }}")
            headers.add(op._header)
            assert all(np.isfinite(n) or op.name == "patch_z_score" for n in encoder.out.numbers)
    source = tmp_path / "all.cpp"
    includes = sorted({f"suture/{h}" for h in headers if h} | {"suture/abi/lists.hpp", "suture/abi/request.hpp",
                                                               "suture/color/color_space.hpp", "suture/stats/stain_basis.hpp"})
    source.write_text("".join(f"#include <{i}>\n" for i in includes) + "\n".join(lines))
    done = subprocess.run([compiler.host_compiler().path, "-std=c++20", "-fsyntax-only", f"-I{compiler.include_directory()}", str(source)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.parametrize("make, sentence", [
    (lambda: st.window(center=40, width=400, p=.5), "suture: window: there is no parameter 'p'; here it is probability"),
    (lambda: st.resample(pixdim=1), "suture: resample: there is no parameter 'pixdim'; here it is spacing_mm"),
    (lambda: st.random_affine(scale=.2), "suture: random_affine: scale: 0.2 alone may mean a factor or half a width; "
                                        "give both ends, (low, high)"),
    (lambda: st.window(40, 400), "suture: window: parameters are named: center, width, low, high, function"),
    (lambda: st.window(center=40), "suture: window: width must be given"),
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
             "weight_map": patches.select_patches, "fit_macenko_round": fits.fit_macenko}
    names = {name for name, role in listed(root) if role == "other"}
    missing = [n for n in sorted(names - drawn - spaces - set(parts) - set(DTYPES) - {"int64"}) if not hasattr(st, n)]
    assert missing == []
    assert isinstance(st.window(center=0, width=1), Operation)
