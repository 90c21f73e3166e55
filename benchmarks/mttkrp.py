"""How fast is MTTKRP over the first mode of an order-3 tensor, 32 columns, against `sparse` and
NumPy?
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.inputs import tensors
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.peers import Contenders, library
from taco_py.tool.jobs import mttkrp

COLUMNS = 32


def run() -> Iterator[Record]:
    return records("mttkrp", contests())


def contests() -> Iterator[Contest]:
    kernel = tp.compile(
        "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]",
        T=tp.CSF(3),
        C=tp.dense(2),
        D=tp.dense(2),
        M=tp.dense(2),
        threads=1,
    )
    for name, (coordinates, values, shape) in tensors():
        tensor = tp.Tensor.from_coo(coordinates, values, shape, format=tp.CSF(3), axis=1)
        random = np.random.default_rng(0)
        c, d = random.random((shape[1], COLUMNS)), random.random((shape[2], COLUMNS))
        contenders = {
            REFERENCE: partial(mttkrp, coordinates, values, shape[0], [c, d]),
            OURS: partial(kernel, T=tensor, C=c, D=d),
            **pydata(coordinates, values, shape, c, d),
        }
        yield Contest(name, contenders)


def pydata(coordinates: Any, values: Any, shape: tuple[int, ...], c: Any, d: Any) -> Contenders:
    """The `sparse` package, one column of the factors at a time.

    Its einsum would first make the tensor with all 32 columns.
    """
    sparse = library("sparse")
    if sparse is None:
        return {}
    tensor = sparse.COO(coordinates.T, values, shape=shape)

    def column(r: int) -> Any:
        matrix = sparse.tensordot(tensor, sparse.COO.from_numpy(d[:, r]), axes=([2], [0]))
        return dense(sparse.tensordot(matrix, c[:, r], axes=([1], [0])))

    return {"sparse": lambda: np.stack([column(r) for r in range(COLUMNS)], axis=1)}


def dense(result: Any) -> Any:
    return result.todense() if hasattr(result, "todense") else result
