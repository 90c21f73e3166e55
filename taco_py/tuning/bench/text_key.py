"""The key of tuned plans that a call's text and operands have. Nothing is planned for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import semiring_mask_of
from taco_py.calls.call.over_semirings import to_arithmetic
from taco_py.calls.call.texts.in_blocks import concerns
from taco_py.calls.statements.read_text import Understood, statements_of
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.notation.checks import has_subscripts
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

    Raises what a call raises, and OperandError for texts of several statements, with subscripts, or
    over operands in blocks.
    """
    read = statements_of(text, objects)
    refuse_unkeyed(read, concerns(objects.values(), options.get("format")))
    settings = CallOptions.of({name: options[name] for name in KEYED if name in options})
    over = semiring_mask_of(options.get("semiring"), options.get("mask"), False)
    assignment = read[0].assignment
    if over.is_usual:
        return KeyedCall(assignment, objects, settings)
    assignment, call = to_arithmetic(assignment, CallArguments(objects, settings, over=over))
    return KeyedCall(assignment, call.objects, call.options)


def key_of_text(text: str, objects: Mapping[str, Any], options: Mapping[str, Any]) -> TuningKey:
    """Return the key of a text over operands. Raises what `keyed_call` raises."""
    call = keyed_call(text, objects, options)
    return key_of_call(call.assignment, call.objects, call.settings)


def refuse_unkeyed(read: Sequence[Understood], in_blocks: bool) -> None:
    """Raise OperandError for a text that has no key, or whose operands are in blocks."""
    one = read[0].assignment
    if len(read) > 1:
        found, hint = f"{len(read)} statements", "give each statement by itself"
    elif has_subscripts(one):
        found = "a subscript that is more than an index"
        hint = "cut or gather the operand before, as in A=A[:, ::2], and write A[i,j]"
    elif in_blocks:
        found = "operands or a format in blocks or diagonals"
        hint = "convert them, as in A=A.tocsr(), or leave format= out"
    else:
        return
    raise OperandError(
        "Expected one assignment whose subscripts are indices, over plain formats, for a key of "
        f"tuned plans, found {found}",
        one.span,
        hint=hint,
    )
