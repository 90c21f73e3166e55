"""Every operator of texts says what its cotangents are, or that it has none."""

from __future__ import annotations

import numpy as np
import pytest

from taco_py.language.autodiff.cotangents import entry
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.functions.function_table import FACTORS, FUNCTIONS, INVERT, LADDER
from taco_py.language.notation.operators import ADD, DIV, MUL, NEG, SUB, Operator

OPERATORS = {
    each.name: each
    for each in (ADD, SUB, MUL, DIV, NEG, INVERT, *FACTORS, *FUNCTIONS.values(), *sum(LADDER, ()))
}
OF_INTEGERS = {"invert", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}


@pytest.mark.parametrize("name", OPERATORS)
def test_there_is_an_entry_for_each_argument(name: str) -> None:
    operator = OPERATORS[name]
    assert len(operator.cotangents) == (0 if name in OF_INTEGERS else operator.arity)


@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - OF_INTEGERS))
def test_entries_read_arguments_alone(name: str) -> None:
    operator = OPERATORS[name]
    for text in operator.cotangents:
        names = {each.tensor for each in accesses(entry(text))}
        assert names <= {*"abc"[: operator.arity], "d", "f", "t"}


def _is_differentiated(operator: Operator) -> bool:
    return operator.arity == 1 and operator.cotangents[0] != "0" and operator.name != "real"


@pytest.mark.parametrize(
    "name", [n for n in sorted(OPERATORS.keys() - OF_INTEGERS) if _is_differentiated(OPERATORS[n])]
)
def test_entries_of_functions_are_their_derivatives(name: str) -> None:
    operator = OPERATORS[name]
    a = 1.3 if name == "acosh" else 0.4
    step = 1e-6
    with np.errstate(all="ignore"):
        expected = (operator.evaluate(a + step) - operator.evaluate(a - step)) / (2 * step)
    values = {"a": a, "d": 1.0, "f": operator.evaluate(a), "np": np}
    if name in ("imag", "angle", "conj", "abs"):
        return  # of complex numbers, in test_text_derivatives
    from taco_py import evaluate_dense

    used = {each.tensor for each in accesses(entry(operator.cotangents[0]))}
    found = evaluate_dense(f"y = {operator.cotangents[0]}", {n: float(values[n]) for n in used})
    assert found == pytest.approx(expected, rel=1e-6)
