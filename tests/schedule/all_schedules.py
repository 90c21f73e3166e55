"""Every sequence of a few commands on some programs: what random schedules meet once in a while.

    python -m tests.schedule.all_schedules [--depth 2] [--every 1] [--rest 0] [--only "A[i,k]"]

tries each command that could come next, after each other, on each program in each format: after
none, and after the tiles and positions of BEGINNINGS, with which few random ones begin. As in
`random_schedules`, a schedule is refused with a ScheduleError that says what would help, or gives
what the oracle gives; what does neither is printed, and counted. With `--every 7` each seventh
schedule is tried, spread by what it says, and others for each `--rest` from 0 to 6.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from unittest import mock

import numpy as np

from taco_py.compiler.schedule import moves
from taco_py.compiler.schedule.apply import apply, apply_all
from taco_py.compiler.schedule.commands import Command, Precompute
from taco_py.compiler.schedule.loop_state import Loops
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.tree import walk
from taco_py.language.provenance.relations import Bound, BoundKind
from tests.corpus.programs import Program, shuffled, store
from tests.machines import always_threads
from tests.schedule.random_schedules import Scheduled, Tally, check, first_loops

BEGINNINGS = (
    "",
    "split(i,i0,i1,2), pos(i1,p,A)",
    "split(j,j0,j1,3), pos(j1,p,A)",
    "divide(j,j0,j1,2), pos(j1,p,B)",
    "split(k,k0,k1,2), pos(k1,p,B)",
    "split(k,k0,k1,2), pos(k1,p,T)",
    "fuse(i,j,f), pos(f,p,A), split(p,p0,p1,3)",
    "fuse(i,j,f), pos(f,p,A), split(p,p0,p1,3), fission(p1)",
    "fuse(i,j,f), pos(f,p,A), split(p,p0,p1,3), parallelize(p0,CPUThread,Ordered)",
    "split(j,j0,j1,3), fuse(i,j0,f)",
)
SIZE = {"i": 5, "j": 7, "k": 4, "l": 3}


@dataclass(frozen=True, slots=True)
class Family:
    """An assignment, the formats of each operand that are tried, and those of the result."""

    text: str
    forms: dict[str, tuple[str, ...]]
    results: tuple[str | None, ...]


FAMILIES = (
    Family("y[i] = A[i,j] * x[j]", {"A": ("CSR", "COO", "dense"), "x": ("dense", "s")}, (None,)),
    Family("C[i,j] = A[i,k] * B[k,j]", {"A": ("CSR",), "B": ("CSR", "dense")}, ("ds", "dd")),
    Family("C[i,j] = A[i,j] + B[i,j]", {"A": ("CSR",), "B": ("CSR", "ss")}, ("ds", "dd")),
    Family("C[i,j] = A[i,j] * U[i,k] * V[j,k]", {"A": ("CSR",)}, ("ds", "dd")),
    Family("y[i] = A[i,j] * x[j] + z[i]", {"A": ("CSR", "CSC")}, (None,)),
    Family("C[i,j] = T[i,j,k] * x[k]", {"T": ("sss", "dss")}, (None, "ss")),
    Family("s = A[i,j] * B[i,j]", {"A": ("CSR",), "B": ("CSR", "dense")}, (None,)),
    Family("C[i,j] = 2 * A[i,j] + A[i,j] * 3", {"A": ("CSR", "ss")}, ("ds", "dd")),
    Family("C[i,j] = (A[i,j] + B[i,j]) * D[i,j]", {"A": ("CSR",), "D": ("CSR",)}, ("ds",)),
)


def cases() -> Iterator[Program]:
    """Each family in each of its formats, half of the elements stored; and with the entries of
    lists and rows in any order, some of them twice."""
    for family in FAMILIES:
        assignment = parse_assignment(family.text)
        shapes = {a.tensor: tuple(SIZE[i] for i in a.indices) for a in accesses(assignment.value)}
        random = np.random.default_rng(7)
        arrays = {
            name: random.integers(-4, 5, shape) * (random.random(shape) < 0.6) * 1.0
            for name, shape in shapes.items()
        }
        for chosen in product(*(family.forms.get(name, ("dense",)) for name in arrays)):
            forms = dict(zip(arrays, chosen, strict=True))
            tidy = {name: store(arrays[name], form) for name, form in forms.items()}
            mixed = {
                name: shuffled(random, arrays[name], form)
                for name, form in forms.items()
                if form in ("COO", "CSR")
            }
            for result, more in product(family.results, ({}, mixed) if mixed else ({},)):
                yield Program(family.text, arrays, {**tidy, **more}, forms, result)


def next_commands(loops: Loops, program: Program) -> Iterator[Command]:
    """The moves that are offered to users, and more workspaces and bounds than those."""
    yield from moves.candidates(loops, [n for n, f in program.forms.items() if f != "dense"])
    parts = [node for node, _ in walk(loops.assignment.value) if isinstance(node, Access | Call)]
    places = [(v,) for v in loops.variables] + list(permutations(loops.variables, 2))
    name = f"w{len(loops.names)}"
    for part, indices in product(dict.fromkeys(parts), places):
        yield Precompute(part, indices, indices, name)
    for variable in loops.variables:
        if variable in SIZE:
            yield Bound(variable, f"{variable}b", SIZE[variable], BoundKind.MAX_EXACT)


def schedules(loops: Loops, program: Program, depth: int) -> Iterator[tuple[Command, ...]]:
    """Those of exactly so many commands, each of which fits the loops that exist by then."""
    if depth == 0:
        yield ()
        return
    for command in next_commands(loops, program):
        try:
            after = apply(loops, command)
        except ScheduleError:
            continue
        for rest in schedules(after, program, depth - 1):
            yield (command, *rest)


def all_of(program: Program, depth: int) -> Iterator[tuple[Command, ...]]:
    """Those of so many commands after each of the beginnings that the program's loops allow."""
    for text in BEGINNINGS:
        beginning = Schedule.parse(text)
        try:
            loops = apply_all(first_loops(program), beginning)
        except ScheduleError:
            continue
        for commands in schedules(loops, program, depth):
            yield (*beginning.commands, *commands)


def failures(
    depth: int, every: int, rest: int, only: str, tally: Tally
) -> Iterator[tuple[Scheduled, Exception]]:
    """What neither runs as the oracle does, nor is refused as it should be."""
    for program in cases():
        if only not in repr(program):
            continue
        for commands in all_of(program, depth):
            case = Scheduled(program, commands, phases=False)
            if zlib.crc32(repr(case).encode()) % every != rest:
                continue
            try:
                check(case, tally, compiled=False)
            except Exception as error:
                yield case, error
        print(f"{program!r}: {tally.ran} ran", file=sys.stderr, flush=True)


def search(depth: int, every: int = 1, rest: int = 0, only: str = "") -> tuple[Tally, int]:
    """Try them all; tiles are smaller here than those that are offered to users."""
    tally, failed = Tally(), 0
    tiles = mock.patch.multiple(moves, TILES=(3,), PARTS=(2,), UNROLLS=(2,))
    with always_threads(), tiles:
        for case, error in failures(depth, every, rest, only, tally):
            failed += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
            told = str(error).strip().partition("\n")[0]
            print(f"{case!r}\n    {type(error).__name__} at {where}: {told}", flush=True)
    return tally, failed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Every schedule of so many commands.")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--rest", type=int, default=0)
    parser.add_argument("--only", default="", help="programs whose text has this in it")
    options = parser.parse_args(arguments)
    tally, failed = search(options.depth, options.every, options.rest, options.only)
    print(tally)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
