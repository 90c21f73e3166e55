"""`TuningStore`: the plans that were timed, for later calls, processes and machines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from os import PathLike
from pathlib import Path
from time import time
from typing import Any

import numpy as np

from codegen.user_line import warn_user
from taco_py.arguments.option_checks import merged
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.language.diagnostics.errors import OperandTypeError, TuningStoreError
from taco_py.language.diagnostics.extras import library
from taco_py.language.notebook.markup import block, table
from taco_py.tuning.bench.text_key import key_of_text
from taco_py.tuning.store.journal import Journal
from taco_py.tuning.store.json_log import read_log, write_log
from taco_py.tuning.store.look_up import FAR, TunedPlan, look_up
from taco_py.tuning.store.store_file import StoreFile
from taco_py.tuning.store.trial_log import add_trials, best_of_each, prune_trials, trials_of
from taco_py.tuning.store.tuning_record import RESULTS, TuningKey, TuningRecord, as_json


def path_of(place: str | PathLike[str]) -> Path:
    """Return the file that a user names. Raises OperandTypeError for what names none."""
    if not isinstance(place, str | PathLike):
        raise OperandTypeError(
            f"Expected the path of a tuning store, found {place!r}", hint='as in "tuning.sqlite"'
        )
    return Path(place).expanduser()


def _check_number(name: str, value: Any) -> None:
    """Raise OperandTypeError unless a value is a number from 0, or left out."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (number and value >= 0):
        raise OperandTypeError(f"Expected {name} to be at least 0, found {value!r}")


