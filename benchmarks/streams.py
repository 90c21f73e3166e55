"""How near do dense kernels that only pass over memory come to its bandwidth?

The reference is NumPy's way; `copy` is `numpy.copyto` of an array of the same size, whose bytes
(read and written) a second are the bandwidth to compare with.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records

SIZE = 4000


def run() -> Iterator[Record]:
    return records("streams", contests())


def contests() -> Iterator[Contest]:
    rng = np.random.default_rng(0)
    a, b, x = rng.random((SIZE, SIZE)), rng.random((SIZE, SIZE)), rng.random(SIZE)
    for text, operands in (
        ("ij->", (a,)),
        ("ij,ij->i", (a, b)),
        ("ij,j->i", (a, x)),
        ("ij,i->j", (a, x)),
    ):
        yield Contest(f"{text} {SIZE}", ways(text, *operands))
    for size in (240, 256):
        t = rng.random((size, size, size))
        ours, theirs, copied = np.empty((3, size, size, size))
        transpose = tp.compile("C[k,j,i] = T[i,j,k]", T=tp.dense(3), C=tp.dense(3), threads=1)
        contenders = {
            REFERENCE: partial(_filled, theirs, t.transpose(2, 1, 0)),
            OURS: partial(transpose, T=t, out=ours),
        }
        yield Contest(f"ijk->kji {size}", contenders)
        yield Contest(f"copy {size}", {REFERENCE: partial(_filled, copied, t)})


def ways(text: str, *operands: np.ndarray) -> dict[str, partial[object]]:
    return {
        REFERENCE: partial(np.einsum, text, *operands, optimize=True),
        OURS: partial(tp.einsum, text, *operands, threads=1),
    }


def _filled(target: np.ndarray, source: np.ndarray) -> np.ndarray:
    np.copyto(target, source)
    return target
