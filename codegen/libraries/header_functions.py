"""The functions of C headers of codegen/runtime, one by one, for texts that define what they call.

    #define TACO_DEFINE_SIGNED(bits) \\                         static inline int8_t taco_abs_i8(…)
        TACO_PURE int##bits##_t taco_abs_i##bits(…) { … }  →  {
    TACO_DEFINE_SIGNED(8)                                         …
                                                              }

Macros that define functions (TACO_DEFINE_…) are expanded. Of conditional parts, those are taken that
no macro of a compiler or a machine asks for.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from codegen.records import dataclass

FOLDER = Path(__file__).parent.parent / "runtime"

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MACRO = re.compile(r"#define\s+(TACO_DEFINE_\w+)\(([^)]*)\)(.*)", re.DOTALL)
_USE = re.compile(r"\b(TACO_DEFINE_\w+)\(")
_UNSEEN = re.compile(r"\bTACO_UNUSED\b|__attribute__\(\([^()]*\)\)| +$", re.MULTILINE)
_FUNCTION = re.compile(
    r"^static +(?:inline +)?(?P<type>\w+(?: \w+)*?) *(?P<name>\btaco_\w+)"
    r"\((?P<parameters>[^()]*)\)\s*\{",
    re.MULTILINE,
)
_TYPE = re.compile(r"^typedef\s[^;{}]*(?:\{[^{}]*\}\s*)?(taco_\w+);", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HeaderFunction:
    """A function of a header: `type name(parameters) { body }`, the body without its margin."""

    name: str
    type: str
    parameters: str
    body: str


@cache
def functions_of_header(name: str) -> Mapping[str, HeaderFunction]:
    """The functions of a header, by their names."""
    text = _expanded(_plain(name), _macros(name))
    text = re.sub(r"\bTACO_PURE\b", "static inline", text)
    text = _UNSEEN.sub("", text)
    return {found.name: found for found in _functions(_at_margin(text))}


@cache
def types_of_header(name: str) -> Mapping[str, str]:
    """The definitions of the types of a header, by their names."""
    return {match[1]: match[0] for match in _TYPE.finditer(_plain(name))}


@cache
def _logical_lines(name: str) -> tuple[str, ...]:
    """Lines without comments; a macro is one, however many it takes."""
    text = _COMMENT.sub("", (FOLDER / name).read_text())
    return tuple(re.sub(r" *\\\n", "\n", line) for line in re.split(r"(?<!\\)\n", text))


def _taken(name: str) -> Iterator[str]:
    """The lines of the parts that are taken."""
    open_parts: list[bool] = []
    for line in _logical_lines(name):
        words = line.lstrip()
        if words.startswith("#if"):
            open_parts.append(words.startswith("#ifndef"))
        elif words.startswith("#else"):
            open_parts[-1] = not open_parts[-1]
        elif words.startswith("#endif"):
            open_parts.pop()
        elif all(open_parts):
            yield line


def _macros(name: str) -> dict[str, tuple[list[str], str]]:
    """The parameters and the text of each macro that defines functions."""
    found = {}
    for line in _taken(name):
        match = _MACRO.match(line)
        if match is not None:
            found[match[1]] = ([word.strip() for word in match[2].split(",")], match[3])
    return found


def _plain(name: str) -> str:
    return "\n".join(line for line in _taken(name) if not line.lstrip().startswith("#"))


def _expanded(text: str, macros: Mapping[str, tuple[list[str], str]]) -> str:
    """`text` with what its macros stand for."""

    def replaced(match: re.Match[str]) -> str:
        parameters, body = macros[match[1]]
        given = dict(zip(parameters, (word.strip() for word in match[2].split(",")), strict=True))
        body = re.sub(r"\w+", lambda word: given.get(word[0], word[0]), body)
        return _expanded(body.replace("##", ""), macros)

    return re.sub(_USE.pattern + r"([^()]*)\)", replaced, text)


def _at_margin(text: str) -> str:
    """`text`, functions of macros as far left as others."""
    lines, shift = [], 0
    for line in text.split("\n"):
        if re.match(r" *static\b", line):
            shift = len(line) - len(line.lstrip())
        lines.append(line[min(shift, len(line) - len(line.lstrip())) :])
    return "\n".join(lines)


def _functions(text: str) -> Iterator[HeaderFunction]:
    for match in _FUNCTION.finditer(text):
        body = text[match.end() : _end(text, match.end())]
        parameters = re.sub(r"\s+", " ", match["parameters"])
        type = re.sub(r"\s+", " ", match["type"])
        yield HeaderFunction(match["name"], type, parameters, _without_margin(body))


def _end(text: str, start: int) -> int:
    """Where the brace is that closes the one before `start`."""
    depth = 1
    for match in re.finditer(r"[{}]", text[start:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return start + match.start()
    raise ValueError("a brace is not closed")


def _without_margin(body: str) -> str:
    return textwrap.dedent(body.strip("\n").rstrip()).strip(" ")
