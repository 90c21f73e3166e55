"""Options of `tp.vjp` and `tp.jvp` mean what they mean to `tp.evaluate`, and have an effect.

The oracle is a central difference of `tp.evaluate` with the same options; forward and reverse mode
agree by v · (J t) = (Jᵀ v) · t.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.diagnostics.option_table import options_of
from tests.autodiff.differences import STEP, dense, direction, moved

rng = np.random.default_rng(0)


def check(text: str, operands: Mapping[str, Any], name: str, seed: int = 0, **options: Any) -> Any:
    """Compare both modes by an operand with differences of values; return the cotangent."""
    draw = np.random.default_rng(seed)
    along = direction(operands[name], draw)
    ahead, behind = (
        dense(tp.evaluate(text, {**operands, name: moved(operands[name], along, step)}, **options))
        for step in (STEP, -STEP)
    )
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num((ahead - behind) / (2 * STEP))
    forward = dense(tp.jvp(text, operands, wrt=name, **options)({name: along}))
    np.testing.assert_allclose(forward, expected, rtol=1e-5, atol=1e-7)
    seeds = draw.standard_normal(forward.shape)
    backward = tp.vjp(text, operands, wrt=name, **options)(seeds)
    one, other = np.sum(seeds * forward), np.sum(dense(backward) * dense(along))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    return backward


A = sp.csr_array(np.where(rng.random((4, 5)) < 0.5, rng.uniform(0.5, 2.0, (4, 5)), 0))
B = rng.uniform(0.5, 2.0, (5, 3))
DENSE = rng.uniform(0.5, 2.0, (4, 5))
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
SEMIRINGS = (
    "plus_times", "min_plus", "max_plus", "min_times", "max_times", "min_max", "max_min",
    "plus_min", "plus_max", "plus_plus", "plus_first", "plus_second", "min_first",
)  # fmt: skip


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("name", ["A", "B"])
def test_semirings(semiring: str, name: str) -> None:
    for left in (A, DENSE):
        check(PRODUCT, {"A": left, "B": B}, name, semiring=semiring)


PLACES = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0]], bool)
ZEROS = sp.csr_array((np.array([1.0, 0.0, 2.0]), np.array([0, 1, 2]), np.array([0, 2, 3, 3, 3])),
                     shape=(4, 3))  # fmt: skip
MASKS: dict[str, Callable[[], Any]] = {
    "dense": lambda: PLACES,
    "sparse": lambda: sp.csr_array(PLACES),
    "sparse with a zero": lambda: ZEROS,
    "complement": lambda: tp.complement(sp.csr_array(PLACES)),
    "complement of a dense one": lambda: tp.complement(PLACES),
    "by value": lambda: tp.by_value(ZEROS),
    "complement by value": lambda: tp.complement(tp.by_value(ZEROS)),
}


@pytest.mark.parametrize("kind", MASKS)
def test_masks(kind: str) -> None:
    mask = MASKS[kind]()
    for name in ("A", "B"):
        check(PRODUCT, {"A": A, "B": B}, name, mask=mask)
    masked = check(PRODUCT, {"A": A, "B": B}, "B", mask=mask, semiring="max_plus")
    assert dense(masked).any()
    ones = np.ones((4, 3))
    free = tp.vjp(PRODUCT, A=A, B=B, wrt="B")(ones)
    assert not np.allclose(tp.vjp(PRODUCT, A=A, B=B, wrt="B", mask=mask)(ones), free)


x, w = rng.standard_normal(6), rng.standard_normal(3)


def test_borders() -> None:
    text = "y[i] = x[i+k-1] * w[k]"
    for name in ("x", "w"):
        check(text, {"x": x, "w": w}, name, border="fill", shape=6)


def test_shapes_of_what_is_scattered_to() -> None:
    p = np.array([0, 2, 2, 5, 1, 0])
    backward = check("y[p[i]] += x[i] * x[i]", {"x": x, "p": p}, "x", shape=8)
    np.testing.assert_allclose(backward.shape, x.shape)
    assert tp.jvp("y[p[i]] += x[i]", x=x, p=p, shape=8, wrt="x")(x=x).shape == (8,)


EFFECTS: dict[str, Callable[[Callable[..., Any]], bool]] = {
    "wrt": lambda call: (
        len(run(call, "y[i] = x[i] * z[i]", wrt=("x", "z"))) == 2
        and np.shape(run(call, "y[i] = x[i] * z[i]", wrt="z")) == (3,)
    ),
    "outputs": lambda call: differ(
        call, "y[i] = x[i] * x[i]\nz[i] = sin(x[i])", {"outputs": "y"}, {"outputs": "z"}
    ),
    "border": lambda call: (
        refused(call, "y[i] = x[i+1] * z[i]")
        and not refused(call, "y[i] = x[i+1] * z[i]", border="fill")
    ),
    "shape": lambda call: (
        np.size(
            call("y[p[i]] += x[i]", x=x, p=np.arange(6), shape=9, wrt="x")(np.ones(9))
            if call is tp.vjp
            else call("y[p[i]] += x[i]", x=x, p=np.arange(6), shape=9, wrt="x")(x=x)
        )
        == (6 if call is tp.vjp else 9)
    ),
    "semiring": lambda call: differ(call, "s = x[i] * 2", {}, {"semiring": "max_times"}),
    "mask": lambda call: differ(
        call, "y[i] = x[i] * x[i]", {}, {"mask": np.array([True, False, True])}
    ),
    "threads": lambda call: refused(call, "y[i] = x[i] * x[i]", threads=-1),
    "memory_limit": lambda call: refused(call, "y[i,j] = x[i] * x[j]", memory_limit=8),
}
"""That an option changes what a derivative is, or is refused where it is wrong."""
OPERANDS = {"x": np.array([1.0, 2.0, 3.0]), "z": np.array([0.5, -1.0, 2.0])}


def run(call: Callable[..., Any], text: str, **options: Any) -> Any:
    """Compute a derivative with seeds or tangents of ones."""
    operands = {name: each for name, each in OPERANDS.items() if f"{name}[" in text}
    operands = {name: each for name, each in operands.items() if f"{name}[i] =" not in text}
    derivative = call(text, operands, **options)
    if call is tp.jvp:
        found = derivative({n: np.ones(3) for n in np.atleast_1d(options.get("wrt", ["x"]))})
        return [found, found] if isinstance(options.get("wrt"), tuple) else found
    shape = np.shape(tp.evaluate(text, operands, **{
        name: each for name, each in options.items() if name not in ("wrt", "threads")
    }))  # fmt: skip
    return derivative(np.ones(shape))


def differ(
    call: Callable[..., Any], text: str, one: Mapping[str, Any], other: Mapping[str, Any]
) -> bool:
    """Tell whether options make another derivative."""
    first, second = (run(call, text, wrt="x", **options) for options in (one, other))
    return np.shape(first) != np.shape(second) or not np.allclose(first, second)


def refused(call: Callable[..., Any], text: str, **options: Any) -> bool:
    """Tell whether a derivative is refused."""
    try:
        run(call, text, wrt="x", **options)
    except tp.TacoError:
        return True
    return False


AT_SUBSCRIPTS = (
    "C[i,k] = A[p[i],j] * B[j,k]",
    "C[i,k] += A[i+1,j] * B[j,k]",
    "t[j,k] = B[j,k] * B[j,k]; C[i,k] = A[p[i],j] * t[j,k]",
)


@pytest.mark.parametrize("stored", ["csr", "dense"])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("text", AT_SUBSCRIPTS)
def test_masks_of_texts_with_subscripts(text: str, kind: str, stored: str) -> None:
    array, mask = MASKS[kind](), MASKS[kind]()
    rows, columns = np.shape(getattr(array, "array", array))
    draw = np.random.default_rng(2)
    matrix = sp.random_array((rows + 1, 7), density=0.6, rng=draw, format="csr")
    operands = {
        "A": matrix if stored == "csr" else matrix.toarray(), "B": draw.random((7, columns)),
        "p": draw.integers(0, rows + 1, rows), "C": draw.random((rows, columns)),
    }  # fmt: skip
    read = {"A", "B"} | {name for name in "pC" if f"{name}[i" in text.replace("C[i,k] =", "")}
    operands = {name: operand for name, operand in operands.items() if name in read}
    for name in "AB":
        check(text, operands, name, mask=mask)


def test_what_is_scattered_under_a_mask_has_no_derivative() -> None:
    operands = {"x": np.ones(3), "p": np.array([0, 2, 1])}
    with pytest.raises(tp.DerivativeError, match="indices alone on the left under mask="):
        tp.vjp("y[p[i]] += x[i]", operands, wrt="x", mask=np.ones(3, bool), shape=3)
    with pytest.raises(tp.DerivativeError, match="alone as subscripts under semiring="):
        tp.vjp("y[i] = x[p[i]]", operands, wrt="x", semiring="max_plus")


@pytest.mark.parametrize("call", [tp.vjp, tp.jvp])
def test_every_option_that_is_taken_has_an_effect(call: Callable[..., Any]) -> None:
    assert {*EFFECTS} == options_of(call.__name__)
    for name, has_effect in EFFECTS.items():
        assert has_effect(call), name
