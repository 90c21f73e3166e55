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
from taco_py.concrete.concretize import fits_row
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Assignment
from taco_py.plan.context import Context
from taco_py.plan.ir.goal import draft_of
from taco_py.plan.ir.program import Program
from taco_py.plan.price import loops_price, meets_again, price, way_price
from taco_py.plan.rules.layout.copy_into_rows import in_rows
from taco_py.plan.rules.layout.dense_root import look_up_rows, rows_cost
from taco_py.plan.rules.split.split_dense_product import with_dense_products_split


@dataclass(frozen=True, slots=True)
class Lookahead:
    """The costs of kernels and programs with what the rules that follow will gain."""

    def program(self, program: Program, context: Context, limit: float = inf) -> float:
        """The cost of all kernels and of keeping temporaries."""
        return price(program, context, self.kernel, limit)

    def in_loops(self, program: Program, context: Context) -> float:
        """The cost of a program whose kernels are loops."""
        return price(program, context, self.loops)

    def kernel(self, program: Program, assignment: Assignment, context: Context) -> float:
        """The cost of an assignment as one kernel or, where that is cheaper, with its dense
        products in register tiles apart."""
        split, alone = self.ways(program, assignment, context)
        return split if split * context.goal.machine.dense_detour_gain < alone else alone

    def ways(
        self, program: Program, assignment: Assignment, context: Context
    ) -> tuple[float, float]:
        """The costs with dense products split off, infinite where there are none, and as one
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
        """The cost of one kernel: of the way that it is made where that has one, else of loops."""

        def find() -> float:
            own = way_price(program, assignment, context)
            return self.loops(program, assignment, context) if own is None else own

        type = program.facts[assignment.target.tensor].type
        key = (Lookahead.alone, type, *context.key(program, assignment))
        return context.effort.recall(key, find)

    def loops(self, program: Program, assignment: Assignment, context: Context) -> float:
        """The cost of the best loops of one kernel, on copies of operands where these pay."""

        def find() -> float:
            request = context.request(program, assignment.target.tensor)
            cost = loops_price(program, assignment, context)
            rows = in_rows(assignment, program.facts, request, Names(program.facts))
            cost = min(cost, rows.cost) if rows.why else cost
            problem = draft_of(assignment, program.facts, request)
            if request.type.format.is_dense or fits_row(problem):
                return cost
            if not meets_again(program, assignment, context):
                return cost
            return min(cost, self._on_rows(program, assignment, context))

        type = program.facts[assignment.target.tensor].type
        return context.effort.recall(
            (Lookahead.loops, type, *context.key(program, assignment)), find
        )

    def _on_rows(self, program: Program, assignment: Assignment, context: Context) -> float:
        """The cost on copies of lists whose rows are looked up: these store nothing twice, so that
        a sparse result is appended to. Infinite where no copy pays, or where a size is not known,
        for another term has its index."""
        if not {*assignment.target.indices} <= {i for a in accesses(assignment) for i in a.indices}:
            return inf
        request = context.request(program, assignment.target.tensor)
        changed, facts, copies = look_up_rows(
            assignment, program.facts, request, Names(program.facts)
        )
        if not copies:
            return inf
        machine = request.machine
        copied = sum(rows_cost(facts[copy.source], copy.format, machine) for copy in copies)
        return copied + self.loops(program.with_facts(facts), changed, context)
