"""Make the coefficients of taco_polynomials.h: `python -m benchmarks.polynomials [--check]`.

Each polynomial is the best of its degree in a weighted maximum norm (Remez 1934), found in 60
digits by mpmath, then rounded to the type. The weight is what an error of the polynomial does to
the result, so that the error printed is that of the result, in units in the last place. With
`--check` nothing is written, and it fails where the file differs.

A long polynomial is two of x**2, which processors compute side by side:

    c0 + c1 x + c2 x**2 + c3 x**3 + c4 x**4  →  (c0 + (c2 + c4 z) z) + (c1 + c3 z) x with z = x**2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

HEADER = Path(__file__).parent.parent / "codegen" / "runtime" / "taco_polynomials.h"
mp.mp.dps = 60
GRID = 400  # intervals between the points among which the largest errors are looked for
ROUNDS = 12
SHORT = 4  # coefficients below which a polynomial is one chain
Real = Any


@dataclass(frozen=True)
class Polynomial:
    """p(x), of as many coefficients for double and float, near `function` from `low` to `high`.

    highs   the largest arguments of double and float
    weight  of the error of p(x) in units of the result, positive
    """

    name: str
    what: str
    low: Real
    highs: tuple[Real, Real]
    coefficients: tuple[int, int]
    function: Callable[[Real], Real]
    weight: Callable[[Real], Real]


def series(first: int, step: Callable[[int], Real]) -> Callable[[Real], Real]:
    """The power series with the coefficients step(first), step(first + 1), …"""
    coefficients = [step(first + k) for k in range(60)]
    return lambda x: mp.polyval(coefficients[::-1], x)


LOG_HIGH = (3 - 2 * mp.sqrt(2)) ** 2
QUARTER = (mp.pi / 4 + mp.mpf(2) ** -7) ** 2
HALF_STEP = mp.log(2) / 2 * (1 + mp.mpf(2) ** -12)
HALF = mp.mpf(1) / 2
SPLIT = mp.mpf(13) / 16
QUARTER_OF_ERFC = mp.erfinv(mp.mpf(3) / 4)
POLYNOMIALS = (
    Polynomial(
        "exp", "(exp(x) - 1 - x - x**2 / 2) / x**3", -HALF_STEP, (HALF_STEP, HALF_STEP), (9, 4),
        series(0, lambda k: 1 / mp.factorial(k + 3)),
        lambda x: abs(x) ** 3 / mp.exp(x),
    ),
    Polynomial(
        "exp2", "(2**x - 1) / x", -HALF, (HALF, HALF), (11, 6),
        series(0, lambda k: mp.log(2) ** (k + 1) / mp.factorial(k + 1)),
        lambda x: abs(x) * mp.mpf(2) ** -x / 3,
    ),
    Polynomial(
        "log", "(log((1 + s) / (1 - s)) - 2 * s) / s**3 with x = s**2",
        mp.mpf(0), (LOG_HIGH, LOG_HIGH), (7, 3),
        series(0, lambda k: mp.mpf(2) / (2 * k + 3)),
        lambda x: x / 2,
    ),
    Polynomial(
        "sin", "(sin(r) - r) / r**3 with x = r**2", mp.mpf(0), (QUARTER, QUARTER), (6, 3),
        series(0, lambda k: (-1) ** (k + 1) / mp.factorial(2 * k + 3)),
        lambda x: x,
    ),
    Polynomial(
        "cos", "(cos(r) - 1 + r**2 / 2) / r**4 with x = r**2",
        mp.mpf(0), (QUARTER, QUARTER), (6, 3),
        series(0, lambda k: (-1) ** k / mp.factorial(2 * k + 4)),
        lambda x: x**2 * mp.sqrt(2),
    ),
    Polynomial(
        "erf", "erf(r) / r - 1 with x = r**2", mp.mpf(0), (SPLIT**2, SPLIT**2), (12, 6),
        lambda x: mp.erf(mp.sqrt(x)) / mp.sqrt(x) - 1 if x > 0 else 2 / mp.sqrt(mp.pi) - 1,
        lambda x: mp.mpf(1),
    ),
    Polynomial(
        "erfc", "(-log2(erfc(c + x)) - 2) / x with erfc(c) = 1 / 4",
        SPLIT - QUARTER_OF_ERFC, (6 - QUARTER_OF_ERFC, 4 - QUARTER_OF_ERFC), (19, 6),
        lambda x: (-mp.log(mp.erfc(QUARTER_OF_ERFC + x), 2) - 2) / x,
        lambda x: mp.log(2) * abs(x) * mp.erfc(QUARTER_OF_ERFC + x) / mp.erf(QUARTER_OF_ERFC + x),
    ),
    Polynomial(
        "cbrt", "x**(-1/3)", mp.mpf(1) / 2, (mp.mpf(1), mp.mpf(1)), (5, 4),
        lambda x: x ** (-mp.mpf(1) / 3),
        lambda x: x ** (mp.mpf(1) / 3),
    ),
)  # fmt: skip
TYPES = (("f64", "double", np.float64, 53), ("f32", "float", np.float32, 24))


def minimax(polynomial: Polynomial, high: Real, count: int) -> tuple[list[Real], Real]:
    """The coefficients, that of 1 first, and the largest weighted error, of arguments to `high`."""
    low = polynomial.low
    middle, half = (low + high) / 2, (high - low) / 2
    grid = [middle - half * mp.cos(mp.pi * k / GRID) for k in range(GRID + 1)]
    values = [polynomial.function(x) for x in grid]
    weights = [polynomial.weight(x) for x in grid]
    places = [round(GRID * k / count) for k in range(count + 1)]
    for _ in range(ROUNDS):
        matrix = mp.matrix(count + 1, count + 1)
        for row, k in enumerate(places):
            for column in range(count):
                matrix[row, column] = grid[k] ** column
            matrix[row, count] = (-1) ** row / max(weights[k], mp.mpf(10) ** -40)
        solution = mp.lu_solve(matrix, mp.matrix([values[k] for k in places]))
        found = [solution[k] for k in range(count)]
        errors = [
            w * (v - mp.polyval(found[::-1], x))
            for x, v, w in zip(grid, values, weights, strict=True)
        ]
        before, places = places, exchanged(errors, count + 1)
        if places == before or len(places) != count + 1:
            break
    return found, max(map(abs, errors))


def exchanged(errors: list[Real], count: int) -> list[int]:
    """The places of the largest errors of alternating sign."""
    places: list[int] = []
    for k, error in enumerate(errors):
        if places and (errors[places[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[places[-1]]):
                places[-1] = k
        else:
            places.append(k)
    while len(places) > count:
        drop = 0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1
        places.pop(drop)
    return places


def text(polynomial: Polynomial) -> str:
    """C functions that evaluate it for each type."""
    parts = [f"/* {polynomial.name}: {polynomial.what} */"]
    for (suffix, c, number, precision), high, count in zip(
        TYPES, polynomial.highs, polynomial.coefficients, strict=True
    ):
        found, error = minimax(polynomial, high, count)
        ulps = float(error * 2**precision)
        print(f"{polynomial.name} {suffix}: {count} coefficients, {ulps:.3f} ulp", file=sys.stderr)
        end = "f" if suffix == "f32" else ""
        words = [c_number(float(number(mp.nstr(a, 30)))) + end for a in found]
        parts += [f"TACO_PURE {c} taco_{polynomial.name}_near_{suffix}({c} x)", "{"]
        if count < SHORT:
            parts += chain("p", c, suffix, "x", words)
            parts += ["    return p;", "}"]
            continue
        parts += [f"    const {c} z = x * x;"]
        parts += chain("even", c, suffix, "z", words[::2])
        parts += chain("odd", c, suffix, "z", words[1::2])
        parts += [f"    return taco_fma_{suffix}(odd, x, even);", "}"]
    return "\n".join(parts)


def chain(name: str, c: str, suffix: str, x: str, words: list[str]) -> list[str]:
    """Lines that compute a polynomial of `x` one product after another (Horner 1819)."""
    steps = [f"    {name} = taco_fma_{suffix}({name}, {x}, {word});" for word in words[-2::-1]]
    return [f"    {c} {name} = {words[-1]};", *steps]


def c_number(value: float) -> str:
    """In hexadecimal, without zeros at the end: 0x1.8p-3."""
    digits, exponent = value.hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}"


def split(value: Real, number: Any, bits: tuple[int, ...]) -> list[str]:
    """`value` as a sum of numbers of so many bits each, the last of as many as there are."""
    parts = []
    for wanted in bits:
        _, exponent = mp.frexp(value)
        part = mp.nint(mp.ldexp(value, wanted - exponent))
        found = mp.ldexp(part, exponent - wanted)
        parts.append(c_number(float(found)))
        value -= found
    return parts


def constants() -> str:
    """Numbers that arguments are reduced by, in parts whose sum has more digits than the type."""
    lines = ["/* Numbers in parts: the first parts times whole numbers are exact. */"]
    for suffix, _, number, precision in TYPES:
        end = "f" if suffix == "f32" else ""
        short = precision - (12 if suffix == "f64" else 9)
        table = {
            "LN2": (mp.log(2), (short, precision)),
            "HALF_PI": (mp.pi / 2, (precision, precision, precision)),
            "LOG2_E": (1 / mp.log(2), (precision, precision)),
            "LOG10_E": (1 / mp.log(10), (precision, precision)),
            "LOG10_2": (mp.log(2) / mp.log(10), (short, precision)),
            "PER_LN2": (1 / mp.log(2), (precision,)),
            "PER_HALF_PI": (2 / mp.pi, (precision,)),
            "QUARTER_OF_ERFC": (QUARTER_OF_ERFC, (precision,)),
            "SQRT_HALF": (mp.sqrt(mp.mpf(1) / 2), (precision,)),
            "CBRT_2": (mp.cbrt(2), (precision,)),
            "CBRT_HALF": (1 / mp.cbrt(2), (precision,)),
        }
        for name, (value, bits) in table.items():
            for place, word in enumerate(split(value, number, bits), 1):
                which = f"_{place}" if len(bits) > 1 else ""
                lines.append(f"#define TACO_{name}{which}_{suffix} {word}{end}")
    return "\n".join(lines)


def header() -> str:
    head = (
        "/* Made by benchmarks/polynomials.py: minimax polynomials, and constants. Included by "
        "taco_math.h. */"
    )
    return "\n\n".join([head, constants(), *map(text, POLYNOMIALS)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.polynomials", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare with the file")
    found = header()
    if not parser.parse_args().check:
        HEADER.write_text(found)
    elif HEADER.read_text() != found:
        sys.exit(f"{HEADER} differs from what its polynomials are")


if __name__ == "__main__":
    main()
