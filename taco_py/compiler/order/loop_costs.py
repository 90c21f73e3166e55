"""The expected cost of loops in some order, added up from the outermost to the innermost.

    cost = Σ iterations of each loop + copies of operands that are stored in another order
        + lines fetched from beyond the near caches (`locality`)
        + innermost iterations · (a result written out of order + strides that are not one
                                  + dense arrays that are not read in their stored order)

Costs of a loop that do not depend on the order of the outer loops are in `steps`. Sets of indices
are numbers, a bit an index.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import copies_pattern, fits_row, repeated, result_order
from taco_py.compiler.concrete.nodes import Forall, Statement, Where
from taco_py.compiler.concrete.terms import Term, split_terms
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.compiler.iteration.graph import conflicts, sparse_levels
from taco_py.compiler.iteration.lattice import build_lattice
from taco_py.compiler.iteration.region import Iterator as Walk
from taco_py.compiler.iteration.region import Regions
from taco_py.compiler.order.lookups import Meeting
from taco_py.compiler.order.steps import Steps
from taco_py.language.formats import CSC, CSR
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.legal.types import sum_wraps_alone
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Call, Expr, Reduce
from taco_py.language.notation.tree import children, walk
from taco_py.language.problem import Problem

State = tuple[int, int, int, float | None, tuple[int, ...]]


def copying(statistics: Statistics, access: Access) -> float:
    """Return the cost of a copy of an operand in another order.

    The copy of a matrix stores a position for each row. A coordinate list of few entries a row is
    sorted.
    """
    pattern, copies = statistics.patterns[access.tensor], statistics.machine.copies
    form, rows, calls = pattern.format, 0.0, statistics.machine.calls
    seconds = calls.conversion_seconds if form in (CSR, CSC) else calls.distribution_seconds
    call = seconds / statistics.machine.step_seconds
    few = form.is_coo and pattern.nnz <= copies.sparse_row_entries * max(
        statistics.sizes[index] for index in access.indices
    )
    if form.order > 2 or few:
        return call + copies.sorted_entry_steps * pattern.nnz
    if form.order == 2 and (form.levels[0].full or form.is_coo):
        rows = statistics.sizes[access.indices[form.mode_order[1]]]
    entries = copies.transposed_entry_steps * pattern.nnz
    return call + entries + copies.transposed_row_steps * rows


def is_gathered(problem: Problem, statistics: Statistics) -> bool:
    """Tell whether a result written out of order is an array whose blocks are gathered afterwards.

    This pays where its inner levels are dense, and only rows can be absent or a good part of it is
    expected to be stored. Y[j,k,p] = T[i,j,k] * A[i,p], stored ssd, would else need a copy of T by
    j or k, whose entries are sorted, or a hash workspace.
    """
    form = problem.result.format
    if is_full(form) or not form.levels[-1].full or storing_alone(problem) is None:
        return False
    if all(level.full for level in form.levels[1:]):
        return True
    keep = problem.assignment.target.indices
    volume, copies = statistics.volume(keep), statistics.machine.copies
    stored = result_size(statistics, problem.assignment.value, keep)
    return volume <= copies.gathered_elements and stored >= copies.gathered_share * volume


def storing_alone(problem: Problem) -> Access | None:
    """Return the operand whose entries alone decide which blocks a kernel stores.

    It is the only sparse factor, and has all indices of the result's sparse levels. None where
    there is no such factor.
    """
    (term, *more) = split_terms(problem.assignment.value)
    reads = accesses(term.body)
    sparse = [a for a in reads if is_sparse(problem.type_of(a.tensor).format)]
    if more or len(sparse) != 1 or not restricts(term.body, sparse[0]):
        return None
    indices, form = sparse[0].indices, problem.result.format
    lists = form.stored(problem.assignment.target.indices)[: form.depth]
    alone = set(lists) <= set(indices) and len(set(indices)) == len(indices)
    return sparse[0] if alone else None


@dataclass(frozen=True, slots=True)
class Outside:
    """The outer loops of an order, outermost first, and the work that they entail.

    copied  the accesses whose operands must be copied, a bit each
    strayed  the dense arrays that these loops do not run through as they are stored, a bit each
    write   the least additional cost of an innermost iteration for the result; None while the
            result's indices come first and in order
    filled  for each operand whose rows may be looked up, the loops around the filling of a row; 0
            as long as its other indices are not bound
    """

    order: tuple[str, ...]
    bound: int
    cost: float
    copied: int
    strayed: int
    write: float | None
    filled: tuple[int, ...] = ()

    @property
    def state(self) -> State:
        """Return everything that the cost of the inner loops depends on."""
        return self.bound, self.copied, self.strayed, self.write, self.filled


def cost_key(problem: Problem, term: Term, statistics: Statistics) -> Hashable:
    """Return a key of all that the costs of a term's loops depend on."""
    reads = dict.fromkeys(accesses(term.body))
    types = tuple(problem.type_of(access.tensor) for access in reads)
    target = problem.assignment.target
    figures = statistics.key(target, *reads)
    return term.body, target.indices, types, problem.result, copies_pattern(problem), figures


