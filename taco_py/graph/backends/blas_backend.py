"""The backend `blas`: products of dense arrays by SciPy's BLAS, in the memory of this process.

a @ b, einsum("bij,bjk->bik", a, b)   gemm, once or for each matrix of a batch
a @ x                                 gemv
x @ y                                 dot
a @ b + c                             gemm, and c added in its result
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.libraries.blas_routines import GEMM
from codegen.records import dataclass
from codegen.runtime.blas import available, library_product
from codegen.runtime.blas_vectors import vector_routines
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.data.kernels import KERNELS
from taco_py.graph.backends.backend import Backend, Facts, Pattern
from taco_py.graph.backends.interpret_region import RUNS, Run, extents_of
from taco_py.graph.backends.plain_products import (
    MATRIX_BYTES_PER_SECOND,
    is_plain_product,
    letters_of,
    seconds_by_tiles,
)
from taco_py.graph.extents import compiled
from taco_py.graph.nodes import Graph, Node

LAUNCH = 2e-5
"""Seconds of a call besides the products. Measured: 20 µs, where a kernel takes 7."""

Product = Callable[[Any, Any], Any]


def supports(node: Node, facts: Facts) -> bool:
    """Tell whether a primitive is a product of two dense arrays of a type that the BLAS has."""
    return (
        node.dtype in GEMM
        and available(node.dtype, KERNELS.cores)
        and is_plain_product(node, facts)
        and not any(facts[name].sparsity for name in node.inputs)
    )


def _affine(nodes: Mapping[str, Node], facts: Facts) -> bool:
    product, root = nodes["y"], nodes["root"]
    same = facts["b"].dtype == root.dtype and not facts["b"].sparsity
    return same and root.dtype == product.dtype in GEMM


def seconds(region: Graph, facts: Facts) -> float:
    """Return the seconds that a library needs for the products, by arithmetic or by memory."""
    total = 0.0
    for node in region.nodes:
        itemsize = np.dtype(node.dtype).itemsize
        if node.operator == "contract":
            read = [facts[name].size for name in (*node.inputs, node.name)]
            moving = sum(read) * itemsize / MATRIX_BYTES_PER_SECOND
            total += max(seconds_by_tiles(region, node, facts) if _has_tiles(node) else 0.0, moving)
        elif node.operator == "map":
            total += 2 * facts[node.name].size * itemsize / NOMINAL.calls.memory_bytes_per_second
    return total


def _has_tiles(node: Node) -> bool:
    """Tell whether each operand has a mode of the result that the other has not."""
    left, right = ({*labels} for labels in node.get("labels"))
    outputs = {*node.get("kept")}
    return bool(outputs & left - right) and bool(outputs & right - left)


# ---------------------------------------------------------------- compile and run


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    """What computes each primitive of a region, in order, and numbers that they read."""

    constants: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[tuple[Node, Run, Any], ...]


def codegen(region: Graph, constants: Mapping[str, Any]) -> _Compiled:
    """Choose a routine for each product."""
    names = tuple(leaf.name for leaf in region.inputs)
    steps: list[tuple[Node, Run, Any]] = []
    for node in region.nodes:
        extents = extents_of(node)
        numbers = compiled(extents, names) if extents else None
        if node.operator == "contract":
            steps.append((node, _of_arrays(product_of(node)), numbers))
        elif node.operator == "map":
            steps.append((node, _add_in_place(node, region), numbers))
        else:
            steps.append((node, RUNS[node.operator](node), numbers))
    return _Compiled(dict(constants), names, region.outputs, tuple(steps))


def runtime(program: _Compiled, arrays: Sequence[Any]) -> list[Any]:
    """Compute a region; its inputs are read where they are."""
    values = {**program.constants, **dict(zip(program.inputs, arrays, strict=True))}
    for node, run, numbers in program.steps:
        operands = [values[name] for name in node.inputs]
        values[node.name] = run(operands, numbers(*arrays) if numbers is not None else ())
    return [values[name] for name in program.outputs]


def _of_arrays(product: Product) -> Run:
    return lambda arrays, numbers: product(*arrays)


def _add_in_place(node: Node, region: Graph) -> Run:
    """Return the sum of a product and something, in the product's array."""
    products = {product.name for product in region.nodes if product.operator == "contract"}
    places = [k for k, name in enumerate(node.inputs) if name in products]

    def run(arrays: Sequence[Any], numbers: Sequence[Any]) -> Any:
        shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
        reusable = (arrays[k] for k in places if arrays[k].ndim and arrays[k].shape == shape)
        one, other = arrays
        return np.add(one, other, out=next(reusable, None))

    return run


def product_of(node: Node) -> Product:
    """Return the routine for a product of two arrays."""
    (left, right), output_labels = node.get("labels"), node.get("kept")
    vectors = vector_routines(node.dtype)
    if vectors is not None and len(output_labels) == 1 and {len(left), len(right)} == {1, 2}:
        swapped, flipped = len(left) == 1, (right if len(left) == 1 else left)[1] in output_labels

        def matrix_vector(a: Any, x: Any) -> Any:
            a, x = (x, a) if swapped else (a, x)
            return vectors.matrix_vector(a.T if flipped else a, x)

        return matrix_vector
    if vectors is not None and vectors.sum is not None and not output_labels and len(left) == 1:
        return vectors.dot
    letters, shape = letters_of(node)
    product = library_product(f"{node.dtype} {letters}")

    def matrices(a: Any, b: Any) -> Any:
        c = KERNELS.pool.empty(shape(a, b), a.dtype)
        product(c, a, b, KERNELS.cores)
        return c if c.ndim else c[()]

    return matrices


def make() -> Backend:
    """Make the backend."""
    affine = Pattern("affine", "add(y := contract(_, _), b)", _affine)
    return Backend(
        "blas", (affine,), supports, codegen, runtime, LAUNCH, seconds=seconds, binds=False
    )
