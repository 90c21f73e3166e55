"""What is computed first: contraction orders that know the nonzeros, hoisted and narrow sums."""

from __future__ import annotations

import re
from itertools import pairwise
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from opt_einsum import contract_path

import taco_py as tp
from taco_py.compiler.cost.effort import Effort
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.operators import MUL
from taco_py.language.notation.printer import to_text
from taco_py.planner.algebra.contraction_trees import near_trees
from taco_py.planner.algebra.products import Product
from taco_py.planner.ir.goal import statistics
from taco_py.planner.ir.nodes import KernelStep, Reformat
from taco_py.planner.make import Options
from tests.problems import operands, plan, problem


def kernels(
    text: str,
    formats: dict[str, str] | None = None,
    sizes: dict[str, int] | None = None,
    nnz: dict[str, float] | None = None,
    dtypes: dict[str, str] | None = None,
    **options: object,
) -> list[str]:
    """The assignments that are computed in turn."""
    whole = problem(text, formats, None, dtypes)
    made = plan(whole, sizes, nnz, Options(**options))  # type: ignore[arg-type]
    return [to_text(step.problem.assignment) for step in made.kernels]


@pytest.mark.parametrize(
    "text",
    [
        "v[i] = 100 * C[i,a] * q[a] * 100 * C[i,b] * q[b]",
        "v[i] = sum(a, C[i,a] * q[a] * 100 - q[a] * 100) * sum(a, C[i,a] * 100 - q[a] * 100)",
        "s = (C[i,a] * 100 + 1) * 100 * q[a] * 100",
        "s = 100 * C[i,a] * C[i,b] * q[b] * q[a] * 100",
    ],
)
@pytest.mark.parametrize(
    ("dtype", "number"),
    [("uint8", 100), ("int64", 2**40), ("float64", 2**40), ("complex64", 2**33)],
)
def test_numbers_stay_apart(text: str, dtype: str, number: int) -> None:
    """Their product is none that there is room for."""
    rng = np.random.default_rng(0)
    q = rng.integers(0, 9, 5).astype(dtype)
    c = sp.csr_array((rng.random((6, 5)) < 0.4) * q)
    text = text.replace("100", str(number))
    expected = tp.evaluate_dense(text, C=c.toarray(), q=q)
    rounding = 1e-6 if expected.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(tp.evaluate(text, C=c, q=q), expected, rounding)


CSRS = dict.fromkeys("ABC", "CSR")
WHOLE = (
    ("y[i] = A[i,j] * x[j]", CSRS, {}),
    ("C[i,j] = A[i,k] * B[k,j]", CSRS, {}),
    ("D[i,j] = S[i,j] * U[i,k] * V[j,k]", {"S": "CSR"}, {"k": 32}),
    ("M[i,r] = T[i,j,k] * B[j,r] * C[k,r]", {"T": "CSF"}, {"r": 32}),
    ("s = x[i] * A[i,j] * z[j]", CSRS, {}),
    ("y[i] = alpha * A[i,j] * x[j]", CSRS, {}),
    ("y[i] = (A[i,j] + B[i,j]) * x[j]", CSRS, {}),
)


@pytest.mark.parametrize(("text", "formats", "sizes"), WHOLE)
def test_one_kernel_where_that_is_cheapest(
    text: str, formats: dict[str, str], sizes: dict[str, int]
) -> None:
    assert len(kernels(text, formats, sizes)) == 1


def test_two_matrices_and_a_vector_go_from_the_right() -> None:
    """A·B·x is A·(B·x), however it is written."""
    for text in ("y[i] = A[i,j] * B[j,k] * x[k]", "y[i] = (A[i,j] * B[j,k]) * x[k]"):
        found = kernels(text, CSRS)
        assert len(found) == 2
        assert found[-1] == "y[i] = sum(j, A[i,j] * T[j])"


