"""Random texts of several statements, with operands in random formats and dtypes.

Values are small powers of two and every divisor is one of the operands, so that results are exact
in whatever order terms are added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from codegen.records import dataclass
from tests.corpus.formats import MORE_OPERANDS, OPERANDS, store

SIZE = 4
ORDERS = {"A": 2, "B": 2, "x": 1, "z": 1, "s": 0}
DTYPES = ("float64", "float32", "int8", "int64", "complex128", "bool")
FLOATS = ("float64", "float32")


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A text, its operands, and the names that are wanted."""

    text: str
    operands: dict[str, Any]
    outputs: tuple[str, ...]


@st.composite
def statement_lists(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES) -> Drawn:
    """Two to five statements, each of which reads operands and earlier targets."""
    orders = dict(ORDERS)
    assigned: list[str] = []
    lines: list[str] = []
    for number in range(draw(st.integers(2, 5))):
        value, free = _value(draw, orders)
        kept = draw(st.permutations([i for i in "ijk" if i in free and draw(st.booleans())]))
        added = [name for name in assigned if orders[name] == len(kept)]
        added = [name for name in added if f"{name}[" not in value and f" {name} " not in value]
        if added and draw(st.integers(0, 3)) == 0:
            name, operator = draw(st.sampled_from(added)), "+="
        else:
            name, operator = f"t{number}", "="
            assigned.append(name)
        lines.append(f"{_access(name, kept)} {operator} {value}")
        orders[name] = len(kept)
    text = draw(st.sampled_from(("; ", "\n", ";\n"))).join(lines)
    outputs = draw(st.lists(st.sampled_from(assigned), min_size=1, unique=True))
    read = {name for name in ORDERS if any(c.split("[")[0] == name for c in _words(text))}
    return Drawn(
        text, {name: _operand(draw, name, dtypes) for name in sorted(read)}, tuple(outputs)
    )


def _words(text: str) -> list[str]:
    return text.replace(";", " ").replace("\n", " ").split()


def _access(name: str, indices: list[str]) -> str:
    return f"{name}[{','.join(indices)}]" if indices else name


def _value(draw: st.DrawFn, orders: dict[str, int]) -> tuple[str, set[str]]:
    """An expression of one to three leaves, and its indices."""
    used: set[str] = set()
    names = sorted(orders)

    def leaf(among: list[str]) -> str:
        name = draw(st.sampled_from(among))
        indices = [draw(st.sampled_from("ijk")) for _ in range(orders[name])]
        used.update(indices)
        return _access(name, indices)

    parts = [leaf(names)]
    for _ in range(draw(st.integers(0, 2))):
        operator = draw(st.sampled_from("+-**/"))
        among = ["z"] if operator == "/" else names
        number = draw(st.sampled_from((None, None, None, "2", "0.5")))
        parts += [operator, leaf(among) if number is None or operator == "/" else number]
    return " ".join(parts), used


def _operand(draw: st.DrawFn, name: str, dtypes: tuple[str, ...]) -> Any:
    order = ORDERS[name]
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    values = np.array([1, 2] if dtype.kind == "b" else [-2, -1, 1, 2])
    array = rng.choice(values, (SIZE,) * order).astype(dtype)
    if name == "z":
        return array  # a divisor, nowhere zero
    if order:
        array[rng.random((SIZE,) * order) < draw(st.sampled_from((0.3, 0.7)))] = 0
    return store(array, draw(st.sampled_from((*OPERANDS[order], *MORE_OPERANDS[order]))))
