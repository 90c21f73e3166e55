"""Loop nests for a grouping: the loops that temporaries share with their readers, and their order.

    A[i,j] += w[i,l] * D[j,l]  where  w[i,l] += B[i,k] * C[k,l]
    → forall i ( where( forall j forall l A[i,j] += w[l] * D[j,l],
                        forall k forall l w[l] += B[i,k] * C[k,l] ) )

Any of the indices that a temporary's consumer and producer share may stay outside its `where`; the
temporary is then computed anew in each iteration, with fewer modes. No loop stays outside that
would repeat a computation which does not depend on it. Only nests of the least depth are
considered: a deeper one than necessary is never asymptotically better. (Ahrens et al. 2022, section
7.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, combinations, count, islice, permutations
from math import factorial

from codegen.records import dataclass
from taco_py.compiler.asymptotic.groupings import Group
from taco_py.compiler.concrete.nodes import (
    Assign,
    Statement,
    Where,
    Workspace,
    WorkspaceKind,
    forall,
)
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.operators import ADD
from taco_py.language.notation.tree import map_accesses


@dataclass(frozen=True, slots=True)
class Leaf:
    """Loops over `loops`, in any order, around `assign`."""

    loops: tuple[str, ...]
    assign: Assign

    @property
    def depth(self) -> int:
        return len(self.loops)

    @property
    def count(self) -> int:
        """Return the number of its loop orders."""
        return factorial(len(self.loops))


@dataclass(frozen=True, slots=True)
class Shared:
    """Loops over `loops`, in any order, around a `where`."""

    loops: tuple[str, ...]
    temporary: Access
    consumer: Skeleton
    producer: Skeleton

    @property
    def depth(self) -> int:
        return len(self.loops) + max(self.consumer.depth, self.producer.depth)

    @property
    def count(self) -> int:
        return factorial(len(self.loops)) * self.consumer.count * self.producer.count


Skeleton = Leaf | Shared


def skeletons(group: Group) -> Iterator[Skeleton]:
    """Yield every way for the temporaries of a grouping to share loops with their readers."""
    return _skeletons(group, ())


def _skeletons(group: Group, bound: tuple[str, ...]) -> Iterator[Skeleton]:
    if not group.parts:
        yield _leaf(group, bound)
        return
    for place, part in enumerate(group.parts):
        more = tuple(p for k, p in enumerate(group.parts) if k != place)
        rest = replace(group, parts=more)
        for loops in _subsets(_shareable(part, rest, bound)):
            if not loops and place > 0:
                continue  # two `where`s around nothing in common come in one order
            outer = (*bound, *loops)
            target = _trimmed(part.target, outer)
            reader = replace(rest, body=_exchanged(rest.body, part.target, target))
            narrow = replace(part, target=target)
            for producer in _skeletons(narrow, outer):
                for consumer in _skeletons(reader, outer):
                    yield Shared(loops, target, consumer, producer)


def _leaf(group: Group, bound: tuple[str, ...]) -> Leaf:
    read = (i for access in accesses(group.body) for i in access.indices)
    indices = dict.fromkeys((*group.target.indices, *read))
    operator = ADD if group.reduced else None
    loops = tuple(i for i in indices if i not in bound)
    return Leaf(loops, Assign(group.target, group.body, operator))


def _shareable(part: Group, rest: Group, bound: tuple[str, ...]) -> tuple[str, ...]:
    """Return the indices whose loops may be outside: all groups inside depend on them."""
    common = part.indices & rest.indices
    for group in _inside((part, rest)):
        common &= group.indices
    return tuple(i for i in part.target.indices if i in common and i not in bound)


def _inside(groups: Iterable[Group]) -> Iterator[Group]:
    for group in groups:
        yield from group.parts
        yield from _inside(group.parts)


def _trimmed(access: Access, bound: tuple[str, ...]) -> Access:
    return Access(access.tensor, tuple(i for i in access.indices if i not in bound))


def _exchanged(body: Expr, old: Access, new: Access) -> Expr:
    return map_accesses(body, lambda access: new if access == old else access)


def _subsets(items: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


# ---------------------------------------------------------------- loop orders


@dataclass(frozen=True, slots=True)
class Nest:
    """A statement with the accesses of its temporaries."""

    statement: Statement
    temporaries: tuple[Access, ...]


def nests(skeleton: Skeleton, dtype: str) -> Iterator[Nest]:
    """Yield the skeleton with its loops in every order; parts are shared among the statements."""
    temporaries = tuple(_temporaries(skeleton))
    for statement in _orders(skeleton, dtype):
        yield Nest(statement, temporaries)


def _temporaries(skeleton: Skeleton) -> Iterator[Access]:
    if isinstance(skeleton, Shared):
        yield skeleton.temporary
        yield from _temporaries(skeleton.consumer)
        yield from _temporaries(skeleton.producer)


def _orders(skeleton: Skeleton, dtype: str) -> Iterator[Statement]:
    """Yield the statements of a skeleton lazily: n loops have n! orders."""
    if isinstance(skeleton, Leaf):
        for order in permutations(skeleton.loops):
            yield forall(order, skeleton.assign)
        return
    bodies = _Replayed(_bodies(skeleton, dtype))
    for order in permutations(skeleton.loops):
        for body in bodies:
            yield forall(order, body)


def _bodies(skeleton: Shared, dtype: str) -> Iterator[Statement]:
    workspace = _workspace(skeleton.temporary, dtype)
    consumers = _Replayed(_orders(skeleton.consumer, dtype))
    for producer in _orders(skeleton.producer, dtype):
        for consumer in consumers:
            yield Where(workspace, consumer, producer)


class _Replayed:
    """Statements for repeated iteration, generated lazily.

    Each iteration yields the same objects, whose tasks are cached (`Recorder`).
    """

    def __init__(self, source: Iterator[Statement]) -> None:
        self.source = source
        self.generated: list[Statement] = []

    def __iter__(self) -> Iterator[Statement]:
        for place in count():
            if place == len(self.generated):
                self.generated.extend(islice(self.source, 1))
            if place == len(self.generated):
                return
            yield self.generated[place]


def _workspace(temporary: Access, dtype: str) -> Workspace:
    kinds = (WorkspaceKind.SCALAR, WorkspaceKind.ROW)
    order = len(temporary.indices)
    kind = kinds[order] if order < len(kinds) else WorkspaceKind.HASH
    return Workspace(temporary.tensor, temporary.indices, kind, dtype)
