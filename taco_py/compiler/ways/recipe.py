"""What decides a kernel, and what a way makes of it: loop IR, or a routine that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from codegen.machine.target import TARGETS
from codegen.records import dataclass
from taco_py.compiler.lower.bindings import Bindings, Source
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.phase import EVALUATE
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from codegen.ir import Module
    from codegen.runtime.signature import Parameter

EVERYWHERE = "every coordinate"
"""What loops over dense tensors run over, for explain()."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides a kernel: a problem, a schedule, and which phase.

    schedule  the order of loops, the way that the kernel is made, the commands on its loops;
              without how many threads run it, which code does not depend on
    phase     EVALUATE; of a sparse result also ASSEMBLE or COMPUTE
    target    what it runs on, as `target=` names it
    """

    problem: Problem
    schedule: Schedule
    phase: str = EVALUATE
    target: str = field(default="c", repr=False)

    def __post_init__(self) -> None:
        if self.schedule.threads is not None:
            object.__setattr__(self, "schedule", self.schedule.of_code)

    @property
    def key(self) -> str:
        """Return a text that no other recipe has: every node with every field, as `repr` writes
        them.

        What `str` prints is for reading; it leaves out a literal's dtype, for instance.
        """
        return repr(self) if self.target == "c" else f"{self.target} {self!r}"

    @property
    def source_key(self) -> str:
        """Return the key of its text, and of its host's, which devices of a language share."""
        return f"{TARGETS[self.target].language} {self!r}"

    def header(self, text: str) -> str:
        """Return the comment at the head of a kernel's C: the problem, and how it is computed."""
        return f"{self.problem}\n\n{text}"


@dataclass(frozen=True, slots=True, eq=False)
class LoweredRecipe:
    """A recipe's loop IR before any pass, where its arguments come from, and what else is known.

    facts    what a kernel's caller must know, as JSON has it: see `dense_facts`
    vectors  whether the work is written in vectors, so that the compiler need not look for any
    """

    module: Module
    bindings: Bindings
    facts: Mapping[str, Any]
    vectors: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """A function that makes a kernel's result and is there without being compiled.

    maker       "module:function": called with `text`, it gives the routine
    parameters  the parameters of the routine, each with the source of its argument
    facts       as those of a lowered recipe
    source      a comment in place of C
    """

    maker: str
    text: str
    parameters: tuple[tuple[Parameter, Source | None], ...]
    facts: Mapping[str, Any]
    source: str


def dense_facts(recipe: Recipe, shared: str, plan: str = "", concrete: str = "") -> dict[str, Any]:
    """Return the facts of a kernel that runs over every coordinate and writes all of a dense
    result.

    shared  what threads share, for explain()
    plan    what is made of the loops, in lines
    """
    serial = recipe.schedule.serial
    return {
        "requirements": [],
        "covers": True,
        "keys": [],
        "threaded": not serial,
        "report": {
            "concrete": concrete,
            "graph": EVERYWHERE,
            "parallel": "one thread was asked for" if serial else shared,
            "workspaces": [],
            "tiles": plan.splitlines(),
        },
    }
