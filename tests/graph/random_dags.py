"""Random graphs with random prices, and the binary program compared with brute force on them.

python -m tests.graph.random_dags 500      compare on 500 graphs of up to 10 primitives
"""

from __future__ import annotations

import sys
import time
from math import inf, isclose
from random import Random

from taco_py.graph.orchestrate.candidate_kernels import Kernel, Limits, find_candidates
from taco_py.graph.orchestrate.dag import Dag, make_dag, mask_of
from taco_py.graph.orchestrate.exact_search import search_exactly
from taco_py.graph.orchestrate.kernel_choice import Choice, Price
from taco_py.graph.orchestrate.orchestrate_graph import orchestrate
from taco_py.graph.orchestrate.partition_search import search_partitions


def random_dag(random: Random, most: int = 10) -> Dag:
    """Draw a graph: chains, wide ones and dense ones, with inputs, heavy primitives, results."""
    size = random.randint(1, most)
    reach = random.choice((2, 4, size))
    arguments = []
    for p in range(size):
        near = range(max(0, p - reach), p)
        read = random.sample(near, min(len(near), random.choice((0, 1, 1, 2, 2, 3))))
        arguments.append(tuple(read) or (~random.randrange(2),))
    unread = set(range(size)) - {a for read in arguments for a in read}
    outputs = mask_of(unread) | random.getrandbits(size) & random.getrandbits(size)
    heavy = random.getrandbits(size) & random.getrandbits(size)
    return make_dag(arguments, outputs, flags={"heavy": heavy})


def random_price(random: Random, dag: Dag) -> Price:
    """Draw prices: random ones, those of traffic and launches, or where recomputation pays."""
    seed, style = random.getrandbits(32), random.randrange(3)
    work = [random.uniform(0.01, 3) for _ in range(dag.size)]
    launch, traffic = random.uniform(0, 2), random.choice((0.1, 1.0, 10.0))

    def price(kernel: Kernel) -> float:
        own = Random(f"{seed} {kernel.members} {kernel.outputs}")
        if style == 0:
            alone = kernel.members.bit_count() == 1
            return inf if own.random() < 0.1 and not alone else own.uniform(0, 5)
        moved = (kernel.inputs | kernel.outputs).bit_count()
        share = 0.01 if style == 2 else 1.0
        computed = sum(work[p] for p in range(dag.size) if kernel.members >> p & 1)
        return 1e-6 * (launch + traffic * moved + share * computed)

    return price


def compare(random: Random, most: int = 10) -> tuple[Dag, Choice]:
    """Check on one graph that all choosers agree as they should; return the program's choice."""
    dag = random_dag(random, most)
    outputs = random.choice((1, 1, 2))
    candidates = find_candidates(dag, Limits(outputs=outputs, heavy=random.choice((1, 2))))
    price = random_price(random, dag)
    costs = {}
    for recompute in (True, False):
        own = orchestrate(dag, candidates, price, recompute=recompute, seconds=60)
        exact = search_exactly(dag, candidates, price, recompute=recompute)
        assert isclose(own.cost, exact.cost, rel_tol=1e-7, abs_tol=1e-12), (dag, own, exact)
        assert own.statistics.gap < 1e-6, own.statistics
        check_runs(dag, own)
        costs[recompute] = own
    greedy = search_partitions(dag, candidates, price)
    check_runs(dag, greedy)
    assert not costs[False].recomputed and not greedy.recomputed
    assert costs[True].cost <= costs[False].cost * (1 + 1e-9) + 1e-12
    assert costs[False].cost <= greedy.cost * (1 + 1e-9) + 1e-12
    return dag, costs[True]


def check_runs(dag: Dag, choice: Choice) -> None:
    """Check that each kernel reads what exists, and that the results are made."""
    made = 0
    for kernel in choice.kernels:
        assert kernel.inputs == dag.reads(kernel.members) and not kernel.inputs & ~made, choice
        assert kernel.outputs and not kernel.outputs & ~kernel.members
        made |= kernel.outputs
    assert not dag.outputs & ~made, choice


def main(count: int) -> None:
    start, again, rounds, slowest = time.perf_counter(), 0, 0, 0.0
    for seed in range(count):
        _, choice = compare(Random(seed))
        again += bool(choice.recomputed)
        rounds += choice.statistics.rounds > 1
        slowest = max(slowest, choice.statistics.seconds)
    spent = time.perf_counter() - start
    print(
        f"{count} graphs: program = brute force, with recomputation and without; "
        f"{again} recompute, {rounds} needed cuts; slowest program {slowest:.3f} s; {spent:.1f} s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
