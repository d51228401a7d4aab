# SPDX-License-Identifier: Apache-2.0
"""Puts the C++ headers into what is built: they lie beside this folder in a checkout, and in the package in a source archive."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class HeadersHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable" or (root / "suture/include/suture").is_dir():
            return  # read where they lie, or there already
        headers = root.parent / "include/suture"
        if not (headers / "suture.hpp").is_file():
            raise FileNotFoundError(f"suture: expected the headers in {headers} or {root / 'suture/include/suture'}. "
                                    "Build in a checkout of the repository, or from the source archive of a release")
        added = {str(headers): "suture/include/suture"}
        if self.target_name == "sdist":
            added[str(root.parent / "LICENSE")] = "LICENSE"
        build_data["force_include"].update(added)
