"""Calls over operands in blocks, against NumPy: expressions × sizes of blocks × types × kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.data.kernels import KERNELS

Arrays = Mapping[str, Any]
Oracle = Callable[[Arrays], Any]

CASES: dict[str, tuple[str, Oracle]] = {
    "SpMV": ("y[i] = A[i,j] * x[j]", lambda a: a["A"] @ a["x"]),
    "transposed SpMV": ("y[j] = A[i,j] * z[i]", lambda a: a["A"].T @ a["z"]),
    "SpMM": ("Y[i,k] = A[i,j] * X[j,k]", lambda a: a["A"] @ a["X"]),
    "residual": ("y[i] = z[i] - A[i,j] * x[j]", lambda a: a["z"] - a["A"] @ a["x"]),
    "scaled": ("C[i,j] = 2 * A[i,j]", lambda a: 2 * a["A"]),
    "add": ("C[i,j] = A[i,j] + B[i,j]", lambda a: a["A"] + a["B"]),
    "multiply": ("C[i,j] = A[i,j] * B[i,j]", lambda a: a["A"] * a["B"]),
    "SpGEMM": ("C[i,k] = A[i,j] * K[j,k]", lambda a: a["A"] @ a["K"]),
    "A B^T": ("C[i,k] = A[i,j] * B[k,j]", lambda a: a["A"] @ a["B"].T),
    "A^T A": ("C[j,k] = A[i,j] * A[i,k]", lambda a: a["A"].T @ a["A"]),
    "SDDMM": ("C[i,j] = A[i,j] * U[i,k] * V[k,j]", lambda a: a["A"] * (a["U"] @ a["V"])),
    "masked": ("C[i,j] = A[i,j] * D[i,j]", lambda a: a["A"] * a["D"]),
    "A B x": ("y[i] = A[i,j] * K[j,k] * w[k]", lambda a: a["A"] @ (a["K"] @ a["w"])),
    "sum": ("s = A[i,j] * A[i,j]", lambda a: (a["A"] * a["A"]).sum()),
    "row sums": ("y[i] = sum(j, A[i,j])", lambda a: a["A"].sum(1)),
    "column sums": ("y[j] = sum(i, A[i,j])", lambda a: a["A"].sum(0)),
    "maxima": ("y[i] = max(j, A[i,j])", lambda a: a["A"].max(1)),
    "transposed": ("C[j,i] = A[i,j]", lambda a: a["A"].T),
    "dense sum": ("C[i,j] = A[i,j] + D[i,j]", lambda a: a["A"] + a["D"]),
    "sparse result": ("C[i,k] = A[i,j] * S[j,k]", lambda a: a["A"] @ a["S"]),
    "of a sparse one": ("C[i,j] = A[i,j] + S2[i,j]", lambda a: a["A"] + a["S2"]),
    "of other blocks": ("C[i,j] = A[i,j] * B2[i,j]", lambda a: a["A"] * a["B2"]),
    "in a sum of products": (
        "y[i] = A[i,j] * x[j] + B[i,j] * x[j]", lambda a: (a["A"] + a["B"]) @ a["x"]
    ),
    "diagonal": ("d[i] = Q[i,i]", lambda a: np.diagonal(a["Q"])),
}  # fmt: skip
BLOCKS = {"3x2": (9, 8, 8, 3, 2, 4), "not full": (10, 7, 9, 3, 2, 4)}


def dense_operands(sizes: tuple[int, ...], dtype: str, seed: int = 0) -> dict[str, Any]:
    """Small integers, so that sums are exact in each type."""
    m, n, l = sizes[:3]  # noqa: E741
    rng = np.random.default_rng(seed)

    def sparse(rows: int, columns: int) -> Any:
        made = rng.integers(1, 4, (rows, columns)) * (rng.random((rows, columns)) < 0.3)
        return made.astype(dtype)

    def full(*shape: int) -> Any:
        return rng.integers(0, 3, shape).astype(dtype)

    return {
        "A": sparse(m, n), "B": sparse(m, n), "K": sparse(n, l), "S": sparse(n, l),
        "S2": sparse(m, n), "B2": sparse(m, n), "Q": sparse(m, m), "D": full(m, n), "x": full(n),
        "z": full(m), "w": full(l), "X": full(n, 5), "U": full(m, 2), "V": full(2, n),
    }  # fmt: skip


def stored(arrays: Arrays, sizes: tuple[int, ...], scipys: bool) -> dict[str, Any]:
    """The sparse ones in blocks, CSR and others; as scipy's arrays where blocks are full."""
    *_, r, c, k = sizes
    blocks = {"A": (r, c), "B": (r, c), "K": (c, k), "B2": (2, 2), "Q": (r, r)}
    found: dict[str, Any] = dict(arrays)
    for name, (rows, columns) in blocks.items():
        shape = arrays[name].shape
        full = not (shape[0] % rows or shape[1] % columns)
        if scipys and full:
            found[name] = sp.bsr_array(arrays[name], blocksize=(rows, columns))
        else:
            found[name] = tp.tensor(arrays[name], format=tp.BSR((rows, columns)))
    for name in ("S", "S2"):
        found[name] = sp.csr_array(arrays[name]) if scipys else tp.tensor(arrays[name], format="ds")
    return found


