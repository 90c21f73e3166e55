"""Problems that are the place of an extremum along one index of a tensor.

    a[i] = min(j, place(X[i,j] == max(j', X[i,j']) or X[i,j] != X[i,j], j, size(j)))

is argmax(j, X[i,j]) as texts have it written out. `place` is the compiler's own operator, which no
text spells, so that its arguments are known to be the number of an index and its size.
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

    extremum  the operator that it is one of
    index     along which it is looked for
    inner     the index of the same size of all elements that each is compared with
    value     what is compared
    """

    extremum: Operator
    index: str
    inner: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Walk:
    """A place that is found in the elements of one tensor as it is stored.

    levels  the index of each level, outermost first
    fill    the value of what is not stored
    """

    place: Place
    access: Access
    levels: tuple[str, ...]
    fill: Number

    @property
    def order(self) -> tuple[str, ...]:
        """Return loops in the order of the levels."""
        index, inner = self.place.index, self.place.inner
        places = ((inner, index) if each == index else (each,) for each in self.levels)
        return tuple(name for names in places for name in names)

    @property
    def is_maximum(self) -> bool:
        """Tell whether the largest element is looked for."""
        return self.place.extremum.limit < 0


def place_of(expr: Expr) -> Place | None:
    """Return the place of an extremum that an expression is as a whole, None for any other."""
    if not isinstance(expr, Reduce) or not isinstance(expr.body, Call):
        return None
    found, index = expr.body, expr.index
    if found.operator != PLACE or not isinstance(found.args[0], Call):
        return None
    number = found.args[1]
    if not isinstance(number, Access) or number.indices != (index,):
        return None
    either = found.args[0]
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
    """Return the walk that finds all that a problem makes, None where there is none.

    Of a tensor of real numbers, all dense or with entries in order, into a dense result with the
    tensor's other indices.
    """
    assignment, result = problem.assignment, problem.result
    found = place_of(assignment.value)
    if found is None or assignment.operator is not None or problem.side:
        return None
    access, fill = _access(found.value)
    if access is None or access.subscripts or not is_full(result.format) or result.stored:
        return None
    type, target = problem.type_of(access.tensor), assignment.target
    levels = problem.stored(access)
    others = {*levels} - {found.index}
    if is_complex(type.dtype) or {*target.indices} != others or target.subscripts:
        return None
    if len(levels) != len({*levels}) or len(target.indices) != len(others):
        return None
    if len(levels) != type.format.order or problem.vast:
        return None
    if not is_full(type.format) and not _in_order(problem, access):
        return None
    return Walk(found, access, levels, fill)


def _access(value: Expr) -> tuple[Access | None, Number]:
    """Return the access that a value is, and what it is where nothing is stored."""
    match value:
        case Access():
            return value, 0
        case Call(operator, (Access() as access, Literal(fill))) if operator == FILLED:
            return access, fill
    return None, 0


def _in_order(problem: Problem, access: Access) -> bool:
    """Tell whether entries come in the order of their coordinates, a value each."""
    return lists_in_order(problem.type_of(access.tensor).format)


def walk(question: Question) -> Walk | None:
    """Return the walk for the problem of a question."""
    return walk_of(question.problem)
