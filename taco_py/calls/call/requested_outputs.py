"""What a call of several statements asks for: outputs, and formats and arrays for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codegen.records import dataclass
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.errors import OperandError, OperandTypeError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.checks import unique
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.statements import check_outputs


@dataclass(frozen=True, slots=True, eq=False)
class RequestedOutputs:
    """The names that a call wants of a text.

    formats  those that are asked for, of any name that the text assigns
    outs     the arrays that outputs are written to
    alone    whether the one output is returned by itself, not in a tuple
    """

    outputs: tuple[str, ...]
    formats: Mapping[str, Any]
    outs: Mapping[str, Array]
    alone: bool


def requested_outputs(
    statements: Sequence[Assignment], outputs: Any, format: Any = None, out: Any = None
) -> RequestedOutputs:
    """Return the outputs of statements: by default what the last one assigns; one name, or several.

    format, out  of the one output, or by name

    Raises OperandTypeError, OperandError.
    """
    alone = outputs is None or isinstance(outputs, str)
    names = _names(statements, outputs)
    check_outputs(statements, names)
    assigned = unique(statement.target.tensor for statement in statements)
    formats = by_output("format", format, names, assigned)
    return RequestedOutputs(names, formats, by_output("out", out, names, names), alone)


def _names(statements: Sequence[Assignment], outputs: Any) -> tuple[str, ...]:
    if outputs is None:
        return (statements[-1].target.tensor,)
    if isinstance(outputs, str):
        return (outputs,)
    if not isinstance(outputs, Iterable) or isinstance(outputs, Mapping):
        raise OperandTypeError(
            f"Expected outputs to be names, found {outputs!r}", hint='as in outputs=("P", "z")'
        )
    names = tuple(outputs)
    for name in names:
        if not isinstance(name, str):
            raise OperandTypeError(
                f"Expected outputs to be names, found {name!r} among them",
                hint='as in outputs=("P", "z")',
            )
    if not names:
        raise OperandError(
            "Expected a name in outputs, found none", hint="leave outputs= away for the last one"
        )
    return names


def by_output(
    option: str, value: Any, outputs: Sequence[str], allowed: Sequence[str]
) -> dict[str, Any]:
    """Return the values of an option by name, in the order of the outputs.

    allowed  the names that it may be about
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        if len(outputs) > 1:
            raise OperandError(
                f"Expected {option}= by name for several outputs, found one for all of them",
                hint=f'as in {option}={{"{outputs[0]}": …}}',
            )
        return {outputs[0]: value}
    for name in value:
        if name not in allowed:
            raise OperandError(
                f"Expected names among {', '.join(allowed)} in {option}=, found {name!r}",
                hint=with_suggestion("leave it out", str(name), allowed),
            )
    ordered = dict.fromkeys((*(name for name in outputs if name in value), *value))
    return {name: value[name] for name in ordered if value[name] is not None}
