"""Statements as text in which the user's names do not matter, for the keys of tuned plans.

    y[i] = A[i,j] * x[j]   A CSR, x an array
    →
    t0[i0] = sum(i1, t1[i0,i1] * t2[i1])
    t1: ds/float64/int32
    t2: d/float64, joined
    t0: ndarray d/float64
    threads all

Tensors and indices are named in order of appearance; an index has one size in all statements, and
of several the results have a line. Semirings, masks and fill values are operators of assignments by
then. Sizes below 4, which plans compile in, are part of it; others are in
buckets (`operand_buckets`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from codegen.records import dataclass
from taco_py.language.notation.functions.defined import DEFINED
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.tree import map_children, walk
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.printer import assignment_text, type_text

SHORT = 4
"""Sizes below are compiled into plans, or make modes go."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyedProblem:
    """What is computed, of operands that are known, for which a plan is looked for.

    operands  by name: their types, sizes and entries
    results   by name in order: how each is handed out, and its type
    between   the types of the tensors that statements make for others
    squeezed  modes of operands that no index stands for
    options   what else plans depend on, as lines
    static    the sizes that are compiled in, by index
    """

    assignments: Sequence[Assignment]
    operands: Mapping[str, Operand]
    results: Mapping[str, tuple[str, TensorType]]
    between: Mapping[str, TensorType] = field(default_factory=dict)
    squeezed: Sequence[tuple[str, tuple[int, ...]]] = ()
    options: Sequence[str] = ()
    static: Sequence[tuple[str, int]] = ()

    def sizes(self) -> dict[str, int]:
        """Return the size of each index, as operands have it."""
        axes = dict(self.squeezed)
        sizes: dict[str, int] = {}
        for assignment in self.assignments:
            for access in _accesses(assignment):
                if access.tensor in self.operands:
                    left_out = axes.get(access.tensor, ())
                    shape = self.operands[access.tensor].shape
                    remaining = (n for mode, n in enumerate(shape) if mode not in left_out)
                    sizes.update(zip(access.indices, remaining, strict=False))
        return sizes


def _accesses(assignment: Assignment) -> Iterator[Access]:
    yield from (node for node, _ in walk(assignment.value) if isinstance(node, Access))


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """New names for tensors and indices, given in the order in which they are met."""

    tensors: dict[str, str] = field(default_factory=dict)
    indices: dict[str, str] = field(default_factory=dict)

    def tensor(self, name: str) -> str:
        """Return t0, t1, …"""
        return self.tensors.setdefault(name, f"t{len(self.tensors)}")

    def index(self, name: str) -> str:
        """Return i0, i1, …"""
        return self.indices.setdefault(name, f"i{len(self.indices)}")

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the new name of each tensor and index with the one that the user gave it."""
        every = (*self.tensors.items(), *self.indices.items())
        return tuple((new, old) for old, new in every)

    def renamed(self, assignment: Assignment) -> Assignment:
        """Return an assignment in new names."""
        target = self._access(assignment.target)
        return Assignment(target, self._expression(assignment.value), assignment.operator)

    def _access(self, access: Access) -> Access:
        return Access(self.tensor(access.tensor), tuple(map(self.index, access.indices)))

    def _expression(self, expr: Expr) -> Expr:
        match expr:
            case Access():
                return self._access(expr)
            case Reduce(operator, index, body):
                return Reduce(operator, self.index(index), self._expression(body))
            case _:
                return map_children(expr, self._expression)


def problem_of(problem: KeyedProblem) -> tuple[str, Names]:
    """Return the text, and which names stand for which in it."""
    names = Names()
    lines = [assignment_text(names.renamed(assignment)) for assignment in problem.assignments]
    lines += _types(problem, names)
    if len(problem.assignments) > 1:
        lines.append(f"results {' '.join(map(names.tensor, problem.results))}")
    for name, axes in problem.squeezed:
        lines.append(f"{names.tensor(name)} without modes {','.join(map(str, axes))}")
    sizes = problem.sizes()
    short = (f"{names.index(i)}={n}" for i, n in sizes.items() if n < SHORT)
    lines += [f"short {size}" for size in sorted(short)]
    static = (f"static {names.index(i)}={n}" for i, n in problem.static)
    lines += [*sorted(static), *_functions(problem)]
    lines += problem.options
    return "\n".join(lines), names


def _types(problem: KeyedProblem, names: Names) -> Iterator[str]:
    """Yield a line for each operand and each result, in order of their new names."""
    for name in tuple(names.tensors):
        if name in problem.operands:
            operand = problem.operands[name]
            contiguity = ", joined" if operand.contiguous and all(operand.contiguous) else ""
            if operand.contiguous and not contiguity:
                words = ("yes" if level else "no" for level in operand.contiguous)
                contiguity = f", joined {' '.join(words)}"
            yield f"{names.tensor(name)}: {type_text(operand.type)}{contiguity}"
        elif name in problem.between:
            yield f"{names.tensor(name)}: between {type_text(problem.between[name])}"
        elif name in problem.results:
            kind, type = problem.results[name]
            yield f"{names.tensor(name)}: {kind} {type_text(type)}"


def _functions(problem: KeyedProblem) -> Iterator[str]:
    """Yield the bodies of the functions of users that are called."""
    nodes = [node for assignment in problem.assignments for node, _ in walk(assignment.value)]
    used = [node.operator for node in nodes if isinstance(node, Call | Reduce)]
    for name in sorted(DEFINED.operators):
        if DEFINED.operators[name] in used:
            body = DEFINED.bodies.get(name, "")
            yield f"function {name} {body}".replace("\n", "\\n")
