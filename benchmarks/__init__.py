"""Benchmarks: one file a question; `python -m benchmarks.run [names]` runs them.

Everything is measured on one thread unless a file says how many (`measure.in_threads`), so the
thread pools that libraries read from the environment when they load are set here, before anything
else is imported.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # else those that wait take others' cores
