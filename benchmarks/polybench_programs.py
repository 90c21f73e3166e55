"""Kernels of PolyBench 4.2 as programs, their loops in its order, with data of any size.

Linear algebra (2-deep and 3-deep), data mining, dynamic programming and stencils. `sizes` gives
the values of names in ranges for a size n (and steps t of stencils), `shapes` those of the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A program and its data for a size n.

    depth    loops around its deepest statement, the time loop of a stencil among them
    shapes   of the arrays, given n
    numbers  that are read only
    steps    whether it has a time loop over T
    large    an n for which the loops as written take a good part of a second
    regular  the arrays that get a heavy diagonal, so that nothing divides by almost 0
    """

    text: str
    depth: int
    shapes: Callable[[int], Mapping[str, Shape]]
    large: int
    numbers: Mapping[str, float] = field(default_factory=dict)
    steps: bool = False
    regular: tuple[str, ...] = ()
    symmetric: tuple[str, ...] = ()

    def sizes(self, n: int, steps: int) -> dict[str, int]:
        """The names in its ranges."""
        named = {"N": n} if " N" in self.text or "(N" in self.text or ".N" in self.text else {}
        return {**named, **({"T": steps} if self.steps else {})}

    def data(self, n: int, seed: int = 0) -> dict[str, Array]:
        """Arrays of random numbers."""
        generator = np.random.default_rng(seed)
        found = {name: generator.random(shape) for name, shape in self.shapes(n).items()}
        for name in self.symmetric:
            found[name] = (found[name] + found[name].T) / 2
        for name in self.regular:
            found[name] = found[name] + n * np.eye(n)
        return found


def squares(*names: str) -> Callable[[int], dict[str, Shape]]:
    return lambda n: dict.fromkeys(names, (n, n))


def mixed(matrices: str, vectors: str, numbers: str = "") -> Callable[[int], dict[str, Shape]]:
    return lambda n: {
        **dict.fromkeys(matrices.split(), (n, n)),
        **dict.fromkeys(vectors.split(), (n,)),
        **dict.fromkeys(numbers.split(), ()),
    }


