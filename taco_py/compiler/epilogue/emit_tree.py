"""Visitor trees → loop IR over a tile of the product: accumulators → values → stores and sums.

    for r in rows of the tile:
      d = d_vals[row + r]; s_sum = 0
      for c in columns of the tile:                     in lanes
        p = tile[r * pitch + c]; b = b_vals[column + c]
        h = max(p + b, 0) / d
        H_vals[...] = h; s_sum += h; t_parts[block * columns + column + c] += h
      s_vals[row + r] += s_sum

Sums over rows are partial sums, one for each block of rows. Blocks do not depend on the number of
threads, and partial sums are added in order: a sum has the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, assert_never

import numpy as np

from codegen.build import add, block, const, load, mul, zero
from codegen.ir import Array, Assign, Block, Declare, Expr, For, Prefetch, Stmt, Store, Var
from codegen.records import dataclass
from codegen.types import ScalarType, scalar
from taco_py.compiler.epilogue.visitors import (
    AccumulatorFetch,
    AuxLoad,
    AuxStore,
    ColumnBroadcast,
    ColumnReduction,
    Compute,
    Leaf,
    Outputs,
    RowBroadcast,
    RowReduction,
    ScalarBroadcast,
    ScalarReduction,
    Slot,
    Topological,
    Visitor,
    Writer,
)
from taco_py.compiler.lower.environment import EMPTY_SCOPE
from taco_py.compiler.lower.expressions import lower_value
from taco_py.compiler.lower.function_bodies import scalar_environment
from taco_py.language.notation import nodes
from taco_py.language.notation.dtypes import expression_dtype

if TYPE_CHECKING:
    from polyhedral.products.contraction_code import Data
    from polyhedral.products.visited.tile_visitor import Region

ROW, COLUMN = Var("tile_row"), Var("tile_column")
ONE = const(1)
LINE = 64  # bytes


@dataclass(frozen=True, slots=True)
class Emission:
    """A tree, and the arrays that its code reads and writes.

    tree     the visitors
    dtype    of the accumulators, by NumPy's name
    data     the array of each access that visitors read or write, with its strides by index
    parts    for each tensor that is summed over rows, the array of partial sums of blocks of rows
    rows, columns  the indices of the product
    """

    tree: Visitor
    dtype: str
    data: Mapping[nodes.Access, Data]
    parts: Mapping[str, Array]
    rows: str
    columns: str

    def visit(self, region: Region) -> Block:
        """Emit the loops over the elements of a tile."""
        return _Tile(self, region).loops()

    def foresee(self, region: Region) -> Block:
        """Emit prefetches of the lines of a tile's elements that visitors read and write.

        They are short pieces of the rows of matrices: too short for the hardware prefetcher.
        """
        prefetches = []
        for access, data in self.data.items():
            element = data.array.element
            if {*access.indices} == {self.rows, self.columns} and data.strides[self.columns] == ONE:
                place = place_of(access, data, self, region)
                of_row = Block((Prefetch(data.array, place),))
                lines = For(
                    COLUMN, const(0), region.columns, of_row, max(1, LINE // element.itemsize)
                )
                prefetches.append(For(ROW, const(0), region.rows, Block((lines,))))
        return Block(tuple(prefetches))


@dataclass(slots=True)
class _Tile:
    """The code of one tile while it is emitted.

    names    the variable of each element that is loaded, by its access; the accumulator's by None
    types    the dtype of each variable
    before, inside, after  the code before the loop over columns, inside and after it
    """

    emission: Emission
    region: Region
    names: dict[nodes.Access | None, str] = field(default_factory=dict)
    types: dict[str, np.dtype[np.generic]] = field(default_factory=dict)
    before: list[Stmt] = field(default_factory=list)
    inside: list[Stmt] = field(default_factory=list)
    after: list[Stmt] = field(default_factory=list)

    def loops(self) -> Block:
        """Return the loops over rows and columns."""
        self.value(self.emission.tree, ())
        columns = For(COLUMN, const(0), self.region.columns, Block(tuple(self.inside)))
        row = block(*self.before, columns, *self.after)
        return Block((For(ROW, const(0), self.region.rows, row),))

    # ------------------------------------------------------------ values

    def value(self, visitor: Visitor, slots: tuple[nodes.Expr, ...]) -> nodes.Expr:
        """Return the value of a visitor in terms of variables, and add its stores to the code."""
        match visitor:
            case Slot(number):
                return slots[number]
            case Compute(operator, args):
                return nodes.Call(operator, tuple(self.value(arg, slots) for arg in args))
            case Outputs(args):
                for arg in args:
                    self.value(arg, slots)
                return nodes.Literal(0)
            case Topological(steps):
                return self.steps(steps)
            case AuxStore() | RowReduction() | ColumnReduction() | ScalarReduction():
                return self.write_value(visitor, self.value(visitor.value, slots))
            case _:
                return self.leaf(visitor)

    def leaf(self, visitor: Leaf) -> nodes.Expr:
        """Return the value of a visitor that has none below it."""
        match visitor:
            case AccumulatorFetch():
                return self.accumulator()
            case AuxLoad(access) | RowBroadcast(access):
                return self.loaded(access, self.inside)
            case ColumnBroadcast(access):
                return self.loaded(access, self.before)
            case ScalarBroadcast(value):
                if isinstance(value, nodes.Literal):
                    return value
                return self.loaded(value, self.before)
            case _:
                assert_never(visitor)

    def steps(self, steps: tuple[Visitor, ...]) -> nodes.Expr:
        """Return the value of the last step; the steps before it get variables."""
        values: list[nodes.Expr] = []
        for step in steps[:-1]:
            values.append(self.as_variable(self.value(step, tuple(values))))
        return self.value(steps[-1], tuple(values))

    def as_variable(self, value: nodes.Expr) -> nodes.Expr:
        """Return a variable with the value, in the type of its computation."""
        if isinstance(value, nodes.Access | nodes.Literal):
            return value
        dtype = expression_dtype(value, self.types)
        return self.declared("value", self.lowered(value, scalar(dtype.name)), dtype, self.inside)

    def declared(
        self, word: str, value: Expr, dtype: np.dtype[np.generic], into: list[Stmt]
    ) -> nodes.Access:
        """Return a new variable, as an operand of later expressions."""
        name = f"{word}_{len(self.types)}"
        self.types[name] = dtype
        into.append(Declare(Var(name, scalar(dtype.name)), value, True))
        return nodes.Access(name, ())

    def lowered(self, value: nodes.Expr, type: ScalarType) -> Expr:
        """Return the value as an expression of loop IR."""
        return lower_value(scalar_environment(self.types), EMPTY_SCOPE, value, type)

    def accumulator(self) -> nodes.Access:
        """Return the element of the product."""
        if None not in self.names:
            region = self.region
            element = load(region.tile, add(mul(ROW, region.pitch), COLUMN))
            dtype = np.dtype(self.emission.dtype)
            self.names[None] = self.declared("product", element, dtype, self.inside).tensor
        return nodes.Access(self.names[None], ())

    def loaded(self, access: nodes.Access, into: list[Stmt]) -> nodes.Access:
        """Return the element of an array, which is read once."""
        if access not in self.names:
            data = self.emission.data[access]
            element, dtype = load(data.array, self.place(access)), np.dtype(data.array.element.name)
            self.names[access] = self.declared("read", element, dtype, into).tensor
        return nodes.Access(self.names[access], ())

    def place(self, access: nodes.Access) -> Expr:
        """Return the position of the element of an array."""
        return place_of(access, self.emission.data[access], self.emission, self.region)

    # ------------------------------------------------------------ stores

    def write_value(self, writer: Writer, value: nodes.Expr) -> nodes.Expr:
        """Return the value, and add its store or its sum to the code."""
        array = self.emission.data[writer.target].array
        value = self.as_variable(value)
        lowered = self.lowered(value, array.element)
        match writer:
            case AuxStore(target):
                self.inside.append(Store(array, self.place(target), lowered))
            case RowReduction(target):
                part, region = self.emission.parts[target.tensor], self.region
                place = add(mul(region.block, region.width), region.column, COLUMN)
                self.inside.append(Store(part, place, lowered, "+"))
            case ColumnReduction(target):
                self.summed(array, self.place(target), lowered)
            case ScalarReduction(target):
                self.summed(self.emission.parts[target.tensor], self.region.block, lowered)
        return value

    def summed(self, array: Array, place: Expr, value: Expr) -> None:
        """Sum a value along the row of the tile, and add that to an element."""
        total = Var(f"total_{len(self.before)}_{len(self.inside)}", array.element)
        self.before.append(Declare(total, zero(array.element)))
        self.inside.append(Assign(total, value, "+"))
        self.after.append(Store(array, place, total, "+"))


def place_of(access: nodes.Access, data: Data, emission: Emission, region: Region) -> Expr:
    """Return the position of the element that a visitor reads or writes for the tile's element."""
    at = {emission.rows: add(region.row, ROW), emission.columns: add(region.column, COLUMN)}
    return add(*(mul(at[index], data.strides[index]) for index in access.indices))
