"""`tp.einsum` means what `numpy.einsum` means: the same calls on dense and on sparse operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.data import array
from tests.corpus.formats import to_dense

DENSE: Callable[[Any], Any] = np.asarray
COO: Callable[[Any], Any] = sp.coo_array
FORMS = {"dense": DENSE, "sparse": COO}
# Subscripts, and the shapes of the operands.
CALLS: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = (
    ("ij,j->i", ((3, 4), (4,))),
    ("ij,j", ((3, 4), (4,))),
    ("ij,jk", ((3, 4), (4, 5))),
    ("ba", ((3, 4),)),
    ("ij->ji", ((3, 4),)),
    ("ij->", ((3, 4),)),
    ("ij", ((3, 4),)),
    ("ii", ((4, 4),)),
    ("ii->i", ((4, 4),)),
    ("ii->", ((4, 4),)),
    ("iij->j", ((3, 3, 2),)),
    ("iij", ((3, 3, 2),)),
    ("iji->j", ((3, 2, 3),)),
    ("ii,i->i", ((4, 4), (4,))),
    ("i,i", ((4,), (4,))),
    ("i,j", ((3,), (4,))),
    ("i,i->i", ((4,), (4,))),
    ("ij,ij->ij", ((3, 4), (3, 4))),
    ("ij,kj->ik", ((3, 4), (5, 4))),
    ("ji,jk->ik", ((4, 3), (4, 5))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
    ("ij,jk,k->i", ((2, 3), (3, 4), (4,))),
    ("ijk,kl->ijl", ((2, 3, 4), (4, 2))),
    ("ijk,jr,kr->ir", ((2, 3, 4), (3, 2), (4, 2))),
    ("bij,bjk->bik", ((2, 3, 4), (2, 4, 3))),
    ("ijkl,klm->ijm", ((2, 3, 2, 3), (2, 3, 2))),
    (" i j , j -> i ", ((3, 4), (4,))),
    ("Ab,bC->AC", ((2, 3), (3, 4))),
    ("Ba", ((2, 3),)),
    ("...j,j->...", ((3, 4), (4,))),
    ("...j,j", ((2, 3, 4), (4,))),
    ("...ij,...jk->...ik", ((2, 3, 4), (2, 4, 3))),
    ("...ij,jk", ((2, 3, 4), (4, 3))),
    ("i...->...", ((3, 4),)),
    ("...", ((3, 4),)),
    ("...->...", ((3, 4),)),
    ("ij...,j...->i...", ((2, 3, 2), (3, 2))),
    ("...,...", ((3, 4), (4,))),
    ("a...a->...", ((3, 2, 3),)),
    ("i,->i", ((3,), ())),
    (",", ((), ())),
    ("...i,...i->...", ((2, 3), (1, 3))),
    ("ij,ij->i", ((3, 4), (1, 4))),
)


def operands(shapes: tuple[tuple[int, ...], ...], dtype: Any = np.float64) -> list[Any]:
    return [array(f"einsum {place}", shape, "mixed", dtype) for place, shape in enumerate(shapes)]


def stored(arrays: list[Any], form: str) -> list[Any]:
    """The first operand in this form where it has a dimension, the rest dense."""
    first, *rest = arrays
    return [FORMS[form](first) if first.ndim else first, *rest]


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("subscripts", "shapes"), CALLS, ids=[call[0] for call in CALLS])
def test_subscripts(subscripts: str, shapes: tuple[tuple[int, ...], ...], form: str) -> None:
    arrays = operands(shapes)
    expected = np.einsum(subscripts, *arrays)
    result = to_dense(tp.einsum(subscripts, *stored(arrays, form)))
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("form", FORMS)
def test_interleaved_form(form: str) -> None:
    a, b = operands(((3, 4), (4, 5)))
    x = operands(((4,),))[0]
    s = FORMS[form](a)
    np.testing.assert_array_equal(
        to_dense(tp.einsum(s, [0, 1], x, [1], [0])), np.einsum(a, [0, 1], x, [1], [0])
    )
    np.testing.assert_array_equal(
        to_dense(tp.einsum(s, [0, 1], b, [1, 2])), np.einsum(a, [0, 1], b, [1, 2])
    )
    np.testing.assert_array_equal(to_dense(tp.einsum(s, [5, 2])), np.einsum(a, [5, 2]))
    np.testing.assert_array_equal(
        to_dense(tp.einsum(s, [Ellipsis, 1], x, [1], [Ellipsis])),
        np.einsum(a, [Ellipsis, 1], x, [1], [Ellipsis]),
    )


DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
DTYPES += ("float32", "float64", "complex64", "complex128")
PAIRS = [(one, one) for one in DTYPES] + [
    ("bool", "int8"),
    ("bool", "float32"),
    ("int8", "uint8"),
    ("int32", "float32"),
    ("int64", "uint64"),
    ("int16", "float32"),
    ("float32", "float64"),
    ("float64", "complex64"),
    ("int32", "complex64"),
]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_dtypes_promote_as_in_numpy(left: str, right: str) -> None:
    a = array("left", (4, 5), "mixed").clip(0).astype(left)
    x = array("right", (5,), "mixed").clip(0).astype(right)
    expected = np.einsum("ij,j->i", a, x)
    result = tp.einsum("ij,j->i", sp.csr_array(a), x)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_small_integers_wrap_around_as_in_numpy() -> None:
    a = np.full((1, 3), 100, np.int8)
    x = np.full(3, 2, np.int8)
    np.testing.assert_array_equal(
        tp.einsum("ij,j->i", sp.csr_array(a), x), np.einsum("ij,j->i", a, x)
    )


def test_infinities_and_nan_keep_their_meaning() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    x = np.array([np.inf, 1.0])
    y = np.array([np.nan, 0.0])
    np.testing.assert_array_equal(tp.einsum("ij,j->i", a, x), [np.inf, np.inf])
    np.testing.assert_array_equal(tp.einsum("ij,j->i", sp.csr_array(a), y), [np.nan, np.nan])
    np.testing.assert_array_equal(tp.einsum("i,i->", x, np.array([-1.0, 0.0])), -np.inf)


@pytest.mark.parametrize("form", FORMS)
def test_out(form: str) -> None:
    a, x = operands(((3, 4), (4,)))
    out = np.full(3, 7.0)
    assert tp.einsum("ij,j->i", FORMS[form](a), x, out=out) is out
    np.testing.assert_array_equal(out, a @ x)


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "f"])
@pytest.mark.parametrize("subscripts", ["ij->ij", "ij->ji", "ij,jk->ik"])
@pytest.mark.parametrize("given", ["C", "F"])
def test_order(subscripts: str, order: str, given: str) -> None:
    shapes = ((3, 4), (4, 5))[: subscripts.count(",") + 1]
    arrays = [np.asarray(np.random.default_rng(0).random(s), order=given) for s in shapes]
    found = tp.einsum(subscripts, *arrays, order=order)
    expected = np.einsum(subscripts, *arrays, order=order)
    np.testing.assert_allclose(found, expected)
    if order.upper() in "CF":  # of a permutation, too, where NumPy returns a view in any order
        assert found.flags[f"{order.upper()}_CONTIGUOUS"]
    with pytest.raises(tp.TacoError, match="order"):
        tp.einsum(subscripts, *arrays, order="X")


def test_out_that_is_strided() -> None:
    a, x = operands(((3, 4), (4,)))
    room = np.zeros((3, 2))
    out = room[:, 1]
    assert tp.einsum("ij,j->i", sp.csr_array(a), x, out=out) is out
    np.testing.assert_array_equal(room, np.stack([np.zeros(3), a @ x], axis=1))


def test_out_that_is_also_an_operand() -> None:
    a = operands(((4, 4),))[0]
    x = np.arange(4.0)
    expected = a @ x
    tp.einsum("ij,j->i", sp.csr_array(a), x, out=x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("form", FORMS)
def test_dtype_and_casting(form: str) -> None:
    a, x = operands(((3, 4), (4,)), np.float32)
    s = FORMS[form](a)
    wide = tp.einsum("ij,j->i", s, x, dtype=np.float64)
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(wide, np.einsum("ij,j->i", a, x, dtype=np.float64))
    narrow = tp.einsum("ij,j->i", s, x, dtype=np.int32, casting="unsafe")
    assert narrow.dtype == np.int32
    np.testing.assert_array_equal(
        narrow, np.einsum("ij,j->i", a, x, dtype=np.int32, casting="unsafe")
    )
    with pytest.raises(TypeError):
        tp.einsum("ij,j->i", s, x, dtype=np.int32)
    with pytest.raises(TypeError):
        tp.einsum("ij,j->i", s, x, dtype=np.float64, casting="no")


def test_dtype_widens_before_the_sum() -> None:
    """As NumPy: the operands are cast first, so nothing wraps around."""
    a = sp.csr_array(np.full((1, 4), 100, np.int8))
    np.testing.assert_array_equal(tp.einsum("ij->i", a, dtype=np.int64), [400])


@pytest.mark.parametrize("optimize", [False, True, "greedy", "optimal"])
def test_optimize(optimize: Any) -> None:
    a, b, c, x = operands(((3, 4), (4, 5), (5, 2), (2,)))
    expected = np.einsum("ij,jk,kl,l->i", a, b, c, x)
    result = tp.einsum("ij,jk,kl,l->i", sp.csr_array(a), b, sp.csr_array(c), x, optimize=optimize)
    np.testing.assert_array_equal(to_dense(result), expected)


def test_optimize_with_a_path() -> None:
    a, b, x = operands(((3, 4), (4, 5), (5,)))
    path = ["einsum_path", (1, 2), (0, 1)]
    result = tp.einsum("ij,jk,k->i", sp.csr_array(a), b, x, optimize=path)
    np.testing.assert_array_equal(result, np.einsum("ij,jk,k->i", a, b, x, optimize=path))


def test_many_operands() -> None:
    matrices = [array(f"chain {place}", (3, 3), "mixed") for place in range(8)]
    subscripts = ",".join(
        f"{left}{right}" for left, right in zip("abcdefgh", "bcdefghi", strict=True)
    )
    result = tp.einsum(f"{subscripts}->ai", *map(sp.csr_array, matrices))
    np.testing.assert_array_equal(to_dense(result), np.linalg.multi_dot(matrices))


BAD: dict[str, Callable[[Callable[..., Any], Any, Any], Any]] = {
    "too few subscripts": lambda einsum, a, x: einsum("i,j", a, x),
    "too many subscripts": lambda einsum, a, x: einsum("ijk,j", a, x),
    "too many operands": lambda einsum, a, x: einsum("ij", a, x),
    "too few operands": lambda einsum, a, x: einsum("ij,j", a),
    "no operands": lambda einsum, a, x: einsum("ij"),
    "nothing": lambda einsum, a, x: einsum(),
    "bad character": lambda einsum, a, x: einsum("i1,j", a, x),
    "two arrows": lambda einsum, a, x: einsum("ij->i->", a),
    "half an arrow": lambda einsum, a, x: einsum("ij-i", a),
    "two dots": lambda einsum, a, x: einsum("..j,j", a, x),
    "unknown output": lambda einsum, a, x: einsum("ij,j->k", a, x),
    "repeated output": lambda einsum, a, x: einsum("ij->ii", a),
    "sizes": lambda einsum, a, x: einsum("ij,i", a, x),
    "diagonal of a rectangle": lambda einsum, a, x: einsum("ii", a),
    "ellipsis lost": lambda einsum, a, x: einsum("...j->j", a),
    "unknown keyword": lambda einsum, a, x: einsum("ij", a, nonsense=1),
    "negative label": lambda einsum, a, x: einsum(a, [-1, 0]),
    "float label": lambda einsum, a, x: einsum(a, [0.5, 1]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BAD)
def test_errors_are_of_the_class_that_numpy_raises(name: str, form: str) -> None:
    a, x = operands(((3, 4), (4,)))
    with pytest.raises((ValueError, TypeError)) as numpys:
        BAD[name](np.einsum, a, x)
    with pytest.raises(type(numpys.value)) as ours:
        BAD[name](tp.einsum, FORMS[form](a), x)
    if name != "unknown keyword":
        assert isinstance(ours.value, tp.TacoError)


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("own", ["C", "F"])
def test_out_is_returned_whatever_order_is_asked_for(order: str, own: str) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    out = np.empty((2, 4), order=own)
    assert tp.einsum("ij,jk->ik", a, b, out=out, order=order) is out
    np.testing.assert_array_equal(out, a @ b)
