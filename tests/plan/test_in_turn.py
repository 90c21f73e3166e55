"""Sums of many sparse terms: a few in each kernel, in the order in which they are written."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import taco_py as tp
from taco_py.compiler.iteration.lattice import build_lattice, is_full
from taco_py.compiler.iteration.region import (
    Coordinates,
    Everything,
    Intersection,
    Iterator,
    Nothing,
    Region,
    Union,
)
from taco_py.language.notation.nodes import Access

pytestmark = pytest.mark.user_flags

rng = np.random.default_rng(0)


def operands(count: int) -> dict[str, sp.csr_array]:
    shape = (20, 30)
    return {
        f"A{k}": sp.random_array(shape, density=0.1, format="csr", rng=rng) for k in range(count)
    }


def test_ten_matrices_are_added_up_in_order() -> None:
    given_ = operands(10)
    text = "C[i,j] = " + " - ".join(f"{name}[i,j]" for name in given_)
    found = tp.evaluate(text, given_)
    expected = np.zeros((20, 30))
    first, *others = given_.values()
    expected = first.toarray()
    for other in others:
        expected = expected - other.toarray()
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), expected)
    told = tp.explain(text, given_, schedule_budget=0)
    assert told.count("split     ") == told.count("4 of the sparse terms") == 2


def test_integers_do_not_wrap_between_kernels() -> None:
    given_ = {name: (a * 200).astype("int8") for name, a in operands(6).items()}
    given_["B"] = sp.csr_array(np.ones((20, 30)))
    text = "C[i,j] = " + " + ".join(f"{name}[i,j]" for name in given_)
    found = tp.evaluate(text, given_)
    wanted = tp.evaluate_dense(text, {name: a.toarray() for name, a in given_.items()})
    np.testing.assert_array_equal(found.toarray(), wanted)


def test_sums_inside_products_and_beside_dense_operands() -> None:
    given_, x = operands(6), rng.random(30)
    total = " + ".join(f"{name}[i,j]" for name in given_)
    whole = sum(a.toarray() for a in given_.values())
    for text, wanted in (
        (f"y[i] = ({total}) * x[j]", whole @ x),
        (f"C[i,j] = {total} + x[j]", whole + x),
    ):
        np.testing.assert_allclose(tp.evaluate(text, given_, x=x), wanted)


@pytest.mark.parametrize("count", [4, 5, 9])
def test_a_dense_result_is_added_to_term_by_term(count: int) -> None:
    """Nine merged ones have 511 cases, which no compiler pass goes through."""
    given_ = operands(count)
    for last, more in (
        ("", {}),
        (" - d[j]", {"d": rng.random(30)}),
        (" * d[j]", {"d": np.ones(30)}),
    ):
        text = "R[i,j] = " + " - ".join(f"{name}[i,j]" for name in given_) + last
        expected = tp.evaluate_dense(text, given_, **more)
        for threads in (1, 2):
            found = tp.evaluate(text, given_, **more, format="dd", threads=threads)
            np.testing.assert_allclose(found, expected, atol=1e-12)
        told = tp.explain(text, given_, **more, format="dd", schedule_budget=0)
        full = last == " - d[j]"  # which then is not asked for at each coordinate of the others
        assert ("∪" in told) == (count <= 4 and not full)


def test_narrow_terms_of_a_dense_result_wrap_as_in_the_sum() -> None:
    given_ = {name: (a * 200).astype("int8") for name, a in operands(6).items()}
    text = "R[i,j] = " + " + ".join(f"{name}[i,j]" for name in given_) + " + B[i,j]"
    for other in (np.ones((20, 30)), np.ones((20, 30), "int64"), np.ones((20, 30), bool)):
        wanted = tp.evaluate_dense(text, given_, B=other)
        found = tp.evaluate(text, given_, B=other)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_more_than_a_kernel_can_add_up_is_refused_where_loops_are_named() -> None:
    given_ = operands(7)
    text = "C[i,j] = " + " + ".join(f"{name}[i,j]" for name in given_)
    with pytest.raises(tp.ScheduleError, match="Expected up to 6 sparse terms"):
        tp.evaluate(text, given_, schedule="split(i,a,b,4)")


def test_full_terms_count_for_none_where_loops_are_named() -> None:
    sparse, rng = operands(2), np.random.default_rng(0)
    full = {name: rng.random((20, 30)) for name in "STUVWX"}
    text = "C[i,j] = " + " + ".join(f"{name}[i,j]" for name in (*sparse, *full))
    found = tp.evaluate(text, {**sparse, **full}, format="ds", schedule="split(i,a,b,4)")
    np.testing.assert_allclose(found.toarray(), tp.evaluate_dense(text, {**sparse, **full}))


leaves = st.one_of(
    st.just(Nothing()),
    st.just(Everything()),
    st.sampled_from("ABC").map(lambda name: Coordinates(Iterator(Access(name, ("i",)), 0))),
)
regions = st.recursive(
    leaves,
    lambda below: st.builds(Union, below, below) | st.builds(Intersection, below, below),
    max_leaves=6,
)


@given(regions)
def test_what_is_full_is_told_without_a_lattice(region: Region) -> None:
    assert is_full(region) == build_lattice(region).full
