"""Dense tensors as arrays, sizes and strides of `polyhedral`, with the bindings of parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from codegen.build import const
from codegen.ir import Array, Block, Expr, Function, Storage, Var
from codegen.machine.target import Target
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import scalar
from taco_py.compiler.lower.bindings import Bindings, Source
from taco_py.language.notation.checks import all_indices
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from polyhedral.products.contraction_code import Data, Operands
    from polyhedral.products.register_tile import Machine


def size_name(index: str) -> str:
    """Return the name of the size of an index."""
    return f"n_{index}"


def has_vectors(problem: Problem, target: Target) -> bool:
    """Tell whether a machine has vectors of the result's elements."""
    return target.lanes(scalar(problem.result.dtype)) > 1


def machine_of(target: Target, dtype: str) -> Machine:
    """Return the properties of `target` that tiles depend on."""
    from polyhedral.products.register_tile import Machine

    element = scalar(dtype)
    return Machine(
        target.lanes(element),
        element.itemsize,
        target.processor.registers,
        target.processor.cache_bytes,
    )


def size_bindings(problem: Problem, names: Names) -> tuple[dict[str, Expr], dict[str, Source]]:
    static = dict(problem.static)
    sizes: dict[str, Expr] = {}
    bindings: dict[str, Source] = {}
    for index in dict.fromkeys(i for one in problem.assignments for i in all_indices(one)):
        if index in static:
            sizes[index] = const(static[index])
        else:
            variable_ = Var(names.fresh(size_name(index)))
            sizes[index] = variable_
            bindings[variable_.name] = Source("size", index=index)
    return sizes, bindings


@dataclass(frozen=True, slots=True)
class StridedTensor:
    """A tensor's values and its strides, one for each level."""

    array: Array
    strides: tuple[Expr, ...]


def tensor_of(
    problem: Problem, tensor: str, names: Names, bindings: dict[str, Source]
) -> StridedTensor:
    type = problem.type_of(tensor)
    storage = Storage.OUTPUT if tensor in _output_names(problem) else Storage.INPUT
    array = Array(names.fresh(f"{tensor}_vals"), scalar(type.element), storage)
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


def _output_names(problem: Problem) -> tuple[str, ...]:
    """Return the names of the result and the side results."""
    return (problem.assignment.target.tensor, *(side.target.tensor for side in problem.side))


def data_of(problem: Problem, access: Access, tensors: Mapping[str, StridedTensor]) -> Data:
    from polyhedral.products.contraction_code import Data

    tensor = tensors[access.tensor]
    strides = zip(problem.stored(access), tensor.strides, strict=True)
    return Data(tensor.array, dict(strides))


@dataclass(frozen=True, slots=True)
class Arguments:
    """A function without a body over all arrays of a problem, with the bindings of its parameters.

    names  the supply of their names
    """

    head: Function
    tensors: Mapping[str, StridedTensor]
    sizes: Mapping[str, Expr]
    bindings: Bindings
    names: Names


def variables_of(numbers: Iterable[Expr]) -> tuple[Var, ...]:
    """Return the numbers that are parameters of a kernel, not constants."""
    return tuple(number for number in numbers if isinstance(number, Var))


def arguments_of(problem: Problem, name: str, among: Collection[str] | None = None) -> Arguments:
    """Return the function called `name` over results, operands, sizes and strides; of operands,
    only those in `among` unless it is None."""
    names = Names()
    sizes, bindings = size_bindings(problem, names)
    tensors = {
        tensor: tensor_of(problem, tensor, names, bindings)
        for tensor in (*_output_names(problem), *dict(problem.operands))
        if among is None or tensor in among
    }
    arrays = tuple(tensor.array for tensor in tensors.values())
    strides = variables_of(s for tensor in tensors.values() for s in tensor.strides)
    scalars = (*variables_of(sizes.values()), *strides)
    head = Function(name, arrays, scalars, Block(), threaded=True)
    return Arguments(head, tensors, sizes, tuple(bindings.items()), names)


def product_arrays(
    problem: Problem, left: Access, right: Access, name: str
) -> tuple[Arguments, Operands]:
    """Return the arguments of a product, and its operands among them."""
    from polyhedral.products.contraction_code import Operands

    arguments, result = arguments_of(problem, name), problem.assignment.target
    result_data, one, other = (
        data_of(problem, access, arguments.tensors) for access in (result, left, right)
    )
    return arguments, Operands(result_data, one, other, arguments.sizes)
