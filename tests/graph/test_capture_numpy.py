"""NumPy's functions of traced arrays: numbers, shapes and types are NumPy's, at other sizes too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

rng = np.random.default_rng(0)
X, TALL, V, W = rng.random((6, 4)), rng.random((9, 5)), rng.random(6), rng.random(9)
SQUARE, LARGER = rng.random((4, 4)) + 4 * np.eye(4), rng.random((5, 5)) + 5 * np.eye(5)
CUBE, WHOLE = rng.random((2, 3, 4)), rng.integers(-5, 9, (6, 4))
COMPLEX = X + 1j * X
GAPS = X.copy()
GAPS[0, 1], GAPS[1, 1], GAPS[2, 2] = np.nan, np.inf, -np.inf
PLACES = rng.integers(0, 4, 7)

Case = tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]
"""A function, operands that it is traced for, and further ones."""


def _for(functions: Iterator[Callable[..., Any]], one: Any, *other: Any) -> list[Case]:
    return [(each, (one,), other) for each in functions]


MOVED: list[Case] = [
    *_for((lambda x, n=n: np.roll(x, n, 0) for n in (1, -1, 0, 6, -9, 25)), X, TALL),
    *_for((lambda x, n=n: np.diff(x, n) for n in (1, 2, 3)), X, TALL),
    *_for((lambda x, r=r: np.tile(x, r) for r in (2, (2, 1), (2, 2, 2), 0)), X, TALL),
    *_for((lambda x, a=a: np.repeat(x, 3, a) for a in (None, 0, -1)), X, TALL),
    *_for((lambda x, k=k: (np.tril(x, k), np.triu(x, k)) for k in (0, 1, -2)), X, TALL),
    *_for((lambda x, k=k: np.rot90(x, k) for k in range(-1, 4)), X, TALL),
    (lambda x: (np.roll(x, 5), np.roll(x, (1, -1), (0, 1))), (X,), (TALL,)),
    (lambda x: (np.rot90(x, 1, (2, 0)), np.rot90(x, 3, (2, 0)), np.tril(x)), (CUBE,), ()),
    (lambda x: (np.diff(x > 0.5, axis=0), np.size(x, 0) * x), (X,), (TALL,)),
    (lambda x, y: (np.atleast_2d(x), np.column_stack([x, y])), (V, X), (W, TALL)),
    (lambda x: (np.unstack(x, axis=1), np.vsplit(x, 2), np.hsplit(x, [1, 3])), (X,), ()),
    (lambda x: (np.fliplr(x), np.flipud(x), np.empty_like(x) * 0), (X,), (TALL,)),
    (lambda x, y: np.block([[x, x], [x, y]]), (SQUARE, SQUARE.T), (LARGER, LARGER.T)),
    (lambda x, y: np.block([[x, 1.0], [y]]), (V[:3], X), ()),
    (lambda x, y: (*np.meshgrid(x, y), *np.meshgrid(x, y, indexing="ij")), (V, W), (W, V)),
    (lambda x: np.diag(x) + np.diag(np.diag(np.outer(x, x))), (V,), (W,)),
    *_for((lambda x, k=k: (np.diag(x, k), np.trace(x, k)) for k in (0, 1, -2, 4)),
          X, TALL, TALL.T, SQUARE),
    (lambda x: np.diagonal(x, 1, 2, 0), (CUBE,), ()),
    (lambda x, i: (x[i], x[:, i], x[i, i], x[..., i] * 2, np.take(x, i, 0)), (X, PLACES), ()),
    (lambda x, i: (x[i % 2, :, i], x[i.reshape(-1, 1) % 2], x[i[0] % 2]), (CUBE, PLACES), ()),
    (lambda x: (x[x.argmax(0)], x[x.sum(1).argmax()]), (X,), (TALL,)),
    (lambda x: np.take_along_axis(x, np.argsort(x, 0), 0), (X,), (TALL,)),
    (lambda x: np.take_along_axis(x, np.argsort(x, 1)[:, :2], 1), (X,), (TALL,)),
    (lambda x: np.arange(x.shape[0])[:, None] * x + np.eye(x.shape[0]), (SQUARE,), (LARGER,)),
    (lambda x: sum(row * 2 for row in x), (X,), (TALL,)),
]  # fmt: skip

PRODUCTS: list[Case] = [
    (lambda x, y: (np.vdot(x, y), np.vecdot(x, y), np.inner(x, y)), (COMPLEX, COMPLEX), ()),
    (lambda x, y: (np.kron(x, y), np.kron(x[0], y)), (X, SQUARE), (TALL, LARGER)),
    (lambda x, y: (np.cross(x, y), np.cross(x.T, y.T, axis=0)), (X[:, :3], X[:, 1:]), ()),
    (lambda x, y: np.linalg.multi_dot([x, y, y[0]]), (X, SQUARE), (TALL, LARGER)),
    (lambda x, y: np.linalg.multi_dot([x[0], y, y]), (X, SQUARE), (TALL, LARGER)),
    (lambda x, y: (np.add.outer(x, y), np.multiply.outer(y, x)), (V, X), (W, TALL)),
    (lambda x, y: (np.diag(x) @ y, y @ np.diag(x), np.diag(x) @ y @ np.diag(x)), (V[:4], SQUARE),
     (V[:5], LARGER)),
    (lambda x, y: (np.einsum("ij,ij->", np.diag(x), y), np.einsum("ij,ij->ij", np.diag(x), y)),
     (V[:4], SQUARE), (V[:5], LARGER)),
    (lambda x: np.diag(x) @ np.diag(x[::-1]), (V,), (W,)),
]  # fmt: skip

STATISTICS: list[Case] = [
    (lambda x, y: (np.average(x), np.average(x, 0, y), np.average(x, weights=x)), (X, V), ()),
    (lambda x: (np.cov(x), np.cov(x, rowvar=False, ddof=0), np.cov(x[0])), (X,), (TALL,)),
    (lambda x: (np.cov(x), np.ptp(x.real, 1, keepdims=True)), (COMPLEX,), ()),
    (lambda x: (np.nansum(x, 0), np.nanprod(x, 1), np.nanmean(x[2:])), (GAPS[:, 2:],), ()),
    (lambda x: (np.nansum(x), np.nanmean(x, 0), np.round(x), x.round(2)), (WHOLE,), ()),
    (lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=1, posinf=2, neginf=-3)), (GAPS,), ()),
    (lambda x: (np.logaddexp.reduce(x, axis=1), np.logaddexp.reduce(x)), (X,), (TALL,)),
    (lambda x: (np.round(x * 100, 1), np.round(x * 100, -1), x.round(3)), (X,), (TALL,)),
    (lambda x: np.select([x > 0.7, x > 0.3], [x, -x], 0.5), (X,), (TALL,)),
    (lambda x: (np.select([x > 1, x > 0], [x, 2]), np.cov(x), np.polyval([1, 0.5], x),
                np.any(x) ** 2), (X.astype(np.float32),), ()),
    (lambda x, y: (np.isclose(x, y), np.isclose(x, y, equal_nan=True)), (GAPS, GAPS + 1e-12), ()),
    (lambda x: (np.allclose(x, x), np.array_equal(x, x), np.array_equal(x, x[1:])), (X,), ()),
    (lambda x: (np.trapezoid(x), np.trapezoid(x, dx=0.5, axis=0), np.trapezoid(x, x[0])), (X,),
     (TALL,)),
    (lambda x: np.polyval([1, 2, 3.5], x), (X,), (TALL,)),
    *_for((lambda x, o=o: np.linalg.norm(x, o, axis=1) for o in (None, 1, 3, 0, np.inf, -np.inf)),
          X, TALL, WHOLE),
    *_for((lambda x, o=o: np.linalg.norm(x, o) for o in (1, -1, np.inf, "fro")), X, TALL),
    (lambda x: (x.sum(where=x > 0.5), np.prod(x, axis=0, where=x > 0.5)), (X,), (TALL,)),
]  # fmt: skip

LEFT_TO_NUMPY: list[Case] = [
    (lambda a, b: (np.linalg.solve(a, b), np.linalg.solve(a, b[:, 0]) + 1), (SQUARE, X.T), ()),
    (lambda a, b: np.linalg.solve(a, b), (np.stack([SQUARE] * 3), X[:4, :2]), ()),
    (lambda a: (np.linalg.inv(a) @ a, np.linalg.det(a), np.linalg.pinv(a[:2])), (SQUARE,), ()),
    (lambda a: (np.linalg.cholesky(a @ a.T), np.linalg.matrix_power(a, 3)), (SQUARE,), (LARGER,)),
    (lambda a: np.linalg.eigvalsh(a + a.T), (SQUARE,), (LARGER,)),
    (lambda a: (np.pad(a, 1), np.pad(a, ((1, 2), (0, 3)), mode="edge")), (X,), (TALL,)),
    (lambda a: (np.median(a, 0), np.quantile(a, [0.1, 0.9], axis=0)), (X,), (TALL,)),
    (lambda a: (np.median(a), np.percentile(a, 50, 1), np.nanmax(a, 0)), (WHOLE,), ()),
    (lambda a: (np.interp(a, [0, 1], [0, 2]), np.digitize(a, [0.2, 0.6])), (X,), (TALL,)),
    (lambda a, b: np.searchsorted(np.sort(a), b), (V, X), (W, TALL)),
    *[(lambda a, b, m=m: np.convolve(a, b, m), (W, V), (TALL[:, 0], V[:2]))
      for m in ("full", "same", "valid")],
    (lambda a: (np.fft.fft(a), np.fft.irfft(np.fft.rfft(a)), np.fft.fft2(a)), (X,), ()),
    (lambda a: (np.fft.fft(a, 16, axis=0), np.isin(a, [1, 2])), (WHOLE,), ()),
    (lambda a: (np.maximum.accumulate(a), np.add.accumulate(a, 1)), (X,), (TALL,)),
]  # fmt: skip

CASES = [*MOVED, *PRODUCTS, *STATISTICS, *LEFT_TO_NUMPY]


def _equal(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _equal(one, other)
        return
    dense = found.toarray() if sp.issparse(found) else np.asarray(found)
    assert (dense.shape, dense.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_allclose(dense, expected, atol=1e-12)


@pytest.mark.rotating(5)
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_give_numpys_numbers(case: int) -> None:
    function, operands, more = CASES[case]
    fused = tp.fuse(function)
    _equal(fused(*operands), function(*operands))
    others = [more] if len(operands) == len(more) else [(each,) for each in more]
    for each in others:
        _equal(fused(*each), function(*each))


S = sp.random_array((5, 5), density=0.4, rng=rng, format="csr")
SPARSE: list[tuple[Callable[..., Any], bool]] = [
    (lambda a: np.tril(a), True), (lambda a: np.triu(a, 1) @ a, True),
    (lambda a: np.roll(a, 1, 0), True), (lambda a: a[np.argsort(np.arange(5) * a.shape[0])], True),
    (lambda a: np.diag(a.sum(1)) @ a @ np.diag(a.sum(0)), True), (lambda a: np.kron(a, a), True),
    (lambda a: np.round(a, 1), True), (lambda a: np.diff(a, axis=0), True),
    (lambda a: np.nan_to_num(a), True), (lambda a: np.linalg.norm(a, 1, axis=0), False),
    (lambda a: a[a.sum(1).argmax()], True),
    (lambda a: np.linalg.solve(a + np.eye(5), a.sum(1)), False),
]  # fmt: skip


@pytest.mark.rotating(3)
@pytest.mark.parametrize("case", range(len(SPARSE)))
def test_sparse_operands_stay_sparse_where_they_can(case: int) -> None:
    function, sparse = SPARSE[case]
    found = tp.fuse(function)(S)
    assert sp.issparse(found) == sparse
    _equal(found, function(S.toarray()))


def test_a_matrix_with_a_diagonal_alone_is_never_formed() -> None:
    graph = tp.fuse(lambda a, d: np.diag(d) @ a @ np.diag(d)).graph(S, V[:5])
    assert not [node for node in graph.primitives.nodes if node.operator == "numpy"]
    assert "equal" not in str(graph.primitives)


def test_results_of_functions_left_to_numpy_are_saved_and_read(tmp_path: Any) -> None:
    fused = tp.fuse(lambda a: np.pad(np.linalg.inv(a), ((1, 0), (0, 2)))[np.argsort(a[0])])
    fused.graph(SQUARE).save(str(tmp_path / "g.json"))
    _equal(tp.graph.load(str(tmp_path / "g.json"))(SQUARE), fused(SQUARE))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda a: np.linalg.svd(a), "found np.linalg.svd"),
        (lambda a: a[a > 0], "how many truths there are is not known"),
        (lambda a: a[1:, np.argsort(a[0])], "slice before"),
        (lambda a: np.linalg.solve(a, np.ones(7)), "right-hand side for each of 4 rows"),
        (lambda a: np.linalg.inv(a[:2]), "square matrix"),
        (lambda a: np.pad(a, 1, mode=lambda *given: None), "besides the arrays of np.pad"),
        (lambda a: np.linalg.norm(a, 2), "another order of a norm"),
        (lambda a: np.mean(a, where=a > 0), "without where="),
        (lambda a: np.convolve(a, a), "Expected vectors"),
        (lambda a: np.median(a, overwrite_input=True), "it is traced with a, axis"),
        (lambda a: [*np.resize(a, 5)], "np.resize"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_line_and_what_is_traced(function: Any, told: str) -> None:
    with pytest.raises(tp.TacoError, match=r"test_capture_numpy\.py") as caught:
        tp.fuse(function)(SQUARE)
    assert told in str(caught.value)


def test_sparse_arrays_are_not_made_dense_for_numpy() -> None:
    for function in (lambda a: np.linalg.inv(a), lambda a: np.linalg.norm(np.linalg.inv(a + a))):
        with pytest.raises(tp.OperandTypeError, match=r"toarray\(\)"):
            tp.fuse(function)(S)


def test_an_error_of_numpy_keeps_its_kind_and_gets_the_line() -> None:
    with pytest.raises(np.linalg.LinAlgError) as caught:
        tp.fuse(lambda a: np.linalg.inv(a))(np.zeros((3, 3)))
    assert any("test_capture_numpy.py" in note for note in caught.value.__notes__)


def test_errors_of_other_libraries_say_that_the_function_was_traced() -> None:
    with pytest.raises(ValueError, match="diagonals") as caught:
        tp.fuse(lambda d: sp.diags_array(d))(V)
    assert any("while the function was traced" in note for note in caught.value.__notes__)


def test_loops_over_many_parts_are_refused() -> None:
    with pytest.raises(tp.OperandTypeError, match="at most 256 parts"):
        tp.fuse(lambda a: [*a])(np.zeros(300))
