"""NumPy's einsum subscripts as index notation, from text and numbers alone.

    "ij,jk->ik"   ->  out[i,k] = sum(j, op0[i,j] * op1[j,k])
    "ii"          ->  out = sum(i, op0[i,i])
    "...j,j"      ->  out[_e0,_e1] = sum(j, op0[_e0,_e1,j] * op1[j])        for op0 of order 3

The dimensions of an ellipsis become the indices _e0, _e1, …, the last of them the rightmost
dimension; an operand with fewer of them has the last ones. NumPy lets a dimension of size 1 stand
for any size; that is for `drop_broadcast` to resolve once the shapes are known.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NotationError, OperandTypeError
from taco_py.language.diagnostics.source import Source, Span
from taco_py.language.notation.checks import accesses, unique
from taco_py.language.notation.long_chains import LONG, product
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.operators import ADD
from taco_py.language.notation.rewrites.reduce import with_sums
from taco_py.language.notation.tree import map_children

RESULT = "out"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SUBSCRIPT = re.compile(r"\.\.\.|[A-Za-z ]|[^\x00-\x7f\s]")
_EXAMPLE = 'as in einsum("ij,j->i", A, x)'

Subscripts = str | Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class _Label:
    """One subscript; `name` is None for an ellipsis, `rank` orders an implicit result."""

    name: str | None
    rank: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class _Term:
    """The subscripts of one operand or of the result."""

    labels: tuple[_Label, ...]
    span: Span | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels if label.name is not None)

    @property
    def has_ellipsis(self) -> bool:
        return any(label.name is None for label in self.labels)

    def expand(self, ellipsis: tuple[str, ...]) -> tuple[str, ...]:
        """Return the index names, with `ellipsis` substituted for the ellipsis."""
        parts = (ellipsis if label.name is None else (label.name,) for label in self.labels)
        return tuple(name for part in parts for name in part)


# ---------------------------------------------------------------- the two calling forms


def split_operands(args: Sequence[object]) -> tuple[Subscripts, tuple[object, ...]]:
    """Separate the positional arguments of `einsum` into subscripts and operands.

    ("ij,j", A, x)           -> "ij,j", (A, x)
    (A, [0, 1], x, [1], [0]) -> ([0, 1], [1], [0]), (A, x)

    Raises:
        NotationError: a string alone, an operand without subscripts, or no argument.
        OperandTypeError: the list of an operand's subscripts is not a list.
    """
    if args and isinstance(args[0], str):
        if len(args) == 1:
            raise NotationError("Expected operands after the subscripts, found none", hint=_EXAMPLE)
        return args[0], tuple(args[1:])
    if len(args) < 2:
        raise NotationError(
            f"Expected subscripts and operands, found {len(args)} argument{'s' * (len(args) != 1)}",
            hint=f"{_EXAMPLE} or einsum(A, [0, 1], x, [1], [0])",
        )
    operands = args[: len(args) // 2 * 2 : 2]
    lists = (*args[1::2], *args[len(args) // 2 * 2 :])
    return tuple(_sublist(sublist) for sublist in lists), tuple(operands)


def _sublist(subscripts: object) -> Sequence[object]:
    if isinstance(subscripts, str | bytes) or not hasattr(subscripts, "__iter__"):
        raise OperandTypeError(
            f"Expected a list of integers after an operand, found {type(subscripts).__name__}",
            hint=f"{_EXAMPLE}, subscripts first, or einsum(A, [0, 1], x, [1], [0])",
        )
    return tuple(subscripts)


def parse_einsum(subscripts: Subscripts, orders: Sequence[int]) -> Assignment:
    """Return the einsum of operands op0, op1, … into `out`, with explicit sums.

    subscripts  the string, or a sequence of integers from 0 on and Ellipsis for each operand,
                and one more for the result if it is not implicit
    orders      the number of dimensions of each operand

    An implicit result has the dimensions of the ellipsis, then the subscripts that occur once, in
    alphabetical (numerical) order.

    Raises:
        NotationError: where `numpy.einsum` raises ValueError, with carets where there is a string.
        OperandTypeError: where it raises TypeError, for subscripts of another type.
    """
    if isinstance(subscripts, str):
        terms, output = _read_text(subscripts)
    else:
        terms, output = _read_lists(subscripts, len(orders))
    _check_count(terms, orders)
    widths = list(map(_ellipsis_width, range(len(terms)), terms, orders))
    ellipsis = tuple(f"_e{k}" for k in range(max(widths)))
    operands = [
        Access(f"op{k}", term.expand(ellipsis[len(ellipsis) - width :]), term.span)
        for k, (term, width) in enumerate(zip(terms, widths, strict=True))
    ]
    names = _implicit_output(terms, ellipsis)
    if output is not None:
        _check_output(output, terms, ellipsis)
        names = output.expand(ellipsis)
    return _assignment(operands, Access(RESULT, names, output.span if output else None))


def _assignment(operands: list[Access], target: Access) -> Assignment:
    """Return the product of all operands, summed over each index that the target lacks."""
    value = product(operands)
    if len(operands) > LONG:
        return with_sums(Assignment(target, value))
    indices = unique(index for access in operands for index in access.indices)
    for index in reversed(indices):
        if index not in target.indices:
            value = Reduce(ADD, index, value)
    return Assignment(target, value)


# ---------------------------------------------------------------- reading


def _read_text(text: str) -> tuple[tuple[_Term, ...], _Term | None]:
    """Return the terms before the arrow, and the term after it or None."""
    source = Source(text, "subscripts")
    inputs, arrow, result = text.partition("->")
    terms, start = [], 0
    for part in inputs.split(","):
        terms.append(_read_term(source, start, start + len(part)))
        start += len(part) + 1
    output = _read_term(source, len(text) - len(result), len(text)) if arrow else None
    return tuple(terms), output


def _read_term(source: Source, start: int, stop: int) -> _Term:
    labels, position = [], start
    while position < stop:
        match = _SUBSCRIPT.match(source.text, position, stop)
        if match is None:
            raise _unknown_subscript(source, position)
        name, span = match.group(), Span(source, match.start(), match.end())
        if name == "...":
            labels.append(_Label(None, -1, span))
        elif name != " ":
            labels.append(_Label(name, ord(name), span))
        position = match.end()
    term = _Term(tuple(labels), Span(source, start, stop))
    _check_one_ellipsis(term)
    return term


def _unknown_subscript(source: Source, position: int) -> NotationError:
    character = source.text[position]
    match character:
        case ".":
            hint = "three dots stand for the remaining dimensions"
        case "-" | ">":
            hint = "one -> separates the operands' subscripts from the result's"
        case ",":
            hint = "commas separate operands; there is one result"
        case "[" | "]" | "=" | "(" | ")" | "*" | "+" | "/":
            hint = "index notation goes to tp.evaluate, einsum takes subscripts as in 'ij,j->i'"
        case _:
            hint = "subscripts are letters"
    return NotationError(
        f"Expected letters, '...', ',' or '->', found {character!r}",
        Span(source, position, position + 1),
        hint,
    )


def _read_lists(
    lists: Sequence[Sequence[object]], operands: int
) -> tuple[tuple[_Term, ...], _Term | None]:
    terms = tuple(_term_of_list(subscripts) for subscripts in lists)
    return (terms[:-1], terms[-1]) if len(terms) == operands + 1 else (terms, None)


def _term_of_list(subscripts: Sequence[object]) -> _Term:
    term = _Term(tuple(_label_of(subscript) for subscript in subscripts))
    _check_one_ellipsis(term)
    return term


def _label_of(subscript: object) -> _Label:
    if subscript is Ellipsis:
        return _Label(None, -1)
    if isinstance(subscript, bool) or not hasattr(subscript, "__index__"):
        raise OperandTypeError(
            f"Expected integers or Ellipsis as subscripts, found {subscript!r}",
            hint='or write the subscripts as a string, as in "ij,j->i"',
        )
    number = operator.index(subscript)
    if number < 0:
        raise NotationError(
            f"Expected subscripts from 0 on, found {number}", hint="number the subscripts from 0"
        )
    return _Label(_LETTERS[number] if number < len(_LETTERS) else f"i{number}", number)


# ---------------------------------------------------------------- rules


def _check_one_ellipsis(term: _Term) -> None:
    ellipses = [label for label in term.labels if label.name is None]
    if len(ellipses) > 1:
        raise NotationError(
            "Expected one ellipsis an operand, found another",
            ellipses[1].span,
            hint="an ellipsis stands for all dimensions that have no letter",
        )


def _check_count(terms: tuple[_Term, ...], orders: Sequence[int]) -> None:
    if not orders:
        raise NotationError("Expected at least one operand, found none", hint=_EXAMPLE)
    if len(terms) != len(orders):
        spare = terms[len(orders)].span if len(terms) > len(orders) else terms[-1].span
        raise NotationError(
            f"Expected subscripts for {len(orders)} operand{'s' * (len(orders) != 1)}, found them "
            f"for {len(terms)}",
            spare,
            hint="commas separate the subscripts of one operand from the next's",
        )


def _ellipsis_width(place: int, term: _Term, order: int) -> int:
    """Return the number of dimensions that the ellipsis of an operand stands for."""
    width = order - len(term.names)
    if width < 0 or (width > 0 and not term.has_ellipsis):
        raise NotationError(
            f"Expected {order} subscript{'s' * (order != 1)} for operand {place}, one a dimension, "
            f"found {len(term.names)}",
            term.span,
            hint="write one letter a dimension, or ... for those that all operands share",
        )
    return width


def _implicit_output(terms: tuple[_Term, ...], ellipsis: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ellipsis, then the subscripts that occur once, by rank."""
    ranks = {label.name: label.rank for term in terms for label in term.labels if label.name}
    uses = Counter(name for term in terms for name in term.names)
    return (*ellipsis, *sorted((name for name in uses if uses[name] == 1), key=ranks.__getitem__))


