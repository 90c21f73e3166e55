"""Candidates for the next command of a schedule, for searches that try them.

A `bound` is none of them: its promise is not known before operands are.

Sizes are the few that make a difference: a tile that fits a vector register or a cache line, and
one that fits the first cache; as many parts as a small machine has cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise

from taco_py.compiler.concrete.nodes import Assembly, Merge, Race, Unit
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.schedule.commands import (
    Assemble,
    Command,
    Distribute,
    Fission,
    LoopFuse,
    MergeBy,
    Parallelize,
    Precompute,
    Reorder,
    Serial,
    Unroll,
    Vectorize,
)
from taco_py.compiler.schedule.distribute import count_terms
from taco_py.compiler.schedule.loop_state import Loops
from taco_py.language.notation.nodes import Call
from taco_py.language.provenance.relations import Coord, Divide, Fuse, Pos, Split

TILES = (8, 64)
PARTS = (4,)
UNROLLS = (4,)


def candidates(
    loops: Loops, sparse: Sequence[str], units: Sequence[Unit] = (Unit.CORE,)
) -> Iterator[Command]:
    """Yield commands worth a try on `loops`; some of them are illegal.

    sparse  the operands with stored coordinates
    units   the units that share loops on the target
    """
    for term in split_terms(loops.assignment.value):
        if count_terms(term.body) > 1:
            yield Distribute(term.body)
    yield from _orders(loops)
    for variable in loops.variables:
        yield from _derivations(loops, sparse, variable)
    for outer, inner in _neighbours(loops):
        yield Fuse(outer, inner, _fresh(loops, f"{outer}{inner}"))
    for variable in loops.variables:
        yield from _modes(variable, units)
        yield from (Fission(variable), LoopFuse(variable))
    yield from _workspaces(loops)
    yield from (Assemble(loops.assignment.target.tensor, way) for way in Assembly)
    yield Serial()


def _neighbours(loops: Loops) -> Iterable[tuple[str, str]]:
    """Return pairs of loops, the second just inside the first in some term."""
    return dict.fromkeys(pair for order in loops.orders for pair in pairwise(order))


def _orders(loops: Loops) -> Iterator[Command]:
    """Yield the interchanges of two loops."""
    pairs = dict.fromkeys(pair for order in loops.orders for pair in combinations(order, 2))
    for outer, inner in pairs:
        yield Reorder((inner, outer))


def _derivations(loops: Loops, sparse: Sequence[str], variable: str) -> Iterator[Command]:
    outer, inner = _fresh(loops, f"{variable}0"), _fresh(loops, f"{variable}1")
    yield from (Split(variable, outer, inner, size) for size in TILES)
    yield from (Divide(variable, outer, inner, parts) for parts in PARTS)
    if loops.provenance.positions_above(variable) is not None:
        yield Coord(variable, _fresh(loops, f"{variable}crd"))
        return
    for name in sparse:
        yield Pos(variable, _fresh(loops, f"{variable}pos"), name)


def _modes(variable: str, units: Sequence[Unit]) -> Iterator[Command]:
    races = [race for race in Race if race is not Race.IGNORE]
    yield from (Parallelize(variable, race, unit) for unit in units for race in races)
    yield from (Unroll(variable, factor) for factor in UNROLLS)
    yield Vectorize(variable)
    yield MergeBy(variable, Merge.GALLOP)


def _workspaces(loops: Loops) -> Iterator[Command]:
    """Yield precomputations of full terms, for all values of one of the result's indices."""
    for term in split_terms(loops.assignment.value):
        for index in loops.assignment.target.indices:
            if isinstance(term.body, Call):
                yield Precompute(term.body, (index,), (_fresh(loops, f"{index}w"),))


def _fresh(loops: Loops, name: str) -> str:
    """Return a name like `name` that is not in use."""
    while name in loops.names:
        name += "_"
    return name
