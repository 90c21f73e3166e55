"""Contract products of tensors in pairs where there are many, dense ones as products of matrices.

    y[a,l] = A[b,a]*B[b,c]*C[c,d]*D[d,e]*E[e,f]*F[f,g]*G[g,h]*H[h,i]*K[i,j]*L[j,k]*M[k,l]
    → T[i,j] = sum(k, A[i,k] * B[k,j])      of all but the last pair, with T_8 of B to M
      y[a,l] = sum(c, T[a,c] * T_8[c,l])

No other rule looks at such a product as a whole: each step is planned when it is made, by its form
(`plan.matrix_steps`), so that planning takes as long as there are factors, and few kernels are
compiled. The order comes from `algebra.pair_orders`, or is the user's. So it is with a sum of many
contractions, which one kernel of as many loop nests would take seconds to compile for:

    R[a,b,i,j] = W[a,b,i,j] + sum(e, F[a,e] * T[e,b,i,j]) + …     the amplitudes of CCSD
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from math import inf

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.terms import map_terms, split_terms, summed
from taco_py.language.formats import dense
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import all_indices, free_indices
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL
from taco_py.language.problem import TensorType
from taco_py.planner.algebra.contraction_trees import best_pairs
from taco_py.planner.algebra.pair_orders import Network, Pairs, cheapest_order
from taco_py.planner.algebra.products import Product
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.matrix_steps import MatrixSteps, Roles, Tensor, matrix_product, options
from taco_py.planner.rules.base import (
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
    result,
)
from taco_py.planner.temporaries import with_temporary

MANY_FACTORS = 10
"""Tensors in a product up to which it is planned as a whole."""
FEW_FACTORS, PLAN_SECONDS = 4, 0.04
"""The same where there is less time than it takes for each tensor to plan them as a whole."""
MANY_TERMS = 6
"""Contractions in a sum up to which they may be loops of one kernel, which then takes a second or
more to compile."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Contract a product of very many tensors in pairs.

    It is left to other rules where a factor is no tensor or has another type, where a temporary may
    store a limited number of elements only, and where a step of the user's order takes more than
    two. Steps of sparse tensors are planned as every assignment is.
    """
    if context.goal.memory < inf:
        return None
    value = program.last.value
    if len(split_terms(value)) > 1:
        return _each_term(program, context)
    product = _product(program, value)
    if product is None or not product.summed or not _is_many(len(product.tensors), context):
        return None
    ordered = _ordered(program, context, product, context.goal.path)
    if ordered is None:
        return None
    pairs, reason = ordered.pairs, ordered.reason
    if not product.is_full(program):
        return Rewrite(_in_turn(program, context, product, pairs, reason), reason)
    one_kernel = product.network(program).volume(product.indices) * (len(product.tensors) - 1)
    if one_kernel <= ordered.products:
        return Refusal("one kernel takes no more multiplications than steps of two tensors")
    return Rewrite(_Contraction.of(program, context, [product]).contract(product, pairs), reason)


def _is_many(count: int, context: Context) -> bool:
    """Tell whether a product has too many tensors to plan it as one, or too little time."""
    seconds = context.effort.seconds
    hurried = seconds is not None and seconds < PLAN_SECONDS * count
    return count > (FEW_FACTORS if hurried else MANY_FACTORS)


def _each_term(program: Program, context: Context) -> Outcome:
    """Contract each product of a sum with many products."""
    if context.goal.path is not None:
        return None
    products: list[_Product] = []

    def note(expr: Expr) -> Expr:
        product = _product(program, expr) if isinstance(expr, Reduce) else None
        if product is not None and len(product.tensors) > 1 and product.is_full(program):
            products.append(product)
        return expr

    map_terms(program.last.value, note)
    if len(products) <= MANY_TERMS:
        return None
    contraction = _Contraction.of(program, context, products)
    values: dict[int, Expr] = {}
    for product in products:
        order = _ordered(program, context, product, None)
        assert order is not None
        values[id(product.value)] = contraction.term(product, order.pairs)
    value = map_terms(program.last.value, lambda expr: values.get(id(expr), expr))
    contracted = contraction.before(replace(program.last, value=value), program.result_type)
    return Rewrite(contracted, f"{len(products)} products that are added are contracted one by one")


@dataclass(frozen=True, slots=True)
class _Order:
    """The pairs to contract, and why these.

    products  what they multiply, where one kernel could be better; else 0
    """

    pairs: Pairs
    reason: str = ""
    products: float = 0.0


def _ordered(
    program: Program, context: Context, product: _Product, path: Sequence[tuple[int, ...]] | None
) -> _Order | None:
    """Return the order of a product; None where the given path has steps of more than two."""
    count = len(product.tensors)
    if path is not None:
        pairs = _in_pairs(path, count)
        return None if pairs is None else _Order(pairs, "the contraction order was given")
    if count == 2:
        return _Order(((0, 1),))
    if not product.is_full(program):
        stats = context.statistics(program, product.value)
        factors, output = Product(MUL, product.tensors), tuple(product.target.indices)
        best = best_pairs(stats, factors, output, context.effort)
        reason = f"{count} tensors in pairs, by the nonzeros that are expected"
        return _Order(tuple((a, b) for a, b in best), reason)
    steps = context.goal.machine.copies.dense_temporary_element_steps
    order = cheapest_order(product.network(program), context.effort, steps)
    least = f"{order.products:.2g} multiplications, the least of {order.candidates}"
    reason = f"{count} tensors in pairs take about {least} orders"
    return _Order(order.pairs, reason, order.products)


@dataclass(frozen=True, slots=True)
class _Product:
    """A sum of products of tensors.

    value    all of it
    tensors  the factors that have indices
    numbers  those that have none
    """

    value: Expr
    target: Access
    tensors: tuple[Access, ...]
    numbers: tuple[Expr, ...]

    def network(self, program: Program) -> Network:
        """Return the network of the factors, without indices that one factor sums alone."""
        sizes = _sizes(program, self.tensors)
        alone = _alone(self.tensors, self.target)
        factors = tuple(
            tuple(i for i in tensor.indices if i not in alone) for tensor in self.tensors
        )
        return Network(factors, frozenset(self.target.indices), sizes)

    @property
    def indices(self) -> frozenset[str]:
        """Return all indices of the tensors."""
        return frozenset(chain.from_iterable(tensor.indices for tensor in self.tensors))

    @property
    def summed(self) -> frozenset[str]:
        """Return the indices that the target does not have."""
        return self.indices.difference(self.target.indices)

    def is_full(self, program: Program) -> bool:
        """Tell whether all tensors, the result included, store every coordinate."""
        names = (self.target.tensor, *(tensor.tensor for tensor in self.tensors))
        return all(is_full(program.facts[name].type.format) for name in names)

    def times_numbers(self, access: Access) -> Expr:
        """Multiply the product of the other factors by the factors without indices."""
        value: Expr = access
        for number in self.numbers:
            value = Call(MUL, (number, value))
        return value


def _product(program: Program, value: Expr) -> _Product | None:
    """Return a value as a sum of products of tensors of the result's type; else None."""
    target, pending = program.last.target, [value]
    tensors: list[Access] = []
    numbers: list[Expr] = []
    bound: set[str] = set()
    while pending:
        match pending.pop():
            case Access(_, indices) as access:
                tensors.append(access) if indices else numbers.append(access)
            case Literal() as literal:
                numbers.append(literal)
            case Call(operator, args) if operator == MUL:
                pending.extend(reversed(args))
            case Reduce(operator, index, body) if operator == ADD and index not in bound:
                bound.add(index)
                pending.append(body)
            case _:
                return None
    if bound & {*target.indices}:
        return None
    types = [program.facts[f.tensor].type for f in (*tensors, *numbers) if isinstance(f, Access)]
    types.append(program.result_type)
    if {type.dtype for type in types} != {program.result_type.dtype}:
        return None
    if any(len({*tensor.indices}) < len(tensor.indices) for tensor in tensors):
        return None
    return _Product(value, target, tuple(tensors), tuple(numbers))


