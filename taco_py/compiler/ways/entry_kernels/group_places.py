"""Variables and places of elements that the loops of a kernel over entries have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from codegen import build
from codegen.build import add, const, div, load_index, mod, mul, sub
from codegen.ir import Array, Expr, Storage, Var
from codegen.records import dataclass
from codegen.types import BOOL, INT64, scalar
from taco_py.compiler.dataflow.entry_form import EntryForm
from taco_py.compiler.dataflow.entry_graph import EntryGraph
from taco_py.compiler.dataflow.nodes import Pass
from taco_py.compiler.ways.entry_kernels.entry_arrays import EntryArrays
from taco_py.compiler.ways.slab_kernels.emit_values import Values

GROUP_ENTRIES = 2048
"""Entries, and rows, of a group at most: values of a few near buffers stay in the first cache."""


@dataclass(frozen=True, slots=True)
class GroupVariables:
    """The variables of a group of rows.

    past              whether results are written past the caches
    first, stop       the rows of a group
    begin, end        its entries
    chunk, chunk_end  the entries of a chunk of a group
    row, entry        those at hand
    """

    past: Var
    first: Var
    stop: Var
    begin: Var
    end: Var
    chunk: Var
    chunk_end: Var
    row: Var
    entry: Var

    @property
    def lane(self) -> Expr:
        """Return the number of the entry in its chunk."""
        return sub(self.entry, self.chunk)

    @property
    def row_place(self) -> Expr:
        """Return the number of the row in its group."""
        return sub(self.row, self.first)


@dataclass(frozen=True, slots=True)
class EntryPlaces:
    """The arrays of a graph of entries, and the places of its elements.

    near  the array of each near buffer, with an element for each entry of a group
    """

    entries: EntryForm
    graph: EntryGraph
    arrays: EntryArrays
    values: Values
    group: GroupVariables
    near: dict[str, Array] = field(default_factory=dict)

    @staticmethod
    def of(entries: EntryForm, graph: EntryGraph, arrays: EntryArrays) -> EntryPlaces:
        """Return the places of a graph, with names for the variables of a group."""
        names = arrays.names
        words = ("first", "stop", "begin", "end", "chunk", "chunk_end", "row", "entry")
        past = Var(names.fresh("past"), BOOL)
        group = GroupVariables(past, *(Var(names.fresh(word)) for word in words))
        return EntryPlaces(entries, graph, arrays, Values(names), group)

    @property
    def passes(self) -> tuple[Pass, ...]:
        """Return the passes of the graph's one map."""
        return self.graph.graph.maps[0].passes

    def variable(self, word: str) -> Var:
        """Return a new variable, an integer of 64 bits."""
        return Var(self.arrays.names.fresh(word))

    def local(self, word: str, dtype: str) -> Array:
        """Return a new local array."""
        return Array(self.arrays.names.fresh(word), scalar(dtype), Storage.LOCAL)

    @property
    def last(self) -> int:
        """Return the last level."""
        return len(self.entries.levels) - 1

    def source(self, what: str, level: int) -> Array:
        """Return an index array of the operand."""
        return self.arrays.index[self.entries.source.tensor, what, level]

    def target_of(self, what: str, level: int) -> Array:
        """Return an index array of the result."""
        return self.arrays.index[self.entries.result, what, level]

    def edge(self, row: Expr) -> Expr:
        """Return the position where the entries of a row begin."""
        return load_index(self.source("pos", self.last), row)

    def array(self, buffer: str) -> Array:
        """Return the array of a buffer."""
        if buffer in self.near:
            return self.near[buffer]
        if buffer in self.graph.arrays:
            place = self.graph.arrays[buffer]
            return self.arrays.index[place.tensor, place.what, place.level]
        values, dense = self.arrays.values.get(buffer), self.arrays.dense.get(buffer)
        if values is not None:
            return values
        assert dense is not None
        return dense.array

    def place(self, buffer: str, indices: Sequence[str]) -> Expr:
        """Return the position of an element in the array of a buffer."""
        if buffer in self.near:
            return sub(self.group.entry, self.group.begin)
        if self.graph.position in indices:
            return self.group.entry
        if buffer in self.graph.arrays:
            return (
                add(self.group.row, 1)
                if self.graph.arrays[buffer].what == "pos"
                else self.group.row
            )
        stored = self.entries.problem.type_of(buffer).format.stored(tuple(indices))
        steps = zip(stored, self.arrays.dense[buffer].strides, strict=True)
        return add(const(0), *(mul(self.coordinate(index), step) for index, step in steps))

    def coordinate(self, index: str) -> Expr:
        """Return the coordinate that an index is: a value, or one of the row's."""
        if not self.entries.in_rows or index not in self.entries.above:
            return build.cast(INT64, self.values.of(index, self.values.type_of(index)))
        below: Expr = const(1)
        for other in reversed(self.entries.above):
            if other == index:
                break
            below = mul(below, self.arrays.sizes[other])
        number = div(self.group.row, below)
        return number if index == self.entries.above[0] else mod(number, self.arrays.sizes[index])
