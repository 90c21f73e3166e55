"""Dataflow graphs as text, and back.

parse(to_text(graph), operators) == graph
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from taco_py.compiler.dataflow.nodes import (
    Buffer,
    Compute,
    Dataflow,
    Instruction,
    Load,
    Memory,
    ParallelMap,
    Pass,
    Pick,
    Prefetch,
    Reduce,
    Role,
    SlabIndex,
    Store,
)
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.notation.nodes import Literal
from taco_py.language.notation.operators import Operator

STREAMING = " past the caches"
ELEMENT = r"([\w']+)\[([\w',]*)\]"
"""The pattern of an element: a name, and indices in brackets."""


def to_text(graph: Dataflow) -> str:
    """Print a graph, a line for each buffer, loop and instruction."""
    return "\n".join(_lines(graph))


def _lines(graph: Dataflow) -> Iterator[str]:
    for buffer in graph.buffers:
        place = f"{buffer.dtype} {buffer.memory.value} {buffer.role.value}"
        yield f"{_element(buffer.name, buffer.indices)}: {place}"
    for map in graph.maps:
        yield " ".join(("parallel", ",".join(map_index(index) for index in map.slab))).rstrip()
        for one in map.passes:
            yield f"  over {','.join(one.over)}" if one.over else "  once"
            yield from (f"    {instruction_text(instruction)}" for instruction in one.body)


def map_index(index: SlabIndex) -> str:
    """Print an index of slabs: `i`, or `j/64` for blocks of 64."""
    return index.name if index.block == 1 else f"{index.name}/{index.block}"


def instruction_text(instruction: Instruction) -> str:
    """Print an instruction on one line."""
    match instruction:
        case Load(value, dtype, buffer, indices):
            return f"{value}: {dtype} = load {_element(buffer, indices)}"
        case Pick(value, dtype, buffer, indices, index, place, otherwise):
            element = _element(buffer, indices)
            at = f"where {index} is {place} else {_argument(otherwise)}"
            return f"{value}: {dtype} = pick {element} {at}"
        case Compute(value, dtype, operator, args):
            return " ".join((f"{value}: {dtype} = {operator.name}", *map(_argument, args)))
        case Reduce(value, dtype, operator, arg):
            return f"{value}: {dtype} = reduce {operator.name} {_argument(arg)}"
        case Store(buffer, indices, arg, operator, streaming):
            by = "" if operator is None else f"{operator.name} "
            past = STREAMING if streaming else ""
            return f"store {_element(buffer, indices)} = {by}{_argument(arg)}{past}"
        case Prefetch(buffer, indices):
            return f"prefetch {_element(buffer, indices)}"


def _element(name: str, indices: Sequence[str]) -> str:
    return f"{name}[{','.join(indices)}]"


def _argument(arg: str | Literal) -> str:
    """Print a value's name, or a number with its type after a colon."""
    if isinstance(arg, str):
        return arg
    word = type(arg.value).__name__
    return f"{arg.value!r}:{word}" + (f":{arg.dtype}" if arg.dtype else "")


def parse(text: str, operators: Callable[[str], Operator]) -> Dataflow:
    """Parse the text of a graph.

    operators  returns the operator of a name

    Raises NotationError with the line that is no part of a graph.
    """
    buffers: list[Buffer] = []
    maps: list[tuple[tuple[SlabIndex, ...], list[tuple[tuple[str, ...], list[Instruction]]]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            if line.startswith("    "):
                maps[-1][1][-1][1].append(_instruction(line.strip(), operators))
            elif line.startswith("  "):
                word, _, loops = line.strip().partition(" ")
                maps[-1][1].append((_names(loops), []))
                if (word, bool(loops)) not in (("over", True), ("once", False)):
                    raise ValueError(word)
            elif line.split()[0] == "parallel":
                maps.append((tuple(map(_slab_index, _names(line[len("parallel") :]))), []))
            else:
                buffers.append(_buffer(line))
        except (ValueError, IndexError, KeyError) as error:
            raise NotationError(
                f"Expected a buffer, a loop or an instruction of a dataflow graph, found "
                f"{line.strip()!r} in line {number}"
            ) from error
    return Dataflow(
        tuple(buffers),
        tuple(
            ParallelMap(slab, tuple(Pass(over, tuple(body)) for over, body in passes))
            for slab, passes in maps
        ),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _slab_index(text: str) -> SlabIndex:
    name, _, block = text.partition("/")
    return SlabIndex(name, int(block or 1))


def _buffer(line: str) -> Buffer:
    element, place = line.split(": ")
    name, indices = _parsed_element(element)
    dtype, memory, role = place.split()
    return Buffer(name, indices, dtype, Memory(memory), Role(role))


def _parsed_element(text: str) -> tuple[str, tuple[str, ...]]:
    match = re.fullmatch(ELEMENT, text.strip())
    if match is None:
        raise ValueError(text)
    return match[1], _names(match[2])


def _instruction(line: str, operators: Callable[[str], Operator]) -> Instruction:
    if line.startswith("prefetch "):
        return Prefetch(*_parsed_element(line.removeprefix("prefetch ")))
    if line.startswith("store "):
        return _store(line.removeprefix("store "), operators)
    head, _, tail = line.partition(" = ")
    value, dtype = head.split(": ")
    word, *args = tail.split()
    if word == "load":
        return Load(value, dtype, *_parsed_element("".join(args)))
    if word == "pick":
        element, _, index, _, place, _, number = args
        otherwise = _parsed_argument(number)
        if isinstance(otherwise, str):
            raise ValueError(number)
        return Pick(value, dtype, *_parsed_element(element), index, place, otherwise)
    if word == "reduce":
        name, arg = args
        return Reduce(value, dtype, operators(name), _parsed_argument(arg))
    return Compute(value, dtype, operators(word), tuple(map(_parsed_argument, args)))


def _store(line: str, operators: Callable[[str], Operator]) -> Store:
    streaming = line.endswith(STREAMING)
    element, _, rest = line.removesuffix(STREAMING).partition(" = ")
    *by, arg = rest.split()
    operator = operators(by[0]) if by else None
    return Store(*_parsed_element(element), _parsed_argument(arg), operator, streaming)


def _parsed_argument(text: str) -> str | Literal:
    number, *types = text.split(":")
    if not types:
        return number
    makers: dict[str, Callable[[str], bool | int | float | complex]] = {
        "bool": "True".__eq__, "int": int, "float": float, "complex": complex,
    }  # fmt: skip
    return Literal(makers[types[0]](number), dtype=types[1] if len(types) > 1 else None)
