"""The scalar values of a dataflow graph as variables of loop IR.

b: float32 = exp a   →   const b: float32 = expf(a)
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from codegen import build
from codegen.ir import Declare, Expr, Stmt, Var
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import INT64, scalar
from taco_py.compiler.dataflow import nodes
from taco_py.compiler.lower.environment import EMPTY_SCOPE
from taco_py.compiler.lower.expressions import lower_value
from taco_py.compiler.lower.function_bodies import scalar_environment
from taco_py.compiler.lower.numbers import number
from taco_py.language.notation.nodes import Access, Call, Literal
from taco_py.language.notation.operators import Operator


@dataclass(slots=True)
class Values:
    """Declares the variables of values.

    names      the supply of names of the function
    variables  the name of the variable of each value
    types      the dtype of each variable
    """

    names: Names
    variables: dict[str, str] = field(default_factory=dict)
    types: dict[str, np.dtype[np.generic]] = field(default_factory=dict)

    def declare(self, value: str, dtype: str) -> Var:
        """Return the new variable of a value."""
        name = self.names.fresh(value)
        self.variables[value] = name
        self.types[name] = np.dtype(dtype)
        return Var(name, scalar(dtype))

    def of(self, value: str, dtype: str) -> Var:
        """Return the variable of a value that is declared."""
        return Var(self.variables[value], scalar(dtype))

    def type_of(self, value: str) -> str:
        """Return the dtype of a value that is declared."""
        return self.types[self.variables[value]].name

    def place(self, value: str) -> Expr:
        """Return a value that is declared as a position."""
        return build.cast(INT64, self.of(value, self.type_of(value)))

    def compute(self, step: nodes.Compute) -> Stmt:
        """Return the declaration of an operator's value."""
        call = Call(step.operator, tuple(self._argument(arg) for arg in step.args))
        lowered = self._lowered(call, step.dtype)
        return Declare(self.declare(step.value, step.dtype), lowered, True)

    def argument(self, arg: str | Literal, dtype: str) -> Expr:
        """Return a value or a number in a type."""
        return self._lowered(self._argument(arg), dtype)

    def _argument(self, arg: str | Literal) -> Access | Literal:
        return arg if isinstance(arg, Literal) else Access(self.variables[arg], ())

    def _lowered(self, value: Access | Literal | Call, dtype: str) -> Expr:
        return lower_value(scalar_environment(self.types), EMPTY_SCOPE, value, scalar(dtype))


def identity(operator: Operator, dtype: str) -> Expr:
    """Return the number that an operator begins with; `slab_form` looks whether it has one."""
    value = operator.identity_of(np.dtype(dtype))
    assert value is not None
    return number(value, scalar(dtype))
