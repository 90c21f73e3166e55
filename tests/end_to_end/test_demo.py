"""The demo: its exit status says whether results were right, and bad files are refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import taco_py as tp
from taco_py.tool import demo as demo_module
from taco_py.tool.cli import main
from taco_py.tool.demo import compare
from taco_py.tool.inputs import pde27, rmat, tensor_coordinates


@pytest.fixture(autouse=True)
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "BUDGET", 0.0)


def test_matrix_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.mtx"
    scipy.io.mmwrite(path, pde27(4))
    assert main(["demo", str(path)]) == 0
    shown = capsys.readouterr().out
    for kernel in ("SpMV", "SpMM", "SpGEMM", "SDDMM"):
        assert kernel in shown
    assert "4 of 4 results agree" in shown


def test_rectangular_integer_matrix(tmp_path: Path) -> None:
    path = tmp_path / "wide.mtx"
    scipy.io.mmwrite(path, sp.coo_array(np.array([[1, 0, 2], [0, 0, 3]])))
    assert main(["demo", str(path)]) == 0


def test_tensor_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coordinates, values = tensor_coordinates((5, 6, 7), 40)
    rows = [
        f"{i + 1} {j + 1} {k + 1} {v}\n" for i, j, k, v in zip(*coordinates, values, strict=True)
    ]
    path = tmp_path / "small.tns"
    path.write_text("".join(rows))
    assert main(["demo", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "MTTKRP" in shown
    assert "TTV" in shown


def test_a_wrong_result_makes_the_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.mtx"
    scipy.io.mmwrite(path, pde27(3))
    right: Any = tp.evaluate
    monkeypatch.setattr(tp, "evaluate", lambda *args, **more: 1.001 * right(*args, **more))
    assert main(["demo", str(path)]) == 1
    assert "WRONG" in capsys.readouterr().out


BAD_FILES = {"cut.tns": "1 1 1 1.0\n1 1\n", "letters.mtx": "hello\n", "unknown.xyz": "1\n"}


@pytest.mark.parametrize("name", [*BAD_FILES, "absent.mtx", "vector.tns"])
def test_bad_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    if name in BAD_FILES:
        path.write_text(BAD_FILES[name])
    if name == "vector.tns":
        path.write_text("1 1.0\n2 2.0\n")
    assert main(["demo", str(path)]) == 2
    shown = capsys.readouterr().err
    assert name in shown
    assert "Traceback" not in shown


def test_bad_input_takes_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "letters.mtx"
    path.write_text("hello\n")
    assert main(["demo", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Expected" in line


@pytest.mark.parametrize("fault", [KeyError("x"), tp.InternalError("Expected a, found b")])
def test_a_fault_of_ours_is_not_the_users(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> int:
        raise fault

    monkeypatch.setattr("taco_py.tool.cli.demo", fail)
    assert main(["demo"]) == 3
    assert "a fault of taco_py, not of its input" in capsys.readouterr().err


@pytest.mark.parametrize("threads", ["0", "-1", "two", "1000000"])
def test_bad_numbers_of_threads(threads: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--threads", threads])
    assert stopped.value.code == 2


def test_what_is_no_command_is_taken_for_an_expression(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Expected '=' or another assignment after nonsense" in line


def test_comparison_sees_every_difference() -> None:
    one = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))
    other = sp.csr_array(np.array([[1.0, 5.0], [0.0, 2.0]]))
    assert compare(one, one) == (0.0, 2.0)
    assert compare(one, other) == (5.0, 5.0)
    assert compare(other.toarray(), one.toarray()) == (5.0, 2.0)
    assert np.isnan(compare(np.array([np.nan]), np.array([1.0]))[0])


def test_inputs_are_what_they_say() -> None:
    operator = pde27(5)
    assert operator.shape == (125, 125)
    assert abs(operator - operator.T).nnz == 0
    assert operator[62].nnz == 27
    assert operator.sum(axis=1).min() == 0
    graph = rmat(8)
    assert graph.shape == (256, 256)
    assert graph.indices.dtype == np.int32
    degrees = np.diff(graph.indptr)
    assert degrees.max() > 8 * np.median(degrees)
    coordinates, values = tensor_coordinates((3, 4, 5), 30)
    keys = np.ravel_multi_index(coordinates, (3, 4, 5))
    assert (np.diff(keys) > 0).all()
    assert values.size == keys.size
