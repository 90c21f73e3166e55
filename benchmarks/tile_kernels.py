"""Dense kernels whose loops are tiled: drawn texts, sizes and operands.

    draw_kernel(0)   →   TiledKernel("y[i,j] = A[i,k] * B[k,j]", i 300, k 250, j 400, loops i,k,j)

A number draws the same kernel on every machine: products of matrices, of tensors, batched ones,
MTTKRP, convolutions, transposes.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

TEXTS: tuple[tuple[str, str], ...] = (
    ("y[i,j] = A[i,k] * B[k,j]", "ikj"),
    ("y[i,j] = A[i,k] * B[k,j]", "ikj"),
    ("y[i,j] = A[i,k] * B[k,j]", "ijk"),
    ("y[i,j] = A[k,i] * B[k,j]", "kij"),
    ("y[i,j] = A[i,k] * B[j,k]", "ijk"),
    ("y[i,j,l] = A[i,j,k] * B[k,l]", "ijkl"),
    ("y[i,l] = A[i,j,k] * B[j,l] * C[k,l]", "ijkl"),
    ("y[b,i,j] = A[b,i,k] * B[b,k,j]", "bikj"),
    ("y[i,j] = A[i+a,j+c] * K[a,c]", "iacj"),
    ("y[i,j] = A[i+a,j] * K[a]", "iaj"),
    ("y[o,i,j] = A[k,i+a,j+c] * K[o,k,a,c]", "oikacj"),
    ("y[j,i] = A[i,j]", "ij"),
    ("y[i,j] = A[j,i] * B[i,j]", "ij"),
)
"""Texts, and the order of their loops inside a tile."""
RANGES: dict[str, tuple[int, int]] = {
    "a": (2, 8), "c": (2, 8), "b": (2, 33), "l": (16, 129), "o": (4, 33),
}  # fmt: skip
"""Sizes of windows, batches and factors; others are drawn so that all make a volume."""
VOLUMES = {2: (1e6, 1e7)}
"""Least and most iterations of a kernel by its number of loops."""
USUAL_VOLUMES = (3e6, 4e7)
LEAST_TILED = 16
"""Iterations from which on a loop may be tiled."""
MOST_TILED = 4


@dataclass(frozen=True)
class TiledKernel:
    """A text with its operands, and the loops that tiles are of.

    sizes   of each index
    loops   outermost first
    tiled   the loops that may be tiled
    digest  of text, sizes and type
    """

    number: int
    text: str
    sizes: dict[str, int]
    loops: str
    tiled: str
    operands: dict[str, Any]
    digest: str

    @property
    def item(self) -> int:
        """Return the bytes of an element."""
        return int(next(iter(self.operands.values())).itemsize)


def draw_kernel(number: int) -> TiledKernel:
    """Draw the kernel of a number."""
    rng = np.random.default_rng((7, number))
    text, loops = TEXTS[number % len(TEXTS)]
    sizes = _sizes(rng, loops)
    dtype = str(rng.choice(["float64", "float32"]))
    operands = {
        name: rng.random(tuple(_extent(mode, sizes) for mode in modes.split(","))).astype(dtype)
        for name, modes in re.findall(r"(\w)\[([^\]]+)\]", text.split("=")[1])
    }
    long = [loop for loop in loops if sizes[loop] >= LEAST_TILED]
    tiled = "".join(long[-MOST_TILED:])
    words = f"{text} {loops} {sorted(sizes.items())} {dtype}"
    digest = hashlib.sha256(words.encode()).hexdigest()[:16]
    return TiledKernel(number, text, sizes, loops, tiled, operands, digest)


def _sizes(rng: np.random.Generator, loops: str) -> dict[str, int]:
    """Draw sizes whose product is within bounds."""
    sizes = {loop: int(rng.integers(*RANGES[loop])) for loop in loops if loop in RANGES}
    free = [loop for loop in loops if loop not in RANGES]
    low, high = np.log(VOLUMES.get(len(loops), USUAL_VOLUMES))
    volume = np.exp(rng.uniform(low, high)) / prod(sizes.values())
    shares = rng.dirichlet([15.0] * len(free))
    for loop, share in zip(free, shares, strict=True):
        sizes[loop] = int(np.clip(volume**share, LEAST_TILED, 6000))
    return sizes


def _extent(mode: str, sizes: dict[str, int]) -> int:
    """Return the size of a mode that is read at a sum of indices."""
    return sum(sizes[index] for index in mode.split("+")) - mode.count("+")


def schedule_text(kernel: TiledKernel, tile: tuple[int, ...]) -> str:
    """Return the commands for a tile: loops over tiles, in the order of the loops inside them."""
    order = f"reorder({','.join(kernel.loops)})"
    pairs = zip(kernel.tiled, tile, strict=True)
    cut = {loop: size for loop, size in pairs if size < kernel.sizes[loop]}
    splits = [f"split({loop},{loop}_o,{loop}_i,{size})" for loop, size in cut.items()]
    if not splits:
        return order
    outside = [f"{loop}_o" for loop in cut]
    inside = [f"{loop}_i" if loop in cut else loop for loop in kernel.loops]
    return ", ".join((order, *splits, f"reorder({','.join((*outside, *inside))})"))


def tile_of(kernel: TiledKernel, plan: str) -> tuple[int, ...]:
    """Return the tile that the text of a plan has."""
    cut = dict(re.findall(r"split\((\w),\w_o,\w_i,(\d+)\)", plan))
    return tuple(int(cut.get(loop, kernel.sizes[loop])) for loop in kernel.tiled)
