"""The plans and the C of many questions: the proof that a change of the planner changes nothing.

    python -m tests.dump FOLDER             every plan as text, a file for each group: run it before
                                            and after a change, and compare with `diff -r`
    python -m tests.dump FOLDER --golden    the same, and one line for each question in
                                            tests/golden/plans/: test_dump.py compares with these

A question is an assignment over operands of given formats, types and sizes, with settings. Plans
and C are made for a nominal machine, so that every computer writes the same bytes; no C compiler is
needed.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from math import prod
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from taco_py.arguments.options import CallOptions
from taco_py.calls.call import planner_request
from taco_py.calls.call import prepare as preparing
from taco_py.calls.statements.read_text import parsed
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.driver import make_source
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.library_choice import Libraries
from taco_py.compiler.ways.ways import way_of
from taco_py.data.kernels import KERNELS
from taco_py.language.notation.einsum import parse_einsum
from taco_py.language.problem import TensorType
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.printer import program_text
from taco_py.planner.make import Options, make_plan
from tests.corpus import expressions
from tests.corpus.expressions import Case

TARGET = Target(
    machine=Processor(vector_bytes=64, registers=32, cores=2, cache_bytes=(32768, 1 << 20)),
    openmp=True,
)
"""The nominal machine."""
LIBRARIES = Libraries(available=lambda _: True, narrower=lambda: 1.0)
"""A BLAS for every type, with vectors as wide as those of generated code."""
PLAIN = CallOptions()
GOLDEN = Path(__file__).parent / "golden" / "plans"
SIZES = {"i": 60, "j": 56, "k": 52, "l": 20, "m": 10, "n": 10, "r": 16, "b": 8}
STORAGES = (("dense", "dense"), ("csr", "dense"), ("csr", "csr"), ("csr", "csc"), ("coo", "csr"))
"""How the first operand is stored, and how the others are."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and how many searches and prices it took."""

    plan: Plan
    searches: int


@dataclass(frozen=True, slots=True)
class Question:
    """Something to plan.

    plan  makes the plan; it may raise TacoError
    """

    name: str
    plan: Callable[[], Planned] = field(repr=False)


@dataclass(slots=True)
class Answer:
    """The text of a plan, the hash of the C of its kernels, and what the plan took."""

    question: str
    plan: str
    source: str
    searches: int

    @property
    def line(self) -> str:
        """The line of the golden file."""
        return f"{digest(self.plan)} {digest(self.source)} {self.searches:5d}  {self.question}"


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]


# ---------------------------------------------------------------- questions


def cases() -> list[Case]:
    """Every case of the corpus, each name once."""
    groups = (getattr(expressions, name) for name in sorted(dir(expressions)))
    found = (case for group in groups if isinstance(group, tuple) for case in group)
    return list({case.name: case for case in found if isinstance(case, Case)}.values())


def operand(seed: str, shape: tuple[int, ...], storage: str, dtype: str = "float64") -> Any:
    """An operand with the same entries on every call."""
    rng = np.random.default_rng(len(seed))
    if not shape:
        return np.dtype(dtype).type(2)
    if storage == "dense" or len(shape) == 1:
        return _values(rng, shape, dtype)
    if len(shape) == 2:
        made = sp.random_array(shape, density=0.05, format="csr", rng=rng)
        made.data = _values(rng, made.data.shape, dtype)
        return getattr(made, f"to{storage}")()
    coords = np.unique(np.array([rng.integers(0, n, 200) for n in shape]), axis=1)
    values = _values(rng, (coords.shape[1],), dtype)
    return tp.Tensor.from_coo(list(coords), values, shape, format=tp.CSF(len(shape)))


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    return (rng.random(shape) * 7 + 1).astype(dtype)


def operands(
    case: Case, storages: tuple[str, str], dtypes: tuple[str, str] = ("float64", "float64")
) -> dict[str, Any]:
    """The operands of a corpus case: the first stored as the first of `storages`."""
    sizes = {**SIZES, **dict.fromkeys(case.sizes, 60)}
    uses = dict(case.uses)
    return {
        name: operand(
            case.name + name,
            tuple(sizes[index] for index in uses.get(name, ())),
            storages[min(place, 1)],
            dtypes[min(place, 1)],
        )
        for place, name in enumerate(case.shapes)
    }


def prepared(text: str, objects: Mapping[str, Any], settings: CallOptions) -> Planned:
    """The plan of a call of `evaluate`, made anew."""
    effort = Effort(settings.schedule_budget, rows=settings.look_up)
    KERNELS.memo.clear()
    with patch.object(planner_request, "Effort", lambda *_, **__: effort):
        plan = preparing.prepare(parsed(text), objects, settings).plan
    return Planned(plan, len(effort.results))


