"""Random problems of slabs: values of two or three modes, reduced, combined and stored."""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np

from taco_py.language.formats import dense
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.functions.function_table import EQUAL, MAX, MIN, make_call
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL, POSITION, SUB
from taco_py.language.problem import Problem, SideResult, TensorType

ORDERS = (("i", "j"), ("i", "j", "k"))


class Values:
    """Draws expressions over the modes of one tensor, some with reductions inside."""

    def __init__(self, numbers: Random, dtype: str) -> None:
        self.numbers, self.dtype = numbers, dtype
        self.order = numbers.choice(ORDERS)
        self.inner = numbers.randint(1, len(self.order) - 1)
        self.count = 0

    def problem(self) -> Problem:
        """Draw one to three assignments that read the same operands."""
        assignments = [self.assignment(n) for n in range(self.numbers.randint(1, 3))]
        *side, last = assignments
        operands: dict[str, int] = {}
        for assignment in (last, *side):
            for access in accesses(assignment.value):
                operands[access.tensor] = len(access.indices)
        return Problem(
            last,
            tuple(
                (name, TensorType(dense(order), "int64") if name in "pl" else self.type(order))
                for name, order in operands.items()
            ),
            self.type(len(last.target.indices)),
            side=tuple(
                SideResult(one.target, self.type(len(one.target.indices)), one.value)
                for one in side
            ),
        )

    def type(self, order: int) -> TensorType:
        return TensorType(dense(order), self.dtype)

    def assignment(self, number: int) -> Assignment:
        value = Call(ADD, (self.element(3), Access("X", self.order)))
        kept = self.order
        kind = self.numbers.random()
        if kind < 0.25:  # over what is inside of slabs
            kept = self.order[: -self.inner]
        elif kind < 0.45:  # over the slabs
            kept = self.order[-self.inner :]
        elif kind < 0.5:
            kept = ()
        if not kept and self.numbers.random() < 0.5:
            kept = self.order
        total: Expr = value
        operator = self.numbers.choice((ADD, MAX))
        for index in reversed(self.order):
            if index not in kept:
                total = Reduce(operator, index, total)
        return Assignment(Access(f"R{number}", kept), total)

    def element(self, depth: int) -> Expr:
        """Draw a value that has an element for each of the largest tensor's, or fewer."""
        kind = self.numbers.random()
        if depth == 0 or kind < 0.25:
            return self.leaf()
        if kind < 0.4:
            return self.reduction(depth - 1)
        if kind < 0.45 and self.inner == 1:
            return self.selected()
        if kind < 0.6:
            inner = Call(MIN, (self.element(depth - 1), Literal(1)))
            return make_call("exp", (inner,))
        operator = self.numbers.choice((ADD, SUB, MUL, MAX))
        args = (self.element(depth - 1), self.element(depth - 1))
        if self.numbers.random() < 0.3:
            args = (args[0], args[0])
        return Call(operator, args)

    def leaf(self) -> Expr:
        name, kept = self.numbers.choice((
            ("X", self.order), ("Y", self.order), ("g", self.order[-1:]), ("d", self.order[:1]),
        ))  # fmt: skip
        if self.numbers.random() < 0.1:
            return Literal(self.numbers.randint(-2, 2))
        return Access(name, kept)

    def selected(self) -> Expr:
        """Draw a reduction of the one element of each slab that a label selects."""
        self.count += 1
        index = f"{self.order[-1]}{self.count}"
        whole = np.dtype(self.dtype).kind in "iu"
        operator = ADD if whole else self.numbers.choice((ADD, MAX))
        otherwise = Literal(0 if whole else 0.0 if operator == ADD else -inf, dtype=self.dtype)
        position, label = Access("p", (index,)), Access("l", self.order[:1])
        pair = [Call(POSITION, (position,)), label]
        self.numbers.shuffle(pair)
        tensor, kept = self.numbers.choice((("X", self.order[:-1]), ("g", ())))
        element = Access(tensor, (*kept, index))
        chosen = make_call("where", (Call(EQUAL, tuple(pair)), element, otherwise))
        return Call(MIN, (Reduce(operator, index, chosen), Literal(2)))

    def reduction(self, depth: int) -> Expr:
        """Draw a reduction over the modes inside of slabs, under names of its own."""
        self.count += 1
        number = self.count
        body = Call(ADD, (self.element(depth), Access("X", self.order)))
        reduced = self.order[-self.inner :]
        names = {index: f"{index}{number}" for index in reduced}
        total = _renamed(body, names)
        for index in reversed(reduced):
            total = Reduce(self.numbers.choice((ADD, MAX)), names[index], total)
        return total


def _renamed(expr: Expr, names: dict[str, str]) -> Expr:
    match expr:
        case Access(tensor, indices):
            return Access(tensor, tuple(names.get(index, index) for index in indices))
        case Call(operator, args):
            return Call(operator, tuple(_renamed(arg, names) for arg in args))
        case Reduce(operator, index, body):
            inner = {old: new for old, new in names.items() if old != index}
            return Reduce(operator, index, _renamed(body, inner))
    return expr


def text_of_pairs(numbers: Random) -> tuple[str, tuple[str, ...]]:
    """Draw statements that read elements of one mode by two indices, and the tensors they make.

    u0[] = max(i, x[i]); u1[i] = sum(k, abs(x[i] - x[k]) * u0[]); ...
    """
    tensors, lines = {"x": "i", "X": "ij"}, []
    for number in range(numbers.randint(2, 4)):
        target = numbers.choice(("", "i", "j", "ij"))
        factors = [_pair_access(numbers, tensors) for _ in range(numbers.randint(2, 3))]
        body = factors[0]
        for factor in factors[1:]:
            body = f"abs({body} - {factor})" if numbers.random() < 0.6 else f"{body} * {factor}"
        for index in "ijkl":
            if f"{index}," in f"{body},".replace("]", ",") and index not in target:
                body = f"{numbers.choice(('sum', 'max'))}({index}, {body})"
        for index in target:
            body = f"{body} + X[{', '.join('ij')}]" if index not in body else body
        lines.append((f"u{number}", target, body))
        tensors[f"u{number}"] = target
    return (
        "; ".join(f"{name}[{', '.join(target)}] = {body}" for name, target, body in lines),
        tuple(name for name, _, _ in lines),
    )


def _pair_access(numbers: Random, tensors: dict[str, str]) -> str:
    """Draw an access whose indices of rows are i or k, and of columns j or l."""
    name = numbers.choice((*tensors, "x", "X"))
    second = {"i": "k", "j": "l"}
    modes = (second[m] if numbers.random() < 0.5 else m for m in tensors[name])
    return f"{name}[{', '.join(modes)}]"
