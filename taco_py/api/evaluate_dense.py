"""`evaluate_dense`: what `evaluate` computes, by NumPy, whole arrays at a time."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.operands import as_number as weak_number
from taco_py.arguments.operands import bind_operands, check_names, is_number, read_operand
from taco_py.arguments.option_checks import merged
from taco_py.arguments.options import CallOptions
from taco_py.arguments.results import container
from taco_py.arguments.semiring_mask import SemiringMask, semiring_mask_of
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.requested_outputs import requested_outputs
from taco_py.calls.call.semirings.over_semirings import to_arithmetic
from taco_py.calls.call.semirings.over_statements import arithmetic_statements
from taco_py.calls.indexed.by_fancy_indexing import gather, write
from taco_py.calls.indexed.domains import ERROR, FILL, BoundaryOptions
from taco_py.calls.indexed.indexed_statements import (
    AMONG_SEVERAL,
    OVER_SEMIRINGS,
    boundary_options,
    is_indexed,
    refuse_computed_positions,
    refuse_scatter,
)
from taco_py.calls.indexed.sparse_stored import stored_like
from taco_py.calls.statements.duplicates import read_types
from taco_py.calls.statements.elaborate import ResultOptions, elaborate
from taco_py.calls.statements.read_text import (
    accumulated,
    by_name,
    names_read,
    statements_of,
    target_of,
)
from taco_py.calls.statements.sequence import check_passed, in_single_assignment, partition_live
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.pack import is_unique, to_dense, unpack
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, TensorData, converted_to
from taco_py.data.tensors.byte_counts import limited
from taco_py.data.tensors.tensor import Tensor
from taco_py.data.tensors.traced_operands import is_traced
from taco_py.language import oracle
from taco_py.language.diagnostics.cautions import issue_warnings as give_cautions
from taco_py.language.diagnostics.errors import DimensionError, OperandError
from taco_py.language.fill import as_number
from taco_py.language.legal.types import computes_exactly
from taco_py.language.notation.checks import accesses, free_indices, operand_names
from taco_py.language.notation.dtypes import dtype_of_number, sum_dtype
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.operators import ADD, MUL, Number
from taco_py.language.notation.rewrites.fills import with_fills
from taco_py.language.notation.rewrites.semirings import Semiring
from taco_py.language.notation.rewrites.wide_sums import wide_sums
from taco_py.language.notation.tree import all_calls
from taco_py.planner.statements import fills_of

OPTIONS = frozenset(
    {"initial", "stored", "outputs", "border", "shape", "semiring", "mask", "memory_limit"}
)
SMALLER = "evaluate makes no intermediate over all indices; here smaller operands help"


def evaluate_dense(
    text: str | Assignment,
    operands: Mapping[str, Any] | None = None,
    /,
    initial: ArrayLike | None = None,
    stored: Mapping[str, ArrayLike] | None = None,
    outputs: Sequence[str] | str | None = None,
    border: str = "error",
    shape: Sequence[int] | int | None = None,
    semiring: Semiring | str | None = None,
    mask: Any = None,
    memory_limit: int | str | None = None,
    **named: Any,
) -> Any:
    """Compute index notation by NumPy alone, one array operation for each operator.

    >>> A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> tp.evaluate_dense("y[i] = A[i,j] * x[j]", A=A, x=x)
    array([7., 6.])
    >>> tp.evaluate_dense("y[i] += A[i,j] * x[j]", A=A, x=x, initial=np.ones(2))
    array([8., 7.])

    It compiles nothing, and every intermediate result is a dense array over all of its indices: for
    small operands, to compare with. Sparse operands keep what is stored apart from what is not:

        A[i,j] / x[i] = 0        where A stores nothing, also if x[i] is 0, infinite or NaN
        A[i,j] / x[i] = 0 / 0    where A stores a zero, or is a dense array: NaN, as in NumPy

    text      index notation, or a parsed assignment, whose sums have the type of their terms, as
              einsum's have
    operands, named  as a mapping or by name: all that `evaluate` takes
    initial   what the left-hand side holds before `+=`; where it is not given, the operand of that
              name, or zeros where there is none
    stored    by name, where an operand stores something, a boolean array of its shape; where not
              given, sparse operands say so themselves and others store all elements
    outputs   the names that are wanted of several statements, as in `evaluate`; each statement is
              computed by itself, and what it makes stores what `evaluate` would store of it
    border, shape   as in `evaluate`
    semiring, mask  as in `evaluate`; what is not computed is the semiring's zero
    memory_limit  bytes that the largest array on its way may take, as in `evaluate`

    Raises what `evaluate` raises for a mistake in the text or the operands, and OutOfMemoryError
    where an intermediate result has no room.
    """
    if memory_limit is not None:
        return limited(evaluate_dense, locals())
    objects = (
        by_name(text, operands, (), named) if isinstance(text, str) else merged(operands, named)
    )
    statements = _read(text, objects) if isinstance(text, str) else (text,)
    objects = _all_known(statements, objects)
    over = semiring_mask_of(semiring, mask, False)
    if len(statements) > 1 or outputs is not None:
        _refuse_initial(initial)
        return _several(statements, objects, outputs, stored or {}, (border, shape), over)
    (assignment,) = statements
    if isinstance(assignment, Assignment):
        used = accumulated(assignment, {**objects, **dict.fromkeys(_target(assignment))})
        check_names(used, (*objects, *_target(assignment)), OPTIONS)
    wide = isinstance(text, str)
    if not over.is_usual:
        if is_indexed(assignment, border, shape) or _has_ones(objects):
            refuse_scatter(assignment.target, OVER_SEMIRINGS)
            ends = boundary_options(border, shape)
            (assignment,), objects, stored = _gathered(statements, objects, stored or {}, ends)
            border, shape = ERROR, None
        array = CallOptions(format="d" * len(assignment.target.indices))
        assignment, call = to_arithmetic(assignment, CallArguments(objects, array, over=over))
        objects, wide = dict(call.objects), wide and call.options.wide_sums
    arrays = _with_weak_numbers({name: _array(obj, name) for name, obj in objects.items()})
    with room("what evaluate_dense makes on its way", _largest(assignment, arrays), SMALLER):
        if not isinstance(assignment, Assignment) or not is_indexed(assignment, border, shape):
            try:
                return _evaluated(wide, assignment, objects, dict(arrays), initial, stored)
            except DimensionError:
                if all(1 not in np.shape(array) for array in arrays.values()):
                    raise
        boundary = boundary_options(border, shape)
        return _at_subscripts(wide, assignment, objects, arrays, initial, stored, boundary)


def _refuse_initial(initial: ArrayLike | None) -> None:
    """Raise OperandError for an initial value, which several statements do not take."""
    if initial is not None:
        raise OperandError(
            "Expected no initial= for several statements, found one",
            hint="pass what is added to as an operand by its name",
        )


def _several(
    statements: Sequence[Assignment],
    objects: Mapping[str, Any],
    outputs: Sequence[str] | str | None,
    stored: Mapping[str, ArrayLike],
    ends: tuple[Any, Any],
    over: SemiringMask,
) -> Any:
    """Compute statements; ends are the arguments border and shape."""
    requested = requested_outputs(statements, outputs)
    if any(is_indexed(statement, *ends) for statement in statements) or _has_ones(objects):
        boundary = boundary_options(*ends, several=True)
        single = in_single_assignment(statements, requested.outputs, objects)
        check_passed(statements, single, objects, OPTIONS)
        for statement in statements:
            refuse_scatter(statement.target, AMONG_SEVERAL)
        refuse_computed_positions(statements)
        statements, _ = partition_live(statements, requested.outputs)
        statements, objects, stored = _gathered(statements, objects, stored, boundary)
    wide = True
    if not over.is_usual:
        dense = {step.target.tensor: "d" * len(step.target.indices) for step in statements}
        forms = replace(requested, formats={name: dense[name] for name in requested.outputs})
        computation = Computation(tuple(statements), objects, CallOptions(), forms)
        computation, _ = arithmetic_statements(computation, over)
        statements, objects = computation.assignments, dict(computation.objects)
        wide = computation.options.wide_sums
    results = _in_order(statements, objects, requested.outputs, stored, wide)
    return results[0] if requested.alone else results


def _has_ones(objects: Mapping[str, Any]) -> bool:
    """Tell whether an operand has a mode of size 1, which may be stretched."""
    return any(1 in np.shape(_array(obj, name)) for name, obj in objects.items())


def _read(text: str, names: Container[str]) -> tuple[Assignment, ...]:
    """Return the assignments of a text, with their sums; their cautions are given."""
    read = statements_of(text, names)
    for statement in read:
        give_cautions(statement.cautions)
    return tuple(statement.assignment for statement in read)


def _gathered(
    assignments: Sequence[Assignment],
    objects: Mapping[str, Any],
    stored: Mapping[str, ArrayLike],
    boundary: BoundaryOptions,
) -> tuple[tuple[Assignment, ...], dict[str, Any], dict[str, ArrayLike]]:
    """Return statements over indices alone, their operands, and where these store something."""
    arrays = {name: _array(obj, name) for name, obj in objects.items()}
    masks = {name: _places(obj, name) for name, obj in objects.items() if _is_sparse(obj)}
    masks.update((name, np.asarray(mask, bool)) for name, mask in stored.items())
    absent = {name: _fill(obj) for name, obj in objects.items()}
    results: dict[str, Array] = {}
    statements, operands, places = [], dict[str, Any](), dict[str, ArrayLike]()
    for assignment in assignments:
        name = assignment.target.tensor
        start = results.get(name, arrays.get(name)) if assignment.operator is not None else None
        fills = boundary.border == FILL
        read = gather(
            assignment, {**arrays, **results}, masks, fills, boundary.shape, start, absent, results
        )
        for gathered, source in read.sources.items():
            operands[gathered] = read.arrays[gathered]
            if gathered in read.stored:
                places[gathered] = read.stored[gathered]
            if gathered in places and _is_sparse(objects.get(source)):
                columns = np.nonzero(np.asarray(places[gathered]))
                data = read_operand(objects[source], source)
                values, shape = operands[gathered][columns], operands[gathered].shape
                operands[gathered] = stored_like(objects[source], data, columns, values, shape)
        if assignment.operator is not None and name in objects:
            operands[name] = objects[name]
        statements.append(read.assignment)
        results[name] = np.zeros(read.extents, bool)
    return tuple(statements), operands, places


def _at_subscripts(
    wide: bool,
    assignment: Assignment,
    objects: Mapping[str, Any],
    arrays: dict[str, Any],
    initial: ArrayLike | None,
    stored: Mapping[str, ArrayLike] | None,
    boundary: BoundaryOptions,
) -> Array:
    """Compute an assignment with subscripts that are more than indices."""
    masks = {name: _places(obj, name) for name, obj in objects.items() if _is_sparse(obj)}
    accumulator = arrays.get(target_of(assignment, objects)) if initial is None else initial
    absent = {name: _fill(obj) for name, obj in objects.items()}
    places, fills = {**masks, **(stored or {})}, boundary.border == FILL
    read = gather(assignment, arrays, places, fills, boundary.shape, accumulator, absent)
    fill_of = {alias: absent[name] for alias, name in read.sources.items() if name in masks}
    start = None if read.destination is not None else initial

    def value_of(operands: dict[str, Any]) -> Array:
        return _evaluated(wide, read.assignment, operands, operands, start, read.stored, fill_of)

    value = value_of(read.arrays)
    if read.destination is None:
        return value
    dtype = value.dtype if accumulator is None else np.asarray(accumulator).dtype
    sums = sum_dtype(value.dtype, target=None if accumulator is None else dtype)
    if assignment.operator in (ADD, MUL) and sums != value.dtype:  # as what is summed has
        names = operand_names(read.assignment)
        value = value_of({name: np.asarray(read.arrays[name]).astype(sums) for name in names})
        value = value.astype(sums, copy=False)  # truths of comparisons are counted
    return write(assignment, value, read.destination, accumulator)


def _target(assignment: Assignment) -> tuple[str, ...]:
    """Name the left-hand side where it is added to, which need not be an operand."""
    return () if assignment.operator is None else (assignment.target.tensor,)


def _largest(assignment: Assignment, arrays: Mapping[str, Any]) -> int:
    """Count the bytes of the largest intermediate at least, as far as sizes are known."""
    if not isinstance(assignment, Assignment):
        return 0
    sized = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    sizes: dict[str, int] = {}
    for access in accesses(assignment.value):
        if access.tensor in sized:
            sizes.update(zip(access.indices, sized[access.tensor].shape, strict=False))
    calls = all_calls(assignment.value)
    counts = (prod(sizes.get(index, 1) for index in free_indices(call)) for call in calls)
    return max(counts, default=0) * min((array.itemsize for array in sized.values()), default=1)


def _evaluated(
    wide: bool,
    assignment: Assignment,
    objects: Mapping[str, Any],
    arrays: dict[str, Any],
    initial: ArrayLike | None,
    stored: Mapping[str, ArrayLike] | None,
    fill_values: Mapping[str, Number] = MappingProxyType({}),
) -> Array:
    """Compute an assignment whose operands are arrays.

    wide  whether sums of small integers are of wider types
    fill_values  the fill values of operands in arrays
    """
    sparse = {name: obj for name, obj in objects.items() if _is_sparse(obj)}
    masks = {name: _places(obj, name) for name, obj in sparse.items()}
    absent = {**fill_values, **{name: _fill(obj) for name, obj in sparse.items()}}
    fills = {name: fill for name, fill in absent.items() if fill != 0}
    places = {**masks, **(stored or {})}
    if not wide:
        if initial is None and isinstance(assignment, Assignment):
            assignment = accumulated(assignment, objects)
        return oracle.evaluate_dense(with_fills(assignment, fills), arrays, initial, places)
    accumulator = arrays.get(target_of(assignment, objects)) if initial is None else initial
    target = None if accumulator is None else np.asarray(accumulator).dtype
    if initial is None:
        assignment = accumulated(assignment, objects)
    assignment = _with_duplicates_added(assignment, objects, arrays, places, target)
    sum_type = partial(sum_dtype, target=target)
    filled = with_fills(assignment, fills)
    return oracle.evaluate_dense(filled, arrays, initial, places, sum_type)


def _in_order(
    assignments: Sequence[Assignment],
    objects: Mapping[str, Any],
    outputs: Sequence[str],
    stored: Mapping[str, ArrayLike],
    wide: bool,
) -> tuple[Array, ...]:
    """Compute statements one after the other; the arrays of the outputs.

    wide  whether sums of small integers are of wider types
    """
    statements = in_single_assignment(assignments, outputs, objects)
    check_passed(assignments, statements, objects, OPTIONS)
    described = bind_operands(objects)
    facts = {name: bound.operand for name, bound in described.items()}
    containers = {name: container(bound) for name, bound in described.items()}
    elaborated = elaborate(statements, facts, containers, ResultOptions(wide_sums=wide))
    fills = fills_of(facts)
    arrays = {name: _array(obj, name) for name, obj in objects.items()}
    places = {name: _places(obj, name) for name, obj in objects.items() if _is_sparse(obj)}
    places.update((name, np.asarray(mask, bool)) for name, mask in stored.items())
    for step in statements.steps:
        data, masks = dict(arrays), dict(places)
        accumulator = arrays.get(step.accumulator)
        target = None if accumulator is None else np.asarray(accumulator).dtype
        sum_type = partial(sum_dtype, target=target) if wide else np.dtype
        with room("what evaluate_dense makes on its way", _largest(step.assignment, data), SMALLER):
            assignment = step.assignment
            if wide:
                assignment = _with_duplicates_added(assignment, objects, data, masks, target)
            filled = with_fills(assignment, fills)
            array, has = oracle.evaluate_stored(filled, data, masks, sum_type)
        type = elaborated.operands[step.target].type
        fills.update(fills_of({step.target: elaborated.operands[step.target]}))
        arrays[step.target], places[step.target] = array, oracle.stored_positions(has, type.format)
    return tuple(arrays[target] for target in statements.outputs.values())


def _with_duplicates_added(
    assignment: Assignment,
    objects: Mapping[str, Any],
    arrays: dict[str, Any],
    places: dict[str, Any],
    target: Any,
) -> Assignment:
    """Add up duplicates of whole numbers in the types that operands are read in."""
    repeating = {name for name in objects if name in places and _repeats(objects[name], name)}
    if not repeating.intersection(operand_names(assignment)):
        return assignment
    return _added_wide(assignment, objects, arrays, places, repeating, target)


def _is_sparse(obj: Any) -> bool:
    data = obj.data if isinstance(obj, Tensor) else obj
    return is_scipy_sparse(obj) or (isinstance(data, TensorData) and not data.format.is_dense)


def _fill(obj: Any) -> Number:
    """Return the value of an operand where it stores nothing."""
    data = obj.data if isinstance(obj, Tensor) else obj
    filled = isinstance(data, TensorData) and data.fill
    return as_number(data.fill, data.dtype).item() if filled else 0


def _repeats(obj: Any, name: str) -> bool:
    """Tell whether an operand of whole numbers stores a coordinate twice."""
    data = read_operand(obj, f"operand {name}")
    return computes_exactly(data.dtype) and not is_unique(data)


def _added_wide(
    assignment: Assignment,
    objects: Mapping[str, Any],
    arrays: dict[str, Any],
    places: dict[str, Any],
    repeating: Container[str],
    target: Any,
) -> Assignment:
    """Put arrays of the types that operands are read in, in which duplicates are added up."""
    dtypes = {name: np.asarray(array).dtype for name, array in arrays.items()}
    wide = wide_sums(assignment, dtypes, target)
    read = {**dtypes, **wide.read}
    alone = read_types(wide.assignment, read)
    for name in dict.fromkeys((*arrays, *wide.same)):
        source = wide.same.get(name, name)
        if source in repeating:
            arrays[name] = _array(objects[source], source, alone.get(name, read[name]))
        elif name in wide.read:
            arrays[name] = np.asarray(arrays[source]).astype(read[name])
        if source in places:
            places[name] = places[source]
    return wide.assignment


def _all_known(statements: Sequence[Any], objects: Mapping[str, Any]) -> dict[str, Any]:
    """Read the operands that statements have; names that they have not are refused later."""
    assignments = [statement for statement in statements if isinstance(statement, Assignment)]
    names = {*names_read(assignments), *(assignment.target.tensor for assignment in assignments)}
    return {name: _as_tensor(obj, name) if name in names else obj for name, obj in objects.items()}


def _as_tensor(obj: Any, name: str) -> Any:
    """Return an operand of another library, as `evaluate` reads it, as a Tensor; others as they
    are."""
    is_plain = isinstance(obj, np.ndarray | np.generic | list | tuple | Tensor | TensorData)
    if is_plain or is_number(obj) or is_scipy_sparse(obj) or is_traced(obj):
        return obj
    return Tensor(read_operand(obj, f"operand {name}"))


def _array(obj: Any, name: str, dtype: Any = None) -> Any:
    """Return an operand as an array; entries with equal coordinates are added up in `dtype`."""
    if is_scipy_sparse(obj) or isinstance(obj, Tensor | TensorData):
        data = read_operand(obj, f"operand {name}")
        return to_dense(converted_to(np.dtype(dtype or data.dtype), data))
    return obj


def _with_weak_numbers(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Give Python's numbers the type of the arrays that they meet, as `evaluate` does."""
    strong = [obj.dtype for obj in arrays.values() if isinstance(obj, np.ndarray | np.generic)]
    return {
        name: weak_number(obj, dtype_of_number(obj, strong), name)
        if strong and is_number(obj)
        else obj
        for name, obj in arrays.items()
    }


def _places(obj: Any, name: str) -> Array:
    """Return the mask of the elements that a sparse operand stores."""
    data = read_operand(obj, f"operand {name}")
    is_stored = np.zeros(data.shape, bool)
    is_stored[unpack(data)[0]] = True
    return is_stored
