"""Temporaries made in the loops of the one kernel that reads them, a row or a number at a time."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.planner.ir.plan import Plan
from taco_py.planner.rules.catalogue import CATALOGUE
from tests.plan.test_rules import after, pair, program_of
from tests.problems import plan, problem

RULE = "fuse_temporary"
RULES = {rule.name: rule for rule, _ in CATALOGUE}
ROWS = "H[i,k] = (A[i,j] * X[j,k] + b[k]) / d[i]"
SQUARES = "H[i,k] = sum(j, A[i,j] * X[j,k])**2 + b[k]"
NUMBERS = "y[i] = sum(j, A[i,j] * x[j])**2 / d[i] - c[i]"


def planned(text: str, sizes: dict[str, int] | None = None, **formats: str) -> Plan:
    return plan(problem(text, {"A": "CSR", **formats}), sizes, fused=True)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        (ROWS, "i,k_1,k"),
        ("y[i] = (A[i,j] * x[j] + c[i]) / d[i]", "i,j"),
        ("H[i,k] = (A[i,j] * X[j,l] * V[l,k] + b[k]) / d[i]", "i,k_1,k,l"),
    ],
)
def test_a_sum_is_made_where_the_rest_reads_it(text: str, order: str) -> None:
    found = planned(text, {"k": 16, "l": 16})
    assert any(found.log.of(RULE))
    last = found.kernels[-1]
    assert ",".join(last.schedule.orders[0]) == order


def test_a_square_is_that_of_one_sum() -> None:
    found = planned(SQUARES, {"k": 16})
    assert [entry.target for entry in found.log.of(RULE)] == ["T", "T_1"]
    (kernel,) = found.kernels
    assert str(kernel.schedule) == "loops(i,j,k_1,k), loops(i,k)"


REFUSED = (
    # (expression, sizes, formats, the reason)
    ("s = sum(i, sum(j, A[i,j] * x[j])**2)", {}, {}, "s is summed over i"),
    ("y[i] = A[i,j] * sum(k, B[j,k] * x[k])", {}, {"B": "CSR"}, "y has no loop around all"),
    (ROWS, {"k": 100_000}, {}, "a row over k is larger than the near caches"),
)


@pytest.mark.parametrize(("text", "sizes", "formats", "why"), REFUSED)
def test_a_temporary_stays_and_the_log_says_why(
    text: str, sizes: dict[str, int], formats: dict[str, str], why: str
) -> None:
    found = planned(text, sizes, **formats)
    stay = {entry.target for entry in found.log.of(RULE, accepted=False) if why in entry.reason}
    assert stay
    assert stay.isdisjoint(entry.target for entry in found.log.of(RULE))


@pytest.mark.parametrize(("inner", "fuses"), [(16, True), (640, False)])
def test_a_temporary_stays_where_both_kernels_read_much_again(inner: int, fuses: bool) -> None:
    """Whole numbers, of which no kernel is made in register tiles."""
    whole = problem(
        "H[i,k] = sum(l, sum(j, A[i,j] * X[j,l])**2 * V[l,k])",
        {"A": "CSR"},
        dtypes=dict.fromkeys("AXV", "int64"),
    )
    log = plan(whole, {"l": inner}, fused=True).log
    assert any(entry.target == "T" for entry in log.of(RULE)) is fuses
    why = "both kernels read more again in each round of i"
    assert any(why in entry.reason for entry in log.of(RULE, accepted=False)) is not fuses


def test_what_two_kernels_read_is_made_once() -> None:
    before, _ = pair(RULES[RULE])
    place = before.index("H[i,k]")
    reader = before[place : before.index("sizes i=2000")]
    text = before[:place] + reader.replace("H[i,k]", "G[i,k]") + before[place:]
    program = program_of(text.replace("return H", "return G, H"))
    assert after(RULES[RULE], program) is program


def test_explain_tells_where_a_temporary_is_made() -> None:
    graph = sp.random_array((50, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    operands = {"A": graph, "X": np.ones((50, 16)), "b": np.ones(16), "d": np.ones(50)}
    told = tp.explain(ROWS, operands)
    assert "T: made in rows over k in the loops over i of H, which alone reads it" in told
    assert "workspaces  w[k]: dense" in told
    assert "largest   no temporary" in told
    assert "      where T[k]: dense workspace" in told.split("\nchosen")[1]
    assert "runs      2 kernels" in tp.explain(ROWS, operands, forbid=(RULE,))


def test_duplicates_are_added_up_in_the_row() -> None:
    """A row is complete before anything is done with it: entries may repeat their coordinates."""
    indptr, indices = np.array([0, 3, 3, 5]), np.array([1, 1, 0, 2, 2])
    graph = sp.csr_array((np.arange(1.0, 6.0), indices, indptr), shape=(3, 3))
    operands = {"A": graph, "X": np.arange(48.0).reshape(3, 16), "b": np.ones(16)}
    expected = (graph.toarray() @ operands["X"]) ** 2 + 1
    np.testing.assert_allclose(tp.evaluate(SQUARES, operands), expected)
    assert "relies on   nothing but valid arrays" in tp.explain(SQUARES, operands)


# ---------------------------------------------------------------- against the oracle

RNG = np.random.default_rng(1)
SHAPES = {
    "A": (11, 9), "B": (11, 12), "X": (9, 12), "Z": (9, 8), "V": (8, 12),
    "b": (12,), "c": (11,), "d": (11,), "x": (9,),
}  # fmt: skip
TEXTS = (
    ROWS,
    SQUARES,
    NUMBERS,
    "H[i,k] = b[k] / (A[i,j] * X[j,k] + 3)",
    "H[i,k] = B[i,k] * (sum(j, A[i,j] * X[j,k]) / d[i])",
    "H[i,k] = B[i,k] * sum(j, A[i,j] * x[j])**2",
    "H[i,k] = sum(l, sum(j, A[i,j] * Z[j,l])**2 * V[l,k]) / d[i]",
    "H[i,k] = (sum(j, A[i,j] * X[j,k]) + b[k]) * (sum(j, A[i,j] * x[j]) + c[i])",
    "y[i] = sum(k, (A[i,j] * X[j,k] + b[k])**2 / d[i])",
    "H[i,k] += (A[i,j] * X[j,k] + b[k]) / d[i]",
)
STORAGES = ("csr", "csc", "coo", "dense")


def operand(name: str, storage: str, dtype: str = "float64") -> Any:
    """An operand with empty rows, stored zeros and no zero in `d`."""
    values = RNG.integers(-3, 4, SHAPES[name]).astype(dtype)
    if name == "d":
        return values * 2 + 1
    if values.ndim == 1 or storage == "dense":
        return values
    values[RNG.random(values.shape) < 0.6] = 0
    values[2] = 0
    return getattr(sp, f"{storage}_array")(values)


def check(text: str, operands: dict[str, Any], threads: int) -> None:
    """The result is the oracle's, and stored as without the rule."""
    if "+=" in text:
        operands = {**operands, "H": np.ones((11, 12))}
    expected = np.asarray(tp.evaluate_dense(text, operands))
    found = tp.evaluate(text, operands, threads=threads)
    apart = tp.evaluate(text, operands, threads=threads, forbid=(RULE,))
    assert type(found) is type(apart)
    if sp.issparse(found):
        assert found.nnz == apart.nnz
        found = found.toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def needed(text: str) -> list[str]:
    return [name for name in SHAPES if f"{name}[" in text.split("=", 1)[1]]


