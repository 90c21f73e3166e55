"""The pipeline: a recipe → a compiled kernel.

    lower (`ways`) → passes → emit → build

An existing routine is called unchanged. The kernel cache is searched first; on a hit none of the
stages is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from codegen.machine.target import TARGETS, Where
from codegen.records import dataclass
from codegen.runtime.kernel_cache import KernelCache
from codegen.runtime.signature import Parameter
from codegen.toolchain.errors import ToolchainError
from taco_py.compiler.lower.bindings import Bindings, Source, bindings_from_json, bindings_to_json
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, Routine
from taco_py.compiler.ways.ways import way_of
from taco_py.data.kernels import KERNELS, find_routine, routine_name
from taco_py.language.diagnostics.errors import CompilerError, DeviceError, InternalError, TacoError

if TYPE_CHECKING:
    from codegen.ir import Module
    from codegen.machine.target import Target
    from codegen.runtime.kernel_cache import KernelSource
    from codegen.runtime.shared_code import SharedCode


THREADS = 4
"""Threads that wait for kernels: two have compilers (`kernel_cache.SIDE_BY_SIDE`), of the others
one makes a source, and those of the form of another wait for that."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of explain() on one kernel.

    stored    indices of which a sparse result stores every coordinate
    launches  of the kernels of a GPU: their grids, blocks and shared memory
    blocks    the most threads of a block of each kernel of a GPU
    """

    concrete: str
    graph: str
    parallel: str
    workspaces: tuple[str, ...]
    tiles: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    launches: tuple[str, ...] = ()
    blocks: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CompiledKernel:
    """A kernel and the facts that its caller must know.

    parameters    the parameters of `call`, each with the source of its argument
    requirements  (tensor, ordered, unique): what must be true of operands' coordinates
    keys          the indices of each hash workspace, which are linearised in 64 bits
    covers        whether every element of a dense result is written, so that it need not be zero
                  before
    hit           "memory", "disk" or "built"; "routine" where nothing is compiled
    routine       the name of an existing function (`taco_py.data.kernels`), or ""
    arrays        the arrays that it allocates (`codegen.passes.local_arrays`)
    """

    recipe: Recipe
    call: Callable[..., Any]
    parameters: tuple[tuple[Parameter, Source | None], ...]
    requirements: tuple[tuple[str, bool, bool], ...]
    covers: bool
    keys: tuple[tuple[str, ...], ...]
    threaded: bool
    source: str
    report: Report
    hit: str
    seconds: float
    routine: str = ""
    arrays: tuple[tuple[str, bool, str], ...] = ()

    @property
    def checked(self) -> frozenset[str]:
        """Return the operands whose coordinates the kernel can check as it reads them."""
        sources = (source for _, source in self.parameters if source is not None)
        return frozenset(source.tensor for source in sources if source.what == "check")

    @property
    def target(self) -> str:
        """Return the target that the kernel runs on, as `target=` names it."""
        return self.recipe.target

    @property
    def is_native(self) -> bool:
        """Tell whether the kernel is a function of this process."""
        return TARGETS[self.recipe.target].where is Where.NATIVE

    @property
    def key(self) -> str:
        """Return the key under which a later process finds the kernel's function."""
        return self.routine or self.recipe.key


def compile_recipe(recipe: Recipe, cache: KernelCache = KERNELS) -> CompiledKernel:
    """Return the kernel of `recipe` from the cache, or compile it.

    Raises CompilerError when there is no compiler or it fails, InternalError for a fault of this
    package, and ScheduleError.
    """
    way = way_of(recipe.schedule.make)
    if way.routine is not None:
        return _routine_kernel(recipe, way.routine(recipe))
    target = TARGETS[recipe.target]
    if way.on_gpu != target.is_gpu:
        raise InternalError(f"Expected a kernel of {target.name}, found {recipe.schedule.make}")
    if target.where is not Where.NATIVE:
        return _device_kernel(recipe, target)
    try:
        cached = cache.get_or_build(recipe.key, lambda: _source(recipe))
    except ToolchainError as error:
        raise CompilerError(error.message, hint=error.hint) from error
    facts = json.loads(cached.kernel.metadata)
    bindings: dict[str, Source] = dict(bindings_from_json(facts["bindings"]))
    (signature,) = cached.kernel.signatures
    parameters = tuple((p, bindings.get(p.name)) for p in signature.parameters)
    call = cached.kernel.functions[signature.name]
    source = cached.kernel.source
    return _with_facts(recipe, call, parameters, facts, source, cached.hit, cached.seconds)


