"""Take the loops that a device's threads share out of host functions, as kernels that these launch.

    f(y: out, x: in, n)                       f(y: out, x: in, n)
      const m = n - 1                           launch f_1 with m threads
      parallel for i in 0..m: y[i] = x[i]  →  kernel f_1(y: out, x: in, n)
                                                const m = n - 1
                                                grid for i in 0..m: y[i] = x[i]

What no loop shares is a kernel of one thread. Scalars that several kernels change lie in memory of
the device, one element each. Kernels compute the constants again that they need: the host knows
elements of arrays only by copying them. Constants that would be others by then lie in memory too:

    const begin = n[0]; n[0] += 1; parallel for i: y[i] = begin  →  cell[0] = n[0]; n[0] += 1; …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from codegen import build
from codegen.ir import (
    AddRuns,
    Allocate,
    Array,
    Assign,
    AtomicFetch,
    AtomicStore,
    Block,
    Comment,
    Const,
    Declare,
    Expect,
    Expr,
    Fill,
    For,
    Function,
    If,
    Invoke,
    Kernel,
    Launch,
    Load,
    LoopKind,
    Module,
    NewTable,
    Reserve,
    SetLength,
    Sort,
    Stmt,
    Storage,
    Store,
    Team,
    Var,
    VectorStore,
)
from codegen.machine.target import Target, UnsupportedError
from codegen.names import Names
from codegen.tree import find, map_children, walk
from codegen.variables import names_beside, substitute, variables_read

LOCAL_BYTES = 1024
"""Bytes of an array that each thread may have for itself."""


NO_TABLE = "kernels of a device have no hash tables over several indices yet"


def outline_kernels(module: Module, target: Target) -> Module:
    """Give each loop that threads share a kernel. Raises UnsupportedError for what has none."""
    functions, kernels = [], list(module.kernels)
    for function in module.functions:
        outliner = _Outliner(function, target)
        functions.append(replace(function, body=outliner.host(), threaded=False))
        kernels += outliner.kernels
    return replace(module, functions=tuple(functions), kernels=tuple(kernels))


Constants = Mapping[Var, Declare]
"""The constants that are declared around a statement, in their order."""


class _Outliner:
    """One function's kernels, in the order in which it launches them."""

    def __init__(self, function: Function, target: Target) -> None:
        self._function = function
        self._target = target
        self._names = names_beside(function)
        self._local: list[Array] = []
        self.kernels: list[Kernel] = []

    def host(self) -> Block:
        """Return the host's part of the function: memory, conditions and launches."""
        return Block(_used(tuple(self._statements(self._function.body.body, {}))))

    def _statements(self, statements: Sequence[Stmt], constants: Constants) -> Iterator[Stmt]:
        """Yield the host's part of statements, below the declarations that are known there.

        Statements of one thread, one after another, are one kernel.
        """
        constants, serial = dict(constants), list[Stmt]()
        for statement in self._in_memory(_flat(statements)):
            if isinstance(statement, Allocate):
                self._local.append(statement.array)
                yield statement
            elif isinstance(statement, Declare):
                if _loads(statement.value):  # what the statements before it may write
                    yield from self._serial(serial, constants)
                    serial = []
                constants[statement.var] = statement
                yield statement
            elif isinstance(statement, Comment):
                yield statement
            elif _is_of_host(statement):
                yield from self._serial(serial, constants)
                serial = []
                yield from self._of_host(statement, constants)
            else:
                serial.append(statement)
        yield from self._serial(serial, constants)

    def _of_host(self, statement: Stmt, constants: Constants) -> Iterator[Stmt]:
        match statement:
            case Fill():
                yield from self._of_host(_fill(statement, self._names), constants)
            case For(kind=LoopKind.PARALLEL):
                threads, block = _length(statement), self._target.gpu.block_threads
                yield self._launch((statement,), constants, threads, block, shared=True)
            case For(kind=LoopKind.BLOCKS):
                block = _block_size(statement, self._target)
                threads = build.mul(_length(statement), block)
                yield self._launch((statement,), constants, threads, block, shared=True)
            case For(body=body):
                inner = tuple(self._statements(body.body, constants))
                yield replace(statement, body=Block(inner), kind=LoopKind.SERIAL)
            case If(condition, then, orelse):
                parts = (
                    Block(tuple(self._statements(part.body, constants))) for part in (then, orelse)
                )
                yield If(condition, *parts)
            case _:
                yield statement

    def _serial(self, statements: list[Stmt], constants: Constants) -> Iterator[Stmt]:
        if statements:
            yield self._launch(tuple(statements), constants, build.const(1), 1, shared=False)

    def _launch(
        self,
        statements: tuple[Stmt, ...],
        constants: Constants,
        threads: Expr,
        block: int,
        *,
        shared: bool,
    ) -> Launch:
        body = tuple(
            _of_threads(statement, shared, self._names, self._target.gpu.warp_threads)
            for statement in statements
        )
        body = _used((*constants.values(), *body))
        used = {node for part in body for node in walk(part)}
        local = {stmt.array for part in body for stmt in find(part, Allocate)}
        in_blocks = any(isinstance(s, For) and s.kind is LoopKind.BLOCKS for s in body)
        _check(body, self._target.gpu.block_shared_bytes if in_blocks else LOCAL_BYTES)
        arrays = [a for a in (*self._function.arrays, *self._local) if a in used and a not in local]
        declared = {
            node.var for part in body for node in walk(part) if isinstance(node, Declare | For)
        }
        outer_scalars = dict.fromkeys((*self._function.scalars, *_loop_variables(self._function)))
        scalars = [v for v in outer_scalars if v in used and v not in declared]
        name = f"{self._function.name}_{len(self.kernels) + 1}"
        group = max([1, *(s.units for s in body if isinstance(s, For) and in_blocks)])
        kernel = Kernel(
            name, tuple(dict.fromkeys(arrays)), tuple(scalars), Block(body), block, group
        )
        self.kernels.append(kernel)
        return Launch(name, threads, block)

    def _in_memory(self, statements: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return statements whose scalars lie in memory where several of them change or read
        them."""
        statements_: list[Stmt] = []
        rest = list(statements)
        while rest:
            statement, *rest = rest
            is_local = isinstance(statement, Declare) and (
                _is_assigned(statement.var, rest) or _is_outdated(statement, rest)
            )
            if not isinstance(statement, Declare) or not is_local:
                statements_.append(statement)
                continue
            var = statement.var
            cell = Array(self._names.fresh(f"{var.name}_cell"), var.type, Storage.LOCAL)
            first = build.const(0)
            statements_.append(Allocate(cell, build.const(1)))
            statements_.append(Store(cell, first, statement.value, role=statement.role))
            rest = [_with_cell(stmt, var, cell) for stmt in rest]
        return tuple(statements_)


def _loads(value: Expr) -> bool:
    return any(True for _ in find(value, Load))


def _flat(statements: Sequence[Stmt]) -> list[Stmt]:
    """Return statements without the blocks around some of them, but for blocks that one thread
    runs."""
    flat: list[Stmt] = []
    for statement in statements:
        if isinstance(statement, Block) and _has_parts_of_host(statement):
            flat += _flat(statement.body)
        else:
            flat.append(statement)
    return flat


def _has_parts_of_host(block: Block) -> bool:
    return any(
        _has_parts_of_host(stmt)
        if isinstance(stmt, Block)
        else isinstance(stmt, Allocate) or _is_of_host(stmt)
        for stmt in block.body
    )


def _is_of_host(statement: Stmt) -> bool:
    """Tell whether a statement is carried out by the host, or holds a loop that threads share."""
    if isinstance(statement, Reserve | SetLength | Fill | Expect | Invoke):
        return True
    return any(isinstance(n, For) and n.kind in _SHARED for n in walk(statement))


def _loop_variables(function: Function) -> list[Var]:
    return [loop.var for loop in find(function.body, For)]


def _is_assigned(var: Var, statements: Sequence[Stmt]) -> bool:
    return any(isinstance(node, Assign) and node.var == var for s in statements for node in walk(s))


_WRITES = (Store, AtomicStore, AtomicFetch, AddRuns, VectorStore, Fill, Sort)


def _is_outdated(constant: Declare, statements: Sequence[Stmt]) -> bool:
    """Tell whether statements read a constant once memory is written that its value was read from.

    const begin = n[0]; n[0] += 1; if begin < n[0]: …    →  it is
    """
    read_from = {load.array for load in find(constant.value, Load)}
    names, is_written = {constant.var}, False
    for statement in statements if read_from else ():
        is_written = is_written or not read_from.isdisjoint(_written_in(statement))
        reads = not names.isdisjoint(variables_read(statement))
        if is_written and reads:
            return True
        if reads and isinstance(statement, Declare):  # which kernels compute again, too
            names.add(statement.var)
    return False


def _written_in(statement: Stmt) -> Iterator[Array]:
    """Yield the arrays whose elements a statement may change."""
    for node in walk(statement):
        if isinstance(node, _WRITES):
            yield node.array
        elif isinstance(node, Invoke):
            yield from (place.array for place in node.places)


def _with_cell(statement: Stmt, var: Var, cell: Array) -> Stmt:
    """Return a statement that has a scalar in a cell of memory."""
    place = build.const(0)

    def stored(node: object) -> object:
        if isinstance(node, Assign) and node.var == var:
            return Store(cell, place, map_children(node.value, stored), node.op, node.role)
        return map_children(node, stored)

    in_memory = stored(statement)
    return substitute(in_memory, {var: build.load(cell, place)})  # type: ignore[return-value]


def _length(loop: For) -> Expr:
    """Return how many iterations a loop has."""
    extent = build.sub(loop.stop, loop.start)
    return build.div(build.add(extent, loop.step - 1), loop.step) if loop.step > 1 else extent


def _fill(stmt: Fill, names: Names) -> For:
    """Return the loop of threads that set elements."""
    element = Var(names.fresh("k"))
    store = Store(stmt.array, build.add(stmt.start, element), stmt.value, role=stmt.role)
    return For(element, build.const(0), stmt.count, build.block(store), kind=LoopKind.PARALLEL)


_SHARED = (LoopKind.PARALLEL, LoopKind.BLOCKS)
"""The loops that kernels are made of."""
_PARTS = (LoopKind.WARPS, LoopKind.THREADS, LoopKind.GROUPS, LoopKind.LANES)


def _block_size(loop: For, target: Target) -> int:
    """Return the threads of a block that takes the iterations of a loop: as many as its parts."""
    sizes = [1]
    for part in find(loop.body, For):
        if part.kind is LoopKind.WARPS:
            sizes.append(target.gpu.warp_threads * part.units or target.gpu.block_threads)
        elif part.kind is LoopKind.THREADS and not _in_warps(part, loop):
            threads = part.units or target.gpu.block_threads
            sizes.append(-(-threads // target.gpu.warp_threads) * target.gpu.warp_threads)
    return min(max(sizes), target.gpu.most_block_threads)


def _in_warps(part: For, loop: For) -> bool:
    warps = (w for w in find(loop.body, For) if w.kind is LoopKind.WARPS)
    return any(inner is part for w in warps for inner in find(w.body, For))


def _lanes(loop: For, warp: int) -> For:
    """Return a loop over warps, whose threads are their lanes, or groups of lanes around lanes."""

    def below(node: object, width: int = 0) -> object:
        if isinstance(node, For) and node.kind is LoopKind.THREADS:
            inner = any(inner_loop.kind is LoopKind.THREADS for inner_loop in find(node.body, For))
            width = warp // node.units if inner and node.units else width
            node = replace(node, kind=LoopKind.GROUPS if inner else LoopKind.LANES, width=width)
        return map_children(node, lambda child: below(child, width))

    return replace(loop, body=map_children(loop.body, below))


def _of_threads(statement: Stmt, shared: bool, names: Names, warp: int) -> Stmt:
    """Return a statement as each thread runs it: the outermost loop is shared by threads of the
    grid, or by blocks, whose parts share loops inside."""
    in_blocks = isinstance(statement, For) and statement.kind is LoopKind.BLOCKS

    def alone(node: object) -> object:
        if isinstance(node, For) and in_blocks and node.kind in _PARTS:
            node = _lanes(node, warp) if node.kind is LoopKind.WARPS else node
        elif isinstance(node, For) and not node.is_serial:
            node = replace(node, kind=LoopKind.SERIAL, reductions=())
        if isinstance(node, AtomicStore) and not shared:
            node = Store(node.array, node.index, node.value, node.op, node.role)
        if isinstance(node, Sort):
            node = replace(node, marks=None)  # a thread sorts what there is, however much that is
        if isinstance(node, Fill) and not in_blocks:
            node = replace(_fill(node, names), kind=LoopKind.SERIAL)
        return map_children(node, alone)

    if shared and isinstance(statement, For):
        body = map_children(statement.body, alone)
        kind = LoopKind.BLOCKS if in_blocks else LoopKind.GRID
        return replace(statement, kind=kind, body=body, reductions=())
    return alone(statement)  # type: ignore[return-value]


def _used(statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements without constants that none behind them reads."""
    used: list[Stmt] = []
    read: set[Var] = set()
    for statement in reversed(statements):
        if isinstance(statement, Declare) and statement.var not in read:
            continue
        used.append(statement)
        read.update(node for node in walk(statement) if isinstance(node, Var))
    return tuple(reversed(used))


def _check(statements: tuple[Stmt, ...], room: int) -> None:
    """Raise UnsupportedError for statements that a thread of a device cannot run."""
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, NewTable):
                raise UnsupportedError(NO_TABLE)
            if isinstance(node, Team | Reserve | SetLength):
                raise UnsupportedError(f"a kernel of a device has no {type(node).__name__}")
            if isinstance(node, Allocate) and not _is_small(node, room):
                size = _bytes(node)
                size_text = (
                    "memory of a size that is not constant" if size is None else f"{size} bytes"
                )
                raise UnsupportedError(f"{node.array.name} would need {size_text}, of {room} bytes")


def _is_small(stmt: Allocate, room: int) -> bool:
    size = _bytes(stmt)
    return size is not None and size <= room


def _bytes(stmt: Allocate) -> int | None:
    """Return the size of an array, None where it is known only when kernels run."""
    size = stmt.size
    return int(size.value.real) * stmt.array.element.itemsize if isinstance(size, Const) else None
