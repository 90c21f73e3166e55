"""Homomorphisms between the atoms of queries.

Atoms that share no open variable are mapped independently. Where there are many images, images that
no image of a neighbour agrees with are removed first: the rest of a chain or a tree of atoms is
mapped without backtracking (Yannakakis 1981, Algorithms for acyclic database schemes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from taco_py.compiler.asymptotic.queries import Atom

Images = Mapping[Atom, Sequence[tuple[str, ...]]]
"""The possible images of each atom."""

UNFILTERED_COMBINATIONS = 64
"""The most combinations of images that are searched without removing images first."""


def mapped(
    source: Iterable[Atom], target: Iterable[Atom], start: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return a homomorphism that extends `start` and maps all atoms of `source` into `target`.

    None where there is none.
    """
    stored: dict[str, list[tuple[str, ...]]] = {}
    for atom in target:
        stored.setdefault(atom.relation, []).append(atom.variables)
    images: dict[Atom, list[tuple[str, ...]]] = {}
    for atom in source:
        candidates = [i for i in stored.get(atom.relation, ()) if may_be(atom.variables, i, start)]
        if not candidates:
            return None  # most often, before any search
        images[atom] = candidates
    mapping: Mapping[str, str] = start
    for part in _parts(
        start,
        _agreeing(images) if prod(map(len, images.values())) > UNFILTERED_COMBINATIONS else images,
    ):
        more = _search(_ordered(start, part), part, 0, mapping)
        if more is None:
            return None
        mapping = more
    return mapping


def may_be(names: tuple[str, ...], image: tuple[str, ...], start: Mapping[str, str]) -> bool:
    """Tell whether the images of `names` in `start` agree with `image`."""
    return all(start.get(name, value) == value for name, value in zip(names, image, strict=True))


def _agreeing(images: Images) -> Images:
    """Return the images, except images with a value that a variable has in no image of another
    atom."""
    while True:
        values: dict[str, set[str]] = {}
        for atom, candidates in images.items():
            for name, column in zip(atom.variables, zip(*candidates, strict=True), strict=False):
                values[name] = values[name].intersection(column) if name in values else {*column}
        fewer = {
            atom: [image for image in candidates if _all_in(image, atom.variables, values)]
            for atom, candidates in images.items()
        }
        if sum(map(len, fewer.values())) == sum(map(len, images.values())):
            return fewer
        images = fewer


def _all_in(image: tuple[str, ...], names: tuple[str, ...], values: Mapping[str, set[str]]) -> bool:
    return all(value in values[name] for name, value in zip(names, image, strict=True))


def _parts(start: Mapping[str, str], images: Images) -> Iterator[Images]:
    """Yield the atoms in groups that share no variables outside of `start`."""
    rest = dict(images)
    while rest:
        first = next(iter(rest))
        part, names = {first: rest.pop(first)}, set(first.variables).difference(start)
        while connected := [atom for atom in rest if not names.isdisjoint(atom.variables)]:
            part.update({atom: rest.pop(atom) for atom in connected})
            names.update(name for atom in connected for name in atom.variables if name not in start)
        yield part


def _ordered(start: Mapping[str, str], images: Images) -> list[Atom]:
    """Return the atoms with the fewest open variables first, among equal ones with few images
    first."""
    rest = sorted(images)
    bound = set(start)
    ordered: list[Atom] = []
    while rest:
        best = min(
            rest, key=lambda atom: (sum(v not in bound for v in atom.variables), len(images[atom]))
        )
        rest.remove(best)
        bound.update(best.variables)
        ordered.append(best)
    return ordered


def _search(
    pending: Sequence[Atom], images: Images, place: int, mapping: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return `mapping` extended to the atoms from `place` on."""
    if place == len(pending):
        return mapping
    atom = pending[place]
    for image in images[atom]:
        more = _unified(atom.variables, image, mapping)
        complete = None if more is None else _search(pending, images, place + 1, more)
        if complete is not None:
            return complete
    return None


def _unified(
    names: tuple[str, ...], image: tuple[str, ...], mapping: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return `mapping` extended so that `names` map to `image`, None where they cannot."""
    more = dict(mapping)
    for name, value in zip(names, image, strict=True):
        if more.setdefault(name, value) != value:
            return None
    return more
