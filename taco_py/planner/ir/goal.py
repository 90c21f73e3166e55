"""What a plan is made for: the wanted result, the problem of an assignment, its statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from math import inf, prod

from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import copies_pattern
from taco_py.compiler.cost.calibrated import machine_here
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import Pattern, Statistics
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.compiler.ways.library_choice import Libraries
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, all_indices, operand_names
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.ir.formats import appendable
from taco_py.planner.ir.log import Decision
from taco_py.planner.ir.nodes import Operand

LEAST_SIZE = 64
"""A size below which no size is told from another, in tensors of no more elements than a matrix of
that size."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller wants of the last result.

    type    how it is stored
    static  sizes to compile in, by index
    effort  the searches for loop orders: how long they may take, and what they have found
    memory  elements that each intermediate of a contraction may store
    forms   False leaves sums in products as they are written, True multiplies them out; None for
            what costs less
    look_up whether copies may be made in which entries are looked up
    libraries  those whose routines may be called, or None for none (`make.Options`)
    any_order  whether the modes of a sparse result may be stored in any order
    path    pairwise contractions in einsum's numbering that the user asks for, None to choose
    left_out  the rules that take no part, by name
    reversed  comparisons of prices that are decided the other way
    orders  of loops that are asked for: what an assignment makes, the number of its term, its loops
    sized   whether the plan is for calls with operands of these size classes only, so that kernels
            may have short sizes compiled in
    allow   what may be lost where the user says so: "cancellation", the digits of differences
    machine  the machine that the plan is for
    """

    type: TensorType
    static: tuple[tuple[str, int], ...] = ()
    effort: Effort = field(default_factory=Effort, compare=False, repr=False)
    memory: float = inf
    forms: bool | None = None
    look_up: bool = True
    libraries: Libraries | None = None
    sized: bool = False
    any_order: bool = False
    path: tuple[tuple[int, ...], ...] | None = None
    left_out: frozenset[str] = frozenset()
    reversed: frozenset[Decision] = frozenset()
    orders: frozenset[tuple[str, int, tuple[str, ...]]] = frozenset()
    allow: frozenset[str] = frozenset()
    machine: Machine = NOMINAL

    def statistics(self, assignment: Assignment, operands: Mapping[str, Operand]) -> Statistics:
        """Return `statistics`; of the actual operands where memory is limited."""
        statistics_of = statistics if self.memory == inf else real_statistics
        return statistics_of(assignment, operands, self.machine)

    def on(self, target: str) -> Request:
        """Return the request for kernels of a target, by the prices of the machine here.

        A request that has another machine of this target already keeps it.
        """
        if self.machine is not NOMINAL and self.machine.target.name == target:
            return self
        return replace(self, machine=machine_here(target))

    def order_of(self, target: str, term: int, indices: Iterable[str]) -> tuple[str, ...] | None:
        """Return the requested loop order of a term over these indices; None where none was
        requested.
        """
        loops = {*indices}
        orders = (order for name, place, order in self.orders if (name, place) == (target, term))
        return next((order for order in orders if {*order} == loops), None)

    @property
    def as_written(self) -> Request:
        """Return the request that keeps sums and operands as the text writes them."""
        return replace(self, forms=False, look_up=False, effort=replace(self.effort, rows=False))


def statistics(
    assignment: Assignment, operands: Mapping[str, Operand], machine: Machine = NOMINAL
) -> Statistics:
    """Return sizes and patterns of an assignment's operands, tiny ones scaled down to small ones.

    The best order of a kernel that takes microseconds does not matter; that it is the order of the
    next larger operands does, for the kernel is compiled then already.
    """
    read = [operands[access.tensor] for access in accesses(assignment)]
    tiny = all(
        max(operand.shape, default=0) < LEAST_SIZE and operand.nnz <= LEAST_SIZE * LEAST_SIZE
        for operand in read
    )
    return _statistics(assignment, operands, LEAST_SIZE if tiny else 1, machine)


def real_statistics(
    assignment: Assignment, operands: Mapping[str, Operand], machine: Machine = NOMINAL
) -> Statistics:
    """Return sizes and patterns of one assignment's operands as they are."""
    return _statistics(assignment, operands, 1, machine)


def _statistics(
    assignment: Assignment, operands: Mapping[str, Operand], floor: int, machine: Machine
) -> Statistics:
    reads = list(accesses(assignment))
    sizes: dict[str, float] = {}
    for access in reads:
        shape = operands[access.tensor].shape
        sizes.update((i, float(max(n, floor))) for i, n in zip(access.indices, shape, strict=True))
    patterns = {}
    for access in reads:
        operand = operands[access.tensor]
        volume = prod((sizes[i] for i in access.indices), start=1.0)
        form = operand.type.format
        nnz = volume if is_full(form) else min(volume, max(operand.nnz, floor * floor / 8))
        entries = None if is_full(form) or floor > 1 else operand.entries
        patterns[access.tensor] = Pattern(nnz, form, entries)
    return Statistics(sizes, patterns, machine)


def problem_of(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> Problem:
    """Return `assignment` over the types of its operands."""
    types = tuple((name, operands[name].type) for name in operand_names(assignment))
    vast = vast_indices(assignment, operands, request.machine)
    return Problem(assignment, types, request.type, request.static, vast)


def vast_indices(
    assignment: Assignment, operands: Mapping[str, Operand], machine: Machine
) -> tuple[str, ...]:
    """Return the indices that have far more coordinates than all operands have entries.

    Both are compared as numbers of bits, for problems of one size class share plans.
    """
    entries = int(sum(operands[name].nnz for name in operand_names(assignment))).bit_length()
    sizes: dict[str, int] = {}
    for access in accesses(assignment):
        sizes.update(zip(access.indices, operands[access.tensor].shape, strict=True))
    least = max(machine.copies.vast_size_bits, entries + machine.copies.vast_margin_bits)
    return tuple(i for i in all_indices(assignment) if sizes.get(i, 0).bit_length() > least)


def draft_of(assignment: Assignment, operands: Mapping[str, Operand], request: Request) -> Problem:
    """Return `problem_of` with a result that a kernel can append to, before loop orders are
    known."""
    problem = problem_of(assignment, operands, request)
    if copies_pattern(problem):
        return problem
    result = problem.result
    return replace(problem, result=replace(result, format=appendable(result.format)))
