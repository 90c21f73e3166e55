"""Visitor trees as text, for explain().

accumulator → + b[j] → max(·, 0) → store H[i,j] → sum over i into s[j]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from taco_py.compiler.epilogue.visitors import (
    AccumulatorFetch,
    AuxLoad,
    AuxStore,
    ColumnBroadcast,
    ColumnReduction,
    Compute,
    Outputs,
    RowBroadcast,
    RowReduction,
    ScalarBroadcast,
    ScalarReduction,
    Slot,
    Topological,
    Visitor,
)
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.printer import to_text

ARROW = " → "
PLACEHOLDER = "·"
"""The value before the arrow."""


def tree_lines(tree: Visitor) -> tuple[str, ...]:
    """Return a line for each step that is read several times, and one for the root.

    v1 = accumulator → + b[j];  v2 = v1 → tanh(·);  v2 → · * v1 → store H[i,j]
    """
    if isinstance(tree, Topological):
        *steps, last = tree.steps
        lines = [
            f"v{number} = {chain}" for number, step in enumerate(steps) for chain in [_text(step)]
        ]
        return (*lines, *tree_lines(last))
    if isinstance(tree, Outputs):
        return tuple(line for arg in tree.args for line in tree_lines(arg))
    return (_text(tree),)


def _text(visitor: Visitor) -> str:
    return ARROW.join(_chain(visitor))


def _chain(visitor: Visitor) -> Iterator[str]:
    """Yield the steps from the accumulator, or a slot, to a visitor."""
    match visitor:
        case AccumulatorFetch():
            yield "accumulator"
        case Slot(number):
            yield f"v{number}"
        case AuxLoad(access) | RowBroadcast(access) | ColumnBroadcast(access):
            yield to_text(access)
        case ScalarBroadcast(value):
            yield to_text(value)
        case Compute():
            yield from _computed(visitor)
        case AuxStore(target, value):
            yield from _chain(value)
            yield f"store {to_text(target)}"
        case (
            RowReduction(target, value)
            | ColumnReduction(target, value)
            | ScalarReduction(target, value)
        ):
            yield from _chain(value)
            yield f"{_sum_word(visitor)} {to_text(target)}"
        case Topological() | Outputs():
            yield f"({'; '.join(tree_lines(visitor))})"
        case _:
            assert_never(visitor)


def _sum_word(visitor: RowReduction | ColumnReduction | ScalarReduction) -> str:
    match visitor:
        case RowReduction():
            return "sum of rows"
        case ColumnReduction():
            return "sum of columns"
        case ScalarReduction():
            return "sum"
        case _:
            assert_never(visitor)


def _computed(visitor: Compute) -> Iterator[str]:
    """Yield the chain of the argument that comes from the product, then the operator."""
    main = next((arg for arg in visitor.args if _from_product(arg)), visitor.args[0])
    yield from _chain(main)
    args = [Access(PLACEHOLDER, ()) if arg is main else _inline(arg) for arg in visitor.args]
    yield _shortened(to_text(Call(visitor.operator, tuple(args))))


def _shortened(text: str) -> str:
    """Remove the placeholder before an operator: · + b[j]  →  + b[j]."""
    head = f"{PLACEHOLDER} "
    return text.removeprefix(head) if text.count(PLACEHOLDER) == 1 else text


def _inline(visitor: Visitor) -> Expr:
    """Return a visitor beside the chain as an expression."""
    match visitor:
        case AuxLoad(access) | RowBroadcast(access) | ColumnBroadcast(access):
            return access
        case ScalarBroadcast(value):
            return value
        case Compute(operator, args):
            return Call(operator, tuple(map(_inline, args)))
    return Access(_text(visitor), ())


def _from_product(visitor: Visitor) -> bool:
    match visitor:
        case AccumulatorFetch() | Slot() | Topological():
            return True
        case Compute(_, args):
            return any(map(_from_product, args))
        case AuxStore(_, value) | RowReduction(_, value) | ColumnReduction(_, value):
            return _from_product(value)
    return False
