"""Operands that calls make of the user's, beside all else that a call can ask for.

Each call is made three times: planned, by its fast path, and by that with other values of the same
kind; the oracle has the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense

N = 12


def operands(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    A = sp.csr_array(np.where(rng.random((N, N)) < 0.3, np.ceil(rng.random((N, N)) * 8), 0))
    return {
        "A": A,
        "x": np.ceil(rng.random(N) * 8),
        "m": np.ceil(rng.random((N, 1)) * 8),
        "p": rng.permutation(N),
    }


def in_blocks(values: Mapping[str, Any]) -> dict[str, Any]:
    return {n: tp.tensor(o, format=tp.BSR((2, 2))) if n == "A" else o for n, o in values.items()}


def as_they_are(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(values)


SUBSCRIPTS = "y[i] = A[p[i],j] * x[j]"
STRETCHED = "Y[i,j] = A[i,j] * m[i,j]"
SHIFTED = "y[i] = x[i+1] + x[i]"
SEVERAL = "t[i] = A[p[i],j] * x[j]; y[i] = t[i] * x[i]"
STRETCHED_LATER = "t[i,j] = A[i,j] * x[j]; Y[i,j] = t[i,j] * m[i,j]"
SCATTERED = "y[p[i]] = A[i,j] * x[j]"
TEXTS = (SUBSCRIPTS, STRETCHED, SHIFTED, SEVERAL, STRETCHED_LATER, SCATTERED)
ENDS: dict[str, dict[str, Any]] = {SCATTERED: {"shape": N}, SHIFTED: {"border": "fill"}}
CONVERSIONS = (as_they_are, in_blocks)
SEMIRINGS: dict[str, dict[str, Any]] = {
    "plain": {}, "max_plus": {"semiring": "max_plus"}, "masked": {},
}  # fmt: skip


def used(text: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: obj for name, obj in values.items() if f"{name}[" in text}


def shape_of(text: str) -> tuple[int, ...]:
    target = text.split(";")[-1].partition("=")[0]
    return (N,) * (target.count(",") + 1)


def mask_for(text: str, seed: int) -> Any:
    return np.random.default_rng(seed).random(shape_of(text)) < 0.5


@pytest.mark.parametrize("kind", SEMIRINGS)
@pytest.mark.parametrize("convert", CONVERSIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("text", TEXTS)
def test_calls_made_again_have_the_value_of_the_oracle(
    text: str, convert: Callable[[Mapping[str, Any]], dict[str, Any]], kind: str
) -> None:
    if text == SCATTERED and kind != "plain":
        pytest.skip("a scatter under a semiring or a mask is refused: test_semirings has that")
    for seed in (1, 1, 2):
        values = used(text, operands(seed))
        options = {**SEMIRINGS[kind], **ENDS.get(text, {})}
        if kind == "masked":
            options["mask"] = mask_for(text, seed)
        made = convert(values)  # zeros inside of blocks are stored
        result = tp.evaluate(text, made, **options)
        expected = tp.evaluate_dense(text, made, **options)
        if sp.issparse(result):  # SciPy's arrays have no fill value
            expected = np.where(np.isinf(expected), 0, expected)
        np.testing.assert_array_equal(to_dense(result), expected)


@pytest.mark.parametrize("convert", CONVERSIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("text", (SUBSCRIPTS, SEVERAL))
def test_a_mask_beside_subscripts_has_a_fast_path(
    text: str, convert: Callable[[Mapping[str, Any]], dict[str, Any]], monkeypatch: Any
) -> None:
    first, second = (used(text, operands(seed)) for seed in (3, 4))
    tp.evaluate(text, convert(first), mask=mask_for(text, 3))
    made = convert(second)
    if convert is in_blocks:
        made["A"].plain()  # which a Tensor keeps
    monkeypatch.setattr("taco_py.calls.call.texts.by_text.compute_text", pytest.fail)
    result = tp.evaluate(text, made, mask=mask_for(text, 4))
    expected = tp.evaluate_dense(text, second, mask=mask_for(text, 4))
    np.testing.assert_array_equal(to_dense(result), expected)


def test_results_of_several_statements_are_made_in_blocks() -> None:
    values = operands(5)
    text = "B[i,j] = A[i,j] * x[j]; C[i,j] = 2 * B[i,j]"
    formats = {"B": tp.BSR((2, 2)), "C": "csr"}
    for _ in range(2):
        B, C = tp.evaluate(text, in_blocks(used(text, values)), outputs=("B", "C"), format=formats)
        assert str(B.format) == str(tp.BSR((2, 2)))
        expected = values["A"].toarray() * values["x"]
        np.testing.assert_array_equal(B.to_numpy(), expected)
        np.testing.assert_array_equal(to_dense(C), 2 * expected)


def test_one_statement_by_name_runs_over_stored_modes() -> None:
    values, text = in_blocks(operands(6)), "y[i] = A[i,j] * x[j]"
    given = used(text, values)
    assert "A[i0,j0,i1,j1]" in tp.explain(text, given, outputs="y", frontier_budget=0).replace(
        " ", ""
    )
    out = np.zeros(N)
    assert tp.evaluate(text, given, outputs="y", out={"y": out}) is out
    np.testing.assert_array_equal(out, tp.evaluate(text, given))


def test_derivatives_read_blocks_once() -> None:
    values, text = operands(7), "y[i] = A[i,j] * x[j]"
    blocks, ones = in_blocks(used(text, values)), np.ones(N)
    gradient = tp.vjp(text, blocks, wrt="x")(ones)
    expected = tp.vjp(text, used(text, values), wrt="x")(ones)
    np.testing.assert_array_equal(gradient, expected)


def test_sums_of_small_integers_warn_also_over_blocks() -> None:
    A = tp.tensor(sp.csr_array(np.full((4, 4), 100, np.int8)), format=tp.BSR((2, 2)))
    x = np.full(4, 100, np.int8)
    for _ in range(2):
        with pytest.warns(tp.NarrowSumWarning):
            result = tp.einsum("ij,j->i", A, x)
        np.testing.assert_array_equal(to_dense(result), np.einsum("ij,j->i", A.to_numpy(), x))


def test_results_under_masks_stay_on_the_device() -> None:
    values = used(SUBSCRIPTS, operands(8))
    there = {name: tp.device(obj, target="cuda-emulated") for name, obj in values.items()}
    mask = tp.device(mask_for(SUBSCRIPTS, 8).astype(float), target="cuda-emulated")
    result = tp.evaluate(SUBSCRIPTS, there, mask=mask)
    expected = tp.evaluate_dense(SUBSCRIPTS, values, mask=mask_for(SUBSCRIPTS, 8))
    assert type(result).__name__ == "DeviceTensor"
    np.testing.assert_array_equal(result.to_host(), expected)


BOTH = "y[i] = A[i,j] * x[j]; z[i] = 2 * y[i]"
FORMATS = ("csr", "bsr(2,2)", "ell", "dia")


@pytest.mark.parametrize("names", (("y", "z"), ("z", "y")))
@pytest.mark.parametrize("text", (BOTH, BOTH.replace("A[i,j]", "A[p[i],j]")))
def test_results_go_into_the_arrays_of_their_names(text: str, names: tuple[str, ...]) -> None:
    values = used(text, operands(9))
    expected = dict(
        zip(("y", "z"), tp.evaluate_dense(text, values, outputs=("y", "z")), strict=True)
    )
    for form in (*FORMATS, *FORMATS):
        made = {n: tp.tensor(o, format=form) if n == "A" else o for n, o in values.items()}
        out = {name: np.zeros(N) for name in names}
        tp.evaluate(text, made, outputs=("y", "z"), out=out)
        for name, array in out.items():
            np.testing.assert_array_equal(array, expected[name])


def test_an_array_of_none_is_no_array() -> None:
    values, z = used(BOTH, operands(10)), np.zeros(N)
    for _ in range(2):
        y, other = tp.evaluate(BOTH, values, outputs=("y", "z"), out={"y": None, "z": z})
        assert other is z
        np.testing.assert_array_equal(z, 2 * y)
        np.testing.assert_array_equal(tp.evaluate(BOTH, values, out={"z": None}), z)


def test_one_output_in_a_tuple_has_its_modes() -> None:
    for shape in ((2, 3), (0, 3), (4, 5)):
        (result,) = tp.evaluate("B[i,j] = 2 * A[i,j]", A=np.ones(shape), outputs=("B",))
        np.testing.assert_array_equal(result, np.full(shape, 2.0))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("text", ("Y[i,j] = A[p[i],j]", "Y[i,j] = A[i+1,j]", "Y[i,j] = A[2*i,j]"))
def test_rows_of_16_bits_are_gathered(text: str, dtype: str) -> None:
    values = used(text, operands(11))
    half = np.dtype(getattr(ml_dtypes, dtype, dtype))
    A = tp.Tensor.from_numpy(values["A"].toarray().astype(half)).to_format("csr")
    for _ in range(2):
        result = tp.evaluate(text, {**values, "A": A})
        np.testing.assert_array_equal(to_dense(result), tp.evaluate_dense(text, {**values, "A": A}))


@pytest.mark.parametrize("path", ({"y": [(0, 1), (0, 1)]}, [(0, 1), (0, 1)]))
@pytest.mark.parametrize("outputs", (None, "y"))
def test_paths_do_not_count_positions(path: Any, outputs: str | None) -> None:
    text = "y[i] = A[p[i],j] * B[j,k] * x[k]"
    values = {**operands(12), "B": np.ones((N, N))}
    result = tp.evaluate(text, used(text, values), path=path, outputs=outputs)
    np.testing.assert_array_equal(result, tp.evaluate_dense(text, used(text, values)))


def test_numbers_are_operands_of_explicit_contractions() -> None:
    A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for _ in range(2):
        result = tp.einsum("ij,,jk->ik", A, 2.0, B, optimize=[(0, 1), (0, 1)])
        np.testing.assert_array_equal(result, 2 * A @ B)


def test_kernels_of_blocks_take_schedules_by_name_and_positions() -> None:
    values = in_blocks(operands(13))
    text = "y[i] = A[i,j] * x[j]"
    kernel = tp.compile(text, A="bsr(2,2)", x="d", schedule={"y": "reorder(i,j)"})
    np.testing.assert_array_equal(
        kernel(**used(text, values)), tp.evaluate(text, used(text, values))
    )
    kernel = tp.compile(SUBSCRIPTS, A="bsr(2,2)", x="d", p="d")
    given = used(SUBSCRIPTS, values)
    np.testing.assert_array_equal(kernel(**given), tp.evaluate(SUBSCRIPTS, given))


def test_kernels_add_to_the_identity_behind_other_statements() -> None:
    values = operands(14)
    kernel = tp.compile("y[i] = A[i,j] * x[j]; z[i] += y[i]", A="csr", x="d")
    expected = values["A"] @ values["x"]
    for z in (None, np.ones(N)):
        given = {"A": values["A"], "x": values["x"], **({} if z is None else {"z": z})}
        np.testing.assert_array_equal(kernel(**given), expected + (0 if z is None else z))


def test_paths_by_name_are_kept_by_plans_that_are_timed_or_tuned() -> None:
    text = "y[i] = X[i,j] * Y[j,k] * c[k]; z[i] = 2 * y[i]"
    values = {"X": np.ones((6, 7)), "Y": np.ones((7, 8)), "c": np.ones(8)}
    path = {"y": [(0, 1), (0, 1)]}
    tp.tune(text, values, trials=2)
    for schedule in ("measure", "tuned"):
        result = tp.evaluate(text, values, path=path, schedule=schedule)
        np.testing.assert_array_equal(result, np.full(6, 112.0))
    said = tp.explain(text, values, path=path, schedule="tuned", frontier_budget=0)
    assert "contraction of y" not in said
