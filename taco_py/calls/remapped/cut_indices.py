"""An assignment over tensors in blocks → the same over the modes that these store.

    y[i] = sum(j, A[i,j] * x[j])                          A in BSR(3,2)
    →  y[i0,i1] = sum(j0, sum(j1, A[i0,j0,i1,j1] * x[j0,j1]))

An index is cut where an operand stores it as a quotient and a remainder: its block is i0, and i1
where in the block. Other operands that have the index are read in blocks too: a dense one is a
view, of a sparse one a dense level is two. What cannot be is read in a plain format, with the
reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from codegen.names import Names
from codegen.records import dataclass
from taco_py.data.convert.remap import plain_format
from taco_py.language.fill import Fill
from taco_py.language.formats import Format, RemappedFormat
from taco_py.language.formats.stored_modes import StoredMode
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses, all_indices, with_linearity
from taco_py.language.notation.dtypes import DType, sum_dtype
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.operators import ADD
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import (
    children,
    is_additive,
    is_reduction_by,
    is_sum,
    map_accesses,
    map_children,
)

AnyFormat = Format | RemappedFormat
LONGEST_STATIC = 16
"""The longest side of a block that is a constant of kernels."""


@dataclass(frozen=True, slots=True)
class Part:
    """An operand of the assignment over stored modes.

    name    of it there
    access  of the operand that it is made of, as the text has it
    cuts    for each mode of that the size of its blocks, 0 where it is read as it is
    form    the format of that operand, remapped where its stored arrays are read
    """

    name: str
    access: Access
    cuts: tuple[int, ...]
    form: AnyFormat


@dataclass(frozen=True, slots=True, eq=False)
class CutAssignment:
    """An assignment over stored modes, its operands, and what is read in plain formats.

    target  the cuts of the modes of the result
    sizes   of the indices that blocks are small enough for to be constants
    plain   for each operand that is read in a plain format, the reason
    """

    source: Assignment
    assignment: Assignment
    parts: tuple[Part, ...]
    target: tuple[int, ...]
    halves: Mapping[str, tuple[str, str]]
    cuts: Mapping[str, int]
    plain: Mapping[str, str]

    @property
    def numbers(self) -> bool:
        """Tell whether loops run over the numbers of entries of an operand."""
        return any(isinstance(p.form, RemappedFormat) and p.form.slots for p in self.parts)

    @property
    def static(self) -> tuple[tuple[str, int], ...]:
        """Return the sizes of blocks that are constants of kernels."""
        sizes = ((self.halves[index][1], size) for index, size in self.cuts.items())
        return tuple(sorted((name, size) for name, size in sizes if size <= LONGEST_STATIC))


def cut_assignment(
    assignment: Assignment,
    forms: Mapping[str, AnyFormat],
    dtypes: Mapping[str, DType],
    fills: Mapping[str, Fill],
) -> tuple[CutAssignment | None, dict[str, str]]:
    """Find the assignment over stored modes; None where no operand is read in blocks.

    forms   of the operands, the one that is added to among them
    dtypes  of those that are remapped, at least
    fills   of those with a fill value other than 0, which padding has too: they are not in blocks

    Returns with it the reasons for which operands are read in plain formats.
    """
    reads = _all_reads(assignment, forms)
    plain: dict[str, str] = {}
    for name, form in forms.items():
        if isinstance(form, RemappedFormat):
            reason = f"its fill value is {fills[name]}" if fills.get(name) else ""
            reason = reason or _unwalkable(name, form, assignment, forms)
            if not reason and form.slots and sum_dtype(dtypes[name]) != dtypes[name]:
                reason = _widened(name, assignment.value, dtypes[name])
            plain.update({name: reason} if reason else {})
    accumulator = assignment.target.tensor
    if assignment.operator is not None and isinstance(forms.get(accumulator), RemappedFormat):
        plain[accumulator] = "a value is added to it"
    while True:
        cuts, refusal = _cuts(reads, forms, plain, fills)
        if refusal is None:
            break
        plain.update(refusal)
    if not any(True for _ in _blocked(reads, forms, plain)):
        return None, plain
    return _over_stored(assignment, forms, cuts, plain), plain


def _unwalkable(
    name: str, form: RemappedFormat, assignment: Assignment, forms: Mapping[str, AnyFormat]
) -> str:
    """Return the reason why no loops run over the stored modes of an operand, "" where they can."""
    if not form.is_walkable:
        return f"no loops run over {form.mapping}"
    if not form.slots:
        return ""
    for access, linear in with_linearity(assignment.value):
        if access.tensor != name:
            continue
        if not linear:
            return f"the value is not linear in {name}, whose entries are summed over their places"
        if len(set(access.indices)) < len(access.indices):
            return f"{to_text(access)} is a diagonal"
        for other in _factors_beside(assignment.value, access):
            shared = set(other.indices) & set(access.indices)
            if other != access and is_sparse_form(forms[other.tensor]) and shared:
                return f"{other.tensor}, which is sparse, has {', '.join(sorted(shared))} too"
    return ""


def _widened(name: str, value: Expr, dtype: DType) -> str:
    """Say why sums over places would give another type, "" where the text has such sums itself."""
    if is_reduction_by(value, ADD):
        return ""
    if isinstance(value, Access) and value.tensor == name:
        return f"a sum over the places of entries of {dtype} would be of {sum_dtype(dtype)}"
    return next(filter(None, (_widened(name, child, dtype) for child in children(value))), "")


def _factors_beside(value: Expr, access: Access) -> Iterator[Access]:
    """Yield the accesses in the additive terms that have one: A * x has x beside A, and not B *
    x."""
    if is_sum(value):
        yield from _factors_beside(value.body, access)
    elif is_additive(value):
        for arg in value.args:
            yield from _factors_beside(arg, access)
    elif access in (factors := accesses(value)):
        yield from factors


def is_sparse_form(form: AnyFormat) -> bool:
    """Tell whether an operand leaves coordinates out."""
    return isinstance(form, RemappedFormat) or is_sparse(form)


def _all_reads(assignment: Assignment, forms: Mapping[str, AnyFormat]) -> tuple[Access, ...]:
    """Return all accesses that read an operand; `y += …` reads y where it is one."""
    reads = accesses(assignment)
    target = assignment.target
    return (*reads, target) if assignment.operator is not None and target.tensor in forms else reads


def _cuts(
    reads: tuple[Access, ...],
    forms: Mapping[str, AnyFormat],
    plain: Mapping[str, str],
    fills: Mapping[str, Fill],
) -> tuple[dict[str, int], dict[str, str] | None]:
    """Return the block size of each cut index, or the operands that have to be plain."""
    cuts: dict[str, int] = {}
    by: dict[str, str] = {}
    for access, form in _blocked(reads, forms, plain):
        for index, size in zip(access.indices, form.cuts, strict=True):
            if size and cuts.setdefault(index, size) != size:
                reason = f"{index} is in blocks of {cuts[index]} in {by[index]}, and of {size} in "
                return {}, {access.tensor: reason + access.tensor}
            if size:
                by.setdefault(index, access.tensor)
    for access in reads:
        for mode, index in enumerate(access.indices):
            if index not in cuts:
                continue
            reason = _refusal(access, mode, index, forms, plain)
            if not reason and fills.get(access.tensor) and is_sparse_form(forms[access.tensor]):
                reason = f"{access.tensor}, whose fill value is {fills[access.tensor]}, has {index}"
            if reason:
                cutting = [a for a, f in _blocked(reads, forms, plain) if _is_cut(a, f, index)]
                return {}, {access.tensor: reason for access in cutting}
    return cuts, None


def _blocked(
    reads: tuple[Access, ...], forms: Mapping[str, AnyFormat], plain: Mapping[str, str]
) -> Iterator[tuple[Access, RemappedFormat]]:
    """Yield the accesses of operands in blocks that are not read in plain formats."""
    for access in reads:
        form = forms[access.tensor]
        if isinstance(form, RemappedFormat) and access.tensor not in plain:
            yield access, form


def _is_cut(access: Access, form: RemappedFormat, index: str) -> bool:
    pairs = zip(access.indices, form.cuts, strict=True)
    return any(name == index and size for name, size in pairs)


def _refusal(
    access: Access,
    mode: int,
    index: str,
    forms: Mapping[str, AnyFormat],
    plain: Mapping[str, str],
) -> str:
    """Say why an access cannot be read in blocks of an index, "" where it can."""
    name, form = access.tensor, forms[access.tensor]
    if isinstance(form, RemappedFormat):
        if name in plain:
            return f"{name}, which is read in a plain format, stores the coordinates of {index}"
        return "" if form.cuts[mode] else f"{name} does not store {index} in blocks"
    if not is_sparse(form):
        return ""
    level = form.levels[form.mode_order.index(mode)]
    if level.full:
        return ""
    return f"{name} stores the coordinates of {index}, which are not in blocks"


def _over_stored(
    assignment: Assignment,
    forms: Mapping[str, AnyFormat],
    cuts: Mapping[str, int],
    plain: Mapping[str, str],
) -> CutAssignment:
    names = Names((*all_indices(assignment), *forms))
    halves = {i: (names.fresh(f"{i}0"), names.fresh(f"{i}1")) for i in cuts}
    tensors = Names((*forms, assignment.target.tensor))
    to = _ToStored(forms, cuts, plain, names, halves, tensors, {}, [])
    target = assignment.target
    if assignment.operator is not None and target.tensor in forms:
        to.access(target)  # it keeps its name: it is the operand that is met first
    value = to.summed(assignment.value)
    target_access = Access(target.tensor, to.adjacent(target.indices), target.span)
    stored = replace(assignment, target=target_access, value=value)
    sizes = tuple(cuts.get(index, 0) for index in target.indices)
    return CutAssignment(assignment, stored, (*to.parts.values(),), sizes, halves, cuts, plain)


@dataclass(frozen=True, slots=True, eq=False)
class _ToStored:
    """Expressions over the modes of tensors → over stored modes.

    parts  the operands that are met
    slots  the numbers of entries that are to be summed over around the expression at hand
    """

    forms: Mapping[str, AnyFormat]
    cuts: Mapping[str, int]
    plain: Mapping[str, str]
    names: Names
    halves: Mapping[str, tuple[str, str]]
    tensors: Names
    parts: dict[tuple[str, tuple[int, ...]], Part]
    slots: list[str]

    def adjacent(self, indices: tuple[str, ...]) -> tuple[str, ...]:
        """Return the indices, each cut index as its two halves."""
        return tuple(half for index in indices for half in self.halves.get(index, (index,)))

    def access(self, access: Access) -> Access:
        """Return the access of the stored modes of an operand, or of a view of it."""
        form = self.forms[access.tensor]
        stored = isinstance(form, RemappedFormat) and access.tensor not in self.plain
        name = self._part(access, form, stored).name
        if not stored or not isinstance(form, RemappedFormat):
            return Access(name, self.adjacent(access.indices), access.span)
        numbers = {form.modes[place]: self.names.fresh("k") for place in form.slots}
        modes = tuple(
            numbers[mode] if mode in numbers else _stored_index(mode, access, self.halves)
            for mode in form.modes
        )
        self.slots.extend(numbers.values())
        return Access(name, modes, access.span)

    def _part(self, access: Access, form: AnyFormat, stored: bool) -> Part:
        """Return the operand that an access reads."""
        sizes = tuple(self.cuts.get(index, 0) for index in access.indices)
        key = (access.tensor, sizes)
        if key not in self.parts:
            is_taken = any(part.access.tensor == access.tensor for part in self.parts.values())
            name = self.tensors.fresh(f"{access.tensor}_in_blocks") if is_taken else access.tensor
            stored_form = form if stored or isinstance(form, Format) else plain_format(form.order)
            self.parts[key] = Part(name, access, sizes, stored_form)
        return self.parts[key]

    def summed(self, expr: Expr) -> Expr:
        """Return an expression, summed over the numbers of its operands' entries."""
        before = len(self.slots)
        result = self.expression(expr)
        for slot in self.slots[before:]:
            result = Reduce(ADD, slot, result)
        del self.slots[before:]
        return result

    def expression(self, expr: Expr) -> Expr:
        """Return an expression, whose operands' entries are summed around it where it is no sum."""
        if isinstance(expr, Access):
            return self.access(expr)
        sums_children = isinstance(expr, Reduce) or is_additive(expr)
        result = map_children(expr, self.summed if sums_children else self.expression)
        if isinstance(result, Reduce) and result.index in self.halves:
            outer, inner = self.halves[result.index]
            inside = replace(result, index=inner)
            return replace(result, index=outer, body=inside)
        return result


def _stored_index(mode: StoredMode, access: Access, halves: Mapping[str, tuple[str, str]]) -> str:
    """Return the index of a stored mode."""
    index = access.indices[mode.reads[0]]
    if mode.numbers_blocks:
        return halves[index][0]
    return halves[index][1] if mode.is_inside_blocks else index


def with_target(cut: CutAssignment, modes: Sequence[StoredMode]) -> CutAssignment:
    """Return the assignment with the modes of its result in this order."""
    indices = tuple(_stored_index(mode, cut.source.target, cut.halves) for mode in modes)
    target = replace(cut.assignment.target, indices=indices)
    return replace(cut, assignment=replace(cut.assignment, target=target))


def describe_cut(part: Part, assignment: Assignment) -> str:
    """Say which access of the assignment over stored modes is which of the text."""
    matches: list[Access] = []

    def look(access: Access) -> Expr:
        if access.tensor == part.name:
            matches.append(access)
        return access

    map_accesses(assignment.value, look)
    stored = matches[0] if matches else Access(part.name, assignment.target.indices)
    return f"{to_text(stored)} is {to_text(part.access)}"
