"""Footprints against counting, and tile sizes against the worked examples of the paper."""

from __future__ import annotations

from itertools import product
from statistics import mean
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polyhedral.model import Access, access
from polyhedral.nests.footprint import Footprint, footprints, total_bytes
from polyhedral.nests.tile_size import Cache, reuse_counts, solve
from polyhedral.nests.traffic import bytes_into
from tests.polyhedral.random_nests import subscripts

MIB = 1 << 20
PAPER = Cache(MIB, line=1)


def listed(text: str) -> list[Access]:
    return [access(part) for part in text.split(";")]


GEMM = listed("C[i,j] +=; A[i,k]; B[k,j]")
MTTKRP = listed("M[i,r] +=; T[i,k,l]; C[k,r]; D[l,r]")
JACOBI = listed("B[i,j] =; A[i,j]; A[i-1,j]; A[i+1,j]; A[i,j-1]; A[i,j+1]")


def touched(group: list[Access], sizes: dict[str, int]) -> set[tuple[int, ...]]:
    """The elements that a tile touches, by running it."""
    points = [
        dict(zip(sizes, point, strict=True)) for point in product(*map(range, sizes.values()))
    ]
    return {
        tuple(subscript.evaluate(point) for subscript in each.subscripts)
        for each in group
        for point in points
    }


@given(st.data())
def test_a_footprint_is_never_too_small(data: Any) -> None:
    names = ("i", "j", "k")
    places = data.draw(subscripts(names, 2))
    moved = tuple(place + data.draw(st.integers(0, 2)) for place in places)
    group = [Access("A", places), Access("A", moved)]
    sizes = {name: data.draw(st.integers(1, 4)) for name in names}
    (part,) = footprints(group, names)
    assert part.elements(sizes) >= len(touched(group, sizes))


@given(
    st.sampled_from(["A[i,j]", "A[i+1,j-2]", "A[j,i]", "A[i,k]", "A[0,i]", "A[i]", "A[-1*k,j]"]),
    st.fixed_dictionaries({name: st.integers(1, 5) for name in "ijk"}),
)
def test_it_is_exact_where_each_loop_has_its_own_subscript(
    text: str, sizes: dict[str, int]
) -> None:
    group = listed(text)
    (part,) = footprints(group, "ijk")
    assert part.elements(sizes) == len(touched(group, sizes))


