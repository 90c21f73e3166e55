"""The choice of a format for a matrix that is used many times: `format="auto"`.

The storage of each format is counted on a sample of the rows. From it follow the analytic time of a
product, which learned trees correct with quartiles; from both and the conversion's time, what a
format saves over a number of calls.

    calls · t(CSR)  against  conversion + calls · t(CSR) / gain

No format is chosen that may change the value of a product: blocks and diagonals have to be full,
unless operands are said to be finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.learned_price import ANALYTIC, LEARNED
from taco_py.data.convert.convert import convert, format_name
from taco_py.data.convert.remap import in_order, remap
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import FormatError, OperandTypeError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.formats import CSR, Format
from taco_py.language.formats.remapped import is_remapped
from taco_py.tuning.formats.candidate_formats import AnyFormat, Candidate, candidates_of, rows
from taco_py.tuning.formats.format_features import (
    CONVERSION,
    GAIN,
    NANO,
    SECONDS,
    Row,
    features_of,
    features_of_matrix,
    product_of,
)
from taco_py.tuning.formats.format_model import FormatModel, shipped_formats
from taco_py.tuning.formats.matrix_sample import MatrixSample

LEAST = 1 << 11
"""The number of entries below which a call's own cost hides its loops."""
WORTH = 1e-3
"""Seconds of all calls by the analytic price below which choosing takes longer than it saves."""
PAYS = 1.02
"""The least gain over all calls, the conversion paid, that the lower quartile has to promise."""
UNSURE = 1.15
"""What the analytic gain is divided by for its lower quartile."""
CALLS = 100
Quartiles = tuple[float, float, float]
FormatPrice = FormatModel | str


