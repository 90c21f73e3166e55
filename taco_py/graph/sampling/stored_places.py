"""Where values of a graph are stored: nowhere else do they differ from their fill values.

    where(M, S, -inf)      where M stores something
    exp(where(M, S, -inf)) the same
    A * B                  where A does, or where B does
    A + B                  where A or B does
    A @ B                  where it does itself, for its sparse factors have other modes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from codegen.records import dataclass
from taco_py.graph.fission.expressible import literal_of
from taco_py.graph.graph_builder import LAYOUTS
from taco_py.graph.nodes import Constant, Fact, Graph, Leaf, Node
from taco_py.graph.position_operands import is_positions
from taco_py.graph.primitives.family import Index
from taco_py.graph.primitives.primitive_table import PRIMITIVES
from taco_py.graph.sampling.fills_of_values import expression_of, fill_of_value, place_in
from taco_py.legal.absent import arg_fill, differing, fill_of
from taco_py.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.notation.operators import Number

KEEPS_PLACES = ("astype", "copy", "slice", "reshape")
"""Calls of NumPy of which a sparse operand has a sparse result, 0 where it stores nothing."""


@dataclass(frozen=True, slots=True)
class Atom:
    """The places that a sparse value of a graph stores.

    modes  for each mode of it which mode it is of what it is said of, None for one of size 1
    """

    name: str
    modes: tuple[int | None, ...]


Places = frozenset[Atom]
"""Where any of several sparse values stores something."""

Accesses = frozenset[Access]


@dataclass(slots=True, eq=False)
class StoredPlaces:
    """Fill values of a graph's values, and where they may differ from these.

    fills   by name; None of values that are stored as a whole
    places  alternatives, each of which holds all places where the value differs from its fill
    """

    graph: Graph
    facts: Mapping[str, Fact]
    fills: dict[str, Number | None] = field(default_factory=dict)
    places: dict[str, tuple[Places, ...]] = field(default_factory=dict)
    literals: dict[str, Number] = field(default_factory=dict)

    def look(self) -> None:
        """Find both for each value, from the operands on."""
        leaves: Sequence[Leaf] = self.graph.leaves
        for leaf in leaves:
            self._note(leaf.name, leaf.fact.fill if leaf.fact.sparsity else None, ())
            if isinstance(leaf, Constant) and not leaf.fact.order:
                literal = literal_of(leaf)
                if literal is not None:
                    self.literals[leaf.name] = literal.value
        for node in self.graph.nodes:
            if node.operator in PRIMITIVES:
                self._note(node.name, *self._of(node))
            else:
                self._note(node.name, self._of_numpy(node), ())

    def _note(self, name: str, fill: Number | None, places: tuple[Places, ...]) -> None:
        """Note a value; where it alone knows its places, they are its own."""
        self.fills[name] = fill
        if fill is not None:
            units = self.facts[name].units
            own = tuple(None if unit else mode for mode, unit in enumerate(units))
            self.places[name] = places or (frozenset((Atom(name, own),)),)

    def _of_numpy(self, node: Node) -> Number | None:
        if is_positions(node) or node.get("call") not in KEEPS_PLACES:
            return None
        return 0 if all(self.fills[name] == 0 for name in node.inputs) else None

    def _of(self, node: Node) -> tuple[Number | None, tuple[Places, ...]]:
        """The fill of a primitive and its places."""
        if node.operator in LAYOUTS:
            fill = self.fills[node.inputs[0]]
        else:
            fill = fill_of_value(node, self.facts, self.known, self.is_sparse)
        if fill is None:
            return None, ()
        expr, indices = expression_of(node, self.facts)
        return fill, self.said_of(self.inside(expr, node), node, indices)

    def known(self, name: str) -> Number | None:
        """Return what a value is where it stores nothing, or everywhere as a number."""
        return self.literals.get(name, self.fills[name])

    def is_sparse(self, name: str) -> bool:
        """Tell whether a value leaves elements out."""
        return self.fills[name] is not None

    def fill_in(self, node: Node) -> Callable[[Access], Number | None]:
        """Return the fill of what `expression_of` a node reads."""
        return lambda access: self.known(node.inputs[place_in(access)])

    def inside(self, expr: Expr, node: Node) -> tuple[Accesses, ...]:
        """Return alternatives of operands that store something wherever an expression differs from
        its fill value; none where it has no fill, or they are reduced over.

        A[i,j] * x[j] + B[i,j]   →   ({A[i,j], B[i,j]},)
        """
        fills = self.fill_in(node)
        match expr:
            case Literal():
                return (frozenset(),)
            case Access():
                if node.inputs[place_in(expr)] in self.literals:
                    return (frozenset(),)
                return () if fills(expr) is None else (frozenset((expr,)),)
            case Reduce(_, index, body):
                return tuple(
                    each for each in self.inside(body, node)
                    if each and all(index not in access.indices for access in each)
                )  # fmt: skip
            case Call(operator, args):
                if fill_of(expr, fills) is None:
                    return ()
                own = [arg_fill(operator, arg, fill_of(arg, fills)) for arg in args]
                groups = [[args[place] for place in group] for group in differing(operator, own)]
                unions = [self.either(group, node) for group in groups]
                return tuple(each for each in unions if each is not None)

    def either(self, args: Sequence[Expr], node: Node) -> Accesses | None:
        """Return where one of several expressions differs from its fill, None where that is
        unknown."""
        found: Accesses = frozenset()
        for arg in args:
            options = self.inside(arg, node)
            if not options:
                return None
            found |= min(options, key=len)
        return found

    def said_of(
        self, alternatives: Sequence[Accesses], node: Node, indices: Sequence[Index]
    ) -> tuple[Places, ...]:
        """Say alternatives of a value's modes, whose indices are known, where they have no other.

        {A[j,i]}, of i and j   →   {Atom("A", (1, 0))}
        """
        found = (self._said(each, node, indices) for each in alternatives)
        return tuple(dict.fromkeys(each for each in found if each))

    def _said(self, accesses: Accesses, node: Node, indices: Sequence[Index]) -> Places | None:
        modes = {index: mode for mode, index in enumerate(indices) if index is not None}
        found: Places = frozenset()
        for access in accesses:
            name = node.inputs[place_in(access)]
            own = iter(access.indices)
            here = [None if unit else next(own) for unit in self.facts[name].units]
            if not {*access.indices} <= modes.keys():
                return None
            atoms = min(self.places[name], key=len)
            found |= {
                Atom(each.name, tuple(None if m is None else modes[str(here[m])]
                                      for m in each.modes))
                for each in atoms
            }  # fmt: skip
        return found


def parts_of(expr: Expr) -> Iterator[Access]:
    """Yield the accesses of an expression, each as often as it occurs."""
    match expr:
        case Access():
            yield expr
        case Call(_, args):
            for arg in args:
                yield from parts_of(arg)
        case Reduce(_, _, body):
            yield from parts_of(body)
