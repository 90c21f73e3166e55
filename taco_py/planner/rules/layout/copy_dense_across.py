"""Copy operands of a dense product into an order that its loops run along, where that pays.

    C[c,f,a] = sum(e, A[a,e,c] * B[e,f,a])     a128 c3 e64 f24
    →   A_cea = A stored as c,e,a;  C[c,f,a] = sum(e, A_cea[a,e,c] * B[e,f,a])     loops along a

Loops that stride through an operand take one element of a vector at a time, and a line of it for
each where it is large. What loops and tiles take, on the operands as they are and on copies, is
estimated (`ways.dense_seconds`), and copies are made where that clearly takes less.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.names import Names
from taco_py.compiler.ways.contraction_match import contraction_of, factors_of
from taco_py.compiler.ways.dense_product import dense_product
from taco_py.compiler.ways.dense_seconds import best, seconds_of_loops, seconds_of_tiles
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.copies import OnCopies, dense_in_order
from taco_py.planner.ir.goal import Request, problem_of, real_statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.rules.base import (
    Gain,
    Phase,
    Rule,
    StepsBefore,
    Trait,
    result,
    with_steps_before,
)


def turn(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request, names: Names
) -> StepsBefore | None:
    """Read copies where loops on them take clearly less than any kernel on the operands."""
    problem = problem_of(assignment, operands, request)
    if not request.sized or contraction_of(problem) is None:
        return None
    factors = factors_of(problem)
    machine = request.machine
    product = dense_product(problem, real_statistics(assignment, operands, machine))
    if factors is None or product is None or product.points < machine.calls.small_factor_iterations:
        return None
    plain = min(seconds_of_loops(product), seconds_of_tiles(product))
    tiling = best(product)
    if not any(tiling.copied):
        return None
    reason = (
        f"loops along {tiling.contiguous} take about {tiling.seconds:.1e} s with what is copied, "
        f"on the operands as they are {seconds_of_loops(product):.1e} s, tiles "
        f"{seconds_of_tiles(product):.1e} s"
    )
    arrays = zip(factors, (tiling.product.left, tiling.product.right), tiling.copied, strict=True)
    forms = {access: dense_in_order(access, order) for access, order, order_ in arrays if order_}
    on = OnCopies(assignment, operands, request).in_orders(forms, names, reason)
    return StepsBefore(on.assignment, on.facts, on.steps, reason, plain, tiling.seconds)


RULE = Rule(
    "copy_dense_across",
    Phase.LAYOUT,
    with_steps_before(turn),
    result,
    gain=Gain.DENSE,
    traits=Trait.INDICES,
)
