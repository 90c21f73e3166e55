"""Copies in another order of dimensions: which loops run through neighbours, and what the generated
functions mean to the interpreter of loop IR."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import const, mul
from codegen.ir import Array, Block, Function, Shuffle, Storage, Var, VectorStore
from codegen.machine.target import Target
from codegen.names import Names
from codegen.passes.order import run_passes
from codegen.tree import find
from codegen.types import FLOAT32, FLOAT64, ScalarType
from codegen.verify import verify
from polyhedral.products.contraction_code import Data
from polyhedral.products.permutation import (
    STAGE_BYTES,
    Permutation,
    TransposeTile,
    permutation,
    to_functions,
    transpose_tile,
)
from polyhedral.products.register_tile import Machine
from tests.codegen.interpreter import run


def machine(
    element: ScalarType, vector_bytes: int, last: int = 1 << 25, second: int = 1 << 19
) -> Machine:
    size = element.itemsize
    return Machine(vector_bytes // size, size, 16, (1 << 15, second, last))


def test_the_loops_through_neighbours() -> None:
    assert permutation(("k", "j", "i"), ("i", "j", "k")) == Permutation("i", "k", ("j",))
    assert permutation(("j", "i"), ("i", "j")) == Permutation("i", "j", ())
    assert permutation(("j", "i", "k"), ("i", "j", "k")) is None
    assert permutation(("i",), ("i",)) is None
    assert permutation(("j", "i"), ("i", "k")) is None


def test_tiles_are_lines_by_a_vector() -> None:
    assert transpose_tile(machine(FLOAT64, 32)) == TransposeTile(16, 8, 4, 32, 1024)
    assert transpose_tile(machine(FLOAT32, 32)) == TransposeTile(32, 16, 8, 64, 1024)
    assert transpose_tile(machine(FLOAT64, 64)) == TransposeTile(16, 8, 8, 32, 1024)
    assert transpose_tile(machine(FLOAT64, 8)) is None


SIZES = [(16, 2, 8), (35, 3, 9), (3, 1, 40), (16, 1, 3), (0, 2, 4), (70, 2, 19)]


def test_a_stage_has_half_of_the_second_cache_at_most() -> None:
    for second in (1 << 16, 1 << 18, 1 << 19, 1 << 24):
        tile = transpose_tile(machine(FLOAT32, 32, second=second))
        assert tile is not None
        room = tile.staged_columns * tile.staged_rows * FLOAT32.itemsize
        assert room == min(second // 2, STAGE_BYTES)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("element, vector_bytes", [(FLOAT64, 32), (FLOAT32, 32), (FLOAT64, 64)])
@pytest.mark.parametrize("last, second", [(1, 1 << 19), (1, 4096), (1 << 25, 1 << 19)])
def test_every_element_lands(
    sizes: tuple[int, int, int], element: ScalarType, vector_bytes: int, last: int, second: int
) -> None:
    """Past the caches through stages of all rows and of 8, and in tiles."""
    found = permutation(("k", "j", "i"), ("i", "j", "k"))
    about = machine(element, vector_bytes, last, second)
    tile = transpose_tile(about)
    assert found is not None and tile is not None
    c, a = Array("C", element, Storage.OUTPUT), Array("A", element, Storage.INPUT)
    i, j, k = (Var(f"n_{name}") for name in "ijk")
    target = Data(c, {"k": mul(j, i), "j": i, "i": const(1)})
    source = Data(a, {"i": mul(j, k), "j": k, "k": const(1)})
    head = Function("permute", (c, a), (i, j, k), Block(), threaded=True)
    names = Names(("C", "A", "n_i", "n_j", "n_k", "threads"))
    module = to_functions(found, tile, about, target, source, {"i": i, "j": j, "k": k}, head, names)
    module = run_passes(module, Target())
    verify(module)
    array = np.arange(float(np.prod(sizes))).reshape(sizes).astype(element.name)
    values = dict(zip(("n_i", "n_j", "n_k"), sizes, strict=True))
    *earlier, main = module.functions
    given = {"C": np.full(array.size, np.nan, element.name), "A": array.ravel()}
    state = run(main, given, values, tuple(earlier))
    np.testing.assert_array_equal(state.arrays["C"], array.transpose(2, 1, 0).ravel())
    assert any(True for _ in find(module, Shuffle))
    assert any(store.streaming for store in find(module, VectorStore))
