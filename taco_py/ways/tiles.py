"""A product of two dense tensors → register tiles, blocks and packed operands (`polyhedral`).

Here tensors become what `polyhedral` knows: an affine statement, arrays, sizes and strides.

    C[i,j] = sum(k, A[i,k] * B[k,j])   →   S: C[i, j] +=; A[i, k]; B[k, j]
                                           for i in 0..n_i, j in 0..n_j, k in 0..n_k
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from codegen.build import const
from codegen.ir import Array, Block, Expr, Function, Module, Storage, Var
from codegen.names import Names
from codegen.records import dataclass
from codegen.target import Target
from codegen.types import scalar
from taco_py.concrete.terms import split_terms
from taco_py.diagnostics.errors import InternalError
from taco_py.legal.stored import all_full
from taco_py.legal.types import is_real
from taco_py.lower.bindings import Bindings, Source
from taco_py.notation.checks import all_indices
from taco_py.notation.nodes import Access, Call
from taco_py.notation.operators import MUL
from taco_py.problem import Problem

if TYPE_CHECKING:
    from polyhedral import model
    from polyhedral.products.contract import Data
    from polyhedral.products.contraction import Contraction
    from polyhedral.products.contraction_plan import ContractionPlan
    from polyhedral.products.register_tile import Machine


@dataclass(frozen=True, slots=True)
class Tiled:
    """A module whose last function is the kernel, where its arguments come from, and the plan."""

    module: Module
    bindings: Bindings
    plan: ContractionPlan


def contraction_of(
    problem: Problem, has_kernels: Callable[[str], bool] = is_real
) -> Contraction | None:
    """The problem as a contraction of two dense tensors of one type, in memory too; None where it
    is none.

    has_kernels  whether matrices of a type are multiplied; by tiles of our own, real ones are
    """
    factors = factors_of(problem)
    if factors is None:
        return None
    types = [problem.result, *(problem.type_of(access.tensor) for access in factors)]
    known = all(has_kernels(t.dtype) and not t.stored for t in types)
    if not known or len({t.dtype for t in types}) > 1 or not all_full(types):
        return None
    from polyhedral.products.contraction import contraction

    return contraction(_statement(problem, factors))


def factors_of(problem: Problem) -> tuple[Access, Access] | None:
    """The two factors of a sum of products; None for anything else."""
    (term, *more) = split_terms(problem.assignment.value)
    if more or term.negative:
        return None
    match term.body:
        case Call(operator, (Access() as left, Access() as right)) if operator == MUL:
            return left, right
    return None


def _statement(problem: Problem, factors: tuple[Access, Access]) -> model.Statement:
    from polyhedral import model
    from polyhedral.affine import affine, variable

    indices = all_indices(problem.assignment)
    loops = tuple(model.Loop(i, (affine(0),), (variable(_size_name(i)),)) for i in indices)
    accesses = (
        _access(problem, problem.assignment.target, model.Mode.UPDATE),
        *(_access(problem, factor, model.Mode.READ) for factor in factors),
    )
    return model.Statement("S", loops, accesses, (0,) * (len(loops) + 1))


def _access(problem: Problem, access: Access, mode: model.Mode) -> model.Access:
    """With subscripts as the tensor is stored, the last one contiguous."""
    from polyhedral import model
    from polyhedral.affine import variable

    order = problem.type_of(access.tensor).format.mode_order
    subscripts = tuple(variable(access.indices[m]) for m in order)
    return model.Access(access.tensor, subscripts, mode, "+" if mode is model.Mode.UPDATE else None)


def _size_name(index: str) -> str:
    return f"n_{index}"


def machine_of(target: Target, dtype: str) -> Machine:
    """What of `target` tiles depend on."""
    from polyhedral.products.register_tile import Machine

    element = scalar(dtype)
    return Machine(target.lanes(element), element.itemsize, target.registers, target.caches)


def tile(problem: Problem, target: Target, name: str, width: int = 0) -> Tiled:
    """The kernel called `name` of a problem that `contraction_of` knows; see Strategy.width."""
    from polyhedral.products.contract import Operands, to_functions
    from polyhedral.products.contraction_plan import plan_contraction

    found = contraction_of(problem)
    if found is None:
        raise InternalError(f"Expected a contraction of two dense tensors, found {problem}")
    machine = machine_of(target, problem.result.dtype)
    plan = plan_contraction(found, machine, dict(problem.static), width)
    names = Names()
    sizes, bindings = size_bindings(problem, names)
    tensors = {
        tensor: tensor_of(problem, tensor, names, bindings)
        for tensor in (problem.assignment.target.tensor, *dict(problem.operands))
    }
    left, right = _ordered(problem, found)
    operands = Operands(
        data_of(problem, problem.assignment.target, tensors),
        data_of(problem, left, tensors),
        data_of(problem, right, tensors),
        sizes,
    )
    arrays = tuple(tensor.array for tensor in tensors.values())
    strides = [s for tensor in tensors.values() for s in tensor.strides if isinstance(s, Var)]
    scalars = (*(size for size in sizes.values() if isinstance(size, Var)), *strides)
    head = Function(name, arrays, scalars, Block(), threaded=True)
    module = to_functions(found, plan.tile, plan.blocks, operands, head, names)
    return Tiled(module, tuple(bindings.items()), plan)


def size_bindings(problem: Problem, names: Names) -> tuple[dict[str, Expr], dict[str, Source]]:
    static = dict(problem.static)
    sizes: dict[str, Expr] = {}
    bindings: dict[str, Source] = {}
    for index in all_indices(problem.assignment):
        if index in static:
            sizes[index] = const(static[index])
        else:
            variable_ = Var(names.fresh(_size_name(index)))
            sizes[index] = variable_
            bindings[variable_.name] = Source("size", index=index)
    return sizes, bindings


@dataclass(frozen=True, slots=True)
class StridedTensor:
    """A tensor's values and its strides, a level each."""

    array: Array
    strides: tuple[Expr, ...]


def tensor_of(
    problem: Problem, tensor: str, names: Names, bindings: dict[str, Source]
) -> StridedTensor:
    type = problem.type_of(tensor)
    is_result = tensor == problem.assignment.target.tensor
    storage = Storage.OUTPUT if is_result else Storage.INPUT
    array = Array(names.fresh(f"{tensor}_vals"), scalar(type.dtype), storage)
    bindings[array.name] = Source("values", tensor)
    strides: list[Expr] = []
    for level in range(type.format.order):
        if type.unit_stride and level == type.format.order - 1:
            strides.append(const(1))
        else:
            stride = Var(names.fresh(f"{tensor}{level + 1}_stride"))
            bindings[stride.name] = Source("stride", tensor, level)
            strides.append(stride)
    return StridedTensor(array, tuple(strides))


def data_of(problem: Problem, access: Access, tensors: Mapping[str, StridedTensor]) -> Data:
    from polyhedral.products.contract import Data

    tensor = tensors[access.tensor]
    strides = zip(problem.stored(access), tensor.strides, strict=True)
    return Data(tensor.array, dict(strides))


def _ordered(problem: Problem, found: Contraction) -> tuple[Access, Access]:
    """The factors as left and right."""
    factors = factors_of(problem)
    assert factors is not None  # contraction_of asked
    one, other = factors
    is_left = found.left == found.statement.accesses[1]
    return (one, other) if is_left else (other, one)
