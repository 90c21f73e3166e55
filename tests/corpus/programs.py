"""Random programs for property tests: an expression, and operands of random shapes, formats and
dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import assume
from hypothesis import strategies as st

import taco_py as tp
from taco_py.data.storage.pack import unpack
from taco_py.data.tensors.tensor import as_data
from taco_py.language.diagnostics.errors import NotationError, OperandTypeError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import result_dtype
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.rewrites.reduce import insert_reductions
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
WRAPPING = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
DIVISORS = (1, 2, 4, -2)  # quotients by powers of two are exact
PATTERNS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "zero": lambda random, shape: np.zeros(shape, bool),
    "full": lambda random, shape: np.ones(shape, bool),
    "half": lambda random, shape: random.random(shape) < 0.5,
    "few": lambda random, shape: random.random(shape) < 0.15,
    "one row": lambda random, shape: np.arange(np.prod(shape)).reshape(shape) < np.prod(shape[1:]),
}


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Index notation, its operands as arrays and as they are stored, and the result's format.

    start   what the left-hand side holds before `+=`, None where it begins from nothing
    static  sizes to compile in
    """

    text: str
    arrays: dict[str, Array]
    stored: dict[str, Any]
    forms: dict[str, str]
    result: str | None
    start: Array | None = None
    static: dict[str, int] | None = None

    def __repr__(self) -> str:
        shapes = {name: f"{array.dtype}{array.shape}" for name, array in self.arrays.items()}
        start = "" if self.start is None else f", start {self.start.dtype}"
        return (
            f"Program({self.text!r}, {shapes}, {self.forms} -> {self.result}{start}, {self.static})"
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each index."""
        uses = accesses(parse_assignment(self.text).value)
        return {
            i: n for a in uses for i, n in zip(a.indices, self.arrays[a.tensor].shape, strict=True)
        }

    def run(self) -> Any:
        operands = self.stored if self.start is None else {**self.stored, "R": self.start.copy()}
        return tp.evaluate(self.text, operands, format=self.result, static=self.static)

    def expected(self) -> Array:
        present = {name: stored_places(operand) for name, operand in self.stored.items()}
        return dense_result(self.text, self.arrays, self.start, present)


def stored_places(operand: Any) -> Array:
    """Where an operand stores something: everywhere in an array."""
    if isinstance(operand, tp.Tensor):
        coordinates, _ = unpack(as_data(operand))
        found = np.zeros(operand.shape, bool)
        found[tuple(coordinates)] = True
        return found
    if not sp.issparse(operand):
        return np.ones(np.shape(operand), bool)
    found = np.zeros(operand.shape, bool)
    found[operand.tocoo().coords] = True
    return found


@dataclass(slots=True)
class _Writer:
    """Draws one expression; remembers the tensors so far with the indices of each use.

    indices   what accesses are drawn from
    minus     whether there are differences
    quotient  "" for none; "divisors": by tensors D0, D1, … that hold powers of two, so that any
              rewriting of sums gives the same; "zeros": by anything, for expressions without sums
    """

    draw: Any
    target: list[str]
    indices: str
    minus: bool
    quotient: str
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
        if kind == "/":
            right, free_right = self._divisor()
        else:
            right, free_right = self.expression(depth - 1, bound)
        return f"({left} {kind} {right})", free_left | free_right

    def _kinds(self, depth: int) -> list[str]:
        if depth == 0:
            return ["access"] * 6 + ["literal"]
        minus = ["-", "-x"] if self.minus else []
        quotients = ["/", "/"] if self.quotient else []
        sums = [] if self.quotient == "zeros" else ["sum"]
        return ["access", "access", "+", "+", "*", "*", "*", *sums, *minus, *quotients]

    def _sum(self, depth: int, bound: frozenset[str]) -> tuple[str, frozenset[str]]:
        """An explicit sum over an index of the body that may be bound here."""
        index = self.draw(st.sampled_from(self.indices))
        inner = bound | {index}
        text, free = self.expression(depth - 1, inner)
        if index in self.target or index in bound or index not in free:
            return text, free
        return f"sum({index}, {text})", free - {index}

    def _divisor(self) -> tuple[str, frozenset[str]]:
        if self.draw(st.integers(0, 9)) == 0:
            return str(self.draw(st.sampled_from((1, 2, 4)))), frozenset()
        if self.quotient == "divisors":
            return self._new("D")
        left, free_left = self._access(frozenset())
        both = self.draw(st.sampled_from(("", "+", "*")))
        if not both:
            return left, free_left
        right, free_right = self._access(frozenset())
        return f"({left} {both} {right})", free_left | free_right

    def _access(self, bound: frozenset[str]) -> tuple[str, frozenset[str]]:
        known = sorted(name for name in self.uses if name[0] == "T")
        name = self.draw(st.sampled_from([*known, "", ""]))
        return self._use(name, len(self.uses[name][0])) if name else self._new("T")

    def _new(self, letter: str) -> tuple[str, frozenset[str]]:
        order = self.draw(st.sampled_from((0, 1, 1, 2, 2, 2, 3, 3, 4))) if self.indices else 0
        return self._use(f"{letter}{len(self.uses)}", order)

    def _use(self, name: str, order: int) -> tuple[str, frozenset[str]]:
        indices = tuple(self.draw(st.sampled_from(self.indices)) for _ in range(order))
        self.uses.setdefault(name, []).append(indices)
        return f"{name}[{','.join(indices)}]", frozenset(indices)


@st.composite
def programs(
    draw: Any, *, dtypes: tuple[str, ...] = ("float64",), extreme: bool = False, depth: int = 3
) -> Program:
    """A program over tensors of these dtypes.

    extreme  the tensors hold integers near their dtypes' limits, so that sums and products wrap
    depth    how deep expressions are nested at most
    """
    quotient = "" if extreme else draw(st.sampled_from(("", "", "divisors", "zeros")))
    target = draw(st.lists(st.sampled_from(INDICES), unique=True, max_size=4))
    indices = "".join(target) if quotient == "zeros" else INDICES
    writer = _Writer(draw, target, indices, "bool" not in dtypes, quotient, {})
    text, free = writer.expression(draw(st.integers(1, depth)), frozenset())
    assume(writer.uses)
    kept = [index for index in target if index in free]
    sign = draw(st.sampled_from(("=", "=", "=", "+=")))
    text = f"R[{','.join(kept)}] {sign} {text}"
    assume(_sums_are_nested_apart(text))
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=20, max_size=20))
    shapes = _shapes(writer.uses, sizes)
    arrays, stored, forms = {}, {}, {}
    for place, (name, shape) in enumerate(shapes.items()):
        random = np.random.default_rng(draw(st.integers(0, 9)) + 100 * place)
        dtype = draw(st.sampled_from(dtypes))
        pattern = draw(st.sampled_from(sorted(PATTERNS)))
        if name[0] == "D":
            arrays[name] = divisors(random, shape, dtype)
        elif extreme:
            arrays[name] = near_limits(random, shape, dtype, pattern)
        else:
            arrays[name] = whole_numbers(random, shape, dtype, pattern)
        forms[name] = draw(st.sampled_from(OPERANDS[len(shape)] + MORE_OPERANDS[len(shape)]))
        stored[name] = messy(random, arrays[name], forms[name])
    options = RESULTS[len(kept)] + MORE_RESULTS[len(kept)]
    result = draw(st.sampled_from(options))
    size_of = {
        index: size
        for name, uses in writer.uses.items()
        for use in uses
        for index, size in zip(use, shapes[name], strict=True)
    }
    assume(_defined(text, arrays))
    start = None
    if sign == "+=" and draw(st.booleans()):
        shape = tuple(size_of[index] for index in kept)
        random = np.random.default_rng(7)
        start = whole_numbers(random, shape, _dtype_of(text, arrays).name, "full")
    static = None
    if size_of and draw(st.integers(0, 4)) == 0:
        index = draw(st.sampled_from(sorted(size_of)))
        static = {index: size_of[index]}
    return Program(text, arrays, stored, forms, result, start, static)


def _dtype_of(text: str, arrays: Mapping[str, Array]) -> np.dtype[Any]:
    dtypes = {name: array.dtype for name, array in arrays.items()}
    return result_dtype(parse_assignment(text), dtypes)


def _defined(text: str, arrays: Mapping[str, Array]) -> bool:
    """Whether NumPy has the operators for these dtypes."""
    try:
        _dtype_of(text, arrays)
    except OperandTypeError:
        return False
    return True


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


def near_limits(
    random: np.random.Generator, shape: tuple[int, ...], dtype: str, pattern: str
) -> Array:
    """Integers within two of either limit of their dtype, or small ones."""
    limits = np.iinfo(dtype)
    values = [limits.min, limits.min + 1, limits.max - 1, limits.max, 1, 2, 3]
    chosen = np.array(values, dtype)[random.integers(0, len(values), shape)]
    return np.where(PATTERNS[pattern](random, shape), chosen, chosen.dtype.type(0))


def divisors(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Powers of two, none of them zero."""
    options = np.abs(DIVISORS) if dtype not in SIGNED else np.array(DIVISORS)
    return np.asarray(random.choice(options, shape)).astype(dtype)


def messy(random: np.random.Generator, array: Array, form: str) -> Any:
    """The array in this format; scipy's COO and CSR often get their entries shuffled and split in
    two.
    """
    if form not in ("COO", "CSR") or array.ndim == 0 or random.random() < 0.5:
        return store(array, form)
    return shuffled(random, array, form)


def shuffled(random: np.random.Generator, array: Array, form: str) -> Any:
    """The array as scipy's COO or CSR, its entries shuffled and some of them split in two."""
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
