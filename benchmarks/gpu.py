"""How fast are kernels on a GPU, beside cuSPARSE and cuBLAS?

    python -m benchmarks.gpu                                 a table, and results/gpu.json
    python -m benchmarks.gpu --sanitize                      kernels under compute-sanitizer besides
    python -m benchmarks.gpu --target cuda-emulated --small  the same, to see that it works

Operands are on the device before a run begins, and results stay there: what is timed is launches
and kernels, and beside them whole calls of `tp.evaluate`. Peers are those of CuPy and torch, where
these are installed, on the same operands in the same process. Bytes are those that have to move at
least: each operand once, each result once.
Results are checked against SciPy.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.devices import DeviceCall, device_of

RESULTS = Path(__file__).parent / "results"
SECONDS = 0.3
"""How long each contender runs."""
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")

Operands = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """An expression over operands.

    bar    the least ratio to the peer that is aimed at
    peers  by name: from operands to a function of theirs, on the device, that waits for its end
    flops  of one run, where that is what counts
    """

    name: str
    text: str
    operands: Operands
    bar: float | None = None
    peers: dict[str, Callable[[Operands], Callable[[], object]]] = field(default_factory=dict)
    flops: float = 0.0
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of a case: least milliseconds of kernels, of calls and of peers."""

    name: str
    milliseconds: float
    call_milliseconds: float
    gigabytes_per_second: float
    gigaflops: float
    peers: dict[str, float]
    bar: float | None
    right: bool


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--target", default="cuda", help="cuda or cuda-emulated")
    parser.add_argument("--small", action="store_true", help="operands of a few entries")
    parser.add_argument(
        "--sanitize", action="store_true", help="run small cases under compute-sanitizer too"
    )
    chosen = parser.parse_args()
    facts = facts_of(chosen.target)
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    rows = []
    for case in cases(chosen.small):
        rows.append(measured(case, chosen.target))
        print(line(rows[-1]), flush=True)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "gpu.json"
    document: dict[str, Any] = {"facts": facts, "rows": [asdict(row) for row in rows]}
    if chosen.sanitize:
        document["sanitizer"] = sanitized()
        print("\n".join(f"{tool}: {told}" for tool, told in document["sanitizer"].items()))
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"kept in {path.relative_to(RESULTS.parent.parent)}")


