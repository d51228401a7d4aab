# SPDX-License-Identifier: Apache-2.0
"""Value operations written as expressions."""
import json
import pickle
import shutil

import numpy as np
import pytest

import suture as st
from suture.operations.operation import operation_from_json

SOFT = st.value("where(x > knee and not x > 1e4, knee + log(1 + x - knee), -x / 2 + 3 * abs(min(x, 0)) ** 2)", knee=100.0)


def test_gives_what_numpy_does():
    x = np.linspace(-300, 900, 2 * 5 * 6 * 7, dtype=np.float32).reshape(2, 1, 5, 6, 7)
    pipeline = st.Pipeline(image=[SOFT, st.brightness(offset=1)])
    out = np.stack(pipeline({"image": list(x)})["image"])
    assert np.allclose(out, SOFT.numpy(x) + 1, rtol=2e-6)
    other = st.Pipeline(image=[st.value(SOFT.expression, knee=50.0), st.brightness(offset=1)])
    assert [s.text for s in other.sources()] == [s.text for s in pipeline.sources()]
    assert not np.array_equal(np.stack(other({"image": list(x)})["image"]), out)


def test_products_are_not_left_to_the_compiler():
    """A multiply-add that a compiler may or may not fuse would give other bits elsewhere."""
    text = st.Pipeline(image=[st.value("a * x + 1", a=2)]).sources()[0].text
    assert "(suture::fma(p[0], x, 0.0f)) + 0x1.0000000000000p+0f" in text


def test_survives_json_and_pickle():
    assert pickle.loads(pickle.dumps(SOFT)) == SOFT == operation_from_json(json.loads(json.dumps(SOFT.to_json())))


@pytest.mark.parametrize("text, sentence", [
    ("__import__('os').system('x')", "is not allowed in"), ("x.real", "'x.real' is not allowed"), ("x if x else 1", "is not allowed"),
    ("[x][0]", "is not allowed"), ("y + x", "'y' is not allowed"), ("x +", "is no expression"), ("'a'", "is not allowed"),
    ("lambda: x", "is not allowed"), ("1e99 * x", "is not allowed"), ("log(x, 2)", "is not allowed"), ("x; 1", "is no expression"),
    ("+".join("x" * 300), "expected at most 256 terms"),
])
def test_all_else_is_refused(text, sentence):
    with pytest.raises(st.Error, match="suture: value: ") as caught:
        st.value(text)
    assert sentence in str(caught.value)
    with pytest.raises(st.Error, match="does not use b"):
        st.value("x", b=1)


@pytest.mark.long
@pytest.mark.parametrize("compiler, flags", [("g++", "-O3"), ("clang++", "-O0"), ("clang++", "-O3")])
def test_every_compiler_gives_the_same_bits(compiler, flags, monkeypatch):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    x = [np.linspace(-300, 900, 210, dtype=np.float32).reshape(1, 5, 6, 7)]
    here = st.digest(st.Pipeline(image=[SOFT])(x)[0])
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.setenv("SUTURE_CXXFLAGS", flags)
    assert st.digest(st.Pipeline(image=[SOFT])(x)[0]) == here
