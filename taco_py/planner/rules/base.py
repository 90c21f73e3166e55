"""What a rule is: before → after on a program, at a site.

    hoist_sum    y[i] = sum(j, A[i,j] * sum(k, B[j,k]))
                 → T[j] = sum(k, B[j,k]);  y[i] = sum(j, A[i,j] * T[j])

A rule is a file: its docstring shows the rewrite, its `apply` makes it or refuses in words.
The search (`plan.search`) tries rules in the order of the catalogue, compares prices and keeps the
log. No rule knows another one, and none changes what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from enum import Enum, Flag, auto

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine
from taco_py.language.notation.nodes import Assignment, Expr
from taco_py.language.notation.tree import children, is_additive, map_children
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Node, Program


class Phase(Enum):
    """What a rule is for: the kind of rewrite, not its place in the order."""

    NECESSARY = "what no kernel could compute otherwise"
    FORMS = "the same value by another expression"
    SPLIT = "one assignment as several"
    LAYOUT = "tensors stored in another way"
    KERNEL = "how one kernel is made"
    TIDY = "names and repetitions"


class Numbers(Flag):
    """What a rule may change in the numbers of a result: nothing, or several things at once.

    >>> (Numbers.ROUNDS | Numbers.SPECIALS).words, Numbers.EXACT.words
    ('rounding; NaN and infinity beside what is not stored', 'nothing')
    """

    EXACT = 0
    ROUNDS = auto()
    WIDER_TYPE = auto()
    SPECIALS = auto()

    @property
    def words(self) -> str:
        """Describe the changes in words, for users."""
        return "; ".join(_CHANGES[change] for change in self) or "nothing"


_CHANGES = {
    Numbers.ROUNDS: "rounding",
    Numbers.WIDER_TYPE: "a wider type: rounding, and sums that no longer wrap",
    Numbers.SPECIALS: "NaN and infinity beside what is not stored",
}


class Trait(Flag):
    """What a rule does that an option of a call may exclude: nothing, or several things at once.

    SUMS      writes sums otherwise than the text
    FACTORS   changes the factors of a product
    KERNELS   computes a product in several kernels
    INDICES   changes the indices of loops, or the order in which tensors store them
    WALKS     reads operands otherwise than loops along their levels do
    RESULT    changes how the result is stored
    TYPES     reads tensors in another type
    FUSES     makes a tensor in the loops of another one
    """

    NONE = 0
    SUMS = auto()
    FACTORS = auto()
    KERNELS = auto()
    INDICES = auto()
    WALKS = auto()
    RESULT = auto()
    TYPES = auto()
    FUSES = auto()


class Gain(Enum):
    """How many times cheaper a rule must make a program: a field of `CopyCosts`.

    SIMPLER  a program that is better for other reasons may be so many times dearer
    """

    DETOUR = "detour_gain"
    DENSE = "dense_detour_gain"
    SIMPLER = "1 / detour_gain"

    def pays(self, before: float, after: float, machine: Machine) -> bool:
        """Tell whether the price `after` is enough less than the price `before`."""
        if self is Gain.SIMPLER:
            return after < before * machine.copies.detour_gain
        gain: float = getattr(machine.copies, self.value)
        return after * gain < before


@dataclass(frozen=True, slots=True)
class Site:
    """Where a rule may apply: an assignment of a program, or one term of its value.

    target  the tensor that is assigned to
    path    which argument to go to, at each step from the root of the value to the term
    """

    target: str
    path: tuple[int, ...] = ()

    def term(self, program: Program) -> Expr:
        """Return the term at the site."""
        expr = program.define(self.target).assignment.value
        for place in self.path:
            expr = children(expr)[place]
        return expr

    def put(self, program: Program, term: Expr) -> Program:
        """Return the program with another term at the site."""
        assignment = program.define(self.target).assignment
        value = _put(assignment.value, self.path, term)
        if value is assignment.value:
            return program
        return program.with_assignment(replace(assignment, value=value))


def _put(expr: Expr, path: tuple[int, ...], term: Expr) -> Expr:
    if not path:
        return term
    below = children(expr)
    new = _put(below[path[0]], path[1:], term)
    places = iter(range(len(below)))
    return map_children(expr, lambda child: new if next(places) == path[0] else child)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A program that a rule has made, and why, for explain()."""

    program: Program
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rewrite that has to pay, which is made only where it does.

    before, after  the prices of the programs without and with it, in steps or both in seconds
    rewrite        makes it
    gain           how many times cheaper it must be, where that is not the gain of the rule
    """

    before: float
    after: float
    rewrite: Callable[[], Rewrite]
    gain: Gain | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The precondition that failed at a site, in words."""

    reason: str


