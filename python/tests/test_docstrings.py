# SPDX-License-Identifier: Apache-2.0
"""Public names have docstrings in the NumPy style, and the examples in them run."""
import ast
import doctest
import importlib
import inspect
import re
import textwrap

import numpy as np
import pytest

import suture as st
from suture.backend import jit
from suture.operations.operation import Operation

LONGEST = 35  # words of a first sentence
MODULES = [
    "suture", "suture.recipes", "suture.pipeline.batch", "suture.pipeline.record", "suture.feed", "suture.nnunet",
    "suture.demo", "suture.training.command", pytest.param("suture.store", marks=pytest.mark.store), "suture.training.config", "suture.training.metrics",
    *(pytest.param(f"suture.training.{name}", marks=[pytest.mark.monai, pytest.mark.store]) for name in ("run", "segmentation", "tiles")),
    pytest.param("suture.torch", marks=pytest.mark.torch), pytest.param("suture.monai", marks=pytest.mark.monai),
    pytest.param("suture.lightning", marks=pytest.mark.lightning), "suture.nnunet.patches",
    *(pytest.param(f"suture.nnunet.{name}", marks=pytest.mark.nnunet) for name in ("loader", "feed", "trainer", "efficient")),
]


def objects(module):
    """The public functions and classes of a module, by the name that users write."""
    for name in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
        made = getattr(module, name)
        if (inspect.isfunction(made) or inspect.isclass(made)) and made.__module__.startswith("suture") and (
                hasattr(module, "__all__") or made.__module__ == module.__name__):
            yield f"{module.__name__}.{name}", made


def methods(cls):
    """The public methods and properties that a class defines, and its call; with them whether another package defines one too."""
    for base in cls.__mro__:
        if base.__module__.startswith("suture"):
            for name, made in vars(base).items():
                foreign = any(name in vars(other) for other in cls.__mro__ if other is not object and not other.__module__.startswith("suture"))
                if name == "__call__" or not name.startswith("_"):
                    if isinstance(made, (property, classmethod, staticmethod)) or inspect.isfunction(made):
                        yield name, made, foreign


def sections(text):
    """The sections of a docstring by name, and what comes before them as ""."""
    found, name, lines = {"": ""}, "", text.split("\n")
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1]) and len(line) == len(lines[i + 1]):
            name = line
            found[name] = ""
        elif not (name and line == "-" * len(name)):
            found[name] += line + "\n"
    return found


def documented(text):
    """The names that a section lists."""
    return {name.strip().lstrip("*") for line in re.findall(r"^(\S[^:\n]*)", text, re.M) for name in line.split(",")}


def faults_of_summary(text):
    summary = re.split(r"(?<=[.!?])\s|\n\s*\n", text.strip(), maxsplit=1)[0]
    if not re.match(r"[A-Z]", summary):
        yield "does not begin with a capital letter"
    if not summary.endswith("."):
        yield "has no first sentence that ends with a period"
    if len(summary.split()) > LONGEST:
        yield f"begins with a sentence of {len(summary.split())} words"


def body(made):
    return ast.parse(textwrap.dedent(inspect.getsource(made))).body[0]


def raises(made):
    """Whether a function raises, or a function of its module that it calls by name."""
    module = inspect.getmodule(made)

    def in_body(node, deep):
        for each in ast.walk(node):
            if isinstance(each, ast.Raise) and not (isinstance(each.exc, ast.Name) and each.exc.id in ("NotImplementedError", "StopIteration")):
                return True
            if deep and isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
                called = vars(module).get(each.func.id)
                if inspect.isfunction(called) and called.__module__ == module.__name__ and in_body(body(called), False):
                    return True
        return False

    return in_body(body(made), True)


def returns(made):
    """Whether a function has a result."""
    hint = str(inspect.signature(made).return_annotation).strip("'\"")
    return hint not in ("None", "<class 'NoneType'>", "NoReturn")


def faults_of_function(made, text, parameters_elsewhere=frozenset(), example=True):
    found = sections(text)
    yield from faults_of_summary(found[""])
    names = [n for n in inspect.signature(made).parameters if n not in ("self", "cls")]
    missing = [n for n in names if n not in documented(found.get("Parameters", "")) | parameters_elsewhere]
    if missing:
        yield f"Parameters without {', '.join(missing)}"
    if returns(made) and not {"Returns", "Yields"} & set(found):
        yield "no Returns"
    if raises(made) and "Raises" not in found:
        yield "no Raises"
    if example and ">>>" not in found.get("Examples", ""):
        yield "no Examples"


