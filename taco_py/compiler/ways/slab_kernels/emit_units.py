"""A dataflow graph → loop IR for a GPU: groups of threads share slabs, and keep what is read again.

    parallel i: over j: m = reduce max X[i,j]; over j: …

    blocks for chunk of slabs:
      threads for t:
        for slab in chunk:
          for k in 0..elements: own[k] = X[i,j]; m max= own[k]      j = k · sharing + t
          combine m over the threads of the slab
          for k in 0..elements: … own[k] …

Rows longer than what threads keep are read again by a second kernel, which the host runs for sizes
that ask for it. What slabs combine by an operator are parts, one of each block, which another
kernel combines in order (`emit_parts`): results have the same bits each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from codegen import build
from codegen.build import add, block, const, div, load, maximum, minimum, mod, mul, sub
from codegen.ir import (
    TRUE,
    Allocate,
    Array,
    Assign,
    Barrier,
    Block,
    Combine,
    Declare,
    Expr,
    For,
    If,
    LoopKind,
    Role,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.machine.gpu import Gpu
from codegen.records import dataclass
from codegen.types import BOOL, INT32, ScalarType, scalar
from taco_py.compiler.dataflow import nodes
from taco_py.compiler.dataflow.nodes import Memory, Pass, Reduce
from taco_py.compiler.dataflow.slab_units import Key, UnitGraph, Units
from taco_py.compiler.dataflow.unit_sizes import shared_keys
from taco_py.compiler.ways.slab_kernels.emit_parts import (
    combine_rows,
    combine_slabs,
    combine_values,
)
from taco_py.compiler.ways.slab_kernels.emit_values import Values, identity
from taco_py.compiler.ways.slab_kernels.slab_places import At, Places


def emit_units(places: Places, units: Units, gpu: Gpu) -> Block:
    """Emit the body of a function over the arrays of a problem."""
    of = places.of
    slabs, row = places.variable("slabs"), places.variable("row")
    sizes = [
        Declare(slabs, places.count(of.slab), True),
        Declare(row, places.count(of.inner), True),
    ]
    if of.is_split or not (of.registers or of.common or of.sums):
        return block(*sizes, *_Kernel(places, units, gpu, slabs, row, of.is_split).launches())
    short, long = (
        block(*_Kernel(places, units, gpu, slabs, row, keeps).launches()) for keeps in (True, False)
    )
    return block(*sizes, If(build.le(row, units.row), short, long))


@dataclass(frozen=True, slots=True)
class _Thread:
    """What a thread has part of.

    lane, group  its number among the threads of a slab, and that of these among those of a block
    chunk, tile  the block's part of the slabs, and its part of each row
    begin        the first element of that part
    """

    number: Var
    lane: Expr
    group: Expr
    chunk: Expr
    tile: Expr
    begin: Expr


@dataclass(frozen=True, slots=True)
class _Slab:
    """The slab that a thread is at.

    length  of its row, 0 where the thread only waits with others
    active  whether there is one for it
    """

    number: Expr
    length: Expr
    active: Expr = TRUE


Steps = Callable[[Expr], Sequence[Stmt]]
"""The statements on the element that a thread keeps at a place."""


@dataclass(slots=True)
class _Kernel:
    """Emits one kernel, and those that combine what its blocks have.

    keeps    whether threads keep elements, of which a row has no more than they can
    private  the array of each thread for each element that it keeps
    ready    the elements that are in these arrays
    rows     the row of a block for each element that all slabs read
    far      the array of all slabs for near buffers that threads do not keep
    sums     the array of each thread for each buffer that slabs combine rows in
    totals   the variable of each thread for each buffer that slabs combine to one value
    parts    of blocks or slabs, for these buffers
    between  shared arrays by which threads exchange values of a type
    numbers  the variables of what has no index, for all slabs
    at       the value of each index
    """

    places: Places
    units: Units
    gpu: Gpu
    slabs: Var
    row: Var
    keeps: bool
    private: dict[Key, Array] = field(default_factory=dict)
    ready: set[Key] = field(default_factory=set)
    rows: dict[Key, Array] = field(default_factory=dict)
    far: dict[Key, Array] = field(default_factory=dict)
    sums: dict[str, Array] = field(default_factory=dict)
    totals: dict[str, Var] = field(default_factory=dict)
    parts: dict[str, Array] = field(default_factory=dict)
    between: dict[ScalarType, Array] = field(default_factory=dict)
    numbers: dict[str, Var] = field(default_factory=dict)
    at: At = field(default_factory=dict)
    values: Values = field(init=False)

    def __post_init__(self) -> None:
        self.values = Values(self.places.arguments.names)

    @property
    def of(self) -> UnitGraph:
        return self.places.of

    def _array(self, word: str, dtype: str, storage: Storage = Storage.LOCAL) -> Array:
        return Array(self.places.name(word), scalar(dtype), storage)

    # ------------------------------------------------------------ what the host does

    def launches(self) -> Iterator[Stmt]:
        """Yield the memory of parts, the loop over blocks, and the kernels that combine parts."""
        of, units, places = self.of, self.units, self.places
        chunks, number = places.variable("chunks"), places.variable("number")
        at_a_time = units.groups * units.slabs
        yield Declare(chunks, div(add(self.slabs, at_a_time - 1), at_a_time), True)
        tiles: Expr = const(1)
        if of.is_split:
            tiles = places.variable("tiles")
            yield Declare(tiles, maximum(div(add(self.row, units.row - 1), units.row), 1), True)
        groups = mul(chunks, units.groups)
        count = chunks if self.keeps else groups
        yield from self._memory(count, groups)
        code = [*self._thread(number, tiles)]
        shared = [Allocate(array, const(units.row), align=16) for array in self.rows.values()]
        shared += [
            Allocate(array, const(units.threads), align=16) for array in self.between.values()
        ]
        (*before, threads) = code
        body = block(*before, *shared, threads)
        yield For(number, const(0), mul(chunks, tiles), body, kind=LoopKind.BLOCKS)
        for name, operator in of.sums.items():
            yield combine_rows(places, name, operator, self.parts[name], count)
        for name, operator in of.totals.items():
            parts = self.parts[name]
            if of.graph.buffer(name).indices:
                yield combine_slabs(places, name, operator, parts)
            else:
                yield combine_values(places, name, operator, parts, groups)

    def _memory(self, count: Expr, groups: Expr) -> Iterator[Stmt]:
        """Yield the allocations of parts, and of near buffers that threads do not keep."""
        graph = self.of.graph
        lengths = {name: mul(count, self.row) for name in self.of.sums}
        for name in self.of.totals:
            lengths[name] = self.slabs if graph.buffer(name).indices else groups
        for name, length in lengths.items():
            self.parts[name] = self._array(f"{name}_parts", self.places.dtype(name))
            yield Allocate(self.parts[name], length)
        for key in () if self.keeps else self.of.registers:
            name = key[0]
            if graph.buffer(name).memory is Memory.NEAR:
                self.far[key] = self._array(f"{name}_rows", self.places.dtype(name))
                yield Allocate(self.far[key], mul(self.slabs, self.row))

    # ------------------------------------------------------------ a thread

    def _thread(self, number: Var, tiles: Expr) -> Iterator[Stmt]:
        """Yield the part of a block by its number, then the loop over its threads."""
        units, places = self.units, self.places
        t = places.variable("t")
        thread = _Thread(t, t, const(0), number, const(0), const(0))
        if self.of.is_split:
            chunk, tile, begin = (places.variable(word) for word in ("chunk", "tile", "begin"))
            yield Declare(chunk, div(number, tiles), True)
            yield Declare(tile, mod(number, tiles), True)
            yield Declare(begin, mul(tile, units.row), True)
            thread = replace(thread, chunk=chunk, tile=tile, begin=begin)
        code: list[Stmt] = []
        if units.groups > 1:
            lane, group = places.variable("lane"), places.variable("group")
            by = units.groups if self.of.is_across else units.sharing
            first, second = (lane, group) if self.of.is_across else (group, lane)
            code = [Declare(first, div(t, by), True), Declare(second, mod(t, by), True)]
            thread = replace(thread, lane=lane, group=group)
        body = block(*code, *self._of_thread(thread))
        yield For(
            t, const(0), const(units.threads), body, kind=LoopKind.THREADS, units=units.threads
        )

    def _of_thread(self, thread: _Thread) -> Iterator[Stmt]:
        """Yield the statements of a thread on the slabs of its block."""
        units = self.units
        yield from self._read_once()
        yield from self._registers(thread)
        yield from self._begin_sums(thread)
        first = mul(thread.chunk, units.groups * units.slabs)
        if units.slabs == 1:
            yield from self._of_slab(thread, add(first, thread.group))
        else:
            rest = div(add(sub(self.slabs, first), units.groups - 1), units.groups)
            rounds, turn = self.places.variable("rounds"), self.places.variable("turn")
            yield Declare(rounds, minimum(rest, units.slabs), True)
            number = add(first, mul(turn, units.groups), thread.group)
            yield For(turn, const(0), rounds, block(*self._of_slab(thread, number)))
        for name in self.sums:
            yield from self._store_part(thread, name)
        for name, variable in self.totals.items():
            store = Store(self.parts[name], self._part(thread), variable)
            yield If(self._is_first(thread), block(store))

    def _part(self, thread: _Thread) -> Expr:
        """Return the position of a group of threads in all blocks."""
        return add(mul(thread.chunk, self.units.groups), thread.group)

    def _read_once(self) -> Iterator[Stmt]:
        """Yield the loads of numbers, which have no index."""
        for one in self.of.map.passes:
            for step in one.body if not one.over else ():
                if not isinstance(step, nodes.Load) or step.indices or step.buffer in self.numbers:
                    continue
                self.numbers[step.buffer] = self.values.declare(step.value, step.dtype)
                yield Declare(self.numbers[step.buffer], self._loaded(step), True)

    def _registers(self, thread: _Thread) -> Iterator[Stmt]:
        """Yield the arrays of elements that threads keep, and loops that read the common ones."""
        if not self.keeps:
            return
        for key in self.of.registers:
            self.private[key] = self._array(f"{key[0]}_own", self.places.dtype(key[0]))
            yield Allocate(self.private[key], const(self.units.elements))
        loads = {
            (step.buffer, step.indices): step
            for one in self.of.map.passes
            for step in one.body
            if isinstance(step, nodes.Load)
        }
        for key in shared_keys(self.of, self.units, self.gpu):
            yield self._shared_row(thread, loads[key])
        if self.rows:
            yield Barrier(LoopKind.THREADS)
        for key in self.of.common if self.units.groups == 1 else ():
            array = self.private[key] = self._array(f"{key[0]}_own", loads[key].dtype)
            yield Allocate(array, const(self.units.elements))

            def read(k: Expr, array: Array = array, key: Key = key) -> Sequence[Stmt]:
                return [Store(array, k, self._loaded(loads[key]))]

            yield self._loop(thread, self.row, read)
            self.ready.add(key)

    def _shared_row(self, thread: _Thread, step: nodes.Load) -> Stmt:
        """Return the loop of a block's threads that read common elements."""
        units, places, at = self.units, self.places, At()
        key = (step.buffer, step.indices)
        shared = self.rows[key] = self._array(f"{step.buffer}_row", step.dtype, Storage.SHARED)
        indices = self._inner(step.indices)
        e, f = places.variable("e"), places.variable("f")
        code = [*places.declare_indices(f, indices, at)]
        value = load(places.array(step.buffer), places.place(step.buffer, step.indices, at))
        store = Store(shared, e, build.cast(scalar(step.dtype), value))
        inside = If(build.lt(f, places.count(indices)), block(*code, store))
        body = block(Declare(f, add(thread.begin, e), True), inside)
        return For(e, thread.number, const(units.row), body, units.threads)

    def _inner(self, indices: Sequence[str]) -> tuple[str, ...]:
        return tuple(index for index in self.of.inner if index in indices)

    # ------------------------------------------------------------ values across slabs

    def _begin_sums(self, thread: _Thread) -> Iterator[Stmt]:
        """Yield the statements that a thread begins with where slabs combine values."""
        units, places = self.units, self.places
        for name, operator in self.of.sums.items():
            first = identity(operator, places.dtype(name))
            k = places.variable("k")
            if self.keeps:
                self.sums[name] = self._array(f"{name}_own", places.dtype(name))
                yield Allocate(self.sums[name], const(units.elements))
                store = Store(self.sums[name], k, first)
                yield For(k, const(0), const(units.elements), block(store), unroll=units.elements)
            else:
                store = Store(self.parts[name], add(mul(self._part(thread), self.row), k), first)
                yield For(k, thread.lane, self.row, block(store), units.sharing)
        for name, operator in self.of.totals.items():
            if not self.of.graph.buffer(name).indices:
                dtype = places.dtype(name)
                total = self.totals[name] = Var(places.name(f"{name}_own"), scalar(dtype))
                yield Declare(total, identity(operator, dtype), role=Role.VALUES)

    def _store_part(self, thread: _Thread, name: str) -> Iterator[Stmt]:
        """Yield the combination of a row over the slabs of a block, which is its part."""
        units, places = self.units, self.places
        array, parts, operator = self.sums[name], self.parts[name], self.of.sums[name]
        k, f = places.variable("k"), places.variable("f")
        place = add(mul(thread.chunk, self.row), f)
        at = self._element(thread, k, f)
        inside = build.lt(f, self.row)
        if units.groups == 1:
            body = block(at, If(inside, block(Store(parts, place, load(array, k)))))
            yield For(k, const(0), const(units.elements), body, unroll=units.elements)
            return
        between = self._exchange(array.element)
        total, group = Var(places.name("total"), array.element), places.variable("other")
        combine = load(between, self._number(thread.lane, group))
        write = block(
            Declare(total, load(between, self._number(thread.lane, const(0))), role=Role.VALUES),
            For(
                group, const(1), const(units.groups),
                block(Assign(total, combine, operator.c_operator, Role.VALUES)),
            ),
            Store(parts, place, total),
        )  # fmt: skip
        body = block(
            at,
            Barrier(LoopKind.THREADS),
            Store(between, thread.number, load(array, k)),
            Barrier(LoopKind.THREADS),
            If(build.and_(build.eq(thread.group, 0), inside), write),
        )
        yield For(k, const(0), const(units.elements), body, unroll=units.elements)

    def _number(self, lane: Expr, group: Expr) -> Expr:
        """Return the number of the thread that has a part of a slab."""
        if self.of.is_across:
            return add(mul(lane, self.units.groups), group)
        return add(mul(group, self.units.sharing), lane)

    def _exchange(self, element: ScalarType) -> Array:
        """Return the shared array by which threads exchange values of a type."""
        if element not in self.between:
            name = self.places.name("between")
            self.between[element] = Array(name, element, Storage.SHARED)
        return self.between[element]

    # ------------------------------------------------------------ a slab

    def _of_slab(self, thread: _Thread, number: Expr) -> Iterator[Stmt]:
        """Yield the passes of a slab; threads without one take part where others wait."""
        places = self.places
        at = places.variable("slab")
        slab = _Slab(at, self.row)
        if self.units.groups == 1:
            yield Declare(at, number, True)
        else:
            meant, length = places.variable("meant"), places.variable("length")
            active = Var(places.name("active"), BOOL)
            yield Declare(meant, number, True)
            yield Declare(active, build.lt(meant, self.slabs), True)
            yield Declare(at, minimum(meant, sub(self.slabs, 1)), True)
            yield Declare(length, build.select(active, self.row, const(0)), True)
            slab = _Slab(at, length, active)
        yield from places.declare_indices(at, self.of.slab, self.at)
        for one in self.of.map.passes:
            yield from self._of_pass(thread, slab, one)

    def _of_pass(self, thread: _Thread, slab: _Slab, one: Pass) -> Iterator[Stmt]:
        if not one.over:
            for step in one.body:
                yield from self._scalar(thread, slab, step)
            return
        reduces = [step for step in one.body if isinstance(step, Reduce)]
        for step in reduces:
            variable = self.values.declare(step.value, step.dtype)
            yield Declare(variable, identity(step.operator, step.dtype), role=Role.VALUES)

        def steps(k: Expr) -> Sequence[Stmt]:
            return [s for step in one.body for s in self._step(thread, slab, step, k)]

        yield self._loop(thread, slab.length, steps)
        for step in reduces:
            yield from self._combined(thread, step)

    def _loop(self, thread: _Thread, length: Expr, steps: Steps) -> Stmt:
        """Return the loop over the elements that a thread has of a slab."""
        units, f = self.units, self.places.variable("f")
        if not self.keeps:
            code = block(*self._indices(f), *steps(const(0)))
            return For(f, thread.lane, length, code, units.sharing)
        k = self.places.variable("k")
        code = block(*self._indices(f), *steps(k))
        body = block(self._element(thread, k, f), If(build.lt(f, length), code))
        return For(k, const(0), const(units.elements), body, unroll=units.elements)

    def _element(self, thread: _Thread, k: Var, f: Var) -> Stmt:
        """Return the declaration of the element of a row that a thread keeps at a place."""
        place = add(thread.begin, thread.lane, mul(k, self.units.sharing))
        return Declare(f, place, True)

    def _indices(self, f: Var) -> Iterator[Stmt]:
        """Yield the declarations of the indices of an element of a row.

        Of rows that threads keep, they are divided in 32 bits.
        """
        inner = self.of.inner
        if len(inner) == 1:
            self.at[inner[0]] = f
            return
        rest: Expr = build.cast(INT32, f) if self.keeps else f
        for place in reversed(range(len(inner))):
            index, size = inner[place], self.places.size(inner[place])
            size = build.cast(INT32, size) if self.keeps else size
            variable = self.places.variable(index)
            value = rest if place == 0 else mod(rest, size)
            yield Declare(variable, build.cast(variable.type, value), True)
            self.at[index] = variable
            rest = div(rest, size)

    def _combined(self, thread: _Thread, step: Reduce) -> Iterator[Stmt]:
        """Yield the statements by which threads that share a slab combine a value."""
        units, variable = self.units, self.values.of(step.value, step.dtype)
        op, warp = step.operator.c_operator, self.gpu.warp_threads
        if units.sharing == 1:
            return
        if not self.of.is_across and units.sharing <= warp:
            width = units.sharing if units.sharing < warp else 0
            yield Combine(variable, op, LoopKind.LANES, width=width)
            return
        if units.groups == 1:
            yield Combine(variable, op, LoopKind.THREADS)
            return
        between, half = self._exchange(variable.type), units.sharing // 2
        yield Barrier(LoopKind.THREADS)
        yield Store(between, thread.number, variable)
        while half:
            yield Barrier(LoopKind.THREADS)
            other = load(between, self._number(add(thread.lane, half), thread.group))
            update = Store(between, thread.number, other, op)
            yield If(build.lt(thread.lane, half), block(update))
            half //= 2
        yield Barrier(LoopKind.THREADS)
        total = load(between, self._number(const(0), thread.group))
        yield Assign(variable, total, role=Role.VALUES)

    # ------------------------------------------------------------ instructions

    def _scalar(self, thread: _Thread, slab: _Slab, step: nodes.Instruction) -> Iterator[Stmt]:
        """Yield an instruction that each thread of a slab executes alike."""
        match step:
            case nodes.Load():
                if step.indices:
                    value = self._loaded(step)
                    yield Declare(self.values.declare(step.value, step.dtype), value, True)
                else:
                    self.values.variables[step.value] = self.numbers[step.buffer].name
            case nodes.Pick():
                yield self._picked(step)
            case nodes.Compute():
                yield self.values.compute(step)
            case nodes.Store():
                yield self._store_once(thread, slab, step)

    def _picked(self, step: nodes.Pick) -> Stmt:
        """Return the declaration of an element that is read where there is one."""
        place = self.values.place(step.place)
        at = {**self.at, step.index: place}
        value = load(
            self.places.array(step.buffer), self.places.place(step.buffer, step.indices, at)
        )
        element, number = scalar(step.dtype), self.values.argument(step.otherwise, step.dtype)
        size = self.places.size(step.index)
        inside = build.and_(build.ge(place, const(0)), build.lt(place, size))
        element_or_number = build.select(inside, build.cast(element, value), number)
        return Declare(self.values.declare(step.value, step.dtype), element_or_number, True)

    def _store_once(self, thread: _Thread, slab: _Slab, step: nodes.Store) -> Stmt:
        """Return the statement by which one thread stores a value of a slab, or adds it."""
        value = self.values.argument(step.arg, self.places.dtype(step.buffer))
        if step.buffer in self.totals:
            assert step.operator is not None
            total = self.totals[step.buffer]
            update = Assign(total, value, step.operator.c_operator, Role.VALUES)
            return If(slab.active, block(update))
        is_first = build.and_(self._is_first(thread), slab.active)
        if step.operator is not None:
            return If(is_first, block(Store(self.parts[step.buffer], slab.number, value)))
        array = self.places.array(step.buffer)
        place = self.places.place(step.buffer, step.indices, self.at)
        return If(is_first, block(Store(array, place, build.cast(array.element, value))))

    def _is_first(self, thread: _Thread) -> Expr:
        """Return the test for the first thread of a slab."""
        is_lane = build.eq(thread.lane, 0) if self.units.sharing > 1 else TRUE
        is_tile = build.eq(thread.tile, 0) if self.of.is_split else TRUE
        return build.and_(is_lane, is_tile)

    def _step(
        self, thread: _Thread, slab: _Slab, step: nodes.Instruction, k: Expr
    ) -> Iterator[Stmt]:
        """Yield an instruction on an element."""
        match step:
            case nodes.Load():
                yield from self._load(thread, slab, step, k)
            case nodes.Compute():
                yield self.values.compute(step)
            case Reduce():
                variable = self.values.of(step.value, step.dtype)
                value = self.values.argument(step.arg, step.dtype)
                yield Assign(variable, value, step.operator.c_operator, Role.VALUES)
            case nodes.Store():
                yield from self._store(thread, slab, step, k)

    def _load(self, thread: _Thread, slab: _Slab, step: nodes.Load, k: Expr) -> Iterator[Stmt]:
        """Yield the load of an element: from the nearest memory that has it."""
        key = (step.buffer, step.indices)
        variable = self.values.declare(step.value, step.dtype)
        if key in self.rows:
            place = sub(self.places.row_major(self._inner(step.indices), self.at), thread.begin)
            yield Declare(variable, load(self.rows[key], place), True)
        elif key in self.ready:
            value = load(self.private[key], k)
            yield Declare(variable, build.cast(scalar(step.dtype), value), True)
        elif key in self.far:
            value = load(self.far[key], self._far_place(slab))
            yield Declare(variable, build.cast(scalar(step.dtype), value), True)
        else:
            yield Declare(variable, self._loaded(step), True)
            if key in self.private:
                array = self.private[key]
                yield Store(array, k, build.cast(array.element, variable))
                self.ready.add(key)

    def _store(self, thread: _Thread, slab: _Slab, step: nodes.Store, k: Expr) -> Iterator[Stmt]:
        """Yield the store of an element, to main memory and where a later pass reads it."""
        key, dtype = (step.buffer, step.indices), self.places.dtype(step.buffer)
        value = self.values.argument(step.arg, dtype)
        if step.operator is not None:
            op = step.operator.c_operator
            if self.keeps:
                yield Store(self.sums[step.buffer], k, value, op)
            else:
                row = mul(self._part(thread), self.row)
                place = add(row, self.places.row_major(self.of.inner, self.at))
                yield Store(self.parts[step.buffer], place, value, op)
            return
        if key in self.private:
            yield Store(self.private[key], k, value)
            self.ready.add(key)
        if key in self.far:
            yield Store(self.far[key], self._far_place(slab), value)
        if self.of.graph.buffer(step.buffer).memory is Memory.DRAM:
            array = self.places.array(step.buffer)
            place = self.places.place(step.buffer, step.indices, self.at)
            yield Store(array, place, build.cast(array.element, value))

    def _far_place(self, slab: _Slab) -> Expr:
        return add(mul(slab.number, self.row), self.places.row_major(self.of.inner, self.at))

    def _loaded(self, step: nodes.Load) -> Expr:
        """Return an element of main memory in the type of its value."""
        place = self.places.place(step.buffer, step.indices, self.at)
        return build.cast(scalar(step.dtype), load(self.places.array(step.buffer), place))
