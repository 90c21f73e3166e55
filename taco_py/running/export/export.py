"""Export: the kernels of a plan as C or CUDA files beside the runtime header that they need."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from codegen.names import identifier, is_reserved, is_reserved_on_devices
from codegen.records import dataclass
from codegen.toolchain.compile_unit import RUNTIME_FOLDER
from codegen.toolchain.compiler import WITHOUT_MASKED_PAIRS, reads_pairs
from taco_py.compiler.driver import CompiledKernel, make_source
from taco_py.compiler.ways.recipe import Recipe
from taco_py.data.interop.in_order import satisfies
from taco_py.data.storage.pack import canonical
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import BoundError, FormatError, InternalError, OperandError
from taco_py.planner.ir.nodes import KernelStep, Locate, Reformat, TakeSide, TakeSize
from taco_py.planner.ir.plan import Plan
from taco_py.running.execute.assemble_result import known_order
from taco_py.running.execute.run import promise_broken_in
from taco_py.running.execute.transform import transformed
from taco_py.running.export import cuda_files
from taco_py.running.export.main_program import C, Language, program_text, used_words
from taco_py.running.export.prototype import Exported, header_text, release_text

RUNTIME = "taco_runtime.h"
MATHEMATICS = ("taco_math.h", "taco_elementary.h", "taco_polynomials.h")
"""Of scalar functions; beside kernels that call one of them. The first includes the others."""
MOST_VALUES = 100_000
"""So many numbers at most are written into a program."""

MARK = "/* Exported by tacopy, which overwrites this file when it exports here again. */"
"""The first line of each file."""

C_FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        """
        abort atexit atof atoi atol bsearch calloc clearerr div exit fclose feof ferror
        fflush fgetc fgets fopen fputc fputs fread freopen fscanf fseek ftell fwrite getc
        getchar getenv gets index labs lldiv memchr memcmp memmove perror putc putchar puts
        rand random read realloc remove rename rewind scanf select setbuf snprintf sprintf
        srand sscanf strcat strchr strcmp strcpy strlen strncat strncmp strncpy strstr
        strtod strtol strtok system time tmpfile truncate ungetc wait write y0 y1 yn j0 j1
        jn
        """,
    )
)
"""Functions of C's library that are no name for another."""

PRAGMAS = """\
#pragma GCC diagnostic ignored "-Wunused-parameter" /* functions of one kind share an interface */
#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* without it loops run on one thread */
#endif"""


@dataclass(frozen=True, slots=True)
class FileKind:
    """What files are written.

    suffix    of the kernels' and the program's
    language  of the program
    make      the text of a recipe's kernel under a name
    files     of kernels and their header
    runtime   the header that they need
    """

    suffix: str
    language: Language
    make: Callable[[Recipe, str], str]
    files: Callable[[str, tuple[Exported, ...]], dict[str, str]]
    runtime: str


def export(
    plan: Plan,
    compiled: tuple[CompiledKernel, ...],
    operands: Mapping[str, TensorData],
    folder: Path,
    name: str,
) -> tuple[Path, ...]:
    """Write a file for each kernel, `name`.h, main.c and the runtime header; their paths.

    The size of an index that is a factor is an operand of its kernel. Those of a GPU are .cu.

    operands  the example that main.c runs on

    Raises FormatError for a plan with steps that are not kernels, OperandError for a bad name or a
    large example, a file that would be lost, or a folder that cannot be written.
    """
    kind = _CUDA if plan.machine.is_gpu else _C
    kernels = exported(plan, compiled, name, kind)
    check_example(operands)
    numbers = (step for step in plan.steps if isinstance(step, TakeSize))
    sizes = {step.target: transformed(step, operands[step.source]) for step in numbers}
    operands = in_order(kernels, {**operands, **sizes})
    _check_names(kernels, used_words(kernels, operands, kind.language))
    files = kind.files(name, kernels)
    files[f"main{kind.suffix}"] = program_text(
        name, kernels, operands, kind.language, plan.program.results
    )
    files[kind.runtime] = (RUNTIME_FOLDER / kind.runtime).read_text()
    if kind is _C and any(f'"{MATHEMATICS[0]}"' in kernel.source for kernel in kernels):
        files |= {name: (RUNTIME_FOLDER / name).read_text() for name in MATHEMATICS}
    return write_files(folder, files)


def _c_files(name: str, kernels: tuple[Exported, ...]) -> dict[str, str]:
    """Return the C file of each kernel, and their header."""
    files = {f"{kernel.name}.c": _source(name, kernel) for kernel in kernels}
    if any(kernel.makes_arrays for kernel in kernels):
        files[f"{kernels[0].name}.c"] += f"\n{release_text(name)}"
    runtime = (RUNTIME_FOLDER / RUNTIME).read_text()
    files[f"{name}.h"] = header_text(name, kernels, _buffer_definition(runtime))
    return files


