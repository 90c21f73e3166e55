"""Seconds of dataflow graphs: instructions count in the loops that they need."""

from __future__ import annotations

import numpy as np

import taco_py as tp
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.dataflow.build_dataflow import build
from taco_py.compiler.dataflow.graph_seconds import Work, seconds_of_graph, work_of_graph
from taco_py.compiler.dataflow.rewritten_graph import rewritten
from taco_py.compiler.dataflow.slab_form import slab_form
from taco_py.language.problem import Problem

SIZES = {"i": 100.0, "j": 64.0}


def problem_of(text: str, dtype: str = "float32") -> Problem:
    """The problem of a text over a matrix S and vectors u of its rows, v of its columns."""
    operands = {"S": np.ones((100, 64), dtype), "u": np.ones(100, dtype), "v": np.ones(64, dtype)}
    read = {name: array for name, array in operands.items() if f"{name}[" in text}
    (kernel,) = tp.compile(text, **read).plan.kernels
    return kernel.problem


def work_of(text: str, dtype: str = "float32") -> Work:
    """The work of a text with one value after another."""
    problem = problem_of(text, dtype)
    form = slab_form(problem)
    sizes = {mode: SIZES["i" if mode.startswith("i") and len(form.names) > 1 else "j"]
             for mode in form.names}  # fmt: skip
    return work_of_graph(build(problem, form), sizes)


def test_functions_count_by_their_length_and_type() -> None:
    exponential = work_of("P[i,j] = exp(S[i,j] * v[j])")
    logarithm = work_of("P[i,j] = log(S[i,j] * v[j])")
    assert exponential.functions == 4 * 6400
    assert logarithm.functions == 2 * exponential.functions
    assert work_of("P[i,j] = exp(S[i,j] * v[j])", "float64").functions == 2 * exponential.functions


def test_quotients_count_in_the_loops_that_they_need() -> None:
    every, of_rows = work_of("P[i,j] = S[i,j] / v[j]"), work_of("P[i,j] = S[i,j] * (1 / u[i])")
    assert every.slow == 4 * 6400
    assert 0 < of_rows.slow <= 64 * 100  # one scalar for each row, as long as a vector
    halves = work_of("P[i,j] = (S[i,j] + v[j]) / 2.0")
    assert halves.slow == 0  # a product with 0.5


def test_extrema_take_longer_than_sums() -> None:
    total, most = work_of("y[i] = sum(j, S[i,j] * v[j])"), work_of("y[i] = max(j, S[i,j] * v[j])")
    assert total.lanes == 100 and not total.extrema
    assert most.extrema == 100 and most.compared == 4 * 6400


def test_a_rewritten_graph_takes_less_time_the_larger_its_arrays() -> None:
    text = "P[i,j] = S[i,j] / sum(k, S[i,k] * S[i,k])"
    problem = problem_of(text)
    form = slab_form(problem)
    first, after = build(problem, form), rewritten(problem, form).graph
    gains = []
    for side in (64.0, 8192.0):
        sizes = dict.fromkeys(form.names, side)
        before = seconds_of_graph(first, sizes, NOMINAL)
        gains.append(before / seconds_of_graph(after, sizes, NOMINAL))
    assert 1.0 <= gains[0] < gains[1]
