"""The dtype of every expression is the one NumPy gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from taco_py.language.diagnostics.errors import OperandError, OperandTypeError
from taco_py.language.notation.dtypes import expression_dtype, is_weak, operand_dtype, result_dtype
from taco_py.language.notation.functions.function_table import FACTORS, FUNCTIONS, LADDER
from taco_py.language.notation.nodes import Access, Call, Expr, Literal
from taco_py.language.notation.operators import ADD, DIV, MUL, NEG, SUB, Operator
from taco_py.language.notation.parser import parse_assignment

DTYPES = [
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "complex64", "complex128",
    )
]  # fmt: skip
a, b = Access("a", ()), Access("b", ())
numpy_2 = pytest.mark.skipif(
    int(np.__version__.partition(".")[0]) < 2, reason="NumPy 1 looks at the values of scalars"
)


def value_of(text: str) -> Expr:
    return parse_assignment(f"y = {text}").value


def numpys(operator: Operator, *args: Any) -> np.dtype[Any] | None:
    """The dtype NumPy gives the call, or None where it raises."""
    try:
        return np.asarray(operator.evaluate(*args)).dtype
    except TypeError:
        return None


def ours(call: Call, dtypes: dict[str, np.dtype[Any]]) -> np.dtype[Any] | None:
    try:
        return expression_dtype(call, dtypes)
    except OperandTypeError:
        return None


@pytest.mark.parametrize("operator", [ADD, SUB, MUL, DIV, NEG, *FACTORS, *LADDER[0][4:]], ids=str)
def test_operands_promote_as_in_numpy(operator: Operator) -> None:
    for left in DTYPES:
        for right in DTYPES:
            call = Call(operator, (a, b)[: operator.arity])
            args = (np.ones(1, left), np.ones(1, right))[: operator.arity]
            found = ours(call, {"a": left, "b": right})
            assert found == numpys(operator, *args), (left, right)


OTHERWISE = {("round", "bool"): "bool", ("angle", "bool"): "float32"}
"""Types of functions of truths that are not NumPy's."""


@pytest.mark.parametrize("name", [n for n, op in FUNCTIONS.items() if op.arity == 1])
def test_functions_have_the_types_of_numpys_and_scipys(name: str) -> None:
    """What NumPy computes in float16, of one byte, is computed in float32."""
    operator = FUNCTIONS[name]
    for dtype in DTYPES:
        found, wanted = (
            ours(Call(operator, (a,)), {"a": dtype}),
            numpys(operator, np.ones(1, dtype)),
        )
        if found is None:
            continue  # which a check of kinds is about
        if wanted == np.float16:
            wanted = np.dtype(np.float32)
        assert found == OTHERWISE.get((name, dtype.name), wanted), dtype


def test_error_functions_of_integers_are_of_float64() -> None:
    special = pytest.importorskip("scipy.special")
    for name, function in (("erf", special.erf), ("sigmoid", special.expit)):
        for dtype in DTYPES[:9]:
            found = expression_dtype(Call(FUNCTIONS[name], (a,)), {"a": dtype})
            assert found == function(np.ones(1, dtype)).dtype == np.float64


@numpy_2
@pytest.mark.parametrize("operator", [ADD, SUB, MUL, DIV], ids=str)
@pytest.mark.parametrize("value", [2, 2.0, 2j, True])
def test_literals_are_weak_as_in_numpy_2(operator: Operator, value: complex) -> None:
    for dtype in DTYPES:
        array, literal = np.ones(1, dtype), Literal(value)
        found = ours(Call(operator, (a, literal)), {"a": dtype})
        assert found == numpys(operator, array, value), dtype
        found = ours(Call(operator, (literal, a)), {"a": dtype})
        assert found == numpys(operator, value, array), dtype


