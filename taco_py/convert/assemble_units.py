"""Units of CSR: ELL, slices, n:m, diagonals, runs, by one text that stored modes and levels write.

Entries are gone through in their order. Queries come first: how many slots there are, and which
coordinates are the least and the last below each position. Then each entry has its place.
(Chou, Kjolstad and Amarasinghe 2020, sections 4 to 6.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.toolchain.errors import NoCompilerError
from codegen.types import INT32, INT64, UINT8, ScalarType
from taco_py.convert.stored_text import (
    INDEX_TYPES,
    LEAST,
    VALUE_TYPES,
    LevelText,
    coordinate_text,
    filled,
    texts_of,
    with_types,
)
from taco_py.formats import RemappedFormat
from taco_py.formats.level_kind import LevelKind
from taco_py.formats.stored_modes import Slot
from taco_py.kernels import KERNELS
from taco_py.storage.room import room
from taco_py.storage.tensor_data import Array, LevelArrays, TensorData

PARALLEL = 1 << 16
"""Entries from which on other threads are woken."""
HINT = "tp.CSR stores the entries alone"


def units_of_rows(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a matrix in CSR, sorted and without duplicates, in a remapped format.

    Returns None where the types are others, levels or modes have no text, entries are few or not
    in order, or nothing can be compiled. Raises FormatError where a group has too many entries.
    """
    arrays = data.levels[1]
    pos, crd = arrays.pos, arrays.crd
    assert pos is not None and crd is not None
    known = crd.dtype in INDEX_TYPES and data.dtype.itemsize in VALUE_TYPES
    if not known or data.fill or len(data.values) < LEAST or pos.dtype != crd.dtype:
        return None
    if len(pos) != data.shape[0] + 1 or pos[0] < 0 or pos[-1] > min(len(crd), len(data.values)):
        return None
    functions = _functions(format, crd.dtype, data.dtype)
    return None if functions is None else _Assembly(data, format, functions).made()


class _Assembly:
    """The arrays of one conversion, level by level."""

    def __init__(self, data: TensorData, format: RemappedFormat, functions: Any) -> None:
        self.data, self.format, self.functions = data, format, functions
        level = data.levels[1]
        assert level.pos is not None and level.crd is not None
        self.entries = level.pos, level.crd, data.values.view(np.uint8)
        self.index, self.order = level.crd.dtype, format.inner.order
        nothing = np.zeros(1, self.index)
        self.number = np.zeros(sum(data.shape) if _has_diagonals(format) else 1, self.index)
        self.arrays: list[Array] = [nothing] * (2 * self.order)
        self.shape = [each.size(data.shape) or 0 for each in format.modes]
        self.diagonals = 0

    def made(self) -> TensorData | None:
        """Return the stored tensor."""
        found = np.zeros(1, np.int64)
        self.functions["check_rows"](*self.entries, self.number, found, *self.data.shape, 1)
        if not found[0]:
            return None
        self.diagonals = int(np.count_nonzero(self.number))
        np.cumsum(self.number, out=self.number)
        self.number -= 1
        counts = [1]
        for place in range(self.order):
            count = self._assemble(place, counts)
            if count is None:
                return None
            counts.append(count)
        values = self._zeros(counts[-1], self.data.dtype)
        self._call("fill", values.view(np.uint8))
        kinds = self.format.inner.levels
        levels = tuple(
            LevelArrays(
                self.arrays[2 * k] if "pos" in kinds[k].kind.arrays else None,
                self.arrays[2 * k + 1] if "crd" in kinds[k].kind.arrays else None,
            )
            for k in range(self.order)
        )
        return replace(
            self.data, format=self.format.inner, shape=tuple(self.shape), levels=levels,
            values=values, sorted=True, unique=True,
        )  # fmt: skip

    def _assemble(self, place: int, counts: list[int]) -> int | None:
        """Make the arrays of a level; return how many positions it has."""
        kind, parents = self.format.inner.levels[place].kind, counts[-1]
        if kind is LevelKind.DENSE:
            self._measure(place)
            return parents * self.shape[place]
        if kind in (LevelKind.RAGGED, LevelKind.BANDED):
            return self._segment(place, parents, kind is LevelKind.BANDED)
        if kind is LevelKind.INTERVAL:
            self.arrays[2 * place] = self._zeros(parents, self.index)
            self.arrays[2 * place + 1] = self._zeros(parents, self.index)
        elif kind is LevelKind.OFFSET:
            self.arrays[2 * place + 1] = self._zeros(counts[-2], self.index)
        else:
            crd = self._zeros(parents, self.index)
            crd.fill(-1)
            self.arrays[2 * place + 1] = crd
        return parents

    def _measure(self, place: int) -> None:
        """Find how many slots a dense level has; refuse more than it may have."""
        mode = self.format.modes[place]
        if not isinstance(mode, Slot):
            return
        if not mode.within:
            self.shape[place] = self.diagonals
            return
        behind = np.zeros(1, self.index)
        self._call(f"query_{place}", behind, behind)
        mode.require(int(behind[0]))
        self.shape[place] = mode.most or int(behind[0])

    def _segment(self, place: int, parents: int, banded: bool) -> int | None:
        """Make pos of the ends of coordinates below each position, and crd of the least."""
        least = np.full(parents if banded else 1, np.iinfo(self.index).max, self.index)
        behind = self._zeros(parents, self.index)
        self._call(f"query_{place}", least, behind)
        if not self.shape[place]:
            self.shape[place] = int(behind.max(initial=0))
        if banded:
            least[behind == 0] = 0
            behind -= least
            self.arrays[2 * place + 1] = least
        total = int(behind.sum(dtype=np.int64))
        if total > np.iinfo(self.index).max:
            return None
        pos = np.zeros(parents + 1, self.index)
        np.cumsum(behind, out=pos[1:])
        self.arrays[2 * place] = pos
        return total

    def _zeros(self, count: int, dtype: Any) -> Array:
        what = f"a matrix of shape {self.data.shape} in the format {self.format}"
        with room(what, count * np.dtype(dtype).itemsize, HINT):
            return np.zeros(count, dtype)

    def _call(self, name: str, *outputs: Array) -> None:
        sizes = (*self.shape, *self.data.shape)
        threads = KERNELS.cores if len(self.data.values) >= PARALLEL else 1
        given = (*self.entries, self.number, *self.arrays, *outputs)
        self.functions[name](*given, *sizes, threads)


