"""The memory of a thread for a group of rows: near buffers, values of rows, lanes and stages."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import field

from codegen import build
from codegen.build import const
from codegen.ir import Allocate, Array, Declare, Load, Stmt, Store
from codegen.records import dataclass
from codegen.types import scalar
from taco_py.compiler.dataflow import nodes
from taco_py.compiler.dataflow.nodes import Memory, Pass, value_made
from taco_py.compiler.ways.entry_kernels.group_places import (
    GROUP_ENTRIES,
    EntryPlaces,
    GroupVariables,
)
from taco_py.compiler.ways.entry_kernels.pass_phases import PassPhase, names_read, pass_phases
from taco_py.language.legal.types import is_real


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """The local arrays of a thread; `allocations` names them.

    rows    the array of each value of which a row has one, with an element for each row of a group
    types   the dtype of each such value
    lanes   the array of each value that one loop over a chunk makes for another
    stages  the array of each result that has an element for each entry
    """

    places: EntryPlaces
    rows: dict[str, Array] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    lanes: dict[str, Array] = field(default_factory=dict)
    stages: dict[str, Array] = field(default_factory=dict)

    @property
    def group(self) -> GroupVariables:
        """Return the variables of a group."""
        return self.places.group

    def allocations(self) -> Iterator[Stmt]:
        """Yield the allocations of a thread, and name their arrays."""
        for buffer in self.places.graph.graph.buffers:
            if buffer.memory is Memory.NEAR and self.is_stored(buffer.name):
                array = self.places.local(f"{buffer.name}_near", buffer.dtype)
                self.places.near[buffer.name] = array
                yield Allocate(array, const(GROUP_ENTRIES), align=64)
        for one in self.places.passes:
            for step in one.body:
                yield from self.allocation(one, step)
        for one in self.places.passes:
            for name, dtype in self.crossing(one):
                self.lanes[name] = self.places.local(f"{name}_lanes", dtype)
                yield Allocate(self.lanes[name], const(GROUP_ENTRIES), align=64)

    def allocation(self, one: Pass, step: nodes.Instruction) -> Iterator[Stmt]:
        """Yield the allocation for an instruction whose value other passes or a result need."""
        name = value_made(step)
        if isinstance(step, nodes.Store) and self.needs_stage(one, step):
            dtype = self.places.graph.graph.buffer(step.buffer).dtype
            self.stages[step.buffer] = self.places.local(f"{step.buffer}_stage", dtype)
            yield Allocate(self.stages[step.buffer], const(GROUP_ENTRIES), align=64)
        if isinstance(step, nodes.Reduce) or (name is not None and not one.over):
            assert name is not None and not isinstance(
                step, nodes.Store | nodes.Prefetch | nodes.Pick
            )
            if not isinstance(step, nodes.Reduce) and not self.is_read_later(one, name):
                return
            self.types[name] = step.dtype
            self.rows[name] = self.places.local(f"{name}_rows", _row_dtype(step))
            yield Allocate(self.rows[name], const(GROUP_ENTRIES), align=64)

    def needs_stage(self, one: Pass, store: nodes.Store) -> bool:
        """Tell whether a pass makes the elements of a result, each of an entry."""
        is_result = bool(one.over) and store.buffer not in self.places.near
        return is_result and self.copied_from(one, store) is None

    def is_stored(self, buffer: str) -> bool:
        """Tell whether a pass stores elements of a buffer."""
        return any(
            isinstance(step, nodes.Store) and step.buffer == buffer
            for one in self.places.passes
            for step in one.body
        )

    def is_read_later(self, maker: Pass, name: str) -> bool:
        """Tell whether another pass reads a value that a pass makes."""
        position = self.places.graph.position
        later = (one for one in self.places.passes if one is not maker)
        return any(name in names_read(step, position) for one in later for step in one.body)

    def loads_of_rows(self, read: Set[str]) -> list[Stmt]:
        """Return the declarations of a row's values."""
        code: list[Stmt] = []
        for name, array in self.rows.items():
            if name in read:
                dtype = self.types[name]
                value = build.cast(scalar(dtype), Load(array, self.group.row_place))
                code.append(Declare(self.places.values.declare(name, dtype), value, True))
        return code

    def store_of_row(self, name: str) -> Stmt:
        """Return the store of a row's value."""
        value = self.places.values.of(name, self.types[name])
        return Store(self.rows[name], self.group.row_place, value)

    def phases(self, one: Pass) -> tuple[PassPhase, ...]:
        """Return the loops of a pass, without copies of coordinates."""

        def is_apart(step: nodes.Instruction) -> bool:
            copies = isinstance(step, nodes.Store) and self.copied_from(one, step) is not None
            return copies or isinstance(step, nodes.Prefetch)

        rest = Pass(one.over, tuple(step for step in one.body if not is_apart(step)))
        return pass_phases(rest, {*self.rows, *self.places.graph.slab})

    def crossing(self, one: Pass) -> Iterator[tuple[str, str]]:
        """Yield the values, and their dtypes, that one loop of a pass makes for a later one."""
        if not one.over:
            return
        phases = self.phases(one)
        for number, phase in enumerate(phases):
            later = phases[number + 1 :]
            for step in phase.body:
                name = value_made(step)
                if name is None or isinstance(step, nodes.Reduce | nodes.Store | nodes.Prefetch):
                    continue
                if any(name in other.read and name not in other.values for other in later):
                    yield name, step.dtype

    def copied_from(self, one: Pass, store: nodes.Store) -> Array | None:
        """Return the operand's array whose elements a pass stores at the same positions, as they
        are; None where it makes them."""
        makers = {value_made(step): step for step in one.body}
        maker = makers.get(store.arg) if isinstance(store.arg, str) else None
        if not isinstance(maker, nodes.Load) or self.places.graph.position not in maker.indices:
            return None
        if maker.buffer in self.places.near:
            return None
        source, target = self.places.array(maker.buffer), self.places.array(store.buffer)
        is_same = source.element == target.element and maker.indices == store.indices
        return source if is_same else None


def _row_dtype(step: nodes.Load | nodes.Compute | nodes.Reduce) -> str:
    """Return the type in which a value of a row is kept: sums of chunks are added in 64 bits."""
    is_sum = isinstance(step, nodes.Reduce) and step.operator.c_operator == "+"
    return "float64" if is_sum and is_real(step.dtype) else step.dtype