def compile_recipes(
    recipes: Sequence[Recipe], cache: KernelCache = KERNELS
) -> tuple[CompiledKernel, ...]:
    """Return the kernels of recipes; each distinct one is compiled once, some in parallel.

    Raises what `compile_recipe` raises, for the first recipe of which it does.
    """
    from codegen.toolchain.processor import core_count
    from codegen.toolchain.side_by_side import map_side_by_side

    by_parts: dict[tuple[int, int, str, str], int] = {}
    numbers: dict[Recipe, int] = {}
    places = []
    for recipe in recipes:
        # parts are equal more often than not
        parts = (id(recipe.problem), id(recipe.schedule), recipe.phase, recipe.target)
        if parts not in by_parts:
            by_parts[parts] = numbers.setdefault(recipe, len(numbers))
        places.append(by_parts[parts])
    workers = min(THREADS if core_count() > 1 else 1, len(numbers))
    kernels = map_side_by_side(lambda recipe: compile_recipe(recipe, cache), numbers, workers)
    return tuple(kernels[place] for place in places)


def _device_kernel(recipe: Recipe, target: Target) -> CompiledKernel:
    """Return the kernel of a recipe on a device. Raises DeviceError."""
    from taco_py.compiler.devices import DeviceCall

    begin = perf_counter()
    source, host, hit = _device_source(recipe)
    facts = json.loads(source.metadata)
    bindings: dict[str, Source] = dict(bindings_from_json(facts["bindings"]))
    (signature,) = source.signatures
    parameters = tuple((p, bindings.get(p.name)) for p in signature.parameters)
    promised = tuple(facts.get("promised", ()))
    call = DeviceCall(target.name, source.source, host, signature, promised)
    seconds = perf_counter() - begin
    return _with_facts(recipe, call, parameters, facts, source.source, hit, seconds)


def _device_source(recipe: Recipe) -> tuple[KernelSource, str, str]:
    """Return the CUDA of a recipe, its host's Python, and "memory", "disk" or "built".

    Raises DeviceError.
    """
    key = recipe.source_key
    source_and_host: tuple[KernelSource, str] | None = KERNELS.memo.get(key)
    if source_and_host is not None:
        return *source_and_host, "memory"
    text = KERNELS.text(key)
    if text is not None:
        source_and_host, hit = _decode_source(json.loads(text)), "disk"
    else:
        source_and_host, hit = make_device_source(recipe), "built"
        source, host = source_and_host
        signatures = [signature.to_json() for signature in source.signatures]
        KERNELS.write_text(key, json.dumps([source.source, signatures, source.metadata, host]))
    KERNELS.memo.put(key, source_and_host)
    return *source_and_host, hit


def _decode_source(entry: Sequence[Any]) -> tuple[KernelSource, str]:
    """Decode the entry that `_device_source` has written to the cache."""
    from codegen.runtime.kernel_cache import KernelSource
    from codegen.runtime.signature import signature_from_json

    source, signatures, metadata, host = entry
    return KernelSource(source, tuple(map(signature_from_json, signatures)), metadata), host


