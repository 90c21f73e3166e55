"""Prices of regions: of the kernels that a call runs, joined ones as one; views are free."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.call import outputs
from taco_py.data.kernels import KERNELS
from taco_py.graph.backends.read_only import detach_results
from taco_py.graph.run import graph_program
from taco_py.graph.selection.graph_dag import dag_of_graph
from taco_py.graph.selection.region_price import COSTS, RegionPrices, prices_of
from taco_py.graph.traced_graph import TracedGraph
from taco_py.planner.ir.plan import Plan
from taco_py.planner.plan_price import PricedFor

rng = np.random.default_rng(0)
EXPECTED = re.compile(r"^chosen .*?expected ([0-9.e+-]+) s", re.MULTILINE)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def dense_layer(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def graph_layer(a: Any, x: Any, b: Any) -> Any:
    return np.maximum(a @ x + b, 0)


def spread_ranks(a: Any, r: Any) -> Any:
    """A product whose vector is an array, for the matrix is SciPy's."""
    degrees = a.sum(1)
    new = 0.85 * (a.T @ (r / degrees)) + 0.15
    return new, np.abs(new - r).sum()


def attention(m: Any, x: Any, a: Any) -> Any:
    scores = (x @ a)[:, None] + (x @ a)[None, :]
    s = np.where(m, np.where(scores > 0, scores, 0.2 * scores), -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True) @ x).sum()


def matrix(n: int, density: float = 0.05) -> Any:
    drawn = sp.random_array((n, n), density=density, format="csr", rng=np.random.default_rng(n))
    return sp.csr_array(drawn + sp.eye_array(n))


CASES = (
    (softmax, (rng.random((64, 200)),)),
    (dense_layer, (rng.random((96, 80)), rng.random((80, 96)), rng.random(96))),
    (graph_layer, (matrix(200), rng.random((200, 8)), rng.random(8))),
    (spread_ranks, (matrix(200), rng.random(200))),
    (attention, (matrix(150), rng.random((150, 4)), rng.random(4))),
)


def prices(function: Any, operands: tuple[Any, ...]) -> tuple[TracedGraph, RegionPrices]:
    """The graph of a call, and its prices."""
    graph = tp.fuse(function).graph(*operands)
    return graph, prices_of(dag_of_graph(graph.primitives), operands)


def plans_of_call(
    monkeypatch: pytest.MonkeyPatch, function: Any, operands: tuple[Any, ...]
) -> list[Plan]:
    """The plans that a call runs, in order."""
    plans: list[Plan] = []
    run = outputs.run_all

    def watched(plan: Plan, execution: Any) -> Any:
        plans.append(plan)
        return run(plan, execution)

    monkeypatch.setattr(outputs, "run_all", watched)
    monkeypatch.setattr(graph_program, "find", lambda key: None)
    tp.fuse(function)(*operands)
    return plans


def price_of(plan: Plan) -> float:
    """The seconds of a plan's kernels on one thread."""
    priced = PricedFor({}, plan.machine, 1)
    facts = priced.facts_of(plan)
    return sum(priced.kernel(kernel, facts) for kernel in plan.kernels)


