"""Products of many factors: their orders, the kernels that serve them, and what planning tries.

Nothing here is timed: kernels, candidates and applications of rules are counted.
"""

from __future__ import annotations

import random
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import opt_einsum
import pytest
import scipy.sparse as sp
from opt_einsum.paths import linear_to_ssa

import taco_py as tp
from taco_py.compiler import driver
from taco_py.compiler.cost.effort import Effort
from taco_py.language.notation.einsum import parse_einsum
from taco_py.language.problem import TensorType
from taco_py.planner import search
from taco_py.planner.algebra import pair_orders
from taco_py.planner.algebra.pair_orders import Network, cheapest_order
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options, make_plan
from tests.problems import dense

Subscripts = tuple[list[str], str]


def chain(count: int) -> Subscripts:
    letters = [opt_einsum.get_symbol(k) for k in range(count + 1)]
    return [a + b for a, b in pairwise(letters)], letters[0] + letters[-1]


def tree(count: int, seed: int = 0) -> Subscripts:
    """A random tree, each of whose edges is an index."""
    draw = random.Random(seed)
    terms = [""] * count
    for place in range(1, count):
        letter, other = opt_einsum.get_symbol(place), draw.randrange(place)
        terms[place] += letter
        terms[other] += letter
    return terms, ""


def ring(count: int, seed: int = 0) -> Subscripts:
    """A ring with a chord from each third factor to a random one."""
    draw = random.Random(seed)
    terms = [
        opt_einsum.get_symbol(k) + opt_einsum.get_symbol((k + 1) % count) for k in range(count)
    ]
    for number, place in enumerate(range(0, count, 3)):
        letter = opt_einsum.get_symbol(count + number)
        terms[place] += letter
        terms[draw.choice([k for k in range(count) if k != place])] += letter
    return terms, ""


def network(subscripts: Subscripts, size: int = 3) -> Network:
    terms, result = subscripts
    sizes = {letter: size + ord(letter) % 3 for letter in "".join(terms)}
    return Network(tuple(map(tuple, terms)), frozenset(result), sizes)


def plan_of(subscripts: Subscripts, size: int = 3, **options: Any) -> Plan:
    """The plan of an einsum over dense operands, of which none is made."""
    terms, result = subscripts
    sizes = network(subscripts, size).sizes
    assignment = parse_einsum(",".join(terms) + "->" + result, tuple(map(len, terms)))
    operands = {}
    for place, term in enumerate(terms):
        shape = tuple(sizes[letter] for letter in term)
        type, joined = TensorType(dense(len(term)), "float64"), (True,) * max(0, len(term) - 1)
        operands[f"op{place}"] = Operand(type, shape, float(np.prod(shape)), None, joined)
    request = Request(TensorType(dense(len(result)), "float64"))
    return make_plan(assignment, operands, request, Options(**options))


def distinct(plan: Plan) -> int:
    return len({kernel.recipe().key for kernel in plan.kernels})


# ---------------------------------------------------------------- orders


@pytest.mark.parametrize("make", [chain, tree, ring])
@pytest.mark.parametrize("count", [11, 30, 90])
def test_an_order_takes_no_more_multiplications_than_the_usual_one(make: Any, count: int) -> None:
    terms, result = subscripts = make(count)
    known = network(subscripts)
    shapes = [tuple(known.sizes[letter] for letter in term) for term in terms]
    text = ",".join(terms) + "->" + result
    path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize="auto")
    usual = known.products(linear_to_ssa(path))
    order = cheapest_order(known, Effort(), 0.0)
    assert known.products(order.pairs) <= usual
    plan = plan_of(subscripts)
    assert f"the least of {cheapest_order(known, Effort(), 0.5).candidates} orders" in told(plan)


def told(plan: Plan) -> str:
    return " ".join(entry.reason for entry in plan.log.of("contract_many"))


def test_few_orders_are_tried_and_fewer_of_more_factors() -> None:
    assert cheapest_order(network(chain(12)), Effort(), 0.5).candidates == 2  # one knows all orders
    tried = [cheapest_order(network(ring(n)), Effort(), 0.5).candidates for n in (15, 60, 400)]
    assert tried[0] == 1 + pair_orders.MOST_TRIED
    assert cheapest_order(network(ring(13)), Effort(), 0.5).candidates == tried[0] + 1
    assert tried[0] > tried[1] > tried[2] == 1


