"""Affine programs as plain data: loops, accesses, statements, nests.

    for i in 0..N:                       Z  order (0, 0, 0)     loops i, j
      for j in 0..M:                     S  order (0, 0, 1, 0)  loops i, j, k
        Z: C[i, j] = 0
        for k in 0..K:
          S: C[i, j] += A[i, k] * B[k, j]

A statement's `order` is its position among its neighbours: one number before its first loop, and
one inside each loop (Kelly's 2d+1 form). Statements that agree in the first n + 1 numbers share
their first n + 1 loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import combinations

from codegen.records import dataclass
from polyhedral.affine import Affine, affine, parse_affine
from polyhedral.errors import NestError, NonAffineError


@dataclass(frozen=True, slots=True)
class Loop:
    """`for name in max(lower)..min(upper)`, the upper end excluded."""

    name: str
    lower: tuple[Affine, ...]
    upper: tuple[Affine, ...]

    def __str__(self) -> str:
        return f"{self.name} in {_extreme('max', self.lower)}..{_extreme('min', self.upper)}"


def _extreme(name: str, bounds: tuple[Affine, ...]) -> str:
    texts = ", ".join(map(str, bounds))
    return texts if len(bounds) == 1 else f"{name}({texts})"


class Mode(Enum):
    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # reads and writes: array[...] op= value


@dataclass(frozen=True, slots=True)
class Access:
    """One use of an array.

    `operator` of an UPDATE declares it associative and commutative: updates of one element by the
    same operator may then change places. None keeps them in order.
    """

    array: str
    subscripts: tuple[Affine, ...]
    mode: Mode = Mode.READ
    operator: str | None = None

    @property
    def reads(self) -> bool:
        return self.mode is not Mode.WRITE

    @property
    def writes(self) -> bool:
        return self.mode is not Mode.READ

    def commutes(self, other: Access) -> bool:
        """Tell whether both accesses are updates whose order does not matter."""
        are_updates = self.mode is other.mode is Mode.UPDATE
        return are_updates and self.operator is not None and self.operator == other.operator

    @property
    def place(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.subscripts))}]"

    def __str__(self) -> str:
        match self.mode:
            case Mode.READ:
                return self.place
            case Mode.WRITE:
                return f"{self.place} ="
            case Mode.UPDATE:
                return f"{self.place} {self.operator or ''}="


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that runs for each point of its loops at which every guard is 0 or more."""

    name: str
    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    order: tuple[int, ...]
    guards: tuple[Affine, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(loop.name for loop in self.loops)

    def shared_loops(self, other: Statement) -> int:
        """Return the number of outer loops that the two statements share."""
        count = 0
        for mine, theirs in zip(self.order[:-1], other.order[:-1], strict=False):
            if mine != theirs:
                break
            count += 1
        return count

    def __str__(self) -> str:
        loops = ", ".join(map(str, self.loops))
        guards = "".join(f" if {guard} >= 0" for guard in self.guards)
        order = ", ".join(map(str, self.order))
        return f"{self.name}({order}): {'; '.join(map(str, self.accesses))} for {loops}{guards}"


@dataclass(frozen=True, slots=True)
class Nest:
    """Statements under loops. `context` has expressions of the parameters, each 0 or more.

    Raises NestError where names clash or loops do not nest, and NonAffineError, naming the access,
    where a subscript uses something that is neither a loop variable nor a parameter.
    """

    statements: tuple[Statement, ...]
    parameters: tuple[str, ...] = ()
    context: tuple[Affine, ...] = ()

    def __post_init__(self) -> None:
        for statement in self.statements:
            _check_statement(statement, self.parameters)
        for condition in self.context:
            _check_names(condition, {*self.parameters}, f"the condition {condition} >= 0 of a nest")
        for first, second in combinations(self.statements, 2):
            _check_pair(first, second)

    def statement(self, name: str) -> Statement:
        """Return the statement called `name`; KeyError where there is none."""
        return {statement.name: statement for statement in self.statements}[name]

    def __str__(self) -> str:
        head = f"[{', '.join(self.parameters)}]"
        conditions = "".join(f" {condition} >= 0" for condition in self.context)
        return "\n".join([head + conditions, *map(str, self.statements)])


def _check_statement(statement: Statement, parameters: tuple[str, ...]) -> None:
    name, variables = statement.name, statement.variables
    if len(statement.order) != len(variables) + 1:
        raise NestError(
            f"Expected {len(variables) + 1} order numbers for {name} with {len(variables)} loops, "
            f"found {len(statement.order)}."
        )
    if len({*variables, *parameters}) != len(variables) + len(parameters):
        raise NestError(f"Expected different names for the loops and parameters of {name}.")
    for position, loop in enumerate(statement.loops):
        _check_bounds(loop, name, {*variables[:position], *parameters})
    names = {*variables, *parameters}
    for guard in statement.guards:
        _check_names(guard, names, f"the guard {guard} of {name}")
    for access in statement.accesses:
        for subscript in access.subscripts:
            _check_names(subscript, names, f"the access {access.place} of {name}")


def _check_bounds(loop: Loop, statement: str, names: set[str]) -> None:
    if not (loop.lower and loop.upper):
        raise NestError(f"Expected a lower and an upper bound of loop {loop.name} of {statement}.")
    for bound in (*loop.lower, *loop.upper):
        _check_names(bound, names, f"the bound {bound} of loop {loop.name} of {statement}")


def _check_names(value: Affine, names: set[str], place: str) -> None:
    foreign = [name for name in value.names if name not in names]
    if foreign:
        raise NonAffineError(
            f"Expected loop variables and parameters only in {place}, found {foreign[0]}.",
            "bounds may use outer loops; a parameter that no bound uses is to be listed among the "
            "nest's; values loaded from arrays are not affine",
        )


def _check_pair(first: Statement, second: Statement) -> None:
    if first.name == second.name:
        raise NestError(f"Expected different names of statements, found {first.name} twice.")
    shared = first.shared_loops(second)
    if first.variables[:shared] != second.variables[:shared]:
        raise NestError(f"Expected one name for each loop that {first} and {second} share.")
    if first.order[shared] == second.order[shared]:
        raise NestError(f"Expected an order between {first.name} and {second.name}, found none.")


# ---------------------------------------------------------------- from text


def loops(text: str) -> tuple[Loop, ...]:
    """Return the loops that `text` lists, outermost first.

    >>> print(*loops("i in 0..N, j in max(0, i-3)..i+1"), sep="; ")
    i in 0..N; j in max(0, i - 3)..i + 1
    """
    return tuple(_loop(part) for part in _split(text) if part.strip())


def _loop(text: str) -> Loop:
    match = re.fullmatch(r"\s*(\w+)\s+in\s+(.*?)\.\.(.*)", text, re.DOTALL)
    if match is None:
        raise NestError(f"Expected a loop like 'i in 0..N', found {text.strip()!r}.")
    name, lower, upper = match.groups()
    try:
        return Loop(name, _bounds(lower, "max"), _bounds(upper, "min"))
    except NonAffineError as error:
        message = f"{error.message.rstrip('.')} in the bounds of loop {name}."
        raise NonAffineError(message) from error


def _bounds(text: str, extreme: str) -> tuple[Affine, ...]:
    match = re.fullmatch(rf"\s*{extreme}\s*\((.*)\)\s*", text, re.DOTALL)
    return tuple(parse_affine(part) for part in (_split(match[1]) if match else [text]))


def access(text: str) -> Access:
    """Parse an access: `A[i, k]`, `C[i, j] =`, `C[i, j] +=`, `C[i, j] -=`.

    `+=`, `*=`, `min=` and `max=` declare the operator associative and commutative. Raises
    NonAffineError, naming the access.

    >>> print(access("C[i, 2*j + 1] += "))
    C[i, 2*j + 1] +=
    """
    match = re.fullmatch(r"\s*(\w+)\s*\[(.*)\]\s*(?:([-+*/]|min|max)?(=))?\s*", text, re.DOTALL)
    if match is None:
        raise NonAffineError(f"Expected an access like 'A[i, j]' or 'C[i] +=', found {text!r}.")
    array, inside, operator, assigns = match.groups()
    try:
        subscripts = tuple(parse_affine(part) for part in _split(inside) if part.strip())
    except NonAffineError as error:
        message = f"{error.message.rstrip('.')} in the access {array}[{inside}]."
        raise NonAffineError(message) from error
    mode = (Mode.UPDATE if operator else Mode.WRITE) if assigns else Mode.READ
    declared = operator if operator in ("+", "*", "min", "max") else None
    return Access(array, subscripts, mode, declared)


def statement(
    name: str, domain: str, accesses: str | Iterable[str], order: tuple[int, ...] | None = None
) -> Statement:
    """Return a statement from text; `order` is by default that of a perfect nest, all zeros.

    >>> print(statement("S", "i in 0..N, j in 0..i", "y[i] +=; L[i,j]; x[j]"))
    S(0, 0, 0): y[i] +=; L[i, j]; x[j] for i in 0..N, j in 0..i
    """
    parts = accesses.split(";") if isinstance(accesses, str) else accesses
    try:
        nested = loops(domain)
    except NonAffineError as error:
        raise NonAffineError(f"{error.message.rstrip('.')} of {name}.") from error
    return Statement(name, nested, tuple(map(access, parts)), order or (0,) * (len(nested) + 1))


def nest(*statements: Statement, context: str | Iterable[str | Affine] = ()) -> Nest:
    """Return a nest whose parameters are the names in bounds that are no loop of their statement.

    context  expressions of them that are 0 or more, in a text with ';' between them
    """
    conditions = context.split(";") if isinstance(context, str) else context
    used = {
        name
        for part in statements
        for loop in part.loops
        for bound in (*loop.lower, *loop.upper)
        for name in bound.names
        if name not in part.variables
    }
    return Nest(statements, tuple(sorted(used)), tuple(map(affine, conditions)))


def _split(text: str) -> list[str]:
    """Split `text` at its commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


# ---------------------------------------------------------------- instances


def instances(statement: Statement, parameters: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield the points at which `statement` runs, in the order of its loops."""
    yield from _points(statement, statement.loops, dict(parameters), parameters)


def _points(
    statement: Statement,
    rest: tuple[Loop, ...],
    values: dict[str, int],
    parameters: Mapping[str, int],
) -> Iterator[dict[str, int]]:
    if not rest:
        if all(guard.evaluate(values) >= 0 for guard in statement.guards):
            yield {name: value for name, value in values.items() if name not in parameters}
        return
    loop = rest[0]
    first = max(bound.evaluate(values) for bound in loop.lower)
    stop = min(bound.evaluate(values) for bound in loop.upper)
    for value in range(first, stop):
        yield from _points(statement, rest[1:], {**values, loop.name: value}, parameters)
