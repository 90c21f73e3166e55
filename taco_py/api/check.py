"""`check`: whether the arrays of a sparse tensor fit together."""

from __future__ import annotations

from typing import Any

from taco_py.storage import check as structure
from taco_py.values.tensor import as_data


def check(obj: Any) -> None:
    """Raise StructureError where a tensor's or sparse array's own arrays contradict each other.

    Kernels read operands without bounds checks; call this on arrays of doubtful origin. O(nnz).
    """
    structure.check(as_data(obj))
