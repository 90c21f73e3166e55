"""Integers wrap where operands store nothing as they do elsewhere: all as NumPy on dense arrays."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import taco_py as tp

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = (*INTEGERS, "bool")
FORMATS = ("dense", "csr", "csc", "coo")
UNARY = ("~{}", "-{}", "abs({})", "({} << 1)", "({} << 9)", "({} >> 1)", "({} // 3)", "({} % 7)")
ONE_LITERAL = ("({} - 1)", "({} + 100)", "({} * 99)", "({} & 6)", "({} | 65)", "({} ^ 1)")
MIXED = ("({} - {})", "({} + {})", "({} * {})", "max({}, {})", "min({}, {})", "({} & {})")
RELATIONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
LAST = (
    "{}", "{} / 3", "{} * 1.5", "not {}", *(f"{{}} {each} {{}}" for each in RELATIONS),
    *(f"{{}} {each} {number}" for each in RELATIONS for number in (0, 200, 300, -1, 2**63)),
    "where({} > 9, {}, {})",
)  # fmt: skip
NAMES = {
    "max": np.maximum, "min": np.minimum, "where": np.where, "logical_not": np.logical_not,
}  # fmt: skip
EXTREMES = np.array([2**63 - 1, -1, 0, 2**53 + 1, 5, -(2**63) + 1, 2**53, 0])
POSITIVE = np.array([2**63, 2**64 - 1, 0, 2**53, 5, 2**63, 2**53 + 1, 1], np.uint64)


def numbers(dtype: str, rng: np.random.Generator) -> Any:
    """Numbers of the whole range, most of them 0 or next to it or to the ends."""
    if dtype == "bool":
        return rng.random((4, 5)) < 0.4
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.max, 1, 2, limits.max // 2]
    found = rng.choice(np.array(ends, dtype), (4, 5))
    return np.where(rng.random((4, 5)) < 0.4, found, np.zeros((), dtype))


def stored(array: Any, form: str) -> Any:
    return array if form == "dense" else getattr(sp, f"{form}_array")(array)


def by_numpy(text: str, arrays: dict[str, Any]) -> Any:
    """What NumPy makes of a right-hand side on dense arrays. Raises TypeError as NumPy does."""
    code = re.sub(r"not (.*)", r"logical_not(\1)", text.replace("[i,j]", ""))
    with np.errstate(all="ignore"):
        return eval(code, {**NAMES, **arrays})


def require_numpys(text: str, arrays: dict[str, Any], operands: dict[str, Any]) -> None:
    """Compare the number and type of each element of a result, and its fill value."""
    wanted = by_numpy(text, arrays)
    for compute in (tp.evaluate, tp.evaluate_dense):
        found = compute(f"y[i,j] = {text}", operands)
        result = found if isinstance(found, np.ndarray) else found.toarray()
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)
    tensors = {n: tp.tensor(each) if sp.issparse(each) else each for n, each in operands.items()}
    found = tp.evaluate(f"y[i,j] = {text}", tensors)
    if isinstance(found, np.ndarray):
        np.testing.assert_array_equal(found, wanted)
        return
    np.testing.assert_array_equal(found.to_numpy(), wanted)
    zeros = {name: np.zeros((1, 1), array.dtype) for name, array in arrays.items()}
    np.testing.assert_array_equal(found.fill_value, by_numpy(text, zeros).item())


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    if not depth or draw(st.booleans()):
        return draw(st.sampled_from(("A[i,j]", "B[i,j]")))
    form = draw(st.sampled_from((*UNARY, *ONE_LITERAL, *ONE_LITERAL, *MIXED)))
    return form.format(*(draw(expressions(depth - 1)) for _ in range(form.count("{}"))))


@st.composite
def texts(draw: st.DrawFn) -> str:
    form = draw(st.sampled_from(LAST))
    first = draw(st.sampled_from(ONE_LITERAL)).format(draw(expressions()))
    others = [draw(expressions()) for _ in range(form.count("{}") - 1)]
    return form.format(first, *others)


@given(texts(), *(st.sampled_from(each) for each in (DTYPES, DTYPES, FORMATS, FORMATS)),
       st.integers(0, 2**16))  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_random_expressions(
    text: str, first: str, second: str, left: str, right: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    both = {"A": numbers(first, rng), "B": numbers(second, rng)}
    arrays = {name: array for name, array in both.items() if f"{name}[" in text}
    forms = {"A": left, "B": right}
    try:
        by_numpy(text, arrays)
    except (TypeError, OverflowError):  # of floats, of truths, or a literal that does not fit
        assume(False)
    require_numpys(text, arrays, {n: stored(array, forms[n]) for n, array in arrays.items()})


@pytest.mark.rotating(3)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("(A[i,j] - 1) > 0", "uint8"), ("(A[i,j] - 1) // 2", "uint64"), ("~A[i,j] > 3", "uint16"),
        ("(A[i,j] - 1) * 1.5", "uint32"), ("((A[i,j] + 1) << 7) << 1", "uint8"),
        ("max((A[i,j] - 1), 3)", "uint64"), ("abs(A[i,j] - 100 - 100) > 9", "int8"),
        ("(A[i,j] + 100 + 100) / 3", "int8"), ("(A[i,j] - 1) & 7", "uint64"),
        ("~A[i,j] == True", "bool"), ("(A[i,j] + 200 + 56) * 2.0", "uint8"),
        ("where((A[i,j] - 1) > 100, 1, A[i,j])", "uint8"),
    ],
)  # fmt: skip
def test_what_wraps_is_read_as_what_it_wraps_to(text: str, dtype: str, form: str) -> None:
    array = numbers(dtype, np.random.default_rng(3))
    require_numpys(text, {"A": array}, {"A": stored(array, form)})


@pytest.mark.parametrize(
    "text", ["t[i,j] = A[i,j] - 1; y[i,j] = t[i,j] > 9", "y[i] = max(j, A[i,j] - 1)"]
)
def test_statements_and_reductions_read_it_too(text: str) -> None:
    array = numbers("uint8", np.random.default_rng(4))
    below = array - np.uint8(1)
    for form in ("csr", "coo"):
        found = tp.evaluate(text, A=tp.tensor(stored(array, form)))
        result = found if isinstance(found, np.ndarray) else found.to_numpy()
        np.testing.assert_array_equal(result, below > 9 if "t" in text else below.max(axis=1))


def test_what_wraps_to_zero_is_sparse() -> None:
    """A[i,j] + 200 + 56 is 0 in uint8 where nothing is stored."""
    found = tp.evaluate("y[i,j] = A[i,j] + 200 + 56", A=sp.csr_array(np.eye(5, dtype=np.uint8)))
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), np.eye(5))


@pytest.mark.rotating(3)
@pytest.mark.parametrize("signed", ["int8", "int64"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_signed_with_unsigned_integers_of_64_bits(relation: str, signed: str) -> None:
    """They are compared as they are, where float64 has not all of them."""
    arrays = {"A": np.resize(EXTREMES, (3, 8)).astype(signed), "B": np.resize(POSITIVE, (3, 8))}
    for left, right in (("dense", "dense"), ("csr", "dense"), ("csc", "csr"), ("dense", "coo")):
        operands = {"A": stored(arrays["A"], left), "B": stored(arrays["B"], right)}
        require_numpys(f"A[i,j] {relation} B[i,j]", arrays, operands)
        require_numpys(f"(B[i,j] - 1) {relation} A[i,j]", arrays, operands)
    found = tp.evaluate(f"y[i] = sum(j, A[i,j] {relation} B[i,j])", operands)
    np.testing.assert_array_equal(found, RELATIONS[relation](*arrays.values()).sum(axis=1))


@pytest.mark.rotating(4)
@pytest.mark.parametrize("number", [300, -1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_literals_that_a_type_has_not_are_compared(dtype: str, number: int) -> None:
    array = numbers(dtype, np.random.default_rng(5))
    for form in ("dense", "csr"):
        for relation in ("<", "==", ">="):
            operands = {"A": stored(array, form)}
            require_numpys(f"A[i,j] {relation} {number}", {"A": array}, operands)
            require_numpys(f"{number} {relation} A[i,j]", {"A": array}, operands)
