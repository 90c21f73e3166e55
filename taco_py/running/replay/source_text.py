"""What may become Python: names that pass a pattern, numbers, and the small language of short ways.

Readers refuse other names in the user's words; a generator that gets one nevertheless ends here, as
does a text that was kept on disk and says something that no short way does.
"""

from __future__ import annotations

from collections.abc import Collection
from types import CodeType, MappingProxyType

from codegen.names import is_plain_name
from taco_py.language.diagnostics.errors import InternalError

LARGEST = 2**63
"""Whole numbers below it, either sign, are written; larger ones are passed as objects."""


def checked_name(name: object) -> str:
    """Return a name that may be a part of Python's or C's text. Raises InternalError for others."""
    if not is_plain_name(name):
        raise InternalError(f"Expected an identifier to write into source text, found {name!r:.80}")
    return str(name)


def integer_text(number: object) -> str:
    """Write a whole number. Raises InternalError for anything else."""
    if type(number) is not int or not -LARGEST < number < LARGEST:
        raise InternalError(
            f"Expected a whole number to write into source text, found {number!r:.80}"
        )
    return repr(number)


# ---------------------------------------------------------------- short ways

ATTRIBUTES = frozenset((
    "shape", "itemsize", "strides", "flags", "num", "levels", "size", "values", "pos", "crd",
    "format", "fill", "data", "indptr", "indices", "item", "reshape", "examined", "sorted",
    "unique", "nbytes", "dtype", "coords", "transpose", "view",
))  # fmt: skip
"""Attributes of operands and results that short ways read or call: none writes a file."""

BUILTINS = MappingProxyType({
    builtin.__name__: builtin
    for builtin in (
        id, len, max, min, type, TypeError, ValueError, AttributeError, KeyError, OverflowError,
        MemoryError,
    )
})  # fmt: skip
"""Python's own names that short ways use."""


def call_code(text: str, names: Collection[str]) -> CodeType:
    """Compile the text of a short way: one function `call` of known names and attributes.

    names  that the text may use besides Python's own in `BUILTINS`

    What Python makes of the text is looked at, which takes a twentieth of the time of a tree: there
    are no functions within, and no name or attribute that the tables do not have. Raises
    InternalError for any other text.
    """
    try:
        code = compile(text, "<a call's short way>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InternalError(f"Expected the text of a short way, found {text!r:.80}") from error
    functions = _functions(code)
    allowed = ATTRIBUTES | BUILTINS.keys() | {*names}
    outside = {*code.co_names} - {"call", *names}
    if (
        [function.co_name for function in functions] != ["call"]
        or _functions(functions[0])
        or outside
    ):
        raise InternalError(f"Expected the text of a short way, found {text!r:.80}")
    if unknown := {*functions[0].co_names} - allowed:
        raise InternalError(f"Expected the names of a short way, found {min(unknown)!r:.80}")
    return code


def _functions(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]
