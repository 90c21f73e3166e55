"""What a region of a graph is expected to take, by the planner, for the operands of a call.

    seconds = planned loops, with what is stored + functions of elements + a call

Values between are not made for it: their shapes follow from the operands' sizes, and how sparse
ones are stored, and how many entries they have, from the statements of the whole graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import inf, prod
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.learned_price import ANALYTIC, Price
from taco_py.arguments.operands import as_number, describe, is_number
from taco_py.arguments.result_table import ARRAY, TENSOR
from taco_py.arguments.results import container
from taco_py.calls.call.planner_request import goal_of, planner_options
from taco_py.calls.statements.elaborate import Elaborated, ResultOptions, elaborate
from taco_py.calls.statements.sequence import in_single_assignment
from taco_py.compiler.cost.effort import Effort
from taco_py.data.kernels import KERNELS
from taco_py.graph.extents import Extent, compiled
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.position_operands import is_positions
from taco_py.graph.primitives.gathers import is_of_elements
from taco_py.graph.primitives.sampled_values import operator_of
from taco_py.graph.run.graph_program import MANY_CALLS, make_program, squeezed
from taco_py.graph.run.partition_by_stages import Region, base_of
from taco_py.graph.run.region_statements import Statements, Stored, write_statements
from taco_py.graph.selection.graph_dag import GraphDag
from taco_py.graph.view_operators import free_views
from taco_py.language.diagnostics.errors import TacoError
from taco_py.language.formats import Format, dense
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.dtypes import dtype_of_number
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.plan_price import PricedFor
from taco_py.planner.statements import plan_statements


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What calls of kernels in a graph cost besides their loops, measured on two cores."""

    call_seconds: float = 6e-6
    """A call that was made before. Measured: 4 to 7 µs for one to three operands."""
    sparse_result_seconds: float = 5e-5
    """A result with coordinates, which are arrays of their own. Measured: 40 to 80 µs."""
    numpy_call_seconds: float = 2e-6
    """A call of NumPy that moves or computes few elements. Measured: 1 to 4 µs."""
    view_seconds: float = 5e-7
    """A view of an array, or an array that kernels write the parts of."""
    numpy_element_seconds: float = 1e-9
    """An element of what NumPy computes. It is the same in all choices."""


COSTS = CallCosts()