@pytest.mark.parametrize(("function", "operands"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_a_region_is_priced_as_the_call_computes_it(
    monkeypatch: pytest.MonkeyPatch, function: Any, operands: tuple[Any, ...]
) -> None:
    graph, found = prices(function, operands)
    regions = [region for region in graph.call.decision.selected.regions if region.kernel]
    plans = plans_of_call(monkeypatch, function, operands)
    assert len(plans) == len(regions) > 0
    for region, called in zip(regions, plans, strict=True):
        plan = found.plan(region)
        assert [k.schedule for k in plan.kernels] == [k.schedule for k in called.kernels]
        assert price_of(plan) == pytest.approx(price_of(called), rel=1e-6)


def test_the_price_of_a_region_is_that_of_its_plan_and_of_its_call() -> None:
    graph, found = prices(softmax, (rng.random((64, 200)),))
    (region,) = graph.call.decision.selected.regions
    plan = found.plan(region)
    seconds = PricedFor({}, plan.machine, found.threads).plan(plan)
    assert found.of(region) == pytest.approx(seconds + COSTS.call_seconds)
    stated = EXPECTED.search(graph.explain())
    assert stated is not None
    assert float(stated[1]) == pytest.approx(found.of(region), rel=5e-3)


def test_a_joined_kernel_costs_less_than_its_parts() -> None:
    text = (
        "m[i] = max(j, S[i,j]); e[i,j] = exp(S[i,j] - m[i]); "
        "z[i] = sum(j, e[i,j]); P[i,j] = e[i,j] / z[i]"
    )
    S = np.zeros((3000, 3000), np.float32)
    joined = tp.compile(text, S=S, outputs=("P",)).plan
    separately = ("fuse_slab", "fuse_temporary", "inline_temporary")
    apart = tp.compile(text, S=S, outputs=("P",), forbid=separately).plan
    assert len(joined.kernels) == 1 < len(apart.kernels)
    assert price_of(joined) < 0.9 * price_of(apart)  # it reads main memory once
    report = tp.explain(text, S=S, outputs=("P",))
    expected = re.search(r"^expected\s+([0-9.e+-]+) s", report, re.MULTILINE)
    assert expected is not None
    whole = PricedFor({}, joined.machine, 1).plan(joined)
    assert float(expected[1]) == pytest.approx(whole, rel=0.05)


def test_an_epilogue_costs_less_than_a_kernel_of_its_own() -> None:
    X, W, b = (rng.random(shape, dtype=np.float32) for shape in ((512, 256), (256, 512), 512))
    text = "P[i,j] = X[i,k] * W[k,j]; H[i,j] = max(P[i,j] + b[j], 0)"
    joined = tp.compile(text, X=X, W=W, b=b, outputs=("H",)).plan
    apart = tp.compile(text, X=X, W=W, b=b, outputs=("H",), forbid=("fuse_epilogue",)).plan
    assert len(joined.kernels) == 1 < len(apart.kernels)
    assert price_of(joined) < price_of(apart)


def test_views_take_no_time_of_elements() -> None:
    def shifted(u: Any) -> Any:
        d = np.exp(u)
        return (d[1:] - d[:-1]) * 2

    for side in (50, 500):
        graph, found = prices(shifted, (rng.random((side, side)),))
        views = [r for r in graph.call.decision.selected.regions if not r.kernel]
        assert views
        assert all(found.of(r) == pytest.approx(COSTS.view_seconds * len(r.nodes)) for r in views)


def test_products_of_floats_take_half_as_long_as_of_doubles() -> None:
    def seconds(dtype: str, columns: int) -> float:
        X, W = rng.random((512, 256)).astype(dtype), rng.random((256, columns)).astype(dtype)
        return price_of(tp.compile("P[i,j] = X[i,k] * W[k,j]", X=X, W=W).plan)

    assert 0.45 < seconds("float32", 512) / seconds("float64", 512) < 0.55
    narrow = seconds("float32", 32) / seconds("float32", 64)
    assert 0.45 < narrow < 0.6  # in tiles of their own width; measured: 0.52


def test_values_of_a_mask_are_expected_to_be_as_many_as_its_entries() -> None:
    """However many operators make them: each asks for the same coordinates."""
    mask = matrix(400, 0.01)
    graph, found = prices(attention, (mask, rng.random((400, 4)), rng.random(4)))
    stored = {n: found.operand_facts[n].nnz for n in found.stored if n in graph.primitives.by_name}
    assert len(stored) > 4
    assert all(entries == mask.nnz for entries in stored.values()), stored


def test_calls_that_stay_take_the_short_way_with_numbers_and_sparse_operands() -> None:
    """A backend that computes nothing costs no more than to see that sizes are the same."""

    def scaled(a: Any, x: Any, h: Any) -> Any:
        return np.exp(a @ x) * h

    tp.register_backend(
        tp.Backend("idle_here", (), None, lambda region, constants: None, lambda code, arrays: [])
    )
    fused = tp.fuse(scaled, backends=("idle_here",))
    for n in (20, 30, 20):
        a, x = matrix(n), rng.random(n)
        for h in (np.float64(0.5), np.float64(2.0)):
            np.testing.assert_allclose(fused(a, x, h), np.exp(a @ x) * h)
    assert sum(map(len, fused.routes.values())) >= 2  # for two sizes
    wide = matrix(20, 0.9)  # many more entries: another choice may pay
    np.testing.assert_allclose(fused(wide, rng_vector := rng.random(20), np.float64(1.0)),
                               np.exp(wide @ rng_vector))  # fmt: skip


def test_results_in_memory_that_is_used_again_are_not_copied() -> None:
    outputs_of_backend = [KERNELS.pool.empty((1024, 1024), "float32")]
    address = outputs_of_backend[0].ctypes.data
    (detached,) = detach_results(outputs_of_backend, [])
    assert detached.ctypes.data == address
    other = detached[:10]
    (copied,) = detach_results([other], [])  # the caller keeps what lies around it
    assert copied.ctypes.data != address
