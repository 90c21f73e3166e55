"""Sums of small integers in the type of NumPy's `sum`, in which their operands are read.

    d[i] = sum(j, A[i,j])                  A of int8                    A is read as int64
    y[i] = b[i] + sum(j, A[i,j] * x[j])    all of int8                  A and x as int64, b as int8
    C[i,j] = A[i,j] + B[i,j]               no sum: nothing changes

Every summed expression is computed in the wide type, products included, so that it does not matter
where a sum stands or is moved to. The outermost sum whose terms are of a small type decides for
every expression inside it. Kernels convert values as they read them, as with `dtype=`.

An operation whose result has another type than its arguments, as a comparison, keeps the types of
its arguments, and so does one that depends on their width, as ~ of unsigned numbers; its result is
multiplied by a one of the wide type.

    s = sum(i, x[i] > 0)                   → sum(i, int64(1) * (x[i] > 0))

An operand that is read in two types has two names; the second is a separate operand:

    C[i,j] = (A[i,j] + B[i,j]) - sum(k, A[i,k])
    → C[i,j] = (A[i,j] + B[i,j]) - sum(k, A_int64[i,k])
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from typing import Any

from codegen.records import dataclass
from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.dtypes import (
    DType,
    answers,
    argument_dtype,
    expression_dtype,
    operand_dtype,
    sum_dtype,
)
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL
from taco_py.language.notation.tree import children, map_children


@dataclass(frozen=True, slots=True)
class WideSums:
    """An assignment that reads operands in other types than they are stored in.

    read   the type that operands are read in, by name, where it differs from the stored type
    same   the operand that each new name stands for
    """

    assignment: Assignment
    read: Mapping[str, DType]
    same: Mapping[str, str]


def wide_sums(
    assignment: Assignment, dtypes: Mapping[str, DType], target: DType | None = None
) -> WideSums:
    """Choose the types that operands are read in, so that sums of small integers are wide.

    target  as `sum_dtype` has it

    Raises what `expression_dtype` raises.
    """
    answered = with_wide_answers(assignment, dtypes, target)
    if all(sum_dtype(dtype, target) == dtype for dtype in dtypes.values()):
        return WideSums(answered, {}, {})
    uses = tuple(_uses(assignment.value, dtypes, target))
    read = {
        name: _common([use for use in uses if use.access.tensor == name], dtypes[name])
        for name in operand_names(assignment)
    }
    used_names = {*dtypes, assignment.target.tensor}
    names: dict[tuple[str, DType], str] = {}
    same: dict[str, str] = {}
    new: dict[int, str] = {}
    for use in uses:
        name = use.access.tensor
        if not use.allows(read[name]):
            dtype = use.required or use.stored
            other = names.get((name, dtype))
            if other is None:
                other = names[name, dtype] = _fresh(f"{name}_{dtype}", used_names | same.keys())
                same[other], read[other] = name, dtype
            new[id(use.access)] = other
    read = {name: dtype for name, dtype in read.items() if dtype != dtypes[same.get(name, name)]}
    value = _renamed(answered.value, new) if new else answered.value
    return WideSums(replace(answered, value=value), read, same)


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """An access with the types that it may be read in.

    stored    the type that it is stored in
    required  the type that it has to be read in, None for no requirement
    other     another type that serves as well: the product in `A[i,j] * sum(k, B[i,k])` converts A
    """

    access: Access
    stored: DType
    required: DType | None = None
    other: DType | None = None

    def allows(self, dtype: DType) -> bool:
        return dtype in (self.required or self.stored, self.other)


def _common(uses: list[_Use], stored: DType) -> DType:
    """Choose the type that most uses of an operand allow; prefer its stored type."""
    types = dict.fromkeys(
        (stored, *(t for u in uses for t in (u.required, u.other) if t is not None))
    )
    return max(types, key=lambda dtype: sum(use.allows(dtype) for use in uses))


def _uses(expr: Expr, dtypes: Mapping[str, DType], target: DType | None) -> Iterator[_Use]:
    """Yield each access of an expression with the types that it may be read in."""
    match expr:
        case Access():
            yield _Use(expr, dtypes[expr.tensor])
        case Reduce() if (wide := _wide(expr, dtypes, target)) is not None:
            yield from _uses_in_sum(expr.body, wide, dtypes, target)
        case Call():
            typed = _typed_sums(expr, dtypes, target)
            for arg, stand_in in zip(expr.args, typed.args, strict=True):
                converted = argument_dtype(typed, stand_in, dtypes)
                for use in _uses(arg, dtypes, target):
                    yield replace(use, other=converted) if use.access is arg else use
        case _:
            for child in children(expr):
                yield from _uses(child, dtypes, target)


def _uses_in_sum(
    expr: Expr, wide: DType, dtypes: Mapping[str, DType], target: DType | None
) -> Iterator[_Use]:
    """Yield the accesses summed in a wide type, except those inside results of another type."""
    if isinstance(expr, Access):
        yield _Use(expr, dtypes[expr.tensor], wide)
    elif _answers(expr, dtypes):
        yield from _uses(expr, dtypes, target)
    else:
        for child in children(expr):
            yield from _uses_in_sum(child, wide, dtypes, target)


def _answers(expr: Expr, dtypes: Mapping[str, DType]) -> bool:
    """Tell whether an operation has another type than its arguments, as a comparison has."""
    if not isinstance(expr, Call):
        return isinstance(expr, Reduce) and expr.operator.reduces_truths
    ones = _small_numbers(expr)
    assert isinstance(ones, Call)
    return answers(ones, dtypes)


def with_wide_answers(
    assignment: Assignment,
    dtypes: Mapping[str, DType],
    target: DType | None = None,
    dtype: DType | None = None,
) -> Assignment:
    """Multiply results of small types by a one of the type of the enclosing sum.

    dtype  the type of all computation, None for the type of each sum
    """
    value = _of_types(assignment.value, dtypes, target)
    value = _wide_answers(value, dtypes, target, None, dtype)
    return assignment if value is assignment.value else replace(assignment, value=value)


def _of_types(expr: Expr, dtypes: Mapping[str, DType], target: DType | None) -> Expr:
    """Replace operators by their variants for truths and for fractions, by the arguments' types.

    ~a[i] of bool  →  not a[i]        reciprocal(a[i]) of float64  →  1 / a[i]

    A sum of truths is a number: ~sum(i, a[i]) stays.
    """
    expr = map_children(expr, lambda part: _of_types(part, dtypes, target))
    if not isinstance(expr, Call):
        return expr
    truths, fractions = expr.operator.of_truths, expr.operator.of_fractions
    if truths is None and fractions is None:
        return expr
    kind = operand_dtype(_typed_sums(expr, dtypes, target), dtypes).kind
    if truths is not None and kind == "b":
        return replace(expr, operator=truths)
    if fractions is not None and kind not in "biu":
        rewritten: Expr = fractions(*expr.args)
        return replace(rewritten, span=expr.span)
    return expr


def _wide_answers(
    expr: Expr,
    dtypes: Mapping[str, DType],
    target: DType | None,
    summed: DType | None,
    dtype: DType | None,
) -> Expr:
    """Apply `with_wide_answers` to an expression.

    summed  the type of the enclosing sum, None without one
    """
    if isinstance(expr, Reduce) and summed is None:
        summed = _wide(expr, dtypes, target)
        summed = dtype if summed is not None and dtype is not None else summed
    elif summed is not None and _answers(expr, dtypes):
        inside = map_children(expr, lambda arg: _wide_answers(arg, dtypes, target, None, dtype))
        return Call(MUL, (Literal(1, dtype=summed.name), inside), expr.span)
    return map_children(expr, lambda part: _wide_answers(part, dtypes, target, summed, dtype))


def _wide(expr: Reduce, dtypes: Mapping[str, DType], target: DType | None) -> DType | None:
    """Return the wider type that a sum's terms are computed in, None where it is their own."""
    if expr.operator not in (ADD, MUL):
        return None
    narrow = expression_dtype(_small_numbers(expr.body), dtypes)
    wide = sum_dtype(narrow, target)
    return None if wide == narrow else wide


def _typed_sums(expr: Expr, dtypes: Mapping[str, DType], target: DType | None) -> Any:
    """Replace each widened sum by a literal of the wide type, to infer types around it."""
    if isinstance(expr, Reduce):
        wide = _wide(expr, dtypes, target)
        if wide is not None:
            return Literal(1, dtype=wide.name)
    return map_children(expr, lambda child: _typed_sums(child, dtypes, target))


def _small_numbers(expr: Expr) -> Expr:
    """Replace integer literals by ones, since only the wide type has to hold them."""
    if isinstance(expr, Literal):
        return Literal(1) if type(expr.value) is int and expr.dtype is None else expr
    return map_children(expr, _small_numbers)


def _renamed(expr: Expr, names: Mapping[int, str]) -> Expr:
    """Rename the tensors of accesses, which are identified by `id`."""
    if id(expr) in names and isinstance(expr, Access):
        return replace(expr, tensor=names[id(expr)])
    return map_children(expr, lambda child: _renamed(child, names))


def _fresh(name: str, used_names: Container[str]) -> str:
    """Return `name` with underscores appended until it is unused."""
    while name in used_names:
        name += "_"
    return name
