"""`evaluate_dense`: what `evaluate` computes, by NumPy, whole arrays at a time."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from taco_py import oracle
from taco_py.call.prepare import accumulated, by_name, target_of, understood
from taco_py.call.widened import read_types
from taco_py.diagnostics.cautions import give as give_cautions
from taco_py.diagnostics.errors import DimensionError
from taco_py.indexed.by_fancy_indexing import gather, write
from taco_py.indexed.domains import FILL, Stated
from taco_py.indexed.indexed_call import is_indexed, stated_of
from taco_py.interop.scipy_arrays import is_scipy_sparse
from taco_py.legal.types import computes_exactly
from taco_py.notation.checks import accesses, free_indices, operand_names
from taco_py.notation.dtypes import sum_dtype
from taco_py.notation.nodes import Assignment, Call
from taco_py.notation.tree import walk
from taco_py.notation.wide_sums import wide_sums
from taco_py.storage.pack import is_unique, to_dense, unpack
from taco_py.storage.room import room
from taco_py.storage.tensor_data import Array, TensorData
from taco_py.values.operands import check_names, taken
from taco_py.values.settings import merged
from taco_py.values.tensor import Tensor

OPTIONS = frozenset({"initial", "stored", "border", "shape"})
SMALLER = "evaluate makes no intermediate over all indices; here smaller operands help"


def evaluate_dense(
    text: str | Assignment,
    operands: Mapping[str, Any] | None = None,
    /,
    initial: ArrayLike | None = None,
    stored: Mapping[str, ArrayLike] | None = None,
    border: str = "error",
    shape: Sequence[int] | int | None = None,
    **named: Any,
) -> Array:
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
    operands, named  as a mapping or by name: arrays, scipy.sparse arrays, Tensors, numbers
    initial   what the left-hand side holds before `+=`; where it is not given, the operand of that
              name, or zeros where there is none
    stored    by name, where an operand stores something, a boolean array of its shape; where not
              given, sparse operands say so themselves and others store all elements
    border, shape   as in `evaluate`

    Raises what `evaluate` raises for a mistake in the text or the operands, and OutOfMemoryError
    where an intermediate result has no room.
    """
    given = by_name(text, operands, (), named) if isinstance(text, str) else merged(operands, named)
    assignment = _read(text) if isinstance(text, str) else text
    if isinstance(assignment, Assignment):
        used = accumulated(assignment, {**given, **dict.fromkeys(_target(assignment))})
        check_names(used, (*given, *_target(assignment)), OPTIONS)
    arrays = {name: _array(obj, name) for name, obj in given.items()}
    with room("what evaluate_dense makes on its way", _largest(assignment, arrays), SMALLER):
        if not isinstance(assignment, Assignment) or not is_indexed(assignment, border, shape):
            try:
                return _evaluated(text, assignment, given, dict(arrays), initial, stored)
            except DimensionError:
                if all(1 not in np.shape(array) for array in arrays.values()):
                    raise
        stated = stated_of(border, shape)
        return _at_subscripts(text, assignment, given, arrays, initial, stored, stated)


def _read(text: str) -> Assignment:
    """The assignment of a text, with its sums; its cautions are given."""
    read = understood(text)
    give_cautions(read.cautions)
    return read.assignment


def _at_subscripts(
    text: str | Assignment,
    assignment: Assignment,
    given: Mapping[str, Any],
    arrays: dict[str, Any],
    initial: ArrayLike | None,
    stored: Mapping[str, ArrayLike] | None,
    stated: Stated,
) -> Array:
    """Compute an assignment with subscripts that are more than indices."""
    masks = {name: _places(obj, name) for name, obj in given.items() if _is_sparse(obj)}
    added = arrays.get(target_of(assignment, given)) if initial is None else initial
    fills = stated.border == FILL
    read = gather(assignment, arrays, {**masks, **(stored or {})}, fills, stated.shape, added)
    start = None if read.written is not None else added
    plain = read.assignment if isinstance(text, Assignment) else text

    def value_of(operands: dict[str, Any]) -> Array:
        return _evaluated(plain, read.assignment, operands, operands, start, read.stored)

    value = value_of(read.arrays)
    if read.written is None:
        return value
    dtype = value.dtype if added is None else np.asarray(added).dtype
    wide = sum_dtype(value.dtype, target=None if added is None else dtype)
    if assignment.operator is not None and wide != value.dtype:  # as what is summed has
        names = operand_names(read.assignment)
        value = value_of({name: np.asarray(read.arrays[name]).astype(wide) for name in names})
    return write(assignment, value, read.written, added)


