"""What may become source text: names that pass a pattern, and numbers. All else is a fault of ours.

Readers refuse other names in the user's words; a generator that gets one nevertheless ends here.
"""

from __future__ import annotations

from codegen.names import is_plain_name
from taco_py.diagnostics.errors import InternalError

LARGEST = 2**63
"""Whole numbers below it, either sign, are written; larger ones are passed as objects."""


def checked_name(name: object) -> str:
    """Return a name that may be a part of Python's or C's text. Raises InternalError for others."""
    if not is_plain_name(name):
        raise InternalError(f"Expected an identifier to write into source text, found {name!r:.80}")
    return str(name)


def whole_number(number: object) -> str:
    """Write a whole number. Raises InternalError for anything else."""
    if type(number) is not int or not -LARGEST < number < LARGEST:
        raise InternalError(
            f"Expected a whole number to write into source text, found {number!r:.80}"
        )
    return repr(number)
