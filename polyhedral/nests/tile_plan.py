"""The choice of tiles for a band of loops, and their sizes.

Bands of plain loops get the sizes of `tile_size` (reuse equation, Narasimhan et al. 2021). In bands
that run along skewed planes, as those of stencils do in time, a tile of T_0 steps loads the input
of its first step and stores the output of its last step: the search takes the sizes with the least

    bytes that enter a cache / instances, over all caches, weighted by what a byte costs there

where tiles follow each other along one plane, so that a tile loads what its predecessor did not:

    fresh(T) = footprint(T) - footprint(T with none along that plane)

as long as the footprint fits; where it does not, every step loads its part anew. Where iterations
of the innermost loop wait for each other, short rows are faster (`nests.chain`), and tiles pay even
if everything fits in a cache.
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
"""Sizes that are tried along skewed planes, beside the full extent."""

BYTE_CYCLES = (0.01, 0.02, 0.12)
"""Cycles of a byte that comes from beyond the first, second, third cache."""
ROW_CYCLES = 80.0
SERIAL_ROW_CYCLES = 10.0
"""Cycles to begin a row of vectors, and a row of iterations that wait for each other."""
TILE_CYCLES = 300.0
INSTANCE_CYCLES = 1.0
WAITING_ROW = 32
"""The length from which a row of waiting iterations is worth cutting, also within a cache."""
CLEARLY = 1.1
"""The least ratio of bytes' cost without tiles to that with tiles for which tiles pay."""
SHARE = 0.6
"""The share of a cache that a tile may occupy: it has other contents too."""


Chains = tuple[tuple[Statement, int], ...]
"""Statements whose innermost loop has sequential iterations, and the number of these."""


@dataclass(frozen=True, slots=True)
class Band:
    """The statements of a band and all facts that sizes depend on.

    names      a loop's name for each plane
    extents    the extent of each plane
    innermost  the innermost loop of each statement
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
        """Return the bytes of the cache that tiles are sized for: the largest private cache of a
        core."""
        return self.caches[min(1, len(self.caches) - 1)]

    @property
    def chains(self) -> Chains:
        """Return the statements whose innermost iterations wait for the previous one."""
        innermost_loops = {
            statement.name: self.innermost.get(statement.name) for statement, _ in self.statements
        }
        waiting = (
            statement
            for statement, _ in self.statements
            if chained(statement, innermost_loops[statement.name])
        )
        rows = (
            (statement, ranges(statement, self.values)[innermost_loops[statement.name] or ""])
            for statement in waiting
        )
        return tuple((statement, max(1, high - low + 1)) for statement, (low, high) in rows)


@dataclass(frozen=True, slots=True)
class TilePlan:
    """The tiles of a band: sizes along the planes, the order of the loops over tiles, and reasons.

    No sizes stand for no tiles. The reasons are a line each: reuse counts or cycles, the footprint
    equation, tau, the share of the caches that a tile occupies, and the bytes into each of them.

    names   a loop's name for each plane
    vector  the innermost loop, whose size is chosen for vectors
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
    accesses_along: list[Access] = []
    deep: list[Access] = []
    loops: dict[str, int] = {}
    deepest = max(len(statement.loops) for statement, _ in band.statements)
    for statement, planes in band.statements:
        values = along_planes(statement, planes)
        if values is None:
            return _none(f"a direction that dependences allow mixes loops of {statement.name}")
        accesses = [access for access in moved_accesses(statement, values) if access.subscripts]
        accesses_along += accesses
        deep += accesses if len(statement.loops) == deepest else []
        inside = ranges(statement, band.values)
        loops |= {
            name: high - low + 1 for name, (low, high) in inside.items() if name not in values
        }
    if len(band.names) < 2:
        return _none("a single loop" if deepest < 2 else "no two loops that could share tiles")
    reused, reused_bytes = _used_again(band)
    if not reused:
        return _none("nothing is used again")
    waits = _is_skewed(band) and any(row > WAITING_ROW for _, row in band.chains)
    if reused_bytes <= band.second and not waits:
        reused_text = f"{', '.join(reused)}, {ceil(reused_bytes)} bytes"
        return _none(f"used again: {reused_text}, within the {band.second} of the cache")
    parts = footprints(
        accesses_along, (*map(coordinate, range(len(band.names))), *loops), band.element_bytes
    )
    if _is_skewed(band):
        return _searched(band, parts, loops)
    return _solved(band, parts, deep, loops)


def _none(reason: str) -> TilePlan:
    return TilePlan((), (), (reason,))


def _is_skewed(band: Band) -> bool:
    return any(len(plane.terms) > 1 for _, planes in band.statements for plane in planes)


