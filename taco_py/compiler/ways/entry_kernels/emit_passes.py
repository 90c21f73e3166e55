"""The passes of a graph of entries as loops over a group of rows.

over p: z = reduce add A[i,p];  over p: store P[i,p] = div A[i,p] z

→  for row in group: z[row] = sum of A_vals[p]
   for chunks of the group's entries:
     for row in group: stage[p] = A_vals[p] / z[row]
     write the stage to P_vals, and the chunk of A2_crd to P2_crd, past the caches
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from codegen import build
from codegen.build import add, and_, block, const, load_index, lt, maximum, minimum, sub
from codegen.ir import (
    TRUE,
    Assign,
    Declare,
    Expect,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    Var,
)
from codegen.machine.target import Target
from codegen.records import dataclass
from codegen.types import INT32, scalar
from taco_py.compiler.dataflow import nodes
from taco_py.compiler.dataflow.moved_bytes import LINE_BYTES
from taco_py.compiler.dataflow.nodes import Pass, value_made
from taco_py.compiler.ways.entry_kernels.group_memory import GroupMemory
from taco_py.compiler.ways.entry_kernels.group_places import (
    GROUP_ENTRIES,
    EntryPlaces,
    GroupVariables,
)
from taco_py.compiler.ways.entry_kernels.pass_phases import PassPhase, names_read
from taco_py.compiler.ways.slab_kernels.emit_values import identity
from taco_py.compiler.ways.slab_kernels.line_stages import (
    STAGE_ELEMENTS,
    first_line,
    prefetch_stage,
    write_stage,
)


@dataclass(frozen=True, slots=True)
class PassEmitter:
    """Emits the passes of a graph for a group of rows."""

    memory: GroupMemory
    target: Target

    @property
    def places(self) -> EntryPlaces:
        """Return the arrays and the places of elements."""
        return self.memory.places

    @property
    def group(self) -> GroupVariables:
        """Return the variables of a group."""
        return self.places.group

    def all_passes(self) -> Iterator[Stmt]:
        """Yield the code of all passes."""
        for one in self.places.passes:
            yield from self.pass_of_entries(one) if one.over else self.pass_of_rows(one)

    def over_rows(self, *body: Stmt) -> For:
        """Return the loop over the rows of a group."""
        return For(self.group.row, self.group.first, self.group.stop, block(*body))

    def pass_of_rows(self, one: Pass) -> Iterator[Stmt]:
        """Yield the loop of a pass that has no entries: one iteration for each row."""
        read = {name for step in one.body for name in names_read(step, self.places.graph.position)}
        code = [*self.memory.loads_of_rows(read), *(self.step(step) for step in one.body)]
        for step in one.body:
            name = value_made(step)
            if name is not None and name in self.memory.rows:
                code.append(self.memory.store_of_row(name))
        yield self.over_rows(*code)

    # ------------------------------------------------------------ over entries

    def pass_of_entries(self, one: Pass) -> Iterator[Stmt]:
        """Yield the code of a pass over entries: in chunks, each by its loops."""
        for step in one.body:
            if isinstance(step, nodes.Reduce):
                array = self.memory.rows[step.value]
                start = build.cast(array.element, identity(step.operator, step.dtype))
                yield self.over_rows(Store(array, self.group.row_place, start))
        code = [stmt for phase in self.memory.phases(one) for stmt in self.phase(one, phase)]
        for step in one.body:
            if isinstance(step, nodes.Store) and step.buffer not in self.places.near:
                flag = self.places.arrays.check
                if flag is not None and step.buffer in self.places.graph.arrays:
                    code.append(self.check(flag))
                code += self.write(one, step)
        least = minimum(add(self.group.chunk, GROUP_ENTRIES), self.group.end)
        body = block(Declare(self.group.chunk_end, least, True), *code)
        yield For(self.group.chunk, self.group.begin, self.group.end, body, GROUP_ENTRIES)

    def check(self, flag: Expr) -> Stmt:
        """Return the check that the coordinates of a chunk ascend but where rows begin.

        flag  whether to check

        All neighbours are compared, and then those again that begin a row: rows end where the
        processor cannot foresee it.
        """
        crd = self.places.source("crd", self.places.last)
        falls = Var(self.places.arrays.names.fresh("falls"), INT32)
        first = self.places.variable("first_entry")

        def fall(place: Expr) -> Expr:
            is_fall = build.le(load_index(crd, place), load_index(crd, sub(place, 1)))
            return build.cast(INT32, is_fall)

        begin = self.places.edge(self.group.row)
        inside = and_(
            build.le(first, begin),
            lt(begin, self.group.chunk_end),
            lt(begin, self.places.edge(add(self.group.row, 1))),
        )
        correct = If(inside, block(Assign(falls, build.sub(const(0, INT32), fall(begin)), "+")))
        compare = block(Assign(falls, fall(self.group.entry), "+"))
        code = block(
            Declare(first, maximum(self.group.chunk, 1), True),
            Declare(falls, const(0, INT32)),
            For(self.group.entry, first, self.group.chunk_end, compare),
            self.over_rows(correct),
            Expect(build.eq(falls, const(0, INT32))),
        )
        return If(build.ne(flag, 0), code)

    def phase(self, one: Pass, phase: PassPhase) -> Iterator[Stmt]:
        """Yield one loop of a pass for a chunk."""
        crossing = dict(self.memory.crossing(one))
        loads = [
            Declare(
                self.places.values.declare(name, dtype),
                Load(self.memory.lanes[name], self.group.lane),
                True,
            )
            for name, dtype in crossing.items()
            if name in phase.read and name not in phase.values
        ]
        before, after = [], []
        for step in phase.body:
            if isinstance(step, nodes.Reduce):
                total = self.places.values.declare(step.value, step.dtype)
                before.append(Declare(total, identity(step.operator, step.dtype)))
                array, operator = self.memory.rows[step.value], step.operator.c_operator
                value = build.cast(array.element, total)
                after.append(Store(array, self.group.row_place, value, operator))
        requests = [step for step in one.body if isinstance(step, nodes.Prefetch)]
        if phase != self.idle_phase(one):
            requests = []
        if not phase.by_rows:
            body = [
                *loads,
                *(self.step(step) for step in phase.body),
                *self.keep_lanes(phase, crossing),
            ]
            yield from self.over_entries(self.group.chunk, self.group.chunk_end, body, requests)
            return
        of_row = self.memory.loads_of_rows(phase.read)
        low, high = self.places.variable("low"), self.places.variable("high")
        body = [
            *loads,
            *(self.step(step) for step in phase.body),
            *self.keep_lanes(phase, crossing),
        ]
        yield self.over_rows(
            *of_row,
            *before,
            Declare(low, maximum(self.places.edge(self.group.row), self.group.chunk), True),
            Declare(
                high, minimum(self.places.edge(add(self.group.row, 1)), self.group.chunk_end), True
            ),
            *self.fetches(requests, low, high),
            For(self.group.entry, low, high, block(*body)),
            *after,
        )

    def idle_phase(self, one: Pass) -> PassPhase:
        """Return the loop of a pass that leaves main memory idle: over all entries, or the last."""
        phases = self.memory.phases(one)
        return next((phase for phase in phases if not phase.by_rows), phases[-1])

    def over_entries(
        self, begin: Expr, end: Expr, body: Sequence[Stmt], requests: Sequence[nodes.Prefetch]
    ) -> Iterator[Stmt]:
        """Yield the loop over entries, in stages before which others are asked for."""
        if not requests:
            yield For(self.group.entry, begin, end, block(*body))
            return
        stage, stop = self.places.variable("stage"), self.places.variable("stage_end")
        inside = block(
            Declare(stop, minimum(add(stage, STAGE_ELEMENTS), end), True),
            *self.fetches(requests, stage, stop),
            For(self.group.entry, stage, stop, block(*body)),
        )
        yield For(stage, begin, end, inside, STAGE_ELEMENTS)

    def fetches(self, requests: Sequence[nodes.Prefetch], begin: Expr, end: Expr) -> Iterator[Stmt]:
        """Yield the loops that ask for entries of the next group."""
        for step in requests:
            place, lane = add(begin, GROUP_ENTRIES), self.places.variable("lane")
            yield prefetch_stage(self.places.array(step.buffer), place, sub(end, begin), lane)

    def keep_lanes(self, phase: PassPhase, crossing: Mapping[str, str]) -> Iterator[Stmt]:
        """Yield the stores of values that a later loop of the pass reads."""
        for name, dtype in crossing.items():
            if any(value_made(step) == name for step in phase.body):
                yield Store(
                    self.memory.lanes[name], self.group.lane, self.places.values.of(name, dtype)
                )

    # ------------------------------------------------------------ instructions

    def step(self, step: nodes.Instruction) -> Stmt:
        """Return the code of an instruction."""
        match step:
            case nodes.Load(value, dtype, buffer, indices):
                loaded = Load(self.places.array(buffer), self.places.place(buffer, indices))
                cast = build.cast(scalar(dtype), loaded)
                return Declare(self.places.values.declare(value, dtype), cast, True)
            case nodes.Compute():
                return self.places.values.compute(step)
            case nodes.Reduce(value, dtype, operator, arg):
                update = self.places.values.argument(arg, dtype)
                return Assign(self.places.values.of(value, dtype), update, operator.c_operator)
            case nodes.Store():
                return self.store(step)
            case nodes.Prefetch():
                return block()
            case nodes.Pick():
                raise AssertionError(step)  # slabs of entries do not have all elements
        assert_never(step)

    def store(self, step: nodes.Store) -> Stmt:
        """Return the store of a value: in a stage, where each entry has an element of a result."""
        dtype = self.places.graph.graph.buffer(step.buffer).dtype
        value = self.places.values.argument(step.arg, dtype)
        if step.buffer in self.memory.stages:
            return Store(self.memory.stages[step.buffer], self.group.lane, value)
        array, place = self.places.array(step.buffer), self.places.place(step.buffer, step.indices)
        return Store(array, place, build.cast(array.element, value))

    # ------------------------------------------------------------ results

    def write(self, one: Pass, store: nodes.Store) -> Iterator[Stmt]:
        """Yield the code that writes a chunk of a result, past the caches where that pays."""
        target, source = self.places.array(store.buffer), self.memory.copied_from(one, store)
        stage, begin = (
            (self.memory.stages[store.buffer], const(0))
            if source is None
            else (source, self.group.chunk)
        )
        lanes = self.target.processor.vector_bytes // target.element.itemsize
        count = sub(self.group.chunk_end, self.group.chunk)
        lane = self.places.variable("lane")
        copy = Store(target, add(self.group.chunk, lane), Load(stage, add(begin, lane)))
        plain = For(lane, const(0), count, block(copy))
        if not store.streaming or not 1 < lanes <= LINE_BYTES // target.element.itemsize:
            yield plain
            return
        shift = first_line(target, self.group.chunk)
        stream = write_stage(
            target, self.group.chunk, stage, count, TRUE, shift, lanes, self.places.variable, begin
        )
        yield If(self.group.past, block(*stream), block(plain))
