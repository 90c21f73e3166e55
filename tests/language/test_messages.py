"""What texts, semirings, schedules and masks that are not possible are answered with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

A = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
NONE = A[:, :0]

MISTAKES: tuple[tuple[Callable[[], Any], type[tp.TacoError], str, str], ...] = (
    (
        lambda: tp.Semiring("plus"), tp.NotationError,
        "what it multiplies by, found 'plus' alone", 'tp.Semiring("min", "plus")',
    ),
    (
        lambda: tp.evaluate("y[i] foo= A[i,j]", A=A), tp.NotationError,
        "Expected '=' or another assignment after y, found 'foo'", "min=, max=, and by functions",
    ),
    (
        lambda: tp.evaluate("y[i] mix= A[i,j]", A=A), tp.NotationError,
        "found 'mix'", "did you mean min? assignments accumulate by",
    ),
    (
        lambda: tp.evaluate("y[i] = argmax(j, A[i,j])", A=NONE), tp.DimensionError,
        "Expected elements for argmax over j, found size 0, and no elements have an argmax",
        "leave out what has no j",
    ),
    (
        lambda: tp.evaluate("y[i] = argmin(A[i,j])", A=NONE), tp.DimensionError,
        "Expected elements for argmin over j", "leave out what has no j",
    ),
    (
        lambda: tp.evaluate("y[i] = max(j, A[i,j])", A=NONE), tp.DimensionError,
        "no elements have a max", "as in y[…] max= …",
    ),
    (
        lambda: tp.evaluate("y[i] = argmax(j, A[i,j])", A=A * 1j), tp.OperandTypeError,
        "Expected operands that argmax is defined for", "np.abs(A)",
    ),
    (
        lambda: tp.schedule("y[i] = argmax(j, A[i,j])", A="csr"), tp.NotationError,
        "Expected no numbers of indices here, found argmax", "tp.compile",
    ),
    (
        lambda: tp.schedule("y[i] = mean(j, A[i,j])", A="csr"), tp.NotationError,
        "Expected no numbers of indices here, found mean", "tp.compile",
    ),
    (
        lambda: tp.frontier("y[i] = argmax(j, A[i,j])", A="csr"), tp.ScheduleError,
        "found a reduction by argmax", "tp.explain says how",
    ),
    (
        lambda: tp.frontier("y[i] = A[i,j] * x[j]", semiring="min_plus", A="csr"), tp.ScheduleError,
        "found a reduction by min", "tp.explain says how",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says", "hint"), MISTAKES)
def test_mistakes(call: Callable[[], Any], error: type[tp.TacoError], says: str, hint: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert says in caught.value.message and hint in str(caught.value.hint)


@pytest.mark.parametrize("name", ["coo", "csf", "dense", "csr"])
def test_masks_by_the_names_of_formats(name: str) -> None:
    mask = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    own = {"coo": sp.coo_array(mask), "dense": mask, "csr": sp.csr_array(mask)}
    given = own.get(name, tp.tensor(mask, format="ss"))
    text, B = "C[i,j] = A[i,k] * B[k,j]", sp.csr_array(A.T)
    for make in (lambda each: each, tp.complement):
        kernel = tp.compile(text, A="csr", B="csr", C="dd", mask=make(name))
        wanted = tp.evaluate_dense(text, A=A, B=B, mask=make(given))
        np.testing.assert_array_equal(kernel(A=A, B=B, mask=given), wanted)


@pytest.mark.parametrize("operator", ["+=", "*=", "min=", "max="])
@pytest.mark.parametrize("right", ["A[i,j]", "A[i,j] * x[j]", "x[k] * z[i]", "A[i,j] * x[j+1]"])
def test_kernels_begin_from_nothing_as_evaluate_does(operator: str, right: str) -> None:
    given: dict[str, Any] = {"A": A, "x": np.array([-1.0, 2.0, 3.0]), "z": np.array([1.0, -2.0])}
    given["x"] = given["x"] if "+1" in right else given["x"][:2]
    given = {name: each for name, each in given.items() if f"{name}[" in right}
    for size in (None, 0):
        used = given if size is None or "A" not in given else {**given, "A": A[:0]}
        text = f"y[i] {operator} {right}"
        formats = {name: "csr" if name == "A" else "d" for name in used}
        kernel = tp.compile(text, formats)
        for _ in range(2):
            np.testing.assert_array_equal(kernel(**used), tp.evaluate(text, **used))
        begun = np.full(len(kernel(**used)), 0.5)
        np.testing.assert_array_equal(kernel(y=begun, **used), tp.evaluate(text, y=begun, **used))
