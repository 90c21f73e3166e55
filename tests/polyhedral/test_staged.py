"""Sums and products stored in another order than their operands: which loops go where, and what the
generated functions mean to the interpreter of loop IR."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import const
from codegen.ir import Array, Block, Function, Shuffle, Storage, Var
from codegen.machine.target import Target
from codegen.names import Names
from codegen.passes.order import run_passes
from codegen.tree import find
from codegen.types import FLOAT64
from codegen.verify import verify
from polyhedral.products.contraction_code import Data
from polyhedral.products.permutation import TransposeTile
from polyhedral.products.register_tile import Machine
from polyhedral.products.stage import to_functions
from polyhedral.products.staging import Staged, staged
from tests.codegen.interpreter import run


def plan(text: str) -> Staged | None:
    """The plan for subscripts as `einsum` has them, by the largest factor."""
    operands, target = text.split("->")
    factors = [tuple(each) for each in operands.split(",")]
    largest = max(range(len(factors)), key=lambda place: len(factors[place]))
    return staged(tuple(target), factors, largest)


def test_which_loops_go_where() -> None:
    none = frozenset[int]()
    assert plan("ijk->ki") == Staged("i", "k", "", (), ("i", "j"), none, True, False)
    assert plan("jik->ki") == Staged("i", "k", "", (), ("j", "i"), none, True, True)
    assert plan("d,dcb->bcd") == Staged("d", "b", "c", (), ("d",), none, True, False)
    assert plan("bdca,db->adc") == Staged("c", "a", "", ("d",), ("b", "c"), none, True, True)
    assert plan("hik,ki->khi") == Staged("i", "k", "", ("h",), ("i",), frozenset((1,)), True, True)


@pytest.mark.parametrize(
    "text", ["ijk->ik", "ij->i", "ij,k->ijk", "ijk,kji->ki", "ij,kj->ik", "ijk,ikj->ki"]
)
def test_no_stage_is_wanted(text: str) -> None:
    assert plan(text) is None


CASES = (
    ("ijk->ki", (9, 9, 3), 0),
    ("ijk->ki", (5, 0, 3), 1),
    ("jik,j->ki", (6, 5, 3), 0),
    ("d,dcb->bcd", (5, 3, 3), 0),
    ("bdca,db->adc", (5, 2, 6, 3), 1),
    ("hik,ki->khi", (2, 6, 3), 0),
    ("jihk,h->khi", (2, 5, 3, 2), 1),
    ("ik,i->ki", (1, 300), 0),
    ("ik,i->ki", (0, 2), 0),
)


@pytest.mark.parametrize("text, sizes, gap", CASES)
def test_every_element_is_computed(text: str, sizes: tuple[int, ...], gap: int) -> None:
    """On operands whose rows are `gap` elements apart."""
    found = plan(text)
    machine, tile, element = Machine(2, 8, 16, (1 << 15,)), TransposeTile(4, 2, 2, 8, 2), FLOAT64
    assert found is not None
    (*subscripts, target) = text.replace("->", ",").split(",")
    largest = max(subscripts, key=len)
    size = dict(zip(largest, sizes, strict=True))
    rng = np.random.default_rng(1)
    arrays, data = {}, []
    for name, loops in zip(("C", "A", "B"), (target, *subscripts), strict=False):
        shape = tuple(size[loop] for loop in loops)
        array = np.full((*shape[:-1], shape[-1] + (gap if name != "C" else 0)), np.nan)
        array[..., : shape[-1]] = rng.integers(-4, 5, shape)
        arrays[name] = array.astype(element.name)
        steps = (const(step // element.itemsize) for step in arrays[name].strides)
        storage = Storage.OUTPUT if name == "C" else Storage.INPUT
        data.append(Data(Array(name, element, storage), dict(zip(loops, steps, strict=True))))
    variables = {loop: Var(f"n_{loop}") for loop in size}
    every = tuple(each.array for each in data)
    head = Function("sums", every, tuple(variables.values()), Block(), threaded=True)
    names = Names((*arrays, *(var.name for var in variables.values()), "threads"))
    module = to_functions(found, tile, machine, data[0], data[1:], variables, head, names)
    module = run_passes(module, Target())
    verify(module)
    *earlier, main = module.functions
    given = {name: array.ravel() for name, array in arrays.items()}
    given["C"] = np.full(arrays["C"].size, np.nan, element.name)
    state = run(main, given, {f"n_{loop}": n for loop, n in size.items()}, tuple(earlier))
    values = [arrays[name][..., : size[s[-1]]] for name, s in zip("AB", subscripts, strict=False)]
    expected = np.einsum(text, *values)
    np.testing.assert_array_equal(state.arrays["C"].reshape(expected.shape), expected)
    assert any(True for _ in find(module, Shuffle))
