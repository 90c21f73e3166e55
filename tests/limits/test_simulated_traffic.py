"""The bytes that calls move between simulated caches and memory, against counts by hand.

Lines at the ends of arrays may be shared with others, and results' lines may leave a cache before
they are full: what is exact for arrays of whole lines is compared with some slack.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.runtime.traced.simulated_caches import SimulatedCache, SimulatedCaches
from taco_py.calls.kernels.simulate_traffic import CallTraffic, simulate_traffic
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import CompilerError

CACHES = SimulatedCaches((SimulatedCache(4096), SimulatedCache(65536, 16)))
N = 512
WHOLE = 4 * N * N
SLACK = 0.02

pytestmark = pytest.mark.user_flags


@pytest.fixture(autouse=True)
def _gcc() -> None:
    if KERNELS.compiler.kind != "gcc":
        pytest.skip("no gcc: accesses are not followed here")


def _matrix(rows: int = N, columns: int = N) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).random((rows, columns), np.float32)


def _is_near(bytes_: int, expected: int) -> bool:
    return expected <= bytes_ + 128 and bytes_ <= (1 + SLACK) * expected + 256


def _dram(traffic: CallTraffic) -> tuple[int, int]:
    return traffic.total.dram_read, traffic.total.dram_written


def test_sums_of_rows_read_the_matrix_once() -> None:
    x = _matrix()
    traffic = simulate_traffic(CACHES, lambda: tp.evaluate("y[i] = A[i,j]", A=x))
    read, written = _dram(traffic)
    assert len(traffic.runs) == 1
    assert traffic.total.loaded >= WHOLE
    assert _is_near(read, WHOLE + 4 * N)
    assert _is_near(written, 4 * N)


def test_sums_of_columns_read_the_matrix_once() -> None:
    x = _matrix()
    read, written = _dram(simulate_traffic(CACHES, lambda: tp.evaluate("y[j] = A[i,j]", A=x)))
    assert _is_near(read, WHOLE + 4 * N)
    assert written <= 8 * N


def test_a_result_is_fetched_unless_it_is_streamed() -> None:
    """Past half of the last cache lines are written past the caches, where vectors are."""
    x, n = _matrix(2 * N, 2 * N), 2 * N
    row, text = x[0].copy(), "y[i,j] = A[i,j] * x[j]"
    traffic = simulate_traffic(CACHES, lambda: tp.evaluate(text, A=x, x=row))
    assert _is_near(traffic.total.dram_written, 4 * n * n)
    assert traffic.total.streamed in (0, 4 * n * n)
    fetched = 4 * n * n - traffic.total.streamed
    assert _is_near(traffic.total.dram_read, 4 * n * n + fetched + 4 * n)


def test_small_operands_are_read_once_and_stay() -> None:
    x = _matrix(32, 32)
    traffic = simulate_traffic(CACHES, lambda: tp.evaluate("y[j] = A[i,j] * A[i,j]", A=x))
    assert _is_near(traffic.total.dram_read, x.nbytes + 4 * 32)


def test_kernels_of_a_plan_are_followed_one_by_one() -> None:
    """A temporary that the last cache holds is never read from memory."""
    x = _matrix(64, 64)
    text = "t[i,j] = A[i,k] * A[k,j]; y[i,j] = t[i,j] * t[j,i] + t[i,i]"
    traffic = simulate_traffic(CACHES, lambda: tp.evaluate(text, A=x, libraries=False))
    assert len(traffic.runs) > 1
    assert all("evaluate" in run.source for run in traffic.runs)
    parts = sum(run.traffic.dram_read for run in traffic.runs)
    assert parts == traffic.total.dram_read
    assert traffic.total.dram_read <= 5 * x.nbytes < traffic.total.loaded


def test_a_compiled_kernel_is_followed_though_it_was_compiled_before() -> None:
    a = sp.random_array((2000, 300), density=0.05, format="csr", rng=np.random.default_rng(1))
    x = np.random.default_rng(2).random(300)
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    expected = kernel(A=a, x=x)
    traffic = simulate_traffic(CACHES, kernel, A=a, x=x)
    entries = a.data.nbytes + a.indices.nbytes
    assert _is_near(traffic.total.dram_read, entries + a.indptr.nbytes + x.nbytes + 8 * 2000)
    np.testing.assert_allclose(kernel(A=a, x=x), expected)


def test_a_sparse_result_is_read_and_written_once() -> None:
    a = sp.random_array((400, 400), density=0.05, format="csr", rng=np.random.default_rng(1))
    traffic = simulate_traffic(CACHES, lambda: tp.evaluate("B[i,j] = 2 * A[i,j]", A=a))
    assert traffic.total.dram_read >= a.data.nbytes
    assert traffic.total.dram_written >= a.data.nbytes


def test_a_fused_function_is_followed() -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    x, fused = _matrix(), tp.fuse(softmax)
    before = fused(x)
    traffic = simulate_traffic(CACHES, fused, x)
    assert traffic.runs
    assert traffic.total.dram_read >= WHOLE - 128
    assert traffic.total.dram_written >= WHOLE - 128
    np.testing.assert_array_equal(fused(x), before)


def test_a_call_of_a_library_is_refused() -> None:
    """Its bytes would be missing."""
    x = np.random.default_rng(0).random((300, 300))
    product = "C[i,k] = A[i,j] * B[j,k]"
    if "library" not in tp.explain(product, A=x, B=x):
        pytest.skip("no library here")
    with pytest.raises(CompilerError, match=r"found the routine[\s\S]*libraries=False"):
        simulate_traffic(CACHES, lambda: tp.evaluate(product, A=x, B=x))


def test_a_call_without_a_followed_kernel_is_refused() -> None:
    kernel = tp.compile("y[i] = 2 * x[i]", x=tp.dense(1))
    x = np.ones(10)
    kernel(x=x)
    with pytest.raises(CompilerError, match="runs a kernel, found none"):
        simulate_traffic(CACHES, lambda: kernel(x=x))
