"""The passes over loop IR, in order, and why each stands where it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codegen.ir import Module
from codegen.passes.simplify import simplify
from codegen.target import Target

Pass = Callable[[Module, Target], Module]


@dataclass(frozen=True, slots=True)
class Step:
    """A pass and the reason for its place."""

    name: str
    run: Pass
    reason: str


C_PASSES: tuple[Step, ...] = (
    Step("simplify", lambda m, _: simplify(m), "later passes match simple shapes"),
)


def passes_for(target: Target) -> tuple[Step, ...]:
    """The passes for the language of `target`, in order."""
    return C_PASSES


def run_passes(module: Module, target: Target) -> Module:
    """`module` after every pass for `target`."""
    for step in passes_for(target):
        module = step.run(module, target)
    return module
