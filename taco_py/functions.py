"""The functions of texts as Python functions: of NumPy arrays, and of what `tp.function` traces.

from taco_py.functions import exp, where
tp.function("elu", lambda x: where(x > 0, x, exp(x) - 1))
exp(np.array([0.0, 1.0]))                                 # array([1.        , 2.71828183])
"""

from __future__ import annotations

from typing import Any

from taco_py.language.notation.functions.defined import DEFINED
from taco_py.language.notation.functions.function_table import ALIASES, COMPOSED, FUNCTIONS
from taco_py.language.notation.functions.traced import ScalarFunction

_NAMES = sorted({*FUNCTIONS, *COMPOSED, *ALIASES} - {"stored"})


def __getattr__(name: str) -> Any:
    """Return a function of texts, by its name."""
    if name in _NAMES or name in DEFINED.operators:
        return ScalarFunction(ALIASES.get(name, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_NAMES, *DEFINED.operators})
