"""Arrays of temporaries are given up, or taken again, in calls that were made before."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data.kernels import KERNELS
from taco_py.running.replay.taken_again import NewArray, equal_sizes, with_arrays_taken_again

CHAIN = "; ".join(
    f"{new}[i,k] = {old}[i,j] * A[j,k]" for old, new in zip("ABCDEFG", "BCDEFGH", strict=True)
)
KEY = (("n", "n"), "float64", (0, 1))


def lines(steps: list[list[str]], free: dict[int, list[str]], cleared: str = "") -> list[str]:
    dense = [n for n, step in enumerate(steps) if step[0].endswith("()") and len(step) > 1]
    new = {
        "ABCDE"[n]: NewArray(f"t{n}", f"t{n} = make{n}()", KEY, "ABCDE"[n] in cleared)
        for n in dense
    }
    held = {"ABCDE"[n]: [f"t{n}"] for n in range(len(steps))}
    return [*with_arrays_taken_again(steps, free, new, held)]


STEPS = [[f"t{n} = make{n}()", f"kernel{n}()"] for n in range(4)]


def test_a_chain_needs_two_arrays() -> None:
    assert lines(STEPS, {1: ["A"], 2: ["B"], 3: ["C"]}) == [
        "t0 = make0()", "kernel0()", "t1 = make1()", "kernel1()",
        "t2 = t0", "kernel2()", "t3 = t1", "kernel3()",
    ]  # fmt: skip


def test_arrays_that_nobody_takes_are_given_up_by_all_their_names() -> None:
    steps = [*STEPS[:3], ["t3 = sparse3()"], ["t4 = sparse4()"]]
    found = lines(steps, {1: ["A"], 3: ["B", "C"]}, cleared="C")
    assert found[4:] == [
        "t2 = t0", "t2.fill(0)", "kernel2()", "t3 = sparse3()", "t1 = t2 = t0 = None",
        "t4 = sparse4()",
    ]  # fmt: skip


def test_sizes_that_a_call_agrees_on() -> None:
    found = equal_sizes(["b != a", "c != b", "d.shape != c", "e != 5"])
    assert found == {"b": "a", "c": "a"}


@pytest.mark.parametrize(
    "text", [CHAIN, CHAIN.replace("H[i,k] = G[i,j]", "H[i,k] = G[i,j] * B[i,j]")]
)
def test_a_long_chain_holds_few_arrays(text: str) -> None:
    size = 300
    a = np.random.default_rng(0).random((size, size)) / size
    expected = tp.evaluate(text, A=a, outputs="H")
    KERNELS.pool.clear()
    tracemalloc.start()
    found = tp.evaluate(text, A=a, outputs="H")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(found, expected)
    assert peak < (4 if "* B" in text else 3) * a.nbytes < 7 * a.nbytes


@pytest.mark.parametrize("outputs", [("B", "H"), ("C", "D", "H"), "H"])
def test_results_are_never_memory_of_another_or_of_a_later_call(outputs: Any) -> None:
    a = np.random.default_rng(0).random((9, 9))
    powers = dict(zip("BCDEFGH", (np.linalg.matrix_power(a, n) for n in range(2, 9)), strict=True))
    kept: list[Any] = []
    for _ in range(4):
        found = tp.evaluate(CHAIN, A=a, outputs=outputs)
        kept += [found] if isinstance(outputs, str) else found
    for name, each in zip([*outputs] * 4, kept, strict=True):
        np.testing.assert_allclose(each, powers[name])
    for place, one in enumerate(kept):
        assert not any(np.may_share_memory(one, other) for other in kept[:place])


def test_arrays_of_other_sizes_and_sparse_temporaries_are_given_up() -> None:
    rng = np.random.default_rng(0)
    a, y = sp.random_array((30, 20), density=0.2, rng=rng, format="csr"), 3.0
    text = "S[i,j] = A[i,j] * c; T[i,k] = S[i,j] * X[j,k]; U[k,i] = T[i,k] * T[i,k]; v[i] = U[k,i]"
    panel = rng.random((20, 4))
    made = ((a.toarray() * y @ panel) ** 2).sum(1)
    for _ in range(3):
        np.testing.assert_allclose(tp.evaluate(text, A=a, c=y, X=panel), made)
