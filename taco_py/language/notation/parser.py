"""Index notation from text, by recursive descent.

    assignment = access ("=" | "+=" | "*=" | "min" "=" | …) expression
    expression = truth (("and" | "or") truth)*                  Python's precedence throughout
    truth      = "not" truth | bits [("<" | "<=" | "==" | …) bits]
    bits       = sum (("|" | "^" | "&" | "<<" | ">>") sum)*
    sum        = term (("+" | "-") term)*                       left associative
    term       = factor (("*" | "/" | "//" | "%") factor)*      left associative
    factor     = ("-" | "+" | "~")* power                       -a * b is (-a) * b, as in Python
    power      = primary ["**" factor]                          -a**2 is -(a**2), as in Python
    primary    = number | "(" expression ")" | reduction | function | access
    reduction  = name "(" [(name ",")+ | "(" names ")" ","] expression ")"
    function   = name "(" expression ("," expression)* ")"
    access     = name ["[" [subscripts] "]" | "(" [names] ")"]

`language/notation/subscript_rules.py` has the grammar of subscripts.
Names of reductions and functions are keywords only before such a list: `sum(j, x[j])` is a sum,
`sum[j]`, `sum(j)` and `sum` are a tensor. `max(j, x[j])` reduces where `j` is an index of the text,
and is the greater of two numbers where it is an operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import replace
from functools import reduce

from taco_py.language.diagnostics.errors import NotationError, OperandTypeError
from taco_py.language.diagnostics.source import Span
from taco_py.language.diagnostics.suggest import nearest, nearest_of, with_suggestion
from taco_py.language.notation.checks import check_depth, free_indices
from taco_py.language.notation.functions.defined import DEFINED
from taco_py.language.notation.functions.function_table import (
    ALIASES,
    AND,
    DERIVATIVE_OPERATORS,
    FACTORS,
    INVERT,
    LADDER,
    MAX,
    MIN,
    NOT,
    OR,
    POWER,
    REDUCTIONS,
    arity_of,
    called,
    check_accumulates,
    check_reduces,
    is_called,
    is_reduction,
    make_call,
    make_reduction,
    nonzero,
    reduces,
)
from taco_py.language.notation.lexer import Token, TokenKind, tokenize
from taco_py.language.notation.long_chains import rebalanced, rebalanced_sum
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import (
    ADD,
    DIV,
    MOST_FACTORS,
    MUL,
    NEG,
    SUB,
    Operator,
    power,
)
from taco_py.language.notation.rewrites.index_numbers import index_number, index_size
from taco_py.language.notation.subscript_rules import SubscriptRules, unclosed
from taco_py.language.notation.tree import children

_TERM_OPERATORS = {op.symbol: op for op in (ADD, SUB)}
_FACTOR_OPERATORS = {op.symbol: op for op in (MUL, DIV, *FACTORS)}
_COMPARISONS, *_BITS = ({op.symbol: op for op in level} for level in LADDER)
_LEVELS: tuple[dict[str, Operator], ...] = (
    {"or": OR}, {"and": AND}, {}, _COMPARISONS, *_BITS, _TERM_OPERATORS, _FACTOR_OPERATORS,
)  # fmt: skip
"""Infix operators by precedence, the lowest first; `not` has the empty place."""
_NOT, _COMPARES, _SUMS, _PRODUCTS = 2, 3, len(_LEVELS) - 2, len(_LEVELS) - 1
_BINARY = {word: (level, op) for level, ops in enumerate(_LEVELS) for word, op in ops.items()}
_TIDY: dict[int, Callable[[Expr], Expr]] = {_SUMS: rebalanced_sum, _PRODUCTS: rebalanced}
"""Functions that balance long sums and products, by level."""
_PREFIXES = {op.symbol: op for op in (NEG, INVERT)}
_INDEX_ARITHMETIC = (*_TERM_OPERATORS, *_FACTOR_OPERATORS, "**")
_BIT = {op.symbol: op for level in LADDER[1:4] for op in level}
_ASSIGNMENTS: dict[str, Operator | None] = {
    "=": None, "+=": ADD, "*=": MUL, **{f"{symbol}=": op for symbol, op in _BIT.items()},
}  # fmt: skip
_WORDS = {"min": MIN, "max": MAX}
_ACCUMULATE = ", ".join((*list(_ASSIGNMENTS)[1:], *(f"{word}=" for word in _WORDS)))
"""Operators of accumulating assignments, as in y[i] min= x[i]."""
_NUMBERS = {"inf": float("inf"), "nan": float("nan"), "True": True, "False": False}
_CLOSING = {"[": "]", "(": ")"}
_EXAMPLE = 'an example of the notation is "y[i] = A[i,j] * x[j] + 2.5 * b[i]"'
_NO_NUMBER = re.compile(r"[\d.]+([eE]_?$|_)|0([xX][\da-fA-F]+|[oO][0-7]+|[bB][01]+)_?$")
"""A number directly followed by a name that looks like a misspelt number."""
_SEVERAL_HINT = "one assignment here; tp.evaluate and tp.compile take several, with ; between them"
_LINE_HINT = "a line goes on with the statement before it unless it begins as y[i] = does"
_SUM_HINT = "a sum names its indices first, as in sum(i, j, A[i,j] * B[i,j])"


def parse_assignment(text: str) -> Assignment:
    """Parse an assignment; each node has its span.

    >>> parse_assignment("y(i) += A(i,j)").target
    Access(tensor='y', indices=('i',))

    Raises:
        NotationError: the text is not an assignment; the message has carets under the place.
        OperandTypeError: `text` is not a string.
    """
    if not isinstance(text, str):
        raise OperandTypeError(
            f"Expected index notation as a string, found {type(text).__name__}", hint=_EXAMPLE
        )
    return Parser(tokenize(text)).assignment()


def parse_expression(text: str) -> Expr:
    """Parse an expression: `A[i,j] * x[j]`. Raises NotationError."""
    return Parser(tokenize(text)).full_expression()


class Parser(SubscriptRules):
    """Recursive-descent parser; each method consumes a rule and returns its node.

    bound    the indices of the left-hand side and of each enclosing reduction
    indices  the names inside square brackets anywhere in the text
    operands names of operands that would otherwise be read as numbers of indices
    """

    def __init__(self, tokens: tuple[Token, ...], operands: Container[str] = ()) -> None:
        super().__init__(tokens)
        self.bound: list[tuple[str, ...]] = []
        self.indices = _names_in_brackets(tokens)
        self.operands = operands

    def name(self, what: str, hint: str | None = None) -> Token:
        if self.token.kind is not TokenKind.NAME:
            raise self.error(what, hint)
        return self.take()

    # -------------------------------------------------------- the grammar

    def assignment(self) -> Assignment:
        first = self.token
        if first.kind is not TokenKind.NAME:
            raise self.error("the name of the result", _EXAMPLE)
        target = self.access()
        self.bound = [target.indices]
        operator = self.assignment_operator(target)
        return Assignment(target, self.full_expression(), operator, self.since(first))

    def assignment_operator(self, target: Access) -> Operator | None:
        """Parse the operator of an assignment; None for the equals sign alone."""
        word = ALIASES.get(self.token.text, self.token.text)
        if self.ahead(1).text == "=" and (word in _WORDS or reduces(word)):
            check_accumulates(word, self.take().span)
            self.take()
            operator: Operator = _WORDS.get(word) or DEFINED.operators[word]
            return operator
        if self.token.text not in _ASSIGNMENTS:
            what = f"'=' or another assignment after {target.tensor}"
            raise self.error(what, self.assignment_hint())
        return _ASSIGNMENTS[self.take().text]

    def full_expression(self) -> Expr:
        value = self.expression()
        if self.token.kind is not TokenKind.END:
            raise self.error("an operator or the end of the text", self.juxtaposition_hint())
        check_depth(value)
        return value

    def assignment_hint(self) -> str:
        match self.token.text:
            case "-=":
                return "write += and negate the right-hand side; tp.program takes -="
            case "," | "->":
                return "einsum's subscripts go to tp.einsum; here begin as in y[i] = A[i,j] * x[j]"
            case "==":
                return "an assignment has one equals sign"
            case "/=":
                return f"divide by *= of 1 over it; assignments accumulate by {_ACCUMULATE}"
            case "//" | "%" | "**" | "<<" | ">>" if self.ahead(1).text == "=":
                return f"assignments accumulate by {_ACCUMULATE}, whose order does not matter"
            case _ if self.ahead(1).text == "=":
                hint = f"assignments accumulate by {_ACCUMULATE}, and by functions that reduce"
                return with_suggestion(hint, self.token.text, (*_WORDS, *DEFINED.operators))
            case _:
                return "begin with the result, as in y[i] = A[i,j] * x[j]"

    def juxtaposition_hint(self) -> str | None:
        previous, token = self.tokens[self.position - 1], self.token
        if token.text == "[" and previous.text == "]":
            return "write all indices in one pair of brackets, as in A[i,j]"
        if token.text in _ASSIGNMENTS or token.text == "==":
            return "one assignment at a time"
        if token.text == ";":
            return _SEVERAL_HINT
        if "\n" in token.span.source.text[previous.span.stop : token.span.start]:
            return _LINE_HINT
        if (hint := self.spelling_hint()) is not None:
            return hint
        if token.kind is not TokenKind.SYMBOL or token.text in _CLOSING:
            return "write * for a product"
        return None

    def spelling_hint(self) -> str | None:
        """Suggest a spelling for a misspelt number, None for other mistakes."""
        previous, token = self.tokens[self.position - 1], self.token
        touches = token.span.start == previous.span.stop
        if not touches or previous.kind is not TokenKind.NUMBER:
            return None
        if token.kind is TokenKind.NUMBER or _NO_NUMBER.match(previous.text + token.text):
            return (
                f"{previous.text}{token.text} is no number: numbers are written as 2, 0.5, 1e-3 "
                "or 2j"
            )
        return None

    def expression(self, level: int = 0) -> Expr:
        """Parse operators of precedence `level` or higher, as in Python."""
        first, last = self.token, _PRODUCTS
        left = self.truth() if level <= _NOT and self.at("not") else self.factor()
        while self.token.text in _BINARY:
            operator_level, operator = _BINARY[self.token.text]
            if operator_level < level:
                break
            left, last = (
                left if operator_level == last else _TIDY.get(last, _as_it_is)(left),
                operator_level,
            )
            self.take()
            right = self.expression(operator_level + 1)
            if operator in (AND, OR):
                left, right = nonzero(left), nonzero(right)
            left = Call(operator, (left, right), self.since(first))
            if operator_level == _COMPARES and self.token.text in _COMPARISONS:
                raise self.error(
                    "one comparison", "write two of them as in (a[i] < b[i]) & (b[i] < c[i])"
                )
        return _TIDY.get(last, _as_it_is)(left)

    def truth(self) -> Expr:
        """Parse `not` and its operand; `not` may be repeated."""
        words = []
        while self.at("not"):
            words.append(self.take())
        return reduce(
            lambda inner, word: Call(NOT, (nonzero(inner),), self.since(word)),
            reversed(words),
            self.expression(_NOT + 1),
        )

    def factor(self) -> Expr:
        prefixes = []
        while self.at("+", *_PREFIXES):
            prefix = self.take()
            if prefix.text in _PREFIXES:
                prefixes.append(prefix)
        return reduce(
            lambda inner, prefix: Call(_PREFIXES[prefix.text], (inner,), self.since(prefix)),
            reversed(prefixes),
            self.power(),
        )

    def power(self) -> Expr:
        first, base = self.token, self.primary()
        if not self.at("**"):
            return base
        self.take()
        if self.token.kind is not TokenKind.NUMBER or not self.token.text.isdigit():
            return Call(POWER, (base, self.factor()), self.since(first))
        exponent = self.exponent()
        if max(exponent, 1) * factors_of_powers(base) > MOST_FACTORS:
            raise NotationError(
                f"Expected powers of at most {MOST_FACTORS} factors, found {exponent}"
                + (f" times {factors_of_powers(base)}" if factors_of_powers(base) > 1 else ""),
                self.since(first),
                "compute a part of it first, or the power with NumPy",
            )
        return Call(power(exponent), (base,), self.since(first))

    def exponent(self) -> int:
        """Parse the integer exponent after `**`, or evaluate a tower of them."""
        if self.token.kind is not TokenKind.NUMBER or not self.token.text.isdigit():
            raise self.error("an integer after a tower of '**'", "write parentheses around it")
        value = self.number().value
        assert isinstance(value, int)
        if not self.at("**"):
            return value
        self.take()
        above = self.exponent()
        return value if value < 2 and above else min(value ** min(above, 64), MOST_FACTORS + 1)

    def primary(self) -> Expr:
        token = self.token
        match token.kind:
            case TokenKind.NUMBER:
                return self.number()
            case TokenKind.NAME:
                return self.name_expression()
            case TokenKind.SYMBOL if token.text == "(":
                self.take()
                inner = self.nested(self.expression, token)
                self.closed(token, "an operator or ')'", self.juxtaposition_hint())
                return inner
            case _:
                raise self.error("a tensor, a number or '('")

    # -------------------------------------------------------- functions, reductions and accesses

    def name_expression(self) -> Expr:
        """Parse a number, reduction, function or access, which begins with a name."""
        token, opens = self.token, self.ahead(1).text == "("
        word = ALIASES.get(token.text, token.text)
        if word in _NUMBERS and self.ahead(1).text not in _CLOSING:
            self.take()
            return Literal(_NUMBERS[word], token.span)
        if opens and reduces(word) and self.lists_indices(word):
            return self.reduction(word)
        reads = word in REDUCTIONS or word in DERIVATIVE_OPERATORS
        if opens and (is_called(word) or (reads and not self.holds_names())):
            return self.function(word)
        return self.index_as_number() or self.access()

    def index_as_number(self) -> Access | None:
        """Parse `i` or `size(i)` where `i` is an index of the text, no operand; else return
        None."""
        token, opens = self.token, self.ahead(1).text == "("
        sized = token.text == "size" and opens and self.ahead(3).text == ")"
        name = self.ahead(2).text if sized else token.text
        bracket = self.ahead(1).text in _CLOSING and not sized
        if bracket or name not in self.indices or token.text in self.operands:
            return None
        self.take()
        if not sized:
            return index_number(name, token.span)
        self.take(), self.take(), self.take()
        return index_size(name, self.since(token))

    def lists_indices(self, word: str) -> bool:
        """Tell whether the next parentheses hold indices, then the body of a reduction."""
        first, after = self.ahead(2), self.ahead(3).text
        if first.kind is TokenKind.NAME and after == ",":
            number = first.text in self.operands
            if not number and not is_reduction(word):
                number = any(first.text in names for names in self.bound)
            return not is_called(word) or (first.text in self.indices and not number)
        return (
            first.text == "(" and self.holds_names(2) and self.ahead(self.names_end(2)).text == ","
        )

    def holds_names(self, start: int = 1) -> bool:
        """Tell whether the parenthesis `start` tokens ahead holds names and commas alone."""
        return self.ahead(self.names_end(start) - 1).text == ")"

    def holds_accesses(self) -> bool:
        """Tell whether the open parenthesis holds brackets, as the arguments of functions do."""
        end = next((k for k in range(len(self.tokens)) if self.ahead(k).text in (")", "")), 0)
        return any(self.ahead(k).text in ("[", "(") for k in range(end))

    def names_end(self, start: int) -> int:
        """Return the offset after the names that follow a parenthesis and its closing one."""
        end = start + 1
        while self.ahead(end).kind is TokenKind.NAME or self.ahead(end).text == ",":
            end += 1
        return end + 1

    def reduction(self, word: str) -> Expr:
        check_reduces(word, self.token.span)
        first, opening = self.take(), self.take()
        names = self.tuple_of_names() if self.at("(") else self.leading_names()
        indices = tuple(token.text for token in names)
        self.bound.append(indices)
        body = self.nested(self.expression, opening)
        self.bound.pop()
        self.closed(opening, "an operator or ')'", self.spelling_hint() or _SUM_HINT)
        return make_reduction(word, indices, body, self.since(first))

    def function(self, word: str) -> Expr:
        """Parse the arguments of a function, or of a reduction over all indices that are free
        inside."""
        first, opening = self.take(), self.take()
        args: list[Expr] = []
        while (not args and not self.at(")")) or self.at(","):
            if args:
                self.take()
            args.append(self.nested(self.expression, opening))
        self.closed(opening, "an operator or ')'", self.spelling_hint())
        span = self.since(first)
        if len(args) == 1 and (word in REDUCTIONS or (word in DEFINED.operators and reduces(word))):
            check_reduces(word, first.span)
            bound = {index for names in self.bound for index in names}
            indices = tuple(index for index in free_indices(args[0]) if index not in bound)
            if not indices:
                raise nothing_to_reduce(first.text, args[0], span)
            return make_reduction(word, indices, args[0], span)
        count = arity_of(word) if is_called(word) or word in DERIVATIVE_OPERATORS else 1
        if len(args) != count:
            names = ", ".join(("x[i]", "y[i]", "z[i]")[:count])
            raise NotationError(
                f"Expected {count} argument{'s' * (count > 1)} of {first.text}, found "
                f"{len(args) or 'none'}",
                span,
                f"write it as in {first.text}({names})",
            )
        return replace(make_call(word, tuple(args)), span=span)

    def tuple_of_names(self) -> list[Token]:
        """Parse `(i, j),` as in `sum((i, j), …)`."""
        self.take()
        names = self.names(")", _SUM_HINT)
        if not names:
            raise self.error("an index to sum over", _SUM_HINT)
        self.take()
        self.expect(",", "',' and what to sum", _SUM_HINT)
        return names

    def leading_names(self) -> list[Token]:
        """Parse `i, j,` as in `sum(i, j, …)`: each name before a comma."""
        names = []
        while self.token.kind is TokenKind.NAME and self.ahead(1).text == ",":
            names.append(self.take())
            self.take()
        return names

    def access(self) -> Access:
        first = self.take()
        indices: list[Token] = []
        if self.at("["):
            return self.indexed(first)
        if self.at("("):
            opening = self.take()
            if first.text not in REDUCTIONS and self.holds_accesses():
                raise NotationError(
                    f"Expected a function, found {first.text}", first.span, like(first.text)
                )
            hint = _SUM_HINT if first.text in REDUCTIONS else no_function(first.text)
            indices = self.names(")", hint, opening, first.text)
            self.take()
        return Access(first.text, tuple(token.text for token in indices), self.since(first))

    def closed(self, opening: Token, what: str, hint: str | None = None) -> None:
        """Match the token that closes `opening`; an error at the end of the text is about
        `opening`."""
        if self.ended:
            raise unclosed(opening, _CLOSING[opening.text], self.token)
        self.expect(_CLOSING[opening.text], what, hint)

    def names(
        self,
        closing: str,
        hint: str | None = None,
        opening: Token | None = None,
        tensor: str = "",
    ) -> list[Token]:
        """Parse index names with commas between them, up to `closing`, which is not consumed.

        opening  the bracket before them, subject of the error at the end of the text
        tensor   the tensor with these indices, or ""
        """
        names: list[Token] = []
        while not self.at(closing):
            if self.ended and opening is not None:
                self.closed(opening, "")
            if names:
                self.expect(",", f"',' or {closing!r}", hint or self.index_hint(tensor))
            fixed = self.index_hint(tensor) if names else None
            names.append(
                self.name("the name of an index", fixed or hint or self.index_hint(tensor))
            )
        return names

    def index_hint(self, tensor: str = "") -> str | None:
        """Suggest square brackets for numbers, arithmetic and gathers in parentheses."""
        symbol = self.token.kind is TokenKind.SYMBOL and self.at(*_INDEX_ARITHMETIC, "[")
        if tensor and (symbol or self.token.kind is TokenKind.NUMBER):
            return f"write it in square brackets, as in {tensor}[i+1,0] or {tensor}[p[i],j]"
        return None


def _as_it_is(expr: Expr) -> Expr:
    return expr


def _names_in_brackets(tokens: tuple[Token, ...]) -> frozenset[str]:
    depth, names = 0, set()
    for token, after in zip(tokens, (*tokens[1:], tokens[-1]), strict=True):
        depth += (token.text == "[") - (token.text == "]")
        if depth > 0 and token.kind is TokenKind.NAME and after.text != "[":
            names.add(token.text)
    return frozenset(names)


def nothing_to_reduce(name: str, body: Expr, span: Span) -> NotationError:
    """Build the error of a reduction whose indices are all bound outside it."""
    bound = ", ".join(free_indices(body))
    return NotationError(
        f"Expected an index to reduce by {name}, found "
        + (f"{bound}, which the left-hand side or a reduction around it has" if bound else "none"),
        span,
        f"an index that stands here alone is reduced, as j in y[i] = {name}(A[i,j])",
    )


def like(name: str) -> str:
    """Suggest functions whose names resemble an unknown name."""
    first, *more = nearest_of(name, (*called(), *REDUCTIONS, *ALIASES)) or [""]
    near = f"did you mean {first}? " if first else ""
    near += f"near are {', '.join(more)} too; " if more else ""
    return f'{near}docs/functions.md lists functions, and tp.function("{name}", …) makes one'


def no_function(name: str) -> str:
    """Explain that an unknown function name takes indices, with the nearest function."""
    near = nearest(name, (*called(), *REDUCTIONS, *ALIASES))
    return f"{name}(…) takes the names of indices" + (
        f"; did you mean {near}?" if near else ", for no function is called so"
    )


def factors_of_powers(expr: Expr) -> int:
    """Count the factors that powers of powers make of the innermost base."""
    inner = max(map(factors_of_powers, children(expr)), default=1)
    exponent = expr.operator.exponent if isinstance(expr, Call) else None
    return inner if exponent is None else inner * max(exponent, 1)