def test_without_time_the_usual_order_is_taken() -> None:
    effort = Effort(0.0)
    assert cheapest_order(network(ring(15)), effort, 0.5).candidates == 1
    assert effort.notes == ("of 0 s ran out after 1 contraction orders of 15 operands",)


def test_with_little_time_fewer_factors_are_many() -> None:
    rng = np.random.default_rng(0)
    terms, result = ring(8)
    operands = [rng.random((2,) * len(term)) for term in terms]
    text = ",".join(terms) + "->" + result
    for budget, hurried in ((None, False), (0.1, True), (60.0, False)):
        told = tp.explain(text, *operands, schedule_budget=budget, frontier_budget=0)
        assert ("(contract_many" in told) is hurried


def test_orders_leave_the_random_numbers_of_others_alone() -> None:
    random.seed(7)
    expected = random.random()
    random.seed(7)
    first = cheapest_order(network(ring(15)), Effort(), 0.5)
    assert random.random() == expected
    assert cheapest_order(network(ring(15)), Effort(), 0.5) == first


# ---------------------------------------------------------------- plans


@pytest.mark.parametrize("count", [11, 40, 80])
def test_a_chain_of_equal_matrices_has_one_kernel(count: int) -> None:
    plan = plan_of(chain(count))
    assert len(plan.kernels) == count - 1
    assert distinct(plan) == 1


@pytest.mark.parametrize("make", [tree, ring])
@pytest.mark.parametrize("count", [20, 90])
def test_a_network_of_small_tensors_has_few_kernels(make: Any, count: int) -> None:
    plan = plan_of(make(count))
    assert len(plan.kernels) >= (count - 1) // 2  # some are made in the loops of others
    assert distinct(plan) <= 12


def test_as_many_rules_are_tried_of_a_long_product_as_of_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried_at, counts = search.tried_at, []

    def counted(*asked: Any) -> Any:
        each = (
            "fuse_epilogue",
            "fuse_slab",
            "fuse_temporary",
            "inline_temporary",
            "stream_entries",
        )  # asked of each kernel
        counts[-1] += asked[0].name not in each
        return tried_at(*asked)

    monkeypatch.setattr(search, "tried_at", counted)
    for count in (12, 90):
        counts.append(0)
        plan_of(chain(count))
    assert counts[0] == counts[1]


def test_a_given_order_is_followed() -> None:
    path = tuple((0, 1) for _ in range(11))
    plan = plan_of(chain(12), path=path)
    assert told(plan) == "the contraction order was given"
    assert [kernel.source("A") for kernel in plan.kernels][:2] == ["op0", "op2"]


def test_a_product_that_one_loop_computes_stays_whole() -> None:
    plan = plan_of((["a"] * 12, ""))
    assert len(plan.kernels) == 1
    refused = plan.log.of("contract_many", accepted=False)
    assert [entry.reason for entry in refused] == [
        "one kernel takes no more multiplications than steps of two tensors"
    ]


def test_a_rule_that_is_forbidden_leaves_it_to_others() -> None:
    rng = np.random.default_rng(0)
    terms, result = chain(11)
    operands = [rng.random((2, 2)) for _ in terms]
    text = ",".join(terms) + "->" + result
    told = tp.explain(text, *operands, forbid=("contract_many",), frontier_budget=0)
    assert "contract_many" not in told
    assert "runs      10 kernels" in told


# ---------------------------------------------------------------- sums of many products

PARTS = (
    "W[a,b,i,j]", "Fv[a,e]*T[e,b,i,j]", "Fv[b,e]*T[a,e,i,j]", "Fo[m,i]*T[a,b,m,j]",
    "Fo[m,j]*T[a,b,i,m]", "O[m,n,i,j]*T[a,b,m,n]", "V[a,b,e,f]*T[e,f,i,j]",
    "G[m,n,e,f]*T[a,e,i,m]*T[f,b,n,j]", "2*G[m,n,e,f]*S[e,i]*S[f,j]*T[a,b,m,n]",
)  # fmt: skip


