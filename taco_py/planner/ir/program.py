"""Programs: named tensors made in order, of which some are wanted.

    A, B, x                        given
    T[k] = sum(j, B[k,j] * x[j])   a kernel that is yet to be planned (`Define`)
    y[i] = sum(k, A[i,k] * T[k])

Rules rewrite programs (`plan.rules`): they put temporaries, copies and kernels in the place of what
is to be computed. Every program is a value; a rewritten one shares what did not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.language.formats import Format
from taco_py.language.legal.stored import count_lists, is_full
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.nodes import Access, Assignment, Expr
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.ir.formats import temporary_format
from taco_py.planner.ir.nodes import Gather, KernelStep, Operand, Step, Unfuse


@dataclass(frozen=True, slots=True)
class Define:
    """An assignment whose kernel is yet to be planned.

    note  why it is a step of its own, for explain(); "" where the user wrote it
    """

    assignment: Assignment
    note: str = ""

    @property
    def target(self) -> str:
        """Return the tensor that the step assigns."""
        return self.assignment.target.tensor


Node = Define | Step
"""What a program is made of."""


def reads(step: Node) -> Iterator[str]:
    """Yield the tensors that a step reads."""
    match step:
        case Define(assignment):
            yield from operand_names(assignment)
        case KernelStep():
            yield from (step.source(name) for name, _ in step.problem.operands)
        case Gather():
            yield from (step.source, step.pattern)
        case Unfuse():
            yield from (step.source, *(tensor for tensor, _ in step.sizes))
        case _:
            yield step.source


class _DTypes(Mapping[str, DType]):
    """The dtypes of tensors, each looked up when it is asked for."""

    def __init__(self, facts: Mapping[str, Operand]) -> None:
        self._facts = facts

    def __getitem__(self, name: str) -> DType:
        return np.dtype(self._facts[name].type.dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


@dataclass(frozen=True, slots=True)
class Selection:
    """A program whose kernels are planned, and the loops of each.

    loops  by the tensor that an assignment makes: the loop order of each of its terms; None where
           the kernel runs over other indices than the assignment
    text   the program before any rule
    fused  the temporaries that are made inside the loops of their readers, and nowhere kept
    """

    program: Program
    loops: Mapping[str, tuple[tuple[str, ...], ...] | None]
    text: Program
    fused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order, each of which makes one tensor, and facts of every tensor.

    steps    what is done, in order
    facts    type, shape and entries of every tensor, given or made
    results  the tensors that are wanted; rules see programs of one
    sizes    the size of each index of the steps
    static   the sizes that are compiled in, by index
    after    assignments of the results, which become the last steps once all others are split
    unique     tensors whose elements are compared with each other: a step makes each of them, and
             nothing computes them again (`rules/needed/compute_once.py`)
    """

    steps: tuple[Node, ...]
    facts: Mapping[str, Operand] = field(hash=False)
    results: tuple[str, ...]
    sizes: Mapping[str, float] = field(hash=False)
    static: tuple[tuple[str, int], ...] = ()
    after: tuple[Define, ...] = ()
    unique: frozenset[str] = frozenset()

    # ------------------------------------------------------------ looking

    @property
    def result(self) -> str:
        """Return the only result of the program."""
        (target,) = self.results
        return target

    @property
    def defines(self) -> Iterator[Define]:
        """Yield the assignments whose kernels are not planned yet."""
        return (step for step in self.steps if isinstance(step, Define))

    def define(self, target: str) -> Define:
        """Return the assignment to one tensor."""
        backwards = reversed(self.steps)  # the last one is asked for most
        return next(s for s in backwards if isinstance(s, Define) and s.target == target)

    @property
    def kernels(self) -> Iterator[KernelStep]:
        """Yield the kernels that are planned."""
        return (step for step in self.steps if isinstance(step, KernelStep))

    def kernel(self, target: str) -> KernelStep:
        """Return the kernel that makes one tensor."""
        return next(kernel for kernel in self.kernels if kernel.target == target)

    def with_kernel(self, kernel: KernelStep) -> Program:
        """Return the program with another kernel for the same tensor."""
        same = (isinstance(s, KernelStep) and s.target == kernel.target for s in self.steps)
        steps = zip(self.steps, same, strict=True)
        return replace(self, steps=tuple(kernel if replaced else step for step, replaced in steps))

    @property
    def last(self) -> Assignment:
        """Return the assignment that makes the result."""
        return self.define(self.result).assignment

    @property
    def temporaries(self) -> tuple[Define, ...]:
        """Return the assignments except those to results."""
        return tuple(define for define in self.defines if define.target not in self.results)

    @property
    def result_type(self) -> TensorType:
        """Return the type of the result."""
        return self.facts[self.result].type

    def only(self, target: str) -> Program:
        """Return the program of the assignment to `target` alone, which is the result."""
        return replace(self, steps=(self.define(target),), results=(target,))

    def only_of(self, assignment: Assignment) -> Program:
        """Return the program of an assignment to one of the tensors, which is the result."""
        return replace(self, steps=(Define(assignment),), results=(assignment.target.tensor,))

    def spliced(self, part: Program) -> Program:
        """Return the program with the steps of `part` in place of the assignment to its result.

        part  what `only` gave, rewritten
        """
        return self.spliced_as(part, part.result)

    def spliced_as(self, part: Program, target: str) -> Program:
        """Return the program with the steps of `part` in place of the assignment to a target."""
        place = self._place(target)
        steps = (*self.steps[:place], *part.steps, *self.steps[place + 1 :])
        return replace(self, steps=steps, facts={**self.facts, **part.facts})

    def _place(self, target: str) -> int:
        """Return the position of the assignment to one tensor among the steps."""
        places = reversed(range(len(self.steps)))
        steps = self.steps
        return next(k for k in places if isinstance(steps[k], Define) and steps[k].target == target)

    def with_parts(self, part: Program) -> Program:
        """Return the program with the temporaries of `part` before its result."""
        steps = part.temporaries
        facts = {step.target: part.facts[step.target] for step in steps}
        return self.before(self.result, steps, facts) if steps else self

    def readers(self, tensor: str) -> Iterator[Define]:
        """Yield the assignments that read a tensor."""
        return (define for define in self.defines if tensor in operand_names(define.assignment))

    @property
    def dtypes(self) -> Mapping[str, DType]:
        """Return the dtype of every tensor."""
        return _DTypes(self.facts)

    def is_full(self, tensor: str) -> bool:
        """Tell whether a tensor stores every coordinate."""
        return is_full(self.facts[tensor].type.format)

    def is_sparse(self, access: Access) -> bool:
        """Tell whether a tensor leaves coordinates out."""
        return not self.is_full(access.tensor)

    def lists(self, access: Access) -> int:
        """Count how many levels of a tensor leave coordinates out."""
        return count_lists(self.facts[access.tensor].type.format)

    def usual_format(self, assignment: Assignment) -> Format:
        """Return the default format of a temporary."""
        return temporary_format(assignment, {n: f.type.format for n, f in self.facts.items()})

    def problem(self, assignment: Assignment, value: Expr) -> Problem:
        """Return `value` assigned to the target of `assignment`, a tensor stored as the result
        is."""
        names = dict.fromkeys(access.tensor for access in accesses(value))
        types = tuple((name, self.facts[name].type) for name in names)
        return Problem(replace(assignment, value=value), types, self.result_type, self.static)

    def fresh(self, wish: str) -> str:
        """Return a name like `wish` that no tensor has."""
        return Names(self.facts).fresh(wish)

    # ------------------------------------------------------------ rewriting

    @property
    def without_entries(self) -> Program:
        """Return the program without the coordinates of its operands, which are the user's
        memory."""
        facts = {
            name: fact if fact.entries is None else replace(fact, entries=None)
            for name, fact in self.facts.items()
        }
        return replace(self, facts=facts)

    @property
    def without_unread(self) -> Program:
        """Return the program without facts of tensors that no step reads or makes."""
        used = {name for step in self.steps for name in (step.target, *reads(step))}
        return replace(self, facts={n: fact for n, fact in self.facts.items() if n in used})

    @property
    def with_after(self) -> Program:
        """Return the program with the assignments of `after` at its end, which make the results."""
        if not self.after:
            return self
        read = {
            access.tensor for define in self.after for access in accesses(define.assignment.value)
        }
        results = tuple(define.target for define in self.after if define.target not in read)
        return replace(self, steps=(*self.steps, *self.after), results=results, after=())

    def corrected(self, value: Expr, correct: Callable[[Access], Expr], reason: str) -> Program:
        """Return the program that first makes another value, and corrects it to the result at the
        end.

        y[i] = written   →   y_0[i] = value,   and after all others   y[i] = correct(y_0[i])
        """
        original = self.last
        first = Access(self.fresh(f"{self.result}_0"), original.target.indices)
        make = Define(Assignment(first, value), reason)
        last = Define(replace(original, value=correct(first)), reason)
        return replace(
            self,
            steps=tuple(make if step.target == self.result else step for step in self.steps),
            facts={**self.facts, first.tensor: self.facts[self.result]},
            results=(first.tensor,),
            after=(last, *self.after),
        )

    def with_facts(self, facts: Mapping[str, Operand]) -> Program:
        """Return the program with facts of more tensors, or other ones."""
        return replace(self, facts={**self.facts, **facts})

    def with_assignment(self, assignment: Assignment) -> Program:
        """Return the program with another assignment to the same tensor.

        T[k] = B[k,j] * x[j]  →  T[k] = x[j] * B[k,j]
        """
        target = assignment.target.tensor
        steps = tuple(
            replace(step, assignment=assignment)
            if isinstance(step, Define) and step.target == target
            else step
            for step in self.steps
        )
        return replace(self, steps=steps)

    def noted(self, target: str, note: str) -> Program:
        """Return the program with another note on the assignment to one tensor."""
        steps = tuple(
            replace(step, note=note) if isinstance(step, Define) and step.target == target else step
            for step in self.steps
        )
        return replace(self, steps=steps)

    def before(self, target: str, steps: Sequence[Node], facts: Mapping[str, Operand]) -> Program:
        """Return the program with more steps right before the assignment to `target`."""
        place = self._place(target)
        all_steps = (*self.steps[:place], *steps, *self.steps[place:])
        return replace(self, steps=all_steps, facts={**self.facts, **facts})
