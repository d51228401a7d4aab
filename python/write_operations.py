#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes suture/operations/generated.py: every operation with its parameters, defaults and comment.

    python3 write_operations.py            writes the file
    python3 write_operations.py --check    fails where the file is not what the headers say

Parameters, kinds and defaults are what the program cmake/describe.cpp prints, which the compiler CXX (c++ if it is not
set) makes of the headers; --description FILE reads what it printed before. The docstring of a class is in the style of
NumPy: the first sentence and the parameters are those of operation_docs.toml, the rest is the comment above its struct.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from typing import Any

here = pathlib.Path(__file__).resolve().parent
include = here.parent / "include"
written = here / "suture/operations/generated.py"

# Operations whose Python classes are written by hand.
BY_HAND = {"cast", "sampling", "per_channel", "inverse_of", "crop_by_class"}

# What Python's users write for each kind. "choice:" and "results:" stand for all that begin so.
HINTS = {
    "float32": "float", "float64": "float", "flag": "bool", "int32": "int", "int64": "int", "interval": "Range",
    "value_range": "Range", "integer_interval": "IntegerRange", "axis_ranges": "AxisRanges", "axis_values": "AxisFloats",
    "point3": "AxisFloats", "extent3": "AxisIntegers", "flags3": "AxisFlags", "floats3": "AxisFloats", "int3": "AxisIntegers",
    "axis_order": "AxisOrder", "axis_pair": "AxisPair", "matrix3": "Matrix", "shears": "Sequence[float]",
    "grid": "Grid | Volume", "channel_statistics": "ChannelStatistics", "stain_reference": "StainReference",
    "stain_matrix": "Matrix", "color_target": "ColorMoments", "color_table": "str", "optional_int": "int | None",
    "starts": "Starts", "given_floats": "Sequence[float]", "float_list": "Sequence[float]", "holes": "Holes",
    "color_steps": "Sequence[str]", "regions": "Sequence[Sequence[int]]", "label_changes": "Mapping[int, int]",
    "floats:": "Sequence[float]", "results:": "Fitted",
}
# Defaults that have a name in Python, by kind. python/tests compare their values.
NAMED_DEFAULTS = {"channel_statistics": "IMAGENET", "stain_reference": "STAIN_REFERENCE",
                  "stain_matrix": "STAIN_REFERENCE.stains", "label_changes": "FrozenMap()"}
# Types of parameters in docstrings, by kind; others are as in HINTS.
TYPES = {
    "interval": "float or (low, high)", "value_range": "float or (low, high)", "integer_interval": "int or (low, high)",
    "axis_ranges": "range or one for each axis", "axis_values": "float or one for each axis", "point3": "float or one for each axis",
    "floats3": "float or one for each axis", "extent3": "int or one for each axis", "int3": "int or one for each axis",
    "flags3": "bool or one for each axis", "axis_order": "three axes", "axis_pair": "two axes", "matrix3": "3 x 3 floats",
    "stain_matrix": "3 x 2 floats", "shears": "six floats", "grid": "Grid or Volume", "color_target": "ColorMoments",
    "optional_int": "int or None", "starts": "sequence of (int, int, int) or per_sample(...)", "given_floats": "sequence of float",
    "float_list": "sequence of float", "floats:": "sequence of float", "holes": "sequence of boxes", "color_steps": "sequence of str",
    "regions": "sequence of sequences of int", "label_changes": "mapping", "results:": "sequence of results or per_sample(...)",
    "anatomical": "str"}
# Template parameters that are fields of the class, and their kinds. Others follow from the values of fields.
TEMPLATES = {"Space": ("space", "type:color_space")}


# Summaries of operations, and meanings of their parameters.
DOCS: dict[str, dict[str, str]] = tomllib.loads((here / "operation_docs.toml").read_text())


class Mistake(Exception):
    """What keeps the classes from being written."""


