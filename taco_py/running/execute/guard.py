"""What a computation needs at least, before it begins: what cannot fit is refused at once.

    y[i] = A[i,j] * x[j], y dense        8 · i bytes
    C[i,j] = a[i] * b[j], C in DCSR      12 · nnz(a) · nnz(b) bytes
    C[i,j] = A[i,j] + B[i,j], C in CSR   4 · (i + 1) + 12 · max(nnz(A), nnz(B)) bytes
    C[i,j] = A[i,k] * B[k,j], C in CSR   4 · (i + 1) + 12 · max(k, nnz(A[:,k]) · nnz(B[k,:])) bytes
    C[i,j] = A[i,j] * B[i,j], C in CSR   4 · (i + 1) bytes: their entries need not meet

Of a sparse result this is a lower bound.
What its kernel needs beyond it is found while arrays grow (`taco_room` of taco_runtime.h).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice, product
from math import prod

import numpy as np

from codegen.records import dataclass
from codegen.runtime.memory.free_memory import TRUSTED, UNKNOWN, ShortageError
from codegen.toolchain.errors import ToolchainError
from taco_py.data.interop.in_order import satisfies
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.pack import expand
from taco_py.data.storage.room import stored_bytes
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import OutOfMemoryError
from taco_py.language.diagnostics.memory_errors import Part, out_of_memory, over_limit
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.tree import is_additive
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.ir.nodes import KernelStep, Step, has_format
from taco_py.planner.ir.plan import Plan

MOST_PRODUCTS = 16
"""Products of terms that are looked at, of a product of sums."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A number of entries: those of the sparse `operand`, each `sizes` of which may become one; or
    where there is no operand, the product of the `sizes` of indices."""

    operand: str
    sizes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Meeting:
    """A number of entries: those of two sparse operands that meet where they agree in `index`.

    modes      of the two that the index is
    is_output  whether the result has it too; else entries for different ones may be the same
    """

    one: Factor
    other: Factor
    index: str
    modes: tuple[int, int]
    is_output: bool


Term = tuple[Factor | Meeting, ...]
"""A product of numbers of entries."""


def least_terms(problem: Problem) -> tuple[Term, ...]:
    """Return each of which the number of a sparse result's entries is at least."""
    return tuple(_terms(problem.assignment.value, problem))


def _terms(value: Expr, problem: Problem) -> list[Term]:
    if isinstance(value, Reduce):
        return _terms(value.body, problem)
    if is_additive(value):
        return [term for arg in value.args for term in _terms(arg, problem)]
    products = (_product(factors, problem) for factors in _products(value, problem))
    return [term for term in products if term is not None]


def _products(value: Expr, problem: Problem) -> list[tuple[Access, ...]]:
    """Return the tensors of some products, each of which has entries only where `value` has some.

    (a[i] + 2) * y[j]   →   a * y,  y
    """
    if isinstance(value, Access):
        return [(value,)]
    if isinstance(value, Literal):
        return [()] if value.value != 0 else []
    if not isinstance(value, Call):
        return []
    if value.operator.additive:
        return [p for arg in value.args for p in _products(arg, problem)][:MOST_PRODUCTS]
    if value.operator.annihilators[0] != 0:
        return []
    factors: list[list[tuple[Access, ...]]] = []
    for arg, annihilator in zip(value.args, value.operator.annihilators, strict=False):
        if annihilator != 0 and not _is_dense(arg, problem):
            return []  # as a / b, which has entries where b has none
        factors.append(_products(arg, problem) if annihilator == 0 else [accesses(arg)])
    return [(*chain.from_iterable(p),) for p in islice(product(*factors), MOST_PRODUCTS)]


def _is_dense(value: Expr, problem: Problem) -> bool:
    return all(problem.type_of(access.tensor).format.is_dense for access in accesses(value))


