"""The options of a call that a task may have: checked where they are given, and made plain.

dtype=np.float32, semiring=tp.Semiring("min", "plus")  →  "float32", "min_plus", as JSON has them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from taco_py.arguments.option_checks import (
    check_allow,
    check_casting,
    check_forbid,
    check_libraries,
    check_static,
    check_static_index,
    check_threads,
)
from taco_py.data.storage.borrow import as_dtype
from taco_py.data.tensors.tensor import as_format, asks_choice
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.formats import Format, RemappedFormat
from taco_py.language.notation.checks import all_indices
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.rewrites.semirings import Semiring, semiring_of


def _format(value: Any) -> str:
    """Return a format as text; whether it is one for the result is asked once that is known."""
    if not isinstance(value, str | Format | RemappedFormat):
        raise OperandTypeError(
            f"Expected format to be a Format or its text, found {value!r}",
            hint='as in format="ds"',
        )
    return str(value)


def _semiring(value: Any) -> str:
    """Return the name of a semiring that its name tells all of. Raises NotationError."""
    semiring = semiring_of(value)
    if isinstance(value, Semiring) and (value.zero, value.one) != (None, None):
        raise OperandTypeError(
            f"Expected a semiring with the zero and one of its operators, found {value}",
            hint='tasks name it: "min_plus"',
        )
    return semiring_of(semiring.name).name


PLAIN: Mapping[str, Callable[[Any], Any]] = {
    "format": _format,
    "dtype": lambda value: as_dtype(value, "dtype").name,
    "casting": check_casting,
    "threads": check_threads,
    "static": lambda value: dict(check_static(value)),
    "libraries": check_libraries,
    "forbid": lambda value: sorted(check_forbid(value)),
    "allow": lambda value: sorted(check_allow(value)),
    "semiring": _semiring,
}
"""What makes the value of each option plain, and raises TacoError for what it cannot have."""
CALL_OPTIONS = tuple(PLAIN)
"""What `evaluate` takes besides operands, as far as keys of tuned plans know it."""


def plain_option(name: str, value: Any) -> Any:
    """Return the value of an option as JSON has it. Raises TacoError for one that it cannot
    have."""
    return PLAIN[name](value)


def check_for_text(name: str, value: Any, assignment: Assignment) -> None:
    """Raise TacoError for a format that the result cannot have, or sizes of no index."""
    if name == "format" and not asks_choice(value):
        as_format(value, len(assignment.target.indices))
    if name == "static":
        for index in value:
            check_static_index(index, all_indices(assignment))
