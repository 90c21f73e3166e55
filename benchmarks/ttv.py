"""How fast is an order-3 tensor times a vector over its last mode, with a sparse result?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.inputs import tensors
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from benchmarks.peers import Contenders, library
from taco_py.tool.jobs import times_vector


def run() -> Iterator[Record]:
    return records("ttv", contests())


def contests() -> Iterator[Contest]:
    kernel = tp.compile(
        "A[i,j] = T[i,j,k] * x[k]", T=tp.CSF(3), x=tp.dense(1), A=tp.CSF(2), threads=1
    )
    for name, (coordinates, values, shape) in tensors():
        tensor = tp.Tensor.from_coo(coordinates, values, shape, format=tp.CSF(3), axis=1)
        x = np.random.default_rng(0).random(shape[2])
        contenders = {
            REFERENCE: partial(times_vector, coordinates, values, shape, x),
            OURS: partial(kernel, T=tensor, x=x),
            **pydata(coordinates, values, shape, x),
        }
        yield Contest(name, contenders)


def pydata(coordinates: Any, values: Any, shape: tuple[int, ...], x: Any) -> Contenders:
    """The `sparse` package; to check its result it is handed to scipy, which copies nothing."""
    sparse = library("sparse")
    if sparse is None:
        return {}
    tensor = sparse.COO(coordinates.T, values, shape=shape)
    vector = sparse.COO.from_numpy(x)

    def compute() -> Any:
        return sparse.tensordot(tensor, vector, axes=([2], [0])).to_scipy_sparse()

    return {"sparse": compute}
