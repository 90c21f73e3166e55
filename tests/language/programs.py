"""Random texts of the whole language over random operands, for the dense oracle to compare with.

A program is one of five kinds: an expression of functions, operators and reductions; a product
over a semiring; subscripts that are more than an index, with a border; several statements. Results
may be masked, be in a given format, or begin from what an operand holds. Operands differ in type,
format and fill value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import taco_py as tp
from tests.language.operands import DTYPES, Spec, built, drawn_spec
from tests.language.terms import Leaf, Term, reduction, term

Array = np.ndarray[Any, Any]

MODES = {
    "A": "ij", "B": "ij", "C": "jk", "D": "ik", "E": "ji", "T": "ijk", "x": "j", "u": "j",
    "b": "i", "w": "k", "c": "",
}  # fmt: skip
LITERALS = (("0", 0, 0), ("1", 1, 0), ("2", 2, 0), ("0.5", 0.5, 1), ("-1", 1, 0), ("3", 3, 0))
SEMIRINGS = (
    "min_plus", "max_plus", "min_times", "max_times", "plus_times", "plus_pair", "any_pair",
    "or_and", "and_or", "xor_and", "min_max", "max_min", "plus_min", "plus_max", "min_first",
    "max_second", "plus_first", "any_second", "times_plus", "lor_land", "min_minus", "or_eq",
    "plus_gt", "max_pair",
)  # fmt: skip
RESULTS = {1: ("d", "s"), 2: ("dd", "ds", "ds:1,0", "ss", "dd:1,0"), 3: ("ddd", "sss")}
UPDATES = ("+=", "+=", "*=", "min=", "max=", "|=", "&=", "^=")


@dataclass(frozen=True, slots=True)
class Program:
    """A text, its operands and the options of the call.

    masked   how the operand `M` masks: "stored", "by value", "complement", …; "" for no mask
    loose    whether infinities and NaN may be elsewhere: of sums with infinities in them
    exact    whether every digit has to agree
    bound    no finite intermediate value is larger
    """

    text: str
    specs: dict[str, Spec]
    options: dict[str, Any] = field(default_factory=dict)
    masked: str = ""
    loose: bool = False
    exact: bool = True
    bound: float = 1.0
    form: str | None = None
    special: bool = False

    def __repr__(self) -> str:
        specs = ", ".join(f"{name}: {spec}" for name, spec in self.specs.items())
        more = [f"{key}={value!r}" for key, value in self.options.items()]
        more += [f"mask {self.masked}"] if self.masked else []
        more += [f"format={self.form}"] if self.form else []
        return f"Program({self.text!r}, {{{specs}}} {' '.join(more)})"

    def given(self, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The operands with some numbers, and the options."""
        random = np.random.default_rng(seed)
        special = self.special and seed % 2 == 1
        operands = {name: built(spec, random, special=special) for name, spec in self.specs.items()}
        options = dict(self.options)
        if self.masked:
            mask = operands.pop("M")
            mask = tp.by_value(mask) if "value" in self.masked else mask
            options["mask"] = tp.complement(mask) if "complement" in self.masked else mask
        return operands, options


