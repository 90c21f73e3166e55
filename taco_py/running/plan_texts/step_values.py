"""What each step of a plan makes of tensors of terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import assert_never

import numpy as np

from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.nodes import Expr
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import (
    Cast,
    Fuse,
    Gather,
    KernelStep,
    Locate,
    Reformat,
    Squeeze,
    Step,
    TakeDiagonal,
    TakeSide,
    TakeSize,
    TakeValues,
    Unfuse,
)
from taco_py.planner.ir.program import Define, Program
from taco_py.running.plan_texts.entry_terms import NOTHING, Atoms
from taco_py.running.plan_texts.term_arrays import Array, Terms, evaluate, filled, in_type

TensorTerms = Mapping[str, Terms]
Side = dict[tuple[str, int], Terms]


def program_values(program: Program, leaves: TensorTerms, atoms: Atoms) -> TensorTerms:
    """Return the tensors of a program over operands of terms."""
    values: dict[str, Terms] = dict(leaves)
    side: Side = {}
    for step in program.steps:
        assert not isinstance(step, Define)
        values[step.target] = _evaluate_step(step, program, values, side, atoms)
    return values


def _evaluate_step(  # noqa: C901 - a table
    step: Step, program: Program, values: TensorTerms, side: Side, atoms: Atoms
) -> Terms:
    """Return the result of a step."""
    if isinstance(step, KernelStep):
        return _kernel(step, values, side, atoms)
    if isinstance(step, TakeSide):
        return side[step.source, step.number]
    source = values[step.source]
    match step:
        case Reformat(format=form):
            return with_form(source, form)
        case Gather():
            return _gathered(step, source, values[step.pattern])
        case TakeDiagonal(labels=labels):
            return _on_both(source, lambda array: _diagonal(array, labels))
        case Squeeze(axes=axes):
            return _on_both(source, lambda array: array.squeeze(axes))
        case Locate():
            return _on_both(source, lambda array: array[..., None])
        case TakeValues():
            return _values(source, program.facts[step.source].type.format)
        case TakeSize(mode=mode, dtype=dtype):
            number = filled((), atoms.number(source.array.shape[mode]))
            return Terms(number, np.asarray(True), None, np.dtype(dtype))
        case Fuse(groups=groups):
            return _on_both(source, lambda array: _fused(array, groups))
        case Unfuse(sizes=sizes):
            shape = tuple(values[name].array.shape[mode] for name, mode in sizes)
            return _on_both(source, lambda array: array.reshape(shape))
        case Cast(dtype=dtype):
            return in_type(atoms, source, np.dtype(dtype))
        case _:
            assert_never(step)


def _on_both(source: Terms, function: object) -> Terms:
    """Return a tensor whose terms and places go through a function of arrays."""
    assert callable(function)
    return replace(source, array=function(source.array), stored=function(source.stored))


def _diagonal(array: Array, labels: tuple[str, ...]) -> Array:
    names = list(labels)
    for name in dict.fromkeys(labels):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            place = names[:second].index(name)
            if array.shape[first] != array.shape[second]:
                raise ValueError(f"Expected modes {name} of one size")
            array = np.moveaxis(np.diagonal(array, axis1=first, axis2=second), -1, place)
            del names[second]
    return array


def _fused(array: Array, groups: tuple[tuple[int, ...], ...]) -> Array:
    shape = tuple(prod(array.shape[axis] for axis in group) for group in groups)
    return array.transpose([axis for group in groups for axis in group]).reshape(shape)


def _values(source: Terms, form: Format) -> Terms:
    """Return the stored terms in the order in which they are stored."""
    order = form.mode_order
    array, stored = source.array.transpose(order), source.stored.transpose(order)
    values = array[stored]
    return Terms(values, np.ones(values.shape, bool), None, source.dtype)


def with_form(source: Terms, form: Format) -> Terms:
    """Return a tensor in another format: below the last level of lists everything is stored."""
    if is_full(form):
        array = filled(source.array.shape, NOTHING)
        array[source.stored] = source.array[source.stored]
        return Terms(array, np.ones(array.shape, bool), None, source.dtype)
    stored = mark_full_blocks(source.stored, form)
    array = filled(source.array.shape, NOTHING)
    array[source.stored] = source.array[source.stored]
    return Terms(array, stored, 0, source.dtype)


def mark_full_blocks(stored: Array, form: Format) -> Array:
    """Mark the positions that a format of blocks stores besides the given ones."""
    last = max(k for k, level in enumerate(form.levels) if not level.full)
    axes = tuple(form.mode_order[last + 1 :])
    return np.broadcast_to(stored.any(axis=axes, keepdims=True), stored.shape) if axes else stored


def _gathered(step: Gather, source: Terms, pattern: Terms) -> Terms:
    """Return the blocks of a dense tensor where a pattern stores something."""
    order = step.format.mode_order
    other_modes = tuple(mode for mode in range(pattern.stored.ndim) if mode not in step.modes)
    places = np.asarray(pattern.stored.any(axis=other_modes))
    rest = [mode for mode in range(pattern.stored.ndim) if mode not in other_modes]
    places = places.transpose([rest.index(mode) for mode in step.modes])
    places = places.reshape(places.shape + (1,) * (len(order) - places.ndim))
    stored = source.array.transpose(order)
    places = np.broadcast_to(places, stored.shape).transpose(np.argsort(order))
    array = filled(source.array.shape, NOTHING)
    array[places] = source.array[places]
    return Terms(array, places, 0, source.dtype)


def _kernel(step: KernelStep, values: TensorTerms, side: Side, atoms: Atoms) -> Terms:
    """Return the result of a kernel, and note its side results."""
    problem = step.problem
    leaves = {
        name: in_type(atoms, values[step.source(name)], np.dtype(type.dtype))
        for name, type in problem.operands
    }
    for number, result in enumerate(problem.side):
        side[step.target, number] = stored_as(
            result.value, result.target.indices, result.type, leaves, atoms
        )
    assignment = problem.assignment
    indices = assignment.target.indices
    return stored_as(assignment.value, indices, problem.result, leaves, atoms)


def stored_as(
    value: Expr, indices: tuple[str, ...], type: TensorType, leaves: TensorTerms, atoms: Atoms
) -> Terms:
    """Return the value of an expression as a tensor of a type: fill values where a dense one has
    them."""
    terms = evaluate(value, indices, leaves, atoms)
    form = type.format
    if is_full(form):
        terms = replace(terms, stored=np.ones(terms.array.shape, bool), fill=None)
    else:
        stored = np.broadcast_to(terms.stored, terms.array.shape)
        terms = replace(terms, stored=mark_full_blocks(stored, form), fill=0)
    return in_type(atoms, terms, np.dtype(type.dtype))
