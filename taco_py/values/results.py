"""Which kind of object a result is, and making it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codegen.records import dataclass
from taco_py.formats import COO, CSC, CSR, Format, dense
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Assignment, Reduce
from taco_py.notation.tree import walk
from taco_py.plan.ir.formats import (
    compressed_indices,
    default_format,
    levels_of,
    unordered_last,
    without_modes,
)
from taco_py.storage.tensor_data import TensorData, ordered
from taco_py.values.hand_out import handed_out
from taco_py.values.operands import INT32_MAX, Given, is_scipy, is_tensor
from taco_py.values.tensor import as_format


@dataclass(frozen=True, slots=True)
class ResultKind:
    """`format` is what is computed, `kind` what it is handed out as: "ndarray", "tensor", or a
    scipy class's name."""

    format: Format
    kind: str


def result_kind(
    assignment: Assignment, given: Mapping[str, Given], format: Format | str | None
) -> ResultKind:
    """The rule of the README: dense results are arrays; sparse ones are as the sparse operands are.

    Raises FormatError when `format` has not as many levels as the result has indices.
    """
    order = len(assignment.target.indices)
    used = [given[a.tensor] for a in accesses(assignment)]
    formats = {name: g.data.format for name, g in given.items()}
    for access in accesses(assignment):
        if len(access.indices) != formats[access.tensor].order:  # modes of size 1 are taken off it
            formats[access.tensor] = without_modes(formats[access.tensor], len(access.indices))
    wanted = as_format(format, order)
    if wanted is not None:
        return _asked_for(wanted, used)
    if any(is_tensor(g) for g in used):
        form = default_format(assignment, formats)
        return ResultKind(form, "ndarray" if form.is_dense else "tensor")
    if not any(is_scipy(g) for g in used) or not _scipy_sparse(assignment, formats):
        return ResultKind(dense(order), "ndarray")
    sparse = [g for g in used if is_scipy(g)]
    family = "matrix" if order == 2 and all(_is_matrix(g.object) for g in sparse) else "array"
    if order != 2:
        return ResultKind(COO(order), "coo_array")
    if all(g.object.format == "csc" for g in sparse):
        return ResultKind(unordered_last(CSC), f"csc_{family}")
    return ResultKind(unordered_last(CSR), f"csr_{family}")


def _scipy_sparse(assignment: Assignment, formats: Mapping[str, Format]) -> bool:
    """Whether scipy operands make a sparse result: each index is restricted by a sparse operand in
    each term. A vector that is a sum is dense, as scipy's products and sums are."""
    levels = levels_of(assignment, formats, every=True)
    indices = assignment.target.indices
    sums = any(isinstance(node, Reduce) for node, _ in walk(assignment.value))
    if not indices or (len(indices) == 1 and sums):
        return False
    return compressed_indices(assignment, levels) == frozenset(indices)


def kind_for(wanted: Format, given: Mapping[str, Given]) -> ResultKind:
    """How a result in the format `wanted` is handed out: dense ones as arrays, sparse ones as the
    sparse operands are, where scipy has such a format."""
    return _asked_for(ordered(wanted), list(given.values()))


def _asked_for(wanted: Format, used: list[Given]) -> ResultKind:
    if wanted.is_dense and wanted.mode_order == tuple(range(wanted.order)):
        return ResultKind(wanted, "ndarray")
    if any(is_tensor(g) for g in used) or not any(is_scipy(g) for g in used):
        return ResultKind(wanted, "tensor")
    sparse = [g for g in used if is_scipy(g)]
    family = "matrix" if all(_is_matrix(g.object) for g in sparse) else "array"
    if wanted == CSR:
        return ResultKind(wanted, f"csr_{family}")
    if wanted == CSC:
        return ResultKind(wanted, f"csc_{family}")
    if wanted.is_coo and wanted.mode_order == tuple(range(wanted.order)):
        return ResultKind(wanted, f"coo_{family}" if wanted.order == 2 else "coo_array")
    return ResultKind(wanted, "tensor")


def _is_matrix(obj: Any) -> bool:
    from scipy.sparse import spmatrix

    return isinstance(obj, spmatrix)


def index_dtype(given: Mapping[str, Given], sizes: Mapping[str, int]) -> str:
    """int64 where an operand or a size needs it, else int32."""
    types = {g.operand.type.index_dtype for g in given.values()}
    large = any(size > INT32_MAX for size in sizes.values())
    return "int64" if large or "int64" in types else "int32"


def hand_out(data: TensorData, kind: ResultKind) -> Any:
    """The result as the object the user expects; a 0-d array as a NumPy scalar."""
    return handed_out(data, kind.kind)
