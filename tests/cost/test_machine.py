"""The machine as an argument: other machines get other plans, and nobody else has its numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.compiler.order.orders import best_order
from taco_py.compiler.ways.library_choice import Libraries
from taco_py.language.notation.checks import all_indices
from taco_py.language.problem import Problem
from taco_py.planner.ir.goal import Request, statistics
from taco_py.planner.ir.nodes import KernelStep, Operand, Step
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options, make_plan
from tests.problems import operands, problem

SOURCE = Path(__file__).parents[2] / "taco_py"


def planned(known: Problem, given: dict[str, Operand], machine: Machine) -> Plan:
    request = Request(known.result, machine=machine, sized=True)
    return make_plan(known.assignment, given, request)


def steps_of(plan: Plan) -> str:
    """The copies by their formats, and the kernels by their loops or the way they are made."""
    return " ".join(map(_step, plan.steps))


def _step(step: Step) -> str:
    if not isinstance(step, KernelStep):
        return f"{step.source}:{getattr(step, 'format', '')}"
    way = step.schedule.make.way
    return "".join(step.schedule.orders[0]) if way == "loops" else way


@dataclass(frozen=True, slots=True)
class Choice:
    """A plan, and what it becomes on a machine where some fields differ."""

    text: str
    names: dict[str, str]
    before: str
    fields: dict[str, Any]
    after: str
    result: str | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    entries: dict[str, float] = field(default_factory=dict)


CHOICES = {
    "hash workspaces a hundred times dearer": Choice(
        "C[i,j] = T[k,i,j] * v[k]", {"T": "CSF"},
        "kij C:ss", {"hash_workspace_steps": 1000.0}, "T:sss:1,2,0 ijk",
        "DCSR", {"i": 30, "j": 30, "k": 100_000}, {"T": 1e6},
    ),
    "no vectors": Choice(
        "Y[i,f] = A[i,j] * X[f,j]", {"A": "CSR"},
        "X:dd:1,0 ijf", {"vector_steps": 1.0}, "ijf",
        None, {"f": 8}, {"A": 2000.0},
    ),
    "temporaries that cost a second an element": Choice(
        "y[i] = A[i,j] * B[j,k] * x[k]", {"A": "CSR", "B": "CSR"},
        "ij ij", {"temporary_entry_steps": 1e9, "dense_temporary_element_steps": 1e9}, "ijk",
    ),
    "tiles never pay": Choice(
        "C[i,j] = A[i,k] * B[k,j]", {},
        "tiles", {"tile_reuse_products": 1e9}, "ikj",
        None, dict.fromkeys("ijk", 64),
    ),
}  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_another_machine_gets_another_plan(choice: Choice) -> None:
    known = problem(choice.text, choice.names, choice.result)
    given = operands(known, choice.sizes, choice.entries)
    assert steps_of(planned(known, given, NOMINAL)) == choice.before
    assert steps_of(planned(known, given, NOMINAL.with_costs(**choice.fields))) == choice.after


def test_machines_do_not_meet_in_one_memo() -> None:
    known = problem("C[i,j] = T[k,i,j] * v[k]", {"T": "CSF"}, "DCSR")
    given = operands(known, {"i": 30, "j": 30, "k": 100_000}, {"T": 1e6})
    (term,) = split_terms(known.assignment.value)
    effort, dear = Effort(), NOMINAL.with_costs(hash_workspace_steps=1000.0)
    orders = [
        best_order(known, term, statistics(known.assignment, given, machine), effort).order
        for machine in (NOMINAL, dear, Machine())
    ]
    assert orders == [("k", "i", "j"), ("i", "j", "k"), ("k", "i", "j")]


# ---------------------------------------------------------------- nobody else has its numbers


@contextmanager
def without_nominal() -> Iterator[Machine]:
    """An equal machine, while `NOMINAL` has no numbers."""
    values = {f.name: getattr(NOMINAL, f.name) for f in fields(Machine) if f.name != "target"}
    try:
        for name in values:
            object.__setattr__(NOMINAL, name, None)
        yield Machine()
    finally:
        for name, value in values.items():
            object.__setattr__(NOMINAL, name, value)


PLANNED: tuple[tuple[str, dict[str, str]], ...] = (
    ("y[i] = A[i,j] * x[j]", {"A": "CSR"}),
    ("y[i] = A[i,j] * x[j]", {"A": "COO", "x": "s"}),
    ("y[i] = A[i,j] * x[j]", {"A": "DCSR", "x": "s"}),
    ("C[i,j] = A[i,k] * B[k,j]", {}),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "CSC", "B": "CSR"}),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "COO", "B": "DCSR"}),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSC"}),
    ("D[i,l] = A[i,j] * B[j,k] * C[k,l]", dict.fromkeys("ABC", "CSR")),
    ("D[i,l] = A[i,j] * B[j,k] * C[k,l]", {}),
    ("Y[i,r] = T[i,j,k] * U[j,r] * V[k,r]", {"T": "CSF"}),
    ("Y[j,k,p] = T[i,j,k] * A[i,p]", {"T": "CSF"}),
    ("Y[i,f] = A[i,j] * X[f,j]", {"A": "CSR"}),
    ("O[i,f] = (S[i,j] - M[i,j] * U[i,r] * V[j,r]) * X[j,f]", {"S": "CSR", "M": "CSR"}),
    ("y[a] = (X[i,a] - m[a]) * (X[i,a] - m[a]) * w[i]", {"X": "CSR"}),
    ("s = A[i,j] * B[j,k] * D[i,k]", dict.fromkeys("ABD", "CSR")),
    ("y[a] = A[c,b,a] * v[a,b]", {}),
    ("C[b,a,d] = A[b,a] * v[d,a] * w[a,d]", {}),
    ("B[j,i] = A[i,j]", {}),
    ("Z[a,b,c,d] = A[a,e,f,g,h,i] * B[b,j,k,l,e,m] * C[c,d,n,o,f]", dict.fromkeys("ABC", "CSF")),
)


BLAS = Libraries(available=lambda _: True, narrower=lambda: 1.0)


def check_own_machine_alone(known: Problem, given: dict[str, Operand]) -> None:
    """Compare the plan with the one that is made while the nominal machine has no numbers."""

    def plan(machine: Machine) -> Plan:
        request = Request(known.result, machine=machine, sized=True, any_order=True)
        return make_plan(known.assignment, given, request, Options(libraries=BLAS))

    expected = plan(NOMINAL)
    with without_nominal() as machine:
        found = plan(machine)
    assert found == expected


@pytest.mark.parametrize(("text", "names"), PLANNED, ids=range(len(PLANNED)))
def test_planning_reads_no_machine_but_its_own(text: str, names: dict[str, str]) -> None:
    known = problem(text, names)
    many = len(all_indices(known.assignment)) > 10
    check_own_machine_alone(
        known, operands(known, dict.fromkeys(all_indices(known.assignment), 5) if many else {})
    )


def test_nor_where_operands_are_cast() -> None:
    known = problem("C[i,j] = A[i,k] * B[k,j]")
    given = operands(known)
    narrow = replace(given["A"], type=replace(given["A"].type, stored="float32"))
    check_own_machine_alone(known, {**given, "A": narrow})


UNITS = (
    "steps", "seconds", "bytes", "bits", "iterations", "products", "elements", "entries", "terms",
    "rows", "columns", "calls", "ratio", "share", "gain", "exponent", "per_second", "threads",
    "instructions", "processors", "schedulers",
)  # fmt: skip


RECORDS = [type(getattr(NOMINAL, name)) for name in ("loops", "copies", "dense", "calls", "units")]


def test_each_field_names_its_unit() -> None:
    names = [f.name for record in RECORDS for f in fields(record)]
    assert not [name for name in names if not name.endswith(UNITS)]
    assert len(names) == len({*names})  # `with_costs` knows each by its name alone


def test_costs_are_changed_by_their_names() -> None:
    changed = NOMINAL.with_costs(merge_steps=3.0, atomic_seconds=1.0, step_seconds=1e-9)
    assert (changed.loops.merge_steps, changed.units.atomic_seconds) == (3.0, 1.0)
    assert changed.step_seconds == 1e-9 and changed.copies == NOMINAL.copies
    with pytest.raises(TypeError):
        NOMINAL.with_costs(merge_seconds=3.0)


# Numbers of planning that are no properties of a machine: how far searches go, and what estimates,
# texts and types depend on.
LIMITS = {
    "compiler/order/beam.py": {"BEAM_SETS"},
    "compiler/order/blocks_innermost.py": {"MOST_ELEMENTS", "MOST_ROWS"},
    "planner/rules/kernel/widen_scatter.py": {"LEAST_TERMS"},
    "planner/rules/scatters.py": {"LEAST_THREADS"},
    "compiler/order/locality.py": {"NEIGHBOUR_SHARE", "ELSEWHERE_RATIO"},
    "compiler/order/orders.py": {"SEARCH_NODES", "NEAR_ROUNDS", "BETTER_SHARE", "EQUAL_SHARE"},
    "compiler/order/steps.py": {"EVERY_SET_LOOPS", "NEAR_ORDER_LOOPS"},
    "compiler/order/walk_counts.py": {"NONE", "LOCATED"},
    "planner/algebra/contraction_trees.py": {"EXACT_FACTORS", "FEW_FACTORS", "CONNECTED_GROUPS"},
    "planner/algebra/distribution.py": {"FAR_CHEAPER", "FEWER_ELEMENTS"},
    "planner/algebra/pair_orders.py": {
        "TRIED_PAIRS", "MOST_TRIED", "BRANCHED_FACTORS", "CONNECTED_GROUPS",
        "PARTITIONED_PRODUCTS", "PARTITIONS", "PARTITION_SECONDS",
    },
    "planner/algebra/quotients.py": {"MOVED_OPERATIONS"},
    "planner/epilogue_group.py": {"MOST_NODES"},
    "planner/ir/goal.py": {"LEAST_SIZE"},
    "planner/ir/index_sizes.py": {"UNCOUNTED_ELEMENTS"},
    "planner/rules/forms/correct_squares.py": {"MOST_TERMS", "SHARE", "STEPS"},
    "planner/rules/forms/multiply_out.py": {"MOST_TERMS", "FORMS_AT_ONCE", "FURTHER_ROUNDS"},
    "planner/matrix_steps.py": {"LARGEST_CLASS", "MOST"},
    "planner/rules/split/contract_many.py": {
        "MANY_FACTORS", "FEW_FACTORS", "PLAN_SECONDS", "MANY_TERMS",
    },
    "planner/rules/kernel/fuse_temporary.py": {"ALIKE"},
    "planner/rules/kernel/share_row_scatter.py": {"LEAST_ENTRIES", "LEAST_LENGTH", "LEAST_ROWS"},
    "planner/rules/kernel/stream_entries.py": {"LEAST_ENTRIES", "LEAST_ROW"},
    "planner/rules/layout/order_result.py": {"REORDERED_MODES"},
    "planner/rules/layout/store_temporary.py": {"REORDERED_MODES"},
    "compiler/ways/entry_kernels/emit_entries.py": {"PIECE_WORK", "MOST_PIECES"},
    "compiler/ways/entry_kernels/group_places.py": {"GROUP_ENTRIES"},
    "compiler/ways/places/line_places.py": {"STEP", "SHORT"},
    "compiler/ways/places/place_elements.py": {"BLOCK"},
    "compiler/ways/places/row_places.py": {"AT_ONCE", "ROWS"},
    "compiler/ways/on_gpu/gpu_transpose.py": {
        "LONGEST_SIDE", "SIDE", "THREADS", "TILE_ELEMENTS",
    },
    "compiler/ways/slab_kernels/emit_loops.py": {
        "BLOCK_ELEMENTS", "BLOCK_SLABS", "FEW_BLOCKS", "MOST_BLOCKS",
    },
    "compiler/ways/slab_kernels/line_stages.py": {
        "FEWEST_LINES", "PREFETCH_LEVEL", "STAGE_ELEMENTS",
    },
    "planner/slabs/slab_choice.py": {"ELEMENT_BYTES", "FEWEST_SLABS", "NEAR_BYTES"},
    "planner/slabs/slab_group.py": {"MOST_NODES"},
    "compiler/ways/unit_choices.py": {"CHUNKS", "PARTS", "ROUNDS", "WIDTHS"},
}  # fmt: skip


def test_planning_has_no_other_constants_of_the_machine() -> None:
    found = {
        str(path.relative_to(SOURCE)): names
        for room in ("compiler/order", "compiler/ways", "planner")
        for path in sorted((SOURCE / room).rglob("*.py"))
        if (names := set(_numbers(ast.parse(path.read_text()))))
    }
    assert found == LIMITS


def _numbers(module: ast.Module) -> Iterator[str]:
    """The names that a module gives to numbers."""
    for statement in module.body:
        if not isinstance(statement, ast.Assign):
            continue
        values = [
            n
            for n in ast.walk(statement.value)
            if not isinstance(n, ast.operator | ast.unaryop | ast.Load)
        ]
        leaves = [n for n in values if not isinstance(n, ast.Tuple | ast.BinOp | ast.UnaryOp)]
        plain = (isinstance(n, ast.Constant) and isinstance(n.value, int | float) for n in leaves)
        names = [n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        nested = any(isinstance(n, ast.Tuple) for n in values[1:])
        if not nested and all(plain):
            yield from names
