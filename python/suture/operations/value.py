# SPDX-License-Identifier: Apache-2.0
"""This module translates value operations that are written as expressions: value("log(1 + max(x, 0) / knee)", knee=100)."""
from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..backend.encode import Encoder
from ..arguments import check_calls
from ..errors import Error
from .kinds import KINDS, Kind, members, shown
from .operation import Operation


def _power(a: Any, b: Any) -> Any:
    """Computes a power as C++ does: NaN if the base is below 0 and the exponent is not 0."""
    return np.where(np.less(a, 0) & np.not_equal(b, 0), np.float32(np.nan), np.power(a, b))


def _whole_power(a: Any, exponent: int) -> Any:
    """Multiplies in the order of expression::whole_power."""
    product = np.ones_like(a)
    for k, digit in enumerate(f"{abs(exponent):b}" if exponent else ""):
        product = a if k == 0 else np.multiply(product, product)
        if k > 0 and digit == "1":
            product = np.multiply(product, a)
    return np.divide(np.float32(1), product) if exponent < 0 else product


# Functions by name: number of arguments, type in abi/expression.hpp, function of NumPy.
_FUNCTIONS: dict[str, tuple[int, str, Callable[..., Any]]] = {
    "abs": (1, "magnitude", np.abs), "sqrt": (1, "square_root", np.sqrt), "exp": (1, "exponential", np.exp),
    "log": (1, "logarithm", np.log), "log2": (1, "logarithm2", np.log2), "exp2": (1, "exponential2", np.exp2),
    "sin": (1, "sine", np.sin), "cos": (1, "cosine", np.cos),
    "erf": (1, "error_function", np.vectorize(math.erf, otypes=[np.float32])), "cbrt": (1, "cube_root", np.cbrt),
    "pow": (2, "power", _power), "min": (2, "lesser", lambda a, b: np.where(np.less(a, b), a, b)),
    "max": (2, "greater", lambda a, b: np.where(np.greater(a, b), a, b)),
}
_BINARY: dict[type, tuple[str, Callable[..., Any]]] = {
    ast.Add: ("plus", np.add), ast.Sub: ("minus", np.subtract), ast.Mult: ("times", np.multiply), ast.Div: ("over", np.divide),
    ast.Pow: ("power", _power)}
_COMPARE: dict[type, tuple[str, Callable[..., Any]]] = {
    ast.Lt: ("less", np.less), ast.LtE: ("less_equal", np.less_equal), ast.Gt: ("more", np.greater),
    ast.GtE: ("more_equal", np.greater_equal), ast.Eq: ("equal", np.equal), ast.NotEq: ("unequal", np.not_equal)}
MOST_CHARACTERS, MOST_TERMS, MOST_DEPTH, MOST_EXPONENT = 4096, 256, 64, 64
_NAMESPACE = "suture::abi::expression::"


class Expression(Kind):
    """An expression of x."""

    annotation, docs = "str", "An expression of x, the value of a voxel."

    def canonical(self, value: Any, what: str) -> str:
        if not isinstance(value, str):
            raise Error(f"{what}: expected a string, got {shown(value)}")
        if len(value) > MOST_CHARACTERS:
            raise Error(f"{what}: expected at most {MOST_CHARACTERS} characters, got {len(value)}. Write an operation in C++")
        return value


KINDS["expression"] = Expression()


