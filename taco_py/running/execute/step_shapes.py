"""The shapes of what the steps of a plan make of tensors, known before they run."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from taco_py.planner.ir.nodes import (
    Fuse,
    Locate,
    Squeeze,
    Step,
    TakeDiagonal,
    TakeSide,
    TakeSize,
    TakeValues,
    Unfuse,
)


def shape_made(
    step: Step,
    source: tuple[int, ...],
    entries: int,
    shapes: Mapping[str, tuple[int, ...]],
) -> tuple[int, ...] | None:
    """Return the shape of the target of a step that is no kernel; None where it is not known.

    source   the shape of its source
    entries  that the source has at most
    shapes   of other tensors
    """
    match step:
        case TakeDiagonal(labels=labels):
            sizes = dict(zip(labels, source, strict=True))
            return tuple(sizes[label] for label in dict.fromkeys(labels))
        case Squeeze(axes=axes):
            return tuple(size for mode, size in enumerate(source) if mode not in axes)
        case Locate():
            return (*source, 1)
        case TakeValues():
            return (entries,)
        case TakeSize():
            return ()
        case TakeSide():
            return None
        case Fuse(groups=groups):
            return tuple(prod(source[mode] for mode in group) for group in groups)
        case Unfuse(sizes=sizes):
            if any(name not in shapes for name, _ in sizes):
                return None
            return tuple(shapes[name][mode] for name, mode in sizes)
    return source
