"""Epilogue visitor trees: computations with each element of a product while it is in registers.

    Z[i,j] = sum(k, X[i,k] * W[k,j]) + b[j];  H[i,j] = max(Z[i,j], 0);  s[j] = sum(i, H[i,j])

    outputs
      sum over i into s[j]
        store H[i,j]
          max
            store Z[i,j]
              +
                accumulator
                row b[j]
            0

A visitor computes one value for each element of the product, from those of the visitors below it.
Stores and sums pass their value on. A value that several visitors read is computed once, in a
`Topological` visitor with all visitors up to the first one through which all of its paths pass: its
lowest common ancestor. (Chen et al. 2024, EVT, section 5.)
"""

from __future__ import annotations

from codegen.records import dataclass
from taco_py.language.notation.nodes import Access, Literal
from taco_py.language.notation.operators import Operator


@dataclass(frozen=True, slots=True)
class AccumulatorFetch:
    """The element of the product."""


@dataclass(frozen=True, slots=True)
class AuxLoad:
    """The element of an array that has both indices of the product."""

    access: Access


@dataclass(frozen=True, slots=True)
class RowBroadcast:
    """The element of a row `b[j]`, which all rows of the product share."""

    access: Access


@dataclass(frozen=True, slots=True)
class ColumnBroadcast:
    """The element of a column `d[i]`, which all columns of the product share."""

    access: Access


@dataclass(frozen=True, slots=True)
class ScalarBroadcast:
    """A number, of the text or of an array without modes."""

    value: Access | Literal


@dataclass(frozen=True, slots=True)
class Compute:
    """An operator of the values below it."""

    operator: Operator
    args: tuple[Visitor, ...]


@dataclass(frozen=True, slots=True)
class AuxStore:
    """Writes its value to an array that has both indices of the product, and passes it on."""

    target: Access
    value: Visitor


@dataclass(frozen=True, slots=True)
class RowReduction:
    """Sums its value over the rows of the product into a row `s[j]`, and passes it on."""

    target: Access
    value: Visitor


@dataclass(frozen=True, slots=True)
class ColumnReduction:
    """Sums its value over the columns of the product into a column `s[i]`, and passes it on."""

    target: Access
    value: Visitor


@dataclass(frozen=True, slots=True)
class ScalarReduction:
    """Sums its value over all elements of the product into one number, and passes it on."""

    target: Access
    value: Visitor


@dataclass(frozen=True, slots=True)
class Slot:
    """The value of an earlier step of the `Topological` visitor around it."""

    number: int


@dataclass(frozen=True, slots=True)
class Topological:
    """Visitors in an order in which each one reads earlier ones; its value is that of the last one.

    The last one is the lowest common ancestor of the readers of shared ones before it. It is
    `Outputs` where these readers contribute to no common value.
    """

    steps: tuple[Visitor, ...]


@dataclass(frozen=True, slots=True)
class Outputs:
    """The root, where no other visitor has all stores and sums below it: it has no value."""

    args: tuple[Visitor, ...]


Leaf = AccumulatorFetch | AuxLoad | RowBroadcast | ColumnBroadcast | ScalarBroadcast
Writer = AuxStore | RowReduction | ColumnReduction | ScalarReduction
Visitor = Leaf | Slot | Compute | Writer | Topological | Outputs