@given(st.integers(1, 20), st.integers(1, 5), st.sampled_from([1, 2, 4, 8]))
def test_lines_are_the_average_over_alignments(row: int, rows: int, per_line: int) -> None:
    (part,) = footprints(listed("A[i,j]"), "ij")
    counted = [
        rows * len({(start + column) // per_line for column in range(row)})
        for start in range(per_line)
    ]
    lines = part.lines({"i": rows, "j": row}, 8 * per_line)
    assert lines == pytest.approx(mean(counted))


@given(st.data())
def test_a_larger_tile_has_no_smaller_footprint(data: Any) -> None:
    names = ("i", "j", "k")
    parts = footprints([Access("A", data.draw(subscripts(names, 2)))], names)
    small = {name: data.draw(st.integers(1, 9)) for name in names}
    large = {name: size + data.draw(st.integers(0, 5)) for name, size in small.items()}
    assume(small != large)
    for line in (1, 64):
        assert total_bytes(parts, small, line) <= total_bytes(parts, large, line)


def test_accesses_that_differ_in_constants_are_one_box() -> None:
    parts = footprints(JACOBI, "ij")
    assert [str(part) for part in parts] == ["B: T_i * T_j", "A: (T_i + 2) * (T_j + 2)"]
    assert parts[1].elements({"i": 8, "j": 16}) == 10 * 18


def test_an_array_without_subscripts_is_one_element() -> None:
    (part,) = footprints([Access("s", ())], "ij")
    assert (part.elements({"i": 9}), part.lines({"i": 9}, 64), str(part)) == (1, 1, "s: 1")


# ---------------------------------------------------------------- tile sizes


def solved(accesses: list[Access], loops: str, vector: str, cache: Cache, **extents: int) -> Any:
    return solve(footprints(accesses, loops), reuse_counts(accesses, loops), vector, cache, extents)


def test_a_matrix_product_as_in_the_paper() -> None:
    """2 tau^2 + 1536 tau = 131072 elements."""
    found = solved(GEMM, "ijk", "j", PAPER)
    assert found.tau == 77
    assert dict(found.sizes) == {"i": 80, "j": 512, "k": 152}


def test_mttkrp_solved_exactly() -> None:
    """18 tau^3 + 4096 tau = 131072 elements; the leading term alone would give 19."""
    assert solved(MTTKRP, "iklr", "r", PAPER).tau == 15


def test_extents_bound_the_sizes_before_the_equation_is_solved() -> None:
    found = solved(MTTKRP, "iklr", "r", PAPER, i=128, k=128, l=128, r=256)
    assert dict(found.sizes) == {"i": 32, "k": 48, "l": 48, "r": 256}
    assert dict(solved(GEMM, "ijk", "j", PAPER, i=5, j=7, k=900).sizes)["i"] == 5


@pytest.mark.parametrize(
    ("accesses", "loops", "vector"), [(GEMM, "ijk", "j"), (MTTKRP, "iklr", "r")]
)
@pytest.mark.parametrize("size", [1 << 15, 1 << 18, 1 << 20, 1 << 25])
def test_tau_is_the_largest_that_fits_and_the_tile_fits(
    accesses: list[Access], loops: str, vector: str, size: int
) -> None:
    cache, parts = Cache(size), footprints(accesses, loops)
    reuse = reuse_counts(accesses, loops)
    found = solve(parts, reuse, vector, cache)
    assert found.bytes == total_bytes(parts, dict(found.sizes), cache.line)
    assert found.bytes <= cache.size or set(dict(found.sizes).values()) == {8}

    def taken(tau: int) -> float:
        return total_bytes(parts, {**{n: c * tau for n, c in reuse.items()}, vector: 512}, 64)

    assert taken(found.tau + 1) > size
    assert taken(found.tau) <= size or found.tau == 1


def test_without_reuse_sizes_are_fixed() -> None:
    assert dict(solved(JACOBI, "ij", "j", PAPER).sizes) == {"i": 32, "j": 512}


def test_element_sizes() -> None:
    (part,) = footprints(listed("A[i]"), "i", {"A": 4})
    assert part == Footprint("A", part.extents, 4)
    assert part.lines({"i": 17}, 64) == 2


@pytest.mark.parametrize(
    ("cache", "elements"),
    [
        (10**6, 3 * 64),  # everything once
        (48 * 8, 4 * 16 + 8 * 16 + 8 * 16),  # C once a tile of i, j; A and B once a tile of all
        (9 * 8, 8 * 4 * 4 + 8 * 4 * 4 + 8 * 16 * 4),  # rows of B anew for each i, of C once for k
        (1, 512 + 8 * 16 + 512),  # nothing fits; A stays in a register along j
    ],
)
def test_what_a_cache_holds_is_loaded_once(cache: int, elements: int) -> None:
    tiles = [("i", 2), ("j", 2), ("k", 2)]
    points = [("i", 4), ("k", 4), ("j", 4)]
    parts = footprints(GEMM, "ijk")
    assert bytes_into(parts, tiles + points, cache, line=8) == 8 * elements


def test_a_sliding_window_is_loaded_once_where_a_row_of_it_stays() -> None:
    """3 by 3 weights over an image of 100 by 100 numbers: 102 by 102 are read."""
    parts = footprints(listed("O[i,j] +=; K[a,b]; I[i+a,j+b]"), "iabj")
    loops = [("i", 100), ("a", 3), ("b", 3), ("j", 100)]
    weights = 9
    rows = 8 * (102 * 102 + 100 * 100 + weights)
    assert bytes_into(parts, loops, 8 * 600, line=8) == rows
    assert bytes_into(parts, loops, 8 * 100_000, line=8) == rows
    one_row = bytes_into(parts, loops, 8 * 250, line=8)  # of the image, for each row of weights
    assert one_row == 8 * (3 * 100 * 102 + 100 * 100 + 3 * 100 * 3)
