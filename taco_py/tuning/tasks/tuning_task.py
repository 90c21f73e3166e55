"""`TuningTask`: a text, what its operands are like, and how it is called and tuned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import TacoError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.statements import parse_statements
from taco_py.tuning.store.fingerprint import sha256
from taco_py.tuning.store.job_journal import Job
from taco_py.tuning.tasks.call_options import CALL_OPTIONS, check_for_text, plain_option
from taco_py.tuning.tasks.operand_description import KeyedError, OperandDescription, described
from taco_py.tuning.tasks.operands_like import make_operands
from taco_py.tuning.tasks.search_options import SEARCH_OPTIONS, checked_search_option

OPTIONS = (*CALL_OPTIONS, *SEARCH_OPTIONS)
KEYS = ("name", "text", "operands", "options")
TABLE = "table"
"""What a tuple begins with that stands for a table."""


@dataclass(frozen=True, slots=True)
class TuningTask:
    """Describe a call to tune a plan for: its text, its operands without their values, its options.

    >>> x = {"shape": [80]}
    >>> A = {"shape": [100, 80], "format": "csr_array", "density": 0.1}
    >>> task = tp.tuning.task("y[i] = A[i,j] * x[j]", {"A": A, "x": x}, trials=20)
    >>> task.make_operands()["A"].nnz
    800

    text      an assignment in index notation
    operands  what each operand of the text is like
    options   of the call and of the search, by name
    name      what people call it; it tells no tasks apart
    """

    text: str
    operands: tuple[tuple[str, OperandDescription], ...]
    options: tuple[tuple[str, Any], ...] = ()
    name: str = field(default="", compare=False)

    @property
    def described(self) -> dict[str, OperandDescription]:
        """Return the description of each operand, by its name."""
        return dict(self.operands)

    @property
    def call_options(self) -> dict[str, Any]:
        """Return the options of `evaluate`."""
        return {name: value for name, value in self.options if name in CALL_OPTIONS}

    @property
    def search_options(self) -> dict[str, Any]:
        """Return the options of `tune` alone."""
        return {name: value for name, value in self.options if name in SEARCH_OPTIONS}

    @property
    def label(self) -> str:
        """Return its name, or else its text."""
        return self.name or self.text

    def make_operands(self, folder: str | Path | None = None) -> dict[str, Any]:
        """Return operands like these, the same ones each time; files are looked for in a folder."""
        return make_operands(self.described, None if folder is None else Path(folder))

    def with_options(self, **options: Any) -> TuningTask:
        """Return the same task with these options besides its own."""
        return replace(self, options=options_of({**dict(self.options), **options}, ()))

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON and TOML have it."""
        fields: dict[str, Any] = {"name": self.name} if self.name else {}
        fields["text"] = self.text
        fields["operands"] = {name: description.as_json() for name, description in self.operands}
        if self.options:
            fields["options"] = {name: _plain(value) for name, value in self.options}
        return fields

    def job(self, target: str = "c") -> Job:
        """Return it as a job of the journal, for workers with a target.

        Its hash depends on what is tuned and how, not on names or on when it is made.
        """
        workload = json.dumps(self.as_json(), sort_keys=True)
        identity = {**self.as_json(), "options": {}, "name": ""}
        search = {"target": target, **dict(self.options)}
        options = json.dumps(
            {name: _plain(value) for name, value in search.items()}, sort_keys=True
        )
        return Job(sha256([identity, options]), workload, options)


def task_of(entry: Any) -> TuningTask:
    """Return the task that JSON or TOML has. Raises KeyedError."""
    if not isinstance(entry, Mapping):
        raise KeyedError(f"Expected a table that describes a task, found {entry!r}", ())
    _check_keys(entry, KEYS, ())
    text, name = entry.get("text"), entry.get("name", "")
    if not isinstance(text, str):
        raise KeyedError(
            f"Expected a text, found {text!r}", ("text",), "as in text = 'y[i] = A[i,j] * x[j]'"
        )
    if not isinstance(name, str):
        raise KeyedError(f"Expected a text, found {name!r}", ("name",))
    tables = entry.get("operands", {})
    if not isinstance(tables, Mapping):
        raise KeyedError(f"Expected a table of operands, found {tables!r}", ("operands",))
    operands = tuple((operand, _operand(operand, table)) for operand, table in tables.items())
    options = options_of(entry.get("options", {}), ("options",))
    task = TuningTask(text, operands, options, name)
    check_task(task)
    return task


