"""The application of commands to a loop nest: each is a pure function that checks first.

Preconditions without formats are checked here; those on the levels of operands are checked in
`schedule.legality`, when the formats are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from codegen.names import Names
from taco_py.compiler.concrete.concretize import Order
from taco_py.compiler.schedule.commands import (
    Assemble,
    Command,
    Distribute,
    Fission,
    LoopFuse,
    MergeBy,
    Parallelize,
    Precompute,
    Reorder,
    Serial,
    Unroll,
    Vectorize,
)
from taco_py.compiler.schedule.distribute import multiply_out
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.refused import refused
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment, Expr
from taco_py.language.notation.printer import to_text
from taco_py.language.provenance.relations import (
    Bound,
    Coord,
    Divide,
    Fuse,
    Pos,
    Relation,
    Rename,
    Split,
)


def apply(loops: Loops, command: Command) -> Loops:
    """Return `loops` after `command`. Raises ScheduleError, with the precondition that fails."""
    return APPLICATIONS[type(command)](loops, command)


def apply_all(loops: Loops, schedule: Schedule) -> Loops:
    """Return `loops` after every command of `schedule`, in order."""
    for command in schedule.commands:
        loops = apply(loops, command)
    return loops


def loops_of(assignment: Assignment, schedule: Schedule) -> Loops:
    """Return the loops of a planned kernel: nested as its schedule says, after every command on
    them."""
    return apply_all(Loops(assignment, schedule.orders), schedule.on_loops)


MOST_RELATIONS = 32
"""The most commands that derive variables: passes follow these relations one by one."""


# ---------------------------------------------------------------- variables


def _require_loop(loops: Loops, command: Command | Relation, variable: str) -> None:
    if variable in loops.variables:
        return
    if variable in loops.names:
        instead = loops.provenance.below(variable)
        if instead is not None:
            names = " and ".join(instead.children)
            raise refused(
                command, f"{variable} is no loop any more", f"{instead} replaced it by {names}"
            )
    loop_names = ", ".join(loops.variables) or "none"
    raise refused(command, f"there is no loop over {variable}", f"the loops are {loop_names}")


def _require_mark(loops: Loops, command: Command, variable: str) -> None:
    """Raise ScheduleError unless a variable is a loop, or the name of a loop that fills a
    workspace."""
    renamed = loops.provenance.above(variable)
    if not isinstance(renamed, Rename):
        _require_loop(loops, command, variable)
    elif (instead := loops.provenance.below(renamed.parent)) is not None:
        names = ",".join(instead.children)
        raise refused(
            command,
            f"{variable} stands for {renamed.parent}, which is no loop any more",
            f"{instead} replaced it: precompute over {{{names}}} names the loops that are left",
        )


def _require_nests(loops: Loops, command: Command | Relation, variables: tuple[str, ...]) -> None:
    """Raise ScheduleError where a command before has split these loops apart.

    Loops of other variables may still be transformed, as if the splitting command came last.
    """
    for structural in loops.structure:
        if not isinstance(structural, Precompute):
            raise refused(
                command,
                f"{structural} has taken the loops apart",
                "commands that derive or reorder variables come before it",
            )
        if _meets(loops, structural, variables):
            raise refused(
                command,
                f"{structural} has taken the loops over {', '.join(structural.indices)} apart",
                "commands that derive or reorder these variables come before it",
            )


def _meets(loops: Loops, command: Precompute, variables: tuple[str, ...]) -> bool:
    """Tell whether some of these variables derive from indices of the command's workspace."""
    roots = {root for variable in variables for root in loops.provenance.roots(variable)}
    separated = {root for index in command.indices for root in loops.provenance.roots(index)}
    return not separated.isdisjoint(roots)


def _derive(loops: Loops, relation: Relation) -> Loops:
    """Replace the parents of `relation` by its children, in place."""
    if len(loops.provenance.relations) == MOST_RELATIONS:
        raise refused(
            relation,
            f"{MOST_RELATIONS} commands before it derive variables, and no more may",
            "no nest is made faster by so many: undo those that do not help",
        )
    _require_nests(loops, relation, relation.parents)
    for parent in relation.parents:
        _require_loop(loops, relation, parent)
        if isinstance(loops.provenance.above(parent), Coord):
            raise refused(
                relation,
                f"{parent} meets only coordinates that are stored",
                "derive variables from the positions, before coord",
            )
        if loops.mode(parent) != loops.mode(""):
            raise refused(
                relation,
                f"{parent} has been marked already",
                "parallelize, unroll and vectorize come after the commands that derive variables",
            )
    for child in relation.children:
        if child in loops.names:
            raise refused(relation, f"the name {child} is taken", "choose a new name")
    if len(set(relation.children)) < len(relation.children):
        raise refused(relation, "its two new names are the same", "choose two names")
    orders = tuple(_replaced(order, relation) for order in loops.orders)
    return replace(loops, orders=orders, provenance=loops.provenance.with_relation(relation))


