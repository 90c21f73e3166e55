"""Scalar functions from C text, which the kernels that call them define.

    c_text_function("softsign_5f", ("x",), "x / (1 + fabs(x))", {"float64": "float64"})

    static inline double taco_user_softsign_5f_float64(double x)
    {
        return (
            x / (1 + fabs(x))
        );
    }

The text is an expression of the parameters, or statements that return one. `T` in it is the type of
the parameters.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from codegen.libraries.scalar_functions import FUNCTIONS, CFunction, ScalarFunction
from codegen.names import checked_names
from codegen.types import SCALARS

INDENT = "    "
TYPE = "T"
"""The name of the type of the parameters in C text."""

_IN_LANES = frozenset(
    spelling.name
    for function in FUNCTIONS.values()
    for spelling in function.spellings.values()
    if isinstance(spelling, CFunction) and spelling.vectorizes and not spelling.is_own
)
"""Functions of the C library that compilers call for several lanes at once."""


def c_text_function(
    name: str, parameters: Sequence[str], text: str, results: Mapping[str, str]
) -> ScalarFunction:
    """Return a scalar function of C text for each type of its arguments.

    name  tells the text: two functions of one name are the same
    """
    lanes = in_lanes(text)
    spellings = {
        type: CFunction(
            c_name(name, type), lanes,
            definition=definition(name, parameters, text, type, results[type]),
        )
        for type in results
    }  # fmt: skip
    return ScalarFunction(name, len(parameters), results, spellings)


def definition(
    name: str, parameters: Sequence[str], text: str, type: str, result: str, place: str = ""
) -> str:
    """Write the function in C for one type.

    place  the file that the compiler says errors of the text are in; the text then keeps its
           columns
    """
    element, gives = SCALARS[type], SCALARS[result]
    checked_names((name, *parameters))
    parameters_text = ", ".join(f"{element.c} {parameter}" for parameter in parameters)
    head = f"static inline {gives.c} {c_name(name, type)}({parameters_text})"
    uses_type = re.search(rf"\b{TYPE}\b", text) and TYPE not in parameters
    line = [f'#line 1 "{place}"'] if place else []
    body = [*line, text if place else textwrap.dedent(text).strip("\n")]
    if is_expression(text):
        body = ["return (", *(body if place else _indented(body)), ");"]
    lines = [f"typedef {element.c} {TYPE};"] * bool(uses_type) + body
    return "\n".join([head, "{", *(lines if place else _indented(lines)), "}"])


def c_name(name: str, type: str) -> str:
    """Return the function's name in C for one type."""
    return f"taco_user_{name}_{type}"


def is_expression(text: str) -> bool:
    """Tell whether C text is an expression, and not statements that return one."""
    return re.search(r"\breturn\b", text) is None


def in_lanes(text: str) -> bool:
    """Tell whether compilers make vector code of loops with C text: an expression without calls of
    more than a few instructions."""
    called = set(re.findall(r"(\w+)\s*\(", text))
    return is_expression(text) and ";" not in text and called <= _IN_LANES


def _indented(lines: Sequence[str]) -> list[str]:
    return [textwrap.indent(line, INDENT) for line in lines]
