"""What values of a graph are where sparse operands store nothing.

where(M, S, -inf)    -inf    M sparse
A @ X                none: few of its elements are left out
A @ B                0       both sparse, of two modes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from codegen.names import Names
from taco_py.graph.nodes import Fact, Node
from taco_py.graph.primitives.family import Index, Operands
from taco_py.graph.primitives.primitive_table import PRIMITIVES
from taco_py.language.legal.absent import fill_of
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call, Expr, Reduce
from taco_py.language.notation.operators import Number


def expression_of(node: Node, facts: Mapping[str, Fact]) -> tuple[Expr, list[Index]]:
    """Write a primitive over its operands, and an index for each mode of its result."""
    names = Names()
    operands = Operands(
        tuple(facts[name] for name in node.inputs),
        lambda place, subscripts: Access(node.inputs[place], tuple(filter(None, subscripts))),
        lambda: names.fresh("i"),
    )
    indices: list[Index] = [None if unit else names.fresh("i") for unit in node.fact.units]
    return PRIMITIVES[node.operator].express(node, indices, operands), indices


def fill_of_value(
    node: Node,
    facts: Mapping[str, Fact],
    fill: Callable[[str], Number | None],
    is_sparse: Callable[[str], bool],
) -> Number | None:
    """Find a primitive's value where its sparse operands store nothing, None where it is dense.

    fill       what an operand is there, and what a number is
    is_sparse  whether an operand leaves elements out
    """
    if not any(map(is_sparse, node.inputs)):
        return None
    expr, indices = expression_of(node, facts)
    absent = fill_of(expr, lambda access: fill(access.tensor))
    sparse = {name for name in node.inputs if is_sparse(name)}
    wide = [index for index in indices if index is not None]
    if reduces(expr, sparse) and (absent != 0 or not is_spread(expr, sparse, wide)):
        return None
    return absent


def reduces(expr: Expr, sparse: set[str]) -> bool:
    """Tell whether a sparse operand is reduced over."""
    if isinstance(expr, Reduce):
        return any(access.tensor in sparse for access in accesses(expr))
    return isinstance(expr, Call) and any(reduces(arg, sparse) for arg in expr.args)


def is_spread(expr: Expr, sparse: set[str], indices: Sequence[str]) -> bool:
    """Tell whether a reduction may leave most elements out: of two modes or more, all of which
    sparse operands have."""
    restricted = {i for access in accesses(expr) if access.tensor in sparse for i in access.indices}
    return len(indices) > 1 and {*indices} <= restricted
