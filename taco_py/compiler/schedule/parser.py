"""The text form of schedules: `split(i,i0,i1,32), reorder(i0,j,i1), parallelize(i0,CPUThread)`.

The syntax of TACO's command line is accepted, and so are shorter forms: `parallelize(i)`,
`vectorize(i)`. Commands are printed in TACO's form. Extensions are a strategy, `Ordered`, and some
commands: distribute, fission, loopfuse, serial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Assembly, Merge, Race, Unit
from taco_py.compiler.schedule.commands import (
    Assemble,
    Command,
    Distribute,
    Fission,
    LoopFuse,
    Make,
    MergeBy,
    Nest,
    Parallelize,
    Precompute,
    Reorder,
    Serial,
    Threads,
    Unroll,
    Vectorize,
)
from taco_py.language.diagnostics.errors import NotationError, ScheduleError
from taco_py.language.diagnostics.source import Source, Span
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.nodes import Expr
from taco_py.language.notation.parser import parse_expression
from taco_py.language.provenance.relations import Bound, BoundKind, Coord, Divide, Fuse, Pos, Split

LANES = "CPUVector"
UNITS = {unit.value: unit for unit in Unit}
"""TACO's words for units; lanes of a vector are another command."""


class _MisfitError(Exception):
    """Arguments that a command does not accept."""


def _misfit(what: str, word: str, words: Iterable[str]) -> _MisfitError:
    """Make the error of a word that is not in a list, with a suggestion."""
    choices = list(words)
    return _MisfitError(with_suggestion(f"{what} {', '.join(choices)}", word, choices))


@dataclass(frozen=True, slots=True)
class _Syntax:
    """The arguments of a command, in words and by an example, and the function that reads them."""

    expects: str
    example: str
    read: Callable[[tuple[str, ...]], Command]


def parse_commands(text: str, planned: bool = False) -> tuple[Command, ...]:
    """Parse the commands in `text`. Raises ScheduleError with the place of a mistake.

    planned  whether the commands of the planner are read too: loops(i,j), make(tiles,8)
    """
    syntaxes = {**_COMMANDS, **_PLANNED} if planned else _COMMANDS
    if not isinstance(text, str):
        raise ScheduleError(
            f"Expected a schedule's text, found {text!r}", hint='as in "reorder(i,k,j)"'
        )
    source = Source(text, "schedule")
    commands: list[Command] = []
    place = 0
    while text[place:].strip():
        parsed = _call(text, place)
        opened = None if parsed else _unclosed(text, place)
        if opened is not None:
            raise ScheduleError(
                "Expected a parenthesis that is closed, found the text's end",
                Span(source, opened, len(text)),
                "each ( of a command has its )",
            )
        if parsed is None:
            raise ScheduleError(
                "Expected a command such as reorder(i,j), found something else",
                Span(source, place, len(text)),
                f"the commands are {', '.join(syntaxes)}, with commas between them",
            )
        commands.append(_command(parsed, source, syntaxes))
        place = parsed.next
    return tuple(commands)


@dataclass(frozen=True, slots=True)
class _Call:
    """A command in a text: its words, their bounds, and the begin of the next command."""

    name: str
    arguments: str
    start: int
    stop: int
    next: int


_OPENED = re.compile(r"\s*(\w+)\s*\(")
_SEPARATED = re.compile(r"\s*(?:[,;]|$)")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")


def _call(text: str, place: int) -> _Call | None:
    """Return the command at `place`, up to its closing parenthesis; None where there is none."""
    opened = _OPENED.match(text, place)
    if opened is None:
        return None
    depth, stop = 1, opened.end()
    while depth and stop < len(text):
        depth += (text[stop] == "(") - (text[stop] == ")")
        stop += 1
    separated = _SEPARATED.match(text, stop)
    if depth or separated is None:
        return None
    arguments = text[opened.end() : stop - 1]
    return _Call(opened[1], arguments, opened.start(1), stop, separated.end())


def _unclosed(text: str, place: int) -> int | None:
    """Return the position of a parenthesis that the command at `place` opens and nothing closes."""
    opened = _OPENED.match(text, place)
    if opened is None:
        return None
    waiting: list[int] = [opened.end() - 1]
    for at in range(opened.end(), len(text)):
        if text[at] == "(":
            waiting.append(at)
        elif text[at] == ")":
            waiting.pop()
        if not waiting:
            return None
    return waiting[-1]