def sanitized() -> dict[str, str]:
    """The last line of each tool of compute-sanitizer about the small cases."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        return dict.fromkeys(SANITIZERS, "not run: there is no compute-sanitizer on the PATH")
    found = {}
    for tool in SANITIZERS:
        command = [program, "--tool", tool, sys.executable, "-m", "benchmarks.gpu", "--small"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        told = [line for line in run.stdout.splitlines() if line.startswith("=========")]
        found[tool] = (told or [f"ended with {run.returncode}"])[-1].strip("= ")
    return found


def facts_of(target: str) -> dict[str, str]:
    """The device, its driver and the date."""
    facts = getattr(device_of(target), "facts", None)
    return {
        "device": getattr(facts, "name", target),
        "driver": str(getattr(facts, "driver", "none")),
        "date": time.strftime("%Y-%m-%d"),
    }


def line(row: Row) -> str:
    peers = "".join(f"  {ms / row.milliseconds:5.2f} x {name}" for name, ms in row.peers.items())
    bar = f"  (bar {row.bar})" if row.bar and row.peers else ""
    work = (
        f"{row.gigaflops:9.0f} GFLOP/s"
        if row.gigaflops
        else f"{row.gigabytes_per_second:9.0f} GB/s"
    )
    wrong = "" if row.right else "  WRONG"
    calls = f"{row.call_milliseconds:9.4f} ms a call"
    return f"{row.name:<28}{row.milliseconds:10.4f} ms {calls} {work}{peers}{bar}{wrong}"


# ---------------------------------------------------------------- measuring


def measured(case: Case, target: str) -> Row:
    """Run a case on a device, and its peers where they are installed."""
    runs, result, sparse = prepared(case, target)
    device = device_of(target)

    def ours() -> None:
        for each in runs:
            each()
        device.synchronize()

    there = {name: tp.device(each, target) for name, each in case.operands.items()}

    def call() -> None:
        tp.evaluate(case.text, there, format=case.format)
        device.synchronize()

    milliseconds = least(ours)
    call_milliseconds = least(call)
    peers = {
        name: least(make(case.operands))
        for name, make in case.peers.items()
        if target != "cuda-emulated" and importlib.util.find_spec(name.partition(" ")[0])
    }
    moved = sum(bytes_of(each) for each in (*case.operands.values(), result))
    wanted = tp.evaluate(case.text, case.operands, format=case.format)
    right = (
        np.allclose(dense(result), dense(wanted), rtol=1e-3, atol=1e-3)
        if not sparse
        else (abs(result - wanted).max() <= 1e-3 * max(1.0, abs(wanted).max()))
    )
    seconds = milliseconds / 1e3
    flops = case.flops / seconds / 1e9
    times = milliseconds, call_milliseconds, moved / seconds / 1e9
    return Row(case.name, *times, flops, peers, case.bar, bool(right))


def prepared(case: Case, target: str) -> tuple[list[Callable[[], None]], Any, bool]:
    """The launches of a case, whose operands are on the device, and its result."""
    runs: list[Callable[[], None]] = []
    usual = DeviceCall.__call__

    def recorded(call: DeviceCall, *arguments: Any) -> Any:
        runs.append(call.function.prepared(*arguments).run)
        return usual(call, *arguments)

    with patch.object(DeviceCall, "__call__", recorded):
        result = tp.evaluate(case.text, case.operands, format=case.format, target=target)
    return runs, result, sp.issparse(result)


def least(run: Callable[[], object]) -> float:
    """The least milliseconds of a run that waits for its end."""
    run()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def bytes_of(operand: Any) -> int:
    if sp.issparse(operand):
        return int(operand.data.nbytes + operand.indices.nbytes + operand.indptr.nbytes)
    if isinstance(operand, tp.Tensor):
        levels = (a for level in operand.data.levels for a in (level.pos, level.crd))
        return int(operand.data.values.nbytes + sum(a.nbytes for a in levels if a is not None))
    return int(np.asarray(operand).nbytes)


def dense(result: Any) -> np.ndarray[Any, Any]:
    if isinstance(result, tp.Tensor):
        return result.to_numpy()
    return np.asarray(result.toarray() if sp.issparse(result) else result)


# ---------------------------------------------------------------- cases


def cases(small: bool) -> Iterator[Case]:
    rows = 300 if small else 1 << 20
    columns = 32 if small else 128
    rng = np.random.default_rng(0)
    kinds = {"uniform": uniform, "one heavy row": heavy, "power law": power_law}
    for (kind, make), bar in zip(kinds.items(), (1.0, 3.0, 1.2), strict=True):
        a = make(rng, rows)
        x = rng.random(rows, np.float32)
        yield Case(f"SpMV, {kind}", "y[i] = A[i,j] * x[j]", {"A": a, "x": x}, bar, CSR_TIMES)
    a = uniform(rng, rows // 8)
    dense_ = rng.random((a.shape[1], columns), np.float32)
    given = {"A": a, "X": dense_}
    flops = 2.0 * a.nnz * columns
    yield Case(f"SpMM {columns}", "Y[i,k] = A[i,j] * X[j,k]", given, 1.2, CSR_TIMES, flops)
    other = rng.random((a.shape[0], columns), np.float32)
    given = {"A": a, "U": other, "V": dense_}
    sampled = "C[i,j] = A[i,j] * U[i,k] * V[j,k]"
    yield Case(f"SDDMM {columns}", sampled, given, 1.2, SAMPLED, flops)
    left = uniform(rng, rows // 32, 16)
    product = "C[i,j] = A[i,k] * B[k,j]"
    yield Case("SpGEMM", product, {"A": left, "B": left.copy()}, 0.8, SQUARED)
    tensor, rank = cube(rng, 40 if small else 2048, rows // 4), 8 if small else 32
    factors = {n: rng.random((tensor.shape[0], rank), np.float32) for n in "BC"}
    yield Case(
        f"MTTKRP {rank}", "M[i,r] = T[i,j,k] * B[j,r] * C[k,r]", {"T": tensor, **factors}, 2.0
    )
    vector = rng.random(tensor.shape[2], np.float32)
    yield Case("TTV", "W[i,j] = T[i,j,k] * v[k]", {"T": tensor, "v": vector}, 2.0)
    n = 3000 if small else 1 << 26
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    yield Case("copy", "z[i] = x[i]", {"x": x}, None, COPIED)
    yield Case("triad", "z[i] = x[i] + 2 * y[i]", {"x": x, "y": y})
    yield Case("sum", "s = x[i]", {"x": x})
    n = 64 if small else 4096
    a, b = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
    yield Case(f"SGEMM {n}", "C[i,j] = A[i,k] * B[k,j]", {"A": a, "B": b}, 0.7, GEMM, 2.0 * n**3)


def uniform(rng: np.random.Generator, rows: int, entries: int = 32) -> sp.csr_array:
    """So many entries in each row."""
    columns = np.sort(rng.integers(0, rows, (rows, entries), np.int32), axis=1).ravel()
    starts = np.arange(0, rows * entries + 1, entries, dtype=np.int32)
    return unique(sp.csr_array((rng.random(columns.size, np.float32), columns, starts)))


def heavy(rng: np.random.Generator, rows: int) -> sp.csr_array:
    """One row with half of all entries."""
    lengths = np.full(rows, 8, np.int32)
    lengths[rows // 2] = rows - 1
    return of_lengths(rng, lengths, rows)


def power_law(rng: np.random.Generator, rows: int) -> sp.csr_array:
    """Rows whose lengths follow Zipf's law."""
    lengths = np.minimum(rng.zipf(1.7, rows), rows // 4).astype(np.int32)
    return of_lengths(rng, lengths, rows)


def of_lengths(rng: np.random.Generator, lengths: Any, columns: int) -> sp.csr_array:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    found = rng.integers(0, columns, int(starts[-1]), np.int32)
    values = rng.random(found.size, np.float32)
    return unique(sp.csr_array((values, found, starts), (len(lengths), columns)))


def unique(matrix: sp.csr_array) -> sp.csr_array:
    matrix.sum_duplicates()
    return matrix


def cube(rng: np.random.Generator, size: int, entries: int) -> tp.Tensor:
    """A tensor of order 3 with so many entries at random."""
    coords = list(rng.integers(0, size, (3, entries)))
    return tp.Tensor.from_coo(coords, rng.random(entries, np.float32), (size,) * 3, format="dss")


# ---------------------------------------------------------------- peers


def _cupy_csr_times(given: Operands) -> Callable[[], object]:
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    a, x = csr_matrix(sp.csr_matrix(given["A"])), cupy.asarray(given.get("x", given.get("X")))
    return _waiting_for_cupy(lambda: a @ x)


def _torch_csr_times(given: Operands) -> Callable[[], object]:
    import torch

    x = torch.as_tensor(given.get("x", given.get("X"))).cuda()
    a = _torch_csr(given["A"])
    return _waiting_for_torch(lambda: a @ x)


def _torch_sampled(given: Operands) -> Callable[[], object]:
    import torch

    a = _torch_csr(given["A"])
    u, v = (torch.as_tensor(given[name]).cuda() for name in "UV")
    return _waiting_for_torch(lambda: torch.sparse.sampled_addmm(a, u, v.T, beta=0.0))


def _cupy_squared(given: Operands) -> Callable[[], object]:
    from cupyx.scipy.sparse import csr_matrix

    a = csr_matrix(sp.csr_matrix(given["A"]))
    return _waiting_for_cupy(lambda: a @ a)


def _torch_copied(given: Operands) -> Callable[[], object]:
    import torch

    x = torch.as_tensor(given["x"]).cuda()
    z = torch.empty_like(x)
    return _waiting_for_torch(lambda: z.copy_(x))


def _torch_product(given: Operands) -> Callable[[], object]:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.as_tensor(given[name]).cuda() for name in "AB")
    return _waiting_for_torch(lambda: a @ b)


def _torch_csr(matrix: sp.csr_array) -> Any:
    import torch

    parts = (torch.as_tensor(each) for each in (matrix.indptr, matrix.indices, matrix.data))
    return torch.sparse_csr_tensor(*parts, size=matrix.shape).cuda()


def _waiting_for_cupy(run: Callable[[], object]) -> Callable[[], object]:
    import cupy

    def waiting() -> None:
        run()
        cupy.cuda.Device().synchronize()

    return waiting


def _waiting_for_torch(run: Callable[[], object]) -> Callable[[], object]:
    import torch

    def waiting() -> None:
        run()
        torch.cuda.synchronize()

    return waiting


CSR_TIMES = {"cupy": _cupy_csr_times, "torch": _torch_csr_times}
SAMPLED = {"torch": _torch_sampled}
SQUARED = {"cupy": _cupy_squared}
COPIED = {"torch": _torch_copied}
GEMM = {"torch": _torch_product}

if __name__ == "__main__":
    main()
