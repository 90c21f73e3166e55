"""How many coordinates tensors store: all or some.

    full    every coordinate is stored: all levels are dense
    sparse  some level leaves coordinates out

>>> from taco_py.language.formats import CSR, dense
>>> is_full(dense(2)), is_sparse(CSR), count_lists(CSR), all_full([])
(True, True, 1, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import Problem, TensorType


def is_full(form: Format) -> bool:
    """Tell whether tensors of a format store every coordinate."""
    return form.is_dense


def is_sparse(form: Format) -> bool:
    """Tell whether tensors of a format leave coordinates out."""
    return not form.is_dense


def all_full(types: Iterable[TensorType]) -> bool:
    """Tell whether all of several tensors store every coordinate."""
    return all(type.format.is_dense for type in types)


def is_full_problem(problem: Problem) -> bool:
    """Tell whether all operands and the result of a problem store every coordinate."""
    return problem.result.format.is_dense and all_full(type for _, type in problem.operands)


def sparse_indices(assignment: Assignment, leaves_out: Callable[[Access], bool]) -> frozenset[str]:
    """Find the indices of operands that leave coordinates out: i and j where A[i,j] is sparse."""
    sparse = (access for access in accesses(assignment) if leaves_out(access))
    return frozenset(index for access in sparse for index in access.indices)


def sparse_indices_of(problem: Problem) -> frozenset[str]:
    """Find the indices of a problem's operands that leave coordinates out."""
    return sparse_indices(
        problem.assignment, lambda access: is_sparse(problem.type_of(access.tensor).format)
    )


def count_lists(form: Format) -> int:
    """Count the sparse levels of a format: 2 of DCSR, 1 of CSR."""
    return sum(not level.full for level in form.levels)


def lists_in_order(form: Format) -> bool:
    """Tell whether all levels are dense, compressed or singleton, and entries are sorted."""
    return all(level.kind.usual and level.ordered for level in form.levels)
