"""Reductions by every operator in loops that threads share: the bits of one thread."""

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

TEXTS = (
    ("y[j] = min(i, A[i,j] * e[i])", None),
    ("y[j] = max(i, A[i,j] * e[i])", None),
    ("y[j] = prod(i, A[i,j] + e[i])", None),
    ("y[j] = any(i, A[i,j] > e[i])", None),
    ("y[j] = all(i, A[i,j] > e[i])", None),
    ("y[j] = sum(i, A[i,j] * e[i])", "min_plus"),
    ("y[j] = sum(i, A[i,j] * e[i])", "max_plus"),
    ("y[j] = sum(i, A[i,j] * e[i])", "max_min"),
    ("y[j] = sum(i, A[i,j] * e[i])", "or_and"),
    ("y[j] = sum(i, A[i,j] * e[i])", "xor_and"),
    ("y[j] = sum(i, A[i,j] * e[i])", "any_pair"),
    ("y = max(i, max(j, A[i,j] * e[i]))", None),
    ("y = sum(i, sum(j, A[i,j] * e[i]))", "min_plus"),
)


def special_operands(size=700, entries=20):
    """A matrix and a vector with -0, 0, infinities and a NaN, all products of which are exact."""
    rng = np.random.default_rng(3)
    count = entries * size
    places = rng.integers(0, size, (2, count))
    values = rng.choice([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0], count)
    A = sp.coo_array((values, places), (size, size)).tocsr()
    A.data[rng.integers(0, A.nnz, 3)] = np.nan, np.inf, -np.inf
    return A, rng.choice([-1.0, -0.0, 0.0, 1.0], size)


def bits(array):
    return np.asarray(array).tobytes()


@pytest.mark.rotating(2)
@pytest.mark.parametrize("race", ["Temporary", "Ordered"])
@pytest.mark.parametrize(("text", "semiring"), TEXTS)
def test_copies_of_each_thread_give_the_bits_of_one_loop(text, semiring, race):
    A, e = special_operands()
    alone = tp.evaluate(text, A=A, e=e, semiring=semiring, schedule="reorder(i,j), serial()")
    expected = tp.evaluate_dense(text, A=A, e=e, semiring=semiring)
    np.testing.assert_array_equal(alone, expected)
    schedule = f"reorder(i,j), parallelize(i,CPUThread,{race})"
    for threads in (1, 2, 3):
        found = tp.evaluate(text, A=A, e=e, semiring=semiring, threads=threads, schedule=schedule)
        assert bits(found) == bits(alone)


@pytest.mark.parametrize(("text", "semiring"), TEXTS)
def test_atomic_updates_give_the_numbers_of_one_loop(text, semiring):
    A, e = special_operands()
    expected = tp.evaluate_dense(text, A=A, e=e, semiring=semiring)
    schedule = "reorder(i,j), parallelize(i,CPUThread,Atomics)"
    found = tp.evaluate(text, A=A, e=e, semiring=semiring, threads=2, schedule=schedule)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32"])
def test_atomic_updates_of_each_width(dtype):
    A, e = special_operands()
    A.data = np.nan_to_num(A.data, posinf=5, neginf=3).clip(0, 5)
    A, e = A.astype(dtype), np.abs(e).astype(dtype)
    schedule = "reorder(i,j), parallelize(i,CPUThread,Atomics)"
    found = tp.evaluate("y[j] = max(i, A[i,j] * e[i])", A=A, e=e, threads=2, schedule=schedule)
    np.testing.assert_array_equal(
        found, tp.evaluate_dense("y[j] = max(i, A[i,j] * e[i])", A=A, e=e)
    )


def test_scatters_are_shared_where_copies_pay():
    rng = np.random.default_rng(0)

    def told(entries, semiring):
        size = 20_000
        count = entries * size
        places = rng.integers(0, size, (2, count))
        A = sp.coo_array((rng.random(count), places), (size, size)).tocsr()
        e = rng.random(size)
        text = "y[j] = A[i,j] * e[i]"
        one, two = (
            tp.evaluate(text, A=A, e=e, semiring=semiring, threads=threads) for threads in (1, 2)
        )
        assert bits(one) == bits(two)
        return tp.explain(text, A=A, e=e, semiring=semiring, threads=2)

    many = told(20, "min_plus")
    assert "forall i parallel (Temporary)" in many
    assert "each thread adds to a copy of its own" in many
    assert "forall i parallel" not in told(2, "min_plus")
    assert "forall i parallel" not in told(20, "plus_times")  # whose sums are rounded
