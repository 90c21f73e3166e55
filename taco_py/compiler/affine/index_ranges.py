"""The domain of a statement: its explicit ranges, and the points whose accesses are in bounds.

    B[i,j] = A[i-1,j] + A[i+1,j]     i from 1 to the size of A's first mode - 1

Each subscript e of an array of size n requires 0 <= e < n. Where it has the index of an open loop,
the innermost such loop ends there; a subscript in explicit indices alone restricts nothing, and
must be in bounds wherever the statement runs (`required`, checked for every call).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from codegen.records import dataclass
from polyhedral import model
from polyhedral.affine import Affine, variable
from taco_py.compiler.affine.nodes import subscripts
from taco_py.compiler.affine.statements import Loop, Placed
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.notation.nodes import Access

Mode = tuple[str, int]
"""A tensor and one of its modes, counted from 0."""


@dataclass(frozen=True, slots=True)
class Required:
    """The condition `0 <= subscript < size of mode` wherever `statement` runs."""

    statement: str
    access: Access
    mode: int
    subscript: Affine


@dataclass(frozen=True, slots=True)
class Domain:
    """The loops of a statement, further conditions `>= 0`, and the conditions that calls check."""

    loops: tuple[model.Loop, ...]
    guards: tuple[Affine, ...]
    required: tuple[Required, ...]


def domain(statement: Placed, sizes: Mapping[Mode, str]) -> Domain:
    """Return the domain of a statement; `sizes` names the size of each mode.

    Raises:
        NotationError: an open loop that no access ends.
    """
    lower = {loop.index: list(loop.range.lower) for loop in statement.loops}
    upper = {loop.index: list(loop.range.upper) for loop in statement.loops}
    guards: list[Affine] = []
    required: list[Required] = []
    for access, mode, value in _subscripts(statement):
        last = variable(sizes[access.tensor, mode]) - 1
        loop = _closed_by(value, statement.loops)
        if loop is None:
            required.append(Required(statement.name, access, mode, value))
            continue
        for at_least_zero in (value, last - value):
            _restrict(loop, at_least_zero, statement.indices, lower, upper, guards)
    loops = tuple(_loop(statement, loop, lower, upper) for loop in statement.loops)
    return Domain(loops, tuple(dict.fromkeys(guards)), tuple(required))


def _subscripts(statement: Placed) -> Iterator[tuple[Access, int, Affine]]:
    for access in dict.fromkeys(statement.update.accesses):
        for mode, value in enumerate(subscripts(access)):
            yield access, mode, value


def _closed_by(value: Affine, loops: tuple[Loop, ...]) -> Loop | None:
    """Return the innermost loop with an open end whose index is in `value`."""
    for loop in reversed(loops):
        if loop.index in value.names and not (loop.range.lower and loop.range.upper):
            return loop
    return None


def _restrict(
    loop: Loop,
    condition: Affine,
    indices: tuple[str, ...],
    lower: dict[str, list[Affine]],
    upper: dict[str, list[Affine]],
    guards: list[Affine],
) -> None:
    """Add `condition >= 0` as a bound of `loop` where it can be one, else as a guard."""
    factor = condition.coefficient(loop.index)
    rest = condition - variable(loop.index) * factor
    inner = indices[indices.index(loop.index) + 1 :]
    is_bound = abs(factor) == 1 and not set(rest.names) & set(inner)
    if is_bound and factor == 1 and not loop.range.lower:
        lower[loop.index].append(-rest)
    elif is_bound and factor == -1 and not loop.range.upper:
        upper[loop.index].append(rest + 1)
    else:
        guards.append(condition)


def _loop(
    statement: Placed,
    loop: Loop,
    lower: Mapping[str, list[Affine]],
    upper: Mapping[str, list[Affine]],
) -> model.Loop:
    if not (lower[loop.index] and upper[loop.index]):
        raise NotationError(
            f"Expected a subscript that ends the loop over {loop.index}, found none in "
            f"{statement.update.target.tensor}[{', '.join(statement.update.target.indices)}] = …",
            statement.update.span,
            f"write its range, as in `for {loop.index} in 0..N: …`",
        )
    return model.Loop(
        loop.index, _tightest(lower[loop.index], max), _tightest(upper[loop.index], min)
    )


def _tightest(bounds: list[Affine], extreme: Callable[[list[int]], int]) -> tuple[Affine, ...]:
    """Return the bounds, except bounds that are weaker than another by a constant."""
    groups: dict[Affine, list[int]] = {}
    for bound in bounds:
        groups.setdefault(bound - bound.constant, []).append(bound.constant)
    return tuple(linear + extreme(constants) for linear, constants in groups.items())


# ---------------------------------------------------------------- sizes of modes


def size_classes(statements: tuple[Placed, ...]) -> dict[Mode, Mode]:
    """Return, for each mode, the first mode that is known to have its size.

    In one statement, modes that an implied index subscripts without an offset have one size, as
    in index notation.
    """
    parents: dict[Mode, Mode] = {}

    def root(mode: Mode) -> Mode:
        while parents.setdefault(mode, mode) != mode:
            mode = parents[mode]
        return mode

    for statement in statements:
        bare: dict[str, Mode] = {}
        for access, mode, value in _subscripts(statement):
            current = root((access.tensor, mode))
            name = _bare_index(value, statement.loops)
            if name is not None:
                first = root(bare.setdefault(name, current))
                parents[max(first, current)] = min(first, current)
    return {mode: root(mode) for mode in tuple(parents)}


def same_sizes(statements: tuple[Placed, ...]) -> Iterator[tuple[str, Access, int, Access, int]]:
    """Yield pairs of modes that must agree: (index, access, mode, access, mode)."""
    for statement in statements:
        bare: dict[str, tuple[Access, int]] = {}
        for access, mode, value in _subscripts(statement):
            name = _bare_index(value, statement.loops)
            if name is not None:
                first = bare.setdefault(name, (access, mode))
                yield name, *first, access, mode


def _bare_index(value: Affine, loops: tuple[Loop, ...]) -> str | None:
    """Return the implied index that `value` consists of, if it does."""
    for loop in loops:
        if loop.implied and value == variable(loop.index):
            return loop.index
    return None