def _check_output(output: _Term, terms: tuple[_Term, ...], ellipsis: tuple[str, ...]) -> None:
    if ellipsis and not output.has_ellipsis:
        raise NotationError(
            f"Expected '...' in the subscripts of the result for the {len(ellipsis)} dimension"
            f"{'s' * (len(ellipsis) != 1)} that the operands have there, found none",
            output.span,
            hint="write ... there too, or give the dimensions letters to sum over them",
        )
    present = {name for term in terms for name in term.names}
    used: set[str] = set()
    for label in output.labels:
        if label.name in used:
            raise NotationError(
                f"Expected each subscript of the result once, found {label.name} again", label.span
            )
        if label.name is not None and label.name not in present:
            raise NotationError(
                f"Expected subscripts of the result that an operand has, found {label.name}",
                label.span,
                hint="the size of each dimension of the result comes from an operand",
            )
        used |= {label.name} if label.name else set()


# ---------------------------------------------------------------- dimensions of size 1


Squeezed = tuple[tuple[str, tuple[int, ...]], ...]
"""Operands with their axes of size 1 that an einsum leaves out."""


@dataclass(frozen=True, slots=True)
class Broadcast:
    """An einsum whose indices have one size each.

    squeezed  axes to remove from operands
    """

    assignment: Assignment
    squeezed: Squeezed


