"""Each call takes the options that the table says, by their effect, and refuses all others."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.diagnostics.option_table import CALLS

x = np.arange(4.0)
MASK = np.array([1, 0, 1, 0.0])
TEXT, SEVERAL = "y[i] = x[i] * x[i]", "m[i] = x[i] * x[i]; y[i] = m[i] * m[i]"
PLACES, BLOCKS = np.arange(4), sp.bsr_array(np.eye(4), blocksize=(2, 2))

VALUES: dict[str, Any] = {
    "format": "d", "out": np.zeros(4), "dtype": "float64", "casting": "unsafe", "schedule": "auto",
    "threads": 1, "static": {"i": 4}, "libraries": False, "schedule_budget": 1.0,
    "forbid": ("fuse_temporary",), "allow": ("cancellation",), "path": [(0, 1)], "outputs": "y",
    "border": "fill", "shape": 4, "semiring": "max_times", "mask": MASK, "replace": True,
    "target": "c", "memory_limit": "1GB", "optimize": "greedy", "order": "C",
    "initial": np.zeros(4), "stored": {}, "trials": 1, "seconds": 0.01, "search": "random",
    "seed": 1, "progress": False, "frontier_budget": 0.0, "scope": "all", "dtypes": "float64",
    "index_dtype": "int32", "wrt": "x", "in_place": True, "value": True, "backends": ("blas",),
    "regions": None, "optimizer": "sgd", "besides": x, "price": "analytic",
}  # fmt: skip
"""A value of each option of any call, and of an operand that no text reads."""

NEEDS: dict[str, dict[str, Any]] = {"replace": {"mask": MASK, "out": np.zeros(4)}}
"""Other options that one has a meaning with."""

Door = Callable[..., Any]


def _tune(**options: Any) -> Any:
    usual = {"trials": 1, "seconds": 0.01, "progress": False}
    with tempfile.TemporaryDirectory() as folder:
        return tp.tune(TEXT, x=x, **{**usual, "store": f"{folder}/s.json", **options})


DOORS: dict[str, tuple[str, Door, tuple[str, ...]]] = {
    "evaluate": ("evaluate", lambda **o: tp.evaluate(TEXT, x=x, **o), ()),
    "explain": ("explain", lambda **o: tp.explain(TEXT, x=x, **o), ("optimize",)),
    "explain of subscripts": (
        "explain", lambda **o: tp.explain("i,i->i", x, x, **o),
        ("allow", "path", "outputs", "border", "shape"),
    ),
    "einsum": ("einsum", lambda **o: tp.einsum("i,i->i", x, x, **o), ()),
    "evaluate_dense": ("evaluate_dense", lambda **o: tp.evaluate_dense(TEXT, x=x, **o), ()),
    "compile": (
        "compile", lambda **o: tp.compile(TEXT, x="d", **{**o, **_as_format(o)}), (),
    ),
    "vjp": ("vjp", lambda **o: tp.vjp(TEXT, x=x, **o)(np.ones(4)), ()),
    "jvp": ("jvp", lambda **o: tp.jvp(TEXT, x=x, **o)(x=np.ones(4)), ()),
    "frontier": ("frontier", lambda **o: tp.frontier(TEXT, x="d", **{**o, **_as_format(o)}), ()),
    "tune": ("tune", _tune, ()),
    "kernel": ("a kernel's call", lambda **o: tp.compile(TEXT, x="d")(x=x, **o), ()),
    "kernel of several": (
        "a kernel's call", lambda **o: tp.compile(SEVERAL, x="d", outputs="y")(x=x, **o), ()
    ),
    "kernel of subscripts": (
        "a kernel's call",
        lambda **o: tp.compile(
            "y[i] = x[i] * x[p[i]]", x="d", p="d", dtypes={"p": "int64"}
        )(x=x, p=PLACES, **o),
        (),
    ),
    "kernel in blocks": (
        "a kernel's call",
        lambda **o: tp.compile("y[i] = A[i,j] * x[j]", A=tp.BSR((2, 2)), x="d")(
            A=BLOCKS, x=x, **o
        ),
        (),
    ),
    "evaluate several": (
        "evaluate", lambda **o: tp.evaluate(SEVERAL, x=x, **o),
        ("path", "shape"),
    ),
    "compile several": (
        "compile", lambda **o: tp.compile(SEVERAL, x="d", **{**o, **_as_format(o)}),
        ("shape", "replace"),
    ),
    "train_step": (
        "train_step",
        lambda **o: tp.train_step(lambda x: (x * x).sum(), **{"optimizer": "sgd", **o}), (),
    ),
    "fuse": ("fuse", lambda **o: tp.fuse(lambda x: x * x, **o)(x), ()),
    "lazy": ("lazy", lambda **o: tp.lazy(**o), ()),
    "grad": ("grad", lambda **o: tp.grad(lambda x: (x * x).sum(), **{"wrt": "x", **o})(x), ()),
    "value_and_grad": (
        "value_and_grad",
        lambda **o: tp.value_and_grad(lambda x: (x * x).sum(), **{"wrt": "x", **o})(x), (),
    ),
}  # fmt: skip
"""Calls: whose options, the call, and which of these mean nothing for it, and are refused."""

UNUSED = {("vjp", "shape"), ("jvp", "shape"), ("evaluate", "dtype")}
"""What a call takes for other texts: shapes of what is scattered to, or is beyond a border."""


def _as_format(options: dict[str, Any]) -> dict[str, Any]:
    """What `compile` takes for a mask: its format."""
    return {"mask": "d"} if "mask" in options else {}


@pytest.mark.parametrize("door", DOORS)
def test_options_are_taken_or_refused(door: str) -> None:
    name, call, without = DOORS[door]
    for option, value in VALUES.items():
        takes = option in CALLS[name] and option not in without
        if takes and name == "tune":
            continue  # each is a search, which the tests of tuning have
        needs = {k: v for k, v in NEEDS.get(option, {}).items() if k in CALLS[name]}
        said = {**(needs if takes else {}), option: value}
        if takes and (name, option) not in UNUSED:
            call(**said)
        elif not takes:
            with pytest.raises((tp.TacoError, TypeError)) as caught:
                call(**said)
            assert not isinstance(caught.value, tp.InternalError)
            assert option in str(caught.value), (door, option, str(caught.value))


@pytest.mark.parametrize("name", [name for name in CALLS if hasattr(tp, name)])
def test_the_table_is_what_calls_have(name: str) -> None:
    found = inspect.signature(getattr(tp, name)).parameters.values()
    options = {
        each.name
        for each in found
        if each.kind is each.KEYWORD_ONLY or each.default is not each.empty
    }
    assert options - {"operands", "formats", "function"} == CALLS[name] - {"wrt"} | (
        {"wrt"} & options
    )
