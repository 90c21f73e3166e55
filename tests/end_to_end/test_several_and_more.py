"""Several statements beside all else that a call can ask for: one value, however it is asked.

What each case must give is what calls of single statements give, one after the other.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense
from tests.pairs.verbs import dense
from tests.test_export import build

CHAIN = ("t[i] = A[i,j] * x[j]", "y[i] = t[i] + b[i]")
PRODUCTS = ("T[i,k] = A[i,j] * B[j,k]", "C[i,k] = T[i,k] * D[i,k]")
SEMIRINGS = {
    "min_plus": np.inf, "max_plus": -np.inf, "max_times": -np.inf, "plus_times": 0, "or_and": 0,
}  # fmt: skip
"""Semirings and their zeros, which SciPy's arrays do not store."""
TARGETS = ("c", "cuda-emulated")


def matrix(rng: np.random.Generator, rows: int = 7, columns: int = 5) -> sp.csr_array:
    found = sp.random_array((rows, columns), density=0.4, format="csr", rng=rng)
    found.data = np.ceil(found.data * 8)
    return found


def operands(seed: int = 3, stored: str = "csr") -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    A = matrix(rng)
    numbers = {name: np.ceil(rng.random(shape) * 8) for name, shape in SHAPES.items()}
    return {"A": A if stored == "csr" else tp.tensor(A), **numbers}


SHAPES = {"x": 5, "b": 7, "B": (5, 4), "D": (7, 4)}


