"""A problem as values of slabs: which indices name the same mode, and which of them slabs have.

    P[i,j] = exp(X[i,j]) / sum(k, exp(X[i,k]))   →   k is j; a slab for each i, loops over j inside

Two indices are one where they stand in the same mode of a tensor. Slabs have the indices that no
sum inside of a value runs over; where there is no such sum, all but the innermost one, or blocks of
the only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.dataflow.nodes import SlabIndex
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, all_indices, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import COMPILER, POSITION, VALUE
from taco_py.language.notation.tree import all_calls, children, walk
from taco_py.language.problem import Problem, TensorType

COMBINED = ("+", "*", "min", "max", "&&", "||")
"""Operators of loop IR by which passes combine values."""

ROW_ELEMENTS = 4096
"""Elements of a slab of what has one index alone."""
BLOCKS = (64, 32, 16)
"""Neighbouring elements that a slab may have where it has the contiguous index, widest first."""


@dataclass(frozen=True, slots=True)
class SlabForm:
    """Values of a problem with one name for each mode.

    outputs  the assignments, the first output last
    slab     the indices of slabs, outermost first
    order    all indices, those of the largest tensor in the order in which it stores them
    names    the indices of the problem that each index stands for
    """

    outputs: tuple[Assignment, ...]
    slab: tuple[SlabIndex, ...]
    order: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]

    def loops(self, indices: Iterable[str]) -> tuple[str, ...]:
        """Return indices in the order of loops."""
        requested = {*indices}
        return tuple(index for index in self.order if index in requested)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Return the widths of blocks that differ from each other: one where there are none."""
        in_blocks = len(self.order) > 1 and any(index.block > 1 for index in self.slab)
        return BLOCKS if in_blocks else BLOCKS[:1]

    @property
    def single(self) -> frozenset[str]:
        """Return the indices of which a slab has one value."""
        return frozenset(index.name for index in self.slab if index.block == 1)


class NoSlabError(ValueError):
    """A problem that is no computation of slabs, with the reason."""


def slab_form(problem: Problem, block: int = BLOCKS[0], *, inner_sums: bool = False) -> SlabForm:
    """Return a problem as values of slabs. Raises NoSlabError with the reason where it is none.

    block       elements of a slab along the contiguous index, where slabs have it
    inner_sums  whether a slab has all terms of what it sums, so that sums of columns have columns
                as slabs; else only sums inside of values decide
    """
    assignments = (*(side.assignment for side in problem.side), problem.assignment)
    _check_types(problem)
    names = _modes(problem, assignments)
    outputs = tuple(_renamed_assignment(assignment, names) for assignment in assignments)
    dtypes = {name: np.dtype(type.dtype) for name, type in problem.operands}
    for output in outputs:
        _check_operators(output.value)
        if (
            expression_dtype(output.value, dtypes).name
            != problem.type_of(output.target.tensor).dtype
        ):
            raise NoSlabError(f"{output.target.tensor} has another type than its value")
    order = _order(problem, outputs)
    _check_rows(problem, outputs, order)
    slab = _slab(outputs, order, block, inner_sums)
    _check_maps(outputs, {index.name for index in slab})
    return SlabForm(outputs, slab, order, _aliases(problem, names))


