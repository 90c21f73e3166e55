"""How fast is the schedule chosen without timing, beside the best of the whole frontier?

Every schedule of the frontier that is a sequence of kernels, or one with workspaces inside its
loops (the CANDIDATES of them that are expected to cost least), is run by itself in a process of its
own, which ends when it takes SLOWER times as long as the chosen one; so is what no frontier has:
what `schedule="measure"` takes, and the same call on copies of the dense operands in the other
order. The fastest of them and the chosen one are then timed in turns.
`python -m benchmarks.chosen` draws what was expected of the first of them against what they took
into `chosen.svg`.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.curves import Cloud, scatter
from benchmarks.inputs import shared_loader
from benchmarks.measure import OURS, Contest, Record, check, in_turns, once, record
from taco_py.tool.inputs import pde27, rmat, tensor_coordinates, uniform

BEST = "best by timing"
SLOWER = 4.0
"""How many times longer than the chosen schedule a schedule may take before it is ended."""
ALLOWED = 0.3
"""Seconds of planning and of short kernels that are allowed besides."""
FINALISTS = 4
CANDIDATES = 40
"""Schedules of a frontier that are run; the rest, by expectation the worst, are left out."""
NEAR = 1.2
"""How many times longer than the best a schedule takes that counts as being about as fast."""
DRAWN = 4
"""Schedules of a frontier that the picture shows, by expectation the best."""
MEMORY = 8 << 30
BUDGET = 3.0
PICTURE = Path(__file__).parent / "chosen.svg"
Compute = Callable[[], Any]
Member = tuple[float, Compute, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Question:
    """One expression; `operands` says for each what it is made of, as `made` reads it."""

    text: str
    operands: Mapping[str, str]

    @property
    def name(self) -> str:
        data = dict.fromkeys(what.partition(":")[0] for what in self.operands.values())
        return f"{self.text}  {', '.join(d for d in data if not d[0].isdigit())}"


def q(text: str, **operands: str) -> Question:
    return Question(text, operands)


QUESTIONS = (
    q("y[i] = A[i,j] * x[j]", A="gowalla:csr", x="40981"),
    q("y[j] = A[i,j] * x[i]", A="rmat:csr", x="16384"),
    q("y[i] = A[i,j] * x[j]", A="nw04:csc", x="87482"),
    q("y[i] = b[i] - A[i,j] * x[j]", A="pde27:csr", x="27000", b="27000"),
    q("y[i] = A[i,j] * B[j,k] * x[k]", A="memplus:csr", B="memplus:csr", x="17758"),
    q("s = x[i] * A[i,j] * z[j]", A="bcsstk16:csr", x="4884", z="4884"),
    q("C[i,k] = A[i,j] * X[j,k]", A="4elt:csr", X="15606x32"),
    q("C[i,k] = A[i,j] * X[k,j]", A="dano3mip:csr", X="32x13873"),
    q("C[i,k] = X[i,j] * A[j,k]", A="ml-latest-small:csr", X="64x610"),
    q("C[i,k] = A[i,j] * B[j,k]", A="pde27:csr", B="pde27:csr"),
    q("C[i,k] = A[i,j] * B[k,j]", A="uniform:csr", B="uniform:csr"),
    q("C[i,k] = A[j,i] * B[j,k]", A="pubmed_adj:csr", B="pubmed_adj:csr"),
    q("C[i,k] = A[i,j] * B[j,k]", A="pubmed_adj:csc", B="pubmed_adj:csr"),
    q("D[i,j] = S[i,j] * U[i,k] * V[j,k]", S="rmat:csr", U="16384x32", V="16384x32"),
    q("D[i,j] = S[i,j] * U[i,k] * V[k,j]", S="4elt:csr", U="15606x32", V="32x15606"),
    q("D[i,j] = S[i,j] * A[i,k] * B[k,j]", S="pubmed_adj:csr", A="pubmed_adj:csr",
      B="pubmed_adj:csr"),
    q("s = A[i,j] * B[j,k] * D[i,k]", A="rmat:csr", B="rmat:csr", D="rmat:csr"),
    q("D[i,l] = A[i,j] * B[j,k] * C[k,l]", A="jagmesh7:csr", B="jagmesh7:csr", C="jagmesh7:csr"),
    q("D[i,l] = A[i,j] * B[j,k] * X[k,l]", A="uniform:csr", B="uniform:csr", X="20000x16"),
    q("C[i,j] = A[i,j] + B[i,j]", A="musae-github:csr", B="musae-github:csr"),
    q("C[i,j] = A[i,j] + B[i,j]", A="uniform:csr", B="uniform:csc"),
    q("y[i] = A[i,j] * B[i,j]", A="rmat:csr", B="rmat:csr"),
    q("C[i,j] = A[i,j] * B[j,i]", A="rmat:csr", B="rmat:csr"),
    q("C[i,j] = A[i,k] * B[j,k] * D[j,k]", A="cora_adj:csr", B="cora_adj:csr", D="cora_adj:csr"),
    q("M[i,r] = T[i,k,l] * U[k,r] * V[l,r]", T="FB15K237:csf", U="237x16", V="14541x16"),
    q("M[k,r] = T[i,k,l] * U[i,r] * V[l,r]", T="WN18RR:csf", U="40943x16", V="40943x16"),
    q("M[l,r] = T[i,k,l] * U[i,r] * V[k,r]", T="tensor:csf", U="500x16", V="500x16"),
    q("A[i,j] = T[i,j,k] * x[k]", T="ml-latest-small-time:csf", x="1088"),
    q("A[j,k] = T[i,j,k] * x[i]", T="skew:csf", x="500"),
    q("A[i,j,r] = T[i,j,k] * U[k,r]", T="WN18RR:csf", U="40943x16"),
    q("y[i] = T[i,j,k] * x[j] * z[k]", T="tensor:csf", x="500", z="500"),
    q("s = T[i,j,k] * R[i,j,k]", T="tensor:csf", R="skew:csf"),
    q("C[i,r] = A[i,j] * X[r,j]", A="gowalla:csr", X="16x40981"),
    q("M[i,r] = T[i,k,l] * U[r,k] * V[r,l]", T="FB15K237:csf", U="16x237", V="16x14541"),
    q("Y[i,q,s] = T[i,j,k] * U[j,q] * V[k,s]", T="tensor:csf", U="500x10", V="500x10"),
    q("Y[k,q,s] = T[i,j,k] * U[i,q] * V[j,s]", T="skew:csf", U="500x10", V="500x10"),
    q("G[p,q,s] = T[i,j,k] * U[i,p] * V[j,q] * W[k,s]", T="tensor:csf", U="500x8", V="500x8",
      W="500x8"),
    q("G[j,l] = T[i,j,k] * T[i,l,k]", T="ml-latest-small-time:csf"),
    q("Y[i,j,r] = T[i,j,k] * U[k,r]", T="skew:uqc", U="500x12"),
    q("Y[i,k] = T[i,j,k] * B[j,k]", T="blocks:ssd", B="thin:csr"),
    q("y[i] = T[i,j,k] * B[j,k]", T="blocks:ssd", B="thin:ss"),
    q("Y[b,i,f] = A[i,j] * Z[b,j,f]", A="4elt:csr", Z="8x15606x16"),
    q("C[i,j] = A[i,j] + D[i,j]", A="jagmesh7:csr", D="1138x1138"),
    q("y[i] = T[i,j,k] * z[k]", T="tensor:csf", z="500"),
)  # fmt: skip


def run() -> Iterator[Record]:
    ratios = []
    for question in QUESTIONS:
        found = answered(question)
        if found is None:
            continue
        chosen, best = found.times[OURS], found.times[BEST]
        ratios.append(min(best) / min(chosen))
        note = f"{ratios[-1]:.2f} of {BEST}, of {found.count} {found.notes[OURS]}"
        yield record("chosen", question.name, OURS, [1e3 * t for t in chosen], "ms", note)
        yield record("chosen", question.name, BEST, [1e3 * t for t in best], "ms", found.winner)
    if ratios:
        mean = prod(ratios) ** (1 / len(ratios))
        note = f"geometric mean {mean:.2f}, worst {min(ratios):.2f}, of {len(ratios)}"
        yield record("chosen", "all", OURS, [mean], "share of the best speed", note)


@dataclass(frozen=True, slots=True)
class Answer:
    """Times of the chosen schedule and of the fastest found."""

    times: Mapping[str, list[float]]
    notes: Mapping[str, str]
    winner: str
    count: int


@dataclass(frozen=True, slots=True)
class Tried:
    """The chosen schedule with its seconds, the others, and the seconds of each of those that ended
    in time."""

    given: Mapping[str, Any]
    chosen: Compute
    seconds: float
    members: Mapping[str, Member]
    ended: Mapping[str, float]

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """What was expected of each schedule that ended, and what it took."""
        return tuple((self.members[name][0], seconds) for name, seconds in self.ended.items())


def tried(question: Question, most: int) -> Tried | None:
    """What came out for `most` schedules; None where the data is not at hand."""
    given = {name: made(what) for name, what in question.operands.items()}
    if any(operand is None for operand in given.values()):
        return None
    chosen = partial(tp.evaluate, question.text, given, threads=1)
    chosen()  # compiled before it is timed
    seconds = min(once(chosen) for _ in range(3))
    limit = SLOWER * seconds + ALLOWED
    members = dict(list(members_of(question, given).items())[:most])
    if most > DRAWN:
        members |= others_of(question, given)
    taken = {name: apart(compute, limit) for name, (_, compute, _) in members.items()}
    ended = {name: seconds for name, seconds in taken.items() if seconds is not None}
    return Tried(given, chosen, seconds, members, ended)


def answered(question: Question) -> Answer | None:
    """What came out; None where the data is not at hand."""
    found = tried(question, CANDIDATES)
    if found is None:
        return None
    given, chosen, members, ended = found.given, found.chosen, found.members, found.ended
    finalists = sorted(ended, key=lambda name: ended[name])[:FINALISTS]
    ways: dict[str, Compute] = {OURS: chosen}
    ways.update((name, members[name][1]) for name in finalists)
    for compute in ways.values():
        compute()
    notes = check(Contest(question.name, ways))
    times = in_turns(ways)
    winner = min(times, key=lambda name: min(times[name]))
    both = {OURS: times[OURS], BEST: times[winner]}
    if winner != OURS and loops_of(question, given) == members[winner][2]:
        both = dict.fromkeys(both, times[OURS] + times[winner])  # the same kernels
    wrong = {name: note for name, note in notes.items() if note and name != OURS}
    return Answer(both, {OURS: str(wrong or "")}, winner, len(members))


def loops_of(question: Question, given: Mapping[str, Any]) -> tuple[str, ...]:
    """The loop order of each kernel that is chosen."""
    told = tp.explain(question.text, given, threads=1).splitlines()
    return tuple(
        max(line.split()[2:], key=len).rstrip(";")
        for line in told
        if line.startswith("  loop order")
    )


def members_of(question: Question, given: Mapping[str, Any]) -> dict[str, Member]:
    """The schedules on the frontier with what is expected of them and the loop order of each kernel
    of a sequence, the best first."""
    found = tp.frontier(question.text, given, schedule_budget=BUDGET)
    members: dict[str, Member] = {}
    known = [(c.estimate, c) for c in found if c.estimate is not None]
    for estimate, candidate in sorted(known, key=lambda pair: pair[0]):
        if candidate.kernels is not None:
            name = "; ".join(map(str, candidate.kernels))
            loops = tuple(loop_order(kernel) for kernel in candidate.kernels)
            members.setdefault(name, (estimate, partial(sequence, candidate, given), loops))
        elif candidate.schedule is not None:
            run = partial(tp.evaluate, question.text, given, threads=1)
            fused = partial(run, schedule=candidate.schedule)
            members.setdefault(str(candidate.schedule), (estimate, fused, ()))
    return members


def others_of(question: Question, given: Mapping[str, Any]) -> dict[str, Member]:
    """What may be faster, and is on no frontier."""
    measured = partial(tp.evaluate, question.text, given, threads=1, schedule="measure")
    measured()  # which is remembered on disk, for the processes that follow
    found: dict[str, Member] = {"measured": (0.0, measured, ())}
    turned = [name for name, x in given.items() if isinstance(x, np.ndarray) and x.ndim > 1]
    for count in range(1, len(turned) + 1):
        for names in combinations(turned, count):
            compute = partial(on_copies, question.text, given, names)
            found[f"{', '.join(names)} copied in the other order"] = (0.0, compute, ())
    return found


def on_copies(text: str, given: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The same call on dense operands that are copied first."""
    copies = {name: np.asfortranarray(given[name]) for name in names}
    return tp.evaluate(text, {**given, **copies}, threads=1)


