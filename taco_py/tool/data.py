"""The operands of the command-line tool: read from files, or made up; and their sizes and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

from codegen.records import dataclass
from taco_py.api.files import read
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.sources import suffix
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.formats import Format, dense
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.half_types import number_kind
from taco_py.language.notation.nodes import Assignment
from taco_py.tool.flags import CommandLine, UsageError

SIZE = 42
"""Of an index of which nothing is said, as in TACO."""

TYPES = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16",
    "int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64",
    "longlong": "int64", "ulonglong": "uint64", "float": "float32", "double": "float64",
    "complexfloat": "complex64", "complexdouble": "complex128",
    **{name: name for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
                               "uint32", "uint64", "float16", "float32", "float64", "complex64",
                               "complex128")},
}  # fmt: skip
"""NumPy's names of TACO's types."""

FILLS = {"d": 1.0, "u": 1.0, "r": 1.0, "s": 0.07, "h": 0.005}
"""The part of the values that is stored."""

MOST_PLACES = 2**40
"""Elements of a made-up operand, stored or not."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What flags say of the tensors of an assignment."""

    formats: Mapping[str, Format]
    dtypes: Mapping[str, str]
    sizes: Mapping[str, int]


def declared(
    line: CommandLine, assignment: Assignment, result: str, operands: Mapping[str, Tensor]
) -> Declared:
    """Return formats, types and sizes. Raises UsageError, FormatError or OperandError.

    result  what the user calls the result
    """
    orders = {result: len(assignment.target.indices)}
    orders |= {access.tensor: len(access.indices) for access in accesses(assignment)}
    names = operand_names(assignment)
    for flag in ("f", "t", "g", "i", "o"):
        for name, _ in line.pairs(flag):
            check_tensor(name, tuple(orders), flag)
    formats = {name: dense(order) for name, order in orders.items()}
    formats.update({name: Format.parse(text) for name, text in line.values_of("f").items()})
    dtypes = dict.fromkeys(names, "float64")
    for name, text in line.values_of("t").items():
        if text not in TYPES:
            raise UsageError(f"Expected a type for {name} out of {', '.join(TYPES)}, found {text}")
        if name in dtypes:
            dtypes[name] = TYPES[text]
    return Declared(formats, dtypes, _sizes(line, assignment, operands))


def check_tensor(name: str, tensors: tuple[str, ...], flag: str) -> None:
    """Raise OperandError for a tensor that the expression has not."""
    if name not in tensors:
        raise OperandError(f"Expected one of {', '.join(tensors)} for -{flag}, found {name}")


def _sizes(
    line: CommandLine, assignment: Assignment, operands: Mapping[str, Tensor]
) -> dict[str, int]:
    """Return the size of each index: of tensors that were read and from -d, 42 where neither says.

    Raises OperandError where two of them differ, and UsageError.
    """
    sources: dict[str, tuple[int, str]] = {}
    for index, size, source in _said_sizes(line, assignment, operands):
        other, first = sources.setdefault(index, (size, source))
        if other != size:
            raise OperandError(
                f"Expected one size of {index}, found {other} in {first} and {size} in {source}"
            )
    indices = dict.fromkeys(i for access in accesses(assignment) for i in access.indices)
    return {index: sources.get(index, (SIZE, ""))[0] for index in indices}


def _said_sizes(
    line: CommandLine, assignment: Assignment, operands: Mapping[str, Tensor]
) -> Iterator[tuple[str, int, str]]:
    """Yield each index whose size is stated, with the size and its source."""
    every = (*accesses(assignment), assignment.target)
    tensors, indices = {a.tensor for a in every}, {i for a in every for i in a.indices}
    files = line.values_of("i")
    for access in every:
        if access.tensor in operands:
            sizes, source = operands[access.tensor].shape, files[access.tensor]
            yield from ((i, n, source) for i, n in zip(access.indices, sizes, strict=False))
    for name, text in line.pairs("d"):
        sizes, source = _numbers(text), f"-d={name}:{text}"
        if name not in tensors | indices:
            raise OperandError(
                f"Expected an index or a tensor for -d, found {name}",
                hint=f"the indices are {', '.join(sorted(indices))}",
            )
        for names in {a.indices for a in every if a.tensor == name} or {(name,)}:
            if len(sizes) != len(names):
                raise OperandError(
                    f"Expected {_counted(len(names))} for {name}, found {len(sizes)}"
                )
            yield from ((i, n, source) for i, n in zip(names, sizes, strict=True))


