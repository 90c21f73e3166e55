"""The format of a matrix that is used many times: `format="auto"`.

What each format would store is counted in a sample of the rows, and what a product with a vector
takes is expected of that: of values and coordinates as they come from memory, and of what starts
anew with each row, block or slot.

    27 points in 3 dimensions   SDIA(8): 1.01 values in 0.127 slots an entry   SDIA(8)
    elasticity                  BSR(3,3): 1.00 values in 0.111 blocks          BSR(3,3)
    a graph                     SDIA(8): nearly 8 values an entry              CSR

No format is chosen in which a product may be another number: only full blocks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from codegen.records import dataclass
from taco_py.data.convert.convert import convert, format_name
from taco_py.data.convert.remap import in_order, remap
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.formats import BSR, CSR, SDIA, Format, RemappedFormat

AnyFormat = Format | RemappedFormat
SAMPLE = 1 << 16
"""Entries that are looked at, about."""
PIECES = 32
"""Neighbouring rows are looked at together, in so many places."""
LEAST = 1 << 17
"""Entries below which the matrix lies in near caches, where bytes cost less than counted here."""
GAIN = 1.15
"""How many times faster another format must be expected to be."""
BLOCKS = ((2, 2), (3, 3), (4, 4), (6, 6), (8, 8))
"""Blocks that are tried."""
WHOLE = 24
"""Rows that whole slices and blocks have."""
HEIGHT = 8
"""Rows of the slices that are tried: lanes of a vector."""
BYTE, ENTRY, ROW, SLOT, SLICE, BLOCK = 0.03, 0.06, 2.6, 1.0, 7.5, 0.8
"""Nanoseconds for each byte that comes from memory; in CSR for each entry and row; for each slot
and slice; for each block. Fitted to what `benchmarks/formats.py` measures on an EPYC: CSR 0.96,
0.52 and 0.48 ns an entry on 5 points, 27 points and elasticity; SDIA 0.58 and 0.44; BSR 0.35."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A format, what it would store for each entry, and the time a product with a vector takes.

    values  stored values
    units   rows, slots or blocks, as `unit` says
    time    nanoseconds
    """

    format: AnyFormat
    values: float
    units: float
    unit: str
    time: float

    def __str__(self) -> str:
        return (
            f"{_name(self.format):9} {self.values:6.2f} values in {self.units:5.3f} "
            f"{self.unit:6} an entry, {self.time:5.2f} ns"
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A format and why: all that were expected, the fastest first.

    >>> import scipy.sparse as sp
    >>> A = sp.diags_array([np.ones(99999), np.ones(100000)], offsets=[1, 0])
    >>> tp.choose_format(A).format.name
    'SDIA(8)'
    """

    format: AnyFormat
    reason: str
    expected: tuple[Expected, ...] = ()

    def __str__(self) -> str:
        head = f"{_name(self.format)}: {self.reason}"
        return "\n".join((head, *(f"  {each}" for each in self.expected)))


def _name(form: AnyFormat) -> str:
    """Return the usual name of a format."""
    return format_name(form) if isinstance(form, Format) else str(form)


def chosen(data: TensorData) -> tuple[Choice, TensorData | None]:
    """Choose a format for a matrix that products read many times; CSR for what is no matrix, has
    few entries, or a fill value.

    Returns with it the matrix in blocks where these are chosen: all of it was looked at.
    """
    if len(data.shape) != 2 or data.fill:
        why = "only matrices whose fill value is 0 have other formats"
        return Choice(data.format, why), None
    data = in_order(convert(data, CSR))
    if data.nnz < LEAST:
        return Choice(CSR, f"{data.nnz} entries lie in near caches"), None
    rows, columns = _sampled(data)
    found = sorted(_expected(data, rows, columns), key=lambda each: each.time)
    csr = next(each for each in found if each.format == CSR)
    while _pays(found[0], csr) and isinstance(found[0].format, RemappedFormat):
        form = found[0].format
        stored = remap(data, form) if form.is_blocked else None
        if stored is None or stored.nnz == data.nnz:
            return _chosen(found, csr), stored
        found = found[1:]  # there are zeros in blocks that are not in the sample
    return _kept(found, csr), None