def _functions(format: RemappedFormat, index: np.dtype[Any], dtype: np.dtype[Any]) -> Any:
    """The functions for such levels and types, compiled where they are not yet."""
    key = f"units of {format.inner} {format.mapping} {index.name} {dtype.itemsize}"
    found = KERNELS.memo.get(key)
    if found is not None:
        return found
    source = _source(format, index, dtype)
    if source is None:
        return None
    try:
        found = KERNELS.get_or_build(key, lambda: source).kernel.functions
    except NoCompilerError:
        return None
    KERNELS.memo.put(key, found)
    return found


def _source(
    format: RemappedFormat, index: np.dtype[Any], dtype: np.dtype[Any]
) -> KernelSource | None:
    """The text for a format and types, None where a mode or a level has none."""
    levels = texts_of(format)
    found = [coordinate_text(mode, k) for k, mode in enumerate(format.modes)]
    coordinates = [each for each in found if each is not None]
    if levels is None or len(coordinates) < len(found) or not all(each.place for each in levels):
        return None
    element, order = INDEX_TYPES[index], len(levels)
    arrays = [f"{name}{k}" for k in range(order) for name in ("lpos", "lcrd")]
    sizes = [*(f"n{k}" for k in range(order)), "rows", "columns"]
    functions = [
        _Function("check_rows", ["number"], ["found"], sizes[-2:], _check(format)),
        *(
            _Function(f"query_{k}", ["number", *arrays], ["least", "behind"], sizes,
                      _loop(coordinates, levels[:k], _query(k, format)))
            for k in range(order) if levels[k].query or _is_counted(format, k)
        ),
    ]  # fmt: skip
    writes = [filled(level.write, k) for k, level in enumerate(levels)]
    value = f"((VALUE *)to)[p{order - 1}] = values[q];"
    # rows share what is stored for a whole diagonal
    apart = not any("{b}" in level.write for level in levels)
    body = _loop(coordinates, levels, "\n".join((*writes, value)), apart)
    functions.append(_Function("fill", ["number", *arrays], ["to"], sizes, body))
    text = "\n".join(each.text for each in functions)
    signatures = tuple(each.signature(element) for each in functions)
    return KernelSource(with_types(text, index, dtype), signatures)