def _aliases(problem: Problem, names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the indices of each mode: first those of the assignment, whose sizes kernels know."""
    first_indices = {*all_indices(problem.assignment)}
    aliases: dict[str, list[str]] = {}
    for old, new in sorted(names.items(), key=lambda pair: pair[0] not in first_indices):
        aliases.setdefault(new, []).append(old)
    for mode, (first, *_) in aliases.items():
        if first not in first_indices:
            target = problem.assignment.target.tensor
            raise NoSlabError(f"{mode} is no mode of {target} nor of what it reads")
    return {mode: tuple(indices) for mode, indices in aliases.items()}


def _check_types(problem: Problem) -> None:
    types: list[tuple[str, TensorType]] = [*problem.operands]
    types.append((problem.assignment.target.tensor, problem.result))
    types += ((side.target.tensor, side.type) for side in problem.side)
    for name, type in types:
        if not is_full(type.format):
            raise NoSlabError(f"{name} is sparse")
        if np.dtype(type.dtype).kind not in "biuf":
            raise NoSlabError(f"{name} has elements of {type.dtype}")
    if problem.assignment.operator is not None:
        raise NoSlabError("it adds to its result")


# ---------------------------------------------------------------- one name for each mode


def _modes(problem: Problem, assignments: Iterable[Assignment]) -> dict[str, str]:
    """Return the name of the mode that each index stands for: its index in a target, else short."""
    names: dict[str, str] = {}
    of_mode: dict[tuple[str, int], str] = {}

    def root(index: str) -> str:
        while names.setdefault(index, index) != index:
            index = names[index]
        return index

    for assignment in assignments:
        for access in (assignment.target, *accesses(assignment.value)):
            for mode, index in enumerate(access.indices):
                first = of_mode.setdefault((access.tensor, mode), index)
                one, other = root(first), root(index)
                names[other] = one
    every = dict.fromkeys(index for one in assignments for index in all_indices(one))
    roots = {index: root(index) for index in every}
    targets = [index for one in assignments for index in one.target.indices]
    best: dict[str, str] = {}
    for index in (*targets, *sorted(every, key=len)):
        best.setdefault(roots[index], index)
    return {index: best[root_] for index, root_ in roots.items()}


def _renamed_assignment(assignment: Assignment, names: Mapping[str, str]) -> Assignment:
    target = _renamed_access(assignment.target, names)
    return Assignment(target, _renamed(assignment.value, names))


def _renamed_access(access: Access, names: Mapping[str, str]) -> Access:
    indices = tuple(names[index] for index in access.indices)
    if len({*indices}) < len(indices):
        raise NoSlabError(f"{access.tensor} is read at two indices of one mode")
    return Access(access.tensor, indices)


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return an expression with the modes' names. Raises NoSlabError where two indices of a mode
    are free in one part of it."""
    free = free_indices(expr)
    if len({names[index] for index in free}) < len(free):
        raise NoSlabError("two indices of one mode are free in one expression")
    match expr:
        case Access():
            return _renamed_access(expr, names)
        case Reduce(operator, index, body):
            if index not in names:
                raise NoSlabError(f"no tensor has {index}, which a sum runs over")
            return Reduce(operator, names[index], _renamed(body, names))
        case Call(operator, (arg,)) if operator == VALUE:
            return _renamed(arg, names)
        case Call(operator, args):
            return Call(operator, tuple(_renamed(arg, names) for arg in args))
        case Literal():
            return expr
    assert_never(expr)


def _check_operators(value: Expr) -> None:
    """Raise NoSlabError for operators of sparse storage, and reductions without identity."""
    for call in all_calls(value):
        if call.operator.name in COMPILER and call.operator != POSITION:
            raise NoSlabError(f"{call.operator.name} asks which elements are stored")
    for expr, _ in walk(value):
        if isinstance(expr, Reduce):
            if expr.operator.c_operator not in COMBINED:
                raise NoSlabError(f"its passes do not combine values by {expr.operator.name}")
            if expr.operator.identity_of(np.dtype("float64")) is None:
                raise NoSlabError(f"{expr.operator.name} has no identity")


# ---------------------------------------------------------------- slabs


def _order(problem: Problem, outputs: Iterable[Assignment]) -> tuple[str, ...]:
    """Return all indices in the order of loops: as the tensors with most modes store them."""
    stored: list[tuple[str, ...]] = []
    for output in outputs:
        for access in (output.target, *accesses(output.value)):
            stored.append(problem.type_of(access.tensor).format.stored(access.indices))
    order: list[str] = []
    for indices in sorted(stored, key=lambda indices: -len(indices)):
        order += (index for index in indices if index not in order)
    every = (index for output in outputs for index in all_indices(output))
    order += (index for index in dict.fromkeys(every) if index not in order)
    return tuple(order)


def _check_rows(problem: Problem, outputs: Iterable[Assignment], order: tuple[str, ...]) -> None:
    """Raise NoSlabError for a tensor that the loops would not run through as it is stored."""
    for output in outputs:
        for access in (output.target, *accesses(output.value)):
            type = problem.type_of(access.tensor)
            stored = type.format.stored(access.indices)
            if tuple(index for index in order if index in stored) != stored:
                raise NoSlabError(f"{access.tensor} is stored in another order")
            if not type.unit_stride:
                raise NoSlabError(f"the elements of {access.tensor} are apart from each other")


def _check_maps(outputs: Iterable[Assignment], slab: set[str]) -> None:
    """Raise NoSlabError for a value that lacks an index of slabs, and so a map of its own."""
    outputs = tuple(outputs)
    for output in outputs:
        chain, body = chain_of(output.value)
        loops = {*output.target.indices, *free_indices(body), *(sum_.index for sum_ in chain)}
        if not slab <= loops:
            raise NoSlabError(f"{output.target.tensor} is no value of slabs")
    for chain in inner_reductions(outputs):
        if not slab <= {*free_indices(chain[0])}:
            raise NoSlabError(f"a sum over {chain[0].index} is no value of slabs")


def inner_reductions(outputs: Iterable[Assignment]) -> Iterator[tuple[Reduce, ...]]:
    """Yield the reductions whose result values read: those inside of values, chains as one."""
    for output in outputs:
        _, body = chain_of(output.value)
        yield from _chains(body)


def _chains(expr: Expr) -> Iterator[tuple[Reduce, ...]]:
    chain, body = chain_of(expr)
    if chain:
        yield chain
        yield from _chains(body)
        return
    for child in children(expr):
        yield from _chains(child)


def chain_of(expr: Expr) -> tuple[tuple[Reduce, ...], Expr]:
    """Return the reductions by one operator around an expression, and the expression inside."""
    chain: list[Reduce] = []
    while isinstance(expr, Reduce) and (not chain or expr.operator == chain[0].operator):
        chain.append(expr)
        expr = expr.body
    return tuple(chain), expr


def _slab(
    outputs: tuple[Assignment, ...], order: tuple[str, ...], block: int, inner_sums: bool
) -> tuple[SlabIndex, ...]:
    """Return the indices of slabs. The innermost index is one in blocks."""
    inside = {sum_.index for chain in inner_reductions(outputs) for sum_ in chain}
    if inner_sums:
        inside |= {sum_.index for output in outputs for sum_ in chain_of(output.value)[0]}
    outer = [index for index in order if index not in inside]
    if len(order) == 1 and not inside:
        return (SlabIndex(order[0], ROW_ELEMENTS),)
    if not inside:
        outer = list(order[:-1])
    contiguous = order[-1] if order else ""
    if inside and contiguous in outer:
        return tuple(SlabIndex(index, block if index == contiguous else 1) for index in outer)
    return tuple(SlabIndex(index) for index in outer)
