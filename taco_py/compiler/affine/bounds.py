"""That written ranges keep every access inside its array, checked for each call.

Intervals of the indices answer most calls at once. Where they cannot, as in a triangle, ISL looks
for an instance that is outside; that there is none is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyhedral.affine import Affine, variable
from polyhedral.isl.limits import limited
from polyhedral.isl.pairs import instance_where
from polyhedral.model import Statement
from polyhedral.nests.directions import interval, never_runs, ranges
from taco_py.compiler.affine.index_ranges import Required
from taco_py.compiler.affine.nest import Lowered
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import DimensionError


def check_inside(lowered: Lowered, values: Mapping[str, int]) -> None:
    """Raise DimensionError where a subscript of written indices alone leaves its array.

    values  of all parameters and sizes of modes
    """
    for each in lowered.required:
        size = values[lowered.sizes[each.access.tensor, each.mode]]
        statement = lowered.nest.statement(each.statement)
        if never_runs(statement, values):
            continue
        inside = ranges(statement, values)
        known = {**{name: (value, value) for name, value in values.items()}, **inside}
        low, high = interval(each.subscript, known)
        if low < 0 or high >= size:
            key = ("inside", lowered.nest, each, size, tuple(values.items()))
            if KERNELS.memo.get(key) is None:
                _look(lowered, statement, each, size, values)
                KERNELS.memo.put(key, True)


def _look(
    lowered: Lowered, statement: Statement, each: Required, size: int, values: Mapping[str, int]
) -> None:
    for outside in (-each.subscript - 1, each.subscript - size):
        found = _instance(lowered, statement, outside, values)
        if found is not None:
            at = ", ".join(f"{name} = {value}" for name, value in found.items())
            access, place = each.access, each.subscript.evaluate({**values, **found})
            raise DimensionError(
                f"Expected {access.tensor}[{', '.join(access.indices)}] inside {access.tensor}, of "
                f"size {size} along mode {each.mode}, found subscript {place} where {at}",
                access.span,
                "narrow the range, or leave its end out: the loop then ends where accesses do",
            )


def _instance(
    lowered: Lowered, statement: Statement, outside: Affine, values: Mapping[str, int]
) -> dict[str, int] | None:
    fixed = tuple(
        condition
        for name in lowered.nest.parameters
        for condition in (variable(name) - values[name], values[name] - variable(name))
    )
    with limited(0) as context:
        return instance_where(context, lowered.nest, statement, (outside, *fixed))
