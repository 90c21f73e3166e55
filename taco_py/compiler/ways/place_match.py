"""Problems that are the place (index) of an extremum along one index of a tensor.

    a[i] = min(j, place(X[i,j] == max(j', X[i,j']) or X[i,j] != X[i,j], j, size(j)))

is the expansion of argmax(j, X[i,j]). `place` is an internal operator, which texts cannot spell, so
that its arguments are known to be the number of an index and its size.
"""

from __future__ import annotations

from codegen.records import dataclass
from taco_py.compiler.ways.way import Question
from taco_py.language.legal.stored import is_full, lists_in_order
from taco_py.language.legal.types import is_complex
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import FILLED, PLACE, Number, Operator
from taco_py.language.notation.tree import map_accesses
from taco_py.language.problem import Problem


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an extremum.

    extremum  the operator, such as max
    index     the index along which it is searched
    inner     the index of the same size over the elements that each one is compared with
    value     the compared expression
    """

    extremum: Operator
    index: str
    inner: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Walk:
    """A search of a place through the elements of one tensor in storage order.

    levels  the index of each level, outermost first
    fill    the value of elements that are not stored
    """

    place: Place
    access: Access
    levels: tuple[str, ...]
    fill: Number

    @property
    def order(self) -> tuple[str, ...]:
        """Return loops in the order of the levels."""
        index, inner = self.place.index, self.place.inner
        places = ((inner, index) if level == index else (level,) for level in self.levels)
        return tuple(name for names in places for name in names)

    @property
    def is_maximum(self) -> bool:
        """Tell whether the search is for the largest element."""
        return self.place.extremum.limit < 0


def place_of(expr: Expr) -> Place | None:
    """Return the place of an extremum that an expression is, None for any other expression."""
    if not isinstance(expr, Reduce) or not isinstance(expr.body, Call):
        return None
    call, index = expr.body, expr.index
    if call.operator != PLACE or not isinstance(call.args[0], Call):
        return None
    number = call.args[1]
    if not isinstance(number, Access) or number.indices != (index,):
        return None
    either = call.args[0]
    if len(either.args) != 2 or not isinstance(either.args[0], Call):
        return None
    value, best = either.args[0].args
    if not isinstance(best, Reduce) or not best.operator.limit:
        return None
    if _renamed(best.body, best.index, index) != value:
        return None
    return Place(best.operator, index, best.index, value)


def _renamed(expr: Expr, old: str, new: str) -> Expr:
    """Return the expression with another name for one of its free indices."""

    def renamed(access: Access) -> Access:
        names = tuple(new if name == old else name for name in access.indices)
        return Access(access.tensor, names, access.span, access.subscripts)

    return map_accesses(expr, renamed)


def walk_of(problem: Problem) -> Walk | None:
    """Return the walk that computes a problem, None where there is none.

    The tensor has real numbers, is dense or has entries in order; the result is dense and has the
    tensor's other indices.
    """
    assignment, result = problem.assignment, problem.result
    place = place_of(assignment.value)
    if place is None or assignment.operator is not None or problem.side:
        return None
    access, fill = _access(place.value)
    if access is None or access.subscripts or not is_full(result.format) or result.stored:
        return None
    type, target = problem.type_of(access.tensor), assignment.target
    levels = problem.stored(access)
    other_indices = {*levels} - {place.index}
    if is_complex(type.dtype) or {*target.indices} != other_indices or target.subscripts:
        return None
    if len(levels) != len({*levels}) or len(target.indices) != len(other_indices):
        return None
    if len(levels) != type.format.order or problem.vast:
        return None
    if not is_full(type.format) and not _in_order(problem, access):
        return None
    return Walk(place, access, levels, fill)


def _access(value: Expr) -> tuple[Access | None, Number]:
    """Return the access that a value consists of, and its fill value."""
    match value:
        case Access():
            return value, 0
        case Call(operator, (Access() as access, Literal(fill))) if operator == FILLED:
            return access, fill
    return None, 0


def _in_order(problem: Problem, access: Access) -> bool:
    """Tell whether entries are in the order of their coordinates, each with a value."""
    return lists_in_order(problem.type_of(access.tensor).format)


def walk(question: Question) -> Walk | None:
    """Return the walk for the problem of a question."""
    return walk_of(question.problem)
