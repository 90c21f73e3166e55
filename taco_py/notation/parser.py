"""Index notation from text, by recursive descent.

    assignment = access ("=" | "+=") expression
    expression = term (("+" | "-") term)*                       left associative
    term       = factor (("*" | "/") factor)*                   left associative
    factor     = ("-" | "+")* power                             -a * b is (-a) * b, as in Python
    power      = primary ["**" exponent]                        -a**2 is -(a**2), as in Python
    exponent   = integer ["**" exponent]
    primary    = number | "(" expression ")" | sum | access
    sum        = "sum" "(" (name ",")+ expression ")" | "sum" "(" "(" names ")" "," expression ")"
    access     = name ["[" [subscripts] "]" | "(" [names] ")"]

`notation/subscript_rules.py` has the grammar of subscripts.
`sum` is a keyword only before such a list: `sum(j, x[j])` is a sum, `sum[j]`, `sum(j)` and `sum`
are a tensor.
"""

from __future__ import annotations

import re
from functools import reduce

from taco_py.diagnostics.errors import NotationError, OperandTypeError
from taco_py.notation.checks import check_depth
from taco_py.notation.lexer import Token, TokenKind, tokenize
from taco_py.notation.long_chains import rebalanced, rebalanced_sum
from taco_py.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.notation.operators import (
    ADD,
    DIV,
    MOST_FACTORS,
    MUL,
    NEG,
    SUB,
    Operator,
    power,
)
from taco_py.notation.subscript_rules import SubscriptRules, unclosed
from taco_py.notation.tree import children

_TERM_OPERATORS = {op.symbol: op for op in (ADD, SUB)}
_FACTOR_OPERATORS = {op.symbol: op for op in (MUL, DIV)}
_INDEX_ARITHMETIC = (*_TERM_OPERATORS, *_FACTOR_OPERATORS, "**")
_ASSIGNMENTS: dict[str, Operator | None] = {"=": None, "+=": ADD}
_CLOSING = {"[": "]", "(": ")"}
_EXAMPLE = 'an example of the notation is "y[i] = A[i,j] * x[j] + 2.5 * b[i]"'
_SUM = "sum"
_DIVISION_HINT = "/ is the only division: round quotients with NumPy, as in np.floor(y)"
_NO_NUMBER = re.compile(r"[\d.]+([eE]_?$|_)|0([xX][\da-fA-F]+|[oO][0-7]+|[bB][01]+)_?$")
"""A number and a name without a blank between them that read as a number misspelt."""
_CALL_HINT = "functions are not part of the notation: compute them with NumPy, before or after"
_REDUCTIONS = ("max", "min", "mean", "prod", "any", "all", "norm", "std", "var")
_REDUCTION_HINT = "take others with NumPy or SciPy, before or after"
_SUM_HINT = "a sum names its indices first, as in sum(i, j, A[i,j] * B[i,j])"