def described(compiler: str) -> dict[str, Any]:
    """What cmake/describe.cpp prints."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "describe"
        subprocess.run([*shlex.split(compiler), "-std=c++20", "-O0", f"-I{include}", str(here.parent / "cmake/describe.cpp"),
                        "-o", str(program)], check=True)
        return json.loads(subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout)  # type: ignore[no-any-return]


def hint_of(kind: str, enumerations: dict[str, list[str]]) -> str:
    if kind.startswith("choice:"):
        return "Literal[" + ", ".join(f'"{v}"' for v in enumerations[kind[7:]]) + "]"
    known = kind if ":" not in kind else kind[:kind.index(":") + 1]
    if known not in HINTS:
        raise Mistake(f"parameters of the kind {kind} have no type in Python: see HINTS")
    return HINTS[known]


def shown(value: Any) -> str:
    """A number of a tuple: whole ones without a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return repr(value)


def floats(value: Any) -> str:
    """Numbers and nested lists of them, with a point each."""
    if isinstance(value, list):
        return f"({', '.join(floats(v) for v in value)})"
    return repr(float(value))


def one_or_all(values: list[str]) -> str:
    return values[0] if len(set(values)) == 1 else f"({', '.join(values)})"


def default_of(kind: str, value: Any) -> str:
    """The default as Python writes it."""
    if kind in NAMED_DEFAULTS:
        return NAMED_DEFAULTS[kind]
    if kind in ("float32", "float64"):
        return "NAN" if value == "nan" else repr(float(value))
    if kind in ("shears", "matrix3"):
        return floats(value)
    if kind in ("flag", "int32", "int64", "optional_int") or kind.startswith("choice:"):
        return repr(value)
    if kind == "color_steps":
        return repr(tuple(value))
    if kind == "axis_order":
        return "(" + ", ".join(f'"{"zyx"[axis]}"' for axis in value) + ")"
    if kind == "axis_pair":
        return repr(tuple("zyx"[axis] for axis in value))
    if kind in ("interval", "integer_interval"):
        return one_or_all([shown(v) for v in value])
    if kind == "value_range":
        return range_of(value)
    if kind == "axis_ranges":
        return one_or_all([range_of(v) for v in value])
    if kind in ("axis_values", "point3", "extent3", "flags3", "floats3", "int3"):
        return one_or_all([shown(v) for v in value])
    if kind.startswith("floats:"):
        return f"({', '.join(shown(v) for v in value)})"
    if value == []:
        return "()"
    raise Mistake(f"the default {value!r} of the kind {kind} has no form in Python")


def range_of(ends: list[float]) -> str:
    """Half a width where the range lies about 0."""
    return shown(ends[1]) if ends[0] == -ends[1] else f"({shown(ends[0])}, {shown(ends[1])})"


def comment_of(header: str, name: str) -> str:
    """The comment directly above the struct, as a docstring."""
    text = (include / "suture" / header).read_text()
    found = re.findall(rf"((?:^//[^\n]*\n)*)(?:^template <[^\n]*>\n)?^struct {name}\b[^;{{]*\{{", text, re.M)
    if len(found) != 1:
        raise Mistake(f"{header}: expected one struct {name}, found {len(found)}")
    if not found[0].strip():
        raise Mistake(f"{header}: struct {name} has no comment directly above it, which is the docstring of its class")
    words = [re.sub(r"^// ?", "", c).replace("\\", "\\\\") for c in found[0].strip().split("\n")]
    return in_python("\n".join("    " + w if w else "" for w in words).strip())


def wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, 120, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def type_of(kind: str, enumerations: dict[str, list[str]]) -> str:
    """The type of a parameter in words."""
    if kind.startswith("choice:"):
        return "{" + ", ".join(f'"{v}"' for v in enumerations[kind[7:]]) + "}"
    known = kind if ":" not in kind else kind[:kind.index(":") + 1]
    return TYPES.get(known) or hint_of(kind, enumerations)


