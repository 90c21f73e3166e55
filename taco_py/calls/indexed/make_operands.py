"""An assignment with subscripts and its operands → one with indices alone, and its operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.operands import read_operand
from taco_py.calls.indexed.dense_windows import View, dense_window, fixed_view
from taco_py.calls.indexed.derived import Derived, Plain, without_subscripts
from taco_py.calls.indexed.domains import FILL, BoundaryOptions, Domain, domain_of
from taco_py.calls.indexed.host_operands import OnHost, kind_on_host
from taco_py.calls.indexed.picked_rows import picked_rows
from taco_py.calls.indexed.scattered import meeting_of
from taco_py.calls.indexed.selections import as_operand, check_once, selection
from taco_py.calls.indexed.sparse_stored import compressed_like, stored_like
from taco_py.calls.indexed.sparse_windows import sparse_window
from taco_py.calls.indexed.stretched import stretched
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.notation.checks import operand_names, unique
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import subscript_text, to_text
from taco_py.language.notation.rewrites.index_numbers import index_of, is_size

KEPT_NUMBERS = 1 << 22
"""The most numbers of an index that stay in memory between calls."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What is the same for all operands of the same shapes: recipes, and the ranges of indices.

    used   the names of the operands that the assignment reads as they are
    views  by the names of derived operands, what they are views of
    """

    plain: Plain
    domain: Domain
    used: tuple[str, ...]
    views: Mapping[str, View]


def layout_of(
    assignment: Assignment,
    tensors: Mapping[str, TensorData],
    boundary: BoundaryOptions,
    computed_shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    names: Names | None = None,
    dtypes: Mapping[str, DType] = MappingProxyType({}),
) -> Layout:
    """Find which operands to make. Raises DimensionError or OperandError (`domains`).

    computed_shapes   the shapes of what earlier statements make
    names  from which to take new ones; None for those that the assignment does not use
    dtypes in which values are read that meet in a place of the result
    """
    shapes = {**{name: data.shape for name, data in tensors.items()}, **computed_shapes}
    sparse = {name for name, data in tensors.items() if not data.format.is_dense}
    assignment = stretched(assignment, shapes, sparse)
    domain = domain_of(assignment, shapes, boundary)
    sizes = domain.sizes

    def covers_operand(access: Access) -> bool:
        return tuple(sizes[index] for index in access.indices) == shapes[access.tensor]

    def is_dense(access: Access) -> bool:
        return access.tensor in tensors and tensors[access.tensor].format.is_dense

    def ordered(access: Access) -> tuple[str, ...]:
        indices = unique(access.indices)
        if not is_dense(access) or any(m.gathered for m in access.modes):
            return indices
        return _result_last(indices, assignment.target.indices, sizes)

    meets = partial(meeting_of, assignment, dtypes, lambda a: a.is_number or is_dense(a))
    plain = without_subscripts(assignment, covers_operand, ordered, meets, names)
    used = operand_names(plain.assignment)
    if assignment.operator is not None:
        used = (assignment.target.tensor, *used)
    dense = (derived for derived in plain.derived if is_dense(derived.access))
    views = {e.name: fixed_view(e.access, shapes[e.access.tensor], sizes) for e in dense}
    fixed_views = {name: view for name, view in views.items() if view is not None}
    return Layout(plain, domain, tuple(name for name in used if name in tensors), fixed_views)


def _result_last(
    names: tuple[str, ...], target: tuple[str, ...], sizes: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the indices of a view: short ones that are summed first, those of the result last.

    x[i+k] has the same stride along both, and loops run in vectors along the last one.
    """
    summed = sorted((name for name in names if name not in target), key=sizes.__getitem__)
    return (*summed, *(name for name in target if name in names))


@dataclass(frozen=True, slots=True, eq=False)
class DerivedOperands:
    """The operands of an assignment with indices alone, and how the derived ones and the selections
    among them were got."""

    objects: Mapping[str, Any]
    descriptions: tuple[str, ...]


