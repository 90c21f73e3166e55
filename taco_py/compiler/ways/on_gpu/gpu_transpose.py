"""A dense tensor copied in another order of its modes, through tiles in shared memory of a GPU.

    C[k,j,i] = A[i,j,k]   →   make(cuda_transpose,32,32)

A block reads a tile of 32 i by 32 k along k, where A is contiguous, and writes it along i, where C
is: both touch whole sectors. Where one of the two is short, a tile has fewer of it and more of the
other. Rows that stay rows, but are shorter than sectors, are copied element by element of C:

    C[j,i,k] = A[i,j,k], few k   →   make(cuda_transpose)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from codegen.build import add, and_, block, const, div, load, lt, mod, mul
from codegen.ir import (
    Allocate,
    Array,
    Barrier,
    Block,
    Declare,
    Expr,
    For,
    If,
    LoopKind,
    Module,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.machine.target import Target
from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.arrays import Arguments, StridedTensor, arguments_of
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem

THREADS = 256
TILE_ELEMENTS = 1024
"""Elements of a tile: four for each thread, which are under way at a time."""
LONGEST_SIDE = 256
SIDE = 32
"""Elements of each side of a tile where both indices are long enough."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """A copy in another order: the indices as the result and the operand store them."""

    result: tuple[str, ...]
    operand: tuple[str, ...]

    @property
    def keeps_rows(self) -> bool:
        """Tell whether rows stay rows."""
        return self.result[-1] == self.operand[-1]

    @property
    def outer(self) -> tuple[str, ...]:
        """Return the indices that no tile runs through, as the result stores them."""
        ends = (self.result[-1], self.operand[-1])
        return tuple(index for index in self.result if index not in ends)


def reordered(problem: Problem) -> Reordered | None:
    """Return a problem as a copy of a dense tensor in another order; None of another problem."""
    source = problem.assignment.value
    if not isinstance(source, Access) or problem.side or problem.assignment.operator is not None:
        return None
    types = (problem.result, problem.type_of(source.tensor))
    if not all(is_full(type.format) and type.unit_stride and not type.stored for type in types):
        return None
    copy = Reordered(problem.stored(problem.assignment.target), problem.stored(source))
    distinct = len({*copy.result}) == len(copy.result) == len(copy.operand)
    same = {*copy.result} == {*copy.operand} and types[0].dtype == types[1].dtype
    return copy if distinct and same and copy.result != copy.operand else None


def _copy_of(question: Question) -> Reordered | None:
    return reordered(question.problem)


def can(question: Question) -> bool:
    """Tell whether a problem is planned for a GPU, and a copy in another order."""
    planned = question.statistics is not None and question.stats.machine.is_gpu
    return planned and question.recall(_copy_of) is not None


def choose(question: Question) -> Offer | None:
    """Return tiles for copies in another order; single elements where rows are short."""
    copy = question.recall(_copy_of) if can(question) else None
    if copy is None:
        return None
    sizes = question.stats.sizes
    if copy.keeps_rows:
        return Offer() if sizes[copy.result[-1]] < SIDE else None
    columns = min(SIDE, _power(sizes[copy.operand[-1]]))
    rows = min(SIDE, _power(sizes[copy.result[-1]]))
    if columns < SIDE:
        rows = min(LONGEST_SIDE, TILE_ELEMENTS // columns)
    elif rows < SIDE:
        columns = min(LONGEST_SIDE, TILE_ELEMENTS // rows)
    return Offer((rows, columns))


def _power(size: float) -> int:
    """Return the least power of 2 that is no less than a size."""
    return 1 << max(0, int(size) - 1).bit_length()


def priced(problem: Problem, _: Schedule, stats: Statistics) -> float | None:
    """Return the expected seconds of a copy, which reads and writes each element once."""
    gpu, itemsize = stats.machine.target.gpu, np.dtype(problem.result.dtype).itemsize
    count = prod(stats.sizes[index] for index in problem.assignment.target.indices)
    return 2 * count * itemsize / gpu.memory_bytes_per_second + gpu.launch_seconds


# ---------------------------------------------------------------- how they are made


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a copy in another order."""
    problem, make = recipe.problem, recipe.schedule.make
    copy, source = reordered(problem), problem.assignment.value
    if copy is None or not isinstance(source, Access):
        raise InternalError(f"Expected a copy in another order, found {problem}")
    arguments = arguments_of(problem, recipe.phase)
    result = arguments.tensors[problem.assignment.target.tensor]
    code = _Code(copy, arguments, result, arguments.tensors[source.tensor], arguments.names)
    if make.parameters:
        rows, columns = make.parameters
        text = f"tiles of {rows} {copy.result[-1]} by {columns} {copy.operand[-1]}"
        body = block(*code.in_tiles(rows, columns))
    else:
        text = "a thread for each element of the result"
        body = block(*code.by_elements())
    module = Module((replace(arguments.head, body=body),), recipe.header(text))
    return LoweredRecipe(module, arguments.bindings, dense_facts(recipe, text, text))


