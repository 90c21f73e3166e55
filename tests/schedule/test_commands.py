"""Schedules as text and as values, and the loop orders that they ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import taco_py as tp
from taco_py.compiler.concrete.nodes import Assembly, Race
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.commands import Assemble, Parallelize, Reorder, Serial, Vectorize
from taco_py.compiler.schedule.legality import check
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.parser import examples, syntax
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from tests.problems import assignment, problem

names = st.from_regex(r"[a-z][a-z0-9_]{0,3}", fullmatch=True)
commands = st.one_of(
    st.lists(names, min_size=2, max_size=5, unique=True).map(tuple).map(Reorder),
    st.builds(Parallelize, names, st.sampled_from(Race)),
    names.map(Vectorize),
    st.builds(Assemble, names, st.sampled_from(Assembly)),
    st.just(Serial()),
)
schedules = st.lists(commands, max_size=4).map(tuple).map(Schedule)


@given(schedules)
def test_what_prints_parses_back(schedule: Schedule) -> None:
    assert Schedule.parse(str(schedule)) == schedule


@given(st.text(st.sampled_from("reorder(i,j) parallelize\n;é"), max_size=30))
def test_no_text_crashes_the_parser(text: str) -> None:
    try:
        Schedule.parse(text)
    except ScheduleError as error:
        assert error.span is not None
        assert 0 <= error.span.start <= error.span.stop <= len(text)


def test_parse() -> None:
    schedule = Schedule.parse(" reorder( i, k ,j ),parallelize(i) , serial()")
    assert schedule.commands == (Reorder(("i", "k", "j")), Parallelize("i"), Serial())
    assert schedule.parallel == "i"
    assert schedule.serial
    assert Schedule.parse("") == Schedule()
    assert Schedule().parallel is None
    assert Schedule.parse("parallelize(i), parallelize(j)").parallel == "j"


COMMANDS = (
    "distribute, reorder, split, divide, fuse, pos, coord, bound, parallelize, unroll, vectorize, "
    "mergeby, precompute, fission, loopfuse, assemble, serial"
)
MISTAKES = (
    (
        "reorder(i,j), block(i,32)",
        "Expected a scheduling command, found 'block'\n"
        "  reorder(i,j), block(i,32)\n"
        "                ^^^^^^^^^^^\n"
        "hint: the commands are " + COMMANDS,
    ),
    (
        "reorder(i)",
        "Expected two or more different indices for reorder, found i\n"
        "  reorder(i)\n  ^^^^^^^^^^\nhint: as in reorder(i,k,j)",
    ),
    (
        "serial(), reorder(i,j,i)",
        "Expected two or more different indices for reorder, found i, j, i\n"
        "  serial(), reorder(i,j,i)\n"
        "            ^^^^^^^^^^^^^^\n"
        "hint: as in reorder(i,k,j)",
    ),
    (
        "parallelize()",
        "Expected one index, and perhaps a unit and a strategy for parallelize, found nothing\n"
        "  parallelize()\n  ^^^^^^^^^^^^^\n"
        "hint: as in parallelize(i,CPUThread,Atomics)",
    ),
    (
        "assemble(A,Sorted)",
        "Expected the result and Append, Insert or Copy for assemble, found A, Sorted\n"
        "  assemble(A,Sorted)\n"
        "  ^^^^^^^^^^^^^^^^^^\n"
        "hint: the ways to assemble are Append, Insert, Copy",
    ),
    (
        "assemble(A,Insert,true)",
        "Expected the result and Append, Insert or Copy for assemble, found A, Insert, true\n"
        "  assemble(A,Insert,true)\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: loops that count entries are not scheduled on their own",
    ),
    (
        "serial(i)",
        "Expected nothing for serial, found i\n  serial(i)\n  ^^^^^^^^^\nhint: as in serial()",
    ),
    (
        "split(i,é,i1,4)",
        "Expected a variable, two new names and a size for split, found i, é, i1, 4\n"
        "  split(i,é,i1,4)\n"
        "  ^^^^^^^^^^^^^^^\n"
        "hint: é is no name: letters, digits and _, no digit first",
    ),
    (
        "reorder(i,j) serial()",
        "Expected a command such as reorder(i,j), found something else\n"
        "  reorder(i,j) serial()\n"
        "  ^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: the commands are " + COMMANDS + ", with commas between them",
    ),
    (
        "serial(), precompute(x(j)*(y(i),j,j,w)",
        "Expected a parenthesis that is closed, found the text's end\n"
        "  serial(), precompute(x(j)*(y(i),j,j,w)\n"
        "                      ^^^^^^^^^^^^^^^^^^\n"
        "hint: each ( of a command has its )",
    ),
)


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_are_pointed_at(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.parse(text)
    assert str(caught.value) == message


PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
ORDERS = (
    (PRODUCT, "", "ijk"),
    (PRODUCT, "reorder(i,k,j)", "ikj"),
    (PRODUCT, "reorder(k,i)", "kji"),
    (PRODUCT, "reorder(j,i), reorder(k,i)", "jki"),
    # a command concerns the terms that have all its indices
    ("y[i] = b[i] + A[i,j] * x[j]", "reorder(j,i)", "i ji"),
    ("C[i,j] = A[i,j] + B[i,j]", "reorder(j,i)", "ji ji"),
)


def scheduled(text: str, schedule: str) -> Loops:
    whole = assignment(text)
    return apply_all(Loops(whole, textual_orders(whole)), Schedule.parse(schedule))


@pytest.mark.parametrize(("text", "schedule", "expected"), ORDERS)
def test_orders(text: str, schedule: str, expected: str) -> None:
    found = scheduled(text, schedule).orders
    assert " ".join("".join(order) for order in found) == expected


def test_an_index_that_no_term_has_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"reorder\(i,l\) cannot be applied: there is no loop"):
        scheduled(PRODUCT, "reorder(i,l)")


def test_loops_of_different_terms_are_not_reordered() -> None:
    with pytest.raises(ScheduleError, match="no term of the assignment has all these loops"):
        scheduled("y[i] = A[i,j] * x[j] + B[i,k] * z[k]", "reorder(j,k)")


def test_an_inner_sum_stays_below_the_loops_it_depends_on() -> None:
    text = "y[i] = b[i] / (A[i,j] * x[j])"
    check(scheduled(text, "reorder(i,j)"), problem(text))
    with pytest.raises(ScheduleError, match="the loop over j inside the one over i"):
        check(scheduled(text, "reorder(j,i)"), problem(text))


def test_examples_in_hints_are_read() -> None:
    for example in examples():
        schedule = Schedule.parse(example)
        assert len(schedule.commands) == 1
        assert Schedule.parse(str(schedule)) == schedule
    assert [example.split("(")[0] for example in examples()] == list(syntax())


TACO = (
    "split(i,i0,i1,32), parallelize(i0,CPUThread,NoRaces)",
    "reorder(i,k,j), divide(i,i0,i1,4), bound(i0,b,100,MaxExact), unroll(i1,2)",
    "fuse(i,j,f), pos(f,p,A(i,j)), split(p,a,b,8)",
    "fuse(i,j,f), pos(f,p,A), coord(p,c), parallelize(c,CPUThread,Atomics), mergeby(j,Gallop)",
    "precompute(A(i,j) * x(j),{i,j},{iw,jw},w), parallelize(jw,CPUVector,IgnoreRaces)",
    "precompute(A(i,j) * x(j),j,jw), parallelize(i,CPUThread,Temporary), assemble(C,Insert)",
)
SHORT = (
    ("parallelize(i)", "parallelize(i,CPUThread,NoRaces)"),
    ("parallelize(i,CPUThread)", "parallelize(i,CPUThread,NoRaces)"),
    ("parallelize(i,CPUThread,ParallelReduction)", "parallelize(i,CPUThread,Temporary)"),
    ("vectorize(i)", "parallelize(i,CPUVector,IgnoreRaces)"),
    ("parallelize(i,CPUVector,ParallelReduction)", "parallelize(i,CPUVector,IgnoreRaces)"),
    ("assemble(C,Insert,false)", "assemble(C,Insert)"),
)


@pytest.mark.parametrize(("text", "printed"), [*((text, text) for text in TACO), *SHORT])
def test_schedules_print_as_taco_reads_them(text: str, printed: str) -> None:
    """`parallelize` has three arguments there, and there is no `vectorize` (tools/taco.cpp)."""
    assert str(Schedule.parse(text)) == printed


def test_expressions_are_read_as_deep_as_they_are_printed() -> None:
    nested = "x(i)"
    for _ in range(20):
        nested = f"x(i) * (a(i) + {nested})"
    schedule = Schedule.parse(f"precompute({nested},i,i,w), distribute({nested}), parallelize(i)")
    assert Schedule.parse(str(schedule)) == schedule
    with pytest.raises(ScheduleError, match="Expected a parenthesis that is closed"):
        Schedule.parse(f"precompute({nested},i,i,w")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parallelize(i), serial()", "serial() cannot be applied: threads share the loop over i"),
        ("serial(), parallelize(j)", "parallelize(j,CPUThread,NoRaces) cannot be applied: serial"),
    ],
)
def test_what_contradicts_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), schedule=text)
    assert message in str(caught.value)
