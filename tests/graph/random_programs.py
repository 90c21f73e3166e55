"""Random programs in NumPy style, traced and computed as a whole, against NumPy.

    python -m tests.graph.random_programs 200 --seed 7
    python -m tests.graph.random_programs 200 --backends jsonvm blas
    python -m tests.graph.random_programs 200 --narrow --optimize none
    python -m tests.graph.random_programs 200 --price

A program is text, made line by line beside its values in NumPy, so that every line is legal and no
number overflows. It is called with the operands that it was made for, and with ones of other sizes.
With `--narrow` most operands are small integers, from one end of their type to the other, and
truths: what is computed of them wraps.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from taco_py.arguments.learned_price import ANALYTIC
from taco_py.graph.backends.registered import REGISTERED
from tests.prices.test_forest import wide_model

DTYPES = ("float64", "float64", "float64", "float32", "int64", "int32", "bool", "complex128")
NARROW = ("int8", "int8", "uint8", "uint8", "bool", "bool", "int16", "uint16", "uint64", "float64")
LARGEST = 1e6


@dataclass(frozen=True)
class Program:
    """A function's text, with its operands: dense arrays, some of which are passed as sparse."""

    text: str
    operands: dict[str, np.ndarray[Any, Any]]
    sparse: dict[str, str]
    others: dict[str, np.ndarray[Any, Any]]

    def function(self) -> Callable[..., Any]:
        space: dict[str, Any] = {"np": np, "tp": tp}
        exec(self.text, space)
        found: Callable[..., Any] = space["f"]
        return found

    def passed(self, operands: dict[str, np.ndarray[Any, Any]]) -> list[Any]:
        """The operands, those that are sparse in their classes."""
        return [
            getattr(sp, self.sparse[name])(each) if name in self.sparse else each
            for name, each in operands.items()
        ]


class Maker:
    """Lines of a program, with their values in NumPy."""

    def __init__(self, rng: np.random.Generator, narrow: bool = False) -> None:
        self.rng = rng
        self.narrow = narrow
        self.sizes = {letter: int(rng.integers(2, 6)) for letter in "ijkl"}
        self.other_sizes = {letter: int(rng.integers(2, 9)) for letter in "ijkl"}
        self.sparse: dict[str, str] = {}
        self.shapes: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.lines: list[str] = []

    def operand(self, name: str) -> None:
        rng = self.rng
        order = int(rng.choice([0, 1, 1, 2, 2, 2, 3]))
        letters = "".join(rng.choice([*"ijkl", "1"], order, p=[0.23] * 4 + [0.08]))
        dtype = str(rng.choice(NARROW if self.narrow else DTYPES))
        if len(letters) == 2 and rng.random() < 0.35:
            form = str(rng.choice(["csr_array", "csr_array", "csc_array", "coo_array"]))
            self.sparse[name] = form
        self.shapes[name] = letters
        self.values[name] = self.array(letters, dtype, name in self.sparse, self.sizes)

    def array(self, letters: str, dtype: str, sparse: bool, sizes: dict[str, int]) -> Any:
        shape = tuple(1 if letter == "1" else sizes[letter] for letter in letters)
        rng = self.rng
        if self.narrow and np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize < 8:
            limits = np.iinfo(dtype)
            found = rng.integers(limits.min, int(limits.max) + 1, shape)
            return np.where(rng.random(shape) < (0.4 if sparse else 1), found, 0).astype(dtype)
        found = rng.integers(-4, 5, shape) + (
            0 if np.dtype(dtype).kind in "iub" else rng.random(shape)
        )
        if dtype == "complex128":
            found = found + 1j * rng.random(shape)
        if sparse:
            found = np.where(rng.random(shape) < 0.4, found, 0)
        return np.asarray(found).astype(dtype)

    def pick(self, fits: Callable[[Any], bool] = lambda value: True) -> str:
        names = [name for name, value in self.values.items() if fits(value)]
        recent = names[-4:]
        return str(self.rng.choice(recent if recent and self.rng.random() < 0.7 else names))

    def line(self) -> str:
        make = self.rng.choice(MAKERS)
        return str(make(self))

    def add_line(self) -> bool:
        try:
            text = self.line()
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = eval(text, {"np": np, "tp": tp}, dict(self.values))
        except (ValueError, TypeError, IndexError, OverflowError, np.exceptions.AxisError):
            return False
        array = np.asarray(value)
        wrong = array.dtype.kind not in "biufc" or array.size > 4000 or array.dtype == np.float16
        if wrong or not array.size or not np.isfinite(array).all():
            return False
        wraps = self.narrow and array.dtype.kind in "iu"
        if not wraps and np.abs(array.astype(complex)).max() > LARGEST:
            return False
        name = f"t{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        self.values[name] = value
        return True


