"""What does the first SpMV of a process cost: with an empty kernel cache, and from the cache on
disk?
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from benchmarks.measure import Record, record
from benchmarks.processes import printed

PROCESSES = 9
CODE = """
import time, numpy as np, scipy.sparse as sp, taco_py as tp
A, x = sp.random_array((1000, 1000), density=0.01, format="csr"), np.ones(1000)
start = time.perf_counter()
tp.einsum("ij,j->i", A, x)
print(1e3 * (time.perf_counter() - start))
"""


def run() -> Iterator[Record]:
    samples: dict[str, list[float]] = {"cold": [], "from disk": []}
    for _ in range(PROCESSES):
        with tempfile.TemporaryDirectory() as folder:
            for values in samples.values():
                values.append(printed(CODE, {"TACO_PY_CACHE_DIR": folder}))
    for name, values in samples.items():
        yield record("first_call", "SpMV", name, values, "ms")
