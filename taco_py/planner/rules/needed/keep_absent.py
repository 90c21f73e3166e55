"""Keep what is absent zero over a divisor, where a temporary does not tell it from a zero.

    T[i,f] = sum(j, A[i,j] * X[j,f]);  y[i,f] = T[i,f] / d[i]           A in ds, T dense
    → T_1[i] = sum(j, present(A[i,j]));  y[i,f] = kept(T[i,f] / d[i], T_1[i])

Where A stores nothing y is 0, also over a divisor of 0 or NaN. Dense factors leave nothing out and
are not asked. Sums of booleans are "or", so that T_1 is one byte for each of its elements.

So with other factors, which may be infinite, where no sum is around the product. Inside of a sum,
as in A[i,j] * T[j], they are taken for finite: to ask for each entry would slow all such products.

What asks whether a temporary stores an element is answered so too: stored(T[i]) is T_1[i]. So does
a sparse result, which stores what the text stores, whatever plan computes it:

    T[j] = sum(k, B[k,j] * x[k]);  Y[i,j] = S[i,j] * T[j]               Y and S in ds, T dense
    → T_1[j] = sum(k, present(B[k,j]));  Y[i,j] = S[i,j] * kept(T[j], T_1[j])

A sum over an operand with a coordinate for each entry (COO) is computed first under a divisor:
loops over the operand's coordinates would divide each entry by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from math import prod

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import top_reduction
from taco_py.language.formats import dense
from taco_py.language.legal.absent import (
    arg_fill,
    differing,
    divides,
    fill_of,
    is_factor,
    operator_of,
    reduced_fill,
    restricts,
    same,
    tells_zero,
)
from taco_py.language.legal.types import has_special_values
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.functions.function_table import EQUAL, NOT_EQUAL, WHERE
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import (
    ADD,
    FILLED,
    KEEP,
    MUL,
    PRESENT,
    SELECTED,
    Number,
    Operator,
)
from taco_py.language.notation.tree import children, exchange, is_call_of, walk
from taco_py.planner.algebra.rings import holds_zero
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Numbers, Phase, Rewrite, Rule, Site, Trials, assignments
from taco_py.planner.temporaries import with_temporary

REASON = "where something is stored: what is absent is 0 whatever it meets"


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Keep products and quotients of an assignment zero where a factor is absent."""
    for sum_ in tuple(_in_pieces(program, site.term(program))):
        reason = "a sum under a divisor, whose operand has a coordinate for each entry"
        extended, access = _before(program, site, context, sum_, reason)
        value = exchange(site.term(program), sum_, access)
        program = yield Rewrite(site.put(extended, value), reason)
    stored = _Stored(program, site, context)
    value = stored.resolve(site.term(program))
    if value != site.term(program):
        stored.program = yield Rewrite(site.put(stored.program, value), REASON)
    for product in tuple(_products(site.term(stored.program))):
        masked = product
        for part in stored.factors(product):
            masked = Call(KEEP, (masked, stored.in_temporary(part)))
        if masked is not product:
            value = exchange(site.term(stored.program), product, masked)
            stored.program = yield Rewrite(site.put(stored.program, value), REASON)
    program = stored.program
    if not program.is_full(site.target) and not all(map(program.is_full, program.results)):
        value = stored.mask_temporaries(site.term(program))
        if value != site.term(program):
            yield Rewrite(site.put(stored.program, value), REASON)


def _before(
    program: Program, site: Site, context: Context, value: Expr, reason: str
) -> tuple[Program, Access]:
    """Return the program with a value in a temporary before the assignment at a site."""
    part = replace(program, results=(site.target,))
    extended, access = with_temporary(part, context, value, free_indices(value), reason)
    facts = extended.facts[access.tensor]
    if prod(facts.shape) <= context.goal.machine.copies.dense_elements:
        type = replace(facts.type, format=dense(len(facts.shape)))
        extended = extended.with_facts({access.tensor: replace(facts, type=type)})
    return replace(extended, results=program.results), access


