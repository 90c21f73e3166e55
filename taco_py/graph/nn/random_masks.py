"""Dropout by a generator that is a function of an element's place and of a key.

    bits(place, key) ≥ rate * 2³²    keeps the element: nothing is stored, and the derivative, or
                                     another call of this key, leaves out the same ones

The bits are those of a hash of 32 bits with two rounds (Wellons 2018, Prospecting for Hash
Functions, lowbias32), between which the second half of the key goes in. (Salmon et al. 2011,
Parallel Random Numbers: As Easy as 1, 2, 3, has generators that are functions of counters.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.graph.capture.symbolic_size import Size, converted, value_of
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.nn.network_function import derivative_by, network_function, positions
from taco_py.language.diagnostics.errors import OperandError, OperandTypeError

WORD = 2**32
GOLDEN, FIRST, SECOND, OFFSET = 0x9E3779B1, 0x7FEB352D, 0x846CA68B, 0x7F4A7C15
"""Odd numbers that bits are mixed by, and one that a key of 0 does not stay 0 by."""


@network_function
def _dropout(x: Any, rate: Any, key: Any) -> Any:
    limit = _uint32(rate * float(WORD))
    mask = _bits(x, _halves(key)) >= limit
    scaled = x * (1.0 / (1.0 - rate))
    return derivative_by("dropout", scaled * mask, scaled, mask)


def _bits(x: Any, key: tuple[Any, Any]) -> Any:
    """Return 32 bits for each element, as whole numbers."""
    count = positions(x, 0, "uint32") if x.ndim else np.uint32(0)
    for axis in range(1, x.ndim):
        count = count * x.shape[axis] + positions(x, axis, "uint32")
    z = count * np.uint32(GOLDEN) ^ key[0]
    z = (z ^ (z >> np.uint32(16))) * np.uint32(FIRST) ^ key[1]
    z = (z ^ (z >> np.uint32(15))) * np.uint32(SECOND)
    return z ^ (z >> np.uint32(16))


def _halves(key: Any) -> tuple[Any, Any]:
    """Return two words that differ for keys that do: the first by the lower bits, the second by
    all."""
    if isinstance(key, TracedArray):
        low, high = key.astype("uint32"), (key.astype("int64") >> np.int64(32)).astype("uint32")
        mixed = low * np.uint32(SECOND) + high * np.uint32(GOLDEN)
        return low * np.uint32(FIRST) + np.uint32(OFFSET), mixed
    low, high = key % WORD, (key // WORD) % WORD
    return _uint32((low * FIRST + OFFSET) % WORD), _uint32((low * SECOND + high * GOLDEN) % WORD)


def _uint32(number: Any) -> Any:
    """Return a number, of the trace or of each call, as one of 32 bits."""
    return converted(number, "uint32") if isinstance(number, Size) else np.uint32(number)


def dropout(x: Any, rate: float, key: int) -> Any:
    """Put zeros in the places of a share of the elements, and scale the others up.

    >>> tp.nn.dropout(np.ones(8), 0.5, key=1)
    array([0., 2., 0., 0., 2., 2., 2., 0.])
    >>> tp.grad(lambda x, key: tp.nn.dropout(x, 0.5, key).sum(), wrt="x")(np.ones(8), 1)
    array([0., 2., 0., 0., 2., 2., 2., 0.])

    x     an array, or one that is traced
    rate  the share, from 0 to less than 1
    key   a whole number: the same one gives the same places, in other calls too. Pass another one
          to each call, as an argument of the function that is traced, and for each layer

    Raises OperandError for another rate, OperandTypeError for a key that is no whole number.
    """
    if isinstance(rate, TracedArray) or not isinstance(value_of(rate), int | float | np.floating):
        refuse("Expected a number for rate, found another object", "tp.nn.dropout(x, 0.5, key)")
    if not 0 <= rate < 1:
        refuse(
            f"Expected a rate from 0 to less than 1, found {value_of(rate)}",
            "it is the share of elements that are left out",
            OperandError,
        )
    is_integer = key.dtype.kind in "iu" and not key.ndim if isinstance(key, TracedArray) else None
    plain = isinstance(value_of(key), int | np.integer) and not isinstance(value_of(key), bool)
    if is_integer is False or (is_integer is None and not plain):
        refuse(
            "Expected a whole number as the key, found another object",
            "the number of the step, say, and another one for each layer",
            OperandTypeError,
        )
    share = float(rate) if isinstance(rate, np.floating) else rate
    return _dropout(x, share, int(key) if isinstance(key, np.integer) else key)
