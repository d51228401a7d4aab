# SPDX-License-Identifier: Apache-2.0
"""Value operations of one's own, written as expressions: value("log(1 + max(x, 0) / knee)", knee=100)."""
from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import Error
from .operation import FrozenMap, Operation

# By name: how many arguments, C++, NumPy. The C++ is the library's own arithmetic, so bits are the same everywhere.
_FUNCTIONS: dict[str, tuple[int, str, Callable[..., Any]]] = {
    "abs": (1, "({0} < 0.0f ? -({0}) : ({0}))", np.abs), "sqrt": (1, "suture::math::sqrt({0})", np.sqrt),
    "exp": (1, "suture::math::exp({0})", np.exp), "log": (1, "suture::math::log({0})", np.log),
    "log2": (1, "suture::math::log2({0})", np.log2), "exp2": (1, "suture::math::exp2({0})", np.exp2),
    "sin": (1, "suture::math::sin({0})", np.sin), "cos": (1, "suture::math::cos({0})", np.cos),
    "erf": (1, "suture::math::erf({0})", np.vectorize(math.erf, otypes=[np.float32])),
    "cbrt": (1, "suture::math::cbrt({0})", np.cbrt),
    "pow": (2, "suture::math::pow({0}, {1})", np.power), "min": (2, "lesser({0}, {1})", np.minimum),
    "max": (2, "greater({0}, {1})", np.maximum),
}
_BINARY = {ast.Add: ("{0} + {1}", np.add), ast.Sub: ("{0} - {1}", np.subtract),
           ast.Mult: ("suture::fma({0}, {1}, 0.0f)", np.multiply), ast.Div: ("suture::math::detail::divide({0}, {1})", np.divide)}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_MOST = 200  # nodes


@dataclass(frozen=True)
class value(Operation):
    """What a voxel holds becomes an expression of x, its value: + - * /, ** as pow, comparisons with and, or, not inside
    where(condition, then, otherwise), and abs, sqrt, exp, log, log2, exp2, sin, cos, erf, cbrt, pow, min, max. Other names
    are parameters, numbers that may change without compiling. Arithmetic is that of the library, in float32, the same
    bits everywhere; min and max take the second of their arguments where the first is NaN.

    value("log(1 + max(x, 0) / knee)", knee=100)
    """

    expression: str
    parameters: Any = None

    _role: ClassVar[str] = "value"

    def __init__(self, expression: str, **parameters: float) -> None:
        object.__setattr__(self, "expression", expression)
        if set(parameters) == {"parameters"} and isinstance(parameters["parameters"], dict):
            parameters = parameters["parameters"]  # as JSON has them
        object.__setattr__(self, "parameters", Numbers({k: float(v) for k, v in parameters.items()}))
        _Writer(self)  # looks at it

    def __reduce__(self) -> Any:
        return _again, (self.expression, dict(self.parameters))

    def __repr__(self) -> str:
        return f"value({', '.join([repr(self.expression), *(f'{k}={v!r}' for k, v in self.parameters.items())])})"

    def numpy(self, x: Any) -> np.ndarray:
        """The expression by NumPy, in float32: the reference, but for the last bits of functions."""
        with np.errstate(all="ignore"):
            made = _Writer(self).evaluate(np.asarray(x, np.float32))
        return np.asarray(made, np.float32)


class Numbers(FrozenMap):
    """Parameters by name."""


def _again(expression: str, parameters: dict[str, float]) -> value:
    return value(expression, **parameters)


