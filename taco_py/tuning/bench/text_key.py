"""The key of tuned plans that a call's text and operands have. Nothing is planned for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import semiring_mask_of
from taco_py.calls.call.texts.by_text import plain_computation
from taco_py.calls.statements.read_text import Understood, statements_of
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.notation.nodes import Assignment
from taco_py.tuning.bench.call_key import key_of_call
from taco_py.tuning.store.tuning_record import TuningKey

KEYED = (
    "format", "threads", "dtype", "casting", "static", "libraries", "schedule_budget", "forbid",
    "allow", "target",
)  # fmt: skip
"""The options of a call that its key depends on."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyedCall:
    """A call over numbers as the planner has it."""

    assignment: Assignment
    objects: Mapping[str, Any]
    settings: CallOptions


def keyed_call(text: str, objects: Mapping[str, Any], options: Mapping[str, Any]) -> KeyedCall:
    """Return the call of a text over operands that has a key.

    options  the arguments of `evaluate` by name

    Raises what a call raises, and OperandError for texts of several statements.
    """
    read = statements_of(text, objects)
    refuse_several(read)
    settings = CallOptions.of({name: options[name] for name in KEYED if name in options})
    over = semiring_mask_of(options.get("semiring"), options.get("mask"), False)
    call = CallArguments(objects, settings, over=None if over.is_usual else over)
    plain = plain_computation(read, call)
    return KeyedCall(plain.last, plain.objects, plain.options)


def key_of_text(text: str, objects: Mapping[str, Any], options: Mapping[str, Any]) -> TuningKey:
    """Return the key of a text over operands. Raises what `keyed_call` raises."""
    call = keyed_call(text, objects, options)
    return key_of_call(call.assignment, call.objects, call.settings)


def refuse_several(read: Sequence[Understood]) -> None:
    """Raise OperandError for a text of several statements, which has no key."""
    if len(read) > 1:
        raise OperandError(
            f"Expected one assignment for a key of tuned plans, found {len(read)} statements",
            read[0].assignment.span,
            hint="give each statement by itself",
        )