def _products(expr: Expr, summed: bool = False) -> Iterator[Expr]:
    """Yield the products and quotients that may map 0 to another number, the innermost first.

    summed  whether a sum is around the expression
    """
    if is_call_of(expr, FILLED) and expr.args[1] != Literal(0):
        return  # what is absent in there is said by the other number
    for child in _ends(expr) if _multiplies(expr) else children(expr):
        yield from _products(child, summed or isinstance(expr, Reduce))
    if _multiplies(expr):
        meets = [end for end in _ends(expr) if not is_factor(end)]
        needs_mask = any(_divides(part) or tells_zero(part) for part in _inside(expr))
        if needs_mask or (len(meets) > 1 and not summed):
            yield expr


def _multiplies(expr: Expr) -> bool:
    """Tell whether an operation is zero where one of its arguments is absent."""
    return isinstance(expr, Call) and any(zero == 0 for zero in expr.operator.annihilators)


def _divides(expr: Expr) -> bool:
    return isinstance(expr, Call) and divides(expr) and not is_factor(expr.args[1])


def _inside(expr: Expr) -> Iterator[Expr]:
    """Yield the operations of one product, from the outermost."""
    if _multiplies(expr):
        yield expr
        for child in children(expr):
            yield from _inside(child)


def _ends(expr: Expr) -> Iterator[Expr]:
    """Yield the factors and divisors of a product."""
    if not _multiplies(expr):
        yield expr
        return
    for child in children(expr):
        yield from _ends(child)


def _in_pieces(program: Program, expr: Expr) -> Iterator[Reduce]:
    """Yield the sums in numerators that loops over COO operands compute in pieces."""
    for product in _products(expr):
        for factor in _factors(product) if any(map(_divides, _inside(product))) else ():
            for node, _ in walk(factor):
                if isinstance(node, Reduce) and any(
                    not level.unique
                    for access in accesses(node)
                    for level in program.facts[access.tensor].type.format.levels
                ):
                    yield node
                    break


def _factors(expr: Expr) -> Iterator[Expr]:
    """Yield the factors of a product, without its divisors."""
    if not isinstance(expr, Call) or not _multiplies(expr):
        yield expr
        return
    for arg, zero in zip(expr.args, expr.operator.annihilators, strict=False):
        if zero == 0:
            yield from _factors(arg)


