"""Elements at positions, and elements added up at positions, by operands of one entry a row.

    y[n] = x[n,p[n]]        R[i]   = sum(j, p[i,j] * x[i,j])     p[i,j] is 1 where j is p[i]
    G[p[n],k] += g[n,k]     R[i,k] = sum(n, p[n,i] * g[n,k])

An attribute `modes` says for each mode of the array that is read, or added to, which mode of the
other one it is: a number, or the input that holds its positions with the modes of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from taco_py.graph.nodes import Node
from taco_py.graph.primitives.family import Index, Operands, Primitive
from taco_py.language.notation.nodes import Call, Expr, Reduce
from taco_py.language.notation.operators import ADD, MUL

Lines = tuple[int, ...]
"""The modes that positions have, as modes of what is gathered."""

Modes = tuple[int | tuple[int, Lines], ...]


def positions_in(modes: Modes) -> Iterator[tuple[int, int, Lines]]:
    """Yield each mode that positions say, with the input that holds them and their modes."""
    for mode, entry in enumerate(modes):
        if not isinstance(entry, int):
            yield mode, *entry


def is_of_elements(node: Node) -> bool:
    """Tell whether positions select all modes that a gather reads, or a scatter adds to."""
    return not any(isinstance(mode, int) for mode in node.get("modes"))


def _gather(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    inner: list[Index] = []
    selectors = []
    for entry in node.get("modes"):
        if isinstance(entry, int):
            inner.append(indices[entry])
            continue
        place, lines = entry
        inner.append(operands.fresh())
        selectors.append(operands.read(place, [*(indices[line] for line in lines), inner[-1]]))
    over = [inner[mode] for mode, *_ in positions_in(node.get("modes"))]
    return _sum(over, [*selectors, operands.read(0, inner)])


def _scatter(node: Node, indices: Sequence[Index], operands: Operands) -> Expr:
    modes = node.get("modes")
    inner: list[Index] = [None] * operands.facts[0].order
    for index, entry in zip(indices, modes, strict=True):
        if isinstance(entry, int):
            inner[entry] = index
    over = [
        mode for mode, unit in enumerate(operands.facts[0].units)
        if mode not in modes and not unit
    ]  # fmt: skip
    for mode in over:
        inner[mode] = operands.fresh()
    selectors = [
        operands.read(place, [*(inner[line] for line in lines), indices[mode]])
        for mode, place, lines in positions_in(modes)
    ]
    return _sum([inner[mode] for mode in over], [*selectors, operands.read(0, inner)])


def _sum(over: Iterable[Index], factors: Sequence[Expr]) -> Expr:
    result = reduce(lambda one, other: Call(MUL, (one, other)), factors)
    for index in over:
        assert index is not None
        result = Reduce(ADD, index, result)
    return result


PRIMITIVES = (
    Primitive("gather", "gather", _gather),
    Primitive("scatter", "gather", _scatter, reads_once=True),
)
