"""The features that meet each other: each makes another call of a call, or leaves it alone.

A new feature is an entry of `FEATURES`: it then meets every other one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from tests.pairs.calls import SIZES, Call
from tests.prices.test_forest import wide_model

Change = Callable[[Call, np.random.Generator], Call | None]
"""Another call, None where the feature has no place in it."""


PRICE = wide_model(1)
"""A price of trees that were drawn: it likes plans that the analytic one does not."""


@dataclass(frozen=True)
class Feature:
    """kind  features of one kind exclude each other"""

    kind: str
    name: str
    change: Change


def _option(**options: Any) -> Change:
    """A change of options that a call does not have yet."""

    def change(call: Call, _: np.random.Generator) -> Call | None:
        return None if options.keys() & call.options.keys() else call.with_options(**options)

    return change


def _stored(name: str, storage: str) -> Change:
    def change(call: Call, _: np.random.Generator) -> Call | None:
        if name not in call.values or call.values[name].ndim != 2:
            return None
        return replace(call, storage={**call.storage, name: storage})

    return change


def _typed(dtype: str) -> Change:
    def change(call: Call, _: np.random.Generator) -> Call | None:
        positions = {"p"}
        if dtype == "float16" and any("scipy" in each for each in call.storage.values()):
            return None  # which SciPy's arrays have not
        typed = {
            name: each if name in positions else each.astype(dtype)
            for name, each in call.values.items()
        }
        return replace(call, values=typed)

    return change


def _filled(call: Call, _: np.random.Generator) -> Call | None:
    """A of a fill value: what it does not store is 2."""
    if call.values["A"].ndim != 2 or call.fill:
        return None
    absent = call.values["A"] == 0
    values = np.where(absent, call.values["A"].dtype.type(2), call.values["A"])
    storage = call.storage.get("A", "ds")
    storage = storage if not storage.startswith(("scipy", "fortran", "numpy")) else "ds"
    return replace(call.with_values(A=values), storage={**call.storage, "A": storage}, fill=2.0)


def _masked(by: str) -> Change:
    def change(call: Call, rng: np.random.Generator) -> Call | None:
        shape = tuple(SIZES[index] for index in call.modes if index in SIZES)
        if "mask" in call.options or len(shape) != len(call.modes) or not shape:
            return None
        places = rng.random(shape) < 0.5
        if by == "dense":
            return call.with_options(mask=places)
        if len(shape) != 2:
            return None
        mask = sp.csr_array(places.astype(float))
        return call.with_options(mask=tp.complement(mask) if by == "complement" else mask)

    return change


def _shifted(call: Call, rng: np.random.Generator) -> Call | None:
    """x[j] → x[j+1] of a longer x."""
    if "x[j]" not in call.last:
        return None
    x = call.values["x"]
    longer = np.concatenate([rng.integers(1, 4, 1).astype(x.dtype), x])
    return call.with_last(call.last.replace("x[j]", "x[j+1]")).with_values(x=longer)


def _gathered(call: Call, rng: np.random.Generator) -> Call | None:
    """A[i,j] → A[p[i],j]"""
    if "A[i,j]" not in call.last or "p" in call.values:
        return None
    places = rng.integers(0, SIZES["i"], SIZES["i"])
    return call.with_last(call.last.replace("A[i,j]", "A[p[i],j]")).with_values(p=places)


def _several(call: Call, _: np.random.Generator) -> Call | None:
    """An operand that a statement before makes of another."""
    for name, indices in (("x", "j"), ("B", "j,k"), ("D", "i,j")):
        access = f"{name}[{indices}]"
        if access in call.last and len(call.statements) == 1:
            text = call.last.replace(access, f"t[{indices}]")
            return _by_name(call.with_last(text, f"t[{indices}] = {access} * 2"))
    return None


def _by_name(call: Call) -> Call:
    """The call of several statements with the schedule and the path that it has by name."""
    options = {o: call.options[o] for o in ("schedule", "path") if o in call.options}
    if len(call.statements) == 1 or any(isinstance(each, dict) for each in options.values()):
        return call
    name = call.target.split("[")[0]
    return call.with_options(**{option: {name: value} for option, value in options.items()})


def _added_to(call: Call, rng: np.random.Generator) -> Call | None:
    """= → +="""
    shape = tuple(SIZES[index] for index in call.modes if index in SIZES)
    if " += " in call.last or len(shape) != len(call.modes):
        return None
    name = re.split(r"\W", call.target)[0]
    begin = rng.integers(1, 4, shape).astype(call.values["A"].dtype)
    return call.with_last(call.last.replace(" = ", " += ", 1)).with_values(**{name: begin})


def _written_out(call: Call, _: np.random.Generator) -> Call | None:
    return None if call.out or not call.modes else replace(call, out=True)


def _along(call: Call, _: np.random.Generator) -> Call | None:
    if "B[j,k] * z[k]" not in call.last:
        return None
    return _by_name(call.with_options(path=[(1, 2), (0, 1)]))


def _scheduled(text: str) -> Change:
    option = _option(schedule=text)

    def change(call: Call, rng: np.random.Generator) -> Call | None:
        changed = option(call, rng)
        return None if changed is None else _by_name(changed)

    return change


def _with_verb(verb: str) -> Change:
    def change(call: Call, _: np.random.Generator) -> Call | None:
        return replace(call, verb=verb) if call.verb == "evaluate" else None

    return change


FORMATS = ("ds", "ss", "uq", "ds:1,0", "dd:1,0", "BSR((2,2))", "DIA", "ELL", "hh", "sell(2)")
FEATURES: tuple[Feature, ...] = (
    Feature("semiring", "min_plus", _option(semiring="min_plus")),
    Feature("semiring", "max_times", _option(semiring="max_times")),
    Feature("mask", "mask csr", _masked("pattern")),
    Feature("mask", "mask dense", _masked("dense")),
    Feature("mask", "complement", _masked("complement")),
    Feature("fill", "fill value", _filled),
    Feature("subscripts", "shift", _shifted),
    Feature("subscripts", "gather", _gathered),
    Feature("several", "several statements", _several),
    *(Feature("format", f"A {form}", _stored("A", form)) for form in FORMATS),
    Feature("format", "A csr_array", _stored("A", "scipy.csr_array")),
    Feature("format", "A bsr_array", _stored("A", "scipy.bsr_array")),
    Feature("format", "A coo_matrix", _stored("A", "scipy.coo_matrix")),
    Feature("other format", "B csr_array", _stored("B", "scipy.csr_array")),
    Feature("other format", "D fortran", _stored("D", "fortran")),
    Feature("type", "int8", _typed("int8")),
    Feature("type", "float16", _typed("float16")),
    Feature("type", "float32", _typed("float32")),
    Feature("type", "complex64", _typed("complex64")),
    Feature("type", "bool", _typed("bool")),
    Feature("dtype=", "dtype float64", _option(dtype="float64")),
    Feature("out=", "out", _written_out),
    Feature("+=", "+=", _added_to),
    Feature("schedule", "serial", _scheduled("serial()")),
    Feature("schedule", "reorder", _scheduled("reorder(j,i)")),
    Feature("schedule", "split", _scheduled("split(i,i0,i1,2)")),
    Feature("path", "path", _along),
    Feature("target", "cuda", _option(target="cuda-emulated")),
    Feature("threads", "threads", _option(threads=2)),
    Feature("memory limit", "memory limit", _option(memory_limit="1GB")),
    Feature("price", "price", _option(price=PRICE)),
    Feature("static", "static", _option(static={"j": SIZES["j"]})),
    Feature("format=", "format dense", lambda c, r: _asked(c, "d")),
    Feature("format=", "format sparse", lambda c, r: _asked(c, "s")),
    Feature("verb", "trace", _with_verb("trace")),
    Feature("verb", "gradient", _with_verb("gradient")),
    Feature("verb", "tune", _with_verb("tune")),
    Feature("verb", "compile", _with_verb("compile")),
    Feature("verb", "pickle", _with_verb("pickle")),
    Feature("verb", "export", _with_verb("export")),
    Feature("verb", "explain", _with_verb("explain")),
    Feature("verb", "twice", _with_verb("twice")),
)
"""Every feature. Those of one kind exclude each other."""


def _asked(call: Call, letter: str) -> Call | None:
    """A call that asks for a result of dense or compressed levels."""
    if "format" in call.options or not call.modes:
        return None
    return call.with_options(format=letter * len(call.modes))


def applied(call: Call, features: tuple[Feature, ...], rng: np.random.Generator) -> Call | None:
    """The call with features in the order of the table; None where one has no place in it."""
    for feature in sorted(features, key=FEATURES.index):
        changed = feature.change(call, rng)
        if changed is None:
            return None
        call = replace(changed, features=(*call.features, feature.name))
    return call
