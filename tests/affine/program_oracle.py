"""The oracle of affine programs: a program run instance by instance, in the order of its text.

It is as simple as possible: no loop is interchanged, and every value is a NumPy scalar of the dtype
in which the compiled program computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from polyhedral.model import Statement, instances
from taco_py.compiler.affine.nest import to_nest
from taco_py.compiler.affine.nodes import Program, Update, subscripts
from taco_py.compiler.affine.statements import place, size_names
from taco_py.language.diagnostics.errors import DimensionError
from taco_py.language.notation.dtypes import operand_dtype
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce

Arrays = Mapping[str, NDArray[Any]]
DTypeOf = Callable[[Call], np.dtype[Any]]


def run_program(program: Program, arrays: Arrays, sizes: Mapping[str, int]) -> None:
    """Run `program` on `arrays`, which it changes in place; `sizes` has the sizes that ranges name.

    Raises:
        DimensionError: a subscript leaves its array.
        NotationError, OperandError: as `place`.
    """
    statements = place(program)
    lowered = to_nest(statements, size_names(program))
    modes = {name: arrays[mode[0]].shape[mode[1]] for mode, name in lowered.sizes.items()}
    values = {**modes, **sizes}
    updates = {statement.name: statement.update for statement in statements}
    dtypes = {name: array.dtype for name, array in arrays.items()}
    dtype_of = cache(lambda call: operand_dtype(call, dtypes))
    timed = [
        (_time(statement, point), statement.name, point)
        for statement in lowered.nest.statements
        for point in instances(statement, values)
    ]
    for _, name, point in sorted(timed, key=lambda pair: pair[0]):
        _run(updates[name], arrays, {**values, **point}, dtype_of)


def _time(statement: Statement, point: Mapping[str, int]) -> tuple[int, ...]:
    """Return the time of an instance: order numbers and loop values in turns, compared in that
    order."""
    time = [statement.order[0]]
    for name, order in zip(statement.variables, statement.order[1:], strict=True):
        time += [point[name], order]
    return tuple(time)


def _run(update: Update, arrays: Arrays, values: Mapping[str, int], dtype_of: DTypeOf) -> None:
    value = update.value
    if update.operator is not None:
        value = Call(update.operator, (update.target, value))
    with np.errstate(all="ignore"):
        result = np.asarray(_value(value, arrays, values, dtype_of))
        array = arrays[update.target.tensor]
        array[_place(update.target, arrays, values)] = result.astype(array.dtype)


def _value(expr: Expr, arrays: Arrays, values: Mapping[str, int], dtype_of: DTypeOf) -> Any:
    match expr:
        case Literal(value):
            return value
        case Access():
            return arrays[expr.tensor][_place(expr, arrays, values)]
        case Call():
            dtype = dtype_of(expr)
            args = (np.asarray(_value(arg, arrays, values, dtype_of)) for arg in expr.args)
            return expr.operator.evaluate(*(arg.astype(dtype) for arg in args))
        case Reduce():
            raise TypeError("a program has no sums inside expressions")
        case _:
            assert_never(expr)


_subscripts = cache(subscripts)


def _place(access: Access, arrays: Arrays, values: Mapping[str, int]) -> tuple[int, ...]:
    place = tuple(subscript.evaluate(values) for subscript in _subscripts(access))
    shape = arrays[access.tensor].shape
    if not all(0 <= at < size for at, size in zip(place, shape, strict=True)):
        raise DimensionError(
            f"Expected {access.tensor}[{', '.join(access.indices)}] inside {access.tensor} of "
            f"shape {shape}, found {list(place)}",
            access.span,
        )
    return place
