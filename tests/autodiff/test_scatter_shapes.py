"""The shape of what a text scatters to, which derivatives of it need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp

x, p = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2])
SQUARES = "y[p[i]] += x[i] * x[i]; s = y[i] * y[i]"


def test_tangents_of_a_scatter_have_its_shape() -> None:
    pushforward = tp.jvp("y[p[i]] += x[i] * x[i]", x=x, p=p, shape=4)
    np.testing.assert_allclose(pushforward(x=np.ones(3)), [4, 0, 8, 0])
    wide = tp.jvp("y[p[i]] += x[i] * x[i]", x=x, p=p, shape=(6,))
    np.testing.assert_allclose(wide(x=np.ones(3)), [4, 0, 8, 0, 0, 0])
    assert "t_y_at_p_i" in pushforward.explain(x=np.ones(3))


@pytest.mark.parametrize("shape", [4, (4,), {"y": 4}])
def test_what_was_scattered_to_is_read(shape: Any) -> None:
    slopes = 4 * x * np.array([10, 4, 10])
    (found,) = tp.vjp(SQUARES, x=x, p=p, shape=shape)()
    np.testing.assert_allclose(found, slopes)
    np.testing.assert_allclose(tp.jvp(SQUARES, x=x, p=p, shape=shape)(x=np.ones(3)), sum(slopes))


def test_what_is_made_is_read_at_positions() -> None:
    text = "z[i] = x[i] * x[i]; y[q[i]] += z[i]; s = y[i] * y[i] * y[i]"
    q = np.array([1, 1, 0])
    (found,) = tp.vjp(text, x=x, q=q, shape=2)()
    np.testing.assert_allclose(found, 3 * np.array([25, 25, 81]) * 2 * x)


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ({"z": 3}, "Expected names that the text scatters to in shape=, found 'z'"),
        ("four", "Expected sizes in shape=, found 'four'"),
        (-1, "Expected sizes in shape=, found -1"),
        (2, "Expected positions from 0 to 1 in mode 0 of t_y"),
        (None, "Expected the size of mode 0 of t_y"),
    ],
)
def test_wrong_shapes_are_refused(shape: Any, told: str) -> None:
    with pytest.raises(tp.TacoError) as caught:
        tp.jvp("y[p[i]] += x[i] * x[i]", x=x, p=p, shape=shape)(x=x)
    assert str(caught.value).startswith(told)


def test_a_shape_without_a_scatter_is_refused() -> None:
    with pytest.raises(tp.OperandError, match="found 0 scatters"):
        tp.jvp("y[i] = x[i] * x[i]", x=x, shape=3)
