"""The visitor of a problem's product, which `polyhedral` calls for each tile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.build import const
from codegen.ir import Array, Storage, Var
from codegen.ir import Expr as Code
from taco_py.compiler.epilogue.build_tree import build_tree
from taco_py.compiler.epilogue.emit_tree import Emission
from taco_py.compiler.epilogue.of_problem import MainLoop
from taco_py.compiler.epilogue.tree_text import tree_lines
from taco_py.compiler.epilogue.value_graph import accesses_outside, is_summed
from taco_py.compiler.epilogue.visitors import Visitor as Tree
from taco_py.compiler.ways.arrays import Arguments, data_of
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from polyhedral.products.visited.tile_visitor import Part, Visitor


def tree_of(loop: MainLoop) -> Tree:
    """Return the visitor tree of a problem. Raises ValueError where values are not elementwise."""
    return build_tree(loop.product, loop.outputs)


def tree_text(loop: MainLoop) -> tuple[str, ...]:
    """Return the lines of explain() that show the epilogue."""
    first, *more = tree_lines(tree_of(loop))
    return (f"  epilogue: {first}", *(f"            {line}" for line in more))


def visitor_of(
    problem: Problem, loop: MainLoop, arguments: Arguments, parts_are: Storage = Storage.OUTPUT
) -> Visitor:
    """Return the visitor of a problem over the kernel's arguments.

    parts_are  whether code for a tile gets a pointer to the partial sums of blocks, or the arrays
    """
    from polyhedral.products.visited.tile_visitor import Visitor

    product = loop.product
    read = [a for o in loop.outputs for a in accesses_outside(o.value, product.value)]
    targets = [output.target for output in loop.outputs]
    data = {a: data_of(problem, a, arguments.tensors) for a in dict.fromkeys((*targets, *read))}
    sums = [target for target in targets if is_summed_target(loop, target)]
    parts = {
        target.tensor: _part(
            target, arguments, data[target].strides.get(product.columns), parts_are
        )
        for target in sums
        if product.rows not in target.indices
    }
    row_sums = tuple(
        (data[target].array, data[target].strides[product.rows])
        for target in sums
        if product.rows in target.indices
    )
    emission = Emission(
        tree_of(loop),
        loop.problem.result.dtype,
        data,
        {name: part.array for name, part in parts.items()},
        product.rows,
        product.columns,
    )
    used = {access.tensor for access in (*targets, *read)}
    tensors = [arguments.tensors[name] for name in arguments.tensors if name in used]
    arrays = tuple(tensor.array for tensor in tensors)
    scalars = tuple(s for tensor in tensors for s in tensor.strides if isinstance(s, Var))
    return Visitor(
        arrays, scalars, tuple(parts.values()), row_sums, emission.visit, emission.foresee
    )


def is_summed_target(loop: MainLoop, target: Access) -> bool:
    """Tell whether a target holds sums over elements of the product."""
    return any(o.target == target and is_summed(loop.product, o) for o in loop.outputs)


def _part(target: Access, arguments: Arguments, stride: Code | None, parts_are: Storage) -> Part:
    """Return the partial sums of the blocks of rows."""
    from polyhedral.products.visited.tile_visitor import Part

    total = arguments.tensors[target.tensor].array
    array = Array(arguments.names.fresh(f"{target.tensor}_parts"), total.element, parts_are)
    return Part(array, stride is not None, total, const(0) if stride is None else stride)
