"""How much a kernel has to do, to decide whether waking other threads pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import assert_never

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import Term, reductions, split_terms
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.ways.ways import way_of
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.legal.absent import call_fill, differing, operator_of, reduced_fill
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Number
from taco_py.language.notation.tree import all_reductions
from taco_py.language.problem import Problem
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.price import as_sum


@dataclass(frozen=True, slots=True)
class Bound:
    """At most as many iterations as `tensor` has entries ("": one) times the sizes of `indices`."""

    tensor: str
    indices: tuple[str, ...]


def bounds(problem: Problem) -> tuple[Bound, ...]:
    """Yield the bounds of each term and of its inner sums, by the sparse operands.

    y[i] = A[i,j] * X[j,k] with A sparse  ->  entries of A * size of k
    y[i] = (A[i,j] + X[i,j]) * x[j]       ->  size of i * size of j
    s = sum(i, x[i]) * sum(j, z[j])       ->  one + size of i + size of j
    """
    terms = (as_sum(problem, term) for term in split_terms(problem.assignment.value))
    return tuple(bound for term in terms for bound in _bounds(problem, term))


def bounds_of_kernel(step: KernelStep) -> tuple[Bound, ...]:
    """Return the bounds of the loops of a kernel, in slabs or as its terms have them.

    P[i,j] = X[i,j] / sum(k, X[i,k]) in slabs  ->  size of i * size of j + size of i * size of k
    """
    if way_of(step.schedule.make).in_slabs:
        return tuple(_bounds_in_slabs(step.problem))
    return bounds(step.problem)


def _bounds_in_slabs(problem: Problem) -> Iterator[Bound]:
    """Yield the bounds of the values of slabs and of their sums, which are computed once each."""
    loops: dict[frozenset[str], None] = {}
    for assignment in problem.assignments:
        yield Bound("", assignment.target.indices)
        for sum_ in all_reductions(assignment.value):
            loops.setdefault(frozenset((sum_.index, *free_indices(sum_.body))))
    for indices in loops:
        yield Bound("", tuple(sorted(indices)))


def _bounds(problem: Problem, term: Term) -> Iterator[Bound]:
    """Yield the bounds of a term's loops and of its inner sums' loops.

    T[i,j] = A[i,j] * sum(k, U[i,k] * V[j,k]) with A sparse  ->  entries of A * size of k
    """
    output = problem.assignment.target.indices
    inner_sums = [s for s in reductions(term.body) if set(term.reduced).isdisjoint(free_indices(s))]
    inner = {index for sum_ in inner_sums for index in _indices(sum_)} - {
        *output,
        *term.reduced,
    }
    yield from _restricted(problem, term.body, (i for i in _indices(term.body) if i not in inner))
    restricting = _restricting(problem, term.body) or ()
    for sum_ in inner_sums:
        loops = (*output, *_indices(sum_))
        sampled = restricting and all({*loops}.issuperset(access.indices) for access in restricting)
        yield from _restricted(problem, term.body if sampled else sum_, loops)


def _indices(expr: Expr) -> Iterator[str]:
    return (index for access in accesses(expr) for index in access.indices)


def _restricted(problem: Problem, expr: Expr, loops: Iterable[str]) -> Iterator[Bound]:
    """Yield the bounds of an expression inside loops."""
    every = dict.fromkeys(loops)
    restricting = _restricting(problem, expr)
    if restricting is None:
        yield Bound("", tuple(every))
        return
    for access in restricting:
        yield Bound(access.tensor, tuple(i for i in every if i not in access.indices))


def _restricting(problem: Problem, expr: Expr) -> tuple[Access, ...] | None:
    """Return sparse accesses of which one is stored wherever `expr` is not 0; None where there are
    none: a sum with a full term is not 0 anywhere."""
    restricting, fill = _differing(problem, expr)
    return restricting if restricting and fill is not None and fill == 0 else None


def _differing(problem: Problem, expr: Expr) -> tuple[tuple[Access, ...] | None, Number | None]:
    """Return sparse accesses of which one is stored wherever `expr` is not its fill value, and
    that."""
    match expr:
        case Access(name):
            full = problem.type_of(name).format.is_dense
            return (None, None) if full else ((expr,), 0)
        case Literal(value):
            return (), value
        case Reduce(operator, _, body):
            restricting, fill = _differing(problem, body)
            return restricting, reduced_fill(operator, fill)
        case Call(_, args):
            inside = [_differing(problem, arg) for arg in args]
            fills = [fill for _, fill in inside]
            fill = call_fill(operator_of(expr), fills)
            groups = (
                _join_accesses([inside[place][0] for place in group])
                for group in differing(operator_of(expr), fills)
            )
            factors = [group for group in groups if group]
            if not factors:
                return (None if any(restricting is None for restricting, _ in inside) else ()), fill
            return max(factors, key=lambda f: (min(len(a.indices) for a in f), -len(f))), fill
        case _:
            assert_never(expr)


def _join_accesses(parts: Sequence[tuple[Access, ...] | None]) -> tuple[Access, ...] | None:
    """Join the accesses of parts of which one is stored; None where one of them always is."""
    if any(part is None for part in parts):
        return None
    return tuple(access for part in parts for access in part or ())


def useful_threads(
    step: KernelStep, tensors: Mapping[str, TensorData], limit: int, machine: Machine
) -> int:
    """Return `limit`, or 1 where the work is too little to share."""
    if limit == 1 or work_of(step, tensors) >= machine.units.parallel_iterations:
        return limit
    return 1


def work_of(step: KernelStep, tensors: Mapping[str, TensorData]) -> int:
    """Return an upper bound of the innermost iterations, for operands by the kernel's names."""
    sizes = {index: tensors[name].shape[mode] for index, name, mode in step.sizes}
    return sum(
        (tensors[b.tensor].nnz if b.tensor else 1) * prod(sizes[i] for i in b.indices)
        for b in bounds_of_kernel(step)
    )


def describe_threads(
    step: KernelStep, tensors: Mapping[str, TensorData] | None, limit: int, machine: Machine
) -> str:
    """Return how many threads run a kernel with a loop to share, and why, for explain().

    tensors  what is known of its operands, by their names in the plan; None for nothing
    limit    the most that the call may use
    """
    if limit == 1:
        return (
            "1, for no more may be used: threads=, set_threads(), OMP_NUM_THREADS or the cores and "
            "quota of the process say so"
        )
    if step.schedule.threads is not None:
        return f"{min(limit, step.schedule.threads)}, which was found by timing"
    least = machine.units.parallel_iterations
    data_of = {n: tensors.get(step.source(n)) for n, _ in step.problem.operands} if tensors else {}
    present = {name: data for name, data in data_of.items() if data is not None}
    if not data_of or len(present) < len(data_of):
        return f"{limit}, and 1 where there are less than {least} iterations to share"
    work = work_of(step, present)
    if work < least:
        return f"1, for {work} iterations are less than the {least} that others are woken for"
    return f"{limit}, for there are up to {work} iterations to share{_idle(step, present, limit)}"


def _idle(step: KernelStep, tensors: Mapping[str, TensorData], limit: int) -> str:
    """Return the fraction of threads that stay idle when the outermost loop is shared."""
    outermost = step.schedule.orders[0][:1]
    if len(step.schedule.orders) > 1 or step.schedule.parallel or step.schedule.shapes:
        return ""
    rows = (tensors[name].shape[mode] for i, name, mode in step.sizes if i in outermost)
    return "".join(
        f"; but {outermost[0]} has {n}, and {limit - n} of them nothing to do"
        for n in rows
        if n < limit
    )
