"""Rules that make many tasks of one, addressed by position, after Lorien (Yu et al. 2021, 3.1).

size of operand 0, mode 1: values 64, 128     ×     density of operand 0: multiples 0.1, 1
→  4 tasks; the sizes of all modes that share an index go together
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, prod
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.tuning.tasks.operand_description import (
    KeyedError,
    OperandDescription,
    described,
)
from taco_py.tuning.tasks.tuning_task import OPTIONS, TuningTask, assignment_of, check_task

WHAT = ("size", "density", "nnz", "dtype", "format", "rows", "seed", "option")
"""What a rule changes. A rank is the size of the mode that factors share."""
NUMBERS = ("size", "density", "nnz")
OF_SPARSE = ("density", "nnz")
WAYS = ("values", "multiples", "powers")
Modes = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A rule: what it changes, where, and to what.

    what     "size", "density", "nnz", "dtype", "format", "rows", "seed" or "option"
    operand  its name, or its place among the operands of the text; "*" for all; an option's name
    mode     of the operand, of a size
    meaning  of the numbers: "values"; "multiples" of what is there; "powers" of `base`
    numbers  the values, factors or exponents
    """

    what: str
    operand: str | int
    mode: int | None
    meaning: str
    numbers: tuple[Any, ...]
    base: float = 2.0

    def value(self, number: Any, old: Any) -> Any:
        """Return the value that a number stands for. Raises KeyedError where it is too large."""
        if self.meaning == "values":
            return number
        try:
            return self._rounded(old * number if self.meaning == "multiples" else self.base**number)
        except OverflowError as error:
            text = f"{self.base:g}**{number:g}" if self.meaning == "powers" else f"{number:g}"
            raise KeyedError(
                f"Expected {self.meaning} that lead to finite numbers, found {text}",
                (self.meaning,),
            ) from error

    def _rounded(self, value: float) -> Any:
        return float(value) if self.what == "density" else max(1, round(value))


def mutate(task: TuningTask, rules: Sequence[Mutation]) -> tuple[TuningTask, ...]:
    """Return all tasks that rules make of one together, each once; the task itself where there are
    none.

    Raises KeyedError for rules that lead to no task.
    """
    tasks = [task]
    for rule in rules:
        tasks = [after for before in tasks for after in _applied(before, rule)]
    return tuple(dict.fromkeys(tasks))


def _applied(task: TuningTask, rule: Mutation) -> Iterator[TuningTask]:
    """Yield the tasks of one rule."""
    if rule.what == "option":
        old = dict(task.options).get(str(rule.operand))
        for number in rule.numbers:
            yield task.with_options(**{str(rule.operand): rule.value(number, old)})
        return
    for name in _names(task, rule):
        if task.described[name].file:
            raise KeyedError(
                f"Expected an operand that is made up, found {name}, which is in a file",
                (rule.what,),
                "leave the rule out, or describe the operand by its shape and density",
            )
    yield from (_sized(task, rule) if rule.what == "size" else _vary_fields(task, rule))


def _vary_fields(task: TuningTask, rule: Mutation) -> Iterator[TuningTask]:
    """Yield tasks whose operands have another density, type, format …

    "*" of density or nnz is all that are sparse; multiples are of what each operand has itself.
    """
    described = task.described
    names = _names(task, rule)
    if rule.operand == "*" and rule.what in OF_SPARSE:
        names = tuple(name for name in names if described[name].is_sparse)
    for number in rule.numbers:
        new = dict(described)
        for name in names:
            value = rule.value(number, _old(described[name], rule.what))
            new[name] = _with(described[name], name, rule, value)
        yield _checked(replace(task, operands=tuple(new.items())), rule)


def _old(description: OperandDescription, what: str) -> Any:
    """Return the old value of an operand; density and nnz are told by each other."""
    if what == "nnz":
        return description.entries
    if what == "density" and description.density is None:
        return description.entries / max(1, prod(description.shape))
    return getattr(description, what)


def _with(
    description: OperandDescription, name: str, rule: Mutation, value: Any
) -> OperandDescription:
    """Return a description with another value, which is checked as if it had been written so."""
    table = description.as_json()
    table[rule.what] = value
    if rule.what == "density":
        table[rule.what] = value if rule.meaning == "values" else min(value, 1.0)
        table.pop("nnz", None)
    if rule.what == "nnz":
        table.pop("density", None)
    return _rescaled(_described(table, name, rule), description, rule.what)


def _described(table: Mapping[str, Any], name: str, rule: Mutation) -> OperandDescription:
    try:
        return described(table)
    except KeyedError as error:
        raise KeyedError(f"{name}: {error.message}", (rule.what,), error.hint) from error


def _rescaled(new: OperandDescription, old: OperandDescription, what: str) -> OperandDescription:
    """Return entries of coordinates grow with the number of entries; other rows have other ones."""
    if what == "rows":
        return replace(new, degrees=())
    factor = new.entries / max(1, old.entries)
    degrees = (tuple((count, length * factor) for count, length in mode) for mode in old.degrees)
    return replace(new, degrees=tuple(degrees))


def _sized(task: TuningTask, rule: Mutation) -> Iterator[TuningTask]:
    """Yield tasks in which a mode, and all that share its index, has another size."""
    (name,) = _names(task, rule)
    mode = rule.mode or 0
    shape = task.described[name].shape
    if mode >= len(shape):
        raise KeyedError(
            f"Expected a mode of {name} below {len(shape)}, found {mode}", (rule.what,)
        )
    linked = _linked_modes(task, name, mode)
    for number in rule.numbers:
        size = rule.value(number, shape[mode])
        operands = tuple(
            (operand, _resized(description, operand, linked, rule, size))
            for operand, description in task.operands
        )
        yield _checked(replace(task, operands=operands), rule)