@dataclass(slots=True, eq=False)
class RegionPrices:
    """Prices of regions for the operands of a call, each asked for once.

    leaves        the values of leaves
    operand_facts facts of leaves that are no Python numbers, and of all nodes
    stored        how values are stored that are not dense
    readers       the nodes that read each value, also in another layout
    handed        values that are results, also in another layout
    containers    what leaves are held in, as the table of results names it
    outside       values that NumPy or the caller gets
    views         nodes that NumPy only shows, in the memory of what they are views of
    threads       that kernels may use
    effort        searches for orders of loops, which regions with the same statements share
    price         by which the plans of regions are priced
    """

    graph: Graph
    leaves: Mapping[str, Any]
    operand_facts: Mapping[str, Operand]
    stored: Mapping[str, Stored]
    readers: Mapping[str, Sequence[Node]]
    handed: frozenset[str]
    containers: Mapping[str, str] = field(default_factory=dict)
    outside: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()
    threads: int = 1
    costs: CallCosts = COSTS
    effort: Effort = field(default_factory=Effort)
    price: Price = ANALYTIC
    computed: dict[tuple[tuple[str, ...], tuple[str, ...]], float] = field(default_factory=dict)

    def of(self, region: Region) -> float:
        """Return the expected seconds; infinity where the region cannot be one call."""
        key = (tuple(node.name for node in region.nodes), region.outputs)
        if key not in self.computed:
            self.computed[key] = self._kernels(region) if region.kernel else self._numpy(region)
        return self.computed[key]

    def count_dense_results(self, region: Region) -> int:
        """Count results that are dense while sparse operands ask for few of their elements.

        S = where(M, Q @ K.T, 0), M sparse: the product as a result of its own
        """
        return sum(self.is_asked_for_few(name) for name in region.outputs)

    def is_asked_for_few(self, name: str) -> bool:
        """Tell whether sparse values or positions ask for few elements of a dense value."""
        if name in self.stored or name not in self.readers or name in self.handed:
            return False
        return all(
            (reader.operator == "gather" and is_of_elements(reader))
            or (
                operator_of(reader) == "map"
                and (reader.name in self.stored or self.is_asked_for_few(reader.name))
            )
            for reader in self.readers[name]
        )

    def _numpy(self, region: Region) -> float:
        """Return the seconds of primitives that NumPy computes, nothing of views of operands."""
        return sum(self._of_numpy(node) for node in region.nodes)

    def _of_numpy(self, node: Node) -> float:
        costs = self.costs
        if node.name in self.views:
            return costs.view_seconds
        read = [self.operand_facts[name] for name in node.inputs if name in self.operand_facts]
        elements = sum(operand.stored for operand in (*read, self.operand_facts[node.name]))
        return costs.numpy_call_seconds + elements * costs.numpy_element_seconds

    def _kernels(self, region: Region) -> float:
        try:
            plan = self.plan(region)
        except TacoError:
            return inf
        facts = plan.program.facts
        sparse = sum(not facts[name].type.format.is_dense for name in plan.program.results)
        return (
            self._seconds(plan)
            + self.costs.call_seconds
            + sparse * self.costs.sparse_result_seconds
        )

    def _seconds(self, plan: Plan) -> float:
        """Return the seconds of a plan by the price; the analytic ones where it knows none."""
        priced = PricedFor({}, plan.machine, self.threads)
        if self.price != ANALYTIC:
            seconds = learned_seconds(priced, self.price, plan)
            if seconds < inf:
                return seconds
        return priced.plan(plan)

    def plan(self, region: Region) -> Plan:
        """Return the plan of the statements of a region. Raises TacoError where there is none."""
        choices = planner_options(MANY_CALLS)
        between = frozenset(region.outputs) - self.outside
        program = write_statements(self.graph, region, self.stored, between)
        operands = operands_of(program, self.operand_facts, self.leaves)
        typed = typed_of(program, operands, self.containers, between)
        read = {n: _read(operands[r.source], r.dtype.name) for n, r in typed.reads.items()}
        goal = goal_of(MANY_CALLS, typed.types[program.results[-1]])
        request = replace(goal, effort=self.effort, libraries=choices.libraries, sized=True)
        return plan_statements(
            typed.assignments,
            {**operands, **read},
            typed.types,
            request,
            program.results,
            choices,
        )


def learned_seconds(priced: PricedFor, price: Price, plan: Plan) -> float:
    """Return the seconds of a plan by a learned price; infinite where it has none of it."""
    from taco_py.tuning.networks.form_plans import plan_prices
    from taco_py.tuning.prices.price_choice import model_of

    (expected,) = plan_prices(priced, model_of(price)).of((plan,))
    return expected.seconds


