"""Problems and plans from text, without arrays: the inputs of the middle layers' tests."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from taco_py.language.formats import COO, CSC, CSF, CSR, DCSR, Format, dense
from taco_py.language.notation.checks import accesses, check_assignment, operand_names, rename
from taco_py.language.notation.dtypes import result_dtype
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.reduce import insert_reductions
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.ir.formats import default_format
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options, make_plan
from taco_py.planner.rules.tidy.canonical_names import canonical

NAMED = {"CSR": CSR, "CSC": CSC, "DCSR": DCSR}
SIZE = 1000
ROW = 5.0  # entries in each row of a sparse operand


def assignment(text: str) -> Assignment:
    """Index notation with its sums explicit."""
    parsed = parse_assignment(text)
    check_assignment(parsed)
    return insert_reductions(parsed)


def form(name: str, order: int) -> Format:
    """A format by its usual name ("CSR", "COO", "dense") or by its letters."""
    if name == "dense":
        return dense(order)
    if name in ("COO", "CSF"):
        return COO(order) if name == "COO" else CSF(order)
    return NAMED[name] if name in NAMED else Format.parse(name)


def orders(text: str) -> dict[str, int]:
    """The number of modes of each tensor on the right."""
    return {a.tensor: len(a.indices) for a in accesses(assignment(text))}


def formats(text: str, names: Mapping[str, str]) -> dict[str, Format]:
    """The format of each tensor on the right: as in `names`, else dense."""
    return {n: form(names.get(n, "dense"), order) for n, order in orders(text).items()}


def problem(
    text: str,
    names: Mapping[str, str] | None = None,
    result: str | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> Problem:
    """`text` with operands in the formats `names` (dense where not named), all of float64 or as in
    `dtypes`; the result in the format `result` or the default one."""
    parsed = assignment(text)
    known = formats(text, names or {})
    types = {n: np.dtype((dtypes or {}).get(n, "float64")) for n in known}
    order = len(parsed.target.indices)
    stored = default_format(parsed, known) if result is None else form(result, order)
    return Problem(
        parsed,
        tuple((n, TensorType(known[n], types[n].name)) for n in operand_names(parsed)),
        TensorType(stored, result_dtype(parsed, types).name),
    )


def operands(
    problem: Problem, sizes: Mapping[str, int] | None = None, nnz: Mapping[str, float] | None = None
) -> dict[str, Operand]:
    """Facts of the problem's operands: each index of size 1000, each sparse one with five entries
    for each coordinate of its first mode, unless said otherwise."""
    found = {}
    for access in accesses(problem.assignment):
        kind = problem.type_of(access.tensor)
        shape = tuple((sizes or {}).get(i, SIZE) for i in access.indices)
        volume = float(prod(shape))
        stored = volume if kind.format.is_dense else min(volume, shape[0] * ROW)
        found[access.tensor] = Operand(kind, shape, (nnz or {}).get(access.tensor, stored))
    return found


def plan(
    problem: Problem,
    sizes: Mapping[str, int] | None = None,
    nnz: Mapping[str, float] | None = None,
    options: Options | None = None,
    fused: bool = False,
) -> Plan:
    """How `problem` is computed on operands of these sizes, where digits may cancel.

    fused  whether temporaries may be made inside the loops of their readers: each is a kernel of
           its own else, to be looked at
    """
    known = operands(problem, sizes, nnz)
    left_out = frozenset(() if fused else ("fuse_temporary", "fuse_epilogue"))
    allow = frozenset(("cancellation",))
    request = Request(problem.result, allow=allow, left_out=left_out)
    return make_plan(problem.assignment, known, request, options or Options())


def kernel_text(step: KernelStep) -> str:
    """What a kernel computes: of copies where it reads them, with its own names where these say
    its form alone."""
    names = {} if canonical(step) == step else dict(step.sources)
    return to_text(rename(step.problem.assignment, names))
