"""The first call of a process, when an earlier process has made the same one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CODE = """
import sys, numpy as np, scipy.sparse as sp, taco_py as tp
A, x = sp.eye_array({size}, format="csr") * 2.0, np.ones({size})
np.testing.assert_array_equal(tp.einsum("ij,j->i", A, x), A @ x)
np.testing.assert_array_equal(tp.evaluate("y[i] = 3 * A[i,j] * x[j]", A=A, x=x), 3 * (A @ x))
np.testing.assert_array_equal(tp.evaluate("y[i] = a * x[i]", a=2.0, x=x), 2 * x)
if {sparse}:
    np.testing.assert_array_equal(tp.einsum("ij,ij->i", A, A), 4 * x)
both = tp.evaluate("C[i,j] = A[i,j] + A[i,j]", A=A) if {sparse} else None
print(*sorted(m for m in sys.modules if m.startswith(("taco_py.", "codegen.", "polyhedral."))))
"""


def modules(folder: Path, size: int = 20, sparse: bool = False) -> set[str]:
    """What a process has loaded after some calls."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(size=size, sparse=sparse)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "TACO_PY_CACHE_DIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_nothing_of_the_compiler_is_loaded_the_second_time(tmp_path: Path) -> None:
    assert "taco_py.plan.make" in modules(tmp_path)
    again = modules(tmp_path)
    assert "taco_py.plan.make" not in again
    assert "taco_py.call.compute" not in again
    assert "taco_py.plan.make" in modules(tmp_path, size=3000)  # an order of magnitude more
    assert "taco_py.plan.make" not in modules(tmp_path)


def test_sparse_results_need_more_than_a_text(tmp_path: Path) -> None:
    for _ in range(2):
        assert "taco_py.plan.make" in modules(tmp_path, sparse=True)


def test_damaged_or_lost_files_lead_to_the_long_way(tmp_path: Path) -> None:
    modules(tmp_path)
    for note in tmp_path.rglob("*.note"):
        note.write_text("[1, 2")
    assert "taco_py.plan.make" in modules(tmp_path)
    for library in [*tmp_path.rglob("*.so"), *tmp_path.rglob("*.json")]:
        library.unlink()
    assert "taco_py.plan.make" in modules(tmp_path)
    assert "taco_py.plan.make" not in modules(tmp_path)
