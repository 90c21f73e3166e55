"""A sparse result from the arrays that a kernel has grown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taco_py.compiler.driver import CompiledKernel
from taco_py.data.storage.grown import of_grown
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import (
    InternalError,
)
from taco_py.language.formats import Format
from taco_py.planner.ir.nodes import KernelStep


def assembled(
    kernel: CompiledKernel, step: KernelStep, shape: tuple[int, ...], grown: tuple[Array, ...]
) -> TensorData:
    """Return the arrays a kernel has grown, as a tensor."""
    return of_grown(shape, grown, **assembly(kernel, step))


def assembly(kernel: CompiledKernel, step: KernelStep) -> dict[str, Any]:
    """Return the recipe to assemble the arrays that `kernel` has grown."""
    type = step.problem.result
    growing = [s for p, s in kernel.parameters if p.grows]
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
    ordered, unique = known_order(kernel, step)
    return {
        "form": plain(type.format), "dtype": type.dtype, "owned": owned, "values": values,
        "ordered": ordered, "unique": unique, "fill": type.fill,
    }  # fmt: skip


def known_order(kernel: CompiledKernel, step: KernelStep) -> tuple[bool | None, bool | None]:
    """Return (sorted, unique) of the coordinates of `kernel`; None where they must be inspected.

    A coordinate list has duplicates where it repeats an operand's pattern, not out of a table.
    """
    levels = step.problem.result.format.levels
    ordered = all(level.ordered for level in levels) or None
    return ordered, all(level.unique for level in levels) or bool(kernel.keys) or None


def plain(form: Format) -> Format:
    """Return the format without permissions to leave levels unordered: that is a fact of the data
    then."""
    return replace(form, levels=tuple(replace(level, ordered=True) for level in form.levels))
