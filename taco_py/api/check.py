"""`check`: whether the arrays of a sparse tensor fit together."""

from __future__ import annotations

from typing import Any

from taco_py.data.storage import check as structure
from taco_py.data.tensors.tensor import as_data


def check(obj: Any) -> None:
    """Check the arrays of a tensor or sparse array against each other, in O(nnz).

    >>> A = sp.csr_array([[1.0, 0.0], [0.0, 3.0]])
    >>> tp.check(A)
    >>> A.indices[0] = 7
    >>> tp.check(A)
    Traceback (most recent call last):
    taco_py.language.diagnostics.errors.StructureError: ...

    Kernels read operands without bounds checks; call this on arrays of doubtful origin.

    obj  a Tensor or a scipy.sparse array

    Raises StructureError where its arrays contradict each other.
    """
    structure.check(as_data(obj))
