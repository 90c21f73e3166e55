"""What is done with the elements of a product where they are made: compiled, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.fuse import FusedFunction
from tests.epilogue.functions_of_products import all_at_once, of_product, operands_of
from tests.epilogue.interpreted_epilogues import arrays_foreseen, planned

RULE = "fuse_epilogue"
ALL = of_product(all_at_once)
PRODUCT = "P[i,j] = sum(k, X[i,k] * W[k,j])"


@pytest.fixture
def two_threads() -> Iterator[None]:
    tp.set_threads(2)
    yield
    tp.set_threads(None)


def operands(rows: int, columns: int, depth: int, dtype: str, sparse: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng(rows)
    X = rng.standard_normal((rows, depth))
    X[rng.random(X.shape) < 0.9 * sparse] = 0
    return operands_of(sp.csr_array(X) if sparse else X, columns, dtype)


def check(fused: FusedFunction, *given: Any) -> None:
    """Compare with NumPy in float64, to which sums of so many terms come close."""
    exact = [each.astype(np.float64) if each.dtype.kind == "f" else each for each in given]
    share = 1e-4 if given[0].dtype == np.float32 else 1e-11
    for found, wanted in zip(fused(*given), ALL(*exact), strict=True):
        assert found.dtype == given[0].dtype
        np.testing.assert_allclose(found, wanted, rtol=share, atol=share * 10)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sparse", [False, True])
def test_all_epilogues_of_one_product(dtype: str, sparse: bool) -> None:
    fused = tp.fuse(ALL)
    check(fused, *operands(700, 130, 40, dtype, sparse))
    told = fused.graph(*operands(700, 130, 40, dtype, sparse)).explain()
    assert "runs      1 kernel, 0 copies" in told
    assert "epilogue: " in told
    sizes = ((701, 7, 13), (193, 64, 17), (6, 5, 1), (0, 3, 2), (5, 0, 2))
    for rows, columns, depth in sizes[: 2 if sparse else None]:  # with few entries, others are made
        check(fused, *operands(rows, columns, depth, dtype, sparse))


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_do_not_depend_on_the_number_of_threads(sparse: bool) -> None:
    fused = tp.fuse(ALL)
    given = operands(700, 130, 40, "float32", sparse)
    found = []
    for threads in (1, 2):
        tp.set_threads(threads)
        found.append([each.tobytes() for each in map(np.asarray, fused(*given))])
    tp.set_threads(None)
    assert found[0] == found[1]


def test_transposed_operands_and_views() -> None:
    X, W, b, R, kept = operands(700, 130, 40, "float32", False)
    fused = tp.fuse(ALL)
    check(fused, np.asfortranarray(X), W.T.copy().T, b, np.asfortranarray(R), kept)
    wide = np.zeros((700, 260), np.float32)
    wide[:, ::2] = R
    check(fused, X, W, np.repeat(b, 2)[::2], wide[:, ::2], kept)


REFUSED = (
    # (texts, sizes, formats, what is said)
    (("H[i,j] = P[i,j] + b[j]",), {"k": 4000}, {}, "a sum of 4000 products"),
    (("H[i,j] = P[i,j] + b[j]",), {"i": 100, "k": 200}, {}, "it has 100 rows"),
)


@pytest.mark.parametrize(("texts", "sizes", "formats", "words"), REFUSED)
def test_products_that_keep_their_own_kernel(
    texts: tuple[str, ...], sizes: dict[str, int], formats: dict[str, str], words: str
) -> None:
    found = planned((PRODUCT, *texts), ("H",), formats, sizes=sizes)
    assert len(found.kernels) == 2
    assert any(words in entry.reason for entry in found.log.entries if entry.rule == RULE)


def test_what_reads_a_sum_of_all_comes_after() -> None:
    texts = ("m[i] = sum(j, abs(P[i,j]))", "H[i,j] = P[i,j] / m[i]")
    found = planned((PRODUCT, *texts), ("H",))
    first, last = found.kernels
    assert (first.target, last.target) == ("P", "H") or last.target == "H"
    assert [side.target.tensor for side in first.problem.side] != ["H"]


def test_the_rule_can_be_forbidden() -> None:
    texts = (PRODUCT, "H[i,j] = max(P[i,j] + b[j], 0)")
    assert len(planned(texts, ("H",)).kernels) == 1
    assert len(planned(texts, ("H",), left_out=(RULE,)).kernels) == 2


def test_a_single_text_has_an_epilogue_too() -> None:
    text = "H[i,j] = max(sum(k, X[i,k] * W[k,j]) + b[j], 0)"
    X, W, b, _, _ = operands(700, 130, 40, "float64", False)
    given = {"X": X, "W": W, "b": b}
    np.testing.assert_allclose(tp.evaluate(text, given), np.maximum(X @ W + b, 0), atol=1e-12)
    assert "epilogue: accumulator → + b[j] → max(·, 0) → store H[i,j]" in tp.explain(text, given)


def test_what_an_epilogue_reads_and_writes_is_asked_for_before_its_tile() -> None:
    """Rows of R and H, of which each tile has a piece; b is near from the tile before."""
    plan = planned((PRODUCT, "H[i,j] = max(P[i,j] + b[j], 0) + R[i,j]"), ("H",))
    (step,) = plan.kernels
    assert arrays_foreseen(step) == {"H", "R"}


def test_terms_may_be_added_to_a_product_in_rows() -> None:
    text = "P[i,j] = sum(k, X[i,k] * W[k,j]) - m[i]; s[i] = sum(j, exp(P[i,j]))"
    X, W, *_ = operands(200, 7, 50, "float64", True)
    given = {"X": X, "W": W, "m": np.arange(200.0)}
    expected = X @ W - given["m"][:, None]
    P, s = tp.evaluate(text, given, outputs=("P", "s"))
    np.testing.assert_allclose(P, expected, atol=1e-12)
    np.testing.assert_allclose(s, np.exp(expected).sum(1), atol=1e-12)
    assert "epilogue" in tp.explain(text, given, outputs=("P", "s"))


def test_blocks_are_of_the_rows_of_the_product_whatever_is_added_to_it() -> None:
    """Columns of C lie one after the other; A is read a row at a time all the same."""
    text = "D[i,k] = C[i,k] - A[i,j] * X[j,k]; s[i] = sum(k, exp(D[i,k]))"
    A, X, *_ = operands(300, 60, 40, "float64", True)
    given = {"A": A, "X": X / 40, "C": np.asfortranarray(np.ones((300, 60)))}
    D, s = tp.evaluate(text, given, outputs=("D", "s"))
    expected = given["C"] - A @ given["X"]
    np.testing.assert_allclose(D, expected, atol=1e-12)
    np.testing.assert_allclose(s, np.exp(expected).sum(1), rtol=1e-12)
    assert "sum of columns s[i]" in tp.explain(text, given, outputs=("D", "s"))
