"""A product of two dense tensors → the products of matrices of a library."""

from __future__ import annotations

from codegen.libraries.blas_routines import GEMM
from codegen.libraries.gemm import Loop, Products, as_products
from taco_py.compiler.ways.contraction_match import contraction_of, factors_of
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.types import has_matrix_kernels
from taco_py.language.notation.checks import all_indices
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def product_text(problem: Problem) -> str | None:
    """Return the product in the syntax of `codegen.runtime.blas`, None where no routine computes
    it.

    C[i,j] = sum(k, A[i,k] * B[k,j])   →   "float64 ac,cb->ab"
    """
    dtype = problem.result.dtype
    indices = all_indices(problem.assignment)
    if dtype not in GEMM or len(indices) > len(LETTERS) or not _in_one_type(problem):
        return None
    if contraction_of(problem, has_matrix_kernels) is None:
        return None
    letters = dict(zip(indices, LETTERS, strict=False))
    left, right, result = (
        "".join(letters[index] for index in access.indices) for access in accesses_of(problem)
    )
    return f"{dtype} {left},{right}->{result}"


def _in_one_type(problem: Problem) -> bool:
    return all(type.element == problem.result.dtype for _, type in problem.operands)


def accesses_of(problem: Problem) -> tuple[Access, Access, Access]:
    """Return the accesses to left, right and result."""
    factors = factors_of(problem)
    if factors is None:
        raise InternalError(f"Expected a product of two tensors, found {problem}")
    return (*factors, problem.assignment.target)


def products_of(problem: Problem, sizes: dict[str, int]) -> Products | None:
    """Return the products of matrices for tensors that are stored without gaps.

    None where tensors had to be copied first.
    """
    left, right, result = accesses_of(problem)
    if not all(problem.type_of(a.tensor).unit_stride for a in (left, right, result) if a.indices):
        return None
    steps = [_steps(problem, access, sizes) for access in (result, left, right)]
    loops = []
    for index in all_indices(problem.assignment):
        c, a, b = (tensor_steps.get(index) for tensor_steps in steps)
        users = (c is not None, a is not None, b is not None)
        loops.append(Loop(sizes[index], (c or 0, a or 0, b or 0), users))
    return as_products(loops)


def _steps(problem: Problem, access: Access, sizes: dict[str, int]) -> dict[str, int]:
    steps: dict[str, int] = {}
    step = 1
    for mode in reversed(problem.type_of(access.tensor).format.mode_order):
        steps[access.indices[mode]] = step
        step *= max(1, sizes[access.indices[mode]])
    return steps
