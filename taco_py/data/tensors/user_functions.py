"""Functions of users by C text, checked against NumPy before a text may call them.

    c_text_of("softsign", lambda x: x / (1 + abs(x)), "x / (1 + fabs(x))", ("float32", "float64"))

The text is compiled and called on samples in a separate process, whose results are cached with the
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
from codegen.toolchain.trial import Trial, TrialResult
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
"""The number of random samples of each type, besides special values."""
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
    digest      identifies the text, the parameters, and the types
    """

    parameters: tuple[str, ...]
    counterpart: Counterpart
    function: ScalarFunction
    digest: str


def c_text_of(name: str, numpy: Callable[..., Any], text: str, dtypes: Any) -> CText:
    """Compile a function by C text, and compare it with NumPy's on samples of each type.

    dtypes  of its arguments, as names or NumPy types; None for float32 and float64

    Raises OperandTypeError for other arguments, NotationError where the text does not compile,
    OperandError where it yields other numbers than NumPy, CompilerError without a compiler.
    """
    if not isinstance(text, str) or not text.strip():
        raise OperandTypeError(
            f"Expected C text of {name} as a string, found {text!r}",
            hint='write an expression of its arguments, as in c="x / (1 + fabs(x))"',
        )
    parameters = parameters_of(name, numpy)
    types = _types(name, dtypes)
    samples = {type_name: _samples(type_name, len(parameters)) for type_name in types}
    counterpart = counterpart_of(name, numpy, samples, tuple(SCALARS))
    identity = f"{parameters} {dict(counterpart.results)} {text}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    function = c_text_function(f"{name}_{digest}", parameters, text, counterpart.results)
    results = _results(name, function, parameters, text, samples, digest)
    for type, arrays in samples.items():
        _compare(counterpart, parameters, text, type, arrays, results[type])
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
    required = tuple(
        parameter for parameter in all_ if parameter.default is inspect.Parameter.empty
    )
    if not required or any(parameter.kind not in kinds for parameter in required):
        raise OperandTypeError(
            f"Expected a NumPy function of one argument or several for {name}",
            hint="write its arguments out, as in numpy=lambda x, y: …",
        )
    for parameter in required:
        if is_reserved(parameter.name) or not parameter.name.isascii() or parameter.name == TYPE:
            raise OperandTypeError(
                f"Expected names of arguments that C may have for {name}, found {parameter.name}",
                hint="the C text calls its arguments as the NumPy function does: rename it there",
            )
    return tuple(parameter.name for parameter in required)


def _types(name: str, dtypes: Any) -> tuple[str, ...]:
    """Return the names of types that C has, the narrow ones first. Raises OperandTypeError."""
    requested = FLOATS if dtypes is None else dtypes
    sequence = (requested,) if isinstance(requested, str | type | np.dtype) else tuple(requested)
    try:
        types = {np.dtype(name_or_type) for name_or_type in sequence}
    except TypeError as error:
        raise OperandTypeError(
            f"Expected dtypes= of {name} as names of NumPy's, found {dtypes!r}",
            hint='as in dtypes=("int32", "int64")',
        ) from error
    wrong = [dtype.name for dtype in types if dtype.name not in SCALARS]
    if wrong or not types:
        raise OperandTypeError(
            f"Expected dtypes that kernels compute in for {name}, found "
            f"{', '.join(wrong) or 'none'}",
            hint=f"they are {', '.join(SCALARS)}",
        )
    order = {kind: place for place, kind in enumerate("buifc")}
    return tuple(
        type.name for type in sorted(types, key=lambda type: (order[type.kind], type.itemsize))
    )


def _samples(type: str, arity: int) -> tuple[Array, ...]:
    """Return special values and random numbers of a type as arguments."""
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
        ends = np.array([values[place] for values in special])
        columns.append(np.concatenate([ends, drawn]).astype(dtype))
    return tuple(columns)


def _results(
    name: str,
    function: ScalarFunction,
    parameters: tuple[str, ...],
    text: str,
    samples: Mapping[str, Sequence[Array]],
    digest: str,
) -> dict[str, TrialResult]:
    """Return the results of the text on samples of each type, cached or from a trial run."""
    key = f"function by C text {name} {digest}"
    note = KERNELS.note(key)
    if note is not None:
        cached = json.loads(note)
        return {
            type_name: TrialResult(base64.b64decode(data), reason)
            for type_name, (data, reason) in cached.items()
        }
    source = _trial_text(function, parameters, text)
    trials = [
        Trial(
            f"trial_{type_name}",
            np.stack(arrays, axis=1).tobytes(),
            arrays[0].itemsize * len(arrays),
            np.dtype(_gives(function, type_name)).itemsize,
        )
        for type_name, arrays in samples.items()
    ]
    try:
        results = dict(zip(samples, KERNELS.try_out(source, trials), strict=True))
    except CompileError as error:
        raise _not_compiled(name, text, error) from error
    except (ToolchainError, OSError) as error:
        raise CompilerError(str(error), hint=getattr(error, "hint", None)) from error
    encoded = {
        type_name: (base64.b64encode(t.results).decode(), t.stopped)
        for type_name, t in results.items()
    }
    KERNELS.write_note(key, json.dumps(encoded))
    return results


def _gives(function: ScalarFunction, type: str) -> str:
    return function.result_type(SCALARS[type]).name


def _trial_text(function: ScalarFunction, parameters: tuple[str, ...], text: str) -> str:
    """Return C text with the function for each type, and a function that calls it on memory."""
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
    """Return the error at the place in the text that the compiler reports, or the compiler's
    error."""
    match = _FAILED.search(error.output)
    if match is None:
        return CompilerError(error.message, hint=error.hint)
    lines = text.split("\n")
    row = min(int(match[1]), len(lines)) - 1
    column = min(int(match[2] or 1) - 1, len(lines[row]))
    start = sum(len(line) + 1 for line in lines[:row]) + column
    kind = "an expression" if is_expression(text) else "statements that return a number"
    return NotationError(
        f"Expected C text of {name} that compiles, found in line {row + 1}: {match[3]}",
        Span(Source(text, _PLACE), start, start + 1),
        hint=f"the text is {kind} of its arguments, whose type is called {TYPE}; <math.h> is there",
    )


def _compare(
    counterpart: Counterpart,
    parameters: tuple[str, ...],
    text: str,
    type: str,
    arrays: Sequence[Array],
    trial: TrialResult,
) -> None:
    """Raise OperandError where C text yields other numbers than NumPy, or none."""
    name, gives = counterpart.name, np.dtype(counterpart.results[type])
    with np.errstate(all="ignore"):
        expected = counterpart(*arrays)
    results = np.frombuffer(trial.results, gives, len(trial.results) // gives.itemsize)
    count = len(results)
    first = first_difference(expected[:count], results)
    if first is None and not trial.stopped:
        return
    place = count if first is None else first
    numbers = [array[place].item() for array in arrays] if place < len(expected) else []
    arguments = ", ".join(f"{p} = {n!r}" for p, n in zip(parameters, numbers, strict=False))
    what = trial.stopped if first is None else f"{results[first].item()!r}"
    said = expected[place].item() if place < len(expected) else "a number"
    raise OperandError(
        f"Expected the C text of {name} to give what numpy= gives, {said!r}, found {what} for "
        f"{arguments} of {type}",
        Span(Source(text, _PLACE), 0, len(text.split(chr(10))[0])),
        hint="mend one of the two; dtypes= says for which types the text is meant",
    )
