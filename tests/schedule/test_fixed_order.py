"""Sums in a fixed order on a GPU: the same bits, in whatever order blocks and warps run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.devices.emulated import EmulatedDevice
from taco_py.compiler import devices
from taco_py.data.kernels import KERNELS

EMULATED: dict[str, Any] = {"target": "cuda-emulated"}
FIXED: dict[str, Any] = {**EMULATED, "forbid": "atomic_sums"}
RNG = np.random.default_rng(0)
A = sp.random_array((40, 50), density=0.3, format="csr", rng=RNG, data_sampler=RNG.standard_normal)
OPERANDS = {
    "A": A, "B": A.T.tocsr(), "R": A.tocsc(), "D": RNG.standard_normal((50, 40)),
    "x": RNG.standard_normal(50), "z": RNG.standard_normal(40), "v": RNG.standard_normal(3000),
    "f": RNG.standard_normal((50, 40)).astype("float32"),
}  # fmt: skip
SCATTERING = ("y[j] = A[i,j] * z[i]", "s = v[i] * v[i]")
TEXTS = (
    *SCATTERING,
    "y[k] = D[j,k]",
    "s = A[i,j] * A[i,j]",
    "y[i] = A[i,j] * x[j]",
    "y[i] = R[i,j] * x[j]",
    "Y[i,k] = A[i,j] * D[j,k]",
    "C[i,k] = A[i,j] * B[j,k]",
    "s = A[i,j] * D[j,i] * z[i]",
    "y[k] = f[j,k]",
    "y[j] = A[i,j] * z[i] + x[j]",
    "s = prod(i, v[i])",
    "Y[k,l] = D[j,k] * D[j,l]",
)


def bits(text: str, seed: int, asks: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What a kernel computes on a device whose units run in the order that a seed draws."""
    device = EmulatedDevice(KERNELS, seed=seed)
    monkeypatch.setattr(devices, "device_of", lambda target: device)
    monkeypatch.setattr(devices, "remembered", lambda key, make: make())
    given = {name: value for name, value in OPERANDS.items() if f"{name}[" in text}
    found = tp.evaluate(text, given, **asks)
    dense = found.toarray() if sp.issparse(found) else np.asarray(found)
    np.testing.assert_allclose(dense, tp.evaluate_dense(text, given), rtol=1e-4, atol=1e-12)
    return dense.tobytes()


