"""Files read in a dtype: no number becomes another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import taco_py as tp

TNS = "1 1 1.5\n2 3 -2\n"


@pytest.mark.parametrize(
    ("text", "dtype", "values"),
    [
        (TNS, "f4", [1.5, -2]),
        (TNS, "c16", [1.5, -2]),
        ("1 1 3\n2 3 -2\n", "i4", [3, -2]),
        ("1 1 1\n2 3 0\n", "b1", [True, False]),
        ("1 1 0.1\n", "f4", [np.float32(0.1)]),
    ],
)
def test_numbers_that_it_holds(tmp_path: Path, text: str, dtype: str, values: list[float]) -> None:
    path = tmp_path / "t.tns"
    path.write_text(text)
    found = tp.read(path, dtype=dtype)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found.data.values, np.array(values, dtype))


@pytest.mark.parametrize(
    ("text", "dtype", "number"),
    [
        (TNS, "i4", "1.5"),
        ("1 1 2\n2 3 -2\n", "u1", "-2.0"),
        ("1 1 300\n", "i1", "300.0"),
        ("1 1 nan\n", "i8", "nan"),
        ("1 1 1e300\n", "i8", "1e"),
        ("1 1 5\n", "b1", "5.0"),
    ],
)
def test_numbers_that_it_does_not_hold(tmp_path: Path, text: str, dtype: str, number: str) -> None:
    path = tmp_path / "t.tns"
    path.write_text(text)
    with pytest.raises(tp.FileFormatError, match="holds exactly, found " + number) as caught:
        tp.read(path, dtype=dtype)
    assert str(path) in str(caught.value)


def test_imaginary_parts_are_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.mtx"
    head = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n"
    path.write_text(head + "1 1 2 1\n")
    with pytest.raises(tp.FileFormatError, match="holds exactly"):
        tp.read(path, dtype="f8")
    path.write_text(head + "1 1 2 0\n")
    assert tp.read(path, dtype="f8").data.values.tolist() == [2]


def test_a_byte_order_mark_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "t.tns"
    path.write_bytes(b"\xef\xbb\xbf" + TNS.encode())
    assert tp.read(path).shape == (2, 3)


def test_commas_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.tns"
    path.write_text("1, 1, 1.5\n")
    with pytest.raises(tp.FileFormatError, match=r"line 1.*\n.*not by commas"):
        tp.read(path)
