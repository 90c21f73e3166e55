"""Slabs on the units of an emulated GPU: random problems, as C and as CUDA, against the oracle."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from codegen.machine.gpu import NOMINAL_GPU
from taco_py.compiler.dataflow.build_dataflow import build
from taco_py.compiler.dataflow.slab_form import NoSlabError, slab_form
from taco_py.compiler.dataflow.slab_units import UnitGraph, Units, unit_graph
from taco_py.compiler.dataflow.unit_sizes import choose_units
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.ways.on_gpu.gpu_slabs import GPU_SLABS_WAY
from taco_py.compiler.ways.ways import in_slabs
from taco_py.data.kernels import KERNELS
from taco_py.language.problem import Problem
from tests.dataflow.interpreter import interpret
from tests.dataflow.random_problems import Values
from tests.dataflow.real_kernels import EMULATED, compiled, operands_of, run
from tests.problems import problem

PROBLEMS, MORE = 48, 240
TOLERANCE = {"float64": (1e-9, 1e-9), "float32": (2e-4, 1e-3), "int64": (0, 0)}
needs_gcc = pytest.mark.skipif(
    KERNELS.compiler.kind != "gcc", reason="no gcc: kernels of CUDA are not emulated here"
)


def drawn_units(numbers: Random, of: UnitGraph) -> Units:
    """Some threads for a slab: lanes of a warp, all of a block, or some of it."""
    if of.is_across or of.is_split:
        sharing, groups = numbers.choice(((1, 32), (4, 8), (8, 32), (32, 8), (64, 2), (64, 1)))
    else:
        sharing, groups = numbers.choice(((1, 32), (4, 8), (16, 4), (32, 1), (32, 4), (64, 1)))
    elements, slabs = numbers.choice((1, 2, 4, 8)), numbers.choice((1, 2, 5))
    return Units(sharing * groups, sharing, elements, slabs)


def make_of(units: Units, inner_sums: bool) -> Make:
    sizes = (units.threads, units.sharing, units.elements, units.slabs)
    return Make(GPU_SLABS_WAY, (*sizes, int(inner_sums)))


def expected_of(drawn: Problem, sizes: dict[str, int], operands: dict[str, Any]) -> Any:
    form = slab_form(drawn)
    exact = {
        name: a.astype("float64") if a.dtype.kind == "f" else a for name, a in operands.items()
    }
    return interpret(build(drawn, form), exact, {index: sizes[index[0]] for index in form.order})


@needs_gcc
@pytest.mark.parametrize("part", range(4))
def test_random_problems_have_the_same_values_on_both_targets(part: int, thorough: bool) -> None:
    tried = 0
    for seed in range(part, MORE if thorough else PROBLEMS, 4):
        numbers = Random(seed)
        dtype = numbers.choice((*TOLERANCE,))
        drawn = Values(numbers, dtype).problem()
        inner_sums = numbers.random() < 0.5
        try:
            of = unit_graph(drawn, inner_sums)
        except NoSlabError:
            continue
        tried += 1
        sizes = {
            "i": numbers.choice((1, 3, 9, 40)),
            "j": numbers.choice((1, 4, 31, 33)),
            "k": numbers.choice((1, 5, 17)),
        }
        units = drawn_units(numbers, of)
        operands = operands_of(drawn, sizes, seed)
        wanted = expected_of(drawn, sizes, operands)
        kernel = compiled(drawn, make_of(units, inner_sums), EMULATED)
        there = run(drawn, kernel, sizes, operands)
        here = run(drawn, compiled(drawn, in_slabs()), sizes, operands)
        relative, absolute = TOLERANCE[dtype]
        for name, array in wanted.items():
            message = f"{seed} {units} {sizes} {drawn}\n{of.graph}"
            for results in (there, here):
                np.testing.assert_allclose(
                    results[name], array, relative, absolute, err_msg=message
                )
    assert tried > 4


SOFTMAX = "P[i,j] = exp(X[i,j]) / sum(k, exp(X[i,k]))"
NORM = "P[i,j] = X[i,j] / sum(k, X[i,k]) * g[j] + b[j]"


@pytest.mark.parametrize(
    ("text", "sizes", "threads"),
    [
        (SOFTMAX, {"i": 10_000, "j": 5}, (256, 8, 1, 1)),
        (SOFTMAX, {"i": 10_000, "j": 100}, (256, 32, 4, 1)),
        (SOFTMAX, {"i": 10_000, "j": 1000}, (256, 32, 32, 1)),
        (SOFTMAX, {"i": 10_000, "j": 4096}, (256, 256, 16, 1)),
        (SOFTMAX, {"i": 10_000, "j": 10_000}, (1024, 1024, 12, 1)),
        (SOFTMAX, {"i": 10_000, "j": 20_000}, (1024, 1024, 20, 1)),
        (NORM, {"i": 10_000, "j": 4096}, (256, 256, 16, 16)),
        (NORM, {"i": 100, "j": 4096}, (256, 256, 16, 1)),
        ("P[i,j] = X[i,j] / sum(k, X[k,j])", {"i": 512, "j": 4096}, (256, 8, 64, 1)),
        ("P[i,j] = X[i,j] + b[j]", {"i": 4096, "j": 4096}, (256, 256, 4, 8)),
        ("P[i,j] = X[i,j] + b[j]", {"i": 100_000, "j": 3}, (256, 4, 1, 1)),
    ],
)
def test_threads_of_a_slab(text: str, sizes: dict[str, float], threads: tuple[int, ...]) -> None:
    of = unit_graph(problem(text, dtypes=dict.fromkeys(("X", "g", "b"), "float32")))
    units = choose_units(of, {index: sizes[index] for index in of.form.order}, NOMINAL_GPU)
    assert units == Units(*threads)


def test_rows_that_registers_do_not_hold() -> None:
    of = unit_graph(problem(SOFTMAX))
    assert choose_units(of, {"i": 100.0, "j": 100_000.0}, NOMINAL_GPU) is None


def test_sums_of_columns_have_columns_as_slabs() -> None:
    columns = unit_graph(problem("y[j] = X[i,j]"), inner_sums=True)
    assert (columns.slab, columns.inner, columns.sums) == (("j",), ("i",), {})
    rows = unit_graph(problem("y[j] = X[i,j]"))
    assert (rows.slab, rows.inner, [*rows.sums]) == (("i",), ("j",), ["y"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[i] = exp(sum(j, max(k, X[i,j,k])))", "a value has some of the indices inside"),
        ("y[i] = X[i]", "it has one index alone"),
        ("y[j,k] = max(i, X[i,j,k])", "y has some of the indices of slabs alone"),
    ],
)
def test_what_units_do_not_share(text: str, reason: str) -> None:
    with pytest.raises(NoSlabError, match=reason):
        unit_graph(problem(text))


def test_threads_keep_what_they_read_again_and_blocks_what_all_slabs_read() -> None:
    of = unit_graph(problem(NORM))
    assert of.registers == (("X", ("i", "j")),)
    assert of.common == (("g", ("j",)), ("b", ("j",)))
    softmax = unit_graph(problem(SOFTMAX))
    assert [name for name, _ in softmax.registers] == ["t"]
