"""Random functions in NumPy style: gradients against differences.

python -m tests.autodiff.random_gradients 200 --seed 7
python -m tests.autodiff.random_gradients 200 --nested

With --nested, gradients of products with gradients: Hessians times vectors, against differences of
gradients.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from tests.autodiff.differences import direction, moved, product
from tests.graph.random_programs import Program, make_program

SKIPPED = "skipped: "
WITHOUT_SLOPE = (".std(", ".norm(", "arctan2(")
"""The root of 0 and the angle of the origin have no derivative."""


def loss_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the sum of all real results of a function."""

    def loss(*args: Any) -> Any:
        found = function(*args)
        parts = found if isinstance(found, tuple) else (found,)
        return sum(each.sum() for each in parts if np.dtype(each.dtype).kind == "f")

    return loss


def moved_operands(program: Program, rng: np.random.Generator) -> dict[str, Any]:
    """Return the real operands of a program, apart from 0, where some functions have no slope."""
    return {
        name: np.asarray(each.real, np.float64)
        + (0 if name in program.sparse else rng.random(np.shape(each)) / 50)
        for name, each in program.operands.items()
    }


def nested_with(program: Program, seed: int) -> str:
    """Tell what is wrong with the gradients of gradients of a program; "" where nothing is."""
    rng = np.random.default_rng(seed)
    loss, args = loss_of(program.function()), program.passed(moved_operands(program, rng))
    places = [n for n, each in enumerate(args) if getattr(each, "dtype", None) == np.float64]
    if not places or not _runs(loss, args):
        return f"{SKIPPED}no program of real operands"
    told = ""
    for place in map(int, rng.permutation(places)):
        try:
            return _nested_by(loss, args, place, program, rng)
        except tp.DerivativeError as error:  # an operand that is not read, sorts, …
            told = f"{SKIPPED}{error.message}"
    return told


def _nested_by(
    loss: Callable[..., Any], args: list[Any], place: int, program: Program, rng: Any
) -> str:
    """Tell what is wrong with the gradient of a gradient by one argument."""
    along, across = direction(args[place], rng), direction(args[place], rng)

    def of_one(own: Any, others: Any) -> Any:
        rest = iter(others)
        return loss(*(own if n == place else next(rest) for n in range(len(args))))

    inner = tp.grad(of_one, "own")

    def weighed(own: Any, others: Any, across: Any) -> Any:
        gradient = inner(own, others)
        return (gradient * across if not sp.issparse(across) else gradient.multiply(across)).sum()

    others = tuple(each for n, each in enumerate(args) if n != place)
    gradient = tp.grad(weighed, "own")(args[place], others, across)
    slopes = []
    here = product(inner(args[place], others), across)
    for step in (1e-6, -1e-6, 3e-6):
        there = product(inner(moved(args[place], along, step), others), across)
        slopes.append((there - here) / step)
    slopes[:0] = [sum(slopes[:2]) / 2]
    scale = 1 + max(map(abs, slopes))
    found = product(gradient, along)
    if not np.isfinite(slopes).all() or np.ptp(slopes) > 1e-3 * scale:
        return ""  # a kink, or a number that is none
    if np.isnan(found) and any(name in program.text for name in WITHOUT_SLOPE):
        return ""
    if not abs(found - slopes[0]) <= 1e-3 * scale:
        return f"operand {place}: expected {slopes[0]}, found {found}"
    return ""


def wrong_with(program: Program, seed: int) -> str:
    """Tell what is wrong with the gradients of a program; "" where nothing is."""
    rng = np.random.default_rng(seed)
    operands = moved_operands(program, rng)
    loss, args = loss_of(program.function()), program.passed(operands)
    places = [n for n, each in enumerate(args) if getattr(each, "dtype", None) == np.float64]
    if not places:
        return f"{SKIPPED}no real operand"

    if not _runs(loss, args):
        return f"{SKIPPED}no program of operands that were moved"

    try:
        gradients = _gradients(loss, args, places)
    except tp.DerivativeError as error:
        return f"{SKIPPED}{error.message}"
    for place, gradient in zip(places, gradients, strict=True):
        along = direction(args[place], rng)

        def at(step: float, place: int = place, along: Any = along) -> float:
            given = [*args]
            given[place] = moved(args[place], along, step)
            return _by_numpy(loss, given)

        try:
            here = at(0.0)
            slopes = [(at(h) - here) / h for h in (1e-6, -1e-6)]
        except IndexError:  # NumPy's: an argmax is another one there, and is used as a position
            continue
        slopes[:0] = [sum(slopes) / 2]
        scale = 1 + max(map(abs, slopes))
        found = product(gradient, along)
        if not np.isfinite(slopes).all() or abs(slopes[1] - slopes[2]) > 1e-3 * scale:
            continue  # a kink, or a number that is none
        if np.isnan(found) and any(name in program.text for name in WITHOUT_SLOPE):
            continue
        if not abs(found - slopes[0]) <= 1e-3 * scale:
            return f"operand {place}: expected {slopes[0]}, found {found}"
    return ""


def _by_numpy(loss: Callable[..., Any], args: list[Any]) -> float:
    """The loss of dense arrays."""
    arrays = [each.toarray() if hasattr(each, "toarray") else each for each in args]
    with np.errstate(all="ignore"):
        return float(np.real(loss(*arrays)))


def _runs(loss: Callable[..., Any], args: list[Any]) -> bool:
    """Whether NumPy computes it: an argmax, used as a position, may be another one of operands that
    were moved."""
    try:
        _by_numpy(loss, args)
    except IndexError:
        return False
    return True


def _gradients(loss: Callable[..., Any], args: list[Any], places: list[int]) -> Any:
    """The gradients by all of the arguments, or by some."""

    def of_all(args: Any) -> Any:
        return loss(*args)

    def of_some(real: Any, others: Any) -> Any:
        rest, own = iter(others), iter(real)
        return loss(*(next(own) if n in places else next(rest) for n in range(len(args))))

    if len(places) == len(args):
        return tp.grad(of_all, "args")(tuple(args))
    real = tuple(args[n] for n in places)
    others = tuple(each for n, each in enumerate(args) if n not in places)
    return tp.grad(of_some, "real")(real, others)


def failures(
    count: int, seed: int, check: Callable[[Program, int], str] = wrong_with
) -> Iterator[tuple[int, str]]:
    """The seeds of programs with what is wrong, or why they were left out."""
    for number in range(seed, seed + count):
        program = make_program(number)
        try:
            told = check(program, number)
        except (tp.OperandTypeError, tp.FormatError) as error:
            told = f"{SKIPPED}{error.message}"
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        if told:
            yield number, told if told.startswith(SKIPPED) else f"{told}\n{program.text}"


def main() -> int:
    """Try programs, and print those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nested", action="store_true")
    given = parser.parse_args()
    check = nested_with if given.nested else wrong_with
    warnings.simplefilter("ignore")
    begun, wrong, skipped = time.perf_counter(), 0, 0
    for number, told in failures(given.count, given.seed, check):
        skipped += told.startswith(SKIPPED)
        wrong += not told.startswith(SKIPPED)
        print(number, told, flush=True)
    spent = time.perf_counter() - begun
    print(f"{given.count} programs, {wrong} wrong, {skipped} left out, {spent:.0f} s")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
