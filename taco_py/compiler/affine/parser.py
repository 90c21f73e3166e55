"""Programs from text, by recursive descent.

program   = line+                                   indentation delimits the body of a `for`
line      = "for" name ["in" range] ":" [line] | statement (";" (statement | line))*
range     = [bounds] ".." [bounds] | bounds         N is 0..N
bounds    = affine | ("max" | "min") "(" affine ("," affine)* ")"
statement = access ("=" | "+=" | "-=") expression
expression, term, factor                            as in index notation
primary   = number | "(" expression ")" | function "(" expressions ")" | access
access    = name ["[" affine ("," affine)* "]"]
affine    = integers, indices and sizes with + - and * by an integer
"""

from __future__ import annotations

from polyhedral.affine import Affine, affine, parse_affine
from polyhedral.errors import NonAffineError
from taco_py.compiler.affine.lexer import Line, lines
from taco_py.compiler.affine.nodes import FUNCTIONS, LARGEST_SIZE, For, Item, Program, Range, Update
from taco_py.language.diagnostics.errors import NotationError, OperandTypeError
from taco_py.language.notation.checks import check_depth
from taco_py.language.notation.cursor import Cursor
from taco_py.language.notation.lexer import Token, TokenKind
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.operators import ADD, DIV, MUL, NEG, SUB, Operator

_TERMS = {op.symbol: op for op in (ADD, SUB)}
_FACTORS = {op.symbol: op for op in (MUL, DIV)}
_ASSIGNMENTS: dict[str, Operator | None] = {"=": None, "+=": ADD, "-=": SUB}
_EXAMPLE = 'an example is "for t in T: B[i] = 0.5 * (A[i-1] + A[i+1]); A[i] = B[i]"'
_AFFINE_HINT = "subscripts and ranges are sums of indices, sizes and integers, as in A[i+1, 2*j]"
_BLOCK_HINT = "indent what a `for` holds, all of it by the same number of spaces"


def parse_program(text: str) -> Program:
    """Parse `text` to a program, each node with its span.

    >>> parse_program("for t in T: x[i] = x[i-1]").body[0].index
    't'

    Raises:
        NotationError: the text is no program; the message has carets under the fault.
        OperandTypeError: `text` is not a string.
    """
    if not isinstance(text, str):
        raise OperandTypeError(
            f"Expected a program as a string, found {type(text).__name__}", hint=_EXAMPLE
        )
    text_lines = lines(text)
    if not text_lines:
        raise NotationError("Expected a statement or a `for`, found an empty text", hint=_EXAMPLE)
    items, rest = _block(text_lines, text_lines[0].indent)
    if rest:
        raise _misplaced(rest[0])
    return Program(items)


# ---------------------------------------------------------------- lines


def _block(rest: tuple[Line, ...], indent: int) -> tuple[tuple[Item, ...], tuple[Line, ...]]:
    """Parse the lines of one indentation; return their items, and the lines that follow."""
    items: list[Item] = []
    while rest and rest[0].indent == indent:
        line, rest = rest[0], rest[1:]
        line_items, rest = _line(_Parser(line.tokens), rest, indent)
        items += line_items
    if rest and rest[0].indent > indent:
        raise _misplaced(rest[0])
    return tuple(items), rest


def _misplaced(line: Line) -> NotationError:
    return NotationError(
        "Expected a line that begins where the one before it does, found another indentation",
        line.tokens[0].span,
        _BLOCK_HINT,
    )


def _line(
    parser: _Parser, rest: tuple[Line, ...], indent: int
) -> tuple[list[Item], tuple[Line, ...]]:
    """Parse the rest of a line, and the lines below that belong to its `for`."""
    items: list[Item] = []
    while not parser.ended:
        if parser.at_for():
            loop, rest = _for(parser, rest, indent)
            return [*items, loop], rest
        items.append(parser.statement())
        if not parser.ended:
            parser.expect(";", "an operator, ';' or the end of the line", parser.after_statement())
    return items, rest


