"""Precomputation of a part of a value into a workspace.

    precompute A * B over j:

    forall i                                forall i
      forall k                                forall j
        forall j                                C[i,j] += w[j]
          C[i,j] += A[i,k] * B[k,j]           where w[j]
                                                forall k
                                                  forall j
                                                    w[j] += A[i,k] * B[k,j]

Loops that only the part depends on go to its producer, loops that only the rest depends on go to
the consumer, and loops over the workspace's variables go to both. Loops that both depend on stay
around the `where`. Outer loops on which the part does not depend go to the consumer as well, so
that a part that changes in no loop is computed once. (Kjolstad et al. 2019, Tensor Algebra
Compilation with Workspaces, section 4; sums move through linear operations.)
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
from taco_py.compiler.schedule.part_workspace import Nest, Part, PartContext, workspace_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.operators import ADD
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import map_accesses
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance


@dataclass(frozen=True, slots=True)
class _Separate:
    """A consumer and the producer of its workspace, before they are joined in a `where`."""

    workspace: Workspace
    consumer: Statement
    producer: Statement

    def placed(self) -> Where:
        return Where(self.workspace, self.consumer, self.producer)


def precompute(
    problem: Problem, provenance: Provenance, statement: Statement, part: Part
) -> Statement:
    """Return `statement` with `part` in a workspace.

    Raises ScheduleError where values would differ.
    """
    maker = _Maker(problem, provenance, statement, part)
    place = maker.place()
    existing = maker.existing(place)
    if existing is not None:
        return _renamed(statement, existing, part.name)
    result = maker.descend(statement, place, ())
    return result.placed() if isinstance(result, _Separate) else result


@dataclass(frozen=True, slots=True)
class _Maker(PartContext):
    """The steps of the precomputation."""

    def place(self) -> Assign:
        """Return the assignment whose value has the part."""
        places = [a for a in assignments(self.statement) if any(self.occurrences_in(a))]
        if not places:
            values = ", ".join(to_text(a.value) for a in assignments(self.statement))
            raise self.refusal(
                f"it is no part of what is assigned, {values}",
                "name a factor, or a product of factors of one term",
            )
        if len(places) > 1:
            raise self.refusal(
                f"it is a part of {len(places)} assignments", "name a product that is in one alone"
            )
        return places[0]

    def occurrences_in(self, assign: Assign) -> Iterator[Occurrence]:
        return occurrences(assign.value, self.part.expression, self.access)

    def existing(self, place: Assign) -> Workspace | None:
        """Return the workspace that already holds the part and nothing else."""
        for workspace in workspaces_of(self.statement):
            filled = workspace.access == place.target and place.value == self.part.expression
            if filled and set(workspace.indices) == set(self.indices):
                return workspace
        return None

    # ------------------------------------------------------------ down to the assignment

    def descend(
        self, statement: Statement, place: Assign, outer: tuple[str, ...]
    ) -> Statement | _Separate:
        """Return the statement without the part, separate from its producer while that can move
        out."""
        match statement:
            case Assign():
                return self.separate_part((), statement, outer) if statement is place else statement
            case Forall():
                return self.below(statement, place, outer)
            case Where(workspace, consumer, producer):
                inner = self.descend(producer, place, outer)
                if inner is not producer:
                    return _rebuild(inner, lambda s: Where(workspace, consumer, s))
                rest = self.descend(consumer, place, outer)
                return _rebuild(rest, lambda s: Where(workspace, s, producer))
            case Sequence(statements):
                return self.among(statements, place, outer)
            case _:
                assert_never(statement)

    def among(
        self, statements: tuple[Statement, ...], place: Assign, outer: tuple[str, ...]
    ) -> Statement | _Separate:
        for number, statement in enumerate(statements):
            result = self.descend(statement, place, outer)
            if result is not statement:
                return _rebuild(result, partial(_replaced, statements, number))
        return Sequence(statements)

    def below(self, loop: Forall, place: Assign, outer: tuple[str, ...]) -> Statement | _Separate:
        loops: list[str] = []
        body: Statement = loop
        while isinstance(body, Forall):
            loops.append(body.index)
            body = body.body
        if body is place:
            return self.separate_part(tuple(loops), place, outer)
        result = self.descend(body, place, (*outer, *loops))
        if result is body:
            return loop
        for index in reversed(loops):
            result = self.out_of(index, result)
        return result

    def out_of(self, index: str, statement: Statement | _Separate) -> Statement | _Separate:
        """Move a statement out of a loop; the producer stays inside if it depends on the loop."""
        if not isinstance(statement, _Separate):
            return Forall(index, statement)
        indices = {i for a in assignments(statement.producer) for i in _indices(a)}
        if indices & set(self.provenance.roots(index)):
            return Forall(index, statement.placed())
        workspace = replace(statement.workspace, reread=True)
        return replace(statement, workspace=workspace, consumer=Forall(index, statement.consumer))

    # ------------------------------------------------------------ the part apart

    def separate_part(
        self, loops: tuple[str, ...], place: Assign, outer: tuple[str, ...]
    ) -> Statement | _Separate:
        occurrence = next(self.occurrences_in(place))
        nest = self.sort(loops, place, occurrence, outer)
        enclosing = (*outer, *nest.outer)
        self.check_tiles(enclosing, nest.producer, self.part.expression, "what is precomputed")
        self.check_tiles(enclosing, nest.consumer, occurrence.value, "what is left")
        workspace = workspace_of(self, nest, place, occurrence)
        plain = workspace.is_array and not workspace.zero
        fill = Assign(self.access, self.part.expression, None if plain else ADD)
        consumer = forall(nest.consumer, replace(place, value=occurrence.value))
        separate = _Separate(workspace, consumer, forall(nest.producer, fill))
        return forall(nest.outer, separate.placed()) if nest.outer else separate

    def sort(
        self,
        loops: tuple[str, ...],
        place: Assign,
        occurrence: Occurrence,
        outer: tuple[str, ...],
    ) -> Nest:
        workspace_loops = self.loops_over_workspace(loops, outer)
        part = set(free_indices(self.part.expression))
        rest = {i for a in accesses(occurrence.value) if a != self.access for i in a.indices}
        rest |= set(place.target.indices)
        moves = occurrence.linear and place.operator == ADD
        only_part, only_rest = set[str](), set[str]()
        for variable in loops:
            roots = set(self.provenance.roots(variable))
            if variable in workspace_loops or roots & set(self.indices):
                continue
            if roots & part and not roots & rest and moves:
                only_part.add(variable)
            elif roots & rest and not roots & part:
                only_rest.add(variable)
        shared = [v for v in loops if v not in workspace_loops | only_part | only_rest]
        depth = loops.index(shared[-1]) + 1 if shared else 0
        early = [v for v in loops[:depth] if v in workspace_loops]
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
        """Raise ScheduleError where loops are over tiles of positions that `value` does not read.

        Each tile would run through all coordinates, and coordinates at equal distances would mean
        no others.
        """
        read = {access.tensor for access in accesses(value)}
        enclosing = set[str]()
        for loop in outer:
            enclosing.add(self.provenance.leaf(loop, enclosing))
        for loop in loops:
            variable = self.provenance.leaf(loop, enclosing)
            pos = self.provenance.positions_above(variable)
            counts = self.provenance.is_derived(loop) or (
                pos is not None
                and not self.provenance.are_neighbours(pos.child, frozenset(enclosing))
            )
            enclosing.add(variable)
            if pos is not None and counts and pos.tensor not in read:
                raise self.refusal(
                    f"{variable} counts tiles of the positions of {pos.tensor}, which {which} does "
                    "not read",
                    f"precompute over {pos.parent}, before it is turned into positions, or over "
                    f"one variable inside {variable}",
                )

    def loops_over_workspace(self, loops: tuple[str, ...], outer: tuple[str, ...]) -> set[str]:
        """Return the loops over the workspace's variables."""
        enclosing = set[str]()
        for loop in outer:
            enclosing.add(self.provenance.leaf(loop, enclosing))
        variables, workspace_loops, leaves = set[str](), set[str](), list[str]()
        for loop in loops:
            leaf = self.provenance.leaf(loop, enclosing)
            leaves.append(leaf)
            if leaf in self.part.variables and (leaf in variables or leaf not in enclosing):
                variables.add(leaf)
                workspace_loops.add(loop)
            enclosing.add(leaf)
        missing = [v for v in self.part.variables if v not in variables]
        if missing:
            raise self.not_around(missing[0], leaves)
        return workspace_loops

    def not_around(self, variable: str, leaves: Iterable[str]) -> ScheduleError:
        """Return the refusal where not all loops over `variable` are just around the part.

        leaves  the variables of the loops that are
        """
        hint = f"reorder so that {variable} is inside the loops over other variables"
        if variable in leaves:
            roots = " and ".join(self.provenance.roots(variable))
            reason = f"{variable} goes through {roots}, which are not all right around it"
            return self.refusal(reason, "precompute before they are fused, over one of them")
        inside = ", ".join(dict.fromkeys(leaves)) or "none"
        return self.refusal(f"no loop over {variable} is right around it, those are {inside}", hint)


