"""~ in sums: without a sign it depends on the width of its argument's type, and keeps that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
X, W = np.array([3, 0, 60, 7, 0, 41, 1]), np.array([1, 8, 0, 2, 5, 3, 4])

CASES: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("s = sum(i, ~x[i])", lambda x, w: (~x).sum()),
    ("s = sum(i, ~~x[i])", lambda x, w: (~~x).sum()),
    ("s = prod(i, ~x[i])", lambda x, w: (~x).prod()),
    ("s = max(i, ~x[i])", lambda x, w: (~x).max()),
    ("s = min(i, ~x[i])", lambda x, w: (~x).min()),
    ("s = argmin(i, ~x[i])", lambda x, w: (~x).argmin()),
    ("s = count(i, ~x[i])", lambda x, w: np.count_nonzero(~x)),
    ("s = all(i, ~x[i])", lambda x, w: (~x).all()),
    ("s = sum(i, (~x[i]) > 3)", lambda x, w: (~x > 3).sum()),
    ("s = sum(i, ~x[i] == w[i])", lambda x, w: (~x == w).sum()),
    ("s = sum(i, ~x[i] & w[i])", lambda x, w: (~x & w).sum()),
    ("s = sum(i, ~x[i] // 3)", lambda x, w: (~x // 3).sum()),
    ("s = sum(i, min(~x[i], w[i]))", lambda x, w: np.minimum(~x, w).sum()),
)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("text", "numpys"), CASES)
def test_they_are_numpys(text: str, numpys: Callable[[Any, Any], Any], dtype: str) -> None:
    x, w = X.astype(dtype), W.astype(dtype)
    expected = np.asarray(numpys(x, w))
    sparse = sp.coo_array(x) if TYPES.index(dtype) % 2 else tp.tensor(x, format="s")
    for own in (x, sparse):
        given = {"x": own, "w": w} if "w[" in text else {"x": own}
        for found in (tp.evaluate(text, given), tp.evaluate_dense(text, given)):
            assert to_dense(found).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [name for name in TYPES if name != "bool"])
def test_products_with_it_are_of_the_type_of_the_sum(dtype: str) -> None:
    x, w = X.astype(dtype), W.astype(dtype)
    wide = np.dtype("uint64" if x.dtype.kind == "u" else "int64")
    expected = ((~x).astype(wide) * w.astype(wide)).sum()
    kernel = tp.compile("s = ~x[i] * w[i]", x="s", w="d", dtypes=dtype)
    assert kernel(x=tp.tensor(x, format="s"), w=w) == expected
    for own in (x, sp.coo_array(x)):
        assert tp.evaluate("s = ~x[i] * w[i]", x=own, w=w) == expected
        assert tp.evaluate_dense("s = ~x[i] * w[i]", x=own, w=w) == expected
        assert tp.evaluate("s = ~x[i] * w[i]; t = s + 0", x=own, w=w) == expected