def _replaced(order: Order, relation: Relation) -> Order:
    """Return `order` with the children in place of the parents, which are adjacent."""
    if relation.parents[0] not in order:
        return order
    place = order.index(relation.parents[0])
    end = place + len(relation.parents)
    return (*order[:place], *relation.children, *order[end:])


def _sized(loops: Loops, command: Split | Divide) -> Loops:
    size = command.size if isinstance(command, Split) else command.parts
    if type(size) is not int or not 1 <= size < 2**31:
        hint = "sizes and numbers of tiles are from 1 to 2^31 - 1"
        raise refused(command, f"the size {size} is no positive 32-bit integer", hint)
    return _derive(loops, command)


def _bound(loops: Loops, command: Bound) -> Loops:
    if type(command.value) is not int or not 0 <= command.value < 10**18:
        hint = "bounds are whole numbers from 0 on, of at most 18 digits"
        raise refused(command, f"the bound {command.value} is no such number", hint)
    return _derive(loops, command)


def _fuse(loops: Loops, command: Fuse) -> Loops:
    for variable in command.parents:
        _require_loop(loops, command, variable)
        if loops.provenance.positions_above(variable) is not None:
            raise refused(
                command,
                f"{variable} runs over positions",
                "fuse coordinates first, then take the positions of the fused variable",
            )
    for order in loops.orders:
        places = [order.index(v) for v in command.parents if v in order]
        if places and (len(places) == 1 or places[1] != places[0] + 1):
            raise refused(
                command,
                f"{command.inner} is not right inside {command.outer} in every term, the loops "
                f"are {', '.join(order)}",
                _remedy_of_fuse(command, order, places),
            )
    return _derive(loops, command)


def _remedy_of_fuse(command: Fuse, order: tuple[str, ...], places: list[int]) -> str:
    outer, inner = command.parents
    if len(places) == 1:
        (alone,) = (v for v in command.parents if v in order)
        (missing,) = {outer, inner} - {alone}
        return (
            f"a term without {missing} has no such pair: compute the terms with both by an "
            "assignment of their own, and add the others to its result"
        )
    if places[0] == places[1] + 1:
        return f"reorder({outer},{inner}), or fuse({inner},{outer},{command.fused})"
    return f"reorder so that {inner} is right inside {outer}"


def _pos(loops: Loops, command: Pos) -> Loops:
    _require_loop(loops, command, command.parent)
    if loops.provenance.positions_above(command.parent) is not None:
        raise refused(
            command,
            f"{command.parent} runs over positions already",
            "coord turns positions back, split and divide cut them into tiles",
        )
    return _derive(loops, command)


def _coord(loops: Loops, command: Coord) -> Loops:
    _require_loop(loops, command, command.parent)
    if loops.provenance.positions_above(command.parent) is None:
        raise refused(
            command,
            f"{command.parent} does not run over positions",
            "coord turns back what pos has made",
        )
    variable = command.parent
    while isinstance(relation := loops.provenance.above(variable), Split | Divide | Bound):
        if not isinstance(relation, Bound) and variable != relation.inner:
            raise refused(
                command,
                f"{command.parent} counts tiles of positions, which have no coordinates",
                f"coord({relation.inner},{command.child}) is about what is in a tile",
            )
        variable = relation.parent
    return _derive(loops, command)


# ---------------------------------------------------------------- orders and modes


def _distribute(loops: Loops, command: Distribute) -> Loops:
    plain = Loops(loops.assignment, textual_orders(loops.assignment), serial=loops.serial)
    if loops != plain:
        raise refused(
            command,
            "other commands have been applied to the loops of its term",
            "distribute comes first",
        )
    assignment = multiply_out(loops.assignment, command)
    return Loops(assignment, textual_orders(assignment), serial=loops.serial)


def _reorder(loops: Loops, command: Reorder) -> Loops:
    _require_nests(loops, command, command.indices)
    for variable in command.indices:
        _require_loop(loops, command, variable)
    indices = set(command.indices)
    if not any(indices <= set(order) for order in loops.orders):
        raise refused(
            command,
            "no term of the assignment has all these loops",
            "each reorder names loops of one nest",
        )
    orders = tuple(
        _rearranged(order, command.indices) if indices <= set(order) else order
        for order in loops.orders
    )
    return replace(loops, orders=orders)


