"""Contractions: sums of products of two arrays, their loops sorted into four classes.

    C[b, i, j] += A[b, i, k] * B[b, k, j]      batch b    in all three
                                               rows i     in C and A
                                               columns j  in C and B
                                               depth k    in A and B, summed

Each class may have any number of loops, independently of order and strides of the arrays: `C[a, b,
c, d] += A[a, e, b, f] * B[d, f, c, e]` is a product of the matrices A[ab, ef] and B[ef, cd]. All
later decisions (tiles, packing, order of loops) are by class.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.records import dataclass
from polyhedral.model import Access, Mode, Statement


@dataclass(frozen=True, slots=True)
class Contraction:
    """`result += left * right`, and the loops of each class.

    rows and columns are in the order of the result's subscripts, the innermost last. depth ends
    with right's last loop and left's last loop: a block of it then covers full cache lines of both.
    """

    statement: Statement
    result: Access
    left: Access
    right: Access
    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    depth: tuple[str, ...]

    @property
    def of_classes(self) -> tuple[tuple[str, ...], ...]:
        """Return the loops of batch, rows, columns and depth."""
        return self.batch, self.rows, self.columns, self.depth

    @property
    def classes(self) -> str:
        """Return the classes for explain(), without empty ones."""
        loops_of = {
            "batch": self.batch, "rows": self.rows, "columns": self.columns, "depth": self.depth
        }  # fmt: skip
        return "; ".join(f"{name} {', '.join(loops)}" for name, loops in loops_of.items() if loops)


def contraction(statement: Statement) -> Contraction | None:
    """Return `statement` as a contraction, None where it is not one.

    Its accesses are one update by `+` and two reads, in this order; each subscript is a loop by
    itself, and no loop is summed in one operand alone. The operand that shares the result's last
    subscript is the right one.
    """
    if len(statement.accesses) != 3 or not _is_box(statement):
        return None
    result, *operands = statement.accesses
    if result.mode is not Mode.UPDATE or result.operator != "+":
        return None
    if not all(_is_plain(access) for access in statement.accesses):
        return None
    left, right = operands
    result_loops = _loops(result)
    if result_loops and result_loops[-1] not in _loops(right):
        left, right = right, left
    return _classified(statement, result, left, right)


def _classified(
    statement: Statement, result: Access, left: Access, right: Access
) -> Contraction | None:
    in_result, in_left, in_right = _loops(result), _loops(left), _loops(right)
    alone = [
        loop
        for loop in statement.variables
        if sum(loop in loops for loops in (in_result, in_left, in_right)) < 2
    ]
    if alone:
        return None
    batch = [loop for loop in in_result if loop in in_left and loop in in_right]
    return Contraction(
        statement,
        result,
        left,
        right,
        tuple(batch),
        tuple(loop for loop in in_result if loop not in in_right),
        tuple(loop for loop in in_result if loop not in in_left),
        _depth(
            [loop for loop in in_left if loop not in in_result],
            [loop for loop in in_right if loop not in in_result],
        ),
    )


def _depth(in_left: Sequence[str], in_right: Sequence[str]) -> tuple[str, ...]:
    """Return the summed loops, from the orders of left and of right."""
    last = [*in_right[-1:], *in_left[-1:]]
    inner = last[-1:] if len(set(last)) == 1 else last
    return (*(loop for loop in in_left if loop not in inner), *inner)


def _is_box(statement: Statement) -> bool:
    """Tell whether every loop runs from 0 to a bound that no other loop changes."""
    inner = frozenset(statement.variables)
    return not statement.guards and all(
        len(loop.lower) == len(loop.upper) == 1
        and loop.lower[0].is_constant
        and loop.lower[0].constant == 0
        and not inner & set(loop.upper[0].names)
        for loop in statement.loops
    )


def _is_plain(access: Access) -> bool:
    """Tell whether each subscript is one loop, a different one for each."""
    loops = _loops(access)
    return len(set(loops)) == len(loops) and all(
        len(s.terms) == 1 and s.terms[0][1] == 1 and s.constant == 0 for s in access.subscripts
    )


def _loops(access: Access) -> Sequence[str]:
    return [name for subscript in access.subscripts for name in subscript.names]
