"""Functions of the host (`taco_host.c`) that take arrays of Python, called as those of kernels."""

from __future__ import annotations

from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import FLOAT64, INT32, INT64, UINT8, ScalarType


def ascends_signature(element: ScalarType) -> Signature:
    """Tell whether crd ascends strictly in each of crd[pos[i]:pos[i + 1]], as 1 or 0 in `found`."""
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


def count_blocks_signature(element: ScalarType) -> Signature:
    """Return the signature that counts the nonempty blocks of a CSR matrix."""
    arrays = (
        Parameter("pos", Kind.INPUT, element),
        Parameter("crd", Kind.INPUT, element),
        Parameter("found", Kind.OUTPUT, INT64),
        Parameter("first", Kind.OUTPUT, element),
        Parameter("last", Kind.OUTPUT, element),
    )
    return Signature(f"taco_count_blocks_{element.name}", (*arrays, *_sizes("rows columns r c")))


def fill_blocks_signature(element: ScalarType) -> Signature:
    """Return the columns of the blocks of a matrix in CSR, and their elements, as bytes."""
    arrays = (
        Parameter("pos", Kind.INPUT, element),
        Parameter("crd", Kind.INPUT, element),
        Parameter("values", Kind.INPUT, UINT8),
        Parameter("first", Kind.INPUT, element),
        Parameter("column", Kind.OUTPUT, element),
        Parameter("blocks", Kind.OUTPUT, UINT8),
        Parameter("place", Kind.OUTPUT, INT64),
    )
    return Signature(f"taco_fill_blocks_{element.name}", (*arrays, *_sizes("rows r c size")))


def within_signature(element: ScalarType) -> Signature:
    """Return the signature that checks whether pos ascends from 0 and coordinates are in range."""
    arrays = (
        Parameter("pos", Kind.INPUT, element),
        Parameter("crd", Kind.INPUT, element),
        Parameter("found", Kind.OUTPUT, INT64),
    )
    return Signature(f"taco_within_{element.name}", (*arrays, *_sizes("rows count size")))


def sum_of_trees_signature() -> Signature:
    """Return the signature that sums regression trees for rows of features."""
    arrays = (
        Parameter("rows", Kind.INPUT, FLOAT64),
        Parameter("feature", Kind.INPUT, INT32),
        Parameter("threshold", Kind.INPUT, FLOAT64),
        Parameter("left", Kind.INPUT, INT32),
        Parameter("right", Kind.INPUT, INT32),
        Parameter("value", Kind.INPUT, FLOAT64),
        Parameter("roots", Kind.INPUT, INT32),
        Parameter("total", Kind.OUTPUT, FLOAT64),
    )
    return Signature("taco_sum_of_trees", (*arrays, *_sizes("count columns trees")))


def _sizes(names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name, Kind.SCALAR, INT64) for name in names.split())


HOST_SIGNATURES = (
    ascends_signature(INT32),
    ascends_signature(INT64),
    count_blocks_signature(INT32),
    count_blocks_signature(INT64),
    fill_blocks_signature(INT32),
    fill_blocks_signature(INT64),
    within_signature(INT32),
    within_signature(INT64),
    sum_of_trees_signature(),
)
"""In the order of `taco_host_call`."""
