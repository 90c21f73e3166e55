"""Random programs for property tests: an expression, and operands of random shapes, formats and
dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import assume
from hypothesis import strategies as st

import taco_py as tp
from taco_py.diagnostics.errors import NotationError
from taco_py.notation.parser import parse_assignment
from taco_py.notation.reduce import insert_reductions
from tests.corpus.data import dense_result
from tests.corpus.formats import (
    MORE_OPERANDS,
    MORE_RESULTS,
    OPERANDS,
    RESULTS,
    store,
)

Array = np.ndarray[Any, Any]
INDICES = "ijkl"
SIZES = (0, 1, 2, 3, 5)
SIGNED = ("int8", "int32", "int64", "float32", "float64", "complex64", "complex128")
DTYPES = ("bool", "uint8", "uint32", "uint64", *SIGNED)
PATTERNS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "zero": lambda random, shape: np.zeros(shape, bool),
    "full": lambda random, shape: np.ones(shape, bool),
    "half": lambda random, shape: random.random(shape) < 0.5,
    "few": lambda random, shape: random.random(shape) < 0.15,
    "one row": lambda random, shape: np.arange(np.prod(shape)).reshape(shape) < np.prod(shape[1:]),
}


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Index notation, its operands as arrays and as they are stored, and the result's format."""

    text: str
    arrays: dict[str, Array]
    stored: dict[str, Any]
    forms: dict[str, str]
    result: str | None

    def __repr__(self) -> str:
        shapes = {name: f"{array.dtype}{array.shape}" for name, array in self.arrays.items()}
        return f"Program({self.text!r}, {shapes}, {self.forms} -> {self.result})"

    def run(self) -> Any:
        return tp.evaluate(self.text, self.stored, format=self.result)

    def expected(self) -> Array:
        return dense_result(self.text, self.arrays)


@dataclass(slots=True)
class _Writer:
    """Draws one expression; remembers the tensors so far with the indices of each use."""

    draw: Any
    target: list[str]
    signed: bool
    uses: dict[str, list[tuple[str, ...]]]

    def expression(self, depth: int, bound: frozenset[str]) -> tuple[str, frozenset[str]]:
        """Text, and the indices in it that no sum of its own binds."""
        kind = self.draw(st.sampled_from(self._kinds(depth)))
        match kind:
            case "access":
                return self._access(bound)
            case "literal":
                return str(self.draw(st.integers(0, 3))), frozenset()
            case "-x":
                text, free = self.expression(depth - 1, bound)
                return f"-({text})", free
            case "sum":
                return self._sum(depth, bound)
        left, free_left = self.expression(depth - 1, bound)
        right, free_right = self.expression(depth - 1, bound)
        return f"({left} {kind} {right})", free_left | free_right

    def _kinds(self, depth: int) -> list[str]:
        if depth == 0:
            return ["access"] * 6 + ["literal"]
        minus = ["-", "-x"] if self.signed else []
        return ["access", "access", "+", "+", "*", "*", "*", "sum", *minus]

    def _sum(self, depth: int, bound: frozenset[str]) -> tuple[str, frozenset[str]]:
        """An explicit sum over an index of the body that may be bound here."""
        index = self.draw(st.sampled_from(INDICES))
        inner = bound | {index}
        text, free = self.expression(depth - 1, inner)
        if index in self.target or index in bound or index not in free:
            return text, free
        return f"sum({index}, {text})", free - {index}

    def _access(self, bound: frozenset[str]) -> tuple[str, frozenset[str]]:
        known = sorted(self.uses)
        new = f"T{len(known)}"
        name = self.draw(st.sampled_from([*known, new, new]))
        order = len(self.uses[name][0]) if name in known else self.draw(st.integers(0, 3))
        indices = tuple(self.draw(st.sampled_from(INDICES)) for _ in range(order))
        self.uses.setdefault(name, []).append(indices)
        return f"{name}[{','.join(indices)}]", frozenset(indices)


