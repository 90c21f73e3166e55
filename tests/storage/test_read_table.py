"""Tables that a compiled kernel reads: the numbers are Python's; odd lines are left to others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings

import taco_py as tp
from codegen.runtime.number_tables import HIGHEST, LOWEST, power_of_five
from taco_py.data.convert import read_table as module
from taco_py.data.convert.read_table import read_table
from taco_py.data.storage import table
from taco_py.data.storage.plain import Row
from taco_py.data.storage.text_files.text import Text
from taco_py.language.diagnostics.errors import FileFormatError
from tests.storage.test_plain import ODD, tables

REAL = Row(0, 1)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Read short texts by the kernel too, in several chunks by two threads."""
    monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(module, "WORTH_COMPILING", 0)
    monkeypatch.setattr(module, "CHUNK", 64)
    monkeypatch.setattr(module, "THREAD_BYTES", 64)
    tp.set_threads(2)
    yield
    tp.set_threads(None)


def numbers(words: list[str], row: Row = REAL) -> np.ndarray:
    """The values of lines of one word, which the kernel must not leave to others."""
    found = read_table(Text("\n".join(words).encode(), 1, ""), row)
    assert found is not None
    return found[1]


CORPUS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
MARK = st.sampled_from(["e", "E", "d", "D"])


@CORPUS
@given(st.lists(st.floats(), min_size=1), MARK)
def test_floats_are_read_to_the_last_digit(values: list[float], mark: str) -> None:
    np.testing.assert_array_equal(numbers([repr(x).replace("e", mark) for x in values]), values)


@CORPUS
@given(
    st.lists(
        st.tuples(st.integers(0, 10**25), st.integers(-400, 400), st.integers(0, 26)), min_size=1
    )
)
@example([(9007199254740993, 0, 0), (2**63, -20, 3), (0, 400, 2), (5, -324, 0), (24703, -328, 0)])
def test_decimals_are_rounded_as_python_rounds(found: list[tuple[int, int, int]]) -> None:
    words = []
    for digits, exponent, behind in found:
        text = str(digits).rjust(behind + 1, "0")
        point = len(text) - behind
        words.append(f"{text[:point]}.{text[point:]}e{exponent}")
    np.testing.assert_array_equal(numbers(words), [float(word) for word in words])


@CORPUS
@given(st.lists(st.floats(min_value=1e-300, max_value=1e300), min_size=1))
def test_decimals_next_to_the_middle_of_two_floats(values: list[float]) -> None:
    words = []
    for x in values:
        middle = (Fraction(x) + Fraction(math.nextafter(x, math.inf))) / 2
        scale = 17 - math.floor(math.log10(x))
        nearest = round(middle * Fraction(10) ** scale)
        words += [f"{nearest + off}e{-scale}" for off in (-1, 0, 1)]
    np.testing.assert_array_equal(numbers(words), [float(word) for word in words])


@pytest.mark.parametrize("exponent", [LOWEST, -100, -28, -27, -1, 0, 1, 55, 56, HIGHEST])
def test_powers_have_128_bits(exponent: int) -> None:
    power = power_of_five(exponent)
    assert power.bit_length() == 128
    exact = Fraction(5) ** exponent
    scaled = exact * Fraction(2) ** (128 - math.floor(math.log2(exact)) - 1)
    assert abs(power - scaled) <= 1


@CORPUS
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.booleans())
def test_integers_are_read_to_the_last_digit(values: list[int], plus: bool) -> None:
    words = [f"{x:+d}" if plus else str(x) for x in values]
    assert numbers(words, Row(0, 1, True)).tolist() == values


@CORPUS
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_natural_numbers_are_read_to_the_last_digit(values: list[int]) -> None:
    row = Row(0, 1, True, None, (0, 2**64 - 1))
    assert numbers(list(map(str, values)), row).tolist() == values


@pytest.mark.parametrize(
    "word", ["18446744073709551616", "99999999999999999999", "-1", "1.5", "1e2"]
)
def test_no_integer_is_cut(word: str) -> None:
    row = Row(0, 1, True, None, (0, 2**64 - 1))
    assert read_table(Text(f"1\n{word}\n".encode(), 1, ""), row) is None


