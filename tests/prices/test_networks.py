"""Plans as trees and graphs, networks over them, and files that are none."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.call.prepare import prepare_computation
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.planner.ir.plan import Plan
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.networks.form_plans import PlanFormer
from taco_py.tuning.networks.kernel_nest import KernelNest
from taco_py.tuning.networks.nest_vectors import LOOP_NAMES, STATEMENT_NAMES
from taco_py.tuning.networks.network import ARCHITECTURES, Network
from taco_py.tuning.networks.plan_arrays import PlanForms, join_plans
from taco_py.tuning.networks.train_network import (
    LOSSES,
    MeasuredProgram,
    Training,
    torch_operations,
    trained_network,
)
from taco_py.tuning.networks.tree_and_graph import OPCODES, KernelForm
from taco_py.tuning.prices.kernel_features import KernelFacts
from taco_py.tuning.prices.model_file import Origin

rng = np.random.default_rng(0)
A = sp.random_array((300, 200), density=0.05, format="csr", rng=rng)
CALLS: dict[str, dict[str, Any]] = {
    "y[i] = A[i,j] * x[j]": {"A": A, "x": rng.random(200)},
    "C[i,j] = A[i,k] * B[k,j]": {"A": A, "B": A.T.tocsr()},
    "C[i,k] = X[i,j] * Y[j,k]": {"X": rng.random((40, 50)), "Y": rng.random((50, 30))},
    "C[i,j] = A[i,j] + B[i,j]": {"A": A, "B": A[::-1].tocsr()},
    "s[i] = sum(j, A[i,j]); y[i,j] = A[i,j] / s[i]": {"A": A},
}


@cache
def call_of(text: str) -> CallSpace:
    return space_of(tunable(text, CALLS[text], {"threads": 2}))


def some_plans(text: str, most: int = 40) -> list[Plan]:
    """The plans of a call that differ from the usual one in an option."""
    call, plans = call_of(text), list[Plan]()
    for point in ((), *call.space.neighbours(())):
        try:
            plan = call.space.plan(point)
            PlanFormer(call.priced).forms((plan,))
        except tp.ScheduleError:
            continue
        plans.append(plan)
    return plans[:most]


@cache
def forms_of(text: str) -> PlanForms:
    return PlanFormer(call_of(text).priced).forms(some_plans(text))


def drawn_network(kind: str, seed: int = 0, prior: float = 1.0) -> Network:
    """A network of drawn weights, whose features are counted as those of all calls are."""
    numbers, architecture = np.random.default_rng(seed), ARCHITECTURES[kind]
    fixed = architecture.statistics(join_plans([forms_of(text) for text in CALLS]))
    weights = {
        name: fixed[name] if name in fixed else numbers.standard_normal(shape) / shape[0] ** 0.5
        for name, shape in architecture.shapes().items()
    }
    weights["prior"] = np.array([prior])
    return Network(kind, {name: array.astype(np.float32) for name, array in weights.items()})


# ---------------------------------------------------------------- forms


@pytest.mark.parametrize("text", CALLS)
def test_trees_and_graphs_are_whole(text: str) -> None:
    for form in forms_of(text).forms:
        assert form.loop_parent[0] == -1
        assert (form.loop_parent[1:] < np.arange(1, len(form.loops))).all()
        assert (form.statement_parent >= 0).all()
        assert (form.statement_parent < len(form.loops)).all()
        assert form.statements.shape[1] == len(STATEMENT_NAMES)
        assert ((form.edges >= 0) & (form.edges < len(form.nodes))).all()
        assert (form.nodes[:, : len(OPCODES)].sum(axis=1) == 1).all()
        assert _is_connected(form)
        assert all(np.isfinite(part).all() for part in (form.loops, form.statements, form.nodes))


def _is_connected(form: KernelForm) -> bool:
    """Whether each operation is in a loop or hangs together with the others."""
    met = {0}
    for _ in range(len(form.nodes)):
        met |= {int(n) for edge in form.edges for n in edge if met & {*map(int, edge)}}
    return len(met) == len(form.nodes)


@pytest.mark.parametrize(
    "commands",
    [
        "reorder(i,j,k)",
        "reorder(i,k,j), split(i,io,ii,8), split(k,ko,ki,16), reorder(io,ko,ii,ki,j)",
        "reorder(i,j,k), divide(j,jo,ji,5), reorder(jo,i,ji,k)",
    ],
)
def test_loops_of_dense_kernels_make_as_many_iterations_as_there_are(commands: str) -> None:
    X, Y = rng.random((40, 32)), rng.random((32, 30))
    computation = tunable("C[i,j] = X[i,k] * Y[k,j]", {"X": X, "Y": Y}, {})
    options = replace(computation.options, schedule=Schedule.parse(commands))
    plan = prepare_computation(computation.with_options(options)).plan
    (step,) = plan.kernels
    priced = space_of(computation).priced
    operands = {name: priced.operands[name] for name in ("X", "Y")}
    nest = KernelNest(KernelFacts(step, operands, priced.machine, 1.0, 1))
    nests = [nest.enclosing(statement.parent) for statement in nest.statements]
    assert prod(loop.trips for loop in max(nests, key=len)) == pytest.approx(40 * 32 * 30)


def test_loops_over_lists_make_as_many_iterations_as_there_are_entries() -> None:
    form = forms_of("y[i] = A[i,j] * x[j]").forms[0]
    trips = form.loops[1:, LOOP_NAMES.index("trips")]
    assert 2.0 ** trips.sum() == pytest.approx(A.nnz, rel=1e-3)


# ---------------------------------------------------------------- networks


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_torch_and_numpy_compute_the_same(kind: str, prior: float) -> None:
    torch = pytest.importorskip("torch")
    network, architecture = drawn_network(kind, 1, prior), ARCHITECTURES[kind]
    arrays = architecture.arrays(join_plans([forms_of(text) for text in CALLS]))
    tensors = {name: torch.from_numpy(np.asarray(array)) for name, array in arrays.items()}
    weights = {name: torch.from_numpy(array) for name, array in network.weights.items()}
    by_torch = architecture.forward(weights, tensors, torch_operations(0.0)).numpy()
    seconds = network.seconds(join_plans([forms_of(text) for text in CALLS]))
    np.testing.assert_allclose(seconds, np.exp2(by_torch.astype(float)) * 1e-6, rtol=2e-4)
    assert len({*np.round(by_torch, 2)}) > 10


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_plan_is_priced_alike_alone_and_among_others(kind: str) -> None:
    network, text = drawn_network(kind, 2), "C[i,j] = A[i,k] * B[k,j]"
    plans, former = some_plans(text, 12), PlanFormer(call_of(text).priced)
    every = network.seconds(
        join_plans([forms_of(other) for other in CALLS] + [former.forms(plans)])
    )
    alone = [network.seconds(former.forms((plan,)))[0] for plan in plans]
    np.testing.assert_allclose(every[-len(plans) :], alone, rtol=1e-4)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_calls_are_ranked_by_a_network(kind: str) -> None:
    text = "y[i] = A[i,j] * x[j]"
    rows = tp.rank(text, CALLS[text], price=drawn_network(kind), limit=8)
    seconds = [row.seconds for row in rows]
    assert seconds == sorted(seconds) and len({*seconds}) > 1
    assert all(row.unsure for row in rows)


@pytest.mark.parametrize("search", ["beam", "mcts"])
def test_calls_are_tuned_by_a_network(search: str) -> None:
    text, network = "y[i] = A[i,j] * x[j]", drawn_network("tree")
    with tp.TuningStore() as store:
        best = tp.tune(
            text, CALLS[text], trials=2, seconds=3, search=search, price=network, store=store
        )
    assert best.trials >= 1 and best.speedup >= 1.0
    with pytest.raises(tp.OperandTypeError, match="Expected price"):
        tp.tune(text, CALLS[text], price="dear")


# ---------------------------------------------------------------- training


def with_unrolled(text: str) -> list[Plan]:
    """Some plans of a call, half of them with an unrolled loop."""
    space = call_of(text).space
    points = ((), *space.neighbours(()))
    halves = [
        [p for p in points if any("unroll" in option for _, option in p) is half]
        for half in (False, True)
    ]
    return [space.plan(point) for half in halves for point in half[:9]]


@cache
def measured_programs() -> tuple[MeasuredProgram, ...]:
    """Programs whose plans take a quarter of their price where a loop is unrolled."""
    unroll, programs = LOOP_NAMES.index("unroll"), []
    for text in ("y[i] = A[i,j] * x[j]", "C[i,j] = A[i,k] * B[k,j]"):
        plans = PlanFormer(call_of(text).priced).forms(with_unrolled(text))
        is_unrolled = [form.loops[:, unroll].max() > 0 for form in plans.forms]
        assert any(is_unrolled) and not all(is_unrolled)
        factors = np.where(is_unrolled, 0.25, 1.0) * 1e3
        seconds = [(plans.seconds * factors)[[*kernels]].sum() for kernels in plans.kernels]
        programs.append(MeasuredProgram(plans, plans.rest + np.array(seconds)))
    return tuple(programs)


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("loss", LOSSES)
def test_what_pays_is_learned_from_times(kind: str, loss: str) -> None:
    pytest.importorskip("torch")
    training = Training(loss, epochs=120, batch=1, dropout=0.0, rate=2e-3)
    network = trained_network(kind, measured_programs(), training, Origin())
    for program in measured_programs():
        expected, measured = network.seconds(program.plans), program.seconds
        is_slower = measured[:, None] > 1.2 * measured[None, :]
        assert is_slower.any()
        assert (expected[:, None] > expected[None, :])[is_slower].mean() > 0.8


def test_one_program_is_too_few() -> None:
    with pytest.raises(tp.TuningStoreError, match="2 programs at least, found 1"):
        trained_network("tree", measured_programs()[:1], Training(), Origin())


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_networks_come_back_from_small_files(kind: str, tmp_path: Path) -> None:
    network = drawn_network(kind, 3)
    network.save(tmp_path / "n.npz")
    assert (tmp_path / "n.npz").stat().st_size < 1_000_000
    again = tp.load_price(tmp_path / "n.npz")
    assert isinstance(again, Network) and again.kind == kind
    plans = forms_of("C[i,j] = A[i,k] * B[k,j]")
    np.testing.assert_array_equal(again.seconds(plans), network.seconds(plans))


def _header(**words: Any) -> Any:
    def change(arrays: dict[str, Any]) -> None:
        about = json.loads(str(arrays["about"]))
        arrays["about"] = np.array(json.dumps({**about, **words}))

    return change


DAMAGES = {
    "a weight is missing": lambda a: a.pop("weight loop 1.bias"),
    "a weight has another shape": lambda a: a.update({"weight prior": np.zeros(2, np.float32)}),
    "a weight has another type": lambda a: a.update({"weight prior": np.zeros(1)}),
    "a weight is no number": lambda a: a["weight loop 1.bias"].__setitem__(0, np.nan),
    "a spread of nothing": lambda a: a["weight loops.spread"].__setitem__(0, 0.0),
    "another version": _header(version=9),
    "another kind": _header(kind="graph"),
    "no kind": _header(kind=["tree"]),
    "other features": _header(features=["cost"]),
    "an origin of other words": _header(origin={"place": "here"}),
    "no header": lambda a: a.pop("about"),
    "a header of something else": lambda a: a.update(about=np.array("[]")),
    "objects": lambda a: a.update({"weight prior": np.array([{}], object)}),
    "much that is no weight": lambda a: a.update(more=np.zeros(1 << 20)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_files_that_are_no_networks_are_refused(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "n.npz"
    drawn_network("tree", 4).save(path)
    with np.load(path) as file:
        arrays = {name: file[name].copy() for name in file.files}
    DAMAGES[damage](arrays)
    np.savez_compressed(path, **arrays)
    with pytest.raises(tp.FileFormatError):
        tp.load_price(path)


@pytest.mark.parametrize("damage, message", [
    (_header(version=9), "Expected version 1 of a network, tree or graph, found version 9"),
    (_header(kind="forest"), "Expected version 1 of a network, tree or graph, found version 1"),
    (_header(features=["cost"]), "Expected the features of this release"),
])  # fmt: skip
def test_what_is_wrong_with_a_network_is_told(damage: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "n.npz"
    drawn_network("graph", 4).save(path)
    with np.load(path) as file:
        arrays = {name: file[name].copy() for name in file.files}
    damage(arrays)
    np.savez_compressed(path, **arrays)
    with pytest.raises(tp.FileFormatError, match=message):
        tp.load_price(path)


def test_truncated_networks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.npz"
    drawn_network("tree", 5).save(path)
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(tp.FileFormatError, match="one that is cut off"):
            tp.load_price(path)
