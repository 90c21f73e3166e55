"""The meaning of the loop IR in the plainest Python: what passes keep and the emitter says.

Loops that threads share run one iteration after another; that no two of these touch an element in
ways that would race is asserted (`Shared`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

from codegen.build import load
from codegen.infer import type_of
from codegen.ir import (
    Allocate,
    Apply,
    Assign,
    AtomicStore,
    Binary,
    Block,
    Broadcast,
    Cast,
    ClearTable,
    Comment,
    Const,
    Count,
    Declare,
    Expect,
    Expr,
    Fill,
    For,
    Function,
    If,
    Insert,
    Invoke,
    Key,
    Lead,
    Load,
    NewTable,
    Prefetch,
    Ranked,
    Reserve,
    Search,
    Select,
    SetLength,
    Shuffle,
    Sort,
    SortTable,
    Stmt,
    Store,
    Team,
    Unary,
    Var,
    VectorLoad,
    VectorStore,
    While,
)
from codegen.ir.statements import LoopKind


@dataclass
class Shared:
    """A loop that threads share: which of its iterations read, write and atomically update the
    elements of the arrays that it does not allocate itself."""

    private: set[str]
    iteration: int = 0
    touched: dict[tuple[str, int], dict[str, set[int]]] = field(default_factory=dict)

    def touch(self, how: str, array: str, at: int) -> None:
        """Assert that no other iteration touches an element in a way that this one races with."""
        if array in self.private:
            return
        ways = self.touched.setdefault((array, int(at)), {})
        for other, iterations in ways.items():
            if (how == "write" or other != how) and iterations - {self.iteration}:
                raise AssertionError(
                    f"a race on {array}[{at}]: {other} in iterations {sorted(iterations)[:3]}, "
                    f"{how} in iteration {self.iteration}"
                )
        ways.setdefault(how, set()).add(self.iteration)


@dataclass
class State:
    """Scalars, arrays, tables (keys in order of insertion, ranks), lengths and the functions that
    may be called, by name; and the loops around that threads share."""

    scalars: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, list[Any]] = field(default_factory=dict)
    ranks: dict[str, list[int]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    around: list[Shared] = field(default_factory=list)

    def touch(self, how: str, array: str, first: int, count: int = 1) -> None:
        """Note that elements are read, written or updated atomically ("update")."""
        for shared in self.around:
            for at in range(first, first + count):
                shared.touch(how, array, at)

    def own(self, array: str) -> None:
        """Note that an array is allocated inside the loops around."""
        for shared in self.around:
            shared.private.add(array)


def run(
    function: Function,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, Any],
    earlier: tuple[Function, ...] = (),
) -> State:
    """Run `function`, which may call `earlier` ones, on copies of `arrays`; growing arrays start
    empty."""
    state = State(dict(scalars), {name: np.array(a) for name, a in arrays.items()})
    state.functions = {each.name: each for each in earlier}
    state.scalars.setdefault("threads", 1)
    for array in function.arrays:
        state.arrays.setdefault(array.name, np.zeros(0, array.element.name))
    with np.errstate(all="ignore"):
        execute(function.body, state)
    return state


def execute(stmt: Stmt, s: State) -> None:  # noqa: C901 - one case a node
    match stmt:
        case Block(body=body):
            for inner in body:
                execute(inner, s)
        case Comment() | Prefetch():
            pass
        case Declare(var=var, value=value):
            s.scalars[var.name] = _as(var.type.name, evaluate(value, s))
        case Assign(var=var, value=value, op=op):
            new = Binary(op, var, value) if op else value
            s.scalars[var.name] = _as(var.type.name, evaluate(new, s))
        case Store(array, index, value, op) | AtomicStore(array, index, value, op):
            at = evaluate(index, s)
            assert 0 <= at < len(s.arrays[array.name]), f"{array}[{at}] is out of bounds"
            new = evaluate(value, s)
            s.touch("update" if isinstance(stmt, AtomicStore) else "write", array.name, at)
            if op:
                around, s.around = s.around, []
                new = evaluate(Binary(op, load(array, index), value), s)
                s.around = around
            s.arrays[array.name][at] = new
        case VectorStore(array=array, index=index, value=value):
            at, lanes = evaluate(index, s), evaluate(value, s)
            assert at >= 0 and at + len(lanes) <= len(s.arrays[array.name])
            s.touch("write", array.name, at, len(lanes))
            s.arrays[array.name][at : at + len(lanes)] = lanes
        case If(condition=condition, then=then, orelse=orelse):
            execute(then if evaluate(condition, s) else orelse, s)
        case While(condition=condition, body=body):
            while evaluate(condition, s):
                execute(body, s)
        case For(var=var, start=start, body=body, step=step):
            if stmt.kind is LoopKind.PARALLEL:
                s.around = [*s.around, Shared(set())]
            s.scalars[var.name] = evaluate(start, s)
            while s.scalars[var.name] < evaluate(stmt.stop, s):
                if stmt.kind is LoopKind.PARALLEL:
                    s.around[-1].iteration = s.scalars[var.name]
                execute(body, s)
                s.scalars[var.name] += step
            if stmt.kind is LoopKind.PARALLEL:
                s.around = s.around[:-1]
        case _:
            _memory(stmt, s)


def _memory(stmt: Any, s: State) -> None:  # noqa: C901 - one case a node
    match stmt:
        case Invoke():
            _invoke(stmt, s)
        case Team():
            _team(stmt, s)
        case Allocate(array=array, size=size):
            s.arrays[array.name] = np.zeros(evaluate(size, s), array.element.name)
            s.own(array.name)
        case Reserve(array=array, size=size):
            old = s.arrays[array.name]
            new = np.zeros(max(len(old), evaluate(size, s)), array.element.name)
            new[: len(old)] = old
            s.arrays[array.name] = new
        case Expect(condition=condition):
            assert evaluate(condition, s), "what is expected does not hold"
        case SetLength(array=array, size=size):
            s.lengths[array.name] = evaluate(size, s)
        case Fill(array=array, start=start, count=count, value=value):
            first, length = evaluate(start, s), evaluate(count, s)
            s.touch("write", array.name, first, length)
            s.arrays[array.name][first : first + length] = evaluate(value, s)
        case Sort(array=array, start=start, count=count, marks=marks):
            first = evaluate(start, s)
            some = s.arrays[array.name][first : first + evaluate(count, s)]
            some.sort()
            assert marks is None or np.array_equal(np.flatnonzero(s.arrays[marks.name]), some)
        case NewTable(table=table) | ClearTable(table=table):
            s.tables[table.name] = []
        case Insert(table=table, key=key, entry=entry):
            keys, new = s.tables[table.name], evaluate(key, s)
            if new not in keys:
                keys.append(new)
            s.scalars[entry.name] = keys.index(new)
        case SortTable(table=table):
            keys = s.tables[table.name]
            s.ranks[table.name] = sorted(range(len(keys)), key=keys.__getitem__)


def _team(team: Team, s: State) -> None:
    """One thread takes all pieces; then the parts that they have made are put together."""
    made: dict[str, list[Any]] = {part.array.name: [] for part in team.parts}
    shared = Shared(set(made))
    s.around = [*s.around, shared]
    execute(team.setup, s)
    for piece in range(evaluate(team.count, s)):
        s.scalars[team.piece.name] = shared.iteration = piece
        for part in team.parts:
            s.arrays[part.array.name] = np.zeros(0, part.array.element.name)
        execute(team.body, s)
        for name, parts in made.items():
            parts.append(s.arrays[name][: s.lengths[name]])
    s.around = s.around[:-1]
    for part in team.parts:
        parts = made[part.array.name]
        if part.counts is not None:
            before = np.cumsum([0, *map(len, made[part.counts.name])])
            parts = [p[k > 0 :] + before[k] for k, p in enumerate(parts)]
        s.arrays[part.array.name] = np.concatenate(parts).astype(part.array.element.name)
        s.lengths[part.array.name] = len(s.arrays[part.array.name])


def _invoke(stmt: Invoke, s: State) -> None:
    called = s.functions[stmt.function]
    inner = State(functions=s.functions)
    for array, place in zip(called.arrays, stmt.places, strict=True):
        at, whole = evaluate(place.start, s), s.arrays[place.array.name]
        assert at >= 0, f"{place.array}[{at}:] starts outside"  # past the end, nothing is read
        inner.arrays[array.name] = whole[at:]
    for scalar, value in zip(called.scalars, stmt.scalars, strict=True):
        inner.scalars[scalar.name] = evaluate(value, s)
    if stmt.threads is not None:
        inner.scalars["threads"] = evaluate(stmt.threads, s)
    execute(called.body, inner)


def evaluate(expr: Expr, s: State) -> Any:  # noqa: C901 - one case a node
    match expr:
        case Var(name=name):
            return s.scalars[name]
        case Const(value=value, type=scalar):
            return _as(scalar.name, value)
        case Unary(op="!", operand=operand):
            return not evaluate(operand, s)
        case Unary(operand=operand):
            return -evaluate(operand, s)
        case Binary(op=op, left=left, right=right):
            return _binary(op, evaluate(left, s), lambda: evaluate(right, s), expr)
        case Load(array=array, index=index):
            at = evaluate(index, s)
            assert 0 <= at < len(s.arrays[array.name]), f"{array}[{at}] is out of bounds"
            value = s.arrays[array.name][at]
            s.touch("read", array.name, at)
            return int(value) if array.element.is_integer else value
        case Search(array, start, stop, value, after):
            low, high = evaluate(start, s), evaluate(stop, s)
            stored = s.arrays[array.name][low:high]
            wanted = evaluate(value, s)
            return low + int(np.searchsorted(stored, wanted, "right" if after else "left"))
        case Cast(type=scalar, operand=operand):
            return _as(scalar.name, evaluate(operand, s))
        case Apply(function=function, args=args):
            values = [_as(type_of(arg).name, evaluate(arg, s)) for arg in args]
            return numpy_function(function)(*values)
        case Select(condition=condition, then=then, orelse=orelse):
            return evaluate(then if evaluate(condition, s) else orelse, s)
        case Count(table=table):
            return len(s.tables[table.name])
        case Key(table=table, entry=entry):
            return s.tables[table.name][evaluate(entry, s)]
        case Ranked(table=table, rank=rank):
            return s.ranks[table.name][evaluate(rank, s)]
        case VectorLoad(array=array, index=index, lanes=lanes):
            at = evaluate(index, s)
            assert at >= 0 and at + lanes <= len(s.arrays[array.name])
            s.touch("read", array.name, at, lanes)
            return s.arrays[array.name][at : at + lanes].copy()
        case Broadcast(value=value, lanes=lanes):
            return np.array([evaluate(value, s)] * lanes)
        case Lead():
            return 0  # as of an array that begins there
        case Shuffle(left=left, right=right, lanes=lanes):
            return np.concatenate([evaluate(left, s), evaluate(right, s)])[list(lanes)]
    raise AssertionError(f"no meaning for {expr}")


def _binary(op: str, left: Any, right: Any, expr: Binary) -> Any:
    if op == "&&":
        return bool(left) and bool(right())
    if op == "||":
        return bool(left) or bool(right())
    other = right()
    if op in ("/", "%") and type_of(expr).is_integer:
        quotient = abs(left) // abs(other) * (1 if (left < 0) == (other < 0) else -1)
        return quotient if op == "/" else left - quotient * other
    return _OPERATORS[op](left, other)


_OPERATORS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "min": min,
    "max": max,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


NUMPY_NAMES: dict[str, str] = {
    "/": "divide",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "atan2": "arctan2",
}  # fmt: skip
"""Functions that NumPy has under other names, or NumPy 1 has."""


def numpy_function(name: str) -> Any:
    """What a scalar function means."""
    if name == "erf":
        return scipy.special.erf
    if name == "sigmoid":
        return _sigmoid
    if name.startswith("nearest_"):
        half = np.dtype(getattr(ml_dtypes, name.removeprefix("nearest_"), "float16"))
        return lambda x: np.asarray(x).astype(half).astype(np.asarray(x).dtype)
    return getattr(np, NUMPY_NAMES.get(name, name))


def _sigmoid(x: Any) -> Any:
    """In higher precision, for SciPy's is 0 below -709."""
    exact = 1 / (1 + np.exp(-np.asarray(x).astype(np.longdouble)))
    return exact.astype(np.asarray(x).dtype)


def _as(name: str, value: Any) -> Any:
    """`value` as the Python or NumPy scalar of a type."""
    if isinstance(value, np.ndarray):
        return value
    if name.startswith(("int", "uint")):
        return int(value)
    return np.dtype(name).type(value)
