"""Several assignments in one text, separated and checked.

    m[i] = A[i,j] * x[j]; r[i] = b[i] - m[i]; s = r[i] * r[i]

A `;` ends a statement. So does a line break where the next line begins with a result and an
assignment operator; any other line continues the statement before it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from taco_py.language.diagnostics.errors import NotationError, OperandError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.checks import accesses, unique
from taco_py.language.notation.lexer import Token, TokenKind, tokenize
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.parser import Parser, parse_assignment

_OPENING, _CLOSING = ("[", "("), ("]", ")")
_COMPARISONS = ("==", "<=", ">=", "!=")
_PROGRAM = "a value that is computed from its earlier one is tp.program's"

# ---------------------------------------------------------------- from text


def parse_statements(text: str, operands: Container[str] = ()) -> tuple[Assignment, ...]:
    """Parse the assignments of `text` in order; each node has its span.

    operands  names that are operands, also where an index of the text has the same name

    >>> [each.target.tensor for each in parse_statements("m[i] = A[i,j]; r[i] = 2 * m[i]")]
    ['m', 'r']

    Raises NotationError with carets, OperandTypeError where `text` is not a string.
    """
    if not isinstance(text, str):
        return (parse_assignment(text),)
    return tuple(Parser(part, operands).assignment() for part in _parts(tokenize(text)))


def _parts(tokens: tuple[Token, ...]) -> Iterator[tuple[Token, ...]]:
    """Yield the tokens of each statement, the last of kind END; a final `;` is allowed."""
    first, depth = 0, 0
    for place, token in enumerate(tokens):
        if token.text == ";":
            yield (*tokens[first:place], replace(token, kind=TokenKind.END))
            first, depth = place + 1, 0
            continue
        begins = first < place and depth == 0 and _on_new_line(tokens, place)
        if begins and _begins_statement(tokens, place):
            end = tokens[place - 1].span
            span = replace(end, start=end.stop, stop=end.stop + 1)
            yield (*tokens[first:place], Token(TokenKind.END, "\n", span))
            first = place
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
    if first < len(tokens) - 1 or first == 0:
        yield tokens[first:]


def _on_new_line(tokens: Sequence[Token], place: int) -> bool:
    """Tell whether a line break precedes a token."""
    before, token = tokens[place - 1].span, tokens[place].span
    return "\n" in token.source.text[before.stop : token.start]


def _begins_statement(tokens: Sequence[Token], place: int) -> bool:
    """Tell whether `name[…] =` begins at a token, with any assignment operator."""
    if tokens[place].kind is not TokenKind.NAME:
        return False
    place += 1
    if tokens[place].text in _OPENING:
        depth = 0
        while tokens[place].kind is not TokenKind.END:
            depth += (tokens[place].text in _OPENING) - (tokens[place].text in _CLOSING)
            place += 1
            if not depth:
                break
    text = tokens[place].text
    return text.endswith("=") and text not in _COMPARISONS


# ---------------------------------------------------------------- checks


def _check_own_target(assignment: Assignment) -> None:
    """Check that a statement does not read its result. Raises NotationError."""
    target = assignment.target.tensor
    for access in accesses(assignment):
        if access.tensor == target:
            raise NotationError(
                f"Expected a value that does not read what it assigns, found {target} on both "
                "sides",
                access.span,
                f"write {target}[…] += … to add to it, or give the result another name; {_PROGRAM}",
            )


def check_sequence(statements: Sequence[Assignment]) -> None:
    """Check that names are assigned once, before they are read, with consistent numbers of indices.

    Raises NotationError for `y[i] = …; y[i] = …`, or a name that is read before it is assigned.
    """
    assigned: dict[str, Access] = {}
    later = {
        statement.target.tensor: statement
        for statement in reversed(statements)
        if statement.operator is None
    }
    for statement in statements:
        _check_own_target(statement)
        for access in accesses(statement):
            _check_order(access, assigned)
            if access.tensor in later and access.tensor not in assigned:
                raise NotationError(
                    f"Expected {access.tensor} to be assigned before it is read, found its "
                    "statement further on",
                    access.span,
                    f"write the statement of {access.tensor} first; {_PROGRAM}",
                )
        target = statement.target
        if statement.operator is None and target.tensor in assigned:
            raise NotationError(
                f"Expected each name to be assigned once, found {target.tensor} a second time",
                target.span,
                f"give it another name, or write += to add to {target.tensor}; {_PROGRAM}",
            )
        _check_order(target, assigned)
        assigned.setdefault(target.tensor, target)


def _check_order(access: Access, assigned: Mapping[str, Access]) -> None:
    """Raise OperandError where an access has another number of indices than its target."""
    target = assigned.get(access.tensor)
    if target is not None and len(target.modes) != len(access.modes):
        count = len(target.modes)
        expected = "1 index" if count == 1 else f"{count or 'no'} indices"
        raise OperandError(
            f"Expected {access.tensor} with {expected}, as where it is assigned, found it with "
            f"{len(access.modes) or 'none'}",
            access.span,
            "give two tensors two names",
        )


def check_outputs(statements: Sequence[Assignment], outputs: Sequence[str]) -> None:
    """Raise OperandError unless each output is an assigned name and is requested once."""
    names = unique(statement.target.tensor for statement in statements)
    for place, name in enumerate(outputs):
        if name not in names:
            raise OperandError(
                f"Expected outputs among the names that the text assigns, {', '.join(names)}, "
                f"found {name!r}",
                hint=with_suggestion(f'as in outputs=("{names[-1]}",)', str(name), names),
            )
        if name in outputs[:place]:
            raise OperandError(
                f"Expected each output once, found {name} twice", hint=f"leave one {name} out"
            )