KERNELS: dict[str, Kernel] = {
    "gemm": Kernel(
        """
for i in N:
    for j in N: C[i,j] = beta * C[i,j]
    for k in N:
        for j in N: C[i,j] += alpha * A[i,k] * B[k,j]
""",
        3, squares("A", "B", "C"), 1000, {"alpha": 1.5, "beta": 1.2},
    ),
    "2mm": Kernel(
        """
for i in N:
    for j in N:
        tmp[i,j] = 0
        for k in N: tmp[i,j] += alpha * A[i,k] * B[k,j]
for i in N:
    for j in N:
        D[i,j] = beta * D[i,j]
        for k in N: D[i,j] += tmp[i,k] * C[k,j]
""",
        3, squares("tmp", "A", "B", "C", "D"), 600, {"alpha": 1.5, "beta": 1.2},
    ),
    "3mm": Kernel(
        """
for i in N:
    for j in N:
        E[i,j] = 0
        for k in N: E[i,j] += A[i,k] * B[k,j]
for i in N:
    for j in N:
        F[i,j] = 0
        for k in N: F[i,j] += C[i,k] * D[k,j]
for i in N:
    for j in N:
        G[i,j] = 0
        for k in N: G[i,j] += E[i,k] * F[k,j]
""",
        3, squares("A", "B", "C", "D", "E", "F", "G"), 500,
    ),
    "syrk": Kernel(
        """
for i in N:
    for j in i+1: C[i,j] = beta * C[i,j]
    for k in N:
        for j in i+1: C[i,j] += alpha * A[i,k] * A[j,k]
""",
        3, squares("A", "C"), 900, {"alpha": 1.5, "beta": 1.2},
    ),
    "syr2k": Kernel(
        """
for i in N:
    for j in i+1: C[i,j] = beta * C[i,j]
    for k in N:
        for j in i+1: C[i,j] += A[j,k] * alpha * B[i,k] + B[j,k] * alpha * A[i,k]
""",
        3, squares("A", "B", "C"), 700, {"alpha": 1.5, "beta": 1.2},
    ),
    "trmm": Kernel(
        """
for i in N:
    for j in N:
        for k in i+1..N: B[i,j] += A[k,i] * B[k,j]
        B[i,j] = alpha * B[i,j]
""",
        3, squares("A", "B"), 800, {"alpha": 1.5},
    ),
    "symm": Kernel(
        """
for i in N:
    for j in N:
        temp = 0
        for k in i:
            C[k,j] += alpha * B[i,j] * A[i,k]
            temp += B[k,j] * A[i,k]
        C[i,j] = beta * C[i,j] + alpha * B[i,j] * A[i,i] + alpha * temp
""",
        3, mixed("A B C", "", "temp"), 600, {"alpha": 1.5, "beta": 1.2},
    ),
    "doitgen": Kernel(
        """
for r in N:
    for q in N:
        for p in N:
            s[p] = 0
            for k in N: s[p] += A[r,q,k] * C4[k,p]
        for p in N: A[r,q,p] = s[p]
""",
        4, lambda n: {"A": (n, n, n), "C4": (n, n), "s": (n,)}, 150,
    ),
    "atax": Kernel(
        """
for i in N: y[i] = 0
for i in N:
    tmp[i] = 0
    for j in N: tmp[i] += A[i,j] * x[j]
    for j in N: y[j] += A[i,j] * tmp[i]
""",
        2, mixed("A", "x y tmp"), 8000,
    ),
    "bicg": Kernel(
        """
for i in N: s[i] = 0
for i in N:
    q[i] = 0
    for j in N:
        s[j] += r[i] * A[i,j]
        q[i] += A[i,j] * p[j]
""",
        2, mixed("A", "s q p r"), 8000,
    ),
    "mvt": Kernel(
        """
for i in N:
    for j in N: x1[i] += A[i,j] * y1[j]
for i in N:
    for j in N: x2[i] += A[j,i] * y2[j]
""",
        2, mixed("A", "x1 x2 y1 y2"), 6000,
    ),
    "gemver": Kernel(
        """
for i in N:
    for j in N: A[i,j] = A[i,j] + u1[i] * v1[j] + u2[i] * v2[j]
for i in N:
    for j in N: x[i] += beta * A[j,i] * y[j]
for i in N: x[i] += z[i]
for i in N:
    for j in N: w[i] += alpha * A[i,j] * x[j]
""",
        2, mixed("A", "u1 v1 u2 v2 x y z w"), 6000, {"alpha": 1.5, "beta": 1.2},
    ),
    "gesummv": Kernel(
        """
for i in N:
    tmp[i] = 0
    y[i] = 0
    for j in N:
        tmp[i] += A[i,j] * x[j]
        y[i] += B[i,j] * x[j]
    y[i] = alpha * tmp[i] + beta * y[i]
""",
        2, mixed("A B", "tmp x y"), 8000, {"alpha": 1.5, "beta": 1.2},
    ),
    "cholesky": Kernel(
        """
for i in N:
    for j in i:
        for k in j: A[i,j] -= A[i,k] * A[j,k]
        A[i,j] = A[i,j] / A[j,j]
    for k in i: A[i,i] -= A[i,k] * A[i,k]
    A[i,i] = sqrt(A[i,i])
""",
        3, squares("A"), 1400, regular=("A",), symmetric=("A",),
    ),
    "lu": Kernel(
        """
for i in N:
    for j in i:
        for k in j: A[i,j] -= A[i,k] * A[k,j]
        A[i,j] = A[i,j] / A[j,j]
    for j in i..N:
        for k in i: A[i,j] -= A[i,k] * A[k,j]
""",
        3, squares("A"), 900, regular=("A",),
    ),
    "trisolv": Kernel(
        """
for i in N:
    x[i] = b[i]
    for j in i: x[i] -= L[i,j] * x[j]
    x[i] = x[i] / L[i,i]
""",
        2, mixed("L", "x b"), 10000, regular=("L",),
    ),
    "gramschmidt": Kernel(
        """
for k in N:
    nrm = 0
    for i in N: nrm += A[i,k] * A[i,k]
    R[k,k] = sqrt(nrm)
    for i in N: Q[i,k] = A[i,k] / R[k,k]
    for j in k+1..N:
        R[k,j] = 0
        for i in N: R[k,j] += Q[i,k] * A[i,j]
        for i in N: A[i,j] -= Q[i,k] * R[k,j]
""",
        3, mixed("A Q R", "", "nrm"), 500, regular=("A",),
    ),
    "covariance": Kernel(
        """
for j in N:
    mean[j] = 0
    for i in N: mean[j] += data[i,j]
    mean[j] = mean[j] / count
for i in N:
    for j in N: data[i,j] -= mean[j]
for i in N:
    for j in i..N:
        cov[i,j] = 0
        for k in N: cov[i,j] += data[k,i] * data[k,j]
        cov[i,j] = cov[i,j] / (count - 1.0)
        cov[j,i] = cov[i,j]
""",
        3, mixed("data cov", "mean"), 700, {"count": 700.0},
    ),
    "floyd-warshall": Kernel(
        """
for k in N:
    for i in N:
        for j in N: path[i,j] = min(path[i,j], path[i,k] + path[k,j])
""",
        3, squares("path"), 800,
    ),
    "jacobi-1d": Kernel(
        """
for t in T:
    B[i] = 0.33333 * (A[i-1] + A[i] + A[i+1])
    A[i] = 0.33333 * (B[i-1] + B[i] + B[i+1])
""",
        2, mixed("", "A B"), 4_000_000, steps=True,
    ),
    "jacobi-2d": Kernel(
        """
for t in T:
    B[i,j] = 0.2 * (A[i,j] + A[i,j-1] + A[i,j+1] + A[i+1,j] + A[i-1,j])
    A[i,j] = 0.2 * (B[i,j] + B[i,j-1] + B[i,j+1] + B[i+1,j] + B[i-1,j])
""",
        3, squares("A", "B"), 2000, steps=True,
    ),
    "heat-3d": Kernel(
        """
for t in T:
    B[i,j,k] = (0.125 * (A[i+1,j,k] - 2.0 * A[i,j,k] + A[i-1,j,k])
        + 0.125 * (A[i,j+1,k] - 2.0 * A[i,j,k] + A[i,j-1,k])
        + 0.125 * (A[i,j,k+1] - 2.0 * A[i,j,k] + A[i,j,k-1]) + A[i,j,k])
    A[i,j,k] = (0.125 * (B[i+1,j,k] - 2.0 * B[i,j,k] + B[i-1,j,k])
        + 0.125 * (B[i,j+1,k] - 2.0 * B[i,j,k] + B[i,j-1,k])
        + 0.125 * (B[i,j,k+1] - 2.0 * B[i,j,k] + B[i,j,k-1]) + B[i,j,k])
""",
        4, lambda n: dict.fromkeys("AB", (n, n, n)), 160, steps=True,
    ),
    "fdtd-2d": Kernel(
        """
for t in T:
    ey[0,j] = source[t]
    ey[i,j] -= 0.5 * (hz[i,j] - hz[i-1,j])
    ex[i,j] -= 0.5 * (hz[i,j] - hz[i,j-1])
    hz[i,j] -= 0.7 * (ex[i,j+1] - ex[i,j] + ey[i+1,j] - ey[i,j])
""",
        3, mixed("ex ey hz", "source"), 2000, steps=True,
    ),
    "seidel-2d": Kernel(
        """
for t in T:
    A[i,j] = (A[i-1,j-1] + A[i-1,j] + A[i-1,j+1] + A[i,j-1] + A[i,j] + A[i,j+1]
        + A[i+1,j-1] + A[i+1,j] + A[i+1,j+1]) / 9.0
""",
        3, squares("A"), 2000, steps=True,
    ),
}  # fmt: skip