def drop_broadcast(assignment: Assignment, shapes: Mapping[str, tuple[int, ...]]) -> Broadcast:
    """Remove from operands the indices of size 1 that have another size elsewhere.

    NumPy repeats such an operand along that dimension, as it does an operand without the index.

        out[i] = op0[i] * op1[i], shapes (3,) and (1,)  ->  out[i] = op0[i] * op1, axis 0 dropped

    Sizes that disagree otherwise are left for the check of dimensions. `shapes` has all operands.
    """
    sizes: dict[str, int] = {}
    for access in accesses(assignment):
        for index, size in zip(access.indices, shapes[access.tensor], strict=True):
            sizes[index] = size if sizes.get(index, 1) == 1 else sizes[index]
    squeezed: dict[str, tuple[int, ...]] = {}
    for access in accesses(assignment):
        axes = _repeated_axes(access, shapes[access.tensor], sizes)
        if axes:
            squeezed[access.tensor] = axes
    if not squeezed:
        return Broadcast(assignment, ())
    value = _without_axes(assignment.value, squeezed)
    return Broadcast(replace(assignment, value=value), tuple(squeezed.items()))


def _repeated_axes(
    access: Access, shape: tuple[int, ...], sizes: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the axes of size 1 whose index has another size elsewhere, except on diagonals."""
    return tuple(
        axis
        for axis, (index, size) in enumerate(zip(access.indices, shape, strict=True))
        if size == 1 and sizes[index] != 1 and _uniform(access, shape, index)
    )


def _uniform(access: Access, shape: tuple[int, ...], index: str) -> bool:
    pairs = zip(access.indices, shape, strict=True)
    return len({size for name, size in pairs if name == index}) == 1


def _without_axes(expr: Expr, squeezed: Mapping[str, tuple[int, ...]]) -> Expr:
    if not isinstance(expr, Access):
        return map_children(expr, lambda child: _without_axes(child, squeezed))
    dropped = squeezed.get(expr.tensor, ())
    indices = tuple(index for axis, index in enumerate(expr.indices) if axis not in dropped)
    return replace(expr, indices=indices) if dropped else expr
