"""Contractions: which statements are, their classes, tiles and blocks; and what their loop IR
computes in tiny blocks, where every edge is met."""

from __future__ import annotations

import textwrap
from functools import cache
from itertools import product as combinations
from typing import Any

import numpy as np
import pytest

from codegen.emit.c import emit_c
from codegen.ir import Array, Block, Expr, Function, Module, Storage, Var
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.names import Names
from codegen.passes.order import run_passes
from codegen.types import FLOAT64
from codegen.verify import verify
from polyhedral.model import Statement, access, loops
from polyhedral.products import contraction_plan
from polyhedral.products.contraction import Contraction, contraction
from polyhedral.products.contraction_code import Data, Operands, to_functions
from polyhedral.products.contraction_plan import plan_contraction
from polyhedral.products.register_tile import Blocks, Machine, Tile, cache_blocks, register_tile
from tests.codegen.interpreter import run

ZEN3 = Machine(4, 8, 16, (32768, 524288, 33554432))
CASCADE_LAKE = Machine(8, 8, 32, (32768, 1048576, 37486592))
TINY_TILE, TINY_BLOCKS = Tile(2, 1, 2), Blocks(4, 6, 3, 4, 8)


def einsum_statement(text: str, extra: str = "") -> Statement:
    """The statement of `ik,kj->ij`: S: C[i,j] +=; A[i,k]; B[k,j]."""
    operands, result = text.split("->")
    names = dict(zip("AB", operands.split(","), strict=True))
    parts = [f"C[{','.join(result)}] +="] + [f"{n}[{','.join(t)}]" for n, t in names.items()]
    indices = dict.fromkeys(text.replace(",", "").replace("->", ""))
    domain = ", ".join(f"{i} in 0..n_{i}" for i in indices)
    accesses = tuple(map(access, [*parts, *filter(None, [extra])]))
    return Statement("S", loops(domain), accesses, (0,) * (len(indices) + 1))


def found(text: str) -> Contraction:
    result = contraction(einsum_statement(text))
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("text", "classes", "left"),
    [
        ("ik,kj->ij", "rows i; columns j; depth k", "A"),
        ("ik,kj->ji", "rows j; columns i; depth k", "B"),
        ("bik,bkj->bij", "batch b; rows i; columns j; depth k", "A"),
        ("aebf,dfce->abcd", "rows a, b; columns c, d; depth e, f", "A"),
        ("abcd,cdef->abef", "rows a, b; columns e, f; depth c, d", "A"),
        ("ik,k->i", "columns i; depth k", "B"),
        ("i,j->ij", "rows i; columns j", "A"),
        ("ij,ij->", "depth i, j", "A"),
    ],
)
def test_classes(text: str, classes: str, left: str) -> None:
    assert found(text).classes == classes
    assert found(text).left.array == left


def other_statement(domain: str, *accesses: str) -> Statement:
    return Statement("S", loops(domain), tuple(map(access, accesses)), (0, 0, 0))


@pytest.mark.parametrize(
    "statement",
    [
        einsum_statement("ik,kj->i"),  # j is summed in B alone
        einsum_statement("ik,kj->ij", "D[i]"),
        other_statement("i in 0..n, j in 0..i", "C[i] +=", "A[i,j]", "B[j]"),
        other_statement("i in 0..n, j in 0..m", "C[i] +=", "A[i+j]", "B[j]"),
        other_statement("i in 0..n, j in 0..m", "C[i] max=", "A[i,j]", "B[j]"),
    ],
    ids=["alone", "three", "triangle", "window", "max"],
)
def test_no_contractions(statement: Statement) -> None:
    assert contraction(statement) is None


@pytest.mark.parametrize(
    ("machine", "tile", "blocks"),
    [
        (ZEN3, Tile(6, 2, 4), Blocks(84, 4096, 256, 128, 4096)),
        (CASCADE_LAKE, Tile(6, 4, 8), Blocks(168, 4096, 256, 256, 4096)),
        (Machine(2, 8, 16, (32768, 524288)), Tile(6, 2, 2), Blocks(42, 512, 512, 64, 4096)),
    ],
)
def test_tiles_and_blocks(machine: Machine, tile: Tile, blocks: Blocks) -> None:
    assert register_tile(machine) == tile
    assert cache_blocks(tile, machine) == blocks


@pytest.mark.parametrize(
    ("width", "tile"), [(4, Tile(8, 1, 4)), (8, Tile(6, 2, 4)), (16, Tile(6, 2, 4))]
)
def test_tiles_that_small_matrices_fill(width: int, tile: Tile) -> None:
    assert register_tile(ZEN3, width) == tile


def test_a_plan_says_why() -> None:
    plan = plan_contraction(found("ik,kj->ij"), ZEN3, dict.fromkeys("ijk", 1000))
    text = str(plan)
    assert text.startswith("tiles of 6 rows by 2 vectors of 4, blocks of 84 rows")
    assert "registers: 12 accumulators, 2 of right, 2 to spread left: 16 of 16" in text
    assert textwrap.indent(text, "    ") in str(contraction_plan.__doc__)


