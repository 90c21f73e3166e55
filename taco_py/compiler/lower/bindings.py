"""Sources of the parameters of a kernel, so that a caller can supply the arguments."""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """The tensor's array `what` ("pos", "crd" or "values") of `level`, or a number:

    the "size" of `index`, or the "stride" (in elements) of a dense `tensor` along the mode it
    stores at `level`; or the "check": 1 where the kernel is to see itself whether coordinates of
    `tensor` ascend, and to fail where they do not, 0 where its caller knows.
    """

    what: str
    tensor: str = ""
    level: int = -1
    index: str = ""


Bindings = tuple[tuple[str, Source], ...]


def bindings_to_json(bindings: Bindings) -> list[list[object]]:
    """Return rows that `bindings_from_json` turns back."""
    return [[name, s.what, s.tensor, s.level, s.index] for name, s in bindings]


def bindings_from_json(rows: list[list[object]]) -> Bindings:
    """Return the inverse of `bindings_to_json`."""
    return tuple(
        (str(name), Source(str(what), str(tensor), int(str(level)), str(index)))
        for name, what, tensor, level, index in rows
    )
