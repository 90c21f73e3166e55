"""The programs of `docs/examples` on generated data: gradients, what training reaches, files."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from docs.examples import documents, graph_convolution, ratings, tensor_factors
from tests.autodiff.training_cases import CASES
from tests.pages import DOCS, blocks

PROGRAMS = {path.stem: path for path in sorted((DOCS / "examples").glob("*.py"))}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name: str) -> None:
    """Along a random direction, by NumPy's and SciPy's values of the loss."""
    rng = np.random.default_rng(0)
    loss, parameters, data = CASES[name](rng)
    found = tp.grad(loss, tuple(parameters))(**parameters, **data)
    ways = {key: rng.standard_normal(each.shape) for key, each in parameters.items()}

    def at(way: float) -> float:
        moved = {key: each + way * ways[key] for key, each in parameters.items()}
        return float(loss(**moved, **data))

    step = 1e-6
    expected = (at(step) - at(-step)) / (2 * step)
    slope = sum(float((d * way).sum()) for d, way in zip(found, ways.values(), strict=True))
    assert slope == pytest.approx(expected, rel=1e-5)


def test_a_graph_network_learns_the_classes() -> None:
    data = graph_convolution.generated(200, 40, 3)
    weights, values = graph_convolution.trained(data, epochs=100)
    assert values[-1] < 0.4 * values[0]
    assert graph_convolution.accuracy(data, weights) > 0.75


def test_the_files_of_planetoid_are_read_in_the_order_of_papers(tmp_path: Path) -> None:
    """The rows of test papers stand at the end of the files, in the order of `test.index`."""
    X, y = np.eye(6), np.eye(2)[[0, 1, 0, 1, 0, 1]]
    test, others = [5, 3, 4], [0, 1, 2]
    parts = {
        "y": y[:2], "allx": sp.csr_matrix(X[others]), "ally": y[others],
        "tx": sp.csr_matrix(X[test]), "ty": y[test],
        "graph": {0: [1, 1], 1: [0], 2: [5], 3: [], 4: [4], 5: []},
    }  # fmt: skip
    for part, value in parts.items():
        (tmp_path / f"ind.tiny.{part}").write_bytes(pickle.dumps(value))
    (tmp_path / "ind.tiny.test.index").write_text("5\n3\n4\n")
    data = graph_convolution.read_planetoid(tmp_path, "tiny")
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.y, y.argmax(1))
    assert sorted(zip(*data.A.nonzero(), strict=True)) == [(0, 1), (1, 0), (2, 5), (4, 4), (5, 2)]
    assert np.all(data.A.data == 1)
    np.testing.assert_array_equal(data.train, [0, 1])


def test_ratings_that_were_left_out_are_near_what_the_factors_say() -> None:
    rng = np.random.default_rng(0)
    full = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 70))
    R = sp.csr_array(np.where(rng.random(full.shape) < 0.5, full, 0))
    known, asked = ratings.split(R, 0.1)
    assert known.nnz + asked.nnz == R.nnz and asked.nnz > 0
    weights, _ = ratings.trained(known, 150)
    assert ratings.error(weights, asked) < 0.5 * np.sqrt((asked.data**2).mean())


def test_ratings_are_read_from_text_and_matrices(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("userId,movieId,rating,timestamp\n7,10,4.5,1\n7,30,2.0,1\n9,10,1.0,1\n")
    found = ratings.read_ratings(file)
    np.testing.assert_array_equal(found.toarray(), [[4.5, 2.0], [1.0, 0.0]])
    sp.save_npz(tmp_path / "R.npz", found)
    again = ratings.read_ratings(tmp_path / "R.npz")
    np.testing.assert_array_equal(again.toarray(), found.toarray())


def test_a_tensor_of_low_rank_is_found_from_some_entries() -> None:
    T, M = tensor_factors.generated((10, 12, 14), 2, 500)
    _, values = tensor_factors.decomposed(T, M, 2, 250)
    assert values[-1] < 2e-3


def test_paragraphs_get_the_file_that_they_come_from(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, words in (("one", "red green blue grey"), ("two", "salt sugar flour grey")):
        chosen = [" ".join(rng.choice(words.split(), 12)) for _ in range(20)]
        (tmp_path / f"{name}.txt").write_text("\n\n".join([*chosen, "too short"]))
    found, y = documents.paragraphs(tmp_path)
    assert np.bincount(y).tolist() == [20, 20]
    X = documents.weighted_words(found)
    np.testing.assert_allclose(X.power(2).sum(1), 1)
    weights, _ = documents.trained(X[::2], y[::2], 30)
    assert documents.accuracy(weights, X[1::2], y[1::2]) > 0.9


def test_digits_are_read() -> None:
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_digits

    from docs.examples import perceptron

    X, y = load_digits(return_X_y=True)
    weights, means = perceptron.trained(X[:1400] / 16, y[:1400], perceptron.SIZES, 6)
    assert means[-1] < 0.3 * means[0]
    assert perceptron.accuracy(weights, X[1400:] / 16, y[1400:]) > 0.85


def test_the_page_shows_the_losses_of_the_programs() -> None:
    """Each function on the page is one of a program, and each program is in the table."""
    page = DOCS / "training.md"
    known = {each for path in PROGRAMS.values() for each in functions(path.read_text())}
    shown = [each for block in blocks(page) for each in functions(block)]
    assert len(shown) >= len(PROGRAMS) and not set(shown) - known
    assert sorted(re.findall(r"\(examples/(\w+)\.py\)", page.read_text())) == [*PROGRAMS]


def functions(text: str) -> list[str]:
    """The functions of a source, without what decorates them."""
    found: list[Any] = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    return [ast.unparse(each) for each in found]
