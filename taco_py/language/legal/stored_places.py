"""Where values are stored: nowhere else do they differ from their fill values.

where(M, S, -inf)      where M stores something
exp(where(M, S, -inf)) the same
A * B                  where A does, or where B does
A + B                  where A or B does
A @ B                  where it does itself, for its sparse factors have other modes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from codegen.records import dataclass
from taco_py.language.legal.absent import arg_fill, differing, fill_of
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Number

Modes = Sequence[str | None]
"""The index of each mode of a value, None of one of size 1, which accesses leave out."""


@dataclass(frozen=True, slots=True)
class Atom:
    """The places that a sparse value stores.

    modes  for each mode of it which mode it is of what it is said of, None for one of size 1
    """

    name: str
    modes: tuple[int | None, ...]


Places = frozenset[Atom]
"""Where any of several sparse values stores something."""

Accesses = frozenset[Access]


@dataclass(slots=True, eq=False)
class StoredPlaces:
    """Fill values of the values that expressions read, and where they may differ from these.

    units     whether each mode of a value has size 1, by its name
    literals  the values that are numbers
    fills     by name; None, or no entry, of values that are stored as a whole
    places    alternatives, each of which holds all places where the value differs from its fill
    """

    units: Mapping[str, Sequence[bool]]
    literals: dict[str, Number] = field(default_factory=dict)
    fills: dict[str, Number | None] = field(default_factory=dict)
    places: dict[str, tuple[Places, ...]] = field(default_factory=dict)

    def note(self, name: str, fill: Number | None, places: tuple[Places, ...] = ()) -> None:
        """Note a value; where nothing else says its places, they are its own."""
        self.fills[name] = fill
        if fill is not None:
            own = tuple(None if unit else mode for mode, unit in enumerate(self.units[name]))
            self.places[name] = places or (frozenset((Atom(name, own),)),)

    def is_sparse(self, name: str) -> bool:
        """Tell whether a value leaves elements out."""
        return self.fills.get(name) is not None

    def known(self, name: str) -> Number | None:
        """Return what a value is where it stores nothing, or everywhere as a number."""
        return self.literals.get(name, self.fills.get(name))

    def fill(self, expr: Expr) -> Number | None:
        """Return the fill value of an expression, None where it has none."""
        return fill_of(expr, lambda access: self.known(access.tensor))

    def inside(self, expr: Expr) -> tuple[Accesses, ...]:
        """Return alternatives of operands that store something wherever an expression differs from
        its fill value; none where it has no fill, or they are reduced over.

        A[i,j] * x[j] + B[i,j]   →   ({A[i,j], B[i,j]},)
        """
        match expr:
            case Literal():
                return (frozenset(),)
            case Access():
                if expr.tensor in self.literals:
                    return (frozenset(),)
                return (frozenset((expr,)),) if self.is_sparse(expr.tensor) else ()
            case Reduce(_, index, body):
                return tuple(
                    each for each in self.inside(body)
                    if each and all(index not in access.indices for access in each)
                )  # fmt: skip
            case Call(operator, args):
                if self.fill(expr) is None:
                    return ()
                own = [arg_fill(operator, arg, self.fill(arg)) for arg in args]
                groups = [[args[place] for place in group] for group in differing(operator, own)]
                unions = [self.either(group) for group in groups]
                return tuple(each for each in unions if each is not None)

    def either(self, args: Sequence[Expr]) -> Accesses | None:
        """Return where one of several expressions differs from its fill, None where that is
        unknown."""
        found: Accesses = frozenset()
        for arg in args:
            options = self.inside(arg)
            if not options:
                return None
            found |= min(options, key=len)
        return found

    def said_of(self, alternatives: Sequence[Accesses], modes: Modes) -> tuple[Places, ...]:
        """Say alternatives of a value with these modes, where they have no other.

        {A[j,i]}, of i and j   →   {Atom("A", (1, 0))}
        """
        found = (self._said(each, modes) for each in alternatives)
        return tuple(dict.fromkeys(each for each in found if each))

    def _said(self, accesses: Accesses, modes: Modes) -> Places | None:
        own = {index: mode for mode, index in enumerate(modes) if index is not None}
        found: Places = frozenset()
        for access in accesses:
            if not {*access.indices} <= own.keys():
                return None
            here = self.modes_of(access)
            for atom in min(self.places[access.tensor], key=len):
                found |= {Atom(atom.name, tuple(
                    None if mode is None else own[str(here[mode])] for mode in atom.modes
                ))}  # fmt: skip
        return found

    def modes_of(self, access: Access) -> list[str | None]:
        """Return the index of each mode of what an access reads."""
        indices = iter(access.indices)
        return [None if unit else next(indices) for unit in self.units[access.tensor]]
