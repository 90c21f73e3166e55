"""Subscripts of Tensors are NumPy's, and results stay sparse."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import taco_py as tp
from tests.arrays.operands import OPERANDS, Array, agree, drawn, name_of

KEYS: tuple[Any, ...] = (
    0, -1, 7, slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1),
    (slice(None), 1), (Ellipsis, 1), (Ellipsis, slice(1, 2)), None, (0, None), (1, 1),
    (slice(1, None), slice(None, None, -2)), [0, 1], ([0, 1], [1, 0]), (slice(None), [1, 0, 1]),
    [[0, 1], [1, 1]], (slice(1, 1),), (0, [1, 0]), ([1, 0], slice(0, 2)), np.array([], int),
    ([0, 1], slice(None), [0, 1]), (1, slice(None), [0, 1]), (Ellipsis, Ellipsis), ([0, 9],),
    ([0, 1], [0, 1, 1]), (0, 0, 0, 0), slice(3, 1), [True, False], 1.5,
)  # fmt: skip


@pytest.mark.parametrize("operand", OPERANDS[:-1], ids=name_of)
def test_subscripts(operand: tuple[tp.Tensor, Array]) -> None:
    t, x = operand
    for key in KEYS:
        found = agree(lambda: t[key], lambda: x[key])  # noqa: B023
        if isinstance(found, tp.Tensor) and found.shape and not t.format.is_dense:
            assert not found.format.is_dense or t.format.levels[0].full
            assert found.fill_value == t.fill_value


@pytest.mark.parametrize("operand", OPERANDS[:-2], ids=name_of)
def test_masks(operand: tuple[tp.Tensor, Array]) -> None:
    t, x = operand
    rows = np.arange(x.shape[0]) % 2 == 0
    agree(lambda: t[t > 1], lambda: x[x > 1])
    agree(lambda: t[t != 7], lambda: x[x != 7])
    agree(lambda: t[x > 1], lambda: x[x > 1])
    agree(lambda: t[rows], lambda: x[rows])
    agree(lambda: t[rows[:1]], lambda: x[rows[:1]])


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Subscripts that fit a shape: integers, slices, arrays of one shape, new modes."""
    count = draw(st.integers(0, 3))
    parts: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        places = st.integers(-size, size - 1)
        ends = st.none() | st.integers(-size - 1, size + 1)
        steps = st.none() | st.integers(-3, 3).filter(bool)
        parts.append(
            draw(
                places
                | st.builds(slice, ends, ends, steps)
                | st.lists(places, min_size=count, max_size=count).map(
                    lambda each: np.array(each, np.int64)
                )
            )
        )
        if draw(st.booleans()):
            parts.append(None)
    if draw(st.booleans()):
        parts.append(Ellipsis)
    return tuple(parts)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_any_subscripts(data: st.DataObject) -> None:
    format = data.draw(
        st.sampled_from(
            ["ddd", "dds", "dsd", "sdd", "ssd", "sss", "uqc", "dss:2,0,1", "sss:1,2,0", "sds:2,1,0"]
        )
    )
    t, x = drawn(format, (3, 4, 2), np.int64, data.draw(st.sampled_from([0, 3])))
    key = data.draw(keys(x.shape))
    agree(lambda: t[key], lambda: x[key])


def test_a_range_of_rows_shares_arrays() -> None:
    t, _ = drawn("ds", (9, 9))
    assert np.shares_memory(t[2:5].data.values, t.data.values)
    assert [elements.nnz for elements in t] == [row.nnz for row in (t[n] for n in range(9))]


def test_large_tensors_are_not_made_dense() -> None:
    t = tp.Tensor.from_coo([[3, 5], [10**6 - 1, 7]], [2.0, 4.0], (10**6, 10**9), axis=1)
    assert (t[3, 5], t[4, 5], t[3:][0, 5]) == (2, 0, 2)
    assert t[:, 7].nnz == 1 and t[::-1, ::-1].nnz == 2
    assert t[t > 3].to_numpy().tolist() == [4]
    assert t[[3, 3, 0]].nnz == 2


def test_what_is_wrong_is_said() -> None:
    t, _ = drawn("ss", (3, 4))
    with pytest.raises(tp.PositionError, match=r"from -3 to 2.*found 3"):
        t[3]
    with pytest.raises(IndexError):
        t[0, 0, 0]
    with pytest.raises(IndexError, match="masks or arrays"):
        t["a"]
