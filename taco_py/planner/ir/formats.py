"""Formats that follow from others: of results, of reordered copies, of what is appended to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from taco_py.compiler.iteration.lattice import is_full
from taco_py.compiler.iteration.region import Iterator, Regions
from taco_py.language.formats import COO, LETTERS, Format, dense
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment

DENSE, COMPRESSED = LETTERS["d"], LETTERS["s"]


def compressed_indices(
    assignment: Assignment, levels: Mapping[Access, Mapping[str, Iterator]]
) -> frozenset[str]:
    """Return the indices of the result that every term restricts by a level in `levels`."""
    regions = Regions(levels, frozenset())
    return frozenset(
        index
        for index in assignment.target.indices
        if not is_full(regions.expression(assignment.value, index))
    )


def levels_of(
    assignment: Assignment, formats: Mapping[str, Format], every: bool
) -> dict[Access, dict[str, Iterator]]:
    """Return the iterators of each access.

    every  all levels of sparse operands count, not only their sparse ones
    """
    iterators: dict[Access, dict[str, Iterator]] = {}
    for access in accesses(assignment):
        form = formats[access.tensor]
        iterators[access] = {
            access.indices[mode]: Iterator(access, level)
            for level, mode in enumerate(form.mode_order)
            if is_sparse(form) and (every or not form.levels[level].full)
        }
    return iterators


def default_format(assignment: Assignment, formats: Mapping[str, Format]) -> Format:
    """Return the default format of the result.

    An index is compressed when every term restricts it by a compressed level, else dense. Modes
    are stored in the order in which the sparse operands store their indices, as far as these agree.
    """
    compressed = compressed_indices(assignment, levels_of(assignment, formats, every=False))
    indices = assignment.target.indices
    if not compressed:
        return Format((DENSE,) * len(indices), tuple(range(len(indices))))
    stored = storage_order(assignment, formats)
    levels = tuple(COMPRESSED if i in compressed else DENSE for i in stored)
    return Format(levels, tuple(indices.index(i) for i in stored))


def temporary_format(assignment: Assignment, formats: Mapping[str, Format]) -> Format:
    """Return the format of a temporary: that of a result, with a dense root at most.

    T[i,k] = sum(j, A[i,j] * B[j,k]) of a coordinate list and a CSC matrix is ss, not sd: rows that
    are there have few of all k.
    """
    usual = default_format(assignment, formats)
    levels = {a: sparse_levels(a, formats[a.tensor]) for a in accesses(assignment)}
    restricted = compressed_indices(assignment, levels)
    if not restricted:
        return usual
    target = assignment.target.indices
    root, *rest = storage_order(assignment, formats)
    first = usual.levels[usual.stored(target).index(root)]
    below = (COMPRESSED if index in restricted else DENSE for index in rest)
    return Format((first, *below), tuple(target.index(i) for i in (root, *rest)))


def sparse_levels(access: Access, form: Format) -> dict[str, Iterator]:
    """Return the levels that store coordinates, or have such a level below them."""
    indices = form.stored(access.indices)[: form.depth]
    return {index: Iterator(access, level) for level, index in enumerate(indices)}


def storage_order(assignment: Assignment, formats: Mapping[str, Format]) -> tuple[str, ...]:
    """Return the result's indices in an order that agrees with all sparse operands, else as
    written.

    Indices that no sparse operand stores come last.
    """
    before: dict[str, set[str]] = {}
    for access in accesses(assignment):
        form = formats[access.tensor]
        if not is_sparse(form):
            continue
        for above, below in pairwise(form.stored(access.indices)):
            before.setdefault(below, set()).add(above)
    indices = assignment.target.indices
    bound = {*before, *(i for above in before.values() for i in above)}
    rest = sorted(dict.fromkeys((*indices, *before, *sorted(bound))), key=lambda i: i not in bound)
    order: list[str] = []
    while rest:
        free = [i for i in rest if not before.get(i, set()) & set(rest)]
        if not free:
            return indices
        order.append(free[0])
        rest.remove(free[0])
    return tuple(i for i in order if i in indices)


def appendable(form: Format) -> Format:
    """Return `form` with every level that stores coordinates compressed and free of duplicates.

    A kernel can append to it level by level; what is made is then converted.
    """
    levels = tuple(
        level if level.full else replace(COMPRESSED, ordered=level.ordered) for level in form.levels
    )
    return replace(form, levels=levels)


def with_dense_root(form: Format) -> Format | None:
    """Return `form` with a dense root above its compressed levels; None without a sparse root.

    with_dense_root(DCSR) = with_dense_root(COO(2)) = CSR
    """
    if form.is_coo and form.order == 2:
        return Format((DENSE, COMPRESSED), form.mode_order)
    root, *below = form.levels or (DENSE,)
    if root != COMPRESSED or not below or not below[0].is_list:
        return None
    return replace(form, levels=(DENSE, *below))


def with_chain(form: Format, depth: int) -> Format:
    """Return `form` with a chain of singleton levels from `depth` on."""
    chain = (LETTERS["u"], *(LETTERS["q"],) * len(form.levels[depth + 1 :]))
    return replace(form, levels=form.levels[:depth] + chain)


def all_dense(form: Format) -> Format:
    """Return `form` with dense levels, in the same order of the modes."""
    return replace(form, levels=(DENSE,) * form.order)


def without_modes(form: Format, order: int) -> Format:
    """Return the format of a tensor in `form` after all but `order` modes are removed."""
    return dense(order) if not is_sparse(form) or order == 0 else COO(order)


def reordered(
    form: Format, access: Access, order: Sequence[str], empty: bool, looked_up: int = 1
) -> Format:
    """Return the format of a copy of `access`'s tensor for loops in `order`.

    empty      whether most coordinates of the first loop's mode have no entries
    looked_up  how many levels from the root are dense, where the root is

    A dense root stays dense, and a matrix from a coordinate list gets one unless most rows would be
    empty: CSR is the copy that is made fastest.
    """
    modes = tuple(sorted(range(form.order), key=lambda mode: order.index(access.indices[mode])))
    dense_root = form.levels[0].full or (form.is_coo and form.order == 2 and not empty)
    dense = looked_up if dense_root and form.order > 1 else 0
    return Format((DENSE,) * dense + (COMPRESSED,) * (form.order - dense), modes)


def unordered_last(form: Format) -> Format:
    """Return `form` with an unordered last level."""
    *_, last = form.levels or (DENSE,)
    if not last.is_list:
        return form
    return replace(form, levels=(*form.levels[:-1], replace(last, ordered=False)))
