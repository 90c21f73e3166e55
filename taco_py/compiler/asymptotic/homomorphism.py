"""Homomorphisms between the atoms of queries.

Atoms that share no open variable are mapped apart from each other. Where there are many images,
those are left out first that no image of a neighbour agrees with: what is left of a chain or a tree
of atoms is mapped without going back (Yannakakis 1981, Algorithms for acyclic database schemes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from taco_py.compiler.asymptotic.queries import Atom

Images = Mapping[Atom, Sequence[tuple[str, ...]]]
"""What each atom may be mapped to."""

MANY = 64
"""Combinations of images from which on it pays to leave out those that agree with no neighbour."""


def mapped(
    source: Iterable[Atom], target: Iterable[Atom], start: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return a homomorphism that extends `start` and takes all atoms of `source` into `target`,
    None where there is none."""
    stored: dict[str, list[tuple[str, ...]]] = {}
    for atom in target:
        stored.setdefault(atom.relation, []).append(atom.variables)
    images: dict[Atom, list[tuple[str, ...]]] = {}
    for atom in source:
        found = [i for i in stored.get(atom.relation, ()) if may_be(atom.variables, i, start)]
        if not found:
            return None  # most often, before any search
        images[atom] = found
    whole: Mapping[str, str] = start
    for part in _parts(
        start, _agreeing(images) if prod(map(len, images.values())) > MANY else images
    ):
        more = _search(_ordered(start, part), part, 0, whole)
        if more is None:
            return None
        whole = more
    return whole


def may_be(names: tuple[str, ...], image: tuple[str, ...], start: Mapping[str, str]) -> bool:
    """Tell whether what `start` says of `names` agrees with their image."""
    return all(start.get(name, wanted) == wanted for name, wanted in zip(names, image, strict=True))


def _agreeing(images: Images) -> Images:
    """Without images that give a variable a value which it has in no image of another atom."""
    while True:
        values: dict[str, set[str]] = {}
        for atom, found in images.items():
            for name, column in zip(atom.variables, zip(*found, strict=True), strict=False):
                values[name] = values[name].intersection(column) if name in values else {*column}
        fewer = {
            atom: [image for image in found if _all_in(image, atom.variables, values)]
            for atom, found in images.items()
        }
        if sum(map(len, fewer.values())) == sum(map(len, images.values())):
            return fewer
        images = fewer


def _all_in(image: tuple[str, ...], names: tuple[str, ...], values: Mapping[str, set[str]]) -> bool:
    return all(value in values[name] for name, value in zip(names, image, strict=True))


def _parts(start: Mapping[str, str], images: Images) -> Iterator[Images]:
    """Yield the atoms in groups that share no variable but those of `start`."""
    rest = dict(images)
    while rest:
        first = next(iter(rest))
        part, names = {first: rest.pop(first)}, set(first.variables).difference(start)
        while joined := [atom for atom in rest if not names.isdisjoint(atom.variables)]:
            part.update({atom: rest.pop(atom) for atom in joined})
            names.update(name for atom in joined for name in atom.variables if name not in start)
        yield part


def _ordered(start: Mapping[str, str], images: Images) -> list[Atom]:
    """Return the atoms with the fewest open variables first, of those the ones with few images."""
    rest = sorted(images)
    known = set(start)
    found: list[Atom] = []
    while rest:
        best = min(
            rest, key=lambda atom: (sum(v not in known for v in atom.variables), len(images[atom]))
        )
        rest.remove(best)
        known.update(best.variables)
        found.append(best)
    return found


def _search(
    pending: Sequence[Atom], images: Images, place: int, found: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return `found` extended to the atoms from `place` on."""
    if place == len(pending):
        return found
    atom = pending[place]
    for image in images[atom]:
        more = _unified(atom.variables, image, found)
        whole = None if more is None else _search(pending, images, place + 1, more)
        if whole is not None:
            return whole
    return None


def _unified(
    names: tuple[str, ...], image: tuple[str, ...], found: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return `found` extended so that `names` map to `image`, None where they cannot."""
    more = dict(found)
    for name, wanted in zip(names, image, strict=True):
        if more.setdefault(name, wanted) != wanted:
            return None
    return more
