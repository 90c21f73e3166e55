"""Programs from their text: program_text(parse_program(text)) == text (`plan.ir.printer`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np

from taco_py.compiler.schedule.parser import parse_commands
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.formats import Format
from taco_py.language.notation.functions.function_table import NEAREST
from taco_py.language.notation.lexer import TokenKind, tokenize
from taco_py.language.notation.nodes import Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import COMPILER, NEG
from taco_py.language.notation.parser import Parser
from taco_py.language.notation.rewrites.semirings import PRODUCTS, multiplied
from taco_py.language.problem import FILL_WORD, Problem, SideResult, TensorType
from taco_py.planner.ir.nodes import KernelStep, Operand, Transformation
from taco_py.planner.ir.printer import AFTER, ANY_ORDER, ARROW, BY, NOTE, REASONS, VERBS
from taco_py.planner.ir.program import Define, Node, Program

_OPERAND = re.compile(r"(?P<name>\w+): (?P<facts>.*)")
_LIST = re.compile(r"(?P<word>sizes|static|once|return) (?P<rest>.*)")
_FACTS = re.compile(
    r"(?P<type>\S+(?: from \S+)?) of (?P<shape>.*?), (?P<entries>\S+) entries"
    r"(?:, joined(?P<joined>(?: yes| no)+))?"
)
_MOVE = re.compile(r"(?P<target>\w+) = (?P<verb>\w+)\((?P<arguments>.*)\)")
_OPERATORS = COMPILER | PRODUCTS | {op.name: op for op in NEAREST.values()}
DETAIL = "    "
"""What lines begin with that are about the kernel above them."""
_HINT = "program_text shows what a program looks like"


def parse_program(text: str) -> Program:
    """Return the program that `text` spells. Raises NotationError that names the line."""
    operands: dict[str, Operand] = {}
    steps: list[Node] = []
    targets: list[Operand] = []
    after: dict[Node, Operand] = {}
    lists: dict[str, str] = {"sizes": "", "static": "", "once": "", "return": ""}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            if line.startswith(DETAIL):
                steps[-1] = _with_detail(steps[-1], line.strip())
            elif match := _LIST.fullmatch(line):
                lists[match["word"]] = match["rest"]
            elif match := _OPERAND.fullmatch(line):
                operands[match["name"]] = parse_facts(match["facts"])
            elif line.strip():
                step, facts = _step(line.removeprefix(AFTER))
                if line.startswith(AFTER):
                    after[step] = facts
                else:
                    steps.append(step)
                    targets.append(facts)
        except NotationError:
            raise
        except (ValueError, SyntaxError, TypeError, KeyError) as error:
            raise NotationError(
                f"Expected a tensor, a step, sizes or results in line {number}, found {line!r}",
                hint=_HINT,
            ) from error
    if not lists["return"]:
        raise NotationError("Expected a line 'return' with the results, found none", hint=_HINT)
    sizes = {index: float(size) for index, size in _pairs(lists["sizes"])}
    static = tuple((index, int(size)) for index, size in _pairs(lists["static"]))
    facts_of = operands | {step.target: facts for step, facts in zip(steps, targets, strict=True)}
    facts_of |= {step.target: facts for step, facts in after.items()}
    results = tuple(lists["return"].split(", "))
    last = tuple(step for step in after if isinstance(step, Define))
    unique = frozenset(lists["once"].split(", ") if lists["once"] else ())
    return Program(tuple(steps), facts_of, results, sizes, static, last, unique)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield index and size of each pair: i=60, j=56 → (i, 60), (j, 56)."""
    for pair in text.split(", ") if text else ():
        index, _, size = pair.partition("=")
        yield index, size


def _step(line: str) -> tuple[Node, Operand]:
    """Return the step of a line, and the facts of its tensor."""
    move, _, target_facts = line.rpartition(ARROW)
    match = _MOVE.fullmatch(move)
    if match and match["verb"] in VERBS:
        return _move(match), parse_facts(target_facts)
    assignment, _, rest = line.partition(ARROW)
    facts, kernel, schedule = rest.partition(BY)
    if kernel:
        return _kernel(parse_typed(assignment), parse_facts(facts), schedule)
    facts, _, note = rest.partition(NOTE)
    return Define(parse_typed(assignment), _unescaped(note)), parse_facts(facts)


def _kernel(assignment: Assignment, facts: Operand, schedule: str) -> tuple[KernelStep, Operand]:
    """Return the kernel of a line; the lines below it add details (`_with_detail`)."""
    problem = Problem(assignment, (), facts.type)
    commands = Schedule(parse_commands(schedule, planned=True))
    return KernelStep(assignment.target.tensor, problem, commands, ()), facts


def _with_detail(step: Node, line: str) -> Node:
    """Return the kernel with the detail of a line below it."""
    if not isinstance(step, KernelStep):
        raise ValueError(f"Expected a kernel above the line {line}, found {step}")
    word, _, rest = line.partition(" ")
    problem, parts = step.problem, rest.split(", ")
    match word:
        case "makes":
            return replace(step, target=rest)
        case "reads":
            pairs = (part.split(" as ") for part in parts)
            return replace(step, sources=tuple((name, source) for source, name in pairs))
        case "operands":
            types = ((name, parse_type(type)) for name, type in (p.split(": ") for p in parts))
            return replace(step, problem=replace(problem, operands=tuple(types)))
        case "result":
            return replace(step, problem=replace(problem, result=parse_type(rest)))
        case "besides":
            text, _, type = rest.rpartition(": ")
            side_assignment = parse_typed(text)
            side = (
                *problem.side,
                SideResult(side_assignment.target, parse_type(type), side_assignment.value),
            )
            return replace(step, problem=replace(problem, side=side))
        case "sizes":
            places = ((index, *place.rsplit(".", 1)) for index, place in _pairs(rest))
            sizes = tuple((index, name, int(mode)) for index, name, mode in places)
            return replace(step, sizes=sizes)
        case _ if word in REASONS:
            reason: dict[str, Any] = {REASONS[word]: _unescaped(rest)}
            return replace(step, **reason)
    return replace(step, problem=_with_sizes(problem, word, rest))


