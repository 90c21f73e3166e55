"""Whether a plan computes what statements say: the same terms of the same entries.

    y[i] = sum(j, A[i,j] * x[j])     against   T[j] = 2 * x[j];  y[i] = sum(j, A[i,j] * T[j])
    y[0] = A00 x0 + A02 x2           against   y[0] = 2 A00 x0 + 2 A02 x2          refused

Both are evaluated on tensors of a few elements that are symbols, of several sizes, with places
that sparse ones do not store drawn at random. No number is computed: two elements are equal where
their terms are (`entry_terms`), so that no other entries make them differ. Where equality cannot be
shown, for operations of which no law is known here or for terms of too many products, the plan is
refused too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import InternalError, ScheduleError, TacoError
from taco_py.language.fill import as_number
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand, TakeSize
from taco_py.planner.ir.program import Program
from taco_py.running.plan_texts.entry_terms import NOTHING, Atoms, Term, TooLargeError, key_of
from taco_py.running.plan_texts.step_types import check_types
from taco_py.running.plan_texts.step_values import mark_full_blocks, program_values, stored_as
from taco_py.running.plan_texts.term_arrays import Terms, filled
from taco_py.running.plan_texts.term_operators import spread

SHARE = 0.6
"""Of the places of a sparse operand, those that are stored."""


class UnequalPlanError(ScheduleError):
    """A plan computes something else than the call, or that it does not cannot be shown."""


@dataclass(frozen=True, slots=True, eq=False)
class CallStatements:
    """What a call computes: statements in order, an index of which has one size in all of them.

    types     of the tensors that statements make
    results   the tensors that are wanted, in order
    squeezed  modes of operands, of size 1, that statements have no index for
    """

    assignments: tuple[Assignment, ...]
    operands: Mapping[str, Operand]
    types: Mapping[str, TensorType]
    results: tuple[str, ...]
    squeezed: Squeezed = ()

    @property
    def is_single(self) -> bool:
        """Tell whether one assignment is computed, whose result may have its modes fused."""
        return len(self.assignments) == 1

    @property
    def reads(self) -> tuple[Access, ...]:
        """Return the accesses of all statements; among several also those that they assign."""
        statements = self.assignments
        targets = () if self.is_single else tuple(statement.target for statement in statements)
        return (*(access for s in statements for access in accesses(s.value)), *targets)

    def __str__(self) -> str:
        return "; ".join(map(to_text, self.assignments))


def check_agrees(program: Program, call: CallStatements) -> None:
    """Raise UnequalPlanError unless a plan computes a call's statements over the operands.

    It is checked once in a process, for operands of these types.
    """
    types = tuple((name, operand.type) for name, operand in call.operands.items())
    key = (
        "agrees",
        program.steps,
        program.results,
        tuple((name, facts.type) for name, facts in program.facts.items()),
        call.assignments,
        call.squeezed,
        tuple(call.types.items()),
        call.results,
        types,
    )
    difference: str = KERNELS.recall(key, lambda: _difference(program, call))
    if difference:
        raise UnequalPlanError(
            f"Expected a plan that computes {call}, {difference}",
            hint="the plan is of another computation, or was changed; tune this call",
        )


def _difference(program: Program, call: CallStatements) -> str:
    """Describe the difference of two results; "" where they agree."""
    try:
        check_types(program)
        for number in range(_trials(program, call)):
            for result, place in _differing_elements(program, call, number):
                where = f"[{', '.join(map(str, place))}]" if place else ""
                return f"found one whose element {result}{where} is another expression"
    except TooLargeError:
        return "found one of too many terms to be compared"
    except (TacoError, InternalError) as error:
        return f"found one that does not fit: {error.message}"
    except (ValueError, KeyError, IndexError, TypeError, AssertionError, OverflowError) as error:
        return f"found one whose steps do not fit: {error}"
    return ""


def _differing_elements(
    program: Program, call: CallStatements, trial: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the results that differ, by their names in the plan, with each element that does."""
    atoms = Atoms()
    leaves = dict(_leaves(call, trial, atoms))
    values = {name: _squeezed(name, terms, call.squeezed) for name, terms in leaves.items()}
    for statement in call.assignments:
        name, indices = statement.target.tensor, statement.target.indices
        values[name] = stored_as(statement.value, indices, call.types[name], values, atoms)
    results = program_values(program, leaves, atoms)
    for name, result in zip(call.results, program.results, strict=True):
        type = call.types[name]
        oracle, actual = (_result(terms, type, atoms) for terms in (values[name], results[result]))
        if actual.size != oracle.size:
            raise ValueError(f"a result of {actual.size} elements where {oracle.size} are expected")
        actual = actual.reshape(oracle.shape)
        for place in np.ndindex(oracle.shape):
            if not _same(atoms, oracle[place], actual[place]):
                yield result, place


