"""Which operands share memory, by their addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.arguments.operands import bind_operands
from taco_py.report.limits.operand_memory import FOLDED, UNKNOWN, operand_memory

X = np.arange(24.0)


def names(**operands: Any) -> list[str]:
    memory = operand_memory({name: each.data for name, each in bind_operands(operands).items()})
    return [memory.of(name) for name in operands]


def test_arrays_of_their_own_keep_their_names() -> None:
    assert names(a=X, b=X.copy()) == ["a", "b"]
    assert names(a=X[:12], b=X[12:]) == ["a", "b"]
    assert names(a=X[:0], b=X) == ["a", "b"]


def test_arrays_that_overlap_have_one_name() -> None:
    assert len({*names(a=X, b=X[::-1])}) == 1
    assert len({*names(a=X[:13], b=X[12:])}) == 1
    first, second, third, other = names(a=X[:10], b=X[5:20], c=X[15:], d=np.ones(3))
    assert first == second == third != other


def test_values_of_a_sparse_operand_may_be_another_one() -> None:
    matrix = sp.random_array((9, 8), density=0.3, format="csr", rng=np.random.default_rng(0))
    assert len({*names(A=matrix, x=matrix.data)}) == 1


def test_elements_that_lie_upon_each_other_count_nothing() -> None:
    windows = np.lib.stride_tricks.sliding_window_view(X, 4)
    assert names(a=np.broadcast_to(X, (3, 24)), W=windows) == [FOLDED, FOLDED]
    assert FOLDED not in names(a=X.reshape(4, 6).T[::-1, ::2], b=X[:1], c=np.ones((1, 5)))
    assert UNKNOWN.of("a") == FOLDED
