"""Formats whose levels can be traversed by rows, into CSR: ELL, SELL, NM, RLE, DIA, SDIA, BSR.

The C text is derived from the format: loops over its levels inside a loop over rows. At a level of
the rows, or of a part of them, the position is computed; the other levels are looped over and
determine the column. Entries of each row are counted, then copied.

    DIA   for each diagonal d: row i is in it where first[d] <= i; j = crd[d] + i
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

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
from taco_py.data.storage.by_level.level_tree import fills_up
from taco_py.data.storage.by_level.row_walks import WALKS
from taco_py.data.storage.by_level.sound_levels import are_sound
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.formats import CSR, RemappedFormat
from taco_py.language.formats.stored_modes import PlainMode, Quotient, Remainder, StoredMode

WASTE = 4
"""The largest number of visited positions per stored one."""


def is_of_row(mode: StoredMode) -> bool:
    """Tell whether the row determines a mode."""
    return not mode.is_summed and mode.reads == (0,)


def column(modes: tuple[StoredMode, ...]) -> str | None:
    """Write the column from stored coordinates in C; None where it is not a simple expression."""
    if PlainMode(1) in modes:
        return f"c{modes.index(PlainMode(1))}"
    for k, mode in enumerate(modes):
        if isinstance(mode, Quotient) and mode.mode == 1:
            rest = Remainder(1, mode.block)
            if rest in modes:
                return f"c{k} * {mode.block} + c{modes.index(rest)}"
    return None


def is_listed(format: RemappedFormat) -> bool:
    """Tell whether the C text can traverse a format by rows."""
    inner = format.inner
    if format.order != 2 or inner.mode_order != tuple(range(inner.order)):
        return False
    for mode, level in zip(format.modes, inner.levels, strict=True):
        walk = WALKS.get(level.kind)
        if walk is None or not level.unique or not (walk.find if is_of_row(mode) else walk.loop[1]):
            return False
        if is_of_row(mode) and expression(mode) is None:
            return False
    return column(format.modes) is not None


def bodies(format: RemappedFormat, drop: bool) -> dict[str, str]:
    """Return the C body of each pass."""
    last = format.inner.order - 1
    skipped = f"if (is_zero(from[q{last}])) continue;\n" if drop else ""
    count = f"{skipped}at++;\nmost |= j <= before;\nbefore = j;"
    fill = f"{skipped}crd[at] = (INDEX)j;\nto[at++] = from[q{last}];"
    return {
        "count_rows": _pass(format, "0", count, "pos[i + 1] = (INDEX)at;"),
        "fill_rows": _pass(format, "pos[i]", fill, ""),
    }


def _pass(format: RemappedFormat, start: str, entry: str, end: str) -> str:
    """Write a loop over rows around the loops over levels; `most` tells whether columns are
    unsorted."""
    opened, closed = [], 0
    for k, (mode, level) in enumerate(zip(format.modes, format.inner.levels, strict=True)):
        walk = WALKS[level.kind]
        if is_of_row(mode):
            opened.append(f"const int64_t c{k} = {expression(mode)};\n{_at(walk.find, k)}")
            continue
        loop, coordinates = walk.loop
        opened.append(_at(f"{loop} {{\n{coordinates}" if loop else coordinates, k))
        closed += bool(loop)
    lines = "\n".join(opened)
    return (
        "const VALUE *restrict from = values;\nVALUE *restrict to = stored;\n"
        "(void)from; (void)to;\nint64_t most = 0;\n"
        "enum { BITS = 8 * sizeof(INDEX) };\n"
        "#pragma omp parallel for schedule(static) reduction(| : most) "
        "num_threads(threads) if (threads > 1)\n"
        "for (int64_t i = 0; i < rows; i++) {\n"
        f"int64_t before = -1, at = {start};\n(void)before;\nconst int64_t q_ = 0;\n"
        "for (int once = 0; once < 1; once++) {\n"
        f"{lines}\nconst int64_t j = {column(format.modes)};\n"
        "if ((uint64_t)j >= (uint64_t)columns) continue;\n"
        f"{entry}\n{'}' * closed}\n}}\n{end}\n}}\n*found = most;\nreturn 0;"
    )


def _at(text: str, k: int) -> str:
    """Instantiate a step at level k; the position above the root is q_ = 0."""
    above = str(k - 1) if k else "_"
    grand = str(k - 2) if k > 1 else "_"
    for name, put in (("{k}", str(k)), ("{a}", above), ("{g}", grand)):
        text = text.replace(name, put)
    return text


def walked(stored: TensorData, format: RemappedFormat, rows: int) -> int:
    """Bound the number of visited positions: rows, times levels that every row loops over."""
    levels = zip(format.modes, format.inner.levels, stored.shape, strict=True)
    dense = (size for mode, level, size in levels if level.full and not is_of_row(mode))
    return rows * prod(dense)


def list_rows(
    stored: TensorData, format: RemappedFormat, shape: tuple[int, ...], drop_fill: bool
) -> TensorData | None:
    """Store a matrix of a format that `is_listed` in CSR.

    Returns None for unsupported types, for unsorted columns of a row, without a C compiler, or
    where rows would be searched in many diagonals that do not reach them.
    """
    index, drop = index_of(stored), drop_fill and fills_up(format.inner)
    if stored.fill or not is_known(index, stored.dtype):
        return None
    if any(a.dtype != index for level in stored.levels for a in _arrays(level)):
        return None
    if not are_sound(stored) or walked(stored, format, shape[0]) > WASTE * (stored.nnz + shape[0]):
        return None
    key = f"{format.inner} {format.mapping} into rows {drop}"
    functions = compiled(key, bodies(format, drop), format.inner.order, stored)
    if functions is None:
        return None
    nothing = np.zeros(1, index)
    levels = []
    for level in stored.levels:
        levels += [nothing if a is None else a for a in (level.pos, level.crd)] + [nothing]
    threads = KERNELS.cores if stored.nnz >= PARALLEL else 1
    result, pos = np.zeros(1, np.int64), np.zeros(shape[0] + 1, index)
    sizes = (*shape, *stored.shape, threads)
    values = np.ascontiguousarray(stored.values).reshape(-1)
    functions["count_rows"](
        pos, nothing, *levels, as_bytes(values), as_bytes(values), result, *sizes
    )
    total = int(pos.sum(dtype=np.int64))
    if int(result[0]) or total > np.iinfo(index).max:
        return None
    np.cumsum(pos, out=pos)
    crd, copied = KERNELS.pool.empty((total,), index), KERNELS.pool.empty((total,), stored.dtype)
    functions["fill_rows"](pos, crd, *levels, as_bytes(values), as_bytes(copied), result, *sizes)
    row_levels = (LevelArrays(), LevelArrays(pos, crd))
    return replace(
        stored, format=CSR, shape=shape, levels=row_levels, values=copied, sorted=True, unique=True
    )


def _arrays(level: LevelArrays) -> list[np.ndarray]:
    return [a for a in (level.pos, level.crd) if a is not None]
