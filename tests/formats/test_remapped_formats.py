"""Formats over derived modes: coordinates there and back, names, what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.language.formats import BCSR, BSR, Blocked, Format, RemappedFormat, remapped
from taco_py.language.formats.remapped_names import MAKERS
from taco_py.language.formats.sized_names import SIZES
from taco_py.language.formats.stored_modes import Difference, PlainMode, Quotient, Remainder, Slot

NAMES = {
    "bsr(3,2)": "BSR(3,2)",
    "BCSR( 4 )": "BSR(4,4)",
    "blocked(2,1,3,sss)": "Blocked(2,1,3,sss)",
    "blocked(2,2)": "Blocked(2,2,ss)",
    "blocked(2,3,ds:1,0)": "Blocked(2,3,ds:1,0)",
}


@pytest.mark.parametrize(("text", "name"), NAMES.items())
def test_names_are_read_and_printed(text: str, name: str) -> None:
    form = remapped(text)
    assert form is not None
    assert str(form) == name
    assert remapped(str(form)) == form
    assert pickle.loads(pickle.dumps(form)) == form


@pytest.mark.parametrize("text", ["ds", "csr", "bsx", "b(2)", None, 3, Format.parse("ds")])
def test_other_formats_are_none_of_these(text: object) -> None:
    assert remapped(text) is None


SIZES_THAT_ARE_NONE = {
    "ell(3)": "no sizes, found 1 number, 3, in 'ell(3)'\nhint: as in \"ell\"",
    "sdia(0)": "the rows of a slice, integers from 1 to 2^31 - 1, found '0' in 'sdia(0)'",
    "bsr(0,2)": "found '0' in 'bsr(0,2)'\nhint: as in \"bsr(3,3)\"",
    "bsr(-1,2)": "found '-1' in",
    "bsr()": "found none in 'bsr()'",
    "bsr(2,)": "found an empty place in",
    "bsr(1,2,3)": "found 3 numbers, 1, 2, 3, in",
    "bsr(3,3": "found no closing bracket at the end",
    "sell(99999999999)": "found '99999999999' in",
    "sell(2.5)": "found '2.5' in",
    "nm(4,2)": "n at most m, found 4 of 2 in 'nm(4,2)'\nhint: as in \"nm(2,4)\"",
    "nm(2)": "found 1 number, 2, in",
    "blocked(ss)": "the size of a block for each mode",
}


@pytest.mark.parametrize(("text", "message"), SIZES_THAT_ARE_NONE.items())
def test_wrong_sizes_are_named(text: str, message: str) -> None:
    for read in (remapped, Format.parse):
        with pytest.raises(tp.FormatError) as caught:
            read(text)
        assert message in str(caught.value)


def test_each_name_with_sizes_is_made() -> None:
    assert MAKERS.keys() == SIZES.keys()
    for name, own in SIZES.items():
        assert remapped(own.example) is not None, name


REFUSED = [
    (lambda: BSR((0, 2)), "sizes of blocks of 1 or more, found (0, 2)"),
    (lambda: BSR((2, 2, 2)), "rows and columns of a block, found 3 numbers"),
    (lambda: BSR((2.5, 2)), "sizes of blocks of 1 or more"),  # type: ignore[arg-type]
    (lambda: remapped("bsr(2,x)"), "integers from 1 to 2^31 - 1, found 'x' in 'bsr(2,x)'"),
    (lambda: Blocked((2, 2), "sss"), "a format of 2 levels for a tensor of order 2"),
    (lambda: Blocked((2, 2), "uq"), "blocks that are stored once each"),
    (
        lambda: RemappedFormat("r", Format.parse("ds"), (Quotient(0, 2), PlainMode(1))),
        "stored modes that say each mode, found none for i",
    ),
    (
        lambda: RemappedFormat("r", Format.parse("ds"), (PlainMode(0),)),
        "a stored mode for each of the 2 levels",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_what_is_no_format_is_refused(make: object, message: str) -> None:
    with pytest.raises(tp.FormatError) as caught:
        make()  # type: ignore[operator]
    assert message in caught.value.message


DIAGONALS = RemappedFormat("diagonals", Format.parse("sd"), (Difference(1, 0), PlainMode(0)))
SLOTS = RemappedFormat(
    "slots", Format.parse("dss"), (Slot(PlainMode(1), (PlainMode(0),)), PlainMode(0), PlainMode(1))
)


def test_levels_that_spell_a_name_are_levels() -> None:
    assert str(tp.tensor(np.ones((2, 2, 2)), format="bsr").format) == "bsr"
    with pytest.raises(tp.FormatError) as caught:
        tp.tensor(np.ones((2, 2)), format="bsr")
    assert 'with sizes it is another one, as in "bsr(3,3)"' in str(caught.value)


FORMATS = [BSR((3, 2)), BSR(1), BCSR((1, 5)), Blocked((1, 3), "ss"), DIAGONALS, SLOTS]


@pytest.mark.parametrize("form", FORMATS, ids=str)
@settings(max_examples=20)
@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_coordinates_there_and_back(form: RemappedFormat, m: int, n: int, seed: int) -> None:
    rows, columns = np.nonzero(np.random.default_rng(seed).random((m, n)) < 0.4)
    stored = form.stored((rows, columns), (m, n))
    shape = form.stored_shape((m, n), stored)
    for own, size in zip(stored, shape, strict=True):
        assert not len(own) or (own.min() >= 0 and own.max() < size)
    back = form.logical(stored, (m, n))
    np.testing.assert_array_equal(back[0], rows)
    np.testing.assert_array_equal(back[1], columns)


def test_counters_count_the_entries_of_a_row() -> None:
    rows, columns = np.array([2, 0, 2, 2, 0]), np.array([1, 0, 0, 2, 3])
    slots, _, _ = SLOTS.stored((rows, columns), (3, 4))
    assert slots.tolist() == [1, 0, 0, 2, 1]
    assert SLOTS.mapping == "(i,j) -> (#j in i, i, j)"


def test_diagonals_are_counted_from_the_least() -> None:
    diagonals, _ = DIAGONALS.stored((np.array([2, 0]), np.array([0, 3])), (3, 4))
    assert diagonals.tolist() == [0, 5]
    assert DIAGONALS.stored_shape((3, 4)) == (6, 3)


def test_modes_of_blocks() -> None:
    form = Blocked((2, 1, 3), "dss")
    outer = (Quotient(0, 2), PlainMode(1), Quotient(2, 3))
    assert form.modes == (*outer, Remainder(0, 2), Remainder(2, 3))
    assert str(form.inner) == "dssdd"
    assert form.cuts == (2, 0, 3)
    assert tp.BSR is BSR and tp.Blocked is Blocked


def test_printing_converts_nothing() -> None:
    made = tp.Tensor.from_coo(([0, 2**40], [0, 1]), np.ones(2), (2**41, 2**41), format="dia")
    assert "format='DIA', nnz=2" in repr(made)
    assert made.to_coo()[0].tolist() == [[0, 0], [2**40, 1]]
    with pytest.raises(tp.OutOfMemoryError, match="smaller blocks"):
        tp.tensor(np.eye(4), format="bsr(2147483647)")
