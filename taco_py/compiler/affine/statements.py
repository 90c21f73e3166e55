"""The statements of a program with their loops, and checks of their names.

    for t in T:
        B[i] = A[i-1] + A[i+1]      S0  loops t in 0..T, i     order (0, 0, 0)
        A[i] = B[i]                 S1  loops t in 0..T, i     order (0, 1, 0)

An index without a `for` around the statement is a loop of that statement alone, open at both ends:
indices of the target come first, in its order, then those of the value. A name in a range that is
no index of an outer loop is a size, a number that the caller passes.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen.records import dataclass
from taco_py.compiler.affine.nodes import For, Item, Program, Range, Update, subscripts
from taco_py.language.diagnostics.errors import NotationError, OperandError
from taco_py.language.notation.checks import unique
from taco_py.language.notation.nodes import Access


@dataclass(frozen=True, slots=True)
class Loop:
    """`for index in range`, explicit in the text or implied by the statement."""

    index: str
    range: Range
    implied: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement, its loops from the outermost one, and its position among its neighbours.

    The position has one number before its first loop and one inside each loop.
    """

    name: str
    update: Update
    loops: tuple[Loop, ...]
    order: tuple[int, ...]

    @property
    def indices(self) -> tuple[str, ...]:
        return tuple(loop.index for loop in self.loops)


def place(program: Program) -> tuple[Placed, ...]:
    """Return the statements of `program` in the order of its text, S0, S1, …

    Raises:
        NotationError, OperandError: as `check_program`.
    """
    sizes = size_names(program)
    check_names(program, sizes)
    statements = tuple(
        Placed(f"S{number}", update, loops, order)
        for number, (update, loops, order) in enumerate(_placed(program.body, (), (), sizes))
    )
    _check_orders(statements)
    for statement in statements:
        _check_sum(statement)
    return statements


def _placed(
    items: tuple[Item, ...],
    loops: tuple[Loop, ...],
    order: tuple[int, ...],
    sizes: tuple[str, ...],
) -> Iterator[tuple[Update, tuple[Loop, ...], tuple[int, ...]]]:
    for position, item in enumerate(items):
        order_ = (*order, position)
        if isinstance(item, For):
            yield from _placed(item.body, (*loops, Loop(item.index, item.range)), order_, sizes)
        else:
            bound = {*sizes, *(loop.index for loop in loops)}
            implied = [name for name in used_names(item) if name not in bound]
            implied_loops = tuple(Loop(name, Range(), implied=True) for name in implied)
            yield item, (*loops, *implied_loops), (*order_, *(0,) * len(implied_loops))


def used_names(update: Update) -> tuple[str, ...]:
    """Return the names in the subscripts of a statement, names of the target first."""
    return unique(
        name
        for access in update.accesses
        for text, value in zip(access.indices, subscripts(access), strict=True)
        for name in sorted(value.names, key=text.index)
    )


def size_names(program: Program) -> tuple[str, ...]:
    """Return the sizes that the caller passes: names in ranges that are no index of an outer
    loop."""
    return unique(_sizes(program.body, frozenset()))


def _sizes(items: tuple[Item, ...], bound: frozenset[str]) -> Iterator[str]:
    for item in items:
        if isinstance(item, For):
            for value in (*item.range.lower, *item.range.upper):
                yield from (name for name in value.names if name not in bound)
            yield from _sizes(item.body, bound | {item.index})


def tensor_names(statements: tuple[Placed, ...]) -> tuple[str, ...]:
    """Return every array and number that statements use, in the order of their first use."""
    return unique(access.tensor for statement in statements for access in statement.update.accesses)


def written_names(statements: tuple[Placed, ...]) -> frozenset[str]:
    """Return the arrays that statements change."""
    return frozenset(statement.update.target.tensor for statement in statements)


# ---------------------------------------------------------------- checks


def check_names(program: Program, sizes: tuple[str, ...]) -> None:
    """Check that indices, sizes and arrays have different names, and nested loops different
    indices.

    Raises:
        NotationError
    """
    for loop, outer in _loops(program.body, ()):
        if loop.index in outer:
            raise NotationError(
                f"Expected an index of its own, found `for {loop.index}` inside another "
                f"`for {loop.index}`",
                loop.span,
                f"rename the inner one, for instance to {loop.index}2",
            )
        if loop.index in sizes:
            raise NotationError(
                f"Expected outer indices and sizes in ranges, found {loop.index}, the index of "
                "this loop, in a range outside of it",
                loop.span,
                "the range of a loop may use the indices of the loops around it",
            )
    updates = tuple(_updates(program.body))
    indices = {loop.index for loop, _ in _loops(program.body, ())}
    indices.update(name for update in updates for name in used_names(update))
    for access in (access for update in updates for access in update.accesses):
        if access.tensor in indices or access.tensor in sizes:
            kind = "a size" if access.tensor in sizes else "an index"
            raise NotationError(
                f"Expected an array, found {access.tensor}, which is {kind} elsewhere",
                access.span,
                "give the array another name; an index has no value in an expression",
            )


def _loops(
    items: tuple[Item, ...], outer: tuple[str, ...]
) -> Iterator[tuple[For, tuple[str, ...]]]:
    for item in items:
        if isinstance(item, For):
            yield item, outer
            yield from _loops(item.body, (*outer, item.index))


def _updates(items: tuple[Item, ...]) -> Iterator[Update]:
    for item in items:
        if isinstance(item, For):
            yield from _updates(item.body)
        else:
            yield item


def _check_orders(statements: tuple[Placed, ...]) -> None:
    first: dict[str, Access] = {}
    for access in (access for statement in statements for access in statement.update.accesses):
        first_access = first.setdefault(access.tensor, access)
        if len(first_access.indices) != len(access.indices):
            raise OperandError(
                f"Expected {access.tensor} with {len(first_access.indices)} subscripts, as where "
                f"it is first used, found it with {len(access.indices)}",
                access.span,
                "give two arrays two names",
            )


def _check_sum(statement: Placed) -> None:
    """Check that an assignment has no implied index on the right alone, as it is no reduction."""
    if statement.update.operator is not None:
        return
    target = {name for value in subscripts(statement.update.target) for name in value.names}
    for loop in statement.loops:
        if loop.implied and loop.index not in target:
            name = statement.update.target.tensor
            raise NotationError(
                f"Expected the indices of {name} in what it becomes, found {loop.index} as well",
                statement.update.span,
                f"begin the sum in a statement of its own, {name}[…] = 0, and add: {name}[…] += …",
            )
