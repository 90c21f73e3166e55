"""`taco-py tune tasks.toml --store FILE`: many tasks on workers; where they stand; batches."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from time import sleep
from typing import Any

from taco_py.tool.flags import UsageError

FAILED = 1
EVERY = 2.0
"""Seconds between two looks of --follow."""
ABOUT = """\
tasks are tables of TOML (docs/tuning.md, "Many tasks"); every change of a task's state is in the
store, so that a run that was ended goes on with --resume:

  taco-py tune tasks.toml --store tuning.sqlite --workers 2
  taco-py tune --store tuning.sqlite --resume
  taco-py tune --store tuning.sqlite --status --follow

a machine that answers to no scheduler gets a file of jobs, and a log comes back:

  taco-py tune tasks.toml --store tuning.sqlite --target c@pi --batch jobs.jsonl
  taco-py tune --run-batch jobs.jsonl --log log.jsonl          (there)
  taco-py tune --store tuning.sqlite --read-log log.jsonl
"""


def add_tune_command(commands: Any) -> None:
    """Let a parser take `tune` and its arguments."""
    tune = commands.add_parser(
        "tune",
        help="tune the tasks of a file on many workers",
        epilog=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tune.add_argument("tasks", nargs="?", help="a file of tasks; left out: those of the store")
    tune.add_argument("--store", help="the store, which is made where there is none")
    tune.add_argument(
        "--workers", default="2", metavar="N",
        help="processes on this machine, as 2 or c=2,cuda=1; 0: this one, without Dask (default 2)",
    )  # fmt: skip
    tune.add_argument("--scheduler", default="", help="address of a scheduler of Dask: tcp://…")
    tune.add_argument(
        "--target", action="append", metavar="T",
        help="c, cuda or cuda-emulated, with @tag for a kind of machine; again for several",
    )  # fmt: skip
    tune.add_argument(
        "--resume", action="store_true", help="take at once what a run that was ended had begun"
    )
    tune.add_argument("--again", choices=("failed", "all"), help="finished tasks to tune again")
    tune.add_argument("--limit", type=float, metavar="S", help="seconds after which a task hangs")
    tune.add_argument(
        "--attempts", type=int, default=3, help="that may fail before a task is given up (3)"
    )
    tune.add_argument("--page", help="a file of HTML that shows where the tasks stand")
    tune.add_argument("--quiet", action="store_true", help="draw no bar")
    acts = tune.add_mutually_exclusive_group()
    acts.add_argument("--status", action="store_true", help="tell where the tasks stand, no more")
    acts.add_argument("--batch", metavar="FILE", help="write the tasks of --target into a file")
    acts.add_argument("--run-batch", metavar="FILE", help="do the tasks of such a file")
    acts.add_argument("--read-log", metavar="LOG", help="take what --run-batch has found")
    tune.add_argument("--follow", action="store_true", help="tell it again until all are finished")
    tune.add_argument("--log", help="where --run-batch writes")


def run_tune(options: argparse.Namespace) -> int:
    """Carry out a `tune` command; return 1 where a task failed, or has no worker.

    Raises UsageError, FileFormatError, TuningStoreError, FarmError or OSError.
    """
    if options.run_batch:
        return _run_batch(options)
    if options.store is None:
        raise UsageError("Expected --store, found none", hint="as in --store tuning.sqlite")
    if options.status or options.read_log:
        if not Path(options.store).exists():
            raise FileNotFoundError(2, "No such file or directory", options.store)
        return _status(options) if options.status else _read_log(options)
    return _batch(options) if options.batch else _farm(options)


def _farm(options: argparse.Namespace) -> int:
    from taco_py.tuning.jobs.tuning_farm import farm

    if options.tasks is None and not Path(options.store).exists():
        raise UsageError(
            "Expected a file of tasks, or a store that has some, found neither",
            hint="as in taco-py tune tasks.toml --store tuning.sqlite",
        )
    report = farm(
        options.tasks or (),
        options.store,
        workers=_workers(options.workers),
        scheduler=options.scheduler,
        targets=_targets(options),
        resume=options.resume,
        again=options.again or "",
        limit=options.limit,
        attempts=options.attempts,
        page=options.page,
        progress=not options.quiet,
    )
    print(report)
    return FAILED if report.failed or report.waiting else 0


def _targets(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the targets of the command, else the targets of the file, else "c"."""
    from taco_py.tuning.tasks.task_file import read_targets

    if options.target:
        return tuple(options.target)
    return ("c",) if options.tasks is None else read_targets(options.tasks)


def _workers(text: str) -> int | Mapping[str, int]:
    """Return the number of workers, or that of each target. Raises UsageError."""
    try:
        if "=" not in text:
            return int(text)
        pairs = [part.split("=") for part in text.split(",")]
        return {target.strip(): int(count) for target, count in pairs}
    except ValueError as error:
        raise UsageError(
            f"Expected a number of workers, or one for each target, found {text!r}",
            hint="as in --workers 2 or --workers c=2,cuda=1",
        ) from error


def _status(options: argparse.Namespace) -> int:
    from taco_py.tuning.bench.tuning_store import TuningStore
    from taco_py.tuning.jobs.farm_status import status_of
    from taco_py.tuning.store.job_journal import FINISHED

    with TuningStore(options.store, write=False) as store:
        while True:
            status = status_of(store)
            print(status, flush=True)
            if options.page:
                Path(options.page).write_text(status.page(), encoding="utf-8")
            if not options.follow or status.count(FINISHED) == len(status.jobs):
                return 0
            sleep(EVERY)


def _batch(options: argparse.Namespace) -> int:
    from taco_py.tuning.bench.tuning_store import TuningStore
    from taco_py.tuning.jobs.batch_files import write_batch
    from taco_py.tuning.jobs.tuning_farm import queue

    targets = _targets(options)
    with TuningStore(options.store) as store:
        queue(store, options.tasks or (), targets, options.again or "")
        count = sum(write_batch(store, options.batch, target) for target in targets)
    print(f"{count} jobs written to {options.batch}")
    return 0


def _run_batch(options: argparse.Namespace) -> int:
    from taco_py.tuning.jobs.batch_files import run_batch
    from taco_py.tuning.jobs.usual_job import tune_task

    if not options.log:
        raise UsageError("Expected --log beside --run-batch, found none", hint="--log log.jsonl")

    def report(count: int, all: int) -> None:
        if not options.quiet:
            print(f"{count} of {all} done", flush=True)

    count = run_batch(options.run_batch, options.log, tune_task, report)
    print(f"{count} jobs done, the log is {options.log}")
    return 0


def _read_log(options: argparse.Namespace) -> int:
    from taco_py.tuning.bench.tuning_store import TuningStore
    from taco_py.tuning.jobs.batch_files import read_batch

    with TuningStore(options.store) as store:
        finished, refused = read_batch(store, options.read_log)
    more = f", {refused} refused, which were finished or given to others before" if refused else ""
    print(f"{finished} jobs taken{more}")
    return 0