class LoopCosts:
    """The costs of the loops of one term, in any order; `steps` has those of single loops.

    rows  whether rows of operands may be looked up
    """

    def __init__(
        self,
        problem: Problem,
        term: Term,
        statistics: Statistics,
        steps: Steps | None = None,
        rows: bool = True,
    ) -> None:
        self.rows = rows
        self.problem = problem
        self.term = term
        self.statistics = statistics
        self.machine = statistics.machine
        self.row_steps = self.machine.loops.held_row_steps, self.machine.vector_scatter_steps
        self.steps = Steps(problem, term, statistics) if steps is None else steps
        self.bits = self.steps.bits
        self.innermost = self.steps.count(self.steps.every)
        self.result = result_order(problem)
        self.sparse_result = is_sparse(problem.result.format)
        self.above = self._above()
        self.below = self._below()
        self.copies = [copying(statistics, a) for a in self.steps.accesses]
        self.folded = [self._folded(a) for a in self.steps.accesses]
        self.merged = [self._merged(a) for a in self.steps.accesses]
        self.repeated = self._repeated()

    def start(self) -> Outside:
        """Return the state before the first loop, with the copies that every order needs."""
        filled = (0,) * len(self.steps.lookups) if self.rows else ()
        return Outside((), 0, sum(self.folded), 0, 0, None, filled)

    def fused(self, statement: Statement, order: Sequence[str]) -> float:
        """Return the cost of loops whose temporaries are computed inside them, and of further work
        for them.

        order  of all loops, those of each producer and its consumer merged
        """
        outside = self.loops(order)
        rounds, innermost = self._rounds_of(statement, 0)
        write = outside.write or 0.0
        return self._copying(outside) + rounds + write * self.steps.count(innermost)

    def beside_rounds(self, order: Sequence[str], outer: Sequence[str]) -> float:
        """Return the cost of the work that loops entail where sums inside have loops of their own.

        order  of all loops
        outer  of those around the assignment to the result
        """
        costs = copy(self)
        costs.innermost = self.steps.count(self.steps.bits_of(outer))
        outside = costs.loops(outer)
        cost = outside.cost - self.steps.nest((), outer) - self._copying(outside)
        if outside.write is not None and outside.bound != self.steps.every:
            cost += costs.innermost * self._added_up(outside.write, outer[-1])
        return cost + self._copying(self.loops(order))

    def loops(self, order: Iterable[str]) -> Outside:
        """Return the state inside loops in an order."""
        outside = self.start()
        for index in order:
            outside = self.inside(outside, index)
        return outside

    def _copying(self, outside: Outside) -> float:
        """Return the cost of the copies that are made for loops."""
        return sum(
            copied if outside.copied >> place & 1 else folded
            for place, (copied, folded) in enumerate(zip(self.copies, self.folded, strict=True))
        )

    def _rounds_of(self, statement: Statement, bound: int) -> tuple[float, int]:
        """Return the cost of a statement's loops, and the set of loops around its assignment to
        the result."""
        match statement:
            case Forall(index, body):
                cost, innermost = self._rounds_of(body, bound | self.bits[index])
                return self._step(bound, index, ()) + cost, innermost
            case Where(workspace, consumer, producer):
                producer_cost, filled = self._rounds_of(producer, bound)
                consumer_cost, innermost = self._rounds_of(consumer, bound)
                row_steps = self.machine.loops.row_workspace_steps if workspace.indices else 0.0
                return producer_cost + row_steps * self.steps.count(
                    filled
                ) + consumer_cost, innermost
            case _:
                return 0.0, bound

    def inside(self, outside: Outside, index: str) -> Outside:
        """Return the state with one more loop inside."""
        bit = self.bits[index]
        bound = outside.bound | bit
        copied = outside.copied
        cost = outside.cost + self._step(outside.bound, index, outside.filled)
        filled = self._filled(outside.filled, bound)
        for place, above in self.above[bit]:
            if above & ~bound:
                for copy in (place, *self.merged[place]):
                    if not copied >> copy & 1:
                        copied |= 1 << copy
                        cost += self.copies[copy] - self.folded[copy]
        write = outside.write
        if write is None and not self._goes_on(outside, index):
            rest = tuple(i for i in self.result if not self.bits[i] & outside.bound)
            write = self._write_cost(rest)
            cost += self.innermost * write
            cost += self._gathering(rest) if self._gathers(rest) else self._storing(rest)
        if write is not None and bound == self.steps.every:
            cost += self.innermost * self._added_up(write, index)
        strayed = outside.strayed
        if self.below and bound != self.steps.every:
            strayed = self._strayed(outside, bit)
            more = strayed.bit_count() - outside.strayed.bit_count()
            cost += self.machine.loops.misordered_array_steps * more * self.innermost
        return Outside((*outside.order, index), bound, cost, copied, strayed, write, filled)

    def meetings(self, order: Sequence[str]) -> Iterator[Meeting]:
        """Yield the co-iterations of loops in this order that may look up rows."""
        outside = self.start()
        for index in order:
            meeting = self.steps.meeting(outside.bound, index, outside.filled)
            if meeting is not None:
                yield meeting
            outside = self.inside(outside, index)

    def _step(self, bound: int, index: str, filled: tuple[int, ...]) -> float:
        """Return the cost of one loop inside others, without the work that it entails."""
        cost = self.steps.step(bound, index)
        meeting = self.steps.meeting(bound, index, filled) if self.steps.lookups else None
        return cost if meeting is None else cost + meeting.more

    def _filled(self, filled: tuple[int, ...], bound: int) -> tuple[int, ...]:
        """Return the loops around the filling of each row, with the loops of `bound` outside."""
        return tuple(
            loops or (0 if lookup.parents & ~bound else bound)
            for loops, lookup in zip(filled, self.steps.lookups, strict=False)
        )

    def _folded(self, access: Access) -> float:
        """Return the cost of a copy that an access needs in any order; 0 where it needs none."""
        if not repeats_matter(self.problem, self.term, access):
            return 0.0
        call = self.machine.calls.distribution_seconds / self.machine.step_seconds
        entries = self.statistics.patterns[access.tensor].nnz
        return call + self.machine.copies.folded_entry_steps * entries

    def _repeated(self) -> frozenset[str]:
        """Return the indices whose coordinates loops may visit more than once in each order.

        Indices of operands that every order copies are not among them.
        """
        if copies_pattern(self.problem):
            return frozenset()
        every = zip(self.steps.accesses, self.folded, strict=True)
        return repeated(self.problem, self.term, [access for access, cost in every if cost])

    def _merged(self, copied: Access) -> list[int]:
        """Return the accesses that must be copied together with another.

        They may repeat the coordinates of an index that the copy iterates.
        """
        return [
            place
            for place, access in enumerate(self.steps.accesses)
            if access != copied and not self.folded[place]
            if set(access.indices) & set(copied.indices)
            if not self.problem.type_of(access.tensor).format.is_unique
        ]

    def _strayed(self, outside: Outside, bit: int) -> int:
        """Return the arrays that are not read in their stored order with this loop, which is not
        innermost."""
        strayed = outside.strayed
        for place, below in enumerate(self.below):
            if below.get(bit, 0) & outside.bound:
                strayed |= 1 << place
        return strayed

    # ------------------------------------------------------------ operands

    def _above(self) -> dict[int, list[tuple[int, int]]]:
        """Return, for each index, the operands that store it in sparse levels, with the levels
        above."""
        every: dict[int, list[tuple[int, int]]] = {bit: [] for bit in self.bits.values()}
        for place, access in enumerate(self.steps.accesses):
            form = self.problem.type_of(access.tensor).format
            stored = [self.bits[access.indices[mode]] for mode in form.mode_order]
            levels_above: dict[int, int] = {}
            for depth, level in enumerate(form.levels):
                if not level.full:
                    bit = stored[depth]
                    levels_above[bit] = levels_above.get(bit, 0) | (sum(set(stored[:depth])) & ~bit)
            for bit, above in levels_above.items():
                every[bit].append((place, above))
        return every

    def _below(self) -> list[dict[int, int]]:
        """Return, for each array of a dense kernel and each of its indices, the indices stored
        inside."""
        everywhere = (*self.steps.accesses, self.problem.assignment.target)
        forms = [self.problem.type_of(a.tensor).format for a in everywhere]
        if not all(is_full(form) for form in forms):
            return []
        inner = []
        for access, form in zip(everywhere, forms, strict=True):
            stored = [self.bits[access.indices[mode]] for mode in form.mode_order]
            inner.append({bit: sum(stored[place + 1 :]) for place, bit in enumerate(stored)})
        return inner

    # ------------------------------------------------------------ the result

    def _goes_on(self, outside: Outside, index: str) -> bool:
        """Tell whether the result's indices still come first and, if it is sparse, in its stored
        order."""
        depth = len(outside.order)
        if depth >= len(self.result):
            return True  # none is left to come late
        if self.sparse_result and index in self.repeated:
            return False
        return index == self.result[depth] if self.sparse_result else index in self.result

    def _write_cost(self, rest: tuple[str, ...]) -> float:
        """Return the least cost of adding to the result, with loops over `rest` inside a sum."""
        levels = self.problem.result.format.levels
        if self._gathers(rest) or all(level.full for level in levels[len(levels) - len(rest) :]):
            row_cost, scatter_cost = self.row_steps
            return row_cost if len(rest) == 1 else scatter_cost
        machine = self.machine
        if len(rest) == 1:
            first, other = machine.loops.row_workspace_steps, machine.loops.row_addition_steps
            return other + (first - other) * self.steps.fresh
        return machine.loops.hash_workspace_steps + machine.loops.hash_key_steps * self.steps.fresh

    def _added_up(self, write: float, last: str) -> float:
        """Return the cost of an iteration above the least where the innermost loop is over `last`.

        A row that this loop alone runs along is held in registers where it vectorises; if it does
        not, single elements are added to in memory.
        """
        if write not in self.row_steps:
            return 0.0
        if not self.steps.in_vectors(last):
            return self.machine.loops.scatter_steps - 1.0 - write
        return 0.0 if last in self.result else self.machine.vector_scatter_steps - write

    def _gathers(self, rest: tuple[str, ...]) -> bool:
        """Tell whether the result is gathered from an array, as several of its indices come
        late."""
        levels = self.problem.result.format.levels[len(self.result) - len(rest) :]
        return len(rest) > 1 and not all(level.full for level in levels) and self._is_array

    def _gathering(self, rest: tuple[str, ...]) -> float:
        """Return the cost of gathering the blocks of an array.

        Where its part over the indices that come late exceeds the near caches, this includes
        fetching a block whenever it is added to.
        """
        volume, size = self.statistics.volume, np.dtype(self.problem.result.dtype).itemsize
        pattern, machine = storing_alone(self.problem), self.machine
        assert pattern is not None  # it is made as an array
        block = self.result[self.problem.result.format.depth :]
        gathered = machine.calls.conversion_seconds / machine.step_seconds
        gathered += machine.copies.cleared_element_steps * volume(self.result)
        gathered += machine.copies.marked_entry_steps * self.statistics.patterns[pattern.tensor].nnz
        stored = result_size(self.statistics, self.term.body, self.result)
        placed = machine.copies.placed_block_steps / max(volume(block), 1.0)
        gathered += stored * (machine.copies.gathered_element_steps + placed)
        if size * volume(rest) <= machine.loops.near_cache_bytes:
            return gathered
        lines = max(1.0, size * volume(block) / machine.loops.line_bytes)
        visits = self.steps.count(self.steps.every & ~self.steps.bits_of(block))
        fetched = machine.loops.line_steps + machine.loops.next_line_steps * (lines - 1)
        return gathered + 2 * visits * fetched  # each comes and goes

    def _storing(self, rest: tuple[str, ...]) -> float:
        """Return the cost of the step of a plan that stores the elements of a hash workspace."""
        levels = self.problem.result.format.levels
        if len(rest) < 2 or all(level.full for level in levels[len(levels) - len(rest) :]):
            return 0.0
        calls, is_list = self.machine.calls, self.problem.result.format.is_coo
        seconds = calls.plan_step_seconds if is_list else calls.conversion_seconds
        return seconds / self.machine.step_seconds

    @cached_property
    def _is_array(self) -> bool:
        return is_gathered(self.problem, self.statistics)


