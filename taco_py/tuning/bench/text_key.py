"""The key of tuned plans that a call's text and operands have. Nothing is planned for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import semiring_mask_of
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.texts.by_text import plain_computation
from taco_py.calls.statements.read_text import statements_of
from taco_py.tuning.bench.call_key import key_of_call
from taco_py.tuning.store.tuning_record import TuningKey

KEYED = (
    "format", "threads", "dtype", "casting", "static", "libraries", "schedule_budget", "forbid",
    "allow", "target", "outputs",
)  # fmt: skip
"""The options of a call that its key depends on."""
READ = (*KEYED, "price")


def keyed_computation(
    text: str, objects: Mapping[str, Any], options: Mapping[str, Any]
) -> Computation:
    """Return the computation over numbers that a text says of operands, which has a key.

    options  the arguments of `evaluate` by name

    Raises what a call raises.
    """
    checked = CallOptions.of({name: options[name] for name in READ if name in options})
    over = semiring_mask_of(options.get("semiring"), options.get("mask"), False)
    call = CallArguments(objects, checked, over=None if over.is_usual else over)
    return plain_computation(statements_of(text, objects), call)


def key_of_text(text: str, objects: Mapping[str, Any], options: Mapping[str, Any]) -> TuningKey:
    """Return the key of a text over operands. Raises what `keyed_computation` raises."""
    return key_of_call(keyed_computation(text, objects, options))
