# SPDX-License-Identifier: Apache-2.0
"""Functions are wrapped so that a call with wrong arguments raises an Error of one sentence, in place of a TypeError."""
from __future__ import annotations

import difflib
import functools
import inspect
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .errors import Error

Made = TypeVar("Made")
_Parameter = inspect.Parameter


def check_calls(made: Made) -> Made:
    """Wraps a function, or the constructor, static methods and methods with keyword-only parameters of a class, so that a call
    with wrong arguments raises an Error of one sentence. Arguments are examined only after a TypeError, so that a valid call costs
    only one more frame."""
    if not isinstance(made, type):
        return checked(made)  # type: ignore[return-value, arg-type]
    for name, each in list(vars(made).items()):
        if isinstance(each, (staticmethod, classmethod)) and not name.startswith("_"):
            setattr(made, name, type(each)(checked(each.__func__)))
        elif inspect.isfunction(each):
            if name == "__init__":
                setattr(made, name, checked(each, made))
            elif each.__code__.co_kwonlyargcount and (name == "__call__" or not name.startswith("_")):
                setattr(made, name, checked(each))
    return made


def check_calls_in(module: dict[str, Any]) -> None:
    """Checks the calls of all public functions and classes that a module defines; `module` is its globals()."""
    for name in module["__all__"]:
        made = module[name]
        if (inspect.isfunction(made) or isinstance(made, type)) and made.__module__ == module["__name__"]:
            module[name] = check_calls(made)


def index_of(value: Any) -> int | None:
    """Returns a whole number of Python, NumPy or torch, also one in an array without axes, as an int; None for anything else."""
    try:
        return operator.index(value) if len(getattr(value, "shape", ())) == 0 else None
    except TypeError:
        return None


def checked(call: Callable[..., Any], of: type | None = None, elsewhere: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """Wraps a function so that a call with wrong arguments raises an Error of one sentence.

    Parameters
    ----------
    call : function
        The function.
    of : type, optional
        The class whose constructor it is.
    elsewhere : dict, optional
        Parameters of suture by their names in other libraries.
    """
    names = [of.__name__] if of else call.__qualname__.rpartition("<locals>.")[2].removesuffix(".__call__").split(".")
    what = ": ".join(["suture", *(["store"] if call.__module__.startswith("suture.store.") else []), *names])

    @functools.wraps(call)
    def watched(*values: Any, **named: Any) -> Any:
        try:
            return call(*values, **named)
        except TypeError:
            sentence = _mistake(call, values, named, of, elsewhere or {})
            if not sentence:
                raise
        raise Error(f"{what}: {sentence}")

    return watched


def _mistake(call: Callable[..., Any], values: tuple[Any, ...], named: Mapping[str, Any], of: type | None,
             elsewhere: Mapping[str, str]) -> str:
    """Returns a sentence on what is wrong with the arguments of a call; an empty text if they fit, so that the TypeError has another
    cause."""
    signature = inspect.signature(call)
    try:
        signature.bind(*values, **named)
        return ""
    except TypeError:
        pass
    own = 1 if next(iter(signature.parameters), "") in ("self", "cls") else 0
    parameters = dict(list(signature.parameters.items())[own:])
    positional = [n for n, p in parameters.items() if p.kind in (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)]
    given = {*positional[:len(values) - own], *named}
    known = [n for n, p in parameters.items() if p.kind in (_Parameter.POSITIONAL_OR_KEYWORD, _Parameter.KEYWORD_ONLY)]
    open_ones = [n for n in known if n not in given]
    for name in named:
        if name not in parameters:
            near = difflib.get_close_matches(name, open_ones or known, 1, .5)
            way = f"Here it is {elsewhere[name]}" if name in elsewhere else f"Nearest is {near[0]}" if near else \
                f"It has {', '.join(known) or 'none'}"
            return f"expected a parameter that it has, got {name!r}. {way}"
    if len(values) - own > len(positional):
        others = ", ".join(f"{name}=..." for name in open_ones)
        return (f"expected {len(positional) or 'no'} value{'s' * (len(positional) != 1)} without a name, got {len(values) - own}. "
                + (f"Pass {others}" if others else "Leave the others out"))
    twice = [n for n in positional[:len(values) - own] if n in named]
    if twice:
        return f"{twice[0]}: expected one value, got two. Leave one out"
    missing = [n for n in open_ones if parameters[n].default is _Parameter.empty]
    return f"{missing[0]}: expected {_type_of(missing[0], call, of)}, got nothing. Pass {', '.join(f'{n}=...' for n in missing)}"


def _type_of(name: str, call: Callable[..., Any], of: type | None) -> str:
    """Returns the type that the docstring gives a parameter."""
    doc = inspect.getdoc(of or call) or ""
    found = re.search(rf"^(?:\w+, )*{re.escape(name)}(?:, \w+)* : (.+)$", doc, re.MULTILINE)
    return found[1] if found else "a value"
