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

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Compute the function of arrays, or note its operators where one of them is traced."""
        args = (_array(args[0]), *map(_listed, args[1:]))
        recorder = next(recorders((*args, *named.values())), None)
        if recorder is None:
            return call_with_line(super().__call__, *args, **named)
        with recorder.part_of(self.function.__name__.strip("_")):
            return call_with_line(self.function, *args, **named)


def _array(x: Any) -> Any:
    """Return an array, of a list or a number too. Raises OperandTypeError for what is none."""
    made = np.asarray(x) if isinstance(x, list | tuple | int | float) else x
    if not isinstance(made, TracedArray | Size) and not is_operand(made):
        raise OperandTypeError(
            f"Expected an array of numbers, found {type(x).__name__}",
            hint="NumPy and scipy.sparse arrays and Tensors are passed to neural-network functions",
        )
    return made


def _listed(x: Any) -> Any:
    """Return an array of a list of numbers."""
    return np.asarray(x) if isinstance(x, list) and next(recorders(x), None) is None else x


def recorders(values: Iterable[Any]) -> Iterator[Recorder]:
    """Yield the traces that values are of."""
    for each in values:
        if isinstance(each, TracedArray):
            yield each.recorder
        elif isinstance(each, tuple | list):
            yield from recorders(each)
        elif isinstance(each, Size) and isinstance(each.guarding, Recorder):
            yield each.guarding


def network_function(body: Callable[..., Any]) -> NetworkFunction:
    """Make a function of networks from what it does with traced arrays."""
    return NetworkFunction(body)


def derivative_by(rule: str, value: Any, *inputs: Any, **told: Any) -> Any:
    """Return a value whose derivative by the first input has an entry in the table of functions.

    inputs  that and what else the entry reads
    told    numbers and axes that it is for
    """
    recorder: Recorder = value.recorder
    names = [value.name, *(each.name for each in inputs)]
    fact = value.fact
    return recorder.add("custom_derivative", names, fact.shape, fact.dtype, rule=rule, **told)


def positions(x: Any, axis: int, dtype: str = "int64") -> Any:
    """Make the positions along a mode of a traced array, which stretch to it."""
    order, own = x.ndim, axis % x.ndim
    found = x.recorder.add("places", (), (x.fact.shape[own],), dtype)
    return found[tuple(slice(None) if each == own else None for each in range(order))]


def check_axis(axis: Any) -> Any:
    """Return an axis, or several, as whole numbers. Raises OperandTypeError for others."""
    if axis is None:
        return None
    try:
        many = isinstance(axis, tuple | list)
        return tuple(each.__index__() for each in axis) if many else axis.__index__()
    except AttributeError:
        raise OperandTypeError(
            f"Expected an axis, or a tuple of axes, found {type(axis).__name__}",
            hint="as in axis=-1",
        ) from None


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse what is none of the words that an argument may be."""
    if value not in known:
        refuse(f"Expected {name} to be one of {', '.join(known)}, found {value!r}", f"{name}=")
