"""Programs: legal after every rule, printed, and never changed by a rule that rewrites them."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import taco_py as tp
from taco_py.arguments.options import CallOptions
from taco_py.calls.call import prepare
from taco_py.calls.statements.read_text import parsed
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.nodes import Access, Assignment, Call, Literal
from taco_py.language.notation.operators import ADD, NONZERO, SUB
from taco_py.language.problem import TensorType
from taco_py.planner import search
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import (
    Cast,
    Fuse,
    Gather,
    Locate,
    Operand,
    Reformat,
    Squeeze,
    TakeDiagonal,
    TakeSide,
    TakeSize,
    TakeValues,
    Transformation,
    Unfuse,
)
from taco_py.planner.ir.parser import parse_facts, parse_program, parse_type
from taco_py.planner.ir.printer import facts_text, program_text, type_text
from taco_py.planner.ir.program import Define, Program
from taco_py.planner.ir.verify import verify
from taco_py.planner.make import Options, program_of
from taco_py.planner.rules.base import Rule, Site
from tests.dump import STORAGES, cases, nominal, operands
from tests.problems import operands as facts_of
from tests.problems import problem


@pytest.mark.rotating(2)
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
            assert parse_program(program_text(after)) == after
        return after

    monkeypatch.setattr(search, "tried_at", checked)
    KERNELS.memo.clear()  # plans of other tests
    for case in cases():
        with nominal():
            assignment = parsed(case.text)
            plan = prepare.prepare(assignment, operands(case, storages), CallOptions()).plan
        verify(plan.program)
        assert parse_program(program_text(plan.program)) == plan.program
    assert count > 20


def program(text: str) -> Program:
    known = problem(text, {"A": "CSR", "B": "CSR"})
    found, _ = program_of(known.assignment, facts_of(known), Request(known.result), Options())
    return found


def test_a_program_prints_what_is_given_and_what_is_computed() -> None:
    lines = program_text(program("y[i] = A[i,j] * B[j,k] * x[k]")).splitlines()
    assert lines[0] == "A: ds/float64/int32 of 1000 by 1000, 5000 entries"
    assert lines[3].startswith("T[j] = sum(k, B[j,k] * x[k])    → d/float64 of 1000, 993.")
    assert "    # in pairs" in lines[3]
    assert lines[4] == "y[i] = sum(j, A[i,j] * T[j])    → d/float64 of 1000, 1000 entries"
    assert lines[-1] == "return y"


def test_illegal_programs_are_refused() -> None:
    whole = program("y[i] = A[i,j] * B[j,k] * x[k]")
    first, last = whole.steps
    short = Define(Assignment(Access("y", ("i",)), Access("A", ("i",))))
    for steps in ((last, first), (first, first, last), (first,), (first, short)):
        with pytest.raises(InternalError):
            verify(replace(whole, steps=steps))


# ---------------------------------------------------------------- programs as text

LEVELS = st.tuples(st.sampled_from("dsu"), st.text("dsucq", max_size=3)).map("".join)


@st.composite
def types(draw: st.DrawFn) -> TensorType:
    letters = draw(LEVELS)
    try:
        form = tp.Format.parse(letters)
    except tp.FormatError:
        assume(False)
    order = draw(st.permutations(range(form.order)))
    loose = draw(st.lists(st.booleans(), min_size=form.order, max_size=form.order))
    levels = tuple(
        replace(level, ordered=level.full or not any_order)
        for level, any_order in zip(form.levels, loose, strict=True)
    )
    return TensorType(
        tp.Format(levels, tuple(order)),
        draw(st.sampled_from(("float64", "complex64", "int8", "bool"))),
        draw(st.sampled_from(("int32", "int64"))),
        draw(st.booleans()),
        draw(st.sampled_from(("", "int16"))),
        draw(st.sampled_from(("", "-0.0", "inf", "(nan+1j)"))),
    )


@given(types())
def test_types_read_back(type: TensorType) -> None:
    assert parse_type(type_text(type)) == type


@given(types(), st.floats(0, allow_nan=False), st.data())
def test_facts_read_back(type: TensorType, entries: float, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.integers(0, 2**40)) for _ in range(type.format.order))
    joined = tuple(data.draw(st.lists(st.booleans(), max_size=3)))
    facts = Operand(type, shape, entries, contiguous=joined)
    assert parse_facts(facts_text(facts)) == facts


MOVES = (
    Reformat("B", "A", tp.CSC, "loops walk it by columns,    → so 'quoted'", "int64"),
    Gather("B", "A", "P", (0, 1), tp.CSR, "int32"),
    TakeDiagonal("B", "A", ("i", "i")),
    Squeeze("B", "A", (0, 2)),
    Locate("B", "A", ("i", "j"), "it is asked"),
    TakeValues("B", "A", ("i",), True),
    TakeSize("B", "A", 1, "float32"),
    TakeSide("B", "A", 1),
    Fuse("B", "A", ((0, 1), (2,))),
    Unfuse("B", "A", (("x", 0), ("y", 1))),
    Cast("B", "A", tp.dense(2), "float32", "tiles read one type"),
)


def test_every_kind_of_step_reads_back() -> None:
    assert {type(move) for move in MOVES} == set(get_args(Transformation))
    facts = Operand(TensorType(tp.CSR, "float64"), (3, 4), 5.0)
    for move in MOVES:
        given = dict.fromkeys(("A", "P", "x", "y", "B"), facts)
        whole = Program((move,), given, ("B",), {"i": 3.0, "j": inf}, (("k", 2),))
        text = program_text(whole)
        assert parse_program(text) == whole, text
        assert program_text(parse_program(text)) == text


def test_numbers_notes_and_several_results_read_back() -> None:
    y, z = (Access(name, ()) for name in "yz")
    value = Call(SUB, (Literal(-3, dtype="int8"), Call(NONZERO, (z,))))
    steps = (
        Define(Assignment(z, Literal(0.5), ADD), "two lines\nand a \\ and    → and    # "),
        Define(Assignment(y, value)),
    )
    facts = Operand(TensorType(tp.dense(0), "float64", stored="int8"), (), 1.0)
    whole = Program(steps, {"y": facts, "z": facts}, ("z", "y"), {})
    verify(whole)
    assert parse_program(program_text(whole)) == whole
    with pytest.raises(ValueError, match="unpack"):
        whole.result  # noqa: B018


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("y[i] = x[i]    → d/float64 of 3, 3 entries", "return"),
        ("y[i] = x[i]    → d/float64\nreturn y", "line 1"),
        ("x: d/floot of 3, 3 entries\nreturn x", "line 1"),
        ("y = squeeze(3)    → d/float64 of 3, 3 entries\nreturn y", "line 1"),
        ("y[i] = x[i    → d/float64 of 3, 3 entries\nreturn y", "']'"),
    ],
)
def test_what_is_no_program_is_refused(text: str, says: str) -> None:
    with pytest.raises(tp.NotationError) as error:
        parse_program(text)
    assert says in str(error.value)
