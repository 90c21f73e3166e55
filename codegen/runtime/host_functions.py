"""Functions of the host (`taco_host.c`) that take arrays of Python, called as those of kernels."""

from __future__ import annotations

from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import INT32, INT64, ScalarType


def ascends_signature(element: ScalarType) -> Signature:
    """Whether crd ascends strictly in each of crd[pos[i]:pos[i + 1]], as 1 or 0 in `found`."""
    return Signature(
        f"taco_ascends_{element.name}",
        (
            Parameter("pos", Kind.INPUT, element),
            Parameter("crd", Kind.INPUT, element),
            Parameter("found", Kind.OUTPUT, INT64),
            Parameter("rows", Kind.SCALAR, INT64),
            Parameter("count", Kind.SCALAR, INT64),
        ),
    )


HOST_SIGNATURES = (ascends_signature(INT32), ascends_signature(INT64))
"""In the order of `taco_host_call`."""
