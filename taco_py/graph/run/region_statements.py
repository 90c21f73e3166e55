"""A region of primitives → statements in index notation, for one compile.

    m = reduce max(S);  b = broadcast(m);  d = map subtract(S, b);  P = map exp(d)
    →   m[i] = max(j, S[i,j]);  P[i,j] = exp(S[i,j] - m[i])

A primitive that one other reads is written into it; so are layouts and broadcasts, which make
nothing. What others read twice, what is reduced, and products are statements of their own, but for
products where only some elements are read: where a sparse operand stores something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from codegen.names import Names
from codegen.records import dataclass
from taco_py.graph.extents import Extent
from taco_py.graph.fission.expressible import literal_of
from taco_py.graph.graph_builder import is_layout
from taco_py.graph.nodes import Constant, Fact, Graph, Leaf, Node
from taco_py.graph.position_operands import is_positions
from taco_py.graph.primitives.family import Index, Operands
from taco_py.graph.primitives.gathers import is_of_elements
from taco_py.graph.primitives.primitive_table import PRIMITIVES
from taco_py.graph.primitives.sampled_values import OPERATOR as SAMPLED
from taco_py.graph.primitives.sampled_values import everywhere, operator_of
from taco_py.graph.run.partition_by_stages import Region
from taco_py.graph.run.sized_statements import with_sizes
from taco_py.graph.sampling.fills_of_values import fill_of_value, is_spread, reduces
from taco_py.graph.view_operators import is_places, operand_views
from taco_py.language.formats import LETTERS, Format, dense
from taco_py.language.legal.absent import fill_of
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import POSITION, Number
from taco_py.language.notation.rewrites.fills import stored_alone, with_fills
from taco_py.planner.ir.formats import compressed_indices, levels_of
from taco_py.planner.ir.result_format import result_format

MOST_FUNCTIONS = 40
"""Functions of elements in one expression."""

FACTORS = ("multiply", "divide", "true_divide", "negative")
"""Functions of elements that may stand in a product that sums are taken of."""

CHEAP = (
    "add", "subtract", "multiply", "negative", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal",
)  # fmt: skip
"""Functions of elements that take less than the memory that their result would."""

MOST_READERS = 4
"""Readers of a value that each compute it."""

DENSE = LETTERS["d"]


@dataclass(frozen=True, slots=True)
class Stored:
    """How an operand of a region is stored.

    fill  what it is where it stores nothing, None where it stores all
    """

    format: Format
    dtype: str
    fill: Number | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Statements:
    """What a region is in index notation.

    operands  the values that it reads, in order
    results   the values that others read, in order
    formats   of the values that are stored sparse, but for results that users get
    stored    how operands and values are stored that are not dense
    """

    assignments: tuple[Assignment, ...]
    operands: tuple[str, ...]
    results: tuple[str, ...]
    formats: Mapping[str, Format]
    stored: Mapping[str, Stored]


def write_statements(
    graph: Graph,
    region: Region,
    stored: Mapping[str, Stored],
    between: frozenset[str] = frozenset(),
) -> Statements:
    """Write a region of a graph, given how the operands are stored that are not dense.

    between  results that kernels alone read: stored as values between statements are
    """
    writer = _Writer(graph, region, dict(stored), between)
    for node in region.nodes:
        writer.visit(node)
    return writer.statements()


@dataclass(slots=True)
class _Writer:
    graph: Graph
    region: Region
    stored: dict[str, Stored]
    between: frozenset[str] = frozenset()
    assignments: list[Assignment] = field(default_factory=list)
    formats: dict[str, Format] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    operands: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    readers: dict[str, list[Node]] = field(default_factory=dict)
    fills: dict[str, Number | None] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    names: Names = field(default_factory=Names)

    def visit(self, node: Node) -> None:
        """Write the statement of a primitive that needs one."""
        if not self.nodes:
            self._look_around()
        inner = (name for operand in node.inputs for name in self._through(operand))
        self.counts[node.name] = 1 + sum(self.counts.get(name, 0) for name in {*inner})
        if not self._is_written_into_another(node):
            self._write(node)
            self.counts[node.name] = 0

    def _look_around(self) -> None:
        self.nodes = self.graph.by_name
        self.constants = {constant.name: constant for constant in self.graph.constants}
        members = {node.name for node in self.region.nodes}
        for node in self.region.nodes:
            for name in node.inputs:
                for passed in self._through(name):
                    self.readers.setdefault(passed, []).append(node)
        for node in self.graph.nodes:
            if node.name in members or is_layout(node):
                self.fills[node.name] = self._fill(node)

    def _through(self, name: str) -> Iterable[str]:
        """Yield a value and the values that it is a layout of."""
        yield name
        while name in self.nodes and is_layout(self.nodes[name]):
            (name,) = self.nodes[name].inputs
            yield name

    # ------------------------------------------------------------ what is written where

    def _is_written_into_another(self, node: Node) -> bool:
        readers = self.readers.get(node.name, [])
        if node.name in self.region.outputs or not readers:
            return False
        if len(readers) > 1:
            return self._is_cheap(node, readers) or self._is_cheap_gather(node, readers)
        (reader,) = readers
        if self.counts[node.name] > MOST_FUNCTIONS:
            return False
        if operator_of(node) == "map":
            return self._may_stand_in(node, reader)
        if operator_of(node) in ("gather", "scatter"):
            return self._is_cheap_gather(node, readers)
        if operator_of(node) == "contract" and operator_of(reader) == "gather":
            return is_of_elements(reader)
        if operator_of(node) == "contract" and operator_of(reader) == "scatter":
            return not self._is_in_products(reader) and _sums_nothing(node)
        return operator_of(node) == "contract" and self._is_restricted(node)

    def _is_cheap(self, node: Node, readers: Sequence[Node]) -> bool:
        """Tell whether computing a value again takes less than writing and reading it."""
        return (
            operator_of(node) == "map"
            and node.get("function") in CHEAP
            and (len(readers) <= MOST_READERS or self._is_read_alike(node))
            and all(map(_reads_once, readers))
            and self.fills.get(node.name) is None
            and all(map(self._is_there_or_cheap, node.inputs))
        )

    def _is_read_alike(self, node: Node) -> bool:
        """Tell whether reading a value's operands takes as many bytes as reading the value."""
        facts = self.graph.facts
        bases = {base for name in node.inputs for *_, base in [[*self._through(name)]]}
        return sum(facts[base].order == node.fact.order for base in bases) <= 1

    def _is_there_or_cheap(self, name: str) -> bool:
        """Tell whether a value is read, or is a cheap function of values that are read."""
        *_, base = self._through(name)
        node = self.nodes.get(base)
        if node is None or self._is_there(name):
            return True
        cheap = operator_of(node) == "map" and node.get("function") in CHEAP
        return cheap and self.counts[base] <= 2 and all(map(self._is_there, node.inputs))

    def _is_cheap_gather(self, node: Node, readers: Sequence[Node]) -> bool:
        """Tell whether elements at positions are read again in less than they are stored and
        read."""
        if len(readers) > MOST_READERS or not self._is_there(node.inputs[0]):
            return False
        if operator_of(node) == "scatter":
            return self._is_in_products(node)
        return operator_of(node) == "gather" and all(
            _is_once_each(node, reader) and not self._is_spread_in(node, reader)
            for reader in readers
        )

    def _is_in_products(self, node: Node) -> bool:
        """Tell whether elements added up at positions are factors of products alone, which sum over
        the positions then: of a matrix that is as large as the products' nothing is made."""
        readers = self.readers.get(node.name, [])
        few = node.name not in self.region.outputs and 0 < len(readers) <= MOST_READERS
        return few and is_of_elements(node) and all(operator_of(r) == "contract" for r in readers)

    def _is_there(self, name: str) -> bool:
        """Tell whether a value is read, not computed, where it is asked for."""
        *_, base = self._through(name)
        return base in self.defined or base not in self.counts

    def _is_factor(self, name: str) -> bool:
        """Tell whether the expression of a value is a product of values that are in memory."""
        if self._is_there(name):
            return True
        *_, base = self._through(name)
        node = self.nodes[base]
        return node.get("function") in FACTORS and all(map(self._is_factor, node.inputs))

    def _may_stand_in(self, node: Node, reader: Node) -> bool:
        """Tell whether a function of elements is computed once for each element there too."""
        if self._is_spread_in(node, reader) and node.fact.order and not self._is_restricted(node):
            return False
        if operator_of(reader) == "scatter":
            return not self._is_in_products(reader)
        if _reads_once(reader):
            return True
        if operator_of(reader) == "gather":
            return is_of_elements(reader)
        factor = node.get("function") in FACTORS and all(map(self._is_factor, node.inputs))
        return operator_of(reader) == "contract" and factor

    def _is_spread_in(self, node: Node, reader: Node) -> bool:
        """Tell whether a reader stretches a value."""
        return any(
            name in self.nodes
            and self.nodes[name].operator == "broadcast"
            and node.name in self._through(name)
            for name in reader.inputs
        )

    def _is_restricted(self, node: Node) -> bool:
        """Tell whether the one reader asks for elements where a sparse operand stores something."""
        readers = self.readers.get(node.name, [])
        if len(readers) != 1 or node.name in self.region.outputs:
            return False
        (reader,) = readers
        if operator_of(reader) != "map" or self.fills.get(node.name) is not None:
            return False
        if reader.operator == SAMPLED or self.fills.get(reader.name) is not None:
            return True
        return self._is_restricted(reader)

    def _fill(self, node: Node) -> Number | None:
        """Return a primitive's value where its sparse operands store nothing; None if it
        is dense.
        """

        def of(name: str) -> Number | None:
            if name in self.fills:
                return self.fills[name]
            if name in self.stored:
                return self.stored[name].fill
            literal = self._literal(name)
            return literal.value if isinstance(literal, Literal) else None

        if is_layout(node):
            return of(node.inputs[0])
        return fill_of_value(everywhere(node), self.graph.facts, of, self._is_sparse_value)

    def _is_sparse_value(self, name: str) -> bool:
        if name in self.stored:
            return self.stored[name].fill is not None
        return self.fills.get(name) is not None

    # ------------------------------------------------------------ expressions

    def _literal(self, name: str) -> Expr | None:
        constant = self.constants.get(name)
        if constant is None or constant.fact.order or constant.fact.sparsity:
            return None
        return literal_of(constant)

    def _write(self, node: Node) -> None:
        names = Names()
        indices: list[Index] = [
            None if size.constant == 1 else names.fresh("i") for size in node.shape
        ]
        value = self._sized(self._express(node, indices, names), indices, node.shape, names)
        target = Access(node.name, tuple(index for index in indices if index is not None))
        self.defined.add(node.name)
        assignment = Assignment(target, value)
        self.assignments.append(assignment)
        self._store(node, assignment)

    def _sized(
        self, value: Expr, indices: Sequence[Index], shape: Sequence[Extent], names: Names
    ) -> Expr:
        """Return a value that says how large it is: what is one number says it by an operand."""
        pairs = zip(indices, shape, strict=True)
        sizes = {index: size for index, size in pairs if index is not None}
        if {*sizes} <= {*free_indices(value)}:
            return value
        sized, read = with_sizes(value, sizes, self._values_there(), names)
        for name in read:
            if name not in self.defined:
                self.operands.setdefault(name)
        return sized

    def _values_there(self) -> Iterator[tuple[str, Fact]]:
        """Yield the operands of the graph and the region, and the results of statements, with
        facts.
        """
        leaves: tuple[Leaf, ...] = (*self.graph.inputs, *self.graph.constants)
        for leaf in leaves:
            yield leaf.name, leaf.fact
        for node in self.region.nodes:
            for name in node.inputs:
                other = self.nodes.get(name)
                if name in self.defined or (other is not None and not self._is_here(other)):
                    yield name, self.graph.facts[name]
        views = operand_views(self.graph)
        for node in self.graph.nodes:
            if node.name in views and not is_layout(node) and not is_positions(node):
                yield node.name, node.fact

    def _read(self, name: str, indices: Sequence[Index], names: Names) -> Expr:
        literal = self._literal(name)
        if literal is not None:
            return literal
        node = self.nodes.get(name)
        if node is not None and name not in self.defined and self._is_here(node):
            return self._express(everywhere(node), indices, names)
        if name not in self.defined:
            self.operands.setdefault(name)
        units = self._units(name)
        modes = tuple(str(index) for index, unit in zip(indices, units, strict=True) if not unit)
        access = Access(name, modes)
        is_position = node is not None and is_places(node) and node.dtype == "int64"
        return Call(POSITION, (access,)) if is_position else access

    def _is_here(self, node: Node) -> bool:
        """Tell whether a value is written where it is read: of this region, or shown in another
        way."""
        return is_layout(node) or node in self.region.nodes

    def _units(self, name: str) -> tuple[bool, ...]:
        if name in self.nodes:
            return self.nodes[name].fact.units
        return next(leaf.fact.units for leaf in self.graph.leaves if leaf.name == name)

    def _express(self, node: Node, indices: Sequence[Index], names: Names) -> Expr:
        facts = self.graph.facts
        operands = Operands(
            tuple(facts[name] for name in node.inputs),
            lambda place, subscripts: self._read_of(node, place, subscripts, names),
            lambda: names.fresh("i"),
        )
        return PRIMITIVES[node.operator].express(node, indices, operands)

    def _read_of(self, node: Node, place: int, indices: Sequence[Index], names: Names) -> Expr:
        """Return an operand of a primitive; what is reduced says over how many elements."""
        name = node.inputs[place]
        value = self._read(name, indices, names)
        if operator_of(node) != "reduce":
            return value
        return self._sized(value, indices, self.graph.facts[name].shape, names)

    # ------------------------------------------------------------ storage

    def _store(self, node: Node, assignment: Assignment) -> None:
        """Note how a value between is stored where it is sparse."""
        read = {access.tensor for access in accesses(assignment.value)}
        sparse = {n for n in read if n in self.stored and self.stored[n].fill is not None}
        positions = {name for name in read if name in self.stored} - sparse
        if positions:  # they restrict no result: each row has an entry
            self.formats[node.name] = dense(len(assignment.target.indices))
        fill = fill_of(assignment.value, self._access_fill) if sparse else None
        if fill is None or not assignment.target.indices:
            return
        value, target = assignment.value, assignment.target
        if reduces(value, sparse) and not is_spread(value, sparse, target.indices):
            return  # few of its elements are not stored
        formats = {
            name: self.stored[name].format if name in sparse else _dense(access)
            for access in accesses(assignment.value)
            for name in [access.tensor]
        }
        filled = with_fills(assignment, {n: self.stored[n].fill or 0 for n in sparse})
        if fill != 0:
            filled = stored_alone(filled)
        form = format_between(filled, formats)
        if not is_sparse(form):
            return
        self.stored[node.name] = Stored(form, node.dtype, fill)
        if positions or node.name not in self.region.outputs or node.name in self.between:
            self.formats[node.name] = form

    def _access_fill(self, access: Access) -> Number | None:
        stored = self.stored.get(access.tensor)
        return None if stored is None else stored.fill

    def statements(self) -> Statements:
        """Return the statements that were written."""
        results = tuple(name for name in self.region.outputs if name in self.defined)
        return Statements(
            tuple(self.assignments), tuple(self.operands), results, dict(self.formats), self.stored
        )


