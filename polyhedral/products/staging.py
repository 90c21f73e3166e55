"""A sum of products stored in another order than its operands: summed near, then transposed.

    C[k,i] = sum(j, A[i,j,k] * v[j])      for blocks of i, for pieces of k:
                                            for i, j, k of them:  W[i,k] += A[i,j,k] * v[j]
                                            C[k,i] = W[i,k], transposed in registers

`along` is the loop that runs through neighbours of the result (i), `across` the one that does in
the operands (k). Loops alone would read the one or write the other a line for each element. What is
summed, the operands' stage, is so small that it stays in the first caches until it is transposed by
`products.permutation`; sums run in the order in which the largest operand is stored, several
terms at a time, so that the stage is read and written as much less often.

Rows of the stage are longer where the largest operand stores another loop of the result around
`across`, which is `beside` it then. Where all operands go on from one row to the next, so does the
loop over them.

Factors that run through neighbours of the result instead, as in C[k,i] = A[i,k] * B[k,i], are
multiplied in afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Staged:
    """`along`, `across` and `beside` ("" for none) as above, the `outer` loops as the
    result is stored, and those `around` the rows: along and the reduced ones, as the largest
    operand is stored.

    late    the places of the factors that are multiplied in afterwards
    joined  whether the others may go on from one coordinate of `beside` to the next
    even    whether they may from one row to the next too, so that several are one
    """

    along: str
    across: str
    beside: str
    outer: tuple[str, ...]
    around: tuple[str, ...]
    late: frozenset[int]
    joined: bool
    even: bool

    @property
    def reduced(self) -> tuple[str, ...]:
        return tuple(loop for loop in self.around if loop != self.along)

    @property
    def row(self) -> tuple[str, ...]:
        """Return the loops of a row."""
        return (self.beside, self.across) if self.beside else (self.across,)


def staged(
    target: tuple[str, ...], factors: Sequence[tuple[str, ...]], largest: int
) -> Staged | None:
    """Return the product of factors stored with such loops, the last ones through neighbours,
    summed over those that the target does not have; None where no stage is needed, or where a
    factor runs through neighbours of neither.

    largest  the place of the factor that takes the longest to read
    """
    if len(target) < 2 or not factors[largest]:
        return None
    along, across = target[-1], factors[largest][-1]
    if along == across or across not in target or along not in factors[largest]:
        return None
    reduced = {loop for factor in factors for loop in factor if loop not in target}
    late = frozenset(
        place for place, loops in enumerate(factors) if across in loops and loops[-1] != across
    )
    if any(factors[place][-1] != along or reduced & {*factors[place]} for place in late):
        return None
    before = factors[largest][-2]
    beside = before if before in target and before != along else ""
    stored = [loop for loop in factors[largest] if loop in reduced or loop == along]
    others = sorted(reduced - set(stored))
    outer = tuple(loop for loop in target if loop not in (along, across, beside))
    early = [loops for place, loops in enumerate(factors) if place not in late]
    row = (beside, across) if beside else (across,)
    joined = all(_goes_on(loops, row) for loops in early)
    even = all(_goes_on(loops, (along, *row)) for loops in early)
    return Staged(along, across, beside, outer, (*others, *stored), late, joined, even)


def _goes_on(loops: tuple[str, ...], last: tuple[str, ...]) -> bool:
    """Tell whether an array is stored with the loops `last` inside all others, or has none of
    them."""
    return loops[-len(last) :] == last or not {*last} & {*loops}
