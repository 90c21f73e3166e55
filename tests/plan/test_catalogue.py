"""The catalogue: one protocol, one file a rule, a page that tells users of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.cost.machine import machine_of
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.log import Decision, Log
from taco_py.planner.ir.program import Program
from taco_py.planner.lookahead import Lookahead
from taco_py.planner.make import Options, make_plan, program_of
from taco_py.planner.rules import catalogue
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
    Trials,
    result,
)
from taco_py.planner.rules.page import page, summary
from taco_py.planner.search import Search, apply_rules
from taco_py.report.explanation.summary import numbers
from tests.problems import operands, problem
from tests.test_architecture import inside, modules

ROOT = Path(__file__).parents[2]
RULES = tuple(dict.fromkeys(rule for rule, _ in catalogue.CATALOGUE))
FOLDER = ROOT / "taco_py" / "planner" / "rules"


def test_each_rule_has_a_file_of_its_name_and_each_name_once() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    files = {path.stem for path in FOLDER.rglob("*.py")}
    assert set(names) <= files


@pytest.mark.rotating(1)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_says_in_a_sentence_what_it_does_and_shows_it(rule: Rule) -> None:
    first = summary(rule)
    assert first.endswith(".") and len(first.split()) <= 18, first


def test_each_place_in_the_order_has_a_reason() -> None:
    assert not [rule.name for rule, why in catalogue.CATALOGUE if not why.strip()]


def test_each_trait_is_one_of_some_rules() -> None:
    names = {rule.name for rule in RULES}
    for trait in Trait:
        assert 0 < len(catalogue.NAMES[trait]) < len(names)
        assert catalogue.names_of(trait) == set(catalogue.NAMES[trait]) < names
    assert {rule.part_of for rule in RULES} - {""} < names


def test_a_rule_takes_no_part_where_its_own_name_or_that_of_its_rule_is_left_out(
    context: Context,
) -> None:
    rule = Rule("change_nothing", Phase.TIDY, change_nothing, result, part_of="change")
    assert rule.takes_part(context)
    for name in (rule.name, rule.part_of):
        goal = replace(context.goal, left_out=frozenset((name,)))
        assert not rule.takes_part(replace(context, goal=goal))


def test_a_rule_of_the_host_takes_no_part_on_a_gpu(context: Context) -> None:
    on_gpu = replace(context, goal=replace(context.goal, machine=machine_of("cuda")))
    assert on_gpu.goal.machine.is_gpu and not context.goal.machine.is_gpu
    for rule in RULES:
        assert rule.takes_part(context)
        assert rule.takes_part(on_gpu) is not rule.on_host


ASKING = ("taco_py.planner", "taco_py.arguments", "taco_py.calls", "taco_py.report")


def test_only_a_rule_itself_says_its_name() -> None:
    """Others ask for traits, or for the name of its `RULE`."""
    names = {rule.name for rule in RULES}
    wrong = [
        f"{module}:{node.lineno} {node.value}"
        for module, tree in modules().items()
        if any(inside(module, room) for room in ASKING)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in names
        if not inside(module, "taco_py.planner.rules")
    ]
    assert not wrong


def test_the_page_of_rules_is_that_of_the_catalogue(update_golden: bool) -> None:
    path = ROOT / "docs" / "rules.md"
    if update_golden:
        path.write_text(page())
    assert path.read_text() == page(), "python -m taco_py.planner.rules.page > docs/rules.md"


def test_rules_import_no_rule_but_parts_of_their_own() -> None:
    """`hoist_sum` has `hoist_around_sum`; few_cases adds up as sum_in_chunks does; copies and
    products that a small factor decides on share the order that loops walk."""
    allowed = {
        "hoist_sum": {"hoist_around_sum"},
        "few_cases": {"sum_in_chunks"},
        "multiply_small_first": {"copy_small_across"},
    }
    for rule in RULES:
        (path,) = FOLDER.rglob(f"{rule.name}.py")
        imported = re.findall(r"from taco_py\.planner\.rules\.\w+\.(\w+) import", path.read_text())
        assert set(imported) <= allowed.get(rule.name, set()), rule.name


# ---------------------------------------------------------------- the search


def change_nothing(program: Program, site: Site, context: Context) -> Outcome:
    """A rule that makes nothing, and says so."""
    return Candidate(4.0, 1.0, lambda: Rewrite(program, "nothing"))


@pytest.fixture
def context() -> Context:
    known = problem("y[i] = A[i,j] * x[j]", {"A": "CSR"})
    return Context(Request(known.result), Lookahead(), Search(), Log())


def programs() -> Iterator[Program]:
    known = problem("y[i] = A[i,j] * x[j]", {"A": "CSR"})
    program, _ = program_of(known.assignment, operands(known), Request(known.result), Options())
    yield program


@pytest.mark.parametrize("program", list(programs()))
def test_a_rule_of_ones_own_is_one_entry(program: Program, context: Context) -> None:
    rule = Rule("change_nothing", Phase.TIDY, change_nothing, result)
    assert apply_rules(((rule, "to see that it is tried"),), program, context) is program
    (entry,) = context.log.entries
    assert entry.rule == "change_nothing" and entry.accepted
    assert str(entry) == "change_nothing       y: 4 → 1, taken: nothing"


@pytest.mark.parametrize("program", list(programs()))
@pytest.mark.parametrize("gain", [None, *Gain])
def test_a_candidate_is_taken_where_it_pays_and_the_other_way_where_that_is_reversed(
    program: Program, context: Context, gain: Gain | None
) -> None:
    wider = program.with_facts({"z": program.facts["y"]})
    machine = context.goal.machine
    limits = {
        Gain.DETOUR: 100.0 / machine.copies.detour_gain,
        Gain.DENSE: 100.0 / machine.copies.dense_detour_gain,
    }
    limit = limits.get(gain, 100.0 * machine.copies.detour_gain) if gain is not None else 100.0
    for after, pays in ((limit * 0.99, True), (limit * 1.01, gain is None)):

        def apply(program: Program, site: Site, context: Context, after: float = after) -> Outcome:
            return Candidate(100.0, after, lambda: Rewrite(wider))

        rule = Rule("widen", Phase.TIDY, apply, result, gain=gain)
        for decided in (frozenset[Decision](), frozenset((("widen", "y", 0),))):
            goal = replace(context.goal, reversed=decided)
            log = Log()
            found = apply_rules(((rule, "to see"),), program, replace(context, goal=goal, log=log))
            assert (found is wider) == (pays != bool(decided))
            assert log.decisions["widen", "y", 0].accepted == (found is wider)


@pytest.mark.parametrize("program", list(programs()))
def test_a_rule_may_try_several_rewrites_each_of_what_the_last_one_left(
    program: Program, context: Context
) -> None:
    def apply(program: Program, site: Site, context: Context) -> Trials:
        for name, after in (("a", 1.0), ("b", 9.0), ("c", 1.0)):
            changed = program.with_facts({name: program.facts["y"]})
            program = yield Candidate(
                4.0,
                after,
                lambda changed=changed, name=name: Rewrite(changed, name),  # type: ignore[misc]
            )
        yield Refusal("no more names")

    rule = Rule("name_more", Phase.TIDY, apply, result, gain=Gain.DETOUR)
    found = apply_rules(((rule, "to see"),), program, context)
    assert {*found.facts} - {*program.facts} == {"a", "c"}
    assert [entry.accepted for entry in context.log.entries] == [True, False, True, False]


def test_the_log_has_what_was_taken_and_what_was_refused() -> None:
    known = problem("y[i] = A[i,j] * B[j,k] * x[k]", {"A": "CSR", "B": "CSR"})
    plan = make_plan(known.assignment, operands(known), Request(known.result))
    assert [entry.target for entry in plan.log.of("contract")] == ["y"]
    refused = [entry for entry in plan.log.entries if not entry.accepted]
    assert all(entry.reason or entry.before is not None for entry in refused)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("text", "rule", "changes"),
    [
        ("y[i] = A[i,j] * B[j,k] * x[k]", "contract", Numbers.ROUNDS | Numbers.SPECIALS),
        ("y[i] = A[i,j] * (sum(k, B[j,k] * x[k]) - z[j])", "hoist_sum", Numbers.SPECIALS),
    ],
)
def test_explain_names_each_change_of_a_rule_that_was_taken(
    text: str, rule: str, changes: Numbers
) -> None:
    known = problem(text, {"A": "CSR", "B": "CSR"})
    said = numbers(make_plan(known.assignment, operands(known), Request(known.result)))
    for change in Numbers:
        named = re.search(rf"{change.words} \(([^)]*)\)", said)
        assert (change in changes) == (named is not None and rule in named[1]), said


# ---------------------------------------------------------------- forbid=


def test_a_forbidden_rule_takes_no_part() -> None:
    rng = np.random.default_rng(0)
    a, b = (sp.random_array((90, 90), density=0.1, format="csr", rng=rng) for _ in "AB")
    x = rng.random(90)
    text = "y[i] = A[i,j] * B[j,k] * x[k]"
    free = tp.explain(text, A=a, B=b, x=x, frontier_budget=0)
    kept = tp.explain(text, A=a, B=b, x=x, frontier_budget=0, forbid=("contract",))
    assert free.count("kernel    ") == 2
    assert "in pairs" not in kept
    expected = a @ (b @ x)
    np.testing.assert_allclose(tp.evaluate(text, A=a, B=b, x=x, forbid="contract"), expected)
    np.testing.assert_allclose(tp.einsum("ij,jk,k->i", a, b, x, forbid=["contract"]), expected)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("multiply",), "multiply_out"),
        (("few_cases",), "what no kernel could compute otherwise"),
        ((3,), "forbid="),
    ],
)
def test_bad_names_of_rules_are_refused(names: tuple[str, ...], says: str) -> None:
    with pytest.raises(tp.ScheduleError) as error:
        tp.evaluate("y[i] = x[i]", x=np.ones(3), forbid=names)
    assert says in str(error.value)
