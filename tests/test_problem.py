"""The identity of a compilation: every difference counts, and nothing else does."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taco_py.compiler.schedule.commands import Make, Parallelize, Reorder, Serial
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.recipe import Recipe
from taco_py.language.diagnostics.errors import NumberOverflowError
from taco_py.language.formats import LETTERS, Format
from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.nodes import Access, Assignment, Call, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL, Operator
from taco_py.language.problem import Problem, TensorType
from tests.notation import strategies
from tests.problems import problem


def _format(letters: str) -> Format:
    return Format(tuple(LETTERS[letter] for letter in letters), tuple(range(len(letters))))


types = st.builds(
    TensorType,
    st.text("dsu", max_size=3).map(_format),
    st.sampled_from(("float64", "int8")),
    st.sampled_from(("int32", "int64")),
    st.booleans(),
    fill=st.sampled_from(("", "1", "nan")),
)
sizes = st.lists(st.tuples(strategies.names, st.integers(1, 9)), max_size=2).map(tuple)
commands = st.one_of(
    st.just(Serial()),
    st.builds(Parallelize, strategies.names),
    st.just(Reorder(("i", "j"))),
    st.builds(Make, st.just("tiles"), st.lists(st.integers(1, 9), max_size=1).map(tuple)),
)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    assignment = draw(strategies.assignments)
    operands = tuple((name, draw(types)) for name in operand_names(assignment))
    orders = draw(st.lists(st.lists(strategies.names, max_size=2).map(tuple), max_size=2))
    return Recipe(
        Problem(assignment, operands, draw(types), draw(sizes)),
        Schedule.of_orders(orders).then(Schedule(tuple(draw(st.lists(commands, max_size=2))))),
        draw(st.sampled_from(("evaluate", "compute"))),
    )


@given(recipes(), recipes())
def test_keys_are_equal_just_where_recipes_are(one: Recipe, other: Recipe) -> None:
    assert (one.key == other.key) == (one == other)
    assert one.key == replace(one).key


SCALE = problem("y[i] = 2 * A[i,j]", {"A": "CSR"})
ROWS = Schedule.of_orders([("i", "j")])
LIKE_ADD = Operator("saturated", "+", 2, "+", 1, identity=0)


def _value(literal: Literal, operator: Operator = MUL) -> Problem:
    product = Reduce(ADD, "j", Call(operator, (literal, Access("A", ("i", "j")))))
    return replace(SCALE, assignment=Assignment(Access("y", ("i",)), product))


# Each prints as SCALE does, or nearly, and is another problem.
SIMILAR = (
    _value(Literal(2, dtype="int8")),
    _value(Literal(2, dtype="float64")),
    _value(Literal(2.0)),
    _value(Literal(2), ADD),
    _value(Literal(2), LIKE_ADD),
    _value(Literal(True)),
    _value(Literal(0.0)),
    _value(Literal(-0.0)),
    replace(SCALE, static=(("i", 5),)),
    replace(SCALE, static=(("j", 5),)),
    problem("y[i] = 2 * A[j,i]", {"A": "CSR"}),
    problem("y[i] = 2 * A[i,j]", {"A": "ds:1,0"}),
    problem("y[i] = 2 * A[i,j]", {"A": "du"}),
    problem("y[i] = 2 * A[i,j]", {"A": "CSR"}, "s"),
    problem("y[i] = 2 * A[i,j]", {"A": "CSR"}, None, {"A": "float32"}),
    replace(SCALE, operands=(("A", replace(SCALE.operands[0][1], fill="-0.0")),)),
    replace(SCALE, operands=(("A", replace(SCALE.operands[0][1], fill="nan")),)),
)


def test_what_looks_alike_is_told_apart() -> None:
    keys = [Recipe(each, ROWS).key for each in (SCALE, *SIMILAR)]
    assert len(set(keys)) == len(keys)


def test_equal_problems_have_equal_keys_wherever_their_text_was() -> None:
    again = problem("  y[i]   = 2*A[i,j]", {"A": "CSR"})
    assert Recipe(again, ROWS).key == Recipe(SCALE, ROWS).key


def test_a_type_is_asked_for_by_name() -> None:
    assert SCALE.type_of("A").format == Format.parse("ds")
    assert SCALE.type_of("y") is SCALE.result
    with pytest.raises(Exception, match="no tensor 'B'"):
        SCALE.type_of("B")


def test_a_fill_value_is_printed_where_it_is_not_zero() -> None:
    of_rows = TensorType(Format.parse("ds"), "float64")
    assert str(of_rows) == "ds/float64/int32"
    assert str(replace(of_rows, fill="-inf")) == "ds/float64/int32/fill=-inf"
    assert replace(of_rows, fill="nan") == replace(of_rows, fill="nan")
    assert repr(replace(of_rows, fill="nan").fill_value) == "np.float64(nan)"
    assert of_rows.fill_value == 0


def test_a_fill_value_is_read_in_the_type_that_values_are_read_in() -> None:
    of_rows = TensorType(Format.parse("ds"), "int8", fill="3")
    wide = of_rows.read_as("float64")
    assert (wide.dtype, wide.stored, wide.fill) == ("float64", "int8", "3.0")
    with pytest.raises(NumberOverflowError, match="converted to int8, found inf"):
        replace(wide, fill="inf").read_as("int8")


def test_a_dense_type_has_no_fill_value() -> None:
    of_array = TensorType(Format.parse("dd"), "float64")
    assert replace(of_array, fill="inf") == of_array
    of_rows = TensorType(Format.parse("ds"), "float64", fill="inf")
    assert replace(of_rows, format=of_array.format) == of_array


def test_a_format_hashes_in_this_process_wherever_it_was_made() -> None:
    """What it keeps of its hash is no part of what is pickled: strings hash otherwise elsewhere."""
    form = Format.parse("dsu:1,2,0")
    text = pickle.dumps(form)
    assert str(hash(form)).encode() not in text
    assert b"_hash" not in text
    assert {form: 1}[pickle.loads(text)] == 1
    assert replace(form, mode_order=(0, 1, 2)) != form