@pytest.mark.parametrize("text", TEXTS)
def test_bits_are_the_same_each_run(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({bits(text, seed, FIXED, monkeypatch) for seed in range(4)}) == 1


EXTREMA = (
    "m[k] = max(j, Z[j,k])",
    "m[k] = min(j, Z[j,k])",
    "m[k] max= Z[j,k]",
    "m = min(j, k, Z[j,k])",
    "m[k] = argmax(j, Z[j,k])",
    "m[j] = max(i, S[i,j])",
)


@pytest.mark.parametrize("text", EXTREMA)
def test_extrema_need_no_order(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Atomic updates by them are allowed: zeros of both signs and NaN have the same bits too."""
    zeros = RNG.choice([0.0, -0.0], (50, 40))
    zeros[::7, 3] = np.nan
    zeros[4::9, 3] = -np.nan
    monkeypatch.setitem(OPERANDS, "Z", zeros)
    monkeypatch.setitem(OPERANDS, "S", A)
    found = {bits(text, seed, FIXED, monkeypatch) for seed in range(4)}
    assert len(found) == 1
    told = [str(tp.explain(text, Z=zeros, **asks)) for asks in (EMULATED, FIXED) if "Z" in text]
    shared = [[x for x in each.splitlines() if "concrete" in x or "forall" in x] for each in told]
    assert not told or "argmax" in text or shared[0] == shared[1]


def test_products_of_semirings_need_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = {**FIXED, "semiring": "min_plus", "format": "d"}
    found = set()
    for seed in range(3):
        device = EmulatedDevice(KERNELS, seed=seed)
        monkeypatch.setattr(devices, "device_of", lambda target, made=device: made)
        monkeypatch.setattr(devices, "remembered", lambda key, make: make())
        y = tp.evaluate("y[j] = D[i,j] * x[i]", D=OPERANDS["D"], x=OPERANDS["x"], **asks)
        found.add(np.asarray(y).tobytes())
    assert len(found) == 1
    np.testing.assert_allclose(y, (OPERANDS["D"] + OPERANDS["x"][:, None]).min(0))


def test_what_no_units_can_share_is_done_by_one_thread() -> None:
    """Where one operand gallops through the other, loops have commands already."""
    few = sp.random_array((6, 4000), density=0.0005, format="csr", rng=np.random.default_rng(1))
    many = sp.random_array((6, 4000), density=0.5, format="csr", rng=np.random.default_rng(2))
    asks = {**FIXED, "format": "d"}
    found = tp.evaluate("y[j] = F[i,j] * M[i,j]", F=few, M=many, **asks)
    np.testing.assert_allclose(found, (few * many).sum(0))
    told = str(tp.explain("y[j] = F[i,j] * M[i,j]", F=few, M=many, **asks))
    assert "gallop" in told and "one thread, which adds in the order of the text" in told


def test_user_schedules_may_update_by_extrema() -> None:
    schedule = "reorder(j,i), parallelize(j,CPUThread,Atomics)"
    found = tp.evaluate("y[i] = max(j, D[j,i])", D=OPERANDS["D"], schedule=schedule, **FIXED)
    np.testing.assert_array_equal(found, OPERANDS["D"].max(0))


def test_atomic_sums_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is what is asked here of the other test: that it could see a difference."""
    for text in SCATTERING:
        assert len({bits(text, seed, EMULATED, monkeypatch) for seed in range(4)}) > 1, text


def test_explain_says_what_it_costs() -> None:
    told = str(tp.explain("y[j] = A[i,j]", A=OPERANDS["A"], **FIXED))
    assert "but sums in any order" in told
    assert "but sums in any order" not in str(tp.explain("y[i] = 2 * x[i]", x=np.ones(3), **FIXED))
    for text in ("s = v[i] * v[i]", "y[j] = A[i,j] * z[i]", "s = A[i,j]"):
        given = {name: value for name, value in OPERANDS.items() if f"{name}[" in text}
        told = str(tp.explain(text, given, **FIXED))
        whole = re.search(r"expected  (\S+) s in kernels", told)
        own = re.search(r"one (?:block|thread)[^:]*: (\S+) µs expected", told)
        assert whole and own, told
        assert float(whole[1]) == pytest.approx(float(own[1]) * 1e-6, rel=0.05)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("y[i] = A[i,j] * x[j]", "reorder(j,i), parallelize(j,CPUThread,Atomics)"),
        (
            "y[i] = A[i,j] * x[j]",
            "fuse(i,j,f), pos(f,p,A), split(p,b,t,64), parallelize(b,GPUBlock,IgnoreRaces), "
            "parallelize(t,GPUThread,Atomics)",
        ),
    ],
)
def test_schedules_that_ask_for_atomic_sums_are_refused(text: str, schedule: str) -> None:
    dense = {"A": OPERANDS["D"].T.copy(), "x": OPERANDS["x"]}
    given = dense if "reorder" in schedule else {**dense, "A": A}
    with pytest.raises(tp.ScheduleError, match="sums in a fixed order") as refusal:
        tp.evaluate(text, given, schedule=schedule, **FIXED)
    assert "y" in refusal.value.message and refusal.value.hint


def test_on_the_cpu_schedules_alone_ask_for_them() -> None:
    given = {"D": OPERANDS["D"], "x": OPERANDS["x"]}
    text, schedule = "y[k] = D[j,k] * x[j]", "reorder(j,k), parallelize(j,CPUThread,Atomics)"
    with pytest.raises(tp.ScheduleError, match="sums in a fixed order"):
        tp.evaluate(text, given, schedule=schedule, forbid="atomic_sums")
    found = tp.evaluate(text, given, forbid="atomic_sums")
    np.testing.assert_allclose(found, OPERANDS["x"] @ OPERANDS["D"])


def test_integers_are_added_in_any_order() -> None:
    counts = np.arange(12).reshape(3, 4)
    schedule = "reorder(j,i), parallelize(j,CPUThread,Atomics)"
    found = tp.evaluate("y[i] = C[i,j]", C=counts, schedule=schedule, **FIXED)
    np.testing.assert_array_equal(found, counts.sum(1))
