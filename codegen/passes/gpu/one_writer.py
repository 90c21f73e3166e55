"""Let one thread of a warp or a block write what all of its threads come to, and wait where needed.

    warps for i in 0..n:                warps for i in 0..n:
      combine + t over lanes              combine + t over lanes
      y[i] = t                    →       lanes for one in 0..1:
                                            y[i] = t

Outside of the loops that its threads share, a block computes scalars in each of them alike, and
writes to memory once. A row that is set there is set by all its threads.

Between two statements, of which one writes what the other one reads or writes, threads wait for
each other, unless each thread meets what it has written itself: the same places in loops that are
shared alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codegen import build
from codegen.ir import (
    AddRuns,
    Allocate,
    Array,
    AtomicFetch,
    AtomicStore,
    Barrier,
    Block,
    Combine,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    If,
    Kernel,
    LoopKind,
    Module,
    Sort,
    Stmt,
    Storage,
    Store,
    Var,
    VectorStore,
    While,
)
from codegen.machine.target import Target, UnsupportedError
from codegen.names import Names
from codegen.passes.outline_kernels import LOCAL_BYTES
from codegen.records import dataclass
from codegen.tree import children, find, rewrite, walk
from codegen.variables import assigned_vars, declared_vars, names_beside, substitute, variables_read

WRITES = (Store, AtomicStore, AtomicFetch, AddRuns, VectorStore, Sort)
_PARTS = (LoopKind.WARPS, LoopKind.THREADS, LoopKind.GROUPS, LoopKind.LANES)


def write_once(module: Module, target: Target) -> Module:
    """Return `module` whose kernels' writes are carried out by one thread each, in order.

    Raises UnsupportedError for what needs more memory than a thread or a block has.
    """
    return replace(module, kernels=tuple(_kernel(kernel, target) for kernel in module.kernels))


def _kernel(kernel: Kernel, target: Target) -> Kernel:
    names = names_beside(kernel)
    if kernel.block == 1:
        return replace(kernel, body=_alone(kernel.body, names))
    kernel = replace(kernel, body=_in_common(kernel.body))
    private = _private(kernel.body, target)
    body = _Writers(names, private).group(kernel.body, LoopKind.THREADS)
    arrays = frozenset(s.array for s in walk(body) if isinstance(s, WRITES)).difference(private)
    return replace(kernel, body=_Order(arrays).group(body, LoopKind.THREADS, []))


def _private(body: Block, target: Target) -> frozenset[Array]:
    """Return the arrays that each thread has for itself. Raises UnsupportedError."""
    shared = 0
    private: set[Array] = set()
    for stmt in find(body, Allocate):
        size = stmt.size
        bytes = int(size.value.real) * stmt.array.element.itemsize if isinstance(size, Const) else 0
        if stmt.array.storage is Storage.SHARED:
            shared += bytes
            continue
        private.add(stmt.array)
        if bytes > LOCAL_BYTES:
            raise UnsupportedError(
                f"each thread would need {bytes} bytes for {stmt.array.name}, of {LOCAL_BYTES}"
            )
    most = target.gpu.block_shared_bytes
    if shared > most:
        raise UnsupportedError(f"a block would need {shared} bytes of shared memory, of {most}")
    return frozenset(private)


def _alone(node: Any, names: Names) -> Any:
    """Return the statements of a single thread, which fills rows element by element."""

    def below(node: Any) -> Any:
        return _row(node, names, LoopKind.SERIAL) if isinstance(node, Fill) else node

    return rewrite(node, below)


def _row(stmt: Fill, names: Names, kind: LoopKind) -> For:
    """Return the loop that fills a row."""
    element = Var(names.fresh("k"))
    store = Store(stmt.array, build.add(stmt.start, element), stmt.value, role=stmt.role)
    return For(element, build.const(0), stmt.count, Block((store,)), kind=kind)


def _in_common(body: Block) -> Block:
    """Return a kernel whose arrays lie in shared memory that a block has and its units write."""
    shared: dict[Array, Array] = {}
    outside = {s.array for loop in _unit_loops(body) for s in find(loop.body, Allocate)}
    for stmt in find(body, Allocate):
        stored = {
            s.array
            for loop in _unit_loops(body)
            for s in walk(loop.body)
            if isinstance(s, Store | AtomicStore | AtomicFetch | Fill)
        }
        stored.update(s.array for s in find(body, AddRuns))
        if stmt.array not in outside and stmt.array in stored:
            shared[stmt.array] = replace(stmt.array, storage=Storage.SHARED)
    if not shared:
        return body
    return rewrite(body, lambda node: shared.get(node, node) if isinstance(node, Array) else node)


def _unit_loops(body: Block) -> Iterator[For]:
    return (loop for loop in find(body, For) if loop.kind in _PARTS)


@dataclass(frozen=True, slots=True)
class _Writers:
    """Writes of a group of threads to writes of one; `private` is each thread's own memory, `width`
    how many lanes a group of some has."""

    names: Names
    private: frozenset[Array]
    width: int = 0

    def group(self, block: Block, kind: LoopKind) -> Block:
        """Return the statements that all units of a group execute."""
        statements: list[Stmt] = []
        for stmt in block.body:
            if not isinstance(stmt, Store | AtomicStore) or stmt.array in self.private:
                statements += self.statement(stmt, kind)
            elif statements and _is_first(statements[-1], kind):
                last = statements.pop()
                assert isinstance(last, For)
                statements.append(replace(last, body=Block((*last.body.body, stmt))))
            else:
                one, body = Var(self.names.fresh("one")), Block((stmt,))
                loop = For(one, build.const(0), build.const(1), body, kind=kind, width=self.width)
                statements.append(loop)
        return Block(tuple(statements))

    def statement(self, stmt: Stmt, kind: LoopKind) -> Iterator[Stmt]:
        match stmt:
            case Block():
                yield self.group(stmt, kind)
            case If(condition, then, orelse):
                yield If(condition, self.group(then, kind), self.group(orelse, kind))
            case While(condition, body):
                yield While(condition, self.group(body, kind))
            case Fill():
                is_private = stmt.array in self.private
                row = _row(stmt, self.names, LoopKind.SERIAL if is_private else kind)
                yield row if is_private else replace(row, width=self.width)
            case Sort():
                is_private = stmt.array in self.private
                yield stmt if is_private else replace(stmt, units=kind)
            case For():
                yield self.loop(stmt, kind)
            case _:
                yield stmt

    def loop(self, loop: For, kind: LoopKind) -> For:
        match loop.kind:
            case LoopKind.SERIAL | LoopKind.BLOCKS:
                return replace(loop, body=self.group(loop.body, kind))
            case LoopKind.WARPS | LoopKind.GROUPS:
                self.check(loop)
                inner = replace(self, width=loop.width)
                return replace(loop, body=inner.group(loop.body, LoopKind.LANES))
        self.check(loop)
        alone: For = _alone(loop, self.names)
        return alone

    def check(self, loop: For) -> None:
        """Raise UnsupportedError where units would need memory in common."""
        allocated = {stmt.array for stmt in find(loop.body, Allocate)}
        for stmt in walk(loop.body):
            if (
                isinstance(stmt, Store | AtomicStore | Fill)
                and stmt.array in self.private - allocated
            ):
                raise UnsupportedError(
                    f"units that share a loop would need the memory of {stmt.array.name} in common"
                )


def _is_first(stmt: Stmt, kind: LoopKind) -> bool:
    """Tell whether a statement is one that the first unit of a group carries out."""
    if not isinstance(stmt, For) or stmt.kind is not kind:
        return False
    return stmt.start == Const(0) and stmt.stop == Const(1)


# ---------------------------------------------------------------- order

Owner = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Access:
    """An access to an array since threads last waited.

    kind    "read", "write", or the operator of an atomic operation
    owner  which thread comes to which element, None where that is not told
    needs  the variables that `owner` depends on
    """

    array: Array
    kind: str
    owner: Owner | None
    needs: frozenset[Var] = frozenset()

    def meets(self, other: _Access) -> bool:
        """Tell whether threads have to wait between the two."""
        if self.array != other.array or self.kind == other.kind != "write":
            return False
        plain = {self.kind, other.kind} <= {"read", "write"}
        return not (plain and self.owner is not None and self.owner == other.owner)


@dataclass(frozen=True, slots=True)
class _Order:
    """Puts barriers between statements of a group; `arrays` are the arrays that change."""

    arrays: frozenset[Array]

    def group(self, block: Block, kind: LoopKind, since: list[_Access]) -> Block:
        """Return a block with barriers; `since` are the accesses that nobody has waited for yet."""
        statements: list[Stmt] = []
        for stmt in block.body:
            if isinstance(stmt, Combine) and stmt.kind is not LoopKind.LANES:
                since.clear()  # all threads of the block wait in it
            elif not _has_parts(stmt):
                mine = self.accesses(stmt, kind)
                if any(a.meets(b) for a in mine for b in since):
                    statements.append(_barrier(kind))
                    since.clear()
                since += mine
            else:
                stmt, waits = self.nested(stmt, kind, since)
                statements += [_barrier(kind)] if waits else []
            statements.append(stmt)
        return Block(tuple(statements))

    def nested(self, stmt: Stmt, kind: LoopKind, since: list[_Access]) -> tuple[Stmt, bool]:
        """Return a statement with statements of the group in it, and whether to wait before it."""
        match stmt:
            case Block():
                return self.group(stmt, kind, since), False
            case If(condition, then, orelse):
                waits = self.waits(condition, since)
                parts = []
                ends: list[_Access] = []
                for part in (then, orelse):
                    part_since = list(since)
                    parts.append(self.group(part, kind, part_since))
                    ends += part_since
                since[:] = list(dict.fromkeys(ends))
                return If(condition, *parts), waits
            case For(kind=LoopKind.SERIAL | LoopKind.BLOCKS) | While():
                return self.repeated(stmt, kind, since)
        assert isinstance(stmt, For)  # units share it
        mine = self.accesses(stmt, kind)
        waits = any(a.meets(b) for a in mine for b in since)
        if waits:
            since.clear()
        since += mine
        if stmt.kind in _INNER:
            return replace(stmt, body=self.group(stmt.body, _INNER[stmt.kind], [])), waits
        return stmt, waits

    def repeated(self, loop: Any, kind: LoopKind, since: list[_Access]) -> tuple[Stmt, bool]:
        """Return a loop of the group: an iteration may meet what the one before it has written."""
        outside = isinstance(loop, For) and loop.kind is LoopKind.BLOCKS
        condition = loop.condition if isinstance(loop, While) else build.add(loop.start, loop.stop)
        waits = self.waits(condition, since)
        trial = list(since)
        self.group(loop.body, kind, trial)
        inner = declared_vars(loop) | assigned_vars(loop.body)
        repeats = [
            replace(a, owner=None) if a.needs & inner else a
            for a in trial
            if not outside or a.array.storage is Storage.SHARED  # blocks have elements of their own
        ]
        since[:] = list(dict.fromkeys((*since, *repeats)))
        body = self.group(loop.body, kind, since)
        return replace(loop, body=body), waits

    def waits(self, condition: Expr, since: list[_Access]) -> bool:
        """Tell whether a condition reads arrays that were written since threads last waited."""
        read = {n for n in walk(condition) if isinstance(n, Array)}
        waits_ = any(a.array in read and a.kind != "read" for a in since)
        if waits_:
            since.clear()
        return waits_

    def accesses(self, stmt: Stmt, kind: LoopKind) -> list[_Access]:
        """Return the accesses of a plain statement to arrays that change."""
        first = _is_first(stmt, kind)
        return list(dict.fromkeys(self._find(stmt, (), {}, frozenset(), first)))

    def _find(
        self, node: Any, loops: Owner, values: dict[Var, Expr], local: frozenset[Var], first: bool
    ) -> Iterator[_Access]:
        """Yield the accesses below a node, inside loops that units share."""
        if isinstance(node, For) and node.kind in _PARTS:
            mark = Var(f"#{len(loops)}")
            loops = (*loops, (node.kind, node.start, node.stop, node.step))
            values = {**values, node.var: mark}
        elif isinstance(node, For):
            local = local | {node.var}
        if isinstance(node, Block):
            for part in node.body:
                yield from self._find(part, loops, values, local, first)
                if isinstance(part, Declare):
                    values = {**values, part.var: substitute(part.value, values)}
                    local = local | ({part.var} if not part.constant else set())
            return
        array = getattr(node, "array", None)
        if array in self.arrays and not isinstance(node, Allocate):
            kind_ = _kind_of(node)
            yield self._access(array, kind_, node, loops, values, local, first)
            if isinstance(node, Store) and node.op is not None:
                yield self._access(array, "read", node, loops, values, local, first)
        for child in children(node):
            if not isinstance(child, Array):
                yield from self._find(child, loops, values, local, first)

    def _access(
        self, array: Array, access_kind: str, node: Any, loops: Owner, values: dict[Var, Expr],
        local: frozenset[Var], first: bool,
    ) -> _Access:  # fmt: skip
        if first:
            return _Access(array, access_kind, ("first",))
        index = getattr(node, "index", None)
        if index is None or not loops:
            return _Access(array, access_kind, None)
        place = substitute(index, values)
        needs = frozenset(v for v in variables_read(place) if not v.name.startswith("#"))
        if needs & local or any(n in self.arrays for n in walk(place)):
            return _Access(array, access_kind, None)
        ends = (variables_read(e) for loop in loops for e in loop[1:3])  # type: ignore[index]
        return _Access(array, access_kind, (loops, place), needs.union(*ends))


def _kind_of(node: Any) -> str:
    match node:
        case AtomicStore(op=op) | AddRuns(op=op):
            return op
        case AtomicFetch(expected=expected):
            return "add" if expected is None else "swap"
        case Store() | VectorStore() | Fill() | Sort():
            return "write"
    return "read"


_INNER = {LoopKind.WARPS: LoopKind.LANES, LoopKind.GROUPS: LoopKind.GROUPS}
"""Loops whose units have parts, and by what these wait for each other."""


def _barrier(kind: LoopKind) -> Barrier:
    if kind is LoopKind.GROUPS:
        raise UnsupportedError("lanes of a group would have to wait for each other")
    return Barrier(kind)


def _has_parts(stmt: Stmt) -> bool:
    """Tell whether a group's threads come to a statement of their own in it."""
    return isinstance(stmt, Block | If | While | For)
