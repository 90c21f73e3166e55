"""Python's operators and NumPy's functions of a Tensor: errors that say what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from taco_py.diagnostics.errors import OperandTypeError

_PRODUCT = (
    'write tp.einsum("ij,j->i", T, x) or tp.evaluate("y[i] = T[i,j] * x[j]", T=T, x=x), or take '
    "T.to_scipy() @ x"
)
_ELEMENTWISE = (
    'write tp.evaluate("C[i,j] = A[i,j] {0} B[i,j]", A=A, B=B), or convert operands first with '
    ".to_scipy() or .to_numpy()"
)
_SIGN = 'write tp.evaluate("C[i,j] = {}A[i,j]", A=A), or convert it first with .to_scipy()'
_POWER = 'write tp.evaluate("C[i,j] = A[i,j]**2", A=A), or convert it first with .to_scipy()'
_FUNCTION = (
    "apply it to an array, .to_numpy(), or to the stored values alone: c, v = T.to_coo(); "
    "tp.Tensor.from_coo(c, f(v), T.shape, axis=1)"
)
_COMPARISON = "compare arrays: .to_numpy() or .to_scipy()"
_ELEMENTS = "take elements of an array: .to_numpy()[…] or .to_scipy()[…]"

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "matmul": "@", "pow": "**",
    "floordiv": "//", "mod": "%",
}  # fmt: skip
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNARY = {
    "neg": ("-", _SIGN.format("-")), "pos": ("+", _SIGN.format("+")), "abs": ("abs()", _FUNCTION),
}  # fmt: skip
_REDUCTIONS = ("sum", "mean", "prod", "trace", "dot", "matmul", "einsum", "tensordot")


def _refusal(what: str, hint: str) -> OperandTypeError:
    return OperandTypeError(
        f"Expected an array for {what}, found a Tensor, which has no operators", hint=hint
    )


def _binary_hint(symbol: str) -> str:
    if symbol in ("@", "**"):
        return _PRODUCT if symbol == "@" else _POWER
    return _ELEMENTWISE.format(symbol) if symbol in "+-*/" else _FUNCTION


class NoOperators:
    """Refuse operators, comparisons by order, subscripts and NumPy's functions, with the remedy."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> NoReturn:
        """Refused: NumPy's functions would make it dense, or an array of objects."""
        names = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "matmul": "@"}
        symbol = names.get(ufunc.__name__, "power" if ufunc.__name__ == "power" else "")
        if symbol == "power":
            raise _refusal("**", _POWER)
        raise _refusal(
            symbol or f"np.{ufunc.__name__}", _binary_hint(symbol) if symbol else _FUNCTION
        )

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        """Refused, as `__array_ufunc__` is."""
        name = function.__name__
        hint = _PRODUCT.replace("write", "sums and products:", 1)
        raise _refusal(f"np.{name}", hint if name in _REDUCTIONS else _FUNCTION)

    def __getitem__(self, _: Any) -> NoReturn:
        """Refused: Python would otherwise say that it has no subscripts, and no more."""
        raise _refusal("[…]", _ELEMENTS)


def _refused(what: str, hint: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any) -> NoReturn:
        raise _refusal(what, hint)

    return refuse


for _name, _symbol in _BINARY.items():
    for _prefix in ("", "r"):
        setattr(NoOperators, f"__{_prefix}{_name}__", _refused(_symbol, _binary_hint(_symbol)))
for _name, _symbol in _COMPARE.items():
    setattr(NoOperators, f"__{_name}__", _refused(_symbol, _COMPARISON))
for _name, (_symbol, _hint) in _UNARY.items():
    setattr(NoOperators, f"__{_name}__", _refused(_symbol, _hint))
