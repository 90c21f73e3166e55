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
    asked = options.format is not None or options.schedule is not None or options.chosen_by_data
    if asked or len(target) < 2 or any(type(array) is not np.ndarray for array in arrays.values()):
        return target
    found = [access for access in accesses(assignment.value) if access.indices]
    whole = any({*target} <= {*access.indices} for access in found)
    if not whole and {*all_indices(assignment)} != {*target}:
        usual = _batches_first(target, found, arrays)
        product = _product(usual, found, arrays)
        return usual if product is None else best_result(product).result

    def rank(access: Access) -> tuple[int, bool]:
        array = arrays[access.tensor]
        own = [i for i in _stored(access, array) if i in target]
        return -array.size.bit_length(), own != [i for i in target if i in own]

    kept: tuple[str, ...] = ()
    for access in sorted(found, key=rank):
        stored = _stored(access, arrays[access.tensor])
        kept = (*(i for i in stored if i in target and i not in kept), *kept)
    return kept if len(kept) == len(target) else target


def _batches_first(
    target: tuple[str, ...], found: Sequence[Access], arrays: Mapping[str, Array]
) -> tuple[str, ...]:
    """Return the result's indices with those that all operands have first, where the last one is of
    these and no operand stores it last, for vectors to run along."""
    batch = [i for i in target if all(i in access.indices for access in found)]
    last = {_stored(access, arrays[access.tensor])[-1] for access in found}
    if len(found) < 2 or target[-1] not in batch or target[-1] in last:
        return target
    return (*batch, *(i for i in target if i not in batch))


def _product(
    kept: tuple[str, ...], found: Sequence[Access], arrays: Mapping[str, Array]
) -> DenseProduct | None:
    """Return the product of two arrays of one real type whose elements have neighbours; None where
    it is none, or has too few elements for the order of its result to matter."""
    if len(found) != 2:
        return None
    one, other = (arrays[access.tensor] for access in found)
    plain = one.dtype == other.dtype and one.dtype.kind == "f" and one.dtype.isnative
    distinct = all(len({*access.indices}) == len(access.indices) for access in found)
    if not plain or not distinct or not all(min(a.strides) == a.itemsize for a in (one, other)):
        return None
    sizes: dict[str, float] = {}
    for access in found:
        sizes.update(zip(access.indices, arrays[access.tensor].shape, strict=True))
    left, right = (_stored(access, arrays[access.tensor]) for access in found)
    product = DenseProduct(kept, left, right, sizes, one.dtype.itemsize)
    counts = (sum(index in array for array in product.arrays) for index in product.indices)
    large = product.points >= product.machine.calls.small_factor_iterations
    return product if large and min(counts) > 1 else None


def _stored(access: Access, array: Array) -> tuple[str, ...]:
    """Return the indices as the array stores them, each once."""
    modes, _ = stride_order(array)
    return tuple(dict.fromkeys(access.indices[mode] for mode in modes))
