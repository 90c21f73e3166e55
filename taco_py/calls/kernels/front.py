"""How the operands of a kernel's plan are made of those that users pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from taco_py.calls.statements.read_text import CheckedStatement

Recipe = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments."""


class Front(Protocol):
    """What a kernel does before its plan runs: it makes operands, for subscripts or of blocks."""

    @property
    def read(self) -> Sequence[CheckedStatement]:
        """Return the statements of the text."""

    @property
    def recipe(self) -> Recipe:
        """Return the function that compiles the kernel again, and its arguments."""

    @property
    def kernels(self) -> Iterable[Any]:
        """Return the kernels over operands that are made, which calls have needed so far."""

    @property
    def stored(self) -> Mapping[str, tuple[str, str]]:
        """Return the format and the dtype of each operand, as text."""

    @property
    def notes(self) -> Sequence[str]:
        """Return lines of explain() about the operands that are made."""

    def call(self, objects: dict[str, Any], out: Any, options: Mapping[str, Any]) -> Any:
        """Compute the results of a call."""

    def plain(self, objects: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the kernel for these operands, and the operands that it takes."""
