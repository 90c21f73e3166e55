"""What a kernel cannot do without: operations, and the bytes of each array, on given operands.

    y[i] = sum(j, A[i,j] * x[j]) with A in CSR, 1000 entries
    → 2000 operations; A's values and coordinates once, y once, the elements of x that are met

All of it is counted from below: where two sparse operands meet, nobody knows how often they do, and
no operation is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import Term, split_terms, sums_outside
from taco_py.compiler.cost.spread import Entries
from taco_py.data.storage.by_level.level_tree import is_usual
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import is_complex
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.tree import all_calls, has_reductions
from taco_py.language.problem import Problem
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.report.limits.window_unions import Unions

COMPLEX = 4
"""Operations on numbers that one on complex numbers takes, for its products."""


@dataclass(frozen=True, slots=True)
class Counted:
    """One access of a kernel to an array.

    indices    of the modes as they are stored, the outermost first
    extents    how many coordinates of each index are met, at least
    item       bytes of an element, or of an entry with its coordinate if something needs that
    reads_crd  whether something needs the coordinate of an entry: another operand or a dense result
               has its index
    entries    that are stored; 0 of a dense array
    rows       positions of each level, of a sparse operand; () where they are not known
    unit       whether neighbours along the last index lie side by side
    unions     which coordinates rows of a sparse operand have together, None where nobody knows
    """

    tensor: str
    indices: tuple[str, ...]
    extents: tuple[float, ...]
    item: int
    entries: float = 0.0
    rows: tuple[float, ...] = ()
    unit: bool = True
    sparse: bool = False
    reads_crd: bool = False
    unions: Unions | None = field(default=None, compare=False, repr=False)

    @property
    def bytes(self) -> float:
        """Return the bytes that are read or written, at least once."""
        return self.item * (self.entries if self.sparse else prod(self.extents))


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel does at least.

    sizes    of each index
    flops    operations on numbers
    arrays   that it reads and writes, by the name of their memory; one that is accessed twice is
             there twice
    walked   the sparse operand whose entries the loops run over, None where there is none, or
             several
    several  whether several sparse operands meet
    """

    problem: Problem
    sizes: Mapping[str, float]
    flops: float
    arrays: tuple[Counted, ...]
    walked: Counted | None
    several: bool

    @property
    def bytes(self) -> float:
        """Return the bytes that move at least: each array once."""
        most: dict[str, float] = {}
        for array in self.arrays:
            most[array.tensor] = max(most.get(array.tensor, 0.0), array.bytes)
        return sum(most.values())


def work_of_step(
    step: KernelStep, facts: Mapping[str, Operand], memory: Mapping[str, str] | None = None
) -> Work:
    """Return the least work of a kernel on operands with these facts, by the plan's names.

    memory  behind each of the kernel's operands, of `operand_memory`; None if each has its own
    """
    problem = step.problem
    operands = {name: facts[step.source(name)] for name, _ in problem.operands}
    sizes = {index: float(operands[name].shape[mode]) for index, name, mode in step.sizes}
    reads = tuple(dict.fromkeys(accesses(problem.assignment.value)))
    sparse = [access for access in reads if not is_full(problem.type_of(access.tensor).format)]
    several = len(sparse) > 1
    walked = None if several or not sparse else _walked(problem, sparse[0], reads, operands)
    extents = _least_extents(sparse, walked, sizes, operands)
    sparse_indices = frozenset(index for access in sparse for index in access.indices)
    dense = (access for access in reads if access not in sparse)
    arrays = [_counted(problem, access, extents, sparse_indices) for access in dense]
    target = problem.assignment.target
    if is_full(problem.result.format):
        arrays.append(_counted(problem, target, extents, sparse_indices))
    if walked is not None:
        arrays.append(walked)
    flops = 0.0 if several else _flops(problem, sizes, walked)
    return Work(problem, sizes, flops, _in_memory(arrays, memory or {}), walked, several)


def _in_memory(arrays: Sequence[Counted], memory: Mapping[str, str]) -> tuple[Counted, ...]:
    """Return the arrays by the names of their memory, without dense ones of no certain extent."""
    renamed = (replace(array, tensor=memory.get(array.tensor, array.tensor)) for array in arrays)
    return tuple(array for array in renamed if array.tensor or array.sparse)


def _walked(
    problem: Problem, access: Access, every: Sequence[Access], operands: Mapping[str, Operand]
) -> Counted:
    """Return the entries of the only sparse operand."""
    type, operand = problem.type_of(access.tensor), operands[access.tensor]
    indices = problem.stored(access)
    reads_crd = _needs_coordinates(problem, access, every)
    item = np.dtype(type.element).itemsize + reads_crd * np.dtype(type.index_dtype).itemsize
    entries = float(operand.nnz)
    rows = _rows(operand)
    extents = tuple(float(operand.shape[access.indices.index(index)]) for index in indices)
    unions = None
    if operand.entries is not None and is_usual(operand.type.format):
        unions = Unions(operand.entries)
    name = access.tensor
    return Counted(name, indices, extents, item, entries, rows, True, True, reads_crd, unions)


def _needs_coordinates(problem: Problem, access: Access, every: Sequence[Access]) -> bool:
    """Tell whether loops over entries have to read the last level's coordinates: a dense operand or
    result has the index, and the level lists them.

    y[i] = A[i,j]  no        y[j] = A[i,j]  yes        y[i] = A[i,j] * x[j]  yes
    """
    form = problem.type_of(access.tensor).format
    if form.levels[-1].full or not is_usual(form):
        return False
    last = problem.stored(access)[-1]
    target = problem.assignment.target
    dense = [other for other in every if other != access]
    dense += [target] * is_full(problem.result.format)
    return any(last in other.indices for other in dense)