def _pays(best: Expected, csr: Expected) -> bool:
    """Tell whether a format is expected to be faster than CSR by enough."""
    return best.format != CSR and csr.time >= GAIN * best.time


def _chosen(found: Sequence[Expected], csr: Expected) -> Choice:
    """Return the first of what was expected."""
    best = found[0]
    return Choice(
        best.format,
        f"expected to be {csr.time / best.time:.2f} times as fast as CSR: {best.values:.2f} values "
        f"are stored for each entry, and {1 / best.units:.1f} entries share a coordinate",
        tuple(found),
    )


def _kept(found: Sequence[Expected], csr: Expected) -> Choice:
    """CSR, and what the best of the others would gain."""
    other = next(each for each in found if each.format != CSR)
    gain = csr.time / other.time
    return Choice(CSR, f"{other.format} would be {gain:.2f} times as fast", tuple(found))


def _sampled(data: TensorData) -> tuple[Array, Array]:
    """Return rows and columns of entries in some places: all of slices and blocks of neighbouring
    rows."""
    pos, crd = data.levels[1].pos, data.levels[1].crd
    assert pos is not None and crd is not None
    count = data.shape[0]
    wanted = max(1, SAMPLE * count // max(1, data.nnz) // PIECES)
    wanted = -(-wanted // WHOLE) * WHOLE
    starts = [piece * count // PIECES // WHOLE * WHOLE for piece in range(PIECES)]
    picked = [np.arange(start, min(start + wanted, count)) for start in dict.fromkeys(starts)]
    while len(picked) > 1 and sum(int(pos[r[-1] + 1] - pos[r[0]]) for r in picked) > 2 * SAMPLE:
        picked = picked[::2]  # rows are long
    chosen = np.unique(np.concatenate(picked))
    lengths = pos[chosen + 1] - pos[chosen]
    rows = np.repeat(chosen, lengths)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return rows, crd[np.repeat(pos[chosen].astype(np.int64), lengths) + within].astype(np.int64)


def _expected(data: TensorData, rows: Array, columns: Array) -> Iterator[Expected]:
    """What each format takes for an entry, as far as a sample tells."""
    entries = max(1, len(rows))
    itemsize = data.dtype.itemsize
    index = 4 if data.levels[1].crd is None else data.levels[1].crd.dtype.itemsize
    share = data.shape[0] / max(1, data.nnz)
    bytes_csr = itemsize + index + share * index
    yield Expected(CSR, 1.0, share, "rows", BYTE * bytes_csr + ENTRY + ROW * share)
    slots = _distinct(rows // HEIGHT, columns - rows) / entries
    bytes_slots = slots * (HEIGHT * itemsize + 2 * index)
    time = BYTE * bytes_slots + SLOT * slots + SLICE * share / HEIGHT
    yield Expected(SDIA(HEIGHT), slots * HEIGHT, slots, "slots", time)
    for r, c in BLOCKS:
        blocks = _distinct(rows // r, columns // c) / entries
        if data.shape[0] % r or data.shape[1] % c or blocks * r * c > 1.0:
            continue  # zeros that blocks store are numbers like others, beside an infinity
        own = blocks * (r * c * itemsize + index)
        time = BYTE * own + blocks * (BLOCK + ENTRY * r * c / 4)
        yield Expected(BSR((r, c)), blocks * r * c, blocks, "blocks", time)


def _distinct(outer: Array, inner: Array) -> int:
    """Count how many different pairs there are."""
    if not len(outer):
        return 0
    low = int(inner.min())
    width = int(inner.max()) - low + 1
    keys = np.sort(outer.astype(np.int64) * width + (inner - low))  # faster than hashed
    return 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))
