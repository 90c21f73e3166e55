"""The arrays that a function makes for itself, with their sizes as text in its parameters.

    w = allocate(n_j)                        ("w", False, "8 * n_j")
    in a loop that threads share             ("w", True, "8 * n_j"), for each thread

A size that depends on what arrays hold is left out: nobody knows it before the function runs.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, get_args

from codegen.ir import (
    Allocate,
    Binary,
    Cast,
    Const,
    Declare,
    For,
    Function,
    Invoke,
    LoopKind,
    Module,
    Select,
    Stmt,
    Team,
    Var,
)
from codegen.records import dataclass
from codegen.shared_work import SharedWork
from codegen.tree import children, walk

LocalArray = tuple[str, bool, str]
"""A name, whether each thread has one, and the text of its bytes."""
STATEMENTS = frozenset(get_args(Stmt))
_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%"}


def local_arrays(module: Module) -> tuple[LocalArray, ...]:
    """List the local arrays of the exported functions."""
    collector = _Walk(_allocating(module), [], set())
    for function in module.exported:
        names = {name: name for name in ("threads", *(s.name for s in function.scalars))}
        collector.collect(function.body, names, False)
    return tuple(collector.arrays)


def _allocating(module: Module) -> dict[str, Function]:
    """Return the functions that make an array, or call one that does, by name."""
    functions: dict[str, Function] = {}
    for function in module.functions:  # those that are called stand before their callers
        makes, called = _arrays_and_calls(function)
        if makes or not called.isdisjoint(functions):
            functions[function.name] = function
    return functions


def _find_arrays_and_calls(function: Function, _: None) -> tuple[bool, frozenset[str]]:
    """Tell whether a function makes an array itself, and which ones it calls."""
    makes, called = False, set()
    for node in walk(function.body):
        makes = makes or isinstance(node, Allocate)
        if isinstance(node, Invoke):
            called.add(node.function)
    return makes, frozenset(called)


_arrays_and_calls = SharedWork(_find_arrays_and_calls)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The functions of a module that make arrays, and what was found so far."""

    functions: Mapping[str, Function]
    arrays: list[LocalArray]
    entered: set[str]

    def collect(self, node: Any, texts_of: dict[str, str], per_thread: bool) -> None:
        """Go through statements in order; `texts_of` has the texts of variables in sizes.

        per_thread  whether several threads come here, each for itself
        """
        match node:
            case Declare(var, value, constant=True):
                text = size_text(value, texts_of)
                if text is not None:
                    texts_of[var.name] = text
            case Allocate(array, size):
                text = size_text(size, texts_of)
                if text is not None:
                    self.arrays.append(
                        (array.name, per_thread, f"{array.element.itemsize} * {text}")
                    )
            case Invoke(name, scalars=scalars) if name in self.functions:
                function = self.functions[name]
                texts = [size_text(scalar, texts_of) for scalar in scalars]
                pairs = zip(function.scalars, texts, strict=False)
                inner = {scalar.name: text for scalar, text in pairs if text is not None}
                if name not in self.entered:  # of one that calls itself nobody knows how often
                    self.entered.add(name)
                    self.collect(function.body, {"threads": "threads", **inner}, per_thread)
                    self.entered.discard(name)
            case Team():
                per_thread = True
            case For(kind=LoopKind.PARALLEL):
                per_thread = True
        for stmt in filter(_is_statement, children(node)):
            self.collect(stmt, texts_of, per_thread)


def _is_statement(node: Any) -> bool:
    """Tell whether a node is a statement; expressions allocate nothing."""
    return node.__class__ in STATEMENTS


def size_text(expr: Any, texts_of: dict[str, str]) -> str | None:
    """Return an expression as text in the parameters; None where it depends on what arrays hold."""
    match expr:
        case Const(value):
            return None if isinstance(value, complex) or not isfinite(value) else str(int(value))
        case Var(name):
            return texts_of.get(name)
        case Cast(_, operand):
            return size_text(operand, texts_of)
        case Select(_, then, orelse):
            return _binary_text("max({}, {})", then, orelse, texts_of)
        case Binary("min" | "max" as op, left, right):
            return _binary_text(op + "({}, {})", left, right, texts_of)
        case Binary(op, left, right) if op in _OPERATORS:
            return _binary_text(f"({{}} {_OPERATORS[op]} {{}})", left, right, texts_of)
    return None


def _binary_text(form: str, left: Any, right: Any, texts_of: dict[str, str]) -> str | None:
    parts = [size_text(left, texts_of), size_text(right, texts_of)]
    return None if None in parts else form.format(*parts)


EVALUATED: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def evaluated_size(text: str, values: Mapping[str, int]) -> int:
    """Compute the number of a text of `size_text`, as a tree: the text is not run.

    >>> evaluated_size("8 * max(0, (n - 1))", {"n": 4})
    24

    Raises KeyError for a name without a value, ValueError for another text.
    """
    try:
        return _number(ast.parse(text, mode="eval").body, values)
    except (SyntaxError, RecursionError, MemoryError, ZeroDivisionError) as error:
        raise ValueError(f"no size: {text:.80}") from error


def _number(node: ast.expr, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(int(number)):
            return number
        case ast.Name(name):
            return values[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -_number(operand, values)
        case ast.BinOp(left, op, right) if type(op) in EVALUATED:
            return EVALUATED[type(op)](_number(left, values), _number(right, values))
        case ast.Call(ast.Name("min" | "max" as name), [one, other], []):
            choose = min if name == "min" else max
            return choose(_number(one, values), _number(other, values))
    raise ValueError(f"no size: {ast.unparse(node):.80}")
