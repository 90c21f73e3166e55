"""The key of tuned plans that a call's text and operands have. Nothing is planned for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taco_py.call.over_semirings import over_numbers, over_of
from taco_py.call.prepare import Understood, check, statements_of
from taco_py.call.texts.in_blocks import concerns
from taco_py.diagnostics.errors import OperandError
from taco_py.kernels import KERNELS
from taco_py.notation.checks import has_subscripts
from taco_py.notation.dtypes import result_dtype
from taco_py.notation.half_types import computed_dtype
from taco_py.notation.nodes import Assignment
from taco_py.problem import TensorType
from taco_py.tune.store.fingerprint import target_here
from taco_py.tune.store.problem_text import Computation
from taco_py.tune.store.tuning_record import TuningKey, key_for
from taco_py.values.results import index_dtype, result_kind
from taco_py.values.settings import Settings, settings_of


KEYED: Mapping[str, Any] = {
    "threads": None, "dtype": None, "casting": "safe", "static": None, "libraries": True,
    "budget": None, "forbid": (), "allow": (), "target": "c",
}  # fmt: skip
"""The options of a call that its key depends on, in the order of `settings_of`, and what they are
where they are left out."""


def key_of_text(
    text: str, objects: Mapping[str, Any], options: Mapping[str, Any], semiring: Any, mask: Any
) -> TuningKey:
    """The key of a text over operands. Raises what a call raises, and OperandError for texts of
    several statements, with subscripts, or over operands in blocks."""
    read = statements_of(text, objects)
    refuse_unkeyed(read, concerns(objects.values(), options.get("format")))
    settings = settings_of(options.get("format"), None, *(options.get(n, KEYED[n]) for n in KEYED))
    over = over_of(semiring, mask, False)
    if over.is_usual:
        return key_of_call(read[0].assignment, objects, settings)
    ready = over_numbers(read[0].assignment, objects, settings, over)
    return key_of_call(ready.assignment, ready.objects, ready.settings)


def refuse_unkeyed(read: Sequence[Understood], in_blocks: bool) -> None:
    """Raise OperandError for a text that has no key, or whose operands are in blocks."""
    one = read[0].assignment
    if len(read) > 1 or has_subscripts(one) or in_blocks:
        raise OperandError(
            "Expected one assignment whose subscripts are indices, over plain formats, for a key "
            "of tuned plans, found another text or operands in blocks",
            one.span,
            hint="ask for each statement by itself; such texts have no keys yet",
        )


def key_of_call(
    assignment: Assignment, objects: Mapping[str, Any], settings: Settings
) -> TuningKey:
    """The key of an assignment over numbers, as `compute` has it."""
    checked = check(assignment, objects, settings)
    assignment, given = checked.assignment, checked.given
    dtypes = {name: each.operand.type.promoted for name, each in given.items()}
    dtype = result_dtype(assignment, dtypes) if settings.dtype is None else settings.dtype
    kind = result_kind(assignment, given, settings.format)
    index = index_dtype(given, checked.sizes)
    type = TensorType(kind.format, computed_dtype(dtype).name, index)
    operands = {name: each.operand for name, each in given.items()}
    results = {assignment.target.tensor: (f"{kind.kind} {dtype.name}", type)}
    computation = Computation(
        (assignment,), operands, results, options=_told(settings), static=settings.static
    )
    return key_for(computation, target_here(settings.target))


def _told(settings: Settings) -> list[str]:
    """The options that plans depend on, a line each."""
    lines = [f"threads {settings.threads or KERNELS.cores}"]
    if settings.format is not None:
        lines.append("format asked for")
    if not settings.libraries:
        lines.append("no libraries")
    lines += [f"forbid {name}" for name in sorted(settings.forbid)]
    lines += [f"allow {name}" for name in sorted(settings.allow)]
    return lines
