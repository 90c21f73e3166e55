"""The ways to share a kernel's loops among the units of a GPU, and the choice of the fastest.

    y[i] = sum(j, A[i,j] * x[j])     a thread for each i
                                     a warp for each i, its lanes over j, which are combined
                                     4, 8 or 16 lanes for each i
                                     a block for each i
                                     entries of A split evenly among warps, lanes over neighbours,
                                     which add up their terms of a row
    C[i,k] = sum(j, A[i,j] * B[j,k]) for a sparse C: a thread for each i, or a block, threads over k
                                     a warp for each i, its lanes over k: contiguous in B and C
                                     entries of A split evenly among warps, their lanes over k

Each is a loop order and commands, as a user would write them; ways that the formats or the result
forbid are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen.machine.gpu import NOMINAL_GPU
from codegen.machine.target import Target
from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import result_order
from taco_py.compiler.concrete.nodes import Assembly, Race, Unit
from taco_py.compiler.concrete.terms import Term, reductions, split_terms
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.iteration.copied_pattern import copied_pattern
from taco_py.compiler.iteration.graph import conflicts
from taco_py.compiler.schedule.apply import loops_of
from taco_py.compiler.schedule.commands import Assemble, Command, Parallelize, Reorder, Serial
from taco_py.compiler.schedule.gpu.units import choose_units
from taco_py.compiler.schedule.legality import check
from taco_py.compiler.schedule.parallel import check_shared
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.gpu_check import check_kernels, check_order
from taco_py.compiler.ways.loops import lower_recipe
from taco_py.compiler.ways.recipe import Recipe
from taco_py.compiler.ways.unit_prices import Nest, Price, Sharing, total
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem
from taco_py.language.provenance.relations import Divide, Fuse, Pos, Split

WARPS = NOMINAL_GPU.block_threads // NOMINAL_GPU.warp_threads
"""Warps of a block."""
CHUNKS = (8, 32)
"""The entries of each warp where entries are split evenly, and its lanes have another loop."""
ROUNDS = (4, 16)
"""The entries of each lane of a warp, where lanes process adjacent entries."""
WIDTHS = (4, 8, 16)
"""The lanes of a group, which shares one iteration."""
PARTS = (8, 64)
"""The terms of a sum for each block, where its threads have different elements of the result."""
ONE_THREAD = "one thread, which adds in the order of the text"


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to share loops, with its price; rejected ones with theirs, the best first.

    open  the best of the ways that add up in any order, which was not allowed
    """

    sharing: Sharing
    price: Price
    rejected: tuple[tuple[Sharing, Price], ...]
    open: tuple[tuple[Sharing, Price], ...] = ()

    @property
    def reason(self) -> str:
        """Return the choice and the alternatives that it is compared with, for explain()."""
        lines = [f"{self.sharing.words}: {self.price.bound} expected"]
        lines += [
            f"not {alternative.words}: {price.bound}" for alternative, price in self.rejected[:3]
        ]
        lines += [
            f"not {alternative.words}: {price.bound}, but sums in any order"
            for alternative, price in self.open[:1]
        ]
        return "\n".join(lines)


def choose_sharing(
    problem: Problem, schedule: Schedule, stats: Statistics, fixed: bool = False
) -> Choice | None:
    """Return the way of the least expected time to share a kernel's loops.

    Of several terms, the loops of the one with most loops are shared, and equal loops of the
    others.

    fixed  whether floating-point numbers must be added in the same order each time
    """
    terms, orders = split_terms(problem.assignment.value), schedule.orders
    if len(terms) != len(orders):
        return None
    main = max(range(len(orders)), key=lambda n: len(orders[n]))
    if not orders[main]:
        return None
    priced = [
        (sharing, _price(problem, schedule, stats, sharing))
        for sharing in _ways(problem, terms, main, orders)
        if _is_legal(problem, schedule, sharing)
    ]
    priced.sort(key=lambda pair: pair[1].seconds)
    if fixed:
        spare = [
            (sharing, _price(problem, schedule, stats, sharing))
            for sharing in _in_order(problem, orders[main])
        ]
        return _in_fixed_order(problem, schedule, priced, spare, stats.machine.target)
    for number, (sharing, price) in enumerate(priced):
        if _compiles(problem, scheduled(schedule, sharing), stats.machine.target):
            return Choice(sharing, price, tuple(priced[number + 1 :]))
    return None


