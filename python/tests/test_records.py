# SPDX-License-Identifier: Apache-2.0
"""Records of operations, pipelines and steps are data: what does not fit is refused, and no text of one reaches a compiler."""
import copy
import functools
import io
import json
import os
import random
import re
import tokenize

import numpy as np
import pytest

import suture as st
from suture.backend.encode import CPP_TYPES
from suture.operations import operation
from suture.operations.kinds import KINDS, TypeName
from suture.operations.operation import operation_from_json
from suture.operations.value import _BINARY, _COMPARE, _FUNCTIONS
from test_operations import EXAMPLES

BATCH = {"image": np.zeros((1, 3, 1, 4, 4), np.float32), "id": [1]}
ATTACKS = ['lab>{}); }\n#include "/etc/passwd"\n//', "suture::lab", "lab", "); std::system(\"id\"); //", "\\\n#define X", "x" * 5000,
           "*/ int main() {} /*", "\0", "\u202e", "type", "__class__", "", "window", "value_cpp", "sampling", "grid", "float", "name"]


def pipelines():
    """Pipelines with every operation in one of them."""
    chains = [[op] for op in EXAMPLES if op._role not in ("label",)]
    chains += [[st.value("where(x > a, log(1 + abs(x)), x ** 2)", a=2.0), st.sampling(border="default_value", rim="centers"),
                st.per_channel(st.random_gamma(probability=.5)), st.cast("float16")]]
    made = [st.Pipeline(image=chain) for chain in chains]
    made += [st.Pipeline(image=[], seg=st.labels(convert=op)) for op in EXAMPLES if op._role == "label"]
    made.append(st.Pipeline(image=[st.crop_by_class(size=4, labels="seg", ratios=(0, 1))], pet=[st.crop_by_class(size=4, labels="seg", ratios=(0, 1)),
                            st.gaussian_noise(sigma=(0, .1))], seg=st.labels(dtype="int64", levels=(.5, dict(z=1, y=.5, x=.5))),
                            b=st.boxes(), p=st.points(), layout="NCDHW"))
    return made


RECORDS = [p.to_json() for p in pipelines()]


# What a source may consist of.

KNOWN_TYPES = {*CPP_TYPES.values(), "suture::chain", "suture::identity", "suture::abi::image_slot", "suture::abi::label_slot",
               "suture::abi::level_slot", "suture::per_channel_operation", "suture::sampling", "suture::abi::value",
               *(f"suture::{name}" for name in operation._known),
               *(t for kind in KINDS.values() if isinstance(kind, TypeName) for t in kind.types.values()),
               *(f"suture::abi::expression::{n}" for n in ("x", "number", "call", "where", "compare", "all_of", "any_of", "not_of",
                 "whole_power", "negative", *(f[1] for f in _FUNCTIONS.values()), *(f[0] for f in _BINARY.values()),
                 *(f[0] for f in _COMPARE.values())))}
HEADERS = re.compile(r"(#include <suture/[a-z0-9_]+(/[a-z0-9_]+)*\.(hpp|cuh)>\n)+")
CHAIN = re.compile(r"SUTURE_ABI_CHAIN\(suture::chain<.*>\)\n")
TOKENS = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:::[A-Za-z_][A-Za-z_0-9]*)*|-?[0-9]+|[<>,()]| ")


@functools.lru_cache(maxsize=4096)
def check_text(text):
    """A source is headers of the library and one chain of known types."""
    headers = HEADERS.match(text)
    assert headers, text
    rest = text[headers.end():]
    assert CHAIN.fullmatch(rest), text
    inside = rest[len("SUTURE_ABI_CHAIN("):-2]
    tokens = TOKENS.findall(inside)
    assert "".join(tokens) == inside, text
    depth = 0
    for token in tokens:
        if token[0].isalpha() or token[0] == "_":
            assert token in KNOWN_TYPES, token
        depth += {"<": 1, ">": -1}.get(token, 0)
        assert depth >= 0 and token not in "()", text
    assert depth == 0, text