UNARY = (
    "np.tanh({})", "np.exp(-np.abs({}))", "-{}", "np.abs({})", "np.sqrt(np.abs({}))", "{}**2",
    "np.sin({})", "np.square({})", "np.log1p(np.abs({}))", "np.maximum({}, 0)", "np.sign({})",
    "{} > 1", "np.floor({})", "np.clip({}, -1, 2)", "{} * 2", "1 / ({} * {} + 2)", "np.isnan({})",
    "{}.astype('float64')", "np.logical_not({})", "{} + 0.5", "3 - {}", "{} / 4", "np.conj({})",
    "np.real({})", "np.rint({})", "{} // 2", "{} % 3", "{} == 0", "np.arctan({})", "{}**3",
    "-(-{})", "{} * 1", "1 * {}", "{} - 0", "np.abs({})**0.5", "(np.abs({}) + 1)**-1", "+{}",
    "np.abs(-{})", "np.where({} > 0, {}, {})", "np.maximum(np.maximum({}, 1), 1)",
    "np.exp(np.log(np.abs({}) + 1))", "np.sqrt(np.abs({})) * np.sqrt(np.abs({}))",
)  # fmt: skip
BINARY = (
    "{} + {}", "{} - {}", "{} * {}", "np.maximum({}, {})", "np.minimum({}, {})", "{} < {}",
    "{} / (np.abs({}) + 1)", "np.where({} > 0, {}, 0)", "np.where({}, {}, -1.5)", "{} == {}",
    "np.hypot({}, {})", "np.logical_and({}, {})", "np.where({}, {}, -np.inf).max()",
    "np.arctan2({}, {})",
)  # fmt: skip


def _unary(maker: Maker) -> str:
    text = str(maker.rng.choice(UNARY))
    return text.replace("{}", maker.pick())


def _binary(maker: Maker) -> str:
    text = str(maker.rng.choice(BINARY))
    return text.format(maker.pick(), maker.pick())


def _where(maker: Maker) -> str:
    return f"np.where({maker.pick()}, {maker.pick()}, {maker.pick()})"


def _reduction(maker: Maker) -> str:
    name = maker.pick(lambda value: np.ndim(value) > 0)
    order = np.ndim(maker.values[name])
    function = maker.rng.choice(
        ["sum", "sum", "max", "min", "mean", "var", "std", "any", "all", "prod", "argmax"]
    )
    axis = int(maker.rng.integers(-order, order))
    if function != "argmax" and order > 1 and maker.rng.random() < 0.2:
        axis = (0, 1)  # type: ignore[assignment]
    keep = bool(maker.rng.random() < 0.5)
    if maker.rng.random() < 0.15:
        return f"{name}.{function}()"
    return f"np.{function}({name}, axis={axis}, keepdims={keep})"


def _softmax_part(maker: Maker) -> str:
    name = maker.pick(lambda value: np.ndim(value) > 0)
    return f"np.exp(np.minimum({name} - {name}.max(-1, keepdims=True), 0))"


def _product(maker: Maker) -> str:
    text = str(maker.rng.choice(["{} @ {}", "{} @ {}.T", "{}.T @ {}", "np.dot({}, {})"]))
    array = maker.pick(lambda value: np.ndim(value) > 0)
    other = maker.pick(lambda value: np.ndim(value) > 0)
    return text.format(array, other)


def _einsum(maker: Maker) -> str:
    matrix = maker.pick(lambda value: np.ndim(value) == 2)
    other = maker.pick(lambda value: np.ndim(value) == 2)
    vector = maker.pick(lambda value: np.ndim(value) == 1)
    texts = [
        f"np.einsum('ij,jk->ik', {matrix}, {other})",
        f"np.einsum('ij->ji', {matrix})",
        f"np.einsum('ij,ij->i', {matrix}, {other})",
        f"np.einsum('ij,j->i', {matrix}, {vector})",
        f"tp.einsum('ij,kj->ik', {matrix}, {other})",
        f"np.einsum('i,j->ij', {vector}, {vector})",
        f"np.einsum('ij,kj,k->i', {matrix}, {other}, {vector})",
        f"np.einsum('ii->i', {matrix})",
        f"({matrix} @ {other})[0]",
        f"({matrix} @ {other}.T)[:, 1:]",
        f"np.trace({matrix} @ {other})",
        f"np.diagonal({matrix} @ {matrix}.T)",
        f"({matrix}.T @ {other})[::2, 0]",
    ]
    return str(maker.rng.choice(texts))


