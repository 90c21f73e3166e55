"""`taco-py store list|show|export|merge|prune FILE`: what is in a store of tuned plans."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from taco_py.tool.flags import UsageError

DAY = 86400.0
LOG = ".jsonl"
"""What names of logs end with."""


def add_store_commands(commands: Any) -> None:
    """Let a parser take `store` and its arguments."""
    store = commands.add_parser("store", help="list, export, merge or prune a store of tuned plans")
    kinds = store.add_subparsers(dest="act", required=True, metavar="list|show|export|merge|prune")
    for name, what in (
        ("list", "the fastest plan of each key, a line each"),
        ("show", "problems and plans in full"),
        ("export", "write all trials as lines of JSON"),
        ("merge", "take the trials of other stores, and of logs that export wrote"),
        ("prune", "remove trials"),
    ):
        command = kinds.add_parser(name, help=what)
        command.add_argument("file", help="the store")
        if name == "export":
            command.add_argument("log", help="the file to write")
        if name == "merge":
            command.add_argument("others", nargs="+", help="stores, or logs named *.jsonl")
        if name == "prune":
            command.add_argument("--keep", type=int, help="plans of each key whose trials stay")
            command.add_argument("--older-than", type=float, help="days: what is older goes")
            command.add_argument("--version", action="append", help="trials of other versions go")


def run_store(options: argparse.Namespace) -> int:
    """Carry out a `store` command. Raises TuningStoreError, UsageError or OSError."""
    from taco_py.tuning.bench.tuning_store import TuningStore

    changes = options.act in ("merge", "prune")
    if not Path(options.file).exists():
        raise FileNotFoundError(2, "No such file or directory", options.file)
    with TuningStore(options.file, write=changes) as store:
        print(_carry_out(store, options))
    return 0


def _carry_out(store: Any, options: argparse.Namespace) -> str:
    """Carry out a command, and return its report."""
    match options.act:
        case "list":
            lines = (_line(record) for record in store.records())
            return "\n".join((f"{len(store)} trials, {store.size} bytes", *lines))
        case "show":
            return "\n\n".join(_lines_of(record) for record in store.records()) or "no records"
        case "export":
            return f"{store.export(options.log)} trials written to {options.log}"
        case "merge":
            return f"{sum(_merge(store, other) for other in options.others)} trials taken"
    days, versions = options.older_than, options.version or ()
    if options.keep is None and days is None and not versions:
        raise UsageError("Expected --keep, --older-than or --version, found none of them")
    older = None if days is None else days * DAY
    return f"{store.prune(keep=options.keep, older_than=older, versions=versions)} trials removed"


def _merge(store: Any, other: str) -> int:
    """Take the trials of a store or of a log; how many are new."""
    take = store.load if other.endswith(LOG) else store.merge
    return int(take(other))


def _line(record: Any) -> str:
    problem = record.key.problem.partition("\n")[0]
    return f"{record.key.hash[:8]}  {record.seconds * 1e3:10.4f} ms  {problem}  {record.label}"


def _lines_of(record: Any) -> str:
    key = record.key
    pairs = zip(key.measures, key.buckets, strict=True)
    sizes = ", ".join(f"{what} 2^{bits}" for what, bits in pairs)
    target = f"{key.target.processor}, {key.target.compiler}, tacopy {key.target.version}"
    return f"{_line(record)}\n{target}\n{key.problem}\n{sizes}\n{record.plan}"
