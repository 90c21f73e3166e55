"""Whether a plan computes what an assignment says: the same terms of the same entries.

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
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand, TakeSize
from taco_py.planner.ir.program import Program
from taco_py.running.plan_texts.entry_terms import NOTHING, Atoms, Term, TooLargeError, key_of
from taco_py.running.plan_texts.step_types import check_types
from taco_py.running.plan_texts.step_values import fill_blocks, program_value, stored_as
from taco_py.running.plan_texts.term_arrays import Terms, filled
from taco_py.running.plan_texts.term_operators import spread

SHARE = 0.6
"""Of the places of a sparse operand, those that are stored."""


class UnequalPlanError(ScheduleError):
    """A plan computes something else than the call, or that it does not cannot be shown."""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """What a call computes.

    squeezed  modes of operands, of size 1, that the assignment has no index for
    result    the type that its result is wanted in
    """

    assignment: Assignment
    operands: Mapping[str, Operand]
    squeezed: Squeezed
    result: TensorType


def check_agrees(program: Program, statement: Statement) -> None:
    """Raise UnequalPlanError unless a plan computes its statement over the operands.

    It is checked once in a process, for operands of these types.
    """
    types = tuple((name, operand.type) for name, operand in statement.operands.items())
    key = (
        "agrees",
        program.steps,
        program.results,
        tuple((name, facts.type) for name, facts in program.facts.items()),
        statement.assignment,
        statement.squeezed,
        statement.result,
        types,
    )
    difference: str = KERNELS.recall(key, lambda: _difference(program, statement))
    if difference:
        raise UnequalPlanError(
            f"Expected a plan that computes {to_text(statement.assignment)}, {difference}",
            hint="the plan is of another computation, or was changed; tune this call",
        )


def _difference(program: Program, statement: Statement) -> str:
    """Describe the difference of two results; "" where they agree."""
    try:
        check_types(program)
        for number in range(_trials(program, statement)):
            place = _differing_element(program, statement, number)
            if place is not None:
                where = f"[{', '.join(map(str, place))}]" if place else ""
                return f"found one whose element {program.result}{where} is another expression"
    except TooLargeError:
        return "found one of too many terms to be compared"
    except (TacoError, InternalError) as error:
        return f"found one that does not fit: {error.message}"
    except (ValueError, KeyError, IndexError, TypeError, AssertionError, OverflowError) as error:
        return f"found one whose steps do not fit: {error}"
    return ""


def _differing_element(
    program: Program, statement: Statement, trial: int
) -> tuple[int, ...] | None:
    """Return the first element at which two results differ."""
    atoms, type = Atoms(), statement.result
    leaves = dict(_leaves(statement, trial, atoms))
    operands = {name: _squeezed(name, terms, statement.squeezed) for name, terms in leaves.items()}
    indices = statement.assignment.target.indices
    expected = _result(
        stored_as(statement.assignment.value, indices, type, operands, atoms), type, atoms
    )
    actual = _result(program_value(program, leaves, atoms), type, atoms)
    if actual.size != expected.size:
        raise ValueError(f"a result of {actual.size} elements where {expected.size} are expected")
    actual = actual.reshape(expected.shape)
    places = np.ndindex(expected.shape)
    return next((p for p in places if not _same(atoms, expected[p], actual[p])), None)


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


def _leaves(statement: Statement, trial: int, atoms: Atoms) -> Iterator[tuple[str, Terms]]:
    """Yield each operand as an array of symbols."""
    numbers = np.random.default_rng(trial)
    for name, shape in _shapes(statement, trial).items():
        type = statement.operands[name].type
        dtype = np.dtype(type.dtype)
        array = filled(shape, NOTHING)
        for place in np.ndindex(shape):
            array[place] = atoms.atom((name, place), dtype)
        if is_full(type.format):
            yield name, Terms(array, np.ones(shape, bool), None, dtype)
            continue
        stored = fill_blocks(numbers.random(shape) < SHARE, type.format)
        values = filled(shape, NOTHING)
        values[stored] = array[stored]
        yield name, Terms(values, stored, 0, dtype)


def _trials(program: Program, statement: Statement) -> int:
    """Count how many comparisons there are: any two indices differ in size in one of them, and no
    index has one size in all of them where a step counts it."""
    indices = len({*_first_of_mode(statement).values()})
    counts = any(isinstance(step, TakeSize) for step in program.steps)
    return 2 if indices <= 4 and not counts else 3 if indices <= 4 else 4


def _size(index: int, trial: int) -> int:
    """Return the size of an index, by its number: two or three.

    trial   0 1 2 3 4 …
    0       2 3 2 3 2
    1       3 2 2 3 3
    2       3 2 3 2 3
    3       2 2 2 2 3
    """
    bits = index & 1, index >> 1 & 1, index >> 2 & 1
    return 2 + (bits[0], bits[0] ^ bits[1] ^ 1, bits[0] ^ 1, bits[2])[trial]


def _shapes(statement: Statement, trial: int) -> dict[str, tuple[int, ...]]:
    """Return a small shape of each operand; indices that read one mode have one size."""
    first = _first_of_mode(statement)
    groups = dict.fromkeys(first.values())
    size = {index: _size(number, trial) for number, index in enumerate(groups)}
    axes = dict(statement.squeezed)
    shapes = {}
    for access in accesses(statement.assignment.value):
        left = iter(access.indices)
        order = len(statement.operands[access.tensor].shape)
        alone = axes.get(access.tensor, ())
        shapes[access.tensor] = tuple(
            1 if mode in alone else size[first[next(left)]] for mode in range(order)
        )
    return shapes


def _first_of_mode(statement: Statement) -> dict[str, str]:
    """Return the first index of all that read the same modes."""
    first: dict[str, str] = {}
    of_mode: dict[tuple[str, int], str] = {}
    for access in accesses(statement.assignment.value):
        for mode, index in enumerate(access.indices):
            first.setdefault(index, index)
            one = first[of_mode.setdefault((access.tensor, mode), index)]
            other = first[index]
            first = {i: one if root == other else root for i, root in first.items()}
    return first


def _squeezed(name: str, terms: Terms, squeezed: Squeezed) -> Terms:
    """Return an operand without the modes that the statement has no index for."""
    axes = dict(squeezed).get(name)
    if not axes:
        return terms
    array, stored = terms.array.squeeze(axes), terms.stored.squeeze(axes)
    return Terms(array, stored, terms.fill, terms.dtype)