def as_array(found: Any) -> Any:
    if sp.issparse(found):
        return found.toarray()
    return found.to_numpy() if isinstance(found, tp.Tensor) else found


def used(text: str, objects: Arrays) -> dict[str, Any]:
    return {name: obj for name, obj in objects.items() if f"{name}[" in text.split("=", 1)[1]}


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("case", CASES)
def test_expressions(case: str, blocks: str, request: pytest.FixtureRequest) -> None:
    few = not request.config.option.thorough and blocks != "3x2"
    if few and case not in ("SpMV", "SpMM", "add", "SpGEMM", "A B x", "dense sum", "transposed"):
        pytest.skip("--thorough tries it")
    text, oracle = CASES[case]
    scipys = blocks != "not full"
    arrays = dense_operands(BLOCKS[blocks], "float64")
    objects = used(text, stored(arrays, BLOCKS[blocks], scipys))
    for _ in range(2):  # the long way and the short one
        np.testing.assert_array_equal(as_array(tp.evaluate(text, objects)), oracle(arrays))


TYPES = [
    ("SpMV", "float16"), ("SpMV", "uint8"), ("SpMV", "bool"), ("SpGEMM", "complex128"),
    ("add", "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "dtype"), TYPES)
def test_types(case: str, dtype: str) -> None:
    text, _ = CASES[case]
    arrays = dense_operands(BLOCKS["3x2"], dtype)
    plain = used(text, {n: tp.tensor(a) if a.ndim < 2 or n in "XUVD" else tp.tensor(a, format="ds")
                        for n, a in arrays.items()})  # fmt: skip
    objects = used(text, stored(arrays, BLOCKS["3x2"], False))
    found, expected = tp.evaluate(text, objects), tp.evaluate(text, plain)
    np.testing.assert_array_equal(as_array(found), as_array(expected))
    assert found.dtype == expected.dtype


KINDS = {
    "scaled": ("BSR(3,2)", sp.bsr_array), "add": ("BSR(3,2)", sp.bsr_array),
    "multiply": ("BSR(3,2)", sp.bsr_array), "SpGEMM": ("BSR(3,4)", sp.bsr_array),
    "A B^T": ("BSR(3,3)", sp.bsr_array), "A^T A": ("Blocked(2,2,ss)", sp.csr_array),
    "SDDMM": ("BSR(3,2)", sp.bsr_array), "masked": ("BSR(3,2)", sp.bsr_array),
}  # fmt: skip


@pytest.mark.parametrize("case", KINDS)
def test_results_stay_in_blocks(case: str) -> None:
    text, _ = CASES[case]
    arrays, (form, kind) = dense_operands(BLOCKS["3x2"], "float64"), KINDS[case]
    found = tp.evaluate(text, used(text, stored(arrays, BLOCKS["3x2"], False)))
    assert str(found.format) == form
    assert type(tp.evaluate(text, used(text, stored(arrays, BLOCKS["3x2"], True)))) is kind


@pytest.mark.parametrize("wanted", ["bsr(3,2)", "bsr(2,2)", "ds", "ds:1,0", "dd", "uq", "ss"])
@pytest.mark.parametrize("blocks", BLOCKS)
def test_formats_that_are_asked_for(wanted: str, blocks: str) -> None:
    arrays = dense_operands(BLOCKS[blocks], "float64")
    for objects in (stored(arrays, BLOCKS[blocks], True), stored(arrays, BLOCKS[blocks], False)):
        given = {"A": objects["A"], "B": objects["B"]}
        found = tp.evaluate("C[i,j] = A[i,j] - B[i,j]", given, format=wanted)
        np.testing.assert_array_equal(as_array(found), arrays["A"] - arrays["B"])
        if isinstance(found, tp.Tensor):
            assert str(found.format).lower() == wanted
    plain = {"A": sp.csr_array(arrays["A"]), "S2": sp.csr_array(arrays["S2"])}
    found = tp.evaluate("C[i,j] = A[i,j] * S2[i,j]", plain, format=wanted)
    np.testing.assert_array_equal(as_array(found), arrays["A"] * arrays["S2"])


@pytest.mark.parametrize("blocks", BLOCKS)
def test_out_and_what_is_added_to(blocks: str) -> None:
    arrays = dense_operands(BLOCKS[blocks], "float64")
    objects = used("=A[x[", stored(arrays, BLOCKS[blocks], False))
    expected = arrays["A"] @ arrays["x"]
    for _ in range(2):
        out = np.full(len(expected), 7.0)
        assert tp.evaluate("y[i] = A[i,j] * x[j]", objects, out=out) is out
        np.testing.assert_array_equal(out, expected)
        tp.evaluate("y[i] += A[i,j] * x[j]", objects, out=out)
        np.testing.assert_array_equal(out, 2 * expected)
        found = tp.evaluate("y[i] += A[i,j] * x[j]", objects, y=arrays["z"])
        np.testing.assert_array_equal(found, arrays["z"] + expected)
    with pytest.raises(tp.OutputError):
        tp.evaluate("y[i] = A[i,j] * x[j]", objects, out=np.zeros(3))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_einsum(blocks: str) -> None:
    arrays = dense_operands(BLOCKS[blocks], "float64")
    for objects in (stored(arrays, BLOCKS[blocks], True), stored(arrays, BLOCKS[blocks], False)):
        A, K, x = objects["A"], objects["K"], objects["x"]
        for _ in range(2):
            np.testing.assert_array_equal(tp.einsum("ij,j->i", A, x), arrays["A"] @ arrays["x"])
            found = as_array(tp.einsum("ij,jk->ik", A, K))
            np.testing.assert_array_equal(found, arrays["A"] @ arrays["K"])
            found = as_array(tp.einsum(A, [0, 1], A, [2, 1], [0, 2]))
            np.testing.assert_array_equal(found, arrays["A"] @ arrays["A"].T)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("case", ["SpMV", "SpMM", "add", "of a sparse one", "maxima", "SpGEMM"])
def test_compiled(case: str, blocks: str) -> None:
    text, oracle = CASES[case]
    sizes = BLOCKS[blocks]
    arrays = dense_operands(sizes, "float64")
    objects = used(text, stored(arrays, sizes, False))
    forms = {
        name: "d" * obj.ndim if isinstance(obj, np.ndarray) else obj.format
        for name, obj in objects.items()
    }  # fmt: skip
    kernel = tp.compile(text, forms)
    for _ in range(2):
        np.testing.assert_array_equal(as_array(kernel(**objects)), oracle(arrays))
    assert "A: BSR" in repr(kernel)


def test_a_kernel_refuses_other_formats() -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.BSR((2, 2)), x="d")
    with pytest.raises(tp.FormatError, match=r"A in the format BSR\(2,2\)"):
        kernel(A=sp.csr_array(np.eye(4)), x=np.ones(4))
    with pytest.raises(tp.DimensionError, match="one size for index j"):
        kernel(A=tp.tensor(np.eye(4), format="bsr(2,2)"), x=np.ones(6))
    with pytest.raises(tp.FormatError, match="a format of 2 modes for A"):
        tp.compile("y[i] = A[i,j] * x[j]", A=tp.Blocked((2, 2, 2)), x="d")


TOLD = {
    "y[i] = A[i,j] * x[j]": "A[i0,j0,i1,j1] is A[i,j]: the arrays of BSR(3,2)",
    "C[i,j] = A[i,j] + S2[i,j]": "for S2 stores the coordinates of",
    "C[i,j] = A[i,j] * B2[i,j]": "is in blocks of 3 in A, and of 2 in B2",
    "y[i] = argmax(j, A[i,j])": "argmax read plain formats alone",
}


@pytest.mark.parametrize("text", TOLD)
def test_explanations_say_what_is_read_as_what(text: str) -> None:
    arrays = dense_operands(BLOCKS["3x2"], "float64")
    objects = used(text, stored(arrays, BLOCKS["3x2"], False))
    assert TOLD[text] in tp.explain(text, objects, frontier_budget=0)


def test_what_is_read_in_plain_formats() -> None:
    arrays = dense_operands(BLOCKS["not full"], "float64")
    A, x = stored(arrays, BLOCKS["not full"], False)["A"], arrays["x"]
    dense, product = arrays["A"], arrays["A"] @ x
    for _ in range(2):
        calls = {
            "semiring": (tp.einsum("ij,j->i", A, x, semiring="max_times"),
                         (dense * x).max(1, initial=0)),
            "mask": (tp.evaluate("y[i]=A[i,j]*x[j]", A=A, x=x, mask=np.arange(10) % 2),
                     product * (np.arange(10) % 2)),
            "several": (tp.evaluate("y[i]=A[i,j]*x[j]; z[i]=y[i]+y[i]", A=A, x=x), 2 * product),
            "subscripts": (tp.evaluate("y[i]=A[i,j]*x[j+1]", A=A, x=np.r_[0, x]), product),
            "numbers": (tp.evaluate("y[i]=argmax(j,A[i,j])", A=A), dense.argmax(1)),
            "schedule": (tp.evaluate("y[i]=A[i,j]*x[j]", A=A, x=x, schedule="reorder(i,j)"),
                         product),
            "ends": (tp.evaluate("y[i]=exp(A[i,j])*x[j]", A=A, x=x), np.exp(dense) @ x),
        }  # fmt: skip
        for name, (found, expected) in calls.items():
            np.testing.assert_allclose(as_array(found), expected, err_msg=name)


def test_infinite_factors_meet_no_zeros_behind_the_ends() -> None:
    A = tp.tensor(np.ones((4, 5)), format="bsr(3,2)")
    z, x = np.array([np.inf, 1.0, 1.0, np.inf]), np.ones(5)
    found = tp.evaluate("y[i] = A[i,j] * x[j] * z[i]", A=A, x=x, z=z)
    np.testing.assert_array_equal(found, 5 * z)
    made = tp.evaluate("C[i,j] = A[i,j] * s", A=A, s=np.inf)
    np.testing.assert_array_equal(made.to_numpy(), np.full((4, 5), np.inf))
    np.testing.assert_array_equal(tp.evaluate("y[i] = C[i,j] * x[j]", C=made, x=x), [np.inf] * 4)


def test_unordered_blocks_and_blocks_that_are_stored_twice() -> None:
    blocks = np.arange(24.0).reshape(4, 3, 2)
    unordered = sp.bsr_array((blocks, [2, 0, 1, 1], [0, 2, 4]), shape=(6, 6))
    dense, x = unordered.toarray(), np.arange(6.0)
    for _ in range(2):
        np.testing.assert_array_equal(
            tp.evaluate("y[i] = A[i,j] * x[j]", A=unordered, x=x), dense @ x
        )
        found = tp.evaluate("C[i,j] = A[i,j] * A[i,j]", A=unordered)
        np.testing.assert_array_equal(as_array(found), dense * dense)
        found = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=unordered, B=unordered)
        np.testing.assert_array_equal(as_array(found), 2 * dense)