class _Writer:
    """Reads an expression; whatever is not on the lists above is refused."""

    def __init__(self, op: value) -> None:
        self.op = op
        try:
            self.tree = ast.parse(op.expression, mode="eval").body
        except (SyntaxError, ValueError) as problem:
            raise Error(f"suture: value: {op.expression!r} is no expression: {problem.args[0]}") from None
        if sum(1 for _ in ast.walk(self.tree)) > _MOST:
            raise Error(f"suture: value: {op.expression!r} is longer than {_MOST} terms; write an operation in C++")
        self.names = list(op.parameters)
        self.used: set[str] = set()
        self.code(self.tree)
        unused = [n for n in self.names if n not in self.used]
        if unused:
            raise Error(f"suture: value: {op.expression!r} does not use {', '.join(unused)}")

    def refuse(self, node: ast.AST) -> Error:
        text = ast.get_source_segment(self.op.expression, node) or type(node).__name__
        return Error(f"suture: value: {text!r} is not allowed in {self.op.expression!r}; x, parameters, numbers, + - * / **, "
                     f"comparisons, where, {', '.join(_FUNCTIONS)} are")

    def number(self, node: ast.Constant) -> float:
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)) or not abs(node.value) < 3.4e38:
            raise self.refuse(node)
        return float(np.float32(node.value))

    def code(self, node: ast.AST) -> str:
        """C++ of a float."""
        if isinstance(node, ast.Constant):
            return f"{self.number(node).hex()}f"
        if isinstance(node, ast.Name):
            if node.id == "x":
                return "x"
            if node.id in self.names:
                self.used.add(node.id)
                return f"p[{self.names.index(node.id)}]"
            raise self.refuse(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return f"(-{self.code(node.operand)})" if isinstance(node.op, ast.USub) else self.code(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return "(" + _BINARY[type(node.op)][0].format(self.code(node.left), self.code(node.right)) + ")"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return f"suture::math::pow({self.code(node.left)}, {self.code(node.right)})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id == "where" and len(node.args) == 3:
                return f"({self.condition(node.args[0])} ? {self.code(node.args[1])} : {self.code(node.args[2])})"
            known = _FUNCTIONS.get(node.func.id)
            if known and len(node.args) == known[0]:
                return known[1].format(*(self.code(a) for a in node.args))
        raise self.refuse(node)

    def condition(self, node: ast.AST) -> str:
        """C++ of a truth."""
        if isinstance(node, ast.Compare) and all(type(o) in _COMPARE for o in node.ops):
            values = [self.code(v) for v in (node.left, *node.comparators)]
            return "(" + " && ".join(f"{a} {_COMPARE[type(o)]} {b}" for a, o, b in zip(values, node.ops, values[1:])) + ")"
        if isinstance(node, ast.BoolOp):
            return "(" + (" && " if isinstance(node.op, ast.And) else " || ").join(self.condition(v) for v in node.values) + ")"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(!{self.condition(node.operand)})"
        raise self.refuse(node)

    def evaluate(self, x: np.ndarray) -> Any:
        """By NumPy."""
        parameters = {k: np.float32(v) for k, v in self.op.parameters.items()}

        def of(node: Any) -> Any:
            if isinstance(node, ast.Constant):
                return np.float32(self.number(node))
            if isinstance(node, ast.Name):
                return x if node.id == "x" else parameters[node.id]
            if isinstance(node, ast.UnaryOp):
                return np.logical_not(of(node.operand)) if isinstance(node.op, ast.Not) else (
                    -of(node.operand) if isinstance(node.op, ast.USub) else of(node.operand))
            if isinstance(node, ast.BinOp):
                f: Any = np.power if isinstance(node.op, ast.Pow) else _BINARY[type(node.op)][1]
                return f(of(node.left), of(node.right))
            if isinstance(node, ast.Compare):
                values = [of(v) for v in (node.left, *node.comparators)]
                made: Any = True
                for a, o, b in zip(values, node.ops, values[1:]):
                    made = np.logical_and(made, {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
                                                 "==": np.equal, "!=": np.not_equal}[_COMPARE[type(o)]](a, b))
                return made
            if isinstance(node, ast.BoolOp):
                join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                made = of(node.values[0])
                for v in node.values[1:]:
                    made = join(made, of(v))
                return made
            arguments = [of(a) for a in node.args]
            return np.where(*arguments) if node.func.id == "where" else _FUNCTIONS[node.func.id][2](*arguments)

        return of(self.tree)


def write_value(encoder: Any, op: value) -> str:
    """The operation as a struct of its own, and how it is made."""
    writer = _Writer(op)
    body = writer.code(writer.tree)
    name = f"own_value_{len(encoder.out.definitions)}"
    count = max(len(writer.names), 1)
    encoder.out.definitions.append(f"""// {op.expression!r}
struct {name} {{
  static constexpr std::string_view name = "value";
  static constexpr bool depends_on_grid_alone = true;
  float p[{count}];
  SUTURE_FN static float lesser(float a, float b) {{ return a < b ? a : b; }}
  SUTURE_FN static float greater(float a, float b) {{ return a > b ? a : b; }}
  SUTURE_FN float operator()(float x) const {{ return {body}; }}
}};""")
    encoder.out.headers |= {"math/elementary.hpp", "math/error_function.hpp", "math/cube_root.hpp"}
    at = encoder.number(*op.parameters.values()) if op.parameters else encoder.number(0.0)
    return f"{name}{{{{{', '.join(f'v.f({at + k})' for k in range(count))}}}}}"