@dataclass(frozen=True, slots=True)
class Expected:
    """A format with its storage per entry and what it is expected to gain.

    values      stored values
    units       rows, slots or blocks, by `unit`
    gain        quartiles of the speed of a product over that in CSR
    seconds     of a product
    conversion  seconds of the conversion from CSR
    saving      the lower quartile of the gain over all calls, the conversion paid
    learned     whether trees corrected the analytic numbers
    """

    format: AnyFormat
    values: float
    units: float
    unit: str
    gain: Quartiles
    seconds: float
    conversion: float
    saving: float
    learned: bool

    def __str__(self) -> str:
        low, middle, high = self.gain
        return (
            f"{_name(self.format):9} {self.values:6.2f} values in {self.units:5.3f} {self.unit:7} "
            f"an entry, {middle:5.2f} times as fast as CSR ({low:.2f} to {high:.2f}), "
            f"{self.seconds:.2g} s, converted in {self.conversion:.2g} s"
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A format with the reason for it and all candidates, the most saving first.

    >>> A = sp.kron(sp.eye_array(5000), np.ones((6, 6))).tocsr()
    >>> tp.choose_format(A, calls=1000).format.name
    'BSR(6,6)'

    expected  of all candidates
    text      that the format is for
    plan      of the text with the matrix in the format, as text that parses back; "" without a text
    options   that the call takes besides: `format=` where the result is dense only if it is asked
    tensor    the matrix in the format, where a text names a plan
    """

    format: AnyFormat
    reason: str
    expected: tuple[Expected, ...] = ()
    text: str = ""
    plan: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    tensor: Any = None

    def __str__(self) -> str:
        head = f"{_name(self.format)}: {self.reason}"
        return "\n".join((head, *(f"  {candidate}" for candidate in self.expected)))


@dataclass(frozen=True, slots=True)
class Use:
    """What a matrix is used for.

    columns  of the dense operand
    calls    how many products read the matrix
    threads  of a product
    finite   whether dense operands have finite numbers alone
    lists    whether formats are candidates whose results are dense only if a call says so
    stored   the format that the matrix has already
    """

    columns: int = 1
    calls: int = CALLS
    threads: int | None = None
    finite: bool = False
    lists: bool = False
    stored: AnyFormat | None = None


def _name(form: AnyFormat) -> str:
    """Return the usual name of a format."""
    return format_name(form) if isinstance(form, Format) else str(form)


def choose(
    data: TensorData, use: Use | None = None, price: FormatPrice = LEARNED
) -> tuple[Choice, TensorData | None]:
    """Choose a format for a matrix that many products read.

    That is CSR for tensors other than matrices, with few entries, or with a fill value. Also
    returns the matrix in the format where that had to be made: to see whether blocks are full.
    """
    model = model_of_formats(price)
    use = use or Use()
    if len(data.shape) != 2 or data.fill:
        reason = "only matrices whose fill value is 0 have other formats"
        return Choice(data.format, reason), None
    data = in_order(convert(data, CSR))
    if data.nnz < LEAST:
        return Choice(CSR, f"{data.nnz} entries lie in near caches"), None
    sample = MatrixSample(data)
    seconds = use.calls * next(rows(sample)).product(use.columns) * data.nnz * NANO
    if seconds < WORTH:
        return Choice(CSR, f"{use.calls} calls take no longer than choosing"), None
    pairs = rank_candidates(sample, use, model)
    for candidate, expected in pairs:
        if expected.saving < PAYS:
            break
        form = candidate.format
        if not candidate.is_checked or not is_remapped(form):
            return _choice_of(expected, use, pairs), None
        try:
            stored = remap(data, form)
        except FormatError:  # not symmetric outside of the sample
            pairs = [pair for pair in pairs if pair[0] != candidate]
            continue
        if use.finite or candidate.is_exact(stored, data.nnz):
            return _choice_of(expected, use, pairs), stored
        pairs = [pair for pair in pairs if pair[0] != candidate]
    return _unchanged(pairs, use), None


def model_of_formats(price: FormatPrice) -> FormatModel | None:
    """Return the model of a price; None for the analytic one. Raises OperandTypeError."""
    if isinstance(price, FormatModel):
        return price
    if price == ANALYTIC:
        return None
    if price == LEARNED:
        return shipped_formats()
    raise OperandTypeError(
        f"Expected price to be '{ANALYTIC}', '{LEARNED}' or a model of formats, found "
        f"{price!r:.80}",
        hint=with_suggestion(
            "python -m benchmarks.format_data trains one", str(price), (ANALYTIC, LEARNED)
        ),
    )


def rank_candidates(
    sample: MatrixSample, use: Use, model: FormatModel | None
) -> list[tuple[Candidate, Expected]]:
    """Return the candidates with the expected gain of each, the most saving first."""
    product = product_of(use.columns)
    candidates = [c for c in candidates_of(sample, use.finite) if use.lists or not c.lists]
    usual = candidates[0]
    lines = [Row(sample, product, usual, usual, SECONDS)]
    for candidate in candidates:
        lines += [Row(sample, product, candidate, usual, kind) for kind in (GAIN, CONVERSION)]
    analytic = np.array([row.expected for row in lines])
    sides, outside = np.ones((3, len(lines))), np.ones(len(lines), bool)
    sides[0, outside], sides[2, outside] = 1 / UNSURE, UNSURE
    if model is not None:
        counted = features_of_matrix(sample)
        ratios, beyond = model.predict(np.array([features_of(row, counted) for row in lines]))
        sides = np.where(beyond, sides, ratios)
        outside = beyond
    numbers = analytic * sides
    threads = use.threads or KERNELS.cores
    seconds = float(numbers[1, 0]) / threads
    pairs = []
    for place, candidate in enumerate(candidates):
        gain, conversion = numbers[:, 1 + 2 * place], float(numbers[1, 2 + 2 * place])
        if candidate is usual:
            gain, conversion = np.ones(3), 0.0
        elif candidate.serial:
            gain = gain / threads
        if candidate.format == use.stored:
            conversion = 0.0
        total = use.calls * seconds
        saving = total / (conversion + total / float(gain[0]))
        pairs.append((candidate, Expected(
            candidate.format, candidate.values, candidate.units, candidate.unit,
            (float(gain[0]), float(gain[1]), float(gain[2])), seconds / float(gain[1]), conversion,
            saving, not outside[1 + 2 * place],
        )))  # fmt: skip
    return sorted(pairs, key=lambda pair: -pair[1].saving)


def _choice_of(best: Expected, use: Use, pairs: Sequence[tuple[Candidate, Expected]]) -> Choice:
    """Return the choice of a format."""
    low, middle, high = best.gain
    return Choice(
        best.format,
        f"expected to be {middle:.2f} times as fast as CSR, {low:.2f} to {high:.2f}: "
        f"{best.values:.2f} values are stored for each entry, and {1 / best.units:.1f} entries "
        f"share a coordinate; over {use.calls} calls the conversion pays {best.saving:.2f} times",
        tuple(expected for _, expected in pairs),
    )


def _unchanged(pairs: Sequence[tuple[Candidate, Expected]], use: Use) -> Choice:
    """Return the choice of CSR, with the gain of the best other candidate."""
    other = next((expected for _, expected in pairs if expected.format != CSR), None)
    if other is None:
        return Choice(CSR, "no other format stores it in as little memory")
    low, middle, high = other.gain
    return Choice(
        CSR,
        f"{_name(other.format)} would be {middle:.2f} times as fast, {low:.2f} to {high:.2f}, "
        f"and over {use.calls} calls the conversion pays {other.saving:.2f} times at least",
        tuple(expected for _, expected in pairs),
    )


def with_plan(
    choice: Choice, text: str, plan: str, options: Mapping[str, Any], tensor: Any
) -> Choice:
    """Return a choice for a text, with the plan of the call and the matrix in the format."""
    return replace(
        choice, text=text, plan=plan, options=MappingProxyType({**options}), tensor=tensor
    )