def of_case(
    case: Case,
    storages: tuple[str, str],
    settings: CallOptions = PLAIN,
    dtypes: tuple[str, str] = ("float64", "float64"),
    label: str = "",
) -> Question:
    name = f"{case.text}  {','.join(storages)}{label and '  ' + label}"
    return Question(name, lambda: prepared(case.text, operands(case, storages, dtypes), settings))


def corpus(number: int, count: int) -> Iterator[Question]:
    """One part of `count` of the corpus over all storages."""
    for case in cases()[number::count]:
        for storages in STORAGES:
            yield of_case(case, storages)


def types() -> Iterator[Question]:
    """A third of the corpus in other types, and in two types at a time."""
    pairs = (("int8", "int8"), ("float32", "float32"), ("complex128", "complex128"))
    mixed = (("int8", "float64"), ("float32", "float64"), ("int64", "float32"))
    for case in cases()[::3]:
        for dtypes in (*pairs, *mixed):
            yield of_case(case, ("csr", "dense"), dtypes=dtypes, label=",".join(dtypes))
    for case in cases()[1::3]:
        for dtypes in (*pairs[:1], *mixed):
            yield of_case(case, ("dense", "dense"), dtypes=dtypes, label=",".join(dtypes))


def settings() -> Iterator[Question]:
    """A third of the corpus under the options that leave choices out, and under schedules."""
    variants = {
        "optimize=False": replace(PLAIN, contract=False, forms=False),
        "forms=False": replace(PLAIN, forms=False),
        "forms=True": replace(PLAIN, forms=True),
        "look_up=False": replace(PLAIN, look_up=False),
        "libraries=False": replace(PLAIN, libraries=False),
        "memory=1000": replace(PLAIN, memory=1000.0),
        "serial()": replace(PLAIN, schedule=Schedule.parse("serial()")),
    }
    for case in cases()[2::3]:
        for label, chosen in variants.items():
            yield of_case(case, ("csr", "csr"), chosen, label=label)
        for schedule in _schedules(case):
            chosen = replace(PLAIN, schedule=Schedule.parse(schedule))
            for storages in (("csr", "dense"), ("dense", "dense")):
                yield of_case(case, storages, chosen, label=schedule)


def _schedules(case: Case) -> Iterator[str]:
    """Loops of the text in the reverse order, and its first loop shared."""
    used = (index for _, indices in (case.target, *case.uses) for index in indices)
    indices = tuple(dict.fromkeys(used))
    if len(indices) > 1:
        yield f"reorder({','.join(reversed(indices))})"
    if indices:
        yield f"parallelize({indices[0]},CPUThread,NoRaces)"
        yield f"split({indices[0]},{indices[0]}0,{indices[0]}1,16)"


NONZEROS: Mapping[str, tuple[tuple[int, ...], int]] = {
    "gowalla": ((29858, 40981), 810128),
    "rmat": ((16384, 16384), 262144),
    "nw04": ((36, 87482), 636666),
    "pde27": ((27000, 27000), 681472),
    "memplus": ((17758, 17758), 126150),
    "bcsstk16": ((4884, 4884), 290378),
    "4elt": ((15606, 15606), 91756),
    "dano3mip": ((3202, 13873), 79655),
    "ml-latest-small": ((610, 9724), 100836),
    "uniform": ((20000, 20000), 200000),
    "pubmed_adj": ((19717, 19717), 88651),
    "jagmesh7": ((1138, 1138), 7450),
    "musae-github": ((37700, 37700), 578006),
    "cora_adj": ((2708, 2708), 5429),
    "FB15K237": ((14541, 237, 14541), 310116),
    "WN18RR": ((40943, 11, 40943), 93003),
    "tensor": ((500, 500, 500), 1000000),
    "skew": ((500, 500, 500), 1000000),
    "ml-latest-small-time": ((610, 9724, 1088), 100836),
    "blocks": ((500, 500, 64), 640000),
    "thin": ((500, 64), 3200),
}
"""Shapes and numbers of entries of what the questions of `benchmarks.chosen` are about."""


def large() -> Iterator[Question]:
    """The questions of `benchmarks.chosen`, by sizes and numbers of entries alone."""
    from benchmarks.chosen import QUESTIONS

    for question in QUESTIONS:
        facts = {name: _facts(what) for name, what in question.operands.items()}
        text = question.text
        yield Question(
            f"{text}  {' '.join(question.operands.values())}",
            lambda text=text, facts=facts: by_facts(text, facts),  # type: ignore[misc]
        )


def _facts(what: str) -> Operand:
    """`gowalla:csr` and `237x16` as what planning knows of such an operand."""
    data, _, storage = what.partition(":")
    if not storage:
        shape = tuple(map(int, data.split("x")))
        return _array(shape, "float64")
    shape, nnz = NONZEROS[data]
    names = {"csr": tp.CSR, "csc": tp.CSC, "csf": tp.CSF(len(shape))}
    form = names[storage] if storage in names else tp.Format.parse(storage)
    stored = nnz * prod(form.stored(shape)[form.depth :])
    return Operand(TensorType(form, "float64"), shape, float(min(stored, prod(shape))))


