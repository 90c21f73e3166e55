"""A program as an affine nest of `polyhedral`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from codegen.names import Names
from codegen.records import dataclass
from polyhedral import model
from polyhedral.affine import variable
from taco_py.compiler.affine.index_ranges import Mode, Required, domain, size_classes
from taco_py.compiler.affine.nodes import subscripts
from taco_py.compiler.affine.statements import Placed
from taco_py.language.notation.nodes import Access


@dataclass(frozen=True, slots=True)
class Lowered:
    """The nest of a program.

    sizes     the parameter that stands for the size of each mode
    required  subscripts that every call must check
    """

    nest: model.Nest
    sizes: Mapping[Mode, str]
    required: tuple[Required, ...]


def to_nest(statements: tuple[Placed, ...], caller_sizes: tuple[str, ...]) -> Lowered:
    """Return the nest of `statements`; the sizes `caller_sizes` are its first parameters.

    Raises:
        NotationError: as `ranges.domain`.
    """
    sizes = _size_parameters(statements, caller_sizes)
    domains = {statement.name: domain(statement, sizes) for statement in statements}
    parts = tuple(
        model.Statement(
            statement.name,
            domains[statement.name].loops,
            _accesses(statement),
            statement.order,
            domains[statement.name].guards,
        )
        for statement in statements
    )
    required = tuple(part for statement in domains.values() for part in statement.required)
    used = {*caller_sizes, *_used_sizes(parts)}
    parameters = (*caller_sizes, *(name for name in dict.fromkeys(sizes.values()) if name in used))
    context = tuple(variable(name) for name in parameters)
    return Lowered(model.Nest(parts, parameters, context), sizes, required)


def in_order(nest: model.Nest, statements: Collection[str]) -> model.Nest:
    """Return `nest` with the updates of one element by these statements kept in order."""

    def ordered(statement: model.Statement) -> model.Statement:
        target, *read = statement.accesses
        return replace(statement, accesses=(replace(target, operator=None), *read))

    return replace(
        nest,
        statements=tuple(ordered(s) if s.name in statements else s for s in nest.statements),
    )


def _size_parameters(
    statements: tuple[Placed, ...], caller_sizes: tuple[str, ...]
) -> dict[Mode, str]:
    indices = (index for statement in statements for index in statement.indices)
    names = Names({*caller_sizes, *indices})
    classes = size_classes(statements)
    parameters = {
        root: names.fresh(f"{root[0]}_n{root[1]}") for root in dict.fromkeys(classes.values())
    }
    return {mode: parameters[root] for mode, root in classes.items()}


def _used_sizes(parts: tuple[model.Statement, ...]) -> set[str]:
    """Return the parameters that a bound or a guard uses."""
    return {
        name
        for part in parts
        for value in (
            *part.guards,
            *(bound for loop in part.loops for bound in (*loop.lower, *loop.upper)),
        )
        for name in value.names
        if name not in part.variables
    }


def _accesses(statement: Placed) -> tuple[model.Access, ...]:
    """Return the target, then the accesses that are read. Sums into one element may be added up
    in any order."""
    update = statement.update
    mode = model.Mode.WRITE if update.operator is None else model.Mode.UPDATE
    operator = None if update.operator is None else "+"
    target = model.Access(update.target.tensor, subscripts(update.target), mode, operator)
    return (target, *(_read(access) for access in dict.fromkeys(update.accesses[1:])))


def _read(access: Access) -> model.Access:
    return model.Access(access.tensor, subscripts(access))