def _operand(name: str, table: Any) -> OperandDescription:
    try:
        return described(table)
    except KeyedError as error:
        raise KeyedError(error.message, ("operands", name, *error.path), error.hint) from error


def options_of(table: Any, path: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """Return options in order of their names, None left out. Raises KeyedError."""
    if not isinstance(table, Mapping):
        raise KeyedError(f"Expected a table of options, found {table!r}", path)
    _check_keys(table, OPTIONS, path)
    values = {name: _plain(value) for name, value in table.items() if value is not None}
    plain = {name: _checked(name, value, path) for name, value in values.items()}
    return tuple(sorted((name, _frozen(value)) for name, value in plain.items()))


def _checked(name: str, value: Any, path: tuple[str, ...]) -> Any:
    """Return the value of an option as JSON has it. Raises KeyedError for one that it cannot
    have."""
    try:
        return (plain_option if name in CALL_OPTIONS else checked_search_option)(name, value)
    except TacoError as error:
        raise KeyedError(error.message, (*path, name), error.hint) from error


def _frozen(value: Any) -> Any:
    """Convert lists, sets and tables to tuples, which compare and hash; sets in an order of their
    own."""
    if isinstance(value, set | frozenset):
        return tuple(sorted(map(_frozen, value), key=str))
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, Mapping):
        return (TABLE, *((name, _frozen(item)) for name, item in sorted(value.items())))
    return value


def _plain(value: Any) -> Any:
    """Return the value that `_frozen` was called with."""
    if not isinstance(value, tuple):
        return value
    if value and isinstance(value[0], str) and value[0] == TABLE:
        return {name: _plain(item) for name, item in value[1:]}
    return [_plain(item) for item in value]


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as a call takes them."""
    return {name: _plain(value) for name, value in options.items()}


def _check_keys(table: Mapping[str, Any], keys: Iterable[str], path: tuple[str, ...]) -> None:
    for name in table:
        if name not in keys:
            raise KeyedError(
                f"Expected one of {', '.join(keys)}, found {name!r}",
                (*path, name),
                with_suggestion("leave it out", name, keys),
            )


def check_task(task: TuningTask) -> None:
    """Check that a task's operands and options fit its text. Raises KeyedError or NotationError."""
    assignment = assignment_of(task)
    names, described = operand_names(assignment), task.described
    for name in names:
        if name not in described:
            raise KeyedError(
                f"Expected a description of {name}, which the text reads, found none",
                ("operands",),
                f"add {name} = {{ shape = […] }}",
            )
    for name in described:
        if name not in names:
            raise KeyedError(
                f"Expected one of {', '.join(names)}, which the text reads, found {name}",
                ("operands", name),
                with_suggestion("leave it out", name, names),
            )
    _check_sizes(assignment, described)
    for name, value in task.call_options.items():
        try:
            check_for_text(name, _plain(value), assignment)
        except TacoError as error:
            raise KeyedError(error.message, ("options", name), error.hint) from error


def assignment_of(task: TuningTask) -> Assignment:
    """Return the assignment of a task's text. Raises NotationError; KeyedError for several
    statements."""
    statements = parse_statements(task.text, task.described)
    if len(statements) > 1:
        raise KeyedError(
            f"Expected one assignment, found {len(statements)}", ("text",), "make a task of each"
        )
    return statements[0]


def _check_sizes(assignment: Assignment, described: Mapping[str, OperandDescription]) -> None:
    """Raise KeyedError where numbers of modes or sizes contradict the text."""
    sizes: dict[str, tuple[int, str]] = {}
    for access in accesses(assignment):
        description = described[access.tensor]
        if description.file or access.subscripts:
            continue
        if len(description.shape) != len(access.indices):
            raise KeyedError(
                f"Expected {len(access.indices)} sizes, one for each of the indices "
                f"{', '.join(access.indices) or '(none)'}, found {len(description.shape)}",
                ("operands", access.tensor, "shape"),
            )
        for index, size in zip(access.indices, description.shape, strict=True):
            other, where = sizes.setdefault(index, (size, access.tensor))
            if other != size:
                raise KeyedError(
                    f"Expected size {other} for the index {index}, as {where} has it, found {size}",
                    ("operands", access.tensor, "shape"),
                )