def _product(factors: tuple[Access, ...], problem: Problem) -> Term | None:
    """Return the entries of a product of tensors, where at most two sparse ones share an index,
    one."""
    target = problem.assignment.target.indices
    sparse = [access for access in factors if not problem.type_of(access.tensor).format.is_dense]
    uses = Counter(index for access in sparse for index in access.indices)
    shared = [index for index, count in uses.items() if count > 1]
    if len(shared) > 1 or max(uses.values(), default=1) > 2:
        return None
    term: list[Factor | Meeting] = []
    pair: list[Factor] = []
    for access in sparse:
        summed = [index for index in access.indices if index not in (*target, *shared)]
        meets = shared and shared[0] in access.indices
        (pair if meets else term).append(Factor(access.tensor, tuple(summed)))
    if shared:
        index = shared[0]
        one, other = (access.indices.index(index) for access in sparse if index in access.indices)
        term.append(Meeting(pair[0], pair[1], index, (one, other), index in target))
    rest = tuple(index for index in target if index not in uses)  # each coordinate is stored
    return (*term, *([Factor("", rest)] if rest else []))


def entry_bytes(type: TensorType) -> int:
    """Return bytes that each entry of a sparse result takes at least."""
    last = type.format.levels[-1]
    index = np.dtype(type.index_dtype).itemsize if "crd" in last.arrays else 0
    return int(np.dtype(type.dtype).itemsize) + index


def _position_bytes(type: TensorType, shape: tuple[int, ...]) -> int:
    """Return bytes of the first array of positions, whose length is known from the shape alone."""
    stored = tuple(type.format.stored(shape))
    first = next(n for n, level in enumerate(type.format.levels) if not level.full)
    return (prod(stored[:first]) + 1) * int(np.dtype(type.index_dtype).itemsize)


def check_sparse(
    step: KernelStep, operands: Mapping[str, TensorData], sizes: Mapping[str, int]
) -> None:
    """Raise ShortageError where the sparse result of a kernel cannot fit."""
    type = step.problem.result
    shape = tuple(sizes[i] for i in step.problem.assignment.target.indices)
    positions, per_entry = _position_bytes(type, shape), entry_bytes(type)
    KERNELS.pool.require(positions)
    for term in least_terms(step.problem):
        most = prod(_most(part, operands, sizes) for part in term)
        if positions + per_entry * min(most, prod(shape)) <= TRUSTED:
            continue
        size = positions + per_entry * prod(_count(part, operands, sizes) for part in term)
        try:
            KERNELS.pool.require(size)
        except ShortageError:
            stored = [operands[name] for part in term for name in _operands(part)]
            if all(satisfies(data, False, True) for data in stored):  # else they count for less
                raise


def _operands(part: Factor | Meeting) -> tuple[str, ...]:
    """Return the sparse operands that are counted."""
    factors = (part,) if isinstance(part, Factor) else (part.one, part.other)
    return tuple(factor.operand for factor in factors if factor.operand)


def _most(
    part: Factor | Meeting, operands: Mapping[str, TensorData], sizes: Mapping[str, int]
) -> int:
    """Return a bound from above that costs nothing, for `_count`."""
    if isinstance(part, Factor):
        return _count(part, operands, sizes)
    return prod(operands[name].nnz for name in _operands(part))


