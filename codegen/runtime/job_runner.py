"""The kernel that runs jobs, each one call of another kernel, on threads that share them.

    kernel0(t0, a0, 1)
    kernel1(t1, a1, 1)    →    together(threads, kernel0, (t0, a0, 1), kernel1, (t1, a1, 1))

The jobs must not depend on each other, and each runs in one thread. `taco_together.c` opens their
arguments and calls the function below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import INT32, INT64

JOBS_KEY = "kernels side by side"
JOBS_TEXT = """
int32_t run_jobs(const void *given, int64_t count, int32_t threads)
{
    taco_job *jobs = (taco_job *)given;
    #pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++)
        jobs[i].status = jobs[i].entry(jobs[i].function, jobs[i].arguments);
    return 0;
}
"""
JOBS_SIGNATURE = Signature(
    "run_jobs",
    (
        Parameter("given", Kind.INPUT, INT64),
        Parameter("count", Kind.SCALAR, INT64),
        Parameter("threads", Kind.THREADS, INT32),
    ),
)


def run_in_turn(threads: int, *jobs: Any) -> None:
    """Run jobs, each a function and its arguments, one after another."""
    functions: tuple[Callable[..., Any], ...] = jobs[::2]
    for function, arguments in zip(functions, jobs[1::2], strict=True):
        function(*arguments)
