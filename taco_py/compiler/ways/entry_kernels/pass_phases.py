"""The loops that a pass over entries is made of: over the entries of rows, or of all rows at once.

    v = load A[i,p];  w = sub v m;  e = exp w;  store t[p] = e;  z = reduce add e
    →  row by row: v, w;   all entries: e, store;   row by row: z

`m` is a number of a row, and so is `z`. What takes long runs over the entries of a group of rows as
one loop, which has no short rows; so does what is read at a coordinate. A load is done again in
each loop that needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from codegen.records import dataclass
from taco_py.compiler.dataflow.build_dataflow import is_quick
from taco_py.compiler.dataflow.nodes import (
    Compute,
    Instruction,
    Load,
    Pass,
    Reduce,
    Store,
    value_made,
    values_read,
)


@dataclass(frozen=True, slots=True)
class PassPhase:
    """One loop of a pass: `by_rows`, or over all entries of a group."""

    by_rows: bool
    body: tuple[Instruction, ...]
    position: str

    @property
    def values(self) -> frozenset[str]:
        """Return the values that it makes for each entry."""
        steps = (step for step in self.body if not isinstance(step, Reduce))
        return frozenset(name for step in steps if (name := value_made(step)) is not None)

    @property
    def read(self) -> frozenset[str]:
        """Return the values that it reads, those at which it loads included."""
        return frozenset(name for s in self.body for name in names_read(s, self.position))


def names_read(step: Instruction, position: str) -> tuple[str, ...]:
    """Return the values that an instruction reads, and the indices at which it loads: none where
    there is an element for each position."""
    if isinstance(step, Load):
        return () if position in step.indices else step.indices
    return values_read(step)


def pass_phases(one: Pass, of_rows: Set[str]) -> tuple[PassPhase, ...]:
    """Return the loops of a pass over entries, in order.

    of_rows  the values of which each row has one, and the indices of slabs
    """
    (position,) = one.over
    stored = {step.buffer for step in one.body if isinstance(step, Store)}
    makers = {name: step for step in one.body if (name := value_made(step)) is not None}
    light: set[str] = set()
    numbers: dict[str, int] = {}
    placed: dict[int, list[Instruction]] = {}
    for step in one.body:
        read = [name for name in names_read(step, position) if name in makers]
        name = value_made(step)
        if name is not None and _is_light(step, stored, {*read}, light, of_rows, position):
            light.add(name)
            continue
        least = max((numbers[other] for other in read if other in numbers), default=0)
        number = _number(step, least, bool(of_rows & {*names_read(step, position)}))
        placed.setdefault(number, []).append(step)
        if name is not None:
            numbers[name] = number
    return tuple(
        PassPhase(
            number % 2 == 1, tuple(_after_light(placed[number], makers, light, position)), position
        )
        for number in sorted(placed)
    )


def _is_light(
    step: Instruction,
    stored: Set[str],
    read: Set[str],
    light: Set[str],
    of_rows: Set[str],
    position: str,
) -> bool:
    """Tell whether an instruction is done again in each loop that needs it.

    read  the values of the pass that it reads; a load that has some is at a coordinate
    """
    match step:
        case Load(_, _, buffer, indices):
            return buffer not in stored and not read and position in indices
        case Compute(_, _, operator, _):
            return is_quick(operator) and read <= light and not of_rows & {*values_read(step)}
    return False


def _number(step: Instruction, least: int, reads_row: bool) -> int:
    """Return the loop of an instruction, from `least` on: odd ones run row by row."""
    if isinstance(step, Reduce) or reads_row:
        return least + (least + 1) % 2
    if isinstance(step, Load) or (isinstance(step, Compute) and not is_quick(step.operator)):
        return least + least % 2
    return least


def _after_light(
    steps: list[Instruction], makers: dict[str, Instruction], light: Set[str], position: str
) -> Iterator[Instruction]:
    """Yield instructions, each behind the light ones that it reads."""
    present: set[str] = set()

    def before(step: Instruction) -> Iterator[Instruction]:
        for name in names_read(step, position):
            if name in light and name not in present:
                present.add(name)
                yield from before(makers[name])
                yield makers[name]

    for step in steps:
        yield from before(step)
        yield step
