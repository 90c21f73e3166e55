"""How many iterations a loop order makes: expected counts under uniform, independent patterns.

For loops bound so far S, an access A restricts them to the fraction of coordinate tuples over S ∩
indices(A) that some stored entry projects to, min(1, nnz / Π sizes). Products multiply fractions,
sums add them. (The "uniform" statistics of Galley; Ahrens et al. 2022 compare the same sets
symbolically.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import expm1, prod
from typing import assert_never

from taco_py.cost.queries import Atom, Query, dimension
from taco_py.formats import Format
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access, Call, Expr, Literal, Reduce


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is known of one operand: how many entries are stored, and in which format."""

    nnz: float
    format: Format

    @property
    def sparse(self) -> bool:
        return not self.format.is_dense


@dataclass(frozen=True, slots=True)
class Statistics:
    """The sizes of all indices and the pattern of each tensor.

    shares  the fractions of accesses that were asked for
    """

    sizes: Mapping[str, float]
    patterns: Mapping[str, Pattern]
    shares: dict[object, float] = field(default_factory=dict, compare=False, repr=False)

    def key(self, *found: Access) -> tuple[object, ...]:
        """What is known of these accesses and their indices, to be compared and hashed."""
        tensors = dict.fromkeys(access.tensor for access in found)
        indices = dict.fromkeys(i for access in found for i in access.indices)
        patterns = tuple((name, self.patterns.get(name)) for name in tensors)
        return tuple((i, self.sizes.get(i)) for i in indices), patterns

    def volume(self, indices: frozenset[str]) -> float:
        """The number of coordinate tuples over `indices`."""
        return prod((self.sizes[i] for i in indices), start=1.0)

    def access_fraction(self, access: Access, bound: frozenset[str]) -> float:
        """The fraction of tuples over its bound indices under which `access` stores something."""
        mine = bound.intersection(access.indices)
        key = (access.tensor, access.indices, mine)
        if key not in self.shares:
            self.shares[key] = self._share(access, mine)
        return self.shares[key]

    def _share(self, access: Access, mine: frozenset[str]) -> float:
        pattern = self.patterns[access.tensor]
        if not mine or not pattern.sparse:
            return 1.0
        if len(mine) == 1 and pattern.format.levels[0].full and len(access.indices) > 1:
            return 1.0
        return min(1.0, pattern.nnz / max(1.0, self.volume(mine)))

    def fraction(self, expr: Expr, bound: frozenset[str]) -> float:
        """The fraction of tuples over `bound` at which `expr` is not plainly zero."""
        match expr:
            case Access():
                return self.access_fraction(expr, bound)
            case Literal(value):
                return 0.0 if value == 0 else 1.0
            case Reduce(_, _, body):
                return self.fraction(body, bound)
            case Call(operator, args):
                parts = [self.fraction(arg, bound) for arg in args]
                annihilators = operator.annihilators[: operator.arity]
                restricting = [
                    p for p, a in zip(parts, annihilators, strict=True) if a is not None and a == 0
                ]
                return prod(restricting) if restricting else min(1.0, sum(parts))
            case _:
                assert_never(expr)

    def iterations(self, expr: Expr, bound: frozenset[str]) -> float:
        """The expected number of tuples over `bound` that loops around `expr` visit."""
        return self.volume(bound) * self.fraction(expr, bound)


def result_size(stats: Statistics, value: Expr, keep: Sequence[str]) -> float:
    """The expected number of nonzeros of `value` over `keep`; what meets in one place adds up."""
    everything = frozenset(i for a in accesses(value) for i in a.indices)
    volume = stats.volume(frozenset(keep))
    expected = stats.iterations(value, everything | frozenset(keep)) / max(volume, 1.0)
    return volume * -expm1(-min(expected, 700.0))


def query_size(stats: Statistics, whole: Query) -> float:
    """The expected number of tuples that satisfy a query.

    What is quantified over holds at a tuple as probably as all of it is expected to be met there:

        {(i,k) | B[i,k] ∧ ∃j' C[k,j']}  →  sizes of i and k · B's share · min(1, size of j · C's)
    """
    bound = frozenset(whole.heads)
    size = prod((stats.sizes[head] for head in whole.heads), start=1.0)
    for atoms in _connected(whole.atoms, bound):
        inner = {v for atom in atoms for v in atom.variables} - bound
        met = prod((stats.sizes[dimension(v)] for v in inner), start=1.0)
        size *= min(1.0, met * prod(_share(stats, atom) for atom in atoms))
    return size


def _share(stats: Statistics, atom: Atom) -> float:
    volume = prod((stats.sizes[dimension(v)] for v in atom.variables), start=1.0)
    return min(1.0, stats.patterns[atom.relation].nnz / max(volume, 1.0))


def _connected(atoms: Iterable[Atom], bound: frozenset[str]) -> list[list[Atom]]:
    """The atoms in groups that share no quantified variable."""
    groups: list[list[Atom]] = []
    for atom in sorted(atoms):
        inner = set(atom.variables) - bound
        mine = [g for g in groups if any(inner & set(other.variables) for other in g)]
        groups = [g for g in groups if g not in mine]
        groups.append([atom, *(other for group in mine for other in group)])
    return groups
