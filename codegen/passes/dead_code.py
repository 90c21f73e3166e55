"""Remove what has no effect that anyone can see.

    t = a[i]            (t is not read where it is known) ->  nothing
    t += 1              (t is never read)                 ->  nothing
    w = new float64[n]; w[i] = 0   (w is never loaded)    ->  nothing
    if c: pass                                            ->  nothing
    if c: pass  else: s                                   ->  if !c: s
    for i in 0..n: pass                                   ->  nothing
    while p < q: p += 1     (p is not read elsewhere)     ->  nothing

Expressions have no effects. One round may make another possible, so rounds go on to a fixpoint.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from codegen.build import not_
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    AtomicFetch,
    AtomicStore,
    Block,
    ClearTable,
    Combine,
    Comment,
    Count,
    Declare,
    Expect,
    Fill,
    For,
    Function,
    If,
    Insert,
    Invoke,
    Key,
    Lead,
    Load,
    Module,
    NewTable,
    Place,
    Prefetch,
    Ranked,
    Reserve,
    Search,
    SetLength,
    Sort,
    SortTable,
    Stmt,
    Storage,
    Store,
    Table,
    Team,
    Var,
    VectorLoad,
    VectorStore,
    While,
)
from codegen.records import dataclass
from codegen.tree import fixpoint, map_children, map_fields, walk
from codegen.variables import assigned_vars, count_reads, declared_vars, statements

_VISIBLE = (
    Store, VectorStore, Allocate, Reserve, SetLength, Fill, Sort, NewTable, Insert, SortTable,
    ClearTable, Invoke, Prefetch, AtomicStore, AtomicFetch, Team, Expect,
)  # fmt: skip


def remove_dead_code(module: Module) -> Module:
    """Return `module` without statements that have no effect."""
    return map_children(module, lambda f: clean(f) if isinstance(f, Function) else f)


def clean(function: Function) -> Function:
    """Return `function` without statements that have no effect; its parameters stay."""
    return fixpoint(function, _round)


def _round(function: Function) -> Function:
    uses = _uses(function.body)
    return map_fields(
        function, lambda name, value: _block(value, uses) if name == "body" else value
    )


@dataclass(frozen=True, slots=True)
class _Uses:
    """How often each variable is read, and which arrays and tables are asked for what they hold.

    `mentioned`: the tables that anything but their creation is about.
    `reread`: the variables that are declared in several places, loops among them.
    """

    reads: Counter[Var]
    reread: frozenset[Var]
    arrays: frozenset[Array]
    tables: frozenset[Table]
    mentioned: frozenset[Table]

    def needs(self, array: Array) -> bool:
        """Tell whether the contents of `array` matter."""
        return array.storage is not Storage.LOCAL or array in self.arrays

    def touches(self, array: Array) -> bool:
        """Tell whether `array` is read elsewhere, or is a result."""
        return array in self.arrays or array.storage not in (Storage.INPUT, Storage.LOCAL)


_READERS = frozenset((Load, Search, VectorLoad, Lead, Place, AtomicFetch))
_TABLE_READERS = frozenset((Count, Key, Ranked))
_TABLE_WRITERS = frozenset((Insert, SortTable, ClearTable))


def _uses(node: object) -> _Uses:
    arrays: set[Array] = set()
    tables: set[Table] = set()
    modified: set[Table] = set()
    declared: Counter[Var] = Counter()
    for below in walk(node):
        cls = below.__class__
        if cls in _READERS:
            arrays.add(below.array)
        elif cls is Sort and below.marks is not None:
            arrays.add(below.marks)
        elif cls is Declare or cls is For:
            declared[below.var] += 1
        elif cls in _TABLE_READERS:
            tables.add(below.table)
        elif cls in _TABLE_WRITERS:
            modified.add(below.table)
    return _Uses(
        count_reads(node),
        frozenset(var for var, count in declared.items() if count > 1),
        frozenset(arrays),
        frozenset(tables),
        frozenset(tables | modified),
    )


# ---------------------------------------------------------------- statements


def _block(block: Block, uses: _Uses) -> Block:
    body = tuple(
        after
        for place, stmt in enumerate(block.body)
        if not _is_unread(stmt, block.body[place + 1 :], uses)
        and (after := _statement(stmt, uses)) is not None
    )
    if all(isinstance(stmt, Comment) for stmt in body):
        body = ()
    same = len(body) == len(block.body) and all(
        a is b for a, b in zip(body, block.body, strict=True)
    )
    return block if same else Block(body)


def _is_unread(stmt: Stmt, rest_: tuple[Stmt, ...], uses: _Uses) -> bool:
    """Tell whether no statement after a declaration uses its variable."""
    if not isinstance(stmt, Declare) or stmt.var not in uses.reread:
        return False
    var = stmt.var
    return not any(count_reads(rest)[var] or var in assigned_vars(rest) for rest in rest_)


def _statement(stmt: Stmt, uses: _Uses) -> Stmt | None:
    """Return `stmt` without its dead parts; None where nothing remains."""
    match stmt:
        case Block() | If() | While() | For() | Team():
            return _compound(stmt, uses)
        case Declare(var=var) | Assign(var=var) | Combine(var=var):
            return stmt if uses.reads[var] else None
        case Insert(table=table, entry=entry):
            return stmt if uses.reads[entry] or table in uses.tables else None
        case SortTable(table=table) | ClearTable(table=table):
            return stmt if table in uses.tables else None
        case NewTable(table=table):
            return stmt if table in uses.mentioned else None
        case (
            Store(array=array) | VectorStore(array=array) | Allocate(array=array)
            | AtomicStore(array=array)
            | Fill(array=array) | Sort(array=array) | Reserve(array=array)
        ):  # fmt: skip
            return stmt if uses.needs(array) else None
        case Prefetch(array=array):
            return stmt if uses.touches(array) else None
    return stmt


def _compound(stmt: Block | If | While | For | Team, uses: _Uses) -> Stmt | None:
    match stmt:
        case Block():
            inner = _block(stmt, uses)
            return inner if inner.body else None
        case If():
            return _if(stmt, uses)
        case Team():
            return map_children(
                stmt, lambda below: _block(below, uses) if isinstance(below, Block) else below
            )
        case While() | For():
            if _is_idle(stmt, uses):
                return None
            return map_fields(stmt, lambda name, value: _loop_field(name, value, uses))


def _loop_field(name: str, value: Any, uses: _Uses) -> Any:
    if name == "reductions" and any(not uses.reads[r.var] for r in value):
        return tuple(r for r in value if uses.reads[r.var])
    return _block(value, uses) if name == "body" else value


def _if(stmt: If, uses: _Uses) -> If | None:
    then, orelse = _block(stmt.then, uses), _block(stmt.orelse, uses)
    if not then.body and not orelse.body:
        return None
    if not then.body:
        return If(not_(stmt.condition), orelse)
    if then is stmt.then and orelse is stmt.orelse:
        return stmt
    return If(stmt.condition, then, orelse)


def _is_idle(loop: While | For, uses: _Uses) -> bool:
    """Tell whether `loop` only changes variables that nothing outside it reads."""
    if any(isinstance(stmt, _VISIBLE) for stmt in statements(loop.body)):
        return False
    inside = count_reads(loop)
    assigned = assigned_vars(loop.body) - declared_vars(loop)
    return all(uses.reads[var] == inside[var] for var in assigned)
