"""The first call of a process, when an earlier process has made the same one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from taco_py.language.formats import Format
from taco_py.language.formats.format import LETTERS, Level, LevelKind
from taco_py.running.replay.helpers import Helper, from_plain, resolved, to_plain

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


def modules(
    folder: Path, size: int = 20, sparse: bool = False, code: str | None = None
) -> set[str]:
    """What a process has loaded after some calls."""
    done = subprocess.run(
        [sys.executable, "-c", code or CODE.format(size=size, sparse=sparse)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "TACO_PY_CACHE_DIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_nothing_of_the_compiler_is_loaded_the_second_time(tmp_path: Path) -> None:
    assert "taco_py.planner.make" in modules(tmp_path)
    again = modules(tmp_path)
    assert "taco_py.planner.make" not in again
    assert "taco_py.calls.call.compute" not in again
    assert "taco_py.planner.make" in modules(tmp_path, size=3000)  # an order of magnitude more
    assert "taco_py.planner.make" not in modules(tmp_path)


def test_sparse_results_are_made_without_the_compiler_too(tmp_path: Path) -> None:
    assert "taco_py.planner.make" in modules(tmp_path, sparse=True)
    assert "taco_py.planner.make" not in modules(tmp_path, sparse=True)


KINDS = """
import sys, numpy as np, scipy.sparse as sp, taco_py as tp
r = np.random.default_rng(0)
A, B = (sp.random_array((30, 30), density=0.2, format="csr", rng=k) for k in (1, 2))
T, x = tp.tensor(A), r.random(30)
U = tp.Tensor.from_coo([r.integers(0, 9, 50) for _ in range(3)], r.random(50), (9, 9, 9))
a, b, u = A.toarray(), B.toarray(), U.to_numpy()
def equal(found, expected):
    dense = found.to_numpy() if isinstance(found, tp.Tensor) else found
    np.testing.assert_allclose(dense.toarray() if sp.issparse(dense) else dense, expected, 1e-12)
equal(tp.einsum("ij->", A), a.sum())
equal(tp.einsum("ij,ij->", A, B), (a * b).sum())
equal(tp.einsum("ij->ji", A), a.T)
equal(tp.einsum("ij->ji", sp.csr_matrix(A)), a.T)
equal(tp.einsum("ijk->kij", U), u.transpose(2, 0, 1))
equal(tp.einsum("ijk->kij", u), u.transpose(2, 0, 1))
equal(tp.einsum("ijij->ji", np.ones((3, 4, 3, 4))), np.ones((4, 3)))
equal(tp.einsum("ii->i", A), np.diag(a))
equal(tp.einsum("ij,jk->ik", A, B), a @ b)
equal(tp.einsum("ij,j->i", T, x), a @ x)
equal(tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=T, B=B), a + b)
equal(tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=A, B=B.tocsc()), a + b)
equal(tp.evaluate("C[i,j] = A[i,j] * B[i,j]", A=A.tocoo(), B=B, format="ss"), a * b)
equal(tp.evaluate("C[i,j] = A[j,i]", A=A, format="dd:1,0"), a.T)
equal(tp.evaluate("C[i,j] = k * A[i,j]", k=2.0, A=sp.csr_matrix(A)), 2 * a)
equal(tp.evaluate("y[i,j] = U[i,j,k] * v[k]", U=U, v=x[:9]), u @ x[:9])
equal(tp.einsum("ij,j->i", A.astype(np.float32), x), a.astype(np.float32) @ x)
equal(tp.einsum("ij,j->i", A, x.astype(">f8")), a @ x)
print(*sorted(m for m in sys.modules if m.startswith(("taco_py.", "codegen.", "polyhedral."))))
"""


def test_all_kinds_of_results_come_from_disk(tmp_path: Path) -> None:
    """Sparse, scalar and transposed results of matrices of all kinds and of Tensors."""
    assert "taco_py.planner.make" in modules(tmp_path, code=KINDS)
    again = modules(tmp_path, code=KINDS)
    assert (
        not {"taco_py.planner.make", "taco_py.calls.call.compute", "taco_py.compiler.driver"}
        & again
    )


def test_helpers_are_read_as_they_were_written() -> None:
    unordered = Format((LETTERS["d"], Level(LevelKind.COMPRESSED, ordered=False)), (1, 0))
    given: dict[str, Any] = {
        "a": Helper("taco_py.data.storage.tensor_data:row_major"),
        "b": Helper(
            "taco_py.data.tensors.hand_out:handed_out",
            {"format": unordered, "axes": (0, (1, None)), "x": "y"},
        ),
        "c": unordered,
    }
    plain = to_plain(given)
    assert plain is not None
    assert from_plain(json.loads(json.dumps(plain))) == {
        **given, "a": Helper("taco_py.data.storage.tensor_data:row_major", {})
    }  # fmt: skip
    assert resolved(given)["b"].keywords == given["b"].keywords
    assert to_plain({"a": print}) is None


def test_damaged_or_lost_files_lead_to_the_long_way(tmp_path: Path) -> None:
    modules(tmp_path)
    for note in tmp_path.rglob("*.note"):
        note.write_text("[1, 2")
    assert "taco_py.planner.make" in modules(tmp_path)
    for library in [*tmp_path.rglob("*.so"), *tmp_path.rglob("*.json")]:
        library.unlink()
    assert "taco_py.planner.make" in modules(tmp_path)
    assert "taco_py.planner.make" not in modules(tmp_path)
