"""CSR into formats whose levels are filled row by row: ELL, SELL, NM, RLE, DIA, by one mechanism.

As in Chou, Kjolstad and Amarasinghe 2020 (sections 4 to 6), the C text is derived from the format:
each stored mode is computed from (i, j) of an entry (remapping), passes over the entries
count what levels need to be allocated (attribute queries), and a last pass puts each entry at its
position (assembly).

    ELL      most entries of a row                    →  i * most + #j
    SELL(4)  most entries of a row in each slice      →  (pos[i/4] + #j) * 4 + i%4
    DIA      diagonals, first and last row of each    →  pos[#j-i] + i - first[#j-i]
"""

from __future__ import annotations

from dataclasses import replace
from math import lcm
from typing import Any

import numpy as np

from taco_py.data.convert.row_text import (
    PARALLEL,
    as_bytes,
    compiled,
    expression,
    index_of,
    is_known,
)
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.by_level.row_steps import STEPS
from taco_py.data.storage.by_level.sound_levels import ascend_from_zero
from taco_py.data.storage.pack import SPARSER
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.diagnostics.errors import StructureError
from taco_py.language.formats import LevelKind, RemappedFormat
from taco_py.language.formats.stored_modes import (
    PlainMode,
    Quotient,
    Remainder,
    Run,
    Slot,
    StoredMode,
)

MOST_KEYS = 4
"""The largest range of keys, per entry, for which occurring keys are marked in a table."""
WRONG = np.iinfo(np.int64).max
"""The result of a pass that meets a column outside of the matrix."""


def coordinate(k: int, mode: StoredMode) -> str | None:
    """Write c{k} of an entry in C; None where the mode depends on entries of other rows."""
    plain = expression(mode)
    if plain is not None:
        return f"const int64_t c{k} = {plain};"
    if isinstance(mode, Run) and mode == Run(1, (0,)):
        return (
            f"n{k} += p == pos[i] || j != (int64_t)crd[p - 1] + 1 || !same(from[p], from[p - 1]);\n"
            f"const int64_t c{k} = n{k};"
        )
    if not isinstance(mode, Slot):
        return None
    if not mode.group_by:
        key = expression(mode.of_mode)
        return None if key is None else f"const int64_t c{k} = rank{k}[{key}];"
    return _counter(k, mode)


def _counter(k: int, mode: Slot) -> str | None:
    """Write the rank of an entry in its row, or in its group of adjacent entries."""
    if PlainMode(0) not in mode.group_by:
        return None
    groups = [mode for mode in mode.group_by if mode != PlainMode(0)]
    ranked = mode.of_mode
    inside = (
        isinstance(ranked, Remainder) and groups == [Quotient(1, ranked.block)] and ranked.mode == 1
    )
    if ranked == PlainMode(1) and not groups:
        return f"const int64_t c{k} = p - pos[i];"
    if not inside:
        return None
    block = ranked.block  # type: ignore[attr-defined]
    return (
        f"n{k} = p == pos[i] || j / {block} != crd[p - 1] / {block} ? 0 : n{k} + 1;\n"
        f"const int64_t c{k} = n{k};"
    )


def is_ranked(mode: StoredMode) -> bool:
    """Tell whether a mode ranks keys of the full matrix in a table of occurring keys."""
    return isinstance(mode, Slot) and not mode.group_by


def is_open(mode: StoredMode, kind: LevelKind) -> bool:
    """Tell whether the entries determine the size of a dense level, or bound it."""
    return isinstance(mode, Slot) and kind.full and not is_ranked(mode)


def is_assembled(format: RemappedFormat) -> bool:
    """Tell whether the C text covers all modes and levels of a format."""
    inner = format.inner
    if format.order != 2 or inner.mode_order != tuple(range(inner.order)):
        return False
    levels = all(level.kind in STEPS and level.unique for level in inner.levels)
    return levels and all(coordinate(k, m) is not None for k, m in enumerate(format.modes))


