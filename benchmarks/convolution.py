"""Are convolutions, gathers and scatters written with subscripts as fast as SciPy's and NumPy's?

Correlations, as `y[i] = x[i+k] * w[k]`, against scipy.signal, which computes them directly, by FFT
or by FFT of pieces; sparse images against SciPy on the densified image; gathers and scatters
against NumPy's indexing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.ndimage as nd
import scipy.signal as ss
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Contest, Record, records

LINE, PLANE = "y[i] = x[i+k] * w[k]", "y[i,j] = x[i+k,j+l] * w[k,l]"
LAYER = "y[o,i,j] = x[c,i+k,j+l] * w[o,c,k,l]"
RNG = np.random.default_rng(7)


def run() -> Iterator[Record]:
    yield from records("convolution", contests())


def contests() -> Iterator[Contest]:
    for size, window in ((10**6, 5), (10**6, 31), (10**5, 255), (10**3, 5)):
        yield line(size, window)
    for size, window in ((1024, 3), (1024, 5), (1024, 15), (256, 3)):
        yield plane(size, window)
    yield layer(16, 32, 128, 3)
    for size, window, density in ((2048, 3, 1e-3), (2048, 3, 1e-2), (2048, 5, 1e-2)):
        yield sparse_image(size, window, density)
    yield from indirect()


def line(size: int, window: int) -> Contest:
    x, w = RNG.random(size), RNG.random(window)
    return Contest(
        f"correlation, {size} with {window}",
        {
            REFERENCE: lambda: ss.correlate(x, w, "valid"),
            "scipy, direct": lambda: ss.correlate(x, w, "valid", method="direct"),
            "scipy, oaconvolve": lambda: ss.oaconvolve(x, w[::-1], "valid"),
            OURS: lambda: tp.evaluate(LINE, x=x, w=w),
        },
    )


def plane(size: int, window: int) -> Contest:
    x, w = RNG.random((size, size)), RNG.random((window, window))
    before, after = (window - 1) // 2, window // 2
    inside = (slice(before, size - after),) * 2 if window > 1 else (slice(None),) * 2
    shift = -1 if window % 2 == 0 else 0
    return Contest(
        f"correlation, {size}² with {window}²",
        {
            REFERENCE: lambda: ss.correlate(x, w, "valid"),
            "scipy, direct": lambda: ss.correlate2d(x, w, "valid"),
            "scipy, oaconvolve": lambda: ss.oaconvolve(x, w[::-1, ::-1], "valid"),
            "scipy.ndimage": lambda: nd.correlate(x, w, mode="constant", origin=shift)[inside],
            OURS: lambda: tp.evaluate(PLANE, x=x, w=w),
        },
    )


def layer(ins: int, outs: int, size: int, window: int) -> Contest:
    """A layer of a network, against a product with the matrix of windows."""
    x, w = RNG.random((ins, size, size)), RNG.random((outs, ins, window, window))

    def by_matrix() -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(x, (window, window), axis=(1, 2))
        return np.tensordot(w, windows, ((1, 2, 3), (0, 3, 4)))

    return Contest(
        f"layer, {ins} to {outs} channels of {size}² with {window}²",
        {REFERENCE: by_matrix, OURS: lambda: tp.evaluate(LAYER, x=x, w=w)},
    )


def sparse_image(size: int, window: int, density: float) -> Contest:
    image = sp.random_array((size, size), density=density, rng=RNG, format="csr")
    x, w = image.toarray(), RNG.random((window, window))
    return Contest(
        f"sparse image, {size}² of density {density} with {window}²",
        {
            REFERENCE: lambda: ss.correlate(x, w, "valid"),
            "scipy, direct": lambda: ss.correlate2d(x, w, "valid"),
            f"{OURS}, densified": lambda: tp.evaluate(PLANE, x=x, w=w),
            f"{OURS}, to an array": lambda: tp.evaluate(PLANE, x=image, w=w, format="dd"),
            OURS: lambda: tp.evaluate(PLANE, x=image, w=w),
        },
    )


def indirect() -> Iterator[Contest]:
    rows, columns, count = 10**5, 32, 2 * 10**5
    x, p = RNG.random((rows, columns)), RNG.integers(0, rows, count)
    v = RNG.random((count, columns))
    graph = sp.random_array((rows, rows), density=1e-4, rng=RNG, format="csr")
    yield Contest(
        "gather, 200 000 rows of 32",
        {REFERENCE: lambda: x[p], OURS: lambda: tp.evaluate("y[i,j] = x[p[i],j]", x=x, p=p)},
    )

    def add_at() -> Any:
        y = np.zeros((rows, columns))
        np.add.at(y, p, v)
        return y

    yield Contest(
        "scatter, 200 000 rows of 32",
        {
            REFERENCE: add_at,
            OURS: lambda: tp.evaluate("y[p[i],j] += v[i,j]", v=v, p=p, shape=(rows, columns)),
        },
    )
    yield Contest(
        "gather, rows of a CSR matrix",
        {
            REFERENCE: lambda: graph[p],
            OURS: lambda: tp.evaluate("y[i,j] = S[p[i],j]", S=graph, p=p),
        },
    )
    yield Contest(
        "shift of a CSR matrix's columns",
        {
            REFERENCE: lambda: graph[:, 1:],
            OURS: lambda: tp.evaluate("y[i,j] = S[i,j+1]", S=graph),
        },
    )
