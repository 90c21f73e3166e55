"""Plans: programs whose kernels are planned, with what explain() tells of them."""

from __future__ import annotations

from dataclasses import field

from codegen.records import dataclass
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.compiler.ways.recipe import Recipe
from taco_py.language.problem import TensorType
from taco_py.planner.ir.log import Log
from taco_py.planner.ir.nodes import KernelStep, Step
from taco_py.planner.ir.program import Define, Program, Selection


@dataclass(frozen=True, slots=True)
class Plan:
    """A program whose kernels are planned; the rest is for explain().

    result  how the result is stored, the last one where there are several
    notes   why an assignment was split
    cuts    which searches for loops ended early
    stored  why the result is stored as it is, where that was chosen
    forms   which sums in products are multiplied out and which are not, and why
    rewritten  whether any are
    sizes   what sizes were taken for that were not known
    machine the machine that it was made for
    selection  the program whose kernels these are, and their loops
    log     what rules took and refused
    """

    program: Program
    result: TensorType
    notes: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    stored: str = ""
    forms: tuple[str, ...] = ()
    rewritten: bool = False
    sizes: str = ""
    machine: Machine = NOMINAL
    selection: Selection | None = field(default=None, compare=False, repr=False)
    log: Log = field(default_factory=Log, compare=False, repr=False)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the steps in order; the last step of a plan of one result makes the result."""
        return tuple(step for step in self.program.steps if not isinstance(step, Define))

    @property
    def kernels(self) -> tuple[KernelStep, ...]:
        """Return the steps that are kernels."""
        return tuple(self.program.kernels)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Return the recipes that decide the code of the kernels."""
        target = self.machine.target.name
        return tuple(step.recipe(target=target) for step in self.program.kernels)
