"""What products of two dense arrays are expected to take: which way is told to be cheaper."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from taco_py.compiler.ways.dense_seconds import (
    DenseProduct,
    best,
    best_result,
    seconds_of_loops,
    seconds_of_tiles,
    turned,
)

FEW_ROWS = DenseProduct(
    ("c", "f", "a"), ("a", "e", "c"), ("e", "f", "a"), {"a": 128, "c": 3, "e": 64, "f": 24}, 4
)
MATRICES = DenseProduct(("i", "j"), ("i", "k"), ("k", "j"), dict.fromkeys("ijk", 300), 8)
BATCH = DenseProduct(
    ("i", "k", "b"), ("i", "j", "b"), ("j", "k", "b"), {"i": 6, "j": 6, "k": 6, "b": 4000}, 8
)


def test_what_an_index_is() -> None:
    assert FEW_ROWS.batch == {"a"}
    assert FEW_ROWS.points == 128 * 3 * 64 * 24
    assert (FEW_ROWS.columns, FEW_ROWS.rows_are_whole) == (("f",), False)
    assert (MATRICES.columns, MATRICES.rows_are_whole) == (("j",), True)
    assert [i for i in BATCH.indices if BATCH.is_contiguous(i)] == ["b"]
    assert not any(map(FEW_ROWS.is_contiguous, FEW_ROWS.indices))


def test_products_of_matrices_take_tiles() -> None:
    assert seconds_of_tiles(MATRICES) < seconds_of_loops(MATRICES) / 4
    assert best(MATRICES).copied == (False, False)
    assert best_result(MATRICES) is MATRICES


def test_a_long_batch_that_all_store_last_takes_loops_along_it() -> None:
    assert seconds_of_loops(BATCH) < seconds_of_tiles(BATCH) / 3
    large = replace(BATCH, sizes=dict.fromkeys("ijkb", 200))
    assert seconds_of_tiles(large) < seconds_of_loops(large) / 2


def test_a_small_operand_is_copied_where_loops_would_stride() -> None:
    found = best(FEW_ROWS)
    assert (found.copied, found.contiguous) == ((True, False), "a")
    assert found.product.left == ("c", "e", "a")
    assert found.seconds < seconds_of_loops(FEW_ROWS) / 2


@pytest.mark.parametrize("index", ["e", "f"])
def test_what_the_result_stores_elsewhere_is_not_turned_to(index: str) -> None:
    """Nor what all operands store last already."""
    found = turned(FEW_ROWS, index)
    assert found is None or index not in FEW_ROWS.result


def test_indices_that_lie_behind_each_other_are_one_row() -> None:
    """Loops along rows of 4 elements take longer than those along rows of 4 by 64."""
    one = DenseProduct(("a", "b"), ("s", "a", "b"), ("s",), {"s": 100, "a": 64, "b": 4}, 8)
    other = replace(one, result=("b", "a"), left=("b", "s", "a"))
    apart = replace(one, result=("a", "b"), left=("a", "s", "b"))
    assert seconds_of_loops(one) < seconds_of_loops(apart) / 2
    assert seconds_of_loops(one) < 2 * seconds_of_loops(other)


def test_the_result_is_stored_as_takes_least() -> None:
    """Never in an order that is expected to take longer than the one given."""
    for sizes in ({"a": 128, "c": 3, "e": 64, "f": 24}, {"a": 8, "c": 30, "e": 64, "f": 200}):
        for kept in permutations("acf"):
            given = replace(FEW_ROWS, result=kept, sizes=sizes)
            found = best_result(given)
            assert sorted(found.result) == ["a", "c", "f"]
            assert best(found).seconds <= best(given).seconds
    across = replace(FEW_ROWS, result=("a", "c", "f"))
    assert best_result(across).result[-1] == "a"
