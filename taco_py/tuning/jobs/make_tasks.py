"""Tasks made in Python: of a text and operands, or of other tasks by rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.tuning.tasks.mutations import mutate, mutation_of
from taco_py.tuning.tasks.operand_description import OperandDescription, described
from taco_py.tuning.tasks.operands_like import description_of
from taco_py.tuning.tasks.tuning_task import TuningTask, check_task, options_of


def task(
    text: str, operands: Mapping[str, Any] | None = None, /, *, name: str = "", **options: Any
) -> TuningTask:
    """Make a tuning task of a text and of operands or their descriptions.

    >>> x = {"shape": [80]}
    >>> made = tp.tuning.task("y[i] = A[i,j] * x[j]", {"A": sp.eye_array(80, format="csr"), "x": x})
    >>> made.described["A"].nnz, made.described["x"].shape
    (80, (80,))

    text      an assignment in index notation
    operands  by name: an array, a scipy.sparse array or a Tensor, of which shape, type and how
              entries are spread are taken; or a description, with the keys of a file of tasks
    name      what it is called in reports
    options   of `evaluate`: format, dtype, casting, threads, static, libraries, forbid, allow,
              semiring; and of the search: trials, seconds, search, seed

    Raises NotationError, or OperandError for operands that are not those of the text.
    """
    described = {operand: _description(operand, obj) for operand, obj in (operands or {}).items()}
    result = TuningTask(text, tuple(described.items()), options_of(options, ()), name)
    check_task(result)
    return result


def _description(name: str, obj: Any) -> OperandDescription:
    if isinstance(obj, OperandDescription):
        return obj
    return described(obj) if isinstance(obj, Mapping) else description_of(obj, name)


def mutated(tasks: TuningTask | Iterable[TuningTask], *rules: Mapping[str, Any]) -> tuple[Any, ...]:
    """Make many tasks of some by rules, all of which are applied to each; each task once.

    >>> A = {"shape": [100, 80], "format": "csr_array", "density": 0.1}
    >>> one = tp.tuning.task("y[i] = A[i,j] * x[j]", {"A": A, "x": {"shape": [80]}})
    >>> many = tp.tuning.mutated(one, {"size": "0.1", "multiples": [1, 2]},
    ...                          {"density": "A", "values": [0.1, 0.01]})
    >>> [each.described["x"].shape for each in many]
    [(80,), (80,), (160,), (160,)]

    tasks  one, or several
    rules  as a file of tasks has them: a size, density, nnz, dtype, format, rows, seed or option,
           addressed by operand and mode, with values, multiples or powers

    Raises OperandError that names what is wrong with a rule.
    """
    every = (tasks,) if isinstance(tasks, TuningTask) else tuple(tasks)
    for candidate in every:
        if not isinstance(candidate, TuningTask):
            raise OperandTypeError(f"Expected tuning tasks, found {type(candidate).__name__}")
    read = [mutation_of(rule) for rule in rules]
    mutants = (after for before in every for after in mutate(before, read))
    return tuple(dict.fromkeys(mutants))
