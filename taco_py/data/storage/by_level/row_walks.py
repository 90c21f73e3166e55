"""How levels of each kind are walked row by row, as C."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.records import dataclass
from taco_py.language.formats import LevelKind


@dataclass(frozen=True, slots=True)
class Walk:
    """How a level of one kind is walked, in C; {k} is the level, {a} the one above.

    find  where the coordinate c{k} of a row is known; "next" leaves what is below out
    loop  the loop over its coordinates, "" where it has one at most, and what gives c{k} and q{k}
    """

    find: str = ""
    loop: tuple[str, str] = ("", "")


_SEGMENT = "for (int64_t t{k} = pos{k}[q{a}]; t{k} < pos{k}[q{a} + 1]; t{k}++)"
WALKS: Mapping[LevelKind, Walk] = {
    LevelKind.DENSE: Walk(
        "const int64_t q{k} = q{a} * size{k} + c{k};",
        (
            "for (int64_t c{k} = 0; c{k} < size{k}; c{k}++)",
            "const int64_t q{k} = q{a} * size{k} + c{k};",
        ),
    ),
    LevelKind.COMPRESSED: Walk(
        loop=(_SEGMENT, "const int64_t q{k} = t{k}, c{k} = crd{k}[t{k}];"),
    ),
    LevelKind.RAGGED: Walk(
        loop=(_SEGMENT, "const int64_t q{k} = t{k}, c{k} = t{k} - pos{k}[q{a}];"),
    ),
    LevelKind.BANDED: Walk(
        "const int64_t q{k} = pos{k}[q{a}] + c{k} - crd{k}[q{a}];\n"
        "if (c{k} < crd{k}[q{a}] || q{k} >= pos{k}[q{a} + 1]) continue;",
        (_SEGMENT, "const int64_t q{k} = t{k}, c{k} = t{k} - pos{k}[q{a}] + crd{k}[q{a}];"),
    ),
    LevelKind.BITMAP: Walk(
        "const int64_t q{k} = q{a} * size{k} + c{k};\n"
        "if (!((uint64_t)crd{k}[q{a} * ((size{k} + BITS - 1) / BITS) + c{k} / BITS]"
        " >> c{k} % BITS & 1)) continue;",
    ),
    LevelKind.PADDED: Walk(
        loop=("", "const int64_t q{k} = q{a}, c{k} = crd{k}[q{k}];\nif (c{k} < 0) continue;"),
    ),
    LevelKind.OFFSET: Walk(
        loop=("", "const int64_t q{k} = q{a}, c{k} = (int64_t)crd{k}[q{g}] + c{a};"),
    ),
    LevelKind.INTERVAL: Walk(
        loop=(
            "for (int64_t t{k} = pos{k}[q{a}]; t{k} < crd{k}[q{a}]; t{k}++)",
            "const int64_t q{k} = q{a}, c{k} = t{k};",
        ),
    ),
}
"""How levels of each kind are walked."""
