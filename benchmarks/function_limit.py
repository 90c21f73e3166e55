"""The time that evaluations of a function take where memory is none of it: a limit of kernels.

exp of 2**24 elements, by 2 threads  →  each thread: 2**12 times exp of 2048 elements in cache 1
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import Compute
from codegen.libraries.scalar_functions import CFunction, spelling_of
from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import FLOAT32, INT32, INT64
from taco_py.data.kernels import KERNELS

BLOCK = 2048
"""Elements that a thread evaluates again and again: 8 KB, and as many of results."""
_EVALUATE = """#include "taco_runtime.h"
#include <math.h>
#include "taco_math.h"

int32_t evaluate_near(
    const float *restrict x, float *restrict y, int64_t rounds, int32_t threads)
{
    #pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t round = 0; round < rounds; round++) {
        float block[BLOCK] __attribute__((aligned(64)));
        #pragma omp simd
        for (int64_t i = 0; i < BLOCK; i++)
            block[i] = FUNCTION(x[i]);
        __asm__ volatile("" : : "r"(block) : "memory");
        y[round] = block[0];
    }
    return 0;
}
"""
_SIGNATURE = Signature(
    "evaluate_near",
    (
        Parameter("x", Kind.INPUT, FLOAT32),
        Parameter("y", Kind.OUTPUT, FLOAT32),
        Parameter("rounds", Kind.SCALAR, INT64),
        Parameter("threads", Kind.THREADS, INT32),
    ),
)


def evaluations_of(function: str, count: int, threads: int) -> Compute:
    """`count` evaluations of a function of float32 in vector lanes, of elements in cache 1."""
    spelling = spelling_of(function, FLOAT32)
    assert isinstance(spelling, CFunction)
    text = _EVALUATE.replace("BLOCK", str(BLOCK)).replace("FUNCTION", spelling.name)
    source = KernelSource(text, (_SIGNATURE,))
    kernel = KERNELS.get_or_build(f"benchmark: {function} near", lambda: source).kernel
    rounds = -(-count // BLOCK)
    x = np.linspace(0.01, 4, BLOCK, dtype=np.float32)
    y = np.zeros(rounds, np.float32)
    return partial(kernel.functions[_SIGNATURE.name], x, y, rounds, threads)
