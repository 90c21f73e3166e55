"""Keys and records of tuned plans, as values and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from math import inf
from time import time
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.tuning.store.fingerprint import Target, sha256
from taco_py.tuning.store.operand_buckets import buckets_of
from taco_py.tuning.store.problem_text import KeyedProblem, problem_of

OK, SLOWER, EXPECTED = "ok", "slower", "expected"
RESULTS = (OK, SLOWER, EXPECTED, "wrong", "crashed", "timed out", "refused")
"""How a trial ended. One that was slower took turns with a plan that was not beaten; one that is
expected was not run, and its seconds are its price; the result of a wrong plan differs from the
oracle's."""
LAST = 253402214400
"""Seconds from 1970 to the last day that dates have."""
LARGEST = 2**63
"""Whole numbers of a store are below it."""
DISPROVED = ("wrong", "crashed")
"""What keeps a plan from being the best, whatever its other trials took."""


@dataclass(frozen=True, slots=True)
class TuningKey:
    """Tell for which target, problem and operands a plan is the best.

    problem   text of the computation, without the user's names
    measures  what the buckets are of, as "size i0" or "entries t1"
    buckets   sizes and sparsity of the operands, in powers of two
    names     what the user calls each tensor and index of the problem
    """

    target: Target
    problem: str
    measures: tuple[str, ...]
    buckets: tuple[int, ...]
    names: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def hash(self) -> str:
        """Return the SHA-256 digest of the problem."""
        return sha256(self.problem)

    @property
    def bucket_text(self) -> str:
        """Return the buckets as they are stored: "10 9 15"."""
        return " ".join(map(str, self.buckets))


def key_for(keyed: KeyedProblem, target: Target) -> TuningKey:
    """Return the key of a problem on a target."""
    problem, names = problem_of(keyed)
    buckets = buckets_of(keyed, names)
    return TuningKey(target, problem, buckets.measures, buckets.values, names.pairs())


@dataclass(frozen=True, slots=True)
class TuningRecord:
    """Hold the plan that a trial ran, and what came of it.

    >>> with tp.TuningStore() as store:
    ...     key = store.key("y[i] = A[i,j] * x[j]", A=sp.eye_array(3, format="csr"), x=np.ones(3))
    >>> record = tp.TuningRecord(key, "", "in one kernel", result="refused", note="too long")
    >>> record.result, record.seconds
    ('refused', None)

    key      the computation, its target and how large its operands are
    plan     text of the plan, which parses back; "" of what was refused before it was planned
    label    name of the choice, as "in one kernel"
    seconds  of one run at best; None where nothing was timed
    spread   (longest - shortest) / shortest of the runs that were timed
    trials   runs that were timed
    result   "ok", "slower" than a plan that it took turns with, "expected" and not run, "wrong",
             "crashed", "timed out" or "refused"
    note     what is told of a result that is not "ok"
    when     seconds since 1970; now, where it is left out
    counts   what `learn` reads of the plan's kernels, as JSON; "" where nothing was counted

    Raises OperandTypeError for a value that is none of these.
    """

    key: TuningKey
    plan: str
    label: str = ""
    seconds: float | None = None
    spread: float = 0.0
    trials: int = 1
    result: str = OK
    note: str = ""
    when: float = field(default_factory=time)
    counts: str = ""

    def __post_init__(self) -> None:
        _check(self)
        for name in ("seconds", "spread", "when"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, float(value))
        object.__setattr__(self, "trials", int(self.trials))

    @property
    def digest(self) -> str:
        """Return the digest of this trial, the same in every store."""
        return sha256(as_json(self))


def _check(record: TuningRecord) -> None:
    """Raise OperandTypeError for a record with an invalid field."""
    if not isinstance(record.key, TuningKey):
        raise _unexpected("key", "a key, which store.key(…) makes", record.key)
    for name in ("plan", "label", "note", "counts"):
        if not isinstance(getattr(record, name), str):
            raise _unexpected(name, "a text", getattr(record, name))
    if record.result not in RESULTS:
        raise _unexpected("result", f"one of {', '.join(RESULTS)}", record.result)
    ran = record.result in (OK, SLOWER, EXPECTED)
    if ran and not record.plan:
        raise _unexpected("plan", "the text of a plan that ran", record.plan)
    if ran and record.seconds is None:
        raise _unexpected("seconds", "the seconds of a plan that ran", None)
    least = {"seconds": 0.0, "spread": 0.0, "when": 0.0, "trials": 1.0 if record.plan else 0.0}
    for name, low in least.items():
        value = getattr(record, name)
        if value is not None and not _is_number(value, low):
            raise _unexpected(name, f"a finite number from {low:g}", value)
    _check_counts(record)


def _check_counts(record: TuningRecord) -> None:
    if record.when >= LAST:
        raise _unexpected("when", f"seconds since 1970, below {LAST}", record.when)
    if int(record.trials) != record.trials or record.trials >= LARGEST:
        raise _unexpected("trials", "a whole number", record.trials)


def _is_number(value: Any, least: float) -> bool:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, str | bool) and least <= number < inf


def _unexpected(name: str, expected: str, value: object) -> OperandTypeError:
    return OperandTypeError(
        f"Expected {name} of a record to be {expected}, found {value!r}",
        hint='as in TuningRecord(key, plan, "in one kernel", seconds=0.001)',
    )


# ---------------------------------------------------------------- as JSON


def as_json(record: TuningRecord) -> dict[str, Any]:
    """Return a record as numbers and texts."""
    key = record.key
    return {
        "target": asdict(key.target),
        "problem": key.problem,
        "measures": list(key.measures),
        "buckets": list(key.buckets),
        "names": [list(pair) for pair in key.names],
        "plan": record.plan,
        "label": record.label,
        "seconds": record.seconds,
        "spread": record.spread,
        "trials": record.trials,
        "result": record.result,
        "note": record.note,
        "when": record.when,
        **({"counts": record.counts} if record.counts else {}),
    }


def from_json(entry: Any) -> TuningRecord:
    """Return the record that `as_json` wrote. Raises ValueError, TypeError or KeyError."""
    if not isinstance(entry, Mapping):
        raise TypeError(f"Expected an object, found {type(entry).__name__}")
    measures, buckets = tuple(map(_text, entry["measures"])), tuple(map(_integer, entry["buckets"]))
    if len(measures) != len(buckets):
        raise ValueError(f"Expected {len(measures)} buckets, found {len(buckets)}")
    target = entry["target"]
    words = {name: _text(target[name]) for name in Target.__dataclass_fields__ if name != "cores"}
    names = tuple((_text(new), _text(old)) for new, old in entry["names"])
    key = TuningKey(
        Target(cores=_integer(target["cores"]), **words),
        _text(entry["problem"]),
        measures,
        buckets,
        names,
    )
    rest = ("plan", "label", "seconds", "spread", "trials", "result", "note", "when")
    values = {name: entry[name] for name in rest}
    return TuningRecord(key, **values, counts=_text(entry.get("counts", "")))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"Expected a text, found {value!r}")
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"Expected a whole number, found {value!r}")
    if not -LARGEST < value < LARGEST:
        raise ValueError(f"Expected a whole number of 63 bits, found {value}")
    return value
