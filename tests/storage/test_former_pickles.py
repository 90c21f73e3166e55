"""Pickles that release 0.1 wrote are read, though its modules have other names now."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.data.tensors import tensor
from taco_py.language import formats
from taco_py.language.former_names import FORMER, today
from tests.arrays.operands import elements

PICKLES = Path(__file__).parent.parent / "golden" / "pickles"
TENSORS = {"csr": "ds", "coo": "uq", "bsr": "BSR(2,2)", "filled": "ds"}


def unpickled(name: str) -> Any:
    return pickle.loads((PICKLES / f"{name}.pkl").read_bytes())


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_are_read(name: str) -> None:
    found = unpickled(name)
    assert isinstance(found, tp.Tensor)
    assert str(found.format) == TENSORS[name]
    doubled = tp.evaluate("B[i,j] = 2 * A[i,j]", A=found)
    assert np.array_equal(elements(doubled), 2 * elements(found))


def test_functions_keep_their_names() -> None:
    """A folder of release 0.1 was called as a function is: the module does not hide it."""
    unpickled("schedule")
    import taco_py.tune.store  # type: ignore[import-not-found]  # noqa: F401

    assert str(tp.schedule("y[i] = x[i]", x="d")) == ""
    assert callable(tp.tune)


def test_formats_and_schedules_are_read() -> None:
    assert unpickled("format") == tp.CSR
    assert unpickled("schedule") == tp.Schedule.parse("serial()")


def test_a_former_module_has_the_attributes_of_today() -> None:
    import taco_py.formats.remapped  # type: ignore[import-not-found]  # noqa: F401
    from taco_py.values.tensor import Tensor  # type: ignore[import-not-found]

    assert Tensor is tensor.Tensor
    assert callable(formats.remapped), "a module of today keeps its own"


def test_other_modules_have_no_former_name() -> None:
    assert not [name for name in FORMER.values() if today(f"taco_py.{name}")]
    assert today("numpy.values") is None
    with pytest.raises(ModuleNotFoundError):
        __import__("taco_py.values.nothing")
