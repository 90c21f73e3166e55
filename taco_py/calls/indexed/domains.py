"""How far each index goes, from the shapes of the operands.

    y[i] = x[i+k] * w[k]    x of 100 elements, w of 5   →   k below 5, i below 96

1. `shape=`, where given, says it for the indices of the result.
2. An index that is a subscript by itself goes as far as the mode; uses have to agree.
3. Others go as far as all accesses stay inside their operands, as "valid" convolution has it. That
   is found access by access, where all other indices of a subscript are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import DimensionError, OperandError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment, Subscript
from taco_py.language.notation.printer import subscript_text, to_text
from taco_py.language.notation.rewrites.index_numbers import index_of, is_size, numbers_of

ERROR, FILL = "error", "fill"
BORDERS = (ERROR, FILL)

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Domain:
    """The size of each index, and of each mode of the result."""

    sizes: Sizes
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundaryOptions:
    """What a call says of sizes and borders.

    border  "error", or "fill" to read 0 outside of operands and write nothing outside of the result
    shape   of the result, from `shape=`; None where not given
    out     the shape of the array that the result is written to; None where there is none
    """

    border: str = ERROR
    shape: tuple[int, ...] | None = None
    out: tuple[int, ...] | None = None


def domain_of(
    assignment: Assignment, shapes: Mapping[str, Sequence[int]], boundary: BoundaryOptions
) -> Domain:
    """Find the sizes, and check that accesses stay inside where the border is an error.

    shapes  of the operands, the one that is added to among them

    Raises OperandError where an access has not as many subscripts as its operand has modes,
    DimensionError where sizes disagree, are not known, or an access leaves its operand.
    """
    uses, target = accesses(assignment), assignment.target
    outer = {id(access) for access in _outer(assignment)}
    if assignment.operator is not None and target.tensor in shapes:
        uses = (target, *uses)
        _check_added(target, shapes[target.tensor], boundary)
    _check_orders(uses, shapes)
    sizes = _said(target, boundary.shape)
    _take_plain(uses, shapes, sizes, frozenset(sizes))
    for index, size in _said(target, boundary.out).items():
        sizes.setdefault(index, size)
    if boundary.border == ERROR:
        _bound(uses, shapes, sizes)
    _check_known(assignment, uses, sizes, boundary)
    for access in uses:
        if access is not target and (boundary.border == ERROR or id(access) not in outer):
            _check_inside(access, shapes[access.tensor], sizes, target)
    return Domain(sizes, _result_shape(assignment, shapes, sizes, boundary))


def bounds(subscript: Subscript, sizes: Sizes) -> tuple[int, int]:
    """Return the least and the largest position without gathered parts, for sizes of at least 1."""
    low = high = subscript.constant
    for name, factor in subscript.indices:
        reach = factor * max(0, sizes[name] - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high


# ---------------------------------------------------------------- what is said


def _check_orders(uses: Sequence[Access], shapes: Mapping[str, Sequence[int]]) -> None:
    for access in uses:
        order, count = len(shapes[access.tensor]), len(access.modes)
        if order != count:
            raise OperandError(
                f"Expected {order} subscripts for {access.tensor}, whose shape is "
                f"{tuple(shapes[access.tensor])}, found {count}",
                access.span,
                f"write one subscript for each of the {order} modes",
            )


def _said(target: Access, shape: Sequence[int] | None) -> dict[str, int]:
    """Return the sizes of the result's indices that a shape says."""
    if shape is None:
        return {}
    if len(shape) != len(target.modes):
        raise DimensionError(
            f"Expected a shape of {len(target.modes)} sizes for {to_text(target)}, found "
            f"{tuple(shape)}",
            target.span,
            "write one size for each mode of the result",
        )
    pairs = zip(target.modes, shape, strict=True)
    single = alone(target)
    return {mode.index: int(n) for mode, n in pairs if mode.index and mode.index in single}


def _check_added(target: Access, shape: Sequence[int], boundary: BoundaryOptions) -> None:
    """Raise DimensionError where the operand that is added to has another shape than is said."""
    if boundary.shape is not None and tuple(shape) != boundary.shape:
        raise DimensionError(
            f"Expected {target.tensor} of the shape {boundary.shape} that shape= says, found "
            f"{tuple(shape)}",
            target.span,
            f"leave shape= away where {target.tensor} is given",
        )


