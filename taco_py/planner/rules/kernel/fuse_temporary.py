"""Make a temporary in the loops of the one kernel that reads it, a row at a time.

    T[i,k] = sum(j, A[i,j] * X[j,k])    by loops(i,j,k)
    H[i,k] = (T[i,k] + b[k]) / d[i]    by loops(i,k)
    → H[i,k] = (sum(j, A[i,j] * X[j,k]) + b[k]) / d[i]    by loops(i,j,k)

Both kernels begin with the same loops over indices of T. Inside of them the part of T that is left
is a row, which is read before it leaves the nearest cache, or one number:

    forall i ( where(forall k H[i,k] = (w[k] + b[k]) / d[i], forall j forall k w[k] += …) )

T as a whole is neither written nor read, and one loop less is shared among threads. Whatever the
reader does with T is as good as anything else: what it is made of is a sum, and nothing is moved
through an operation. (Kjolstad et al. 2019, Tensor Algebra Compilation with Workspaces, section 3:
loop fusion by workspaces.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from math import prod

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import Order, repeated
from taco_py.compiler.concrete.merged_order import merge_orders
from taco_py.compiler.concrete.terms import Term, split_terms
from taco_py.compiler.schedule.apply import loops_of
from taco_py.compiler.schedule.loop_state import Loops
from taco_py.compiler.schedule.parallel import check_shared
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.absent import differs_where_absent
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import has_special_values
from taco_py.language.notation.checks import accesses, all_indices, rename
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import KEEP, SELECTED, VALUE
from taco_py.language.notation.tree import all_calls, is_sum
from taco_py.language.problem import Problem, SideResult
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program, reads
from taco_py.planner.joined_kernels import (
    is_plain,
    join_kernels,
    joined_problem,
    names_in_reader,
    stores_besides,
)
from taco_py.planner.price import keeping
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
    kernels,
)

ALIKE = 3
"""Temporaries of one program that have one kernel, above which all of them stay: it is compiled
once, and a chain of many products would have a kernel for each pair."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Make a dense temporary inside its only reader's loops, where these begin as its own do."""
    pair = _pair(program, site.target)
    if pair is None:
        return None
    if (
        sum(element_price.problem == pair.maker.problem for element_price in program.kernels)
        > ALIKE
    ):
        return Refusal("many other temporaries are made by the same kernel, compiled once")
    refusal = pair.refusal()
    if refusal is not None:
        return Refusal(refusal)
    facts, machine = program.facts[site.target], context.goal.machine
    sizes = dict(zip(pair.producer.target.indices, facts.shape, strict=True))
    row = tuple(index for index in sizes if index not in pair.shared)
    length = prod(sizes[index] for index in row)
    if length * np.dtype(facts.type.dtype).itemsize > machine.loops.near_cache_bytes:
        return Refusal(f"a row over {','.join(row)} is larger than the near caches")
    reread = min(_met_again(program, pair, kernel) for kernel in (pair.maker, pair.reader))
    if reread > machine.loops.near_cache_bytes:
        return Refusal(
            f"both kernels read more again in each round of {','.join(pair.shared)} than "
            "there is room for in the near caches"
        )
    rows = prod(sizes[index] for index in pair.shared)
    element_price = (
        machine.copies.near_row_steps + machine.copies.near_element_steps * length if row else 0.0
    )

    def rewrite() -> Rewrite:
        rows = f"in rows over {','.join(row)}" if row else "one by one"
        outer = ",".join(pair.shared)
        last = "stores it besides" if pair.stays else "alone reads it"
        reason = f"made {rows} in the loops over {outer} of {pair.reader.target}, which {last}"
        return Rewrite(_fused(program, pair), reason)

    return Candidate(keeping(facts, machine), rows * element_price, rewrite)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A kernel that makes a temporary, and the only one that reads it.

    access  of the temporary in the reader
    producer    the maker's assignment in the names of the reader
    order   of the maker's loops, in these names
    stays   whether the temporary is a result, which is stored besides
    tensors, indices  the reader's names of what the maker reads and of its loops
    """

    maker: KernelStep
    reader: KernelStep
    access: Access
    producer: Assignment
    order: Order
    tensors: Mapping[str, str]
    indices: Mapping[str, str]
    stays: bool

    @property
    def shared(self) -> Order:
        """Return the loops over indices of the temporary that both kernels have outermost."""
        orders = [order for term, order in self._terms() if self.access in accesses(term.body)]
        columns = zip(self.order, *orders, strict=False)
        equal = takewhile(lambda column: len({*column}) == 1, columns)
        prefix = (first for first, *_ in equal)
        return tuple(takewhile(self.access.indices.__contains__, prefix))

    def _terms(self) -> Iterator[tuple[Term, Order]]:
        problem = self.reader.problem
        return zip(split_terms(problem.assignment.value), self.reader.schedule.orders, strict=True)

    def refusal(self) -> str | None:
        """Return the reason why the temporary cannot be made in the reader's loops; None where it
        can.
        """
        shared, target = self.shared, self.reader.target
        if not shared:
            return f"{target} has no loop around all of the loops that it is made in"
        if shared[0] not in self.reader.problem.assignment.target.indices:
            return f"{target} is summed over {shared[0]}: its threads would add up what they make"
        if self._decides_what_is_stored:
            return f"{target} stores elements where it is not 0, which is known before alone"
        inner = self.order[len(shared) :]
        if inner and inner[0] in self.access.indices:
            return f"{target} does not go on over {inner[0]}"
        if self.stays and not self._is_sum:
            return "it is a result, and no sum"
        if not self._meets_each_once(shared):
            return f"loops over {','.join(shared)} do not meet each of its coordinates once"
        orders = self.orders()
        if orders is None:
            return f"the loops of {target} inside {','.join(shared)} have another order"
        problem = self.problem()
        if len(split_terms(problem.assignment.value)) != len(orders):
            return f"{target} would be put together with what it reads in loops of its own"
        try:
            graph = Loops(problem.assignment, orders).graph(problem)
            check_shared(graph)
        except ScheduleError as error:
            return error.message
        is_complete = stores_besides(graph)
        return (
            None
            if is_complete
            else f"the loops of {target} do not complete each element of it once"
        )

    @property
    def _is_sum(self) -> bool:
        """Tell whether the temporary is a sum, which is 0 where nothing is added."""
        return is_sum(self.producer.value)

    def _meets_each_once(self, shared: Order) -> bool:
        """Tell whether the shared loops visit every coordinate of the temporary once."""
        maker, reader = self.maker, self.reader
        graph = loops_of(maker.problem.assignment, maker.schedule).graph(maker.problem)
        is_plain = all(loop.plain for loop in graph.loops[: len(shared)])
        terms = split_terms(reader.problem.assignment.value)
        return is_plain and not any(
            repeated(reader.problem, term).intersection(shared) for term in terms
        )

    def orders(self) -> tuple[Order, ...] | None:
        """Return the loops of the reader's terms merged with the maker's; None where they clash."""
        orders_: list[Order] = []
        for term, order in self._terms():
            reads = self.access in accesses(term.body)
            merged = merge_orders(self.order, order) if reads else order
            if merged is None:
                return None
            orders_.append(merged)
        return tuple(orders_)

    def problem(self) -> Problem:
        """Return the reader's problem with the maker's value in place of the temporary."""
        problem = self.reader.problem
        value: Expr = self.producer.value
        if self._is_asked(problem) or self._is_spread:  # of the temporary, each element is there
            value = Call(VALUE, (value,))

        def exchanged(access: Access) -> Expr:
            return value if access == self.access else access

        problem_ = joined_problem(self.maker, self.reader, exchanged, self.tensors, self.indices)
        if not self.stays:
            return problem_
        assert isinstance(self.producer.value, Reduce)  # `_pair` asked
        names_ = (*dict(problem_.operands), problem_.assignment.target.tensor)
        name = Names((*names_, *(side_result.target.tensor for side_result in problem_.side)))
        target = Access(name.fresh(self.maker.target), self.access.indices)
        side = SideResult(target, self.maker.problem.result, self.producer.value)
        return replace(problem_, side=(*problem_.side, side))

    @property
    def _decides_what_is_stored(self) -> bool:
        """Tell whether the temporary decides which elements a sparse result stores.

        Of T[i] it is known before the loop over j of C[i,j].
        """
        problem = self.reader.problem
        indices = {*problem.assignment.target.indices}
        if is_full(problem.result.format) or not indices <= {*self.access.indices}:
            return False
        calls = all_calls(problem.assignment.value)
        conditions = (
            call.args[1] if call.operator == KEEP else call.args[0]
            for call in calls
            if call.operator in (KEEP, SELECTED)
        )
        return any(self.access in accesses(condition) for condition in conditions)

    @property
    def _is_spread(self) -> bool:
        """Tell whether the reader adds an element of the temporary to several elements of its own.

        What the maker adds up would be added to each of them: P[i,j] = A[i,j] - sum(k, A[i,k]).
        """
        further = {*self.reader.problem.assignment.target.indices}.difference(self.access.indices)
        return bool(further) and any(term.body == self.access for term, _ in self._terms())

    def _is_asked(self, problem: Problem) -> bool:
        """Tell whether the reader's value depends on whether the temporary stores an element."""
        dtypes = {name: np.dtype(type.dtype) for name, type in problem.operands}

        def special(expr: Call) -> bool:
            return has_special_values(expression_dtype(expr, dtypes))

        return differs_where_absent(problem.assignment.value, self.access, special)