def _layout(maker: Maker) -> str:
    name = maker.pick(lambda value: np.ndim(value) > 0)
    order = np.ndim(maker.values[name])
    texts = [
        f"{name}.T", f"{name}[None]", f"{name}[..., None]", f"{name}.reshape(-1)", f"{name}[1:]",
        f"{name}[..., ::2]", f"{name}[0]", f"{name}[:, None]", f"{name}[::-1]", f"{name}[..., -1]",
        f"np.expand_dims({name}, {order})", f"{name}.reshape({name}.shape[0], -1)",
        f"np.swapaxes({name}, 0, -1)", f"{name}[[0, -1, 0]]", f"np.squeeze({name})",
        f"{name}[: {name}.shape[0] - 1]", f"np.cumsum({name}, axis=0)", f"np.sort({name}, axis=-1)",
        f"{name} / {name}.shape[0]", f"{name} * np.sqrt({name}.shape[-1])", f"{name} + {name}.size",
        f"np.zeros_like({name}) + 1", f"{name}.T", f"np.tanh({name}.T)", f"({name}.T * 2).T",
        f"({name} + {name}[..., :1])[0]", f"(np.tanh({name}) * {name})[..., 0]",
        f"(-{name} + 1)[1:]", f"{name}.sum(-1)[..., :2]", f"({name}.T + 1)[..., None, -1]",
        f"({name} * {name})[:, None][1:]", f"({name}.T)[0] * 2",
    ]  # fmt: skip
    return str(maker.rng.choice(texts))


def _joined(maker: Maker) -> str:
    name = maker.pick(lambda value: np.ndim(value) > 0)
    shape = np.shape(maker.values[name])
    other = maker.pick(lambda value: np.shape(value) == shape)
    return str(
        maker.rng.choice([
            f"np.concatenate([{name}, {other}], axis=-1)", f"np.stack([{name}, {other}])",
            f"np.concatenate([{name}, {other}], axis=0)",
        ])
    )  # fmt: skip


FURTHER = (
    "np.roll({}, 1, 0)", "np.diff({}, axis=0)", "np.tile({}, 2)", "np.repeat({}, 2, -1)",
    "np.tril(np.atleast_2d({}))", "np.triu(np.atleast_2d({}), 1)", "np.flip({})",
    "np.linalg.norm({}, axis=-1)", "np.linalg.norm({}, 1, axis=0)", "np.average({}, axis=0)",
    "np.ptp(np.real({}), axis=-1)", "np.nan_to_num(np.real({}))", "np.nansum({}, axis=0)",
    "np.logaddexp.reduce(np.real({}))", "np.round({} / 3, 1)", "np.isclose({}, 0)",
    "np.select([{} > 1, {} > 0], [{}, 2])", "np.vdot({}, {})", "np.inner({}, {})",
    "np.multiply.outer({}, {})", "np.kron({}, {})", "np.diag({})", "np.diag({}) @ {}",
    "{} @ np.diag({})", "np.take_along_axis({}, np.argsort(np.real({}), 0), 0)", "np.rot90({})",
    "{}[np.argsort(np.real({}), 0)]", "{}[np.argmax(np.real({}))]", "np.trapezoid({})",
    "np.polyval([1, 0.5, 2], {})", "np.pad({}, 1)", "np.median(np.real({}), axis=0)",
    "np.maximum.accumulate(np.real({}))", "np.sum({}, where=np.real({}) > 0)",
    "np.column_stack([{}, {}])", "np.cov(np.real({}))", "sum(row for row in {})",
    "{}[np.array([0, -1, 0])]", "{}[..., np.array([[0], [-1]])]",
)  # fmt: skip


def _further(maker: Maker) -> str:
    text = str(maker.rng.choice(FURTHER))
    if text.count("{}") == 2 and "@" not in text and maker.rng.random() < 0.5:
        return text.replace("{}", maker.pick(lambda value: np.ndim(value) > 0))
    places = [maker.pick(lambda value: np.ndim(value) > 0) for _ in range(text.count("{}"))]
    return text.format(*places)


MAKERS = (
    _unary, _unary, _binary, _binary, _binary, _where, _reduction, _reduction, _softmax_part,
    _product, _product, _einsum, _layout, _joined, _further,
)  # fmt: skip


