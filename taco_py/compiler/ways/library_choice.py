"""Whether a library's routine is called in place of generated code.

    seconds = for the call + products / how many a second + for each matrix multiplied
            + its share of compiling, where that has to be done

Generated products of matrices are as fast as the library's up to `Machine.library_lead_products`,
and the faster the wider their vectors are; what decides below is that a library need not be
compiled, and above that calls and matrices of it cost more.
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
    """What may be called.

    available  whether there is a library for an element type
    narrower   how many times as wide the vectors of generated code are
    compiled   whether a kernel is asked for to be called often, so that compiling costs nothing;
               its operands' sizes are known only where they are static
    often      whether many calls follow, as of a function: products that are shared among threads
               are compiled then, for they gain more than that takes
    """

    available: Callable[[str], bool]
    narrower: Callable[[], float]
    compiled: bool = False
    often: bool = False


def library_reason(problem: Problem, stats: Statistics, libraries: Libraries) -> str | None:
    """Say why a library computes `problem`, which has products of matrices; None where it does
    not."""
    dtype = problem.result.dtype
    sizes = {index: int(stats.sizes[index]) for index in all_indices(problem.assignment)}
    unknown = libraries.compiled and len(problem.static) < len(sizes)
    if unknown or product_text(problem) is None:
        return None
    found = products_of(problem, sizes)
    if found is None:
        return None
    machine = stats.machine
    one = library_seconds(found, dtype, machine, libraries.often)
    if one >= generated_seconds(found, dtype, machine, libraries.compiled):
        return None
    if not libraries.available(dtype):
        return None
    other = generated_seconds(found, dtype, machine, libraries.compiled, libraries.narrower())
    if one >= other:
        return None
    matrices = f"{found.calls} of {found.rows} by {found.columns} by {found.depth}"
    compiling = "" if libraries.compiled else " with its share of compiling"
    return (
        f"{GEMM[dtype]} of {OPENBLAS.name}, {matrices}: about {one:.3e} s instead of "
        f"{other:.3e}{compiling}"
    )


def library_seconds(found: Products, dtype: str, machine: Machine, often: bool = False) -> float:
    """What the library takes; a single call leaves out what only many calls gain back.

    Threads that share a product each make a copy of one factor as the library wants it.
    """
    moved = 2 * found.rows * found.columns * found.rounds * scalar(dtype).itemsize
    again = moved / machine.calls.memory_bytes_per_second if found.rounds > 1 else 0.0
    columns = min(found.rows, found.depth)  # its rows run along the result's last mode
    narrow = columns <= machine.calls.library_narrow_columns
    loss = machine.calls.library_narrow_ratio if narrow else 1.0
    if often and found.calls == 1 and _count(found) >= machine.calls.library_shared_products:
        loss *= machine.calls.library_shared_ratio
    called = machine.calls.library_call_seconds + machine.calls.library_matrix_seconds * found.calls
    return called + loss * _multiplying(found, dtype, machine) + again


def generated_seconds(
    found: Products, dtype: str, machine: Machine, compiled: bool, narrower: float = 1.0
) -> float:
    """What generated code takes; `narrower` as in Libraries."""
    large = _count(found) >= machine.calls.library_lead_products
    loss = (machine.calls.library_lead_ratio if large else 1.0) / narrower
    if is_complex(dtype):
        loss = machine.calls.complex_loop_ratio
    share = 0.0 if compiled else machine.calls.compile_seconds / machine.calls.compile_calls
    return machine.calls.kernel_call_seconds + loss * _multiplying(found, dtype, machine) + share


def _count(found: Products) -> float:
    return float(found.rows) * found.columns * found.depth * found.calls


def _multiplying(found: Products, dtype: str, machine: Machine) -> float:
    element = scalar(dtype)
    real = 2 if is_complex(dtype) else 1  # a product of complex numbers takes four
    return _count(found) / machine.calls.dense_products_per_second * element.itemsize / 8 * real
