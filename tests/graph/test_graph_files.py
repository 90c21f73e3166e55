"""Graphs are kept in files, and say what they are for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

x = np.arange(12.0).reshape(3, 4)
A = sp.csr_array(np.eye(3))


def test_a_graph_is_the_same_from_a_file(tmp_path: Path) -> None:
    fused = tp.fuse(lambda a, M: {"y": (M * (a[1:].T.sum() * 2j), A @ a), "n": a.shape[0]})
    graph = fused.graph(x, A)
    graph.save(tmp_path / "g.json")
    read = tp.graph.load(tmp_path / "g.json")
    assert str(read) == str(graph)
    found, expected = read(x, A), fused(x, A)
    np.testing.assert_array_equal(found["y"][0].toarray(), expected["y"][0].toarray())
    np.testing.assert_array_equal(found["y"][1], expected["y"][1])
    assert found["n"] == 3


def test_a_graph_refuses_other_operands(tmp_path: Path) -> None:
    graph = tp.fuse(lambda a: a + a.T if a.shape[0] == 3 else a).graph(x[:, :3])
    graph.save(tmp_path / "g.json")
    read = tp.graph.load(tmp_path / "g.json")
    for wrong, told in (
        ((x[:, :3].astype(np.float32),), "Expected a to be float64"),
        ((x[0],), "Expected a to be float64"),
        ((x[:2, :2],), "for which (a.shape[0] == 3) is True, found False"),
        ((x, x), "Expected 1 operands"),
    ):
        with pytest.raises(tp.OperandError) as caught:
            read(*wrong)
        assert told in str(caught.value)
    with pytest.raises(tp.OperandError, match="read from a file"):
        read.explain()


def test_other_files_are_refused(tmp_path: Path) -> None:
    graph = tp.fuse(lambda a: a + 1).graph(x)
    with pytest.raises(tp.FileFormatError, match=r"\.json"):
        graph.save(tmp_path / "g.txt")
    for text in ("{}", "[", '{"taco_py graph": 99}'):
        (tmp_path / "g.json").write_text(text)
        with pytest.raises(tp.FileFormatError):
            tp.graph.load(tmp_path / "g.json")


def test_a_graph_explains_what_runs() -> None:
    told = tp.fuse(lambda a: np.sort(np.exp(a) - 1) @ a.T).graph(x).explain()
    for part in (
        "5 operators", "2 kernel calls, 1 calls of NumPy", "linear", "elementwise",
        "NumPy: p2 = sort", "no kernel computes it",
    ):  # fmt: skip
        assert part in told


@pytest.mark.parametrize("optimize", ["none", "greedy", "orchestrate"])
def test_a_graph_from_a_file_is_optimized_for_its_first_call(tmp_path: Path, optimize: str) -> None:
    fused = tp.fuse(lambda a: np.cumsum(np.exp(a).sum(1)) * np.exp(a).sum(1))
    fused.graph(x).save(tmp_path / "g.json")
    read = tp.graph.load(tmp_path / "g.json", optimize=optimize)
    np.testing.assert_allclose(read(x), fused(x), rtol=1e-12)
    told = read.explain(x)
    assert f"chosen    {optimize}" in told or f"for {optimize} finds none" in told
    with pytest.raises(tp.OperandError, match="Expected a to be float64"):
        read.explain(x[0])


def test_another_way_to_choose_is_refused_before_a_file_is_read() -> None:
    with pytest.raises(tp.ScheduleError, match="optimize= to be one of none, stages"):
        tp.graph.load("nothing.json", optimize="gready")
    with pytest.raises(tp.ScheduleError, match="optimize= to be one of none, stages"):
        tp.lazy(optimize="gready")


@pytest.mark.parametrize("optimize", ["none", "orchestrate"])
def test_what_a_block_notes_is_optimized(optimize: str) -> None:
    with tp.lazy(optimize=optimize) as later:
        e = np.exp(later(x))
        y = np.cumsum(e.sum(1)) * (e @ np.ones(4))
    expected = np.cumsum(np.exp(x).sum(1)) * np.exp(x).sum(1)
    np.testing.assert_allclose(y.compute(), expected, rtol=1e-12)
    told = y.graph().explain()
    assert f"chosen    {optimize}" in told or f"for {optimize} finds none" in told
    np.testing.assert_allclose((y + 1).compute(), expected + 1, rtol=1e-12)