def _with_sizes(problem: Problem, word: str, rest: str) -> Problem:
    """Return the problem with the sizes of a line."""
    match word:
        case "static":
            static = tuple((index, int(size)) for index, size in _pairs(rest))
            return replace(problem, static=static)
        case "vast":
            return replace(problem, vast=tuple(rest.split(", ")))
    raise ValueError(f"Expected a line about a kernel, found {word} {rest}")


def _move(match: re.Match[str]) -> Transformation:
    """Return the step of its text: B = squeeze(source='A', axes=(0,)) → Squeeze("B", "A", (0,))."""
    kind = VERBS[match["verb"]]
    call = ast.parse(f"f({match['arguments']})", mode="eval").body
    if not isinstance(call, ast.Call):
        raise SyntaxError(f"Expected arguments by name, found {match['arguments']}")
    values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    for field_ in fields(kind):
        if field_.type == "Format":
            values[field_.name] = parse_format(values[field_.name])
    step: Transformation = kind(target=match["target"], **values)
    return step


def parse_facts(text: str) -> Operand:
    """Return the type, the shape and the number of entries of a tensor (`printer.facts_text`)."""
    match = _FACTS.fullmatch(text)
    if match is None:
        raise ValueError(f"Expected the type, the shape and the entries of a tensor, found {text}")
    shape = () if match["shape"] == "one number" else map(int, match["shape"].split(" by "))
    contiguous = tuple(word == "yes" for word in (match["joined"] or "").split())
    return Operand(
        parse_type(match["type"]), tuple(shape), float(match["entries"]), contiguous=contiguous
    )


def parse_type(text: str) -> TensorType:
    """Return the type of a tensor (`printer.type_text`): "ds/float64 from float32/int64"."""
    form, values, *rest = text.split("/")
    dtype, _, stored = values.partition(" from ")
    fills = [word for word in rest if word.startswith(FILL_WORD)]
    indices = [word for word in rest if word != "strided" and word not in fills]
    for name in (dtype, stored or dtype):
        np.dtype(name)
    index_dtype = indices[0] if indices else "int32"
    fill = "".join(fills).removeprefix(FILL_WORD)
    return TensorType(parse_format(form), dtype, index_dtype, "strided" not in rest, stored, fill)


def parse_format(text: str) -> Format:
    """Return the format of its letters, where a mark stands before unordered levels."""
    marks = re.findall(rf"({ANY_ORDER}?)[^{ANY_ORDER}]", text.partition(":")[0])
    form = Format.parse(text.replace(ANY_ORDER, ""))
    levels = (
        replace(level, ordered=not mark) for level, mark in zip(form.levels, marks, strict=True)
    )
    return replace(form, levels=tuple(levels))


def _unescaped(text: str) -> str:
    r"""Return the text whose backslashes and ends of lines are written as `\\` and `\n`."""
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)


# ---------------------------------------------------------------- assignments


def _number(expr: Expr) -> Expr:
    """Return a negative number as one literal, as the compiler's own operators have it."""
    match expr:
        case Call(operator, (Literal(value, span, None),)) if operator == NEG:
            return Literal(-value, span)
    return expr


def parse_typed(text: str) -> Assignment:
    """Return the assignment whose numbers may have dtypes: "y[i] = int8(0) - A[i]"."""
    return _TypedParser(tokenize(text)).assignment()


class _TypedParser(Parser):
    """Index notation with what the compiler alone writes: numbers with dtypes, its operators.

    primary = … | dtype "(" ["-"] number ")" | operator "(" expression ")"
    """

    def primary(self) -> Expr:
        word = self.token.text
        if self.token.kind is not TokenKind.NAME or self.ahead(1).text != "(":
            return super().primary()
        if word in _OPERATORS:
            self.take()
            opening = self.take()
            arguments = [self.nested(self.expression, opening)]
            while len(arguments) < _OPERATORS[word].arity:
                self.expect(",", "',' and the next argument")
                arguments.append(self.nested(self.expression, opening))
            self.expect(")", "')'")
            args = tuple(map(_number, arguments))
            if word in PRODUCTS:
                return multiplied(PRODUCTS[word], *args)  # absent with those that are no numbers
            return Call(_OPERATORS[word], args)
        if not _is_dtype(word) or self.ahead(2).text in (")", "["):
            return super().primary()
        self.take()
        return replace(self._typed_number(), dtype=np.dtype(word).name)

    def _typed_number(self) -> Literal:
        """Return the number in the parentheses that come next: -2, inf, True, (1+2j)."""
        start = self.take()
        depth, words = 1, list[str]()
        while depth and self.token.kind is not TokenKind.END:
            word = self.take().text
            depth += (word == "(") - (word == ")")
            words.append(word)
        text = "".join(words[:-1])
        for kind in (_truth, int, float, complex):
            with suppress(ValueError):
                return Literal(kind(text), start.span)
        raise self.error("a number of a type")


def _truth(text: str) -> bool:
    """Return True or False for its word. Raises ValueError for other texts."""
    if text not in ("True", "False"):
        raise ValueError(text)
    return text == "True"


def _is_dtype(word: str) -> bool:
    """Tell whether a word is NumPy's name of a numeric type."""
    try:
        return np.dtype(word).name == word
    except TypeError:
        return False
