# SPDX-License-Identifier: Apache-2.0
"""What the operations are written from: defaults that have a name in Python, and headers that cannot be read."""
import importlib.util
import json
import os
import pathlib

import pytest

from suture.operations.operation import IMAGENET, STAIN_REFERENCE


@pytest.fixture
def writer(root):
    spec = importlib.util.spec_from_file_location("write_operations", root / "python/write_operations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_defaults_with_a_name_are_those_of_the_headers(writer):
    printed = os.environ.get("SUTURE_DESCRIPTION")  # what a build of the tests has made
    description = json.loads(pathlib.Path(printed).read_text()) if printed else writer.described(os.environ.get("CXX", "c++"))
    stains = [list(row) for row in STAIN_REFERENCE.stains]
    named = {"channel_statistics": [list(IMAGENET.mean), list(IMAGENET.standard_deviation)],
             "stain_reference": [stains, list(STAIN_REFERENCE.max_concentration)], "stain_matrix": stains, "label_changes": []}
    assert set(named) == set(writer.NAMED_DEFAULTS)
    seen = set()
    for op in description["operations"]:
        for parameter in op["parameters"]:
            kind = parameter.get("kind")
            if kind in named:
                assert parameter["default"] == named[kind], (op["name"], parameter["name"])
                seen.add(kind)
    assert seen == set(named)


@pytest.mark.parametrize("text, words", [
    ("struct gain {\n};\n", "no comment directly above"),
    ("// One.\nstruct gain {\n};\n\n// Another.\nstruct gain {\n};\n", "found 2"),
    ("// Of another.\nstruct shift {\n};\n", "found 0")])
def test_a_header_without_one_comment_is_refused(writer, tmp_path, monkeypatch, text, words):
    (tmp_path / "suture").mkdir()
    (tmp_path / "suture/gain.hpp").write_text(text)
    monkeypatch.setattr(writer, "include", tmp_path)
    with pytest.raises(writer.Mistake, match=words):
        writer.comment_of("gain.hpp", "gain")


def test_a_kind_that_python_does_not_know_is_refused(writer):
    with pytest.raises(writer.Mistake, match="quaternion"):
        writer.hint_of("quaternion", {})