def make_program(seed: int, narrow: bool = False) -> Program:
    """Make a program that NumPy computes without overflow, that of small integers apart.

    narrow  whether most operands are small integers and truths
    """
    rng = np.random.default_rng(seed)
    maker = Maker(rng, narrow)
    operands = [f"a{place}" for place in range(int(rng.integers(1, 4)))]
    for name in operands:
        maker.operand(name)
    count = int(rng.integers(1, 9))
    tries = 0
    while len(maker.lines) < count and tries < 400:
        tries += 1
        maker.add_line()
    made = [f"t{place}" for place in range(len(maker.lines))] or operands
    wanted = list(dict.fromkeys([made[-1], *rng.choice(made, int(rng.integers(0, 2))).tolist()]))
    text = "\n".join(
        [f"def f({', '.join(operands)}):", *maker.lines, f"    return {', '.join(wanted)}"]
    )
    others = {
        name: maker.array(
            maker.shapes[name], str(maker.values[name].dtype), name in maker.sparse,
            maker.other_sizes,
        )
        for name in operands
    }  # fmt: skip
    given = {name: maker.values[name] for name in operands}
    return Program(text, given, maker.sparse, others)


def wrong_with(
    program: Program, optimize: str = "stages", backends: Sequence[str] = (), price: Any = ANALYTIC
) -> str:
    """What differs from NumPy, "" where nothing does."""
    function = program.function()
    fused = tp.fuse(function, optimize=optimize, backends=backends, price=price)
    for operands in (program.operands, program.others, program.operands):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                expected = function(*operands.values())
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", tp.BackendWarning)
            found = fused(*program.passed(operands))
        pairs = zip(_several(found), _several(expected), strict=True)
        for place, (one, other) in enumerate(pairs):
            if told := _difference(one, np.asarray(other), _is_single(program)):
                return f"result {place}: {told}"
    return ""


def _several(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _is_single(program: Program) -> bool:
    """Whether some numbers have 32 bits."""
    short = (np.float32, np.int8, np.uint8, np.int16, np.uint16, np.bool_)  # whose roots are short
    return any(each.dtype in short for each in program.operands.values())


def _difference(found: Any, expected: np.ndarray[Any, Any], single: bool) -> str:
    if sp.issparse(found):
        found = found.toarray()
    elif isinstance(found, tp.Tensor):
        found = found.to_numpy()
    if np.shape(found) != expected.shape:
        return f"expected shape {expected.shape}, found {np.shape(found)}"
    if found.dtype != expected.dtype:
        return f"expected {expected.dtype}, found {found.dtype}"
    if not np.isfinite(expected).all():
        return ""  # sizes of this call make what the program was not made for
    exact = expected.dtype.kind in "biu"
    scale = 1 + np.abs(expected.astype(complex)).max(initial=0)
    error = np.abs(found.astype(complex) - expected).max(initial=0) / scale
    if not error <= (0 if exact else 2e-4 if single else 1e-9):
        return f"expected {expected.ravel()[:6]}, found {found.ravel()[:6]}"
    return ""


def registered_as_greedy(names: Sequence[str]) -> tuple[str, ...]:
    """Register backends that compute all that they can, whatever that takes."""
    for name in names:
        tp.register_backend(replace(REGISTERED.find(name), name=f"all_{name}", always=True))
    return tuple(f"all_{name}" for name in names)


def failures(
    count: int,
    seed: int,
    optimize: str = "stages",
    backends: Sequence[str] = (),
    narrow: bool = False,
    priced: bool = False,
) -> Iterator[str]:
    """What is wrong with programs of these seeds, each by a price of its own if they are priced."""
    for number in range(seed, seed + count):
        program = make_program(number, narrow)
        try:
            told = wrong_with(
                program, optimize, backends, wide_model(number) if priced else ANALYTIC
            )
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            if isinstance(error, tp.OperandTypeError) and "complex" in told and program.sparse:
                told = ""  # complex numbers of sparse operands have no order
            if isinstance(error, tp.OperandTypeError) and "toarray()" in told and program.sparse:
                told = ""  # NumPy computes it
            if isinstance(error, tp.FormatError) and "one fill value" in told:
                told = ""  # sparse arrays are put together where they have the same
            if isinstance(error, tp.FormatError) and "would be dense" in told:
                told = ""
        if told:
            yield f"seed {number}, sparse {program.sparse}, shapes " + (
                f"{ {n: (a.shape, str(a.dtype)) for n, a in program.operands.items()} }\n"
                f"{program.text}\n{told}\n"
            )


def main() -> int:
    """Try programs, and print those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backends", nargs="*", default=(), help="that compute all that they can")
    parser.add_argument("--narrow", action="store_true", help="small integers, which wrap")
    parser.add_argument("--optimize", default="stages", help="the strategy that chooses kernels")
    parser.add_argument("--price", action="store_true", help="by trees that are drawn")
    given = parser.parse_args()
    backends = registered_as_greedy(given.backends)
    begun, wrong = time.perf_counter(), 0
    options = given.optimize, backends, given.narrow, given.price
    for told in failures(given.count, given.seed, *options):
        wrong += 1
        print(told, flush=True)
    print(f"{given.count} programs, {wrong} wrong, {time.perf_counter() - begun:.0f} s")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