def alone(access: Access) -> frozenset[str]:
    """Return the indices that are subscripts by themselves, and in no subscript besides others."""
    mixed = {name for mode in access.modes if mode.index is None for name in mode.names}
    return frozenset(access.indices) - mixed


def _take_plain(
    uses: Sequence[Access],
    shapes: Mapping[str, Sequence[int]],
    sizes: dict[str, int],
    fixed: frozenset[str],
) -> None:
    """Take the sizes of modes that an index has by itself.

    fixed  the indices whose sizes the call states, from which modes may differ
    """
    first: dict[str, tuple[Access, int]] = {}
    for access in uses:
        single = alone(access)
        for place, mode in enumerate(access.modes):
            index, size = mode.index, int(shapes[access.tensor][place])
            if index is None or index not in single or index in fixed:
                continue
            other, other_place = first.setdefault(index, (access, place))
            if sizes.setdefault(index, size) != size:
                raise DimensionError(
                    f"Expected one size for index {index}, found {sizes[index]} in {other.tensor} "
                    f"(mode {other_place} of shape {tuple(shapes[other.tensor])}) and {size} in "
                    f"{access.tensor} (mode {place} of shape {tuple(shapes[access.tensor])})",
                    access.span,
                    "operands that share an index must agree on its size",
                )


# ---------------------------------------------------------------- what follows


def _bound(
    uses: Sequence[Access], shapes: Mapping[str, Sequence[int]], sizes: dict[str, int]
) -> None:
    """Find the sizes of other indices, those first of which all others in a subscript are known."""
    while True:
        limits: dict[str, int] = {}
        for access in uses:
            for size, mode in zip(shapes[access.tensor], access.modes, strict=True):
                left = [name for name, _ in mode.indices if name not in sizes]
                if len(left) == 1 and not mode.gathered:
                    _check_reached(access, mode, left[0], int(size), sizes)
                    most = _most(mode, left[0], int(size), sizes)
                    limits[left[0]] = min(most, limits.get(left[0], most))
        if not limits:
            return
        sizes.update(limits)


def _check_reached(access: Access, mode: Subscript, index: str, size: int, sizes: Sizes) -> None:
    """Raise DimensionError where no value of an index makes a subscript a position of its mode.

    x[i+100] of 20 elements; x[i+20] is empty, as the slice x[20:] is
    """
    if size == 0 or any(sizes.get(name) == 0 for name in mode.names):
        return
    low, high = bounds(mode, {**sizes, index: 1})
    rises = dict(mode.indices)[index] > 0
    if (low > size) if rises else (high < 0):
        other_ranges = ", ".join(f"{n} below {sizes[n]}" for n in mode.names if n != index)
        ranges = f"{low} on" if rises else f"{high} down"
        raise DimensionError(
            f"Expected positions from 0 to {size - 1} in mode {access.modes.index(mode)} of "
            f"{access.tensor}, found {subscript_text(mode)} from {ranges}"
            f"{', with ' * bool(other_ranges)}{other_ranges}",
            access.span,
            f'no value of {index} is inside; border="fill" reads 0 outside of {access.tensor}',
        )