def parse_assignment(text: str) -> Assignment:
    """The assignment that `text` spells, each node with its span.

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
    """The expression that `text` spells: `A[i,j] * x[j]`. Raises NotationError."""
    return Parser(tokenize(text)).whole_expression()


class Parser(SubscriptRules):
    """Each method consumes a rule and returns its node."""

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
        if self.token.text not in _ASSIGNMENTS:
            raise self.error(f"'=' or '+=' after {target.tensor}", self.assignment_hint())
        operator = _ASSIGNMENTS[self.take().text]
        return Assignment(target, self.whole_expression(), operator, self.since(first))

    def whole_expression(self) -> Expr:
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
            case "//":
                return _DIVISION_HINT
            case "==":
                return "an assignment has one equals sign"
            case _:
                return "begin with the result, as in y[i] = A[i,j] * x[j]"

    def juxtaposition_hint(self) -> str | None:
        previous, found = self.tokens[self.position - 1], self.token
        if found.text == "[" and previous.text == "]":
            return "write all indices in one pair of brackets, as in A[i,j]"
        if found.text in _ASSIGNMENTS or found.text == "==":
            return "one assignment at a time"
        if (hint := self.spelling_hint()) is not None:
            return hint
        if found.kind is not TokenKind.SYMBOL or found.text in _CLOSING:
            return "write * for a product"
        return None

    def spelling_hint(self) -> str | None:
        """What to write for a division of other languages, and for a number that is none."""
        previous, found = self.tokens[self.position - 1], self.token
        if found.text == "//":
            return _DIVISION_HINT
        touches = found.span.start == previous.span.stop
        if not touches or previous.kind is not TokenKind.NUMBER:
            return None
        if found.kind is TokenKind.NUMBER or _NO_NUMBER.match(previous.text + found.text):
            return (
                f"{previous.text}{found.text} is no number: numbers are written as 2, 0.5, 1e-3 "
                "or 2j"
            )
        return None

    def expression(self) -> Expr:
        return rebalanced_sum(self.chain(self.term, _TERM_OPERATORS))

    def term(self) -> Expr:
        return rebalanced(self.chain(self.factor, _FACTOR_OPERATORS))

    def factor(self) -> Expr:
        minuses = []
        while self.at("-") or self.at("+"):
            sign = self.take()
            if sign.text == NEG.symbol:
                minuses.append(sign)
        operand = self.power()
        return reduce(
            lambda inner, sign: Call(NEG, (inner,), self.since(sign)), reversed(minuses), operand
        )

    def power(self) -> Expr:
        first, base = self.token, self.primary()
        if not self.at("**"):
            return base
        self.take()
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
        """The integer that stands after `**`, or that a tower of them is."""
        token = self.token
        if token.kind is not TokenKind.NUMBER or not token.text.isdigit():
            raise self.error("an integer of 0 or more after '**'", self.exponent_hint())
        value = self.number().value
        assert isinstance(value, int)
        if not self.at("**"):
            return value
        self.take()
        above = self.exponent()
        return value if value < 2 and above else min(value ** min(above, 64), MOST_FACTORS + 1)

    def exponent_hint(self) -> str:
        if self.at("-"):
            return "divide by the power: 1 / x[i]**2 is x[i]**-2"
        if self.at("+", "("):
            return "write the number alone, as in x[i]**2"
        return "other powers are not part of the notation: compute them with NumPy, before or after"

    def primary(self) -> Expr:
        token = self.token
        match token.kind:
            case TokenKind.NUMBER:
                return self.number()
            case TokenKind.NAME:
                return self.sum() if self.at_sum() else self.access()
            case TokenKind.SYMBOL if token.text == "(":
                self.take()
                inner = self.nested(self.expression, token)
                self.closed(token, "an operator or ')'", self.juxtaposition_hint())
                return inner
            case _:
                raise self.error("a tensor, a number or '('")

    # -------------------------------------------------------- sums and accesses

    def at_sum(self) -> bool:
        opens = self.token.text == _SUM and self.ahead(1).text == "("
        listed = self.ahead(2).kind is TokenKind.NAME and self.ahead(3).text == ","
        return opens and (listed or self.ahead(2).text == "(")

    def sum(self) -> Expr:
        first = self.take()
        opening = self.take()
        names = self.tuple_of_names() if self.at("(") else self.leading_names()
        body = self.nested(self.expression, opening)
        self.closed(opening, "an operator or ')'", self.spelling_hint() or _SUM_HINT)
        span = self.since(first)
        return reduce(
            lambda inner, name: Reduce(ADD, name.text, inner, span), reversed(names), body
        )

    def tuple_of_names(self) -> list[Token]:
        """`(i, j),` as in `sum((i, j), …)`."""
        self.take()
        names = self.names(")", _SUM_HINT)
        if not names:
            raise self.error("an index to sum over", _SUM_HINT)
        self.take()
        self.expect(",", "',' and what to sum", _SUM_HINT)
        return names

    def leading_names(self) -> list[Token]:
        """`i, j,` as in `sum(i, j, …)`: each name that a comma follows."""
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
            hint = _SUM_HINT if first.text == _SUM else None
            if hint is None:
                hint = f"{first.text}(…) takes the names of indices; {_CALL_HINT}"
                if first.text in _REDUCTIONS:
                    hint = f"{first.text} is no reduction here, sum alone is; {_REDUCTION_HINT}"
            indices = self.names(")", hint, opening, first.text)
            self.take()
        return Access(first.text, tuple(token.text for token in indices), self.since(first))

    def closed(self, opening: Token, what: str, hint: str | None = None) -> None:
        """Take what closes `opening`; the error where the text ends before is about `opening`."""
        if self.ended:
            raise unclosed(opening, _CLOSING[opening.text])
        self.expect(_CLOSING[opening.text], what, hint)

    def names(
        self,
        closing: str,
        hint: str | None = None,
        opening: Token | None = None,
        tensor: str = "",
    ) -> list[Token]:
        """Index names with commas between them, up to `closing`, which is not consumed.

        opening  the bracket before them, which the error is about where the text ends
        tensor   whose indices they are, or ""
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
        """The remedy for what only square brackets hold: numbers, arithmetic and gathers."""
        symbol = self.token.kind is TokenKind.SYMBOL and self.at(*_INDEX_ARITHMETIC, "[")
        if tensor and (symbol or self.token.kind is TokenKind.NUMBER):
            return f"write it in square brackets, as in {tensor}[i+1,0] or {tensor}[p[i],j]"
        return None


def factors_of_powers(expr: Expr) -> int:
    """Count the factors that powers of powers make of the innermost base."""
    inner = max(map(factors_of_powers, children(expr)), default=1)
    exponent = expr.operator.exponent if isinstance(expr, Call) else None
    return inner if exponent is None else inner * max(exponent, 1)
