"""The backend `mkl`: products by Intel's MKL, where it is installed, in the memory of this process.

a @ b, a @ x       gemm, gemv
A @ b, b @ A       mkl_sparse_?_mm, A in CSR or CSC, indices of 32 or 64 bits; the result dense
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.runtime.mkl_library import LETTERS, Mkl, load_mkl
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.data.kernels import KERNELS
from taco_py.graph.backends.backend import Backend, Facts
from taco_py.graph.backends.interpret_region import RUNS, Run, extents_of
from taco_py.graph.backends.plain_products import (
    MATRIX_BYTES_PER_SECOND,
    is_plain_product,
    products_of,
)
from taco_py.graph.extents import compiled
from taco_py.graph.nodes import Graph, Node
from taco_py.language.diagnostics.errors import MissingExtraError

LAUNCH = 1.2e-5
"""Seconds of a call besides the products. Measured: 8 to 15 µs."""
ENTRY_SECONDS = 1.2e-9
PRODUCT_SECONDS = 5e-10
"""An entry of a sparse matrix, and each product with it. Measured on two cores: 0.7 ns for one
vector, 13 ns for 32; the planner's prices, with which they are compared, are as much above."""
TRANSPOSED_SECONDS = 2.6e-9
"""Each product with an entry of a transposed matrix by rows. Measured for 32 vectors."""
BY_ROWS, BY_COLUMNS = "ds", "ds:1,0"
"""The formats CSR and CSC."""


def supports(node: Node, facts: Facts) -> bool:
    """Tell whether a primitive is a product of two matrices, or of a matrix and a vector."""
    if node.dtype not in LETTERS or not is_plain_product(node, facts):
        return False
    left, right = (facts[name] for name in node.inputs)
    orders = (len(left.shape), len(right.shape), len(node.get("kept")))
    stored = (left.sparsity, right.sparsity)
    if stored == ("", ""):
        return orders in ((2, 2, 2), (2, 1, 1), (1, 2, 1))
    place = 0 if left.sparsity else 1
    return (
        stored[1 - place] == ""
        and stored[place] in (BY_ROWS, BY_COLUMNS)
        and (left, right)[place].fill == 0
        and orders[place] == 2
        and orders[2] == orders[1 - place]
        and orders[1 - place] in (1, 2)
    )


def seconds(region: Graph, facts: Facts) -> float:
    """Return the seconds that the library needs for the products, by arithmetic or by memory."""
    return sum(
        _product_seconds(node, facts) for node in region.nodes if node.operator == "contract"
    )


def _product_seconds(node: Node, facts: Facts) -> float:
    itemsize = np.dtype(node.dtype).itemsize
    sparse = next((k for k, name in enumerate(node.inputs) if facts[name].sparsity), None)
    if sparse is None:
        read = sum(facts[name].size for name in (*node.inputs, node.name))
        multiplying = products_of(node, facts) / NOMINAL.calls.dense_products_per_second
        return max(multiplying * itemsize / 8, read * itemsize / MATRIX_BYTES_PER_SECOND)
    matrix = facts[node.inputs[sparse]]
    vectors = products_of(node, facts) / max(matrix.size, 1)
    by_columns = matrix.sparsity == BY_COLUMNS
    transposed = (node.get("labels")[sparse][0] not in node.get("kept")) != by_columns
    vector_seconds = TRANSPOSED_SECONDS if transposed else PRODUCT_SECONDS
    return matrix.entries * (ENTRY_SECONDS + vectors * vector_seconds)


