"""Compute with the elements of a product where these are made, in place of storing them.

    P[i,j] = sum(k, X[i,k] * W[k,j])    by loops(i,k,j), make(tiles)
    H[i,j] = max(P[i,j] + b[j], 0)    by loops(i,j)
    s[j] = sum(i, H[i,j])    by loops(i,j)
    → s[j] = sum(i, max(sum(k, X[i,k] * W[k,j]) + b[j], 0))    by loops(i,k,j), make(tiles)

H, which is wanted too, is stored besides. All kernels that read elements of P, or of what is made
of these one by one, become its epilogue: a tree of visitors that each tile of P runs through while
it is in the first cache. P is written and read nowhere, unless something else reads
it. Sums over the rows of P are made for each block of rows and added up in their order, so that no
number of threads changes them. (Chen et al. 2024, EVT, section 5.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from taco_py.compiler.ways.ways import way_of
from taco_py.planner.context import Context
from taco_py.planner.epilogue_group import Group, group_of
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program
from taco_py.planner.price import keeping
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
)


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Join a product with the kernels that read its elements, where these can be its epilogue."""
    product = next((kernel_ for kernel_ in program.kernels if kernel_.target == site.target), None)
    group = None if product is None else group_of(program, product)
    if product is None or group is None:
        return None
    machine = context.goal.machine
    way = way_of(product.schedule.make)
    assert way.epilogue is not None  # of such sites alone
    rows, columns, depth = _extents(program, product)
    if not way.reuses and group.is_one_value:
        return None  # for `fuse_temporary`
    if way.reuses and depth > machine.dense.epilogue_terms:
        return Refusal(
            f"each of its elements is a sum of {depth:.0f} products, which are added up in several "
            "turns"
        )
    if way.reuses and rows < machine.dense.epilogue_rows:
        return Refusal(f"it has {rows:.0f} rows, too few to be shared among threads in blocks")
    problem = group.problem(program)
    make = way.epilogue(problem, product.schedule)
    if make is None:
        return Refusal("its readers are no epilogue: they read or write what is not dense")
    elements = rows * columns

    def rewrite() -> Rewrite:
        fused = group.join(program)
        kernel = fused.kernel(group.target)
        schedule = kernel.schedule.with_way(make)
        return Rewrite(fused.with_kernel(replace(kernel, schedule=schedule)), _explain(group))

    between = [name for name in group.values if name != group.target]
    before = sum(keeping(program.facts[name], machine) for name in between)
    stored = sum(keeping(program.facts[name], machine) for name in group.stored[:-1]) / 2
    near = machine.copies.near_element_steps * elements * len(group.members)
    return Candidate(before, stored + near, rewrite)


def _extents(program: Program, product: KernelStep) -> tuple[float, float, float]:
    """Return the rows, columns and depth of a product."""
    sizes = {
        index: program.facts[product.source(name)].shape[mode]
        for index, name, mode in product.sizes
    }
    rows, columns = product.problem.assignment.target.indices
    depth = prod(size for index, size in sizes.items() if index not in (rows, columns))
    return float(sizes[rows]), float(sizes[columns]), float(depth)


def _explain(group: Group) -> str:
    """Describe the fused kernels, for explain()."""
    targets = ", ".join(member.target for member in group.members)
    stored = "stored besides" if group.product.target in group.stored else "stored nowhere"
    return f"{stored}: its elements become {targets} where they are made"


def products(program: Program) -> Iterator[Site]:
    """Yield the kernels of matrix products whose method supports epilogues."""
    return iter([Site(kernel.target) for kernel in program.kernels if _is_product(kernel)])


def _is_product(kernel: KernelStep) -> bool:
    problem = kernel.problem
    plain = not (problem.side or kernel.schedule.on_loops.commands or problem.vast)
    order = len(problem.assignment.target.indices)
    return plain and order == 2 and way_of(kernel.schedule.make).epilogue is not None


RULE = Rule(
    "fuse_epilogue", Phase.KERNEL, apply, products, Numbers.ROUNDS, Gain.DENSE, traits=Trait.FUSES
)
