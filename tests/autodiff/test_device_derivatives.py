"""Derivatives of texts over tensors of a device stay there, and are those of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

DEVICE = "cuda-emulated"
TEXTS = (
    ("y[i] = A[i,j] * x[j]", 5),
    ("y[i] = exp(A[i,j]) * x[j]; s = y[i] * y[i]", None),
)


def operands(container: str) -> dict[str, Any]:
    A = np.where(np.arange(20).reshape(5, 4) % 3 == 0, 0.5, 0.0)
    stored = {
        "ndarray": lambda: A,
        "csr": lambda: sp.csr_array(A),
        "ss": lambda: tp.tensor(A, "ss"),
    }
    return {"A": stored[container](), "x": np.arange(1.0, 5.0)}


def host(value: Any) -> Any:
    value = value.to_host() if isinstance(value, tp.DeviceTensor) else value
    return (
        value.to_numpy()
        if isinstance(value, tp.Tensor)
        else getattr(value, "toarray", lambda: value)()
    )


@pytest.mark.parametrize("container", ["ndarray", "csr", "ss"])
@pytest.mark.parametrize(("text", "size"), TEXTS)
def test_cotangents_and_tangents_are_those_of_the_host(
    text: str, size: int | None, container: str
) -> None:
    given = operands(container)
    there = {name: tp.device(each, DEVICE) for name, each in given.items()}
    seed = 1.0 if size is None else np.ones(size)
    pairs = zip(tp.vjp(text, there)(seed), tp.vjp(text, given)(seed), strict=True)
    for found, wanted in pairs:
        assert isinstance(found, tp.DeviceTensor) and found.target == DEVICE
        assert type(found.to_host()) is type(wanted)
        np.testing.assert_allclose(host(found), host(wanted), rtol=1e-12, atol=1e-12)
    ahead, wanted = tp.jvp(text, there)(there), tp.jvp(text, given)(given)
    np.testing.assert_allclose(host(ahead), host(wanted), rtol=1e-12)


def test_an_operand_of_the_host_beside_one_of_a_device_has_its_cotangent_here() -> None:
    given = operands("csr")
    mixed = {**given, "A": tp.device(given["A"], DEVICE)}
    d_A, d_x = tp.vjp(TEXTS[0][0], mixed)(np.ones(5))
    assert isinstance(d_A, tp.DeviceTensor) and isinstance(d_x, np.ndarray)
