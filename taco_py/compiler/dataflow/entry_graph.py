"""The dataflow graph of values of entries, with the arrays of coordinates that it reads and writes.

    P[i,j] = A[i,j] * w[j]   A, P: ds

    parallel i
      once
        end: int32 = load A2_pos[i]
        store P2_pos[i] = end
      over p
        j: int32 = load A2_crd[i,p]
        v: float32 = load A[i,p]
        v_1: float32 = load w[j]
        v_2: float32 = mul v v_1
        store P[i,p] = v_2 past the caches
        store P2_crd[i,p] = j past the caches

`p` is the position of an entry, whose loop ends where the list of a slab does; `j` is a value. The
graph is built and rewritten as if each slab stored all of its elements (`build_dataflow`). Below an
outer list, slabs are positions too: `parallel q`, with `i: int32 = load A1_crd[q]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.dataflow.build_dataflow import build, is_quick
from taco_py.compiler.dataflow.entry_form import EntryForm
from taco_py.compiler.dataflow.nodes import (
    Buffer,
    Compute,
    Dataflow,
    Instruction,
    Load,
    Memory,
    ParallelMap,
    Pass,
    Prefetch,
    Role,
    SlabIndex,
    Store,
    value_made,
)
from taco_py.compiler.dataflow.optimize import Optimized, Saved, optimize
from taco_py.compiler.dataflow.rewrites import recompute
from taco_py.compiler.dataflow.rewrites.rewrite_table import REWRITES
from taco_py.compiler.dataflow.rewritten_graph import NOMINAL_CACHES, NOMINAL_SIZE
from taco_py.compiler.dataflow.slab_form import NoSlabError
from taco_py.compiler.dataflow.verify import verify
from taco_py.language.notation.checks import accesses


@dataclass(frozen=True, slots=True)
class IndexArray:
    """The array `what`, "pos" or "crd", of a level of a tensor."""

    tensor: str
    what: str
    level: int


@dataclass(frozen=True, slots=True)
class EntryGraph:
    """The dataflow graph of an entry form.

    position  the index of the entries of a slab
    slab      the indices of slabs
    arrays    the index array behind each buffer that is one
    modes     the mode of each value that is a coordinate
    first     one value after another, before any rewrite
    saved     the rewrites that were taken, with the graphs after them
    """

    graph: Dataflow
    position: str
    slab: tuple[str, ...]
    arrays: Mapping[str, IndexArray]
    modes: Mapping[str, str]
    first: Dataflow
    saved: tuple[Saved, ...]


def entry_graph(entries: EntryForm) -> EntryGraph:
    """Return the dataflow graph of values of entries after all rewrites.

    Raises NoSlabError where its values have no slabs in common.
    """
    sizes = dict.fromkeys(entries.form.names, NOMINAL_SIZE)
    gathered = _gathered(entries)
    rewrites = tuple(one for one in REWRITES if one is not recompute.REWRITE or not gathered)
    first = build(entries.problem, entries.form, gathered)
    optimized = optimize(first, sizes, NOMINAL_CACHES, rewrites)
    _check(optimized)
    writer = _Writer.of(entries, optimized.graph)
    graph = writer.graph(optimized.graph)
    verify(graph)
    modes = {new: mode for mode, new in writer.coordinates.items()}
    slab, arrays = writer.slab, writer.arrays
    return EntryGraph(graph, writer.position, slab, arrays, modes, optimized.first, optimized.saved)


def _gathered(entries: EntryForm) -> frozenset[str]:
    """Return the operands that are read at coordinates of entries: what is made of them is kept."""
    *_, last = entries.form.order
    read = (a for output in entries.form.outputs for a in accesses(output.value))
    dense = (access for access in read if access.tensor != entries.source.tensor)
    return frozenset(access.tensor for access in dense if last in access.indices)


def _check(optimized: Optimized) -> None:
    graph = optimized.graph
    if len(graph.maps) > 1:
        raise NoSlabError("its values have no slabs in common")
    for buffer in graph.buffers:
        if buffer.role is Role.TEMPORARY and buffer.memory is Memory.DRAM:
            raise NoSlabError(f"{buffer.name} does not fit into a slab")
    for step in (step for one in graph.maps[0].passes for step in one.body):
        if isinstance(step, Store) and step.operator is not None:
            raise NoSlabError(f"{step.buffer} has sums across slabs")


@dataclass(slots=True)
class _Writer:
    """Writes a graph over coordinates as one over positions.

    slab         the indices of slabs
    coordinates  the value that each mode's coordinate is, where it is read from a list
    of_entries   the buffers with an element for each entry
    """

    entries: EntryForm
    position: str
    slab: tuple[str, ...]
    coordinates: dict[str, str]
    names: Names
    buffers: dict[str, Buffer] = field(default_factory=dict)
    arrays: dict[str, IndexArray] = field(default_factory=dict)
    of_entries: set[str] = field(default_factory=set)

    @staticmethod
    def of(entries: EntryForm, graph: Dataflow) -> _Writer:
        *above, last = entries.form.order
        names = Names(_names(graph) | ({*above} if entries.in_rows else set()))
        coordinates = {last: names.fresh(last)}
        slab = tuple(above)
        if not entries.in_rows:
            coordinates[above[-1]] = names.fresh(above[-1])
            slab = (names.fresh("q"),)
        return _Writer(entries, names.fresh("p"), slab, coordinates, names)

    def graph(self, graph: Dataflow) -> Dataflow:
        """Return the graph over positions."""
        last = self.entries.form.order[-1]
        for buffer in graph.buffers:
            self.buffers[buffer.name] = replace(buffer, indices=self._indices(buffer))
        self.of_entries = {
            b.name for b in graph.buffers if b.memory is Memory.NEAR or self._is_sparse(b.name)
        }
        (map,) = graph.maps
        passes = [self._outer()]
        for one in map.passes:
            over = tuple(self.position if index == last else index for index in one.over)
            passes.append(Pass(over, self._body(one)))
        slab = tuple(SlabIndex(index) for index in self.slab)
        requested = tuple(self._prefetched(passes))
        return Dataflow(tuple(self.buffers.values()), (ParallelMap(slab, requested),))

    def _prefetched(self, passes: list[Pass]) -> Iterator[Pass]:
        """Yield the passes; one that leaves main memory idle asks for the entries of next slabs.

        That is the first pass with an operator that takes long, else the last of several.
        """
        loops = [one for one in passes if one.over]
        slow = [one for one in loops if any(map(_takes_long, one.body))]
        idle = slow[:1] or loops[1:][-1:]
        read = dict.fromkeys(
            Prefetch(step.buffer, step.indices)
            for one in loops
            for step in one.body
            if isinstance(step, Load)
            and self.position in step.indices
            and self.buffers[step.buffer].memory is Memory.DRAM
        )
        for one in passes:
            yield Pass(one.over, (*read, *one.body)) if one in idle else one

    def _is_sparse(self, name: str) -> bool:
        return name in (self.entries.source.tensor, self.entries.result)

    def _indices(self, buffer: Buffer) -> tuple[str, ...]:
        if self._is_sparse(buffer.name):
            return (*self.slab, self.position)
        if buffer.memory is Memory.NEAR:
            return tuple(self.position for _ in buffer.indices)
        return self._read_at(buffer.indices)

    def _read_at(self, indices: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.coordinates.get(index, index) for index in indices)

    def _index_buffer(self, tensor: str, what: str, level: int) -> tuple[str, str]:
        """Return the name and the dtype of the buffer of an index array."""
        array = IndexArray(tensor, what, level)
        for name, other in self.arrays.items():
            if other == array:
                return name, self.buffers[name].dtype
        name = self.names.fresh(f"{tensor}{level + 1}_{what}")
        is_result = tensor == self.entries.result
        is_last = level == len(self.entries.levels) - 1
        indices = (*self.slab, self.position) if what == "crd" and is_last else self.slab
        dtype = self.entries.problem.type_of(tensor).index_dtype
        role = Role.RESULT if is_result else Role.OPERAND
        self.buffers[name] = Buffer(name, indices, dtype, Memory.DRAM, role)
        self.arrays[name] = array
        return name, dtype

    def _copy(self, value: str, what: str, level: int) -> tuple[Load, Store]:
        """Return the instructions that copy an element of an index array to the result's."""
        source, dtype = self._index_buffer(self.entries.source.tensor, what, level)
        target, _ = self._index_buffer(self.entries.result, what, level)
        indices = self.buffers[source].indices
        far = self.position in indices
        return Load(value, dtype, source, indices), Store(target, indices, value, streaming=far)

    def _outer(self) -> Pass:
        """Return the pass that copies the coordinates of slabs and the ends of their lists."""
        last = len(self.entries.levels) - 1
        steps: list[Instruction] = [*self._copy(self.names.fresh("end"), "pos", last)]
        if not self.entries.in_rows:
            coordinate = self.coordinates[self.entries.above[-1]]
            steps = [*self._copy(coordinate, "crd", last - 1), *steps]
        return Pass((), tuple(steps))

    def _body(self, one: Pass) -> tuple[Instruction, ...]:
        """Return the instructions of a pass, coordinates before the loads at them."""
        last = self.entries.form.order[-1]
        load, store = self._copy(self.coordinates[last], "crd", len(self.entries.levels) - 1)
        steps: list[Instruction] = []
        for step in one.body:
            if isinstance(step, Load | Store):
                if step.buffer in self.of_entries:
                    step = replace(step, indices=self.buffers[step.buffer].indices)
                else:
                    step = replace(step, indices=self._read_at(step.indices))
                    if self.coordinates[last] in step.indices and load not in steps:
                        steps.append(load)
            steps.append(step)
            if isinstance(step, Store) and step.buffer == self.entries.result:
                if load not in steps:
                    steps.insert(0, load)
                steps.append(store)
        return tuple(steps)


def _takes_long(step: Instruction) -> bool:
    return isinstance(step, Compute) and not is_quick(step.operator)


def _names(graph: Dataflow) -> set[str]:
    """Return the names of buffers and values of a graph."""
    steps = (step for map in graph.maps for one in map.passes for step in one.body)
    values = {name for step in steps if (name := value_made(step)) is not None}
    return values | {buffer.name for buffer in graph.buffers}