EXPRESSIONS = [
    ("2", "int64"),
    ("2 * 2.0", "float64"),
    ("1 / 2", "float64"),
    ("2j", "complex128"),
    ("(1 / 3) * f", "float32"),
    ("2 * 3 * n", "int8"),
    ("n * 2 * 2.0", "float64"),
    ("n / 2", "float64"),
    ("f * n", "float32"),
    ("f + 2j", "complex64"),
    ("(n + u) * f", "float32"),
    ("(n + u) * 2", "int16"),
    ("-n", "int8"),
    ("sum(i, N[i])", "int8"),
    ("sum(i, N[i]) + 1", "int8"),
    ("t * t", "bool"),
    ("t + 1", "int64"),
    ("n * t", "int8"),
    ("n - 128", None),  # 128 is no int8
    ("n + -128", "int8"),
    ("n * 128", None),
    ("n / 300", "float64"),  # computed in float64, where 300 is a number
    ("u * -1", None),
    ("u - 1", "uint8"),
    ("n * (100 + 100)", None),
    ("t * 9223372036854775808", None),
    ("9223372036854775808", "uint64"),
    ("t - t", None),
    ("-t", None),
    ("t - 1", "int64"),
]
SCALARS = {
    "f": np.dtype("f4"), "n": np.dtype("i1"), "u": np.dtype("u1"), "t": np.dtype("?"),
    "N": np.dtype("i1"),
}  # fmt: skip


@numpy_2
@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_expression(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(OperandTypeError):
            expression_dtype(value_of(text), SCALARS)
    else:
        assert expression_dtype(value_of(text), SCALARS) == expected
    if "sum" not in text:
        arrays = {name: np.ones(1, dtype) for name, dtype in SCALARS.items()}
        try:
            numpys_dtype = np.asarray(eval(text, {}, arrays)).dtype
        except (TypeError, OverflowError):
            assert expected is None
        else:
            assert numpys_dtype == expected


def test_operand_dtype_is_where_the_operator_is_computed() -> None:
    less = Operator("less", "<", 2, "<", 0, evaluate=np.less)
    dtypes = {"a": np.dtype("i1"), "b": np.dtype("f4")}
    assert operand_dtype(Call(less, (a, b)), dtypes) == "float32"
    assert expression_dtype(Call(less, (a, b)), dtypes) == "bool"
    assert operand_dtype(Call(DIV, (a, a)), dtypes) == "float64"
    assert operand_dtype(Call(NEG, (a,)), dtypes) == "int8"


def test_a_literal_with_a_dtype_is_strong() -> None:
    zero = Literal(0, dtype="float64")
    assert expression_dtype(Call(ADD, (a, zero)), {"a": np.dtype("f4")}) == "float64"
    assert not is_weak(zero) and not is_weak(Call(ADD, (Literal(1), zero)))
    assert is_weak(value_of("-(2 + 1 / 3j)")) and not is_weak(value_of("2 * a"))


def test_result_dtype() -> None:
    plain, added = parse_assignment("y[i] = x[i] * 2"), parse_assignment("y[i] += x[i] * 2")
    f4, f8 = np.dtype("f4"), np.dtype("f8")
    assert result_dtype(plain, {"x": f4}) == f4
    assert result_dtype(added, {"x": f4}) == f4
    assert result_dtype(added, {"x": f8, "y": f4}) == f4
    assert result_dtype(plain, {"x": f8, "y": f4}) == f8


def test_messages() -> None:
    with pytest.raises(OperandTypeError) as caught:
        result_dtype(parse_assignment("y += x"), {"x": np.dtype("f8"), "y": np.dtype("i4")})
    assert str(caught.value) == (
        "Expected a right-hand side that can be added to y in its dtype int32, found dtype "
        "float64\n"
        "  y += x\n  ^^^^^^\nhint: convert y to float64 first"
    )
    with pytest.raises(OperandTypeError) as caught:
        expression_dtype(value_of("2 * (a - b)"), {"a": np.dtype("?"), "b": np.dtype("?")})
    assert str(caught.value) == (
        "Expected operands that sub is defined for, found dtype bool\n  y = 2 * (a - b)\n"
        "           ^^^^^\nhint: convert an operand first, for instance with A.astype(np.int8)"
    )
    with pytest.raises(OperandTypeError) as caught:
        expression_dtype(value_of("a * 300"), {"a": np.dtype("u1")})
    assert str(caught.value) == (
        "Expected a literal from 0 to 255 beside an operand of dtype uint8, found 300\n"
        "  y = a * 300\n      ^^^^^^^\n"
        "hint: convert the operand to a wider dtype, or write the literal with a decimal point"
    )
    with pytest.raises(OperandError) as missing:
        expression_dtype(value_of("a * c"), {"a": np.dtype("u1")})
    assert str(missing.value) == "Expected an operand named c, found a\n  y = a * c\n          ^"
    with pytest.raises(OperandTypeError, match="Expected numbers in a, found dtype object"):
        expression_dtype(value_of("a * 2"), {"a": np.dtype(object)})