def docstring_of(name: str, comment: str, parameters: list[tuple[str, str, str]]) -> str:
    """The docstring in the style of NumPy. `parameters` has name, type and default of each; a default of "" must be given."""
    summaries, meanings = DOCS["summaries"], DOCS["parameters"]
    first, *others = comment.split("\n")
    if first.startswith(f"{name}: "):
        first = first[len(name) + 2].upper() + first[len(name) + 3:]
    text = "\n".join([first, textwrap.indent(textwrap.dedent("\n".join(others)), "    ")]).rstrip()
    errors = re.search(r"\bErrors: (.*?)\.(?=\s+Source:|\s*$)", text, re.S)
    if errors:
        source = " ".join(text[errors.end():].split())
        text = text[:errors.start()].rstrip() + (f"\n{wrapped(source, '    ')}" if source else "")
    parts = [summaries[name], text] if name in summaries else [text]
    if parameters:
        lines = ["Parameters", "    ----------"]
        for parameter, kind, default in parameters:
            lines.append(f"    {parameter} : {kind}" + (f", default {default}" if default and len(default) < 40 else ""))
            meaning = meanings.get(f"{name}.{parameter}", meanings.get(parameter))
            if meaning:
                lines.append(wrapped(meaning, " " * 8))
        parts.append("\n".join(lines))
    if errors and errors[1] != "none":
        reasons = " ".join(errors[1].split())
        beginning = "when a batch is planned, " if reasons.startswith("as ") else "when a batch is planned with one of these: "
        parts.append("Raises\n    ------\n    Error\n" + wrapped(f"If a parameter is of another type, or {beginning}{reasons}.", " " * 8))
    return "\n\n    ".join(parts) + ("\n    " if len(parts) > 1 else "")


def in_python(text: str) -> str:
    """A comment with what it says of C++ as Python writes it: name{.a = .5f} as name(a=.5), kind::name as "name"."""
    text = re.sub(r"\bremap\{\{\{(-?\d+), (-?\d+)\}\}\}", r"remap(table=<\1: \2>)", text)
    text = re.sub(r"labels\(in, out, (\w+)\{([^}]*)\}\)", r"labels(convert=\1{\2})", text)
    text = re.sub(r"\b[a-z_]+::([a-z_0-9]+)\b(?!\()", r'"\1"', text)
    text = re.sub(r"(?<![\w.])(\d*\.?\d+)f\b", r"\1", text)
    text = re.sub(r"\{[^{}]*\}", lambda found: found[0].replace("true", "True").replace("false", "False"), text)
    text = re.sub(r"(?<![\w.])\.([a-z]\w*) = ", r"\1=", text)
    text = re.sub(r"(?<![\w.])\.([a-z]\w*) =\n", r"\1 =\n", text)
    text = re.sub(r"\bexclude\{(\d+)\}", r"exclude(value=\1)", text)
    text = text.replace("{", "(").replace("}", ")")
    return text.replace("<-1: 0>", "{-1: 0}")


