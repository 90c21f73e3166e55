"""Sparse results on a GPU that have an operand's coordinates: these are copied, and the loops are
shared as those of dense results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from codegen.devices.launch_record import Launch
from taco_py.compiler.concrete.nodes import Assembly
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.iteration.copied_pattern import copied_pattern
from taco_py.compiler.schedule.commands import Assemble
from taco_py.compiler.ways import unit_choices
from tests.corpus.formats import store, to_dense

RANDOM = np.random.default_rng(0)
SDDMM = "C[i,j] = S[i,j] * U[i,k] * V[j,k]"


def tensor(*shape: int, density: float = 0.02) -> np.ndarray[Any, Any]:
    """Whole numbers; one slice empty, one full."""
    found = RANDOM.integers(1, 9, shape) * (RANDOM.random(shape) < density) * 1.0
    found[1] = 0
    found[3] = RANDOM.integers(1, 9, shape[1:])
    return found


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.integers(1, 9, shape) * 1.0


# What is evaluated, the arrays, the formats of sparse operands and of the result.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, str], str]] = {
    name: (text, arrays, {"S": form}, result)
    for name, text, arrays, form, result in (
        ("SDDMM", SDDMM, {"S": tensor(90, 80), "U": numbers(90, 64), "V": numbers(80, 64)},
         "ds", "ds"),
        ("SDDMM of lists", SDDMM,
         {"S": tensor(90, 80), "U": numbers(90, 64), "V": numbers(80, 64)}, "coo", "coo"),
        ("SDDMM by columns", SDDMM,
         {"S": tensor(90, 80), "U": numbers(90, 64), "V": numbers(80, 64)}, "ds:1,0", "ds:1,0"),
        ("scaled", "C[i,j] = 2 * S[i,j]", {"S": tensor(90, 200, density=0.2)}, "ds", "ds"),
        ("scaled rows", "C[i,j] = a[i] * S[i,j]",
         {"S": tensor(90, 200, density=0.2), "a": numbers(90)}, "ss", "ss"),
        ("TTM", "C[i,j,l] = S[i,j,k] * B[k,l]",
         {"S": tensor(20, 15, 40, density=0.1), "B": numbers(40, 64)}, "sss", "ssd"),
        ("MTTKRP", "C[i,j] = S[i,k,l] * B[k,j] * D[l,j]",
         {"S": tensor(100, 20, 20, density=0.1), "B": numbers(20, 64), "D": numbers(20, 64)},
         "sss", "sd"),
    )
}  # fmt: skip
GATHERED: dict[str, tuple[str, dict[str, Any], dict[str, str], str]] = {
    "TTV": (
        "C[i,j] = S[i,j,k] * a[k]", {"S": tensor(20, 15, 40, density=0.2), "a": numbers(40)},
        {"S": "sss"}, "ss",
    ),
    "row sums": (
        "c[i] = S[i,j] * a[j]", {"S": tensor(90, 200, density=0.1), "a": numbers(200)},
        {"S": "ss"}, "s",
    ),
    "quotients": (
        "C[i,j] = S[i,j] / sum(k, U[i,k] * V[j,k])",
        {"S": tensor(30, 20, density=0.2), "U": numbers(30, 9), "V": numbers(20, 9)},
        {"S": "ds"}, "ds",
    ),
}  # fmt: skip
"""Of which a part of what is read lies apart."""


def evaluate(name: str, **options: Any) -> Any:
    text, arrays, forms, result = {**CASES, **GATHERED}[name]
    given = {n: store(a, forms[n]) if n in forms else a for n, a in arrays.items()}
    found = tp.evaluate(text, given, format=result, target="cuda-emulated", **options)
    np.testing.assert_allclose(to_dense(found), tp.evaluate_dense(text, **arrays), rtol=1e-14)
    assert found.nnz == tp.evaluate(text, given, format=result).nnz
    return found


@pytest.mark.parametrize("name", CASES)
def test_neighbours_in_memory_go_to_neighbouring_threads(name: str, launches: list[Launch]) -> None:
    """With the loops that are chosen: nothing is read twice that lies together."""
    evaluate(name)
    sectors = sum(launch.sectors for launch in launches)
    assert sectors <= 1.1 * sum(launch.ideal_sectors for launch in launches)
    assert not any(launch.kernel.startswith("running_totals") for launch in launches)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", (*CASES, *GATHERED))
def test_some_ways_to_share_loops(name: str) -> None:
    """A thread or more for each row, and the entries of an operand split evenly."""
    text, arrays, forms, result = {**CASES, **GATHERED}[name]
    formats = {n: forms.get(n, "d" * a.ndim) for n, a in arrays.items()} | {text[0]: result}
    recipe = tp.compile(text, formats, target="cuda").compiled[0].recipe
    problem, orders = recipe.problem, recipe.schedule.orders
    assert copied_pattern(problem)
    ways = unit_choices._ways(problem, split_terms(problem.assignment.value), 0, orders)
    copying = [w for w in ways if Assemble(text[0], Assembly.COPY) in w.commands]
    for way in (copying[0], copying[len(copying) // 2], copying[-1]):
        order = f"reorder({','.join(way.order)}), " if len(way.order) > 1 else ""
        evaluate(name, schedule=f"{order}{tp.Schedule(way.commands)}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128", "int8", "bool"])
def test_types(dtype: str) -> None:
    arrays = {"S": tensor(20, 30, density=0.2), "a": numbers(30)}
    typed = {n: a.astype(dtype) for n, a in arrays.items()}
    given = {"S": store(typed["S"], "ds"), "a": typed["a"]}
    text = "C[i,j] = S[i,j] * a[j]"
    found = tp.evaluate(text, given, format="ds", target="cuda-emulated")
    assert found.dtype == dtype
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, **typed))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (7, 5)])
def test_no_entries(shape: tuple[int, int]) -> None:
    given = {"S": store(np.zeros(shape), "ds"), "a": np.ones(shape[1])}
    text = "C[i,j] = S[i,j] * a[j]"
    found = tp.evaluate(text, given, format="ds", target="cuda-emulated")
    assert (found.shape, found.nnz) == (shape, 0)


REFUSED = {
    "C[i,j] = A[i,j] + B[i,j]": "no operand's outer levels have the coordinates that it stores",
    "C[i,j] = A[i,j] * B[i,j]": "no operand's outer levels have the coordinates that it stores",
    "C[i,j] = A[i,k] * B[k,j]": "no operand's outer levels have the coordinates that it stores",
    "C[i,j] = A[i,j] * u[k]": "no operand's outer levels have the coordinates that it stores",
    "C[i,j] = A[i,j] * B[j,k] * X[j,k]": "no operand's outer levels",
    "C[i,j] = max(k, A[i,j] * X[j,k])": "no operand's outer levels",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_coordinates_are_counted(text: str) -> None:
    formats = {"A": "csr", "B": "csr", "X": "dd", "u": "s", "C": "csr"}
    given = {n: f for n, f in formats.items() if f"{n}[" in text}
    with pytest.raises(tp.ScheduleError, match=REFUSED[text]) as refusal:
        tp.compile(text, given, schedule="assemble(C,Copy)", target="cuda")
    assert "assemble(C,Insert)" in str(refusal.value.hint)


def test_refusals_say_what_would_help() -> None:
    formats = {"S": "csr", "a": "d", "C": "csr"}
    text, blocks = "C[i,j] = S[i,j] * a[j]", "parallelize(i,GPUBlock)"
    with pytest.raises(tp.ScheduleError, match="the CPU write parts of a result") as refusal:
        tp.compile(text, formats, schedule="assemble(C,Copy)")
    assert 'target="cuda"' in str(refusal.value.hint)
    with pytest.raises(tp.ScheduleError, match="would write a sparse result") as refusal:
        tp.compile(text, formats, schedule=blocks, target="cuda")
    assert "assemble(C,Copy)" in str(refusal.value.hint)
    kernel = tp.compile(text, formats, schedule=f"{blocks}, assemble(C,Copy)", target="cuda")
    assert "coordinates are copied" in kernel.explain()
    with pytest.raises(tp.ScheduleError, match="every element of C has its place"):
        tp.compile(text, {**formats, "C": "dd"}, schedule="assemble(C,Copy)", target="cuda")
