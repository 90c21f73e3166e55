"""What a plan takes at once, before it begins: results, workspaces, temporaries, converted copies.

    y[i] = A[i,j] * x[j], y dense         8 · i bytes
    C[i,j] = A[i,k] * B[k,j], C in CSR    from 4 · (i + 1) bytes to
                                          4 · (i + 1) + 12 · min(i · j, nnz(A) · nnz(B)),
                                          and 13 · j bytes of workspaces for each thread
    (A x) + (A y), T = A x a temporary    T until it is read for the last time

Of sparse tensors that are still to be made there are two numbers, the least and the most that they
take. Where the most is more than is allowed, their arrays are watched while they grow (`spare`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from codegen.passes.local_arrays import evaluated_size
from codegen.records import dataclass
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.storage.room import stored_most
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.memory_errors import Part
from taco_py.language.legal.absent import arg_fill, differing, fill_of
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.problem import Problem
from taco_py.planner.ir.nodes import (
    Cast,
    Fuse,
    KernelStep,
    Squeeze,
    Step,
    TakeSide,
    TakeSize,
    TakeValues,
    Unfuse,
    has_format,
)
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import reads
from taco_py.running.execute.step_shapes import shape_made
from taco_py.running.execute.work import Bound, bounds

VIEWS = Fuse | Unfuse | Squeeze
"""Steps whose result is in the memory of what they read."""
READY = VIEWS | TakeSide | TakeSize
"""Steps that make nothing: also those that take what a kernel has made already."""
MOST_PARTS = 4
"""Arrays that people are told of."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes of one array or tensor: at least and at most."""

    what: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Moment:
    """What there is while `step` is carried out; `result` is what it makes.

    live    what steps before have made and later ones read
    inside  workspaces and copies of the step's own
    """

    step: Step
    result: Amount
    live: tuple[Amount, ...]
    inside: tuple[Amount, ...]

    @property
    def amounts(self) -> tuple[Amount, ...]:
        """Return all of it, the largest first."""
        every = (self.result, *self.live, *self.inside)
        return tuple(sorted((a for a in every if a.most), key=lambda a: a.most, reverse=True))

    @property
    def least(self) -> int:
        """Return bytes that it takes at least."""
        return sum(a.least for a in self.amounts)

    @property
    def most(self) -> int:
        """Return bytes that it takes at most."""
        return sum(a.most for a in self.amounts)

    def parts(self, most: bool) -> list[Part]:
        """Return the largest amounts and the sum of the others, for people.

        most  whether the most that they may be
        """
        sizes = [
            (a.what, a.most if most else a.least, most and a.least < a.most) for a in self.amounts
        ]
        parts = [Part(*size) for size in sizes if size[1]]
        if len(parts) <= MOST_PARTS:
            return parts
        largest, rest = parts[: MOST_PARTS - 1], parts[MOST_PARTS - 1 :]
        size, up_to = sum(part.size for part in rest), any(part.up_to for part in rest)
        return [*largest, Part(f"{len(rest)} others", size, up_to)]

    def spare(self, limit: int) -> int:
        """Return bytes that are left for the result of the step."""
        return max(0, limit - sum(a.most for a in (*self.live, *self.inside)))


@dataclass(frozen=True, slots=True)
class Extent:
    """What is known of a tensor: its shape, and how many entries it has at least and at most."""

    shape: tuple[int, ...]
    least: int
    most: int
    itemsize: int