def _used_again(band: Band) -> tuple[tuple[str, ...], float]:
    """Return the arrays whose elements several iterations of the band use, and their bytes."""
    bytes_of: dict[str, float] = {}
    for statement, planes in band.statements:
        plane_loops = {name for plane in planes for name in plane.names}
        inside = ranges(statement, band.values)
        sizes = {name: high - low + 1 for name, (low, high) in inside.items()}
        for part in footprints(statement.accesses, statement.variables, band.element_bytes):
            if part.extents and plane_loops - part.loops:
                array_bytes = total_bytes([part], sizes, band.line)
                bytes_of[part.array] = max(bytes_of.get(part.array, 0.0), array_bytes)
    return tuple(bytes_of), sum(bytes_of.values())


# ---------------------------------------------------------------- plain loops


def _solved(
    band: Band, parts: Sequence[Footprint], deep: Sequence[Access], loops: Mapping[str, int]
) -> TilePlan:
    """Return the tiles of plain loops, by the reuse equation."""
    names = [coordinate(at) for at in range(len(band.names))]
    reuse = reuse_counts(dict.fromkeys(deep), names)
    vector = _vector_plane(band)
    extents = {**dict(zip(names, band.extents, strict=True)), **loops}
    vector_loop = coordinate(vector) if vector is not None else next(iter(loops), names[-1])
    solution = solve(parts, reuse, vector_loop, Cache(band.second, band.line), extents)
    sizes = dict(solution.sizes)
    counts = ", ".join(f"{band.names[at]} {reuse[name]}" for at, name in enumerate(names))
    inner = [name for name in (*names, *loops) if name != vector_loop]
    tiles = [(name, ceil(extents[name] / sizes[name])) for name in names]
    points = [(name, sizes.get(name, extents[name])) for name in (*inner, vector_loop)]
    plain = [(name, extents[name]) for name in (*inner, vector_loop)]
    work = footprints(deep, (*names, *loops), band.element_bytes)
    tiled_bytes, plain_bytes = (
        [bytes_into(work, nested, size, band.line) for size in band.caches]
        for nested in ((*tiles, *points), plain)
    )
    if _byte_cycles(plain_bytes) < CLEARLY * _byte_cycles(tiled_bytes):
        cut = ", ".join(f"{band.names[at]} {sizes[name]}" for at, name in enumerate(names))
        less = f"not clearly less in tiles of {cut}: {traffic_line(tiled_bytes)}"
        return TilePlan(
            (), (), (traffic_line(plain_bytes), less, _share_text(solution, band.second))
        )
    return TilePlan(
        tuple(sizes[name] for name in names),
        tuple(range(len(names))),
        (
            f"reuse: {counts}",
            f"footprint: {_equation_text(parts, band)}",
            _share_text(solution, band.second),
            traffic_line(tiled_bytes),
        ),
        band.names,
        band.names[vector] if vector is not None else None,
    )


def _byte_cycles(amounts: Sequence[float]) -> float:
    """Return the cycles for these bytes that enter each cache."""
    return sum(price * amount for amount, price in zip(amounts, BYTE_CYCLES, strict=False))


def _share_text(solution: Solution, cache: int) -> str:
    share = f"tau = {solution.tau}: {ceil(solution.bytes)} of {cache} bytes"
    return share if solution.bytes <= cache else f"{share}, more than there are: no tile fits"


def _vector_plane(band: Band) -> int | None:
    """Return the plane along which the innermost loop of the deepest statement moves."""
    deepest = max(band.statements, key=lambda pair: len(pair[0].loops))
    loop = band.innermost.get(deepest[0].name)
    planes = [at for at, plane in enumerate(deepest[1]) if loop in plane.names]
    return planes[-1] if planes else None


def _equation_text(parts: Sequence[Footprint], band: Band) -> str:
    text = "; ".join(dict.fromkeys(map(str, parts)))
    for at in reversed(range(len(band.names))):
        text = text.replace(f"T_{coordinate(at)}", f"T_{band.names[at]}")
    return text


# ---------------------------------------------------------------- skewed planes


