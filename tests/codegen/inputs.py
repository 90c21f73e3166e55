"""Arguments for the functions of `functions.py`, small and of every awkward shape."""

from __future__ import annotations

from typing import Any

import numpy as np

Arguments = tuple[dict[str, Any], dict[str, int]]
ROWS, COLUMNS = 5, 70


def csr(rng: np.random.Generator, rows: int, cols: int, most: int) -> tuple[Any, Any, Any]:
    """pos, crd, vals of a matrix whose rows have 0 to `most` entries."""
    counts = rng.integers(0, most + 1, rows)
    crd = [np.sort(rng.choice(cols, n, replace=False)) for n in counts]
    pos = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    flat = np.concatenate([*crd, []]).astype(np.int32)
    # Small integers are summed exactly in any order.
    return pos, flat, rng.integers(-9, 9, len(flat)).astype(float)


def arguments(name: str, seed: int) -> Arguments:
    """Arrays and scalars for the function called `name`."""
    rng = np.random.default_rng(seed)
    pos, crd, vals = csr(rng, ROWS, COLUMNS, 40)
    a = {"A2_pos": pos, "A2_crd": crd, "A_vals": vals}
    b_pos, b_crd, b_vals = csr(rng, COLUMNS, COLUMNS, 6)
    b = {"B2_pos": b_pos, "B2_crd": b_crd, "B_vals": b_vals}
    if name.startswith("spmm"):
        n = 32 if name == "spmm_32" else int(rng.choice([0, 1, 5, 37, 64]))
        dense = {"B_vals": whole(rng, COLUMNS * n), "C_vals": np.full(ROWS * n, 7.0)}
        return a | dense, {"n_i": ROWS, "n_k": n}
    if name == "mttkrp":
        return csf(rng)
    n = int(rng.choice([0, 1, 9, 40]))
    by_name: dict[str, Arguments] = {
        "dot": ({"x": whole(rng, n), "z": whole(rng, n), "y": np.zeros(1)}, {"n_i": n}),
        "spmv": (a | {"x": whole(rng, COLUMNS), "y": np.zeros(ROWS)}, {"n_i": ROWS}),
        "scatter": (a | {"y": np.zeros(COLUMNS)}, {"n_i": ROWS}),
        "row_append": (a | b | {"C2_pos": np.zeros(ROWS + 1, np.int32)}, {"n_i": ROWS}),
        "workspace": (a | b, {"n_j": COLUMNS}),
        "team": (a, {"n_i": ROWS, "n_j": COLUMNS}),
        "hashed": (a | {"out": np.zeros(ROWS * COLUMNS)}, {"n_i": ROWS, "n_j": COLUMNS}),
    }
    return by_name[name]


def csf(rng: np.random.Generator) -> Arguments:
    n_r = int(rng.choice([1, 6, 13]))
    pos2, crd2, _ = csr(rng, ROWS, COLUMNS, 3)
    pos3, crd3, vals = csr(rng, len(crd2), COLUMNS, 3)
    arrays = {"T2_pos": pos2, "T2_crd": crd2, "T3_pos": pos3, "T3_crd": crd3, "T_vals": vals}
    factors = {f"{name}_vals": whole(rng, COLUMNS * n_r) for name in "CD"}
    return arrays | factors | {"M_vals": whole(rng, ROWS * n_r)}, {"n_i": ROWS, "n_r": n_r}


def whole(rng: np.random.Generator, n: int) -> Any:
    return rng.integers(-9, 9, n).astype(float)
