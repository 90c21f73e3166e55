"""Pickles that release 0.1 wrote are read, though its modules have other names now."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.data.tensors import tensor
from taco_py.language.former_names import FORMER, today

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
    wanted = 2 * found.toarray()
    assert np.array_equal(np.asarray(getattr(doubled, "toarray", lambda: doubled)()), wanted)


def test_formats_and_schedules_are_read() -> None:
    assert unpickled("format") == tp.CSR
    assert unpickled("schedule") == tp.Schedule.parse("serial()")


def test_a_former_name_is_the_module_of_today() -> None:
    from taco_py.values import tensor as former  # type: ignore[import-not-found]

    assert former is tensor
    assert tensor.__spec__.name == tensor.__name__


def test_other_modules_have_no_former_name() -> None:
    assert not [name for name in FORMER.values() if today(f"taco_py.{name}")]
    assert today("numpy.values") is None
    with pytest.raises(ModuleNotFoundError):
        __import__("taco_py.values.nothing")
