"""Where values are stored; elsewhere they equal their fill values.

where(M, S, -inf)      where M stores something
exp(where(M, S, -inf)) the same
A * B                  where A does, or where B does
A + B                  where A or B does
A @ B                  where the product itself does, for its sparse factors have other modes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from codegen.records import dataclass
from taco_py.language.legal.absent import arg_fill, differing, fill_of
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import Number

Modes = Sequence[str | None]
"""The index of each mode of a value; None for a mode of size 1, which accesses leave out."""


@dataclass(frozen=True, slots=True)
class Atom:
    """The places that a sparse value stores.

    modes  for each mode of the sparse value the corresponding mode of the described value, None for
           a mode of size 1
    """

    name: str
    modes: tuple[int | None, ...]


Places = frozenset[Atom]
"""The union of the places that several sparse values store."""

Accesses = frozenset[Access]


@dataclass(slots=True, eq=False)
class StoredPlaces:
    """Fill values of the values that expressions read, and where they may differ from these.

    units     whether each mode of a value has size 1, by its name
    literals  the values that are numbers
    fills     by name; None, or no entry, for full values
    places    alternatives, each a superset of the places where the value differs from its fill
    """

    units: Mapping[str, Sequence[bool]]
    literals: dict[str, Number] = field(default_factory=dict)
    fills: dict[str, Number | None] = field(default_factory=dict)
    places: dict[str, tuple[Places, ...]] = field(default_factory=dict)

    def note(self, name: str, fill: Number | None, places: tuple[Places, ...] = ()) -> None:
        """Record a value; without alternatives its places are those that it stores itself."""
        self.fills[name] = fill
        if fill is not None:
            modes = tuple(None if unit else mode for mode, unit in enumerate(self.units[name]))
            self.places[name] = places or (frozenset((Atom(name, modes),)),)

    def is_sparse(self, name: str) -> bool:
        """Tell whether a value is sparse."""
        return self.fills.get(name) is not None

    def absent_value(self, name: str) -> Number | None:
        """Return the value of an operand where it stores nothing; of a literal its number."""
        return self.literals.get(name, self.fills.get(name))

    def fill(self, expr: Expr) -> Number | None:
        """Return the fill value of an expression, None where it has none."""
        return fill_of(expr, lambda access: self.absent_value(access.tensor))

    def inside(self, expr: Expr) -> tuple[Accesses, ...]:
        """Return alternative sets of operands that bound where an expression differs from its fill.

        Some operand of each set stores something wherever the expression differs. There is none for
        an expression without a fill value, or where the operands are reduced over.

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
                    operands for operands in self.inside(body)
                    if operands and all(index not in access.indices for access in operands)
                )  # fmt: skip
            case Call(operator, args):
                if self.fill(expr) is None:
                    return ()
                arg_fills = [arg_fill(operator, arg, self.fill(arg)) for arg in args]
                groups = [
                    [args[place] for place in group] for group in differing(operator, arg_fills)
                ]
                unions = [self.either(group) for group in groups]
                return tuple(operands for operands in unions if operands is not None)

    def either(self, args: Sequence[Expr]) -> Accesses | None:
        """Return operands that bound where one of several expressions differs from its fill, None
        if unknown."""
        operands: Accesses = frozenset()
        for arg in args:
            options = self.inside(arg)
            if not options:
                return None
            operands |= min(options, key=len)
        return operands

    def said_of(self, alternatives: Sequence[Accesses], modes: Modes) -> tuple[Places, ...]:
        """Express alternatives as places of a value with these modes; drop those with other
        indices.

        {A[j,i]}, of i and j   →   {Atom("A", (1, 0))}
        """
        converted = (self._said(operands, modes) for operands in alternatives)
        return tuple(dict.fromkeys(places for places in converted if places))

    def _said(self, accesses: Accesses, modes: Modes) -> Places | None:
        mode_of_index = {index: mode for mode, index in enumerate(modes) if index is not None}
        places: Places = frozenset()
        for access in accesses:
            if not {*access.indices} <= mode_of_index.keys():
                return None
            modes_read = self.modes_of(access)
            for atom in min(self.places[access.tensor], key=len):
                places |= {Atom(atom.name, tuple(
                    None if mode is None else mode_of_index[str(modes_read[mode])]
                    for mode in atom.modes
                ))}  # fmt: skip
        return places

    def modes_of(self, access: Access) -> list[str | None]:
        """Return the index of each mode of the tensor that an access reads, None for size 1."""
        indices = iter(access.indices)
        return [None if unit else next(indices) for unit in self.units[access.tensor]]
