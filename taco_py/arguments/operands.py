"""What the user passes → stored tensors, with what planning needs to know of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.compiler.cost.spread import Entries
from taco_py.data.interop.numpy_arrays import copy_reason
from taco_py.data.interop.scipy_arrays import coordinate_order, is_scipy_sparse
from taco_py.data.interop.scipy_remapped import is_remapped
from taco_py.data.storage.size_classes import size_classes
from taco_py.data.storage.tensor_data import Array, TensorData, stores_all
from taco_py.data.tensors.keys import contiguous_pairs, stride_order
from taco_py.data.tensors.tensor import Tensor, as_data, operand_data
from taco_py.language.diagnostics.errors import (
    DimensionError,
    NumberOverflowError,
    OperandError,
    TacoError,
)
from taco_py.language.diagnostics.option_table import calls_with, options_of
from taco_py.language.diagnostics.suggest import nearest, with_suggestion
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses, check_elements, unique
from taco_py.language.notation.dtypes import dtype_of_number
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand

INT32_MAX = 2**31 - 1
OPTIONS = options_of("evaluate")
"""The keywords of `evaluate`, which cannot be the names of operands there."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundOperand:
    """An operand: what the user passed, its arrays, and its type, shape and number of entries.

    lined_up  whether the arrays are a copy in row-major order, which other kernels need not
    """

    object: Any
    data: TensorData
    operand: Operand
    lined_up: bool = False


def bind_operands(
    objects: Mapping[str, Any], dtype: np.dtype[Any] | None = None, weak: bool = True
) -> dict[str, BoundOperand]:
    """Return each operand by name.

    dtype  what is computed in, where the user says so
    weak   a Python number takes that dtype, or the one of the arrays it meets, as in NumPy's
           arithmetic; otherwise it has one of its own, as in NumPy's einsum

    Raises OperandTypeError for what is no tensor of a supported dtype, NumberOverflowError for a
    number that the dtype cannot hold.
    """
    numbers = {name for name, obj in objects.items() if weak and is_number(obj)}
    operands = {name: describe(obj, name) for name, obj in objects.items() if name not in numbers}
    strong = [g.data.dtype for g in operands.values()] if dtype is None else [dtype]
    for name in numbers:
        value = objects[name]
        number_dtype = dtype_of_number(value, strong) if strong else None
        operands[name] = describe(as_number(value, number_dtype, name), name)
    return {name: operands[name] for name in objects}


def describe(obj: Any, name: str) -> BoundOperand:
    """Return one operand."""
    data = read_operand(obj, f"operand {name}")
    return BoundOperand(obj, data, operand_facts(data))


def operand_facts(data: TensorData) -> Operand:
    """Return the facts of existing arrays that planning reads."""
    entries = None if data.format.is_dense else Entries(data)
    nnz = float(data.nnz)
    return Operand(type_of(data), data.shape, nnz, entries, joined_of(data))


def read_operand(obj: Any, what: str) -> TensorData:
    """Return the arrays of an operand; errors begin with `what`."""
    if isinstance(obj, DeviceTensor):
        return stores_all(obj.data)
    try:
        return operand_data(obj)
    except TacoError as error:
        raise type(error)(f"{what}: {error.message}", error.span, error.hint) from None


def is_number(obj: object) -> bool:
    """Tell whether it is a Python number; NumPy's have dtypes of their own."""
    return isinstance(obj, int | float | complex) and not isinstance(obj, np.generic)


def as_number(value: complex, dtype: np.dtype[Any] | None, name: str) -> Any:
    """Return a Python number as a 0-d array of this dtype, itself where the dtype is its own.

    Raises NumberOverflowError.
    """
    if dtype is None or dtype.kind == "O":
        return value
    try:
        return np.asarray(value, dtype)
    except OverflowError:
        number = format_number(value)
        raise NumberOverflowError(
            f"operand {name}: Expected a number that {dtype} can hold, found {number}",
            hint=f"pass it as a NumPy number of a wider dtype, such as np.int64({name}), or "
            "convert the arrays that it meets",
        ) from None


def format_number(value: complex) -> str:
    """Return a number in a message: itself unless it has very many digits."""
    long = isinstance(value, int) and value.bit_length() > 128
    return f"an integer of {int(value.real).bit_length()} bits" if long else repr(value)


