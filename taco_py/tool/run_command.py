"""What the command-line tool does: compile, print, write, run, time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from statistics import mean, median, pstdev
from time import perf_counter
from typing import Any

import numpy as np

from codegen.names import identifier, is_reserved
from codegen.records import dataclass
from taco_py.api.files import write
from taco_py.api.tensor import tensor
from taco_py.arguments.option_checks import check_threads
from taco_py.arguments.options import CallOptions
from taco_py.calls.kernels.draft import CompileArguments, Draft, draft
from taco_py.calls.kernels.kernel import Kernel, compile_draft
from taco_py.calls.statements.read_text import accumulated, read_statement
from taco_py.compiler.devices import device_of
from taco_py.compiler.driver import source_of
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.data.storage.files import check_suffix
from taco_py.data.storage.pack import to_dense
from taco_py.data.storage.sources import suffix
from taco_py.data.tensors.byte_counts import check_memory_limit
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DeviceError
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses, refuse_subscripts
from taco_py.language.notation.nodes import Assignment
from taco_py.language.phase import ASSEMBLE, COMPUTE, EVALUATE
from taco_py.tool.data import Declared, declared, generate, read_operands
from taco_py.tool.flags import CommandLine, UsageError

NEEDS_DATA = ("i", "g", "o", "O", "time", "write-time", "verify")
PRINTS = (
    "print-compute", "print-assembly", "print-evaluate", "print-kernels", "print-concrete",
    "print-iteration-graph", "print-schedule", "explain", "write-source", "write-compute",
    "write-assembly", "write-graph", "export", "c",
)  # fmt: skip
WRITES = ("write-source", "write-compute", "write-assembly", "write-graph", "write-time")
NOT_ON_GPU = ("print-compute", "print-assembly", "write-compute", "write-assembly")
"""What there is of kernels in C alone: those of a GPU make results as a whole."""
PHASES = {"compute": COMPUTE, "assembly": ASSEMBLE, "evaluate": EVALUATE}
TIMED = {
    "cuda": ", copies to and from the GPU included",
    "cuda-emulated": ", emulated: times of a GPU are others",
}
"""What else times are of."""
MOST_WORK = 10**7
"""Points of the dense iteration space beyond which a result is not verified."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A compiled expression with its operands, if they are needed.

    result  what the user calls the result, which in y += value is an operand too
    """

    line: CommandLine
    assignment: Assignment
    result: str
    kernel: Kernel
    operands: Mapping[str, Tensor]
    seconds: float


def run_tool(line: CommandLine) -> int:
    """Carry out the command line; return the exit status, 1 for a wrong result."""
    job = prepare(line)
    for text in texts(job):
        print(text)
    write_files(job)
    return evaluate(job) if job.line.has(*NEEDS_DATA) else 0


def prepare(line: CommandLine) -> Job:
    """Read, make up, compile. Raises what can go wrong with any of it."""
    target = target_of(line)
    check_prefix(line.last("prefix"))
    check_written(line)
    statement = read_statement(line.text).assignment
    refuse_subscripts(statement)
    result = statement.target.tensor
    assignment = accumulated(statement, {result: None})
    used = (statement.target, *accesses(assignment))
    check_orders(line, {access.tensor: len(access.indices) for access in used})
    read = read_operands(line, assignment)
    facts = declared(line, assignment, result, read)
    check_verifiable(line, facts.sizes)
    operands = {**read, **_filled(line, assignment, facts, read)}
    arguments: dict[str, Tensor | Format] = {**facts.formats, **operands}
    start = perf_counter()
    schedule = Schedule.parse(", ".join(line.all("s")))
    threads = check_threads(line.count("nthreads", None))
    limit = check_memory_limit(line.last("memory-limit") or None)
    options = CallOptions(schedule=schedule, threads=threads, target=target, memory_limit=limit)
    kernel = compiled(draft(line.text, CompileArguments(arguments, dict(facts.dtypes))), options)
    return Job(line, assignment, result, kernel, operands, perf_counter() - start)


def target_of(line: CommandLine) -> str:
    """Return the target that -cuda names.

    Raises UsageError for flags that go with the CPU alone, DeviceError where kernels are to run and
    something that they need is missing.
    """
    if not line.has("cuda"):
        return "c"
    device = line.last("cuda")
    if device not in ("", "emulated"):
        raise UsageError(f"Expected -cuda or -cuda=emulated, found -cuda={device}")
    for flag in NOT_ON_GPU:
        if line.has(flag):
            raise UsageError(
                f"Expected -{flag} without -cuda, for kernels of a GPU assemble and compute as one",
                hint="-print-evaluate and -write-source have them as a whole",
            )
    if line.has("nthreads"):
        raise UsageError(
            "Expected -nthreads without -cuda, for the threads of a GPU follow from loops",
            hint="split loops and share them: -help=scheduling",
        )
    target = f"cuda-{device}" if device else "cuda"
    if line.has(*NEEDS_DATA):
        device_of(target)  # before operands are read and made up
    return target


def compiled(drafted: Draft, options: CallOptions) -> Kernel:
    """Return the kernel. Raises UsageError where those of a GPU do not compute it."""
    try:
        return compile_draft(drafted, options)
    except DeviceError as error:
        raise UsageError(error.message, hint="leave -cuda out to compute it on the CPU") from error


def check_prefix(prefix: str) -> None:
    """Raise UsageError unless the names of functions may begin so."""
    for phase in PHASES.values():
        name = prefix + phase
        if identifier(name) != name or is_reserved(name):
            raise UsageError(
                f"Expected what names of C functions may begin with for -prefix, found {prefix!r}",
                hint="as in -prefix=spmv_",
            )


def check_written(line: CommandLine) -> None:
    """Raise UsageError or FileFormatError where a file cannot be written when all is computed."""
    tensors = [Path(text) for _, text in line.pairs("o")]
    for path in tensors:
        check_suffix(path)
    for folder in (Path(text or ".") for flag in ("O", "export") for text in line.all(flag)):
        above = next(path for path in (folder, *folder.parents) if path.exists())
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise UsageError(f"Expected a folder that can be written to, found {folder}")
    for path in (*tensors, *(Path(text) for flag in WRITES for text in line.all(flag))):
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"Expected a file that can be written, found {path}")


def check_orders(line: CommandLine, orders: Mapping[str, int]) -> None:
    """Raise UsageError where a tensor is to be written into a file that cannot hold its order."""
    for name, text in line.pairs("o"):
        can_hold = suffix(Path(text)) != ".mtx" or orders.get(name, 2) == 2
        if not can_hold or orders.get(name) == 0:
            raise UsageError(
                f"Expected a file that can hold {name}, a tensor of order {orders[name]}, found "
                f"{text}",
                hint="FROSTT files (.tns) hold any order but 0, Matrix Market files (.mtx) order 2",
            )
    scalars = [name for name, order in orders.items() if order == 0]
    if line.has("O") and scalars:
        raise UsageError(
            f"Expected tensors that .tns files can hold for -O, found the number {scalars[0]}",
            hint="write the others one by one, as in -o=A:A.tns",
        )


def check_verifiable(line: CommandLine, sizes: Mapping[str, int]) -> None:
    """Raise UsageError where a dense evaluation is asked for that would take too long."""
    work = prod(sizes.values())
    if line.has("verify") and work > MOST_WORK:
        raise UsageError(
            f"Expected sizes with a product of at most {MOST_WORK} for -verify, found {work}"
        )


def _filled(
    line: CommandLine, assignment: Assignment, facts: Declared, read: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the operands that are made up: those of -g, and all others where data is needed."""
    fills = line.values_of("g")
    if line.has(*NEEDS_DATA):
        fills = {**{name: "d" if form.is_dense else "s" for name, form in facts.formats.items()},
                 **fills}  # fmt: skip
    shapes = {a.tensor: tuple(facts.sizes[i] for i in a.indices) for a in accesses(assignment)}
    return {
        name: generate(name, fill, shapes[name], facts.formats[name], facts.dtypes[name])
        for name, fill in fills.items()
        if name in facts.dtypes and name not in read
    }


