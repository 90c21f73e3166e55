"""Malformed structure: each message names the array, the place and the remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taco_py.data.storage.check import check
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.diagnostics.errors import StructureError
from taco_py.language.formats import COO, CSC, CSF, CSR, Format, dense

COORDS = [np.array([0, 0, 2, 3]), np.array([0, 2, 1, 1])]
VALUES = np.array([1.0, 2.0, 3.0, 4.0])


def broken(format: Format, place: int, **changes: Any) -> TensorData:
    """A 4 by 3 matrix of four entries with one level's arrays replaced."""
    data = pack_coo(COORDS, VALUES, (4, 3), format)
    levels = list(data.levels)
    levels[place] = replace(levels[place], **changes)
    return replace(data, levels=tuple(levels))


CASES: dict[str, tuple[TensorData, str]] = {
    "start": (broken(CSR, 1, pos=np.array([1, 2, 2, 3, 4])), "indptr to start with 0, found 1"),
    "falls": (
        broken(CSR, 1, pos=np.array([0, 2, 1, 3, 4])),
        "indptr to be monotone, found 2 and then 1 at row 1",
    ),
    "falls in a column": (
        broken(CSC, 1, pos=np.array([0, 3, 2, 4])),
        "indptr to be monotone, found 3 and then 2 at column 1",
    ),
    "beyond the end": (
        broken(CSR, 1, pos=np.array([0, 2, 2, 3, 9])),
        r"Expected 9 coordinates in indices \(counted by indptr\), found 4",
    ),
    "short pos": (broken(CSR, 1, pos=np.array([0, 4])), "Expected 5 entries in indptr.*found 2"),
    "too large": (
        broken(CSR, 1, crd=np.array([0, 2, 3, 1])),
        r"from 0 to 2 in indices \(mode 1 has size 3\), found 3 at position 2",
    ),
    "negative": (broken(CSR, 1, crd=np.array([0, -2, 1, 1])), "found -2 at position 1"),
    "float": (
        broken(CSR, 1, crd=np.array([0.0, 2.0, 1.0, 1.0])),
        "indices to be a vector of integers, found 1 axes of float64",
    ),
    "missing": (broken(CSR, 1, crd=None), "Expected an array indices, found none"),
    "root of a tree": (
        broken(CSF(2), 0, crd=np.array([0, 2, 4])),
        r"crd of level 0 \(mode 0 has size 4\), found 4 at position 2",
    ),
    "singleton length": (
        broken(COO(2), 1, crd=np.array([0, 1])),
        r"Expected 4 coordinates in coords\[1\] \(positions above\), found 2",
    ),
    "singleton range": (broken(COO(2), 1, crd=np.array([0, 1, 7, 1])), r"coords\[1\].*found 7"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_malformed_is_named(name: str) -> None:
    data, message = CASES[name]
    with pytest.raises(StructureError, match=message) as caught:
        check(data)
    assert caught.value.hint


def test_number_of_values() -> None:
    data = replace(pack_coo(COORDS, VALUES, (4, 3), CSR), values=np.ones(3))
    with pytest.raises(StructureError, match=r"a vector of 4 values.*found shape \(3,\)"):
        check(data)
    padded = replace(pack_coo(COORDS, VALUES, (4, 3), Format.parse("sd")), values=np.ones(4))
    with pytest.raises(StructureError, match="a vector of 9 values"):
        check(padded)
    wrong = TensorData(dense(2), (2, 2), (LevelArrays(), LevelArrays()), np.ones((2, 3)))
    with pytest.raises(StructureError, match=r"shape \(2, 2\), found \(2, 3\)"):
        check(wrong)


@pytest.mark.parametrize("letters", ["ds", "ds:1,0", "ss", "uq", "sd", "dd", "du:1,0"])
def test_sound_tensors_pass(letters: str) -> None:
    check(pack_coo(COORDS, VALUES, (4, 3), Format.parse(letters)))
    check(pack_coo([c[:0] for c in COORDS], VALUES[:0], (0, 3), Format.parse(letters)))


def test_order_and_duplicates_are_no_errors() -> None:
    check(broken(CSR, 1, crd=np.array([2, 0, 1, 1])))
    check(broken(CSR, 1, crd=np.array([2, 2, 1, 1])))
