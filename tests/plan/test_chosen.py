"""What explain() tells as chosen is what runs: over the corpus, in five storages."""

from __future__ import annotations

import pytest

from taco_py.arguments.options import CallOptions
from taco_py.calls.call import prepare
from taco_py.calls.statements.read_text import parsed
from taco_py.compiler.concrete.nodes import Assign, Forall, Sequence, Statement, Where
from taco_py.language.notation.checks import all_indices
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.plan import Plan
from taco_py.report.explanation.standing import chosen_nests
from tests.corpus.expressions import Case
from tests.dump import STORAGES, cases, nominal, operands

Orders = tuple[tuple[str, ...], ...]


def planned(case: Case, storages: tuple[str, str]) -> Plan:
    with nominal():
        assignment = parsed(case.text)
        return prepare.prepare(assignment, operands(case, storages), CallOptions()).plan


def kernel_of(plan: Plan, target: str) -> KernelStep | None:
    """The kernel that makes a tensor; None where an equal one has made it."""
    names = (target, f"{target}_raw")
    return next((k for k in plan.kernels if k.target in names), None)


def in_names_of(plan: Plan, kernel: KernelStep, target: str) -> Orders:
    """The loops of a kernel in the indices of the text: temporaries have kernels in other names."""
    assert plan.selection is not None
    own = all_indices(plan.selection.program.define(target).assignment)
    names = dict(zip(all_indices(kernel.problem.assignment), own, strict=True))
    return tuple(tuple(names[index] for index in order) for order in kernel.schedule.orders)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("storages", STORAGES, ids=",".join)
def test_the_loops_that_are_told_are_those_that_run(storages: tuple[str, str]) -> None:
    compared = 0
    for case in cases():
        plan = planned(case, storages)
        assert plan.selection is not None
        for target, loops in plan.selection.loops.items():
            kernel = kernel_of(plan, target)
            if loops is None or kernel is None or plan.selection.fused:
                continue
            compared += 1
            assert in_names_of(plan, kernel, target) == loops, case.text
    assert compared > len(cases()) / 2


@pytest.mark.parametrize("storages", STORAGES, ids=",".join)
def test_the_statement_that_is_compared_has_the_loops_of_each_kernel(
    storages: tuple[str, str],
) -> None:
    for case in cases():
        plan = planned(case, storages)
        assert plan.selection is not None
        nests = chosen_nests(plan.selection, Request(plan.result))
        if nests is None:
            assert None in plan.selection.loops.values(), case.text
            continue
        ran = [order for orders in plan.selection.loops.values() for order in orders or ()]
        for order, _ in nested(nests.statement):
            assert any(is_part(order, whole) for whole in ran), case.text


def is_part(order: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether loops are some of others, in the same order."""
    rest = iter(whole)
    return all(index in rest for index in order)


def nested(
    statement: Statement, around: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], Assign]]:
    """Each assignment of a statement with the loops around it."""
    match statement:
        case Forall(index, body):
            return nested(body, (*around, index))
        case Where(_, consumer, producer):
            return [*nested(producer, around), *nested(consumer, around)]
        case Sequence(parts):
            return [each for part in parts for each in nested(part, around)]
        case Assign():
            return [(around, statement)]
    raise AssertionError(statement)
