"""The libraries that tensors are exchanged with, a line each; none is imported here.

An object's library is that of the module of its class, so that no library is imported to recognise
its objects.
"""

from __future__ import annotations

from typing import Any

from taco_py.data.interop.partners import (
    arrow_tensors,
    cupy_arrays,
    dask_arrays,
    jax_arrays,
    pandas_frames,
    polars_frames,
    pydata_sparse,
    scipy_and_numpy,
    torch_tensors,
)
from taco_py.data.interop.partners.partner import Partner
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.diagnostics.suggest import with_suggestion

PARTNERS: tuple[Partner, ...] = (
    scipy_and_numpy.NUMPY,
    scipy_and_numpy.SCIPY,
    torch_tensors.PARTNER,
    jax_arrays.PARTNER,
    pydata_sparse.PARTNER,
    cupy_arrays.PARTNER,
    pandas_frames.PARTNER,
    polars_frames.PARTNER,
    arrow_tensors.PARTNER,
    dask_arrays.PARTNER,
)


def partner_of(obj: Any) -> Partner | None:
    """Return the library of an object, by the modules of its classes; None for an unknown one."""
    for cls in type(obj).__mro__:
        package = cls.__module__.partition(".")[0]
        for partner in PARTNERS:
            if package in partner.packages:
                return partner
    return None


def partner_named(name: str) -> Partner:
    """Return a library that Tensors can be written to. Raises FormatError for other names."""
    writable = {partner.name: partner for partner in PARTNERS if partner.write is not None}
    partner = writable.get(name) if isinstance(name, str) else None
    if partner is None:
        raise FormatError(
            f"Expected one of {', '.join(writable)}, found {name!r}",
            hint=with_suggestion('as in T.to("torch")', str(name), tuple(writable)),
        )
    return partner


def written_to(data: TensorData, name: str, kind: str) -> Any:
    """Return a stored tensor as an object of a library."""
    write = partner_named(name).write
    assert write is not None
    return write(data, kind)