def prices_of(dag: GraphDag, operands: Sequence[Any], price: Price = ANALYTIC) -> RegionPrices:
    """Make the prices of regions of a graph in a call."""
    graph = dag.graph
    leaves = make_program(graph, lambda _: ()).begin(operands)
    facts = graph.facts
    values = {name: squeezed(value, facts[name]) for name, value in leaves.items()}
    bound = {n: describe(v, n) for n, v in values.items() if not is_number(v)}
    operand_facts = {name: operand.operand for name, operand in bound.items()}
    containers = {name: container(operand) for name, operand in bound.items()}
    stored = {
        name: Stored(operand.type.format, operand.type.dtype, _fill(operand.type))
        for name, operand in operand_facts.items()
        if not operand.type.format.is_dense
    }
    operand_facts |= _dense_facts(graph, operands)
    stored |= {
        node.name: Stored(operand_facts[node.name].type.format, node.dtype)
        for node in graph.nodes
        if is_positions(node)
    }
    members = tuple(p for p in range(len(dag.nodes)) if not dag.dag.flagged("alone") >> p & 1)
    nodes = tuple(dag.nodes[p] for p in members)
    region = Region(nodes, tuple(node.name for node in nodes), True)
    statements = write_statements(graph, region, stored, frozenset(region.outputs))
    if statements.assignments:
        facts_of_read = operands_of(statements, operand_facts, values)
        typed = typed_of(statements, facts_of_read, containers, frozenset(region.outputs))
        operand_facts |= {node.name: typed.operands[node.name] for node in nodes}
    by_name = graph.by_name
    readers: dict[str, list[Node]] = {}
    for node in dag.nodes:
        for name in node.inputs:
            readers.setdefault(base_of(by_name, name), []).append(node)
    handed = frozenset(base_of(by_name, name) for name in graph.outputs)
    alone = (dag.nodes[p] for p in bits(dag.dag.flagged("alone")))
    outside = handed | {base_of(by_name, name) for node in alone for name in node.inputs}
    return RegionPrices(
        graph,
        values,
        operand_facts,
        statements.stored,
        readers,
        handed,
        containers,
        outside,
        free_views(graph),
        KERNELS.cores,
        price=price,
    )


def _dense_facts(graph: Graph, operands: Sequence[Any]) -> dict[str, Operand]:
    """Return the facts of all nodes as dense arrays of the sizes that the operands give them."""
    nodes = graph.nodes
    wide = [[e for e in node.shape if e.constant != 1] for node in nodes]
    extents: list[Extent] = [extent for sizes in wide for extent in sizes]
    numbers = iter(compiled(extents, tuple(i.name for i in graph.inputs))(*operands))
    facts = {}
    for node, sizes in zip(nodes, wide, strict=True):
        shape = tuple(int(next(numbers)) for _ in sizes)
        dtype = np.result_type(node.dtype).name
        form, count = dense(len(shape)), prod(shape)
        if is_positions(node):
            form, count = Format.parse(node.fact.sparsity), prod(shape[:-1])
        facts[node.name] = Operand(TensorType(form, dtype), shape, float(count))
    return facts


def operands_of(
    statements: Statements, operand_facts: Mapping[str, Operand], leaves: Mapping[str, Any]
) -> dict[str, Operand]:
    """Return the facts of operands that statements read; Python numbers take the type of operands
    beside them.
    """
    read = [operand_facts[name].type.dtype for name in statements.operands if name in operand_facts]
    strong = [np.dtype(dtype) for dtype in read]
    operands = {}
    for name in statements.operands:
        if name in operand_facts:
            operands[name] = operand_facts[name]
        else:
            dtype = dtype_of_number(leaves[name], strong) if strong else None
            operands[name] = describe(as_number(leaves[name], dtype, name), name).operand
    return operands


def typed_of(
    program: Statements,
    operands: Mapping[str, Operand],
    containers: Mapping[str, str],
    between: frozenset[str],
) -> Elaborated:
    """Type statements over operands in the containers that a call of them has.

    containers  of leaves; other values are arrays or Tensors
    between     results that kernels alone read: where sparse ones are among them, all are Tensors
    """
    statements = in_single_assignment(program.assignments, program.results, tuple(operands))
    all_tensors = any(is_sparse(form) for n, form in program.formats.items() if n in between)

    def container_of(name: str, operand: Operand) -> str:
        default = ARRAY if operand.type.format.is_dense else TENSOR
        return TENSOR if all_tensors else containers.get(name, default)

    operand_containers = {name: container_of(name, operand) for name, operand in operands.items()}
    return elaborate(statements, operands, operand_containers, ResultOptions(dict(program.formats)))


def _read(operand: Operand, dtype: str) -> Operand:
    """Return the facts of an operand that is read in another type."""
    return replace(operand, type=operand.type.read_as(dtype))


def _fill(type: TensorType) -> Any:
    return type.fill_value.item() if type.fill else 0
