"""Operands that are looked up: where that is chosen, and that numbers and patterns agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.data.convert.locate import located
from taco_py.data.storage.pack import to_dense
from taco_py.planner.ir.nodes import Locate, Reformat
from tests.machines import planned_for
from tests.problems import plan, problem

SPMV = "y[i] = A[i,j] * x[j]"


def test_a_vector_is_looked_up_where_a_list_would_be_sorted() -> None:
    made = plan(problem(SPMV, {"A": "COO", "x": "s"}, "d"), nnz={"A": 50_000.0, "x": 100.0})
    (step,) = (step for step in made.steps if step.target != "y")
    assert isinstance(step, Locate)
    assert (step.source, step.indices) == ("x", ("j",))
    assert "where its entries are looked up" in step.reason
    assert not any(isinstance(step, Reformat) for step in made.steps)


def test_integers_are_read_from_an_array() -> None:
    """No zero in it meets an infinity."""
    dtypes = dict.fromkeys("Ax", "int64")
    whole = problem(SPMV, {"A": "COO", "x": "s"}, "d", dtypes)
    made = plan(whole, nnz={"A": 50_000.0, "x": 500.0})
    (step,) = (step for step in made.steps if step.target != "y")
    assert isinstance(step, Reformat)
    assert (step.source, str(step.format)) == ("x", "d")


def test_short_vectors_of_long_rows_are_merged() -> None:
    made = plan(problem(SPMV, {"A": "CSR", "x": "s"}, "d"), sizes={"i": 2, "j": 1 << 23})
    assert not any(isinstance(step, Locate) for step in made.steps)


def test_what_says_which_elements_are_stored_is_not_looked_up() -> None:
    text = "C[i,j] = A[i,j] * x[j]"
    made = plan(problem(text, {"A": "CSR", "x": "s"}), nnz={"A": 50_000.0, "x": 500.0})
    assert not any(isinstance(step, Locate) for step in made.steps)


@pytest.mark.parametrize("form", ["s", "u"])
def test_entries_are_at_their_coordinates(form: str) -> None:
    x = tp.Tensor.from_coo(np.array([[4], [1], [3]]), [7.0, 0.0, 5.0], (6,), format=form)
    found = located(x.data)
    pos, crd = found.levels[1].pos, found.levels[1].crd
    assert pos is not None and crd is not None
    assert (pos.tolist(), crd.tolist()) == ([0, 0, 1, 1, 2, 3, 3], [0, 0, 0])
    assert found.values.tolist() == [0.0, 5.0, 7.0]


def test_matrices_too() -> None:
    A = tp.tensor(np.array([[0.0, 2.0], [3.0, 0.0]]), format=tp.COO(2))
    found = located(A.data)
    assert str(found.format) == "dds"
    assert to_dense(found)[:, :, 0].tolist() == [[0.0, 2.0], [3.0, 0.0]]


@pytest.fixture
def always() -> Iterator[None]:
    """Whatever it costs."""
    with planned_for(detour_gain=0.0):
        yield


TEXTS = (
    SPMV,
    "y[j] = A[i,j] * x[i]",
    "s = A[i,j] * x[i] * x[j]",
    "s = A[i,j] * B[i,j]",
    "y[i] = A[i,j] * B[i,j] * x[j]",
    "y[i] = A[i,j] * x[j] / 4 + B[i,j] * x[j] - b[i]",
    "y[i] = A[i,j] * B[j,k] * x[k]",
    "y[i] = (A[i,j] + B[i,j]) * x[j]",
)
MATRICES = ("ds", "ds:1,0", "ss", "uq", "uq:1,0")
DTYPES = ("int8", "int64", "float32", "float64", "complex128", "bool")


@pytest.mark.usefixtures("always")
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_results_are_those_of_the_text(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    dtypes = DTYPES[:-1] if " - " in text or "/" in text else DTYPES
    dtype = data.draw(st.sampled_from(dtypes))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    shapes = {"A": (5, 5), "B": (5, 5), "x": (5,), "b": (5,)}
    read = {name: shape for name, shape in shapes.items() if f"{name}[" in text.split(" = ")[1]}
    arrays: dict[str, Any] = {}
    stored: dict[str, Any] = {}
    for name, shape in read.items():
        entries = rng.integers(1, 5, shape) * (rng.random(shape) < 0.5)
        arrays[name] = entries.astype(dtype)
        forms = MATRICES if len(shape) == 2 else ("s", "u")
        stored[name] = tp.tensor(arrays[name], format=data.draw(st.sampled_from(forms)))
    form = data.draw(st.sampled_from([None, "dense"]))
    wanted = tp.dense(1) if form and text[0] == "y" else None
    found = tp.evaluate(text, stored, format=wanted)
    expected = np.asarray(tp.evaluate_dense(text, arrays))
    found = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.usefixtures("always")
def test_what_is_not_stored_is_zero_beside_an_infinity_and_a_stored_zero_is_not() -> None:
    A = tp.Tensor.from_coo(([0, 1, 2], [0, 1, 2]), [np.inf, np.inf, 2.0], (3, 3), format=tp.COO(2))
    x = tp.Tensor.from_coo(np.array([[1], [2]]), [0.0, 3.0], (3,), format="s")
    found = tp.evaluate(SPMV, A=A, x=x, format="d")
    assert "locate" in tp.explain(SPMV, A=A, x=x, format="d", frontier_budget=0)
    assert found[0] == 0.0 and np.isnan(found[1]) and found[2] == 6.0


@pytest.mark.usefixtures("always")
def test_patterns_are_those_of_the_same_loops() -> None:
    A = tp.tensor(np.diag([1.0, 0.0, 2.0]), format="ss")
    x = tp.tensor(np.array([0.0, 1.0, 4.0]), format="s")
    found = tp.evaluate(SPMV, A=A, x=x)
    assert "locate" in tp.explain(SPMV, A=A, x=x, frontier_budget=0)
    merged = tp.evaluate(SPMV, A=A, x=x, schedule="reorder(i,j)")
    assert isinstance(found, tp.Tensor) and isinstance(merged, tp.Tensor)
    for mine, its in zip(found.data.levels, merged.data.levels, strict=True):
        np.testing.assert_array_equal(mine.crd, its.crd)
    np.testing.assert_array_equal(found.data.values, merged.data.values)


def test_an_index_of_one_coordinate_may_have_it_twice() -> None:
    """Unlike what is looked up, a matrix of the user's may."""
    A = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.zeros(3, "i4"), np.array([0, 2, 3])), (2, 1))
    for text in ("y[i] = A[i,u] * x[u]", "y[i] = sum(u, A[i,u])"):
        given_ = {"A": A, **({"x": np.ones(1)} if "x" in text else {})}
        np.testing.assert_array_equal(tp.evaluate(text, given_, static={"u": 1}), [3.0, 4.0])


