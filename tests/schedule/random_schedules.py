"""Random schedules of random programs: every legal one gives what the oracle gives.

    python -m tests.schedule.random_schedules 10000 [--seed 1] [--compile 0.05]

draws that many programs with schedules of up to five commands, runs each as its loop IR says (with
a parallel loop by 1 and 3 threads) and some of them compiled, by 1, 2 and 3 threads, and prints how
many commands were refused and why.
A schedule may be refused with a ScheduleError that says which precondition failed; anything else
is a mistake, and is printed with the program.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import hypothesis
import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from taco_py.arguments.options import CallOptions
from taco_py.arguments.results import hand_out
from taco_py.calls.call.prepare import Prepared, prepare, start
from taco_py.calls.statements.read_text import accumulated, parsed
from taco_py.compiler.concrete.nodes import PRIVATE_COPIES, Assembly, Merge, Race
from taco_py.compiler.concrete.terms import split_terms, sums_apart, sums_outside
from taco_py.compiler.lower.threads import value_ranges as apart
from taco_py.compiler.schedule.apply import apply
from taco_py.compiler.schedule.commands import (
    Assemble,
    Command,
    Distribute,
    Fission,
    LoopFuse,
    MergeBy,
    Parallelize,
    Precompute,
    Reorder,
    Serial,
    Unroll,
    Vectorize,
)
from taco_py.compiler.schedule.distribute import multiplied
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.loops import lower_recipe
from taco_py.compiler.ways.ways import way_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.checks import accesses, all_indices, free_indices
from taco_py.language.notation.nodes import Access, Call
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.tree import walk
from taco_py.language.provenance.relations import Bound, BoundKind, Coord, Divide, Fuse, Pos, Split
from taco_py.running.execute.assemble_compute import assemble, recompute
from taco_py.running.execute.run import Execution, run
from tests.corpus.formats import MORE_OPERANDS, MORE_RESULTS, OPERANDS, RESULTS, to_dense
from tests.corpus.programs import PATTERNS, SIZES, Program, messy, programs, whole_numbers
from tests.interpreted import interpreted
from tests.machines import always_threads

MOST_COMMANDS = 5
REASONS = 60
"""The most reasons of refusals that are printed."""
FEW = 2
"""Entries that are worth a piece of its own, where pieces do not depend on the threads."""
DTYPES = ("float64", "float64", "float64", "int64", "complex128")
NUMBERS = (1, 2, 3, 4, 7)
"""Sizes of tiles, numbers of tiles: below, at and above the sizes of programs, none divides all."""


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """A program and the commands for it.

    phases  assemble first, then compute
    """

    program: Program
    commands: tuple[Command, ...]
    phases: bool

    def __repr__(self) -> str:
        apart = " in phases" if self.phases else ""
        return f"{self.program!r} | {Schedule(self.commands)}{apart}"


@dataclass(slots=True)
class Tally:
    """What became of the schedules: how many ran, with how many and which commands, and why
    others were refused."""

    ran: int = 0
    lengths: Counter[int] = field(default_factory=Counter)
    applied: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        applied = ", ".join(f"{name} {count}" for name, count in self.applied.most_common())
        rows = [f"{count:6} {reason}" for reason, count in self.refused.most_common(REASONS)]
        lengths = ", ".join(f"{count} of {n}" for n, count in sorted(self.lengths.items()))
        head = [f"{self.ran} schedules ran: {lengths} commands", f"commands: {applied}"]
        return "\n".join([*head, f"{self.refused.total()} refusals:", *rows])


# ---------------------------------------------------------------- drawing


@st.composite
def scheduled_programs(draw: Any) -> Scheduled:
    """A program with up to five commands, each of which fits the loops that exist by then."""
    dtypes = (draw(st.sampled_from(DTYPES)),)
    program = draw(st.one_of(programs(dtypes=dtypes), usual_programs(dtypes[0])))
    if draw(st.integers(0, 4)) == 0:
        program = replace(program, stored={n: _wide(o) for n, o in program.stored.items()})
    names = Names()
    loops = first_loops(program)
    commands: list[Command] = [*_distributed(draw, loops)]
    for command in commands:
        loops = apply(loops, command)
    for _ in range(draw(st.integers(1, MOST_COMMANDS - len(commands)))):
        if not loops.variables:
            break
        kind = draw(st.sampled_from(KINDS))
        command = kind(draw, loops, program, names)
        commands.append(command)
        try:
            loops = apply(loops, command)
        except ScheduleError:
            break
    return Scheduled(program, tuple(commands), draw(st.integers(0, 7)) == 0)


USUAL = (
    "y[i] = A[i,j] * x[j]",
    "y[i] += A[i,j] * x[j]",
    "y[i] = b[i] - A[i,j] * x[j]",
    "y[i] = A[i,j] * x[j] + 1",
    "C[i,j] = A[i,k] * B[k,j] + D[i,j]",
    "C[i,j] = A[i,k] * B[k,j] + x[j]",
    "y[i] = A[j,i] * x[j] + z[i]",
    "s = A[i,j] * B[i,j]",
    "C[i,j] = A[i,k] * B[k,j]",
    "C[i,j] = A[i,k] * X[k,j]",
    "C[i,j] = A[i,j] + B[i,j]",
    "C[i,j] = A[i,j] - B[i,j] + D[i,j]",
    "C[i,j] = A[i,j] * B[i,j]",
    "C[i,j] = A[i,j] * U[i,k] * V[j,k]",
    "C[i,j] = A[j,i]",
    "C[i,j] = A[i,j] * A[j,i]",
    "C[i,j] = T[i,j,k] * x[k]",
    "C[i,j,k] = T[i,j,l] * A[k,l]",
    "C[i,r] = T[i,k,l] * A[k,r] * B[l,r]",
    "C[i,j,k] = T[i,j,k] + S[i,j,k]",
    "y[i] = (A[i,j] - B[i,j]) * x[j]",
    "C[i,j] = (A[i,j] + B[i,j]) * D[i,j]",
)


@st.composite
def usual_programs(draw: Any, dtype: str) -> Program:
    """One of the assignments that people schedule, on operands of random formats."""
    text = draw(st.sampled_from(USUAL))
    assignment = parse_assignment(text)
    sizes = {i: draw(st.sampled_from(SIZES)) for i in all_indices(assignment)}
    arrays, stored, forms = {}, {}, {}
    for place, access in enumerate(accesses(assignment.value)):
        if access.tensor in arrays:
            sizes.update(zip(access.indices, arrays[access.tensor].shape, strict=True))
            continue
        if text.count(f"{access.tensor}[") > 1:  # a square matrix
            sizes.update(dict.fromkeys(access.indices, sizes[access.indices[0]]))
        random = np.random.default_rng(draw(st.integers(0, 9)) + 100 * place)
        shape = tuple(sizes[i] for i in access.indices)
        array = whole_numbers(random, shape, dtype, draw(st.sampled_from(sorted(PATTERNS))))
        options = OPERANDS[len(shape)] * 2 + MORE_OPERANDS[len(shape)]
        arrays[access.tensor] = array
        forms[access.tensor] = draw(st.sampled_from(options))
        stored[access.tensor] = messy(random, array, forms[access.tensor])
    order = len(assignment.target.indices)
    result = draw(st.sampled_from(RESULTS[order] * 2 + MORE_RESULTS[order]))
    static = None
    if draw(st.integers(0, 4)) == 0:
        index = draw(st.sampled_from(sorted(sizes)))
        static = {index: sizes[index]}
    return Program(text, arrays, stored, forms, result, None, static)


def first_loops(program: Program) -> Loops:
    """The loops before any command."""
    objects = program.stored if program.start is None else {**program.stored, "R": program.start}
    assignment = sums_outside(sums_apart(accumulated(parsed(program.text), objects)))
    return Loops(assignment, textual_orders(assignment))


def _wide(operand: Any) -> Any:
    """A scipy matrix with int64 coordinates."""
    if not sp.issparse(operand) or operand.format not in ("csr", "csc"):
        return operand
    arrays = (operand.data, operand.indices.astype(np.int64), operand.indptr.astype(np.int64))
    return type(operand)(arrays, shape=operand.shape)


@dataclass(slots=True)
class Names:
    """New names for variables."""

    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"


def _distributed(draw: Any, loops: Loops) -> Iterator[Command]:
    """Half of the products of sums are multiplied out, which comes before all else."""
    for term in split_terms(loops.assignment.value):
        parts = [part for _, part in multiplied(term.body)]
        whole = all(set(term.reduced) <= set(free_indices(part)) for part in parts)
        if len(parts) > 1 and whole and draw(st.booleans()):
            yield Distribute(term.body)
            return


def _variable(draw: Any, loops: Loops) -> str:
    return str(draw(st.sampled_from(loops.variables)))


def _split(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    number = draw(st.sampled_from(NUMBERS))
    return Split(_variable(draw, loops), names.fresh(), names.fresh(), number)


def _divide(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    number = draw(st.sampled_from(NUMBERS))
    return Divide(_variable(draw, loops), names.fresh(), names.fresh(), number)


def _fuse(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    order = draw(st.sampled_from(loops.orders))
    if len(order) < 2:
        return _split(draw, loops, program, names)
    place = draw(st.integers(0, len(order) - 2))
    return Fuse(order[place], order[place + 1], names.fresh())


def _pos(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """Mostly of a sparse operand with the variable's indices."""
    variable = _variable(draw, loops)
    return Pos(variable, names.fresh(), _with_indices(draw, loops, program, variable))