def _for(parser: _Parser, rest: tuple[Line, ...], indent: int) -> tuple[For, tuple[Line, ...]]:
    first = parser.token
    index, bounds = parser.header()
    span = parser.since(first)
    if not parser.ended:
        items, rest = _line(parser, rest, indent)
        return For(index, bounds, tuple(items), span), rest
    if not rest or rest[0].indent <= indent:
        raise NotationError(
            f"Expected statements after `for {index}`, found none", span, _BLOCK_HINT
        )
    body, rest = _block(rest, rest[0].indent)
    if rest and rest[0].indent > indent:
        raise _misplaced(rest[0])
    return For(index, bounds, body, span), rest


# ---------------------------------------------------------------- inside a line


class _Parser(Cursor):
    """The tokens of a line; each method consumes a rule of the grammar and returns its value."""

    too_deep = "compute a part of the expression in a statement of its own"

    def error(self, expected: str, hint: str | None = None) -> NotationError:
        token = "the end of the line" if self.ended else str(self.token)
        return NotationError(f"Expected {expected}, found {token}", self.token.span, hint)

    def at_for(self) -> bool:
        return self.token.text == "for" and self.ahead(1).kind is TokenKind.NAME

    # -------------------------------------------------------- loops

    def header(self) -> tuple[str, Range]:
        """Parse `for i in 1..N:`."""
        self.take()
        index = self.take().text
        bounds = Range()
        if self.at("in"):
            self.take()
            self.expect_colon(index)
            bounds = self.range()
        self.expect(":", f"'in' or ':' after `for {index}`", 'as in "for i in 1..N-1: …"')
        return index, bounds

    def expect_colon(self, index: str) -> None:
        """Refuse a range without ':', which another `for` or an assignment would be read into."""
        rest = self.tokens[self.position :]
        ends = ((":", "for"), _ASSIGNMENTS, ("*=", "/=", "=="))
        end = next((t for t in rest if any(t.text in group for group in ends)), None)
        if end is None or end.text != ":":
            raise NotationError(
                f"Expected ':' after the range of `for {index}`, found none",
                rest[0].span,
                'as in "for i in 1..N-1: x[i] = 0"',
            )

    def range(self) -> Range:
        first: tuple[Affine, ...] = () if self.at("..") else self.bounds("max")
        if not self.at(".."):
            return Range((affine(0),), first)
        self.take()
        return Range(first, () if self.at(":") else self.bounds("min"))

    def bounds(self, extreme: str) -> tuple[Affine, ...]:
        """Parse one bound, or several in `max(…)` or `min(…)`."""
        if not self.at("max", "min"):
            return (self.affine("a range", "..", ":"),)
        if self.token.text != extreme and not (extreme == "max" and self._ends_line()):
            raise self.error(
                f"{extreme}(…)", "a range begins at the greatest and ends at the least of bounds"
            )
        self.take()
        self.expect("(", "'('")
        bounds = [self.affine("a range", ",", ")")]
        while self.at(","):
            self.take()
            bounds.append(self.affine("a range", ",", ")"))
        self.expect(")", "',' or ')'")
        return tuple(bounds)

    def _ends_line(self) -> bool:
        """Tell whether the next tokens are `min(…):`, the only bound of their range."""
        depth = 0
        for token in self.tokens[self.position :]:
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and token.text in ("..", ":"):
                return token.text == ":" and self.token.text == "min"
        return False

    def affine(self, place: str, *stops: str) -> Affine:
        """Parse an affine expression up to one of `stops`, which is not consumed."""
        first, depth = self.token, 0
        while not self.ended and not (depth == 0 and self.at(*stops)):
            depth += self.at("(", "[") - self.at(")", "]")
            self.take()
        if self.token is first:
            raise self.error(f"an index or a number in {place}", _AFFINE_HINT)
        span = self.since(first)
        text = span.source.text[span.start : span.stop]
        try:
            value = parse_affine(" ".join(text.split()))
        except NonAffineError as error:
            message = f"{error.message.rstrip('.')} in {place}"
            raise NotationError(message, span, error.hint or _AFFINE_HINT) from None
        if max(map(abs, (value.constant, *(factor for _, factor in value.terms)))) > LARGEST_SIZE:
            raise NotationError(
                f"Expected integers from -2^31 to 2^31 in {place}, found larger ones", span
            )
        return value

    # -------------------------------------------------------- statements

    def statement(self) -> Update:
        first = self.token
        if first.kind is not TokenKind.NAME:
            raise self.error("a statement or a `for`", _EXAMPLE)
        target = self.access()
        if self.token.text not in _ASSIGNMENTS:
            raise self.error(f"'=', '+=' or '-=' after {target.tensor}", self.assignment_hint())
        operator = _ASSIGNMENTS[self.take().text]
        value = self.expression()
        check_depth(value)
        return Update(target, operator, value, self.since(first))

    def assignment_hint(self) -> str:
        if self.token.text in ("*=", "/="):
            return f"write the target on the right too: x[i] = x[i] {self.token.text[0]} …"
        return "begin a statement with what it changes, as in y[i] += A[i,j] * x[j]"

    def after_statement(self) -> str | None:
        if self.token.text in (*_ASSIGNMENTS, "=="):
            return "one assignment at a time; ';' stands between two"
        return None if self.token.kind is TokenKind.SYMBOL else "write * for a product"

    def expression(self) -> Expr:
        return self.chain(self.term, _TERMS)

    def term(self) -> Expr:
        return self.chain(self.factor, _FACTORS)

    def factor(self) -> Expr:
        first = self.token
        if self.at("+"):
            self.take()
            return self.nested(self.factor, first)
        if self.at("-"):
            self.take()
            return Call(NEG, (self.nested(self.factor, first),), self.since(first))
        return self.primary()

    def primary(self) -> Expr:
        token = self.token
        if token.kind is TokenKind.NUMBER:
            return self.number()
        if self.at("("):
            self.take()
            inner = self.nested(self.expression, token)
            self.expect(")", "an operator or ')'")
            return inner
        if token.kind is not TokenKind.NAME:
            raise self.error("an array, a number or '('")
        if token.text in FUNCTIONS and self.ahead(1).text == "(":
            return self.call()
        return self.access()

    def call(self) -> Expr:
        """Parse `min(a, b)` or `sqrt(a)`."""
        first = self.take()
        operator = FUNCTIONS[first.text]
        opening = self.take()
        args = [self.nested(self.expression, opening)]
        while self.at(","):
            self.take()
            args.append(self.nested(self.expression, opening))
        self.expect(")", "',' or ')'")
        if len(args) != operator.arity:
            raise NotationError(
                f"Expected {operator.arity} arguments of {first.text}, found {len(args)}",
                self.since(first),
            )
        return Call(operator, tuple(args), self.since(first))

    def access(self) -> Access:
        first = self.take()
        indices: list[Affine] = []
        if self.at("("):
            raise self.error(
                f"an array or one of {', '.join(FUNCTIONS)}, and no call of {first.text}",
                "subscripts stand in square brackets, as in A[i, j]",
            )
        if self.at("["):
            self.take()
            while not self.at("]"):
                if indices:
                    self.expect(",", "',' or ']'")
                indices.append(self.affine(f"the access {self.text(first)}", ",", "]"))
            self.take()
        return Access(first.text, tuple(map(str, indices)), self.since(first))

    def text(self, first: Token) -> str:
        """Return the text of the access that begins at `first`."""
        stop, depth = first.span.stop, 0
        for token in self.tokens[self.tokens.index(first) + 1 :]:
            depth += (token.text == "[") - (token.text == "]")
            stop = token.span.stop
            if depth == 0:
                break
        return first.span.source.text[first.span.start : stop]
