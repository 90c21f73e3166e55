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
from codegen.variables import assigned_vars, declared_vars, substitute, variables_read

WRITES = (Store, AtomicStore, AtomicFetch, AddRuns, VectorStore, Sort)
_PARTS = (LoopKind.WARPS, LoopKind.THREADS, LoopKind.GROUPS, LoopKind.LANES)


def write_once(module: Module, target: Target) -> Module:
    """Return `module` whose kernels' writes are carried out by one thread each, in order.

    Raises UnsupportedError for what needs more memory than a thread or a block has.
    """
    return replace(module, kernels=tuple(_kernel(kernel, target) for kernel in module.kernels))


def _kernel(kernel: Kernel, target: Target) -> Kernel:
    names = Names(n.name for n in walk(kernel) if isinstance(n, Var | Array))
    if kernel.block == 1:
        return replace(kernel, body=_alone(kernel.body, names))
    kernel = replace(kernel, body=_in_common(kernel.body))
    private = _private(kernel.body, target)
    body = _Writers(names, private).group(kernel.body, LoopKind.THREADS)
    written = frozenset(s.array for s in walk(body) if isinstance(s, WRITES)).difference(private)
    return replace(kernel, body=_Order(written).group(body, LoopKind.THREADS, []))


def _private(body: Block, target: Target) -> frozenset[Array]:
    """Return the arrays that each thread has for itself. Raises UnsupportedError."""
    shared = 0
    found: set[Array] = set()
    for stmt in find(body, Allocate):
        size = stmt.size
        bytes = int(size.value.real) * stmt.array.element.itemsize if isinstance(size, Const) else 0
        if stmt.array.storage is Storage.SHARED:
            shared += bytes
            continue
        found.add(stmt.array)
        if bytes > LOCAL_BYTES:
            raise UnsupportedError(
                f"each thread would need {bytes} bytes for {stmt.array.name}, of {LOCAL_BYTES}"
            )
    most = target.gpu.block_shared_bytes
    if shared > most:
        raise UnsupportedError(f"a block would need {shared} bytes of shared memory, of {most}")
    return frozenset(found)


def _alone(node: Any, names: Names) -> Any:
    """What a thread does alone: it fills rows one element after another."""

    def below(node: Any) -> Any:
        return _row(node, names, LoopKind.SERIAL) if isinstance(node, Fill) else node

    return rewrite(node, below)


def _row(stmt: Fill, names: Names, kind: LoopKind) -> For:
    """Return the loop that fills a row."""
    each = Var(names.fresh("k"))
    store = Store(stmt.array, build.add(stmt.start, each), stmt.value, role=stmt.role)
    return For(each, build.const(0), stmt.count, Block((store,)), kind=kind)