@CORPUS
@given(tables(3), st.sampled_from([1, 7, 64, 1 << 18]))
@example("1 2 1.5d3\r\n\t# note\n\n31 1 -.5 % note", 7)
@example("\n\n\n1 2 3", 1)
def test_rows_are_those_that_python_reads(text: str, chunk: int) -> None:
    """What the kernel reads is what the careful reader reads; nothing where that raises."""
    row = Row(2, 1, sizes=(31, 31))
    given_text = Text(text.encode(), 1, "name")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", chunk)
        found = read_table(given_text, row)
    try:
        rows = list(given_text.rows(row))
    except FileFormatError:
        assert found is None
        return
    if found is None:
        plain = (b"1", b"2", b"31")
        assert any(word not in plain for words in given_text.entries() for word in words[1][:2])
        return
    assert [[int(x) + 1 for x in column] for column in found[0]] == [
        [int(words[k]) for words in rows] for k in range(2)
    ]
    np.testing.assert_array_equal(found[1], [float(words[2]) for words in rows])


@pytest.mark.parametrize("word", [each for each in ODD if each[0] not in "#%"])
def test_no_number_is_half_read(word: str) -> None:
    text = Text(f"2\n{word}\n".encode(), 1, "name")
    try:
        expected = [float(words[0]) for words in text.rows(REAL)]
    except FileFormatError:
        assert read_table(text, REAL) is None
    else:
        np.testing.assert_array_equal(numbers(["2", word]), expected)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("last", ["0 1 1", "5 1 1", "1", "1 2 3 4", "1 2 x", ""])
def test_a_bad_line_is_named(last: str, index: type, tmp_path: Path) -> None:
    size = 4 if index is np.int32 else 2**40
    columns = 4 if last.startswith("5") else size
    path = tmp_path / "a.mtx"
    path.write_text(
        f"%%MatrixMarket matrix coordinate real general\n4 {columns} 3\n1 1 1\n2 2 2.5\n{last}\n"
    )
    with pytest.raises(FileFormatError, match=r"a\.mtx, line [45]: Expected"):
        tp.read(path)


@pytest.mark.parametrize("field", ["real", "integer", "complex", "pattern", "unsigned-integer"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("layout", ["coordinate", "array"])
@pytest.mark.parametrize("odd", ["", "\n", "% note\n", "  \t\n"])
def test_all_kinds_of_files(
    field: str, symmetry: str, layout: str, odd: str, tmp_path: Path
) -> None:
    if field == "pattern" and (layout == "array" or symmetry in ("skew-symmetric", "hermitian")):
        return
    if symmetry == "hermitian" and field != "complex":
        return
    if symmetry == "skew-symmetric" and field == "unsigned-integer":
        return
    lower = [(i, j) for j in range(9) for i in range(j + (symmetry == "skew-symmetric"), 9)]
    if symmetry == "general":
        lower = [(i, j) for j in range(9) for i in range(9)]
    value = {"complex": "{0}.5 {1}", "pattern": "", "real": "-{0}.{1}"}.get(field, "{0}{1}")
    if symmetry == "hermitian":
        value = "{0}.5 0"
    lines = [
        (f"{i + 1} {j + 1} " if layout == "coordinate" else "") + value.format(i, j)
        for i, j in lower
    ]
    count = f" {len(lines)}" if layout == "coordinate" else ""
    head = f"%%MatrixMarket matrix {layout} {field} {symmetry}\n9 9{count}\n"
    clean, path = tmp_path / "clean.mtx", tmp_path / "a.mtx"
    clean.write_text(head + "\n".join(lines) + "\n")
    path.write_text(head + "\n".join(lines[:20]) + "\n" + odd + "\n".join(lines[20:]) + "\n")
    expected = scipy.io.mmread(clean)
    found = tp.read(path)
    dense = expected.toarray() if sp.issparse(expected) else expected
    assert found.dtype == dense.dtype
    np.testing.assert_array_equal(found.to_numpy(), dense)


def test_the_kernel_reads_what_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with blank lines, comments, signs and Fortran's exponents need no other reader."""
    monkeypatch.setattr(table, "numbers_of", None)
    path = tmp_path / "a.mtx"
    rows = ["1 1 +1.5", "", "2 3 nan", "% note", "3 1 -inf", "2 2 1.0D+00", "\t3\t3 5.\r"] * 20
    count = sum(1 for each in rows if each and each[0] != "%")
    path.write_text(
        f"%%MatrixMarket matrix coordinate real general\n3 3 {count}\n" + "\n".join(rows)
    )
    found = tp.read(path).to_numpy()
    assert found[1, 1] == 20.0 and found[0, 0] == 30.0 and found[2, 0] == -np.inf


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from codegen.toolchain.errors import NoCompilerError

    def refuse(*_: object) -> None:
        raise NoCompilerError("none")

    monkeypatch.setattr(module, "table_kernel", refuse)
    assert read_table(Text(b"1\n2\n", 1, ""), REAL) is None
