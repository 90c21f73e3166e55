"""Long tables of numbers in text, read by a compiled kernel with several threads.

The text is split after newlines into chunks. Counting the newlines of each tells every chunk where
its rows go if each line is a row; where some lines are not, the gaps are closed afterwards:

    chunk   lines   rows   written from       moved to
    0       3       2      row 0              row 0
    1       2       2      row 3              row 2
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from codegen.runtime.kernel_cache import LoadedKernel
from codegen.runtime.number_tables import table_source
from codegen.toolchain.errors import NoCompilerError
from codegen.types import INT32, INT64
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.plain import NEWLINE, Row
from taco_py.data.storage.tensor_data import Array
from taco_py.data.storage.text_files.text import Text

SHORT = 1 << 16
"""The number of bytes up to which a text is read faster without a kernel."""

WORTH_COMPILING = 1 << 21
"""The number of bytes from which compiling the kernel pays off, 0.2 s once on a machine."""

INT32_MOST = 2**31 - 1
CHUNK = 1 << 18
THREAD_BYTES = 1 << 18
"""The least number of bytes for each further thread."""


def read_table(text: Text, row: Row) -> tuple[list[Array], Array] | None:
    """Return the coordinates (from 0, an array a mode) and values of a text's rows.

    The values are of float64, int64 or uint64. None for a short text, for a line that is no row or
    has a number that needs more care, or without a C compiler.
    """
    size = len(text)
    if size < SHORT or (row.digits and row.sizes is None):
        return None
    try:
        kernel = table_kernel(row, size)
    except NoCompilerError:
        return None  # the reader without a kernel is slower but equivalent
    return None if kernel is None else rows_of(kernel, text, row)


def table_kernel(row: Row, size: int) -> LoadedKernel | None:
    """Return the kernel for rows of these coordinates; None where compiling does not pay off."""
    index = INT32 if max(row.sizes or (0,)) <= INT32_MOST else INT64
    key = f"read a table of numbers, {index.name}"
    if size < WORTH_COMPILING:
        return KERNELS.find(key)
    return KERNELS.get_or_build(key, lambda: table_source(index)).kernel


def rows_of(kernel: LoadedKernel, text: Text, row: Row) -> tuple[list[Array], Array] | None:
    """Read the rows with a kernel; None where a line is malformed."""
    body = text.body if text.body.endswith(NEWLINE) else text.body + NEWLINE
    content = np.frombuffer(body, dtype=np.uint8)
    starts = chunk_starts(body, text.start)
    chunks = len(starts) - 1
    threads = max(1, min(KERNELS.cores, len(text) // THREAD_BYTES))
    lines = np.empty(chunks, dtype=np.int64)
    kernel.functions["text_count_lines"](content, starts, lines, chunks, threads)
    first = np.concatenate(([0], np.cumsum(lines)))
    total, row_counts = int(first[-1]), np.empty_like(lines)
    columns = np.empty((row.digits, total), dtype=kernel.metadata)
    values = np.empty((total, row.numbers), dtype=np.uint64)
    kind = 0 if not row.integral else 1 if row.limits[0] else 2
    sizes = np.array(row.sizes or (), dtype=np.int64)
    kernel.functions["text_read_table"](
        content, starts, first, sizes, row_counts, columns, values,
        chunks, total, row.digits, row.numbers, kind, threads,
    )  # fmt: skip
    if (row_counts < 0).any():
        return None
    count = close_gaps(columns, values, first, row_counts)
    dtype = (np.float64, np.int64, np.uint64)[kind]
    return [column[:count] for column in columns], values[:count].reshape(-1).view(dtype)


def chunk_starts(body: bytes, start: int) -> NDArray[np.int64]:
    """Return the starts of chunks of about `CHUNK` bytes, after newlines, and the last end."""
    starts, end = [start], len(body)
    while end - starts[-1] > CHUNK:
        starts.append(body.find(NEWLINE, starts[-1] + CHUNK - 1) + 1)
    return np.array([*starts, end] if starts[-1] < end else starts, dtype=np.int64)


def close_gaps(columns: Array, values: Array, first: Array, rows: Array) -> int:
    """Move the rows of chunks together in place, and return their number."""
    count = 0
    for start, row_count in zip(first.tolist(), rows.tolist(), strict=False):
        if start != count:
            columns[:, count : count + row_count] = columns[:, start : start + row_count]
            values[count : count + row_count] = values[start : start + row_count]
        count += row_count
    return count
