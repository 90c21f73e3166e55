"""Neighbouring indices that all arrays store one behind the other, as one index each.

sum(a, b, c, A[c,a,b] * v[c])   →   sum(ab, c, A_fused[c,ab] * v[c])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from codegen.names import Names
from codegen.records import dataclass
from taco_py.language.formats import dense
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Expr, Reduce
from taco_py.language.notation.tree import children, map_children
from taco_py.planner.ir.nodes import Fuse, Operand

Chain = tuple[str, ...]
Chains = tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """The indices of an array as it is stored, and which of them the next one goes on from."""

    indices: tuple[str, ...]
    contiguous: tuple[bool, ...]


class FusedModes:
    """Indices that are one each after fusion, and the steps that show operands with them.

    stored  the arrays of what is fused
    chains  the indices to fuse, outermost first
    """

    def __init__(self, stored: Mapping[Access, Stored], chains: Chains, fresh: Names) -> None:
        self.stored, self.chains = stored, chains
        self.names = {chain: fresh.fresh("".join(chain)) for chain in chains}
        self.steps: dict[Access, Fuse] = {}

    def value(self, expr: Expr, operands: dict[str, Operand], names: Names) -> Expr:
        """Return a value over fused operands; add these to `operands`."""
        for access in dict.fromkeys(accesses(expr)):
            groups = groups_of(self.stored[access].indices, self.chains)
            if access not in self.steps and len(groups) < len(access.indices):
                self.steps[access] = _step(access, groups, operands, names)
        return self._fused(expr)

    def _fused(self, expr: Expr) -> Expr:
        below = map_children(expr, self._fused)
        if isinstance(below, Access) and below in self.steps:
            return self.access(below, self.steps[below].target)
        if isinstance(below, Reduce):
            chain = next((c for c in self.chains if below.index in c), None)
            if chain is not None:
                last = below.index == chain[-1]
                return replace(below, index=self.names[chain]) if last else below.body
        return below

    def access(self, access: Access, tensor: str) -> Access:
        """Return the access of a tensor whose modes are the fused modes of another one."""
        first = {chain[0]: name for chain, name in self.names.items()}
        inside = {index for chain in self.chains for index in chain[1:]}
        stored = self.stored[access].indices
        indices = tuple(first.get(index, index) for index in stored if index not in inside)
        return replace(access, tensor=tensor, indices=indices)


def chains_of(
    stored: Mapping[Access, Stored], runs: tuple[frozenset[str], ...], static: set[str]
) -> Chains:
    """Return the chains of indices to fuse, outermost first.

    runs  the indices of nested reductions by one operator
    """
    next_of: dict[str, set[str | None]] = {}
    before: dict[str, set[str | None]] = {}
    for array in stored.values():
        ends = (*array.contiguous, *(False for _ in array.indices))
        for place, index in enumerate(array.indices):
            after = array.indices[place + 1] if ends[place] else None
            next_of.setdefault(index, set()).add(after)
            first = place == 0 or not ends[place - 1]
            before.setdefault(index, set()).add(None if first else array.indices[place - 1])

    def follows(index: str) -> str | None:
        (after, *more) = next_of[index]
        if more or after is None or after == index or before[after] != {index}:
            return None
        adjacent = all((index in run) == (after in run) for run in runs)
        return after if adjacent and not {index, after} & static else None

    links = {index: after for index in next_of if (after := follows(index)) is not None}
    begins = (index for index in links if index not in links.values())
    return tuple(tuple(_chain_from(index, links)) for index in begins)


def _chain_from(index: str, links: Mapping[str, str]) -> Iterator[str]:
    yield index
    while index in links:
        index = links[index]
        yield index


def runs_of(expr: Expr) -> Iterator[frozenset[str]]:
    """Yield the indices of nested reductions by one operator."""
    run: set[str] = set()
    below = expr
    while (
        isinstance(below, Reduce) and isinstance(expr, Reduce) and below.operator == expr.operator
    ):
        run.add(below.index)
        below = below.body
    if run:
        yield frozenset(run)
        yield from runs_of(below)
    else:
        for child in children(expr):
            yield from runs_of(child)


def groups_of(indices: tuple[str, ...], chains: Chains) -> tuple[tuple[int, ...], ...]:
    """Return the modes of an array, grouped by chains."""
    groups: list[tuple[int, ...]] = []
    for place, index in enumerate(indices):
        inside = any(index in chain[1:] for chain in chains)
        if inside:
            groups[-1] = (*groups[-1], place)
        else:
            groups.append((place,))
    return tuple(groups)


def _step(
    access: Access,
    groups: tuple[tuple[int, ...], ...],
    operands: dict[str, Operand],
    names: Names,
) -> Fuse:
    """Return the step that fuses the `groups` of stored modes of an access."""
    source = operands[access.tensor]
    order = source.type.format.mode_order
    modes = tuple(tuple(order[place] for place in group) for group in groups)
    target = names.fresh(f"{access.tensor}_fused")
    shape = tuple(prod(source.shape[mode] for mode in group) for group in modes)
    type = replace(source.type, format=dense(len(modes)))
    operands[target] = Operand(type, shape, source.nnz)
    return Fuse(target, access.tensor, modes)
