"""Graphs of primitives carried out: regions in order, kernels planned when they first run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Protocol

import numpy as np

from codegen.records import dataclass
from taco_py.api.tensor import tensor
from taco_py.arguments.operands import describe
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.compute import compute as compute_statements
from taco_py.calls.call.explain_call import explained
from taco_py.calls.call.peak_of_call import peak
from taco_py.calls.call.requested_outputs import RequestedOutputs, requested_outputs
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.extents import Extent, compiled
from taco_py.graph.nodes import Fact, Graph, Node
from taco_py.graph.position_operands import is_positions
from taco_py.graph.run.left_to_numpy import NEED_SIZES, compute, handed_out
from taco_py.graph.run.order_of_steps import (
    StepOrder,
    bytes_of,
    dense_bytes,
    order_statements,
    order_steps,
)
from taco_py.graph.run.partition_by_stages import Region, base_of, partition_by_stages
from taco_py.graph.run.region_statements import Statements, Stored, write_statements
from taco_py.graph.run.result_parts import Joins, is_concatenate, join_of, same_elements
from taco_py.graph.view_operators import is_view, operand_views
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.printer import to_text
from taco_py.running.replay.find import find, no_short_way

ONE_CALL = CallOptions()
MANY_CALLS = CallOptions(often=True)
"""Of functions, which are called again and again."""


def squeezed(value: Any, fact: Fact) -> Any:
    """Leave out the modes of size 1 of a value, in the same memory where it is dense."""
    units = fact.units
    if not any(units):
        return value
    if isinstance(value, np.ndarray):
        return value[tuple(0 if unit else slice(None) for unit in units)]
    array = tensor(value) if is_scipy_sparse(value) else value
    result = array.squeeze(tuple(axis for axis, unit in enumerate(units) if unit))
    return result.to_numpy() if isinstance(result, Tensor) and not result.ndim else result


def with_units(value: Any, fact: Fact) -> Any:
    """Put modes of size 1 where a value has them, in the type that it has."""
    units = fact.units
    if value.dtype != fact.dtype:
        value = value.astype(fact.dtype)
    if not any(units):
        return value
    new = tuple(axis for axis, unit in enumerate(units) if unit)
    if isinstance(value, np.ndarray | np.generic):
        return np.expand_dims(value, new)
    wide = np.expand_dims(tensor(value) if is_scipy_sparse(value) else value, new)
    return handed_out(wide, isinstance(value, Tensor), fact.dtype)


class Step(Protocol):
    """What runs for some primitives of a graph, and puts their values among the others."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the primitives, but for layouts that it reads through."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the values that it puts."""

    @property
    def places(self) -> str:
        """Return the user's lines."""

    def run(self, graph: Graph, values: dict[str, Any]) -> None:
        """Compute the values."""


def places_of(nodes: Sequence[Node]) -> str:
    """Name the user's lines that primitives come from."""
    return ", ".join(dict.fromkeys(node.place for node in nodes)) or "the graph"


@dataclass(slots=True, eq=False)
class RegionRun:
    """A region of a graph that is one step."""

    region: Region

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the primitives of the region."""
        return self.region.nodes

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the region's results."""
        return self.region.outputs

    @property
    def places(self) -> str:
        """Return the user's lines."""
        return places_of(self.region.nodes)


