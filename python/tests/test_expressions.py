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
    """A multiply-add that a compiler may or may not fuse would give other bits elsewhere: the header calls fma for products."""
    text = st.Pipeline(image=[st.value("a * x + 1", a=2)]).sources()[0].text
    assert "call<suture::abi::expression::plus, suture::abi::expression::call<suture::abi::expression::times, " in text
    x = np.float32(1.0000001)
    out = st.Pipeline(image=[st.value("x * x - a", a=float(x))])([np.full((1, 1, 1, 4), x)])[0]
    assert (out == np.float32(x * x) - x).all()


def test_numbers_compile_nothing():
    texts = {st.Pipeline(image=[op]).sources()[0].text for op in (
        st.value("x * 2.5 + 1"), st.value("x * 1e30 + 7"), st.value("x * .125 + 1.5"))}
    assert len(texts) == 1


def test_whole_powers_are_products():
    x = np.array([-1000, -2.5, -1, -0.0, 0, .5, 2, 3, 1e4], np.float32)
    text = "where(p > 0, x ** 2, x ** 3) + x ** -1 * 0 + (x ** 0 - 1) + (-x) ** 4 * 0"
    pipeline = st.Pipeline(image=[st.value(text, p=1.0)])
    out = pipeline([x.reshape(1, 1, 1, -1)])[0].ravel()
    inside = x != 0  # of which 1 / x is finite
    assert np.array_equal(out[inside], (x * x)[inside])
    assert np.array_equal(out, st.value(text, p=1.0).numpy(x), equal_nan=True)
    cubes = st.Pipeline(image=[st.value(text, p=-1.0)])([x.reshape(1, 1, 1, -1)])[0].ravel()
    assert np.array_equal(cubes[inside], (x * x * x)[inside])


def test_other_powers_are_not_a_number_below_zero():
    x = np.array([-2, 0, 4], np.float32)
    for op in (st.value("x ** 2.5"), st.value("pow(x, 2)"), st.value("x ** p", p=2.0), st.value("x ** 65")):
        made = st.Pipeline(image=[op])([x.reshape(1, 1, 1, 3)])[0].ravel()
        assert np.isnan(made[0]) and np.isnan(op.numpy(x)[0])
        assert np.allclose(made[1:], op.numpy(x)[1:], rtol=2e-5)
    assert "NaN where x is below 0" in " ".join(st.value.__doc__.split())


@pytest.mark.parametrize("text", ["abs(" * 40 + "x" + ")" * 40, "-" * 50 + "x", "+".join("x" * 60)])
def test_nested_terms_do_not_grow(text):
    """Each argument is written once, so the text for the compiler is as long as the expression."""
    assert len(st.Pipeline(image=[st.value(text)]).sources()[0].text) < 200 * len(text)


def test_survives_json_and_pickle():
    assert pickle.loads(pickle.dumps(SOFT)) == SOFT == operation_from_json(json.loads(json.dumps(SOFT.to_json())))


@pytest.mark.parametrize("text, sentence", [
    ("__import__('os').system('x')", "is not allowed in"), ("x.real", "'x.real' is not allowed"), ("x if x else 1", "is not allowed"),
    ("[x][0]", "is not allowed"), ("y + x", "'y' is not allowed"), ("x +", "is no expression"), ("'a'", "is not allowed"),
    ("lambda: x", "is not allowed"), ("1e99 * x", "is not allowed"), ("log(x, 2)", "is not allowed"), ("x; 1", "is no expression"),
    ("+".join("x" * 300), "expected at most 256 terms and 64 inside one another, got 599 and 300. Write an operation in C++"),
    ("-" * 3000 + "x", "suture: value: "), ("-" * 80 + "x", "expected at most 256 terms and 64"), ("(" * 300 + "x" + ")" * 300, "is no expression"),
    ("x" * 5000, "expected at most 4096 characters, got 5000"), ("abs(" * 100 + "x" + ")" * 100, "suture: value: "),
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
