"""Small integers compared with sizes that their type does not have, as NumPy compares them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.graph.graph_builder import COMPARISONS

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint64")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_numbers_of_a_type_are_compared_with_larger_sizes(name: str, dtype: str) -> None:
    compare = getattr(np, name)
    numbers = np.array([0, 1, 127], dtype)

    def both(x: Any, numbers: Any) -> Any:
        return compare(numbers, x.shape[0]), compare(x.shape[0], numbers)

    x = np.zeros(70_000 if np.dtype(dtype).itemsize < 4 else 127)
    fused = tp.fuse(both)
    for one, wanted in zip(fused(x, numbers), both(x, numbers), strict=True):
        np.testing.assert_array_equal(one, wanted, strict=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_labels_of_small_types_may_have_more_classes(dtype: str) -> None:
    x, labels = np.random.default_rng(0).random((4, 300)), np.array([0, 1, 2, 100], dtype)
    loss = tp.fuse(lambda x, labels: tp.nn.cross_entropy(x, labels))
    rows = np.log(np.exp(x).sum(1)) - x[np.arange(4), labels]
    np.testing.assert_allclose(loss(x, labels), rows.mean())
