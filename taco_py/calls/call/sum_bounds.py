"""Whether a sum of small integers may pass the type that einsum adds it up in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.cautions import NarrowSumWarning, caution
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment


@dataclass(frozen=True, slots=True)
class _Range:
    """The least and the largest value that there may be."""

    least: int
    most: int

    def times(self, other: _Range) -> _Range:
        ends = [a * b for a in (self.least, self.most) for b in (other.least, other.most)]
        return _Range(min(ends), max(ends))


def narrow_sum(assignment: Assignment, datas: Sequence[TensorData]) -> tuple[UserWarning, ...]:
    """Warn where sums of an einsum of small integers may pass the result's type.

    Booleans are added up by "or", which passes nothing. The text is the same for all sizes, so that
    Python's filters show it once for each place.
    """
    dtype = np.result_type(*(data.dtype for data in datas))
    if dtype.kind not in "iu" or dtype.itemsize == 8:
        return ()
    count = _most_terms(assignment, datas)
    product = reduce(_Range.times, (_range(data.dtype) for data in datas))
    total, limits = product.times(_Range(0, count)), _range(dtype)
    if count == 0 or (limits.least <= total.least and total.most <= limits.most):
        return ()
    message = (
        f"einsum adds up {dtype} in {dtype}, as NumPy's does: a sum of as many terms as these "
        f"operands have may pass {limits.most}, and then wraps"
    )
    hint = 'dtype="int64" adds up in 64 bits; tp.evaluate does so by itself'
    return (caution(NarrowSumWarning, message, None, hint),)


def _range(dtype: np.dtype[np.generic]) -> _Range:
    if dtype.kind == "b":
        return _Range(0, 1)
    limits = np.iinfo(dtype)  # type: ignore[type-var]
    return _Range(int(limits.min), int(limits.max))


def _most_terms(assignment: Assignment, datas: Sequence[TensorData]) -> int:
    """Bound the number of terms of a sum, by sizes and entries; 0 where nothing is summed."""
    uses = [(access, data) for access, data in zip(accesses(assignment), datas, strict=True)]
    sizes: dict[str, int] = {}
    for access, data in uses:
        for index, size in zip(access.indices, data.shape, strict=True):
            sizes[index] = max(size, sizes.get(index, 0))
    summed = [index for index in sizes if index not in assignment.target.indices]
    if not summed:
        return 0
    bounds = [prod(sizes[index] for index in summed)]
    for access, data in uses:
        remaining = prod(sizes[index] for index in summed if index not in access.indices)
        bounds.append(remaining * data.nnz if not data.format.is_dense else bounds[0])
    return min(bounds)
