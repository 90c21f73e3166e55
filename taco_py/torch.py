"""`tp.torch`: texts as functions of torch's tensors, with gradients.

layer = tp.torch.function("H[i,k] = max(A[i,j] * X[j,k] + b[k], 0)", A=A)
H = layer(X=X, b=b)         X and b with requires_grad; H.sum().backward()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.api.evaluate import evaluate
from taco_py.arguments.option_checks import merged
from taco_py.calls.call.derivatives.pullback import Pullback
from taco_py.calls.call.derivatives.text_derivatives import vjp
from taco_py.language.diagnostics.errors import DerivativeError, OperandTypeError
from taco_py.language.diagnostics.extras import library


class TorchFunction:
    """Compute a text of torch's tensors, in their memory, and its gradients where they want one."""

    def __init__(self, text: str, fixed: Mapping[str, Any]) -> None:
        self.text = text
        self.fixed = dict(fixed)
        self._pullbacks: dict[tuple[object, ...], Pullback] = {}
        self._function: Any = None

    def __call__(self, tensors: Mapping[str, Any] | None = None, /, **by_name: Any) -> Any:
        """Return the tensor that a text makes of dense tensors of the CPU, by their names."""
        torch = library("torch", "torch")
        operands = merged(tensors, by_name)
        for name, tensor in operands.items():
            if (
                not isinstance(tensor, torch.Tensor)
                or tensor.layout != torch.strided
                or tensor.is_cuda
            ):
                raise OperandTypeError(
                    f"Expected dense tensors of torch on the CPU, found {name} of "
                    f"{type(tensor).__name__}",
                    hint="pass sparse and other operands to tp.torch.function",
                )
        if self._function is None:
            self._function = _function_of(torch, self)
        return self._function.apply(tuple(operands), *operands.values())

    def forward(self, arrays: Mapping[str, Any]) -> Any:
        """Return the array that the text makes."""
        result = evaluate(self.text, {**self.fixed, **arrays})
        return result.toarray() if hasattr(result, "toarray") else np.asarray(result)

    def backward(self, arrays: Mapping[str, Any], wrt: tuple[str, ...], cotangent: Any) -> Any:
        """Return the cotangents of operands; their statements are made once for each kinds."""
        objects = {**self.fixed, **arrays}
        key = (wrt, tuple((name, array.dtype, array.ndim) for name, array in arrays.items()))
        if key not in self._pullbacks:
            self._pullbacks[key] = vjp(self.text, objects, wrt=wrt)
        pullback = self._pullbacks[key]
        return replace(pullback, source=replace(pullback.source, objects=objects))(cotangent)


def _function_of(torch: Any, text: TorchFunction) -> Any:
    """Make the class that torch calls forward and backward."""

    class FirstDerivative(torch.autograd.Function):  # type: ignore[misc, name-defined, unused-ignore]
        @staticmethod
        def forward(ctx: Any, gradient: Any) -> Any:
            return gradient.clone()

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            raise DerivativeError(
                "Expected one derivative of a text in torch, found a second one",
                hint="tp.vjp of the text of a derivative computes it",
            )

    class Text(torch.autograd.Function):  # type: ignore[misc, name-defined, unused-ignore]
        @staticmethod
        def forward(ctx: Any, names: tuple[str, ...], *tensors: Any) -> Any:
            ctx.names = names
            ctx.save_for_backward(*tensors)
            arrays = {n: tensor.detach().numpy() for n, tensor in zip(names, tensors, strict=True)}
            return torch.from_numpy(text.forward(arrays))

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            tensors = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
            needs = dict(zip(ctx.names, ctx.needs_input_grad[1:], strict=True))
            wrt = tuple(name for name, need in needs.items() if need)
            arrays = {name: tensor.detach().numpy() for name, tensor in tensors.items()}
            cotangents = text.backward(arrays, wrt, cotangent.detach().numpy())
            pairs = zip(wrt, cotangents, strict=True)
            gradients = {name: torch.from_numpy(np.asarray(g)) for name, g in pairs}
            if torch.is_grad_enabled():  # somebody may differentiate what this computes
                apply = FirstDerivative.apply
                gradients = {name: apply(g.requires_grad_()) for name, g in gradients.items()}
            return (None, *(gradients.get(name) for name in ctx.names))

    return Text


def function(
    text: str, operands: Mapping[str, Any] | None = None, /, **by_name: Any
) -> TorchFunction:
    """Return a text as a function of torch's tensors, which autograd differentiates.

    operands, named  what is no tensor of torch, or has no gradient: scipy.sparse matrices, arrays

    Nothing is copied: tensors are read in place. Raises OperandTypeError for tensors that are
    sparse or on a device, MissingExtraError without torch.
    """
    return TorchFunction(text, merged(operands, by_name))
