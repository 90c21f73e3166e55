"""Files that are no tables of numbers: what is written is read back, by others and by us.

Those of optional libraries are skipped where these are not installed.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.language.diagnostics.errors import FileFormatError, FormatError, MissingExtraError

A = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]])
CUBE = np.zeros((2, 3, 4))
CUBE[0, 1, 2], CUBE[1, 2, 3], CUBE[1, 0, 0] = 5, 6, 7
LIBRARIES = {".h5": "h5py", ".h5ad": "h5py", ".bsp.h5": "h5py", ".parquet": "pyarrow"}
MATRICES = (".mtx", ".npz", ".rb", ".h5", ".h5ad", ".bsp.h5", ".parquet", ".tns", ".ttx")
TENSORS = (".npz", ".bsp.h5", ".parquet", ".tns", ".ttx")


def need(suffix: str) -> None:
    if suffix in LIBRARIES:
        pytest.importorskip(LIBRARIES[suffix], exc_type=ImportError)


@pytest.mark.parametrize("suffix", MATRICES)
@pytest.mark.parametrize("letters", ["ds", "ds:1,0", "uq", "ss"])
def test_a_matrix_is_read_back(suffix: str, letters: str, tmp_path: Path) -> None:
    need(suffix)
    for dtype in ("float64", "int64", "float32", "bool"):
        path = tmp_path / f"a{suffix}"
        tp.write(tp.tensor(A.astype(dtype), format=letters), path)
        found = tp.read(path)
        tp.check(found)
        np.testing.assert_array_equal(found.to_numpy(), A.astype(dtype))
        np.testing.assert_array_equal(
            tp.read(path, format="csr", shape=(5, 6)).to_numpy()[:3, :4], A.astype(dtype)
        )
        assert tp.read(path, dtype="float32").dtype == np.float32


@pytest.mark.parametrize("suffix", [each for each in MATRICES if each != ".h5ad"])
def test_compressed_files(suffix: str, tmp_path: Path) -> None:
    need(suffix)
    path = tmp_path / f"a{suffix}.gz"
    tp.write(sp.csr_array(A), path)
    assert path.read_bytes().startswith(b"\x1f\x8b")
    np.testing.assert_array_equal(tp.read(path).to_numpy(), A)
    with path.open("rb") as file:
        if suffix in (".mtx", ".npz", ".h5", ".parquet"):
            np.testing.assert_array_equal(tp.read(file).to_numpy(), A)


@pytest.mark.parametrize("suffix", TENSORS)
def test_tensors_and_fill_values_are_read_back(suffix: str, tmp_path: Path) -> None:
    need(suffix)
    path = tmp_path / f"a{suffix}"
    for letters in ("sss", "uqq", "dss:2,0,1"):
        tp.write(tp.tensor(CUBE, format=letters), path)
        np.testing.assert_array_equal(tp.read(path).to_numpy(), CUBE)
    filled = tp.Tensor.from_coo(([0, 2], [1, 3]), [5.0, 6.0], (3, 4), fill_value=-np.inf)
    tp.write(filled, path)
    assert tp.read(path).fill_value == -np.inf
    np.testing.assert_array_equal(tp.read(path).to_numpy(), filled.to_numpy())


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_matrices_are_read_back(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    shape = (data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9)))
    count = data.draw(st.integers(0, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    dtype = data.draw(st.sampled_from(["float64", "float32", "int64", "uint8", "complex128"]))
    values = rng.standard_normal(count) * 10.0 ** rng.integers(-30, 30, count)
    values = values.astype(dtype) if dtype[0] in "fc" else rng.integers(0, 99, count).astype(dtype)
    coords = tuple(rng.integers(0, size, count) for size in shape)
    matrix = tp.Tensor.from_coo(coords, values, shape, format=tp.CSC)
    folder = tmp_path_factory.mktemp("random")
    for suffix in (".mtx", ".rb", ".npz"):
        tp.write(matrix, folder / f"a{suffix}")
        for asked in (None, dtype):
            found = tp.read(folder / f"a{suffix}", dtype=asked)
            np.testing.assert_array_equal(found.to_numpy(), matrix.to_numpy())


# ---------------------------------------------------------------- what others write and read


def test_npz_of_scipy_and_of_pydata_sparse(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    tp.write(tp.tensor(A, format="csr"), path)
    assert sp.load_npz(path).format == "csr"
    sparse = pytest.importorskip("sparse", exc_type=ImportError)
    for array in (
        sparse.COO.from_numpy(CUBE),
        sparse.GCXS.from_numpy(CUBE),
        sparse.GCXS.from_numpy(CUBE, compressed_axes=(0, 2)),
        sparse.GCXS.from_numpy(A, compressed_axes=(1,)),
        sparse.COO.from_numpy(A, fill_value=3.0),
        sparse.GCXS.from_numpy(A[0]),
    ):
        sparse.save_npz(path, array)
        found = tp.read(path)
        tp.check(found)
        np.testing.assert_array_equal(found.to_numpy(), array.todense())
    tp.write(tp.tensor(CUBE, format="sss"), path)
    np.testing.assert_array_equal(sparse.load_npz(path).todense(), CUBE)


def test_anndata(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata", exc_type=ImportError)
    path = tmp_path / "a.h5ad"
    for matrix in (sp.csr_matrix(A), sp.csc_matrix(A), A):
        made = anndata.AnnData(X=matrix)
        made.layers["counts"] = sp.csr_matrix(A * 2)
        made.write_h5ad(path)
        np.testing.assert_array_equal(tp.read(path).to_numpy(), A)
        np.testing.assert_array_equal(tp.read(path, key="layers/counts").to_numpy(), 2 * A)
    tp.write(sp.csr_array(A * 3), path, key="layers/thrice")
    tp.write(sp.csr_array(A * 4), path, key="layers/thrice")
    back = anndata.read_h5ad(path)
    np.testing.assert_array_equal(back.layers["thrice"].toarray(), 4 * A)
    for each in (sp.csr_array(A), sp.csc_array(A), A):
        tp.write(each, path)
        found = anndata.read_h5ad(path)
        assert found.shape == A.shape
        X = found.X.toarray() if sp.issparse(found.X) else found.X
        np.testing.assert_array_equal(X, A)


def test_hdf5_keys_and_damage(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", exc_type=ImportError)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")  # as 10x Genomics
        made = sp.csc_array(A)
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(made, name)
        group["shape"] = np.array(A.shape)
    np.testing.assert_array_equal(tp.read(path).to_numpy(), A)
    tp.write(sp.csr_array(A), path, key="other/one")
    with pytest.raises(FileFormatError, match=r"one at 'X', found 'matrix', 'other/one'.*\n.*key="):
        tp.read(path)
    with pytest.raises(FileFormatError, match=r"key 'othr/one', found 'matrix', 'other/one'"):
        tp.read(path, key="othr/one")
    with h5py.File(path, "a") as file:
        file["other/one/indices"][0] = 99
    with pytest.raises(tp.StructureError, match=r"a\.h5: .*found indices\[0\] = 99"):
        tp.read(path, key="other/one")
    with h5py.File(path, "a") as file:
        del file["other/one"].attrs["shape"]
    with pytest.raises(FileFormatError, match=r"a\.h5: .*shape at 'other/one', found .*no shape"):
        tp.read(path, key="other/one")
    with pytest.raises(FileFormatError, match="name of a group or dataset as key, found '/'"):
        tp.write(sp.csr_array(A), path, key="/")
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(FileFormatError, match="HDF5 file to add 'X' to"):
        tp.write(sp.csr_array(A), tmp_path / "text.h5", key="X")
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(FileFormatError, match=r"a\.h5: Expected an HDF5 file"):
        tp.read(path)
    with pytest.raises(FileNotFoundError):
        tp.read(tmp_path / "none.h5")
    with pytest.raises(FormatError, match=r"found order 3.*\n.*\.bsp\.h5"):
        tp.write(tp.tensor(CUBE, format="sss"), path)


def test_binsparse_files_have_their_descriptor(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", exc_type=ImportError)
    path = tmp_path / "a.bsp.h5"
    tp.write(tp.tensor(A, format="csr"), path)
    with h5py.File(path) as file:
        assert '"format": "CSR"' in file.attrs["binsparse"]
        assert set(file) == {"pointers_to_1", "indices_1", "values"}


def test_parquet_of_others(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"row": [2, 0], "col": [1, 3], "value": [1.0, 2.0]}), path)
    assert tp.read(path).shape == (3, 4)
    pq.write_table(pa.table({"row": [2.0, 0], "value": [1.0, 2.0]}), path)
    with pytest.raises(FileFormatError, match=r"a\.parquet: .*found 'row', 'value'"):
        tp.read(path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(FileFormatError, match=r"a\.parquet: Expected a Parquet file"):
        tp.read(path)


# ---------------------------------------------------------------- Rutherford-Boeing

HB = """\
1SYMMETRIC MATRIX OF 3 ROWS AND ITS RIGHT-HAND SIDE                     KEY
             5             1             1             2             1