def _reads_once(node: Node) -> bool:
    """Tell whether a primitive reads each element of its operands once."""
    return PRIMITIVES[operator_of(node)].reads_once


def _is_once_each(node: Node, reader: Node) -> bool:
    """Tell whether a reader asks for each element of a value once, as far as is known."""
    if operator_of(reader) != "contract":
        return _reads_once(reader)
    labels = dict(zip(reader.inputs, reader.get("labels"), strict=True))
    value_labels = labels.get(node.name, ())
    return {label for group in labels.values() for label in group} <= {*value_labels}


def _sums_nothing(node: Node) -> bool:
    """Tell whether a product keeps all modes of its factors."""
    return {label for group in node.get("labels") for label in group} <= {*node.get("kept")}


def _dense(access: Access) -> Format:
    order = len(access.indices)
    return Format((DENSE,) * order, tuple(range(order)))


def format_between(assignment: Assignment, formats: Mapping[str, Format]) -> Format:
    """Choose how a sparse value between statements is stored.

    P[h,q,k] = where(M[q,k], …, 0), M in ds   →   dds: what no sparse operand restricts is outside
    """
    form = result_format(assignment, formats)
    if not is_sparse(form):
        return form
    restricted = compressed_indices(assignment, levels_of(assignment, formats, every=True))
    target = assignment.target.indices
    stored = [target[mode] for mode in form.mode_order]
    free = [index for index in target if index not in restricted]
    pairs = [pair for pair in zip(stored, form.levels, strict=True) if pair[0] not in free]
    if not pairs or pairs[0][1] != DENSE:
        return form
    levels = (DENSE,) * len(free) + tuple(level for _, level in pairs)
    order = tuple(target.index(index) for index in (*free, *(index for index, _ in pairs)))
    return Format(levels, order)