@check_calls
@dataclass(frozen=True)
class value(Operation):
    """Replaces each voxel by an expression of x, its value.

    It may use + - * /, ** and pow, comparisons with and, or, not inside where(condition, then, otherwise), and abs, sqrt,
    exp, log, log2, exp2, sin, cos, erf, cbrt, min, max. Other names are parameters. Parameters and constants are numbers
    that may change without compiling; the exponents of ** are part of what is compiled.

    Arithmetic is in float32 and bit-identical on every machine. min and max return their second argument if either is NaN.
    x ** n with a literal whole number n from -64 to 64 is a product, which is defined for x below 0. Any other power, such as
    pow(x, y), is NaN where x is below 0. An expression has at most 256 terms, nested at most 64 deep.

    Parameters
    ----------
    expression : str
        The expression.
    **parameters : float
        Values of the names in it.

    Raises
    ------
    Error
        If the expression has names or syntax that it may not have, or is too long.

    Examples
    --------
    >>> knee = st.value("log(1 + max(x, 0) / knee)", knee=100)
    >>> knee.numpy([0, -5]).tolist()
    [0.0, 0.0]
    """

    expression: str
    parameters: Any = None

    _role: ClassVar[str] = "value"
    _header: ClassVar[str] = "abi/expression.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (("expression", "expression"), ("parameters", "parameters"))

    def __init__(self, expression: str, **parameters: float) -> None:
        self._set(expression, parameters)

    def _set(self, expression: Any, parameters: Any) -> None:
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "parameters", parameters)
        self.__post_init__()  # checks the two by their kinds
        self._parsed()

    def _parsed(self) -> _Parsed:
        return _parse(self.expression, tuple(self.parameters))

    @classmethod
    def from_json(cls, record: Mapping[str, Any], depth: int = 0) -> value:
        """Makes the operation from its expression and parameters, as to_json wrote them."""
        given = members(record, "suture: value", ["expression", "parameters"])
        return _again(given["expression"], KINDS["parameters"].from_json(given["parameters"], "suture: value: parameters"))

    def __reduce__(self) -> Any:
        return _again, (self.expression, dict(self.parameters))

    def __repr__(self) -> str:
        return f"value({', '.join([repr(self.expression), *(f'{k}={v!r}' for k, v in self.parameters.items())])})"

    def encode(self, encoder: Encoder) -> str:
        """Appends parameters, then constants from left to right. Returns the C++ type of the operation."""
        parsed = self._parsed()
        encoder.out.headers |= self.headers()
        encoder.number(*([*self.parameters.values(), *parsed.constants] or [0.0]))
        return f"suture::abi::value<{parsed.cpp}>"

    def numpy(self, x: Any) -> np.ndarray:
        """Computes the expression by NumPy in float32. Functions such as exp may differ from the operation in the last bits.

        Parameters
        ----------
        x : array
            Values of voxels.

        Returns
        -------
        numpy.ndarray
            The results, of float32.
        """
        with np.errstate(all="ignore"):
            made = self._parsed().of(np.asarray(x, np.float32), [np.float32(v) for v in self.parameters.values()])
        return np.asarray(made, np.float32)


def _again(expression: Any, parameters: Any) -> value:
    made = value.__new__(value)
    made._set(expression, parameters)
    return made


