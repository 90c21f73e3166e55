"""NumPy's subscripts: the notation they mean, NumPy's results, and refusals where NumPy refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taco_py.language.diagnostics.errors import NotationError, OperandTypeError
from taco_py.language.notation.checks import check_assignment
from taco_py.language.notation.einsum import (
    Subscripts,
    drop_broadcast,
    parse_einsum,
    split_operands,
)
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.reduce import insert_reductions
from taco_py.language.oracle import evaluate_dense

MEANINGS: list[tuple[Subscripts, tuple[int, ...], str]] = [
    ("ij,j->i", (2, 1), "out[i] = sum(j, op0[i,j] * op1[j])"),
    ("ij,jk", (2, 2), "out[i,k] = sum(j, op0[i,j] * op1[j,k])"),
    ("ij,jk,kl->il", (2, 2, 2), "out[i,l] = sum(j, k, op0[i,j] * op1[j,k] * op2[k,l])"),
    ("ba", (2,), "out[a,b] = op0[b,a]"),
    ("aB", (2,), "out[B,a] = op0[a,B]"),
    ("ba->ba", (2,), "out[b,a] = op0[b,a]"),
    ("ii", (2,), "out = sum(i, op0[i,i])"),
    ("ii->i", (2,), "out[i] = op0[i,i]"),
    ("ij->", (2,), "out = sum(i, j, op0[i,j])"),
    (" i j , j -> i ", (2, 1), "out[i] = sum(j, op0[i,j] * op1[j])"),
    ("", (0,), "out = op0"),
    (",->", (0, 0), "out = op0 * op1"),
    (",i", (0, 1), "out[i] = op0 * op1[i]"),
    ("...", (2,), "out[_e0,_e1] = op0[_e0,_e1]"),
    ("...ij,jk", (3, 2), "out[_e0,i,k] = sum(j, op0[_e0,i,j] * op1[j,k])"),
    ("...i,...->i...", (3, 1), "out[i,_e0,_e1] = op0[_e0,_e1,i] * op1[_e1]"),
    ("i...->...", (2,), "out[_e0] = sum(i, op0[i,_e0])"),
    ("...ij->ij", (2,), "out[i,j] = op0[i,j]"),
    ("ij->...", (2,), "out = sum(i, j, op0[i,j])"),
    ("a...a->...", (3,), "out[_e0] = sum(a, op0[a,_e0,a])"),
    ([[0, 1], [1, 2]], (2, 2), "out[a,c] = sum(b, op0[a,b] * op1[b,c])"),
    ([[0, 1], [1], [0]], (2, 1), "out[a] = sum(b, op0[a,b] * op1[b])"),
    ([[1, 0]], (2,), "out[a,b] = op0[b,a]"),
    ([[27, 0], [0, 27]], (2,), "out[a,B] = op0[B,a]"),
    ([[Ellipsis, 0], [0, Ellipsis]], (2,), "out[a,_e0] = op0[_e0,a]"),
    ([np.array([0, 0])], (2,), "out = sum(a, op0[a,a])"),
]


@pytest.mark.parametrize(("subscripts", "orders", "text"), MEANINGS, ids=str)
def test_meaning(subscripts: Subscripts, orders: tuple[int, ...], text: str) -> None:
    assignment = parse_einsum(subscripts, orders)
    assert to_text(assignment) == text
    check_assignment(assignment)
    assert insert_reductions(assignment) is assignment


ERRORS: list[tuple[Subscripts, tuple[int, ...], str]] = [
    (
        "ij,jk->ikz",
        (2, 2),
        "Expected subscripts of the result that an operand has, found z\n"
        "  ij,jk->ikz\n           ^\n"
        "hint: the size of each dimension of the result comes from an operand",
    ),
    (
        "ij->iij",
        (2,),
        "Expected each subscript of the result once, found i again\n  ij->iij\n       ^",
    ),
    (
        "ij,jk",
        (2, 1),
        "Expected 1 subscript for operand 1, one a dimension, found 2\n  ij,jk\n     ^^\n"
        "hint: write one letter a dimension, or ... for those that all operands share",
    ),
    (
        "i",
        (2,),
        "Expected 2 subscripts for operand 0, one a dimension, found 1\n  i\n  ^\n"
        "hint: write one letter a dimension, or ... for those that all operands share",
    ),
    (
        "ij...",
        (1,),
        "Expected 1 subscript for operand 0, one a dimension, found 2\n  ij...\n  ^^^^^\n"
        "hint: write one letter a dimension, or ... for those that all operands share",
    ),
    (
        "ij,j",
        (2,),
        "Expected subscripts for 1 operand, found them for 2\n  ij,j\n     ^\n"
        "hint: commas separate the subscripts of one operand from the next's",
    ),
    (
        "ij",
        (2, 2),
        "Expected subscripts for 2 operands, found them for 1\n  ij\n  ^^\n"
        "hint: commas separate the subscripts of one operand from the next's",
    ),
    (
        "i1",
        (2,),
        "Expected letters, '...', ',' or '->', found '1'\n  i1\n   ^\nhint: subscripts are letters",
    ),
    (
        "i.j",
        (2,),
        "Expected letters, '...', ',' or '->', found '.'\n  i.j\n   ^\n"
        "hint: three dots stand for the remaining dimensions",
    ),
    (
        "ij->i->j",
        (2,),
        "Expected letters, '...', ',' or '->', found '-'\n  ij->i->j\n       ^\n"
        "hint: one -> separates the operands' subscripts from the result's",
    ),
    (
        "ij->i,j",
        (2,),
        "Expected letters, '...', ',' or '->', found ','\n  ij->i,j\n       ^\n"
        "hint: commas separate operands; there is one result",
    ),
    (
        "...i...",
        (3,),
        "Expected one ellipsis an operand, found another\n  ...i...\n      ^^^\n"
        "hint: an ellipsis stands for all dimensions that have no letter",
    ),
    (
        "...ij->ij",
        (3,),
        "Expected '...' in the subscripts of the result for the 1 dimension that the operands have "
        "there, found none\n  ...ij->ij\n         ^^\n"
        "hint: write ... there too, or give the dimensions letters to sum over them",
    ),
    (
        [[-1]],
        (1,),
        "Expected subscripts from 0 on, found -1\nhint: number the subscripts from 0",
    ),
    (
        [[0, 1], [2]],
        (2,),
        "Expected subscripts of the result that an operand has, found c\n"
        "hint: the size of each dimension of the result comes from an operand",
    ),
    (
        [[...], [...], [...]],
        (1,),
        "Expected subscripts for 1 operand, found them for 3\n"
        "hint: commas separate the subscripts of one operand from the next's",
    ),
]


@pytest.mark.parametrize(("subscripts", "orders", "message"), ERRORS, ids=str)
def test_message(subscripts: Subscripts, orders: tuple[int, ...], message: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_einsum(subscripts, orders)
    assert str(caught.value) == message
    if isinstance(subscripts, str):
        with pytest.raises(ValueError):
            np.einsum(subscripts, *(np.ones((2,) * order) for order in orders))


def test_number_of_operands() -> None:
    with pytest.raises(NotationError, match="at least one operand, found none"):
        parse_einsum("", ())
    for count in (64, 65, 1000):
        check_assignment(parse_einsum(",".join("i" * count), (1,) * count))


@pytest.mark.parametrize("subscript", [1.0, "a", True, None])
def test_subscripts_of_another_type_are_a_type_error(subscript: object) -> None:
    with pytest.raises(
        OperandTypeError, match="Expected integers or Ellipsis as subscripts, found"
    ):
        parse_einsum([[0, subscript]], (2,))
    with pytest.raises(TypeError):
        np.einsum(np.ones((2, 2)), [0, subscript])


def test_split_operands() -> None:
    assert split_operands(("ij,j", "A", "x")) == ("ij,j", ("A", "x"))
    assert split_operands((1, [0], 2, (1,))) == (((0,), (1,)), (1, 2))
    assert split_operands((1, [0], 2, (1,), [])) == (((0,), (1,), ()), (1, 2))
    assert split_operands((1, [0, ...])) == (((0, ...),), (1,))


@pytest.mark.parametrize(
    ("args", "kind", "message"),
    [
        ((), NotationError, "Expected subscripts and operands, found 0 arguments"),
        ((1,), NotationError, "Expected subscripts and operands, found 1 argument\n"),
        (("ij",), NotationError, "Expected operands after the subscripts, found none"),
        ((1, 2), OperandTypeError, "Expected a list of integers after an operand, found int"),
        ((1, "ij"), OperandTypeError, "Expected a list of integers after an operand, found str"),
    ],
)
def test_split_operands_refuses(args: tuple[object, ...], kind: type, message: str) -> None:
    with pytest.raises(kind) as caught:
        split_operands(args)
    assert str(caught.value).startswith(message)


def test_drop_broadcast() -> None:
    assignment = parse_einsum("...ij,...jk->...ik", (4, 3))
    shapes = {"op0": (1, 5, 2, 3), "op1": (1, 1, 4)}
    broadcast = drop_broadcast(assignment, shapes)
    assert to_text(broadcast.assignment) == ("out[_e0,_e1,i,k] = sum(j, op0[_e0,_e1,i,j] * op1[k])")
    assert broadcast.squeezed == (("op1", (0, 1)),)


def test_drop_broadcast_leaves_what_agrees_and_what_is_wrong() -> None:
    assignment = parse_einsum("ij,jk", (2, 2))
    for shapes in [{"op0": (1, 1), "op1": (1, 4)}, {"op0": (2, 3), "op1": (5, 4)}]:
        assert drop_broadcast(assignment, shapes).assignment is assignment
    diagonal = parse_einsum("ii", (2,))
    assert drop_broadcast(diagonal, {"op0": (1, 3)}).assignment is diagonal


# ---------------------------------------------------------------- against NumPy


def results(subscripts: Subscripts, arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
    """What the front end and the oracle make of an einsum."""
    assignment = parse_einsum(subscripts, [array.ndim for array in arrays])
    shapes = {f"op{k}": array.shape for k, array in enumerate(arrays)}
    broadcast = drop_broadcast(assignment, shapes)
    squeezed = dict(broadcast.squeezed)
    operands = {
        f"op{k}": np.squeeze(array, squeezed.get(f"op{k}", ())) for k, array in enumerate(arrays)
    }
    return evaluate_dense(broadcast.assignment, operands)


@st.composite
def einsums(draw: st.DrawFn) -> tuple[str, list[np.ndarray[Any, Any]]]:
    """A legal string with operands to it: sizes 0 to 3, some 1 where another operand has more."""
    letters = draw(st.permutations("abAB"))[:3]
    sizes = {letter: draw(st.integers(0, 3)) for letter in letters}
    ellipsis = draw(st.lists(st.integers(0, 3), max_size=2))
    terms, arrays = [], []
    for number in range(draw(st.integers(1, 3))):
        labels = draw(st.lists(st.sampled_from(letters), max_size=3))
        shape = [1 if labels.count(c) == 1 and draw(st.booleans()) else sizes[c] for c in labels]
        place, width = draw(st.integers(0, len(labels))), draw(st.integers(0, len(ellipsis)))
        dots = "..." if width or draw(st.booleans()) else ""
        shape[place:place] = ellipsis[len(ellipsis) - width :]
        terms.append("".join(labels[:place]) + dots + "".join(labels[place:]))
        arrays.append(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7 - number)
    present = sorted({c for term in terms for c in term if c != "."})
    output = draw(st.permutations(present))[: draw(st.integers(0, 3))]
    place = draw(st.integers(0, len(output)))
    explicit = "".join(output[:place]) + "..." + "".join(output[place:])
    return ",".join(terms) + draw(st.sampled_from(("", "->" + explicit))), arrays


@given(einsums())
@example(("i,i", [np.arange(1), np.arange(0)]))
def test_results_are_numpys(problem: tuple[str, list[np.ndarray[Any, Any]]]) -> None:
    subscripts, arrays = problem
    expected = np.einsum(subscripts, *arrays)
    found = results(subscripts, arrays)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@given(
    st.text(alphabet="ij.,-> K1", max_size=9), st.lists(st.integers(0, 3), min_size=1, max_size=2)
)
def test_strings_are_refused_where_numpy_refuses(text: str, orders: list[int]) -> None:
    arrays = [np.arange(2**order).reshape((2,) * order) for order in orders]
    try:
        expected = np.einsum(text, *arrays)
    except ValueError:
        with pytest.raises(NotationError):
            parse_einsum(text, orders)
    else:
        np.testing.assert_array_equal(results(text, arrays), expected)


@pytest.mark.parametrize(
    "args", [([0, 1], [1, 2]), ([0, 1], [1, 2], [2, 0]), ([3, ...], [..., 3], [...])]
)
def test_interleaved_form_is_numpys(args: tuple[Any, ...]) -> None:
    arrays = [np.arange(6).reshape(2, 3), np.arange(6, 12).reshape(3, 2)]
    interleaved = [arrays[0], args[0], arrays[1], args[1], *args[2:]]
    subscripts, operands = split_operands(interleaved)
    assert operands[0] is arrays[0] and operands[1] is arrays[1]
    np.testing.assert_array_equal(results(subscripts, arrays), np.einsum(*interleaved))
