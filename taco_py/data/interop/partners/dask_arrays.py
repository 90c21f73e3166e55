"""Arrays and delayed values of dask, which are computed when they are read.

`dask.array.from_array(T, asarray=False)` builds an array of dask whose chunks are Tensors.
"""

from __future__ import annotations

from typing import Any

from taco_py.data.interop.partners.partner import Partner


def read(obj: Any) -> Any:
    """Compute an array or a delayed value of dask; None for anything else."""
    return obj.compute() if hasattr(obj, "compute") else None


PARTNER = Partner("dask", ("dask",), "dask[array]", (), read, None)
