"""Promises about ranges: kept ones are relied on, broken ones are told first of all."""

from __future__ import annotations

import numpy as np
import pytest

import taco_py as tp
from taco_py.language.diagnostics.errors import BoundError, ScheduleError

RNG = np.random.default_rng(11)
DENSE = RNG.random((37, 29)) * (RNG.random((37, 29)) < 0.2)
A, X = tp.tensor(DENSE, format=tp.CSR), RNG.random(29)
NNZ = int(np.count_nonzero(DENSE))
SPMV = "y[i] = A[i,j] * x[j]"

KEPT = (
    "bound(i,b,37,MaxExact)",
    "bound(i,b,37,MaxExact), split(b,b0,b1,37)",
    "bound(i,b,40,MaxConstraint), bound(b,c,0,MinExact)",
    "bound(j,b,29,MaxExact), split(b,b0,b1,8), unroll(b1,2)",
    "split(i,i0,i1,8), bound(i0,b,5,MaxExact), parallelize(b)",
    "split(i,i0,i1,8), bound(i1,b,8,MaxExact)",
    "bound(i,b,37,MaxExact), split(b,b0,b1,37), reorder(b1,b0,j)",
    "bound(i,b,0,MinConstraint)",
    f"fuse(i,j,f), pos(f,p,A), bound(p,q,{NNZ},MaxExact), split(q,q0,q1,16)",
    "bound(i,b,37,MaxExact), bound(j,c,29,MaxExact), reorder(c,b)",
)


@pytest.mark.parametrize("schedule", KEPT)
def test_kept_promises(schedule: str) -> None:
    for threads in (1, 2):
        found = tp.evaluate(SPMV, schedule=schedule, threads=threads, A=A, x=X)
        np.testing.assert_allclose(np.asarray(found), DENSE @ X)


BROKEN = (
    ("bound(i,b,36,MaxExact)", "the range of i ends at 36", "it ends at 37"),
    ("bound(i,b,36,MaxConstraint)", "the range of i ends at no more than 36", "it ends at 37"),
    ("bound(i,b,1,MinExact)", "the range of i begins at 1", "it begins at 0"),
    ("bound(i,b,1,MinConstraint)", "the range of i begins at no less than 1", "it begins at 0"),
    ("split(i,c,d,8), bound(c,b,4,MaxExact)", "the range of c ends at 4", "it ends at 5"),
    (
        f"fuse(i,j,f), pos(f,p,A), bound(p,q,{NNZ + 1},MaxExact)",
        f"the range of p ends at {NNZ + 1}",
        f"it ends at {NNZ}",
    ),
)


@pytest.mark.parametrize(("schedule", "promised", "found"), BROKEN)
def test_broken_promises_are_named(schedule: str, promised: str, found: str) -> None:
    with pytest.raises(BoundError) as caught:
        tp.evaluate(SPMV, schedule=schedule, A=A, x=X)
    assert promised in caught.value.message
    assert found in caught.value.message
    assert caught.value.hint


def test_a_kernel_tests_its_promises_in_every_call() -> None:
    kernel = tp.compile(SPMV, A=tp.CSR, x=tp.dense(1), schedule="bound(i,b,37,MaxExact)")
    fewer = tp.tensor(DENSE[:36], format=tp.CSR)
    for _ in range(3):
        np.testing.assert_allclose(kernel(A=A, x=X), DENSE @ X)
        with pytest.raises(BoundError, match="ends at 36"):
            kernel(A=fewer, x=X)


def test_a_promised_size_is_a_constant() -> None:
    schedule = "bound(k,b,16,MaxExact), split(b,k0,k1,4), reorder(i,k0,j,k1), vectorize(k1)"
    formats = {"A": tp.CSR, "X": tp.dense(2)}
    source = tp.compile("C[i,k] = A[i,j] * X[j,k]", formats, schedule=schedule).source
    assert "if (taco_unlikely(n_k != 16)) {\n        return 3;" in source
    assert "for (int64_t k0 = 0; k0 < 4; k0++) {" in source
    assert "taco_min" not in source


def test_entries_below_one_position_have_no_bound() -> None:
    with pytest.raises(ScheduleError, match="p runs over entries below one position of A"):
        tp.evaluate(SPMV, schedule="pos(j,p,A), bound(p,q,3,MaxConstraint)", A=A, x=X)


VAST = 2**21 + 3
"""Three of these multiply to more than 64 bits can count, as modes of real tensors do."""


@pytest.mark.parametrize(
    ("schedule", "refused"),
    [
        ("fuse(i,j,f), fuse(f,k,g), divide(g,a,b,4)", True),
        ("fuse(j,k,f), fuse(i,f,g), split(g,a,b,1024)", True),
        ("fuse(i,j,f), fuse(f,k,g)", False),
        ("fuse(i,j,f), fuse(f,k,g), pos(g,p,T), divide(p,a,b,4)", False),
        ("fuse(i,j,f), divide(f,a,b,4)", False),
    ],
)
def test_tiles_are_made_of_what_can_be_counted(schedule: str, refused: bool) -> None:
    coordinates = np.array([[0, 5, VAST - 1], [1, 7, VAST - 1], [2, 9, VAST - 1]])
    tensor = tp.Tensor.from_coo(coordinates, [1.0, 2.0, 3.0], (VAST,) * 3, format="sss", axis=1)
    text = "s = T[i,j,k] * v[i]"
    if refused:
        with pytest.raises(BoundError, match=r"at most 2\^62 values") as caught:
            tp.evaluate(text, T=tensor, v=np.ones(VAST), schedule=schedule)
        assert "pos(g,p," in str(caught.value)
    else:
        assert tp.evaluate(text, T=tensor, v=np.ones(VAST), schedule=schedule) == 6.0


def test_ranges_of_vast_sizes_do_not_overlap() -> None:
    """Entries were met twice where a size times the number of ranges is more than 64 bits hold."""
    size = 2**58
    coordinates = [np.arange(4000) % 5, np.random.default_rng(1).integers(0, size, 4000)]
    tensor = tp.Tensor.from_coo(coordinates, np.ones(4000), (5, size), format="ds")
    result = tp.evaluate("y[i] = A[i,j]", A=tensor, schedule="parallelize(j,CPUThread,Ordered)")
    np.testing.assert_array_equal(result, np.full(5, 800.0))
