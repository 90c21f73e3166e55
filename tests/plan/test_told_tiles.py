"""What explain() tells of tiles is what stands in the generated C, and what it tells moves."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np
import pytest

import taco_py as tp
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from taco_py.compiler.driver import make_source
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.report.explanation.memory_traffic import bytes_of, describe_traffic
from tests.problems import plan, problem

SPMM = "C[i,k] = A[i,j] * B[j,k]"
MTTKRP = "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]"
PANELS = {
    "spmm": (SPMM, {"A": "CSR"}, "C"),
    "mttkrp": (MTTKRP, {"T": "CSF"}, "M"),
    "ttm": ("Y[i,j,r] = T[i,j,k] * U[k,r]", {"T": "CSF"}, "Y"),
}
NONE = {
    "sddmm": ("D[i,j] = S[i,j] * U[i,k] * V[j,k]", {"S": "CSR"}, "none: no row stays the same"),
    "spgemm": (SPMM, {"A": "CSR", "B": "CSR"}, "none: no row stays the same"),
    "spmv": ("y[i] = A[i,j] * x[j]", {"A": "CSR"}, "pA2 by 8, where it has 64 terms: 4 sums"),
    "gemv": ("y[i] = A[i,j] * x[j]", {}, "i by 4: 4 rows of A_vals through one loop"),
}


def made(
    text: str, formats: Mapping[str, str], dtypes: Mapping[str, str] | None = None
) -> tuple[list[str], str]:
    """The lines that are told of the last kernel, and its C."""
    step = plan(problem(text, formats, dtypes=dtypes)).kernels[-1]
    found = make_source(step.recipe())
    return json.loads(found.metadata)["report"]["tiles"], found.source


@pytest.mark.parametrize("name", PANELS)
def test_every_panel_told_is_in_the_code(name: str) -> None:
    text, formats, result = PANELS[name]
    lines, source = made(text, formats)
    told = re.search(r"(\w+) by (\d+): a panel of (\w+) in (\d+) registers", "\n".join(lines))
    assert told is not None
    index, width, array, registers = told.groups()
    assert f"{index} += {width})" in source
    assert array == f"{result}_vals"
    assert f"{array}_{int(registers) - 1}" in source
    left = f"{index}, up to {int(width) - 1} that are left: a panel of {array} in registers that"
    assert any(line.startswith(left) for line in lines)
    assert all(f"{index} += {step})" in source for step in (4, int(width) // 2))
    assert any(line.startswith(f"  vector loop: {index}, along rows of {array}") for line in lines)


@pytest.mark.parametrize("name", NONE)
def test_kernels_without_panels_say_what_they_have(name: str) -> None:
    text, formats, words = NONE[name]
    lines, source = made(text, formats)
    assert lines[0].startswith(words)
    assert "a panel of" not in "\n".join(lines)
    assert ("+= 4)" in source) is (name == "gemv")


def test_numbers_that_have_no_vectors_have_no_panels() -> None:
    lines, _ = made(SPMM, {"A": "CSR"}, {"A": "int64", "B": "int64"})
    assert lines[0] == "no panels of C_vals: they hold real numbers, not int64"


def csr(rows: int, columns: int, each: int) -> TensorData:
    nnz = rows * each
    pos, crd = np.arange(0, nnz + 1, each, dtype="i4"), np.zeros(nnz, "i4")
    levels = (LevelArrays(), LevelArrays(pos, crd))
    return TensorData(tp.CSR, (rows, columns), levels, np.zeros(nnz))


def test_what_does_not_fit_comes_in_for_every_use() -> None:
    (step,) = plan(problem(SPMM, {"A": "CSR"})).kernels
    b = TensorData(tp.dense(2), (100, 16), (LevelArrays(),) * 2, np.zeros((100, 16)))
    a = csr(1000, 100, 5)
    small, large = b.values.nbytes - 1, b.values.nbytes
    told = describe_traffic(
        step, {"A": a, "B": b}, Target(machine=Processor(cache_bytes=(small, large)))
    )
    once = bytes_of(a) + 1000 * 16 * 8
    assert bytes_of(a) == 5000 * 12 + 1001 * 4
    amounts = f"{once + 5000 * 16 * 8:.2g} bytes, into cache 2 {once + large:.2g}, at most"
    assert told == f"traffic: into cache 1 {amounts}"
    assert describe_traffic(step, {"A": a}, Target()) == ""
    assert describe_traffic(step, None, Target()) == ""
