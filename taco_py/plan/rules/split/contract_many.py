"""Contract a product of many dense tensors in pairs, each a product of matrices.

    y[a,l] = A[b,a]*B[b,c]*C[c,d]*D[d,e]*E[e,f]*F[f,g]*G[g,h]*H[h,i]*K[i,j]*L[j,k]*M[k,l]
    → T[i,j] = sum(k, A[i,k] * B[k,j])      of all but the last pair, with T_8 of B to M
      y[a,l] = sum(c, T[a,c] * T_8[c,l])

No other rule looks at such a product as a whole: each step is planned when it is made, by its form
(`plan.matrix_steps`), so that planning takes as long as there are factors. The order comes from
`algebra.pair_orders`, or is the user's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from math import inf

from codegen.names import Names
from codegen.records import dataclass
from taco_py.formats import dense
from taco_py.legal.stored import is_full
from taco_py.notation.checks import all_indices
from taco_py.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.notation.operators import ADD, MUL
from taco_py.plan.algebra.pair_orders import Network, Pairs, cheapest_order
from taco_py.plan.context import Context
from taco_py.plan.ir.program import Program
from taco_py.plan.matrix_steps import MatrixSteps, Roles, Tensor, matrix_product, options
from taco_py.plan.rules.base import Numbers, Outcome, Phase, Rewrite, Rule, Site, result
from taco_py.problem import TensorType

MANY_FACTORS = 10
"""Tensors in a product up to which it is planned as a whole."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Contract a product of more than ten dense tensors of one type in pairs.

    It is left to other rules where a factor is no tensor, or is sparse, where a temporary may store
    a limited number of elements only, and where a step of the user's order takes more than two.
    """
    if context.goal.memory < inf or not context.may("contract"):
        return None
    product = _product(program)
    if product is None:
        return None
    given = context.goal.path
    network = product.network(program)
    if given is not None:
        pairs = _in_pairs(given, len(product.tensors))
        if pairs is None:
            return None
        why = "the contraction order was given"
    else:
        order = cheapest_order(
            network, context.effort, context.goal.machine.dense_temporary_element_steps
        )
        pairs = order.pairs
        why = (
            f"{len(product.tensors)} tensors in pairs take about {network.products(pairs):.2g} "
            f"multiplications, the least of {order.tried} orders"
        )
    return Rewrite(_Contraction.of(program, context, product).along(pairs), why)


@dataclass(frozen=True, slots=True)
class _Product:
    """A sum of products of tensors.

    tensors  the factors that have indices
    numbers  those that have none
    """

    target: Access
    tensors: tuple[Access, ...]
    numbers: tuple[Expr, ...]

    def network(self, program: Program) -> Network:
        """The factors by their indices, but for those that one factor alone has and sums."""
        sizes = _sizes(program, self.tensors)
        alone = _alone(self.tensors, self.target)
        factors = tuple(
            tuple(i for i in tensor.indices if i not in alone) for tensor in self.tensors
        )
        return Network(factors, frozenset(self.target.indices), sizes)


def _product(program: Program) -> _Product | None:
    """The result's assignment as a product of more than ten dense tensors of its type, or None."""
    target, pending = program.last.target, [program.last.value]
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
    if len(tensors) <= MANY_FACTORS or bound & {*target.indices}:
        return None
    types = [program.facts[f.tensor].type for f in (*tensors, *numbers) if isinstance(f, Access)]
    types.append(program.result_type)
    same = {type.dtype for type in types} == {program.result_type.dtype}
    if not same or not all(is_full(type.format) for type in types):
        return None
    if any(len({*each.indices}) < len(each.indices) for each in tensors):
        return None
    return _Product(target, tuple(tensors), tuple(numbers))


