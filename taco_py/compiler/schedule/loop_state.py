"""A loop nest while it is scheduled: a problem, a loop order for each term, and the provenance.

The concrete notation and the iteration graph are derived from it on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import Order, concretize
from taco_py.compiler.concrete.nodes import (
    SERIAL,
    Assembly,
    Assign,
    Forall,
    Mode,
    Sequence,
    Statement,
    Where,
)
from taco_py.compiler.concrete.terms import Term, reductions, split_terms
from taco_py.compiler.iteration.graph import IterationGraph, build_graph
from taco_py.compiler.schedule.commands import Precompute, Structural
from taco_py.compiler.schedule.structure import restructure
from taco_py.language.formats import LETTERS
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import UNDERIVED, Provenance


@dataclass(frozen=True, slots=True)
class Loops:
    """A loop nest.

    orders      for each additive term, its loop variables, outermost first
    provenance  the derivation of the variables
    modes       the modes of loops that commands have set
    structure   the commands that restructure the statement of these loops, in order
    assembly    the strategy of assembly of a sparse result, if a command has set it
    serial      whether a command forbids to share loops
    """

    assignment: Assignment
    orders: tuple[Order, ...]
    provenance: Provenance = UNDERIVED
    modes: tuple[tuple[str, Mode], ...] = ()
    structure: tuple[Structural, ...] = ()
    assembly: Assembly | None = None
    serial: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """Return all loop variables, without duplicates."""
        return tuple(dict.fromkeys(v for order in self.orders for v in order))

    @property
    def names(self) -> frozenset[str]:
        """Return every name of an index, a variable or a tensor, present or past."""
        derived = (v for r in self.provenance.relations for v in r.children)
        tensors = (access.tensor for access in accesses(self.assignment))
        target = self.assignment.target.tensor
        return frozenset(
            (*all_indices(self.assignment), *derived, *tensors, target, *self.workspaces)
        )

    @property
    def workspaces(self) -> tuple[str, ...]:
        """Return the names of the workspaces of the structure."""
        return tuple(c.workspace for c in self.structure if isinstance(c, Precompute))

    @property
    def index_orders(self) -> tuple[Order, ...]:
        """Return the orders in which indices of the notation become known, for each term."""
        derived = self.provenance.is_derived
        loops = map(self.provenance.loops, self.orders)
        return tuple(tuple(v for v in order if not derived(v)) for order in loops)

    def mode(self, variable: str) -> Mode:
        return dict(self.modes).get(variable, SERIAL)

    def with_mode(self, variable: str, mode: Mode) -> Loops:
        return replace(self, modes=tuple({**dict(self.modes), variable: mode}.items()))

    def statement(self, problem: Problem) -> Statement:
        """Return the concrete notation for these loops, where `problem` computes the assignment."""
        placed = self.placed(problem)
        statement = concretize(placed, self.orders, self.provenance, self.workspaces)
        for command in self.structure:
            statement = restructure(placed, self.provenance, statement, command)
        return _marked(self, statement, (), {})

    def placed(self, problem: Problem) -> Problem:
        """Return the problem of the statement; dense, where coordinates are copied.

        Each element of the result then has its position before the loops run.
        """
        if self.assembly is not Assembly.COPY:
            return problem
        form = problem.result.format
        dense = replace(form, levels=(LETTERS["d"],) * form.order)
        return replace(problem, result=replace(problem.result, format=dense))

    def graph(self, problem: Problem) -> IterationGraph:
        statement = self.statement(problem)
        return build_graph(problem, statement, self.provenance, self.assembly)

    def __str__(self) -> str:
        """Return the loop variables of each term, outermost first."""
        return "; ".join(",".join(order) for order in self.orders)


def textual_orders(assignment: Assignment) -> tuple[Order, ...]:
    """Return, for each term, its indices by first occurrence, result indices before all others.

    Indices of a sum inside an operation that is not linear in it come after outer indices.
    """
    return tuple(_textual_order(assignment, term) for term in split_terms(assignment.value))


def _textual_order(assignment: Assignment, term: Term) -> Order:
    depths = dict(_depths(term, 1))
    used = dict.fromkeys(i for access in accesses(term.body) for i in access.indices)
    order = dict.fromkeys((*assignment.target.indices, *used))
    return tuple(sorted(order, key=lambda index: depths.get(index, 0)))


def _depths(term: Term, depth: int) -> Iterator[tuple[str, int]]:
    """Yield the indices of inner sums, and the number of sums around each."""
    for inner in reductions(term.body):
        nest = split_terms(inner)[0]
        yield from ((index, depth) for index in nest.reduced)
        yield from _depths(nest, depth + 1)


def _marked(
    loops: Loops, statement: Statement, outer: tuple[str, ...], names: Mapping[str, str]
) -> Statement:
    """Return the statement with each loop's mode; the loop over an index stands for its last leaf.

    names  the names of loops that fill a workspace
    """
    match statement:
        case Assign():
            return statement
        case Forall(index, body):
            leaves = loops.provenance.leaves(index)
            variable = loops.provenance.leaf(index, outer)
            mode = loops.mode(names.get(variable, variable))
            if variable in outer:
                mode = replace(mode, parallel=None)
            elif isinstance(body, Forall) and loops.provenance.leaves(body.index) == leaves:
                mode = Mode(parallel=mode.parallel, unit=mode.unit)
            return Forall(index, _marked(loops, body, (*outer, variable), names), mode)
        case Where(workspace, consumer, producer):
            inside = {**names, **loops.provenance.renamed(workspace.name)}
            return Where(
                workspace,
                _marked(loops, consumer, outer, names),
                _marked(loops, producer, outer, inside),
            )
        case Sequence(statements):
            return Sequence(tuple(_marked(loops, part, outer, names) for part in statements))
        case _:
            assert_never(statement)