def test_every_operation_keeps_to_the_grammar():
    for pipeline in pipelines():
        try:
            sources = pipeline.sources()
        except st.Error as problem:
            assert "run a batch instead of compiling ahead" in str(problem)
            continue
        for source in sources:
            check_text(source.text)
    for wrong in ("int x;", 'SUTURE_ABI_CHAIN(suture::chain<suture::window>)\nint x;\n',
                  "#include <suture/abi/chain.hpp>\nSUTURE_ABI_CHAIN(suture::chain<suture::evil>)\n",
                  '#include <suture/abi/chain.hpp>\n#include "/etc/passwd"\nSUTURE_ABI_CHAIN(suture::chain<suture::window>)\n'):
        with pytest.raises(AssertionError):
            check_text(wrong)


def test_pipelines_come_back():
    for record in RECORDS:
        assert st.Pipeline.from_json(json.loads(json.dumps(record))).to_json() == record


# Mutations.

def places(record, at=()):
    """Paths to everything in a record."""
    found = [at]
    if isinstance(record, dict):
        for key, value in record.items():
            found += places(value, (*at, key))
    elif isinstance(record, list):
        for i, value in enumerate(record):
            found += places(value, (*at, i))
    return found


def anything(rng, depth=0):
    """A value of JSON."""
    pick = rng.randrange(12 if depth < 4 else 9)
    if pick < 4:
        return rng.choice(ATTACKS)
    if pick < 6:
        return rng.choice([0, 1, -1, 2**31, 2**53 + 1, 10**30, 0.5, 1e39, -1e308, 3, 7])
    if pick < 8:
        return rng.choice([None, True, False, {"float": "nan"}, {"float": "1e5"}, {"per_sample": "image"}, {"per_sample": 3}])
    if pick == 8:
        return value_of_deep(rng)
    if pick == 9:
        return {rng.choice(ATTACKS): anything(rng, depth + 1) for _ in range(rng.randrange(4))}
    return [anything(rng, depth + 1) for _ in range(rng.randrange(4))]


def value_of_deep(rng):
    deep = 1
    for _ in range(rng.choice([3, 20, 300])):
        deep = [deep] if rng.random() < .5 else {"operation": deep}
    return deep


def expression(rng):
    """An expression, sane or not."""
    text = "x"
    for _ in range(rng.randrange(8)):
        text = rng.choice(["abs({})", "-{}", "({}) ** 2", "({}) ** -3.5", "{} + 1", "where({0} > 1, {0}, 2)", "not {}", "{};", "exp({})",
                           "__import__('os')", "f'{{{}}}'", "({} if x else 1)", "[{}][0]", "min({}, nan)", "lambda: {}"]).format(text)
    return rng.choice([text, "abs(" * 300 + text + ")" * 300, "-" * 3000 + text]) if rng.random() < .1 else text


def mutated(rng):
    """A record with one to three changes."""
    record = copy.deepcopy(rng.choice(RECORDS))
    for _ in range(rng.randrange(1, 4)):
        path = rng.choice(places(record))
        if not path:
            continue
        parent = record
        for step in path[:-1]:
            parent = parent[step]
        last, change = path[-1], rng.randrange(6)
        if change == 0:
            del parent[last]
        elif change == 1 and isinstance(parent, dict):
            parent[rng.choice(ATTACKS)] = anything(rng)
        elif change == 2 and isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), anything(rng))
        elif change == 3:
            parent[last] = {"name": "value", "expression": expression(rng), "parameters": {}}
        elif change == 4:
            parent[last] = copy.deepcopy(rng.choice(rng.choice(RECORDS)["roles"].get("image") or [None]))
        else:
            parent[last] = anything(rng)
    return record


