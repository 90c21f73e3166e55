"""`add_level_kind`: kinds of levels of users' own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats.level_kind import ADDED_KINDS, LevelKind

if TYPE_CHECKING:
    from taco_py.compiler.levels.protocol import Above, Iterated, LevelStorage
    from taco_py.data.storage.by_level.level_packing import LevelPacking


def add_level_kind(
    kind: LevelKind,
    packing: LevelPacking,
    functions: Callable[[LevelStorage, Above], Iterated],
) -> LevelKind:
    """Add a kind of levels: formats may have its letter then, in calls and in conversions.

    >>> from taco_py.compiler.levels.ragged import Ragged
    >>> from taco_py.data.storage.by_level.kinds_packed import PACKINGS
    >>> kind = tp.LevelKind("list of any length", "z", ("pos",))
    >>> made = tp.add_level_kind(
    ...     kind, PACKINGS[tp.LevelKind.RAGGED], lambda own, above: Ragged(own.pos, above.parent)
    ... )
    >>> tp.tensor([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]], format="dz").nnz
    3

    kind       its name, its letter and what is true of its levels
    packing    how coordinates are stored, and listed again
    functions  what kernels do: a function of the arrays of a level and of what is above it, which
               returns its bounds, coordinates and so on as expressions of codegen

    Returns the kind. docs/formats.md has an example. Raises FormatError where there is such a name
    or letter, or something is missing.
    """
    if not isinstance(kind, LevelKind):
        raise FormatError(
            f"Expected a LevelKind, found {type(kind).__name__}",
            hint='as in tp.LevelKind("triangle", "t", arrays=())',
        )
    required = ("pack", "listed", "count", "check", "in_order")
    missing = [name for name in required if not hasattr(packing, name)]
    if missing:
        raise FormatError(
            f"Expected a packing with {', '.join(required)}, found none of {', '.join(missing)}",
            hint="those of taco_py/data/storage/by_level/kinds_packed.py are examples",
        )
    if not callable(functions):
        raise FormatError(
            f"Expected a function that returns what kernels do, found {type(functions).__name__}",
            hint="those of taco_py/compiler/levels/kinds.py are examples",
        )
    ADDED_KINDS.add(kind, packing, functions)
    return kind