def _in_fixed_order(
    problem: Problem,
    schedule: Schedule,
    priced: Sequence[tuple[Sharing, Price]],
    spare: Sequence[tuple[Sharing, Price]],
    target: Target,
) -> Choice | None:
    """Return the first way that adds in the same order each time; else one block, or one thread.

    None where unshared loops do so already and no way is better.
    """
    left: list[tuple[Sharing, Price]] = []
    for number, (sharing, price) in enumerate(priced):
        if is_fixed(problem, scheduled(schedule, sharing), target):
            return Choice(sharing, price, tuple(priced[number + 1 :]), tuple(left))
        left.append((sharing, price))
    if is_fixed(problem, schedule, target):
        return None
    for sharing, price in spare:
        if is_fixed(problem, scheduled(schedule, sharing), target):
            return Choice(sharing, price, (), tuple(left))
    return None


def _in_order(problem: Problem, order: tuple[str, ...]) -> Iterator[Sharing]:
    """Yield the ways in which no two threads add to the same elements, the fastest first."""
    if not problem.assignment.target.indices:
        yield _in_one_block(problem, order)
    yield Sharing(order, (Serial(),), ONE_THREAD, threads=1)


def _in_one_block(problem: Problem, order: tuple[str, ...]) -> Sharing:
    """Return the way of one block, whose threads combine their terms, for a full sum."""
    names = Names((*order, *(name for name, _ in problem.operands)))
    first = order[0]
    block, rest = names.fresh(f"{first}_block"), names.fresh(f"{first}_rest")
    commands = (
        Divide(first, block, rest, 1),
        Parallelize(block, Race.ATOMICS, Unit.BLOCK),
        Parallelize(rest, Race.ATOMICS, Unit.THREAD),
    )
    return Sharing(
        order, commands, f"one block, threads over {first}", threads=NOMINAL_GPU.block_threads
    )


