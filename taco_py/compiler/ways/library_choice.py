"""The choice between a library's routine and generated code.

    seconds = of the call + products / products a second + of each matrix
            + the share of compiling, where that is needed

Generated products of matrices are as fast as the library's up to `Machine.library_lead_products`,
and the faster the wider their vectors are; below, a library pays for it need not be compiled,
above, its calls and matrices cost more.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.libraries.blas_routines import GEMM, OPENBLAS
from codegen.libraries.gemm import Products
from codegen.records import dataclass
from codegen.types import scalar
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.ways.library_product import product_text, products_of
from taco_py.language.legal.types import is_complex
from taco_py.language.notation.checks import all_indices
from taco_py.language.problem import Problem


@dataclass(frozen=True, slots=True)
class Libraries:
    """The libraries that may be called.

    available  whether there is a library for an element type
    narrower   the ratio of the vectors' widths of generated code to the library's
    compiled   whether the kernel is compiled for many calls, so that compiling costs nothing; its
               operands' sizes are known only where they are static
    many_calls  whether many calls follow, as of a function: products that are shared among threads
               are then compiled, for they gain more than compiling takes
    """

    available: Callable[[str], bool]
    narrower: Callable[[], float]
    compiled: bool = False
    many_calls: bool = False


def library_reason(problem: Problem, stats: Statistics, libraries: Libraries) -> str | None:
    """Say why a library computes `problem`, a product of matrices; None where it does not."""
    dtype = problem.result.dtype
    sizes = {index: int(stats.sizes[index]) for index in all_indices(problem.assignment)}
    unknown = libraries.compiled and len(problem.static) < len(sizes)
    if unknown or product_text(problem) is None:
        return None
    products = products_of(problem, sizes)
    if products is None:
        return None
    machine = stats.machine
    one = library_seconds(products, dtype, machine, libraries.many_calls)
    if one >= generated_seconds(products, dtype, machine, libraries.compiled):
        return None
    if not libraries.available(dtype):
        return None
    other = generated_seconds(products, dtype, machine, libraries.compiled, libraries.narrower())
    if one >= other:
        return None
    matrices = f"{products.calls} of {products.rows} by {products.columns} by {products.depth}"
    compiling = "" if libraries.compiled else " with its share of compiling"
    return (
        f"{GEMM[dtype]} of {OPENBLAS.name}, {matrices}: about {one:.3e} s instead of "
        f"{other:.3e}{compiling}"
    )


def library_seconds(
    products: Products, dtype: str, machine: Machine, many_calls: bool = False
) -> float:
    """Return the seconds of the library; costs that only many calls regain count for many calls.

    Threads that share a product each copy one factor into the library's layout.
    """
    bytes = 2 * products.rows * products.columns * products.rounds * scalar(dtype).itemsize
    rereading = bytes / machine.calls.memory_bytes_per_second if products.rounds > 1 else 0.0
    columns = min(products.rows, products.depth)  # its rows run along the result's last mode
    narrow = columns <= machine.calls.library_narrow_columns
    loss = machine.calls.library_narrow_ratio if narrow else 1.0
    if (
        many_calls
        and products.calls == 1
        and _count(products) >= machine.calls.library_shared_products
    ):
        loss *= machine.calls.library_shared_ratio
    called = (
        machine.calls.library_call_seconds + machine.calls.library_matrix_seconds * products.calls
    )
    return called + loss * _multiplying(products, dtype, machine) + rereading


def generated_seconds(
    products: Products, dtype: str, machine: Machine, compiled: bool, narrower: float = 1.0
) -> float:
    """Return the seconds of generated code; `narrower` as in `Libraries`."""
    large = _count(products) >= machine.calls.library_lead_products
    loss = (machine.calls.library_lead_ratio if large else 1.0) / narrower
    if is_complex(dtype):
        loss = machine.calls.complex_loop_ratio
    share = 0.0 if compiled else machine.calls.compile_seconds / machine.calls.compile_calls
    return machine.calls.kernel_call_seconds + loss * _multiplying(products, dtype, machine) + share


def _count(products: Products) -> float:
    return float(products.rows) * products.columns * products.depth * products.calls


def _multiplying(products: Products, dtype: str, machine: Machine) -> float:
    element = scalar(dtype)
    real = 2 if is_complex(dtype) else 1  # a product of complex numbers takes four
    return _count(products) / machine.calls.dense_products_per_second * element.itemsize / 8 * real
