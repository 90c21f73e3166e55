"""The choice of a format: its candidates against a dense oracle, what it refuses, what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from benchmarks.format_matrices import STRUCTURES, draw
from taco_py.calls.call.prepare import prepare_computation
from taco_py.data.convert import convert
from taco_py.data.convert.remap import in_order
from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.printer import program_text
from taco_py.tuning.bench.text_key import keyed_computation
from taco_py.tuning.formats import matrix_sample
from taco_py.tuning.formats.candidate_formats import KINDS, candidates_of
from taco_py.tuning.formats.matrix_sample import MatrixSample

SPMV, SPMM = "y[i] = A[i,j] * x[j]", "y[i,k] = A[i,j] * x[j,k]"
rng = np.random.default_rng(0)


def grid(side: int) -> Any:
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line))


def with_values(matrix: Any, values: Callable[[int], Any]) -> Any:
    rows = sp.csr_array(matrix)
    rows.sum_duplicates()
    rows.sort_indices()
    rows.data = np.asarray(values(rows.nnz))
    return rows


FULL = with_values(sp.kron(grid(12), np.ones((3, 3))), rng.random)
MATRICES = {
    "grid": with_values(grid(20), lambda n: np.ones(n)),
    "blocks": FULL,
    "blocks of 8": with_values(sp.kron(grid(5), np.ones((8, 8))), rng.random),
    "diagonals": sp.diags_array([rng.random(299), rng.random(300)], offsets=[1, 0]).tocsr(),
    "empty rows": sp.random_array((900, 700), density=0.0005, rng=rng).tocsr(),
    "weights": sp.random_array((40, 30), density=0.4, rng=rng).tocsr(),
    "integers": with_values(grid(12), lambda n: np.arange(1, n + 1)),
    "symmetric": sp.csr_array(FULL + FULL.T),
    "one row": sp.random_array((1, 500), density=0.5, rng=rng).tocsr(),
    "nothing": sp.csr_array((5, 6)),
}


def candidates(matrix: Any) -> tuple[Any, Any]:
    rows = in_order(convert(as_data(matrix), tp.CSR))
    return rows, candidates_of(MatrixSample(rows), finite=True)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("columns", [1, 3, 8])
def test_products_in_each_candidate_are_those_of_the_dense_oracle(name: str, columns: int) -> None:
    matrix = MATRICES[name]
    shape = (matrix.shape[1],) if columns == 1 else (matrix.shape[1], columns)
    x = rng.integers(1, 9, shape).astype(matrix.dtype)
    text = SPMV if columns == 1 else SPMM
    rows, found = candidates(matrix)
    expected = matrix.toarray() @ x
    for candidate in found:
        stored = Tensor(rows).to_format(candidate.format)
        form = "d" * len(shape) if candidate.lists else None
        result = tp.evaluate(text, A=stored, x=x, format=form)
        assert isinstance(result, np.ndarray), str(candidate.format)
        np.testing.assert_allclose(result, expected, err_msg=str(candidate.format))


def test_each_kind_of_storage_is_a_candidate_of_some_matrix() -> None:
    kinds = {one.kind for matrix in MATRICES.values() for one in candidates(matrix)[1]}
    assert kinds == {*KINDS}


@pytest.mark.parametrize("name", MATRICES)
def test_no_candidate_of_any_operand_changes_a_product_with_infinities(name: str) -> None:
    matrix = MATRICES[name]
    x = np.ones(matrix.shape[1], matrix.dtype)
    if matrix.dtype.kind == "f":
        x[::3] = np.inf
    rows, found = candidates(matrix)
    expected = tp.evaluate(SPMV, A=Tensor(rows), x=x)
    for candidate in found:
        stored = Tensor(rows).to_format(candidate.format)
        data = getattr(stored, "stored", stored).data
        if not candidate.finite and candidate.is_exact(data, rows.nnz):
            form = "d" if candidate.lists else None
            result = tp.evaluate(SPMV, A=stored, x=x, format=form)
            np.testing.assert_allclose(result, expected, err_msg=str(candidate.format))


def test_blocks_that_are_not_full_are_candidates_of_finite_operands_alone() -> None:
    matrix = with_values(grid(100), rng.random)
    usual, finite = (
        {str(one.format) for one in tp.choose_format(matrix, finite=flag).expected}
        for flag in (False, True)
    )
    assert "BSR(2,2)" in finite - usual and "SDIA(8)" in usual
    integers = with_values(grid(100), lambda n: np.arange(n))
    assert "BSR(2,2)" not in {str(one.format) for one in tp.choose_format(integers).expected}


def test_symmetric_but_for_one_entry_outside_of_the_sample() -> None:
    matrix = with_values(grid(400), lambda n: np.full(n, 2.0))
    matrix.data[:] = 1.0 + (np.arange(matrix.nnz) % 2 == 5)
    matrix.data[matrix.indptr[7] + 1] = 3.0
    choice = tp.choose_format(matrix, calls=10**6, threads=1)
    assert str(choice.format) != "SYM"
    x = rng.random(matrix.shape[1])
    stored = tp.tensor(matrix, format="auto")
    np.testing.assert_allclose(tp.evaluate(SPMV, A=stored, x=x), matrix @ x)


def test_the_plan_parses_back_and_is_carried_out() -> None:
    x = rng.random((FULL.shape[1], 8))
    choice = tp.choose_format(FULL, SPMM, x=x, calls=10**5, threads=1)
    assert program_text(parse_program(choice.plan)) == choice.plan
    operands = {"A": choice.tensor, "x": x}
    computation = keyed_computation(SPMM, operands, {"threads": 1, **choice.options})
    planned = computation.with_options(replace(computation.options, plan=choice.plan))
    again = program_text(prepare_computation(planned).plan.program)
    assert again == choice.plan
    result = tp.evaluate(SPMM, A=choice.tensor, x=x, **choice.options)
    np.testing.assert_allclose(result, FULL @ x)


def test_a_conversion_has_to_pay() -> None:
    blocks = with_values(sp.kron(grid(40), np.ones((6, 6))), rng.random)
    assert tp.choose_format(blocks, calls=1).format == tp.CSR
    many = tp.choose_format(blocks, calls=10**6)
    assert str(many.format).startswith("BSR"), str(many)
    for expected in many.expected:
        low, middle, high = expected.gain
        assert 0 < low <= middle <= high
        assert expected.seconds > 0 and expected.conversion >= 0
    savings = [expected.saving for expected in many.expected]
    assert savings == sorted(savings, reverse=True)
    assert "times as fast as CSR" in many.reason


def test_rows_left_out_are_for_texts_whose_results_are_dense() -> None:
    matrix = sp.random_array((300_000, 300_000), density=1e-6, rng=rng).tocsr()
    x = rng.random(300_000)
    choice = tp.choose_format(matrix, SPMV, x=x, threads=1)
    assert str(choice.format) in ("ss", "uq") and choice.options == {"format": "d", "threads": 1}
    result = tp.evaluate(SPMV, A=choice.tensor, x=x, **choice.options)
    np.testing.assert_allclose(result, matrix @ x)
    stored = tp.tensor(matrix, format="auto")
    assert isinstance(tp.evaluate(SPMV, A=stored, x=x), np.ndarray)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("y[j] = A[i,j] * x[i]", "does not sum over the columns"),
        ("y[i] = exp(A[i,j]) * x[j]", "not linear"),
        ("y[i] = A[i,j] * A[i,j] * x[j]", "not linear"),
        ("z[i] = A[i,j] * x[j]; y[i] = z[i] * x[i]", "several statements"),
    ],
)
def test_texts_that_are_no_products_keep_the_format(text: str, why: str) -> None:
    choice = tp.choose_format(grid(60), text, x=np.ones(3600))
    assert choice.format == tp.CSR and why in choice.reason and choice.plan


X = np.ones(300)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "calls": (lambda: tp.choose_format(FULL, calls=0), "a positive number of calls, found 0"),
    "no calls": (lambda: tp.choose_format(FULL, calls=2.5), "found 2.5"),
    "threads": (lambda: tp.choose_format(FULL, threads=0), "found 0"),
    "price": (lambda: tp.choose_format(FULL, price="learnd"), "'analytic', 'learned' or a model"),
    "finite": (lambda: tp.choose_format(FULL, finite=1), "True or False, found 1"),  # type: ignore[arg-type]
    "no text": (lambda: tp.choose_format(FULL, x=X), "Expected a text for the operand x"),
    "no matrix": (lambda: tp.choose_format(FULL, "y[i] = x[i]", x=X), "the matrix, found none"),
    "two matrices": (lambda: tp.choose_format(FULL, SPMV), "found A, x"),
    "unread": (lambda: tp.choose_format(FULL, SPMV, x=X, z=X), "found z, which it does not read"),
    "sizes": (lambda: tp.choose_format(FULL, SPMV, x=X), "Expected one size for index j"),
    "a text": (lambda: tp.choose_format(FULL, "y[i] = = x[j]", x=X), "found '='"),
    "no string": (lambda: tp.choose_format(FULL, 3, x=X), "as a string, found int"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(tp.TacoError, match=message):
        call()


def test_choosing_times_nothing_and_compiles_no_product(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = MATRICES["grid"]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a clock is read, or a kernel is built")

    tp.choose_format(matrix)
    for clock in ("perf_counter", "thread_time", "process_time", "perf_counter_ns"):
        monkeypatch.setattr(time, clock, refuse)
    monkeypatch.setattr(KERNELS, "get_or_build", refuse)
    tp.choose_format(matrix)


def test_a_sample_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    count = matrix_sample.count_distinct

    def counting(outer: Any, inner: Any) -> int:
        counted.append(len(outer))
        return count(outer, inner)

    monkeypatch.setattr(matrix_sample, "count_distinct", counting)
    tp.choose_format(with_values(grid(700), rng.random))
    assert counted and max(counted) <= 2 * matrix_sample.SAMPLE
    assert len(counted) < 20


@pytest.mark.parametrize("number", range(len(STRUCTURES)))
def test_any_drawn_matrix_has_a_choice(number: int) -> None:
    _, matrix = draw(number)
    if matrix.nnz > 200_000:
        matrix = matrix[: matrix.shape[0] // 16]
    choice = tp.choose_format(matrix)
    stored = tp.tensor(matrix, format="auto")
    assert str(choice.format) == str(stored.format)
    x = rng.random(matrix.shape[1])
    np.testing.assert_allclose(tp.evaluate(SPMV, A=stored, x=x), matrix @ x, rtol=1e-4, atol=1e-4)


def test_one_value_is_kept_without_a_copy_of_coordinates() -> None:
    rows = in_order(convert(as_data(MATRICES["grid"]), tp.CSR))
    stored = convert(rows, tp.Format.parse("de"))
    assert stored.values.tolist() == [1.0] and stored.levels[1].crd is rows.levels[1].crd
    np.testing.assert_array_equal(Tensor(stored).to_numpy(), MATRICES["grid"].toarray())


def test_patterns_are_priced_by_their_entries() -> None:
    """They were priced as one entry, and copied into another order at each call."""
    matrix = with_values(sp.random_array((20_000, 300), density=0.05, rng=rng), np.ones)
    x = rng.random(300)
    plans = []
    for form in ("csr", "pattern"):
        stored = tp.tensor(matrix, format=form)
        plans.append(str(tp.explain(SPMV, A=stored, x=x, threads=1, frontier_budget=0)))
    assert all("loop order  i,j" in plan for plan in plans)


@pytest.mark.parametrize("source", ["de", "se", "de:1,0"])
@pytest.mark.parametrize("target", ["ds", "ds:1,0", "ss:1,0", "uq", "dd", "sdia(8)"])
def test_patterns_are_converted(source: str, target: str) -> None:
    for matrix in (MATRICES["grid"], sp.csr_array((4, 5))):
        stored = tp.tensor(matrix, format=source).to_format(target)
        np.testing.assert_array_equal(stored.to_numpy(), matrix.toarray())


# ---------------------------------------------------------------- infinities beside padding

HOLES = sp.kron(sp.eye_array(3000), np.triu(np.ones((4, 4)), -2)).tocsr()
HOLES.eliminate_zeros()
X = np.ones(12000)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float64])
@pytest.mark.parametrize("price", ["learned", "analytic"])
def test_padding_meets_no_infinity_of_an_operand(dtype: type, price: str) -> None:
    matrix, x = HOLES.astype(dtype), X.copy()
    x[::5], x[1::7] = np.inf, np.nan
    text = "y[i] = A[i,j] * x[j]"
    choice = tp.choose_format(matrix, text, x=x, calls=10**6, price=price)
    stored = tp.tensor(matrix, format="auto")
    for format in (choice.tensor, stored):
        found = tp.evaluate(text, A=format, x=x, format="d")
        np.testing.assert_array_equal(found, matrix.astype(float) @ x)


@pytest.mark.parametrize("text", ["y[i] = A[i,j] / x[j]", "y[i] = A[i,j] * exp(x[j])"])
def test_finite_operands_of_other_texts_make_infinities(text: str) -> None:
    x = X.copy()
    x[3], x[7] = (0.0, 1.0) if "/" in text else (1.0, 1e4)
    choice = tp.choose_format(HOLES, text, x=x, calls=10**6, finite=True)
    found = tp.evaluate(text, A=choice.tensor, x=x, **choice.options)
    np.testing.assert_array_equal(found, tp.evaluate(text, A=HOLES, x=x))


def test_texts_of_integers_may_have_padding() -> None:
    matrix, x = HOLES.astype(np.int64), np.ones(12000, np.int64)
    choice = tp.choose_format(matrix, "y[i] = A[i,j] * x[j]", x=x, calls=10**6)
    assert choice.format.name.startswith("BSR")
    found = tp.evaluate("y[i] = A[i,j] * x[j]", A=choice.tensor, x=x)
    np.testing.assert_array_equal(found, matrix @ x)


def test_other_tensors_keep_their_format() -> None:
    cube = tp.tensor(np.ones((4, 4, 4)), format="sss")
    assert tp.tensor(np.ones(3), format="auto").format == tp.choose_format(np.ones(3)).format
    assert cube.to_format("auto").format == cube.format
    with pytest.raises(tp.OperandError, match="Expected 3 indices for B"):
        tp.choose_format(cube, "y[i] = B[i,j] * x[j]", x=np.ones(4))


def test_operands_may_have_names_of_parameters() -> None:
    text, operands = "y[i] = B[i,j] * calls[j]", {"calls": X}
    assert tp.choose_format(HOLES, text, operands).format == tp.CSR
    assert tp.choose_format(HOLES, "y[i] = B[i,j] * A[j]", A=X).format == tp.CSR
    with pytest.raises(tp.OperandError, match="operands by their names"):
        tp.choose_format(HOLES, text, [X])  # type: ignore[arg-type]
    assert tp.choose_format(HOLES, calls=10**400).format is not None
