"""Concrete index notation → loop IR, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from codegen import build
from codegen.ir import Assign as SetVar
from codegen.ir import AtomicStore, Binary, Block, Declare, Expr, Role, Stmt, Store, Var
from codegen.records import dataclass
from codegen.types import BOOL, scalar
from codegen.variables import variables_read
from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Race,
    Sequence,
    Statement,
    Where,
)
from taco_py.compiler.concrete.tree import assignments, foralls, workspaces_of
from taco_py.compiler.levels import locate, locate_strided
from taco_py.compiler.lower import dense_workspaces as dense
from taco_py.compiler.lower import workspaces
from taco_py.compiler.lower.absent_sums import has_terms, only_values, tells_absent, term_of
from taco_py.compiler.lower.conditions import (
    ALWAYS,
    condition_of,
    condition_on,
    lower_condition,
    producer_condition,
    split_consumer,
)
from taco_py.compiler.lower.environment import Environment, Scope, WorkspaceArrays
from taco_py.compiler.lower.expressions import lower_value, value_position
from taco_py.compiler.lower.loop_code import appending_level, lower_loop
from taco_py.compiler.lower.ranges import is_absent
from taco_py.compiler.lower.sparse_result.first_entry import shorten, without_flag
from taco_py.compiler.lower.sparse_result.presence import (
    is_certain,
    lists,
    loops_set_flag,
    presence,
    read_by,
    value_assigned,
)
from taco_py.compiler.lower.sparse_result.result import Result
from taco_py.compiler.lower.threads.atomic_updates import (
    add_atomically,
    can_carry,
    empty_carry,
    lower_atomic,
    lower_carrying,
)
from taco_py.compiler.lower.threads.block_sums import begin_sums, keep_sums, lower_in_parts
from taco_py.compiler.lower.threads.value_ranges import Lower, lower_separately
from taco_py.compiler.lower.zero import zero_below
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import operand_dtype
from taco_py.language.notation.nodes import Access, Call
from taco_py.language.notation.nodes import Expr as Value
from taco_py.language.notation.operators import CORRECTED, FILLED
from taco_py.language.notation.tree import is_call_of

Strategy = Callable[[Environment, Forall, Scope, Lower], Iterator[Stmt]]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that a result lists: its level, the position above, and whether it was read."""

    level: int
    position: Expr
    read: bool


@dataclass(frozen=True, slots=True)
class BlockTest:
    """A flag whether any element of a block is stored, and the code that sets it."""

    looking: tuple[Stmt, ...]
    flag: Var