def _command(call: _Call, source: Source, syntaxes: dict[str, _Syntax]) -> Command:
    name = call.name
    span = Span(source, call.start, call.stop)
    if name not in syntaxes:
        raise ScheduleError(
            f"Expected a scheduling command, found {name!r}",
            span,
            with_suggestion(f"the commands are {', '.join(syntaxes)}", name, syntaxes),
        )
    arguments = tuple(_split(call.arguments))
    syntax = syntaxes[name]
    try:
        return syntax.read(arguments)
    except _MisfitError as misfit:
        actual = ", ".join(arguments) or "nothing"
        hint = str(misfit) or f"as in {syntax.example}"
        raise ScheduleError(
            f"Expected {syntax.expects} for {name}, found {actual}", span, hint
        ) from None


def _split(text: str) -> Iterator[str]:
    """Yield the arguments: the texts between commas outside of brackets."""
    depth, start = 0, 0
    for place, character in enumerate(f"{text},"):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and (depth == 0 or place == len(text)):
            if text[start:place].strip():
                yield text[start:place].strip()
            start = place + 1


# ---------------------------------------------------------------- arguments


def _names(arguments: tuple[str, ...], count: int) -> tuple[str, ...]:
    for argument in arguments:
        if not _NAME.match(argument):
            raise _MisfitError(f"{argument} is no name: letters, digits and _, no digit first")
    if not len(arguments) == count == len(set(arguments)):
        raise _MisfitError
    return arguments


def _number(text: str, least: int) -> int:
    if not re.fullmatch(r"-?\d{1,18}", text) or int(text) < least:
        raise _MisfitError(f"the number must be a whole one from {least} on, of at most 18 digits")
    return int(text)


def _reorder(arguments: tuple[str, ...]) -> Command:
    if len(arguments) < 2:
        raise _MisfitError
    return Reorder(_names(arguments, len(arguments)))


def _split_command(arguments: tuple[str, ...]) -> Command:
    parent, outer, inner = _names(arguments[:3], 3)
    return Split(parent, outer, inner, _last(arguments, 4))


def _divide(arguments: tuple[str, ...]) -> Command:
    parent, outer, inner = _names(arguments[:3], 3)
    return Divide(parent, outer, inner, _last(arguments, 4))


def _last(arguments: tuple[str, ...], count: int) -> int:
    if len(arguments) != count:
        raise _MisfitError
    return _number(arguments[-1], 1)


def _pos(arguments: tuple[str, ...]) -> Command:
    parent, child = _names(arguments[:2], 2)
    if len(arguments) != 3:
        raise _MisfitError
    access = re.fullmatch(r"([A-Za-z_]\w*)\s*(?:\(([^()]*)\)|\[([^\[\]]*)\])?", arguments[2])
    if access is None:
        raise _MisfitError
    indices = tuple(filter(None, re.split(r"[\s,]+", access[2] or access[3] or "")))
    return Pos(parent, child, access[1], indices)


def _bound(arguments: tuple[str, ...]) -> Command:
    parent, child = _names(arguments[:2], 2)
    if len(arguments) != 4:
        raise _MisfitError
    kinds = {kind.value: kind for kind in BoundKind}
    if arguments[3] not in kinds:
        raise _misfit("the kinds of bounds are", arguments[3], kinds)
    return Bound(parent, child, _number(arguments[2], 0), kinds[arguments[3]])


def _parallelize(arguments: tuple[str, ...]) -> Command:
    (index,) = _names(arguments[:1], 1)
    unit = arguments[1] if len(arguments) > 1 else Unit.CORE.value
    race = arguments[2] if len(arguments) > 2 else Race.NONE.value
    races = {race.value: race for race in Race} | {"ParallelReduction": Race.TEMPORARY}
    if (unit not in UNITS and unit != LANES) or len(arguments) > 3:
        raise _misfit("the units are", unit, (*UNITS, LANES))
    if race not in races:
        raise _misfit("the strategies are", race, races)
    return Vectorize(index) if unit == LANES else Parallelize(index, races[race], UNITS[unit])


def _unroll(arguments: tuple[str, ...]) -> Command:
    (index,) = _names(arguments[:1], 1)
    return Unroll(index, _last(arguments, 2))


def _fuse(arguments: tuple[str, ...]) -> Command:
    return Fuse(*_names(arguments, 3))


def _coord(arguments: tuple[str, ...]) -> Command:
    return Coord(*_names(arguments, 2))


def _vectorize(arguments: tuple[str, ...]) -> Command:
    return Vectorize(*_names(arguments, 1))


def _mergeby(arguments: tuple[str, ...]) -> Command:
    (index,) = _names(arguments[:1], 1)
    merges = {merge.value: merge for merge in Merge}
    if len(arguments) != 2 or arguments[1] not in merges:
        raise _misfit("the strategies are", "".join(arguments[1:2]), merges)
    return MergeBy(index, merges[arguments[1]])