def type_of(data: TensorData) -> TensorType:
    """Return the type that a kernel must be made for to read `data` as it is."""
    if data.format.is_dense:
        form, unit = layout(data.values)
        return TensorType(form, data.dtype.name, unit_stride=unit)
    index = next(
        (a.dtype.name for level in data.levels for a in (level.pos, level.crd) if a is not None),
        "int32",
    )
    return TensorType(data.format, data.dtype.name, index, fill=data.fill)


def joined_of(data: TensorData) -> tuple[bool, ...]:
    """Tell which levels of a dense tensor are contiguous with the level before: see `Operand`."""
    if not data.format.is_dense:
        return ()
    array = data.values
    return contiguous_pairs(array, stride_order(array)[0])


def layout(array: Array) -> tuple[Format, bool]:
    """Return the dense format with modes by descending stride, and whether the last stride is 1."""
    modes, unit = stride_order(array)
    return dense_format(modes), unit


def dense_format(modes: tuple[int, ...]) -> Format:
    """Return all levels dense, in the order `modes`."""
    from taco_py.language.formats import dense

    return replace(dense(len(modes)), mode_order=modes)


def facts(operands: Mapping[str, BoundOperand], exact: bool = False) -> tuple[object, ...]:
    """Return all that planning reads of the operands; operands with equal facts share plans.

    Of sizes and numbers of entries it is the number of bits, for they only decide between loop
    orders; 0, 1 and what passes 32 bits are told apart by it too, and sizes of 2 and 3 besides. How
    entries are spread is looked at for the first of such operands, and taken to be alike in the
    others.

    exact  the sizes and numbers of entries themselves, for plans that count elements
    """
    return tuple(
        (
            name,
            type(g.object),
            g.operand.type,
            g.operand.contiguous,
            g.data.nnz if exact else g.data.nnz.bit_length(),
            *(g.data.shape if exact else size_classes(g.data.shape)),
            g.data.format if g.lined_up and is_tensor(g) else None,
        )
        for name, g in operands.items()
    )


def informer(operands: Mapping[str, BoundOperand]) -> Callable[[str, TensorData], TensorData]:
    """Return a function that adds the order and uniqueness of an operand's coordinates.

    Tensors look at their indices once and remember; the arrays of a scipy.sparse array belong to
    the user, who may have written to them since, and are looked at each time.
    """

    def inform(name: str, data: TensorData) -> TensorData:
        operand = operands.get(name)
        if operand is None or (data.sorted is not None and data.unique is not None):
            return data
        obj = operand.object
        if isinstance(obj, Tensor | DeviceTensor):
            looked = obj.examined()
            return replace(data, sorted=looked.sorted, unique=looked.unique)
        if is_scipy_sparse(obj) and obj.format in ("csr", "csc"):
            level = data.levels[-1]
            if level.pos is not None and level.crd is not None:
                sorted, unique = coordinate_order(level.pos, level.crd)
                return replace(data, sorted=sorted, unique=unique)
        return data

    return inform


def copies_made(objects: Mapping[str, Any], operands: Mapping[str, BoundOperand]) -> list[str]:
    """List the operands that are copied, with the kinds of the copies and the reasons."""
    lines = []
    for name, g in operands.items():
        obj = objects.get(name, g.object)
        if is_scipy_sparse(obj) and not _is_borrowed(obj):
            lines.append(f"{name}: converted from scipy's {obj.format} to {g.data.format}")
        reason = copy_reason(obj) if isinstance(obj, np.ndarray) else None
        if reason is not None:
            lines.append(f"{name}: copied, for the array is {reason}")
        dtype = getattr(obj, "dtype", g.data.dtype)
        if isinstance(dtype, np.dtype) and dtype.newbyteorder("=") != g.data.dtype:
            lines.append(f"{name}: values converted from {dtype} to {g.data.dtype}")
        if g.lined_up:
            lines.append(f"{name}: {_lined_up(as_data(obj).values)}")
    return lines


def _is_borrowed(obj: Any) -> bool:
    """Tell whether the arrays of a scipy.sparse array are read as they are."""
    bsr = obj.format == "bsr" and not is_remapped(obj)  # of blocks of 1 × 1
    return bsr or obj.format in ("csr", "csc", "coo")


