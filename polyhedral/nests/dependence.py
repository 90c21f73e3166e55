"""Exact dependences between the statement instances of a nest, as plain data.

A dependence is a pair of instances that touch one element, at least one of them writing. An order
that keeps every pair is equivalent to the original order. `dependences` lists all pairs
(memory-based), not only those between a value and its uses: when updates may change places, the
pair of the first write and the last update is implied by no chain of others.
`value_flow` lists, for each read, the one instance that wrote its value (Feautrier 1991).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from codegen.records import dataclass
from polyhedral.errors import NestError
from polyhedral.isl.dependences import conflict, distances, last_writers
from polyhedral.isl.limits import BUDGET, limited
from polyhedral.model import Access, Nest, Statement

if TYPE_CHECKING:
    import islpy


class Kind(Enum):
    FLOW = "flow"  # a write, then a read
    ANTI = "anti"  # a read, then a write
    OUTPUT = "output"  # two writes


@dataclass(frozen=True, slots=True)
class Distance:
    """`sink - source` of one loop: from `low` to `high`, None where there is no bound."""

    loop: str
    low: int | None
    high: int | None

    @property
    def direction(self) -> str:
        """Return `=` `<` (forwards) `>` (backwards) `<=` `>=` or `*` (any)."""
        below = self.low is None or self.low < 0
        above = self.high is None or self.high > 0
        same = (self.low is None or self.low <= 0) and (self.high is None or self.high >= 0)
        return {
            (False, True, False): "<",
            (False, True, True): "<=",
            (True, False, False): ">",
            (True, False, True): ">=",
            (False, False, True): "=",
        }.get((below, above, same), "*")

    def __str__(self) -> str:
        return str(self.low) if self.low is not None and self.low == self.high else self.direction


@dataclass(frozen=True, slots=True)
class Dependence:
    """Pairs of instances of `source` and `sink` that touch the same element of `array`.

    commutes   both are updates by one operator that is declared associative and commutative
    distances  of the loops that both statements share, outermost first
    relation   the pairs, in ISL's notation (`polyhedral.isl` has the names)
    """

    kind: Kind
    source: str
    sink: str
    array: str
    commutes: bool
    distances: tuple[Distance, ...]
    relation: str

    def __str__(self) -> str:
        distances = ", ".join(map(str, self.distances))
        reduction = " (reduction)" if self.commutes else ""
        return (
            f"{self.kind.value} dependence {self.source} -> {self.sink} "
            f"on {self.array} ({distances}){reduction}"
        )


def dependences(nest: Nest, budget: int = BUDGET) -> tuple[Dependence, ...]:
    """Return every dependence of `nest`, memory-based, in the order of its statements and accesses.

    Two updates depend on each other in all three ways; they are listed once, as OUTPUT.
    Raises BudgetExceededError, and NestError for an array used with two numbers of subscripts.
    """
    _check_orders(nest)
    uses = [(statement, access) for statement in nest.statements for access in statement.accesses]
    with limited(budget) as context:
        all_pairs = [
            _dependence(context, nest, source, sink)
            for source in uses
            for sink in uses
            if source[1].array == sink[1].array and (source[1].writes or sink[1].writes)
        ]
    return tuple(dict.fromkeys(pair for pair in all_pairs if pair is not None))


def _dependence(
    context: islpy.Context,
    nest: Nest,
    source: tuple[Statement, Access],
    sink: tuple[Statement, Access],
) -> Dependence | None:
    relation = conflict(context, nest, source, sink)
    if relation is None:
        return None
    (first, one), (second, other) = source, sink
    return Dependence(
        _kind(one, other),
        first.name,
        second.name,
        one.array,
        one.commutes(other),
        _distances(context, nest, relation, first, second),
        relation,
    )


def _kind(source: Access, sink: Access) -> Kind:
    if source.writes and sink.writes:
        return Kind.OUTPUT
    return Kind.FLOW if source.writes else Kind.ANTI


def _distances(
    context: islpy.Context, nest: Nest, relation: str, source: Statement, sink: Statement
) -> tuple[Distance, ...]:
    bounds = distances(context, nest, relation, source, sink)
    return tuple(
        Distance(name, *bound) for name, bound in zip(source.variables, bounds, strict=False)
    )


def value_flow(nest: Nest, budget: int = BUDGET) -> tuple[Dependence, ...]:
    """Return the flow dependences through which values pass: from the last write before each read.

    They do not suffice to check a new order: use `dependences`. Raises as `dependences` does.
    """
    _check_orders(nest)
    arrays = dict.fromkeys(a.array for statement in nest.statements for a in statement.accesses)
    with limited(budget) as context:
        return tuple(
            Dependence(
                Kind.FLOW, source, sink, array, False,
                _distances(
                    context, nest, relation, nest.statement(source), nest.statement(sink)
                ),
                relation,
            )
            for array in arrays
            for source, sink, relation in last_writers(context, nest, array)
        )  # fmt: skip


def _check_orders(nest: Nest) -> None:
    orders: dict[str, Access] = {}
    for statement in nest.statements:
        for access in statement.accesses:
            first = orders.setdefault(access.array, access)
            if len(first.subscripts) != len(access.subscripts):
                raise NestError(
                    f"Expected one number of subscripts for {access.array}, "
                    f"found {first.place} and {access.place}."
                )
