"""Updates as one operation in CUDA: every operator and reducing function on every type that has it.

Thousands of threads update eleven elements of which no word is a thread's own.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.build import block, load, mod
from codegen.devices.emulated import EmulatedDevice
from codegen.devices.host_side import Host
from codegen.emit.cuda import emit_cuda
from codegen.emit.cuda_atomics import atomic_name
from codegen.infer import UPDATES
from codegen.ir import (
    Array,
    Assign,
    AtomicStore,
    Combine,
    Const,
    Declare,
    For,
    Kernel,
    LoopKind,
    Module,
    Storage,
    Store,
    Var,
)
from codegen.libraries.scalar_functions import CFunction, spelling_of
from codegen.machine.target import CUDA, UnsupportedError
from codegen.runtime.kernel_cache import KernelCache
from codegen.types import SCALARS, ScalarType
from tests.codegen.functions import N_I, I
from tests.codegen.interpreter import numpy_function
from tests.devices.nvcc import QUICK, as_one, check_compiles, needs_nvcc
from tests.devices.test_functions_of_devices import text_of

CELLS = 11
J = Var("j")
FUNCTIONS = ("minimum", "maximum", "fmin", "fmax", "hypot", "bitwise_and", "bitwise_or")
_NUMPY: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "min": np.minimum,
    "max": np.maximum, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "&&": np.logical_and, "||": np.logical_or,
}  # fmt: skip


def operators_of(element: ScalarType) -> list[str]:
    """The operators and functions that update elements of a type in one operation."""
    found = []
    for op in (*sorted(UPDATES), *FUNCTIONS):
        try:
            atomic_name(op, element)
        except UnsupportedError:
            continue
        found.append(op)
    return found


def kernels_of(element: ScalarType) -> str:
    """CUDA of a kernel `y[i % 11] op= x[i]` for each operator of a type."""
    x, y = Array("x", element, Storage.INPUT), Array("y", element, Storage.OUTPUT)
    kernels = []
    for number, op in enumerate(operators_of(element)):
        update = AtomicStore(y, mod(I, CELLS), load(x, I), op)
        body = block(For(I, Const(0), N_I, block(update), kind=LoopKind.GRID))
        kernels.append(Kernel(f"update_{number}", (x, y), (N_I,), body, 128))
    return emit_cuda(Module((), "", tuple(kernels)), CUDA)


def combining_kernels_of(element: ScalarType) -> str:
    """CUDA of a kernel for each operator of a type that combines values of a block."""
    x, y = Array("x", element, Storage.INPUT), Array("y", element, Storage.OUTPUT)
    value, threads = Var("value", element), LoopKind.THREADS
    kernels = []
    for number, op in enumerate(combining_operators_of(element)):
        body = block(
            Declare(value, load(x, Const(0))),
            For(I, Const(1), N_I, block(Assign(value, load(x, I), op)), kind=threads),
            Combine(value, op, threads),
            For(J, Const(0), Const(1), block(Store(y, J, value)), kind=threads),
        )
        kernels.append(Kernel(f"combine_{number}", (x, y), (N_I,), body, 128))
    return emit_cuda(Module((), "", tuple(kernels)), CUDA)


def combining_operators_of(element: ScalarType) -> list[str]:
    """Those whose order is open, but for other names of operators."""
    functions = [op for op in operators_of(element) if op in FUNCTIONS]
    other_names = [op for op in functions if not isinstance(spelling_of(op, element), CFunction)]
    return [op for op in operators_of(element) if op not in ("-", "/", *other_names)]


@pytest.mark.parametrize("element", SCALARS.values(), ids=str)
def test_threads_of_a_block_combine_what_they_have(element: ScalarType, cache: KernelCache) -> None:
    """Each of the threads begins with an identity, in the place of the first element."""
    device = EmulatedDevice(cache, seed=4)
    host = Host(device, device.load(combining_kernels_of(element)))
    for number, op in enumerate(combining_operators_of(element)):
        x = values_of(op, element, 500)
        x[0] = identity_of(op, x)
        y = np.zeros(1, element.name)
        there = host.array(y, "y", constant=False)
        host.launch(f"combine_{number}", 128, 128, (host.array(x, "x"), there, np.int64(len(x))))
        y = there.to_host()
        tolerance = 1e-5 if op == "hypot" and element.kind == "float" else 0
        np.testing.assert_allclose(
            y[0], reduced(op, x[0], x[1:]), rtol=tolerance, err_msg=f"{op} of {element}"
        )


def identity_of(op: str, values: Any) -> Any:
    """What changes no value; for operators that take a value once, one of the values."""
    if op in ("+", "^", "hypot", "||"):
        return 0
    return 1 if op in ("*", "&&") else values[7]


def values_of(op: str, element: ScalarType, size: int) -> Any:
    """Values whose reduction no order of them changes."""
    rng = np.random.default_rng(5)
    if element.kind == "bool":
        return rng.random(size) < (0.99 if op in ("*", "min", "&", "&&") else 0.01)
    if op in ("*", "/"):
        few = np.ones(size, element.name)
        few[rng.integers(0, size, 8)] = 2
        return few
    if element.is_integer:
        limits = np.iinfo(element.name)
        return rng.integers(limits.min, limits.max, size, element.name, endpoint=True)
    whole = rng.integers(-50, 50, size).astype(element.name)
    return whole + 1j * whole[::-1] if element.kind == "complex" else whole


@pytest.mark.parametrize("element", SCALARS.values(), ids=str)
def test_no_update_is_lost(element: ScalarType, cache: KernelCache) -> None:
    device = EmulatedDevice(cache, seed=3)
    module = device.load(kernels_of(element))
    host = Host(device, module)
    for number, op in enumerate(operators_of(element)):
        x = values_of(op, element, 2000)
        first = np.ones(CELLS, element.name) * (64 if op == "/" else 1)
        y = first.astype(element.name)
        there = host.array(y, "y", constant=False)
        host.launch(f"update_{number}", len(x), 128, (host.array(x, "x"), there, np.int64(len(x))))
        y = there.to_host()
        wanted = [reduced(op, first[k], x[k::CELLS]) for k in range(CELLS)]
        tolerance = (
            1e-5 if op in ("hypot", "*", "/") and element.kind in ("float", "complex") else 0
        )
        np.testing.assert_allclose(y, wanted, rtol=tolerance, err_msg=f"{op} of {element}")


def reduced(op: str, first: Any, values: Any) -> Any:
    function = _NUMPY.get(op) or numpy_function(op)
    if op == "/" and values.dtype.kind in "iu":
        function = np.floor_divide  # which is truncation of positive numbers
    if op == "-" and values.dtype.kind == "b":
        function = np.logical_xor
    with np.errstate(over="ignore"):
        return reduce(function, values, first.astype(values.dtype))


@needs_nvcc
def test_nvcc_accepts_functions_and_updates_of_all_types(tmp_path: Path) -> None:
    """For the older architecture: what later ones add is used by none of these texts."""
    makers = (text_of, kernels_of, combining_kernels_of)
    whole = as_one(make(element) for make in makers for element in SCALARS.values())
    check_compiles(whole, "sm_80", tmp_path, QUICK)
