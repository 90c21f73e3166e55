"""The outputs of a product as a graph of visitors: equal values are one node.

Z = P + b;  H = max(Z, 0)   →   0: P   1: b   2: 0 + 1   3: store Z of 2   4: 0.0   5: max(3, 4)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from codegen.records import dataclass
from taco_py.compiler.epilogue.visitors import (
    AccumulatorFetch,
    AuxLoad,
    AuxStore,
    ColumnBroadcast,
    ColumnReduction,
    Compute,
    Outputs,
    RowBroadcast,
    RowReduction,
    ScalarBroadcast,
    ScalarReduction,
    Slot,
    Visitor,
    Writer,
)
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.tree import children


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a product: a value for each element, or its sum over indices that the target
    lacks."""

    target: Access
    value: Expr


@dataclass(frozen=True, slots=True)
class Product:
    """The sum that a main loop computes, and the indices of the rows and columns of its result."""

    value: Expr
    rows: str
    columns: str


@dataclass(slots=True)
class ValueGraph:
    """Nodes in an order in which each reads earlier ones; visitors' own fields hold `Slot`s.

    reads  the numbers of the nodes that each reads
    """

    product: Product
    nodes: list[Visitor] = field(default_factory=list)
    reads: list[tuple[int, ...]] = field(default_factory=list)
    numbers: dict[Visitor, int] = field(default_factory=dict)
    values: dict[Expr, int] = field(default_factory=dict)
    stores: dict[Expr, list[Access]] = field(default_factory=dict)

    def add(self, node: Visitor, reads: tuple[int, ...]) -> int:
        """Return the number of a node; a new number where there is no equal node."""
        if node not in self.numbers:
            self.numbers[node] = len(self.nodes)
            self.nodes.append(node)
            self.reads.append(reads)
        return self.numbers[node]

    def number_of(self, value: Expr) -> int:
        """Return the number of the node of a value, after its stores."""
        if value not in self.values:
            number = self._computed(value)
            for target in self.stores.get(value, ()):
                number = self.add(AuxStore(target, Slot(number)), (number,))
            self.values[value] = number
        return self.values[value]

    def _computed(self, value: Expr) -> int:
        if value == self.product.value:
            return self.add(AccumulatorFetch(), ())
        match value:
            case Access():
                return self.add(self._load(value), ())
            case Literal():
                return self.add(ScalarBroadcast(value), ())
            case Call(operator, args):
                read = tuple(self.number_of(arg) for arg in args)
                return self.add(Compute(operator, tuple(map(Slot, read))), read)
        raise ValueError(f"Expected values of elements, found {value}")

    def _load(self, access: Access) -> Visitor:
        has_rows = self.product.rows in access.indices
        has_columns = self.product.columns in access.indices
        if has_rows and has_columns:
            return AuxLoad(access)
        if has_columns:
            return RowBroadcast(access)
        return ColumnBroadcast(access) if has_rows else ScalarBroadcast(access)


def value_graph(product: Product, outputs: Sequence[Output]) -> ValueGraph:
    """Build the graph of all outputs; all other nodes are below its last one.

    Raises ValueError for values that are not computed elementwise.
    """
    graph = ValueGraph(product)
    wholes = [output for output in outputs if not is_summed(product, output)]
    for output in wholes:
        graph.stores.setdefault(output.value, []).append(output.target)
    for output in wholes:
        graph.number_of(output.value)
    for output in outputs:
        if is_summed(product, output):
            read = graph.number_of(output.value)
            writer = _reduction(product, output.target)
            number = graph.add(writer(output.target, Slot(read)), (read,))
            graph.values[output.value] = number
    read_by = {number for reads in graph.reads for number in reads}
    last = tuple(number for number in range(len(graph.nodes)) if number not in read_by)
    if len(last) > 1:
        graph.add(Outputs(tuple(map(Slot, last))), last)
    return graph


def is_summed(product: Product, output: Output) -> bool:
    """Tell whether an output sums the values of several elements."""
    return not {product.rows, product.columns} <= {*output.target.indices}


def _reduction(product: Product, target: Access) -> type[Writer]:
    if product.columns in target.indices:
        return RowReduction
    return ColumnReduction if product.rows in target.indices else ScalarReduction


def outputs_of(product: Product, values: Mapping[Access, Expr]) -> tuple[Output, ...]:
    """Return values as outputs, without their sums over rows and columns: s[j] = sum(i, e) is e,
    summed into s[j]."""
    return tuple(
        Output(target, without_sums(product, value, target)) for target, value in values.items()
    )


def without_sums(product: Product, value: Expr, target: Access) -> Expr:
    """Return the summand of a value's sums over rows and columns that the target does not have."""
    missing = {product.rows, product.columns}.difference(target.indices)
    while isinstance(value, Reduce) and value.index in missing and value != product.value:
        missing.discard(value.index)
        value = value.body
    return value


def accesses_outside(value: Expr, inside: Expr) -> list[Access]:
    """Return the accesses of an expression that are not in a part of it."""
    if value == inside:
        return []
    if isinstance(value, Access):
        return [value]
    return [access for child in children(value) for access in accesses_outside(child, inside)]
