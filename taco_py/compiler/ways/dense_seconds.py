"""What a sum of products of two dense arrays takes, in loops and in register tiles, in seconds.

    C[b,i,j] += A[b,i,k] * B[b,k,j]     loops    one for each index, along neighbours where an index
                                                 is stored last by all arrays that have it
                                        tiles    a product of matrices for each step of the batch,
                                                 whose elements are brought near one another first

Loops read no operand again from registers, but run along a batch as well as along rows or columns;
tiles do the products themselves several times as fast, but bring each element near, one by one
where a batch is stored last.
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
    """The indices of result, left and right as they are stored, the sizes, the bytes of an element,
    and the machine that computes it."""

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
        """Return the combinations of their coordinates."""
        return prod((self.sizes[index] for index in indices), start=1.0)

    @property
    def lanes(self) -> int:
        return max(1, self.machine.dense.vector_bytes // self.itemsize)

    @property
    def columns(self) -> Stored:
        """Return the indices of the columns of each matrix of the result: its last one is among
        them, if it is not a batch's."""
        last = next((i for i in reversed(self.result) if i not in self.batch), None)
        right = self.left if last in self.left else self.right
        return tuple(i for i in self.result if i in right and i not in self.batch)

    @property
    def rows_are_whole(self) -> bool:
        """Tell whether the columns of each row of the result are neighbours."""
        return self.result[len(self.result) - len(self.columns) :] == self.columns

    def along(self, index: str) -> bool:
        """Tell whether all arrays that have an index store it last."""
        return all(array[-1] == index for array in self.arrays if index in array)


def seconds_of_loops(product: DenseProduct) -> float:
    """Return loops along neighbours where an index allows it, else loops that stride."""
    runs = [_along(product, index) for index in product.indices if product.along(index)]
    return min([*runs, _striding(product)])


def _along(product: DenseProduct, index: str) -> float:
    length = product.sizes[index]
    for other in _before(product, index):
        length *= product.sizes[other]
    lanes, machine = product.lanes, product.machine
    row = ceil(length / lanes) * lanes * machine.dense.contiguous_byte_seconds * product.itemsize
    across = 0.0 if index in product.result else machine.dense.lane_sum_seconds
    return product.points / max(length, 1.0) * (machine.dense.inner_loop_seconds + across + row)


def _before(product: DenseProduct, index: str) -> Stored:
    """Return the indices right before one that come before it in all arrays that have it, and in no
    others: they are one with it."""
    found: list[str] = []
    own = [array for array in product.arrays if index in array]
    while True:
        depth = len(found) + 2
        next_ = {array[-depth] if len(array) >= depth else None for array in own}
        (other, *more) = next_
        spread = [array for array in product.arrays if other in array]
        if more or other is None or len(spread) != len(own):
            return tuple(found)
        found.append(other)


def _striding(product: DenseProduct) -> float:
    """Return the innermost loop runs along neighbours of some arrays only: of one that it strides
    through each line is met again before others have taken its place, if the array is small."""
    each = min(_strided(product, index) for index in product.indices) if product.indices else 0.0
    return product.points * each


def _strided(product: DenseProduct, index: str) -> float:
    """Return a product where the innermost loop runs over `index`."""
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


def seconds_of_tiles(product: DenseProduct) -> float:
    """Return elements brought near, products, and what each step of a batch takes; columns that
    fill no vector take as long as those that do."""
    columns, lanes, machine = product.count(product.columns), product.lanes, product.machine
    wide = ceil(columns / lanes) * lanes / max(columns, 1.0)
    steps = product.count(product.batch) if product.batch else 0.0
    packed, strided = machine.dense.packed_element_seconds, machine.dense.strided_element_seconds
    moved = product.count(product.result) * (packed if product.rows_are_whole else strided)
    for array in (product.left, product.right):
        moved += product.count(array) * (strided if array[-1] in product.batch else packed)
    tiled = wide * product.points * machine.dense.tiled_byte_seconds * product.itemsize
    return moved + tiled + steps * machine.dense.tiled_matrix_seconds


def seconds_of_copy(product: DenseProduct, array: Stored) -> float:
    """Return a copy of an operand in another order."""
    elements, machine = product.count(array), product.machine
    far = elements * product.itemsize > machine.dense.strided_cache_bytes
    each = machine.calls.far_copied_element_seconds if far else machine.calls.copied_element_seconds
    return machine.calls.copy_call_seconds + elements * each


# ---------------------------------------------------------------- operands in another order


@dataclass(frozen=True, slots=True)
class Turned:
    """A product with its operands as they are read, and what it takes with the copies that makes.

    copied  whether left, whether right is a copy
    along   the index that the loops then run along; "" where nothing is copied
    """

    product: DenseProduct
    seconds: float
    copied: tuple[bool, bool] = (False, False)
    along: str = ""


def turned(product: DenseProduct, index: str) -> Turned | None:
    """Return the product with `index` last in both operands, for loops; None where the result
    stores it, but not last, and where nothing would be copied."""
    if index in product.result and product.result[-1] != index:
        return None
    across = [index in array and array[-1] != index for array in (product.left, product.right)]
    if not any(across):
        return None
    left, right = product.left, product.right
    if across[0]:
        left = _reordered(left, right if index in right else product.result, index)
    if across[1]:
        right = _reordered(right, left if index in left else product.result, index)
    copies = [a for a, turns in zip((left, right), across, strict=True) if turns]
    new = replace(product, left=left, right=right)
    seconds = sum(seconds_of_copy(product, a) for a in copies) + seconds_of_loops(new)
    return Turned(new, seconds, (across[0], across[1]), index)


def _reordered(array: Stored, other: Stored, last: str) -> Stored:
    """Return an array's indices with those that `other` has last and in its order, and `last`
    last."""
    alone = [index for index in array if index not in other]
    shared = [index for index in other if index in array and index != last]
    return (*alone, *shared, last)


def best(product: DenseProduct) -> Turned:
    """Return loops or tiles on the operands as they are, or loops on copies, whichever takes
    least."""
    plain = Turned(product, min(seconds_of_loops(product), seconds_of_tiles(product)))
    others = [found for index in product.indices if (found := turned(product, index)) is not None]
    return min([plain, *others], key=lambda each: each.seconds)


def best_result(product: DenseProduct) -> DenseProduct:
    """Return the product with its result in the order of modes that takes least; as it is where
    that does not take clearly less."""
    found = min(_results(product), key=lambda each: best(each).seconds)
    gain = product.machine.copies.dense_detour_gain
    return found if best(found).seconds * gain < best(product).seconds else product


def _results(product: DenseProduct) -> list[DenseProduct]:
    """With the result as given, with each index last, and with the batch first, then rows and
    columns as the operands store them."""
    kept, left, right = product.arrays
    orders = [kept]
    orders += [(*(i for i in kept if i != last), last) for last in kept]
    batch = tuple(i for i in kept if i in product.batch)
    for one, other in ((left, right), (right, left)):
        own = (*(i for i in one if i in kept), *(i for i in other if i in kept))
        orders.append((*batch, *(i for i in own if i not in batch)))
    return [replace(product, result=order) for order in dict.fromkeys(orders)]