@pytest.mark.parametrize("sign", [" + ", " - "])
def test_a_sum_of_many_contractions_is_computed_term_by_term(sign: str) -> None:
    rng = np.random.default_rng(0)
    orders = {"W": "abij", "Fv": "ae", "Fo": "mi", "T": "ebij", "O": "mnij", "V": "abef",
              "G": "mnef", "S": "ei"}  # fmt: skip
    sizes = {**dict.fromkeys("ijmn", 3), **dict.fromkeys("abef", 4)}
    operands = {n: rng.standard_normal([sizes[i] for i in ix]) for n, ix in orders.items()}
    text = "R[a,b,i,j] = " + sign.join(PARTS)
    expected: Any = 0.0
    for place, part in enumerate(PARTS):
        factors = [f for f in part.split("*") if "[" in f]
        subscripts = ",".join(f[f.index("[") + 1 : -1].replace(",", "") for f in factors)
        value = np.einsum(f"{subscripts}->abij", *(operands[f[: f.index("[")]] for f in factors))
        value = 2 * value if part.startswith("2") else value
        expected = expected + (value if place == 0 or sign == " + " else -value)
    np.testing.assert_allclose(tp.evaluate(text, operands), expected)
    np.testing.assert_allclose(tp.evaluate(text, operands), expected)
    shown = tp.explain(text, operands, frontier_budget=0)
    assert "8 products that are added are contracted one by one" in shown


# ---------------------------------------------------------------- results


