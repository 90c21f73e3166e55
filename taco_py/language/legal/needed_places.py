"""Which places of each value any reader looks at: the readers' own, or those of sparse siblings.

    S = Q @ K.T;  P = where(M, exp(S), 0);  y = P @ V     S and exp(S) where M stores something
    d = (M.T * S.T).sum(0)                                so far S where M stores something as well

A reader does not look at an argument where another one annihilates it, or chooses another branch.
What several readers look at is the union of their places.
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
from taco_py.language.notation.operators import KEPT, STORED
from taco_py.language.notation.parser import parse_assignment

EVERYWHERE = None
"""The places of a value that something looks at as a whole."""

_either = parse_assignment("R = a | b").value
assert isinstance(_either, Call)
EITHER = _either.operator
"""One condition or another one."""


Around = tuple[tuple[Call, int], ...]
"""Operators around a part of an expression, each with the place of the argument that holds it."""


@dataclass(slots=True, eq=False)
class NeededPlaces:
    """The places of values that any reader looks at, found from the last reader to the first.

    found  by name; no entry of values that nobody reads
    """

    stored: StoredPlaces
    found: dict[str, Places | None] = field(default_factory=dict)

    def everywhere(self, names: Iterable[str]) -> None:
        """Note that something looks at values as a whole."""
        self.found.update(dict.fromkeys(names, EVERYWHERE))

    def read(self, name: str, expr: Expr, modes: Modes) -> None:
        """Note what an expression looks at, which makes a value with these modes."""
        if name not in self.found:
            return
        for part, around in _occurrences(expr, ()):
            if part.tensor in self.stored.units:
                self._note(part.tensor, self._options(part, around, self.found[name], modes))

    def _note(self, name: str, options: Sequence[Places]) -> None:
        """Add one of several alternatives, that which adds the fewest."""
        before = self.found.get(name, frozenset())
        if before is EVERYWHERE:
            return
        more = min(options, key=lambda each: (len(each - before), sorted(map(str, each))),
                   default=None)  # fmt: skip
        self.found[name] = EVERYWHERE if more is None else before | more

    def _options(
        self, part: Access, around: Around, needed: Places | None, modes: Modes
    ) -> tuple[Places, ...]:
        """Return alternatives of places that one occurrence of an access looks at; none of all."""
        if len({*part.indices}) < len(part.indices) or part.subscripts:
            return ()
        here = self.stored.modes_of(part)
        bounds = [each for call, place in around for each in self.bounds(call, place)]
        options = self.stored.said_of(bounds, here)
        asked = _moved(needed, modes, here)
        return options if asked is None else (*options, asked)

    def bounds(self, call: Call, here: int) -> Iterator[Accesses]:
        """Yield operands that store something wherever an operator looks at one argument."""
        fills = [arg_fill(call.operator, arg, self.stored.fill(arg)) for arg in call.args]
        known = [None if place == here else fill for place, fill in enumerate(fills)]
        if call_fill(call.operator, known) is not None:
            for group in differing(call.operator, known):
                args = [call.args[place] for place in group]
                if here not in group and (both := self.stored.either(args)):
                    yield both
        if call.operator.chooses and fills[0] is not None and here == (2 if fills[0] else 1):
            yield from filter(None, self.stored.inside(call.args[0]))


def asked_where(stored: StoredPlaces, expr: Expr, part: Expr) -> Accesses | None:
    """Find operands that store something wherever an expression looks at a part of it; None where
    that is unknown, or they have other indices than the part."""
    needed, known = NeededPlaces(stored), {*free_indices(part)}
    found: Accesses = frozenset()
    for around in _paths(expr, part, ()):
        options = [
            each for call, place in around for each in needed.bounds(call, place)
            if all({*access.indices} <= known for access in each)
        ]  # fmt: skip
        if not options:
            return None
        found |= min(options, key=lambda each: (len(each - found), sorted(map(str, each))))
    return found or None


def _paths(expr: Expr, part: Expr, around: Around) -> Iterator[Around]:
    """Yield the operators around each occurrence of a part of an expression."""
    if expr == part:
        yield around
    elif isinstance(expr, Reduce):
        yield from _paths(expr.body, part, around)
    elif isinstance(expr, Call):
        for place, arg in enumerate(expr.args):
            yield from _paths(arg, part, (*around, (expr, place)))


def _occurrences(expr: Expr, around: Around) -> Iterator[tuple[Access, Around]]:
    """Yield each access of an expression with the operators around it, the outermost first."""
    match expr:
        case Access():
            yield expr, around
        case Call(_, args):
            for place, arg in enumerate(args):
                yield from _occurrences(arg, (*around, (expr, place)))
        case Reduce(_, _, body):
            yield from _occurrences(body, around)


def _moved(needed: Places | None, modes: Modes, here: Modes) -> Places | None:
    """Return places of a value with `modes` as places of what is read by `here`, None where these
    lack an index."""
    if needed is None:
        return None
    places = {index: mode for mode, index in enumerate(here) if index is not None}
    found = []
    for atom in needed:
        own = [None if mode is None else places.get(str(modes[mode]), -1) for mode in atom.modes]
        if -1 in own:
            return None
        found.append(Atom(atom.name, tuple(own)))
    return frozenset(found)


def in_order(places: Places) -> list[Atom]:
    """List places in an order of their own."""
    return sorted(places, key=str)


def kept_where(value: Expr, stored: Sequence[Expr]) -> Expr:
    """Write an expression that is computed where one of several operands stores something.

    kept_where(sum(k, Q[i,k] * K[j,k]), [M[i,j]])   →   kept(sum(…), stored(M[i,j]))
    """
    conditions: list[Expr] = [Call(STORED, (each,)) for each in stored]
    return Call(KEPT, (value, reduce(lambda a, b: Call(EITHER, (a, b)), conditions)))


def depends(inputs: Mapping[str, Sequence[str]], name: str, on: str) -> bool:
    """Tell whether a value is computed of another one, given what each value reads."""
    waiting, seen = [name], {name}
    while waiting:
        each = waiting.pop()
        if each == on:
            return True
        new = [other for other in inputs.get(each, ()) if other not in seen]
        seen.update(new)
        waiting += new
    return False
