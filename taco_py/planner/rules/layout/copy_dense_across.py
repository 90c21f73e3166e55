"""Copy operands of a dense product into an order that its loops run along, where that pays.

    C[c,f,a] = sum(e, A[a,e,c] * B[e,f,a])     a128 c3 e64 f24
    →   A_cea = A stored as c,e,a;  C[c,f,a] = sum(e, A_cea[a,e,c] * B[e,f,a])     loops along a

Loops that stride through an operand take one element of a vector at a time, and a line of it for
each where it is large. What loops and tiles take, on the operands as they are and on copies, is
estimated (`ways.dense_seconds`), and copies are made where that clearly takes less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.names import Names
from taco_py.compiler.ways.contraction_match import contraction_of, factors_of
from taco_py.compiler.ways.dense_product import dense_product
from taco_py.compiler.ways.dense_seconds import Turned, best, seconds_of_loops, seconds_of_tiles
from taco_py.language.formats import dense
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.tree import map_accesses
from taco_py.planner.ir.goal import Request, problem_of, real_statistics
from taco_py.planner.ir.nodes import Cast, Operand
from taco_py.planner.rules.base import Gain, Phase, Rule, StepsBefore, result, with_steps_before


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
    if factors is None or product is None or product.points < machine.small_factor_iterations:
        return None
    plain = min(seconds_of_loops(product), seconds_of_tiles(product))
    found = best(product)
    if not any(found.copied):
        return None
    why = (
        f"loops along {found.contiguous} take about {found.seconds:.1e} s with what is copied, on "
        f"the operands as they are {seconds_of_loops(product):.1e} s, tiles "
        f"{seconds_of_tiles(product):.1e} s"
    )
    facts = dict(operands)
    steps = _copies(found, factors, facts, names, why)

    def copied(access: Access) -> Access:
        return replace(access, tensor=steps[access].target) if access in steps else access

    changed = replace(assignment, value=map_accesses(assignment.value, copied))
    return StepsBefore(changed, facts, tuple(steps.values()), why, plain, found.seconds)


def _copies(
    found: Turned,
    factors: tuple[Access, Access],
    operands: dict[str, Operand],
    names: Names,
    why: str,
) -> dict[Access, Cast]:
    """Return the copies, by the access that reads each; they are added to the operands."""
    steps: dict[Access, Cast] = {}
    stored = (found.product.left, found.product.right)
    for access, order, wanted in zip(factors, stored, found.copied, strict=True):
        if not wanted:
            continue
        source = operands[access.tensor]
        form = replace(dense(len(order)), mode_order=tuple(map(access.indices.index, order)))
        target = names.fresh(f"{access.tensor}_{''.join(order)}")
        steps[access] = Cast(target, access.tensor, form, source.type.dtype, why)
        type = replace(source.type, format=form, unit_stride=True, stored="")
        joined = (True,) * (len(order) - 1)
        operands[target] = Operand(type, source.shape, source.nnz, joined=joined)
    return steps


RULE = Rule("copy_dense_across", Phase.LAYOUT, with_steps_before(turn), result, gain=Gain.DENSE)
