"""Optimisers as data: what a parameter and its state become, as text of numbers.

    p the parameter, g its gradient, m and v its state, the others numbers of the step

    p := p - rate * g

(Kingma and Ba 2015, Adam: A Method for Stochastic Optimization, algorithm 1.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, sqrt
from numbers import Real
from types import MappingProxyType
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.diagnostics.suggest import with_suggestion


@dataclass(frozen=True, slots=True, eq=False)
class Optimizer:
    """A rule that parameters follow.

    updates  the text of each state's new value, in order, the last of the parameter `p`; each may
             read what those before it made
    settings the numbers that users may say, with their defaults
    numbers  from the settings and the number of the step to what the texts read
    """

    updates: Mapping[str, str]
    settings: Mapping[str, float]
    numbers: Callable[[Mapping[str, float], int], dict[str, float]]

    @property
    def state(self) -> tuple[str, ...]:
        """Return the names of the values that each parameter has from step to step."""
        return tuple(name for name in self.updates if name != "p")


def _settings(settings: Mapping[str, float], step: int) -> dict[str, float]:
    return dict(settings)


def _adam_numbers(settings: Mapping[str, float], step: int) -> dict[str, float]:
    """Return the numbers of a step of Adam, in the order of section 2 of the paper.

    rate (m / c1) / (sqrt(v / c2) + epsilon)  =  pace m / (sqrt(v) + least),   ck = 1 - betak^step

    One division and one root for each element instead of three and one. They are made here: numbers
    that texts make of numbers alone are float64, whatever `p` is.
    """
    beta1, beta2 = settings["beta1"], settings["beta2"]
    root = sqrt(1 - beta2**step)
    return {
        **{key: settings[key] for key in ("beta1", "beta2", "decay")},
        "new1": 1 - beta1,
        "new2": 1 - beta2,
        "pace": settings["rate"] * root / (1 - beta1**step),
        "least": settings["epsilon"] * root,
    }


OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType({
    "sgd": Optimizer({"p": "p - rate * (g + decay * p)"}, {"rate": 0.01, "decay": 0.0}, _settings),
    "momentum": Optimizer(
        {"m": "momentum * m + g + decay * p", "p": "p - rate * m"},
        {"rate": 0.01, "momentum": 0.9, "decay": 0.0},
        _settings,
    ),
    "adam": Optimizer(
        {
            "m": "beta1 * m + new1 * (g + decay * p)",
            "v": "beta2 * v + new2 * abs(g + decay * p) * abs(g + decay * p)",
            "p": "p - pace * m / (sqrt(v) + least)",
        },
        {"rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "decay": 0.0},
        _adam_numbers,
    ),
})  # fmt: skip
"""By the names of `optimizer=`."""

SHARES = ("beta1", "beta2")
"""CallOptions below 1: by 1 less their powers is divided."""


def optimizer_of(name: str) -> Optimizer:
    """Find an optimiser by its name. Raises OperandError."""
    optimizer = OPTIMIZERS.get(name)
    if optimizer is None:
        raise OperandError(
            f"Expected optimizer to be one of {', '.join(OPTIMIZERS)}, found {name!r}",
            hint=with_suggestion('as in optimizer="adam"', str(name), [*OPTIMIZERS]),
        )
    return optimizer


def settings_of(optimizer: Optimizer, name: str, settings: Mapping[str, float]) -> dict[str, float]:
    """Check and complete a user's settings of an optimizer. Raises OperandError."""
    for key in settings:
        if key not in optimizer.settings:
            raise OperandError(
                f"Expected settings among {', '.join(optimizer.settings)} for {name}, found {key}",
                hint=with_suggestion(f"{name} has no other settings", key, [*optimizer.settings]),
            )
        if not _fits(key, settings[key]):
            raise OperandError(
                f"Expected {key} to be a number {_range(key)}, found {settings[key]!r}",
                hint=f"as in {key}={optimizer.settings[key]}",
            )
    return {**optimizer.settings, **{key: float(value) for key, value in settings.items()}}


def _fits(key: str, value: Any) -> bool:
    """Tell whether a setting has such a value."""
    return isinstance(value, Real) and 0 <= float(value) < (1 if key in SHARES else inf)


def _range(key: str) -> str:
    return "of at least 0 and less than 1" if key in SHARES else "of at least 0"
