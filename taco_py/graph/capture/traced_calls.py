"""NumPy's functions that NumPy itself computes in a graph: one table, with the shapes of results.

np.linalg.solve(A, b)   a node "call" of the function "linalg.solve", of the shape of b

An entry is a function from the arguments to the arrays among them, the other arguments, and the
shape of the result. Arrays that decide how large the result is have no entry: np.nonzero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import axes_of
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.symbolic_size import Size
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.capture.traced_ufuncs import reduced_shape
from taco_py.graph.extents import Extent, const, product, total
from taco_py.graph.nodes import Fact, Shape
from taco_py.graph.samples import NUMPY_CALLS, numpy_function, sample
from taco_py.language.diagnostics.errors import DimensionError

ShapeRule = Callable[[Recorder, Sequence[Fact], Mapping[str, Any]], Shape]
"""From what is known of the arrays, and the other arguments by name, to the shape of the result."""


def call(name: str, arrays: Sequence[str], rule: ShapeRule) -> Any:
    """Make the function that notes a call of a NumPy function.

    name    as "linalg.solve"; `NUMPY_CALLS` has its other arguments, in NumPy's order after the
            arrays, each a literal or a tuple of them
    arrays  the arguments that are arrays
    """
    parameters = NUMPY_CALLS[name]

    def note(recorder: Recorder, *args: Any, **options: Any) -> Any:
        bound = dict(zip((*arrays, *parameters), args, strict=False)) | options
        if {*bound} - {*arrays, *parameters} or not {*arrays} <= {*bound} or len(args) > len(bound):
            refuse(
                f"Expected arguments of np.{name} that can be traced, found {', '.join(bound)}",
                f"it is traced with {', '.join((*arrays, *parameters))}",
            )
        names = [recorder.name_of(bound[arg]) for arg in arrays]
        facts = [recorder.facts[arg] for arg in names]
        _check_dense(name, facts)
        literals = {arg: _plain(name, bound[arg]) for arg in parameters if arg in bound}
        dtype = _dtype(name, facts, literals)
        shape = rule(recorder, facts, literals)
        options = {"function": name, "options": tuple(literals.items())}
        return recorder.add("call", names, shape, dtype, **options)

    return note


def _check_dense(name: str, facts: Sequence[Fact]) -> None:
    if any(fact.sparsity for fact in facts):
        refuse(
            f"Expected dense arrays for np.{name}, found one in {facts[0].sparsity}",
            "NumPy computes it: write x.toarray()",
        )


def _plain(name: str, value: Any) -> Any:
    """Return an argument that is no array, as it is in all calls."""
    if isinstance(value, tuple | list):
        return tuple(_plain(name, element) for element in value)
    if isinstance(value, Size):
        return value.fixed()
    if isinstance(value, np.generic):
        return value.item()
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    return refuse(
        f"Expected numbers and texts besides the arrays of np.{name}, found {type(value).__name__}",
        "what is not an array is the same in all calls",
    )


def _dtype(name: str, facts: Sequence[Fact], options: Mapping[str, Any]) -> str:
    """Return the type that NumPy gives, found for arrays of one element; of two where it asks for
    more."""
    for size in (1, 2):
        small = [np.resize(sample(f), (size,) * f.order) if f.order else sample(f) for f in facts]
        try:
            with np.errstate(all="ignore"):
                return str(np.asarray(numpy_function(name)(*small, **options)).dtype)
        except (ValueError, IndexError, np.linalg.LinAlgError):
            continue
    return str(np.result_type(*map(sample, facts), np.float32))


# ---------------------------------------------------------------- shapes


def _first(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
    """Return the shape of the first array."""
    return facts[0].shape


def _square(recorder: Recorder, fact: Fact, name: str) -> None:
    if fact.order < 2 or not recorder.same(fact.shape[-1], fact.shape[-2]):
        refuse(
            f"Expected a square matrix, or a stack of them, for np.{name}, found "
            f"{recorder.concrete(fact.shape)}",
            "its last two modes have to be equal",
            DimensionError,
        )


def _of_square(result: Callable[[Shape], Shape], name: str) -> ShapeRule:
    """Return the shape of a function of square matrices."""

    def rule(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
        _square(recorder, facts[0], name)
        return result(facts[0].shape)

    return rule


def _lines(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
    """Return the shape of lines along an axis, or of all elements in one."""
    flat = "axis" in options and options["axis"] is None
    return (product(facts[0].shape),) if flat else facts[0].shape


def _solved(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
    """Return the shape of solutions: as many as right-hand sides."""
    matrix, right = facts
    _square(recorder, matrix, "linalg.solve")
    vector = right.order == 1
    shape = right.shape if vector else right.shape[:-1]
    if not shape or not recorder.same(matrix.shape[-1], shape[-1]):
        refuse(
            f"Expected a right-hand side for each of {recorder.value(matrix.shape[-1])} rows, "
            f"found {recorder.concrete(right.shape)}",
            "b has a row for each of A",
            DimensionError,
        )
    if vector:
        return (*matrix.shape[:-2], matrix.shape[-1])
    stacks = recorder.stretched(matrix.shape[:-2], right.shape[:-2])
    return (*stacks, *right.shape[-2:])


def _padded(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
    """Return the shape of a padded array."""
    order = facts[0].order
    widths = np.broadcast_to(options["pad_width"], (order, 2)).tolist()
    return tuple(
        total([size, const(before + after)]) if before + after else size
        for size, (before, after) in zip(facts[0].shape, widths, strict=True)
    )


def _reduced(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
    axes = axes_of(options.get("axis"), facts[0].order)
    return reduced_shape(facts[0].shape, axes, bool(options.get("keepdims")))


def _quantiles(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
    return (*facts[1].shape, *_reduced(recorder, facts, options))


def _searched(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
    return facts[1].shape


def _convolved(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
    if [fact.order for fact in facts] != [1, 1]:
        refuse("Expected vectors, found others", "tp.evaluate has y[i] = x[i+j] * w[j]")
    sizes = [fact.shape[0] for fact in facts]
    long, short = sorted(sizes, key=recorder.value, reverse=True)
    if sizes[0] != long:
        recorder.guard(Extent("<", (sizes[0], sizes[1])), True)
    elif long.constant is None or short.constant is None:
        recorder.guard(Extent(">=", (long, short)), True)
    mode = options.get("mode", "full")
    if mode == "same":
        return (long,)
    rest = Extent("-" if mode == "valid" else "+", (long, short))
    return (Extent("+" if mode == "valid" else "-", (rest, const(1))),)


def _transformed(half: str = "") -> ShapeRule:
    """Return the shape of a Fourier transform over one axis.

    half  "forward" and "back" of transforms of real numbers
    """

    def rule(recorder: Recorder, facts: Sequence[Fact], options: Mapping[str, Any]) -> Shape:
        shape = list(facts[0].shape)
        (axis,) = axes_of(options.get("axis", -1), facts[0].order)
        size = shape[axis] if options.get("n") is None else const(options["n"])
        if half == "forward":
            size = Extent("+", (Extent("//", (size, const(2))), const(1)))
        elif half == "back" and options.get("n") is None:
            size = Extent("*", (const(2), Extent("-", (size, const(1)))))
        is_constant = options.get("n") is not None or shape[axis].constant is not None
        shape[axis] = const(recorder.value(size)) if is_constant else size
        return tuple(shape)

    return rule


# ---------------------------------------------------------------- the table

CALLS: Mapping[str, Any] = MappingProxyType({
    "linalg.solve": call("linalg.solve", ("a", "b"), _solved),
    **{
        name: call(name, ("a",), _of_square(lambda shape: shape, name))
        for name in ("linalg.inv", "linalg.cholesky", "linalg.matrix_power")
    },
    "linalg.det": call("linalg.det", ("a",), _of_square(lambda s: s[:-2], "linalg.det")),
    **{
        name: call(name, ("a",), _of_square(lambda shape: shape[:-1], name))
        for name in ("linalg.eigvalsh", "linalg.eigvals")
    },
    "linalg.pinv": call("linalg.pinv", ("a",),
                        lambda _, f, o: (*f[0].shape[:-2], f[0].shape[-1], f[0].shape[-2])),
    "pad": call("pad", ("array",), _padded),
    **{name: call(name, ("a",), _reduced) for name in ("median", "nanmedian", "nanmin", "nanmax",
       "nanvar", "nanstd")},
    **{name: call(name, ("a", "q"), _quantiles)
       for name in ("quantile", "percentile", "nanquantile", "nanpercentile")},
    "interp": call("interp", ("x", "xp", "fp"), _first),
    "searchsorted": call("searchsorted", ("a", "v"), _searched),
    "digitize": call("digitize", ("x", "bins"), _first),
    "convolve": call("convolve", ("a", "v"), _convolved),
    **{name: call(name, ("a",), _transformed()) for name in ("fft.fft", "fft.ifft")},
    "fft.rfft": call("fft.rfft", ("a",), _transformed("forward")),
    "fft.irfft": call("fft.irfft", ("a",), _transformed("back")),
    **{name: call(name, ("a",), _first)
       for name in ("fft.fft2", "fft.ifft2", "fft.fftn", "fft.ifftn")},
    **{name: call(name, ("array",), _first)
       for name in ("maximum.accumulate", "minimum.accumulate", "add.accumulate",
                    "multiply.accumulate")},
    "argpartition": call("argpartition", ("a",), _lines),
    "partition": call("partition", ("a",), _lines),
    "isin": call("isin", ("element", "test_elements"), _first),
})  # fmt: skip
"""Functions by their names in NumPy; `NUMPY_CALLS` has their other arguments."""
