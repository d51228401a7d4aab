# SPDX-License-Identifier: Apache-2.0
"""What pip installs: one wheel for every Python, with the headers and its types, that needs NumPy and a C++ compiler."""
import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import suture as st
from test_pipeline import BATCH, SMALL, cpp_digests

PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")  # t: without a global lock
ROOM = pathlib.Path(__file__).parent


def test_the_grammar_is_that_of_the_oldest_python(root):
    """The grammar is that of 3.11, and newer names of the standard library are not imported."""
    files = sorted((root / "python/suture").rglob("*.py"))
    assert len(files) > 20
    for file in files:
        text = file.read_text()
        ast.parse(text, str(file), feature_version=(3, 11))
        assert not re.search(r"typing import .*\b(override|TypeIs|ReadOnly|TypeAliasType)\b|itertools import .*\bbatched\b", text), file


def run(command, **settings):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **settings)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Made as a release is: a source archive of the checkout, and the wheel from that archive alone."""
    folder = tmp_path_factory.mktemp("wheel")
    made = environment(sys.executable, folder / "build", "build==1.6.1")
    run([made, "-m", "build", "--outdir", folder / "dist", ROOM.parent])
    archive, = (folder / "dist").glob("*.tar.gz")
    assert archive.name == f"suture-{st.__version__}.tar.gz"
    file, = (folder / "dist").glob("*.whl")
    return file


def environment(python, folder, *packages):
    """A fresh environment of an interpreter with packages from PyPI, and its interpreter."""
    run([python, "-m", "venv", folder])
    made = folder / "bin/python"
    run([made, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages])
    return made


def interpreter(version):
    """Of PATH, or of pyenv."""
    found = shutil.which(f"python{version}")
    if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
        return found
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    known = sorted(root.glob(f"{version.rstrip('t')}.*/bin/python{version}")) if root.is_dir() else []
    return known[-1] if known else None


@pytest.mark.long
def test_the_wheel_is_pure_and_has_headers_and_types(wheel, root):
    assert wheel.name == f"suture-{st.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        metadata = packed.read(f"suture-{st.__version__}.dist-info/METADATA").decode()
    headers = {f"suture/include/{file.relative_to(root / 'include')}" for file in (root / "include").rglob("*.?[pu][ph]*")}
    assert len(headers) > 200 and headers <= names and "suture/py.typed" in names
    assert {f"suture/{f.relative_to(root / 'python/suture')}" for f in (root / "python/suture").rglob("*.py")} <= names
    assert not [n for n in names if n.endswith((".so", ".pyc")) or "tests" in n]
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert needed == ["Requires-Dist: numpy>=1.23.2"]
    assert "License-Expression: Apache-2.0" in metadata and any(name.endswith("licenses/LICENSE") for name in names)


def test_the_version_stands_in_one_place(root):
    """The header has it, in the form that CMake reads; the package and its metadata take it from there."""
    header = (root / "include/suture/base/config.hpp").read_text()
    numbers = [re.search(rf"^#define SUTURE_VERSION_{part} ([0-9]+)$", header, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    assert st.__version__ == ".".join(numbers)
    project = (root / "python/pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in project and not re.search(r"^version *=", project, re.M)
    assert "SUTURE_VERSION_(MAJOR|MINOR|PATCH)" in (root / "CMakeLists.txt").read_text()
    assert not re.search(r"^version:", (root / "CITATION.cff").read_text(), re.M)


README = """
import sys
import numpy as np
import suture
assert "site-packages" in suture.__file__, suture.__file__
random = np.random.default_rng(7)
ct = random.normal(0, 200, (70, 190, 200)).astype(np.int16)
organs = random.integers(0, 4, ct.shape, np.uint8)
exec(sys.stdin.read())
image, seg = np.asarray(out["image"]), np.asarray(out["seg"])
print(image.shape, image.dtype, seg.shape, seg.dtype, np.isfinite(image).all(), sorted(set(seg.ravel().tolist()))[-1] <= 3)
"""


@pytest.mark.long
def test_the_lines_of_the_readme_run_from_the_wheel(wheel, tmp_path, root):
    """In a fresh environment with NumPy alone, outside of the checkout."""
    lines, = re.findall(r"^```python\n(.*?)^```$", (root / "README.md").read_text(), re.M | re.S)
    made = environment(sys.executable, tmp_path / "fresh", wheel)
    said = run([made, "-I", "-c", README], cwd=tmp_path, input=lines, env={**os.environ, "SUTURE_CACHE": str(tmp_path / "cache")})
    assert said.split("\n")[-2] == "(1, 1, 96, 96, 96) float16 (1, 1, 96, 96, 96) int64 True True"


PROGRAM = """
import sys
sys.path.insert(1, sys.argv[1])
import suture, numpy
assert "site-packages" in suture.__file__, suture.__file__
from suture.backend import compiler
assert "site-packages" in str(compiler.include_directory())
from test_pipeline import example_digests
print(*example_digests())
"""


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
def test_a_fresh_environment_prints_the_digests_of_the_cpp_example(version, wheel, tmp_path, root):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version}")
    made = environment(python, tmp_path / "fresh", wheel, "pytest")
    compilers = tmp_path / "bin"  # and nothing else: no nvcc
    compilers.mkdir()
    for name in ("g++", "c++", "as", "ld", "cc1plus"):
        if shutil.which(name):
            (compilers / name).symlink_to(os.path.realpath(shutil.which(name)))
    # One cache for all: what is compiled is no part of Python's ABI.
    cache = pathlib.Path(os.environ["SUTURE_CACHE"]) / "of the wheel"
    ours = run([made, "-I", "-c", PROGRAM, ROOM], cwd=tmp_path, env={**os.environ, "PATH": str(compilers), "SUTURE_CACHE": str(cache)})
    assert ours.split() == cpp_digests(root) and len(list(cache.glob("*.so"))) == 1


RECIPES = """
import sys
sys.path[:0] = sys.argv[1:]
import suture as st
from suture.recipes_ahead import run_small
for name, made in run_small():
    print(name, *(f"{st.digest(item):016x}" for key in ("image", "seg") if key in made for whole in made[key]
                  for item in (whole if isinstance(whole, list) else [getattr(whole, "array", whole)])))