def order_matters(problem: Problem, term: Term, access: Access) -> bool:
    """Tell whether unordered levels of `access` are merged with others, or appended from."""
    form = problem.type_of(access.tensor).format
    if all(level.kind.ordered for level in form.levels):
        return False
    if is_sparse(problem.result.format) or form.levels[0].kind.gaps:
        return True
    for other in accesses(problem.assignment.value):  # other terms may be merged with this one
        shared = set(sparse_levels(problem, other)) & set(access.indices)
        if other != access and shared:
            return True
    levels = {access: sparse_levels(problem, access)}
    regions = Regions(levels, frozenset())
    nothing = term.operator.identity_of(np.dtype(problem.result.dtype)) or 0
    lattices = (build_lattice(regions.expression(term.body, i, nothing)) for i in access.indices)
    return any(lattice.full and lattice.iterators for lattice in lattices)


def repeats_matter(
    problem: Problem, term: Term, access: Access, order: tuple[str, ...] = ()
) -> bool:
    """Tell whether levels of `access` that may repeat coordinates are merged, or appended from.

    A result of one mode is not appended to: its values are added up in a row workspace.

    order  of the loops: an operand that cannot be walked in this order is read from a copy, which
           may have more sparse levels; () for operands as they are stored
    """
    form = problem.type_of(access.tensor).format
    if form.is_unique:
        return False
    if copies_pattern(problem):
        return False
    if _wraps_in_parts(problem, term, access) or _reduced_in_parts(problem, term, access):
        return True
    if is_sparse(problem.result.format) and not fits_row(problem):
        return True
    levels = {a: _walked_levels(problem, a, order) for a in accesses(term.body)}
    regions = Regions(levels, frozenset())
    nothing = term.operator.identity_of(np.dtype(problem.result.dtype)) or 0
    for index in access.indices:
        lattice = build_lattice(regions.expression(term.body, index, nothing))
        if len(lattice.iterators) > 1 or lattice.full:
            return True
    return False