def _counted(number: int) -> str:
    return f"{number} size" if number == 1 else f"{number} sizes"


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        raise UsageError(
            f"Expected sizes below 10^15, with commas between them, for -d, found {text}"
        )
    return tuple(map(int, parts))


def read_operands(line: CommandLine, assignment: Assignment) -> dict[str, Tensor]:
    """Return the operands that are in files. Raises FileFormatError, OSError and what `declared`
    does."""
    indices = {a.tensor: a.indices for a in accesses(assignment)}
    formats, types = line.values_of("f"), line.values_of("t")
    tensors = {}
    for name, path in line.values_of("i").items():
        check_tensor(name, tuple(indices), "i")
        form = formats.get(name, "d" * len(indices[name]))
        dtype = TYPES.get(types.get(name, "double"))
        open_ended = suffix(Path(path)) in (".tns", ".ttx")
        shape = _said_shape(line, name, indices[name]) if open_ended else None
        tensors[name] = read(path, form, shape, dtype)
    return tensors


def _said_shape(line: CommandLine, name: str, indices: Sequence[str]) -> tuple[int, ...] | None:
    """Return the sizes that -d states for a tensor or its indices, where its file has none."""
    said = {key: _numbers(text) for key, text in line.pairs("d")}
    if name in said:
        return said[name] if len(said[name]) == len(indices) else None
    if not all(len(said.get(index, ())) == 1 for index in indices):
        return None
    return tuple(said[index][0] for index in indices)


def generate(name: str, fill: str, shape: tuple[int, ...], form: Format, dtype: str) -> Tensor:
    """Return a tensor of random values, of which the part that `fill` says is stored; always the
    same.

    Raises UsageError.
    """
    part = _part(name, fill)
    volume = prod(shape)
    if volume > MOST_PLACES:
        raise UsageError(
            f"Expected at most 2^40 elements to choose from for {name}, found {volume}",
            hint="made-up operands are for trying out: choose smaller sizes with -d",
        )
    try:
        return _random(name, part, shape, form, dtype)
    except MemoryError as error:
        raise UsageError(
            f"Expected memory for {name}, which is made up of {round(part * volume)} values, found "
            "too little",
            hint="choose smaller sizes with -d, or store less of it with -g",
        ) from error


def _random(name: str, part: float, shape: tuple[int, ...], form: Format, dtype: str) -> Tensor:
    volume = prod(shape)
    rng = np.random.default_rng(len(name) + sum(map(ord, name)))
    if part >= 1:
        values = _values(rng, volume, dtype).reshape(shape)
        return Tensor.from_numpy(values, form)
    places = np.unique(rng.integers(0, max(1, volume), round(part * volume)))
    coords = np.unravel_index(places, shape) if places.size else [places] * len(shape)
    return Tensor(pack_coo(list(coords), _values(rng, places.size, dtype), shape, form))


def _values(rng: np.random.Generator, count: int, dtype: str) -> np.ndarray[tuple[int], np.dtype]:
    """Return numbers that every type can hold, none of them zero."""
    if number_kind(np.dtype(dtype)) in "fc":
        return rng.uniform(0.5, 1.5, count).astype(dtype)
    return rng.integers(1, 4, count).astype(dtype)


def _part(name: str, fill: str) -> float:
    if fill in FILLS:
        return FILLS[fill]
    try:
        part = float(fill)
    except ValueError:
        part = -1.0
    if not 0 <= part <= 1:
        raise UsageError(
            f"Expected {', '.join(FILLS)} or a number from 0 to 1 for -g={name}, found {fill}"
        )
    return part
