"""The cotangents of a primitive's operands, by a table: from that of its value.

reduce sum         g             →   broadcast(g)
reduce max         g, y, x       →   where(x == y, g / count(x == y), 0)
broadcast, layout  g             →   reduce sum over new modes, in the operand's order
contract           g, a, b       →   contract(g, b), contract(g, a)
gather, scatter    g             →   scatter(g), gather(g)
numpy              g             →   what NumPy computes: a scatter of a slice, parts of a whole, …
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from taco_py.graph.extents import ONE, Extent, bounds, const, product
from taco_py.graph.gradients.element_gradients import cotangents_of_map
from taco_py.graph.gradients.text_gradients import cotangents_of_text
from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Node, Origin
from taco_py.language.diagnostics.errors import DerivativeError

Rule = Callable[[GraphBuilder, Node, Sequence[str], str, str], Iterator[tuple[int, str]]]
"""From the builder, a primitive, its operands, its value and the cotangent of that to the operands'
places and cotangents."""


def cotangents_of(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    """Make the cotangents of a primitive's operands. Raises DerivativeError."""
    builder.place, builder.origin = node.place, Origin(node.origin.operator, derivative=True)
    numpy = node.operator == "numpy"
    rule = OF_NUMPY.get(node.get("call")) if numpy else RULES.get(node.operator)
    if rule is None:
        name = node.get("function") if node.get("call") == "call" else node.get("call")
        raise DerivativeError(
            f"Expected operators with derivatives, found {name or node.operator} in "
            f"{node.place or 'the graph'}",
            hint="leave out of wrt= what goes into it, or write it by functions that have one",
        )
    yield from rule(builder, node, inputs, value, cotangent)