def _precompute(arguments: tuple[str, ...]) -> Command:
    if len(arguments) not in (3, 4):
        raise _MisfitError
    indices, copies = map(_list_of_names, arguments[1:3])
    if len(indices) != len(copies):
        raise _MisfitError("there is one name for each variable")
    workspace = _names(arguments[3:], 1)[0] if len(arguments) == 4 else ""
    return Precompute(_expression(arguments[0]), indices, copies, workspace)


def _distribute(arguments: tuple[str, ...]) -> Command:
    if len(arguments) != 1:
        raise _MisfitError
    return Distribute(_expression(arguments[0]))


def _expression(text: str) -> Expr:
    try:
        return parse_expression(text)
    except NotationError as error:
        raise _MisfitError(error.message) from error


def _list_of_names(text: str) -> tuple[str, ...]:
    """Parse `j`, or `{i,j}`, or `{}`."""
    if text[:1] in "{[" and text[-1:] in "}]":
        names = tuple(name.strip() for name in text[1:-1].split(",") if name.strip())
    else:
        names = (text,)
    return _names(names, len(names)) if names else ()


def _fission(arguments: tuple[str, ...]) -> Command:
    return Fission(*_names(arguments, 1))


def _loopfuse(arguments: tuple[str, ...]) -> Command:
    return LoopFuse(*_names(arguments, 1))


def _assemble(arguments: tuple[str, ...]) -> Command:
    (tensor,) = _names(arguments[:1], 1)
    ways = {assembly.value: assembly for assembly in Assembly}
    if len(arguments) not in (2, 3) or arguments[1] not in ways:
        raise _misfit("the ways to assemble are", "".join(arguments[1:2]), ways)
    if arguments[2:] not in ((), ("false",)):
        raise _MisfitError("loops that count entries are not scheduled on their own")
    return Assemble(tensor, ways[arguments[1]])


def _serial(arguments: tuple[str, ...]) -> Command:
    _names(arguments, 0)
    return Serial()


def _threads(arguments: tuple[str, ...]) -> Command:
    return Threads(_last(arguments, 1))


def _make(arguments: tuple[str, ...]) -> Command:
    (way, *numbers) = arguments
    return Make(way, tuple(_number(number, 0) for number in numbers))


_COMMANDS = {
    "distribute": _Syntax(
        "a product with a sum in it", "distribute(a(i)*(b(i)+c(i)))", _distribute
    ),
    "reorder": _Syntax("two or more different indices", "reorder(i,k,j)", _reorder),
    "split": _Syntax("a variable, two new names and a size", "split(i,i0,i1,32)", _split_command),
    "divide": _Syntax(
        "a variable, two new names and a number of tiles", "divide(i,i0,i1,4)", _divide
    ),
    "fuse": _Syntax("an outer variable, an inner one and a new name", "fuse(i,j,f)", _fuse),
    "pos": _Syntax("a variable, a new name and an operand", "pos(f,p,A)", _pos),
    "coord": _Syntax("a variable over positions and a new name", "coord(p,c)", _coord),
    "bound": _Syntax(
        "a variable, a new name, a number and a kind of bound", "bound(i,i1,1000,MaxExact)", _bound
    ),
    "parallelize": _Syntax(
        "one index, and perhaps a unit and a strategy",
        "parallelize(i,CPUThread,Atomics)",
        _parallelize,
    ),
    "unroll": _Syntax("one index and a number of iterations", "unroll(i,4)", _unroll),
    "vectorize": _Syntax("one index", "vectorize(i)", _vectorize),
    "mergeby": _Syntax("one index and a strategy", "mergeby(i,Gallop)", _mergeby),
    "precompute": _Syntax(
        "an expression, a variable or several in braces, as many names, and perhaps a workspace's",
        "precompute(A(i,j)*x(j),j,j,w)",
        _precompute,
    ),
    "fission": _Syntax("one index", "fission(i)", _fission),
    "loopfuse": _Syntax("one index", "loopfuse(i)", _loopfuse),
    "assemble": _Syntax("the result and Append, Insert or Copy", "assemble(C,Insert)", _assemble),
    "serial": _Syntax("nothing", "serial()", _serial),
}


_PLANNED = {
    "loops": _Syntax(
        "the indices of a term", "loops(i,k,j)", lambda names: Nest(_names(names, len(names)))
    ),
    "make": _Syntax("a way and whole numbers", "make(tiles,8)", _make),
    "threads": _Syntax("a number of threads", "threads(2)", _threads),
}
"""The commands that only the planner writes."""


def syntax() -> dict[str, str]:
    """Return the arguments of each command in words, by the command's name."""
    return {name: entry.expects for name, entry in _COMMANDS.items()}


def examples() -> tuple[str, ...]:
    """Return an example of each command."""
    return tuple(entry.example for entry in _COMMANDS.values())