def _array(shape: tuple[int, ...], dtype: str) -> Operand:
    joined = (True,) * (len(shape) - 1)
    return Operand(TensorType(tp.dense(len(shape)), dtype), shape, float(prod(shape)), None, joined)


def by_facts(text: str, facts: Mapping[str, Operand]) -> Planned:
    """The plan of an assignment over operands of which facts alone are there."""
    from taco_py.planner.ir.formats import default_format

    assignment = parsed(text) if "=" in text else parse_einsum(text, _orders(facts))
    formats = {name: operand.type.format for name, operand in facts.items()}
    dtype = next(iter(facts.values())).type.dtype
    wanted = TensorType(default_format(assignment, formats), dtype)
    effort = Effort()
    request = Request(wanted, effort=effort, sized=True)
    plan = make_plan(assignment, facts, request, Options(libraries=LIBRARIES))
    return Planned(plan, len(effort.results))


def _orders(facts: Mapping[str, Operand]) -> list[int]:
    return [len(operand.shape) for operand in facts.values()]


def einsums(count: int = 64) -> Iterator[Question]:
    """Random dense einsums."""
    from benchmarks.random_dense import draw

    rng = np.random.default_rng(7)
    for _ in range(count):
        each = draw(rng)
        *shapes, _ = each.shapes
        facts = {f"op{k}": _array(shape, each.dtype) for k, shape in enumerate(shapes)}
        text = each.text
        yield Question(str(each), lambda text=text, facts=facts: by_facts(text, facts))  # type: ignore[misc]


PARTS = 3
GROUPS: Mapping[str, Callable[[], Iterator[Question]]] = {
    **{f"corpus{n}": lambda n=n: corpus(n, PARTS) for n in range(PARTS)},  # type: ignore[misc]
    "types": types,
    "settings": settings,
    "large": large,
    "einsums": einsums,
}


# ---------------------------------------------------------------- plans as text


def _libraries_of(options: CallOptions, *_: bool) -> Libraries | None:
    return LIBRARIES if options.libraries else None


@contextlib.contextmanager
def nominal() -> Iterator[None]:
    """The nominal machine in place of this one."""
    with (
        patch("taco_py.compiler.driver.native_target", lambda: TARGET),
        patch.object(planner_request, "libraries_of", _libraries_of),
    ):
        yield


def answers(group: str) -> Iterator[Answer]:
    """The plan of each question of a group; the C of a kernel is emitted once."""
    emitted: dict[str, str] = {}
    with nominal():
        for question in GROUPS[group]():
            try:
                planned = question.plan()
                program = planned.plan.program
                assert parse_program(program_text(program)) == program, question.name
                text = "\n".join(text_of(planned.plan))
                sources = [source_of(step, emitted) for step in planned.plan.kernels]
            except tp.TacoError as error:
                yield Answer(question.name, f"refused: {error}", "", 0)
                continue
            yield Answer(question.name, text, "\n".join(sources), planned.searches)


def source_of(step: KernelStep, emitted: dict[str, str]) -> str:
    """The hash of the C of a kernel, "" for a library's."""
    if way_of(step.schedule.make).lower is None:
        return ""
    recipe = step.recipe()
    if recipe.key not in emitted:
        emitted[recipe.key] = digest(make_source(recipe).source)
    return emitted[recipe.key]


def text_of(plan: Plan) -> Iterator[str]:
    """A line for each step, then what explain() tells besides."""
    for step in plan.steps:
        if isinstance(step, KernelStep):
            yield from kernel_text(step)
        else:
            parts = (f"{each.name}={getattr(step, each.name)!s}" for each in fields(step))
            yield f"{type(step).__name__} {' '.join(parts)}"
    for name in ("notes", "forms", "stored", "cuts"):
        told = getattr(plan, name)
        yield from (f"{name}: {line}" for line in ((told,) if isinstance(told, str) else told))


def kernel_text(step: KernelStep) -> Iterator[str]:
    yield f"Kernel {step.target}: {step.problem!r}"
    yield f"  schedule {step.schedule}"
    yield f"  sizes {step.sizes} sources {step.sources}"
    yield from (f"  {why}" for why in (step.reason, step.looked_up, step.in_turn) if why)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--groups", nargs="*", default=list(GROUPS))
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for group in options.groups:
        begin = process_time()
        found = list(answers(group))
        text = "\n".join(f"##### {a.question}\n{a.plan}\nC {a.source}" for a in found)
        (options.folder / group).write_text(text + "\n")
        if options.golden:
            GOLDEN.mkdir(parents=True, exist_ok=True)
            (GOLDEN / f"{group}.txt").write_text("\n".join(a.line for a in found) + "\n")
        searches, seconds = sum(a.searches for a in found), process_time() - begin
        print(f"{group:10} {len(found):5} plans {searches:8} searches {seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
