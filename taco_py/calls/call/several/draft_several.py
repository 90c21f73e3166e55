"""What is known of several statements before any data is, as `call.draft` has it for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.operands import Given, describe
from taco_py.arguments.option_checks import check_static
from taco_py.arguments.result_table import TENSOR
from taco_py.arguments.results import container
from taco_py.calls.call.draft import (
    NOMINAL_DENSITY,
    NOMINAL_SIZE,
    CompileArguments,
    check_index_dtype,
    format_of,
    is_array,
    names_to_dtypes,
)
from taco_py.calls.call.several.requested_outputs import RequestedOutputs, requested_outputs
from taco_py.calls.statements.elaborate import Elaborated, Read, ResultOptions, elaborate
from taco_py.calls.statements.read_text import names_read, parsed_statements
from taco_py.calls.statements.sequence import Statements, check_passed, in_single_assignment
from taco_py.language.formats import Format, dense
from taco_py.language.notation.checks import accesses, unique
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand


@dataclass(frozen=True, slots=True, eq=False)
class DraftOfSeveral:
    """Statements over operands of known formats, as planning wants them.

    operands  facts of what statements read, those read in another type under another name
    formats   of the operands, by the names that the user gives them
    assumed   whether a size is not known
    """

    statements: Statements
    elaborated: Elaborated
    operands: Mapping[str, Operand]
    formats: Mapping[str, Format]
    requested: RequestedOutputs
    static: tuple[tuple[str, int], ...]
    assumed: bool

    @property
    def size_note(self) -> str:
        """What planning takes sizes for that nobody says, for explain()."""
        return f"those not given taken for {NOMINAL_SIZE}" if self.assumed else ""


def draft_several(text: str, outputs: Any, arguments: CompileArguments) -> DraftOfSeveral:
    """Return `text` over operands of known formats.

    outputs  the names that are wanted, or one of them

    Raises what `call.draft.draft` raises.
    """
    formats = arguments.formats
    written = parsed_statements(text)
    assigned = unique(each.target.tensor for each in written)
    begun = {name: first for name in assigned if (first := _first(written, name)).operator}
    plain = [name for name in assigned if name not in begun]
    requested = requested_outputs(written, outputs, {n: formats[n] for n in plain if n in formats})
    given = {name: form for name, form in formats.items() if name not in plain}
    for name, first in begun.items():
        given.setdefault(name, dense(len(first.target.indices)))
    statements = in_single_assignment(written, requested.outputs, given)
    check_passed(written, statements, given)
    names = [n for n in names_read(statements.assignments) if n in given]
    sizes = check_static(arguments.static)
    index = check_index_dtype(arguments.index_dtype)
    arrays = {name: describe(given[name], name) for name in names if is_array(given[name])}
    types = names_to_dtypes(tuple(names), arguments.dtypes)
    first_access = _first_accesses(statements.assignments, names)
    forms = {n: format_of(given[n], len(first_access[n].indices), n) for n in names}
    shapes = {name: tuple(a.operand.shape) for name, a in arrays.items()}
    known, assumed = _shapes(statements.assignments, first_access, shapes, dict(sizes))
    facts = {
        name: _without_entries(arrays[name])
        if name in arrays
        else _nominal(TensorType(forms[name], types[name], index), known[name])
        for name in names
    }
    whole = bool(arrays) and len(arrays) == len(names)
    containers = {name: container(arrays[name]) if whole else TENSOR for name in names}
    found = elaborate(
        statements, facts, containers, ResultOptions(requested.formats, None, sizes, index=index)
    )
    operands = {**facts, **{alias: _read(facts, each) for alias, each in found.reads.items()}}
    return DraftOfSeveral(statements, found, operands, forms, requested, sizes, assumed)


def _first(written: Sequence[Assignment], name: str) -> Assignment:
    """Return the first statement that assigns a name."""
    return next(each for each in written if each.target.tensor == name)


def _first_accesses(statements: Iterable[Assignment], names: Sequence[str]) -> dict[str, Access]:
    found: dict[str, Access] = {}
    for each in statements:
        for access in accesses(each):
            if access.tensor in names:
                found.setdefault(access.tensor, access)
    return found


def _without_entries(given: Given) -> Operand:
    return replace(given.operand, entries=None)


def _nominal(type: TensorType, shape: tuple[int, ...]) -> Operand:
    """Return the facts that are taken for an operand of which a format is known."""
    volume = prod(float(n) for n in shape)
    entries = volume if type.format.is_dense else max(1.0, volume * NOMINAL_DENSITY)
    return Operand(type, shape, entries)


def _read(facts: Mapping[str, Operand], read: Read) -> Operand:
    """Return the facts of an operand that is read in another type."""
    own = facts[read.source]
    return replace(own, type=own.type.read_as(read.dtype.name))


def _shapes(
    statements: Sequence[Assignment],
    first: Mapping[str, Access],
    arrays: Mapping[str, tuple[int, ...]],
    static: Mapping[str, int],
) -> tuple[dict[str, tuple[int, ...]], bool]:
    """Return the shape of each operand, by sizes that arrays and `static` say, as far as indices
    lead; and whether others had to be taken for nominal ones."""
    sizes: dict[tuple[str, int], int] = {
        (name, mode): size for name, shape in arrays.items() for mode, size in enumerate(shape)
    }
    known = -1
    while known < len(sizes):
        known = len(sizes)
        for each in statements:
            own = dict(static)
            met = (each.target, *accesses(each))
            for access in met:
                for mode, index in enumerate(access.indices):
                    if (access.tensor, mode) in sizes:
                        own.setdefault(index, sizes[access.tensor, mode])
            for access in met:
                for mode, index in enumerate(access.indices):
                    if index in own:
                        sizes.setdefault((access.tensor, mode), own[index])
    shapes = {
        name: arrays.get(name)
        or tuple(sizes.get((name, m), NOMINAL_SIZE) for m in range(len(access.indices)))
        for name, access in first.items()
    }
    modes = ((name, mode) for name, a in first.items() for mode in range(len(a.indices)))
    return shapes, any(each not in sizes for each in modes)
