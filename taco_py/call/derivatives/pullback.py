"""`tp.vjp`: a text's operands and what computes their cotangents from those of its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.autodiff.needed_statements import names_of, needed
from taco_py.autodiff.reverse_mode import Reversed, Reverser
from taco_py.call.derivatives.run_statements import (
    Turn,
    explain_statements,
    run_statements,
    turns_of,
)
from taco_py.call.derivatives.wanted import Differentiated, like
from taco_py.diagnostics.errors import OperandError
from taco_py.notation.printer import to_text


@dataclass(frozen=True, slots=True, eq=False)
class Pullback:
    """Compute the cotangents of operands, from those of outputs: v ↦ vᵀ J.

    >>> A = sp.csr_array([[2.0, 0.0], [0.0, 3.0]])
    >>> pullback = tp.vjp("y[i] = A[i,j] * x[j]", A=A, x=np.ones(2))
    >>> pullback.wrt
    ('A', 'x')
    >>> d_A, d_x = pullback(np.array([1.0, 10.0]))
    >>> d_x
    array([ 2., 30.])
    """

    source: Differentiated
    made: Reversed
    turns: tuple[Turn, ...]
    options: tuple[Any, ...]

    @property
    def wrt(self) -> tuple[str, ...]:
        """Return the operands whose cotangents are computed, in order."""
        return self.source.wrt

    @property
    def text(self) -> str:
        """Return the statements that compute them, as index notation."""
        return "\n".join(to_text(each) for part, _ in self.turns for each in part)

    def __call__(self, *cotangents: Any) -> Any:
        """Return the cotangents of the operands: a tuple, or one where a name was asked for.

        cotangents  one for each output, of its shape; 1.0 where left out and the output is a number
        """
        identity = ("vjp", self.source.text, self.source.outputs, self.wrt)
        objects = self._objects(cotangents)
        found = self._seeds(cotangents) | run_statements(
            self.turns, objects, self.options, identity
        )
        results = tuple(self._result(name, found) for name in self.wrt)
        return results[0] if self.source.alone else results

    def explain(self, *cotangents: Any) -> str:
        """Return what computes the cotangents, as `tp.explain` has it."""
        return explain_statements(self.turns, self._objects(cotangents), self.options)

    # ------------------------------------------------------------ one call

    def _objects(self, cotangents: Sequence[Any]) -> dict[str, Any]:
        """The operands of the statements."""
        objects = {**self.source.objects, **self._seeds(cotangents)}
        for cotangent, name in self.made.scattered.items():
            objects[cotangent] = np.zeros(self.source.shape(name), self.source.dtype(name))
        for name, (tensor, mode) in self.made.sizes.items():
            objects[name] = self.source.shape(tensor)[mode]
        read = {name for part, _ in self.turns for each in part for name in names_of(each)}
        return {name: each for name, each in objects.items() if name in read}

    def _seeds(self, cotangents: Sequence[Any]) -> dict[str, Any]:
        """The cotangents of outputs by their names in the statements."""
        seeds = self.made.seeds
        if not cotangents and not any(each.modes for each in self.source.targets()):
            cotangents = (1.0,) * len(seeds)
        if len(cotangents) != len(seeds):
            raise OperandError(
                f"Expected a cotangent for each output, {', '.join(seeds)}, found "
                f"{len(cotangents)}",
                hint="as in tp.vjp(text, …)(dy), of the shape of y; a number may be left out",
            )
        return dict(zip(seeds.values(), cotangents, strict=True))

    def _result(self, name: str, given: Mapping[str, Any]) -> Any:
        """The cotangent of an operand, in its type."""
        cotangent = self.made.cotangents[name]
        value = given[cotangent] if cotangent else None
        return like(self.source.objects[name], value)


def pullback_of(source: Differentiated, options: tuple[Any, ...]) -> Pullback:
    """Make the statements of the cotangents. Raises DerivativeError."""
    reverser = Reverser(
        source.statements, source.outputs, source.wrt, source.sparse, source.dense,
        source.is_complex,
    )  # fmt: skip
    made = reverser.reversed()
    seeds = {*made.seeds.values()}
    names = dict.fromkeys(made.cotangents[name] for name in source.wrt)
    outputs = tuple(name for name in names if name and name not in seeds)
    turns = turns_of(needed(made.statements, outputs), outputs)
    return Pullback(source, made, turns, options)