def _reduced_in_parts(problem: Problem, term: Term, access: Access) -> bool:
    """Tell whether a reduction needs all that `access` stores below a coordinate at once.

    A list that repeats a coordinate has parts of it. The reduction is by another operator than a
    sum, or a sum that an operation is not linear in.
    """
    outer = set(access.indices) & repeated(problem, term)
    return any(
        access in accesses(node) and outer & set(free_indices(node))
        for node in _nonlinear_reductions(term.body)
    )


def _nonlinear_reductions(expr: Expr, linear: bool = True) -> Iterator[Reduce]:
    if isinstance(expr, Reduce):
        linear = linear and expr.operator.additive
        if not linear:
            yield expr
    for place, part in enumerate(children(expr)):
        keeps = not isinstance(expr, Call) or expr.operator.additive or expr.operator.linear[place]
        yield from _nonlinear_reductions(part, linear and keeps)


def _wraps_in_parts(problem: Problem, term: Term, access: Access) -> bool:
    """Tell whether an inner sum wraps or saturates over entries that are split into parts.

    `access` stores these entries below a coordinate that a list repeats, each time with a part of
    them.
    """
    dtypes = {name: np.dtype(type.dtype) for name, type in problem.operands}
    term_dtype = expression_dtype(term.body, dtypes)
    for node, _ in walk(term.body):
        if not isinstance(node, Reduce) or access not in accesses(node):
            continue
        dtype = expression_dtype(node, dtypes)
        outer = set(access.indices) & set(free_indices(node))
        if sum_wraps_alone(dtype, term_dtype) and outer & repeated(problem, term):
            return True
    return False


def _walked_levels(problem: Problem, access: Access, order: tuple[str, ...]) -> Mapping[str, Walk]:
    """Return the iterators of an access, or the iterators that its copy in this order may have.

    A copy has one below its root for each index, and one at the root where the operand has one.
    """
    if not order or not conflicts(problem, access, order):
        return sparse_levels(problem, access)
    indices = sorted(access.indices, key=order.index)
    rooted = problem.type_of(access.tensor).format.levels[0].full
    return {index: Walk(access, k) for k, index in enumerate(indices) if k or not rooted}