def make_device_source(recipe: Recipe, name: str = "") -> tuple[KernelSource, str]:
    """Return the text of `recipe`, through every stage, and the Python text of its host.

    Raises DeviceError for statements that kernels of devices do not compute.
    """
    from codegen.languages import LANGUAGES
    from codegen.passes.gpu.launch_notes import launch_notes
    from codegen.runtime.kernel_cache import KernelSource
    from codegen.runtime.signature import signature_of

    target = TARGETS[recipe.target]
    lowered = _lowered(recipe, target)
    module = _with_name(lowered.module, name or recipe.phase)
    emit_host = LANGUAGES[target.language].emit_host
    module, text, host = _device_texts(recipe, module, emit_host)
    bindings = bindings_to_json(_used(lowered.bindings, module))
    device_report = {
        "tiles": [],
        "launches": launch_notes(module, target.gpu.block_warps),
        "blocks": [(kernel.name, kernel.block) for kernel in module.kernels],
    }
    report = {**device_report, **lowered.facts["report"]}
    facts = {**lowered.facts, "bindings": bindings, "report": report, "threaded": False}
    signatures = tuple(signature_of(f) for f in module.exported)
    return KernelSource(text, signatures, json.dumps(facts), False), host


def make_cuda_program(recipe: Recipe, name: str) -> tuple[str, str]:
    """Return the kernels of `recipe` in CUDA, and the functions of its host, `name`, in C++.

    Functions that they call begin with `name` too, so that texts of several recipes make one
    program. Raises DeviceError as `make_device_source`.
    """
    from codegen.emit.host_cuda import emit_host_cuda

    module = _with_prefix(_with_name(_lowered(recipe, TARGETS[recipe.target]).module, name), name)
    _, text, host = _device_texts(recipe, module, emit_host_cuda)
    return text, host


def _device_texts(
    recipe: Recipe, module: Module, emit_host: Callable[[Module], str]
) -> tuple[Module, str, str]:
    """Return a module after passes, its kernels as text and its host as `emit_host` writes it."""
    from codegen.languages import LANGUAGES
    from codegen.machine.target import UnsupportedError
    from codegen.passes.order import run_passes

    target = TARGETS[recipe.target]
    try:
        module = run_passes(module, target)
        return module, LANGUAGES[target.language].emit(module, target), emit_host(module)
    except UnsupportedError as error:
        raise DeviceError(
            f"Expected what kernels of a GPU compute, found {recipe.problem}: {error}",
            hint="leave target= out to compute it on the CPU",
        ) from error


def _with_prefix(module: Module, prefix: str) -> Module:
    """Return the module with a prefix to the names of its internal functions:
    `prefix`_running_totals."""
    from codegen.ir import Invoke
    from codegen.tree import map_children

    new_names = {f.name: f"{prefix}_{f.name}" for f in module.functions if f.internal}

    def renamed(node: Any) -> Any:
        node = map_children(node, renamed)
        return (
            replace(node, function=new_names[node.function]) if isinstance(node, Invoke) else node
        )

    functions = (renamed(replace(f, name=new_names.get(f.name, f.name))) for f in module.functions)
    return replace(module, functions=tuple(functions))


def source_of(recipe: Recipe, name: str = "") -> str:
    """Return the text of a recipe's kernel in its target's language, C or CUDA."""
    if way_of(recipe.schedule.make).on_gpu:
        return make_device_source(recipe, name)[0].source
    return make_source(recipe, name).source


def _routine_kernel(recipe: Recipe, routine: Routine) -> CompiledKernel:
    """Return the kernel of a routine, for which nothing is compiled."""
    name = routine_name(routine.maker, routine.text)
    call, parameters = find_routine(name), routine.parameters
    kernel = _with_facts(recipe, call, parameters, routine.facts, routine.source, "routine", 0.0)
    return replace(kernel, routine=name)


def _with_facts(
    recipe: Recipe,
    call: Callable[..., Any],
    parameters: tuple[tuple[Parameter, Source | None], ...],
    facts: Mapping[str, Any],
    source: str,
    hit: str,
    seconds: float,
) -> CompiledKernel:
    """Return the kernel of a function, with the facts that its caller must know."""
    report = facts["report"]
    return CompiledKernel(
        recipe,
        call,
        parameters,
        tuple((str(t), bool(o), bool(u)) for t, o, u in facts["requirements"]),
        facts["covers"],
        tuple(tuple(indices) for indices in facts["keys"]),
        facts["threaded"],
        source,
        Report(
            report["concrete"],
            report["graph"],
            report["parallel"],
            tuple(report["workspaces"]),
            tuple(report.get("tiles", ())),
            tuple(report.get("stored", ())),
            tuple(report.get("launches", ())),
            tuple((str(name), int(block)) for name, block in report.get("blocks", ())),
        ),
        hit,
        seconds,
        arrays=tuple((str(n), bool(e), str(t)) for n, e, t in facts.get("arrays", ())),
    )