Outcome = Rewrite | Candidate | Refusal | None
"""None where there is nothing to rewrite."""
Trials = Generator[Outcome, Program, None]
"""Outcomes at one site, one after the other: each is answered by the program that goes on."""
Sites = Callable[[Program], Iterator[Site]]
Apply = Callable[[Program, Site, Context], Outcome | Trials]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewrite of programs.

    name     verb and object: its name in explain(), in `forbid=`, in the documentation
    phase    what it is for
    apply    (program, site, context) → the program after it, a candidate that has to pay, a
             refusal, or None for nothing to do; or several of these, one after the other
    sites    where it is tried
    numbers  what it may change in numbers
    gain     how many times cheaper the program must become; None where the rule is no question of
             price
    traits   what it does that an option may exclude
    part_of  the rule without which this one takes no part either, "" for none
    on_host  whether it takes no part where kernels run on a GPU
    """

    name: str
    phase: Phase
    apply: Apply
    sites: Sites
    numbers: Numbers = Numbers.EXACT
    gain: Gain | None = None
    traits: Trait = Trait.NONE
    part_of: str = ""
    on_host: bool = False

    @property
    def optional(self) -> bool:
        """Tell whether kernels can do without the rule, so that users may disable it."""
        return self.phase is not Phase.NECESSARY

    def takes_part(self, context: Context) -> bool:
        """Tell whether the search tries the rule under the goal of a context."""
        if self.on_host and context.goal.machine.is_gpu:
            return False
        return context.may(self.name) and (not self.part_of or context.may(self.part_of))


# ---------------------------------------------------------------- sites


def result(program: Program) -> Iterator[Site]:
    """Yield the assignment that makes the result."""
    yield Site(program.result)


def program_site(program: Program) -> Iterator[Site]:
    """Yield the program as a whole, at its last result."""
    yield Site(program.results[-1])


def assignments(program: Program) -> Iterator[Site]:
    """Yield every assignment whose kernel is not planned yet, in order."""
    return iter([Site(define.target) for define in program.defines])


def kernels(program: Program) -> Iterator[Site]:
    """Yield every planned kernel."""
    return iter([Site(kernel.target) for kernel in program.kernels])


def temporaries(program: Program) -> Iterator[Site]:
    """Yield the assignments that make temporaries, in order."""
    return iter([Site(temporary.target) for temporary in program.temporaries])


def terms(program: Program) -> Iterator[Site]:
    """Yield each additive term of the assignment that makes the result, with its sums.

    y[i] = a[i] - sum(j, A[i,j])  →  a[i], sum(j, A[i,j])
    """
    return iter([Site(program.result, path) for path in _terms(program.last.value)])


def _terms(expr: Expr, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if is_additive(expr):
        for place, arg in enumerate(expr.args):
            yield from _terms(arg, (*path, place))
    else:
        yield path


# ---------------------------------------------------------------- rules on expressions


def on_terms(rewrite: Callable[[Program, Expr], Expr]) -> Apply:
    """Return an `apply` that rewrites the term at a site and adds no steps."""

    def apply(program: Program, site: Site, context: Context) -> Outcome:
        term = site.term(program)
        new = rewrite(program, term)
        return None if new == term else Rewrite(site.put(program, new))

    return apply


# ---------------------------------------------------------------- rules on operands


@dataclass(frozen=True, slots=True)
class StepsBefore:
    """An assignment that reads tensors which steps before it make.

    facts  of all tensors, those that the steps make included
    reason    for explain()
    before, after  the prices without and with them where they have to pay
    """

    assignment: Assignment
    facts: Mapping[str, Operand]
    steps: tuple[Node, ...]
    reason: str = ""
    before: float | None = None
    after: float | None = None

    def rewrite(self, program: Program, target: str) -> Rewrite:
        """Return the program with the steps before the assignment to a tensor."""
        extended = program.before(target, self.steps, self.facts)
        return Rewrite(extended.with_assignment(self.assignment), self.reason)

    def outcome(self, program: Program, target: str) -> Outcome:
        """Return the rewrite, or the candidate where it has prices."""
        if self.before is None or self.after is None:
            return self.rewrite(program, target)
        return Candidate(self.before, self.after, lambda: self.rewrite(program, target))


MakeFirst = Callable[[Assignment, Mapping[str, Operand], Request, Names], StepsBefore | None]
"""(assignment, facts of its operands, goal of its kernel, free names) → None for nothing to do."""


def with_steps_before(make_first: MakeFirst) -> Apply:
    """Return an `apply` that adds steps before an assignment, which reads their tensors."""

    def apply(program: Program, site: Site, context: Context) -> Outcome:
        assignment = program.define(site.target).assignment
        request = context.request(program, site.target)
        new = make_first(assignment, program.facts, request, Names(program.facts))
        return None if new is None else new.outcome(program, site.target)

    return apply