def _rearranged(order: Order, indices: tuple[str, ...]) -> Order:
    supply = iter(indices)
    return tuple(next(supply) if i in indices else i for i in order)


def _parallelize(loops: Loops, command: Parallelize) -> Loops:
    _require_mark(loops, command, command.index)
    if loops.serial:
        raise refused(command, "serial() says that no loop is shared", "leave one of the two out")
    mode = replace(loops.mode(command.index), parallel=command.race, unit=command.unit)
    return loops.with_mode(command.index, mode)


def _vectorize(loops: Loops, command: Vectorize) -> Loops:
    _require_mark(loops, command, command.index)
    return loops.with_mode(command.index, replace(loops.mode(command.index), vector=True))


def _unroll(loops: Loops, command: Unroll) -> Loops:
    _require_mark(loops, command, command.index)
    if type(command.factor) is not int or not 1 <= command.factor <= 256:
        raise refused(
            command, f"{command.index} cannot be unrolled {command.factor} times", "1 to 256 can be"
        )
    mode = replace(loops.mode(command.index), unroll=command.factor)
    return loops.with_mode(command.index, mode)


def _mergeby(loops: Loops, command: MergeBy) -> Loops:
    _require_mark(loops, command, command.index)
    return loops.with_mode(command.index, replace(loops.mode(command.index), merge=command.merge))


def _precompute(loops: Loops, command: Precompute) -> Loops:
    if not isinstance(command.expression, Expr):
        raise ScheduleError(
            f"Expected a part of the assignment to precompute, found {command.expression!r}",
            hint='Schedule.parse reads text, as in Schedule.parse("precompute(A(i,j) * x(j),i,i)")',
        )
    for variable in command.indices:
        leaves = loops.provenance.leaves(variable) if variable in loops.names else (variable,)
        for leaf in leaves:
            _require_loop(loops, command, leaf)
    new = _new_names(loops, command)
    tensors = {access.tensor for access in accesses(loops.assignment)}
    for access in accesses(command.expression):
        if access not in accesses(loops.assignment):
            reason = f"{to_text(access)} is not read in {to_text(loops.assignment)}"
            names = ", ".join(sorted(tensors))
            raise refused(command, reason, f"what is read are elements of {names}")
    name = command.workspace or Names((*loops.names, *new)).fresh("w")
    provenance = loops.provenance
    for index, copy in zip(command.indices, command.copies, strict=True):
        if copy != index:
            provenance = provenance.with_relation(Rename(index, copy, name))
    structure = (*loops.structure, replace(command, workspace=name))
    return replace(loops, structure=structure, provenance=provenance)


def _new_names(loops: Loops, command: Precompute) -> list[str]:
    """Return the new names of the command's loops and its workspace. Raises ScheduleError for
    one that is taken."""
    new = [name for i, name in zip(command.indices, command.copies, strict=True) if name != i]
    if command.workspace:
        new.append(command.workspace)
    for name in new:
        if name in loops.names or new.count(name) > 1:
            raise refused(command, f"the name {name} is taken", "choose a new name")
    return new


def _rearrange(loops: Loops, command: Fission | LoopFuse) -> Loops:
    _require_loop(loops, command, command.index)
    return replace(loops, structure=(*loops.structure, command))


def _assemble(loops: Loops, command: Assemble) -> Loops:
    target = loops.assignment.target.tensor
    if command.tensor != target:
        raise refused(
            command, f"{command.tensor} is not what is assembled", f"the result is called {target}"
        )
    return replace(loops, assembly=command.assembly)


def _serial(loops: Loops, command: Serial) -> Loops:
    for variable, mode in loops.modes:
        if mode.parallel is not None:
            raise refused(
                command, f"threads share the loop over {variable}", "leave one of the two out"
            )
    return replace(loops, serial=True)


APPLICATIONS: dict[type, Callable[[Loops, Any], Loops]] = {
    Distribute: _distribute,
    Reorder: _reorder,
    Split: _sized,
    Divide: _sized,
    Fuse: _fuse,
    Pos: _pos,
    Coord: _coord,
    Bound: _bound,
    Parallelize: _parallelize,
    Vectorize: _vectorize,
    Unroll: _unroll,
    MergeBy: _mergeby,
    Precompute: _precompute,
    Fission: _rearrange,
    LoopFuse: _rearrange,
    Assemble: _assemble,
    Serial: _serial,
}
"""The application of each kind of command."""
