"""Dense products with what keeps them from register tiles in steps of their own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

import taco_py as tp
from taco_py.compiler.ways.library_choice import Libraries
from taco_py.language.notation.checks import all_indices
from taco_py.language.notation.nodes import Reduce
from taco_py.language.notation.printer import to_text
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options, make_plan
from tests.machines import planned_for
from tests.problems import operands, plan, problem

SIZES = dict.fromkeys("abijkl", 400)


def planned(
    text: str,
    dtypes: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    **options: bool,
) -> Plan:
    whole = problem(text, dtypes=dtypes)
    return plan(whole, {**SIZES, **(sizes or {})}, options=Options(**options))


def outline(made: Plan) -> list[str]:
    """The kernels with their own names of operands, and which are made of tiles."""
    return [
        f"{to_text(step.problem.assignment)} {step.schedule.make.way}"
        for step in made.steps
        if isinstance(step, KernelStep)
    ]


def products(made: Plan) -> int:
    """How many kernels are made of tiles."""
    tiled = (step.schedule.make.way == "tiles" for step in made.kernels)
    return sum(tiled)


APART = (
    (
        "R[i,k] = (P[i,j] + Q[i,j]) * S[j,k]",
        ["T[i,j] = A[i,j] + B[i,j] loops", "R[i,k] = sum(j, T[i,j] * S[j,k]) tiles"],
    ),
    (
        "R[i,k] = P[i,j] * S[j,k] / g[j]",
        ["T[i,j] = A[i,j] / B[j] loops", "R[i,k] = sum(j, T[i,j] * S[j,k]) tiles"],
    ),
    (
        "R[i,k] = g[k] - 2 * P[i,j] * S[j,k]",
        ["T[i,j] = sum(k, A[i,k] * B[k,j]) tiles", "R[i,k] = g[k] - 2 * T[i,k] loops"],
    ),
    (
        "R[i,k] = P[i,j] * S[j,k] - Q[i,j] * S[k,j]",
        [
            "T[i,j] = sum(k, A[i,k] * B[k,j]) tiles",
            "T[i,j] = sum(k, A[i,k] * B[j,k]) tiles",
            "R[i,k] = T[i,k] - T_1[i,k] loops",
        ],
    ),
    (
        "K[a,b] = (X[i,a] - m[a]) * (X[i,b] - m[b])",
        ["T[i,j] = A[i,j] - B[j] loops", "K[a,b] = sum(i, T[i,a] * T[i,b]) tiles"],
    ),
)


@pytest.mark.parametrize(("text", "expected"), APART)
def test_what_keeps_a_dense_product_from_tiles_is_apart(text: str, expected: list[str]) -> None:
    """What is equal is computed once: data are centred once for their covariance."""
    made = planned(text)
    assert [line.replace("T_1[i,b]", "T[i,b]") for line in outline(made)] == expected
    assert all("dense product" in note for note in made.notes)


@pytest.mark.parametrize("number", ["2", "0.5", "-1"])
@pytest.mark.parametrize("around", ["{}", "{} + g[k]", "{} / h[i]", "({} + g[k]) * h[i]"])
def test_numbers_and_what_is_around_a_product_are_apart(number: str, around: str) -> None:
    text = "R[i,k] = " + around.format(f"sum(j, {number} * P[i,j] * S[j,k])")
    assert products(planned(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "K[a,b] = (X[i,a] - m[a]) * (X[i,b] - m[b]) / (d[a] * d[b])",
        "K[a,b] = w[i] * (X[i,a] - m[a]) * (X[i,b] - m[b])",
        "v[i] = (X[i,a] - m[a]) * M[a,b] * (X[i,b] - m[b])",
        "R[i,k] = (P[i,j] / Q[i,j]) * S[j,k]",
        "R[i,k] = (P[i,j] - Q[j,i]) * (S[j,k] + P[j,k])",
        "Y[i,k] = (X[i,a] * V[a,j] + b[j]) * W[j,k] + c[k]",
        "F[a,k] = T[i,j,a,b] * (2 * I[i,k,j,b] - I[i,b,j,k])",
    ],
)
def test_the_heaviest_kernels_are_products_in_tiles(text: str) -> None:
    made = planned(text, sizes=dict.fromkeys("abk", 130))
    assert products(made) >= 1
    for step in made.kernels:
        part = step.problem.assignment
        if isinstance(part.value, Reduce) and len(all_indices(part)) > 2:
            assert step.schedule.make.way == "tiles"


@pytest.mark.parametrize(
    "text", ["R[i,k] = P[i,j] * S[j,k] + g[k]", "R[i,k] = g[k] - P[i,j] * S[j,k]"]
)
@pytest.mark.parametrize("size", [20, 130])
def test_a_product_beside_a_wider_term_keeps_its_type(text: str, size: int) -> None:
    """Its factors are of no other type, whatever their size is."""
    p = np.full((size, size), 1e30, "float32")
    found = tp.evaluate(text, P=p, S=p, g=np.zeros(size))
    assert found.dtype == np.float64
    assert np.isinf(found).all()


def test_complex_products_are_apart_where_a_library_may_be_called() -> None:
    text = "R[i,k] = (P[i,j] + Q[i,j]) * S[j,k] + g[k]"
    dtypes = dict.fromkeys("PQSg", "complex128")
    there, none = (Libraries(lambda dtype, is_=is_: is_, lambda: 1.0) for is_ in (True, False))
    whole = problem(text, dtypes=dtypes)
    kinds = {}
    for name, libraries in (("there", there), ("none", none)):
        made = plan(whole, SIZES, options=Options(libraries=libraries))
        kinds[name] = [step.schedule.make.way for step in made.kernels]
    assert kinds == {"there": ["loops", "library", "loops"], "none": ["loops"]}


def test_what_is_told_is_of_steps_that_are_made() -> None:
    """A factor that is equal to another one is none."""
    made = planned("K[a,b] = (X[i,a] - m[a]) * (X[i,b] - m[b])")
    assert len(made.notes) == 1


MIXED = (("P", "float32"), ("P", "int64"), ("P", "int8"), ("P", "bool"), ("S", "float32"))


@pytest.mark.parametrize(("name", "dtype"), MIXED)
def test_a_factor_of_another_type_is_converted_first(name: str, dtype: str) -> None:
    made = planned("R[i,k] = P[i,j] * S[j,k]", {name: dtype})
    first, product = made.kernels
    assert product.schedule.make.way == "tiles"
    assert first.problem.result.dtype == "float64"


STAYS: tuple[tuple[str, dict[str, str], dict[str, int]], ...] = (
    ("y[i] = (P[i,j] - m[j]) * x[j]", {}, {}),
    ("R[i,k] = (P[i,j] + Q[i,j]) * S[j,k]", {"P": "int64", "Q": "int64", "S": "int64"}, {}),
    ("R[i,k] = (P[i,j] + Q[i,j]) * S[j,k]", {}, dict.fromkeys("ijk", 60)),
    ("R[a,i,k] = (P[a,i,j] + Q[a,i,j]) * S[a,j,k]", {}, dict.fromkeys("ijk", 8)),
    ("R[i,k] = (U[i,j] - V[k,j]) * (U[i,j] - V[k,j])", {}, {}),
    ("R[i,l] = (P[i,j] - W[k,j]) * S[j,k,l]", {}, {"l": 40}),
)


@pytest.mark.parametrize(("text", "dtypes", "sizes"), STAYS)
def test_one_kernel_where_no_tiles_would_be_filled(
    text: str, dtypes: dict[str, str], sizes: dict[str, int]
) -> None:
    """Too little reuse, too few products to pay for two kernels, integers, no product of two, or a
    factor that would store more than the largest operand or the result."""
    assert len(planned(text, dtypes, sizes).kernels) == 1


def test_one_kernel_where_one_is_asked_for() -> None:
    assert len(planned("R[i,k] = P[i,j] * S[j,k] + g[k]", contract=False).kernels) == 1


@pytest.mark.parametrize(("limit", "kernels"), [(400 * 400 - 1, 1), (400 * 400, 3)])
def test_temporaries_are_as_large_as_allowed_at_most(limit: int, kernels: int) -> None:
    whole = problem("R[i,k] = (P[i,j] + Q[i,j]) * S[j,k] + g[k]")
    apart = frozenset(("fuse_epilogue",))
    request = Request(whole.result, memory=limit, left_out=apart)
    made = make_plan(whole.assignment, operands(whole, SIZES), request)
    assert len(made.kernels) == kernels


VALUES = (
    "(P[i,j] + Q[i,j]) * S[j,k]",
    "Q[i,k] - 2 * P[i,j] * S[j,k]",
    "P[i,j] * Q[j,k] + S[i,k] * 3",
    "(P[i,j] - 0.5) * (S[j,k] + Q[j,k])",
    "P[i,j] / (Q[i,j] + 1.5) * S[j,k] / 3",
    "(P[i,j] + Q[i,j]) * (P[k,j] + Q[k,j])",
    "(sum(j, P[i,j] * S[j,k]) + Q[i,k]) * P[k,i]",
)
DTYPES = ("float64", "float32", "int64", "int8", "uint8", "bool", "complex64")


def operand(rng: np.random.Generator, dtype: str) -> NDArray[np.generic]:
    """A matrix whose sums wrap where it is of small integers."""
    return (rng.random((12, 12)) * (1 if dtype[0] in "fc" else 127)).astype(dtype)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("text", VALUES)
@pytest.mark.parametrize("p", DTYPES)
@pytest.mark.parametrize("q", DTYPES)
def test_values_and_types_are_as_written(text: str, p: str, q: str) -> None:
    """Sums of small integers wrap in their own type before they are converted."""
    rng = np.random.default_rng(0)
    given = {"P": operand(rng, p), "Q": operand(rng, q), "S": operand(rng, "float64")}
    given = {name: array for name, array in given.items() if f"{name}[" in text}
    with planned_for(own_kernel_products=1e5):
        found = tp.evaluate(f"R[i,k] = {text}", **given)
    expected = tp.evaluate_dense(f"R[i,k] = {text}", **given)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())


WIDTHS = (
    # (columns, type, the most columns of a tile; 0 for the machine's choice)
    (5, "float64", 4),
    (8, "float64", 8),
    (16, "float64", 8),
    (31, "float64", 8),
    (32, "float64", 0),
    (12, "float32", 8),
    (40, "float32", 16),
    (64, "float32", 0),
)


@pytest.mark.parametrize(("columns", "dtype", "width"), WIDTHS)
def test_tiles_of_few_columns_are_a_vector_wide(columns: int, dtype: str, width: int) -> None:
    """A tile of four vectors takes as long for one of them."""
    sizes = {"i": 2000, "k": 2000, "j": columns}
    made = planned("C[i,j] = A[i,k] * B[k,j]", dict.fromkeys("AB", dtype), sizes)
    (kernel,) = made.kernels
    assert kernel.schedule.make.way == "tiles"
    assert kernel.schedule.make.parameters == ((width,) if width else ())
