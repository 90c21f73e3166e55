"""Compute an element-wise temporary where the one kernel that reads it does, and store none of it.

    e[i,j] = exp(filled(S[i,j], -inf) - m[i])    by loops(i,j)
    P[i,j] = e[i,j] / sum(k, e[i,k])    by loops(i,k,j)
    → P[i,j] = exp(filled(S[i,j], -inf) - m[i]) / sum(k, exp(filled(S[i,k], -inf) - m[i]))

Each access stands in loops over its own indices alone, so that it is computed once for each of its
elements. What several of them compute is computed once where the kernel stores it between its loops
(`codegen.passes.kept_functions`). Sums inside the temporary are those of loops that all accesses
share, and made once for all. Its entries are those of the one sparse operand that it is zero
without; or all tensors are full.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from codegen.libraries.scalar_functions import FUNCTIONS, CFunction
from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import Order
from taco_py.compiler.concrete.inner_sums import summed_indices
from taco_py.compiler.concrete.merged_order import merge_orders
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.schedule.loop_state import Loops
from taco_py.compiler.schedule.parallel import check_shared
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.absent import depends_on_presence, restricts
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, all_indices, free_indices, rename
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.tree import (
    all_reductions,
    children,
    peel_reductions,
    walk,
)
from taco_py.language.problem import Problem, TensorType
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


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Inline an elementwise temporary at each access of its only reader."""
    pair = _pair(program, site.target)
    if pair is None:
        return None
    refusal = pair.refusal()
    if refusal is not None:
        return Refusal(refusal)
    facts, machine, extra_times = program.facts[site.target], context.goal.machine, pair.times() - 1
    steps = extra_times * facts.stored * _steps(pair.maker.problem, machine)

    def rewrite() -> Rewrite:
        orders = pair.orders()
        assert orders is not None  # `refusal` asked
        inlined = join_kernels(
            program, pair.maker, pair.reader, pair.problem(), orders, pair.tensors
        )
        count = f", {extra_times + 1} times" if extra_times else ""
        return Rewrite(inlined, f"computed where {pair.reader.target} reads it{count}")

    return Candidate(keeping(facts, machine), steps, rewrite)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A kernel that makes an element-wise temporary, and the only one that reads it.

    inlined     for each access of the reader, the maker's assignment in its names
    tensors  the reader's names of what the maker reads
    """

    maker: KernelStep
    reader: KernelStep
    inlined: dict[Access, Assignment]
    tensors: dict[str, str]

    def refusal(self) -> str | None:
        """Return the reason why the temporary cannot be inlined; None where it can."""
        value, target = self.reader.problem.assignment.value, self.reader.target
        for access in self.inlined:
            if depends_on_presence(value, access):
                return f"{target} asks what of it is stored"
            enclosing = _enclosing_indices(self.reader, access)
            if not enclosing <= {*access.indices}:
                beyond = ",".join(sorted(enclosing.difference(access.indices)))
                return f"{target} would compute it in each round of its loops over {beyond}"
        if not self._has_one_pattern():
            return "its entries are not those of one of its operands"
        shared = frozenset.intersection(*(frozenset(access.indices) for access in self.inlined))
        inner_sums = all_reductions(self._first.value)
        if any(not shared.issuperset(_outer_indices(node, self._first)) for node in inner_sums):
            return f"{target} would make its sums for each of several accesses"
        orders, problem = self.orders(), self.problem()
        if orders is None:
            return f"its loops and those of {target} have different orders"
        try:
            graph = Loops(problem.assignment, orders).graph(problem)
            check_shared(graph)
        except ScheduleError as error:
            return error.message
        return None if stores_besides(graph) else f"{target} would no longer store what it has to"

    @property
    def _first(self) -> Assignment:
        return next(iter(self.inlined.values()))

    def _has_one_pattern(self) -> bool:
        """Tell whether the temporary has the pattern of one operand, or all tensors are full."""
        assignment, maker = self._first, self.maker.problem
        types = {self.tensors[name]: type for name, type in maker.operands}
        sparse = {a for a in accesses(assignment.value) if not is_full(types[a.tensor].format)}
        aligned = {access for access in sparse if access.indices == assignment.target.indices}
        if is_full(maker.result.format):
            return not sparse
        return (
            len({access.tensor for access in sparse}) == len(aligned) == 1
            and all(restricts(assignment.value, access) for access in aligned)
            and all(
                level.unique for access_ in aligned for level in types[access_.tensor].format.levels
            )
        )

    def times(self) -> int:
        """Return how often each element is computed, one less where the result keeps it."""
        assignment = self.reader.problem.assignment
        target, types = assignment.target.indices, {self.maker.problem.result.dtype}
        is_stored = any(access.indices == target for access in self.inlined)
        is_reused = is_stored and types == {self.reader.problem.result.dtype}
        return max(1, len(self.inlined) - is_reused)

    def orders(self) -> tuple[Order, ...] | None:
        """Return the loops of the reader's terms and of its inner sums; None where they clash."""
        orders_: list[Order] = []
        problem = self.reader.problem
        terms = split_terms(problem.assignment.value)
        (makes,) = self.maker.schedule.orders
        for term, order in zip(terms, self.reader.schedule.orders, strict=True):
            merged: Order | None = order
            for access in accesses(term.body):
                if merged is not None and access in self.inlined:
                    names = self._indices(access)
                    merged = merge_orders([names[index] for index in makes], merged)
            if merged is None:
                return None
            orders_.append(merged)
        return tuple(orders_)

    def _indices(self, access: Access) -> dict[str, str]:
        """Return the names that one access has for the maker's indices."""
        assignment = self.maker.problem.assignment
        return dict(zip(all_indices(assignment), all_indices(self.inlined[access]), strict=True))

    def problem(self) -> Problem:
        """Return the reader's problem with the temporary's value in place of each access."""

        def exchanged(access: Access) -> Expr:
            return self.inlined[access].value if access in self.inlined else access

        indices = {
            old: new for access_ in self.inlined for old, new in self._indices(access_).items()
        }
        return joined_problem(self.maker, self.reader, exchanged, self.tensors, indices)


