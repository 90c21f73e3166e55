"""The identity of a kernel, and the result of a way: loop IR, or an existing routine."""

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
"""The iteration space of loops over dense tensors, for explain()."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The full identity of a kernel: a problem, a schedule, and a phase.

    schedule  the order of loops, the way that the kernel is computed, the commands on its loops;
              without the number of threads, on which code does not depend
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
        """Return a unique text: every node with every field, as `repr` prints them.

        `str` is for reading; it leaves out a literal's dtype, for instance.
        """
        target = TARGETS[self.target]
        return repr(self) if target.is_default else f"{target.name} {self!r}"

    @property
    def source_key(self) -> str:
        """Return the cache key of the text and its host, which devices of a language share."""
        return f"{TARGETS[self.target].language} {self!r}"

    def header(self, text: str) -> str:
        """Return the comment at the head of a kernel's C: the problem, and how it is computed."""
        return f"{self.problem}\n\n{text}"


@dataclass(frozen=True, slots=True, eq=False)
class LoweredRecipe:
    """A recipe's loop IR before any pass, the sources of its arguments, and further facts.

    facts    the facts that a kernel's caller must know, as JSON: see `dense_facts`
    vectors  whether the code has explicit vectors, so that the compiler need not vectorize
    """

    module: Module
    bindings: Bindings
    facts: Mapping[str, Any]
    vectors: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """An existing function that computes a kernel's result, without compiling.

    maker       "module:function": called with `text`, it returns the routine
    parameters  the parameters of the routine, each with the source of its argument
    facts       like the facts of a lowered recipe
    source      a comment in place of C
    """

    maker: str
    text: str
    parameters: tuple[tuple[Parameter, Source | None], ...]
    facts: Mapping[str, Any]
    source: str


def dense_facts(recipe: Recipe, shared: str, plan: str = "", concrete: str = "") -> dict[str, Any]:
    """Return the facts of a kernel that visits every coordinate and writes all of a dense result.

    shared  the loops that threads share, for explain()
    plan    the description of the loops, in lines
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
