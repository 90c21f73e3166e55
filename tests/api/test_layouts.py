"""One kernel for small dense operands in whatever order they are stored; large ones as they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings

import taco_py as tp
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.prepare import prepare
from taco_py.calls.statements.read_text import parsed

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(26)
COPIED = "copied to C order"


def tensor(shape: tuple[int, ...], entries: int, form: tp.Format) -> tp.Tensor:
    """A tensor of small integers, which are summed without rounding."""
    coords = [RNG.integers(0, n, entries) for n in shape]
    made = tp.Tensor.from_coo(coords, RNG.integers(1, 5, entries).astype(float), shape)
    return made.to_format(form)


A = sp.random_array((60, 50), density=0.3, format="csr", rng=RNG)
A.data[:] = RNG.integers(1, 5, A.nnz)
T3, T4 = tensor((30, 40, 50), 4000, tp.CSF(3)), tensor((9, 20, 30, 40), 5000, tp.CSF(4))

CASES: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "M[i,r] = T[i,j,k] * U[j,r] * V[k,r]": ({"T": T3}, {"U": (40, 16), "V": (50, 16)}),
    "M[i,r] = T[i,j,k,l] * U[j,r] * V[k,r] * W[l,r]": (
        {"T": T4}, {"U": (20, 8), "V": (30, 8), "W": (40, 8)},
    ),
    "Y[i,r,s] = T[i,j,k] * G[j,r,s] * v[k]": ({"T": T3}, {"G": (40, 3, 5), "v": (50,)}),
    "M[i,r] = T[i,j,k] * U[r,j] * V[r,k]": ({"T": T3}, {"U": (16, 40), "V": (16, 50)}),
    "C[i,j] = A[i,j] * U[i,k] * V[j,k]": ({"A": A}, {"U": (60, 8), "V": (50, 8)}),
    "Y[i,k] = A[i,j] * X[j,k] + B[i,k]": ({"A": A}, {"X": (50, 12), "B": (60, 12)}),
    "D[a,b,d] = E[a,b,c] * F[c,d]": ({}, {"E": (4, 5, 6), "F": (6, 7)}),
}  # fmt: skip


def stored(array: Array, modes: tuple[int, ...], step: int, tensor: bool) -> Any:
    """The same numbers with the modes in another order in memory, and gaps between them; as a
    Tensor where that may have no gaps."""
    if tensor and step == 1:
        letters = "d" * array.ndim + ":" + ",".join(map(str, modes))
        return tp.Tensor.from_numpy(array).to_format(letters)
    wide = np.zeros([abs(step) * array.shape[mode] for mode in modes])
    view = wide[tuple([slice(None, None, step)] * array.ndim)].transpose(np.argsort(modes))
    view[...] = array
    return view


@st.composite
def mixes(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Array]]:
    """A text, its operands with dense ones in C order, in any order, and as plain arrays."""
    text = draw(st.sampled_from(sorted(CASES)))
    sparse, shapes = CASES[text]
    plain = {name: RNG.integers(-3, 4, shape).astype(float) for name, shape in shapes.items()}
    mixed = {
        name: stored(
            array,
            draw(st.sampled_from(list(permutations(range(array.ndim))))),
            draw(st.sampled_from((1, 1, 1, 2, -1))),
            False,
        )
        for name, array in plain.items()
    }
    return text, {**sparse, **plain}, {**sparse, **mixed}, plain


def kernels(text: str, operands: dict[str, Any]) -> set[str]:
    """What decides the kernels of a call."""
    plan = prepare(parsed(text), operands, CallOptions()).plan
    return {step.recipe().key for step in plan.kernels}


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(mixes())
def test_all_orders_of_small_operands_have_one_kernel(
    mix: tuple[str, dict[str, Any], dict[str, Any], dict[str, Array]],
) -> None:
    text, plain, mixed, _ = mix
    assert kernels(text, mixed) == kernels(text, plain)
    expected = tp.evaluate_dense(text, {n: _dense(each) for n, each in plain.items()})
    for _ in range(2):  # the long way, then the short one
        np.testing.assert_array_equal(_dense(tp.evaluate(text, mixed)), expected)


def _dense(found: Any) -> Array:
    if isinstance(found, tp.Tensor):
        return found.to_numpy()
    return found.toarray() if sp.issparse(found) else np.asarray(found)


@pytest.mark.parametrize("modes", list(permutations(range(3))))
def test_dense_tensors_in_any_order_have_one_kernel(modes: tuple[int, ...]) -> None:
    text = "Y[i,r,s] = T[i,j,k] * G[j,r,s] * v[k]"
    g, v = RNG.random((40, 3, 5)), RNG.random(50)
    plain = {"T": T3, "G": tp.Tensor.from_numpy(g), "v": v}
    mixed = {**plain, "G": stored(g, modes, 1, tensor=True)}
    assert kernels(text, mixed) == kernels(text, plain)
    for _ in range(2):
        np.testing.assert_allclose(
            _dense(tp.evaluate(text, mixed)), _dense(tp.evaluate(text, plain))
        )


def large() -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls beside which a copy would be noticed, or that read what is stored across faster."""
    few = sp.random_array((9000, 9000), density=3 / 9000, format="csr", rng=RNG)
    yield "Y[i,k] = A[i,j] * X[j,k]", {"A": few, "X": np.asfortranarray(RNG.random((9000, 16)))}
    yield "y[i] = A[i,j] * x[j]", {"A": few, "x": RNG.random(18000)[::2]}
    square = RNG.random((300, 300))
    yield "C[i,k] = A[i,j] * B[j,k]", {"A": square.T, "B": square}
    yield "B[j,i] = X[i,j] * Y[i,j]", {"X": square[:20, :20].T.copy().T, "Y": square[:20, :20].T}
    many = sp.random_array((300, 300), density=0.3, format="csr", rng=RNG)
    yield "Y[i,r] = A[i,j] * H[r,j]", {"A": many, "H": np.asfortranarray(square[:16])}