def test_a_chain_of_four_matrices_and_a_vector_makes_vectors_only() -> None:
    text = "y[i] = A[i,j] * B[j,k] * C[k,l] * D[l,m] * x[m]"
    whole = problem(text, dict.fromkeys("ABCD", "CSR"))
    made = plan(whole)
    assert len(made.kernels) == 4
    assert all(k.problem.result.format.order == 1 for k in made.kernels)
    assert all("in pairs about" in note for note in made.notes)


def test_vectors_between_lists_are_dense_where_coordinates_would_be_sorted() -> None:
    """One nonzero a row: as lists, the vectors are sorted for lists that are not."""
    text, stored = "y[i] = A[i,j] * B[j,k] * C[k,l] * x[l]", {"A": "COO", "B": "COO", "C": "CSC"}
    whole = problem(text, stored, "d")
    sizes, nnz = dict.fromkeys("ijkl", 3000), dict.fromkeys("ABC", 3000.0)
    made = plan(whole, sizes, nnz)
    found = [to_text(k.problem.assignment) for k in made.kernels]
    assert found[-1] == "y[i] = sum(j, A[i,j] * T_1[j])"
    assert [str(k.problem.result.format) for k in made.kernels] == ["d", "d", "d"]
    assert all("dense, which is cheaper here" in note for note in made.notes)
    few = plan(whole, dict.fromkeys("ijkl", 1 << 25), nnz)
    assert not any("dense, which is cheaper here" in note for note in few.notes)


INSIDE = (
    ("y[i] = A[i,j] * B[j,k] * x[k] / z[i]", 4),  # two say where something is stored
    ("y[i] = z[i] / (1 + A[i,j] * B[j,k] * x[k])", 3),
    ("y[i] = z[i] * (A[i,j] * B[j,k] * x[k] + z[i])", 3),
    ("s = x[i] * A[i,j] * B[j,k] * x[k] / 2", 3),
    ("y[i] = sum(j, A[i,j] * sum(k, B[j,k] * x[k])) / z[i]", 4),
)


@pytest.mark.parametrize(("text", "count"), INSIDE)
def test_chains_inside_other_expressions_go_in_pairs_too(text: str, count: int) -> None:
    made = plan(problem(text, CSRS, "" if text[0] == "s" else "d"))
    assert len(made.kernels) == count
    loops = [order for kernel in made.kernels for order in kernel.schedule.orders]
    assert all(len(order) <= 2 for order in loops)
    assert any(re.search("in (pairs|steps of up to 3 factors) about", n) for n in made.notes)


MIXED = (
    ("y[i] = 2 * A[i,j] * B[j,k] * x[k]", {}, 2),
    ("y[i] = A[i,j] * B[j,k] * x[k]", {"A": "float32"}, 2),
    ("y[i] = A[i,j] * B[j,k] * x[k]", {"x": "bool"}, 2),
    ("y[i] = A[i,j] * B[j,k] * x[k]", {"B": "float32", "x": "float32"}, 1),  # rounds B * x
    ("y[i] = A[i,j] * B[j,k] * x[k]", {"B": "int8", "x": "int8"}, 1),  # wraps in B * x
)


@pytest.mark.parametrize(("text", "dtypes", "count"), MIXED)
def test_pairs_are_of_the_whole_products_type(
    text: str, dtypes: dict[str, str], count: int
) -> None:
    given = {name: dtypes.get(name, "float64") for name in "ABx"}
    assert len(kernels(text, CSRS, dtypes=given)) == count


WHYS = (
    ("COO", "d", 1000, 10_000.0, "in pairs about .* instead of .* in one kernel"),
    ("CSC", "d", 8, 4.0, "planned for sizes of 64 and more, where they take fewer"),
    ("CSC", "s", 10_000, 10_000.0, "but in loops nested less deep, which pays the more"),
)


@pytest.mark.parametrize(("second", "result", "size", "nnz", "why"), WHYS)
def test_what_is_told_of_pairs_agrees_with_the_numbers(
    second: str, result: str, size: int, nnz: float, why: str
) -> None:
    whole = problem("y[i] = A[i,j] * B[j,k] * x[k]", {"A": "COO", "B": second}, result)
    note, *_ = plan(whole, dict.fromkeys("ijk", size), dict.fromkeys("AB", nnz)).notes
    assert re.search(why, note)