def _pair(program: Program, name: str) -> _Pair | None:
    """Return the kernels that make and read a temporary; None where they cannot be fused."""
    maker = program.kernel(name)
    readers = [step for step in program.steps if name in reads(step)]
    if len(readers) != 1:
        return None
    (reader,) = readers
    if not isinstance(reader, KernelStep) or not (is_plain(maker) and is_plain(reader)):
        return None
    called = [name_ for name_, _ in reader.problem.operands if reader.source(name_) == name]
    uses = {a for a in accesses(reader.problem.assignment.value) if a.tensor in called}
    if len(uses) != 1:
        return None
    (access,) = uses
    assignment, types = maker.problem.assignment, dict(maker.problem.operands)
    dtypes = {name_: np.dtype(type.dtype) for name_, type in types.items()}
    if not isinstance(assignment.value, Reduce) or len(maker.schedule.orders) != 1:
        return None
    result = maker.problem.result
    alike = dict(reader.problem.operands)[access.tensor] == result
    if not alike or expression_dtype(assignment.value, dtypes).name != result.dtype:
        return None
    if not is_full(result.format) or not access.indices:
        return None
    tensors, indices = names_in_reader(maker, reader), _indices(maker, reader, access)
    order = tuple(indices[index] for index in maker.schedule.orders[0])
    assignment = rename(assignment, tensors, indices)
    return _Pair(
        maker, reader, access, assignment, order, tensors, indices, name in program.results
    )


