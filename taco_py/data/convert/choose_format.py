"""The choice of a format for a matrix that is used many times: `format="auto"`.

The storage of each format is counted on a sample of the rows. From it follows the expected time of
a product with a vector: the traffic of values and coordinates, and an overhead for each row, block
or slot.

    27 points in 3 dimensions   SDIA(8): 1.01 values in 0.127 slots an entry   SDIA(8)
    elasticity                  BSR(3,3): 1.00 values in 0.111 blocks          BSR(3,3)
    a graph                     SDIA(8): nearly 8 values an entry              CSR

No format is chosen that may change the value of a product: blocks have to be full.
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
"""The approximate number of sampled entries."""
PIECES = 32
"""The number of pieces of adjacent rows in a sample."""
LEAST = 1 << 17
"""The number of entries below which the matrix fits near caches, where bytes cost less."""
GAIN = 1.15
"""The least expected speedup of another format."""
BLOCKS = ((2, 2), (3, 3), (4, 4), (6, 6), (8, 8))
"""The candidate sizes of blocks."""
PIECE_ROWS = 24
"""A common multiple of the rows of slices and blocks."""
HEIGHT = 8
"""The rows of candidate slices: the lanes of a vector."""
BYTE, ENTRY, ROW, SLOT, SLICE, BLOCK = 0.03, 0.06, 2.6, 1.0, 7.5, 0.8
"""Nanoseconds for each byte from memory; in CSR for each entry and row; for each slot and slice;
for each block. Fitted to measurements of `benchmarks/formats.py` on an EPYC: CSR 0.96,
0.52 and 0.48 ns an entry on 5 points, 27 points and elasticity; SDIA 0.58 and 0.44; BSR 0.35."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A format with its storage per entry and the expected time of a product with a vector.

    values  stored values
    units   rows, slots or blocks, by `unit`
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
    """A format with the reason for it and all candidates, the fastest first.

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
        return "\n".join((head, *(f"  {candidate}" for candidate in self.expected)))


def _name(form: AnyFormat) -> str:
    """Return the usual name of a format."""
    return format_name(form) if isinstance(form, Format) else str(form)


def choose(data: TensorData) -> tuple[Choice, TensorData | None]:
    """Choose a format for a matrix that many products read.

    That is CSR for tensors other than matrices, with few entries, or with a fill value. Also
    returns the matrix in blocks where these are chosen, since choosing them reads all entries.
    """
    if len(data.shape) != 2 or data.fill:
        reason = "only matrices whose fill value is 0 have other formats"
        return Choice(data.format, reason), None
    data = in_order(convert(data, CSR))
    if data.nnz < LEAST:
        return Choice(CSR, f"{data.nnz} entries lie in near caches"), None
    rows, columns = _sampled(data)
    candidates = sorted(_expected(data, rows, columns), key=lambda candidate: candidate.time)
    csr = next(candidate for candidate in candidates if candidate.format == CSR)
    while _pays(candidates[0], csr) and isinstance(candidates[0].format, RemappedFormat):
        form = candidates[0].format
        stored = remap(data, form) if form.is_blocked else None
        if stored is None or stored.nnz == data.nnz:
            return _fastest(candidates, csr), stored
        candidates = candidates[1:]  # blocks outside of the sample have zeros
    return _unchanged(candidates, csr), None


def _pays(best: Expected, csr: Expected) -> bool:
    """Tell whether a format is sufficiently faster than CSR."""
    return best.format != CSR and csr.time >= GAIN * best.time


def _fastest(candidates: Sequence[Expected], csr: Expected) -> Choice:
    """Return the choice of the first candidate."""
    best = candidates[0]
    return Choice(
        best.format,
        f"expected to be {csr.time / best.time:.2f} times as fast as CSR: {best.values:.2f} values "
        f"are stored for each entry, and {1 / best.units:.1f} entries share a coordinate",
        tuple(candidates),
    )


def _unchanged(candidates: Sequence[Expected], csr: Expected) -> Choice:
    """Return the choice of CSR, with the speedup of the best other candidate."""
    other = next(candidate for candidate in candidates if candidate.format != CSR)
    gain = csr.time / other.time
    return Choice(CSR, f"{other.format} would be {gain:.2f} times as fast", tuple(candidates))


def _sampled(data: TensorData) -> tuple[Array, Array]:
    """Return rows and columns of a sample of entries: all entries in pieces of adjacent rows."""
    pos, crd = data.levels[1].pos, data.levels[1].crd
    assert pos is not None and crd is not None
    count = data.shape[0]
    piece_rows = max(1, SAMPLE * count // max(1, data.nnz) // PIECES)
    piece_rows = -(-piece_rows // PIECE_ROWS) * PIECE_ROWS
    starts = [piece * count // PIECES // PIECE_ROWS * PIECE_ROWS for piece in range(PIECES)]
    picked = [np.arange(start, min(start + piece_rows, count)) for start in dict.fromkeys(starts)]
    while len(picked) > 1 and sum(int(pos[r[-1] + 1] - pos[r[0]]) for r in picked) > 2 * SAMPLE:
        picked = picked[::2]  # rows are long
    sampled = np.unique(np.concatenate(picked))
    lengths = pos[sampled + 1] - pos[sampled]
    rows = np.repeat(sampled, lengths)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return rows, crd[np.repeat(pos[sampled].astype(np.int64), lengths) + offsets].astype(np.int64)


def _expected(data: TensorData, rows: Array, columns: Array) -> Iterator[Expected]:
    """Yield each candidate with its expected time for an entry, from a sample."""
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
            continue  # stored zeros are numbers: times infinity they are NaN
        block_bytes = blocks * (r * c * itemsize + index)
        time = BYTE * block_bytes + blocks * (BLOCK + ENTRY * r * c / 4)
        yield Expected(BSR((r, c)), blocks * r * c, blocks, "blocks", time)


def _distinct(outer: Array, inner: Array) -> int:
    """Count the distinct pairs."""
    if not len(outer):
        return 0
    low = int(inner.min())
    width = int(inner.max()) - low + 1
    keys = np.sort(outer.astype(np.int64) * width + (inner - low))  # faster than hashed
    return 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))
