"""Reduce what the units of a GPU add up in registers, so that one of them writes it.

    lanes for p in a..b:                lanes for p in a..b:
      t += vals[p] * x[crd[p]]    →       t += vals[p] * x[crd[p]]
    y[i] = t                            combine + t over lanes
                                        y[i] = t

    grid for k in 0..n:                 own = 0
      atomic s[0] += a[k]         →     grid for k in 0..n:
                                          own += a[k]
                                        combine + own over threads
                                        atomic s[0] += own

The inner loops come first: threads of a warp, warps of a block, then the blocks that a block takes
one after another, of which each adds once. Any operator is reduced alike: each unit begins with
its identity, and what the units have is combined by it (`emit.cuda_combining`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from codegen.ir import (
    Array,
    Assign,
    AtomicStore,
    Block,
    Combine,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    If,
    Kernel,
    Load,
    LoopKind,
    Module,
    Role,
    Stmt,
    Store,
    Var,
    While,
)
from codegen.machine.target import UnsupportedError
from codegen.names import Names
from codegen.records import dataclass
from codegen.tree import find, map_children, walk
from codegen.types import BOOL, ScalarType
from codegen.variables import assigned_vars, declared_vars, names_beside, rename, variables_read

UNIT_KINDS = (
    LoopKind.GRID, LoopKind.BLOCKS, LoopKind.WARPS, LoopKind.THREADS, LoopKind.GROUPS,
    LoopKind.LANES,
)  # fmt: skip
"""Loops whose iterations units of a GPU share."""
_COMBINED_OVER = {
    LoopKind.GRID: LoopKind.THREADS,
    LoopKind.WARPS: LoopKind.WARPS,
    LoopKind.THREADS: LoopKind.THREADS,
    LoopKind.LANES: LoopKind.LANES,
}
"""The units that meet behind a loop: blocks and groups of lanes do not."""


def sum_in_units(module: Module) -> Module:
    """Return `module` with the sums of its kernels reduced. Raises UnsupportedError for what is
    none."""
    return replace(module, kernels=tuple(map(_kernel, module.kernels)))


def _kernel(kernel: Kernel) -> Kernel:
    names = names_beside(kernel)
    first = {d.var: d.value for d in find(kernel.body, Declare) if isinstance(d.value, Const)}
    return replace(kernel, body=_Sums(names, first).block(kernel.body))


def identity(op: str, type: ScalarType) -> Const | None:
    """Return the neutral element of an operator; None where it is unknown."""
    if type.kind == "complex" or type.kind not in ("bool", "int", "uint", "float"):
        return None
    if type.kind == "bool":
        truth = {"+": False, "|": False, "||": False, "max": False, "^": False,
                 "*": True, "&": True, "&&": True, "min": True}  # fmt: skip
        return Const(truth[op], BOOL) if op in truth else None
    neutral: dict[str, float | int] = {"+": 0, "-": 0, "*": 1, "/": 1}
    if op in neutral:
        value = neutral[op]
        return Const(float(value) if type.kind == "float" else value, type)
    lowest, highest = _ends(type)
    ends = {"min": highest, "max": lowest}
    if type.is_integer:
        ends |= {"&": highest if type.kind == "uint" else -1, "|": 0, "^": 0}
    return Const(ends[op], type) if op in ends else None


def _ends(type: ScalarType) -> tuple[float | int, float | int]:
    """Return the least and the greatest value."""
    if type.kind == "float":
        return float("-inf"), float("inf")
    if type.kind == "uint":
        return 0, (1 << type.bits) - 1
    return -(1 << (type.bits - 1)), (1 << (type.bits - 1)) - 1


@dataclass(frozen=True, slots=True)
class _Place:
    """An element of memory that all iterations of a loop add to."""

    array: Array
    index: Expr
    op: str


@dataclass(frozen=True, slots=True)
class _Sums:
    """Rewrites one kernel; `first` are the constants that variables begin with."""

    names: Names
    first: Mapping[Var, Expr]

    def block(self, block: Block) -> Block:
        statements: list[Stmt] = []
        for statement in block.body:
            statements += self.statement(statement, statements)
        return Block(tuple(statements))

    def statement(self, stmt: Stmt, before: list[Stmt]) -> Iterator[Stmt]:
        """Yield a statement with the sums in it reduced, behind those before it."""
        match stmt:
            case Block():
                yield self.block(stmt)
            case If(condition, then, orelse):
                yield If(condition, self.block(then), self.block(orelse))
            case While(condition, body):
                yield While(condition, self.block(body))
            case For():
                loop = replace(stmt, body=self.block(stmt.body))
                if loop.kind in UNIT_KINDS:
                    yield from self.reduced(loop, before)
                else:
                    yield loop
            case _:
                yield stmt

    def reduced(self, loop: For, before: list[Stmt]) -> Iterator[Stmt]:
        """Yield a loop that units share, and how their sums are combined behind it."""
        after: list[Stmt] = []
        for var, op in _carried(loop).items():
            start = identity(op, var.type) or self.first.get(var)
            if start is None or loop.kind not in _COMBINED_OVER:
                raise UnsupportedError(f"units of a GPU cannot share the sum {var.name} yet")
            if _is_fresh(var, start, before):
                after.append(_combined(var, op, loop))
                continue
            partial = Var(self.names.fresh(var.name), var.type)
            yield Declare(partial, start, role=Role.VALUES)
            loop = replace(loop, body=rename(loop.body, {var: partial}))
            after += [_combined(partial, op, loop), Assign(var, partial, op, Role.VALUES)]
        for place in _common_places(loop):
            start = identity(place.op, place.array.element)
            if start is None:
                continue
            partial = Var(self.names.fresh(f"{place.array.name}_own"), place.array.element)
            yield Declare(partial, start, role=Role.VALUES)
            loop = replace(loop, body=_added_to(loop.body, place, partial))
            if loop.kind in _COMBINED_OVER:
                after.append(_combined(partial, place.op, loop))
            after.append(AtomicStore(place.array, place.index, partial, place.op, Role.VALUES))
        yield loop
        yield from after


def _combined(var: Var, op: str, loop: For) -> Combine:
    """Return the combination of a variable over units: differences as sums, quotients as
    products.
    """
    combining = {"-": "+", "/": "*"}.get(op, op)
    return Combine(var, combining, _COMBINED_OVER[loop.kind], width=loop.width)


def _is_fresh(var: Var, start: Expr, before: list[Stmt]) -> bool:
    """Tell whether a variable has its initial value right before a loop."""
    for statement in reversed(before):
        if isinstance(statement, Declare) and statement.var == var:
            return statement.value == start
        if any(isinstance(n, Assign | Combine) and n.var == var for n in walk(statement)):
            return False
    return False


def _carried(loop: For) -> dict[Var, str]:
    """Return the scalars from outside that a loop updates. Raises UnsupportedError if one is no
    sum."""
    local, read = declared_vars(loop), variables_read(loop.body)
    scalars: dict[Var, str] = {}
    for stmt in find(loop.body, Assign):
        if stmt.var in local:
            continue
        if stmt.op is None or stmt.var in read or scalars.setdefault(stmt.var, stmt.op) != stmt.op:
            raise UnsupportedError(
                f"an iteration needs what the one before it has made of {stmt.var.name}"
            )
    return scalars


def _common_places(loop: For) -> Iterator[_Place]:
    """Yield the elements that a loop adds to alone, and that its iterations have in common."""
    changing = declared_vars(loop) | assigned_vars(loop.body)
    stored = {s.array for s in find(loop.body, Store)} | {s.array for s in find(loop.body, Fill)}
    atomics = list(find(loop.body, AtomicStore))
    groups = (group for group in find(loop, For) if group.kind is LoopKind.GROUPS)
    of_groups = {s.array for group in groups for s in find(group.body, AtomicStore)}
    read = {load.array for load in find(loop.body, Load)}
    stored |= {stmt.array for stmt in atomics}
    for array in dict.fromkeys(stmt.array for stmt in atomics):
        places = {_Place(s.array, s.index, s.op) for s in atomics if s.array == array}
        plain = any(s.array == array for s in find(loop.body, Store))
        plain = plain or any(s.array == array for s in find(loop.body, Fill))
        plain = plain or array in of_groups
        if len(places) > 1 or plain or array in read:
            continue
        (place,) = places
        moves = variables_read(place.index) & changing
        loaded = {load.array for load in find(place.index, Load)}
        if not moves and not loaded & stored:
            yield place


def _added_to(body: Block, place: _Place, register: Var) -> Block:
    """Return a body that adds to a register in place of an element of memory."""

    def redirect(node: object) -> object:
        if isinstance(node, AtomicStore) and node.array == place.array:
            return Assign(register, node.value, node.op, Role.VALUES)
        return map_children(node, redirect)

    return map_children(body, redirect)
