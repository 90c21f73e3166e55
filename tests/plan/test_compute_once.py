"""What is compared with itself is computed once, by every plan; other plans are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.arguments.options import CallOptions
from taco_py.calls.call import prepare
from taco_py.calls.statements.read_text import parsed
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.compared_values import compared
from taco_py.language.notation.computed_alike import is_computed_alike
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.rewrites.reduce import insert_reductions
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.printer import program_text
from taco_py.planner.ir.program import Define
from taco_py.planner.ir.verify import verify
from taco_py.planner.lookahead import Lookahead
from taco_py.planner.rules.base import Phase, Rewrite, Rule, program_site
from taco_py.planner.search import Search, apply_rules

ROWS, COLUMNS, DEPTH = 40, 300, 16


def arrays(dtype: str = "float64") -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "U": rng.normal(size=(ROWS, DEPTH)).astype(dtype),
        "Y": rng.normal(size=(COLUMNS, DEPTH)).astype(dtype),
        "b": rng.normal(size=COLUMNS).astype(dtype),
        "A": sp.random_array((ROWS, COLUMNS), density=0.1, rng=rng, dtype=dtype).tocsr(),
    }


def used(text: str, given: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in given.items() if f"{name}[" in text}


def plan_of(text: str, given: dict[str, Any]) -> Plan:
    """The plan of a text, with positions as an operand p and their number as n."""
    found = re.fullmatch(r"(.*) = arg(max|min)\(i, (.*)\)", text)
    if found:
        target, extremum, value = found.groups()
        other = re.sub(r"\b([ik])\b", r"\1_2", value)
        text = f"{target} = min(i, where({value} == {extremum}(i_2, {other}), p[i], n))"
    positions = {"p": np.arange(COLUMNS), "n": np.int64(COLUMNS)}
    operands = used(text, given) | (positions if found else {})
    return prepare.prepare(parsed(text), operands, CallOptions()).plan


# ---------------------------------------------------------------- which expressions

REAL = {name: np.dtype("float64") for name in "abcmn"}


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("a[i] * b[i]", True), ("a[i] - b[j]", True), ("max(k, a[i] * b[k])", True),
        ("where(a[i] > 0, a[i], b[i])", True), ("sqrt(abs(a[i]))", True), ("-a[i] + b[i]", True),
        ("a[i] * b[i] + c[i]", False), ("a[i] * b[i] * c[i]", False), ("a[i] / b[i]", False),
        ("sum(k, a[i] * b[k])", False), ("exp(a[i])", False), ("max(k, exp(a[k]) * b[i])", False),
    ],
)  # fmt: skip
def test_what_is_rounded_at_most_once_is_computed_alike(text: str, alike: bool) -> None:
    value = insert_reductions(parse_assignment(f"y[i,j] = {text}")).value
    assert is_computed_alike(value, REAL) is alike
    whole_numbers = {name: np.dtype("int64") for name in "abc"}
    if not any(word in text for word in ("exp", "sqrt", "/")):
        assert is_computed_alike(value, whole_numbers)


def test_complex_products_are_rounded_several_times() -> None:
    value = parse_assignment("y[i] = a[i] * b[i]").value
    assert not is_computed_alike(value, {name: np.dtype("complex128") for name in "ab"})
    assert not is_computed_alike(value, conjugates=True)


@pytest.mark.parametrize(
    ("texts", "forms", "tensors"),
    [
        (("y[i] = max(j, a[i] * b[j] + c[j]) == a[i] * b[i] + c[i]",), 0, ()),
        (("y[i,k] = max(j, a[i] * b[j] + c[j]) == a[i] * b[k] + c[k]",), 1, ()),
        (("m[i] = max(j, a[i] * b[j] + c[j])", "y[i,k] = a[i] * b[k] + c[k] >= m[i]"), 1, ()),
        (("n[i,j] = a[i] * b[j] + c[j]", "y[i,k] = max(j, n[i,j]) == n[i,k]"), 0, ("n",)),
        (("n[i,j] = a[i] * b[j] + c[j]", "m[i] = max(j, n[i,j])", "y[i,k] = n[i,k] == m[i]"),
         0, ("n",)),
        (("y[i,k] = exp(a[i]) < exp(a[k])",), 1, ()),
        (("y[i] = exp(a[i]) != exp(a[i])",), 0, ()),
        (("y[i] = exp(a[i]) > 0.5",), 0, ()),
        (("y[i,k] = max(j, a[i] * b[j]) == a[i] * b[k]",), 0, ()),
    ],
)  # fmt: skip
def test_comparisons_of_an_expression_with_itself_are_seen(
    texts: tuple[str, ...], forms: int, tensors: tuple[str, ...]
) -> None:
    found = compared([insert_reductions(parse_assignment(text)) for text in texts], REAL)
    assert (len(found.forms), found.tensors) == (forms, frozenset(tensors))


# ---------------------------------------------------------------- plans

PLACES = {
    "a[u] = argmax(i, U[u,k] * Y[i,k])": lambda g: (g["U"] @ g["Y"].T).argmax(1),
    "a[u] = argmin(i, sum(k, (U[u,k] - Y[i,k])**2))":
        lambda g: ((g["U"][:, None] - g["Y"]) ** 2).sum(2).argmin(1),
    "a[u] = argmax(i, A[u,i] * U[u,k] * Y[i,k])":
        lambda g: (g["A"].toarray() * (g["U"] @ g["Y"].T)).argmax(1),
    "a[u] = argmin(i, A[u,i] * exp(U[u,k] * Y[i,k]) - b[i] * 0.1)":
        lambda g: (g["A"].toarray() * np.exp(g["U"] @ g["Y"].T) - g["b"] * 0.1).argmin(1),
    "a[u] = argmax(i, exp(A[u,i] * b[i] * 3.0))":
        lambda g: np.exp(g["A"].toarray() * g["b"] * 3).argmax(1),
    "c[u] = sum(i, where(U[u,k] * Y[i,k] + b[i] == max(i2, U[u,k2] * Y[i2,k2] + b[i2]), 1, 0))":
        lambda g: np.ones(ROWS),
}  # fmt: skip
"""Texts that look for a computed value, and what NumPy finds."""


@pytest.mark.parametrize("text", PLACES)
def test_places_are_those_of_any_number_of_threads(text: str) -> None:
    given = arrays()
    for threads in (1, 3):
        found = np.asarray(tp.evaluate(text, used(text, given), threads=threads))
        np.testing.assert_array_equal(found, PLACES[text](given))


RULES = ("split_dense_product", "fuse_temporary", "choose_way")
"""Rules that may be left out, of those that the plan of a product takes."""


@pytest.mark.parametrize("rule", RULES)
def test_plans_without_a_rule_find_the_same_places(rule: str) -> None:
    text, given = "a[u] = argmax(i, U[u,k] * Y[i,k])", arrays("float32")
    found = np.asarray(tp.evaluate(text, used(text, given), forbid=(rule,)))
    np.testing.assert_array_equal(found, (given["U"] @ given["Y"].T).argmax(1))


@pytest.mark.parametrize("text", PLACES)
def test_plans_say_what_is_computed_once_and_read_back(text: str) -> None:
    program = plan_of(text, arrays()).program
    assert program.unique
    verify(program)
    again = parse_program(program_text(program))
    assert again == program and again.unique == program.unique


def test_what_is_below_a_sparse_factor_is_stored_where_that_stores_something() -> None:
    program = plan_of("a[u] = argmax(i, A[u,i] * U[u,k] * Y[i,k])", arrays()).program
    assert [str(program.facts[name].type.format) for name in program.unique] == ["ds"]


def test_a_plan_that_computes_again_what_it_compares_is_refused() -> None:
    own = plan_of("a[u] = argmax(i, U[u,k] * Y[i,k])", arrays()).program
    (name,) = own.unique
    with pytest.raises(InternalError, match="once, found none"):
        verify(replace(own, unique=frozenset(("elsewhere",))))
    text = program_text(own)
    compared = rf"{name}\[(\w+),(\w+)\] =="
    again = re.sub(compared, r"sum(k, U[\1,k] * Y[\2,k]) ==", text)
    assert again != text
    again = again.replace(
        f"operands {name}: dd/float64", f"operands U: dd/float64, Y: dd/float64, {name}: dd/float64"
    )
    with pytest.raises(InternalError, match="computed again"):
        verify(parse_program(again))


def test_no_rule_leaves_out_the_step_of_what_is_computed_once() -> None:
    own = plan_of("a[u] = argmax(i, U[u,k] * Y[i,k])", arrays()).program
    (name,) = own.unique

    def apply(program: Any, site: Any, context: Any) -> Rewrite:
        return Rewrite(replace(program, steps=tuple(s for s in program.steps if s.target != name)))

    rule = Rule("wrong", Phase.TIDY, apply, program_site)
    context = Context(Request(own.result_type), Lookahead(), Search())
    assert apply_rules(((rule, ""),), own, context) is own
    assert "compared with itself" in context.log.entries[-1].reason


def test_statements_of_the_user_compare_one_number() -> None:
    given = arrays()
    values = given["U"] @ given["Y"].T
    for text in (
        "m[u] = max(i, U[u,k] * Y[i,k]); p[u,i] = U[u,k] * Y[i,k] == m[u]",
        "e[u,i] = U[u,k] * Y[i,k]; m[u] = max(i, e[u,i]); p[u,i] = e[u,i] == m[u]",
        "e[u,i] = exp(U[u,k] * Y[i,k] + b[i]) * 0.5; m[u] = max(i, e[u,i]); "
        "p[u,i] = e[u,i] == m[u]",
    ):
        if "0.5" in text:
            values = values + given["b"]
        found = tp.evaluate(text, used(text, given), outputs="p")
        np.testing.assert_array_equal(found, values == values.max(1, keepdims=True))


def test_defines_of_a_program_are_marked_by_name() -> None:
    program = parse_program(
        "x: d/float64 of 9, 9 entries\n"
        "e[i] = exp(x[i]) * x[i]    → d/float64 of 9, 9 entries\n"
        "r[i,j] = e[i] < e[j]    → dd/bool of 9 by 9, 81 entries\nreturn r"
    )
    from taco_py.planner.rules.needed.compute_once import RULE

    context = Context(Request(program.facts["r"].type), Lookahead(), Search())
    found = apply_rules(((RULE, ""),), program, context)
    assert found.unique == {"e"}
    assert all(isinstance(step, Define) for step in found.steps)


def test_commands_on_loops_that_would_compare_a_value_computed_twice_are_refused() -> None:
    given = arrays()
    text = "c[u] = sum(i, where(U[u,k] * Y[i,k] == max(j, U[u,l] * Y[j,l]), 1, 0))"
    with pytest.raises(tp.ScheduleError, match="compared with itself"):
        tp.evaluate(text, used(text, given), schedule="split(u,a,b,8)")
