"""What does `import taco_py` cost after numpy and scipy.sparse? Fresh processes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import OURS, Record, record
from benchmarks.processes import printed

PROCESSES = 15
CODE = """
import time, numpy, scipy.sparse
start = time.perf_counter()
import {module}
print(1e3 * (time.perf_counter() - start))
"""
MODULES = {OURS: "taco_py", "opt_einsum": "opt_einsum", "sparse": "sparse"}


def run() -> Iterator[Record]:
    from benchmarks.peers import library

    modules = {name: module for name, module in MODULES.items() if library(module) is not None}
    samples: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(PROCESSES):
        for name, module in modules.items():
            samples[name].append(printed(CODE.format(module=module)))
    for name, values in samples.items():
        yield record("import_time", "fresh process", name, values, "ms")
