"""Kernels with visitor trees, interpreted on matrices of edge sizes, and random trees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_py.planner.ir.nodes import KernelStep, TakeSide
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.printer import program_text
from taco_py.planner.ir.verify import verify
from tests.epilogue.interpreted_epilogues import interpreted, planned

RULE = "fuse_epilogue"
PRODUCT = "P[i,j] = sum(k, X[i,k] * W[k,j])"
EIGHT: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "bias": (("H[i,j] = P[i,j] + b[j]",), ("H",)),
    "bias and relu": (("H[i,j] = max(P[i,j] + b[j], 0)",), ("H",)),
    "stored besides": (
        ("Z[i,j] = P[i,j] + b[j]", "H[i,j] = 0.5 * Z[i,j] * (1 + erf(Z[i,j] * 0.7))"),
        ("Z", "H"),
    ),
    "residual": (("H[i,j] = P[i,j] + b[j] + R[i,j]",), ("H",)),
    "sums": (
        (
            "H[i,j] = max(P[i,j] + b[j], 0)",
            "s[j] = sum(i, H[i,j])",
            "t[i] = sum(j, H[i,j] * H[i,j])",
            "u = sum(i, sum(j, H[i,j]))",
        ),
        ("H", "s", "t", "u"),
    ),
    "sums alone": (
        ("s[j] = sum(i, abs(P[i,j]))", "u = sum(i, sum(j, P[i,j] * P[i,j]))"),
        ("s", "u"),
    ),
    "dropout": (("H[i,j] = where(M[i,j], (P[i,j] + b[j]) / 0.9, 0.0)",), ("H",)),
    "relu backward": (("H[i,j] = where(R[i,j] > 0, P[i,j] / d[i], 0.0)",), ("H",)),
    "no tree": (
        ("Z[i,j] = P[i,j] + b[j]", "Q[i,j] = tanh(Z[i,j])",
         "H[i,j] = Q[i,j] * Z[i,j] + R[i,j] * (1 - Q[i,j] * Q[i,j])"),
        ("H",),
    ),
    "two roots": (
        ("Z[i,j] = P[i,j] + b[j]", "H[i,j] = max(Z[i,j], 0)", "G[i,j] = tanh(Z[i,j])"),
        ("H", "G", "P"),
    ),
    "transposed": (("H[j,i] = P[i,j] + R[i,j]",), ("H",)),
}  # fmt: skip
MAIN_LOOPS = {"dense": "dd", "sparse": "ds"}
SIZES = ((1, 1, 1), (7, 9, 5), (12, 16, 3), (0, 4, 3), (4, 0, 3), (5, 6, 0))
"""Rows, columns and depth: tiles that are whole, and that are not."""


@cache
def plan_for(name: str, left: str) -> Plan:
    texts, results = EIGHT[name]
    return planned((PRODUCT, *texts), results, {"X": left}, {"M": "bool"})


def operands(left: str, rows: int, columns: int, depth: int) -> dict[str, Any]:
    rng = np.random.default_rng(rows + 7 * columns + 31 * depth)
    whole = rng.standard_normal((rows, depth)) * (rng.random((rows, depth)) < 0.6)
    return {
        "X": sp.csr_array(whole) if left == "ds" else whole,
        "W": rng.standard_normal((depth, columns)),
        "b": rng.standard_normal(columns),
        "d": rng.random(rows) + 1,
        "R": rng.standard_normal((rows, columns)),
        "M": rng.random((rows, columns)) < 0.5,
    }


def expected(  # noqa: C901 - one case a text
    name: str, given_: dict[str, Any]
) -> dict[str, Any]:
    """The values of the texts, in NumPy."""
    from scipy.special import erf

    X = given_["X"]
    P = (X.toarray() if sp.issparse(X) else X) @ given_["W"]
    b, R, M = given_["b"], given_["R"], given_["M"]
    Z = P + b
    relu = np.maximum(Z, 0)
    match name:
        case "bias":
            return {"H": Z}
        case "bias and relu":
            return {"H": relu}
        case "stored besides":
            return {"Z": Z, "H": 0.5 * Z * (1 + erf(Z * 0.7))}
        case "residual":
            return {"H": Z + R}
        case "sums":
            return {"H": relu, "s": relu.sum(0), "t": (relu**2).sum(1), "u": relu.sum()}
        case "sums alone":
            return {"s": np.abs(P).sum(0), "u": (P**2).sum()}
        case "dropout":
            return {"H": np.where(M, Z / 0.9, 0.0)}
        case "relu backward":
            return {"H": np.where(R > 0, P / given_["d"][:, None], 0.0)}
        case "no tree":
            return {"H": np.tanh(Z) * Z + R * (1 - np.tanh(Z) ** 2)}
        case "two roots":
            return {"H": relu, "G": np.tanh(Z), "P": P}
        case _:
            return {"H": (P + R).T}


def in_one_kernel(plan: Plan) -> Any:
    """The only kernel of a plan, which the rule has made."""
    (kernel,) = plan.kernels
    assert [entry.target for entry in plan.log.of(RULE)] == ["P"]
    return kernel


def made_by(plan: Plan, kernel: KernelStep) -> dict[str, str]:
    """The tensors of the plan that a kernel makes, by its own names."""
    names = {kernel.problem.assignment.target.tensor: kernel.target}
    for step in plan.steps:
        if isinstance(step, TakeSide) and step.source == kernel.target:
            names[kernel.problem.side[step.number].target.tensor] = step.target
    return names


FUSED = [
    (name, loop)
    for name in EIGHT
    for loop in MAIN_LOOPS
    if loop == "dense" or len(EIGHT[name][0]) > 1
]
"""Single values of rows are made by `fuse_temporary`, in the loops of the product."""


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("name", "loop"), FUSED)
def test_values_are_those_of_numpy(name: str, loop: str, sizes: tuple[int, int, int]) -> None:
    left = MAIN_LOOPS[loop]
    kernel = in_one_kernel(plan_for(name, left))
    known = operands(left, *sizes)
    found = interpreted(kernel, known)
    wanted = expected(name, known)
    targets = made_by(plan_for(name, left), kernel)
    assert set(targets.values()) == set(wanted)
    for own, target in targets.items():
        np.testing.assert_allclose(found[own], wanted[target], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", EIGHT)
def test_a_product_that_nobody_reads_is_not_stored(name: str) -> None:
    plan = plan_for(name, "dd")
    kernel = in_one_kernel(plan)
    stored = {kernel.target, *(step.target for step in plan.steps)}
    assert ("P" in stored) == ("P" in EIGHT[name][1])
    assert stored == set(EIGHT[name][1])


@pytest.mark.parametrize(("name", "loop"), FUSED)
def test_plans_print_and_parse_back(name: str, loop: str) -> None:
    program = plan_for(name, MAIN_LOOPS[loop]).program
    verify(program)
    again = parse_program(program_text(program))
    assert again.steps == program.steps


# ---------------------------------------------------------------- random trees


@st.composite
def statements(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Values of the product's elements, each of values before it, and the ones that are wanted."""
    values, texts, sums = ["P[i,j]"], [], []
    for number in range(draw(st.integers(1, 5))):
        one = draw(st.sampled_from(values))
        other = draw(st.sampled_from([*values, "R[i,j]", "b[j]", "d[i]", "0.5"]))
        form = draw(st.sampled_from(("{} + {}", "{} - {}", "max({}, {})", "tanh({}) * {}")))
        texts.append(f"V{number}[i,j] = {form.format(one, other)}")
        values.append(f"V{number}[i,j]")
    for target, indices in (("s[j]", "i"), ("t[i]", "j")):
        if draw(st.booleans()):
            value = draw(st.sampled_from(values[1:]))
            sums.append(f"{target} = sum({indices}, {value} * {value})")
    wanted = [each[: each.index("[")] for each in values[1:] if draw(st.booleans())]
    last = values[-1][: values[-1].index("[")]
    every = tuple(dict.fromkeys((*wanted, last, *(each[0] for each in sums))))
    return (*texts, *sums), every