def _in_turn(
    program: Program, context: Context, product: _Product, pairs: Pairs, reason: str
) -> Program:
    """Return the program with a step for each pair of tensors, which may be sparse."""
    output, tensors = frozenset(product.target.indices), list(product.tensors)
    holders = Counter(chain.from_iterable(tensor.indices for tensor in tensors))
    for left, right in pairs[:-1]:
        pair = tensors[left], tensors[right]
        holders.subtract(chain.from_iterable(tensor.indices for tensor in pair))
        product_ = Call(MUL, pair)
        keep = tuple(i for i in free_indices(product_) if i in output or holders[i])
        holders.update(keep)
        program, access = with_temporary(program, context, product_, keep, reason)
        tensors.append(access)
    left, right = pairs[-1]
    last = Call(MUL, (product.times_numbers(tensors[left]), tensors[right]))
    value = summed(last, (index for index in free_indices(last) if index not in output))
    return program.with_assignment(replace(program.last, value=value))


def _sizes(program: Program, tensors: Sequence[Access]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for access in tensors:
        sizes.update(zip(access.indices, program.facts[access.tensor].shape, strict=True))
    return sizes


def _alone(tensors: Sequence[Access], target: Access) -> frozenset[str]:
    """Return the indices of exactly one tensor that the result lacks."""
    repeated: set[str] = set(target.indices)
    alone: set[str] = set()
    for index in chain.from_iterable(tensor.indices for tensor in tensors):
        alone.discard(index) if index in repeated else alone.add(index)
        repeated.add(index)
    return frozenset(alone)


def _in_pairs(path: Sequence[tuple[int, ...]], count: int) -> Pairs | None:
    """Return a path as pairs of numbered factors; None where a step has more than two."""
    left = list(range(count))
    pairs: list[tuple[int, int]] = []
    for step in path:
        if len(step) > 2:
            return None
        places = sorted(step)
        numbers = [left[place] for place in places]
        left = [number for place, number in enumerate(left) if place not in places]
        if len(numbers) == 2:
            left.append(count + len(pairs))
            pairs.append((numbers[0], numbers[1]))
        else:
            left += numbers
    return pairs


@dataclass(frozen=True, slots=True)
class _Contraction:
    """A program whose products are taken apart into steps."""

    program: Program
    steps: MatrixSteps

    @classmethod
    def of(cls, program: Program, context: Context, products: Sequence[_Product]) -> _Contraction:
        """Return the contraction of some products before its first step."""
        tensors = [tensor for product in products for tensor in product.tensors]
        steps = MatrixSteps(
            _sizes(program, tensors),
            dict(program.facts),
            program.result_type,
            Names(program.facts),
            context.goal.libraries,
            context.goal.machine,
        )
        return cls(program, steps)

    def contract(self, product: _Product, pairs: Pairs) -> Program:
        """Return the program whose last assignment multiplies the last pair of a product."""
        target = product.target
        one, other, summed = self._last_pair(product, pairs)
        fit = [roles for roles in options(one, other, summed) if roles.indices == target.indices]
        if fit:
            return self._as_matrices(product, min(fit, key=self.steps.price))
        result = self.steps.multiply(one, other, summed)
        value = product.times_numbers(Access(result.name, result.stored))
        return self.before(Assignment(target, value), self.program.result_type)

    def term(self, product: _Product, pairs: Pairs) -> Expr:
        """Add the steps of a product of a sum, and return the value in its place."""
        result = self.steps.multiply(*self._last_pair(product, pairs), product.target.indices)
        return product.times_numbers(Access(result.name, result.stored))

    def _last_pair(self, product: _Product, pairs: Pairs) -> tuple[Tensor, Tensor, frozenset[str]]:
        """Return the two operands of the last step, and its summed indices."""
        output, tensors = product.target.indices, self._factors(product)
        holders = Counter(chain.from_iterable(tensor.stored for tensor in tensors))
        for number, (left, right) in enumerate(pairs, 1):
            one, other = tensors[left], tensors[right]
            shared = frozenset(one.stored).intersection(other.stored)
            holders.subtract(shared)
            summed = frozenset(i for i in shared if holders[i] == 1 and i not in output)
            if number < len(pairs):
                tensors.append(self.steps.multiply(one, other, summed))
        return one, other, summed

    def _factors(self, product: _Product) -> list[Tensor]:
        """Return the factors, each summed over the indices that only it has."""
        alone = _alone(product.tensors, product.target)
        factors = []
        for access in product.tensors:
            tensor = self.steps.tensor_of(access)
            summed = alone.intersection(access.indices)
            factors.append(self.steps.add_up(tensor, summed) if summed else tensor)
        return factors

    def _as_matrices(self, product: _Product, roles: Roles) -> Program:
        """Return the program whose last assignment is the product of matrices of the result."""
        steps, names = self.steps, Names(all_indices(self.program.last))
        left = steps.as_matrix(roles.left, roles.of_left)
        right = steps.as_matrix(roles.right, roles.of_right)
        groups = list(filter(None, (roles.batch, roles.rows, roles.columns, roles.summed)))
        indices = [group[0] if len(group) == 1 else names.fresh(group[0]) for group in groups]
        tensors = (product.target.tensor, left, right)
        assignment, _ = matrix_product(roles.shape, tensors, indices, product.numbers)
        type = self.program.result_type
        if len(assignment.target.indices) < len(product.target.indices):
            type = replace(type, format=dense(len(assignment.target.indices)))
        return self.before(assignment, type)

    def before(self, assignment: Assignment, type: TensorType) -> Program:
        """Return the program with all steps before its last assignment, whose target has `type`."""
        program, target = self.program, assignment.target.tensor
        facts = {**self.steps.facts, target: replace(program.facts[target], type=type)}
        extended = program.before(target, self.steps.steps, facts)
        return extended.with_assignment(assignment)


RULE = Rule(
    "contract_many",
    Phase.SPLIT,
    apply,
    result,
    Numbers.ROUNDS | Numbers.SPECIALS,
    traits=Trait.KERNELS | Trait.INDICES | Trait.RESULT,
    part_of="contract",
)
