"""`tp.jvp`: a text's operands and what computes the tangents of its outputs from those of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.autodiff.forward_mode import Forward, Forwarder
from taco_py.autodiff.needed_statements import names_of, needed
from taco_py.call.derivatives.run_statements import (
    Turn,
    explain_statements,
    run_statements,
    turns_of,
)
from taco_py.call.derivatives.wanted import Differentiated
from taco_py.diagnostics.errors import OperandError
from taco_py.diagnostics.suggest import with_suggestion
from taco_py.notation.printer import to_text


@dataclass(frozen=True, slots=True, eq=False)
class Pushforward:
    """Compute the tangents of outputs, from those of operands: v ↦ J v.

    >>> A = sp.csr_array([[2.0, 0.0], [0.0, 3.0]])
    >>> pushforward = tp.jvp("y[i] = A[i,j] * x[j]", A=A, x=np.ones(2), wrt="x")
    >>> pushforward(x=np.array([1.0, 10.0]))
    array([ 2., 30.])
    >>> print(pushforward.text)
    t_y[i] = sum(j_1, A[i,j_1] * t_x[j_1])
    """

    source: Differentiated
    made: Forward
    turns: tuple[Turn, ...]
    options: tuple[Any, ...]

    @property
    def wrt(self) -> tuple[str, ...]:
        """Return the operands that may have tangents, in order."""
        return self.source.wrt

    @property
    def text(self) -> str:
        """Return the statements that compute the tangents, as index notation."""
        return "\n".join(to_text(each) for part, _ in self.turns for each in part)

    def __call__(self, tangents: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """Return the tangents of the outputs: a tuple, or one where the text has one output.

        tangents, named  of each operand in `wrt`, of its shape
        """
        identity = ("jvp", self.source.text, self.source.outputs, self.wrt)
        objects = self._objects({**(tangents or {}), **named})
        found = run_statements(self.turns, objects, self.options, identity)
        names = (self.made.tangents[name] for name in self.source.outputs)
        pairs = zip(names, self.source.targets(), strict=True)
        results = tuple(
            found[name] if name else np.zeros(self.source.shape(target.tensor))[()]
            for name, target in pairs
        )
        return results if len(results) > 1 else results[0]

    def explain(self, tangents: Mapping[str, Any] | None = None, /, **named: Any) -> str:
        """Return what computes the tangents, as `tp.explain` has it."""
        objects = self._objects({**(tangents or {}), **named})
        return explain_statements(self.turns, objects, self.options)

    def _objects(self, tangents: Mapping[str, Any]) -> dict[str, Any]:
        """The operands of the statements."""
        for name in tangents:
            if name not in self.wrt:
                raise OperandError(
                    f"Expected tangents of {', '.join(self.wrt)}, found one of {name!r}",
                    hint=with_suggestion("name it in wrt=", name, self.wrt),
                )
        missing = [name for name in self.wrt if name not in tangents]
        if missing:
            raise OperandError(
                f"Expected a tangent of each of {', '.join(self.wrt)}, found none of "
                f"{', '.join(missing)}",
                hint="leave operands without one out of wrt=",
            )
        objects = dict(self.source.objects)
        objects |= {self.made.seeds[name]: each for name, each in tangents.items()}
        for name, (tensor, mode) in self.made.sizes.items():
            objects[name] = self.source.shape(tensor)[mode]
        read = {name for part, _ in self.turns for each in part for name in names_of(each)}
        return {name: each for name, each in objects.items() if name in read}


def pushforward_of(source: Differentiated, options: tuple[Any, ...]) -> Pushforward:
    """Make the statements of the tangents. Raises DerivativeError."""
    forwarder = Forwarder(
        source.statements, source.outputs, source.wrt, source.sparse, source.dense,
        source.is_complex,
    )  # fmt: skip
    made = forwarder.forward()
    outputs = tuple(dict.fromkeys(name for name in made.tangents.values() if name))
    return Pushforward(source, made, turns_of(needed(made.statements, outputs), outputs), options)
