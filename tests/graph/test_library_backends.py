"""Products by the BLAS and by MKL: all layouts that operands have, against NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.runtime import blas
from codegen.runtime.blas_vectors import vector_routines
from codegen.runtime.mkl_library import load_mkl
from taco_py.graph.backends.registered import REGISTERED
from tests.graph.test_backends import steps_of, told_of

rng = np.random.default_rng(3)


def greedy(name: str) -> tuple[str]:
    """A backend under another name that computes all that it can."""
    if name == "blas" and not blas.available("float64", 1):
        pytest.skip("there is no library with the BLAS that can be told how many threads to use")
    try:
        backend = REGISTERED.find(name)
    except tp.MissingExtraError:
        pytest.skip("MKL is not installed")
    tp.register_backend(replace(backend, name=f"all_{name}", always=True))
    return (f"all_{name}",)


PRODUCTS = {
    "ij,jk->ik": "ab ba", "ij,jk->ki": "ab ba", "ji,jk->ik": "ba bc", "ij,kj->ik": "ab cb",
    "ji,kj->ik": "ba cb", "ij,j->i": "ab b", "ij,i->j": "ab a", "j,ij->i": "b ab",
    "i,ij->j": "a ab", "i,i->": "a a", "i,j->ij": "a b", "bij,bjk->bik": "cab cbd",
    "ij,ij->": "ab ab", "ijk,kl->ijl": "abc cd",
}  # fmt: skip


def laid_out(array: Any, how: int) -> Any:
    """The same array with other strides."""
    if how == 1:
        return np.asfortranarray(array)
    if how == 2:
        return np.repeat(array, 2, -1)[..., ::2]
    return array[..., ::-1].copy()[..., ::-1] if how == 3 else array


@pytest.mark.parametrize("name", ["blas", "mkl"])
@pytest.mark.parametrize("text", PRODUCTS)
def test_products_of_all_layouts(text: str, name: str) -> None:
    backends = greedy(name)
    sizes = {"a": 4, "b": 5, "c": 3, "d": 2}
    shapes = [tuple(sizes[letter] for letter in each) for each in PRODUCTS[text].split()]
    fused = tp.fuse(lambda a, b: tp.einsum(text, a, b), backends=backends)
    for dtype in ("float64", "float32", "complex64"):
        for how in range(4):
            a, b = (laid_out((rng.random(s) - 0.5).astype(dtype), how) for s in shapes)
            if dtype == "complex64":
                a = a * (1 + 2j)
            found, given = told_of(fused, a, b)
            expected = np.einsum(text, a, b)
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
            assert not given and found.dtype == expected.dtype
    if name == "blas":
        assert steps_of(fused, a, b) == [*backends]


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "csr_matrix"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_sparse_products_by_mkl(form: str, index: str) -> None:
    backends = greedy("mkl")
    functions = (
        lambda A, X: A @ X, lambda A, X: A.T @ X[:4], lambda A, X: X.T @ A.T,
        lambda A, X: A @ X[:, 0], lambda A, X: X[:4].T @ A,
    )  # fmt: skip
    for dtype in ("float64", "float32"):
        A = getattr(sp, form)(sp.random_array((4, 6), density=0.4, rng=rng).astype(dtype))
        A.indptr, A.indices = A.indptr.astype(index), A.indices.astype(index)
        for X in (rng.random((6, 3)), np.asfortranarray(rng.random((6, 3)))):
            X = X.astype(dtype)
            for function in functions:
                fused = tp.fuse(function, backends=backends)
                found, given = told_of(fused, A, X)
                np.testing.assert_allclose(found, function(A.toarray(), X), rtol=1e-5)
                assert not given and found.dtype == dtype
                assert "all_mkl" in steps_of(fused, A, X)


def test_what_a_product_is_added_to_is_part_of_it() -> None:
    fused = tp.fuse(lambda x, w, b: x @ w + b, backends=greedy("blas"))
    x, w = rng.random((4, 3)), rng.random((3, 2))
    for b in (rng.random(2), rng.random((4, 2)), 2.5, np.float64(1.5)):
        np.testing.assert_allclose(fused(x, w, b), x @ w + b)
    assert steps_of(fused, x, w, rng.random(2)) == ["all_blas"]
    assert "as affine" in fused.graph(x, w, rng.random(2)).explain()


def test_vectors_of_any_strides() -> None:
    for dtype in ("float32", "float64"):
        routines = vector_routines(dtype)
        if routines is None:
            pytest.skip("SciPy has no BLAS here")
        x = rng.random(12).astype(dtype)
        for one, other in ((x, x), (x[::2], x[6:]), (x[::-1], x), (x[:0], x[:0]), (x[:1], x[1:2])):
            np.testing.assert_allclose(routines.dot(one, other), one @ other, rtol=1e-5)
        with pytest.raises(ValueError, match="two vectors"):
            routines.dot(x, x[1:])
        with pytest.raises(ValueError, match="Expected a vector"):
            routines.matrix_vector(x.reshape(3, 4), x)


def test_a_library_that_is_missing_is_named() -> None:
    if load_mkl() is not None:
        pytest.skip("MKL is installed")
    with pytest.raises(tp.MissingExtraError, match="pip install mkl"):
        tp.fuse(abs, backends=("mkl",))
