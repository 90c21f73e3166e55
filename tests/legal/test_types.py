"""What types allow: asked of NumPy's arithmetic, over all types and all pairs of types."""

from __future__ import annotations

import doctest
import inspect
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from codegen.libraries.blas_routines import GEMM
from taco_py.language.diagnostics.errors import NumberOverflowError
from taco_py.language.legal import types
from taco_py.language.legal.types import (
    bounds_literals,
    computes_exactly,
    converts_on_reading,
    divides,
    has_matrix_kernels,
    has_special_values,
    is_complex,
    is_real,
    negates,
    product_wraps_alone,
    rounds,
    sum_may_widen,
    sum_wraps_alone,
)
from taco_py.language.notation.dtypes import expression_dtype
from tests.problems import assignment

TYPES = tuple(
    map(
        np.dtype,
        [
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float32",
            "float64",
            "complex64",
            "complex128",
        ],
    )
)
PAIRS = tuple(product(TYPES, TYPES))
WIDER = tuple((own, whole) for own, whole in PAIRS if np.promote_types(own, whole) == whole)
SEEDS = range(20)
Type = np.dtype[Any]
Array = np.ndarray[Any, Any]

every_type = pytest.mark.parametrize("type", TYPES, ids=str)
every_pair = pytest.mark.parametrize(("own", "whole"), PAIRS, ids=str)
every_wider = pytest.mark.parametrize(("own", "whole"), WIDER, ids=str)


def values(type: Type, seed: int, most: float = 1e12) -> Array:
    """Random numbers of a type: small ones, and ones as large as it has, but for `most`."""
    rng = np.random.default_rng(seed)
    size = 50
    if type.name == "bool":
        return rng.random(size) < 0.7
    try:
        limits = np.iinfo(type)
    except ValueError:
        real, imaginary = rng.normal(size=(2, size)) * most ** rng.random(size)
        has_both = np.can_cast(np.complex64, type)
        return (real + 1j * imaginary if has_both else real).astype(type)
    low, high = max(limits.min, -int(most)), min(limits.max, int(most))
    extremes = np.array([low, high, high, 1, 0], type)
    return np.concatenate([rng.integers(low, high, size - 5, type, endpoint=True), extremes])


def differs(left: Array, right: Array, digits: float = 1e-5) -> bool:
    """Whether numbers differ by more than rounding in any place."""
    exact = np.clongdouble
    left, right = left.astype(exact), right.astype(exact)
    return bool(np.any(np.abs(left - right) > digits * (np.abs(left) + np.abs(right))))


def ever(check: Callable[[], bool]) -> bool:
    """The answer of a check, False where an operator is not defined."""
    with np.errstate(all="ignore"):
        try:
            return check()
        except TypeError:
            return False


# ---------------------------------------------------------------- one type


@every_type
def test_exact_types_add_up_and_multiply_alike_in_any_order(type: Type) -> None:
    def alike(seed: int) -> bool:
        terms = values(type, seed)
        return all(
            each.accumulate(terms, dtype=type)[-1] == each.accumulate(terms[::-1], dtype=type)[-1]
            for each in (np.add, np.multiply)
        )

    assert ever(lambda: all(map(alike, SEEDS))) == computes_exactly(type)


@every_type
def test_a_sum_that_is_rounded_does_not_give_its_term_back(type: Type) -> None:
    def loses() -> bool:
        a, b = values(type, 1), values(type, 2)
        return bool(np.any((a + b) - b != a))

    assert ever(loses) == rounds(type)


@every_type
def test_special_values_times_zero_are_not_zero(type: Type) -> None:
    def is_special() -> bool:
        largest = np.abs(values(type, 1)).max()
        for _ in range(12):
            largest = largest * largest
        return bool(type.type(0) * largest != 0)

    assert ever(is_special) == has_special_values(type)


@every_type
def test_types_that_divide_hold_their_quotients(type: Type) -> None:
    one = np.ones(1, type)
    assert (np.true_divide(one, one).dtype == type) == divides(type)


@every_type
def test_types_that_negate_have_a_negative(type: Type) -> None:
    def is_negative() -> bool:
        a, b = values(type, 1), values(type, 2)
        return bool(np.all(np.negative(a) * b == np.negative(a * b)))

    assert ever(is_negative) == negates(type)


def refuses(type: Type, literal: int) -> bool:
    """Whether a literal may not be multiplied by an operand of a type."""
    try:
        expression_dtype(assignment(f"y[i] = a[i] * {literal}").value, {"a": type})
    except NumberOverflowError:
        return True
    return False


