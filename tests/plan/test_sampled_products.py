"""Products that a sparse factor samples are contracted in one step before what follows them."""

from __future__ import annotations

from math import inf

import pytest

from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.operators import MUL
from taco_py.language.notation.printer import to_text
from taco_py.planner.algebra.contraction_trees import near_trees, simple_trees
from taco_py.planner.algebra.products import Product
from taco_py.planner.ir.goal import Request, statistics
from taco_py.planner.make import Options, make_plan
from tests.problems import operands, plan, problem

ATTENTION = "O[i,f] = S[i,j] * U[i,k] * V[j,k] * X[j,f]"
SAMPLED = "sum(k, A[i,j] * B[i,k] * C[j,k])"
SIZES = (
    # (size, entries a row, k, f) of an attention layer
    (3000, 9, 8, 128),
    (5000, 50, 64, 64),
    (20000, 10, 16, 128),
    (20000, 10, 32, 32),
)


@pytest.mark.parametrize("text", [ATTENTION, "O[i,f] = S[i,j] * sum(k, U[i,k] * V[j,k]) * X[j,f]"])
@pytest.mark.parametrize(("size", "row", "k", "f"), SIZES)
def test_a_sampled_product_is_computed_before_it_is_used(
    text: str, size: int, row: int, k: int, f: int
) -> None:
    made = plan(
        problem(text, {"S": "CSR"}, "dd"),
        {"i": size, "j": size, "k": k, "f": f},
        {"S": float(size * row)},
    )
    first, last = (kernel.problem for kernel in made.kernels)
    assert to_text(first.assignment) == f"T[i,j] = {SAMPLED}"
    assert str(first.result.format) == "ds"
    assert len(last.operands) == 2
    assert "in steps of up to 3 factors about" in made.notes[0]


OTHERS = (
    # (text, formats, the loops of the deepest kernel)
    (f"{ATTENTION} / z[i]", {"S": "CSR"}, 3),
    (ATTENTION, {"S": "COO"}, 3),
    (ATTENTION, {"S": "CSC"}, 3),
    ("M[i,q] = T[i,j,l] * B[i,r] * C[j,r] * D[l,r] * C[j,q] * D[l,q]", {"T": "CSF"}, 4),
    ("O[i,f] = S[i,j] * U[i,k] * H[k,a] * V[j,a] * X[j,f]", {"S": "CSR"}, 3),
    ("D[i,j] = S[i,j] * U[i,k] * H[k,a] * V[j,a]", {"S": "CSR"}, 3),
)


@pytest.mark.parametrize(("text", "formats", "deepest"), OTHERS)
def test_no_loop_runs_around_what_it_does_not_change(
    text: str, formats: dict[str, str], deepest: int
) -> None:
    whole = problem(text, formats, "ds" if text[0] == "D" else "dd")
    sizes = {**dict.fromkeys("ijl", 3000), **dict.fromkeys("karfq", 32)}
    made = plan(whole, sizes, dict.fromkeys("ST", 30_000.0))
    assert len(made.kernels) > 1
    assert max(len(order) for kernel in made.kernels for order in kernel.schedule.orders) == deepest
    assert not any("[i,j]" in note and "dense" in note for note in made.notes)


GRADIENT = "O[i,f] = (S[i,j] - M[i,j] * sum(k, U[i,k] * V[j,k])) * X[j,f]"


@pytest.mark.parametrize(("size", "row", "k", "f"), SIZES)
def test_what_samples_a_sum_is_computed_with_it(size: int, row: int, k: int, f: int) -> None:
    """The difference is kept as it is written, but the sum in it is not repeated for each f."""
    made = plan(
        problem(GRADIENT, dict.fromkeys("SM", "CSR"), "dd"),
        {"i": size, "j": size, "k": k, "f": f},
        dict.fromkeys("SM", float(size * row)),
    )
    first, last = (to_text(kernel.problem.assignment) for kernel in made.kernels)
    assert (first, last) in (
        (
            "T[i,j] = A[i,j] * sum(k, B[i,k] * C[j,k])",
            "O[i,f] = sum(j, (S[i,j] - T[i,j]) * X[j,f])",
        ),
        (
            "T[i,j] = A[i,j] - B[i,j] * sum(k, C[i,k] * D[j,k])",
            "O[i,f] = sum(j, T[i,j] * X[j,f])",
        ),
    )
    assert str(made.kernels[0].problem.result.format) == "ds"
    assert "in loops around the sum in it" in made.notes[0]


def test_a_sum_of_a_narrower_type_stays_in_its_place() -> None:
    dtypes = {**dict.fromkeys("SMX", "float64"), "U": "int8", "V": "int8"}
    made = plan(problem(GRADIENT, dict.fromkeys("SM", "CSR"), "dd", dtypes))
    assert not any("around the sum in it" in note for note in made.notes)


def test_the_search_prices_the_step_by_the_samples_entries() -> None:
    known = problem(ATTENTION, {"S": "CSR"}, "dd")
    sizes = {"i": 1000, "j": 1000, "k": 16, "f": 32}
    stats = statistics(known.assignment, operands(known, sizes, {"S": 5000.0}))
    product = Product(MUL, tuple(accesses(known.assignment.value)))
    pairs, larger, *_ = near_trees(stats, product, ("i", "f"), Effort(), inf)
    assert pairs.most == 2
    assert larger.path == ((0, 1, 2), (0, 1))
    kept = NOMINAL.copies.temporary_entry_steps * 5000
    assert larger.cost == pytest.approx(5000 * 16 + kept + 5000 * 32)
    assert larger in simple_trees(stats, product, ("i", "f"))  # those that are timed


def test_a_limit_of_memory_holds_for_larger_steps() -> None:
    known = problem(ATTENTION, {"S": "CSR"}, "dd")
    sizes = {"i": 1000, "j": 1000, "k": 16, "f": 32}
    found = operands(known, sizes, {"S": 5000.0})
    counts = []
    for memory in (5000.0, 4999.0):
        request = Request(known.result, memory=memory)
        counts.append(len(make_plan(known.assignment, found, request).kernels))
    assert counts == [2, 1]


def test_dense_products_have_no_larger_steps() -> None:
    made = plan(problem(ATTENTION, {}, "dd"), dict.fromkeys("ijkf", 100))
    assert all("in pairs about" in note for note in made.notes)
    assert len(made.kernels) == 3


def test_a_given_path_may_have_larger_steps() -> None:
    path = ((0, 1, 2), (0, 1))
    made = plan(problem(ATTENTION, {"S": "CSR"}, "dd"), options=Options(path=path))
    assert [len(kernel.problem.operands) for kernel in made.kernels] == [3, 2]
