"""A sparse result from the arrays that a kernel has grown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from codegen.runtime.signature import Kind
from taco_py.diagnostics.errors import (
    InternalError,
)
from taco_py.driver import CompiledKernel
from taco_py.formats import Format
from taco_py.plan.ir.nodes import KernelStep
from taco_py.storage.tensor_data import Array, LevelArrays, TensorData

BARE = LevelArrays()

Assemble = Callable[[tuple[int, ...], tuple[Array, ...]], TensorData]


def assembled(
    kernel: CompiledKernel, step: KernelStep, shape: tuple[int, ...], grown: tuple[Array, ...]
) -> TensorData:
    """The arrays a kernel has grown, as a tensor."""
    return assembly(kernel, step)(shape, grown)


def assembly(kernel: CompiledKernel, step: KernelStep) -> Assemble:
    """From a result's shape and the arrays that `kernel` has grown for it, the tensor."""
    type = step.problem.result
    growing = [s for p, s in kernel.parameters if p.kind is Kind.GROWING]
    places: dict[tuple[str, int], int] = {}
    for place, source in enumerate(growing):
        if source is None:
            raise InternalError("The kernel grows an array that nobody asked for")
        places[source.what, source.level] = place
    values = next((place for (what, _), place in places.items() if what == "values"), None)
    owned = [
        (places.get(("pos", level)), places.get(("crd", level)))
        for level in range(type.format.order)
    ]
    form = plain(type.format)
    ordered, unique = known_order(kernel, step)

    def assemble(shape: tuple[int, ...], grown: tuple[Array, ...]) -> TensorData:
        levels = tuple(
            BARE
            if pos is None and crd is None
            else LevelArrays(
                None if pos is None else grown[pos], None if crd is None else grown[crd]
            )
            for pos, crd in owned
        )
        if values is not None:
            return TensorData(form, shape, levels, grown[values], ordered, unique)
        zeros = np.zeros(_positions(form, levels, shape), type.dtype)
        return TensorData(form, shape, levels, zeros, ordered, unique)

    return assemble


def known_order(kernel: CompiledKernel, step: KernelStep) -> tuple[bool | None, bool | None]:
    """(sorted, unique) of the coordinates that `kernel` makes; None where they must be looked at.

    A coordinate list has duplicates where it repeats an operand's pattern, not out of a table.
    """
    levels = step.problem.result.format.levels
    ordered = all(level.ordered for level in levels) or None
    return ordered, all(level.unique for level in levels) or bool(kernel.keys) or None


def _positions(form: Format, levels: tuple[LevelArrays, ...], shape: tuple[int, ...]) -> int:
    """The number of positions of the last level."""
    count = 1
    for level, mode, arrays in zip(form.levels, form.mode_order, levels, strict=True):
        count = count * shape[mode] if level.full else len(arrays.crd)  # type: ignore[arg-type]
    return count


def plain(form: Format) -> Format:
    """The format without permissions to leave levels unordered: that is a fact of the data then."""
    return replace(form, levels=tuple(replace(level, ordered=True) for level in form.levels))
