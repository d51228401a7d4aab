# SPDX-License-Identifier: Apache-2.0
"""Value operations of one's own, written in C++: value_cpp("soft_knee.hpp", knee=100)."""
from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import Error
from .value import Numbers
from .operation import Operation


@dataclass(frozen=True)
class value_cpp(Operation):
    """A value operation out of a C++ header, for what an expression of `value` cannot say. It defines a struct as
    docs/writing-an-operation.md has it, at the top level of the file and named as the file is; other names by `struct`.
    Parameters are its members of type float, numbers that may change without compiling. The file is read once, here; same
    bits are its author's to keep: `suture::fma`, `suture::math`.

    value_cpp("soft_knee.hpp", knee=100)
    """

    path: str
    struct: str
    parameters: Any
    code: str

    _role: ClassVar[str] = "value"

    def __init__(self, path: Any, struct: str | None = None, **parameters: float) -> None:
        what = f"suture: value_cpp: {path}"
        try:
            code = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as problem:
            raise Error(f"{what} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
        name = struct or Path(path).stem
        if not re.search(rf"\bstruct\s+{re.escape(name)}\b", code):
            raise Error(f"{what} defines no struct {name}; name it as the file, or say struct=")
        for parameter in parameters:
            if not re.search(rf"\bfloat\s+{re.escape(parameter)}\b", code):
                raise Error(f"{what}: {name} has no member float {parameter}")
        self._set(str(path), name, {k: float(v) for k, v in parameters.items()}, code)

    def _set(self, path: str, struct: str, parameters: dict[str, float], code: str) -> None:
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "struct", struct)
        object.__setattr__(self, "parameters", Numbers(parameters))
        object.__setattr__(self, "code", code)

    def __reduce__(self) -> Any:
        return _again, (self.path, self.struct, dict(self.parameters), self.code)

    def __repr__(self) -> str:
        return f"value_cpp({', '.join([repr(self.path), *(f'{k}={v!r}' for k, v in self.parameters.items())])})"

    def to_json(self) -> dict[str, Any]:
        """What it is, with the hash of the file in place of the file: a record must not bring code along."""
        return {"name": "value_cpp", "path": Path(self.path).name, "struct": self.struct, "parameters": dict(self.parameters),
                "sha256": hashlib.sha256(self.code.encode()).hexdigest()}


def _again(path: str, struct: str, parameters: dict[str, float], code: str) -> value_cpp:
    """In another process, where the file may be another by now."""
    made = value_cpp.__new__(value_cpp)
    made._set(path, struct, parameters, code)
    return made


def _with_whole_paths(code: str, folder: str) -> str:
    """Includes of files beside the header get their whole paths, since the text is compiled in another folder."""
    def whole(line: re.Match[str]) -> str:
        path = os.path.join(folder, line[2])
        return f'{line[1]}"{path}"' if os.path.isfile(path) else line[0]

    return re.sub(r'^([ \t]*#[ \t]*include[ \t]*)"([^"\n]+)"', whole, code, flags=re.MULTILINE)


def write_value_cpp(encoder: Any, op: value_cpp) -> str:
    """How it is made; the file stands ahead of the chain, once."""
    code = _with_whole_paths(op.code.replace("#pragma once", ""), os.path.dirname(os.path.abspath(op.path)))
    text = f'#line 1 "{Path(op.path).name}"\n{code}\n'
    if text not in encoder.out.files:
        encoder.out.files.append(text)
    encoder.out.headers |= {"math/elementary.hpp", "base/error.hpp", "base/fields.hpp"}
    at = encoder.number(*op.parameters.values()) if op.parameters else 0
    return f"::{op.struct}{{{', '.join(f'.{name} = v.f({at + k})' for k, name in enumerate(op.parameters))}}}"