def _indices(maker: KernelStep, reader: KernelStep, access: Access) -> dict[str, str]:
    """Return the reader's name of each index of the maker, a fresh one for its summed indices."""
    names = Names(all_indices(reader.problem.assignment))
    assignment = maker.problem.assignment
    names_of = dict(zip(assignment.target.indices, access.indices, strict=True))
    return {index: names_of.get(index) or names.fresh(index) for index in all_indices(assignment)}


def _met_again(program: Program, pair: _Pair, kernel: KernelStep) -> float:
    """Return the bytes of a kernel's operands that each round of the shared loops rereads."""
    assignment = pair.producer if kernel is pair.maker else kernel.problem.assignment
    read = {a for a in accesses(assignment.value) if a != pair.access}
    sources = {name: kernel.source(name) for name, _ in kernel.problem.operands}
    if kernel is pair.maker:
        sources = {pair.tensors[name]: source for name, source in sources.items()}
    total = 0.0
    for access in read:
        if set(pair.shared).isdisjoint(access.indices):
            facts = program.facts[sources[access.tensor]]
            total += facts.stored * np.dtype(facts.type.dtype).itemsize
    return total


def _fused(program: Program, pair: _Pair) -> Program:
    """Return the program with one kernel in place of the pair."""
    orders = pair.orders()
    assert orders is not None  # `refusal` asked
    return join_kernels(program, pair.maker, pair.reader, pair.problem(), orders, pair.tensors)


RULE = Rule(
    "fuse_temporary", Phase.KERNEL, apply, kernels, Numbers.EXACT, Gain.DETOUR, traits=Trait.FUSES
)
