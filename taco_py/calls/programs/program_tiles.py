"""What `tiles=` of a program may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.operands import format_number
from taco_py.arguments.option_checks import integer
from taco_py.compiler.affine.nodes import LARGEST_SIZE
from taco_py.language.diagnostics.errors import OperandTypeError

Tiles = int | tuple[int, ...] | Mapping[str, int] | str | None


@dataclass(frozen=True, slots=True)
class TileSizes:
    """Tiles of these sizes, None for the model's choice, () for none.

    loops   those that are tiled, by name; () for the bands of loops that are found
    """

    sizes: tuple[int, ...] | None = None
    loops: tuple[str, ...] = ()

    @property
    def by_loop(self) -> dict[str, int]:
        """Return the sizes by loop, where loops are named."""
        return dict(zip(self.loops, self.sizes or (), strict=False))


def read_tiles(tiles: Any) -> TileSizes:
    """Read the sizes of tiles that a caller asks for. Raises OperandTypeError."""
    if tiles is None:
        return TileSizes(())
    if isinstance(tiles, str) and tiles == "auto":
        return TileSizes()
    by_loop = tiles if isinstance(tiles, Mapping) else {}
    sizes = tuple(by_loop.values()) or (tiles if isinstance(tiles, tuple | list) else (tiles,))
    integers = tuple(integer(size) for size in sizes)
    texts = all(isinstance(name, str) for name in by_loop)
    if not integers or not texts or any(size is None or size < 1 for size in integers):
        raise OperandTypeError(
            f'Expected tiles="auto", None, or positive sizes, found {tiles!r}',
            hint='as in tiles=(8, 32, 256), from the outermost loop on, or tiles={"i": 32, "j": 8}',
        )
    large = [size for size in integers if size is not None and size > LARGEST_SIZE]
    if large:
        raise OperandTypeError(f"Expected tiles= of at most 2^31, found {format_number(large[0])}")
    return TileSizes(tuple(size for size in integers if size is not None), tuple(by_loop))
