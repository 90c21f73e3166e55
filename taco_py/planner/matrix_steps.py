"""Products of two dense tensors as products of matrices, so that few kernels serve many of them.

    T[a,c,d] = sum(b, A[b,a] * B[b,c,d])
    → A_ab is A stored as a,b;  A_1 is A_ab[a,b];  B_1[b,cd] is B
      T_1[i,j] = sum(k, A_1[i,k] * B_1[k,j]);  T[a,c,d] is T_1

Indices that both tensors have and the product keeps are one mode, those of each alone are one mode
each, those that are summed are one mode. A tensor that stores them in another order is copied
first. A step has one of eight kernels then, whatever its indices are (Solomonik et al. 2014, CTF).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from math import inf, prod

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.library_choice import Libraries
from taco_py.compiler.ways.way import Question
from taco_py.compiler.ways.ways import choose
from taco_py.language.formats import Format
from taco_py.language.formats.format import LETTERS
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import ADD, MUL
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.nodes import Cast, Fuse, KernelStep, Operand, Step, Unfuse

LARGEST_CLASS = 12
"""The bits of a size from which ways are chosen alike."""
MOST = 1 << 1000
"""What is less than the largest floating-point number."""
COPIED = "its modes are those of a matrix"

Group = tuple[str, ...]
"""Indices that are one mode, the last one fastest."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A dense tensor that a step reads: its name, its indices as it stores them, and its modes.

    modes  the mode of each index, in the order of `stored`
    plain  whether a kernel may read it as it is: in its own type, its last elements adjacent
    """

    name: str
    stored: tuple[str, ...]
    modes: tuple[int, ...]
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Roles:
    """Two tensors as the left and the right factor of a product of matrices, and its groups.

    both, rows, columns, summed  the indices of the four modes, some of which may have none
    """

    left: Tensor
    right: Tensor
    batch: Group
    rows: Group
    columns: Group
    summed: Group

    @property
    def of_left(self) -> tuple[Group, ...]:
        """Return the nonempty groups of modes of the left factor."""
        return tuple(filter(None, (self.batch, self.rows, self.summed)))

    @property
    def of_right(self) -> tuple[Group, ...]:
        """Return the nonempty groups of modes of the right factor."""
        return tuple(filter(None, (self.batch, self.summed, self.columns)))

    @property
    def of_product(self) -> tuple[Group, ...]:
        """Return the nonempty groups of modes of the product."""
        return tuple(filter(None, (self.batch, self.rows, self.columns)))

    @property
    def indices(self) -> tuple[str, ...]:
        """Return the indices of the product in storage order."""
        return (*self.batch, *self.rows, *self.columns)

    @property
    def shape(self) -> tuple[bool, ...]:
        """Tell for each of the four modes whether it is present."""
        return tuple(map(bool, (self.batch, self.rows, self.columns, self.summed)))


@dataclass(slots=True)
class MatrixSteps:
    """The steps of products of matrices, one after the other.

    sizes      the size of each index
    facts      of all tensors, given or made
    libraries  those whose routines may be called
    steps      what has been put in so far
    kernels    one step of each kernel, by its modes, types and how large they are
    types      of the tensors made so far, by format, or by how many modes they have
    counts     the coordinate tuples over groups of indices
    """

    sizes: Mapping[str, int]
    facts: dict[str, Operand]
    type: TensorType
    names: Names
    libraries: Libraries | None
    machine: Machine
    steps: list[Step] = field(default_factory=list)
    kernels: dict[object, KernelStep] = field(default_factory=dict)
    types: dict[Format | int, TensorType] = field(default_factory=dict)
    counts: dict[Group, int] = field(default_factory=dict)

    def tensor_of(self, access: Access) -> Tensor:
        """Return a tensor of the program as the steps read it."""
        type = self.facts[access.tensor].type
        order = type.format.mode_order
        plain = type.unit_stride and not type.stored
        stored = tuple(access.indices[mode] for mode in order)
        return Tensor(access.tensor, stored, order, plain)

    def roles(
        self, one: Tensor, other: Tensor, summed: frozenset[str], order: Group | None = None
    ) -> Roles:
        """Return the roles of two tensors with the fewest copied elements, then with longer rows.

        order  the order of the product's indices, where one is read faster than others
        """
        best, least = None, inf
        for roles in options(one, other, summed):
            price = self.price(roles)
            if order is not None and roles.indices != order:
                price += self.volume(roles.indices)
            if price < least:
                best, least = roles, price
            if (
                price
                <= self.volume(roles.left.stored)
                * self.volume(roles.columns)
                / self.machine.calls.matrix_row_elements
            ):
                break  # nothing is copied, and rows are long
        assert best is not None
        return best

    def price(self, roles: Roles) -> float:
        """Return the copied elements plus products in rows that are too short for vectors."""
        left, right, copied = roles.left, roles.right, 0.0
        if left.stored != (*roles.batch, *roles.rows, *roles.summed) or not left.plain:
            copied += self.volume(left.stored)
        if right.stored != (*roles.batch, *roles.summed, *roles.columns) or not right.plain:
            copied += self.volume(right.stored)
        row = self.volume(roles.columns or roles.summed)
        work = self.volume(left.stored) * self.volume(roles.columns)
        return copied + work / min(self.machine.calls.matrix_row_elements, row)

    def volume(self, indices: Group) -> float:
        """Return the number of coordinate tuples over indices."""
        return float(min(self.count(indices), MOST))

    def count(self, indices: Group) -> int:
        """Return the number of coordinate tuples over indices as an integer of any size."""
        count_ = self.counts.get(indices)
        if count_ is None:
            count_ = self.counts[indices] = prod([self.sizes[index] for index in indices])
        return count_

    def multiply(
        self, one: Tensor, other: Tensor, summed: frozenset[str], order: Group | None = None
    ) -> Tensor:
        """Add the steps that multiply two tensors, and return their product."""
        roles = self.roles(one, other, summed, order)
        left = self.as_matrix(roles.left, roles.of_left)
        right = self.as_matrix(roles.right, roles.of_right)
        groups, target = roles.of_product, self.names.fresh("T")
        fused = any(len(group) > 1 for group in groups)
        matrix = self.names.fresh(f"{target}_fused") if fused else target
        self.steps.append(self._kernel(roles, left, right, matrix))
        if fused:
            places = {
                index: (tensor.name, mode)
                for tensor in (one, other)
                for index, mode in zip(tensor.stored, tensor.modes, strict=True)
            }
            self._add(
                Unfuse(target, matrix, tuple(places[i] for i in roles.indices)), roles.indices
            )
        return Tensor(target, roles.indices, tuple(range(len(roles.indices))))

    def add_up(self, tensor: Tensor, summed: frozenset[str]) -> Tensor:
        """Add the steps that sum a tensor over some of its indices, and return the sums."""
        remaining = tuple(index for index in tensor.stored if index not in summed)
        groups = (remaining, tuple(index for index in tensor.stored if index in summed))
        source = self.as_matrix(tensor, tuple(filter(None, groups)))
        target = self.names.fresh("T")
        matrix = self.names.fresh(f"{target}_fused") if len(remaining) > 1 else target
        self.facts[matrix] = facts = self.dense(groups[:1] if remaining else ())
        loops = ("i", "j") if remaining else ("i",)
        value = Reduce(ADD, loops[-1], Access("A", loops))
        assignment = Assignment(Access("T", loops[:-1]), value)
        problem = Problem(assignment, (("A", self.facts[source].type),), facts.type)
        sizes = tuple((index, "A", mode) for mode, index in enumerate(loops))
        schedule = Schedule.of_orders((loops,))
        self.steps.append(KernelStep(matrix, problem, schedule, sizes, (("A", source),)))
        if matrix != target:
            modes = dict(zip(tensor.stored, tensor.modes, strict=True))
            sources = tuple((tensor.name, modes[index]) for index in remaining)
            self._add(Unfuse(target, matrix, sources), remaining)
        return Tensor(target, remaining, tuple(range(len(remaining))))

    def as_matrix(self, tensor: Tensor, groups: tuple[Group, ...]) -> str:
        """Add the steps that give a tensor one mode for each group, and return its name."""
        order = tuple(chain.from_iterable(groups))
        name, modes, type = tensor.name, tensor.modes, self.facts[tensor.name].type
        if tensor.stored != order or not tensor.plain:
            place = dict(zip(tensor.stored, tensor.modes, strict=True))
            modes = tuple(place[index] for index in order)
            form = Format((LETTERS["d"],) * len(modes), modes)
            copy = self.names.fresh(f"{name}_copy")
            self._add(Cast(copy, name, form, type.dtype, COPIED), self._by_mode(order, modes), form)
            name, type = copy, TensorType(form, type.dtype, type.index_dtype)
        if len(groups) == len(modes) and modes == tuple(range(len(modes))):
            return name
        left = iter(modes)
        fused = Fuse(self.names.fresh(f"{tensor.name}_fused"), name, tuple(
            tuple(next(left) for _ in group) for group in groups
        ))  # fmt: skip
        self._add(fused, groups)
        return fused.target

    def _by_mode(self, stored: Sequence[str], modes: Sequence[int]) -> tuple[str, ...]:
        return tuple(index for _, index in sorted(zip(modes, stored, strict=True)))

    def _add(self, step: Step, modes: Sequence[str | Group], form: Format | None = None) -> None:
        """Add a step whose result is a dense tensor with these modes."""
        self.steps.append(step)
        self.facts[step.target] = self.dense(modes, form)

    def dense(self, modes: Sequence[str | Group], form: Format | None = None) -> Operand:
        """Return the facts of a dense tensor with these modes."""
        shape = tuple(
            [self.sizes[mode] if isinstance(mode, str) else self.count(mode) for mode in modes]
        )
        count = len(shape)
        type = self.types.get(form or count)
        if type is None:
            stored = form or Format((LETTERS["d"],) * count, tuple(range(count)))
            type = TensorType(stored, self.type.dtype, self.type.index_dtype)
            self.types[form or count] = type
        return Operand(
            type, shape, float(min(prod(shape), MOST)), None, (True,) * max(0, count - 1)
        )

    def _kernel(self, roles: Roles, left: str, right: str, target: str) -> KernelStep:
        """Return the kernel of a product of two matrices, shared by equal products."""
        self.facts[target] = facts = self.dense(roles.of_product)
        one, other = self.facts[left], self.facts[right]
        products = self.volume((*roles.indices, *roles.summed))
        large = products >= self.machine.calls.chosen_way_products
        sizes = (one.shape, other.shape) if large else ()
        classes = tuple(min(n.bit_length(), LARGEST_CLASS) for n in chain.from_iterable(sizes))
        key = (roles.shape, one.type, other.type, classes)
        like = self.kernels.get(key)
        if like is None:
            like = self.kernels[key] = self._planned(roles.shape, one, other, facts, large)
        sources = (("A", left), ("B", right))
        return KernelStep(target, like.problem, like.schedule, like.sizes, sources, like.reason)

    def _planned(
        self, shape: tuple[bool, ...], one: Operand, other: Operand, result: Operand, large: bool
    ) -> KernelStep:
        """Return a step of a kernel that multiplies matrices: its problem, its loops and its
        way."""
        assignment, loops = matrix_product(shape)
        operands = (("A", one.type), ("B", other.type))
        problem = Problem(assignment, operands, result.type)
        schedule, reason = Schedule.of_orders((loops,)), ""
        if large:
            stats = real_statistics(assignment, {"A": one, "B": other}, self.machine)
            choice = choose(Question(problem, lambda: stats, self.libraries))
            schedule, reason = schedule.with_way(choice.make), choice.reason
        return KernelStep("T", problem, schedule, _sizes(problem), (), reason)


def matrix_product(
    shape: tuple[bool, ...],
    tensors: tuple[str, str, str] = ("T", "A", "B"),
    indices: Sequence[str] = "ijkl",
    numbers: Sequence[Expr] = (),
) -> tuple[Assignment, tuple[str, ...]]:
    """Return the product of two matrices with some of four modes, and the order of its loops.

    >>> matrix_product((False, True, True, True))[1]
    ('i', 'k', 'j')

    tensors  the names of the product, of the left factor and of the right one
    indices  the names of the modes that there are: of both factors, rows, columns, summed
    numbers  further factors without indices
    """
    letters = iter(indices)
    batch, rows, columns, summed = (next(letters) if is_present else "" for is_present in shape)
    product, left, right = tensors
    value: Expr = Access(left, _present(batch, rows, summed))
    for number in numbers:
        value = Call(MUL, (number, value))
    value = Call(MUL, (value, Access(right, _present(batch, summed, columns))))
    value = Reduce(ADD, summed, value) if summed else value
    target = Access(product, _present(batch, rows, columns))
    return Assignment(target, value), _present(batch, rows, summed, columns)


def _present(*indices: str) -> tuple[str, ...]:
    return tuple(filter(None, indices))


def _sizes(problem: Problem) -> tuple[tuple[str, str, int], ...]:
    """Return for each index the last operand that has it, and its mode."""
    sources: dict[str, tuple[str, str, int]] = {}
    value = problem.assignment.value
    product = value.body if isinstance(value, Reduce) else value
    assert isinstance(product, Call)
    for access in reversed(product.args):
        assert isinstance(access, Access)
        for mode, index in enumerate(access.indices):
            sources[index] = (index, access.tensor, mode)
    return tuple(sources.values())


def options(one: Tensor, other: Tensor, summed: frozenset[str]) -> Iterator[Roles]:
    """Yield the roles with either tensor on the left and the batch indices in either's order."""
    shared = frozenset(one.stored).intersection(other.stored)
    alone = [tuple([i for i in tensor.stored if i not in shared]) for tensor in (one, other)]
    batches = [tuple([i for i in tensor.stored if i in shared]) for tensor in (one, other)]
    orders = batches[:1] if batches[0] == batches[1] else batches
    parts = [
        (
            tuple([i for i in batch_order if i not in summed]),
            tuple([i for i in batch_order if i in summed]),
        )
        for batch_order in orders
    ]
    for batch, summed_ in parts:
        yield Roles(one, other, batch, alone[0], alone[1], summed_)
    for batch, summed_ in reversed(parts):
        yield Roles(other, one, batch, alone[1], alone[0], summed_)
