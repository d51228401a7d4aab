# SPDX-License-Identifier: Apache-2.0
"""This module makes value operations from headers of users: value_cpp("soft_knee.hpp", knee=100)."""
from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..backend.encode import Encoder
from ..arguments import check_calls
from ..errors import Error
from .kinds import FrozenMap, shown
from .operation import Operation


@check_calls
@dataclass(frozen=True)
class value_cpp(Operation):
    """Makes a value operation from a C++ header, for what no expression of `value` can compute.

    The header defines a struct at namespace level, as docs/writing-an-operation.md describes. It is included from its path. If it
    has changed since the operation was made, the operation is refused and has to be made again. Results are bit-identical on every
    machine only if its author uses `suture::fma` and `suture::math`.

    Parameters
    ----------
    path : path
        The header.
    struct : str, optional
        Name of the struct, by default that of the file.
    **parameters : float
        Values of its members of type float. Other values do not need to compile again.

    Raises
    ------
    Error
        If the header cannot be read, or has no such struct or member.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.value_cpp("soft_knee.hpp", knee=100)])     # doctest: +SKIP
    """

    path: str
    struct: str
    parameters: Any
    sha256: str

    _role: ClassVar[str] = "value"
    _header: ClassVar[str] = "abi/expression.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (("path", "text"), ("struct", "text"), ("parameters", "parameters"),
                                                      ("sha256", "text"))

    def __init__(self, path: Any, struct: str | None = None, **parameters: float) -> None:
        what = f"suture: value_cpp: {path}"
        code, digest = _read(str(path), what)
        name = struct or Path(path).stem
        if not re.fullmatch(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*", name, re.ASCII):
            raise Error(f"{what}: struct: expected the name of a struct, got {shown(name)}")
        if re.search(r'["\\<>\x00-\x1f\x7f]', str(Path(path).resolve())):
            raise Error(f"{what}: path: expected one that #include can name, without quotes, brackets, backslashes and line ends")
        if not re.search(rf"\bstruct\s+{name.rsplit('::', 1)[-1]}\b", code):
            raise Error(f"{what} defines no struct {name}; name it as the file, or say struct=")
        self._set(str(path), name, parameters, digest)
        for parameter in self.parameters:
            if not re.search(rf"\bfloat\s+{parameter}\b", code):
                raise Error(f"{what}: {name} has no member float {parameter}")

    def _set(self, path: str, struct: str, parameters: Any, sha256: str) -> None:
        for name, given in (("path", path), ("struct", struct), ("parameters", parameters), ("sha256", sha256)):
            object.__setattr__(self, name, given)
        self.__post_init__()  # checks them by their kinds

    def __reduce__(self) -> Any:
        return _again, (self.path, self.struct, dict(self.parameters), self.sha256)

    def __repr__(self) -> str:
        struct = {} if self.struct == Path(self.path).stem else {"struct": self.struct}
        return f"value_cpp({', '.join([repr(self.path), *(f'{k}={v!r}' for k, v in {**struct, **self.parameters}.items())])})"

    def encode(self, encoder: Encoder) -> str:
        """Appends the parameters. Returns the C++ type, which names the struct and its members."""
        _, now = _read(self.path, f"suture: value_cpp: {self.path}")
        if now != self.sha256:
            raise Error(f"suture: value_cpp: {self.path} has changed since the operation was made; make it again")
        own = (str(Path(self.path).resolve()), self.sha256)
        if own not in encoder.out.own_files:
            encoder.out.own_files.append(own)
        encoder.out.headers |= self.headers()
        encoder.number(*self.parameters.values())
        return f"suture::abi::own<{', '.join([f'::{self.struct}', *(f'&::{self.struct}::{name}' for name in self.parameters)])}>"

    def to_json(self) -> dict[str, Any]:
        """Returns its record, with the hash of the file in place of the file, since a record must not have code."""
        return {"name": "value_cpp", "path": Path(self.path).name, "struct": self.struct, "parameters": dict(self.parameters),
                "sha256": self.sha256}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], depth: int = 0) -> Operation:
        """Raises an error: code is not taken from a record."""
        raise Error(f"suture: value_cpp: code is not taken from a record; make the pipeline with {shown(record.get('path'))}, and "
                    "give it: replay(..., pipeline=...)")


def _read(path: str, what: str) -> tuple[str, str]:
    """Returns the text of a header, and its hash."""
    try:
        data = Path(path).read_bytes()
        return data.decode(), hashlib.sha256(data).hexdigest()
    except (OSError, ValueError) as problem:
        raise Error(f"{what} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def _again(path: str, struct: str, parameters: Mapping[str, float], sha256: str) -> value_cpp:
    """Unpickles the operation. `encode` refuses it if the file has other content there."""
    made = value_cpp.__new__(value_cpp)
    made._set(path, struct, FrozenMap(parameters), sha256)
    return made
