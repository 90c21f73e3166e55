"""Solutions of problems of saved bytes that are kept under a digest of the problem.

    "partition sha256"  →  {"groups": [3, 12], "bound": 96.0, "rounds": 2, "seconds": 10.0}

Repeated layers of a network are the same problem, which is solved once; and so is that of a later
process. What is read is checked: what is no solution of the problem is as if it were not there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from hashlib import sha256
from typing import Any

from codegen.records import dataclass
from taco_py.graph.orchestrate.partition.edge_program import solve_by_cuts
from taco_py.graph.orchestrate.partition.fusible_parts import Solver
from taco_py.graph.orchestrate.partition.traffic_problem import Partition, TrafficProblem


@dataclass(slots=True, eq=False)
class NotedSolutions:
    """A solver that looks for notes first.

    read   the note under a key, None where there is none
    write  keep a note under a key
    notes  the notes of this object
    hits   how many solutions were there already
    """

    read: Callable[[str], str | None] = lambda key: None
    write: Callable[[str, str], None] = lambda key, text: None
    solver: Solver = solve_by_cuts
    notes: dict[str, str] = field(default_factory=dict)
    hits: int = 0

    def __call__(self, problem: TrafficProblem, seconds: float) -> Partition:
        """Return the partition of a note, or solve the problem and write one."""
        key = note_key(problem)
        text = self.notes.get(key) or self.read(key)
        noted = None if text is None else _partition_of(text, problem, seconds)
        if noted is not None and text is not None:
            self.hits += 1
            self.notes[key] = text
            return noted
        start = time.perf_counter()
        solved = self.solver(problem, seconds)
        spent = max(seconds, time.perf_counter() - start)
        text = json.dumps({
            "groups": solved.groups, "bound": solved.bound, "rounds": solved.rounds,
            "seconds": spent,
        })  # fmt: skip
        self.notes[key] = text
        self.write(key, text)
        return solved


def note_key(problem: TrafficProblem) -> str:
    """Return the key under which the solution of a problem is noted."""
    parts = (problem.size, problem.edges, problem.conflicts, problem.required_pairs, problem.paths)
    return f"partition {sha256(repr(parts).encode()).hexdigest()}"


def _partition_of(text: str, problem: TrafficProblem, seconds: float) -> Partition | None:
    """Return the partition of a note; None if invalid, or if more time may improve it."""
    try:
        note: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(note, Mapping) or not _is_solution(note, problem):
        return None
    groups = tuple(note["groups"])
    saved = problem.saved(groups)
    partition = Partition(groups, saved, max(saved, float(note["bound"])), note["rounds"])
    return partition if partition.optimal or note["seconds"] >= seconds else None


def _is_solution(note: Mapping[str, Any], problem: TrafficProblem) -> bool:
    """Return whether a note has the parts of one, and groups that the problem allows."""
    groups = note.get("groups")
    numbers = [note.get(name) for name in ("bound", "rounds", "seconds")]
    if not isinstance(groups, list) or not all(isinstance(n, int | float) for n in numbers):
        return False
    if not all(isinstance(group, int) and group > 0 for group in groups):
        return False
    covered = 0
    for group in groups:
        if covered & group:
            return False
        covered |= group
    return covered == (1 << problem.size) - 1 and problem.allows(groups)