def _pair(program: Program, name: str) -> _Pair | None:
    """Return the kernels that make and read an elementwise temporary; None where they do
    not fit.
    """
    maker = program.kernel(name)
    if isinstance(maker.problem.assignment.value, Reduce):
        return None
    readers = [step for step in program.steps if name in reads(step)]
    if len(readers) != 1 or name in program.results:
        return None
    (reader,) = readers
    if not isinstance(reader, KernelStep) or not (is_plain(maker) and is_plain(reader)):
        return None
    assignment, result = maker.problem.assignment, maker.problem.result
    dtypes = {operand: np.dtype(type.dtype) for operand, type in maker.problem.operands}
    called = [alias for alias, _ in reader.problem.operands if reader.source(alias) == name]
    if len(maker.schedule.orders) != 1 or result.fill:
        return None
    types = dict(reader.problem.operands)
    if (
        not _stored_alike(result, *(types[alias] for alias in called))
        or not assignment.target.indices
    ):
        return None
    if expression_dtype(assignment.value, dtypes).name != result.dtype:
        return None
    tensors = names_in_reader(maker, reader)
    names = Names(all_indices(reader.problem.assignment))
    inlined = {}
    for access in accesses(reader.problem.assignment.value):
        if access.tensor in called and access not in inlined:
            if len({*access.indices}) < len(access.indices):
                return None
            names_of = dict(zip(assignment.target.indices, access.indices, strict=True))
            fresh = {i: names_of.get(i) or names.fresh(i) for i in all_indices(assignment)}
            inlined[access] = rename(assignment, tensors, fresh)
    return _Pair(maker, reader, inlined, tensors)


def _stored_alike(*types: TensorType) -> bool:
    """Tell whether types are equal except for the order of coordinates."""
    return len({(str(type.format), type.dtype, type.stored) for type in types}) == 1


def _enclosing_indices(kernel: KernelStep, access: Access) -> frozenset[str]:
    """Return the indices of all loops in which a kernel reads an access."""
    assignment = kernel.problem.assignment
    enclosing = {*assignment.target.indices} if _stands_free(assignment.value, access) else set()
    terms = zip(split_terms(assignment.value), kernel.schedule.orders, strict=True)
    for term, order in terms:
        for sum_ in _sums_of(term.body, access):
            begin = min(order.index(index) for index in summed_indices(sum_))
            enclosing.update(v for v in order[:begin] if v in assignment.target.indices)
            enclosing.update(free_indices(_body(sum_)))
        if term.reduced and access in accesses(term.body):
            enclosing.update(free_indices(term.body))
    return frozenset(enclosing)


def _sums_of(expr: Expr, access: Access) -> Iterator[Reduce]:
    """Yield the innermost sums that an access stands in."""
    for node, _ in walk(expr):
        if isinstance(node, Reduce) and _stands_free(_body(node), access):
            yield node


def _body(sum_: Reduce) -> Expr:
    """Return the body of a sum and of the sums directly inside it."""
    _, body = peel_reductions(sum_, sum_.operator)
    return body


def _stands_free(expr: Expr, access: Access) -> bool:
    """Tell whether an access occurs in an expression outside of its sums."""
    if expr == access:
        return True
    if isinstance(expr, Reduce):
        return False
    return any(_stands_free(child, access) for child in children(expr))


def _outer_indices(sum_: Reduce, assignment: Assignment) -> frozenset[str]:
    """Return the indices of a temporary that a sum inside it depends on."""
    return frozenset(assignment.target.indices).intersection(free_indices(sum_))


def _steps(problem: Problem, machine: Machine) -> float:
    """Return the price of an element of a problem: of its functions, which outweigh the rest."""
    dtypes = {name: np.dtype(type.dtype) for name, type in problem.operands}
    price_ = machine.loops.vector_steps
    for node, _ in walk(problem.assignment.value):
        if isinstance(node, Call) and node.operator.c_operator in FUNCTIONS:
            spelled = FUNCTIONS[node.operator.c_operator].spellings
            kind = spelled.get(expression_dtype(node, dtypes).name)
            if isinstance(kind, CFunction):
                lanes = kind.vectorizes
                price_ += (
                    machine.loops.function_steps if lanes else machine.loops.called_function_steps
                )
    return price_


RULE = Rule(
    "inline_temporary",
    Phase.KERNEL,
    apply,
    kernels,
    Numbers.ROUNDS,
    Gain.DETOUR,
    traits=Trait.FUSES,
)
