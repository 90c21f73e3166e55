"""Tasks in a file of TOML: read with errors that name line, table and key; written to be edited.

[options]                                   # of all tasks
trials = 50

[[task]]
name = "spmv"
text = "y[i] = A[i,j] * x[j]"
operands.A = { shape = [1000, 800], format = "csr_array", density = 0.01 }
operands.x = { shape = [800] }
mutate = [ { size = "A.0", multiples = [1, 2, 4] }, { format = "A", values = ["csr_array"] } ]
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from taco_py.language.diagnostics.errors import FileFormatError, NotationError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.tuning.tasks.mutations import Mutation, mutate, mutation_of
from taco_py.tuning.tasks.operand_description import KeyedError
from taco_py.tuning.tasks.tuning_task import TuningTask, options_of, task_of

TABLES = ("options", "targets", "task", "mutate")
T = TypeVar("T")
Path_ = tuple[str | int, ...]


def read_tasks(path: str | Path) -> tuple[TuningTask, ...]:
    """Read the tasks of a TOML file and the tasks that its rules make, each once.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tasks.toml"
    >>> tp.tuning.write_tasks(path, [tp.tuning.task("y[i] = 2 * x[i]", {"x": {"shape": [8]}})])
    1
    >>> tp.tuning.read_tasks(path)[0].text
    'y[i] = 2 * x[i]'

    path  of the file; docs/tuning.md has its tables

    Raises OSError, and FileFormatError that names line, table and key.
    """
    return tasks_in(_text_of(path), str(path))[0]


def read_targets(path: str | Path) -> tuple[str, ...]:
    """Return the targets that a file of tasks names. Raises OSError and FileFormatError."""
    return tasks_in(_text_of(path), str(path))[1]


def _text_of(path: str | Path) -> str:
    """Return the text of a file. Raises FileFormatError for bytes that are none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"Expected a file of TOML in {path}, found bytes that are no text: {error}",
            hint="TOML is written in UTF-8",
        ) from error


