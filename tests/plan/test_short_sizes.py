"""Short sizes of dense loops that are compiled in, and products of little depth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taco_py as tp
from taco_py.data.storage.size_classes import size_classes
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.make import Options, make_plan
from tests.codegen.test_emit import needs_compiler
from tests.problems import operands, problem

POINTS = "y[b,i] = A[i,j] * x[b,j]"


def kernel(text: str, sizes: dict[str, int], sized: bool = True, **formats: str) -> KernelStep:
    """The last kernel of the plan on arrays without gaps."""
    known = problem(text, formats)
    given = {
        name: replace(each, contiguous=(True,) * (len(each.shape) - 1))
        for name, each in operands(known, sizes).items()
    }
    made = make_plan(known.assignment, given, Request(known.result, sized=sized), Options())
    step = made.steps[-1]
    assert isinstance(step, KernelStep)
    return step


def test_two_and_three_are_classes_of_their_own() -> None:
    found = [size_classes((size,)) for size in (0, 1, 2, 3, 4, 7, 8)]
    assert len(set(found)) == 6
    assert found[4] == found[5]


@pytest.mark.parametrize(
    ("sizes", "static"),
    [
        ({"b": 20000, "i": 3, "j": 2}, (("i", 3), ("j", 2))),
        ({"b": 20000, "i": 3, "j": 5}, (("i", 3),)),
        ({"b": 20000, "i": 1, "j": 3}, (("j", 3),)),
        ({"b": 20000, "i": 4, "j": 4}, ()),
        ({"b": 200, "i": 3, "j": 3}, ()),
    ],
)
def test_short_sizes_of_large_problems_are_static(
    sizes: dict[str, int], static: tuple[tuple[str, int], ...]
) -> None:
    assert kernel(POINTS, sizes).problem.static == static


def test_kernels_for_all_sizes_and_sparse_ones_have_none() -> None:
    sizes = {"b": 20000, "i": 3, "j": 3}
    assert kernel(POINTS, sizes, sized=False).problem.static == ()
    assert kernel(POINTS, sizes, x="CSR").problem.static == ()


@pytest.mark.parametrize(
    ("text", "sizes", "tiled"),
    [
        ("C[i,k] = A[i,j] * B[k,j]", (1000, 3, 1000), True),
        ("C[i,k] = A[i,j] * B[k,j]", (1000, 2, 40), True),
        ("C[i,k] = A[i,j] * B[j,k]", (1000, 3, 1000), False),
        ("C[i,k] = A[i,j] * B[j,k]", (20000, 3, 4), True),
        ("C[i,k] = A[i,j] * B[j,k]", (1000, 4, 1000), True),
        ("C[i,k] = A[i,j] * B[k,j]", (20000, 3, 3), False),
    ],
)
def test_sums_of_few_terms_run_in_tiles_where_right_lies_across(
    text: str, sizes: tuple[int, int, int], tiled: bool
) -> None:
    found = kernel(text, dict(zip("ijk", sizes, strict=True)))
    assert found.schedule.make.way == ("tiles" if tiled else "loops")


@needs_compiler
@pytest.mark.parametrize("text", ["ij,bj->bi", "bj,ij->bi", "bij,bj->bi", "bj,j->b", "bi,bj->bij"])
def test_one_text_has_right_results_for_all_short_sizes(text: str) -> None:
    """Whatever sizes came before, with the same numbers of bits."""
    rng = np.random.default_rng(0)
    for i, j in ((3, 2), (2, 3), (3, 3), (2, 2), (1, 3), (5, 3), (3, 7), (4, 4), (3, 2)):
        sizes = {"b": 9000, "i": i, "j": j}
        left, right = text.split("->")[0].split(",")
        a, b = (rng.random([sizes[index] for index in each]) for each in (left, right))
        for _ in range(2):
            np.testing.assert_allclose(tp.einsum(text, a, b), np.einsum(text, a, b))


@needs_compiler
def test_compiled_kernels_take_other_sizes_than_those_of_their_examples() -> None:
    a, b = np.ones((9000, 3)), np.ones((3, 3))
    found = tp.compile("y[b,i] = x[b,j] * A[i,j]", x=a, A=b)
    assert found(x=np.ones((9000, 2)), A=np.ones((2, 2))).max() == 2


@needs_compiler
def test_explain_names_the_sizes_that_are_compiled_in() -> None:
    told = tp.explain("ij,bj->bi", np.ones((3, 3)), np.ones((9000, 3)))
    assert "made for    i = 3, j = 3" in told
