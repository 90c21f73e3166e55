"""`tp.vjp`: a text's operands and what computes their cotangents from those of its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.calls.call.derivatives.derivative import Derivative
from taco_py.calls.call.derivatives.differentiated_text import DifferentiatedText, like, zeros_like
from taco_py.calls.call.derivatives.run_statements import turns_of
from taco_py.data.tensors.traced_operands import is_traced
from taco_py.language.autodiff.needed_statements import statements_for
from taco_py.language.autodiff.reverse_mode import Cotangents, Reverser
from taco_py.language.diagnostics.errors import OperandError


@dataclass(frozen=True, slots=True, eq=False)
class Pullback(Derivative):
    """Compute the cotangents of operands, from those of outputs: v ↦ vᵀ J.

    >>> A = sp.csr_array([[2.0, 0.0], [0.0, 3.0]])
    >>> pullback = tp.vjp("y[i] = A[i,j] * x[j]", A=A, x=np.ones(2))
    >>> pullback.wrt
    ('A', 'x')
    >>> d_A, d_x = pullback(np.array([1.0, 10.0]))
    >>> d_x
    array([ 2., 30.])
    """

    statements: Cotangents

    def __call__(self, *cotangents: Any) -> Any:
        """Return the cotangents of the operands: a tuple, or one where a name was asked for.

        cotangents  one for each output, of its shape; 1.0 where left out and the output is a number
        """
        seeds = self._seeds(cotangents)
        values = seeds | self.run(self._objects(seeds))
        results = tuple(self._result(name, values) for name in self.wrt)
        return results[0] if self.source.alone else results

    def explain(self, *cotangents: Any) -> str:
        """Return the report on the computation of the cotangents, as `tp.explain` gives it."""
        return self.explained(self._objects(self._seeds(cotangents)))

    # ------------------------------------------------------------ one call

    def _objects(self, seeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operands of the statements, given the cotangents of outputs."""
        zeros = {
            cotangent: zeros_like(self.source.objects[name])
            for cotangent, name in self.statements.scattered.items()
        }
        return self.operands_with({**seeds, **zeros}, self.statements.sizes)

    def _seeds(self, cotangents: Sequence[Any]) -> dict[str, Any]:
        """Return the cotangents of outputs by their names in the statements."""
        seeds = self.statements.seeds
        if not cotangents and not any(target.modes for target in self.source.targets()):
            cotangents = (1.0,) * len(seeds)
        if len(cotangents) != len(seeds):
            raise OperandError(
                f"Expected a cotangent for each output, {', '.join(seeds)}, found "
                f"{len(cotangents)}",
                hint="as in tp.vjp(text, …)(dy), of the shape of y; a number may be left out",
            )
        for name, cotangent in zip(self.source.outputs, cotangents, strict=True):
            self.source.check_shape(cotangent, name, "cotangent", "an output")
        return dict(zip(seeds.values(), cotangents, strict=True))

    def _result(self, name: str, values: Mapping[str, Any]) -> Any:
        """Return the cotangent of an operand, in its type."""
        cotangent = self.statements.cotangents[name]
        operand, value = self.source.objects[name], values[cotangent] if cotangent else None
        if value is not None and np.shape(value) != np.shape(operand):
            value = summed_to_shape(value, np.shape(operand))
        if value is not None and np.shape(value) != np.shape(operand):
            raise OperandError(
                f"Expected a cotangent of shape {np.shape(operand)} for {name}, found one of shape "
                f"{np.shape(value)}",
                hint="the cotangent of an output has its shape",
            )
        return like(operand, value)


def summed_to_shape(value: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the modes of size 1 in which its operand was stretched.

    y[i] = x[i] * c[i], c of size 1   →   the cotangent of c is the sum over all i

    A mode that nothing stretched, over which the text sums alone, is repeated.
    """
    if len(shape) != np.ndim(value):
        return value
    for method in () if is_traced(value) else ("to_host", "to_numpy", "toarray"):
        value = getattr(value, method)() if hasattr(value, method) else value
    stretched = tuple(
        axis for axis, size in enumerate(shape) if size == 1 and value.shape[axis] > 1
    )
    value = value.sum(stretched, keepdims=True) if stretched else value
    fits = all(have in (1, size) for have, size in zip(value.shape, shape, strict=True))
    return value if value.shape == shape or not fits else np.broadcast_to(value, shape)


def pullback_of(
    source: DifferentiatedText, threads: int | None, memory_limit: int | None = None
) -> Pullback:
    """Make the statements of the cotangents. Raises DerivativeError."""
    reverser = Reverser(
        source.statements, source.outputs, source.wrt, source.sparse, source.dense,
        source.masks, source.is_complex,
    )  # fmt: skip
    statements = reverser.cotangents()
    seeds = {*statements.seeds.values()}
    names = dict.fromkeys(statements.cotangents[name] for name in source.wrt)
    outputs = tuple(name for name in names if name and name not in seeds)
    turns = turns_of(statements_for(statements.statements, outputs), outputs)
    return Pullback(source, turns, threads, memory_limit, statements)
