"""A dataflow graph → loop IR for the CPU: blocks of slabs in parallel, the passes of each in order.

    parallel i: over j: reduce max; over j: …

    parallel for blocks of slabs:
      allocate near buffers
      for slab in block:
        v = -inf
        for j: v max= X[i,j]
        for j: …

What is stored by an operator across slabs is a partial result of each block; the number of blocks
depends on sizes alone, so that a result has the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeVar, assert_never

from codegen import build
from codegen.build import add, block, const, div, maximum, minimum, mod, mul, sub
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    Fill,
    For,
    If,
    Load,
    LoopKind,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.machine.target import Target
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import scalar
from taco_py.compiler.dataflow import nodes
from taco_py.compiler.dataflow.moved_bytes import LINE_BYTES
from taco_py.compiler.dataflow.nodes import Buffer, Dataflow, Memory, ParallelMap, Pass, Reduce
from taco_py.compiler.dataflow.slab_form import SlabForm
from taco_py.compiler.ways.arrays import Arguments
from taco_py.compiler.ways.slab_kernels.emit_values import Values, identity
from taco_py.compiler.ways.slab_kernels.line_stages import (
    FEWEST_LINES,
    STAGE_ELEMENTS,
    first_line,
    prefetch_stage,
    write_stage,
)
from taco_py.language.notation.operators import Operator
from taco_py.language.problem import Problem

MOST_BLOCKS = 64
"""Blocks of slabs: enough for the threads of a processor, few enough to add their sums up."""
BLOCK_ELEMENTS = 1 << 13
"""Elements of a block at least: its memory is allocated for it."""
FEW_BLOCKS = 8
BLOCK_SLABS = 32
"""Slabs of a block whose values are combined: its partial result is nothing beside them. There are
a few blocks all the same, for the threads."""

Code = TypeVar("Code")


def emit_loops(
    graph: Dataflow, form: SlabForm, problem: Problem, arguments: Arguments, target: Target
) -> Block:
    """Emit the body of a function over the arrays of a problem."""
    emitter = _Emitter(graph, form, problem, arguments, target, Values(arguments.names))
    return block(*(stmt for map in graph.maps for stmt in emitter.map(map)))


@dataclass(slots=True)
class _Emitter:
    """Emits the maps of a graph.

    near    the array of each near buffer
    parts   the partial results of each block, by the buffer that they are of
    stages  the memory of a stage of what is written past the caches, by the buffer
    at      the value of each index; `begins` of those that slabs have blocks of, where a block is
    values  the variables of values
    lane    the number of an element in its stage
    """

    graph: Dataflow
    form: SlabForm
    problem: Problem
    arguments: Arguments
    target: Target
    values: Values
    near: dict[str, Array] = field(default_factory=dict)
    parts: dict[str, Array] = field(default_factory=dict)
    stages: dict[str, Array] = field(default_factory=dict)
    at: dict[str, Expr] = field(default_factory=dict)
    begins: dict[str, Expr] = field(default_factory=dict)
    part_begins: dict[str, Expr] = field(default_factory=dict)
    lane: Var = Var("lane")
    block_sizes: dict[str, Expr] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        return self.arguments.names

    # ------------------------------------------------------------ sizes

    def size(self, index: str) -> Expr:
        """Return the size of an index."""
        (name, *_) = self.form.names[index]
        return self.arguments.sizes[name]

    def length(self, index: str) -> Expr:
        """Return the iterations of a loop inside of a slab."""
        return self.block_sizes.get(index, self.size(index))

    def room(self, map: ParallelMap, index: str) -> Expr:
        """Return the most elements that a slab has along an index."""
        blocks = {one.name: one.block for one in map.slab}
        return const(blocks[index]) if index in blocks else self.size(index)

    # ------------------------------------------------------------ a map

    def map(self, map: ParallelMap) -> list[Stmt]:
        """Return the code of a map: loops over blocks of slabs, and sums of their parts."""
        slabs, blocks = self._variable("slabs"), self._variable("blocks")
        number_, first, last = (self._variable(word) for word in ("number", "first", "last"))
        slab = self._variable("slab")
        counts = [self._count(index) for index in map.slab]
        totals = self._totals(map)
        widths = {name: self._width(self.graph.buffer(name)) for name in totals}
        for name in totals:
            element = scalar(self.graph.buffer(name).dtype)
            self.parts[name] = Array(self.names.fresh(f"{name}_parts"), element, Storage.LOCAL)
        before: list[Stmt] = [
            Declare(slabs, mul(*counts) if counts else const(1), True),
            Declare(blocks, self._blocks(slabs, bool(totals)), True),
        ]
        before += [Allocate(self.parts[n], mul(blocks, widths[n]), align=64) for n in totals]
        self.part_begins = {name: mul(number_, widths[name]) for name in totals}
        setup = [*self._near(map), *self._stage_buffers(map)]
        fills = [
            Fill(
                self.parts[name],
                mul(number_, widths[name]),
                widths[name],
                identity(operator, self.graph.buffer(name).dtype),
            )
            for name, operator in totals.items()
        ]
        one = block(*self._indices(map, slab), *(s for p in map.passes for s in self.one_pass(p)))
        body = block(
            Declare(first, div(mul(number_, slabs), blocks), True),
            Declare(last, div(mul(add(number_, 1), slabs), blocks), True),
            *setup,
            *fills,
            For(slab, first, last, one),
        )
        shared = For(number_, const(0), blocks, body, 1, LoopKind.PARALLEL)
        after = [s for name in totals for s in self._total(name, totals[name], blocks)]
        return [*before, shared, *after]

    def _blocks(self, slabs: Expr, totals: bool) -> Expr:
        """Return the number of blocks of slabs: of those with partial results, no more than pay."""
        few = minimum(slabs, FEW_BLOCKS if totals else MOST_BLOCKS)
        more = minimum(div(slabs, BLOCK_SLABS), MOST_BLOCKS) if totals else const(1)
        elements = mul(*(self.size(index) for index in self.form.order))
        return maximum(minimum(maximum(few, more), div(elements, BLOCK_ELEMENTS)), 1)

    def _variable(self, word: str) -> Var:
        return Var(self.names.fresh(word))

    def _count(self, index: nodes.SlabIndex) -> Expr:
        size = self.size(index.name)
        return size if index.block == 1 else div(add(size, index.block - 1), index.block)

    def _indices(self, map: ParallelMap, slab: Var) -> list[Stmt]:
        """Return the declarations of the indices of a slab, from its number."""
        code: list[Stmt] = []
        rest: Expr = slab
        self.block_sizes = {}
        for place in reversed(range(len(map.slab))):
            index = map.slab[place]
            count = self._count(index)
            value: Expr = rest if place == 0 else mod(rest, count)
            variable = self._variable(index.name)
            if index.block > 1:
                length = self._variable(f"{index.name}_length")
                code.append(Declare(variable, mul(value, index.block), True))
                least = minimum(sub(self.size(index.name), variable), index.block)
                code.append(Declare(length, least, True))
                self.block_sizes[index.name] = length
                self.begins[index.name] = variable
            else:
                code.append(Declare(variable, value, True))
                self.at[index.name] = variable
            rest = div(rest, count)
        return code

    def _near(self, map: ParallelMap) -> list[Stmt]:
        """Return the allocations of a map's near buffers."""
        code: list[Stmt] = []
        used = {s.buffer for one in map.passes for s in one.body if isinstance(s, nodes.Store)}
        for buffer in self.graph.buffers:
            if buffer.memory is Memory.NEAR and buffer.name in used:
                name = self.names.fresh(f"{buffer.name}_row")
                array = Array(name, scalar(buffer.dtype), Storage.LOCAL)
                self.near[buffer.name] = array
                size = mul(const(1), *(self.room(map, index) for index in buffer.indices))
                code.append(Allocate(array, maximum(size, 1), align=64))
        return code

    def _stage_buffers(self, map: ParallelMap) -> list[Stmt]:
        """Return the allocations of stages for stores past the caches."""
        code: list[Stmt] = []
        for one in map.passes:
            for store in _streams(one):
                if self._may_stream(store):
                    element = self._tensor(store.buffer).element
                    array = Array(self.names.fresh(f"{store.buffer}_stage"), element, Storage.LOCAL)
                    self.stages[store.buffer] = array
                    code.append(Allocate(array, const(STAGE_ELEMENTS), align=64))
        return code

    # ------------------------------------------------------------ partial results

    def _totals(self, map: ParallelMap) -> dict[str, Operator]:
        """Return the operator of each buffer in main memory that slabs combine values in."""
        return {
            step.buffer: step.operator
            for one in map.passes
            for step in one.body
            if isinstance(step, nodes.Store) and step.operator is not None and self._is_far(step)
        }

    def _is_far(self, step: nodes.Store | nodes.Load) -> bool:
        return self.graph.buffer(step.buffer).memory is Memory.DRAM

    def _width(self, buffer: Buffer) -> Expr:
        return mul(const(1), *(self.size(index) for index in buffer.indices))

    def _total(self, name: str, operator: Operator, blocks: Expr) -> list[Stmt]:
        """Return the code that combines the parts of all blocks, in order."""
        buffer, parts = self.graph.buffer(name), self.parts[name]
        total = Array(self.names.fresh(f"{name}_total"), parts.element, Storage.LOCAL)
        width, place, number_ = self._width(buffer), self._variable("place"), self._variable("part")
        load = Load(parts, add(mul(number_, width), place))
        inner = For(place, const(0), width, block(Store(total, place, load, operator.c_operator)))
        self.at = {index: self._variable(index) for index in buffer.indices}
        self.block_sizes = {}
        value = Load(total, self._row_major(buffer.indices, self.size))
        array = self._tensor(name)
        store: Stmt = Store(array, self._place(name, buffer.indices), self._cast(array, value))
        for index in reversed(buffer.indices):
            variable = self.at[index]
            assert isinstance(variable, Var)
            store = For(variable, const(0), self.size(index), block(store))
        return [
            Allocate(total, maximum(width, 1), align=64),
            Fill(total, const(0), width, identity(operator, buffer.dtype)),
            For(number_, const(0), blocks, block(inner)),
            store,
        ]

    # ------------------------------------------------------------ a pass

    def one_pass(self, one: Pass) -> list[Stmt]:
        """Return the code of a pass for one slab."""
        begin: list[Stmt] = []
        for step in one.body:
            if isinstance(step, Reduce):
                variable = self.values.declare(step.value, step.dtype)
                begin.append(Declare(variable, identity(step.operator, step.dtype)))
        streams = [store for store in _streams(one) if self._may_stream(store)]
        if not streams:
            return [*begin, *self._loops(one, ())]
        plain = self._loops(one, ())
        return [*begin, If(self._pays(streams), block(*self._loops(one, streams)), block(*plain))]

    def _loops(self, one: Pass, streams: Sequence[nodes.Store]) -> list[Stmt]:
        """Return the loops of a pass, the innermost in stages where it writes past the caches."""
        if not one.over:
            return [stmt for step in one.body for stmt in self._step(step, ())]
        variables = {index: self._variable(index) for index in one.over}
        for index, variable in variables.items():
            self.at[index] = add(self.begins.get(index, const(0)), variable)
        *outer, inner = one.over
        code = self._innermost(one, inner, variables[inner], streams)
        for index in reversed(outer):
            code = [For(variables[index], const(0), self.length(index), block(*code))]
        return code

    def _innermost(
        self, one: Pass, index: str, variable: Var, streams: Sequence[nodes.Store]
    ) -> list[Stmt]:
        """Return the innermost loop of a pass: in stages, where memory has something to do beside
        it, or where a sum of 32 bits would be long."""
        reduces = any(isinstance(step, Reduce) for step in one.body)
        fetches = any(isinstance(step, nodes.Prefetch) for step in one.body)
        stores = any(isinstance(step, nodes.Store) for step in one.body)
        if streams:
            return self._streaming(one, index, variable, streams)
        if fetches or (reduces and stores):
            return self._staged(one, index, variable)
        body = [stmt for step in one.body for stmt in self._step(step, ())]
        return [For(variable, const(0), self.length(index), block(*body))]

    def _staged(self, one: Pass, index: str, variable: Var) -> list[Stmt]:
        """Return a loop in stages of neighbours, before each of which lines are prefetched."""
        begin, count = self._variable("stage"), self._variable("count")
        elements = self._elements(one, index, variable, begin, count, ())
        left = sub(self.length(index), begin)
        stage = block(
            Declare(count, minimum(left, STAGE_ELEMENTS), True),
            *self._at_stage(index, begin, lambda: self._prefetched(one, count)),
            elements,
        )
        return [For(begin, const(0), self.length(index), stage, STAGE_ELEMENTS)]

    def _streaming(
        self, one: Pass, index: str, variable: Var, streams: Sequence[nodes.Store]
    ) -> list[Stmt]:
        """Return a loop in stages, each written past the caches line by line.

        The first stage ends where the first result has a line; it may be empty.
        """
        length = self.length(index)
        begin, count = self._variable("stage"), self._variable("count")
        first, number_ = self._variable("first"), self._variable("stage_number")
        elements = self._elements(one, index, variable, begin, count, streams)
        lines = self._at_stage(index, const(0), lambda: [self._first_line(s) for s in streams])
        is_head = build.eq(number_, const(0))

        def write() -> list[Stmt]:
            has_lines = build.not_(is_head)
            pairs = zip(streams, lines, strict=True)
            return [
                stmt
                for store, line in pairs
                for stmt in self._past_caches(store, count, has_lines, sub(line, first))
            ]

        after = add(first, mul(sub(number_, 1), STAGE_ELEMENTS))
        left = minimum(sub(length, begin), STAGE_ELEMENTS)
        stage = block(
            Declare(begin, build.select(is_head, const(0), after), True),
            Declare(count, build.select(is_head, first, left), True),
            *self._at_stage(index, begin, lambda: self._prefetched(one, count)),
            elements,
            *self._at_stage(index, begin, write),
        )
        stages = add(div(add(sub(length, first), STAGE_ELEMENTS - 1), STAGE_ELEMENTS), 1)
        return [
            Declare(first, minimum(lines[0], length), True),
            For(number_, const(0), stages, stage),
        ]

    def _elements(
        self,
        one: Pass,
        index: str,
        variable: Var,
        begin: Var,
        count: Var,
        streams: Sequence[nodes.Store],
    ) -> For:
        """Return the loop over the elements of a stage."""
        self.lane = self._variable("lane")
        body = [stmt for step in one.body for stmt in self._step(step, streams)]
        place = Declare(variable, add(begin, self.lane), True)
        return For(self.lane, const(0), count, block(place, *body))

    def _at_stage(self, index: str, begin: Expr, code: Callable[[], list[Code]]) -> list[Code]:
        """Return code for the first element of a stage."""
        element = self.at[index]
        self.at[index] = add(self.begins.get(index, const(0)), begin)
        stmts = code()
        self.at[index] = element
        return stmts

    def _first_line(self, store: nodes.Store) -> Expr:
        """Return the elements of a row that lie before its first whole line."""
        return first_line(self._tensor(store.buffer), self._place(store.buffer, store.indices))

    def _past_caches(
        self, store: nodes.Store, count: Expr, has_lines: Expr, shift: Expr
    ) -> list[Stmt]:
        """Return the loops that write a stage to its place in a result."""
        array, stage = self._tensor(store.buffer), self.stages[store.buffer]
        place = self._place(store.buffer, store.indices)
        lanes = self.target.lanes(array.element)
        return write_stage(array, place, stage, count, has_lines, shift, lanes, self._variable)

    def _prefetched(self, one: Pass, count: Expr) -> list[Stmt]:
        """Return the loops that ask for the lines of a stage, in the next slab."""
        slab = self.graph.maps[0].slab[-1].name
        code: list[Stmt] = []
        for step in one.body:
            if isinstance(step, nodes.Prefetch):
                stored = self.problem.type_of(step.buffer).format.stored(step.indices)
                stride = self.arguments.tensors[step.buffer].strides[stored.index(slab)]
                place = add(self._place(step.buffer, step.indices), stride)
                array = self._tensor(step.buffer)
                code.append(prefetch_stage(array, place, count, self._variable("lane")))
        return code

    def _may_stream(self, store: nodes.Store) -> bool:
        """Tell whether a store writes whole lines of its array, one behind the other."""
        type = self.problem.type_of(store.buffer)
        array = self._tensor(store.buffer)
        lanes = self.target.lanes(array.element)
        stored = type.format.stored(store.indices)
        in_order = type.unit_stride and bool(stored) and stored[-1] == store.indices[-1]
        return in_order and not type.stored and 1 < lanes <= LINE_BYTES // array.element.itemsize

    def _pays(self, streams: Sequence[nodes.Store]) -> Expr:
        """Return whether arrays are about as large as the last cache, and rows have some lines."""
        conditions: list[Expr] = []
        for store in streams:
            element = self._tensor(store.buffer).element
            least = self.target.processor.past_caches_bytes // element.itemsize
            count = mul(*(self.size(index) for index in store.indices))
            conditions.append(build.ge(count, least))
            row = self.size(store.indices[-1])
            conditions.append(build.ge(row, FEWEST_LINES * LINE_BYTES // element.itemsize))
        return build.and_(*conditions)

    # ------------------------------------------------------------ instructions

    def _step(self, step: nodes.Instruction, streams: Sequence[nodes.Store]) -> list[Stmt]:
        match step:
            case nodes.Load(value, dtype, buffer, indices):
                loaded = Load(self._array(buffer), self._place(buffer, indices))
                element = build.cast(scalar(dtype), loaded)
                return [Declare(self.values.declare(value, dtype), element, True)]
            case nodes.Pick():
                return [self._picked(step)]
            case nodes.Compute():
                return [self.values.compute(step)]
            case nodes.Reduce(value, dtype, operator, arg):
                variable = self.values.of(value, dtype)
                update = self.values.argument(arg, dtype)
                return [Assign(variable, update, operator.c_operator)]
            case nodes.Store():
                return [self._store(step, streams)]
            case nodes.Prefetch():
                return []
        assert_never(step)

    def _picked(self, step: nodes.Pick) -> Stmt:
        """Return the declaration of an element that is read where there is one."""
        place = self.values.place(step.place)
        places, self.at = self.at, {**self.at, step.index: place}
        load = Load(self._array(step.buffer), self._place(step.buffer, step.indices))
        self.at = places
        element, number = scalar(step.dtype), self.values.argument(step.otherwise, step.dtype)
        inside = build.and_(build.ge(place, const(0)), build.lt(place, self.size(step.index)))
        value = build.select(inside, build.cast(element, load), number)
        return Declare(self.values.declare(step.value, step.dtype), value, True)

    def _store(self, step: nodes.Store, streams: Sequence[nodes.Store]) -> Stmt:
        dtype = self.graph.buffer(step.buffer).dtype
        value = self.values.argument(step.arg, dtype)
        if step in streams:
            return Store(self.stages[step.buffer], self.lane, value)
        op = None if step.operator is None else step.operator.c_operator
        if step.buffer in self.parts and step.operator is not None:
            begin = self.part_begins[step.buffer]
            place = add(begin, self._row_major(step.indices, self.size))
            return Store(self.parts[step.buffer], place, value, op)
        array = self._array(step.buffer)
        return Store(array, self._place(step.buffer, step.indices), self._cast(array, value), op)

    def _cast(self, array: Array, value: Expr) -> Expr:
        return build.cast(array.element, value)

    # ------------------------------------------------------------ places

    def _tensor(self, name: str) -> Array:
        return self.arguments.tensors[name].array

    def _array(self, name: str) -> Array:
        return self.near[name] if name in self.near else self._tensor(name)

    def _place(self, name: str, indices: tuple[str, ...]) -> Expr:
        """Return the position of an element in its array."""
        if name in self.near:
            blocks = {i.name: i.block for map in self.graph.maps for i in map.slab if i.block > 1}

            def most(index: str) -> Expr:
                return const(blocks[index]) if index in blocks else self.size(index)

            begins = {i: self.begins.get(i, const(0)) for i in indices}
            return self._row_major(indices, most, lambda i: sub(self.at[i], begins[i]))
        type = self.problem.type_of(name)
        strides = self.arguments.tensors[name].strides
        stored = type.format.stored(indices)
        return add(const(0), *(mul(self.at[i], s) for i, s in zip(stored, strides, strict=True)))

    def _row_major(
        self,
        indices: Sequence[str],
        size: Callable[[str], Expr],
        at: Callable[[str], Expr] | None = None,
    ) -> Expr:
        """Return the position of an element in an array without gaps, the last index fastest."""
        place: Expr = const(0)
        for index in indices:
            value = self.at[index] if at is None else at(index)
            place = add(mul(place, size(index)), value)
        return place


def _streams(one: Pass) -> list[nodes.Store]:
    return [step for step in one.body if isinstance(step, nodes.Store) and step.streaming]
