"""Which object a result is, by the table of `values.result_table`; and results that are views."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.arguments.result_table import markdown
from tests.corpus.formats import to_dense
from tests.pages import DOCS

N = 6
RNG = np.random.default_rng(5)
A, B = (sp.random_array((N, N), density=0.3, rng=RNG, format="csr") for _ in range(2))
D, X = RNG.random((N, N)), RNG.random(N) + 1
ADDED = "C[i,j] = A[i,j] + B[i,j]"


def test_the_documentation_has_the_table() -> None:
    assert markdown() in (DOCS / "formats.md").read_text()


# ---------------------------------------------------------------- Tensors

STORED = (
    ("C[i,j] = A[i,j] + A[j,i]", {"A": "ds"}, "ds"),
    ("C[i,j] = A[i,j] - A[j,i]", {"A": "ds:1,0"}, "ds"),
    ("C[i,j] = A[i,j] * X[j] + X[i] * A[j,i]", {"A": "ds"}, "ds"),
    ("C[i,j] = A[i,j] + A[j,i]", {"A": "ss"}, "ss"),
    ("C[i,j] = A[i,j] + A[j,i]", {"A": "uq"}, "ss"),
    ("C[i,j] = A[i,j] + A[j,i]", {"A": "sd"}, "ss"),
    (ADDED, {"A": "ds", "B": "ds:1,0"}, "ds"),
    (ADDED, {"A": "ss", "B": "ds:1,0"}, "ss"),
    (ADDED, {"A": "sd", "B": "ss"}, "ss"),
    (ADDED, {"A": "sd", "B": "sd"}, "sd"),
    ("C[i,j] = A[i,k] * A[j,k]", {"A": "ds"}, "ds"),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "ds", "B": "ds:1,0"}, "ds"),
    ("C[i,j] = A[i,j] + A[j,i] + D[i,j]", {"A": "ds"}, None),
    ("C[i,j] = A[i,k] * D[k,j]", {"A": "ds"}, None),
    ("y[i] = A[i,j] * X[j]", {"A": "ds"}, None),
    ("y[i] = A[i,j] * X[j]", {"A": "ss"}, "s"),
    ("C[i,j] = 2 * A[j,i]", {"A": "ds"}, "ds:1,0"),
    ("C[i,j] = A[j,i]", {"A": "uq"}, "uq:1,0"),
)


@pytest.mark.parametrize(("text", "forms", "expected"), STORED)
def test_a_result_of_tensors_is_dense_only_where_a_term_fills_it(
    text: str, forms: dict[str, str], expected: str | None
) -> None:
    arrays = {"A": A, "B": B, "D": D, "X": X}
    operands = {
        name: tp.tensor(each, format=forms[name]) if name in forms else each
        for name, each in arrays.items()
        if f"{name}[" in text
    }
    result = tp.evaluate(text, operands)
    found = None if isinstance(result, np.ndarray) else str(result.format)
    assert found == expected
    np.testing.assert_allclose(to_dense(result), tp.evaluate_dense(text, operands))
    kernel = tp.compile(text, formats_of(operands))
    np.testing.assert_allclose(to_dense(kernel(**operands)), tp.evaluate_dense(text, operands))


def formats_of(operands: dict[str, Any]) -> dict[str, Any]:
    return {name: each.format if isinstance(each, tp.Tensor) else tp.dense(each.ndim)
            for name, each in operands.items()}  # fmt: skip


def test_blocks_keep_their_levels() -> None:
    blocks = tp.tensor(RNG.random((2, 3, 4)) * (RNG.random((2, 3, 4)) < 0.5), format="dds")
    assert str(tp.evaluate("C[i,j,k] = 2 * T[i,j,k]", T=blocks).format) == "dds"
    cube = tp.tensor(np.ones((2, 2, 2)), format="dss")
    assert str(tp.evaluate("C[i,j,k] = T[i,j,k] + T[k,j,i]", T=cube).format) == "dss"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("AB"), st.booleans()), min_size=1, max_size=3),
    st.fixed_dictionaries({name: st.sampled_from(("ds", "ds:1,0", "ss", "uq")) for name in "AB"}),
)
def test_sums_of_sparse_tensors_are_sparse(
    terms: list[tuple[str, bool]], forms: dict[str, str]
) -> None:
    value = " + ".join(f"{name}[{'j,i' if turned else 'i,j'}]" for name, turned in terms)
    operands = {n: tp.tensor(m, format=forms[n]) for n, m in (("A", A), ("B", B)) if n in value}
    result = tp.evaluate(f"C[i,j] = {value}", operands)
    assert isinstance(result, tp.Tensor)
    assert result.nnz <= sum(operands[name].nnz for name, _ in terms)
    expected = tp.evaluate_dense(f"C[i,j] = {value}", operands)
    np.testing.assert_allclose(to_dense(result), expected)


# ---------------------------------------------------------------- scipy's columns first

COLUMNS = (
    ("C[j,i] = 2 * A[i,j]", {"A": "csr"}, "csc"),
    ("C[j,i] = 2 * A[i,j]", {"A": "csc"}, "csr"),
    ("C[j,i] = A[i,j] * B[i,j]", {"A": "csr", "B": "csr"}, "csc"),
    ("C[i,j] = A[k,i] * B[j,k]", {"A": "csr", "B": "csr"}, "csc"),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "csr", "B": "csr"}, "csr"),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "csc", "B": "csc"}, "csc"),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "csr", "B": "csc"}, "csr"),
    ("C[i,j] = A[k,i] * A[k,j]", {"A": "csr"}, "csr"),
    ("C[i,j] = A[k,i] * A[k,j]", {"A": "csc"}, "csc"),
    ("C[i,j] = A[i,j] + A[j,i]", {"A": "csr"}, "csr"),
    ("C[i,j] = A[i,j] + A[j,i]", {"A": "csc"}, "csc"),
    ("C[j,i] = 2 * A[i,j]", {"A": "coo"}, "csr"),
)


@pytest.mark.parametrize(("text", "forms", "expected"), COLUMNS)
def test_a_matrix_is_stored_as_its_operands_store_its_indices(
    text: str, forms: dict[str, str], expected: str
) -> None:
    operands = {name: {"A": A, "B": B}[name].asformat(form) for name, form in forms.items()}
    result = tp.evaluate(text, operands)
    assert result.format == expected
    tp.check(result)
    np.testing.assert_allclose(result.toarray(), tp.evaluate_dense(text, operands))


# ---------------------------------------------------------------- few entries in many rows

FAR = 10**9
TEXTS = (
    "C[i,j] = 2 * A[i,j]",
    "C[i,j] = A[i,j] + B[i,j]",
    "C[i,j] = A[i,j] - A[j,i]",
    "C[i,j] = A[i,j] * B[i,j]",
    "C[i,j] = A[i,k] * B[k,j]",
    "C[i,j] = A[i,k] * A[j,k]",
    "C[i,j] = A[k,i] * A[k,j]",
    "C[j,i] = A[i,j]",
    "C[j,i] = 2 * A[i,j]",
    "C[i,j] = A[i,j] / sum(k, A[i,k])",
    "y[i] = A[i,j]",
    "y[j] = A[i,j] * B[i,j]",
    "y[i] = A[i,i]",
    "C[i,k] = S[i,k] * d[k]",
    "C[i,k] = S[i,j] * E[j,k]",
    "y[i] = S[i,k] * d[k]",
)


def far_list(columns: int = FAR) -> Any:
    rows = np.array([5, FAR - 1, 12, 5])
    across = np.array([3, 5, 12, 4]) if columns == FAR else np.array([0, 1, 2, 1])
    return sp.coo_array((np.array([1.0, 2.0, 3.0, 4.0]), (rows, across)), shape=(FAR, columns))


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", [None, "uq", "ss", "ss:1,0"])
@pytest.mark.parametrize("text", TEXTS)
def test_no_array_is_as_long_as_rows_that_outnumber_entries_by_far(
    text: str, form: str | None
) -> None:
    sparse = {"A": far_list(), "B": 2 * far_list(), "S": far_list(3)}
    stored = {n: m if form is None else tp.tensor(m, format=form) for n, m in sparse.items()}
    dense = {"d": np.ones(3), "E": np.ones((3, 2))}
    operands = {n: m for n, m in (stored | dense).items() if f"{n}[" in text}
    result = tp.evaluate(text, operands)
    assert isinstance(result, sp.coo_array if form is None else tp.Tensor)
    assert result.nnz <= 20
    expected = text_in_small(text, sparse, dense)
    assert entries(result) == pytest.approx(expected)


def text_in_small(text: str, sparse: dict[str, Any], dense: dict[str, Any]) -> dict[Any, float]:
    """What the text gives over operands whose far coordinates are near."""
    near = {5: 0, FAR - 1: 1, 12: 2, 3: 3, 4: 4}
    small = dict(dense)
    for name, matrix in sparse.items():
        coords = [
            np.array([near[int(c)] for c in crd]) if n == FAR else crd
            for crd, n in zip(matrix.coords, matrix.shape, strict=True)
        ]
        shape = tuple(5 if n == FAR else n for n in matrix.shape)
        small[name] = sp.coo_array((matrix.data, coords), shape=shape).toarray()
    used = {name: each for name, each in small.items() if f"{name}[" in text}
    if "/" in text:
        used["A"] = sp.csr_array(used["A"])
    found = to_dense(tp.evaluate_dense(text, used))
    far = {value: key for key, value in near.items()}
    modes = [n == 5 for n in found.shape]
    return {
        tuple(far[int(c)] if is_far else int(c) for c, is_far in zip(at, modes, strict=True)): v
        for at, v in zip(np.argwhere(found), found[found != 0].tolist(), strict=True)
    }


def entries(result: Any) -> dict[Any, float]:
    if isinstance(result, tp.Tensor):
        coords, values = result.to_coo()
        at: Any = coords
    else:
        at, values = np.array(result.coords).T, result.data
    found: dict[Any, float] = {}
    for place, value in zip(at, values, strict=True):
        key = tuple(map(int, place))
        found[key] = found.get(key, 0.0) + float(value)
    return {place: value for place, value in found.items() if value}


def test_rows_that_an_operand_has_an_array_for_may_have_another() -> None:
    n = 1 << 22
    one = sp.coo_array(([1.0], ([n - 1], [3])), shape=(n, 4))
    assert tp.evaluate("C[i,j] = 2 * A[i,j]", A=one).format == "coo"
    assert tp.evaluate("C[i,j] = 2 * A[i,j]", A=one.tocsr()).format == "csr"
    assert tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=one, B=one.tocsr()).format == "csr"
    assert type(tp.evaluate("y[i] = A[j,i] * x[j]", A=one.T, x=np.ones(4))) is sp.coo_array
    assert type(tp.evaluate("y[i] = A[j,i] * x[i]", A=one.T, x=np.ones(n))) is np.ndarray
    assert tp.evaluate("C[i,j] = 2 * A[i,j]", A=one, format="csr").format == "csr"


# ---------------------------------------------------------------- modes permuted


def arrays_of(x: Any) -> Iterator[Any]:
    data = x.data if isinstance(x, tp.Tensor) else None
    if data is None:
        yield from (x.data, *(x.coords if x.format == "coo" else (x.indices, x.indptr)))
    else:
        yield data.values
        yield from (a for level in data.levels for a in (level.pos, level.crd) if a is not None)


def shares(one: Any, other: Any) -> bool:
    theirs = list(arrays_of(other))
    return all(any(np.shares_memory(a, b) for b in theirs) for a in arrays_of(one))


MATRICES = {
    "csr": A, "csc": A.tocsc(), "coo": A.tocoo(), "csr_matrix": sp.csr_matrix(A),
    "ds": tp.tensor(A), "ss": tp.tensor(A, format="ss"), "uq": tp.tensor(A, format="uq"),
    "sd:1,0": tp.tensor(A, format="sd:1,0"),
}  # fmt: skip
SHARED = {"csr": "csc", "csc": "csr", "coo": "coo", "csr_matrix": "csc"}


@pytest.mark.parametrize("form", MATRICES)
def test_a_permuted_matrix_shares_its_arrays(form: str) -> None:
    matrix = MATRICES[form]
    for _ in range(2):  # the second call finds the short way
        for result in (
            tp.evaluate("B[j,i] = A[i,j]", A=matrix),
            tp.einsum("ij->ji", matrix),
            tp.evaluate("B[j,i] = A[i,j]", A=matrix, dtype=np.float64),
        ):
            assert shares(result, matrix)
            np.testing.assert_array_equal(to_dense(result), A.toarray().T)
            tp.check(result)
            if form in SHARED:
                assert result.format == SHARED[form]
                assert isinstance(result, sp.spmatrix) == isinstance(matrix, sp.spmatrix)


@pytest.mark.parametrize("order", list(permutations("ijk"))[1:])
@pytest.mark.parametrize("form", ["coo", "sss", "uqq", "dss:2,0,1", "sds"])
def test_a_permuted_tensor_shares_its_arrays(form: str, order: tuple[str, ...]) -> None:
    array = RNG.random((2, 3, 4)) * (RNG.random((2, 3, 4)) < 0.4)
    tensor: Any = sp.coo_array(array) if form == "coo" else tp.tensor(array, format=form)
    found = tp.einsum(f"ijk->{''.join(order)}", tensor)
    np.testing.assert_array_equal(to_dense(found), np.einsum(f"ijk->{''.join(order)}", array))
    assert shares(found, tensor)
    assert type(found) is type(tensor)


def test_what_is_asked_for_is_made() -> None:
    made = (
        tp.evaluate("B[j,i] = A[i,j]", A=A, format="csr"),
        tp.evaluate("B[j,i] = A[i,j]", A=A, format="csc"),
        tp.evaluate("B[j,i] = A[i,j]", A=A, format="coo"),
        tp.evaluate("B[j,i] = A[i,j]", A=A, dtype=np.complex128),
        tp.evaluate("B[j,i] = 1 * A[i,j]", A=A),
        tp.evaluate("B[i,j] = A[i,j]", A=A),
        tp.einsum("ij->ij", A),
    )
    assert [each.format for each in made] == ["csr", "csc", "coo", "csc", "csc", "csr", "csr"]
    for each in made:
        assert not any(np.shares_memory(a, b) for a in arrays_of(each) for b in arrays_of(A))
        np.testing.assert_array_equal(abs(each).sum(), A.sum())
    full = tp.evaluate("B[j,i] = A[i,j]", A=A, format="dd")
    np.testing.assert_array_equal(full, A.toarray().T)
    out = np.empty((N, N))
    dense = tp.evaluate("B[j,i] = A[i,j]", A=A, format="dd", out=out)
    assert dense is out


def test_what_is_permuted_stays_as_it_was_stored() -> None:
    parts = (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 2, 3]))
    odd = sp.csr_array(parts, shape=(2, 3))  # unsorted
    twice = sp.coo_array(([1.0, 2.0], ([1, 1], [0, 0])), shape=(2, 3))
    for matrix in (odd, twice):
        for array in arrays_of(matrix):
            array.flags.writeable = False
        turned = tp.einsum("ij->ji", matrix)
        assert turned.nnz == matrix.nnz
        assert not turned.data.flags.writeable
        np.testing.assert_array_equal(turned.toarray(), matrix.toarray().T)
        again = tp.einsum("ij,jk->ik", turned, np.eye(2))
        np.testing.assert_array_equal(again, matrix.toarray().T)


def test_explain_says_that_nothing_runs() -> None:
    told = tp.explain("B[j,i] = A[i,j]", A=A)
    assert told.startswith("runs      0 kernels, 0 copies")
    assert "shares" in told
    assert tp.explain("ij->ji", A).startswith("runs      0 kernels, 0 copies")


def test_a_wrong_call_is_refused_as_any_other() -> None:
    with pytest.raises(tp.TacoError, match="Expected an operand A"):
        tp.evaluate("B[j,i] = A[i,j]", C=A)
    with pytest.raises(tp.TacoError, match="besides"):
        tp.evaluate("B[j,i] = A[i,j]", A=A, C=A)
    with pytest.raises(tp.TacoError, match="Expected 2 indices"):
        tp.evaluate("B[k,j,i] = A[i,j,k]", A=A)
    with pytest.raises(tp.TacoError, match="static"):
        tp.evaluate("B[j,i] = A[i,j]", A=A, static={"i": N + 1})