"""


def test_recipes_that_come_with_a_wheel_read_their_batches(monkeypatch):
    """Each one gets as far as what it would compile: the long test compiles it."""
    from suture import recipes_ahead
    from suture.pipeline import pipeline as module

    class Reached(Exception):
        pass

    def compiled(_source):
        raise Reached

    for make in recipes_ahead.RECIPES.values():
        pipeline, batch = make()
        with monkeypatch.context() as patch, pytest.raises(Reached):
            patch.setattr(module, "Compiled", compiled)
            pipeline({**batch, "id": recipes_ahead.IDS}, seed=1)


@pytest.mark.long
def test_recipes_that_come_with_a_wheel_need_no_compiler(root, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(root / "python", source / "python", ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
    (source / "include").symlink_to(root / "include")
    (source / "LICENSE").symlink_to(root / "LICENSE")
    kept = source / "python/suture/prebuilt"
    settings = {k: v for k, v in os.environ.items() if not k.startswith("SUTURE_")} | {"SUTURE_CXXFLAGS": "-O0"}
    ours = run([sys.executable, "-c", RECIPES, source / "python"], env={**settings, "SUTURE_CACHE": str(kept)})
    assert ours.count("\n") == 9
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", tmp_path, source / "python"])
    wheel, = tmp_path.glob("*.whl")
    made = environment(sys.executable, tmp_path / "fresh", wheel)
    del settings["SUTURE_CXXFLAGS"]
    theirs = run([made, "-I", "-c", RECIPES], cwd=tmp_path,
                 env={**settings, "PATH": str(tmp_path), "SUTURE_JIT": "never", "SUTURE_CACHE": str(tmp_path / "none")})
    assert theirs == ours and not (tmp_path / "none").exists()


FUNCTIONS = """
import sys
sys.path[:0] = sys.argv[1:2]
from suture import recipes_ahead
for name in sys.argv[2:]:
    functions = getattr(recipes_ahead, name)
    assert len(functions) > 6
    for each, function in functions.items():
        function()
        print(each)
