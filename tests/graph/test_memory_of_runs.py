"""Programs of graphs hold few bytes: steps and statements in a good order, values given up."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.run.order_of_steps import bytes_of
from tests.machines import SERVER, on_machine

x = np.random.default_rng(0).random((200, 200))


def peak_of(function: Callable[..., Any], *operands: Any) -> int:
    tracemalloc.start()
    function(*operands)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def sorted_powers(x: Any) -> Any:
    products = [x @ (x + number) for number in range(5)]
    return sum(np.sort(each, axis=0)[0].sum() for each in products)


def test_steps_run_in_the_order_that_holds_the_fewest_bytes() -> None:
    fused = tp.fuse(optimize="none")(sorted_powers)
    for _ in range(2):
        np.testing.assert_allclose(fused(x), sorted_powers(x))
    order = fused.graph(x).call.program.order
    assert order is not None and order.peak <= 3 * x.nbytes + 4096 < order.as_given
    assert peak_of(fused, x) < 3.5 * x.nbytes
    told = fused.graph(x).explain()
    assert "at most at once, in step" in told and "order     steps 1, " in told


def test_statements_of_a_step_run_in_that_order_where_it_saves_much() -> None:
    def waves(x: Any) -> Any:
        products = [x @ (x + number) for number in range(5)]
        again = [np.cos(each) @ x for each in products]
        return sum(each.sum(0) for each in again)

    large = np.random.default_rng(0).random((240, 240))
    fused = tp.fuse(waves)
    for _ in range(2):
        np.testing.assert_allclose(fused(large), waves(large))
    assert peak_of(fused, large) < 4 * large.nbytes
    told = fused.graph(large).explain().splitlines()
    assert any(line.startswith("memory    ") and "at once" in line for line in told)


def test_what_users_got_is_never_written_again() -> None:
    def several(x: Any) -> Any:
        a = np.cumsum(x @ x, axis=0)
        b = np.cumsum(a @ x, axis=0)
        c = np.cumsum(b.T, axis=1)
        return a, b.T, c, c[1:]

    fused = tp.fuse(several)
    small = x[:20, :20] / 20
    calls = [(fused(small * k), several(small * k)) for k in range(1, 5)]
    for found, expected in calls:
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other)


def test_bytes_of_values() -> None:
    a = sp.csr_array(np.eye(10))
    assert bytes_of(x) == x.nbytes and bytes_of(3) == 0
    assert bytes_of(a) == a.data.nbytes + a.indices.nbytes + a.indptr.nbytes
    assert bytes_of(a.tocoo()) == 10 * (8 + 4 + 4)
    assert bytes_of(tp.tensor(a)) == bytes_of(a)


def test_a_step_reads_through_a_view_that_is_made_after_it() -> None:
    def turned(a: Any) -> Any:
        t = np.any(a, axis=-3, keepdims=True)
        s = np.std(t, axis=(0, 1), keepdims=True)
        return np.logaddexp.reduce(np.real(np.round(s / 3, 1))), s

    cube = np.random.default_rng(0).random((5, 2, 3))
    for found, expected in zip(tp.fuse(turned)(cube), turned(cube), strict=True):
        np.testing.assert_allclose(found, expected)


def test_sparse_results_with_new_modes_are_the_same_in_later_calls() -> None:
    def wide(a: Any) -> Any:
        return np.expand_dims(a, 2) * np.expand_dims(a, 2)

    a = np.where(x[:5, :4] > 0.5, x[:5, :4], 0)
    fused = tp.fuse(wide)
    for _ in range(3):
        found = fused(sp.coo_array(a))
        np.testing.assert_allclose(tp.tensor(found).to_numpy(), wide(a))


def test_temporaries_in_one_mode_are_counted_as_long_as_anything_reads_them() -> None:
    """p is made over its elements in one loop, and read as a matrix of the same memory."""
    text = "p[i,j] = x[i,j] + 1; q[i,k] = sum(j, x[i,j] * p[j,k]); s[k] = sum(i, cos(q[i,k]))"
    with on_machine(SERVER):
        told = tp.explain(text, x=x, outputs=("s",), forbid=("fuse_epilogue",))
    (line,) = (line for line in told.splitlines() if line.startswith("memory "))
    assert "640.0 kB at once" in line and "p_fused" in line  # q and p, of a library's product
    told = tp.explain(text, x=x, outputs=("s",), forbid=("fuse_epilogue",))
    (line,) = (line for line in told.splitlines() if line.startswith("memory "))
    assert "q in the format dd 320.0 kB, p_fused in the format d 320.0 kB" in line
    with pytest.raises(tp.OutOfMemoryError):
        tp.evaluate(text, x=x, outputs=("s",), forbid=("fuse_epilogue",), memory_limit=500_000)


def test_results_that_a_kernel_stores_besides_are_counted_until_they_are_read() -> None:
    """P, which the kernel of s stores besides, is there while the last one makes t."""
    text = (
        "P[i,j] = sum(k, x[i,k] * x[k,j]); s[j] = sum(i, max(P[i,j], 0)); "
        "t[i,j,l] = P[i,j] / s[j] * y[l]"
    )
    told = tp.explain(text, x=x, y=x[0, :2], outputs=("t",), libraries=False)
    assert "besides   P" in told
    (line,) = (line for line in told.splitlines() if line.startswith("memory "))
    assert "t in the format ddd 640.0 kB, P 320.0 kB" in line
