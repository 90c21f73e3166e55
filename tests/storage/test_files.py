"""Files: what is read is what scipy reads or what was written; what is malformed names its line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given

from taco_py.data.interop.numpy_arrays import from_numpy
from taco_py.data.interop.scipy_arrays import from_scipy
from taco_py.data.storage.files import read, write
from taco_py.data.storage.pack import pack_coo, to_dense
from taco_py.language.diagnostics.errors import FileFormatError, FormatError, StructureError
from taco_py.language.formats import COO, CSC, CSF, CSR, Format, dense
from tests.storage.test_pack import coordinate_lists, scatter


def stored(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    content = text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


# --- .tns ---------------------------------------------------------------------------------------

ENTRIES = "1 1 2 2.5\n3 2 1 -1e-3\n"
EXPECTED = scatter([[0, 2], [0, 1], [1, 0]], np.array([2.5, -1e-3]), (3, 2, 2))
HEADERS = {
    "none": ("", (3, 2, 2)),
    "comments": ("# a comment\n% another\n\n", (3, 2, 2)),
    "shape": ("# shape: 4 3 2\n", (4, 3, 2)),
    "two lines": ("3\n5 4 3\n", (5, 4, 3)),
    "extended": ("# extended FROSTT format\n3 2\n5 4 3\n", (5, 4, 3)),
    "ttx": ("%%MatrixMarket tensor coordinate real general\n%\n5 4 3 2\n", (5, 4, 3)),
}


@pytest.mark.parametrize("suffix", [".tns", ".tns.gz", ".ttx"])
@pytest.mark.parametrize("header", HEADERS)
def test_tns_headers(header: str, suffix: str, tmp_path: Path) -> None:
    text, shape = HEADERS[header]
    data = read(stored(tmp_path, "a" + suffix, text + ENTRIES))
    assert (data.shape, data.format, data.dtype) == (shape, CSF(3), np.float64)
    np.testing.assert_array_equal(to_dense(data)[:3, :2, :2], EXPECTED)
    assert data.nnz == 2


def test_tns_options(tmp_path: Path) -> None:
    path = stored(tmp_path, "a.tns", ENTRIES)
    data = read(path, format=COO(3), shape=(9, 9, 9), dtype=np.float32)
    assert (data.format, data.shape, data.dtype) == (COO(3), (9, 9, 9), np.float32)
    assert read(path, format="dss").format == Format.parse("dss")
    assert read(stored(tmp_path, "none.tns", ""), shape=(2, 3)).nnz == 0
    with pytest.raises(FormatError, match="3 levels"):
        read(path, format=CSR)


BAD_TNS = {
    "short": ("1 1 1 2.0\n2 2 2 1.0\n1 2\n", r"line 3: Expected 4 numbers, found 2: '1 2'"),
    "letters": ("1 1 1 2.0\n1 x 2 2.0\n", "line 2: Expected a number, found 'x'"),
    "zero": ("1 1 1 2.0\n0 1 1 2.0\n", "line 2: .*coordinate from 1 .*mode 0, found 0"),
    "after comments": ("# c\n\n1 1 1\n# d\n1 0 1\n", "line 5: .*mode 1, found 0"),
    "fraction": ("1 1.5 2.0\n", "line 1: Expected an integer as coordinate of mode 1, found 1.5"),
    "nan": ("1 1 2.0\n1 nan 2.0\n", "line 2: .*found nan"),
    "passes the shape": ("# shape 2 2\n1 1 1\n2 3 1\n", "line 3: .*1 to 2 in mode 1, found 3"),
    "truncated": ("# extended FROSTT format\n2 3\n5 5\n1 1 1\n2 2 2\n", "line 5: Expected 3 ent"),
    "sizes": ("3\n5 4\n1 1 1 1\n", "line 2: Expected a header line of 3 integers, found '5 4'"),
    "empty": ("# nothing\n", "Expected at least one entry"),
    "binary": ("\x00\x01\n", "line 1: "),
}


@pytest.mark.parametrize("suffix", [".tns", ".tns.gz"])
@pytest.mark.parametrize("name", BAD_TNS)
def test_bad_tns_names_its_line(name: str, suffix: str, tmp_path: Path) -> None:
    text, message = BAD_TNS[name]
    path = stored(tmp_path, name + suffix, text)
    with pytest.raises(FileFormatError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


@given(coordinate_lists((1, 2, 3)))
def test_tns_round_trip(tmp_path_factory: pytest.TempPathFactory, entries: Any) -> None:
    coords, values, shape = entries
    path = tmp_path_factory.getbasetemp() / "round.tns"
    data = pack_coo(coords, values / 3, shape, CSF(len(shape)))
    write(data, path)
    again = read(path)
    assert again.shape == shape
    assert again.nnz == data.nnz
    np.testing.assert_array_equal(to_dense(again), to_dense(data))


# --- .mtx ---------------------------------------------------------------------------------------

BANNER = "%%MatrixMarket matrix coordinate "
MTX = {
    "real": BANNER + "real general\n% c\n\n3 4 2\n1 2 1.5\n3 4 -1e300\n",
    "integer": BANNER + "integer general\n2 2 2\n1 1 9007199254740993\n2 2 -4\n",
    "unsigned": BANNER + "unsigned-integer general\n2 2 1\n1 1 18446744073709551615\n",
    "complex": BANNER + "complex general\n2 2 2\n1 1 1 2\n2 1 0 -3.5\n",
    "pattern": BANNER + "pattern general\n2 3 2\n1 1\n2 3\n",
    "duplicates": BANNER + "real general\n2 2 2\n1 1 1\n1 1 2\n",
    "symmetric": BANNER + "real symmetric\n3 3 3\n1 1 1\n2 1 2\n3 2 5\n",
    "skew": BANNER + "integer skew-symmetric\n3 3 2\n2 1 2\n3 2 5\n",
    "hermitian": BANNER + "complex hermitian\n2 2 2\n1 1 1 0\n2 1 3 4\n",
    "pattern symmetric": BANNER + "pattern symmetric\n3 3 2\n2 1\n3 3\n",
    "empty": BANNER + "real general\n3 2 0\n",
    "shouting": "%%MatrixMarket MATRIX Coordinate REAL GENERAL\n1 1 1\n1 1 2\n",
    "array": "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n",
    "array integer": "%%MatrixMarket matrix array integer general\n2 1\n1\n2\n",
    "array complex": "%%MatrixMarket matrix array complex general\n2 1\n1 5\n2 -1\n",
    "array symmetric": "%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
    "array skew": "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n",
    "array hermitian": "%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 5\n3 0\n",
}


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize("name", MTX)
def test_mtx_is_what_scipy_reads(name: str, suffix: str, tmp_path: Path) -> None:
    path = stored(tmp_path, "a" + suffix, MTX[name])
    data = read(path)
    expected: Any = scipy.io.mmread(path)
    assert data.format == (dense(2) if name.startswith("array") else CSR)
    expected = expected.toarray() if sp.issparse(expected) else expected
    assert data.dtype == expected.dtype
    np.testing.assert_array_equal(to_dense(data), expected)


def test_mtx_options(tmp_path: Path) -> None:
    path = stored(tmp_path, "a.mtx", MTX["real"])
    assert read(path, format=CSC).format == CSC
    assert read(path, shape=(5, 5)).shape == (5, 5)
    with pytest.raises(FileFormatError, match=r"holds the file's \(3, 4\), found \(2, 2\)"):
        read(path, shape=(2, 2))
    array = read(stored(tmp_path, "b.mtx", MTX["array"]), format="ss", shape=(2, 4))
    assert (array.nnz, array.shape) == (6, (2, 4))


HEAD = BANNER + "real general\n2 2 2\n"
BAD_MTX = {
    "no banner": ("2 2 1\n1 1 1\n", "line 1: Expected %%MatrixMarket"),
    "nothing": ("", "line 1: Expected %%MatrixMarket"),
    "banner": ("%%MatrixMarket matrix\n", "line 1: Expected five words, found 2"),
    "field": (BANNER + "quaternion general\n", "line 1: Expected one of real.*'quaternion'"),
    "no sizes": (BANNER + "real general\n", "line 2: Expected a header line of 3 integers"),
    "sizes": (BANNER + "real general\n%\n2 2\n1 1 1\n", "line 3: Expected a header line of 3"),
    "truncated": (HEAD + "1 1 1\n", "line 3: Expected 2 entries .*found 1 up to here"),
    "too long": (HEAD + "1 1 1\n2 2 2\n1 2 3\n", "line 5: Expected 2 entries .*one more"),
    "cut line": (HEAD + "1 1 1\n2 2", "line 4: Expected 3 numbers, found 2"),
    "letters": (HEAD + "1 1 1\n2 two 2\n", "line 4: Expected a number, found 'two'"),
    "row": (HEAD + "1 1 1\n3 2 1\n", "line 4: .*1 to 2 in mode 0, found 3"),
    "column": (HEAD + "1 0 1\n2 2 1\n", "line 3: .*1 to 2 in mode 1, found 0"),
    "fraction": (BANNER + "integer general\n1 1 1\n1 1 1.5\n", "line 3: .*64-bit integer"),
    "too big": (BANNER + "integer general\n1 1 1\n1 1 9223372036854775808\n", "line 3: .*64-bit"),
    "diagonal": (BANNER + "real skew-symmetric\n2 2 2\n2 1 1\n2 2 1\n", "line 4: .*no nonzero on"),
    "not square": (BANNER + "real symmetric\n2 3 1\n1 1 1\n", "line 2: Expected a square"),
    "array": ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", "line 5: Expected 4"),
    "array line": ("%%MatrixMarket matrix array real general\n2 2\n1 2 3 4", "line 3: Expected 1"),
}


@pytest.mark.parametrize("name", BAD_MTX)
def test_bad_mtx_names_its_line(name: str, tmp_path: Path) -> None:
    text, message = BAD_MTX[name]
    path = stored(tmp_path, "bad.mtx", text)
    with pytest.raises(FileFormatError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("word", ["1.0", "1.", "1e0", "+1.0", "10e-1", "1.0D0"])
@pytest.mark.parametrize("rows", [1, 20_000])
def test_coordinates_are_in_digits(word: str, rows: int, tmp_path: Path) -> None:
    """As SciPy has it; a value may be written as 1.0 even where it is an integer."""
    head, more = f"{BANNER}real general\n9 9 {rows}\n", "1 2 3\n" * (rows - 1)
    for line in (f"{word} 2 5\n", f"2 {word} 5\n"):
        path = stored(tmp_path, "a.mtx", head + more + line)
        with pytest.raises(FileFormatError, match=rf"line {rows + 2}: Expected an integer as") as c:
            read(path)
        assert "write 1, in digits alone" in str(c.value)
        if line.startswith(word) and word != "+1.0":  # of columns, SciPy takes .0 for the value
            with pytest.raises(ValueError, match="Invalid"):
                scipy.io.mmread(path)
    whole = stored(tmp_path, "b.mtx", f"{BANNER}integer general\n2 2 1\n1 2 4.0\n")
    assert to_dense(read(whole)).tolist() == [[0, 4], [0, 0]]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.mtx", HEAD + "1 1 1\n2 2 2 2\n", "2 coordinates and 1 number: take the rest away"),
        ("a.mtx", BANNER + "pattern general\n2 2 1\n1 1 1\n", "holds 2 coordinates: take"),
        ("a.mtx", BANNER + "complex general\n2 2 1\n1 1 1 2 3\n", "2 coordinates and 2 numbers"),
        ("a.tns", "1 1 2.0\n1 1 1 2.0\n", "each line is one entry: take the rest away"),
        ("a.mtx", HEAD + "1 1 1\n2 2\n", "the file may be truncated here"),
        ("a.tns", "1 1 2.0\n1 1\n", "the file may be truncated here"),
        ("a.mtx", HEAD + "1 1 1\n2, 2, 1, 1\n", "separate numbers by blanks"),
        ("a.mtx", HEAD + "1 1 1\n2 2 2\n1 2 3\n", "the header counts fewer than there are"),
        ("a.mtx", HEAD + "1 1 1\n", "the file may be truncated, or its header wrong"),
        (
            "a.tns",
            "# extended FROSTT format\n2 1\n5 5\n1 1 1\n2 2 2\n",
            "the header counts fewer than there are",
        ),
    ],
)
def test_lines_of_other_lengths_have_their_cause(
    name: str, text: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(FileFormatError) as caught:
        read(stored(tmp_path, name, text))
    hint = caught.value.hint or ""
    assert says in hint
    assert ("truncated" in hint) == ("truncated" in says)


@pytest.mark.parametrize("name", ["bool", "int32", "uint64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("letters", ["ds", "dd", "uq", "ss:1,0"])
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_mtx_round_trip(name: str, letters: str, suffix: str, tmp_path: Path) -> None:
    array = (np.array([[0, 1, 0], [2, 0, 3]]) / (3 if name[0] in "fc" else 1)).astype(name)
    data = pack_coo(np.array(np.nonzero(array)).T, array[np.nonzero(array)], (2, 3), CSR)
    from taco_py.data.convert import convert

    path = tmp_path / ("a" + suffix)
    write(convert(data, Format.parse(letters)), path)
    again = read(path)
    np.testing.assert_array_equal(to_dense(again), array)
    expected: Any = scipy.io.mmread(path)
    np.testing.assert_array_equal(expected.toarray() if letters != "dd" else expected, array)


# --- .npz and the rest --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_npz(kind: str, tmp_path: Path) -> None:
    array = np.array([[0, 1.5], [2, 0], [0, 0]])
    path = tmp_path / "a.npz"
    sp.save_npz(path, sp.csr_array(array).asformat(kind))
    data = read(path)
    assert data.format == {"csr": CSR, "csc": CSC}.get(kind, COO(2))
    np.testing.assert_array_equal(to_dense(data), array)
    assert read(path, format="ss", shape=(4, 4)).shape == (4, 4)
    zipped = tmp_path / "a.npz.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(to_dense(read(zipped)), array)


def test_npz_structure_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    A = sp.csr_array(np.eye(2))
    A.indices = np.array([0, 5], np.int32)
    sp.save_npz(path, A)
    with pytest.raises(StructureError, match=r"a\.npz: .*found indices\[1\] = 5"):
        read(path)


def test_npz_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for content in (b"", b"no zip file", b"PK\x03\x04broken"):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="save_npz"):
            read(path)
    np.savez(path, x=np.ones(2))
    with pytest.raises(FileFormatError, match="save_npz"):
        read(path)


def test_damaged_gzip_names_file_and_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    text = "\n".join(f"{i} 1 {x}" for i, x in enumerate(rng.random(5000), 1)).encode()
    path = tmp_path / "cut.tns.gz"
    path.write_bytes(gzip.compress(text)[:-2000])
    with pytest.raises(FileFormatError, match=r"cut\.tns\.gz: .* line 4\d\d\d, found them damaged"):
        read(path)
    path.write_bytes(b"1 1 1\n")
    with pytest.raises(FileFormatError, match="line 1, found them damaged"):
        read(path)


def test_unknown_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.tns")
    path = stored(tmp_path, "a.xyz", "1")
    with pytest.raises(FileFormatError, match=r"\.tns, \.ttx, \.mtx, .*\.npz.*found '\.xyz'"):
        read(path)
    with pytest.raises(FileFormatError, match=r"\.tns, .*found '\.txt'"):
        write(from_numpy(np.eye(2)), tmp_path / "a.txt")


def test_what_a_file_format_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="order 2 for a Matrix Market file, found order 3"):
        write(from_numpy(np.ones((2, 2, 2))), tmp_path / "a.mtx")
    with pytest.raises(FormatError, match=r"real values for a \.tns file, found complex128"):
        write(from_scipy(sp.csr_array(np.eye(2) * 1j)), tmp_path / "a.tns")
    with pytest.raises(FormatError, match="found a scalar"):
        write(from_numpy(np.array(2.0)), tmp_path / "a.tns")
