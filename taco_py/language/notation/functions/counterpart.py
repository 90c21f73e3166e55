"""The NumPy function of a user's C text, for the oracle and for fill values.

    counterpart_of("softsign", lambda x: x / (1 + abs(x)), ("float32", "float64"))

It is computed in the first of its types that holds its arguments, as NumPy chooses loops: integers
in float64. Its result type for each type is determined on samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.notation.dtypes import loop_dtype

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Counterpart:
    """A NumPy function of arrays with its own loop types.

    results  the name of the result type, by the name of the loop type
    """

    name: str
    function: Callable[..., Any]
    results: Mapping[str, str]

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any) -> Array:
        """Compute in the first type that holds the arguments, after broadcasting them."""
        common = loop_dtype(self.results, np.result_type(*args))
        if common.name not in self.results:
            raise TypeError(f"{self.name} is not defined for {common}")
        arrays = np.broadcast_arrays(*(np.asarray(arg, common) for arg in args))
        gives = np.dtype(self.results[common.name])
        if not arrays[0].size:
            return np.empty(arrays[0].shape, gives)
        result = np.asarray(self.function(*arrays))
        return np.array(np.broadcast_to(result.astype(gives, copy=False), arrays[0].shape))


def counterpart_of(
    name: str,
    function: Callable[..., Any],
    samples: Mapping[str, Sequence[Array]],
    types: Sequence[str],
) -> Counterpart:
    """Determine the result type of a function for samples of each type.

    types  names of the types of C, which its results have to have

    Raises OperandTypeError where the function rejects the samples, or returns an array of another
    shape or of a type that C lacks.
    """
    results = {}
    for type, arrays in samples.items():
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(function(*arrays))
        except Exception as error:
            raise OperandTypeError(
                f"Expected numpy= of {name} to take arrays of {type}, found "
                f"{error.__class__.__name__}: {error}",
                hint='say which types it takes, as in dtypes=("int64",), or mend it',
            ) from error
        if result.shape not in ((), arrays[0].shape) or result.dtype.name not in types:
            raise OperandTypeError(
                f"Expected numpy= of {name} to give one number for each of {type}, found an array "
                f"of shape {result.shape} and dtype {result.dtype} for arrays of shape "
                f"{arrays[0].shape}",
                hint="write it in operations that NumPy does for each element",
            )
        results[type] = result.dtype.name
    return Counterpart(name, function, results)
