"""Commands as calls from Python: a table of their parameters, from which methods are generated.

    Methods = methods(record)           a name and a function for each command of the parser
    record(self, command)               receives the command of each call

A call is turned into the command's text, which the parser reads: so arguments are checked in one
place, and a message shows the command as users write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from inspect import BoundArguments, Parameter, Signature
from typing import Any

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Assembly, Merge, Race
from taco_py.compiler.schedule.commands import Command
from taco_py.compiler.schedule.parser import parse_commands, syntax
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.provenance.relations import BoundKind


@dataclass(frozen=True, slots=True)
class Method:
    """A command's parameters, as in a Python signature, and its effect."""

    parameters: str
    does: str


METHODS: dict[str, Method] = {
    "distribute": Method(
        "expression", "A term multiplied out: each product in it is a term with loops of its own."
    ),
    "reorder": Method("*indices", "Nest these loops in this order, the first outermost."),
    "split": Method("index, outer, inner, size", "Tiles of `size` of `index`."),
    "divide": Method("index, outer, inner, parts", "`parts` tiles of `index`."),
    "fuse": Method("outer, inner, fused", "One loop over the pairs of two nested ones."),
    "pos": Method("index, position, operand", "The entries of `operand` in place of coordinates."),
    "coord": Method("position, index", "Coordinates again, of a range of entries."),
    "bound": Method(
        "index, bounded, value, kind=MaxExact",
        "A promise about the range of `index`: MinExact, MinConstraint, MaxExact, MaxConstraint, "
        "in either case.",
    ),
    "parallelize": Method(
        "index, unit=threads, race=none",
        'Share the iterations of a loop among "threads", or the lanes of a "vector"; on a GPU '
        'among "blocks", "warps" of a block, "lanes": threads of a warp or a block. `race` says '
        'what happens where iterations write the same element: "none" (they do not), "atomics", '
        '"temporary", "ordered", "ignore".',
    ),
    "mergeby": Method(
        "index, strategy=Gallop",
        'How operands meet in their common coordinates: "gallop" or "two-finger".',
    ),
    "precompute": Method(
        "expression, indices, copies, workspace=",
        "A part of a value first, in a workspace over `indices`; the loops that fill it are called "
        "`copies`. One name each, or a tuple of names.",
    ),
    "fission": Method("index", "A loop over `index` for each of the statements in it."),
    "loopfuse": Method("index", "One loop over `index` for statements that have one each."),
    "unroll": Method("index, factor", "`factor` iterations one after another in the code."),
    "vectorize": Method("index", "Iterations in the lanes of a vector."),
    "assemble": Method(
        "tensor, assembly=Insert",
        'How the sparse result is assembled: "append" puts each entry behind those before it; '
        '"insert" counts entries first, and then writes each where it stays; "copy" copies the '
        "coordinates of an operand that has the same, on GPUs.",
    ),
    "serial": Method("", "Share no loop among threads."),
}
"""Commands that are not listed take their arguments in the order of their text."""

WORDS = {
    "unit": {
        "threads": "CPUThread",
        "vector": "CPUVector",
        "blocks": "GPUBlock",
        "warps": "GPUWarp",
        "lanes": "GPUThread",
    },
    "race": {"none": "NoRaces", "ignore": "IgnoreRaces"},
}
"""The words of schedules' text for Python's words, by the parameter that takes them.

Only words that differ from the lower case of the text's are listed."""

VALUES: dict[str, tuple[type[Enum], ...]] = {
    "race": (Race,),
    "kind": (BoundKind,),
    "strategy": (Merge,),
    "assembly": (Assembly,),
}
"""The parameters that take one of several words."""


def command_of(name: str, signature: Signature, args: Any, kwargs: Any) -> Command:
    """Return the command of a call. Raises ScheduleError for arguments that it does not take."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ScheduleError(
            f"Expected {name}{signature}, found other arguments: {error}",
            hint=f"{name} takes {syntax()[name]}",
        ) from None
    bound.apply_defaults()
    words = list(_words(bound))
    for word in words:
        if word.count("(") != word.count(")") or word.find(")") < word.find("("):
            raise ScheduleError(
                f"Expected brackets that match in an argument of {name}, found {word!r}",
                hint=f"{name} takes {syntax()[name]}",
            )
    (command,) = parse_commands(f"{name}({','.join(words)})")
    return command


def _words(bound: BoundArguments) -> Iterator[str]:
    """Yield the arguments in the syntax of a schedule's text."""
    for name, argument in bound.arguments.items():
        if bound.signature.parameters[name].kind is Parameter.VAR_POSITIONAL:
            is_list = len(argument) == 1 and isinstance(argument[0], tuple | list)
            yield from map(_word, argument[0] if is_list else argument)
        else:
            yield _spelled(name, _word(argument))


def _word(argument: Any) -> str:
    if isinstance(argument, Enum):
        return str(argument.value)
    if isinstance(argument, tuple | list):
        return f"{{{','.join(map(str, argument))}}}"
    return str(argument)


def _spelled(parameter: str, word: str) -> str:
    """Return a word for a parameter that takes one of several, in the spelling of the text."""
    values = {str(value.value) for kind in VALUES.get(parameter, ()) for value in kind}
    plain = word.lower().replace("-", "")
    alike = (value for value in values if value.lower() == plain)
    return WORDS.get(parameter, {}).get(word) or next(alike, word)


def methods(record: Callable[[Any, Command], Any]) -> dict[str, Callable[..., Any]]:
    """Return a method for each command, which passes the command to `record`."""
    return {name: _method(name, record) for name in syntax()}


def _method(name: str, record: Callable[[Any, Command], Any]) -> Callable[..., Any]:
    entry = METHODS.get(name, Method("*arguments", f"Takes {syntax()[name]}."))
    parameters = tuple(_parameter(text) for text in entry.parameters.split(", ") if text)
    signature = Signature(parameters)

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return record(self, command_of(name, signature, args, kwargs))

    method.__name__ = name
    method.__doc__ = f"{entry.does}\n\nRaises ScheduleError, and changes nothing then."
    this = Parameter("self", Parameter.POSITIONAL_ONLY)
    method.__signature__ = Signature((this, *parameters))  # type: ignore[attr-defined]
    return method


def _parameter(text: str) -> Parameter:
    """Return the parameter that a text describes: `size`, `race=none`, `workspace=` or
    `*indices`."""
    if text.startswith("*"):
        return Parameter(text[1:], Parameter.VAR_POSITIONAL)
    name, equals, default = text.partition("=")
    return Parameter(
        name, Parameter.POSITIONAL_OR_KEYWORD, default=default if equals else Parameter.empty
    )
