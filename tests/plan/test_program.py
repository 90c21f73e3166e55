"""Programs: legal after every rule, printed, and never changed by a rule that rewrites them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from taco_py.call import prepare
from taco_py.diagnostics.errors import InternalError
from taco_py.notation.nodes import Access, Assignment
from taco_py.plan import search
from taco_py.plan.ir.goal import Request
from taco_py.plan.ir.printer import program_text
from taco_py.plan.ir.program import Define, Program
from taco_py.plan.ir.verify import verify
from taco_py.plan.make import Options, program_of
from taco_py.plan.rules.base import Rule, Site
from taco_py.values.settings import Settings
from tests.dump import STORAGES, cases, nominal, operands
from tests.problems import operands as given
from tests.problems import problem


@pytest.mark.parametrize("storages", STORAGES, ids=",".join)
def test_every_rule_leaves_a_legal_program_and_the_old_one_as_it_was(
    storages: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried_at, count = search.tried_at, 0

    def checked(rule: Rule, program: Program, site: Site, context: Any) -> Program:
        nonlocal count
        steps, names = program.steps, tuple(program.facts)
        after = tried_at(rule, program, site, context)
        assert program.steps is steps
        assert tuple(program.facts) == names
        if after is not program:
            count += 1
            verify(after)
            assert program_text(after)
        return after

    monkeypatch.setattr(search, "tried_at", checked)
    for case in cases():
        with nominal():
            assignment = prepare.parsed(case.text)
            prepare.prepare(assignment, operands(case, storages), Settings())
    assert count > 20


def program(text: str) -> Program:
    known = problem(text, {"A": "CSR", "B": "CSR"})
    found, _ = program_of(known.assignment, given(known), Request(known.result), Options())
    return found


def test_a_program_prints_what_is_given_and_what_is_computed() -> None:
    lines = program_text(program("y[i] = A[i,j] * B[j,k] * x[k]")).splitlines()
    assert lines[0] == "A    ds/float64/int32 of 1000 by 1000, 5000 entries"
    assert lines[-2].startswith("T[j] = sum(k, B[j,k] * x[k])    → d/float64    # in pairs")
    assert lines[-1] == "y[i] = sum(j, A[i,j] * T[j])    → d/float64"


def test_illegal_programs_are_refused() -> None:
    whole = program("y[i] = A[i,j] * B[j,k] * x[k]")
    first, last = whole.steps
    short = Define(Assignment(Access("y", ("i",)), Access("A", ("i",))))
    for steps in ((last, first), (first, first, last), (first,), (first, short)):
        with pytest.raises(InternalError):
            verify(replace(whole, steps=steps))
