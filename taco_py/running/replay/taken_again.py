"""Arrays of temporaries in a short way: given up when nothing reads them any more, or taken again.

t0 = make0((a0_0, a1_1, ), dtype0)      t0 = make0((a0_0, a1_1, ), dtype0)
kernel0(t0, a0, a1)                     kernel0(t0, a0, a1)
t1 = make1((a0_0, a1_1, ), dtype1)   →  t1 = make1((a0_0, a1_1, ), dtype1)
kernel1(t1, t0)                         kernel1(t1, t0)
t2 = make2((a0_0, a1_1, ), dtype2)      t2 = t0
kernel2(t2, t1)                         kernel2(t2, t1); t1 = None

A later step takes an array of the same sizes and type that is free by then. What users get may lie
in memory of a temporary of the same call, and is never taken again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from codegen.records import dataclass

Key = tuple[tuple[str, ...], str, tuple[int, ...]]
"""Sizes, type and order of modes of an array."""


@dataclass(frozen=True, slots=True)
class NewArray:
    """A line that makes an array for a kernel's dense result.

    key      what an array has to be for the kernel to write to it
    cleared  whether it has to be zero
    """

    name: str
    line: str
    key: Key
    cleared: bool


Arrays = tuple[
    Sequence[Sequence[str]],
    Mapping[int, Sequence[str]],
    Mapping[str, NewArray],
    Mapping[str, Sequence[str]],
]
"""The arguments of `with_arrays_taken_again`."""


def equal_sizes(conditions: Iterable[str]) -> dict[str, str]:
    """Map each size to one that it equals, by conditions on which the long way is taken.

    >>> equal_sizes(["a1_0 != a0_1", "a2_0 != a1_0", "len(a0_pos) != a0_0 + 1"])
    {'a1_0': 'a0_1', 'a2_0': 'a0_1'}
    """
    same: dict[str, str] = {}

    def first(name: str) -> str:
        while name in same:
            name = same[name]
        return name

    for condition in conditions:
        one, _, other = condition.partition(" != ")
        if one.isidentifier() and other.isidentifier() and first(one) != first(other):
            same[first(one)] = first(other)
    return {name: first(name) for name in same}


def with_arrays_taken_again(
    steps: Sequence[Sequence[str]],
    free: Mapping[int, Sequence[str]],
    new: Mapping[str, NewArray],
    variables_of: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Yield the lines of steps, in which arrays that are free are taken again, or given up.

    free          the tensors that nothing reads after each step
    new           the lines that make arrays, by tensor
    variables_of  the variables that hold each tensor's arrays
    """
    source, waits = _plan_reuse(len(steps), free, new)
    by_line = {allocation.line: (name, allocation) for name, allocation in new.items()}
    for number, lines in enumerate(steps):
        for line in lines:
            name, array = by_line.get(line, ("", None))
            if array is None or name not in source:
                yield line
                continue
            yield f"{array.name} = {new[source[name]].name}"
            if array.cleared:
                yield f"{array.name}.fill(0)"
        gone = [name for name in free.get(number, ()) if name not in waits]
        variables = [v for name in gone for v in _names(name, source, variables_of)]
        if variables and number < len(steps) - 1:
            yield f"{' = '.join(dict.fromkeys(variables))} = None"


def _names(
    name: str, source: Mapping[str, str], variables_of: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the variables of a tensor, and of those whose array it took."""
    names = list(variables_of.get(name, ()))
    while name in source:
        name = source[name]
        names += variables_of.get(name, ())
    return names


def _plan_reuse(
    count: int, free: Mapping[int, Sequence[str]], new: Mapping[str, NewArray]
) -> tuple[dict[str, str], set[str]]:
    """Return for each tensor the one whose array it reuses, and the reused tensors."""
    target_of = {int(tensor.name[1:]): name for name, tensor in new.items()}
    idle: dict[Key, list[str]] = {}
    source: dict[str, str] = {}
    for number in range(count):
        name = target_of.get(number)
        if name is not None and idle.get(new[name].key):
            source[name] = idle[new[name].key].pop()
        for tensor in free.get(number, ()):
            if tensor in new:
                idle.setdefault(new[tensor].key, []).append(tensor)
    return source, {*source.values()}
