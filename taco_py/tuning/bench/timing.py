"""The schedule that is fastest on the operands at hand, timed once and remembered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codegen.records import dataclass
from taco_py.arguments.operands import facts
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.prepare import prepare, start
from taco_py.data.kernels import KERNELS
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.ir.plan import Plan
from taco_py.planner.unit_modes import squeezed_facts
from taco_py.running.execute.run import run

if TYPE_CHECKING:
    from taco_py.tuning.space.candidates import Tried


@dataclass(frozen=True, slots=True)
class Measured:
    """The settings that are fastest on these operands, and what they were compared with.

    known  whether an earlier process found them
    """

    settings: CallOptions
    taken: str
    tried: tuple[Tried, ...]
    known: bool = False


def measured(
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: CallOptions,
    squeezed: Squeezed = (),
) -> Measured:
    """What is fastest on these operands. It is remembered for operands with the same facts, in this
    process and beside the kernels on disk."""
    plain = replace(settings, measure=False)
    prepared = prepare(assignment, objects, plain, squeezed)
    key = ("measured", assignment, squeezed, plain, facts(prepared.given, plain.counts))

    def find() -> Measured:
        from taco_py.tuning.session.timing_store import keep, note_key, recalled
        from taco_py.tuning.space.candidates import PLAIN, Choice, alternatives, fastest

        def plan(choice: CallOptions) -> Plan:
            return prepare(assignment, objects, choice, squeezed).plan

        def attempt(choice: CallOptions) -> None:
            ready = prepare(assignment, objects, choice, squeezed)
            run(ready.plan, start(ready, choice, None))

        operands = {name: g.operand for name, g in prepared.given.items()}
        operands |= {name: squeezed_facts(operands[name], axes) for name, axes in squeezed}
        type = TensorType(prepared.kind.format, prepared.dtype.name)
        choices = (
            Choice(plain),
            *alternatives(prepared.assignment, operands, type, plain, prepared.plan.log),
        )
        note = note_key(key, prepared.given)
        found = recalled(note, choices)
        if found is not None:
            choice, tried = found
            return Measured(choice.settings, choice.label, tried, known=True)
        taken, tried = fastest(plain, choices[1:], attempt, plan)
        label = next((c.label for c in choices if c.settings == taken), PLAIN)
        keep(note, label, tried)
        return Measured(taken, label, tried)

    return KERNELS.recall(key, find)


def told_times(found: Measured) -> Iterator[str]:
    """What was timed, the fastest first, and what was not, with the reason."""
    where = "in an earlier process, remembered" if found.known else "in this process"
    yield f"measured  {found.taken}; {where}"
    timed = sorted((t.seconds, t.label) for t in found.tried if t.seconds is not None)
    for seconds, label in timed:
        taken = ", taken" if label == found.taken else ""
        yield f"  {seconds * 1e3:8.3f} ms  {label}{taken}"
    for each in found.tried:
        if each.seconds is None:
            yield f"  {'not timed':>11}  {each.label}: {each.why}"
