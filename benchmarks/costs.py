"""What do the operations cost that schedules are chosen by (`compiler.cost.machine.Machine`)?

Each row is called like a field of a record of `Machine`: its number is what that field is on this
computer.
The unit is an iteration of an SpMV, a gather and a multiplication, in the same round; one thread,
matrices of 10 entries a row that fit the caches. The lines are those of a dense matrix that does
not fit the near ones: with the step, or the eight iterations, that each goes with.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, Record, in_turns, record
from taco_py.tool.inputs import tensor_coordinates, uniform

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
        "dense_vector_steps": lambda: run(spmv, A=dense, x=x[: SIZE // 4]),
        "merge_steps": lambda: run("s = A[i,j] * B[i,j]", A=a, B=b),
        "scatter_steps": lambda: run("y[j] = A[i,j] * x[i]", A=a, x=x),
        "line_steps, with its step": lambda: run(spmm, A=wide, X=panel, schedule="reorder(f,i,j)"),
        "next_line_steps, with its eight": lambda: run(
            spmm, A=wide, X=panel, schedule="reorder(i,j,f)"
        ),
        "row_workspace_steps": lambda: run(gemm, A=a, B=b),
        "row_workspace_steps, 1.5 products an element": lambda: run(gemm, A=a, B=narrow),
        "hash_workspace_steps": lambda: run(gemm, A=columns, B=b, schedule="reorder(k,i,j)"),
        "hash_workspace_steps, 1.5 products an element": lambda: run(
            gemm, A=columns, B=narrow, schedule="reorder(k,i,j)"
        ),
        "transposed_entry_steps": lambda: stored.to_format(tp.CSC),
        "folded_entry_steps": lambda: listed.to_format(tp.DCSR),
        "sorted_entry_steps, coordinate list": lambda: listed.to_format("ss:1,0"),
        "sorted_entry_steps, three modes": lambda: tensor.to_format("sss:2,0,1"),
        "temporary_entry_steps": lambda: run("C[i,j] = 2 * A[i,j]", A=doubly),
        "dense_root_row_steps": lambda: doubly.to_format(tp.CSR),
    }
    counts = {
        UNIT: float(a.nnz),
        "dense_vector_steps": float(dense.size),
        "merge_steps": float(a.nnz + b.nnz),
        "scatter_steps": float(a.nnz),
        "line_steps, with its step": lines,
        "next_line_steps, with its eight": lines / 8,
        "row_workspace_steps": products,
        "row_workspace_steps, 1.5 products an element": multiplied(a, narrow),
        "hash_workspace_steps": products,
        "hash_workspace_steps, 1.5 products an element": multiplied(a, narrow),
        "transposed_entry_steps": float(a.nnz),
        "folded_entry_steps": float(a.nnz),
        "sorted_entry_steps, coordinate list": float(a.nnz),
        "sorted_entry_steps, three modes": float(tensor.nnz),
        "temporary_entry_steps": float(a.nnz),
        "dense_root_row_steps": float(SIZE),
    }
    return ways, counts


def multiplied(a: Any, b: Any) -> float:
    """The products of entries in A·B."""
    ones = sp.csr_array((np.ones(a.nnz), a.indices, a.indptr), shape=a.shape)
    return float((ones.sum(axis=0) * np.diff(b.indptr)).sum())
