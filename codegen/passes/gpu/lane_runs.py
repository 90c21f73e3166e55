"""Let neighbouring threads that update the same element of memory add up what they have first.

    for round in 0..8:                    at = -1;  sum = 0
      lanes for lane in 0..32:            for round in 0..8:
        …                                   term = 0;  place = at
        atomic y[i] += t            →       lanes for lane in 0..32:
                                              …
                                              term = t;  place = i
                                            if place != at in any lane:
                                              add runs y[at] += sum;  at = place;  sum = 0
                                            sum += term
                                          add runs y[at] += sum

Each lane keeps the sum of the element that it is at. Where one of them comes to another element,
all add what they have: a run of lanes that are at the same element adds once, behind log2(32) steps
that move values between lanes. A long run over many rounds is added up in registers alone. Any
operator is reduced alike, as in `unit_sums`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen import build
from codegen.ir import (
    AddRuns,
    Array,
    Assign,
    AtomicStore,
    Block,
    Const,
    Declare,
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
from codegen.names import Names
from codegen.passes.gpu.unit_sums import identity
from codegen.records import dataclass
from codegen.tree import map_children, walk
from codegen.types import BOOL, ScalarType
from codegen.variables import names_beside

ANY_LANE = "taco_any_lane"
"""The function that tells all lanes of a warp whether a condition holds in one of them."""
_NOWHERE = build.const(-1)


def add_in_runs(module: Module) -> Module:
    """Return `module` whose kernels update an element once for neighbouring threads that meet
    there."""
    return replace(module, kernels=tuple(map(_kernel, module.kernels)))


def _kernel(kernel: Kernel) -> Kernel:
    names = names_beside(kernel)
    return replace(kernel, body=_Runs(names).block(kernel.body))


@dataclass(frozen=True, slots=True)
class _Split:
    """A statement with what stands before and behind it, which may move out of the loops around."""

    stmts: tuple[Stmt, ...]
    before: tuple[Stmt, ...] = ()
    after: tuple[Stmt, ...] = ()
    array: Array | None = None

    @property
    def all(self) -> tuple[Stmt, ...]:
        return (*self.before, *self.stmts, *self.after)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Rewrites one kernel."""

    names: Names

    def block(self, block: Block) -> Block:
        return Block(tuple(s for stmt in block.body for s in self.statement(stmt).all))

    def statement(self, stmt: Stmt) -> _Split:
        match stmt:
            case Block():
                return self.combine(stmt, stmt.body)
            case If(condition, then, orelse):
                return _Split((If(condition, self.block(then), self.block(orelse)),))
            case While(condition, body):
                return _Split((While(condition, self.block(body)),))
            case For(kind=LoopKind.SERIAL):
                return self.combine(stmt, stmt.body.body)
            case For(kind=LoopKind.THREADS | LoopKind.LANES):
                return self.split(stmt)
            case For():
                return _Split((replace(stmt, body=self.block(stmt.body)),))
        return _Split((stmt,))

    def combine(self, outer: Block | For, stmts: Sequence[Stmt]) -> _Split:
        """Return a block or loop whose running sum is kept outside of it, where legal."""
        parts = [self.statement(stmt) for stmt in stmts]
        (pending, *more) = [part for part in parts if part.before] or [_Split(())]
        rest = (s for part in parts if part is not pending for s in part.stmts)
        moves = not more and not any(_is_about(s, pending.array) for s in rest)
        body = Block(tuple(s for part in parts for s in (part.stmts if moves else part.all)))
        inner = replace(outer, body=body) if isinstance(outer, For) else body
        return replace(pending, stmts=(inner,)) if moves else _Split((inner,))

    def split(self, loop: For) -> _Split:
        """Return a loop of which each unit has one iteration at most."""
        alone = loop.units and loop.step == 1 and not loop.width
        update = _meeting(loop) if alone else None
        start = None if update is None else _nothing(update.op, update.array.element)
        if update is None or start is None:
            return _Split((loop,))
        array, op = update.array, update.op
        combining = {"-": "+", "/": "*"}.get(op, op)
        at, place = (Var(self.names.fresh(name)) for name in ("at", "place"))
        sum_, term = (Var(self.names.fresh(n), array.element) for n in ("sum", "term"))
        recorded = _recorded(loop.body, update, place, term)
        add = AddRuns(array, at, sum_, op)
        leave = build.block(add, Assign(at, place), Assign(sum_, start, role=Role.VALUES))
        leaves = build.call(ANY_LANE, BOOL, build.ne(place, at))
        return _Split(
            (
                Declare(place, at),
                Declare(term, start, role=Role.VALUES),
                replace(loop, body=recorded),
                If(leaves, leave),
                Assign(sum_, term, combining, Role.VALUES),
            ),
            (Declare(at, _NOWHERE), Declare(sum_, start, role=Role.VALUES)),
            (add,),
            array,
        )


def _nothing(op: str, type: ScalarType) -> Const | None:
    if type.kind == "complex" and op in ("+", "-"):
        return Const(0j, type)
    return identity(op, type)


def _is_about(stmt: Stmt, array: Array | None) -> bool:
    return any(node == array for node in walk(stmt) if isinstance(node, Array))


def _meeting(loop: For) -> AtomicStore | None:
    """Return the one update of an iteration that meets others, None where the element is met
    elsewhere too."""
    for update in _straight(loop.body):
        accesses = [
            node
            for node in walk(loop.body)
            if isinstance(node, AtomicStore | Store | Load | Fill) and node.array == update.array
        ]
        if update.meets and len(accesses) == 1:
            return update
    return None


def _straight(block: Block) -> Iterator[AtomicStore]:
    """Yield the updates that are carried out once at most, outside of loops."""
    for stmt in block.body:
        match stmt:
            case AtomicStore():
                yield stmt
            case Block():
                yield from _straight(stmt)
            case If(_, then, orelse):
                yield from _straight(then)
                yield from _straight(orelse)


def _recorded(body: Block, update: AtomicStore, place: Var, term: Var) -> Block:
    """Return a body that records its update's term and place."""
    keep = (Assign(place, update.index), Assign(term, update.value, role=Role.VALUES))

    def record(node: object) -> object:
        node = map_children(node, record)
        if not isinstance(node, Block):
            return node
        return Block(tuple(s for stmt in node.body for s in (keep if stmt == update else (stmt,))))

    recorded: Block = record(body)  # type: ignore[assignment]
    return recorded
