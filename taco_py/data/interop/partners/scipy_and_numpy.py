"""NumPy and scipy, which are always installed; calls read their arrays without this table."""

from __future__ import annotations

from typing import Any

from taco_py.data.interop.partners.partner import Partner, pick, require_order, stored
from taco_py.data.interop.scipy_arrays import KINDS, require_zero_fill, to_scipy
from taco_py.data.storage.pack import to_dense
from taco_py.data.storage.tensor_data import TensorData, ordered
from taco_py.language.diagnostics.errors import FormatError, OperandTypeError
from taco_py.language.formats import COO, CSC, CSR
from taco_py.language.notation.half_types import is_half

CONVERTED = ("bsr", "dia", "lil", "dok")
ALL = (
    *KINDS,
    *(f"{name}_{family}" for family in ("array", "matrix") for name in CONVERTED),
)


def read_nothing(obj: Any) -> None:
    """Return None: other functions read these objects."""


def write_array(data: TensorData, kind: str) -> Any:
    """Return an array of NumPy."""
    pick(kind or "ndarray", ("ndarray",), "numpy")
    return to_dense(data)


def write_sparse(data: TensorData, kind: str) -> Any:
    """Return an array or matrix of scipy.sparse; by default of the class for the tensor's format.

    Raises FormatError for a scalar, and a fill value that is not 0.
    """
    require_zero_fill(data)
    usual = {CSR: "csr_array", CSC: "csc_array"}.get(ordered(data.format), "coo_array")
    word = kind if "_" in kind or not kind else f"{kind}_array"
    target = pick(word or usual, ALL, "scipy")
    if not data.format.order:
        raise FormatError(
            "Expected a tensor of order 1 or more, found a scalar", hint="use .to_numpy()"
        )
    name, _, family = target.partition("_")
    if name in CONVERTED:
        require_order(data, 2, f"scipy's {target}", "scipy's coo_array holds any order")
        if is_half(data.dtype):
            raise OperandTypeError(
                f"Expected values of 32 bits or more for scipy's {target}, found {data.dtype}",
                hint='convert them first: T.astype("float32")',
            )
        return getattr(write_sparse(data, f"csr_{family}"), f"to{name}")()
    form = {"csr": CSR, "csc": CSC}.get(name) if data.format.order == 2 else None
    if form is None and not data.format.is_coo:
        form = COO(data.format.order)
    return to_scipy(data if form is None else stored(data, form), target)


NUMPY = Partner("numpy", ("numpy",), "", ("ndarray",), read_nothing, write_array)
SCIPY = Partner("scipy", ("scipy",), "", ALL, read_nothing, write_sparse)
