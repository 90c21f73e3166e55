"""Cotangents of functions of elements, by the entries of the operator table, as primitives.

y = map maximum(x, 0), cotangent g    →    map where(map greater(x, 0), g, 0)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from taco_py.autodiff.cotangents import cotangent_of
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.primitives.functions_of_elements import OTHER_NAMES, call
from taco_py.notation.checks import accesses
from taco_py.notation.functions.function_table import ALIASES
from taco_py.notation.nodes import Access, Call, Expr, Literal

NUMPY_NAMES: Mapping[str, str] = MappingProxyType({
    ours: numpys for numpys, ours in (*ALIASES.items(), *OTHER_NAMES.items())
})  # fmt: skip
"""What maps call functions of index notation, where NumPy's ufunc does not have that name."""
OF_SCIPY = ("expit", "erf")


def cotangents_of_map(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], cotangent: str
) -> Iterator[tuple[int, str]]:
    """Make the cotangents of a map's operands, each with the place of the operand.

    Raises DerivativeError for a function without a derivative.
    """
    names = [f"a{place}" for place in range(len(inputs))]
    args: list[Expr] = [
        Literal(builder.constants[name].value)
        if name in builder.constants and not builder.facts[name].order
        else Access(own, ())
        for own, name in zip(names, inputs, strict=True)
    ]
    values = {**dict(zip(names, inputs, strict=True)), "d": cotangent}
    made = call(node.get("function"), args)
    is_complex = any(builder.facts[n].dtype.startswith("complex") for n in (*inputs, cotangent))
    real = {
        own
        for own, name in zip(names, inputs, strict=True)
        if np.dtype(builder.facts[name].dtype).kind in "fc"
    }
    for name, found in _below(made, Access("d", ()), is_complex, real):
        yield names.index(name), build(builder, found, values)


def _below(
    expr: Expr, cotangent: Expr, is_complex: bool, real: Collection[str]
) -> Iterator[tuple[str, Expr]]:
    """The cotangents of the accesses in an expression that are real or complex."""
    if isinstance(expr, Access):
        yield expr.tensor, cotangent
    elif isinstance(expr, Call):
        for place, arg in enumerate(expr.args):
            if any(each.tensor in real for each in accesses(arg)):
                found = cotangent_of(expr, place, cotangent, is_complex)
                if found is not None:
                    yield from _below(arg, found, is_complex, real)


def build(builder: GraphBuilder, expr: Expr, values: Mapping[str, str]) -> str:
    """Make the primitives of an expression of numbers."""
    if isinstance(expr, Access):
        return values[expr.tensor]
    if isinstance(expr, Literal):
        return builder.literal(expr.value)
    assert isinstance(expr, Call)
    inputs = [build(builder, arg, values) for arg in expr.args]
    operator = expr.operator
    name = NUMPY_NAMES.get(operator.name) or operator.evaluate.__name__
    dtype = builder.facts[inputs[0]].dtype if name in OF_SCIPY else None
    return builder.map(name, *inputs, dtype=dtype)
