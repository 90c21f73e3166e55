"""Scalar functions in CUDA: each on each type against the kernel in C, on an emulated device.

All functions of a type are one text.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from codegen.build import apply, block, load
from codegen.devices.device import Module as Loaded
from codegen.devices.emulated import EmulatedDevice
from codegen.emit.c import emit_c
from codegen.emit.cuda import emit_cuda
from codegen.infer import type_of
from codegen.ir import Array, Const, For, Function, Kernel, LoopKind, Module, Storage, Store
from codegen.libraries.scalar_functions import FUNCTIONS, ScalarFunction, has_function
from codegen.machine.target import CUDA, Target
from codegen.passes.order import run_passes
from codegen.runtime.kernel_cache import KernelCache, KernelSource, LoadedKernel
from codegen.runtime.signature import signature_of
from codegen.types import SCALARS, ScalarType
from tests.codegen.functions import N_I, I
from tests.codegen.test_scalar_functions import EXACT, name_of, samples, size_of

CASES = [
    pytest.param(function, SCALARS[name], id=f"{function.name}-{name}")
    for function in FUNCTIONS.values()
    for name in function.spellings
]
NVCC = shutil.which("nvcc")
ULPS = 4


def functions_of(element: ScalarType) -> list[ScalarFunction]:
    return [f for f in FUNCTIONS.values() if has_function(f.name, element)]


def each(function: ScalarFunction, element: ScalarType, kind: LoopKind) -> tuple[Any, ...]:
    """The arrays and the loop of `y[i] = f(x_0[i], …)`."""
    sources = tuple(Array(f"x_{k}", element, Storage.INPUT) for k in range(function.arity))
    value = apply(function.name, *(load(source, I) for source in sources))
    target = Array("y", type_of(value), Storage.OUTPUT)
    return (*sources, target), block(
        For(I, Const(0), N_I, block(Store(target, I, value)), kind=kind)
    )


def text_of(element: ScalarType) -> str:
    """CUDA of a kernel for each function of a type."""
    kernels = []
    for function in functions_of(element):
        arrays, body = each(function, element, LoopKind.GRID)
        kernels.append(Kernel(name_of(function), arrays, (N_I,), body, 256))
    return emit_cuda(Module((), "", tuple(kernels)), CUDA)


@pytest.fixture(scope="module")
def in_c(cache: KernelCache) -> Callable[[ScalarType], LoadedKernel]:
    """The functions of one type in C."""
    target = Target(openmp=True)

    def build(element: ScalarType) -> LoadedKernel:
        functions = []
        for function in functions_of(element):
            arrays, body = each(function, element, LoopKind.SERIAL)
            functions.append(Function(name_of(function), arrays, (N_I,), body))
        module = run_passes(Module(tuple(functions)), target)
        source = KernelSource(emit_c(module, target), tuple(map(signature_of, module.functions)))
        return cache.get_or_build(f"device {element.name}", lambda: source).kernel

    return _once(build)


@pytest.fixture(scope="module")
def in_cuda(cache: KernelCache) -> Callable[[ScalarType], tuple[EmulatedDevice, Loaded]]:
    """The functions of one type on an emulated device."""

    def build(element: ScalarType) -> tuple[EmulatedDevice, Loaded]:
        device = EmulatedDevice(cache)
        return device, device.load(text_of(element))

    return _once(build)


def _once(build: Callable[[ScalarType], Any]) -> Callable[[ScalarType], Any]:
    return cache(build)


def on_device(
    where: tuple[EmulatedDevice, Loaded], function: ScalarFunction, element: ScalarType, *xs: Any
) -> Any:
    device, module = where
    found = np.zeros(len(xs[0]), function.result_type(element).name)
    buffers = [device.allocate(x.nbytes) for x in (*xs, found)]
    for buffer, x in zip(buffers, xs, strict=False):
        device.upload(buffer, x)
    blocks = -(-len(found) // 256)
    module.launch(name_of(function), blocks, 256, 0, [*buffers, np.int64(len(found))])
    device.download(buffers[-1], found)
    return found


def on_cpu(kernel: LoadedKernel, function: ScalarFunction, element: ScalarType, *xs: Any) -> Any:
    found = np.zeros(len(xs[0]), function.result_type(element).name)
    name = name_of(function)
    (signature,) = (s for s in kernel.signatures if s.name == name)
    kept = {p.name for p in signature.parameters}  # an argument may be of no use
    kernel.functions[name](*(x for k, x in enumerate(xs) if f"x_{k}" in kept), found, len(found))
    return found


@pytest.mark.rotating(6)
@pytest.mark.parametrize(("function", "element"), CASES)
def test_results_are_those_of_c(
    function: ScalarFunction,
    element: ScalarType,
    in_c: Callable[[ScalarType], LoadedKernel],
    in_cuda: Callable[[ScalarType], tuple[EmulatedDevice, Loaded]],
) -> None:
    arguments = samples(element, function.arity)
    found = on_device(in_cuda(element), function, element, *arguments)
    wanted = on_cpu(in_c(element), function, element, *arguments)
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
    elif element.kind == "complex" and found.dtype.kind == "c":
        assert_near_complex(function.name, arguments, found, wanted)
    else:
        exact = function.name in EXACT - {"power"}
        size = size_of(function.name, arguments, wanted)
        assert_near(arguments, found, wanted, 0 if exact else ULPS, size)


def assert_near(arguments: list[Any], found: Any, wanted: Any, ulps: float, size: Any) -> None:
    """Both NaN, both the same infinity, zeros of one sign, or few units in the last place apart.

    size  the number whose last place it is
    """
    with np.errstate(all="ignore"):
        apart = np.abs(found - wanted) / np.spacing(size)
    same = (found == wanted) & (np.signbit(found) == np.signbit(wanted))
    show(arguments, found, wanted, ~(same | (np.isnan(found) & np.isnan(wanted)) | (apart <= ulps)))


def assert_near_complex(name: str, arguments: list[Any], found: Any, wanted: Any) -> None:
    """Parts are both NaN, both infinite or both finite, and near as a whole.

    C leaves open which sign a part has beside a NaN; and powers, beyond moderate arguments, all.
    """
    eps, bad = np.finfo(wanted.dtype).eps, np.zeros(len(found), bool)
    with np.errstate(all="ignore"):
        open_signs = np.isnan(wanted) | np.isnan(arguments[0])
        close = ULPS * eps * np.abs(wanted).astype(float)
        if name == "power":
            close *= 1 + np.abs(arguments[1] * np.log(arguments[0]))
        for part, other in ((found.real, wanted.real), (found.imag, wanted.imag)):
            like = (np.signbit(part) == np.signbit(other)) | open_signs
            same = (np.abs(part) == np.abs(other)) & like | (np.isnan(part) & np.isnan(other))
            bad |= ~(same | (np.abs(part - other) <= close))
        if name == "power":
            bad &= np.isfinite(wanted) & np.all([np.abs(x) < 1e4 for x in arguments], axis=0)
    show(arguments, found, wanted, bad)


def show(arguments: list[Any], found: Any, wanted: Any, bad: Any) -> None:
    assert not bad.any(), (
        int(bad.sum()),
        [
            (*(x[bad][k] for x in arguments), found[bad][k], wanted[bad][k])
            for k in range(min(12, bad.sum()))
        ],
    )
