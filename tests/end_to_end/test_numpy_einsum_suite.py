"""NumPy's own tests of einsum, those of the NumPy that is installed, with `tp.einsum` in its place.

The tests that are left out, by name, with the reason. All others have to pass.
"""

from __future__ import annotations

import importlib.util
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import taco_py as tp

PLACES = ("numpy._core.tests.test_einsum", "numpy.core.tests.test_einsum")  # NumPy 2, NumPy 1
LEFT_OUT = {
    "test_einsum_0d_out": "paths: with optimize= NumPy writes into out= whatever casting= says",
    "test_path_type_input_invalid": "paths: a wrong one is a ValueError with the place, not a "
    "RuntimeError",
    "test_subscript_range": "labels from 52 on are no error here: there are more than letters",
    "test_einsum_chunking_precision": "the last digit of a sum of 10^6, which it says nobody need "
    "guarantee: lanes add up partial sums here",
    "test_output_order": "memory order: K is that in which the operands store the result's "
    "indices, where NumPy looks at those of its path",
}


class _Namespace(SimpleNamespace):
    """NumPy but for `einsum`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _suite() -> ModuleType | None:
    """NumPy's test module, read anew; None where it is not installed."""
    for place in PLACES:
        try:
            spec = importlib.util.find_spec(place)
        except ModuleNotFoundError:
            continue
        if spec is None or spec.loader is None:
            continue
        module = importlib.util.module_from_spec(spec)
        own = np.einsum
        np.einsum = tp.einsum  # decorators of the tests read it
        try:
            spec.loader.exec_module(module)
        except ImportError:
            return None
        finally:
            np.einsum = own
        module.np = _Namespace(einsum=tp.einsum)
        return module
    return None


SUITE = _suite()
pytestmark = pytest.mark.filterwarnings("ignore::taco_py.NarrowSumWarning")
if SUITE is None:
    pytest.skip("the installed NumPy has no tests", allow_module_level=True)


def _kept(owner: Any) -> Any:
    """A class of tests without those that are left out."""
    left: dict[str, Any] = {name: None for name in vars(owner) if name in LEFT_OUT}
    for name, test in vars(owner).items():
        if name.startswith("test_einsum_sums_"):  # one for each type
            left[name] = pytest.mark.rotating(4, "sums")(test)
    return type(owner.__name__, (owner,), left)


TestEinsum = _kept(SUITE.TestEinsum)
TestEinsumPath = _kept(SUITE.TestEinsumPath)


FUNCTIONS = [
    pytest.param(value, id=name)
    for name, value in vars(SUITE).items()
    if name.startswith("test_") and callable(value) and name not in LEFT_OUT
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function(function: Any) -> None:
    function()


def test_labels_may_be_any_of_numpys() -> None:
    """What is left of `test_subscript_range`."""
    a, b = np.ones((2, 3)), np.ones((3, 4))
    for label in (20, 27, 51):
        np.testing.assert_array_equal(tp.einsum(a, [0, label], b, [label, 2], [0, 2]), a @ b)
    with pytest.raises(ValueError, match="subscripts from 0 on"):
        tp.einsum(a, [-1, 5], b, [5, 2], [-1, 2])
