"""Text to notation: each rule of the grammar, each message with its carets, and no crash."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import taco_py as tp
from taco_py.language.diagnostics.errors import NotationError, OperandTypeError
from taco_py.language.notation.checks import MAX_DEPTH
from taco_py.language.notation.long_chains import LONG
from taco_py.language.notation.nodes import (
    Access,
    Assignment,
    Call,
    Expr,
    Literal,
    Reduce,
    Subscript,
)
from taco_py.language.notation.operators import ADD, DIV, MUL, NEG, SUB, Operator
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.tree import walk
from tests.notation import strategies

A = Access("A", ("i", "j"))
X = Access("x", ("j",))
ROW = Subscript((("i", 1),))
P = Access("p", ("i",), None, (ROW, Subscript()))
a, b, c, d = (Access(name, ()) for name in "abcd")


def call(operator: Operator, *args: Expr) -> Call:
    return Call(operator, args)


EXPRESSIONS = [
    ("A[i,j]", A),
    ("A(i,j)", A),
    (" A [ i , j ]\n", A),
    ("a", a),
    ("a[]", a),
    ("a()", a),
    ("(((a)))", a),
    ("2", Literal(2)),
    ("007", Literal(7)),
    ("18446744073709551615", Literal(2**64 - 1)),
    ("2.5", Literal(2.5)),
    ("2.", Literal(2.0)),
    (".5", Literal(0.5)),
    ("1e-3", Literal(0.001)),
    ("2j", Literal(2j)),
    ("1.5e2J", Literal(150j)),
    ("a + b - c", call(SUB, call(ADD, a, b), c)),
    ("a - (b - c)", call(SUB, a, call(SUB, b, c))),
    ("a / b * c", call(MUL, call(DIV, a, b), c)),
    ("A[i+0,1*j]", A),
    (
        "A[i,2*(j+1)-3*i]",
        Access("A", ("i", "j"), None, (ROW, Subscript((("j", 2), ("i", -3)), (), 2))),
    ),
    ("A[j+i-j,j]", A),
    ("A[0]", Access("A", (), None, (Subscript(constant=0),))),
    ("a[-i+p[i,0]-1]", Access("a", ("i",), None, (Subscript((("i", -1),), ((P, 1),), -1),))),
    ("a + b * c", call(ADD, a, call(MUL, b, c))),
    ("(a + b) * c", call(MUL, call(ADD, a, b), c)),
    ("-a * b", call(MUL, call(NEG, a), b)),
    ("a * -b", call(MUL, a, call(NEG, b))),
    ("a - -b", call(SUB, a, call(NEG, b))),
    ("-+-a", call(NEG, call(NEG, a))),
    ("+a", a),
    ("-(a + b)", call(NEG, call(ADD, a, b))),
    ("-2", call(NEG, Literal(2))),
    ("sum(j, A[i,j] * x[j])", Reduce(ADD, "j", call(MUL, A, X))),
    ("sum(i, j, A[i,j])", Reduce(ADD, "i", Reduce(ADD, "j", A))),
    ("sum((i, j), A[i,j])", Reduce(ADD, "i", Reduce(ADD, "j", A))),
    ("sum((j), x(j))", Reduce(ADD, "j", X)),
    ("sum(j, x[j] + a) * b", call(MUL, Reduce(ADD, "j", call(ADD, X, a)), b)),
    ("sum(j, a)", Reduce(ADD, "j", a)),
    ("sum", Access("sum", ())),
    ("sum()", Access("sum", ())),
    ("sum[j]", Access("sum", ("j",))),
    ("sum(j)", Access("sum", ("j",))),
    ("sum[i,j]", Access("sum", ("i", "j"))),
    ("summit(i, j)", Access("summit", ("i", "j"))),
]


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_expression(text: str, expected: Expr) -> None:
    assert parse_assignment(f"y = {text}") == Assignment(Access("y", ()), expected)


def test_assignments() -> None:
    assert parse_assignment("y[i]=a") == Assignment(Access("y", ("i",)), a)
    assert parse_assignment("y(i) += a") == Assignment(Access("y", ("i",)), a, ADD)


def test_literals_of_different_types_differ() -> None:
    values = [1, 1.0, True, 1 + 0j, 0.0, -0.0, 0, False]
    assert len({Literal(value) for value in values}) == len(values)
    assert Literal(float("nan")) == Literal(float("nan"))
    assert Literal(0) != Literal(0, dtype="float64")


def test_equal_assignments_are_equal_and_hash_equal_whatever_their_spelling() -> None:
    one, other = parse_assignment("y(i)=A(i,j)*x(j)"), parse_assignment("y[i] = (A[i,j]) * x[j]")
    assert one == other and hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one


SPANS = [
    ("y = a + b * (c - d)", "a + b * (c - d)", lambda value: value),
    ("y = a + b * (c - d)", "b * (c - d)", lambda value: value.args[1]),
    ("y = a + b * (c - d)", "c - d", lambda value: value.args[1].args[1]),
    ("y = (a + b) * c", "(a + b) * c", lambda value: value),
    ("y = 2 * A[i, j] ", "A[i, j]", lambda value: value.args[1]),
    ("y = 2 * A[i, j] ", "2", lambda value: value.args[0]),
    ("y = a*-b", "-b", lambda value: value.args[1]),
    ("y = sum(j, x[j]) ", "sum(j, x[j])", lambda value: value),
]


@pytest.mark.parametrize(("text", "part", "select"), SPANS)
def test_spans(text: str, part: str, select: object) -> None:
    span = select(parse_assignment(text).value).span  # type: ignore[operator]
    assert text[span.start : span.stop] == part


ERRORS = [
    (
        "",
        "Expected the name of the result, found the end of the text\n  \n  ^\n"
        'hint: an example of the notation is "y[i] = A[i,j] * x[j] + 2.5 * b[i]"',
    ),
    (
        "A[i,j] * x[j]",
        "Expected '=' or another assignment after A, found '*'\n  A[i,j] * x[j]\n         ^\n"
        "hint: begin with the result, as in y[i] = A[i,j] * x[j]",
    ),
    (
        "y -= x",
        "Expected '=' or another assignment after y, found '-='\n  y -= x\n    ^^\n"
        "hint: write += and negate the right-hand side; tp.program takes -=",
    ),
    (
        "y == x",
        "Expected '=' or another assignment after y, found '=='\n  y == x\n    ^^\n"
        "hint: an assignment has one equals sign",
    ),
    (
        "y = a = b",
        "Expected an operator or the end of the text, found '='\n  y = a = b\n        ^\n"
        "hint: one assignment at a time",
    ),
    (
        "y = 2x",
        "Expected an operator or the end of the text, found 'x'\n  y = 2x\n       ^\n"
        "hint: write * for a product",
    ),
    (
        "y = (a b)",
        "Expected an operator or ')', found 'b'\n  y = (a b)\n         ^\n"
        "hint: write * for a product",
    ),
    (
        "y = A[i][j]",
        "Expected an operator or the end of the text, found '['\n  y = A[i][j]\n          ^\n"
        "hint: write all indices in one pair of brackets, as in A[i,j]",
    ),
    (
        "y = sqr(x[i])",
        "Expected a function, found sqr\n  y = sqr(x[i])\n      ^^^\n"
        "hint: did you mean sqrt? near are square too; docs/functions.md lists functions, and "
        'tp.function("sqr", …) makes one',
    ),
    (
        "y = hypot(x[i])",
        "Expected 2 arguments of hypot, found 1\n  y = hypot(x[i])\n      ^^^^^^^^^^^\n"
        "hint: write it as in hypot(x[i], y[i])",
    ),
    (
        "y = exp()",
        "Expected 1 argument of exp, found none\n  y = exp()\n      ^^^^^\n"
        "hint: write it as in exp(x[i])",
    ),
    (
        "y = np.exp(x[i])",
        "Expected a name, a number, brackets or one of + - * / = +=, found '.'\n"
        "  y = np.exp(x[i])\n        ^\n"
        "hint: NumPy's functions go by their names alone, as in exp(x[i])",
    ),
    (
        "y[i] /= x[i]",
        "Expected '=' or another assignment after y, found '/='\n  y[i] /= x[i]\n       ^^\n"
        "hint: divide by *= of 1 over it; assignments accumulate by +=, *=, |=, ^=, &=, min=, max=",
    ),
    (
        "y[i] **= x[i]",
        "Expected '=' or another assignment after y, found '**'\n  y[i] **= x[i]\n       ^^\n"
        "hint: assignments accumulate by +=, *=, |=, ^=, &=, min=, max=, whose order does not "
        "matter",
    ),
    (
        "y[i] hypot= A[i,j]",
        "Expected an associative and commutative function with an identity to reduce by, found "
        "hypot, which is none\n  y[i] hypot= A[i,j]\n       ^^^^^\n"
        "hint: the reductions are sum, prod, min, max, any, all, count, mean, var, argmin, argmax; "
        "hypot of the number j of an index is added up by sum(j, hypot(j, …))",
    ),
    (
        "y[i] = fmin(j, A[i,j])",
        "Expected an associative and commutative function with an identity to reduce by, found "
        "fmin, which is none\n  y[i] = fmin(j, A[i,j])\n         ^^^^\n"
        "hint: the reductions are sum, prod, min, max, any, all, count, mean, var, argmin, argmax; "
        "fmin of the number j of an index is added up by sum(j, fmin(j, …))",
    ),
    (
        "y[i] sum= A[i,j]",
        "Expected a function of two numbers before the equals sign, found sum\n"
        "  y[i] sum= A[i,j]\n       ^^^\n"
        "hint: write y[i] = sum(j, …), or accumulate by +=, *=, min= or max=",
    ),
    (
        "y[i] = mean(x[i])",
        "Expected an index to reduce by mean, found i, which the left-hand side or a reduction "
        "around it has\n  y[i] = mean(x[i])\n         ^^^^^^^^^^\n"
        "hint: an index that stands here alone is reduced, as j in y[i] = mean(A[i,j])",
    ),
    (
        "y = a < b < c",
        "Expected one comparison, found '<'\n  y = a < b < c\n            ^\n"
        "hint: write two of them as in (a[i] < b[i]) & (b[i] < c[i])",
    ),
    ("y = a)", "Expected an operator or the end of the text, found ')'\n  y = a)\n       ^"),
    (
        "y = a +",
        "Expected a tensor, a number or '(', found the end of the text\n  y = a +\n         ^",
    ),
    ("y = a * / b", "Expected a tensor, a number or '(', found '/'\n  y = a * / b\n          ^"),
    ("y = ()", "Expected a tensor, a number or '(', found ')'\n  y = ()\n       ^"),
    (
        "y = A[i",
        "Expected ']' for this '[', found the end of the text\n  y = A[i\n       ^\n"
        "hint: close it with ']'",
    ),
    ("y = A[i)", "Expected ',' or ']', found ')'\n  y = A[i)\n         ^"),
    ("y = A[,i]", "Expected the name of an index, found ','\n  y = A[,i]\n        ^"),
    ("y = A[i,]", "Expected the name of an index, found ']'\n  y = A[i,]\n          ^"),
    (
        "y = A[i/2]",
        "Expected ',' or ']', found '/'\n  y = A[i/2]\n         ^\n"
        "hint: a subscript is a sum of whole multiples, as in 2*i + k - 1 or p[i] + 1",
    ),
    (
        "y = A[i*j]",
        "Expected a whole multiple of an index, found a product of two\n  y = A[i*j]\n         ^\n"
        "hint: a subscript is a sum of whole multiples, as in 2*i + k - 1 or p[i] + 1; if it was "
        "meant to stand behind the brackets, close them before it",
    ),
    (
        "y = A[1.5*i]",
        "Expected a whole number in a subscript, found '1.5'\n  y = A[1.5*i]\n        ^^^\n"
        "hint: a subscript is a sum of whole multiples, as in 2*i + k - 1 or p[i] + 1",
    ),
    (
        "y = A[p(i)]",
        "Expected ',' or ']', found '('\n  y = A[p(i)]\n         ^\n"
        "hint: numbers that an operand holds are written with square brackets, as in A[p[i],j]",
    ),
    (
        "y = A[(i+1]",
        "Expected an operator or ')', found ']'\n  y = A[(i+1]\n            ^\n"
        "hint: a subscript is a sum of whole multiples, as in 2*i + k - 1 or p[i] + 1",
    ),
    (
        "y = A[9223372036854775807*i]",
        "Expected a subscript of at most 62 bits, found a larger number\n"
        "  y = A[9223372036854775807*i]\n        ^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: no operand has such a position",
    ),
    (
        "y = A(i,0)",
        "Expected the name of an index, found '0'\n  y = A(i,0)\n          ^\n"
        "hint: write it in square brackets, as in A[i+1,0] or A[p[i],j]",
    ),
    (
        "y = sum(i, x[i], 3)",
        "Expected an operator or ')', found ','\n  y = sum(i, x[i], 3)\n                 ^\n"
        "hint: a sum names its indices first, as in sum(i, j, A[i,j] * B[i,j])",
    ),
    (
        "y = sum((), a)",
        "Expected an index to sum over, found ')'\n  y = sum((), a)\n           ^\n"
        "hint: a sum names its indices first, as in sum(i, j, A[i,j] * B[i,j])",
    ),
    (
        "y = a @ b",
        "Expected a name, a number, brackets or one of + - * / = +=, found '@'\n  y = a @ b\n"
        "        ^\nhint: write the sum with indices, as in y[i] = A[i,j] * x[j]",
    ),
    (
        "é = a",
        "Expected a name, a number, brackets or one of + - * / = +=, found 'é'\n  é = a\n  ^\n"
        "hint: names consist of the letters a-z and A-Z, digits and underscores",
    ),
    (
        "y = a\n  + b $ c",
        "Expected a name, a number, brackets or one of + - * / = +=, found '$'\n    + b $ c\n"
        '        ^\nhint: an example of the notation is "y[i] = A[i,j] * x[j] + 2.5 * b[i]"',
    ),
    (
        "y = 1e999",
        "Expected a number that fits 64 bits, found 1e999\n  y = 1e999\n      ^^^^^\n"
        "hint: write a large number as a floating-point one below 1.8e308",
    ),
    (
        "y = 18446744073709551616",
        "Expected a number that fits 64 bits, found 18446744073709551616\n"
        "  y = 18446744073709551616\n      ^^^^^^^^^^^^^^^^^^^^\n"
        "hint: write a large number as a floating-point one below 1.8e308",
    ),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=[text for text, _ in ERRORS])
def test_message(text: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_assignment(text)
    assert str(caught.value) == message


def test_what_is_not_text_is_a_type_error() -> None:
    with pytest.raises(OperandTypeError, match="as a string, found bytes"):
        parse_assignment(b"y = x")  # type: ignore[arg-type]


@pytest.mark.parametrize("nest", ["({})", "sum(i, {})", "-{}", "a + ({})", "a * ({})"])
def test_depth_is_limited_by_a_message(nest: str) -> None:
    def nested(depth: int) -> str:
        text = "x[i]"
        for _ in range(depth):
            text = nest.format(text)
        return f"y[i] = {text}"

    within = parse_assignment(nested(MAX_DEPTH - 1))
    # what the depth is limited for: the passes and the dataclasses recurse
    assert within == parse_assignment(nested(MAX_DEPTH - 1)) and hash(within) == hash(within)
    for depth in (MAX_DEPTH + 1, 5000):
        with pytest.raises(NotationError, match=f"nested at most {MAX_DEPTH} deep"):
            parse_assignment(nested(depth))


@given(st.one_of(st.text(), strategies.token_soup, strategies.almost_assignments))
@example("y = " + "9" * 5000)
@example("y = 0x10")
@example("\ud800")
@example("y[i] = sum(i,")
@example("y = ٣")
def test_no_text_crashes_the_parser(text: str) -> None:
    try:
        parsed = parse_assignment(text)
    except NotationError as error:
        assert error.span is not None
        assert 0 <= error.span.start < error.span.stop <= len(text) + 1
        assert str(error).startswith("Expected ")
    else:
        assert isinstance(parsed, Assignment)


@pytest.mark.parametrize("count", [63, 64, 65, 66, 101, 300])
@pytest.mark.parametrize("signs", ["+", "-", "+-", "--+"])
def test_sums_may_have_any_number_of_terms(count: int, signs: str) -> None:
    """Many terms are grouped as a balanced tree, with the value of the text."""
    numbers = np.random.default_rng(count).integers(0, 100, count)
    chain = [f"{signs[k % len(signs)]} x{k}" for k in range(1, count)]
    text = f"s = x0 {' '.join(chain)}"
    operands = {f"x{k}": np.array(number) for k, number in enumerate(numbers)}
    expected = eval(text.partition("=")[2], {}, {k: int(v) for k, v in operands.items()})
    assert tp.evaluate_dense(text, operands) == expected
    depth = max(depth for _, depth in walk(parse_assignment(text).value))
    assert depth <= max(LONG + 1, 10)
