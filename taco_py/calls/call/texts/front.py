"""How the operands of a kernel's plan are made of those that users pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from taco_py.calls.call.draft import CompileArguments
from taco_py.calls.statements.read_text import Understood

if TYPE_CHECKING:
    from taco_py.calls.call.kernel import Kernel


class Front(Protocol):
    """What a kernel does before its plan runs: it makes operands, for subscripts or of blocks.

    kernels  those over the operands that calls have needed so far
    """

    @property
    def read(self) -> Sequence[Understood]:
        """Return the statements of the text."""

    @property
    def arguments(self) -> CompileArguments:
        """Return what the text was compiled for."""

    @property
    def kernels(self) -> Iterable[Kernel]:
        """Return the kernels over operands that are made."""

    @property
    def stored(self) -> Mapping[str, tuple[str, str]]:
        """Return the format and the dtype of each operand, as text."""

    @property
    def notes(self) -> Sequence[str]:
        """Return lines of explain() about the operands that are made."""

    def call(self, objects: dict[str, Any], out: Any, options: Mapping[str, Any]) -> Any:
        """Compute the results of a call."""

    def plain(self, objects: Mapping[str, Any]) -> tuple[Kernel, dict[str, Any]]:
        """Return the kernel for these operands, and the operands that it takes."""