def class_of(op: dict[str, Any], enumerations: dict[str, list[str]]) -> str:
    name = op["name"]
    lines, fields, documented = [], [], []
    given = [p for p in op["parameters"] if not p.get("left_out")]
    for template in op["template"]:
        if template["values"]:
            field, kind = TEMPLATES[template["name"]]
            fields.append((field, kind))
            lines.append(f"    {field}: Literal[" + ", ".join(f'"{v}"' for v in template["values"]) + "]")
            documented.append((field, "{" + ", ".join(f'"{v}"' for v in template["values"]) + "}", ""))
    for parameter in given:
        field, kind = parameter["name"], parameter["kind"]
        if kind == "orientation":  # three letters of C++, a parameter for each axis in Python
            lines += [f'    {axis}: str = "{letter}"' for axis, letter in zip("xyz", parameter["default"])]
            fields += [(axis, "anatomical") for axis in "xyz"]
            documented += [(axis, type_of("anatomical", enumerations), f'"{letter}"') for axis, letter in zip("xyz", parameter["default"])]
            continue
        fields.append((field, kind))
        default = "" if parameter.get("required") else f" = {default_of(kind, parameter['default'])}"
        lines.append(f"    {field}: {hint_of(kind, enumerations)}{default}")
        documented.append((field, type_of(kind, enumerations), default.removeprefix(" = ").replace("'", '"').replace("FrozenMap()", "{}")))
    docstring = docstring_of(name, comment_of(op["header"], name), documented)
    text = (f"@dataclass(frozen=True, kw_only=True)\nclass {name}(Operation):\n    \"\"\"{docstring}\"\"\"\n\n"
            + "\n".join(lines) + ("\n\n" if lines else "")
            + f'    _random: ClassVar[bool] = {op["random"]}\n'
            + f'    _header: ClassVar[str] = "{op["header"]}"\n'
            + "    _fields: ClassVar[tuple[tuple[str, str], ...]] = (\n"
            + "".join(f'        ("{f}", "{k}"),\n' for f, k in fields) + "    )\n")
    multiplies = tuple(p["name"] for p in given if p.get("multiplies"))
    if multiplies:
        text += f"    _multiplies: ClassVar[tuple[str, ...]] = {multiplies!r}\n"
    capacities = {p["name"]: p["capacity"] for p in given if "capacity" in p}
    if capacities:
        text += f"    _capacities: ClassVar[Mapping[str, int]] = {capacities!r}\n"
    if "gives_size" in op:
        text += f'    _gives_size: ClassVar[str] = "{op["gives_size"]}"\n'
    return text


def write(description: dict[str, Any]) -> str:
    enumerations = description["enumerations"]
    operations = [op for op in description["operations"] if op["name"] not in BY_HAND]
    classes = [class_of(op, enumerations) for op in operations]
    names = [op["name"] for op in operations]
    tables = {p["kind"]: p["choices"] for op in operations for p in op["parameters"] if "choices" in p}
    table = "\n".join(f'    "{e}": {tuple(v)!r},' for e, v in sorted({**enumerations, **tables}.items()))
    return (textwrap.dedent('''\
        # SPDX-License-Identifier: Apache-2.0
        """Every operation, as its header says it. Written by write_operations.py; do not edit."""
        from __future__ import annotations

        from collections.abc import Mapping, Sequence
        from dataclasses import dataclass
        from typing import ClassVar, Literal

        from .operation import (IMAGENET, NAN, STAIN_REFERENCE, AxisFlags, AxisFloats, AxisIntegers, AxisOrder, AxisPair,
                                AxisRanges, ChannelStatistics, ColorMoments, Fitted, FrozenMap, Holes, IntegerRange,
                                Matrix, Operation, Range, StainReference, Starts, name_mistakes)
        from ..arrays.volume import Grid, Volume

        ''') + f"CHOICES: dict[str, tuple[str, ...]] = {{\n{table}\n}}\n\n\n" + "\n\n".join(classes)
        + "\n\n__all__ = [\n" + "".join(f'    "{n}",\n' for n in names) + "]\n\n"
        "for _name in __all__:\n    name_mistakes(globals()[_name])\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes suture/operations/generated.py")
    parser.add_argument("--check", action="store_true", help="fail where the file is not what the headers say")
    parser.add_argument("--description", type=pathlib.Path, help="what cmake/describe.cpp printed")
    options = parser.parse_args()
    try:
        text = write(json.loads(options.description.read_text()) if options.description
                     else described(os.environ.get("CXX", "c++")))
    except Mistake as mistake:
        sys.exit(str(mistake))
    if not options.check:
        written.write_text(text)
    elif written.read_text() != text:
        sys.exit("suture/operations/generated.py is not what the headers say: run python/write_operations.py")


if __name__ == "__main__":
    main()