CHAIN = "D[i,l] = A[i,j] * B[j,k] * C[k,l]"


def test_the_order_of_a_chain_knows_the_nonzeros() -> None:
    """Sizes alone would multiply the narrow end first; the empty corner is at the other one."""
    sizes = {"i": 1000, "j": 1000, "k": 1000, "l": 500}
    nnz = {"A": 10.0, "B": 1000.0, "C": 200_000.0}
    whole = problem(CHAIN, CSRS)
    known = statistics(whole.assignment, operands(whole, sizes, nnz))
    factors = tuple(
        Access(name, tuple(indices)) for name, indices in (("A", "ij"), ("B", "jk"), ("C", "kl"))
    )
    tree, *_ = near_trees(known, Product(MUL, factors), ("i", "l"), Effort(), inf)
    shapes = [(1000, 1000), (1000, 1000), (1000, 500)]
    by_size, _ = contract_path("ij,jk,kl->il", *shapes, shapes=True)
    assert tree.path[0] == (0, 1)
    assert tuple(by_size[0]) == (1, 2)


def test_the_order_of_a_dense_chain_is_that_of_its_sizes() -> None:
    sizes = {"i": 10, "j": 1000, "k": 5, "l": 1000}
    whole = problem(CHAIN)
    known = statistics(whole.assignment, operands(whole, sizes))
    factors = tuple(
        Access(name, tuple(indices)) for name, indices in (("A", "ij"), ("B", "jk"), ("C", "kl"))
    )
    shapes = [(10, 1000), (1000, 5), (5, 1000)]
    by_size, _ = contract_path("ij,jk,kl->il", *shapes, shapes=True)
    tree, *_ = near_trees(known, Product(MUL, factors), ("i", "l"), Effort(), inf)
    assert tree.path == tuple(map(tuple, by_size))


MATRICES = ("A[i,j] * B[j,k] * C[i,k]", "A[i,j] * B[k,j] * C[i,k]", "A[b,i] * B[i,j] * C[b,j]")


@pytest.mark.parametrize("value", MATRICES)
@pytest.mark.parametrize("target", ["s", "y[{}]"])
def test_pairs_that_are_products_of_matrices_are_worth_it_without_saving_any(
    value: str, target: str
) -> None:
    """The second kernel has as many products as the first, but those of tiles take a tenth."""
    whole = problem(f"{target.format(value[2])} = {value}")
    made = plan(whole, dict.fromkeys("bijk", 500))
    first, second = (step for step in made.steps if isinstance(step, KernelStep))
    assert first.schedule.make.way == "tiles"
    assert len(second.schedule.orders[0]) == 2


def test_many_factors_are_paired_greedily() -> None:
    letters = "abcdefghijk"
    text = "y[a] = " + " * ".join(f"M{p}[{p},{q}]" for p, q in pairwise(letters))
    whole = problem(f"{text} * x[k]", {f"M{p}": "CSR" for p in letters[:-1]})
    assert len(plan(whole, dict.fromkeys(letters, 200)).kernels) == 10


def test_a_given_path_is_followed() -> None:
    text = "y[i] = sum(j, k, A[i,j] * B[j,k] * x[k])"
    found = plan(problem(text, CSRS), options=Options(path=((0, 1), (0, 1))))
    assert [k.problem.result.format.order for k in found.kernels] == [2, 1]
    assert found.notes == ("T: the contraction order was given",)


def test_contraction_can_be_forbidden() -> None:
    assert len(kernels("y[i] = sum(j, k, A[i,j] * B[j,k] * x[k])", CSRS, contract=False)) == 1


HOISTED = (
    # written with sums inside, or with all of them outside as einsum does: the same
    "y[i] = A[i,j] * B[j,k]",
    "y[i] = sum(j, k, A[i,j] * B[j,k])",
)


