"""The points at which a statement runs: its written ranges, and where its accesses are inside.

    B[i,j] = A[i-1,j] + A[i+1,j]     i from 1 to the size of A's first mode - 1

Each subscript e of an array of size n says 0 <= e < n. Where it has the index of an open loop, the
innermost such loop ends there; a subscript in written indices alone restricts nothing, and must be
inside wherever the statement runs (`required`, checked for every call).
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
    """That `0 <= subscript < size of mode` wherever `statement` runs."""

    statement: str
    access: Access
    mode: int
    subscript: Affine


@dataclass(frozen=True, slots=True)
class Domain:
    """The loops of a statement, conditions `>= 0` beside them, and what is left to check."""

    loops: tuple[model.Loop, ...]
    guards: tuple[Affine, ...]
    required: tuple[Required, ...]


def domain(each: Placed, sizes: Mapping[Mode, str]) -> Domain:
    """Where a statement runs. `sizes` names the size of each mode.

    Raises:
        NotationError: an open loop that no access ends.
    """
    lower = {loop.index: list(loop.range.lower) for loop in each.loops}
    upper = {loop.index: list(loop.range.upper) for loop in each.loops}
    guards: list[Affine] = []
    required: list[Required] = []
    for access, mode, value in _subscripts(each):
        last = variable(sizes[access.tensor, mode]) - 1
        loop = _closed_by(value, each.loops)
        if loop is None:
            required.append(Required(each.name, access, mode, value))
            continue
        for at_least_zero in (value, last - value):
            _restrict(loop, at_least_zero, each.indices, lower, upper, guards)
    loops = tuple(_loop(each, loop, lower, upper) for loop in each.loops)
    return Domain(loops, tuple(dict.fromkeys(guards)), tuple(required))


def _subscripts(each: Placed) -> Iterator[tuple[Access, int, Affine]]:
    for access in dict.fromkeys(each.update.accesses):
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
    """`condition >= 0` as a bound of `loop` where it can be one, else as a guard."""
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
    each: Placed,
    loop: Loop,
    lower: Mapping[str, list[Affine]],
    upper: Mapping[str, list[Affine]],
) -> model.Loop:
    if not (lower[loop.index] and upper[loop.index]):
        raise NotationError(
            f"Expected a subscript that ends the loop over {loop.index}, found none in "
            f"{each.update.target.tensor}[{', '.join(each.update.target.indices)}] = …",
            each.update.span,
            f"write its range, as in `for {loop.index} in 0..N: …`",
        )
    return model.Loop(
        loop.index, _tightest(lower[loop.index], max), _tightest(upper[loop.index], min)
    )


def _tightest(bounds: list[Affine], extreme: Callable[[list[int]], int]) -> tuple[Affine, ...]:
    """Of bounds that differ in a constant only, the one that matters."""
    groups: dict[Affine, list[int]] = {}
    for bound in bounds:
        groups.setdefault(bound - bound.constant, []).append(bound.constant)
    return tuple(linear + extreme(constants) for linear, constants in groups.items())


# ---------------------------------------------------------------- sizes of modes


def size_classes(statements: tuple[Placed, ...]) -> dict[Mode, Mode]:
    """For each mode the first one that is known to have its size.

    In one statement, modes that an implied index subscripts without an offset have one size, as
    in index notation.
    """
    parents: dict[Mode, Mode] = {}

    def root(mode: Mode) -> Mode:
        while parents.setdefault(mode, mode) != mode:
            mode = parents[mode]
        return mode

    for each in statements:
        bare: dict[str, Mode] = {}
        for access, mode, value in _subscripts(each):
            here = root((access.tensor, mode))
            name = _bare_index(value, each.loops)
            if name is not None:
                first = root(bare.setdefault(name, here))
                parents[max(first, here)] = min(first, here)
    return {mode: root(mode) for mode in tuple(parents)}


def same_sizes(statements: tuple[Placed, ...]) -> Iterator[tuple[str, Access, int, Access, int]]:
    """Yield pairs of modes that must agree: (index, access, mode, access, mode)."""
    for each in statements:
        bare: dict[str, tuple[Access, int]] = {}
        for access, mode, value in _subscripts(each):
            name = _bare_index(value, each.loops)
            if name is not None:
                first = bare.setdefault(name, (access, mode))
                yield name, *first, access, mode


def _bare_index(value: Affine, loops: tuple[Loop, ...]) -> str | None:
    """Return the implied index that `value` is."""
    for loop in loops:
        if loop.implied and value == variable(loop.index):
            return loop.index
    return None
