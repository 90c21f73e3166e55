"""Graphs as what JSON has: operators, sizes and constants, for files and for other processes.

`read_graphs.py` reads them.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Collection
from typing import Any

import numpy as np

from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.graph.extents import Extent
from taco_py.graph.nodes import NOWHERE, Constant, Fact, Graph, Node, Output
from taco_py.language.diagnostics.errors import OperandTypeError

SAME = "same"
"""Stands for the constant of that name of another graph."""


def plain_graph(graph: Graph, shared: Collection[Constant] = ()) -> dict[str, Any]:
    """Return a graph in the types that JSON has.

    Raises OperandTypeError for constants that no file holds.

    shared  constants of another graph, which are named instead of written again
    """
    names = {id(constant.value): constant.name for constant in shared}
    return {
        "inputs": [[leaf.name, _fact(leaf.fact)] for leaf in graph.inputs],
        "constants": [[e.name, _fact(e.fact), _constant(e, names)] for e in graph.constants],
        "numbers": [[e.name, _fact(e.fact), plain(e.extent)] for e in graph.numbers],
        "nodes": [*map(_node, graph.nodes)],
        "outputs": [*graph.outputs],
    }


def _constant(constant: Constant, names: dict[int, str]) -> Any:
    name = names.get(id(constant.value))
    return plain(constant.value) if name is None else {SAME: name}


def _node(node: Node) -> list[Any]:
    attributes = [[key, plain(value)] for key, value in node.attributes]
    row = [node.name, node.operator, [*node.inputs], attributes, _fact(node.fact), node.place]
    origin = node.origin
    return row if origin == NOWHERE else [*row, [origin.operator, origin.derivative]]


def _fact(fact: Fact) -> list[Any]:
    return [[plain(e) for e in fact.shape], fact.dtype, fact.sparsity, plain(fact.fill), fact.weak]


def plain(value: Any) -> Any:
    """Return a value in the types that JSON has."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Extent):
        return {"extent": [value.operator, *map(plain, value.args)]}
    if isinstance(value, Output):
        return {"output": value.place}
    if type(value) in (tuple, list):
        return {type(value).__name__: [*map(plain, value)]}
    if type(value) is dict:
        return {"dict": [[plain(key), plain(element)] for key, element in value.items()]}
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcSU":
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return {kind: _bytes(np.asarray(value))}
    if is_scipy_sparse(value):
        coo = value.tocoo()
        arrays = [_bytes(np.asarray(array)) for array in (*coo.coords, coo.data)]
        return {"sparse": [type(value).__name__, [*value.shape], *arrays]}
    raise OperandTypeError(
        f"Expected numbers, arrays, texts, and tuples, lists and dictionaries of them, to save, "
        f"found {type(value).__name__}",
        hint="pass it as an argument of the traced function, or return what a file can hold",
    )


def _bytes(array: np.ndarray[Any, Any]) -> str:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return base64.b64encode(buffer.getvalue()).decode()
