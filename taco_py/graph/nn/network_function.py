"""Neural-network functions, written once in NumPy style.

softmax(x)      of arrays: traced once for each kinds of them, and computed as one kernel call
                in a traced function: its operators join those around it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from taco_py.graph.capture.recorder import Recorder, is_operand
from taco_py.graph.capture.symbolic_size import Size
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_line import call_with_line, refuse
from taco_py.graph.fuse import FusedFunction
from taco_py.language.diagnostics.errors import OperandTypeError


class NetworkFunction(FusedFunction):
    """A function whose operators belong together, in whatever it is traced for."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Compute the function of arrays, or note its operators where one of them is traced."""
        args = (_array(args[0]), *map(_array_of_list, args[1:]))
        recorder = next(recorders((*args, *keywords.values())), None)
        if recorder is None:
            return call_with_line(super().__call__, *args, **keywords)
        with recorder.part_of(self.function.__name__.strip("_")):
            return call_with_line(self.function, *args, **keywords)


def _array(x: Any) -> Any:
    """Return an array, of a list or a number too. Raises OperandTypeError for what is none."""
    array = np.asarray(x) if isinstance(x, list | tuple | int | float) else x
    if not isinstance(array, TracedArray | Size) and not is_operand(array):
        raise OperandTypeError(
            f"Expected an array of numbers, found {type(x).__name__}",
            hint="NumPy and scipy.sparse arrays and Tensors are passed to neural-network functions",
        )
    return array


def _array_of_list(x: Any) -> Any:
    """Return an array of a list of numbers."""
    return np.asarray(x) if isinstance(x, list) and next(recorders(x), None) is None else x


def recorders(values: Iterable[Any]) -> Iterator[Recorder]:
    """Yield the traces that values are of."""
    for value in values:
        if isinstance(value, TracedArray):
            yield value.recorder
        elif isinstance(value, tuple | list):
            yield from recorders(value)
        elif isinstance(value, Size) and isinstance(value.guarding, Recorder):
            yield value.guarding


def network_function(body: Callable[..., Any]) -> NetworkFunction:
    """Make a neural-network function from its body on traced arrays."""
    return NetworkFunction(body)


def derivative_by(rule: str, value: Any, *inputs: Any, **attributes: Any) -> Any:
    """Return a value whose derivative by the first input has an entry in the table of functions.

    inputs      that and what else the entry reads
    attributes  numbers and axes that it is for
    """
    recorder: Recorder = value.recorder
    names = [value.name, *(operand.name for operand in inputs)]
    fact = value.fact
    return recorder.add("custom_derivative", names, fact.shape, fact.dtype, rule=rule, **attributes)


def positions(x: Any, axis: int, dtype: str = "int64") -> Any:
    """Make the positions along a mode of a traced array, which stretch to it."""
    order, mode = x.ndim, axis % x.ndim
    places = x.recorder.add("places", (), (x.fact.shape[mode],), dtype)
    return places[tuple(slice(None) if n == mode else None for n in range(order))]


def check_axis(axis: Any) -> Any:
    """Return an axis, or several, as whole numbers. Raises OperandTypeError for others."""
    if axis is None:
        return None
    try:
        several = isinstance(axis, tuple | list)
        return tuple(mode.__index__() for mode in axis) if several else axis.__index__()
    except AttributeError:
        raise OperandTypeError(
            f"Expected an axis, or a tuple of axes, found {type(axis).__name__}",
            hint="as in axis=-1",
        ) from None


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is none of the words allowed for an argument."""
    if value not in allowed:
        refuse(f"Expected {name} to be one of {', '.join(allowed)}, found {value!r}", f"{name}=")