def _resized(
    description: OperandDescription, name: str, linked: Modes, rule: Mutation, size: Any
) -> OperandDescription:
    """Return a description with another size in some modes; its density stays."""
    modes = [mode for mode in range(len(description.shape)) if (name, mode) in linked]
    if not modes or description.file:
        return description
    sizes = [size if m in modes else n for m, n in enumerate(description.shape)]
    shape = _described({"shape": sizes}, name, rule).shape
    resized = replace(description, shape=shape)
    if description.nnz is not None:
        growth = prod(resized.shape) / max(1, prod(description.shape))
        resized = replace(resized, nnz=min(prod(resized.shape), round(description.nnz * growth)))
    degrees = []
    for mode, pairs in enumerate(description.degrees):
        wider = shape[mode] / max(1, description.shape[mode])
        longer = resized.entries / max(1, description.entries) / wider if wider else 1.0
        degrees.append(tuple((count * wider, length * longer) for count, length in pairs))
    return replace(resized, degrees=tuple(degrees))


def _linked_modes(task: TuningTask, name: str, mode: int) -> Modes:
    """Return the modes whose sizes are one: those that an index links, through any number of
    accesses."""
    links: dict[str, set[tuple[str, int]]] = {}
    for access in accesses(assignment_of(task)):
        for place, index in enumerate(access.indices):
            links.setdefault(index, set()).add((access.tensor, place))
    linked, before = {(name, mode)}, 0
    while len(linked) > before:
        before = len(linked)
        for modes in links.values():
            if modes & linked:
                linked |= modes
    return frozenset(linked)


def _names(task: TuningTask, rule: Mutation) -> tuple[str, ...]:
    """Return the operands that a rule is about."""
    names = operand_names(assignment_of(task))
    if rule.operand == "*":
        return names
    if isinstance(rule.operand, int):
        if rule.operand < len(names):
            return (names[rule.operand],)
        raise KeyedError(
            f"Expected a place below {len(names)}, for the operands of {task.text!r} are "
            f"{', '.join(names)}, found {rule.operand}",
            (rule.what,),
        )
    if rule.operand not in names:
        raise KeyedError(
            f"Expected one of {', '.join(names)}, the operands of {task.text!r}, found "
            f"{rule.operand!r}",
            (rule.what,),
            with_suggestion("", rule.operand, names) or None,
        )
    return (rule.operand,)


def _checked(task: TuningTask, rule: Mutation) -> TuningTask:
    try:
        check_task(task)
    except (KeyedError, NotationError) as error:
        raise KeyedError(error.message, (rule.what,), error.hint) from error
    return task


# ---------------------------------------------------------------- from tables


def mutation_of(table: Any) -> Mutation:
    """Return the rule of a table: { size = "A.1", values = [64, 128] }. Raises KeyedError."""
    if not isinstance(table, Mapping):
        raise KeyedError(f"Expected a table that describes a rule, found {table!r}", ())
    keys = (*WHAT, *WAYS, "base")
    for name in table:
        if name not in keys:
            hint = with_suggestion("leave it out", name, keys)
            raise KeyedError(f"Expected one of {', '.join(keys)}, found {name!r}", (name,), hint)
    what, way = _one(table, WHAT), _one(table, WAYS)
    operand, mode = _address(what, table[what])
    numbers = table[way]
    if not isinstance(numbers, list | tuple) or not numbers:
        raise KeyedError(f"Expected a list of values, found {numbers!r}", (way,))
    if way != "values":
        _check_numbers(numbers, what, way)
    base = table.get("base", 2)
    _check_numbers((base,), what, "base")
    return Mutation(what, operand, mode, way, tuple(numbers), float(base))


def _one(table: Mapping[str, Any], words: Iterable[str]) -> str:
    names = [name for name in table if name in words]
    if len(names) != 1:
        raise KeyedError(
            f"Expected one of {', '.join(words)}, found {', '.join(names) or 'none'}",
            tuple(names[1:2]),
            'as in { size = "A.1", values = [64, 128] }',
        )
    return names[0]


def _check_numbers(numbers: Sequence[Any], what: str, way: str) -> None:
    if way != "base" and what not in NUMBERS:
        raise KeyedError(f"Expected values = […] of {what}, found {way}", (way,))
    for number in numbers:
        if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < inf:
            raise KeyedError(f"Expected numbers from 0, found {number!r}", (way,))


def _address(what: str, where: Any) -> tuple[str | int, int | None]:
    """Return the operand and the mode: "A.1" or "0.1" of a size, "A", "0" or "*" of all else."""
    if what == "option":
        if where not in OPTIONS:
            raise KeyedError(
                f"Expected one of {', '.join(OPTIONS)}, found {where!r}",
                (what,),
                with_suggestion("", str(where), OPTIONS) or None,
            )
        return where, None
    if isinstance(where, int) and not isinstance(where, bool):
        where = str(where)
    name, dot, mode = str(where).rpartition(".") if what == "size" else (str(where), "", "")
    if not isinstance(where, str) or not name or (what == "size" and not mode.isdecimal()):
        form = '"operand.mode", as "A.1" or "0.1"' if what == "size" else '"A", "0" or "*"'
        raise KeyedError(f"Expected {form}, found {where!r}", (what,))
    return (int(name) if name.isdecimal() else name), (int(mode) if dot else None)
