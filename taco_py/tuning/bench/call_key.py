"""The key of tuned plans that a computation over operands has. Nothing is planned for it."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.prepare import check_computation
from taco_py.data.kernels import KERNELS
from taco_py.tuning.store.fingerprint import target_here
from taco_py.tuning.store.problem_text import KeyedProblem
from taco_py.tuning.store.tuning_record import TuningKey, key_for


def key_of_call(computation: Computation) -> TuningKey:
    """Return the key of statements over numbers, as `compute` has them."""
    checked, options = check_computation(computation)
    elaborated, results = checked.elaborated, checked.statements.outputs.values()
    types = elaborated.types
    kinds = {n: f"{elaborated.kinds[n].kind} {elaborated.dtypes[n].name}" for n in results}
    problem = KeyedProblem(
        checked.source_assignments,
        {name: operand.operand for name, operand in checked.operands.items()},
        {name: (kind, types[name]) for name, kind in kinds.items()},
        {name: type for name, type in types.items() if name not in kinds},
        checked.squeezed,
        tuple(_option_lines(options)),
        options.static,
    )
    return key_for(problem, target_here(options.target))


def _option_lines(options: CallOptions) -> Iterator[str]:
    """Yield the options that plans depend on, a line each."""
    yield f"threads {options.threads or KERNELS.cores}"
    if options.format is not None:
        yield "format asked for"
    if not options.libraries:
        yield "no libraries"
    if options.path is not None:
        yield f"path {' '.join(','.join(map(str, step)) for step in options.path)}"
    for name, steps in sorted(options.paths):
        yield f"path of {name} {steps}"
    if not options.contract:
        yield "one kernel"
    if options.memory < inf:
        yield f"memory {options.memory:g}"
    yield from (f"forbid {name}" for name in sorted(options.forbid))
    yield from (f"allow {name}" for name in sorted(options.allow))