def bodies(format: RemappedFormat) -> dict[str, str]:
    """Return the C body of each pass: marks, queries, the assembly."""
    passes: dict[str, str] = {}
    kinds = [level.kind for level in format.inner.levels]
    for k, (mode, kind) in enumerate(zip(format.modes, kinds, strict=True)):
        above = _above(format, k)
        if is_ranked(mode):
            key = expression(mode.of_mode)  # type: ignore[attr-defined]
            passes[f"mark{k}"] = _pass(format, f"{above}\nrank{k}[{key}] = 1;")
        text_of_c = coordinate(k, mode)
        if is_open(mode, kind):
            text = f"{above}\n{text_of_c}\nif (c{k} >= most) most = c{k} + 1;"
            passes[f"query{k}"] = _pass(format, text)
        elif STEPS[kind].query:
            passes[f"query{k}"] = _pass(
                format, f"{above}\n{text_of_c}\n{_at(STEPS[kind].query, k)}"
            )
    last = len(kinds)
    writes = [_at(STEPS[kind].write, k) for k, kind in enumerate(kinds)]
    text = "\n".join((_above(format, last), *writes, f"to[q{last - 1}] = from[p];"))
    passes["assemble"] = _pass(format, text)
    return passes


def _at(text: str, k: int) -> str:
    """Instantiate a step at level k; position and coordinate above the root are q_ = 0."""
    above = str(k - 1) if k else "_"
    grand = str(k - 2) if k > 1 else "_"
    for name, put in (("{k}", str(k)), ("{a}", above), ("{g}", grand)):
        text = text.replace(name, put)
    return text


def _above(format: RemappedFormat, depth: int) -> str:
    """Write the coordinates and positions of an entry at the outermost levels."""
    lines = ["const int64_t q_ = 0;", "(void)q_;"]
    for k in range(depth):
        lines.append(coordinate(k, format.modes[k]) or "")
        lines.append(_at(STEPS[format.inner.levels[k].kind].place, k))
        lines.append(f"(void)q{k};")
    return "\n".join(lines)


def _pass(format: RemappedFormat, text: str) -> str:
    """Write a loop over all entries; threads get rows with disjoint positions."""
    first = format.modes[0]
    disjoint = first.reads == (0,) and not first.is_summed
    blocks = [m.block for m in format.modes if isinstance(m, Quotient) and m.mode == 0]
    counters = "".join(f"int64_t n{k} = -1; (void)n{k};\n" for k in range(len(format.modes)))
    pragma = "#pragma omp parallel for schedule(static) reduction(max : most) "
    pragma += "num_threads(threads) if (threads > 1)\n"
    return (
        "const VALUE *restrict from = values;\nVALUE *restrict to = stored;\n"
        "(void)from; (void)to;\nint64_t most = 0;\n"
        f"const int64_t step = {lcm(*blocks)}, strips = (rows + step - 1) / step;\n"
        f"{pragma if disjoint else ''}"
        "for (int64_t s = 0; s < strips; s++)\n"
        "for (int64_t i = s * step; i < rows && i < (s + 1) * step; i++) {\n"
        f"int64_t before = -1; (void)before;\n{counters}"
        "for (int64_t p = pos[i]; p < pos[i + 1]; p++) {\n"
        "const int64_t j = crd[p];\n"
        f"if ((uint64_t)j >= (uint64_t)columns) {{ most = {WRONG}; continue; }}\n"
        f"{text}\n}}\n}}\n*found = most;\nreturn 0;"
    )


