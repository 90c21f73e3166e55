"""`tp.jvp`: a text's operands and what computes the tangents of its outputs from those of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.calls.call.derivatives.derivative import Derivative
from taco_py.calls.call.derivatives.differentiated_text import DifferentiatedText
from taco_py.calls.call.derivatives.run_statements import turns_of
from taco_py.language.autodiff.forward_mode import Forwarder, Tangents
from taco_py.language.autodiff.needed_statements import statements_for
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.diagnostics.suggest import with_suggestion


@dataclass(frozen=True, slots=True, eq=False)
class Pushforward(Derivative):
    """Compute the tangents of outputs, from those of operands: v ↦ J v.

    >>> A = sp.csr_array([[2.0, 0.0], [0.0, 3.0]])
    >>> pushforward = tp.jvp("y[i] = A[i,j] * x[j]", A=A, x=np.ones(2), wrt="x")
    >>> pushforward(x=np.array([1.0, 10.0]))
    array([ 2., 30.])
    >>> print(pushforward.text)
    t_y[i] = sum(j_1, A[i,j_1] * t_x[j_1])
    """

    statements: Tangents

    def __call__(self, tangents: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        """Return the tangents of the outputs: a tuple, or one where the text has one output.

        tangents, named  of each operand in `wrt`, of its shape
        """
        objects = self._objects({**(tangents or {}), **named})
        values = {**objects, **self.run(objects)}
        names = (self.statements.tangents[name] for name in self.source.outputs)
        pairs = zip(names, self.source.targets(), strict=True)
        results = tuple(
            values[name] if name else np.zeros(self.source.shape(target.tensor))[()]
            for name, target in pairs
        )
        return results if len(results) > 1 else results[0]

    def explain(self, tangents: Mapping[str, Any] | None = None, /, **named: Any) -> str:
        """Return the report on the computation of the tangents, as `tp.explain` gives it."""
        return self.explained(self._objects({**(tangents or {}), **named}))

    @property
    def results(self) -> tuple[str, ...]:
        """Return the names of the tangents of outputs; that of what is added to is one."""
        return tuple(name for name in self.statements.tangents.values() if name)

    @property
    def shapes(self) -> dict[str, Any]:
        """Return the shapes that the call specifies for scatter targets, and for their tangents."""
        said = self.source.shapes
        tangents = self.statements.names
        return {**said, **{tangents[n]: shape for n, shape in said.items() if n in tangents}}

    def _objects(self, tangents: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operands of the statements."""
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
        for name, tangent in tangents.items():
            self.source.check_shape(tangent, name, "tangent", "an operand")
        seeds = {self.statements.seeds[name]: tangent for name, tangent in tangents.items()}
        return self.operands_with(seeds, self.statements.sizes)


def pushforward_of(
    source: DifferentiatedText, threads: int | None, memory_limit: int | None = None
) -> Pushforward:
    """Make the statements of the tangents. Raises DerivativeError."""
    forwarder = Forwarder(
        source.statements, source.outputs, source.wrt, source.sparse, source.dense,
        source.masks, source.is_complex,
    )  # fmt: skip
    statements = forwarder.forward()
    outputs = tuple(dict.fromkeys(name for name in statements.tangents.values() if name))
    turns = turns_of(statements_for(statements.statements, outputs), outputs)
    return Pushforward(source, turns, threads, memory_limit, statements)
