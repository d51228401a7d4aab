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
    assert pickle.loads(pickle.dumps(op)) == copy.deepcopy(op) == op
    changed.write_text(FILE.read_text())
    with pytest.raises(st.Error, match="soft_knee.hpp has changed since the operation was made; make it again"):
        st.Pipeline(image=[op]).sources()


def test_the_text_has_a_path_and_names_alone(tmp_path):
    """The header is included where it lies; its path and the names are checked."""
    text = st.Pipeline(image=[st.value_cpp(FILE, knee=1)]).sources()[0].text
    assert f'#include "{FILE}"  // ' in text and "suture::abi::own<::soft_knee, &::soft_knee::knee>" in text
    for name in ('a"b.hpp', "a\nb.hpp", "a\\b.hpp"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "soft_knee.hpp").write_text(FILE.read_text())
        with pytest.raises(st.Error, match="path: expected one that #include can name"):
            st.value_cpp(folder / "soft_knee.hpp")
    with pytest.raises(st.Error, match="struct: expected the name of a struct"):
        st.value_cpp(FILE, struct="soft_knee> evil<int")
    with pytest.raises(st.Error, match="expected a name of at most 64"):
        st.value_cpp(FILE, **{"knee, &::x": 1.0})


def test_files_beside_the_header_are_found(tmp_path):
    (tmp_path / "beside.hpp").write_text("inline float twice(float x) { return x + x; }\n")
    (tmp_path / "uses.hpp").write_text('#include "beside.hpp"\nstruct uses {\n  static constexpr std::string_view name = "uses";\n'
                                       "  float operator()(float x) const { return twice(x); }\n};\n")
    out = st.Pipeline(image=[st.value_cpp(tmp_path / "uses.hpp")])([SCAN])[0]
    assert np.array_equal(out, SCAN + SCAN)


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
