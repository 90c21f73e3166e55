"""Dense levels store no coordinates: a position is computed from its coordinate."""

from __future__ import annotations

from codegen import build
from codegen.ir import Expr


def locate(parent: Expr, coordinate: Expr, size: Expr) -> Expr:
    """Return `parent * size + coordinate`: the position of `coordinate` below `parent`."""
    return build.add(build.mul(parent, size), coordinate)


def locate_strided(parent: Expr, coordinate: Expr, stride: Expr) -> Expr:
    """Return `parent + coordinate * stride`: the offset of an element of a strided array."""
    return build.add(parent, build.mul(coordinate, stride))
