"""Tile sizes from the reuse of each loop and the size of a cache (Narasimhan et al. 2021).

Let reuse[d] be the number of accesses that do not change along loop d (a read and a write of one
element are two). Sizes follow the reuse, T_d = reuse[d] * tau, but for the vector loop, which gets
a long fixed size. tau is the largest at which a tile still fits:

    footprint(T(tau)) <= cache

The footprint grows with tau, so bisection finds tau exactly, where the paper drops all terms but
the leading one. Sizes are rounded to a multiple of the unroll factor, and taken back where that
made the tile too large.
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
"""Tile sizes are multiples of this, so that unroll-and-jam leaves no rest inside a tile."""


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
    """For each loop, how many accesses do not change along it.

    >>> from polyhedral.model import access
    >>> gemm = [access(text) for text in ("C[i,j] +=", "A[i,k]", "B[k,j]")]
    >>> reuse_counts(gemm, "ijk")
    {'i': 1, 'j': 1, 'k': 2}
    """
    listed = [(access, 2 if access.mode is Mode.UPDATE else 1) for access in accesses]
    return {
        loop: sum(count for access, count in listed if not changes(access, loop)) for loop in loops
    }


def changes(access: Access, loop: str) -> bool:
    """Tell whether `access` moves to another element along `loop`."""
    return any(subscript.coefficient(loop) for subscript in access.subscripts)


def advances_by_one(access: Access, loop: str) -> bool:
    """Tell whether `access` moves to the neighbouring element along `loop`, as arrays lie in
    memory."""
    factors = [subscript.coefficient(loop) for subscript in access.subscripts]
    return factors[-1:] == [1] and not any(factors[:-1])


@dataclass(frozen=True, slots=True)
class Solution:
    """Sizes of a tile, the `tau` they come from, and the bytes of cache that they take."""

    sizes: tuple[tuple[str, int], ...]
    tau: int
    taken: float


def solve(
    parts: Sequence[Footprint],
    reuse: Mapping[str, int],
    vector: str,
    cache: Cache,
    extents: Mapping[str, int] | None = None,
) -> Solution:
    """Return the tile sizes for `cache`, in the order of `reuse`.

    `extents` are the iterations of the loops that are known; no size exceeds them. A loop without
    reuse other than `vector` gets UNROLL, or WITHOUT_REUSE where none has any.
    """
    known = extents or {}
    tied = any(count for name, count in reuse.items() if name != vector)
    least = UNROLL if tied else WITHOUT_REUSE

    def at(tau: int) -> dict[str, int]:
        wanted = {name: count * tau if count else least for name, count in reuse.items()}
        return _clamped({**wanted, vector: VECTOR_SIZE}, known)

    def fits(sizes: Mapping[str, int]) -> bool:
        return total_bytes(parts, sizes, cache.line) <= cache.size

    tau = _largest(lambda value: fits(at(value)), cache.size) if tied else 0
    sizes = _clamped({**_rounded(at(tau)), vector: at(tau)[vector]}, known)
    while not fits(sizes) and (smaller := _one_less(sizes, vector)) is not None:
        sizes = smaller
    return Solution(tuple(sizes.items()), tau, total_bytes(parts, sizes, cache.line))


def _clamped(sizes: Mapping[str, int], extents: Mapping[str, int]) -> dict[str, int]:
    return {name: max(1, min(size, extents.get(name, size))) for name, size in sizes.items()}


def _largest(fits: Callable[[int], bool], limit: int) -> int:
    """Return the largest number from 1 to `limit` that `fits`, which all smaller ones do too; 1 if
    none.

    The range is halved until it has one number.
    """
    low, high = 1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _rounded(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return each size to the nearest multiple of UNROLL above 0."""
    return {
        name: max(UNROLL, (size + UNROLL // 2) // UNROLL * UNROLL) for name, size in sizes.items()
    }


def _one_less(sizes: Mapping[str, int], vector: str) -> dict[str, int] | None:
    """Return the largest size but that of the vector loop taken back by UNROLL; then the vector
    loop's."""
    able = [name for name, size in sizes.items() if size > UNROLL]
    if not able:
        return None
    name = max(able, key=lambda each: (each != vector, sizes[each]))
    size = sizes[name] // 2 if name == vector else (sizes[name] - 1) // UNROLL * UNROLL
    return {**sizes, name: max(size, UNROLL)}
