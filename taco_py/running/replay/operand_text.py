"""How the text of a short way takes operands apart: see `call_text`.

A, a csr_array  ->  a0_pos, a0_crd, a0_vals = a0.indptr, a0.indices, a0.data
                    a0_nnz = len(a0_vals)
                    a0_0, a0_1, = a0.shape
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from codegen.records import dataclass
from taco_py.data.storage.borrow import DTYPES
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.problem import TensorType

PLAIN = 0x0101  # C-contiguous and aligned, in the flags of a NumPy array as one number


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text calls the parts of a tensor.

    lines        assignments to variables, among them the sizes
    wrong        conditions on which the long way is taken
    values       the expression for its values
    sizes        … for the size of each mode
    pos, crd     … for a level's arrays
    count        … for the number of entries
    arrays       … for all its arrays, separated by commas
    ordered, canonical   … that say, where a kernel relies on it, that coordinates are in order, and
                 distinct too; "" where a copy may have to be made instead
    data         … for the tensor as TensorData, "" where there is none
    """

    lines: tuple[str, ...]
    wrong: tuple[str, ...]
    values: str
    sizes: tuple[str, ...] = ()
    pos: Callable[[int], str] = str
    crd: Callable[[int], str] = str
    count: str = "1"
    arrays: str = ""
    ordered: str = ""
    canonical: str = ""
    data: str = ""


def read_array(a: str, type: TensorType) -> Reading:
    """Return a dense array."""
    names, line = _sizes(a, f"{a}.shape", type)
    return Reading(line, (_not_dense(a, type),), a, names, arrays=a)


def read_lined_up(a: str, type: TensorType) -> Reading:
    """Return a dense array that is copied to row-major order, whatever its strides."""
    names, line = _sizes(a, f"{a}.shape", type)
    return Reading(
        (*line, f"{a}_row = asarray({a}, {a}_dtype, order='C')"),
        (),
        f"{a}_row",
        names,
        arrays=f"{a}_row",
    )


def read_compressed(a: str, type: TensorType) -> Reading:
    """Return CSR or CSC."""
    parents = type.format.mode_order[0]
    pos, crd, values, nnz = f"{a}_pos", f"{a}_crd", f"{a}_vals", f"{a}_nnz"
    names, line = _sizes(a, f"{a}.shape", type)
    return Reading(
        (
            f"{pos}, {crd}, {values} = {a}.indptr, {a}.indices, {a}.data",
            f"{nnz} = len({values})",
            *line,
        ),
        (
            _not_plain(pos, crd, values),
            f"len({pos}) != {names[parents]} + 1",
            f"{crd}.shape != {values}.shape",
            f"{pos}.item(-1) != {nnz}",
            _unsound(f"{pos}, {crd}, {names[type.format.mode_order[1]]}", "are_sound"),
        ),
        values,
        names,
        lambda level: pos,
        lambda level: crd,
        nnz,
        f"{pos}, {crd}, {values}",
        f"is_ascending({pos}, {crd})",
        f"is_canonical({pos}, {crd})",
    )


def read_coo(a: str, type: TensorType) -> Reading:
    """Return a coordinate list, whose pos array scipy does not have."""
    crds = tuple(f"{a}_crd{mode}" for mode in range(type.format.order))
    values, nnz = f"{a}_vals", f"{a}_nnz"
    names, line = _sizes(a, f"{a}.shape", type)
    return Reading(
        (
            f"{', '.join(crds)}, = {a}.coords",
            f"{values} = {a}.data",
            f"{nnz} = len({values})",
            *line,
        ),
        (
            _not_plain(*crds, values),
            *(f"{crd}.shape != {values}.shape" for crd in crds),
            *(
                _unsound(f"{crd}, {size}", "in_range")
                for crd, size in zip(crds, names, strict=True)
            ),
        ),
        values,
        names,
        lambda level: f"array((0, {nnz}), {crds[0]}.dtype)",
        lambda level: crds[level],
        nnz,
        ", ".join((*crds, values)),
    )


