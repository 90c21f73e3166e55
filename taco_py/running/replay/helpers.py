"""What a short way calls besides kernels, as plain data that a later process reads.

    Helper("taco_py.data.tensors.hand_out:handed_out", {"kind": "csr_array"})
    ->  functools.partial(taco_py.data.tensors.hand_out.handed_out, kind="csr_array")

The modules named here import nothing of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.formats import Format

PLACES = frozenset(
    f"taco_py.{module}:{name}"
    for module, names in {
        "data.convert.in_type": ("in_type", "values_in_type"),
        "running.execute.new_array": ("new_array",),
        "running.execute.shown_array": ("with_fewer_modes",),
        "data.interop.in_order": ("in_order",),
        "data.interop.numpy_arrays": ("from_numpy",),
        "data.interop.scipy_arrays": ("from_scipy", "is_ascending", "is_canonical"),
        "data.interop.transforms": (
            "diagonal", "located", "size_of", "fused", "reformatted", "gathered", "values_of",
            "squeeze", "cast",
        ),
        "data.storage.by_level.index_checks": ("are_sound", "in_range", "is_known"),
        "data.storage.grown": ("of_grown",),
        "data.storage.tensor_data": (
            "arrays_of", "converted_to", "dense_data", "number_of", "row_major",
        ),
        "data.tensors.hand_out": ("handed_out",),
        "data.tensors.shown_modes": ("show_array", "show_sparse"),
        "data.tensors.tensor": ("operand_data",),
    }.items()
    for name in names
)  # fmt: skip
"""The functions that short ways call: what is kept on disk names no others."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A function with some of its arguments.

    place     its module and its name
    keywords  plain data and formats
    """

    place: str
    keywords: Mapping[str, Any] | None = None

    def function(self) -> Callable[..., Any]:
        """Return the function itself, imported. Raises InternalError for one that is not in
        `PLACES`."""
        if self.place not in PLACES:
            raise InternalError(f"Expected a function of short ways, found {self.place!r:.80}")
        module, _, name = self.place.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return partial(function, **self.keywords) if self.keywords else function


def resolved(more: Mapping[str, Any]) -> dict[str, Any]:
    """Return each by its name, helpers as functions."""
    return {name: m.function() if isinstance(m, Helper) else m for name, m in more.items()}


def to_plain(more: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the same as data for JSON; None where something is neither a helper nor a format."""
    plain: dict[str, Any] = {}
    for name, entry in more.items():
        if isinstance(entry, Format):
            plain[name] = _format_to_plain(entry)
        elif isinstance(entry, Helper):
            keywords = entry.keywords or {}
            plain[name] = [entry.place, {key: _argument(value) for key, value in keywords.items()}]
        else:
            return None
    return plain


def from_plain(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inverse of `to_plain`. Raises what reading wrong data raises."""
    more: dict[str, Any] = {}
    for name, entry in plain.items():
        if isinstance(entry, dict):
            more[name] = _format_from_plain(entry)
        else:
            place, keywords = entry
            more[name] = Helper(
                place, {key: _argument_from_plain(value) for key, value in keywords.items()}
            )
    return more


def _argument(value: Any) -> Any:
    return _format_to_plain(value) if isinstance(value, Format) else value


def _argument_from_plain(plain: Any) -> Any:
    """Return the argument that plain data stand for: lists were tuples."""
    if isinstance(plain, list):
        return tuple(map(_argument_from_plain, plain))
    return _format_from_plain(plain) if isinstance(plain, dict) else plain


def _format_to_plain(format: Format) -> dict[str, Any]:
    """Return its letters, which do not say which levels are ordered, and that."""
    return {"format": str(format), "ordered": [level.ordered for level in format.levels]}


def _format_from_plain(plain: Mapping[str, Any]) -> Format:
    format = Format.parse(plain["format"])
    pairs = zip(format.levels, plain["ordered"], strict=True)
    levels = tuple(replace(level, ordered=ordered) for level, ordered in pairs)
    return Format(levels, format.mode_order)
