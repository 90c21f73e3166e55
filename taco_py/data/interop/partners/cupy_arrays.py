"""Arrays of CuPy, in the memory of a GPU: `tp.device` takes them in place, other calls refuse
them."""

from __future__ import annotations

from typing import Any

from taco_py.data.interop.partners.partner import (
    Partner,
    pick,
    require_order,
    require_zero,
    stored,
)
from taco_py.data.interop.scipy_arrays import to_scipy
from taco_py.data.storage.tensor_data import TensorData, ordered
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.diagnostics.extras import library
from taco_py.language.formats import COO, CSC, CSR, Format

KINDS = ("csr_matrix", "csc_matrix", "coo_matrix", "ndarray")
FORMATS = {"csr_matrix": CSR, "csc_matrix": CSC, "coo_matrix": COO(2)}


def read(obj: Any) -> TensorData | None:
    """Refuse a sparse array, which would have to be copied; return None for a dense one."""
    if type(obj).__module__.partition(".")[0] == "cupy":
        return None
    raise OperandTypeError(
        f"Expected a tensor on the host, found CuPy's {type(obj).__name__} in the memory of a GPU",
        hint="call .get(), which copies it to the host; tp.device(x.get()) copies it back",
    )


def write(data: TensorData, kind: str) -> Any:
    """Return a copy in the memory of the GPU, as a class of CuPy."""
    usual = {form: name for name, form in FORMATS.items()}.get(ordered(data.format), "coo_matrix")
    target = pick(kind or ("ndarray" if data.format.is_dense else usual), KINDS, "cupy")
    cupy = library("cupy", "cupy-cuda12x")
    if target == "ndarray":
        return cupy.asarray(stored(data, Format.parse("d" * data.format.order)).values)
    require_zero(data, f"CuPy's {target}")
    require_order(data, 2, f"CuPy's {target}", "ndarray holds any order")
    host = to_scipy(stored(data, FORMATS[target]), target)
    return getattr(library("cupyx.scipy.sparse", "cupy-cuda12x"), target)(host)


PARTNER = Partner("cupy", ("cupy", "cupyx"), "cupy-cuda12x", KINDS, read, write)
