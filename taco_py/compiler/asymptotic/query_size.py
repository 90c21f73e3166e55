"""The expected number of tuples that satisfy a conjunctive query."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from taco_py.compiler.asymptotic.queries import Atom, Query, dimension
from taco_py.compiler.cost.estimate import Statistics


def query_size(stats: Statistics, query: Query) -> float:
    """Return the expected number of tuples that satisfy a query.

    The probability of quantified atoms at a tuple is the expected number of their entries, at most
    1:

        {(i,k) | B[i,k] ∧ ∃j' C[k,j']}  →  sizes of i and k · B's share · min(1, size of j · C's)
    """
    bound = frozenset(query.heads)
    size = prod((stats.sizes[head] for head in query.heads), start=1.0)
    for atoms in _connected(query.atoms, bound):
        inner = {v for atom in atoms for v in atom.variables} - bound
        expected = prod((stats.sizes[dimension(v)] for v in inner), start=1.0)
        size *= min(1.0, expected * prod(_share(stats, atom) for atom in atoms))
    return size


def _share(stats: Statistics, atom: Atom) -> float:
    volume = prod((stats.sizes[dimension(v)] for v in atom.variables), start=1.0)
    return min(1.0, stats.patterns[atom.relation].nnz / max(volume, 1.0))


def _connected(atoms: Iterable[Atom], bound: frozenset[str]) -> list[list[Atom]]:
    """Return the atoms in groups that share no quantified variable."""
    groups: list[list[Atom]] = []
    for atom in sorted(atoms):
        inner = set(atom.variables) - bound
        mine = [g for g in groups if any(inner & set(other.variables) for other in g)]
        groups = [g for g in groups if g not in mine]
        groups.append([atom, *(other for group in mine for other in group)])
    return groups
