"""Modules under the names that release 0.1 had: pickles of Tensors name them.

    import taco_py.formats.format   →   taco_py.language.formats.format

Python asks this finder first, for a folder of today would find its modules under both names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

FORMER = {
    "api.tuning": "api", "call": "calls.call", "call.tuning": "tuning.bench",
    "diagnostics": "language.diagnostics", "formats": "language.formats",
    "notation": "language.notation", "schedule": "compiler.schedule", "storage": "data.storage",
    "tune": "tuning", "values": "data.tensors",
}  # fmt: skip
"""Folders of release 0.1 whose classes and functions pickles may name, and where they are."""


class FormerNames(MetaPathFinder, Loader):
    """Find a module of release 0.1 where it is today."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a former name, None for any other."""
        name_today = today(name)
        if name_today is None:
            return None
        module = import_module(name_today)
        spec = ModuleSpec(name, self, is_package=hasattr(module, "__path__"))
        spec.loader_state = (module, module.__spec__)
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of today, which both names then mean."""
        module: ModuleType = spec.loader_state[0]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave a module as it is: it ran under its name of today."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state[1]


def today(name: str) -> str | None:
    """Return the name that a module of release 0.1 has now; None for other modules."""
    package, _, rest = name.partition(".")
    folders = rest.split(".")
    for count in (2, 1):
        folder = FORMER.get(".".join(folders[:count])) if package == "taco_py" else None
        if folder is not None:
            return ".".join((package, folder, *folders[count:]))
    return None


def install() -> None:
    """Let Python find former names from now on."""
    sys.meta_path.insert(0, FormerNames())
