"""Damaged index arrays of operands are refused through every door, before a kernel reads them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data.kernels import KERNELS

Damage = Callable[[Any, Any, Any], tuple[Any, Any, Any]]


def with_item(name: str, place: int, value: int, dtype: Any = np.int32) -> Damage:
    def damage(values: Any, indices: Any, indptr: Any) -> tuple[Any, Any, Any]:
        arrays = {"indices": indices.astype(dtype), "indptr": indptr.astype(dtype)}
        arrays[name][place] = value
        return values, arrays["indices"], arrays["indptr"]

    return damage


DAMAGES: dict[str, Damage] = {
    "too large": with_item("indices", 5, 100_000_000),
    "at the end": with_item("indices", 2, 4),
    "negative": with_item("indices", 2, -1),
    "beyond 32 bits": with_item("indices", 1, 2**32, np.int64),
    "beyond 63 bits": with_item("indices", 1, 2**63 + 5, np.uint64),
    "big-endian": with_item("indices", 1, 99, ">i4"),
    "pointer too large": with_item("indptr", 1, 1_000_000),
    "pointer negative": with_item("indptr", 1, -2),
    "pointers begin late": with_item("indptr", 0, 1),
    "pointers descend": with_item("indptr", 1, 5),
    "last pointer too large": with_item("indptr", 3, 9),
    "last pointer negative": with_item("indptr", 3, -1),
    "few values": lambda v, i, p: (v[:4], i, p),
    "few indices": lambda v, i, p: (v, i[:4], p),
    "few pointers": lambda v, i, p: (v, i, p[:3]),
    "real indices": lambda v, i, p: (v, i.astype(float), p),
    "a table": lambda v, i, p: (v, i[None], p),
    "strided": lambda v, i, p: (v, np.where(i > 2, 9, i).repeat(2)[::2], p),
}


def compressed(kind: Any, damage: Damage, shape: tuple[int, int]) -> Any:
    values, indices, indptr = (
        np.arange(1.0, 7),
        np.array([0, 2, 1, 3, 0, 2]),
        np.array([0, 2, 4, 6]),
    )
    made = kind((values, indices, indptr), shape=shape)
    parts = damage(values, indices.astype(np.int32), indptr.astype(np.int32))
    made.data, made.indices, made.indptr = parts
    return made


def blocks(damage: Damage) -> Any:
    made = sp.bsr_array((np.ones((6, 2, 2)), [0, 2, 1, 3, 0, 2], [0, 2, 4, 6]), shape=(6, 8))
    values, made.indices, made.indptr = damage(made.data, made.indices, made.indptr)
    made.data = values
    return made


MAKERS: dict[str, Callable[[Damage], Any]] = {
    "csr_array": lambda damage: compressed(sp.csr_array, damage, (3, 4)),
    "csc_matrix": lambda damage: compressed(sp.csc_matrix, damage, (4, 3)),
    "bsr_array": blocks,
}


def doors() -> dict[str, Callable[[Any], object]]:
    def vector(A: Any, mode: int) -> Any:
        return np.ones(A.shape[mode])

    def later(A: Any) -> Any:
        with tp.lazy() as noted:
            y = noted(A) @ vector(A, 1)
        return y.compute()

    def sum_of_squares(A: Any, v: Any) -> Any:
        return np.sum((A @ v) ** 2)

    left, right = "y[j] = A[i,j] * x[i]", "y[i] = A[i,j] * x[j]"
    several = "y[i] = A[i,j] * x[j]; z[j] = A[i,j] * y[i]"
    return {
        "evaluate": lambda A: tp.evaluate(left, A=A, x=vector(A, 0)),
        "rows": lambda A: tp.evaluate(right, A=A, x=vector(A, 1)),
        "copy": lambda A: tp.evaluate("C[i,j] = A[i,j]", A=A),
        "einsum": lambda A: tp.einsum("ij,j->i", A, vector(A, 1)),
        "evaluate_dense": lambda A: tp.evaluate_dense(left, A=A, x=vector(A, 0)),
        "explain": lambda A: tp.explain(left, A=A, x=vector(A, 0)),
        "mask": lambda A: tp.evaluate("C[i,j] = D[i,j]", D=np.ones(A.shape), mask=A),
        "several": lambda A: tp.evaluate(several, A=A, x=vector(A, 1)),
        "semiring": lambda A: tp.evaluate(left, A=A, x=vector(A, 0), semiring="min_plus"),
        "subscript": lambda A: tp.evaluate("C[i,j] = A[p[i],j]", A=A, p=np.array([1, 0])),
        "vjp": lambda A: tp.vjp(right, A=A, x=vector(A, 1)),
        "fuse": lambda A: tp.fuse(sum_of_squares)(A, vector(A, 1)),
        "lazy": later,
        "tensor": tp.tensor,
        "format": lambda A: tp.tensor(A, "ds:1,0"),
        "choose_format": tp.choose_format,
        "out": lambda A: tp.evaluate(left, A=A, x=vector(A, 0), out=np.zeros(A.shape[1])),
    }


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("maker", MAKERS)
def test_damage_is_refused(maker: str, damage: str) -> None:
    made = MAKERS[maker](DAMAGES[damage])
    with pytest.raises(tp.TacoError):
        tp.evaluate("y[j] = A[i,j] * x[i]", A=made, x=np.ones(made.shape[0]))
    with pytest.raises(tp.TacoError):
        tp.tensor(made)


@pytest.mark.parametrize("door", doors())
@pytest.mark.parametrize("damage", ["too large", "pointer negative"])
def test_damage_is_refused_through_every_door(door: str, damage: str) -> None:
    for make in MAKERS.values():
        with pytest.raises(tp.TacoError):
            doors()[door](make(DAMAGES[damage]))


@pytest.mark.parametrize("place", [-7, -1, 4, 100_000_000])
@pytest.mark.parametrize("kind", ["coo", "dok", "lil"])
def test_coordinates_outside_are_refused(kind: str, place: int) -> None:
    made: Any = sp.coo_array((np.ones(2), ([0, 1], [2, 1])), shape=(3, 4)).asformat(kind)
    if kind == "coo":
        made.coords = (made.coords[0], np.array([2, place], np.int64))
    elif kind == "dok":
        made._dict[(1, place)] = 2.0
    else:
        made.rows[1] = [place]
    with pytest.raises(tp.StructureError, match="operand A"):
        tp.evaluate("y[j] = A[i,j] * x[i]", A=made, x=np.ones(3))


def test_the_error_names_operand_array_place_value_and_range() -> None:
    made = compressed(sp.csr_array, DAMAGES["too large"], (3, 4))
    words = (
        r"operand A: Expected indices from 0 to 3, for there are 4 columns, found indices\[5\] = "
    )
    with pytest.raises(tp.StructureError, match=words + "100000000") as refusal:
        tp.evaluate("y[i] = A[i,j] * x[j]", A=made, x=np.ones(4))
    assert "check_format" in str(refusal.value)
    made = compressed(sp.csr_array, DAMAGES["pointers descend"], (3, 4))
    with pytest.raises(tp.StructureError, match=r"indptr\[1\] = 5 and then indptr\[2\] = 4"):
        tp.evaluate("y[i] = A[i,j] * x[j]", A=made, x=np.ones(4))


@pytest.mark.parametrize("text", ["y[i] = A[i,j] * x[j]", "y[i] = A[i,j] + x[j]"])
def test_arrays_put_in_the_place_of_others_are_looked_at_in_warm_calls(text: str) -> None:
    made, x = sp.random_array((30, 40), density=0.2, format="csr", rng=0), np.ones(40)
    for _ in range(3):
        tp.evaluate(text, A=made, x=x)
    made.indices = np.where(np.arange(made.nnz) == 7, 40, made.indices).astype(np.int32)
    with pytest.raises(tp.StructureError, match=r"indices\[7\] = 40"):
        tp.evaluate(text, A=made, x=x)
    listed = made.tocsc().tocsr()[:, :39].tocoo()
    for _ in range(3):
        tp.evaluate(text, A=listed, x=x[:39])
    listed.coords = (listed.coords[0], np.full(listed.nnz, -1, np.int32))
    with pytest.raises(tp.StructureError, match=r"coords\[1\]\[0\] = -1"):
        tp.evaluate(text, A=listed, x=x[:39])


def test_an_array_is_looked_at_once_and_forgotten_with_its_object() -> None:
    made = sp.random_array((30, 40), density=0.2, format="csr", rng=0)
    tp.evaluate("y[i] = A[i,j] * x[j]", A=made, x=np.ones(40))
    key = id(made.indptr), id(made.indices), 40
    assert key in KERNELS.known_arrays.keys
    del made
    gc.collect()
    assert key not in KERNELS.known_arrays.keys


def test_trusted_arrays_are_not_looked_at() -> None:
    made = sp.csr_array((np.ones(2), [0, 1], [0, 1, 2]), shape=(2, 2))
    made.indices = np.array([0, 5], np.int32)
    tp.set_index_checks(False)
    try:
        assert tp.tensor(made).nnz == 2
    finally:
        tp.set_index_checks(True)
    with pytest.raises(tp.StructureError, match=r"indices\[1\] = 5"):
        tp.tensor(made)
    with pytest.raises(tp.OperandError, match="True or False"):
        tp.set_index_checks(1)  # type: ignore[arg-type]


def test_diagonals_beyond_a_matrix_hold_nothing() -> None:
    for offset in (10**8, -(10**8), 2**40, -(2**40)):
        made = sp.dia_array((np.ones((2, 4)), [0, 1]), shape=(3, 4))
        made.offsets = np.array([0, offset])
        found = tp.evaluate("y[i] = A[i,j] * x[j]", A=made, x=np.arange(4.0))
        np.testing.assert_array_equal(found, [0.0, 1.0, 2.0])


def test_objects_of_other_libraries() -> None:
    sparse, pa = pytest.importorskip("sparse"), pytest.importorskip("pyarrow")
    values, crd, pos = np.arange(1.0, 7), np.array([0, 2, 1, 3, 0, 9]), np.array([0, 2, 4, 6])
    given: list[Any] = [
        pa.SparseCSRMatrix.from_numpy(values, pos, crd, (3, 4)),
        pa.SparseCSFTensor.from_numpy(values, [pos], [np.arange(3), crd], [0, 1], (3, 4)),
    ]
    rows = sparse.GCXS.from_scipy_sparse(sp.csr_array(np.ones((3, 4))))
    rows.indices = np.where(np.arange(12) == 3, -1, rows.indices)
    listed = sparse.COO(np.array([[0, 1], [1, 2]]), np.ones(2), shape=(3, 4))
    listed.coords = np.array([[0, 1], [1, 4]])
    for each in (*given, rows, listed):
        with pytest.raises(tp.TacoError):
            tp.evaluate("y[j] = A[i,j] * x[i]", A=each, x=np.ones(3))