# ---------------------------------------------------------------- texts


def texts(job: Job) -> Iterator[str]:
    """Return the texts that are printed before anything is computed."""
    line, kernel = job.line, job.kernel
    if line.has("print-concrete"):
        yield "\n".join(function.report.concrete for function in kernel.compiled)
    if line.has("print-iteration-graph"):
        yield str(kernel.show())
    if line.has("print-schedule"):
        yield str(kernel.schedule)
    if line.has("explain"):
        yield kernel.explain()
    for name, phase in phases(line).items():
        default = name == "evaluate" and (line.has("c") or not line.has(*NEEDS_DATA, *PRINTS))
        if default or line.has(f"print-{name}", "print-kernels"):
            yield source(job, phase)


def phases(line: CommandLine) -> dict[str, str]:
    """Return the phases that kernels have, by their names in flags."""
    return {"evaluate": EVALUATE} if line.has("cuda") else PHASES


def source(job: Job, phase: str) -> str:
    """Return C or CUDA of the plan's kernels, the last one's in `phase`."""
    *before, last = [function.recipe for function in job.kernel.compiled]
    recipes = [*before, replace(last, phase=phase)]
    names = [f"{job.line.last('prefix')}{recipe.phase}" for recipe in recipes]
    if before:
        names = [f"{name}_{number}" for number, name in enumerate(names, 1)]
    return "\n".join(
        source_of(recipe, name).rstrip() + "\n" for recipe, name in zip(recipes, names, strict=True)
    ).rstrip()