def read_tensor(a: str, type: TensorType, examined: bool = False) -> Reading:
    """Return a Tensor, whose arrays were found to fit together when it was made.

    examined  whether the order of its coordinates is asked for, which is looked up once
    """
    data = f"{a}_data"
    other = f"({data}.format is not {a}_format and {data}.format != {a}_format)"
    return _stored(
        a,
        f"{a}.examined()" if examined else f"{a}.data",
        type,
        (other,),
        f"{data}.sorted",
        f"{data}.unique",
    )


def read_data(a: str, type: TensorType | None, text: str) -> Reading:
    """Return the TensorData that the expression `text` gives; no sizes where no kernel reads it."""
    return _stored(a, text, type)


def _stored(
    a: str,
    text: str,
    type: TensorType | None,
    wrong: tuple[str, ...] = (),
    ordered: str = "",
    unique: str = "",
) -> Reading:
    data, values = f"{a}_data", f"{a}_vals"
    names, line = _sizes(a, f"{data}.shape", type) if type else ((), ())
    dense = (_not_dense(values, type),) if type and type.format.is_dense else ()
    return Reading(
        (f"{data} = {text}", f"{values} = {data}.values", *line),
        (*wrong, *dense),
        values,
        names,
        lambda level: f"{data}.levels[{level}].pos",
        lambda level: f"{data}.levels[{level}].crd",
        f"{values}.size",
        f"*arrays_of({data})",
        ordered,
        f"({ordered} and {unique})" if unique else "",
        data,
    )


def read_number(a: str, type: TensorType) -> Reading:
    """Return a Python number, which takes the dtype of its partner, or a NumPy scalar."""
    return Reading((f"{a}_vals = asarray({a}, {a}_dtype)",), (), f"{a}_vals")


NUMBERS = (float, int, complex, bool)
SCALARS = tuple(dtype.type for dtype in DTYPES)

READINGS: Mapping[type, Callable[[str, TensorType], Reading]] = {
    np.ndarray: read_array,
    sp.csr_array: read_compressed,
    sp.csr_matrix: read_compressed,
    sp.csc_array: read_compressed,
    sp.csc_matrix: read_compressed,
    sp.coo_array: read_coo,
    sp.coo_matrix: read_coo,
    Tensor: read_tensor,
    **dict.fromkeys((*NUMBERS, *SCALARS), read_number),
}


def as_it_is(obj: Any, data: TensorData) -> bool:
    """Tell whether `data`, which a kernel is given, is made of the user's own arrays."""
    if isinstance(obj, np.ndarray):
        return data.values is obj
    if isinstance(obj, Tensor):
        return data.values is obj.data.values
    if isinstance(obj, (*NUMBERS, np.generic)):
        return True
    if obj.format == "coo":
        pairs = zip(data.levels, obj.coords, strict=True)
        return data.values is obj.data and all(level.crd is crd for level, crd in pairs)
    shares_levels = data.levels[-1].pos is obj.indptr and data.levels[-1].crd is obj.indices
    return shares_levels and data.values is obj.data


def _sizes(a: str, shape: str, type: TensorType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the variables a_0, a_1 … and the line that assigns to them."""
    names = tuple(f"{a}_{mode}" for mode in range(type.format.order))
    return names, (f"{', '.join(names)}, = {shape}",) if names else ()


def _not_plain(*arrays: str) -> str:
    return f"{' & '.join(f'{a}.flags.num' for a in arrays)} & {PLAIN} != {PLAIN}"


def _unsound(arrays: str, look: str) -> str:
    """Raise the error for arrays that do not fit the size of a mode.

    arrays  names of index arrays, and at last of the size
    """
    *names, size = arrays.split(", ")
    key = ", ".join((*(f"id({name})" for name in names), size))
    return f"(not is_known(({key})) and not {look}({arrays}))"


def _not_dense(a: str, type: TensorType) -> str:
    """Raise the error for a kernel that cannot read a dense array of this type."""
    modes = type.format.mode_order
    other = f"not strided({a}, {modes[-1] if modes else 0}, {type.unit_stride})"
    if modes == tuple(range(len(modes))):
        return f"({_not_plain(a)} and {other})"
    return other
