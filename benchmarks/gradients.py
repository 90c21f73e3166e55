"""How long does the gradient with respect to a sparse matrix take, and how much memory?

The value and the gradient of ½ Σ (A X - T)² by the entries of A: 10⁵ × 10⁵ with 10⁶ entries; X and
T have 64 columns, float32. Ours is `tp.value_and_grad`. Torch takes part where it is installed: by
gathers and `index_add`, which autograd differentiates, and by hand with `sampled_addmm` of its
sparse CSR. The gradient of its `sparse.mm` makes a dense matrix of the size of A, 40 GB here, and
is run for 10⁴ rows alone. Peaks are those of a process of its own beyond its operands, as in
`memory.py`; contenders take turns, two threads.
"""

# ruff: noqa: N803, N806 - the names of the field
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Record, in_threads, in_turns, record
from benchmarks.processes import printed
from taco_py.tool.inputs import uniform

THREADS, COLUMNS = 2, 64
SIZES = (10_000, 100_000)
DENSE = 10_000  # rows up to which torch's own gradient of a sparse product is run
TOLERANCE = 1e-3
PROCESSES = 2
Operands = tuple[Any, Any, Any]
CODE = """
import ctypes, gc
from benchmarks import gradients
import taco_py as tp

def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024

tp.set_threads(gradients.THREADS)
make = gradients.CONTENDERS[{contender!r}]
compute = make(gradients.operands({rows}))
make(gradients.operands(1000))()
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
compute()
print((status("VmHWM") - before) / 1e6)
"""


def run() -> Iterator[Record]:
    with in_threads(THREADS):
        for rows in SIZES:
            yield from compared(rows)


def compared(rows: int) -> Iterator[Record]:
    """The times and peaks of all contenders on a matrix of so many rows."""
    given = operands(rows)
    name = f"{rows} rows, {given[0].nnz} entries, {COLUMNS} columns"
    known = {key: make for key, make in CONTENDERS.items() if takes_part(key, rows)}
    contenders = {key: make(given) for key, make in known.items()}
    notes = check(contenders)
    before = os.getloadavg()[0]
    for contender, seconds in in_turns(contenders, 10.0).items():
        note = f"load {before:.1f} {notes[contender]}".strip()
        yield record("gradients", name, contender, [1e3 * t for t in seconds], "ms", note)
    yield from peaks(name, known, rows)


def peaks(name: str, known: Mapping[str, Any], rows: int) -> Iterator[Record]:
    """The memory that each takes beyond its operands."""
    if not Path("/proc/self/clear_refs").exists():
        return
    for contender in known:
        code = CODE.format(contender=contender, rows=rows)
        samples = [printed(code) for _ in range(PROCESSES)]
        yield record("gradients", name, f"{contender}, peak", samples, "MB")


def operands(rows: int) -> Operands:
    rng = np.random.default_rng(0)
    A = sp.csr_array(uniform(rows, rows, 10)).astype(np.float32)
    A.sort_indices()
    X, T = (rng.standard_normal((rows, COLUMNS), np.float32) for _ in range(2))
    return A, X, T


def takes_part(contender: str, rows: int) -> bool:
    """Whether a contender is there, and has memory for so many rows."""
    if not contender.startswith("torch"):
        return True
    try:
        import torch
    except ImportError:
        return False
    torch.set_num_threads(THREADS)
    return contender != "torch sparse.mm" or rows <= DENSE


def check(contenders: Mapping[str, Callable[[], Any]]) -> dict[str, str]:
    """Compare the values of gradients at the entries of A, in order, with those of the first."""
    found = {name: np.asarray(compute()) for name, compute in contenders.items()}
    expected = next(iter(found.values()))
    scale = float(np.abs(expected).max())
    return {
        name: "" if np.allclose(each, expected, atol=TOLERANCE * scale) else "WRONG"
        for name, each in found.items()
    }


# ---------------------------------------------------------------- contenders


def by_hand(given: Operands) -> Callable[[], Any]:
    """SciPy's product, and the factors gathered for each entry."""
    A, X, T = given
    rows, columns = A.tocoo().coords

    def compute() -> Any:
        E = A @ X - T
        _ = 0.5 * (E * E).sum()
        return np.einsum("nk,nk->n", E[rows], X[columns])

    return compute


def loss(A: Any, X: Any, T: Any) -> Any:
    E = A @ X - T
    return 0.5 * (E * E).sum()


def ours(given: Operands) -> Callable[[], Any]:
    function = tp.value_and_grad(loss, wrt="A")
    return lambda: function(*given)[1].data


def by_gathers(given: Operands) -> Callable[[], Any]:
    import torch

    A, X, T = given[0].tocoo(), *map(torch.from_numpy, given[1:])
    rows, columns = (torch.from_numpy(each.astype(np.int64)) for each in A.coords)
    values = torch.from_numpy(A.data).requires_grad_()

    def compute() -> Any:
        values.grad = None
        H = torch.zeros_like(T).index_add(0, rows, values[:, None] * X[columns])
        (0.5 * ((H - T) ** 2).sum()).backward()
        return values.grad.numpy()

    return compute


def by_sparse_product(given: Operands) -> Callable[[], Any]:
    import torch

    A, X, T = given[0].tocoo(), *map(torch.from_numpy, given[1:])
    places = torch.from_numpy(np.stack(A.coords).astype(np.int64))
    S = torch.sparse_coo_tensor(places, torch.from_numpy(A.data), A.shape).coalesce()
    S.requires_grad_()

    def compute() -> Any:
        S.grad = None
        (0.5 * ((torch.sparse.mm(S, X) - T) ** 2).sum()).backward()
        return S.grad.coalesce().values().numpy()

    return compute


def by_sampled_product(given: Operands) -> Callable[[], Any]:
    import torch

    A, X, T = given[0], *map(torch.from_numpy, given[1:])
    parts = (torch.from_numpy(each) for each in (A.indptr, A.indices, A.data))
    S = torch.sparse_csr_tensor(*parts, size=A.shape)

    def compute() -> Any:
        E = S @ X - T
        _ = 0.5 * (E * E).sum()
        return torch.sparse.sampled_addmm(S, E, X.T, beta=0.0).values().numpy()

    return compute


CONTENDERS: Mapping[str, Callable[[Operands], Callable[[], Any]]] = {
    REFERENCE: by_hand,
    OURS: ours,
    "torch gathers": by_gathers,
    "torch by hand": by_sampled_product,
    "torch sparse.mm": by_sparse_product,
}