def _is_counted(format: RemappedFormat, place: int) -> bool:
    """Whether a level has as many coordinates as the fullest row or group has entries."""
    mode = format.modes[place]
    dense = format.inner.levels[place].kind is LevelKind.DENSE
    return dense and isinstance(mode, Slot) and bool(mode.within)


@dataclass(frozen=True, slots=True)
class _Function:
    """A function over the entries of CSR."""

    name: str
    arrays: list[str]
    outputs: list[str]
    sizes: list[str]
    body: str

    @property
    def text(self) -> str:
        outputs = {"found": "int64_t *found", "to": "void *to"}
        arguments = (
            "const INDEX *restrict pos", "const INDEX *restrict crd", "const void *from",
            *(f"INDEX *restrict {name}" for name in self.arrays),
            *(outputs.get(name, f"INDEX *restrict {name}") for name in self.outputs),
            *(f"int64_t {name}" for name in self.sizes), "int32_t threads",
        )  # fmt: skip
        head = "const VALUE *restrict values = from; const int64_t p_root = 0;"
        return (
            f"\nint32_t {self.name}({', '.join(arguments)})\n{{\n"
            f"{head} (void)values; (void)p_root; (void)threads;\n{self.body}\nreturn 0;\n}}\n"
        )

    def signature(self, element: ScalarType) -> Signature:
        types = {"found": INT64, "to": UINT8}
        parameters = (
            *(Parameter(name, Kind.INPUT, element) for name in ("pos", "crd")),
            Parameter("from", Kind.INPUT, UINT8),
            *(Parameter(name, Kind.OUTPUT, element) for name in self.arrays),
            *(Parameter(n, Kind.OUTPUT, types.get(n, element)) for n in self.outputs),
            *(Parameter(name, Kind.SCALAR, INT64) for name in self.sizes),
            Parameter("threads", Kind.THREADS, INT32),
        )
        return Signature(self.name, parameters)


def _check(format: RemappedFormat) -> str:
    """Look whether positions and columns ascend, which all other loops rely on; mark diagonals."""
    mark = "number[j - i + rows - 1] = 1;" if _has_diagonals(format) else ""
    return f"""*found = 0;
for (int64_t i = 0; i < rows; i++)
    if (pos[i + 1] < pos[i])
        return 0;
for (int64_t i = 0; i < rows; i++) {{
    int64_t before = -1;
    for (int64_t q = pos[i]; q < pos[i + 1]; q++) {{
        const int64_t j = crd[q];
        if (j <= before || j >= columns)
            return 0;
        before = j;
        {mark}
    }}
}}
*found = 1;"""


def _has_diagonals(format: RemappedFormat) -> bool:
    return any(isinstance(mode, Slot) and not mode.within for mode in format.modes)


def _query(place: int, format: RemappedFormat) -> str:
    """Widen the ends of the coordinates below a position; of slots, of all."""
    above = "0" if _is_counted(format, place) else f"p{place - 1}" if place else "0"
    behind = f"if (s{place} >= behind[{above}]) behind[{above}] = (INDEX)(s{place} + 1);"
    if format.inner.levels[place].kind is LevelKind.BANDED:
        behind += f"\nif (s{place} < least[{above}]) least[{above}] = (INDEX)s{place};"
    return behind


def _loop(
    coordinates: list[str], levels: list[LevelText], body: str, apart: bool = False
) -> str:
    """Go through all entries: the coordinates of each, its positions, and what is to be done.

    apart  whether rows may be shared among threads
    """
    order = len(coordinates)
    names = ", ".join(f"s{k} = 0, before{k} = -1, p{k} = 0" for k in range(order))
    used = "".join(f"(void)s{k}; (void)before{k}; (void)p{k};" for k in range(order))
    positions = "\n".join(filled(level.place or "", k) for k, level in enumerate(levels))
    pragma = "#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)\n"
    entry = "\n".join((*coordinates, positions, body))
    return f"""{pragma if apart else ""}for (int64_t i = 0; i < rows; i++) {{
    const int64_t begin = pos[i], end = pos[i + 1];
    int64_t {names};
    {used}
    for (int64_t q = begin; q < end; q++) {{
        const int64_t j = crd[q];
{entry}
    }}
}}"""
