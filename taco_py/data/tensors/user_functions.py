"""Functions of users by C text: checked against NumPy's before a text may call them.

    c_text_of("softsign", lambda x: x / (1 + abs(x)), "x / (1 + fabs(x))", ("float32", "float64"))

The text is compiled and called on samples in a process of its own, whose results are kept with the
kernels: a later process compares them with those of its NumPy function and compiles nothing.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, product
from typing import Any

import numpy as np

from codegen.libraries.c_text import TYPE, c_name, c_text_function, definition, is_expression
from codegen.libraries.scalar_functions import ScalarFunction
from codegen.names import is_reserved
from codegen.records import dataclass
from codegen.toolchain.errors import CompileError, ToolchainError
from codegen.toolchain.trial import Trial, Tried
from codegen.types import SCALARS
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import (
    CompilerError,
    NotationError,
    OperandError,
    OperandTypeError,
)
from taco_py.language.diagnostics.source import Source, Span
from taco_py.language.notation.functions.counterpart import Array, Counterpart, counterpart_of
from taco_py.language.notation.functions.properties import first_difference

FLOATS = ("float32", "float64")
COUNT = 120
"""Random samples of each type, besides those at the ends."""
_SPECIAL: Mapping[str, tuple[Any, ...]] = {
    "b": (False, True),
    "i": (0, 1, -1, 2),
    "u": (0, 1, 2, 3),
    "f": (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan),
    "c": (0, 1, -1, 1j),
}
_MOST_SPECIAL = 64
_PLACE = "C text"
_FAILED = re.compile(rf"{_PLACE}:(\d+):(?:(\d+):)? (?:fatal )?error: (.*)")
_INCLUDES = """\
#include "taco_runtime.h"
#include <complex.h>
#include <math.h>
"""


@dataclass(frozen=True, slots=True, eq=False)
class CText:
    """A function by C text that agrees with NumPy's.

    parameters  the names of its arguments in the text
    digest      tells the text, the parameters, and the types
    """

    parameters: tuple[str, ...]
    counterpart: Counterpart
    function: ScalarFunction
    digest: str


def c_text_of(name: str, numpy: Callable[..., Any], text: str, dtypes: Any) -> CText:
    """Read a function by C text, and compare it with NumPy's on samples of each type.

    dtypes  of its arguments, by name or NumPy's; None for float32 and float64

    Raises OperandTypeError for other arguments, NotationError where the text does not compile,
    OperandError where it gives other numbers than NumPy, CompilerError without a compiler.
    """
    if not isinstance(text, str) or not text.strip():
        raise OperandTypeError(
            f"Expected C text of {name} as a string, found {text!r}",
            hint='write an expression of its arguments, as in c="x / (1 + fabs(x))"',
        )
    parameters = parameters_of(name, numpy)
    types = _types(name, dtypes)
    samples = {each: _samples(each, len(parameters)) for each in types}
    counterpart = counterpart_of(name, numpy, samples, tuple(SCALARS))
    told = f"{parameters} {dict(counterpart.results)} {text}"
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    function = c_text_function(f"{name}_{digest}", parameters, text, counterpart.results)
    found = _results(name, function, parameters, text, samples, digest)
    for type, arrays in samples.items():
        _compare(counterpart, parameters, text, type, arrays, found[type])
    return CText(parameters, counterpart, function, digest)


def parameters_of(name: str, numpy: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments of a NumPy function. Raises OperandTypeError."""
    if not callable(numpy):
        raise OperandTypeError(
            f"Expected a NumPy function as numpy= of {name}, found {type(numpy).__name__}",
            hint=f'write tp.function("{name}", numpy=lambda x: …, c="…")',
        )
    if isinstance(numpy, np.ufunc):
        return ("x", "y", "z", "u", "v", "w")[: numpy.nin]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        all_ = tuple(inspect.signature(numpy).parameters.values())
    except (ValueError, TypeError):
        all_ = ()
    needed = tuple(each for each in all_ if each.default is inspect.Parameter.empty)
    if not needed or any(each.kind not in kinds for each in needed):
        raise OperandTypeError(
            f"Expected a NumPy function of one argument or several for {name}",
            hint="write its arguments out, as in numpy=lambda x, y: …",
        )
    for each in needed:
        if is_reserved(each.name) or not each.name.isascii() or each.name == TYPE:
            raise OperandTypeError(
                f"Expected names of arguments that C may have for {name}, found {each.name}",
                hint="the C text calls its arguments as the NumPy function does: rename it there",
            )
    return tuple(each.name for each in needed)


def _types(name: str, dtypes: Any) -> tuple[str, ...]:
    """Return the names of types that C has, the narrow ones first. Raises OperandTypeError."""
    given = FLOATS if dtypes is None else dtypes
    each_given = (given,) if isinstance(given, str | type | np.dtype) else tuple(given)
    try:
        found = {np.dtype(each) for each in each_given}
    except TypeError as error:
        raise OperandTypeError(
            f"Expected dtypes= of {name} as names of NumPy's, found {dtypes!r}",
            hint='as in dtypes=("int32", "int64")',
        ) from error
    wrong = [each.name for each in found if each.name not in SCALARS]
    if wrong or not found:
        raise OperandTypeError(
            f"Expected dtypes that kernels compute in for {name}, found "
            f"{', '.join(wrong) or 'none'}",
            hint=f"they are {', '.join(SCALARS)}",
        )
    order = {kind: place for place, kind in enumerate("buifc")}
    return tuple(
        each.name for each in sorted(found, key=lambda each: (order[each.kind], each.itemsize))
    )