class Assembly:
    """Allocation of the levels of a format from the root down, by passes over the entries."""

    def __init__(self, data: TensorData, format: RemappedFormat, functions: Any) -> None:
        self.data, self.format, self.functions = data, format, functions
        self.index = index_of(data)
        self.name = f"a tensor of shape {data.shape} in {format}"
        depth = format.inner.order
        self.sizes = [mode.size(data.shape) or 0 for mode in format.modes]
        nothing = np.zeros(1, self.index)
        self.pos, self.crd, self.rank = ([nothing] * depth for _ in range(3))
        self.counts = [1]
        self.values = np.zeros(1, data.dtype)

    def run(self, name: str) -> int:
        """Run a pass. Raises StructureError for a column outside of the matrix."""
        rows_level, result = self.data.levels[1], np.zeros(1, np.int64)
        rows, columns = self.data.shape
        levels = [a for triple in zip(self.pos, self.crd, self.rank, strict=True) for a in triple]
        threads = KERNELS.cores if self.data.nnz >= PARALLEL else 1
        source, into = as_bytes(self.data.values), as_bytes(self.values)
        arrays = (rows_level.pos, rows_level.crd, *levels, source, into, result)
        self.functions[name](*arrays, rows, columns, *self.sizes, threads)
        if int(result[0]) == WRONG:
            raise StructureError(
                f"Expected columns from 0 to {columns - 1}, found others",
                hint="tp.check says where",
            )
        return int(result[0])

    def build(self) -> TensorData | None:
        """Return the stored tensor; None where another conversion has to report why it does not
        fit."""
        for k, level in enumerate(self.format.inner.levels):
            if not self._level(k, level.kind):
                return None
        itemsize = self.data.dtype.itemsize
        size = self.counts[-1] * itemsize
        with room(self.name, size, SPARSER):
            self.values = np.zeros(self.counts[-1], self.data.dtype)
        self.run("assemble")
        levels = tuple(
            LevelArrays(**{name: arrays[name] for name in level.arrays})
            for level, pos, crd in zip(self.format.inner.levels, self.pos, self.crd, strict=True)
            for arrays in ({"pos": pos, "crd": crd},)
        )
        return replace(
            self.data,
            format=self.format.inner,
            shape=tuple(self.sizes),
            levels=levels,
            values=self.values,
            sorted=True,
            unique=True,
        )

    def _level(self, k: int, kind: LevelKind) -> bool:
        mode = self.format.modes[k]
        if is_ranked(mode) and not self._ranks(k, mode):
            return False
        if is_open(mode, kind):
            most = self.run(f"query{k}")
            bound = getattr(mode, "most", 0)
            if bound and most > bound:
                return False
            self.sizes[k] = bound or most
        count = STEPS[kind].allocate(self, k)
        self.counts.append(count)
        return 0 <= count <= np.iinfo(self.index).max

    def _ranks(self, k: int, mode: Any) -> bool:
        """Rank the keys that occur."""
        size = mode.of_mode.size(self.data.shape)
        if size > MOST_KEYS * self.data.nnz:
            return False
        self.rank[k] = np.zeros(size, self.index)
        self.run(f"mark{k}")
        self.sizes[k] = int(np.count_nonzero(self.rank[k]))
        np.cumsum(self.rank[k], out=self.rank[k])
        self.rank[k] -= 1
        return True


def assemble_rows(data: TensorData, format: RemappedFormat) -> TensorData | None:
    """Store a matrix in CSR, sorted and without duplicates, in a format that `is_assembled`.

    Returns None for unsupported types, without a C compiler, or where the format cannot hold the
    matrix.
    Raises StructureError, OutOfMemoryError.
    """
    level = data.levels[1]
    assert level.pos is not None and level.crd is not None
    if data.fill or not is_known(level.crd.dtype, data.dtype) or level.pos.dtype != level.crd.dtype:
        return None
    if level.pos[-1] > min(len(level.crd), len(data.values)) or not ascend_from_zero(level.pos):
        return None
    key = f"rows into {format.inner} {format.mapping}"
    functions = compiled(key, bodies(format), format.inner.order, data)
    return None if functions is None else Assembly(data, format, functions).build()
