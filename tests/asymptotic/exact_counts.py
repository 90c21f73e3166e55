"""The sizes of task sets on given patterns: what a statement executes, exactly.

{(i,k,j) | B[i,k] ∧ C[k,j]}  on  B = {(0,1)}, C = {(1,0), (1,2)}  has 2 tasks
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from taco_py.compiler.asymptotic.protocols import Directed
from taco_py.compiler.asymptotic.queries import Atom, Query
from taco_py.compiler.asymptotic.tasks import Recorder, Task, present_in
from taco_py.compiler.concrete.nodes import Assign, Forall
from taco_py.language.notation.nodes import Access

Tuple = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Patterns:
    """The size of each index and the coordinates that each sparse tensor stores."""

    sizes: Mapping[str, int]
    stored: Mapping[str, frozenset[Tuple]]

    def solutions(self, query: Query, heads: tuple[str, ...]) -> set[Tuple]:
        """The tuples over `heads`, an order of the query's own heads, that satisfy it."""
        bindings: list[dict[str, int]] = [{}]
        for atom in _joinable(query.atoms):
            bindings = self._joined(bindings, atom)
        free = [head for head in heads if not any(head in a.variables for a in query.atoms)]
        ranges = [range(self.sizes[head]) for head in free]
        bound = {tuple((h, b[h]) for h in heads if h not in free) for b in bindings}
        found = set()
        for known, rest in product(bound, product(*ranges)):
            values = {**dict(known), **dict(zip(free, rest, strict=True))}
            found.add(tuple(values[head] for head in heads))
        return found

    def _joined(self, bindings: list[dict[str, int]], atom: Atom) -> list[dict[str, int]]:
        """Each binding with each entry of the atom's tensor that agrees with it."""
        known = [v for v in atom.variables if bindings and v in bindings[0]]
        entries: dict[Tuple, list[dict[str, int]]] = defaultdict(list)
        for entry in sorted(self.stored[atom.relation]):
            values = dict(zip(atom.variables, entry, strict=True))
            if all(values[v] == c for v, c in zip(atom.variables, entry, strict=True)):
                entries[tuple(values[v] for v in known)].append(values)
        return [{**b, **values} for b in bindings for values in entries[tuple(b[v] for v in known)]]


def _joinable(atoms: Iterable[Atom]) -> list[Atom]:
    """The atoms in an order in which each shares a variable with one before it, where it can."""
    rest = sorted(atoms)
    order: list[Atom] = []
    seen: set[str] = set()
    while rest:
        best = max(rest, key=lambda atom: len(seen & set(atom.variables)))
        rest.remove(best)
        order.append(best)
        seen |= set(best.variables)
    return order


def executed(directed: Directed, patterns: Patterns) -> dict[tuple[Tuple | str, ...], int]:
    """How often the body of each loop runs, by the loops around it and its place in them.

    A loop over one operand runs once for each of its coordinates, a loop that walks several once
    for each coordinate that one of them has, until what is left of them makes no difference.
    """
    found: dict[tuple[Tuple | str, ...], int] = {}
    loops: dict[tuple[tuple[str, ...], Forall], list[Task]] = {}
    for task in Recorder().tasks(directed):
        if isinstance(task.place, Forall):
            loops.setdefault((task.bound, task.place), []).append(task)
    for number, ((bound, loop), tasks) in enumerate(loops.items()):
        found[(*bound, str(number))] = _rounds(bound, loop, tasks, patterns)
    return found


def _rounds(bound: tuple[str, ...], loop: Forall, tasks: list[Task], patterns: Patterns) -> int:
    walked: dict[Access | None, dict[Tuple, set[int]]] = {}
    for task in tasks:
        fibres = walked.setdefault(task.stepper, defaultdict(set))
        for *outer, last in patterns.solutions(task.query, bound):
            fibres[tuple(outer)].add(last)
    outside = {outer for fibres in walked.values() for outer in fibres}
    return sum(
        _merged(loop, {access: fibres.get(outer, set()) for access, fibres in walked.items()})
        for outer in outside
    )


def _merged(loop: Forall, walked: Mapping[Access | None, set[int]]) -> int:
    """The coordinates that are visited: those of any operand that still matters.

    An operand no longer does when others have come to their end, as a in a * b + c after b. None
    stands for a walk through the whole dimension, which goes on to its end.
    """
    count = 0
    for coordinate in sorted(set().union(*walked.values())):
        done = frozenset(
            access
            for access, own in walked.items()
            if access is not None and (not own or max(own) < coordinate)
        )
        left = present_in(loop.body, done)
        count += any(
            coordinate in own and (access is None or access in (left or ()))
            for access, own in walked.items()
        )
    return count


def work(directed: Directed, patterns: Patterns) -> int:
    """The tasks of a statement together: the model's work, assignments included."""
    sets: dict[tuple[tuple[str, ...], Assign | Forall], set[Tuple]] = {}
    for task in Recorder().tasks(directed):
        tuples = patterns.solutions(task.query, task.bound)
        sets.setdefault((task.bound, task.place), set()).update(tuples)
    return sum(map(len, sets.values()))
