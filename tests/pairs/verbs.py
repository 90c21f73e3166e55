"""What can be asked of a call: each verb gives the call's value in its own way."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from tests.pairs.calls import Call

BEFORE = 7
"""What an array for a result holds before the call."""
Verb = Callable[[Call], Any]


class NotOfThisVerbError(Exception):
    """Raised where a verb has none of the call's options, so that nothing is asked."""


def _evaluate(call: Call) -> Any:
    options = dict(call.options)
    if call.out:
        options["out"] = out = array_for(call)
        result = tp.evaluate(call.text, call.operands(), **options)
        assert result is out, "the result is not the array that was passed"
        return result
    return tp.evaluate(call.text, call.operands(), **options)


def _twice(call: Call) -> Any:
    """The value of the second call, which may take a fast path; equal to that of the first."""
    first, second = _evaluate(call), _evaluate(call)
    assert np.array_equal(dense(first), dense(second), equal_nan=True), "two calls differ"
    return second


def _explain(call: Call) -> Any:
    assert tp.explain(call.text, call.operands(), **call.options)
    return _evaluate(call)


def _kernel(call: Call) -> Any:
    options = _only(call, "compile")
    formats = call.operands()
    if (form := options.pop("format", None)) is not None:
        formats[call.target.split("[")[0]] = form
    return tp.compile(call.text, formats, **options)


def _called(kernel: Any, call: Call) -> Any:
    if call.out:
        return kernel(**_passed(call), out=array_for(call))
    return kernel(**_passed(call))


def _passed(call: Call) -> dict[str, Any]:
    """The operands of a kernel: the mask, and what is added to, which has the result's format."""
    operands, mask = call.operands(), call.options.get("mask")
    form, name = call.options.get("format"), call.target.split("[")[0]
    if name in operands and form is not None:
        operands[name] = tp.tensor(operands[name], format=form)
    return operands if mask is None else {**operands, "mask": getattr(mask, "array", mask)}


def _compile(call: Call) -> Any:
    return _called(_kernel(call), call)


def _pickle(call: Call) -> Any:
    return _called(pickle.loads(pickle.dumps(_kernel(call))), call)


def _export(call: Call) -> Any:
    kernel = _kernel(call)
    with tempfile.TemporaryDirectory() as folder:
        files = kernel.export(folder, _passed(call))
        assert files and all(file.read_text() for file in files)
    return _called(kernel, call)


def _trace(call: Call) -> Any:
    if call.out:
        raise NotOfThisVerbError("a traced function returns its result")
    names = tuple(call.values)

    def traced(*arrays: Any) -> Any:
        return tp.evaluate(call.text, dict(zip(names, arrays, strict=True)), **call.options)

    return tp.fuse(traced)(*call.operands().values())


def _tune(call: Call) -> Any:
    """The value by the plan that the store has of the call."""
    options = _only(call, "tune")
    with tp.TuningStore() as store, tp.tuning_store(store):
        tp.tune(call.text, call.operands(), trials=1, seconds=2, store=store, **options)
        return _evaluate(replace(call, options={**call.options, "schedule": "tuned"}))


def _gradient(call: Call) -> Any:
    """The derivatives of the sum of all elements by each operand, put side by side."""
    wrt = differentiated(call)
    pullback = tp.vjp(call.text, call.operands(), wrt=wrt, **_only(call, "vjp"))
    return [dense(each) for each in pullback(np.ones_like(oracle(call)))]


VERBS: Mapping[str, Verb] = MappingProxyType({
    "evaluate": _evaluate, "twice": _twice, "explain": _explain, "compile": _compile,
    "pickle": _pickle, "export": _export, "trace": _trace, "tune": _tune, "gradient": _gradient,
})  # fmt: skip
_OPTIONS = {
    "compile": ("schedule", "threads", "static", "semiring", "mask", "target", "memory_limit",
                "format"),
    "tune": ("format", "dtype", "threads", "static", "semiring", "mask", "price"),
    "vjp": ("threads", "memory_limit", "mask"),
}  # fmt: skip
"""The options that functions beside `tp.evaluate` have."""


