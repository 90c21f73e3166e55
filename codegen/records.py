"""`@dataclass`, whose methods are written when they are first looked up.

The decorator of the standard library compiles the text of up to six methods for each class: 0.6 ms,
half of the time of a process's first call, for methods most of which are never called. This
decorator puts a `_Later` in the place of each method. Before → after the first `Add(x, y)`:

    vars(Add)["__init__"]    <_Later>  →  <function Add.__init__(self, left: Expr, right: Expr)>

Fields, `replace`, `match`, pickling, the results of the methods and the view of a type checker are
those of the standard library, with two exceptions: a frozen object refuses assignments to every
attribute, and `__repr__` does not look for an object that contains itself.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

Write = Callable[[Any], Callable[..., Any]]
Field = dataclasses.Field[Any]


def _decorate(
    cls: Any = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Any:
    """Make `cls` a dataclass. Keywords mean what they mean in the standard library."""
    if cls is None:
        return lambda class_: _decorate(class_, frozen=frozen, slots=slots, eq=eq, repr=repr)
    existing = frozenset(vars(cls))
    hashed = vars(cls).get("__hash__") is not None
    record: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    _put(record, existing, "__init__", _write_init)
    if repr:
        _put(record, existing, "__repr__", _write_repr)
    if eq:
        _put(record, existing, "__eq__", _write_eq)
    if eq and not hashed:
        record.__hash__ = _Later(record, "__hash__", _write_hash) if frozen else None
    if frozen:
        record.__setattr__, record.__delattr__ = _refuse_assignment, _refuse_deletion
        if slots:
            record.__getstate__, record.__setstate__ = _get_state, _set_state
    return record


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _decorate

__all__ = ["dataclass"]


class _Later:
    """A method in `owner` that is not written yet."""

    __slots__ = ("name", "owner", "write")

    def __init__(self, owner: Any, name: str, write: Write) -> None:
        self.owner, self.name, self.write = owner, name, write

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        method = self.write(self.owner)
        method.__qualname__ = f"{self.owner.__qualname__}.{self.name}"
        setattr(self.owner, self.name, method)
        return method.__get__(instance, cls)


def _put(cls: Any, defined: frozenset[str], name: str, write: Write) -> None:
    """Leave the method `name` to be written, unless it is among the class's own."""
    if name not in defined:
        setattr(cls, name, _Later(cls, name, write))


def _write_init(cls: Any) -> Callable[..., Any]:
    """Return `def __init__(self, a, b=…)`, which sets each field and calls `__post_init__`."""
    fields = dataclasses.fields(cls)
    values: dict[str, Any] = {"_new": _NEW}
    lines = []
    for field in fields:
        value = _initial(field, values)
        if value is not None:
            values[f"_set_{field.name}"] = _setter(cls, field.name)
            lines.append(f"_set_{field.name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ["self", *(_parameter(f) for f in fields if f.init)]
    method = _function(cls, "__init__", parameters, lines or ["pass"], values)
    method.__annotations__ = {**{f.name: f.type for f in fields if f.init}, "return": None}
    return method


def _initial(field: Field, values: dict[str, Any]) -> str | None:
    """Return the text of the value of `field`; None where `__post_init__` sets it.

    Adds to `values` the objects that the text and the parameter's default name.
    """
    if field.default_factory is not dataclasses.MISSING:
        values[f"_make_{field.name}"] = field.default_factory
        new_value = f"_make_{field.name}()"
        return f"{new_value} if {field.name} is _new else {field.name}" if field.init else new_value
    if field.default is not dataclasses.MISSING:
        values[f"_default_{field.name}"] = field.default
        return field.name if field.init else f"_default_{field.name}"
    return field.name if field.init else None


def _parameter(field: Field) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"{field.name}=_new"
    if field.default is not dataclasses.MISSING:
        return f"{field.name}=_default_{field.name}"
    return field.name


class _New:
    """The default of a parameter whose value is made anew by each call."""

    def __repr__(self) -> str:
        return "<factory>"


_NEW = _New()


def _setter(cls: Any, name: str) -> Callable[[Any, Any], None]:
    """Return the setter of the field `name`, for frozen classes too."""
    slot = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
    if slot is not None and hasattr(slot, "__set__"):
        setter: Callable[[Any, Any], None] = slot.__set__
        return setter
    return lambda instance, value: object.__setattr__(instance, name, value)


def _write_repr(cls: Any) -> Callable[..., Any]:
    """Return `Add(left=…, right=…)`."""
    fields_text = ", ".join(
        f"{f.name}={{self.{f.name}!r}}" for f in dataclasses.fields(cls) if f.repr
    )
    line = f"return f'{{self.__class__.__qualname__}}({fields_text})'"
    return _function(cls, "__repr__", ["self"], [line])


def _write_eq(cls: Any) -> Callable[..., Any]:
    """Return `__eq__`, which compares fields of objects of one class."""
    compared = [f.name for f in dataclasses.fields(cls) if f.compare]
    lines = [
        "if other.__class__ is not self.__class__:",
        "    return NotImplemented",
        f"return {_tuple_of('self', compared)} == {_tuple_of('other', compared)}",
    ]
    return _function(cls, "__eq__", ["self", "other"], lines)


def _write_hash(cls: Any) -> Callable[..., Any]:
    """Return the hash of the compared fields."""
    fields = dataclasses.fields(cls)
    hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
    return _function(cls, "__hash__", ["self"], [f"return hash({_tuple_of('self', hashed)})"])


def _tuple_of(name: str, fields: Iterable[str]) -> str:
    return f"({''.join(f'{name}.{field}, ' for field in fields)})"


def _function(
    cls: Any, name: str, parameters: list[str], body: list[str], values: Any = None
) -> Callable[..., Any]:
    """Return `def name(parameters): body`, as if written in the module of `cls`, with `values` at
    hand."""
    values = values or {}
    lines = [
        f"def _with({', '.join(values)}):",
        f"    def {name}({', '.join(parameters)}):",
        *(f"        {line}" for line in body),
        f"    return {name}",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), vars(sys.modules[cls.__module__]), namespace)
    method: Callable[..., Any] = namespace["_with"](**values)
    return method


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    """Return the values of the fields, for `pickle` and `copy`."""
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
