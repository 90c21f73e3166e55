"""Kernels that do not depend on each other run beside each other where that pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from codegen.runtime.job_runner import JOBS_KEY
from taco_py.data.kernels import KERNELS

COLUMN_SUMS = "u[j] = exp(A[i,j]) * B[i,j]; v[j] = sqrt(C[i,j]) + D[i,j]"
"""Both sum over the outer loop, which no kernel shares."""


def operands(rows: int, columns: int, names: str = "ABCD") -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(rows)
    return {name: rng.random((rows, columns)) for name in names}


def column_sums(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    return (np.exp(a) * b).sum(0), (np.sqrt(c) + d).sum(0)


@pytest.fixture
def calls() -> Iterator[list[int]]:
    """The number of kernels of each call of `together`, in a process of two threads."""
    tp.set_threads(2)
    together, found = KERNELS.run_jobs, []

    def count(threads: int, *kernels: Any) -> Any:
        assert threads == 2
        found.append(len(kernels) // 2)
        return together(threads, *kernels)

    KERNELS.memo.put(JOBS_KEY, count)
    yield found
    tp.set_threads(None)


def twice(call: Callable[[], Any]) -> Any:
    """The second result, which the short way has made."""
    call()
    return call()


def test_two_sums_run_beside_each_other(calls: list[int]) -> None:
    given = operands(151, 101)
    found = twice(lambda: tp.evaluate(COLUMN_SUMS, given, outputs=("u", "v")))
    assert set(calls) == {2}
    for one, other in zip(found, column_sums(*given.values()), strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("threads", [1, 2])
def test_short_ones_and_one_thread_run_in_turn(calls: list[int], threads: int) -> None:
    tp.set_threads(threads)
    given = operands(151, 101) if threads == 1 else operands(90, 90)
    found = twice(lambda: tp.evaluate(COLUMN_SUMS, given, outputs=("u", "v")))
    np.testing.assert_allclose(found[1], column_sums(*given.values())[1])
    assert calls == []


def test_what_reads_another_kernel_waits(calls: list[int]) -> None:
    text = "u[j] = exp(A[i,j]); v[j] = exp(A[i,j] * u[j])"
    given = operands(200, 150, "A")
    _, v = twice(lambda: tp.evaluate(text, given, outputs=("u", "v")))
    np.testing.assert_allclose(v, np.exp(given["A"] * np.exp(given["A"]).sum(0)).sum(0))
    assert calls == []


def test_kernels_that_share_their_loops_run_in_turn(calls: list[int]) -> None:
    text = "u[i] = exp(A[i,j]) * B[i,j]; v[i] = sqrt(C[i,j]) * D[i,j]"
    given = operands(300, 200)
    twice(lambda: tp.evaluate(text, given, outputs=("u", "v")))
    assert calls == []
    smaller = operands(150, 110)  # too few iterations for that, enough for two threads
    u, _ = twice(lambda: tp.evaluate(text, smaller, outputs=("u", "v")))
    np.testing.assert_allclose(u, (np.exp(smaller["A"]) * smaller["B"]).sum(1))
    assert set(calls) == {2}


def test_fused_functions_follow_the_number_of_threads(calls: list[int]) -> None:
    sums = tp.fuse(column_sums)
    given = operands(151, 101)
    for count in (2, 1, 2):
        tp.set_threads(count)
        calls.clear()
        KERNELS.memo.put(JOBS_KEY, _counted(calls))
        found = [sums(*given.values()) for _ in range(3)][-1]
        for one, other in zip(found, column_sums(*given.values()), strict=True):
            np.testing.assert_allclose(one, other)
        assert set(calls) == ({2} if count == 2 else set())


def _counted(calls: list[int]) -> Callable[..., Any]:
    def count(threads: int, *kernels: Any) -> Any:
        calls.append(len(kernels) // 2)
        return together(threads, *kernels)

    together = KERNELS.run_jobs
    return count


def test_explain_says_it() -> None:
    kernel = tp.explain(COLUMN_SUMS, operands(10, 10), outputs=("u", "v"), threads=2)
    assert "together  u, v: each in a thread of its own in later calls" in kernel
    alone = tp.explain(COLUMN_SUMS, operands(10, 10), outputs=("u", "v"), threads=1)
    assert "together" not in alone


def test_a_forked_process_runs_them(calls: list[int]) -> None:
    given = operands(151, 101)
    run = lambda: tp.evaluate(COLUMN_SUMS, given, outputs=("u", "v"))  # noqa: E731
    twice(run)
    child = os.fork()
    if child == 0:  # pragma: no cover
        right = all(map(np.allclose, run(), column_sums(*given.values())))
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_wrong_arguments_are_refused() -> None:
    together = KERNELS.run_jobs
    with pytest.raises(TypeError, match="kernels and tuples in turn"):
        together(2)
    with pytest.raises(ValueError, match="invalid PyCapsule"):
        together(2, len, "no kernel")
    given = operands(4, 4)
    twice(lambda: tp.evaluate(COLUMN_SUMS, given, outputs=("u", "v")))
    kernel = next(each for each in KERNELS._kernels.values() if "evaluate" in each.functions)
    with pytest.raises(TypeError, match="arguments and no growing array"):
        together(2, kernel.functions["evaluate"], ())


VALUES = ("exp(-{}[i,j])", "{}[i,j] * {}[i,j]", "{}[j,i]", "sqrt({}[i,j]) - {}[j,i]")


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(VALUES), st.sampled_from("ABst"), st.sampled_from(("i", "j", "ij"))
        ),
        min_size=2,
        max_size=5,
    )
)
def test_random_statements_have_the_values_of_one_thread(drawn: list[tuple[str, str, str]]) -> None:
    statements, made = [], []
    for number, (value, name, kept) in enumerate(drawn):
        source = name if name in "AB" else next((m for m, k in made if k == "ij"), "A")
        target = f"r{number}"
        text = value.format(source, source)
        statements.append(f"{target}[{','.join(kept)}] = {text}")
        made.append((target, kept))
    given = operands(131, 131, "".join(name for name in "AB" if f"{name}[" in str(statements)))
    text, outputs = "; ".join(statements), tuple(name for name, _ in made)
    plain = tp.evaluate(text, given, outputs=outputs, threads=1)
    for _ in range(2):
        found = tp.evaluate(text, given, outputs=outputs, threads=2)
        for one, other in zip(found, plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("size", [5, 300])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "others",
    [("c = 0",), ("c = 0", "d = 0"), ("c = 0*g", "d = 2.5"), ("v[i] = b[i] * b[i]", "c = 0")],
)
def test_a_kernel_without_operands_among_others(
    others: tuple[str, ...], threads: int, size: int
) -> None:
    b = np.arange(1.0, size + 1)
    text = "; ".join(("t[j,i] = b[j] * b[i]", *others))
    names = tuple(each.split("=")[0].split("[")[0].strip() for each in text.split(";"))
    wanted = {"t": np.outer(b, b), "c": 0, "d": 2.5 if "2.5" in text else 0, "v": b * b}
    given = {"b": b, "g": 2.0} if "g" in text else {"b": b}
    for operands in (given, {**given, "b": tp.tensor(b)}):
        for _ in range(3):  # the later calls take the short way
            found = tp.evaluate(text, operands, outputs=names, threads=threads)
            for name, one in zip(names, found, strict=True):
                one = one.to_numpy() if isinstance(one, tp.Tensor) else one
                np.testing.assert_array_equal(one, wanted[name])
