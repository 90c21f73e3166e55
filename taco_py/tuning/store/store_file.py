"""The file of a store: opened, checked, locked, and its errors in words."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from taco_py.language.diagnostics.errors import TuningStoreError
from taco_py.tuning.store.store_schema import (
    APPLICATION,
    NEWEST,
    DamagedRowError,
    migrate,
)

MAGIC = b"SQLite format 3\0"
HEADER = 100
"""Bytes of the header of SQLite's files."""
MEMORY = ":memory:"


class StoreFile:
    """A connection for this process, which its threads take turns with; a fork opens its own.

    path     None for a store in memory
    timeout  seconds that a lock of others is waited for
    write    whether anything may be changed
    """

    def __init__(self, path: Path | None, timeout: float, write: bool) -> None:
        self.path, self.timeout = path, timeout
        with self._translate_errors():
            may_write = path is None or not path.exists() or _is_writable(path)
        self.write_allowed = write and may_write
        self._begin()

    def _begin(self) -> None:
        self._owner, self._lock = os.getpid(), threading.RLock()
        with self._translate_errors():
            self._connection: sqlite3.Connection | None = self._open()

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            connection = _connect(MEMORY, self.timeout)
            with _transaction(connection):
                migrate(connection)
            return connection
        self._check_path(self.path)
        mode = "rwc" if self.write_allowed else "ro"
        connection = _connect(f"{self.path.absolute().as_uri()}?mode={mode}", self.timeout)
        try:
            return self._checked(connection)
        except BaseException:
            connection.close()
            raise

    def _check_path(self, path: Path) -> None:
        """Raise TuningStoreError for anything but a file of SQLite, before SQLite looks at it."""
        if path.is_dir():
            raise self.error("a folder", "give the path of a file in it")
        if not path.exists():
            if not path.parent.is_dir():
                raise self.error(f"no folder {path.parent}", "make the folder first")
            if not self.write_allowed:
                raise self.error("no file", "give the path of one that is there")
            return
        with path.open("rb") as file:
            head = file.read(HEADER)
        if not head:
            return
        if head[: len(MAGIC)] != MAGIC:
            raise self.error("a file that is not SQLite's", "give another path; it was not changed")
        self._check_length(path, head)

    def _check_length(self, path: Path, head: bytes) -> None:
        """Raise TuningStoreError for a file that lacks pages that it says it has.

        One whose log holds pages is left to SQLite: a process that was killed, or found no room on
        the disk, while pages went from the log to the file has them in the log still.
        """
        page = int.from_bytes(head[16:18], "big")
        page = 65536 if page == 1 else page
        size = path.stat().st_size
        if len(head) < HEADER or size < page:
            raise self._damaged("it is shorter than a page")
        pages = int.from_bytes(head[28:32], "big")
        is_current = head[24:28] == head[92:96]  # the number of pages is that of the last change
        if is_current and size < pages * page and not _has_content(_log_of(path)):
            raise self._damaged("it ends before its last page")

    def _checked(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Return the connection, once its file is known to be a store of the newest schema."""
        if self.write_allowed:
            _use_wal(connection, self.timeout)
            with _transaction(connection):
                if self._version(connection) < NEWEST:
                    migrate(connection)
            return connection
        if self._version(connection) == NEWEST:
            return connection
        copied = _connect(MEMORY, self.timeout)
        connection.backup(copied)
        connection.close()
        with _transaction(copied):
            migrate(copied)
        return copied

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the version of the schema, 0 of a new file. Raises TuningStoreError for other
        files."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION and (application or version or tables):
            raise self.error("a database of something else", "give another path")
        if not tables and not self.write_allowed:
            raise self.error("an empty file", "leave write=False away to make a store of it")
        if version > NEWEST:
            raise TuningStoreError(
                f"Expected a store of schema {NEWEST} or older in {self.path}, found schema "
                f"{version}, of a newer version of tacopy",
                hint="update tacopy, or export the store to JSON lines with the newer version",
            )
        return int(version) if tables else 0

    def error(self, actual: str, hint: str) -> TuningStoreError:
        """Return an error about the contents found in the place of a store."""
        return TuningStoreError(
            f"Expected a tuning store in {self.path}, found {actual}", hint=hint
        )

    def _damaged(self, problem: str) -> TuningStoreError:
        return self.error(
            f"a damaged file: {problem}",
            "move it away and merge a copy of it; sqlite3's command .recover may save the rest",
        )

    # ---------------------------------------------------------------- use

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for reading the state of one moment."""
        with self._use() as connection, _transaction(connection, "DEFERRED"):
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside a transaction: all that is done is kept, or nothing of it."""
        if not self.write_allowed:
            raise self.error("one that is only read", "copy it to where it can be written")
        with self._use() as connection, _transaction(connection, "IMMEDIATE"):
            yield connection

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        if self._owner != os.getpid():
            self._left = self._connection  # of the process that this one was forked from
            self._begin()
        with self._lock, self._translate_errors():
            if self._connection is None:
                raise TuningStoreError(
                    f"Expected an open store, found {self.path} closed", hint="open it again"
                )
            yield self._connection

    def close(self) -> None:
        """Close the connection."""
        if self._owner == os.getpid():
            with self._lock:
                if self._connection is not None:
                    self._connection.close()
                self._connection = None

    @property
    def is_open(self) -> bool:
        """Tell whether it can be used in this process."""
        return self._connection is not None or self._owner != os.getpid()

    @property
    def size(self) -> int:
        """Return bytes on disk, or in memory."""
        with self.read() as connection:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (page,) = connection.execute("PRAGMA page_size").fetchone()
        return int(pages * page)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise SQLite's errors in words."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._in_words(error) from error
        except OSError as error:
            raise self.error(f"none that can be opened ({error})", "give another path") from error

    def _in_words(self, error: sqlite3.Error) -> TuningStoreError:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return self.error(
                f"it locked by others for more than {self.timeout:g} s; nothing was changed",
                "try again, or open it with a longer timeout=",
            )
        if name.startswith("SQLITE_FULL"):
            return self.error(
                "no room on its disk; nothing was changed",
                "free some space, or prune the store",
            )
        if name.startswith("SQLITE_READONLY"):
            return self.error("one that is only read", "copy it to where it can be written")
        damage = isinstance(error, DamagedRowError)
        if damage or name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return self._damaged(str(error))
        return self.error(f"an error of SQLite: {error}", "give another path")


def _log_of(path: Path) -> Path:
    """Return the file beside a store that has the latest writes."""
    return path.with_name(f"{path.name}-wal")


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _connect(place: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        place,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        uri=place != MEMORY,
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _use_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Let readers and a writer go on beside each other. Others that do the same are waited for."""
    end = monotonic() + timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            busy = (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_BUSY")
            if not busy or monotonic() > end:
                raise
            sleep(0.01)


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Keep all that is done, or nothing where it is interrupted. One inside another is a part."""
    if connection.in_transaction:
        yield
        return
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
