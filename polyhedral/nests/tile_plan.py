"""Whether a band of loops is to be tiled, and by which sizes.

Bands of plain loops get the sizes of `tile_size` (reuse equation, Narasimhan et al. 2021). In bands
that run along skewed planes, as those of stencils do in time, a tile of T_0 steps loads what its
first step needs and leaves what its last step made: the search takes the sizes with the least

    bytes that enter a cache / instances, over all caches, weighted by what a byte costs there

where tiles follow each other along one plane, so that a tile loads what its predecessor has not:

    fresh(T) = footprint(T) - footprint(T with none along that plane)

as long as the footprint fits; where it does not, every step loads its part anew. Where iterations
of the innermost loop wait for each other, short rows take less (`nests.chain`), and tiles are
made of them though everything fits in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import ceil, prod

from codegen.records import dataclass
from polyhedral.affine import Affine
from polyhedral.model import Access, Statement
from polyhedral.nests.chain import chain_cycles, chained
from polyhedral.nests.directions import along_planes, coordinate, moved_accesses, ranges
from polyhedral.nests.footprint import Footprint, footprints, total_bytes
from polyhedral.nests.tile_size import Cache, Solution, reuse_counts, solve
from polyhedral.nests.traffic import bytes_into, traffic_line

STEPS = (2, 4, 8, 16, 32)
SLIDES = (8, 16, 32)
STRIPS = (8, 16, 32, 64)
VECTORS = (512, 1024)
"""Sizes that are tried along skewed planes, beside the whole extent."""

BYTE_CYCLES = (0.01, 0.02, 0.12)
"""What a byte costs that comes from behind the first, second, third cache, in cycles."""
ROW_CYCLES = 80.0
SERIAL_ROW_CYCLES = 10.0
"""What it takes to begin a row of vectors, and one of iterations that wait for each other."""
TILE_CYCLES = 300.0
INSTANCE_CYCLES = 1.0
WAITING_ROW = 32
"""Iterations that wait for each other from which a row is worth cutting, also within a cache."""
CLEARLY = 1.1
"""Times the cost of the bytes that move with tiles from which loops without them are worse."""
SHARE = 0.6
"""Of a cache that a tile may take: other things live there too."""


Chains = tuple[tuple[Statement, int], ...]
"""Statements whose innermost loop needs its iterations one after the other, and how many it has."""


@dataclass(frozen=True, slots=True)
class Band:
    """The statements of a band and all that sizes depend on.

    names      a loop's name for each plane
    extents    how far each plane reaches
    innermost  the loop that runs innermost in each statement
    """

    statements: tuple[tuple[Statement, tuple[Affine, ...]], ...]
    names: tuple[str, ...]
    extents: tuple[int, ...]
    innermost: Mapping[str, str | None]
    values: Mapping[str, int]
    caches: tuple[int, ...]
    line: int
    element_bytes: Mapping[str, int]

    @property
    def second(self) -> int:
        """Return the bytes of the cache that tiles are made for: of a core's own, the largest."""
        return self.caches[min(1, len(self.caches) - 1)]

    @property
    def chains(self) -> Chains:
        """Return the statements that wait, along their innermost loops, for the iteration
        before."""
        own = {each.name: self.innermost.get(each.name) for each, _ in self.statements}
        waiting = (each for each, _ in self.statements if chained(each, own[each.name]))
        rows = ((each, ranges(each, self.values)[own[each.name] or ""]) for each in waiting)
        return tuple((each, max(1, high - low + 1)) for each, (low, high) in rows)


@dataclass(frozen=True, slots=True)
class TilePlan:
    """The tiles of a band: sizes along the planes, the order of the loops over tiles, and why.

    No sizes: no tiles. The reasons are a line each: reuse counts or cycles, the footprint equation,
    tau, what of the caches a tile takes, and the bytes into each of them.

    names   a loop's name for each plane
    vector  the loop whose size is chosen for vectors: the one that runs innermost
    """

    sizes: tuple[int, ...]
    order: tuple[int, ...]
    reasons: tuple[str, ...]
    names: tuple[str, ...] = ()
    vector: str | None = None

    @property
    def tiles(self) -> bool:
        return bool(self.sizes)

    @property
    def outline(self) -> str:
        """Return the loops over tiles, the outermost first, and the sizes of the tiles along
        them."""
        if not self.tiles:
            return "no tiles"
        loops = ", ".join(self.names[at] for at in self.order)
        return f"tile {loops} by {', '.join(str(self.sizes[at]) for at in self.order)}"

    def __str__(self) -> str:
        vector = () if self.vector is None else (f"vector loop: {self.vector}",)
        return "\n".join((self.outline, *vector, *self.reasons))


