"""Containment of conjunctive queries by homomorphism, and their minimal forms.

    {i | ∃j B[i,j]}  ⪯  {(i,j) | B[i,j]}      a projection is never larger
    {(i,j) | B[i,j] ∧ C[i,j]}  ⪯  {(i,j) | B[i,j]}

`a ⪯ b` if a map from the variables of b to those of a takes every atom of b to one of a, and if
each head of a is the image of a head of b of its dimension (Chandra and Merlin 1977; Ahrens et al.
2022, section 6). Finding one is NP-hard in general and immediate for queries of a few atoms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from math import factorial, prod

from taco_py.compiler.asymptotic.homomorphism import mapped, may_be
from taco_py.compiler.asymptotic.queries import (
    MARK,
    Atom,
    Query,
    dimension,
    group_of,
    rename,
    variables,
)

NAMINGS = 24
"""The most namings of indistinguishable variables that are compared."""


def contained(a: Query, b: Query, dimensions: Mapping[str, str]) -> bool:
    """Tell whether a ⪯ b: there are never more tasks in `a` than in `b`.

    dimensions  for each index the name of its dimension, where that is not the index itself
    """
    if len(a.heads) > len(b.heads):
        return False
    if not {atom.relation for atom in b.atoms} <= {atom.relation for atom in a.atoms}:
        return False
    starts = _heads(a, b, dimensions)
    return any(mapped(b.atoms, a.atoms, start) is not None for start in starts)


def _heads(a: Query, b: Query, dimensions: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the maps from heads of `b` to all heads of `a` of the same dimensions."""

    def extend(rest: tuple[str, ...], images: dict[str, str]) -> Iterator[dict[str, str]]:
        if not rest:
            yield images
            return
        head, *more = rest
        head_dimension = dimensions.get(head, head)
        for candidate in b.heads:
            if candidate not in images and dimensions.get(candidate, candidate) == head_dimension:
                yield from extend(tuple(more), {**images, candidate: head})

    return extend(a.heads, {})


# ---------------------------------------------------------------- the smallest form


def smallest(original: Query, nonempty: frozenset[str]) -> Query:
    """Return the query without the atoms that others imply (its core), variables named in order.

    nonempty  tensors that are assumed to store something: `∃i,j B[i,j]` adds no condition on them

    Queries with equal heads that contain each other have the same smallest form.
    """
    atoms = original.atoms
    fixed = {head: head for head in original.heads}
    for atom in sorted(atoms):
        less = atoms - {atom}
        if len(less) == len(atoms) or not any(_same(atom, other, fixed) for other in less):
            continue
        group = frozenset(group_of(atom, Query(original.heads, atoms)))
        images = mapped(group, less, fixed)
        if images is not None:  # all others stay as they are
            atoms = (atoms - group) | rename(group, images)
    atoms = frozenset(a for a in atoms if not _says_nothing(a, atoms, original.heads, nonempty))
    return Query(original.heads, _canonical(atoms, frozenset(original.heads)))


def _same(atom: Atom, other: Atom, fixed: Mapping[str, str]) -> bool:
    """Tell whether an atom may be the image of another, by a quick necessary condition."""
    same = atom.relation == other.relation
    return same and may_be(atom.variables, other.variables, fixed)


def _says_nothing(
    atom: Atom, atoms: frozenset[Atom], heads: tuple[str, ...], nonempty: frozenset[str]
) -> bool:
    """Tell whether an atom only requires its tensor to be nonempty, which is assumed."""
    mine = set(atom.variables)
    alone = not mine & variables(atoms - {atom}) and not mine & set(heads)
    return alone and len(mine) == len(atom.variables) and atom.relation in nonempty


def _canonical(atoms: frozenset[Atom], heads: frozenset[str]) -> frozenset[Atom]:
    """Return `atoms` with quantified variables numbered, so that equal queries get equal names."""
    open_ = variables(atoms) - heads
    colours = _coloured(atoms, heads)
    groups: dict[tuple[str, int], list[str]] = {}
    for variable in sorted(open_, key=lambda v: (dimension(v), colours[v], v)):
        groups.setdefault((dimension(variable), colours[variable]), []).append(variable)
    best: list[Atom] | None = None
    for names in _namings(list(groups.values())):
        renamed = sorted(rename(atoms, names))
        if best is None or renamed < best:
            best = renamed
    return frozenset(best or ())


def _coloured(atoms: frozenset[Atom], heads: frozenset[str]) -> dict[str, int]:
    """Return a number for each variable; variables with different roles have different ones.

    Colours are refined by the colours in the atoms of each occurrence until they are stable
    (Weisfeiler and Leman 1968).
    """
    names = variables(atoms)
    first = [*sorted(names & heads), ""]
    colours = {v: first.index(v if v in heads else "") for v in names}
    while True:
        occurrences: dict[str, list[tuple[str, int, tuple[int, ...]]]] = {v: [] for v in names}
        for atom in atoms:
            neighbours = tuple(colours[v] for v in atom.variables)
            for place, variable in enumerate(atom.variables):
                occurrences[variable].append((atom.relation, place, neighbours))
        marks = {v: (colours[v], tuple(sorted(occurrences[v]))) for v in names}
        order = {mark: number for number, mark in enumerate(sorted(set(marks.values())))}
        finer = {v: order[marks[v]] for v in names}
        if len(order) == len(set(colours.values())):
            return finer
        colours = finer


def _namings(groups: Sequence[list[str]]) -> Iterator[dict[str, str]]:
    """Yield all ways to number the variables, group by group; one where there are too many."""
    few = prod(factorial(len(group)) for group in groups) <= NAMINGS
    orders = [permutations(group) if few else iter((tuple(group),)) for group in groups]
    for choice in product(*orders):
        numbers: dict[str, int] = {}
        names = {}
        for old in (variable for group in choice for variable in group):
            index = dimension(old)
            numbers[index] = numbers.get(index, 0) + 1
            names[old] = f"{index}{MARK}{numbers[index]}"
        yield names
