"""What is refused, in which words, and where the carets point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.affine.bounds import check_inside

TEXTS = [
    ("A[i*j] = 1", "found i * j in the access A[i*j]", "i*j"),
    ("A[i[j]] = 1", "found i[j] in the access A[i[j]]", "i[j]"),
    ("for i in n*m: x[i] = 1", "found n * m in a range", "n*m"),
    ("x[i] *= 2", "Expected '=', '+=' or '-=' after x, found '*='", "*="),
    ("x[i] = 2 x[i]", "hint: write * for a product", "x"),
    ("x[i] = foo(x[i])", "one of sqrt, min, max, and no call of foo", "("),
    ("x[i] = min(x[i])", "Expected 2 arguments of min, found 1", "min(x[i])"),
    ("y[i] = A[i,j] * x[j]", "Expected the indices of y in what it becomes, found j", None),
    ("for i in N: for i in N: x[i] = 1", "rename the inner one, for instance to i2", None),
    ("for i in j: for j in N: x[j] = i2[i]", "found j, the index of this loop", None),
    ("for i in N: x[i] = i", "Expected an array, found i, which is an index elsewhere", "i"),
    ("x[i] = A[i,i] + A[i]", "Expected A with 2 subscripts", "A[i]"),
    ("for i: x[0] = 1", "Expected a subscript that ends the loop over i, found none", None),
    ("for t in T:\nx[i] = 1", "Expected statements after `for t`, found none", None),
    ("x[i] = 1\n  y[i] = 1", "another indentation", None),
    ("", "found an empty text", None),
    ("x[i] = 'a'", 'found "\'"', "'"),
    ("x[i] == 1", "found '=='", "=="),
    ("x[i = 1", "found 'i = 1' in the access x[i = 1", None),
    ("for i in 9223372036854775806..N: x[0] += 1", "2^31 in a range", "9223372036854775806"),
    ("x[4*i - 2*(2147483648 + i)] = 1", "2^31 in the access x[4*i", "4*i - 2*(2147483648 + i)"),
    ("x[i] = 36893488147419103232", "fits 64 bits", "36893488147419103232"),
    pytest.param("x[i] = " + "9" * 5000, "(5000 characters)", None, id="digits"),
    pytest.param("x[" + "-" * 5000 + "i] = 1", "(5001 characters)", None, id="signs"),
    ("for i in N x[i] = 1", "Expected ':' after the range of `for i`, found none", "N"),
    ("for i in 1..N x[i] += 1", "Expected ':' after the range of `for i`, found none", "1"),
    ("for i in N for j in N: x[i,j] = 1", "Expected ':' after the range of `for i`", "N"),
    ("for i in N\n    x[i] = 1", "Expected ':' after the range of `for i`", "N"),
    ("for is in N: x[is] = 1", "no keywords of Python, found is", "is"),
]


@pytest.mark.parametrize(("text", "words", "place"), TEXTS)
def test_texts(text: str, words: str, place: str | None) -> None:
    with pytest.raises((tp.NotationError, tp.OperandError)) as caught:
        tp.program(text)
    assert words in str(caught.value)
    if place is not None:
        assert caught.value.span is not None
        span = caught.value.span
        assert span.source.text[span.start : span.stop] == place
        assert "^" * len(place) in str(caught.value)


SMOOTH = "for t in T: b[i] = a[i-1] + a[i+1]; a[i] = b[i]"
ONES = np.ones(5)
LONG = np.zeros(10)
CALLS: list[tuple[str, dict[str, Any], type[tp.TacoError], str]] = [
    (SMOOTH, {"a": ONES.copy(), "b": ONES.copy()}, tp.OperandError, "found no T"),
    (SMOOTH, {"a": ONES, "b": ONES.copy(), "T": 1, "c": 2}, tp.OperandError, "found c too"),
    (SMOOTH, {"a": ONES.copy(), "b": [1.0], "T": 1}, tp.OperandTypeError, "changes in place"),
    (
        SMOOTH,
        {"a": ONES.copy(), "b": ONES.copy(), "T": 2**20000},
        tp.DimensionError,
        "found an integer of 20001 bits",
    ),
    (SMOOTH, {"a": ONES.copy(), "b": ONES.copy(), "T": 1.5}, tp.OperandTypeError, "size T"),
    (
        SMOOTH,
        {"a": ONES.copy(), "b": np.ones(6), "T": 1},
        tp.DimensionError,
        "found 5 in a and 6 in b",
    ),
    (SMOOTH, {"a": ONES, "b": ONES, "T": 1}, tp.OperandError, "it overlaps"),
    ("a[i] = b[i]", {"a": LONG[1:5], "b": LONG[2:6]}, tp.OperandError, "it overlaps"),
    (
        "a[i,j] = 1",
        {"a": np.lib.stride_tricks.sliding_window_view(LONG, 3, writeable=True)},
        tp.OutputError,
        "windows that overlap",
    ),
    ("a[i] = 1", {"a": ONES.copy(), "tiles": np.array([2, 2])}, tp.OperandTypeError, "tiles="),
    (SMOOTH, {"a": ONES.copy(), "b": np.ones((2, 2)), "T": 1}, tp.OperandError, "1 modes"),
    ("a[i] = 0.5 * a[i]", {"a": np.ones(3, int)}, tp.OperandTypeError, "a of dtype int64"),
    ("a[i] = b[i]", {"a": ONES, "b": [[1], [2, 3]]}, tp.OperandTypeError, "an array of for b"),
    ("a[i] = b[i]", {"a": ONES, "b": np.ma.ones(5)}, tp.OperandTypeError, "without a mask for b"),
    ("a[i] = 1", {"a": np.ma.ones(5)}, tp.OperandTypeError, "without a mask for a"),
    ("a[i] = 300", {"a": ONES.astype("i1")}, tp.NumberOverflowError, "to 127 beside an operand"),
    ("a[i] += -1", {"a": ONES.astype("u1")}, tp.NumberOverflowError, "from 0 to 255"),
    ("a[i] = 4611686018427387904 * 4", {"a": ONES}, tp.NumberOverflowError, "about 1.84e+19"),
    ("a[i] = 1 + 9223372036854775807", {"a": ONES}, tp.NumberOverflowError, "about 9.22e+18"),
    ("a[i] = 100 + 100", {"a": ONES.astype("i1")}, tp.NumberOverflowError, "found 200"),
    (
        "a[i] = c * a[i]",
        {"a": ONES.astype("i1"), "c": 300},
        tp.NumberOverflowError,
        "operand c: Expected a number that int8 can hold, found 300",
    ),
    (
        "a[i] = c * a[i]",
        {"a": ONES.copy(), "c": 10**400},
        tp.NumberOverflowError,
        "found an integer of 1329 bits",
    ),
    ("for i in N: a[i+1] = 1", {"a": ONES.copy(), "N": 5}, tp.DimensionError, "5 where i = 4"),
    ("for i in N..4: a[i] = a[i-N]", {"a": ONES.copy(), "N": -1}, tp.DimensionError, "i - N"),
    ("for i in N: for j in i: a[j-1] = 1", {"a": ONES.copy(), "N": 3}, tp.DimensionError, "-1"),
    ("a[i] = 1", {"a": np.broadcast_to(1.0, 4)}, tp.OutputError, "can be written"),
    (
        "a[i] = A[i,i]",
        {"a": ONES.copy(), "A": sp.eye_array(5, format="csr")},
        tp.OperandTypeError,
        "found csr_array",
    ),
]


@pytest.mark.parametrize(("text", "operands", "error", "words"), CALLS, ids=[c[3] for c in CALLS])
def test_calls(text: str, operands: dict[str, Any], error: type[tp.TacoError], words: str) -> None:
    with pytest.raises(error) as caught:
        tp.program(text)(**operands)
    assert words in str(caught.value)


def test_ranges_that_leave_an_array_only_where_nothing_runs_are_fine() -> None:
    a = np.zeros(4)
    tp.program("for k in N: for j in k+1..N: a[k+1] += 1")(a=a, N=4)
    assert a.tolist() == [0, 3, 2, 1]


def test_what_is_inside_is_looked_for_once_for_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def count(lowered: Any, statement: Any, each: Any, size: int, values: Any) -> None:
        asked.append(values["N"])

    monkeypatch.setattr("taco_py.compiler.affine.bounds._look", count)
    lowered = tp.program("for i in 5..N+3: for j in N-i: a[i+j] = 1").lowered
    for n in (7, 7, 8, 7, 3, -1):  # the subscript is below N, which intervals do not see
        check_inside(lowered, {"N": n, **dict.fromkeys(lowered.sizes.values(), n)})
    assert asked == [7, 8]


@pytest.mark.parametrize("tiles", [0, (), "large", (4, -1), 2.5])
def test_tiles_are_positive(tiles: Any) -> None:
    with pytest.raises(tp.OperandTypeError, match="positive sizes"):
        tp.program("a[i] = 1")(a=np.ones(3), tiles=tiles)


LARGE = [2**31 + 1, 2**64, 2**20000, (4, 2**63), {"i": 2**64}]


@pytest.mark.parametrize("tiles", LARGE, ids=range(len(LARGE)))
def test_tiles_are_not_longer_than_arrays_can_be(tiles: Any) -> None:
    with pytest.raises(tp.OperandTypeError, match="at most 2"):
        tp.program("a[i] = 1")(a=np.ones(3), tiles=tiles)


def test_arrays_between_each_other_share_nothing() -> None:
    whole = np.arange(10.0)
    tp.program("a[i] = 2 * b[i]")(a=whole[::2], b=whole[1::2])
    np.testing.assert_array_equal(whole[::2], 2 * whole[1::2])
    red = np.zeros((4, 6))
    tp.program("a[i] = b[i] + 1")(a=red[:, 0], b=red[:, 1])
    assert red.sum() == 4


@pytest.mark.parametrize("name", ["tiles", "threads"])
def test_operands_are_not_called_as_what_a_call_says_besides(name: str) -> None:
    with pytest.raises(tp.OperandError, match=f"found {name}"):
        tp.program(f"{name}[i] = 1")


class Unwilling:
    """An array of a library that makes no dense array of it."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __array__(self, dtype: object = None, copy: object = None) -> None:
        raise self.error("cannot be made dense automatically")


@pytest.mark.parametrize("error", [RuntimeError, TypeError, ValueError, NotImplementedError])
def test_arrays_that_their_library_makes_not_dense(error: type[Exception]) -> None:
    with pytest.raises(tp.OperandTypeError, match="for A, found Unwilling") as refusal:
        tp.program("y[i] += A[i,j]")(A=Unwilling(error), y=np.zeros(3))
    assert "dense arrays" in str(refusal.value)