@pytest.mark.parametrize("text, operands", list(large()))
def test_large_operands_and_those_in_the_order_of_the_loops_are_not_copied(
    text: str, operands: dict[str, Any]
) -> None:
    assert COPIED not in tp.explain(text, operands, frontier_budget=0)


def test_explain_names_each_copy() -> None:
    u, v = RNG.random((40, 16)), RNG.random((50, 32))[:, ::2]
    told = tp.explain("ijk,jr,kr->ir", T3, np.asfortranarray(u), v, frontier_budget=0)
    assert "copy      op1: 640 elements copied to C order from dd:1,0, which costs less" in told
    assert "copy      op2: 800 elements copied to C order from memory with gaps" in told
    assert COPIED not in tp.explain("ijk,jr,kr->ir", T3, u, u[:1].repeat(50, 0), frontier_budget=0)


def test_a_copy_is_made_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are the user's, who may write to them; the short way copies too."""
    u, v = np.asfortranarray(RNG.random((40, 16))), RNG.random((16, 50)).T
    tp.einsum("ijk,jr,kr->ir", T3, u, v)
    monkeypatch.setattr("taco_py.calls.call.subscripts.contract", None)
    u[3] = 7.0
    expected = np.einsum("ijk,jr,kr->ir", T3.to_numpy(), u, v, optimize=True)
    np.testing.assert_allclose(_dense(tp.einsum("ijk,jr,kr->ir", T3, u, v)), expected)


def test_what_is_added_to_stays_in_its_own_order() -> None:
    """`out` in Fortran order, which the value reads too."""
    y, x = np.asfortranarray(RNG.random((60, 12))), np.asfortranarray(RNG.random((50, 12)))
    expected = y + A @ x
    for _ in range(2):
        out = y.copy(order="F")
        found = tp.evaluate("Y[i,k] += A[i,j] * X[j,k]", A=A, X=x, out=out)
        assert found is out
        np.testing.assert_allclose(out, expected)
    square = np.asfortranarray(RNG.random((50, 50)))
    expected = A[:50] @ square
    tp.evaluate("Y[i,k] = A[i,j] * X[j,k]", A=A[:50], X=square, out=square)
    np.testing.assert_allclose(square, expected)


def test_a_bound_of_intermediates_holds_of_copies() -> None:
    u, v = np.asfortranarray(RNG.random((40, 16))), RNG.random((50, 16))
    few = tp.explain("ijk,jr,kr->ir", T3, u, v, optimize=("greedy", 100), frontier_budget=0)
    many = tp.explain("ijk,jr,kr->ir", T3, u, v, optimize=("greedy", 10**6), frontier_budget=0)
    assert COPIED not in few and COPIED in many


def test_narrow_and_byte_swapped_operands_are_copied_right() -> None:
    u = np.asfortranarray(RNG.integers(0, 5, (40, 16)))
    expected = np.einsum("ijk,jr->ikr", T3.to_numpy(), u)
    for dtype in ("int8", "float32", ">f8", "?"):
        cast = np.asarray(u, dtype, order="F")
        wanted = np.einsum("ijk,jr->ikr", T3.to_numpy(), cast) if dtype == "?" else expected
        for _ in range(2):
            np.testing.assert_array_equal(_dense(tp.einsum("ijk,jr->ikr", T3, cast)), wanted)
