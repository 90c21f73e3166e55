"""Arrays and delayed values of dask: computed where they are read.

`dask.array.from_array(T, asarray=False)` makes an array of dask of a Tensor, whose chunks are
Tensors.
"""

from __future__ import annotations

from typing import Any

from taco_py.data.interop.partners.partner import Partner


def read(obj: Any) -> Any:
    """What an array or a delayed value of dask computes to; None for anything else."""
    return obj.compute() if hasattr(obj, "compute") else None


PARTNER = Partner("dask", ("dask",), "dask[array]", (), read, None)
