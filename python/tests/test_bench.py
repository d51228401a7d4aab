# SPDX-License-Identifier: Apache-2.0
"""The table of operations knows every operation, and its script runs."""
import json
import subprocess
import sys

import pytest

from suture.operations import generated


@pytest.fixture
def script(root):
    return root / "python/bench/operations.py"


def run(script, *given):
    done = subprocess.run([sys.executable, str(script), *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_prints_a_row_for_each_operation(script):
    made = run(script, "--quick", "--only", "invert", "hsv_jitter", "--positions", "alone", "--types", "float32", "uint8")
    rows = [line.split("|")[1:4] for line in made.splitlines() if line.startswith("| `")]
    assert {name.strip(" `") for name, *_ in rows} == {"invert", "hsv_jitter"}
    assert all(float(one) > 0 and float(two) > 0 for _, one, two in rows)


def test_every_operation_has_an_example(script):
    program = "import operations as o; print(*(o.example(n).name for n in o.generated.__all__))"
    done = subprocess.run([sys.executable, "-c", program], cwd=script.parent, capture_output=True, text=True)
    assert done.stdout.split() == list(generated.__all__), done.stderr


@pytest.mark.long
def test_later_runs_add_rows(script, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("invert", "clamp"):
        run(script, "--quick", "--only", name, "--positions", "alone", "--types", "float32", "--out", str(tmp_path))
    rows = json.loads((tmp_path / "operations.json").read_text())["rows"]
    assert set(rows) == {"invert", "clamp"} and all(set(row["ns"]) == {"float32 alone 1", "float32 alone 2"} for row in rows.values())
    assert "| `clamp` |" in (tmp_path / "operations.md").read_text()
    assert (tmp_path / "operations.png").read_bytes().startswith(b"\x89PNG")
