"""How fast are scalar functions over dense arrays, one by one and in chains of five?

The reference is NumPy, which makes an array of each function's results; `numexpr` computes blocks
that stay in the cache. Ours are kernels of the loop IR, of one pass over the arrays; what the rest
of the compiler does around them is not timed. On one and on two threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import OURS, REFERENCE, Contest, Record, records
from codegen.build import add, apply, block, const, div, load, minimum, mul
from codegen.emit.c import emit_c
from codegen.ir import Array, Declare, Expr, For, Function, LoopKind, Module, Storage, Store, Var
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.passes.order import run_passes
from codegen.runtime.kernel_cache import KernelCache, KernelSource
from codegen.runtime.signature import signature_of
from codegen.types import FLOAT32, FLOAT64, ScalarType

SIZE = 10_000_000
SMALL = 20_000  # elements that stay in the cache
BLOCK = 16_384
TARGET = Target(machine=Processor(vector_bytes=64), openmp=True)
KERNELS = KernelCache()
N = Var("n")
SINGLE = (
    "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tanh", "cbrt", "floor",
)  # fmt: skip
CHAINS: tuple[tuple[str, ...], ...] = (
    ("sin", "exp", "log1p", "sqrt", "tanh"),
    ("sqrt", "cos", "exp", "log1p", "tanh"),
    ("abs", "log1p", "expm1", "tanh", "exp"),
)
"""Functions of which each takes the results of the one before."""


def run() -> Iterator[Record]:
    return records("elementwise", contests())


def contests() -> Iterator[Contest]:
    rng = np.random.default_rng(0)
    for element in (FLOAT64, FLOAT32):
        x = rng.uniform(0.1, 4.0, SMALL).astype(element.name)
        for name in SINGLE:
            contenders = {REFERENCE: partial(in_turn, (name,), x), OURS: ours((name,), x, 1)}
            yield Contest(f"{name} {element} {SMALL}", contenders)
    x = rng.uniform(0.1, 4.0, SIZE)
    for names in CHAINS:
        for threads in (1, 2):
            contenders = {
                REFERENCE: partial(in_turn, names, x),
                f"numexpr {threads}": numexpr(names, x, threads),
                f"{OURS} {threads}": ours(names, x, threads),
            }
            yield Contest(f"{' '.join(reversed(names))} {SIZE}", contenders)


def in_turn(names: tuple[str, ...], x: Any) -> Any:
    for name in names:
        x = getattr(np, name)(x)
    return x


def numexpr(names: tuple[str, ...], x: Any, threads: int) -> Callable[[], Any]:
    import numexpr as ne

    text = "x"
    for name in names:
        text = f"{name}({text})"

    def compute() -> Any:
        ne.set_num_threads(threads)
        return ne.evaluate(text, {"x": x}, out=out)

    out = np.empty_like(x)
    return compute


def ours(names: tuple[str, ...], x: Any, threads: int) -> Callable[[], Any]:
    module = run_passes(Module((chain(names, FLOAT64 if x.itemsize == 8 else FLOAT32),)), TARGET)
    source = KernelSource(emit_c(module, TARGET), tuple(map(signature_of, module.functions)))
    call = KERNELS.get_or_build(source.source, lambda: source).kernel.functions["chain"]
    y = np.empty_like(x)

    def compute() -> Any:
        call(x, y, len(x), threads)
        return y

    return compute


def chain(names: tuple[str, ...], element: ScalarType) -> Function:
    """y[i] = f(…(x[i])), in blocks that threads share."""
    x, y = Array("x", element, Storage.INPUT), Array("y", element, Storage.OUTPUT)
    part, first, last, i = Var("part"), Var("first"), Var("last"), Var("i")
    value: Expr = load(x, i)
    for name in names:
        value = apply(name, value)
    body = block(
        Declare(first, mul(part, BLOCK), constant=True),
        Declare(last, minimum(add(first, BLOCK), N), constant=True),
        For(i, first, last, block(Store(y, i, value))),
    )
    parts = div(add(N, BLOCK - 1), BLOCK)
    loop = For(part, const(0), parts, body, kind=LoopKind.PARALLEL)
    return Function("chain", (x, y), (N,), block(loop), threaded=True)
