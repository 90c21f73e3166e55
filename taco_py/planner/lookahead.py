"""What a kernel costs after the rules that still follow: the costs by which programs are compared.

    kernel   the cheaper of one kernel, and of its dense products in register tiles of their own
    loops    the cheapest of loops on operands as they are, with dense ones copied into rows, and
             with rows of lists looked up

A program is compared with another before its kernels are planned; what planning will do for them
has to be foreseen. Each cost is found once for all programs that have the kernel.
"""

from __future__ import annotations

from math import inf

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import fits_row
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.context import Context
from taco_py.planner.copies import OnCopies
from taco_py.planner.ir.goal import draft_of, real_statistics
from taco_py.planner.ir.nodes import Reformat
from taco_py.planner.ir.program import Program
from taco_py.planner.price import loops_price, meets_again, price, way_price
from taco_py.planner.rules.base import Site
from taco_py.planner.rules.layout import dense_root
from taco_py.planner.rules.layout.copy_into_rows import in_rows
from taco_py.planner.rules.layout.dense_root import rows_cost
from taco_py.planner.rules.split.split_dense_product import with_dense_products_split
from taco_py.planner.search import tried_at


@dataclass(frozen=True, slots=True)
class Lookahead:
    """The costs of kernels and programs with what the rules that follow will gain."""

    def program(self, program: Program, context: Context, limit: float = inf) -> float:
        """Return the cost of all kernels and of keeping temporaries."""
        return price(program, context, self.kernel, limit)

    def in_loops(self, program: Program, context: Context) -> float:
        """Return the cost of a program whose kernels are loops."""
        return price(program, context, self.loops)

    def kernel(self, program: Program, assignment: Assignment, context: Context) -> float:
        """Return the cost of an assignment as one kernel or with its dense products split off."""
        split, alone = self.ways(program, assignment, context)
        return split if split * context.goal.machine.copies.dense_detour_gain < alone else alone

    def ways(
        self, program: Program, assignment: Assignment, context: Context
    ) -> tuple[float, float]:
        """Return the costs with dense products split off, infinite where there are none, and as one
        kernel."""

        def find() -> float:
            draft = program.only_of(assignment)
            split = with_dense_products_split(draft, context)
            return inf if split is draft else price(split, context, self.alone)

        key = (
            Lookahead.ways,
            program.facts[assignment.target.tensor].type,
            context.goal.memory,
            *context.key(program, assignment),
        )
        return context.effort.recall(key, find), self.alone(program, assignment, context)

    def alone(self, program: Program, assignment: Assignment, context: Context) -> float:
        """Return the cost of one kernel: of its method where it has a price, else of loops."""

        def find() -> float:
            cost = way_price(program, assignment, context)
            return self.loops(program, assignment, context) if cost is None else cost

        type = program.facts[assignment.target.tensor].type
        key = (Lookahead.alone, type, *context.key(program, assignment))
        return context.effort.recall(key, find)

    def loops(self, program: Program, assignment: Assignment, context: Context) -> float:
        """Return the cost of the best loops of one kernel, on copies of operands where these
        pay."""

        def find() -> float:
            request = context.request(program, assignment.target.tensor)
            problem = draft_of(assignment, program.facts, request)
            cost = loops_price(program, problem, context)
            rows = in_rows(assignment, program.facts, request, Names(program.facts))
            if rows is not None:
                as_it_is = OnCopies(assignment, program.facts, request).loops_cost(real_statistics)
                pays = rows.cost * context.goal.machine.copies.dense_detour_gain < as_it_is
                cost = min(cost, rows.cost) if pays else cost
            if is_full(request.type.format) or fits_row(problem) or not meets_again(problem):
                return cost
            return min(cost, self._on_rows(program, assignment, context))

        type = program.facts[assignment.target.tensor].type
        return context.effort.recall(
            (Lookahead.loops, type, *context.key(program, assignment)), find
        )

    def _on_rows(self, program: Program, assignment: Assignment, context: Context) -> float:
        """Return the cost on copies of lists whose rows are looked up: these store nothing twice,
        so that a sparse result is appended to. Infinite where no copy pays, or where a size is not
        known, for another term has its index."""
        if not {*assignment.target.indices} <= {i for a in accesses(assignment) for i in a.indices}:
            return inf
        draft = program.only_of(assignment)
        on_rows = tried_at(dense_root.RULE, draft, Site(draft.result), context.drafting)
        if on_rows is draft:
            return inf
        copied = sum(
            rows_cost(on_rows.facts[copy.source], copy.format, context.goal.machine)
            for copy in on_rows.steps
            if isinstance(copy, Reformat)
        )
        return copied + self.loops(on_rows, on_rows.last, context)