def _searched(band: Band, parts: Sequence[Footprint], loops: Mapping[str, int]) -> TilePlan:
    """Return the tiles along skewed planes, by the search over sizes."""
    vector, chains = _vector_plane(band), band.chains
    order = _tile_order(band)

    cache: dict[tuple[int, ...], float] = {}

    def taken_by(sizes: tuple[int, ...]) -> float:
        """Return the bytes of a tile, cached: many candidates have slices in common."""
        if sizes not in cache:
            cache[sizes] = total_bytes(parts, _with_coordinates(sizes, loops), band.line)
        return cache[sizes]

    untiled = _cost(band, chains, taken_by, _one_step(band), order, vector)
    best, count = untiled, 0
    sizes: tuple[int, ...] = ()
    for candidate in _candidates(band, vector, bool(chains)):
        count += 1
        candidate_cost = _cost(band, chains, taken_by, candidate, order, vector)
        if candidate_cost < best:
            best, sizes = candidate_cost, candidate
    cycles = f"cycles an instance: {best:.2f}, without tiles {untiled:.2f}, of {count} sizes tried"
    if not sizes:
        return _none(cycles)
    share = f"a tile takes {ceil(taken_by(sizes))} bytes of {band.caches}"
    tiles = prod(ceil(extent / size) for extent, size in zip(band.extents, sizes, strict=True))
    tile_bytes = [tiles * amount for amount in _bytes_moved(band, taken_by, sizes, order)]
    equation = f"footprint: {_equation_text(parts, band)}"
    reasons = (equation, share, traffic_line(tile_bytes), cycles)
    runs = None if vector is None or chains else band.names[vector]
    return TilePlan(sizes, order, (*reasons, *_waiting(band, chains)), band.names, runs)


def _waiting(band: Band, chains: Chains) -> tuple[str, ...]:
    """Return the line of a plan about iterations that wait."""
    waiting = ", ".join(
        f"{statement.name} along {band.innermost[statement.name]}" for statement, _ in chains
    )
    return (f"each iteration waits for the one before it: {waiting}",) if waiting else ()


def _one_step(band: Band) -> tuple[int, ...]:
    """Return the sizes of one step at a time over everything."""
    return (1, *band.extents[1:])


def _tile_order(band: Band) -> tuple[int, ...]:
    """Return the order of tiles: steps outermost, innermost the plane along which tiles follow
    each other."""
    slide = 1
    return (0, *(at for at in range(1, len(band.names)) if at != slide), slide)


def _candidates(band: Band, vector: int | None, waits: bool) -> Iterator[tuple[int, ...]]:
    """Yield sizes to try; `waits` tells whether short rows are better, as iterations wait."""
    choices: list[tuple[int, ...]] = []
    for at, extent in enumerate(band.extents):
        if at == 0:
            sizes: tuple[int, ...] = STEPS
        elif at == vector:
            sizes = (*(STRIPS if waits else ()), *VECTORS, extent)
        else:
            sizes = SLIDES if at == 1 else (*STRIPS, extent)
        choices.append(tuple(dict.fromkeys(min(size, extent) for size in sizes)))
    return product(*choices)


def _with_coordinates(sizes: Sequence[int], loops: Mapping[str, int]) -> dict[str, int]:
    return {**{coordinate(at): size for at, size in enumerate(sizes)}, **loops}


def _cost(
    band: Band,
    chains: Chains,
    taken_by: Callable[[tuple[int, ...]], float],
    sizes: tuple[int, ...],
    order: Sequence[int],
    vector: int | None,
) -> float:
    """Return the cycles of an instance."""
    instances = prod(sizes) * len(band.statements)
    amounts = _bytes_moved(band, taken_by, sizes, order)
    byte_cycles = _byte_cycles(amounts)
    row = sizes[vector] if vector is not None else 1
    return (
        _instance_cycles(len(band.statements), chains, row)
        + (byte_cycles + TILE_CYCLES) / instances
    )


def _instance_cycles(statements: int, chains: Chains, row: int) -> float:
    """Return the average cycles of an instance in rows of `row`, over the statements.

    They include its share of beginning a row.
    """
    total = (statements - len(chains)) * (INSTANCE_CYCLES + ROW_CYCLES / row)
    for statement, longest in chains:
        length = min(row, longest)
        total += chain_cycles(statement, length) + SERIAL_ROW_CYCLES / length
    return total / statements


def _bytes_moved(
    band: Band,
    taken_by: Callable[[tuple[int, ...]], float],
    sizes: tuple[int, ...],
    order: Sequence[int],
) -> list[float]:
    """Return the bytes into each cache while a tile runs."""
    bytes_taken = taken_by(sizes)
    fresh = bytes_taken - taken_by(_with(sizes, order[-1], 0))
    anew = sizes[0] * taken_by(_with(sizes, 0, 1))
    return [fresh if bytes_taken <= SHARE * cache else max(fresh, anew) for cache in band.caches]


def _with(sizes: tuple[int, ...], at: int, size: int) -> tuple[int, ...]:
    return (*sizes[:at], size, *sizes[at + 1 :])
