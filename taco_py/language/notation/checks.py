"""Checks that every assignment has to pass, and queries that every stage makes of one.

The checks read names and indices alone; sizes, dtypes and formats are checked where they are known.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from taco_py.language.diagnostics.errors import (
    DimensionError,
    InternalError,
    NotationError,
    OperandError,
)
from taco_py.language.notation.functions.averages import spelled
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.tree import children, map_children, walk

# Passes over an expression recurse, as do the equality and hash of its nodes, at a few frames a
# level; Python's default limit is 1000 frames, and the caller has already used some.
MAX_DEPTH = 100


# ---------------------------------------------------------------- questions


def accesses(node: Expr | Assignment) -> tuple[Access, ...]:
    """Return every access of an expression, or of the right-hand side of an assignment, left to
    right.

    The accesses in the subscripts of an access follow it, those of the left-hand side come last.
    Numbers and sizes of indices are left out.
    """
    expr = node.value if isinstance(node, Assignment) else node
    result: list[Access] = []
    pending = [expr]
    if isinstance(node, Assignment) and node.target.subscripts:
        pending[:0] = reversed(_gathered(node.target))
    while pending:
        part = pending.pop()
        match part:
            case Call():
                pending.extend(part.args[::-1])
            case Access():
                if not part.is_number:
                    result.append(part)
                if part.subscripts:
                    pending.extend(reversed(_gathered(part)))
            case Reduce():
                pending.append(part.body)
    return tuple(result)


def _gathered(access: Access) -> tuple[Access, ...]:
    """Return the accesses in the subscripts of another access."""
    return tuple(inner for mode in access.subscripts for inner, _ in mode.gathered)


def has_subscripts(assignment: Assignment) -> bool:
    """Tell whether a subscript of some access is more than an index."""
    nodes = (node for node, _ in walk(assignment.value))
    right = any(isinstance(node, Access) and node.subscripts for node in nodes)
    return bool(assignment.target.subscripts) or right


def with_linearity(expr: Expr, linear: bool = True) -> Iterator[tuple[Access, bool]]:
    """Yield every access, left to right, with whether the expression is additive in it.

    Duplicates of an operand with a single, additive access may be summed in the result instead.
    """
    if isinstance(expr, Access):
        yield expr, linear
    if isinstance(expr, Reduce):
        yield from with_linearity(expr.body, linear and expr.operator.additive)
    if isinstance(expr, Call):
        operator = expr.operator
        for place, arg in enumerate(expr.args):
            keeps = operator.additive or operator.linear[place]
            yield from with_linearity(arg, linear and keeps)


def operand_names(assignment: Assignment) -> tuple[str, ...]:
    """Return the operands, without duplicates, in the order of their first use."""
    return unique(access.tensor for access in accesses(assignment))


def free_indices(expr: Expr) -> tuple[str, ...]:
    """Return the indices that `expr` uses but no `Reduce` inside it binds, by first use.

    free_indices(sum(j, A[i,j] * x[j])) = ("i",)
    """
    if isinstance(expr, Access):
        return unique(expr.indices)
    below = unique(index for child in children(expr) for index in free_indices(child))
    return tuple(i for i in below if i != expr.index) if isinstance(expr, Reduce) else below


def free_of_parts(expr: Expr) -> dict[int, tuple[str, ...]]:
    """Return the free indices of each part of an expression by its `id`, in one pass."""
    free: dict[int, tuple[str, ...]] = {}
    for node, _ in reversed(list(walk(expr))):
        if isinstance(node, Access):
            free[id(node)] = unique(node.indices)
        else:
            below = unique(chain.from_iterable(free[id(child)] for child in children(node)))
            bound = node.index if isinstance(node, Reduce) else None
            free[id(node)] = below if bound is None else tuple(i for i in below if i != bound)
    return free


def all_indices(assignment: Assignment) -> tuple[str, ...]:
    """Return every index: the target's, then the others in the order of their first use."""
    right = (index for access in accesses(assignment) for index in access.indices)
    return unique((*assignment.target.indices, *right))


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Remove duplicates from names; keep the first of each."""
    return tuple(dict.fromkeys(names))


# ---------------------------------------------------------------- renaming


def rename(
    assignment: Assignment,
    tensors: Mapping[str, str] | None = None,
    indices: Mapping[str, str] | None = None,
) -> Assignment:
    """Rename tensors and indices of an assignment simultaneously; other names stay.

    rename(y[i] = A[i,j] * x[j], tensors={"x": "z"}, indices={"i": "j", "j": "i"}) = (y[j] = A[j,i]
    * z[i])

    Two tensors may be given one name (both are the same array); two indices may not.

    Raises:
        InternalError: two indices would become one, which would change what is computed.
    """
    tensor_names, index_names = tensors or {}, indices or {}
    old = all_indices(assignment)
    if len({index_names.get(index, index) for index in old}) < len(old):
        raise InternalError(f"Expected new names that keep {old} apart, found {dict(index_names)}")

    def renamed_access(access: Access) -> Access:
        return replace(
            access,
            tensor=tensor_names.get(access.tensor, access.tensor),
            indices=tuple(index_names.get(index, index) for index in access.indices),
        )

    def renamed(expr: Expr) -> Expr:
        below = map_children(expr, renamed)
        if isinstance(below, Access):
            return renamed_access(below)
        if isinstance(below, Reduce):
            return replace(below, index=index_names.get(below.index, below.index))
        return below

    target = renamed_access(assignment.target)
    return replace(assignment, target=target, value=renamed(assignment.value))


# ---------------------------------------------------------------- checks


def check_assignment(assignment: Assignment) -> None:
    """Check an assignment, before or after `insert_reductions`.

    Raises:
        NotationError, OperandError: with the place and the remedy.
    """
    check_depth(assignment.value)
    check_target(assignment)
    check_orders(assignment)
    check_bindings(assignment)
    check_output_indices(assignment)


def check_depth(expr: Expr) -> None:
    """Check that an expression is not nested deeper than `MAX_DEPTH`.

    Raises:
        NotationError: it is.
    """
    for node, depth in walk(expr):
        if depth > MAX_DEPTH:
            raise NotationError(
                f"Expected an expression nested at most {MAX_DEPTH} deep, found a deeper one",
                node.span,
                hint="compute a part of it first and use the result as an operand",
            )


def check_target(assignment: Assignment) -> None:
    """Check that the target's indices are distinct and its tensor is not an operand.

    Raises:
        NotationError: `y[i,i] = …` or `y[i] = y[i] + …`.
    """
    target = assignment.target
    for place, index in enumerate(target.indices):
        if index in target.indices[:place]:
            raise NotationError(
                f"Expected each index once on the left-hand side, found {index} twice in "
                f"{target.tensor}[{','.join(target.indices)}]",
                target.span,
                hint="a diagonal can be read, as in d[i] = A[i,i], but not assigned; assign a "
                "vector and build the matrix from it",
            )
    for access in accesses(assignment):
        if access.tensor == target.tensor:
            raise NotationError(
                f"Expected operands other than the result, found {access.tensor} on both sides",
                access.span,
                hint=f"write {target.tensor}[…] += … to add to it, or give the result another name",
            )


def check_orders(assignment: Assignment) -> None:
    """Check that each tensor has the same number of indices wherever it is used.

    Raises:
        OperandError: `A[i,j] + A[i]`.
    """
    orders: dict[str, int] = {}
    for access in accesses(assignment):
        count = len(access.subscripts or access.indices)
        order = orders.setdefault(access.tensor, count)
        if order != count:
            raise OperandError(
                f"Expected {access.tensor} with {_count(order)}, as where it is first used, found "
                f"it with {count}",
                access.span,
                hint="give two tensors two names",
            )


def check_bindings(assignment: Assignment) -> None:
    """Check that each sum binds an index of its body that is not bound outside.

    A name may be summed in two places, `sum(j, A[i,j]) + sum(j, B[i,j])`; it is one index with one
    size. A sum inside another over the same name would hide it, and is refused.

    Raises:
        NotationError: `y[i] = sum(i, …)`, `sum(j, … sum(j, …))`, `sum(j, b[i])`.
    """
    free = free_of_parts(assignment.value)
    bound_outside: dict[int, frozenset[str]] = {id(assignment.value): frozenset()}
    unused: Reduce | None = None
    for node, _ in walk(assignment.value):
        bound = bound_outside[id(node)]
        if isinstance(node, Reduce):
            _check_name(node, assignment.target, bound)
            if node.index not in free[id(node.body)]:
                unused = node
            bound |= {node.index}
        bound_outside.update((id(child), bound) for child in children(node))
    if unused is not None:
        raise _unused(unused)


def _check_name(expr: Reduce, target: Access, bound: Container[str]) -> None:
    index = expr.index
    if index in target.indices:
        raise NotationError(
            f"Expected a sum over an index that is not on the left-hand side, found {index}, an "
            f"index of {target.tensor}",
            expr.span,
            hint=f"rename the summed index, or remove {index} from the left-hand side",
        )
    if index in bound:
        raise NotationError(
            f"Expected a sum over an index of its own, found {index} summed inside a sum over "
            f"{index}",
            expr.span,
            hint=f"rename one of the two, for instance the inner one to {index}2",
        )


def _unused(expr: Reduce) -> NotationError:
    index = expr.index
    return NotationError(
        f"Expected a sum over an index of what is summed, found {index}, which does not occur "
        "there",
        expr.span,
        hint=f"write the tensors with their indices, as in sum({index}, x[{index}]), or remove "
        "the sum",
    )


def refuse_subscripts(assignment: Assignment) -> None:
    """Raise NotationError where a subscript is more than an index, or an index is a number.

    Numbers of indices also occur inside argmax and mean.
    """
    for node, _ in walk(assignment.value):
        if isinstance(node, Access) and node.is_number:
            text = "" if node.span is None else node.span.source.text[node.span.start :]
            raise NotationError(
                "Expected no numbers of indices here, found "
                f"{text.partition('(')[0].strip() or node.tensor}, which needs one",
                node.span,
                "tp.evaluate, tp.explain, tp.compile and tp.evaluate_dense take it",
            )
    for access in (assignment.target, *accesses(assignment)):
        if access.subscripts:
            raise NotationError(
                f"Expected indices alone as subscripts here, found more in {access.tensor}",
                access.span,
                "tp.evaluate, tp.explain, tp.compile and tp.evaluate_dense take arithmetic on "
                "indices and gathers",
            )


def check_output_indices(assignment: Assignment) -> None:
    """Check that each index of the target has a size: from an operand or from a gather of the
    target.

    Raises:
        NotationError: `y[i,j] = A[i,k]`.
    """
    target, present = assignment.target, free_indices(assignment.value)
    present += tuple(index for access in _gathered(target) for index in access.indices)
    for index in target.indices:
        if index not in present:
            available = f"only {', '.join(present)}" if present else "no index"
            raise NotationError(
                f"Expected index {index} of {target.tensor} in an operand, found {available} on "
                "the right-hand side",
                target.span,
                hint=f"remove {index} from the left-hand side, or use it on an operand; its size "
                "comes from there",
            )


def need_elements(assignment: Assignment) -> Iterator[Reduce]:
    """Yield the reductions without a value over no elements, as the minimum."""
    for node, _ in walk(assignment.value):
        if not isinstance(node, Reduce) or node.operator.of_none is not None:
            continue
        if node.operator.needs_elements:
            yield node


def check_elements(assignment: Assignment, sizes: Mapping[str, int]) -> None:
    """Check that each reduction that needs elements has some.

    Raises:
        DimensionError: `m[i] = max(j, A[i,j])` where A has rows but no columns.
    """
    for node in need_elements(assignment):
        if sizes[node.index] == 0 and all(sizes[index] for index in free_indices(node)):
            name, index = spelled(node), node.index.rstrip("_")
            hint = f"leave out what has no {index}"
            if name == str(node.operator):
                hint += f", or begin from a number, as in y[…] {name}= …"
            raise DimensionError(
                f"Expected elements for {name} over {index}, found size 0, and no elements have "
                f"{'an' if name.startswith('a') else 'a'} {name}",
                node.span,
                hint,
            )


def _count(order: int) -> str:
    return "1 index" if order == 1 else f"{order or 'no'} indices"
