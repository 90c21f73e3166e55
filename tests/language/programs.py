"""Random texts of the whole language over random operands, for the dense oracle to compare with.

Functions stand in sums and products, comparisons in where, and reductions around the whole
right-hand side. Values are whole numbers and halves of small size, of which most functions are
exact; others are compared within rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import taco_py as tp
from tests.corpus.formats import store, to_dense
from tests.language.grid import close, difference

SIZES = {"i": (0, 1, 3, 5), "j": (1, 2, 4), "k": (1, 3)}
OPERANDS = {"A": "ij", "B": "ij", "C": "jk", "x": "j", "b": "i"}
FORMATS = {2: ("dense", "CSR", "CSC", "COO", "ss"), 1: ("dense", "s")}
DTYPES = ("float64", "float64", "float32", "int64", "int32", "bool")
ONE = (
    "abs",
    "relu",
    "sign",
    "square",
    "floor",
    "tanh",
    "exp",
    "sin",
    "isnan",
    "not ",
    "-",
    "stored",
)
TWO = ("+", "-", "*", "*", "+", "<", ">", "==", ">=", "and", "or")
CALLED = ("min", "max", "fmin", "hypot", "where")
REDUCTIONS = ("sum", "prod", "min", "max", "any", "all", "count")


@dataclass(frozen=True, slots=True)
class Program:
    """A text and its operands, as arrays and as they are stored."""

    text: str
    arrays: dict[str, np.ndarray[Any, Any]]
    forms: dict[str, str]

    def __repr__(self) -> str:
        shapes = {name: f"{a.dtype}{a.shape} {self.forms[name]}" for name, a in self.arrays.items()}
        return f"Program({self.text!r}, {shapes})"

    @property
    def stored(self) -> dict[str, Any]:
        """The operands in their formats."""
        return {name: store(array, self.forms[name]) for name, array in self.arrays.items()}


@st.composite
def expressions(draw: Any, depth: int) -> str:
    """A text of an expression of operands over i, j and k."""
    kind = draw(st.integers(0, 9))
    if depth == 0 or kind <= 1:
        name = draw(st.sampled_from((*OPERANDS, "2", "0.5")))
        return f"{name}[{','.join(OPERANDS[name])}]" if name in OPERANDS else str(name)
    left = draw(expressions(depth - 1))
    if kind <= 4:
        function = draw(st.sampled_from(ONE))
        if function == "stored":
            return f"stored(A[i,j]) * ({left})"
        return f"({function}({left}))"
    right = draw(expressions(depth - 1))
    if kind <= 7:
        return f"(({left}) {draw(st.sampled_from(TWO))} ({right}))"
    function = draw(st.sampled_from(CALLED))
    if function == "where":
        return f"where({left} > {right}, {left}, {draw(expressions(depth - 1))})"
    return f"{function}({left}, {right})"


@st.composite
def programs(draw: Any, depth: int = 3) -> Program:
    """A text with its operands, all indices of the result among those of the operands used."""
    value = draw(expressions(depth))
    names = [name for name in OPERANDS if f"{name}[" in value]
    indices = sorted({index for name in names for index in OPERANDS[name]})
    kept = [index for index in indices if draw(st.booleans())]
    reduced = [index for index in indices if index not in kept]
    if reduced and draw(st.integers(0, 2)) > 0:
        reduction = draw(st.sampled_from(REDUCTIONS))
        value = f"{reduction}(({', '.join(reduced)}), {value})"
    target = f"y[{','.join(kept)}]" if kept else "y"
    sizes = {index: draw(st.sampled_from(SIZES[index])) for index in "ijk"}
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    arrays, forms = {}, {}
    for name in names:
        shape = tuple(sizes[index] for index in OPERANDS[name])
        dtype = draw(st.sampled_from(DTYPES))
        values = random.integers(-3, 4, shape) / (2 if dtype.startswith("float") else 1)
        arrays[name] = np.where(random.random(shape) < 0.5, values, 0).astype(dtype)
        forms[name] = draw(st.sampled_from(FORMATS[len(shape)]))
    return Program(f"{target} = {value}", arrays, forms)


def outcome(program: Program) -> str:
    """ "equal", "refused" where evaluate and the oracle raise the same, else what differs."""
    stored = program.stored
    wanted, found = (
        _computed(lambda: tp.evaluate_dense(program.text, **stored)),
        _computed(lambda: to_dense(tp.evaluate(program.text, **stored))),
    )
    if isinstance(wanted, Exception) or isinstance(found, Exception):
        ours = isinstance(found, tp.TacoError) and not isinstance(found, tp.InternalError)
        if ours and type(wanted) is type(found):
            return "refused"
        return f"the oracle: {wanted!r:.300}, evaluate: {found!r:.300}"
    if wanted.dtype != found.dtype or wanted.shape != found.shape:
        return f"{found.dtype}{found.shape}, the oracle {wanted.dtype}{wanted.shape}"
    if close(found, wanted) or np.allclose(found, wanted, rtol=1e-4, atol=1e-5, equal_nan=True):
        return "equal"
    return difference(found, wanted, "the oracle")


def _computed(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return error