@pytest.mark.parametrize("text", HOISTED)
def test_a_sum_that_a_loop_would_repeat_is_computed_first(text: str) -> None:
    found = plan(problem(text, CSRS))
    assert len(found.kernels) == 2
    assert found.notes == ("T: this sum does not depend on i, whose loop would repeat it",)
    assert to_text(found.kernels[1].problem.assignment) == "y[i] = sum(j, A[i,j] * T[j])"


def test_a_sum_around_which_loops_would_be_dense_is_computed_first() -> None:
    """In one kernel loops over all j and l are around the sum, which C restricts inside only."""
    text = "D[i,l] = A[i,j] * (sum(k, B[j,k] * C[k,l]) / E[j,l])"
    found = plan(problem(text, dict.fromkeys("ABC", "CSR")))
    assert [to_text(k.problem.assignment) for k in found.kernels] == [
        "T[i,j] = sum(k, A[i,k] * B[k,j])",
        "D[i,l] = sum(j, A[i,j] * (T[j,l] / E[j,l]))",
    ]
    assert found.notes[0].endswith("in loops around this sum")


INSIDE = (
    ("C[i,j] = sum(k, A[i,j] * B[i,k])", "C[i,j] = kept(A[i,j] * T[i], T_1[i])"),
    ("C[i,j] = sum(k, A[i,j] * x[k])", "C[i,j] = A[i,j] * T"),
    ("s = sum(i, j, k, l, A[i,j] * B[k,l])", "s = sum(i, j, A[i,j]) * sum(k, l, B[k,l])"),
    ("y[i] = sum(j, k, A[i,j] * B[i,k])", "y[i] = sum(j, A[i,j]) * sum(k, B[i,k])"),
    ("y[i] = sum(j, alpha * A[i,j])", "y[i] = sum(j, alpha * A[i,j])"),
)


@pytest.mark.parametrize(("text", "expected"), INSIDE)
def test_an_index_of_one_factor_is_summed_there(text: str, expected: str) -> None:
    assert kernels(text, CSRS)[-1] == expected


def test_sums_of_another_type_stay_where_they_are() -> None:
    dtypes = {"A": "int8", "B": "int32"}
    text = "y[i] = sum(j, k, A[i,j] * B[i,k])"
    assert kernels(text, CSRS, dtypes=dtypes) == ["y[i] = sum(j, sum(k, B[i,k]) * A[i,j])"]


@pytest.mark.parametrize("number", ["-1", "300", "0.5"])
def test_numbers_stay_beside_what_has_room_for_them(number: str) -> None:
    text = f"y[j] = c[j] * sum(i, {number} * A[i,j])"
    given_ = {"A": np.random.default_rng(0).random((40, 5)), "c": np.arange(5, dtype="u1")}
    np.testing.assert_allclose(tp.evaluate(text, given_), tp.evaluate_dense(text, given_))


@pytest.mark.parametrize(
    "text",
    ["y[i] = d[i] * (100 * A[i,j])", "y[i] = d[i] * (d[i] * A[i,j])", "y[i] = s * (d[i] * A[i,j])"],
)
@pytest.mark.parametrize(("narrow", "large"), [("i1", 100), ("u1", 200), ("f4", 1e25)])
def test_factors_of_a_narrower_type_are_multiplied_last(
    text: str, narrow: str, large: float
) -> None:
    """By each other they would wrap."""
    a = sp.random_array((40, 30), density=0.3, format="csr", rng=np.random.default_rng(0))
    given_ = {"A": a, "d": np.full(40, large, narrow), "s": np.array(large, narrow)}
    used = {name: given_[name] for name in given_ if re.search(rf"\b{name}\b", text)}
    expected = tp.evaluate_dense(text, used)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(tp.evaluate(text, used), expected)


def test_a_sum_is_computed_apart_where_that_saves_a_copy() -> None:
    found = plan(problem("y[i] = (A[i,j] * x[j]) / d[i]", {"A": "CSC"}))
    assert [to_text(k.problem.assignment) for k in found.kernels] == [
        "T[i] = sum(j, A[i,j] * B[j])",
        "y[i] = T[i] / d[i]",  # T is sparse, and stores what has a term
    ]
    assert len(found.steps) == 2
    assert found.notes[0] == (
        "T: by itself, this sum needs no copies of operands in another order, or fewer"
    )
    assert len(plan(problem("y[i] = (A[i,j] * x[j]) / d[i]", {"A": "CSR"})).steps) == 1


