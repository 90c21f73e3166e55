"""Texts of array operations in index notation: functions of names, orders and axes.

    spelled("add", ((0, 1), (1,)))  ->  "R[i0,i1] = a0[i0,i1] + a1[i1]"

An operand with fewer modes has the last ones, as in NumPy; a mode of size 1 stretches by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from taco_py.language.notation.functions.function_table import ALIASES, arity_of, called

INFIX: Mapping[str, str] = MappingProxyType({
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/",
    "floor_divide": "//", "remainder": "%", "power": "**", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=", "bitwise_and": "&",
    "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
})  # fmt: skip
"""NumPy's names of the operators that stand between their arguments."""

PREFIX: Mapping[str, str] = MappingProxyType({
    "negative": "-", "invert": "~", "positive": "+", "bitwise_invert": "~",
})  # fmt: skip
"""NumPy's names of the operators that stand before their argument."""


def is_spelled(name: str) -> bool:
    """Tell whether index notation has an elementwise operation of NumPy's."""
    return name in INFIX or name in PREFIX or name in ALIASES or name in called()


def arguments(name: str) -> int:
    """Return the number of arguments of an elementwise operation."""
    if name in INFIX:
        return 2
    return 1 if name in PREFIX else arity_of(ALIASES.get(name, name))


def expression(name: str, args: Sequence[str]) -> str:
    """Write an operation of arguments that are texts."""
    if name in INFIX:
        return f"{args[0]} {INFIX[name]} {args[1]}"
    return f"{PREFIX[name]}{args[0]}" if name in PREFIX else f"{name}({', '.join(args)})"


def indexed(name: str, modes: Sequence[int]) -> str:
    """Write an access by numbered indices; a number has no brackets."""
    return f"{name}[{','.join(f'i{mode}' for mode in modes)}]" if modes else name


@lru_cache(512)
def elementwise_text(
    name: str, orders: tuple[int, ...], literals: tuple[tuple[int, str], ...] = ()
) -> str:
    """Write an elementwise operation of operands a0, a1 … of these orders.

    orders    the order of each operand; 0 for numbers
    literals  the texts of numbers that are no operands, with their places
    """
    order = max(orders)
    args = [indexed(f"a{n}", range(order - count, order)) for n, count in enumerate(orders)]
    for place, text in literals:
        args[place] = text
    return f"{indexed('R', range(order))} = {expression(name, args)}"


@lru_cache(512)
def reduction_text(name: str, order: int, axes: tuple[int, ...]) -> str:
    """Write a reduction of the operand a0 over some of its modes, in ascending order.

    reduction_text("max", 2, (0,))  ->  "R[i1] = max(i0, a0[i0,i1])"
    """
    result_modes = [mode for mode in range(order) if mode not in axes]
    value = indexed("a0", range(order))
    over = "".join(f"i{axis}, " for axis in axes)
    return f"{indexed('R', result_modes)} = {name}({over}{value})"


@lru_cache(512)
def transposed_text(axes: tuple[int, ...]) -> str:
    """Write an operand a0 with its modes in another order.

    transposed_text((1, 0))  ->  "R[i1,i0] = a0[i0,i1]"
    """
    return f"{indexed('R', axes)} = {indexed('a0', range(len(axes)))}"
