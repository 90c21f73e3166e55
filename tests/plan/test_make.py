"""Plans: the steps around kernels, which say why they are there."""

from __future__ import annotations

import pytest

from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep, Reformat, Squeeze, TakeDiagonal
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options, make_plan
from tests.problems import kernel_text, operands, plan, problem

PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
CSRS = {"A": "CSR", "B": "CSR"}


def outline(made: Plan) -> list[str]:
    """A line for each step."""
    lines = []
    for step in made.steps:
        match step:
            case Reformat(target, source, form):
                lines.append(f"{target} = {source} as {form}")
            case TakeDiagonal(target, source, labels):
                lines.append(f"{target} = {source}[{','.join(labels)}]")
            case Squeeze(target, source, axes):
                lines.append(f"{target} = {source} without {axes}")
            case KernelStep():
                order = " ".join("".join(o) for o in step.schedule.orders)
                lines.append(f"{kernel_text(step)} by {order}".rstrip())
    return lines


PLANS: tuple[tuple[str, dict[str, str], str | None, list[str]], ...] = (
    (PRODUCT, CSRS, None, ["C[i,j] = sum(k, A[i,k] * B[k,j]) by ikj"]),
    (
        PRODUCT,
        {"A": "CSR", "B": "CSC"},
        "ds",
        ["B_kj = B as ds", "C[i,j] = sum(k, A[i,k] * B_kj[k,j]) by ikj"],
    ),
    # rows that would have to be searched for are looked up in a copy that has them all
    (
        PRODUCT,
        {"A": "DCSR", "B": "DCSR"},
        None,
        ["B_rows = B as ds", "C[i,j] = sum(k, A[i,k] * B_rows[k,j]) by ikj"],
    ),
    ("y[i] = A[i,j] * x[j]", {"A": "DCSR"}, None, ["y[i] = sum(j, A[i,j] * x[j]) by ij"]),
    # a format that cannot be appended to is converted to afterwards
    (
        "C[i,j] = A[i,j] + B[i,j]",
        CSRS,
        "COO",
        ["C[i,j] = A[i,j] + B[i,j] by ij ij", "C_1 = C as uq"],
    ),
    # the same list of coordinates is copied as it is
    ("C[i,j] = 2 * A[i,j]", {"A": "COO"}, "COO", ["C[i,j] = 2 * A[i,j] by ij"]),
    # one copy serves two uses
    (
        "C[i,j] = A[j,i] * A[j,i] * B[i,j]",
        CSRS,
        "ds",
        ["A_ij = A as ds:1,0", "C[i,j] = A_ij[j,i] * A_ij[j,i] * B[i,j] by ij"],
    ),
    ("s = A[i,i]", {"A": "CSR"}, None, ["A_diagonal = A[i,i]", "s = sum(i, A_diagonal[i]) by i"]),
    ("s = a * b", {}, None, ["s = a * b by"]),
)


@pytest.mark.parametrize(("text", "formats", "result", "expected"), PLANS)
def test_steps(text: str, formats: dict[str, str], result: str | None, expected: list[str]) -> None:
    assert outline(plan(problem(text, formats, result))) == expected


def test_copies_say_what_asks_for_them() -> None:
    copy, _ = plan(problem(PRODUCT, {"A": "CSR", "B": "CSC"}, "ds")).steps
    assert isinstance(copy, Reformat)
    assert copy.reason == (
        "loops run in the order i,k,j: CSC -> CSR: transposed by counting sort, O(rows + nnz)"
    )
    *_, last = plan(problem("C[i,j] = A[i,j] + B[i,j]", CSRS, "COO")).steps
    assert isinstance(last, Reformat)
    assert last.reason.startswith("the result is wanted as uq: ")


def test_axes_of_size_one_are_taken_off_first() -> None:
    whole = problem("y[i] = A[i] * x[i]", {"A": "COO"}, "d")
    known = operands(problem("y[i,j] = A[i,j] * x[i]", {"A": "COO"}, "dd"), {"j": 1})
    made = make_plan(
        whole.assignment, known, Request(whole.result), Options(), unit_modes=(("A", (1,)),)
    )
    assert outline(made)[0] == "A_squeezed = A without (1,)"
    assert "A_squeezed[i] * x[i]" in outline(made)[-1]


def test_a_schedule_decides_the_orders() -> None:
    schedule = Schedule.parse("reorder(j,i,k)")
    made = plan(problem(PRODUCT, CSRS, "dd"), options=Options(schedule=schedule))
    assert outline(made) == ["B_jk = B as ds:1,0", "C[i,j] = sum(k, A[i,k] * B_jk[k,j]) by jik"]
    with pytest.raises(ScheduleError):
        plan(problem(PRODUCT, CSRS), options=Options(schedule=Schedule.parse("reorder(i,l)")))


def test_every_size_has_a_source() -> None:
    for kernel in plan(problem("y[i] = A[i,j] * B[j,k] * x[k]", CSRS)).kernels:
        types = dict(kernel.problem.operands)
        assert {index for index, _, _ in kernel.sizes} == {
            i for order in kernel.schedule.orders for i in order
        }
        assert all(mode < types[name].format.order for _, name, mode in kernel.sizes)


def test_a_plan_is_a_value() -> None:
    whole = problem(PRODUCT, CSRS)
    assert plan(whole) == plan(whole)
    assert hash(plan(whole)) == hash(plan(whole))


def test_names_of_temporaries_are_no_operands_names() -> None:
    """T is computed as a coordinate list first, whose name an operand may have already."""
    text = "s = F[i,j,k] * T_raw[i] * y[j] * z[k]"
    formats = {"F": "sss", "T_raw": "COO", "z": "s"}
    whole = problem(text, formats)
    made = make_plan(
        whole.assignment, operands(whole), Request(whole.result, look_up=False), Options()
    )
    targets = [step.target for step in made.steps]
    assert len({*targets, *formats, "y"}) == len(targets) + len(formats) + 1
    assert "T_raw_1" in targets and "T" in targets


def test_rows_are_not_looked_up_where_nearly_all_are_empty() -> None:
    whole = problem(PRODUCT, {"A": "DCSR", "B": "DCSR"})
    made = plan(whole, dict.fromkeys("ijk", 10**8), {"A": 50.0, "B": 50.0})
    assert not any("_rows" in step.target for step in made.steps)
