"""Kinds of levels that users add: the example of docs/formats.md, in every expression."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import taco_py as tp
from codegen import build
from taco_py.compiler.levels.protocol import EachStored
from taco_py.data.storage.by_level.level_packing import Listed, Packed, ranges
from taco_py.data.storage.tensor_data import LevelArrays


class Triangle(EachStored):
    """Row p has the coordinates p … size-1, at the positions from p*size - p*(p-1)/2 on."""

    branchless = False

    def __init__(self, parent, size):
        self.parent, self.size = parent, size

    def begin(self, parent):
        before = build.div(build.mul(parent, build.sub(parent, 1)), 2)
        return build.sub(build.mul(parent, self.size), before)

    def bounds(self, parent):
        return self.begin(parent), self.begin(build.add(parent, 1))

    def coordinate(self, position):
        return build.add(build.sub(position, self.begin(self.parent)), self.parent)


class TrianglePacking:
    """No arrays: where each coordinate is follows from the size alone."""

    in_order = False

    def begin(self, rows, size):
        return rows * size - rows * (rows - 1) // 2

    def pack(self, level):
        if level.count != level.size or (level.coordinates < level.parents).any():
            raise tp.FormatError("Expected the upper triangle of a square matrix")
        places = self.begin(level.parents, level.size) + level.coordinates - level.parents
        return Packed(LevelArrays(), places, self.count(LevelArrays(), level.count, level.size))

    def listed(self, arrays, parents, size, above):
        begin, lengths = self.begin(parents, size), size - parents
        places, owner = ranges(begin, lengths)
        return Listed(owner, places, places - begin[owner] + parents[owner])

    def count(self, arrays, parents, size):
        return size * (size + 1) // 2

    def check(self, arrays, counts, size):
        return


TRIANGLE = tp.LevelKind("triangle", "t", ())


@pytest.fixture(scope="module", autouse=True)
def _added() -> None:
    tp.add_level_kind(
        TRIANGLE, TrianglePacking(), lambda own, above: Triangle(above.parent, above.size)
    )


def test_a_kind_of_a_user_is_packed_computed_with_and_converted() -> None:
    dense = np.triu(np.arange(1.0, 26.0).reshape(5, 5))
    stored = tp.tensor(dense, format="dt")
    assert stored.nnz == 15
    assert str(stored.format) == "dt"
    np.testing.assert_array_equal(stored.to_numpy(), dense)
    np.testing.assert_array_equal(stored.to_format("csc").to_numpy(), dense)
    x, other = np.arange(5.0), tp.tensor(np.eye(5) + dense.T, format="csr")
    np.testing.assert_array_equal(tp.evaluate("y[i] = A[i,j] * x[j]", A=stored, x=x), dense @ x)
    turned = tp.evaluate("y[j] = A[i,j] * x[i]", A=stored, x=x, format="d")
    np.testing.assert_array_equal(turned, dense.T @ x)
    for text, expected in (
        ("C[i,j] = A[i,j] + B[i,j]", dense + other.to_numpy()),
        ("C[i,j] = A[i,j] * B[i,j]", dense * other.to_numpy()),
        ("C[i,k] = A[i,j] * B[j,k]", dense @ other.to_numpy()),
    ):
        np.testing.assert_array_equal(tp.evaluate(text, A=stored, B=other).to_numpy(), expected)
    made = tp.evaluate("C[i,j] = 2 * A[i,j]", format="dt", A=stored)
    np.testing.assert_array_equal(made.to_numpy(), 2 * dense)
    again = pickle.loads(pickle.dumps(stored))
    assert again.format == stored.format
    np.testing.assert_array_equal(again.to_numpy(), dense)


def test_what_a_kind_cannot_store_is_refused() -> None:
    with pytest.raises(tp.FormatError, match="upper triangle"):
        tp.tensor(np.ones((3, 3)), format="dt")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (tp.LevelKind("triangle", "z", ()), "which there is"),
        (tp.LevelKind("other", "d", ()), "a letter that no kind has"),
        (tp.LevelKind("other", "tt", ()), "a letter that no kind has"),
        ("triangle", "Expected a LevelKind"),
    ],
)
def test_names_and_letters_mean_one_kind(kind: object, message: str) -> None:
    with pytest.raises(tp.FormatError, match=message):
        tp.add_level_kind(kind, TrianglePacking(), lambda own, above: Triangle(0, 0))  # type: ignore[arg-type]
    with pytest.raises(tp.FormatError, match="packing with"):
        tp.add_level_kind(tp.LevelKind("other", "z", ()), object(), len)  # type: ignore[arg-type]
