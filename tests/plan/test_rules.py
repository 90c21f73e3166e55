"""Each rule does what its docstring shows: before → after, on a program of its golden file.

`tests/golden/rules/<rule>.txt` is a program, an arrow, and the program after the rule. Assignments
that the docstring shows stand in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from taco_py.compiler.ways.ways import way_of
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.notation.nodes import Assignment, Expr
from taco_py.language.notation.parser import parse_expression
from taco_py.language.notation.rewrites.reduce import insert_reductions
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request, real_statistics
from taco_py.planner.ir.parser import parse_program, parse_typed
from taco_py.planner.ir.printer import program_text
from taco_py.planner.ir.program import Program
from taco_py.planner.ir.verify import verify
from taco_py.planner.lookahead import Lookahead
from taco_py.planner.rules.base import Rule
from taco_py.planner.rules.page import docstring
from taco_py.planner.search import Search, apply_rules
from tests.plan.test_catalogue import RULES

FOLDER = Path(__file__).parents[1] / "golden" / "rules"
ARROW = "\n\n→\n\n"


def pair(rule: Rule) -> tuple[str, str]:
    """The texts of the program before the rule and after it."""
    before, _, after = (FOLDER / f"{rule.name}.txt").read_text().partition(ARROW)
    return before, after.rstrip("\n")


def program_of(text: str) -> Program:
    """The program of a text, with the sizes of its indices."""
    program = parse_program(text)
    sizes = dict(program.sizes)
    for define in program.defines:
        sizes.update(real_statistics(define.assignment, program.facts).sizes)
    return replace(program, sizes=sizes)


def after(rule: Rule, before: Program) -> Program:
    """The program after a rule, at all of its sites."""
    goal = Request(before.facts[before.results[-1]].type, sized=True, any_order=True)
    if any(way_of(kernel.schedule.make).on_gpu for kernel in before.kernels):
        goal = goal.on("cuda")
    context = Context(goal, Lookahead(), Search())
    return apply_rules(((rule, "to see what it does"),), before, context)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_rewrites_the_program_of_its_golden_file(rule: Rule, update_golden: bool) -> None:
    before, expected = pair(rule)
    whole = program_of(before)
    verify(whole)
    found = after(rule, whole)
    assert found is not whole, "the rule leaves this program as it is"
    verify(found)
    text = program_text(found)
    if update_golden:
        (FOLDER / f"{rule.name}.txt").write_text(before + ARROW + text + "\n")
        return
    assert text == expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_docstring_of_a_rule_shows_this_rewrite(rule: Rule) -> None:
    shown = list(rewrites(docstring(rule)))
    assert shown, "no before → after in the docstring"
    programs = [parse_program(text) for text in pair(rule)]
    assert any(before and all(map(has, programs, (before, after))) for before, after in shown)
    for part in docstring(rule).split("→"):
        for schedule in re.findall(r"    by (\w+\(.*\))", part):
            assert any(schedule == str(each.schedule) for p in programs for each in p.kernels)


# ---------------------------------------------------------------- docstrings

Shown = Assignment | Expr


def rewrites(text: str) -> Iterator[tuple[list[Shown], list[Shown]]]:
    """What each indented part of a docstring shows before its arrow and after it."""
    for part in re.split(r"\n\s*\n", text):
        if part.startswith("    ") and "→" in part:
            before, _, rest = part.partition("→")
            yield list(statements(before)), list(statements(rest))


def statements(text: str) -> Iterator[Shown]:
    """The assignments and expressions of a text, without the words behind them."""
    for line in re.split(r"[;\n]", text):
        found = statement(re.split(r"\s{3,}", line.strip())[0])
        if found is not None:
            yield found


def statement(text: str) -> Shown | None:
    """The assignment or the expression of a text; None where it is neither."""
    try:
        if "=" in text:
            return insert_reductions(parse_typed(text))
        return parse_expression(text) if "[" in text else None
    except NotationError:
        return None


def has(program: Program, shown: list[Shown]) -> bool:
    """Whether a program has the assignments, or assignments to the expressions."""
    assignments = [each.assignment for each in program.defines]
    assignments += [each.problem.assignment for each in program.kernels]
    values = [each.value for each in assignments]
    return all(each in assignments or each in values for each in shown)