def random_einsum(seed: int) -> tuple[str, list[Any]]:
    """An einsum of 11 to 14 operands of any shapes, layouts and one dtype."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    letters = "abcdefghijklm"[: draw.randint(6, 13)]
    sizes = {letter: draw.randint(1, 3) for letter in letters}
    terms = ["".join(draw.sample(letters, draw.randint(0, 3))) for _ in range(draw.randint(11, 14))]
    used = sorted(set("".join(terms)))
    result = "".join(draw.sample(used, min(len(used), draw.randint(0, 3))))
    dtype = draw.choice(["f8", "f4", "c16", "i8"])
    operands = []
    for term in terms:
        array = np.asarray(rng.integers(-2, 3, [sizes[i] for i in term])).astype(dtype)
        if array.ndim and draw.random() < 0.3:
            array = np.repeat(array, 2, axis=-1)[..., ::2]
        turned = array.ndim > 1 and draw.random() < 0.3
        operands.append(np.asfortranarray(array) if turned else array)
    return ",".join(terms) + "->" + result, operands


@pytest.mark.parametrize("seed", range(12))
def test_results_are_those_of_numpy(seed: int) -> None:
    text, operands = random_einsum(seed)
    expected = np.einsum(text, *operands, optimize="greedy")
    for _ in range(2):
        np.testing.assert_allclose(tp.einsum(text, *operands), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("format", ["csr", "coo"])
def test_some_factors_may_be_sparse(format: str) -> None:
    terms, result = chain(12)
    rng = np.random.default_rng(0)
    arrays = [rng.random((4, 4)) * (rng.random((4, 4)) < 0.7) for _ in terms]
    operands = [sp.csr_array(a).asformat(format) if k % 3 else a for k, a in enumerate(arrays)]
    found = tp.einsum(",".join(terms) + "->" + result, *operands)
    np.testing.assert_allclose(found, reduce(np.matmul, arrays))


def test_numbers_among_the_factors_multiply_the_result() -> None:
    rng = np.random.default_rng(0)
    matrices = {f"M{k}": rng.random((2, 2)) for k in range(11)}
    product = " * ".join(f"M{k}[i{k},i{k + 1}]" for k in range(11))
    found = tp.evaluate(f"R[i0,i11] = 2 * A * {product}", {**matrices, "A": np.float64(3.0)})
    np.testing.assert_allclose(found, 6 * reduce(np.matmul, matrices.values()))


def test_a_thousand_operands() -> None:
    rng = np.random.default_rng(0)
    matrices = [np.eye(2) + 0.01 * rng.random((2, 2)) for _ in range(1000)]
    asked = [each for k, matrix in enumerate(matrices) for each in (matrix, [k, k + 1])]
    found = tp.einsum(*asked, [0, 1000])
    np.testing.assert_allclose(found, reduce(np.matmul, matrices))
    text = "R[i0,i300] = " + " * ".join(f"M{k}[i{k},i{k + 1}]" for k in range(300))
    found = tp.evaluate(text, {f"M{k}": matrices[k] for k in range(300)})
    np.testing.assert_allclose(found, reduce(np.matmul, matrices[:300]))


def test_any_letters_are_subscripts() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.random((2, 3)), rng.random((3, 4))
    for i, j, k in ("äßж", "αβγ", "甲乙丙", "aÀ÷"):
        np.testing.assert_allclose(tp.einsum(f"{i}{j},{j}{k}->{i}{k}", A, B), A @ B)
    np.testing.assert_allclose(tp.einsum("βα,βγ", A.T.T, A[:, :3]), tp.einsum("ba,bc", A, A))


def test_any_integers_are_labels() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.random((2, 3)), rng.random((3, 4))
    np.testing.assert_allclose(tp.einsum(A, [70, 100], B, [100, 60], [70, 60]), A @ B)
    np.testing.assert_allclose(tp.einsum(A, [70, 100], B, [100, 60]), (A @ B).T)


# ---------------------------------------------------------------- path=


def test_evaluate_takes_a_path() -> None:
    rng = np.random.default_rng(0)
    A, B, x = rng.random((3, 4)), rng.random((4, 5)), rng.random(5)
    text = "y[i] = A[i,j] * B[j,k] * x[k]"
    for path in ([(0, 1), (0, 1)], [(1, 2), (0, 1)], [(0, 1, 2)]):
        np.testing.assert_allclose(tp.evaluate(text, A=A, B=B, x=x, path=path), A @ B @ x)
    first = tp.explain(text, A=A, B=B, x=x, path=[(0, 1), (0, 1)], frontier_budget=0)
    assert "the contraction order was given" in first
    path, _ = np.einsum_path("ij,jk,k->i", A, B, x, optimize="optimal")
    for each in (path, tuple(path), path[1:]):
        np.testing.assert_allclose(tp.evaluate(text, A=A, B=B, x=x, path=each), A @ B @ x)
        told = tp.explain(text, A=A, B=B, x=x, path=each, frontier_budget=0)
        assert "the contraction order was given" in told
        np.testing.assert_allclose(tp.einsum("ij,jk,k->i", A, B, x, optimize=each), A @ B @ x)


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("y[i] = A[i,j] * x[j] + x[i]", [(0, 1)], "Expected a product of tensors where path="),
        ("y[i] = A[i,j] * x[j]", "greedy", "Expected path to be a list of pairs"),
        ("y[i] = A[i,j] * x[j]", ["einsum", (0, 1)], "Expected path to be a list of pairs"),
        ("y[i] = A[i,j] * x[j]", (["einsum_path", (0, 1)], "cost"), r"numpy.einsum_path\(…\)\[0\]"),
        ("y[i] = A[i,j] * x[j]", [(0, 2)], "in contraction 0 of path"),
        ("y[i] = A[i,j] * x[j] * x[i]", [(0, 1)], "Expected contractions in path that leave one"),
    ],
)
def test_what_is_no_path(text: str, path: Any, message: str) -> None:
    with pytest.raises(tp.NotationError, match=message):
        tp.evaluate(text, A=np.eye(2), x=np.ones(2), path=path)


# ---------------------------------------------------------------- compiling


def test_equal_kernels_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def compiled(recipe: Any, cache: Any) -> str:
        asked.append(recipe.key)
        return recipe.key

    monkeypatch.setattr(driver, "compile_recipe", compiled)
    plan = plan_of(ring(40))
    recipes = [kernel.recipe() for kernel in plan.kernels]
    assert list(driver.compile_recipes(recipes)) == [recipe.key for recipe in recipes]
    assert len(asked) == len(set(asked)) == distinct(plan)
