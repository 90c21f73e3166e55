"""The catalogue as a page of the documentation: each rule with its rewrite and what it may change.

python -m taco_py.planner.rules.page > docs/rules.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from types import ModuleType

from taco_py.planner.rules.base import Rule
from taco_py.planner.rules.catalogue import CATALOGUE

HEAD = """\
# Planner rules

The planner rewrites a program, at first the assignment that you wrote, by these rules, in this
order. `explain()` names the rules that it took. `forbid=("multiply_out",)` on `einsum`, `evaluate`,
`explain` and `compile` leaves rules out; those that no kernel can do without are marked.

This page is generated from the catalogue: `python -m taco_py.planner.rules.page > docs/rules.md`.

| rule | what it does | numbers may change by | a program must become |
|---|---|---|---|
"""


def page() -> str:
    """Return the page as Markdown."""
    rules = list(dict.fromkeys(rule for rule, _ in CATALOGUE))
    return HEAD + "".join(map(_row, rules)) + "".join(map(_section, rules))


def _row(rule: Rule) -> str:
    gain = "" if rule.gain is None else f"cheaper by `{rule.gain.value}`"
    first = summary(rule)
    return f"| [`{rule.name}`](#{rule.name}) | {first} | {rule.numbers.words} | {gain} |\n"


def _section(rule: Rule) -> str:
    optional = f'`forbid=("{rule.name}",)` leaves it out.'
    forbid = optional if rule.optional else "It cannot be left out."
    reasons = "; ".join(reason for rule_, reason in CATALOGUE if rule_ is rule)
    body = "\n\n".join(_paragraphs(rule))
    place = f"Its place in the order: {reasons}."
    return f"\n## {rule.name}\n\n{body}\n\n{place} Phase: {rule.phase.value}. {forbid}\n"


def summary(rule: Rule) -> str:
    """Return the first sentence of the docstring of a rule's file."""
    first, *_ = docstring(rule).split("\n\n")
    return " ".join(first.split())


def _paragraphs(rule: Rule) -> Iterator[str]:
    """Yield the docstring in paragraphs: text in one line each, code in fences."""
    for part in docstring(rule).split("\n\n"):
        if part.startswith("    "):
            yield f"```text\n{cleandoc(part)}\n```"
        else:
            yield " ".join(part.split())


def docstring(rule: Rule) -> str:
    module: ModuleType = sys.modules[module_of(rule)]
    return (module.__doc__ or "").strip()


def module_of(rule: Rule) -> str:
    """Return the module that defines a rule, found by its name: one rule a file."""
    (name,) = (
        name
        for name in sys.modules
        if name.startswith("taco_py.planner.rules.") and name.endswith(f".{rule.name}")
    )
    return name


if __name__ == "__main__":
    sys.stdout.write(page())
