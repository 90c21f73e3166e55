"""Put an element-wise temporary of the text in the place where it is read, once, over its indices.

    e[i,j] = S[i,j] * 2;  z[i] = sum(j, e[i,j])
    → z[i] = sum(j, S[i,j] * 2)

Each element of e is computed once as before, and neither stored nor read. All tensors have one type
of elements, in which both assignments compute; e stores what its value has, and no zeros besides.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import MAX_DEPTH, accesses, all_indices, rename
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import exchange, has_reductions, walk
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Define, Program
from taco_py.planner.rules.base import Numbers, Outcome, Phase, Refusal, Rewrite, Rule, Site
from taco_py.planner.rules.base import temporaries as sites


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Put the value of a temporary in the place of the one access to it."""
    own = program.define(site.target).assignment
    found = _only_use(program, site.target)
    if found is None or has_reductions(own.value):
        return None
    reader, access = found
    refused = _why_not(program, own, reader.assignment, access)
    if refused:
        return Refusal(refused)
    names = dict(zip(own.target.indices, access.indices, strict=True))
    value = exchange(reader.assignment.value, access, rename(own, indices=names).value)
    if max(depth for _, depth in walk(value)) > MAX_DEPTH // 2:
        return None
    steps = tuple(step for step in program.steps if step.target != site.target)
    facts = {name: each for name, each in program.facts.items() if name != site.target}
    changed = replace(program, steps=steps, facts=facts)
    changed = changed.with_assignment(replace(reader.assignment, value=value))
    why = f"computed where {reader.target} reads it, once for each element"
    return Rewrite(changed, why)


def _only_use(program: Program, target: str) -> tuple[Define, Access] | None:
    """Return the assignment that reads a tensor and the access, where there is one alone."""
    found = [
        (reader, access)
        for reader in program.readers(target)
        for access in accesses(reader.assignment)
        if access.tensor == target
    ]
    return found[0] if len(found) == 1 else None


def _why_not(program: Program, own: Assignment, reader: Assignment, access: Access) -> str:
    """Return the precondition that fails, in words; "" where none does."""
    name = own.target.tensor
    if len({*access.indices}) < len(access.indices) or not accesses(own.value):
        return f"{to_text(access)} has not each element of {name} once"
    if {*all_indices(reader)} != {*access.indices}:
        return f"its reader runs over other indices than {to_text(own.target)} has"
    tensors = (name, reader.target.tensor, *(a.tensor for a in accesses(own)))
    types = {program.dtypes[each] for each in (*tensors, *(a.tensor for a in accesses(reader)))}
    types.add(expression_dtype(own.value, program.dtypes))
    if len(types) > 1:
        return f"{name} and its reader are not of one type of elements"
    if not _stores_its_value(program, own):
        return f"{name} stores zeros where its value has none"
    return ""


def _stores_its_value(program: Program, own: Assignment) -> bool:
    """Tell whether a tensor stores all elements of what is everywhere, or those alone that there
    are."""
    form = program.facts[own.target.tensor].type.format
    if is_full(form):
        return all(program.is_full(access.tensor) for access in accesses(own.value))
    return not form.levels[-1].full


RULE = Rule("inline_statement", Phase.FORMS, apply, sites, Numbers.ROUNDS)
