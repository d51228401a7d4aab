# SPDX-License-Identifier: Apache-2.0
"""The notebooks of docs/notebooks, cell by cell, as plain Python: nothing of Jupyter is needed."""
import ast
import base64
import json

import numpy as np
import pytest

from suture import pictures
from test_demo import decoded

NOTEBOOKS = {"ct": 3, "nnunet": 1, "slides": 3}  # and how many pictures they show


def cells(root, name):
    notebook = json.loads((root / f"docs/notebooks/{name}.ipynb").read_text())
    assert notebook["nbformat"] == 4
    return notebook["cells"]


def executed(code, known, name):
    """What the last expression of a cell is, as Jupyter shows it."""
    tree = ast.parse("".join(code), name)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), known)
    return eval(compile(last, name, "eval"), known) if last else None


@pytest.mark.long
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs_and_shows_what_it_did(name, root, monkeypatch, capsys):
    if name == "slides":
        pytest.importorskip("PIL")
    monkeypatch.chdir(root / "docs/notebooks")
    shown, known, results = [], {}, []
    monkeypatch.setattr(pictures, "show", shown.append)
    for k, cell in enumerate(c for c in cells(root, name) if c["cell_type"] == "code"):
        results.append(executed(cell["source"], known, f"{name}, cell {k}"))
        kept = [o for o in cell["outputs"] if "image/png" in o.get("data", {})]
        for output, picture in zip(kept, shown[len(shown) - len(kept):]):
            assert np.array_equal(decoded(base64.b64decode("".join(output["data"]["image/png"]))), picture)
    assert len(shown) == NOTEBOOKS[name]
    for picture in shown:
        assert picture.ndim == 3 and (picture.max(-1) > 20).mean() > .2
    if name == "ct":
        assert results[-1] is True and results[3][1:] == (True, True)
    if name == "nnunet":  # nnU-Net's random patches extend over the border by the margin
        assert known["rule"].margin == known["shape"]["margin"]
    if name == "slides":
        before, after = results[2]
        assert after.mean() < .8 * before.mean()


def test_pictures_are_kept_and_small(root):
    for name, count in NOTEBOOKS.items():
        outputs = [o for c in cells(root, name) for o in c.get("outputs", [])]
        files = [base64.b64decode("".join(o["data"]["image/png"])) for o in outputs if "image/png" in o.get("data", {})]
        assert len(files) == count and all(len(f) < 300_000 for f in files)
        assert not any(o["output_type"] == "error" for o in outputs)
