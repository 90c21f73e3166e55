"""A plan from its text, checked to fit the operands of a call: nothing is searched for.

    A: ds/float64/int32 of 100 by 80, 800 entries
    x: d/float64 of 80, 80 entries
    y[i] = sum(j, A[i,j] * x[j])    → d/float64 of 100, 100 entries    by loops(i,j)
        …
    return y
    → the plan, for operands A and x of these types and any sizes

What kernels have compiled in of sizes that the operands do not have is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from codegen.machine.target import TARGETS
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.schedule.apply import loops_of
from taco_py.compiler.schedule.legality import check
from taco_py.compiler.ways.recipe import Routine
from taco_py.compiler.ways.way import Question, Way
from taco_py.compiler.ways.ways import WAYS, check_recipe, graph_of, way_of
from taco_py.data.kernels import find_routine, routine_name
from taco_py.language.diagnostics.errors import InternalError, NotationError, ScheduleError
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Gather, KernelStep, Operand, Step, Unfuse
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import Define, Node, Program
from taco_py.planner.ir.verify import verify
from taco_py.planner.make_kernel import beyond_scatter
from taco_py.running.execute.step_shapes import shape_made
from taco_py.running.plan_texts.compare_plan import CallStatements, check_agrees

Shape = tuple[int, ...]


def plan_of_text(
    text: str,
    operands: Mapping[str, Operand],
    request: Request,
    call: CallStatements,
    is_compared: bool = True,
) -> Plan:
    """Return the plan that a text spells, for these operands.

    call         the statements that it has to compute
    is_compared  whether that is checked, as it need not be again for operands of other sizes

    Raises ScheduleError where the text is none of a plan, or the plan is for other operands, and
    UnequalPlanError where it is not shown to compute the statements.
    """
    program = parsed_plan(text)
    _check_operands(program, operands)
    result_type = _check_results(program, call, request)
    if is_compared:
        check_agrees(program, call)
    for step in program.kernels:
        check_kernel(step, request.machine.target.name)
    shapes = {name: operand.shape for name, operand in operands.items()}
    reads = {name: operands[name] for name in program.facts if name in operands}
    program = program.with_facts(reads).without_entries
    program = replace(program, steps=tuple(_with_own_sizes(program, shapes)))
    type = request.type if result_type.format.is_dense else result_type
    return Plan(program, type, machine=request.machine)


def parsed_plan(text: str) -> Program:
    """Return the program of a plan's text. Raises ScheduleError where it is none, or is not
    planned."""
    try:
        program = parse_program(text)
        verify(program)
    except (NotationError, InternalError, ValueError, KeyError, IndexError) as error:
        raise ScheduleError(f"Expected the text of a plan, found another: {error}") from error
    if program.after or any(isinstance(step, Define) for step in program.steps):
        raise ScheduleError("Expected a plan with its kernels, found another")
    return program


def _misfit(what: str, expected: object, actual: object) -> ScheduleError:
    return ScheduleError(
        f"Expected a plan for the {what} {expected}, found one for {actual}",
        hint="the plan was made for other operands; tune these",
    )


def _check_operands(program: Program, operands: Mapping[str, Operand]) -> None:
    """Raise ScheduleError unless the program reads operands of these types, and no others."""
    targets = {step.target for step in program.steps}
    for name, facts in program.facts.items():
        if name in targets:
            continue
        if name not in operands:
            raise _misfit("operands", ", ".join(operands), name)
        actual = operands[name]
        if actual.type != facts.type or len(actual.shape) != len(facts.shape):
            raise _misfit(f"operand {name}", actual.type, facts.type)
        if actual.contiguous != facts.contiguous:
            raise _misfit(f"operand {name} with levels joined", actual.contiguous, facts.contiguous)


def _check_results(program: Program, call: CallStatements, request: Request) -> TensorType:
    """Return the type of the last result. Raises ScheduleError unless each is stored as it is
    wanted, and several have the names that are wanted."""
    names = program.results
    if len(names) != len(call.results) or (len(names) > 1 and names != call.results):
        raise _misfit("results", ", ".join(call.results), ", ".join(names))
    for name, result in zip(names, call.results, strict=True):
        _check_result(program.facts[name].type, call.types[result], request, call.is_single)
    return program.facts[names[-1]].type


def _check_result(actual: TensorType, expected: TensorType, request: Request, alone: bool) -> None:
    """Raise ScheduleError unless a result is stored as it is wanted; of one statement a sparse one
    may be in any order of its modes where nobody asks for one, a dense one may have neighbours as
    one mode."""
    same = replace(actual, format=expected.format, unit_stride=expected.unit_stride) == expected
    levels = actual.format.levels == expected.format.levels
    stored = levels and (actual.format == expected.format or (alone and request.any_order))
    dense = is_full(expected.format) and is_full(actual.format)
    fused = alone and dense and actual.format.order < expected.format.order
    if not same or not (stored or fused):
        raise _misfit("result", expected, actual)


def check_kernel(step: KernelStep, target: str) -> None:
    """Raise ScheduleError where a kernel cannot be made as its schedule says."""
    way = WAYS.get(step.schedule.make.way)
    if way is None or way.on_gpu != TARGETS[target].is_gpu:
        raise _misfit("kernels of", target, step.schedule.make)
    _check_schedule(step, way)
    if way.in_loops:
        check_recipe(step.recipe(target=target))
    if way.routine is not None:
        _check_routine(way.routine(step.recipe(target=target)))


def can_be_made(plan: Plan, target: str) -> bool:
    """Tell whether the kernels of a plan can be made as their schedules say."""
    try:
        for step in plan.kernels:
            check_kernel(step, target)
    except ScheduleError:
        return False
    return True


def _check_routine(routine: Routine) -> None:
    """Raise ScheduleError where this machine has no library with a routine."""
    try:
        find_routine(routine_name(routine.maker, routine.text))
    except ValueError as error:
        raise ScheduleError(
            f"{error} on this machine", hint="make the kernel in another way, or tune again here"
        ) from error


def check_loops(step: KernelStep) -> None:
    """Raise ScheduleError where the loops of a kernel cannot be as its schedule says.

    That takes less time than `check_kernel`.
    """
    way = way_of(step.schedule.make)
    _check_schedule(step, way)
    if way.in_loops:
        graph_of(step.recipe())


def _check_schedule(step: KernelStep, way: Way) -> None:
    """Raise ScheduleError where a way cannot make a kernel, or its loops are in a wrong order."""
    problem = step.problem
    if not way.in_loops:
        if not (way.can(Question(problem)) or _is_with_epilogue(step, way)):
            raise _misfit("kernel made by", way.name, problem)
        return
    _check_orders(step)
    loops = loops_of(problem.assignment, step.schedule)
    if step.schedule.shapes:  # those that planning orders are legal
        check(loops, problem)
    if beyond_scatter(problem, loops) is not None:
        raise ScheduleError(
            f"Expected loops that make {step.target} in the order in which it is stored, found "
            f"{loops}",
            hint="a result of other levels takes them; plan for these loops",
        )


def _is_with_epilogue(step: KernelStep, way: Way) -> bool:
    """Tell whether a way computes a kernel as a product with an epilogue."""
    loops = (other for other in WAYS.values() if other.in_loops)
    makes = (maker.epilogue for maker in (way, *loops) if maker.epilogue is not None)
    return any(make(step.problem, step.schedule) == step.schedule.make for make in makes)


def _check_orders(step: KernelStep) -> None:
    """Raise ScheduleError unless there is a loop over each index of each term, and none twice."""
    assignment, orders = step.problem.assignment, step.schedule.orders
    terms = split_terms(assignment.value)
    if len(terms) != len(orders):
        raise ScheduleError(f"Expected loops of {len(terms)} terms, found {step.schedule}")
    for term, order in zip(terms, orders, strict=True):
        inside = {index for access in accesses(term.body) for index in access.indices}
        indices = sorted(inside | {*assignment.target.indices})
        if sorted(order) != indices:
            raise ScheduleError(f"Expected loops over {', '.join(indices)}, found {step.schedule}")


# ---------------------------------------------------------------- sizes


def _with_own_sizes(program: Program, operand_shapes: Mapping[str, Shape]) -> Iterator[Node]:
    """Yield the steps without sizes compiled in that indices do not have here."""
    shapes: dict[str, Shape] = dict(operand_shapes)
    for step in program.steps:
        if isinstance(step, Define):
            yield step
        elif isinstance(step, KernelStep):
            sizes = {i: _size(shapes, step.source(name), mode) for i, name, mode in step.sizes}
            yield replace(step, problem=_without_others(step.problem, sizes))
            shape = tuple(sizes.get(i) for i in step.problem.assignment.target.indices)
            if None not in shape:
                shapes[step.target] = tuple(n for n in shape if n is not None)
        else:
            yield step
            source = shapes.get(step.source)
            result_shape = None if source is None else shape_made(step, source, 0, shapes)
            if result_shape is not None:
                shapes[step.target] = result_shape


def _size(shapes: Mapping[str, Shape], name: str, mode: int) -> int | None:
    shape = shapes.get(name)
    return None if shape is None or mode >= len(shape) else shape[mode]


def _without_others(problem: Problem, sizes: Mapping[str, int | None]) -> Problem:
    """Return the problem without the static sizes that its indices do not have."""
    static_sizes = tuple((i, n) for i, n in problem.static if i not in sizes or sizes[i] == n)
    return problem if static_sizes == problem.static else replace(problem, static=static_sizes)


# ---------------------------------------------------------------- names


def renamed(program: Program, names: Mapping[str, str]) -> Program:
    """Return the program over tensors of other names; what kernels call them inside does not
    change.

    names  of tensors that are given or wanted; others get names that none of these has
    """
    new = dict(names)
    used_names = {*names.values()}
    for name in program.facts:
        if name not in new:
            new_name = name
            while new_name in used_names:
                new_name += "_"
            new[name] = new_name
            used_names.add(new_name)
    return replace(
        program,
        steps=tuple(_in_names(step, new) for step in program.steps),
        facts={new[name]: facts for name, facts in program.facts.items()},
        results=tuple(new[name] for name in program.results),
        unique=frozenset(new[name] for name in program.unique),
    )


def _in_names(step: Step | Define, new: Mapping[str, str]) -> Step:
    """Return a step over tensors of other names."""
    match step:
        case Define():
            raise InternalError(f"Expected a planned step to rename, found {step}")
        case KernelStep(target, problem):
            pairs = ((name, new[step.source(name)]) for name, _ in problem.operands)
            sources = tuple((name, source) for name, source in pairs if name != source)
            return replace(step, target=new[target], sources=sources)
        case Gather():
            step = replace(step, pattern=new[step.pattern])
        case Unfuse():
            sizes = tuple((new[tensor], mode) for tensor, mode in step.sizes)
            step = replace(step, sizes=sizes)
    return replace(step, target=new[step.target], source=new[step.source])