def is_fixed(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Tell whether kernels of a GPU can execute a schedule, with additions in a fixed order."""
    try:
        module = lower_recipe(Recipe(problem, schedule), choose_units).module
        check_kernels(problem, module, target)
        check_order(problem, module, target)
    except ScheduleError:
        return False
    return True


def price_of(problem: Problem, schedule: Schedule, stats: Statistics) -> Price | None:
    """Return the price of a kernel whose loops are shared in one of these ways, None for others."""
    terms, orders = split_terms(problem.assignment.value), schedule.orders
    if len(terms) != len(orders):
        return None
    if is_sparse(problem.result.format) and copied_pattern(problem) is None:
        return None
    main = max(range(len(orders)), key=lambda n: len(orders[n]))
    if not orders[main]:
        return None
    commands = schedule.on_loops.commands
    for sharing in (*_ways(problem, terms, main, orders), *_in_order(problem, orders[main])):
        if sharing.commands == commands and sharing.order == orders[main]:
            return _price(problem, schedule, stats, sharing)
    return None


def scheduled(schedule: Schedule, sharing: Sharing) -> Schedule:
    """Return a kernel's schedule with its loops shared."""
    orders = (_term_order(sharing, order) for order in schedule.orders)
    nested = Schedule.of_orders(tuple(orders)).with_way(schedule.make)
    return nested.then(Schedule(sharing.commands))


def _term_order(sharing: Sharing, order: tuple[str, ...]) -> tuple[str, ...]:
    """Return the loops of a term: in the shared order where it has the same loops."""
    return sharing.order if set(order) == set(sharing.order) else order


def _price(problem: Problem, schedule: Schedule, stats: Statistics, sharing: Sharing) -> Price:
    """Return the price of all terms with loops shared in a way."""
    prices = []
    for term, order in zip(split_terms(problem.assignment.value), schedule.orders, strict=True):
        shared_order, last = _term_order(sharing, order), len(order) - 1
        if shared_order:
            nested = replace(
                sharing,
                order=shared_order,
                lane=min(sharing.lane, last),
                groups=min(sharing.groups, len(order)),
            )
            prices.append(Nest(problem, term, stats, nested).price())
    return total(prices)


def _is_legal(problem: Problem, schedule: Schedule, sharing: Sharing) -> bool:
    shared_schedule = scheduled(schedule, sharing)
    indices = set(sharing.order)
    inside = (a for a in accesses(problem.assignment) if indices.issuperset(a.indices))
    if any(conflicts(problem, access, sharing.order) for access in inside):
        return False
    try:
        loops = loops_of(problem.assignment, shared_schedule)
        check(loops, problem)
        graph = replace(loops.graph(problem), teams=False)
        check_shared(graph)
        return choose_units(graph, shared_schedule).index is not None
    except ScheduleError:
        return False


def _compiles(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Tell whether kernels of a GPU can execute a schedule; cached kernels do."""
    recipe = Recipe(problem, schedule, target=target.name)
    if KERNELS.text(recipe.source_key) is not None:
        return True
    try:
        check_kernels(problem, lower_recipe(recipe, choose_units).module, target)
    except ScheduleError:
        return False
    return True


def _ways(
    problem: Problem, terms: tuple[Term, ...], main: int, orders: tuple[tuple[str, ...], ...]
) -> Iterator[Sharing]:
    """Yield ways to share a kernel's loops; a result with copied coordinates is shared like a
    dense one."""
    if not is_sparse(problem.result.format):
        yield from sharings(problem, terms, main, orders[main])
        return
    if copied_pattern(problem) is not None:
        copying = Assemble(problem.assignment.target.tensor, Assembly.COPY)
        for sharing in sharings(problem, terms, main, orders[main]):
            yield replace(sharing, commands=(*sharing.commands, copying))
    yield from _of_rows(problem, orders)


def sharings(
    problem: Problem, terms: tuple[Term, ...], main: int, order: tuple[str, ...]
) -> Iterator[Sharing]:
    """Yield ways to share the loops of the main one of some terms, legal or not."""
    term = terms[main]
    if len(terms) > 1 or any(True for _ in reductions(term.body)):
        yield from _in_rows(problem, order)
        return
    target_indices = tuple(i for i in result_order(problem) if i in order)
    summed = tuple(i for i in order if i not in target_indices)
    for nest in dict.fromkeys((order, (*target_indices, *summed))):
        yield from _in_rows(problem, nest)
        yield from _in_parts(problem, nest)
    yield from _in_entries(problem, term, order)


def _of_rows(problem: Problem, orders: tuple[tuple[str, ...], ...]) -> Iterator[Sharing]:
    """Yield a thread or a block for each row of a sparse result, where rows are gathered.

    Loops of other sparse results are shared by `schedule.gpu.units`.
    """
    order, *more = orders
    lane = result_order(problem)[-1]
    if more or len(order) < 3 or order[-1] != lane:
        return
    first = order[0]
    alone = (Parallelize(first, Race.NONE),)
    threads = (Parallelize(first, Race.NONE, Unit.BLOCK), Parallelize(lane, Race.NONE, Unit.THREAD))
    words = f"a block for each {first}, threads over {lane}, tables of small rows in shared memory"
    yield Sharing(order, threads, words, 1, len(order) - 1, NOMINAL_GPU.warp_threads)
    yield Sharing(order, alone, f"a thread for each {first}")


# ---------------------------------------------------------------- loops without fusion


def _in_rows(problem: Problem, order: tuple[str, ...]) -> Iterator[Sharing]:
    """Yield a thread, a warp or a block for each iteration of the first loop."""
    names = Names((*order, *(name for name, _ in problem.operands)))
    first, *rest = order
    alone = (Parallelize(first, _race(problem, first)),)
    yield Sharing(order, alone, f"a thread for each {first}")
    for place, lane in enumerate(rest, 1):
        lanes = Parallelize(lane, _race(problem, lane), Unit.THREAD)
        block, warp = names.fresh(f"{first}_block"), names.fresh(f"{first}_warp")
        split = (
            Split(first, block, warp, WARPS),
            Parallelize(block, _race(problem, first), Unit.BLOCK),
            Parallelize(warp, _race(problem, first), Unit.WARP),
            lanes,
        )
        yield Sharing(order, split, f"a warp for each {first}, lanes over {lane}", 1, place, 32)
        if place == 1:
            yield from (_in_groups(problem, order, width) for width in WIDTHS)
        blocks = Parallelize(first, _race(problem, first), Unit.BLOCK)
        words = f"a block for each {first}, threads over {lane}"
        yield Sharing(order, (blocks, lanes), words, 1, place, NOMINAL_GPU.block_threads)
        if place > 1:
            second = Parallelize(rest[0], _race(problem, rest[0]), Unit.WARP)
            words = f"a block for each {first}, warps over {rest[0]}, lanes over {lane}"
            yield Sharing(order, (blocks, second, lanes), words, 2, place, 32)


def _in_groups(problem: Problem, order: tuple[str, ...], width: int) -> Sharing:
    """Return the way of `width` lanes of a warp for each iteration of the first loop."""
    names = Names((*order, *(name for name, _ in problem.operands)))
    first, lane = order[:2]
    block, rest, warp = (names.fresh(f"{first}_{part}") for part in ("block", "rest", "warp"))
    group, iterations = names.fresh(f"{first}_group"), NOMINAL_GPU.warp_threads // width
    race = _race(problem, first)
    commands = (
        Split(first, block, rest, WARPS * iterations),
        Split(rest, warp, group, iterations),
        Parallelize(block, race, Unit.BLOCK),
        Parallelize(warp, race, Unit.WARP),
        Parallelize(group, race, Unit.THREAD),
        Parallelize(lane, _race(problem, lane), Unit.THREAD),
    )
    words = f"{width} lanes of a warp for each {first}, over {lane}"
    return Sharing(order, commands, words, 1, 1, width)


def _is_array(problem: Problem, index: str) -> bool:
    """Tell whether no sparse level has the coordinates of an index."""
    reads = (a for a in accesses(problem.assignment.value) if index in a.indices)
    return all(
        problem.type_of(a.tensor).format.levels[_level(problem, a, index)].full for a in reads
    )


def _level(problem: Problem, access: Access, index: str) -> int:
    return problem.type_of(access.tensor).format.stored(access.indices).index(index)


def _in_parts(problem: Problem, order: tuple[str, ...]) -> Iterator[Sharing]:
    """Yield parts of a sum for each block, whose threads have adjacent elements of the result."""
    target_indices = [i for i in order if i in problem.assignment.target.indices]
    if (
        len(order) != 2
        or len(target_indices) != 1
        or order[0] in target_indices
        or not _is_array(problem, target_indices[0])
    ):
        return
    (summed, lane) = order
    names = Names((*order, *(name for name, _ in problem.operands)))
    for chunk in PARTS:
        block, rest = names.fresh(f"{summed}_block"), names.fresh(f"{summed}_rest")
        commands = (
            Split(summed, block, rest, chunk),
            Reorder((block, lane, rest)),
            Parallelize(block, Race.ATOMICS, Unit.BLOCK),
            Parallelize(lane, Race.NONE, Unit.THREAD),
        )
        words = f"{chunk} of {summed} for each block, threads over {lane}"
        yield Sharing(order, commands, words, 1, 1, NOMINAL_GPU.block_threads, chunk, "index")


def _race(problem: Problem, index: str) -> Race:
    return Race.NONE if index in problem.assignment.target.indices else Race.ATOMICS


# ---------------------------------------------------------------- entries split evenly


def _in_entries(problem: Problem, term: Term, order: tuple[str, ...]) -> Iterator[Sharing]:
    """Yield equally many entries of a sparse operand for each warp."""
    for access in dict.fromkeys(accesses(term.body)):
        form = problem.type_of(access.tensor).format
        stored = form.stored(access.indices)
        value = term.as_sum(problem.result.dtype)
        plain = is_sparse(form) and restricts(value, access) and len(set(stored)) == len(stored)
        if not plain or form.levels[-1].full or set(stored) - set(order):
            continue
        dense_indices = tuple(i for i in order if i not in stored)
        if not dense_indices:
            yield from (_by_lanes(problem, access, stored, rounds) for rounds in ROUNDS)
        elif len(dense_indices) == 1:
            yield from (
                _by_warps(problem, access, stored, dense_indices[0], chunk) for chunk in CHUNKS
            )


def _by_lanes(problem: Problem, access: Access, stored: tuple[str, ...], rounds: int) -> Sharing:
    names = Names((*stored, *(name for name, _ in problem.operands)))
    fusing, entries = _positions(access, stored, names)
    block, rest = names.fresh("block"), names.fresh("rest")
    warp, part = names.fresh("warp"), names.fresh("part")
    round_, lane = names.fresh("round"), names.fresh("lane")
    chunk = rounds * NOMINAL_GPU.warp_threads
    commands = (
        *fusing,
        Split(entries, block, rest, chunk * WARPS),
        Split(rest, warp, part, chunk),
        Split(part, round_, lane, NOMINAL_GPU.warp_threads),
        Parallelize(block, Race.IGNORE, Unit.BLOCK),
        Parallelize(warp, Race.IGNORE, Unit.WARP),
        Parallelize(lane, Race.ATOMICS, Unit.THREAD),
    )
    words = f"{chunk} entries of {access.tensor} for each warp, its lanes over neighbours"
    return Sharing(stored, commands, words, len(stored), len(stored) - 1, 1, chunk, "entries")


def _by_warps(
    problem: Problem, access: Access, stored: tuple[str, ...], lane: str, chunk: int
) -> Sharing:
    names = Names((*stored, lane, *(name for name, _ in problem.operands)))
    fusing, entries = _positions(access, stored, names)
    block, rest = names.fresh("block"), names.fresh("rest")
    warp, entry = names.fresh("warp"), names.fresh("entry")
    outside = lane in problem.assignment.target.indices and _is_array(problem, lane)
    nest = (block, warp, lane, entry) if outside else (block, warp, entry, lane)
    commands = (
        *fusing,
        Split(entries, block, rest, chunk * WARPS),
        Split(rest, warp, entry, chunk),
        Reorder(nest),
        Parallelize(block, Race.IGNORE, Unit.BLOCK),
        Parallelize(warp, Race.ATOMICS, Unit.WARP),
        Parallelize(lane, _race(problem, lane), Unit.THREAD),
    )
    words = f"{chunk} entries of {access.tensor} for each warp, lanes over {lane}"
    return Sharing((*stored, lane), commands, words, len(stored), len(stored), 32, chunk)


def _positions(
    access: Access, stored: tuple[str, ...], names: Names
) -> tuple[tuple[Command, ...], str]:
    """Return the commands that fuse the loops over an operand's entries, and the fused variable."""
    fusing: list[Command] = []
    fused, *rest = stored
    for index in rest:
        new = names.fresh(fused + index)
        fusing.append(Fuse(fused, index, new))
        fused = new
    entries = names.fresh("entries")
    return (*fusing, Pos(fused, entries, access.tensor, access.indices)), entries
