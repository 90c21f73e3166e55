"""Small dense operands in row-major order, so that one kernel serves them in whatever order they
are stored.

    M[i,r] = sum(j, k, T[i,j,k] * U[j,r] * V[k,r])    U and V each C- or Fortran-ordered
    →   one kernel, for U and V in C order, where there were four

A kernel is made for the order in which dense operands are stored, and takes a second to compile. An
operand is copied where its copy costs a call less than its share of that second, and nothing that
would be noticed beside the call itself. Others are read as they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import BoundOperand, joined_of, type_of
from taco_py.arguments.options import CallOptions
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.data.storage.tensor_data import row_major
from taco_py.data.tensors.keys import stride_order
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.running.execute.guard import no_room, with_room


def row_major_copies(
    assignment: Assignment,
    operands: Mapping[str, BoundOperand],
    sizes: Mapping[str, int],
    options: CallOptions,
    fixed: Sequence[str] = (),
) -> Mapping[str, BoundOperand]:
    """Copy dense operands to row-major order where that costs less than another kernel.

    sizes  of the indices
    fixed   operands that stay as they are

    Which ones are copied does not depend on how others are stored. Raises OutOfMemoryError.
    """
    across_rows = [name for name, o in operands.items() if name not in fixed and _lies_across(o)]
    if not across_rows or options.schedule is not None:
        return operands
    uses = Uses(assignment, operands, sizes)
    row_major_operands = dict(operands)
    for name in across_rows:
        small = operands[name].data.nnz <= options.memory
        if small and all(uses.pays(access) for access in uses.of(name)):
            row_major_operands[name] = _copied(name, operands[name])
    return row_major_operands


def _lies_across(operand: BoundOperand) -> bool:
    """Tell whether it is a dense array whose modes are not in order, or has no neighbours."""
    if not operand.data.format.is_dense or operand.data.values.flags.c_contiguous:
        return False
    if not isinstance(operand.data.values, np.ndarray):
        return False  # a copy would be made on the host
    modes, unit = stride_order(operand.data.values)
    return not unit or modes != tuple(range(len(modes)))


def _copied(name: str, source: BoundOperand) -> BoundOperand:
    """Return the operand in row-major order. Raises OutOfMemoryError."""
    try:
        data = with_room(lambda: row_major(source.data), True)
    except MemoryError as error:
        raise no_room(f"a copy of {name} in C order", error) from error
    read = source.operand.type
    type = replace(type_of(data), dtype=read.dtype, stored=read.stored)
    operand = replace(source.operand, type=type, contiguous=joined_of(data))
    return replace(source, data=data, operand=operand, lined_up=True)


@dataclass(frozen=True, slots=True)
class Uses:
    """How the loops of an assignment read its operands, as far as that is known before planning."""

    assignment: Assignment
    operands: Mapping[str, BoundOperand]
    sizes: Mapping[str, int]
    machine: Machine = NOMINAL

    def of(self, name: str) -> Iterator[Access]:
        """Yield the accesses of an operand."""
        return (access for access in accesses(self.assignment.value) if access.tensor == name)

    def pays(self, access: Access) -> bool:
        """Tell whether a copy in row-major order costs less than another kernel for the operand."""
        machine, values = self.machine, self.operands[access.tensor].data.values
        if len(access.indices) != values.ndim or values.nbytes > machine.loops.far_cache_bytes:
            return False
        seconds = machine.calls.lined_up_call_seconds
        seconds += values.size * machine.copied_element(values.nbytes)
        term = next(candidate for candidate in self._terms() if access in candidate)
        modes, unit = stride_order(values)
        last, inner = access.indices[-1], self._innermost(access, term)
        if unit and access.indices[modes[-1]] == inner != last:
            return False  # loops run along it as it is, and across the copy
        if inner == last and not self._in_lists(inner, term) and self._sparse_among(term):
            gain = machine.calls.copied_element_seconds / machine.calls.small_factor_ratio
            seconds -= gain * self._reads(access, term)
        call = self._least_iterations() * machine.quickest_steps * machine.step_seconds
        unnoticed = max(machine.calls.lined_up_least_seconds, machine.calls.lined_up_share * call)
        return seconds <= min(
            machine.calls.compile_seconds / machine.calls.compile_calls, unnoticed
        )

    def _terms(self) -> list[tuple[Access, ...]]:
        return [accesses(term.body) for term in split_terms(self.assignment.value)]

    def _innermost(self, access: Access, term: Sequence[Access]) -> str:
        """Return the operand's index that loops come to last; "" where that is not known.

        Beside sparse operands it is one that none of these has, of such the result's last one; else
        the one that they store last. Otherwise it is the result's last one, if that.
        """
        lists = [index for factor in self._sparse_among(term) for index in self._stored(factor)]
        if not lists:
            ends = self.assignment.target.indices[-1:]
            return next((index for index in ends if index in access.indices), "")
        free = [index for index in access.indices if index not in lists]
        order = self.assignment.target.indices if free else lists
        candidates = [index for index in order if index in (free or access.indices)]
        if candidates:
            return candidates[-1]
        return free[0] if len(free) == 1 else ""

    def _least_iterations(self) -> float:
        """Return the least that the call iterates: once for each element of an operand that it
        reads with another one."""
        return max(
            (self._reads(access, term) for term in self._terms() for access in term), default=0.0
        )

    def _reads(self, access: Access, term: Sequence[Access]) -> float:
        """Return the least iterations that read an operand, with one other that has an index of it:
        a sparse one if there is any."""
        indices = {*access.indices}
        neighbours = [e for e in term if e != access and not indices.isdisjoint(e.indices)]
        sparse = neighbours if self._sparse(access) else self._sparse_among(neighbours)
        return min(
            (self._iterations(access, other, term) for other in sparse or neighbours),
            default=self._count(access, term),
        )

    def _iterations(self, one: Access, other: Access, term: Sequence[Access]) -> float:
        """Return the iterations of a product of two operands."""
        if self._sparse(one) and self._sparse(other):
            return min(self._count(one, term), self._count(other, term))
        if self._sparse(one):
            one, other = other, one
        outside = self._left(one, term) - {*other.indices}
        return self._count(other, term) * prod(self.sizes[index] for index in outside)

    def _count(self, access: Access, term: Sequence[Access]) -> float:
        """Return the elements of an operand that is summed over the indices it has alone."""
        size = prod(float(self.sizes[index]) for index in self._left(access, term))
        return min(float(self.operands[access.tensor].data.nnz), size)

    def _left(self, access: Access, term: Sequence[Access]) -> set[str]:
        shared = {index for factor in term if factor != access for index in factor.indices}
        return {*access.indices} & (shared | {*self.assignment.target.indices})

    def _in_lists(self, index: str, term: Sequence[Access]) -> bool:
        return any(index in factor.indices for factor in self._sparse_among(term))

    def _sparse_among(self, term: Sequence[Access]) -> list[Access]:
        return [factor for factor in term if self._sparse(factor)]

    def _sparse(self, access: Access) -> bool:
        return not self.operands[access.tensor].data.format.is_dense

    def _stored(self, access: Access) -> tuple[str, ...]:
        form = self.operands[access.tensor].data.format
        if len(access.indices) != form.order:
            return access.indices
        return form.stored(access.indices)