@dataclass(frozen=True, slots=True)
class Lowerer:
    """Lowers the statements of one kernel.

    entry     the entry that an assignment to the result appends, if its value is stored
    looks     a flag set where an element of the result would be stored, instead of storing it
    in_block  whether an entry of the result around the assignments exists already
    """

    env: Environment
    result: Result
    entry: Entry | None = None
    looks: Var | None = None
    in_block: bool = False

    def statement(self, statement: Statement, scope: Scope) -> Iterator[Stmt]:
        """Yield the code of `statement`; nothing where all operands that it reads are absent."""
        match statement:
            case Assign():
                yield from self._assign(statement, scope)
            case Forall():
                yield from self._forall(statement, scope)
            case Sequence(statements):
                for part in statements:
                    yield from self._scoped(part, scope)
            case Where():
                yield from self._where(statement, scope)
            case _:
                assert_never(statement)

    def _scoped(self, statement: Statement, scope: Scope) -> Iterator[Stmt]:
        """Yield the code in a block of its own, so that siblings may use the same names."""
        code = tuple(self.statement(statement, scope))
        if code:
            yield Block(code)

    def _assign(self, assign: Assign, scope: Scope) -> Iterator[Stmt]:
        nothing = self.env.initial.get(assign.target.tensor, 0)
        into_result = assign.target == self.env.target
        makes_entry = into_result and (self.entry is not None or self.looks is not None)
        if scope.regions(self.env).is_absent(assign.value, nothing):
            if scope.zeroing and assign.operator is None and not makes_entry:
                yield from self._stored(self._with_fill(assign), scope)
            return
        code, condition = tuple(self._stored(assign, scope)), build.and_(*self._marks(assign))
        if makes_entry:
            code = tuple(self._with_entry(code))
            fill = self.env.problem.result.fill_value.item()
            condition = presence(self.env, scope, assign.value, nothing, fill=fill)
        yield from _if_true(condition, code)

    def _with_entry(self, code: tuple[Stmt, ...]) -> Iterator[Stmt]:
        """Yield the code that stores an element, with its entry, or code that sets a flag
        instead."""
        if self.looks is not None:
            yield SetVar(self.looks, build.const(True))
        elif self.entry is not None:
            yield from self.result.open(self.entry.level, self.entry.position, self.entry.read)
            yield from code
            yield from self.result.close(self.entry.level, self.entry.position)

    def _with_fill(self, assign: Assign) -> Assign:
        """Return the assignment of its fill value, where a sparse result stores that anyway.

        filled(t + 1, 0) is 1 where nothing is added to t.
        """
        value, sparse = assign.value, is_sparse(self.env.problem.result.format)
        if not sparse or assign.target.tensor != self.env.target.tensor:
            return assign
        is_filled = is_call_of(value, FILLED)
        return (
            replace(assign, value=value.args[0])
            if isinstance(value, Call) and is_filled
            else assign
        )

    def _marks(self, assign: Assign) -> Iterator[Expr]:
        """Yield the marks of rows in which a value looks up entries."""
        for access in dict.fromkeys(accesses(assign.value)):
            arrays = self.env.workspaces.get(access.tensor)
            if arrays is not None and arrays.workspace.is_marked:
                assert arrays.marks is not None
                yield build.load(arrays.marks, self.env.indices[access.indices[0]])

    def _stored(self, assign: Assign, scope: Scope) -> Iterator[Stmt]:
        op = None if assign.operator is None else assign.operator.c_operator
        tensor = assign.target.tensor
        if tensor in self.env.workspaces:
            yield from self._accumulated(assign, scope, op)
            return
        values = self.env.tensors[tensor].values
        value = lower_value(self.env, scope, assign.value, values.element)
        place = value_position(scope, assign.target)
        if scope.atomic is not None and op is not None:
            update = AtomicStore(values, place, value, op, Role.VALUES)
            yield from add_atomically(self.env, scope, scope.atomic, update)
        else:
            yield Store(values, place, value, op, Role.VALUES)

    def _accumulated(self, assign: Assign, scope: Scope, op: str | None) -> Iterator[Stmt]:
        """Yield a value added to a workspace; under its condition where the pattern is recorded."""
        arrays, term = self.env.workspaces[assign.target.tensor], assign.value
        condition: Value | None = None
        is_stored: Expr = ALWAYS
        if op is not None and lists(self.env, assign.target.tensor):
            nothing = arrays.workspace.initial
            condition, term = condition_of(term, nothing)
            is_stored = presence(self.env, scope, term, nothing, marked=True)
        value = lower_value(self.env, scope, term, arrays.element)
        code = tuple(workspaces.accumulate(self.env, scope, arrays, value, op))
        lowered = lower_condition(self.env, scope, condition)
        yield from _if_true(_conjunction(is_stored, lowered), code)

    def _with_presence(self, where: Where, scope: Scope) -> Lowerer:
        """Return a lowerer with a flag for whether a sum has a term, where its readers need
        that."""
        env, name = self.env, where.workspace.name
        arrays = env.workspaces[name]
        readers = read_by(where.consumer, where.workspace.access)
        if arrays.scalar is None or arrays.present is not None or has_terms(env, where, scope):
            return self
        if not any(self._lists(reader.target) for reader in readers):
            return self
        flag = Var(env.names.fresh(f"{name}_any"), BOOL)
        sets = loops_set_flag(env, scope, where.producer)
        flagged = replace(arrays, present=flag, sets=sets, term=term_of(env, where))
        updated = {**env.workspaces, name: flagged}
        return replace(self, env=replace(env, workspaces=updated))

    def _lists(self, target: Access) -> bool:
        """Tell whether an assignment to a target inserts a coordinate."""
        if target != self.env.target:
            return lists(self.env, target.tensor)
        return self.looks is not None or (self.result.is_sparse and not self.in_block)

    def _where(self, where: Where, scope: Scope) -> Iterator[Stmt]:
        yield from self._with_presence(where, scope)._filled_and_read(where, scope)

    def _filled_and_read(self, where: Where, scope: Scope) -> Iterator[Stmt]:
        arrays = self.env.workspaces[where.workspace.name]
        scope, before = dense.begin_tiles(self.env, scope, where.workspace)
        read = scope.regions(self.env).reads(where.consumer, where.workspace.access)
        producer = tuple(self.statement(where.producer, scope)) if read else ()
        if not producer:
            empty = scope.inside_loop("", frozenset((where.workspace.access,)))
            yield from self.statement(where.consumer, empty)
            return
        begin = tuple(workspaces.begin(self.env, arrays))
        is_read = self._read_condition(where, scope)
        looking: tuple[Stmt, ...] = ()
        if arrays.present is not None and not arrays.sets:
            flag = Declare(arrays.present, build.const(False))
            looking = (build.if_(is_read, Block(shorten(self._presence_test(where, scope, flag)))),)
        finish = (*workspaces.finish(self.env, arrays), *self._stored_besides(arrays))
        if arrays.scalar is not None and tells_absent(self.env, where):
            consumer = tuple(self._consumed_where_stored(where, arrays.scalar, scope, is_read))
        else:
            consumer = tuple(self.statement(where.consumer, scope))
        if arrays.present is not None and arrays.present not in variables_read(Block(consumer)):
            begin, producer = (
                without_flag(begin, arrays.present),
                without_flag(producer, arrays.present),
            )
            looking = ()
        some = arrays.present if looking and arrays.present is not None else is_read
        yield from (*before, *begin, *looking)
        yield build.if_(some, Block(producer))
        yield from (*finish, *consumer, *workspaces.leave(self.env, arrays))

    def _stored_besides(self, arrays: WorkspaceArrays) -> Iterator[Stmt]:
        """Yield the store of a sum in its element of a side result."""
        access, env = arrays.workspace.stored, self.env
        if access is None or arrays.scalar is None:
            return
        side = env.tensors[access.tensor]
        indices = (access.indices[mode] for mode in side.type.format.mode_order)
        pairs = zip(indices, side.strides, strict=True)
        place = build.add(*(build.mul(env.indices[index], stride) for index, stride in pairs))
        value = build.cast(side.values.element, arrays.scalar)
        yield Store(side.values, place, value, role=Role.VALUES)

    def _read_condition(self, where: Where, scope: Scope) -> Expr:
        """Return the condition under which the consumer reads the workspace.

        corrected(e, least, b[i] + t)  →  e < least
        kept(t, m[i] != 0)             →  m[i] != 0
        """
        consumer, access = where.consumer, where.workspace.access
        if where.workspace.stored is not None:
            return ALWAYS
        later: set[Access] = set()
        while isinstance(consumer, Where) and not _reads(consumer.producer, access):
            later.add(consumer.workspace.access)
            consumer = consumer.consumer
        value = consumer.value if isinstance(consumer, Assign) else None
        condition = producer_condition(where, scope.bound)
        if condition is None and value is not None:
            condition = condition_on(value, access)
        if condition is not None and not later & set(accesses(condition)):
            return lower_condition(self.env, scope, condition)
        if not is_call_of(value, CORRECTED):
            return build.const(True)
        if any(access in accesses(arg) for arg in value.args[:2]):
            return build.const(True)
        type = scalar(operand_dtype(value, self.env.dtypes).name)
        tested, least = (lower_value(self.env, scope, arg, type) for arg in value.args[:2])
        return build.not_(Binary(">=", tested, least))

    def _consumed_where_stored(
        self, where: Where, sum_: Var, scope: Scope, is_read: Expr
    ) -> Iterator[Stmt]:
        """Yield the consumer of a sum that has another value than zero where no term is stored.

        t_stored = t != 0
        if (!t_stored) { the loops of the sum, which set t_stored }
        if (t_stored) { y[i] = t / d[i] } else { y[i] = 0 }
        """
        env, name = self.env, where.workspace.name
        arrays = env.workspaces[name]
        stored = Declare(Var(env.names.fresh(f"{name}_stored"), BOOL), build.const(False))
        test = is_read
        if arrays.present is not None:
            stored = replace(stored, value=arrays.present, constant=True)
            test = build.const(False)
        elif only_values(env, where.consumer):
            nonzero = build.ne(sum_, workspaces.initial(arrays))
            stored = replace(stored, value=nonzero, role=Role.VALUES)
            test = build.and_(is_read, build.not_(stored.var))
        yield stored
        if arrays.present is None:
            yield build.if_(test, Block(self._presence_test(where, scope, stored)))
        empty = replace(scope.inside_loop("", frozenset((where.workspace.access,))), zeroing=True)
        consumer = tuple(self.statement(where.consumer, scope))
        nothing = tuple(self.statement(where.consumer, empty))
        yield build.if_(stored.var, Block(consumer), Block(nothing) if nothing else None)

    def _presence_test(self, where: Where, scope: Scope, stored: Declare) -> tuple[Stmt, ...]:
        """Return the loops of a sum once more, which only set a flag where they add something."""
        name = where.workspace.name
        asking = replace(
            self.env.workspaces[name], scalar=None, stored=stored, present=None, sets=False
        )
        looking = replace(self.env, workspaces={**self.env.workspaces, name: asking})
        alone = replace(scope, serial=True)
        return tuple(Lowerer(looking, self.result).statement(where.producer, alone))

    def _forall(self, forall: Forall, scope: Scope) -> Iterator[Stmt]:
        race = forall.mode.parallel
        share = self._strategy(forall, scope)
        if share is not None and not is_absent(self.env, scope, forall):
            yield from share(
                self.env,
                forall,
                scope,
                lambda env, inner: replace(self, env=env).statement(forall, inner),
            )
            return

        def body(inner: Scope) -> Iterator[Stmt]:
            if race is Race.ORDERED and inner.carry is not None:
                inner = replace(inner, atomic=forall.index)
            inner, located = self._enter(forall, inner)
            condition, rest = self._split(forall)
            inside, entry = self._inside_entry(forall, rest, inner)
            below = tuple(inside.statement(rest, inner))
            if below:
                if race is not None and not self.env.graph.teams and inner.piece is None:
                    yield from self._unit_workspaces(forall)
                if inner.carry is not None and race is not None:
                    yield from empty_carry(inner.carry)
                yield from located
                if forall is self.env.graph.zeroing:
                    yield zero_below(self.env, inner)
                code = below
                if inside.entry is None:
                    code = _if_stored(entry, self._with_result(forall, inner, below))
                yield from begin_sums(inner, forall.index)
                yield from _if_true(lower_condition(self.env, inner, condition), code)
                yield from keep_sums(self.env, inner, forall.index)

        code = tuple(lower_loop(self.env, self.result, forall, scope, body))
        if code:
            yield Block(code)

    def _inside_entry(
        self, forall: Forall, body: Statement, scope: Scope
    ) -> tuple[Lowerer, BlockTest | None]:
        """Return the lowerer for the body of a loop over entries of the result, some of them
        absent.

        A single value is computed, and appended where it is stored. For a block, a test whether any
        of its elements is stored comes first.

        Raises ScheduleError where threads share the workspaces of such a test, which is serial.
        """
        level = appending_level(self.env, self.result, forall)
        position = None if level is None else scope.position(self.env.target, level)
        group = None if level is None else self.result.group_of(level)
        if level is None or position is None or group is None or group.last != level:
            return self, None
        if self.result.has_group_below(level):
            return self, None
        if is_certain(self.env, scope, body, self.env.target):
            return replace(self, in_block=True), None
        last = level + 1 == len(self.result.sizes)
        if last and value_assigned(body, self.env.target) is not None:
            entry = Entry(level, position, forall.index in scope.read)
            return replace(self, entry=entry), None
        shared = any(loop.parallel for loop in foralls(body))
        if shared and not self.env.graph.teams and workspaces_of(body):
            raise ScheduleError(
                f"Expected blocks of {self.env.target.tensor} that each iteration over "
                f"{forall.index} stores, found some that it may leave out, whose threads share a "
                "workspace",
                hint=f"share no loop inside the one over {forall.index}",
            )
        flag = Var(self.env.names.fresh(f"{self.env.target.tensor}_any"), BOOL)
        looker = replace(self, looks=flag)
        looking = shorten(tuple(looker.statement(body, replace(scope, serial=True))))
        begin = Declare(flag, build.const(False))
        return replace(self, in_block=True), BlockTest((begin, Block(looking)), flag)

    def _unit_workspaces(self, forall: Forall) -> Iterator[Stmt]:
        """Yield the allocations of workspaces that each unit of a GPU has for an iteration.

        Workspaces of inner loops that are shared, too, are not among them.
        """
        inner = {
            workspace.name
            for loop in foralls(forall.body)
            if loop.parallel
            for workspace in workspaces_of(loop.body)
        }
        for workspace in workspaces_of(forall.body):
            if workspace.name not in inner and not workspace.is_number:
                yield from workspaces.allocate(self.env, self.env.workspaces[workspace.name])

    def _split(self, forall: Forall) -> tuple[Value | None, Statement]:
        """Return the condition under which a loop appends a coordinate, and the statement under
        it."""
        if appending_level(self.env, self.result, forall) is None:
            return None, forall.body
        nothing = self.env.problem.result.fill_value
        return split_consumer(forall.body, nothing, self.env.target)

    def _strategy(self, forall: Forall, scope: Scope) -> Strategy | None:
        """Return how threads share a loop, where the loop itself does not suffice."""
        race = forall.mode.parallel
        if scope.serial:
            return None
        if race is Race.ATOMICS and scope.atomic is None:
            return lower_atomic
        if race is Race.ORDERED and not self.env.graph.teams and scope.sums is None:
            return lower_in_parts
        team = self.env.graph.in_team(self.env.graph.loop_of(forall))
        if not team or scope.piece is not None or scope.carry is not None:
            return None
        carries = race is Race.ORDERED and can_carry(self.env, forall)
        return lower_carrying if carries else lower_separately

    def _with_result(self, forall: Forall, scope: Scope, below: tuple[Stmt, ...]) -> Iterator[Stmt]:
        level = appending_level(self.env, self.result, forall)
        position = None if level is None else scope.position(self.env.target, level)
        if level is None or position is None:
            yield from below
            return
        yield from self.result.open(level, position, forall.index in scope.read)
        yield from below
        yield from self.result.close(level, position)

    def _enter(self, forall: Forall, scope: Scope) -> tuple[Scope, list[Stmt]]:
        """Return the scope with the positions that the loop's index completes, and their
        declarations."""
        level = appending_level(self.env, self.result, forall)
        group = None if level is None else self.result.group_of(level)
        if group is not None and group.last == level:
            for k in range(group.first, group.last + 1):
                scope = scope.at(self.env.target, k, group.counter)
        code: list[Stmt] = []
        for access in _accesses_below(forall.body):
            for k in range(len(access.indices)):
                if access not in scope.absent and scope.position(access, k) is None:
                    position = self._locate(access, k, scope)
                    if position is not None:
                        var = self.env.position_var(access, k)
                        code.append(Declare(var, position, constant=True))
                        scope = scope.at(access, k, var)
        return scope, code

    def _locate(self, access: Access, level: int, scope: Scope) -> Expr | None:
        """Return the position of a dense level whose parent and index are known, else None.

        Where the result's coordinates are copied, it is the position of the copied operand.
        """
        copied = self.env.copied if access == self.env.target else None
        if copied is not None and level < copied.depth:
            return scope.position(copied.access, level)
        parent = scope.position(access, level - 1)
        if parent is None or access.tensor in self.env.workspaces:
            return None
        arrays = self.env.tensors[access.tensor]
        form = arrays.type.format
        index = access.indices[form.mode_order[level]]
        if not form.levels[level].full or index not in scope.bound:
            return None
        coordinate: Expr = self.env.indices[index]
        if level == 0 and access == self.env.target:
            coordinate = build.sub(coordinate, self.result.base)
        if arrays.strides:
            return locate_strided(parent, coordinate, arrays.strides[level])
        return locate(parent, coordinate, self.env.sizes[index])


def _if_stored(block: BlockTest | None, code: Iterator[Stmt]) -> tuple[Stmt, ...]:
    """Return the code of an entry, under the test whether its block has a stored element."""
    if block is None:
        return tuple(code)
    return (*block.looking, build.if_(block.flag, Block(tuple(code))))


def _conjunction(*conditions: Expr) -> Expr:
    """Return the conjunction of conditions, except constantly true ones."""
    return build.and_(*(condition for condition in conditions if condition != ALWAYS))


def _if_true(condition: Expr, code: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield code under a condition; unconditionally where that is constantly true."""
    yield from code if condition == ALWAYS else (build.if_(condition, Block(code)),)


def _accesses_below(statement: Statement) -> tuple[Access, ...]:
    """Return the accesses that `statement` reads or writes, without duplicates."""
    every: dict[Access, None] = {}
    for assign in assignments(statement):
        every[assign.target] = None
        every.update(dict.fromkeys(accesses(assign.value)))
    return tuple(every)


def _reads(statement: Statement, access: Access) -> bool:
    """Tell whether an assigned value of a statement reads an access."""
    return any(access in accesses(assign.value) for assign in assignments(statement))