def write_files(job: Job) -> None:
    """Write the files that need no computation."""
    line = job.line
    for path in line.all("write-source"):
        text = "\n\n".join(source(job, phase) for phase in phases(line).values())
        Path(path).write_text(text + "\n")
    for name, phase in phases(line).items():
        for path in line.all(f"write-{name}"):
            Path(path).write_text(source(job, phase) + "\n")
    for path in line.all("write-graph"):
        job.kernel.show().save(path)
    for path in line.all("export"):
        job.kernel.export(path, job.operands or None)


# ---------------------------------------------------------------- computing


def evaluate(job: Job) -> int:
    """Compute as often as is asked, print times, write tensors, verify."""
    line = job.line
    repeat = line.count("time", 1) or 1
    times: list[float] = []
    result: Any = None
    for _ in range(repeat):
        start = perf_counter()
        result = job.kernel(**dict[str, Any](job.operands))
        times.append((perf_counter() - start) * 1e3)
    if line.has("time"):
        print("\n".join(_time_lines(job, times)))
    figures = (job.seconds * 1e3, mean(times), pstdev(times), median(times))
    for path in line.all("write-time"):
        Path(path).write_text(",".join(f"{figure:.6g}" for figure in figures) + "\n")
    tensors = {**job.operands, job.result: tensor(result)}
    for name, path in line.pairs("o"):
        write(tensors[name], path)
    for folder in line.all("O"):
        Path(folder or ".").mkdir(parents=True, exist_ok=True)
        for name, output in tensors.items():
            write(output, Path(folder or ".") / f"{name}.tns")
    return verify(job, tensors[job.result]) if line.has("verify") else 0


def _time_lines(job: Job, times: list[float]) -> Iterator[str]:
    for name, operand in job.operands.items():
        shape = " x ".join(map(str, operand.shape)) or "scalar"
        yield f"{name}: {shape}, {operand.nnz} stored, {operand.format or 'scalar'}"
    yield f"Compile: {job.seconds * 1e3:.3f} ms"
    where = TIMED.get(job.kernel.options.target, "")
    best = f"{min(times):.6f} ms at best of {len(times)}"
    yield f"Compute: {best}, {median(times):.6f} ms median{where}"


def verify(job: Job, result: Tensor) -> int:
    """Compare with the oracle; 0 where they agree."""
    from taco_py.language.oracle import evaluate_dense

    dense = {name: to_dense(operand.data) for name, operand in job.operands.items()}
    expected = evaluate_dense(job.assignment, dense)
    right = bool(np.allclose(result.to_numpy(), expected, equal_nan=True))
    print("verified" if right else "WRONG: the result differs from a dense evaluation")
    return 0 if right else 1