def _samples(type: str, arity: int) -> tuple[Array, ...]:
    """Return random numbers of a type, and those at its ends together."""
    dtype, random = np.dtype(type), np.random.default_rng(27)
    special = list(islice(product(_SPECIAL[dtype.kind], repeat=arity), _MOST_SPECIAL))
    columns = []
    for place in range(arity):
        if dtype.kind == "b":
            drawn: Any = random.random(COUNT) < 0.5
        elif dtype.kind in "iu":
            drawn = random.integers(0 if dtype.kind == "u" else -9, 10, COUNT)
        else:
            drawn = random.standard_normal(COUNT) * 3
            if dtype.kind == "c":
                drawn = drawn + 1j * random.standard_normal(COUNT)
        ends = np.array([each[place] for each in special])
        columns.append(np.concatenate([ends, drawn]).astype(dtype))
    return tuple(columns)


def _results(
    name: str,
    function: ScalarFunction,
    parameters: tuple[str, ...],
    text: str,
    samples: Mapping[str, Sequence[Array]],
    digest: str,
) -> dict[str, Tried]:
    """What the text gives to samples of each type: as an earlier process found, or tried out."""
    key = f"function by C text {name} {digest}"
    note = KERNELS.note(key)
    if note is not None:
        kept = json.loads(note)
        return {each: Tried(base64.b64decode(data), why) for each, (data, why) in kept.items()}
    source = _trial_text(function, parameters, text)
    trials = [
        Trial(
            f"trial_{each}",
            np.stack(arrays, axis=1).tobytes(),
            arrays[0].itemsize * len(arrays),
            np.dtype(_gives(function, each)).itemsize,
        )
        for each, arrays in samples.items()
    ]
    try:
        tried = dict(zip(samples, KERNELS.try_out(source, trials), strict=True))
    except CompileError as error:
        raise _not_compiled(name, text, error) from error
    except (ToolchainError, OSError) as error:
        raise CompilerError(str(error), hint=getattr(error, "hint", None)) from error
    kept = {each: (base64.b64encode(t.results).decode(), t.stopped) for each, t in tried.items()}
    KERNELS.write_note(key, json.dumps(kept))
    return tried


def _gives(function: ScalarFunction, type: str) -> str:
    return function.result_type(SCALARS[type]).name


def _trial_text(function: ScalarFunction, parameters: tuple[str, ...], text: str) -> str:
    """C with the function for each type, and one that calls it on arguments in memory."""
    parts = [_INCLUDES]
    for type in function.spellings:
        gives = _gives(function, type)
        args = ", ".join(f"arguments[{k}]" for k in range(len(parameters)))
        parts += [
            definition(function.name, parameters, text, type, gives, place=_PLACE),
            f'__attribute__((visibility("default"))) void trial_{type}(\n'
            f"    const {SCALARS[type].c} *arguments, {SCALARS[gives].c} *result)\n"
            f"{{\n    *result = {c_name(function.name, type)}({args});\n}}",
        ]
    return "\n\n".join(parts) + "\n"


def _not_compiled(name: str, text: str, error: CompileError) -> NotationError | CompilerError:
    """Return the error at the place of the text that the compiler names; its own where it names
    none."""
    found = _FAILED.search(error.output)
    if found is None:
        return CompilerError(error.message, hint=error.hint)
    lines = text.split("\n")
    row = min(int(found[1]), len(lines)) - 1
    column = min(int(found[2] or 1) - 1, len(lines[row]))
    start = sum(len(line) + 1 for line in lines[:row]) + column
    kind = "an expression" if is_expression(text) else "statements that return a number"
    return NotationError(
        f"Expected C text of {name} that compiles, found in line {row + 1}: {found[3]}",
        Span(Source(text, _PLACE), start, start + 1),
        hint=f"the text is {kind} of its arguments, whose type is called {TYPE}; <math.h> is there",
    )


def _compare(
    counterpart: Counterpart,
    parameters: tuple[str, ...],
    text: str,
    type: str,
    arrays: Sequence[Array],
    tried: Tried,
) -> None:
    """Raise OperandError where C text gives other numbers than NumPy, or none."""
    name, gives = counterpart.name, np.dtype(counterpart.results[type])
    with np.errstate(all="ignore"):
        wanted = counterpart(*arrays)
    found = np.frombuffer(tried.results, gives, len(tried.results) // gives.itemsize)
    count = len(found)
    first = first_difference(wanted[:count], found)
    if first is None and not tried.stopped:
        return
    place = count if first is None else first
    numbers = [each[place].item() for each in arrays] if place < len(wanted) else []
    shown = ", ".join(f"{p} = {n!r}" for p, n in zip(parameters, numbers, strict=False))
    what = tried.stopped if first is None else f"{found[first].item()!r}"
    said = wanted[place].item() if place < len(wanted) else "a number"
    raise OperandError(
        f"Expected the C text of {name} to give what numpy= gives, {said!r}, found {what} for "
        f"{shown} of {type}",
        Span(Source(text, _PLACE), 0, len(text.split(chr(10))[0])),
        hint="mend one of the two; dtypes= says for which types the text is meant",
    )
