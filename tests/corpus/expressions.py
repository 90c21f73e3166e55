"""The expressions that every format combination is tried on.

They are the ones published with TACO (Kjolstad et al. 2017, table 1 and section 8; Chou et al.
2018), its sparse-output and workspace papers (Kjolstad et al. 2019) and Tensora's list, and what
those leave out: diagonals, traces, division, literals, broadcasting, sums inside products.

A case is data: the text, the size of each index where it is not the usual one, the operands that
are scalars, and the operands something is divided by (they hold powers of two, so quotients are
exact).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

SIZES: Mapping[str, int] = {"i": 5, "j": 6, "k": 4, "l": 3, "m": 2, "n": 3, "r": 3, "b": 2}
ACCESS = re.compile(r"([A-Za-z]\w*)[\[(]([\w, ]*)[\])]")


@dataclass(frozen=True, slots=True)
class Case:
    """One expression.

    name      what papers call it; the test's id
    text      index notation
    sizes     sizes of indices that differ from SIZES, such as square ones
    scalars   operands without indices
    divisors  operands something is divided by
    """

    name: str
    text: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    scalars: tuple[str, ...] = ()
    divisors: tuple[str, ...] = ()

    @property
    def accesses(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Every `name[indices]` of the text, the target first; explicit sums are none."""
        found = (
            (match[1], tuple(index.strip() for index in match[2].split(",") if index.strip()))
            for match in ACCESS.finditer(self.text)
            if match[1] != "sum"
        )
        return tuple(found)

    @property
    def target(self) -> tuple[str, tuple[str, ...]]:
        """The name and indices on the left; a bare name is a scalar."""
        left = re.split(r"\+?=", self.text, maxsplit=1)[0]
        match = ACCESS.search(left)
        if match is None:
            return left.strip(), ()
        return self.accesses[0]

    @property
    def uses(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The accesses on the right."""
        return self.accesses[1:] if self.target[1] else self.accesses

    def size(self, index: str) -> int:
        return self.sizes.get(index, SIZES[index])

    @property
    def result_shape(self) -> tuple[int, ...]:
        return tuple(self.size(index) for index in self.target[1])

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each operand, scalars last."""
        shapes = {name: tuple(map(self.size, indices)) for name, indices in self.uses}
        return shapes | dict.fromkeys(self.scalars, ())


def square(*indices: str) -> dict[str, int]:
    """The same size for all of these."""
    return dict.fromkeys(indices, 5)


VECTORS = (
    Case("vector add", "y[i] = a[i] + b[i]"),
    Case("vector subtract", "y[i] = a[i] - b[i]"),
    Case("vector multiply", "y[i] = a[i] * b[i]"),
    Case("vector divide", "y[i] = b[i] / d[i]", divisors=("d",)),
    Case("vector negate", "y[i] = -a[i]"),
    Case("vector scale", "y[i] = alpha * a[i]", scalars=("alpha",)),
    Case("axpby", "y[i] = alpha * a[i] + beta * b[i]", scalars=("alpha", "beta")),
    Case("three vectors", "y[i] = a[i] + b[i] + c[i]"),
    Case("three vectors multiply", "y[i] = a[i] * b[i] * c[i]"),
    Case("distribute", "y[i] = (a[i] + b[i]) * c[i]"),
    Case("distribute both", "y[i] = (a[i] - b[i]) * (c[i] + d[i])"),
    Case("dot product", "s = a[i] * b[i]"),
    Case("vector sum", "s = a[i]"),
    Case("sum of squares", "s = a[i] * a[i]"),
    Case("outer product", "A[i,j] = a[i] * b[j]"),
    Case("outer sum", "A[i,j] = a[i] + b[j]"),
    Case("outer of three", "T[i,j,k] = a[i] * b[j] * c[k]"),
    Case("dot scales vector", "y[i] = a[i] * (b[j] * c[j])"),
    Case("add a literal", "y[i] = a[i] + 1"),
    Case("literal minus", "y[i] = 2 - 3 * a[i]"),
    Case("explicit sum", "s = sum(i, a[i] * (b[i] + 1))"),
    Case("zero times a vector", "y[i] = 0 * a[i]"),
    Case("zero times a sum", "s = 0 * a[i]"),
    Case("zero times a scalar", "s = 0 * alpha", scalars=("alpha",)),
    Case("broadcast a scalar", "y[i] = a[i] + alpha", scalars=("alpha",)),
)

MATRIX_VECTOR = (
    Case("SpMV", "y[i] = A[i,j] * x[j]"),
    Case("SpMV with round brackets", "y(i) = A(i,j) * x(j)"),
    Case("transposed SpMV", "y[j] = A[i,j] * x[i]"),
    Case("residual", "y[i] = b[i] - A[i,j] * x[j]"),
    Case("GEMV", "y[i] = alpha * A[i,j] * x[j] + beta * z[i]", scalars=("alpha", "beta")),
    Case(
        "transposed GEMV",
        "y[j] = alpha * A[i,j] * x[i] + beta * z[j]",
        scalars=("alpha", "beta"),
    ),
    Case("sum of matrices times vector", "y[i] = (A[i,j] + B[i,j]) * x[j]"),
    Case("two SpMV added", "y[i] = A[i,j] * x[j] + B[i,j] * z[j] + b[i]"),
    Case("product of sums", "y[i] = (A[i,j] * x[j]) * (B[i,k] * z[k])"),
    Case("matrix power chain", "y[i] = A[i,j] * (B[j,k] * x[k])"),
    Case("bilinear form", "s = x[i] * A[i,j] * z[j]"),
    Case(
        "quadratic form of A transposed A",
        "s = (A[i,j] * x[j]) * (A[i,k] * x[k])",
        sizes=square("j", "k"),
    ),
    Case("row sums", "y[i] = A[i,j]"),
    Case("column sums", "y[j] = A[i,j]"),
    Case("full sum", "s = A[i,j]"),
    Case("Frobenius norm squared", "s = A[i,j] * A[i,j]"),
    Case("matrix inner product", "s = A[i,j] * B[i,j]"),
    Case("trace", "s = A[i,i]"),
    Case("trace of a product", "s = A[i,j] * B[j,i]"),
    Case("diagonal", "y[i] = A[i,i]"),
    Case("diagonal times vector", "y[i] = A[i,i] * x[i] + b[i]"),
    Case("accumulate SpMV", "y[i] += A[i,j] * x[j]"),
    Case("explicit row sum", "y[i] = sum(j, A[i,j] * x[j]) + b[i]"),
    Case("sum divided", "y[i] = (A[i,j] * x[j]) / d[i]", divisors=("d",)),
    Case("negated SpMV", "y[i] = -(A[i,j] * x[j])"),
)

MATRICES = (
    Case("matrix add", "C[i,j] = A[i,j] + B[i,j]"),
    Case("matrix subtract", "C[i,j] = A[i,j] - B[i,j]"),
    Case("Hadamard product", "C[i,j] = A[i,j] * B[i,j]"),
    Case("three matrices", "D[i,j] = A[i,j] + B[i,j] + C[i,j]"),
    Case("add then mask", "D[i,j] = (A[i,j] + B[i,j]) * C[i,j]"),
    Case("scale and add", "C[i,j] = 2 * A[i,j] - 3 * B[i,j]"),
    Case("plus one", "C[i,j] = A[i,j] + 1"),
    Case("add the transpose", "C[i,j] = A[i,j] + A[j,i]", sizes=square("i", "j")),
    Case("skew part", "C[i,j] = A[i,j] - A[j,i]", sizes=square("i", "j")),
    Case("mask by the transpose", "C[i,j] = A[i,j] * A[j,i]", sizes=square("i", "j")),
    Case("transpose", "C[j,i] = A[i,j]"),
    Case("copy", "C[i,j] = A[i,j]"),
    Case("scale rows", "C[i,j] = A[i,j] * x[i]"),
    Case("scale columns", "C[i,j] = A[i,j] * x[j]"),
    Case("divide rows", "C[i,j] = A[i,j] / d[i]", divisors=("d",)),
    Case("add to rows", "C[i,j] = A[i,j] + x[i]"),
    Case("add to columns", "C[i,j] = A[i,j] + x[j]"),
    Case("matrix product", "C[i,j] = A[i,k] * B[k,j]"),
    Case("transposed left", "C[i,j] = A[k,i] * B[k,j]"),
    Case("transposed right", "C[i,j] = A[i,k] * B[j,k]"),
    Case("normal matrix", "C[i,j] = A[k,i] * A[k,j]", sizes=square("i", "j")),
    Case("square", "C[i,j] = A[i,k] * A[k,j]", sizes=square("i", "j", "k")),
    Case("product plus matrix", "D[i,j] = A[i,k] * B[k,j] + C[i,j]"),
    Case("chain of three", "D[i,j] = A[i,k] * B[k,l] * C[l,j]"),
    Case("product of sums of matrices", "E[i,j] = (A[i,k] + B[i,k]) * (C[k,j] + D[k,j])"),
    Case("SDDMM", "D[i,j] = S[i,j] * U[i,k] * V[j,k]"),
    Case("SDDMM with V as k by j", "D[i,j] = S[i,j] * U[i,k] * V[k,j]"),
    Case("sampled difference", "D[i,j] = S[i,j] * (A[i,j] - U[i,k] * V[j,k])"),
    Case("triangles", "s = A[i,j] * A[j,k] * A[i,k]", sizes=square("i", "j", "k")),
    Case("masked product", "C[i,j] = S[i,j] * A[i,k] * B[k,j]"),
    Case("accumulate product", "C[i,j] += A[i,k] * B[k,j]"),
    Case("Kronecker product", "T[i,k,j,l] = A[i,j] * B[k,l]"),
    Case("row sum broadcast", "C[i,j] = A[i,j] * sum(k, B[i,k])"),
)

TENSORS = (
    Case("tensor add", "R[i,j,k] = T[i,j,k] + S[i,j,k]"),
    Case("tensor Hadamard", "R[i,j,k] = T[i,j,k] * S[i,j,k]"),
    Case("TTV over mode 0", "A[j,k] = T[i,j,k] * x[i]"),
    Case("TTV over mode 1", "A[i,k] = T[i,j,k] * x[j]"),
    Case("TTV over mode 2", "A[i,j] = T[i,j,k] * x[k]"),
    Case("TTM over mode 0", "R[r,j,k] = T[i,j,k] * U[i,r]"),
    Case("TTM over mode 1", "R[i,r,k] = T[i,j,k] * U[j,r]"),
    Case("TTM over mode 2", "R[i,j,r] = T[i,j,k] * U[k,r]"),
    Case("MTTKRP over mode 0", "M[i,r] = T[i,j,k] * B[j,r] * C[k,r]"),
    Case("MTTKRP over mode 1", "M[j,r] = T[i,j,k] * A[i,r] * C[k,r]"),
    Case("MTTKRP over mode 2", "M[k,r] = T[i,j,k] * A[i,r] * B[j,r]"),
    Case("tensor inner product", "s = T[i,j,k] * S[i,j,k]"),
    Case("tensor norm squared", "s = T[i,j,k] * T[i,j,k]"),
    Case("contract two vectors", "y[i] = T[i,j,k] * x[j] * z[k]"),
    Case("contract three vectors", "s = T[i,j,k] * x[i] * y[j] * z[k]"),
    Case("Tucker core", "G[l,m,n] = T[i,j,k] * A[i,l] * B[j,m] * C[k,n]"),
    Case("CP reconstruction", "R[i,j,k] = A[i,r] * B[j,r] * C[k,r]"),
    Case("sampled CP residual", "R[i,j,k] = T[i,j,k] * (A[i,r] * B[j,r] * C[k,r])"),
    Case("partial trace", "y[j] = T[i,i,j]"),
    Case("sum the last mode", "A[i,j] = T[i,j,k]"),
    Case("sum the first mode", "A[j,k] = T[i,j,k]"),
    Case("mode permutation", "R[k,i,j] = T[i,j,k]"),
    Case("plus2", "R[i,j,k] = T[i,j,k] + S[i,j,k] + Q[i,j,k]"),
    Case("batched product", "C[b,i,j] = A[b,i,k] * B[b,k,j]"),
    Case("batched by a matrix", "C[b,i,j] = A[b,i,k] * B[k,j]"),
    Case("contract a pair of modes", "A[i,l] = T[i,j,k] * S[j,k,l]"),
)

ORDER_FOUR = (
    Case("order 4 TTV", "R[i,j,k] = T[i,j,k,l] * x[l]"),
    Case("order 4 MTTKRP", "M[i,r] = T[i,j,k,l] * B[j,r] * C[k,r] * D[l,r]"),
    Case("order 4 contraction", "A[i,l] = T[i,j,k,l] * B[j,k]"),
    Case("order 4 by order 4", "R[i,j,m,n] = T[i,j,k,l] * S[k,l,m,n]"),
    Case("order 4 add", "R[i,j,k,l] = T[i,j,k,l] + S[i,j,k,l]"),
    Case("order 4 sum", "s = T[i,j,k,l]"),
)

CASES = VECTORS + MATRIX_VECTOR + MATRICES + TENSORS + ORDER_FOUR
