"""Kernels of the loop IR to CUDA C++ that a person can follow.

    extern "C" __global__ void __launch_bounds__(256) evaluate_1(
        double *__restrict__ y_vals,
        const double *__restrict__ x_vals,
        int64_t n_i)
    {
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n_i;
             i += (int64_t)gridDim.x * blockDim.x) {
            y_vals[i] = 2.0 * x_vals[i];
        }
    }

The text is also GNU C but for a few names, which the emulated device defines.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from codegen.emit.c import WIDTH, header_comment
from codegen.emit.cuda_atomics import atomic_name
from codegen.emit.cuda_combining import combining_name
from codegen.emit.cuda_complex import complex_as_pairs
from codegen.emit.cuda_fetching import fetching_name
from codegen.emit.cuda_functions import definitions
from codegen.emit.cuda_runs import runs_name
from codegen.emit.expressions import PRECEDENCE, expression, widened
from codegen.emit.memory import INDENT, Dialect, Lines, Scope, indent
from codegen.emit.statements import body_lines, for_lines
from codegen.infer import called_functions
from codegen.ir import (
    AddRuns,
    Array,
    AtomicFetch,
    AtomicStore,
    Barrier,
    Block,
    Combine,
    Const,
    For,
    Kernel,
    LoopKind,
    Module,
    Storage,
    Table,
    Var,
)
from codegen.machine.target import Target, UnsupportedError
from codegen.names import Names, checked_names
from codegen.records import dataclass
from codegen.tree import find, walk
from codegen.variables import variables_read


@dataclass(frozen=True, slots=True)
class Unit:
    """Which iteration a thread begins with, and how far the next one is."""

    first: str
    step: str


def units_of(warp: int) -> dict[LoopKind, Unit]:
    """Return how the units of a GPU share the iterations of a loop.

    warp  threads of a warp
    """
    return {
        LoopKind.GRID: Unit(
            "(int64_t)blockIdx.x * blockDim.x + threadIdx.x", "(int64_t)gridDim.x * blockDim.x"
        ),
        LoopKind.BLOCKS: Unit("blockIdx.x", "gridDim.x"),
        LoopKind.WARPS: Unit(f"threadIdx.x / {warp}", f"blockDim.x / {warp}"),
        LoopKind.THREADS: Unit("threadIdx.x", "blockDim.x"),
        LoopKind.LANES: Unit(f"threadIdx.x % {warp}", str(warp)),
    }


def unit_of(loop: For, warp: int) -> Unit | None:
    """Return how units share a loop, None of one that each thread has for itself."""
    if not loop.width:
        return units_of(warp).get(loop.kind)
    if loop.kind is LoopKind.GROUPS:
        return Unit(f"threadIdx.x % {warp} / {loop.width}", str(warp // loop.width))
    return Unit(f"threadIdx.x % {loop.width}", str(loop.width))


def emit_cuda(module: Module, target: Target) -> str:
    """Return the CUDA source of a module's kernels. Raises UnsupportedError."""
    kernels = [_kernel(complex_as_pairs(kernel), target) for kernel in module.kernels]
    if not kernels:
        return ""
    called = definitions(kernels, called_functions(module), target.gpu)
    parts = (header_comment(module), "#include <stdint.h>", *called, *kernels)
    return "\n\n".join(part for part in parts if part) + "\n"


def _kernel(kernel: Kernel, target: Target) -> str:
    all_names = (n.name for n in walk(kernel) if isinstance(n, Var | Array | Table))
    names = Names(checked_names(all_names))
    checked_names((kernel.name,))
    dialect = Dialect(partial(_loop, block=kernel.block), _shared)
    body = body_lines(kernel.body, Scope(target, names, frozenset(), dialect))
    return "\n".join([*_prototype(kernel), "{", *indent(body), "}"])


def _prototype(kernel: Kernel) -> Lines:
    bounds = f"{kernel.block}, {kernel.group}" if kernel.group > 1 else str(kernel.block)
    head = f'extern "C" __global__ void __launch_bounds__({bounds}) {kernel.name}('
    parameters = [*map(_array, kernel.arrays), *(f"{v.type.c} {v.name}" for v in kernel.scalars)]
    line = f"{head}{', '.join(parameters)})"
    if len(line) <= WIDTH:
        return [line]
    *first, last = parameters
    return [head, *indent(f"{p}," for p in first), f"{INDENT}{last})"]


def _array(array: Array) -> str:
    const = "const " if array.storage is Storage.INPUT else ""
    return f"{const}{array.element.c} *__restrict__ {array.name}"