@pytest.mark.parametrize(
    ("caches", "words"),
    [
        ((65536, 1 << 20), "cache 1: 256 * 32 * 8 = 65536 of 65536 bytes hold a panel of right"),
        ((49152, 1 << 20), "= 65536 bytes, more than its 49152: cache 2 holds a panel of right"),
        ((49152,), "= 65536 bytes, more than its 49152: no cache holds a panel of right"),
    ],
)
def test_a_plan_names_the_cache_that_has_room(caches: tuple[int, ...], words: str) -> None:
    machine = Machine(8, 8, 32, caches)
    assert words in str(plan_contraction(found("ik,kj->ij"), machine))


def test_blocks_are_told_as_large_as_they_become() -> None:
    def last(extents: dict[str, int] | None) -> str:
        reasons = plan_contraction(found("ik,kj->ij"), ZEN3, extents).reasons
        return next(line for line in reasons if line.startswith("cache 3"))

    assert "256 * 4096 * 8 = 8388608 of" in last(None)
    assert last(None).endswith("a block of right, at most")
    small = last({"i": 1000, "j": 200, "k": 100})
    assert "100 * 200 * 8 = 160000 of" in small
    assert small.endswith("a block of right")


# ---------------------------------------------------------------- what it computes


def module(text: str, tile: Tile, blocks: Blocks) -> Module:
    """The loop IR for operands stored in the order of their letters, every stride a parameter."""
    of = found(text)
    names = Names()
    indices = of.statement.variables
    sizes: dict[str, Expr] = {i: Var(names.fresh(f"n_{i}")) for i in indices}
    operands, result = text.split("->")
    terms = {"C": result} | dict(zip("AB", operands.split(","), strict=True))
    data = {}
    for tensor, letters in terms.items():
        storage = Storage.OUTPUT if tensor == "C" else Storage.INPUT
        array = Array(names.fresh(f"{tensor}_vals"), FLOAT64, storage)
        data[tensor] = Data(array, {i: Var(names.fresh(f"{tensor}_{i}")) for i in letters})
    scalars = [v for v in sizes.values() if isinstance(v, Var)]
    scalars += [s for d in data.values() for s in d.strides.values() if isinstance(s, Var)]
    head = Function("product_of", tuple(d.array for d in data.values()), tuple(scalars), Block())
    both = Operands(data["C"], data[of.left.array], data[of.right.array], sizes)
    return to_functions(of, tile, blocks, both, head, names)


def arguments(text: str, sizes: dict[str, int], gaps: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Arrays whose last mode has `gaps` elements to the next one, and all sizes and strides."""
    operands, result = text.split("->")
    terms = {"C": result} | dict(zip("AB", operands.split(","), strict=True))
    rng = np.random.default_rng(0)
    arrays, scalars = {}, {f"n_{i}": n for i, n in sizes.items()}
    for tensor, letters in terms.items():
        stride = gaps
        for i in reversed(letters):
            scalars[f"{tensor}_{i}"] = stride
            stride *= sizes[i]
        arrays[f"{tensor}_vals"] = rng.integers(-5, 5, max(1, stride)).astype(float)
    return arrays, scalars


def shaped(
    flat: Any, letters: str, sizes: dict[str, int], scalars: dict[str, int], name: str
) -> Any:
    shape = [sizes[i] for i in letters]
    steps = [8 * scalars[f"{name}_{i}"] for i in letters]
    return np.lib.stride_tricks.as_strided(flat, shape, steps)


TEXTS = (
    "ik,kj->ij",
    "ki,jk->ij",
    "bik,bkj->bij",
    "bik,bkj->bji",
    "aebf,dfce->abcd",
    "ace,ecb->ba",
    "ik,jk->ij",
)


@cache
def with_tiny_blocks(text: str) -> Module:
    made = module(text, TINY_TILE, TINY_BLOCKS)
    verify(made)
    passed = run_passes(made, Target(machine=Processor(vector_bytes=16), openmp=True))
    verify(passed)
    return passed


@pytest.mark.parametrize(("text", "gaps"), list(combinations(TEXTS, (1, 2))))
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (2, 4, 3), (5, 3, 7), (3, 9, 4), (0, 2, 3), (4, 5, 0)]
)
def test_tiny_blocks(text: str, gaps: int, sizes: tuple[int, ...]) -> None:
    passed = with_tiny_blocks(text)
    indices = found(text).statement.variables
    extents = {i: sizes[k % 3] for k, i in enumerate(indices)}
    arrays, scalars = arguments(text, extents, gaps)
    operands, result = text.split("->")
    a, b = (
        shaped(arrays[f"{n}_vals"], t, extents, scalars, n)
        for n, t in zip("AB", operands.split(","), strict=True)
    )
    *earlier, main = passed.functions
    state = run(main, arrays, scalars, tuple(earlier))
    c = shaped(state.arrays["C_vals"], result, extents, scalars, "C")
    np.testing.assert_array_equal(c, np.einsum(text, a, b))


def test_functions_are_internal_but_the_last() -> None:
    made = module("ik,kj->ij", Tile(6, 2, 4), Blocks(126, 4096, 256, 128, 4096))
    assert [f.name for f in made.exported] == ["product_of"]
    text = emit_c(made, Target(machine=Processor(vector_bytes=32), openmp=True))
    assert text.count("static TACO_INTERNAL") == len(made.functions) - 1