@pytest.mark.rotating(3)
@pytest.mark.parametrize(("text", "storage"), product(TEXTS, STORAGES))
def test_results_are_those_of_the_oracle(text: str, storage: str) -> None:
    sparse = {"A": storage, "B": "csr"}
    check(text, {n: operand(n, sparse.get(n, "dense")) for n in needed(text)}, threads=2)


@settings(max_examples=8, deadline=None)
@given(
    text=st.sampled_from(TEXTS),
    storages=st.lists(st.sampled_from(STORAGES), min_size=9, max_size=9),
    dtypes=st.lists(st.sampled_from(("float64", "float32", "int64")), min_size=9, max_size=9),
    threads=st.integers(1, 2),
)
def test_results_of_any_storage_and_type_are_those_of_the_oracle(
    text: str, storages: list[str], dtypes: list[str], threads: int
) -> None:
    names = needed(text)
    if "+=" in text:
        dtypes = ["float64"] * 9
    made = {n: operand(n, *each) for n, *each in zip(names, storages, dtypes, strict=False)}
    check(text, made, threads)


def test_what_a_sparse_result_stores_is_known_before_it_is_made() -> None:
    """Rows in which A stores nothing have no entries, whatever the sums of them are made in."""
    rng = np.random.default_rng(0)
    few = sp.random_array((12, 8), density=0.15, rng=rng, format="csr")
    more = sp.random_array((6, 11), density=0.5, rng=rng, format="csr")
    assert not np.diff(few.indptr).all()
    text = "H[i,k] = sum(l, sum(j, A[i,j] * Z[j,l])**2 * V[l,k]) / d[i]"
    given_ = {"A": few, "V": more, "Z": rng.random((8, 6)), "d": rng.random(12) + 1}
    found = tp.evaluate(text, given_)
    assert found.nnz == tp.evaluate(text, given_, forbid=(RULE,)).nnz
    assert found.nnz == np.count_nonzero(tp.evaluate_dense(text, given_))


