"""The level functions of each kind of level: a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codegen.ir import Array, Expr
from taco_py.compiler.levels.banded import Banded
from taco_py.compiler.levels.bitmap import Bitmap
from taco_py.compiler.levels.compressed import Compressed
from taco_py.compiler.levels.hashed import Hashed
from taco_py.compiler.levels.interval import IntervalLevel
from taco_py.compiler.levels.mirrored import Mirrored, Pair
from taco_py.compiler.levels.offset import Offset
from taco_py.compiler.levels.one_value import Pattern
from taco_py.compiler.levels.padded import Padded
from taco_py.compiler.levels.protocol import Above, Iterated, LevelStorage
from taco_py.compiler.levels.ragged import Ragged
from taco_py.compiler.levels.singleton import Singleton
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.formats.level_kind import ADDED_KINDS, LevelKind

LEVELS: Mapping[LevelKind, Callable[[LevelStorage, Above], Iterated]] = {
    LevelKind.COMPRESSED: lambda storage, above: Compressed(
        _array(storage.pos), _array(storage.crd)
    ),
    LevelKind.SINGLETON: lambda storage, above: Singleton(_array(storage.crd)),
    LevelKind.RAGGED: lambda storage, above: Ragged(_array(storage.pos), _value(above.parent)),
    LevelKind.BANDED: lambda storage, above: Banded(
        _array(storage.pos), _array(storage.crd), _value(above.parent)
    ),
    LevelKind.BITMAP: lambda storage, above: Bitmap(
        _array(storage.crd), _value(above.parent), _value(above.size)
    ),
    LevelKind.HASHED: lambda storage, above: Hashed(_array(storage.pos), _array(storage.crd)),
    LevelKind.PADDED: lambda storage, above: Padded(_array(storage.crd)),
    LevelKind.OFFSET: lambda storage, above: Offset(
        _array(storage.crd),
        _value(above.coordinate),
        _value(above.grand),
        _value(above.size),
        above.full,
    ),
    LevelKind.PATTERN: lambda storage, above: Pattern(_array(storage.pos), _array(storage.crd)),
    LevelKind.PAIR: lambda storage, above: Pair(_value(above.parent)),
    LevelKind.MIRRORED: lambda storage, above: Mirrored(
        _value(above.path[0]),
        _value(above.path[1]),
        _value(above.path[2]),
        first=len(above.path) == 3,
    ),
    LevelKind.INTERVAL: lambda storage, above: IntervalLevel(
        _array(storage.pos), _array(storage.crd), _value(above.parent)
    ),
}


def functions_of(kind: LevelKind, storage: LevelStorage, above: Above) -> Iterated:
    """Return the level functions of a level of a kind, at one point."""
    functions = LEVELS.get(kind)
    level: Iterated = (functions or ADDED_KINDS.functions(kind))(storage, above)
    return level


def _array(array: Array | None) -> Array:
    if array is None:
        raise InternalError("An array of a level is asked for that its kind does not have")
    return array


def _value(value: Expr | None) -> Expr:
    if value is None:
        raise InternalError("A level is walked before what is above it is known")
    return value