def _only(call: Call, function: str) -> dict[str, Any]:
    """The call's options, where the function has them all."""
    others = call.options.keys() - set(_OPTIONS[function])
    if others:
        raise NotOfThisVerbError(f"{function} has no {', '.join(sorted(others))}")
    return dict(call.options)


# ---------------------------------------------------------------- the right values


def zero_of(call: Call, dtype: np.dtype[Any]) -> Any:
    """The zero of a call's semiring in a type: what its sparse results do not store."""
    semiring = call.options.get("semiring")
    if semiring is None or dtype.kind == "c":
        return dtype.type(0)
    least = semiring == "max_times"
    if dtype.kind == "f":
        return dtype.type(-np.inf if least else np.inf)
    if dtype.kind == "b":
        return np.bool_(not least)
    return np.iinfo(dtype).min if least else np.iinfo(dtype).max


def dense(value: Any, zero: Any = 0) -> Any:
    """A result as an array.

    zero  what SciPy's arrays do not store, which have no fill value
    """
    if isinstance(value, sp.sparray | sp.spmatrix):
        listed = value.tocoo()
        array = np.full(value.shape, zero, listed.dtype)
        array[listed.coords] = listed.data
        return array
    return value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)


def wanted(call: Call) -> Any:
    """What a call's verb should give."""
    if call.verb == "gradient":
        return [_difference(call, name) for name in differentiated(call)]
    value = oracle(call)
    if call.out and "mask" in call.options and "+=" not in call.features:
        return np.where(allowed(call.options["mask"]), value, array_for(call))
    return value


def oracle(call: Call) -> Any:
    """The value of a call by NumPy alone."""
    options = {n: v for n, v in call.options.items() if n in ("semiring", "mask")}
    if (dtype := call.options.get("dtype")) is not None:
        places = {"p"}
        values = {n: v if n in places else v.astype(dtype) for n, v in call.values.items()}
        call = replace(call, values=values)
    return np.asarray(tp.evaluate_dense(call.text, call.operands(), **options))


def allowed(mask: Any) -> Any:
    """Where a mask lets a result be computed."""
    array = getattr(mask, "array", mask)
    places = dense(array) != 0
    return ~places if getattr(mask, "complement", False) else places


def differentiated(call: Call) -> tuple[str, ...]:
    """The operands of real numbers, by which a call is differentiated."""
    if "semiring" in call.options or call.out:
        raise NotOfThisVerbError("sums and products of numbers alone are compared")
    begun = call.target.split("[")[0]
    names = tuple(n for n, v in call.values.items() if v.dtype.kind == "f" and n != begun)
    if not names or any(call.values[name].dtype == np.float16 for name in names):
        raise NotOfThisVerbError("only 32 and 64 bits are differentiated")
    return names


def _difference(call: Call, name: str) -> Any:
    """The derivative by an operand of which no product has two factors: exact differences."""
    values, begin = call.values[name], oracle(call).sum(dtype=float)
    result = np.zeros(values.shape)
    indices = ",".join("abc"[: values.ndim])
    text = f"P[{indices}] = stored({name}[{indices}])" if values.ndim else f"P = stored({name})"
    stored = np.asarray(tp.evaluate_dense(text, {name: call.operands()[name]}))
    for place in zip(*np.nonzero(stored), strict=True):
        more = values.copy()
        more[place] += 4  # no element that was stored becomes one that is not
        result[place] = (oracle(call.with_values(**{name: more})).sum(dtype=float) - begin) / 4
    return result


def array_for(call: Call) -> Any:
    """An array for the result, of the type that the call gives."""
    result = np.asarray(tp.evaluate_dense(call.text, call.operands()))
    dtype = call.options.get("dtype") or result.dtype
    if "dtype" not in call.options and call.values["A"].dtype == np.float16:
        dtype = np.dtype(np.float16)
    return np.full(result.shape, BEFORE, dtype)
