"""The axes of a kernel: a table of functions from a kernel to options, a line with a reason each.

    share       which loop threads share, and by which strategy; ranges of entries in its place
    tile        a loop in strips that run outermost
    inner loop  unrolled, or in the lanes of a vector
    threads     how many run the kernel
    merge       how operands meet
    assembly    how a sparse result is assembled
    workspace   a part of a product first, in a row
    way         register tiles of other sizes, stages, a library's routine, loops

Options that a kernel's loops do not allow are left out, by the checks of the commands themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from math import inf

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Assembly, Merge, Race
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.schedule.commands import (
    Assemble,
    Command,
    Make,
    MergeBy,
    Parallelize,
    Precompute,
    Reorder,
    Serial,
    Threads,
    Unroll,
    Vectorize,
)
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.library_choice import Libraries
from taco_py.compiler.ways.way import Question
from taco_py.compiler.ways.ways import WAYS, way_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.stored import is_full, is_sparse, sparse_indices_of
from taco_py.language.legal.types import computes_exactly
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call, Expr, Reduce
from taco_py.language.notation.operators import MUL
from taco_py.language.provenance.relations import Fuse, Pos, Split
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.running.plan_texts.fitted_plan import check_loops
from taco_py.tuning.space.axis import AS_PLANNED, KERNEL, Axis, Option

SHARED_LOOPS = 2
"""The outermost loops that threads may share."""
CHUNKS = (16, 64, 256, 1024)
"""Iterations of a tile that threads take whole."""
ENTRIES = (512, 4096, 32768)
"""Entries of a tile of positions."""
STRIPS = (16, 64, 256, 1024)
"""Coordinates of a strip that runs outermost."""
UNROLLS = (2, 4, 8)


def edited(step: KernelStep, options: tuple[Option, ...]) -> KernelStep:
    """Return the kernel with the options in its schedule: what derives loops, what was planned and
    is not replaced, then what marks loops.

    loops(i,j), mergeby(j,Gallop)   share = serial()   →   loops(i,j), mergeby(j,Gallop), serial()
    """
    drops = tuple(kind for option in options for kind in option.drops)
    make = next((o.make for o in reversed(options) if o.make is not None), step.schedule.make)
    remaining = tuple(c for c in step.schedule.on_loops.commands if not isinstance(c, drops))
    derive = tuple(c for option in options for c in option.derive)
    mark = tuple(c for option in options for c in option.mark)
    if not way_of(make).in_loops:  # it runs no loops that commands could be about
        derive, remaining, mark = (), (), tuple(c for c in mark if isinstance(c, Serial))
    nests, way = Schedule.of_orders(step.schedule.orders), Schedule().with_way(make)
    team = tuple(o.threads for o in options if o.threads is not None)
    team = team or tuple(c for c in step.schedule.commands if isinstance(c, Threads))
    schedule = nests.then(way).then(Schedule((*team, *derive, *remaining, *mark)))
    reason = step.reason if make == step.schedule.make else ""
    return replace(step, schedule=schedule, reason=reason)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What kernels may use: routines of libraries, and so many threads; and how large they are.

    libraries  None where none may be called

    sizes, entries  of the indices and of the operands of the kernel, by their names in it
    """

    libraries: Libraries | None
    threads: int
    sizes: Mapping[str, float] = field(default_factory=dict)
    entries: Mapping[str, float] = field(default_factory=dict)

    def for_kernel(self, step: KernelStep, facts: Mapping[str, Operand]) -> Allowed:
        """Return the same with the sizes of a kernel of a program with these facts."""
        operands = {name: facts[step.source(name)] for name, _ in step.problem.operands}
        sizes = {i: float(operands[name].shape[mode]) for i, name, mode in step.sizes}
        return replace(self, sizes=sizes, entries={n: o.nnz for n, o in operands.items()})

    def tiles(self, index: str, sizes: tuple[int, ...]) -> Iterator[int]:
        """Yield the sizes of tiles of which an index has two at least."""
        extent = self.sizes.get(index, inf)
        return (size for size in sizes if 2 * size <= extent)


def axes_of_kernel(step: KernelStep, allowed: Allowed) -> tuple[Axis, ...]:
    """Return the axes of a kernel that have more than one option."""
    axes = []
    for name, options in TABLE:
        legal = tuple(option for option in options(step, allowed) if _is_legal(step, option))
        if legal:
            axes.append(Axis(f"{KERNEL}{step.target}: {name}", (AS_PLANNED, *legal)))
    return tuple(axes)