@dataclass(frozen=True, slots=True)
class _Code:
    """Writes the loops of one copy."""

    copy: Reordered
    arguments: Arguments
    result: StridedTensor
    operand: StridedTensor
    names: Names

    def _variable(self, word: str) -> Var:
        return Var(self.names.fresh(word))

    def _place(self, tensor: StridedTensor, indices: Sequence[str], at: dict[str, Expr]) -> Expr:
        return add(*(mul(at[i], s) for i, s in zip(indices, tensor.strides, strict=True)))

    def _decoded(self, number: Expr, indices: Sequence[str], at: dict[str, Expr]) -> Iterator[Stmt]:
        """Yield the declarations of indices of which a number counts the values; add them to
        `at`."""
        for place in reversed(range(len(indices))):
            index, size = indices[place], self.arguments.sizes[indices[place]]
            variable = self._variable(index)
            yield Declare(variable, number if place == 0 else mod(number, size), True)
            at[index] = variable
            number = div(number, size)

    def by_elements(self) -> Iterator[Stmt]:
        """Yield the loop of threads over the elements of the result."""
        at: dict[str, Expr] = {}
        element = self._variable("element")
        indices = [*self._decoded(element, self.copy.result, at)]
        value = load(self.operand.array, self._place(self.operand, self.copy.operand, at))
        store = Store(self.result.array, self._place(self.result, self.copy.result, at), value)
        total = mul(*(self.arguments.sizes[index] for index in self.copy.result))
        body = block(*indices, store)
        yield For(element, const(0), total, body, kind=LoopKind.PARALLEL)

    def in_tiles(self, rows: int, columns: int) -> Iterator[Stmt]:
        """Yield the loop of blocks over tiles.

        rows, columns  elements of the contiguous indices of the result and of the operand
        """
        copy, sizes = self.copy, self.arguments.sizes
        row, column = copy.result[-1], copy.operand[-1]
        number, t = self._variable("number"), self._variable("t")
        counts = [self._variable(f"tiles_{index}") for index in (row, column)]
        for count, index, side in zip(counts, (row, column), (rows, columns), strict=True):
            yield Declare(count, div(add(sizes[index], side - 1), side), True)
        begins = {index: self._variable(f"{index}_begin") for index in (row, column)}
        tile = div(number, counts[0])
        at: dict[str, Expr] = {}
        before: list[Stmt] = [
            Declare(begins[row], mul(mod(number, counts[0]), rows), True),
            Declare(begins[column], mul(mod(tile, counts[1]), columns), True),
            *self._decoded(div(tile, counts[1]), copy.outer, at),
        ]
        element = self.operand.array.element
        shared = Array(self.names.fresh("tile"), element, Storage.SHARED)
        pitch = columns + 1  # threads along a column of the tile meet all banks
        reads = self._steps(t, row, column, columns, rows * columns, begins, at, lambda places: [
            Store(
                shared,
                add(mul(places[row], pitch), places[column]),
                load(self.operand.array, self._place(self.operand, copy.operand, at)),
            )
        ])  # fmt: skip
        writes = self._steps(t, column, row, rows, rows * columns, begins, at, lambda places: [
            Store(
                self.result.array,
                self._place(self.result, copy.result, at),
                load(shared, add(mul(places[row], pitch), places[column])),
            )
        ])  # fmt: skip
        threads = For(
            t, const(0), const(THREADS), block(reads, Barrier(LoopKind.THREADS), writes),
            kind=LoopKind.THREADS, units=THREADS,
        )  # fmt: skip
        allocate = Allocate(shared, const(rows * pitch), align=16)
        total = mul(counts[0], counts[1], *(sizes[index] for index in copy.outer))
        body = block(*before, allocate, threads)
        yield For(number, const(0), total, body, kind=LoopKind.BLOCKS)

    def _steps(
        self, t: Var, slow: str, fast: str, width: int, elements: int,
        begins: dict[str, Var], at: dict[str, Expr], step: Callable[[dict[str, Expr]], list[Stmt]],
    ) -> Stmt:  # fmt: skip
        """Return the loop over the `elements` of a tile, `width` of an index by some of another."""
        k, place = self._variable("k"), self._variable("place")
        rounds = max(1, elements // THREADS)
        places: dict[str, Expr] = {fast: mod(place, width), slow: div(place, width)}
        code: list[Stmt] = [Declare(place, add(t, mul(k, THREADS)), True)]
        for index in (slow, fast):
            variable = self._variable(index)
            code.append(Declare(variable, add(begins[index], places[index]), True))
            at[index] = variable
        inside = and_(*(lt(at[index], self.arguments.sizes[index]) for index in (slow, fast)))
        body = Block((*code, If(inside, block(*step(places)))))
        return For(k, const(0), const(rounds), body, unroll=rounds)


WAY = Way("cuda_transpose", can, choose, lower, on_gpu=True, priced=priced)
