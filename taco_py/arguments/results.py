"""Which kind of object a result is, and making it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taco_py.arguments.device_tensor import DeviceTensor, uploaded
from taco_py.arguments.operands import INT32_MAX, BoundOperand, is_tensor
from taco_py.arguments.result_table import ARRAY, TENSOR, Question, ResultKind, look_up
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.hand_out import handed_out
from taco_py.data.tensors.tensor import as_format
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.ir.formats import without_modes
from taco_py.planner.ir.nodes import Operand

MANY_BITS = 21
"""Bits of a size up to which an array over an index is never too long."""

FEW_BITS = 6
"""By how many bits fewer than coordinates entries are where an array over these is too long."""


def result_kind(
    assignment: Assignment, operands: Mapping[str, BoundOperand], format: Format | str | None
) -> ResultKind:
    """Look the kind of a result up in the table (`result_table`).

    Raises FormatError when `format` has not as many levels as the result has indices.
    """
    formats = {name: g.data.format for name, g in operands.items()}
    for access in accesses(assignment):
        if len(access.indices) != formats[access.tensor].order:  # modes of size 1 are taken off it
            formats[access.tensor] = without_modes(formats[access.tensor], len(access.indices))
    requested = as_format(format, len(assignment.target.indices))
    containers = {name: container(g) for name, g in operands.items()}
    vast = vast_indices({name: g.operand for name, g in operands.items()}, assignment)
    return look_up(Question(assignment, formats, containers, requested, vast))


def container(operand: BoundOperand) -> str:
    """Return the container of an operand, as the result table names it."""
    if isinstance(operand.object, DeviceTensor):
        kind = operand.object.kind
        return {"tensor": TENSOR, "ndarray": ARRAY}.get(kind, f"sparse_{kind.partition('_')[2]}")
    if is_tensor(operand):
        return TENSOR
    if operand.data.format.is_dense:
        return ARRAY
    return "sparse_matrix" if _is_matrix(operand.object) else "sparse_array"


def vast_indices(operands: Mapping[str, Operand], assignment: Assignment) -> frozenset[str]:
    """Return the result's indices with far more coordinates than their operands have entries.

    No operand has an array as long as such an index.

    Numbers of bits are compared, for operands of one size class share plans (`size_classes`).
    """
    return frozenset(_vast(assignment, operands))


def _vast(assignment: Assignment, operands: Mapping[str, Operand]) -> Iterator[str]:
    reads = [(access, operands[access.tensor]) for access in accesses(assignment)]
    longest = max((int(o.nnz) for _, o in reads if o.type.format.is_dense), default=0)
    for index in assignment.target.indices:
        using = [(a, o) for a, o in reads if index in a.indices]
        if any(len(a.indices) != o.type.format.order for a, o in using):
            continue
        levels = [(o, o.type.format.stored(a.indices).index(index)) for a, o in using]
        if any(o.type.format.levels[level].full for o, level in levels):
            continue
        size = max((o.shape[o.type.format.mode_order[level]] for o, level in levels), default=0)
        entries = max((int(o.nnz) for o, _ in levels), default=0).bit_length()
        if size.bit_length() > max(MANY_BITS, entries + FEW_BITS, longest.bit_length()):
            yield index


def _is_matrix(obj: Any) -> bool:
    from scipy.sparse import spmatrix

    return isinstance(obj, spmatrix)


def index_dtype(operands: Mapping[str, BoundOperand], sizes: Mapping[str, int]) -> str:
    """Return int64 where an operand or a size needs it, else int32."""
    types = {g.operand.type.index_dtype for g in operands.values()}
    large = any(size > INT32_MAX for size in sizes.values())
    return "int64" if large or "int64" in types else "int32"


def hand_out(data: TensorData, kind: ResultKind, place: str = "") -> Any:
    """Return the result as the object the user expects; a 0-d array as a NumPy scalar.

    place  the device that it stays on, "" for the host
    """
    if place:
        return DeviceTensor(uploaded(data, place), kind.kind, place)
    return handed_out(data, kind.kind)