def _fused_positions(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """`pos` of a fused variable where there is one."""
    fused = [r.fused for r in loops.provenance.relations if isinstance(r, Fuse)]
    fused = [variable for variable in fused if variable in loops.variables]
    if not fused:
        return _fuse(draw, loops, program, names)
    variable = draw(st.sampled_from(fused))
    return Pos(variable, names.fresh(), _with_indices(draw, loops, program, variable))


def _with_indices(draw: Any, loops: Loops, program: Program, variable: str) -> str:
    """An operand, one with the indices that a variable derives from if there is one."""
    roots = set(loops.provenance.roots(variable))
    likely = [
        access.tensor
        for access in accesses(loops.assignment.value)
        if roots <= set(access.indices) and program.forms.get(access.tensor, "dense") != "dense"
    ]
    return str(draw(st.sampled_from(likely or sorted(program.stored))))


def _coord(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    return Coord(_variable(draw, loops), names.fresh())


def _bound(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """A promise that holds: the sizes of indices are known."""
    variable = _variable(draw, loops)
    size = program.sizes.get(variable)
    if size is None:
        return Bound(variable, names.fresh(), 0, BoundKind.MIN_CONSTRAINT)
    kind = draw(st.sampled_from(list(BoundKind)))
    value = {
        BoundKind.MIN_EXACT: 0,
        BoundKind.MIN_CONSTRAINT: 0,
        BoundKind.MAX_EXACT: size,
        BoundKind.MAX_CONSTRAINT: size + draw(st.integers(0, 2)),
    }[kind]
    return Bound(variable, names.fresh(), value, kind)


def _reorder(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    order = draw(st.sampled_from(loops.orders))
    if len(order) < 2:
        return _split(draw, loops, program, names)
    shuffled = draw(st.permutations(order))
    count = draw(st.integers(2, len(order)))
    return Reorder(tuple(shuffled[:count]))


def _parallelize(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """Mostly an outermost loop. Nothing is promised that need not hold: IgnoreRaces is left out."""
    outermost = [order[0] for order in loops.orders if order]
    variable = draw(st.sampled_from([*outermost, *outermost, *loops.variables]))
    races = (Race.NONE, Race.NONE, Race.NONE, Race.ATOMICS, Race.ATOMICS, *PRIVATE_COPIES)
    return Parallelize(variable, draw(st.sampled_from(races)))


def _unroll(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    return Unroll(_variable(draw, loops), draw(st.sampled_from(NUMBERS)))


def _vectorize(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    return Vectorize(_variable(draw, loops))


def _mergeby(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    return MergeBy(_variable(draw, loops), draw(st.sampled_from(list(Merge))))


def _precompute(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """An operand or a product of the assignment, over one or two of its loops."""
    parts = [node for node, _ in walk(loops.assignment.value) if isinstance(node, Access | Call)]
    count = draw(st.integers(1, min(2, len(loops.variables))))
    indices = tuple(draw(st.permutations(loops.variables))[:count])
    copies = tuple(names.fresh() if draw(st.booleans()) else index for index in indices)
    return Precompute(draw(st.sampled_from(parts)), indices, copies, names.fresh())


def _precompute_tiles(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """Over both variables of a tile, where there is one."""
    tiled = [r for r in loops.provenance.relations if isinstance(r, Split | Divide)]
    tiled = [relation for relation in tiled if set(relation.children) <= set(loops.variables)]
    if not tiled:
        return _pos(draw, loops, program, names)
    whole = _precompute(draw, loops, program, names)
    assert isinstance(whole, Precompute)
    children = draw(st.sampled_from(tiled)).children
    return replace(whole, indices=children, copies=children)


def _after_workspace(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """Loops around a workspace taken apart, or put together; a whole term into one first."""
    made = [command for command in loops.structure if isinstance(command, Precompute)]
    if made:
        kind = draw(st.sampled_from((Fission, LoopFuse)))
        variables = (*made[-1].indices, *made[-1].copies, *loops.variables)
        return kind(draw(st.sampled_from(variables)))
    products = [t.body for t in split_terms(loops.assignment.value) if isinstance(t.body, Call)]
    kept = [i for i in loops.assignment.target.indices if i in loops.variables]
    if not products or not kept:
        return _reorder(draw, loops, program, names)
    indices = tuple(draw(st.permutations(kept))[: draw(st.integers(1, len(kept)))])
    return Precompute(draw(st.sampled_from(products)), indices, indices, names.fresh())


def _fission(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    return Fission(_variable(draw, loops))


def _loopfuse(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    return LoopFuse(_variable(draw, loops))


def _serial(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """Once in a while."""
    return _vectorize(draw, loops, program, names) if draw(st.integers(0, 3)) else Serial()


def _assemble(draw: Any, loops: Loops, program: Program, names: Names) -> Command:
    """Of a sparse result, where one is asked for."""
    if {"s", "u"}.isdisjoint(program.result or ""):
        return _reorder(draw, loops, program, names)
    return Assemble(loops.assignment.target.tensor, draw(st.sampled_from(list(Assembly))))


Kind = Callable[[Any, Loops, Program, Names], Command]
KINDS: tuple[Kind, ...] = (
    _split, _split, _split, _divide, _fuse, _fuse, _pos, _pos, _fused_positions, _fused_positions,
    _coord, _bound, _reorder, _reorder, _reorder, _parallelize, _parallelize, _unroll, _vectorize,
    _mergeby, _precompute, _precompute, _precompute_tiles, _after_workspace, _after_workspace,
    _after_workspace, _fission, _loopfuse, _serial, _assemble, _assemble,
)  # fmt: skip


# ---------------------------------------------------------------- checking


def check(case: Scheduled, tally: Tally, *, compiled: bool) -> None:
    """Compare the schedule with the oracle, or what is left of it without refused commands."""
    kept = case.commands if _is_legal(case, case.commands, tally) else ()
    if not kept:
        for command in case.commands[: None if len(case.commands) > 1 else 0]:
            if _is_legal(case, (*kept, command), tally):
                kept = (*kept, command)
    expected = case.program.expected()
    for result in results(case, Schedule(kept), compiled=compiled):
        same(result, expected)
    tally.ran += 1
    tally.lengths[len(kept)] += 1
    tally.applied.update(type(command).__name__.lower() for command in kept)


def _is_legal(case: Scheduled, commands: tuple[Command, ...], tally: Tally) -> bool:
    try:
        for step in _prepared(case, Schedule(commands), 1)[0].plan.kernels:
            if way_of(step.schedule.make).in_loops:
                lower_recipe(step.recipe())
    except ScheduleError as error:
        check_refusal(error)
        tally.refused[_general(error.message)] += 1
        return False
    return True


def check_refusal(error: ScheduleError) -> None:
    """A refusal says what failed and what would help."""
    assert error.message
    assert error.hint, f"no hint: {error.message}"


def _general(message: str) -> str:
    """A refusal without its names, so that equal reasons are counted together."""
    message = re.sub(r"\b\w+\([^)]*\)", lambda call: call[0].split("(")[0] + "(…)", message)
    message = re.sub(r"\b([vw]\d+|[ijklr]{1,3}(_\d+|pos|crd|b|\d)?)\b", "…", message)
    message = re.sub(r"\b([A-Z](\d\w*|_[a-z]+\d?)?|[a-z]\d)\b", "…", message)
    return re.sub(r"…(, …)+", "…", message)


def same(result: Any, expected: Any) -> None:
    """Equal, up to the rounding of quotients and sums in another order."""
    result = to_dense(result)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(result), finite)
    np.testing.assert_allclose(result[finite], expected[finite], rtol=1e-9, atol=1e-9)


def results(case: Scheduled, schedule: Schedule, *, compiled: bool) -> Iterator[Any]:
    """The result, interpreted, or compiled and computed by one, two and three threads."""
    shared = any(isinstance(command, Parallelize) for command in schedule.commands)
    for threads in (1, 2, 3) if compiled else (1, 3) if shared else (1,):
        prepared, settings = _prepared(case, schedule, threads)
        with mock.patch.object(apart, "GRAIN", FEW):
            kernels = {} if compiled else _interpreted(prepared, case.phases)
        usual = start(prepared, settings, None)
        execution = Execution(usual.tensors, threads, inform=usual.inform, kernels=kernels)
        with always_threads():
            yield hand_out(_run(prepared, execution, case.phases), prepared.kind)


def _prepared(case: Scheduled, schedule: Schedule, threads: int) -> tuple[Prepared, CallOptions]:
    program = case.program
    operands = program.stored
    if program.start is not None:
        operands = {**operands, "R": program.start.copy()}
    settings = CallOptions.of({
        "format": program.result, "schedule": schedule, "threads": threads,
        "static": program.static,
    })  # fmt: skip
    return prepare(parsed(program.text), operands, settings), settings


def _run(prepared: Prepared, execution: Execution, phases: bool) -> Any:
    if not phases:
        return run(prepared.plan, execution)
    tensors = dict(execution.tensors)
    pattern = assemble(prepared.plan, execution)
    execution.tensors = tensors
    (data,) = recompute(prepared.plan, execution, pattern).values()
    return data


def _interpreted(prepared: Prepared, phases: bool) -> dict[tuple[str, str], Any]:
    """Every kernel of the plan, in each phase; register tiles are left to the compiler."""
    found = {}
    for step in prepared.plan.kernels:
        apart = phases and not step.problem.result.format.is_dense
        for phase in ("assemble", "compute") if apart else ("evaluate",):
            if way_of(step.schedule.make).in_loops:
                recipe = step.recipe(phase)
                found[step.target, phase] = interpreted(recipe)
    return found


def search(count: int, tally: Tally, *, compiled: bool, seed: int | None = None) -> None:
    """Check that many random cases."""
    settings = hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )

    def body(case: Scheduled) -> None:
        check(case, tally, compiled=compiled)

    test = settings(hypothesis.given(scheduled_programs())(body))
    (test if seed is None else hypothesis.seed(seed)(test))()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Random schedules against the oracle.")
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", type=float, default=0.02, help="the part that is compiled")
    options = parser.parse_args(arguments)
    tally, chunk = Tally(), 500
    for number, begin in enumerate(range(0, options.count, chunk)):
        seed = options.seed * 1_000_003 + number
        count = min(chunk, options.count - begin)
        compiled = round(count * options.compile)
        if count > compiled:
            search(count - compiled, tally, compiled=False, seed=seed)
        if compiled:
            search(compiled, tally, compiled=True, seed=seed)
        print(f"{begin + count} …", file=sys.stderr, flush=True)
    print(tally)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