def _sizes(program: Program, tensors: Sequence[Access]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for access in tensors:
        sizes.update(zip(access.indices, program.facts[access.tensor].shape, strict=True))
    return sizes


def _alone(tensors: Sequence[Access], target: Access) -> frozenset[str]:
    """The indices that one tensor alone has and the result has not."""
    met: set[str] = set(target.indices)
    alone: set[str] = set()
    for index in chain.from_iterable(tensor.indices for tensor in tensors):
        alone.discard(index) if index in met else alone.add(index)
        met.add(index)
    return frozenset(alone)


def _in_pairs(path: Sequence[tuple[int, ...]], count: int) -> Pairs | None:
    """A user's order as pairs of numbered factors; None where a step takes more than two."""
    left = list(range(count))
    pairs: list[tuple[int, int]] = []
    for step in path:
        if len(step) > 2:
            return None
        chosen = sorted(step)
        numbers = [left[place] for place in chosen]
        left = [number for place, number in enumerate(left) if place not in chosen]
        if len(numbers) == 2:
            left.append(count + len(pairs))
            pairs.append((numbers[0], numbers[1]))
        else:
            left += numbers
    return pairs


@dataclass(frozen=True, slots=True)
class _Contraction:
    """A product that is taken apart into steps."""

    program: Program
    product: _Product
    steps: MatrixSteps

    @classmethod
    def of(cls, program: Program, context: Context, product: _Product) -> _Contraction:
        """The product of a program, of which no step has been made."""
        steps = MatrixSteps(
            _sizes(program, product.tensors),
            dict(program.facts),
            program.result_type,
            Names(program.facts),
            context.goal.libraries,
        )
        return cls(program, product, steps)

    def along(self, pairs: Pairs) -> Program:
        """The program with a step for each pair, the last of which makes the result."""
        target, tensors = self.product.target, self._factors()
        holders = Counter(chain.from_iterable(tensor.stored for tensor in tensors))
        for number, (left, right) in enumerate(pairs, 1):
            one, other = tensors[left], tensors[right]
            shared = frozenset(one.stored).intersection(other.stored)
            holders.subtract(shared)
            kept = target.indices
            added = frozenset(i for i in shared if holders[i] == 1 and i not in kept)
            if number < len(pairs):
                tensors.append(self.steps.multiply(one, other, added))
        return self._finished(one, other, added)

    def _factors(self) -> list[Tensor]:
        """The factors, each summed over what no other one has."""
        alone = _alone(self.product.tensors, self.product.target)
        found = []
        for access in self.product.tensors:
            tensor = self.steps.given(access)
            own = alone.intersection(access.indices)
            found.append(self.steps.add_up(tensor, own) if own else tensor)
        return found

    def _finished(self, one: Tensor, other: Tensor, added: frozenset[str]) -> Program:
        """The program whose last assignment multiplies the last two tensors."""
        target, steps = self.product.target, self.steps
        fit = [roles for roles in options(one, other, added) if roles.indices == target.indices]
        if fit:
            return self._as_matrices(min(fit, key=steps.price))
        product = steps.multiply(one, other, added)
        value: Expr = Access(product.name, product.stored)
        for number in self.product.numbers:
            value = Call(MUL, (number, value))
        return self._with(Assignment(target, value), self.program.result_type)

    def _as_matrices(self, roles: Roles) -> Program:
        """The program whose last assignment is a product of matrices, as which the result is
        made."""
        steps, names = self.steps, Names(all_indices(self.program.last))
        left = steps.as_matrix(roles.left, roles.of_left)
        right = steps.as_matrix(roles.right, roles.of_right)
        groups = list(filter(None, (roles.both, roles.rows, roles.columns, roles.summed)))
        indices = [each[0] if len(each) == 1 else names.fresh(each[0]) for each in groups]
        tensors = (self.product.target.tensor, left, right)
        assignment, _ = matrix_product(roles.shape, tensors, indices, self.product.numbers)
        type = self.program.result_type
        if len(assignment.target.indices) < len(self.product.target.indices):
            type = replace(type, format=dense(len(assignment.target.indices)))
        return self._with(assignment, type)

    def _with(self, assignment: Assignment, type: TensorType) -> Program:
        """The program with all steps before its last assignment, whose target has a type."""
        program, target = self.program, assignment.target.tensor
        facts = {**self.steps.facts, target: replace(program.facts[target], type=type)}
        changed = program.before(target, self.steps.steps, facts)
        return changed.with_assignment(assignment)


RULE = Rule("contract_many", Phase.SPLIT, apply, result, Numbers.ROUNDS | Numbers.SPECIALS)
