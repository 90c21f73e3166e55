"""The words of the sources: names that say nothing, and docstrings that do not begin with a verb.

    python -m tests.words [ROOM]      how many faults each room has; of one room, each of its faults

A name is a noun or a verb, not the participle, adverb or preposition of a sentence around it. The
docstring of a function begins with a verb; its first sentence has at most 18 words, and says of
nothing "what" or "those" alone.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("taco_py", "polyhedral", "codegen")
MOST_WORDS = 18
"""Words of a docstring's first sentence."""
_BANNED = """
found told made given give kept whole own each known wanted asked named met chosen held taken
apart done there again together once along stated begun seen settled others why asks wishes
beside behind around across tried led shown listed written needed joined added changed moved
here how both within now many often
"""
BANNED = frozenset(_BANNED.split())
"""Names that are no names: participles, adverbs, prepositions and pronouns."""
BANNED_PREFIXES = ("told_", "found_", "held_", "made_", "given_", "own_", "whole_")
_VERBS = """
accept accumulate add adjust advance align allocate answer append apply arrange ask assemble
assert assign attach backtrack balance begin bind block borrow bound bracket break bring
broadcast build cache call cancel carry cast change charge check choose clear clip close
collapse collect combine compact compare compile complete compose compress compute concatenate
conjugate connect contract convert copy count cover create cross cut decide declare decode
decompose define delete describe derive deserialize detect determine differentiate direct
distribute divide do double draw drop eliminate emit encode end ensure enter enumerate erase
escape estimate evaluate exchange execute expand explain export express extend extract factor
fetch fill filter finalize find finish fit fix flatten fold follow forbid force foresee forget
form format forward free fuse gather generate get give go group guard hand handle hash hide hold
identify ignore import include index infer initialize inline insert inspect install instantiate
interchange interpret intersect invert invoke iterate join keep label launch lay leave lend let
lift limit link list load localize locate lock look lower make map mark match measure merge
minimise minimize mirror modify move multiply name narrow negate normalize note notify number
obtain offer offload omit open order pack pad pair parallelize parse partition pass peel permute
pick pickle place plan point precompute predict prepare prefetch price print privatize produce
propagate propose prove prune pull push put queue quote raise rank read rebuild receive
recompute record recover reduce refit refresh refuse register reject relabel release relocate
remember remove rename render reorder repeat replace replay report request require rescale
reserve reset reshape resize resolve restart restore restrict return reuse reverse rewrite round
run sample save say scale scan scatter schedule score search see select send separate serialize
set share shift show shrink shut sign simplify skip slice solve sort specialize specify spell
split spread stack stage start state stop store stretch strip substitute subtract suggest sum
summarize supply swap switch take tell test tidy tile time trace track transform translate
transpose traverse trim truncate try tune turn type undo unfold unify unpack unroll update
upload use validate value verify view visit wait walk warn watch weigh widen wrap write yield
zero zip
"""
VERBS = frozenset(_VERBS.split())
"""Verbs that docstrings begin with, in their base form."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A word that a reader stumbles over.

    kind  one of `KINDS`
    """

    path: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}"


KINDS = ("name", "verb", "length", "noun")
"""Banned names; docstrings of functions that do not begin with a verb, whose first sentence is too
long, and that say "what" or "those" without a noun."""
_NO_NOUN = re.compile(
    r"\b(those|such) (that|of|which|as)\b|\bwhat\b(?! is expected)", re.IGNORECASE
)


def rooms() -> list[str]:
    """List the rooms: each folder of `taco_py`, its own files, and the other two packages."""
    folders = sorted(path.parent.name for path in (ROOT / "taco_py").glob("*/__init__.py"))
    return [*(f"taco_py/{folder}" for folder in folders), "taco_py", "polyhedral", "codegen"]


def files_of(room: str) -> list[Path]:
    """List the files of a room; of `taco_py` its public modules alone."""
    folder = ROOT / room
    return sorted(folder.glob("*.py") if room == "taco_py" else folder.rglob("*.py"))


def faults_of(room: str) -> Iterator[Fault]:
    """Yield the faults of a room."""
    for path in files_of(room):
        name = str(path.relative_to(ROOT))
        if is_banned(path.stem):
            yield Fault(name, 1, "name", path.stem)
        for node in ast.walk(ast.parse(path.read_text())):
            for bound in bound_names(node):
                if is_banned(bound):
                    yield Fault(name, getattr(node, "lineno", 1), "name", bound)
            if isinstance(node, ast.FunctionDef):
                for kind, text in docstring_faults(ast.get_docstring(node) or ""):
                    yield Fault(name, node.lineno, kind, f"{node.name}: {text}")


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.alias(asname=str(name)):
            yield name


def is_banned(name: str) -> bool:
    """Tell whether a name is one that says nothing."""
    plain = name.strip("_").lower()
    return plain in BANNED or plain.startswith(BANNED_PREFIXES)


def docstring_faults(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the docstring of a function, and its first sentence."""
    sentence = first_sentence(docstring)
    if not sentence:
        return
    if not begins_with_verb(sentence):
        yield "verb", sentence
    if len(re.findall(r"\S*\w\S*", sentence)) > MOST_WORDS:
        yield "length", sentence
    if _NO_NOUN.search(re.sub(r"`[^`]*`", "", sentence)):
        yield "noun", sentence


def first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring on one line."""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.;:])\s", paragraph, maxsplit=1)[0]


def begins_with_verb(sentence: str) -> bool:
    """Tell whether a sentence begins with a verb in its base form.

    A word that is a noun too, as "order", is none before "of".
    """
    first, _, rest = sentence.partition(" ")
    return re.sub(r"\W", "", first).lower() in VERBS and not rest.startswith("of ")


def functions_with_docstrings(room: str) -> int:
    """Count how many functions of a room have a docstring."""
    return sum(
        isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None
        for path in files_of(room)
        for node in ast.walk(ast.parse(path.read_text()))
    )


def main(arguments: list[str]) -> None:
    """Print the faults of a room, or how many each room has."""
    if arguments:
        print(*faults_of(arguments[0].rstrip("/")), sep="\n")
        return
    sums: Counter[str] = Counter()
    print(f"{'':20}", *(f"{kind:>7}" for kind in (*KINDS, "of")))
    for room in rooms():
        counts = Counter(fault.kind for fault in faults_of(room))
        counts["of"] = functions_with_docstrings(room)
        sums += counts
        print(f"{room:20}", *(f"{counts[kind]:7}" for kind in (*KINDS, "of")))
    print(f"{'all':20}", *(f"{sums[kind]:7}" for kind in (*KINDS, "of")))


if __name__ == "__main__":
    main(sys.argv[1:])
