# SPDX-License-Identifier: Apache-2.0
"""One cache for a run of the tests, and quick compilation: the bits do not depend on optimization."""
import importlib
import os
import pathlib
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("SUTURE_CXXFLAGS", "-O0")
_cache = tempfile.TemporaryDirectory(prefix="suture-tests-")
os.environ.setdefault("SUTURE_CACHE", _cache.name)
os.chmod(_cache.name, 0o700)

WHOLE = os.environ.get("SUTURE_TEST_ALL") == "1"  # then nothing that is missing is skipped


def library(name, least=None):
    """The module `name` of at least that version; without it the tests of the file are skipped, or fail if all are wanted."""
    return importlib.import_module(name) if WHOLE else pytest.importorskip(name, minversion=least)


FRAMEWORKS = {"torch": "torch", "monai": "monai", "lightning": "lightning", "nnunet": "nnunetv2"}


def pytest_collection_modifyitems(items):
    """Tests that need more than numpy are left out where that is not installed, unless SUTURE_TEST_ALL=1 asks for all."""
    for marker, module in (*FRAMEWORKS.items(), ("cuda", None)):
        if WHOLE and module:
            continue
        reason = _missing(module) if module else _no_cuda()
        if reason:
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=reason))
    if os.environ.get("SUTURE_TEST_LONG") != "1":
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="SUTURE_TEST_LONG=1 runs it"))


def _missing(module):
    import importlib.util

    return None if importlib.util.find_spec(module) else f"{module} is not installed"


def _no_cuda():
    from suture import CompileError, cuda, jit

    try:
        jit.cuda_compiler()
    except CompileError:
        return "no nvcc"
    return None if cuda.device_count() else "no GPU, and no emulator on LD_LIBRARY_PATH"


@pytest.fixture
def root():
    return ROOT
