"""scipy's own tests of sparse arrays, from the scipy that is installed, run on Tensors.

`LEFT_OUT` has those that make no sense here and `KNOWN` those that do and fail, with the reasons.
What errors say is ours: their classes are compared, and a refusal of ours stands for scipy's
NotImplementedError.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy

import taco_py as tp
from tests.arrays.scipy_adapter import Adapted, made

base: Any = pytest.importorskip("scipy.sparse.tests.test_base")
if scipy.__version__.split(".")[:2] != ["1", "17"]:
    pytest.skip("the lists are of the tests of scipy 1.17", allow_module_level=True)

CHANGED = "a Tensor cannot be changed"
SHOWN = "what scipy's arrays print"
OWN = "about the classes and attributes of scipy's arrays"
LINALG = "functions of scipy.sparse.linalg take scipy's arrays: T.to_scipy()"
STRETCHED = "shapes stretch as NumPy's do, and scipy's arrays do not"
ANY_ORDER = "results of any order, which scipy's csr has not"
EXPLICIT = "explicit=True asks scipy for extrema of stored elements alone"
LEFT_OUT = {
    **dict.fromkeys(
        ("test_fancy_indexing_2d_assign", "test_fancy_indexing_seq_assign", "test_resize",
         "test_index_scalar_assign", "test_negative_index_assignment", "test_scalar_assign_2",
         "test_setdiag", "test_setdiag_comprehensive", "test_setelement"), CHANGED),
    **dict.fromkeys(("test_repr", "test_str", "test_str_maxprint"), SHOWN),
    **dict.fromkeys(
        ("test_astype_immutable", "test_constructor1_base", "test_minmax_container_type",
         "test_pickle"), OWN),
    **dict.fromkeys(("test_expm", "test_inv"), LINALG),
    **dict.fromkeys(("test_eq_ne_different_shapes", "test_size_zero_matrix_arithmetic"), STRETCHED),
    **dict.fromkeys(("test_argmax", "test_minmax", "test_minmax_axis"), EXPLICIT),
    "test_dtype_check": "scipy has no half-precision numbers, and Tensors have",
    "test_minmax_invalid_params": "how scipy refuses its own out= of min and max",
    "test_reshape": ANY_ORDER,
    "test_elementwise_power": "a tensor to the power of a tensor is refused there and defined here",
    "test_pow": "a tensor to the power of 0 is refused there, and has the fill value 1 here",
}  # fmt: skip
COMPLEX = "complex numbers have no order, and are refused"
BESIDE = "a sparse tensor and a stretched dense array are refused, so that no result is dense by \
accident"
KNOWN = {
    **dict.fromkeys(("test_ge", "test_gt", "test_le", "test_lt", "test_maximum_minimum"), COMPLEX),
    **dict.fromkeys(("test_add", "test_rsub", "test_sub"), BESIDE),
    "test_elementwise_divide": "what neither operand stores is 0 in a quotient, and not NaN",
    "test_nanminmax": "Tensors have no nanmin and nanmax",
}  # fmt: skip
FORMATS = {
    **dict.fromkeys(("test_fancy_indexing", "test_fancy_indexing_ndarray"), "coo"),
    **dict.fromkeys(
        (
            "test_count_nonzero",
            "test_elementwise_multiply",
            "test_eq",
            "test_ne",
            "test_ge",
            "test_gt",
            "test_le",
            "test_lt",
        ),
        "csr",
    ),
}
"""Of tests that ask for one of scipy's formats, which their arrays have: results of any order of
coo alone."""
ROUNDED = ("test_unary_ufunc_overrides",)
"""Tests of functions whose last bit may be another one."""
TYPES = [np.int64, np.float64, np.complex128]
PARTS = ("Common", "GetSet", "Slicing", "FancyIndexing", "FancyMultidim", "Arithmetic", "MinMax",
         "Solve", "GetNnzAxis")  # fmt: skip
BASES = tuple(getattr(base, f"_Test{part}") for part in PARTS)
NAMES = sorted({name for each in BASES for name in vars(each) if name.startswith("test_")})


class OnTensors(*BASES):  # type: ignore[misc]
    """scipy's tests over Tensors."""

    spcreator = staticmethod(made)
    math_dtypes = TYPES


class Pytest:
    """What scipy's tests call of pytest, but for the words of errors."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pytest, name)

    @staticmethod
    def raises(expected: Any, *call: Any, match: str = "", **options: Any) -> Any:
        """Expect one of the errors, whatever it says."""
        errors = expected if isinstance(expected, tuple) else (expected,)
        errors = (*errors, tp.TacoError) if NotImplementedError in errors else errors
        found = pytest.raises(errors, *call, **options)
        return AnyWords() if call else found


class AnyWords:
    """An error that says what is expected."""

    def match(self, words: str) -> bool:
        """Whether it says so."""
        return True


@pytest.fixture
def on_tensors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> OnTensors:
    """scipy's tests, made for Tensors of a few types."""
    issparse = base.issparse
    monkeypatch.setattr(base, "issparse", lambda x: isinstance(x, Adapted) or issparse(x))
    monkeypatch.setattr(base, "supported_dtypes", TYPES)
    monkeypatch.setattr(base, "pytest", Pytest())
    monkeypatch.setattr(base, "assert_raises", Pytest.raises)
    name = request.node.callspec.params["name"]
    monkeypatch.setattr(Adapted, "format", FORMATS.get(name, "tensor"))
    if name in ROUNDED:
        rounded = partial(np.testing.assert_allclose, rtol=1e-15)
        monkeypatch.setattr(base, "assert_array_equal", rounded)
    OnTensors.init_class()
    OnTensors.is_array_test = True
    return OnTensors()


@pytest.mark.rotating(12)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in {*LEFT_OUT, *KNOWN}])
def test_scipy(name: str, on_tensors: OnTensors) -> None:
    getattr(on_tensors, name)()


@pytest.mark.rotating(12)
@pytest.mark.parametrize("name", KNOWN)
def test_known_to_fail(name: str, on_tensors: OnTensors) -> None:
    with pytest.raises((tp.TacoError, AssertionError, AttributeError, TypeError)):
        getattr(on_tensors, name)()


def test_nine_tenths_of_what_makes_sense_pass() -> None:
    assert {*LEFT_OUT, *KNOWN} <= {*NAMES}
    assert len(KNOWN) <= (len(NAMES) - len(LEFT_OUT)) / 10
