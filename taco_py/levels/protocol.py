"""The protocol of levels that are iterated by position."""

from __future__ import annotations

from typing import Protocol

from codegen.ir import Array, Expr, Stmt
from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class LevelStorage:
    """The index arrays of one level of one tensor; None where its kind has none."""

    pos: Array | None = None
    crd: Array | None = None


class Iterated(Protocol):
    """A level whose stored coordinates are met position by position.

    branchless: exactly one position below each parent position, so that no loop is needed.
    """

    @property
    def branchless(self) -> bool: ...

    def bounds(self, parent: Expr) -> tuple[Expr, Expr]:
        """The first position below `parent` and the one behind the last."""
        ...

    def coordinate(self, position: Expr) -> Expr:
        """The coordinate stored at `position`."""
        ...

    def append(self, position: Expr, coordinate: Expr) -> Stmt:
        """Store `coordinate` at `position`, which is behind all others so far."""
        ...