def _is_legal(step: KernelStep, option: Option) -> bool:
    """Tell whether the kernel's loops allow an option by itself, and are others by it."""
    variant = edited(step, (option,))
    if variant.schedule == step.schedule:
        return False
    if option.threads is not None:
        return True
    try:
        check_loops(variant)
    except ScheduleError:
        return False
    return True


def _loops(step: KernelStep) -> tuple[str, ...]:
    """Return the loops of the only term, outermost first; none of several terms, or of other
    ways."""
    orders = step.schedule.orders
    loops = way_of(step.schedule.make).in_loops and not step.schedule.shapes
    return orders[0] if len(orders) == 1 and loops else ()


# ---------------------------------------------------------------- threads


def _share(step: KernelStep, allowed: Allowed) -> Iterator[Option]:
    """Yield one thread; or a loop by a strategy, for sums that are rounded alike for any number of
    threads."""
    yield Option("serial()", "serial", mark=(Serial(),), drops=(Parallelize,))
    loops = _loops(step)
    for index in loops[:SHARED_LOOPS]:
        place = f"loop {loops.index(index)}"
        for race in _races(step):
            command = Parallelize(index, race)
            yield _marking(command, f"share {place} {race.value}")
    for index in loops[:1]:
        yield from _in_chunks(index, allowed)
        yield from _by_entries(step, loops, allowed)


def _races(step: KernelStep) -> Iterator[Race]:
    """Yield strategies under which results do not depend on which thread comes first."""
    yield from (Race.NONE, Race.ORDERED)
    if computes_exactly(step.problem.result.dtype):
        yield from (Race.TEMPORARY, Race.ATOMICS)


def _marking(command: Command, kind: str) -> Option:
    return Option(str(command), kind, mark=(command,), drops=(Parallelize, Serial))


def _in_chunks(index: str, allowed: Allowed) -> Iterator[Option]:
    """Yield tiles of the outermost loop, which threads take one by one."""
    outer, inner = f"{index}_c", f"{index}_e"
    for size in allowed.tiles(index, CHUNKS):
        derive, shared = Split(index, outer, inner, size), Parallelize(outer)
        name = f"{derive}, {shared}"
        kind, drops = f"share chunks {size}", (Parallelize, Serial)
        yield Option(name, kind, derive=(derive,), mark=(shared,), drops=drops)


def _by_entries(step: KernelStep, loops: tuple[str, ...], allowed: Allowed) -> Iterator[Option]:
    """Yield tiles of equally many entries of a sparse operand whose modes are the outermost
    loops."""
    for access in dict.fromkeys(accesses(step.problem.assignment)):
        stored = step.problem.stored(access)
        if not is_sparse(step.problem.type_of(access.tensor).format) or len(stored) < 2:
            continue
        if loops[: len(stored)] != stored:
            continue
        fuses, outer = list[Fuse](), stored[0]
        for inner in stored[1:]:
            fused = f"{outer}{inner}_f"
            fuses.append(Fuse(outer, inner, fused))
            outer = fused
        position = Pos(outer, "p_e", access.tensor)
        most = allowed.entries.get(access.tensor, inf)
        for size in (size for size in ENTRIES if 2 * size <= most):
            derive: tuple[Command, ...] = (*fuses, position, Split("p_e", "p_c", "p_i", size))
            for race in _races(step):
                shared = Parallelize("p_c", race)
                name = f"entries of {access.tensor} by {size}, {race.value}"
                kind = f"share entries {size} {race.value}"
                drops = (Parallelize, Serial)
                yield Option(name, kind, derive=derive, mark=(shared,), drops=drops)


def _threads(_: KernelStep, allowed: Allowed) -> Iterator[Option]:
    """Yield the most threads, and half as many time and again, whatever the work is."""
    count = allowed.threads
    while count >= 1:
        command = Threads(count)
        yield Option(str(command), f"threads 1/{allowed.threads // count}", threads=command)
        count //= 2


# ---------------------------------------------------------------- loops


