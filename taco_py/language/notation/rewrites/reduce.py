"""Implicit sums of the notation, made explicit.

The rule of TACO (Kjolstad et al. 2017, section 3), extended to sums inside products: an index that
is not on the left-hand side and that no explicit sum binds is summed within each additive term that
uses it, over the smallest sub-expression that holds all of its uses there.

    A[i,j]*x[j] + B[i,j]*z[j] + b[i]  ->  sum(j, A[i,j]*x[j]) + sum(j, B[i,j]*z[j]) + b[i]
    (A[i,j] + B[i,j]) * x[j]          ->  sum(j, (A[i,j] + B[i,j]) * x[j])
    B[i,k] * (C[k,j] * x[j])          ->  sum(k, B[i,k] * sum(j, C[k,j] * x[j]))
    b[i] / (A[i,j] * x[j])            ->  b[i] / sum(j, A[i,j] * x[j])

Powers and functions close the sums of products inside their arguments. An index is summed in there
where each term of the arguments that has it uses it in several factors, and around the function
otherwise. Powers become products.

    (y[i] - X[i,a]*v[a])**2           ->  (y[i] - sum(a, X[i,a]*v[a])) * (the same)
    (x[i] - m)**2                     ->  sum(i, (x[i] - m) * (x[i] - m))
    max(A[i,j]*X[j,k] + b[k], 0)      ->  max(sum(j, A[i,j]*X[j,k]) + b[k], 0)
    exp(A[i,j])                       ->  sum(j, exp(A[i,j]))

An assignment by another operator than + reduces by that: indices that are not on the left-hand side
are reduced around the whole right-hand side.

    d[j] min= e[i] + W[i,j]           ->  d[j] min= min(i, e[i] + W[i,j])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from taco_py.language.notation.checks import check_bindings, free_of_parts, unique
from taco_py.language.notation.functions.function_table import nonzero
from taco_py.language.notation.long_chains import product
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, NONZERO, SUB
from taco_py.language.notation.tree import children, is_additive, map_children, walk


def insert_reductions(assignment: Assignment) -> Assignment:
    """Insert a `Reduce` for each index that the rule above sums.

    Of several indices summed at one place the first used is the outermost. The result names every
    sum, so that applying the function again returns it unchanged.

    Raises:
        NotationError: a sum rebinds an index of the left-hand side or of a sum around it
        (`check_bindings`).
    """
    result = with_sums(assignment)
    check_bindings(result)
    return result


def with_sums(assignment: Assignment) -> Assignment:
    """Insert the same sums into an assignment without explicit sums, which cannot be wrong."""
    free = free_inside_functions(assignment.value)
    outer: tuple[str, ...] = ()
    if assignment.operator is not None and not assignment.operator.additive:
        target_indices = assignment.target.indices
        outer = tuple(i for i in free[id(assignment.value)] if i not in target_indices)
    value = _reduced(assignment.value, (*assignment.target.indices, *outer), free)
    for index in reversed(outer):
        assert assignment.operator is not None
        operator = replace(assignment.operator, needs_elements=False)  # the result has one already
        value = Reduce(operator, index, value, assignment.value.span)
    return assignment if value is assignment.value else replace(assignment, value=value)


Free = Mapping[int, tuple[str, ...]]
"""The free indices of each part of an expression, by the part's `id`."""


def _reduced(expr: Expr, kept_indices: Collection[str], free: Free) -> Expr:
    """Sum `expr` over all of its free indices except those in `kept_indices`."""
    if is_additive(expr):
        return map_children(expr, lambda term: _reduced(term, kept_indices, free))
    if isinstance(expr, Call) and expr.operator.closes:
        return _closed(expr, kept_indices, free)
    summed = summed_here(expr, kept_indices, free)
    inside = (
        {*kept_indices, *summed, expr.index}
        if isinstance(expr, Reduce)
        else {*kept_indices, *summed}
    )
    result = map_children(expr, lambda child: _reduced(child, inside, free))
    if isinstance(result, Reduce) and result.operator.reduces_truths:
        inner = result.body  # a sum of truths is a number
        if isinstance(inner, Reduce) and not inner.operator.reduces_truths:
            result = replace(result, body=nonzero(inner))
    for index in reversed(summed):
        result = Reduce(ADD, index, result, expr.span)
    return result