def only(given: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {name: each for name, each in given.items() if f"{name}[" in text}


def one_after_the_other(
    statements: tuple[str, ...], given: Mapping[str, Any], last: Mapping[str, Any], **options: Any
) -> Any:
    """The value of the last statement; `last` are options of that alone."""
    known, result = dict(given), None
    for number, text in enumerate(statements):
        more = last if number == len(statements) - 1 else {}
        result = tp.evaluate(text, only(known, text.partition("=")[2]), **options, **more)
        known[text.partition("[")[0].partition(" ")[0]] = result
    return result


def masks(shape: tuple[int, ...]) -> dict[str, Any]:
    places = np.random.default_rng(5).random(shape) < 0.5
    found: dict[str, Any] = {"none": None, "dense": places, "complement": tp.complement(places)}
    if len(shape) == 2:
        found["sparse"] = sp.csr_array(places.astype(float))
    return found


# ---------------------------------------------------------------- semirings and masks


@pytest.mark.parametrize("stored", ["csr", "tensor"])
@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("statements", [CHAIN, PRODUCTS], ids=["chain", "products"])
def test_semirings_and_masks(statements: tuple[str, ...], semiring: str, stored: str) -> None:
    text = "; ".join(statements)
    given = only(operands(stored=stored), text)
    if semiring == "or_and":
        given = {name: each != 0 for name, each in given.items() if name != "A"} | {
            "A": tp.tensor(operands()["A"] != 0) if stored == "tensor" else operands()["A"] != 0
        }
    for mask in masks((7,) if statements is CHAIN else (7, 4)).values():
        zero = SEMIRINGS[semiring]
        wanted = one_after_the_other(statements, given, {"mask": mask}, semiring=semiring)
        wanted = dense(wanted, zero)
        options = {"semiring": semiring, "mask": mask}
        assert tp.explain(text, given, **options)
        for _ in range(2):
            found = dense(tp.evaluate(text, given, **options), zero)
            np.testing.assert_array_equal(found, wanted)
        oracle = tp.evaluate_dense(text, given, **options)
        np.testing.assert_array_equal(oracle, wanted)


def test_results_keep_what_a_mask_leaves_out() -> None:
    given = only(operands(), "A[ x[ b[")
    text, mask = "; ".join(CHAIN), np.arange(7) % 2 == 0
    wanted = np.where(mask, tp.evaluate(text, given, semiring="min_plus"), 9.0)
    out = np.full(7, 9.0)
    assert tp.evaluate(text, given, semiring="min_plus", mask=mask, out=out) is out
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("semiring", ["min_plus", "max_times"])
def test_kernels_over_semirings(semiring: str) -> None:
    given, text = only(operands(), "A[ x[ b["), "; ".join(CHAIN)
    mask = np.arange(7) % 3 == 0
    types = dict.fromkeys("Axb", "float64")
    kernel = tp.compile(text, A="csr", x="d", b="d", semiring=semiring, mask="d", dtypes=types)
    wanted = tp.evaluate(text, given, semiring=semiring, mask=mask)
    for each in (kernel, pickle.loads(pickle.dumps(kernel))):
        for _ in range(2):
            found = each(**given, mask=mask.astype(float))
            np.testing.assert_array_equal(found, wanted)


def test_operands_that_are_missing_or_not_needed_under_a_semiring() -> None:
    given = only(operands(), "A[ x[ b[")
    without = {name: each for name, each in given.items() if name != "b"}
    with pytest.raises(tp.OperandError, match="Expected an operand b"):
        tp.evaluate("; ".join(CHAIN), without, semiring="min_plus")
    text, wanted = f"{'; '.join(CHAIN)}; z[i] = q[i] * 2", tp.evaluate("; ".join(CHAIN), given)
    options = {"outputs": "y", "semiring": "plus_times", "mask": np.ones(7, bool)}
    np.testing.assert_array_equal(tp.evaluate(text, given, **options), wanted)
    formats = {"A": "csr", "x": "d", "b": "d"}
    kernel = tp.compile(text, formats, outputs="y", semiring="min_plus")
    chain = tp.evaluate("; ".join(CHAIN), given, semiring="min_plus")
    np.testing.assert_array_equal(kernel(**given), chain)


def test_one_output_of_a_tuple_keeps_what_its_mask_leaves_out() -> None:
    given, mask, out = only(operands(), "A[ x[ b["), np.arange(7) % 2 == 0, np.full(7, 9.0)
    text = f"{'; '.join(CHAIN)}; z[i] = y[i] * 2"
    (found,) = tp.evaluate(text, given, outputs=("y",), out={"y": out}, mask=mask)
    wanted = np.where(mask, tp.evaluate("; ".join(CHAIN), given), 9.0)
    np.testing.assert_array_equal(found, wanted)
    assert found is out


def test_einsum_takes_the_schedule_of_its_result() -> None:
    given = operands()
    report = tp.explain("ij,j->i", given["A"], given["x"], schedule={"out": "serial()"})
    assert "one thread was asked for" in report
    with pytest.raises(tp.ScheduleError, match="Expected schedule= of out, found one of y"):
        tp.einsum("ij,j->i", given["A"], given["x"], schedule={"y": "serial()"})


def test_derivatives_under_a_mask_of_several_statements() -> None:
    given, text = only(operands(), "A[ x[ b["), "t[i] = A[i,j] * x[j]; y[i] = t[i] * t[i]"
    del given["b"]
    mask = np.arange(7) % 2 == 0
    found = tp.vjp(text, given, wrt="x", mask=mask)(np.ones(7))
    product = given["A"] @ given["x"]
    np.testing.assert_allclose(found, given["A"].T @ (2 * product * mask))


# ---------------------------------------------------------------- 16 bits


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("half", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_each_statement_rounds_to_16_bits(half: Any, target: str) -> None:
    rng = np.random.default_rng(4)
    given = {"A": tp.tensor(matrix(rng)).astype(half), "x": rng.random(5).astype(half)}
    statements = (
        "t[i] = A[i,j] * x[j]", "u[i] = exp(t[i] / 10)", "y[i] = u[i] + t[i] * t[i]", "s = y[i]",
    )  # fmt: skip
    wanted = one_after_the_other(statements, given, {})
    before = one_after_the_other(statements[:-1], given, {})
    text, options = "; ".join(statements), {"outputs": ("y", "s"), "target": target}
    assert f"rounds    y to {np.dtype(half)}" in tp.explain(text, given, **options)
    kernel = tp.compile(text, A="csr", x="d", dtypes=half, **options)
    for _ in range(2):
        for found in (tp.evaluate(text, given, **options), kernel(**given)):
            assert found[0].dtype == half
            np.testing.assert_array_equal(found[0], before)
            assert found[1] == wanted


# ---------------------------------------------------------------- schedules and paths by name


@pytest.mark.parametrize(
    "schedule",
    [
        {"T": "reorder(k,i,j)"},
        {"T": "split(i,i0,i1,2)", "C": "serial()"},
        {"C": "reorder(k,i)"},
        {"T": "parallelize(i)"},
    ],
    ids=str,
)
def test_schedules_by_name(schedule: dict[str, str]) -> None:
    text = "; ".join(PRODUCTS)
    given = only(operands(), text)
    wanted = tp.evaluate(text, given)
    for _ in range(2):
        found = tp.evaluate(text, given, schedule=schedule)
        np.testing.assert_array_equal(found, wanted)
    formats = {"A": "csr", "B": "dd", "D": "dd"}
    kernel = tp.compile(text, formats, schedule=schedule)
    np.testing.assert_array_equal(kernel(**given), wanted)
    assert "one thread was asked for" in tp.explain(text, given, schedule={"C": "serial()"})


def test_one_statement_takes_commands_by_its_name() -> None:
    given = only(operands(), CHAIN[0])
    for schedule in ({"t": "serial()"}, "serial()"):
        report = tp.explain(CHAIN[0], given, schedule=schedule, frontier_budget=0)
        assert "one thread was asked for" in report


def test_a_path_by_name() -> None:
    text = "Y[i,l] = A[i,j] * B[j,k] * E[k,l]; s[i] = Y[i,l]"
    given = {**only(operands(), "A[ B["), "E": np.ones((4, 3))}
    for path in ([(1, 2), (0, 1)], [(0, 1), (0, 1)]):
        found = tp.evaluate(text, given, path={"Y": path})
        np.testing.assert_allclose(found, tp.evaluate(text, given))


# ---------------------------------------------------------------- kernels


def test_kernels_of_subscripts_in_several_statements() -> None:
    text = "d[i] = x[i+1] - v[i]; y[j] = d[j] * w[p[j]]"
    x, w, p = np.arange(6.0) ** 2, np.arange(4.0), np.array([3, 1, 0, 2, 2])
    given = {"x": x, "v": np.arange(5.0), "w": w, "p": p}
    kernel = tp.compile(text, dict.fromkeys(given, "d"), outputs=("d", "y"))
    wanted = tp.evaluate(text, given, outputs=("d", "y"))
    assert "d[i]" in kernel.explain()
    for each in (kernel, pickle.loads(pickle.dumps(kernel))):
        for _ in range(2):
            for one, other in zip(each(**given), wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def test_kernels_in_blocks_of_several_statements() -> None:
    rng, text = np.random.default_rng(6), "t[i] = A[i,j] * x[j]; y[i] = t[i] * 2"
    blocks = np.kron(rng.integers(0, 2, (3, 2)), np.ones((2, 2)))
    A, x = sp.bsr_array(blocks, blocksize=(2, 2)), rng.random(4)
    kernel = tp.compile(text, A=tp.BSR((2, 2)), x="d")
    np.testing.assert_allclose(kernel(A=A, x=x), 2 * blocks @ x)
    assert "is converted from" in kernel.explain()


EXPORTED = {
    "several": ("t[i] = A[i,j] * x[j]; s = t[i] * t[i]", {"A": "csr", "x": "d"}, ("t", "s")),
    "subscripts": ("y[i] = z[i+1] * w[i]", {"z": "d", "w": "d"}, None),
    "blocks": ("y[i] = A[i,j] * x[j]", {"A": "bsr(1,1)", "x": "d"}, None),
}


@pytest.mark.parametrize("case", EXPORTED)
def test_what_compiles_is_exported(case: str, tmp_path: Path) -> None:
    text, formats, outputs = EXPORTED[case]
    kernel = tp.compile(text, formats, outputs=outputs)
    more = {"z": np.arange(5.0), "w": np.arange(1.0, 5.0)}
    given = only({**operands(), **more}, text)
    if case == "blocks":
        given["A"] = tp.tensor(given["A"], format="bsr(1,1)")
    printed = build(kernel.export(tmp_path, given))
    wanted = kernel(**given)
    results = wanted if outputs else (wanted,)
    names = outputs or [next(name for name in printed if name.startswith("y"))[: -len("_vals")]]
    for name, result in zip(names, results, strict=True):
        np.testing.assert_allclose(printed[f"{name}_vals"], np.ravel(result))


def test_formats_of_which_no_example_is_made_up_ask_for_one(tmp_path: Path) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A="dia", x="d")
    with pytest.raises(tp.OperandError, match="found none made up for A"):
        kernel.export(tmp_path)


@pytest.mark.parametrize(
    "dtypes", ["float32", dict.fromkeys("Axy", "float32")], ids=["one", "each"]
)
def test_types_of_what_kernels_in_blocks_add_to(dtypes: Any) -> None:
    A = sp.bsr_array(np.eye(4, dtype=np.float32), blocksize=(2, 2))
    x = np.arange(4, dtype=np.float32)
    kernel = tp.compile("y[i] += A[i,j] * x[j]", A=tp.BSR((2, 2)), x="d", y="d", dtypes=dtypes)
    np.testing.assert_array_equal(kernel(A=A, x=x, y=x), 2 * x)


def test_structure_and_values_of_several_results() -> None:
    text = "S[i,j] = A[i,j] * 2; R[i,j] = S[i,j] * S[i,j]"
    given = only(operands(stored="tensor"), "A[")
    kernel = tp.compile(text, A="csr", outputs=("S", "R"))
    patterns = kernel.assemble(**given)
    for found, wanted in zip(kernel.compute(patterns, **given), kernel(**given), strict=True):
        np.testing.assert_array_equal(to_dense(found), to_dense(wanted))
