"""The dataflow graph that a kernel of a problem is made from: built, rewritten, with prefetches."""

from __future__ import annotations

from dataclasses import replace

from taco_py.compiler.dataflow.build_dataflow import build
from taco_py.compiler.dataflow.moved_bytes import Caches
from taco_py.compiler.dataflow.optimize import Optimized, optimize
from taco_py.compiler.dataflow.pick_elements import pick_elements
from taco_py.compiler.dataflow.prefetch import with_prefetch
from taco_py.compiler.dataflow.slab_form import SlabForm
from taco_py.language.problem import Problem

NOMINAL_SIZE = 4096.0
NOMINAL_CACHES = Caches(float("inf"), 0.0)
"""A size of each index, and caches, that graphs are rewritten for: slabs stay near, arrays do not.
What is written past the caches is decided for the sizes of a call, by the kernel."""


def rewritten(problem: Problem, form: SlabForm) -> Optimized:
    """Return the dataflow graph of a problem after all rewrites, the same for all sizes."""
    sizes = dict.fromkeys(form.names, NOMINAL_SIZE)
    optimized = optimize(pick_elements(build(problem, form)), sizes, NOMINAL_CACHES)
    return replace(optimized, graph=with_prefetch(optimized.graph))
