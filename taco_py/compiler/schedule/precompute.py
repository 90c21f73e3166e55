"""A part of a value, computed first: into a workspace of its own.

    precompute A * B over j:

    forall i                                forall i
      forall k                                forall j
        forall j                                C[i,j] += w[j]
          C[i,j] += A[i,k] * B[k,j]           where w[j]
                                                forall k
                                                  forall j
                                                    w[j] += A[i,k] * B[k,j]

Loops that only the part depends on go to its producer, those that only the rest depends on to the
consumer, and those over the workspace's own variables to both. Loops that both depend on stay
around the `where`. Loops further out on which the part does not depend go to the consumer as well,
so that a part that changes in no loop is computed once. (Kjolstad et al. 2019, Tensor Algebra
Compilation with Workspaces, section 4; sums move through what is linear.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import assert_never

from codegen.records import dataclass
from taco_py.compiler.concrete.factors import Occurrence, occurrences
from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Sequence,
    Statement,
    Where,
    Workspace,
    forall,
)
from taco_py.compiler.concrete.tree import assignments, workspaces_of
from taco_py.compiler.schedule.part_workspace import About, Nest, Part, workspace_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.operators import ADD
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import map_accesses
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance


@dataclass(frozen=True, slots=True)
class _Apart:
    """A consumer and the producer of its workspace, which is not placed yet."""

    workspace: Workspace
    consumer: Statement
    producer: Statement

    def placed(self) -> Where:
        return Where(self.workspace, self.consumer, self.producer)


def precompute(
    problem: Problem, provenance: Provenance, statement: Statement, part: Part
) -> Statement:
    """Return `statement` with `part` in a workspace. Raises ScheduleError where that is not the
    same."""
    maker = _Maker(problem, provenance, statement, part)
    place = maker.place()
    existing = maker.existing(place)
    if existing is not None:
        return _renamed(statement, existing, part.name)
    found = maker.within(statement, place, ())
    return found.placed() if isinstance(found, _Apart) else found


@dataclass(frozen=True, slots=True)
class _Maker(About):
    """The steps, one below another."""

    def place(self) -> Assign:
        """Return the assignment that the part stands in."""
        places = [a for a in assignments(self.whole) if any(self.found(a))]
        if not places:
            values = ", ".join(to_text(a.value) for a in assignments(self.whole))
            raise self.refusal(
                f"it is no part of what is assigned, {values}",
                "name a factor, or a product of factors of one term",
            )
        if len(places) > 1:
            raise self.refusal(
                f"it is a part of {len(places)} assignments", "name a product that is in one alone"
            )
        return places[0]

    def found(self, assign: Assign) -> Iterator[Occurrence]:
        return occurrences(assign.value, self.part.expression, self.access)

    def existing(self, place: Assign) -> Workspace | None:
        """Return the workspace that the part, and nothing else, fills already."""
        for workspace in workspaces_of(self.whole):
            filled = workspace.access == place.target and place.value == self.part.expression
            if filled and set(workspace.indices) == set(self.indices):
                return workspace
        return None

    # ------------------------------------------------------------ down to the assignment

    def within(
        self, statement: Statement, place: Assign, outer: tuple[str, ...]
    ) -> Statement | _Apart:
        """Return the statement without the part, apart from its producer as long as that may go
        out."""
        match statement:
            case Assign():
                return self.apart((), statement, outer) if statement is place else statement
            case Forall():
                return self.below(statement, place, outer)
            case Where(workspace, consumer, producer):
                inner = self.within(producer, place, outer)
                if inner is not producer:
                    return _around(inner, lambda s: Where(workspace, consumer, s))
                rest = self.within(consumer, place, outer)
                return _around(rest, lambda s: Where(workspace, s, producer))
            case Sequence(statements):
                return self.among(statements, place, outer)
            case _:
                assert_never(statement)

    def among(
        self, statements: tuple[Statement, ...], place: Assign, outer: tuple[str, ...]
    ) -> Statement | _Apart:
        for number, each in enumerate(statements):
            found = self.within(each, place, outer)
            if found is not each:
                return _around(found, partial(_replaced, statements, number))
        return Sequence(statements)

    def below(self, loop: Forall, place: Assign, outer: tuple[str, ...]) -> Statement | _Apart:
        loops: list[str] = []
        body: Statement = loop
        while isinstance(body, Forall):
            loops.append(body.index)
            body = body.body
        if body is place:
            return self.apart(tuple(loops), place, outer)
        found = self.within(body, place, (*outer, *loops))
        if found is body:
            return loop
        for index in reversed(loops):
            found = self.out_of(index, found)
        return found

    def out_of(self, index: str, found: Statement | _Apart) -> Statement | _Apart:
        """Out of a loop: with the producer inside if it depends on the loop."""
        if not isinstance(found, _Apart):
            return Forall(index, found)
        needed = {i for a in assignments(found.producer) for i in _indices(a)}
        if needed & set(self.provenance.roots(index)):
            return Forall(index, found.placed())
        kept = replace(found.workspace, kept=True)
        return replace(found, workspace=kept, consumer=Forall(index, found.consumer))

    # ------------------------------------------------------------ the part apart

    def apart(
        self, loops: tuple[str, ...], place: Assign, outer: tuple[str, ...]
    ) -> Statement | _Apart:
        occurrence = next(self.found(place))
        nest = self.sort(loops, place, occurrence, outer)
        around = (*outer, *nest.outer)
        self.check_tiles(around, nest.producer, self.part.expression, "what is precomputed")
        self.check_tiles(around, nest.consumer, occurrence.value, "what is left")
        workspace = workspace_of(self, nest, place, occurrence)
        plain = workspace.is_array and not workspace.zero
        fill = Assign(self.access, self.part.expression, None if plain else ADD)
        consumer = forall(nest.consumer, replace(place, value=occurrence.value))
        found = _Apart(workspace, consumer, forall(nest.producer, fill))
        return forall(nest.outer, found.placed()) if nest.outer else found

    def sort(
        self,
        loops: tuple[str, ...],
        place: Assign,
        occurrence: Occurrence,
        outer: tuple[str, ...],
    ) -> Nest:
        own = self.own(loops, outer)
        part = set(free_indices(self.part.expression))
        rest = {i for a in accesses(occurrence.value) if a != self.access for i in a.indices}
        rest |= set(place.target.indices)
        moves = occurrence.linear and place.operator == ADD
        only_part, only_rest = set[str](), set[str]()
        for variable in loops:
            roots = set(self.provenance.roots(variable))
            if variable in own or roots & set(self.indices):
                continue
            if roots & part and not roots & rest and moves:
                only_part.add(variable)
            elif roots & rest and not roots & part:
                only_rest.add(variable)
        shared = [v for v in loops if v not in own | only_part | only_rest]
        depth = loops.index(shared[-1]) + 1 if shared else 0
        early = [v for v in loops[:depth] if v in own]
        if early:
            raise self.refusal(
                f"the loop over {shared[-1]}, on which both it and what is left depend, is inside "
                f"the one over {early[0]}",
                f"reorder so that {shared[-1]} is outside {early[0]}",
            )
        below = loops[depth:]
        return Nest(
            loops[:depth],
            tuple(v for v in below if v not in only_rest),
            tuple(v for v in below if v not in only_part),
            tuple(v for v in below if v in only_part),
        )

    def check_tiles(
        self, outer: tuple[str, ...], loops: tuple[str, ...], value: Expr, which: str
    ) -> None:
        """Raise ScheduleError where loops are over tiles of positions that `value` does not read:
        each would go through all coordinates, and those at equal distances mean no others."""
        read = {access.tensor for access in accesses(value)}
        around = set[str]()
        for loop in outer:
            around.add(self.provenance.leaf(loop, around))
        for loop in loops:
            variable = self.provenance.leaf(loop, around)
            pos = self.provenance.positions_above(variable)
            counts = self.provenance.is_derived(loop) or (
                pos is not None and not self.provenance.are_neighbours(pos.child, frozenset(around))
            )
            around.add(variable)
            if pos is not None and counts and pos.tensor not in read:
                raise self.refusal(
                    f"{variable} counts tiles of the positions of {pos.tensor}, which {which} does "
                    "not read",
                    f"precompute over {pos.parent}, before it is turned into positions, or over "
                    f"one variable inside {variable}",
                )

    def own(self, loops: tuple[str, ...], outer: tuple[str, ...]) -> set[str]:
        """Return the loops over the workspace's variables."""
        around = set[str]()
        for loop in outer:
            around.add(self.provenance.leaf(loop, around))
        found, own, leaves = set[str](), set[str](), list[str]()
        for loop in loops:
            leaf = self.provenance.leaf(loop, around)
            leaves.append(leaf)
            if leaf in self.part.variables and (leaf in found or leaf not in around):
                found.add(leaf)
                own.add(loop)
            around.add(leaf)
        missing = [v for v in self.part.variables if v not in found]
        if missing:
            raise self.not_around(missing[0], leaves)
        return own

    def not_around(self, variable: str, leaves: Iterable[str]) -> ScheduleError:
        """Return the refusal where not all loops over `variable` are right around the part.

        leaves  the variables of those that are
        """
        hint = f"reorder so that {variable} is inside the loops over other variables"
        if variable in leaves:
            roots = " and ".join(self.provenance.roots(variable))
            reason = f"{variable} goes through {roots}, which are not all right around it"
            return self.refusal(reason, "precompute before they are fused, over one of them")
        inside = ", ".join(dict.fromkeys(leaves)) or "none"
        return self.refusal(f"no loop over {variable} is right around it, those are {inside}", hint)


