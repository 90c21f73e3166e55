"""The kernel cache: C text to callables, remembered in memory and on disk.

cache = KernelCache()
found = cache.get_or_build(key, make)     # make() -> KernelSource, called only when needed
found.kernel.functions["spmv"](pos, crd, vals, x, y, n)
found.hit                                 # "memory", "disk" or "built"
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from codegen.records import dataclass
from codegen.runtime.call import KernelCall, callables
from codegen.runtime.entry import entry_text
from codegen.runtime.host import Host, load_host
from codegen.runtime.host_functions import HOST_SIGNATURES
from codegen.runtime.job_runner import JOBS_KEY, JOBS_SIGNATURE, JOBS_TEXT, run_in_turn
from codegen.runtime.kernel_form import form_of
from codegen.runtime.memo import KnownArrays, Memo
from codegen.runtime.memory.memory_limit import MemoryLimit
from codegen.runtime.memory.memory_pool import Pool
from codegen.runtime.runtime_library import ARRAYS, PARTS, Part, load_part, parts_of
from codegen.runtime.shared_code import SharedCode
from codegen.runtime.signature import Signature, signature_from_json
from codegen.toolchain.compile_unit import (
    Unit,
    build_entry,
    complete,
    is_folder_trouble,
    moved_error,
)
from codegen.toolchain.compiler import Compiler, find_compiler, probe
from codegen.toolchain.compiler_notes import as_noted, write_compiler_note
from codegen.toolchain.entries import Entry
from codegen.toolchain.errors import CompileError, ToolchainError
from codegen.toolchain.processor import (
    core_count,
    cpu_identity,
    digest,
    python_abi,
    source_fingerprint,
)
from codegen.toolchain.store import Store
from codegen.toolchain.thread_limits import thread_limit
from codegen.toolchain.trial import Trial, TrialResult, try_out

T = TypeVar("T")
_PACKAGE = Path(__file__).parent.parent
MEMO_LIMIT = 2048
SIDE_BY_SIDE = 2
"""Kernels that are compiled at a time: more compilers would compete for memory and cores."""

_MATHEMATICS = re.compile(r"#include (<(math|complex)\.h>|\"taco_math\.h\")")


@dataclass(frozen=True, slots=True)
class KernelSource:
    """What is compiled: C text, the functions in it, and the caller's own facts, kept beside it.

    vectors  whether its work is written in vectors, so that the compiler need not look for any
    names    the variables of the text; kernels that differ in these names are compiled once
    shared   functions of the text that other kernels have too; they are compiled once
    """

    source: str
    signatures: tuple[Signature, ...]
    metadata: str = ""
    vectors: bool = False
    names: frozenset[str] = frozenset()
    shared: SharedCode | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LoadedKernel:
    """A compiled kernel in this process."""

    functions: Mapping[str, KernelCall]
    signatures: tuple[Signature, ...]
    source: str
    metadata: str
    library: Path


@dataclass(frozen=True, slots=True, eq=False)
class CachedKernel:
    """A kernel, where it came from ("memory", "disk" or "built"), and the seconds that took."""

    kernel: LoadedKernel
    hit: str
    seconds: float


class Derived(Protocol):
    """What is derived from kernels, and can be derived again."""

    def clear(self) -> None: ...


class Substitute(Protocol):
    """What kernels and routines are replaced by when they are loaded.

    cache_bytes  of the caches that kernels are made for, the nearest first; none for those here
    """

    @property
    def cache_bytes(self) -> tuple[int, ...]: ...

    def kernel(self, kernel: LoadedKernel) -> LoadedKernel: ...

    def routine(self, name: str, routine: KernelCall) -> KernelCall: ...


class KernelCache:
    """Kernels by key, in memory and in a folder.

    compiler  the compiler to use; by default the one found when it is first needed
    store     where entries are kept; by default in the user's cache folder
    sources   folders of the packages that generate kernels, whose edits make old kernels stale
    flags     more compiler flags

    `memory` says how much users allow. `known_arrays` are index arrays that were looked at. `told`
    is for what users tell callers for this process. `memo` is for what callers derive from kernels;
    it is cleared with them. What else is derived from them and holds a number of threads is
    `derived`.
    `substitute` is what kernels are replaced by when they are loaded, None for themselves.
    `host_functions` has those of the host by name, none before it is loaded.
    """

    def __init__(
        self,
        compiler: Compiler | None = None,
        store: Store | None = None,
        sources: tuple[Path, ...] = (),
        flags: tuple[str, ...] = (),
    ) -> None:
        self._compiler = compiler
        self._store = store if store is not None else Store()
        self._sources = (_PACKAGE, *sources)
        self._flags = flags
        self.memo = Memo(MEMO_LIMIT)
        self.told: dict[str, object] = {}
        self.memory = MemoryLimit()
        self.known_arrays = KnownArrays()
        self.substitute: Substitute | None = None
        self.derived: weakref.WeakSet[Derived] = weakref.WeakSet()
        self._most_threads: int | None = None
        self._default_threads: int | None = None
        self._kept_memory: int | None = None
        self._kernels: dict[str, LoadedKernel] = {}
        self._hosted: tuple[Host, Pool] | None = None
        self.host_functions: Mapping[str, KernelCall] = {}
        self._objects: dict[Part, Path] = {}
        self._environment: str | None = None
        self._own_sources: str | None = None
        self._background: threading.Thread | None = None
        self._renew_locks()
        if hasattr(os, "register_at_fork"):
            # A lock that another thread holds during a fork would never be released in the child.
            myself = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _renew_locks_of(myself()))

    @property
    def status(self) -> str:
        """Return one line: where kernels are kept, and why not elsewhere."""
        return self._store.status

    @property
    def home(self) -> Path:
        """Return the folder around the kernels' folder, for longer-lived files."""
        return self._store.home

    def tell(self, name: str, value: object) -> None:
        """Set a user's value for this process; discard results derived without it."""
        self.told[name] = value
        self.memo.clear()

    @property
    def compiler(self) -> Compiler:
        """Return the compiler. Raises NoCompilerError."""
        with self._lock:
            if self._compiler is None:
                self._compiler = as_noted(self._store, find_compiler())
            return self._compiler

    @property
    def pool(self) -> Pool:
        """Return the memory of results."""
        return self._get_host()[1]

    @property
    def run_jobs(self) -> KernelCall:
        """Run independent kernels on threads that share them (`codegen.runtime.job_runner`).

        Kernels with a substitute run one after another.
        """
        if self.substitute is not None:
            return run_in_turn
        call: KernelCall | None = self.memo.get(JOBS_KEY)
        if call is None:
            source = KernelSource(JOBS_TEXT, (JOBS_SIGNATURE,))
            kernel = self.get_or_build(JOBS_KEY, lambda: source).kernel
            call = self._get_host()[0].bind_together(kernel.functions[JOBS_SIGNATURE.name])
            self.memo.put(JOBS_KEY, call)
        return call

    def keep_memory(self, size: int | None) -> None:
        """Keep at most `size` bytes of released results; None for the default."""
        with self._host_lock:
            self._kept_memory = size
            if self._hosted is not None:
                self._hosted[1].limit(size)

    def clear_memory(self) -> None:
        """Give back the memory that is kept of results that are gone."""
        if self._hosted is not None:
            self._hosted[1].clear()

    def prepare(self) -> threading.Thread | None:
        """Load or compile the host and the array object in a thread.

        None where there can be no other thread. What may go wrong is found again, and raised, by
        whoever needs them.
        """
        return self._start(lambda: (self._get_host(), self._object(ARRAYS)))

    def _start(self, load: Callable[[], object]) -> threading.Thread | None:
        """Return the background thread, which begins with `load` unless there is one."""

        def run() -> None:
            with contextlib.suppress(ToolchainError, OSError):
                load()

        with self._lock:
            if self._background is None:
                background = threading.Thread(target=run)
                try:
                    background.start()
                except RuntimeError:  # as many threads as the system allows, or it is going down
                    return None
                self._background = background
            return self._background

    def get_or_build(self, key: str, make: Callable[[], KernelSource]) -> CachedKernel:
        """Return the kernel of `key`, which must determine the source of `make()`.

        Raises NoCompilerError, CompileError, or ToolchainError when nothing can be written at all.
        """
        start = time.perf_counter()
        kernel = self._kernels.get(key)
        if kernel is not None:
            return CachedKernel(kernel, "memory", time.perf_counter() - start)
        with self._one_at_a_time(key):
            kernel = self._kernels.get(key)
            if kernel is not None:
                return CachedKernel(kernel, "memory", time.perf_counter() - start)
            kernel, hit = self._load_or_build(key, make)
            self._kernels[key] = kernel
            return CachedKernel(kernel, hit, time.perf_counter() - start)

    def recall(self, key: Hashable, measure: Callable[[], T]) -> T:
        """Return the value of `measure`, cached under `key` in `memo`.

        One at a time: the times of two that run at once would be those of each other.
        """
        value: T | None = self.memo.get(key)
        if value is None:
            with self._timing:
                value = self.memo.get(key)
                if value is None:
                    value = measure()
                    self.memo.put(key, value)
        return value

    @property
    def cores(self) -> int:
        """Count how many threads a kernel may use: what the environment allows, unless it was said.

        The environment is read when the number is first needed.
        """
        if self._most_threads is not None:
            return self._most_threads
        if self._default_threads is None:
            self._default_threads = thread_limit()
        return self._default_threads

    def limit_threads(self, count: int | None) -> None:
        """Let kernels use at most `count` threads; None for the environment's limit.

        What was derived from kernels under another limit is forgotten.
        """
        self._most_threads = count
        self._default_threads = None
        self.memo.clear()
        for derived_ in tuple(self.derived):
            derived_.clear()

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags of `compile_with`."""
        return self._flags

    def compile_with(self, flags: tuple[str, ...]) -> None:
        """Compile with these flags, after all others, from now on.

        Kernels in memory that were compiled with other ones are forgotten.
        """
        if flags != self._flags:
            self._flags = flags
            self._kernels.clear()
            self.limit_threads(self._most_threads)

    def load_through(self, substitute: Substitute | None) -> None:
        """Let `substitute` replace kernels when they are loaded; None for no such.

        Kernels in memory are forgotten.
        """
        self.substitute = substitute
        self._kernels.clear()
        self.limit_threads(self._most_threads)

    def functions_of(
        self, library: Path, signatures: tuple[Signature, ...]
    ) -> Mapping[str, KernelCall]:
        """Return the functions of a shared object with the entry point of kernels. Raises
        OSError."""
        host, pool = self._get_host()
        return callables(host, pool, host.load(library), signatures)

    def find(self, key: str) -> LoadedKernel | None:
        """Return the kernel of `key` if it is in memory or on disk. Raises NoCompilerError."""
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._load_stored(self.full_key(key))
            if kernel is not None:
                self._kernels[key] = kernel
        return kernel

    def note(self, key: str) -> str | None:
        """Return the text kept under `key` for kernels like those made now, or None."""
        return self._store.note(self.full_key(key))

    def write_note(self, key: str, text: str) -> None:
        """Keep a small text that can be made again."""
        self._store.write_note(self.full_key(key), text)

    def text(self, key: str) -> str | None:
        """Return the text kept under `key` that follows from it and our sources alone, or None."""
        return self._store.note(self._text_name(key))

    def write_text(self, key: str, text: str) -> None:
        """Keep a text that no compiler and no processor has a part in."""
        self._store.write_note(self._text_name(key), text)

    def _text_name(self, key: str) -> str:
        with self._lock:
            if self._own_sources is None:
                self._own_sources = source_fingerprint(self._sources)
            return digest("text", key, self._own_sources)

    def try_out(self, source: str, trials: Sequence[Trial]) -> tuple[TrialResult, ...]:
        """Compile C text and call its functions on samples, in a process of its own.

        Nothing of it is kept. Raises NoCompilerError, CompileError, OSError.
        """
        with self._store.workplace() as place:
            try:
                return try_out(self.compiler, place, source, trials)
            except CompileError:
                if not self._probe():
                    raise
            return try_out(self.compiler, place, source, trials)

    def clear(self) -> None:
        """Forget every kernel, in memory and on disk, and the blocks kept for results."""
        with self._lock:
            self.memo.clear()
            self._kernels.clear()
            self._building.clear()
            self._objects.clear()
            self.clear_memory()
            self._store.clear()

    def load_unit(self, key: str, make: Callable[[], Unit]) -> Entry:
        """Return the output of the unit of `key`, which must determine it, from disk or compiled.

        Raises NoCompilerError, CompileError, or ToolchainError when nothing can be written at all.
        """
        full_key = self.full_key(key)
        entry = self._store.load(full_key)
        if entry is not None:
            return entry
        unit = make()
        return build_entry(self._store, full_key, self.compiler, unit, (), unit.files[0][1])

    def load_other(self, key: str, build: Callable[[Path], tuple[Path, str]], source: str) -> Entry:
        """Return the output of another compiler than C's for `source`, from disk or built.

        key    determines the output: it has the compiler, its flags and for what they compile
        build  makes the output in an empty folder, and facts that are kept with it

        Raises what `build` raises, or ToolchainError when nothing can be written at all.
        """
        entry = self._store.load(key)
        if entry is not None:
            return entry
        folder = self._store.folder
        try:
            return self._build_other(key, build, source)
        except OSError as error:
            self._store.retreat(folder, str(error))
            return self._build_other(key, build, source)

    def _build_other(
        self, key: str, build: Callable[[Path], tuple[Path, str]], source: str
    ) -> Entry:
        with self._store.workplace() as place:
            try:
                output, facts = build(place)
            except CompileError as error:
                raise moved_error(error, place, self._store.keep(place, key)) from None
            return self._store.store(key, output, source, facts)

    def full_key(self, key: str) -> str:
        """Return the key on disk: `key` with the compiler, its flags, the CPU, Python and our
        sources."""
        with self._lock:
            if self._environment is None:
                sources = source_fingerprint(self._sources)
                machine = (cpu_identity(), str(core_count()), python_abi())
                self._environment = digest(*machine, sources)
        compiler = self.compiler
        flags = "\n".join((compiler.openmp, *compiler.flags, *self._flags))
        if self.substitute is not None and self.substitute.cache_bytes:
            flags += f"\n{self.substitute.cache_bytes}"
        return digest(key, compiler.identity, flags, self._environment)

    # ---------------------------------------------------------------- loading

    def _load_or_build(
        self, key: str, make: Callable[[], KernelSource]
    ) -> tuple[LoadedKernel, str]:
        stored = self._load_stored(self.full_key(key))
        if stored is not None:
            return stored, "disk"
        with self._making:  # the first source is compiled while the second one is made
            source = make()
        built = self._build(key, source)
        try:
            return self._load(built), "built"
        except OSError as error:
            # a folder from which no program may be loaded
            self._store.retreat(built.library.parent, str(error))
        built = self._build(key, source)
        try:
            return self._load(built), "built"
        except OSError as error:
            raise ToolchainError(f"Expected to load {built.library}, found: {error}") from error

    def _load_stored(self, full_key: str) -> LoadedKernel | None:
        entry = self._store.load(full_key)
        if entry is not None:
            try:
                return self._load(entry)
            except (OSError, ValueError, KeyError, TypeError):
                self._store.forget(full_key)
        return None

    def _load(self, entry: Entry) -> LoadedKernel:
        facts = json.loads(entry.facts)
        signatures = tuple(signature_from_json(s) for s in facts["signatures"])
        functions = self.functions_of(entry.library, signatures)
        library, metadata = entry.library, facts["metadata"]
        kernel = LoadedKernel(functions, signatures, entry.source, metadata, library)
        return kernel if self.substitute is None else self.substitute.kernel(kernel)

    def _get_host(self) -> tuple[Host, Pool]:
        with self._host_lock:
            if self._hosted is None:
                host = load_host(self._store, lambda: self.compiler)
                pool = Pool(host, self._kept_memory, self.memory)
                self.host_functions = callables(host, pool, host.entry, HOST_SIGNATURES)
                self._hosted = (host, pool)
            return self._hosted

    def _renew_locks(self) -> None:
        self._lock = threading.RLock()
        self._host_lock = threading.Lock()  # held while the host is built, the other one never long
        self._timing = threading.Lock()  # held as long as something is measured
        self._building: dict[str, threading.Lock] = {}
        self._making = threading.RLock()  # held while the source of a kernel is made
        self._compilers = threading.BoundedSemaphore(SIDE_BY_SIDE)
        self._object_locks = {part: threading.Lock() for part in PARTS}
        self._background = None
        if self._hosted is not None:
            self._hosted[1].renew()

    # ---------------------------------------------------------------- building

    def _build(self, key: str, kernel: KernelSource) -> Entry:
        self._start(self._get_host)
        try:
            return self._compile(key, kernel)
        except CompileError as error:
            if is_folder_trouble(error) or not self._probe():
                raise
            return self._compile(key, kernel)

    def _compile(self, key: str, kernel: KernelSource) -> Entry:
        entry = entry_text("kernel.c", kernel.signatures)
        flags = self.compiler.flags_for(kernel.source, kernel.vectors)
        facts = {
            "metadata": kernel.metadata,
            "signatures": [s.to_json() for s in kernel.signatures],
        }
        key, text = self.full_key(key), json.dumps(facts)
        if not kernel.names:
            return self._compile_alone(key, kernel, entry, flags, text)
        form = self.full_key(digest("form", form_of(kernel.source, kernel.names), entry, *flags))
        with self._one_at_a_time(form):  # the others of its form wait for it
            twin = self._store.note(form)
            compiled = None if twin is None else self._store.load(twin)
            if compiled is not None:
                with contextlib.suppress(FileNotFoundError):  # another process has swept it since
                    return self._store.store(key, compiled.library, kernel.source, text)
            built = self._compile_alone(key, kernel, entry, flags, text)
            self._store.write_note(form, key)
            return built

    def _compile_alone(
        self, full_key: str, kernel: KernelSource, entry: str, flags: tuple[str, ...], facts: str
    ) -> Entry:
        """Compile a kernel of a new form, when there is room for one more compiler."""
        shared = kernel.shared
        source = kernel.source if shared is None else shared.declared(kernel.source)
        unit = Unit(
            (("entry.c", entry), ("kernel.c", source)),
            (*complete(), *self._flags),
            tuple(map(self._object, parts_of(kernel.source))),
            ("m",) if _MATHEMATICS.search(kernel.source) else (),
            make_late=None if shared is None else lambda: self._shared_object(shared),
        )
        with self._compilers:
            return build_entry(
                self._store, full_key, self.compiler, unit, flags, kernel.source, facts
            )

    def _shared_object(self, shared: SharedCode) -> Path:
        """Return the object of functions that kernels share, from disk or compiled.

        It needs no room for a compiler: whoever asks for it has some.
        """
        flags = (*self.compiler.flags_for(shared.source, True), *self._flags)
        key = self.full_key(digest("shared", shared.source, *flags))
        with self._one_at_a_time(key):
            compiled = self._store.load(key)
            if compiled is None:
                compiled = build_entry(
                    self._store, key, self.compiler, shared.unit, flags, shared.source
                )
            return compiled.library

    def _one_at_a_time(self, key: str) -> threading.Lock:
        """Return the lock that is held while the kernel or object of a key is made."""
        with self._lock:
            return self._building.setdefault(key, threading.Lock())

    def _object(self, part: Part) -> Path:
        """Return the object of `part`, from disk or compiled."""
        with self._object_locks[part]:
            path = self._objects.get(part)
            if path is None or not path.exists():
                key = self.full_key(part.macro)
                path = load_part(part, self._store, key, self.compiler, self._flags)
                self._objects[part] = path
            return path

    def _probe(self) -> bool:
        """Try the compiler's flags once after a failure; return whether they change."""
        compiler = self.compiler
        if compiler.probed:
            return False
        probed = probe(compiler)
        write_compiler_note(self._store, compiler, probed)
        with self._lock:
            self._compiler = probed
        return (probed.flags, probed.openmp) != (compiler.flags, compiler.openmp)


def _renew_locks_of(cache: KernelCache | None) -> None:
    if cache is not None:
        cache._renew_locks()