# ---------------------------------------------------------------- compile and run


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    """What computes each primitive of a region, in order."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[tuple[Node, Run, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class MklProducts:
    """Regions of products by the library."""

    library: Mkl

    def codegen(self, region: Graph, constants: Mapping[str, Any]) -> _Compiled:
        """Choose a routine for each product."""
        names = tuple(leaf.name for leaf in region.inputs)
        facts, steps = region.facts, list[tuple[Node, Run, Any]]()
        for node in region.nodes:
            extents = extents_of(node)
            numbers = compiled(extents, names) if extents else None
            run = _transposed(node) if facts[node.inputs[0]].sparsity else RUNS[node.operator](node)
            if node.operator == "contract":
                sparse = [bool(facts[name].sparsity) for name in node.inputs]
                run = self.sparse(node, sparse.index(True)) if any(sparse) else self.dense(node)
            steps.append((node, run, numbers))
        return _Compiled(names, region.outputs, tuple(steps))

    def runtime(self, program: _Compiled, arrays: Sequence[Any]) -> list[Any]:
        """Compute a region; its inputs are read where they are."""
        values = dict(zip(program.inputs, arrays, strict=True))
        for node, run, numbers in program.steps:
            operands = [values[name] for name in node.inputs]
            values[node.name] = run(operands, numbers(*arrays) if numbers is not None else ())
        return [values[name] for name in program.outputs]

    def dense(self, node: Node) -> Run:
        """Return a product of dense arrays: as rows times columns."""
        (left, right), output_labels = node.get("labels"), node.get("kept")
        swap = len(left) == 1 or (len(output_labels) == 2 and output_labels[0] not in left)
        first, second = (right, left) if swap else (left, right)
        flip = len(first) == 2 and first[0] not in output_labels
        turn = len(second) == 2 and second[1] not in output_labels

        def run(arrays: Sequence[Any], numbers: Sequence[Any]) -> Any:
            a, b = arrays[::-1] if swap else arrays
            a, b = a.T if flip else a, b.T if turn else b
            if b.ndim == 1:
                return self.library.vector_product(a, b, KERNELS.cores)
            return self.library.product(a, b, KERNELS.cores)

        return run

    def sparse(self, node: Node, place: int) -> Run:
        """Return a product of a sparse matrix and a dense array."""
        labels, output_labels = node.get("labels"), node.get("kept")
        matrix, other = labels[place], labels[1 - place]
        transposed = matrix[0] not in output_labels
        turned = len(other) == 2 and other[0] in output_labels
        back = len(output_labels) == 2 and output_labels[0] in other

        def run(arrays: Sequence[Any], numbers: Sequence[Any]) -> Any:
            a, x = arrays[place], arrays[1 - place]
            rows, of_columns = _in_rows(a)
            x = x[:, None] if x.ndim == 1 else x.T if turned else x
            y = self.library.sparse_product(
                rows.shape, _same_indices(rows), x, transposed != of_columns, KERNELS.cores
            )
            return y[:, 0] if len(output_labels) == 1 else y.T if back else y

        return run


def _transposed(node: Node) -> Run:
    """Return a layout of a sparse matrix. Raises ValueError for others than its transpose."""
    if node.operator != "contract" and node.get("source") != (1, 0):
        raise ValueError(f"Expected a sparse matrix or its transpose, found {node.operator} of one")
    return lambda arrays, numbers: arrays[0].T


def _in_rows(a: Any) -> tuple[Any, bool]:
    """Return a matrix in CSR, and whether that is its transpose, as one in CSC is stored."""
    matrix = a.to_scipy() if not hasattr(a, "indptr") else a
    if matrix.format == "csr":
        return matrix, False
    if matrix.format == "csc":
        return matrix.T, True
    raise ValueError(f"Expected a matrix in CSR or CSC, found {matrix.format}")


def _same_indices(a: Any) -> tuple[Any, Any, Any]:
    """Return where rows begin, columns and values, with indices of one type."""
    starts, places = a.indptr, a.indices
    if starts.dtype != places.dtype or places.dtype not in (np.int32, np.int64):
        starts, places = starts.astype(np.int64), places.astype(np.int64)
    return tuple(map(np.ascontiguousarray, (starts, places, a.data)))  # type: ignore[return-value]


Load = Callable[[], Mkl | None]


def make(load: Load = load_mkl) -> Backend:
    """Make the backend. Raises MissingExtraError where the library is not installed."""
    library = load()
    if library is None:
        raise MissingExtraError(
            "Expected MKL for the backend mkl, found no libmkl_rt",
            hint="pip install mkl, or set MKLROOT to the folder that its lib is in",
        )
    products = MklProducts(library)
    return Backend(
        "mkl", (), supports, products.codegen, products.runtime, LAUNCH, seconds=seconds,
        binds=False,
    )  # fmt: skip
