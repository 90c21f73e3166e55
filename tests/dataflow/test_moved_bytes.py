"""The bytes that dataflow graphs say they move, beside those that simulated caches count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from codegen.runtime.traced.simulated_caches import SimulatedCache, SimulatedCaches
from taco_py.calls.kernels.simulate_traffic import simulate_traffic
from taco_py.compiler.dataflow.moved_bytes import Caches, compulsory, traffic
from taco_py.compiler.dataflow.rewritten_graph import rewritten
from taco_py.compiler.dataflow.slab_form import slab_form

NEAR, LAST = 32 << 10, 512 << 10
CACHES = SimulatedCaches((SimulatedCache(NEAR, 8), SimulatedCache(LAST, 16)))
NORM = "d[i,j] = X[i,j] - sum(k, X[i,k]) / 2000; v[i] = sum(j, d[i,j] * d[i,j]) / 2000"
TEXTS = {
    "softmax": "e[i,j] = exp(X[i,j] - max(k, X[i,k])); R[i,j] = e[i,j] / sum(k, e[i,k])",
    "layer norm": f"{NORM}; R[i,j] = d[i,j] / sqrt(v[i] + 0.00001) * g[j] + b[j]",
    "RMS norm": "R[i,j] = X[i,j] / sqrt(sum(k, X[i,k] * X[i,k]) / 2000 + 0.00001) * g[j]",
    "sums": "R[i,j] = max(X[i,j] + b[j], 0); r[i] = sum(j, R[i,j]); c[j] = sum(i, R[i,j])",
    "two norms": "R[i] = sum(j, X[i,j] * X[i,j]); s[i] = sum(j, X[i,j])",
    "columns": "R[i,j] = X[i,j] - sum(k, X[k,j]) / 600",
    "moments": "R[i,j] = 0.9 * X[i,j] + 0.1 * Y[i,j]; S[i,j] = X[i,j] - Y[i,j] * Y[i,j]",
}


def operands() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"X": (600, 2000), "Y": (600, 2000), "g": (2000,), "b": (2000,)}
    return {name: rng.random(shape, dtype=np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", TEXTS)
def test_bytes_of_main_memory_are_within_a_tenth_of_those_that_caches_count(name: str) -> None:
    text = TEXTS[name]
    arrays = {n: array for n, array in operands().items() if f"{n}[" in text}
    targets = [part.strip()[0] for part in text.split(";")]
    results = tuple(target for target in targets if target in "RSrsc")
    kernel = tp.compile(text, **arrays, outputs=results)
    (step,) = kernel.plan.program.kernels
    assert step.schedule.make.way == "slabs"
    form = slab_form(step.problem, *step.schedule.make.parameters)
    graph = rewritten(step.problem, form).graph
    shapes = {n: fact.shape for n, fact in kernel.plan.program.facts.items()}
    sizes = {
        mode: float(shapes[step.source(tensor)][place])
        for index, tensor, place in step.sizes
        for mode, names in form.names.items()
        if index in names
    }
    predicted = traffic(graph, sizes, Caches(NEAR + LAST, LAST // 2)).dram
    counted = simulate_traffic(CACHES, kernel, **arrays).total.dram_bytes
    assert predicted == pytest.approx(compulsory(graph, sizes), rel=0.01)
    assert counted == pytest.approx(predicted, rel=0.1)
