"""The tasks that a statement executes, recorded loop by loop as queries over patterns.

    forall i forall k forall j  C[i,j] += A[i,k] * B[k,j]       A's k and B's j stepped through
    loop i: {i}   loop k: {(i,k) | A[i,k]}   loop j: {(i,k,j) | A[i,k] ∧ B[k,j]}

A loop that steps through several operands pays for the coordinates of each. Its body then runs once
for every combination of present operands, simplified by absent ones; absence adds no condition, so
that all queries stay conjunctive (an upper bound). A workspace stores the entries that its producer
wrote.

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
    """The task of one loop or assignment; the size of `query` is its number of executions.

    bound    the indices of the loops around it and of itself, outermost first
    place    the loop or assignment
    stepper  the access whose coordinates a loop walks, None where it counts through the dimension
    """

    bound: tuple[str, ...]
    place: Forall | Assign
    stepper: Access | None
    query: Query


class Scope(Enum):
    """The precision of the pattern of a workspace that is computed anew in each iteration.

    ROUND  the entries that one iteration of the outer loops writes: exact
    ALL    the entries that any iteration writes, as in Ahrens et al. 2022: an upper bound under
           which schedules that differ only in their work for empty slices compare as equal
    """

    ROUND = "round"
    ALL = "all"


def tasks(directed: Directed, scope: Scope = Scope.ROUND) -> tuple[Task, ...]:
    """Return every task of a statement, in order of execution."""
    return Recorder(scope).tasks(directed)


@dataclass(slots=True)
class Recorder:
    """Records the tasks of many statements that have parts in common.

    Producers and consumers of workspaces are recorded once for all statements that share the part
    (the same object), the condition under which it runs, and the protocols inside it.
    """

    scope: Scope = Scope.ROUND
    parts: dict[object, _Part] = field(default_factory=dict)
    read: dict[object, tuple[Statement, tuple[Access, ...] | None]] = field(default_factory=dict)

    def tasks(self, directed: Directed) -> tuple[Task, ...]:
        """Return every task of a statement, in order of execution."""
        walk = _Walk(self, directed.steps, {}, {})
        walk.visit(directed.statement, (), TRUE, frozenset())
        return tuple(dict.fromkeys(walk.tasks))

    def queries(
        self, directed: Directed, undecided: frozenset[Access] = frozenset()
    ) -> frozenset[Query]:
        """Return the sets of tasks whose union is the statement's cost.

        undecided  accesses whose protocols are still open: the cost is then a lower bound for any
                   protocols, for these accesses are assumed to be known at no cost
        """
        walk = _Walk(self, directed.steps, {}, {}, undecided)
        walk.visit(directed.statement, (), TRUE, frozenset())
        return frozenset([task.query for task in walk.tasks])

    def reads(
        self, part: Statement, absent: frozenset[Access] = frozenset()
    ) -> tuple[Access, ...] | None:
        """Return the cached `present_in` of a part.

        `part` is kept alive, for it is identified by its identity.
        """
        key = (id(part), absent)
        entry = self.read.get(key)
        if entry is None:
            entry = (part, present_in(part, absent))
            self.read[key] = entry
        return entry[1]


def live(expr: Expr, absent: frozenset[Access]) -> tuple[Access, ...] | None:
    """Return the accesses that the value of `expr` depends on.

    None if the value is zero where `absent` are.
    """
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
    """Return the accesses that `statement` reads where `absent` are zero, None if it does
    nothing."""
    match statement:
        case Assign(_, value):
            return live(value, absent)
        case Forall(_, body):
            return present_in(body, absent)
        case Where(filled, consumer, producer):
            producer_reads = present_in(producer, absent)
            used = present_in(
                consumer, absent if producer_reads is not None else absent | {filled.access}
            )
            return used if used is None else tuple(dict.fromkeys((*(producer_reads or ()), *used)))
        case Sequence(statements):
            parts = [p for s in statements if (p := present_in(s, absent)) is not None]
            return tuple(dict.fromkeys(chain.from_iterable(parts))) if parts else None
        case _:
            assert_never(statement)


@dataclass(frozen=True, slots=True)
class _Part:
    """The tasks of a part of a statement, and the conditions of its writes to workspaces."""

    tasks: tuple[Task, ...]
    writes: tuple[tuple[str, tuple[Condition, ...]], ...]


@dataclass(slots=True)
class _Walk:
    """Collects tasks.

    stored  for each workspace the conditions of which one holds where it stores an entry
    bases   for each workspace the loops around its `where`
    writes  the conditions of the writes so far to workspaces whose producers are visited
    """

    recorder: Recorder
    steps: Mapping[Access, frozenset[str]]
    stored: dict[str, tuple[Condition, ...]]
    bases: dict[str, tuple[str, ...]]
    undecided: frozenset[Access] = frozenset()
    tasks: list[Task] = field(default_factory=list)
    writes: dict[str, list[Condition]] = field(default_factory=dict)

    def record(
        self,
        bound: tuple[str, ...],
        place: Forall | Assign,
        guard: Condition,
        stepper: Access | None = None,
    ) -> None:
        self.tasks.append(Task(bound, place, stepper, query(bound, guard)))

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
                self.stored[name] = tuple(self.writes.pop(name, ()))
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
        """Visit a part, or add the tasks that were recorded for it in the same context."""
        read = self.recorder.reads(part) or ()
        steps = tuple(None if a in self.undecided else self.steps.get(a, NEVER) for a in read)
        stored = tuple(self.stored.get(a.tensor) for a in read)
        bases = tuple(self.bases.items())
        key = (id(part), bound, guard, absent, steps, stored, bases)
        recorded = self.recorder.parts.get(key)
        if recorded is None:
            walk = _Walk(
                self.recorder, self.steps, dict(self.stored), dict(self.bases), self.undecided
            )
            walk.visit(part, bound, guard, absent)
            writes = tuple((name, tuple(conditions)) for name, conditions in walk.writes.items())
            different = {(id(t.place), t.stepper, t.query): t for t in walk.tasks}
            recorded = _Part(tuple(different.values()), writes)
            self.recorder.parts[key] = recorded
        self.tasks += recorded.tasks
        for name, patterns in recorded.writes:
            for pattern in patterns:
                self.write(name, pattern)

    def write(self, name: str, pattern: Condition) -> None:
        patterns = self.writes.setdefault(name, [])
        if pattern not in patterns:
            patterns.append(pattern)

    def assign(self, place: Assign, bound: tuple[str, ...], guard: Condition) -> None:
        self.record(bound, place, guard)
        target = place.target
        if target.tensor in self.bases:
            exact = self.recorder.scope is Scope.ROUND
            free = {*(self.bases[target.tensor] if exact else ()), *target.indices}
            pattern = _quantified(guard, [i for i in bound if i not in free], ())
            self.write(target.tensor, pattern)

    def loop(
        self, loop: Forall, bound: tuple[str, ...], guard: Condition, absent: frozenset[Access]
    ) -> None:
        read = self.recorder.reads(loop.body, absent)
        if read is None:
            return
        steppers = [a for a in read if loop.index in self.steps.get(a, NEVER)]
        undecided = [a for a in read if a in self.undecided and loop.index in a.indices]
        if not steppers and not undecided:
            self.record(bound, loop, guard)
            self.visit(loop.body, bound, guard, absent)
            return
        for access in steppers:
            for condition in self.meeting(access, bound, guard):
                self.record(bound, loop, condition, access)
        if self.recorder.reads(loop.body, absent | {*steppers, *undecided}) is not None:
            self.record(bound, loop, guard)
        for present in _subsets(steppers):
            without = absent | {a for a in steppers if a not in present}
            if self.recorder.reads(loop.body, without) is not None:
                for condition in self.all_meeting((*present, *undecided), bound, guard):
                    self.visit(loop.body, bound, condition, without)

    def all_meeting(
        self, present: tuple[Access, ...], bound: tuple[str, ...], guard: Condition
    ) -> Iterator[Condition]:
        """Yield `guard` with the condition that each of `present` stores an entry, for each
        alternative."""
        if not present:
            yield guard
            return
        first, *rest = present
        for condition in self.meeting(first, bound, guard):
            yield from self.all_meeting(tuple(rest), bound, condition)

    def meeting(
        self, access: Access, bound: tuple[str, ...], guard: Condition
    ) -> Iterator[Condition]:
        """Yield `guard` with the condition that `access` stores an entry below the bound indices.

        One condition for each alternative by which a workspace may have been written.
        """
        open_ = [i for i in access.indices if i not in bound]
        patterns = self.stored.get(access.tensor)
        if patterns is not None:
            for pattern in patterns:
                yield guard | _quantified(pattern, open_, variables(guard))
            return
        full_pattern = frozenset((Atom(access.tensor, access.indices),))
        (atom,) = _quantified(full_pattern, open_, variables(guard))
        yield _without_implied(guard, atom) | {atom}


def _without_implied(guard: Condition, atom: Atom) -> Condition:
    """Return `guard` without atoms that `atom` implies: the same with fewer of its variables bound.

    B[i,k] implies ∃k' B[i,k'], the condition of the outer loop.
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


def _quantified(condition: Condition, indices: list[str], reserved: Iterable[str]) -> Condition:
    """Return `condition` with `indices` and its quantified variables renamed to unused names."""
    names: dict[str, str] = {}
    used = set(reserved)
    for variable in sorted(variables(condition)):
        index, mark, _ = variable.partition(MARK)
        if mark or variable in indices:
            names[variable] = fresh(index, used)
            used.add(names[variable])
    return rename(condition, names) if names else condition


def _subsets(accesses: list[Access]) -> Iterator[tuple[Access, ...]]:
    sizes = range(len(accesses), -1, -1)
    return chain.from_iterable(combinations(accesses, size) for size in sizes)