"""


@pytest.mark.parametrize("names", [["PLAIN"], pytest.param(["PLAIN", "FUNCTIONS"], marks=pytest.mark.long)], ids=["plain", "all"])
def test_functions_that_were_compiled_ahead_need_no_compiler(names, root, tmp_path):
    """Compiled into a cache that is shared, as the one of a wheel is; then called with an empty PATH."""
    cache = tmp_path / "shared"
    cache.mkdir(mode=0o700)
    settings = {k: v for k, v in os.environ.items() if not k.startswith("SUTURE_")}
    call = [sys.executable, "-c", FUNCTIONS, root / "python", *names]
    ours = run(call, env={**settings, "SUTURE_CXXFLAGS": "-O0", "SUTURE_CACHE": str(cache)})
    if names == ["PLAIN"]:
        assert len(list(cache.glob("*.so"))) == 1, "one compile, not one for each"
    del settings["PATH"]
    settings.pop("CXX", None)
    none = tmp_path / "none"
    theirs = run(call, env={**settings, "PATH": str(none), "SUTURE_JIT": "never", "SUTURE_SHARED_CACHE": str(cache),
                            "SUTURE_CACHE": str(none)})
    assert theirs == ours and not none.exists()


def test_functions_are_compiled_ahead_for_a_device_too(monkeypatch):
    """Each function that takes arrays is, by the header and the executor of the device; those of plain numbers are not."""
    from suture import recipes_ahead
    from suture.backend import jit

    built = []
    monkeypatch.setattr(jit, "build", built.append)
    one = np.arange(2 * 9 * 9 * 9).reshape(2, 9, 9, 9).astype(np.int16)
    monkeypatch.setattr(recipes_ahead, "FUNCTIONS", {"bounding_box": lambda: st.bounding_box([one[:1]])})
    assert [name for name, _ in recipes_ahead.run_functions("cuda")] == [*recipes_ahead.PLAIN, "bounding_box"]
    assert [made.text for made in built] == [
        "#include <suture/abi/mask.cuh>\nSUTURE_ABI_FUNCTION(suture::abi::bounding_box<std::int16_t, suture::cuda>)\n"]
    assert built[0].cuda
    built.clear()
    assert len(list(recipes_ahead.run_functions())) == len(recipes_ahead.PLAIN) + 1 and not built


CUDA_PROGRAM = """
import sys
sys.path.insert(1, sys.argv[1])
import suture as st
from suture.backend import compiler
from suture.arrays.cuda import DeviceArray, synchronize
from test_pipeline import BATCH, SMALL
found = compiler.cuda_compiler().path
assert "site-packages" in found, found
out = SMALL({**BATCH, "image": [DeviceArray.of(s, 0) for s in BATCH["image"]], "seg": [DeviceArray.of(m, 0) for m in BATCH["seg"]]}, seed=1)
synchronize()
print(*(f"{st.digest(s):016x}" for key in ("image", "seg") for s in out[key].numpy()))
"""


@pytest.mark.long
@pytest.mark.cuda
def test_the_compiler_of_pip_makes_the_cuda_half(wheel, tmp_path):
    """Without a toolkit on PATH, on a GPU or under the emulator: the bits of the CPU."""
    made = environment(sys.executable, tmp_path / "fresh", f"{wheel}[cuda]", "pytest")
    path = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if not os.path.exists(os.path.join(p, "nvcc")))
    cleared = {k: v for k, v in os.environ.items() if k not in ("NVCC", "CUDA_HOME", "CUDA_PATH")}
    said = run([made, "-I", "-c", CUDA_PROGRAM, ROOM], cwd=tmp_path,
               env={**cleared, "PATH": path, "SUTURE_CACHE": str(tmp_path / "cache")})
    here = SMALL(BATCH, seed=1)
    assert said.split() == [f"{st.digest(s):016x}" for key in ("image", "seg") for s in here[key]]


TYPED = """
import numpy as np
import suture as st

chain = [st.window(center=40, width=400), st.random_crop(size=dict(z=4, y=8, x=8)), st.cast("float16")]
pipeline = st.Pipeline(image=chain, seg=st.labels(dtype="int64"))
scan: st.Volume = st.Volume(np.zeros((4, 8, 8), np.int16), axes="zyx", spacing=dict(z=5, y=.7, x=.7))
plan: st.Plan = pipeline.plan({"image": [scan], "id": ["a"]}, seed=1)
center: float = st.window(center=40, width=400).center
weights = st.sliding_window(lambda x: x, scan, size=4, views=st.mirrors("zyx"))
"""
MISTAKES = ["st.window(center=40, widht=400)", "st.random_gamma(law='normal')", "st.random_crop(sizes=3)",
            "st.Volume(np.zeros((4, 8, 8)))", "st.Augment(pipeline, seed=1, wrld=2)", "pipeline.plan({}, sed=1)", "st.fit_moments([], ddoff=1)"]
MISTAKEN = TYPED + "\n" + "\n".join(MISTAKES) + "\n"


@pytest.mark.parametrize("checker", [pytest.param("mypy", marks=pytest.mark.types), pytest.param("basedpyright", marks=pytest.mark.long)])
def test_types_are_checked(checker, root, tmp_path):
    """The package itself, what users write, and what they write wrong."""
    pytest.importorskip(checker)
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(TYPED)
    wrong.write_text(MISTAKEN)
    settings = dict(cwd=root / "python", env={**os.environ, "MYPYPATH": str(root / "python"), "PYTHONPATH": str(root / "python")})
    if checker == "mypy":
        command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "--cache-dir", tmp_path / "mypy"]
        package = ["suture"]
    else:  # what stands beside a framework sees the types of that one alone where it is installed
        alone = [f for f in (root / "python/suture").glob("*.py") if f.stem not in ("torch", "monai", "lightning")]
        config = tmp_path / "pyrightconfig.json"
        config.write_text('{"typeCheckingMode": "standard", "pythonVersion": "3.11", "reportMissingImports": "none", '
                          f'"reportMissingModuleSource": "none", "extraPaths": ["{root / "python"}"], '
                          f'"include": {json.dumps([str(f) for f in (*alone, right, wrong)])}}}')
        command, package = [sys.executable, "-m", "basedpyright", "--level", "error", "-p", config], []
    if checker == "mypy":
        run([*command, *package], **settings)
        run([*command, right], **settings)
        done = subprocess.run([str(c) for c in [*command, wrong]], capture_output=True, text=True, **settings)
        assert done.stdout.count("error:") == len(MISTAKES) and "widht" in done.stdout and "normal" in done.stdout
    else:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **settings)
        errors = [line for line in done.stdout.splitlines() if " error: " in line]
        assert errors and all("wrong.py" in line for line in errors), done.stdout[-3000:]
        assert {line.split("wrong.py:")[1].split(":")[0] for line in errors} == {str(MISTAKEN.count("\n") - k) for k in range(len(MISTAKES))}
