"""A directed acyclic graph of primitives as bit masks: what kernels are chosen from.

Primitive p is bit p of every mask. Primitives are numbered in a topological order, so the lowest
bits of a set that is closed come first. Before → after, for `exp(x) + sum(exp(x))`:

    make_dag(((~0,), (0,), (0, 1)), outputs=0b100, operators=("exp", "sum", "add"))
    →  0 exp(x0); 1 sum(0); 2 add(0, 1); outputs 2

Nothing here knows what a primitive computes: a primitive is a name with arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import OperandError


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits of a mask, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(numbers: Iterable[int]) -> int:
    """Return the mask whose bits are these numbers."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


@dataclass(frozen=True, slots=True)
class Dag:
    """Primitives with what each reads, and the sets that searches ask for.

    arguments     for each primitive the ordered arguments: p a primitive, ~k the graph's input k
    outputs       the primitives whose values are results
    operators     the name of each primitive's operator
    flags         properties of primitives: names with masks, `heavy` say
    predecessors  for each primitive those it reads; `successors` those that read it
    ancestors     for each primitive those it depends on; `descendants` those that depend on it
    """

    arguments: tuple[tuple[int, ...], ...]
    outputs: int
    operators: tuple[str, ...]
    flags: tuple[tuple[str, int], ...]
    predecessors: tuple[int, ...]
    successors: tuple[int, ...]
    ancestors: tuple[int, ...]
    descendants: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return the number of primitives."""
        return len(self.arguments)

    @property
    def all(self) -> int:
        """Return the mask of all primitives."""
        return (1 << len(self.arguments)) - 1

    @property
    def live(self) -> int:
        """Return the primitives that a result is or depends on."""
        return self.outputs | self.before(self.outputs)

    def flagged(self, name: str) -> int:
        """Return the primitives with a flag, none where nobody set it."""
        return dict(self.flags).get(name, 0)

    def before(self, members: int) -> int:
        """Return the union of the ancestors of these primitives."""
        return _union(self.ancestors, members)

    def after(self, members: int) -> int:
        """Return the union of the descendants of these primitives."""
        return _union(self.descendants, members)

    def reads(self, members: int) -> int:
        """Return the primitives outside of a set whose values it reads."""
        return _union(self.predecessors, members) & ~members

    def read_outside(self, members: int) -> int:
        """Return the members whose values others read, or that are results."""
        used = self.outputs & members
        for p in bits(members & ~used):
            if self.successors[p] & ~members:
                used |= 1 << p
        return used

    def label(self, primitive: int) -> str:
        """Return a primitive's number and operator, as messages name it."""
        return f"{primitive} {self.operators[primitive]}"

    def __str__(self) -> str:
        parts = [
            f"{self.label(p)}({', '.join(f'x{~a}' if a < 0 else str(a) for a in read)})"
            for p, read in enumerate(self.arguments)
        ]
        parts.append("outputs " + ", ".join(map(str, bits(self.outputs))))
        parts += [f"{name} " + ", ".join(map(str, bits(mask))) for name, mask in self.flags]
        return "; ".join(parts)


def make_dag(
    arguments: Sequence[Sequence[int]],
    outputs: int,
    operators: Sequence[str] | None = None,
    flags: Mapping[str, int] | None = None,
) -> Dag:
    """Make a Dag from the arguments of each primitive, all of which are earlier ones.

    Raises OperandError where a primitive reads itself, a later or a missing one, or where a mask
    or a list of names does not fit the number of primitives.
    """
    size = len(arguments)
    names = tuple(operators) if operators is not None else ("op",) * size
    if len(names) != size:
        raise OperandError(f"Expected {size} names of operators, found {len(names)}")
    for what, mask in (("outputs", outputs), *(flags or {}).items()):
        if mask < 0 or mask >> size:
            raise OperandError(f"Expected {what} among {size} primitives, found mask {mask:#b}")
    predecessors: list[int] = []
    for p, read in enumerate(arguments):
        late = [a for a in read if a >= p]
        if late:
            raise OperandError(
                f"Expected primitive {p} {names[p]} to read earlier primitives, found {late[0]}",
                hint="number the primitives in a topological order",
            )
        predecessors.append(mask_of(a for a in read if a >= 0))
    return Dag(
        tuple(map(tuple, arguments)),
        outputs,
        names,
        tuple(sorted((flags or {}).items())),
        tuple(predecessors),
        *_closures(predecessors),
    )


def dag_of_edges(size: int, edges: Iterable[tuple[int, int]], outputs: int | None = None) -> Dag:
    """Make a Dag of edges (from, to); without outputs, those that none reads are the results."""
    arguments: list[list[int]] = [[] for _ in range(size)]
    read = set()
    for start, end in edges:
        arguments[end].append(start)
        read.add(start)
    last = mask_of(set(range(size)) - read)
    return make_dag(arguments, last if outputs is None else outputs)


def _closures(
    predecessors: Sequence[int],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return successors, ancestors and descendants of primitives in a topological order."""
    size = len(predecessors)
    successors, ancestors, descendants = [0] * size, [0] * size, [0] * size
    for p, read in enumerate(predecessors):
        ancestors[p] = read | _union(ancestors, read)
        for q in bits(read):
            successors[q] |= 1 << p
    for p in reversed(range(size)):
        descendants[p] = successors[p] | _union(descendants, successors[p])
    return tuple(successors), tuple(ancestors), tuple(descendants)


def _union(sets: Sequence[int], members: int) -> int:
    union = 0
    for p in bits(members):
        union |= sets[p]
    return union
