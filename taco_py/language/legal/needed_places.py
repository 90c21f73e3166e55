"""The places of each value that readers need: their own places, or those of sparse siblings.

    S = Q @ K.T;  P = where(M, exp(S), 0);  y = P @ V     S and exp(S) where M stores something
    d = (M.T * S.T).sum(0)                                so far S where M stores something as well

A reader does not need an argument where another argument annihilates it, or chooses another branch.
Several readers need the union of their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import reduce

from codegen.records import dataclass
from taco_py.language.legal.absent import arg_fill, call_fill, differing
from taco_py.language.legal.stored_places import Accesses, Atom, Modes, Places, StoredPlaces
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.nodes import Access, Call, Expr, Reduce
from taco_py.language.notation.operators import KEEP, STORED
from taco_py.language.notation.parser import parse_assignment

EVERYWHERE = None
"""The places of a value that a reader needs in full."""

_either = parse_assignment("R = a | b").value
assert isinstance(_either, Call)
EITHER = _either.operator
"""The operator that is true where one of two conditions is."""


Context = tuple[tuple[Call, int], ...]
"""Operators around a part of an expression, each with the place of the argument that holds it."""


@dataclass(slots=True, eq=False)
class NeededPlaces:
    """The places of values that readers need, collected from the last reader to the first.

    places  by name; no entry for values that nobody reads
    """

    stored: StoredPlaces
    places: dict[str, Places | None] = field(default_factory=dict)

    def everywhere(self, names: Iterable[str]) -> None:
        """Record that readers need all places of some values."""
        self.places.update(dict.fromkeys(names, EVERYWHERE))

    def read(self, name: str, expr: Expr, modes: Modes) -> None:
        """Record the places that an expression reads, given the modes of its result."""
        if name not in self.places:
            return
        for part, context in _occurrences(expr, ()):
            if part.tensor in self.stored.units:
                self._note(part.tensor, self._options(part, context, self.places[name], modes))

    def _note(self, name: str, options: Sequence[Places]) -> None:
        """Record the one of several alternatives that adds the fewest places."""
        before = self.places.get(name, frozenset())
        if before is EVERYWHERE:
            return
        more = min(options, key=lambda option: (len(option - before), sorted(map(str, option))),
                   default=None)  # fmt: skip
        self.places[name] = EVERYWHERE if more is None else before | more

    def _options(
        self, part: Access, context: Context, result_places: Places | None, modes: Modes
    ) -> tuple[Places, ...]:
        """Return alternative sets of places that one occurrence of an access needs; () for
        everywhere."""
        if len({*part.indices}) < len(part.indices) or part.subscripts:
            return ()
        operand_modes = self.stored.modes_of(part)
        bounds = [bound for call, place in context for bound in self.bounds(call, place)]
        options = self.stored.said_of(bounds, operand_modes)
        from_result = _places_of_operand(result_places, modes, operand_modes)
        return options if from_result is None else (*options, from_result)

    def bounds(self, call: Call, argument: int) -> Iterator[Accesses]:
        """Yield operands that store something wherever an operator looks at one argument."""
        fills = [arg_fill(call.operator, arg, self.stored.fill(arg)) for arg in call.args]
        other_fills = [None if place == argument else fill for place, fill in enumerate(fills)]
        if call_fill(call.operator, other_fills) is not None:
            for group in differing(call.operator, other_fills):
                args = [call.args[place] for place in group]
                if argument not in group and (union := self.stored.either(args)):
                    yield union
        if call.operator.chooses and fills[0] is not None and argument == (2 if fills[0] else 1):
            yield from filter(None, self.stored.inside(call.args[0]))


def asked_where(stored: StoredPlaces, expr: Expr, part: Expr) -> Accesses | None:
    """Find operands that store something wherever an expression looks at a part of it.

    None where that is unknown, or where the operands have other indices than the part.
    """
    needed_places, indices = NeededPlaces(stored), {*free_indices(part)}
    operands: Accesses = frozenset()
    for context in _paths(expr, part, ()):
        options = [
            bound for call, place in context for bound in needed_places.bounds(call, place)
            if all({*access.indices} <= indices for access in bound)
        ]  # fmt: skip
        if not options:
            return None
        operands |= min(
            options, key=lambda option: (len(option - operands), sorted(map(str, option)))
        )
    return operands or None


def _paths(expr: Expr, part: Expr, context: Context) -> Iterator[Context]:
    """Yield the enclosing operators of each occurrence of a part of an expression."""
    if expr == part:
        yield context
    elif isinstance(expr, Reduce):
        yield from _paths(expr.body, part, context)
    elif isinstance(expr, Call):
        for place, arg in enumerate(expr.args):
            yield from _paths(arg, part, (*context, (expr, place)))


def _occurrences(expr: Expr, context: Context) -> Iterator[tuple[Access, Context]]:
    """Yield each access of an expression with its enclosing operators, the outermost first."""
    match expr:
        case Access():
            yield expr, context
        case Call(_, args):
            for place, arg in enumerate(args):
                yield from _occurrences(arg, (*context, (expr, place)))
        case Reduce(_, _, body):
            yield from _occurrences(body, context)


def _places_of_operand(places: Places | None, modes: Modes, operand_modes: Modes) -> Places | None:
    """Convert places of a value with `modes` to places of an operand with `operand_modes`.

    None where the operand lacks an index of the places.
    """
    if places is None:
        return None
    mode_of_index = {index: mode for mode, index in enumerate(operand_modes) if index is not None}
    converted = []
    for atom in places:
        atom_modes = [
            None if mode is None else mode_of_index.get(str(modes[mode]), -1) for mode in atom.modes
        ]
        if -1 in atom_modes:
            return None
        converted.append(Atom(atom.name, tuple(atom_modes)))
    return frozenset(converted)


def in_order(places: Places) -> list[Atom]:
    """List places in a reproducible order."""
    return sorted(places, key=str)


def kept_where(value: Expr, stored: Sequence[Expr]) -> Expr:
    """Write an expression that is computed where one of several operands stores something.

    kept_where(sum(k, Q[i,k] * K[j,k]), [M[i,j]])   →   kept(sum(…), stored(M[i,j]))
    """
    conditions: list[Expr] = [Call(STORED, (operand,)) for operand in stored]
    return Call(KEEP, (value, reduce(lambda a, b: Call(EITHER, (a, b)), conditions)))


def depends(inputs: Mapping[str, Sequence[str]], name: str, on: str) -> bool:
    """Tell whether a value is computed from another one, by the names that each value reads."""
    waiting, visited = [name], {name}
    while waiting:
        value = waiting.pop()
        if value == on:
            return True
        new = [other for other in inputs.get(value, ()) if other not in visited]
        visited.update(new)
        waiting += new
    return False
