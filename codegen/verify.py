"""What is legal in the loop IR, as a program: run after every pass in tests.

Names      every variable, array and table is a parameter or introduced before its use, in scope,
           and not introduced again where a scope around it has it already
Types      operands agree (`infer.agree`), conditions are bool, indices are signed integers, an
           operator exists for its type
Calls      only of internal functions that stand before, with as many arguments of the same types;
           a shared function calls none
Arrays     INPUT is never written; LOCAL is allocated first; only GROWING and LOCAL are reserved and
           only GROWING has a length
Parallel   a parallel loop assigns no variable declared outside it but its reductions, enlarges no
           array allocated outside it, inserts into no table made outside it, and is in no other;
           the same holds for a team but for the arrays of which each piece has its own part
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, assert_never

from codegen.emit.abi import THREADS
from codegen.infer import agree, has_atomic, supports, type_of, updates
from codegen.ir import (
    AddRuns,
    Allocate,
    Apply,
    Array,
    Assign,
    AtomicFetch,
    AtomicStore,
    Barrier,
    Binary,
    Block,
    Broadcast,
    Call,
    Cast,
    ClearTable,
    Combine,
    Comment,
    Const,
    Count,
    Declare,
    Expect,
    Expr,
    Fill,
    For,
    Function,
    If,
    Insert,
    Invoke,
    Key,
    Launch,
    Lead,
    Load,
    Module,
    NewTable,
    Prefetch,
    Ranked,
    Reserve,
    Search,
    Select,
    SetLength,
    Shuffle,
    Sort,
    SortTable,
    Stmt,
    Storage,
    Store,
    Table,
    Team,
    Unary,
    Var,
    VectorLoad,
    VectorStore,
    While,
)
from codegen.libraries.scalar_functions import CFunction, common_type, find_function
from codegen.names import is_reserved
from codegen.pretty import pretty
from codegen.tree import find
from codegen.types import BOOL, INT64, ScalarType, VectorType

Nameable = Var | Array | Table


class IRError(Exception):
    """The loop IR breaks a rule. `path` leads from the function to the statement that does."""

    def __init__(self, message: str, path: tuple[str, ...]) -> None:
        self.message = message
        self.path = path
        super().__init__("\n".join((message, *(f"  in {place}" for place in path))))


def verify(node: Function | Module) -> None:
    """Raise IRError unless `node` is legal."""
    functions = node.functions if isinstance(node, Module) else (node,)
    names = [function.name for function in functions]
    for name in names:
        if names.count(name) > 1:
            raise IRError(f"Expected one function of each name, found {name} twice", ())
    for place, function in enumerate(functions):
        _Verifier(function, functions[:place]).run()


class _Verifier:
    """One walk over a function with the names in scope, innermost scope last."""

    def __init__(self, function: Function, earlier: tuple[Function, ...] = ()) -> None:
        self.function = function
        self.callable = {f.name: f for f in earlier if f.internal}
        self.path = [f"function {function.name}"]
        self.scopes: list[dict[str, Nameable]] = [{}]
        self.parallel: int | None = None  # how many scopes are outside the parallel loop we are in
        self.reductions: frozenset[Var] = frozenset()
        self.own: frozenset[Array] = frozenset()  # of which each piece of a team has its own part

    def run(self) -> None:
        for array in self.function.arrays:
            self.require(array.storage is not Storage.LOCAL, f"LOCAL array {array} as a parameter")
            self.introduce(array)
        for scalar in self.function.scalars:
            self.introduce(scalar)
        if self.function.threaded:
            self.scopes[0][THREADS.name] = THREADS
        self.block(self.function.body)

    # ------------------------------------------------------------ names

    def fail(self, message: str) -> None:
        raise IRError(message, tuple(self.path))

    def require(self, condition: bool, fault: str) -> None:
        if not condition:
            self.fail(f"Illegal: {fault}")

    @contextmanager
    def inside(self, place: str) -> Iterator[None]:
        self.path.append(place)
        yield
        self.path.pop()

    def introduce(self, name_: Nameable) -> None:
        self.require(not is_reserved(name_.name), f"the reserved name {name_.name}")
        is_taken = any(name_.name in scope for scope in self.scopes)
        self.require(not is_taken, f"{name_.name} introduced where a scope has that name already")
        self.scopes[-1][name_.name] = name_

    def depth_of(self, nameable: Nameable) -> int:
        """Return the scope that introduced `nameable`, counted from outside."""
        for depth, scope in enumerate(self.scopes):
            if nameable.name in scope:
                introduced = scope[nameable.name]
                self.require(
                    introduced == nameable, f"{nameable!r} used, but in scope is {introduced!r}"
                )
                return depth
        self.fail(f"Illegal: {nameable.name} used before it is introduced, or out of its scope")
        raise AssertionError  # fail() does not return

    def outside_parallel(self, nameable: Nameable) -> bool:
        """Tell whether several threads share `nameable` here."""
        if nameable in self.own:
            return False
        return self.parallel is not None and self.depth_of(nameable) < self.parallel

    # ------------------------------------------------------------ expressions

    def expect(self, expr: Expr, expected: ScalarType) -> None:
        actual = self.type(expr)
        self.require(
            agree(actual, expected), f"{pretty(expr)} is a {actual} where a {expected} is wanted"
        )

    def index(self, expr: Expr) -> None:
        self.expect(expr, INT64)

    def type(self, expr: Expr) -> ScalarType:
        """Return the type of `expr`, everything in it checked."""
        match expr:
            case Var():
                self.depth_of(expr)
            case Const(value=value, type=scalar):
                self.require(_fits(value, scalar), f"the constant {value!r} as a {scalar}")
            case Unary() | Binary() | Shuffle():
                self.operator(expr)
            case Load(array=array, index=index) | VectorLoad(array=array, index=index):
                self.depth_of(array)
                self.index(index)
            case Select(condition=condition, then=then, orelse=orelse):
                self.expect(condition, BOOL)
                self.expect(orelse, self.type(then))
            case Search() | Count() | Key() | Ranked() | Lead():
                self.lookup(expr)
            case Cast(operand=operand) | Broadcast(value=operand):
                self.require(not isinstance(self.type(operand), VectorType), "a cast of a vector")
            case Call() | Apply():
                self.called(expr)
            case _:
                assert_never(expr)
        return type_of(expr)

    def called(self, expr: Call | Apply) -> None:
        types = [self.type(arg) for arg in expr.args]
        if isinstance(expr, Call):
            return
        function = find_function(expr.function)
        if function is None or function.arity != len(types):
            self.fail(f"Illegal: {pretty(expr)}, no function of {len(types)} arguments")
            return
        common = common_type(types)
        for type_ in types:
            self.require(agree(type_, common), f"{pretty(expr)} joins a {common} and a {type_}")
        has_function = isinstance(function.spellings.get(common.name), CFunction)
        self.require(has_function, f"{pretty(expr)}: no C function for {common}")

    def search(self, expr: Search) -> None:
        self.depth_of(expr.array)
        fits = expr.array.storage is Storage.INPUT and expr.array.element.is_integer
        self.require(fits, f"a search in {expr.array}, which is no input of integers")
        for bound in (expr.start, expr.stop, expr.value):
            self.index(bound)

    def lookup(self, expr: Search | Count | Key | Ranked | Lead) -> None:
        if isinstance(expr, Lead):
            self.depth_of(expr.array)
            return
        if isinstance(expr, Search):
            self.search(expr)
            return
        self.depth_of(expr.table)
        match expr:
            case Key(entry=index) | Ranked(rank=index):
                self.index(index)

    def operator(self, expr: Unary | Binary | Shuffle) -> None:
        if isinstance(expr, Shuffle):
            vector = self.type(expr.left)
            fits = isinstance(vector, VectorType) and self.type(expr.right) == vector
            self.require(fits, f"{pretty(expr)} of other than two vectors of one type")
            count = 2 * len(expr.lanes)
            is_legal = all(0 <= lane < count for lane in expr.lanes)
            self.require(is_legal, f"{pretty(expr)}: lanes that there are not")
            return
        if isinstance(expr, Unary):
            operand = self.type(expr.operand)
            is_legal = operand == BOOL if expr.op == "!" else expr.op == "-" and operand != BOOL
            self.require(is_legal, f"{expr.op} of a {operand}")
            return
        left, right = self.type(expr.left), self.type(expr.right)
        self.require(agree(left, right), f"{pretty(expr)} joins a {left} and a {right}")
        self.require(supports(left, expr.op), f"{pretty(expr)}: no {expr.op} for {left}")

    def update(self, op: str | None, old: ScalarType, value: Expr) -> None:
        self.expect(value, old)
        if op is not None:
            self.require(updates(old, op), f"the update {op}= of a {old}")

    # ------------------------------------------------------------ statements

    def block(self, block: Block, *introduced: Nameable) -> None:
        self.scopes.append({})
        for nameable in introduced:
            self.introduce(nameable)
        for stmt in block.body:
            with self.inside(_place(stmt)):
                self.statement(stmt)
        self.scopes.pop()

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Block():
                self.block(stmt)
            case Comment():
                pass
            case If(condition=condition, then=then, orelse=orelse):
                self.expect(condition, BOOL)
                self.block(then)
                self.block(orelse)
            case While(condition=condition, body=body):
                self.expect(condition, BOOL)
                self.block(body)
            case For() | Team() | Launch() | Combine() | Barrier():
                self.repeated(stmt)
            case Declare() | Assign() | Insert() | AtomicFetch():
                self.variable(stmt)
            case NewTable() | SortTable() | ClearTable():
                self.table(stmt)
            case Allocate() | Reserve() | SetLength() | Expect():
                self.memory(stmt)
            case (
                Store() | VectorStore() | AtomicStore() | AddRuns() | Fill() | Sort() | Prefetch()
                | Invoke()
            ):  # fmt: skip
                self.access(stmt)
            case _:
                assert_never(stmt)

    def repeated(self, stmt: For | Team | Launch | Combine | Barrier) -> None:
        if isinstance(stmt, Combine):
            self.update(stmt.op, stmt.var.type, stmt.var)
        elif isinstance(stmt, Barrier):
            pass
        elif isinstance(stmt, For):
            self.loop(stmt)
        elif isinstance(stmt, Launch):
            self.index(stmt.threads)
        else:
            self.team(stmt)

    def team(self, team: Team) -> None:
        self.index(team.count)
        self.require(self.function.threaded, "a team in a function without threads")
        self.require(self.parallel is None, "a team inside a parallel loop")
        for part in team.parts:
            self.depth_of(part.array)
            self.require(part.array.storage is Storage.GROWING, f"parts of {part.array}")
            is_counted = part.counts is None or part.counts in (other.array for other in team.parts)
            self.require(is_counted, f"{part.array} counts what does not come in parts")
        self.parallel = len(self.scopes)
        self.own = frozenset(part.array for part in team.parts)
        self.scopes.append({})
        for stmt in team.setup.body:
            self.require(isinstance(stmt, Allocate | NewTable), "a setup that does not allocate")
            self.statement(stmt)
        self.block(team.body, team.piece)
        self.scopes.pop()
        self.parallel, self.own = None, frozenset()

    def loop(self, loop: For) -> None:
        for bound in (loop.start, loop.stop):
            self.index(bound)
        self.require(loop.step > 0, f"a loop of step {loop.step}")
        plain = loop.is_serial or not loop.unroll
        self.require(plain and loop.unroll >= 0, f"a {loop.kind.value} loop unrolled")
        self.require(loop.var.type == INT64, f"a loop counter of type {loop.var.type}")
        left = loop.is_vector and any(True for _ in find(loop.body, Expect))
        self.require(not left, "a function left in the midst of a vector")
        for reduction in loop.reductions:
            self.depth_of(reduction.var)
        if not loop.is_parallel:
            self.block(loop.body, loop.var)
            return
        self.require(self.function.threaded, "a parallel loop in a function without threads")
        self.require(self.parallel is None, "a parallel loop in another")
        self.parallel = len(self.scopes)
        self.reductions = frozenset(r.var for r in loop.reductions)
        self.block(loop.body, loop.var)
        self.parallel, self.reductions = None, frozenset()

    def variable(self, stmt: Declare | Assign | Insert | AtomicFetch) -> None:
        match stmt:
            case Declare(var=var, value=value):
                self.expect(value, var.type)
                self.introduce(var)
            case Assign(var=var, value=value, op=op):
                self.update(op, var.type, value)
                shared = self.outside_parallel(var) and var not in self.reductions
                self.depth_of(var)
                self.require(not shared, f"threads assign {var.name}, which is no reduction")
            case Insert(table=table, key=key, entry=entry):
                self.index(key)
                self.depth_of(table)
                self.require(not self.outside_parallel(table), f"threads change {table.name}")
                self.introduce(entry)
            case AtomicFetch(var=var, array=array, index=index, value=value, expected=expected):
                self.depth_of(array)
                self.index(index)
                self.require(var.type == array.element, f"{var.name}, of another type than {array}")
                for value_ in (value, expected):
                    if value_ is not None:
                        self.expect(value_, array.element)
                self.introduce(var)
            case _:
                assert_never(stmt)

    def table(self, stmt: NewTable | SortTable | ClearTable) -> None:
        if isinstance(stmt, NewTable):
            self.introduce(stmt.table)
            return
        self.depth_of(stmt.table)
        self.require(not self.outside_parallel(stmt.table), f"threads change {stmt.table.name}")

    def memory(self, stmt: Allocate | Reserve | SetLength | Expect) -> None:
        if isinstance(stmt, Expect):
            self.expect(stmt.condition, BOOL)
            return
        array = stmt.array
        self.index(stmt.size)
        if isinstance(stmt, Allocate):
            self.require(array.storage is Storage.LOCAL, f"{array}, not LOCAL, allocated")
            self.introduce(array)
            return
        growing = array.storage is Storage.GROWING
        local = array.storage is Storage.LOCAL and isinstance(stmt, Reserve)
        self.require(growing or local, f"{array}, {array.storage.value}, resized")
        self.depth_of(array)
        self.require(not self.outside_parallel(array), f"threads resize {array}")

    def invoke(self, stmt: Invoke) -> None:
        self.require(not self.function.shared, f"the shared {self.function.name} calls another")
        called = self.callable.get(stmt.function)
        if called is None:
            self.fail(f"Illegal: a call of {stmt.function}, no internal function before this one")
            return
        self.require(
            (len(stmt.places), len(stmt.scalars), stmt.threads is not None)
            == (len(called.arrays), len(called.scalars), called.threaded),
            f"a call of {stmt.function} with other arguments than it has",
        )
        for place, array in zip(stmt.places, called.arrays, strict=True):
            self.depth_of(place.array)
            self.index(place.start)
            same = place.array.element == array.element
            self.require(same, f"{place.array} where a {array.element} array is wanted")
            growing = Storage.GROWING in (array.storage, place.array.storage)
            self.require(not growing, f"the GROWING {place.array} or {array} of a call")
            is_written = array.storage is not Storage.INPUT
            input_ = place.array.storage is Storage.INPUT
            self.require(not (is_written and input_), f"INPUT {place.array} written by a call")
        for value, scalar in zip(stmt.scalars, called.scalars, strict=True):
            self.expect(value, scalar.type)

    def access(
        self,
        stmt: Store | VectorStore | AtomicStore | AddRuns | Fill | Sort | Prefetch | Invoke,
    ) -> None:
        if isinstance(stmt, Invoke):
            self.invoke(stmt)
            return
        array = stmt.array
        self.depth_of(array)
        reads_only = isinstance(stmt, Prefetch)
        self.require(reads_only or array.storage is not Storage.INPUT, f"INPUT {array} written")
        match stmt:
            case Store(index=index, value=value, op=op):
                self.index(index)
                self.update(op, array.element, value)
            case (
                AtomicStore(index=index, value=value, op=op)
                | AddRuns(index=index, value=value, op=op)
            ):
                self.index(index)
                self.update(op, array.element, value)
                atomic = has_atomic(array.element, op)
                self.require(atomic, f"the atomic update {op}= of a {array.element}")
            case VectorStore(index=index, value=value):
                self.index(index)
                scalar = self.type(value)
                fits = isinstance(scalar, VectorType) and scalar.element == array.element
                self.require(fits, f"a {scalar} stored in {array}")
            case Fill(start=start, count=count, value=value):
                self.index(start)
                self.index(count)
                self.expect(value, array.element)
            case Sort(start=start, count=count, marks=marks):
                self.index(start)
                self.index(count)
                if marks is not None:
                    self.depth_of(marks)
                    self.require(marks.element.name == "bool", f"marks {marks}, not of truths")
                sortable = array.element.name in ("int32", "int64")
                self.require(sortable, f"{array}, of {array.element}, sorted")
            case Prefetch(index=index):
                self.index(index)
            case _:
                assert_never(stmt)


_PYTHON: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "int": int,
    "uint": int,
    "float": float,
    "complex": complex,
}


def _fits(value: Any, scalar: ScalarType) -> bool:
    """Tell whether a constant has the Python type that its scalar type calls for."""
    python_type = _PYTHON.get(scalar.kind)
    return (
        python_type is not None
        and isinstance(value, python_type)
        and (scalar.kind == "bool" or not isinstance(value, bool))
    )


def _place(stmt: Stmt) -> str:
    """Return the first line of a statement, for the path of an error."""
    return (pretty(stmt).splitlines() or ["an empty block"])[0]