class TuningStore:
    r"""Keep plans that were timed, by target, problem, and size and sparsity of operands.

    >>> store = tp.TuningStore()
    >>> A = sp.eye_array(3, format="csr")
    >>> key = store.key("y[i] = A[i,j] * x[j]", A=A, x=np.ones(3))
    >>> plan = "B: ds/float64/int32 of 3 by 3, 3 entries\nreturn B"
    >>> store.add(tp.TuningRecord(key, plan, "in one kernel", seconds=2e-6))
    1
    >>> store.best("z[a] = M[a,b] * v[b]", M=A, v=np.ones(3)).match
    'exact'
    >>> store.close()

    path      a file of SQLite, made where there is none; in memory where it is left out
    required  whether what keeps the file from being used is an error; otherwise a warning, and work
              goes on with a store in memory, or with `unsaved` records
    timeout   seconds that other processes' locks are waited for
    write     whether it may be changed

    Raises TuningStoreError for a file that is no store, damaged, of a newer schema, or locked, and
    OperandTypeError for a path that is none.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        required: bool = True,
        timeout: float = 10.0,
        write: bool = True,
    ) -> None:
        self._required = required
        self._unsaved: dict[int, TuningRecord] = {}
        self._numbers = count()
        file_path = None if path is None else path_of(path)
        try:
            self._file = StoreFile(file_path, timeout, write)
        except TuningStoreError as error:
            if required:
                raise
            warn_user(TuningStoreWarning(f"Tuned plans are kept in memory alone: {error}"))
            self._file = StoreFile(None, timeout, True)

    def __enter__(self) -> TuningStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write unsaved records, and close the file."""
        try:
            if self._unsaved:
                self.add()
        finally:
            self._file.close()

    @property
    def file(self) -> StoreFile:
        """Return the open file, for calls that look into it."""
        return self._file

    @property
    def path(self) -> Path | None:
        """Return the file, None of a store in memory."""
        return self._file.path

    @property
    def size(self) -> int:
        """Return the bytes that it takes."""
        return self._file.size

    @property
    def unsaved(self) -> tuple[TuningRecord, ...]:
        """Return the records that could not be written yet; `add` and `close` try again."""
        return tuple(self._unsaved.values())

    @property
    def journal(self) -> Journal:
        """Return the journal of tuning jobs, which is in the same file."""
        return Journal(self._file)

    # ---------------------------------------------------------------- keys and look-ups

    def key(
        self,
        text: str,
        operands: Mapping[str, Any] | None = None,
        /,
        *,
        format: Any = None,
        outputs: Any = None,
        dtype: Any = None,
        casting: str = "safe",
        threads: int | None = None,
        static: Mapping[str, int] | None = None,
        libraries: bool = True,
        forbid: Collection[str] | str = (),
        allow: Collection[str] | str = (),
        semiring: Any = None,
        mask: Any = None,
        target: str = "c",
        **keywords: Any,
    ) -> TuningKey:
        """Return the key of a call with these arguments, which `evaluate` takes too."""
        options = {
            "format": format, "outputs": outputs, "dtype": dtype, "casting": casting,
            "threads": threads, "static": static, "libraries": libraries, "forbid": forbid,
            "allow": allow, "target": target, "semiring": semiring, "mask": mask,
        }  # fmt: skip
        return key_of_text(text, merged(operands, keywords), options)

    def best(
        self,
        what: str | TuningKey,
        operands: Mapping[str, Any] | None = None,
        /,
        *,
        far: int = FAR,
        hints: bool = True,
        **keywords: Any,
    ) -> TunedPlan | None:
        """Return the fastest plan of a key, or of a call's text and arguments.

        far    doublings of sizes, all taken together, within which other operands are near
        hints  whether plans of other compilers, versions and processors are taken

        None where there is none. A plan whose text no longer parses is skipped, with a warning.
        """
        _check_number("far", far)
        key = what if isinstance(what, TuningKey) else self.key(what, operands, **keywords)
        with self._file.read() as connection:
            plan, skipped = look_up(connection, key, far, hints)
        if skipped:
            warn_user(
                TuningStoreWarning(
                    f"{skipped} plans of the store {self.path} are skipped, for their texts no "
                    "longer parse. store.prune(versions=…) removes those of other versions."
                )
            )
        return plan

    # ---------------------------------------------------------------- records

    def add(self, *records: TuningRecord) -> int:
        """Write trials in one transaction, each once, and return how many are new."""
        for record in records:
            if not isinstance(record, TuningRecord):
                raise OperandTypeError(
                    f"Expected a TuningRecord to add, found {type(record).__name__}",
                    hint="as in store.add(tp.TuningRecord(key, plan, seconds=0.001))",
                )
        for record in records:  # what is interrupted is written later
            self._unsaved[next(self._numbers)] = record
        waiting = tuple(self._unsaved.items())
        try:
            new = self._write(record for _, record in waiting)
        except TuningStoreError as error:
            if self._required:
                raise
            warn_user(TuningStoreWarning(f"{len(waiting)} records are not written yet: {error}"))
            return 0
        for number, _ in waiting:  # other threads may have written, and added, some meanwhile
            self._unsaved.pop(number, None)
        return new

    def _write(self, records: Iterable[TuningRecord]) -> int:
        with self._file.write() as connection:
            return add_trials(connection, records)

    def records(self, *, all: bool = False, result: str | None = None) -> Iterator[TuningRecord]:
        """Return the fastest plans of each key, or all trials, or those with a result."""
        if result is not None and result not in RESULTS:
            raise OperandTypeError(
                f"Expected result to be one of {', '.join(RESULTS)}, found {result!r}",
                hint='as in store.records(result="crashed")',
            )
        with self._file.read() as connection:
            every = all or result is not None
            trials = trials_of(connection, result) if every else best_of_each(connection)
            return iter(tuple(trials))

    def __len__(self) -> int:
        with self._file.read() as connection:
            (count,) = connection.execute("SELECT count(*) FROM log").fetchone()
        return int(count)

    def export(self, path: str | Path) -> int:
        """Write all trials as lines of JSON, and return how many there are."""
        return write_log(path_of(path), self.records(all=True))

    def load(self, path: str | Path) -> int:
        """Take the trials of a file that `export` wrote, and return how many are new."""
        return self._import_records(tuple(read_log(path_of(path))))

    def merge(self, other: str | Path | TuningStore) -> int:
        """Take the trials of another store, and return how many are new."""
        if isinstance(other, TuningStore):
            return self._import_records(other.records(all=True))
        with TuningStore(other, write=False) as store:
            return self._import_records(store.records(all=True))

    def _import_records(self, records: Iterable[TuningRecord]) -> int:
        """Write records of others, which calls that were made before look for again."""
        new = self._write(records)
        if new:
            KERNELS.memo.clear()
        return new

    def prune(
        self,
        *,
        keep: int | None = None,
        older_than: float | None = None,
        versions: Collection[str] | str = (),
    ) -> int:
        """Remove trials, and return how many.

        keep        plans of each key whose trials stay; wrong ones stay too, so that none is tried
                    again
        older_than  seconds: what was timed longer ago goes
        versions    of this library: trials of others go
        """
        for name, value in (("keep", keep), ("older_than", older_than)):
            _check_number(name, value)
        before = None if older_than is None else time() - older_than
        words = (versions,) if isinstance(versions, str) else tuple(versions)
        with self._file.write() as connection:
            gone = prune_trials(connection, keep, before, words)
        if gone:
            KERNELS.memo.clear()  # as in `_taken`
        return gone

    def to_pandas(self) -> Any:
        """Return all trials as a DataFrame of pandas, a row each."""
        pandas = library("pandas", "pandas")
        rows = []
        for record in self.records(all=True):
            row = as_json(record)
            target = row.pop("target")
            rows.append({**row, **target})
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else str(self.path)
        return f"<TuningStore {where}, {len(self)} trials>"

    def _repr_html_(self) -> str:
        rows = [("store", self.path or "in memory"), ("trials", len(self)), ("bytes", self.size)]
        for record in self.records():
            seconds = record.seconds or 0.0
            rows.append((record.key.problem.partition("\n")[0], f"{seconds:.3g} s  {record.label}"))
        return block(table((str(a), b) for a, b in rows[:40]))
