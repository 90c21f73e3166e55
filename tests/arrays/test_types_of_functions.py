"""Types and values of all of NumPy's functions that Tensors have, of every type of elements.

The functions are those of the project's tables: a new one is swept with them. What differs from
NumPy on purpose stands in `DIFFERENT`, with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.arrays.filled_like import LIKE
from taco_py.arrays.numpy_functions import FUNCTIONS
from taco_py.arrays.spelling import INFIX, PREFIX, arguments
from taco_py.language.notation.functions.function_table import ALIASES, COMPOSED
from taco_py.language.notation.functions.function_table import FUNCTIONS as OPERATORS
from tests.arrays.operands import elements

DTYPES = (
    "bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
UFUNCS = sorted(
    name
    for name in {*INFIX, *PREFIX, *ALIASES, *OPERATORS, *COMPOSED}
    if isinstance(getattr(np, name, None), np.ufunc)
)
CALLS: dict[str, Callable[..., Any]] = {
    "clip": lambda x: np.clip(x, x.dtype.type(0), x.dtype.type(1)),
    "where": lambda x: np.where(x, x, x.dtype.type(1)),
    "matmul": lambda x: x @ x.T,
    "dot": lambda x: np.dot(x, x.T),
    "tensordot": lambda x: np.tensordot(x, x, ([0, 1], [0, 1])),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "norm": lambda x: np.linalg.norm(x),
    "concatenate": lambda x: np.concatenate([x, x]),
    "concat": lambda x: np.concat([x, x], 1),
    "stack": lambda x: np.stack([x, x]),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[:1])[1],
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "reshape": lambda x: np.reshape(x, (3, -1)),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "expand_dims": lambda x: np.expand_dims(x, 1),
    "tile": lambda x: np.tile(x, 2),
    "roll": lambda x: np.roll(x, 1),
    "repeat": lambda x: np.repeat(x, 2),
    "take": lambda x: np.take(x, [1, 0], 0),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[1, 0]]), 1),
    "searchsorted": lambda x: np.searchsorted(np.array([0, 1, 2], x.dtype), x),
    "array_equal": lambda x: np.array_equal(x, x),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=0, include_initial=True),
    "cumulative_prod": lambda x: np.cumulative_prod(x, axis=0),
    "unstack": lambda x: np.unstack(x)[0],
    "nonzero": lambda x: np.stack(np.nonzero(x)),
    "save": lambda x: x,
    **{
        name: lambda x, name=name: getattr(np, name)([x, x])
        for name in ("vstack", "hstack", "column_stack", "block")
    },
    **{
        name: lambda x, name=name: np.stack(getattr(np, name)(x, 2)[-1:])
        for name in ("array_split", "hsplit")
    },
    "split": lambda x: np.split(x, [1, 2])[1],
    "vsplit": lambda x: np.vsplit(x, 3)[2],
    "meshgrid": lambda x: np.stack(np.meshgrid(x[0], x[1])),
    "inner": lambda x: np.inner(x, x),
    "vdot": lambda x: np.vdot(x, x),
    "vecdot": lambda x: np.vecdot(x, x),
    "kron": lambda x: np.kron(x, x[0]),
    "cross": lambda x: np.cross(x[:, :3], x[:, 1:]),
    "multi_dot": lambda x: np.linalg.multi_dot([x, x.T, x]),
    "isclose": lambda x: np.isclose(x, x),
    "allclose": lambda x: np.allclose(x, x),
    "polyval": lambda x: np.polyval([1, 2], x),
}
"""How functions are called that take more than an array."""

Difference = tuple[Callable[[str, str, str], bool], str]
"""Of a name, a type and a format: whether a report is meant, and the reason."""

DIFFERENT: tuple[Difference, ...] = (
    (
        lambda name, dtype, report: dtype[0] == "c" and report.startswith("refused"),
        "complex numbers have no order, and only the functions that texts have of them",
    ),
    (
        lambda name, dtype, report: report == "type float32, NumPy's float16",
        "functions of one byte are computed in 32 bits",
    ),
    (
        lambda name, dtype, report: (
            name in ("round", "around", "rint")
            and dtype[:3] in ("boo", "int", "uin")
            and report.startswith("type ")
        ),
        "whole numbers and truths are rounded to themselves, in their type",
    ),
    (
        lambda name, dtype, report: (
            name in ("divide", "true_divide", "floor_divide", "mod", "remainder")
            and "nan" in report
        ),
        "what is not stored is 0 over anything",
    ),
    (
        lambda name, dtype, report: name == "argsort" and "dense" in report,
        "positions for all elements are dense",
    ),
    (
        lambda name, dtype, report: name in ("pow", "power") and "negative integer" in report,
        "whole numbers have powers below 0",
    ),
    (
        lambda name, dtype, report: (
            name in ("pow", "power") and dtype == "bool" and report.startswith("refused")
        ),
        "truths have no powers",
    ),
    (
        lambda name, dtype, report: name in ("positive", "square") and dtype == "bool",
        "truths stay truths",
    ),
    (lambda name, dtype, report: name == "unique_values", "they are sorted here"),
)
"""Where Tensors differ from NumPy's arrays on purpose (docs/tensors.md, docs/functions.md)."""


