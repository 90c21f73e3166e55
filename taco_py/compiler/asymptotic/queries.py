"""Conjunctive queries over sparsity patterns: the sets of tasks that a loop executes.

    {(i,k,j) | B[i,k] ∧ C[k,j]}          each multiplication of a sparse matrix product
    {(i,k) | B[i,k] ∧ ∃j' C[k,j']}       each row of C that it looks up, where it has entries

An atom states that a tensor stores an entry at a coordinate tuple. The variables of a query are its
heads, over which it ranges, and others, which are quantified existentially. (Ahrens, Kjolstad and
Amarasinghe 2022, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

MARK = "'"
PRIME = "′"


class Atom(NamedTuple):
    """`relation` stores an entry at `variables`, one for each mode."""

    relation: str
    variables: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.relation}[{','.join(map(_primed, self.variables))}]"


class Query(NamedTuple):
    """The tuples over `heads` for which values of the other variables satisfy all `atoms`.

    Heads are index variables, ascending; a variable that is no head is an index with a mark and a
    number: k'1, k'2, … range over the same dimension as k.
    """

    heads: tuple[str, ...]
    atoms: frozenset[Atom]

    def __str__(self) -> str:
        parts = _parts(self)
        used = [v for _, group in parts for atom in group for v in atom.variables]
        order = sorted(self.heads, key=lambda h: used.index(h) if h in used else len(used))
        heads = ",".join(order)
        if len(order) != 1:
            heads = f"({heads})"
        condition = " ∧ ".join(text for text, _ in parts)
        return f"{{{heads} | {condition}}}" if parts else f"{{{heads}}}"


def query(heads: Iterable[str], atoms: Iterable[Atom]) -> Query:
    """Return the query with its heads in order."""
    return Query(tuple(sorted(heads)), frozenset(atoms))


def dimension(variable: str) -> str:
    """Return the index whose dimension a variable ranges over: k for k and for k'2."""
    return variable.partition(MARK)[0]


def fresh(index: str, used_names: Iterable[str]) -> str:
    """Return the first variable of `index`'s dimension that is no head and not in `used_names`."""
    used = set(used_names)
    number = 1
    while f"{index}{MARK}{number}" in used:
        number += 1
    return f"{index}{MARK}{number}"


def variables(atoms: Iterable[Atom]) -> set[str]:
    """Return every variable of `atoms`."""
    return {variable for atom in atoms for variable in atom.variables}


def rename(atoms: Iterable[Atom], names: Mapping[str, str]) -> frozenset[Atom]:
    """Return `atoms` with all variables renamed at once."""
    return frozenset(
        Atom(atom.relation, tuple(names.get(v, v) for v in atom.variables)) for atom in atoms
    )


def _parts(query_: Query) -> list[tuple[str, list[Atom]]]:
    """Return the texts of the condition, a group with common quantified variables behind its
    quantifier."""
    heads = set(query_.heads)
    groups = groups_of(query_)
    texts = []
    for group in sorted(groups, key=lambda g: (bool(variables(g) - heads), g)):
        bound = sorted(variables(group) - heads)
        text = " ∧ ".join(map(str, group))
        if bound:
            text = f"∃{','.join(map(_primed, bound))} {text}"
            text = f"({text})" if len(group) > 1 else text
        texts.append((text, group))
    return texts


def groups_of(query_: Query) -> list[list[Atom]]:
    """Return the atoms in groups that share quantified variables."""
    heads = set(query_.heads)
    groups: list[tuple[set[str], list[Atom]]] = []
    for atom in sorted(query_.atoms):
        names = set(atom.variables) - heads
        connected = [group for group in groups if not names.isdisjoint(group[0])]
        groups = [group for group in groups if names.isdisjoint(group[0])]
        atoms = [*(a for _, group in connected for a in group), atom]
        groups.append((names.union(*(other_names for other_names, _ in connected)), atoms))
    return [atoms for _, atoms in groups]


def group_of(atom: Atom, query_: Query) -> list[Atom]:
    """Return the group of atoms that share quantified variables with an atom."""
    names, group, rest = set(atom.variables).difference(query_.heads), [atom], query_.atoms - {atom}
    while connected := [other for other in rest if not names.isdisjoint(other.variables)]:
        group += connected
        rest = rest.difference(connected)
        names.update(*(other.variables for other in connected))
        names.difference_update(query_.heads)
    return group


def _primed(variable: str) -> str:
    index, mark, number = variable.partition(MARK)
    return index + PRIME * int(number) if mark else index
