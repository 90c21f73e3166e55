"""One assignment as one kernel: its loop orders, the copies they need, what it appends to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import (
    Order,
    can_scatter,
    result_indices,
    result_order,
    shared_prefix,
)
from taco_py.compiler.concrete.nodes import Assembly
from taco_py.compiler.concrete.terms import Term, map_terms, split_terms
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.iteration.graph import sparse_levels
from taco_py.compiler.order.loop_costs import is_gathered, storing_alone
from taco_py.compiler.order.orders import needs_copy
from taco_py.compiler.order.streams import chosen_order
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.gpu.unit_nests import check_units
from taco_py.compiler.schedule.legality import check
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.parallel import check_shared
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.place_match import walk_of
from taco_py.compiler.ways.ways import in_loops_on
from taco_py.data.convert.convert import describe
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.formats import Format
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.context import Context
from taco_py.planner.copies import read_copies
from taco_py.planner.ir.formats import all_dense, reordered, with_chain
from taco_py.planner.ir.goal import Request, draft_of, problem_of, statistics
from taco_py.planner.ir.nodes import Cast, Gather, KernelStep, Operand, Reformat, Step
from taco_py.planner.ir.program import Program
from taco_py.planner.price import as_sum


def with_kernel(
    program: Program, context: Context, result_type: TensorType, names: Names, reason: str
) -> Program:
    """Plan the kernel of the one assignment of a program, with the copies that its loops need.

        C[i,j] = A[i,k] * B[k,j], B in CSC
        → B_kj is B in CSR;  the kernel of C[i,j] = A[i,k] * B_kj[k,j] with loops i,k,j

    result_type  how the result is to be stored; the kernel's result is converted where that differs
    reason       why a dense result is made in another order
    """
    assignment, request = program.last, context.request(program, program.result)
    stats = statistics(assignment, program.facts, request.machine)
    draft = draft_of(assignment, program.facts, request)
    terms = split_terms(assignment.value)
    orders = tuple(_order(draft, place, term, stats, request) for place, term in enumerate(terms))
    kernel, copies = _kernel(draft, Loops(assignment, orders), program.facts, request, names, stats)
    steps = (*copies.steps, kernel, *_convert_result(kernel.problem, result_type, names, reason))
    return _with_steps(program, copies.facts, result_type, steps)


def _order(problem: Problem, place: int, term: Term, stats: Statistics, request: Request) -> Order:
    """Return the order of a term's loops: the requested one, else the cheapest.

    Where a place is carried with its value, that of the operand's levels.
    """
    walk = walk_of(problem)
    if walk is not None:
        return walk.order
    best = chosen_order(problem, as_sum(problem, term), stats, request.effort).order
    target = problem.assignment.target.tensor
    return request.order_of(target, place, best) or best


def kernel_in_loops_of_text(
    program: Program, context: Context, schedule: Schedule, names: Names
) -> Program:
    """Plan the kernel of a program by the user's commands on loops.

    Raises ScheduleError in the user's names.
    """
    assignment, request = program.last, context.request(program, program.result)
    loops = apply_all(Loops(assignment, textual_orders(assignment)), schedule)
    stats = statistics(assignment, program.facts, request.machine)
    draft = draft_of(assignment, program.facts, request)
    kernel, copies = _kernel(draft, loops, program.facts, request, names, stats)
    try:
        kernel = _scheduled(kernel, copies.of_terms, schedule, request.machine.is_gpu)
    except ScheduleError as error:
        raise _of_sources(error, copies.steps) from error
    steps = (*copies.steps, kernel, *_convert_result(kernel.problem, request.type, names, ""))
    return _with_steps(program, copies.facts, request.type, steps)


def _with_steps(
    program: Program, facts: Mapping[str, Operand], result_type: TensorType, steps: tuple[Step, ...]
) -> Program:
    """Return the program with steps in place of its only assignment, the last of which makes its
    result.

    facts  of all tensors but those that the last step converts to
    """
    *before, _ = program.steps
    result = steps[-1].target
    all_facts = {**facts, result: replace(facts[program.result], type=result_type)}
    return replace(program, steps=(*before, *steps), facts=all_facts, results=(result,))


@dataclass(frozen=True, slots=True)
class _Copies:
    """The copies that a kernel walks in place of operands.

    of_terms  for each term, the copy of each access that has one
    facts     of all tensors, the copies among them
    """

    of_terms: tuple[dict[Access, Reformat], ...]
    facts: Mapping[str, Operand]

    @property
    def steps(self) -> tuple[Reformat, ...]:
        """Return the distinct steps that make the copies."""
        return tuple({c.target: c for of_term in self.of_terms for c in of_term.values()}.values())


def _kernel(
    draft: Problem,
    loops: Loops,
    facts: Mapping[str, Operand],
    request: Request,
    names: Names,
    stats: Statistics,
) -> tuple[KernelStep, _Copies]:
    """Return the kernel of a problem in the order of `loops`, and the copies that it walks."""
    assignment, orders = draft.assignment, loops.index_orders
    of_terms = _copies(draft, split_terms(assignment.value), orders, names, stats)
    copies_ = {c.target: c for of_term in of_terms for c in of_term.values()}
    everything = {**facts, **{c.target: _copied(facts[c.source], c) for c in copies_.values()}}
    remaining = iter([{a: c.target for a, c in of_term.items()} for of_term in of_terms])
    value = map_terms(assignment.value, lambda expr: read_copies(expr, next(remaining)))
    final = problem_of(replace(assignment, value=value), everything, request)
    final = replace(final, result=draft.result)
    final = _chained(final, loops, lambda: is_gathered(draft, stats))
    schedule = Schedule.of_orders(orders)
    kernel = KernelStep(assignment.target.tensor, final, schedule, size_sources(final))
    return kernel, _Copies(of_terms, everything)


def _convert_result(
    problem: Problem, result_type: TensorType, names: Names, reason_: str
) -> Iterator[Cast | Gather | Reformat]:
    """Yield the step that converts the kernel's result to the requested type, where they differ.

    reason_  a dense one is made in another order
    """
    target, form_, form = (
        problem.assignment.target.tensor,
        problem.result.format,
        result_type.format,
    )
    if str(form_) == str(form):
        return
    converted = names.fresh(target)
    if is_full(form_) and is_full(form):
        yield Cast(converted, target, form, result_type.dtype, reason_)
    elif is_full(form_) and is_sparse(form):
        pattern = storing_alone(problem)
        assert pattern is not None  # it is made as an array
        modes = tuple(pattern.indices.index(i) for i in result_order(problem)[: form.depth])
        yield Gather(converted, target, pattern.tensor, modes, form, result_type.index_dtype)
    else:
        reason = f"the result is wanted as {form}: {describe(form_, form)}"
        yield Reformat(converted, target, form, reason, result_type.index_dtype)


def size_sources(problem: Problem) -> tuple[tuple[str, str, int], ...]:
    """Return for each index the first operand that has it, and its mode."""
    read = [a for one in problem.assignments for a in accesses(one)]
    sources = {
        index: (index, access.tensor, mode)
        for access in reversed(read)
        for mode, index in enumerate(access.indices)
    }
    return tuple(sources.values())


def _with_result(problem: Problem, change: Callable[[Format], Format]) -> Problem:
    result = problem.result
    return replace(problem, result=replace(result, format=change(result.format)))


def _scheduled(
    kernel: KernelStep,
    copies: Iterable[Mapping[Access, Reformat]],
    schedule: Schedule,
    on_gpu: bool,
) -> KernelStep:
    """Return the kernel with its schedule.

    Raises ScheduleError if the formats forbid it, or what kernels run on.

    copies  what is read instead of an operand, for the accesses of each term
    """
    accesses = {access: copy.target for of_term in copies for access, copy in of_term.items()}
    tensors = {access.tensor: target for access, target in accesses.items()}
    first, rest = schedule.reading(tensors, accesses).parted
    assignment = kernel.problem.assignment
    ordered = apply_all(Loops(assignment, textual_orders(assignment)), first)
    scheduled = apply_all(ordered, rest)
    check(scheduled, kernel.problem)
    graph = scheduled.graph(kernel.problem)
    check_units(graph, on_gpu)
    if not rest.serial:
        check_shared(graph)
    planned = Schedule.of_orders(ordered.orders).with_way(in_loops_on(on_gpu))
    return replace(kernel, schedule=planned.then(rest))


def _of_sources(error: ScheduleError, copies: tuple[Reformat, ...]) -> ScheduleError:
    """Return the refusal in the user's names, with the formats of copies."""
    message, hint = error.message, error.hint
    for copy in copies:
        name = re.compile(rf"\b{re.escape(copy.target)}(\d*)\b")
        if name.search(message):
            message = f"{message}; {copy.source} is read from a copy in the format {copy.format}"
        message = name.sub(rf"{copy.source}\1", message)
        hint = None if hint is None else name.sub(rf"{copy.source}\1", hint)
    return ScheduleError(message, error.span, hint)