def test_calls_with_other_blocks_are_told_apart() -> None:
    dense, x = np.arange(144.0).reshape(12, 12), np.ones(12)
    for sizes in ((4, 4), (6, 6), (3, 4), (6, 4), (4, 6)):
        A = sp.bsr_array(dense, blocksize=sizes)
        np.testing.assert_array_equal(tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=x), dense @ x)
        T = tp.tensor(A)
        np.testing.assert_array_equal(tp.evaluate("y[i] = A[i,j] * x[j]", A=T, x=x), dense @ x)


def test_no_conversion_where_none_is_needed() -> None:
    A = tp.tensor(np.eye(12), format="bsr(3,2)")
    tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=np.ones(12))
    tp.einsum("ij,j->i", A, np.ones(12))
    tp.compile("y[i] = A[i,j] * x[j]", A=tp.BSR((3, 2)), x="d")(A, np.ones(12))
    assert A._plain is None  # type: ignore[attr-defined]


@settings(max_examples=5)
@given(
    st.sampled_from(["SpMV", "SpMM", "add", "SpGEMM", "A B^T", "residual", "A B x"]),
    st.tuples(*(st.integers(1, 7) for _ in range(3))),
    st.tuples(*(st.integers(1, 4) for _ in range(3))),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_any_sizes(
    case: str, shape: tuple[int, ...], blocks: tuple[int, ...], scipys: bool, seed: int
) -> None:
    text, oracle = CASES[case]
    sizes = (*shape, *blocks)
    arrays = dense_operands(sizes, "float64", seed)
    objects = used(text, stored(arrays, sizes, scipys))
    np.testing.assert_array_equal(as_array(tp.evaluate(text, objects)), oracle(arrays))


def test_later_calls_take_the_short_way() -> None:
    A, x = tp.tensor(np.eye(12), format="bsr(3,2)"), np.ones(12)
    text = "r[i] = A[i,j] * x[j] + 0"
    tp.evaluate(text, A=A, x=x)
    before = len(KERNELS.memo)
    tp.evaluate(text, A=A, x=x)
    assert len(KERNELS.memo) == before


@pytest.mark.parametrize("form", ["ell", "dia", "bsr(2,2)", "sdia(2)", "rle", "blocked(2,2,ss)"])
def test_results_of_semirings_keep_their_fill_value(form: str) -> None:
    array = sp.random_array((6, 6), density=0.3, rng=np.random.default_rng(0)).tocsr()
    for operand in (array, tp.tensor(array)):
        text = "C[i,j] = A[i,j] + A[i,j]"
        found = tp.evaluate(text, A=operand, semiring="min_plus", format=form)
        assert found.fill_value == np.inf
        expected = tp.evaluate_dense(text, A=array, semiring="min_plus")
        assert np.array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize("other", ["rr", "dr", "mr", "db", "sd"])
@pytest.mark.parametrize("own", ["uq:1,0", "uq", "ds", "ds:1,0"])
def test_zeros_that_formats_store_are_entries_whatever_stands_beside(own: str, other: str) -> None:
    one = sp.coo_array(([2.0, 5.0], ([0, 1], [0, 1])), shape=(3, 4))
    two = sp.coo_array(([3.0, 4.0], ([0, 2], [2, 1])), shape=(3, 4))
    given = {"A": tp.tensor(one, format=own), "B": tp.tensor(two, format=other)}
    for text in ("C[i,j] = A[i,j] * B[i,j]", "C[i,j] = A[i,j] + B[i,j]"):
        found = tp.evaluate(text, given, semiring="min_plus")
        expected = tp.evaluate_dense(text, given, semiring="min_plus")
        assert np.array_equal(found.to_numpy(), expected)
