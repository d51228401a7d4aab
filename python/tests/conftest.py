# SPDX-License-Identifier: Apache-2.0
"""One cache for a run of the tests, and quick compilation: the bits do not depend on optimization."""
import importlib
import os
import pathlib
import sys
import tempfile
from importlib import metadata

import pytest
from packaging.version import Version

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("SUTURE_CXXFLAGS", "-O0")
_cache = tempfile.TemporaryDirectory(prefix="suture-tests-")
os.environ.setdefault("SUTURE_CACHE", _cache.name)
os.chmod(_cache.name, 0o700)

WHOLE = os.environ.get("SUTURE_TEST_ALL") == "1"  # then nothing that is missing is skipped


# For each marker the package that its tests need, and the oldest version that serves (0: any).
FRAMEWORKS = {"torch": ("torch", "2.4"), "monai": ("monai", "1.3"), "lightning": ("lightning", "0"),
              "nnunet": ("nnunetv2", "0"), "store": ("tensorstore", "0.1.80"), "types": ("mypy", "2")}


def library(name):
    """The module `name` of a framework; without it the tests of the file are skipped, or fail if all are wanted."""
    reason = None if WHOLE else _missing(*next(f for f in FRAMEWORKS.values() if f[0] == name.partition(".")[0]))
    if reason:
        pytest.skip(reason, allow_module_level=True)
    return importlib.import_module(name)


def pytest_collection_modifyitems(items):
    """Tests that need more than numpy are left out where that is not installed, unless SUTURE_TEST_ALL=1 asks for all."""
    missing = {"cuda": _no_cuda()}
    if not WHOLE:
        missing.update({marker: _missing(*framework) for marker, framework in FRAMEWORKS.items()})
    for marker, reason in missing.items():
        if reason:
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=reason))
    for marker, reason in (("long", "SUTURE_TEST_LONG=1 runs it" if os.environ.get("SUTURE_TEST_LONG") != "1" else None),
                           ("thorough", "tests/run --all runs it" if os.environ.get("SUTURE_TEST_SHORT") == "1" else None)):
        for item in items:
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _missing(name, least):
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is not installed"
    return None if Version(found) >= Version(least) else f"{name} is {found}, older than {least}"


def _no_cuda():
    from suture import CompileError
    from suture.arrays import cuda
    from suture.backend import compiler

    try:
        compiler.cuda_compiler()
    except CompileError:
        return "no nvcc"
    return None if cuda.device_count() else "no GPU, and no emulator on LD_LIBRARY_PATH"


@pytest.fixture
def root():
    return ROOT