def _same(atoms: Atoms, expected: Term, actual: Term) -> bool:
    """Tell whether two terms are equal, and no part of the second one is rougher."""
    if key_of(expected) != key_of(actual):
        return key_of(spread(atoms, expected)) == key_of(spread(atoms, actual))
    return all(actual[product][1] >= size for product, (_, size) in expected.items())


def _result(terms: Terms, type: TensorType, atoms: Atoms) -> Any:
    """Return the elements of a result; those that are not stored have its fill value."""
    if is_full(type.format):
        return terms.array
    absent = atoms.number(as_number(type.fill, np.dtype(type.dtype))) if type.fill else NOTHING
    array = filled(terms.array.shape, absent)
    array[terms.stored] = terms.array[terms.stored]
    return array


# ---------------------------------------------------------------- operands


def _leaves(call: CallStatements, trial: int, atoms: Atoms) -> Iterator[tuple[str, Terms]]:
    """Yield each operand as an array of symbols."""
    numbers = np.random.default_rng(trial)
    for name, shape in _shapes(call, trial).items():
        type = call.operands[name].type
        dtype = np.dtype(type.dtype)
        array = filled(shape, NOTHING)
        for place in np.ndindex(shape):
            array[place] = atoms.atom((name, place), dtype)
        if is_full(type.format):
            yield name, Terms(array, np.ones(shape, bool), None, dtype)
            continue
        stored = mark_full_blocks(numbers.random(shape) < SHARE, type.format)
        stored_values = filled(shape, NOTHING)
        stored_values[stored] = array[stored]
        yield name, Terms(stored_values, stored, 0, dtype)


def _trials(program: Program, call: CallStatements) -> int:
    """Count how many comparisons there are: any two indices differ in size in one of them, and no
    index has one size in all of them where a step counts it."""
    indices = len({*_first_of_mode(call).values()})
    counts = any(isinstance(step, TakeSize) for step in program.steps)
    if indices <= 4:
        return 3 if counts else 2
    return max(4, 1 + (indices - 1).bit_length())


def _size(index: int, trial: int) -> int:
    """Return the size of an index, by its number: two or three.

    trial   0 1 2 3 4 …
    0       2 3 2 3 2
    1       3 2 2 3 3
    2       3 2 3 2 3
    3       2 2 2 2 3           the bits of the number from here on
    """
    low, high = index & 1, index >> 1 & 1
    return 2 + ((low, low ^ high ^ 1, low ^ 1)[trial] if trial < 3 else index >> trial - 1 & 1)


def _shapes(call: CallStatements, trial: int) -> dict[str, tuple[int, ...]]:
    """Return a small shape of each operand; indices of one mode have one size."""
    first = _first_of_mode(call)
    groups = dict.fromkeys(first.values())
    size = {index: _size(number, trial) for number, index in enumerate(groups)}
    axes = dict(call.squeezed)
    shapes = {}
    for access in call.reads:
        if access.tensor not in call.operands:
            continue
        left = iter(access.indices)
        order = len(call.operands[access.tensor].shape)
        alone = axes.get(access.tensor, ())
        shapes[access.tensor] = tuple(
            1 if mode in alone else size[first[next(left)]] for mode in range(order)
        )
    return shapes


def _first_of_mode(call: CallStatements) -> dict[str, str]:
    """Return the first index of all that stand for the same modes."""
    first: dict[str, str] = {}
    of_mode: dict[tuple[str, int], str] = {}
    for access in call.reads:
        for mode, index in enumerate(access.indices):
            first.setdefault(index, index)
            one = first[of_mode.setdefault((access.tensor, mode), index)]
            other = first[index]
            first = {i: one if root == other else root for i, root in first.items()}
    return first


def _squeezed(name: str, terms: Terms, squeezed: Squeezed) -> Terms:
    """Return an operand without the modes that statements have no index for."""
    axes = dict(squeezed).get(name)
    if not axes:
        return terms
    array, stored = terms.array.squeeze(axes), terms.stored.squeeze(axes)
    return Terms(array, stored, terms.fill, terms.dtype)
