"""Warnings are given at each call, at the caller's line, also on the short way and from disk."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

A = np.ones((200, 200), np.int8)
X = np.ones(200, np.int8)
TRAP = "y[i] = A[i,j] * x[k]"


def given(call: Callable[[], Any], times: int = 1) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            call()
    return caught


@pytest.mark.parametrize(
    "call",
    [
        lambda: tp.einsum("ij->i", A),
        lambda: tp.einsum("ij,jk->ik", sp.csr_array(A), A),
        lambda: tp.einsum(A, [0, 1], X, [1], [0]),
        lambda: tp.einsum("ij->", A.astype(np.uint16) * 0, out=None),
        lambda: tp.einsum("ij,ij->i", A[:1], A),
    ],
)
def test_einsum_of_small_integers_that_may_wrap(call: Callable[[], Any]) -> None:
    found = given(call, 3)
    assert [each.category for each in found] == [tp.NarrowSumWarning] * 3
    assert {Path(each.filename).name for each in found} == {Path(__file__).name}
    assert 'dtype="int64"' in str(found[0].message)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tp.einsum("ij->ji", A),  # no sum
        lambda: tp.einsum("i,i->i", X, X),  # no sum
        lambda: tp.einsum("ij->i", A[:, :1]),  # of one term
        lambda: tp.einsum("ij->i", sp.csr_array(np.eye(1, 200, dtype=np.int8))),  # of one entry
        lambda: tp.einsum("ij->i", A, dtype=np.int64),
        lambda: tp.einsum("ij->i", A, dtype=np.int8),  # as asked
        lambda: tp.einsum("ij->i", A.astype(bool)),  # "or"
        lambda: tp.einsum("ij->i", A.astype(np.int64)),
        lambda: tp.einsum("ij,j->i", A, np.ones(200)),
        lambda: tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=X),
    ],
)
def test_what_cannot_wrap_or_was_asked_for_is_not_warned_of(call: Callable[[], Any]) -> None:
    assert given(call, 2) == []


def test_texts_are_warned_of_once_a_call() -> None:
    for call in (
        lambda: tp.evaluate(TRAP, A=A, x=X),
        lambda: tp.explain(TRAP, A=A, x=X, frontier_budget=0),
        lambda: tp.evaluate_dense(TRAP, A=A, x=X),
        lambda: tp.compile(TRAP, A="dd", x="d"),
        lambda: tp.schedule(TRAP, "dd", "d"),
    ):
        found = given(call, 2)
        assert [each.category for each in found] == [tp.NotationWarning] * 2
        assert {Path(each.filename).name for each in found} == {Path(__file__).name}


def test_later_processes_are_warned_too(tmp_path: Path) -> None:
    program = (
        "import numpy as np, taco_py as tp\n"
        "for _ in range(3):\n"
        f"    tp.evaluate({TRAP!r}, A=np.ones((9, 9)), x=np.ones(9))\n"
    )
    for _ in range(2):
        found = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert found.stderr.count("NotationWarning") == 1


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "cache"])
def test_warnings_of_the_surroundings_point_at_the_users_line(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777 if name == "cache" else 0o700)
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, taco_py as tp\n"
        "x = np.ones(9)\n"
        "tp.evaluate('y[i] = 2 * x[i]', x=x)  # here\n"
    )
    count = "many" if name == "OMP_NUM_THREADS" else "1"
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "OMP_NUM_THREADS": count, "TACO_PY_CACHE_DIR": str(folder)},
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent.parent,
    )  # fmt: skip
    assert f"{script}:3: " in done.stderr
    assert "# here" in done.stderr
