"""Which libraries a call allows."""

from __future__ import annotations

from dataclasses import replace

from taco_py.arguments.options import CallOptions
from taco_py.compiler.driver import native_target
from taco_py.compiler.ways.library_choice import Libraries
from taco_py.compiler.ways.ways import generator, way_of
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.plan import Plan


def libraries_of(options: CallOptions, compiled: bool = False) -> Libraries | None:
    """Return the libraries that kernels with these options may call; see `Libraries.compiled`."""
    if not options.libraries or not options.is_native:
        return None

    def available(dtype: str) -> bool:
        from codegen.runtime.blas import available

        return available(dtype, options.threads)

    return Libraries(available, _narrower, compiled, options.often)


def _narrower() -> float:
    from codegen.runtime.blas import vector_bytes

    generated: int = native_target().processor.vector_bytes
    return max(1.0, generated / (vector_bytes() or generated or 1))


def without_libraries(plan: Plan) -> Plan:
    """Return the plan with generated code in place of libraries' routines."""
    program = plan.program
    for kernel in plan.kernels:
        program = program.with_kernel(_generated(kernel))
    return replace(plan, program=program)


def _generated(step: KernelStep) -> KernelStep:
    if way_of(step.schedule.make).lower is not None:
        return step
    return replace(step, schedule=step.schedule.with_way(generator(step.problem)), reason="")