def _around(
    found: Statement | _Apart, rebuild: Callable[[Statement], Statement]
) -> Statement | _Apart:
    """What `rebuild` makes of a statement, of the consumer alone while the producer is apart."""
    if isinstance(found, _Apart):
        return replace(found, consumer=rebuild(found.consumer))
    return rebuild(found)


def _replaced(statements: tuple[Statement, ...], number: int, new: Statement) -> Statement:
    return Sequence((*statements[:number], new, *statements[number + 1 :]))


def _indices(assign: Assign) -> set[str]:
    inside = {i for access in accesses(assign.value) for i in access.indices}
    return inside | set(assign.target.indices)


def _renamed(statement: Statement, old: Workspace, name: str) -> Statement:
    """Return the statement with the workspace `old` under another name."""

    def access(each: Access) -> Access:
        return replace(each, tensor=name) if each.tensor == old.name else each

    match statement:
        case Assign(target, value):
            return replace(statement, target=access(target), value=map_accesses(value, access))
        case Forall(_, body):
            return replace(statement, body=_renamed(body, old, name))
        case Where(workspace, consumer, producer):
            same = replace(workspace, name=name) if workspace == old else workspace
            return Where(same, _renamed(consumer, old, name), _renamed(producer, old, name))
        case Sequence(statements):
            return Sequence(tuple(_renamed(each, old, name) for each in statements))
        case _:
            assert_never(statement)
