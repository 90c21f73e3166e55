"""What other libraries, where they are installed, take for the same kernels. Absent ones are left
out.

Each function gives, for operands already in that library's own format, a mapping from name to a
function without arguments: conversions are not timed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

Contenders = dict[str, Callable[[], Any]]


def library(name: str) -> Any | None:
    """The module, or None where it is not installed or does not load (MKL without its shared
    library).
    """
    if find_spec(name.partition(".")[0]) is None:
        return None
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        print(f"  ({name} is installed but does not load: {error})")
        return None


def product(a: Any, b: Any) -> Contenders:
    """a @ b, where b is a CSR matrix, a dense matrix or a vector."""
    found: Contenders = {}
    mkl = library("sparse_dot_mkl")
    if mkl is not None:
        import scipy.sparse as sp

        # The wrapper takes matrices of the older family only.
        left = sp.csr_matrix(a)
        right = sp.csr_matrix(b) if sp.issparse(b) else b
        found["MKL"] = lambda: mkl.dot_product_mkl(left, right)
    found |= graphblas_product(a, b) if getattr(b, "ndim", 2) == 1 else {}
    found |= torch_product(a, b)
    return found


def graphblas_product(a: Any, x: Any) -> Contenders:
    """SuiteSparse:GraphBLAS on one thread."""
    graphblas = library("graphblas")
    if graphblas is None:
        return {}
    graphblas.ss.config["nthreads"] = 1
    matrix = graphblas.io.from_scipy_sparse(a)
    vector = graphblas.Vector.from_dense(x)
    return {"GraphBLAS": lambda: matrix.mxv(vector).new().to_dense(fill_value=0.0)}


def torch_product(a: Any, b: Any) -> Contenders:
    """torch's CSR times dense; its sparse results are left out."""
    torch = library("torch")
    if torch is None or not isinstance(b, np.ndarray):
        return {}
    torch.set_num_threads(1)
    matrix = torch.sparse_csr_tensor(
        torch.from_numpy(a.indptr), torch.from_numpy(a.indices), torch.from_numpy(a.data), a.shape
    )
    dense = torch.from_numpy(b)
    return {"torch": lambda: (matrix @ dense).numpy()}
