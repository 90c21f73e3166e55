"""Dense plans: indices that are fused, factors that are lined up, the order of loops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taco_py.compiler.schedule.schedule import Schedule
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Cast, Fuse, KernelStep, Unfuse
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options, make_plan
from tests.problems import kernel_text, operands, problem


def planned(
    text: str,
    sizes: int = 40,
    gaps: str = "",
    options: Options | None = None,
    static: tuple[tuple[str, int], ...] = (),
    **formats: str,
) -> Plan:
    """The plan on arrays without gaps, but for those of the operands `gaps`."""
    known = problem(text, formats)
    given = {
        name: replace(
            each, contiguous=tuple(name not in gaps for _ in each.shape[1:] if name not in formats)
        )
        for name, each in operands(known, dict.fromkeys("abcdijk", sizes)).items()
    }
    apart = frozenset(("fuse_epilogue",))  # each product is looked at by itself
    request = Request(known.result, static, left_out=apart)
    return make_plan(known.assignment, given, request, options or Options())


def outline(made: Plan) -> list[str]:
    """A line for each step."""
    lines = []
    for step in made.steps:
        match step:
            case Fuse(target, source, groups):
                lines.append(f"{target} = {source} {groups}")
            case Cast(target, source, form):
                lines.append(f"{target} = {source} as {form}")
            case KernelStep():
                order = ",".join(step.schedule.orders[0])
                strategy = step.schedule.make.way
                lines.append(f"{kernel_text(step)} by {order} {strategy}")
    return lines


FUSED = (
    (
        "s = A[c,a,b] * v[c]",
        ["A_fused = A ((0,), (1, 2))", "s = sum(c, sum(ab, A_fused[c,ab]) * v[c]) by c,ab loops"],
    ),
    (
        "C[a,b] = A[a,b] + B[a,b]",
        ["A_fused = A ((0, 1),)", "B_fused = B ((0, 1),)"],
    ),
    ("C[b,a] = A[a,b] * B[a,b]", []),
    ("C[a] = A[a,b] * B[b,a]", []),
    ("C[a,b] = A[a,b] * v[b]", []),
    ("s = sum(a, v[a] * sum(b, A[a,b] * w[b]))", []),
)


@pytest.mark.parametrize("text, fused", FUSED)
def test_neighbours_in_all_arrays_are_one_index(text: str, fused: list[str]) -> None:
    found = outline(planned(text))
    assert found[: len(fused)] == fused
    assert sum("fused =" in line for line in found) == sum("fused =" in line for line in fused)


@pytest.mark.parametrize(
    "made",
    [
        planned("C[a,b] = A[a,b] * B[a,b]", gaps="B"),
        planned("C[a,b] = A[a,b] * B[a,b]", options=Options(schedule=Schedule())),
        planned("C[a,b] = A[a,b] * B[a,b]", static=(("a", 40),)),
        planned("C[a,b] = A[a,b] * B[a,b]", A="CSR"),
    ],
    ids=["a gap", "the user's schedule", "a size compiled in", "a sparse operand"],
)
def test_what_is_not_fused(made: Plan) -> None:
    assert not any(isinstance(step, Fuse) for step in made.steps)


def test_sums_run_as_the_largest_array_is_stored() -> None:
    (line,) = outline(planned("s = A[a,b,c] * v[b]", sizes=300, gaps="A"))
    assert line == "s = sum(b, a, sum(c, A[a,b,c]) * v[b]) by a,b,c loops"
    (line,) = outline(planned("y[c] = A[a,c,b] * v[c,b]", sizes=300, gaps="Av"))
    assert line == "y[c] = sum(b, a, A[a,c,b] * v[c,b]) by a,c,b loops"


def test_of_arrays_that_disagree_the_one_is_followed_that_leaves_the_other_nearest() -> None:
    (line,) = outline(planned("C[b,c,d] = A[b,a,c,d] * B[a,b,d,c]", gaps="AB"))
    assert line.endswith(" by b,a,c,d loops")
    for text in ("s = A[a,c,b] * B[b,a,c]", "s = A[b,a,c] * B[a,c,b]"):
        (line,) = outline(planned(text, gaps="AB"))
        assert line.endswith(" by a,c,b loops")


@pytest.mark.parametrize(
    ("text", "sizes", "order"),
    [
        ("y[d,c] = A[b,d,c] * v[d,b]", 200, "d b c"),  # rows of 1600 bytes
        ("y[d,c] = A[b,d,c] * v[d,b]", 100, "b d c"),  # rows too short
        ("y[c] = A[b,c] * v[b]", 200, "b c"),  # the result is one row
        ("y[d,e,c] = A[b,d,e,c] * v[d,b]", 40, "d b ec"),
        ("y[d,e,c] = A[b,d,e,c] * v[e,b]", 160, "d e b c"),
        ("y[c,d] = A[b,d,c] * v[d,b]", 200, "b d c"),  # the result has no such rows
    ],
)
def test_sums_are_right_outside_long_rows_of_the_result(text: str, sizes: int, order: str) -> None:
    (step,) = (s for s in planned(text, sizes).steps if isinstance(s, KernelStep))
    assert step.schedule.orders == (tuple(order.split()),)


def test_sums_over_the_outermost_dimensions_of_one_factor_come_first() -> None:
    first, last = outline(planned("y[a] = A[c,b,a] * v[a,b]", gaps="Av"))[-2:]
    assert first == "T[i,j] = sum(k, A[k,i,j]) by k,i,j loops"
    assert last.startswith("y[a] = sum(b, T[b,a] * v")
    assert len(outline(planned("y[a] = A[c,b,a] * v[a,b]", sizes=1000, gaps="Av"))) == 2  # v, y


def test_temporaries_have_longer_rows_where_their_operands_have() -> None:
    lines = outline(planned("s = A[d,c,a] * v[c]", sizes=100))
    assert lines[:2] == ["A_fused = A ((0,), (1, 2))", "T[i] = sum(j, A[j,i]) by j,i loops"]
    assert lines[2:] == ["s = sum(c, sum(a, T[c,a]) * v[c]) by c,a loops"]
    (view,) = (s for s in planned("s = A[d,c,a] * v[c]", sizes=100).steps if isinstance(s, Unfuse))
    assert view == Unfuse("T", "T_fused", (("A", 1), ("A", 2)))


def test_sums_outside_of_short_rows_come_first() -> None:
    first, last = outline(planned("s = A[a,c,b] * v[a,b]", sizes=24, gaps="Av"))
    assert first.startswith("T[i,j] = sum(k, A[i,k,j])")
    assert last.startswith("s = sum(a, b, T[a,b] * v[a,b])")
    assert len(outline(planned("s = A[a,c,b] * v[a,b]", sizes=40, gaps="Av"))) == 1
    first, _ = outline(planned("y[a,b] = A[d,c,a,b] * v[a,d]", sizes=24, gaps="Av"))
    assert first.startswith("T[i,j,k] = sum(l, A[i,l,j,k])")  # rows over b, for v has a


def test_long_rows_are_added_up_where_they_are() -> None:
    assert len(outline(planned("s = A[d,c,a] * v[c]", sizes=100, gaps="A"))) == 2
    (line,) = outline(planned("s = A[d,c,a] * v[c]", sizes=600))
    assert line == "s = sum(c, d, sum(a, A[d,c,a]) * v[c]) by d,c,a loops"


def test_small_factors_are_copied_into_the_order_of_the_loops() -> None:
    text = "C[b,c,a,d] = A[b,c,a] * v[d,a]"
    lines = outline(planned(text))
    assert lines[0] == "v_ad = v as dd:1,0"
    assert lines[-1] == "C[bc,a,d] = A_fused[bc,a] * v_ad[d,a] by bc,a,d loops"
    assert not any(" as " in line for line in outline(planned(text, sizes=8)))


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("C[b,a,c] = A[b,d,a] * B[c,d,b] * v[b]", "A[b,d,a] * T[c,d,b]"),
        ("C[c,a,b] = A[c,d] * B[b,d,a] * v[d,b]", "A[c,d] * T[b,d,a]"),
        ("C[i,j,k] = A[i,j] * v[j] * B[j,k] * w[k] * u[j]", "A[i,j] * T[j,k]"),
        ("y[i] = A[i,j] * B[j,k] * x[k]", "A[i,j] * "),  # the sum over k leaves fewer
        ("y[i] = A[i,j] * B[i,j,k] * x[k]", "A[i,j] * "),  # B has as many as there are products
    ],
)
def test_factors_are_multiplied_into_a_small_one_with_their_indices(text: str, last: str) -> None:
    made = planned(text, sizes=100)
    assert last in outline(made)[-1]
    assert ("all of their indices" in " ".join(made.notes)) == ("T" in last)


def test_small_factors_are_multiplied_by_each_other_first() -> None:
    text = "s = A[i,a,b,c] * v[b,c] * w[c,a] * u[i]"
    made = planned(text)
    assert outline(made)[0] == "T[i,j,k] = A[j,k] * B[k,i] by i,j,k staged"
    assert outline(made)[-1].endswith("A_fused[i,abc] * u[i] * T_fused[abc]) by i,abc loops")
    assert made.notes[0].startswith("T: small factors")
    for others in (
        planned(text, sizes=8),
        planned(text, options=Options(contract=False)),
        planned("s = A[i,a,b,c] * v[c] * w[b] * u[i]"),
    ):
        assert not any("small factors" in note for note in others.notes)


@pytest.mark.parametrize(
    "text, strategy",
    [
        ("C[k,i] = A[i,j,k]", "staged"),
        ("C[b,c,d] = v[d] * A[d,c,b]", "staged"),
        ("C[i,k] = A[i,j,k]", "loops"),
        ("C[k,i] = A[i,k]", "transpose"),
        ("C[i,j] = A[i,k] * B[k,j]", "tiles"),
        ("C[k,i] = A[i,k] + B[i,k]", "loops"),
    ],
)
def test_results_in_another_order_want_a_stage(text: str, strategy: str) -> None:
    assert outline(planned(text, sizes=100))[-1].endswith(f" {strategy}")


def test_tiny_temporaries_are_as_small_as_they_are() -> None:
    """Beside operands that are not tiny, in the comparison of one kernel with two."""
    known = problem("y[g,e,c,d] = A[c,e] * sum(f, B[d,c,g,f])", {})
    sizes = {"c": 8, "d": 2, "e": 60, "f": 192, "g": 10}
    made = make_plan(known.assignment, operands(known, sizes), Request(known.result))
    first, last = outline(made)
    assert first.startswith("T[i,j,k] = sum(l, A[i,j,k,l])")
    assert last.startswith("y[g,e,c,d] = A[c,e] * T[d,c,g]")