@dataclass(slots=True)
class _Stored:
    """Where temporaries store something, each in a temporary of its own, made when it is asked for.

    program   with the temporaries of the patterns
    patterns  an access to the pattern of each temporary, at its own indices; None for one with
              terms everywhere
    answers   those that tell all about the values that they are conditions of
    """

    program: Program
    site: Site
    context: Context
    patterns: dict[str, Access | None] = field(default_factory=dict)
    answers: set[Expr] = field(default_factory=set)

    def factors(self, product: Expr) -> list[Expr]:
        """Return the patterns of the factors whose temporaries store elements without terms."""
        special = has_special_values(expression_dtype(product, self.program.dtypes))
        if not special and not any(map(tells_zero, _inside(product))):
            return []
        patterns = (
            self.stored(factor)
            for factor in dict.fromkeys(_factors(product))
            if any(map(self.loses, accesses(factor))) and same(self.fill(factor), 0)
        )
        return [pattern for pattern in patterns if pattern is not None]

    def loses(self, access: Access) -> bool:
        """Tell whether a temporary stores elements that have no terms."""
        return self.is_made(access) and self.stored(access) is not None

    def resolve(self, expr: Expr, tested: frozenset[Access] = frozenset()) -> Expr:
        """Return the expression with its tests of stored elements resolved.

            filled(a + filled(T, 0), inf)    is inf where T is that, as T is where it stores nothing
            filled(a * filled(T, 0), inf)    → filled(selected(T_1, a * filled(T, 0), inf), inf)

        tested  the temporaries of which nobody has to ask: what is around says what is without them
        """
        if isinstance(expr, Reduce):
            return replace(expr, body=self.resolve(expr.body, tested))
        if not isinstance(expr, Call):
            return expr
        if expr.operator == FILLED and not self._only_lists(expr):
            return self._settled_fill(expr, tested)
        if expr.operator.at_absent is not None and expr.operator != FILLED:
            losing = any(map(self.loses, accesses(expr.args[0])))
            return (self.answered(expr) if losing else None) or expr
        return replace(expr, args=tuple(self.resolve(arg, tested) for arg in expr.args))

    def _only_lists(self, expr: Call) -> bool:
        """Tell whether the operation tests for stored elements of a sparse result."""
        if self.site.term(self.program) != expr or not same(self._number(expr), 0):
            return False
        if self.program.facts[self.site.target].type.fill:
            return True
        reduces = top_reduction(expr) is not None  # of what is filled, for it is no reduction
        return reduces and not self.program.is_full(self.site.target)

    def _settled_fill(self, expr: Call, tested: frozenset[Access]) -> Expr:
        value, number = expr.args
        losing = [access for access in dict.fromkeys(accesses(value)) if self.loses(access)]
        by_value = {
            access
            for access in losing
            if _tells(value, access, self.fill(access), self._number(expr))
        }
        losing_untested = [access for access in losing if access not in tested | by_value]
        restricting = [access for access in losing_untested if restricts(value, access)]
        if len(restricting) < len(losing_untested) or value in losing_untested:
            inside = self.resolve(value, tested)  # which may ask in parts of it
            return self.answered(expr, inside) or replace(expr, args=(inside, number))
        inside = self.resolve(value, tested | by_value | {*restricting})
        for access in restricting:
            if (pattern := self.stored(access)) is not None:
                inside = Call(SELECTED, (self.in_temporary(pattern), inside, number))
        return replace(expr, args=(inside, number))

    def mask_temporaries(self, expr: Expr, tested: frozenset[Access] = frozenset()) -> Expr:
        """Return the expression with a test on each temporary whether it stores something.

        tested  what has been asked around the expression
        """
        match expr:
            case Access() if self.loses(expr):
                pattern = self.in_temporary(self.stored(expr) or expr)
                return expr if pattern in tested else self.mask_access(expr, pattern)
            case Reduce():
                return replace(expr, body=self.mask_temporaries(expr.body, tested))
            case Call(operator, (value, number)) if operator == FILLED and number != Literal(0):
                losing = (mask for mask in dict.fromkeys(_values(value)) if self.loses(mask))
                parts = (self.stored(mask) for mask in losing if restricts(value, mask))
                masks = [self.in_temporary(mask) for mask in parts if mask is not None]
                inside = self.mask_temporaries(value, tested.union(masks))
                for mask in masks:
                    if mask not in tested | {*_conditions(inside)}:
                        inside = Call(SELECTED, (mask, inside, number))
                return replace(expr, args=(inside, number))
            case Call(operator) if operator.at_absent is None or operator == FILLED:
                if operator.condition is not None and expr.args[operator.condition] in self.answers:
                    return expr
                tested, places = tested.union(_conditions(expr)), self._places_asked(expr)
                args = tuple(
                    self.mask_temporaries(arg, tested) if place in places else arg
                    for place, arg in enumerate(expr.args)
                )
                return replace(expr, args=args)
        return expr

    def _places_asked(self, expr: Call) -> set[int]:
        """Return the arguments without which an operation stores nothing: no divisors or
        conditions.
        """
        operator, args = expr.operator, expr.args
        if operator == FILLED:
            return {*range(len(args))}
        if self.fill(expr) is None and operator.condition is None:
            return set()
        fills = [arg_fill(operator, arg, self.fill(arg)) for arg in args]
        groups = differing(operator_of(expr), fills)
        return {place for group in groups for place in group} - {operator.condition}

    def mask_access(self, access: Access, pattern: Access) -> Expr:
        """Return a temporary, replaced by its fill value where it stores nothing."""
        fill = self.fill(access)
        if fill is None or same(fill, 0):
            return Call(KEEP, (access, pattern))
        dtype = self.program.dtypes[access.tensor]
        nothing = Literal(fill, dtype=dtype.name)
        return Call(FILLED, (Call(SELECTED, (pattern, access, nothing)), nothing))

    def _number(self, expr: Call) -> Number | None:
        """Return the fill value of an expression."""
        return fill_of(expr.args[1], lambda _: None)

    def answered(self, asking: Call, inside: Expr | None = None) -> Expr | None:
        """Return a test of stored elements as a read of a temporary; None where no temporary
        matters. None where no temporary has a part in that.

        inside  the argument, settled; the argument itself where it is not given
        """
        value, *fills = asking.args
        pattern, value = self.stored(value), value if inside is None else inside
        if pattern is None:
            return value if fills else Literal(True)
        temporaries = {access.tensor for access in self.patterns.values() if access is not None}
        if temporaries.isdisjoint(access.tensor for access in accesses(pattern)):
            return None
        mask = self.in_temporary(pattern)
        if not fills:
            return _at_indices(mask, value)
        self.answers.add(mask)
        if same(self._number(asking), 0):
            return Call(KEEP, (value, mask))
        if not self.program.is_full(self.site.target):  # which stores what the condition allows
            return Call(FILLED, (Call(SELECTED, (mask, value, *fills)), *fills))
        return Call(WHERE, (mask, value, *fills))

    def in_temporary(self, part: Expr) -> Access:
        """Return an access to the pattern, stored in a temporary before the site."""
        if isinstance(part, Access):
            return part
        self.program, access = _before(self.program, self.site, self.context, part, REASON)
        return access

    def is_made(self, access: Access) -> bool:
        """Tell whether a tensor is a temporary that may store zeros where no term is."""
        define_ = next((s for s in self.program.temporaries if s.target == access.tensor), None)
        if define_ is None or self.program.is_full(access.tensor):
            return define_ is not None
        target = define_.assignment.target
        readers = [define.assignment.value for define in self.program.readers(access.tensor)]
        if holds_zero(define_.assignment.value, target, readers, self.program.dtypes):
            return False  # elements without terms are what is absent to those who read it
        return any(map(self.loses, accesses(define_.assignment.value)))

    def stored(self, expr: Expr) -> Expr | None:
        """Return the condition that an expression is stored; None where it is always stored."""
        match expr:
            case Access() if self.is_made(expr):
                return self.of_temporary(expr)
            case Access():
                return None if self.program.is_full(expr.tensor) else Call(PRESENT, (expr,))
            case Literal():
                return Call(PRESENT, (Literal(0),))
            case Reduce(operator, index, body):
                pattern = self.stored(body)
                if reduced_fill(operator, fill := self.fill(body)) is None and fill is not None:
                    return None
                if pattern is None or index not in free_indices(pattern):
                    return pattern
                return Reduce(ADD, index, pattern)
            case Call():
                return self._of_call(expr)

    def _of_call(self, expr: Call) -> Expr | None:
        if self.fill(expr) is None and expr.operator.condition is None:
            return None
        operator, args = expr.operator, expr.args
        fills = [arg_fill(operator, arg, self.fill(arg)) for arg in args]
        groups = differing(operator_of(expr), fills)
        parts = [self._of_any([args[place] for place in group]) for group in groups]
        if operator.condition is not None:
            parts.append(args[operator.condition])
        return _fold(MUL, parts) if any(parts) else None

    def _of_any(self, args: Sequence[Expr]) -> Expr | None:
        """Return the condition that one of several arguments is stored; None where one
        always is.
        """
        parts = [self.stored(arg) for arg in args if len(args) == 1 or not isinstance(arg, Literal)]
        if not parts:
            return Call(PRESENT, (Literal(0),))
        return _fold(ADD, parts) if all(parts) else None

    def fill(self, expr: Expr) -> Number | None:
        """Return the fill value of an expression; None where it has none."""
        return fill_of(expr, self._fill_of_access)

    def _fill_of_access(self, access: Access) -> Number | None:
        if self.stored(access) is None:
            return None
        is_temporary = self.is_made(access)
        return self.fill(self.program.define(access.tensor).assignment.value) if is_temporary else 0

    def of_temporary(self, access: Access) -> Access | None:
        """Return the pattern of a temporary's terms at the indices of an access to it."""
        define = self.program.define(access.tensor).assignment
        if access.tensor not in self.patterns:
            absent = self.fill(define.value) is not None
            pattern = self.stored(define.value) if absent else None
            self.patterns[access.tensor] = None if pattern is None else self.in_temporary(pattern)
        mask = self.patterns[access.tensor]
        if mask is None:
            return None
        names = dict(zip(define.target.indices, access.indices, strict=True))
        return replace(mask, indices=tuple(names.get(index, index) for index in mask.indices))


