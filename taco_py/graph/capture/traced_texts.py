"""Texts in index notation of traced arrays, and kernels compiled of them.

tp.evaluate("m[i] = A[i,j] * x[j]; s = m[i] * m[i]", …)   →   evaluate(A, x), evaluate(m)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.calls.statements.read_text import statements_of
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.extents import Extent
from taco_py.graph.nodes import Shape
from taco_py.language.autodiff.kinks_in_branches import with_kinks_in_branches
from taco_py.language.diagnostics.errors import DimensionError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import result_dtype
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.wide_sums import wide_sums

REMEDIES: Mapping[str, str] = MappingProxyType({
    "mask": "write np.where(mask, y, 0) of what it gives",
    "semiring": "name what is reduced by in the text: min(k, A[i,k] + B[k,j])",
    "dtype": "convert the operands: x.astype(dtype)",
    "format": "formats of what is traced are chosen; convert the result of the traced function",
    "border": "read a padded array, as np.pad gives it",
    "shape": "add to np.zeros of that shape by +=",
    "memory_limit": "say tp.set_memory_limit(…), which holds for calls of the traced function",
    "price": "name it for the whole function: tp.fuse(…, price=…)",
    "out": "np.copyto the result of the traced function",
})  # fmt: skip
"""What to do without an option that traced texts do not take."""


def evaluate(recorder: Recorder, text: Any, data: Any, outputs: Any = None, **options: Any) -> Any:
    """Note tp.evaluate of a text with = whose results have sizes that operands say."""
    statements = [statement.assignment for statement in statements_of(text, data)]
    last = statements[-1].target.tensor if outputs is None else outputs
    return kernel(recorder, statements, data, last, "tp.evaluate", **options)


def kernel(
    recorder: Recorder,
    statements: Sequence[Assignment],
    operands: Mapping[str, Any],
    outputs: str | Sequence[str],
    called: str = "kernels",
    **options: Any,
) -> Any:
    """Note the computation of a kernel that was compiled of statements. Refuses options."""
    _refuse_options(called, options)
    _check_names(statements, operands)
    notes = statements_on(recorder, with_kinks_in_branches(statements), operands)
    for name in (outputs,) if isinstance(outputs, str) else outputs:
        if name not in notes:
            refuse(
                f"Expected names that the text assigns in outputs=, found {name!r}",
                f"it assigns {', '.join(notes)}",
            )
    return notes[outputs] if isinstance(outputs, str) else tuple(notes[name] for name in outputs)


def statements_on(
    recorder: Recorder, statements: Sequence[Assignment], data: Mapping[str, Any], **options: Any
) -> dict[str, Any]:
    """Note statements, and return the stand-ins of their results by name. Refuses options."""
    _refuse_options("derivatives of texts", options)
    arrays = {name: recorder.name_of(operand) for name, operand in data.items()}
    results: dict[str, Any] = {}
    for assignment in statements:
        target = assignment.target.tensor
        read = [access.tensor for access in accesses(assignment)]
        if assignment.operator is not None:
            read.insert(0, target)
        names = tuple(dict.fromkeys(read))
        missing = [name for name in names if name not in arrays]
        if missing or (assignment.target.subscripts and assignment.operator is None):
            refuse(
                f"Expected index notation over {', '.join(arrays)}, found {to_text(assignment)}",
                "pass what += adds to; where = scatters, add to np.zeros of the shape by +=",
            )
        assignment, read_arrays = _in_wide_types(recorder, assignment, arrays, names)
        names = (*read_arrays,)
        facts = {name: recorder.facts[read_arrays[name]] for name in names}
        dtypes = {name: np.dtype(fact.dtype) for name, fact in facts.items()}
        accumulator = facts.get(target) if assignment.operator is not None else None
        shape = _shape_of(recorder, assignment, {name: facts[name].shape for name in names})
        dtype = result_dtype(assignment, dtypes).name if accumulator is None else accumulator.dtype
        attributes = {"text": to_text(assignment), "names": names}
        inputs = [*read_arrays.values()]
        result_shape = shape if accumulator is None else accumulator.shape
        results[target] = recorder.add("evaluate", inputs, result_shape, dtype, **attributes)
        arrays[target] = results[target].name
    return results


def _in_wide_types(
    recorder: Recorder, assignment: Assignment, arrays: Mapping[str, str], names: Sequence[str]
) -> tuple[Assignment, dict[str, str]]:
    """Convert the operands of sums of small integers, so that sums are wide as in other texts.

    s = sum(i, x[i]), x of int8   →   x_1 = x.astype(int64); s = sum(i, x_1[i])

    Returns the assignment, and the value in the graph of each operand that it reads.
    """
    inputs = {name: arrays[name] for name in names}
    facts = {name: recorder.facts[node] for name, node in inputs.items()}
    dtypes = {name: np.dtype(fact.dtype) for name, fact in facts.items()}
    target = assignment.target.tensor if assignment.operator is not None else ""
    wide = wide_sums(assignment, dtypes, dtypes.get(target))
    for name, dtype in wide.read.items():
        fact, node = facts[source := wide.same.get(name, name)], arrays[source]
        converted = recorder.add("astype", (node,), fact.shape, dtype.name, dtype=dtype.name)
        inputs[name] = converted.name
    read = {target, *(access.tensor for access in accesses(wide.assignment))}
    return wide.assignment, {name: node for name, node in inputs.items() if name in read}


def _refuse_options(called: str, options: Mapping[str, Any]) -> None:
    for name in options:
        refuse(
            f"Expected {called} without {name}= in a traced function, found it",
            REMEDIES.get(name, "leave it out: all of the traced function is planned as a whole"),
        )


def _check_names(statements: Sequence[Assignment], operands: Mapping[str, Any]) -> None:
    """Refuse operands that no statement reads."""
    read = {access.tensor for statement in statements for access in accesses(statement)}
    read |= {statement.target.tensor for statement in statements if statement.operator is not None}
    for name in operands:
        if name not in read:
            refuse(
                f"Expected operands that the text reads, found {name} besides",
                "leave it out of the call",
            )


def _shape_of(recorder: Recorder, assignment: Assignment, shapes: dict[str, Shape]) -> Shape:
    """Return the shape of a statement's result, by the indices that stand alone as subscripts."""
    sizes: dict[str, Extent] = {}
    for access in accesses(assignment):
        shape = shapes[access.tensor]
        if len(access.modes) != len(shape):
            refuse(
                f"Expected {len(shape)} indices of {access.tensor}, found {len(access.modes)}",
                "an operand has an index for each mode",
                DimensionError,
            )
        for mode, size in zip(access.modes, shape, strict=True):
            if mode.index is not None:
                (sizes[mode.index],) = recorder.stretched((sizes.get(mode.index, size),), (size,))
    if assignment.operator is not None:
        return ()
    for index in assignment.target.indices:
        if index not in sizes:
            refuse(
                f"Expected an operand with the index {index} alone as a subscript, which says its "
                f"size, found none in {to_text(assignment)}",
                "compute it outside of the traced function, or write it by slices",
            )
    return tuple(sizes[index] for index in assignment.target.indices)