def make_operands(
    assignment: Assignment,
    objects: Mapping[str, Any],
    tensors: Mapping[str, TensorData],
    layout: Layout,
    boundary: BoundaryOptions,
) -> DerivedOperands:
    """Make the operands that a layout asks for. Whatever can be wrong with positions is an error
    before any kernel runs.

    tensors  the arrays of the objects
    """
    plain, sizes, fills = layout.plain, layout.domain.sizes, boundary.border == FILL
    tensors = OnHost(tensors)
    operands = {name: objects[name] for name in layout.used}
    descriptions = []
    for derived in plain.derived:
        view = layout.views.get(derived.name)
        if view is not None:
            array = tensors[derived.access.tensor].values
            operands[derived.name], description = view.of(array), "a view"
        else:
            operands[derived.name], description = _derived(derived, objects, tensors, layout, fills)
        descriptions.append(description)
    if plain.selections:
        scipy = any(is_scipy_sparse(kind_on_host(obj)) for obj in objects.values())
        if assignment.operator is None:
            check_once(assignment, layout.domain.shape, sizes, tensors, fills)
        for one in plain.selections:
            size, target = layout.domain.shape[one.mode], assignment.target
            count = prod(sizes[name] for name in one.subscript.names)
            with room(f"positions in {target.tensor}", 24 * count):
                data = selection(one, target, size, sizes, tensors, fills)
            operands[one.name] = as_operand(data, scipy)
            descriptions.append(f"{data.nnz} entries")
    return DerivedOperands(operands, tuple(descriptions))


def describe_operands(layout: Layout, operands: DerivedOperands) -> list[str]:
    """Describe each derived operand and selection: its value, and its copy or view."""
    plain, said = layout.plain, []
    for derived in plain.derived:
        access = Access(derived.name, derived.access.indices)
        said.append(f"{to_text(access)} is {to_text(derived.source_access)}")
    for one in plain.selections:
        index = plain.assignment.target.indices[one.mode]
        access = Access(one.name, (index, *one.subscript.names))
        said.append(f"{to_text(access)} is 1 where {index} = {subscript_text(one.subscript)}")
    return [f"{what}: {kind}" for what, kind in zip(said, operands.descriptions, strict=True)]


def _derived(
    derived: Derived,
    objects: Mapping[str, Any],
    tensors: Mapping[str, TensorData],
    layout: Layout,
    fills: bool,
) -> tuple[Any, str]:
    """Return one operand that is no view, and how it was got."""
    access, sizes = derived.access, layout.domain.sizes
    if access.is_number:
        count = sizes[index_of(access)]
        if is_size(access):
            return np.int64(count), "a number"
        return numbers_below(count), f"the numbers below {count}"
    data = tensors[access.tensor]
    if data.format.is_dense:
        count = prod(sizes[index] for index in access.indices)
        with room(f"what is gathered from {access.tensor}", count * (data.dtype.itemsize + 8)):
            return dense_window(access, data, sizes, tensors, fills)
    rows = picked_rows(access, data, sizes, tensors, fills)
    if rows is not None:
        return compressed_like(
            kind_on_host(objects[access.tensor]), rows
        ), f"a copy of {rows.nnz} entries, in rows"
    columns, values = sparse_window(access, data, sizes, tensors, fills)
    shape = tuple(sizes[index] for index in access.indices)
    like = kind_on_host(objects[access.tensor])
    stored = stored_like(like, data, columns, values, shape)
    return stored, f"a copy of {len(values)} entries from {data.nnz}"


def numbers_below(count: int) -> Array:
    """Return the numbers below one, in an array that is kept for later calls unless it is large."""
    return _kept_numbers(count) if count <= KEPT_NUMBERS else np.arange(count, dtype=np.int64)


@lru_cache(maxsize=1)
def _kept_numbers(count: int) -> Array:
    numbers = np.arange(count, dtype=np.int64)
    numbers.flags.writeable = False
    return numbers


def arrays_of_operands(objects: Mapping[str, Any]) -> dict[str, TensorData]:
    """Return the arrays of passed operands; a dense Tensor keeps its fill value, for borders."""
    arrays = {name: read_operand(obj, f"operand {name}") for name, obj in objects.items()}
    filled = {n: obj.data.fill for n, obj in objects.items() if isinstance(obj, Tensor)}
    return {**arrays, **{n: replace(arrays[n], fill=fill) for n, fill in filled.items() if fill}}
