"""Values of one kernel over fewer modes: neighbours that all of their tensors store in a row.

P[n,c,h,w] = X[n,c,h,w] / sum(h, w, X[n,c,h,w])   →   P_f[nc,hw] = X_f[nc,hw] / sum(hw, X_f[nc,hw])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from math import prod

from codegen.names import Names
from codegen.records import dataclass
from taco_py.language.formats import dense
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.planner.algebra.fused_modes import Chain, FusedModes, Stored, chains_of, runs_of
from taco_py.planner.ir.nodes import Operand, Step, Unfuse
from taco_py.planner.ir.program import Program


@dataclass(frozen=True, slots=True)
class FusedValues:
    """Assignments over fused tensors, and the steps around their kernel.

    before  the steps that show operands with fewer modes
    after   the steps that show results with all of their modes
    facts   of the tensors that have fewer modes
    """

    values: Mapping[str, Assignment]
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    facts: Mapping[str, Operand]


def fuse_values(program: Program, values: Mapping[str, Assignment], slab: Set[str]) -> FusedValues:
    """Fuse the modes of values that are stored one behind the other, of slabs or inside of them.

    slab  the indices of slabs, which are fused with each other alone
    """
    stored = _stored(program, values)
    runs = tuple(run for value in values.values() for run in runs_of(value.value))
    chains = tuple(
        part
        for chain in chains_of(stored, runs, {index for index, _ in program.static})
        for part in _parts(chain, slab)
        if len(part) > 1
    )
    if not chains:
        return FusedValues(values, (), (), {})
    indices = (index for value in values.values() for index in all_indices(value))
    modes = FusedModes(stored, chains, Names(dict.fromkeys(indices)))
    operands, names = dict(program.facts), Names(program.facts)
    fused: dict[str, Assignment] = {}
    after: list[Step] = []
    facts: dict[str, Operand] = {}
    for name, value in values.items():
        body = modes.value(value.value, operands, names)
        target = modes.access(value.target, name)
        if len(target.indices) < len(value.target.indices):
            raw = names.fresh(f"{name}_fused")
            target = replace(target, tensor=raw)
            facts[raw] = _with_modes(program.facts[name], value.target, target, chains)
            after.append(Unfuse(name, raw, _sizes(value)))
        fused[target.tensor] = Assignment(target, body)
    before = tuple(modes.steps.values())
    facts.update((step.target, operands[step.target]) for step in before)
    return FusedValues(fused, before, tuple(after), facts)


def _stored(program: Program, values: Mapping[str, Assignment]) -> dict[Access, Stored]:
    """Return the arrays of dense values."""
    arrays: dict[Access, Stored] = {}
    for name, value in values.items():
        order = program.facts[name].type.format.mode_order
        in_order = order == tuple(range(len(order)))
        arrays[value.target] = Stored(value.target.indices, (in_order,) * max(0, len(order) - 1))
        for access in accesses(value.value):
            operand = program.facts[access.tensor]
            stored = operand.type.format.stored(access.indices)
            arrays[access] = Stored(stored, operand.contiguous)
    return arrays


def _parts(chain: Chain, slab: Set[str]) -> Iterator[Chain]:
    """Yield the parts of a chain that are all of slabs, or all inside of them."""
    part: list[str] = []
    for index in chain:
        if part and (part[-1] in slab) != (index in slab):
            yield tuple(part)
            part = []
        part.append(index)
    yield tuple(part)


def _with_modes(
    facts: Operand, target: Access, fused: Access, chains: tuple[Chain, ...]
) -> Operand:
    """Return the facts of a result with fewer modes."""
    sizes = dict(zip(target.indices, facts.shape, strict=True))
    begins = {chain[0]: chain for chain in chains}
    inside = {index for chain in chains for index in chain[1:]}
    shape = tuple(
        prod(sizes[part] for part in begins.get(index, (index,)))
        for index in target.indices
        if index not in inside
    )
    type = replace(facts.type, format=dense(len(fused.indices)))
    return Operand(type, shape, facts.nnz)


def _sizes(value: Assignment) -> tuple[tuple[str, int], ...]:
    """Return for each mode of a target a tensor and a mode of it that has its size."""
    places = {
        index: (access.tensor, mode)
        for access in accesses(value.value)
        for mode, index in enumerate(access.indices)
    }
    return tuple(places[index] for index in value.target.indices)