def operand(dtype: str) -> Any:
    """Zeros, ones and other numbers that every function takes; negative ones where there are."""
    x = np.array([[0, 1, 2, 0], [3, 0, 1, 0], [0, 0, 0, 5]])
    x = np.where(x == 3, -2, x) if dtype[0] in "ifc" else x
    return (x * (1 + 0.5j) if dtype[0] == "c" else x).astype(dtype)


def compared(call: Callable[[Any], Any], x: Any, form: str) -> str:
    """Say how a function of a Tensor differs from NumPy's of an array; "" where it does not."""
    with np.errstate(all="ignore"):
        try:
            wanted = np.asarray(call(x))
        except (TypeError, ValueError) as error:
            wanted = error
        try:
            found = call(tp.tensor(x, format=form))
        except tp.TacoError as error:
            return "" if isinstance(wanted, Exception) else f"refused: {error}"
    if isinstance(wanted, Exception):
        return f"NumPy refuses: {wanted}"
    array = np.asarray(elements(found))
    if array.dtype != wanted.dtype:
        return f"type {array.dtype}, NumPy's {wanted.dtype}"
    near = 4e-3 if array.dtype == np.float16 else 2e-6
    same = np.allclose(array, wanted, rtol=near, atol=near, equal_nan=True)
    return "" if array.shape == wanted.shape and same else f"{array}, NumPy's {wanted}"


def check(name: str, dtype: str, call: Callable[[Any], Any]) -> None:
    x = operand(dtype)
    for form in ("dd", "ss"):
        report = compared(call, x, form)
        if report and not any(meant(name, dtype, report) for meant, _ in DIFFERENT):
            raise AssertionError(f"{name} of {dtype} in {form}: {report}")


@pytest.mark.rotating(40)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UFUNCS)
def test_functions_of_elements(name: str, dtype: str) -> None:
    function, count = getattr(np, name), arguments(name)
    check(name, dtype, lambda x: function(*[x] * count))


@pytest.mark.rotating(12)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {*LIKE}))
def test_functions_of_arrays(name: str, dtype: str) -> None:
    check(name, dtype, CALLS.get(name) or (lambda x: getattr(np, name)(x)))


def test_choices_and_places() -> None:
    for x in (np.array([[1.5, 0.0], [0.0, np.nan]]), np.array([[True, False], [False, True]])):
        t = tp.tensor(x, format="ss")
        for a, b in ((1, 0), (1.0, 0), (True, False), (np.float32(1), 0.0), (np.int8(1), 0)):
            found, wanted = np.where(t, a, b), np.where(x, a, b)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(elements(found), wanted)
        for source, target in ((0, 2), (-3, 0), ((0, 1), (0, 2)), ((0, 0), (0, 1)), (2, 0)):
            with pytest.raises(tp.DimensionError):
                np.moveaxis(t, source, target)
        with pytest.raises(tp.DimensionError):
            np.swapaxes(t, 0, 2)


@pytest.mark.parametrize("form", ["dd", "ss"])
def test_reductions_of_no_elements(form: str) -> None:
    for shape, axis in (((0, 3), 0), ((0, 3), None), ((3, 0), 1)):
        x = np.zeros(shape, np.float32)
        t = tp.tensor(x, format=form)
        for name in ("sum", "prod", "mean", "var", "std", "any", "all"):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                found = np.asarray(elements(getattr(np, name)(t, axis=axis)))
                wanted = np.asarray(getattr(np, name)(x, axis=axis))
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
        for name in ("min", "max", "argmin", "argmax"):
            with pytest.raises(tp.TacoError):
                getattr(np, name)(t, axis=axis)


def test_entries_of_equal_coordinates_are_added_before_a_conversion() -> None:
    coords = np.array([[0, 0, 1, 1], [1, 1, 0, 0]])
    for values, dtype in (
        (np.array([100, 100, 1, 2], np.int8), np.int64), (np.array([0.5, 0.6, 1, -1]), np.int64),
        (np.array([1, -1, 2.5, -2.5]), bool), (np.array([True, True, True, False]), np.int8),
    ):  # fmt: skip
        listed = sp.coo_array((values, coords), shape=(2, 2))
        rows = sp.csr_array((values, coords[1], np.array([0, 2, 4])), shape=(2, 2))
        for t in (tp.tensor(listed), tp.tensor(rows)):
            wanted = t.to_numpy().astype(dtype)
            np.testing.assert_array_equal(t.astype(dtype).to_numpy(), wanted)
            fused = tp.fuse(lambda t, dtype=dtype: t.astype(dtype))(t)
            np.testing.assert_array_equal(elements(fused), wanted)


def test_sums_in_other_types_and_arrays_of_one_element() -> None:
    x = np.array([[1.5, 0, 2], [0, 0, 3]])
    t = tp.tensor(x, format="ds")
    for name in ("sum", "prod", "mean"):
        for dtype in ("float32", "int64", "bool", "complex64"):
            found, wanted = getattr(t, name)(0, dtype=dtype), getattr(x, name)(0, dtype=dtype)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(elements(found), wanted)
    for one in (np.ones((1, 1)), np.ones(1), np.ones((1, 1), np.float32)):
        found = t - one
        assert found.fill_value == -1
        np.testing.assert_array_equal(found.to_numpy(), x - one)
