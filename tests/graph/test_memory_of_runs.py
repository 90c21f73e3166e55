"""Programs of graphs hold few bytes: steps and statements in a good order, values given up."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.run.order_of_steps import bytes_of

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
