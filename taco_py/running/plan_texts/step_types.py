"""Whether each step of a plan reads and makes tensors of the types that the plan says.

B = squeeze(source='A', axes=(0,))    → d/float64 of 60        A has two modes, one is left
y[i] = sum(j, A[i,j] * x[j])    → d/float64 of 100, 100 entries    by loops(i,j)
    operands A: ds/float64/int32, x: d/float64                 as A and x are
    sizes j=A.1, i=A.0                                         as A[i,j] has them
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.data.convert.diagonal import diagonal_format
from taco_py.data.convert.locate import located_format
from taco_py.data.storage.tensor_data import ordered
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.formats import Format, dense
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import TensorType
from taco_py.planner.ir.formats import without_modes
from taco_py.planner.ir.nodes import (
    Cast,
    Fuse,
    Gather,
    KernelStep,
    Locate,
    Reformat,
    Squeeze,
    TakeDiagonal,
    TakeSide,
    TakeSize,
    TakeValues,
    Transformation,
    Unfuse,
)
from taco_py.planner.ir.program import Define, Program


def check_types(program: Program) -> None:
    """Raise ScheduleError where a step and the plan differ about a type, or a size's place."""
    for step in program.steps:
        if isinstance(step, KernelStep):
            _check_kernel(step, program)
        elif not isinstance(step, Define):
            _check_transformation(step, program)


def _same(what: str, expected: object, actual: object) -> None:
    if expected != actual:
        raise ScheduleError(f"Expected {what} as {expected}, found {actual}")


# ---------------------------------------------------------------- kernels


def _check_kernel(step: KernelStep, program: Program) -> None:
    problem = step.problem
    names = [name for name, _ in problem.operands]
    read = _read(step)
    _same("the operands", sorted({access.tensor for access in read}), sorted(names))
    _same("names of operands", sorted({*names} | {n for n, _ in step.sources}), sorted(names))
    pairs = [(step.source(name), type) for name, type in problem.operands]
    for name, type in (*pairs, (step.target, problem.result)):
        _same(name, _ordered(program.facts[name].type), _ordered(type))
    target = problem.assignment.target
    if problem.assignment.operator is not None:
        raise ScheduleError(f"Expected an assignment to {step.target}, found {problem.assignment}")
    for access in (*read, target):
        _same(
            f"the modes of {access}",
            problem.type_of(access.tensor).format.order,
            len(access.indices),
        )
    _same(f"the indices of {target}", len({*target.indices}), len(target.indices))
    _check_sizes(step, read)


def _ordered(type: TensorType) -> TensorType:
    """Return a type whatever the order of coordinates, which is looked at where a kernel relies on
    it."""
    return replace(type, format=ordered(type.format))


def _read(step: KernelStep) -> list[Access]:
    """Return the accesses that a kernel reads, of its side results too."""
    sides = (accesses(side.value) for side in step.problem.side)
    return [*accesses(step.problem.assignment.value), *(a for side in sides for a in side)]


def _check_sizes(step: KernelStep, read: list[Access]) -> None:
    """Raise ScheduleError unless each index has a size, that of a mode which it stands in."""
    places = {(i, a.tensor, mode) for a in read for mode, i in enumerate(a.indices)}
    for index, name, mode in step.sizes:
        if (index, name, mode) not in places:
            raise ScheduleError(f"Expected a mode of {index}, found mode {mode} of {name}")
    targets = (step.problem.assignment.target, *(side.target for side in step.problem.side))
    indices = {i for access in (*read, *targets) for i in access.indices}
    _same("indices with sizes", sorted(indices), sorted({index for index, _, _ in step.sizes}))


# ---------------------------------------------------------------- other steps


def _check_transformation(step: Transformation, program: Program) -> None:
    """Raise ScheduleError unless a step's result has the type of its target in the plan."""
    source, target = program.facts[step.source].type, program.facts[step.target].type
    if isinstance(step, TakeSide):
        (kernel,) = (k for k in program.kernels if k.target == step.source)
        _same(step.target, kernel.problem.side[step.number].type, target)
        return
    _check_source(step, source)
    _same(f"the format of {step.target}", str(_format_made(step, source)), str(target.format))
    values = _values_made(step, source)
    _same(f"the values of {step.target}", values, (target.dtype, target.stored))
    if not is_full(target.format):
        index_dtypes = {source.index_dtype, getattr(step, "index_dtype", source.index_dtype)}
        if target.index_dtype not in index_dtypes:
            raise ScheduleError(
                f"Expected indices of {step.target} of {index_dtypes}, found {target}"
            )
        _same(f"the fill value of {step.target}", source.fill, target.fill)
    view = isinstance(step, TakeDiagonal | Squeeze | Fuse) and is_full(target.format)
    if view and target.unit_stride and not (isinstance(step, Fuse) and source.unit_stride):
        raise ScheduleError(f"Expected {step.target} of any strides, found it without gaps")


def _check_source(step: Transformation, source: TensorType) -> None:
    """Raise ScheduleError where a step is none of a tensor of this type."""
    form = source.format
    if isinstance(step, Fuse | Unfuse | Cast | Gather):
        _same(f"{step.source}", "dense", "dense" if is_full(form) else "sparse")
    if isinstance(step, TakeValues) and is_full(form):
        raise ScheduleError(f"Expected a sparse tensor to take values of, found {source}")
    if isinstance(step, Fuse):
        flat = tuple(mode for group in step.groups for mode in group)
        _same(f"the modes of {step.source}", form.mode_order, flat)
    if isinstance(step, TakeSize):
        _same("a mode", True, 0 <= step.mode < form.order)


def _format_made(step: Transformation, source: TensorType) -> Format:
    match step:
        case Reformat(format=form) | Gather(format=form) | Cast(format=form):
            return form
        case TakeDiagonal(labels=labels):
            return diagonal_format(source.format, labels)
        case Locate():
            return located_format(source.format.order)
        case Squeeze(axes=axes):
            return without_modes(source.format, source.format.order - len(axes))
        case TakeValues():
            return dense(1)
        case Fuse(groups=groups):
            return dense(len(groups))
        case Unfuse(sizes=sizes):
            return dense(len(sizes))
    return dense(0)


def _values_made(step: Transformation, source: TensorType) -> tuple[str, str]:
    """Return the types that values are read and stored in."""
    if isinstance(step, Cast):
        return (step.dtype, "")
    if isinstance(step, TakeSize):
        return (step.dtype, "")
    return (source.dtype, source.stored)
