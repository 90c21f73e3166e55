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
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

FORMER = {
    "call": "calls.call", "call.tuning": "tuning.bench",
    "diagnostics": "language.diagnostics", "formats": "language.formats",
    "notation": "language.notation", "schedule": "compiler.schedule", "storage": "data.storage",
    "tune": "tuning", "values": "data.tensors",
}  # fmt: skip
"""Folders of release 0.1 whose classes and functions pickles may name, with their new folders."""


class FormerNames(MetaPathFinder, Loader):
    """Find a module of release 0.1, which has the attributes of the module of today."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a former name, None for any other."""
        name_today = today(name)
        exists = name_today is not None and find_spec(name_today) is not None
        return ModuleSpec(name, self, is_package=True) if exists else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Look up the attributes of a former module in the module of today."""
        name = today(module.__name__)
        assert name is not None
        module.__dict__["__getattr__"] = partial(_attribute_of, name)


def _attribute_of(name: str, attribute: str) -> Any:
    """Return an attribute of a module, which is imported once it is asked for one."""
    return getattr(import_module(name), attribute)


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
    """Let Python find former names from now on.

    Folders are modules already, so that no import makes one an attribute of `taco_py`, which has
    functions of these names: `tp.schedule`, `tp.tune`.
    """
    finder = FormerNames()
    sys.meta_path.insert(0, finder)
    for folder in FORMER:
        spec = ModuleSpec(f"taco_py.{folder}", finder, is_package=True)
        sys.modules[spec.name] = module_from_spec(spec)
        finder.exec_module(sys.modules[spec.name])
