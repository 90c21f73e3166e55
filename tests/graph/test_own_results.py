"""Results share memory with arguments, and with each other, exactly where NumPy's do."""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

x = np.random.default_rng(0).random((4, 5))
Function = Callable[[Any], Any]
FUNCTIONS: tuple[Function, ...] = (
    lambda a: a.copy(), lambda a: +a, lambda a: np.tile(a, 1), lambda a: np.roll(a, 0, 0),
    lambda a: a.T.copy(), lambda a: a.copy().T, lambda a: a.copy()[1:], lambda a: a.astype(float),
    lambda a: a * 1.0, lambda a: -np.negative(a), lambda a: (np.exp(a), np.exp(a)),
    lambda a: a.flatten(),
    lambda a: (a.copy(), a.copy(), a), lambda a: np.repeat(a, 1, 0), lambda a: np.ones_like(a),
    lambda a: np.zeros_like(a), lambda a: a[:, None].sum(1), lambda a: a.T, lambda a: a.ravel(),
    lambda a: np.broadcast_to(a, (2, 4, 5)), lambda a: np.flip(a),
    lambda a: (b := np.exp(a), b.T),
    lambda a: np.squeeze(a[None].copy()), lambda a: np.concatenate([a]), lambda a: (a, a),
    lambda a: np.add(a, 0.0), lambda a: a[..., None].mean(-1), lambda a: np.where(True, a, 0.0),
)  # fmt: skip


@pytest.mark.parametrize("place", range(len(FUNCTIONS)))
def test_memory_is_shared_where_numpy_shares_it(place: int) -> None:
    function = FUNCTIONS[place]
    fused = tp.fuse(function)
    for _ in range(3):
        a = x.copy()
        pairs = [(r if isinstance(r, tuple) else (r,)) for r in (fused(a), function(a))]
        for k, (found, expected) in enumerate(zip(*pairs, strict=True)):
            np.testing.assert_allclose(found, expected)
            assert found.flags.writeable == expected.flags.writeable
            assert np.shares_memory(found, a) == np.shares_memory(expected, a)
            for one, other in zip(pairs[0][:k], pairs[1][:k], strict=True):
                assert np.shares_memory(found, one) == np.shares_memory(expected, other)


OF_ARGUMENTS: dict[str, Function] = {
    "transpose": lambda a: a.T, "blocks": lambda a: a.reshape(2, 2, 5), "flat": np.ravel,
    "row": lambda a: a[1], "columns": lambda a: a[:, 2:], "each second": lambda a: a[::2],
    "reversed": lambda a: a[::-1], "new mode": lambda a: a[None],
}  # fmt: skip
OF_VIEWS: dict[str, Function] = {
    "first": lambda a: a[0], "rest": lambda a: a[..., 1:], "transpose": lambda a: a.T,
    "flat": lambda a: a.reshape(-1), "rows": lambda a: a.reshape(a.shape[0], -1),
}  # fmt: skip


@pytest.mark.parametrize("outer", OF_VIEWS)
@pytest.mark.parametrize("inner", OF_ARGUMENTS)
def test_views_that_are_returned_are_viewed_again(inner: str, outer: str) -> None:
    first, second = OF_ARGUMENTS[inner], OF_VIEWS[outer]

    def both(a: Any) -> Any:
        view = first(a)
        return second(np.exp(view)), view * 2, view

    fused = tp.fuse(both)
    for _ in range(2):
        for found, wanted in zip(fused(x), both(x), strict=True):
            np.testing.assert_allclose(found, wanted)
            assert np.shares_memory(found, x) == np.shares_memory(wanted, x)


def test_sparse_copies_are_copies_and_transposes_are_made_again() -> None:
    matrix = sp.random_array((5, 5), density=0.4, format="csr", rng=np.random.default_rng(0))
    copied, turned = tp.fuse(lambda a: a.copy()), tp.fuse(lambda a: a.T)
    for _ in range(2):
        assert not np.shares_memory(copied(matrix).data, matrix.data)
        np.testing.assert_array_equal(turned(matrix).toarray(), matrix.toarray().T)


Pair = namedtuple("Pair", "one other")
Key = enum.Enum("Key", "first second")


@dataclass
class Held:
    array: Any


def test_results_come_in_the_users_containers_again_and_again() -> None:
    pair = tp.fuse(lambda a: Pair(a + 1, [a * 2]))
    keys = tp.fuse(lambda a: {Key.first: a + 1, np.inf: a * 2, (Key.second, 1): 3})
    for _ in range(3):
        found = pair(x)
        assert isinstance(found, Pair)
        np.testing.assert_array_equal(found.other[0], x * 2)
        told = keys(x)
        assert told[(Key.second, 1)] == 3
        np.testing.assert_array_equal(told[Key.first], x + 1)


def test_objects_that_hold_traced_arrays_are_refused() -> None:
    with pytest.raises(tp.OperandTypeError, match="found Held"):
        tp.fuse(lambda a: Held(a + 1))(x)
