"""The tasks that a statement executes, recorded loop by loop as queries over patterns.

    forall i forall k forall j  C[i,j] += A[i,k] * B[k,j]       A's k and B's j stepped through
    loop i: {i}   loop k: {(i,k) | A[i,k]}   loop j: {(i,k,j) | A[i,k] ∧ B[k,j]}

A loop that steps through several operands pays for the coordinates of each. Its body then runs once
for every combination of present operands, simplified by what is absent; absence adds no condition,
so that all queries stay conjunctive (an upper bound). A workspace stores what its producer wrote.

(Ahrens et al. 2022, figure 5.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum
from itertools import chain, combinations
from typing import assert_never

from codegen.records import dataclass
from taco_py.compiler.asymptotic.protocols import Directed
from taco_py.compiler.asymptotic.queries import MARK, Atom, Query, fresh, query, rename, variables
from taco_py.compiler.concrete.nodes import Assign, Forall, Sequence, Statement, Where
from taco_py.language.legal.absent import fill_of
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.tree import children

Condition = frozenset[Atom]
TRUE: Condition = frozenset()
NEVER: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Task:
    """What one loop or assignment does: `query` tells how often.

    bound    the indices of the loops around it and of itself, outermost first
    place    the loop or assignment
    stepper  the access whose coordinates a loop walks, None where it counts through the dimension
    """

    bound: tuple[str, ...]
    place: Forall | Assign
    stepper: Access | None
    query: Query


class Scope(Enum):
    """What is known of the entries of a workspace that is made anew in each round of loops.

    ROUND  those that one round of the loops around it writes: exact
    ALL    those that any round writes, as Ahrens et al. 2022 have it: an upper bound under which
           schedules that differ only in what they do for empty slices compare as equal
    """

    ROUND = "round"
    ALL = "all"


def tasks(directed: Directed, scope: Scope = Scope.ROUND) -> tuple[Task, ...]:
    """Return every task of a statement, in order of execution."""
    return Recorder(scope).tasks(directed)


@dataclass(slots=True)
class Recorder:
    """Records the tasks of many statements that have parts in common.

    Makers and readers of workspaces are looked at once for all statements that share the part (the
    same object), the condition under which it runs, and the protocols inside it.
    """

    scope: Scope = Scope.ROUND
    known: dict[object, _Part] = field(default_factory=dict)
    read: dict[object, tuple[Statement, tuple[Access, ...] | None]] = field(default_factory=dict)

    def tasks(self, directed: Directed) -> tuple[Task, ...]:
        """Return every task of a statement, in order of execution."""
        walk = _Walk(self, directed.steps, {}, {})
        walk.visit(directed.statement, (), TRUE, frozenset())
        return tuple(dict.fromkeys(walk.found))

    def queries(
        self, directed: Directed, undecided: frozenset[Access] = frozenset()
    ) -> frozenset[Query]:
        """Return the sets of tasks whose union is the statement's cost.

        undecided  accesses whose protocols are still open: the cost is then no more than with any
                   protocols for them, for they are taken to be known and to cost nothing
        """
        walk = _Walk(self, directed.steps, {}, {}, undecided)
        walk.visit(directed.statement, (), TRUE, frozenset())
        return frozenset([task.query for task in walk.found])

    def reads(
        self, part: Statement, absent: frozenset[Access] = frozenset()
    ) -> tuple[Access, ...] | None:
        """Return `present_in`, asked once; `part` is kept alive, for it is known by its
        identity."""
        key = (id(part), absent)
        found = self.read.get(key)
        if found is None:
            found = (part, present_in(part, absent))
            self.read[key] = found
        return found[1]


def live(expr: Expr, absent: frozenset[Access]) -> tuple[Access, ...] | None:
    """Return the accesses that the value of `expr` depends on, None if it is zero where `absent`
    are."""
    value = fill_of(expr, lambda access: 0 if access in absent else None)
    return None if value is not None and value == 0 else tuple(dict.fromkeys(_read(expr, absent)))


def _read(expr: Expr, absent: frozenset[Access]) -> Iterator[Access]:
    """Yield the accesses that are read for `expr` where `absent` are not stored."""
    value = fill_of(expr, lambda access: 0 if access in absent else None)
    if value is not None:
        return
    if isinstance(expr, Access):
        yield expr
    for child in children(expr):
        yield from _read(child, absent)


def present_in(statement: Statement, absent: frozenset[Access]) -> tuple[Access, ...] | None:
    """Return the accesses that `statement` reads when `absent` are zero, None if it does
    nothing."""
    match statement:
        case Assign(_, value):
            return live(value, absent)
        case Forall(_, body):
            return present_in(body, absent)
        case Where(filled, consumer, producer):
            made = present_in(producer, absent)
            used = present_in(consumer, absent if made is not None else absent | {filled.access})
            return used if used is None else tuple(dict.fromkeys((*(made or ()), *used)))
        case Sequence(statements):
            parts = [p for s in statements if (p := present_in(s, absent)) is not None]
            return tuple(dict.fromkeys(chain.from_iterable(parts))) if parts else None
        case _:
            assert_never(statement)


@dataclass(frozen=True, slots=True)
class _Part:
    """The tasks of a part of a statement, and where it stored something in which workspaces."""

    found: tuple[Task, ...]
    written: tuple[tuple[str, tuple[Condition, ...]], ...]


@dataclass(slots=True)
class _Walk:
    """Collects tasks.

    stored   for each workspace the conditions of which one holds where it stores something
    bases    for each workspace the loops around its `where`
    written  the conditions under which the workspaces being made were written so far
    """

    recorder: Recorder
    steps: Mapping[Access, frozenset[str]]
    stored: dict[str, tuple[Condition, ...]]
    bases: dict[str, tuple[str, ...]]
    undecided: frozenset[Access] = frozenset()
    found: list[Task] = field(default_factory=list)
    written: dict[str, list[Condition]] = field(default_factory=dict)

    def record(
        self,
        bound: tuple[str, ...],
        place: Forall | Assign,
        guard: Condition,
        stepper: Access | None = None,
    ) -> None:
        self.found.append(Task(bound, place, stepper, query(bound, guard)))

    def visit(
        self,
        statement: Statement,
        bound: tuple[str, ...],
        guard: Condition,
        absent: frozenset[Access],
    ) -> None:
        """Record the tasks of `statement` below loops over `bound`, where `guard` holds."""
        match statement:
            case Assign():
                if self.recorder.reads(statement, absent) is not None:
                    self.assign(statement, bound, guard)
            case Forall():
                self.loop(statement, (*bound, statement.index), guard, absent)
            case Where(workspace, consumer, producer):
                name = workspace.name
                self.bases[name] = bound
                self.part(producer, bound, guard, absent)
                self.stored[name] = tuple(self.written.pop(name, ()))
                if self.recorder.reads(producer, absent) is None:
                    absent |= {workspace.access}
                self.part(consumer, bound, guard, absent)
            case Sequence(statements):
                for part in statements:
                    self.visit(part, bound, guard, absent)
            case _:
                assert_never(statement)

    def part(
        self,
        part: Statement,
        bound: tuple[str, ...],
        guard: Condition,
        absent: frozenset[Access],
    ) -> None:
        """`visit`, or what it found before for the same part in the same place."""
        read = self.recorder.reads(part) or ()
        steps = tuple(None if a in self.undecided else self.steps.get(a, NEVER) for a in read)
        stored = tuple(self.stored.get(a.tensor) for a in read)
        bases = tuple(self.bases.items())
        key = (id(part), bound, guard, absent, steps, stored, bases)
        known = self.recorder.known.get(key)
        if known is None:
            walk = _Walk(
                self.recorder, self.steps, dict(self.stored), dict(self.bases), self.undecided
            )
            walk.visit(part, bound, guard, absent)
            written = tuple((name, tuple(found)) for name, found in walk.written.items())
            different = {(id(t.place), t.stepper, t.query): t for t in walk.found}
            known = _Part(tuple(different.values()), written)
            self.recorder.known[key] = known
        self.found += known.found
        for name, patterns in known.written:
            for pattern in patterns:
                self.write(name, pattern)

    def write(self, name: str, pattern: Condition) -> None:
        patterns = self.written.setdefault(name, [])
        if pattern not in patterns:
            patterns.append(pattern)

    def assign(self, place: Assign, bound: tuple[str, ...], guard: Condition) -> None:
        self.record(bound, place, guard)
        target = place.target
        if target.tensor in self.bases:
            exact = self.recorder.scope is Scope.ROUND
            kept = {*(self.bases[target.tensor] if exact else ()), *target.indices}
            pattern = _quantified(guard, [i for i in bound if i not in kept], ())
            self.write(target.tensor, pattern)

    def loop(
        self, loop: Forall, bound: tuple[str, ...], guard: Condition, absent: frozenset[Access]
    ) -> None:
        read = self.recorder.reads(loop.body, absent)
        if read is None:
            return
        steppers = [a for a in read if loop.index in self.steps.get(a, NEVER)]
        known = [a for a in read if a in self.undecided and loop.index in a.indices]
        if not steppers and not known:
            self.record(bound, loop, guard)
            self.visit(loop.body, bound, guard, absent)
            return
        for access in steppers:
            for met in self.meeting(access, bound, guard):
                self.record(bound, loop, met, access)
        if self.recorder.reads(loop.body, absent | {*steppers, *known}) is not None:
            self.record(bound, loop, guard)
        for present in _subsets(steppers):
            without = absent | {a for a in steppers if a not in present}
            if self.recorder.reads(loop.body, without) is not None:
                for met in self.all_meeting((*present, *known), bound, guard):
                    self.visit(loop.body, bound, met, without)

    def all_meeting(
        self, present: tuple[Access, ...], bound: tuple[str, ...], guard: Condition
    ) -> Iterator[Condition]:
        """Yield `guard` and that each of `present` stores something, for each way in which they
        may."""
        if not present:
            yield guard
            return
        first, *rest = present
        for met in self.meeting(first, bound, guard):
            yield from self.all_meeting(tuple(rest), bound, met)

    def meeting(
        self, access: Access, bound: tuple[str, ...], guard: Condition
    ) -> Iterator[Condition]:
        """Yield `guard` and that `access` stores something below the bound indices.

        One condition for each of the ways in which a workspace may have been written.
        """
        open_ = [i for i in access.indices if i not in bound]
        patterns = self.stored.get(access.tensor)
        if patterns is not None:
            for pattern in patterns:
                yield guard | _quantified(pattern, open_, variables(guard))
            return
        whole = frozenset((Atom(access.tensor, access.indices),))
        (atom,) = _quantified(whole, open_, variables(guard))
        yield _without_implied(guard, atom) | {atom}


def _without_implied(guard: Condition, atom: Atom) -> Condition:
    """Return `guard` without what `atom` implies by itself: that fewer of its variables are bound.

    B[i,k] implies ∃k' B[i,k'], which is what the loop outside found.
    """
    similar = [old for old in guard if old.relation == atom.relation]
    if not similar:
        return guard
    uses = Counter(v for old in guard for v in old.variables)
    return guard - {
        old
        for old in similar
        if all(
            v == new or (MARK in v and uses[v] == 1)
            for v, new in zip(old.variables, atom.variables, strict=True)
        )
    }


def _quantified(condition: Condition, indices: list[str], taken: Iterable[str]) -> Condition:
    """Return `condition` with `indices` and its own quantified variables named apart from
    `taken`."""
    names: dict[str, str] = {}
    used = set(taken)
    for variable in sorted(variables(condition)):
        index, mark, _ = variable.partition(MARK)
        if mark or variable in indices:
            names[variable] = fresh(index, used)
            used.add(names[variable])
    return rename(condition, names) if names else condition


def _subsets(accesses: list[Access]) -> Iterator[tuple[Access, ...]]:
    sizes = range(len(accesses), -1, -1)
    return chain.from_iterable(combinations(accesses, size) for size in sizes)