def choose_sizes(band: Band) -> TilePlan:
    """Return the sizes for `band`, or none with the reason."""
    moved: list[Access] = []
    deep: list[Access] = []
    loops: dict[str, int] = {}
    deepest = max(len(statement.loops) for statement, _ in band.statements)
    for statement, planes in band.statements:
        values = along_planes(statement, planes)
        if values is None:
            return _none(f"a direction that dependences allow mixes loops of {statement.name}")
        accesses = [each for each in moved_accesses(statement, values) if each.subscripts]
        moved += accesses
        deep += accesses if len(statement.loops) == deepest else []
        inside = ranges(statement, band.values)
        loops |= {
            name: high - low + 1 for name, (low, high) in inside.items() if name not in values
        }
    if len(band.names) < 2:
        return _none("a single loop" if deepest < 2 else "no two loops that could share tiles")
    again, taken = _used_again(band)
    if not again:
        return _none("nothing is used again")
    waits = _is_skewed(band) and any(row > WAITING_ROW for _, row in band.chains)
    if taken <= band.second and not waits:
        listed = f"{', '.join(again)}, {ceil(taken)} bytes"
        return _none(f"used again: {listed}, within the {band.second} of the cache")
    parts = footprints(
        moved, (*map(coordinate, range(len(band.names))), *loops), band.element_bytes
    )
    if _is_skewed(band):
        return _searched(band, parts, loops)
    return _solved(band, parts, deep, loops)


def _none(reason: str) -> TilePlan:
    return TilePlan((), (), (reason,))


def _is_skewed(band: Band) -> bool:
    return any(len(plane.terms) > 1 for _, planes in band.statements for plane in planes)


def _used_again(band: Band) -> tuple[tuple[str, ...], float]:
    """Return the arrays whose elements several iterations of the band use, and the bytes of
    them."""
    found: dict[str, float] = {}
    for statement, planes in band.statements:
        own = {name for plane in planes for name in plane.names}
        inside = ranges(statement, band.values)
        sizes = {name: high - low + 1 for name, (low, high) in inside.items()}
        for part in footprints(statement.accesses, statement.variables, band.element_bytes):
            if part.extents and own - part.loops:
                taken = total_bytes([part], sizes, band.line)
                found[part.array] = max(found.get(part.array, 0.0), taken)
    return tuple(found), sum(found.values())


# ---------------------------------------------------------------- plain loops


def _solved(
    band: Band, parts: Sequence[Footprint], deep: Sequence[Access], loops: Mapping[str, int]
) -> TilePlan:
    """By the reuse equation."""
    names = [coordinate(at) for at in range(len(band.names))]
    reuse = reuse_counts(dict.fromkeys(deep), names)
    vector = _vector_plane(band)
    extents = {**dict(zip(names, band.extents, strict=True)), **loops}
    chosen = coordinate(vector) if vector is not None else next(iter(loops), names[-1])
    solution = solve(parts, reuse, chosen, Cache(band.second, band.line), extents)
    sizes = dict(solution.sizes)
    listed = ", ".join(f"{band.names[at]} {reuse[name]}" for at, name in enumerate(names))
    inner = [name for name in (*names, *loops) if name != chosen]
    tiles = [(name, ceil(extents[name] / sizes[name])) for name in names]
    points = [(name, sizes.get(name, extents[name])) for name in (*inner, chosen)]
    plain = [(name, extents[name]) for name in (*inner, chosen)]
    work = footprints(deep, (*names, *loops), band.element_bytes)
    moved, whole = (
        [bytes_into(work, nested, held, band.line) for held in band.caches]
        for nested in ((*tiles, *points), plain)
    )
    if _byte_cycles(whole) < CLEARLY * _byte_cycles(moved):
        cut = ", ".join(f"{band.names[at]} {sizes[name]}" for at, name in enumerate(names))
        less = f"not clearly less in tiles of {cut}: {traffic_line(moved)}"
        return TilePlan((), (), (traffic_line(whole), less, _taken(solution, band.second)))
    return TilePlan(
        tuple(sizes[name] for name in names),
        tuple(range(len(names))),
        (
            f"reuse: {listed}",
            f"footprint: {_shown(parts, band)}",
            _taken(solution, band.second),
            traffic_line(moved),
        ),
        band.names,
        band.names[vector] if vector is not None else None,
    )


def _byte_cycles(amounts: Sequence[float]) -> float:
    """What it costs that so many bytes enter each cache."""
    return sum(price * amount for amount, price in zip(amounts, BYTE_CYCLES, strict=False))


def _taken(solution: Solution, cache: int) -> str:
    share = f"tau = {solution.tau}: {ceil(solution.taken)} of {cache} bytes"
    return share if solution.taken <= cache else f"{share}, more than there are: no tile fits"


def _vector_plane(band: Band) -> int | None:
    """Return the plane along which the innermost loop of the deepest statement moves."""
    deepest = max(band.statements, key=lambda each: len(each[0].loops))
    loop = band.innermost.get(deepest[0].name)
    planes = [at for at, plane in enumerate(deepest[1]) if loop in plane.names]
    return planes[-1] if planes else None


