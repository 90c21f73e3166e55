"""Sizes, names and positions of elements that kernels of one function have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codegen.build import add, const, div, mod, mul
from codegen.ir import Array, Declare, Expr, Stmt, Var
from codegen.records import dataclass
from taco_py.compiler.dataflow.slab_units import UnitGraph
from taco_py.compiler.ways.arrays import Arguments
from taco_py.language.problem import Problem

At = dict[str, Expr]
"""The value of each index."""


@dataclass(frozen=True, slots=True)
class Places:
    """The arrays of a problem, by the modes of its graph."""

    of: UnitGraph
    problem: Problem
    arguments: Arguments

    def name(self, word: str) -> str:
        """Return a new name."""
        return self.arguments.names.fresh(word)

    def variable(self, word: str) -> Var:
        """Return a new variable, an integer of 64 bits."""
        return Var(self.name(word))

    def size(self, index: str) -> Expr:
        """Return the size of an index."""
        (name, *_) = self.of.form.names[index]
        return self.arguments.sizes[name]

    def count(self, indices: Sequence[str]) -> Expr:
        """Return how many values some indices have together."""
        return mul(const(1), *map(self.size, indices))

    def array(self, buffer: str) -> Array:
        """Return the array of a buffer in main memory."""
        return self.arguments.tensors[buffer].array

    def dtype(self, buffer: str) -> str:
        """Return the dtype of a buffer's values."""
        return self.of.graph.buffer(buffer).dtype

    def place(self, buffer: str, indices: tuple[str, ...], at: Mapping[str, Expr]) -> Expr:
        """Return the position of an element in the array of a buffer."""
        strides = self.arguments.tensors[buffer].strides
        stored = self.problem.type_of(buffer).format.stored(indices)
        return add(const(0), *(mul(at[i], s) for i, s in zip(stored, strides, strict=True)))

    def row_major(self, indices: Sequence[str], at: Mapping[str, Expr]) -> Expr:
        """Return the position of an element in a row of all values of indices, the last fastest."""
        place: Expr = const(0)
        for index in indices:
            place = add(mul(place, self.size(index)), at[index])
        return place

    def declare_indices(self, number: Expr, indices: Sequence[str], at: At) -> Iterator[Stmt]:
        """Yield the declarations of the indices at a position of such a row; add them to `at`."""
        for place in reversed(range(len(indices))):
            index = indices[place]
            variable, size = self.variable(index), self.size(index)
            yield Declare(variable, number if place == 0 else mod(number, size), True)
            at[index] = variable
            number = div(number, size)