@pytest.mark.parametrize("count", [4000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_mutations_are_refused_or_keep_to_the_grammar(count):
    rng = random.Random(int(os.environ.get("SUTURE_TEST_SEED", "1")))
    taken = refused = 0
    for _ in range(count):
        record = mutated(rng)
        try:
            sources = st.Pipeline.from_json(record).sources()
        except st.Error as problem:
            refused += 1
            assert str(problem).startswith("suture: ") and len(str(problem)) < 2000, record
            continue
        taken += 1
        for source in sources:
            check_text(source.text)
    assert taken > count // 50 and refused > count // 50  # both were tested


@pytest.mark.parametrize("record, sentence", [
    ({"name": "reinhard", "space": ATTACKS[0], "fitted": {"per_sample": "m"}, "target": {"mean": [1, 2, 3], "standard_deviation": [1, 1, 1]},
      "rule": "plain", "white": 255.0}, "suture: reinhard: space: 'lab>{})"),
    ({"name": "window"}, "suture: window: center, width, low, high, function must be given"),
    ({"name": "invert", "pivot": 0.0, "more": 1}, "suture: invert: there is no parameter 'more'; it has pivot"),
    ({"name": "invert", "pivot": "0"}, "suture: invert: pivot: '0' is not a number"),
    ({"name": "invert", "pivot": {"float": "12"}}, "suture: invert: pivot: expected \"nan\", \"inf\" or \"-inf\", got '12'"),
    ({"name": ["invert"]}, "an operation of a record is an object with a name"),
    ({"name": "Operation"}, "there is no operation 'Operation'"),
    ("invert", "an operation of a record is an object with a name"),
    ({"name": "value", "expression": "abs(" * 40 + "x" + ")" * 40 + "+ y", "parameters": {}}, "'y' is not allowed"),
    ({"name": "value", "expression": "-" * 3000 + "x", "parameters": {}}, "suture: value: "),
    ({"name": "value", "expression": "x" * 5000, "parameters": {}}, "expected at most 4096 characters"),
    ({"name": "value", "expression": "x", "parameters": {"a b": 1}}, "expected a name of at most 64"),
    ({"name": "per_channel", "operation": {"name": "invert", "pivot": 0.0}, "probability": 1.0, "synchronized": False},
     "is no random operation"),
])
def test_operations_that_are_none_get_one_sentence(record, sentence):
    with pytest.raises(st.Error) as caught:
        operation_from_json(record)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("record, sentence", [
    ([], "expected an object of layout, roles"), ({"layout": None}, "roles must be given"),
    ({"layout": None, "roles": {}, "seed": 1}, "there is no parameter 'seed'"), ({"layout": 3, "roles": {"image": []}}, "layout: expected"),
    ({"layout": None, "roles": {"image": {"labels": {}, "boxes": {}}}}, "expected a list of operations"),
    ({"layout": None, "roles": {"image": [], "seg": {"labels": {"dtype": "int64"}}}}, "convert, levels, assume_integral must be given"),
    ({"layout": None, "roles": {"image": [], "b": {"boxes": {"format": "zyxzyx", "least_visible": "1", "least_thickness": 1}}}},
     "least_visible: '1' is not a number"),
])
def test_pipelines_that_are_none_get_one_sentence(record, sentence):
    with pytest.raises(st.Error) as caught:
        st.Pipeline.from_json(record)
    assert sentence in str(caught.value)


def step():
    plan = st.Pipeline(image=[st.invert()]).plan(BATCH, seed=1)
    return json.loads(json.dumps(plan.record(plan.run())))


@pytest.mark.parametrize("change, sentence", [
    (lambda r: r.update(seed="1"), "replay: seed: expected int, got '1'"), (lambda r: r.pop("ids"), "replay: ids must be given"),
    (lambda r: r.update(format_version=2), "format 'suture step' 2 is not"), (lambda r: r.update(library_version="9"), "written by version '9'"),
    (lambda r: r.update(more=1), "a record has no 'more'"), (lambda r: r.update(training=1), "training: expected bool"),
    (lambda r: r["pipeline"]["roles"]["image"][0].update(pivot=[0]), "invert: pivot: (0,) is not a number"),
    (lambda r: r["sources"].update(image=7), "replay: sources: image: expected an object of dtype"),
    (lambda r: r["sources"]["image"].pop("dtype"), "replay: sources: image: dtype must be given"),
    (lambda r: r["sources"].update(ct=r["sources"]["image"]), "replay: sources: expected keys among image, got 'ct'. Pass the record"),
    (lambda r: r["digests"].update(ct=[]), "replay: digests: expected keys among image, got 'ct'. Pass the record"),
])
def test_steps_that_are_none_get_one_sentence(change, sentence):
    record = step()
    change(record)
    with pytest.raises(st.Error) as caught:
        st.replay(record, BATCH, verify=True)
    assert sentence in str(caught.value)


def test_a_step_of_one_volume_with_numbers_of_numpy_is_recorded(tmp_path):
    volume = st.Volume(np.arange(24, dtype=np.float32).reshape(2, 3, 4), axes="zyx")
    plan = st.Pipeline(image=[st.invert()]).plan(volume, seed=np.int64(5), epoch=np.uint8(2), ids=np.array([7]))
    plan.record(plan.run()).save(tmp_path / "step.json")
    read = json.loads((tmp_path / "step.json").read_text())
    assert (read["seed"], read["epoch"], read["ids"], read["sources"]["image"]["digests"]) == (5, 2, [7], [f"{st.digest(volume):016x}"])
    st.replay(tmp_path / "step.json", volume, verify=True)


def test_equal_operations_and_pipelines_have_equal_hashes():
    window, turn = [st.window(center=0, width=1)], [st.flip(axes=dict(z=True))]
    for a, b in ((st.remap(table={1: 2, 3: 4}), st.remap(table={3: 4, 1: 2})),
                 (st.value("x * a + b", a=1, b=2), st.value("x * a + b", b=2, a=1)),
                 (st.Pipeline(ct=[*window, *turn], pet=turn), st.Pipeline(pet=turn, ct=[*window, *turn]))):
        assert a == b and hash(a) == hash(b)


def test_files_that_are_none_get_one_sentence(tmp_path):
    for text in (b"", b"{", b"[" * 100000, b"\xff\xfe"):
        (tmp_path / "step.json").write_bytes(text)
        with pytest.raises(st.Error, match="suture: replay: "):
            st.replay(tmp_path / "step.json", BATCH)


def test_a_record_runs_no_code(tmp_path):
    """The chain that a text of a record once reached: a template argument."""
    mark = tmp_path / "ran"
    space = 'lab>{}); }\n#ifndef Q\n#define Q\nstatic int ran = std::system("touch ' + str(mark) + '"); inline void rest() {\n#endif\n//'
    op = {"name": "reinhard", "space": space, "fitted": {"per_sample": "m"}, "target": {"mean": [1, 2, 3], "standard_deviation": [1, 1, 1]},
          "rule": "plain", "white": 255.0}
    record = {**step(), "pipeline": {"layout": None, "roles": {"image": [op]}}}
    with pytest.raises(st.Error, match="suture: reinhard: space: "):
        st.replay(record, BATCH)
    assert not mark.exists()


@pytest.mark.parametrize("keep", [108, 1, 0])
def test_a_short_fit_is_refused_with_its_size(keep):
    fitted = st.StainBasis(raw=b"\0" * 216) if hasattr(st, "StainBasis") else None
    record = st.macenko_normalize(fitted=[fitted]).to_json()
    record["fitted"][0]["raw"] = record["fitted"][0]["raw"][:2 * keep]
    with pytest.raises(st.Error, match=rf"(?s)216.*{keep}|{keep}.*216"):
        st.Pipeline(image=[operation_from_json(record)])({"image": np.zeros((1, 3, 1, 8, 8), np.float32)})


# No C++ in Python.

CPP = re.compile(r"SUTURE_ABI (?!_)|static_cast|const_cast|reinterpret_cast|\bstd::(?!u?int\d+_t$)|;\s*$|^\s*[{}]\s*$|\{\{|\breturn\b.*;|"
                 r"\bauto\b|^\s*#(?!include\b)|\bnamespace\b.*\{", re.MULTILINE)


def strings_of(path):
    """Strings of a Python file with their lines, without docstrings."""
    before = None
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.STRING and before not in (None, tokenize.NEWLINE, tokenize.INDENT):
            yield token.start[0], token.string
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def test_python_writes_no_cpp(root):
    """The text for a compiler is includes and one type; statements are in headers, which tests compile."""
    found = []
    for path in sorted((root / "python/suture").rglob("*.py")):
        for line, text in strings_of(path):
            plain = re.sub(r"^[rRbBfFuU]*('''|\"\"\"|'|\")|('''|\"\"\"|'|\")$", "", text)
            if re.search(r"suture::|SUTURE_ABI|#include|std::", text) and CPP.search(plain.replace("std::uint64_t", "")):
                found.append(f"{path.relative_to(root)}:{line}: {plain[:80]!r}")
    assert found == []


def test_a_request_is_held_while_it_is_read(root):
    """The address of a temporary would outlive the memory it names before the call reads it."""
    import ast

    wrong = []
    for path in sorted((root / "python/suture").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "address" and isinstance(node.value, ast.Call):
                wrong.append(f"{path.name}:{node.lineno}")
    assert not wrong
