"""The schedules with which TACO's papers were evaluated on CPUs run as they are written there.

(Senanayake et al. 2020, section 7; the text form is that of TACO's command line.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.parser import parse_assignment
from tests.corpus.data import dense_result
from tests.corpus.formats import store, to_dense

SIZES = {"i": 37, "j": 29, "k": 23, "l": 19, "m": 5, "n": 4}
SPMV = "y(i) = A(i,j) * x(j)"
SPMM = "C(i,k) = A(i,j) * B(j,k)"
SDDMM = "A(i,k) = B(i,k) * C(i,j) * D(j,k)"
TTV = "A(i,j) = B(i,j,k) * c(k)"
TTM = "A(i,j,l) = B(i,j,k) * C(k,l)"
MTTKRP = "A(i,j) = B(i,k,l) * C(k,j) * D(l,j)"
MTTKRP4 = "A(i,j) = B(i,k,l,m) * C(k,j) * D(l,j) * E(m,j)"
MTTKRP5 = "A(i,j) = B(i,k,l,m,n) * C(k,j) * D(l,j) * E(m,j) * F(n,j)"
SPARSE3 = {"B": "sss"}

# What is evaluated, the formats of its sparse operands, the result's format, the schedule.
SCHEDULES = {
    "SpMV": (
        SPMV, {"A": "CSR"}, "d",
        "split(i,i0,i1,16), reorder(i0,i1,j), parallelize(i0,CPUThread,NoRaces)",
    ),
    "SpMM": (
        SPMM, {"A": "CSR"}, "dd",
        "split(i,i0,i1,16), pos(j,jpos,A(i,j)), split(jpos,jpos0,jpos1,8), "
        "reorder(i0,i1,jpos0,k,jpos1), parallelize(i0,CPUThread,NoRaces), "
        "parallelize(k,CPUVector,IgnoreRaces)",
    ),
    "SpMSpV": (
        SPMV, {"A": "CSC", "x": "s"}, "d",
        "reorder(j,i), pos(j,jpos,x(j)), split(jpos,jpos0,jpos1,16), "
        "parallelize(jpos0,CPUThread,Atomics)",
    ),
    "SDDMM": (
        SDDMM, {"B": "CSR"}, "dd",
        "split(i,i0,i1,16), pos(k,kpos,B(i,k)), split(kpos,kpos0,kpos1,8), "
        "reorder(i0,i1,kpos0,j,kpos1), parallelize(i0,CPUThread,NoRaces), "
        "parallelize(kpos1,CPUVector,ParallelReduction)",
    ),
    "TTV": (
        TTV, SPARSE3, "dd",
        "fuse(i,j,f), pos(f,fpos,B(i,j,k)), split(fpos,chunk,fpos2,16), reorder(chunk,fpos2,k), "
        "parallelize(chunk,CPUThread,NoRaces)",
    ),
    "TTM": (
        TTM, SPARSE3, "ddd",
        "fuse(i,j,f), pos(f,fpos,B(i,j,k)), split(fpos,chunk,fpos2,16), pos(k,kpos,B(i,j,k)), "
        "split(kpos,kpos1,kpos2,8), reorder(chunk,fpos2,kpos1,l,kpos2), "
        "parallelize(chunk,CPUThread,NoRaces), parallelize(kpos2,CPUVector,ParallelReduction)",
    ),
    "MTTKRP": (
        MTTKRP, SPARSE3, "dd",
        "split(i,i1,i2,16), reorder(i1,i2,k,l,j), parallelize(i1,CPUThread,NoRaces)",
    ),
    "MTTKRP of order 4": (
        MTTKRP4, {"B": "ssss"}, "dd",
        "split(i,i1,i2,16), reorder(i1,i2,k,l,m,j), parallelize(i1,CPUThread,NoRaces)",
    ),
    "MTTKRP of order 5": (
        MTTKRP5, {"B": "sssss"}, "dd",
        "split(i,i1,i2,16), reorder(i1,i2,k,l,m,n,j), parallelize(i1,CPUThread,NoRaces)",
    ),
    "MTTKRP precomputed": (
        MTTKRP, SPARSE3, "dd",
        "reorder(i,k,l,j), precompute(B(i,k,l)*D(l,j),j,j), split(i,i0,i1,32), "
        "parallelize(i0,CPUThread,NoRaces)",
    ),
    "SpGEMM": (
        "A(i,j) = B(i,k) * C(k,j)", {"B": "CSR", "C": "CSR"}, "ds",
        "reorder(i,k,j), precompute(B(i,k)*C(k,j),j,j), assemble(A,Insert), "
        "parallelize(i,CPUThread,NoRaces)",
    ),
    "SpAdd": (
        "A(i,j) = B(i,j) + C(i,j)", {"B": "CSR", "C": "CSR"}, "ds",
        "assemble(A,Insert), parallelize(i,CPUThread,NoRaces)",
    ),
}  # fmt: skip


def operands(text: str, formats: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays of whole numbers, and the same as they are stored: sparse ones a tenth full."""
    random = np.random.default_rng(3)
    arrays, stored = {}, {}
    for access in accesses(parse_assignment(text).value):
        shape = tuple(SIZES[i] for i in access.indices)
        array = random.integers(1, 5, shape) * 1.0
        if access.tensor in formats:
            array *= random.random(shape) < 0.1
        arrays[access.tensor] = array
        stored[access.tensor] = store(array, formats.get(access.tensor, "dense"))
    return arrays, stored


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", SCHEDULES)
def test_runs_as_written(name: str, threads: int) -> None:
    text, formats, result, schedule = SCHEDULES[name]
    arrays, stored = operands(text, formats)
    found = tp.evaluate(text, stored, format=result, schedule=schedule, threads=threads)
    np.testing.assert_array_equal(to_dense(found), dense_result(text, arrays))


# Where the papers' schedule leaves the result dense, one that has the operand's pattern.
SPARSE = {"SpMV": "s", "SDDMM": "ds", "TTV": "ss", "TTM": "ssd", "MTTKRP": "sd"}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_results(name: str) -> None:
    text, formats, _, schedule = SCHEDULES[name]
    arrays, stored = operands(text, formats)
    serial = ", ".join(c for c in schedule.split(", ") if not c.startswith("parallelize"))
    found = tp.evaluate(text, stored, format=SPARSE[name], schedule=serial)
    np.testing.assert_array_equal(to_dense(found), dense_result(text, arrays))
