"""A primitive with a gradient is added by entries of three tables, as docs/architecture.md says.

R[i,j] = sum(k, (a[i,k] - b[j,k])**2)      the squared distances of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.traced_table import PRODUCTS
from taco_py.graph.gradients.primitive_gradients import RULES
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.primitives.family import Index, Operands, Primitive
from taco_py.graph.primitives.primitive_table import PRIMITIVES
from taco_py.language.notation.nodes import Call, Expr, Reduce
from taco_py.language.notation.operators import ADD, MUL, SUB

NAME = "squared_distances"
rng = np.random.default_rng(0)
A, B = rng.random((6, 3)), rng.random((5, 3))


def express(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    """Return the expression of an element: this alone says what is computed."""
    row, column = indices
    inner = operands.fresh()
    apart = Call(SUB, (operands.read(0, (row, inner)), operands.read(1, (column, inner))))
    return Reduce(ADD, inner, Call(MUL, (apart, apart)))


def gradient(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    """Yield the cotangents of both operands: 2 (a[i,k] sum(j, g[i,j]) - sum(j, g[i,j] b[j,k]))."""
    two = builder.literal(np.dtype(node.dtype).type(2))
    for place, axis in ((0, 1), (1, 0)):
        own, other = inputs[place], inputs[1 - place]
        shape, dtype = builder.facts[own].shape, node.dtype
        sums = builder.reduce("sum", cotangent, (axis,), dtype)
        rows = builder.layout("broadcast", sums, (0, None), shape)
        product = builder.contract(
            (cotangent, other), ((0, 1), (axis, 2)), (1 - axis, 2), shape, dtype
        )
        scaled = builder.map("multiply", own, rows)
        yield place, builder.map("multiply", two, builder.map("subtract", scaled, product))


def note(recorder: Recorder, a: Any, b: Any) -> Any:
    """Note the operator: its operands, its shape and its type."""
    names = [recorder.name_of(operand) for operand in (a, b)]
    one, other = (recorder.facts[name] for name in names)
    return recorder.add(NAME, names, (one.shape[0], other.shape[0]), one.dtype)


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the primitive to the tables."""
    entry = Primitive(NAME, "linear", express)
    for table, value in ((PRIMITIVES, entry), (RULES, gradient), (PRODUCTS, note)):
        monkeypatch.setitem(table, NAME, value)  # type: ignore[arg-type]


def distances(a: Any, b: Any) -> Any:
    """Return the squared distances of rows, of traced arrays or NumPy's."""
    if isinstance(a, np.ndarray):
        return ((a[:, None] - b[None]) ** 2).sum(-1)
    return a.__taco_function__(NAME, (a, b), {})


def kernel_density(a: Any, b: Any) -> Any:
    return np.exp(-distances(a * 2, b)).sum(1)


def test_it_is_computed_at_other_sizes_too() -> None:
    fused = tp.fuse(kernel_density)
    for a, b in ((A, B), (B, A), (rng.random((9, 2)), rng.random((7, 2)))):
        np.testing.assert_allclose(fused(a, b), kernel_density(a, b))
    assert NAME in str(fused.graph(A, B).primitives)


def test_it_is_fused_with_the_operators_around_it() -> None:
    graph = tp.fuse(kernel_density).graph(A, B)
    assert [node.operator for node in graph.primitives.nodes].count(NAME) == 1
    assert not [node for node in graph.primitives.nodes if node.operator == "numpy"]
    assert "linear" in graph.explain()


def test_it_reads_sparse_operands() -> None:
    a = sp.random_array((6, 3), density=0.4, rng=rng, format="csr")
    found = tp.fuse(lambda a, b: distances(a, b).sum(0))(a, B)
    np.testing.assert_allclose(found, distances(a.toarray(), B).sum(0))


def test_it_is_differentiated() -> None:
    a, b = tp.grad(lambda a, b: kernel_density(a, b).sum(), wrt=("a", "b"))(A, B)
    step = np.zeros((5, 3))
    step[1, 2] = 1e-6
    wide = np.concatenate([step, np.zeros((1, 3))])
    of_a = kernel_density(A + wide, B).sum() - kernel_density(A - wide, B).sum()
    of_b = kernel_density(A, B + step).sum() - kernel_density(A, B - step).sum()
    np.testing.assert_allclose([a[1, 2], b[1, 2]], np.array([of_a, of_b]) / 2e-6, rtol=1e-5)


def test_its_graph_is_saved_and_read(tmp_path: Path) -> None:
    path = str(tmp_path / "graph.json")
    tp.fuse(kernel_density).graph(A, B).save(path)
    np.testing.assert_allclose(tp.graph.load(path)(A, B), kernel_density(A, B))
