"""What `tp.vjp` and `tp.jvp` give: statements over the operands of a text, run when called."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from codegen.records import dataclass
from taco_py.calls.call.derivatives.differentiated_text import DifferentiatedText
from taco_py.calls.call.derivatives.run_statements import Turn, explain_statements, run_statements
from taco_py.data.kernels import KERNELS
from taco_py.language.autodiff.differentiation import Place
from taco_py.language.autodiff.needed_statements import names_of
from taco_py.language.notation.printer import to_text


@dataclass(frozen=True, slots=True, eq=False)
class Derivative:
    """Statements that compute derivatives of a text, in the turns in which they run."""

    source: DifferentiatedText
    turns: tuple[Turn, ...]
    threads: int | None
    memory_limit: int | None

    @property
    def wrt(self) -> tuple[str, ...]:
        """Return the operands by which the text is differentiated, in order."""
        return self.source.wrt

    @property
    def results(self) -> tuple[str, ...]:
        """Return the names of requested results that need not be computed."""
        return ()

    @property
    def text(self) -> str:
        """Return the statements that run, as index notation."""
        return "\n".join(to_text(statement) for part, _ in self.turns for statement in part)

    def operands_with(self, more: Mapping[str, Any], sizes: Mapping[str, Place]) -> dict[str, Any]:
        """Return the operands of the statements: those of the text, more, and sizes of modes."""
        objects = {**self.source.objects, **more}
        for name, (tensor, mode) in sizes.items():
            objects[name] = self.source.shape(tensor)[mode]
        read = {name for part, _ in self.turns for s in part for name in names_of(s)}
        read |= {*self.results}
        return {name: operand for name, operand in objects.items() if name in read}

    def run(self, objects: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the statements of operands; these and what was computed, by name."""
        shapes = self.shapes
        items = tuple(shapes.items())
        source, limit = self.source, self.memory_limit
        statements = self.text if source.rewritten else source.text
        identity = (type(self).__name__, statements, source.outputs, self.wrt, items, source.border)
        with nullcontext() if limit is None else KERNELS.memory.restricted_to(limit):
            return run_statements(
                self.turns, objects, self.threads, identity, shapes, source.border
            )

    @property
    def shapes(self) -> dict[str, Any]:
        """Return the shapes that the call specifies for scatter targets, by name."""
        return dict(self.source.shapes)

    def explained(self, objects: Mapping[str, Any]) -> str:
        """Describe the computation of the statements."""
        border = self.source.border
        return explain_statements(self.turns, objects, self.threads, self.shapes, border)
