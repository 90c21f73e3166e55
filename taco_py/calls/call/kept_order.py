"""The memory order of a dense einsum's result where nobody asks for one, as NumPy's order="K" has
it: that in which the operands store its indices.

    einsum("bc,abc->cab", v, A)     computes B[a,b,c] = v[b,c] * A[a,b,c], and returns a view of B

All arrays are then run through from their first byte to their last, and nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taco_py.arguments.options import CallOptions
from taco_py.compiler.ways.dense_seconds import DenseProduct, best_result
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.keys import stride_order
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment


def kept_order(
    assignment: Assignment, arrays: Mapping[str, Array], options: CallOptions
) -> tuple[str, ...]:
    """Return the result's indices as it is best stored, the last one contiguous.

    That of larger operands comes first, and of those one that agrees with what is written, which is
    kept where sums join indices of different operands: tiles write such products in any order, but
    for a batch's where it would be innermost (`_batches_first`), and for what is estimated to take
    clearly less in another order (`ways.dense_seconds`).
    """
    target = assignment.target.indices
    fixed = options.format is not None or options.schedule is not None or options.chosen_by_data
    if fixed or len(target) < 2 or any(type(array) is not np.ndarray for array in arrays.values()):
        return target
    reads = [access for access in accesses(assignment.value) if access.indices]
    has_full_operand = any({*target} <= {*access.indices} for access in reads)
    if not has_full_operand and {*all_indices(assignment)} != {*target}:
        usual = _batches_first(target, reads, arrays)
        product = _product(usual, reads, arrays)
        return usual if product is None else best_result(product).result

    def rank(access: Access) -> tuple[int, bool]:
        array = arrays[access.tensor]
        indices = [i for i in _stored(access, array) if i in target]
        return -array.size.bit_length(), indices != [i for i in target if i in indices]

    order: tuple[str, ...] = ()
    for access in sorted(reads, key=rank):
        stored = _stored(access, arrays[access.tensor])
        order = (*(i for i in stored if i in target and i not in order), *order)
    return order if len(order) == len(target) else target


def _batches_first(
    target: tuple[str, ...], reads: Sequence[Access], arrays: Mapping[str, Array]
) -> tuple[str, ...]:
    """Return the indices with batch indices first where vectors could not run along the last."""
    batch = [i for i in target if all(i in access.indices for access in reads)]
    last = {_stored(access, arrays[access.tensor])[-1] for access in reads}
    if len(reads) < 2 or target[-1] not in batch or target[-1] in last:
        return target
    return (*batch, *(i for i in target if i not in batch))


def _product(
    order: tuple[str, ...], reads: Sequence[Access], arrays: Mapping[str, Array]
) -> DenseProduct | None:
    """Return the product of two arrays of one real type whose elements have neighbours; None where
    it is none, or has too few elements for the order of its result to matter."""
    if len(reads) != 2:
        return None
    one, other = (arrays[access.tensor] for access in reads)
    plain = one.dtype == other.dtype and one.dtype.kind == "f" and one.dtype.isnative
    distinct = all(len({*access.indices}) == len(access.indices) for access in reads)
    if not plain or not distinct or not all(min(a.strides) == a.itemsize for a in (one, other)):
        return None
    sizes: dict[str, float] = {}
    for access in reads:
        sizes.update(zip(access.indices, arrays[access.tensor].shape, strict=True))
    left, right = (_stored(access, arrays[access.tensor]) for access in reads)
    product = DenseProduct(order, left, right, sizes, one.dtype.itemsize)
    counts = (sum(index in array for array in product.arrays) for index in product.indices)
    large = product.points >= product.machine.calls.small_factor_iterations
    return product if large and min(counts) > 1 else None


def _stored(access: Access, array: Array) -> tuple[str, ...]:
    """Return the indices as the array stores them, each once."""
    modes, _ = stride_order(array)
    return tuple(dict.fromkeys(access.indices[mode] for mode in modes))
