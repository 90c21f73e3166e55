"""Kernels of a plan that do not depend on each other, and run on threads that share them.

    kernel0(t0, a0, a0_0)         t0 and t1 are made before
    kernel1(t1, a1, a1_0)    →    if threads > 1 and a0_0 + a1_0 - max(a0_0, a1_0) >= 15000:
                                      together(threads, kernel0, (t0, a0, a0_0, ), kernel1, …)
                                  else:
                                      kernel0(t0, a0, a0_0)
                                      kernel1(t1, a1, a1_0)

A kernel that shares its own loops does so where it has enough iterations; such kernels run in turn.
What other threads take over must be worth waking them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine
from taco_py.running.execute.independent_kernels import least_taken_over


@dataclass(frozen=True, slots=True)
class KernelCall:
    """The line that calls a kernel, and what it becomes beside other kernels.

    number  of its step
    alone   its arguments with one thread
    work    the expression of its iterations
    shares  whether it shares its loops where these are many
    """

    number: int
    line: str
    alone: str
    work: str
    shares: bool


def with_groups(
    steps: Sequence[Sequence[str]],
    groups: Sequence[Sequence[int]],
    calls: Mapping[int, KernelCall],
    machine: Machine,
) -> list[list[str]]:
    """Return the lines of steps, in which the last kernel of each group calls all of it."""
    lines_of = [[*lines] for lines in steps]
    for group in groups:
        if all(number in calls for number in group):
            for number in group:
                lines_of[number].remove(calls[number].line)
            lines_of[group[-1]] += calls_together([calls[number] for number in group], machine)
    return lines_of


def calls_together(calls: Sequence[KernelCall], machine: Machine) -> Iterator[str]:
    """Yield the lines that run the kernels of a group."""
    least = machine.units.parallel_iterations
    works = [f"work{call.number}" for call in calls]
    yield f"{', '.join(works)} = {', '.join(call.work for call in calls)}"
    conditions = [f"work{call.number} < {least}" for call in calls if call.shares]
    taken_over = f"{' + '.join(works)} - max({', '.join(works)}) >= {least_taken_over(machine)}"
    pairs = ", ".join(f"kernel{call.number}, {_as_tuple(call.alone)}" for call in calls)
    yield f"if {' and '.join(('threads > 1', *conditions, taken_over))}:"
    yield f"    together(threads, {pairs})"
    yield "else:"
    for call in calls:
        yield f"    {call.line}"


def _as_tuple(arguments: str) -> str:
    """Write arguments as a tuple; a kernel of numbers alone has none."""
    return f"({arguments}, )" if arguments else "()"
