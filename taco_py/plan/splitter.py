"""What is known while an assignment is taken apart, and the temporaries made so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from codegen.names import Names
from taco_py.concrete.terms import summed
from taco_py.cost.estimate import Statistics, result_size
from taco_py.cost.machine import DENSE_SIZE, FULL
from taco_py.formats import Format, dense
from taco_py.notation.checks import accesses, free_indices, operand_names
from taco_py.notation.dtypes import DType, expression_dtype
from taco_py.notation.nodes import Access, Assignment, Expr
from taco_py.plan.ir.formats import temporary_format
from taco_py.plan.ir.goal import Request, real_statistics, statistics
from taco_py.plan.ir.nodes import Operand
from taco_py.problem import Problem, TensorType


@dataclass(slots=True)
class Splitter:
    """Collects temporaries while an assignment is taken apart.

    operands  what exists so far: the given operands and the temporaries
    sizes     the size of each index of the whole assignment
    made      the temporaries' assignments, in order
    notes     for each of them why it is there
    known     what is known of the operands of an assignment
    full      whether temporaries of one index are dense, however few their entries
    """

    operands: dict[str, Operand]
    request: Request
    names: Names
    sizes: Mapping[str, float]
    made: list[Assignment]
    notes: list[str]
    known: Callable[[Assignment, Mapping[str, Operand]], Statistics] = statistics
    full: bool = False

    @property
    def dtypes(self) -> dict[str, DType]:
        """The dtype of every tensor that exists so far."""
        return {name: np.dtype(o.type.dtype) for name, o in self.operands.items()}

    def is_sparse(self, access: Access) -> bool:
        """Whether a tensor does not store everything."""
        return not self.is_full(access.tensor)

    def lists(self, access: Access) -> int:
        """The levels of a tensor that do not store everything."""
        return sum(not level.full for level in self.operands[access.tensor].type.format.levels)

    def is_full(self, name: str) -> bool:
        """Whether a tensor stores everything."""
        return self.operands[name].type.format.is_dense

    def key(self, assignment: Assignment) -> tuple[object, ...]:
        """All that is known of an assignment and its operands, to be compared and hashed."""
        read = [self.operands[name] for name in operand_names(assignment)]
        sizes = tuple(self.sizes.get(index) for index in assignment.target.indices)
        return assignment, self.known, tuple(read), tuple(o.entries for o in read), sizes

    def statistics(self, value: Expr) -> Statistics:
        """The patterns of `value`'s operands, and the whole assignment's sizes."""
        known = self.known(Assignment(Access("", ()), value), self.operands)
        return replace(known, sizes={**self.sizes, **known.sizes})

    def real(self, value: Expr) -> Splitter:
        """A copy that takes operands as large as they are, to tell of `value` what it costs."""
        sizes = real_statistics(Assignment(Access("", ()), value), self.operands).sizes
        return replace(self, sizes={**self.sizes, **sizes}, known=real_statistics)

    def drafting(self) -> Splitter:
        """A copy whose temporaries are not made here."""
        names = Names(self.operands)
        return replace(self, operands=dict(self.operands), names=names, made=[], notes=[])

    def computing(self, part: Assignment) -> Splitter:
        """The same, where `part` is what is wanted: dense if the whole result is."""
        whole = self.request.type
        order = len(part.target.indices)
        form = dense(order) if whole.format.is_dense else self.usual_format(part)
        return replace(self, request=replace(self.request, type=replace(whole, format=form)))

    def draft(self, assignment: Assignment, value: Expr) -> Problem:
        """`value` assigned to the target of `assignment`, on operands as they are stored."""
        names = dict.fromkeys(a.tensor for a in accesses(value))
        types = tuple((name, self.operands[name].type) for name in names)
        whole = replace(assignment, value=value)
        return Problem(whole, types, self.request.type, self.request.static)

    def usual_format(self, assignment: Assignment) -> Format:
        """The format of a temporary, where no other is better."""
        return temporary_format(assignment, {n: o.type.format for n, o in self.operands.items()})

    def temporary(
        self, value: Expr, keep: Sequence[str], why: str, dtype: DType | None = None
    ) -> Access:
        """Assign `value`, summed over all but `keep`, to a new tensor and return its access.

        dtype  the type that it is added up in, where that is not its own
        """
        value = summed(value, (i for i in free_indices(value) if i not in keep))
        target = Access(self.names.fresh("T"), tuple(keep))
        assignment = Assignment(target, value)
        made = self.described(assignment)
        if dtype is not None:
            made = replace(made, type=replace(made.type, dtype=dtype.name))
        self.operands[target.tensor] = made
        if made.type.format.is_dense and not self.usual_format(assignment).is_dense:
            fill = self._fill(assignment)
            cheap = "for" if fill >= FULL else "which is cheaper here, though"
            why = f"{why}; dense, {cheap} {fill:.0%} of it is expected to be there"
        self.made.append(assignment)
        self.notes.append(f"{target.tensor}: {why}")
        return target

    def described(self, assignment: Assignment) -> Operand:
        """What is expected of the target of `assignment`, a temporary."""
        key = (Operand, self.request.type, self.full, *self.key(assignment))
        return self.request.effort.once(key, lambda: self._described(assignment))

    def _described(self, assignment: Assignment) -> Operand:
        value, keep = assignment.value, assignment.target.indices
        stats = self.statistics(value)
        sizes = real_statistics(Assignment(Access("", ()), value), self.operands).sizes
        shape = tuple(int(sizes[i]) for i in keep)
        nnz = result_size(stats, value, keep)
        dtype = expression_dtype(value, self.dtypes).name
        form = self.usual_format(assignment)
        if not form.is_dense and self._better_dense(assignment, shape):
            form = dense(len(keep))
        type = TensorType(form, dtype, self.request.type.index_dtype)
        return Operand(type, shape, nnz)

    def _better_dense(self, assignment: Assignment, shape: Sequence[int]) -> bool:
        """Whether a temporary is so full that coordinates cost more than the zeros between them,
        or is asked to be dense.

        Not where the result is sparse: its entries would be those of all the zeros too.
        """
        if prod(shape) > DENSE_SIZE or not self.request.type.format.is_dense:
            return False
        return (self.full and len(shape) == 1) or self._fill(assignment) >= FULL

    def _fill(self, assignment: Assignment) -> float:
        """The share of a temporary's elements that is expected to be stored."""
        stats, keep = self.statistics(assignment.value), assignment.target.indices
        volume = stats.volume(frozenset(keep))
        return result_size(stats, assignment.value, keep) / max(volume, 1.0)