def faults(module):
    for name, made in objects(module):
        text = inspect.getdoc(made) if made.__doc__ else ""
        if not text:
            yield f"{name}: no docstring"
            continue
        if inspect.isfunction(made):
            yield from (f"{name}: {fault}" for fault in faults_of_function(made, text))
            continue
        found = sections(text)
        yield from (f"{name}: {fault}" for fault in faults_of_summary(found[""]))
        fields = set() if getattr(made.__init__, "__module__", "").split(".")[0] != "suture" else {
            n for n in inspect.signature(made).parameters if n not in ("args", "kwargs")}
        missing = sorted(fields - documented(found.get("Parameters", "")) - documented(found.get("Attributes", "")))
        if missing:
            yield f"{name}: Parameters without {', '.join(missing)}"
        checks = [vars(made)[n] for n in ("__init__", "__post_init__") if inspect.isfunction(vars(made).get(n))
                  and inspect.unwrap(vars(made)[n]).__code__.co_filename != "<string>"]
        if issubclass(made, Operation):
            continue
        if any(raises(check) for check in checks) and "Raises" not in found:
            yield f"{name}: no Raises"
        if ">>>" not in found.get("Examples", "") and not issubclass(made, BaseException):
            yield f"{name}: no Examples"
        for method, given, foreign in methods(made):
            text = inspect.getdoc(given.fget if isinstance(given, property) else given)
            what = f"{name}.{method}"
            if not text:
                if not foreign:
                    yield f"{what}: no docstring"
            elif isinstance(given, property):
                yield from (f"{what}: {fault}" for fault in faults_of_summary(text))
            elif foreign:
                yield from (f"{what}: {fault}" for fault in faults_of_summary(sections(text)[""]))
            else:
                function = given.__func__ if isinstance(given, (classmethod, staticmethod)) else given
                yield from (f"{what}: {fault}" for fault in faults_of_function(function, text, example=False))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_have_the_sections_of_numpy(name):
    found = sorted(set(faults(importlib.import_module(name))))
    assert not found, "\n".join([f"{len(found)} faults", *found])


class Asked(Exception):
    """Raised in place of a call."""


class Part:
    """A function of a module that has many, with the interface of a module of its own."""

    def __init__(self, module, number):
        self.module, self.number = module, number
        self.check = module.check

    def function(self, name, *arguments):
        return self.module.function(f"{name}_{self.number}", *arguments)


def examples(module):
    globs = {"st": st, "suture": st, "np": np}
    return [test for name, made in objects(module) for test in doctest.DocTestFinder().find(made, name, globs=globs) if test.examples]


def run(tests):
    """Runs examples; returns what is said of those that fail."""
    said, runner = [], doctest.DocTestRunner(verbose=False)
    for test in tests:
        runner.run(test, out=said.append)
    return "".join(said)


def compile_together(tests, monkeypatch):
    """Compiles all functions on arrays that examples call in one module, which takes a sixth of the time."""
    load, asked = jit.load, {}

    def ask(source):
        found = re.search(r"#include <(.*)>\nSUTURE_ABI_FUNCTION\((.*)\)\n", source.text)
        if not found:
            return load(source)
        asked[source] = found.groups()
        raise Asked

    with monkeypatch.context() as patch:
        patch.setattr(jit, "load", ask)
        run(tests)
    if len(asked) < 2:  # a single one may be in the cache
        return
    headers = "".join(f"#include <{header}>\n" for header in sorted({header for header, _ in asked.values()}))
    calls = "".join(f"SUTURE_ABI int suture_call_{i}(const suture::abi::request* r) {{\n"
                    f"  return suture::abi::guarded([&] {{ {call}(*r); }});\n}}\n" for i, (_, call) in enumerate(asked.values()))
    module = load(jit.Source(f"{headers}SUTURE_ABI_MODULE\n{calls}", "functions of the examples"))
    parts = {source: Part(module, i) for i, source in enumerate(asked)}
    monkeypatch.setattr(jit, "load", lambda source: parts.get(source) or load(source))


# The functions of the package itself take half a minute to compile.
@pytest.mark.parametrize("name", [pytest.param("suture", marks=pytest.mark.thorough), *MODULES[1:]])
def test_examples_run(name, monkeypatch):
    module = importlib.import_module(name)
    compile_together(examples(module), monkeypatch)
    assert run(examples(module)) == ""