def _rebuild(
    statement: Statement | _Separate, rebuild: Callable[[Statement], Statement]
) -> Statement | _Separate:
    """Apply `rebuild` to a statement, or to the consumer alone while the producer is separate."""
    if isinstance(statement, _Separate):
        return replace(statement, consumer=rebuild(statement.consumer))
    return rebuild(statement)


def _replaced(statements: tuple[Statement, ...], number: int, new: Statement) -> Statement:
    return Sequence((*statements[:number], new, *statements[number + 1 :]))


def _indices(assign: Assign) -> set[str]:
    inside = {i for access in accesses(assign.value) for i in access.indices}
    return inside | set(assign.target.indices)


def _renamed(statement: Statement, old: Workspace, name: str) -> Statement:
    """Return the statement with the workspace `old` under another name."""

    def access(read: Access) -> Access:
        return replace(read, tensor=name) if read.tensor == old.name else read

    match statement:
        case Assign(target, value):
            return replace(statement, target=access(target), value=map_accesses(value, access))
        case Forall(_, body):
            return replace(statement, body=_renamed(body, old, name))
        case Where(workspace, consumer, producer):
            same = replace(workspace, name=name) if workspace == old else workspace
            return Where(same, _renamed(consumer, old, name), _renamed(producer, old, name))
        case Sequence(statements):
            return Sequence(tuple(_renamed(part, old, name) for part in statements))
        case _:
            assert_never(statement)