def _rows(operand: Operand) -> tuple[float, ...]:
    """Return the positions of each level; of those that nobody has counted, what sizes and entries
    say."""
    form, shape = operand.type.format, operand.shape
    sizes = [float(shape[mode]) for mode in form.mode_order]
    if operand.entries is not None:
        return tuple(_counts(operand.entries, sizes))
    kinds = [level.full for level in form.levels]
    if kinds[:-1] == [True] * (len(kinds) - 1):  # rows of which each is there, then a list
        return (*(prod(sizes[: at + 1]) for at in range(len(sizes) - 1)), float(operand.nnz))
    return ()


def _counts(entries: Entries, sizes: Sequence[float]) -> Iterator[float]:
    """Yield the positions of each level of data that are there."""
    count = 1.0
    last = len(sizes) - 1
    for at, (size, level) in enumerate(zip(sizes, entries.data.levels, strict=True)):
        if at == last:
            yield float(entries.data.nnz)
            return
        count = count * size if level.crd is None else float(level.crd.size)
        yield count


def _least_extents(
    sparse: Sequence[Access],
    walked: Counted | None,
    sizes: Mapping[str, float],
    operands: Mapping[str, Operand],
) -> dict[str, float]:
    """Count how many coordinates of each index are met, at least.

    All of an index that no sparse operand has; of its others those that store something, or as many
    as a row has on average. A row that may be empty is not met, be it that a dense level has it.
    """
    extents = dict(sizes)
    for access in sparse:
        for index in access.indices:
            extents[index] = min(1.0, operands[access.tensor].nnz)
    if walked is None:
        return extents
    (access,) = sparse
    entries = operands[access.tensor].entries
    levels = operands[access.tensor].type.format.levels
    above = 1.0
    for at, (index, level) in enumerate(zip(walked.indices, levels, strict=True)):
        rows = walked.rows[at] if at < len(walked.rows) else 0.0
        if not level.full or all(inner_level.full for inner_level in levels[at:]):
            extents[index] = max(extents[index], min(sizes[index], rows / above if above else 0.0))
        above = rows
        mode = access.indices.index(index)
        if entries is not None and entries.has_counts(mode) and entries.exact(mode):
            extents[index] = max(extents[index], entries.spread(mode).distinct)
    return extents


def _counted(
    problem: Problem, access: Access, extents: Mapping[str, float], sparse_indices: frozenset[str]
) -> Counted:
    """Return a dense array; of several indices of a sparse operand no more is certain than of one.

    A[i,j] * D[i,j] with A diagonal   →   n elements of D, though all i and all j are met
    """
    shared = sorted(sparse_indices.intersection(access.indices), key=lambda index: -extents[index])
    least = min(1.0, extents[shared[0]] if shared else 1.0)
    extents = {**extents, **dict.fromkeys(shared[1:], least)}
    type, indices = problem.type_of(access.tensor), problem.stored(access)
    size = np.dtype(type.element).itemsize
    unit = type.unit_stride
    return Counted(access.tensor, indices, tuple(extents[i] for i in indices), size, unit=unit)


def _flops(problem: Problem, sizes: Mapping[str, float], walked: Counted | None) -> float:
    """Return operations of all terms, at least."""
    per_operation = COMPLEX if is_complex(problem.result.dtype) else 1
    terms = split_terms(sums_outside(problem.assignment).value)
    return per_operation * sum(_of_term(term, sizes, walked) for term in terms)


def _of_term(term: Term, sizes: Mapping[str, float], walked: Counted | None) -> float:
    """Return a product and its sum for each point of the two factors that meet in most points; of
    other terms an operation for each point of what is largest.

    sum(k, sum(l, T[i,k,l] * C[k,r] * D[l,r]))   →   2 · entries of T · size of r
    """
    if has_reductions(term.body):
        return 0.0
    reads = tuple(dict.fromkeys(accesses(term.body)))
    calls = [*all_calls(term.body)]
    if not reads or not calls:
        points = max((_points(access.indices, sizes, walked) for access in reads), default=0.0)
        return points * bool(term.reduced)
    pairs = [(*a.indices, *b.indices) for n, a in enumerate(reads) for b in reads[n + 1 :]]
    pairs = pairs or [access.indices for access in reads]
    if walked is not None and not _restricts(term.body, walked):
        return 0.0
    points = max(_points(indices, sizes, walked) for indices in pairs)
    return points * (2.0 if term.reduced and _is_product(term.body) else 1.0)


def _restricts(body: Expr, walked: Counted) -> bool:
    """Tell whether the only sparse operand is a factor of a product, so that only entries count."""
    return _is_product(body) and any(a.tensor == walked.tensor for a in accesses(body))


def _is_product(body: Expr) -> bool:
    calls = [*all_calls(body)]
    return bool(calls) and all(call.operator.distributes for call in calls)


def _points(indices: Sequence[str], sizes: Mapping[str, float], walked: Counted | None) -> float:
    """Return the points over indices, where indices of the sparse operand have its entries."""
    all_indices = set(indices)
    if walked is None:
        return prod(sizes[index] for index in all_indices)
    free = prod(sizes[index] for index in all_indices.difference(walked.indices))
    return free * (walked.entries if all_indices.issuperset(walked.indices) else 1.0)
