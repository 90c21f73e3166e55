"""Products of traced arrays, by their subscripts, and texts in index notation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import place_of
from taco_py.arrays.numpy_surface.composed_products import (
    check_inner_sizes,
    label_matmul,
    label_tensordot,
)
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.traced_layouts import astype
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.capture.traced_texts import REMEDIES
from taco_py.graph.extents import Extent
from taco_py.graph.samples import sample
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.einsum import parse_einsum, split_operands
from taco_py.language.notation.nodes import Assignment

Labels = tuple[int, ...]


def contract(
    recorder: Recorder,
    operator: str,
    names: Sequence[str],
    inputs: Sequence[Labels],
    output: Labels,
) -> Any:
    """Note a sum of products, by a label for each mode of each operand and of the result."""
    facts = [recorder.facts[name] for name in names]
    sizes: dict[int, Extent] = {}
    for fact, labels in zip(facts, inputs, strict=True):
        for label, size in zip(labels, fact.shape, strict=True):
            (sizes[label],) = recorder.stretched((sizes.get(label, size),), (size,))
    dtype = str(np.result_type(*map(sample, facts)))
    shape = tuple(sizes[label] for label in output)
    return recorder.add(
        operator, names, shape, dtype, labels=tuple(map(tuple, inputs)), kept=tuple(output)
    )


def einsum(recorder: Recorder, *operands: Any, optimize: Any = None, **options: Any) -> Any:
    """Note np.einsum, or tp.einsum. Raises what they raise for subscripts."""
    dtype = options.pop("dtype", None)
    for key, option in options.items():
        if option is not None and key != "order":
            refuse(
                f"Expected einsum without {key}= in a traced function, found it",
                REMEDIES.get(key, "leave it out: all of the function is planned as a whole"),
            )
    subscripts, arrays = split_operands(operands)
    names = [recorder.name_of(array) for array in arrays]
    statement = parse_einsum(subscripts, [recorder.facts[name].order for name in names])
    numbers: dict[str, int] = {}
    read = accesses(statement.value)
    inputs = [
        tuple(numbers.setdefault(index, len(numbers)) for index in access.indices)
        for access in (read if len(read) == len(names) else _by_place(statement, len(names)))
    ]
    result = contract(
        recorder, "einsum", names, inputs, tuple(numbers[i] for i in statement.target.indices)
    )
    return result if dtype is None else astype(recorder, result, dtype)


def _by_place(statement: Assignment, count: int) -> Any:
    refuse(f"Expected {count} operands in the product, found others", "write np.einsum otherwise")


def matmul(recorder: Recorder, a: Any, b: Any) -> Any:
    """Note a product of matrices and vectors, or of stacks of them, as NumPy's."""
    names = [recorder.name_of(operand) for operand in (a, b)]
    one, two = (recorder.facts[name].shape for name in names)
    left, right, output_labels = label_matmul(len(one), len(two))
    equal = recorder.same(one[-1], two[max(len(two) - 2, 0)])
    check_inner_sizes(recorder.concrete(one), recorder.concrete(two), equal)
    return contract(recorder, "matmul", names, (left, right), output_labels)


def tensordot(recorder: Recorder, a: Any, b: Any, axes: Any = 2) -> Any:
    """Note np.tensordot."""
    names = [recorder.name_of(operand) for operand in (a, b)]
    m, n = (recorder.facts[name].order for name in names)
    left, right, output_labels = label_tensordot(m, n, axes)
    return contract(recorder, "tensordot", names, (left, right), output_labels)


def outer(recorder: Recorder, a: Any, b: Any) -> Any:
    """Note np.outer of vectors."""
    names = [recorder.name_of(operand) for operand in (a, b)]
    if [recorder.facts[name].order for name in names] != [1, 1]:
        refuse("Expected vectors for np.outer, found others", "ravel them first")
    return contract(recorder, "outer", names, ((0,), (1,)), (0, 1))


def diagonal(recorder: Recorder, x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Note np.diagonal: of the largest square from where it begins, its main one."""
    name = recorder.name_of(x)
    order = recorder.facts[name].order
    one, two = (place_of(axis, order) for axis in (axis1, axis2))
    name = _square_of(recorder, name, (one, max(-offset, 0)), (two, max(offset, 0)))
    fact = recorder.facts[name]
    assert recorder.same(fact.shape[one], fact.shape[two])
    labels = tuple(one if axis == two else axis for axis in range(order))
    output_labels = (*(axis for axis in range(order) if axis not in (one, two)), one)
    return contract(recorder, "diagonal", (name,), (labels,), output_labels)


def _square_of(recorder: Recorder, name: str, *begins: tuple[int, int]) -> str:
    """Return the part of an array that is square in two axes, each from a position on."""
    x = recorder.traced(name)
    lengths = [x.shape[axis] - begin for axis, begin in begins]
    if lengths[0] == lengths[1] and not any(begin for _, begin in begins):
        return name
    length = lengths[0] if lengths[0] <= lengths[1] else lengths[1]
    length = max(length, 0)
    key = [slice(None)] * x.ndim
    for axis, begin in begins:
        key[axis] = slice(begin, begin + length)
    return recorder.name_of(x[tuple(key)])
