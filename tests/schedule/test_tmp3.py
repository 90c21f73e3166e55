from __future__ import annotations
from typing import Any
import numpy as np
import pytest
import scipy.sparse as sp
import taco_py as tp
from codegen.devices.launch_record import Launch
from tests.corpus.formats import store

RANDOM = np.random.default_rng(0)


def tensor(*shape, density=0.02):
    return RANDOM.integers(1, 9, shape) * (RANDOM.random(shape) < density) * 1.0


CUBE = tensor(60, 50, 40, density=0.1)
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "SDDMM": (
        "C[i,j] = S[i,j] * U[i,k] * V[j,k]",
        {
            "S": (tensor(200, 200), "ds"),
            "U": RANDOM.random((200, 128)),
            "V": RANDOM.random((200, 128)),
        },
        "ds",
    ),
    "SDDMM coo": (
        "C[i,j] = S[i,j] * U[i,k] * V[j,k]",
        {
            "S": (tensor(200, 200), "coo"),
            "U": RANDOM.random((200, 128)),
            "V": RANDOM.random((200, 128)),
        },
        "coo",
    ),
    "SDDMM dcsr": (
        "C[i,j] = S[i,j] * U[i,k] * V[j,k]",
        {
            "S": (tensor(200, 200), "ss"),
            "U": RANDOM.random((200, 128)),
            "V": RANDOM.random((200, 128)),
        },
        "ss",
    ),
    "scale": ("C[i,j] = 2 * S[i,j]", {"S": (tensor(300, 300, density=0.1), "ds")}, "ds"),
    "rows": (
        "C[i,j] = S[i,j]*a[i]",
        {"S": (tensor(300, 300, density=0.1), "ds"), "a": RANDOM.random(300)},
        "ds",
    ),
    "cols": (
        "C[i,j] = S[i,j]*a[j]",
        {"S": (tensor(300, 300, density=0.1), "ds"), "a": RANDOM.random(300)},
        "ds",
    ),
    "TTV": ("C[i,j] = S[i,j,k]*a[k]", {"S": (CUBE, "sss"), "a": RANDOM.random(40)}, "ss"),
    "TTV dss": ("C[i,j] = S[i,j,k]*a[k]", {"S": (CUBE, "dss"), "a": RANDOM.random(40)}, "ds"),
    "TTM": (
        "C[i,j,l] = S[i,j,k]*B[k,l]",
        {"S": (CUBE, "sss"), "B": RANDOM.random((40, 64))},
        "ssd",
    ),
    "MTTKRP": (
        "C[i,j] = S[i,k,l]*B[k,j]*D[l,j]",
        {"S": (CUBE, "sss"), "B": RANDOM.random((50, 64)), "D": RANDOM.random((40, 64))},
        "sd",
    ),
    "half": ("C[i] = S[i,j]*x[j]", {"S": (tensor(60, 500), "ss"), "x": RANDOM.random(500)}, "s"),
    "add": (
        "C[i,j] = S[i,j]+T[i,j]",
        {"S": (tensor(300, 300, density=0.1), "ds"), "T": (tensor(300, 300, density=0.1), "ds")},
        "ds",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_x(name, launches):
    text, ops, form = CASES[name]
    given = {n: store(*o) if isinstance(o, tuple) else o for n, o in ops.items()}
    dense = {n: o[0] if isinstance(o, tuple) else o for n, o in ops.items()}
    found = tp.evaluate(text, given, format=form, target="cuda-emulated")
    e = tp.evaluate_dense(text, **dense)
    cpu = tp.evaluate(text, given, format=form)
    np.testing.assert_allclose(found.to_numpy(), e)
    print(found.nnz if hasattr(found, "nnz") else "", cpu.nnz)
    for l in launches:
        print(l.kernel, l.sectors / l.ideal_sectors, l.sectors, l.imbalance, l.shape)
    s = sum(l.sectors for l in launches)
    i = sum(l.ideal_sectors for l in launches)
    print("=====", name, round(s / i, 3), s, i)
    t = str(tp.explain(text, given, format=form, target="cuda-emulated"))
    print(
        "\n".join(
            x
            for x in t.splitlines()
            if "cuda_emul" in x
            or " not " in x
            or "inserted" in x
            or "counted" in x
            or "concrete" in x
            or "forall" in x
            or "parallel" in x
        )[:1500]
    )
