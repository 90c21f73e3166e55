"""What every road of a call answers to every verb: the proof that a change keeps them as they are.

    python -m tests.dump_calls FOLDER                   a file for each road: run it before and
                                                        after a change, and compare with `diff -r`
    python -m tests.dump_calls FOLDER --groups blocks   these roads alone
    python -m tests.dump_calls FOLDER --share 20        each 20th call of a road

The calls are those of `tests.corpus.calls`, and of the plain road a part of the corpus of
expressions too. Each verb answers with its plans, the hashes of their C, its text, the texts of
fast paths, and its result: type, format, dtype, shape, and a digest of rounded values; or with the
error. Everything is planned for a nominal machine. `FOLDER/refusals` counts answers and errors by
road and verb.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import pickle
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.calls import EMULATED, ROADS, Call, build, calls_of
from tests.dump import STORAGES, cases, digest, operands, text_of
from tests.watched_calls import WATCH, TimingError, frames, nominal

PARTS = 9
"""Of the corpus of expressions, each so-many-th is asked for."""
DIGITS = 5
FEW = 100
"""Frames that calls by fast paths take at most."""
FRONTIER = re.compile(r"^schedules of (?s:.*?)(?=\n\n|\Z)", re.M)
"""What is said of the frontier: as much as there is time for."""
LITTLE = 16
"""Bytes that no call gets by with: the refusal says how many it takes at once."""


# ---------------------------------------------------------------- verbs


@dataclass(slots=True)
class Answer:
    """Lines about one verb of a call.

    error  the type and the first line of the error, "" where there is none
    """

    verb: str
    lines: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def text(self) -> str:
        """Return the lines, without what differs from run to run."""
        return _normal("\n".join(self.lines))


def compute(call: Call, answer: Answer) -> None:
    """Compute the result, and once more by the fast path."""
    given = call.operands()
    function, options = _function(call), call.arguments()
    result = _called(function, call.text, given, options, answer)
    answer.lines += described(result)
    again = [_called(function, call.text, given, call.arguments(), answer) for _ in range(2)]
    kept = call.arguments()
    answer.lines.append(warmth(lambda: _called(function, call.text, given, kept, answer)))
    if described(again[1]) != described(result):
        answer.lines += ["then", *described(again[1])]


def explain(call: Call, answer: Answer) -> None:
    """Explain the call; the frontier is not compared with, for that takes what time there is."""
    options = {"frontier_budget": 0, **call.arguments()}
    answer.lines += str(
        _called(tp.explain, call.text, call.operands(), options, answer)
    ).splitlines()


def compile_kernel(call: Call, answer: Answer) -> None:
    """Compile the call's text for its operands' formats: what the kernel tells, and its result."""
    given, options = call.operands(), call.arguments()
    formats = {name: _format(each) for name, each in given.items()}
    dtypes = {name: _dtype(each) for name, each in given.items()}
    mask = options.pop("mask", None)
    if mask is not None:
        options["mask"] = _format_of_mask(call.options["mask"])
    if isinstance(options.get("format"), str):
        formats[re.split(r"\W", call.text, maxsplit=1)[0]] = options.pop("format")
    out = options.pop("out", None)
    options["dtypes"] = dtypes
    if any(isinstance(each, tp.DeviceTensor) for each in given.values()):
        options.setdefault("target", EMULATED)
    kernel = _called(tp.compile, call.text, formats, options, answer)
    answer.lines += [type(kernel).__name__, repr(kernel), f"source {digest(kernel.source)}"]
    answer.lines += kernel.explain().splitlines()
    for name, tell in KERNEL_VERBS.items():
        if hasattr(kernel, name):
            with refusing(answer, f"{name} "):
                answer.lines.append(f"{name} {tell(kernel)}")
        else:
            answer.lines.append(f"no {name}")
    given |= {} if mask is None else {"mask": mask}
    outs = {} if out is None else {"out": out}
    with refusing(answer, "call "):
        result = kernel(**given, **outs)
        answer.lines += described(result)
        kernel(**given, **outs)
        answer.lines.append(warmth(lambda: kernel(**given, **outs)))


def _exported(kernel: Any) -> str:
    """Return the digest of the files that a kernel exports."""
    with tempfile.TemporaryDirectory() as folder:
        paths = kernel.export(folder)
        return " ".join(f"{path.name}:{digest(path.read_text())}" for path in sorted(paths))


KERNEL_VERBS: Mapping[str, Callable[[Any], str]] = {
    "schedule": lambda kernel: " ".join(str(kernel.schedule).split()),
    "show": lambda kernel: digest(str(kernel.show())),
    "export": _exported,
    "_repr_html_": lambda kernel: digest(_normal(kernel._repr_html_())),
    "__reduce__": lambda kernel: repr(pickle.loads(pickle.dumps(kernel))),
}
"""What kernels are asked for besides their texts."""


def peak(call: Call, answer: Answer) -> None:
    """Ask for more memory than is allowed: the refusal says how much that is."""
    options = {**call.arguments(), "memory_limit": LITTLE}
    answer.lines += described(_called(_function(call), call.text, call.operands(), options, answer))


def oracle(call: Call, answer: Answer) -> None:
    """Compute the result by NumPy."""
    result = _called(tp.evaluate_dense, call.text, call.operands(), call.arguments(), answer)
    answer.lines += described(result)


def tune(call: Call, answer: Answer) -> None:
    """Tune the call up to where plans would be timed."""
    with tp.TuningStore() as store:
        options = {**call.arguments(), "trials": 1, "store": store}
        with contextlib.suppress(TimingError):
            _called(tp.tune, call.text, call.operands(), options, answer)
    answer.lines.append("is tuned")


def differentiate(call: Call, answer: Answer) -> None:
    """Differentiate backwards and forwards: statements, explanation, cotangents, tangents."""
    given, options = call.operands(), call.arguments()
    options.pop("out", None)
    pullback = _called(tp.vjp, call.text, given, options, answer)
    answer.lines += [*pullback.text.splitlines(), f"by {', '.join(pullback.wrt)}"]
    result = _called(tp.evaluate, call.text, given, options, answer)
    outputs = result if isinstance(result, tuple) else (result,)
    seeds = [np.ones_like(_dense(each)) for each in outputs]
    answer.lines += described(pullback(*seeds))
    answer.lines += FRONTIER.sub("", pullback.explain(*seeds)).splitlines()
    pushforward = _called(tp.jvp, call.text, given, options, answer)
    answer.lines += described(pushforward({name: given[name] for name in pushforward.wrt}))


VERBS: Mapping[str, Callable[[Call, Answer], None]] = {
    "compute": compute, "explain": explain, "compile": compile_kernel, "peak": peak,
    "oracle": oracle, "tune": tune, "differentiate": differentiate,
}  # fmt: skip
OF_EINSUM = ("compute", "explain", "peak")


def _function(call: Call) -> Callable[..., Any]:
    """Return the function that computes the call."""
    return tp.evaluate if "=" in call.text else tp.einsum


def _called(
    function: Callable[..., Any],
    text: str,
    given: Mapping[str, Any],
    options: Mapping[str, Any],
    answer: Answer,
) -> Any:
    """Call a function with the options that it has; a line says which it has not."""
    known = inspect.signature(function).parameters
    lacking = [name for name in options if name not in known]
    line = f"without {', '.join(lacking)}: not an option"
    if lacking and line not in answer.lines:
        answer.lines.append(line)
    passed = {name: value for name, value in options.items() if name in known}
    if "=" in text:
        return function(text, given, **passed)
    return function(text, *given.values(), **passed)


def _format(obj: Any) -> Any:
    """Return the format of an operand."""
    if isinstance(obj, tp.Tensor | tp.DeviceTensor):
        return obj.format
    return tp.tensor(obj).format if sp.issparse(obj) else tp.dense(np.ndim(obj))


def _dtype(obj: Any) -> str:
    return str(obj.dtype if hasattr(obj, "dtype") else np.asarray(obj).dtype)


def _format_of_mask(described: str) -> Any:
    """Return the format of a mask with what is said of it."""
    made = _format(next(iter(build(described.lstrip("~?")).values())))
    made = tp.by_value(made) if "?" in described else made
    return tp.complement(made) if "~" in described else made


# ---------------------------------------------------------------- answers as text


def described(result: Any) -> list[str]:
    """Return a line for each tensor of a result."""
    if isinstance(result, tuple):
        return [line for each in result for line in described(each)]
    array = _dense(result)
    form = getattr(result, "format", "")
    fill = getattr(result, "fill_value", 0)
    stored = f" nnz {result.nnz}" if hasattr(result, "nnz") else ""
    kind = f"{type(result).__name__} {form} {array.dtype} {array.shape}{stored}"
    return [f"= {kind}{f' fill {fill}' if fill else ''} {_rounded(array)}"]


def _dense(result: Any) -> Any:
    """Return any result as an array; scipy makes none of 16-bit types."""
    if isinstance(result, tp.DeviceTensor):
        result = result.to_host()
    result = tp.tensor(result) if sp.issparse(result) else result
    return result.to_numpy() if isinstance(result, tp.Tensor) else np.asarray(result)


def _rounded(array: Any) -> str:
    """Return the digest of an array's values to a few digits."""
    wide = array.astype("complex128" if array.dtype.kind == "c" else "float64").ravel()
    return digest(" ".join(f"{each + 0:.{DIGITS}g}" for each in wide))


