# SPDX-License-Identifier: Apache-2.0
"""What a type checker sees of calls: what they return, and a setting that is misspelt."""
import pytest

api = pytest.importorskip("mypy.api")

PROGRAM = """
import suture as st
train = st.Pipeline(image=[st.random_flip()])
reveal_type(train({"image": []}))
reveal_type(st.Augment(train, seed=1)({"image": []}))
reveal_type(st.Volume.load("a.nii"))
reveal_type(st.show({}))
st.Augment(train, sed=1)
train({"image": []}, epok=1)
st.random_flip(probabilty=1)
"""


@pytest.mark.thorough
def test_a_type_checker_sees_what_calls_return(root, tmp_path, monkeypatch):
    monkeypatch.setenv("MYPYPATH", str(root / "python"))
    (tmp_path / "program.py").write_text(PROGRAM)
    told, _, _ = api.run([str(tmp_path / "program.py"), "--follow-imports=silent", "--ignore-missing-imports",
                          f"--cache-dir={tmp_path / 'cache'}"])
    lines = {int(line.split(":")[1]): line for line in told.splitlines() if line.startswith(str(tmp_path))}
    for number, words in ((4, "batch.Batch"), (5, "batch.Batch"), (6, "volume.Volume"), (7, "Sheet")):
        assert 'Revealed type is "suture.' in lines[number] and words in lines[number]
    assert '"sed"' in told and '"epok"' in told and '"probabilty"' in told