@dataclass(slots=True, eq=False)
class KernelRun(RegionRun):
    """A region that kernels compute.

    between    results that kernels alone read, which stay sparse with any fill value
    statements its statements, once they are known
    facts      of what they read and make
    requested  what is wanted of them
    identity   what tells the call apart
    sparse     whether a result stays sparse for kernels: operands are then Tensors, as results are
    sources    the graph's operands that it depends on, but for positions: where Tensors are among
               them, results are Tensors
    plain      the type of each value that kernels read and make as it is, without modes of size 1
    last_key   the key of the short way of the call that was made last
    options    of its calls
    joins      the arrays that its results are parts of
    """

    between: frozenset[str] = frozenset()
    statements: Statements | None = None
    requested: RequestedOutputs | None = None
    identity: tuple[object, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    sparse: bool = False
    sources: tuple[str, ...] = ()
    plain: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    last_key: tuple[object, ...] | None = None
    options: CallOptions = MANY_CALLS
    joins: Joins = field(default_factory=Joins)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the primitives of the region, and the arrays that they are parts of."""
        return (*self.region.nodes, *(join.node for join in self.joins.joins))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the region's results, and of the arrays that they are parts of."""
        return (*self.region.outputs, *self.joins.names)

    def write(self, graph: Graph, values: Mapping[str, Any]) -> Statements:
        """Write the statements, given operands as the first call has them."""
        if self.statements is None:
            facts = graph.facts
            stored: dict[str, Stored] = {}
            for name, value in values.items():
                if is_scipy_sparse(value) or isinstance(value, Tensor):
                    type = describe(squeezed(value, facts[name]), name).operand.type
                    if not type.format.is_dense or type.fill:
                        fill = type.fill_value.item() if type.fill else 0
                        fill = None if is_positions(graph.by_name.get(name)) else fill
                        stored[name] = Stored(type.format, type.dtype, fill)
            statements = write_statements(graph, self.region, stored, self.between)
            self.statements = statements = _by_memory(graph, statements, values)
            self.facts = {name: facts[name] for name in (*statements.operands, *statements.results)}
            formats = {name for name, form in statements.formats.items() if is_sparse(form)}
            self.sparse = not self.between.isdisjoint(formats)
            self.sources = _operands_behind(graph, statements.operands)
            plain = {n: fact for n, fact in self.facts.items() if not any(fact.units)}
            self.plain = {n: np.dtype(fact.dtype) for n, fact in plain.items()}
            self.options = replace(self.options, outputs=statements.results)
            alone = len(statements.results) == 1 and not self.joins.joins
            results = statements.results[0] if alone else statements.results
            self.requested = requested_outputs(
                statements.assignments, results, dict(statements.formats)
            )
            texts = tuple(map(to_text, statements.assignments))
            forms = tuple((name, str(form)) for name, form in statements.formats.items())
            self.identity = (
                "graph", self.options.often, *texts, statements.results, forms, *statements.operands
            )  # fmt: skip
            if self.options.is_priced:
                self.identity = (*self.identity, "price", repr(self.options.price))
            if self.joins.joins:
                parts = tuple(name for name in statements.results if name in self.joins.parts)
                self.identity = (*self.identity, "parts", parts)
        return self.statements

    def run(self, graph: Graph, values: dict[str, Any]) -> None:
        """Compute the results of the region and put them among the values."""
        statements = self.write(graph, values)
        assert self.requested is not None
        objects = self._objects(values)
        key = self.last_key = call_key(self.identity, objects.values())
        call = find(key)
        inputs = [values[leaf.name] for leaf in graph.inputs] if self.joins.joins else []
        arrays = self.joins.arrays(inputs)
        outs = {name: arrays[name] for name in statements.results if name in arrays}
        result = None if call is None else call(*objects.values(), *outs.values())
        if result is None:
            result = compute_statements(self._computation(objects, outs), key)
        results = (result,) if self.requested.alone else result
        for name, value in zip(statements.results, results, strict=True):
            if value.dtype is not self.plain.get(name):
                value = with_units(value, self.facts[name])
            if (self.sparse or isinstance(value, Tensor)) and name not in self.between:
                tensors = any(isinstance(values[source], Tensor) for source in self.sources)
                value = handed_out(value, tensors, self.facts[name].dtype)
            values[name] = value
        self.joins.finish(values, arrays, inputs)

    def _objects(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operands of the kernels."""
        assert self.statements is not None
        plain, facts = self.plain, self.facts
        objects = {
            name: values[name] if name in plain else squeezed(values[name], facts[name])
            for name in self.statements.operands
        }
        if not self.sparse:
            return objects
        return {n: tensor(obj) if is_scipy_sparse(obj) else obj for n, obj in objects.items()}

    def _computation(
        self, objects: Mapping[str, Any], outs: Mapping[str, Any] | None = None
    ) -> Computation:
        """Return the computation that the kernels do with these operands.

        outs  the parts of arrays that results are written to
        """
        assert self.statements is not None and self.requested is not None
        requested = replace(self.requested, outs=outs) if outs else self.requested
        return Computation(self.statements.assignments, objects, self.options, requested)

    def explain(self, graph: Graph, values: Mapping[str, Any]) -> str:
        """Say how the kernels compute the region."""
        self.write(graph, values)
        objects = self._objects(values)
        return explained(self._computation(objects))

    def peak(self, graph: Graph, values: Mapping[str, Any]) -> tuple[int, int]:
        """Return the bytes that the kernels take: at most at once, and all together."""
        self.write(graph, values)
        objects = self._objects(values)
        return peak(self._computation(objects))


def _operands_behind(graph: Graph, names: Sequence[str]) -> tuple[str, ...]:
    """Return the graph's operands that values depend on, but by positions."""
    live = set(names)
    for node in reversed(graph.nodes):
        if node.name in live and not is_positions(node):
            live.update(node.inputs)
    return tuple(leaf.name for leaf in graph.inputs if leaf.name in live)


def _by_memory(graph: Graph, statements: Statements, values: Mapping[str, Any]) -> Statements:
    """Put statements into the order in which they hold the fewest bytes, if that is much less."""
    if len(statements.assignments) < 3:
        return statements
    inner = {step.target.tensor for step in statements.assignments} - statements.stored.keys()
    sizes = dense_bytes(graph, inner, [values[leaf.name] for leaf in graph.inputs])
    ordered = order_statements(statements.assignments, statements.results, sizes)
    return replace(statements, assignments=ordered)


@dataclass(slots=True, eq=False)
class NumpyRun:
    """A primitive that NumPy computes.

    numbers  from the graph's operands to the numbers among its attributes
    """

    node: Node
    numbers: Callable[..., tuple[Any, ...]] | None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the primitive."""
        return (self.node,)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the name of its result."""
        return (self.node.name,)

    @property
    def places(self) -> str:
        """Return the user's line."""
        return self.node.place or "the graph"

    def run(self, graph: Graph, values: dict[str, Any]) -> None:
        """Compute it and put the result among the values."""
        inputs = [values[leaf.name] for leaf in graph.inputs] if self.numbers else []
        numbers = self.numbers(*inputs) if self.numbers else ()
        arrays = [values[name] for name in self.node.inputs]
        operator = self.node.get("call", self.node.operator)
        values[self.node.name] = compute(self.node, operator, arrays, numbers)


@dataclass(slots=True, eq=False)
class GraphProgram:
    """A graph of primitives with what runs, in order.

    numbers  from the operands to the graph's numbers
    makers   what makes each of these in its type
    last     for each step the values that no later one reads, which are let go
    views    of the operands, checked positions and positions along modes: made before all steps
    order    the order of the steps, once a call has told the sizes; None before
    runs     the steps in that order, each with the values that are let go; () for that of `steps`
    """

    graph: Graph
    steps: tuple[Step, ...]
    numbers: Callable[..., tuple[Any, ...]] | None
    makers: tuple[tuple[str, Callable[[Any], Any]], ...]
    last: tuple[tuple[str, ...], ...]
    views: tuple[NumpyRun, ...] = ()
    order: StepOrder | None = None
    runs: tuple[tuple[Step, tuple[str, ...]], ...] = ()

    @property
    def in_order(self) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        """Return the steps in the order in which they run, each with the values that are let go."""
        return self.runs or tuple(zip(self.steps, self.last, strict=True))

    def begin(self, operands: Sequence[Any]) -> dict[str, Any]:
        """Return the values of the leaves in a call, and views of them.

        Raises PositionError.
        """
        graph = self.graph
        values = dict(zip((leaf.name for leaf in graph.inputs), operands, strict=True))
        values.update((constant.name, constant.value) for constant in graph.constants)
        if self.numbers is not None:
            sizes = self.numbers(*operands)
            for (name, make), number in zip(self.makers, sizes, strict=True):
                values[name] = make(number)
        for view in self.views:
            _run_with_place(view, graph, values)
        return values

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Compute the results of operands in the order of the inputs."""
        if self.order is None and len(self.steps) > 2:
            return self._run_first(operands)
        return self._run(operands, None)

    def _run(self, operands: Sequence[Any], sizes: dict[str, int] | None) -> list[Any]:
        """Compute the results, and note the sizes of all values where that is asked."""
        values = self.begin(operands)
        for step, last in self.runs or zip(self.steps, self.last, strict=True):
            _run_with_place(step, self.graph, values)
            if sizes is not None:
                parts = step.joins.parts if isinstance(step, KernelRun) else ()
                names = (name for name in step.outputs if name in values and name not in parts)
                sizes.update((name, bytes_of(values[name])) for name in names)
            for name in last:
                values.pop(name, None)  # a part of a result may never be a value of its own
        return [values[name] for name in self.graph.outputs]

    def _run_first(self, operands: Sequence[Any]) -> list[Any]:
        """Run the steps in the order that dense values ask for, and reorder them by the
        sizes met.
        """
        self.foresee(operands)
        views = {node.name for node in self.graph.nodes if is_view(node)}
        sizes: dict[str, int] = {}
        results = self._run(operands, sizes)
        self._reorder({name: size for name, size in sizes.items() if name not in views})
        return results

    def foresee(self, operands: Sequence[Any]) -> None:
        """Order the steps by the bytes of their values as dense arrays, unless a call did."""
        if self.order is None and len(self.steps) > 2:
            names = {name for step in self.steps for name in step.outputs}
            self._reorder(dense_bytes(self.graph, names, operands))

    def _reorder(self, sizes: Mapping[str, int]) -> None:
        """Put the steps into the order in which the fewest bytes are held."""
        order = order_steps(self.graph, self.steps, sizes)
        steps = tuple(self.steps[number] for number in order.numbers)
        self.runs = tuple(zip(steps, _last_read(self.graph, steps), strict=True))
        self.order = order


def _run_with_place(step: Step, graph: Graph, values: dict[str, Any]) -> None:
    """Run a step; its errors have a note with the user's lines."""
    try:
        step.run(graph, values)
    except Exception as error:
        error.add_note(f"in what {step.places} computes")
        raise


Partition = Callable[[Graph], Sequence[Region]]
"""Cuts a graph into regions, in the order in which they run."""


def make_program(
    graph: Graph,
    partition: Partition = partition_by_stages,
    offloaded: Callable[[Region], Step] | None = None,
    options: CallOptions = MANY_CALLS,
) -> GraphProgram:
    """Choose the steps that run a graph of primitives.

    partition  cuts it into regions that kernels compute, or NumPy; each is convex
    offloaded  makes the step of a region that a backend computes
    options    of the calls of kernels
    """
    names = tuple(leaf.name for leaf in graph.inputs)
    steps: list[Step] = []
    views: list[NumpyRun] = []
    of_operands = operand_views(graph)
    regions = partition(graph)
    handed = _handed_out(graph, regions)
    for region in regions:
        if region.kernel:
            between = frozenset(region.outputs) - handed
            steps.append(KernelRun(region, between, options=options))
        elif region.target and offloaded is not None:
            steps.append(offloaded(region))
        else:
            for node in region.nodes:
                run = _numpy_run(node, names)
                (views if node.name in of_operands else steps).append(run)
    steps = with_joins(graph, steps)
    numbers = graph.numbers
    compute_numbers = compiled([number.extent for number in numbers], names) if numbers else None
    makers = tuple((number.name, _maker(number.fact)) for number in numbers)
    last = _last_read(graph, steps)
    return GraphProgram(graph, tuple(steps), compute_numbers, makers, last, tuple(views))


def with_joins(graph: Graph, steps: Sequence[Step]) -> list[Step]:
    """Let kernels write the parts of arrays that NumPy would put together."""
    nodes = graph.by_name
    sparse = {leaf.name for leaf in graph.leaves if leaf.fact.sparsity}
    for node in graph.nodes:
        if not sparse.isdisjoint(node.inputs):
            sparse.add(node.name)
    makers_of = {name: place for place, step in enumerate(steps) for name in step.outputs}
    arrays: dict[str, int] = {}
    read: set[str] = set()
    for step in steps:
        if not isinstance(step, NumpyRun) or not is_concatenate(step.node):
            continue
        bases = [same_elements(nodes, name) for name in step.node.inputs]
        makers = {arrays.get(base, makers_of.get(base, -1)) for base in bases}
        place = max(makers)
        kernels = steps[place] if place >= 0 else None
        if not isinstance(kernels, KernelRun) or step.node.name in sparse:
            continue
        inner = [name for name, at in arrays.items() if at == place]
        parts = kernels.joins.parts
        join = join_of(graph, step.node, kernels.region.outputs, inner, parts)
        if join is None:
            continue
        copies = [name for n, name in enumerate(step.node.inputs) if n not in join.places]
        if all(name not in makers_of or makers_of[name] < place for name in copies):
            kernels.joins = Joins((*kernels.joins.joins, join))
            arrays[step.node.name] = place
            read.update(copies)
    return [step for step in steps if not _is_joined(graph, step, arrays, read)]


def _is_joined(graph: Graph, step: Step, arrays: Collection[str], read: Collection[str]) -> bool:
    """Tell whether a step puts parts together that kernels write, or shows one of them alone.

    read  the values that are copied into arrays
    """
    if not isinstance(step, NumpyRun) or step.node.name in read:
        return False
    if step.node.name in arrays:
        return True
    readers = [node.name for node in graph.nodes if step.node.name in node.inputs]
    is_shown = same_elements(graph.by_name, step.node.name) != step.node.name
    return is_shown and step.node.name not in graph.outputs and {*readers} <= {*arrays}


def _handed_out(graph: Graph, regions: Sequence[Region]) -> frozenset[str]:
    """Return the values that NumPy or the caller gets."""
    nodes = graph.by_name
    read = {*graph.outputs}
    for region in regions:
        if not region.kernel:
            read |= {name for node in region.nodes for name in node.inputs}
    return frozenset(read | {base_of(nodes, name) for name in read})


def _last_read(graph: Graph, steps: Sequence[Step]) -> tuple[tuple[str, ...], ...]:
    """List for each step the values it is the last to read, but for operands and results."""
    nodes = graph.by_name
    live = {*graph.outputs, *(leaf.name for leaf in graph.leaves)}
    last_reads: list[tuple[str, ...]] = []
    for step in reversed(steps):
        inner = step.nodes
        outputs = {node.name for node in inner}
        read = {value for n in inner for name in n.inputs for value in (name, base_of(nodes, name))}
        stored = [
            name for name in read - outputs - live if name in nodes and _is_stored(name, steps)
        ]
        last_reads.append(tuple(sorted(stored)))
        live |= read - outputs
    return tuple(reversed(last_reads))


def _is_stored(name: str, steps: Sequence[Step]) -> bool:
    """Tell whether a step makes a value."""
    return any(name in step.outputs for step in steps)


def _maker(fact: Fact) -> Callable[[Any], Any]:
    """Return the function that converts to a number of a fact's type."""
    types = {"int": int, "float": float, "complex": complex, "bool": bool}
    convert: Callable[[Any], Any] = types[fact.dtype] if fact.weak else np.dtype(fact.dtype).type
    return convert


def _numpy_run(node: Node, names: Sequence[str]) -> NumpyRun:
    operator = node.get("call", node.operator)
    extents: list[Extent] = []
    if operator in NEED_SIZES:
        extents += node.shape
    for entry in node.get("key", ()):
        extents += [end for end in entry[1:] if end is not None]
    return NumpyRun(node, compiled(extents, names) if extents else None)


def has_short_way(key: tuple[object, ...] | None) -> Any:
    """Return the short way of a call that was made, None where there is none."""
    short_way = find(key)
    return None if short_way is None or short_way is no_short_way else short_way
