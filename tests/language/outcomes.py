"""What random programs give, beside what the dense oracle gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.notation.rewrites.semirings import ADDS
from tests.language.other_plans import other_plan
from tests.language.patterns import is_stored_as, stored_of
from tests.language.programs import Program
from tests.machines import always_threads

Array = np.ndarray[Any, Any]


def outcome(program: Program, seed: int, plans: Iterable[int] = ()) -> str:
    """Compare a program with the oracle, by the plan that is chosen and by other ones.

    "equal", "refused" where evaluate and the oracle raise the same, else what differs.

    plans  seeds of other plans (`other_plan`), which run in one to three threads
    """
    operands, options = program.given(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _computed(lambda: tp.evaluate_dense(program.text, operands, **options))
        result = _computed(lambda: _evaluated(program, operands, options))
        answer = _judged(program, result, expected)
        answer = (
            _as_text_stores(program, operands, options, result, expected)
            if answer == "equal"
            else answer
        )
        if answer != "equal":
            return answer
        for plan in plans:
            with other_plan(plan), always_threads():
                threads = 1 + plan % 3
                other = _computed(partial(_evaluated, program, operands, options, threads))
            answer = _judged(program, other, expected)
            answer = _stored_alike(result, other) if answer == "equal" else answer
            if answer != "equal":
                return f"plan {plan}: {answer}"
    return "equal"


def _evaluated(program: Program, operands: Any, options: Any, threads: int | None = None) -> Any:
    form = {} if program.form is None else {"format": program.form}
    return tp.evaluate(program.text, operands, **options, **form, threads=threads)


def _judged(program: Program, result: Any, expected: Any) -> str:
    if isinstance(expected, Exception) or isinstance(result, Exception):
        return _refused(expected, result, program)
    pairs = zip(_each(result), _each(expected), strict=True)
    outcomes = (_compared(program, one, other) for one, other in pairs)
    return next((each for each in outcomes if each != "equal"), "equal")


def _as_text_stores(
    program: Program, operands: Any, options: Any, result: Any, expected: Any
) -> str:
    """Compare the places that a sparse result stores with those that its text does."""
    if not isinstance(result, tp.Tensor) and not sp.issparse(result):
        return "equal"
    plain = {"semiring", "mask"}.issuperset(options)
    stretched = any(1 in np.shape(each) for each in operands.values())
    has = stored_of(program.text, operands, **options) if plain and not stretched else None
    if has is None:
        return "equal"
    if sp.issparse(result) and np.any(expected[~has] != _zero(program, expected)):
        has = np.ones_like(has)  # scipy's have no fill value
    elif isinstance(result, tp.Tensor):  # what is absent may be another number than the fill value
        has = has | ~same(expected, result.fill_value)
    found, wanted = is_stored_as(result, has)
    more, less = (np.argwhere(each).tolist()[:3] for each in (found & ~wanted, wanted & ~found))
    return f"stores {more} too, and not {less} as its text" if more or less else "equal"


def _stored_alike(result: Any, other: Any) -> str:
    """Compare the kinds of two results, and the places that they store."""
    for one, two in zip(_each(result), _each(other), strict=True):
        if type(one) is not type(two):
            return f"a {type(two).__name__}, by the first plan a {type(one).__name__}"
        places, others = stored_places(one), stored_places(two)
        if places != others:
            more, less = sorted(others - places)[:3], sorted(places - others)[:3]
            return f"stores {more} too, and not {less} as by the first plan"
    return "equal"


def stored_places(result: Any) -> frozenset[tuple[int, ...]]:
    """List the places at which a sparse result stores something; none of a dense one."""
    if not isinstance(result, tp.Tensor) and not sp.issparse(result):
        return frozenset()
    coordinates = _entries(result)[0]
    return frozenset(zip(*(np.asarray(each).tolist() for each in coordinates), strict=True))


def _refused(wanted: Any, found: Any, program: Program) -> str:
    ours = isinstance(found, tp.TacoError) and not isinstance(found, tp.InternalError)
    theirs = isinstance(wanted, tp.TacoError) and not isinstance(wanted, tp.InternalError)
    if ours and theirs:
        return "refused"
    if ours and isinstance(found, tp.FormatError) and program.form is not None:
        return "refused"
    return f"the oracle: {_said(wanted)}, evaluate: {_said(found)}"


def _said(value: Any) -> str:
    return f"{value!r:.300}" if isinstance(value, Exception) else "a result"


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _compared(program: Program, found: Any, wanted: Array) -> str:
    zero = _zero(program, wanted)
    array = _to_dense(found, zero)
    if wanted.dtype != array.dtype or wanted.shape != array.shape:
        return f"{array.dtype}{array.shape}, the oracle {wanted.dtype}{wanted.shape}"
    with np.errstate(all="ignore"):
        near = _near(program, array, wanted)
    if near.all():
        return "equal"
    place = tuple(int(k) for k in np.argwhere(~near)[0]) if array.ndim else ()
    return f"{array[place]} at {place}, the oracle {wanted[place]}"


def same(found: Array, wanted: Any) -> Array:
    """Compare elements, NaNs with each other too."""
    return np.asarray((found == wanted) | ((found != found) & (wanted != wanted)))


def _near(program: Program, found: Array, wanted: Array) -> Array:
    equal = same(found, wanted)
    if wanted.dtype.kind == "c":
        equal |= ~np.isfinite(found) & ~np.isfinite(wanted)
    if wanted.dtype.kind in "fc" and program.loose:
        equal |= ~np.isfinite(found) | ~np.isfinite(wanted)
    if wanted.dtype.kind not in "fc":
        return equal
    narrow = any(s.dtype in NARROW for s in program.specs.values())
    near = 2e-3 if wanted.dtype == np.float16 else 1e-4 if narrow else 1e-6
    if program.exact and not narrow and wanted.dtype.kind == "f":
        near = 1e-13
    largest = max(np.abs(wanted[np.isfinite(wanted)]).max(initial=0), 1)
    room = near * np.abs(wanted) + near / 10 * min(program.bound, 1e3 * largest)
    return np.asarray(equal | (np.abs(found - wanted) <= room))


NARROW = ("float32", "complex64", "float16", "int8", "int16", "uint8", "uint16", "bool")
"""Types that functions compute in float32."""


def _zero(program: Program, wanted: Array) -> Any:
    """What scipy.sparse arrays do not store: 0, or the zero of the semiring."""
    name = program.options.get("semiring")
    if name is None:
        return wanted.dtype.type(0)
    return wanted.dtype.type(ADDS[name.split("_")[0]].identity_of(wanted.dtype))


def _to_dense(result: Any, zero: Any) -> Array:
    if isinstance(result, tp.Tensor):
        return result.to_numpy()
    if not sp.issparse(result):
        return np.asarray(result)
    if zero == 0 and result.dtype != np.float16:
        return np.asarray(result.toarray())
    array = np.full(result.shape, zero, result.dtype)
    coordinates, values = _entries(result)
    array[coordinates] = values
    return array


def _entries(result: Any) -> tuple[tuple[Array, ...], Array]:
    """The coordinates and values of a sparse result. SciPy moves no 16-bit numbers."""
    if sp.issparse(result) and result.dtype != np.float16:
        entries = result.tocoo()
        return tuple(entries.coords), entries.data
    places, values = tp.tensor(result).to_coo()
    return tuple(np.asarray(places).T), np.asarray(values)


def _computed(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return error