def test_an_extremum_that_meets_itself_is_made_before() -> None:
    """max(max(k, A), …) would be two terms of one assignment, with loops of their own."""
    cube = np.random.default_rng(0).random((2, 3, 5))
    text = "t[i,j] = max(k, A[i,k,j]); r[i,j] = max(t[i,j], 2 * t[i,j])"
    np.testing.assert_array_equal(tp.evaluate(text, A=cube), 2 * cube.max(1))


SPREAD = (
    # a number for each i, which several elements of the result read
    "P[i,j] = A[i,j] - sum(k, A[i,k])",
    "P[i,j] = exp(A[i,j]) - sum(k, A[i,k])",
    "P[i,j] = A[i,j] + x[j] - sum(k, A[i,k] * x[k])",
    "P[i,j] = A[i,j] - max(k, A[i,k])",
    "P[i,j] = 2 * sum(k, A[i,k]) + A[i,j]",
    "s[i] = sum(k, A[i,k]); P[i,j] = A[i,j] - s[i]",
)


@pytest.mark.parametrize("text", SPREAD)
def test_a_number_that_many_elements_read_is_added_up_once(text: str) -> None:
    """No loop over terms stands around or inside of one over the elements that read their sum."""
    rng = np.random.default_rng(0)
    given_ = {"A": rng.random((800, 800)), "x": rng.random(800)}
    operands = {name: each for name, each in given_.items() if f"{name}[" in text}
    told = tp.explain(text, operands, forbid=("fuse_slab",)).partition("schedules of")[0]
    told = told.replace("concrete", " " * len("concrete")).splitlines()
    around: list[int] = []
    for line in told:
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith(("forall", "where")):
            around = [each for each in around if each < indent]
        if line.lstrip().startswith("forall"):
            around.append(indent)
        assert len(around) <= 2, told
    assert around


OPTIONAL = [rule.name for rule, _ in CATALOGUE if rule.optional]


@pytest.mark.parametrize("index", "ijk")
@pytest.mark.parametrize("rule", OPTIONAL)
def test_sizes_that_are_compiled_in_stand_beside_each_rule_left_out(rule: str, index: str) -> None:
    """A size is compiled into all kernels of a call, also into those that have no such index."""
    rng = np.random.default_rng(0)
    B = sp.random_array((30, 20), density=0.1, format="csr", rng=rng)
    operands = {"A": rng.random(30), "B": B, "C": rng.random(8)}
    sizes = {"i": 20, "j": 30, "k": 8}
    text = "y[j,k] = A[j] * B[j,i] * C[k]"
    found = tp.evaluate(text, operands, static={index: sizes[index]}, forbid=rule)
    wanted = (operands["A"] * B.sum(axis=1))[:, None] * operands["C"]
    np.testing.assert_allclose(found.toarray() if sp.issparse(found) else found, wanted)
