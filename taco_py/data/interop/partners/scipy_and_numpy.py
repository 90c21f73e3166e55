"""NumPy and scipy, which are always there; calls read them without a look at the table."""

from __future__ import annotations

from typing import Any

from taco_py.data.interop.partners.partner import Partner, pick, require_order, stored
from taco_py.data.interop.scipy_arrays import KINDS, require_zero_fill, to_scipy
from taco_py.data.storage.pack import to_dense
from taco_py.data.storage.tensor_data import TensorData, ordered
from taco_py.language.diagnostics.errors import FormatError, OperandTypeError
from taco_py.language.formats import COO, CSC, CSR
from taco_py.language.notation.half_types import is_half

OTHERS = ("bsr", "dia", "lil", "dok")
ALL = (*KINDS, *(f"{name}_{family}" for family in ("array", "matrix") for name in OTHERS))


def left(obj: Any) -> None:
    """Nothing: what is read elsewhere."""


def write_array(data: TensorData, kind: str) -> Any:
    """Return an array of NumPy."""
    pick(kind or "ndarray", ("ndarray",), "numpy")
    return to_dense(data)


def write_sparse(data: TensorData, kind: str) -> Any:
    """Return an array or matrix of scipy.sparse, of the class that stores the format where none is
    named.

    Raises FormatError for a scalar, and a fill value that is not 0.
    """
    require_zero_fill(data)
    usual = {CSR: "csr_array", CSC: "csc_array"}.get(ordered(data.format), "coo_array")
    word = kind if "_" in kind or not kind else f"{kind}_array"
    wanted = pick(word or usual, ALL, "scipy")
    if not data.format.order:
        raise FormatError(
            "Expected a tensor of order 1 or more, found a scalar", hint="use .to_numpy()"
        )
    name, _, family = wanted.partition("_")
    if name in OTHERS:
        require_order(data, 2, f"scipy's {wanted}", "scipy's coo_array holds any order")
        if is_half(data.dtype):
            raise OperandTypeError(
                f"Expected values of 32 bits or more for scipy's {wanted}, found {data.dtype}",
                hint='convert them first: T.astype("float32")',
            )
        return getattr(write_sparse(data, f"csr_{family}"), f"to{name}")()
    form = {"csr": CSR, "csc": CSC}.get(name) if data.format.order == 2 else None
    if form is None and not data.format.is_coo:
        form = COO(data.format.order)
    return to_scipy(data if form is None else stored(data, form), wanted)


NUMPY = Partner("numpy", ("numpy",), "", ("ndarray",), left, write_array)
SCIPY = Partner("scipy", ("scipy",), "", ALL, left, write_sparse)
