"""Dense einsums of types that no kernel computes in are NumPy's own; sparse ones are refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

HALF = Fraction(1, 2)
OBJECTS = np.array([[HALF, 2], [3, Fraction(1, 3)]], dtype=object)
LONG = np.array([[1.0, 2.0], [3.0, 1e-18]], np.longdouble)
own_long_double = pytest.mark.skipif(
    np.dtype(np.longdouble).itemsize == 8, reason="long double is double here"
)


def test_objects() -> None:
    for _ in range(2):
        found = tp.einsum("ij,jk->ik", OBJECTS, OBJECTS)
        assert found.dtype == object
        np.testing.assert_array_equal(found, np.einsum("ij,jk->ik", OBJECTS, OBJECTS))
    assert tp.einsum("i,i->", [HALF, 1], [2, 3]) == 4
    assert tp.einsum(OBJECTS, [0, 0], []) == HALF + Fraction(1, 3)
    np.testing.assert_array_equal(
        tp.einsum("ij,j", OBJECTS, np.array([2, 2])), [5, Fraction(20, 3)]
    )


@own_long_double
@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble])
def test_long_doubles_keep_their_digits(dtype: Any) -> None:
    a = LONG.astype(dtype)
    found = tp.einsum("ij->i", a)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.einsum("ij->i", a))
    assert found[1] != 3.0
    assert tp.einsum("ij->i", LONG.astype(float), dtype=dtype).dtype == dtype


def test_options_of_numpy() -> None:
    out = np.empty((2, 2), dtype=object)
    assert tp.einsum("ij,jk->ik", OBJECTS, OBJECTS, out=out) is out
    np.testing.assert_array_equal(out, OBJECTS.dot(OBJECTS))
    whole = np.array([[1, 2], [3, 4]], dtype=object)
    found = tp.einsum("ij->i", whole, dtype="int8", casting="unsafe", optimize=True)
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, [3, 7])
    assert tp.einsum("ij->ji", whole * 1, order="F").flags.f_contiguous
    with pytest.raises(TypeError, match="cast"):
        tp.einsum("ij->i", whole, dtype="int8")


def test_explain_says_so() -> None:
    told = tp.explain("ij,j->i", OBJECTS, np.ones(2))
    assert told == (
        "runs      numpy.einsum, 0 kernels: operand 0 is object, which no kernel computes in"
    )
    assert "dtype= asks for object" in tp.explain("ij->i", np.ones((2, 2)), dtype=object)


def test_what_elements_raise_is_let_through() -> None:
    class Refusing:
        def __mul__(self, other: object) -> object:
            raise LookupError("no products")

    with pytest.raises(LookupError, match="no products"):
        tp.einsum("i,i->", np.array([Refusing()]), np.array([1]))


BAD: tuple[tuple[tuple[Any, ...], dict[str, Any], str], ...] = (
    (("ij,j", OBJECTS), {}, "for 1 operand"),
    (("ijk", OBJECTS), {}, "2 subscripts"),
    (("ij->i", OBJECTS), {"order": "X"}, "order to be one of"),
    (("ij->i", OBJECTS), {"casting": "never"}, "casting to be one of"),
    (("ij->i", OBJECTS), {"schedule": "reorder(i,j)"}, "beside schedule="),
    (("ij->i", OBJECTS), {"format": "d"}, "leave format= out"),
    (("i", np.array(["a"])), {}, "found <U1"),
    (("i", np.ones(2, "M8[s]")), {}, "datetime64"),
)


@pytest.mark.parametrize(("arguments", "options", "words"), BAD, ids=[row[2] for row in BAD])
def test_mistakes(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        tp.einsum(*arguments, **options)
    assert isinstance(caught.value, tp.TacoError)


@pytest.mark.parametrize("dense", [OBJECTS, LONG], ids=["object", "longdouble"])
@own_long_double
def test_sparse_operands_need_types_that_are_compiled(dense: Any) -> None:
    for other in (sp.csr_array(np.eye(2)), tp.tensor(np.eye(2), format="ss")):
        with pytest.raises(tp.OperandTypeError, match=r"operand 1(.|\n)*astype"):
            tp.einsum("ij,jk->ik", other, dense)
    with pytest.raises(tp.OperandTypeError, match="dtype"):
        tp.einsum("ij->i", sp.csr_array(np.eye(2)), dtype=object)


def test_masks_are_refused_as_before() -> None:
    with pytest.raises(tp.OperandTypeError, match="MaskedArray"):
        tp.einsum("i->", np.ma.masked_array(np.array([HALF]), [False]))
