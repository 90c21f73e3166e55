"""The arrays of a kernel over entries, with the sources of its parameters.

A, P: ds, w: d   →   P2_pos, P2_crd, P_vals (growing), A2_pos, A2_crd, A_vals, w_vals
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.ir import Array, Block, Expr, Function, Storage, Var
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import scalar
from taco_py.compiler.dataflow.entry_form import EntryForm
from taco_py.compiler.lower.bindings import Bindings, Source
from taco_py.compiler.ways.arrays import StridedTensor, size_bindings, tensor_of, variables_of
from taco_py.language.problem import TensorType


@dataclass(frozen=True, slots=True)
class EntryArrays:
    """A function without a body over the arrays of values of entries.

    index   the arrays of levels, by tensor, "pos" or "crd", and level
    values  of the sparse operand and of the result
    dense   the other operands
    sizes   the size of each index of the problem
    check   whether the coordinates of the operand are to be checked; None below an outer list,
            whose coordinates are not looked at
    """

    head: Function
    index: Mapping[tuple[str, str, int], Array]
    values: Mapping[str, Array]
    dense: Mapping[str, StridedTensor]
    sizes: Mapping[str, Expr]
    check: Var | None
    bindings: Bindings
    names: Names


def entry_arrays(entries: EntryForm, function: str) -> EntryArrays:
    """Return the arrays of a function of a name: the result's first."""
    problem, names = entries.problem, Names()
    sizes, bindings = size_bindings(problem, names)
    index: dict[tuple[str, str, int], Array] = {}
    values: dict[str, Array] = {}
    dense: dict[str, StridedTensor] = {}
    arrays: list[Array] = []
    for name in (entries.result, *dict(problem.operands)):
        if name not in (entries.result, entries.source.tensor):
            dense[name] = tensor_of(problem, name, names, bindings)
            arrays.append(dense[name].array)
            continue
        storage = Storage.GROWING if name == entries.result else Storage.INPUT
        type = problem.type_of(name)
        for what, level, array in _index_arrays(entries, name, type, storage, names):
            index[name, what, level] = array
            bindings[array.name] = Source(what, name, level)
            arrays.append(array)
        values[name] = Array(names.fresh(f"{name}_vals"), scalar(type.dtype), storage)
        bindings[values[name].name] = Source("values", name)
        arrays.append(values[name])
    check = Var(names.fresh(f"{entries.source.tensor}_check")) if entries.in_rows else None
    if check is not None:
        bindings[check.name] = Source("check", entries.source.tensor)
    strides = variables_of(s for tensor in dense.values() for s in tensor.strides)
    flags = () if check is None else (check,)
    scalars = (*variables_of(sizes.values()), *strides, *flags)
    head = Function(function, tuple(arrays), scalars, Block(), threaded=True)
    return EntryArrays(head, index, values, dense, sizes, check, tuple(bindings.items()), names)


def _index_arrays(
    entries: EntryForm, name: str, type: TensorType, storage: Storage, names: Names
) -> Iterator[tuple[str, int, Array]]:
    for level, kind in enumerate(entries.levels):
        for what in kind.arrays:
            array_name = names.fresh(f"{name}{level + 1}_{what}")
            yield what, level, Array(array_name, scalar(type.index_dtype), storage)
