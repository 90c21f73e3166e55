"""An assignment with subscripts and its operands → one with indices alone, and its operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codegen.records import dataclass
from taco_py.indexed.dense_windows import dense_window
from taco_py.indexed.derived import Derived, Plain, without_subscripts
from taco_py.indexed.domains import FILL, Domain, Stated, domain_of
from taco_py.indexed.selections import as_operand, check_once, selection
from taco_py.indexed.sparse_stored import stored_like
from taco_py.indexed.sparse_windows import sparse_window
from taco_py.interop.scipy_arrays import is_scipy_sparse
from taco_py.notation.checks import operand_names
from taco_py.notation.nodes import Access, Assignment
from taco_py.notation.printer import subscript_text, to_text
from taco_py.storage.tensor_data import TensorData
from taco_py.values.operands import taken


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What is the same for all operands of the same shapes: recipes, and the ranges of indices.

    used  the names of the operands that the assignment reads as they are
    """

    plain: Plain
    domain: Domain
    used: tuple[str, ...]


def layout_of(
    assignment: Assignment, shapes: Mapping[str, tuple[int, ...]], stated: Stated
) -> Layout:
    """Find which operands to make. Raises DimensionError or OperandError (`domains`)."""
    domain = domain_of(assignment, shapes, stated)
    sizes = domain.sizes

    def whole(access: Access) -> bool:
        return tuple(sizes[index] for index in access.indices) == shapes[access.tensor]

    plain = without_subscripts(assignment, whole)
    names = operand_names(plain.assignment)
    if assignment.operator is not None:
        names = (assignment.target.tensor, *names)
    return Layout(plain, domain, tuple(name for name in names if name in shapes))


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """The operands of an assignment with indices alone, and how those that were made were got."""

    objects: Mapping[str, Any]
    notes: tuple[str, ...]


def make_operands(
    assignment: Assignment,
    objects: Mapping[str, Any],
    tensors: Mapping[str, TensorData],
    layout: Layout,
    stated: Stated,
) -> Made:
    """Make the operands that a layout asks for. Whatever can be wrong with positions is an error
    before any kernel runs.

    tensors  the arrays of the objects
    """
    plain, sizes, fills = layout.plain, layout.domain.sizes, stated.border == FILL
    found = {name: objects[name] for name in layout.used}
    notes = []
    for each in plain.derived:
        found[each.name], how = _derived(each, objects, tensors, layout, fills)
        notes.append(
            f"{to_text(Access(each.name, each.access.indices))} is {to_text(each.access)}: {how}"
        )
    if plain.selections:
        scipy = any(is_scipy_sparse(obj) for obj in objects.values())
        if assignment.operator is None:
            check_once(assignment, layout.domain.shape, sizes, tensors, fills)
        for one in plain.selections:
            size, target = layout.domain.shape[one.mode], assignment.target
            data = selection(one, target, size, sizes, tensors, fills)
            found[one.name] = as_operand(data, scipy)
            index = plain.assignment.target.indices[one.mode]
            notes.append(
                f"{to_text(Access(one.name, (index, *one.subscript.names)))} is 1 where {index} = "
                f"{subscript_text(one.subscript)}: {data.nnz} entries"
            )
    return Made(found, tuple(notes))


def _derived(
    each: Derived,
    objects: Mapping[str, Any],
    tensors: Mapping[str, TensorData],
    layout: Layout,
    fills: bool,
) -> tuple[Any, str]:
    """One operand, and how it was got."""
    access, sizes = each.access, layout.domain.sizes
    data = tensors[access.tensor]
    if data.format.is_dense:
        return dense_window(access, data.values, sizes, tensors, fills)
    columns, values = sparse_window(access, data, sizes, tensors, fills)
    shape = tuple(sizes[index] for index in access.indices)
    made = stored_like(objects[access.tensor], data, columns, values, shape)
    return made, f"a copy of {len(values)} entries from {data.nnz}"


def arrays_of_operands(objects: Mapping[str, Any]) -> dict[str, TensorData]:
    """The arrays of what the user passed."""
    return {name: taken(obj, f"operand {name}") for name, obj in objects.items()}