@every_type
def test_types_that_bound_literals_refuse_one_just_beyond_them(type: Type) -> None:
    try:
        limit = int(np.iinfo(type).max)
    except ValueError:  # of a boolean, and of none
        limit = 1
    beyond = [literal for literal in (-1, limit + 1) if literal < 2**64]
    assert any(refuses(type, literal) for literal in beyond) == bounds_literals(type)


def root_of_minus_one(type: Type) -> Any:
    """The square root of -1 in a type, None where it has none by itself."""
    with np.errstate(all="ignore"):
        try:
            root = np.sqrt(np.negative(np.ones(1, type)))
        except TypeError:
            return None
    return root[0] if root.dtype == type else None


@every_type
def test_minus_one_has_no_root_in_real_types_and_one_in_complex_types(type: Type) -> None:
    root = root_of_minus_one(type)
    assert (root is not None and bool(np.isnan(root))) == is_real(type)
    assert (root is not None and not np.isnan(root)) == is_complex(type)


@every_type
def test_a_library_multiplies_matrices_of_types_with_matrix_kernels(type: Type) -> None:
    assert (type.name in GEMM) == has_matrix_kernels(type)


# ---------------------------------------------------------------- pairs


def changed_alone(operator: np.ufunc, own: Type, whole: Type, most: float) -> bool:
    """Whether what an operator gives in a type differs from what it gives in another one."""

    def check(seed: int) -> bool:
        a, b = values(own, seed, most), values(own, seed + 100, most)
        alone = operator(a, b, dtype=own).astype(whole)
        return differs(alone, operator(a.astype(whole), b.astype(whole), dtype=whole))

    with np.errstate(all="ignore"):
        return any(map(check, SEEDS))


def as_far_as_both_hold(own: Type, most: float) -> float:
    """The largest numbers to try: all of an integer type's, and `most` of a rounded one."""
    return most if rounds(own) else 2.0**64


@every_wider
def test_sums_that_wrap_alone_differ_from_those_of_a_wider_type(own: Type, whole: Type) -> None:
    most = as_far_as_both_hold(own, 1e12)
    assert changed_alone(np.add, own, whole, most) == sum_wraps_alone(own, whole)


@every_wider
def test_products_that_wrap_alone_differ_from_those_of_a_wider_type(own: Type, whole: Type) -> None:
    most = as_far_as_both_hold(own, 1e12)
    assert changed_alone(np.multiply, own, whole, most) == product_wraps_alone(own, whole)


@every_wider
def test_sums_of_numbers_in_use_may_be_widened_where_they_differ_by_rounding(
    own: Type, whole: Type
) -> None:
    if is_real(whole):
        assert changed_alone(np.add, own, whole, 2.0**50) != sum_may_widen(own, whole)


@every_pair
def test_kernels_convert_to_real_types_what_these_hold(own: Type, whole: Type) -> None:
    stored, root = values(own, 1, 1e6), root_of_minus_one(whole)
    with warnings.catch_warnings(action="ignore"):  # of imaginary parts that are lost
        read = stored.astype(whole)
    real = root is not None and bool(np.isnan(root))
    assert (real and not differs(read, stored)) == converts_on_reading(own, whole)


# ---------------------------------------------------------------- tables


def those(predicate: Callable[[str], bool]) -> str:
    """The names of the types for which a predicate holds."""
    return " ".join(type.name for type in TYPES if predicate(type.name))


def pairs(predicate: Callable[[str, str], bool]) -> None:
    """Print a line for each type with the wider ones for which a predicate holds."""
    for own in TYPES:
        wider = [b.name for a, b in WIDER if a == own and predicate(a.name, b.name)]
        if wider:
            print(f"{own.name}: {' '.join(wider)}")


def test_the_tables_in_the_docstrings_are_complete() -> None:
    tried = doctest.testmod(types, extraglobs={"those": those, "pairs": pairs})
    assert tried.failed == 0 and tried.attempted == len(PREDICATES)


PREDICATES = [
    function
    for name, function in inspect.getmembers(types, inspect.isfunction)
    if not name.startswith("_")
]


def test_predicates_take_dtypes_and_their_names() -> None:
    for predicate in PREDICATES:
        count = len(inspect.signature(predicate).parameters)
        for given in product(TYPES, repeat=count):
            assert predicate(*given) == predicate(*(type.name for type in given))