def write_files(folder: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the exported files, and replace earlier ones.

    Raises OperandError, and writes nothing, where a file is there that was not.
    """
    try:
        for path in (folder / file for file in files):
            _check_own(path)
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_text(f"{MARK}\n{text}")
    except (OSError, ValueError) as error:
        raise OperandError(
            f"Expected to make the files of {folder}, found {error}", hint="choose another folder"
        ) from error
    return tuple(folder / file for file in files)


def _check_own(path: Path) -> None:
    """Raise OperandError for something that was not exported before."""
    if path.exists() and not (path.is_file() and path.read_bytes().startswith(MARK.encode())):
        raise OperandError(
            f"Expected to make {path}, found a file that was not exported before",
            hint="choose another folder or name, or move that file away",
        )


def exported(
    plan: Plan, compiled: tuple[CompiledKernel, ...], name: str, kind: FileKind
) -> tuple[Exported, ...]:
    """Return each kernel of the plan with its text. Raises FormatError or OperandError."""
    is_identifier = isinstance(name, str) and identifier(name) == name and not is_reserved(name)
    if not is_identifier or (kind is _CUDA and is_reserved_on_devices(name)):
        raise OperandError(
            f"Expected a name for C functions, found {name!r}", hint='as in name="spmv"'
        )
    steps = plan.kernels
    for step in plan.steps:
        if not isinstance(step, KernelStep | TakeSize | TakeSide):
            what = "an operand is taken apart"
            if isinstance(step, Reformat | Locate):
                what = step.reason
            raise FormatError(
                f"Expected kernels that read their operands as they are stored and make the result "
                f"as it is wanted, found a step that makes {step.target} of {step.source}: {what}",
                hint="compile for operands and a result in the formats that the loops walk; "
                "explain() names them",
            )
    names = [name] if len(steps) == 1 else [f"{name}_{k}" for k in range(1, len(steps) + 1)]
    sides = {(s.source, s.number): s.target for s in plan.steps if isinstance(s, TakeSide)}
    return tuple(
        Exported(label, step, kernel, kind.make(kernel.recipe, label), _sides(step, sides))
        for label, step, kernel in zip(names, steps, compiled, strict=True)
    )


def _sides(step: KernelStep, names: Mapping[tuple[str, int], str]) -> dict[str, str]:
    """Return the tensors of the plan that a kernel's side results are, by their names in it."""
    return {
        side.target.tensor: names.get((step.target, number), f"{step.target}_side{number}")
        for number, side in enumerate(step.problem.side)
    }


def _check_names(kernels: tuple[Exported, ...], used: frozenset[str]) -> None:
    """Raise OperandError where a kernel's name means something else in the files.

    used  the words of main.c
    """
    for kernel in kernels:
        inside = len(re.findall(rf"\bint32_t {kernel.name}\(", kernel.source)) > 1
        if inside or kernel.name in used or kernel.name in C_FUNCTIONS:
            raise OperandError(
                f"Expected a name that means nothing else in the files, found {kernel.name}",
                hint=f'as in name="{kernel.name}_kernel"',
            )


def in_order(
    kernels: tuple[Exported, ...], operands: Mapping[str, TensorData]
) -> dict[str, TensorData]:
    """Return the operands, sorted and without duplicates where a kernel relies on it.

    Raises FormatError where it relies on it of what another kernel makes in any order.
    """
    sorted_operands = dict(operands)
    orders = {kernel.step.target: known_order(kernel.kernel, kernel.step) for kernel in kernels}
    for kernel in kernels:
        for tensor, ordered, unique in kernel.kernel.requirements:
            source = kernel.step.source(tensor)
            if source in sorted_operands and not satisfies(
                sorted_operands[source], ordered, unique
            ):
                sorted_operands[source] = canonical(sorted_operands[source])
            elif source in orders and not _suffices(orders[source], (ordered, unique)):
                raise FormatError(
                    f"Expected {source} with coordinates in order, found that a kernel makes them "
                    "in any order",
                    hint="export the parts of the expression one by one",
                )
    return sorted_operands


def _suffices(order: tuple[bool | None, bool | None], required: tuple[bool, bool]) -> bool:
    return all(bool(has) or not need for has, need in zip(order, required, strict=True))


def check_promises(plan: Plan, tensors: Mapping[str, TensorData]) -> None:
    """Raise BoundError where a bound of the schedule does not hold of operands made up for main.c;
    of those that are given, the program tells it."""
    for step in plan.kernels:
        broken = promise_broken_in(step, tensors) if step.schedule.bounds else None
        if broken is not None:
            raise BoundError(
                f"{broken.message}, of operands made up for main.c",
                hint='pass small ones of which it holds, as in export("folder", A=…)',
            )


def check_example(operands: Mapping[str, TensorData]) -> None:
    """Raise OperandError for an example that makes no readable program."""
    count = sum(data.values.size for data in operands.values())
    if count > MOST_VALUES:
        raise OperandError(
            f"Expected a small example for main.c, found {count} values",
            hint="leave the operands out, or pass small ones; the kernels take any sizes",
        )


def _source(name: str, kernel: Exported) -> str:
    """Return the kernel's text, which includes its own prototype."""
    include = f'#include "{RUNTIME}"'
    pragma = f"{WITHOUT_MASKED_PAIRS}\n" if reads_pairs(kernel.source) else ""
    more = f'{pragma}{include}\n\n#include "{name}.h"\n\n{PRAGMAS}'
    return kernel.source.replace(include, more, 1)


def _c_source(recipe: Recipe, name: str) -> str:
    return make_source(recipe, name).source


def _buffer_definition(runtime: str) -> str:
    """Return the definition of taco_buffer in the runtime header's text."""
    match = re.search(r"typedef struct \{[^{}]*\} taco_buffer;", runtime)
    if match is None:
        raise InternalError("The runtime header does not define taco_buffer")
    return match[0]


_C = FileKind(".c", C, _c_source, _c_files, RUNTIME)
_CUDA = FileKind(
    ".cu", cuda_files.CUDA, cuda_files.source_text, cuda_files.cuda_files, cuda_files.RUNTIME
)
