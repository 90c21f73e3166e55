"""Tasks collected from a script: what its calls ask, each once.

with tp.tuning.record() as tasks:
    y = tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=x)
tasks[0]    the text, and what A and x are like: sizes, formats, how entries are spread
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, overload

from taco_py.arguments.options import CallOptions
from taco_py.language.diagnostics.errors import TacoError
from taco_py.language.notation.printer import to_text
from taco_py.running.replay.call_watch import WATCH
from taco_py.tuning.tasks.operand_description import KeyedError
from taco_py.tuning.tasks.operands_like import description_of
from taco_py.tuning.tasks.task_file import write_tasks
from taco_py.tuning.tasks.tuning_task import TuningTask, options_of, task_of


class RecordedTasks(Sequence[TuningTask]):
    """The tasks of calls, in the order in which they were first met.

    options  of each task besides those of its call, as trials=50
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._counts: Counter[TuningTask] = Counter()
        self._skipped: Counter[str] = Counter()
        self._lock = Lock()

    @property
    def counts(self) -> dict[TuningTask, int]:
        """Return how often each task was asked for."""
        return dict(self._counts)

    @property
    def skipped(self) -> dict[str, int]:
        """Return how many calls became no task, by the reason."""
        return dict(self._skipped)

    def write(self, path: str | Path) -> int:
        """Write a file of tasks, to be edited and given to a farm; return how many there are."""
        return write_tasks(path, self)

    @overload
    def __getitem__(self, place: int) -> TuningTask: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[TuningTask]: ...
    def __getitem__(self, place: Any) -> Any:
        return tuple(self._counts)[place]

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        lines = [f"{len(self)} tasks"]
        lines += [f"  {count} ×  {task.text}" for task, count in self._counts.items()]
        lines += [f"  {count} ×  left out: {reason}" for reason, count in self._skipped.items()]
        return "\n".join(lines)

    def take(
        self,
        assignment: Any,
        objects: Mapping[str, Any],
        settings: CallOptions,
        more: Mapping[str, Any],
    ) -> None:
        """Make a task of a call, or count why there is none."""
        try:
            task = self._task(assignment, objects, settings, more)
        except TacoError as error:
            with self._lock:
                self._skipped[error.message] += 1
            return
        with self._lock:
            self._counts[task] += 1

    def _task(
        self,
        assignment: Any,
        objects: Mapping[str, Any],
        settings: CallOptions,
        more: Mapping[str, Any],
    ) -> TuningTask:
        """Return the task of a call. Raises TacoError for calls that no task describes."""
        if more.get("several"):
            raise KeyedError("several statements, and results by name, have no tasks yet", ())
        if more.get("mask") is not None:
            raise KeyedError("calls with a mask have no tasks yet", ())
        if more.get("squeezed"):
            raise KeyedError("modes of size 1 that no index stands for have no tasks yet", ())
        if settings.schedule is not None or settings.path is not None:
            raise KeyedError("calls with a schedule or a path of their own are not tuned", ())
        if not settings.contract or settings.memory < inf:
            raise KeyedError(
                "products in one sweep, or with a limit of their intermediates, have no tasks yet",
                (),
            )
        operands = {name: description_of(obj, name) for name, obj in objects.items()}
        options = {**call_options(settings, more.get("semiring")), **self._options}
        descriptions = {name: description.as_json() for name, description in operands.items()}
        plain = {name: value for name, value in options.items() if value is not None}
        return task_of({"text": to_text(assignment), "operands": descriptions, "options": plain})


def call_options(settings: CallOptions, semiring: Any) -> dict[str, Any]:
    """Return the options of a call, as a task has them; None for those that are the usual ones."""
    usual = CallOptions()
    options: dict[str, Any] = {
        "format": None if settings.format is None else str(settings.format),
        "dtype": None if settings.dtype is None else settings.dtype.name,
        "casting": settings.casting if settings.casting != usual.casting else None,
        "threads": settings.threads,
        "static": dict(settings.static) or None,
        "libraries": None if settings.libraries else False,
        "forbid": sorted(settings.forbid) or None,
        "allow": sorted(settings.allow) or None,
        "semiring": None,
    }
    if semiring is not None and not semiring.is_arithmetic:
        options["semiring"] = semiring.name
    return options


@contextmanager
def record(**options: Any) -> Iterator[RecordedTasks]:
    """Collect tuning tasks: those of all calls inside a `with`, in all threads.

    >>> with tp.tuning.record(trials=50) as tasks:
    ...     y = tp.evaluate("y[i] = A[i,j] * x[j]", A=sp.eye_array(4, format="csr"), x=np.ones(4))
    >>> tasks[0].text, dict(tasks[0].options)
    ('y[i] = sum(j, A[i,j] * x[j])', {'trials': 50})

    options  of the search, for each task: trials, seconds, search, seed

    Calls are computed as ever, but take longer. Calls that no task describes are counted in
    `tasks.skipped`: under masks, of several statements, over operands of a GPU or in blocks.
    """
    options_of(options, ())
    tasks = RecordedTasks(options)
    observer = tasks.take
    WATCH.add(observer)
    try:
        yield tasks
    finally:
        WATCH.remove(observer)