def _tile(step: KernelStep, allowed: Allowed) -> Iterator[Option]:
    """Yield strips of a loop over dense tensors alone, outermost."""
    loops = _loops(step)
    sparse = sparse_indices_of(step.problem)
    for place, index in enumerate(loops):
        if place == 0 or index in sparse or len(loops) < 2:
            continue
        outer, inner = f"{index}_s", f"{index}_t"
        reordered = tuple(inner if loop == index else loop for loop in loops)
        for size in allowed.tiles(index, STRIPS):
            split, order = Split(index, outer, inner, size), Reorder((outer, *reordered))
            yield Option(f"{split}, {order}", f"strips {size}", derive=(split, order))


def _inner(step: KernelStep, _: Allowed) -> Iterator[Option]:
    """Yield the innermost loop, or the one around it, unrolled or in vectors."""
    for depth, index in enumerate(reversed(_loops(step)[-2:])):
        for factor in UNROLLS:
            command = Unroll(index, factor)
            kind = f"unroll {factor} at {depth}"
            yield Option(str(command), kind, mark=(command,), drops=(Unroll, Vectorize))
        if depth == 0:
            lanes = Vectorize(index)
            yield Option(str(lanes), "vectorize", mark=(lanes,), drops=(Unroll, Vectorize))


def _merge(step: KernelStep, _: Allowed) -> Iterator[Option]:
    """Yield how operands meet."""
    if not step.may_merge:
        return
    for index in dict.fromkeys(i for order in step.schedule.orders for i in order):
        for merge in Merge:
            command = MergeBy(index, merge)
            yield Option(str(command), f"merge {merge.value}", mark=(command,), drops=(MergeBy,))


def _assembly(step: KernelStep, _: Allowed) -> Iterator[Option]:
    """Yield a sparse result appended to, or counted first."""
    if is_full(step.problem.result.format):
        return
    for assembly in (Assembly.INSERT, Assembly.APPEND):
        command = Assemble(step.problem.assignment.target.tensor, assembly)
        kind = f"assemble {assembly.value}"
        yield Option(str(command), kind, mark=(command,), drops=(Assemble,))


def _workspace(step: KernelStep, _: Allowed) -> Iterator[Option]:
    """Yield a product of some of the factors first, in a row over the innermost loop."""
    loops = _loops(step)
    factors = _factors(step)
    if not loops or len(factors) < 2:
        return
    last = loops[-1]
    for count in range(2, len(factors) + 1):
        for part in (factors[:count], factors[-count:]):
            if not any(last in access.indices for access in part):
                continue
            product: Expr = part[0]
            for factor in part[1:]:
                product = Call(MUL, (product, factor))
            command = Precompute(product, (last,), (f"{last}_w",), "row")
            yield Option(str(command), f"workspace of {count}", derive=(command,))


def _factors(step: KernelStep) -> tuple[Access, ...]:
    """Return the factors of the only term, where it is a product of accesses."""
    (term, *more) = split_terms(step.problem.assignment.value)
    if more:
        return ()
    factors: list[Access] = []

    def collect(expr: Expr) -> bool:
        match expr:
            case Access():
                factors.append(expr)
                return True
            case Reduce(_, _, body):
                return collect(body)
            case Call(operator, (left, right)) if operator == MUL:
                return collect(left) and collect(right)
        return False

    return tuple(factors) if collect(term.body) else ()


# ---------------------------------------------------------------- ways


def _way(step: KernelStep, allowed: Allowed) -> Iterator[Option]:
    """Yield the other ways that can make the kernel, with their parameters."""
    question, on_gpu = Question(step.problem), way_of(step.schedule.make).on_gpu
    libraries = allowed.libraries
    has_library = libraries is not None and libraries.available(step.problem.result.dtype)
    for way in WAYS.values():
        is_called = way.lower is None
        if way.on_gpu != on_gpu or (is_called and not has_library) or not way.can(question):
            continue
        for parameters in ((), *way.tuning_parameters):
            make = Make(way.name, parameters)
            if make != step.schedule.make:
                yield Option(str(make), f"way {make}", make=make)


TABLE: tuple[tuple[str, Callable[[KernelStep, Allowed], Iterator[Option]]], ...] = (
    ("way", _way),
    ("share", _share),
    ("threads", _threads),
    ("tile", _tile),
    ("workspace", _workspace),
    ("inner loop", _inner),
    ("merge", _merge),
    ("assembly", _assembly),
)
"""The name of each axis, and its options for a kernel."""