def warmth(run: Callable[[], Any]) -> str:
    """Return a line with the frames of a call by a fast path; those of others are not the same."""
    count = frames(run)
    return f"warm {count} frames" if count < FEW else f"warm {FEW} frames and more"


@contextlib.contextmanager
def refusing(answer: Answer, begin: str = "") -> Iterator[None]:
    """Write an error as a line, a warning too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            answer.error = begin + text.partition("\n")[0]
            answer.lines.append(f"{begin}refused: {text}")
    told = dict.fromkeys(f"{each.category.__name__}: {each.message}" for each in caught)
    answer.lines += [f"warned: {each}" for each in told]


TIMES = (
    (re.compile(r"^(  compiled ).*$", re.M), r"\1"),
    (re.compile(r"^  takes .*\n(?: {14}.*\n?)*", re.M), ""),
    (re.compile(r"0x[0-9a-f]{6,}"), "0x"),
    (re.compile(r"/tmp/[^\s'\"]+"), "/tmp"),
    (re.compile(r"[0-9.]+ [kMGT]?B (?:is|are) free"), "free"),
)
"""What differs from run to run."""


def _normal(text: str) -> str:
    for pattern, instead in TIMES:
        text = pattern.sub(instead, text)
    return text


def asked(call: Call) -> Iterator[Answer]:
    """Ask every verb about a call; texts that were told before are named by their digests."""
    known: set[str] = set()

    def named(kind: str, text: str) -> str:
        key = digest(text)
        if key in known:
            return f"{kind} {key}"
        known.add(key)
        return f"{kind} {key}\n{text}"

    for verb in VERBS if "=" in call.text else OF_EINSUM:
        answer = Answer(verb)
        WATCH.clear()
        with refusing(answer):
            VERBS[verb](call, answer)
        for plan in WATCH.plans:
            sources = " ".join(map(WATCH.source, plan.recipes))
            answer.lines.append(named("plan", "\n".join((*text_of(plan), f"C {sources}"))))
        answer.lines += [named("fast path", text) for text in WATCH.paths]
        yield answer


@dataclass(frozen=True, slots=True)
class Expression(Call):
    """A case of the corpus of expressions in some formats."""

    made: Callable[[], dict[str, Any]] = field(kw_only=True, repr=False)

    def operands(self) -> dict[str, Any]:
        """Make the operands."""
        return self.made()


def calls(road: str) -> Iterator[Call]:
    """List the calls of a road; those of the plain one with a part of the corpus."""
    yield from calls_of(road)
    if road == "plain":
        for place, case in enumerate(cases()[::PARTS]):
            storages = STORAGES[place % len(STORAGES)]
            made = functools.partial(operands, case, storages)
            yield Expression(case.text, ",".join(storages), made=made)


def dump(folder: Path, roads: list[str], share: int = 1) -> Counter[tuple[str, str, str]]:
    """Write the answers of roads, and return how many there are by road, verb and error.

    Calls that the oracle refuses too are not told apart: they have no meaning.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts: Counter[tuple[str, str, str]] = Counter()
    for road in roads:
        begin, count = process_time(), 0
        with (folder / road).open("w") as file:
            for call in list(calls(road))[::share]:
                answers = list(asked(call))
                count += len(answers)
                file.write(f"##### {call.name}\n")
                file.writelines(f"--- {each.verb}\n{each.text}\n" for each in answers)
                meant = not any(each.error for each in answers if each.verb == "oracle")
                for each in answers:
                    error = each.error if meant else "refused by the oracle too"
                    counts[road, each.verb, error or "answered"] += 1
        print(f"{road:20} {count:5} records {process_time() - begin:6.1f} s", flush=True)
    return counts


def table(counts: Counter[tuple[str, str, str]]) -> str:
    """Return a line for each road, verb and error with how many calls there are."""
    lines = (f"{road:18} {verb:13} {n:4}  {error}\n" for (road, verb, error), n in counts.items())
    return _normal("".join(sorted(lines)))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--groups", nargs="*", default=list(ROADS), choices=list(ROADS))
    parser.add_argument("--share", type=int, default=1)
    options = parser.parse_args(arguments)
    with nominal():
        counts = dump(options.folder, options.groups, options.share)
    (options.folder / "refusals").write_text(table(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
