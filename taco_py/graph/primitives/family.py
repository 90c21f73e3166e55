"""What a primitive is: an assignment in index notation over the modes of its operands.

map         R[i,j] = f(a[i,j], b[i,j])
reduce      R[i]   = sum(j, a[i,j])
broadcast   R[i,j] = a[j]
transpose   R[i,j] = a[j,i]
contract    R[i,k] = sum(j, a[i,j] * b[j,k])
gather      R[i]   = sum(j, p[i,j] * a[j])     p of one entry a row
scatter     R[j]   = sum(i, p[i,j] * a[i])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codegen.records import dataclass
from taco_py.graph.nodes import Fact, Node
from taco_py.language.notation.nodes import Expr

Index = str | None
"""An index, or None for a mode of size 1."""

Read = Callable[[int, Sequence[Index]], Expr]
"""From the place of an operand and an index for each of its modes to its expression."""


@dataclass(frozen=True, slots=True)
class Operands:
    """What a primitive reads.

    facts  what is known of each operand
    read   the expression of each operand at indices
    fresh  a new index
    """

    facts: tuple[Fact, ...]
    read: Read
    fresh: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Primitive:
    """An entry of the table of primitives.

    family   elementwise, reduce, broadcast, layout, linear or gather
    express  from a node, an index for each mode of its result and its operands to its expression
    reads_once  whether each element of an operand is read once, so that it may be computed there
    """

    operator: str
    family: str
    express: Callable[[Node, Sequence[Index], Operands], Expr]
    reads_once: bool = False
