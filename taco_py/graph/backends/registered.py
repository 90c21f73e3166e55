"""The backends of a process, by their names: those that come with it, and users'.

blas    SciPy's BLAS            mkl    Intel's library, where it is installed
jsonvm  regions as JSON, interpreted in another process
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

from codegen.records import dataclass
from taco_py.graph.backends.backend import HOST, Backend
from taco_py.graph.nodes import Graph
from taco_py.language.diagnostics.errors import OperandTypeError, ScheduleError
from taco_py.language.diagnostics.suggest import with_suggestion

COMING: Mapping[str, str] = MappingProxyType({
    "blas": "taco_py.graph.backends.blas_backend",
    "mkl": "taco_py.graph.backends.mkl_backend",
    "jsonvm": "taco_py.graph.backends.jsonvm_backend",
})  # fmt: skip
"""The modules of backends that come with it, whose `make` makes one."""


class Registered:
    """The backends that were registered, and those of `COMING` that were asked for."""

    __slots__ = ("backends",)

    def __init__(self) -> None:
        self.backends: dict[str, Backend] = {}

    def put(self, backend: Backend) -> None:
        """Let `backends=` name a backend, in the place of the one that had the name."""
        self.backends[backend.name] = backend

    def find(self, name: str) -> Backend:
        """Return the backend of a name. Raises MissingExtraError where its library is missing."""
        if name not in self.backends:
            self.backends[name] = import_module(COMING[name]).make()
        return self.backends[name]

    def names(self) -> list[str]:
        """Return all names, the built-in backends' first."""
        return [*dict.fromkeys((*COMING, *self.backends))]


Parts = Mapping[str, Sequence[Sequence[str]]]
Regions = Parts | Callable[[Graph], Parts]
"""Names of primitives by backends, or what makes them of the graph of primitives."""

REGISTERED = Registered()
"""The backends of this process."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Backends that may be used, in the order in which they are preferred.

    before  how many of them are preferred to this compiler where both take as long
    regions the user's partition, None where it is left to prices
    """

    backends: tuple[Backend, ...]
    before: int
    regions: Regions | None = None


NONE = Preference((), 0)
"""No backends."""


def register_backend(backend: Backend) -> None:
    """Let `tp.fuse(f, backends=…)` name a backend, instead of an earlier one of its name.

    >>> none = tp.Backend("none_at_all", (), None, lambda region, constants: None, lambda c, a: a)
    >>> tp.register_backend(none)
    >>> tp.fuse(lambda x: x + 1, backends=("none_at_all",))(np.zeros(2))
    array([1., 1.])

    backend  a tp.Backend; functions that were fused before keep the one that they have

    Raises OperandTypeError for anything else.
    """
    if not isinstance(backend, Backend):
        raise OperandTypeError(
            f"Expected a tp.Backend, found {type(backend).__name__}",
            hint="tp.Backend(name, patterns, supports, codegen, runtime)",
        )
    REGISTERED.put(backend)


def preference_of(names: Any, regions: Regions | None = None) -> Preference:
    """Return the backends of `backends=`. Raises ScheduleError for names of none."""
    requested: Sequence[Any] = (names,) if isinstance(names, str) else tuple(names)
    allowed = [HOST, *REGISTERED.names()]
    for place, name in enumerate(requested):
        if name not in allowed:
            raise ScheduleError(
                f"Expected backends= to be of {', '.join(allowed)}, found {name!r}",
                hint=with_suggestion("tp.register_backend adds others", str(name), allowed),
            )
        if name in requested[:place]:
            raise ScheduleError(f"Expected each backend once, found {name!r} twice")
    _check_regions(requested, regions)
    before = requested.index(HOST) if HOST in requested else len(requested)
    return Preference(
        tuple(REGISTERED.find(name) for name in requested if name != HOST), before, regions
    )


def _check_regions(names: Sequence[str], regions: Regions | None) -> None:
    """Raise ScheduleError for regions that are no lists of names by backends."""
    if regions is None or callable(regions):
        problem = None if regions is None or names else "no backends"
    elif not isinstance(regions, Mapping):
        problem = type(regions).__name__
    elif not names:
        problem = "no backends"
    else:
        parts = [part for region_list in regions.values() for part in region_list]
        problem = next((repr(part) for part in parts if isinstance(part, str)), None)
    if problem is not None:
        raise ScheduleError(
            f"Expected regions= to be lists of names by one of backends=, found {problem}",
            hint='backends=("blas",), regions={"blas": [["p0", "p1"]]}; f.graph(…).explain() lists '
            "the names",
        )
