"""Statements with subscripts that are more than indices, over operands derived from the user's.

y[i] = x[i+k] * w[k]           →  y[i] = x_at_i_k[k,i] * w[k]
Y[i,j] = A[i,j] - m[i,j]       →  Y[i,j] = A[i,j] - m_at_i_0[i]     m of shape (n, 1)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import is_number, read_operand
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.conversions.conversion import Converted, Key, labelled
from taco_py.calls.call.statement_commands import with_commands_of_one
from taco_py.data.tensors.keys import call_key
from taco_py.language.notation.checks import accesses, has_subscripts, operand_names
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.tree import has_reductions
from taco_py.running.replay.find import find


def has_derived(computation: Computation) -> bool:
    """Tell whether statements have subscripts that are more than indices, or a border."""
    return computation.options.is_bounded or any(map(has_subscripts, computation.assignments))


def derived_operands(computation: Computation, key: Key) -> Converted | None:
    """Derive the operands that subscripts, and modes of size 1 beside larger ones, ask for."""
    if not (has_derived(computation) or _stretches(computation)):
        return None
    from taco_py.calls.indexed.indexed_statements import (
        OVER_SEMIRINGS,
        IndexedStatements,
        boundary_options,
        refuse_scatter,
    )

    options, single = computation.options, computation.is_single
    if computation.over is not None:
        refuse_scatter(computation.last.target, OVER_SEMIRINGS)
    boundary = boundary_options(options.border, options.shape, not single)
    assignments = computation.assignments if single else _live_assignments(computation)
    indexed = IndexedStatements(tuple(assignments), boundary, {}, options.dtype)
    names, count, place = tuple(computation.objects), len(computation.masks), computation.place
    if place is None:
        place = place_of(computation.objects.values())
    end, out = len(names) + count, next(iter(computation.outs.values()), None)
    plain = indexed.plain(computation.objects, out if single else None)
    inner = replace(
        computation, assignments=plain.assignments, objects=plain.objects, place=place or None
    )
    if plain.scatters:
        inner = _scattering(inner, assignments[0], plain.scatters_dense)
    if single:
        inner = inner.with_options(with_commands_of_one(inner.options, inner.last))
    identity = () if key is None or place else ("derived", key[0])

    def fast_path(*operands: Any) -> Any:
        out = operands[end] if single and len(operands) > end else None
        statements = indexed.plain(dict(zip(names, operands, strict=False)), out)
        objects, extras = statements.objects, operands[len(names) :]
        call = find(
            call_key((*identity, statements.text, *objects), (*objects.values(), *extras[:count]))
        )
        return None if call is None else call(*objects.values(), *extras)

    def lines() -> list[str]:
        return labelled("reads", plain.lines)

    inner_key = None
    if identity:
        operands = (*plain.objects.values(), *computation.masks)
        inner_key = call_key((*identity, plain.text, *plain.objects), operands)
    return Converted(inner, inner_key, fast_path, _unchanged, lines)


def _unchanged(result: Any) -> Any:
    """Return the result over derived operands, which is the user's."""
    return result


def _live_assignments(computation: Computation) -> list[Assignment]:
    """Return the statements that outputs depend on, once all their operands are known to be
    passed."""
    from taco_py.calls.statements.sequence import check_passed, in_single_assignment, partition_live

    assignments, objects = computation.assignments, computation.objects
    outputs = computation.requested.outputs
    check_passed(assignments, in_single_assignment(assignments, outputs, objects), objects)
    return partition_live(assignments, outputs)[0]


def _scattering(computation: Computation, assignment: Assignment, is_dense: bool) -> Computation:
    """Return the computation of a statement that scatters, with the options for its sum.

    The result of dense operands alone is dense. What `=` assigns has the type of the value: each
    element has one, so that the sum over what is selected needs no type of its own.

    is_dense  whether the operands besides the positions are dense
    """
    target, formats = computation.last.target, computation.requested.formats
    if formats.get(target.tensor) is None and is_dense:
        computation = computation.with_formats({target.tensor: "d" * len(target.indices)})
    if has_reductions(assignment.value) or assignment.operator is not None:
        return computation
    return computation.with_options(replace(computation.options, wide_sums=False))


def _stretches(computation: Computation) -> bool:
    """Tell whether a mode of size 1 stands beside an index of another size.

    False where an operand is missing, of which the usual way raises an error.
    """
    targets = (assignment.target.tensor for assignment in computation.assignments)
    used = {*targets, *(n for step in computation.assignments for n in operand_names(step))}
    shapes = {name: _shape(obj, name) for name, obj in computation.objects.items() if name in used}
    if computation.squeezed or not any(1 in shape for shape in shapes.values()):
        return False
    from taco_py.calls.indexed.stretched import stretched

    for assignment in computation.assignments:
        if not {*operand_names(assignment)} <= shapes.keys():
            return False
        if stretched(assignment, shapes) is not assignment:
            return True
        sizes = {
            index: size
            for access in accesses(assignment)
            for index, size in zip(access.indices, shapes[access.tensor], strict=False)
        }
        target = assignment.target
        if not {*target.indices} <= sizes.keys():
            return False
        shapes[target.tensor] = tuple(sizes[index] for index in target.indices)
    return False


def _shape(obj: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an operand, also of one without a `shape`."""
    shape = () if is_number(obj) else getattr(obj, "shape", None)
    return tuple(read_operand(obj, f"operand {name}").shape if shape is None else shape)
