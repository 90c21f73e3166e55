"""Operators that only pass over memory, as benchmarks time them, against NumPy in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import taco_py as tp
from benchmarks.function_limit import BLOCK, evaluations_of
from benchmarks.memory_bound import (
    DIGITS,
    compulsory_bytes,
    difference,
    evaluations,
    exact,
    ours,
    parts,
    unfused,
)
from benchmarks.memory_bound_workloads import ROW_TEXTS, WORKLOADS, row_operands
from taco_py.data.kernels import KERNELS

SIDE, ENTRIES = 128, 5000


@pytest.mark.parametrize("name", WORKLOADS)
def test_operators_are_computed(name: str) -> None:
    workload = WORKLOADS[name]
    operands = workload.operands(ENTRIES if workload.group == "sparse" else SIDE)
    expected = parts(workload.reference(*map(exact, operands)))
    assert difference(ours(workload, operands)(), expected) < DIGITS
    apart = unfused(workload, operands)
    assert apart is None or difference(apart(), expected) < DIGITS
    assert difference(workload.reference(*operands), expected) < DIGITS


@pytest.mark.parametrize("target", ["c", "cuda-emulated"])
@pytest.mark.parametrize("name", ROW_TEXTS)
def test_texts_compute_what_functions_compute(name: str, target: str) -> None:
    if target != "c" and KERNELS.compiler.kind != "gcc":
        pytest.skip("no gcc: kernels of CUDA are not emulated here")
    workload = WORKLOADS[name]
    operands = workload.operands(64)
    result = tp.evaluate(ROW_TEXTS[name][1], row_operands(name, operands), target=target)
    assert difference(result, parts(workload.reference(*map(exact, operands)))) < DIGITS


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("softmax", 128, 2 * 4 * 128**2),
        ("bias_gelu_residual", 128, 3 * 4 * 128**2 + 4 * 128),
        ("sums_of_columns", 128, 4 * 128**2 + 4 * 128),
        ("concatenated_slices", 128, 2 * 4 * 128**2),
        ("cross_entropy", 128, 4 * 128**2 + 8 * 128 + 4),
        ("sparse_softmax", 5000, 2 * (2 * 4 * 5000 + 4 * 101)),
        ("weighted_terms", 5000, 2 * (2 * 4 * 5000 + 4 * 101) + 4 * 50),
    ],
)
def test_bytes_that_operators_cannot_do_without(name: str, size: int, expected: int) -> None:
    """Operands and results once, with their coordinates."""
    workload = WORKLOADS[name]
    operands = workload.operands(size)
    assert compulsory_bytes(workload, operands, workload.reference(*operands)) == expected


def test_operands_are_float32_and_as_many() -> None:
    for name, workload in WORKLOADS.items():
        if workload.group != "sparse":
            assert any(each.size == 256**2 for each in workload.operands(256)), name
            floats = [each for each in workload.operands(256) if each.dtype.kind == "f"]
            assert {each.dtype for each in floats} == {np.dtype(np.float32)}, name


@pytest.mark.parametrize("name", [name for name, each in WORKLOADS.items() if each.per_element])
def test_functions_alone_are_as_many_as_elements(name: str) -> None:
    """And the function is that of the operator's kernel, evaluated in whole blocks."""
    workload = WORKLOADS[name]
    operands = workload.operands(ENTRIES if workload.group == "sparse" else SIDE)
    count = evaluations(operands[0])
    assert count == (operands[0].nnz if workload.group == "sparse" else SIDE**2)
    compute = evaluations_of(workload.per_element, count, 2)
    compute()
    x, y, rounds, _ = compute.args  # type: ignore[attr-defined]
    assert (rounds - 1) * BLOCK < count <= rounds * BLOCK
    function = {"exp": np.exp, "log1p": np.log1p}.get(workload.per_element)
    first = function(x[0]) if function else math.erf(float(x[0]))
    np.testing.assert_allclose(y, np.full(rounds, first), rtol=1e-6)