def test_a_narrow_sum_wraps_by_itself() -> None:
    text = "y[i] = b[i] + A[i,j] * x[j]"
    found = plan(problem(text, CSRS, None, {"A": "int8", "x": "int8", "b": "float64"}))
    assert [k.problem.result.dtype for k in found.kernels] == ["int8", "float64"]
    assert found.notes == ("T: its sum is of type int8, the result's of type float64",)
    assert len(kernels(text, CSRS, dtypes=dict.fromkeys("Axb", "int8"))) == 1
    assert len(kernels(text, CSRS, dtypes={"A": "float32", "x": "float32", "b": "float64"})) == 1


MTTKRP = "A[i,j] = sum(k, l, B[i,k,l] * C[j,k] * D[j,l])"
LOOKED_UP = (
    # entries of B, how the temporary over j, k and l is stored for the last kernel
    (1e6, "dds:1,2,0"),
    (1e4, "dss:1,2,0"),  # a table of all pairs of k and l would be larger than B
)


@pytest.mark.parametrize(("entries", "form"), LOOKED_UP)
def test_levels_that_are_looked_up_are_dense(entries: float, form: str) -> None:
    whole = problem(MTTKRP, {"B": "CSF", "C": "CSR", "D": "CSR"}, "dd")
    nnz = {"B": entries, "C": 2600.0, "D": 2600.0}
    made = plan(whole, dict.fromkeys("ijkl", 512), nnz, Options(path=((1, 2), (0, 1))))
    copies = [s for s in made.steps if isinstance(s, Reformat)]
    assert [str(copy.format) for copy in copies if copy.source == "T"] == [form]


def test_levels_that_nothing_restricts_are_not_looked_up() -> None:
    """CSR has a row for each j: a table of all pairs of i and j would have 36 million of them."""
    whole = problem("D[i,j] = B[j,k] * T[i,j,k]", {"B": "CSR", "T": "dss:2,0,1"}, "ss")
    made = plan(whole, dict.fromkeys("ijk", 6000), {"B": 30000.0, "T": 1000.0})
    assert [str(s.format) for s in made.steps if isinstance(s, Reformat)] == ["dss"]


def test_merges_count_where_one_kernel_is_compared_with_pairs() -> None:
    """Each entry of B would merge a row of C with one of D: a temporary is met by lookups."""
    whole = problem(MTTKRP, {"B": "CSF", "C": "CSR", "D": "CSR"}, "dd")
    nnz = {"B": 1.3e6, "C": 2600.0, "D": 2600.0}
    assert len(plan(whole, dict.fromkeys("ijkl", 512), nnz).kernels) == 2


FILLS = (
    # (entries of A and B, format of the result, size, how T is stored)
    (5000.0, "dd", 200, "dd"),
    (200.0, "dd", 200, "ds"),
    (5000.0, "ds", 200, "ds"),  # D would store what T does not
    (5e6, "dd", 5000, "ds"),  # 200 MB of zeros if the expectation is wrong
)


@pytest.mark.parametrize(("entries", "result", "size", "expected"), FILLS)
def test_temporaries_that_are_nearly_full_are_dense(
    entries: float, result: str, size: int, expected: str
) -> None:
    whole = problem("D[i,l] = A[i,j] * B[j,k] * C[k,l]", dict.fromkeys("ABC", "CSR"), result)
    sizes, nnz = dict.fromkeys("ijkl", size), {"A": entries, "B": entries}
    made = plan(whole, sizes, nnz, Options(path=((0, 1), (0, 1))))
    first = made.kernels[0]
    assert str(first.problem.result.format) == expected
    told = ["dense, for 96% of it is expected to be there" in note for note in made.notes]
    assert told == [expected == "dd"]