def _of_map(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    for place, gradient in cotangents_of_map(builder, node, inputs, cotangent):
        yield place, unspread(builder, gradient, builder.facts[inputs[place]].shape)


def unspread(builder: GraphBuilder, name: str, shape: Sequence[Extent]) -> str:
    """Sum over the modes that an operand of a shape was stretched in."""
    wide = builder.facts[name].shape
    lead = len(wide) - len(shape)
    axes = [
        axis for axis, size in enumerate(wide)
        if axis < lead or (shape[axis - lead].constant == 1 and size.constant != 1)
    ]  # fmt: skip
    if not axes:
        return name
    total = summed(builder, name, axes)
    rest = [axis for axis in range(len(wide)) if axis not in axes]
    source = [
        rest.index(lead + axis) if lead + axis in rest else None for axis in range(len(shape))
    ]
    return builder.layout("expand", total, source, tuple(shape))


def spread_over(
    builder: GraphBuilder, name: str, source: Sequence[int | None], shape: Sequence[Extent]
) -> str:
    """Stretch a value over new modes; by NumPy where no operand has a size of theirs."""
    new = [size for size, old in zip(shape, source, strict=True) if old is None]
    if all(size.constant == 1 or builder.has_size(size) for size in new):
        return builder.layout("broadcast", name, source, tuple(shape))
    units = tuple(ONE if old is None else size for size, old in zip(shape, source, strict=True))
    expanded = builder.layout("expand", name, source, units) if builder.facts[name].order else name
    dtype = builder.facts[name].dtype
    return builder.add("numpy", (expanded,), tuple(shape), dtype, call="broadcast_to")


def summed(builder: GraphBuilder, name: str, axes: Sequence[int]) -> str:
    """Sum over modes; of those that a broadcast made by their sizes."""
    node, dtype = builder.nodes.get(name), builder.facts[name].dtype
    if node is None or node.operator != "broadcast" or not axes:
        return builder.reduce("sum", name, axes, dtype) if axes else name
    source = node.get("source")
    new = [axis for axis in axes if source[axis] is None]
    if not new:
        return builder.reduce("sum", name, axes, dtype)
    remaining = [axis for axis in range(len(source)) if axis not in new]
    shape = tuple(node.shape[axis] for axis in remaining)
    rest = builder.layout("broadcast", node.inputs[0], [source[axis] for axis in remaining], shape)
    count = builder.number(product([node.shape[axis] for axis in new]), dtype)
    scaled = builder.map("multiply", rest, count)
    return summed(builder, scaled, [remaining.index(axis) for axis in axes if axis not in new])


# ---------------------------------------------------------------- reductions


def _of_reduce(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    (name,) = inputs
    rule = OF_REDUCTIONS.get(node.get("function"))
    if rule is not None:
        yield 0, rule(builder, node, name, value, cotangent)


def over_elements(builder: GraphBuilder, node: Node, name: str, value: str) -> str:
    """Return a value of a reduction at each element that was reduced."""
    shape, axes = builder.facts[name].shape, node.get("axes")
    remaining = [axis for axis in range(len(shape)) if axis not in axes]
    source = tuple(None if axis in axes else remaining.index(axis) for axis in range(len(shape)))
    return spread_over(builder, value, source, shape)


def _of_sum(builder: GraphBuilder, node: Node, name: str, value: str, cotangent: str) -> str:
    return over_elements(builder, node, name, cotangent)


def _of_extremum(builder: GraphBuilder, node: Node, name: str, value: str, cotangent: str) -> str:
    """Return the cotangent, shared by the elements that equal the extremum."""
    dtype = builder.facts[cotangent].dtype
    equal = builder.map("equal", name, over_elements(builder, node, name, value))
    one, zero = _one_and_zero(builder, dtype)
    count = builder.reduce("sum", builder.map("where", equal, one, zero), node.get("axes"), dtype)
    share = builder.map("divide", cotangent, count)
    return builder.map("where", equal, over_elements(builder, node, name, share), zero)


def _one_and_zero(builder: GraphBuilder, dtype: str) -> tuple[str, str]:
    """Return numbers of a type: those of Python alone would make what is counted by them
    float64."""
    scalar = np.dtype(dtype).type
    return builder.literal(scalar(1)), builder.literal(scalar(0))


def _of_product(builder: GraphBuilder, node: Node, name: str, value: str, cotangent: str) -> str:
    """Return the cotangent times the product of the others: of one 0, it has all of them."""
    dtype, axes = builder.facts[name].dtype, node.get("axes")
    if builder.nested:
        products = _other_products(builder, name, axes, dtype)
        return builder.map("multiply", over_elements(builder, node, name, cotangent), products)
    one, zero = _one_and_zero(builder, dtype)
    is_zero = builder.map("equal", name, zero)
    ones = builder.map("where", is_zero, one, zero)
    rest = builder.map("where", is_zero, one, name)
    count = over_elements(builder, node, name, builder.reduce("sum", ones, axes, dtype))
    products = over_elements(builder, node, name, builder.reduce("prod", rest, axes, dtype))
    alone = builder.map("equal", count, ones)
    derivative = builder.map("where", alone, builder.map("divide", products, rest), zero)
    return builder.map("multiply", over_elements(builder, node, name, cotangent), derivative)


def _other_products(builder: GraphBuilder, name: str, axes: Sequence[int], dtype: str) -> str:
    """Return the product of the other elements for each, of which no 0 is told apart: it may be
    differentiated, and takes as many products as elements are reduced for each.

    x[i]    →    prod(j, where(i == j, 1, x[j]))
    """
    shape = builder.facts[name].shape
    order = len(shape)
    wide = (*shape, *(shape[axis] for axis in axes))
    rest = [None if axis in axes else axis for axis in range(order)]
    stretched = spread_over(builder, name, (*rest, *axes), wide)
    alike = ""
    for place, axis in enumerate(axes):
        if shape[axis].constant == 1:
            continue
        places = builder.add("numpy", (), (shape[axis],), "int64", call="places")
        one, other = (
            spread_over(builder, places, [0 if n == mode else None for n in range(len(wide))], wide)
            for mode in (axis, order + place)
        )
        equal = builder.map("equal", one, other)
        alike = builder.map("logical_and", alike, equal) if alike else equal
    one = _one_and_zero(builder, dtype)[0]
    masked = builder.map("where", alike, one, stretched, dtype=dtype) if alike else one
    if not alike:
        return spread_over(builder, one, [None] * order, shape)
    return builder.reduce("prod", masked, tuple(range(order, len(wide))), dtype)


OF_REDUCTIONS = MappingProxyType({
    "sum": _of_sum, "max": _of_extremum, "min": _of_extremum, "prod": _of_product,
})  # fmt: skip
"""By what reductions are called; truths have a derivative of 0."""


# ---------------------------------------------------------------- layouts and products


def _of_layout(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    """Sum over new modes, then put the others into the operand's order."""
    source, shape = node.get("source"), builder.facts[inputs[0]].shape
    new = [
        axis for axis, old in enumerate(source)
        if old is None and builder.facts[cotangent].shape[axis].constant != 1
    ]  # fmt: skip
    gradient = cotangent
    if new:
        gradient = summed(builder, gradient, new)
    remaining = [old for axis, old in enumerate(source) if axis not in new]
    back = tuple(remaining.index(axis) if axis in remaining else None for axis in range(len(shape)))
    operator = "transpose" if None not in back and len(back) == len(remaining) else "expand"
    yield 0, builder.layout(operator, gradient, back, shape)


def _of_contract(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    """Multiply the cotangent by the other factors, and sum over the modes that the factor lacks."""
    labels, output_labels = node.get("labels"), node.get("kept")
    for place, name in enumerate(inputs):
        operand_labels, shape = labels[place], builder.facts[name].shape
        if len({*operand_labels}) < len(operand_labels):
            raise DerivativeError(
                f"Expected each mode of an operand once in a product with a derivative, found "
                f"a diagonal in {node.place or 'the graph'}",
                hint="multiply by np.eye(n) in place of reading a diagonal",
            )
        factors = [(n, labels[at]) for at, n in enumerate(inputs) if at != place]
        factors = [(_conjugate(builder, n), group) for n, group in factors]
        available = {*output_labels, *(label for _, group in factors for label in group)}
        wide = [
            label for label, size in zip(operand_labels, shape, strict=True)
            if label in available and size.constant != 1
        ]  # fmt: skip
        sizes = dict(zip(operand_labels, shape, strict=True))
        gradient = builder.contract(
            [cotangent, *(n for n, _ in factors)],
            [output_labels, *(group for _, group in factors)],
            wide,
            tuple(sizes[label] for label in wide),
            node.dtype,
        )
        source = tuple(wide.index(label) if label in wide else None for label in operand_labels)
        yield place, spread_over(builder, gradient, source, shape)


def _of_text(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    for place, gradient in cotangents_of_text(builder, node, inputs, value, cotangent):
        yield place, unspread(builder, gradient, builder.facts[inputs[place]].shape)


def _of_gather(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    """Add up the cotangent where elements were read; read it where they were added up."""
    name, *positions = inputs
    fact, modes = builder.facts[name], node.get("modes")
    other = "scatter" if node.operator == "gather" else "gather"
    operands = (cotangent, *positions)
    yield 0, builder.add(other, operands, fact.shape, builder.facts[cotangent].dtype, modes=modes)


def _conjugate(builder: GraphBuilder, name: str) -> str:
    complex_ = builder.facts[name].dtype.startswith("complex")
    return builder.map("conjugate", name) if complex_ else name


# ---------------------------------------------------------------- what NumPy computes


def _of_subscript(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    fact = builder.facts[inputs[0]]
    operands = (cotangent, *inputs[1:])
    key = node.get("key")
    yield 0, builder.add("numpy", operands, fact.shape, fact.dtype, call="scatter", key=key)


def _of_scatter(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    fact, key = builder.facts[inputs[0]], node.get("key")
    call = "index" if len(inputs) > 1 else "slice"
    operands = (cotangent, *inputs[1:])
    yield 0, builder.add("numpy", operands, fact.shape, fact.dtype, call=call, key=key)


def _of_parts(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    """Slice each array's part from the cotangent of their sum."""
    entries = iter(node.get("key"))
    for place, (name, count) in enumerate(zip(inputs, node.get("counts"), strict=True)):
        fact, key = builder.facts[name], tuple(next(entries) for _ in range(count))
        yield (
            place,
            builder.add("numpy", (cotangent,), fact.shape, fact.dtype, call="slice", key=key),
        )


def _of_reshape(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    fact, factors = builder.facts[inputs[0]], node.get("factors")
    back = None if factors is None else (factors[1], factors[0])
    attributes = {"call": "reshape", "factors": back}
    yield 0, builder.add("numpy", (cotangent,), fact.shape, fact.dtype, **attributes)


def _of_concatenate(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    axis = node.get("axis")
    ends = bounds([builder.facts[name].shape[axis] for name in inputs])
    full = ("slice", None, None, None)
    for place, name in enumerate(inputs):
        fact = builder.facts[name]
        part = ("slice", *ends[place : place + 2], None)
        key = tuple(part if n == axis else full for n in range(fact.order))
        yield (
            place,
            builder.add("numpy", (cotangent,), fact.shape, fact.dtype, call="slice", key=key),
        )


def _of_copy(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    yield 0, cotangent


def _of_cumsum(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    fact, axis = builder.facts[inputs[0]], node.get("axis")
    full_slice = ("slice", None, None, None)
    back = ("slice", None, None, const(-1))
    key = tuple(back if n == axis else full_slice for n in range(fact.order))

    def turned(name: str) -> str:
        return builder.add("numpy", (name,), fact.shape, fact.dtype, call="slice", key=key)

    turn = turned(cotangent)
    summed = builder.add("numpy", (turn,), fact.shape, fact.dtype, call="cumsum", axis=axis)
    yield 0, turned(summed)


def _none(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Iterator[tuple[int, str]]:
    yield from ()


RULES: Mapping[str, Rule] = {
    "map": _of_map, "reduce": _of_reduce, "contract": _of_contract, "notation": _of_text,
    **dict.fromkeys(("gather", "scatter"), _of_gather),
    **dict.fromkeys(("broadcast", "transpose", "expand", "squeeze"), _of_layout),
}  # fmt: skip
"""By the operators of primitives."""
OF_NUMPY: Mapping[str, Rule] = MappingProxyType({
    "slice": _of_subscript, "index": _of_subscript, "reshape": _of_reshape, "copy": _of_copy,
    "concatenate": _of_concatenate, "astype": _of_copy, "to_dense": _of_copy,
    "cumsum": _of_cumsum, "scatter": _of_scatter, "parts": _of_parts,
    "evaluate": _of_text,
    **dict.fromkeys(("einsum", "matmul", "tensordot", "outer"), _of_contract),
    **dict.fromkeys(("argmax", "argmin", "argsort", "any", "all", "places", "sign"), _none),
    "broadcast_to": lambda builder, node, inputs, value, cotangent: iter(
        ((0, unspread(builder, cotangent, builder.facts[inputs[0]].shape)),)
    ),
})  # fmt: skip
"""By the calls of NumPy that primitives are."""