def _shown(parts: Sequence[Footprint], band: Band) -> str:
    text = "; ".join(dict.fromkeys(map(str, parts)))
    for at in reversed(range(len(band.names))):
        text = text.replace(f"T_{coordinate(at)}", f"T_{band.names[at]}")
    return text


# ---------------------------------------------------------------- skewed planes


def _searched(band: Band, parts: Sequence[Footprint], loops: Mapping[str, int]) -> TilePlan:
    """By the search over sizes."""
    vector, chains = _vector_plane(band), band.chains
    order = _tile_order(band)

    known: dict[tuple[int, ...], float] = {}

    def taken_by(sizes: tuple[int, ...]) -> float:
        """Return the bytes of a tile; many of the search ask about the same slices."""
        if sizes not in known:
            known[sizes] = total_bytes(parts, _named(sizes, loops), band.line)
        return known[sizes]

    untiled = _cost(band, chains, taken_by, _whole(band), order, vector)
    best, tried = untiled, 0
    sizes: tuple[int, ...] = ()
    for candidate in _candidates(band, vector, bool(chains)):
        tried += 1
        found = _cost(band, chains, taken_by, candidate, order, vector)
        if found < best:
            best, sizes = found, candidate
    cycles = f"cycles an instance: {best:.2f}, without tiles {untiled:.2f}, of {tried} sizes tried"
    if not sizes:
        return _none(cycles)
    share = f"a tile takes {ceil(taken_by(sizes))} bytes of {band.caches}"
    tiles = prod(ceil(extent / size) for extent, size in zip(band.extents, sizes, strict=True))
    moved = [tiles * amount for amount in _moved(band, taken_by, sizes, order)]
    shown = f"footprint: {_shown(parts, band)}"
    reasons = (shown, share, traffic_line(moved), cycles)
    runs = None if vector is None or chains else band.names[vector]
    return TilePlan(sizes, order, (*reasons, *_waiting(band, chains)), band.names, runs)


def _waiting(band: Band, chains: Chains) -> tuple[str, ...]:
    """Where iterations wait, as a line of a plan."""
    named = ", ".join(f"{each.name} along {band.innermost[each.name]}" for each, _ in chains)
    return (f"each iteration waits for the one before it: {named}",) if named else ()


def _whole(band: Band) -> tuple[int, ...]:
    """Return one step at a time over everything."""
    return (1, *band.extents[1:])


def _tile_order(band: Band) -> tuple[int, ...]:
    """Return steps outermost, then strips; innermost the plane along which tiles follow each
    other."""
    slide = 1
    return (0, *(at for at in range(1, len(band.names)) if at != slide), slide)


def _candidates(band: Band, vector: int | None, waits: bool) -> Iterator[tuple[int, ...]]:
    """waits  whether rows are better short, for their iterations wait for each other"""
    choices: list[tuple[int, ...]] = []
    for at, extent in enumerate(band.extents):
        if at == 0:
            wanted: tuple[int, ...] = STEPS
        elif at == vector:
            wanted = (*(STRIPS if waits else ()), *VECTORS, extent)
        else:
            wanted = SLIDES if at == 1 else (*STRIPS, extent)
        choices.append(tuple(dict.fromkeys(min(size, extent) for size in wanted)))
    return product(*choices)


def _named(sizes: Sequence[int], loops: Mapping[str, int]) -> dict[str, int]:
    return {**{coordinate(at): size for at, size in enumerate(sizes)}, **loops}


def _cost(
    band: Band,
    chains: Chains,
    taken_by: Callable[[tuple[int, ...]], float],
    sizes: tuple[int, ...],
    order: Sequence[int],
    vector: int | None,
) -> float:
    """Return cycles an instance."""
    instances = prod(sizes) * len(band.statements)
    amounts = _moved(band, taken_by, sizes, order)
    moved = _byte_cycles(amounts)
    row = sizes[vector] if vector is not None else 1
    return _instance_cycles(len(band.statements), chains, row) + (moved + TILE_CYCLES) / instances


def _instance_cycles(statements: int, chains: Chains, row: int) -> float:
    """Of an instance in rows of so many, on the average over the statements, with its share of
    beginning them."""
    total = (statements - len(chains)) * (INSTANCE_CYCLES + ROW_CYCLES / row)
    for each, longest in chains:
        own = min(row, longest)
        total += chain_cycles(each, own) + SERIAL_ROW_CYCLES / own
    return total / statements


def _moved(
    band: Band,
    taken_by: Callable[[tuple[int, ...]], float],
    sizes: tuple[int, ...],
    order: Sequence[int],
) -> list[float]:
    """Return the bytes into each cache while a tile runs."""
    taken = taken_by(sizes)
    fresh = taken - taken_by(_with(sizes, order[-1], 0))
    anew = sizes[0] * taken_by(_with(sizes, 0, 1))
    return [fresh if taken <= SHARE * held else max(fresh, anew) for held in band.caches]


def _with(sizes: tuple[int, ...], at: int, size: int) -> tuple[int, ...]:
    return (*sizes[:at], size, *sizes[at + 1 :])
