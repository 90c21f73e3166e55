"""Tile sizes from the reuse of each loop and the size of a cache (Narasimhan et al. 2021).

Let reuse[d] be the number of accesses that do not change along loop d (a read and a write of one
element are two). Sizes follow the reuse, T_d = reuse[d] * tau, but for the vector loop, which gets
a long fixed size. tau is the largest at which a tile still fits:

    footprint(T(tau)) <= cache

The footprint grows with tau, so bisection finds tau exactly, where the paper drops all terms but
the leading one. Sizes are rounded to a multiple of the unroll factor, and reduced where the tile is
then too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from codegen.records import dataclass
from polyhedral.errors import ScheduleError
from polyhedral.model import Access, Mode
from polyhedral.nests.footprint import Footprint, total_bytes

VECTOR_SIZE = 512
"""Iterations of the vector loop in a tile."""

UNROLL = 8
"""Tile sizes are multiples of this, so that unroll-and-jam leaves no remainder inside a tile."""


WITHOUT_REUSE = 32
"""The tile size of the loops beside the vector loop when none of them has reuse."""


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache of `size` bytes in lines of `line` bytes; 1 counts elements, as the paper does.

    Raises ScheduleError where either is less than 1.
    """

    size: int
    line: int = 64

    def __post_init__(self) -> None:
        if self.size < 1 or self.line < 1:
            raise ScheduleError(
                f"Expected a cache of 1 byte or more in lines of 1 or more, found {self.size} in "
                f"lines of {self.line}."
            )


def reuse_counts(accesses: Iterable[Access], loops: Sequence[str]) -> dict[str, int]:
    """Return, for each loop, the number of accesses that do not change along it.

    >>> from polyhedral.model import access
    >>> gemm = [access(text) for text in ("C[i,j] +=", "A[i,k]", "B[k,j]")]
    >>> reuse_counts(gemm, "ijk")
    {'i': 1, 'j': 1, 'k': 2}
    """
    weighted = [(access, 2 if access.mode is Mode.UPDATE else 1) for access in accesses]
    return {
        loop: sum(count for access, count in weighted if not changes(access, loop))
        for loop in loops
    }


def changes(access: Access, loop: str) -> bool:
    """Tell whether `access` moves to another element along `loop`."""
    return any(subscript.coefficient(loop) for subscript in access.subscripts)


def advances_by_one(access: Access, loop: str) -> bool:
    """Tell whether `access` moves to the adjacent element in memory along `loop`."""
    factors = [subscript.coefficient(loop) for subscript in access.subscripts]
    return factors[-1:] == [1] and not any(factors[:-1])


@dataclass(frozen=True, slots=True)
class Solution:
    """Sizes of a tile, the `tau` that they follow from, and their bytes of cache."""

    sizes: tuple[tuple[str, int], ...]
    tau: int
    bytes: float


def solve(
    parts: Sequence[Footprint],
    reuse: Mapping[str, int],
    vector: str,
    cache: Cache,
    extents: Mapping[str, int] | None = None,
) -> Solution:
    """Return the tile sizes for `cache`, in the order of `reuse`.

    `extents` are the iterations of the loops that are known; no size exceeds them. A loop without
    reuse other than `vector` gets UNROLL, or WITHOUT_REUSE where no loop has reuse.
    """
    limits = extents or {}
    tied = any(count for name, count in reuse.items() if name != vector)
    least = UNROLL if tied else WITHOUT_REUSE

    def at(tau: int) -> dict[str, int]:
        sizes = {name: count * tau if count else least for name, count in reuse.items()}
        return _clamped({**sizes, vector: VECTOR_SIZE}, limits)

    def fits(sizes: Mapping[str, int]) -> bool:
        return total_bytes(parts, sizes, cache.line) <= cache.size

    tau = _largest(lambda value: fits(at(value)), cache.size) if tied else 0
    sizes = _clamped({**_rounded(at(tau)), vector: at(tau)[vector]}, limits)
    while not fits(sizes) and (smaller := _one_less(sizes, vector)) is not None:
        sizes = smaller
    return Solution(tuple(sizes.items()), tau, total_bytes(parts, sizes, cache.line))


def _clamped(sizes: Mapping[str, int], extents: Mapping[str, int]) -> dict[str, int]:
    return {name: max(1, min(size, extents.get(name, size))) for name, size in sizes.items()}


def _largest(fits: Callable[[int], bool], limit: int) -> int:
    """Return the largest number from 1 to `limit` that `fits`, 1 if there is none.

    All smaller numbers than one that fits must fit, for this is a bisection.
    """
    low, high = 1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _rounded(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return each size rounded to the nearest multiple of UNROLL above 0."""
    return {
        name: max(UNROLL, (size + UNROLL // 2) // UNROLL * UNROLL) for name, size in sizes.items()
    }


def _one_less(sizes: Mapping[str, int], vector: str) -> dict[str, int] | None:
    """Return the sizes with the largest one reduced by UNROLL.

    The vector loop's size comes last.
    """
    able = [name for name, size in sizes.items() if size > UNROLL]
    if not able:
        return None
    name = max(able, key=lambda loop: (loop != vector, sizes[loop]))
    size = sizes[name] // 2 if name == vector else (sizes[name] - 1) // UNROLL * UNROLL
    return {**sizes, name: max(size, UNROLL)}