def _loop(loop: Any, scope: Scope, block: int) -> Lines:
    if not isinstance(loop, For):
        raise UnsupportedError(f"a kernel of CUDA has no {type(loop).__name__}")
    lines = _once_each(loop, scope, block)
    if lines:
        return ["{", *indent(lines), "}"]
    body = _body(loop.body, scope, block)
    unit = unit_of(loop, scope.target.gpu.warp_threads)
    if unit is None:
        return [*([f"#pragma unroll {loop.unroll}"] if loop.unroll else []), *for_lines(loop, body)]
    single = loop.start == Const(0) and loop.stop == Const(1) and loop.kind is not LoopKind.GRID
    if single and loop.var not in variables_read(loop.body):
        return [f"if ({unit.first} == 0) {{", *indent(body), "}"]
    var, start = loop.var, widened(loop.start, PRECEDENCE["+"])
    first = unit.first if start == "0" else f"{start} + {unit.first}"
    step = unit.step if loop.step == 1 else f"{loop.step} * ({unit.step})"
    if loop.step != 1:
        first = f"{start} + {loop.step} * ({unit.first})"
    begin = f"for ({var.type.c} {var.name} = {first};"
    test = f"{var.name} < {widened(loop.stop, PRECEDENCE['+'])};"
    head = f"{begin} {test} {var.name} += {step}) {{"
    if len(head) > WIDTH - 2 * len(INDENT):
        return [begin, f"     {test}", f"     {var.name} += {step}) {{", *indent(body), "}"]
    return [head, *indent(body), "}"]


def _body(body: Block, scope: Scope, block: int) -> Lines:
    """Return the lines of a loop's body; a loop of one round at its end needs no braces of its
    own."""
    *before, last = body.body or (Block(),)
    inner = _once_each(last, scope, block) if isinstance(last, For) else []
    return [*body_lines(Block(tuple(before)), scope), *inner] if inner else body_lines(body, scope)


def _once_each(loop: For, scope: Scope, block: int) -> Lines:
    """Return the loop body for units with at most one iteration each; nothing for other loops.

    Of groups of lanes there are as many as the loop has iterations at most.
    """
    unit = unit_of(loop, scope.target.gpu.warp_threads)
    declaration = f"const {loop.var.type.c} {loop.var.name} ="
    if unit is not None and _is_one_each(loop, block, scope.target.gpu.warp_threads):
        return [f"{declaration} {unit.first};", *_body(loop.body, scope, block)]
    if unit is None or loop.kind is not LoopKind.GROUPS or loop.step != 1:
        return []
    start = widened(loop.start, PRECEDENCE["+"])
    first = unit.first if start == "0" else f"{start} + {unit.first}"
    test = f"if ({loop.var.name} < {widened(loop.stop, PRECEDENCE['+'])}) {{"
    return [f"{declaration} {first};", test, *indent(_body(loop.body, scope, block)), "}"]


def _is_one_each(loop: For, block: int, warp: int) -> bool:
    """Tell whether each thread, warp or lane has exactly one iteration of a loop.

    Raises UnsupportedError where threads wait for each other in one of which that is not so.
    """
    counts = {LoopKind.THREADS: block, LoopKind.WARPS: block // warp, LoopKind.LANES: warp}
    units = counts.get(loop.kind)
    fixed = loop.kind in (LoopKind.WARPS, LoopKind.LANES) and not loop.width
    is_full = fixed or loop.units == block
    if is_full and units and (loop.start, loop.stop, loop.step) == (Const(0), Const(units), 1):
        return True
    waiting = (stmt.kind for stmt in find(loop.body, Barrier))
    if loop.kind is LoopKind.THREADS and LoopKind.THREADS in waiting:
        raise UnsupportedError("threads that wait for each other must have an iteration each")
    return False


def _atomic(stmt: AtomicStore, scope: Scope) -> Lines:
    place = f"&{stmt.array.name}[{widened(stmt.index)}]"
    return [f"{atomic_name(stmt.op, stmt.array.element)}({place}, {expression(stmt.value)});"]


def _fetch(stmt: AtomicFetch) -> Lines:
    """Return `const int32_t seen = taco_swap_i32(&keys[place], -1, j);`"""
    type, place = stmt.array.element, f"&{stmt.array.name}[{widened(stmt.index)}]"
    values = [operand for operand in (stmt.expected, stmt.value) if operand is not None]
    name = fetching_name("add" if stmt.expected is None else "swap", type)
    operands = ", ".join([place, *map(widened, values)])
    return [f"const {type.c} {stmt.var.name} = {name}({operands});"]


def _shared(stmt: Any, scope: Scope) -> Lines:
    """Return `t = taco_lanes_add_f64(t);`, `__syncwarp();`"""
    if isinstance(stmt, AtomicStore):
        return _atomic(stmt, scope)
    if isinstance(stmt, Barrier):
        return ["__syncwarp();" if stmt.kind is LoopKind.LANES else "__syncthreads();"]
    if isinstance(stmt, AtomicFetch):
        return _fetch(stmt)
    if isinstance(stmt, AddRuns):
        values = f"{expression(stmt.index)}, {expression(stmt.value)}"
        return [f"{runs_name(stmt.op, stmt.array.element)}({stmt.array.name}, {values});"]
    assert isinstance(stmt, Combine)
    name, units = stmt.var.name, f"{stmt.kind.value}{stmt.width or ''}"
    return [f"{name} = {combining_name(units, stmt.op, stmt.var.type)}({name});"]