RSA                        3             3             4             0
(8I3)           (8I3)           (1P,3D12.4)         (3D12.4)
F                          1             0
  1  3  4  5
  1  2  2  3
  1.0000D+00 -2.0000D+00  3.0000D+00
  4.0000D-01
  1.0000D+00  1.0000D+00  1.0000D+00
"""


def test_harwell_boeing_with_a_right_hand_side(tmp_path: Path) -> None:
    path = tmp_path / "a.hb"
    path.write_text(HB)
    expected = [[1, -2, 0], [-2, 3, 0], [0, 0, 0.4]]
    assert tp.read(path).to_numpy().tolist() == expected
    path.write_text(HB.replace("RSA", "RZA").replace("  1  2  2  3\n", "  2  3  3  3\n"))
    with pytest.raises(FileFormatError, match="diagonal of a skew"):
        tp.read(path)
    (tmp_path / "a.psa.gz").write_bytes(gzip.compress(HB.replace("RSA", "PSA").encode()))
    assert tp.read(tmp_path / "a.psa.gz").to_numpy().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_rutherford_boeing_that_scipy_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.rb"
    rng = np.random.default_rng(1)
    made = sp.random_array((30, 30), density=0.2, rng=rng, format="csc")
    tp.write(made, path)
    np.testing.assert_array_equal(scipy.io.hb_read(path).toarray(), made.toarray())
    scipy.io.hb_write(path, made)
    np.testing.assert_allclose(tp.read(path).to_numpy(), made.toarray(), rtol=1e-6)


def test_points_and_exponents_that_fortran_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "a.rb"
    first, plain = "  1.0000D+00 -2.0000D+00  3.0000D+00", "         100       -2.00         300"
    text = HB.replace("(1P,3D12.4) ", "(3F12.2)    ").replace(first, plain)
    path.write_text(text.replace("  4.0000D-01", "         0.4"))
    assert tp.read(path).to_numpy().tolist() == [[1, -2, 0], [-2, 3, 0], [0, 0, 0.4]]


BAD = {
    "type": ("RSA", "RXA", r"line 3: Expected a type of three letters, as RUA, found 'RXA'"),
    "elements": ("RSA", "RSE", r"line 3: Expected an assembled matrix"),
    "format": ("(8I3)           (8I3)", "(8I3)           (8X3)", r"line 4: .*found '\(8X3\)'"),
    "counts": (
        "             5             1",
        "             5             x",
        "line 2: Expected 4",
    ),
    "pointers": ("  1  3  4  5", "  1  3  2  5", "line 6: Expected pointers from 1 to 5 that asc"),
    "rows": ("  1  2  2  3\n", "  1  2  2  4\n", "line 7: Expected a row from 1 to 3, found 4"),
    "word": ("-2.0000D+00", "-2.0x00D+00", r"line 8: Expected a number, found '-2.0x00E\+00'"),
    "end": (HB[HB.index("  1.0000D+00 -2") :], "", "the end of the file"),
    "lines": ("             5             1", "             5             2", "found 2"),
    "square": ("3             3             4", "4             3             4", "square.*4 by 3"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rutherford_boeing_names_its_line(name: str, tmp_path: Path) -> None:
    old, new, message = BAD[name]
    assert HB.count(old) >= 1
    path = tmp_path / "a.rb"
    path.write_text(HB.replace(old, new, 1))
    with pytest.raises(FileFormatError, match=rf"a\.rb, line \d+: .*|{message}") as found:
        tp.read(path)
    assert found.match(message)


def test_what_a_file_cannot_hold_and_keys_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="order 3"):
        tp.write(tp.tensor(CUBE, format="sss"), tmp_path / "a.rb")
    with pytest.raises(FormatError, match=r"sparse tensor for an \.npz file, found a dense one"):
        tp.write(A, tmp_path / "a.npz")
    tp.write(sp.csr_array(A), tmp_path / "a.mtx")
    with pytest.raises(FileFormatError, match=r"no key, .* found 'X'"):
        tp.read(tmp_path / "a.mtx", key="X")
    with pytest.raises(FileFormatError, match=r"no key, .* found 'X'"):
        tp.write(A, tmp_path / "a.mtx", key="X")


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".bsp.h5", ".parquet"])
def test_types_that_a_file_has_not_are_refused(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    need(suffix)
    half = tp.tensor(A.astype("float32"), format="csr").astype("bfloat16")
    with pytest.raises(tp.OperandTypeError, match="found bfloat16"):
        tp.write(half, tmp_path / f"a{suffix}")
    assert not (tmp_path / f"a{suffix}").exists()


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match="h5py to be installed"):
        tp.write(sp.csr_array(A), tmp_path / "a.h5")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"torch to be installed.*\n.*pip install torch"):
        tp.tensor(A).to("torch")


def test_ttx_is_as_taco_has_it(tmp_path: Path) -> None:
    path = tmp_path / "a.ttx"
    tp.write(tp.tensor(CUBE, format="sss"), path)
    lines = path.read_text().splitlines()
    assert lines[0] == "%%MatrixMarket tensor coordinate real general"
    assert lines[2] == "2 3 4 3"