def _in_common(body: Block) -> Block:
    """Return a kernel whose arrays lie in shared memory that a block has and its units write."""
    made: dict[Array, Array] = {}
    outside = {s.array for loop in _unit_loops(body) for s in find(loop.body, Allocate)}
    for stmt in find(body, Allocate):
        written = {
            s.array
            for loop in _unit_loops(body)
            for s in walk(loop.body)
            if isinstance(s, Store | AtomicStore | AtomicFetch | Fill)
        }
        written.update(s.array for s in find(body, AddRuns))
        if stmt.array not in outside and stmt.array in written:
            made[stmt.array] = replace(stmt.array, storage=Storage.SHARED)
    if not made:
        return body
    return rewrite(body, lambda node: made.get(node, node) if isinstance(node, Array) else node)


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
        """What the units of a group do alike: lanes of a warp, or threads of a block."""
        done: list[Stmt] = []
        for stmt in block.body:
            if not isinstance(stmt, Store | AtomicStore) or stmt.array in self.private:
                done += self.statement(stmt, kind)
            elif done and _is_first(done[-1], kind):
                last = done.pop()
                assert isinstance(last, For)
                done.append(replace(last, body=Block((*last.body.body, stmt))))
            else:
                one, body = Var(self.names.fresh("one")), Block((stmt,))
                loop = For(one, build.const(0), build.const(1), body, kind=kind, width=self.width)
                done.append(loop)
        return Block(tuple(done))

    def statement(self, stmt: Stmt, kind: LoopKind) -> Iterator[Stmt]:
        match stmt:
            case Block():
                yield self.group(stmt, kind)
            case If(condition, then, orelse):
                yield If(condition, self.group(then, kind), self.group(orelse, kind))
            case While(condition, body):
                yield While(condition, self.group(body, kind))
            case Fill():
                own = stmt.array in self.private
                row = _row(stmt, self.names, LoopKind.SERIAL if own else kind)
                yield row if own else replace(row, width=self.width)
            case Sort():
                own = stmt.array in self.private
                yield stmt if own else replace(stmt, units=kind)
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
        own = {stmt.array for stmt in find(loop.body, Allocate)}
        for stmt in walk(loop.body):
            if isinstance(stmt, Store | AtomicStore | Fill) and stmt.array in self.private - own:
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

    how    "read", "write", or the operator of an atomic operation
    owner  which thread comes to which element, None where that is not told
    needs  the variables that `owner` depends on
    """

    array: Array
    how: str
    owner: Owner | None
    needs: frozenset[Var] = frozenset()

    def meets(self, other: _Access) -> bool:
        """Tell whether threads have to wait between the two."""
        if self.array != other.array or self.how == other.how != "write":
            return False
        plain = {self.how, other.how} <= {"read", "write"}
        return not (plain and self.owner is not None and self.owner == other.owner)


@dataclass(frozen=True, slots=True)
class _Order:
    """Puts barriers between statements of a group; `written` are the arrays that change."""

    written: frozenset[Array]

    def group(self, block: Block, kind: LoopKind, since: list[_Access]) -> Block:
        """Return a block with barriers; `since` are the accesses that nobody has waited for yet."""
        done: list[Stmt] = []
        for stmt in block.body:
            if isinstance(stmt, Combine) and stmt.kind is not LoopKind.LANES:
                since.clear()  # all threads of the block wait in it
            elif not _has_parts(stmt):
                mine = self.accesses(stmt, kind)
                if any(a.meets(b) for a in mine for b in since):
                    done.append(_barrier(kind))
                    since.clear()
                since += mine
            else:
                stmt, waits = self.nested(stmt, kind, since)
                done += [_barrier(kind)] if waits else []
            done.append(stmt)
        return Block(tuple(done))

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
                    own = list(since)
                    parts.append(self.group(part, kind, own))
                    ends += own
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
        again = [
            replace(a, owner=None) if a.needs & inner else a
            for a in trial
            if not outside or a.array.storage is Storage.SHARED  # blocks have elements of their own
        ]
        since[:] = list(dict.fromkeys((*since, *again)))
        body = self.group(loop.body, kind, since)
        return replace(loop, body=body), waits

    def waits(self, condition: Expr, since: list[_Access]) -> bool:
        """Tell whether what a condition reads has been written since threads last waited."""
        read = {n for n in walk(condition) if isinstance(n, Array)}
        found = any(a.array in read and a.how != "read" for a in since)
        if found:
            since.clear()
        return found

    def accesses(self, stmt: Stmt, kind: LoopKind) -> list[_Access]:
        """What a statement without statements of the group in it does to arrays that change."""
        first = _is_first(stmt, kind)
        return list(dict.fromkeys(self._found(stmt, (), {}, frozenset(), first)))

    def _found(
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
                yield from self._found(part, loops, values, local, first)
                if isinstance(part, Declare):
                    values = {**values, part.var: substitute(part.value, values)}
                    local = local | ({part.var} if not part.constant else set())
            return
        array = getattr(node, "array", None)
        if array in self.written and not isinstance(node, Allocate):
            how = _how(node)
            yield self._access(array, how, node, loops, values, local, first)
            if isinstance(node, Store) and node.op is not None:
                yield self._access(array, "read", node, loops, values, local, first)
        for child in children(node):
            if not isinstance(child, Array):
                yield from self._found(child, loops, values, local, first)

    def _access(
        self, array: Array, how: str, node: Any, loops: Owner, values: dict[Var, Expr],
        local: frozenset[Var], first: bool,
    ) -> _Access:  # fmt: skip
        if first:
            return _Access(array, how, ("first",))
        index = getattr(node, "index", None)
        if index is None or not loops:
            return _Access(array, how, None)
        place = substitute(index, values)
        needs = frozenset(v for v in variables_read(place) if not v.name.startswith("#"))
        if needs & local or any(n in self.written for n in walk(place)):
            return _Access(array, how, None)
        ends = (variables_read(e) for loop in loops for e in loop[1:3])  # type: ignore[index]
        return _Access(array, how, (loops, place), needs.union(*ends))


def _how(node: Any) -> str:
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