def _lined_up(array: Array) -> str:
    """Describe the copy of an operand to row-major order."""
    form, unit = layout(array)
    source = f"from {form}" if unit else "from memory with gaps"
    return (
        f"{array.size} elements copied to C order {source}, which costs less than to compile a "
        "kernel for each order"
    )


# ---------------------------------------------------------------- checks


def check_names(
    assignment: Assignment, names: Iterable[str], options: Collection[str] = OPTIONS
) -> None:
    """Raise OperandError for a tensor that was not passed, or an operand the text does not use.

    options  the keywords that the call has besides operands
    """
    read = accesses(assignment)
    check_given(read, unique(access.tensor for access in read), names, options)


def check_given(
    read: Iterable[Access],
    expected: Sequence[str],
    names: Iterable[str],
    options: Collection[str] = OPTIONS,
) -> None:
    """Raise OperandError for an access whose tensor was not passed, or an operand besides.

    expected  the operands that the text has
    """
    passed = tuple(map(str, names))
    for access in read:
        if access.tensor not in passed:
            raise OperandError(
                f"Expected an operand {access.tensor}, found {_join_names(passed)}",
                access.span,
                _how_to_pass(access, [name for name in passed if name not in expected], options),
            )
    for name in passed:
        if name not in expected:
            raise OperandError(
                f"Expected the operands {_join_names(expected)}, found {name} besides, which the "
                "expression does not use",
                hint=_how_to_use(name, expected, options),
            )


def _how_to_pass(access: Access, left: Sequence[str], options: Collection[str]) -> str:
    """Return the remedy for an operand that is missing; `left` are given and not used."""
    name = access.tensor
    if name in options:
        return f'{name}= is an option of the call; pass the operand in a mapping, {{"{name}": …}}'
    similar = nearest(name, left)
    meant = "" if similar is None else f", where {similar}= was given: did you mean {name}?"
    number = f"; an index stands in brackets too, as in x[{name}]"
    return f"pass it by name: {name}=…{meant or number * (not access.indices)}"


def _how_to_use(name: str, expected: Sequence[str], options: Collection[str]) -> str:
    """Return the remedy for an operand that the text does not use, or for an option misspelt."""
    calls = calls_with(name)
    if calls and name not in options:
        has = ", ".join(f"{option}=" for option in sorted(options))
        owner = "evaluate" if "evaluate" in calls else ", ".join(calls)
        return f"{name}= is an option of {owner}; this call has {has}"
    option = nearest(name, options)
    if option is not None and nearest(name, expected) is None:
        return f"did you mean the option {option}=?"
    return with_suggestion(f"leave {name} out, or use it in the expression", name, expected)


def check_orders(assignment: Assignment, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise OperandError where an access has not as many indices as its operand has modes."""
    for access in accesses(assignment):
        order = len(shapes[access.tensor])
        if len(access.indices) != order:
            raise OperandError(
                f"Expected {order} indices for {access.tensor}, whose shape is "
                f"{tuple(shapes[access.tensor])}, found {len(access.indices)}",
                access.span,
                f"write one index for each of the {order} modes",
            )


def check_sizes(assignment: Assignment, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the size of each index. Raises DimensionError where two uses disagree,
    or where a reduction has no elements that it needs."""
    first: dict[str, tuple[Access, int]] = {}
    for access in accesses(assignment):
        for mode, index in enumerate(access.indices):
            size = int(shapes[access.tensor][mode])
            other, mode_there = first.setdefault(index, (access, mode))
            expected = int(shapes[other.tensor][mode_there])
            if size != expected:
                raise DimensionError(
                    f"Expected one size for index {index}, found {expected} in {other.tensor} "
                    f"(mode {mode_there} of shape {tuple(shapes[other.tensor])}) and {size} in "
                    f"{access.tensor} (mode {mode} of shape {tuple(shapes[access.tensor])})",
                    access.span,
                    f"operands that share {index!r} must agree on its size",
                )
    sizes = {index: int(shapes[a.tensor][mode]) for index, (a, mode) in first.items()}
    check_elements(assignment, sizes)
    return sizes


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def is_tensor(operand: BoundOperand) -> bool:
    """Tell whether the user passed one of this package's tensors."""
    return isinstance(operand.object, Tensor | TensorData)