def moments(
    plan: Plan,
    tensors: Mapping[str, TensorData],
    kernels: Mapping[tuple[str, str], CompiledKernel],
    threads: int,
    out: bool,
) -> Iterator[Moment]:
    """Yield the tensors in memory at each step of a plan, as far as shapes are known.

    kernels  by target and phase, those that are compiled: what they take besides is known of them
    threads  the most that may run
    out      whether the last result is written to an array of the user's
    """
    extents = _extents(tensors)
    unread, live, memory = last_reads(plan), dict[str, Amount](), _Memory(owners_of(plan), set())
    for number, step in enumerate(plan.steps, 1):
        memory_of_step = _of_step(step, extents, kernels, threads, plan.machine)
        if memory_of_step is None:
            continue
        result, inside, extent = memory_of_step
        if out and number == len(plan.steps):
            result = replace(result, least=0, most=0)
        yield Moment(step, result, tuple(live.values()), inside)
        live[step.target], extents[step.target] = result, extent
        if isinstance(step, KernelStep):
            extents.update(_extents_besides(step, extents))
        for name in memory.freed(unread.get(number, ())):
            live.pop(name, None)


@dataclass(frozen=True, slots=True)
class _Memory:
    """Whose memory a plan's steps use, and what nobody reads any more.

    owners  of each view
    unread  tensors and views that were read for the last time
    """

    owners: dict[str, str]
    unread: set[str]

    def freed(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the tensors whose memory is free once these are read no more either."""
        self.unread.update(names)
        for owner in {self.owners.get(name, name) for name in names}:
            views = {view for view, candidate in self.owners.items() if candidate == owner}
            if owner in self.unread and views <= self.unread:
                yield from (owner, *views)


def moment_of(
    step: Step,
    tensors: Mapping[str, TensorData],
    live: tuple[Amount, ...],
    kernels: Mapping[tuple[str, str], CompiledKernel],
    threads: int,
    machine: Machine,
) -> Moment | None:
    """Return the tensors in memory at a step whose operands exist; None where they do not."""
    memory = _of_step(step, _extents(tensors), kernels, threads, machine)
    return None if memory is None else Moment(step, memory[0], live, memory[1])


def _extents(tensors: Mapping[str, TensorData]) -> dict[str, Extent]:
    return {
        name: Extent(data.shape, data.nnz, data.nnz, data.dtype.itemsize)
        for name, data in tensors.items()
    }


def owners_of(plan: Plan) -> dict[str, str]:
    """Return for each view of a plan the tensor that owns its memory."""
    owners: dict[str, str] = {}
    for step in plan.steps:
        if isinstance(step, VIEWS):
            owners[step.target] = owners.get(step.source, step.source)
    return owners


def last_reads(plan: Plan) -> dict[int, list[str]]:
    """Return the temporaries that no step reads any more, by the number of the last that does."""
    temporaries = {step.target for step in plan.steps} - {*plan.program.results}
    last = {
        name: number
        for number, step in enumerate(plan.steps, 1)
        for name in reads(step)
        if name in temporaries
    }
    by_number: dict[int, list[str]] = {}
    for name, number in last.items():
        by_number.setdefault(number, []).append(name)
    return by_number


StepMemory = tuple[Amount, tuple[Amount, ...], Extent]


def _of_step(
    step: Step,
    extents: Mapping[str, Extent],
    kernels: Mapping[tuple[str, str], CompiledKernel],
    threads: int,
    machine: Machine,
) -> StepMemory | None:
    """Return the bytes of a step's result and temporaries, and the facts of its target."""
    if isinstance(step, KernelStep):
        if any(step.source(name) not in extents for name, _ in step.problem.operands):
            return None
        return _of_kernel(step, extents, kernels.get((step.target, "evaluate")), threads, machine)
    if isinstance(step, TakeSide):
        return _of_side(step, extents)
    if step.source not in extents:
        return None
    source = extents[step.source]
    shapes = {name: operand.shape for name, operand in extents.items()}
    shape = shape_made(step, source.shape, source.most, shapes)
    if shape is None:
        return None
    if isinstance(step, VIEWS | TakeSize):
        return Amount(step.target, 0, 0), (), replace(source, shape=shape)
    if not has_format(step):
        size = source.most * source.itemsize if isinstance(step, TakeValues) else 0
        return Amount(f"the copy {step.target}", size, size), (), replace(source, shape=shape)
    itemsize = np.dtype(step.dtype).itemsize if isinstance(step, Cast) else source.itemsize
    index = np.dtype(getattr(step, "index_dtype", "int32")).itemsize
    extent = replace(source, itemsize=itemsize, shape=shape)
    size = stored_most(extent.shape, extent.most, step.format, itemsize, index)
    least = size if step.format.is_dense else 0
    result = Amount(f"{step.target}, a copy in the format {step.format}", least, size)
    columns = 0 if step.format.is_dense else 8 * len(extent.shape) * extent.most
    return result, (Amount("its coordinates", 0, columns),), extent


def _of_kernel(
    step: KernelStep,
    extents: Mapping[str, Extent],
    kernel: CompiledKernel | None,
    threads: int,
    machine: Machine,
) -> StepMemory:
    """Return the bytes of a kernel's results, and of its workspaces where it is compiled."""
    problem = step.problem
    operands = {name: extents[step.source(name)] for name, _ in problem.operands}
    sizes = {index: operands[name].shape[mode] for index, name, mode in step.sizes}
    shape = tuple(sizes[i] for i in problem.assignment.target.indices)
    type = problem.result
    itemsize, index = np.dtype(type.dtype).itemsize, np.dtype(type.index_dtype).itemsize
    several = threads > 1 and (kernel is None or kernel.threaded)
    several = several and _iterations(problem, operands, sizes) >= machine.units.parallel_iterations
    what = f"{step.target} in the format {type.format}" if type.format.order else step.target
    if type.format.is_dense:
        size = prod(shape) * itemsize
        result, extent = Amount(what, size, size), Extent(shape, prod(shape), prod(shape), itemsize)
    else:
        entries = most_entries(problem, operands, sizes)
        size = stored_most(shape, entries, type.format, itemsize, index)
        least = stored_most(shape, 0, type.format, itemsize, index)
        result = Amount(what, least, size * (2 if several else 1))  # threads copy their parts
        extent = Extent(shape, 0, entries, itemsize)
    used = threads if several else 1
    inside = () if kernel is None else _inside(kernel, operands, sizes, used)
    sides = (side.most * side.itemsize for side in _extents_besides(step, extents).values())
    return result, (*inside, *(Amount("a side result", size, size) for size in sides)), extent


def _extents_besides(step: KernelStep, extents: Mapping[str, Extent]) -> dict[str, Extent]:
    """Return the extents of a kernel's side results, by their names of `_besides`."""
    besides = {}
    for number, side in enumerate(step.problem.side):
        sizes = {index: extents[step.source(name)].shape[mode] for index, name, mode in step.sizes}
        shape = tuple(sizes[index] for index in side.target.indices)
        count, itemsize = prod(shape), np.dtype(side.type.dtype).itemsize
        besides[_besides(step.target, number)] = Extent(shape, count, count, itemsize)
    return besides


def _besides(target: str, number: int) -> str:
    """Return a name for a side result of `target`'s kernel that no tensor has."""
    return f"{target}/{number}"


def _of_side(step: TakeSide, extents: Mapping[str, Extent]) -> StepMemory | None:
    """Return the extents of a stored side result."""
    extent = extents.get(_besides(step.source, step.number))
    if extent is None:
        return None
    size = extent.most * extent.itemsize
    return Amount(step.target, size, size), (), extent


def _inside(
    kernel: CompiledKernel, operands: Mapping[str, Extent], sizes: Mapping[str, int], threads: int
) -> tuple[Amount, ...]:
    """Return the local arrays of a kernel, summed over all threads."""
    values = {"threads": threads}
    for parameter, source in kernel.parameters:
        if source is not None and source.what == "size":
            values[parameter.name] = sizes[source.index]
    amounts = []
    for name, per_thread, text in kernel.arrays:
        try:
            size = evaluated_size(text, values)
        except KeyError:  # of a size that the kernel computes
            continue
        size = max(0, size) * (threads if per_thread else 1)
        times = f" of {threads} threads" if per_thread and threads > 1 else ""
        amounts.append(Amount(f"the workspace {name}{times}", size, size))
    return tuple(amounts)


# ---------------------------------------------------------------- entries


def most_entries(problem: Problem, operands: Mapping[str, Extent], sizes: Mapping[str, int]) -> int:
    """Count how many entries a sparse result has at most.

    A[i,k] * B[k,j]   →   the least of nnz(A) · nnz(B), nnz(A) · j, i · j
    """
    target = problem.assignment.target.indices
    count = 0
    for term in split_terms(problem.assignment.value):
        factors = _factors(term.body, problem)
        cover = None if factors is None else _covered(factors, target, operands, sizes)
        restricted = _most(bounds(replaced(problem, term.body)), operands, sizes)
        where = _entries(term.body, problem, operands, sizes)
        count += min(limit for limit in (restricted, cover, where) if limit is not None)
    if all(level.unique for level in problem.result.format.levels):
        return min(count, prod(sizes[i] for i in target))
    return count


def _entries(
    value: Expr, problem: Problem, operands: Mapping[str, Extent], sizes: Mapping[str, int]
) -> int | None:
    """Count how many elements of a result differ from its fill value at most; None where that is
    unknown.

    kept(sum(k, Q[i,k] * K[j,k]), stored(M[i,j]))   →   nnz(M)
    """

    def fill(access: Access) -> int | None:
        return None if problem.type_of(access.tensor).format.is_dense else 0

    if isinstance(value, Literal):
        return 0
    if isinstance(value, Reduce):
        return _entries(value.body, problem, operands, sizes)
    if isinstance(value, Access):
        remaining = {*problem.assignment.target.indices} - {*value.indices}
        is_known = fill(value) is not None
        return operands[value.tensor].most * prod(sizes[i] for i in remaining) if is_known else None
    if fill_of(value, fill) is None:
        return None
    fills = [arg_fill(value.operator, arg, fill_of(arg, fill)) for arg in value.args]
    counts = []
    for group in differing(value.operator, fills):
        group_counts = [_entries(value.args[place], problem, operands, sizes) for place in group]
        known_counts = [count for count in group_counts if count is not None]
        if len(known_counts) == len(group_counts):
            counts.append(sum(known_counts))
    return min(counts, default=None)


def replaced(problem: Problem, value: Expr) -> Problem:
    """Return the problem of one term alone."""
    return replace(problem, assignment=replace(problem.assignment, value=value))


def _most(
    restrictions: tuple[Bound, ...], operands: Mapping[str, Extent], sizes: Mapping[str, int]
) -> int:
    counts = ((operands[b.tensor].most if b.tensor else 1, b.indices) for b in restrictions)
    return sum(count * prod(sizes[i] for i in indices) for count, indices in counts)


def _iterations(problem: Problem, operands: Mapping[str, Extent], sizes: Mapping[str, int]) -> int:
    """Count how many iterations its loops have at most."""
    return _most(bounds(problem), operands, sizes)


def _factors(value: Expr, problem: Problem) -> list[Access] | None:
    """Return the sparse factors of a product; None for anything else."""
    if isinstance(value, Reduce):
        return _factors(value.body, problem)
    if isinstance(value, Access):
        return [] if problem.type_of(value.tensor).format.is_dense else [value]
    if not isinstance(value, Call) or any(a != 0 for a in value.operator.annihilators[:2]):
        return None
    if len(value.operator.annihilators) < 2:
        return None
    inside = [_factors(arg, problem) for arg in value.args]
    return [a for nested in inside for a in nested or ()]  # what is no product restricts nothing


def _covered(
    factors: list[Access],
    target: tuple[str, ...],
    operands: Mapping[str, Extent],
    sizes: Mapping[str, int],
) -> int | None:
    """Return an upper bound of the result's entries from the entries of factors and index sizes."""
    left, count = set(target), 1
    for access in sorted(factors, key=lambda a: operands[a.tensor].most):
        if not left.isdisjoint(access.indices):
            count *= operands[access.tensor].most
            left -= {*access.indices}
    return count * prod(sizes[i] for i in left)
