"""The functions of C headers of codegen/runtime, one by one, for texts that define what they call.

    #define TACO_DEFINE_SIGNED(bits)                      static inline int8_t taco_abs_i8(…)
    TACO_PURE int##bits##_t taco_abs_i##bits(…) { … }  →  {
    TACO_DEFINE_SIGNED(8)                                     …
                                                          }

Macros that define functions (TACO_DEFINE_…) are expanded. Of conditional parts, those are taken
that no macro of a compiler or a machine asks for.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from codegen.records import dataclass

FOLDER = Path(__file__).parent.parent / "runtime"

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MACRO = re.compile(r"#define\s+(TACO_DEFINE_\w+)\(([^)]*)\)(.*)", re.DOTALL)
_USE = re.compile(r"\b(TACO_DEFINE_\w+)\(([^()]*)\)")
_UNSEEN = re.compile(r"\bTACO_UNUSED\b|__attribute__\(\([^()]*\)\)| +$", re.MULTILINE)
_FUNCTION = re.compile(
    r"^static +(?:inline +)?(?P<type>\w+(?: \w+)*?) *(?P<name>\btaco_\w+)"
    r"\((?P<parameters>[^()]*)\)\s*\{",
    re.MULTILINE,
)
_TYPE = re.compile(r"^typedef\s[^;{}]*(?:\{[^{}]*\}\s*)?(taco_\w+);", re.MULTILINE)

Macros = Mapping[str, tuple[list[str], str]]
"""The parameters and the text of each macro that defines functions."""


@dataclass(frozen=True, slots=True)
class HeaderFunction:
    """A function of a header: `type name(parameters) { body }`, the body without its margin."""

    name: str
    type: str
    parameters: str
    body: str


class Header:
    """A header, read when it is first asked for something."""

    __slots__ = ("_functions", "_types", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._functions: dict[str, HeaderFunction] | None = None
        self._types: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its functions."""
        return tuple(self._read())

    def function(self, name: str) -> HeaderFunction | None:
        """Return the function called `name`; None where there is none."""
        return self._read().get(name)

    def type(self, name: str) -> str | None:
        """Return the definition of the type called `name`; None where there is none."""
        self._read()
        return self._types.get(name)

    def _read(self) -> dict[str, HeaderFunction]:
        if self._functions is None:
            lines = list(_active_lines((FOLDER / self.name).read_text()))
            plain = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
            text = _expanded(plain, _macros(lines)).replace("TACO_PURE", "static inline")
            text = _at_margin(_UNSEEN.sub("", text))
            self._types = {match[1]: match[0] for match in _TYPE.finditer(plain)}
            self._functions = {function.name: function for function in _functions(text)}
        return self._functions


def _active_lines(text: str) -> Iterator[str]:
    """Yield the lines of the parts that are taken; a macro is one, however many it takes."""
    open_parts: list[bool] = []
    for line in re.split(r"(?<!\\)\n", _COMMENT.sub("", text)):
        words = line.lstrip()
        if words.startswith("#if"):
            open_parts.append(words.startswith("#ifndef"))
        elif words.startswith("#else"):
            open_parts[-1] = not open_parts[-1]
        elif words.startswith("#endif"):
            open_parts.pop()
        elif all(open_parts):
            yield re.sub(r" *\\\n", "\n", line)


def _macros(lines: list[str]) -> Macros:
    matches = (_MACRO.match(line) for line in lines)
    return {m[1]: ([word.strip() for word in m[2].split(",")], m[3]) for m in matches if m}


def _expanded(text: str, macros: Macros) -> str:
    """Return `text` with its macros expanded."""

    def replaced(match: re.Match[str]) -> str:
        parameters, body = macros[match[1]]
        arguments = dict(
            zip(parameters, (word.strip() for word in match[2].split(",")), strict=True)
        )
        body = re.sub(r"\w+", lambda word: arguments.get(word[0], word[0]), body)
        return _expanded(body.replace("##", ""), macros)

    return _USE.sub(replaced, text)


def _at_margin(text: str) -> str:
    """Return `text`, functions of macros as far left as others."""
    lines, shift = [], 0
    for line in text.split("\n"):
        margin = len(line) - len(line.lstrip())
        if line.lstrip().startswith("static"):
            shift = margin
        lines.append(line[min(shift, margin) :])
    return "\n".join(lines)


def _functions(text: str) -> Iterator[HeaderFunction]:
    for match in _FUNCTION.finditer(text):
        body = text[match.end() : _end(text, match.end())]
        parameters = re.sub(r"\s+", " ", match["parameters"])
        type = re.sub(r"\s+", " ", match["type"])
        yield HeaderFunction(match["name"], type, parameters, _without_margin(body))


def _end(text: str, start: int) -> int:
    """Return the position of the brace that closes the one before `start`."""
    depth = 1
    for match in re.finditer(r"[{}]", text[start:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return start + match.start()
    raise ValueError("a brace is not closed")


def _without_margin(body: str) -> str:
    return textwrap.dedent(body.strip("\n").rstrip()).strip(" ")
