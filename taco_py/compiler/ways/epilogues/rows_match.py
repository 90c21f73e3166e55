"""Whether a product can be made in blocks of rows, each of which an epilogue goes through."""

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
    """Return the way of rows, where a problem is a product and values of its elements, and the
    outermost loop of the product is over its rows."""
    (order, *_) = schedule.orders
    return None if product_in_rows(problem, order[0]) is None else Make(ROWS_WAY)


def order_of_product(problem: Problem, schedule: Schedule) -> tuple[str, ...]:
    """Return the order of the loops of a problem's product: others are of terms that are added to
    it.

    sum(j, A[i,j] * B[j,k]) - C[i]    loops(i,j,k), loops(i,k)    →   i,j,k
    """
    found = main_loop(problem)
    own = set() if found is None else {*all_indices(found.problem.assignment)}
    return next((order for order in schedule.orders if {*order} == own), schedule.orders[0])


def product_in_rows(problem: Problem, rows: str = "") -> MainLoop | None:
    """Return the problem as a product whose rows are made one after the other, and what is done
    with its elements; None for others.

    rows  the index of its rows, "" for the first one of the result
    """
    found = main_loop(problem, rows)
    if found is None or not all(map(_is_plain, _outside(problem, found))):
        return None
    if not is_real(found.problem.result.dtype):
        return None
    sums = (each.target.tensor for each in found.outputs if is_summed(found.product, each))
    if not all(is_real(problem.type_of(name).dtype) for name in sums):
        return None
    return (
        found if all(_in_rows(problem, found, a) for a in accesses(found.product.value)) else None
    )


def _outside(problem: Problem, found: MainLoop) -> list[TensorType]:
    """Return the types of all that visitors read and write."""
    value = found.product.value
    names = {a.tensor for o in found.outputs for a in (o.target, *accesses_outside(o.value, value))}
    return [problem.type_of(name) for name in names]


def _is_plain(type: TensorType) -> bool:
    return is_full(type.format) and not type.stored


def _in_rows(problem: Problem, found: MainLoop, access: Access) -> bool:
    """Tell whether rows of an operand are an operand of the same kind: it has no rows, is dense, or
    has a list of entries for each row."""
    if found.product.rows not in access.indices:
        return True
    form = problem.type_of(access.tensor).format
    if is_full(form):
        return True
    root, *below = form.levels
    first, *_ = form.stored(access.indices)
    lists = [level.is_list for level in below]
    return root.full and lists == [True] and first == found.product.rows
