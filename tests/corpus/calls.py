"""Calls by the road that their texts take: what `tests.dump_calls` asks of every verb.

    y[i] = A[i,j] * x[j] | A=csr[12,10] x=d[10]/float32 | threads=1, mask="~M=d[12]/bool"

A line of `roads/*.txt` has a text, its operands, and options. An operand is `name=kind[shape]`,
with `/dtype`, `!fill value` and `@` for the emulated device where these are wanted. Kinds are `d`
for a NumPy array, `F` for one in Fortran's order, scipy's classes, formats of Tensors, `<n` for
positions below n, and `#value` for a number. Masks and arrays to write into are described alike;
`~` in front of a mask stands for its complement, `?` for its values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp

import taco_py as tp

FOLDER = Path(__file__).parent / "roads"
EMULATED = "cuda-emulated"
SCIPY = re.compile(r"(csr|csc|coo|bsr|dia|lil|dok)_(array|matrix)|csr|csc|coo|bsr|dia|lil")
OPERAND = re.compile(r"(\w+)=(.*?)\[([\d,]*)\](?:/(\w+))?(?:!([^\s@]+))?(@?)")
NUMBER = re.compile(r"(\w+)=#(\S+)")
DENSITY = 0.3


@dataclass(frozen=True, slots=True)
class Call:
    """A text, the description of its operands, and the options of the call."""

    text: str
    described: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        options = "".join(f"  {name}={value!r}" for name, value in self.options.items())
        return f"{self.text}  {self.described}{options}"

    def operands(self) -> dict[str, Any]:
        """Make the operands, with the same entries on every call."""
        return build(self.described)

    def arguments(self) -> dict[str, Any]:
        """Make the options, with arrays of their own."""
        made = dict(self.options)
        if "mask" in made:
            made["mask"] = _mask(made["mask"])
        if "out" in made:
            outs = build(made["out"])
            made["out"] = outs if len(outs) > 1 else next(iter(outs.values()))
        return made


def build(described: str) -> dict[str, Any]:
    """Make objects of a description, by name."""
    found: dict[str, Any] = {}
    for part in described.split():
        number = NUMBER.fullmatch(part)
        if number is not None:
            found[number[1]] = float(number[2]) if "." in number[2] else int(number[2])
            continue
        match = OPERAND.fullmatch(part)
        assert match is not None, part
        name, kind, sizes, dtype, fill, device = match.groups()
        shape = tuple(int(size) for size in sizes.split(",") if size)
        made = _object(name, kind, shape, dtype, fill)
        found[name] = tp.device(made, target=EMULATED) if device else made
    return found


def _object(name: str, kind: str, shape: tuple[int, ...], dtype: str | None, fill: Any) -> Any:
    rng = np.random.default_rng(crc32(f"{name}{shape}".encode()))
    if kind.startswith("<"):
        return rng.integers(0, int(kind[1:]), shape).astype(dtype or "int64")
    array = _values(rng, shape, dtype or "float64")
    if kind == "d":
        return array
    if kind == "F":
        return np.asfortranarray(array)
    array = np.where(rng.random(shape) < DENSITY, array, np.zeros((), array.dtype))
    if kind == "sym":
        array = array + array.T
    if SCIPY.fullmatch(kind):
        family = kind if "_" in kind else f"{kind}_array"
        sparse = getattr(sp, family)(array.astype("float64") if dtype == "float16" else array)
        if dtype == "float16":
            sparse.data = sparse.data.astype("float16")
        return sparse.tobsr((2, 2)) if family.startswith("bsr") else sparse
    if fill is None:
        return tp.tensor(array, format=kind)
    return tp.tensor(tp.tensor(array, format=kind), fill_value=float(fill))


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Small numbers whose sums and products are exact."""
    whole = rng.integers(1, 5, shape)
    if dtype.startswith("complex"):
        return (whole + 1j * rng.integers(-2, 3, shape)).astype(dtype)
    return (whole if np.dtype(dtype).kind in "iub" else whole / 2).astype(dtype)


def _mask(described: str) -> Any:
    if described.startswith("~"):
        return tp.complement(_mask(described[1:]))
    if described.startswith("?"):
        return tp.by_value(_mask(described[1:]))
    return next(iter(build(described).values()))


ROADS = tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))
"""The roads that there are calls of."""


def calls_of(road: str) -> Iterator[Call]:
    """Read the calls of a road."""
    for line in (FOLDER / f"{road}.txt").read_text().splitlines():
        if not line.startswith("#"):
            text, described, *options = line.split(" | ")
            yield Call(text, described, _read_options("".join(options)))


def _read_options(written: str) -> dict[str, Any]:
    """Read the options of a call, as Python writes them."""
    (expression,) = ast.parse(f"dict({written})").body
    assert isinstance(expression, ast.Expr) and isinstance(expression.value, ast.Call)
    return {str(each.arg): ast.literal_eval(each.value) for each in expression.value.keywords}
