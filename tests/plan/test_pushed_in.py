"""Sums moved into the factor that alone has their index: where that pays, and where it does not."""

from __future__ import annotations

import numpy as np
import pytest

import taco_py as tp
from tests.problems import plan, problem

CUBE = {**dict.fromkeys("ijk", 500), "l": 500}

# a text, T's format, and the indices of each kernel's loops, outermost first
CHOSEN = (
    ("s[i] = T[i,j,k] * z[k]", "sss", ("ijk",)),  # the sum over j would be a matrix
    ("s[i] = T[i,j,k] * z[k]", "sss:0,2,1", ("ikj",)),
    ("s[k] = T[i,j,k] * z[i]", "sss", ("ijk",)),
    ("s[i] = T[i,j,k] * T[i,k,l]", "sss", ("ijk", "ikl")),  # else each would meet all of l
)


@pytest.mark.parametrize(("text", "form", "loops"), CHOSEN)
def test_sums_are_moved_where_that_is_not_dearer(
    text: str, form: str, loops: tuple[str, ...]
) -> None:
    known = problem(text, {"T": form, "z": "d"})
    found = plan(known, CUBE, {"T": 200_000.0}).kernels
    assert [sorted(order) for kernel in found for order in kernel.schedule.orders] == list(
        map(sorted, loops)
    )
    if len(found) == 1:
        assert found[0].schedule.orders == (tuple(loops[0]),)


@pytest.mark.parametrize("text", [text for text, *_ in CHOSEN])
def test_numbers(text: str) -> None:
    rng = np.random.default_rng(3)
    array = np.where(rng.random((70, 70, 70)) < 0.1, rng.random((70, 70, 70)), 0.0)
    given = {"T": tp.tensor(array, format="sss"), "z": rng.random(70)}
    given = {name: operand for name, operand in given.items() if f"{name}[" in text}
    subscripts = {
        "s[i] = T[i,j,k] * z[k]": "ijk,k->i",
        "s[k] = T[i,j,k] * z[i]": "ijk,i->k",
        "s[i] = T[i,j,k] * T[i,k,l]": "ijk,ikl->i",
    }[text]
    arrays = [array, given.get("z", array)]
    found = np.asarray(tp.evaluate(text, given, format="d"))
    np.testing.assert_allclose(found, np.einsum(subscripts, *arrays))