def loop_order(kernel: Any) -> str:
    """As `explain` has it: i,k,j."""
    named = [command.indices for command in kernel.schedule.commands]
    return ",".join(named[0] if named else kernel.assignment.target.indices)


def sequence(candidate: Any, given: Mapping[str, Any]) -> Any:
    """The result of a candidate's kernels, one after another."""
    known = dict(given)
    for kernel in candidate.kernels:
        text = str(kernel).partition(" with ")[0]
        read = {name: known[name] for name in kernel.operands}
        result = tp.evaluate(text, read, schedule=kernel.schedule, threads=1)
        known[kernel.assignment.target.tensor] = result
    return result


def apart(compute: Compute, limit: float) -> float | None:
    """Seconds of `compute` in a process of its own, without its compilation; None where it takes
    more than `limit` seconds of processor time or is refused."""
    read, write = os.pipe()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _child(compute, limit, write)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return struct.unpack("d", text)[0] if len(text) == 8 else None


def _child(compute: Compute, limit: float, write: int) -> None:
    import resource

    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.setitimer(signal.ITIMER_PROF, limit)  # its signal ends the process
        compute()
        signal.setitimer(signal.ITIMER_PROF, 2 * limit)
        os.write(write, struct.pack("d", min(once(compute) for _ in range(2))))
        status = 0
    except (tp.TacoError, MemoryError) as error:
        print(f"    refused: {str(error).splitlines()[0]}", file=sys.stderr)
    finally:
        os._exit(status)


