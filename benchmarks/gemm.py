"""How fast is generated code for C = A B, dense, against OpenBLAS, and MKL by torch?

The reference is `numpy.matmul`, whose OpenBLAS is left the same number of threads: set
OPENBLAS_NUM_THREADS (and OMP_NUM_THREADS) to 1, or to 2 for both, before the run. A processor that
it does not know runs the kernels of an older one: OPENBLAS_CORETYPE=SkylakeX asks for those with
vectors of 64 bytes. torch takes part where it is installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.peers import Contenders, library

Array = np.ndarray[Any, Any]
SIZES = (64, 128, 256, 512, 1024, 1536, 2048)
TEXT = "C[i,j] = A[i,k] * B[k,j]"


def run() -> Iterator[Record]:
    return records("gemm", contests())


def threads() -> int:
    """What the peer was given."""
    return int(os.environ.get("OPENBLAS_NUM_THREADS", "1"))


def contests() -> Iterator[Contest]:
    formats = {"A": tp.dense(2), "B": tp.dense(2), "C": tp.dense(2)}
    for dtype in ("float64", "float32"):
        product = tp.compile(TEXT, formats, dtypes=dtype, threads=threads())
        rng = np.random.default_rng(0)
        for n in SIZES:
            # Small integers, whose sums are exact in either type.
            a, b = (rng.integers(0, 4, (n, n)).astype(dtype) for _ in "ab")
            ours, theirs, others = np.empty((3, n, n), dtype)
            contenders = {
                REFERENCE: partial(np.matmul, a, b, out=theirs),
                OURS: partial(product, A=a, B=b, out=ours),
                **torch_product(a, b, others),
            }
            yield Contest(f"{dtype} {n}, {threads()} threads", contenders)


def torch_product(a: Array, b: Array, out: Array) -> Contenders:
    """torch's product of matrices, which is MKL's in its builds for x86."""
    torch = library("torch")
    if torch is None:
        return {}
    torch.set_num_threads(threads())
    left, right, result = map(torch.from_numpy, (a, b, out))

    def multiply() -> Array:
        torch.mm(left, right, out=result)
        return out

    return {"torch (MKL)": multiply}
