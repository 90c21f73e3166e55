"""Functions of users as scalar functions of kernels, one for each type that they are defined for.

    smooth(x, y) = where(x > y, x, y) in float64
    → static inline double taco_user_smooth_5f_float64(double a0, double a1)
      {
          return (
              a0 > a1 ? a0 : a1
          );
      }

A traced body is inlined at its calls; reductions and semirings call these functions instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from codegen.emit.cuda_complex import definition_in_pairs, in_pairs
from codegen.emit.expressions import expression
from codegen.infer import c_function
from codegen.ir import Apply, Var
from codegen.libraries.c_text import c_name, definition
from codegen.libraries.scalar_functions import CFunction, ScalarFunction
from codegen.tree import find
from codegen.types import scalar
from taco_py.compiler.concrete.nodes import Workspace, WorkspaceKind
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment, WorkspaceArrays
from taco_py.compiler.lower.expressions import lower_value
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Expr


def function_of_body(
    name: str, parameters: tuple[str, ...], body: Expr, types: Iterable[str]
) -> ScalarFunction:
    """Make a scalar function of a traced body, for the types that it is defined for.

    name  identifies the body: two functions of one name are equal
    """
    results = {}
    for type in types:
        try:
            results[type] = expression_dtype(body, dict.fromkeys(parameters, np.dtype(type))).name
        except OperandTypeError:  # also of a number that the type does not hold
            continue
    spellings = {
        type: _spelling(name, parameters, body, type, result) for type, result in results.items()
    }
    return ScalarFunction(name, len(parameters), results, spellings)


def _spelling(
    name: str, parameters: tuple[str, ...], body: Expr, type: str, result: str
) -> CFunction:
    names = {parameter: f"a{place}" for place, parameter in enumerate(parameters)}
    value = lower_value(_world(names, type), EMPTY_SCOPE, body, scalar(result))
    calls = [c_function(call) for call in find(value, Apply)]
    uses = dict.fromkeys(use for call in calls for use in (*call.uses, call))
    arguments = tuple(names.values())
    pairs = definition(name, arguments, expression(in_pairs(value)), type, result)
    return CFunction(
        c_name(name, type),
        vectorizes=all(call.vectorizes for call in calls),
        is_long=any(call.is_long for call in calls),
        definition=definition(name, arguments, expression(value), type, result),
        in_pairs=definition_in_pairs(pairs) if "complex" in type + result else "",
        uses=tuple(uses),
    )


def _world(names: dict[str, str], type: str) -> Environment:
    """Make an environment with the parameters as scalar workspaces."""
    variables = {name: Var(parameter, scalar(type)) for name, parameter in names.items()}
    return _environment(variables, dict.fromkeys(names, np.dtype(type)))


def scalar_environment(dtypes: Mapping[str, np.dtype[np.generic]]) -> Environment:
    """Make an environment in which each name is a variable of the same name."""
    variables = {name: Var(name, scalar(dtype.name)) for name, dtype in dtypes.items()}
    return _environment(variables, dtypes)


def _environment(
    variables: Mapping[str, Var], dtypes: Mapping[str, np.dtype[np.generic]]
) -> Environment:
    workspaces = {}
    for name, variable in variables.items():
        workspace = Workspace(name, (), WorkspaceKind.SCALAR, variable.type.name)
        workspaces[name] = WorkspaceArrays(workspace, variable.type, scalar=variable)
    none = cast("Any", None)
    iterators: dict[Access, Any] = {Access(name, ()): {} for name in variables}
    return Environment(none, none, none, {}, workspaces, {}, {}, iterators, dtypes, {})