# ---------------------------------------------------------------- operands


@cache
def made(what: str) -> Any:
    """An operand: `17758` or `64x610` for a dense array, `name:csr` for a matrix, `name:csf` for a
    tensor, or either in another format, as in `name:ssd`; None where there is no public data of
    this name."""
    name, _, form = what.partition(":")
    if not form:
        shape = tuple(map(int, name.split("x")))
        return np.random.default_rng(len(name)).random(shape)
    if form in ("csr", "csc"):
        return matrix(name, form)
    found = tensor(name) if name in GENERATED_TENSORS or len(form) == 3 else matrix(name, "csr")
    if found is None or form == "csf":
        return found
    return (found if isinstance(found, tp.Tensor) else tp.tensor(found)).to_format(form)


def matrix(name: str, form: str) -> Any:
    generated: dict[str, Callable[[], Any]] = {
        "uniform": lambda: uniform(20_000, 20_000, 10),
        "rmat": lambda: rmat(14, 8),
        "pde27": lambda: pde27(30),
        "thin": lambda: uniform(300, 16, 4),
    }
    if name in generated:
        return stored(generated[name](), form)
    loader = shared_loader()
    if loader is None or name not in loader.names("matrix"):
        return None
    return stored(loader.matrix(name).astype(np.float64), form)


