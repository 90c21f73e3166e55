"""Graphs as what JSON has: operators, sizes and constants, for files and for other processes."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.diagnostics.errors import OperandTypeError
from taco_py.graph.extents import Extent
from taco_py.graph.nodes import Constant, Fact, Graph, Input, Node, Number, Output
from taco_py.interop.scipy_arrays import is_scipy_sparse


def plain_graph(graph: Graph) -> dict[str, Any]:
    """Return a graph as what JSON has."""
    return {
        "inputs": [[each.name, _fact(each.fact)] for each in graph.inputs],
        "constants": [[e.name, _fact(e.fact), plain(e.value)] for e in graph.constants],
        "numbers": [[e.name, _fact(e.fact), plain(e.extent)] for e in graph.numbers],
        "nodes": [
            [e.name, e.operator, [*e.inputs], [[k, plain(v)] for k, v in e.attributes],
             _fact(e.fact), e.place]
            for e in graph.nodes
        ],
        "outputs": [*graph.outputs],
    }  # fmt: skip


def read_graph(whole: Mapping[str, Any]) -> Graph:
    """Return the graph that `plain_graph` wrote."""
    return Graph(
        tuple(Input(n, _read_fact(f)) for n, f in whole["inputs"]),
        tuple(Constant(n, _read_fact(f), read(v)) for n, f, v in whole["constants"]),
        tuple(Number(n, _read_fact(f), read(v)) for n, f, v in whole["numbers"]),
        tuple(
            Node(n, o, tuple(i), tuple((k, read(v)) for k, v in a), _read_fact(f), p)
            for n, o, i, a, f, p in whole["nodes"]
        ),
        tuple(whole["outputs"]),
    )


def _fact(fact: Fact) -> list[Any]:
    return [[plain(e) for e in fact.shape], fact.dtype, fact.sparsity, plain(fact.fill), fact.weak]


def _read_fact(given: Any) -> Fact:
    shape, dtype, sparsity, fill, weak = given
    return Fact(tuple(map(read, shape)), dtype, sparsity, read(fill), weak)


def plain(value: Any) -> Any:
    """Return a value as what JSON has."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Extent):
        return {"extent": [value.operator, *map(plain, value.args)]}
    if isinstance(value, Output):
        return {"output": value.place}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [*map(plain, value)]}
    if isinstance(value, dict):
        return {"dict": [[plain(key), plain(each)] for key, each in value.items()]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, np.ndarray | np.generic):
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return {kind: _bytes(np.asarray(value))}
    if is_scipy_sparse(value):
        coo = value.tocoo()
        arrays = [_bytes(np.asarray(each)) for each in (*coo.coords, coo.data)]
        return {"sparse": [type(value).__name__, [*value.shape], *arrays]}
    raise OperandTypeError(
        f"Expected constants that JSON can hold, found {type(value).__name__}",
        hint="pass it as an argument of the traced function",
    )


def _bytes(array: np.ndarray[Any, Any]) -> str:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return base64.b64encode(buffer.getvalue()).decode()


def _array(text: str) -> Any:
    return np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)


def _sparse(given: Any) -> Any:
    name, shape, *arrays = given
    *coords, data = map(_array, arrays)
    coo = sp.coo_array((data, tuple(coords)), shape=tuple(shape))
    if name not in sp.__all__ or not name.endswith(("_array", "_matrix")):
        raise ValueError(f"no class of scipy.sparse: {name}")
    return getattr(sp, name)(coo)


def read(value: Any) -> Any:
    """Return a value of what JSON has for it."""
    if not isinstance(value, Mapping):
        return value
    ((kind, given),) = value.items()
    readers: Mapping[str, Any] = {
        "extent": lambda: Extent(given[0], tuple(map(read, given[1:]))),
        "output": lambda: Output(given),
        "tuple": lambda: tuple(map(read, given)),
        "list": lambda: [*map(read, given)],
        "dict": lambda: {read(key): read(each) for key, each in given},
        "complex": lambda: complex(*given),
        "array": lambda: _array(given),
        "number": lambda: _array(given)[()],
        "sparse": lambda: _sparse(given),
    }
    return readers[kind]()
