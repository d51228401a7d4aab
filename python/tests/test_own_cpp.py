# SPDX-License-Identifier: Apache-2.0
"""Value operations out of a C++ file."""
import copy
import json
import pathlib
import pickle

import numpy as np
import pytest

import suture as st

FILE = pathlib.Path(__file__).parent / "soft_knee.hpp"
SCAN = np.linspace(-300, 900, 210, dtype=np.float32).reshape(1, 5, 6, 7)
OTHER = st.value("where(x > knee, knee * (1 + log(x / knee)), x)", knee=100.0)


def knee(value):
    return st.Pipeline(image=[st.value("x + 0"), st.value_cpp(FILE, knee=value), st.gaussian_noise(sigma=1.)])


def test_joins_a_chain():
    out = st.Pipeline(image=[st.value_cpp(FILE, knee=100)])([SCAN])[0]
    assert np.allclose(out, OTHER.numpy(SCAN), rtol=1e-6) and not np.array_equal(out, SCAN)
    assert np.array_equal(out, st.Pipeline(image=[st.value_cpp(FILE)])([SCAN])[0])  # 100 where nothing is said
    first, second = knee(100), knee(50)
    assert [s.text for s in first.sources()] == [s.text for s in second.sources()]
    batch = {"image": [SCAN], "id": [1]}
    assert not np.array_equal(first(batch)["image"][0], second(batch)["image"][0])
    with pytest.raises(st.Error, match="suture: soft_knee: sample 0 .*knee -1 must be positive"):
        knee(-1)(batch)


def test_another_file_is_another_module(tmp_path):
    changed = tmp_path / "soft_knee.hpp"
    changed.write_text(FILE.read_text().replace("x > knee ?", "x >= knee ?"))
    texts = {st.Pipeline(image=[st.value_cpp(f, knee=1)]).sources()[0].text for f in (FILE, changed)}
    assert len(texts) == 2
    op = st.value_cpp(changed, knee=1)
    changed.write_text("")  # it was read
    assert pickle.loads(pickle.dumps(op)) == copy.deepcopy(op) == op
    assert "x >= knee ?" in st.Pipeline(image=[op]).sources()[0].text


def test_headers_beside_it(tmp_path, monkeypatch):
    """They are found wherever Python runs, and a change of one is a change of the operation."""
    (tmp_path / "twice.hpp").write_text('#include "factor.hpp"\nstruct twice {\n  static constexpr std::string_view name = "twice";\n'
                                        "  SUTURE_FN float operator()(float x) const { return x * factor; }\n};\n")
    monkeypatch.chdir(tmp_path.parent)
    for factor in (2, 5):
        (tmp_path / "factor.hpp").write_text(f"#pragma once\ninline constexpr float factor = {factor};\n")
        made = st.Pipeline(image=[st.value_cpp(f"{tmp_path.name}/twice.hpp")])([SCAN])[0]
        assert np.array_equal(made, SCAN * factor)


def test_records_bring_no_code_along():
    pipeline, batch = knee(100), {"image": [SCAN], "id": [1]}
    plan = pipeline.plan(batch, seed=3)
    record = json.loads(json.dumps(plan.record(plan.run())))
    assert np.array_equal(st.replay(record, batch, verify=True, pipeline=pipeline)["image"][0], plan.run()["image"][0])
    with pytest.raises(st.Error, match=r"code is not taken from a record; make the pipeline with 'soft_knee.hpp'"):
        st.replay(record, batch)
    with pytest.raises(st.Error, match=r"another pipeline: roles.image\[1\].parameters.knee is 50.0 here and 100.0"):
        st.replay(record, batch, pipeline=knee(50))


def test_mistakes_get_one_sentence(tmp_path):
    for make, sentence in ((lambda: st.value_cpp(tmp_path / "none.hpp"), "none.hpp cannot be read: No such file or directory"),
                           (lambda: st.value_cpp(FILE, struct="other"), "defines no struct other; name it as the file, or say struct="),
                           (lambda: st.value_cpp(FILE, radius=1), "soft_knee has no member float radius")):
        with pytest.raises(st.Error, match="suture: value_cpp: ") as caught:
            make()
        assert sentence in str(caught.value)
    wrong = tmp_path / "wrong.hpp"
    wrong.write_text("struct wrong {\n  float operator()(float x) const { return x + y; }\n};\n")
    with pytest.raises(st.CompileError, match=r"wrong.hpp:2:.*y.* was not declared|wrong.hpp:2:.*undeclared identifier 'y'"):
        st.Pipeline(image=[st.value_cpp(wrong)])([SCAN])