def free_inside_functions(expr: Expr) -> Free:
    """Find the free indices of each part; indices closed by a function are free inside it."""
    free = free_of_parts(expr)
    for node, _ in reversed(list(walk(expr))):
        below = unique(index for child in children(node) for index in free[id(child)])
        if isinstance(node, Call):
            closed = {i for i in below if node.operator.closes and _closes(node, i, free)}
            free[id(node)] = tuple(i for i in below if i not in closed)
        elif isinstance(node, Reduce):
            free[id(node)] = tuple(index for index in below if index != node.index)
    return free


def _closes(expr: Call, index: str, free: Free) -> bool:
    """Tell whether each argument that has an index contracts it."""
    return all(contracts(arg, index, free) for arg in expr.args if index in free[id(arg)])


def contracts(expr: Expr, index: str, free: Free) -> bool:
    """Tell whether each term of an expression that has an index uses it in several factors.

    free  as `free_of_parts` finds them
    """
    users = [child for child in children(expr) if index in free[id(child)]]
    match expr:
        case Access() | Literal():
            return False
        case Call() if expr.operator.closes:
            return False
        case Call() if not expr.operator.additive and len(users) > 1:
            return True
        case _:
            return bool(users) and all(contracts(child, index, free) for child in users)


def _closed(expr: Call, kept_indices: Collection[str], free: Free) -> Expr:
    """Put the sums that a function closes inside its arguments, the others around it."""
    summed = tuple(index for index in free[id(expr)] if index not in kept_indices)
    result = map_children(expr, lambda arg: _reduced(arg, {*kept_indices, *summed}, free))
    if isinstance(result, Call) and result.operator.exponent is not None:
        result = replace(_product(result.args[0], result.operator.exponent), span=expr.span)
    if isinstance(result, Call) and result.operator.body is not None:
        result = replace(result.operator.body(*result.args), span=expr.span)
    for index in reversed(summed):
        result = Reduce(ADD, index, result, expr.span)
    return result


def written_out(expr: Expr) -> Expr:
    """Replace powers by products, and functions of users by their bodies."""
    expr = map_children(expr, written_out)
    if isinstance(expr, Call) and expr.operator.exponent is not None:
        return replace(_product(expr.args[0], expr.operator.exponent), span=expr.span)
    if isinstance(expr, Call) and expr.operator.body is not None:
        body: Expr = expr.operator.body(*expr.args)
        return replace(body, span=expr.span)
    return expr


def _product(base: Expr, count: int) -> Expr:
    """Multiply a base by itself; a power of 0 is 1 at every element."""
    if count:
        return product([base] * count)
    present = Call(NONZERO, (base,))
    return Call(ADD, (Call(SUB, (present, present)), Literal(1)))


def _bare(expr: Call) -> list[tuple[str, ...]]:
    """Return the indices of operands that stand alone as nonlinear arguments of an operator.

    In b[i] / A[i,j] the quotient is the smallest product that holds j, in b[i] / (A[i,j] * x[j])
    the denominator is.
    """
    return [
        arg.indices
        for arg, linear in zip(expr.args, expr.operator.linear, strict=False)
        if isinstance(arg, Access) and not linear and not expr.operator.additive
    ]


def summed_here(expr: Expr, kept_indices: Collection[str], free: Free) -> tuple[str, ...]:
    """Return the indices to sum here, because no single part of `expr` holds all uses."""
    left = tuple(index for index in free[id(expr)] if index not in kept_indices)
    match expr:
        case Reduce():
            return ()
        case Call():
            uses = Counter(index for arg in expr.args for index in free[id(arg)])
            return tuple(
                index
                for index in left
                if uses[index] > 1 or any(index in indices for indices in _bare(expr))
            )
        case _:
            return left
