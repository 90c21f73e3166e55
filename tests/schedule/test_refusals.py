"""Every way in which a command can be refused: what it says, of which variable, and the remedy."""

from __future__ import annotations

import re
from typing import Any

import pytest

import taco_py as tp
from taco_py.compiler.schedule.apply import apply, apply_all
from taco_py.compiler.schedule.commands import Precompute, Unroll
from taco_py.compiler.schedule.legality import check
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.parallel import check_shared, choose_parallel
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.provenance.relations import Bound, BoundKind, Divide, Split
from tests.problems import assignment, problem

SPMV = "y[i] = A[i,j] * x[j]"
RESIDUAL = "y[i] = b[i] - A[i,j] * x[j]"
ADD = "C[i,j] = A[i,j] + B[i,j]"
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
Row = tuple[str, dict[str, str], str | None, str, str, str]

# Refused by the loops alone: assignment, commands of which the last is refused, reason, hint.
LOOPS = (
    (SPMV, "split(k,a,b,2)", "there is no loop over k", "the loops are i, j"),
    (
        SPMV, "split(i,a,b,2), unroll(i,4)", "i is no loop any more",
        "split(i,a,b,2) replaced it by a and b",
    ),
    (
        SPMV, "unroll(i,4), split(i,a,b,2)", "i has been marked already",
        "parallelize, unroll and vectorize come after the commands that derive variables",
    ),
    (SPMV, "split(i,j,b,2)", "the name j is taken", "choose a new name"),
    (SPMV, "split(i,A,b,2)", "the name A is taken", "choose a new name"),
    (
        RESIDUAL, "fuse(i,j,f)",
        "j is not right inside i in every term, the loops are i",
        "a term without j has no such pair: compute the terms with both by an assignment of their "
        "own, and add the others to its result",
    ),
    (
        PRODUCT, "fuse(i,k,f)",
        "k is not right inside i in every term, the loops are i, j, k",
        "reorder so that k is right inside i",
    ),
    (
        SPMV, "pos(j,p,A), pos(p,q,A)", "p runs over positions already",
        "coord turns positions back, split and divide cut them into tiles",
    ),
    (
        SPMV, "pos(j,p,A), fuse(i,p,f)", "p runs over positions",
        "fuse coordinates first, then take the positions of the fused variable",
    ),
    (
        SPMV, "coord(j,c)", "j does not run over positions",
        "coord turns back what pos has made",
    ),
    (
        SPMV, "pos(j,p,A), split(p,a,b,2), coord(a,c)",
        "a counts tiles of positions, which have no coordinates",
        "coord(b,c) is about what is in a tile",
    ),
    (
        SPMV, "pos(j,p,A), coord(p,c), split(c,a,b,2)",
        "c meets only coordinates that are stored",
        "derive variables from the positions, before coord",
    ),
    (
        "y[i] = A[i,j] * x[j] + B[i,k] * z[k]", "reorder(j,k)",
        "no term of the assignment has all these loops",
        "each reorder names loops of one nest",
    ),
    (
        PRODUCT, "assemble(A,Insert)", "A is not what is assembled",
        "the result is called C",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("text", "schedule", "reason", "hint"), LOOPS)
def test_refused_by_loops(text: str, schedule: str, reason: str, hint: str) -> None:
    whole = assignment(text)
    *before, last = Schedule.parse(schedule).commands
    loops = apply_all(Loops(whole, textual_orders(whole)), Schedule(tuple(before)))
    with pytest.raises(ScheduleError) as caught:
        apply(loops, last)
    assert caught.value.message == f"{last} cannot be applied: {reason}"
    assert caught.value.hint == hint


# What no text says, but a value can.
VALUES: tuple[tuple[Any, str], ...] = (
    (Split("i", "a", "b", 0), "the size 0 is no positive 32-bit integer"),
    (Divide("i", "a", "b", 2**31), "the size 2147483648 is no positive 32-bit integer"),
    (Split("i", "a", "a", 2), "its two new names are the same"),
    (Unroll("i", 257), "i cannot be unrolled 257 times"),
    (Unroll("i", 2.5), "i cannot be unrolled 2.5 times"),  # type: ignore[arg-type]
    (Bound("i", "b", -1, BoundKind.MAX_EXACT), "the bound -1 is no such number"),
)


def test_a_part_to_precompute_is_an_expression() -> None:
    whole = assignment(SPMV)
    part: Any = "A(i,j)"
    with pytest.raises(ScheduleError, match="Expected a part of the assignment"):
        apply(Loops(whole, textual_orders(whole)), Precompute(part, ("j",), ("j",), "w"))


@pytest.mark.parametrize(("command", "reason"), VALUES)
def test_refused_values(command: Any, reason: str) -> None:
    whole = assignment(SPMV)
    with pytest.raises(ScheduleError) as caught:
        apply(Loops(whole, textual_orders(whole)), command)
    assert caught.value.message == f"{command} cannot be applied: {reason}"
    assert caught.value.hint


CSRS = {"A": "CSR", "B": "CSR"}

# Refused by formats: assignment, formats, the result's, commands, part of the message, of the hint.
FORMATS: tuple[Row, ...] = (
    (
        "y[i] = b[i] / (A[i,j] * x[j])", {}, None, "reorder(j,i)",
        "Expected the loop over j inside the one over i, on which the sum over j depends",
        "an inner sum's own loops come after all others",
    ),
    (
        "y[k] = sum(j, A[i,j,l] * B[j,k,l] + x[i])", {"A": "sss", "B": "sss"}, None, "reorder(i,j)",
        "Expected the loop over i inside the one over j",
        "an inner sum's own loops come after all others",
    ),
    (
        "y[i] = b[i] / (A[i,j] * x[j])", {}, None, "fuse(i,j,f)",
        "the sum over j has loops of its own, and i, j are not all among them",
        "fuse indices of one sum",
    ),
    (
        SPMV, CSRS, None, "split(j,a,b,4), reorder(i,b,a)",
        "The loop over j would meet every so-many-th coordinate, but it walks A2",
        "put the loop over a tile outside the one over what is in it",
    ),
    (
        "C[i,j] = A[i,j] * B[i,j]", CSRS, "dd", "pos(j,p,A), split(p,a,b,2), reorder(b,a)",
        "The loop over j would meet every so-many-th position of A, but it walks A2, B2 together",
        "put the loops over tiles of p outside, the largest outermost",
    ),
    (
        SPMV, {"A": "COO"}, None, "split(j,a,b,4)",
        "The loop over j is tiled, but A2 is a singleton level",
        "tile the positions of A instead: fuse its indices, then pos",
    ),
    (
        PRODUCT, CSRS, "dd", "assemble(C,Append)",
        "every element of C has its place, no coordinates are stored by these loops",
        "ask for a sparse result, or leave the command out",
    ),
    (SPMV, CSRS, None, "pos(j,p,Z)", "there is no operand Z", "the operands are A, x"),
    (
        SPMV, CSRS, None, "pos(i,p,x)", "x stands without i",
        "name an operand with these indices; x is read as x(j)",
    ),
    (
        SPMV, CSRS, None, "pos(j,p,A(j,i))", "there is no A(j,i) in the assignment",
        "what is read is A(i,j)",
    ),
    (
        "C[i,j] = A[i,j] * A[j,i]", {"A": "CSR"}, None, "pos(j,p,A)",
        "A stands twice in the assignment", "say which is meant, as in pos(j,p,A(i,j))",
    ),
    (
        SPMV, CSRS, None, "fuse(i,j,f), split(f,a,b,4), pos(b,p,A)", "b is a tile of fused indices",
        "take positions of the fused variable first, then split them",
    ),
    (
        SPMV, {"A": "CSC"}, None, "fuse(i,j,f), pos(f,p,A)",
        "i, j are no neighbouring levels of A, which stores j, i",
        "fuse indices in the order in which the operand stores them",
    ),
    (
        SPMV, CSRS, None, "pos(i,p,A)", "the level of A for i is dense",
        "positions are those of a compressed level, or of a list's levels fused",
    ),
    (
        ADD, CSRS, None, "pos(j,p,A)", "a term has values where A stores nothing",
        "positions can replace coordinates only where the operand is a factor",
    ),
    (
        SPMV, CSRS, None, "pos(j,p,A), reorder(p,i)",
        "the loop over i, below which these positions of A lie, is inside the one over p",
        "put i outside, or fuse it too",
    ),
    (
        SPMV, CSRS, None, "fuse(i,j,f), pos(f,p,A), split(p,a,b,4), reorder(b,a)",
        "the loops over b, a do not meet the positions in order",
        "positions of fused levels come in order: the outer tile outside",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("text", "formats", "result", "schedule", "reason", "hint"), FORMATS)
def test_refused_by_formats(
    text: str, formats: dict[str, str], result: str | None, schedule: str, reason: str, hint: str
) -> None:
    whole = problem(text, formats, result)
    loops = apply_all(
        Loops(whole.assignment, textual_orders(whole.assignment)), Schedule.parse(schedule)
    )
    with pytest.raises(ScheduleError) as caught:
        check(loops, whole)
    assert reason in caught.value.message
    assert caught.value.hint == hint


SCALED, ENTRIES = "C[i,j] = A[i,j] * x[j]", "fuse(i,j,f), pos(f,p,A), split(p,a,b,4)"

# Refused to threads: assignment, formats, the result's, commands, the message's end, the hint.
THREADS: tuple[Row, ...] = (
    (
        PRODUCT, CSRS, "dd", "parallelize(i), parallelize(j)", "the loop i around it is parallel",
        "share one of them",
    ),
    (
        SPMV, {"A": "CSC"}, "d", "reorder(j,i), parallelize(j)",
        "the loop j is summed over: its iterations add to the same elements",
        "put an index of the result outside and share that or let each thread add to a copy: "
        "parallelize(j,CPUThread,Temporary) or let them add by atomic operations: "
        "parallelize(j,CPUThread,Atomics)",
    ),
    (
        SPMV, {}, "d", "split(j,a,b,4), reorder(a,i,b), parallelize(a)",
        "the loop a, tiles of j, is summed over: its iterations add to the same elements",
        "put an index of the result outside and share that or let each thread add to a copy: "
        "parallelize(a,CPUThread,Temporary) or let them add by atomic operations: "
        "parallelize(a,CPUThread,Atomics)",
    ),
    (
        SPMV, {"A": "CSC"}, "s", "reorder(j,i), parallelize(j)",
        "its iterations share one place for values over i, the workspace w",
        "put an index of the result outside and share that or parallelize(j,CPUThread,Temporary) "
        "or parallelize(j,CPUThread,Ordered)",
    ),
    (
        SPMV, {"A": "COO"}, "d", "parallelize(i)",
        "the loop i may meet a coordinate of A1 more than once",
        "convert the operand to a format without duplicates",
    ),
    (
        SPMV, {"A": "CSR"}, "d", "parallelize(j)", "its iterations add to one number",
        "share a loop around it or parallelize(j,CPUThread,Atomics) or "
        "parallelize(j,CPUThread,Temporary) or parallelize(j,CPUThread,Ordered)",
    ),
    (
        PRODUCT, CSRS, "ds", "reorder(i,k,j), parallelize(k,CPUThread,Atomics)",
        "its iterations list the coordinates of j that they add to in the workspace w",
        "share a loop around it or parallelize(k,CPUThread,Temporary) or "
        "parallelize(k,CPUThread,Ordered)",
    ),
    (
        PRODUCT, CSRS, "ss", "reorder(k,i,j), parallelize(k,CPUThread,Ordered)",
        "the workspace w is a table of coordinates, and copies of it are not added up",
        "put an index of the result outside and share that",
    ),
    (
        ADD, CSRS, "ds", "parallelize(j,CPUThread,Temporary)",
        "C stores coordinates, and copies of it are not added up",
        "ask for a dense result, or share a loop over its outermost level with NoRaces",
    ),
    (
        SPMV, {"A": "COO"}, "d", "parallelize(j,CPUThread,Ordered)",
        "A2 has one coordinate at a time, which takes no loop",
        "share the loop around it, or store A as CSR or CSF",
    ),
    (
        SCALED, {"A": "CSR"}, "ds", f"{ENTRIES}, parallelize(a), assemble(C,Append)",
        "ranges of a may begin within a row of C, which parts that are appended do not",
        "assemble(C,Insert)",
    ),
    (
        SCALED, {"A": "ss"}, "ss", f"{ENTRIES}, parallelize(a)",
        "its iterations share one place for values over i, j, the workspace w",
        "put an index of the result outside and share that",
    ),
    (
        ADD, CSRS, "ds", "parallelize(j)",
        "the sparse result is assembled in the order of i, its outermost level",
        "share the loop over i, outermost, or its tiles, or ask for a dense result",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("text", "formats", "result", "schedule", "reason", "hint"), THREADS)
def test_refused_to_threads(
    text: str, formats: dict[str, str], result: str | None, schedule: str, reason: str, hint: str
) -> None:
    whole = problem(text, formats, result)
    commands = Schedule.parse(schedule)
    loops = apply_all(Loops(whole.assignment, textual_orders(whole.assignment)), commands)
    with pytest.raises(ScheduleError) as caught:
        choose_parallel(loops.graph(whole), commands)
    assert caught.value.message.endswith(f" cannot be parallel: {reason}")
    assert caught.value.hint == hint


NAMED = (
    (
        "reorder(i,k,j), pos(k,p,B)",
        "pos(k,p,B) cannot be applied: the level of B for k is dense; B is read from a copy in the "
        "format ds",
    ),
    (
        "reorder(i,k,j), pos(j,p,B), parallelize(p)",
        "The loop p cannot be parallel: its iterations share one place for values over j, the "
        "workspace w",
    ),
)


@pytest.mark.parametrize(("schedule", "message"), NAMED)
def test_operands_and_loops_have_the_names_that_the_user_gave(schedule: str, message: str) -> None:
    """B is copied for this order, and the loop over p is one over a range of j."""
    s = tp.schedule(PRODUCT, A=tp.CSR, B=tp.CSC, C=tp.CSR)
    with pytest.raises(ScheduleError) as caught:
        s.apply(schedule)
    assert caught.value.message == message


@pytest.mark.parametrize("command", ["parallelize(jw)", "vectorize(jw)", "mergeby(jw,Gallop)"])
def test_refusals_name_the_loop_that_was_named(command: str) -> None:
    """The loop that fills the workspace and the one that reads it are over j, both."""
    s = tp.schedule(PRODUCT, A=tp.CSR, B=tp.CSR, C=tp.CSR)
    s.reorder("i", "k", "j").precompute("A(i,k)*B(k,j)", "j", "jw", "w")
    with pytest.raises(ScheduleError, match="The loop jw cannot") as caught:
        s.apply(command)
    assert "(j," not in str(caught.value) and "loop j " not in str(caught.value)


def test_a_sum_is_no_workspace_to_the_user() -> None:
    whole = problem(SPMV, {"A": "CSR"}, "d")
    loops = apply_all(
        Loops(whole.assignment, textual_orders(whole.assignment)),
        Schedule.parse("parallelize(j)"),
    )
    with pytest.raises(ScheduleError, match="parallel: its iterations add to one number"):
        check_shared(loops.graph(whole))


def test_the_number_of_derivations_is_limited() -> None:
    """Those who follow a chain of them would run out of stack, after seconds."""
    chain = [f"bound({'i' if k == 0 else f'v{k - 1}'},v{k},9,MaxConstraint)" for k in range(33)]
    whole = assignment(SPMV)
    loops = Loops(whole, textual_orders(whole))
    apply_all(loops, Schedule.parse(", ".join(chain[:32])))
    with pytest.raises(ScheduleError, match="32 commands before it derive variables"):
        apply_all(loops, Schedule.parse(", ".join(chain)))


def test_a_refused_command_leaves_everything_as_it_was() -> None:
    whole = assignment(SPMV)
    loops = apply_all(Loops(whole, textual_orders(whole)), Schedule.parse("split(i,a,b,4)"))
    before = repr(loops)
    for text in ("split(i,c,d,2)", "coord(a,c)", "fuse(b,a,c)", "reorder(a,z)"):
        with pytest.raises(ScheduleError):
            apply(loops, Schedule.parse(text).commands[0])
    assert repr(loops) == before


@pytest.mark.parametrize("commands", ["parallelize(j)", "reorder(j,i), parallelize(j)"])
def test_what_is_offered_for_complex_sums_is_not_refused(commands: str) -> None:
    whole = problem(SPMV, {"A": "CSC"}, "d", dict.fromkeys("Ax", "complex128"))
    loops = Loops(whole.assignment, textual_orders(whole.assignment))
    schedule = Schedule.parse(commands)
    with pytest.raises(ScheduleError) as caught:
        choose_parallel(apply_all(loops, schedule).graph(whole), schedule)
    assert caught.value.hint is not None
    offered = re.findall(r"parallelize\([^)]*\)", caught.value.hint)
    assert offered
    before = Schedule(schedule.commands[:-1])
    for command in offered:
        again = before.then(Schedule.parse(command))
        choose_parallel(apply_all(loops, again).graph(whole), again)
