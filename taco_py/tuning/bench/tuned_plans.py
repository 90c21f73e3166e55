"""What `tune` returns, its progress, and the store that calls look into."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from taco_py.calls.call.requested_outputs import requested_outputs
from taco_py.calls.statements.read_text import statements_of
from taco_py.calls.statements.sequence import check_passed, in_single_assignment
from taco_py.data.kernels import KERNELS
from taco_py.language.notebook.markup import block, table
from taco_py.tuning.bench.tune_call import Tuned, tune_text
from taco_py.tuning.bench.tuning_store import TuningStore, path_of
from taco_py.tuning.session.tuning_session import Attempt
from taco_py.tuning.store.active_store import tuned_into, use_file, usual_path
from taco_py.tuning.store.store_file import StoreFile
from taco_py.tuning.tasks.call_options import CALL_OPTIONS
from taco_py.tuning.tasks.search_options import SEARCH_OPTIONS, SearchOptions

OPTIONS = frozenset(
    {*SEARCH_OPTIONS, *CALL_OPTIONS, "outputs", "store", "progress", "schedule_budget", "mask"}
)
"""The keywords of `tune`, which cannot be the names of operands there."""
FAILED = ("wrong", "crashed", "timed out")
WIDTH = 24
"""Characters of a bar."""


@dataclass(frozen=True, slots=True, eq=False)
class TunedCall:
    """Hold what tuning a call has found.

    >>> A = sp.eye_array(50, format="csr")
    >>> with tp.TuningStore() as store:
    ...     best = tp.tune("y[i] = A[i,j] * x[j]", A=A, x=np.ones(50), trials=1, store=store)
    >>> print(best.label)
    as auto plans it
    >>> best.auto_seconds == best.seconds
    True

    plan          text of the best plan
    label         which options it has
    seconds       of one run of it
    auto_seconds  of the plan that is chosen without timing, in turns with it
    trials        plans that were run
    counts        how many were ok, slower, wrong, crashed, timed out, refused, pruned by bounds, or
                  the same as another one
    search, took, why   the search, how long it took, and why it ended
    where         why plans ran in this process, "" where they ran in one of their own
    """

    plan: str
    label: str
    seconds: float
    auto_seconds: float
    trials: int
    counts: Mapping[str, int]
    search: str
    took: float
    why: str
    where: str = ""

    @property
    def speedup(self) -> float:
        """Return how many times as fast the best plan is as auto's."""
        return self.auto_seconds / self.seconds if self.seconds > 0 else 1.0

    def rows(self) -> list[tuple[str, str]]:
        """Return the rows of its table, a name and a text each."""
        counts = self.counts
        failed = ", ".join(f"{counts[name]} {name}" for name in FAILED if counts.get(name))
        passed = f"{counts.get('pruned', 0)} pruned by bounds, {counts.get('refused', 0)} refused"
        return [
            ("best", self.label),
            ("seconds", f"{self.seconds:.3g}, {self.speedup:.3g} times as fast as auto"),
            ("auto", f"{self.auto_seconds:.3g} s"),
            ("trials", f"{self.trials}{failed and f', {failed}'}; {passed}"),
            ("ended", f"after {self.took:.3g} s, for {self.why}; search {self.search}"),
            *([("ran", self.where)] if self.where else []),
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{name:9} {text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return block(table(self.rows()))


def _summary(tuned: Tuned) -> TunedCall:
    outcome = tuned.outcome
    return TunedCall(
        outcome.best.text,
        outcome.best.label,
        outcome.best_seconds,
        outcome.usual_seconds,
        outcome.trials,
        outcome.counts,
        tuned.search,
        outcome.seconds,
        outcome.reason,
        tuned.where,
    )


def tuned_call(
    text: str,
    objects: Mapping[str, Any],
    options: Mapping[str, Any],
    search: Mapping[str, Any],
    store: TuningStore | str | Path | None,
    progress: bool | None,
) -> TunedCall:
    """Check a user's call and tune it.

    search  the arguments of `SearchOptions` by name
    """
    searched = SearchOptions.of(search)
    _check_names(text, objects, options["outputs"])
    tuning_store = store if isinstance(store, TuningStore) else TuningStore(_path_of(store))
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    bar = Progress(
        searched.trials, is_terminal if progress is None else bool(progress and sys.stderr)
    )
    try:
        tuned = tune_text(
            text,
            objects,
            options,
            searched,
            tuning_store,
            bar.tell,
        )
    finally:
        bar.end()
        if tuning_store is not store:
            tuning_store.close()
        if tuning_store.path is not None:
            tuned_into(tuning_store.path.absolute())
        KERNELS.memo.clear()  # calls that were made before look again
    return _summary(tuned)


def _check_names(text: str, objects: Mapping[str, Any], outputs: Any) -> None:
    """Raise OperandError for operands that the text does not use, or options misspelt."""
    assignments = tuple(statement.assignment for statement in statements_of(text, objects))
    names = requested_outputs(assignments, outputs).outputs
    check_passed(assignments, in_single_assignment(assignments, names, objects), objects, OPTIONS)


def _path_of(store: str | Path | None) -> Path:
    if store is None:
        path = usual_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
    return path_of(store)


@dataclass(slots=True, eq=False)
class Progress:
    """A line that shows how a search goes, written over itself."""

    trials: int
    visible: bool
    least: float = field(init=False, default=0.0)
    usual: float = field(init=False, default=0.0)

    def tell(self, attempt: Attempt, trials: int, seconds: float) -> None:
        """Show one plan more."""
        elapsed = attempt.timed.seconds
        if attempt.timed.result == "ok" and elapsed is not None:
            self.usual = self.usual or elapsed
            self.least = attempt.share * self.usual
        if not self.visible:
            return
        fraction = min(1.0, trials / self.trials)
        bar = "#" * round(WIDTH * fraction)
        gain = self.usual / self.least if self.least else 1.0
        line = (
            f"\r[{bar:<{WIDTH}}] {trials}/{self.trials} {seconds:4.0f} s  "
            f"best {self.least:.3g} s, {gain:.3g} x auto"
        )
        sys.stderr.write(line)
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        if self.visible:
            sys.stderr.write("\n")
            sys.stderr.flush()


class ActiveStore:
    """The store that calls look into; leaving a `with` block returns to the one before."""

    def __init__(self, store: TuningStore | str | Path | None) -> None:
        self._own: StoreFile | None = None
        file: StoreFile | None = None
        if isinstance(store, TuningStore):
            file = store.file
        elif store is not None:
            file = self._own = StoreFile(_path_of(store), 10.0, True)
        else:
            tuned_into(None)
        self._before = use_file(file)

    def __enter__(self) -> ActiveStore:
        return self

    def __exit__(self, *_: object) -> None:
        use_file(self._before)
        if self._own is not None:
            self._own.close()

    def __repr__(self) -> str:
        return "<the store that schedule='tuned' looks into>"
