"""Dense products whose operands are copied in another order, or whose result is stored in one,
where that takes less time: against NumPy, on sizes at which it does, and, as if copies were free,
on any."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.calls.call import kept_order
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.ways.dense_seconds import DenseProduct
from tests.machines import planned_for

pytestmark = pytest.mark.user_flags

CASES = (
    # text, sizes, operands that are copied, the order in which the result is stored
    ("aec,efa->acf", {"a": 128, "c": 3, "e": 64, "f": 24}, {"op0": "cea"}, "cfa"),
    ("efa,aec->acf", {"a": 128, "c": 3, "e": 64, "f": 24}, {"op1": "cea"}, "cfa"),
    ("ijc,jkc->ikc", {"i": 12, "j": 12, "k": 12, "c": 100}, {}, "ikc"),
    ("cad,dceb->bea", {"a": 2, "b": 13, "c": 2, "d": 60, "e": 72}, {}, "aeb"),
    ("adb,dca->bcd", {"a": 92, "b": 137, "c": 2, "d": 13}, {}, "dcb"),
    ("ik,kj->ij", {"i": 100, "j": 100, "k": 100}, {}, "ij"),
    ("ik,kj->ji", {"i": 100, "j": 100, "k": 100}, {}, "ji"),
)


def integers(text: str, sizes: dict[str, int], dtype: str, seed: int = 0) -> list[Any]:
    """Arrays of small integers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    terms = text.split("->")[0].split(",")
    return [rng.integers(-4, 5, [sizes[i] for i in term]).astype(dtype) for term in terms]


@pytest.mark.rotating(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text, sizes, copied, kept", CASES)
def test_what_is_turned(
    text: str, sizes: dict[str, int], copied: dict[str, str], kept: str, dtype: str
) -> None:
    arrays = integers(text, sizes, dtype)
    expected, wanted = np.einsum(text, *arrays, optimize=True), text.split("->")[1]
    for threads in (1, 2):
        found = tp.einsum(text, *arrays, threads=threads, libraries=False)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
        if dtype == "float32":
            assert found.transpose([wanted.index(i) for i in kept]).flags.c_contiguous
        for order in "CF":
            asked = tp.einsum(text, *arrays, order=order, threads=threads)
            np.testing.assert_array_equal(asked, expected)
            assert asked.flags[f"{order}_CONTIGUOUS"]
        out = np.full_like(expected, np.nan)
        assert tp.einsum(text, *arrays, out=out, threads=threads) is out
        np.testing.assert_array_equal(out, expected)
    told = tp.explain(text, *arrays, libraries=False, frontier_budget=0)
    if dtype == "float32":
        found_copies = dict(re.findall(r"convert +op\d_(\w+) from (op\d), .*loops along", told))
        assert {name: order for order, name in found_copies.items()} == copied


def test_a_copy_is_told_with_its_price() -> None:
    text, sizes, *_ = CASES[0]
    told = tp.explain(text, *integers(text, sizes, "float32"), frontier_budget=0)
    assert re.search(r"loops along a take about \S+ s with what is copied, on the", told)
    assert re.search(r"they are \S+ s, tiles \S+ s", told)


def test_operands_with_gaps_and_other_values_after_them() -> None:
    """The copy is made of each call's operand."""
    text, sizes, *_ = CASES[0]
    for seed in range(3):
        arrays = integers(text, sizes, "float32", seed)
        wide = np.repeat(arrays[0], 2, axis=2)[..., ::2]
        for given_ in (arrays, [wide, arrays[1]], [np.asfortranarray(arrays[0]), arrays[1]]):
            found = tp.einsum(text, *given_)
            np.testing.assert_array_equal(found, np.einsum(text, *arrays, optimize=True))


@st.composite
def contractions(draw: Any) -> tuple[str, dict[str, int]]:
    """Two operands and a result, each index in at least two of them."""
    letters = "abcdef"[: draw(st.integers(1, 6))]
    kinds = draw(st.lists(st.sampled_from(("012", "01", "02", "12")), min_size=6, max_size=6))
    classes = dict(zip(letters, kinds, strict=False))
    terms = ["".join(x for x in letters if str(k) in classes[x]) for k in range(3)]
    left, right, result = ("".join(draw(st.permutations(term))) for term in terms)
    size = st.sampled_from((0, 1, 1, 2, 2, 3, 3, 4, 5, 9, 17))
    return f"{left},{right}->{result}", {x: draw(size) for x in letters}


@given(contractions(), st.sampled_from(["float32", "float64"]), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_any_contraction_as_if_copies_were_free(
    drawn: tuple[str, dict[str, int]], dtype: str, seed: int
) -> None:
    text, sizes = drawn
    arrays = integers(text, sizes, dtype, seed)
    expected = np.einsum(text, *arrays)
    machine = {"small_factor_iterations": 0, "dense_detour_gain": 0.0}
    kept = partial(DenseProduct, machine=NOMINAL.with_costs(small_factor_iterations=0))
    with (
        planned_for(**machine),
        mock.patch.object(kept_order, "DenseProduct", kept),
        mock.patch("taco_py.compiler.ways.dense_seconds.seconds_of_copy", lambda *_: 0.0),
    ):
        for order in "KC":
            found = tp.einsum(text, *arrays, order=order)
            assert np.shape(found) == expected.shape and found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
