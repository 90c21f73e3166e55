"""Trials written into a store and read from it; the records of the fastest plans follow from them.

A plan is a record of its key where the last of its trials that ran to the end is "ok", not
"slower", and none is "wrong" or "crashed"; or where it was expected to be the fastest, and never
run.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from taco_py.tuning.store.fingerprint import Target, sha256
from taco_py.tuning.store.store_schema import DamagedRowError
from taco_py.tuning.store.tuning_record import (
    DISPROVED,
    EXPECTED,
    OK,
    SLOWER,
    TuningKey,
    TuningRecord,
)

MOST_PLANS = 8
"""Plans of a key that are records."""
COLUMNS = """
    targets.kind, targets.processor, targets.cores, targets.instructions, targets.compiler,
    targets.version, problems.text, problems.measures, keys.buckets, log.names, plans.text,
    log.label, log.seconds, log.spread, log.trials, log.result, log.note, log.made,
    log.counts"""
JOINS = """
    CROSS JOIN keys ON keys.id = log.key CROSS JOIN problems ON problems.id = keys.problem
    CROSS JOIN targets ON targets.id = keys.target CROSS JOIN plans ON plans.id = log.plan"""
_BEST = f"""
    INSERT INTO records (key, plan, seconds, best, trials)
    SELECT key, plan, min(seconds), id, total FROM (
        SELECT key, plan, id, CASE WHEN result = '{OK}' OR (result = '{EXPECTED}' AND NOT
                max(result IN ('{OK}', '{SLOWER}')) OVER (PARTITION BY plan)) THEN seconds END
                AS seconds,
            sum(trials) OVER (PARTITION BY plan) AS total,
            max(result IN {DISPROVED!r}) OVER (PARTITION BY plan) AS disproved,
            max(CASE result WHEN '{SLOWER}' THEN turn ELSE 0 END) OVER (PARTITION BY plan)
                AS beaten,
            max(CASE WHEN result IN ('{OK}', '{EXPECTED}') THEN turn ELSE 0 END)
                OVER (PARTITION BY plan) AS won
        FROM (SELECT *, row_number() OVER (PARTITION BY plan ORDER BY made, id) AS turn
            FROM log WHERE key = :key AND (:plan IS NULL OR plan = :plan)))
    WHERE NOT disproved AND seconds IS NOT NULL AND won > beaten
    GROUP BY plan ORDER BY min(seconds), plan LIMIT {MOST_PLANS}"""


def record_of(row: tuple[Any, ...]) -> TuningRecord:
    """Return the record of a row of `COLUMNS`. Raises DamagedRowError for what others wrote."""
    try:
        return _record_of(row)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise DamagedRowError(f"a row that is no trial: {error}") from error


def buckets_in(text: Any) -> tuple[int, ...]:
    """Return the buckets of their text: "10 9 15". Raises DamagedRowError for what is none."""
    try:
        return tuple(map(int, text.split()))
    except (ValueError, AttributeError) as error:
        raise DamagedRowError(f"a row with other buckets: {text!r:.80}") from error


def _record_of(row: tuple[Any, ...]) -> TuningRecord:
    kind, processor, cores, instructions, compiler, version = row[:6]
    problem, measures, buckets, names, plan, label, seconds, spread = row[6:14]
    target = Target(kind, processor, cores, instructions, compiler, version)
    renaming = tuple((new, old) for new, old in json.loads(names))
    key = TuningKey(target, problem, tuple(json.loads(measures)), buckets_in(buckets), renaming)
    if len(key.measures) != len(key.buckets):
        raise ValueError(f"{len(key.measures)} measures, {len(key.buckets)} buckets")
    if not all(isinstance(name, str) for name in (*key.measures, *chain(*renaming))):
        raise TypeError("a name that is no text")
    trials, result, note, when, counts = row[14:]
    return TuningRecord(key, plan, label, seconds, spread, trials, result, note, when, counts)


def add_trials(connection: sqlite3.Connection, records: Iterable[TuningRecord]) -> int:
    """Store trials, each once; how many were not there."""
    count, keys = 0, dict[TuningKey, int]()
    for record in records:
        key = keys.get(record.key)
        if key is None:
            key = keys[record.key] = _key_id(connection, record.key)
        plan = _id(connection, "plans", "hash", sha256(record.plan), text=record.plan)
        values = (
            record.digest, key, plan, record.label, record.seconds, record.spread, record.trials,
            record.result, record.note, record.when, json.dumps(record.key.names), record.counts,
        )  # fmt: skip
        cursor = connection.execute(
            "INSERT OR IGNORE INTO log (digest, key, plan, label, seconds, spread, trials, result, "
            "note, made, names, counts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        if cursor.rowcount:
            count += 1
            rank(connection, key, plan if record.result in (OK, EXPECTED) else None)
    return count


def rank(connection: sqlite3.Connection, key: int, plan: int | None = None) -> None:
    """Find the records of a key anew: of one plan that was not found wrong, or of all."""
    parameters = {"key": key, "plan": plan}
    connection.execute(
        "DELETE FROM records WHERE key = :key AND (:plan IS NULL OR plan = :plan)", parameters
    )
    connection.execute(_BEST, parameters)
    connection.execute(
        "DELETE FROM records WHERE key = :key AND plan IN (SELECT plan FROM records "
        f"WHERE key = :key ORDER BY seconds, plan LIMIT -1 OFFSET {MOST_PLANS})",
        parameters,
    )


def _key_id(connection: sqlite3.Connection, key: TuningKey) -> int:
    target = key.target
    facts = {name: getattr(target, name) for name in Target.__dataclass_fields__}
    target_id = _id(connection, "targets", "digest", target.digest, **facts)
    problem = _id(
        connection, "problems", "hash", key.hash, text=key.problem,
        measures=json.dumps(key.measures),
    )  # fmt: skip
    first, second = halves(key.buckets)
    connection.execute(
        "INSERT OR IGNORE INTO keys (problem, target, buckets, first, second) "
        "VALUES (?, ?, ?, ?, ?)",
        (problem, target_id, key.bucket_text, first, second),
    )
    row = connection.execute(
        "SELECT id FROM keys WHERE problem = ? AND buckets = ? AND target = ?",
        (problem, key.bucket_text, target_id),
    ).fetchone()
    return int(row[0])


def halves(buckets: tuple[int, ...]) -> tuple[int, int]:
    """Return the sums of both halves of the buckets, no farther apart than the buckets
    themselves."""
    middle = len(buckets) // 2
    return sum(buckets[:middle]), sum(buckets[middle:])


def _id(connection: sqlite3.Connection, table: str, name: str, value: str, **fields: Any) -> int:
    """Return the number of a row, which is added where there is none."""
    select = f"SELECT id FROM {table} WHERE {name} = ?"
    row = connection.execute(select, (value,)).fetchone()
    if row is None:
        columns, marks = ", ".join((name, *fields)), ", ".join("?" * (1 + len(fields)))
        connection.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})", (value, *fields.values())
        )
        row = connection.execute(select, (value,)).fetchone()
    return int(row[0])


def trials_of(connection: sqlite3.Connection, result: str | None) -> Iterator[TuningRecord]:
    """Yield every trial, the oldest first."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM log {JOINS} WHERE ?1 IS NULL OR log.result = ?1 ORDER BY log.id",
        (result,),
    )
    yield from map(record_of, rows)


