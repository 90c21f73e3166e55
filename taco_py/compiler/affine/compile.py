"""A program and a plan for its loops → a compiled kernel.

statements → affine nest → plan (`polyhedral`) → loop IR → passes → C → build
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from codegen.records import dataclass
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.errors import ToolchainError
from taco_py.compiler.affine.lower import OperandType
from taco_py.compiler.affine.nest import Lowered
from taco_py.compiler.affine.statements import Placed
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import CompilerError

if TYPE_CHECKING:
    from codegen.machine.target import Target
    from codegen.runtime.kernel_cache import KernelSource
    from polyhedral.programs.program_plan import ProgramPlan

Argument = tuple[str, str, int]
"""The source of a parameter: ("values" | "number", tensor, 0), ("stride", tensor, mode),
("size", name, 0)."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledProgram:
    """A kernel, the sources of its arguments in order, and how it was built."""

    call: Callable[..., Any]
    arguments: tuple[Argument, ...]
    threaded: bool
    source: str
    hit: str
    seconds: float


def compile_program(
    statements: tuple[Placed, ...],
    lowered: Lowered,
    types: Mapping[str, OperandType],
    plan: ProgramPlan,
    target: Target,
    budget: int,
    cache: KernelCache = KERNELS,
) -> CompiledProgram:
    """Return the kernel from the cache, or compile it within `budget` operations of ISL (0: no
    limit).

    Raises CompilerError, and BudgetExceededError.
    """
    key = repr(("program", statements, lowered.nest, sorted(types.items()), plan.kernel_key))
    try:
        cached = cache.get_or_build(
            key, lambda: make_source(statements, lowered, types, plan, target, budget)
        )
    except ToolchainError as error:
        raise CompilerError(error.message, hint=error.hint) from error
    facts = json.loads(cached.kernel.metadata)
    (signature,) = cached.kernel.signatures
    return CompiledProgram(
        cached.kernel.functions[signature.name],
        tuple((str(w), str(n), int(at)) for w, n, at in facts["arguments"]),
        bool(facts["threaded"]),
        cached.kernel.source,
        cached.hit,
        cached.seconds,
    )


def make_source(
    statements: tuple[Placed, ...],
    lowered: Lowered,
    types: Mapping[str, OperandType],
    plan: ProgramPlan,
    target: Target,
    budget: int,
) -> KernelSource:
    """Return the C of a program, through every stage."""
    from codegen.emit.abi import names_of
    from codegen.emit.c import emit_c
    from codegen.ir import For as Loop
    from codegen.ir import Function, Module, Var
    from codegen.names import Names
    from codegen.passes.order import run_nest_passes, run_passes
    from codegen.runtime.kernel_cache import KernelSource
    from codegen.runtime.signature import signature_of
    from codegen.tree import find
    from polyhedral.programs.program_calls import product_calls
    from polyhedral.programs.program_loops import program_loops
    from taco_py.compiler.affine.affine_products import values_of_products
    from taco_py.compiler.affine.lower import bodies, lay_out

    names = Names()
    memory = lay_out(statements, types, names)
    sizes = {name: Var(names.fresh(name)) for name in lowered.nest.parameters}
    scalars = (*sizes.values(), *(var for var, _ in memory.scalars))
    operands = values_of_products(statements, memory, sizes)
    calls = product_calls(lowered.nest, plan.products, operands, sizes, names)
    all_bodies = {**bodies(statements, memory, sizes), **calls.bodies}
    used = {*(array.name for array in memory.arrays), *(var.name for var in scalars)}
    reserved = used | calls.names
    body = program_loops(lowered.nest, plan, all_bodies, sizes, reserved, budget)
    threaded = any(loop.is_parallel for loop in find(body, Loop))
    threaded = threaded or any(product.threaded for product in plan.products)
    function = Function("run", memory.arrays, scalars, body, threaded=threaded)
    (function,) = run_nest_passes(Module((function,)), target).functions
    inner = run_passes(Module(calls.functions), target).functions
    module = Module((*inner, function), header=_header(lowered, plan))
    sources: dict[str, Argument] = {var.name: ("size", name, 0) for name, var in sizes.items()}
    sources |= {var.name: source for var, source in memory.scalars}
    arrays = {data.array.name: name for name, data in memory.data.items() if data.array}
    sources |= {array: ("values", name, 0) for array, name in arrays.items()}
    parameters = (*(a.name for a in function.arrays), *(v.name for v in function.scalars))
    arguments = [sources[name] for name in parameters]
    facts = {"arguments": arguments, "threaded": threaded}
    text, signatures = emit_c(module, target), (signature_of(function),)
    return KernelSource(text, signatures, json.dumps(facts), names=names_of(module))


def _header(lowered: Lowered, plan: ProgramPlan) -> str:
    return f"{lowered.nest}\n\n{plan.outline}"