class Draft:
    """The sizes, and the operands that a text has so far.

    stretches  whether dense operands may have a mode of size 1 for an index of another size
    """

    def __init__(self, random: Random, *, stretches: bool = False) -> None:
        self.random, self.stretches = random, stretches
        self.sizes = {"i": 4, "j": random.choice((3, 5)), "k": random.choice((2, 3))}
        if random.random() < 0.05:
            self.sizes[random.choice("ijk")] = 0
        self.dtypes = random.sample(DTYPES, 2) if random.random() < 0.5 else [random.choice(DTYPES)]
        self.specs: dict[str, Spec] = {}
        self.made: dict[str, Term] = {}

    def operand(self, name: str, modes: str, dtype: str = "") -> str:
        """The text of an access, whose operand is drawn where there is none."""
        if name not in self.specs and name not in self.made:
            shape = tuple(self.sizes[index] for index in modes)
            drawn = dtype or self.random.choice(self.dtypes)
            spec = drawn_spec(self.random, shape, drawn)
            if spec.form == "dense" and shape and self.stretches and self.random.random() < 0.1:
                spec = Spec((1, *shape[1:]), drawn, "dense")
            self.specs[name] = spec
        return f"{name}[{','.join(modes)}]"

    def leaf(self, random: Random) -> Term:
        """An operand over its own indices, a literal, or an index as a number."""
        kind = random.random()
        if kind < 0.12:
            text, bound, grain = random.choice(LITERALS)
            return Term(text, frozenset(), True, bound, grain)
        if kind < 0.16:
            index = random.choice("ij")
            if any(index in MODES.get(name, "") for name in self.specs):
                return Term(random.choice((index, f"size({index})")), frozenset(index), True, 5, 0)
        if self.made and kind < 0.5:
            name = random.choice([*self.made])
            term = self.made[name]
            return Term(**{**_fields(term), "text": f"{name}[{','.join(sorted(term.indices))}]"})
        name = random.choice([*MODES, "A", "B", "x", "b"])
        text = self.operand(name, MODES[name])
        if kind < 0.22 and MODES[name]:
            return Term(f"stored({text})", frozenset(MODES[name]), True, 1, 0)
        return Term(text, frozenset(MODES[name]))

    def shifted(self, random: Random) -> Term:
        """An operand under subscripts that are more than an index."""
        name = random.choice(("A", "B", "x", "u", "b", "w", "D"))
        modes = MODES[name]
        text = self.operand(name, modes)
        if random.random() < 0.4:
            return Term(text, frozenset(modes))
        subscripts = [self._subscript(random, index) for index in modes]
        free = frozenset().union(*(found for _, found in subscripts))
        return Term(f"{name}[{','.join(each for each, _ in subscripts)}]", free)

    def _subscript(self, random: Random, index: str) -> tuple[str, frozenset[str]]:
        kind = random.randrange(8)
        if kind < 2:
            step = random.choice(("+1", "-1", "+2"))
            return f"{index}{step}", frozenset(index)
        if kind == 2:
            return f"2*{index}", frozenset(index)
        if kind == 3:
            return f"{self.sizes[index]}-{index}", frozenset(index)
        if kind == 4 and index != "k":
            return f"{index}+k", frozenset((index, "k"))
        if kind == 5 and self.sizes[index]:
            name = f"p{index}"
            self.specs[name] = Spec((self.sizes[index],), "int64", "dense", None, self.sizes[index])
            return f"{name}[{index}]", frozenset(index)
        if kind == 6:
            return str(random.randrange(3)), frozenset()
        return index, frozenset(index)


def _fields(term: Term) -> dict[str, Any]:
    return {name: getattr(term, name) for name in Term.__slots__}


def program(random: Random) -> Program:
    """A random program."""
    kind = random.random()
    if kind < 0.55:
        return _expression(random)
    if kind < 0.70:
        return _over_semiring(random)
    if kind < 0.85:
        return _of_statements(random)
    return _with_subscripts(random)


def _finished(random: Random, draft: Draft, text: str, term: Term, **more: Any) -> Program:
    """The program of a text whose last value is that of a term."""
    special = random.random() < 0.4
    fills = any(s.fill is not None and not np.isfinite(s.fill) for s in draft.specs.values())
    return Program(
        text,
        draft.specs,
        loose=term.sums and (term.special or special or fills),
        exact=term.exact,
        bound=term.bound,
        special=special,
        **more,
    )


def _kept(random: Random, value: Term) -> tuple[str, Term]:
    """The indices of the result, and what is assigned to it: some indices are reduced."""
    kept = [index for index in sorted(value.indices) if random.random() < 0.7]
    over = sorted(value.indices - {*kept})
    if over and random.random() < 0.6:
        value = reduction(random, value, over)
    elif over:
        value = Term(**{**_fields(value), "sums": True, "bound": value.bound * 20}).settled()
    random.shuffle(kept)
    return "".join(kept), value


def _expression(random: Random) -> Program:
    draft = Draft(random, stretches=random.random() < 0.2)
    value = term(random, random.choice((1, 2, 2, 3)), draft.leaf)
    if not draft.specs:
        value = draft.leaf(random)
    kept, value = _kept(random, value)
    target = f"R[{','.join(kept)}]" if kept else "R"
    operator, more = "=", dict[str, Any]()
    if kept and random.random() < 0.12:
        operator = random.choice(UPDATES)
        shape = tuple(draft.sizes[index] for index in kept)
        draft.specs["R"] = Spec(shape, random.choice(draft.dtypes), "dense")
        value = Term(**{**_fields(value), "bound": value.bound * 3 + 3, "sums": True})
        value = value if operator not in ("*=", "+=") else value.settled()
    elif kept and random.random() < 0.15:
        more["form"] = random.choice(RESULTS[len(kept)])
    if kept and random.random() < 0.12:
        more["masked"] = _mask(random, draft, kept)
    return _finished(random, draft, f"{target} {operator} {value.text}", value, **more)


