"""A problem → the dataflow graph that computes one value after another, each in loops of its own.

    P[i,j] = exp(X[i,j]) / sum(k, exp(X[i,k]))
    →  parallel i: over j: t1[i,j] = exp(X[i,j])
       parallel i: over j: reduce t1[i,j]; once: t2[i] = …
       parallel i: over j: P[i,j] = t1[i,j] / t2[i]

What is summed inside of a value, and what takes long and is read by several values, is a temporary
in main memory. Rewrites (`rewrites`) bring it nearer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import field

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.dataflow.nodes import (
    Buffer,
    Compute,
    Dataflow,
    Instruction,
    Load,
    Memory,
    ParallelMap,
    Pass,
    Reduce,
    Role,
    Store,
)
from taco_py.compiler.dataflow.slab_form import SlabForm, chain_of
from taco_py.language.notation import nodes
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.tree import children
from taco_py.language.problem import Problem

QUICK = frozenset(
    ("+", "-", "*", "min", "max", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "!", "&", "|", "^",
     "fabs", "abs", "where", "nonzero", "position")
)  # fmt: skip
"""Operators of loop IR that take no longer than to load what they made before."""


def build(problem: Problem, form: SlabForm, slow: Set[str] = frozenset()) -> Dataflow:
    """Build the graph of a problem's values, each in a map of its own.

    slow  the tensors whose elements take long to load
    """
    builder = _Builder(problem, form, slow)
    for output in form.outputs:
        builder.add_output(output)
    return builder.graph()


def is_quick(operator: Operator) -> bool:
    """Tell whether an operator takes no longer than a load."""
    return operator.c_operator in QUICK


@dataclass(slots=True)
class _Builder:
    """Collects the maps of a graph.

    slow    the tensors whose elements take long to load
    stored  the element of a temporary that stands for an expression
    """

    problem: Problem
    form: SlabForm
    slow: Set[str]
    maps: list[ParallelMap] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    stored: dict[Expr, Access] = field(default_factory=dict)
    shared: frozenset[Expr] = frozenset()
    dtypes: dict[str, np.dtype[np.generic]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    values: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        problem = self.problem
        self.dtypes.update((name, np.dtype(type.dtype)) for name, type in problem.operands)
        self.shared = frozenset(_shared(self.form.outputs, self.slow))
        for name, type in problem.operands:
            indices = self._indices_of(name)
            self._add(Buffer(name, indices, type.dtype, Memory.DRAM, Role.OPERAND))
        for output in self.form.outputs:
            target = output.target
            type = problem.type_of(target.tensor)
            self._add(Buffer(target.tensor, target.indices, type.dtype, Memory.DRAM, Role.RESULT))

    def _indices_of(self, name: str) -> tuple[str, ...]:
        every = (a for output in self.form.outputs for a in accesses(output.value))
        return next(access.indices for access in every if access.tensor == name)

    def _add(self, buffer: Buffer) -> None:
        self.buffers[buffer.name] = buffer
        self.names.fresh(buffer.name)

    def graph(self) -> Dataflow:
        """Return the graph of the maps so far."""
        return Dataflow(tuple(self.buffers.values()), tuple(self.maps))

    def add_output(self, output: Assignment) -> None:
        """Add the map of an output, after the maps of the temporaries that it reads."""
        chain, body = chain_of(output.value)
        if output.value in self.shared:
            self._store_first(output.value)
            chain, body = (), output.value
        else:
            self._prepare(body)
        self._write(output.target, chain, body)

    def _prepare(self, expr: Expr) -> bool:
        """Make the temporaries that an expression reads; return whether it is one itself."""
        if expr in self.stored:
            return True
        chain, body = chain_of(expr)
        if chain or expr in self.shared:
            self._store_first(expr)
            return True
        for child in children(body):
            self._prepare(child)
        return False

    def _store_first(self, expr: Expr) -> None:
        """Store the value of an expression in a temporary."""
        if expr in self.stored:
            return
        chain, body = chain_of(expr)
        for child in (body,) if chain else children(body):
            self._prepare(child)
        name = self.names.fresh("t")
        indices = self.form.loops(free_indices(expr))
        dtype = expression_dtype(expr, self.dtypes)
        self.buffers[name] = Buffer(name, indices, dtype.name, Memory.DRAM, Role.TEMPORARY)
        access = Access(name, indices)
        self._write(access, chain, body)
        self.stored[expr] = access
        self.dtypes[name] = dtype

    # ------------------------------------------------------------ one map

    def _write(self, target: Access, chain: tuple[nodes.Reduce, ...], body: Expr) -> None:
        """Add the map that stores a value, or its reduction over the indices of a chain."""
        form = self.form
        reduced = [sum_.index for sum_ in chain]
        loops = form.loops((*target.indices, *free_indices(body), *reduced))
        slab = tuple(index for index in form.slab if index.name in loops)
        inner = tuple(index for index in loops if index not in form.single)
        inside = [index for index in inner if index in reduced]
        operator = chain[0].operator if chain else None
        code = _Code(self, form.single)
        passes: list[Pass]
        is_partial = any(index.name in reduced for index in slab)
        combine = operator if is_partial else None
        dtype = self.buffers[target.tensor].dtype
        if operator is None:
            arg = code.value(body)
            passes = code.passes(inner, Store(target.tensor, target.indices, arg))
        elif len(inside) == len(inner) > 0:
            arg = code.value(body)
            total = self.values.fresh("v")
            passes = code.passes(inner, Reduce(total, dtype, operator, arg))
            passes.append(Pass((), (Store(target.tensor, target.indices, total, combine),)))
        else:
            rest = tuple(index for index in inner if index in target.indices)
            arg = code.value(body)
            begin = _identity(operator, dtype)
            store = Store(target.tensor, target.indices, arg, operator)
            passes = code.passes(inner, store)
            if not is_partial:
                passes.insert(0, Pass(rest, (Store(target.tensor, target.indices, begin),)))
        self.maps.append(ParallelMap(slab, tuple(passes)))


def _identity(operator: Operator, dtype: str) -> Literal:
    value = operator.identity_of(np.dtype(dtype))
    assert value is not None  # `slab_form` asked
    return Literal(value, dtype=dtype)


@dataclass(slots=True)
class _Code:
    """The instructions of one map: those of each slab, then those inside of its loops.

    numbers  the name of the value of each expression, with its dtype
    """

    builder: _Builder
    single: frozenset[str]
    slab_code: list[Instruction] = field(default_factory=list)
    inside: list[Instruction] = field(default_factory=list)
    numbers: dict[Expr, str | Literal] = field(default_factory=dict)
    types: dict[str, np.dtype[np.generic]] = field(default_factory=dict)

    def passes(self, loops: tuple[str, ...], last: Instruction) -> list[Pass]:
        """Return the passes of the code so far, with a last instruction in the loops."""
        inside = Pass(loops, (*self.inside, last))
        return [Pass((), tuple(self.slab_code)), inside] if self.slab_code else [inside]

    def value(self, expr: Expr) -> str | Literal:
        """Return the name of the value of an expression, after the code that makes it."""
        if expr not in self.numbers:
            self.numbers[expr] = self._computed(expr)
        return self.numbers[expr]

    def _computed(self, expr: Expr) -> str | Literal:
        expr = self.builder.stored.get(expr, expr)
        place = self.slab_code if {*free_indices(expr)} <= self.single else self.inside
        match expr:
            case Literal():
                return expr
            case Access(tensor, indices):
                dtype = self.builder.dtypes[tensor]
                name = self._new_value(dtype)
                place.append(Load(name, dtype.name, tensor, indices))
                return name
            case Call(operator, args):
                values = tuple(self.value(arg) for arg in args)
                typed = tuple(Access(v, ()) if isinstance(v, str) else v for v in values)
                dtype = expression_dtype(Call(operator, typed), self.types)
                name = self._new_value(dtype)
                place.append(Compute(name, dtype.name, operator, values))
                return name
        raise AssertionError(expr)  # reductions are temporaries

    def _new_value(self, dtype: np.dtype[np.generic]) -> str:
        name = self.builder.values.fresh("v")
        self.types[name] = dtype
        return name


# ---------------------------------------------------------------- what several values read


def _shared(outputs: tuple[Assignment, ...], slow: Set[str]) -> Iterator[Expr]:
    """Yield the expressions that several values read and that take long to compute again."""
    readers: Counter[Expr] = Counter()
    roots: dict[Expr, None] = {}
    for output in outputs:
        roots.update(dict.fromkeys(_roots(output.value)))
        roots[output.value] = None
    for root in roots:
        chain, body = chain_of(root)
        readers.update({*_parts(body if chain else root, top=not chain)})
        if not chain:
            readers.update({root})
    inner = {root for root in roots if isinstance(root, nodes.Reduce)}
    values = {output.value for output in outputs}
    for expr, count in readers.items():
        if isinstance(expr, nodes.Reduce):
            continue
        if count > 1 and _takes_long(expr, slow):
            yield expr
    for value in values:
        if value in inner and any(value in {*_parts_of(root)} for root in roots if root != value):
            yield value


def _parts_of(root: Expr) -> Iterator[Expr]:
    chain, body = chain_of(root)
    yield from _parts(body if chain else root, top=not chain)


def _roots(expr: Expr) -> Iterator[Expr]:
    """Yield the reductions inside of an expression."""
    chain, body = chain_of(expr)
    if chain:
        yield expr
    for child in (body,) if chain else children(expr):
        yield from _roots(child)


def _parts(expr: Expr, top: bool = False) -> Iterator[Expr]:
    """Yield the parts of an element-wise expression, down to reductions and elements."""
    if not top:
        yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from _parts(arg)


def _takes_long(expr: Expr, slow: Set[str]) -> bool:
    """Tell whether an expression of several elements has an operator or a load that takes long."""
    if not isinstance(expr, Call):
        return False
    loads = any(isinstance(arg, Access) and arg.tensor in slow for arg in expr.args)
    return loads or not is_quick(expr.operator) or any(_takes_long(a, slow) for a in expr.args)
