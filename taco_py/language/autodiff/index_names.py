"""Fresh names of indices, and the renaming of indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from taco_py.language.notation.nodes import Access, Expr, Reduce, Subscript
from taco_py.language.notation.rewrites.index_numbers import (
    index_number,
    index_of,
    index_size,
    is_size,
)
from taco_py.language.notation.tree import map_children


class FreshNames:
    """A supply of unused names: i, i_1, i_2, …"""

    def __init__(self, used: Iterable[str]) -> None:
        self.taken = {*used}
        self.bases: dict[str, str] = {}

    def fresh(self, name: str) -> str:
        """Return an unused name derived from the base of another name."""
        base = self.bases.get(name, name)
        number, candidate = 1, base
        while candidate in self.taken:
            candidate = f"{base}_{number}"
            number += 1
        self.taken.add(candidate)
        self.bases[candidate] = base
        return candidate


def with_indices(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Rename free indices simultaneously; `names` must not lead to an index that is bound inside.

    with_indices(A[i,j] * sum(k, x[k]), {"i": "a"}) = A[a,j] * sum(k, x[k])
    """
    if not names:
        return expr
    if isinstance(expr, Access):
        return access_with_indices(expr, names)
    if isinstance(expr, Reduce):
        inner = {old: new for old, new in names.items() if old != expr.index}
        return replace(expr, body=with_indices(expr.body, inner))
    return map_children(expr, lambda child: with_indices(child, names))


def access_with_indices(access: Access, names: Mapping[str, str]) -> Access:
    """Rename the indices of an access, also inside its subscripts."""
    if access.is_number:
        index = index_of(access)
        make = index_size if is_size(access) else index_number
        return make(names.get(index, index), access.span)
    indices = tuple(names.get(index, index) for index in access.indices)
    modes = tuple(_subscript(subscript, names) for subscript in access.subscripts)
    return replace(access, indices=indices, subscripts=modes)


def _subscript(subscript: Subscript, names: Mapping[str, str]) -> Subscript:
    indices = tuple((names.get(name, name), factor) for name, factor in subscript.indices)
    gathered = tuple((access_with_indices(a, names), factor) for a, factor in subscript.gathered)
    return replace(subscript, indices=indices, gathered=gathered)
