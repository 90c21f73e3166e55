"""Where a library with the BLAS is found and what its routines are called: data, nothing is loaded.

The routine is `C = alpha op(A) op(B) + beta C` over matrices stored by columns, all arguments by
address, as in Dongarra et al. (1990).
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library that comes with a Python package.

    name      for explain()
    package   the package that it comes with
    places    glob patterns of its file, from the folder that the package lies in
    prefix    what stands before the name of a routine, and behind it
    threads   functions that set and tell how many threads it uses
    core      a function that names the processor whose kernels it runs
    capsules  the module whose `__pyx_capi__` has the routines where there is no such file
    """

    name: str
    package: str
    places: tuple[str, ...]
    prefix: str
    suffix: str
    threads: tuple[str, str]
    core: str
    capsules: str


OPENBLAS = Library(
    name="SciPy's OpenBLAS",
    package="scipy",
    places=(
        "scipy.libs/libscipy_openblas*",
        "scipy/.dylibs/libscipy_openblas*",
        "scipy.libs/libopenblas*",
    ),
    prefix="scipy_",
    suffix="_",
    threads=("scipy_openblas_set_num_threads", "scipy_openblas_get_num_threads"),
    core="scipy_openblas_get_corename",
    capsules="scipy.linalg.cython_blas",
)

GEMM: Mapping[str, str] = {
    "float32": "sgemm",
    "float64": "dgemm",
    "complex64": "cgemm",
    "complex128": "zgemm",
}
"""The product of matrices, by element type."""

VECTOR_BYTES: Mapping[str, int] = {
    "Katmai": 16,
    "Nehalem": 16,
    "Sandybridge": 32,
    "Haswell": 32,
    "Zen": 32,
    "SkylakeX": 64,
    "Cooperlake": 64,
    "SapphireRapids": 64,
}
"""How wide the vectors are that OpenBLAS multiplies with, by the names of its kernels. It has them
for few processors, so that a new one may run those of an old one: Haswell's where 64 bytes are
there. Measured, 700 by 700 doubles on a Zen 4 by the kernels of Katmai, Nehalem, Sandybridge,
Haswell: 39, 40, 21, 15 ms; generated code 15."""
