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
    """Inline the value of a temporary at its only access."""
    assignment = program.define(site.target).assignment
    use = _only_use(program, site.target)
    if use is None or has_reductions(assignment.value):
        return None
    reader, access = use
    refused = _refusal(program, assignment, reader.assignment, access)
    if refused:
        return Refusal(refused)
    names = dict(zip(assignment.target.indices, access.indices, strict=True))
    value = exchange(reader.assignment.value, access, rename(assignment, indices=names).value)
    if max(depth for _, depth in walk(value)) > MAX_DEPTH // 2:
        return None
    steps = tuple(step for step in program.steps if step.target != site.target)
    facts = {name: fact for name, fact in program.facts.items() if name != site.target}
    inlined = replace(program, steps=steps, facts=facts)
    inlined = inlined.with_assignment(replace(reader.assignment, value=value))
    reason = f"computed where {reader.target} reads it, once for each element"
    return Rewrite(inlined, reason)


def _only_use(program: Program, target: str) -> tuple[Define, Access] | None:
    """Return the assignment and the access that read a tensor, if they are the only ones."""
    uses = [
        (reader, access)
        for reader in program.readers(target)
        for access in accesses(reader.assignment)
        if access.tensor == target
    ]
    return uses[0] if len(uses) == 1 else None


def _refusal(program: Program, assignment: Assignment, reader: Assignment, access: Access) -> str:
    """Return the precondition that fails, in words; "" where none does."""
    name = assignment.target.tensor
    if len({*access.indices}) < len(access.indices) or not accesses(assignment.value):
        return f"{to_text(access)} has not each element of {name} once"
    if {*all_indices(reader)} != {*access.indices}:
        return f"its reader runs over other indices than {to_text(assignment.target)} has"
    tensors = (name, reader.target.tensor, *(a.tensor for a in accesses(assignment)))
    types = {
        program.dtypes[tensor_] for tensor_ in (*tensors, *(a.tensor for a in accesses(reader)))
    }
    types.add(expression_dtype(assignment.value, program.dtypes))
    if len(types) > 1:
        return f"{name} and its reader are not of one type of elements"
    if not _stores_its_value(program, assignment):
        return f"{name} stores zeros where its value has none"
    return ""


def _stores_its_value(program: Program, assignment: Assignment) -> bool:
    """Tell whether a tensor stores every element of its value, or only the present ones."""
    form = program.facts[assignment.target.tensor].type.format
    if is_full(form):
        return all(program.is_full(access.tensor) for access in accesses(assignment.value))
    return not form.levels[-1].full


RULE = Rule("inline_statement", Phase.FORMS, apply, sites, Numbers.ROUNDS)