def by_numpy(texts: Sequence[str], known: dict[str, Any]) -> dict[str, Any]:
    """What statements make, computed one after the other."""
    X = known["X"].toarray() if sp.issparse(known["X"]) else known["X"]
    found = {"P": X @ known["W"], "R": known["R"], "b": known["b"], "d": known["d"][:, None]}
    for text in texts:
        target, value = text.split(" = ")
        name = target[: target.index("[")]
        words = value.replace("[i,j]", "").replace("[j]", "").replace("[i]", "")
        if words.startswith("sum("):
            index, body = words[4:-1].split(", ", 1)
            found[name] = eval(body, {}, found).sum("ij".index(index))
        else:
            scope = {"max": np.maximum, "tanh": np.tanh}
            found[name] = eval(words, scope, found)
    return found


@given(statements())
@settings(max_examples=6, deadline=None)
def test_random_trees(made: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    texts, wanted = made
    plan = planned((PRODUCT, *texts), wanted, {"X": "ds"})
    known = operands("ds", 5, 6, 4)
    reference = by_numpy(texts, known)
    found = dict(known)
    for step in plan.steps:
        if isinstance(step, KernelStep):
            own = interpreted(step, found)
            names = made_by(plan, step)
            found.update((names[each], array) for each, array in own.items())
    for name in wanted:
        np.testing.assert_allclose(found[name], reference[name], rtol=1e-10, atol=1e-10)
