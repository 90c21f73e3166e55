"""Steps that are no kernels, carried out on stored tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from taco_py.data.interop import transforms
from taco_py.data.interop.numpy_arrays import dense_of
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import InternalError
from taco_py.planner.ir.nodes import (
    Cast,
    Fuse,
    Gather,
    Locate,
    Reformat,
    Squeeze,
    TakeDiagonal,
    TakeSide,
    TakeSize,
    TakeValues,
    Transformation,
    Unfuse,
)


def unfused(step: Unfuse, data: TensorData, tensors: Mapping[str, TensorData]) -> TensorData:
    """Return a view with the modes of the step's target."""
    return dense_of(data.values.reshape([tensors[name].shape[mode] for name, mode in step.sizes]))


def transformed(step: Transformation, data: TensorData) -> TensorData:
    """Return the result of a step that needs no kernel."""
    name, arguments = transform_of(step)
    result: TensorData = getattr(transforms, name)(data, **arguments)
    return result


def gathered(step: Gather, data: TensorData, pattern: TensorData) -> TensorData:
    """Gather the blocks of an array at the entries of a pattern."""
    return transforms.gathered(data, pattern, **transform_of(step)[1])


def transform_of(step: Transformation) -> tuple[str, dict[str, Any]]:  # noqa: C901 - a table
    """Return the function of `transforms` for a step, and its arguments except tensors."""
    match step:
        case Reformat(_, _, format, _, index_dtype):
            return "reformatted", {"format": format, "index_dtype": index_dtype}
        case TakeDiagonal(_, _, labels):
            return "diagonal", {"labels": labels}
        case Squeeze(_, _, axes):
            return "squeeze", {"axes": axes}
        case Locate():
            return "located", {}
        case TakeValues(distinct=distinct):
            return "values_of", {"distinct": distinct}
        case TakeSize(_, _, mode, dtype):
            return "size_of", {"mode": mode, "dtype": dtype}
        case TakeSide():
            raise InternalError(f"Expected {step.target} from the kernel of {step.source}")
        case Fuse(_, _, groups):
            return "fused", {"groups": groups}
        case Gather(format=format, modes=modes, index_dtype=index_dtype):
            return "gathered", {"format": format, "modes": modes, "index_dtype": index_dtype}
        case Unfuse():
            raise InternalError(f"Expected what else {step.target} is of, found its values alone")
        case Cast(_, _, format, dtype):
            return "cast", {"form": format, "dtype": dtype}
        case _:
            assert_never(step)
