"""Where a farm stands, read off the journal: as lines, a bar, and a page that reloads itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import monotonic, time
from typing import TextIO

from codegen.records import dataclass
from taco_py.language.notebook.markup import table
from taco_py.tuning.bench.tuning_store import TuningStore
from taco_py.tuning.store.job_journal import FINISHED, NORMAL, TUNING, WAITING, Job, Transition

WINDOW = 50
"""Jobs that finished last, from which the rest is estimated."""
WIDTH = 30
EVERY = 2.0
"""Seconds between two writings of a page, and two lines where there is no terminal."""
MOST_LISTED = 20
PAUSE = 10.0
"""Times the usual gap between two jobs beyond which a farm stood still."""


@dataclass(frozen=True, slots=True)
class FarmStatus:
    """The jobs of a journal, or some of them, at one moment.

    rate  jobs a second, None before two have finished
    """

    jobs: tuple[Job, ...]
    rate: float | None
    now: float

    def count(self, state: str) -> int:
        """Return how many jobs are in a state."""
        return sum(job.state == state for job in self.jobs)

    @property
    def failed(self) -> tuple[Job, ...]:
        """Return the jobs that finished with an error."""
        return tuple(job for job in self.jobs if job.state == FINISHED and job.code != NORMAL)

    @property
    def line(self) -> str:
        """Return it in one line: "120 of 200 finished, 1 failed, 2 tuned, 5 min left"."""
        finished, all = self.count(FINISHED), len(self.jobs)
        parts = [f"{finished} of {all} finished"]
        if self.failed:
            parts.append(f"{len(self.failed)} of them failed")
        parts.append(f"{self.count(TUNING)} tuned")
        if self.rate and finished < all:
            parts.append(f"about {_span((all - finished) / self.rate)} left")
        return ", ".join(parts)

    @property
    def bar(self) -> str:
        """Return it as a bar and a line."""
        part = self.count(FINISHED) / max(1, len(self.jobs))
        full = round(WIDTH * part)
        return f"[{'#' * full}{'.' * (WIDTH - full)}] {self.line}"

    def __str__(self) -> str:
        lines = [self.bar]
        for job in [job for job in self.jobs if job.state == TUNING][:MOST_LISTED]:
            lines.append(f"  {TUNING:<9}{label_of(job)}  {job.worker}, attempt {job.attempts}")
        for job in self.failed[:MOST_LISTED]:
            lines.append(f"  {job.code:<9} {label_of(job)}  {job.error.partition(': ')[2]}")
        if waits := self.count(WAITING):
            lines.append(f"  {WAITING:<9}{waits} jobs")
        return "\n".join(lines)

    def page(self) -> str:
        """Return it as a page of HTML reloaded every two seconds while jobs are left."""
        left = self.count(FINISHED) < len(self.jobs)
        reload = f'<meta http-equiv="refresh" content="{EVERY:g}">' if left else ""
        part = 100.0 * self.count(FINISHED) / max(1, len(self.jobs))
        bar = (
            '<div style="border:1px solid gray;height:1.2em;max-width:40em">'
            f'<div style="height:100%;width:{part:.1f}%;background:steelblue"></div></div>'
        )
        tuned = [job for job in self.jobs if job.state == TUNING]
        parts = [f"<h1>Tuning</h1><p>{escape(self.line)}</p>{bar}"]
        for head, jobs in (("Tuned now", tuned), ("Failed", self.failed)):
            if jobs:
                rows = ((label_of(job), job.error or job.worker) for job in jobs)
                parts.append(f"<h2>{head}</h2>{table(rows)}")
        body = "\n".join(parts)
        return (
            f'<!doctype html><html><head><meta charset="utf-8"><title>tacopy</title>{reload}</head>'
            f'<body style="font-family:sans-serif">{body}</body></html>\n'
        )


def status_of(store: TuningStore, hashes: Sequence[str] | frozenset[str] = ()) -> FarmStatus:
    """Return where the jobs of a store stand, or those with some hashes.

    >>> with tp.TuningStore() as store:
    ...     task = tp.tuning.task("y[i] = 2 * x[i]", {"x": {"shape": [8]}})
    ...     count = store.journal.add([task.job()])
    ...     print(tp.tuning.status_of(store))
    [..............................] 0 of 1 finished, 0 tuned
      WAITING  1 jobs
    >>> print(tp.tuning.status_of(tp.TuningStore()).line)
    0 of 0 finished, 0 tuned

    store   whose journal is read
    hashes  of the jobs that are told of; all where none is named
    """
    selected = frozenset(hashes)
    jobs = tuple(job for job in store.journal.jobs() if not selected or job.hash in selected)
    return FarmStatus(jobs, _rate(store.journal.last_finished(WINDOW)), time())


def _rate(last: Sequence[Transition]) -> float | None:
    """Return the rate of the last finished jobs, in jobs a second."""
    gaps = [after.when - before.when for before, after in pairwise(last)]
    usual = [gap for gap in gaps if gap <= PAUSE * median(gaps)]  # others are pauses
    return len(usual) / sum(usual) if sum(usual) > 0 else None


def label_of(job: Job) -> str:
    """Return the label of a job: the name of its task, or its text, and the target."""
    task = json.loads(job.workload)
    target = json.loads(job.options)["target"]
    return f"{job.hash[:8]} {task.get('name') or task['text']} on {target}"


def _span(seconds: float) -> str:
    """Return a number of seconds as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Progress:
    """Tell where a farm stands: a bar on a terminal, lines elsewhere, and a page.

    stream  where the bar is drawn, None for nowhere
    page    a file of HTML, None for none
    """

    def __init__(
        self,
        store: TuningStore,
        hashes: frozenset[str],
        stream: TextIO | None = sys.stderr,
        page: Path | None = None,
    ) -> None:
        self._store, self._hashes, self._stream, self._page = store, hashes, stream, page
        self._last, self._last_line = 0.0, ""

    def __call__(self) -> None:
        """Tell it, not more often than needed."""
        on_terminal = self._stream is not None and self._stream.isatty()
        if monotonic() - self._last < (EVERY / 4 if on_terminal else EVERY):
            return
        self.tell()

    def tell(self, end: str = "") -> None:
        """Tell it now."""
        self._last = monotonic()
        status = status_of(self._store, self._hashes)
        if self._page is not None:
            self._page.write_text(status.page(), encoding="utf-8")
        if self._stream is None:
            return
        if self._stream.isatty():
            self._stream.write(f"\r\x1b[K{status.bar}{end}")
        elif status.line != self._last_line:
            self._stream.write(f"{status.line}\n")
        self._last_line = status.line
        self._stream.flush()
