"""How much memory do A x and A B take beyond their inputs and their result? Fresh processes, Linux.

The peak of the resident set is reset just before the call (/proc/self/clear_refs), so what is
counted is the call's own: the result, workspaces, copies. Memory that was freed before is given
back first, or the result could lie there and count as nothing. The kernel was compiled and loaded
by a small call before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import OURS, REFERENCE, Record, record
from benchmarks.processes import printed

PROCESSES = 3
CODE = """
import ctypes, gc, numpy as np, scipy.sparse as sp, taco_py as tp
from taco_py.tool.inputs import pde27, uniform

def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024

def size(result):
    if isinstance(result, np.ndarray):
        return result.nbytes
    return result.data.nbytes + result.indices.nbytes + result.indptr.nbytes

def call(A, right):
    return {call}

small = sp.csr_array(np.eye(4))
call(small, {small})
A = {matrix}
right = {right}
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
result = call(A, right)
print((status("VmHWM") - before - size(result)) / 1e6)
"""
CALLS = {
    "A x": {
        OURS: 'tp.einsum("ij,j->i", A, right, threads=1)',
        REFERENCE: "A @ right",
    },
    "A B": {
        OURS: 'tp.einsum("ij,jk->ik", A, right, threads=1)',
        REFERENCE: "A @ right",
    },
}
RIGHT = {"A x": ("np.ones(4)", "np.ones(A.shape[1])"), "A B": ("small", "A")}
MATRICES = {"pde27 (60 cubed)": "pde27(60)", "uniform (200k)": "uniform(200_000, 200_000, 10)"}


def run() -> Iterator[Record]:
    if not Path("/proc/self/clear_refs").exists():
        print("  left out: this system has no /proc/self/clear_refs")
        return
    for product, calls in CALLS.items():
        small, right = RIGHT[product]
        for name, matrix in MATRICES.items():
            for contender, call in calls.items():
                code = CODE.format(call=call, small=small, matrix=matrix, right=right)
                samples = [printed(code) for _ in range(PROCESSES)]
                yield record("memory", f"{product}, {name}", contender, samples, "MB")