def stored(found: Any, form: str) -> Any:
    return sp.csc_array(found) if form == "csc" else sp.csr_array(found)


GENERATED_TENSORS: dict[str, tuple[tuple[int, ...], int, float]] = {
    "tensor": ((500, 500, 500), 200_000, 0.0),
    "skew": ((500, 500, 500), 200_000, 1.0),
    "blocks": ((300, 300, 16), 3_000, 0.0),
}


def tensor(name: str) -> Any:
    shape: tuple[int, ...]
    if name in GENERATED_TENSORS:
        shape, entries, skew = GENERATED_TENSORS[name]
        modes, values = tensor_coordinates(shape, entries, skew)
        coordinates = list(modes)
    else:
        loader = shared_loader()
        if loader is None or name not in loader.names("tensor"):
            return None
        rows, values, shape = loader.tensor(name)
        coordinates = list(rows.T)
    return tp.Tensor.from_coo(coordinates, values, shape, format=tp.CSF(len(shape)))


# ---------------------------------------------------------------- the picture


def share_of(question: Question, found: Tried) -> float:
    """The chosen schedule's part of the speed of the best; one where these are the same kernels."""
    best = min(found.ended, key=lambda name: found.ended[name])
    if found.ended[best] >= found.seconds:
        return 1.0
    same = found.members[best][2] == loops_of(question, found.given)
    return 1.0 if same else found.ended[best] / found.seconds


def draw() -> None:
    """What was expected against what it took, for each of the first schedules that ended, and how
    often the chosen one is about as fast as the best of them."""
    every = ((question, tried(question, DRAWN)) for question in QUESTIONS)
    found = [(question, each) for question, each in every if each is not None and each.ended]
    clouds = [Cloud(question.name, each.points) for question, each in found]
    PICTURE.write_text(scatter(clouds, "expected cost", "seconds"))
    shares = {question.name: share_of(question, each) for question, each in found}
    mean = prod(shares.values()) ** (1 / len(shares))
    near = sum(share * NEAR >= 1.0 for share in shares.values())
    for name, share in sorted(shares.items(), key=lambda item: item[1])[:3]:
        print(f"{share:.2f} of the best speed: {name}")
    print(f"within {NEAR} of the best in {near} of {len(shares)}, geometric mean {mean:.2f}")
    print(f"drawn into {PICTURE.name}")


if __name__ == "__main__":
    draw()