def _target(assignment: Assignment) -> tuple[str, ...]:
    """Name the left-hand side where it is added to, which need not be an operand."""
    return () if assignment.operator is None else (assignment.target.tensor,)


def _largest(assignment: Assignment, arrays: Mapping[str, Any]) -> int:
    """Count the bytes of the largest intermediate at least, as far as sizes are known."""
    if not isinstance(assignment, Assignment):
        return 0
    known = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    sizes: dict[str, int] = {}
    for access in accesses(assignment.value):
        if access.tensor in known:
            sizes.update(zip(access.indices, known[access.tensor].shape, strict=False))
    calls = (node for node, _ in walk(assignment.value) if isinstance(node, Call))
    counts = (prod(sizes.get(index, 1) for index in free_indices(call)) for call in calls)
    return max(counts, default=0) * min((each.itemsize for each in known.values()), default=1)


def _evaluated(
    text: str | Assignment,
    assignment: Assignment,
    given: Mapping[str, Any],
    arrays: dict[str, Any],
    initial: ArrayLike | None,
    stored: Mapping[str, ArrayLike] | None,
) -> Array:
    """Compute an assignment whose operands are arrays."""
    masks = {name: _places(obj, name) for name, obj in given.items() if _is_sparse(obj)}
    places = {**masks, **(stored or {})}
    if not isinstance(text, str):
        if initial is None and isinstance(assignment, Assignment):
            assignment = accumulated(assignment, given)
        return oracle.evaluate_dense(assignment, arrays, initial, places)
    added = arrays.get(target_of(assignment, given)) if initial is None else initial
    target = None if added is None else np.asarray(added).dtype
    sum_type = partial(sum_dtype, target=target)
    if initial is None:
        assignment = accumulated(assignment, given)
    repeating = {name for name in masks if _repeats(given[name], name)}
    if repeating.intersection(operand_names(assignment)):
        assignment = _added_wide(assignment, given, arrays, places, repeating, target)
    return oracle.evaluate_dense(assignment, arrays, initial, places, sum_type)


def _is_sparse(obj: Any) -> bool:
    data = obj.data if isinstance(obj, Tensor) else obj
    return is_scipy_sparse(obj) or (isinstance(data, TensorData) and not data.format.is_dense)


def _repeats(obj: Any, name: str) -> bool:
    """Whether an operand of whole numbers stores a coordinate twice."""
    data = taken(obj, f"operand {name}")
    return computes_exactly(data.dtype) and not is_unique(data)


def _added_wide(
    assignment: Assignment,
    given: Mapping[str, Any],
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
            arrays[name] = _array(given[source], source, alone.get(name, read[name]))
        elif name in wide.read:
            arrays[name] = np.asarray(arrays[source]).astype(read[name])
        if source in places:
            places[name] = places[source]
    return wide.assignment


def _array(obj: Any, name: str, dtype: Any = None) -> Any:
    """An operand as an array; entries with equal coordinates are added up in `dtype`."""
    if is_scipy_sparse(obj) or isinstance(obj, Tensor | TensorData):
        data = taken(obj, f"operand {name}")
        return to_dense(replace(data, values=data.values.astype(dtype or data.dtype)))
    return obj


def _places(obj: Any, name: str) -> Array:
    """Where a sparse operand stores something."""
    data = taken(obj, f"operand {name}")
    found = np.zeros(data.shape, bool)
    found[unpack(data)[0]] = True
    return found