def _chained(problem: Problem, loops: Loops, is_array: Callable[[], bool]) -> Problem:
    """Return the problem with a result that several loops can scatter into.

    That part of it becomes a coordinate list; all of it, where `is_array` says so, a dense array:
    in the order of its levels, so that these can keep it. Where coordinates are copied, each
    element has its place.
    """
    depth = beyond_scatter(problem, loops)
    if depth is None:
        return problem
    if is_array():
        return _with_result(problem, all_dense)
    return _with_result(problem, lambda form: with_chain(form, depth))


def beyond_scatter(problem: Problem, loops: Loops) -> int | None:
    """Return the first level of a result that loops cannot scatter into; None where they can."""
    if loops.assembly is Assembly.COPY:
        return None
    orders = tuple(map(loops.provenance.loops, loops.orders))
    terms = split_terms(problem.assignment.value)
    prefix = shared_prefix(problem, terms, orders, loops.provenance)
    depth = len(result_indices(problem, prefix))
    rest = len(result_order(problem)) - depth
    form = problem.result.format
    can = rest < 2 or can_scatter(problem, depth) or with_chain(form, depth).levels == form.levels
    return None if can else depth


def _copies(
    problem: Problem,
    terms: tuple[Term, ...],
    orders: tuple[Order, ...],
    names: Names,
    stats: Statistics,
) -> tuple[dict[Access, Reformat], ...]:
    """Return for each term the copies that replace accesses which its order cannot walk."""
    of_terms: list[dict[Access, Reformat]] = []
    known_copies: dict[tuple[str, str], Reformat] = {}
    for term, order in zip(terms, orders, strict=True):
        of_terms.append({})
        for access in dict.fromkeys(accesses(term.body)):
            if not needs_copy(problem, term, access, order):
                continue
            type = problem.type_of(access.tensor)
            form = type.format
            rows = _entries_a_row(problem, access, order, stats)
            empty = rows <= stats.machine.copies.sparse_row_entries
            dense = _looked_up(problem, term, access, order, stats)
            target = reordered(form, access, order, empty, dense)
            key = (access.tensor, str(target))
            if key not in known_copies:
                reason = f"loops run in the order {','.join(order)}: {describe(form, target)}"
                name = names.fresh(f"{access.tensor}_{''.join(target.stored(access.indices))}")
                known_copies[key] = Reformat(name, access.tensor, target, reason, type.index_dtype)
            of_terms[-1][access] = known_copies[key]
    return tuple(of_terms)


