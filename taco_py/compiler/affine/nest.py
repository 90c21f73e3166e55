"""A program as an affine nest: what `polyhedral` knows of it."""

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


def to_nest(statements: tuple[Placed, ...], given: tuple[str, ...]) -> Lowered:
    """Return the nest of `statements`, with the sizes `given` by the caller as its first
    parameters.

    Raises:
        NotationError: as `ranges.domain`.
    """
    sizes = _size_parameters(statements, given)
    domains = {each.name: domain(each, sizes) for each in statements}
    parts = tuple(
        model.Statement(
            each.name,
            domains[each.name].loops,
            _accesses(each),
            each.order,
            domains[each.name].guards,
        )
        for each in statements
    )
    required = tuple(part for each in domains.values() for part in each.required)
    known = {*given, *_used_sizes(parts)}
    parameters = (*given, *(name for name in dict.fromkeys(sizes.values()) if name in known))
    context = tuple(variable(name) for name in parameters)
    return Lowered(model.Nest(parts, parameters, context), sizes, required)


def in_order(nest: model.Nest, statements: Collection[str]) -> model.Nest:
    """Return `nest`, in which what these statements add to one element stays in order."""

    def kept(each: model.Statement) -> model.Statement:
        target, *read = each.accesses
        return replace(each, accesses=(replace(target, operator=None), *read))

    return replace(
        nest,
        statements=tuple(kept(s) if s.name in statements else s for s in nest.statements),
    )


def _size_parameters(statements: tuple[Placed, ...], given: tuple[str, ...]) -> dict[Mode, str]:
    indices = (index for each in statements for index in each.indices)
    names = Names({*given, *indices})
    classes = size_classes(statements)
    named = {root: names.fresh(f"{root[0]}_n{root[1]}") for root in dict.fromkeys(classes.values())}
    return {mode: named[root] for mode, root in classes.items()}


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


def _accesses(each: Placed) -> tuple[model.Access, ...]:
    """Return the target, then what is read. Sums into one element may be added up in any order."""
    update = each.update
    mode = model.Mode.WRITE if update.operator is None else model.Mode.UPDATE
    operator = None if update.operator is None else "+"
    target = model.Access(update.target.tensor, subscripts(update.target), mode, operator)
    return (target, *(_read(access) for access in dict.fromkeys(update.accesses[1:])))


def _read(access: Access) -> model.Access:
    return model.Access(access.tensor, subscripts(access))
