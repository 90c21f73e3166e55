"""Sums of products in another order than their operands: summed in a cache, then transposed.

    C[k,i] = sum(j, A[i,j,k] * v[j])      for blocks of i, for pieces of k:
                                            for i, j, k in these:  W[i,k] += A[i,j,k] * v[j]
                                            C[k,i] = W[i,k], transposed in registers

`target_loop` is the loop of stride 1 in the result (i), `source_loop` the loop of stride 1 in the
operands (k). Plain loops would read or write a cache line for each element. The stage, the array W
of sums, is so small that it stays in the first caches until `products.permutation` transposes it.
Sums run in the order in which the largest operand is stored, several terms at a time, so that the
stage is read and written less often.

Rows of the stage are longer where the largest operand stores another loop of the result around
`source_loop`: `middle_loop`. Where all operands are contiguous from one row to the next, one loop
traverses several rows.

Factors of stride 1 along the result's last loop instead, as in C[k,i] = A[i,k] * B[k,i], multiply
the transposed sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Staged:
    """The loops of a staged sum, by the docstring of this module.

    middle_loop   "" where there is none
    outer         the other loops of the result, in the result's order
    nest          the loops around the rows: target and reduced loops, in the largest operand's
                  order
    late          the positions of the factors that multiply the transposed sums
    merges        whether the other factors may be contiguous across coordinates of `middle_loop`
    even          whether they may be contiguous across rows too, so that one loop traverses several
    """

    target_loop: str
    source_loop: str
    middle_loop: str
    outer: tuple[str, ...]
    nest: tuple[str, ...]
    late: frozenset[int]
    merges: bool
    even: bool

    @property
    def reduced(self) -> tuple[str, ...]:
        return tuple(loop for loop in self.nest if loop != self.target_loop)

    @property
    def row(self) -> tuple[str, ...]:
        """Return the loops of a row."""
        return (self.middle_loop, self.source_loop) if self.middle_loop else (self.source_loop,)


def staged(
    target: tuple[str, ...], factors: Sequence[tuple[str, ...]], largest: int
) -> Staged | None:
    """Return the staged sum of the product of factors stored with these loops.

    The last loop of each has stride 1; loops that the target lacks are summed. None where no stage
    is needed, or where a factor has stride 1 along another loop.

    largest  the position of the factor with the most bytes to read
    """
    if len(target) < 2 or not factors[largest]:
        return None
    target_loop, source_loop = target[-1], factors[largest][-1]
    if (
        target_loop == source_loop
        or source_loop not in target
        or target_loop not in factors[largest]
    ):
        return None
    reduced = {loop for factor in factors for loop in factor if loop not in target}
    late = frozenset(
        place
        for place, loops in enumerate(factors)
        if source_loop in loops and loops[-1] != source_loop
    )
    if any(factors[place][-1] != target_loop or reduced & {*factors[place]} for place in late):
        return None
    before = factors[largest][-2]
    middle_loop = before if before in target and before != target_loop else ""
    stored = [loop for loop in factors[largest] if loop in reduced or loop == target_loop]
    unordered = sorted(reduced - set(stored))
    outer = tuple(loop for loop in target if loop not in (target_loop, source_loop, middle_loop))
    early = [loops for place, loops in enumerate(factors) if place not in late]
    row = (middle_loop, source_loop) if middle_loop else (source_loop,)
    merges = all(_is_innermost(loops, row) for loops in early)
    even = all(_is_innermost(loops, (target_loop, *row)) for loops in early)
    return Staged(
        target_loop, source_loop, middle_loop, outer, (*unordered, *stored), late, merges, even
    )


def _is_innermost(loops: tuple[str, ...], last: tuple[str, ...]) -> bool:
    """Return whether an array is stored with the loops `last` inside all others, or with none of
    them."""
    return loops[-len(last) :] == last or not {*last} & {*loops}
