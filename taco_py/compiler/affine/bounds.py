"""Checks for each call that explicit ranges keep every access inside its array.

Intervals of the indices answer most calls at once. Where they cannot, as in a triangle, ISL
searches for an instance that is outside; the answer that there is none is cached.
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
    """Raise DimensionError where a subscript of explicit indices alone leaves its array.

    values  of all parameters and sizes of modes
    """
    for required in lowered.required:
        size = values[lowered.sizes[required.access.tensor, required.mode]]
        statement = lowered.nest.statement(required.statement)
        if never_runs(statement, values):
            continue
        inside = ranges(statement, values)
        intervals = {**{name: (value, value) for name, value in values.items()}, **inside}
        low, high = interval(required.subscript, intervals)
        if low < 0 or high >= size:
            key = ("inside", lowered.nest, required, size, tuple(values.items()))
            if KERNELS.memo.get(key) is None:
                _look(lowered, statement, required, size, values)
                KERNELS.memo.put(key, True)


def _look(
    lowered: Lowered, statement: Statement, required: Required, size: int, values: Mapping[str, int]
) -> None:
    for outside in (-required.subscript - 1, required.subscript - size):
        instance = _instance(lowered, statement, outside, values)
        if instance is not None:
            at = ", ".join(f"{name} = {value}" for name, value in instance.items())
            access, place = required.access, required.subscript.evaluate({**values, **instance})
            raise DimensionError(
                f"Expected {access.tensor}[{', '.join(access.indices)}] inside {access.tensor}, of "
                f"size {size} along mode {required.mode}, found subscript {place} where {at}",
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