@st.composite
def programs(draw: Any, *, dtypes: tuple[str, ...] = ("float64",)) -> Program:
    """A program over tensors of these dtypes; minus signs only where all of them are signed."""
    target = draw(st.lists(st.sampled_from(INDICES), unique=True, max_size=3))
    writer = _Writer(draw, target, set(dtypes) <= set(SIGNED), {})
    text, free = writer.expression(draw(st.integers(1, 3)), frozenset())
    assume(writer.uses)
    assume(_sums_are_nested_apart(f"R[{','.join(target)}] = {text}"))
    kept = [index for index in target if index in free]
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=12, max_size=12))
    shapes = _shapes(writer.uses, sizes)
    arrays, stored, forms = {}, {}, {}
    for place, (name, shape) in enumerate(shapes.items()):
        random = np.random.default_rng(draw(st.integers(0, 9)) + 100 * place)
        dtype = draw(st.sampled_from(dtypes))
        pattern = draw(st.sampled_from(sorted(PATTERNS)))
        arrays[name] = whole_numbers(random, shape, dtype, pattern)
        forms[name] = draw(st.sampled_from(OPERANDS[len(shape)] + MORE_OPERANDS[len(shape)]))
        stored[name] = messy(random, arrays[name], forms[name])
    options = RESULTS[len(kept)] + MORE_RESULTS[len(kept)]
    result = draw(st.sampled_from(options))
    return Program(f"R[{','.join(kept)}] = {text}", arrays, stored, forms, result)


def _sums_are_nested_apart(text: str) -> bool:
    """Whether no sum that the notation leaves unsaid comes around a written one over its index."""
    try:
        insert_reductions(parse_assignment(text))
    except NotationError as error:
        return "a sum over an index of its own" not in error.message
    return True


def _shapes(uses: dict[str, list[tuple[str, ...]]], sizes: list[int]) -> dict[str, tuple[int, ...]]:
    """One size for all indices and modes that must agree: an index ties the modes it is used at."""
    group: dict[object, object] = {}

    def root(member: object) -> object:
        while group.setdefault(member, member) != member:
            member = group[member]
        return member

    for name, index, mode in _modes(uses):
        group[root((name, mode))] = root(index)
    roots = list(dict.fromkeys(root(index) for index in INDICES))
    size_of = dict(zip(roots, sizes, strict=False))
    return {
        name: tuple(size_of[root((name, mode))] for mode in range(len(lists[0])))
        for name, lists in uses.items()
    }


def _modes(uses: dict[str, list[tuple[str, ...]]]) -> Iterator[tuple[str, str, int]]:
    for name, lists in uses.items():
        for indices in lists:
            for mode, index in enumerate(indices):
                yield name, index, mode


def whole_numbers(
    random: np.random.Generator, shape: tuple[int, ...], dtype: str, pattern: str
) -> Array:
    """Small whole numbers: sums and products are exact in every dtype that does not wrap."""
    values = random.integers(1, 4, shape)
    if dtype in SIGNED:
        values = values * random.choice([-1, 1], shape)
    array = (values * PATTERNS[pattern](random, shape)).astype(dtype)
    if array.dtype.kind == "c":
        array = array * np.array(1 + 1j, dtype)
    return np.asarray(array)


def messy(random: np.random.Generator, array: Array, form: str) -> Any:
    """The array in this format; scipy's COO and CSR often get their entries shuffled and split in
    two.
    """
    if form not in ("COO", "CSR") or array.ndim == 0 or random.random() < 0.5:
        return store(array, form)
    coordinates = np.stack(np.nonzero(array))
    values = array[tuple(coordinates)]
    split = random.random(values.size) < 0.3
    zero = np.zeros(int(split.sum()), array.dtype)
    order = random.permutation(values.size + zero.size)
    coordinates = np.concatenate([coordinates, coordinates[:, split]], axis=1)[:, order]
    values = np.concatenate([values, zero + values[split]])[order]
    values = values if array.dtype.kind == "b" else _halved(coordinates, values)
    build: Any = sp.coo_array
    coo = build((values, tuple(coordinates)), shape=array.shape)
    return coo if form == "COO" else unsorted_csr(coo)


def _halved(coordinates: Array, values: Array) -> Array:
    """Where a coordinate occurs twice, the first entry keeps one less and the second has one."""
    _, first, inverse = np.unique(coordinates, axis=1, return_index=True, return_inverse=True)
    again = np.arange(values.size) != first[inverse.reshape(-1)]
    twice = np.bincount(inverse.reshape(-1), minlength=first.size)[inverse.reshape(-1)] > 1
    one = values.dtype.type(1)
    return np.where(again, one, np.where(twice, values - one, values)).astype(values.dtype)


def unsorted_csr(coo: Any) -> Any:
    """CSR with the entries of each row in the order they come, duplicates included."""
    rows, columns = coo.coords
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=coo.shape[0]))])
    arrays = (coo.data[order], columns[order].astype(np.int32), indptr.astype(np.int32))
    return sp.csr_array(arrays, shape=coo.shape)
