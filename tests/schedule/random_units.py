"""Random schedules of a GPU's units: every legal one gives what the oracle gives.

    python -m tests.schedule.random_units 5000 [--seed 1]

draws that many programs with commands that derive and order loops, and then share some of them
among blocks, warps and threads; runs each on the emulated device, which checks each access to
memory, and prints how many commands were refused and why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

import taco_py as tp
from taco_py.compiler.concrete.nodes import Race, Unit
from taco_py.compiler.schedule.apply import apply
from taco_py.compiler.schedule.commands import Command, Parallelize, Precompute
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import DeviceError, ScheduleError
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.provenance.relations import Pos
from tests.corpus.formats import store, to_dense
from tests.corpus.programs import Program
from tests.schedule import random_schedules as usual
from tests.schedule.random_schedules import Names, Scheduled, Tally, first_loops, usual_programs

SHAPING = (
    usual._split, usual._split, usual._divide, usual._fuse, usual._fused_positions, usual._pos,
    usual._reorder, usual._reorder, usual._bound,
)  # fmt: skip
MOST_SHAPING = 4
NESTS = (
    (Unit.BLOCK, Unit.WARP, Unit.THREAD, Unit.THREAD),
    (Unit.BLOCK,),
    (Unit.BLOCK, Unit.THREAD),
    (Unit.BLOCK, Unit.WARP),
    (Unit.BLOCK, Unit.WARP, Unit.THREAD),
    (Unit.BLOCK, Unit.WARP, Unit.THREAD),
    (Unit.CORE,),
)
RACES_APART = 6 * (Race.NONE,) + (Race.ATOMICS, Race.ATOMICS)
"""What loops are shared by of which each iteration has elements of its own."""
RACES = 4 * (Race.ATOMICS,) + 3 * (Race.TEMPORARY,) + (Race.NONE, Race.ORDERED)
"""What others are."""
DTYPES = (
    "float64", "float64", "float32", "int64", "int32", "int8", "uint8", "complex64", "complex128",
)  # fmt: skip
RESULTS = {
    1: 5 * ("d",) + ("s",), 2: 9 * ("dd",) + ("ds", "ss", "uq"), 3: 5 * ("ddd",) + ("sss",),
}  # fmt: skip
"""The formats of results, by how many indices they have."""


TEXTS = (
    "y[i] = A[i,j] * x[j]",
    "y[j] = A[i,j] * x[i]",
    "C[i,k] = A[i,j] * X[j,k]",
    "C[i,k] = A[i,k] * U[i,j] * V[k,j]",
    "C[i,j] = T[i,j,k] * x[k]",
    "C[i,r] = T[i,k,l] * U[k,r] * V[l,r]",
    "C[i,j] = x[i] * A[i,j]",
    "C[i,j] = A[j,i]",
    "s = A[i,j] * X[i,j]",
    "m[i] = max(j, A[i,j] * x[j])",
    "m = min(i, j, X[i,j])",
    "p[i] = prod(j, X[i,j])",
)
FORMATS = {
    "A": ("csr", "csr", "csc", "ss", "dense"), "T": ("sss", "sss", "dss", "dense"),
    "x": ("dense", "dense", "s"),
}  # fmt: skip
EXTENTS = (1, 3, 8, 33, 70)


@st.composite
def large_programs(draw: Any) -> Program:
    """A usual text, some of whose sizes are above those of warps and blocks, with one sparse
    operand at most."""
    text = draw(st.sampled_from(TEXTS))
    ordered = "max" in text or "min" in text  # which complex numbers are not
    dtypes = [d for d in DTYPES if not (ordered and d.startswith("complex"))]
    dtype = draw(st.sampled_from(dtypes))
    assignment = parse_assignment(text)
    sizes = {i: draw(st.sampled_from(EXTENTS)) for i in all_indices(assignment)}
    arrays, stored, forms = {}, {}, {}
    for place, access in enumerate(dict.fromkeys(accesses(assignment.value))):
        random = np.random.default_rng(draw(st.integers(0, 9)) + 100 * place)
        shape = tuple(sizes[i] for i in access.indices)
        form = draw(st.sampled_from(FORMATS.get(access.tensor, ("dense",))))
        array = random.integers(1, 4, shape)
        if form != "dense":
            array = array * (random.random(shape) < draw(st.sampled_from((0.05, 0.4))))
        arrays[access.tensor] = array.astype(dtype)
        stored[access.tensor] = store(arrays[access.tensor], form)
        forms[access.tensor] = form
    return Program(text, arrays, stored, forms, None, None, None)


@st.composite
def shared_programs(draw: Any) -> Scheduled:
    """A program, commands that shape its loops, and units that share some from the outside in."""
    any_program = usual_programs(draw(st.sampled_from(DTYPES)))
    program = draw(st.one_of(large_programs(), large_programs(), any_program))
    names, loops = Names(), first_loops(program)
    modes = len(loops.assignment.target.indices)
    program = replace(program, result=draw(st.sampled_from(RESULTS[modes])) if modes else None)
    commands: list[Command] = []
    for _ in range(draw(st.integers(0, MOST_SHAPING))):
        command = draw(st.sampled_from(SHAPING))(draw, loops, program, names)
        try:
            loops = apply(loops, command)
        except ScheduleError:
            continue
        commands.append(command)
    if draw(st.integers(0, 3)) == 0:
        command = usual._precompute_tiles(draw, loops, program, names)
        try:
            loops = apply(loops, command)
            commands.append(command)
        except ScheduleError:
            pass
    order = draw(st.sampled_from(loops.orders))
    place, kept = 0, set(loops.assignment.target.indices)
    for number, unit in enumerate(draw(st.sampled_from(NESTS))):
        if place >= len(order):
            break
        serial = draw(st.integers(0, 3 if number == 0 else 9)) == 0
        place += serial and place + 1 < len(order)
        own = set(loops.provenance.roots(order[place])) <= kept
        race = draw(st.sampled_from(RACES_APART if own else RACES))
        commands.append(Parallelize(order[place], race, unit))
        place += 1
    return Scheduled(program, tuple(commands), False)


def attempts(case: Scheduled) -> Iterator[tuple[Command, ...]]:
    """The commands, then with atomic operations alone, then fewer of them: without those that shape
    loops, without inner units."""
    yield case.commands
    shared = [c for c in case.commands if isinstance(c, Parallelize)]
    yield tuple(_by_atomics(c) if isinstance(c, Parallelize) else c for c in case.commands)
    whole = first_loops(case.program).variables
    shaping = [c for c in case.commands if not isinstance(c, Parallelize | Pos | Precompute)]
    yield (*shaping, *shared)
    plain = tuple(c for c in shared if c.index in whole)
    for count in range(len(plain), 0, -1):
        yield plain[:count]


def _by_atomics(command: Parallelize) -> Parallelize:
    return replace(command, race=Race.ATOMICS)


def run(program: Program, schedule: Schedule) -> Any:
    """The result of a program on the emulated device, as a dense array."""
    if program.start is not None:
        raise ValueError("Expected a program that begins with nothing")
    found = tp.evaluate(
        program.text, program.stored, schedule=schedule, target="cuda-emulated",
        format=program.result, static=program.static,
    )  # fmt: skip
    return to_dense(found)


def check(case: Scheduled, tally: Tally) -> None:
    """Compare a schedule with the oracle, or what is left of it without what is refused."""
    for commands in attempts(case):
        try:
            found = run(case.program, Schedule(commands))
            break
        except ScheduleError as error:
            usual.check_refusal(error)
            tally.refused[usual._general(error.message)] += 1
        except DeviceError as error:
            if "Expected what kernels of a GPU compute" not in str(error):
                raise
            tally.refused[usual._general(error.message.rpartition(": ")[2])] += 1
    else:
        return
    expected = case.program.expected()
    dtype = np.asarray(expected).dtype
    error = 0 if dtype.kind in "biu" else 1e-5
    np.testing.assert_allclose(found, expected, rtol=error, atol=error)
    shared = [c for c in commands if isinstance(c, Parallelize)]
    if shared:
        tally.ran += 1
        tally.lengths[len(shared)] += 1
        tally.applied.update(c.unit.value for c in shared)


def search(count: int, tally: Tally, seed: int = 0) -> None:
    """Draw programs until so many have run with shared loops."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(shared_programs())
    def tried(case: Scheduled) -> None:
        check(case, tally)

    tried()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=5000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    tally = Tally()
    search(given.count, tally, given.seed)
    print(tally)
    return 0


if __name__ == "__main__":
    sys.exit(main())