class _Parsed:
    """Translates an expression to a C++ type and to NumPy, and refuses everything that the tables above do not list.

    constants   literal numbers, in the order of their indices, which follow those of the parameters
    """

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        self.text, self.names = text, names
        self.constants: list[float] = []
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            raise Error(f"suture: value: {shown(text)} is no expression: {str(problem.args[0]) if problem.args else 'too deep'}") from None
        self._bound(tree)
        used: set[str] = set()
        self._used = used
        self.cpp, self._numpy = self._value(tree)
        unused = [n for n in names if n not in used]
        if unused:
            raise Error(f"suture: value: {shown(text)} does not use {', '.join(unused)}")

    def of(self, x: np.ndarray, parameters: Sequence[Any]) -> Any:
        """Computes the expression by NumPy."""
        return self._numpy(x, parameters)

    def _bound(self, tree: ast.AST) -> None:
        """Refuses an expression of too many terms, or too deep, without recursion."""
        waiting, terms, depth = [(tree, 1)], 0, 0
        while waiting:
            node, level = waiting.pop()
            terms, depth = terms + 1, max(depth, level)
            waiting += [(child, level + 1) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if terms > MOST_TERMS or depth > MOST_DEPTH:
            raise Error(f"suture: value: expression: expected at most {MOST_TERMS} terms and {MOST_DEPTH} inside one another, got "
                        f"{terms} and {depth}. Write an operation in C++")

    def _refuse(self, node: ast.AST) -> Error:
        text = ast.get_source_segment(self.text, node) or type(node).__name__
        return Error(f"suture: value: {shown(text)} is not allowed in {shown(self.text)}; x, parameters, numbers, + - * / **, "
                     f"comparisons, where, {', '.join(_FUNCTIONS)} are")

    def _constant(self, node: ast.Constant) -> float:
        number: Any = node.value
        if type(number) not in (int, float) or not abs(number) < 3.4e38:
            raise self._refuse(node)
        return float(np.float32(number))

    def _call(self, function: str, of: Callable[..., Any], nodes: Sequence[ast.AST]) -> tuple[str, Callable[..., Any]]:
        terms = [self._value(n) for n in nodes]
        return (f"{_NAMESPACE}call<{_NAMESPACE}{function}, {', '.join(t for t, _ in terms)}>",
                lambda x, p: of(*(f(x, p) for _, f in terms)))

    def _value(self, node: ast.AST) -> tuple[str, Callable[..., Any]]:
        """Returns the C++ type of a term, and a function that computes it by NumPy from x and the parameters."""
        if isinstance(node, ast.Constant):
            constant = np.float32(self._constant(node))
            self.constants.append(float(constant))
            return f"{_NAMESPACE}number<{len(self.names) + len(self.constants) - 1}>", lambda x, p: constant
        if isinstance(node, ast.Name) and node.id == "x":
            return f"{_NAMESPACE}x", lambda x, p: x
        if isinstance(node, ast.Name) and node.id in self.names:
            self._used.add(node.id)
            at = self.names.index(node.id)
            return f"{_NAMESPACE}number<{at}>", lambda x, p: p[at]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd):
            return self._value(node.operand)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._call("negative", np.negative, [node.operand])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            exponent = self._whole_exponent(node.right)
            if exponent is not None:
                term, of = self._value(node.left)
                return f"{_NAMESPACE}whole_power<{term}, {exponent}>", lambda x, p: _whole_power(of(x, p), exponent)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return self._call(*_BINARY[type(node.op)], [node.left, node.right])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id == "where" and len(node.args) == 3:
                condition, holds = self._condition(node.args[0])
                (a, then), (b, otherwise) = self._value(node.args[1]), self._value(node.args[2])
                return (f"{_NAMESPACE}where<{condition}, {a}, {b}>",
                        lambda x, p: np.where(holds(x, p), then(x, p), otherwise(x, p)))
            known = _FUNCTIONS.get(node.func.id)
            if known and len(node.args) == known[0]:
                return self._call(known[1], known[2], node.args)
        raise self._refuse(node)

    def _whole_exponent(self, node: ast.AST) -> int | None:
        """Returns an exponent that is written as a whole number and so becomes products, else None."""
        sign = 1
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            sign, node = -sign if isinstance(node.op, ast.USub) else sign, node.operand
        if isinstance(node, ast.Constant):
            exponent = sign * self._constant(node)
            if exponent == int(exponent) and abs(exponent) <= MOST_EXPONENT:
                return int(exponent)
        return None

    def _condition(self, node: ast.AST) -> tuple[str, Callable[..., Any]]:
        """Returns the C++ type of a condition, and a function that computes it by NumPy."""
        if isinstance(node, ast.Compare) and all(type(o) in _COMPARE for o in node.ops):
            parts = []
            for a, o, b in zip((node.left, *node.comparators), node.ops, node.comparators):
                (left, f), (right, g), (name, of) = self._value(a), self._value(b), _COMPARE[type(o)]
                parts.append((f"{_NAMESPACE}compare<{_NAMESPACE}{name}, {left}, {right}>",
                              lambda x, p, f=f, g=g, of=of: of(f(x, p), g(x, p))))
            return parts[0] if len(parts) == 1 else self._joined("all_of", np.logical_and, parts)
        if isinstance(node, ast.BoolOp):
            parts = [self._condition(v) for v in node.values]
            both = isinstance(node.op, ast.And)
            return self._joined("all_of" if both else "any_of", np.logical_and if both else np.logical_or, parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            condition, holds = self._condition(node.operand)
            return f"{_NAMESPACE}not_of<{condition}>", lambda x, p: np.logical_not(holds(x, p))
        raise self._refuse(node)

    @staticmethod
    def _joined(name: str, join: Any, parts: Sequence[tuple[str, Callable[..., Any]]]) -> tuple[str, Callable[..., Any]]:
        return (f"{_NAMESPACE}{name}<{', '.join(t for t, _ in parts)}>",
                lambda x, p: join.reduce(np.broadcast_arrays(*(f(x, p) for _, f in parts))))


_parse = lru_cache(maxsize=256)(_Parsed)
