"""The expected seconds of a sum of products of two dense arrays, in loops and in register tiles.

    C[b,i,j] += A[b,i,k] * B[b,k,j]     loops    one for each index, contiguous where an index is
                                                 stored last by all arrays that have it
                                        tiles    a product of matrices for each step of the batch,
                                                 whose elements are packed first

Loops do not reuse operands in registers, but run along a batch as well as along rows or columns;
tiles compute products several times as fast, but pack each element, one by one where a batch is
stored last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, prod

from codegen.records import dataclass
from taco_py.compiler.cost.machine import NOMINAL, Machine

Stored = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DenseProduct:
    """The indices of result, left and right in storage order, sizes, bytes of an element and
    machine."""

    result: Stored
    left: Stored
    right: Stored
    sizes: Mapping[str, float]
    itemsize: int
    machine: Machine = NOMINAL

    @property
    def arrays(self) -> tuple[Stored, Stored, Stored]:
        return self.result, self.left, self.right

    @property
    def indices(self) -> Stored:
        return tuple(dict.fromkeys(index for array in self.arrays for index in array))

    @property
    def batch(self) -> frozenset[str]:
        """Return the indices that all arrays have."""
        return frozenset(self.result) & frozenset(self.left) & frozenset(self.right)

    @property
    def points(self) -> float:
        return self.count(self.indices)

    def count(self, indices: Stored | frozenset[str]) -> float:
        """Return the number of combinations of their coordinates."""
        return prod((self.sizes[index] for index in indices), start=1.0)

    @property
    def lanes(self) -> int:
        return max(1, self.machine.dense.vector_bytes // self.itemsize)

    @property
    def columns(self) -> Stored:
        """Return the indices of the columns of each matrix of the result.

        The last index of the result is among them, unless it is one of the batch.
        """
        last = next((i for i in reversed(self.result) if i not in self.batch), None)
        right = self.left if last in self.left else self.right
        return tuple(i for i in self.result if i in right and i not in self.batch)

    @property
    def rows_are_whole(self) -> bool:
        """Tell whether the columns of each row of the result are contiguous."""
        return self.result[len(self.result) - len(self.columns) :] == self.columns

    def is_contiguous(self, index: str) -> bool:
        """Tell whether all arrays that have an index store it last."""
        return all(array[-1] == index for array in self.arrays if index in array)


def seconds_of_loops(product: DenseProduct) -> float:
    """Return the seconds of contiguous loops where an index allows it, else of strided loops."""
    runs = [
        _contiguous_seconds(product, index)
        for index in product.indices
        if product.is_contiguous(index)
    ]
    return min([*runs, _striding(product)])


def _contiguous_seconds(product: DenseProduct, index: str) -> float:
    length = product.sizes[index]
    for other in _before(product, index):
        length *= product.sizes[other]
    lanes, machine = product.lanes, product.machine
    row = ceil(length / lanes) * lanes * machine.dense.contiguous_byte_seconds * product.itemsize
    lane_sum = 0.0 if index in product.result else machine.dense.lane_sum_seconds
    return product.points / max(length, 1.0) * (machine.dense.inner_loop_seconds + lane_sum + row)


def _before(product: DenseProduct, index: str) -> Stored:
    """Return the indices that fuse with an index into one contiguous loop.

    They come just before it in all arrays that have it, and in no others.
    """
    before: list[str] = []
    users = [array for array in product.arrays if index in array]
    while True:
        depth = len(before) + 2
        next_ = {array[-depth] if len(array) >= depth else None for array in users}
        (other, *more) = next_
        spread = [array for array in product.arrays if other in array]
        if more or other is None or len(spread) != len(users):
            return tuple(before)
        before.append(other)


def _striding(product: DenseProduct) -> float:
    """Return the seconds of an innermost loop that is contiguous in some arrays only.

    In an array that it strides through, each line is reused before it is evicted, if the array is
    small.
    """
    product_seconds = (
        min(_strided(product, index) for index in product.indices) if product.indices else 0.0
    )
    return product.points * product_seconds


def _strided(product: DenseProduct, index: str) -> float:
    """Return the seconds of a product where the innermost loop runs over `index`."""
    machine = product.machine
    cost = machine.dense.strided_product_seconds
    for array in product.arrays:
        if index not in array or array[-1] == index:
            continue
        step = product.count(array[array.index(index) + 1 :]) * product.itemsize
        far = product.count(array) * product.itemsize > machine.dense.strided_cache_bytes
        if step >= machine.loops.line_bytes and far:
            cost += machine.dense.far_strided_product_seconds
    return cost


def seconds_of_tiles(product: DenseProduct, width: int = 0) -> float:
    """Return the seconds of packing, products, and of each step of a batch.

    Columns that do not fill a tile take as long as a full one.

    width  the columns of a tile; 0 for a vector
    """
    columns, lanes, machine = product.count(product.columns), product.lanes, product.machine
    tile = width or lanes
    wide = ceil(columns / tile) * tile / max(columns, 1.0)
    steps = product.count(product.batch) if product.batch else 0.0
    packed, strided = machine.dense.packed_element_seconds, machine.dense.strided_element_seconds
    packing = product.count(product.result) * (packed if product.rows_are_whole else strided)
    for array in (product.left, product.right):
        is_strided = array[-1] in product.batch
        packing += product.count(array) * (strided if is_strided else packed)
        if is_strided and product.count(array) * product.itemsize > machine.loops.far_cache_bytes:
            packing += product.count(array) * machine.dense.far_strided_product_seconds
    tiled = wide * product.points * machine.dense.tiled_byte_seconds * product.itemsize
    return packing + tiled + steps * machine.dense.tiled_matrix_seconds


def seconds_in_tiles(product: DenseProduct, tile_columns: int = 0) -> float:
    """Return the seconds of products in whole tiles, with the packing of operands.

    Rows of the operand that has no columns are read where they are, if the sum runs along them.

    tile_columns  of a tile, 0 for those of the machine: fewer columns take as long as a full tile
    """
    costs, columns = product.machine.dense, product.count(product.columns)
    width = tile_columns or max(1, costs.tile_row_bytes // product.itemsize)
    padding = ceil(columns / width) * width / max(columns, 1.0)
    packing = 0.0
    for array in (product.left, product.right):
        has_columns = any(index in product.columns for index in array)
        if array[-1] in product.batch:
            packing += product.count(array) * costs.strided_element_seconds
        elif has_columns or array[-1] in product.result:
            packing += product.count(array) * costs.packed_element_seconds
    tiled = padding * product.points * costs.tiled_byte_seconds
    stored = product.count(product.result) * costs.tile_result_byte_seconds
    steps = product.count(product.batch) if product.batch else 1.0
    return packing + (tiled + stored) * product.itemsize + steps * costs.tiled_matrix_seconds


def seconds_of_copy(product: DenseProduct, array: Stored) -> float:
    """Return the seconds of a copy of an operand in another order."""
    elements, machine = product.count(array), product.machine
    far = elements * product.itemsize > machine.dense.strided_cache_bytes
    element_seconds = (
        machine.calls.far_copied_element_seconds if far else machine.calls.copied_element_seconds
    )
    return machine.calls.copy_call_seconds + elements * element_seconds


# ---------------------------------------------------------------- operands in another order


@dataclass(frozen=True, slots=True)
class Turned:
    """A product with its operands in the order in which they are read, and its seconds with copies.

    copied      whether left, and whether right, is a copy
    contiguous  the index that the loops then run along; "" where nothing is copied
    """

    product: DenseProduct
    seconds: float
    copied: tuple[bool, bool] = (False, False)
    contiguous: str = ""


def turned(product: DenseProduct, index: str) -> Turned | None:
    """Return the product with `index` last in both operands, for loops.

    None where the result stores it, but not last, and where nothing would be copied.
    """
    if index in product.result and product.result[-1] != index:
        return None
    misplaced = [index in array and array[-1] != index for array in (product.left, product.right)]
    if not any(misplaced):
        return None
    left, right = product.left, product.right
    if misplaced[0]:
        left = _reordered(left, right if index in right else product.result, index)
    if misplaced[1]:
        right = _reordered(right, left if index in left else product.result, index)
    copies = [a for a, turns in zip((left, right), misplaced, strict=True) if turns]
    new = replace(product, left=left, right=right)
    seconds = sum(seconds_of_copy(product, a) for a in copies) + seconds_of_loops(new)
    return Turned(new, seconds, (misplaced[0], misplaced[1]), index)


def _reordered(array: Stored, other: Stored, last: str) -> Stored:
    """Return the order of an array's indices with the indices of `other` in its order, then
    `last`."""
    alone = [index for index in array if index not in other]
    shared = [index for index in other if index in array and index != last]
    return (*alone, *shared, last)


def best(product: DenseProduct) -> Turned:
    """Return loops or tiles on the operands, or loops on copies, whichever takes least time."""
    plain = Turned(product, min(seconds_of_loops(product), seconds_of_tiles(product)))
    copies = [new for index in product.indices if (new := turned(product, index)) is not None]
    return min([plain, *copies], key=lambda candidate: candidate.seconds)


def best_result(product: DenseProduct) -> DenseProduct:
    """Return the product with its result in the fastest order of modes.

    It is unchanged where no order is clearly faster.
    """
    fastest = min(_results(product), key=lambda candidate: best(candidate).seconds)
    gain = product.machine.copies.dense_detour_gain
    return fastest if best(fastest).seconds * gain < best(product).seconds else product


def _results(product: DenseProduct) -> list[DenseProduct]:
    """Return the product with other orders of its result.

    They are the present one, each index last, and the batch first, then rows and columns in the
    operands' order.
    """
    stored, left, right = product.arrays
    orders = [stored]
    orders += [(*(i for i in stored if i != last), last) for last in stored]
    batch = tuple(i for i in stored if i in product.batch)
    for one, other in ((left, right), (right, left)):
        operand_order = (*(i for i in one if i in stored), *(i for i in other if i in stored))
        orders.append((*batch, *(i for i in operand_order if i not in batch)))
    return [replace(product, result=order) for order in dict.fromkeys(orders)]