def _mask(random: Random, draft: Draft, kept: str) -> str:
    shape = tuple(draft.sizes[index] for index in kept)
    draft.specs["M"] = drawn_spec(random, shape, random.choice(("bool", "float64", "int64")))
    return random.choice(("stored", "by value", "complement", "complement by value"))


def _over_semiring(random: Random) -> Program:
    draft = Draft(random)
    names = random.sample("ABCDExubw", random.choice((1, 2, 2, 3)))
    text = " * ".join(draft.operand(name, MODES[name]) for name in names)
    indices = sorted({index for name in names for index in MODES[name]})
    kept = [index for index in indices if random.random() < 0.5]
    if random.random() < 0.15:
        more = draft.operand("b", "i")
        text, kept = f"{text} + {more}", [*kept, *({"i"} - {*kept})]
    random.shuffle(kept)
    target = f"R[{','.join(kept)}]" if kept else "R"
    options: dict[str, Any] = {"semiring": random.choice(SEMIRINGS)}
    masked = _mask(random, draft, "".join(kept)) if kept and random.random() < 0.35 else ""
    value = Term(text, frozenset(indices), True, 1e3, 3, False, True)
    return _finished(random, draft, f"{target} = {text}", value, options=options, masked=masked)


def _of_statements(random: Random) -> Program:
    draft = Draft(random)
    statements, names = [], []
    for place in range(random.choice((2, 2, 3, 4))):
        value = term(random, random.choice((1, 1, 2)), draft.leaf)
        kept, value = _kept(random, value)
        name = f"t{place}"
        target = f"{name}[{','.join(sorted(kept))}]"
        statements.append(f"{target} = {value.text}")
        draft.made[name] = Term(**{**_fields(value), "indices": frozenset(kept)})
        names.append(name)
    if random.random() < 0.15:
        name = random.choice(names)
        value = draft.made[name]
        again = f"{name}[{','.join(sorted(value.indices))}]"
        added = draft.operand("b", "i") if "i" in value.indices else "2"
        statements.append(f"{again} {random.choice(UPDATES[:5])} {added}")
    every = [*draft.made.values()]
    whole = Term(
        "",
        frozenset(),
        all(each.exact for each in every),
        max(each.bound for each in every) * 4,
        2,
        any(each.special for each in every),
        any(each.sums for each in every),
    )
    options: dict[str, Any] = {}
    if random.random() < 0.5:
        options["outputs"] = tuple(random.sample(names, random.randint(1, len(names))))
    separator = random.choice(("; ", "\n"))
    return _finished(random, draft, separator.join(statements), whole, options=options)


def _with_subscripts(random: Random) -> Program:
    draft = Draft(random)
    leaf: Leaf = draft.shifted
    value = term(random, random.choice((0, 1, 2)), leaf)
    kept = [index for index in sorted(value.indices) if random.random() < 0.7]
    for index, name in (("i", "b"), ("j", "x"), ("k", "w")):
        if index in value.indices and index not in kept:
            factor = draft.operand(name, index)
            text, indices = f"{value.text} * {factor}", value.indices
            value = Term(text, indices, value.exact, value.bound * 60, value.grain + 1)
    random.shuffle(kept)
    value = Term(**{**_fields(value), "sums": True, "special": True}).settled()
    shape = tuple(draft.sizes[index] for index in kept)
    options: dict[str, Any] = {"border": "fill", "shape": shape} if kept else {"border": "fill"}
    target = f"R[{','.join(kept)}]" if kept else "R"
    if len(kept) == 1 and draft.sizes[kept[0]] and random.random() < 0.25:
        (index,) = kept
        draft.specs["q"] = Spec((draft.sizes[index],), "int64", "dense", None, 3)
        options["shape"] = (3,)
        return _finished(random, draft, f"R[q[{index}]] += {value.text}", value, options=options)
    return _finished(random, draft, f"{target} = {value.text}", value, options=options)