def test_calls_again_take_the_short_way() -> None:
    rng = np.random.default_rng(2)
    A = sp.random_array((400, 400), density=0.1, format="coo", rng=rng)
    for seed in range(3):
        x = sp.random_array((400,), density=0.1 + seed / 10, format="coo", rng=rng)
        found = tp.evaluate(SPMV, A=A, x=x, format="d")
        np.testing.assert_allclose(found, A.toarray() @ x.toarray())


# ---------------------------------------------------------------- lists that are not sorted

GATHERED = (
    SPMV,
    "y[j] = A[i,j] * x[i]",
    "y[i] = A[i,j] * B[i,j]",
    "y[i] = A[i,j] * x[j] + b[i]",
    "y[i] = A[i,j] * x[j] - B[j,i] * x[j] / 4",
    "y[i] = A[i,j] * x[j] * A[i,k] * x[k]",
)


def test_a_sparse_result_of_one_mode_is_gathered_from_a_list_in_any_order() -> None:
    made = plan(problem(SPMV, {"A": "COO"}, "s"), nnz={"A": 50_000.0})
    assert not any(isinstance(step, Reformat) for step in made.steps)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("text", GATHERED)
@pytest.mark.parametrize("form", ["s", "u"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_lists_with_duplicates_in_any_order(text: str, form: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    dtype = data.draw(st.sampled_from(["float64", "complex64"]))
    count = data.draw(st.integers(0, 12))
    stored: dict[str, Any] = {"x": rng.random(6).astype(dtype)}
    stored["x"][rng.random(6) < 0.5] = 0
    for name in "AB":
        coords = rng.integers(0, 6, (2, count))
        values = rng.random(count).astype(dtype)
        stored[name] = sp.coo_array((values, tuple(coords)), (6, 6))
    stored["b"] = sp.coo_array(rng.random(6).astype(dtype) * (rng.random(6) < 0.4))
    read = {name: each for name, each in stored.items() if f"{name}[" in text.split(" = ")[1]}
    if data.draw(st.booleans()) and "x" in read:
        read["x"] = tp.tensor(read["x"], format="s")
    dense = {
        name: each.toarray() if sp.issparse(each) else each
        for name, each in {**read, "x": stored["x"]}.items()
    }
    expected = tp.evaluate_dense(text, {name: dense[name] for name in read})
    found = tp.evaluate(text, read, format=form)
    coords = found.coords[0] if sp.issparse(found) else found.to_coo()[0][:, 0]
    found = found.toarray() if sp.issparse(found) else found.to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert len(set(coords.tolist())) == len(coords)