def best_of_each(connection: sqlite3.Connection) -> Iterator[TuningRecord]:
    """Yield the fastest plans of each key, the fastest first."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM records CROSS JOIN log ON log.id = records.best {JOINS} "
        "ORDER BY records.key, records.seconds"
    )
    yield from map(record_of, rows)


def prune_trials(
    connection: sqlite3.Connection,
    keep: int | None,
    before: float | None,
    versions: tuple[str, ...],
) -> int:
    """Remove trials; how many.

    keep      plans of each key whose trials stay
    before    seconds since 1970: older trials go
    versions  of this library: trials of others go; all stay where none is named
    """
    (all,) = connection.execute("SELECT count(*) FROM log").fetchone()
    connection.execute("DELETE FROM records")
    if before is not None:
        connection.execute("DELETE FROM log WHERE made < ?", (before,))
    if versions:
        marks = ", ".join("?" * len(versions))
        connection.execute(
            "DELETE FROM log WHERE key IN (SELECT keys.id FROM keys JOIN targets "
            f"ON targets.id = keys.target WHERE targets.version NOT IN ({marks}))",
            versions,
        )
    for (key,) in connection.execute("SELECT DISTINCT key FROM log").fetchall():
        rank(connection, key)
        if keep is not None:
            _keep_best(connection, key, keep)
    for table, used in (
        ("keys", "SELECT key FROM log"), ("problems", "SELECT problem FROM keys"),
        ("targets", "SELECT target FROM keys"), ("plans", "SELECT plan FROM log"),
    ):  # fmt: skip
        connection.execute(f"DELETE FROM {table} WHERE id NOT IN ({used})")
    (left,) = connection.execute("SELECT count(*) FROM log").fetchone()
    return int(all - left)


def _keep_best(connection: sqlite3.Connection, key: int, keep: int) -> None:
    """Remove the trials of all but the fastest plans of a key, and of plans found wrong."""
    parameters = {"key": key, "keep": keep}
    best = "SELECT plan FROM records WHERE key = :key ORDER BY seconds, plan LIMIT :keep"
    wrong = f"SELECT plan FROM log WHERE key = :key AND result IN {DISPROVED!r}"
    connection.execute(f"DELETE FROM records WHERE key = :key AND plan NOT IN ({best})", parameters)
    connection.execute(
        f"DELETE FROM log WHERE key = :key AND plan NOT IN ({wrong}) AND plan NOT IN "
        "(SELECT plan FROM records WHERE key = :key)",
        parameters,
    )
