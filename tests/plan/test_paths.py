"""Contraction orders of many operands: exact for chains, simple ones where there are too many."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.compiler.cost.effort import Effort
from taco_py.data.kernels import KERNELS
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.operators import MUL
from taco_py.planner.algebra.contraction_trees import EXACT_FACTORS, near_trees
from taco_py.planner.algebra.products import Product
from taco_py.planner.ir.goal import Request, statistics
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan
from tests.problems import operands, problem

NAMES = "ABCDEFGHIJKLMNOPQRSTUVW"
NEXT = tuple(zip(range(6, 11), "GHIJK", strict=True))
Path = tuple[tuple[int, ...], ...]


def order(
    text: str, formats: dict[str, str], sizes: dict[str, int] | None = None
) -> tuple[Path, tuple[str, ...]]:
    """The pairs of the best order of a product, and what is told of the search."""
    known = problem(text, formats)
    product = Product(MUL, tuple(accesses(known.assignment.value)))
    stats, effort = statistics(known.assignment, operands(known, sizes)), Effort()
    best, *_ = near_trees(stats, product, known.assignment.target.indices, effort, inf)
    return best.path, effort.notes


def matrices(count: int) -> list[str]:
    return [f"{NAMES[k]}[m{k},m{k + 1}]" for k in range(count)]


MIXED = "ssddssdssdds"
"""Sparse and dense: the cheapest pair at first is one of two sparse matrices."""
CUT = ("of search nodes ran out before all contraction orders of {} operands were compared",)


@pytest.mark.parametrize(("count", "notes"), [(12, ()), (22, CUT)])
def test_a_chain_of_many_matrices_and_a_vector_goes_from_the_vector(
    count: int, notes: tuple[str, ...]
) -> None:
    kinds = (MIXED * 2)[:count]
    formats = {name: "CSR" for name, kind in zip(NAMES, kinds, strict=False) if kind == "s"}
    at_the_end = " * ".join([*matrices(count), f"x[m{count}]"])
    found, told = order(f"y[m0] = {at_the_end}", formats)
    assert found == tuple((k - 1, k) for k in range(count, 0, -1))
    assert told == tuple(note.format(count + 1) for note in notes)
    at_the_start = " * ".join(["x[m0]", *matrices(count)])
    found, _ = order(f"y[m{count}] = {at_the_start}", formats)
    assert found == ((0, 1), *((0, k) for k in range(count - 1, 0, -1)))


def test_a_chain_that_is_narrow_in_the_middle_is_taken_from_there() -> None:
    ends = [*matrices(5), "u[m5,r]", "v[r,m6]", *(f"{n}[m{k},m{k + 1}]" for k, n in NEXT)]
    found, notes = order(f"Z[m0,m11] = {' * '.join(ends)}", {}, {"r": 1})
    assert len(ends) > EXACT_FACTORS
    assert notes == ()
    assert {5, 6} & set(found[0])
    assert {4, 7} & set(found[0])


def test_too_many_ways_to_join_operands_are_told() -> None:
    star = " * ".join(f"{name}[c,{name.lower()}]" for name in "ABDEFGHIJKLM")
    found, notes = order(f"y[c] = {star}", {})
    assert len(found) == 11
    assert notes == tuple(note.format(12) for note in CUT)


LIMITS = ((inf, 2), (1000.0, 2), (999.0, 1))
"""Elements that an intermediate may store, and the kernels of A·(B·x) with a B·x of 1000."""


@pytest.mark.parametrize(("memory", "count"), LIMITS)
def test_intermediates_keep_to_a_limit_of_memory(memory: float, count: int) -> None:
    known = problem("y[i] = A[i,j] * B[j,k] * x[k]")
    request = Request(known.result, memory=memory)
    made = make_plan(known.assignment, operands(known), request)
    assert len(made.kernels) == count


def test_a_tree_without_small_intermediates_costs_infinitely_much() -> None:
    known = problem(f"y[m0] = {' * '.join([*matrices(8), 'x[m8]'])}")
    product = Product(MUL, tuple(accesses(known.assignment.value)))
    stats = statistics(known.assignment, operands(known))
    trees = [near_trees(stats, product, ("m0",), Effort(), memory)[0] for memory in (1000.0, 999.0)]
    assert [tree.cost < inf for tree in trees] == [True, False]


@pytest.mark.parametrize(("nnz", "count"), [(3000.0, 2), (300_000.0, 1)])
def test_other_trees_are_looked_at_where_copies_may_count(nnz: float, count: int) -> None:
    """From the right, and where it takes little more work from the left too."""
    known = problem("y[i] = A[i,j] * B[j,k] * C[k,l] * x[l]", dict.fromkeys("ABC", "CSR"))
    product = Product(MUL, tuple(accesses(known.assignment.value)))
    sizes, entries = dict.fromkeys("ijkl", 3000), dict.fromkeys("ABC", nnz)
    stats = statistics(known.assignment, operands(known, sizes, entries))
    trees = near_trees(stats, product, ("i",), Effort(), inf)
    assert trees[0].path == ((2, 3), (1, 2), (0, 1))
    assert len(trees) == len({tree.path for tree in trees}) == count


@pytest.mark.parametrize(
    ("sizes", "limit", "counts"),
    [
        ((80,), 80, [2]),
        ((80,), 79, [1]),
        ((20,), 20, [2]),
        ((20,), 19, [1]),
        ((70, 80), 75, [2, 1]),
    ],
)
def test_numpys_limit_reaches_the_plan(
    sizes: tuple[int, ...], limit: int, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts elements, so that no plan is taken for operands of other sizes."""
    rng = np.random.default_rng(0)
    plans: list[Plan] = []

    def recorded(*given: Any) -> Plan:
        plans.append(make_plan(*given))
        return plans[-1]

    monkeypatch.setattr("taco_py.calls.call.prepare.make_plan", recorded)
    monkeypatch.setattr(KERNELS, "note", lambda key: None)  # of an earlier process
    for n in sizes:
        a, b, x = rng.random((n, n)), rng.random((n, n)), rng.random(n)
        for _ in range(2):
            found = tp.einsum("ij,jk,k->i", a, b, x, optimize=("greedy", limit))
            np.testing.assert_allclose(found, a @ b @ x)
    assert [len(plan.kernels) for plan in plans] == counts
    told = tp.explain("ij,jk,k->i", a, b, x, optimize=("greedy", limit))
    assert f"intermediates of at most {limit} elements" in told
