"""The match of products whose rows are computed in blocks, each with an epilogue."""

from __future__ import annotations

from taco_py.compiler.epilogue.of_problem import MainLoop, main_loop
from taco_py.compiler.epilogue.value_graph import accesses_outside, is_summed
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import is_real
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem, TensorType

ROWS_WAY = "rows"


def with_epilogue(problem: Problem, schedule: Schedule) -> Make | None:
    """Return the way of rows where a problem is a product with an epilogue, else None.

    The outermost loop of the product must be over its rows.
    """
    (order, *_) = schedule.orders
    return None if product_in_rows(problem, order[0]) is None else Make(ROWS_WAY)


def order_of_product(problem: Problem, schedule: Schedule) -> tuple[str, ...]:
    """Return the order of the loops of a problem's product; other orders are those of further
    terms.

    sum(j, A[i,j] * B[j,k]) - C[i]    loops(i,j,k), loops(i,k)    →   i,j,k
    """
    loop = main_loop(problem)
    indices = set() if loop is None else {*all_indices(loop.problem.assignment)}
    return next((order for order in schedule.orders if {*order} == indices), schedule.orders[0])


def product_in_rows(problem: Problem, rows: str = "") -> MainLoop | None:
    """Return the problem as a product computed row by row with an epilogue, else None.

    rows  the index of its rows, "" for the first one of the result
    """
    loop = main_loop(problem, rows)
    if loop is None or not all(map(_is_plain, _outside(problem, loop))):
        return None
    if not is_real(loop.problem.result.dtype):
        return None
    sums = (output.target.tensor for output in loop.outputs if is_summed(loop.product, output))
    if not all(is_real(problem.type_of(name).dtype) for name in sums):
        return None
    return loop if all(_in_rows(problem, loop, a) for a in accesses(loop.product.value)) else None


def _outside(problem: Problem, loop: MainLoop) -> list[TensorType]:
    """Return the types of all tensors that visitors read and write."""
    value = loop.product.value
    names = {a.tensor for o in loop.outputs for a in (o.target, *accesses_outside(o.value, value))}
    return [problem.type_of(name) for name in names]


def _is_plain(type: TensorType) -> bool:
    return is_full(type.format) and not type.stored


def _in_rows(problem: Problem, loop: MainLoop, access: Access) -> bool:
    """Tell whether rows of an operand are an operand of the same kind.

    It has no rows, is dense, or has a segment of entries for each row.
    """
    if loop.product.rows not in access.indices:
        return True
    form = problem.type_of(access.tensor).format
    if is_full(form):
        return True
    root, *below = form.levels
    first, *_ = form.stored(access.indices)
    lists = [level.is_list for level in below]
    return root.full and lists == [True] and first == loop.product.rows
