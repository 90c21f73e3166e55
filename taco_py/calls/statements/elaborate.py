"""What is known of the tensors that statements make, before anything runs: how each is stored, its
type and its shape. One statement is a text of several of length one.

Each statement makes what `evaluate` would return for it alone, of the tensors that it reads: the
same object, in the same format, of the same dtype.

    t[i] = x[i] * 2; s = sum(i, t[i])    x of int8
    →   t of int8;  t_int64[i] = t[i];  s = sum(i, t_int64[i])     sums of small integers are wide
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.operands import INT32_MAX, check_orders, check_sizes
from taco_py.arguments.option_checks import check_static_index, check_static_size
from taco_py.arguments.result_table import ARRAY, TENSOR, Question, ResultKind, look_up
from taco_py.arguments.results import vast_indices
from taco_py.calls.statements.duplicates import read_types
from taco_py.calls.statements.sampled_statements import sampled_statements
from taco_py.calls.statements.sequence import Statement, Statements
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.data.storage.tensor_data import ordered
from taco_py.data.tensors.tensor import as_format
from taco_py.language.fill import fill_of as fill_text
from taco_py.language.legal.absent import fill_of, masked_fill
from taco_py.language.legal.stored import is_sparse
from taco_py.language.legal.types import computes_exactly
from taco_py.language.legal.wraps import with_wraps
from taco_py.language.notation.checks import all_indices, operand_names, rename, unique
from taco_py.language.notation.dtypes import DType, result_dtype
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.functions.function_table import NEAREST
from taco_py.language.notation.half_types import computed_dtype, is_half
from taco_py.language.notation.nodes import Access, Assignment, Call
from taco_py.language.notation.operators import Number
from taco_py.language.notation.rewrites.fills import stored_alone, with_fills
from taco_py.language.notation.rewrites.wide_sums import wide_sums, with_wide_answers
from taco_py.language.problem import TensorType
from taco_py.planner.ir.formats import without_modes
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.target_facts import facts_of_target
from taco_py.planner.statements import fills_of


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """What a call says of the tensors that its statements make.

    formats    those that are asked for, by the name in the text
    dtype      what is computed in, None for NumPy's promotion
    static     sizes to compile in, by index
    repeated   operands that store a coordinate twice, which are added up in the type of reads
    index      the index type where that is asked for
    wide_sums  whether sums of small integers are wide
    squeezed   modes of size 1 that accesses of operands leave out
    zero       what sparse results do not store; None for the fill value that algebra finds
    """

    formats: Mapping[str, Any] = field(default_factory=dict)
    dtype: DType | None = None
    static: tuple[tuple[str, int], ...] = ()
    repeated: frozenset[str] = frozenset()
    index: str | None = None
    wide_sums: bool = True
    squeezed: Squeezed = ()
    zero: Number | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """An operand read in another type than its own.

    converted  whether in a copy, in which equal coordinates are added up
    """

    source: str
    dtype: DType
    converted: bool = False


@dataclass(frozen=True, slots=True)
class Elaborated:
    """Statements with what they make.

    assignments  in order; conversions of temporaries among them
    source_assignments      the assignments before what wraps and what is not stored was written out
    reads        the operands that are read in another type, by the name that statements read
    operands     facts of everything that is read or made
    kinds        how each target is handed out
    dtypes       of each target; kernels compute in `computed_dtype` of it
    """

    assignments: tuple[Assignment, ...]
    source_assignments: tuple[Assignment, ...]
    reads: Mapping[str, Read]
    operands: Mapping[str, Operand]
    kinds: Mapping[str, ResultKind]
    dtypes: Mapping[str, DType]

    @property
    def types(self) -> dict[str, TensorType]:
        """Return the type of each target."""
        targets = [assignment.target.tensor for assignment in self.assignments]
        return {name: self.operands[name].type for name in targets}


def elaborate(
    statements: Statements,
    operands: Mapping[str, Operand],
    containers: Mapping[str, str],
    options: ResultOptions,
) -> Elaborated:
    """Infer each statement's result, its type, shape and container, from the operands' facts.

    The caller rounds results to 16 bits; what other statements read is rounded as it is made.

    Raises OperandError, DimensionError, FormatError, OperandTypeError.
    """
    if len(statements.steps) == 1:
        return _as_written(statements, operands, containers, options)
    elaborated = _as_written(statements, operands, containers, options)
    sampled = sampled_statements(statements, elaborated.operands, frozenset(options.formats))
    if sampled.steps == statements.steps:
        return elaborated
    return _as_written(sampled, operands, containers, options)


def _as_written(
    statements: Statements,
    operands: Mapping[str, Operand],
    containers: Mapping[str, str],
    options: ResultOptions,
) -> Elaborated:
    """Infer the results of statements, all of whose elements are computed."""
    building = _Building(statements, options, dict(operands), dict(containers))
    for statement in statements.steps:
        building.add(statement)
    building.check_static()
    return building.elaborated()


def without_halves_of_scipy(kind: ResultKind, dtype: DType) -> ResultKind:
    """Hand a sparse result of 16 bits out as a Tensor, for SciPy's arrays have no such elements."""
    return replace(kind, kind=TENSOR) if is_half(dtype) and kind.kind != ARRAY else kind


