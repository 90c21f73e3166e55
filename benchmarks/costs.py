"""What do the operations cost that schedules are chosen by (`taco_py/cost/machine.py`)?

Each in units of an iteration of an SpMV, a gather and a multiplication, in the same round; one
thread, matrices of 10 entries a row that fit the caches. The lines are those of a dense matrix that
does not fit the near ones: with the step, or the eight iterations, that each goes with.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, Record, in_turns, record
from taco_py.show.inputs import tensor_coordinates, uniform

SIZE, ROW_ENTRIES = 4000, 10
UNIT = "a step"


def run() -> Iterator[Record]:
    ways, operations = contenders()
    for compute in ways.values():
        compute()
    times = in_turns(ways)
    unit = [seconds / operations[UNIT] for seconds in times[UNIT]]
    yield record("costs", UNIT, OURS, [1e9 * seconds for seconds in unit], "ns")
    for name in ways:
        if name != UNIT:
            share = [t / operations[name] / u for t, u in zip(times[name], unit, strict=True)]
            yield record("costs", name, OURS, share, "steps")


def contenders() -> tuple[dict[str, Any], dict[str, float]]:
    """What is run, and how many operations each has."""
    a, b = (uniform(SIZE, SIZE, ROW_ENTRIES, seed) for seed in (1, 2))
    dense, x = np.ones((SIZE // 4, SIZE // 4)), np.ones(SIZE)
    modes, values = tensor_coordinates((300, 300, 300), a.nnz, 0.0)
    tensor = tp.Tensor.from_coo(list(modes), values, (300, 300, 300), format=tp.CSF(3))
    stored, doubly = tp.tensor(a), tp.tensor(a, format=tp.DCSR)
    listed = stored.to_format(tp.COO(2))
    narrow = sp.csr_array(uniform(SIZE, SIZE // 40, ROW_ENTRIES, 3))
    columns, products = a.tocsc(), multiplied(a, b)
    wide, panel = uniform(5 * SIZE, 5 * SIZE, ROW_ENTRIES // 2, 4), np.ones((5 * SIZE, 64))
    spmm, lines = "Y[i,f] = A[i,j] * X[j,f]", float(wide.nnz * panel.shape[1])
    spmv, gemm = "y[i] = A[i,j] * x[j]", "C[i,j] = A[i,k] * B[k,j]"
    run = partial(tp.evaluate, threads=1)
    ways = {
        UNIT: lambda: run(spmv, A=a, x=x),
        "VECTOR": lambda: run(spmv, A=dense, x=x[: SIZE // 4]),
        "MERGE": lambda: run("s = A[i,j] * B[i,j]", A=a, B=b),
        "SCATTER": lambda: run("y[j] = A[i,j] * x[i]", A=a, x=x),
        "LINE, with its step": lambda: run(spmm, A=wide, X=panel, schedule="reorder(f,i,j)"),
        "NEXT_LINE, with its eight": lambda: run(spmm, A=wide, X=panel, schedule="reorder(i,j,f)"),
        "ROW": lambda: run(gemm, A=a, B=b),
        "ROW, 1.5 products an element": lambda: run(gemm, A=a, B=narrow),
        "HASH": lambda: run(gemm, A=columns, B=b, schedule="reorder(k,i,j)"),
        "HASH, 1.5 products an element": lambda: run(
            gemm, A=columns, B=narrow, schedule="reorder(k,i,j)"
        ),
        "CONVERSION": lambda: stored.to_format(tp.CSC),
        "FOLDING": lambda: listed.to_format(tp.DCSR),
        "SORTING, coordinate list": lambda: listed.to_format("ss:1,0"),
        "SORTING, three modes": lambda: tensor.to_format("sss:2,0,1"),
        "TEMPORARY": lambda: run("C[i,j] = 2 * A[i,j]", A=doubly),
        "LOOKED_UP_ROW": lambda: doubly.to_format(tp.CSR),
    }
    counts = {
        UNIT: float(a.nnz),
        "VECTOR": float(dense.size),
        "MERGE": float(a.nnz + b.nnz),
        "SCATTER": float(a.nnz),
        "LINE, with its step": lines,
        "NEXT_LINE, with its eight": lines / 8,
        "ROW": products,
        "ROW, 1.5 products an element": multiplied(a, narrow),
        "HASH": products,
        "HASH, 1.5 products an element": multiplied(a, narrow),
        "CONVERSION": float(a.nnz),
        "FOLDING": float(a.nnz),
        "SORTING, coordinate list": float(a.nnz),
        "SORTING, three modes": float(tensor.nnz),
        "TEMPORARY": float(a.nnz),
        "LOOKED_UP_ROW": float(SIZE),
    }
    return ways, counts


def multiplied(a: Any, b: Any) -> float:
    """The products of entries in A·B."""
    ones = sp.csr_array((np.ones(a.nnz), a.indices, a.indptr), shape=a.shape)
    return float((ones.sum(axis=0) * np.diff(b.indptr)).sum())