def _tells(expr: Expr, part: Access, value: Number | None, nothing: Number | None) -> bool:
    """Tell whether an expression is `nothing` where a part has a value, for sampled other
    values.
    """
    if nothing is None or value is None:
        return False
    other_accesses = [access for access in dict.fromkeys(accesses(expr)) if access != part]
    for numbers in itertools.product((2, -3, 0.5, 0), repeat=min(len(other_accesses), 3)):
        values: dict[Access, Number] = dict(
            zip(other_accesses, itertools.cycle(numbers), strict=False)
        )
        if not same(_value_at(expr, {**values, part: value}), nothing):
            return False
    return True


def _value_at(expr: Expr, values: Mapping[Access, Number]) -> Number | None:
    """Return the value of an expression for values of its accesses; None for a sum."""
    match expr:
        case Access():
            return values[expr]
        case Literal(number):
            return number
        case Call(operator, args) if not (operator.at_absent or operator.at_fills):
            numbers = tuple(_value_at(arg, values) for arg in args)
            return None if None in numbers else operator.at(numbers)
        case Call(_, args):
            return _value_at(args[0], values)
        case Reduce():
            return None


def _values(expr: Expr) -> Iterator[Access]:
    """Yield the accesses of an expression that are not conditions."""
    if isinstance(expr, Access):
        yield expr
    place = expr.operator.condition if isinstance(expr, Call) else None
    for k, child in enumerate(children(expr)):
        if k != place:
            yield from _values(child)


def _conditions(expr: Expr) -> Iterator[Access]:
    """Yield the accesses that are conditions of an operation and of its direct operands."""
    while isinstance(expr, Call) and expr.operator.condition is not None:
        condition = expr.args[expr.operator.condition]
        if isinstance(condition, Access):
            yield condition
        expr = expr.args[1 - expr.operator.condition]


def _at_indices(pattern: Expr, value: Expr) -> Expr:
    """Return the pattern of a value, broadcast to all indices of the value.

    stored(T[i,k]), T_1[i]    →   T_1[i] * ((T[i,k] == T[i,k]) + (T[i,k] != T[i,k]))

    Something has to say how many k there are; the second factor is true of any value.
    """
    if {*free_indices(value)} <= {*free_indices(pattern)}:
        return pattern
    always = Call(ADD, (Call(EQUAL, (value, value)), Call(NOT_EQUAL, (value, value))))
    return Call(MUL, (pattern, always))


def _fold(operator: Operator, parts: Iterable[Expr | None]) -> Expr:
    return reduce(lambda a, b: Call(operator, (a, b)), (part for part in parts if part is not None))


RULE = Rule("keep_absent", Phase.NECESSARY, apply, assignments, Numbers.EXACT)
