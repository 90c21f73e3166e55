"""Modules under their names in release 0.1, which pickles of Tensors contain.

    from taco_py.formats.format import Format   →   taco_py.language.formats.format.Format

Python asks this finder first: a folder of an older release may still exist.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

FORMER = {
    "call": "calls.call", "call.tuning": "tuning.bench",
    "diagnostics": "language.diagnostics", "formats": "language.formats",
    "notation": "language.notation", "schedule": "compiler.schedule", "storage": "data.storage",
    "tune": "tuning", "values": "data.tensors",
}  # fmt: skip
"""Folders of release 0.1 whose classes and functions pickles may name, with their new folders."""


class FormerNames(MetaPathFinder, Loader):
    """Finder of modules of release 0.1, which have the attributes of the modules of today."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a former name, None for any other."""
        return None if today(name) is None else ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python creates an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Look up the attributes of a former module in the module of today."""
        name = today(module.__name__)
        assert name is not None
        module.__dict__["__getattr__"] = partial(getattr, import_module(name))


def today(name: str) -> str | None:
    """Return the present name of a module of release 0.1, None for other modules."""
    package, _, rest = name.partition(".")
    folders = rest.split(".")
    for count in (2, 1):
        folder = FORMER.get(".".join(folders[:count])) if package == "taco_py" else None
        if folder is not None:
            return ".".join((package, folder, *folders[count:]))
    return None


def install() -> None:
    """Install the finder, so that Python finds former names."""
    sys.meta_path.insert(0, FormerNames())