def kinds_of(
    assignments: Sequence[Assignment],
    types: Mapping[str, TensorType],
    containers: Mapping[str, str],
) -> dict[str, ResultKind]:
    """Return how tensors of known formats are handed out that are made of operands in these
    containers."""
    kinds: dict[str, ResultKind] = {}
    all_containers = dict(containers)
    formats = {name: type.format for name, type in types.items()}
    for assignment in assignments:
        name = assignment.target.tensor
        kind = look_up(Question(assignment, formats, all_containers, ordered(formats[name])))
        kinds[name], all_containers[name] = kind, container_of(kind)
    return kinds


def container_of(kind: ResultKind) -> str:
    """Return the container of a result that is read again, as the result table names it."""
    if kind.kind in (ARRAY, TENSOR):
        return kind.kind
    return "sparse_matrix" if kind.kind.endswith("_matrix") else "sparse_array"


@dataclass(slots=True)
class _Building:
    """Statements elaborated so far.

    facts  facts of operands and of the tensors that were made
    """

    statements: Statements
    options: ResultOptions
    facts: dict[str, Operand]
    containers: dict[str, str]
    assignments: list[Assignment] = field(default_factory=list)
    source_assignments: list[Assignment] = field(default_factory=list)
    reads: dict[str, Read] = field(default_factory=dict)
    kinds: dict[str, ResultKind] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    sizes: dict[str, list[int]] = field(default_factory=dict)
    targets: set[str] = field(default_factory=set)

    def add(self, statement: Statement) -> None:
        """Infer the result of one more statement."""
        assignment = self._in_wide_types(statement)
        assignment = with_fills(assignment, fills_of(self.facts))
        shapes = {name: self._shape(name) for name in operand_names(assignment)}
        check_orders(assignment, shapes)
        sizes = check_sizes(assignment, shapes)
        for index, size in sizes.items():
            self.sizes.setdefault(index, []).append(size)
        promoted = self._promoted(assignment)
        dtype = self.options.dtype or result_dtype(assignment, promoted)
        if is_half(dtype) and len(self.statements.steps) > 1:  # others read it as it is rounded
            nearest = Call(NEAREST[dtype.name], (assignment.value,), assignment.value.span)
            assignment = replace(assignment, value=nearest)
        self.source_assignments.append(assignment)
        assignment, kind, fill = self._with_fill(assignment, dtype, promoted)
        kind = without_halves_of_scipy(kind, dtype)
        indices = assignment.target.indices
        shape = tuple(sizes[index] for index in indices)
        type = TensorType(kind.format, computed_dtype(dtype).name, fill=fill)
        operand = Operand(type, shape, float(prod(shape)))
        if is_sparse(kind.format) and not self.options.squeezed:
            operand = facts_of_target(assignment, self.facts, type, shape, NOMINAL)
        self._record(assignment, operand, kind, dtype)

    def _shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor without the modes that accesses leave out."""
        shape, axes = self.facts[name].shape, dict(self.options.squeezed).get(name, ())
        return tuple(n for axis, n in enumerate(shape) if axis not in axes)

    def _record(
        self, assignment: Assignment, facts: Operand, kind: ResultKind, dtype: DType
    ) -> None:
        name = assignment.target.tensor
        self.assignments.append(assignment)
        self.facts[name], self.kinds[name], self.dtypes[name] = facts, kind, dtype
        self.containers[name] = container_of(kind)
        self.targets.add(name)

    def _with_fill(
        self, assignment: Assignment, dtype: DType, promoted: Mapping[str, DType]
    ) -> tuple[Assignment, ResultKind, str]:
        """Return the assignment, the kind of its result, and the fill value as text.

        Only a Tensor or a temporary has a fill value other than 0.
        """
        assignment = with_wraps(assignment, self._fill, promoted)
        kind = self._kind(assignment)
        hidden = assignment.target.tensor not in self.statements.outputs.values()
        requested = None if hidden else self.options.zero
        value = requested
        if value is None:
            value = fill_of(assignment.value, self._fill, promoted)
        if value is None:  # what a mask leaves out of a value that is stored everywhere
            value = masked_fill(assignment.value)
        if value is None or value == 0:
            return assignment, kind, ""
        alone = stored_alone(assignment)
        sparse = self._kind(alone)
        keeps_fill = hidden or requested is not None or sparse.kind == TENSOR
        if not (is_sparse(sparse.format) and keeps_fill):
            return assignment, kind, ""
        return alone, sparse, fill_text(value, dtype)

    def _fill(self, access: Access) -> Number | None:
        return 0 if is_sparse(self.facts[access.tensor].type.format) else None

    def _kind(self, assignment: Assignment) -> ResultKind:
        """Look up the kind of result that `evaluate` returns for this statement alone."""
        name = self.statements.names[assignment.target.tensor]
        option = self.options.formats.get(name)
        requested = as_format(option, len(assignment.target.indices))
        formats = {n: self.facts[n].type.format for n in operand_names(assignment)}
        for name, axes in self.options.squeezed:
            formats[name] = without_modes(formats[name], formats[name].order - len(axes))
        vast = vast_indices(self.facts, assignment)
        return look_up(Question(assignment, formats, self.containers, requested, vast))

    def _dtypes(self, assignment: Assignment) -> dict[str, DType]:
        """Return the types that operands are read in."""
        return {n: np.dtype(self.facts[n].type.dtype) for n in operand_names(assignment)}

    def _promoted(self, assignment: Assignment) -> dict[str, DType]:
        """Return the types by which operands promote: 16 bits where these are read as float32."""
        return {
            name: self.dtypes.get(name, self.facts[name].type.promoted)
            for name in operand_names(assignment)
        }

    # ------------------------------------------------------------ other types

    def _in_wide_types(self, statement: Statement) -> Assignment:
        """Return the assignment whose sums of small integers are wide, which reads tensors so."""
        assignment, dtypes = statement.assignment, self._dtypes(statement.assignment)
        if (requested := self.options.dtype) is not None:
            read = dict.fromkeys(dtypes, requested)
            assignment = with_wide_answers(assignment, read, dtype=requested)
        elif self.options.wide_sums:
            wide = wide_sums(assignment, dtypes, dtypes.get(statement.accumulator))
            names = {
                name: self._read(wide.same.get(name, name), dtype)
                for name, dtype in wide.read.items()
            }
            sources = {name: source for name, source in wide.same.items() if name not in names}
            assignment = rename(wide.assignment, {**names, **sources})
        return self._added_up_in_type(assignment)

    def _added_up_in_type(self, assignment: Assignment) -> Assignment:
        """Read integer operands that store a coordinate twice in copies of the type they are read
        in."""
        twice = self.options.repeated.intersection(operand_names(assignment))
        if not twice:
            return assignment
        types = read_types(assignment, self._dtypes(assignment))
        copies = {}
        for name in sorted(twice.intersection(types)):
            element = np.dtype(self.facts[name].type.element)
            if computes_exactly(element) and np.can_cast(element, types[name]):
                copies[name] = self._read(name, types[name], converted=True)
        return rename(assignment, copies)

    def _read(self, source: str, dtype: DType, converted: bool = False) -> str:
        """Return the name under which a tensor is read in another type, which may be its own."""
        operand = self.facts[source]
        if (operand.type.element if converted else operand.type.dtype) == dtype.name:
            return source
        read = Read(source, dtype, converted or source in self.options.repeated)
        for name, other in self.reads.items():
            if other == read:
                return name
        alias = Names(self.facts).fresh(f"{source}_{dtype.name}")
        self.reads[alias] = read
        self.containers[alias] = self.containers[source]
        if source not in self.targets:
            type = operand.type.read_as(dtype.name)
            type = replace(type, stored="" if read.converted else operand.type.element)
            self.facts[alias] = replace(operand, type=type)
            return alias
        indices = tuple(f"i{mode}" for mode in range(len(operand.shape)))
        for index, size in zip(indices, operand.shape, strict=True):
            self.sizes.setdefault(index, []).append(size)
        copy = Assignment(Access(alias, indices), Access(source, indices))
        facts = replace(operand, type=replace(operand.type.read_as(dtype.name), stored=""))
        self.source_assignments.append(copy)
        self._record(copy, facts, self.kinds[source], dtype)
        return alias

    # ------------------------------------------------------------ all of them

    def check_static(self) -> None:
        """Raise where a static size is not that of an index in every statement."""
        indices = unique(i for assignment in self.assignments for i in all_indices(assignment))
        for index, size in self.options.static:
            check_static_index(index, indices)
            for extent in self.sizes[index]:
                check_static_size(index, size, {index: extent})

    def elaborated(self) -> Elaborated:
        """Return the statements, with the index type that all of them need and operands' own
        names."""
        sources = self._alone()
        index = self._index_dtype()
        read = {name for assignment in self.assignments for name in operand_names(assignment)}
        operands = {sources.get(name, name): facts for name, facts in self.facts.items()}
        for name in self.targets:
            type = operands[name].type
            form = ordered(type.format) if name in read else type.format
            type = replace(type, format=form, index_dtype=index)
            operands[name] = replace(operands[name], type=type)
        return Elaborated(
            tuple(rename(assignment, sources) for assignment in self.assignments),
            tuple(rename(assignment, sources) for assignment in self.source_assignments),
            {sources.get(a, a): r for a, r in self.reads.items() if r.source not in self.targets},
            operands,
            self.kinds,
            self.dtypes,
        )

    def _alone(self) -> dict[str, str]:
        """Return the other names of operands that are read in one type alone, with their own
        names."""
        read = {name for assignment in self.assignments for name in operand_names(assignment)}
        sources = [entry.source for entry in self.reads.values()]
        return {
            alias: entry.source
            for alias, entry in self.reads.items()
            if entry.source not in self.targets | read and sources.count(entry.source) == 1
        }

    def _index_dtype(self) -> str:
        """Return int64 where a tensor that is read or a size needs it, else int32."""
        if self.options.index is not None:
            return self.options.index
        types = {facts.type.index_dtype for facts in self.facts.values()}
        large = any(size > INT32_MAX for sizes in self.sizes.values() for size in sizes)
        return "int64" if large or "int64" in types else "int32"