def _source(recipe: Recipe) -> KernelSource:
    """Return `make_source`; an error that is no refusal becomes an InternalError."""
    try:
        return make_source(recipe)
    except Exception as error:
        refusals = (TacoError, ToolchainError, MemoryError)
        if isinstance(error, refusals) and not isinstance(error, InternalError):
            raise
        from taco_py.language.diagnostics.report import internal_error

        raise internal_error("compile", f"{recipe.problem} | {recipe.schedule}", error) from error


def make_source(recipe: Recipe, name: str = "") -> KernelSource:
    """Return the text of `recipe`, through every stage: C, or another language called directly.

    name  of the function; the name of the phase where it is empty
    """
    from codegen.emit.abi import names_of
    from codegen.languages import LANGUAGES
    from codegen.passes.local_arrays import local_arrays
    from codegen.passes.notes import notes
    from codegen.passes.order import run_passes
    from codegen.runtime.kernel_cache import KernelSource
    from codegen.runtime.signature import signature_of

    target = replace(native_target(), language=TARGETS[recipe.target].language)
    lowered = _lowered(recipe, target)
    module = _with_name(run_passes(lowered.module, target), name or recipe.phase)
    report = {"tiles": notes(module, _loop_names(recipe)), **lowered.facts["report"]}
    bindings = bindings_to_json(_used(lowered.bindings, module))
    facts = {**lowered.facts, "bindings": bindings, "report": report}
    facts["arrays"] = local_arrays(module)
    signatures = tuple(signature_of(f) for f in module.exported)
    text = LANGUAGES[target.language].emit(module, target)
    shared = _shared_code(module, target)
    names = names_of(module)
    return KernelSource(text, signatures, json.dumps(facts), lowered.vectors, names, shared)


def _shared_code(module: Module, target: Target) -> SharedCode | None:
    """Return the functions of a kernel that others have too, None without any."""
    from codegen.languages import LANGUAGES
    from codegen.runtime.shared_code import SharedCode

    emit_shared = LANGUAGES[target.language].emit_shared
    source, declarations = ("", ()) if emit_shared is None else emit_shared(module, target)
    return SharedCode(source, declarations) if source else None


def _loop_names(recipe: Recipe) -> frozenset[str]:
    """Return the names of loops that the notation and the schedule have."""
    words = re.findall(r"\w+", str(recipe.schedule.on_loops))
    return frozenset((*(name for order in recipe.schedule.orders for name in order), *words))


def _lowered(recipe: Recipe, target: Target) -> LoweredRecipe:
    way = way_of(recipe.schedule.make)
    if way.lower is None:
        raise InternalError(f"Expected a way that generates code, found {recipe.schedule.make}")
    return way.lower(recipe, target)


def _with_name(module: Module, name: str) -> Module:
    """Return the module with its one exported function called `name`."""
    functions = (f if f.internal else replace(f, name=name) for f in module.functions)
    return replace(module, functions=tuple(functions))


def native_target() -> Target:
    """Return the machine that kernels are built for: with simulated caches where there are such."""
    from codegen.machine.cpu import Processor
    from codegen.machine.target import Target
    from codegen.toolchain.processor import cache_sizes, core_count, cpu_flags

    compiler = KERNELS.compiler
    substitute = KERNELS.substitute
    simulated = () if substitute is None else substitute.cache_bytes
    processor = Processor.of_flags(cpu_flags(), core_count(), simulated or cache_sizes())
    return Target(machine=processor, flags=compiler.flags, openmp=compiler.has_openmp)


def _used(bindings: Bindings, module: Any) -> Bindings:
    names = {p.name for f in module.functions for p in (*f.arrays, *f.scalars)}
    return tuple((name, source) for name, source in bindings if name in names)
