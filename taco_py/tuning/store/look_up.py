"""The best plan of a key: exact, a hint, or of the nearest buckets; each is one indexed query."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import replace

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NotationError
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.program import Program
from taco_py.tuning.store.operand_buckets import distance
from taco_py.tuning.store.trial_log import COLUMNS, buckets_in, halves, record_of
from taco_py.tuning.store.tuning_record import EXPECTED, OK, TuningKey, TuningRecord

FAR = 6
"""Doublings, all measures taken together, within which a bucket is near."""
EXACT = "exact"
_PLACES = """
    CROSS JOIN targets ON targets.id = keys.target
    CROSS JOIN records ON records.key = keys.id CROSS JOIN log ON log.id = records.best
    CROSS JOIN plans ON plans.id = records.plan"""
SAME = f"""
    SELECT {COLUMNS} FROM problems CROSS JOIN keys ON keys.problem = problems.id {_PLACES}
    WHERE problems.hash = ? AND keys.buckets = ? AND targets.kind = ?
    ORDER BY log.result = 'expected', records.seconds"""
NEAR = """
    SELECT keys.id, keys.buckets, (abs(2 * keys.first - ?3 - ?4) + abs(2 * keys.second - ?5 - ?6))
    / 2 AS least FROM problems CROSS JOIN targets CROSS JOIN keys
    ON keys.problem = problems.id AND keys.target = targets.id
    WHERE problems.hash = ?1 AND targets.digest = ?2 AND keys.first BETWEEN ?3 AND ?4
    AND keys.second BETWEEN ?5 AND ?6 ORDER BY least"""
"""Keys within two ranges, by what they are apart from the middle of the ranges at least."""
OF_KEY = f"""
    SELECT {COLUMNS} FROM keys CROSS JOIN problems ON problems.id = keys.problem {_PLACES}
    WHERE keys.id = ? AND log.result = 'ok' ORDER BY records.seconds"""


@dataclass(frozen=True, slots=True)
class TunedPlan:
    """A plan that was found, and how well it fits.

    match     "exact", "hint: …" with what differs, or "nearest bucket, …" with the distance
    renaming  from the names in the plan to those of the call that asks
    skipped   faster plans whose texts no longer parse
    """

    record: TuningRecord
    match: str
    renaming: Mapping[str, str]
    skipped: int = 0

    @property
    def is_exact(self) -> bool:
        """Tell whether it was timed on this target, for such operands."""
        return self.match == EXACT

    @property
    def is_timed(self) -> bool:
        """Tell whether it was run, not only expected to be fast."""
        return self.record.result == OK

    @property
    def program(self) -> Program:
        """Return the plan, parsed, in the names of the record."""
        return parse_program(self.record.plan)


def look_up(
    connection: sqlite3.Connection, key: TuningKey, far: int, hints: bool
) -> tuple[TunedPlan | None, int]:
    """Return the best plan, and how many better ones no longer parse."""
    skipped = 0
    for plan in plans_of(connection, key, far, hints):
        if plan is not None:
            return replace(plan, skipped=skipped), skipped
        skipped += 1
    return None, skipped


def plans_of(
    connection: sqlite3.Connection, key: TuningKey, far: int, hints: bool
) -> Iterator[TunedPlan | None]:
    """Yield the plans of a key, the best first; None for one that no longer parses.

    exact, then of this processor by another compiler or version, then of near buckets, then of
    other processors; at last what was never timed, but chosen by price for such operands here
    """
    names = dict(key.names)
    for record, match in _candidates(connection, key, far, hints):
        try:
            parse_program(record.plan)
        except (NotationError, ValueError, KeyError, IndexError):
            yield None
            continue
        tensors = ((new, name) for new, name in record.key.names if new.startswith("t"))
        renaming = {name: names[new] for new, name in tensors if new in names}
        yield TunedPlan(record, match, renaming)


def _candidates(
    connection: sqlite3.Connection, key: TuningKey, far: int, hints: bool
) -> Iterator[tuple[TuningRecord, str]]:
    """Yield plans with how they fit, the best first."""
    rows = connection.execute(SAME, (key.hash, key.bucket_text, key.target.kind))
    every = [record_of(row) for row in rows]
    same = [record for record in every if record.result != EXPECTED]
    yield from ((record, EXACT) for record in same if record.key.target == key.target)
    different = [record for record in same if record.key.target != key.target] if hints else []
    near_by = [record for record in different if record.key.target.same_processor(key.target)]
    yield from ((record, _hint(record, key)) for record in near_by)
    if far > 0:
        yield from _near(connection, key, far)
    yield from ((record, _hint(record, key)) for record in different if record not in near_by)
    guesses = (record for record in every if record.result == EXPECTED)
    yield from ((record, EXACT) for record in guesses if record.key.target == key.target)


def _hint(record: TuningRecord, key: TuningKey) -> str:
    return "hint: other " + "; other ".join(record.key.target.differences(key.target))


def _near(
    connection: sqlite3.Connection, key: TuningKey, far: int
) -> Iterator[tuple[TuningRecord, str]]:
    """Yield plans for other buckets on this target, the nearest first; of those as near, the
    fastest."""
    for gap, ids in _near_keys(connection, key, far):
        rows = (row for id in ids for row in connection.execute(OF_KEY, (id,)))
        timed = (record for record in map(record_of, rows) if record.result != EXPECTED)
        for record in sorted(timed, key=lambda record: record.seconds or 0.0):
            yield record, f"nearest bucket, distance {gap}: {_differing(record.key, key)}"


def _near_keys(
    connection: sqlite3.Connection, key: TuningKey, far: int
) -> Iterator[tuple[int, list[int]]]:
    """Yield the numbers of keys by their distance, the nearest first: each distance once all keys
    that may be as near were met."""
    first, second = halves(key.buckets)
    limits = (first - far, first + far, second - far, second + far)
    by_gap: dict[int, list[int]] = {}
    for id, text, least in connection.execute(NEAR, (key.hash, key.target.digest, *limits)):
        for gap in sorted(gap for gap in by_gap if gap < least):
            yield gap, by_gap.pop(gap)
        buckets = buckets_in(text)
        if len(buckets) != len(key.buckets):  # of a record that others wrote, of no such problem
            continue
        gap = distance(buckets, key.buckets)
        if 0 < gap <= far:
            by_gap.setdefault(gap, []).append(id)
    yield from ((gap, by_gap[gap]) for gap in sorted(by_gap))


def _differing(other: TuningKey, key: TuningKey) -> str:
    """Describe the measures that differ: "entries t1 2^14 there, 2^17 here"."""
    triples = zip(key.measures, other.buckets, key.buckets, strict=True)
    return ", ".join(f"{what} 2^{a} there, 2^{b} here" for what, a, b in triples if a != b)