def tasks_in(text: str, path: str) -> tuple[tuple[TuningTask, ...], tuple[str, ...]]:
    """Return the tasks of a text, and the targets that it names. Raises FileFormatError."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise FileFormatError(
            f"Expected a file of TOML in {path}, found an error: {error}",
            hint="docs/tuning.md shows such a file",
        ) from error
    place = _Places(text, path)
    for name in document:
        if name not in TABLES:
            hint = with_suggestion("leave it out", name, TABLES)
            raise place.error(KeyedError(f"Expected one of {', '.join(TABLES)}", (name,), hint), ())
    shared = place.read(lambda: options_of(document.get("options", {}), ("options",)), ())
    rules = place.read_tables("mutate", document.get("mutate", []), (), mutation_of)
    tables = document.get("task", [])
    tasks = place.read_tables("task", tables, (), lambda table: _task(table, dict(shared)))
    variants: list[TuningTask] = []
    for number, (task, table) in enumerate(zip(tasks, tables, strict=True)):
        more = place.read_tables("mutate", table.get("mutate", []), ("task", number), mutation_of)
        variants += _mutated(task, (*rules, *more), place, ("task", number))
    return tuple(dict.fromkeys(variants)), _targets(document.get("targets", ["c"]), place)


def _task(table: Any, shared: Mapping[str, Any]) -> TuningTask:
    """Return a task with the options of all tasks besides its own."""
    if not isinstance(table, Mapping):
        raise KeyedError(f"Expected a table that describes a task, found {table!r}", ())
    task = task_of({name: value for name, value in table.items() if name != "mutate"})
    return task.with_options(**{**shared, **dict(task.options)})


def _mutated(
    task: TuningTask, rules: Sequence[Mutation], place: _Places, where: Path_
) -> tuple[TuningTask, ...]:
    try:
        return mutate(task, rules)
    except KeyedError as error:
        raise place.error(KeyedError(error.message, ("mutate",), error.hint), where) from error


def _targets(targets: Any, place: _Places) -> tuple[str, ...]:
    words = [targets] if isinstance(targets, str) else targets
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        raise place.error(
            KeyedError(
                f"Expected a list of targets, found {targets!r}",
                ("targets",),
                'as in targets = ["c", "cuda"]',
            ),
            (),
        )
    return tuple(words)


class _Places:
    """Where keys stand in a file, for its errors."""

    def __init__(self, text: str, path: str) -> None:
        self._lines, self._path = text.splitlines(), path

    def read_tables(
        self, name: str, tables: Any, above: Path_, read: Callable[[Any], T]
    ) -> tuple[T, ...]:
        """Return the items read from the tables of an array."""
        if not isinstance(tables, list):
            wrong = KeyedError(f"Expected [[{name}]], an array of tables, found a value", (name,))
            raise self.error(wrong, above)
        return tuple(
            self.read(lambda table=table: read(table), (*above, name, number))  # type: ignore[misc]
            for number, table in enumerate(tables)
        )

    def read(self, act: Callable[[], T], where: Path_) -> T:
        """Return the result of an act. Raises FileFormatError that names the place of what it
        raises."""
        try:
            return act()
        except KeyedError as error:
            raise self.error(error, where) from error
        except NotationError as error:
            message = str(error)
            raise self.error(KeyedError(message, ("text",), None), where) from error

    def error(self, error: KeyedError, where: Path_) -> FileFormatError:
        """Return the error with line, table and key."""
        path: Path_ = (*where, *error.path)
        line = self._line(path)
        place = f"line {line} of {self._path}" if line else self._path
        return FileFormatError(f"In {place}, {_spelled(path)}: {error.message}", hint=error.hint)

    def _line(self, path: Path_) -> int:
        """Return the line of the deepest key of a path that is found, 0 for none."""
        best, reached = 0, 0
        for number, keys in self._keys():
            shared = 0
            for one, other in zip(keys, path, strict=False):
                if one != other:
                    break
                shared += 1
            if shared > reached:
                best, reached = number, shared
        return best

    def _keys(self) -> Iterator[tuple[int, Path_]]:
        """Yield the keys of each line, headers of tables among them: (4, ("task", 0, "text"))."""
        counts: dict[Path_, int] = {}
        head: Path_ = ()
        for number, line in enumerate(self._lines, 1):
            header = HEADER.match(line)
            if header is not None:
                head = _numbered(_keys_of(header[2]), header[1] == "[[", counts)
                yield number, head
            elif (key := KEY.match(line)) is not None:
                path = (*head, *_keys_of(key[1]))
                yield number, path
                yield from ((number, (*path, name)) for name in INNER.findall(line[key.end() :]))


HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"' ]+?)\s*=")
INNER = re.compile(r"[{,]\s*([A-Za-z0-9_-]+)\s*=")


def _keys_of(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in text.split("."))


def _numbered(keys: tuple[str, ...], is_array: bool, counts: dict[Path_, int]) -> Path_:
    """Return the path of a header: each array of tables above is at its last table."""
    path: Path_ = ()
    for place, key in enumerate(keys):
        path = (*path, key)
        if is_array and place == len(keys) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _spelled(path: Path_) -> str:
    """Return a path as people write it: task[0].operands.A.density; tables are counted from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".") or "the file"


# ---------------------------------------------------------------- written


def write_tasks(path: str | Path, tasks: Iterable[TuningTask]) -> int:
    """Write tasks into a file of TOML that `read_tasks` reads, and return how many there are.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tasks.toml"
    >>> tp.tuning.write_tasks(path, [tp.tuning.task("y[i] = 2 * x[i]", {"x": {"shape": [8]}})])
    1
    >>> print(path.read_text().splitlines()[1])
    text = "y[i] = 2 * x[i]"

    path   of the file, which is written over
    tasks  that it is to have
    """
    texts = [_task_lines(task) for task in tasks]
    Path(path).write_text("\n".join(texts), encoding="utf-8")
    return len(texts)


def _task_lines(task: TuningTask) -> str:
    fields = task.as_json()
    lines = ["[[task]]"]
    lines += [f"{name} = {toml(fields[name])}" for name in ("name", "text") if name in fields]
    lines += [f"operands.{key(name)} = {toml(table)}" for name, table in fields["operands"].items()]
    if "options" in fields:
        lines.append(f"options = {toml(fields['options'])}")
    return "\n".join(lines) + "\n"


def key(name: str) -> str:
    """Return a key of TOML, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def toml(value: Any) -> str:
    """Return a value in one line of TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            return "{ " + ", ".join(f"{key(n)} = {toml(item)}" for n, item in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(toml, value)) + "]"
    return repr(value)
