"""A kernel as what networks read: a tree of loops and statements, and a graph of operations.

    y[i] = A[i,j] * x[j]   →   tree     kernel → i → (j → t += A * x), y = t
                               graph    i → j → load A, load x → multiply → update t → store y

(Baghdadi et al. 2021 read such trees, Kaufman et al. 2021 such graphs.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.tree import children
from taco_py.tuning.networks.kernel_nest import ROOT, KernelNest, NestStatement
from taco_py.tuning.networks.nest_vectors import (
    ACCESS_NAMES,
    KINDS,
    LOOP_NAMES,
    Vector,
    access_vector,
    kind_of,
    loop_vector,
    statement_vector,
)
from taco_py.tuning.prices.kernel_features import FEATURES, KernelFacts, features_of

OPCODES = ("loop", "load", "store", "update", *KINDS)
"""The kinds of nodes of a graph."""
NODE_NAMES = (*OPCODES, *LOOP_NAMES, *ACCESS_NAMES)
KERNEL_NAMES = tuple(FEATURES)
Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class KernelForm:
    """A kernel as arrays.

    kernel      the numbers of `FEATURES`
    loops       a row of `LOOP_NAMES` for the kernel itself, which is 0, and for each loop
    loop_parent of each loop, its place among `loops`; of the kernel -1
    statements  a row of `STATEMENT_NAMES` for each statement
    statement_parent  of each statement, the place of the loop right around it
    nodes       a row of `NODE_NAMES` for each operation
    edges       pairs of nodes: from the loop or the value to who is in it or reads it
    """

    kernel: Vector
    loops: Vector
    loop_parent: Numbers
    statements: Vector
    statement_parent: Numbers
    nodes: Vector
    edges: Numbers


def form_of(facts: KernelFacts) -> KernelForm:
    """Return a kernel as trees and graphs have it. Raises ScheduleError for loops that are none."""
    nest = KernelNest(facts)
    loops = [loop_vector(nest, place) for place in range(len(nest.loops))]
    statements = [statement_vector(nest, statement, loops) for statement in nest.statements]
    builder = _GraphBuilder(nest, loops)
    return KernelForm(
        features_of(facts).astype(np.float32),
        np.array([np.zeros(len(LOOP_NAMES), np.float32), *loops]),
        np.array([-1, *(loop.parent + 1 for loop in nest.loops)], np.int32),
        np.array(statements),
        np.array([statement.parent + 1 for statement in nest.statements], np.int32),
        np.array(builder.nodes),
        np.array(sorted(builder.edges), np.int32).reshape(-1, 2),
    )


class _GraphBuilder:
    """The nodes and edges of a kernel's graph, while they are added."""

    def __init__(self, nest: KernelNest, loops: list[Vector]) -> None:
        self.nest, self.nodes = nest, list[Vector]()
        self.edges = set[tuple[int, int]]()
        self.stores: dict[str, int] = {}
        for place, loop in enumerate(nest.loops):
            self._add("loop", loops[place], len(OPCODES))
            if loop.parent != ROOT:
                self.edges.add((loop.parent, place))
        for statement in nest.statements:
            self._add_statement(statement, loops)

    def _add(self, opcode: str, vector: Vector, begin: int) -> int:
        """Add a node; its vector stands from a column on."""
        node = np.zeros(len(NODE_NAMES), np.float32)
        node[OPCODES.index(opcode)] = 1.0
        node[begin : begin + len(vector)] = vector
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _add_statement(self, statement: NestStatement, loops: list[Vector]) -> None:
        """Add the loads, operations and the store of a statement."""
        assign, parent = statement.assign, statement.parent
        inside = loops[parent] if parent != ROOT else np.zeros(len(LOOP_NAMES), np.float32)
        value = self._value(assign.value, statement, inside)
        opcode = "store" if assign.operator is None else "update"
        target = self._access(opcode, assign.target, statement)
        self.edges.update((node, target) for node in value)
        if (before := self.stores.get(assign.target.tensor)) is not None:
            self.edges.add((before, target))
        self.stores[assign.target.tensor] = target

    def _access(self, opcode: str, access: Access, statement: NestStatement) -> int:
        enclosing = self.nest.enclosing(statement.parent)
        vector = access_vector(self.nest, access, enclosing)
        node = self._add(opcode, vector, len(OPCODES) + len(LOOP_NAMES))
        self._hang(node, statement)
        return node

    def _hang(self, node: int, statement: NestStatement) -> None:
        """Add the edge from the loop right around a statement."""
        if statement.parent != ROOT:
            self.edges.add((statement.parent, node))

    def _value(self, expr: Expr, statement: NestStatement, inside: Vector) -> tuple[int, ...]:
        """Add the nodes of an expression, and return the nodes of its value."""
        match expr:
            case Access():
                node = self._access("load", expr, statement)
                if expr.tensor in self.stores:
                    self.edges.add((self.stores[expr.tensor], node))
                return (node,)
            case Call(operator=operator):
                parts = [n for arg in expr.args for n in self._value(arg, statement, inside)]
                node = self._add(kind_of(operator), inside, len(OPCODES))
                self._hang(node, statement)
                self.edges.update((part, node) for part in parts)
                return (node,)
        return tuple(n for part in children(expr) for n in self._value(part, statement, inside))
