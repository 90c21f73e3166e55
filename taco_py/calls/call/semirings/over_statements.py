"""Several statements over a semiring, under a mask of the result, as statements over numbers.

    t[i] = A[i,j] * x[j]; y[i] = t[i] + b[i]    over min_plus
    →   t[i] = min(j, A[i,j] + x[j]); y[i] = minimum(t[i], b[i])

A statement knows the types and fill values of what those before it make, which are elaborated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.operands import bind_operands, describe
from taco_py.arguments.result_table import ARRAY, TENSOR
from taco_py.arguments.results import container
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.semirings.over_semirings import (
    added_to,
    allowed_by,
    condition,
    unfilled_operand,
)
from taco_py.calls.statements.elaborate import Elaborated, ResultOptions, elaborate
from taco_py.calls.statements.sequence import check_passed, in_single_assignment, partition_live
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import operand_names, unique
from taco_py.language.notation.dtypes import DType, value_dtype
from taco_py.language.notation.nodes import Access, Assignment, Expr, Literal
from taco_py.language.notation.rewrites.masks import masked
from taco_py.language.notation.rewrites.semirings import with_semiring, without_fill
from taco_py.language.problem import TensorType

Elaborate = Callable[[Sequence[Assignment]], Elaborated]
"""From statements over numbers to the tensors that they make."""


def arithmetic_statements(computation: Computation, over: SemiringMask) -> tuple[Computation, bool]:
    """Return several statements over a semiring, under a mask, as statements over numbers.

    Returns the computation, and whether its operands are those that the user passed.

    Raises OperandError for a mask of several outputs, and as `with_semiring`.
    """
    options, requested = computation.options, computation.requested
    assignments = computation.assignments
    over.check_outputs(requested.outputs, assignments[-1])
    single = in_single_assignment(assignments, requested.outputs, computation.objects)
    check_passed(assignments, single, computation.objects)
    truth_dtype = options.dtype if over.semiring.computes_truths else None
    if over.semiring.computes_truths:
        options = replace(options, wide_sums=False, dtype=None)
    objects = {n: unfilled_operand(n, o, over.semiring) for n, o in computation.objects.items()}
    for assignment in assignments:
        name = assignment.target.tensor
        if assignment.operator is not None and name in objects:
            objects[name] = added_to(name, computation.objects[name], over.semiring)
    operands = bind_operands(objects, options.dtype, options.weak)
    types = {name: bound.operand.type for name, bound in operands.items()}
    if options.dtype is not None:
        types = {name: type.read_as(options.dtype.name) for name, type in types.items()}
    facts = {name: replace(bound.operand, type=types[name]) for name, bound in operands.items()}
    containers = {name: container(bound) for name, bound in operands.items()}
    result_options = ResultOptions(requested.formats, options.dtype, wide_sums=options.wide_sums)

    def elaborated(statements: Sequence[Assignment]) -> Elaborated:
        names = wanted_so_far(statements, requested.outputs)
        single = in_single_assignment(statements, names, facts)
        return elaborate(single, facts, containers, result_options)

    mask, plain = None, all(objects[name] is obj for name, obj in computation.objects.items())
    if over.mask is not None:
        names = {n for a in assignments for n in (a.target.tensor, *operand_names(a))}
        target = assigned_last(assignments, requested.outputs)
        name = Names({*objects, *names}).fresh("mask")
        mask, objects[name] = allowed_by(over.mask, Access(name, target.indices), options)
        plain = plain and objects[name] is over.mask.array
        described = describe(objects[name], name)
        facts[name], containers[name] = described.operand, container(described)
        types[name] = described.operand.type
    rewriting = _Rewriting(over, types, requested.outputs, elaborated, mask, truth_dtype)
    statements = rewriting.statements(assignments)
    return replace(computation, assignments=statements, objects=objects, options=options), plain


def draft_over_statements(
    assignments: Sequence[Assignment],
    types: Mapping[str, TensorType],
    over: SemiringMask,
    outputs: Sequence[str],
    elaborated: Elaborate,
    mask: str,
) -> tuple[Assignment, ...]:
    """Return several statements as those over numbers, for operands of known types.

    mask  the name of the mask among the operands
    """
    over.check_outputs(outputs, assignments[-1])
    allowed = None
    if over.mask is not None:
        element = Access(mask, assigned_last(assignments, outputs).indices)
        by_value = over.mask.by_value or types[mask].format.is_dense
        allowed = condition(element, by_value, over.mask.complement)
    rewriting = _Rewriting(over, types, outputs, elaborated, allowed)
    return rewriting.statements(assignments)


def wanted_so_far(statements: Sequence[Assignment], outputs: Sequence[str]) -> tuple[str, ...]:
    """Return the outputs among the names that statements assign, and the name of the last one."""
    names, last = unique(s.target.tensor for s in statements), statements[-1].target.tensor
    return tuple(name for name in names if name in outputs or name == last)


def assigned_last(assignments: Sequence[Assignment], outputs: Sequence[str]) -> Access:
    """Return the access that assigns the one output last."""
    return next(a.target for a in reversed(assignments) if a.target.tensor == outputs[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Rewriting:
    """How statements over a semiring become statements over numbers.

    types       of the operands
    allowed     the condition that the mask is, None without one
    dtype       the type of truths that is asked for, None for their own
    """

    over: SemiringMask
    types: Mapping[str, TensorType]
    outputs: Sequence[str]
    elaborated: Elaborate
    allowed: Expr | None = None
    dtype: DType | None = None

    def statements(self, assignments: Sequence[Assignment]) -> tuple[Assignment, ...]:
        """Rewrite statements in order, each with the types that those before it make."""
        dtypes = {name: type.promoted for name, type in self.types.items()}
        sparse = [name for name, type in self.types.items() if not is_full(type.format)]
        last = {assignment.target.tensor: place for place, assignment in enumerate(assignments)}
        live, _ = partition_live(assignments, self.outputs)
        rewritten: list[Assignment] = []
        for place, assignment in enumerate(assignments):
            name = assignment.target.tensor
            if assignment not in live:  # whose operands need not be passed
                continue
            is_wanted = last[name] == place and name in self.outputs
            onto = dtypes.get(name) if assignment.operator is not None else None
            read = with_semiring(assignment, self.over.semiring, dtypes, sparse, onto, self.dtype)
            dtype = value_dtype(read.value, dtypes)
            zero = self.over.semiring.zero_of(dtype)
            zero = None if zero is None or zero == 0 else zero
            if self.allowed is not None and is_wanted:
                literal = None if zero is None else Literal(zero, dtype=dtype.name)
                read = masked(read, self.allowed, literal, dtype)
            target = in_single_assignment((*rewritten, read), (name,), self.types).outputs[name]
            if is_wanted and zero is not None and assignment.operator is None:
                without = replace(read, value=without_fill(read.value, dtype))
                kind = self.elaborated((*rewritten, without)).kinds[target]
                if kind.kind not in (ARRAY, TENSOR) and not is_full(kind.format):
                    read = without  # an array of SciPy's, which has no fill value
                    sparse.append(name)
            rewritten.append(read)
            dtypes[name] = self.elaborated(rewritten).dtypes[target]
        return tuple(rewritten)
