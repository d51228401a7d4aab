#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/run measured, as a table in Markdown.

    table.py DIRECTORY [--programs NAME...]

DIRECTORY holds the JSON of Google Benchmark, one file for each program. A counter a row does not have is left empty; of
--programs, those without a file are said to be not measured.
"""
import argparse
import json
import pathlib

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def shown(value, unit=""):
    """Three digits and a prefix."""
    if value is None:
        return ""
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def time_of(row):
    seconds = row["real_time"] * SECONDS[row["time_unit"]]
    for unit in ("s", "ms", "us"):
        if seconds >= SECONDS[unit] or unit == "us":
            return f"{seconds / SECONDS[unit]:.3g} {unit}"


def name_of(row):
    parts = [p for p in row["name"].split("/") if p != "manual_time" and p != "real_time"
             and not p.startswith(("min_time:", "iterations:"))]
    return "/".join(parts)


def rows_of(path):
    """The JSON of a program; of one that ran out of time, the rows it had written."""
    text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        end_of_row = "\n    }"
        return json.loads(text[:text.rindex(end_of_row)] + end_of_row + "\n  ]\n}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--programs", nargs="*", default=[])
    chosen = parser.parse_args()
    files = {path.stem: path for path in sorted(chosen.directory.glob("*.json"))}
    contexts = {}
    tables = []
    for name in sorted({*files, *chosen.programs}):
        if name not in files or not files[name].stat().st_size:
            tables.append(f"### {name}\n\nNot measured.\n")
            continue
        try:
            data = rows_of(files[name])
        except ValueError:
            tables.append(f"### {name}\n\nRan out of time.\n")
            continue
        context = data["context"]
        facts = {"date": context["date"], "processor": f"{context['num_cpus']} x {context['mhz_per_cpu']} MHz"}
        for fact in ("processor_name", "compiler", "nvcc", "gpu", "device", "copy_bytes_per_second",
                     "copy_1_thread_bytes_per_second"):
            if fact in context:
                facts[fact] = context[fact] if not fact.endswith("second") else shown(float(context[fact]), "B/s")
        contexts[name] = facts
        lines = [f"### {name}\n", ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in facts.items()) + "\n",
                 "| row | time | p10 - p90 us | useful bytes/s | voxels/s | % of copy | launches | workspace | registers |",
                 "|---|---|---|---|---|---|---|---|---|"]
        for row in data["benchmarks"]:
            if row.get("error_occurred"):
                lines.append(f"| {name_of(row)} | failed: {row.get('error_message', '')} | | | | | | | |")
                continue
            get = row.get
            spread = f"{get('p10_us'):.3g} - {get('p90_us'):.3g}" if get("p10_us") is not None else ""
            rate = get("bytes_per_second", get("bytes/s"))
            voxels = get("voxels/s", get("items_per_second"))
            copy = f"{get('pct_copy'):.3g}" if get("pct_copy") is not None else ""
            workspace = shown(get("workspace"), "B") if get("workspace") is not None else ""
            counts = [str(int(get(c))) if get(c) is not None else "" for c in ("launches", "registers")]
            lines.append(f"| {name_of(row)} | {time_of(row)} | {spread} | {shown(rate, 'B/s')} | {shown(voxels)} | {copy} | "
                         f"{counts[0]} | {workspace} | {counts[1]} |")
        tables.append("\n".join(lines) + "\n")
    print("\n".join(tables))


if __name__ == "__main__":
    main()
