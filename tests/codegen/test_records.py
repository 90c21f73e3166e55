"""`codegen.records.dataclass` against the decorator of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from dataclasses import field
from types import ModuleType
from typing import Any, ClassVar

import pytest

from codegen.records import dataclass


class Point:
    """Two numbers."""

    x: int
    y: int = 2


class Node:
    """A field that is not compared, one that is made anew, one that another sets."""

    name: str
    items: list[int] = field(default_factory=list)
    span: int | None = field(default=None, compare=False, repr=False)
    length: int = field(init=False, repr=False)
    limit: int = field(default=7, init=False)
    kind: ClassVar[str] = "node"

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.items))


class Own:
    """Methods of its own."""

    x: int

    def __init__(self, x: int) -> None:
        object.__setattr__(self, "x", -x)

    def __repr__(self) -> str:
        return "mine"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 5


class Empty:
    """No fields."""


KEYWORDS: tuple[dict[str, Any], ...] = (
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
    {"slots": True},
    {"slots": True, "eq": False, "repr": False},
    {},
    {"frozen": True},
)
ARGUMENTS: dict[type, tuple[tuple[Any, ...], ...]] = {
    Point: ((1,), (1, 2), (3, 4)),
    Node: (("a",), ("a", [1, 2]), ("a", [1, 2], 9)),
    Own: ((1,), (2,)),
    Empty: ((),),
}
CASES = [(cls, keywords) for cls in ARGUMENTS for keywords in KEYWORDS]


def both(cls: type, keywords: dict[str, Any]) -> tuple[Any, Any]:
    """`cls` as the standard library makes it, and as we do."""
    members = {n: v for n, v in vars(cls).items() if n not in ("__dict__", "__weakref__")}
    return tuple(
        decorator(**keywords)(type(cls.__name__, (), dict(members)))
        for decorator in (dataclasses.dataclass, dataclass)
    )


def outcome(compute: Any) -> Any:
    try:
        return compute()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(("cls", "keywords"), CASES, ids=str)
def test_objects_are_those_of_the_standard_library(cls: type, keywords: dict[str, Any]) -> None:
    theirs, ours = both(cls, keywords)
    for arguments in ARGUMENTS[cls]:
        a, b = theirs(*arguments), ours(*arguments)
        if "__repr__" in vars(theirs):
            assert repr(a) == repr(b)
        assert dataclasses.asdict(a) == dataclasses.asdict(b)
        assert hasattr(a, "__dict__") == hasattr(b, "__dict__")
        if vars(theirs).get("__hash__", object.__hash__) is not object.__hash__:
            assert outcome(lambda a=a: hash(a)) == outcome(lambda b=b: hash(b))
        for others in ARGUMENTS[cls]:
            assert (a == theirs(*others)) == (b == ours(*others))
        assert b != a or cls is Own


@pytest.mark.parametrize(("cls", "keywords"), CASES, ids=str)
def test_classes_are_described_alike(cls: type, keywords: dict[str, Any]) -> None:
    theirs, ours = both(cls, keywords)
    assert str(inspect.signature(theirs)) == str(inspect.signature(ours))
    assert theirs.__match_args__ == ours.__match_args__
    assert [f.name for f in dataclasses.fields(theirs)] == [
        f.name for f in dataclasses.fields(ours)
    ]
    assert theirs.__doc__ == ours.__doc__
    assert ours.__init__.__qualname__ == theirs.__init__.__qualname__
    assert ours.__init__.__annotations__ == theirs.__init__.__annotations__
    assert (theirs.__hash__ is None) == (ours.__hash__ is None)
    assert (theirs.__hash__ is object.__hash__) == (ours.__hash__ is object.__hash__)


def test_wrong_arguments_are_refused_in_the_same_words() -> None:
    theirs, ours = both(Point, {"frozen": True, "slots": True})
    for arguments in ((), (1, 2, 3)):
        assert outcome(lambda a=arguments: theirs(*a)) == outcome(lambda a=arguments: ours(*a))


def test_frozen_objects_stay_as_they_are() -> None:
    theirs, ours = both(Point, {"frozen": True, "slots": True})
    for cls in (theirs, ours):
        point = cls(1)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            point.x = 3
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
            del point.x
        assert dataclasses.replace(point, x=5) == cls(5)


def test_others_can_be_changed() -> None:
    _, ours = both(Point, {"slots": True})
    point = ours(1)
    point.x = 3
    assert point == ours(3)
    with pytest.raises(AttributeError):
        point.z = 1


@dataclass(frozen=True, slots=True)
class Pair:
    """At module level, where pickle finds it."""

    left: int
    right: int = 0


@dataclass(frozen=True, slots=True)
class Triple(Pair):
    """With the fields of its base."""

    third: int = 1


@pytest.mark.parametrize("value", (Pair(1, 2), Triple(1, 2, 3)), ids=str)
def test_pickle_and_copy(value: Any) -> None:
    for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert again == value
        assert again is not value


def test_inherited_fields_come_first() -> None:
    assert repr(Triple(1, third=2)) == "Triple(left=1, right=0, third=2)"
    assert Triple(1) != Pair(1)
    match Triple(1, 2, 3):
        case Triple(left, right, third):
            assert (left, right, third) == (1, 2, 3)


def test_methods_are_written_when_they_are_looked_up() -> None:
    _, ours = both(Point, {"frozen": True, "slots": True})
    methods = ("__init__", "__repr__", "__eq__", "__hash__")
    assert not any(inspect.isfunction(vars(ours)[name]) for name in methods)
    point = ours(1)
    assert inspect.isfunction(vars(ours)["__init__"])
    assert (repr(point), point == ours(1), hash(point)) == ("Point(x=1, y=2)", True, hash((1, 2)))
    assert all(inspect.isfunction(vars(ours)[name]) for name in methods)


def modules() -> list[ModuleType]:
    """Every module of the three packages."""
    names = ("codegen", "polyhedral", "taco_py")
    packages = [importlib.import_module(name) for name in names]
    return [
        importlib.import_module(info.name)
        for package in packages
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not info.name.endswith("__main__")
    ]


def test_every_class_of_the_project_has_the_signature_of_the_standard_library() -> None:
    classes = {
        cls
        for module in modules()
        for cls in vars(module).values()
        if isinstance(cls, type) and dataclasses.is_dataclass(cls)
    }
    assert len(classes) > 200
    for cls in classes:
        expected = [f.name for f in dataclasses.fields(cls) if f.init]
        assert list(inspect.signature(cls).parameters) == expected, cls
