"""The tables of a store, as the steps that lead from each version of the schema to the next.

targets ─┐
problems ┴─ keys ─┬─ log       every trial, found again by its digest
            plans ┴─ records   the fastest plans of each key, which follow from the log
jobs ── transitions            the journal of a farm
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

APPLICATION = 0x7461636F
"""What SQLite's header says the file is: "taco"."""

FIRST = """
CREATE TABLE targets (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    processor TEXT NOT NULL, cores INTEGER NOT NULL, instructions TEXT NOT NULL,
    compiler TEXT NOT NULL, version TEXT NOT NULL);
CREATE TABLE problems (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
    measures TEXT NOT NULL);
CREATE TABLE keys (id INTEGER PRIMARY KEY, problem INTEGER NOT NULL REFERENCES problems,
    target INTEGER NOT NULL REFERENCES targets, buckets TEXT NOT NULL, first INTEGER NOT NULL,
    second INTEGER NOT NULL, UNIQUE (problem, buckets, target));
CREATE INDEX near ON keys (problem, target, first, second);
CREATE TABLE plans (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, text TEXT NOT NULL);
CREATE TABLE log (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE,
    key INTEGER NOT NULL REFERENCES keys, plan INTEGER NOT NULL REFERENCES plans,
    label TEXT NOT NULL, seconds REAL, spread REAL NOT NULL, trials INTEGER NOT NULL,
    result TEXT NOT NULL, note TEXT NOT NULL, made REAL NOT NULL, names TEXT NOT NULL);
CREATE INDEX trials_of ON log (key, plan);
CREATE TABLE records (key INTEGER NOT NULL REFERENCES keys, plan INTEGER NOT NULL REFERENCES plans,
    seconds REAL NOT NULL, best INTEGER NOT NULL REFERENCES log, trials INTEGER NOT NULL,
    PRIMARY KEY (key, plan)) WITHOUT ROWID;
CREATE INDEX fastest ON records (key, seconds);
"""
JOURNAL = """
CREATE TABLE jobs (hash TEXT PRIMARY KEY, workload TEXT NOT NULL, options TEXT NOT NULL,
    state TEXT NOT NULL, error TEXT NOT NULL, worker TEXT NOT NULL, attempts INTEGER NOT NULL,
    lease REAL NOT NULL, place INTEGER NOT NULL);
CREATE INDEX waiting ON jobs (state, lease, place);
CREATE TABLE transitions (id INTEGER PRIMARY KEY, job TEXT NOT NULL REFERENCES jobs,
    made REAL NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, error TEXT NOT NULL,
    worker TEXT NOT NULL);
CREATE INDEX transitions_of ON transitions (job, id);
"""


class DamagedRowError(sqlite3.DatabaseError):
    """A row of a store is no trial, or no job."""


def _run(statements: str) -> Callable[[sqlite3.Connection], None]:
    """Return a step that runs statements, inside the transaction that is open."""

    def step(connection: sqlite3.Connection) -> None:
        for statement in statements.split(";"):
            if statement.strip():
                connection.execute(statement)

    return step


MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {
    0: _run(FIRST),
    1: _run(JOURNAL),
    2: _run("ALTER TABLE log ADD COLUMN counts TEXT NOT NULL DEFAULT ''"),
}
"""From each version to the next: 1 has trials, 2 the journal, 3 what is counted of plans."""
NEWEST = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection) -> None:
    """Take the tables to the newest version, inside the transaction that is open."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for step in range(version, NEWEST):
        MIGRATIONS[step](connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {NEWEST}")
