#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes suture/operations/generated.py from the headers: every operation with its fields, defaults and comment.

    python3 write_operations.py            writes the file
    python3 write_operations.py --check    fails where the file is not what the headers say
"""
import pathlib
import re
import sys
import textwrap

here = pathlib.Path(__file__).resolve().parent
headers = here.parent / "include/suture/ops"
written = here / "suture/operations/generated.py"

# What random operations draw has a name and is no operation of its own.
DRAWN = {"additive_noise", "magnitude_noise", "shot_noise", "crop_from"}
# Fields that follow from others, or from chance.
LEFT_OUT = {("histogram_shift", "count"), ("coarse_dropout", "count"), ("coarse_dropout", "field"),
            ("coarse_shuffle", "count"), ("coarse_shuffle", "field"), ("elastic", "field")}

# C++ type: how Python hands it over (chain.py has a function of that name), and what Python's users write.
KINDS = {
    "float": ("float32", "float"), "double": ("float64", "float"), "bool": ("flag", "bool"),
    "int": ("int32", "int"), "std::int32_t": ("int32", "int"), "std::int64_t": ("int64", "int"),
    "interval": ("interval", "Range"), "integer_interval": ("integer_interval", "IntegerRange"),
    "value_range": ("value_range", "Range"), "axis_ranges": ("axis_ranges", "AxisRanges"),
    "axis_values": ("axis_values", "AxisFloats"), "point3": ("point3", "AxisFloats"),
    "extent3": ("extent3", "AxisIntegers"), "vec3<bool>": ("flags3", "AxisFlags"),
    "vec3<float>": ("floats3", "AxisFloats"), "axis_pair": ("axis_pair", "AxisPair"),
    "matrix3": ("matrix3", "Matrix"), "shears": ("shears", "Sequence[float]"), "grid": ("grid", "Grid | Volume"),
    "channel_statistics": ("channel_statistics", "ChannelStatistics"),
    "stain_reference": ("stain_reference", "StainReference"), "stain_matrix": ("stain_matrix", "Matrix"),
    "color_moments<Space>": ("color_target", "ColorMoments"), "color_table<Space>": ("color_table", "str"),
    "std::optional<std::int32_t>": ("optional_int", "int | None"),
    "std::span<const extent3>": ("starts", "Starts"),
    "std::span<const float>": ("given_floats", "Sequence[float]"),
    "std::span<const moments>": ("results:moments", "Fitted"),
    "std::span<const intensity_range>": ("results:intensity_range", "Fitted"),
    "std::span<const landmark_map<N>>": ("results:landmark_map", "Fitted"),
    "std::span<const stain_basis>": ("results:stain_basis", "Fitted"),
    "std::span<const color_moments<Space>>": ("results:color_moments", "Fitted"),
    "std::array<float, detail::most_control_points>": ("float_list", "Sequence[float]"),
    "std::array<float, detail::most_bias_terms>": ("float_list", "Sequence[float]"),
    "std::array<hole, detail::most_holes>": ("holes", "Holes"),
    "std::array<color_step, 4>": ("color_steps", "Sequence[str]"),
    "short_list<region, 32>": ("regions", "Sequence[Sequence[int]]"),
    "short_list<label_change, detail::most_label_entries>": ("label_changes", "Mapping[int, int]"),
}
# Fields that stand for more than their C++ type says.
FIELD_KINDS = {("color_jitter", "order"): ("color_steps", "Sequence[str]"),
               ("permute", "order"): ("axis_order", "AxisOrder"), ("orient", "to"): ("orientation", "str")}
DEFAULTS = {("permute", "order"): '("z", "y", "x")', ("channel_normalize", "of"): "IMAGENET",
            ("macenko_normalize", "reference"): "STAIN_REFERENCE", ("stain_jitter", "basis"): "STAIN_REFERENCE.stains",
            ("random_stain_jitter", "basis"): "STAIN_REFERENCE.stains", ("patch_z_score", "nan"): "NAN",
            ("remap", "table"): "FrozenMap()", ("regions", "sets"): "()",
            ("affine_matrix", "linear"): "((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))",
            ("affine", "shear"): "(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)"}
# Numbers that multiply: one number alone could mean a factor or half a width, so both ends are to be said.
MULTIPLIES = {("random_affine", "scale"), ("random_scale", "range"), ("random_gamma", "range"),
              ("random_contrast", "range"), ("random_brightness_factor", "range"), ("random_patch_contrast", "range"),
              ("random_patch_gamma", "range"), ("random_color_jitter", "brightness"),
              ("random_color_jitter", "contrast"), ("random_color_jitter", "saturation"),
              ("random_hed_jitter", "alpha"), ("random_stain_jitter", "alpha")}


def number(text):
    text = text.strip().rstrip("f")
    return {"true": "True", "false": "False"}.get(text) or repr(float(text) if "." in text else int(text))


def default_of(name, field, kind, text):
    """The default as Python writes it; None where there is none."""
    if (name, field) in DEFAULTS:
        return DEFAULTS[name, field]
    if text is None or kind == "orientation":
        return None
    text = text.strip()
    if "::" in text and not text.startswith("{"):
        return repr(text.split("::")[-1])
    inner = text.strip("{} ")
    if inner == "":
        return "()" if kind in ("starts", "float_list", "given_floats", "holes") or kind.startswith("results") else "None"
    if "::" in inner:
        return repr(tuple(p.split("::")[-1].strip() for p in inner.split(",")))
    parts = [number(p) for p in inner.split(",")]
    if kind in ("interval", "integer_interval", "value_range"):
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    if kind == "axis_pair":
        return repr(tuple("zyx"[int(p)] for p in parts))
    if kind in ("axis_ranges", "axis_values"):
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    if len(parts) == 1:
        return str(float(parts[0])) if kind in ("float32", "float64") else parts[0]
    if len(set(parts)) == 1 and kind in ("point3", "extent3", "flags3", "floats3", "int3"):
        return parts[0]
    return f"({', '.join(parts)})"


def members_of(body):
    """(type, name, default text or None) of the fields of a struct."""
    for line in body.split("\n"):
        m = re.match(r"  (?=\S)(?!static|friend|using|return|struct|template|constexpr|SUTURE)"
                     r"([\w:<>, ]+?) (\w+)(?:\[(\d)\])?(?: = (.*?)|(\{.*?\}))?;(?: *//.*)?$", line)
        if m:
            yield m[1], m[2], m[3], m[4] or m[5]


def structs():
    for file in sorted(headers.rglob("*.hpp")):
        text = file.read_text()
        enums = set(re.findall(r"enum class (\w+)", text))
        for m in re.finditer(r"((?:^//[^\n]*\n)*)(?:^template <[^\n]*>\n)?^struct (\w+)(?: : \w+)? \{\n(.*?)^\};", text,
                             re.S | re.M):
            named = re.search(r'string_view name = "(\w+)"', m[3])
            if named and m[2] not in DRAWN:
                yield file, m[2], m[1], m[3], enums


def write():
    enums = {}
    for file in headers.parent.rglob("*.hpp"):
        for m in re.finditer(r"enum class (\w+)(?: : [\w:]+)? \{([^}]*)\}", file.read_text()):
            values = re.sub(r"//[^\n]*", "", m[2])
            enums[m[1]] = [v.split("=")[0].strip() for v in values.split(",") if v.strip()]
    used, classes, names = set(), [], []
    for file, name, comment, body, _ in structs():
        if name in ("cast", "sampling", "per_channel_operation"):
            continue
        is_random = "std::uint16_t kind" in body
        lines, fields = [], []
        for cpp, field, count, text in members_of(body):
            if (name, field) in LEFT_OUT:
                continue
            if (name, field) in FIELD_KINDS:
                kind, hint = FIELD_KINDS[name, field]
            elif count:
                kind, hint = f"floats:{count}", "Sequence[float]"
            elif cpp == "vec3<std::int32_t>":
                kind, hint = "int3", "AxisIntegers"
            elif cpp in enums:
                kind, hint = f"choice:{cpp}", "Literal[" + ", ".join(f'"{v}"' for v in enums[cpp]) + "]"
                used.add(cpp)
            elif cpp in KINDS:
                kind, hint = KINDS[cpp]
            else:
                raise SystemExit(f"{file.name}: {name}.{field} has the type {cpp}, which write_operations.py does not know")
            default = default_of(name, field, kind, text)
            if name == "orient":
                for axis, letter in zip("xyz", "LPS"):
                    lines.append(f'    {axis}: str = "{letter}"')
                    fields.append((axis, "anatomical"))
                continue
            fields.append((field, kind))
            lines.append(f"    {field}: {hint}" + (f" = {default}" if default is not None else ""))
        space = "Space" in body and "template" not in comment and name in ("reinhard", "random_stain_na")
        if space:
            lines.insert(0, '    space: Literal["lab", "ruderman"]')
            fields.insert(0, ("space", "type:color_space"))
        words = [re.sub(r"^// ?", "", c) for c in comment.strip().split("\n")] if comment.strip() else [name]
        words = [w.replace("\\", "\\\\") for w in words]
        doc = "\n".join("    " + w if w else "" for w in words).strip()
        classes.append(
            f"@dataclass(frozen=True, kw_only=True)\nclass {name}(Operation):\n    \"\"\"{doc}\"\"\"\n\n"
            + "\n".join(lines) + ("\n\n" if lines else "")
            + f'    _random: ClassVar[bool] = {is_random}\n'
            + (f'    _gives_size: ClassVar[str] = "{size[1]}"\n' if (size := re.search(r"gives_size = output_size::(\w+)", body)) else "")
            + f'    _header: ClassVar[str] = "{file.relative_to(headers.parent)}"\n'
            + "    _fields: ClassVar[tuple[tuple[str, str], ...]] = (\n"
            + "".join(f'        ("{f}", "{k}"),\n' for f, k in fields) + "    )\n"
            + (f"    _multiplies: ClassVar[tuple[str, ...]] = {tuple(f for f, _ in fields if (name, f) in MULTIPLIES)!r}\n"
               if any((name, f) in MULTIPLIES for f, _ in fields) else ""))
        names.append(name)
    table = "\n".join(f'    "{e}": {tuple(enums[e])!r},' for e in sorted(used))
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


if __name__ == "__main__":
    text = write()
    if "--check" in sys.argv:
        if written.read_text() != text:
            sys.exit("suture/operations/generated.py is not what the headers say: run python/write_operations.py")
    else:
        written.write_text(text)