def _entries_a_row(problem: Problem, access: Access, order: Order, stats: Statistics) -> float:
    """Return the expected number of entries for each coordinate of the index bound first.

    0 where the result stores that index's coordinates: it is to have those of the operand alone.
    """
    first = min(access.indices, key=order.index)
    target, form = problem.assignment.target, problem.result.format
    for level, mode in zip(form.levels, form.mode_order, strict=True):
        if target.indices[mode] == first and not level.full:
            return 0.0
    return stats.patterns[access.tensor].nnz / stats.sizes[first]


def _looked_up(
    problem: Problem, term: Term, access: Access, order: Order, stats: Statistics
) -> int:
    """Count the levels of a copy that are better dense, for lookups in place of merges.

    An index that another sparse operand restricts needs no coordinates here. A dense level pays as
    long as it has no more positions than it is looked up; none does over a vast index.
    """
    stored = [i for i in order if i in access.indices]
    if stored[0] in problem.vast:
        return 0
    leaders = [
        a
        for a in dict.fromkeys(accesses(term.body))
        if a != access and stats.patterns[a.tensor].sparse and restricts(term.body, a)
    ]
    count = 1
    for index in stored[1:-1]:
        bound = frozenset(order[: order.index(index) + 1])
        fraction = prod(stats.access_fraction(a, bound) for a in leaders)
        sparse_leader = any(index in sparse_levels(problem, a) for a in leaders)
        positions = stats.volume(frozenset(stored[: count + 1]))
        if not sparse_leader or positions > fraction * stats.volume(bound):
            break
        count += 1
    return count


def _copied(source: Operand, copy: Reformat) -> Operand:
    return replace(source, type=replace(source.type, format=copy.format))