def _count(
    part: Factor | Meeting, operands: Mapping[str, TensorData], sizes: Mapping[str, int]
) -> int:
    """Return the number of entries that a part of a term says."""
    if isinstance(part, Meeting):
        return _meetings(part, operands, sizes)
    volume = prod(sizes[index] for index in part.sizes)
    return -(-operands[part.operand].nnz // max(1, volume)) if part.operand else volume


def _meetings(part: Meeting, operands: Mapping[str, TensorData], sizes: Mapping[str, int]) -> int:
    """Count how many pairs of entries agree in an index: of all its coordinates, or of the
    fullest."""
    size = sizes[part.index]
    if size > sum(operands[name].nnz for name in _operands(part)):
        return 0  # where nearly all are empty, nobody counts
    pairs = np.ones(size)
    for factor, mode in zip((part.one, part.other), part.modes, strict=True):
        data = operands[factor.operand]
        coordinates = expand(data)[data.format.mode_order.index(mode)]
        entries = np.bincount(coordinates, minlength=size)
        pairs *= -(-entries // max(1, prod(sizes[index] for index in factor.sizes)))
    return int(pairs.sum() if part.is_output else pairs.max(initial=0))


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes of the dense tensor that `step` makes, and sizes of indices where it is a kernel."""

    size: int
    step: Step
    sizes: Mapping[str, int]


def check_plan(plan: Plan, tensors: Mapping[str, TensorData], out: bool) -> None:
    """Raise OutOfMemoryError where the dense tensors that a plan makes cannot fit.

    out  whether the last one is the user's
    """
    needs = list(_needs(plan, tensors))
    if out and needs and needs[-1].step is plan.steps[-1]:
        del needs[-1]
    total = sum(need.size for need in needs)
    if (
        not TRUSTED < total <= UNKNOWN or KERNELS.memory.on
    ):  # more cannot be addressed, which others say
        return
    try:
        KERNELS.pool.require(total)
    except ToolchainError:  # found again, and said, where a kernel is compiled
        return
    except ShortageError as error:
        most = max(needs, key=lambda need: need.size)
        if isinstance(most.step, KernelStep):
            raise shortage(most.step, most.sizes, error) from error
        raise no_room(f"{most.step.target}, a dense copy", error) from error


def _needs(plan: Plan, tensors: Mapping[str, TensorData]) -> Iterator[Need]:
    """Yield the dense tensors that the plan makes, as far as shapes are known before it runs."""
    shapes = {name: data.shape for name, data in tensors.items()}
    sizes: dict[str, int] = {}
    for step in plan.steps:
        if isinstance(step, KernelStep):
            if not all(step.source(name) in shapes for _, name, _ in step.sizes):
                continue
            sizes = {index: shapes[step.source(name)][mode] for index, name, mode in step.sizes}
            shape = tuple(sizes[i] for i in step.problem.assignment.target.indices)
            form, dtype = step.problem.result.format, step.problem.result.dtype
        elif has_format(step) and step.source in shapes:
            shape, form = shapes[step.source], step.format
            dtype = tensors[step.source].dtype.name if step.source in tensors else "bool"
        else:
            continue
        shapes[step.target] = shape
        if form.is_dense:
            yield Need(prod(shape) * np.dtype(dtype).itemsize, step, sizes)


def with_room(make: Callable[[], TensorData], may_retry: bool) -> TensorData:
    """Make a result; if memory is short and `may_retry`, empty the memory pool and retry."""
    try:
        return make()
    except MemoryError:
        if not may_retry or not KERNELS.pool.clear():
            raise
    return make()


def shortage(step: KernelStep, sizes: Mapping[str, int], error: MemoryError) -> OutOfMemoryError:
    """Make the error of a kernel whose result or workspaces find no room."""
    target, form = step.problem.assignment.target, step.problem.result.format
    parts = [f"the workspace {name}" for name in step.schedule.workspaces]
    remedies = ["fewer rows at a time", "or a smaller dtype need less"]
    if target.indices:
        shape = ", ".join(f"{i}={sizes[i]}" for i in target.indices)
        parts.insert(0, f"{step.target} in the format {form} with {shape}")
        if form.is_dense:
            remedies.insert(0, "a sparse result by format=")
    what = " and ".join(parts or [f"what {step.target} is computed with"])
    limited = KERNELS.memory.on and KERNELS.memory.limit is not None
    if not isinstance(error, ShortageError) and target.indices and not limited:
        itemsize = np.dtype(step.problem.result.dtype).itemsize
        least = stored_bytes(tuple(sizes[i] for i in target.indices), 1, form, itemsize)
        free = KERNELS.pool.free()
        error = ShortageError(least, free) if least > free else error
    return no_room(what, error, ", ".join(remedies))


def no_room(what: str, error: MemoryError, hint: str | None = None) -> OutOfMemoryError:
    """Return the out-of-memory error of an allocation, with its bytes where they are known."""
    if isinstance(error, ShortageError) and error.limited:
        return over_limit([Part(what, error.wanted)], error.free, hint)
    if KERNELS.memory.on and (limit := KERNELS.memory.limit) is not None:
        return over_limit([Part(what, 0)], limit, hint)
    requested = error.wanted if isinstance(error, ShortageError) else None
    free = error.free if isinstance(error, ShortageError) else KERNELS.pool.free()
    return out_of_memory(what, requested, free if free < UNKNOWN else None, hint)