def _most(mode: Subscript, index: str, size: int, sizes: Sizes) -> int:
    """Return the largest size of an index for which a subscript stays below the size of its
    mode."""
    factor = dict(mode.indices)[index]
    low, high = bounds(mode, {**sizes, index: 1})
    room = size - 1 - high if factor > 0 else low
    return max(0, room // abs(factor) + 1)


def _check_known(
    assignment: Assignment, uses: Sequence[Access], sizes: Sizes, boundary: BoundaryOptions
) -> None:
    """Raise DimensionError for an index whose size nothing says."""
    numbers = numbers_of(assignment)
    sized = tuple(Access("", (index_of(n),), n.span) for n in numbers if is_size(n))
    for access in (*uses, assignment.target, *numbers, *sized):
        for index in access.indices:
            if index in sizes:
                continue
            every = (*uses, assignment.target, *numbers)
            where = to_text(next((a for a in every if index in a.indices), access))
            by_shape = index in alone(assignment.target)
            hint = "use it by itself on an operand of that size"
            if by_shape:
                size = ", ".join(mode.index or "…" for mode in assignment.target.modes)
                hint = f"say how far it goes: shape=({size},) with numbers in their places"
            reason = ' and border="fill", which sets no bound' if boundary.border == FILL else ""
            raise DimensionError(
                f"Expected a size for index {index}, found it in {where} alone{reason}",
                access.span,
                hint,
            )


def _outer(assignment: Assignment) -> Iterator[Access]:
    """Yield the accesses that stand in no subscript."""
    inner = {id(a) for use in accesses(assignment) for m in use.subscripts for a, _ in m.gathered}
    inner |= {id(a) for m in assignment.target.subscripts for a, _ in m.gathered}
    return (access for access in accesses(assignment) if id(access) not in inner)


def _check_inside(access: Access, shape: Sequence[int], sizes: Sizes, target: Access) -> None:
    """Raise DimensionError where a subscript passes the ends of its mode."""
    if any(sizes[index] == 0 for index in access.indices):
        return
    for place, (mode, size) in enumerate(zip(access.modes, shape, strict=True)):
        low, high = bounds(mode, sizes)
        if mode.gathered or (low >= 0 and high < size):
            continue
        raise DimensionError(
            f"Expected positions from 0 to {size - 1} in mode {place} of {access.tensor}, found "
            f"{_describe_range(mode, sizes)}",
            access.span,
            _remedy(access, mode, target, low),
        )


def _describe_range(mode: Subscript, sizes: Sizes) -> str:
    """Return a subscript with its range: `i+1 from 1 to 5, with i below 5`."""
    if not mode.indices:
        return subscript_text(mode)
    low, high = bounds(mode, sizes)
    ranges = ", ".join(f"{name} below {sizes[name]}" for name, _ in mode.indices)
    return f"{subscript_text(mode)} from {low} to {high}, with {ranges}"


def _remedy(access: Access, mode: Subscript, target: Access, low: int) -> str:
    """Return the remedy for an access that leaves its operand."""
    fill = f'border="fill" reads 0 outside of {access.tensor}'
    if not mode.indices:
        return f"positions count from 0; {fill}"
    if any(index in alone(target) for index in mode.names) and low >= 0:
        return f"{fill}; shape= says how far the indices of {target.tensor} go"
    return fill


def _result_shape(
    assignment: Assignment,
    shapes: Mapping[str, Sequence[int]],
    sizes: Sizes,
    boundary: BoundaryOptions,
) -> tuple[int, ...]:
    """Return the size of each mode of the result. A mode that is no index by itself is as large as
    is said, or as holds all positions, where these do not depend on what operands hold."""
    target = assignment.target
    requested = boundary.shape or boundary.out
    if requested is None and assignment.operator is not None:
        requested = tuple(shapes[target.tensor]) if target.tensor in shapes else None
    shape = []
    for place, mode in enumerate(target.modes):
        if mode.index is not None and mode.index in alone(target):
            shape.append(sizes[mode.index])
            continue
        if requested is None and mode.gathered:
            raise DimensionError(
                f"Expected the size of mode {place} of {target.tensor}, found positions in "
                f"{to_text(target)} that depend on what operands hold",
                target.span,
                f"say it by shape=, by out=, or by {target.tensor}= to add to",
            )
        low, high = bounds(mode, sizes)
        empty = any(sizes[index] == 0 for index in target.indices)
        size = (0 if empty else high + 1) if requested is None else int(requested[place])
        if (
            boundary.border == ERROR
            and not (mode.gathered or empty)
            and not 0 <= low <= high < size
        ):
            raise DimensionError(
                f"Expected positions from 0 to {size - 1} in mode {place} of {target.tensor}, "
                f"found {_describe_range(mode, sizes)}",
                target.span,
                f'border="fill" leaves out what lies outside of {target.tensor}',
            )
        shape.append(max(0, size))
    return tuple(shape)
