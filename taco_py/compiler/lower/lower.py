"""Concrete index notation → one function of loop IR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from codegen.ir import Array, Block, Function, Stmt, Var
from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Assembly, Assign, Forall, Sequence, Statement, Where
from taco_py.compiler.concrete.tree import workspaces_of
from taco_py.compiler.iteration.graph import IterationGraph
from taco_py.compiler.lower import workspaces
from taco_py.compiler.lower.bindings import Bindings
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment, make_environment
from taco_py.compiler.lower.promises import rely_on_promises
from taco_py.compiler.lower.sparse_result.copied import copy_structure
from taco_py.compiler.lower.sparse_result.inserted import lower_inserted
from taco_py.compiler.lower.sparse_result.recomputed import lower_recomputed
from taco_py.compiler.lower.sparse_result.result import make_result
from taco_py.compiler.lower.statements import Lowerer
from taco_py.compiler.lower.threads.pieces import lower_pieces
from taco_py.compiler.lower.zero import begin_whole
from taco_py.language.phase import COMPUTE
from taco_py.language.problem import Problem


@dataclass(frozen=True, slots=True)
class Lowered:
    """A function of loop IR, and the sources of its parameters, by name."""

    function: Function
    bindings: Bindings


def lower(problem: Problem, graph: IterationGraph, phase: str) -> Lowered:
    """Lower the statement of `graph` to a function with the name of `phase`.

    In COMPUTE the structure of a sparse result is an input; in other phases it is assembled.

    Its arrays are the result's, then those of side results and operands: per level pos and crd,
    then the values. Its scalars are the sizes of the indices in order of first use, then the
    strides of dense tensors.
    """
    statement = graph.statement
    is_assembled = phase == COMPUTE and not problem.result.format.is_dense
    env = make_environment(problem, graph, statement, is_assembled)
    if is_assembled:
        code = tuple(lower_recomputed(env, statement, tuple(_allocations(env, statement))))
    elif graph.assembly is Assembly.INSERT:
        code = tuple(lower_inserted(env, statement, tuple(_allocations(env, statement))))
    elif graph.assembly is Assembly.COPY:
        code = (*copy_structure(env), *_lower_statement(env, statement))
    elif graph.in_pieces and isinstance(statement, Forall):
        code = (*begin_whole(env), *lower_pieces(env, statement))
    else:
        code = tuple(_lower_statement(env, statement))
    code = tuple(rely_on_promises(env, code))
    scalars = [size for size in env.sizes.values() if isinstance(size, Var)]
    for tensor in _tensors(env):
        scalars += [s for s in env.tensors[tensor].strides if isinstance(s, Var)]
    threaded = any(loop.mode.parallel is not None for loop in graph.loops)
    function = Function(phase, tuple(_arrays(env)), tuple(scalars), Block(code), threaded)
    return Lowered(function, tuple(env.bindings.items()))


def _lower_statement(env: Environment, statement: Statement) -> Iterator[Stmt]:
    result = make_result(env)
    yield from _allocations(env, statement)
    yield from result.prologue()
    yield from begin_whole(env)
    yield from Lowerer(env, result).statement(statement, EMPTY_SCOPE)
    yield from result.epilogue()


def _allocations(env: Environment, statement: Statement) -> Iterator[Stmt]:
    """Yield the allocations of workspaces that all threads share."""
    private = set(_private_workspaces(env.graph, statement))
    for workspace in workspaces_of(statement):
        if workspace.name not in private:
            yield from workspaces.allocate(env, env.workspaces[workspace.name])


def _private_workspaces(graph: IterationGraph, statement: Statement) -> Iterator[str]:
    """Yield the workspaces of which each thread has a private one."""
    match statement:
        case Forall(_, body):
            alone = statement.parallel and not graph.teams
            if alone or graph.in_team(graph.loop_of(statement)):
                yield from (workspace.name for workspace in workspaces_of(body))
            else:
                yield from _private_workspaces(graph, body)
        case Where(_, consumer, producer):
            yield from _private_workspaces(graph, consumer)
            yield from _private_workspaces(graph, producer)
        case Sequence(statements):
            for part in statements:
                yield from _private_workspaces(graph, part)
        case Assign():
            pass
        case _:
            assert_never(statement)


def _tensors(env: Environment) -> Iterator[str]:
    """Yield the names of the result, side results and operands."""
    yield env.target.tensor
    yield from (side.target.tensor for side in env.problem.side)
    yield from dict(env.problem.operands)


def _arrays(env: Environment) -> Iterator[Array]:
    for tensor in _tensors(env):
        arrays = env.tensors[tensor]
        for level in arrays.levels:
            if level.pos is not None:
                yield level.pos
            if level.crd is not None:
                yield level.crd
        yield arrays.values
